"""Readings that are there and say ``ok``, and yet may be old: no change where the sensor itself, or the load, moved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.model.series import Series

LEAST_READINGS, LEAST_SECONDS = 20, 60.0
"""Of a standstill: shorter ones say nothing."""
LEAST_REVERSALS = 10
"""A sensor has to have gone up and down again so many times before it is one that wavers."""
BY_CHANCE = 1e-6
"""How likely a standstill may at most be, for a sensor that wavers as often as it did."""
BESIDE_READINGS = 30


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """A stretch with exactly the same reading throughout."""

    start_seconds: float
    end_seconds: float
    value: float


def held(series: Series, start_seconds: float, end_seconds: float) -> Standstill | None:
    """The one reading that was given through all of a stretch; None where there were two, or too few to tell."""
    times, values = series.between(start_seconds, end_seconds).readings()
    if times.size < LEAST_READINGS or times[-1] - times[0] < LEAST_SECONDS or (values != values[0]).any():
        return None
    return Standstill(start_seconds=float(times[0]), end_seconds=float(times[-1]), value=float(values[0]))


def stopped_wavering(series: Series) -> Standstill | None:
    """The longest standstill of a sensor that wavers all the time otherwise; None where there is none.

    For speeds, flows and pressures, which a control holds at a level and whose readings then still go up and down by a
    step or more. With p, how often a reading turned back on the one before, n equal readings in a row have the chance
    (1-p)^n; own criterion: below 1e-6. A level that was not among the readings beside it is another level (a fan at
    its full speed), and 0 is a standstill of the thing itself.
    """
    times, values = series.readings()
    if values.size < 2 * LEAST_READINGS:
        return None
    steps = np.diff(values)
    first, last = runs_of(steps == 0)
    if not first.size:
        return None
    longest = int(np.argmax(times[last] - times[first]))
    low, high = int(first[longest]), int(last[longest])
    found = Standstill(start_seconds=float(times[low]), end_seconds=float(times[high]), value=float(values[low]))
    count = high - low + 1
    if found.value == 0 or count < LEAST_READINGS or found.end_seconds - found.start_seconds < LEAST_SECONDS:
        return None
    outside = np.concatenate([steps[:low], steps[high:]])
    moves = np.sign(outside[outside != 0])
    reversals = int(np.count_nonzero(moves[1:] != moves[:-1]))
    if reversals < LEAST_REVERSALS:
        return None
    share = min(reversals / outside.size, 0.999)
    if count * math.log1p(-share) > math.log(BY_CHANCE):
        return None
    beside = values[max(low - BESIDE_READINGS, 0) : low]
    if beside.size < LEAST_REVERSALS:
        beside = values[high + 1 : high + 1 + BESIDE_READINGS]
    return found if beside.size and float(beside.min()) <= found.value < float(beside.max()) else None
