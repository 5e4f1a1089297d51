"""Whether a phase was gone through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import stretch
from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.recording import Event, Labels, Recording
from tests.findings.recordings import FACTS, GPU, PLAN, USE, changed, healthy, judged, without_phase

STEADY = PLAN.phases["steady"]


def with_event(kind: str, **detail: str) -> Recording:
    return replace(healthy(), events=(Event(time_seconds=STEADY.start_seconds + 60, kind=kind, detail=detail),))


def steady(run: Recording) -> Finding:
    return phase_finding(run, "steady")


def phased(run: Recording) -> Recording:
    """Requests as the load writes them: each with the phase that it began in."""
    rows = run.requests
    assert rows is not None
    names = Labels.of("ramp" if start < STEADY.start_seconds else "steady" for start in rows.start_seconds)
    return replace(run, requests=replace(rows, phase=names))


def test_a_phase_that_lasted_as_planned() -> None:
    found = steady(phased(healthy()))
    assert found.outcome is Outcome.PASSED
    assert found.message == "phase: steady lasted for 40 min as planned, 9,592 requests"
    assert found.subject == "steady"


def test_a_phase_that_was_cut_short_or_never_came() -> None:
    run = healthy()
    short = replace(STEADY, end_seconds=STEADY.start_seconds + 600)
    cut = replace(run, state="cut off", phases=(*run.phases[:2], short))
    found = steady(cut)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.message.startswith("inconclusive: phase: steady lasted for 10 min of 40 min: the recorder died")
    missing = phase_finding(cut, "cooldown")
    assert missing.outcome is Outcome.INCONCLUSIVE
    assert missing.message.startswith("inconclusive: phase: cooldown was not recorded: the recorder died")
    assert phase_finding(run, "limit").outcome is Outcome.SKIPPED
    assert phase_finding(without_phase(replace(run, facts={}), "cooldown"), "cooldown").outcome is Outcome.SKIPPED


def test_what_took_the_load_off_fails_the_phase() -> None:
    found = steady(with_event("critical", text="gpu0 is at 96 °C, above the critical threshold of 95 °C"))
    assert found.outcome is Outcome.FAILED
    assert "but the load was taken off: gpu0 is at 96 °C" in found.seen
    lost = steady(with_event("load", what="lost", load="cpu", text="the cpu load (stress-ng) was lost: exit code 2"))
    assert lost.outcome is Outcome.FAILED
    assert "but the cpu load (stress-ng) was lost: exit code 2" in lost.seen
    assert steady(with_event("load", what="started", load="cpu")).outcome is Outcome.PASSED
    assert phase_finding(with_event("critical", text="x"), "baseline").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "what, likely, advice",
    [("pump", "the pump lost its power", "its connector"), ("leak", "coolant has come out", "valves"), ("", "", "")],
)
def test_what_was_wrong_with_the_loop_is_told_as_that(what: str, likely: str, advice: str) -> None:
    run = with_event("critical", what=what, text="x0.y stands, after 2800 rpm")
    found = steady(run)
    assert found.outcome is Outcome.FAILED
    assert found.likely.startswith(likely or "the cooling does not carry this load")
    assert advice in found.advice
    # What the lack of a load does to other figures is put down to it, and to nothing else.
    idle = judged(changed(run, USE, lambda values, _: values * 0.3)).finding("rise", GPU)
    assert idle.outcome is Outcome.INCONCLUSIVE
    assert idle.likely == "the load was taken off: x0.y stands, after 2800 rpm"
    rows = run.requests
    assert rows is not None
    early = rows.start_seconds < STEADY.start_seconds + 60
    fewer = replace(rows, status=np.where(early, 200, 503), error=Labels.of("" if one else "503" for one in early))
    held = judged(replace(run, requests=fewer)).finding("throughput", "inference")
    assert held.outcome is Outcome.INCONCLUSIVE
    assert held.seen.endswith("since the load was taken off")


def failing(share: float) -> Recording:
    run = phased(healthy())
    rows = run.requests
    assert rows is not None
    bad = np.arange(len(rows)) < share * len(rows)
    return replace(run, requests=replace(rows, error=Labels.of("status 503" if one else "" for one in bad)))


def test_a_load_of_errors_is_none() -> None:
    found = steady(failing(0.8))
    assert found.outcome is Outcome.FAILED
    assert "requests failed: status 503" in found.seen
    assert found.evidence["most_frequent_error"] == "status 503"
    some = steady(failing(0.2))
    assert some.outcome is Outcome.PASSED
    assert some.warnings[0].endswith("requests failed: status 503")


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "critical", "text": "gpu0 is at 96 °C, above the critical threshold of 95 °C"},
        {"kind": "load", "what": "lost", "load": "cpu", "text": "the cpu load (stress-ng) was lost: exit code 2"},
    ],
)
def test_a_load_that_was_gone_before_the_phase_was_not_on_in_it(event: dict[str, str]) -> None:
    detail = {name: value for name, value in event.items() if name != "kind"}
    ramp = PLAN.phases["ramp"]
    early = Event(time_seconds=ramp.start_seconds + 1, kind=event["kind"], detail=detail)
    run = replace(phased(healthy()), events=(early,))
    assert [phase_finding(run, name).outcome for name in ("baseline", "ramp", "steady", "cooldown")] == [
        Outcome.PASSED,
        Outcome.FAILED,
        Outcome.FAILED,
        Outcome.PASSED,
    ]


def test_a_load_that_was_planned_and_never_made_leaves_its_phases_open() -> None:
    run = phased(healthy())
    facts = {**run.facts, "load": {"mode": "mixed"}, "works": [{"kind": "inference", "tool": "closed loop of 8"}]}
    found = steady(replace(run, facts=facts))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "but without the cpu load that was planned" in found.message
    assert phase_finding(replace(run, facts=facts), "cooldown").outcome is Outcome.PASSED


def test_evidence_that_was_changed_leaves_every_phase_open() -> None:
    run = replace(phased(healthy()), changed=("requests.csv: changed after the run was sealed",))
    found = steady(run)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "requests.csv: changed after the run was sealed" in found.message


def test_a_steady_phase_without_an_answer_was_no_load() -> None:
    run = phased(healthy())
    assert run.requests is not None
    ramp = replace(run, requests=replace(run.requests, phase=Labels.of("ramp" for _ in run.requests.phase)))
    for silent in (ramp, replace(run, requests=None)):
        found = steady(replace(silent, facts={**silent.facts, "load": {"mode": "mixed"}}))
        assert found.outcome is Outcome.INCONCLUSIVE
        assert "not one inference request ended in it" in found.message
    assert steady(replace(run, requests=None, facts={**run.facts, "load": {"mode": "cpu"}, "works": []})).outcome is (
        Outcome.PASSED
    )


def test_lengths_are_told_in_wall_time() -> None:
    run = replace(healthy(), facts={**FACTS, "time_scale": 20.0, "simulated": True})
    found = steady(stretch(run, 20.0))
    assert found.outcome is Outcome.PASSED
    assert found.seen.startswith("steady lasted for 40 min as planned")
    assert found.evidence["simulated"] is True
