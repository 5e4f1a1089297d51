"""What becomes of readings and of stretches of time before they are drawn."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pytest_thermal.model.series import FloatArray, Series
from pytest_thermal.reporting.run_page.spans import HOLE_TICKS
from pytest_thermal.reporting.run_page.thinning import least_and_most, with_breaks

POINTS = 700
"""Pixels across a picture: the least and the most of each is all that it can show."""

Spans = tuple[tuple[float, float], ...]
"""Start and end of each stretch, in seconds."""


def drawn(series: Series, start_seconds: float, end_seconds: float) -> tuple[FloatArray, FloatArray]:
    """Times and values to draw: NaN where readings are missing; of many, the least and the most of each pixel.

    One reading more on either side, so that the curve reaches the picture's edge.
    """
    low, high = np.searchsorted(series.time_seconds, (start_seconds, end_seconds))
    part = slice(max(int(low) - 1, 0), int(high) + 1)
    times, values = series.time_seconds[part], series.values[part]
    if times.size <= 3 * POINTS:
        return with_breaks(times, values, most_seconds=HOLE_TICKS * series.period_seconds)
    first, step = float(times[0]), float(times[-1] - times[0]) / POINTS
    both = least_and_most(times - first, values, step_seconds=step, count=POINTS + 1)
    return first + (np.arange(both.size) // 2 + np.tile((0.25, 0.75), POINTS + 1)) * step, both


def joined(spans: Iterable[tuple[float, float]], start_seconds: float, end_seconds: float) -> Spans:
    """In order, cut to what is shown, those that touch or lie less than a pixel apart as one."""
    apart = (end_seconds - start_seconds) / POINTS
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        low, high = max(start, start_seconds), min(end, end_seconds)
        if low >= high:
            continue
        if found and low - found[-1][1] <= apart:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)
