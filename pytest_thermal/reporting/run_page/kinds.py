"""Which sensors share a chart: those of one kind of quantity, in the order in which a reviewer wants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_thermal.model import Sensor, Unit


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of quantity."""

    id: str
    """Also the key of its title in the words."""
    unit: str
    """As it is written."""
    finest: float
    """The step that values are rounded to: finer than what its sensors resolve."""
    decimals: int
    main: bool = True
    """Whether its chart is open from the start."""
    from_zero: bool = False
    """Whether its axis begins at zero."""


TEMPERATURE = Kind(id="temperature", unit="°C", finest=0.01, decimals=1)
POWER = Kind(id="power", unit="W", finest=0.1, decimals=0, from_zero=True)
UTILISATION = Kind(id="utilisation", unit="%", finest=0.1, decimals=0, from_zero=True)
CLOCK = Kind(id="clock", unit="MHz", finest=1.0, decimals=0, from_zero=True)
SPEED = Kind(id="speed", unit="rpm", finest=1.0, decimals=0, from_zero=True)
FLOW = Kind(id="flow", unit="l/min", finest=0.01, decimals=2, from_zero=True)
_BY_UNIT: Mapping[Unit, Kind] = {
    Unit.CELSIUS: TEMPERATURE,
    Unit.KELVIN_MARGIN: Kind(id="margin", unit="K", finest=0.01, decimals=1),
    Unit.WATTS: POWER,
    Unit.MEGAHERTZ: CLOCK,
    Unit.RPM: SPEED,
    Unit.LITERS_PER_MINUTE: FLOW,
    Unit.PASCALS: Kind(id="pressure", unit="Pa", finest=1.0, decimals=0, main=False),
    Unit.VOLTS: Kind(id="voltage", unit="V", finest=0.001, decimals=3, main=False),
    Unit.AMPERES: Kind(id="current", unit="A", finest=0.01, decimals=2, main=False),
    Unit.BYTES: Kind(id="memory", unit="GiB", finest=0.001, decimals=2, main=False, from_zero=True),
    Unit.COUNT: Kind(id="count", unit="", finest=1.0, decimals=0, main=False),
    Unit.STATE: Kind(id="state", unit="", finest=1.0, decimals=0, main=False, from_zero=True),
    Unit.MILLISECONDS: Kind(id="time_spent", unit="s", finest=0.001, decimals=1, main=False),
}
"""Registers of flags have no curve: what they say of throttling is drawn as ribbons."""
_SHARE = Kind(id="share", unit="%", finest=0.1, decimals=1, main=False, from_zero=True)
ORDER = (
    TEMPERATURE, _BY_UNIT[Unit.KELVIN_MARGIN], POWER, UTILISATION, CLOCK, SPEED, FLOW, _SHARE,
    *(
        _BY_UNIT[unit]
        for unit in (
            Unit.PASCALS, Unit.VOLTS, Unit.AMPERES, Unit.BYTES, Unit.COUNT, Unit.STATE, Unit.MILLISECONDS,
        )
    ),
)  # fmt: skip
DRAWN_PER_UNIT: Mapping[Unit, float] = {Unit.BYTES: 2.0**-30, Unit.MILLISECONDS: 0.001}
"""What a value is multiplied by before it is drawn, where its unit is not the chart's."""


def kind_of_quantity(sensor: Sensor) -> Kind | None:
    """The kind that a sensor is drawn with; None for what has no curve."""
    if sensor.unit is Unit.PERCENT:
        return UTILISATION if sensor.id.endswith("utilization_percent") else _SHARE
    return _BY_UNIT.get(sensor.unit)


def by_kind(sensors: Iterable[Sensor]) -> dict[Kind, list[Sensor]]:
    """Sensors by kind, kinds in their order, sensors as they come but for a device's own before those of its parts."""
    found: dict[Kind, list[Sensor]] = {}
    for sensor in sensors:
        kind = kind_of_quantity(sensor)
        if kind is not None:
            found.setdefault(kind, []).append(sensor)
    return {kind: _own_first(found[kind]) for kind in ORDER if kind in found}


def _own_first(sensors: list[Sensor]) -> list[Sensor]:
    devices = list(dict.fromkeys(sensor.device for sensor in sensors))
    return sorted(sensors, key=lambda sensor: (devices.index(sensor.device), not is_main_part(sensor)))


def part_of(sensor: Sensor) -> str:
    """What of its device it measures: ``memory``, ``package``; empty for the device itself."""
    middle = sensor.id.removeprefix(f"{sensor.device}.").rpartition(".")[0] if "." in sensor.id else ""
    quantity = sensor.id.rpartition(".")[2]
    plain = {"temperature", "power", "utilization", "clock", "speed", "flow"}
    name = quantity.removesuffix(f"_{sensor.unit}")
    return " ".join(filter(None, [middle.replace(".", " "), "" if name in plain else name.replace("_", " ")]))


def is_main_part(sensor: Sensor) -> bool:
    """Whether its curve stands for the device in its chart; those of its parts are drawn thinner."""
    return part_of(sensor) in ("", "package")
