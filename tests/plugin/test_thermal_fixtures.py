"""Sensors, recordings and loads in tests of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.thermal_runs import Started

TESTS = """
import time

def until(condition):
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)

def test_sensors(sensors):
    readings = sensors.read()
    assert {sensor.id for sensor in sensors} == set(readings)
    assert readings["gpu0.temperature_celsius"].value > 20

def test_recorder(recorder):
    with recorder(period_seconds=0.25) as recording:
        until(lambda: len(recording.read().series.get("gpu0.temperature_celsius", ())) >= 4)
    assert len(recording.read().series["gpu0.temperature_celsius"]) >= 4

def test_cpu(load, recorder):
    burner = load.cpu(workers=1)
    assert burner.alive
    def used(recording):
        series = recording.read().series.get("cpu0.utilization_percent")
        return () if series is None else series.readings()[1]

    with recorder(period_seconds=0.25) as recording:
        until(lambda: max(used(recording), default=0) > 20)
    assert max(used(recording)) > 20

def test_inference(load):
    requests = load.inference(concurrent_requests=2)
    until(lambda: requests.status().ok >= 3)
    ended = requests.stop()
    assert ended.in_order

def test_failing(load):
    load.cpu(workers=1)
    load.accelerator()
    assert False, "on purpose"

def test_limits(limits):
    assert limits["rise_gpu_most"].origin == "default"

def test_runs(runs):
    assert len(runs) == 0
"""


def test_they_work_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS)
    run = Started(tmp_path, tmp_path / "test_mine.py", "--demo", "-q")
    try:
        assert run.wait() == pytest.ExitCode.TESTS_FAILED
        assert "1 failed, 6 passed" in run.output, run.output
        assert "on purpose" in run.output
        assert run.left() == []
    finally:
        run.close()
