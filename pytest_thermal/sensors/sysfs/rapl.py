"""Power from the energy counters that processors keep (RAPL; AMD's appear under Intel's name)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.said import say
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.files import (
    DriverFile,
    Entry,
    FilesSource,
    failed,
    folders,
    natural,
    number_in,
    read_integer,
    read_text,
    slug,
)

NAME = "rapl"

_ZONE = re.compile(r"intel-rapl(:\d+)+")
_PACKAGE = re.compile(r"package-(\d+)(?:-(die-\d+))?")
_MOST_WATTS = 1_500.0
"""More than any package draws: a gap in which this could turn the counter round tells nothing."""
LEAST_SECONDS = 0.1
"""Counters move about once a millisecond, so that a shorter time gives power to 1 % at best."""


def make(*, sysfs: str = "/sys") -> Rapl:
    """The source, for the host whose /sys is seen there."""
    return Rapl(sysfs=Path(sysfs))


class Rapl(FilesSource):
    """Power of packages and their parts: mean since the reading before."""

    name = NAME

    def __init__(
        self,
        *,
        sysfs: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__()
        self._sysfs = sysfs
        self._clock = clock
        self._sleep = sleep

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """One entry a zone of the powercap class."""
        entries = []
        for folder in self._folders():
            sensor = _sensor(folder)
            if sensor is not None:
                energy = Energy(
                    sensor, folder / "energy_uj", read_integer(folder / "max_energy_range_uj"), self._clock, self._sleep
                )
                entries.append(Entry(sensor=sensor, take=energy.take, files=(energy.file,)))
        return entries, []

    def nothing(self) -> str:
        """Why there is no power."""
        if not self._folders():
            return say("this machine shows no energy counter (virtual machine, or no such driver)")
        return (
            "; ".join(f"{one.sensor.label}: {one.reading.detail}" for one in self.absent()) or "no counter has a name"
        )

    def _folders(self) -> list[Path]:
        found = folders(self._sysfs / "class" / "powercap", "intel-rapl:*")
        return sorted((path for path in found if _ZONE.fullmatch(path.name)), key=lambda path: natural(path.name))


class Energy:
    """A counter of microjoules that wraps, read as watts."""

    def __init__(
        self,
        sensor: Sensor,
        path: Path,
        range_microjoules: int | None,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self.file = DriverFile(path)
        self._sensor = sensor
        self._range = range_microjoules
        self._clock = clock
        self._sleep = sleep
        self._last: tuple[float, int] | None = None

    def take(self) -> Reading:
        """Mean power since the reading before; the first waits :data:`LEAST_SECONDS` to have one."""
        if self._last is None:
            begun = self._step()
            if begun is not None:
                return begun
        early = self._last[0] + LEAST_SECONDS - self._clock() if self._last else 0.0
        if early > 0:
            self._sleep(early)
        before = self._last
        problem = self._step()
        if problem is not None:
            return problem
        if before is None or self._last is None:
            return self._missing(Missing.UNREADABLE, say("there is no reading before this one"))
        return self._power(before, self._last)

    def _step(self) -> Reading | None:
        """Read the counter. A failure is a reading, and the next one starts afresh."""
        self._last = None
        try:
            text = self.file.read()
        except OSError as error:
            return failed(self._sensor, error, self.file.path)
        now = self._clock()
        count = number_in(text)
        if count is None or count < 0:
            return self._missing(Missing.NOT_UNDERSTOOD, f"raw {text.strip()[:60]!r}")
        self._last = (now, count)
        return None

    def _power(self, before: tuple[float, int], after: tuple[float, int]) -> Reading:
        seconds = after[0] - before[0]
        joules = (after[1] - before[1]) / 1e6
        if self._range and seconds * _MOST_WATTS > self._range / 1e6:
            return self._missing(
                Missing.UNREADABLE,
                f"{seconds:.0f} s since the reading before: the counter may have turned more than once",
            )
        if joules < 0:
            if not self._range:
                return self._missing(Missing.UNREADABLE, say("the counter fell, and does not say where it turns"))
            joules += self._range / 1e6
        if joules == 0 or seconds <= 0:
            return self._missing(Missing.STUCK, f"raw {after[1]}: the counter stood still for {seconds:.2f} s")
        return Reading(sensor_id=self._sensor.id, value=joules / seconds)

    def _missing(self, why: Missing, detail: str) -> Reading:
        return Reading(sensor_id=self._sensor.id, missing=why, detail=detail)


def _sensor(folder: Path) -> Sensor | None:
    name = read_text(folder / "name")
    if not name:
        return None
    top = read_text(folder.parent / ":".join(folder.name.split(":")[:2]) / "name") or ""
    package = _PACKAGE.fullmatch(top)
    if package is None:
        # psys: the whole platform, of which packages are a part.
        device, part = ("platform", "" if name == top else f"{slug(name)}.")
    else:
        device = f"cpu{package[1]}"
        die = slug(package[2] or "package")
        part = f"{die}." if name == top else f"{slug(name)}."
        if package[2] and name != top:
            part = f"{die}_{part}"
    return Sensor(
        id=f"{device}.{part}power_watts",
        unit=Unit.WATTS,
        device=device,
        identity=f"powercap/{folder.name}",
        source=NAME,
        label=f"{folder.name} {name}",
    )
