"""Fake tools of each vendor on PATH: they print, hang, die, or are killed half-way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_thermal.model import Missing
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.source import Source
from pytest_thermal.sensors.tools import known
from pytest_thermal.sensors.tools.command import Command
from pytest_thermal.sensors.tools.tool_source import ToolSource
from tests.sensors.canned import OUTPUTS, read, values
from tests.support.patience import PATIENCE_SECONDS

PRINTED = {
    "amd-smi": "amd-smi_metric.txt",
    "rocm-smi": "rocm-smi_json.txt",
    "hy-smi": "hy-smi_json.txt",
    "mthreads-gmi": "mthreads-gmi_json.txt",
    "ixsmi": "ixsmi_table.txt",
    "mx-smi": "mx-smi_table_old.txt",
    "efsmi": "efsmi_table_1.2.txt",
    "xpu-smi": "xpu-smi_table.txt",
    "xpu-smi-intel": "xpu-smi-intel_dump.txt",
    "hl-smi": "hl-smi_query.txt",
    "brsmi": "brsmi_query.txt",
    "ipmi": "ipmitool_elist.txt",
}
SCRIPT = """#!/bin/sh
case $(cat "$0.mode") in
good) cat "$0.txt" ;;
hang) head -c 300 "$0.txt"; exec sleep 654.3 ;;
die) echo "something broke" >&2; exit 3 ;;
half) head -c "$(($(wc -c <"$0.txt") * 2 / 3))" "$0.txt"; kill -KILL $$ ;;
gone) rm "$0" ;;
esac
"""
HANGS_SECONDS = 0.3


class Fake:
    """A program that prints what a vendor's tool prints, until it is told otherwise."""

    def __init__(self, folder: Path, tool: str) -> None:
        self.tool = next(one for one in known.TOOLS if one.name == tool)
        self._path = folder / self.tool.program
        self._path.write_text(SCRIPT)
        self._path.chmod(0o755)
        # Nothing but these: the machine may have the real tool, too.
        for name in ("cat", "head", "rm", "sleep", "timeout", "wc"):
            Path(folder / name).symlink_to(f"{shutil.which(name)}")
        Path(f"{self._path}.txt").write_bytes((OUTPUTS / PRINTED[tool]).read_bytes())
        self.does("good")

    def does(self, mode: str) -> None:
        Path(f"{self._path}.mode").write_text(mode)

    def source(self, *, seconds: float = PATIENCE_SECONDS) -> Source:
        environ = {"PATH": f"{self._path.parent}"}
        command = Command(self.tool.program, environ=environ)
        ways = known.tool_ways(self.tool)
        return Checked(ToolSource(name=self.tool.name, command=command, ways=ways, deadline_seconds=seconds))


@pytest.fixture(params=sorted(PRINTED))
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Fake:
    return Fake(tmp_path, request.param)


def test_a_tool_that_fails_later_makes_readings_missing_and_never_wrong(fake: Fake) -> None:
    source = fake.source()
    right = values(source)
    assert right
    fake.does("die")
    died = read(source)
    assert {reading.missing for reading in died.values()} <= {Missing.NOT_UNDERSTOOD, Missing.UNREADABLE}
    assert all("something broke" in reading.detail for reading in died.values())
    fake.does("half")
    for sensor, reading in read(source).items():
        assert reading.value is None or reading.value == right[sensor]
        assert reading.value is not None or reading.detail
    fake.does("gone")
    read(source)
    assert {reading.missing for reading in source.read()} == {Missing.ABSENT}
    source.close()


def test_a_tool_that_hangs_is_left_after_its_deadline(fake: Fake) -> None:
    fake.does("hang")
    source = fake.source(seconds=HANGS_SECONDS)
    availability = source.probe()
    assert not availability.ok
    assert "gave no complete answer in 0.3 s" in availability.reason
    source.close()
