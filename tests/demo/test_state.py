"""What runs on the simulated machine, from invented process trees and from real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.demo import DemoError, DemoGateway, state
from pytest_thermal.demo.state import (
    ACCELERATOR_MODULE,
    FOLDER_VARIABLE,
    Burning,
    EngineGauge,
    Engines,
    Processes,
    Served,
    make_folder,
)
from tests.demo.conftest import Bed, MakeBed
from tests.support.patience import PATIENCE_SECONDS, until

# ------------------------------------------------------------------------------------------------ invented processes


class Proc:
    """A /proc of processes as they are described."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self._folder = folder
        self.processes = Processes(folder, proc=root)

    def add(
        self,
        pid: int,
        arguments: str,
        *,
        comm: str = "python3",
        state: str = "R",
        parent: int = 1,
        ours: bool = True,
        started: int = 100,
    ) -> None:
        home = self.root / str(pid)
        home.mkdir(exist_ok=True)
        (home / "stat").write_text(f"{pid} ({comm}) {state} {parent} " + "0 " * 17 + f"{started} 0 0\n")
        (home / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in arguments.split()))
        variables = [b"HOME=/root", f"{FOLDER_VARIABLE}={self._folder}".encode() if ours else b"A=b"]
        (home / "environ").write_bytes(b"\0".join(variables) + b"\0")

    def look(self) -> Burning:
        return self.processes.look()


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    root = tmp_path / "proc"
    root.mkdir()
    (root / "meminfo").write_text("no process")
    return Proc(root, tmp_path / "machine")


@pytest.mark.parametrize(
    "arguments",
    [
        "python3 -P -m pytest_thermal.load.cpu_burner --workers 2",
        "python3 -X dev -W error -m pytest_thermal.load.torch_burner --device cpu",
    ],
)
@pytest.mark.parametrize("state, counted", [("R", 1), ("D", 1), ("S", 0), ("T", 0), ("Z", 0)])
def test_a_burner_counts_while_it_wants_a_core(proc: Proc, arguments: str, state: str, counted: int) -> None:
    proc.add(7, arguments, state=state)
    assert proc.look() == Burning(burners=counted)


@pytest.mark.parametrize(
    "arguments",
    [
        "python3 -I -S /x/load/guard.py --limit 60 -- python3 -m pytest_thermal.load.cpu_burner",
        "python3 -m pytest_thermal.load.guard -- python3 -m pytest_thermal.demo.accelerator --card 0",
        "python3 -m pytest -m pytest_thermal.load.cpu_burner",
        "python3 -c -m pytest_thermal.load.cpu_burner",
        "vim pytest_thermal.load.cpu_burner",
        "python3 -m pytest_thermal.load.inference",
        "python3 -m",
        "",
    ],
)
def test_whoever_merely_names_a_burner_is_none(proc: Proc, arguments: str) -> None:
    proc.add(7, arguments)
    assert proc.look() == Burning()


def test_a_burner_of_another_machine_is_not_ours(proc: Proc) -> None:
    proc.add(7, "python3 -m pytest_thermal.load.cpu_burner", ours=False)
    assert proc.look() == Burning()


def test_a_worker_that_wrote_over_its_environment_is_known_by_its_ancestors(proc: Proc) -> None:
    proc.add(5, "stress-ng --cpu 2", comm="stress-ng", state="S")
    for pid, parent in ((6, 5), (7, 6)):
        proc.add(pid, "stress-ng-cpu [run]", comm="stress-ng-cpu", parent=parent, ours=False)
    proc.add(8, "stress-ng-cpu [run]", comm="stress-ng-cpu", parent=1, ours=False)
    assert proc.look() == Burning(burners=2)


def test_ancestors_in_a_circle_are_no_end(proc: Proc) -> None:
    proc.add(5, "", comm="stress-ng", parent=6, ours=False)
    proc.add(6, "", comm="stress-ng", parent=5, ours=False)
    assert proc.look() == Burning()


@pytest.mark.parametrize("comm", ["a b", "x) R 1 (y", "(((", "stress ) ng"])
def test_a_name_may_hold_anything(proc: Proc, comm: str) -> None:
    proc.add(7, "python3 -m pytest_thermal.load.cpu_burner", comm=comm)
    assert proc.look() == Burning(burners=1)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ("--card 1", Burning(cards=frozenset({1}))),
        ("--limit 9 --card=0", Burning(cards=frozenset({0}))),
        ("--limit 9", Burning(every_card=True)),
        ("--card", Burning(every_card=True)),
    ],
)
@pytest.mark.parametrize("state", ["R", "S", "D"])
def test_a_load_of_a_card_counts_while_it_lives(proc: Proc, arguments: str, expected: Burning, state: str) -> None:
    proc.add(7, f"python3 -P -m {ACCELERATOR_MODULE} {arguments}", state=state)
    assert proc.look() == expected
    proc.add(7, f"python3 -P -m {ACCELERATOR_MODULE} {arguments}", state="Z")
    assert proc.look() == Burning()


def test_a_number_that_was_given_to_another_process_is_that_ones(proc: Proc) -> None:
    proc.add(7, "python3 -m pytest_thermal.load.cpu_burner")
    assert proc.look().burners == 1
    proc.add(7, "python3 -m http.server", started=200)
    assert proc.look().burners == 0


def test_a_young_process_may_become_a_burner(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_YOUNG_SECONDS", 3600.0)
    now = round(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    proc.add(7, "python3 /x/guard.py", started=now)
    assert proc.look().burners == 0
    proc.add(7, "python3 -m pytest_thermal.load.cpu_burner", started=now)
    assert proc.look().burners == 1


@pytest.mark.parametrize("stat", ["", "7 (python3", "7 (python3) R 1"])
def test_a_process_that_ends_meanwhile_is_none(proc: Proc, stat: str) -> None:
    proc.add(7, "python3 -m pytest_thermal.load.cpu_burner")
    (proc.root / "7" / "stat").write_text(stat)
    assert proc.look() == Burning()


def test_without_proc_nothing_runs(tmp_path: Path) -> None:
    assert Processes(tmp_path, proc=tmp_path / "none").look() == Burning()


# ---------------------------------------------------------------------------------------------------- real processes


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = make_folder()
    yield folder
    folder.rmdir()


def start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env={**os.environ, FOLDER_VARIABLE: str(folder)}, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )


def burning_becomes(processes: Processes, expected: Burning) -> bool:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while processes.look() != expected:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def test_a_folder_is_its_owners_only(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_killed_load_is_gone_at_once(folder: Path) -> None:
    processes, other = Processes(folder), Processes(folder / "other")
    with start(folder, sys.executable, "-P", "-m", ACCELERATOR_MODULE, "--card", "1") as load:
        try:
            assert burning_becomes(processes, Burning(cards=frozenset({1})))
            assert other.look() == Burning()
            load.send_signal(signal.SIGSTOP)
            assert burning_becomes(processes, Burning())
            load.send_signal(signal.SIGCONT)
            assert burning_becomes(processes, Burning(cards=frozenset({1})))
        finally:
            load.kill()
        load.wait()
        assert processes.look() == Burning()


def test_a_real_burner_burns(folder: Path, tmp_path: Path) -> None:
    burner = tmp_path / "stress-ng-like"
    burner.symlink_to(Path("/bin/sh").resolve())
    processes = Processes(folder)
    with start(folder, str(burner), "-c", "while :; do :; done") as load:
        try:
            assert burning_becomes(processes, Burning(burners=1))
        finally:
            load.kill()
        load.wait()
        assert processes.look() == Burning()


# ------------------------------------------------------------------------------------------------- what engines tell


def test_answers_are_counted_while_they_are_made(tmp_path: Path) -> None:
    gauge, engines = EngineGauge(tmp_path), Engines(tmp_path)
    assert engines.look() == Served()
    with gauge.answering(), gauge.answering():
        assert Engines(tmp_path).look().in_flight == 2.0
        gauge.token()
    seen = engines.look()
    assert 0.0 < seen.in_flight <= 2.0
    assert seen.tokens == 1
    assert engines.look() == Served()
    gauge.close()
    gauge.close()
    assert list(tmp_path.iterdir()) == []
    with gauge.answering():
        gauge.token()


def test_the_mean_is_over_the_time_between_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("pytest_thermal.demo.state.time.monotonic", lambda: now)
    gauge, engines = EngineGauge(tmp_path), Engines(tmp_path)
    engines.look()
    with gauge.answering():
        now += 1.0
        with gauge.answering():
            now += 1.0
    now += 2.0
    assert engines.look().in_flight == pytest.approx((1 + 2 + 0 + 0) / 4)
    with gauge.answering():
        now += 1.0
        assert engines.look().in_flight == pytest.approx(1.0)
        assert engines.look().in_flight == 1.0  # no time has passed: what is in the making now
    gauge.close()


def test_several_gateways_add_up(tmp_path: Path) -> None:
    gauges = [EngineGauge(tmp_path) for _ in range(3)]
    with gauges[0].answering(), gauges[2].answering():
        assert Engines(tmp_path).look().in_flight == 2.0
    for gauge in gauges:
        gauge.close()


def test_a_gateway_that_was_killed_answers_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib\n"
        "from pytest_thermal.demo.state import EngineGauge\n"
        "with EngineGauge(pathlib.Path(sys.argv[1])).answering():\n"
        "    print('answering', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout
        assert child.stdout.readline() == b"answering\n"
        engines = Engines(tmp_path)
        assert engines.look().in_flight == 1.0
        child.kill()
        child.wait()
        assert len(list(tmp_path.iterdir())) == 1
        assert engines.look() == Served()


def test_what_is_read_half_written_is_not_believed(tmp_path: Path) -> None:
    gauge = EngineGauge(tmp_path)
    path = next(tmp_path.iterdir())
    with gauge.answering():
        whole = path.read_bytes()
        path.write_bytes(struct.pack("<Q", 99) + whole[8:])
        assert Engines(tmp_path).look() == Served()
        path.write_bytes(whole[:20])
        assert Engines(tmp_path).look() == Served()
        path.write_bytes(whole)
        assert Engines(tmp_path).look().in_flight == 1.0
        os.truncate(path, len(whole))
    gauge.close()


# --------------------------------------------------------------------------------------------------- the gateway's


class Paced:
    """asyncio for the gateway, in which no time passes until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio, name)

    async def sleep(self, _: float) -> None:
        while True:
            await asyncio.sleep(0.01)
            if self.may.is_set():
                return


def test_the_gateway_tells_what_it_generates(
    make_bed: MakeBed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Paced()
    monkeypatch.setattr("pytest_thermal.demo.gateway.asyncio", pace)
    bed = make_bed(state_folder=tmp_path)
    engines = Engines(tmp_path)
    assert engines.look() == Served()
    with threads(bed, 3):
        try:
            until(lambda: Engines(tmp_path).look().in_flight == 3.0)
        finally:
            pace.may.set()
    seen = engines.look()
    assert seen.tokens == bed.gateway.output_tokens_served == 3 * 20
    assert 0.0 < seen.in_flight <= 3.0
    assert engines.look() == Served()
    bed.gateway.stop()
    assert list(tmp_path.iterdir()) == []


class threads:  # noqa: N801 - reads as what it is, a context
    """So many chats at a time, done at the end."""

    def __init__(self, bed: Bed, count: int) -> None:
        self._threads = [threading.Thread(target=lambda: bed.chat(max_tokens=20)) for _ in range(count)]

    def __enter__(self) -> None:
        for one in self._threads:
            one.start()

    def __exit__(self, *_: object) -> None:
        for one in self._threads:
            one.join()


@pytest.mark.parametrize("fault", ["chat-hang", "engine-dead", "bad-gateway"])
def test_a_gateway_that_generates_nothing_heats_nothing(make_bed: MakeBed, tmp_path: Path, fault: str) -> None:
    bed = make_bed(fault, state_folder=tmp_path)
    if fault == "chat-hang":
        with pytest.raises(Exception, match="timed out"):
            bed.impatient().chat()
    else:
        bed.chat()
    seen = Engines(tmp_path).look()
    assert seen == Served()


def test_a_client_that_goes_away_leaves_nothing_in_the_making(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(state_folder=tmp_path, token_seconds=0.5)
    with pytest.raises(Exception, match="timed out"):
        bed.impatient().chat(max_tokens=64)
    until(lambda: Engines(tmp_path).look() == Served())


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    gateway = DemoGateway(state_folder=tmp_path / "none")
    with pytest.raises(DemoError, match="cannot be written: No such file or directory"):
        gateway.start()
    gateway.stop()
