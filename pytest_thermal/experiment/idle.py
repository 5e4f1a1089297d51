"""Whether a bench does nothing before its baseline is taken, and who keeps it busy where it does not."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_thermal.model import Sensor
from pytest_thermal.model.phases import IDLE_UTILIZATION_PERCENT
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import say

LOOKED_AT_SECONDS = 5.0
"""Utilisation is averaged over this long: an idle machine has its moments."""
WAITS_SECONDS = 60.0
"""For a load that is just ending."""
_BUSY_SHARE = 0.2
_MOST_NAMED = 3


class IdleCheck:
    """Follows the utilisation of every device; in bench seconds, so that a fast demo bench need not wait as long."""

    def __init__(self, sensors: Sequence[Sensor], *, time_scale: float = 1.0) -> None:
        self._ids = frozenset(
            sensor.id
            for sensor in sensors
            if sensor.unit is Unit.PERCENT and sensor.id == f"{sensor.device}.utilization_percent"
        )
        self._window_seconds = LOOKED_AT_SECONDS / time_scale
        self._seen: dict[str, list[tuple[float, float]]] = {}

    @property
    def possible(self) -> bool:
        """Whether any device tells its utilisation."""
        return bool(self._ids)

    def add(self, time_seconds: float, values: Mapping[str, float | None]) -> None:
        """Take a row of readings (by sensor id) into account."""
        for sensor in self._ids & values.keys():
            value = values[sensor]
            if value is not None:
                rows = self._seen.setdefault(sensor, [])
                rows.append((time_seconds, value))
                while rows[0][0] < time_seconds - self._window_seconds:
                    rows.pop(0)

    def busy(self) -> dict[str, float]:
        """Devices that are not idle, and their mean utilisation in percent, the busiest first."""
        means = {
            sensor.split(".", 1)[0]: sum(value for _, value in rows) / len(rows) for sensor, rows in self._seen.items()
        }
        found = {device: mean for device, mean in means.items() if mean > IDLE_UTILIZATION_PERCENT}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    @property
    def heard(self) -> bool:
        """Whether any device said anything."""
        return bool(self._seen)

    def silent(self) -> list[str]:
        """Devices that should tell their utilisation and did not."""
        return sorted(sensor.split(".", 1)[0] for sensor in self._ids - self._seen.keys())

    def answered(self) -> bool:
        """Whether each device has said enough to be called idle or not."""
        return all(
            sensor in self._seen and self._seen[sensor][-1][0] - self._seen[sensor][0][0] >= self._window_seconds * 0.6
            for sensor in self._ids
        )


@dataclass(frozen=True, kw_only=True)
class BusyProcess:
    """A process that used much of a core."""

    pid: int
    name: str
    cores: float

    @property
    def text(self) -> str:
        """In words."""
        return say("{name} (process {pid}, {cores:.1f} cores)", name=self.name, pid=self.pid, cores=self.cores)


def busiest_processes(
    seconds: float = 0.5, *, proc: Path = Path("/proc"), without_sessions: Collection[int] = ()
) -> list[BusyProcess]:
    """Processes that use a fifth of a core or more, measured for that long; the busiest first, at most three.

    Those of some sessions can be left out: a load is a session of its own.
    """
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    before = _cpu_ticks(proc, without_sessions)
    began = time.monotonic()
    time.sleep(seconds)
    after = _cpu_ticks(proc, without_sessions)
    took_seconds = time.monotonic() - began
    found = []
    for pid, (name, ticks) in after.items():
        if pid in before and pid != os.getpid():
            cores = (ticks - before[pid][1]) / ticks_per_second / took_seconds
            if cores >= _BUSY_SHARE:
                found.append(BusyProcess(pid=pid, name=name, cores=cores))
    return sorted(found, key=lambda process: -process.cores)[:_MOST_NAMED]


def _cpu_ticks(proc: Path, without_sessions: Collection[int]) -> dict[int, tuple[str, int]]:
    found = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = (folder / "stat").read_text()
                # The name may hold spaces and brackets; what follows its last bracket does not.
                name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
                if int(rest[3]) not in without_sessions:
                    found[int(folder.name)] = (name, int(rest[11]) + int(rest[12]))
    return found
