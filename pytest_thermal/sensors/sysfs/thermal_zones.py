"""The kernel's thermal zones other than the processor's: firmware, chipset, radio, board."""

from __future__ import annotations

import functools
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.cpu_temperature import cpu_choice
from pytest_thermal.sensors.sysfs.files import Entry, FilesSource, celsius, file_entry
from pytest_thermal.sensors.sysfs.tree import Zone, chips, numbered, zones

NAME = "thermal_zones"

_DEGREES = frozenset({"sunxi-therm", "sunxi-therm-1", "sunxi-therm-2"})
"""Zones of vendor kernels that give degrees where the ABI says millidegrees."""


def make(*, sysfs: str = "/sys", proc: str = "/proc", only: str = "") -> ThermalZones:
    """The source; ``only`` names zones by number or type, with commas: all others are left out."""
    return ThermalZones(sysfs=Path(sysfs), proc=Path(proc), only=frozenset(filter(None, only.split(","))))


class ThermalZones(FilesSource):
    """Zones that are not the processor's."""

    name = NAME

    def __init__(self, *, sysfs: Path, proc: Path, only: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._sysfs = sysfs
        self._proc = proc
        self._only = only

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """One entry a zone; a disabled one is absent."""
        found = zones(self._sysfs)
        taken = cpu_choice(self._sysfs, self._proc, chips(self._sysfs), found).paths
        entries: list[Entry] = []
        absent: list[Absent] = []
        identities: dict[str, int] = {}
        for zone, device in zip(found, numbered([zone.type for zone in found]), strict=True):
            wanted = not self._only or zone.type in self._only or str(zone.number) in self._only
            if not wanted or zone.folder / "temp" in taken:
                continue
            order = identities[zone.identity] = identities.get(zone.identity, 0) + 1
            sensor = _sensor(zone, device, zone.identity if order == 1 else f"{zone.identity}#{order}")
            if not zone.enabled:
                reading = Reading(
                    sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=say("the zone's mode is disabled")
                )
                absent.append(Absent(sensor=sensor, reading=reading))
                continue
            convert = functools.partial(celsius, degrees_allowed=zone.type in _DEGREES)
            entries.append(file_entry(sensor, zone.folder / "temp", convert, is_the_same=zone.is_the_same))
        return entries, absent

    def nothing(self) -> str:
        """Why there is no zone."""
        found = zones(self._sysfs)
        if self._only and found:
            return say("no thermal zone of this machine is one of {names}", names=joined(", ", sorted(self._only)))
        return (
            say("there is no thermal zone here but the processor's")
            if found
            else say("this machine has no thermal zone")
        )


def _sensor(zone: Zone, device: str, identity: str) -> Sensor:
    return Sensor(
        id=f"{device}.temperature_celsius",
        unit=Unit.CELSIUS,
        device=device,
        identity=identity,
        source=NAME,
        label=f"thermal zone {zone.type}",
        limits=zone.limits,
    )
