"""Intel Gaudi's ``hl-smi``: the CSV query, with and without header, and the table."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row
from pytest_thermal.sensors.tools.figures import broken
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.query_csv import query_rows, without_refused
from pytest_thermal.sensors.tools.readers import boxed_rows
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool, symptom

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("temperature.aip", "temp")),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("power.draw", "pwr:usage/cap"),
        limits={"cap": ("power.max", "pwr:usage/cap/2")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("utilization.aip", "aip-util")),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("memory.used", "memory-usage"),
        scale=2.0**20,
        limits={"max": ("memory.total", "memory-usage/2")},
    ),
)

_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_NEEDED_IN_TABLE = frozenset({"aip", "bus-id", "temp", "pwr:usage/cap"})
_PUBLISHED = (
    "index,uuid,name,driver_version,memory.total,memory.used,memory.free,power.draw,power.max,"
    "temperature.aip,utilization.aip"
)


def query_csv(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``-Q … -f csv`` or ``--query-aip=… --format=csv``."""
    return query_rows(out, arguments, _row, figures=_FIGURES)


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``hl-smi``."""
    return boxed_rows(out.lines, _row, needed=_NEEDED_IN_TABLE)


def _row(cells: dict[str, Raw], order: str) -> Row:
    text = {name: raw.text for name, raw in cells.items()}
    number = text.get("index") or text.get("aip") or ""
    bus = text.get("bus_id") or text.get("pci.bus_id") or text.get("bus-id") or ""
    return Row(
        key=number if number.isdigit() else order,
        cells=cells,
        identities=identities(text.get("uuid", ""), text.get("serial", ""), bus=bus),
        fault=next((one for name, one in text.items() if name in _FIGURES and broken(one)), ""),
    )


TOOL = Tool(
    name="hl-smi",
    program="hl-smi",
    maker="gaudi",
    device="hpu",
    queries=(
        Query(
            arguments=(
                "-Q",
                "index,uuid,bus_id,temperature.aip,power.draw,power.max,utilization.aip,memory.used,memory.total",
                *("-f", "csv"),
            ),
            layout=query_csv,
            adapt=without_refused,
        ),
        Query(arguments=("-Q", _PUBLISHED, "-f", "csv,noheader"), layout=query_csv),
        Query(arguments=(), layout=table),
    ),
    layouts=(query_csv, table),
    fields=FIELDS,
    symptoms=(
        symptom("habanalabs driver|driver is not loaded", Missing.DEVICE_ERROR, "is habanalabs loaded?"),
        *COMMON_SYMPTOMS,
    ),
    keys_stay=False,
)
