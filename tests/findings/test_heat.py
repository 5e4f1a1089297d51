"""Baseline, threshold, rise and settled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.findings import limits_for
from pytest_thermal.model import Outcome
from pytest_thermal.recording import Event
from tests.analysis.signals import HEALTHY, Floats, Plan, bubbles, with_gap
from tests.findings.recordings import (
    CPU,
    CPU_USE,
    GPU,
    MEMORY,
    PLAN,
    USE,
    WATTS,
    changed,
    healthy,
    judged,
    limits,
    loaded,
    made_series,
    with_limits,
    without,
    without_phase,
)

PASSED, FAILED, OPEN, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.SKIPPED


def first_line(message: str) -> str:
    return message.splitlines()[0]


def idle(values: Floats, _: Plan) -> Floats:
    return np.zeros(values.size)


# ----------------------------------------------------------------------------------------------------------- baseline


def test_a_cold_settled_idle_baseline() -> None:
    found = judged(healthy()).finding("baseline", GPU)
    assert found.outcome is PASSED
    assert found.message == f"baseline: {GPU} stands at 29.8 ± 0.2 °C at idle (utilisation 0 %), settled"


def test_a_baseline_under_load() -> None:
    run = changed(healthy(), USE, lambda values, _: np.maximum(values, 35.0))
    judgement = judged(run)
    found = judgement.finding("baseline", GPU)
    assert found.outcome is FAILED
    assert first_line(found.message) == (
        "baseline: gpu0 was not idle in the baseline: utilisation 35 %, more than 10 % (default)"
    )
    built_on_it = judgement.finding("rise", GPU)
    assert built_on_it.outcome is OPEN
    assert first_line(built_on_it.message) == (
        "inconclusive: rise: gpu0 was not idle in the baseline: utilisation 35 %"
    )
    assert judgement.finding("settled", GPU).outcome is PASSED  # it is built on steady alone


def test_a_baseline_that_still_moves() -> None:
    def cooling(values: Floats, plan: Plan) -> Floats:
        before = plan.times < plan.load_on
        return np.where(before, np.round(values + (plan.load_on - plan.times) / 30), values)

    judgement = judged(changed(healthy(), GPU, cooling))
    found = judgement.finding("baseline", GPU)
    assert found.outcome is FAILED
    assert found.seen.startswith(f"{GPU} is not settled in the baseline: it moves by -2.0")
    assert judgement.finding("rise", GPU).outcome is OPEN


def test_a_warm_supply() -> None:
    judgement = judged(healthy(loop=replace(HEALTHY, supply=50.0)))
    found = judgement.finding("baseline", GPU)
    assert found.outcome is FAILED
    assert found.message.splitlines() == [
        f"baseline: {GPU} stands at 53.8 ± 0.2 °C at idle, more than 50 °C (default)",
        "likely: supply too warm: idle is 53.8 °C already, and the rise of 34.1 °C is right",
        "try: cool the room or the facility water, and look for warm air that comes back in",
    ]
    assert judgement.finding("rise", GPU).outcome is PASSED


def test_idleness_that_only_power_shows() -> None:
    run = without(healthy(), USE)
    assert judged(run).finding("baseline", GPU).seen.endswith("at idle (57 W, in steady 620 W), settled")
    warm = changed(run, WATTS, lambda values, plan: np.where(loaded(plan), values, 250.0))
    assert judged(warm).finding("baseline", GPU).outcome is OPEN
    neither = judged(without(run, WATTS)).finding("baseline", GPU)
    assert neither.outcome is OPEN
    seen = "gpu0 is not known to have been idle in the baseline: utilisation: not measured; power: not measured"
    assert neither.message.splitlines() == [
        f"inconclusive: baseline: {seen}",
        "try: log gpu0.utilization_percent (nvidia-smi: utilization.gpu) or gpu0.power_watts beside the temperature",
    ]


# ---------------------------------------------------------------------------------------------------------- threshold


def test_a_peak_below_its_limit() -> None:
    found = judged(healthy()).finding("threshold", GPU)
    assert found.outcome is PASSED
    assert found.message == f"threshold: {GPU} reached 65.0 °C in steady, at most 83 °C (default)"


def test_a_peak_above_its_limit_fails_whatever_else_is_not_known() -> None:
    run = changed(healthy(), GPU, lambda values, _: values + 21.0)
    for given in (run, without(run, USE, WATTS), without_phase(run, "baseline", "ramp", "steady", "cooldown")):
        found = judged(given).finding("threshold", GPU)
        assert found.outcome is FAILED
        assert first_line(found.message).startswith(f"threshold: {GPU} reached 86.0 °C")
    found = judged(run).finding("threshold", GPU)
    above = int((run.series[GPU].values > 83.0).sum()) * 5
    assert found.evidence["above_seconds"] == above
    assert (
        f"reached 86.0 °C in steady, more than 83 °C (default), and was above it for {above / 60:.0f} min" in found.seen
    )


def test_the_devices_own_limit_is_named() -> None:
    found = judged(with_limits(healthy(), GPU, slowdown=60.0)).finding("threshold", GPU)
    assert found.outcome is FAILED
    assert "more than 60 °C (device (slowdown))" in found.seen
    assert found.evidence["limit_origin"] == "device (slowdown)"


def test_a_limit_that_the_device_tells_as_a_margin() -> None:
    run = healthy()
    left = made_series("gpu0.temperature_kelvin_margin", 62.0 - run.series[GPU].values)
    below = replace(run, series={**run.series, left.sensor.id: left})
    found = judged(below).finding("threshold", GPU)
    assert found.outcome is FAILED
    assert first_line(found.message) == (
        f"threshold: {GPU} reached 65.0 °C in steady, 3 K more than the device's own limit (its margin to it)"
    )
    assert judged(below).finding("threshold", MEMORY).outcome is PASSED
    at_it = changed(below, left.sensor.id, lambda values, _: values + 3.0)
    assert judged(at_it).finding("threshold", GPU).outcome is PASSED


def test_the_bench_files_limit_is_named() -> None:
    low = limits_for(Monitor(alert_threshold_cpu_celsius=60.0), origin=lambda setting: f"config.toml {setting}")
    found = judged(healthy(), limits=low).finding("threshold", CPU)
    assert "reached 66.0 °C" in found.seen
    assert "more than 60 °C (config.toml monitor.alert_threshold_cpu_celsius)" in found.seen


def test_a_limit_that_is_just_met_is_not_exceeded() -> None:
    assert judged(healthy(), limits=limits_for(Monitor(alert_threshold_gpu_celsius=65.0))).finding(
        "threshold", GPU
    ).outcome is PASSED  # fmt: skip


def test_a_spike_above_the_limit_is_left_out_and_told() -> None:
    def spike(values: Floats, _: Plan) -> Floats:
        values[400] = 110.0
        return values

    found = judged(changed(healthy(), GPU, spike)).finding("threshold", GPU)
    assert found.outcome is PASSED
    assert found.warnings == (f"{GPU}: a reading of 110.0 °C was left out as a spike of the sensor",)


def test_a_critical_stop_is_told() -> None:
    run = changed(healthy(), GPU, lambda values, _: values + 21.0)
    stop = Event(
        time_seconds=PLAN.load_on, kind="critical", detail={"text": "gpu0 is at 86.0 °C: the load is taken off"}
    )
    judgement = judged(replace(run, events=(stop,)))
    assert judgement.finding("threshold", GPU).warnings == ("gpu0 is at 86.0 °C: the load is taken off",)
    assert judgement.warnings() == ("gpu0 is at 86.0 °C: the load is taken off",)


# --------------------------------------------------------------------------------------------------------------- rise


def test_a_rise_as_expected() -> None:
    found = judged(healthy()).finding("rise", GPU)
    assert found.outcome is PASSED
    assert found.warnings == ()
    assert found.message == f"rise: {GPU} rose by 34.1 ± 0.2 °C over its baseline of 29.8 °C, at most 40 °C (default)"
    assert found.evidence["rise_celsius"] == pytest.approx(560 * (0.022 + 0.014 + 0.025), abs=0.5)


def test_too_high_a_rise_names_what_the_curve_shows() -> None:
    worse = replace(HEALTHY, radiator=0.05)
    judgement = judged(healthy(loop=worse))
    found = judgement.finding("rise", GPU)
    assert found.outcome is FAILED
    lines = found.message.splitlines()
    assert lines[0].startswith(f"rise: {GPU} rose by 4")
    assert lines[0].endswith("over its baseline of 31.0 °C, more than 40 °C (default)")
    assert lines[1].startswith("likely: one of these: ")
    assert "radiator or fan" in lines[1]
    assert lines[2] == "try: compare with an earlier good run, which tells them apart: --against RUN"


def test_a_rise_above_its_limit_fails_although_the_load_is_not_proven() -> None:
    run = without(healthy(loop=replace(HEALTHY, radiator=0.05)), USE, WATTS)
    assert judged(run).finding("rise", GPU).outcome is FAILED


def test_too_low_a_rise_passes_with_a_warning() -> None:
    found = judged(healthy(watts=480.0)).finding("rise", GPU)
    assert found.outcome is PASSED
    assert len(found.warnings) == 1
    assert "less than 30 °C (default): check that the load was real" in found.warnings[0]


@pytest.mark.parametrize("check", ["rise", "threshold", "settled"])
def test_cool_because_idle_is_no_pass(check: str) -> None:
    run = changed(changed(healthy(), USE, idle), WATTS, lambda values, _: np.full(values.size, 60.0))
    found = judged(run).finding(check, GPU)
    assert found.outcome is OPEN
    seen = "utilisation is 0 %, below 90 %; power: 60 W under load against 60 W at idle"
    assert found.message.splitlines()[:2] == [
        f"inconclusive: {check}: gpu0 was not loaded in full in steady: {seen}",
        "likely: it is cool because it had nothing to do",
    ]


@pytest.mark.parametrize("check", ["rise", "threshold", "settled"])
def test_a_load_that_nobody_measured_is_no_pass(check: str) -> None:
    found = judged(without(healthy(), USE, WATTS), loads=("accelerator",)).finding(check, GPU)
    assert found.outcome is OPEN
    assert "not measured" in found.message


def test_what_may_still_come_must_fit_under_the_limit_too() -> None:
    slow = replace(HEALTHY, coolant_capacity=60_000.0, radiator=0.035)
    found = judged(healthy(loop=slow)).finding("rise", GPU)
    assert found.outcome is OPEN
    seen = f"{GPU} rose by 33.3 °C so far, and up to 7.0 °C may still be to come: that may be more than 40 °C"
    assert found.message.splitlines() == [
        f"inconclusive: rise: {seen}",
        "likely: steady was too short for this loop",
        "try: a longer --duration",
    ]


def test_what_is_still_to_come_may_fit_under_the_limit() -> None:
    slow = replace(HEALTHY, coolant_capacity=60_000.0, radiator=0.03)
    judgement = judged(healthy(loop=slow))
    assert judgement.finding("rise", GPU).outcome is PASSED
    assert judgement.finding("settled", GPU).outcome is FAILED


def test_nothing_is_foreseen_from_a_constant_that_is_not_known() -> None:
    slow = replace(HEALTHY, coolant_capacity=160_000.0, radiator=0.03)
    found = judged(healthy(loop=slow)).finding("rise", GPU)
    assert found.outcome is OPEN
    assert "and what is still to come is not known" in found.seen


@pytest.mark.parametrize("check", ["threshold", "rise", "settled", "drift"])
def test_a_device_that_is_not_to_be_loaded_is_skipped(check: str) -> None:
    run = changed(changed(healthy(), USE, idle), WATTS, lambda values, _: np.full(values.size, 60.0))
    judgement = judged(changed(run, GPU, lambda values, _: np.full(values.size, 33.0)), loads=("cpu",))
    assert judgement.finding(check, GPU).outcome is SKIPPED
    assert judgement.finding("load", "gpu0").outcome is SKIPPED
    assert judgement.finding("rise", CPU).outcome is PASSED


def test_a_device_that_is_not_to_be_loaded_may_not_run_hot_either() -> None:
    run = changed(healthy(), GPU, lambda values, _: values + 30.0)
    assert judged(run, loads=("cpu",)).finding("threshold", GPU).outcome is FAILED


# ------------------------------------------------------------------------------------------------------------ settled


def test_settled() -> None:
    found = judged(healthy()).finding("settled", GPU)
    assert found.outcome is PASSED
    assert found.seen.endswith("(at most 1 K in 5 min, default; 1 °C (default))")


def test_not_settled() -> None:
    slow = replace(HEALTHY, coolant_capacity=60_000.0, radiator=0.04)
    found = judged(healthy(loop=slow)).finding("settled", GPU)
    assert found.outcome is FAILED
    assert first_line(found.message) == (
        f"settled: {GPU} has not settled at the end of steady: it moves by +0.22 K/min, more than 1 K in 5 min "
        "(default); +8.5 °C are still to come, more than 1 °C"
    )
    assert "try: a longer --duration" in found.message


def test_the_standard_asked_for_is_named() -> None:
    strict = limits_for(Monitor(), settling=("iec60598", "command line --settling"))
    slow = replace(HEALTHY, coolant_capacity=40_000.0)
    found = judged(healthy(loop=slow), limits=strict).finding("settled", GPU)
    assert found.outcome is not PASSED
    assert "1 K in 60 min (iec60598)" in found.seen
    assert "iec60598" in str(judged(healthy(), limits=strict).finding("settled", GPU).evidence)


def test_whether_it_settled_is_not_known_of_a_short_steady() -> None:
    plan = Plan(baseline=300.0, ramp=60.0, steady=240.0, cooldown=600.0, period=5.0)
    found = judged(healthy(plan), loads=("accelerator",)).finding("settled", GPU)
    assert found.outcome is not PASSED


def test_air_is_unrest() -> None:
    rng = np.random.default_rng(4)
    judgement = judged(healthy(then=bubbles(rng, PLAN)))
    found = judgement.finding("settled", GPU)
    assert found.outcome is FAILED
    assert first_line(found.message).startswith(
        f"settled: {GPU} was not at rest in steady: the temperature wanders by "
    )
    assert "likely: air in the loop: " in found.message
    assert "try: bleed the loop" in found.message


def test_a_course_that_was_left_is_unrest_though_it_is_at_rest_again() -> None:
    weaker = replace(HEALTHY, contact=HEALTHY.contact * 1.35)
    judgement = judged(healthy(then=[(900.0, weaker)], loop=replace(HEALTHY, radiator=0.018)))
    assert judgement.finding("rise", GPU).outcome is PASSED
    found = judgement.finding("settled", GPU)
    assert found.outcome is FAILED
    assert "was not at rest in steady" in found.seen


def test_a_hole_in_steady_leaves_all_that_is_built_on_it_open() -> None:
    run = changed(healthy(), GPU, lambda values, plan: with_gap(values, plan.times, 1000.0, 100.0))
    judgement = judged(run)
    for check in ("threshold", "rise", "settled", "rebound"):
        found = judgement.finding(check, GPU)
        assert found.outcome is OPEN
        assert f"{GPU} has holes in steady: no reading for 105 s, 21 ticks" in found.message
    assert judgement.finding("rise", CPU).outcome is PASSED
    assert judgement.finding("baseline", GPU).outcome is PASSED


def test_a_memory_has_no_expected_rise_but_everything_else() -> None:
    judgement = judged(healthy())
    assert MEMORY not in judgement.subjects("rise")
    assert judgement.finding("settled", MEMORY).outcome is PASSED
    assert judgement.finding("threshold", MEMORY).outcome is PASSED


def test_a_processor_without_its_own_utilisation_takes_that_of_all() -> None:
    run = healthy()
    of_all = run.series[CPU_USE]
    sensor = replace(of_all.sensor, id="cpu.utilization_percent", device="cpu")
    moved = {**without(run, CPU_USE).series, sensor.id: replace(of_all, sensor=sensor)}
    assert judged(replace(run, series=moved)).finding("load", "cpu0").outcome is PASSED


def test_limits_can_be_overridden() -> None:
    found = judged(healthy(), limits=limits(rise_gpu_most=(30.0, "conftest.py"))).finding("rise", GPU)
    assert found.outcome is FAILED
    assert found.seen.endswith("more than 30 °C (conftest.py)")
