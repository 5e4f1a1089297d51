"""A log from elsewhere → a recording: which kind it is, and what its columns are."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pytest_thermal.model import Sensor
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.recording.errors import ForeignLogError
from pytest_thermal.recording.foreign import long, naive
from pytest_thermal.recording.foreign.cells import cell_unit
from pytest_thermal.recording.foreign.columns import Column, Role, called, column_by_cells, columns_of
from pytest_thermal.recording.foreign.decode import decode
from pytest_thermal.recording.foreign.fitting import fitted
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.recording.foreign.rows import SOURCE, Group, made_group, phases, renamed
from pytest_thermal.recording.foreign.table import Segment, read_table
from pytest_thermal.recording.foreign.times import Clock, is_clock, read_times
from pytest_thermal.recording.foreign.values import Filled, Part
from pytest_thermal.recording.recording import MissingStretch, Recording

_NO_TEXT = {
    b"PK\x03\x04": "an Excel workbook or another zip archive",
    b"\x1f\x8b": "compressed by gzip",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}
_SAME_TICK_SHARE = 0.3
_SOME = 0.05
_LOOKED_AT = 200


class _Key(NamedTuple):
    """What a column means, and the how manieth of this meaning it is in its segment."""

    device: str
    quantity: str
    number: int


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of all segments in the order of the file: times, keys, phases and cells by row number."""

    lines: list[int]
    times: list[str]
    scale: float
    keys: list[dict[str, str]]
    key_columns: list[Column]
    phases: dict[int, str]
    values: dict[_Key, list[tuple[Column, dict[int, str]]]]
    """The columns of each segment that mean the same, with their cells."""


def read_foreign_log(path: Path, *, zone: dt.tzinfo | None = None) -> Recording:
    """A CSV from elsewhere, with everything that was corrected or left out in its notes.

    Local times without a zone are taken as UTC, or as of ``zone``. Phases are only those that the log names.

    Raises:
        ForeignLogError: It cannot be read right; the text says what was seen, what is likely and what to try.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ForeignLogError(f"{path}: cannot be read: {error.strerror}", remedy="check the name") from error
    notes = Notes()
    try:
        _require_text(content)
        groups, found_phases, absolute = _read(content, zone, notes)
    except ForeignLogError as error:
        raise ForeignLogError(f"{path}: {error.seen}", likely=error.likely, remedy=error.remedy) from error
    series: dict[str, Series] = {}
    missing: list[MissingStretch] = []
    for group in groups:
        series |= {one.sensor.id: one for one in group.series}
        missing += group.missing
    return Recording(
        path=path,
        state="foreign",
        series=series,
        phases=found_phases,
        notes=notes.told(),
        missing=tuple(sorted(missing, key=lambda stretch: stretch.time_seconds)),
        absolute_time=absolute,
    )


def _read(content: bytes, zone: dt.tzinfo | None, notes: Notes) -> tuple[list[Group], tuple[Phase, ...], bool]:
    table = read_table(decode(content, notes), notes)
    named = [segment for segment in table.segments if segment.header is not None]
    if not named:
        ticks = naive.ticks_of([row for segment in table.segments for row in segment.rows], notes)
        clock = _clock([tick.time for tick in ticks], zone, notes)
        columns = naive.filled(ticks, notes)
        group = made_group(clock, [tick.line for tick in ticks], columns, notes)
        return [_required(group, columns)], (), clock.absolute
    for segment in table.segments:
        if segment.header is None:
            notes.add("rows before any header: left out", segment.rows[0].line)
    rows = _merged([fitted(segment, notes) for segment in named], notes)
    clock = _clock(rows.times, zone, notes, scale=rows.scale)
    groups = _long(rows, clock, notes) if rows.key_columns else [_wide(rows, clock, notes)]
    return groups, phases(rows.phases, groups[0], notes) if rows.phases else (), clock.absolute


def _require_text(content: bytes) -> None:
    for mark, what in _NO_TEXT.items():
        if content.startswith(mark):
            raise ForeignLogError(f"this is {what}", remedy="export or unpack it as CSV")


def _clock(cells: Sequence[str], zone: dt.tzinfo | None, notes: Notes, *, scale: float = 1.0) -> Clock:
    clock = read_times(cells, zone, notes, scale=scale)
    if clock is None:
        raise ForeignLogError(
            f"{cells[0]!r} in the time column is no time",
            likely="another column has the time, or it is in a form of its own",
            remedy="write unix seconds or ISO 8601 (2026-11-30T09:55:11Z) in a column called time",
        )
    return clock


# ------------------------------------------------------------------------------------------- segments to columns


def _merged(segments: Iterable[Segment], notes: Notes) -> _Rows:
    rows = _Rows(lines=[], times=[], scale=1.0, keys=[], key_columns=[], phases={}, values={})
    told: dict[str, None] = {}
    for segment in segments:
        header = segment.header or []
        columns = [_as_cells_say(one, index, segment) for index, one in enumerate(columns_of(header))]
        time = _time_of(columns, segment)
        rows = replace(rows, scale=columns[time[-1]].seconds)
        seen: Counter[tuple[str, str]] = Counter()
        places: list[tuple[int, dict[int, str]]] = []
        for index, column in enumerate(columns):
            if column.role is Role.VALUE:
                device = column.device or ("" if _is_of_some_gpu(column) else called(column.name))
                seen[device, column.quantity] += 1
                key = _Key(device, column.quantity, seen[device, column.quantity])
                places.append((index, {}))
                rows.values.setdefault(key, []).append((column, places[-1][1]))
            elif column.role is Role.UNKNOWN and column.name:
                told[column.name] = None
        key_places = [(index, column) for index, column in enumerate(columns) if column.role is Role.KEY]
        rows.key_columns.extend(column for _, column in key_places)
        phase = next((index for index, column in enumerate(columns) if column.role is Role.PHASE), None)
        for row in segment.rows:
            number = len(rows.lines)
            rows.lines.append(row.line)
            rows.times.append(" ".join(row.cells[index] for index in time))
            rows.keys.append({column.key: row.cells[index] for index, column in key_places})
            if phase is not None:
                rows.phases[number] = row.cells[phase]
            for index, cells in places:
                cells[number] = row.cells[index]
    if told:
        notes.add(f"columns that are not understood are left out: {', '.join(told)}")
    return rows


def _as_cells_say(of: Column, index: int, segment: Segment) -> Column:
    """What a name does not tell, the units in its cells may."""
    if of.role is not Role.UNKNOWN and not of.guessed:
        return of
    units = Counter(one.unit for row in segment.rows[:_LOOKED_AT] if (one := cell_unit(row.cells[index])) is not None)
    most = units.most_common(1)
    if len(units) == 1 and most[0][1] > min(len(segment.rows), _LOOKED_AT) / 2 and most[0][0] is not of.unit:
        return column_by_cells(of, most[0][0])
    return of


def _time_of(columns: Sequence[Column], segment: Segment) -> list[int]:
    """The column of the time, or those of date and time of day."""
    times = [index for index, column in enumerate(columns) if column.role is Role.TIME]
    dates = [index for index, column in enumerate(columns) if column.role is Role.DATE]
    cells = segment.rows[0].cells
    if dates and times and is_clock(cells[times[0]]):
        return [dates[0], times[0]]
    if times or dates:
        return [(times or dates)[0]]
    raise ForeignLogError(
        f"line {segment.line}: none of the columns is a time: {', '.join(column.name for column in columns)[:100]}",
        likely="the logger did not write it, or calls it something else",
        remedy="call it time; with nvidia-smi: --query-gpu=timestamp,index,uuid,temperature.gpu,power.draw,…",
    )


# ---------------------------------------------------------------------------------------------------- the two layouts


def _wide(rows: _Rows, clock: Clock, notes: Notes) -> Group:
    if any(not key.device for key in rows.values):
        _require_one_device(clock)
    taken: dict[str, Sensor] = {}
    columns = []
    for key, parts in rows.values.items():
        first = parts[0][0]
        device = key.device or "gpu0"
        namesakes = key.number > 1 and rows.values[key._replace(number=1)][0][0].name == first.name
        if namesakes and device[-1:].isdigit():
            device = f"{device.rstrip('0123456789')}{int(re.sub(r'.*?(?=[0-9]+$)', '', device)) + key.number - 1}"
        sensor = renamed(_sensor(first, device, device), taken)
        if key.number > 1:
            notes.add(f"column {first.name!r} is the {key.number}. of its meaning and is called {sensor.id}")
        taken[sensor.id] = sensor
        columns.append(Filled(sensor=sensor, parts=[Part(spelled=one.spelled, cells=cells) for one, cells in parts]))
    return _required(made_group(clock, rows.lines, columns, notes), columns)


def _long(rows: _Rows, clock: Clock, notes: Notes) -> list[Group]:
    found = long.owners(rows.keys, rows.lines, notes)
    if not found:
        raise ForeignLogError(
            "no row says which device it is of",
            likely="every device had fallen off, or the column of numbers holds none",
            remedy="--query-gpu=timestamp,index,uuid,…",
        )
    groups = []
    for place, (owner, device) in enumerate(zip(found, long.device_names(found, rows.key_columns, notes), strict=True)):
        columns = []
        for key, parts in rows.values.items():
            of_the_machine = bool(parts[0][0].device)
            if key.number > 1 or (of_the_machine and place):
                continue  # the same in every row of a tick, or said twice
            name, identity = (key.device, key.device) if of_the_machine else (device, owner.identity)
            own = [
                Part(
                    spelled=one.spelled,
                    cells={index: cells[row] for index, row in enumerate(owner.rows) if row in cells},
                )
                for one, cells in parts
            ]
            columns.append(Filled(sensor=_sensor(parts[0][0], name, identity), parts=own))
        own_clock = _of_rows(clock, owner.rows)
        groups.append(made_group(own_clock, [rows.lines[row] for row in owner.rows], columns, notes))
    if not any(group.series for group in groups):
        raise _no_figures([parts[0][0].name for parts in rows.values.values()])
    return groups


def _of_rows(clock: Clock, rows: Sequence[int]) -> Clock:
    """The clock of some of the rows."""
    return clock._replace(seconds=clock.seconds[np.array(rows)])


def _sensor(column: Column, device: str, identity: str) -> Sensor:
    if column.unit is None:
        raise ValueError(f"{column.name}: a value without a unit")
    return Sensor(
        id=f"{device}.{column.quantity}",
        unit=column.unit,
        device=device,
        identity=identity,
        source=SOURCE,
        label=column.name,
    )


def _is_of_some_gpu(column: Column) -> bool:
    """nvidia-smi's own names say what, and not whose."""
    return not column.device and column.name.casefold().split(" ")[0].count(".") > 0


def _require_one_device(clock: Clock) -> None:
    seconds = clock.seconds[np.isfinite(clock.seconds)]
    if seconds.size < 3:
        return
    steps = np.diff(seconds)
    usual = float(np.percentile(steps, 90))
    if np.count_nonzero(steps < _SAME_TICK_SHARE * usual) > _SOME * steps.size:
        raise ForeignLogError(
            "several rows a tick, and no column says which GPU each is of",
            likely="a machine with several GPUs, logged without their numbers",
            remedy="--query-gpu=timestamp,index,uuid,…: the order of rows tells nothing once a GPU fails",
        )


def _required(group: Group, columns: Sequence[Filled]) -> Group:
    if not group.series:
        raise _no_figures([column.sensor.label for column in columns])
    return group


def _no_figures(names: Sequence[str]) -> ForeignLogError:
    return ForeignLogError(
        f"no column holds a figure that can be used: {', '.join(names)[:100] or 'none has a name that is known'}",
        likely="the logger could not read its sensors, or its columns have other names",
        remedy="call columns as in cpu0.temperature_celsius, gpu0.power_watts, gpu0.utilization_percent",
    )
