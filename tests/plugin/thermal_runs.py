"""Thermal runs of the demo bench in a process of their own, and what they leave behind."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.plugin.plugin_runs import AS_INSTALLED, REPO

THERMAL = REPO / "suites" / "thermal"
HELD_UP = re.compile(r"inconclusive: .*(?:\bholes\b|\d readings are there|no reading for )")
"""How a finding begins that is left open, since this machine stood still while it was to read."""
SHORT = ("--baseline", "4", "--ramp", "5", "--duration", "12", "--cooldown", "6")
"""Enough to be recorded and judged, not enough to have settled."""
PATIENCE_SECONDS = 100.0
"""When a test gives up waiting: no limit of the product."""
_MARK = "PYTEST_THERMAL_TEST"


class Ran:
    """What a pytest left behind in its folder, and what of it is there still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self._output = folder / "output.txt"

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")

    @property
    def own_process(self) -> int | None:
        """Of the pytest itself, while it may still be there."""
        return None

    def left(self) -> list[str]:
        """Command lines of the processes that it brought about and that do not go, but for itself.

        What was killed needs a moment of the processor to be gone, and what it guarded another.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (there := list(self._processes().values())) and time.monotonic() < deadline:
            time.sleep(0.02)
        return there

    def processes(self, *names: str) -> list[int]:
        """Those of them that run one of these programs, not those that guard them."""
        words = {pid: line.split(" -- ")[0] for pid, line in self._processes().items()}
        return [pid for pid, line in words.items() if "guard" not in line and any(name in line for name in names)]

    def loads(self) -> list[str]:
        """Those of them that load the machine."""
        there = self._processes().values()
        return [line for line in there if "stress-ng" in line or "pytest_thermal.load" in line]

    def run(self) -> Path:
        """Its one run directory."""
        (found,) = (path for path in self.runs.iterdir() if path.is_dir())
        return found

    def rows(self) -> int:
        """Ticks recorded so far."""
        return (self.run() / "samples" / "demo.csv").read_bytes().count(b"\n")

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.run() / "run.json").read_text())
        return facts

    def _processes(self) -> dict[int, str]:
        mark = f"{_MARK}={(self.folder / 'mark').read_text()}".encode()
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != self.own_process:
                with contextlib.suppress(OSError):
                    if mark in (folder / "environ").read_bytes():
                        line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                        if line:  # a process that is gone and not waited for has none
                            found[int(folder.name)] = line
        return found


class Started(Ran):
    """A pytest under way, and every process that it brought about."""

    def __init__(self, folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        mark = uuid.uuid4().hex
        (folder / "mark").write_text(mark)
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("THERMAL_", "PYTEST_", "COV_")) and not name.lower().endswith("_proxy")
        }
        clean |= {"COLUMNS": "80", "CI": "1", _MARK: mark, "PYTEST_THERMAL_LOCK_DIR": str(folder)}
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest", *AS_INSTALLED, "--runs", str(self.runs)),
                    *(f"--rootdir={REPO}", "-c", str(REPO / "pyproject.toml")),
                    *map(str, arguments),
                ],
                cwd=folder,
                env={**clean, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_listen_to_signals,  # noqa: PLW1509 - one thread, and signals may be ignored by our starter
            )

    @property
    def own_process(self) -> int | None:
        return self.process.pid

    def wait(self) -> int:
        """Until it has ended; its exit code."""
        return self.process.wait(PATIENCE_SECONDS)

    def wait_for(self, text: str) -> None:
        """Until it has said something."""
        self.until(lambda: text in self.output or self.process.poll() is not None)
        assert text in self.output, self.output

    def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain\n{self.output}"
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        """Leave nothing behind, whatever the test found."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def held_up(run: Path) -> bool:
    """Whether a reading of the run is lacking. Nothing of a test decides that: a busy machine does, and may.

    By what lies in the files alone: a phase has a row for each of its ticks, and each row a reading.
    """
    facts = json.loads((run / "run.json").read_text())
    period_seconds = facts["plan"]["period_seconds"]
    with (run / "samples" / "demo.csv").open() as file:
        rows = list(csv.DictReader(file))
    times = [float(row["time"]) for row in rows if row["gpu0.temperature_celsius"]]
    return any(
        sum(phase["start_seconds"] <= time < phase["end_seconds"] for time in times)
        < round((phase["end_seconds"] - phase["start_seconds"]) / period_seconds)
        for phase in facts["phases"]
    )


def as_measured(run: Path, case: tuple[str, str]) -> str:
    """A case's outcome; ``passed``, too, where it was left open for readings that this machine did not get to.

    What was not measured never passes, on no machine: so no live run's finding is sure to.
    """
    outcome, message = case
    return "passed" if outcome == "failure" and HELD_UP.match(message) and held_up(run) else outcome


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "events.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["kind"] == kind]


def phases(facts: Mapping[str, Any]) -> Sequence[str]:
    return [phase["name"] for phase in facts["phases"]]


def _listen_to_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):  # nohup hands on that they are ignored
        signal.signal(number, signal.SIG_DFL)
