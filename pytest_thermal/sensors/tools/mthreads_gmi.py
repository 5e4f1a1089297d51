"""Moore Threads' ``mthreads-gmi``: ``-q --json``, and the table, which has no power."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_thermal.model import Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import box, flat, json_documents
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool

FIELDS = (
    Field(
        quantity="temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature/gpu current temp", "temp"),
        limits={
            "slowdown": ("temperature/gpu slowdown temp",),
            "shutdown": ("temperature/gpu shutdown temp",),
            "max": ("temperature/gpu max operating temp",),
        },
    ),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature/memory current temp",),
        zero_is_blank=True,
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("power readings/power draw", "power draw"),
        limits={"cap": ("power readings/current power limit", "power readings/power limit")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("utilization/gpu", "%gpu")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("fb memory usage/used", "mem"),
        scale=2.0**20,
        limits={"max": ("fb memory usage/total", "mem/2")},
    ),
    Field(quantity="clock_megahertz", unit=Unit.MEGAHERTZ, names=("clocks/graphics",)),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan speed",)),
)

_NEEDED_IN_TABLE = frozenset({"id", "pcie", "%gpu", "temp"})
_OF_TOTAL = re.compile(r"(\d\s*[KMG]i?B)\s*\(\s*(\d+\s*[KMG]i?B)\s*\)")
_BUS = re.compile(r"(?:.*/)?bus id")


def query_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q --json``: a list of GPUs. Some keys end in a blank; text may come before it."""
    for found in json_documents(out.text):
        gpus = found.get("GPU") if isinstance(found, dict) else None
        if not isinstance(gpus, list):
            continue
        rows: list[Row] = []
        refused: list[str] = []
        for gpu in gpus:
            cells = flat(gpu)
            if cells.get("index", Raw("")).text.isdigit():
                rows.append(_row(cells["index"].text, cells))
            else:
                refused.append(f"{gpu}"[:200])
        return Answer(rows=tuple(rows), refused=tuple(refused), ended=True)
    return None


def _row(number: str, cells: dict[str, Raw]) -> Row:
    bus = next((raw.text for name, raw in cells.items() if _BUS.fullmatch(name)), "")
    uuid, serial = (cells.get(name, Raw("")).text for name in ("gpu uuid", "serial number"))
    return Row(key=number, cells=cells, identities=identities(uuid, serial, bus=bus))


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``mthreads-gmi``: three lines a card, parted by ``|`` but not framed."""
    end = next((number for number, line in enumerate(out.lines) if line.startswith("Processes")), len(out.lines))
    lines = [_OF_TOTAL.sub(r"\1/\2", line) for line in out.lines[:end]]
    found = box([f"|{line}|" if "|" in line else line for line in lines], needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        bus = identities(bus=cells.get("pcie", Raw("")).text)
        if cells.get("id", Raw("")).text.isdigit() and bus:
            whole = {**cells, "power draw": Raw("N/A (this table has no power)")}
            rows.append(Row(key=cells["id"].text, cells=whole, identities=bus))
        else:
            refused.append(" ".join(raw.text for raw in cells.values()))
    return Answer(rows=tuple(rows), refused=tuple(refused))


TOOL = Tool(
    name="mthreads-gmi",
    program="mthreads-gmi",
    maker="mthreads",
    device="gpu",
    queries=(Query(arguments=("-q", "--json"), layout=query_json), Query(arguments=(), layout=table)),
    layouts=(query_json, table),
    fields=FIELDS,
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
)
