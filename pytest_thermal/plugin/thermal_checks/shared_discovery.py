"""The sensors that thermal tests are made for: looked for once a run, also where xdist's workers all collect."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin.keys import SENSORS
from pytest_thermal.plugin.sources import bench_sources

if TYPE_CHECKING:
    from pytest_thermal.model.readings import Sensor

_FILE = "sensors.found"
"""Not `.json`: those are the ids that workers leave."""


def discovered(config: pytest.Config) -> Sequence[Sensor]:
    """Every sensor of the bench, sorted by id.

    Raises:
        pytest.UsageError: two sources have one name, or one cannot be made.
    """
    found = config.stash.get(SENSORS, None)
    if found is None:
        folder = getattr(config, "workerinput", {}).get("thermal_folder")
        # A worker on another machine has no such folder, and other sensors too.
        place = Path(folder) if folder else None
        shared = place is not None and place.is_dir()
        found = config.stash[SENSORS] = _once(config, place) if shared and place else _discover(config)
    return found


def _discover(config: pytest.Config) -> tuple[Sensor, ...]:
    from pytest_thermal.sensors import SpecError, discover

    try:
        sensors = discover(bench_sources(config)).sensors
    except SpecError as error:
        raise pytest.UsageError(*error.args) from None
    return tuple(sorted(sensors, key=lambda sensor: sensor.id))


def _once(config: pytest.Config, folder: Path) -> tuple[Sensor, ...]:
    """All workers must collect the same tests: the first one looks, the others take what it found."""
    from pytest_thermal.recording.words import sensor_from_json, sensor_to_json

    descriptor = os.open(folder / _FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = file.read()
        if text:
            return tuple(sensor_from_json(data) for data in json.loads(text))
        sensors = _discover(config)
        json.dump([sensor_to_json(sensor) for sensor in sensors], file)
        file.flush()
        return sensors
