from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pytest_thermal.analysis.phases import DetectedPhases, detect_phases
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.series import Series
from tests.analysis.signals import (
    EPOCH,
    Floats,
    Plan,
    TwoModes,
    autoregressive,
    counting,
    quantised,
    series,
    straight,
    ticks,
    white,
    with_lost,
)

WHOLE = ["baseline", "ramp", "steady", "cooldown"]


def names(found: DetectedPhases) -> list[str]:
    return [phase.name for phase in found.phases]


def signals_of(plan: Plan, rng: np.random.Generator) -> tuple[Series, Series, Series]:
    loaded = (plan.times >= plan.load_on) & (plan.times < plan.load_off)
    count = plan.times.size
    pauses = loaded & (counting(count) % 30 < 2)
    busy = np.where(loaded, 97.0, 2.0) + white(rng, count, 1.0)
    watts = np.where(pauses, 450.0, np.where(loaded, 600.0, 60.0)) + white(rng, count, 10.0)
    modes = TwoModes(fast_rise=rng.uniform(6, 22), slow_rise=rng.uniform(5, 20), slow_seconds=rng.uniform(150, 500))
    hot = quantised(modes.on(plan) + white(rng, count, 0.4), 1.0)
    return (
        series(plan.times, hot, period=plan.period),
        series(
            plan.times, np.clip(busy, 0, 100), period=plan.period, name="gpu0.utilization_percent", unit=Unit.PERCENT
        ),
        series(plan.times, watts, period=plan.period, name="gpu0.power_watts", unit=Unit.WATTS),
    )


def some_plan(rng: np.random.Generator, period: float) -> Plan:
    return Plan(
        period=period, baseline=rng.uniform(120, 600), ramp=0.0, steady=rng.uniform(900, 3600),
        cooldown=float(rng.choice([0, 300, 900])),
    )  # fmt: skip


@pytest.mark.parametrize("period", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("by", ["utilization", "power"])
def test_phases_are_found_from_what_drives_the_heat(by: str, period: float) -> None:
    rng = np.random.default_rng(101)
    for _ in range(15):
        plan = some_plan(rng, period)
        temperature, utilization, power = signals_of(plan, rng)
        found = detect_phases(
            temperature,
            utilization=utilization if by == "utilization" else None,
            power=power if by == "power" else None,
        )
        assert found.origin == by
        assert names(found) == (WHOLE if plan.cooldown else WHOLE[:3])
        assert found.phases[0].end_seconds == pytest.approx(plan.load_on, abs=2 * period)
        assert found.phases[2].end_seconds == pytest.approx(plan.load_off, abs=2 * period)


@pytest.mark.parametrize("period", [1.0, 5.0])
def test_else_from_the_temperatures_own_shape(period: float) -> None:
    rng = np.random.default_rng(102)
    for _ in range(30):
        plan = some_plan(rng, period)
        found = detect_phases(signals_of(plan, rng)[0])
        assert found.origin == "temperature"
        assert names(found) == (WHOLE if plan.cooldown else WHOLE[:3])
        assert found.phases[0].end_seconds == pytest.approx(plan.load_on, abs=15)
        assert found.phases[2].end_seconds == pytest.approx(plan.load_off, abs=15)


def test_utilisation_comes_before_power() -> None:
    rng = np.random.default_rng(103)
    temperature, utilization, power = signals_of(Plan(), rng)
    assert detect_phases(temperature, utilization=utilization, power=power).origin == "utilization"
    flat = series(utilization.time_seconds, np.full(len(utilization), 99.0), name="gpu0.utilization_percent")
    assert detect_phases(temperature, utilization=flat, power=power).origin == "power"


def test_the_ramp_ends_when_most_of_the_rise_is_done() -> None:
    rng = np.random.default_rng(104)
    plan = Plan(ramp=0.0)
    clean = TwoModes(fast_rise=0.0, slow_rise=30.0, slow_seconds=200.0).on(plan) + white(rng, plan.times.size, 0.05)
    ramp = detect_phases(series(plan.times, clean)).phases[1]
    assert ramp.duration_seconds == pytest.approx(200 * np.log(10), rel=0.1)


def test_phases_follow_one_another() -> None:
    found = detect_phases(signals_of(Plan(), np.random.default_rng(105))[0]).phases
    for before, after in pairwise(found):
        assert before.end_seconds == after.start_seconds


def test_lost_readings_do_no_harm() -> None:
    rng = np.random.default_rng(106)
    temperature = signals_of(Plan(), rng)[0]
    holes = series(temperature.time_seconds, with_lost(rng, temperature.values, 0.3))
    assert names(detect_phases(holes)) == WHOLE


def _daily() -> Floats:
    return np.asarray(25 + 8 * np.sin(2 * np.pi * counting(4000) / 4000))


def _under_load_from_the_start() -> Floats:
    return np.concatenate([np.full(3000, 70.0), 40 + 30 * np.exp(-counting(1000) / 60)])


def _slow_drift() -> Floats:
    return straight(30, 60, 4000)


def _two_loads() -> Floats:
    plan = Plan(steady=900.0, ramp=0.0, cooldown=600.0)
    once = TwoModes(slow_seconds=60.0).on(plan)
    return np.concatenate([once, once])


def _idle() -> Floats:
    return np.full(4000, 38.0)


def _restless() -> Floats:
    return 45 + autoregressive(np.random.default_rng(107), 4000, 3.0, 60)


@pytest.mark.parametrize("shape", [_daily, _under_load_from_the_start, _slow_drift, _two_loads, _idle, _restless])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_is_no_single_load_is_refused_with_a_reason(shape: object, noise: float) -> None:
    assert callable(shape)
    values = shape()
    seen = values + white(np.random.default_rng(108), values.size, noise)
    found = detect_phases(series(ticks(values.size), seen))
    assert found.phases == ()
    assert found.reason.startswith("temperature: ")


def test_two_loads_are_refused_from_utilisation_too() -> None:
    percent = np.where((counting(4000) % 2000 > 500) & (counting(4000) % 2000 < 1500), 99.0, 1.0)
    temperature = series(ticks(4000), np.full(4000, 40.0))
    driven = series(ticks(4000), percent, name="gpu0.utilization_percent", unit=Unit.PERCENT)
    found = detect_phases(temperature, utilization=driven)
    assert found.reason == "utilization: 2 loads, none of which stands out"


def test_a_log_that_begins_under_load_has_no_baseline() -> None:
    percent = np.where(counting(2000) < 1500, 99.0, 1.0)
    temperature = series(ticks(2000), np.full(2000, 40.0))
    driven = series(ticks(2000), percent, name="gpu0.utilization_percent", unit=Unit.PERCENT)
    assert "no baseline" in detect_phases(temperature, utilization=driven).reason


def test_a_short_burst_before_the_load_is_not_the_load() -> None:
    percent = np.where((counting(4000) > 1000) & (counting(4000) < 3000), 99.0, 1.0)
    percent[300:330] = 80.0
    temperature = series(ticks(4000), np.where(percent > 90, 70.0, 40.0))
    driven = series(ticks(4000), percent, name="gpu0.utilization_percent", unit=Unit.PERCENT)
    found = detect_phases(temperature, utilization=driven)
    assert found.phases[0].start_seconds == EPOCH
    assert found.phases[0].end_seconds == pytest.approx(EPOCH + 1001, abs=2)


def test_a_few_readings_are_no_log() -> None:
    assert "too few" in detect_phases(series(ticks(10), np.full(10, 40.0))).reason
    assert detect_phases(series(np.empty(0), np.empty(0))).phases == ()


def test_only_a_temperature_has_this_shape() -> None:
    with pytest.raises(ValueError, match="no temperature"):
        detect_phases(series(ticks(10), np.full(10, 40.0), name="gpu0.power_watts", unit=Unit.WATTS))
