"""MetaX's ``mx-smi``: the table, ``dmon`` as CSV, texts of ``--show-…``, JSON; the list tells broken cards.

Of the JSON it is known that each card stands under its address, with ``device_id``, ``board_power`` (by rail, ``Way0``
…) and ``clocks``, and a card that cannot be used with ``unavailable_reason``; the rest is read by the texts' names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_thermal.model import Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Raw, Row, header, normal_bus_id
from pytest_thermal.sensors.tools.figures import UNITS, absent, fold
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import Key, box, csv_rows, flat, holds_two, json_documents, keys, split_csv
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("hotspot", "hottemp", "temp")),
    Field(quantity="inlet.temperature_celsius", unit=Unit.CELSIUS, names=("air-inlet",), zero_is_blank=True),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("pwr:usage/cap", "power", "total power"),
        limits={"cap": ("pwr:usage/cap/2",)},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("gpu-util", "gpu", "gpu usage")),
    Field(quantity="clock_megahertz", unit=Unit.MEGAHERTZ, names=("xcore clock",)),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("memory-usage", "vram", "vis_vram used"),
        scale=2.0**20,
        limits={"max": ("memory-usage/2", "total", "vis_vram total")},
    ),
)

_NEEDED_IN_TABLE = frozenset({"gpu", "bus-id", "temp", "memory-usage", "gpu-util"})
_TITLE = re.compile(r"GPU#(\d+)\s+(?:\S.*?\s+)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*(.*)")
_SHOWN = frozenset({"hotspot", "air-inlet", "vis_vram used"})
_TOTAL_POWER = re.compile(r"total\b.*?(?<![\d.])(\d+(?:\.\d+)?)\s*W", re.IGNORECASE)
_UUID = re.compile(r"UUID:\s*([^\s)]+)")
_JSON_NAMES = {
    "hotspot": re.compile(r"(?:.*temperature.*/)?hotspot(?:[ _]?\w*)?"),
    "air-inlet": re.compile(r"(?:.*temperature.*/)?air[ -]?inlet"),
    "total power": re.compile(r"board power/power(?:/(?:total|way\d+))?"),
    "xcore clock": re.compile(r"clocks/xcore/xcore clk"),
}
"""By our name: the path in the JSON."""
_FIRST_COLUMNS = frozenset({"dev", "device", "gpu_id", "index"})
_UNIT_WORDS = frozenset({"", "-", *UNITS})
_KILOBYTES = frozenset({"vram", "total"})


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``mx-smi``; older ones have neither a power cap nor a state."""
    found = box(out.lines, needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        bus = identities(bus=cells["bus-id"].text) if "bus-id" in cells else ()
        number = cells.get("gpu", Raw("")).text
        if number.isdigit() and bus:
            # The number is no utilisation, which dmon calls by this name.
            figures = {name: raw for name, raw in cells.items() if name != "gpu"}
            rows.append(
                Row(key=number, cells=figures, identities=bus, fault=_fault(cells.get("gpu-state", Raw("")).text))
            )
        else:
            refused.append(" ".join(raw.text for raw in cells.values()))
    return Answer(rows=tuple(rows), refused=tuple(refused))


def _fault(state: str) -> str:
    return state.strip() if fold(state).startswith(("not available", "unavailable", "abnormal", "error")) else ""


def shown_text(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-L`` and ``--show-…``: a line ``GPU#n`` for each card, and what belongs to it below."""
    titles = [_TITLE.fullmatch(line.strip()) for line in out.lines]
    places = [number for number, title in enumerate(titles) if title]
    rows: list[Row] = []
    refused: list[str] = []
    for begin, end in itertools.pairwise([*places, len(titles)]):
        title = titles[begin]
        if title is None:
            continue
        block = [key for key in keys(out.lines[begin + 1 : end]) if key]
        if holds_two([replace(key, depth=0) for key in block], _SHOWN):
            refused.append(f"GPU#{title[1]}, which has figures twice")
            continue
        state = title[3]
        uuid = _UUID.search(state)
        rows.append(
            Row(
                key=title[1],
                cells=_leaves(block),
                identities=identities(uuid[1] if uuid else "", bus=title[2]),
                fault=_fault(state),
            )
        )
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def _leaves(found: Sequence[Key]) -> Cells:
    """Cells by their key alone; the number of the sensor in brackets differs from card to card and is no unit."""
    cells: dict[str, Raw] = {}
    for key in found:
        # Of a board's rails, with volts and amperes before the watts, their sum.
        total = _TOTAL_POWER.fullmatch(f"{key.name} {key.value}")
        if total:
            cells.setdefault("total power", Raw(total[1], "W"))
        elif key.value:
            cells.setdefault(header(key.name)[0], Raw(key.value))
    return cells


def dmon(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``dmon … --format csv``: names, units, then a line a card; memory is in KB."""
    for place, line in enumerate(out.lines):
        names = split_csv(line)
        if fold(names[0]) not in _FIRST_COLUMNS or len(names) == 1:
            continue
        below = [one for one in out.lines[place + 1 :] if one.strip()]
        units = split_csv(below[0]) if below else []
        has_units = len(units) == len(names) and all(fold(unit) in _UNIT_WORDS for unit in units)
        lines = [one for one in below if split_csv(one) != units] if has_units else below
        found, refused = csv_rows(lines, names)
        rows = []
        for cells in found:
            number = next(iter(cells.values())).text
            if number.isdigit():
                bus = next((raw.text for raw in cells.values() if normal_bus_id(raw.text)), "")
                told = _with_units(cells, names, units if has_units else [])
                rows.append(Row(key=number, cells=told, identities=identities(bus=bus)))
            else:
                refused.append(",".join(raw.text for raw in cells.values()))
        return Answer(rows=tuple(rows), refused=tuple(refused), stream=True) if rows or refused else None
    return None


def as_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-j``: an object whose keys are the cards' addresses."""
    for document in json_documents(out.text):
        cards = [
            (bus, card)
            for bus, card in (document.items() if isinstance(document, dict) else ())
            if normal_bus_id(bus) and isinstance(card, dict) and f"{card.get('device_id', '')}".isdigit()
        ]
        if cards:
            return Answer(rows=tuple(_json_row(bus, card) for bus, card in cards), ended=True)
    return None


def _json_row(bus: str, card: Mapping[str, object]) -> Row:
    leaves = flat(card)
    found: dict[str, set[Raw]] = {}
    for path, raw in leaves.items():
        last = path.rpartition("/")[2]
        name = next((name for name, pattern in _JSON_NAMES.items() if pattern.fullmatch(path)), "")
        if name or last in _SHOWN:
            found.setdefault(name or last, set()).add(raw)
    # Two hot spots, or a board of several rails without their sum, and which is the card's cannot be told.
    cells = {name: raws.pop() for name, raws in found.items() if len(raws) == 1}
    uuid, reason = leaves.get("uuid", Raw("")).text, leaves.get("unavailable reason", Raw("")).text
    return Row(
        key=f"{card['device_id']}",
        cells=cells,
        identities=identities(uuid, bus=bus),
        fault="" if absent(reason) else reason,
    )


def _with_units(cells: Cells, names: Sequence[str], units: Sequence[str]) -> Cells:
    told = dict(zip((header(name)[0] for name in names), units, strict=True)) if units else {}
    return {
        name: Raw(raw.text, raw.unit or told.get(name, "").strip("-") or ("KB" if name in _KILOBYTES else ""))
        for name, raw in cells.items()
    }


TOOL = Tool(
    name="mx-smi",
    program="mx-smi",
    maker="metax",
    device="gpu",
    # The table tells each card's address; dmon only numbers, though it is finer.
    queries=(
        Query(arguments=(), layout=table),
        Query(
            arguments=(
                *("dmon", "--show-temperature", "--show-board-power", "--show-usage", "--show-memory"),
                *("--total-memory", "--format", "csv", "-c", "1"),
            ),
            layout=dmon,
        ),
        Query(arguments=("--show-temperature",), layout=shown_text),
    ),
    layouts=(table, dmon, shown_text, as_json),
    fields=FIELDS,
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
    register=(Query(arguments=("-L",), layout=shown_text),),
    environ={"PATH": "/opt/mxdriver/bin:/opt/maca/bin"},
)

HPCC = replace(TOOL, name="ht-smi", program="ht-smi", fallback_for="mx-smi", environ={})
"""The same program for the cards that are sold with HPCC in place of MACA."""
