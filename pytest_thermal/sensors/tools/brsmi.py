"""Biren's ``brsmi``: little of it is published, so that fields are tried, and what it does not know is not offered."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Unit
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row
from pytest_thermal.sensors.tools.figures import broken, figure
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.query_csv import query_rows, without_refused
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool

_BYTES_OF_ONE = 2.0**20

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("temperature.gpu",)),
    Field(quantity="power_watts", unit=Unit.WATTS, names=("power.draw",)),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("utilization.gpu",)),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("memory.used",),
        scale=_BYTES_OF_ONE,
        limits={"max": ("memory.total", "memory.used and free")},
    ),
)

_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_UNKNOWN = Raw("N/A (this brsmi knows no such field)")


def query_csv(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``gpu --query-gpu=… --format=csv``."""
    return query_rows(out, arguments, _row, figures=_FIGURES)


def _row(found: dict[str, Raw], order: str) -> Row:
    text = {name: raw.text for name, raw in found.items()}
    number = text.get("index", "")
    cells = {**dict.fromkeys(_FIGURES, _UNKNOWN), **found}
    used, free = (
        figure(found.get(name, Raw("")), Unit.BYTES, assumed=_BYTES_OF_ONE).value
        for name in ("memory.used", "memory.free")
    )
    if used is not None and free is not None:
        cells["memory.used and free"] = Raw(f"{used + free:.0f}", "B")
    return Row(
        key=number if number.isdigit() else order,
        cells=cells,
        identities=identities(text.get("uuid", ""), bus=text.get("pci.bus_id", "")),
        fault=next((one for name, one in text.items() if name in _FIGURES and broken(one)), ""),
    )


TOOL = Tool(
    name="brsmi",
    program="brsmi",
    maker="biren",
    device="gpu",
    queries=(
        Query(
            arguments=(
                "gpu",
                "--query-gpu=index,uuid,pci.bus_id,temperature.gpu,power.draw,utilization.gpu,memory.used,memory.total",
                "--format=csv",
            ),
            layout=query_csv,
            adapt=without_refused,
        ),
        # The fields that are known to exist.
        Query(
            arguments=(
                "gpu",
                "--query-gpu=index,name,memory.used,memory.free",
                "--format=csv,noheader,nounits",
            ),
            layout=query_csv,
        ),
    ),
    layouts=(query_csv,),
    fields=FIELDS,
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
)
