"""What the run's own loads had of the processors: booked by construction, and of a burner that is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_thermal.experiment.cpu_account import CpuAccount
from pytest_thermal.load import Loads, LoadUse, RunningLoad, Work, cpu_work
from pytest_thermal.model import Outcome
from pytest_thermal.recording import Event
from tests.findings.recordings import PLAN, healthy, judged
from tests.load.helpers import until


@dataclass
class FakeLoad:
    work: Work
    guard_id: int
    used: LoadUse | None = None

    def compute(self, seconds: float, cores: float, *, stopped: int = 0) -> None:
        before = self.used or LoadUse(at_seconds=100.0, cpu_seconds=0.0, stopped=0)
        self.used = LoadUse(
            at_seconds=before.at_seconds + seconds, cpu_seconds=before.cpu_seconds + seconds * cores, stopped=stopped
        )


class FakeLoads:
    def __init__(self, *loads: FakeLoad) -> None:
        self.running = loads


def fake(kind: str, guard: int, workers: int | None = None) -> FakeLoad:
    work = Work(kind=kind, tool="a test", command=("x",), limit_seconds=1.0, workers=workers)  # type: ignore[arg-type]
    return FakeLoad(work=work, guard_id=guard)


def account(
    booked: list[Mapping[str, object]], *loads: FakeLoad, cores: int = 4, quota: float | None = None
) -> CpuAccount:
    return CpuAccount(
        FakeLoads(*loads),  # type: ignore[arg-type]  # all that is asked of them
        booked.append,
        loaded_seconds=1000.0,
        cores=lambda: cores,
        quota=lambda: quota,
    )


def test_a_stretch_is_booked_when_it_is_long_enough() -> None:
    booked: list[Mapping[str, object]] = []
    burner = fake("cpu", 1, workers=8)
    book = account(booked, burner)
    assert book.look() is None  # its guard has said nothing yet
    for _ in range(11):
        burner.compute(1.0, 3.0)
        share = book.look()
    assert share == pytest.approx(0.75)
    assert booked == [{"seconds": 10.0, "cpu_seconds": 30.0, "cores": 4, "stopped": 0.0}]


def test_all_loads_count_for_the_cores_that_the_burner_was_to_have() -> None:
    booked: list[Mapping[str, object]] = []
    burner, asking = fake("cpu", 1, workers=2), fake("inference", 2)
    book = account(booked, burner, asking, quota=1.5)
    for _ in range(11):
        burner.compute(1.0, 1.0)
        asking.compute(1.0, 0.5)
        book.look()
    assert booked == [{"seconds": 10.0, "cpu_seconds": 15.0, "cores": 2, "stopped": 0.0, "quota_cores": 1.5}]


def test_a_phase_ends_a_stretch_and_what_is_too_short_is_left_out() -> None:
    booked: list[Mapping[str, object]] = []
    burner = fake("cpu", 1, workers=4)
    book = account(booked, burner)
    for seconds in (1.0, 3.0):
        burner.compute(seconds, 4.0)
        book.look()
    book.end_stretch()
    assert [one["seconds"] for one in booked] == [3.0]
    burner.compute(1.0, 4.0)
    book.look()
    burner.compute(1.0, 4.0)
    book.end_stretch()
    assert len(booked) == 1


def test_without_a_load_that_is_to_keep_cores_busy_nothing_is_booked() -> None:
    booked: list[Mapping[str, object]] = []
    asking = fake("inference", 2)
    book = account(booked, asking)
    for _ in range(20):
        asking.compute(1.0, 0.5)
        assert book.look() is None
    book.end_stretch()
    assert booked == []


def test_a_burner_that_is_stopped_leaves_the_findings_open(tmp_path: Path) -> None:
    """A real one, and what is booked of it is judged in a run that is healthy otherwise."""
    booked: list[Mapping[str, object]] = []
    work = cpu_work(workers=1, limit_seconds=600, environ={}, which=lambda _: None)
    with Loads(log_folder=tmp_path) as loads:
        (load,) = loads.start([replace(work, nice=0)])
        until(lambda: load.used is not None and load.used.cpu_seconds > 0.1)
        until(lambda: children(load.process_id))
        (worker,) = children(load.process_id)
        os.kill(worker, signal.SIGSTOP)
        for _ in range(2):  # the first may have been measured before the stop
            wait_for_news(load)
        book = CpuAccount(loads, booked.append, loaded_seconds=1.0)
        until(lambda: book.look() is not None)
    assert booked[0]["stopped"] == 1.0
    start, end = PLAN.phases["steady"].start_seconds, PLAN.phases["steady"].end_seconds
    events = tuple(
        Event(time_seconds=end, kind="load", detail={"what": "used", "load": "cpu", **one, "seconds": end - start})
        for one in booked[:1]
    )
    for check, subject in (("load", "cpu0"), ("rise", "cpu0.package.temperature_celsius")):
        found = judged(replace(healthy(), events=events)).finding(check, subject)
        assert found.outcome is Outcome.INCONCLUSIVE
        assert "the load itself had 0 % of its 1 cores' time, below 80 %" in found.message
        assert "likely: it stood still (SIGSTOP, a debugger, a batch system) for 100 % of that time" in found.message


def wait_for_news(load: RunningLoad) -> None:
    known = load.used
    until(lambda: load.used != known)


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]
