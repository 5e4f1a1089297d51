from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_thermal.analysis.noise import (
    block_means,
    dither,
    estimate_resolution,
    lag_one,
    mean_and_sigma,
    noise_sigma,
    quantisation_sigma,
)
from tests.analysis.signals import EPOCH, autoregressive, counting, quantised, straight, ticks, white

TIMES = ticks(600)


@pytest.mark.parametrize("step", [1.0, 0.5, 0.25, 0.125, 0.1, 0.0625, 0.01, 0.001])
def test_the_step_of_a_quantised_sensor_is_found(step: float) -> None:
    noisy = 50 + white(np.random.default_rng(1), 2000, 5 * step)
    assert estimate_resolution(quantised(noisy, step)) == step


def test_a_step_that_does_not_pass_through_zero_is_found() -> None:
    values = 27.3 + quantised(white(np.random.default_rng(2), 500, 3.0), 1.0)
    assert estimate_resolution(values) == 1.0


def test_two_readings_five_apart_prove_no_step_of_five() -> None:
    assert estimate_resolution(np.array([40.0, 45.0, 40.0, 45.0])) == 1.0
    assert estimate_resolution(counting(20, 5.0)) == 5.0


@pytest.mark.parametrize(
    "values",
    [np.array([]), np.array([np.nan, np.nan]), np.array([41.0]), np.full(50, 41.0), 40 + np.pi * counting(50)],
)
def test_no_step_is_guessed(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    assert estimate_resolution(values) is None


def test_noise_is_told_from_a_trend_jumps_and_holes() -> None:
    rng = np.random.default_rng(3)
    values = white(rng, 4000, 0.4) + 0.01 * np.arange(4000)
    values[rng.integers(0, 4000, 15)] += 30
    values[rng.random(4000) < 0.1] = np.nan
    assert noise_sigma(values) == pytest.approx(0.4, rel=0.15)


def test_noise_of_a_long_record_is_that_of_a_short_one() -> None:
    values = white(np.random.default_rng(4), 50_000, 0.4)
    assert noise_sigma(values) == pytest.approx(noise_sigma(values[:4000]), rel=0.1)


def test_a_bare_staircase_is_not_dithered_and_a_noisy_one_is() -> None:
    rng = np.random.default_rng(5)
    climbing = straight(40, 46, 600)
    assert dither(quantised(climbing, 1.0), 1.0) == 1.0
    assert dither(quantised(climbing + white(rng, 600, 0.5), 1.0), 1.0) < 0.05
    assert dither(quantised(np.full(600, 40.3), 1.0), 1.0) == 1.0


def test_slow_unrest_dithers_too_when_it_goes_to_and_fro_all_the_time() -> None:
    rng = np.random.default_rng(6)
    wandering = 40.4 + autoregressive(rng, 3600, 0.5, 20)
    assert dither(quantised(wandering, 1.0), 1.0) < 0.2
    only_at_first = np.where(np.arange(3600) < 900, wandering, 40.0)
    assert dither(quantised(only_at_first, 1.0), 1.0) == 1.0


def test_flicker_at_one_level_says_nothing_of_the_next() -> None:
    rng = np.random.default_rng(5)
    leaving = np.where(np.arange(600) < 350, 40.5, 41.0) + white(rng, 600, 0.1)
    assert noise_sigma(quantised(leaving, 1.0)) > 0.35
    assert dither(quantised(leaving, 1.0), 1.0) == 1.0


def test_lag_one_sees_memory_and_does_not_punish_white_noise() -> None:
    rng = np.random.default_rng(7)
    remembered = [lag_one(autoregressive(rng, 600, 1.0, 10)) for _ in range(20)]
    assert np.mean(remembered) == pytest.approx(math.exp(-0.1), abs=0.03)
    assert np.mean([lag_one(white(rng, 600, 1.0)) for _ in range(200)]) < 0.02
    assert lag_one(np.zeros(50)) == 0


@pytest.mark.parametrize("memory_readings", [0.0, 3.0, 15.0])
def test_the_uncertainty_of_a_mean_is_what_means_scatter_by(memory_readings: float) -> None:
    rng = np.random.default_rng(8)
    errors, claimed = [], []
    for _ in range(150):
        noise = autoregressive(rng, 600, 0.5, memory_readings) if memory_readings else white(rng, 600, 0.5)
        mean, sigma = mean_and_sigma(TIMES, 40 + noise, None)
        errors.append(mean - 40)
        claimed.append(sigma)
    scatter = float(np.std(errors))
    assert 0.8 * scatter <= np.sqrt(np.mean(np.square(claimed))) <= 1.8 * scatter


def test_quantisation_of_a_mean_is_bounded_by_what_it_does() -> None:
    rng = np.random.default_rng(9)
    for noise in (0.0, 0.02, 0.1, 0.2, 0.4, 1.0):
        within = []
        for level in rng.uniform(40, 41, 200):
            readings = quantised(level + white(rng, 400, noise), 1.0)
            sigma = quantisation_sigma(readings, 1.0)
            within.append(abs(readings.mean() - level) <= 2 * sigma + 3 * noise / 20 + 1e-9)
        assert np.mean(within) >= 0.95, noise
    assert quantisation_sigma(np.full(50, 40.0), 1.0) == pytest.approx(1 / math.sqrt(12))
    assert quantisation_sigma(np.full(50, 40.0), None) == 0.0


def test_much_noise_leaves_no_quantisation() -> None:
    readings = quantised(40.3 + white(np.random.default_rng(10), 2000, 1.0), 1.0)
    assert quantisation_sigma(readings, 1.0) < 1e-3


def test_block_means_keep_milliseconds_of_unix_time() -> None:
    at, level = block_means(TIMES, counting(600), 100)
    assert at[0] == EPOCH + 2.5
    assert level[0] == 2.5
    assert at.size == 100
