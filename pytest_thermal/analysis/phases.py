"""The phases of a log that has none: from utilisation or power, else from the temperature's own shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.noise import block_means, noise_sigma, resolution_of
from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import BoolArray, FloatArray, Phase, Series

LEAST_SECONDS = 60.0
"""A load shorter than this, or a pause shorter than this in it, is none."""
LEAST_BASELINE_READINGS = 5
LEAST_LOADED_READINGS = 20
MOST_OTHER_LOAD = 0.25
"""Other loaded stretches, as a share of the longest: with more, the log is no single cycle."""
LEAST_UTILIZATION_STEP = 30.0
"""Percent between idle and loaded."""
LEAST_POWER_STEP = 0.3
"""Between idle and loaded, as a share of idle."""
LEAST_RISE = 8.0
"""°C between idle and loaded."""
EDGE = 0.08
"""Of the rise: a temperature this near to where it stood has not left it yet."""
RAMP_SHARE = 0.9
"""The ramp ends when this share of the rise is done,"""
RAMP_MOST = 0.5
"""and at this share of the loaded time at the latest."""
SUDDEN = 0.35
"""A load heats by half of the rise within this share of the loaded time; what takes longer is the room, or a trend."""


@dataclass(frozen=True, kw_only=True)
class DetectedPhases:
    """Phases found in a log; none, with the reason, where they cannot be told."""

    phases: tuple[Phase, ...]
    """Baseline, ramp and steady; and cooldown where the log goes on long enough."""
    origin: str
    """``utilization``, ``power`` or ``temperature``; empty where there are none."""
    reason: str
    """Why there are none; empty where there are."""


@dataclass(frozen=True, kw_only=True)
class _Loaded:
    start: float
    end: float
    before: float
    """Since when the device had been idle."""
    after: float
    """Until when it stayed idle."""


def detect_phases(
    temperature: Series, *, utilization: Series | None = None, power: Series | None = None
) -> DetectedPhases:
    """Find baseline, ramp, steady and cooldown in a log.

    Args:
        temperature: The hottest or the most loaded device's.
        utilization: Of the same device, percent.
        power: Of the same device, watts.

    The load is where the signal stands above the threshold that best parts it in two (Otsu, "A threshold selection
    method from gray-level histograms", IEEE Trans. Syst. Man Cybern. 9 (1979)), pauses of under a minute filled in.
    It must differ clearly from idle, and there must be one such stretch; a temperature must also leave its baseline
    and its hot level as suddenly as a load does. The ramp lasts until 90 % of the rise, at most half of the load.
    Refused where there is no baseline, no or more than one load, or no clear step.
    """
    if temperature.sensor.unit is not Unit.CELSIUS:
        raise ValueError(say("{sensor} is no temperature", sensor=temperature.sensor.id))
    why: list[str] = []
    for name, series in (("utilization", utilization), ("power", power)):
        if series is None:
            continue
        found = _by_drive(series, name)
        if isinstance(found, _Loaded):
            return _divided(found, temperature, name)
        why.append(say("{name}: {found}", name=name, found=found))
    if utilization is None and power is None:
        found = _by_temperature(temperature)
        if isinstance(found, _Loaded):
            return _divided(found, temperature, "temperature")
        why.append(say("temperature: {found}", found=found))
    return DetectedPhases(phases=(), origin="", reason=joined("; ", why))


def _divided(loaded: _Loaded, temperature: Series, origin: str) -> DetectedPhases:
    hot = temperature.between(loaded.start, loaded.end)
    baseline = temperature.between(loaded.before, loaded.start)
    if np.count_nonzero(baseline.present) < LEAST_BASELINE_READINGS:
        return DetectedPhases(
            phases=(), origin="", reason=say("{origin}: the log has no baseline before the load", origin=origin)
        )
    if np.count_nonzero(hot.present) < LEAST_LOADED_READINGS:
        return DetectedPhases(phases=(), origin="", reason=say("{origin}: too few readings under load", origin=origin))
    split = loaded.start + _ramp_seconds(hot, float(np.nanmedian(baseline.values)), loaded.end - loaded.start)
    phases = [
        Phase(name="baseline", start_seconds=loaded.before, end_seconds=loaded.start),
        Phase(name="ramp", start_seconds=loaded.start, end_seconds=split),
        Phase(name="steady", start_seconds=split, end_seconds=loaded.end),
    ]
    if np.count_nonzero(temperature.between(loaded.end, loaded.after).present) >= LEAST_BASELINE_READINGS:
        phases.append(Phase(name="cooldown", start_seconds=loaded.end, end_seconds=loaded.after))
    return DetectedPhases(phases=tuple(phases), origin=origin, reason="")


def _ramp_seconds(hot: Series, baseline: float, length: float) -> float:
    times, values = hot.readings()
    end = float(np.median(values[-max(values.size // 10, 3) :]))
    reached = np.flatnonzero((values - baseline) * np.sign(end - baseline) >= RAMP_SHARE * abs(end - baseline))
    until = float(times[reached[0]] - times[0]) if reached.size else length
    return min(max(until, hot.period_seconds), RAMP_MOST * length)


# ------------------------------------------------------------------------------------------ utilisation or power


def _by_drive(series: Series, name: str) -> _Loaded | str:
    times, values = series.readings()
    if times.size < LEAST_LOADED_READINGS:
        return say("{size} readings are too few", size=times.size)
    threshold, low, high = _two_levels(values)
    least = LEAST_UTILIZATION_STEP if name == "utilization" else max(LEAST_POWER_STEP * low, 1.0)
    if high - low < least:
        return say("no clear step between idle ({low:.0f}) and load ({high:.0f})", low=low, high=high)
    return _one_stretch(times, values > threshold, series.period_seconds)


def _two_levels(values: FloatArray) -> tuple[float, float, float]:
    """Otsu's threshold of ``values`` (n,), and the medians below and above it."""
    edges = np.linspace(float(values.min()), float(values.max()), 129)
    if edges[0] == edges[-1]:
        return float(edges[0]), float(edges[0]), float(edges[0])
    counts = np.histogram(values, edges)[0].astype(np.float64)
    middles = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)[:-1]
    above = counts.sum() - below
    moment = np.cumsum(counts * middles)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = moment[:-1] / below - (moment[-1] - moment[:-1]) / above
    between = np.where((below > 0) & (above > 0), below * above * gap**2, 0.0)
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))
    threshold = float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)
    return threshold, float(np.median(values[values <= threshold])), float(np.median(values[values > threshold]))


def _one_stretch(times: FloatArray, loaded: BoolArray, period: float) -> _Loaded | str:
    """The one loaded stretch; shape (n,) for both arrays."""
    shortest = max(LEAST_SECONDS, 2 * period)
    starts, ends = runs_of(loaded)
    if starts.size == 0:
        return say("no load")
    bounds = np.append(times, times[-1] + period)
    begin, until = bounds[starts].tolist(), bounds[ends].tolist()
    merged = [[begin[0], until[0]]]
    for start, end in zip(begin[1:], until[1:], strict=True):
        if start - merged[-1][1] < shortest:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    stretches = [(start, end) for start, end in merged if end - start >= shortest]
    if not stretches:
        return say("no load that lasts for a minute")
    start, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    others = sum(b - a for a, b in stretches) - (end - start)
    if others > MOST_OTHER_LOAD * (end - start):
        return say("{count} loads, none of which stands out", count=len(stretches))
    before = max((b for a, b in stretches if b <= start), default=float(times[0]))
    after = min((a for a, b in stretches if a >= end), default=float(bounds[-1]))
    return _Loaded(start=start, end=end, before=before, after=after)


# ------------------------------------------------------------------------------------------------- temperature


def _by_temperature(series: Series) -> _Loaded | str:
    times, values = series.readings()
    if times.size < LEAST_LOADED_READINGS:
        return say("{size} readings are too few", size=times.size)
    period = float(np.median(np.diff(times)))
    width = max(round(10.0 / period), 1)
    smooth_times, smooth = block_means(times, values, max(times.size // width, LEAST_LOADED_READINGS))
    threshold, low, high = _two_levels(smooth)
    rise = high - low
    noise = noise_sigma(values) / math.sqrt(width)
    step = resolution_of(series) or 0.0
    if rise < max(LEAST_RISE, 8 * noise, 4 * step):
        return say("it moves by {rise:.1f} °C only, no clear load", rise=rise)
    stretch = _one_stretch(smooth_times, smooth > threshold, period * width)
    if isinstance(stretch, str):
        return stretch
    near = max(EDGE * rise, 4 * noise, 1.01 * step)
    started, ended = _edges(smooth_times, smooth, stretch, near)
    if started is None:
        return say("the log has no baseline before the load")
    loaded = ended - started
    before = smooth[smooth_times <= started]
    if before.size >= 3 and float(np.ptp(before)) > 0.5 * rise:
        return say("what comes before the load is no baseline: it moves by half of the rise")
    crossed = float(smooth_times[np.flatnonzero((smooth > threshold) & (smooth_times >= started))[0]])
    if crossed - started > max(SUDDEN * loaded, 2 * period * width):
        return say("it rises too slowly for a load that was switched on")
    return _Loaded(start=started, end=ended, before=stretch.before, after=stretch.after)


def _edges(times: FloatArray, smooth: FloatArray, stretch: _Loaded, near: float) -> tuple[float | None, float]:
    """When the temperature left its baseline, and when it left its hot level."""
    baseline = (times < stretch.start) & (times >= stretch.before)
    if np.count_nonzero(baseline) < 3:
        return None, stretch.end
    # Both sides of an edge reach to the half-way level: the quantiles leave the flank itself out.
    cold = float(np.quantile(smooth[baseline], 0.2))
    still = np.flatnonzero(baseline & (smooth <= cold + near))
    inside = np.flatnonzero((times >= stretch.start) & (times < stretch.end))
    hot = float(np.quantile(smooth[inside][-max(inside.size * 2 // 5, 3) :], 0.8))
    last = inside[np.flatnonzero(smooth[inside] >= hot - near)[-1]]
    falls = bool(last + 1 < times.size)
    return (float(times[still[-1]]) if still.size else None), float(times[last]) if falls else stretch.end
