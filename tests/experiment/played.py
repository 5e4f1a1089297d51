"""A source of one sensor that shows what a file holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_thermal.model import Reading, Sensor, Unit
from pytest_thermal.sensors.source import Availability


class Played:
    def __init__(self, *, name: str, sensor: str, file: str) -> None:
        self.name = name
        unit = next(unit for unit in Unit if sensor.endswith(f"_{unit}"))
        device = sensor.partition(".")[0]
        self._sensor = Sensor(id=sensor, unit=unit, device=device, identity=device, source=name)
        self._file = Path(file)

    def probe(self) -> Availability:
        return Availability(ok=True)

    def sensors(self) -> Sequence[Sensor]:
        return [self._sensor]

    def read(self) -> Sequence[Reading]:
        return [Reading(sensor_id=self._sensor.id, value=float(self._file.read_text()))]

    def close(self) -> None:
        pass


def make(*, name: str, sensor: str, file: str) -> Played:
    return Played(name=name, sensor=sensor, file=file)
