from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.coverage import measure_coverage
from pytest_thermal.model.series import Phase
from tests.analysis.signals import EPOCH, Floats, series, ticks, with_gap, with_lost

PHASE = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 600)
TIMES = ticks(600)


def covered(times: Floats, values: Floats, period: float = 1.0) -> tuple[float, float, Answer, str]:
    found = measure_coverage(series(times, values, period=period), PHASE)
    assert found.coverage.value is not None
    assert found.longest_gap.value is not None
    return found.coverage.value, found.longest_gap.value, found.complete, found.reason


def test_a_whole_phase_is_covered() -> None:
    assert covered(TIMES, np.full(600, 40.0)) == (1.0, 1.0, Answer.YES, "")


def test_readings_of_other_phases_do_not_count() -> None:
    times = ticks(1200) - 300
    values = np.where((times >= PHASE.start_seconds) & (times < PHASE.start_seconds + 300), np.nan, 40.0)
    share, gap, complete, _ = covered(times, values)
    assert (share, gap, complete) == (0.5, 300.0, Answer.NO)


def test_a_hole_of_five_ticks_passes_and_one_of_seven_does_not() -> None:
    assert covered(TIMES, with_gap(np.full(600, 40.0), TIMES, 100, 4))[1:3] == (5.0, Answer.YES)
    _, gap, complete, reason = covered(TIMES, with_gap(np.full(600, 40.0), TIMES, 100, 6))
    assert (gap, complete) == (7.0, Answer.NO)
    assert reason == "no reading for 7 s, 7 ticks"


def test_rows_that_are_not_there_at_all_are_missed_too() -> None:
    there = np.ones(600, dtype=bool)
    there[::10] = False
    share, gap, complete, reason = covered(TIMES[there], np.full(540, 40.0))
    assert (share, gap, complete) == (0.9, 2.0, Answer.NO)
    assert "540 of 600" in reason


def test_many_lost_readings_fail_without_any_long_gap() -> None:
    share, gap, complete, _ = covered(TIMES, with_lost(np.random.default_rng(15), np.full(600, 40.0), 0.08))
    assert share < 0.95
    assert gap <= 5
    assert complete is Answer.NO


@pytest.mark.parametrize("start, length", [(0, 30), (570, 30)])
def test_the_edges_of_a_phase_count(start: float, length: float) -> None:
    _, gap, complete, _ = covered(TIMES, with_gap(np.full(600, 40.0), TIMES, start, length))
    assert gap >= 30
    assert complete is Answer.NO


def test_nothing_at_all_is_one_gap() -> None:
    share, gap, complete, _ = covered(np.empty(0), np.empty(0))
    assert (share, gap, complete) == (0.0, 600.0, Answer.NO)


def test_late_readings_are_no_gap_and_more_than_due_is_not_more_than_whole() -> None:
    late = TIMES + np.random.default_rng(16).uniform(0, 0.4, 600)
    assert covered(late, np.full(600, 40.0))[2] is Answer.YES
    twice = ticks(1200, 0.5)
    assert covered(twice, np.full(1200, 40.0))[0] == 1.0


def test_a_clock_that_jumped_ahead_shows_as_a_gap() -> None:
    jumped = np.where(np.arange(600) < 300, TIMES, TIMES + 60)
    _, gap, complete, _ = covered(jumped, np.full(600, 40.0))
    assert gap == 61.0
    assert complete is Answer.NO


def test_uneven_steps_about_the_period_are_covered() -> None:
    times = EPOCH + np.cumsum(np.random.default_rng(17).uniform(5, 15, 60)) - 5
    times = times[times < PHASE.end_seconds]
    assert covered(times, np.full(times.size, 40.0), period=10.0)[2] is Answer.YES
