"""NVIDIA's ``nvidia-smi``: the CSV query, XML and text of ``-q``, the table, and ``dmon``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Raw, Row, normal_bus_id
from pytest_thermal.sensors.tools.figures import broken, figure
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.query_csv import query_rows
from pytest_thermal.sensors.tools.readers import Key, boxed_rows, holds_two, keys, nested, two_line_columns, xml_rows
from pytest_thermal.sensors.tools.tool import Field, Query, Tool, symptom

FIELDS = (
    Field(
        quantity="temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature.gpu", "temperature/gpu current temp", "temperature/gpu_temp", "temp", "gtemp"),
        limits={
            "slowdown": ("temperature/gpu slowdown temp", "temperature/gpu_temp_slow_threshold"),
            "shutdown": ("temperature/gpu shutdown temp", "temperature/gpu_temp_max_threshold"),
            "max": ("temperature/gpu max operating temp", "temperature/gpu_temp_max_gpu_threshold"),
        },
    ),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature.memory", "temperature/memory current temp", "temperature/memory_temp", "mtemp"),
        limits={"max": ("temperature/memory max operating temp", "temperature/gpu_temp_max_mem_threshold")},
        zero_is_blank=True,
    ),
    Field(
        quantity="temperature_kelvin_margin",
        unit=Unit.KELVIN_MARGIN,
        names=("temperature.gpu.tlimit", "temperature/gpu t.limit temp", "temperature/gpu_temp_tlimit"),
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=(
            "power.draw",
            "gpu power readings/average power draw",
            "gpu power readings/power draw",
            "power readings/power draw",
            "gpu_power_readings/average_power_draw",
            "gpu_power_readings/power_draw",
            "power_readings/power_draw",
            "pwr:usage/cap",
            "pwr",
        ),
        limits={
            "cap": (
                "enforced.power.limit",
                "gpu power readings/current power limit",
                "power readings/enforced power limit",
                "gpu_power_readings/current_power_limit",
                "power_readings/enforced_power_limit",
                "pwr:usage/cap/2",
            )
        },
    ),
    # A mean over the last second and the moment itself are two series: they are never mixed.
    Field(
        quantity="instant.power_watts",
        unit=Unit.WATTS,
        names=(
            "power.draw.instant",
            "gpu power readings/instantaneous power draw",
            "gpu_power_readings/instant_power_draw",
        ),
    ),
    Field(
        quantity="memory.power_watts",
        unit=Unit.WATTS,
        names=("gpu memory power readings/average power draw", "gpu_memory_power_readings/average_power_draw"),
    ),
    Field(
        quantity="utilization_percent",
        unit=Unit.PERCENT,
        names=("utilization.gpu", "utilization/gpu", "utilization/gpu_util", "gpu-util", "sm"),
    ),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("memory.used", "fb memory usage/used", "fb_memory_usage/used", "memory-usage"),
        scale=2.0**20,
        limits={"max": ("memory.total", "fb memory usage/total", "fb_memory_usage/total", "memory-usage/2")},
    ),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan.speed", "fan speed", "fan_speed", "fan")),
    Field(
        quantity="clock_megahertz",
        unit=Unit.MEGAHERTZ,
        names=("clocks.current.sm", "clocks.sm", "clocks/sm", "clocks/sm_clock", "pclk"),
    ),
    Field(
        quantity="memory.clock_megahertz",
        unit=Unit.MEGAHERTZ,
        names=("clocks.current.memory", "clocks.mem", "clocks/memory", "clocks/mem_clock", "mclk"),
    ),
    Field(
        quantity="throttle_reasons_bits",
        unit=Unit.BITS,
        names=("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    ),
    *(
        Field(
            quantity=f"throttle.{reason}_milliseconds",
            unit=Unit.MILLISECONDS,
            names=(f"clocks_event_reasons_counters.{column}",),
            scale=1e-3,
        )
        for reason, column in (
            ("power_cap", "sw_power_cap"),
            ("software_thermal", "sw_thermal_slowdown"),
            ("hardware_thermal", "hw_thermal_slowdown"),
            ("power_brake", "hw_power_brake_slowdown"),
        )
    ),
)

_ASKED = (
    "index",
    "uuid",
    "pci.bus_id",
    *("temperature.gpu", "temperature.memory", "temperature.gpu.tlimit"),
    *("power.draw", "power.draw.instant", "enforced.power.limit"),
    *("utilization.gpu", "memory.used", "memory.total", "fan.speed", "clocks.sm", "clocks.mem"),
    "clocks_event_reasons.active",
    *(name for field in FIELDS for name in field.names if "reasons_counters" in name),
)
_OLDER = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
"""Fields that older drivers know by another name. Unknown ones without one are not asked for again."""

_FIGURES = frozenset(name for field in FIELDS for name in field.names)
_LIMITS = frozenset(name for field in FIELDS for names in field.limits.values() for name in names)

_NEEDED_IN_TABLE = frozenset({"gpu", "bus-id", "temp", "pwr:usage/cap"})
_UUID = re.compile(r"GPU-[0-9a-fA-F-]{8,}")
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
_HANDLE = re.compile(
    r"determine the device handle for \w*?\s*(?P<device>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
)
_KERNEL_LIST = Path("/proc/driver/nvidia/gpus")


# ------------------------------------------------------------------------------------------------- layouts


def query_csv(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``--query-gpu=… --format=csv``, with or without header and units."""
    return query_rows(out, arguments, _row, figures=_FIGURES, names=_LIMITS)


def _row(cells: Cells, order: str) -> Row:
    texts = {name: raw.text for name, raw in cells.items()}
    uuid = texts.get("uuid") or texts.get("gpu_uuid") or texts.get("gpu uuid") or ""
    bus_id = normal_bus_id(texts.get("pci.bus_id") or texts.get("gpu_bus_id") or texts.get("bus-id") or "")
    index = texts.get("index", "")
    return Row(
        key=index if index.isdigit() else order,
        cells=cells,
        identities=tuple(one for one in (uuid if _UUID.fullmatch(uuid) else "", bus_id) if one),
        fault=next((text for name, text in texts.items() if name in _FIGURES and broken(text)), ""),
    )


def xml(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q -x``, of every version of its schema."""
    return xml_rows(
        out.text,
        lambda cells, order: _row({**_absolute(cells, _XML_MARGINS), **cells}, order),
        root="nvidia_smi_log",
        device="gpu",
    )


def query_text(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-q``, whole or with ``-d``."""
    blocks: list[tuple[str, list[Key]]] = []
    for key in keys(out.lines):
        title = re.fullmatch(r"GPU ([0-9A-Fa-f:]+\.[0-7])", key.name) if key and key.depth == 0 else None
        if title:
            blocks.append((title[1], []))
        elif key and blocks:
            blocks[-1][1].append(key)
    rows: list[Row] = []
    refused: list[str] = []
    for order, (bus_id, block) in enumerate(blocks):
        if holds_two(block, _FIGURES):
            refused.append(f"GPU {bus_id}, which has figures twice")
            continue
        cells = {**nested(block), "pci.bus_id": Raw(bus_id)}
        rows.append(_row({**_absolute(cells, _TEXT_MARGINS), **cells}, str(order)))
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


_XML_MARGINS = (
    "temperature/gpu_temp",
    "temperature/gpu_temp_tlimit",
    {
        "temperature/gpu_temp_slow_threshold": "temperature/gpu_temp_slow_tlimit_threshold",
        "temperature/gpu_temp_max_threshold": "temperature/gpu_temp_max_tlimit_threshold",
        "temperature/gpu_temp_max_gpu_threshold": "temperature/gpu_temp_max_gpu_tlimit_threshold",
    },
)
_TEXT_MARGINS = (
    "temperature/gpu current temp",
    "temperature/gpu t.limit temp",
    {
        "temperature/gpu slowdown temp": "temperature/gpu slowdown t.limit temp",
        "temperature/gpu shutdown temp": "temperature/gpu shutdown t.limit temp",
        "temperature/gpu max operating temp": "temperature/gpu max operating t.limit temp",
    },
)


def _absolute(cells: Cells, told: tuple[str, str, Mapping[str, str]]) -> dict[str, Raw]:
    """Limits told as margins, as temperatures: a slowdown at margin −2, where 47 °C leave 40, is one at 89 °C."""
    now, left, limits = told
    celsius = figure(cells.get(now, Raw("")), Unit.CELSIUS).value
    margin = figure(cells.get(left, Raw("")), Unit.KELVIN_MARGIN).value
    found = {}
    for absolute, relative in limits.items():
        limit = figure(cells.get(relative, Raw("")), Unit.KELVIN_MARGIN).value
        if celsius is not None and margin is not None and limit is not None:
            found[absolute] = Raw(f"{celsius + margin - limit:g}", "C")
    return found


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table of plain ``nvidia-smi``, of every width."""
    return boxed_rows(
        out.lines,
        lambda cells, order: _row({**cells, "index": cells.get("gpu", Raw(""))}, order),
        needed=_NEEDED_IN_TABLE,
    )


def dmon(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``dmon``: header lines begin with ``#`` and come again; the last line of each GPU counts."""
    read = two_line_columns(out.lines, mark="#")
    if read is None:
        return None
    found, refused = read
    if not all("gpu" in cells for cells in found):
        return None
    rows = tuple(_row({**cells, "index": cells["gpu"]}, "") for cells in found if cells["gpu"].text.isdigit())
    return Answer(rows=rows, refused=tuple(refused), stream=True)


# --------------------------------------------------------------------------------------------- other arguments


def adapted(arguments: Sequence[str], out: Printed, known: Sequence[str]) -> Sequence[str] | None:
    """Without a field that this driver does not know; without a GPU that fell off its bus and hides all others."""
    unknown = _UNKNOWN_FIELD.search(out.text)
    if unknown:
        return [_without_field(one, unknown[1]) if one.startswith("--query-gpu=") else one for one in arguments]
    if _HANDLE.search(out.text) and known:
        before = list(arguments[: arguments.index("-i")]) if "-i" in arguments else list(arguments)
        return [*before, "-i", ",".join(known)]
    return None


def _without_field(query: str, field: str) -> str:
    option, _, names = query.partition("=")
    kept = [_OLDER.get(name, "") if name == field else name for name in names.split(",")]
    return f"{option}={','.join(filter(None, kept))}"


def kernel_list() -> list[str]:
    """PCI addresses of the GPUs that the kernel module has bound."""
    try:
        return sorted(filter(None, (normal_bus_id(folder.name) for folder in _KERNEL_LIST.iterdir())))
    except OSError:
        return []


# ----------------------------------------------------------------------------------------------------- the tool


TOOL = Tool(
    name="nvidia-smi",
    program="nvidia-smi",
    maker="nvidia",
    device="gpu",
    queries=(
        Query(
            arguments=(f"--query-gpu={','.join(_ASKED)}", "--format=csv"),
            layout=query_csv,
            adapt=adapted,
            loop=("--loop-ms=1000",),
        ),
        Query(arguments=("-q", "-x"), layout=xml),
        Query(arguments=(), layout=table),
    ),
    layouts=(query_csv, xml, query_text, table, dmon),
    fields=FIELDS,
    symptoms=(
        symptom(_HANDLE.pattern, Missing.DEVICE_ERROR),
        symptom("no devices were found|no supported GPUs", Missing.ABSENT, "the driver sees no GPU"),
        symptom(
            "driver/library version mismatch",
            Missing.DEVICE_ERROR,
            "the driver was updated while its kernel module runs on: reload it or reboot",
        ),
        symptom("couldn't communicate with the nvidia driver", Missing.DEVICE_ERROR, "its kernel module is not loaded"),
        symptom("nvml: insufficient permissions", Missing.UNREADABLE, "this user may not open the device files"),
        symptom(
            "failed to initialize nvml: unknown error",
            Missing.DEVICE_ERROR,
            "of a container: it lost its devices, as after systemctl daemon-reload; start it again",
        ),
        symptom("failed to initialize nvml|nvidia-smi has failed", Missing.DEVICE_ERROR),
        symptom(_UNKNOWN_FIELD.pattern, Missing.NOT_OFFERED, "older than this driver's fields"),
    ),
    census=kernel_list,
    fallback_for="nvml",
    keys_stay=False,
    at_start=(Query(arguments=("-q", "-x"), layout=xml),),
)
