"""One request of a load, from the outside: where it goes, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import SecretStr

from pytest_thermal.transport import Fault

CANCELLED = "cancelled"
ANSWER_PATIENCE = 2.0
"""A whole answer may take so many times as long as the next bytes of it: a byte a second is no answer."""
ERROR_BODY_BYTES = 65536

_IN_WORDS = {
    Fault.RESOLVE: "name not resolved",
    Fault.REFUSED: "connection refused",
    Fault.UNREACHABLE: "host unreachable",
    Fault.CONNECT_TIMEOUT: "no connection in time",
    Fault.TLS: "no TLS",
    Fault.RESET: "connection reset",
    Fault.CLOSED: "closed without an answer",
    Fault.CUT: "answer cut off",
    Fault.SILENCE: "no answer in time",
    Fault.SLOW: "answer too slow",
    Fault.OVERSIZE: "answer too long",
    Fault.NOT_HTTP: "no HTTP",
}
"""Kinds of failure as they are counted, where the fault's own word says too little."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where requests go, with what key, and how long to wait."""

    base_url: str
    key: SecretStr | None
    connect_seconds: float
    read_seconds: float

    @property
    def total_seconds(self) -> float:
        """For a whole answer."""
        return ANSWER_PATIENCE * self.read_seconds + self.connect_seconds


@dataclass(kw_only=True, slots=True)
class Answer:
    """What became of one request. Times are seconds of the monotonic clock, durations count from its start."""

    started_seconds: float
    ttft_seconds: float | None = None
    last_token_seconds: float | None = None
    gaps_seconds: list[float] = field(default_factory=list, repr=False)
    """Between one token and the next, each of them: a mean shows no stall."""
    latency_seconds: float = 0.0
    status: int | None = None
    trouble: str = ""
    """The kind of failure, to count it by: ``429 Too Many Requests``, ``silence``; empty for none."""
    detail: str = ""
    """The same in more words."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    text: str = ""
    retry_after_seconds: float | None = None
    words: str = ""
    """All that a refusal of the request's form says, to learn from."""
    limit: str = ""
    """Which limit refused it (`access.limit_met`); empty for none."""
    domain: str = ""
    """Whose gateway was asked."""

    @property
    def ok(self) -> bool:
        """Whether a whole completion came."""
        return not self.trouble

    @property
    def cancelled(self) -> bool:
        """Whether whoever asked ended it."""
        return self.trouble == CANCELLED

    @property
    def error(self) -> str:
        """The failure in words; empty for none."""
        return f"{self.trouble}: {self.detail}" if self.detail else self.trouble

    def failed(self, fault: Fault, text: str) -> None:
        """It ended so."""
        self.trouble, self.detail = _IN_WORDS.get(fault, fault.value), text

    def was_slow(self, total_seconds: float) -> None:
        """It was not whole at its deadline."""
        self.failed(Fault.SLOW, f"not at its end after {total_seconds:g} s, though bytes kept coming")

    def was_cancelled(self) -> None:
        """Whoever asked for it ended it."""
        self.trouble, self.detail = CANCELLED, "the load was taken off"
