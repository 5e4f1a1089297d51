"""What changed in a phase, sensor by sensor: where each stood at its beginning and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pytest_thermal.findings import Judgement
from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.findings.subjects import in_order, is_heated
from pytest_thermal.model import Sensor
from pytest_thermal.model.said import say
from pytest_thermal.model.series import FloatArray, Phase, Series

EDGE_READINGS = 5
"""The median of so many stands for the beginning and the end of a phase: one odd reading decides nothing."""
MOST_ROWS = 24


def phase_table(judgement: Judgement, name: str, told: Callable[[str], str] = str) -> list[str]:
    """A table in Markdown: temperatures with their limits, then what the devices drew; empty without such a phase."""
    recording = judgement.recording
    phase = next((one for one in recording.phases if one.name == name), None)
    if phase is None:
        return []
    sensors = in_order(one.sensor for one in recording.series.values())
    heated = [sensor for sensor in sensors if is_heated(sensor)]
    devices = list(dict.fromkeys(sensor.device for sensor in heated))
    drawn = [power_of(device, recording.series) or utilization_of(device, recording.series) for device in devices]
    rows = [_temperature(judgement, recording.series[sensor.id], phase, told) for sensor in heated]
    rows += [_other(series, phase, told) for series in drawn if series is not None]
    if not rows:
        return []
    more = [told(say("| and {count} more | | | | | | |", count=len(rows) - MOST_ROWS))] if len(rows) > MOST_ROWS else []
    return [
        told(say("| sensor | at its start | at its end | change | highest | limit | left |")),
        "|---|--:|--:|--:|--:|---|--:|",
        *rows[:MOST_ROWS],
        *more,
    ]


def _temperature(judgement: Judgement, series: Series, phase: Phase, told: Callable[[str], str]) -> str:
    limit = judgement.limits.threshold(series.sensor)
    _, values = series.during(phase).readings()
    if values.size == 0:
        return f"| {_name(series.sensor)} | – | – | – | {told(say('no reading'))} | | |"
    most = float(values.max())
    cells = [*_edges(values, "°C", 1), f"{most:.1f} °C"]
    if limit is None:
        cells += ["", ""]
    else:
        left = limit.value - most
        cells += [f"≤ {told(limit.text)}".replace("_", "\\_"), f"{left:.1f} °C" if left >= 0 else f"**{left:.1f} °C**"]
    return f"| {_name(series.sensor)} | {' | '.join(cells)} |"


def _other(series: Series, phase: Phase, told: Callable[[str], str]) -> str:
    unit = {"watts": "W", "percent": "%"}.get(str(series.sensor.unit), str(series.sensor.unit))
    _, values = series.during(phase).readings()
    if values.size == 0:
        return f"| {_name(series.sensor)} | – | – | – | {told(say('no reading'))} | | |"
    return f"| {_name(series.sensor)} | {' | '.join([*_edges(values, unit, 0), f'{values.max():.0f} {unit}'])} | | |"


def _edges(values: FloatArray, unit: str, decimals: int) -> Iterable[str]:
    first, last = (float(np.median(part)) for part in (values[:EDGE_READINGS], values[-EDGE_READINGS:]))
    return f"{first:.{decimals}f} {unit}", f"{last:.{decimals}f} {unit}", f"{last - first:+.{decimals}f} {unit}"


def _name(sensor: Sensor) -> str:
    return f"`{sensor.id.removesuffix('.temperature_celsius')}`"
