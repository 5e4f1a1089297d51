"""Cambricon's ``cnmon``: ``info`` as text or JSON, and the table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row, normal_bus_id
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import Key, box, first_json, holds_two, keys, nested
from pytest_thermal.sensors.tools.tool import Field, Query, Symptom, Tool

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("temperature/chip", "temp")),
    Field(quantity="board.temperature_celsius", unit=Unit.CELSIUS, names=("temperature/board",), zero_is_blank=True),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature/memory", "temperature/memory die 0"),
        zero_is_blank=True,
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("power/usage", "pwr:usage/cap"),
        limits={"cap": ("power/cap", "pwr:usage/cap/2")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("utilization/mlu average", "util")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        # The virtual memory has figures of the same form, and is not the card's.
        names=("physical memory usage/used", "memory-usage"),
        scale=2.0**20,
        limits={"max": ("physical memory usage/total", "memory-usage/2")},
    ),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan/percent", "fan")),
)

_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_JSON_NAMES: Mapping[tuple[str, ...], str] = {
    ("Temperature", "Chip"): "temperature/chip",
    ("Temperature", "Board"): "temperature/board",
    ("Temperature", "Memory"): "temperature/memory",
    ("Power", "Usage"): "power/usage",
    ("Power", "Cap"): "power/cap",
    ("Utilization", "MLUAverage"): "utilization/mlu average",
    ("PhysicalMemUsage", "Used"): "physical memory usage/used",
    ("PhysicalMemUsage", "Total"): "physical memory usage/total",
}
_NEEDED_IN_TABLE = frozenset({"card", "temp", "pwr:usage/cap"})


def info_text(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``cnmon info``: a block of indented keys for each ``Card n``."""
    blocks: list[tuple[str, list[Key]]] = []
    for key in keys(out.lines):
        title = re.fullmatch(r"Card (\d+)", key.name) if key and not key.value else None
        if title:
            blocks.append((title[1], []))
        elif key and blocks:
            blocks[-1][1].append(key)
    rows: list[Row] = []
    refused: list[str] = []
    for card, block in blocks:
        cells = nested(block)
        if holds_two(block, _FIGURES):
            refused.append(f"Card {card}, which has figures twice")
            continue
        rows.append(Row(key=card, cells=cells, identities=identities(cells.get("uuid", Raw("")).text)))
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def info_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``cnmon info -j``, which is a file: a user's command has to print it."""
    found = first_json(out.text)
    cards = found.get("CnmonInfo") if isinstance(found, dict) else None
    if not isinstance(cards, list):
        return None
    rows: list[Row] = []
    refused: list[str] = []
    for card in cards:
        number = card.get("CardNum") if isinstance(card, dict) else None
        if isinstance(number, bool) or not isinstance(number, int):
            refused.append(f"{card}"[:200])
            continue
        cells = {name: Raw(_text(card, path)) for path, name in _JSON_NAMES.items() if _text(card, path)}
        rows.append(Row(key=str(number), cells=cells, identities=identities(_text(card, ("UUID",)))))
    return Answer(rows=tuple(rows), refused=tuple(refused), ended=True)


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``cnmon``, of every version: two lines a card."""
    found = box(out.lines, needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        card, function = cells.get("card", Raw("")).text, cells.get("vf", Raw("/")).text
        if not card.isdigit():
            refused.append(" ".join(raw.text for raw in cells.values()))
            continue
        bus_id = normal_bus_id(cells.get("bus-id", Raw("")).text)
        key = f"{card}/{function}" if function.isdigit() else card
        rows.append(Row(key=key, cells=cells, identities=(bus_id,) if bus_id and key == card else ()))
    return Answer(rows=tuple(rows), refused=tuple(refused))


def _text(card: object, path: Sequence[str]) -> str:
    for name in path:
        card = card.get(name) if isinstance(card, dict) else None
    return "" if card is None or isinstance(card, (dict, list, bool)) else str(card)


TOOL = Tool(
    name="cnmon",
    program="cnmon",
    maker="cambricon",
    device="mlu",
    queries=(
        Query(arguments=("info", "-e", "-m", "-u", "-p"), layout=info_text),
        Query(arguments=(), layout=table),
    ),
    layouts=(info_json, info_text, table),
    fields=FIELDS,
    symptoms=(
        Symptom(
            pattern=re.compile(r"no (mlu|device|card)|(device|card)s? not found|there is no device", re.IGNORECASE),
            missing=Missing.ABSENT,
            meaning="the driver sees no card",
        ),
        Symptom(
            pattern=re.compile(r"(driver|cndev|device).*(fail|error|not)|fail|permission|error while", re.IGNORECASE),
            missing=Missing.DEVICE_ERROR,
        ),
    ),
)
