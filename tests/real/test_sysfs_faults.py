"""The kernel refuses reads while a recording goes on: one sensor is missing with that reason, no other has a hole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_thermal.model import Missing
from pytest_thermal.recording import read_run
from tests.real.parts.mocked_sys import MockedRun
from tests.support.patience import until

pytestmark = pytest.mark.real

HELD_UP = (
    "the reading before took longer than the period",
    "the sampler was not run in time: the machine was overloaded, or it slept",
)
"""What a busy machine leaves out, and strace when it stops the reader."""
FAULTS = {
    "class/hwmon/hwmon1/temp1_input": ("nct6798.temperature_celsius", "EIO", Missing.UNREADABLE),
    "class/hwmon/hwmon0/temp1_input": ("cpu0.package.temperature_celsius", "ENODATA", Missing.NOT_OFFERED),
    "class/thermal/thermal_zone1/temp": ("soc_dts0.temperature_celsius", "EAGAIN", Missing.UNREADABLE),
}


def words(file: Path) -> list[str]:
    return re.findall(r"[\w.]+", file.read_text())


def test_a_refused_read_is_that_sensors_alone(mocked_sys: MockedRun) -> None:
    missing = mocked_sys.run / "missing.jsonl"
    for file, (sensor, error, _) in FAULTS.items():
        with mocked_sys.refused(file, error):
            told = {sensor, error}
            until(lambda: missing.exists() and told <= set(words(missing)))  # noqa: B023 - asked at once
    mocked_sys.stop()
    recording = read_run(mocked_sys.run)
    series = recording.series
    expected = {sensor: (error, why) for sensor, error, why in FAULTS.values()}
    assert set(expected) < set(series)
    for name, one in series.items():
        gaps = [(gap.reason, gap.detail) for gap in recording.missing if gap.sensor_id == name]
        assert bool(gaps) is not bool(one.present.all())
        holes = [gap for gap in gaps if gap[1] not in HELD_UP]
        if name not in expected:
            assert not holes, name
            continue
        error, why = expected[name]
        assert {reason for reason, _ in holes} == {why}
        assert all(error in detail for _, detail in holes)
