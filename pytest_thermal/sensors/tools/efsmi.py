"""Enflame's ``efsmi``: ``-q`` as text and JSON, the table of every version, and ``--dmon``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_thermal.model import Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row, header
from pytest_thermal.sensors.tools.devices import CONFLICT
from pytest_thermal.sensors.tools.figures import absent, blank, fold
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import Key, box, flat, json_documents, keys, two_line_columns
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("gcu temp", "dtemp", "temp")),
    Field(quantity="board.temperature_celsius", unit=Unit.CELSIUS, names=("board temp",), zero_is_blank=True),
    Field(quantity="memory.temperature_celsius", unit=Unit.CELSIUS, names=("hbm temp", "mem temp"), zero_is_blank=True),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("cur power", "pwr"),
        limits={"cap": ("power capa", "power cap", "pwr/2")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("gcu usage", "dused")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("used size", "mem usage"),
        scale=2.0**20,
        limits={"max": ("total size", "mem size", "mem")},
    ),
    Field(quantity="memory.utilization_percent", unit=Unit.PERCENT, names=("mused",)),
    Field(quantity="memory.clock_megahertz", unit=Unit.MEGAHERTZ, names=("mem clk", "mclk")),
)

_NEEDED_IN_TABLE = frozenset({"dev", "bus-id", "temp", "pwr"})
_CAPS_APART = re.compile(r"(\d\s?W)\s+(\d+(?:\.\d+)?\s?W)")
"""Version 1.2 has blanks between power and its cap, where later ones have a slash."""
_TITLE = re.compile(r"DEV ID (\d+)", re.IGNORECASE)
_NUMBERS = ("dev id", "device id", "dev index", "index", "id")
_WELL = frozenset({"", "true", "ok", "good", "healthy", "normal", "n/a"})


def query_text(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q``: a block ``DEV ID n`` for each card, its keys indented."""
    blocks: list[tuple[str, list[Key]]] = []
    for key in keys(out.lines):
        title = _TITLE.fullmatch(key.name) if key and not key.value else None
        if title:
            blocks.append((title[1], []))
        elif key and blocks:
            blocks[-1][1].append(key)
    rows: list[Row] = []
    refused: list[str] = []
    for number, block in blocks:
        leaves = [(header(key.name), key.value) for key in block if key.value]
        seen = Counter(name for (name, _), _ in leaves)
        if any(seen[name] > 1 for field in FIELDS for name in field.names):
            # The title between two cards was lost: it is neither's.
            refused.append(f"DEV ID {number}, which has figures twice")
        else:
            rows.append(_row(number, leaves))
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def query_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q --json-format``: a list of ``devices``."""
    for found in json_documents(out.text):
        devices = found.get("devices") if isinstance(found, dict) else None
        if not isinstance(devices, list):
            continue
        rows: list[Row] = []
        refused: list[str] = []
        for device in devices:
            leaves = [((_words(path.rpartition("/")[2]), raw.unit), raw.text) for path, raw in flat(device).items()]
            named = {name: text for (name, _), text in leaves}
            number = next((named[name] for name in _NUMBERS if named.get(name, "").isdigit()), "")
            if number:
                rows.append(_row(number, leaves))
            else:
                refused.append(f"{device}"[:200])
        return Answer(rows=tuple(rows), refused=tuple(refused), ended=True)
    return None


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=(?:temp|power|usage|size|id|uuid|sn)$)", " ", name) if " " not in name else name


def _row(number: str, leaves: Iterable[tuple[tuple[str, str], str]]) -> Row:
    """A card's figures by their key alone: versions put them into other groups."""
    cells: dict[str, Raw] = {}
    for (name, unit), value in leaves:
        raw = Raw(value, unit)
        cells[name] = raw if cells.get(name, raw) == raw else Raw(CONFLICT)
    text = {name: raw.text for name, raw in cells.items()}
    address = f"{text.get('domain', '0000')}:{text.get('bus', '')}:{text.get('dev', '')}.{text.get('func', '')}"
    health = text.get("health", "")
    shown = [text[name] for name in ("gcu temp", "cur power") if name in text and not absent(text[name])]
    dead = all(blank(one) for one in shown) and (bool(shown) or fold(health) not in _WELL)
    return Row(
        key=number,
        cells=cells,
        identities=identities(text.get("dev uuid", ""), text.get("dev sn", ""), bus=address),
        fault=f"health {health or 'not told'}, and its temperature and power are 0" if dead else "",
    )


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``efsmi``: two lines a card."""
    lines = [_CAPS_APART.sub(r"\1/\2", line) if line.lstrip().startswith("|") else line for line in out.lines]
    found = box(lines, needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        named = identities(cells.get("sn", Raw("")).text, bus=cells.get("bus-id", Raw("")).text)
        if cells.get("dev", Raw("")).text.isdigit() and named:
            rows.append(Row(key=cells["dev"].text, cells=cells, identities=named))
        else:
            refused.append(" ".join(raw.text for raw in cells.values()))
    return Answer(rows=tuple(rows), refused=tuple(refused))


def dmon(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``--dmon``: two lines of header begin with ``*`` and come again; the last line of each card counts."""
    read = two_line_columns(out.lines, mark="*")
    if read is None:
        return None
    found, refused = read
    rows = tuple(Row(key=cells["dev"].text, cells=cells) for cells in found if cells.get("dev", Raw("")).text.isdigit())
    framed = [line for line in refused if not set(line[:3]) <= set("-+= ") and "Enflame" not in line]
    return Answer(rows=rows, refused=tuple(framed), stream=True) if rows else None


TOOL = Tool(
    name="efsmi",
    program="efsmi",
    maker="enflame",
    device="gcu",
    queries=(
        Query(arguments=("-q",), layout=query_text),
        Query(arguments=(), layout=table),
        Query(arguments=("-q", "--json-format"), layout=query_json),
    ),
    layouts=(query_text, query_json, table, dmon),
    fields=FIELDS,
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
    environ={"PATH": "/usr/local/efsmi"},
)
