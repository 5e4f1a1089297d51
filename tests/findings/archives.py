"""Run directories on disk, written from recordings made up in memory."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_thermal.recording import Recording
from pytest_thermal.recording.words import sensor_to_json
from tests.analysis.signals import EPOCH


def moved(recording: Recording, seconds: float) -> Recording:
    """The same recording, made so much later."""
    asked = recording.requests
    return replace(
        recording,
        series={name: replace(one, time_seconds=one.time_seconds + seconds) for name, one in recording.series.items()},
        phases=tuple(
            replace(one, start_seconds=one.start_seconds + seconds, end_seconds=one.end_seconds + seconds)
            for one in recording.phases
        ),
        requests=None if asked is None else replace(asked, start_seconds=asked.start_seconds + seconds),
    )


def write_run(archive: Path, recording: Recording, *, days_ago: float = 0.0, host: str = "lab-7", **facts: Any) -> Path:
    """A run that began so many days before the recordings' time; its samples' times are the recording's."""
    start = EPOCH - days_ago * 86_400
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(start))}_{host}"
    run = archive / name
    (run / "samples").mkdir(parents=True)
    series = list(recording.series.values())
    rows = [",".join(["time", *(one.sensor.id for one in series)])]
    table = np.column_stack([series[0].time_seconds, *(one.values for one in series)])
    rows += [",".join("" if math.isnan(cell) else f"{cell:.3f}" for cell in row) for row in table.tolist()]
    (run / "samples" / "invented.csv").write_text("\n".join(rows) + "\n")
    told = {
        "format": 1,
        **recording.facts,
        "name": name,
        "start_seconds": start,
        "sources": {"invented": {"period_seconds": series[0].period_seconds}},
        "sensors": [sensor_to_json(one.sensor) for one in series],
        "phases": [
            {"name": phase.name, "start_seconds": phase.start_seconds, "end_seconds": phase.end_seconds}
            for phase in recording.phases
        ],
        **facts,
    }
    (run / "run.json").write_text(json.dumps(told))
    return run
