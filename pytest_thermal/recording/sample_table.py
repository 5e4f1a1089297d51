"""Reading the CSV segments of a run, whatever happened to their last lines: bytes in, arrays and remarks out."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording.decimals import parse_decimals

_NEW_HEADER = re.compile(rb"^time,", re.MULTILINE)
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
    blocks = [_block(part, line, remarks) for part, line in _parts(content)]
    return Table(blocks=tuple(blocks), remarks=tuple(remarks))


def _parts(content: bytes) -> Iterator[tuple[bytes, int]]:
    """Each header with the rows below it, and the header's line number."""
    starts = [match.start() for match in _NEW_HEADER.finditer(content)]
    for start, end in zip(starts, [*starts[1:], len(content)], strict=True):
        yield content[start:end], content.count(b"\n", 0, start) + 1


def _block(content: bytes, first_line: int, remarks: list[str]) -> Block:
    header, _, body = content.partition(b"\n")
    columns = next(csv.reader([header.decode("utf-8", "replace").rstrip("\r")]))
    table, lines = _rows(body, len(columns))
    usable = np.isfinite(table[:, 0]) & (table[:, 0] >= 0) & (table[:, 0] < _LATEST_SECONDS)
    total = body.count(b"\n")
    if np.count_nonzero(usable) < total:
        bad = np.setdiff1d(np.arange(total), lines[usable])
        if bad.size > max(10, total // 10):
            raise DamagedError(f"{bad.size} of {total} rows are no rows, the first in line {first_line + 1 + bad[0]}")
        shown = ", ".join(str(first_line + 1 + line) for line in bad[:_SHOWN]) + (" …" if bad.size > _SHOWN else "")
        remarks.append(f"line {shown}: not a whole row, left out ({bad.size} in all)")
        table = table[usable]
    return Block(
        columns=tuple(columns[1:]),
        time_seconds=np.ascontiguousarray(table[:, 0]),
        values=np.asfortranarray(table[:, 1:]),
    )


def _rows(body: bytes, columns: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Lines with as many cells as the header, all of them numbers or empty, as a table; and which lines these are."""
    signs = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero(signs == ord("\n"))
    commas = np.searchsorted(np.flatnonzero(signs == ord(",")), ends)
    lines = np.flatnonzero(np.diff(commas, prepend=0) + 1 == columns)
    if lines.size < ends.size:
        starts = np.concatenate(([0], ends[:-1] + 1))
        body = b"".join(body[starts[line] : ends[line] + 1] for line in lines)
    numbers, wrong = parse_decimals(body)
    table: FloatArray = numbers.reshape(-1, columns)
    if wrong:
        rows = np.ones(len(table), dtype=np.bool_)
        rows[np.array(wrong) // columns] = False
        table, lines = table[rows], lines[rows]
    return table, lines
