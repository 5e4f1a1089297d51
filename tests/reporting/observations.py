"""Tests as they ended, made up."""

from __future__ import annotations

from typing import Any

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.reporting.observed import How, Observed

HOW_OF = {
    Outcome.PASSED: How.PASSED,
    Outcome.FAILED: How.FAILED,
    Outcome.INCONCLUSIVE: How.BROKEN,
    Outcome.BLOCKED: How.SKIPPED,
    Outcome.SKIPPED: How.SKIPPED,
}


def finding(outcome: Outcome, check: str = "key", subject: str = "rack-1", **more: Any) -> Finding:
    return Finding(
        **{"layer": check, "seen": f"{check} was {outcome}", "likely": "a cause", "advice": "a remedy", **more},
        check=check,
        subject=subject,
        outcome=outcome,
    )


def asked(outcome: Outcome, check: str = "key", subject: str = "rack-1", **more: Any) -> Observed:
    """A critical test that asked for one check and ended as that did."""
    evidence = more.pop("evidence", {})
    return Observed(
        **{"how": HOW_OF[outcome], "critical": True, **more},
        test=f"suites/x.py::test_{check}[{subject}]",
        check=check,
        subject=subject,
        findings=(finding(outcome, check, subject, evidence=evidence),),
    )


def own(how: How, **more: Any) -> Observed:
    """A test of somebody's own, which asks for no check."""
    return Observed(**{"critical": True, **more}, test="mine.py::test_mine", how=how)


PASSED = asked(Outcome.PASSED)
