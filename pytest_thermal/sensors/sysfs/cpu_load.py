"""How busy the processors are, how fast they run, and how long they were throttled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.model.said import say
from pytest_thermal.sensors.plausibility import plausible_limits
from pytest_thermal.sensors.source import Absent
from pytest_thermal.sensors.sysfs.files import (
    DriverFile,
    Entry,
    FilesSource,
    failed,
    file_entry,
    number_in,
    read_integer,
    scaled,
)
from pytest_thermal.sensors.sysfs.tree import packages

NAME = "cpu_load"

_STAT_BYTES = 1 << 20
"""Room for the lines of a few thousand CPUs."""
_CLOCK_SAMPLES = 16
"""Clocks read of one package: on some kernels each read waits for a measurement of its own."""
LEAST_SECONDS = 0.2
"""The kernel counts in hundredths of a second, so that a shorter time tells utilisation in coarse steps."""

Times = Mapping[str, tuple[int, int]]
"""By CPU (``cpu``: all of them): busy and total ticks."""


def make(*, sysfs: str = "/sys", proc: str = "/proc") -> CpuLoad:
    """The source, for the host whose /sys and /proc are seen there."""
    return CpuLoad(sysfs=Path(sysfs), proc=Path(proc))


class CpuLoad(FilesSource):
    """Utilisation, clock and throttled time, of each package and of all together."""

    name = NAME

    def __init__(
        self,
        *,
        sysfs: Path,
        proc: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__()
        self._sysfs = sysfs
        self._proc = proc
        self._stat = ProcStat(proc / "stat", clock=clock, sleep=sleep)

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """What /proc/stat, cpufreq and the throttle counters offer."""
        # A kernel that tells no packages, as in some containers, has its CPUs counted as one.
        by_package = packages(self._sysfs) or {0: []}
        online = [cpu for cpus in by_package.values() for cpu in cpus]
        groups: dict[str, Sequence[int]] = {"cpu": online, **{f"cpu{n}": cpus for n, cpus in by_package.items()}}
        entries: list[Entry] = []
        absent: list[Absent] = []
        for device, cpus in groups.items():
            entries.append(self._utilisation(device, cpus))
            clocks = self._clock_entry(device, cpus)
            if isinstance(clocks, Entry):
                entries.append(clocks)
            else:
                absent.append(clocks)
            if device != "cpu":
                entries += self._throttled(device, cpus)
        return entries, absent

    def nothing(self) -> str:
        """Why there is nothing."""
        return f"{self._proc / 'stat'} cannot be read"

    def read(self) -> Sequence[Reading]:
        """One reading of each, all utilisation from one look at /proc/stat."""
        self._settle()
        self._stat.look()
        return super().read()

    def _settle(self) -> tuple[Entry, ...]:
        if self._entries is None:
            self._stat.look()
        return super()._settle()

    def _utilisation(self, device: str, cpus: Sequence[int]) -> Entry:
        sensor = self._sensor(
            device, "utilization_percent", Unit.PERCENT, "/proc/stat: neither idle, waiting nor stolen"
        )
        names = [f"cpu{cpu}" for cpu in cpus] if cpus and device != "cpu" else ["cpu"]
        return Entry(sensor=sensor, take=lambda: self._stat.utilisation(sensor, names), files=(self._stat.file,))

    def _clock_entry(self, device: str, cpus: Sequence[int]) -> Entry | Absent:
        folders = [self._cpu(cpu) / "cpufreq" for cpu in cpus]
        paths = [folder / "scaling_cur_freq" for folder in folders if (folder / "scaling_cur_freq").exists()]
        step = max(1, -(-len(paths) // _CLOCK_SAMPLES))
        paths = paths[::step]
        of = f"mean of {len(paths)} of {len(cpus)} CPUs" if step > 1 else "mean of its CPUs"
        sensor = self._sensor(device, "clock_megahertz", Unit.MEGAHERTZ, f"cpufreq: {of}", _clock_limits(folders))
        if not paths:
            reading = Reading(
                sensor_id=sensor.id,
                missing=Missing.NOT_OFFERED,
                detail=say("the kernel shows no clock (no cpufreq driver)"),
            )
            return Absent(sensor=sensor, reading=reading)
        singles = [file_entry(sensor, path, lambda one, text: scaled(one, text, per_unit=1000)) for path in paths]
        return Entry(
            sensor=sensor,
            take=lambda: _mean(sensor, singles),
            files=tuple(file for single in singles for file in single.files),
        )

    def _throttled(self, device: str, cpus: Sequence[int]) -> list[Entry]:
        path = self._cpu(cpus[0] if cpus else 0) / "thermal_throttle" / "package_throttle_total_time_ms"
        if not path.exists():
            return []
        sensor = self._sensor(device, "throttle.thermal_milliseconds", Unit.MILLISECONDS, path.name)
        return [file_entry(sensor, path, scaled)]

    def _cpu(self, number: int) -> Path:
        return self._sysfs / "devices" / "system" / "cpu" / f"cpu{number}"

    def _sensor(
        self, device: str, quantity: str, unit: Unit, label: str, limits: Mapping[str, float] | None = None
    ) -> Sensor:
        return Sensor(
            id=f"{device}.{quantity}",
            unit=unit,
            device=device,
            identity="all packages" if device == "cpu" else f"package {device[3:]}",
            source=self.name,
            label=label,
            limits=limits or {},
        )


class ProcStat:
    """What the processors did between two looks at /proc/stat."""

    def __init__(self, path: Path, *, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.file = DriverFile(path, size=_STAT_BYTES)
        self._clock = clock
        self._sleep = sleep
        self._before: Times = {}
        self._now: Times = {}
        self._looked: float | None = None
        self._error: OSError | None = None

    def look(self) -> None:
        """Take the counters. The first look takes them twice, :data:`LEAST_SECONDS` apart."""
        if self._looked is None:
            self._take()
        early = self._looked + LEAST_SECONDS - self._clock() if self._looked is not None else 0.0
        if early > 0:
            self._sleep(early)
        self._take()

    def utilisation(self, sensor: Sensor, names: Sequence[str]) -> Reading:
        """Percent of these CPUs' time that was work, between the last two looks."""
        if self._error is not None:
            return failed(sensor, self._error, self.file.path)
        both = [name for name in names if name in self._before and name in self._now]
        busy = total = 0
        for name in both:
            work = self._now[name][0] - self._before[name][0]
            whole = self._now[name][1] - self._before[name][1]
            # The kernel lets idle and waiting time of a CPU fall when it goes offline and comes back.
            if 0 <= work <= whole:
                busy += work
                total += whole
        if not total:
            detail = "none of its CPUs moved on in /proc/stat" if both else "none of its CPUs is in /proc/stat"
            return Reading(sensor_id=sensor.id, missing=Missing.STUCK if both else Missing.ABSENT, detail=detail)
        return Reading(sensor_id=sensor.id, value=100.0 * busy / total)

    def _take(self) -> None:
        self._before, self._now, self._error = self._now, {}, None
        try:
            text = self.file.read()
        except OSError as error:
            self._error = error
            self._looked = None
            return
        self._looked = self._clock()
        self._now = dict(filter(None, map(_times, text.splitlines())))


def _times(line: str) -> tuple[str, tuple[int, int]] | None:
    name, *words = line.split()
    ticks = [number_in(word) for word in words] if name.startswith("cpu") else []
    if len(ticks) < 4 or None in ticks:
        return None
    user, nice, system, idle, *more = (tick or 0 for tick in ticks)
    # Guests' time is in the users' already, so that it stays out of the sum.
    waiting, interrupts, soft, stolen = (*more, 0, 0, 0, 0)[:4]
    busy = user + nice + system + interrupts + soft
    return name, (busy, busy + idle + waiting + stolen)


def _mean(sensor: Sensor, entries: Sequence[Entry]) -> Reading:
    values = []
    for entry in entries:
        reading = entry.take()
        # A CPU that is taken offline has no clock; one that gives 0 is asleep and says nothing of the others.
        if reading.value:
            values.append(reading.value)
        elif reading.missing not in {None, Missing.ABSENT}:
            return reading
    if not values:
        return Reading(sensor_id=sensor.id, missing=Missing.ABSENT, detail="none of its CPUs gives a clock")
    return Reading(sensor_id=sensor.id, value=sum(values) / len(values))


def _clock_limits(folders: Sequence[Path]) -> dict[str, float]:
    found = {}
    for name, file in (("max", "cpuinfo_max_freq"), ("base", "base_frequency")):
        values = [value for folder in folders if (value := read_integer(folder / file))]
        if values:
            found[name] = max(values) / 1000.0
    return plausible_limits(Unit.MEGAHERTZ, found)
