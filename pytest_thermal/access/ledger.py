"""What an access run asked for and what it was charged."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.model.said import say


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Tokens of one run.

    ``output_tokens`` is what the gateway's ``usage`` charged; answers without it count what was asked for, and
    ``uncounted_answers`` says how many those were.
    """

    chat_requests: int
    asked_tokens: int
    prompt_tokens: int
    output_tokens: int
    uncounted_answers: int
    budget_tokens: int

    @property
    def line(self) -> str:
        """One line for people."""
        text = say(
            "{output_tokens} output and {prompt_tokens} prompt tokens in {chat_requests} requests "
            "(asked for at most {asked_tokens}, budget {budget_tokens})",
            output_tokens=self.output_tokens,
            prompt_tokens=self.prompt_tokens,
            chat_requests=self.chat_requests,
            asked_tokens=self.asked_tokens,
            budget_tokens=self.budget_tokens,
        )
        if self.uncounted_answers:
            text += say(
                "; {uncounted_answers} answers without usage counted as asked", uncounted_answers=self.uncounted_answers
            )
        if self.output_tokens > self.asked_tokens:
            text += say("; the gateway charged more than it was asked for")
        return text


class Ledger:
    """Keeps the token budget of a run over all its domains. Safe to use from several threads."""

    def __init__(self, budget_tokens: int) -> None:
        self._budget = budget_tokens
        self._lock = threading.Lock()
        self._requests = self._asked = self._prompt = self._output = self._uncounted = 0

    def reserve(self, tokens: int, *, requests: int = 1) -> None:
        """Set aside ``tokens`` of output for each of ``requests``; raises CannotMeasure if the budget is too small."""
        with self._lock:
            wanted = tokens * requests
            if self._asked + wanted > self._budget:
                raise CannotMeasure(
                    say(
                        "{wanted} more output tokens are needed, {budget} of the budget of {budget_2} are left",
                        wanted=wanted,
                        budget=self._budget - self._asked,
                        budget_2=self._budget,
                    ),
                    likely=say("the budget is set too low for this bench's domains and --probe-… options"),
                    advice=say("--token-budget {asked} or more", asked=self._asked + wanted),
                )
            self._asked += wanted
            self._requests += requests

    def charge(self, *, prompt: int | None, output: int | None, asked: int) -> None:
        """Note what an answer cost; ``None`` where it did not say."""
        with self._lock:
            self._prompt += prompt or 0
            self._output += asked if output is None else output
            self._uncounted += output is None

    def spending(self) -> Spending:
        """The sums so far."""
        with self._lock:
            return Spending(
                chat_requests=self._requests,
                asked_tokens=self._asked,
                prompt_tokens=self._prompt,
                output_tokens=self._output,
                uncounted_answers=self._uncounted,
                budget_tokens=self._budget,
            )
