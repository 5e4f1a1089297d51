"""Thresholds while a run goes on: crossing one is told once, and a critical one asks for the load to be taken off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_thermal.bench import Monitor
from pytest_thermal.model import Sensor
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import say

HYSTERESIS_CELSIUS = 2.0
"""A temperature must fall by this much below a threshold before it can cross it again."""
CRITICAL_READINGS = 2
"""A single reading may be a spike of the sensor; two in a row take the load off."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """When to warn of one temperature, and when to take the load off, in °C; and which setting says so."""

    alert_celsius: float
    alert_origin: str
    critical_celsius: float | None = None
    critical_origin: str = ""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A temperature went above a threshold."""

    sensor: str
    celsius: float
    threshold_celsius: float
    origin: str
    critical: bool

    @property
    def text(self) -> str:
        """In words."""
        what = say("critical threshold") if self.critical else say("threshold")
        limit = say("{threshold_celsius:g} °C ({origin})", threshold_celsius=self.threshold_celsius, origin=self.origin)
        return say(
            "{sensor} is at {celsius:.1f} °C, above the {what} of {limit}",
            sensor=self.sensor,
            celsius=self.celsius,
            what=what,
            limit=limit,
        )


def thresholds_of(
    sensors: Iterable[Sensor], monitor: Monitor, origins: Mapping[str, str] | None = None
) -> dict[str, Threshold]:
    """The thresholds of each CPU's and accelerator's temperatures, by sensor id.

    GPU thresholds hold for every accelerator, whatever its tool calls it. Temperatures of the loop and the room have
    none.
    """
    origins = origins or {}
    found = {}
    for sensor in sensors:
        kind = _kind(sensor)
        if kind is None:
            continue
        alert, critical = f"alert_threshold_{kind}_celsius", f"critical_threshold_{kind}_celsius"
        found[sensor.id] = Threshold(
            alert_celsius=getattr(monitor, alert),
            alert_origin=origins.get(f"monitor.{alert}", "default"),
            critical_celsius=getattr(monitor, critical),
            critical_origin=origins.get(f"monitor.{critical}", "default"),
        )
    return found


def _kind(sensor: Sensor) -> str | None:
    if sensor.unit is not Unit.CELSIUS:
        return None
    return {Kind.CPU: "cpu", Kind.ACCELERATOR: "gpu"}.get(kind_of(sensor.device))


class ThresholdWatch:
    """Follows the newest readings of a run."""

    def __init__(self, thresholds: Mapping[str, Threshold]) -> None:
        self._thresholds = thresholds
        self._above: dict[tuple[str, bool], bool] = {}
        self._in_a_row: dict[str, int] = {}

    @property
    def critical_sensors(self) -> tuple[str, ...]:
        """Sensors that a critical threshold counts on."""
        return tuple(name for name, threshold in self._thresholds.items() if threshold.critical_celsius is not None)

    def look(self, values: Mapping[str, float | None]) -> list[Crossing]:
        """What a row of readings (°C, by sensor id) crossed."""
        found = []
        for sensor, threshold in self._thresholds.items():
            value = values.get(sensor)
            if value is None:
                continue
            if self._crossed(sensor, value, threshold.alert_celsius, critical=False):
                found.append(
                    Crossing(
                        sensor=sensor,
                        celsius=value,
                        threshold_celsius=threshold.alert_celsius,
                        origin=threshold.alert_origin,
                        critical=False,
                    )
                )
            critical = threshold.critical_celsius
            if critical is None:
                continue
            self._in_a_row[sensor] = self._in_a_row.get(sensor, 0) + 1 if value > critical else 0
            lasting = self._in_a_row[sensor] >= CRITICAL_READINGS or value <= critical
            if lasting and self._crossed(sensor, value, critical, critical=True):
                found.append(
                    Crossing(
                        sensor=sensor,
                        celsius=value,
                        threshold_celsius=critical,
                        origin=threshold.critical_origin,
                        critical=True,
                    )
                )
        return found

    def _crossed(self, sensor: str, value: float, limit: float, *, critical: bool) -> bool:
        was = self._above.get((sensor, critical), False)
        above = value > limit if not was else value > limit - HYSTERESIS_CELSIUS
        self._above[sensor, critical] = above
        return above and not was
