"""The state machine with real recorders and real processes as loads, but small ones."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.bench import Bench, load_bench
from pytest_thermal.experiment import (
    BenchBusyError,
    BenchLock,
    Experiment,
    ExperimentBrokenError,
    LoadPlan,
    Notice,
    Plan,
    Progress,
    Together,
)
from pytest_thermal.experiment import experiment as experiment_module
from pytest_thermal.experiment import watcher as watcher_module
from pytest_thermal.experiment.experiment import why_late
from pytest_thermal.findings import Judgement, limits_for
from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.findings.run_events import own_times
from pytest_thermal.load import Work
from pytest_thermal.model import Outcome, Sensor, Unit
from pytest_thermal.recording import Offer, RecorderError, RunClock, read_run
from pytest_thermal.sensors.source import SourceSpec
from tests.load.helpers import until

KEY = "sk-canary-0123456789abcdefghij"
SHORT = {"baseline": 0.6, "ramp": 0.6, "steady": 0.9, "cooldown": 0.6}
LONG_SECONDS = 120.0
"""Of a phase that something else is to end."""


def fake(name: str = "gpu", **options: str | float) -> SourceSpec:
    """A source whose temperatures go from 30 to 39 °C and again."""
    return SourceSpec(name=name, factory="tests.recording.fakes:make", options={"name": name, **options})


def sleeper(seconds: float = 600.0, *, code: int = 0) -> Work:
    return Work(
        kind="cpu",
        tool="sleeper",
        command=("sh", "-c", f"echo warming up; sleep {seconds}; exit {code}"),
        limit_seconds=900.0,
    )


class Made:
    """An experiment, and what it told."""

    def __init__(
        self,
        folder: Path,
        *,
        seconds: Mapping[str, float],
        works: Sequence[Work],
        limit: Sequence[Work],
        sources: Sequence[SourceSpec],
        preflight: Callable[[], None] | None,
        settings: str,
        together: Together | None,
    ) -> None:
        self.told: list[Progress | Notice] = []
        (folder / "bench").mkdir()
        (folder / "bench" / "config.toml").write_text(
            '[api]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "A_KEY"\n' + settings
        )
        self.bench: Bench = load_bench(folder / "bench", environ={"A_KEY": KEY})
        self.archive = folder / "runs"
        self.locks = folder

        def make(_run: Path, _clock: RunClock, _limit: float) -> tuple[Sequence[Work], Sequence[str]]:
            return works, ["no accelerator is found"]

        def more(_run: Path, _clock: RunClock, _limit: float) -> tuple[Sequence[Work], Sequence[str]]:
            return limit, []

        self.experiment = Experiment(
            bench=self.bench,
            plan=Plan(seconds=seconds, period_seconds=0.1),
            sources=sources,
            loads=LoadPlan(works=make, limit_works=more, facts={"mode": "cpu"}),
            archive=self.archive,
            environ=os.environ,
            locks=folder,
            tell=self.told.append,
            preflight=preflight,
            node=None if together is None else together.node,
            together=together,
        )

    @property
    def run(self) -> Path:
        assert self.experiment.run is not None
        return self.experiment.run

    def _settle(self) -> None:
        """Wait until the recorder, a process of its own, has written what it was told."""
        recorder = self.experiment._recorder
        if recorder is not None and recorder.alive:
            mark = uuid.uuid4().hex
            with contextlib.suppress(RecorderError):
                recorder.event("mark", mark=mark)
            until(lambda: mark in (self.run / "events.jsonl").read_text() or not recorder.alive)

    def facts(self) -> dict[str, Any]:
        self._settle()
        facts: dict[str, Any] = json.loads((self.run / "run.json").read_text())
        return facts

    def events(self, kind: str) -> list[dict[str, Any]]:
        self._settle()
        lines = (self.run / "events.jsonl").read_text().splitlines()
        return [event for line in lines if (event := json.loads(line))["kind"] == kind]

    def rows(self, source: str) -> int:
        """Readings of a source that were written so far."""
        return (self.run / "samples" / f"{source}.csv").read_bytes().count(b"\n") - 1

    def notices(self, kind: str) -> list[str]:
        return [news.text for news in self.told if isinstance(news, Notice) and news.kind == kind]

    def steady_under_way(self, holds: Callable[[], object]) -> None:
        """Go on until the load is on and something has come true in steady; what is left of it is still to come.

        However short steady is: its time runs on, and nobody asks for its end before.
        """
        self.experiment.ensure("ramp")
        until(holds)


Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Made] = []

    def start(
        *,
        seconds: Mapping[str, float] = SHORT,
        works: Sequence[Work] = (sleeper(),),
        limit: Sequence[Work] = (),
        sources: Sequence[SourceSpec] = (fake(),),
        preflight: Callable[[], None] | None = None,
        settings: str = "",
        together: Together | None = None,
    ) -> Made:
        made.append(
            Made(
                tmp_path,
                seconds=seconds,
                works=works,
                limit=limit,
                sources=sources,
                preflight=preflight,
                settings=settings,
                together=together,
            )
        )
        return made[-1]

    yield start
    for one in made:
        one.experiment.close("the test ends")


def test_a_phase_brings_those_before_it_and_none_after_it(make: Make) -> None:
    made = make()
    record = made.experiment.ensure("ramp")
    assert made.experiment.done == ("baseline", "ramp")
    assert record.name == "ramp"
    assert record.end_seconds - record.start_seconds >= 0.59  # times are kept to a millisecond
    assert record.loads == ("sleeper",)


def test_a_phase_is_gone_through_once(make: Make) -> None:
    made = make()
    assert made.experiment.ensure("steady") is made.experiment.ensure("steady")
    assert made.experiment.ensure("baseline").name == "baseline"
    assert made.notices("phase").count("steady for 0.9 s") == 1


def test_the_load_is_on_from_ramp_to_the_end_of_steady(make: Make) -> None:
    made = make()
    made.experiment.ensure("cooldown")
    assert made.experiment.finished
    started, stopped = made.events("load")
    assert (started["what"], stopped["what"]) == ("started", "stopped")
    phases = {phase["name"]: phase for phase in made.facts()["phases"]}
    assert phases["ramp"]["start_seconds"] <= started["time"] < phases["ramp"]["end_seconds"]
    assert phases["cooldown"]["start_seconds"] <= stopped["time"] < phases["cooldown"]["end_seconds"]
    assert phases["steady"]["end_seconds"] == phases["cooldown"]["start_seconds"]


def test_the_cooldown_begins_with_the_loads_end_and_not_when_it_is_asked_for(make: Make) -> None:
    made = make()
    made.experiment.ensure("steady")
    time.sleep(0.5)
    record = made.experiment.ensure("cooldown")
    steady = made.experiment.ensure("steady")
    assert record.start_seconds == steady.end_seconds


def test_the_limit_phase_puts_its_load_on_top(make: Make) -> None:
    burn = Work(kind="accelerator", tool="burn", command=("sleep", "600"), limit_seconds=900.0)
    made = make(seconds={**SHORT, "limit": 0.6}, limit=[burn])
    record = made.experiment.ensure("limit")
    assert record.loads == ("sleeper", "burn")
    stopped = [event["load"] for event in made.events("load") if event["what"] == "stopped"]
    assert sorted(stopped) == ["accelerator", "cpu"]


def test_a_run_can_be_read_while_it_goes_on_and_afterwards(make: Make) -> None:
    made = make()
    made.experiment.ensure("steady")
    half = read_run(made.run)
    assert [phase.name for phase in half.phases][:3] == ["baseline", "ramp", "steady"]
    made.experiment.ensure("cooldown")
    assert read_run(made.run).state == "finished"


def test_closing_early_says_how_far_it_came(make: Make) -> None:
    made = make()
    made.experiment.ensure("ramp")
    made.experiment.close("asked to")
    made.experiment.close("asked again")
    assert made.facts()["ended_because"] == "asked to; phases gone through: baseline, ramp"


def test_a_load_that_does_not_run_breaks_the_ramp_once_and_blocks_the_rest(make: Make) -> None:
    made = make(works=[sleeper(0.1, code=3)], seconds={**SHORT, "ramp": LONG_SECONDS})
    with pytest.raises(
        ExperimentBrokenError, match=r"ramp: the cpu load was lost: it ended by itself with exit code 3"
    ):
        made.experiment.ensure("ramp")
    first = made.experiment.broken
    assert "warming up" in str(first)
    with pytest.raises(ExperimentBrokenError) as again:
        made.experiment.ensure("steady")
    assert again.value is first
    assert made.experiment.finished
    assert made.facts()["state"] == "finished"
    assert made.facts()["ended_because"].startswith("broken: the cpu load was lost")


def test_an_inference_load_that_asks_nothing_breaks_the_ramp(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_thermal.experiment.experiment.FIRST_ANSWER_SECONDS", 1.0)
    silent = Work(kind="inference", tool="silent", command=("sleep", "600"), limit_seconds=900.0)
    made = make(works=[silent])
    with pytest.raises(ExperimentBrokenError, match="ramp: no inference request was made: starting"):
        made.experiment.ensure("steady")


def test_a_tool_that_is_not_there_is_told(make: Make) -> None:
    made = make(works=[Work(kind="cpu", tool="x", command=("no-such-burner",), limit_seconds=9.0)])
    with pytest.raises(ExperimentBrokenError, match="ramp: no-such-burner: could not be started"):
        made.experiment.ensure("steady")


def test_a_load_lost_in_steady_is_told_and_ends_nothing(make: Make, tmp_path: Path) -> None:
    script = f"until [ -e {tmp_path}/ends ]; do sleep 0.1; done"
    made = make(works=[replace(sleeper(), command=("sh", "-c", script))])
    made.experiment.ensure("ramp")
    (tmp_path / "ends").touch()
    until(lambda: made.notices("load"))
    made.experiment.ensure("cooldown")
    (lost,) = [event for event in made.events("load") if event["what"] == "lost"]
    assert lost["load"] == "cpu"
    assert any("the cpu load (sleeper) was lost" in text for text in made.notices("load"))


def test_crossing_a_threshold_warns_once_and_ends_nothing(make: Make) -> None:
    made = make(settings="[thermal]\nalert_threshold_gpu = 20\n")
    made.steady_under_way(lambda: made.notices("warning"))
    made.experiment.ensure("cooldown")
    told = [text for text in made.notices("warning") if "above the threshold of 20 °C" in text]
    assert len(told) == 1
    assert "config.toml [thermal] alert_threshold_gpu" in told[0]
    assert made.events("critical") == []


def test_a_critical_temperature_takes_the_load_off_and_goes_on_recording(make: Make) -> None:
    settings = "[thermal]\nalert_threshold_gpu = 20\ncritical_threshold_gpu = 25\n"
    made = make(settings=settings)
    made.experiment.ensure("baseline")
    until(lambda: made.notices("critical")[1:])
    made.experiment.ensure("cooldown")
    first, second, third = made.events("critical")
    assert "critical threshold of 25 °C" in first["text"]
    assert second["text"] == "the load is taken off and stays off; recording goes on"
    assert third["text"].startswith("sleeper stays off: gpu0.temperature_celsius is at ")
    assert made.events("load") == []
    assert [phase["name"] for phase in made.facts()["phases"]] == ["baseline", "ramp", "steady", "cooldown"]


def test_a_leak_takes_the_load_off_and_its_phase_does_not_pass(make: Make, tmp_path: Path) -> None:
    detector = tmp_path / "detector"
    detector.write_text("0")
    leak = SourceSpec(
        name="cdu",
        factory="tests.experiment.played:make",
        options={"name": "cdu", "sensor": "leak0.detector_state", "file": str(detector)},
    )
    made = make(sources=(fake(), leak))
    made.experiment.ensure("ramp")
    whole = detector.with_suffix(".new")
    whole.write_text("2")
    whole.replace(detector)  # it is read meanwhile
    until(lambda: made.notices("critical")[1:])
    rows = made.rows("cdu")
    until(lambda: made.rows("cdu") > rows + 1)  # recording goes on
    made.experiment.ensure("cooldown")
    first, second = made.events("critical")
    assert (first["what"], first["sensor"]) == ("leak", "leak0.detector_state")
    assert first["text"] == "leak0.detector_state reports a leak (critical)"
    assert second["text"] == "the load is taken off and stays off; recording goes on"
    recording = read_run(made.run)
    states = recording.series["leak0.detector_state"]
    assert states.values[-1] == 2.0
    assert states.time_seconds[-1] > first["time"]
    found = phase_finding(recording, "steady")
    assert found.outcome is Outcome.FAILED
    assert found.message.splitlines()[0].endswith(
        "but the load was taken off: leak0.detector_state reports a leak (critical)"
    )
    assert "coolant has come out" in found.likely
    assert "valves" in found.advice
    leaked = Judgement(recording, limits_for(made.bench.monitor)).finding("leak", "leak0.detector_state")
    assert leaked.outcome is Outcome.FAILED
    assert "reports a leak from" in leaked.seen


def test_no_later_phase_loads_a_bench_that_was_critical(make: Make) -> None:
    settings = "[thermal]\nalert_threshold_gpu = 20\ncritical_threshold_gpu = 25\n"
    burn = Work(kind="accelerator", tool="burn", command=("sleep", "600"), limit_seconds=900.0)
    made = make(settings=settings, seconds={**SHORT, "limit": 0.6}, limit=[burn])
    made.experiment.ensure("baseline")
    until(lambda: made.notices("critical")[1:])
    made.experiment.ensure("cooldown")
    assert [event["load"] for event in made.events("load") if event["what"] == "started"] == []
    assert any(event["text"].startswith("burn stays off") for event in made.events("critical"))


def test_a_critical_threshold_that_nothing_is_measured_for_is_refused(make: Make) -> None:
    made = make(settings="[thermal]\ncritical_threshold_cpu = 95\n")
    with pytest.raises(ExperimentBrokenError, match="critical_threshold_cpu is set, and no temperature of that kind"):
        made.experiment.ensure("baseline")


def test_cards_that_the_bench_file_names_and_nobody_sees_are_told(make: Make) -> None:
    made = make(settings="[thermal]\ngpu_indices = [0, 1, 2, 3]\n")
    with pytest.raises(ExperimentBrokenError, match="gpu_indices names 4 accelerators, and 1 can be measured: gpu0"):
        made.experiment.ensure("baseline")


def test_a_bench_with_nothing_to_load_it_breaks_the_ramp(make: Make) -> None:
    made = make(works=[])
    with pytest.raises(ExperimentBrokenError, match="ramp: there is nothing to load this bench with: no accelerator"):
        made.experiment.ensure("steady")


def test_a_load_that_nobody_watches_is_taken_off(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")

    def fail(_self: object) -> list[object]:
        raise ValueError("could not convert string to float")

    monkeypatch.setattr("pytest_thermal.recording.follower.Follower.read", fail)
    with pytest.raises(ExperimentBrokenError, match="what watches over the load failed: ValueError: could not convert"):
        made.experiment.ensure("steady")


def test_a_run_that_has_ended_is_not_gone_on_with(make: Make) -> None:
    made = make()
    made.experiment.ensure("baseline")
    made.experiment.close()
    with pytest.raises(ExperimentBrokenError, match="the run has ended, and its ramp was not gone through"):
        made.experiment.ensure("steady")


def test_a_run_can_be_abandoned_from_elsewhere(make: Make) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")
    made.experiment.abandon("the controller is gone", orphaned=True)
    with pytest.raises(ExperimentBrokenError, match="the controller is gone"):
        made.experiment.ensure("steady")
    assert [event["what"] for event in made.events("load")] == ["started", "stopped"]
    assert made.facts()["state"] == "cut off"


def test_a_machine_that_is_loaded_by_another_run_is_refused(make: Make) -> None:
    made = make()
    with BenchLock(made.locks, what="bench of another"), pytest.raises(BenchBusyError, match="bench of another"):
        made.experiment.ensure("baseline")
    assert made.experiment.run is None
    assert not made.archive.exists()


def test_the_machine_is_free_again_at_the_end(make: Make) -> None:
    made = make()
    made.experiment.ensure("cooldown")
    with BenchLock(made.locks, what="next"):
        pass


def test_a_preflight_that_fails_comes_before_any_recording(make: Make) -> None:
    def fail() -> None:
        raise ExperimentBrokenError("the key is wrong", phase="preflight")

    made = make(preflight=fail)
    with pytest.raises(ExperimentBrokenError, match="preflight: the key is wrong"):
        made.experiment.ensure("steady")
    assert not made.archive.exists()


def test_a_bench_without_a_sensor_is_told_why(make: Make) -> None:
    made = make(sources=[fake(unavailable="no driver is loaded")])
    with pytest.raises(ExperimentBrokenError, match="no source offers a single sensor: gpu: no driver is loaded"):
        made.experiment.ensure("baseline")


def test_a_recorder_that_dies_breaks_the_phase(make: Make) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")
    os.kill(made.facts()["recorder"]["pid"], signal.SIGKILL)
    with pytest.raises(ExperimentBrokenError, match=r"steady: the recorder was ended by SIGKILL(.|\n)*--replay"):
        made.experiment.ensure("steady")


def test_another_thread_can_end_a_phase(make: Make) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")
    threading.Timer(0.3, made.experiment.stop).start()
    with pytest.raises(ExperimentBrokenError, match="stopped before its end"):
        made.experiment.ensure("steady")
    assert [event["what"] for event in made.events("load")] == ["started", "stopped"]


def test_an_interrupted_phase_is_not_gone_on_with(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(made.experiment, "_pause", interrupt)
    with pytest.raises(KeyboardInterrupt):
        made.experiment.ensure("steady")
    assert made.experiment.finished
    with pytest.raises(ExperimentBrokenError, match="steady: interrupted by KeyboardInterrupt"):
        made.experiment.ensure("cooldown")


def test_an_unwritable_archive_is_told(make: Make, tmp_path: Path) -> None:
    made = make()
    made.archive.write_text("a file stands here")
    with pytest.raises(ExperimentBrokenError, match="runs: cannot be written"):
        made.experiment.ensure("baseline")


def test_progress_says_where_it_stands(make: Make) -> None:
    made = make()

    def steady() -> list[Progress]:
        return [news for news in made.told if isinstance(news, Progress) and news.phase == "steady"]

    made.steady_under_way(lambda: steady() and steady()[-1].hottest)
    made.experiment.ensure("cooldown")
    assert steady()[-1].load == "cpu"
    assert steady()[-1].left_seconds > steady()[-1].phase_left_seconds
    assert steady()[-1].hottest[0].sensor == "gpu0.temperature_celsius"
    assert made.notices("note") == ["no accelerator is found"]


def test_the_key_is_nowhere_in_the_run(make: Make) -> None:
    made = make()
    made.experiment.ensure("cooldown")
    for path in made.run.rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text(), path


def test_a_load_whose_times_are_its_own_is_told_once_a_phase_and_its_calibration_is_noted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = {
        "is": "status",
        "text": "8 in flight",
        "requests": 5,
        "ok": 5,
        "client_limited": "the load engine used 90% of its core",
        "calibration": {"added_p50_ms": 0.2},
    }
    command = ("sh", "-c", f"echo '{json.dumps(status)}'; sleep 600")
    work = Work(kind="inference", tool="closed loop of 8", command=command, limit_seconds=900.0)
    made = make(works=[work])
    wait_for_answers = made.experiment._wait_for_answers

    def and_be_seen(phase: str, start_seconds: float) -> None:
        wait_for_answers(phase, start_seconds)
        until(lambda: made.notices("load"))

    monkeypatch.setattr(made.experiment, "_wait_for_answers", and_be_seen)
    made.steady_under_way(lambda: made.notices("load")[1:])
    made.experiment.ensure("cooldown")
    limited = [event for event in made.events("load") if event["what"] == "client-limited"]
    assert [event["phase"] for event in limited] == ["ramp", "steady"]
    text = "client-limited: the load engine used 90% of its core; times of requests are not the gateway's"
    assert {event["text"] for event in limited} == {text}
    assert made.facts()["calibration"] == {"added_p50_ms": 0.2}


def test_a_sampler_without_priority_is_told() -> None:
    def offer(priority: str, *sensors: Sensor) -> Offer:
        return Offer(
            source="a", available=bool(sensors), reason="", period_seconds=1.0, priority=priority, sensors=sensors
        )

    one = Sensor(id="gpu0.power_watts", unit=Unit.WATTS, device="gpu0", identity="0", source="a")
    ordinary = "default: SCHED_FIFO is not allowed (Operation not permitted); it takes root or `ulimit -r 1`"
    assert why_late({"a": offer("SCHED_FIFO 1", one), "b": offer("")}) == ""
    assert why_late({"a": offer("SCHED_FIFO 1", one), "b": offer(ordinary, one)}) == (
        "samples may come tens of milliseconds late under load: SCHED_FIFO is not allowed (Operation not permitted); "
        "it takes root or `ulimit -r 1`"
    )


def test_a_load_that_does_not_get_the_processor_is_told_at_once_and_booked(make: Make) -> None:
    starved = replace(sleeper(), workers=1)
    made = make(works=[starved])
    made.experiment.ensure("ramp")
    before = len(made.notices("load"))  # a ramp that a busy machine made long is told of, too
    until(lambda: len(made.notices("load")) > before)
    made.experiment.ensure("steady")
    made.experiment.close()
    notices = made.notices("load")
    assert len(notices) == before + 1 <= 2, "once a phase"
    assert all(notice.startswith("the loads had ") for notice in notices)
    assert all(" of their cores' time" in notice for notice in notices)
    booked = [event for event in made.events("load") if event["what"] == "used"]
    assert booked
    assert booked[0]["cores"] == 1
    assert booked[0]["seconds"] >= 2.0
    times = own_times(read_run(made.run))
    assert [one.share for one in times] == pytest.approx([e["cpu_seconds"] / e["seconds"] for e in booked])
    assert max(one.share for one in times) < 0.3


# ---------------------------------------------------------------------------------------------------- beside others


def test_a_phase_is_entered_without_a_node_that_never_comes_and_the_run_tells(make: Make, tmp_path: Path) -> None:
    made = make(
        together=Together(tmp_path / "meeting", node="n1", count=2, names=("n1", "n2"), wait_seconds=0.5),
    )
    made.experiment.ensure("cooldown")
    told = made.facts()
    assert (told["host"]["name"], made.run.name.endswith("_n1")) == ("n1", True)
    assert list(told["clock"]["offsets"]["shared_disk"]) == ["offset_seconds", "within_seconds"]
    met = told["together"]["phases"]
    assert {name: one["missing"] for name, one in met.items()} == {name: ["n2"] for name in SHORT}
    entered = [event["phase"] for event in made.events("together") if event["what"] == "entered"]
    assert entered == list(SHORT)
    assert any("baseline is entered without n2" in text for text in made.notices("warning"))
    for name in SHORT:
        found = phase_finding(read_run(made.run), name)
        assert found.outcome is Outcome.PASSED
        assert any("without n2" in text for text in found.warnings)


def test_a_broken_node_tells_the_others_why_it_left(make: Make, tmp_path: Path) -> None:
    made = make(
        works=[sleeper(0.1, code=3)],
        seconds={**SHORT, "ramp": LONG_SECONDS},
        together=Together(tmp_path / "meeting", node="n1", count=2, wait_seconds=0.1),
    )
    with pytest.raises(ExperimentBrokenError):
        made.experiment.ensure("ramp")
    assert "the cpu load was lost" in (tmp_path / "meeting" / "n1.gone").read_text()


# ------------------------------------------------------------------------------------------------------- full disks


def test_a_disk_without_room_for_the_run_is_told_before_anything_is_loaded(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_module, "free_bytes", lambda _: 3_000_000)
    made = make()
    with pytest.raises(ExperimentBrokenError, match=r"has 3 MB left, and this run may need \d+ MB"):
        made.experiment.ensure("baseline")
    assert made.events("load") == []


def test_a_disk_that_takes_nothing_any_more_ends_the_load(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "DISK_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(watcher_module, "DISK_LEAST_PATIENCE_SECONDS", 0.2)
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")
    recorder = made.experiment._recorder
    assert recorder is not None
    recorder.disk_trouble = "No space left on device"
    with pytest.raises(ExperimentBrokenError, match=r"nothing could be written for .* No space left on device"):
        made.experiment.ensure("steady")
    assert made.experiment._loads is not None
    assert not made.experiment._loads.running
    assert made.experiment.finished


def test_a_disk_that_hangs_ends_the_load(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(seconds={**SHORT, "steady": LONG_SECONDS})
    made.experiment.ensure("ramp")
    # Not before: a machine that stood still is no disk that hangs.
    monkeypatch.setattr(experiment_module, "DISK_PATIENCE_SECONDS", 0.3)
    watcher = made.experiment._watcher
    assert watcher is not None
    released = threading.Event()
    monkeypatch.setattr(watcher._follower, "read", lambda: released.wait(LONG_SECONDS) and [])
    try:
        with pytest.raises(ExperimentBrokenError, match="the disk did not answer"):
            made.experiment.ensure("steady")
        assert made.experiment._loads is not None
        assert not made.experiment._loads.running
    finally:
        released.set()
