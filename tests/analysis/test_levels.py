from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.levels import level, peak, rise
from pytest_thermal.analysis.windows import level_window
from pytest_thermal.model.series import Figure, Phase, Series
from tests.analysis.signals import (
    EPOCH,
    Plan,
    TwoModes,
    autoregressive,
    counting,
    quantised,
    series,
    ticks,
    white,
    with_gap,
    with_lost,
)


@pytest.mark.parametrize(
    "name, duration, length",
    [
        ("baseline", 600.0, 120.0),  # the last fifth
        ("baseline", 120.0, 60.0),  # at least a minute
        ("baseline", 40.0, 40.0),  # or all of it
        ("steady", 6000.0, 600.0),  # the last tenth
        ("steady", 900.0, 300.0),  # at least five minutes
        ("steady", 200.0, 200.0),
        ("limit", 6000.0, 600.0),
    ],
)
def test_a_level_is_taken_from_the_stretch_the_design_says(name: str, duration: float, length: float) -> None:
    phase = Phase(name=name, start_seconds=EPOCH, end_seconds=EPOCH + duration)  # type: ignore[arg-type]
    start, end = level_window(phase)
    assert end == phase.end_seconds
    assert end - start == pytest.approx(length)


def test_a_level_is_the_mean_of_that_stretch_and_of_nothing_else() -> None:
    phase = Phase(name="baseline", start_seconds=EPOCH, end_seconds=EPOCH + 600)
    found = level(series(ticks(700), counting(700)), phase)
    assert found.value == pytest.approx(np.mean(np.arange(480, 600)))
    assert found.detail["readings"] == 120


@pytest.mark.parametrize("period", [1.0, 5.0])
@pytest.mark.parametrize("noise", [0.2, 0.3])
@pytest.mark.parametrize("step", [None, 0.1, 1.0])
def test_a_rise_is_right_within_half_a_degree(period: float, noise: float, step: float | None) -> None:
    rng = np.random.default_rng(21)
    plan = Plan(period=period, steady=1800.0, cooldown=60.0)
    for _ in range(25):
        modes = TwoModes(
            baseline=rng.uniform(25, 40), fast_rise=rng.uniform(12, 22), slow_rise=rng.uniform(8, 20), slow_seconds=250
        )
        true = modes.on(plan)
        seen = true + white(rng, true.size, noise)
        seen = with_lost(rng, quantised(seen, step) if step else seen, 0.02)
        seen = with_gap(seen, plan.times, plan.baseline + plan.ramp + plan.steady - 100, 20)
        found = _rise(series(plan.times, seen, period=period), plan)
        expected = _rise(series(plan.times, true, period=period), plan)
        assert found.value is not None
        assert expected.value == pytest.approx(modes.rise, abs=0.1)
        assert abs(found.value - modes.rise) <= 0.5


@pytest.mark.parametrize("noise, memory, step", [(0.3, 0, None), (0.05, 0, 1.0), (0.0, 0, 1.0), (0.3, 10, 0.1)])
def test_the_uncertainty_of_a_rise_covers_its_error(noise: float, memory: float, step: float | None) -> None:
    rng = np.random.default_rng(22)
    plan = Plan(steady=1800.0, cooldown=60.0)
    covered = 0
    for _ in range(60):
        true = TwoModes(baseline=rng.uniform(25, 40), slow_rise=rng.uniform(8, 20), slow_seconds=250).on(plan)
        unrest = autoregressive(rng, true.size, noise, memory) if memory else white(rng, true.size, noise)
        seen = quantised(true + unrest, step) if step else true + unrest
        found, expected = (_rise(series(plan.times, values), plan) for values in (seen, true))
        assert found.value is not None
        assert expected.value is not None
        assert found.uncertainty is not None
        covered += abs(found.value - expected.value) <= 2 * found.uncertainty
    assert covered >= 52  # 95 % of 60 are 57


def test_unrest_slower_than_the_stretch_shows_in_the_uncertainty() -> None:
    phase = Phase(name="baseline", start_seconds=EPOCH, end_seconds=EPOCH + 600)
    wave = 40 + 2 * np.sin(2 * np.pi * counting(600) / 290)
    slow = level(series(ticks(600), wave + white(np.random.default_rng(23), 600, 0.1)), phase)
    assert slow.uncertainty is not None
    assert slow.uncertainty > 0.5


def test_a_rise_needs_both_levels_and_says_which_is_missing() -> None:
    known = Figure(name="steady", value=60.0, unit="celsius", uncertainty=0.1)
    missing = Figure.missing("baseline", "celsius", "2 readings in the last 60 s of baseline")
    assert rise(missing, known).reason == missing.reason
    assert rise(known, missing).value is None


def test_the_uncertainties_of_both_levels_add_up_in_squares() -> None:
    cold = Figure(name="baseline", value=30.0, unit="celsius", uncertainty=0.3)
    hot = Figure(name="steady", value=62.0, unit="celsius", uncertainty=0.4)
    assert rise(cold, hot).value == 32.0
    assert rise(cold, hot).uncertainty == pytest.approx(0.5)


def test_two_readings_are_no_level() -> None:
    phase = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 600)
    values = np.full(600, np.nan)
    values[[310, 500]] = 60.0
    found = level(series(ticks(600), values), phase)
    assert found.value is None
    assert "2 readings" in found.reason


def test_a_peak_is_the_highest_reading_and_says_when() -> None:
    values = np.array([40.0, np.nan, 71.0, 70.0])
    found = peak(series(ticks(4), values, resolution=1.0))
    assert found.value == 71.0
    assert found.detail["time_seconds"] == EPOCH + 2
    assert found.uncertainty == pytest.approx(0.2887, abs=1e-3)


def test_a_rejected_spike_is_no_peak_but_is_told() -> None:
    values = np.array([40.0, 120.0, 71.0, np.nan])
    found = peak(series(ticks(4), values), np.array([False, True, False, True]))
    assert found.value == 71.0
    assert found.detail["rejected"] == 1
    assert found.detail["highest_rejected"] == 120.0


@pytest.mark.parametrize("values", [np.array([np.nan, np.nan]), np.empty(0), np.array([90.0])])
def test_no_plausible_reading_has_no_peak(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    found = peak(series(ticks(values.size), values), np.ones(values.size, dtype=bool))
    assert found.value is None
    assert found.reason == "no plausible reading"


def test_below_zero_there_are_peaks_too() -> None:
    assert peak(series(ticks(3), np.array([-12.0, -5.0, -9.0]))).value == -5.0


def _rise(readings: Series, plan: Plan) -> Figure:

    return rise(level(readings, plan.phases["baseline"]), level(readings, plan.phases["steady"]))
