"""Every run below a folder, from what it says of itself: ``run.json`` and a ``summary.json`` that nobody changed.

No sample is read, so a hundred runs of a day each cost no more than their summaries. What cannot be read is told, and
hides nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_thermal.analysis import RunFacts
from pytest_thermal.findings.earlier import NEEDED
from pytest_thermal.findings.judgement import told_finding
from pytest_thermal.findings.run_facts import facts_of, is_simulated, lengths_of, plan_of, why_not_whole
from pytest_thermal.findings.subjects import is_heated
from pytest_thermal.findings.telling import STATES
from pytest_thermal.model import Sensor
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure
from pytest_thermal.recording.errors import RecordingError
from pytest_thermal.recording.layout import REPORT, RUN, SUMMARY, read_run_json, sha256
from pytest_thermal.recording.run_state import state_of
from pytest_thermal.recording.words import sensor_from_json

UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, OverflowError)
"""What JSON of another shape than ours runs into."""
OWN_VERDICT = ("rise", "drift")
"""Checks that say of a sensor whether its rise is known."""
GROUND = ("coverage", "baseline", "settled")
"""What must hold of a sensor where neither of them was decided: its first run, a memory's temperature."""
_DECIDED = frozenset({"passed", "failed"})


@dataclass(frozen=True, kw_only=True)
class Point:
    """What one run says of one sensor."""

    rise_celsius: float | None
    """None where it is not known."""
    resistance: float | None
    """°C/W; None where it is not known, or not this sensor's to have."""
    why: str
    """Why the rise is not known; empty where it is."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """``rise`` and ``resistance`` as the run's summary has them."""
    drift_outcome: str = ""
    """``passed``, ``failed`` …; empty where the run was not compared."""


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """One run of the archive."""

    path: Path
    start_seconds: float
    host: str
    simulated: bool
    state: str
    """``finished``, ``cut off``, ``recording`` …."""
    facts: RunFacts
    """What must be the same for two runs to be compared."""
    verdict: str
    """``failed``, ``inconclusive``, ``passed``; empty where it was not judged."""
    why_no_figures: str
    """Why no figure of it is shown; empty where they are."""
    points: Mapping[str, Point] = field(default_factory=dict)
    """By sensor id."""
    sensors: Mapping[str, Sensor] = field(default_factory=dict)
    """The heated temperatures, by id."""
    against: str = ""
    """The run that it was compared with; empty where with none."""
    against_why: str = ""
    limit_celsius: float | None = None
    """What drift fails at."""
    limit_origin: str = ""

    @property
    def name(self) -> str:
        """Of its directory."""
        return self.path.name

    @property
    def has_report(self) -> bool:
        """Whether its own page lies beside it."""
        return (self.path / REPORT).is_file()


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A directory that is no run that could be read."""

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Archive:
    """All that lies in an archive."""

    folder: Path
    runs: Sequence[RunEntry]
    """The oldest first."""
    left_out: Sequence[LeftOut]


def read_archive(folder: Path) -> Archive:
    """Every run below a folder. Never raises for what lies in it.

    Raises:
        OSError: The folder itself cannot be read.
    """
    runs: list[RunEntry] = []
    left_out: list[LeftOut] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_dir():
            continue
        try:
            runs.append(_entry(path))
        except RecordingError as error:
            left_out.append(LeftOut(name=path.name, why=error.seen.removeprefix(f"{path}: ").removeprefix(f"{path}/")))
        except OSError as error:
            left_out.append(LeftOut(name=path.name, why=say("cannot be read: {error}", error=error.strerror or error)))
        except UNREADABLE as error:
            why = say(
                "{file} is damaged, or of another program: {kind}: {error}",
                file=RUN,
                kind=type(error).__name__,
                error=error,
            )
            left_out.append(LeftOut(name=path.name, why=why))
    runs.sort(key=lambda run: (run.start_seconds, run.name))
    return Archive(folder=folder, runs=tuple(runs), left_out=tuple(left_out))


# ---------------------------------------------------------------------------------------------------------------------


def _entry(path: Path) -> RunEntry:
    facts = read_run_json(path)
    began = float(facts["start_seconds"])
    if not math.isfinite(began):
        raise ValueError("start_seconds is no time")
    sensors = [sensor_from_json(data) for data in facts.get("sensors") or ()]
    host = facts.get("host")
    state = state_of(path, facts)
    summary, why = _summary(path, facts, state)
    known: dict[str, Any] = {}
    if summary is not None:
        try:
            known = _of_summary(summary, sensors)
        except UNREADABLE as error:
            why = say(
                "{file} is of another program: {kind}: {error}", file=SUMMARY, kind=type(error).__name__, error=error
            )
    return RunEntry(
        path=path,
        start_seconds=began,
        host=str(host.get("name") or "") if isinstance(host, Mapping) else "",
        simulated=is_simulated(facts) or bool(summary and summary.get("simulated")),
        state=state,
        facts=facts_of(facts, sensors),
        why_no_figures=why,
        sensors={sensor.id: sensor for sensor in sensors if is_heated(sensor)},
        **{"verdict": "", **known},
    )


def _summary(path: Path, facts: Mapping[str, Any], state: str) -> tuple[Mapping[str, Any] | None, str]:
    """The run's own conclusions, if they are still those that it was sealed with; else why not."""
    sums = facts.get("sha256")
    if state == "recording":
        return None, say("it is still being recorded")
    if state != "finished":
        return None, say("it is not finished: {state}", state=STATES.get(state, state))
    lasted = lengths_of(facts)
    cut = why_not_whole(lasted, plan_of(facts), [name for name in NEEDED if name in lasted])
    if cut:
        return None, joined("; ", cut)
    if not isinstance(sums, Mapping):
        return None, say("it was never sealed, so whether it was changed is not known")
    file = path / SUMMARY
    if SUMMARY not in sums:
        return None, (
            say("{file}: came after the run was sealed", file=SUMMARY) if file.exists() else say("it was not judged")
        )
    try:
        if sha256(file) != sums[SUMMARY]:
            return None, say("{file}: changed after the run was sealed", file=SUMMARY)
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None, say("{file}: was there when the run was sealed and is gone", file=SUMMARY)
    except OSError as error:
        return None, say("{file}: cannot be read: {error}", file=SUMMARY, error=error.strerror or error)
    except ValueError as error:
        return None, say("{file}: damaged: {error}", file=SUMMARY, error=error)
    return (data, "") if isinstance(data, dict) else (None, say("{file}: damaged: no object in it", file=SUMMARY))


def _of_summary(summary: Mapping[str, Any], sensors: Sequence[Sensor]) -> dict[str, Any]:
    findings = [one for one in summary.get("findings") or () if isinstance(one, Mapping)]
    by_name = {(str(one.get("check")), str(one.get("subject"))): one for one in findings}
    outcomes = {str(one.get("outcome")) for one in findings}
    against = summary.get("against")
    told: Mapping[str, Any] = against if isinstance(against, Mapping) else {}
    limit: Mapping[str, Any] = next((one for one in summary.get("limits") or () if one.get("name") == "drift_most"), {})
    devices = {sensor.id: sensor.device for sensor in sensors}
    return {
        "verdict": _verdict(outcomes),
        "points": {
            str(sensor): _point(str(sensor), figures, by_name, devices.get(str(sensor), str(sensor).partition(".")[0]))
            for sensor, figures in (summary.get("figures") or {}).items()
        },
        "against": str(told.get("run") or ""),
        "against_why": "; ".join(map(str, told.get("why") or ())),
        "limit_celsius": _number(limit.get("value")),
        "limit_origin": str(limit.get("origin") or ""),
    }


def _verdict(outcomes: set[str]) -> str:
    if "failed" in outcomes:
        return "failed"
    return "passed" if "passed" in outcomes and not outcomes & {"inconclusive", "blocked"} else "inconclusive"


def _point(
    sensor: str, figures: Sequence[Mapping[str, Any]], found: Mapping[tuple[str, str], Mapping[str, Any]], device: str
) -> Point:
    known: dict[str, Figure] = {}
    for told in figures:
        name = str(told.get("name"))
        if name in ("rise", "resistance") and name not in known:
            known[name] = _figure(name, told)
    drift = str((found.get(("drift", sensor)) or {}).get("outcome") or "")
    why = _why_unknown(sensor, device, found)
    rise, resistance = known.get("rise"), known.get("resistance")
    if rise is None or rise.value is None:
        why = (rise.reason if rise is not None else "") or why or say("no figure of it")
    return Point(
        rise_celsius=None if why or rise is None else rise.value,
        resistance=None if why or resistance is None else resistance.value,
        why=why,
        figures=known,
        drift_outcome=drift if drift in ("passed", "failed", "inconclusive") else "",
    )


def _why_unknown(sensor: str, device: str, found: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Why the figures of a sensor are no values: what was not measured is not drawn as if it were.

    A failed drift is a value: the sensor was that hot already, whatever was still to come.
    """
    own = {check: found[check, sensor] for check in OWN_VERDICT if (check, sensor) in found}
    outcomes = {check: str(one.get("outcome")) for check, one in own.items()}
    if outcomes.get("drift") == "failed":
        return ""
    for check, outcome in outcomes.items():
        if outcome in ("inconclusive", "blocked"):
            return _said(check, own[check])
    if _DECIDED & set(outcomes.values()):
        return ""
    for check, subject in (*((check, sensor) for check in GROUND), ("load", device)):
        one = found.get((check, subject))
        outcome = str((one or {}).get("outcome"))
        if one is not None and (
            outcome in ("inconclusive", "blocked") or (check != "baseline" and outcome == "failed")
        ):
            return _said(check, one)
    return ""


def _said(check: str, finding: Mapping[str, Any]) -> str:
    return say("{name}: {text}", name=check, text=told_finding(finding, lambda text: text).get("seen"))


def _figure(name: str, told: Mapping[str, Any]) -> Figure:
    detail = told.get("detail")
    value = _number(told.get("value"))
    return Figure(
        name=name,
        value=value,
        unit=str(told.get("unit") or ""),
        uncertainty=_number(told.get("uncertainty")) if value is not None else None,
        reason=str(told.get("reason") or "") or (say("no value") if value is None else ""),
        detail=dict(detail) if isinstance(detail, Mapping) else {},
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
