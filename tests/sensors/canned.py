"""Tools that answer from memory, so that a test says what they print and what becomes of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_thermal.model import Reading
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.source import Source
from pytest_thermal.sensors.tools import known
from pytest_thermal.sensors.tools.command import Ran
from pytest_thermal.sensors.tools.loop import Loop
from pytest_thermal.sensors.tools.printed import printed
from pytest_thermal.sensors.tools.tool_source import ToolSource

OUTPUTS = Path(__file__).parents[2] / "fixtures" / "devices"
EXPECTED: dict[str, Any] = json.loads((OUTPUTS / "expected.json").read_text("utf-8"))


class Canned:
    """Answers calls with what a test put in: the same for every call, or a function of the arguments."""

    def __init__(self, out: bytes | str | Callable[[Sequence[str]], bytes | str] = b"", *, err: str = "") -> None:
        self.program = "canned"
        self.out = out
        self.err = err
        self.status = 0
        self.problem = ""
        self.hung = False
        self.calls: list[list[str]] = []
        self.followed: list[list[str]] = []

    @property
    def path(self) -> str | None:
        return "/canned"

    def run(self, arguments: Sequence[str], *, seconds: float) -> Ran:
        assert seconds > 0
        self.calls.append(list(arguments))
        data = self.out(arguments) if callable(self.out) else self.out
        return Ran(out=printed(data), err=printed(self.err), status=self.status, problem=self.problem, hung=self.hung)

    def follow(self, arguments: Sequence[str]) -> Loop | None:
        self.followed.append(list(arguments))
        return None

    def end_loop(self) -> None:
        pass

    def close(self) -> None:
        pass


def user_command(canned: Canned, command: str) -> Source:
    """A user's command that prints what is canned."""
    return Checked(ToolSource(name="gpu_temp_cmd", command=canned, ways=known.command_ways(shlex.split(command))))


def own_tool(canned: Canned, name: str) -> Source:
    """The source of a known tool, which prints what is canned."""
    tool = {one.name: one for one in known.TOOLS}[name]
    return Checked(ToolSource(name=name, command=canned, ways=known.tool_ways(tool)))


def read(source: Source) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


def values(source: Source) -> dict[str, float]:
    return {name: reading.value for name, reading in read(source).items() if reading.value is not None}


def files(*, with_readings: bool) -> list[str]:
    return sorted(name for name, entry in EXPECTED.items() if ("readings" in entry) == with_readings)


def canned_file(name: str) -> Canned:
    canned = Canned((OUTPUTS / name).read_bytes(), err=EXPECTED[name].get("stderr", ""))
    canned.status = EXPECTED[name].get("status", 0)
    return canned
