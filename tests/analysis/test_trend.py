from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pytest_thermal.analysis.trend import fit_trend
from tests.analysis.signals import EPOCH, Floats, autoregressive, counting, quantised, ticks, white

Noise = Callable[[np.random.Generator, int], Floats]

SLOPE = 0.001


def misses(noise: Noise, *, count: int, period: float, step: float | None, runs: int = 150) -> float:
    """Share of the runs in which the true slope is beyond the upper or the lower bound, each meant to be 5 %."""
    rng = np.random.default_rng(11)
    times = ticks(count, period)
    missed = 0
    for _ in range(runs):
        values = rng.uniform(40, 41) + SLOPE * (times - times[0]) + noise(rng, count)
        found = fit_trend(times, quantised(values, step) if step else values, step)
        assert found is not None
        missed += (found.upper < SLOPE) + (found.lower > SLOPE)
    return missed / runs


@pytest.mark.parametrize("step", [None, 0.1, 1.0])
@pytest.mark.parametrize("count, period", [(300, 1.0), (60, 5.0), (720, 5.0)])
def test_the_bounds_hold_for_white_noise(count: int, period: float, step: float | None) -> None:
    assert misses(lambda rng, n: white(rng, n, 0.3), count=count, period=period, step=step) <= 0.15


@pytest.mark.parametrize("step", [None, 1.0])
@pytest.mark.parametrize("memory_readings", [5.0, 15.0])
def test_the_bounds_hold_for_noise_with_memory(memory_readings: float, step: float | None) -> None:
    assert misses(lambda rng, n: autoregressive(rng, n, 0.3, memory_readings), count=600, period=1.0, step=step) <= 0.15


def test_the_bounds_hold_for_slow_noise_hidden_under_white() -> None:
    def noise(rng: np.random.Generator, count: int) -> Floats:
        return white(rng, count, 0.3) + autoregressive(rng, count, 0.2, 40)

    assert misses(noise, count=900, period=1.0, step=None) <= 0.18


@pytest.mark.parametrize("count, period", [(300, 1.0), (60, 5.0)])
def test_the_bounds_hold_for_a_bare_staircase(count: int, period: float) -> None:
    assert misses(lambda rng, n: white(rng, n, 0.02), count=count, period=period, step=1.0) <= 0.05


def test_ignoring_memory_would_miss_far_more_often() -> None:
    """The guard of the tests above: the same noise breaks the textbook's bound."""
    rng = np.random.default_rng(12)
    times = ticks(600)
    centred = times - times.mean()
    missed = 0
    for _ in range(100):
        values = SLOPE * centred + autoregressive(rng, 600, 0.3, 15)
        slope, level = np.polyfit(centred, values, 1)
        residuals = values - slope * centred - level
        sigma = np.sqrt((residuals**2).sum() / 598 / (centred**2).sum())
        missed += abs(slope - SLOPE) > 1.65 * sigma
    assert missed > 40


def test_white_noise_is_not_made_much_worse_than_the_textbook_says() -> None:
    rng = np.random.default_rng(13)
    times = ticks(600)
    textbook = 1.647 * 0.3 / np.sqrt(((times - times.mean()) ** 2).sum())
    widths = []
    for _ in range(50):
        found = fit_trend(times, white(rng, 600, 0.3), None)
        assert found is not None
        widths.append(found.half_width)
    assert 0.9 * textbook < np.median(widths) < 1.6 * textbook


def test_a_constant_reading_admits_a_slope_of_about_one_step_over_the_window() -> None:
    times = ticks(600)
    found = fit_trend(times, np.full(600, 40.0), 1.0)
    assert found is not None
    assert found.slope == 0.0
    assert found.half_width == pytest.approx(1.5 / 600, rel=0.01)


def test_uneven_steps_holes_and_unix_time_do_no_harm() -> None:
    rng = np.random.default_rng(14)
    times = EPOCH + np.cumsum(rng.uniform(0.5, 20, 200))
    values = 50 - 0.004 * (times - times[0])
    values[rng.random(200) < 0.3] = np.nan
    found = fit_trend(times, values, None)
    assert found is not None
    assert found.slope == pytest.approx(-0.004, abs=1e-9)
    assert found.half_width < 1e-9
    assert found.readings == np.count_nonzero(~np.isnan(values))


def test_five_readings_have_no_trend() -> None:
    assert fit_trend(ticks(5), counting(5), None) is None
    assert fit_trend(ticks(9), np.array([1.0, *[np.nan] * 4, 1.0, 1.0, 1.0, 1.0]), None) is None


def test_a_few_blocks_that_wander_by_chance_feign_no_great_drift() -> None:
    rng = np.random.default_rng(3)
    times = ticks(300, 1.0)
    drifts = []
    for _ in range(300):
        noise = autoregressive(rng, 300, 0.1, 40.0) + white(rng, 300, 0.4)
        found = fit_trend(times, quantised(33.55 + noise, 1.0), 1.0)
        assert found is not None
        drifts.append(found.half_width * found.span_seconds)
    assert max(drifts) < 4.0
