"""The few forms in which tools print, each read by its own marks: CSV, boxes, indented keys, columns, JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from pytest_thermal.model import Missing
from pytest_thermal.sensors.tools.answer import Answer, Problem, Raw, Row, cells, header

MakeRow = Callable[[dict[str, Raw], str], Row]
"""From a device's cells, and its place among the lines where it has one, to its row."""

_JSON_STARTS = 50
"""Places at which JSON is looked for: more, and it is not JSON with a warning before it."""
_JSON_START = re.compile(r"[{\[]")
_UNITS_AFTER_BLANK = re.compile(r"(?<=\d) +(?=(?:°?[cC]|℃|[mu]?W|%|[KMG]i?B|[MG]Hz|RPM)(?![A-Za-z]))")
_PAIR = re.compile(r"(?<=[\w%!])\s*/\s*(?=\d|n/a\b|na\b|-(?:\s|$))", re.IGNORECASE)


# ---------------------------------------------------------------------------------------------------- CSV


def csv_rows(lines: Sequence[str], names: Sequence[str]) -> tuple[list[dict[str, Raw]], list[str]]:
    """Rows under a header with commas, and lines that have another number of cells; repeated headers are skipped."""
    rows: list[dict[str, Raw]] = []
    refused: list[str] = []
    for line in lines:
        values = split_csv(line)
        if not line.strip() or values == list(names):
            continue
        if len(values) != len(names):
            refused.append(line)
            continue
        spelled = [header(name) for name in names]
        rows.append({name: Raw(value, unit) for (name, unit), value in zip(spelled, values, strict=True)})
    return rows, refused


def split_csv(line: str) -> list[str]:
    """The cells of a line, blanks around them off. None of these tools quotes."""
    return [cell.strip() for cell in line.split(",")]


# -------------------------------------------------------------------------------------------------- boxes


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box drawn with ``|`` and ``+``: a header of some lines, then as many lines for each device."""

    rows: tuple[dict[str, Raw], ...]
    refused: tuple[str, ...]


def boxed_rows(lines: Sequence[str], make_row: MakeRow, *, needed: frozenset[str]) -> Answer | None:
    """The devices of that box, each with its number and an identity; None where there is no such box.

    What has neither is refused: whose figures these are cannot be told.
    """
    found = box(lines, needed=needed)
    if found is None:
        return None
    rows = [make_row(cells, "") for cells in found.rows]
    whole = tuple(row for row in rows if row.key and row.identities)
    refused = tuple(" ".join(raw.text for raw in row.cells.values()) for row in rows if row not in whole)
    return Answer(rows=whole, refused=(*found.refused, *refused))


def box(lines: Sequence[str], *, needed: frozenset[str]) -> Box | None:
    """The first box whose header has all ``needed`` names; None where there is none.

    A device is read only from a group between two borders that has as many lines, each with as many parts, as the
    header: a line more or less, and whose they are cannot be told.
    """
    groups = list(_groups(lines))
    for number, group in enumerate(groups):
        names = [[_names(part) for part in _parts(line)] for line in group]
        flat = {header(name)[0] for line in names for part in line for name in part}
        if needed <= flat:
            return _box(names, groups[number + 1 :])
    return None


def _box(names: Sequence[Sequence[Sequence[str]]], groups: Sequence[Sequence[str]]) -> Box:
    rows: list[dict[str, Raw]] = []
    refused: list[str] = []
    for group in groups:
        # A lone line across the box, such as a note, is no device.
        if len(group) == 1 and len(names) > 1 and len(_parts(group[0])) == 1:
            continue
        parts = [_parts(line) for line in group]
        titles = [[_names(part) for part in line] for line in parts]
        if titles == list(names):
            continue
        if [len(line) for line in parts] != [len(line) for line in names]:
            if _is_header(parts):
                break
            refused.append(" ".join(group))
            continue
        row: dict[str, Raw] = {}
        for line_names, line_parts in zip(names, parts, strict=True):
            for part_names, part in zip(line_names, line_parts, strict=True):
                for name, raw in _values(part_names, part).items():
                    row.setdefault(name, raw)
        rows.append(row)
    return Box(rows=tuple(rows), refused=tuple(refused))


def _groups(lines: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("|") and stripped.endswith("|") and not _is_border(stripped):
            group.append(stripped)
            continue
        # A line of a box without its end is cut off: the group it is in must not look whole.
        if stripped.startswith("|") and not _is_border(stripped):
            group.append(stripped + "|…|")
        if group:
            yield group
        group = []
    if group:
        yield group


def _is_border(line: str) -> bool:
    return set(line) <= set("-=+| ") and ("-" in line or "=" in line)


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line[1:-1].split("|")]


def _is_header(parts: Sequence[Sequence[str]]) -> bool:
    """Whether a group of another shape is the header of the next box, such as the list of processes."""
    return not any(re.search(r"(?<![A-Za-z])\d", part) for line in parts for part in line)


def _names(part: str) -> list[str]:
    return [name for name in re.split(r"\s{2,}|(?<=[)\]])\s+", part) if name]


def _values(names: Sequence[str], part: str) -> dict[str, Raw]:
    """The values of one part under its names; none of them where their number does not tell whose they are."""
    if not names:
        return {}
    glued = _PAIR.sub("/", _UNITS_AFTER_BLANK.sub("", part))
    for values in (re.split(r"\s{2,}", glued), glued.split()):
        if len(values) == len(names):
            return cells(names, values)
    return cells(names, [glued]) if len(names) == 1 and glued else {}


# ------------------------------------------------------------------------------------------- indented keys


@dataclass(frozen=True, kw_only=True)
class Key:
    """A line ``key : value``; a group's own line has no value."""

    depth: int
    name: str
    value: str


def keys(lines: Sequence[str]) -> Iterator[Key | None]:
    """Each line as a key; None for an empty one."""
    for line in lines:
        stripped = line.strip()
        if not stripped:
            yield None
            continue
        name, colon, value = _split_key(stripped)
        yield Key(
            depth=len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip()), name=name, value=value if colon else ""
        )


def _split_key(line: str) -> tuple[str, str, str]:
    """Split at the first colon with a blank before it or a blank or nothing behind it: ``0000:4E:00.0`` has none."""
    match = re.search(r"\s+:(?=\s|$)|:(?=\s|$)|\s+:", line)
    if not match:
        return line, "", ""
    return line[: match.start()].strip(), ":", line[match.end() :].strip()


def nested(found: Sequence[Key]) -> dict[str, Raw]:
    """Cells named by their path: ``temperature/chip``. A group is a key without value that deeper keys follow."""
    result: dict[str, Raw] = {}
    for path, raw in _paths(found):
        result.setdefault(path, raw)
    return result


def holds_two(found: Sequence[Key], figures: Iterable[str]) -> bool:
    """Whether a block has one of these figures twice: the title between two devices was lost, and it is neither's."""
    seen = Counter(path for path, _ in _paths(found))
    return any(seen[name] > 1 for name in figures)


def _paths(found: Sequence[Key]) -> Iterator[tuple[str, Raw]]:
    path: list[Key] = []
    for key in found:
        while path and path[-1].depth >= key.depth:
            path.pop()
        name, unit = header(key.name)
        if key.value:
            yield "/".join([*(header(one.name)[0] for one in path), name]), Raw(key.value, unit)
        else:
            path.append(key)


# ------------------------------------------------------------------------------------------------- columns


def column_rows(names: Sequence[str], lines: Sequence[str]) -> tuple[list[dict[str, Raw]], list[str]]:
    """Rows of values with blanks between them, and lines that have another number of them."""
    rows: list[dict[str, Raw]] = []
    refused: list[str] = []
    for line in lines:
        values = line.split()
        if len(values) == len(names):
            rows.append(cells(names, values))
        elif values:
            refused.append(line)
    return rows, refused


# ---------------------------------------------------------------------------------------------------- JSON


def json_documents(text: str) -> Iterator[dict[str, object] | list[object]]:
    """Every object or list in ``text`` that is whole, in their order: tools print warnings before and after it.

    Of one that is cut off, its whole parts: a layout has to know its own by their shape.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    place = 0
    for _ in range(_JSON_STARTS):
        match = _JSON_START.search(text, place)
        if not match:
            return
        try:
            found, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            place = match.start() + 1
            continue
        if isinstance(found, (dict, list)):
            yield found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; one that says a thing twice says nothing."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def first_json(text: str) -> object:
    """The first object or list of objects in ``text`` that is whole. None where there is none."""
    for found in json_documents(text):
        # "[WARNING]" is no list, and "[1]" in a message no answer.
        if isinstance(found, dict) or any(isinstance(one, dict) for one in found):
            return found
    return None


def flat(found: object, above: str = "") -> dict[str, Raw]:
    """Leaves of JSON objects by their path, as :func:`nested` names them; ``{"value": 45, "unit": "C"}`` is a leaf.

    Lists are left out: nothing says what stands at which place.
    """
    if not isinstance(found, dict):
        return {}
    cells: dict[str, Raw] = {}
    for key, value in found.items():
        name, unit = header(str(key).replace("_", " "))
        path = f"{above}{name}"
        measured = isinstance(value, dict) and set(value) == {"value", "unit"}
        leaf, unit = (value["value"], f"{value['unit']}") if measured else (value, unit)
        if isinstance(leaf, dict):
            cells = {**flat(leaf, f"{path}/"), **cells}
        elif isinstance(leaf, (str, int, float)):
            cells.setdefault(path, Raw(f"{leaf}", unit))
        elif leaf is None:
            cells.setdefault(path, Raw("N/A"))
    return cells


# ------------------------------------------------------------------------------------------ columns with units


def two_line_columns(lines: Sequence[str], *, mark: str) -> tuple[list[dict[str, Raw]], list[str]] | None:
    """Columns under two lines of header, names and units, that begin with ``mark`` and may come again.

    None where there is no such header.
    """
    titles = [line.strip()[len(mark) :].split() for line in lines if line.strip().startswith(mark)]
    if len(titles) < 2 or len(titles[1]) != len(titles[0]):
        return None
    names = [f"{name} [{unit}]" for name, unit in zip(*titles[:2], strict=True)]
    return column_rows(names, [line for line in lines if not line.strip().startswith(mark)])


# ----------------------------------------------------------------------------------------------------- XML


def xml_rows(text: str, make_row: MakeRow, *, root: str, device: str) -> Answer | None:
    """A row for each ``device`` below ``root``, whose ``id`` is the cell ``pci.bus_id``; None where there is no root.

    Leaves are named by their path, as :func:`nested` names them. Of leaves of one name, such as processes, the first.
    """
    begin = text.find(f"<{root}")
    if begin < 0:
        return None
    try:
        tree = ET.fromstring("".join(text[begin:].partition(f"</{root}>")[:2]))  # noqa: S314 - a driver's tool
    except ET.ParseError as error:
        return Answer(problem=Problem(missing=Missing.NOT_UNDERSTOOD, said=f"printed XML that is not whole ({error})"))
    rows = [
        make_row({**_leaves_of(one), "pci.bus_id": Raw(one.get("id", ""))}, f"{order}")
        for order, one in enumerate(tree.findall(device))
    ]
    return Answer(rows=tuple(rows), ended=True)


def _leaves_of(element: ET.Element, above: str = "") -> dict[str, Raw]:
    found: dict[str, Raw] = {}
    for child in element:
        path = f"{above}{child.tag}".casefold()
        below = _leaves_of(child, f"{path}/") if len(child) else {path: Raw((child.text or "").strip())}
        found = {**below, **found}
    return found
