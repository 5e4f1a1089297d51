"""What becomes of readings before they are drawn: fewer points, gaps as gaps, when devices slowed themselves down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pytest_thermal.analysis import ThrottleKind, kind_of
from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.findings.devices import throttle_reasons
from pytest_thermal.model import Unit
from pytest_thermal.model.series import FloatArray, Series
from pytest_thermal.recording import Recording

POINTS = 700
"""Pixels across a picture: two points for each say all that it can show."""
HOLE_TICKS = 1.75
"""Two rows further apart than so many periods have a lost one between them; a reading may be late by less."""
MOST_SPANS = 200
"""Of one kind in one picture; more are less than a pixel each."""

Spans = tuple[tuple[float, float], ...]
"""Start and end of each stretch, in seconds."""


def drawn(series: Series, start_seconds: float, end_seconds: float) -> tuple[FloatArray, FloatArray]:
    """Times and values to draw: NaN where readings are missing, and of many readings the least and most of each group.

    One reading more on either side, so that the curve reaches the picture's edge.
    """
    low, high = np.searchsorted(series.time_seconds, (start_seconds, end_seconds))
    part = slice(max(int(low) - 1, 0), int(high) + 1)
    times, values = series.time_seconds[part], series.values[part]
    holes = np.flatnonzero(np.diff(times) > HOLE_TICKS * series.period_seconds)
    if holes.size:
        between = (times[holes] + times[holes + 1]) / 2
        times, values = np.insert(times, holes + 1, between), np.insert(values, holes + 1, np.nan)
    return thinned(times, values, POINTS)


def thinned(times: FloatArray, values: FloatArray, points: int) -> tuple[FloatArray, FloatArray]:
    """The first least and the first most of each of ``points`` groups, in the order in which they came.

    A group in which a value is missing keeps that break; no peak and no dip is lost.
    """
    if times.size <= 3 * points:
        return times, values
    starts = np.unique(np.linspace(0, times.size, points, endpoint=False).astype(np.intp))
    group = np.repeat(np.arange(starts.size), np.diff(starts, append=times.size))
    missing = np.isnan(values)
    kept = [starts]  # the first of each group, whatever it is, so that the line has an end at each break
    for filled, reduce in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        full = np.where(missing, filled, values)
        extreme = reduce.reduceat(full, starts)
        found = np.flatnonzero((full == extreme[group]) & ~missing)
        _, first = np.unique(group[found], return_index=True)
        kept.append(found[first])
    _, first = np.unique(group[missing], return_index=True)
    kept.append(np.flatnonzero(missing)[first])
    index = np.unique(np.concatenate(kept))
    return times[index], values[index]


def missing_spans(series: Sequence[Series], start_seconds: float, end_seconds: float) -> Spans:
    """Stretches in which at least one of these sensors has no reading, within the given ones."""
    found: list[tuple[float, float]] = []
    for one in series:
        times, period = one.time_seconds, one.period_seconds
        if times.size == 0:
            found.append((start_seconds, end_seconds))
            continue
        for first, after in zip(*runs_of(np.isnan(one.values)), strict=True):
            end = times[after] if after < times.size else times[-1] + period
            found.append((float(times[first]), float(end)))
        holes = np.flatnonzero(np.diff(times) > HOLE_TICKS * period)
        found += [(float(times[hole] + period), float(times[hole + 1])) for hole in holes]
        if times[0] - start_seconds > HOLE_TICKS * period:
            found.append((start_seconds, float(times[0])))
        if end_seconds - times[-1] > HOLE_TICKS * period:
            found.append((float(times[-1] + period), end_seconds))
    return joined(found, start_seconds, end_seconds)


def throttled(recording: Recording, device: str, kind: ThrottleKind, start_seconds: float, end_seconds: float) -> Spans:
    """When a device slowed itself down for a reason of that kind: between the readings that say so."""
    found: list[tuple[float, float]] = []
    for reason, series in throttle_reasons(device, recording.series).items():
        if kind_of(reason) is not kind:
            continue
        times, values = series.readings()
        if times.size < 2:
            continue
        counts = series.sensor.unit is Unit.MILLISECONDS
        active = np.diff(values) > 0 if counts else values[:-1] > 0
        for first, after in zip(*runs_of(active), strict=True):
            found.append((float(times[first]), float(times[after])))
    return joined(found, start_seconds, end_seconds)


def joined(spans: Iterable[tuple[float, float]], start_seconds: float, end_seconds: float) -> Spans:
    """In order, cut to what is shown, those that touch or lie less than a pixel apart as one."""
    apart = (end_seconds - start_seconds) / POINTS
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        start, end = max(start, start_seconds), min(end, end_seconds)  # noqa: PLW2901 - cut to the picture
        if start >= end:
            continue
        if found and start - found[-1][1] <= apart:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found[:MOST_SPANS])
