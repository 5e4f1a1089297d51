"""The phases of a log that names none: from the device that was loaded the most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pytest_thermal.analysis import DetectedPhases, detect_phases
from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.findings.subjects import in_order, is_heated, main_temperature
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Series
from pytest_thermal.recording import Recording


def with_phases(recording: Recording) -> Recording:
    """The recording with the phases that ``analysis.detect_phases`` finds, and a note that says from what.

    One that has phases, or in which none are found, comes back with the phases that it has; in the latter case the
    note says why there are none.
    """
    if recording.phases:
        return recording
    found, where = find_phases(recording)
    note = say("phases: none: {reason}", reason=found.reason)
    if found.phases:
        note = say("phases: found from {origin} of {where}", origin=found.origin, where=where)
    return replace(recording, phases=found.phases, notes=(*recording.notes, note))


def find_phases(recording: Recording) -> tuple[DetectedPhases, str]:
    """What phases there are, by the first device whose readings tell them, the most heated first; and its name."""
    candidates = sorted(_temperatures(recording), key=_span, reverse=True)
    if not candidates:
        why = say("the log has no temperature")
        return DetectedPhases(phases=(), origin="", reason=why), ""
    reasons = []
    for series in candidates:
        device = series.sensor.device
        found = detect_phases(
            series, utilization=utilization_of(device, recording.series), power=power_of(device, recording.series)
        )
        if found.phases:
            return found, device
        reasons.append(say("{device}: {reason}", device=device, reason=found.reason))
    return DetectedPhases(phases=(), origin="", reason=reasons[0]), ""


def _temperatures(recording: Recording) -> Sequence[Series]:
    """One a device; those of devices that nobody knows only where there is no other."""
    sensors = in_order(series.sensor for series in recording.series.values())
    temperatures = [sensor for sensor in sensors if sensor.unit is Unit.CELSIUS]
    chosen: dict[str, Sensor] = {}
    for sensor in [one for one in temperatures if is_heated(one)] or temperatures:
        if sensor.device not in chosen:
            chosen[sensor.device] = main_temperature(sensor.device, sensors) or sensor
    return [recording.series[sensor.id] for sensor in chosen.values()]


def _span(series: Series) -> float:
    """Between the lowest and the highest tenth, which a spike does not move."""
    _, values = series.readings()
    return float(np.ptp(np.quantile(values, (0.1, 0.9)))) if values.size else -1.0
