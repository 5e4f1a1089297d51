"""The newest samples of a run that is being recorded, for whoever shows or watches it live."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_thermal.recording.layout import OWN, SAMPLES


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One row of one source."""

    time_seconds: float
    file: str
    values: Mapping[str, float | None]
    """By sensor id; None where the reading is missing."""


@dataclass(kw_only=True)
class _Place:
    columns: list[str] = field(default_factory=list)
    offset: int = 0


class Follower:
    """Hands out every row of a run once, as it is written. Cheap: it reads only what is new."""

    def __init__(self, run: Path) -> None:
        self._folder = run / SAMPLES
        self._places: dict[str, _Place] = {}

    def read(self) -> list[Tick]:
        """The rows that came since the last call, in the order of their times."""
        ticks: list[Tick] = []
        for path in self._folder.glob("*.csv"):
            place = self._places.setdefault(path.name, _Place())
            with path.open("rb") as file:
                file.seek(place.offset)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            place.offset += len(whole)
            for cells in csv.reader(whole.decode("utf-8", "replace").splitlines()):
                if cells and cells[0] == "time":
                    place.columns = cells
                elif len(cells) == len(place.columns) and cells:
                    ticks.append(_tick(path.name, place.columns, cells))
        return sorted(ticks, key=lambda tick: tick.time_seconds)


def _tick(file: str, columns: list[str], cells: list[str]) -> Tick:
    values = {
        name: float(cell) if cell else None
        for name, cell in zip(columns[1:], cells[1:], strict=True)
        if not name.startswith(OWN)
    }
    return Tick(time_seconds=float(cells[0]), file=file, values=values)
