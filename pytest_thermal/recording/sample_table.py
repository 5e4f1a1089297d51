"""Reading the CSV segments of a run, whatever happened to their last lines: bytes in, arrays and remarks out."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording.decimals import cells_of

_NEW_HEADER = b"\ntime,"
_SHOWN = 3
_LATEST_SECONDS = 1e11  # the year 5138: anything beyond is no unix time in seconds


class DamagedError(Exception):
    """Too little of a file can be read for the rest to be trusted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Rows under one header."""

    columns: tuple[str, ...]
    """Without the time."""
    time_seconds: FloatArray
    """Shape (n,)."""
    values: FloatArray
    """Shape (n, columns), column by column in memory; NaN where a cell is empty."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """What one file holds."""

    blocks: tuple[Block, ...]
    remarks: tuple[str, ...]


def parse_table(content: bytes) -> Table:
    """Read one segment. The last line is left out while it has no end: it is being written, or was cut.

    Raises:
        DamagedError: There is no header, or more than a few rows are no rows.
    """
    remarks: list[str] = []
    end = content.rfind(b"\n") + 1
    if end < len(content):
        torn = content[end:]
        if torn.strip(b"\0"):
            line = content.count(b"\n", 0, end) + 1
            remarks.append(f"line {line}: the last line has no end and is left out")
        else:
            remarks.append(f"{len(torn)} zero bytes at the end, as a power cut leaves them, are left out")
        content = content[:end]
    if not content:
        return Table(blocks=(), remarks=tuple(remarks))
    if not content.startswith(b"time,"):
        first = content[: content.find(b"\n")][:60].decode("utf-8", "replace")
        raise DamagedError(f"line 1: {first!r} is no header; it should begin with 'time,'")
    blocks = [_block(content, *part, remarks) for part in _parts(content)]
    return Table(blocks=tuple(blocks), remarks=tuple(remarks))


def _parts(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each header with the rows below it begins and ends, and the header's line number."""
    start, line = 0, 1
    while start < len(content):
        end = content.find(_NEW_HEADER, start) + 1 or len(content)
        yield start, end, line
        line += content.count(b"\n", start, end)
        start = end


def _block(content: bytes, start: int, end: int, first_line: int, remarks: list[str]) -> Block:
    body = content.find(b"\n", start) + 1
    columns = next(csv.reader([content[start : body - 1].decode("utf-8", "replace").rstrip("\r")]))
    total = content.count(b"\n", body, end)
    table, lines = _rows(content[body:end], total, len(columns))
    usable = np.isfinite(table[:, 0]) & (table[:, 0] >= 0) & (table[:, 0] < _LATEST_SECONDS)
    if np.count_nonzero(usable) < total:
        bad = np.setdiff1d(np.arange(total), lines[usable])
        if bad.size > max(10, total // 10):
            raise DamagedError(f"{bad.size} of {total} rows are no rows, the first in line {first_line + 1 + bad[0]}")
        shown = ", ".join(str(first_line + 1 + line) for line in bad[:_SHOWN]) + (" …" if bad.size > _SHOWN else "")
        remarks.append(f"line {shown}: not a whole row, left out ({bad.size} in all)")
        table = np.asfortranarray(table[usable])
    return Block(
        columns=tuple(columns[1:]),
        time_seconds=table[:, 0],
        values=table[:, 1:],
    )


def _rows(body: bytes, total: int, columns: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Lines with as many cells as the header, all of them numbers or empty, as a table; and which lines these are.

    The table is column by column in memory.
    """
    table: FloatArray = np.empty((total, columns), order="F")
    lines = np.empty(total, dtype=np.intp)
    row = line = 0
    for cells in cells_of(body):
        fitting = np.flatnonzero(cells.per_line == columns)
        if fitting.size == cells.line_ends.size:
            numbers, wrong = cells.numbers(slice(None))
        else:
            first = cells.line_ends[fitting] - columns
            numbers, wrong = cells.numbers((first[:, None] + np.arange(columns)).ravel())
        found: FloatArray = numbers.reshape(-1, columns)
        if wrong:
            good = np.ones(fitting.size, dtype=np.bool_)
            good[np.array(wrong) // columns] = False
            found, fitting = found[good], fitting[good]
        table[row : row + fitting.size] = found
        lines[row : row + fitting.size] = fitting + line
        row += fitting.size
        line += cells.line_ends.size
    return table[:row], lines[:row]
