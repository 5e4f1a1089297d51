"""The processor's temperatures, from whichever driver has them."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.cpu_choice import Choice, Part, choose
from pytest_thermal.sensors.sysfs.files import Entry, FilesSource, celsius, file_entry, hottest, read_text
from pytest_thermal.sensors.sysfs.tree import Chip, Zone, chips, package_of_node, packages, zones

NAME = "cpu_temperature"


def make(*, sysfs: str = "/sys", proc: str = "/proc") -> CpuTemperature:
    """The source, for the host whose /sys and /proc are seen there."""
    return CpuTemperature(sysfs=Path(sysfs), proc=Path(proc))


def cpu_choice(sysfs: Path, proc: Path, found: Sequence[Chip], zone_list: Sequence[Zone]) -> Choice:
    """Which of these chips and zones are the processor's."""
    processors = _processors(sysfs)
    nodes = package_of_node(sysfs, processors)
    return choose(found, zone_list, model=_model(proc), packages=processors, nodes=nodes)


def _processors(sysfs: Path) -> dict[int, list[int]]:
    """The processors and their logical CPUs. A device tree's machine is one chip: its packages are clusters of that."""
    found = packages(sysfs)
    if not (sysfs / "firmware" / "devicetree" / "base" / "compatible").is_file():
        return found
    return {0: sorted(core for cores in found.values() for core in cores)} if found else {}


class CpuTemperature(FilesSource):
    """The processor's temperatures."""

    name = NAME

    def __init__(self, *, sysfs: Path, proc: Path) -> None:
        super().__init__()
        self._sysfs = sysfs
        self._choice = cpu_choice(sysfs, proc, chips(sysfs), zones(sysfs))
        self._packages = _processors(sysfs)

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """The chosen driver's; what looks like one and is not."""
        entries = [self._entry(part) for part in self._choice.parts]
        absent = [
            Absent(
                sensor=self._sensor(part),
                reading=Reading(sensor_id=self._sensor(part).id, missing=Missing.NOT_OFFERED, detail=why),
            )
            for part, why in self._choice.rejected
        ]
        if not entries:
            sensor = self._sensor(Part(cpu=0, part="package", spots=(), label="", identity=""))
            reading = Reading(sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=self._choice.reason)
            absent.append(Absent(sensor=sensor, reading=reading))
        return entries, absent

    def nothing(self) -> str:
        """Why there is no processor temperature."""
        return self._choice.reason or "; ".join(
            f"{one.sensor.label}: {one.reading.detail}" for one in self.absent() if one.sensor.label
        )

    def _sensor(self, part: Part) -> Sensor:
        device = f"cpu{part.cpu}"
        return Sensor(
            id=f"{device}.{part.part}.temperature_celsius",
            unit=Unit.CELSIUS,
            device=device,
            identity=part.identity,
            source=self.name,
            label=part.label,
            limits=part.limits,
        )

    def _entry(self, part: Part) -> Entry:
        sensor = self._sensor(part)
        single = [
            file_entry(sensor, spot.path, _converter(part), is_the_same=spot.is_the_same, fault=spot.fault)
            for spot in part.spots
        ]
        entry = single[0] if len(single) == 1 else hottest(sensor, single)
        if not part.read_on_own_package:
            return entry
        return Entry(sensor=sensor, take=_on(self._packages, part.cpu, entry), files=entry.files)


def _converter(part: Part) -> Callable[[Sensor, str], Reading]:
    def convert(sensor: Sensor, text: str) -> Reading:
        reading = celsius(sensor, text)
        if reading.value is None or not part.offset_kelvin:
            return reading
        return Reading(sensor_id=reading.sensor_id, value=reading.value - part.offset_kelvin)

    return convert


def _on(found: Mapping[int, Sequence[int]], cpu: int, entry: Entry) -> Callable[[], Reading]:
    """Take the entry's reading while on a core of that package."""

    def take() -> Reading:
        try:
            with _pinned(found[cpu]):
                return entry.take()
        except OSError as error:
            detail = f"could not run on package {cpu}: {error.strerror or error}"
            return Reading(sensor_id=entry.sensor.id, missing=Missing.UNREADABLE, detail=detail)

    return take


@contextlib.contextmanager
def _pinned(cores: Sequence[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _model(proc: Path) -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", read_text(proc / "cpuinfo") or "", re.MULTILINE | re.IGNORECASE)
    return match[1] if match else ""
