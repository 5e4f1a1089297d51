"""One cell of a log → a number in a unit, or why there is none."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Raw
from pytest_thermal.sensors.tools.figures import UNITS, figure, fold

_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NUMBER = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[^\d\s].*)?")
_NAMED = re.compile(r"(?:temp|temperature|power|volt|freq)\s*[=:]\s*", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d{1,3}(?:\.\d{3})+,\d+|[-+]?\d+,\d+")
_WORDS_FOR_NONE = frozenset({"nan", "null", "nil", "none", "inf", "-inf", "(null)", "n.a.", "k.a.", "?", "#n/a", "无"})
_FAHRENHEIT = frozenset({"f", "°f", "degf", "deg f", "fahrenheit"})
_KELVIN = frozenset({"k", "kelvin"})


class Value(NamedTuple):
    """A number in the unit asked for; or None, why, and what stood there."""

    number: float | None
    missing: Missing | None = None
    detail: str = ""


class Unitful(NamedTuple):
    """A spelling of a unit: what it measures, and how to come to ours: ``number * scale + offset``."""

    unit: Unit
    scale: float
    offset: float = 0.0


def unit_spelled(text: str) -> Unitful | None:
    """The unit that is written so; None where it is none."""
    folded = fold(text).lstrip("'’ ")
    if folded in _FAHRENHEIT:
        return Unitful(Unit.CELSIUS, 5 / 9, -160 / 9)
    if folded in _KELVIN:
        return Unitful(Unit.CELSIUS, 1.0, -273.15)
    unit, scale = UNITS.get(folded, (None, 0.0))
    return Unitful(unit, scale) if unit is not None else None


def without_decimal_comma(text: str) -> str:
    """``1.234,5`` → ``1234.5``; whatever has no decimal comma as it is."""
    head, sign, rest = text.partition(" ")
    if _DECIMAL_COMMA.fullmatch(head):
        return head.replace(".", "").replace(",", ".") + sign + rest
    match = re.match(r"([-+]?\d+),(\d+)(?=\D*$)", text)
    return f"{match[1]}.{match[2]}{text[match.end() :]}" if match else text


def plain_number(text: str) -> float | None:
    """The number that a cell is, without any unit; None where it is none."""
    return float(text) if _PLAIN.fullmatch(text) else None


def cell_unit(text: str) -> Unitful | None:
    """The unit that a cell itself names behind its number; None where it names none."""
    match = _NUMBER.fullmatch(_NAMED.sub("", text, count=1).strip())
    return unit_spelled(match["unit"]) if match and match["unit"] else None


def value(text: str, unit: Unit, column: Unitful | None) -> Value:
    """The cell's number in ``unit``; ``column`` is the unit that the column's name gives, for cells without one."""
    number = plain_number(text)
    own = None
    if number is None:
        match = _NUMBER.fullmatch(_NAMED.sub("", text, count=1).strip())
        own = unit_spelled(match["unit"]) if match and match["unit"] else None
        if match and (own is not None or not match["unit"]):
            number = float(match["number"])
    if number is not None:
        of = own or column or Unitful(unit, 1.0)
        if of.unit is not unit and not (unit is Unit.KELVIN_MARGIN and of.unit is Unit.CELSIUS and not of.offset):
            return Value(None, Missing.NOT_UNDERSTOOD, f"raw {text[:60]!r}")
        return Value(number * of.scale + of.offset)
    if fold(text) in _WORDS_FOR_NONE:
        return Value(None, Missing.NOT_OFFERED, text)
    read = figure(Raw(text), unit)
    return Value(read.value, read.missing, read.detail)


def says_none(text: str) -> bool:
    """Whether a cell is a word that tools print instead of a number."""
    folded = fold(text)
    return folded in _WORDS_FOR_NONE or figure(Raw(text), Unit.CELSIUS).missing not in {None, Missing.NOT_UNDERSTOOD}
