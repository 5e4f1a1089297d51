"""Whether a phase was gone through: in full, under its load, with its requests answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pytest_thermal.findings.run_events import CRITICAL, LEAK, LOAD, LOST, PUMP, apart
from pytest_thermal.findings.run_facts import (
    BY_MODE,
    CUT_SHORT,
    is_simulated,
    planned_loads,
    planned_seconds,
    time_scale_of,
)
from pytest_thermal.findings.telling import span
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped, undecided
from pytest_thermal.model import Finding
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.said import first_part, joined, say
from pytest_thermal.model.series import Phase
from pytest_thermal.recording import Event, Recording

CHECK = "phase"
ANSWERED_PHASES = ("steady", "limit")
"""In the ramp the first answers may still be to come."""
_LIKELY: Mapping[object, str] = {
    PUMP: say("the pump lost its power, is blocked, or its control turned it off"),
    LEAK: say("coolant has come out of the loop; or the detector is wet with something else, or its cable is off"),
}
_ADVICE: Mapping[object, str] = {
    PUMP: say("look at its connector and its control, listen to it; do not load the machine before it turns"),
    LEAK: say(
        "power off what stands below, close the loop's valves, look for the drop; do not load the machine before"
    ),
}
MOST_FAILED = 0.5
"""Share of a phase's requests that may fail: with more, the load was none. Own criterion."""


def phase_finding(recording: Recording, name: str) -> Finding:
    """What became of a phase of a recording, whose times may be stretched already."""
    try:
        verdict = _judge(recording, name)
    except OpenError as error:
        verdict = undecided(error)
    evidence = {**verdict.evidence, "simulated": True} if is_simulated(recording.facts) else verdict.evidence
    return Finding(
        check=CHECK,
        layer=CHECK,
        subject=name,
        outcome=verdict.outcome,
        seen=say("{name} {seen}", name=name, seen=verdict.seen),
        likely=verdict.likely,
        advice=verdict.advice,
        evidence=evidence,
        warnings=verdict.warnings,
    )


def _judge(recording: Recording, name: str) -> Verdict:
    phase = next((phase for phase in recording.phases if phase.name == name), None)
    planned = planned_seconds(recording.facts, name)
    if phase is None:
        if planned is None:
            return skipped(say("is no phase of this run"))
        raise OpenError(
            say("was not recorded: {ended}", ended=_ended(recording)),
            likely=say("the run was broken or interrupted before it"),
            advice=say("events.jsonl of the run says what happened; run it again"),
        )
    scale = time_scale_of(recording.facts)
    lasted = phase.duration_seconds / scale
    if planned is not None and lasted < CUT_SHORT * planned:
        raise OpenError(
            say(
                "lasted for {lasted} of {planned}: {ended}",
                lasted=span(lasted),
                planned=span(planned),
                ended=_ended(recording),
            ),
            likely=say("the run was interrupted, or the machine went down"),
            advice=say("run it again; what was recorded can be replayed"),
        )
    requests = _requests(recording, name)
    said = say("lasted for {lasted}", lasted=span(lasted)) + ("" if planned is None else say(" as planned"))
    evidence = {"seconds": lasted, "planned_seconds": planned, **requests}
    if recording.changed:
        raise OpenError(
            say("{said}, but the run was changed since: {names}", said=said, names=joined("; ", recording.changed[:3])),
            likely=say("a file was edited, lost or added after the run had ended and was sealed"),
            advice=say("restore it from a backup, or run it again"),
        )
    # A load that was gone before a loaded phase began was not on in it either.
    stops = [event for event in recording.events if event.kind == CRITICAL and _reaches(event, phase)]
    if stops:
        return failed(
            say("{said}, but the load was taken off: {text}", said=said, text=_text(stops[0])),
            likely=_LIKELY.get(stops[0].detail.get("what"), say("the cooling does not carry this load")),
            advice=_ADVICE.get(
                stops[0].detail.get("what"),
                say("look at the curves up to that moment; raise critical_threshold_* only if the device allows more"),
            ),
            evidence=evidence,
        )
    lost = [event for event in recording.events if _is_loss(event) and _reaches(event, phase)]
    if lost:
        return failed(
            say("{said}, but {text}", said=said, text=_text(lost[0])),
            likely=say("its tool failed, ran out of memory, or somebody ended it"),
            advice=say("run that tool by hand; dmesg says whether the kernel ended it"),
            evidence=evidence,
        )
    total, bad = requests.get("requests", 0), requests.get("failed_requests", 0)
    if total and bad > MOST_FAILED * total:
        return failed(
            say(
                "{said}, but {bad:,} of its {total:,} requests failed: {most_frequent_error}",
                said=said,
                bad=bad,
                total=total,
                most_frequent_error=requests["most_frequent_error"],
            ),
            likely=say("the gateway, its key or its quota; such a load is none"),
            advice=say("pytest suites/supernode says at which layer"),
            evidence=evidence,
        )
    missing = sorted((BY_MODE.get(_mode(recording), frozenset()) - _started(recording)) if _started(recording) else ())
    if missing and name in LOADED_PHASES:
        raise OpenError(
            say("{said}, but without the {names} load that was planned", said=said, names=joined(" and ", missing)),
            likely=say("its tool is not installed, or there is nothing here that it could load"),
            advice=say("the run's events.jsonl says why; another [stress] mode where it is not wanted"),
        )
    if not total and name in ANSWERED_PHASES and "inference" in (planned_loads(recording.facts) or ()):
        raise OpenError(
            say("{said}, but not one inference request ended in it", said=said),
            likely=say("the load generator did not come up, or the gateway answers slower than the phase is long"),
            advice=say("events.jsonl of the run has the load's last words; pytest suites/supernode tries the gateway"),
        )
    if total:
        said += say(", {total:,} requests", total=total)
    note = (
        say(
            "{bad:,} of {total:,} requests failed: {most_frequent_error}",
            bad=bad,
            total=total,
            most_frequent_error=requests["most_frequent_error"],
        )
        if bad
        else ""
    )
    return passed(said, warnings=(*((note,) if note else ()), *apart(recording, name)), evidence=evidence)


def _requests(recording: Recording, name: str) -> dict[str, Any]:
    """Requests of a phase, those that failed, and why most of them did. What the load's end cut off did not fail."""
    requests = recording.requests
    if requests is None:
        return {}
    of_phase = requests.phase.where(lambda phase: phase == name)
    of_phase &= ~requests.error.where(lambda error: error.startswith("cancelled"))
    total = int(np.count_nonzero(of_phase))
    counts = requests.error.counts(of_phase & requests.error.where(bool))
    if not total:
        return {}
    found: dict[str, Any] = {"requests": total, "failed_requests": sum(counts.values())}
    if counts:
        found["most_frequent_error"] = next(iter(counts))
    return found


def _ended(recording: Recording) -> str:
    because = str(recording.facts.get("ended_because") or "").strip()
    state: Mapping[str, str] = {"cut off": say("the recorder died"), "recording": say("the recording goes on")}
    return because or state.get(recording.state, say("the run is {state}", state=recording.state))


def _mode(recording: Recording) -> str:
    load = recording.facts.get("load")
    return str(load.get("mode")) if isinstance(load, Mapping) else ""


def _started(recording: Recording) -> frozenset[str]:
    works = recording.facts.get("works")
    return frozenset(str(work.get("kind")) for work in works or () if isinstance(work, Mapping))


def _is_loss(event: Event) -> bool:
    return event.kind == LOAD and event.detail.get("what") == LOST


def _reaches(event: Event, phase: Phase) -> bool:
    if phase.name in LOADED_PHASES:
        return event.time_seconds < phase.end_seconds
    return phase.start_seconds <= event.time_seconds < phase.end_seconds


def _text(event: Event) -> str:
    text = event.detail.get("text")
    return first_part(text, "\n") if isinstance(text, str) and text else event.kind
