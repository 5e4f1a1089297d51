"""Iluvatar's ``ixsmi``: the CSV query, and the table. Of a board with two dies, the second shows the board's power."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row
from pytest_thermal.sensors.tools.figures import broken
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.query_csv import query_rows, without_refused
from pytest_thermal.sensors.tools.readers import boxed_rows
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("temperature.gpu", "temp")),
    Field(quantity="memory.temperature_celsius", unit=Unit.CELSIUS, names=("temperature.memory",), zero_is_blank=True),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("gpu.power.draw", "board.power.draw", "power.draw", "pwr:usage/cap"),
        limits={"cap": ("power.limit", "enforced.power.limit", "pwr:usage/cap/2")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("utilization.gpu", "gpu-util")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("memory.used", "memory-usage"),
        scale=2.0**20,
        limits={"max": ("memory.total", "memory-usage/2")},
    ),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan.speed", "fan")),
    Field(quantity="clock_megahertz", unit=Unit.MEGAHERTZ, names=("clocks.sm", "clocks.current.sm", "clock-sm")),
    Field(
        quantity="memory.clock_megahertz",
        unit=Unit.MEGAHERTZ,
        names=("clocks.mem", "clocks.current.memory", "clock-mem"),
    ),
)

_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_NEEDED_IN_TABLE = frozenset({"gpu", "bus-id", "temp", "pwr:usage/cap"})
_NUMBERS_ONLY = "index,temperature.gpu,{power},utilization.gpu,memory.used,memory.total"


def query_csv(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``--query-gpu=… --format=csv``."""
    return query_rows(out, arguments, _row, figures=_FIGURES)


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``ixsmi``, of every width."""
    return boxed_rows(out.lines, _row, needed=_NEEDED_IN_TABLE)


def _row(cells: dict[str, Raw], order: str) -> Row:
    text = {name: raw.text for name, raw in cells.items()}
    number = text.get("index") or text.get("gpu") or ""
    return Row(
        key=number if number.isdigit() else order,
        cells=cells,
        identities=identities(text.get("uuid", ""), bus=text.get("pci.bus_id") or text.get("bus-id") or ""),
        fault=next((one for name, one in text.items() if name in _FIGURES and broken(one)), ""),
    )


def _query(fields: str) -> Query:
    return Query(arguments=(f"--query-gpu={fields}", "--format=csv"), layout=query_csv, adapt=without_refused)


TOOL = Tool(
    name="ixsmi",
    program="ixsmi",
    maker="iluvatar",
    device="gpu",
    queries=(
        _query(
            "index,uuid,pci.bus_id,temperature.gpu,gpu.power.draw,board.power.draw,utilization.gpu,"
            "memory.used,memory.total,fan.speed,clocks.sm,clocks.mem"
        ),
        Query(arguments=(), layout=table),
        _query(_NUMBERS_ONLY.format(power="board.power.draw")),
        _query(_NUMBERS_ONLY.format(power="gpu.power.draw")),
    ),
    layouts=(query_csv, table),
    fields=FIELDS,
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
    environ={"PATH": "/usr/local/corex/bin", "LD_LIBRARY_PATH": "/usr/local/corex/lib64:/usr/local/corex/lib"},
)
