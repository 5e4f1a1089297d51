"""Intel's ``xpu-smi``: ``--query-gpu`` of 2.0, and ``dump`` of both. Kunlunxin has a tool of the same name.

Fields of the query: https://intel.github.io/xpumanager/2.0/xpu-smi/overview.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Raw, Row, header
from pytest_thermal.sensors.tools.figures import broken
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.query_csv import query_rows, without_refused
from pytest_thermal.sensors.tools.readers import csv_rows, split_csv
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool, symptom

FIELDS = (
    Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=("gpu core temperature", "temperature.gpu")),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("gpu memory temperature", "temperature.memory"),
        zero_is_blank=True,
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("gpu power", "power.draw"),
        limits={"cap": ("power.limit",)},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("gpu utilization", "utilization.gpu")),
    Field(
        quantity="clock_megahertz",
        unit=Unit.MEGAHERTZ,
        names=("gpu frequency", "clocks.current.graphics"),
        limits={"max": ("clocks.max.graphics",)},
    ),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("gpu memory used", "memory.used"),
        scale=2.0**20,
        limits={"max": ("memory.total",)},
    ),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan.speed",)),
    Field(quantity="memory.utilization_percent", unit=Unit.PERCENT, names=("gpu memory utilization",)),
)

_NUMBER = frozenset({"deviceid", "device id"})
_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_ASKED = (
    "index,uuid,pci.bus_id,temperature.gpu,temperature.memory,power.draw,power.limit,utilization.gpu,memory.used,"
    "memory.total,clocks.current.graphics,clocks.max.graphics,fan.speed"
)
_BLANK = "N/A (blank: it may need root)"


def dump(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``dump`` and ``discovery --dump``: CSV under a header; of repeated lines the last of each device counts."""
    for place, line in enumerate(out.lines):
        names = split_csv(line)
        spelled = [header(name)[0] for name in names]
        # By tile, each line would be a part of a device.
        if len(names) == 1 or not _NUMBER & set(spelled) or "tileid" in spelled:
            continue
        found, refused = csv_rows(out.lines[place + 1 :], names)
        rows = []
        for cells in found:
            number = next(cells[name].text for name in spelled if name in _NUMBER)
            if number.isdigit():
                rows.append(_row(number, cells))
            else:
                refused.append(", ".join(raw.text for raw in cells.values()))
        return Answer(rows=tuple(rows), refused=tuple(refused), stream=True) if rows or refused else None
    return None


def _row(number: str, found: Cells) -> Row:
    cells = {name: Raw(raw.text.strip('"') or _BLANK, raw.unit) for name, raw in found.items()}
    uuid = next((raw.text for name, raw in cells.items() if name.endswith("uuid")), "")
    return Row(key=number, cells=cells, identities=identities(uuid, bus=cells.get("pci bdf address", Raw("")).text))


def query_csv(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``--query-gpu=… --format=csv``, with or without header and units."""
    return query_rows(out, arguments, _queried, figures=_FIGURES)


def _queried(cells: dict[str, Raw], order: str) -> Row:
    text = {name: raw.text for name, raw in cells.items()}
    number = text.get("index", "")
    return Row(
        key=number if number.isdigit() else order,
        cells=cells,
        identities=identities(text.get("uuid", ""), text.get("serial", ""), bus=text.get("pci.bus_id", "")),
        fault=next((one for name, one in text.items() if name in _FIGURES and broken(one)), ""),
    )


TOOL = Tool(
    name="xpu-smi-intel",
    program="xpu-smi",
    maker="intel",
    device="gpu",
    queries=(
        Query(arguments=(f"--query-gpu={_ASKED}", "--format=csv"), layout=query_csv, adapt=without_refused),
        Query(arguments=("dump", "-d", "-1", "-m", "0,1,2,3,4,5,18", "-n", "1"), layout=dump),
        Query(arguments=("dump", "-d", "-1", "-m", "1,3", "-n", "1"), layout=dump),
    ),
    layouts=(query_csv, dump),
    fields=FIELDS,
    symptoms=(
        symptom("XPU-SMI.*XPU-RT|unknown (option|command).*dump", Missing.ABSENT, "this xpu-smi is Kunlunxin's"),
        symptom(
            "no device|device not found|level zero initiali[sz]ation error", Missing.ABSENT, "the driver sees no GPU"
        ),
        *COMMON_SYMPTOMS,
    ),
    keys_stay=False,
    register=(Query(arguments=("discovery", "--dump", "1,4,11"), layout=dump),),
)
