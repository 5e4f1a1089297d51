"""Each recorded output gives the readings that it holds, or says what it is instead."""

from __future__ import annotations

import pytest

from pytest_thermal.sensors import TellsAbsent
from tests.sensors.canned import EXPECTED, canned_file, files, own_tool, read, user_command


@pytest.mark.parametrize("name", files(with_readings=True))
def test_an_output_gives_what_it_holds(name: str) -> None:
    source = user_command(canned_file(name), EXPECTED[name]["command"])
    assert source.probe().ok
    readings = read(source)
    assert isinstance(source, TellsAbsent)
    readings.update({one.sensor.id: one.reading for one in source.absent()})
    found = {
        sensor: reading.value if reading.value is not None else {"missing": str(reading.missing)}
        for sensor, reading in readings.items()
    }
    assert found == {
        sensor: pytest.approx(value) if isinstance(value, (int, float)) else value
        for sensor, value in EXPECTED[name]["readings"].items()
    }


@pytest.mark.parametrize("name", [name for name in files(with_readings=True) if "limits" in EXPECTED[name]])
def test_an_output_gives_the_devices_own_limits(name: str) -> None:
    source = user_command(canned_file(name), EXPECTED[name]["command"])
    limits = {sensor.id: dict(sensor.limits) for sensor in source.sensors()}
    for sensor, expected in EXPECTED[name]["limits"].items():
        assert limits[sensor] == expected


@pytest.mark.parametrize("name", files(with_readings=False))
def test_an_output_without_readings_says_why(name: str) -> None:
    canned = canned_file(name)
    source = user_command(canned, EXPECTED[name]["command"])
    availability = source.probe()
    assert not availability.ok
    assert source.sensors() == ()
    said = (canned.out.decode() if isinstance(canned.out, bytes) else "") + canned.err
    assert any(word in availability.reason for word in said.split() if len(word) > 2)


@pytest.mark.parametrize(
    "tool, good, name",
    [
        (name.partition("_")[0], good, name)
        for name in files(with_readings=False)
        for tool, good in (
            ("nvidia-smi", "nvidia-smi_query.txt"),
            ("npu-smi", "npu-smi_info_910b.txt"),
            ("cnmon", "cnmon_info.txt"),
            ("amd-smi", "amd-smi_metric.txt"),
            ("rocm-smi", "rocm-smi_json.txt"),
        )
        if name.startswith(f"{tool}_error") and "handle" not in name
    ],
)
def test_a_tool_that_fails_later_makes_every_reading_missing(tool: str, good: str, name: str) -> None:
    canned = canned_file(good)
    source = own_tool(canned, tool)
    assert source.probe().ok
    failed = canned_file(name)
    canned.out, canned.err, canned.status = failed.out, failed.err, failed.status
    readings = read(source)
    assert len(readings) > 10
    assert {str(reading.missing) for reading in readings.values()} == {EXPECTED[name]["problem"]}
    assert all(reading.detail for reading in readings.values())
