"""`pytest --sensors`: what a bench can measure, without running a test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.plugin.plugin_runs import REPO, Run

MAIN = ".temperature_celsius"


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


PRINTED = {
    "nvidia-smi": "nvidia-smi_query.txt",
    "npu-smi": "npu-smi_info_910b.txt",
    "cnmon": "cnmon_table_v5.txt",
    "amd-smi": "amd-smi_metric.txt",
    "hy-smi": "hy-smi_table_hcu.txt",
    "mthreads-gmi": "mthreads-gmi_json.txt",
    "ixsmi": "ixsmi_table.txt",
    "mx-smi": "mx-smi_table.txt",
    "efsmi": "efsmi_table_1.7.txt",
    "xpu-smi": "xpu-smi_table.txt",
    "hl-smi": "hl-smi_query.txt",
    "brsmi": "brsmi_query_bare.txt",
}


def test_each_makers_cards_are_listed_beside_the_others(run: Run, pytester: pytest.Pytester) -> None:
    """One machine with the tools of every maker: no card hides another's, and each figure says whose it is."""
    folder = pytester.mkdir("tools")
    for program, output in PRINTED.items():
        tool = folder / program
        tool.write_text(f"#!/bin/sh\ncat '{REPO / 'fixtures' / 'devices' / output}'\n", encoding="utf-8")
        tool.chmod(0o755)
    (pytester.path / "nothing").mkdir()
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    result = run("--sensors=json", "--sysfs", pytester.path / "nothing", env={"PATH": path})
    rows = {row["sensor"]: row for row in json.loads(result.stdout.str()) if row["sensor"]}
    shown = {row["device"]: row["value"] for name, row in rows.items() if name == f"{row['device']}{MAIN}"}
    assert shown == {
        "gpu0": 54,
        "gpu1": 57,
        "gpu2": 31,
        "gpu3": 59,
        "npu0": 41,
        "npu1": 57,
        "npu2": 58,
        "npu5": 40,
        "mlu0": 33,
        "mlu1": 67,
        "gpu_amd0": 51,
        "gpu_amd1": 83,
        "dcu0": 56,
        "dcu1": None,
        "dcu2": 41,
        "gpu_mthreads0": 41,
        "gpu_mthreads1": 74,
        "gpu_iluvatar0": 33,
        "gpu_iluvatar1": 36,
        "gpu_iluvatar2": 67,
        "gpu_iluvatar3": 71,
        "gpu_metax0": 68,
        "gpu_metax1": None,
        "gpu_metax2": 30,
        "gcu0": 36,
        "gcu1": 33,
        "xpu0": 42,
        "xpu1": 69,
        "hpu0": 39,
        "hpu1": 71,
        "gpu_biren0": None,
        "gpu_biren1": None,
    }
    assert rows["gpu_metax1.power_watts"]["reason"] == "device error: Not Available"
    assert "Not Available" not in f"{rows['gpu_metax2.power_watts']}"
    assert rows["gpu_biren0.temperature_celsius"]["reason"].startswith("not offered: N/A (this brsmi knows no such")
    assert {row["source"] for row in rows.values()} >= set(PRINTED)
