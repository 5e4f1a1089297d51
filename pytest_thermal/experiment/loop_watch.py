"""The loop while a run goes on: a leak, or a pump that stands, asks for the load to be taken off."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.kinds import LEAK_ALARM, LEAK_WARNING, is_leak_detector, is_part_of_pump
from pytest_thermal.model.said import say

PUMP, LEAK = "pump", "leak"
"""What an alarm is about, in the event's ``what``."""
STANDS_READINGS, STANDS_SECONDS = 2, 3.0
"""A pump stands when so many readings in a row, at least so far apart, say 0: one may be an error of the tachometer,
and two within a second may be the same one, as a controller keeps it in its register. At the 10 s of a BMC it is the
second reading that takes the load off."""
_REMEMBERED = 10
"""Speeds before the standstill: the last ones may be of the running out."""
SPINS_UP_SECONDS = 30.0
"""A pump that stands when the load comes on may be one that is only then switched on."""


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Something that the loop's own sensors say is wrong."""

    sensor: str
    what: str
    """``PUMP`` or ``LEAK``."""
    text: str
    """In words."""
    critical: bool
    """Whether the load has to go."""


class LoopWatch:
    """Follows leak detectors and the speeds of pumps, from whatever source.

    A detector that says *critical* is believed at once, in any phase: no second reading is waited for where coolant
    runs onto a machine. A pump counts once it has turned in this run, or where the bench names it. One that stops while
    another of its group, which had stood until then, begins to turn has been relieved: that is told, and no alarm.
    """

    def __init__(self, sensors: Iterable[Sensor], *, named: Collection[str] = (), time_scale: float = 1.0) -> None:
        """Args tell what is followed.

        Args:
            sensors: Of the run.
            named: Devices that the bench says are there: a pump among them has to turn.
            time_scale: How many times faster than a real one the bench's loop is.
        """
        every = list(sensors)
        self.detectors = tuple(sensor.id for sensor in every if is_leak_detector(sensor))
        self._pumps = {sensor.id: _Pump(sensor, named=sensor.device in named) for sensor in _pumps(every)}
        self._time_scale = time_scale
        self._said: dict[str, float] = {}
        self._loaded_since: float | None = None

    def look(self, time_seconds: float, values: Mapping[str, float | None], *, loaded: bool) -> list[Alarm]:
        """What a row of readings says, each thing once.

        Args:
            time_seconds: Of the readings.
            values: By sensor id; None for a missing one, which says nothing.
            loaded: Whether this is a phase under load: a pump may stand without one.
        """
        now = time_seconds * self._time_scale
        if loaded and self._loaded_since is None:
            self._loaded_since = now
            for pump in self._pumps.values():
                pump.begin()
        elif not loaded:
            self._loaded_since = None
        return [*self._leaks(values), *self._stops(now, values)]

    def _leaks(self, values: Mapping[str, float | None]) -> Iterable[Alarm]:
        for name in self.detectors:
            value = values.get(name)
            if value is None:
                continue
            worse = value > self._said.get(name, 0.0)
            self._said[name] = value
            if worse and value >= LEAK_WARNING:
                critical = value >= LEAK_ALARM
                text = (
                    say("{sensor} reports a leak (critical)", sensor=name)
                    if critical
                    else say("{sensor} warns of a leak", sensor=name)
                )
                yield Alarm(sensor=name, what=LEAK, text=text, critical=critical)

    def _stops(self, now: float, values: Mapping[str, float | None]) -> Iterable[Alarm]:
        for name, pump in self._pumps.items():
            value = values.get(name)
            if value is not None:
                pump.see(now, value, loaded=self._loaded_since is not None)
        for name, pump in self._pumps.items():
            if values.get(name) is None or not pump.stands(now, self._loaded_since):
                continue
            pump.told = True
            relief = next((other.name for other in self._pumps.values() if other.relieves(pump)), "")
            stands = (
                say("{sensor} stands, after {usual}", sensor=name, usual=pump.usual)
                if pump.usual
                else say("{sensor} stands: the bench names it, and it never turned", sensor=name)
            )
            yield Alarm(
                sensor=name,
                what=PUMP,
                text=say("{stands}; {relief} has taken over", stands=stands, relief=relief) if relief else stands,
                critical=not relief,
            )


class _Pump:
    """One pump's speed so far."""

    def __init__(self, sensor: Sensor, *, named: bool) -> None:
        self.name = sensor.id
        self.told = False
        self._group = re.sub(r"\d+", "#", sensor.id)
        self._unit = "rpm" if sensor.unit is Unit.RPM else "%"
        self._named = named
        self._latest: float | None = None
        self._speeds: deque[float] = deque(maxlen=_REMEMBERED)
        self._zeros: list[float] = []
        """When the readings of 0 in a row were taken: the first, and how many by its length, at most two."""
        self._turned_under_load = False
        self._stood_before = False

    @property
    def usual(self) -> str:
        """Its speed before it ran out, in words; empty where it never turned."""
        return f"{max(self._speeds):.0f} {self._unit}" if self._speeds else ""

    def begin(self) -> None:
        """The load comes on: what stood until now may turn from now on."""
        self._zeros = []
        self._turned_under_load = False

    def see(self, now: float, value: float, *, loaded: bool) -> None:
        """Take note of a reading."""
        self._latest = value
        if value > 0:
            # Of one that turns since it first stood: it has relieved another.
            self._speeds.append(value)
            self._zeros, self.told = [], False
            self._turned_under_load = self._turned_under_load or loaded
            return
        self._stood_before = self._stood_before or not self._speeds
        self._zeros = [*self._zeros[:1], now] if self._zeros else [now]

    def stands(self, now: float, loaded_since: float | None) -> bool:
        """Whether it is to be told now that it stands."""
        if self.told or loaded_since is None or not (self._speeds or self._named):
            return False
        if not self._turned_under_load and now - loaded_since < SPINS_UP_SECONDS:
            return False
        return len(self._zeros) >= STANDS_READINGS and self._zeros[-1] - self._zeros[0] >= STANDS_SECONDS

    def relieves(self, other: _Pump) -> bool:
        """Whether it turns in the place of another of its group."""
        return self is not other and self._group == other._group and self._stood_before and bool(self._latest)


def _pumps(sensors: Iterable[Sensor]) -> list[Sensor]:
    """Each pump's speed: in rpm where it is measured, else as a share."""
    found = [sensor for sensor in sensors if is_part_of_pump(sensor) and sensor.unit in (Unit.RPM, Unit.PERCENT)]
    in_rpm = {sensor.device for sensor in found if sensor.unit is Unit.RPM}
    return [sensor for sensor in found if sensor.unit is Unit.RPM or sensor.device not in in_rpm]
