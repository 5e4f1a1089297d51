"""Readings of a run that cannot be true, whoever wrote them down: they become missing, with that reason."""

from __future__ import annotations

import math

import numpy as np

from pytest_thermal.model import Missing, Sensor
from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording.recording import MissingStretch
from pytest_thermal.sensors.plausibility import EXACT_BLANKS, implausible

_BLANKS = np.array(EXACT_BLANKS)


def only_plausible(
    sensor: Sensor, time_seconds: FloatArray, values: FloatArray
) -> tuple[FloatArray, list[MissingStretch]]:
    """Values of one sensor without implausible ones, and where each stretch of these begins; shapes (n,).

    The recorder leaves them out already. Files that it did not write, or that an older one did, are held to the same.
    """
    low, high = float(np.fmin.reduce(values, initial=np.inf)), float(np.fmax.reduce(values, initial=-np.inf))
    if low > high:
        return values, []
    first_blank, end = np.searchsorted(_BLANKS, (low, high))
    blanks = _BLANKS[first_blank:end]
    if not any(implausible(sensor, value) for value in (low, high, *blanks.tolist())):
        return values, []
    different, codes = np.unique(values, return_inverse=True)
    why = ["" if math.isnan(value) else implausible(sensor, value) for value in different.tolist()]
    strange = np.array([bool(text) for text in why])[codes]
    if not strange.any():
        return values, []
    first = strange.copy()
    first[1:] &= codes[1:] != codes[:-1]
    stretches = [
        MissingStretch(
            time_seconds=float(time_seconds[index]),
            sensor_id=sensor.id,
            reason=Missing.IMPLAUSIBLE,
            detail=f"raw {float(values[index]):.12g}: {why[codes[index]]}",
        )
        for index in np.flatnonzero(first).tolist()
    ]
    return np.where(strange, np.nan, values), stretches
