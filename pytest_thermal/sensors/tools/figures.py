"""One cell's text → a number in the sensor's unit, or why there is none. Digits are never glued or guessed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Raw

_ABSENT = frozenset({
    "", "-", "--", "---", "n/a", "na", "none", "ns", "unknown", "disabled", "not supported", "unsupported",
    "not available", "no reading", "not readable", "not applicable", "requested functionality has been deprecated",
})  # fmt: skip
"""What tools print where a device does not measure something."""
_FORBIDDEN = frozenset({"insufficient permissions", "no permission", "permission denied"})
_BROKEN = frozenset({"unknown error", "err!", "error", "err", "failed", "gpu is lost", "gpu requires reset", "fail"})
"""What tools print where the device, or reading it, failed."""
_ABSENT_BECAUSE = re.compile(r"n/?a\s*\(.*\)")
"""``N/A (Secondary die)``: the first die's figure is of both."""
_FLAGS = {"active": 1.0, "throttled": 1.0, "not active": 0.0, "inactive": 0.0, "unthrottled": 0.0}
"""What stands where a register of flags has one, in words."""

_FIGURE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*([^\d\s.,+-][^\d]*)?")
_HEX = re.compile(r"0x([0-9a-f]{1,16})")

_MIB = 2.0**20
UNITS: Mapping[str, tuple[Unit, float]] = {
    **dict.fromkeys(("c", "°c", "degc", "deg c", "degrees c", "degree c", "celsius"), (Unit.CELSIUS, 1.0)),
    "celsius degree": (Unit.CELSIUS, 1.0),
    **dict.fromkeys(("mc", "m°c", "millidegrees"), (Unit.CELSIUS, 1e-3)),
    **dict.fromkeys(("w", "watt", "watts"), (Unit.WATTS, 1.0)),
    "mw": (Unit.WATTS, 1e-3),
    "uw": (Unit.WATTS, 1e-6),
    "μw": (Unit.WATTS, 1e-6),
    **dict.fromkeys(("%", "percent", "pct"), (Unit.PERCENT, 1.0)),
    "khz": (Unit.MEGAHERTZ, 1e-3),
    "mhz": (Unit.MEGAHERTZ, 1.0),
    "ghz": (Unit.MEGAHERTZ, 1e3),
    "rpm": (Unit.RPM, 1.0),
    "v": (Unit.VOLTS, 1.0),
    "mv": (Unit.VOLTS, 1e-3),
    "a": (Unit.AMPERES, 1.0),
    "ma": (Unit.AMPERES, 1e-3),
    # Every vendor's tool counts in powers of two, whichever it prints.
    **dict.fromkeys(("b", "bytes"), (Unit.BYTES, 1.0)),
    **dict.fromkeys(("kib", "kb"), (Unit.BYTES, 2.0**10)),
    **dict.fromkeys(("mib", "mb"), (Unit.BYTES, _MIB)),
    **dict.fromkeys(("gib", "gb"), (Unit.BYTES, 2.0**30)),
    "ns": (Unit.MILLISECONDS, 1e-6),
    "us": (Unit.MILLISECONDS, 1e-3),
    "μs": (Unit.MILLISECONDS, 1e-3),
    "ms": (Unit.MILLISECONDS, 1.0),
    "l/min": (Unit.LITERS_PER_MINUTE, 1.0),
    "pa": (Unit.PASCALS, 1.0),
    "kpa": (Unit.PASCALS, 1e3),
}
"""By the spelling in cells and headers, folded: the unit, and what one is in ours."""


class Figure:
    """A number, or the reason there is none."""

    __slots__ = ("detail", "missing", "value")

    def __init__(self, *, value: float | None = None, missing: Missing | None = None, detail: str = "") -> None:
        self.value = value
        self.missing = missing
        self.detail = detail


def fold(text: str) -> str:
    """One spelling of what tools write in several: case, brackets, ``℃`` and ``°C``, both signs for micro."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().strip().strip("[]").split())


def broken(text: str) -> bool:
    """Whether a cell says that the device failed."""
    return fold(text) in _BROKEN


def absent(text: str) -> bool:
    """Whether a cell says that there is nothing to say."""
    folded = fold(text)
    return folded in _ABSENT or bool(_ABSENT_BECAUSE.fullmatch(folded))


def blank(text: str) -> bool:
    """Whether a cell says nothing, or 0 in whatever unit: what a card that is not well leaves in every cell."""
    return absent(text) or bool(re.fullmatch(r"0+(?:\.0+)?\s*[^\d\s]*", fold(text)))


def shaped(text: str) -> bool:
    """Whether a cell has the form of a figure, or of a word for none."""
    folded = fold(text)
    words = _FORBIDDEN | _BROKEN | set(_FLAGS)
    return absent(folded) or folded in words or bool(_FIGURE.fullmatch(folded) or _HEX.fullmatch(folded))


def figure(raw: Raw, unit: Unit, *, assumed: float = 1.0) -> Figure:
    """The cell's number in ``unit``.

    Args:
        raw: The cell.
        unit: What the sensor measures; a cell in a unit of something else is not understood.
        assumed: What one of the cell's is in ``unit`` where neither it nor its header names one.
    """
    text = fold(raw.text)
    if absent(text):
        return Figure(missing=Missing.NOT_OFFERED, detail=raw.text.strip() or "empty")
    if text in _FORBIDDEN:
        return Figure(missing=Missing.UNREADABLE, detail=raw.text.strip())
    if text in _BROKEN:
        return Figure(missing=Missing.DEVICE_ERROR, detail=raw.text.strip())
    if unit is Unit.BITS:
        match = _HEX.fullmatch(text)
        if text in _FLAGS:
            return Figure(value=_FLAGS[text])
        return Figure(value=float(int(match[1], 16))) if match else _not_understood(raw)
    match = _FIGURE.fullmatch(text)
    if not match:
        return _not_understood(raw)
    scale = _scale((match[2] or "").strip() or fold(raw.unit), unit, assumed)
    value = float(match[1]) * scale if scale is not None else math.nan
    return Figure(value=value) if math.isfinite(value) else _not_understood(raw)


def _scale(spelled: str, unit: Unit, assumed: float) -> float | None:
    if not spelled:
        return assumed
    measured, scale = UNITS.get(spelled, (None, 0.0))
    if unit is Unit.KELVIN_MARGIN and measured is Unit.CELSIUS:
        return scale
    return scale if measured is unit else None


def _not_understood(raw: Raw) -> Figure:
    shown = f"{raw.text.strip()[:60]!r}" + (f" under [{raw.unit}]" if raw.unit else "")
    return Figure(missing=Missing.NOT_UNDERSTOOD, detail=f"raw {shown}")
