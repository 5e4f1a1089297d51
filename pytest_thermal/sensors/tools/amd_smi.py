"""AMD's ``amd-smi``: ``metric`` as JSON and as text, limits from ``static``, and from ``list`` which card is which."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Row
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import Key, flat, holds_two, json_documents, keys, nested
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool, symptom


def _limits(part: str) -> dict[str, tuple[str, ...]]:
    return {kind: (f"limit/{kind} {part} temperature",) for kind in ("slowdown", "shutdown")}


_VRAM_LIMITS = {kind: (f"limit/{kind} vram temperature", f"limit/{kind} mem temperature") for kind in _limits("")}

FIELDS = (
    Field(
        quantity="temperature_celsius",
        unit=Unit.CELSIUS,
        # Data-centre cards have no edge sensor, some of the others no hot spot.
        names=("temperature/hotspot", "temperature/edge"),
        limits_of={"temperature/hotspot": _limits("hotspot"), "temperature/edge": _limits("edge")},
    ),
    Field(quantity="edge.temperature_celsius", unit=Unit.CELSIUS, names=("temperature/edge",), limits=_limits("edge")),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature/mem", "temperature/vram"),
        limits=_VRAM_LIMITS,
        zero_is_blank=True,
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=(
            "power/socket power",
            "power/current socket power",
            "power/current power",
            "power/average socket power",
            "power/average power",
        ),
        limits={"cap": ("limit/socket power", "limit/ppt0/socket power limit", "limit/current power")},
    ),
    Field(
        quantity="utilization_percent", unit=Unit.PERCENT, names=("usage/gfx activity", "usage/gfx usage", "usage/gfx")
    ),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("mem usage/used vram", "vram/used vram", "fb usage/fb used"),
        scale=2.0**20,
        limits={"max": ("mem usage/total vram", "vram/total vram", "fb usage/fb total")},
    ),
    Field(quantity="fan.speed_rpm", unit=Unit.RPM, names=("fan/rpm",)),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan/usage",)),
    Field(quantity="clock_megahertz", unit=Unit.MEGAHERTZ, names=("clock/gfx 0/clk", "clock/gfx/clk")),
    *(
        Field(
            quantity=f"throttle.{reason}_bits",
            unit=Unit.BITS,
            names=(f"throttle/{reason.replace('_', ' ')} violation status",),
        )
        for reason in ("prochot", "socket_thermal", "vr_thermal", "hbm_thermal", "ppt")
    ),
    # A card's own word for any of its reasons.
    Field(quantity="throttle.slowdown_bits", unit=Unit.BITS, names=("power/throttle status",)),
)

_TEXT_FIGURES = frozenset(
    f"{group.replace(' ', '_')}/{name.replace(' ', '_')}"
    for field in FIELDS
    for group, _, name in (one.partition("/") for one in field.names)
)


def metric_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``--json`` of any sub-command: a list of GPUs, or that list as ``gpu_data``. Text may come before it."""
    for found in json_documents(out.text):
        gpus = found.get("gpu_data") if isinstance(found, dict) else found
        if not isinstance(gpus, list) or not any(isinstance(gpu, dict) and "gpu" in gpu for gpu in gpus):
            continue
        rows: list[Row] = []
        refused: list[str] = []
        for gpu in gpus:
            number = gpu.get("gpu") if isinstance(gpu, dict) else None
            if isinstance(number, int) and not isinstance(number, bool):
                rows.append(_row(f"{number}", flat(gpu)))
            else:
                refused.append(f"{gpu}"[:200])
        return Answer(rows=tuple(rows), refused=tuple(refused), ended=True)
    return None


def metric_text(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The same for people: indented keys in capitals below ``GPU: n``."""
    blocks: list[tuple[str, list[Key]]] = []
    for key in keys(out.lines):
        if key and key.depth == 0 and key.name == "GPU" and key.value.isdigit():
            blocks.append((key.value, []))
        elif key and blocks:
            blocks[-1][1].append(key)
    # Figures stand in several groups; a group that comes again is another card's.
    whole = [(number, block) for number, block in blocks if not holds_two(block, _TEXT_FIGURES)]
    refused = [f"GPU {number}, which has figures twice" for number, block in blocks if (number, block) not in whole]
    rows = [_row(number, {_spelled(name): raw for name, raw in nested(block).items()}) for number, block in whole]
    return Answer(rows=tuple(rows), refused=tuple(refused)) if blocks else None


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def _row(number: str, cells: Cells) -> Row:
    text = {name: raw.text for name, raw in cells.items()}
    bus = text.get("bdf") or text.get("bus/bdf") or ""
    return Row(key=number, cells=cells, identities=identities(text.get("uuid", ""), bus=bus))


TOOL = Tool(
    name="amd-smi",
    program="amd-smi",
    maker="amd",
    device="gpu",
    queries=(Query(arguments=("metric", "--json"), layout=metric_json),),
    layouts=(metric_json, metric_text),
    fields=FIELDS,
    symptoms=(
        symptom(
            "driver not initialized|amdgpu not found|unable to find.*driver", Missing.DEVICE_ERROR, "is amdgpu loaded?"
        ),
        symptom(r"AMDSMI_STATUS_(NO_PERM|FILE_ERROR)", Missing.UNREADABLE, "the groups are render and video"),
        symptom(r"AMDSMI_STATUS_\w+", Missing.DEVICE_ERROR),
        *COMMON_SYMPTOMS,
    ),
    keys_stay=False,
    register=(Query(arguments=("list", "--json"), layout=metric_json),),
    at_start=(Query(arguments=("static", "--limit", "--json"), layout=metric_json),),
    environ={"PATH": "/opt/rocm/bin"},
)
