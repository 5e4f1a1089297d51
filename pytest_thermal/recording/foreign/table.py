"""From lines to rows of cells under their headers: separators, comments, unit rows, restarts."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_thermal.recording.errors import ForeignLogError
from pytest_thermal.recording.foreign.cells import unit_spelled, without_decimal_comma
from pytest_thermal.recording.foreign.columns import Role, column, dmon_column
from pytest_thermal.recording.foreign.decode import Line
from pytest_thermal.recording.foreign.notes import Notes

_LOOKED_AT = 200
_SEPARATORS = ("\t", ";", ",")
_BLANKS = " "
_NUMBERISH = re.compile(r"[\"']?(?:[-+]?\.?\d|temp\s*=)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+\s*[^\d\s]*")
_FORMAT_WORDS = {"hh:mm:ss", "yyyymmdd", "yyyy-mm-dd", "yyyy/mm/dd", "idx", "#", "-", ""}
_MOST_LINES_IN_A_CELL = 64


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line's cells."""

    line: int
    cells: list[str]


@dataclass(kw_only=True)
class Segment:
    """Rows under one header."""

    header: list[str] | None
    """None where the log has none."""
    line: int
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A log as rows of cells."""

    segments: list[Segment]
    separator: str


def read_table(lines: Sequence[Line], notes: Notes) -> Table:
    """Split a log into segments.

    Raises:
        ForeignLogError: It has no columns.
    """
    separator = _separator(lines, notes)
    rows = [row for row in _rows(lines, separator, notes) if any(row.cells)]
    commas = separator != "," and _has_decimal_commas(rows)
    if commas:
        notes.add("decimal commas: 61,5 is read as 61.5")
        rows = [Row(line=row.line, cells=[without_decimal_comma(cell) for cell in row.cells]) for row in rows]
    elif separator == "," and any(_DECIMAL_COMMA.fullmatch(cell) for row in rows[:_LOOKED_AT] for cell in row.cells):
        notes.add("decimal commas in quotes: 61,5 is read as 61.5")
        rows = [Row(line=row.line, cells=[without_decimal_comma(cell) for cell in row.cells]) for row in rows]
    segments = [segment for segment in _segments(rows, notes) if segment.rows]
    if not segments:
        raise ForeignLogError(
            "there is no row of figures in it",
            likely="the logger had only begun, or this is no CSV",
            remedy="name a CSV with one row per time, such as: time,cpu0.temperature_celsius",
        )
    return Table(segments=segments, separator=separator)


# -------------------------------------------------------------------------------------------------- lines to cells


def _separator(lines: Sequence[Line], notes: Notes) -> str:
    sample = [line.text for line in lines if line.text.strip("\0 \t")][:_LOOKED_AT]
    if not sample:
        raise ForeignLogError("it is empty", likely="the logger never wrote to it")
    told = re.fullmatch(r'"?sep=(.)"?', sample[0].strip())
    if told:
        return told[1]
    best, most = "", 0.0
    for separator in (*_SEPARATORS, _BLANKS):
        counts = Counter(len(_split(text, separator)) for text in sample)
        counts.pop(1, None)
        share = max(counts.values(), default=0) / len(sample)
        # Blanks separate only where nothing else does: they also stand within names and times.
        if share > most and (separator != _BLANKS or most < 0.5):
            best, most = separator, share
    if not best:
        raise ForeignLogError(
            "no line of it has several columns",
            likely="it holds one figure a line and no time, or it is no CSV",
            remedy="write the time in front of each figure: time,cpu0.temperature_celsius",
        )
    if best == _BLANKS:
        notes.add("columns are separated by blanks")
    return best


def _split(text: str, separator: str) -> list[str]:
    if separator == _BLANKS:
        return text.split()
    return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])


def _rows(lines: Sequence[Line], separator: str, notes: Notes) -> Iterator[Row]:
    if separator == _BLANKS:
        for line in lines:
            yield Row(line=line.number, cells=line.text.replace("\0", "").split())
        return
    try:
        rows = list(_quoted_rows(lines, separator))
    except csv.Error:
        rows = []
    if not rows or any(cell.count("\n") > _MOST_LINES_IN_A_CELL for row in rows for cell in row.cells):
        notes.add("a quote is opened and never closed: quotes are read as they stand")
        rows = [
            Row(line=line.number, cells=[cell.strip(' "') for cell in line.text.split(separator)]) for line in lines
        ]
    yield from rows


def _quoted_rows(lines: Sequence[Line], separator: str) -> Iterator[Row]:
    reader = csv.reader(
        (line.text.replace("\0", "") + "\n" for line in lines), delimiter=separator, skipinitialspace=True
    )
    before = 0
    for cells in reader:
        yield Row(line=before + 1, cells=[cell.strip() for cell in cells])
        before = reader.line_num


def _has_decimal_commas(rows: Sequence[Row]) -> bool:
    return any(_DECIMAL_COMMA.fullmatch(cell) for row in rows[:_LOOKED_AT] for cell in row.cells)


# --------------------------------------------------------------------------------------------------- rows to segments


def _segments(rows: Sequence[Row], notes: Notes) -> Iterator[Segment]:
    segment = Segment(header=None, line=0)
    units_may_follow = False
    for row in rows:
        cells = row.cells
        if cells[0].startswith("#"):
            cells = [cells[0].lstrip("# "), *cells[1:]]
            cells = cells if cells[0] else cells[1:]
            if not (_is_header(cells) or (units_may_follow and _is_units(cells))):
                continue  # a comment
        if re.fullmatch(r'"?sep=.?"?', row.cells[0]):
            continue
        if units_may_follow and segment.header is not None and _is_units(cells):
            segment.header = [
                f"{name} [{unit}]" if unit_spelled(unit) and name in _bare([name]) else name
                for name, unit in _pairs(segment, cells)
            ]
            units_may_follow = False
        elif _is_header(cells):
            units_may_follow = True
            if segment.header is None or _bare(cells) != _bare(segment.header):
                yield segment
                segment = Segment(header=cells, line=row.line)
            elif segment.rows:
                notes.add("the header again: the logger was started anew, or repeats it", row.line)
        elif _is_text(cells):
            notes.add("text, no figures: left out", row.line)
        else:
            units_may_follow = False
            segment.rows.append(row)
    yield segment


def _pairs(segment: Segment, units: Sequence[str]) -> list[tuple[str, str]]:
    header = segment.header or []
    return list(zip(header, [*units, *[""] * len(header)], strict=False))


def _bare(header: Sequence[str]) -> list[str]:
    return [re.sub(r"\s*\[[^]]*\]$", "", name) for name in header]


def _is_header(cells: Sequence[str]) -> bool:
    """No figures, and names that are known; or any names beside one of a time column."""
    named = [cell for cell in cells if cell]
    figures = [cell for cell in named if _NUMBERISH.match(cell)]
    # Names may be bare numbers (of cards), but not all of them, and not the first.
    if not named or named[0] in figures or not all(cell.isdigit() for cell in figures):
        return False
    roles = [column(cell).role for cell in named]
    if any(role in {Role.TIME, Role.DATE} for role in roles):
        return True
    if figures:
        return False
    known = sum(role in {Role.VALUE, Role.KEY, Role.PHASE} for role in roles)
    return known >= 2 or (known == 1 and len(named) > 1) or sum(dmon_column(cell) is not None for cell in named) >= 2


def _is_units(cells: Sequence[str]) -> bool:
    named = [cell.strip("()[]").casefold() for cell in cells]
    return any(unit_spelled(cell) for cell in named) and all(
        cell in _FORMAT_WORDS or unit_spelled(cell) is not None for cell in named
    )


def _is_text(cells: Sequence[str]) -> bool:
    """What a tool says instead of figures. A row of a device that failed has at least its time or number."""
    return not any(_NUMBERISH.match(cell) for cell in cells)
