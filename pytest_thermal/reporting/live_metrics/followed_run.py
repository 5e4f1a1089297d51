"""A run that is being recorded, followed through its files: what is true of it now."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_thermal.model import Sensor
from pytest_thermal.recording import Follower, RecordingError, RunClock, run_clock
from pytest_thermal.recording.layout import EVENTS, REQUEST_COLUMNS, REQUESTS, RUN, read_run_json
from pytest_thermal.recording.words import sensor_from_json

STALE_TICKS = 5
STALE_LEAST_SECONDS = 5.0
"""A reading that nothing followed for so long is gone: its source hangs, and no row says that it is missing."""
_CANCELLED = "cancelled"
_LEAST_COLUMNS = REQUEST_COLUMNS.index("phase") + 1
"""What a run of an older version has."""
"""How a request begins to say that it was under way when the load was taken off."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What is true now. A reading that is missing is not in it."""

    run: str = ""
    """Of its directory; empty before there is one."""
    simulated: bool = False
    recording: bool = False
    phase: str = ""
    phase_start_seconds: float = 0.0
    """Unix time."""
    planned_seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase, in their order."""
    readings: Mapping[str, float] = field(default_factory=dict)
    """By sensor id, in the sensor's unit."""
    coverage: Mapping[str, float] = field(default_factory=dict)
    """By sensor id: readings present of those due in the current phase, 0 to 1."""
    sensors: Mapping[str, Sensor] = field(default_factory=dict)
    loads: Mapping[str, bool] = field(default_factory=dict)
    """By kind: whether it runs."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """By outcome: ``ok``, ``failed``, ``cancelled``."""
    warnings: int = 0
    errors: int = 0


class FollowedRun:
    """Reads what is new in a run directory, whenever it is asked to. For one thread.

    Args:
        run: The run directory.
        monotonic: The clock by which readings grow old, in seconds.
    """

    def __init__(self, run: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._run = run
        self._monotonic = monotonic
        self._samples = Follower(run)
        self._events = _NewLines(run / EVENTS)
        self._rows = _NewLines(run / REQUESTS)
        self._facts: Mapping[str, Any] = {}
        self._facts_stamp: tuple[int, int] | None = None
        self._clock: RunClock | None = None
        self._sensors: dict[str, Sensor] = {}
        self._readings: dict[str, tuple[float, float]] = {}
        """Value, and when it was seen."""
        self._present: dict[str, int] = {}
        """Readings in the current phase."""
        self._phase, self._phase_start = "", 0.0
        self._loads: dict[str, bool] = {}
        self._requests = {"ok": 0, "failed": 0, _CANCELLED: 0}
        self._warnings = self._errors = 0

    def look(self) -> Snapshot:
        """What is true now. What cannot be read just now is as it was; it is somebody else's to tell."""
        for read in (self._look_at_facts, self._look_at_events, self._look_at_samples, self._look_at_requests):
            with contextlib.suppress(OSError, RecordingError, ValueError, TypeError, KeyError, AttributeError):
                read()
        fresh = self._fresh()
        plan = self._facts.get("plan")
        planned = plan.get("seconds") if isinstance(plan, Mapping) else None
        return Snapshot(
            run=self._run.name,
            simulated=bool(self._facts.get("simulated", False)),
            recording=self._facts.get("state") == "recording",
            phase=self._phase,
            phase_start_seconds=self._phase_start,
            planned_seconds=dict(planned) if isinstance(planned, Mapping) else {},
            readings=fresh,
            coverage=self._coverage(),
            sensors=dict(self._sensors),
            loads=dict(self._loads),
            requests=dict(self._requests),
            warnings=self._warnings,
            errors=self._errors,
        )

    # ---------------------------------------------------------------------------------------------------------------

    def _look_at_facts(self) -> None:
        told = (self._run / RUN).stat()
        stamp = told.st_mtime_ns, told.st_ino
        if stamp == self._facts_stamp:
            return
        self._facts = read_run_json(self._run)
        self._facts_stamp = stamp
        self._clock = run_clock(self._run)
        for data in self._facts.get("sensors") or ():
            with contextlib.suppress(ValueError):
                sensor = sensor_from_json(data)
                self._sensors[sensor.id] = sensor

    def _look_at_events(self) -> None:
        for line in self._events.read():
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                self._take(json.loads(line))

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, what = event["kind"], event.get("what")
        if kind == "phase":
            self._phase, self._phase_start = event["name"] or "", float(event["time"])
            self._present.clear()
        elif kind == "load" and what in ("started", "stopped", "lost"):
            self._loads[str(event["load"])] = what == "started"
            self._errors += what == "lost"
        elif kind == "warning" or (kind == "load" and "text" in event):
            self._warnings += 1
        elif kind in ("critical", "broken"):
            self._errors += 1

    def _look_at_samples(self) -> None:
        now = self._monotonic()
        for tick in self._samples.read():
            in_phase = bool(self._phase) and tick.time_seconds >= self._phase_start
            for sensor, value in tick.values.items():
                if value is None or not math.isfinite(value):
                    self._readings.pop(sensor, None)
                else:
                    self._readings[sensor] = (value, now)
                    self._present[sensor] = self._present.get(sensor, 0) + in_phase

    def _look_at_requests(self) -> None:
        for row in csv.reader(self._rows.read()):
            if not _LEAST_COLUMNS <= len(row) <= len(REQUEST_COLUMNS) or row[0] == REQUEST_COLUMNS[0]:
                continue
            told = dict(zip(REQUEST_COLUMNS, row, strict=False))
            error = told["error"]
            good = not error and told["status"].startswith("2")
            self._requests["ok" if good else _CANCELLED if error.startswith(_CANCELLED) else "failed"] += 1

    def _fresh(self) -> dict[str, float]:
        now = self._monotonic()
        return {
            sensor: value
            for sensor, (value, seen) in self._readings.items()
            if sensor in self._sensors
            and now - seen <= max(STALE_TICKS * self._period_seconds(sensor), STALE_LEAST_SECONDS)
        }

    def _coverage(self) -> dict[str, float]:
        """By the run's clock: a source that hangs writes no rows, and its readings are due all the same."""
        if not self._phase or self._clock is None or self._facts.get("state") != "recording":
            return {}
        elapsed = self._clock.now() - self._phase_start
        found = {}
        for sensor in self._sensors:
            # The newest is under way.
            due = int(elapsed / self._period_seconds(sensor)) - 1
            if due > 0:
                found[sensor] = min(self._present.get(sensor, 0) / due, 1.0)
        return found

    def _period_seconds(self, sensor: str) -> float:
        sources = self._facts.get("sources")
        told = sources.get(self._sensors[sensor].source) if isinstance(sources, Mapping) else None
        for place in (told, self._facts.get("recorder")):
            period = place.get("period_seconds") if isinstance(place, Mapping) else None
            if isinstance(period, int | float) and period > 0:
                return float(period)
        return 1.0


class _NewLines:
    """Whole lines of a file that came since the last call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.decode("utf-8", "replace").splitlines()
