"""What all layouts have in common: some rows with times, columns over them, phases, and the recording made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_thermal.model import Sensor
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.series import BoolArray, FloatArray, Phase, Series
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.recording.foreign.times import Clock, made_steady
from pytest_thermal.recording.foreign.values import Filled, Values, lose_failed_rows, read_values
from pytest_thermal.recording.recording import MissingStretch

SOURCE = "csv"
_UNEVEN = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Rows that stand on one time axis: a whole wide log, or one device of a long one."""

    series: tuple[Series, ...]
    missing: tuple[MissingStretch, ...]
    time_seconds: FloatArray
    keep: BoolArray
    """Which of the rows given these times are of."""


def made_group(clock: Clock, lines: Sequence[int], columns: Sequence[Filled], notes: Notes) -> Group:
    """Series of all columns that hold a figure."""
    steady = made_steady(clock, lines, notes)
    values = [one for column in columns if (one := read_values(column, lines, notes)) is not None]
    lose_failed_rows(values, lines, notes)
    time_seconds = steady.seconds[steady.keep]
    period_seconds = _period_seconds(time_seconds, notes)
    series: list[Series] = []
    missing: list[MissingStretch] = []
    for one in values:
        if np.isnan(one.numbers[steady.keep]).all():
            continue
        series.append(
            Series(
                sensor=one.sensor,
                time_seconds=time_seconds,
                values=one.numbers[steady.keep],
                period_seconds=period_seconds,
            )
        )
        missing += _stretches(one, steady.seconds, steady.keep)
    return Group(series=tuple(series), missing=tuple(missing), time_seconds=time_seconds, keep=steady.keep)


def phases(names: Mapping[int, str], group: Group, notes: Notes) -> tuple[Phase, ...]:
    """The phases that a column of the log names, from the first row of each to the first of the next."""
    rows = np.flatnonzero(group.keep)
    period_seconds = group.series[0].period_seconds if group.series else 1.0
    ends = [*group.time_seconds[1:], group.time_seconds[-1] + period_seconds] if group.time_seconds.size else []
    runs: list[tuple[str, float, float]] = []
    for row, start, end in zip(rows, group.time_seconds, ends, strict=True):
        name = names.get(int(row), "").casefold()
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1], float(end))
        else:
            runs.append((name, float(start), float(end)))
    found: dict[str, tuple[float, float]] = {}
    for name, run_start, run_end in runs:
        if name and name not in PHASES:
            notes.add(f"{name!r} is no phase: left out")
        elif name in found:
            notes.add(f"phase {name} occurs more than once: the longest is taken")
            if run_end - run_start > found[name][1] - found[name][0]:
                found[name] = (run_start, run_end)
        elif name:
            found[name] = (run_start, run_end)
    return tuple(
        Phase(name=name, start_seconds=found[name][0], end_seconds=found[name][1]) for name in PHASES if name in found
    )


def renamed(sensor: Sensor, taken: Mapping[str, Sensor]) -> Sensor:
    """The sensor under an id that no other has."""
    number = 2
    device, _, quantity = sensor.id.partition(".")
    found = sensor
    while found.id in taken:
        found = replace(sensor, id=f"{device}.n{number}.{quantity}")
        number += 1
    return found


def _period_seconds(time_seconds: FloatArray, notes: Notes) -> float:
    if time_seconds.size < 2:
        return 1.0
    steps = np.diff(time_seconds)
    short, middle, long = (float(step) for step in np.percentile(steps, (5, 50, 95)))
    if long > _UNEVEN * short:
        notes.add(f"uneven steps: from {short:.4g} to {long:.4g} s, {middle:.4g} s in the middle")
    return middle


def _stretches(values: Values, seconds: FloatArray, keep: BoolArray) -> Iterator[MissingStretch]:
    last: tuple[object, str] | None = None
    before = -1
    for index in sorted(values.reasons):
        if not keep[index]:
            continue
        reason = values.reasons[index]
        contiguous = not np.isfinite(values.numbers[before + 1 : index][keep[before + 1 : index]]).any()
        if reason != last or not contiguous:
            yield MissingStretch(
                time_seconds=float(seconds[index]), sensor_id=values.sensor.id, reason=reason[0], detail=reason[1]
            )
        last, before = reason, index
