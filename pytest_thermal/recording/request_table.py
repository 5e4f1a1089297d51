"""Reading ``requests.csv``, a million rows in a second or two: bytes in, arrays and remarks out."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping

import numpy as np

from pytest_thermal.model.series import BoolArray, FloatArray, IndexArray
from pytest_thermal.recording.decimals import WORD, Cells, cells_of
from pytest_thermal.recording.labels import Labels, joined
from pytest_thermal.recording.recording import Requests

NUMBERS = ("start", "ttft", "latency", "status", "prompt_tokens", "completion_tokens")
TEXTS = ("error", "phase", "domain", "limit")
_QUOTE = b'"'


def parse_requests(content: bytes) -> tuple[Requests, tuple[str, ...]]:
    """Read all rows, and say what was left out. The last line is left out while it has no end."""
    content = content[: content.rfind(b"\n") + 1]
    body = content.find(b"\n") + 1
    header = next(csv.reader([content[:body].decode("utf-8", "replace")]), [])
    columns = {name: index for index, name in enumerate(header)}
    numbers: FloatArray = np.empty((content.count(b"\n", body), len(NUMBERS)), order="F")
    texts: dict[str, list[Labels]] = {name: [] for name in TEXTS}
    bad: list[int] = []
    row, line = 0, 2
    for cells in cells_of(content, body):
        found, labels, left_out = _rows(cells, columns, len(header))
        numbers[row : row + len(found)] = found
        row += len(found)
        for name, label in labels.items():
            texts[name].append(label)
        bad += [line + index for index in left_out]
        line += cells.line_ends.size
    remarks = (f"line {bad[0]}: not a whole row, left out ({len(bad)} in all)",) if bad else ()
    table = dict(zip(NUMBERS, numbers[:row].T, strict=True))
    return (
        Requests(
            start_seconds=table["start"],
            ttft_seconds=table["ttft"],
            latency_seconds=table["latency"],
            status=np.nan_to_num(table["status"], nan=0.0).astype(np.int64),
            error=joined(texts["error"]),
            prompt_tokens=table["prompt_tokens"],
            completion_tokens=table["completion_tokens"],
            phase=joined(texts["phase"]),
            domain=joined(texts["domain"]),
            limit=joined(texts["limit"]),
        ),
        remarks,
    )


def _rows(cells: Cells, columns: Mapping[str, int], width: int) -> tuple[FloatArray, dict[str, Labels], list[int]]:
    """Numbers (rows, ``NUMBERS``) and texts of whole rows in their order, and the lines that are none."""
    per_line = cells.per_line
    odd = per_line != width
    if _QUOTE in cells.content:
        quotes = np.flatnonzero(np.frombuffer(cells.content, dtype=np.uint8) == ord(_QUOTE))
        odd[np.searchsorted(cells.ends[cells.line_ends - 1], quotes)] = True
    plain = np.flatnonzero(~odd)
    numbers = np.full((odd.size, len(NUMBERS)), np.nan)
    numbers[plain], bad = _numbers(cells, plain, columns, width)
    good = np.zeros(odd.size, dtype=np.bool_)
    good[plain[~bad]] = True
    special: dict[int, Mapping[str, str]] = {}
    left_out = plain[bad].tolist()
    for line in np.flatnonzero(odd).tolist():
        row = next(csv.reader([_line(cells, line)]), [])
        read = {name: row[index] for name, index in columns.items()} if len(row) == width else {}
        if read and all(_is_number(read.get(name, "")) for name in NUMBERS):
            numbers[line] = [float(read.get(name) or math.nan) for name in NUMBERS]
            special[line] = read
            good[line] = True
        elif row:
            left_out.append(line)
    kept = np.flatnonzero(good)
    first = cells.line_ends - per_line

    def label(name: str) -> Labels:
        at = columns.get(name)
        if at is None:
            return Labels.of([""] * kept.size)
        return _labels(cells, kept, first[kept] + at, {line: read[name] for line, read in special.items()})

    return numbers[kept], {name: label(name) for name in TEXTS}, sorted(left_out)


def _numbers(cells: Cells, lines: IndexArray, columns: Mapping[str, int], width: int) -> tuple[FloatArray, BoolArray]:
    """Of lines with ``width`` plain cells, shape (lines, ``NUMBERS``), and which of them hold what is no number."""
    found = np.full((lines.size, len(NUMBERS)), np.nan)
    bad = np.zeros(lines.size, dtype=np.bool_)
    there = [(place, columns[name]) for place, name in enumerate(NUMBERS) if name in columns]
    if there and lines.size:
        chosen = (cells.line_ends[lines] - width)[:, None] + np.array([column for _, column in there])
        values, _ = cells.numbers(chosen.ravel())
        values = values.reshape(chosen.shape)
        empty = cells.starts[chosen] == cells.ends[chosen]
        bad = ~(empty | np.isfinite(values)).all(axis=1)
        found[:, [place for place, _ in there]] = values
    return found, bad


def _labels(cells: Cells, lines: IndexArray, at: IndexArray, instead: Mapping[int, str]) -> Labels:
    """The texts in cells ``at``, one a line; neighbours that are alike are read once."""
    words, length = cells.words(at), cells.ends[at] - cells.starts[at]
    new = np.ones(at.size, dtype=np.bool_)
    new[1:] = (words[1:] != words[:-1]) | (length[1:] != length[:-1]) | (length[1:] > WORD)
    if instead:
        own = np.isin(lines, list(instead))
        new |= own
        new[1:] |= own[:-1]
    firsts = np.flatnonzero(new)
    runs = Labels.of(_texts(cells, lines[firsts], at[firsts], instead))
    return Labels(different=runs.different, codes=np.repeat(runs.codes, np.diff(np.append(firsts, at.size))))


def _texts(cells: Cells, lines: IndexArray, at: IndexArray, instead: Mapping[int, str]) -> list[str]:
    """One a line. Short ones are read once each, however they take turns, as the domains of a load do."""
    known: dict[tuple[int, int], str] = {}
    found = []
    length = (cells.ends[at] - cells.starts[at]).tolist()
    for line, cell, key in zip(
        lines.tolist(), at.tolist(), zip(cells.words(at).tolist(), length, strict=True), strict=True
    ):
        text = instead.get(line) if instead else None
        if text is None and key[1] <= WORD:
            text = known.get(key) or known.setdefault(key, cells.text(cell))
        found.append(cells.text(cell) if text is None else text)
    return found


def _line(cells: Cells, line: int) -> str:
    end = int(cells.line_ends[line])
    start = int(cells.line_ends[line - 1]) if line else 0
    return cells.content[cells.starts[start] : cells.ends[end - 1]].decode("utf-8", "replace")


def _is_number(text: str) -> bool:
    try:
        return not text or math.isfinite(float(text))
    except ValueError:
        return False
