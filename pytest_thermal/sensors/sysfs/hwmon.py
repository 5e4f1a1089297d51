"""Chips of the hwmon class other than the processor's: drives, boards, fans, AMD graphics, whole-node power meters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.said import say
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.cpu_temperature import cpu_choice
from pytest_thermal.sensors.sysfs.files import Entry, FilesSource, celsius, file_entry, read_integer, scaled, slug
from pytest_thermal.sensors.sysfs.tree import Chip, Input, chips, numbered, zones

NAME = "hwmon"

_LEFT_OUT = {"drivetemp": say("left out: it sends a command to the disk for each reading, and may wake it")}
_GRAPHICS = frozenset({"amdgpu", "radeon", "nouveau", "xe", "i915"})
"""Drivers of accelerators: they know their fan, so that its 0 RPM is a fan that rests."""
_GRAPHICS_PARTS = {"junction": "", "edge": "edge.", "mem": "memory."}
"""The hot spot is the device's temperature; without one, whichever is there."""
_WHOLE_DRIVE = "Composite"
_POWER_ON_CELSIUS = 85.0
"""What a 1-wire probe shows before its first conversion."""
_BESIDE = {
    "gpu_busy_percent": ("utilization_percent", Unit.PERCENT),
    "mem_info_vram_used": ("memory.used_bytes", Unit.BYTES),
}
_QUANTITIES = {
    "temp": ("temperature_celsius", Unit.CELSIUS),
    "fan": ("speed_rpm", Unit.RPM),
    "power": ("power_watts", Unit.WATTS),
}


def make(*, sysfs: str = "/sys", proc: str = "/proc") -> Hwmon:
    """The source, for the host whose /sys is seen there."""
    return Hwmon(sysfs=Path(sysfs), proc=Path(proc))


class Hwmon(FilesSource):
    """Every hwmon chip that is not the processor's nor a thermal zone's copy."""

    name = NAME

    def __init__(self, *, sysfs: Path, proc: Path) -> None:
        super().__init__()
        self._sysfs = sysfs
        self._proc = proc

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """One entry an input."""
        found = chips(self._sysfs)
        zone_list = zones(self._sysfs)
        taken = cpu_choice(self._sysfs, self._proc, found, zone_list).paths
        copies = {slug(zone.type) for zone in zone_list}
        entries: list[Entry] = []
        absent: list[Absent] = []
        identities: dict[str, int] = {}
        for chip, device in zip(found, numbered([chip.name for chip in found]), strict=True):
            order = identities[chip.identity] = identities.get(chip.identity, 0) + 1
            identity = chip.identity if order == 1 else f"{chip.identity}#{order}"
            if slug(chip.name) in copies:
                continue
            for one in chip.inputs:
                if one.path in taken:
                    continue
                sensor = _sensor(chip, one, device, identity)
                if chip.name in _LEFT_OUT:
                    reading = Reading(sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=_LEFT_OUT[chip.name])
                    absent.append(Absent(sensor=sensor, reading=reading))
                else:
                    convert = _converter(chip, one)
                    entries.append(file_entry(sensor, one.path, convert, is_the_same=chip.is_the_same, fault=one.fault))
            entries += _beside(chip, device, identity) if chip.name in _GRAPHICS else []
        return entries, absent

    def nothing(self) -> str:
        """Why there is no chip."""
        if not chips(self._sysfs):
            return say("this machine shows no hwmon chip")
        return say("no hwmon chip here but the processor's gives a reading")


def _sensor(chip: Chip, one: Input, device: str, identity: str) -> Sensor:
    quantity, unit = _QUANTITIES[one.kind]
    return Sensor(
        id=f"{device}.{_part(chip, one)}{quantity}",
        unit=unit,
        device=device,
        identity=f"{identity}/{one.label}",
        source=NAME,
        label=f"{chip.name} {one.label}",
        limits=one.limits,
    )


def _beside(chip: Chip, device: str, identity: str) -> list[Entry]:
    """What graphics drivers tell beside their chip: how busy the card is, and how full its memory."""
    folder = chip.folder / "device"
    size = read_integer(folder / "mem_info_vram_total")
    found = []
    for name, (quantity, unit) in _BESIDE.items():
        if (folder / name).is_file():
            sensor = Sensor(
                id=f"{device}.{quantity}",
                unit=unit,
                device=device,
                identity=f"{identity}/{name}",
                source=NAME,
                label=f"{chip.name} {name}",
                limits={"max": float(size)} if size and unit is Unit.BYTES else {},
            )
            found.append(file_entry(sensor, folder / name, scaled, is_the_same=chip.is_the_same))
    return found


def _part(chip: Chip, one: Input) -> str:
    same = chip.of_kind(one.kind)
    if chip.name in _GRAPHICS and one.kind == "temp" and one.label in _GRAPHICS_PARTS:
        hot_spot = any(other.label == "junction" for other in same)
        return "" if one.label == "edge" and not hot_spot else _GRAPHICS_PARTS[one.label]
    if (len(same) == 1 and one.kind != "fan") or one.label == _WHOLE_DRIVE:
        return ""
    label = slug(one.label)
    twice = sum(slug(other.label) == label for other in same) > 1
    return f"{label}_{one.number}." if twice else f"{label}."


def _converter(chip: Chip, one: Input) -> Callable[[Sensor, str], Reading]:
    if one.kind == "temp":
        return _one_wire if chip.name.startswith("w1_") else celsius
    if one.kind == "power":
        return functools.partial(scaled, per_unit=1_000_000)
    if chip.name in _GRAPHICS:
        return scaled
    return Fan()


def _one_wire(sensor: Sensor, text: str) -> Reading:
    reading = celsius(sensor, text)
    if reading.value != _POWER_ON_CELSIUS:
        return reading
    return Reading(
        sensor_id=sensor.id,
        missing=Missing.IMPLAUSIBLE,
        detail=say("raw 85000: what the probe shows before it has measured"),
    )


class Fan:
    """Reads a fan header. Its 0 says "stopped" only of a fan that was seen turning; before, maybe nothing is there."""

    def __init__(self) -> None:
        self._turned = False

    def __call__(self, sensor: Sensor, text: str) -> Reading:
        """The reading that the driver's ``text`` is."""
        reading = scaled(sensor, text)
        self._turned = self._turned or bool(reading.value)
        if reading.value == 0.0 and not self._turned:
            return Reading(
                sensor_id=sensor.id,
                missing=Missing.NOT_OFFERED,
                detail=say("raw 0, and it has not turned yet: nothing connected, or a fan that rests or is stuck"),
            )
        return reading
