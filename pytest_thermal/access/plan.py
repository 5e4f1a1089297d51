"""How much an access run asks for: requests, workers, tokens and patience, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHAT_TOKENS = 2
ROUTE_TOKENS = 1
KEYLESS_TOKENS = 1
STREAM_TOKENS = 4
BURST_TOKENS = 1

FILLER_WORDS = 4
"""So much longer is each prompt of a burst than the one before: letters differ by a token or two in some tokenizers."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one access run may cost and how long it waits.

    With the defaults a domain costs 50 output tokens: chat 2, second route 1, keyless chat 1 (only where
    `/v1/models` is open), stream 4, 16 requests of 1, 1 + 8 + 16 for the scheduler, 1 spare. ``token_budget``
    is the most a whole run asks for, over all domains: 100, or 50 a domain where there are more than two.
    """

    requests: int = 16
    workers: int = 8
    parallel_levels: tuple[int, ...] = (1, 8, 16)
    token_budget: int | None = None
    probe_quota: bool = False
    connect_limit_seconds: float = 10.0
    """Longer than three SYN retransmissions: a gateway that takes longer to accept is not usable, whatever
    ``connect_timeout`` a bench allows."""
    answer_limit_seconds: float = 10.0
    """For an answer that needs no inference, such as the model list."""
    sysfs: Path = Path("/sys")
    interconnect_command: str | None = None
    """A latency test of the user's, run without a shell."""
    interconnect_seconds: float = 60.0

    def budget_tokens(self, domains: int) -> int:
        """Output tokens that a run over ``domains`` may ask for."""
        return self.token_budget if self.token_budget is not None else max(100, 50 * domains)


def letter_prompt(index: int) -> tuple[str, str]:
    """The letter that request ``index`` asks for, and its prompt.

    Letters are one token in every tokenizer, so one output token can show whose answer it is. The filler grows
    with the index, so that ``usage.prompt_tokens`` tells requests apart where the text does not (a reasoning
    model, a random one).
    """
    letter = LETTERS[index % len(LETTERS)]
    filler = " x" * (FILLER_WORDS * index)
    return letter, f"Reply with only the letter {letter}.{filler}"
