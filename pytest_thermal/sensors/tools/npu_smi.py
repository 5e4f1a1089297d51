"""Huawei's ``npu-smi``: the table of every family, the ``-t`` sub-commands, the map of chips, and ``watch``.

A device is a chip, keyed ``card/chip``; the family without chips (950) by its card alone. A card's own controller
(MCU) prints the board's temperature and, of some families, the only power there is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Raw, Row, header, normal_bus_id
from pytest_thermal.sensors.tools.devices import CONFLICT, CONTROLLER
from pytest_thermal.sensors.tools.figures import blank, fold
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import Key, box, column_rows, keys
from pytest_thermal.sensors.tools.tool import Field, Query, Tool, symptom

FIELDS = (
    Field(
        quantity="temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temp", "npu temperature", "temperature", "lm75a_te"),
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=("power", "npu real-time power", "power dissipation", "pwr"),
        of_card=True,
    ),
    Field(
        quantity="utilization_percent",
        unit=Unit.PERCENT,
        names=("aicore", "npu util", "aicore usage rate", "ai core"),
    ),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        # Where there is HBM, the other column is a memory of the board that nothing uses.
        names=("hbm-usage", "memory-usage"),
        scale=2.0**20,
        limits={"max": ("hbm-usage/2", "memory-usage/2", "hbm capacity")},
    ),
    Field(quantity="memory.temperature_celsius", unit=Unit.CELSIUS, names=("hbm temperature",), zero_is_blank=True),
    Field(quantity="clock_megahertz", unit=Unit.MEGAHERTZ, names=("aicore curfreq", "aicore freq")),
)

_NEEDED_IN_TABLE = frozenset({"health", "power", "temp"})
_HEALTHY = frozenset({"ok", "normal"})
_RATED_POWER_NAMES = re.compile(r"(ascend\s*)?310\b", re.IGNORECASE)
"""Families whose table shows the rated power, a constant."""
_CONTROLLER_POWER_NAMES = re.compile(r"310", re.IGNORECASE)
"""Families whose only measured power is the card's, told by its controller."""
_RATED = "rated power dissipation"
_SECTION_NAMES = frozenset(name for field in FIELDS for name in field.names) | {
    _RATED,
    "health status",
    "npu utilization",
}
_MOST_CHIPS = 16
_OWNERS = ("Chip ID", "Chip Name")


# ------------------------------------------------------------------------------------------------- layouts


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``npu-smi info``: two lines a chip, told apart by the header of the family."""
    found = box(out.lines, needed=_NEEDED_IN_TABLE)
    if found is None:
        return None
    rows: list[Row] = []
    refused = list(found.refused)
    for cells in found.rows:
        row = _table_row(cells)
        if row is None:
            refused.append(" ".join(raw.text for raw in cells.values()))
        else:
            rows.append(row)
    return Answer(rows=tuple(rows), refused=tuple(refused))


def _table_row(cells: Cells) -> Row | None:
    card = cells.get("npu", cells.get("npu id", Raw(""))).text
    chip = cells["chip"].text if "chip" in cells else None
    bus = cells.get("bus-id", Raw("")).text
    bus_id = normal_bus_id(bus)
    if not card.isdigit() or (chip is not None and not chip.isdigit()) or not (bus_id or fold(bus) == "na"):
        return None
    # Both chips of a Duo card have one address.
    address = f"{bus_id} chip {chip}" if bus_id and chip is not None else bus_id
    return Row(
        key=card if chip is None else f"{card}/{chip}",
        cells=cells,
        identities=(address,) if address else (),
        fault=_fault(cells),
    )


def _fault(cells: Cells) -> str:
    """A chip that is not well and shows nothing but zeros: the driver printed what was in its memory."""
    health = cells.get("health", Raw("")).text
    shown = (cells.get(name) for name in ("temp", "power", "hbm-usage", "aicore", "npu util"))
    values = [raw.text for raw in shown if raw is not None]
    well = fold(health) in _HEALTHY or not all(blank(text) for text in values)
    return "" if well else f"health {health}, and all figures are 0"


def sections(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """``npu-smi info -t …``: a section for each chip, which its ``Chip ID`` or ``Chip Name`` opens or closes."""
    found = list(keys(out.lines))
    if not any(one and header(one.name)[0] in _SECTION_NAMES for one in found):
        return None
    card = next((one.value for one in found if one and one.name == "NPU ID"), "") or _after(arguments, "-i")
    if not card.isdigit():
        return None
    rows: list[Row] = []
    refused: list[str] = []
    parts = _sections(found)
    owned = [any(one.name in _OWNERS for one in section) for section in parts]
    for section, has_owner in zip(parts, owned, strict=True):
        # Where others say whose they are, one that does not may be the controller's as well as a chip's.
        unowned = any(owned) and not has_owner and any(header(one.name)[0] in _SECTION_NAMES for one in section)
        row = None if unowned else _section_row(section, card, _after(arguments, "-c"))
        if row is not None:
            rows.append(row)
        if unowned:
            refused.append("; ".join(f"{one.name}: {one.value}" for one in section))
    return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None


def _sections(found: Sequence[Key | None]) -> list[list[Key]]:
    """What stands between blank lines; of several owners without one between them, each with what is its own."""
    between = [list(group) for blank, group in itertools.groupby(found, lambda key: key is None) if not blank]
    sections: list[list[Key]] = []
    for group in between:
        present = [key for key in group if key is not None and key.name not in ("NPU ID", "Chip Count")]
        owners = [number for number, key in enumerate(present) if key.name in _OWNERS]
        if len(owners) <= 1:
            sections.append(present)
        elif owners[0] == 0:
            sections += [present[begin:end] for begin, end in itertools.pairwise([*owners, len(present)])]
        elif owners[-1] == len(present) - 1:
            ends = [0, *(number + 1 for number in owners)]
            sections += [present[begin:end] for begin, end in itertools.pairwise(ends)]
    return [section for section in sections if section]


def _section_row(section: Sequence[Key], card: str, asked_chip: str) -> Row | None:
    owners = [one for one in section if one.name in _OWNERS]
    ids = {one.value for one in owners if one.name == "Chip ID"}
    names = {fold(one.value) for one in owners if one.name == "Chip Name"}
    if len(ids) > 1 or (not ids and names - {CONTROLLER}):
        return None
    cells: dict[str, Raw] = {}
    for one in section:
        name, unit = header(one.name)
        raw = Raw(one.value, unit)
        cells[name] = raw if cells.get(name, raw) == raw else Raw(CONFLICT)
    if not _SECTION_NAMES & set(cells):
        return None
    chip = next(iter(ids), CONTROLLER if CONTROLLER in names else asked_chip)
    if _RATED in cells:
        cells.setdefault("power", Raw("N/A"))
    return Row(key=f"{card}/{chip}" if chip else card, cells=cells)


def chip_map(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``npu-smi info -m``: which chips there are. Controllers are listed and are no devices."""
    names, lines = _titled(out, "npu id")
    if not names or not {"chip name"} <= {header(name)[0] for name in names}:
        return None
    rows = []
    for line in lines:
        values = re.split(r"\s{2,}|\t", line.strip())
        if len(values) != len(names):
            continue
        cells = {header(name)[0]: Raw(value) for name, value in zip(names, values, strict=True)}
        if not cells["npu id"].text.isdigit() or fold(cells["chip name"].text) == CONTROLLER:
            continue
        # The family that lists slots takes no chip number.
        chip = "" if "slot id" in cells else cells.get("chip id", Raw("")).text
        key = f"{cells['npu id'].text}/{chip}" if chip.isdigit() else cells["npu id"].text
        rows.append(Row(key=key, cells={**cells, "name": cells["chip name"]}))
    return Answer(rows=tuple(rows)) if rows else None


def card_list(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``npu-smi info -l``: the cards, and how many chips each has."""
    rows: list[Row] = []
    card = ""
    for key in keys(out.lines):
        if key is not None and key.name == "NPU ID" and key.value.isdigit():
            card = key.value
        elif key is not None and key.name == "Chip Count" and key.value.isdigit() and card:
            rows += [Row(key=f"{card}/{chip}", cells={}) for chip in range(min(int(key.value), _MOST_CHIPS))]
            card = ""
    return Answer(rows=tuple(rows)) if rows else None


def watch(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``npu-smi info watch``: columns that come again and again; the last line of each chip counts."""
    names, lines = _titled(out, "npuid")
    if not names:
        return None
    found, refused = column_rows(names, lines)
    rows = []
    for cells in found:
        card, chip = cells["npuid"].text, cells.get("chipid", Raw("")).text
        if card.isdigit():
            rows.append(Row(key=f"{card}/{chip}" if chip.isdigit() else card, cells=cells))
    return Answer(rows=tuple(rows), refused=tuple(line for line in refused if not line.startswith("Npu")), stream=True)


def _titled(out: Printed, first: str) -> tuple[list[str], list[str]]:
    """The names of the header whose first column is that, and the lines after it."""
    for number, line in enumerate(out.lines):
        names = [name for name in re.split(r"\s{2,}|\t+|(?<=\))\s+", line.strip()) if name]
        if len(names) > 1 and header(names[0])[0] == first:
            return names, list(out.lines[number + 1 :])
    return [], []


def _after(arguments: Sequence[str], option: str) -> str:
    """The value of an option; empty where it is not given."""
    return next((value for name, value in itertools.pairwise(arguments) if name == option), "")


# ----------------------------------------------------------------------------------------------------- the tool


def amended(row: Row) -> Row:
    """Without the rated power that some families print as if it were measured."""
    name = row.cells.get("name")
    if name is None or not _RATED_POWER_NAMES.fullmatch(name.text.strip()) or "power" not in row.cells:
        return row
    return replace(row, cells={**row.cells, "power": Raw("not available")})


_SYMPTOMS = (
    symptom(
        r"ret is -8005",
        Missing.DEVICE_ERROR,
        "the driver is out of reach: in a container, /dev/davinci_manager or its mounts are missing",
    ),
    symptom(r"ret is -8020|device is used", Missing.DEVICE_ERROR, "another container or user holds the device"),
    symptom(r"ret is -8002\b", Missing.UNREADABLE, "this user is not allowed to: the driver's group is HwHiAiUser"),
    symptom(r"ret is -8006\b", Missing.TIMEOUT),
    symptom(r"ret is -(80\d\d|8255|99998|99999)\b|dcmi .*(failed|error)", Missing.DEVICE_ERROR),
    symptom(r"there is no npu card", Missing.ABSENT),
    symptom(r"invalid card id|error parameter of -[ic]", Missing.ABSENT, "no such card"),
    symptom(r"error while loading shared libraries", Missing.DEVICE_ERROR, "the tool's own installation is broken"),
)

TOOL = Tool(
    name="npu-smi",
    program="npu-smi",
    maker="ascend",
    device="npu",
    queries=(Query(arguments=("info",), layout=table),),
    layouts=(table, sections, watch),
    fields=FIELDS,
    symptoms=_SYMPTOMS,
    amend=amended,
    least_period_seconds=5.0,
    deadline_seconds=20.0,
    start_seconds=60.0,
)

DETAILS = replace(
    TOOL,
    name="npu-smi-details",
    roster=(Query(arguments=("info", "-m"), layout=chip_map), Query(arguments=("info", "-l"), layout=card_list)),
    queries=(
        Query(arguments=("info", "-t", "memory", "-i", "{card}", "-c", "{chip}"), layout=sections),
        Query(arguments=("info", "-t", "power", "-i", "{card}"), layout=sections, only_named=_CONTROLLER_POWER_NAMES),
    ),
    fields=tuple(field for field in FIELDS if field.quantity in {"memory.temperature_celsius", "power_watts"}),
    least_period_seconds=30.0,
    deadline_seconds=60.0,
)
"""What the table leaves out: one call a chip, so that it has a lane of its own."""
