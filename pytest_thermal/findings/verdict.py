"""What a check hands back, and how it says that the question stays open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.model import Outcome
from pytest_thermal.model.findings import Scalar

NOTHING: Mapping[str, Scalar] = {}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Outcome and words of one check."""

    outcome: Outcome
    seen: str
    likely: str = ""
    advice: str = ""
    evidence: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class OpenError(Exception):
    """What a check needs was not measured, or not well enough: the finding is inconclusive."""

    def __init__(self, seen: str, *, likely: str = "", advice: str = "") -> None:
        super().__init__(seen)
        self.seen = seen
        self.likely = likely
        self.advice = advice


def passed(seen: str, *, evidence: Mapping[str, Scalar] = NOTHING, warnings: tuple[str, ...] = ()) -> Verdict:
    """Measured and good."""
    return Verdict(outcome=Outcome.PASSED, seen=seen, warnings=warnings, evidence=evidence)


def skipped(seen: str) -> Verdict:
    """Does not apply to this run, for the reason in ``seen``."""
    return Verdict(outcome=Outcome.SKIPPED, seen=seen)


def failed(
    seen: str, *, likely: str, advice: str, evidence: Mapping[str, Scalar] = NOTHING, warnings: tuple[str, ...] = ()
) -> Verdict:
    """Measured and bad."""
    return Verdict(
        outcome=Outcome.FAILED, seen=seen, likely=likely, advice=advice, warnings=warnings, evidence=evidence
    )


def undecided(error: OpenError) -> Verdict:
    """Not known."""
    return Verdict(outcome=Outcome.INCONCLUSIVE, seen=error.seen, likely=error.likely, advice=error.advice)
