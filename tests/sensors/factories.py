"""Sources that a description can name: steady, raising, hanging, and things that are no source."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.sensors import Absent, Availability

RELEASE = threading.Event()
"""Ends what hangs."""


class Steady:
    """A source of some devices at 40, 41, 42 … °C."""

    def __init__(self, name: str, devices: Sequence[str], *, ok: bool = True) -> None:
        self.name = name
        self._devices = tuple(devices)
        self._ok = ok

    def probe(self) -> Availability:
        return Availability(ok=self._ok, reason="" if self._ok else "out of order")

    def sensors(self) -> Sequence[Sensor]:
        return [
            Sensor(
                id=f"{device}.temperature_celsius",
                unit=Unit.CELSIUS,
                device=device,
                identity=f"uuid of {device}",
                source=self.name,
            )
            for device in self._devices
        ]

    def absent(self) -> Sequence[Absent]:
        sensor = Sensor(
            id="gpu0.fan.speed_percent", unit=Unit.PERCENT, device="gpu0", identity="uuid", source=self.name
        )
        reading = Reading(sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail="[N/A]")
        return [Absent(sensor=sensor, reading=reading)]

    def read(self) -> Sequence[Reading]:
        return [Reading(sensor_id=sensor.id, value=40.0 + order) for order, sensor in enumerate(self.sensors())]

    def close(self) -> None:
        pass


def steady(*, name: str = "steady", devices: str = "gpu0,gpu1", ok: bool = True) -> Steady:
    return Steady(name, devices.split(","), ok=ok)


class Raising(Steady):
    def probe(self) -> Availability:
        raise OSError("the bus is gone")


def raises() -> Steady:
    raise RuntimeError("it cannot be made")


def raising() -> Steady:
    return Raising("raising", ["gpu0"])


class Hanging(Steady):
    def probe(self) -> Availability:
        RELEASE.wait()
        return Availability(ok=True)


def hanging() -> Steady:
    return Hanging("hanging", ["gpu0"])


def no_source() -> int:
    return 3


nothing_to_call = 3
