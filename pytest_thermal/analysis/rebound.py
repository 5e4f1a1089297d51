"""Whether a temperature comes back up while it should only fall."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.noise import noise_sigma, resolution_of
from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.model.said import say
from pytest_thermal.model.series import BoolArray, Figure, FloatArray, Phase, Series

LEAST_RISE = 2.0
"""°C, and"""
LEAST_SECONDS = 30.0
"""s: what counts as sustained."""
SMOOTHED_SECONDS = 15.0
LEAST_READINGS = 3
SIGMAS = 6.0
"""Noise of the smoothed readings that a rise must exceed: over a day of readings chance reaches five."""
POWER_BACK = 1.2
"""Power above this times what it had fallen to is a load that came back, and no fault of the loop."""


@dataclass(frozen=True, kw_only=True)
class Rebound:
    """Whether a temperature rose again in cooldown."""

    found: Answer
    rise: Figure
    """The highest sustained rise above the running minimum, in the sensor's unit; 0 when there is none."""
    reason: str


def find_rebound(
    series: Series,
    phase: Phase,
    *,
    power: Series | None = None,
    least_rise: float = LEAST_RISE,
    least_seconds: float = LEAST_SECONDS,
) -> Rebound:
    """Look for a sustained rise above the running minimum while the load is off.

    Args:
        series: A temperature, spikes taken out.
        phase: Cooldown.
        power: Of the same device; a rise that goes with power is no rebound, and the answer is UNKNOWN.
        least_rise: In the sensor's unit; raised where noise or resolution could feign as much: to two steps of the
            sensor, or six standard deviations of the smoothed readings.
        least_seconds: How long it must last, by three readings or more.

    e(t) = m(t) − min over s ≤ t of m(s), m being the mean over 15 s. A passive network of heat capacities whose power
    only falls cools monotonically at the heated place; a lasting rise means heat that arrives later than it should,
    or flow that has changed. Own definition.
    """
    times, values = series.during(phase).readings()
    unit = str(series.sensor.unit)
    if times.size < 2 * LEAST_READINGS or times[-1] - times[0] < 2 * least_seconds:
        why = say(
            "{size} readings over {ptp:.0f} s of {phase_name} are too few",
            size=times.size,
            ptp=np.ptp(times) if times.size else 0,
            phase_name=phase.name,
        )
        return Rebound(found=Answer.UNKNOWN, rise=Figure.missing("rebound", unit, why), reason=why)
    width = max(round(SMOOTHED_SECONDS / series.period_seconds), 1)
    smooth_times, smooth = _running_mean(times, values, width)
    excess = smooth - np.minimum.accumulate(smooth)
    threshold = max(least_rise, 2 * (resolution_of(series) or 0.0), SIGMAS * noise_sigma(values) / math.sqrt(width))
    begin, end = _longest_sustained(smooth_times, excess >= threshold, least_seconds)
    detail = {"threshold": threshold, "least_seconds": least_seconds, "phase": phase.name}
    if begin == end:
        none = Figure(name="rebound", value=0.0, unit=unit, uncertainty=threshold / 2, detail=detail)
        return Rebound(found=Answer.NO, rise=none, reason="")
    top = float(np.quantile(excess[begin:end], 0.9))
    since = float(smooth_times[begin])
    detail |= {"start_seconds": since, "lasted_seconds": float(smooth_times[end - 1] - since)}
    figure = Figure(
        name="rebound", value=top, unit=unit, uncertainty=noise_sigma(values) / math.sqrt(width), detail=detail
    )
    what = say(
        "{top:.1f} °C above its minimum {since:.0f} s into {phase_name}",
        top=top,
        since=since - phase.start_seconds,
        phase_name=phase.name,
    )
    if power is not None and _power_came_back(power, phase, since, float(smooth_times[end - 1])):
        return Rebound(found=Answer.UNKNOWN, rise=figure, reason=say("{what}, while the power was up again", what=what))
    return Rebound(found=Answer.YES, rise=figure, reason=what)


def _running_mean(times: FloatArray, values: FloatArray, width: int) -> tuple[FloatArray, FloatArray]:
    if width <= 1 or values.size < 2 * width:
        return times, values
    total = np.cumsum(np.concatenate(([0.0], values - values[0])))
    smooth = (total[width:] - total[:-width]) / width + values[0]
    return times[width - 1 :], np.asarray(smooth)


def _longest_sustained(times: FloatArray, above: BoolArray, seconds: float) -> tuple[int, int]:
    starts, ends = runs_of(above)
    if starts.size == 0:
        return 0, 0
    lasted = times[ends - 1] - times[starts]
    enough = (lasted >= seconds) & (ends - starts >= LEAST_READINGS)
    if not enough.any():
        return 0, 0
    best = int(np.argmax(np.where(enough, lasted, -1.0)))
    return int(starts[best]), int(ends[best])


def _power_came_back(power: Series, phase: Phase, since: float, until: float) -> bool:
    """Whether power in the rise stands well above the median of the cooldown before it."""
    _, before = power.between(phase.start_seconds, since).readings()
    _, after = power.between(since - SMOOTHED_SECONDS, until).readings()
    if before.size == 0 or after.size == 0:
        return False
    fallen = float(np.quantile(before, 0.25))
    return float(np.median(after)) > POWER_BACK * fallen + 2 * noise_sigma(before)
