"""Reading drivers' files: one kept descriptor a file, read at offset 0, and each failure kept to its own file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.model.said import say
from pytest_thermal.sensors.plausibility import implausible
from pytest_thermal.sensors.source import Absent, Availability

_INTEGER = re.compile(r"[-+]?\d{1,20}")
_GONE = frozenset({errno.ENODEV, errno.ENXIO, errno.ESRCH, errno.ESTALE, errno.EBADF})
_REASONS = {
    errno.ENODATA: Missing.NOT_OFFERED,
    errno.EOPNOTSUPP: Missing.NOT_OFFERED,
    errno.ENOENT: Missing.ABSENT,
    errno.ENODEV: Missing.ABSENT,
    errno.ENXIO: Missing.ABSENT,
    errno.ETIMEDOUT: Missing.TIMEOUT,
}
"""What a read's error says of the sensor; any other is :attr:`Missing.UNREADABLE`."""
_FORBIDDEN = ("EACCES", "EPERM")
_LASTING = frozenset({Missing.NOT_OFFERED, Missing.IMPLAUSIBLE, Missing.ABSENT})
_LEAST_MILLI, _MOST_DEGREES = 1_000, 200
_NO_TEMPERATURE_MILLI = frozenset({-274_000, -273_150, -273_200})
"""The kernel's THERMAL_TEMP_INVALID, and absolute zero as drivers write it."""


class DriverFile:
    """A file that a driver writes anew for each read."""

    def __init__(self, path: Path, *, size: int = 4096, is_the_same: Callable[[], bool] = lambda: True) -> None:
        """Args tell what to read.

        Args:
            path: The file.
            size: As much of it is read, in bytes.
            is_the_same: Whether the device that was found there is still the one. The kernel gives the number of a
                device that went to whichever comes next.
        """
        self.path = path
        self._size = size
        self._is_the_same = is_the_same
        self._descriptor: int | None = None
        self._opened = False

    def read(self) -> str:
        """Its text now. Raises OSError as the driver does; of a device that came back, the new one is read."""
        kept = self._descriptor is not None
        try:
            return self._take()
        except OSError as error:
            if not (kept and error.errno in _GONE):
                raise
        self.close()
        return self._take()

    def close(self) -> None:
        """Give the descriptor back; a later read opens the file again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self) -> str:
        # An agent that replaces its file by renaming another onto it leaves us with the old one, which stands still.
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            self.close()
        if self._descriptor is None:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            if self._opened and not self._is_the_same():
                os.close(descriptor)
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            self._descriptor, self._opened = descriptor, True
        return os.pread(self._descriptor, self._size, 0).decode("utf-8", "replace")


def read_text(path: Path) -> str | None:
    """A small file's text without blanks around it; None where it cannot be read."""
    try:
        return path.read_bytes()[:4096].decode("utf-8", "replace").strip()
    except OSError:
        return None


def read_integer(path: Path) -> int | None:
    """A small file's number; None where there is none."""
    text = read_text(path)
    return int(text) if text and _INTEGER.fullmatch(text) else None


def folders(parent: Path, pattern: str) -> list[Path]:
    """Folders of ``parent`` that match, those with numbers in their order; none where it cannot be read."""
    try:
        found = [path for path in parent.iterdir() if path.match(pattern) and path.is_dir()]
    except OSError:
        return []
    return sorted(found, key=lambda path: natural(path.name))


def natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts ``hwmon2`` before ``hwmon10``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]


def slug(text: str) -> str:
    """A word of a sensor's id from a driver's or tool's label: ``Sensor 1`` → ``sensor_1``."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "unnamed"


def failed(sensor: Sensor, error: OSError, path: Path) -> Reading:
    """The reading of a file that could not be read."""
    number = error.errno or 0
    name = errno.errorcode.get(number, "error")
    return Reading(
        sensor_id=sensor.id,
        missing=_REASONS.get(number, Missing.UNREADABLE),
        detail=f"{name} ({os.strerror(number) if number else error}) from {path.parent.name}/{path.name}",
    )


def forbidden(reading: Reading) -> bool:
    """Whether it is missing because this user may not read it, which no repetition will change."""
    return reading.missing is Missing.UNREADABLE and reading.detail.startswith(_FORBIDDEN)


def number_in(text: str) -> int | None:
    """The number that is all of a driver's answer; None where it is anything else."""
    stripped = text.strip().strip("\0")
    return int(stripped) if _INTEGER.fullmatch(stripped) else None


def scaled(sensor: Sensor, text: str, *, per_unit: int = 1) -> Reading:
    """A driver's whole number, of which ``per_unit`` make one of the sensor's unit."""
    number = number_in(text)
    if number is None:
        return Reading(sensor_id=sensor.id, missing=Missing.NOT_UNDERSTOOD, detail=f"raw {text.strip()[:60]!r}")
    return Reading(sensor_id=sensor.id, value=number / per_unit)


def celsius(sensor: Sensor, text: str, *, degrees_allowed: bool = False) -> Reading:
    """A driver's millidegrees in °C.

    hwmon and thermal zones give millidegrees by their ABI, so that less than 1 °C is a driver's mistake (degrees,
    tenths of them, −128 for none) and no temperature, unless it is known for degrees (``degrees_allowed``).
    """
    number = number_in(text)
    if number is None:
        return Reading(sensor_id=sensor.id, missing=Missing.NOT_UNDERSTOOD, detail=f"raw {text.strip()[:60]!r}")
    if number in _NO_TEMPERATURE_MILLI:
        return Reading(
            sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=f"raw {number}: the driver has no temperature now"
        )
    if 1 <= abs(number) < _LEAST_MILLI:
        if degrees_allowed and 1 <= number <= _MOST_DEGREES:
            return Reading(sensor_id=sensor.id, value=float(number))
        return Reading(
            sensor_id=sensor.id,
            missing=Missing.IMPLAUSIBLE,
            detail=f"raw {number}: looks like degrees or tenths where the driver owes millidegrees",
        )
    return Reading(sensor_id=sensor.id, value=number / 1000.0)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A sensor and how to take one reading of it."""

    sensor: Sensor
    take: Callable[[], Reading]
    files: tuple[DriverFile, ...] = field(default=(), compare=False)


def file_entry(
    sensor: Sensor,
    path: Path,
    convert: Callable[[Sensor, str], Reading],
    *,
    is_the_same: Callable[[], bool] = lambda: True,
    fault: Path | None = None,
) -> Entry:
    """An entry that is one file.

    ``is_the_same``: see :class:`DriverFile`. ``fault``: the file in which the driver says whether the sensor is broken.
    """
    file = DriverFile(path, is_the_same=is_the_same)
    files = (file,) if fault is None else (file, DriverFile(fault, is_the_same=is_the_same))

    def take() -> Reading:
        try:
            text, *faults = (one.read() for one in files)
        except OSError as error:
            return failed(sensor, error, path)
        if any(number_in(one) not in (0, None) for one in faults):
            said = say("raw {text}, and the driver says that the sensor is broken ({name})",
                       text=text.strip()[:20], name=fault.name if fault else "")  # fmt: skip
            return Reading(sensor_id=sensor.id, missing=Missing.DEVICE_ERROR, detail=said)
        return convert(sensor, text)

    return Entry(sensor=sensor, take=take, files=files)


def hottest(sensor: Sensor, entries: Sequence[Entry]) -> Entry:
    """An entry that is the hottest of several: missing when one of them is, since that one may be the hottest."""

    def take() -> Reading:
        values = []
        for entry in entries:
            reading = entry.take()
            why = reading.detail if reading.value is None else implausible(entry.sensor, reading.value)
            if reading.value is None or why:
                return Reading(
                    sensor_id=sensor.id,
                    missing=reading.missing or Missing.IMPLAUSIBLE,
                    detail=f"{entry.sensor.label}: {why}",
                )
            values.append(reading.value)
        return Reading(sensor_id=sensor.id, value=max(values))

    return Entry(sensor=sensor, take=take, files=tuple(file for entry in entries for file in entry.files))


class FilesSource:
    """What all sources of drivers' files share. Subclasses say what there is; each reading fails on its own."""

    name = ""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] | None = None
        self._absent: tuple[Absent, ...] = ()

    def discover(self) -> tuple[list[Entry], list[Absent]]:
        """Everything that can be read, and what was looked for and is not offered."""
        raise NotImplementedError

    def nothing(self) -> str:
        """Why there is not one sensor, for a person."""
        raise NotImplementedError

    def probe(self) -> Availability:
        """Whether there is a sensor."""
        self._settle()
        return Availability(ok=bool(self._entries), reason="" if self._entries else self.nothing())

    def sensors(self) -> Sequence[Sensor]:
        """What there is, sorted by identity."""
        return tuple(entry.sensor for entry in self._settle())

    def absent(self) -> Sequence[Absent]:
        """What there is not."""
        self._settle()
        return self._absent

    def read(self) -> Sequence[Reading]:
        """One reading of each."""
        return [entry.take() for entry in self._settle()]

    def close(self) -> None:
        """Close the files."""
        for entry in self._entries or ():
            for file in entry.files:
                file.close()

    def _settle(self) -> tuple[Entry, ...]:
        """Take each reading once: what is not offered, not allowed or no measurement at all is no sensor."""
        if self._entries is None:
            entries, absent = self.discover()
            kept = []
            for entry in unique(entries):
                reading = entry.take()
                gone = lasting(entry.sensor, reading)
                if gone is None:
                    kept.append(entry)
                    continue
                absent.append(Absent(sensor=entry.sensor, reading=gone))
                for file in entry.files:
                    file.close()
            self._entries = tuple(sorted(kept, key=lambda entry: (natural(entry.sensor.identity), entry.sensor.id)))
            self._absent = tuple(sorted(absent, key=lambda one: natural(one.sensor.id)))
        return self._entries


def lasting(sensor: Sensor, reading: Reading) -> Reading | None:
    """The first reading of a sensor that will never have a value, to show why; None for one that can."""
    if reading.value is None:
        return reading if forbidden(reading) or reading.missing in _LASTING else None
    why = implausible(sensor, reading.value)
    if not why:
        return None
    return Reading(sensor_id=sensor.id, missing=Missing.IMPLAUSIBLE, detail=f"raw {reading.value:.12g}: {why}")


def unique(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, those of an id that is taken left out: two sensors never share a name."""
    by_id: dict[str, Entry] = {}
    for entry in entries:
        by_id.setdefault(entry.sensor.id, entry)
    return list(by_id.values())
