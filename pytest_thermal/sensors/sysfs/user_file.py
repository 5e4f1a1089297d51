"""A file that the bench names as the processor's temperature."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.cpu_choice import NEVER_CPU_ZONES
from pytest_thermal.sensors.sysfs.files import Entry, FilesSource, celsius, file_entry, read_text

NAME = "cpu_temp_path"

_NUMBER = re.compile(r"[-+]?\d{1,9}(?:\.\d{1,9})?")
_MOST_DEGREES = 150.0
_LEAST_MILLIDEGREES = 1000.0


def make(*, path: str) -> UserFile:
    """The source that is this file."""
    return UserFile(Path(path))


class UserFile(FilesSource):
    """One temperature. Files of the kernel give millidegrees; of any other file, 1000 and more are millidegrees."""

    name = NAME

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """The file, unless it is known to be no processor's."""
        by_the_kernel = self._zone() is not None or re.fullmatch(r"temp\d+_input", self._path.name) is not None
        sensor = Sensor(
            id="cpu0.package.temperature_celsius",
            unit=Unit.CELSIUS,
            device="cpu0",
            identity=f"{self._path}",
            source=self.name,
            label=f"{self._path}" + ("" if by_the_kernel else ", from 1000 on read as millidegrees"),
        )
        zone = self._zone()
        if zone is not None and NEVER_CPU_ZONES.fullmatch(zone):
            reading = Reading(
                sensor_id=sensor.id,
                missing=Missing.NOT_OFFERED,
                detail=f"{self._path} is the thermal zone {zone!r}, which is not the processor's",
            )
            return [], [Absent(sensor=sensor, reading=reading)]
        return [file_entry(sensor, self._path, celsius if by_the_kernel else by_magnitude)], []

    def nothing(self) -> str:
        """Why it is not used."""
        return "; ".join(one.reading.detail for one in self.absent())

    def _zone(self) -> str | None:
        return read_text(self._path.with_name("type")) if self._path.name == "temp" else None


def by_magnitude(sensor: Sensor, text: str) -> Reading:
    """Up to 150 degrees, from 1000 millidegrees; what is between is neither."""
    stripped = text.strip()
    number = float(stripped) if _NUMBER.fullmatch(stripped) else None
    if number is None:
        return Reading(sensor_id=sensor.id, missing=Missing.NOT_UNDERSTOOD, detail=f"raw {stripped[:60]!r}")
    if abs(number) >= _LEAST_MILLIDEGREES:
        return Reading(sensor_id=sensor.id, value=number / 1000.0)
    if abs(number) <= _MOST_DEGREES:
        return Reading(sensor_id=sensor.id, value=number)
    return Reading(
        sensor_id=sensor.id,
        missing=Missing.IMPLAUSIBLE,
        detail=f"raw {stripped}: neither degrees (up to 150) nor millidegrees (from 1000)",
    )
