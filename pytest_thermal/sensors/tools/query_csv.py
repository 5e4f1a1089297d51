"""``--query-gpu=… --format=csv`` and its kin: what NVIDIA's tool began and others took over."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from pytest_thermal.sensors.tools.answer import Answer, Row, header
from pytest_thermal.sensors.tools.figures import shaped
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import MakeRow, csv_rows, split_csv

_OPTIONS = re.compile(r"--query-(?:gpu|aip)=(.+)|-Q")
_REFUSED = re.compile(r"not a valid|invalid|unknown|unsupported|not supported|unrecogni[sz]ed", re.IGNORECASE)
_DESCRIBES = frozenset({"index", "uuid", "name", "pci.bus_id", "bus_id", "serial"})


def asked_fields(arguments: Sequence[str]) -> list[str]:
    """The fields that a query is for, in their order; none where it is no query."""
    for one, after in itertools.pairwise([*arguments, ""]):
        match = _OPTIONS.fullmatch(one)
        if match:
            return split_csv(match[1] or after)
    return []


def query_rows(
    out: Printed,
    arguments: Sequence[str],
    make_row: MakeRow,
    *,
    figures: frozenset[str],
    names: frozenset[str] = frozenset(),
) -> Answer | None:
    """The rows under the header, or, without one, as they were asked for.

    Args:
        out: What was printed.
        arguments: What was asked.
        make_row: Makes a row of cells.
        figures: Names whose cells hold a figure or a word for none; a line where one does not is refused.
        names: Others by which a header is known, where there is a dot in them.
    """
    asked = asked_fields(arguments)
    # "temp" or "fan" may head anybody's columns.
    dotted = {name for name in figures | names if "." in name}
    known = frozenset({*dotted, *_DESCRIBES, *(name.casefold() for name in asked)})
    first = next((number for number, line in enumerate(out.lines) if _is_header(line, known)), None)
    if first is not None:
        columns, blocks = split_csv(out.lines[first]), _blocks(out.lines[first:])
    elif asked and any("noheader" in one for one in arguments):
        columns, blocks = asked, [out.lines]
    else:
        return None
    rows: list[Row] = []
    refused: list[str] = []
    for block in blocks:
        found, torn = csv_rows(block, columns)
        refused += torn
        for order, cells in enumerate(found):
            if all(shaped(raw.text) for name, raw in cells.items() if name in figures):
                rows.append(make_row(cells, str(order)))
            else:
                refused.append(", ".join(raw.text for raw in cells.values()))
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def _blocks(lines: Sequence[str]) -> list[Sequence[str]]:
    """What stands under each header that is the first one's like: places are counted from there."""
    starts = [number for number, line in enumerate(lines) if split_csv(line) == split_csv(lines[0])]
    return [lines[begin + 1 : end] for begin, end in itertools.pairwise([*starts, len(lines)])]


def _is_header(line: str, known: frozenset[str]) -> bool:
    found = [header(name)[0] for name in split_csv(line)]
    return any(name in known for name in found) and not any(re.match(r"[\d\[]", name) for name in found)


def without_refused(arguments: Sequence[str], out: Printed, _known: Sequence[str]) -> Sequence[str] | None:
    """The arguments without the field that the tool says it does not know; None where it says no such thing."""
    asked = asked_fields(arguments)
    for line in (*out.lines, out.torn):
        if not _REFUSED.search(line):
            continue
        refused = next((name for name in asked if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", line)), None)
        if refused is not None and len(asked) > 1:
            kept = ",".join(name for name in asked if name != refused)
            return [one.replace(",".join(asked), kept) for one in arguments]
    return None
