"""The samples of one source: its CSV segments, and why cells of them are empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_thermal.model import Missing, Sensor
from pytest_thermal.recording.append_file import AppendFile
from pytest_thermal.recording.layout import OWN, SAMPLES, json_line, sample_file


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One CSV file of a source: it ends where the set of sensors changes."""

    file: str
    """Its path within the run."""
    sensors: tuple[Sensor, ...]


def own_columns(source: str) -> tuple[str, str]:
    """Columns that say how the sampling went, both in milliseconds: how late a reading began, how long it took."""
    return f"{OWN}{source}.lateness_milliseconds", f"{OWN}{source}.read_milliseconds"


class SampleWriter:
    """Writes one row per tick of one source, and a line to ``missing.jsonl`` where a sensor's value goes missing.

    Such a line holds for the sensor's empty cells from its time on, until a value comes or another line follows: a
    card that is dead for a day is one line, not 86,400.
    """

    def __init__(self, folder: Path, source: str, missing: AppendFile) -> None:
        self.source = source
        self.segments: list[Segment] = []
        self._folder = folder
        self._missing = missing
        self._file: AppendFile | None = None
        self._lost = 0
        self._number = 0
        self._reasons: dict[str, tuple[Missing, str]] = {}
        self._last_seconds = float("-inf")

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """The columns as they are now."""
        return self.segments[-1].sensors if self.segments else ()

    @property
    def file(self) -> AppendFile | None:
        """The segment that is being written."""
        return self._file

    @property
    def lost(self) -> int:
        """Rows given up because the disk did not take them for too long."""
        return self._lost + (self._file.lost if self._file else 0)

    def begin(self, sensors: Sequence[Sensor]) -> bool:
        """Set the columns; where they differ from those so far a new segment begins, and it says so."""
        if self.segments and [sensor.id for sensor in sensors] == [sensor.id for sensor in self.sensors]:
            self.segments[-1] = Segment(file=self.segments[-1].file, sensors=tuple(sensors))
            return False
        self.close()
        path = self._free_path()
        self._file = AppendFile(path)
        self.segments.append(Segment(file=f"{SAMPLES}/{path.name}", sensors=tuple(sensors)))
        names = ["time", *(sensor.id for sensor in sensors), *own_columns(self.source)]
        self._file.append(",".join(map(_name_cell, names)).encode("utf-8", "replace") + b"\n")
        return True

    def row(
        self,
        time_seconds: float,
        values: Sequence[float | None],
        reasons: Mapping[int, tuple[Missing, str]],
        *,
        lateness_seconds: float,
        read_seconds: float,
    ) -> None:
        """Write one tick; ``reasons`` has an entry for each position without a value."""
        self._explain(time_seconds, values, reasons)
        own = (f"{lateness_seconds * 1000:.3f}", f"{read_seconds * 1000:.3f}")
        self._write(time_seconds, [*map(cell, values), *own])

    def gap(self, times_seconds: Sequence[float], reason: Missing, detail: str) -> None:
        """Write ticks at which the source gave nothing at all."""
        if times_seconds and self.sensors:
            nothing = [None] * len(self.sensors)
            self._explain(times_seconds[0], nothing, dict.fromkeys(range(len(nothing)), (reason, detail)))
            for time_seconds in times_seconds:
                self._write(time_seconds, [""] * (len(nothing) + 2))

    def flush(self) -> None:
        """Try again to write what waits."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Finish the segment."""
        if self._file is not None:
            self._file.close()
            self._lost += self._file.lost + self._file.waiting
            self._file = None

    def _write(self, time_seconds: float, cells: Sequence[str]) -> None:
        if self._file is not None and time_seconds > self._last_seconds:
            self._last_seconds = time_seconds
            self._file.append(f"{time_seconds:.3f},{','.join(cells)}\n".encode())

    def _explain(
        self, time_seconds: float, values: Sequence[float | None], reasons: Mapping[int, tuple[Missing, str]]
    ) -> None:
        lines = bytearray()
        for index, (sensor, value) in enumerate(zip(self.sensors, values, strict=True)):
            if value is not None:
                self._reasons.pop(sensor.id, None)
                continue
            why = reasons[index]
            if self._reasons.get(sensor.id) != why:
                self._reasons[sensor.id] = why
                time_text = round(time_seconds, 3)
                lines += json_line({"time": time_text, "sensor": sensor.id, "reason": why[0].value, "detail": why[1]})
        if lines:
            self._missing.append(bytes(lines))

    def _free_path(self) -> Path:
        while True:
            self._number += 1
            path = self._folder / SAMPLES / sample_file(self.source, self._number)
            if not path.exists():
                return path


def cell(value: float | None) -> str:
    """A value as it stands in a CSV: four decimals at most, six digits where it is smaller than that shows."""
    if value is None:
        return ""
    if value and abs(value) < 0.1:
        return f"{value:.6g}"
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _name_cell(name: str) -> str:
    if any(sign in name for sign in ',"\r\n'):
        return '"' + name.replace('"', '""').replace("\r", " ").replace("\n", " ") + '"'
    return name
