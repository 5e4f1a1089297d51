"""Where a generator enters what it does, whoever keeps it: `Books` in this process, or another process (`Shipping`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Protocol

from pytest_thermal.load.answers import Answer


@dataclass(slots=True)
class Issued:
    """What was sent, or should have been, up to now."""

    in_flight: int = 0
    items_inference: int = 0
    items_compute: int = 0
    not_issued: int = 0

    @classmethod
    def total(cls, several: Iterable[Issued]) -> Issued:
        """Of several generators."""
        return cls(*map(sum, zip(*map(astuple, several), strict=True)))


class Ledger(Protocol):
    """Takes what became of requests."""

    @property
    def issued(self) -> Issued:
        """Counted by the generator itself."""

    @property
    def mean_latency_seconds(self) -> float | None:
        """Of all good answers so far; None before the first."""

    def enter(self, answer: Answer, *, phase: str, due_seconds: float | None) -> None:
        """A request has its answer. ``due_seconds``, of the monotonic clock, is when it should have left."""

    def trouble(self, kind: str) -> None:
        """Count something that went wrong and is no request, by its kind."""

    def fault(self, error: BaseException) -> None:
        """Count a fault of the load generator itself."""

    def close(self) -> None:
        """Let go of what waits; nothing is entered after that."""
