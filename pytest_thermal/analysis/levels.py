"""Baseline, steady, rise and peak."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from pytest_thermal.analysis.noise import UNIFORM_SIGMA, mean_and_sigma, resolution_of
from pytest_thermal.analysis.windows import level_window
from pytest_thermal.model.said import say
from pytest_thermal.model.series import BoolArray, Figure, Phase, Series

LEAST_READINGS = 3
LEAST_STRETCHES, MOST_STRETCHES = 5, 10
SETTLED_SHARE = 0.6
"""Of a hot phase, in which it is no longer so bent that its bend would be taken for scatter."""


def unit_of(series: Series) -> str:
    """The unit of a figure in the sensor's own unit."""
    return str(series.sensor.unit)


def level(series: Series, phase: Phase) -> Figure:
    """Mean of the stretch that stands for a phase (``windows.level_window``), in the sensor's unit.

    The uncertainty (``noise.mean_and_sigma``) allows for correlated noise and for the resolution; not for the
    sensor's calibration, which cancels in a rise. Where the phase holds five such stretches or more, it is at least
    what their means scatter by, which shows slower unrest than one stretch can: from second differences,
    σ² = mean((m₋ − 2m + m₊)²)/6, in which a steady slope has no part. None for fewer than three readings.
    """
    start, end = level_window(phase)
    times, values = series.between(start, end).readings()
    count = values.size
    detail = {"phase": phase.name, "start_seconds": start, "end_seconds": end, "readings": count}
    if count < LEAST_READINGS:
        why = say(
            "{count} readings in the last {end:.0f} s of {phase_name}, needs {least_readings}",
            count=count,
            end=end - start,
            phase_name=phase.name,
            least_readings=LEAST_READINGS,
        )
        return Figure(name=phase.name, value=None, unit=unit_of(series), reason=why, detail=detail)
    mean, sigma = mean_and_sigma(times, values, resolution_of(series))
    sigma = max(sigma, _scatter_of_stretches(series, phase, end - start))
    return Figure(name=phase.name, value=mean, unit=unit_of(series), uncertainty=sigma, detail=detail)


def _scatter_of_stretches(series: Series, phase: Phase, length: float) -> float:
    share = 1.0 if phase.name == "baseline" else SETTLED_SHARE
    count = min(int(phase.duration_seconds * share / length + 1e-9), MOST_STRETCHES) if length > 0 else 0
    if count < LEAST_STRETCHES:
        return 0.0
    borders = phase.end_seconds - length * np.arange(count, -1, -1)
    parts = [series.between(low, high).readings()[1] for low, high in pairwise(borders.tolist())]
    means = np.array([float(part.mean()) for part in parts if part.size >= LEAST_READINGS])
    if means.size < LEAST_STRETCHES:
        return 0.0
    return math.sqrt(float(np.mean(np.diff(means, 2) ** 2)) / 6)


def rise(baseline: Figure, hot: Figure) -> Figure:
    """Level of a hot phase (steady or limit) minus the baseline, in their unit: u = √(u_hot² + u_baseline²), GUM."""
    if baseline.value is None or hot.value is None:
        return Figure.missing("rise", hot.unit, baseline.reason or hot.reason)
    return Figure(
        name="rise",
        value=hot.value - baseline.value,
        unit=hot.unit,
        uncertainty=math.hypot(hot.uncertainty or 0.0, baseline.uncertainty or 0.0),
        detail={"baseline": baseline.value, hot.name: hot.value},
    )


def peak(series: Series, rejected: BoolArray | None = None) -> Figure:
    """The highest plausible reading, in the sensor's unit, with the time it was read at.

    Args:
        series: All that is to be looked at (``series.during(phase)`` for one phase).
        rejected: Readings that are no temperature, such as the spikes found by ``health.check_health``; shape (n,).

    The uncertainty is that of rounding, q/√12. ``detail`` has what was left out and the highest of it, so that no
    overheating is hidden by calling it a spike.
    """
    values = series.values
    if rejected is not None and rejected.any():
        left_out = values[rejected & series.present]
        values = np.where(rejected, np.nan, values)
    else:
        left_out = values[:0]
    highest = float(np.fmax.reduce(values, initial=-np.inf))
    if highest == -np.inf:
        return Figure.missing("peak", unit_of(series), say("no plausible reading"))
    top = int(np.argmax(values == highest))
    step = resolution_of(series)
    return Figure(
        name="peak",
        value=highest,
        unit=unit_of(series),
        uncertainty=None if step is None else step * UNIFORM_SIGMA,
        detail={
            "time_seconds": float(series.time_seconds[top]),
            "rejected": int(left_out.size),
            "highest_rejected": float(left_out.max()) if left_out.size else None,
        },
    )
