"""Kunlunxin's ``xpu-smi``: the table, ``-m``, whose fields have no names, and XML. Intel's tool has the same name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row, normal_bus_id
from pytest_thermal.sensors.tools.figures import broken, figure
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import box, xml_rows
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool, symptom

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("temp", "temperature/xpu_temp")),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("pwr:usage/cap", "power_readings/power_draw"),
        limits={"cap": ("pwr:usage/cap/2", "power_readings/enforced_power_limit")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("xpu-util", "utilization/xpu_util")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        # The line below has a pair of the same form: the L3 cache.
        names=("memory-usage", "fb_memory_usage/used"),
        scale=2.0**20,
        limits={"max": ("memory-usage/2", "fb_memory_usage/total")},
    ),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan",)),
)

_NEEDED_IN_TABLE = frozenset({"xpu", "bus-id", "temp", "pwr:usage/cap"})
_PLACES = {"temp": 4, "pwr:usage/cap": 8, "memory-usage": 17, "memory-usage/2": 18, "xpu-util": 19}
_NUMBER, _NAME = 1, 21


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``xpu-smi``: three lines a card."""
    found = box(out.lines, needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        bus = identities(bus=cells.get("bus-id", Raw("")).text)
        if cells.get("xpu", Raw("")).text.isdigit() and bus:
            rows.append(Row(key=cells["xpu"].text, cells=cells, identities=bus))
        else:
            refused.append(" ".join(raw.text for raw in cells.values()))
    return Answer(rows=tuple(rows), refused=tuple(refused))


def machine(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-m``: a line of blank-separated fields a card, known by their places alone.

    Read only where everything that can be checked agrees: address, number and quoted name stand where they should,
    and the figures can be what they are taken for.
    """
    rows: list[Row] = []
    refused: list[str] = []
    for line in out.lines:
        if not normal_bus_id(line.split(maxsplit=1)[0] if line.strip() else ""):
            continue
        row = _machine_row(line)
        if row is None:
            refused.append(line)
        else:
            rows.append(row)
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def _machine_row(line: str) -> Row | None:
    try:
        fields = shlex.split(line)
    except ValueError:
        return None
    if len(fields) <= _NAME or not fields[_NUMBER].isdigit() or f'"{fields[_NAME]}"' not in line:
        return None
    cells = {name: Raw(fields[place]) for name, place in _PLACES.items()}
    used, total, busy = (
        figure(cells[name], Unit.COUNT).value for name in ("memory-usage", "memory-usage/2", "xpu-util")
    )
    fits = used is not None and total is not None and 0 <= used <= total and total > 0
    if not fits or busy is None or not 0 <= busy <= 100 or not re.search("[A-Za-z]", fields[_NAME]):
        return None
    return Row(key=fields[_NUMBER], cells=cells, identities=identities(bus=fields[0]))


def xml(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q -x`` or ``--xml-format``."""
    return xml_rows(out.text, _xml_row, root="xpu_smi_log", device="xpu")


def _xml_row(cells: Mapping[str, Raw], order: str) -> Row:
    texts = {name: raw.text for name, raw in cells.items()}
    number = texts.get("minor_number", "")
    figures = {name: texts[name] for one in FIELDS for name in one.names if name in texts}
    return Row(
        key=number if number.isdigit() else order,
        cells=cells,
        identities=identities(texts.get("uuid", ""), texts.get("serial", ""), bus=texts["pci.bus_id"]),
        fault=next((text for text in figures.values() if broken(text)), ""),
    )


TOOL = Tool(
    name="xpu-smi",
    program="xpu-smi",
    maker="kunlunxin",
    device="xpu",
    queries=(
        Query(arguments=(), layout=table),
        Query(arguments=("-m",), layout=machine),
        Query(arguments=("-q", "-x"), layout=xml),
    ),
    layouts=(table, machine, xml),
    fields=FIELDS,
    symptoms=(
        symptom(r"Intel(\(R\))? XPU|xpumcli|DeviceId,", Missing.ABSENT, "this xpu-smi is Intel's, not Kunlunxin's"),
        *COMMON_SYMPTOMS,
    ),
    keys_stay=False,
    environ={"PATH": "/opt/xre/bin"},
)

OLDER = replace(TOOL, name="xpu_smi", program="xpu_smi", fallback_for="xpu-smi")
"""What it was called before."""
