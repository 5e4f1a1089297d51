"""Numbers that cannot be true become missing: out of range, a place-holder, or a jump that nothing confirms."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import say
from pytest_thermal.sensors.source import Absent, Availability, Source, TellsAbsent

_RANGES: Mapping[Unit, tuple[float, float]] = {
    Unit.CELSIUS: (-40.0, 150.0),
    Unit.KELVIN_MARGIN: (-60.0, 150.0),
    Unit.WATTS: (0.0, 5_000.0),
    Unit.RPM: (0.0, 60_000.0),
    Unit.PERCENT: (0.0, 100.0),
    Unit.MEGAHERTZ: (0.0, 30_000.0),
    Unit.VOLTS: (-500.0, 1_000.0),
    Unit.AMPERES: (-5_000.0, 5_000.0),
    Unit.LITERS_PER_MINUTE: (0.0, 5_000.0),
    Unit.PASCALS: (-1e6, 1e7),
    Unit.MILLISECONDS: (0.0, 1e14),
    Unit.BYTES: (0.0, 1e15),
    Unit.COUNT: (0.0, 1e15),
    Unit.BITS: (0.0, 2.0**53),
    Unit.STATE: (0.0, 2.0),
}
"""What one sensor can show at all. Watts are of one device; a whole node may draw more, see below."""

_NODE_WATTS = 100_000.0

_NEVER = (*range(0x7FFD, 0x8000), 65_535, *range(2_147_483_632, 2_147_483_648), 4_294_967_295, 140_737_488_355_328)
"""Blanks and error codes of drivers and exporters, in units where they could pass for a value."""

EXACT_BLANKS = tuple(sorted({0.0, *map(float, _NEVER), -1.0, 127.0, 128.0, 249.0, 255.0}))
"""Values within a sensor's range that some of them give for none: ``implausible`` knows whose."""

_COUNTERS = frozenset({Unit.MILLISECONDS, Unit.BYTES, Unit.COUNT, Unit.BITS})
_NEVER_TEMPERATURES = (-1.0, 127.0, 128.0, 249.0, 255.0)
"""Signed and unsigned bytes of nothing, and a margin register read as a temperature."""

_JUMP_KELVIN: Mapping[Kind, float] = {Kind.CPU: 60.0, Kind.ACCELERATOR: 40.0, Kind.OTHER: 25.0}
"""More than this between two readings has to be confirmed by the next one.

A die follows its load within a second (a desktop CPU from 40 to 90 °C), a board or coolant cannot.
"""
_MEMORY_SECONDS = 120.0
"""An older reading says nothing about a new one."""


def implausible(sensor: Sensor, value: float) -> str:
    """Why ``value`` cannot be what ``sensor`` measured; empty where it can."""
    if not math.isfinite(value):
        return "not a number"
    least, most = _RANGES[sensor.unit]
    kind = kind_of(sensor.device)
    if sensor.unit is Unit.WATTS and kind is Kind.OTHER:
        most = _NODE_WATTS
    if not least <= value <= most:
        return f"outside {least:g} to {most:g} {sensor.unit}"
    if sensor.unit not in _COUNTERS and value in _NEVER:
        return "a place-holder for no value"
    if sensor.unit is Unit.CELSIUS:
        if value in _NEVER_TEMPERATURES:
            return "a place-holder for no temperature"
        if value == 0.0:
            return "exactly 0: nothing is connected, or the read failed"
        if value < 0.0 and kind is not Kind.OTHER:
            return "a chip under power is not below 0 °C"
    if sensor.unit is Unit.WATTS and value == 0.0 and kind is Kind.ACCELERATOR:
        return "exactly 0: a device that answers draws power"
    return ""


def plausible_limits(unit: Unit, limits: Mapping[str, float]) -> dict[str, float]:
    """Those of a device's own limits that are limits: 0, 127, 65261.8 and −273.15 °C are blanks."""
    probe = Sensor(id="limit", unit=unit, device="limit", identity="", source="")
    return {name: value for name, value in limits.items() if value > 0.0 and not implausible(probe, value)}


class Checked:
    """A source whose readings are plausible or missing, one for each sensor, whatever the source itself does."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = source.name
        self._source = source
        self._clock = clock
        self._sensors: tuple[Sensor, ...] = ()
        self._last: dict[str, tuple[float, float]] = {}
        """By sensor: the last plausible temperature in °C, and when it was read."""
        self._held: dict[str, float] = {}
        """By sensor: a temperature that jumped and waits for the next to confirm it."""

    def probe(self) -> Availability:
        """As the source says; one that raises is not available."""
        try:
            return self._source.probe()
        except Exception as error:  # noqa: BLE001 - whoever wrote the source, the others go on
            return Availability(ok=False, reason=_raised(error))

    def sensors(self) -> Sequence[Sensor]:
        """As the source says; raises what it raises."""
        self._sensors = tuple(self._source.sensors())
        return self._sensors

    def absent(self) -> Sequence[Absent]:
        """As the source says, where it does."""
        return self._source.absent() if isinstance(self._source, TellsAbsent) else ()

    def close(self) -> None:
        """Close the source."""
        self._source.close()

    def read(self) -> Sequence[Reading]:
        """One reading of each sensor, in their order."""
        sensors = self._sensors or tuple(self.sensors())
        try:
            given = list(self._source.read())
        except Exception as error:  # noqa: BLE001 - whoever wrote the source, the recording goes on
            return [
                Reading(sensor_id=sensor.id, missing=Missing.UNREADABLE, detail=_raised(error)) for sensor in sensors
            ]
        by_id: dict[str, list[Reading]] = {}
        for reading in given:
            by_id.setdefault(reading.sensor_id, []).append(reading)
        now = self._clock()
        return [self._check(sensor, by_id.get(sensor.id, []), now) for sensor in sensors]

    def _check(self, sensor: Sensor, readings: Sequence[Reading], now: float) -> Reading:
        if not readings:
            return Reading(sensor_id=sensor.id, missing=Missing.ABSENT, detail=say("the source gave no reading of it"))
        if len(set(readings)) > 1:
            return Reading(
                sensor_id=sensor.id, missing=Missing.NOT_UNDERSTOOD, detail=say("several readings that differ")
            )
        reading = readings[0]
        if reading.value is None:
            return reading
        why = implausible(sensor, reading.value) or self._jump(sensor, reading.value, now)
        if not why:
            return reading
        return Reading(sensor_id=sensor.id, missing=Missing.IMPLAUSIBLE, detail=f"raw {reading.value:.12g}: {why}")

    def _jump(self, sensor: Sensor, value: float, now: float) -> str:
        """Why a temperature has to wait for its confirmation; empty, and remembered, where it has not."""
        if sensor.unit is not Unit.CELSIUS:
            return ""
        most = _JUMP_KELVIN[kind_of(sensor.device)]
        held = self._held.pop(sensor.id, None)
        last, when = self._last.get(sensor.id, (value, now))
        confirmed = held is not None and abs(value - held) <= most
        if abs(value - last) > most and now - when <= _MEMORY_SECONDS and not confirmed:
            self._held[sensor.id] = value
            return f"{value - last:+.4g} K against the reading before, and not yet confirmed by another"
        self._last[sensor.id] = (value, now)
        return ""


def _raised(error: Exception) -> str:
    return say("the source raised {kind}: {error}", kind=type(error).__name__, error=error)
