"""What is asked: short chats, long contexts, or an agent's many turns. No two conversations begin alike.

A gateway that knows a prompt's beginning need not compute it: what loads is what it has not seen.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

LONG_CONTEXT_WORDS = 3000
"""About 4,000 tokens of English."""
AGENT_TURNS = 8
_TOOL_RESULT_WORDS = 150

_TASKS = (
    "Explain step by step how heat travels from a chip to the air of a room",
    "Write a detailed story about an engineer who finds a leak in a cooling loop at night",
    "Compare, point by point, air cooling and liquid cooling of a rack of servers",
    "Derive how the flow of a pump and the temperature difference give the heat that is carried away",
    "Describe a day of a technician in a data centre, hour by hour",
    "List and discuss what can make a processor slow down under load",
)
_WORDS = (
    "coolant", "pump", "radiator", "manifold", "valve", "sensor", "rack", "node", "fan", "plate", "paste", "flow",
    "pressure", "inlet", "outlet", "room", "load", "clock", "power", "limit", "module", "memory", "channel", "board",
    "cable", "switch", "header", "filter", "bypass", "reservoir", "thermostat", "gauge",
)  # fmt: skip


class Conversation:
    """The requests of one slot, one after the other."""

    def __init__(self, profile: str, *, slot: int) -> None:
        self._profile = profile
        self._mark = f"{os.urandom(4).hex()}-{slot}"
        self._number = itertools.count(1)
        self._history: list[dict[str, str]] = []
        self._turns = 0

    def messages(self) -> list[dict[str, str]]:
        """The messages of the next request."""
        number = next(self._number)
        if self._profile == "agent":
            return self._agent(number)
        task = _TASKS[number % len(_TASKS)]
        if self._profile == "long-context":
            document = " ".join(_words(number, LONG_CONTEXT_WORDS))
            return [_user(f"Log {self._mark}-{number}:\n{document}\n\n{task}, in the light of that log.")]
        return [_user(f"[{self._mark}-{number}] {task}. Write at length.")]

    def took(self, text: str, *, ok: bool) -> None:
        """The answer to it; after a failure an agent begins anew."""
        if self._profile != "agent":
            return
        if not ok or self._turns >= AGENT_TURNS:
            self._history, self._turns = [], 0
            return
        self._history.append({"role": "assistant", "content": text or "(nothing)"})

    def _agent(self, number: int) -> list[dict[str, str]]:
        if not self._history:
            self._history.append(
                _user(f"[{self._mark}-{number}] {_TASKS[number % len(_TASKS)]}. Use the tools you need.")
            )
        else:
            result = " ".join(_words(number, _TOOL_RESULT_WORDS))
            self._history.append(_user(f"Result of the tool, turn {self._turns}: {result}\nGo on."))
        self._turns += 1
        return list(self._history)


def body_of(
    messages: list[dict[str, str]],
    *,
    model: str,
    max_tokens: int,
    temperature: float,
    stream: bool,
    dialect: Dialect,
) -> Mapping[str, Any]:
    """The body of a chat request, as this gateway wants it."""
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        dialect.limit_name: max_tokens,
        "temperature": temperature,
        "stream": stream,
    }
    if stream and dialect.asks_for_usage:
        body["stream_options"] = {"include_usage": True}
    if dialect.thinking_off:
        body["enable_thinking"] = False
    return body


class Dialect:
    """What this gateway turned out to want of a request."""

    def __init__(self) -> None:
        self.limit_name = "max_tokens"
        self.asks_for_usage = True
        self.thinking_off = False
        """Say ``enable_thinking: false``, without which some refuse to answer in one piece."""

    def learn(self, status: int | None, words: str) -> bool:
        """Whether an answer taught something, so that the next request is written otherwise.

        The access checks learn the same (`access.gateway`): what passes them must not fail every request of the load.
        """
        if status not in (400, 422):
            return False
        if self.asks_for_usage and "stream_options" in words:
            self.asks_for_usage = False
            return True
        refused = "max_completion_tokens" in words or re.search(r"(unsupported|unknown).{0,40}max_tokens", words)
        if refused and self.limit_name == "max_tokens":
            self.limit_name = "max_completion_tokens"
            return True
        if not self.thinking_off and re.search(r"enable_thinking.{0,40}(false|stream)", words):
            self.thinking_off = True
            return True
        return False


def _words(seed: int, count: int) -> Iterator[str]:
    """Words in an order that has no short period; the same for a seed."""
    state = seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield _WORDS[(state >> 16) % len(_WORDS)]


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}
