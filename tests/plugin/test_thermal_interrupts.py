"""However a thermal run ends: the load is gone, and what was recorded is there to be judged."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_thermal.findings import choose_earlier
from pytest_thermal.recording import read_run
from pytest_thermal.reporting.history import read_archive
from pytest_thermal.reporting.run_page.__main__ import main as run_page
from tests.plugin.plugin_runs import cases
from tests.plugin.thermal_runs import PATIENCE_SECONDS, THERMAL, Started, events

LONG = ("--baseline", "2", "--ramp", "2", "--duration", "60", "--cooldown", "60")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """A run in the middle of steady."""
    run = Started(tmp_path, THERMAL, "--demo", *LONG, "-k", "phase", "--prometheus-port", "0")
    run.wait_for("thermal: steady")
    run.until(lambda: len(run.loads()) > 3)
    rows = run.rows()
    run.until(lambda: run.rows() > rows + 4)  # it is recorded, too
    yield run
    run.close()


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        found: str = answer.read().decode()
    return found


def replayed(run: Started) -> None:
    """What is there can be judged again: the phases that were gone through pass, the one that was cut does not."""
    again = Started(run.folder / "again", THERMAL, "--replay", run.run(), "-k", "phase", "--junitxml", "again.xml")
    again.wait()
    found = cases(again.folder / "again.xml")
    assert found["test_phase[ramp]"][0] == "passed"
    assert found["test_phase[steady]"][0] == "failure"
    assert "of 60 s" in found["test_phase[steady]"][1]


@pytest.mark.parametrize(
    "number, code",
    [(signal.SIGINT, 2), (signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 128 + signal.SIGHUP)],
)
def test_a_signal_takes_the_load_off_and_leaves_a_readable_run(
    started: Started, number: signal.Signals, code: int
) -> None:
    started.signal(number)
    assert started.wait() == code
    assert started.left() == []
    assert started.facts()["state"] == "finished"
    assert started.facts()["ended_because"].startswith("interrupted")
    page = (started.run() / "report.html").read_text()
    assert "This run was cut short (interrupted" in page
    assert "SIMULATED" in page
    assert read_run(started.run()).changed == ()
    if number is signal.SIGINT:
        replayed(started)


def test_a_killed_pytest_leaves_no_load_and_a_readable_run(started: Started) -> None:
    url = re.findall(r"Prometheus: (http://127\.0\.0\.1:\d+/metrics)", started.output)[0]
    # A reading that nothing followed for some seconds is gone, until the next.
    started.until(lambda: 'sensor="gpu0.temperature_celsius"} ' in scraped(url))
    started.until(lambda: re.search(r'pytest_thermal_phase\{.*phase="steady"\} 1', scraped(url)))
    assert 'simulated="true"' in scraped(url)
    with (started.run() / "samples" / "demo.csv").open() as file:
        rows = sum(bool(row["gpu0.temperature_celsius"]) for row in csv.DictReader(file))
    started.signal(signal.SIGKILL)
    started.wait()
    with pytest.raises(urllib.error.URLError):
        scraped(url)
    assert started.left() == []
    recording = read_run(started.run())
    assert recording.state == "cut off"  # the recorder saw its parent go, and sealed what there is
    assert recording.facts["sha256"]
    assert recording.changed == ()
    series = recording.series["gpu0.temperature_celsius"]
    assert series.present.sum() >= rows, "what was there is there"
    steady = next(phase for phase in recording.phases if phase.name == "steady")
    assert recording.end_seconds is not None
    assert steady.start_seconds < recording.end_seconds
    replayed(started)
    assert not (started.run() / "report.html").exists()
    assert run_page([str(started.run())]) == 0
    assert "This run was cut short (the process that recorded is gone)" in (started.run() / "report.html").read_text()
    (told,) = read_archive(started.runs).runs
    assert (told.state, told.why_no_figures) == ("cut off", "it is not finished: cut off")
    later = {**recording.facts, "start_seconds": recording.facts["start_seconds"] + 3600}
    compared = choose_earlier(started.runs, replace(recording, path=Path("later"), facts=later), "latest")
    assert compared.why == (f"{started.run().name}: it is not finished: cut off",)


def test_a_killed_recorder_breaks_the_run_and_loses_no_reading(started: Started) -> None:
    os.kill(started.facts()["recorder"]["pid"], signal.SIGKILL)
    assert started.wait() == 1
    assert "the recorder was ended by SIGKILL" in started.output
    assert started.left() == []
    assert read_run(started.run()).state == "cut off"
    assert "This run was cut short" in (started.run() / "report.html").read_text()


def test_a_hanging_test_killed_by_a_timeout_leaves_no_load(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import time, pytest\n"
        "@pytest.mark.timeout(8, method='thread')\n"
        "def test_mine(thermal_run):\n"
        "    thermal_run.ensure('ramp')\n"
        "    time.sleep(1000)\n"
    )
    run = Started(tmp_path, tmp_path / "test_mine.py", "--demo", *LONG)
    try:
        assert run.wait() == 1
        assert "Timeout" in run.output
        assert run.left() == []
        assert read_run(run.run()).state == "cut off"
    finally:
        run.close()


def test_with_x_a_failure_ends_the_load(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "def test_mine(thermal_run):\n    thermal_run.ensure('ramp')\n    assert False\n"
        "def test_later(thermal_run):\n    thermal_run.ensure('cooldown')\n"
    )
    run = Started(tmp_path, tmp_path / "test_mine.py", "--demo", "-x", *LONG)
    try:
        assert run.wait() == 1
        assert run.left() == []
        assert [phase["name"] for phase in run.facts()["phases"]] == ["baseline", "ramp", "steady"]
    finally:
        run.close()


def test_under_xdist_the_run_stays_on_one_worker_and_shows_its_progress(tmp_path: Path) -> None:
    short = ("--baseline", "2", "--ramp", "2", "--duration", "6", "--cooldown", "2")
    run = Started(tmp_path, THERMAL, "--demo", *short, "-n", "2", "-k", "phase or rise", "--junitxml", "run.xml")
    try:
        run.wait()
        assert len(list(run.runs.glob("*/run.json"))) == 1
        found = cases(tmp_path / "run.xml")
        assert {found[f"test_phase[{name}]"][0] for name in ("baseline", "ramp", "steady", "cooldown")} == {"passed"}
        assert "thermal: steady for 6 s" in run.output
        assert run.left() == []
    finally:
        run.close()


def test_a_killed_controller_leaves_no_load(tmp_path: Path) -> None:
    run = Started(tmp_path, THERMAL, "--demo", *LONG, "-n", "1", "-k", "phase")
    try:
        run.wait_for("thermal: steady")
        run.until(lambda: len(run.loads()) > 3)
        run.signal(signal.SIGKILL)
        run.process.wait()
        run.until(lambda: not run.loads())
        assert run.left() == []
        assert read_run(run.run()).state == "cut off"
        assert "is gone" in run.facts()["ended_because"]
    finally:
        run.close()


def test_a_killed_worker_leaves_no_load(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import os, signal\n"
        "def test_mine(thermal_run):\n    thermal_run.ensure('ramp')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = Started(tmp_path, tmp_path / "test_mine.py", "--demo", *LONG, "-n", "1", "--max-worker-restart", "0")
    try:
        assert run.wait() == 1
        assert run.left() == []
        assert read_run(run.run()).state == "cut off"
    finally:
        run.close()


def test_a_load_that_is_killed_is_told_and_its_phase_fails(tmp_path: Path) -> None:
    times = ("--baseline", "2", "--ramp", "2", "--duration", "8", "--cooldown", "2")
    run = Started(tmp_path, THERMAL, "--demo", *times, "-k", "phase or load", "--junitxml", "run.xml")
    try:
        run.wait_for("thermal: steady")
        run.until(lambda: run.processes("stress-ng", "pytest_thermal.load.cpu_burner"))
        for process in run.processes("stress-ng", "pytest_thermal.load.cpu_burner"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        run.wait()
        found = cases(tmp_path / "run.xml")
        assert found["test_phase[steady]"][0] == "failure"
        assert "the cpu load" in found["test_phase[steady]"][1]
        assert "was lost" in found["test_phase[steady]"][1]
        assert found["test_load[cpu0]"][0] == "failure"
        assert [event["load"] for event in events(run.run(), "load") if event["what"] == "lost"] == ["cpu"]
    finally:
        run.close()


def test_a_second_run_is_refused_and_told_who_loads_the_machine(started: Started) -> None:
    second = Started(
        started.folder / "second",
        *(THERMAL, "--demo", *LONG, "-k", "phase", "--junitxml", "second.xml"),
        env={"PYTEST_THERMAL_LOCK_DIR": str(started.folder)},
    )
    try:
        assert second.wait() == 1
        found = cases(second.folder / "second.xml")
        assert found["test_phase[baseline]"][0] == "error"
        message = found["test_phase[baseline]"][1]
        assert message.startswith(f"this machine is being loaded by process {started.process.pid} of ")
        assert "INTERNALERROR" not in second.output
        assert "Traceback" not in second.output
        assert found["test_phase[ramp]"] == ("skipped", found["test_phase[ramp]"][1])
        assert "blocked: this machine is being loaded" in found["test_phase[ramp]"][1]
        assert not second.runs.exists()
        assert started.process.poll() is None
    finally:
        second.close()


def test_a_wrong_key_is_told_before_an_hour_is_spent(tmp_path: Path) -> None:
    run = Started(tmp_path, THERMAL, "--demo-fault", "key-wrong", *LONG, "-k", "phase", "--junitxml", "run.xml")
    try:
        assert run.wait() == 1
        outcome, message = cases(tmp_path / "run.xml")["test_phase[baseline]"]
        assert outcome == "error"
        assert message.startswith("preflight: the way in to demo is not good: key: 401")
        assert json.dumps(message).count("try:") == 1
        assert not run.runs.exists()
    finally:
        run.close()
