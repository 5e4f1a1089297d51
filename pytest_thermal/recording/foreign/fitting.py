"""Rows that do not have as many cells as the header has names: read by rule or refused, never shifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_thermal.model import Unit
from pytest_thermal.recording.errors import ForeignLogError
from pytest_thermal.recording.foreign.cells import cell_unit
from pytest_thermal.recording.foreign.columns import Role, column
from pytest_thermal.recording.foreign.notes import Notes
from pytest_thermal.recording.foreign.table import Row, Segment
from pytest_thermal.recording.foreign.times import is_clock, is_date, is_time

_FEW = 0.2
"""Up to this share of rows may be broken one by one; beyond, the header is what does not fit."""
_UNIT_SHARE = 0.9


def fitted(segment: Segment, notes: Notes) -> Segment:
    """A segment whose rows all have exactly one cell for each name.

    Raises:
        ForeignLogError: Which cell belongs to which name cannot be told.
    """
    header = list(segment.header or [])
    rows = [_joined_stamp(row, header) for row in segment.rows]
    rows = [_without_empty_end(row, len(header), notes) for row in rows]
    while header and not header[-1] and all(len(row.cells) < len(header) for row in rows):
        header.pop()
    wrong = [row for row in rows if len(row.cells) != len(header)]
    if len(wrong) <= max(1, _FEW * len(rows)) and len(wrong) < len(rows):
        for row in wrong:
            notes.add(f"{len(row.cells)} cells where the header has {len(header)} names: left out", row.line)
        return Segment(header=header, line=segment.line, rows=[row for row in rows if len(row.cells) == len(header)])
    return _by_units(header, segment, rows, notes)


def _joined_stamp(row: Row, header: Sequence[str]) -> Row:
    """Blanks separate a date from its time of day too: one cell, unless the header has a name for each."""
    cells = row.cells
    if len(cells) == len(header) or len(cells) < 2 or not (is_date(cells[0]) and is_clock(cells[1])):
        return row
    return Row(line=row.line, cells=[f"{cells[0]} {cells[1]}", *cells[2:]])


def _without_empty_end(row: Row, count: int, notes: Notes) -> Row:
    if len(row.cells) > count and not any(row.cells[count:]):
        notes.add("separators at the ends of rows, with nothing behind them")
        return Row(line=row.line, cells=row.cells[:count])
    return row


def _by_units(header: Sequence[str], segment: Segment, rows: Sequence[Row], notes: Notes) -> Segment:
    """Where cells name units, and one name and one place have a unit to themselves, these two belong together."""
    count, _ = Counter(len(row.cells) for row in rows).most_common(1)[0]
    alike = [row for row in rows if len(row.cells) == count]
    columns = [column(name) for name in header]
    pairs = {}
    if columns and columns[0].role is Role.TIME and all(is_time(row.cells[0]) for row in alike):
        places = _unit_places(alike, count)
        for unit, where in places.items():
            names = [index for index, one in enumerate(columns) if one.role is Role.VALUE and one.unit is unit]
            names = [index for index in names if not columns[index].guessed] or names
            if len(names) == 1 and len(where) == 1:
                pairs[names[0]] = where[0]
    if not pairs or len(alike) < (1 - _FEW) * len(rows):
        raise _refusal(header, segment, rows)
    told = ", ".join(repr(header[index]) for index in pairs)
    notes.add(
        f"the header has {len(header)} names and the rows {count} cells; only {told} can be told by the units in the "
        "cells, and the rest is left out"
    )
    for row in rows:
        if len(row.cells) != count:
            notes.add(f"{len(row.cells)} cells instead of {count}: left out", row.line)
    return Segment(
        header=[header[0], *(header[index] for index in pairs)],
        line=segment.line,
        rows=[
            Row(line=row.line, cells=[row.cells[0], *(row.cells[place] for place in pairs.values())]) for row in alike
        ],
    )


def _unit_places(rows: Sequence[Row], count: int) -> dict[Unit, list[int]]:
    places: dict[Unit, list[int]] = {}
    for place in range(count):
        found = Counter(one.unit for row in rows if (one := cell_unit(row.cells[place])) is not None)
        for unit, times in found.items():
            # Even a single cell of that unit somewhere else makes the place doubtful.
            places.setdefault(unit, []).append(place if times >= _UNIT_SHARE * len(rows) else -1)
    return {unit: where for unit, where in places.items() if -1 not in where}


def _refusal(header: Sequence[str], segment: Segment, rows: Sequence[Row]) -> ForeignLogError:
    row = next(row for row in rows if len(row.cells) != len(header))
    numbers = len(header) - 1
    commas = len(row.cells) == 1 + 2 * numbers and numbers > 0
    return ForeignLogError(
        f"line {segment.line}: the header has {len(header)} names, and line {row.line} has {len(row.cells)} cells: "
        f"{', '.join(row.cells)[:80]}",
        likely="numbers with decimal commas, separated by commas too (61,5)"
        if commas
        else "the header is of another version of the logger, or a name or value has the separator in it",
        remedy="separate the columns by semicolons, or write decimal points"
        if commas
        else "write one name for each cell in line "
        f"{segment.line}; names such as cpu0.temperature_celsius are understood",
    )
