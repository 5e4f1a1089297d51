"""Fewer points lose no peak, no order, and no hole."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.reporting.run_page.thinning import least_and_most, step_for, with_breaks


def test_least_and_most_of_each_stretch_in_the_order_in_which_they_came() -> None:
    times = np.arange(12.0, dtype=np.float64)
    values = np.array([1.0, 9.0, 2.0, 3.0, 8.0, 4.0, 1.0, 5.0, 7.0, 7.0, 7.0, 7.0])
    assert least_and_most(times, values, step_seconds=4, count=3).tolist() == [1.0, 9.0, 8.0, 1.0, 7.0, 7.0]


def test_one_reading_among_a_day_survives() -> None:
    times, values = np.arange(86_400.0, dtype=np.float64), np.full(86_400, 40.0)
    values[54_321] = 95.0
    found = least_and_most(times, values, step_seconds=60, count=1440)
    assert np.flatnonzero(found == 95.0).tolist() == [2 * (54_321 // 60) + 1]
    assert np.nanmin(found) == 40.0


def test_a_stretch_without_a_reading_is_missing_and_no_other() -> None:
    times, values = np.arange(40.0, dtype=np.float64), np.arange(40.0, dtype=np.float64)
    values[10:20] = np.nan
    values[25] = np.nan
    found = least_and_most(times, values, step_seconds=10, count=5)
    assert np.isnan(found).tolist() == [False, False, True, True, False, False, False, False, True, True]
    assert found[4:6].tolist() == [20.0, 29.0]


def test_rows_that_are_not_there_are_missing_too() -> None:
    found = least_and_most(np.array([0.0, 1.0, 30.0]), np.array([5.0, 6.0, 7.0]), step_seconds=10, count=4)
    assert found[:2].tolist() == [5.0, 6.0]
    assert np.isnan(found[2:6]).all()
    assert found[6:].tolist() == [7.0, 7.0]


def test_readings_outside_are_left_out() -> None:
    found = least_and_most(np.array([-1.0, 5.0, 20.0]), np.array([99.0, 1.0, 99.0]), step_seconds=10, count=1)
    assert found.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "seconds, curves, most, step", [(86_400, 144, 3_000_000, 10), (3600, 10, 10**6, 1), (10**7, 100, 1000, 2_001_600)]
)
def test_the_step_keeps_within_the_points(seconds: float, curves: int, most: int, step: float) -> None:
    assert step_for(seconds, curves, most) == step
    assert 2 * seconds / step * curves <= most


def test_a_hole_between_rows_breaks_the_curve() -> None:
    times, values = with_breaks(np.array([0.0, 5.0, 20.0, 25.0]), np.array([1.0, 2.0, 3.0, 4.0]), most_seconds=8.75)
    assert times.tolist() == [0.0, 5.0, 12.5, 20.0, 25.0]
    assert np.isnan(values).tolist() == [False, False, True, False, False]
