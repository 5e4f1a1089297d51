"""What a probe hands back: the part of a finding that it alone knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.model import Outcome
from pytest_thermal.model.findings import Scalar


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Outcome and words of one probe. ``layer`` is the layer at fault where that is not the probe's own."""

    outcome: Outcome
    seen: str
    layer: str | None = None
    likely: str = ""
    advice: str = ""
    evidence: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    transcript: str = ""


class CannotMeasure(Exception):  # noqa: N818 - what happened, as the finding says it
    """A probe could not measure what it is for: the finding is inconclusive."""

    def __init__(self, seen: str, *, likely: str = "", advice: str = "") -> None:
        super().__init__(seen)
        self.seen = seen
        self.likely = likely
        self.advice = advice


def passed(seen: str, *, warnings: tuple[str, ...] = (), **evidence: Scalar) -> Verdict:
    """Measured and good."""
    return Verdict(outcome=Outcome.PASSED, seen=seen, warnings=warnings, evidence=evidence)


def skipped(seen: str, **evidence: Scalar) -> Verdict:
    """Does not apply to this bench, or cannot be done on this machine, for the reason in ``seen``."""
    return Verdict(outcome=Outcome.SKIPPED, seen=seen, evidence=evidence)


def failed(
    seen: str,
    *,
    likely: str,
    advice: str,
    layer: str | None = None,
    transcript: str = "",
    warnings: tuple[str, ...] = (),
    **evidence: Scalar,
) -> Verdict:
    """Measured and bad."""
    return Verdict(
        outcome=Outcome.FAILED,
        seen=seen,
        layer=layer,
        likely=likely,
        advice=advice,
        transcript=transcript,
        warnings=warnings,
        evidence=evidence,
    )
