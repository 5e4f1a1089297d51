"""A tool that goes on by itself is asked by one process; whatever that does, no reading is older than it may be."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.model import Reading
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.tools import command, nvidia_smi
from pytest_thermal.sensors.tools.asking import Way
from pytest_thermal.sensors.tools.command import Command
from pytest_thermal.sensors.tools.loop import Loop, LoopBrokenError
from pytest_thermal.sensors.tools.tool_source import ToolSource
from tests.support.patience import PATIENCE_SECONDS, until

HEADER = "index, temperature.gpu\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Tool:
    """A loop whose other end a test writes to."""

    def __init__(self) -> None:
        self.clock = Clock()
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.process = process
        self.loop = Loop(process, period_seconds=1.0, clock=self.clock)

    def prints(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        until(lambda: self._waiting() == len(text.encode()))  # cat has handed it on

    def _waiting(self) -> int:
        """Bytes that can be read."""
        assert self.process.stdout is not None
        (count,) = struct.unpack("i", fcntl.ioctl(self.process.stdout, termios.FIONREAD, b"\0" * 4))
        return int(count)

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.loop.close()
        until(lambda: self.process.poll() is not None)


@pytest.fixture
def tool() -> Iterator[Tool]:
    made = Tool()
    yield made
    made.close()


def test_the_last_whole_round_counts_once(tool: Tool) -> None:
    assert tool.loop.newest(2) is None
    tool.prints(HEADER + "0, 40\n1, 50\n0, 41\n1, 51\n0, 42\n")
    assert tool.loop.newest(2) == b"index, temperature.gpu\n0, 41\n1, 51\n"
    assert tool.loop.newest(2) is None
    tool.prints("1, 52\n0, 4")
    assert tool.loop.newest(2) == b"index, temperature.gpu\n0, 42\n1, 52\n"


def test_one_that_stands_still_is_broken_and_nothing_old_is_told(tool: Tool) -> None:
    tool.clock.now = 29.0
    assert tool.loop.newest(1) is None  # the driver may have to wake up
    tool.prints(HEADER + "0, 40\n")
    assert tool.loop.newest(1) is not None
    tool.clock.now = 31.5
    assert tool.loop.newest(1) is None
    tool.clock.now = 33.0
    with pytest.raises(LoopBrokenError, match="printed nothing for 4 s"):
        tool.loop.newest(1)


def test_other_words_than_rows_break_it(tool: Tool) -> None:
    tool.prints(HEADER + "0, 40\nUnable to determine the device handle for GPU1: GPU is lost\n")
    with pytest.raises(LoopBrokenError, match="GPU is lost"):
        tool.loop.newest(1)


# ------------------------------------------------------------------------------------------- as a source of readings

SMI = """
import sys, time
from pathlib import Path
folder = Path(__file__).parent
loops = [one for one in sys.argv if one.startswith("--loop-ms=")]
with (folder / "calls").open("a") as file:
    file.write("loop\\n" if loops else "call\\n")
names = next(one for one in sys.argv if one.startswith("--query-gpu=")).partition("=")[2].split(",")
def told():
    known = {"temperature.gpu": (folder / "celsius").read_text().strip(), "uuid": "GPU-aaaaaaaa-%d", "index": "%d"}
    for card in range(2):
        print(", ".join(known.get(name, "[N/A]").replace("%d", str(card)) for name in names))
print(", ".join(names))
told()
sys.stdout.flush()
while loops:
    time.sleep(0.05)
    if (folder / "ends").exists():
        sys.exit(9)
    told()
    sys.stdout.flush()
"""


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.celsius(50)
        program = folder / "nvidia-smi"
        program.write_text(f"#!{sys.executable}\n{textwrap.dedent(SMI)}")
        program.chmod(0o755)
        self.command = Command(f"{program}", environ=os.environ)
        ways = [Way(tool=nvidia_smi.TOOL, query=nvidia_smi.TOOL.queries[0])]
        self.source = Checked(
            ToolSource(name="nvidia-smi", command=self.command, ways=ways, deadline_seconds=PATIENCE_SECONDS)
        )

    def celsius(self, value: float) -> None:
        (self.folder / "celsius.new").write_text(f"{value}")
        (self.folder / "celsius.new").replace(self.folder / "celsius")

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().split()

    def read(self) -> list[Reading]:
        return list(self.source.read())


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    assert made.source.probe().ok
    yield made
    made.source.close()


def test_one_process_serves_all_readings_until_it_is_closed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    # One that stands still for a moment is none that hangs.
    monkeypatch.setattr(command, "LOOP_SECONDS", PATIENCE_SECONDS)
    machine.read()
    assert "loop" not in machine.calls()  # a list of sensors reads once

    def new_without_a_call() -> bool:
        before = machine.calls()
        machine.celsius(30.0 + len(before))
        time.sleep(0.3)
        return [one.value for one in machine.read()] == [30.0 + len(before)] * 2 and machine.calls() == before

    until(new_without_a_call)
    assert machine.calls().count("loop") == 1
    loop = machine.command._loop
    assert loop is not None
    machine.source.close()
    until(lambda: loop.process.poll() is not None)
    assert loop.process.returncode == -9


def test_one_that_ends_is_called_and_begun_again_and_given_up_at_last(machine: Machine) -> None:
    (machine.folder / "ends").touch()

    def begun_again_and_again() -> bool:
        assert [reading.value for reading in machine.read()] == [50.0, 50.0]
        time.sleep(0.1)
        return machine.calls().count("loop") >= 3

    until(begun_again_and_again)
    before = len(machine.calls())
    for _ in range(6):
        assert [reading.value for reading in machine.read()] == [50.0, 50.0]
        time.sleep(0.2)
    assert "loop" not in machine.calls()[before:]
