"""`pytest --sensors`: what a bench can measure, without running a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import Run


def chip(sysfs: Path, name: str, **files: str) -> None:
    folder = sysfs / "class" / "hwmon" / "hwmon0"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n", encoding="utf-8")
    for file, text in files.items():
        (folder / file).write_text(f"{text}\n", encoding="utf-8")


def test_sensors_are_listed_with_a_reading_and_no_test_runs(run: Run, pytester: pytest.Pytester) -> None:
    sysfs = pytester.path / "sys"
    chip(sysfs, "nvme", temp1_input="41850", temp1_label="Composite")
    pytester.makepyfile("def test_it():\n    raise AssertionError('a test ran')\n")
    result = run("--sensors", "--sysfs", sysfs)
    assert result.ret == 0, result.stderr.str()
    result.stdout.fnmatch_lines(["thermal: sensors of this machine*", "hwmon*", "*41.8*°C*"])
    assert "a test ran" not in result.stdout.str()


def test_json_is_json_and_says_why_not(run: Run, pytester: pytest.Pytester) -> None:
    sysfs = pytester.path / "sys"
    chip(sysfs, "nvme", temp1_input="41850")
    result = run("--sensors=json", "--sysfs", sysfs)
    assert result.ret == 0
    rows = json.loads(result.stdout.str())
    assert set(rows[0]) == {"sensor", "value", "unit", "source", "device", "reason"}
    assert [row["value"] for row in rows if row["source"] == "hwmon"] == [41.85]
    missing = [row for row in rows if row["source"] == "npu-smi"]
    assert missing
    assert all(row["value"] is None and row["reason"] for row in missing)


def test_third_parties_add_sources(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        my_source="from pytest_thermal.model import Reading, Sensor, Unit\n"
        "from pytest_thermal.sensors import Availability\n"
        "class Rack:\n"
        "    name = 'rack'\n"
        "    def probe(self):\n        return Availability(ok=True, reason='')\n"
        "    def sensors(self):\n"
        "        return [Sensor(id='inlet.temperature_celsius', unit=Unit.CELSIUS, device='inlet', identity='r1',\n"
        "                       source='rack')]\n"
        "    def read(self):\n        return [Reading(sensor_id='inlet.temperature_celsius', value=23.5)]\n"
        "    def close(self):\n        pass\n"
        "def make():\n    return Rack()\n"
    )
    pytester.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(optionalhook=True)\n"
        "def pytest_thermal_sources(bench):\n"
        "    from pytest_thermal.sensors import SourceSpec\n"
        "    return [SourceSpec(name='rack', factory='my_source:make')]\n"
    )
    (pytester.path / "nothing").mkdir()
    result = run("--sensors=json", "--sysfs", pytester.path / "nothing", env={"PYTHONPATH": str(pytester.path)})
    rows = [row for row in json.loads(result.stdout.str()) if row["source"] == "rack"]
    assert [(row["sensor"], row["value"]) for row in rows] == [("inlet.temperature_celsius", 23.5)]


def test_another_form_is_a_usage_error(run: Run) -> None:
    result = run("--sensors=xml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
