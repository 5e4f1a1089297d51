"""Redfish's units (UCUM) in ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_thermal.model import Unit


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One of theirs, in one of ours: ``value × scale + offset``."""

    unit: Unit
    scale: float = 1.0
    offset: float = 0.0


MEASURES: Mapping[str, Measure] = {
    "cel": Measure(unit=Unit.CELSIUS),
    "c": Measure(unit=Unit.CELSIUS),
    "celsius": Measure(unit=Unit.CELSIUS),
    "degreesc": Measure(unit=Unit.CELSIUS),
    "k": Measure(unit=Unit.CELSIUS, offset=-273.15),
    "degf": Measure(unit=Unit.CELSIUS, scale=5 / 9, offset=-160 / 9),
    "rpm": Measure(unit=Unit.RPM),
    "rev/min": Measure(unit=Unit.RPM),
    "r/min": Measure(unit=Unit.RPM),
    "%": Measure(unit=Unit.PERCENT),
    "percent": Measure(unit=Unit.PERCENT),
    "w": Measure(unit=Unit.WATTS),
    "watts": Measure(unit=Unit.WATTS),
    "mw": Measure(unit=Unit.WATTS, scale=1e-3),
    "kw": Measure(unit=Unit.WATTS, scale=1e3),
    "l/min": Measure(unit=Unit.LITERS_PER_MINUTE),
    "l/s": Measure(unit=Unit.LITERS_PER_MINUTE, scale=60.0),
    "l/h": Measure(unit=Unit.LITERS_PER_MINUTE, scale=1 / 60),
    "m3/h": Measure(unit=Unit.LITERS_PER_MINUTE, scale=1000 / 60),
    "m3/s": Measure(unit=Unit.LITERS_PER_MINUTE, scale=60_000.0),
    "gal_us/min": Measure(unit=Unit.LITERS_PER_MINUTE, scale=3.785411784),
    "pa": Measure(unit=Unit.PASCALS),
    "kpa": Measure(unit=Unit.PASCALS, scale=1e3),
    "bar": Measure(unit=Unit.PASCALS, scale=1e5),
    "mbar": Measure(unit=Unit.PASCALS, scale=1e2),
    "psi": Measure(unit=Unit.PASCALS, scale=6894.757293168),
    "v": Measure(unit=Unit.VOLTS),
    "a": Measure(unit=Unit.AMPERES),
}
"""By the unit as it is written, folded, without brackets and braces. UCUM tells ``mW`` from ``MW``: see below."""

_BY_TYPE: Mapping[str, str] = {
    "Temperature": "cel",
    "Rotational": "rpm",
    "Power": "w",
    "LiquidFlow": "l/s",
    "LiquidFlowLPM": "l/min",
    "PressurePa": "pa",
    "PressurekPa": "kpa",
    "Pressure": "pa",
    "Percent": "%",
}
"""What a reading is in where its unit is not told: the type's own, as Sensor's schema has it."""


def measure(written: object, kind: object = None) -> Measure | None:
    """Our unit for ``ReadingUnits``, or where there is none for ``ReadingType``; None for what we do not record."""
    if not isinstance(written, str) or not written.strip():
        written = _BY_TYPE.get(kind, "") if isinstance(kind, str) else ""
    text = written.strip().strip("{}[]").replace("{", "").replace("}", "").replace("[", "").replace("]", "")
    if text == "MW":
        return Measure(unit=Unit.WATTS, scale=1e6)
    return MEASURES.get(text.replace(" ", "").casefold())
