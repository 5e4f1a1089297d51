"""AMD's ``rocm-smi``: JSON by card, and the table. Hygon's tools are made of it and print the same forms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Cells, Problem, Raw, Row, header
from pytest_thermal.sensors.tools.figures import blank, fold
from pytest_thermal.sensors.tools.identity import identities
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.readers import column_rows, json_documents
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Query, Tool, symptom

FIELDS = (
    Field(
        quantity="temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature (sensor junction)", "temperature (sensor core)", "temperature (sensor edge)", "temp"),
    ),
    Field(quantity="edge.temperature_celsius", unit=Unit.CELSIUS, names=("temperature (sensor edge)",)),
    Field(
        quantity="memory.temperature_celsius",
        unit=Unit.CELSIUS,
        names=("temperature (sensor memory)", "temperature (sensor mem)"),
        zero_is_blank=True,
    ),
    Field(
        quantity="power_watts",
        unit=Unit.WATTS,
        names=(
            "current socket graphics package power",
            "average graphics package power",
            "other graphics package power",
            "avgpwr",
        ),
        limits={"cap": ("max graphics package power", "pwrcap")},
    ),
    Field(quantity="utilization_percent", unit=Unit.PERCENT, names=("use",)),
    Field(
        quantity="memory.used_bytes",
        unit=Unit.BYTES,
        names=("vram total used memory",),
        limits={"max": ("vram total memory",)},
    ),
    Field(quantity="memory.utilization_percent", unit=Unit.PERCENT, names=("memory use",)),
    Field(quantity="fan.speed_percent", unit=Unit.PERCENT, names=("fan speed", "fan")),
)

_POWERS = frozenset(name for field in FIELDS for names in (field.names, *field.limits.values()) for name in names)
_CARD = re.compile(r"card(\d+)")
_HYGON = re.compile(r"[dh]cu\b", re.IGNORECASE)
_MAKERS_WORDS = frozenset({"gpu", "dcu", "hcu"})
_NEEDED_IN_TABLE = frozenset({"temp", "avgpwr"})
_AMDS = Problem(missing=Missing.ABSENT, said="this rocm-smi is AMD's")
_HYGONS = Problem(missing=Missing.ABSENT, said="this rocm-smi is Hygon's")


def cards_json(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``--json``: an object of cards, all values as strings. Text may come before it."""
    for found in json_documents(out.text):
        if not isinstance(found, dict):
            continue
        numbers = {name: _CARD.fullmatch(name) for name in found}
        cards = {match[1]: found[name] for name, match in numbers.items() if match}
        if cards:
            rows = [_json_row(number, card) for number, card in cards.items() if isinstance(card, dict)]
            refused = [f"{card}"[:200] for card in cards.values() if not isinstance(card, dict)]
            return Answer(rows=tuple(rows), refused=tuple(refused), ended=True)
    return None


def _json_row(number: str, card: dict[str, object]) -> Row:
    cells: dict[str, Raw] = {}
    for key, value in card.items():
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            name, unit = _spelled(key)
            cells.setdefault(name, Raw(f"{value}", unit))
    text = {name: raw.text for name, raw in cells.items()}
    named = identities(text.get("unique id", ""), text.get("serial number", ""), bus=text.get("pci bus", ""))
    return Row(key=number, cells=cells, identities=named, fault="")


def _spelled(key: str) -> tuple[str, str]:
    """A key as the fields have it: makers and versions call one thing by several names."""
    name, unit = header(key)
    first, _, rest = name.rstrip("%").partition(" ")
    if first in _MAKERS_WORDS and rest in {"", "use"}:
        return ("use", "%") if rest or name.endswith("%") else (name, unit)
    if name == "vram%" or (first in _MAKERS_WORDS and rest in {"memory use", "memory allocated"}):
        return "memory use", "%"
    if name.endswith("graphics package power") and name not in _POWERS:
        return "other graphics package power", unit
    return name, unit


def table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """The table: columns between lines of ``=``, the first of them the card's number."""
    for place, line in enumerate(out.lines):
        titles = [title for title in re.split(r"\s{2,}", line.strip()) if title]
        names = [_spelled(title)[0] for title in titles]
        if titles and fold(titles[0]) in _MAKERS_WORDS and set(names) >= _NEEDED_IN_TABLE:
            below = out.lines[place + 1 :]
            end = next((number for number, one in enumerate(below) if one.startswith("=")), len(below))
            found, refused = column_rows(["card", *titles[1:]], below[:end])
            whole = [cells for cells in found if cells["card"].text.isdigit()]
            refused += [" ".join(raw.text for raw in cells.values()) for cells in found if cells not in whole]
            rows = [_table_row(cells) for cells in whole]
            return Answer(rows=tuple(rows), refused=tuple(refused)) if rows or refused else None
    return None


def _table_row(found: Cells) -> Row:
    cells: dict[str, Raw] = {}
    for name, raw in found.items():
        spelled, unit = _spelled(name)
        cells.setdefault(spelled, Raw(raw.text, raw.unit or unit))
    mode = cells.get("mode", Raw("Normal")).text
    figures = [cells[name].text for name in ("temp", "avgpwr") if name in cells]
    well = fold(mode) == "normal" or not all(blank(text) for text in figures)
    return Row(key=cells["card"].text, cells=cells, fault="" if well else f"mode {mode}, and no temperature or power")


def is_hygon(out: Printed) -> bool:
    """Whether the output calls its devices DCU or HCU."""
    return bool(_HYGON.search(out.text))


def amd_json(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """JSON, of AMD's cards only."""
    return Answer(problem=_HYGONS) if is_hygon(out) else cards_json(out, arguments)


def amd_table(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """The table, of AMD's cards only."""
    return Answer(problem=_HYGONS) if is_hygon(out) else table(out, arguments)


def hygon_json(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """JSON, of Hygon's cards only."""
    answer = cards_json(out, arguments)
    return answer if answer is None or is_hygon(out) else Answer(problem=_AMDS)


def hygon_table(out: Printed, arguments: Sequence[str]) -> Answer | None:
    """The table, of Hygon's cards only."""
    answer = table(out, arguments)
    return answer if answer is None or is_hygon(out) else Answer(problem=_AMDS)


TOOL = Tool(
    name="rocm-smi",
    program="rocm-smi",
    maker="amd",
    device="gpu",
    queries=(
        Query(
            arguments=("--showtemp", "--showpower", "--showuse", "--showmeminfo", "vram", "--showbus", "--json"),
            layout=amd_json,
        ),
        Query(arguments=(), layout=amd_table),
    ),
    layouts=(amd_json, amd_table),
    fields=FIELDS,
    symptoms=(
        symptom(
            "no json data to report",
            Missing.ABSENT,
            "it has nothing to show: is there a card, and may this user see it?",
        ),
        symptom("driver not initialized|amdgpu not found|no amd gpus?", Missing.DEVICE_ERROR, "is amdgpu loaded?"),
        *COMMON_SYMPTOMS,
    ),
    keys_stay=False,
    fallback_for="amd-smi",
    at_start=(Query(arguments=("--showmaxpower", "--showbus", "--json"), layout=amd_json),),
    environ={"PATH": "/opt/rocm/bin"},
)
