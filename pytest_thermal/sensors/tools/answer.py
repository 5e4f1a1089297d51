"""What a layout found in a tool's output: rows of named cells, still as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_thermal.model import Missing

_UNIT = re.compile(r"\s*[\[(]([^\[\]()]*)[\])]\s*$")


class Raw(NamedTuple):
    """A cell: its text, and the unit that its header or key names."""

    text: str
    unit: str = ""


Cells = Mapping[str, Raw]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why an answer has no rows, or not all."""

    missing: Missing
    said: str
    """In the tool's words, with ours where they explain it."""
    identity: str = ""
    """The one device, or card of several, that it is about, where it is about one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a tool said of one device."""

    key: str
    """The tool's own number for it: ``0``, ``1/0`` for card and chip, ``4/mcu`` for a card's controller."""
    cells: Cells
    identities: tuple[str, ...] = ()
    """What stays with the device, best first. Empty where the tool says nothing but a number or an order."""
    fault: str = ""
    """What the tool says is wrong with the device: no figure of this row is one."""
    device: str = ""
    """What ids call the device, where its name says so and not the tool."""
    expected: bool = False
    """Whether the bench says that it is there: its figure is missing then, and not just not offered."""
    left_out: str = ""
    """Why its figures are not recorded, where they are not wanted."""

    def text(self, name: str) -> str:
        """A cell's text; empty where there is none."""
        raw = self.cells.get(name)
        return raw.text if raw else ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a layout found."""

    rows: tuple[Row, ...] = ()
    problem: Problem | None = None
    refused: tuple[str, ...] = field(default=())
    """Lines that should be a device's and are not whole."""
    ended: bool = False
    """Whether the form knows its own end, as JSON does: a last line without a line end is whole."""
    stream: bool = False
    """Whether later rows of a device replace earlier ones, as in the output of a tool that repeats itself."""


def header(name: str) -> tuple[str, str]:
    """A column's or key's name in one spelling, and its unit: ``Temperature (C)`` → ``("temperature", "C")``."""
    match = _UNIT.search(name)
    unit = match[1].strip() if match else ""
    return " ".join(name[: match.start() if match else None].split()).casefold(), unit


def cells(names: Sequence[str], values: Sequence[str]) -> dict[str, Raw]:
    """Cells from a header and values, one for one. A pair ``a/b`` becomes ``name`` and ``name/2``."""
    found: dict[str, Raw] = {}
    for name, value in zip(names, values, strict=True):
        spelled, unit = header(name)
        for order, text in enumerate(pair(value), start=1):
            found.setdefault(spelled if order == 1 else f"{spelled}/{order}", Raw(text, unit))
    return found


def pair(value: str) -> list[str]:
    """``31W/150W`` → its two halves; anything else, and ``N/A``, whole."""
    protected = re.sub(r"\bn/a\b", "N⁄A", value, flags=re.IGNORECASE)
    left, slash, right = protected.partition("/")
    halves = [left, right] if slash and left.strip() and right.strip() and "/" not in right else [protected]
    return [half.strip().replace("N⁄A", "N/A") for half in halves]


def normal_bus_id(text: str) -> str:
    """A PCI address in the kernel's spelling (``0000:4e:00.0``); empty where ``text`` is none."""
    match = re.fullmatch(
        r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])", text.strip().strip("[]").casefold()
    )
    if not match:
        return ""
    domain = (match[1] or "0").lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2]}:{match[3]}.{match[4]}"
