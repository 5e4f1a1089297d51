from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pytest_thermal.analysis.time_constants import TimeConstants, fit_time_constants
from pytest_thermal.model.series import Series
from tests.analysis.signals import (
    HEALTHY,
    Floats,
    Plan,
    TwoModes,
    autoregressive,
    counting,
    loop_modes,
    loop_run,
    quantised,
    series,
    straight,
    white,
    with_gap,
    with_lost,
)

Noise = Callable[[np.random.Generator, int], Floats]


def some_modes(rng: np.random.Generator) -> TwoModes:
    return TwoModes(
        baseline=rng.uniform(25, 40),
        fast_rise=rng.uniform(12, 22),
        fast_seconds=rng.uniform(8, 25),
        slow_rise=rng.uniform(8, 20),
        slow_seconds=rng.uniform(150, 500),
    )


def heated(readings: Series, plan: Plan) -> TimeConstants:
    return fit_time_constants(readings, plan.load_on, plan.load_off)


def tally(noise: Noise, *, period: float, step: float | None, runs: int = 16) -> dict[str, int]:
    """How often each constant was told, and how often it was wrong by more than 10 %."""
    rng = np.random.default_rng(41)
    plan = Plan(period=period, cooldown=60.0)
    counts = {"slow": 0, "slow wrong": 0, "fast": 0, "fast wrong": 0}
    for _ in range(runs):
        modes = some_modes(rng)
        seen = modes.on(plan) + noise(rng, plan.times.size)
        found = heated(series(plan.times, quantised(seen, step) if step else seen, period=period), plan)
        for name, figure, true in (
            ("slow", found.slow, modes.slow_seconds),
            ("fast", found.fast, modes.fast_seconds),
        ):
            if figure.value is None:
                assert figure.reason
            else:
                counts[name] += 1
                counts[f"{name} wrong"] += abs(figure.value / true - 1) > 0.1
    return counts


@pytest.mark.parametrize("step", [None, 0.1])
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_both_constants_are_told_at_one_second(sigma: float, step: float | None) -> None:
    counts = tally(lambda rng, n: white(rng, n, sigma), period=1.0, step=step)
    assert counts["slow"] >= 15
    assert counts["fast"] >= 14
    assert counts["slow wrong"] == counts["fast wrong"] == 0


@pytest.mark.parametrize("period", [1.0, 5.0])
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_the_slow_constant_is_told_by_a_sensor_of_one_degree(sigma: float, period: float) -> None:
    counts = tally(lambda rng, n: white(rng, n, sigma), period=period, step=1.0)
    assert counts["slow"] >= 10
    assert counts["slow wrong"] == counts["fast wrong"] == 0


@pytest.mark.parametrize("period, step", [(1.0, None), (1.0, 1.0), (5.0, 0.1), (5.0, 1.0)])
@pytest.mark.parametrize("memory_readings", [3, 15])
def test_noise_with_memory_makes_it_refuse_rather_than_guess(
    memory_readings: float, period: float, step: float | None
) -> None:
    counts = tally(lambda rng, n: autoregressive(rng, n, 0.3, memory_readings), period=period, step=step)
    assert counts["slow wrong"] + counts["fast wrong"] <= 1


def test_the_claimed_uncertainty_is_that_of_the_error() -> None:
    rng = np.random.default_rng(42)
    plan = Plan(cooldown=60.0)
    deviations = []
    for _ in range(40):
        modes = some_modes(rng)
        slow = heated(series(plan.times, modes.on(plan) + white(rng, plan.times.size, 0.3)), plan).slow
        assert slow.value is not None
        assert slow.uncertainty is not None
        deviations.append((slow.value - modes.slow_seconds) / slow.uncertainty)
    assert 0.6 < np.std(deviations) < 1.5
    assert abs(np.mean(deviations)) < 0.6


def test_the_amplitudes_and_the_final_temperature_are_told() -> None:
    plan = Plan(cooldown=60.0)
    modes = TwoModes()
    found = heated(series(plan.times, modes.on(plan) + white(np.random.default_rng(43), plan.times.size, 0.1)), plan)
    assert found.fast_rise.value == pytest.approx(modes.fast_rise, abs=1.0)
    assert found.slow_rise.value == pytest.approx(modes.slow_rise, abs=0.5)
    assert found.final.value == pytest.approx(modes.baseline + modes.rise, abs=0.1)


def test_cooling_is_told_as_well_with_negative_rises() -> None:
    plan = Plan(cooldown=1800.0)
    modes = TwoModes()
    seen = modes.on(plan) + white(np.random.default_rng(44), plan.times.size, 0.1)
    found = fit_time_constants(series(plan.times, seen), plan.load_off, plan.end)
    assert found.slow.value == pytest.approx(modes.slow_seconds, rel=0.1)
    assert found.slow_rise.value == pytest.approx(-modes.slow_rise, abs=0.7)


def test_a_load_that_starts_late_does_no_harm() -> None:
    rng = np.random.default_rng(45)
    plan = Plan(cooldown=60.0)
    modes = TwoModes()
    for late in (4.0, 17.0):
        seen = modes.at(plan.times, plan.load_on + late, plan.load_off) + white(rng, plan.times.size, 0.2)
        found = heated(series(plan.times, seen), plan)
        assert found.slow.value == pytest.approx(modes.slow_seconds, rel=0.1)
        assert found.fast.value == pytest.approx(modes.fast_seconds, rel=0.1)


def test_a_load_that_takes_a_while_to_rise_costs_at_most_the_fast_constant() -> None:
    rng = np.random.default_rng(46)
    plan = Plan(cooldown=60.0)
    modes = TwoModes()
    parts = [modes.at(plan.times, plan.load_on + late, plan.load_off) for late in range(30)]
    found = heated(series(plan.times, np.mean(parts, axis=0) + white(rng, plan.times.size, 0.1)), plan)
    assert found.slow.value is None or found.slow.value == pytest.approx(modes.slow_seconds, rel=0.1)
    assert found.fast.value is None or found.fast.value == pytest.approx(modes.fast_seconds, rel=0.1)


def test_holes_and_uneven_steps_do_no_harm() -> None:
    rng = np.random.default_rng(47)
    plan = Plan(cooldown=60.0)
    modes = TwoModes()
    times = np.sort(plan.times + rng.uniform(-0.4, 0.4, plan.times.size))
    seen = modes.at(times, plan.load_on, plan.load_off) + white(rng, times.size, 0.2)
    seen = with_lost(rng, with_gap(seen, times, plan.baseline + 400, 60), 0.2)
    found = heated(series(times, seen), plan)
    assert found.slow.value == pytest.approx(modes.slow_seconds, rel=0.1)
    assert found.fast.value == pytest.approx(modes.fast_seconds, rel=0.1)


@pytest.mark.parametrize("period", [1.0, 5.0])
def test_three_lumps_give_their_slowest_constant_and_no_wrong_fast_one(period: float) -> None:
    rng = np.random.default_rng(48)
    plan = Plan(period=period, cooldown=60.0)
    fast_modes, slowest = loop_modes(HEALTHY)[:2], loop_modes(HEALTHY)[2]
    for _ in range(10):
        found = heated(loop_run(plan, rng, resolution=0.1, noise=0.2).temperature, plan)
        assert found.slow.value == pytest.approx(slowest, rel=0.1)
        assert found.fast.value is None or any(abs(found.fast.value / mode - 1) < 0.15 for mode in fast_modes)


def test_one_lump_has_a_slow_constant_only() -> None:
    plan = Plan(cooldown=60.0)
    seen = TwoModes(fast_rise=0.0, slow_rise=30.0).on(plan) + white(np.random.default_rng(49), plan.times.size, 0.2)
    found = heated(series(plan.times, seen), plan)
    assert found.slow.value == pytest.approx(300, rel=0.05)
    assert found.fast.reason == "one exponential describes the curve"


def test_a_mode_faster_than_the_sampling_is_refused() -> None:
    plan = Plan(period=5.0, cooldown=60.0)
    seen = TwoModes(fast_seconds=1.5).on(plan) + white(np.random.default_rng(50), plan.times.size, 0.1)
    found = heated(series(plan.times, seen, period=5.0), plan)
    assert found.slow.value == pytest.approx(300, rel=0.1)
    assert found.fast.value is None


def _throttled(plan: Plan) -> Floats:
    return np.minimum(TwoModes(fast_rise=25, slow_rise=25).on(plan), 72.0)


def _load_halved(plan: Plan) -> Floats:
    half = TwoModes(fast_rise=9, slow_rise=8)
    return half.at(plan.times, plan.load_on, plan.load_off) + half.at(plan.times, plan.load_on + 900, plan.load_off)


def _linear(plan: Plan) -> Floats:
    return np.asarray(np.clip((plan.times - plan.load_on) / 100, 0, None) + 30)


def _waving(plan: Plan) -> Floats:
    return np.asarray(TwoModes().on(plan) + 2 * np.sin(2 * np.pi * plan.times / 900))


@pytest.mark.parametrize("sigma", [0.05, 0.2])
@pytest.mark.parametrize("curve", [_throttled, _load_halved, _linear, _waving])
def test_what_is_no_two_exponentials_is_refused(curve: Callable[[Plan], Floats], sigma: float) -> None:
    plan = Plan(cooldown=60.0, steady=1800.0)
    for seed in range(5):
        seen = curve(plan) + white(np.random.default_rng(seed), plan.times.size, sigma)
        found = heated(series(plan.times, seen), plan)
        assert found.slow.value is None
        if curve is not _linear:  # the beginning of an exponential, only too slow to be known
            assert "the residuals are not white" in found.slow.reason


def test_a_curve_too_short_for_its_slow_mode_is_refused_with_what_is_known() -> None:
    plan = Plan(ramp=60.0, steady=240.0, cooldown=60.0)
    seen = TwoModes(slow_seconds=600.0).on(plan) + white(np.random.default_rng(52), plan.times.size, 0.3)
    found = heated(series(plan.times, seen), plan)
    assert found.slow.value is None
    assert found.slow.reason


def test_a_bound_is_given_where_a_constant_is_only_roughly_known() -> None:
    rng = np.random.default_rng(53)
    plan = Plan(steady=600.0, cooldown=60.0)
    bounds = []
    for _ in range(10):
        seen = TwoModes(slow_seconds=300.0).on(plan) + white(rng, plan.times.size, 1.0)
        bound = heated(series(plan.times, seen), plan).slow.detail.get("at_most_seconds")
        if isinstance(bound, float):
            bounds.append(bound)
    assert len(bounds) >= 5
    assert all(bound >= 300 for bound in bounds)


@pytest.mark.parametrize(
    "readings",
    [
        lambda plan: np.full(plan.times.size, 40.0),
        lambda plan: 40 + white(np.random.default_rng(54), plan.times.size, 0.5),
        lambda plan: np.full(plan.times.size, np.nan),
        lambda plan: np.where(counting(plan.times.size) % 300 == 0, 40.0, np.nan),
        lambda plan: quantised(straight(40, 42, plan.times.size), 1.0),
    ],
)
def test_where_there_is_no_curve_there_is_a_reason(readings: Callable[[Plan], Floats]) -> None:
    plan = Plan(cooldown=60.0)
    found = heated(series(plan.times, readings(plan)), plan)
    for figure in (found.fast, found.slow, found.fast_rise, found.slow_rise, found.final):
        assert figure.value is None
        assert figure.reason


def test_a_day_is_fitted_over_its_first_hours() -> None:
    plan = Plan(period=10.0, steady=86_400.0, cooldown=60.0)
    room = 3 * np.sin(2 * np.pi * (plan.times - plan.load_on) / 86_400)
    seen = TwoModes(fast_seconds=40.0).on(plan) + np.where(plan.times > plan.load_on + 5 * 3600, room, 0.0)
    found = heated(series(plan.times, seen + white(np.random.default_rng(55), plan.times.size, 0.1), period=10.0), plan)
    assert found.slow.value == pytest.approx(300, rel=0.1)
