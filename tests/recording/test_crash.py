"""Everybody may be killed at any moment: what was sampled until then is there and can be read."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pytest_thermal.model import Missing
from pytest_thermal.recording import Ended, RecorderError, RunClock, SourceOrder, create_run, start_recorder
from pytest_thermal.recording.append_file import AppendFile
from pytest_thermal.recording.lane import Lane
from pytest_thermal.recording.recording import Recording
from pytest_thermal.recording.run_reader import read_run
from pytest_thermal.recording.samples import SampleWriter
from pytest_thermal.recording.spec import RecordingSpec
from tests.recording.fakes import order
from tests.recording.helpers import ROOT, alive, children, recorder_of, rows, slots
from tests.support.patience import until

PARENT = Path(__file__).with_name("parent.py")


@dataclass(frozen=True, kw_only=True)
class Parent:
    process: subprocess.Popen[str]
    run: Path
    recorder: int
    child: int
    lanes: list[int]


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    process = subprocess.Popen(
        [sys.executable, str(PARENT), str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    run = Path(told["run"])
    until(lambda: len(rows(run, "a.csv")) > 10)
    yield Parent(
        process=process,
        run=run,
        recorder=told["recorder"],
        child=told["child"],
        lanes=children(told["recorder"]),
    )
    for one in (process.pid, told["recorder"], told["child"]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def whole(recording: Recording, name: str) -> None:
    """Every slot from the first to the last is there, in order."""
    assert (np.diff(slots(recording, name)) == 1).all()


def test_kill_9_of_the_parent_ends_the_recording_and_seals_it_as_cut_off(parent: Parent) -> None:
    """Although another child of the parent still holds the pipe."""
    assert len(parent.lanes) == 2
    before = rows(parent.run, "a.csv")
    os.kill(parent.process.pid, signal.SIGKILL)
    parent.process.wait()
    until(lambda: not any(alive(process) for process in (parent.recorder, *parent.lanes)))
    assert alive(parent.child)
    recording = read_run(parent.run)
    assert recording.state == recording.facts["state"] == "cut off"
    assert recording.facts["ended_because"] == "the process that recorded is gone"
    assert rows(parent.run, "a.csv")[: len(before)] == before
    whole(recording, "a")
    assert recording.phases[0].name == "baseline"
    assert recording.phases[0].end_seconds == recording.facts["end_seconds"]
    assert recording.notes == ()
    with (parent.run / "events.jsonl").open("a") as events:
        events.write("{}\n")
    assert read_run(parent.run).changed == ("events.jsonl: changed after the run was sealed",)


def test_ctrl_c_to_the_whole_group_reaches_the_parent_only(parent: Parent) -> None:
    os.killpg(parent.process.pid, signal.SIGINT)
    until(lambda: parent.process.poll() is not None)
    until(lambda: not any(alive(process) for process in (parent.recorder, *parent.lanes)))
    recording = read_run(parent.run)
    assert recording.state == "finished"
    assert recording.facts["ended_because"] == "stopped by KeyboardInterrupt"
    whole(recording, "a")


def test_kill_9_of_the_recorder_leaves_a_readable_run_that_can_be_continued(tmp_path: Path) -> None:
    recorder = recorder_of(tmp_path, order("a", devices=2), order("b", behaviour="hang"))
    recorder.wait_ready()
    recorder.phase("baseline")
    until(lambda: len(rows(recorder.run, "a.csv")) > 10)
    processes = children(recorder.process_id)
    seen = rows(recorder.run, "a.csv")
    os.kill(recorder.process_id, signal.SIGKILL)
    until(lambda: not any(alive(process) for process in processes))
    before = read_run(recorder.run)
    assert before.state == "cut off"
    assert any("never noted its end" in note for note in before.notes)
    timing = before.timing["a"]
    assert before.end_seconds is not None
    # Whatever was there to be read a moment before is there, and whole.
    assert rows(recorder.run, "a.csv")[: len(seen)] == seen
    whole(before, "a")
    assert before.phases[0].end_seconds > before.end_seconds

    assert recorder.stop() == Ended(in_order=False, because="the recorder was ended by SIGKILL")
    sealed = read_run(recorder.run)
    assert sealed.state == "cut off"
    assert sealed.facts["ended_because"] == "the recorder died"
    assert sealed.facts["phases"][0]["end_seconds"] == pytest.approx(before.end_seconds, abs=0.002)
    assert set(sealed.facts["sha256"]) >= {"samples/a.csv", "events.jsonl"}

    again = start_recorder(recorder.run, sources=[order("a", devices=2)], period_seconds=0.1, import_paths=[str(ROOT)])
    with again:
        again.wait_ready()
        again.phase("cooldown")
        until(lambda: len(rows(recorder.run, "a.2.csv")) > 5)
    both = read_run(recorder.run)
    assert both.state == "finished"
    assert [phase.name for phase in both.phases] == ["baseline", "cooldown"]
    segments = both.facts["sources"]["a"]["segments"]
    assert [segment["file"] for segment in segments] == ["samples/a.csv", "samples/a.2.csv"]
    assert "b0.temperature_celsius" in both.series
    assert len(both.series["a0.temperature_celsius"]) > len(timing.time_seconds) + 5
    assert both.facts["start_seconds"] == before.facts["start_seconds"]
    assert again.clock == recorder.clock


def test_a_full_disk_loses_nothing_when_room_comes_back(tmp_path: Path) -> None:
    """The limit for files of the recorder stands in for the disk; it is lifted again."""
    with recorder_of(tmp_path, order("a", devices=30)) as recorder:
        recorder.wait_ready()
        until(lambda: len(rows(recorder.run, "a.csv")) > 3)
        _, hard = resource.prlimit(recorder.process_id, resource.RLIMIT_FSIZE)
        size = (recorder.run / "samples" / "a.csv").stat().st_size
        resource.prlimit(recorder.process_id, resource.RLIMIT_FSIZE, (size + 100, hard))
        notes: list[str] = []

        def told(what: str) -> bool:
            notes.extend(recorder.notes())
            return any(what in note for note in notes)

        until(lambda: told("samples wait in memory"))
        full = len(rows(recorder.run, "a.csv"))
        read_run(recorder.run)
        waited_from = recorder.clock.now()
        until(lambda: recorder.clock.now() > waited_from + 0.5)
        assert len(rows(recorder.run, "a.csv")) == full
        resource.prlimit(recorder.process_id, resource.RLIMIT_FSIZE, (hard, hard))
        until(lambda: told("written again after"))
        assert any("0 rows were lost" in note for note in notes)
        until(lambda: len(rows(recorder.run, "a.csv")) > full + 10)
    recording = read_run(recorder.run)
    assert recording.notes == ()
    whole(recording, "a")


def test_a_stopped_machine_leaves_a_gap_and_no_burst(tmp_path: Path) -> None:
    """SIGSTOP to recorder and lane at once stands in for a machine that sleeps."""
    with recorder_of(tmp_path, order("a", deadline_seconds=60.0)) as recorder:
        recorder.wait_ready()
        until(lambda: len(rows(recorder.run, "a.csv")) > 5)
        processes = [recorder.process_id, *children(recorder.process_id)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        time.sleep(1.0)
        before = len(rows(recorder.run, "a.csv"))
        for process in processes:
            os.kill(process, signal.SIGCONT)
        until(lambda: len(rows(recorder.run, "a.csv")) > before + 15)
    recording = read_run(recorder.run)
    whole(recording, "a")
    series = recording.series["a0.temperature_celsius"]
    gone = np.flatnonzero(~series.present)
    assert gone.size >= 8
    why = recording.why_missing(series.sensor.id, float(series.time_seconds[gone[-1]]))
    assert why is not None
    assert why.reason is Missing.TIMEOUT
    begun = series.time_seconds[series.present]
    assert np.diff(begun).min() > 0.02


def test_a_killed_lane_costs_its_own_slots_only(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("a"), order("b")) as recorder:
        recorder.wait_ready()
        until(lambda: len(rows(recorder.run, "a.csv")) > 3)
        victim = children(recorder.process_id)[0]
        os.kill(victim, signal.SIGKILL)
        notes: list[str] = []

        def back() -> bool:
            notes.extend(recorder.notes())
            return any("sampling again" in note for note in notes)

        until(back)
        (ended,) = [note for note in notes if note.endswith("its process was ended by SIGKILL")]
        name = ended.partition(":")[0]
        assert name in ("a", "b")
        count = len(rows(recorder.run, f"{name}.csv"))
        until(lambda: len(rows(recorder.run, f"{name}.csv")) > count + 3)
    recording = read_run(recorder.run)
    other = {"a": "b", "b": "a"}[name]
    whole(recording, "a")
    whole(recording, "b")
    assert not recording.series[f"{name}0.temperature_celsius"].present.all()
    reasons = {stretch.reason for stretch in recording.missing if stretch.sensor_id == f"{other}0.temperature_celsius"}
    assert Missing.UNREADABLE not in reasons


def lane_of(folder: Path, what: SourceOrder, told: list[str], *, startup_seconds: float, now_seconds: float) -> Lane:
    """One lane that has been started, at one reading a second, without its recorder."""
    (folder / "samples").mkdir()
    spec = RecordingSpec(
        run=folder,
        sources=(what,),
        period_seconds=1.0,
        clock=RunClock(unix_seconds=1_800_000_000.0, monotonic_seconds=now_seconds),
        import_paths=(str(ROOT),),
        startup_seconds=startup_seconds,
    )
    writer = SampleWriter(folder, what.name, AppendFile(folder / "missing.jsonl"))
    lane = Lane(what, spec, writer, start_seconds=now_seconds, tell=lambda text, **_: told.append(text))
    lane.start(now_seconds)
    return lane


def test_a_process_that_cannot_be_killed_is_left_alone_and_not_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hang in the kernel takes no SIGKILL: here the signal is withheld."""
    hanging = order("a", behaviour="hang", deadline_seconds=5.0, kill_seconds=20.0)
    told: list[str] = []
    lane = lane_of(tmp_path, hanging, told, startup_seconds=1e6, now_seconds=time.monotonic())

    def state() -> str:
        return lane.state.value

    def sampling() -> bool:
        for hear in lane.streams().values():
            hear(time.monotonic())
        return state() == "sampling"

    until(sampling)
    process = lane.process_id
    assert process is not None
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    now = time.monotonic()
    for second in range(120):
        lane.tick(now + second)
    assert state() == "ending"
    assert lane.process_id == process
    assert told == [
        "a: no answer within 5 s",
        f"a: process {process} hangs in the kernel and cannot be killed; its driver is stuck",
    ]
    lines = rows(tmp_path, "a.csv")
    assert len(lines) >= 110
    assert all(line.count(",") == 3 and line.endswith(",,,") for line in lines)
    monkeypatch.undo()
    until(lane.abandon)
    lane.tick(now + 121)
    assert state() == "pausing"
    lane.tick(now + 200)
    assert state() == "starting"
    until(lane.abandon)
    lane.collect()


def test_a_lane_that_says_nothing_of_its_sensors_is_killed_and_tried_again(tmp_path: Path) -> None:
    """By the clock that it is given: how long a start takes here does not count."""
    told: list[str] = []
    now = time.monotonic()
    lane = lane_of(tmp_path, order("a", behaviour="hang at start"), told, startup_seconds=3.0, now_seconds=now)
    process = lane.process_id
    lane.tick(now)
    assert lane.state.value == "starting"

    def gone() -> bool:
        lane.tick(now + 60.0)
        return lane.state.value == "pausing"

    until(gone)
    assert (lane.reason, told) == (
        "no word of its sensors within 3 s",
        ["a: no word of its sensors within 3 s"],
    )
    assert process is not None
    assert not alive(process)
    assert lane.settled, "nobody waits for it any longer"
    lane.tick(now + 62.0)
    assert lane.state.value == "starting"
    until(lane.abandon)
    lane.collect()


def test_a_run_directory_that_is_deleted_is_told(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("a")) as recorder:
        recorder.wait_ready()
        until(lambda: rows(recorder.run, "a.csv"))
        (recorder.run / "samples" / "a.csv").unlink()
        notes: list[str] = []

        def told() -> bool:
            notes.extend(recorder.notes())
            return any("deleted while it was written" in note for note in notes)

        until(told)


def test_a_recorder_that_cannot_write_refuses_at_once(tmp_path: Path) -> None:
    run = create_run(tmp_path, facts={})
    (run / "samples").rmdir()
    (run / "samples").write_text("in the way", encoding="utf-8")
    recorder = start_recorder(run, sources=[order("a")], period_seconds=1.0)
    with pytest.raises(RecorderError, match="file stands where a folder is needed"):
        recorder.wait_ready()
    assert not recorder.stop().in_order


def test_what_a_killed_lane_had_started_goes_with_it(tmp_path: Path) -> None:
    file = tmp_path / "tool"
    with recorder_of(tmp_path, order("a", behaviour="tool", file=f"{file}")) as recorder:
        recorder.wait_ready()
        until(lambda: file.exists() and file.read_text())
        tool = int(file.read_text())
        (lane,) = children(recorder.process_id)
        os.kill(lane, signal.SIGKILL)
        until(lambda: not alive(tool))
        recorder.stop()
