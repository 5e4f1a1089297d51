from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import Earlier
from pytest_thermal.model import Missing, Outcome
from pytest_thermal.recording import MissingStretch, Recording
from tests.analysis.signals import EPOCH, Floats, Plan, with_gap
from tests.findings.recordings import (
    CAP,
    GPU,
    PLAN,
    PUMP,
    USE,
    changed,
    healthy,
    judged,
    without_phase,
)


def test_a_whole_recording() -> None:
    found = judged(healthy()).finding("coverage", GPU)
    assert found.outcome is Outcome.PASSED
    assert found.message == f"coverage: {GPU}: at least 100.0% of its readings in every phase, longest gap 5 s"


def holed(reason: Missing | None) -> Recording:
    run = changed(healthy(), GPU, lambda values, plan: with_gap(values, plan.times, 600.0, 60.0))
    if reason is None:
        return run
    why = MissingStretch(time_seconds=EPOCH + 600, sensor_id=GPU, reason=reason, detail="as the tool says")
    return replace(run, missing=(why,))


SEEN = (
    f"{GPU} has holes in steady: no reading for 65 s, 13 ticks (at least 95 % (default), no gap over 5 ticks (default))"
)


@pytest.mark.parametrize("reason", [Missing.DEVICE_ERROR, Missing.ABSENT, Missing.UNREADABLE, Missing.IMPLAUSIBLE])
def test_a_hole_that_the_device_is_to_blame_for_fails(reason: Missing) -> None:
    found = judged(holed(reason)).finding("coverage", GPU)
    assert found.outcome is Outcome.FAILED
    assert found.message.splitlines() == [
        f"coverage: {SEEN}",
        f"likely: {reason}: as the tool says",
        "try: pytest --sensors; the run's missing.jsonl says why each reading is missing",
    ]


@pytest.mark.parametrize("reason", [Missing.TIMEOUT, None])
def test_a_hole_because_nothing_was_sampled_leaves_the_question_open(reason: Missing | None) -> None:
    found = judged(holed(reason)).finding("coverage", GPU)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.message.splitlines()[0] == f"inconclusive: coverage: {SEEN}"


def test_a_device_that_is_gone_since_before_a_phase_fails() -> None:
    run = changed(healthy(), GPU, lambda values, plan: with_gap(values, plan.times, 2800.0, 1e9))
    gone = MissingStretch(time_seconds=EPOCH + 2800, sensor_id=GPU, reason=Missing.ABSENT, detail="")
    steady_complete = replace(run.phases[2], end_seconds=EPOCH + 2799)
    phases = (*run.phases[:2], steady_complete, run.phases[3])
    found = judged(replace(run, missing=(gone,), phases=phases)).finding("coverage", GPU)
    assert found.outcome is Outcome.FAILED
    assert "has holes in cooldown: 0 of 120 readings are there, 0.0%" in found.seen
    assert "likely: absent" in found.message


def test_holes_in_several_phases() -> None:
    def every_tenth(values: Floats, _: Plan) -> Floats:
        values[::10] = np.nan
        return values

    found = judged(changed(healthy(), USE, every_tenth)).finding("coverage", USE)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "has holes in baseline: 54 of 60 readings are there, 90.0%; also in ramp, steady, cooldown" in found.seen


@pytest.mark.parametrize(
    "spoil, said",
    [
        ((300, 120.0), "1 spike"),
        ((300, 0.0), "1 dropout"),
    ],
)
def test_what_no_device_does(spoil: tuple[int, float], said: str) -> None:
    def put(values: Floats, _: Plan) -> Floats:
        values[spoil[0]] = spoil[1]
        return values

    judgement = judged(changed(healthy(), GPU, put))
    found = judgement.finding("coverage", GPU)
    assert found.outcome is Outcome.FAILED
    assert found.message.splitlines()[0] == f"coverage: {GPU} cannot be believed: {said}"
    assert judgement.finding("threshold", GPU).outcome is Outcome.PASSED  # it is no peak either


def test_a_stuck_sensor_passes_nothing() -> None:
    since = int(PLAN.times.searchsorted(PLAN.load_on + 1000))
    run = changed(healthy(), GPU, lambda values, _: np.where(np.arange(values.size) >= since, values[since], values))
    judgement = judged(run, earlier=Earlier(name="latest", recording=healthy(seed=9), why=()))
    found = judgement.finding("coverage", GPU)
    assert found.outcome is Outcome.FAILED
    assert "cannot be believed: stood at" in found.seen
    for check in ("baseline", "threshold", "rise", "settled", "rebound", "drift"):
        assert judgement.finding(check, GPU).outcome is Outcome.INCONCLUSIVE
        assert f"{GPU} is stuck" in judgement.finding(check, GPU).message


def test_constant_readings_of_a_counter_or_a_pump_are_no_fault() -> None:
    run = changed(healthy(), PUMP, lambda values, _: np.full(values.size, 2800.0))
    assert judged(run).finding("coverage", PUMP).outcome is Outcome.PASSED
    assert judged(run).finding("coverage", CAP).outcome is Outcome.PASSED


def test_what_a_device_does_not_offer_is_skipped_and_what_failed_is_not() -> None:
    run = changed(healthy(), CAP, lambda values, _: np.full(values.size, np.nan))
    absent = MissingStretch(time_seconds=EPOCH, sensor_id=CAP, reason=Missing.NOT_OFFERED, detail="N/A")
    found = judged(replace(run, missing=(absent,))).finding("coverage", CAP)
    assert found.outcome is Outcome.SKIPPED
    assert found.seen == f"{CAP}: not offered by the device: not offered: N/A"
    assert judged(run).finding("coverage", CAP).outcome is Outcome.INCONCLUSIVE
    broken = replace(absent, reason=Missing.DEVICE_ERROR)
    assert judged(replace(run, missing=(broken,))).finding("coverage", CAP).outcome is Outcome.FAILED


def test_a_run_without_its_end_is_not_covered() -> None:
    found = judged(without_phase(healthy(), "cooldown")).finding("coverage", GPU)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.message.splitlines()[0] == "inconclusive: coverage: the run has no cooldown"


def test_a_log_from_elsewhere_may_end_with_the_load() -> None:
    run = replace(without_phase(healthy(), "cooldown"), state="foreign")
    assert judged(run).finding("coverage", GPU).outcome is Outcome.PASSED
