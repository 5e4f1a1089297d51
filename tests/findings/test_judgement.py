"""A whole judgement: nothing that was not measured passes, and everything can be written down."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import CHECKS, Earlier, Judgement
from pytest_thermal.model import Outcome
from pytest_thermal.recording import Recording
from tests.analysis.many_runs import FAULTS, some_loop, some_plan
from tests.analysis.many_runs import healthy as healthy_loop_run
from tests.analysis.signals import LoopRun, Plan, with_gap
from tests.findings.recordings import (
    CPU,
    FACTS,
    GPU,
    HOT,
    LEAK,
    PLAN,
    PUMP,
    USE,
    WATTS,
    changed,
    healthy,
    judged,
    loaded,
    made_series,
    without,
    without_phase,
)

PASSED, OPEN = Outcome.PASSED, Outcome.INCONCLUSIVE
EARLIER = Earlier(name="latest", recording=healthy(seed=9), why=())

PROOF = (USE, WATTS)
"""Either shows the load; without both nothing does."""
NEEDS: dict[str, tuple[str, tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "coverage": (GPU, ((GPU,),), ("baseline", "ramp", "steady", "cooldown")),
    "baseline": (GPU, ((GPU,), PROOF), ("baseline",)),
    "threshold": (GPU, ((GPU,), PROOF), ("steady",)),
    "rise": (GPU, ((GPU,), PROOF), ("baseline", "steady")),
    "settled": (GPU, ((GPU,), PROOF), ("steady",)),
    "load": ("gpu0", (PROOF,), ("steady",)),
    "throttling": ("gpu0", ((HOT,), PROOF), ("steady",)),
    "pump": (PUMP, ((PUMP,),), ("baseline", "steady")),
    "leak": (LEAK, ((LEAK,),), ("baseline", "ramp", "steady", "cooldown")),
    "rebound": (GPU, ((GPU,),), ("steady", "cooldown")),
    "drift": (GPU, ((GPU,), PROOF), ("baseline", "steady")),
    "throughput": ("inference", (PROOF,), ("steady",)),
}
"""Check → a subject, sensors of which all of one group are needed, and phases."""
SENSORS = [(check, group) for check, (_, groups, _) in NEEDS.items() for group in groups]
PHASES = [(check, phase) for check, (_, _, phases) in NEEDS.items() for phase in phases]
STRETCHES = [(check, group, phase) for check, group in SENSORS for phase in NEEDS[check][2]]


def outcome(check: str, recording: Recording) -> Outcome:
    return judged(recording, earlier=EARLIER).finding(check, NEEDS[check][0]).outcome


@pytest.mark.parametrize("check", CHECKS)
def test_a_healthy_bench_passes_each_check(check: str) -> None:
    assert outcome(check, healthy()) is PASSED


@pytest.mark.parametrize("check, group", SENSORS)
def test_without_a_sensor_that_it_needs_nothing_passes(check: str, group: tuple[str, ...]) -> None:
    assert outcome(check, without(healthy(), *group)) is not PASSED
    blind = healthy()
    for name in group:
        blind = changed(blind, name, lambda values, _: np.full(values.size, np.nan))
    assert outcome(check, blind) is not PASSED


@pytest.mark.parametrize("check, phase", PHASES)
def test_without_a_phase_that_it_needs_nothing_passes(check: str, phase: str) -> None:
    found = judged(without_phase(healthy(), phase), earlier=EARLIER).finding(check, NEEDS[check][0])
    assert found.outcome is OPEN
    assert found.message.splitlines()[0] == f"inconclusive: {check}: the run has no {phase}"


@pytest.mark.parametrize("check, group, phase", STRETCHES)
def test_with_a_hole_where_it_looks_nothing_passes(check: str, group: tuple[str, ...], phase: str) -> None:
    run = healthy()
    start = PLAN.phases[phase].start_seconds - PLAN.times[0] + 30
    for name in group:
        run = changed(run, name, lambda values, plan: with_gap(values, plan.times, start, 60.0))
    assert outcome(check, run) is not PASSED


@pytest.mark.parametrize("check", CHECKS)
def test_a_run_that_never_began_passes_nothing(check: str) -> None:
    assert outcome(check, replace(healthy(), phases=(), state="prepared", requests=None)) is not PASSED
    empty = replace(healthy(), phases=(), series={}, requests=None)
    found = judged(empty).finding(check, NEEDS[check][0])
    assert found.outcome is not PASSED


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "throughput"])
def test_a_subject_that_the_run_has_not_is_an_open_question(check: str) -> None:
    found = judged(healthy(), earlier=EARLIER).finding(check, "npu7.temperature_celsius")
    assert found.outcome in {OPEN, Outcome.SKIPPED}


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(KeyError, match="no thermal check 'raise'"):
        judged(healthy()).finding("raise", GPU)
    with pytest.raises(KeyError, match="no thermal check 'raise'"):
        judged(healthy()).subjects("raise")


def test_messages_are_for_people() -> None:
    runs = [healthy(), without(healthy(), *PROOF), changed(healthy(), GPU, lambda values, _: values + 25.0)]
    for run in runs:
        for found in judged(run, earlier=EARLIER).findings():
            assert found.layer == found.check
            assert 0 < len(found.seen) <= 240, found.seen
            assert not found.seen.endswith(".")
            if found.outcome is Outcome.FAILED:
                assert found.likely, found
                assert found.advice, found


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 61, 90])
def test_however_few_readings_there_are_something_is_said_of_them(count: int) -> None:
    run = healthy()
    series = {
        name: replace(one, time_seconds=one.time_seconds[:count], values=one.values[:count])
        for name, one in run.series.items()
    }
    for phases in (run.phases, run.phases[: count % 5], ()):
        cut = replace(run, series=series, phases=phases, state="cut off")
        judgement = judged(cut, earlier=EARLIER)
        assert all(found.seen for found in judgement.findings())
        assert json.dumps(judgement.summary(), allow_nan=False)
        assert judgement.finding("rise", GPU).outcome is not PASSED


def test_each_finding_is_made_once() -> None:
    judgement = judged(healthy())
    assert judgement.finding("rise", GPU) is judgement.finding("rise", GPU)


def test_the_summary_is_plain_json_with_origins() -> None:
    judgement = judged(healthy(), earlier=EARLIER)
    text = json.dumps(judgement.summary(), allow_nan=False)
    read = json.loads(text)
    assert {limit["name"]: limit["origin"] for limit in read["limits"]}["rise_gpu_most"] == "default"
    figures = {figure["name"]: figure for figure in read["figures"][GPU]}
    assert figures["rise"]["value"] == pytest.approx(34.1, abs=0.1)
    assert figures["resistance"]["unit"] == "celsius/watt"
    assert figures["resistance"]["value"] == pytest.approx(0.061, abs=0.001)
    rises = [found for found in read["findings"] if found["check"] == "rise"]
    assert [found["outcome"] for found in rises] == ["passed", "passed"]
    assert read["against"] == {"asked": "latest", "run": "20270115T080000Z_lab-7", "why": []}
    assert [phase["name"] for phase in read["phases"]] == ["baseline", "ramp", "steady", "cooldown"]
    assert read["simulated"] is False


def test_a_simulated_bench_is_called_so_in_every_finding() -> None:
    judgement = judged(healthy(), simulated=True)
    assert judgement.summary()["simulated"] is True
    assert all(found.evidence["simulated"] is True for found in judgement.findings() if found.outcome is PASSED)


def test_what_cut_a_run_short_is_told() -> None:
    run = replace(healthy(), state="cut off")
    short = replace(run.phases[2], end_seconds=run.phases[2].start_seconds + 1200.0)
    judgement = judged(replace(run, phases=(*run.phases[:2], short)))
    assert judgement.warnings() == (
        "the run was cut off: it is judged as far as it was recorded",
        "steady was cut short: 20 min of 40 min",
    )


def test_times_of_a_fast_loop_are_judged_as_those_of_a_real_one() -> None:
    run = healthy()
    start = float(PLAN.times[0])
    quick = replace(
        run,
        series={
            name: replace(one, time_seconds=start + (one.time_seconds - start) / 20, period_seconds=0.25)
            for name, one in run.series.items()
        },
        phases=tuple(
            replace(
                phase,
                start_seconds=start + (phase.start_seconds - start) / 20,
                end_seconds=start + (phase.end_seconds - start) / 20,
            )
            for phase in run.phases
        ),
        requests=None,
        facts={**FACTS, "plan": {"seconds": {"steady": 120.0}}},
    )
    slow = judged(quick, time_scale=20.0)
    assert slow.warnings() == ()
    for check in ("baseline", "threshold", "rise", "settled", "rebound"):
        assert slow.finding(check, GPU).outcome is PASSED
        assert slow.finding(check, GPU).seen == judged(run).finding(check, GPU).seen


# ------------------------------------------------------------------------------------------- healthy and faulty runs


def of(run: LoopRun, plan: Plan) -> Recording:
    use = np.where(loaded(plan), 99.0, 0.0)
    series = {
        GPU: made_series(GPU, run.temperature.values, plan),
        WATTS: made_series(WATTS, run.power.values, plan),
        USE: made_series(USE, use, plan),
    }
    return replace(healthy(), series=series, phases=run.phases, requests=None, facts={"bench": "lab-7"})


def verdicts(judgement: Judgement) -> set[Outcome]:
    return {found.outcome for found in judgement.findings()} - {Outcome.SKIPPED}


def test_healthy_benches_do_not_fail() -> None:
    rng = np.random.default_rng(301)
    whole = 0
    for _ in range(25):
        plan = some_plan(rng)
        judgement = judged(of(healthy_loop_run(rng, plan, some_loop(rng)), plan))
        failed = [found.message for found in judgement.findings() if found.outcome is Outcome.FAILED]
        assert not failed
        whole += verdicts(judgement) == {PASSED}
    assert whole >= 22  # a short baseline may have lost a reading or two too many


@pytest.mark.parametrize("fault", FAULTS)
def test_no_faulty_bench_passes_whole(fault: str) -> None:
    rng = np.random.default_rng(302)
    for _ in range(4):
        plan = some_plan(rng)
        found = verdicts(judged(of(FAULTS[fault](rng, plan, some_loop(rng)), plan)))
        assert found - {PASSED}


def test_the_devices_of_a_bench_are_judged_apart() -> None:
    run = changed(healthy(), GPU, lambda values, _: values + 25.0)
    judgement = judged(run)
    assert judgement.finding("threshold", GPU).outcome is Outcome.FAILED
    assert judgement.finding("threshold", CPU).outcome is PASSED
