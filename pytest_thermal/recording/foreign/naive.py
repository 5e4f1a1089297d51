"""Logs without a header, as a few lines of script write them: ``unix,cpu,gpu``, in degrees or millidegrees.

Further GPUs are further columns, further lines with nothing but a figure, or rows of the same time.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pytest_thermal.model import Missing, Sensor, Unit
from pytest_thermal.recording.errors import ForeignLogError
from pytest_thermal.recording.foreign.cells import Value, plain_number, says_none, value
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.recording.foreign.rows import SOURCE
from pytest_thermal.recording.foreign.table import Row
from pytest_thermal.recording.foreign.times import is_clock, is_date, is_time
from pytest_thermal.recording.foreign.values import Filled, Part

_REMEDY = "write a first line that names the columns: time,cpu0.temperature_celsius,gpu0.temperature_celsius"
_COLDEST_CELSIUS = 16.0
_FEW = 0.2
_LEAST_COUNTED = 10
"""From so many rows on, a first column that only grows is taken for seconds; few may be numbers of cards."""


@dataclass(kw_only=True)
class Tick:
    """One time of the log."""

    line: int
    time: str
    cells: list[str]
    further: list[str] = field(default_factory=list)
    """Figures on lines of their own."""


def ticks_of(rows: Sequence[Row], notes: Notes) -> list[Tick]:
    """Rows by their times.

    Raises:
        ForeignLogError: There are no times in front, or what stands behind them is no temperature.
    """
    ticks: list[Tick] = []
    counts = Counter(len(row.cells) for row in rows if len(row.cells) > 1)
    count = max(counts, key=counts.__getitem__, default=0)
    for row in rows:
        cells = _with_joined_stamp(row.cells)
        if len(row.cells) == 1:
            if ticks and (plain_number(cells[0]) is not None or says_none(cells[0])):
                ticks[-1].further.append(cells[0])
            else:
                notes.add("a figure without a time: left out", row.line)
        elif len(row.cells) != count:
            notes.add(f"{len(row.cells)} cells where most rows have {count}: left out", row.line)
            ticks.append(Tick(line=row.line, time="", cells=[]))  # what follows it belongs to no other
        elif ticks and cells[0] == ticks[-1].time and len(cells) == 3 and cells[1] == ticks[-1].cells[0]:
            ticks[-1].further.append(cells[2])
        else:
            ticks.append(Tick(line=row.line, time=cells[0], cells=cells[1:]))
    ticks = [tick for tick in ticks if tick.cells]
    _require_times(ticks)
    again = [second for first, second in itertools.pairwise(ticks) if first.time == second.time]
    if len(again) > _FEW * len(ticks):
        raise ForeignLogError(
            f"line {again[0].line}: a second row of the time {again[0].time}",
            likely="one row for each card, and the log has other columns than time, CPU and GPU temperatures",
            remedy=_REMEDY,
        )
    return ticks


def filled(ticks: Sequence[Tick], notes: Notes) -> list[Filled]:
    """What the columns are.

    Raises:
        ForeignLogError: They are no temperatures.
    """
    notes.add("no header: read as time, CPU and GPU temperatures")
    rows = [[*tick.cells[:1], *_spread(tick.cells[1:]), *tick.further] for tick in ticks]
    count = Counter(map(len, rows)).most_common(1)[0][0]
    if count == 1:
        notes.add("one column of temperatures: whose it is is not told")
    names = ["device0"] if count == 1 else ["cpu0", *(f"gpu{number}" for number in range(count - 1))]
    columns = []
    for place, device in enumerate(names):
        cells: dict[int, str | Value] = {}
        for index, row in enumerate(rows):
            if len(row) == count or place == 0:
                cells[index] = row[place]
            else:
                detail = f"{len(row) - 1} figures for {count - 1} GPUs: whose is missing cannot be told"
                cells[index] = Value(None, Missing.NOT_UNDERSTOOD, detail)
        _require_temperatures(device, [cell for cell in cells.values() if isinstance(cell, str)])
        label = "the CPU's column" if device == "cpu0" else f"the column of {device}"
        sensor = Sensor(
            id=f"{device}.temperature_celsius",
            unit=Unit.CELSIUS,
            device=device,
            identity=device,
            source=SOURCE,
            label=label,
        )
        columns.append(Filled(sensor=sensor, parts=[Part(cells=cells)]))
    return columns


def _with_joined_stamp(cells: Sequence[str]) -> list[str]:
    if len(cells) > 2 and is_date(cells[0]) and is_clock(cells[1]):
        return [f"{cells[0]} {cells[1]}", *cells[2:]]
    return list(cells)


def _spread(cells: Sequence[str]) -> list[str]:
    """A cell that holds what a command printed for several cards is several cells."""
    found: list[str] = []
    for cell in cells:
        parts = re.split(r"[\s;|]+", cell)
        whole = len(parts) > 1 and all(plain_number(part) is not None or says_none(part) for part in parts)
        found += parts if whole else [cell]
    return found


def _require_times(ticks: Sequence[Tick]) -> None:
    if not ticks:
        raise ForeignLogError("no row begins with a time", likely="this is no log of temperatures", remedy=_REMEDY)
    if sum(is_time(tick.time) for tick in ticks) > len(ticks) / 2:
        return
    numbers = [number for tick in ticks if (number := plain_number(tick.time)) is not None]
    if (
        len(numbers) < len(ticks)
        or len(numbers) < _LEAST_COUNTED
        or any(b <= a for a, b in itertools.pairwise(numbers))
    ):
        raise ForeignLogError(
            f"line {ticks[0].line}: {ticks[0].time!r} is no time",
            likely="the log has no time in its first column",
            remedy=_REMEDY,
        )


def _require_temperatures(device: str, cells: Iterable[str]) -> None:
    """What stands without any name is a temperature only if nearly all of it can be one."""
    numbers, wrong = [], []
    for cell in cells:
        number, missing, _ = value(cell, Unit.CELSIUS, None)
        if missing is Missing.NOT_UNDERSTOOD:
            wrong.append(cell)
        elif number:
            numbers.append(number if abs(number) < 1000 else number / 1000)
            if not -40 <= numbers[-1] <= 150:
                wrong.append(f"{number:g}")
    if len(wrong) > _FEW * (len(numbers) + len(wrong)):
        raise ForeignLogError(
            f"the column that should be the temperature of {device} holds {wrong[0]}",
            likely="the log has other columns than time, CPU and GPU temperatures",
            remedy=_REMEDY,
        )
    if len(numbers) > 2 and len(set(numbers)) == 1 and numbers[0] < _COLDEST_CELSIUS and numbers[0] == int(numbers[0]):
        raise ForeignLogError(
            f"the column that should be the temperature of {device} is always {numbers[0]:g}",
            likely="it is the number of a card, and the log has other columns than time, CPU and GPU temperatures",
            remedy=_REMEDY,
        )
