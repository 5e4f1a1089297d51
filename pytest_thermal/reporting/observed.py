"""One test as it ended, with what it found: what the gate and the other formats are made of. Plain data, no pytest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import packed, unpacked


class How(str, Enum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    """It was measured and found bad: an assertion."""
    BROKEN = "broken"
    """Inconclusive, or an error: whatever it was to show is not known."""
    SKIPPED = "skipped"
    EXPECTED = "expected failure"
    """An advisory test that had something to say, or a test that is known to fail (xfail)."""
    NOT_RUN = "not run"
    """It was collected, and the run ended before it."""
    DESELECTED = "deselected"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One test."""

    test: str
    """Its id, as pytest prints it."""
    how: How
    critical: bool = False
    """Whether it blocks the gate."""
    advisory: bool = False
    """Whether it fails nothing."""
    check: str = ""
    """The check that it asks, as far as its name tells; empty for a test of somebody's own."""
    subject: str = ""
    simulated: bool = False
    """Whether what it measured is the demo bench."""
    findings: tuple[Finding, ...] = ()
    """What it asked for, in order."""
    message: str = ""
    """Why it was skipped, or what it failed with."""
    worker: str = ""
    """xdist's worker that ran it; empty without xdist."""
    start_seconds: float = 0.0
    """Unix time; 0 where it did not run."""
    stop_seconds: float = 0.0

    @property
    def decisive(self) -> Finding | None:
        """The finding that ended the test: the last that is no pass, else the last one."""
        bad = [found for found in self.findings if found.outcome is not Outcome.PASSED]
        return next(reversed(bad or list(self.findings)), None)


def plain_finding(found: Finding) -> dict[str, Any]:
    """A finding as plain JSON, without the transcript: for a wire, a file."""
    data = asdict(found)
    del data["transcript"]
    plain: dict[str, Any] = packed(
        {
            **data,
            "outcome": str(found.outcome),
            "warnings": list(found.warnings),
            "evidence": {name: plain_scalar(value) for name, value in found.evidence.items()},
        }
    )
    return plain


def finding_of(data: Mapping[str, Any]) -> Finding:
    """The finding that `plain_finding` wrote down, ``packed`` or not."""
    told = unpacked(data)
    return Finding(**{**told, "outcome": Outcome(told["outcome"]), "warnings": tuple(told["warnings"])})


def plain_scalar(value: object) -> Scalar:
    """A value of an evidence in one of JSON's own types: a NumPy scalar becomes a float, what is not finite None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None
