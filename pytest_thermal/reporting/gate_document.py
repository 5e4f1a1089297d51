"""What stands in ``gate.json``; `gate.schema.json` beside this file describes it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_thermal.model import Finding
from pytest_thermal.reporting.gate import Decision, Item, Verdict, counts
from pytest_thermal.reporting.headline import headline
from pytest_thermal.reporting.observed import Observed, plain_scalar

FORMAT = 1
"""Raised when a reader of today would misread the file."""
SCHEMA = Path(__file__).with_name("gate.schema.json")


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """When, where, with what."""

    started_seconds: float
    """Unix time."""
    ended_seconds: float | None
    """None while the run goes on."""
    version: str
    """Of pytest-thermal."""
    commit: str | None
    """Of its checkout; None where it was installed from a package."""
    modified: bool | None
    """Whether that checkout differs from its commit."""
    pytest: str
    python: str
    host: str
    command: Sequence[str]
    """The arguments of pytest."""
    benches: Sequence[Mapping[str, Any]] = field(default_factory=list)
    runs: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Thermal runs that were made or judged."""


def running(circumstances: Circumstances, because: str) -> dict[str, Any]:
    """What the file says until the run has ended: nothing is decided, and no earlier answer is left to be read."""
    return _document(
        circumstances, state="running", decision=Decision.NOT_DECIDED, because=because, blocking=[], accepted=[]
    )


def ended(circumstances: Circumstances, verdict: Verdict, observed: Sequence[Observed]) -> dict[str, Any]:
    """What the file says in the end."""
    return {
        **_document(
            circumstances,
            state="ended",
            decision=verdict.decision,
            because=verdict.because,
            blocking=[_item(item) for item in verdict.blocking],
            accepted=[
                {**_item(one.item), "reason": one.acceptance.reason, "origin": one.acceptance.origin}
                for one in verdict.accepted
            ],
        ),
        "counts": {"critical": verdict.critical, "critical_passed": verdict.passed, **_counts(observed)},
        "findings": [_finding(found, one) for one in observed for found in one.findings],
    }


def as_text(document: Mapping[str, Any]) -> str:
    """The document as the file holds it."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the file."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


# ---------------------------------------------------------------------------------------------------------------------


def _document(
    circumstances: Circumstances,
    *,
    state: str,
    decision: Decision,
    because: str,
    blocking: list[dict[str, Any]],
    accepted: list[dict[str, Any]],
) -> dict[str, Any]:
    ended_seconds = circumstances.ended_seconds
    return {
        "format": FORMAT,
        "decision": str(decision),
        "because": because,
        "state": state,
        "started": _utc(circumstances.started_seconds),
        "ended": None if ended_seconds is None else _utc(ended_seconds),
        "host": circumstances.host,
        "command": list(circumstances.command),
        "plugin": {
            "version": circumstances.version,
            "commit": circumstances.commit,
            "modified": circumstances.modified,
        },
        "versions": {"pytest": circumstances.pytest, "python": circumstances.python},
        "benches": [dict(bench) for bench in circumstances.benches],
        "thermal_runs": [dict(run) for run in circumstances.runs],
        "blocking": blocking,
        "accepted": accepted,
        "counts": {"critical": 0, "critical_passed": 0, **_counts(())},
        "findings": [],
    }


def _counts(observed: Sequence[Observed]) -> dict[str, int]:
    return {name.replace(" ", "_"): number for name, number in counts(observed).items()}


def _item(item: Item) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "decides": str(item.decides),
        "test": item.test,
        "check": item.check,
        "layer": item.layer,
        "subject": item.subject,
        "seen": item.seen,
        "likely": item.likely,
        "try": item.advice,
        "simulated": item.simulated,
    }


def _finding(found: Finding, one: Observed) -> dict[str, Any]:
    number = headline(found)
    return {
        "test": one.test,
        "check": found.check,
        "layer": found.layer,
        "subject": found.subject,
        "outcome": str(found.outcome),
        "seen": found.seen,
        "critical": one.critical and not one.advisory,
        "simulated": one.simulated,
        "value": None if number is None else number.value,
        "unit": "" if number is None else number.unit,
        "limit": None if number is None else number.limit,
        "limit_is": None if number is None or number.limit is None else "least" if number.at_least else "most",
        "limit_origin": "" if number is None else number.limit_origin,
        "evidence": {name: plain_scalar(value) for name, value in found.evidence.items()},
        "warnings": list(found.warnings),
    }


def _utc(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, tz=dt.timezone.utc).isoformat(timespec="milliseconds")
