"""Fewer points where there are too many: the least and the most of each stretch of time, so that no peak is lost."""

from __future__ import annotations

import numpy as np

from pytest_thermal.model.series import FloatArray

STEPS_SECONDS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600)


def least_and_most(time_seconds: FloatArray, values: FloatArray, *, step_seconds: float, count: int) -> FloatArray:
    """Two values for each of ``count`` stretches from time 0 on, shape (2·count,): in the order in which they came.

    NaN, NaN for a stretch without a value. Readings before 0 or after the last stretch are left out.
    """
    found = np.full(2 * count, np.nan)
    inside = ~np.isnan(values) & (time_seconds >= 0) & (time_seconds < count * step_seconds)
    there = values[inside]
    if there.size == 0:
        return found
    stretch = (time_seconds[inside] / step_seconds).astype(np.int64)
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    lengths = np.diff(starts, append=stretch.size)
    least, most = np.minimum.reduceat(there, starts), np.maximum.reduceat(there, starts)
    place = np.arange(there.size)
    first_least = np.minimum.reduceat(np.where(there == np.repeat(least, lengths), place, there.size), starts)
    first_most = np.minimum.reduceat(np.where(there == np.repeat(most, lengths), place, there.size), starts)
    falling = first_most < first_least
    index = 2 * stretch[starts]
    found[index] = np.where(falling, most, least)
    found[index + 1] = np.where(falling, least, most)
    return found


def step_for(duration_seconds: float, curves: int, most_points: int) -> float:
    """The shortest stretch, of those that people count in, that keeps all curves within so many points."""
    needed = 2 * duration_seconds * curves / most_points
    for step in STEPS_SECONDS:
        if step >= needed:
            return float(step)
    return float(np.ceil(needed / 3600) * 3600)


def next_step(step_seconds: float) -> float:
    """The next longer one."""
    return float(next((step for step in STEPS_SECONDS if step > step_seconds), 2 * step_seconds))


def with_breaks(time_seconds: FloatArray, values: FloatArray, *, most_seconds: float) -> tuple[FloatArray, FloatArray]:
    """A missing value put into each hole: where two rows lie further apart than ``most_seconds``."""
    holes = np.flatnonzero(np.diff(time_seconds) > most_seconds)
    if holes.size == 0:
        return time_seconds, values
    between = (time_seconds[holes] + time_seconds[holes + 1]) / 2
    return np.insert(time_seconds, holes + 1, between), np.insert(values, holes + 1, np.nan)
