"""One recording of sources that behave in every way there is, and what came of each."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from pytest_thermal.model import Missing
from pytest_thermal.recording import (
    Ended,
    Offer,
    RecorderError,
    RecordingError,
    RunDirectoryError,
    create_run,
    lane_process,
    running,
    seal,
    start_recorder,
    write_summary,
)
from pytest_thermal.recording import recorder as recorder_module
from pytest_thermal.recording.recording import Recording
from pytest_thermal.recording.run_reader import read_run
from pytest_thermal.recording.schedule import LATEST_SHARE
from pytest_thermal.sensors.redfish import client
from tests.recording.fakes import order
from tests.recording.helpers import ROOT, alive, answers, children, recorder_of, rows, slots, soon_gone
from tests.support.patience import until

PERIOD_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Made:
    recording: Recording
    offers: dict[str, Offer]
    notes: tuple[str, ...]
    ended: Ended
    left: list[int]
    """Processes that were the recorder's and are alive after it."""
    tool: int


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("recorder")
    cards = folder / "cards"
    cards.write_text("uuid-A uuid-B uuid-C", encoding="utf-8")
    recorder = recorder_of(
        folder,
        order("healthy", devices=2),
        order("hanging", behaviour="hang once", file=str(folder / "hung"), deadline_seconds=0.5, kill_seconds=1.0),
        order("pausing", behaviour="pause once", file=str(folder / "paused"), deadline_seconds=30.0),
        order("dying", behaviour="die", after=8),
        order("raising", behaviour="raise"),
        order("partial", devices=2, behaviour="not offered"),
        order("tool", behaviour="tool", file=str(folder / "tool.pid"), deadline_seconds=0.5, kill_seconds=1.0),
        order("moving", behaviour="come and go", file=str(cards)),
        order("chatting", behaviour="chatter"),
        order("absent", unavailable="no such tool here"),
        order("instead", fallback_for="absent"),
        order("spare", fallback_for="healthy"),
        order("broken", behaviour="raise at start"),
        period_seconds=PERIOD_SECONDS,
        rediscover_seconds=0.3,
    )
    try:
        offers = dict(recorder.wait_ready())
        recorder.phase("baseline")
        processes = {recorder.process_id, *children(recorder.process_id)}
        until(lambda: len(rows(recorder.run, "moving.csv")) > 5)
        cards.write_text("uuid-B uuid-C", encoding="utf-8")
        recorder.phase("steady")
        recorder.event("load", state="started", concurrency=8)
        recorder.add_facts(plan={"steady_seconds": 60}, sensors="not yours")
        until(lambda: len(rows(recorder.run, "moving.2.csv")) > 5)
        notes: list[str] = []

        def recovered() -> bool:
            notes.extend(recorder.notes())
            return all(f"{name}: sampling again" in notes for name in ("hanging", "dying", "tool"))

        until(lambda: (folder / "hung").exists() and (folder / "tool.pid").exists())
        until(recovered)
        processes |= {*children(recorder.process_id)}
        steady = ("healthy", "instead", "chatting")
        # Answers, not rows: on a machine that is busy with other tests a slot may pass without one.
        until(lambda: all(len(answers(recorder.run, f"{name}.csv")) > 40 for name in steady))
        ended = recorder.stop("the test is over")
    finally:
        recorder.stop()
    notes.extend(recorder.notes())
    tool = int((folder / "tool.pid").read_text(encoding="utf-8"))
    return Made(
        recording=read_run(recorder.run),
        offers=offers,
        notes=tuple(notes),
        ended=ended,
        left=soon_gone((*processes, tool)),
        tool=tool,
    )


LATE = "the reading before took longer than the period"
HELD_UP = (LATE, "the sampler was not run in time: the machine was overloaded, or it slept")


def reasons(recording: Recording, sensor: str) -> list[tuple[Missing, str]]:
    """Why a sensor's values were missing, but for slots that a busy machine had no time for."""
    return [
        (stretch.reason, stretch.detail)
        for stretch in recording.missing
        if stretch.sensor_id == sensor and stretch.detail not in HELD_UP
    ]


def test_it_ends_in_order_and_leaves_no_process(made: Made) -> None:
    assert made.ended == Ended(in_order=True, because="the test is over")
    assert made.recording.state == "finished"
    assert made.recording.facts["ended_because"] == "the test is over"
    assert made.left == []
    assert not [note for note in made.notes if "left behind" in note]


def test_offers_say_what_is_there_and_why_something_is_not(made: Made) -> None:
    reasons = {name: offer.reason for name, offer in made.offers.items() if not offer.available}
    assert reasons == {
        "absent": "no such tool here",
        "spare": "not needed: healthy is there",
        "broken": "tests.recording.fakes:make failed: RuntimeError: no such device",
    }
    assert [sensor.id for sensor in made.offers["healthy"].sensors] == [
        "healthy0.temperature_celsius",
        "healthy1.temperature_celsius",
    ]


def test_what_stands_in_for_an_absent_source_is_sampled(made: Made) -> None:
    assert made.recording.series["instead0.temperature_celsius"].present.sum() > 20
    assert "spare" not in made.recording.timing


def test_a_healthy_source_loses_no_slot_whatever_the_others_do(made: Made) -> None:
    """Each of the others hung, died, raised, chattered or changed meanwhile."""
    found = slots(made.recording, "healthy")
    assert (np.diff(found) == 1).all()
    assert len(found) > 40
    series = made.recording.series["healthy0.temperature_celsius"]
    # It counts its readings, so that a lost, doubled or exchanged one shows; a slot the machine had no time for is NaN.
    counted = series.values[series.present]
    assert (np.mod(np.diff(counted), 10) == 1).all()
    second = made.recording.series["healthy1.temperature_celsius"]
    assert np.array_equal(second.values, series.values + 1, equal_nan=True)


def test_times_lateness_and_duration_are_kept(made: Made) -> None:
    timing = made.recording.timing["healthy"]
    present = ~np.isnan(timing.lateness_ms)
    assert present.sum() == made.recording.series["healthy0.temperature_celsius"].present.sum()
    assert (timing.lateness_ms[present] >= 0).all()
    assert (timing.lateness_ms[present] <= PERIOD_SECONDS * 1000 * LATEST_SHARE + 1).all()
    assert (timing.read_ms[present] >= 0).all()
    # Real time minus lateness is the grid.
    due = timing.time_seconds[present] - timing.lateness_ms[present] / 1000
    offset = (due - due[0]) / PERIOD_SECONDS
    assert np.abs(offset - np.round(offset)).max() < 0.02


def test_the_priority_in_force_is_told(made: Made) -> None:
    for told in (made.recording.timing["healthy"].priority, made.recording.facts["recorder"]["priority"]):
        assert told == "SCHED_FIFO 1" or told.startswith("default: ")


def test_a_hung_source_is_missing_by_timeout_killed_and_started_anew(made: Made) -> None:
    series = made.recording.series["hanging0.temperature_celsius"]
    gone = np.flatnonzero(~series.present)
    assert gone.size >= 5
    assert series.present[gone[0] :].any()
    assert (np.diff(slots(made.recording, "hanging")) == 1).all()
    assert (Missing.TIMEOUT, "no answer within 0.5 s") in reasons(made.recording, series.sensor.id)
    assert "hanging: no answer for 1 s, so its process was killed" in made.notes


def test_a_source_that_answers_late_but_in_time_keeps_that_answer(made: Made) -> None:
    series = made.recording.series["pausing0.temperature_celsius"]
    timing = made.recording.timing["pausing"]
    slow = int(np.flatnonzero(timing.read_ms > 900)[0])
    assert series.present[slow]
    assert not series.present[slow + 1 : slow + 6].any(), "slots that passed while it read are missing, not made up for"
    why = made.recording.why_missing("pausing0.temperature_celsius", float(series.time_seconds[slow + 1]))
    assert why is not None
    assert why.detail == LATE


def test_a_source_whose_process_dies_comes_back(made: Made) -> None:
    series = made.recording.series["dying0.temperature_celsius"]
    gone = np.flatnonzero(~series.present)
    assert gone.size
    assert series.present[gone[0] :].any()
    told = reasons(made.recording, series.sensor.id)
    assert (Missing.UNREADABLE, "its process was ended by SIGSEGV") in told


def test_a_source_that_raises_is_missing_and_goes_on_being_asked(made: Made) -> None:
    series = made.recording.series["raising0.temperature_celsius"]
    assert not series.present[3:].any()
    assert len(series) > 20
    told = reasons(made.recording, series.sensor.id)
    assert told
    assert all("RuntimeError: the driver is confused" in detail for _, detail in told)


def test_one_field_that_is_not_offered_leaves_the_others(made: Made) -> None:
    first, second = (made.recording.series[f"partial{n}.temperature_celsius"] for n in (0, 1))
    assert first.present.any()
    assert not second.present.any()
    assert set(reasons(made.recording, second.sensor.id)) == {(Missing.NOT_OFFERED, "[N/A]")}
    assert len(made.recording.missing) < 100, "once a stretch, not once a cell"


def test_a_hung_tool_is_taken_down_with_its_reader(made: Made) -> None:
    assert not alive(made.tool)
    present = made.recording.series["tool0.temperature_celsius"].present
    assert present[int(np.flatnonzero(~present)[0]) :].any()


def test_a_card_that_went_leaves_the_others_under_their_names(made: Made) -> None:
    """Its source renumbers the rest; the names stay with the cards, in a new file."""
    first, second, third = (made.recording.series[f"moving{n}.temperature_celsius"] for n in (0, 1, 2))
    told = made.recording.facts["sources"]["moving"]["segments"]
    assert [segment["file"] for segment in told] == ["samples/moving.csv", "samples/moving.2.csv"]
    assert told[1]["sensors"] == ["moving1.temperature_celsius", "moving2.temperature_celsius"]
    assert second.sensor.identity == "uuid-B"
    assert third.sensor.identity == "uuid-C"
    assert not first.present[-5:].any()
    assert second.present[~first.present].any()
    # The fake gives its n-th device n degrees more: in the new numbering C has what B had before.
    assert np.unique((third.values - second.values)[second.present & third.present]).tolist() == [1.0]
    assert any("other sensors than before; 1 gone, 0 come" in note for note in made.notes)


def test_what_sources_print_and_their_tools_read_does_not_reach_the_recorder(made: Made) -> None:
    assert made.recording.series["chatting0.temperature_celsius"].present.sum() > 20
    assert not [note for note in made.notes if note.startswith("chatting")]


def test_phases_events_and_facts_are_noted(made: Made) -> None:
    baseline, steady = made.recording.phases
    assert (baseline.name, steady.name) == ("baseline", "steady")
    assert baseline.end_seconds == steady.start_seconds
    assert steady.end_seconds == made.recording.facts["end_seconds"]
    load = next(event for event in made.recording.events if event.kind == "load")
    assert load.detail == {"state": "started", "concurrency": 8}
    assert made.recording.facts["plan"] == {"steady_seconds": 60}
    assert made.recording.facts["bench"] == {"name": "test"}
    assert isinstance(made.recording.facts["sensors"], list), "what the recorder notes cannot be overwritten"


def test_the_run_is_sealed_and_a_change_shows(made: Made) -> None:
    run = made.recording.path
    assert made.recording.notes == ()
    assert set(made.recording.facts["sha256"]) >= {"events.jsonl", "missing.jsonl", "samples/healthy.csv"}
    write_summary(run, {"figures": {}})
    assert read_run(run).notes == ()
    with (run / "samples" / "healthy.csv").open("a", encoding="utf-8") as file:
        file.write("1.000,99,99,,\n")
    changed = read_run(run).notes
    assert "samples/healthy.csv: changed after the run was sealed" in changed
    seal(run)


def test_a_second_recorder_does_not_write_into_a_run_that_is_being_recorded(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("a")) as recorder:
        recorder.wait_ready()
        second = start_recorder(recorder.run, sources=[order("b")], period_seconds=1.0)
        with pytest.raises(RecorderError, match="another recorder writes to it"):
            second.wait_ready()
        assert not second.stop().in_order
        with pytest.raises(RunDirectoryError, match="still being recorded"):
            seal(recorder.run)
        assert read_run(recorder.run).state == "recording"
        assert recorder.alive


def test_a_slow_source_gets_a_longer_period_and_says_so(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("slow", seconds=0.12)) as recorder:
        offer = recorder.wait_ready()["slow"]
        assert offer.period_seconds >= 0.3
        until(lambda: len(rows(recorder.run, "slow.csv")) >= 3)
        assert any("so it is sampled every" in note for note in recorder.notes())
    recording = read_run(recorder.run)
    assert recording.series["slow0.temperature_celsius"].period_seconds == offer.period_seconds


def test_a_source_that_hangs_at_its_start_holds_up_nobody(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("hangs", behaviour="hang at start"), order("good")) as recorder:
        until(lambda: rows(recorder.run, "good.csv"))
        (hangs,) = [name for name in ("hangs", "good") if not (recorder.run / "samples" / f"{name}.csv").exists()]
        assert hangs == "hangs"
    assert read_run(recorder.run).state == "finished"


def test_a_time_limit_ends_it_and_so_do_signals_and_such_a_run_is_cut_off(tmp_path: Path) -> None:
    limited = recorder_of(tmp_path, order("a"), limit_seconds=2.0)
    signalled = {
        number: recorder_of(tmp_path, order("a", behaviour="hang at the end"))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }
    processes = []
    for number, recorder in signalled.items():
        recorder.wait_ready()
        processes += [recorder.process_id, *children(recorder.process_id)]
        os.kill(recorder.process_id, number)
    until(lambda: not any(recorder.alive for recorder in (limited, *signalled.values())))
    assert limited.stop() == Ended(in_order=True, because="the time limit of 2 s")
    for number, recorder in signalled.items():
        assert recorder.stop() == Ended(in_order=True, because=number.name)
    assert {read_run(recorder.run).state for recorder in (limited, *signalled.values())} == {"cut off"}
    assert soon_gone(processes) == []


def test_a_source_has_time_to_give_back_what_it_holds(tmp_path: Path) -> None:
    """A BMC takes seconds to end a session, and has few of them."""
    given_back = tmp_path / "given back"
    with recorder_of(tmp_path, order("a", behaviour="slow at the end", file=str(given_back))) as recorder:
        recorder.wait_ready()
    assert recorder.stop().in_order
    assert given_back.exists()


def test_whoever_waits_for_an_end_has_more_patience_than_what_it_waits_for() -> None:
    """Else a run of a busy machine, or of a slow disk, is cut off by those that could have waited."""
    lane = lane_process._OWN_END_SECONDS + lane_process._GRACE_SECONDS + lane_process._CLOSE_SECONDS
    assert client.CLOSE_SECONDS < lane_process._CLOSE_SECONDS
    assert lane < recorder_module._LANES_END_SECONDS
    ends = recorder_module._LANES_END_SECONDS + recorder_module._KILLED_SECONDS + recorder_module._SEAL_SECONDS
    assert ends < running.STOP_SECONDS


def test_keys_reach_neither_the_process_nor_the_run(tmp_path: Path) -> None:
    key = "sk-very-secret-0123456789"
    recorder = start_recorder(
        create_run(tmp_path, facts={}),
        sources=[order("a")],
        period_seconds=0.1,
        secrets=[SecretStr(key)],
        environ={**os.environ, "TAOTOKEN_API_KEY": key, "WRAPPED": f"Bearer {key}"},
        import_paths=[str(ROOT)],
    )
    with recorder:
        recorder.wait_ready()
        recorder.event("warning", text=f"401 with {key}")
        recorder.add_facts(bench={"url": f"http://host/?key={key}"})
        for process in (recorder.process_id, *children(recorder.process_id)):
            for file in ("environ", "cmdline"):
                assert key.encode() not in Path(f"/proc/{process}/{file}").read_bytes()
    written = b"".join(path.read_bytes() for path in recorder.run.rglob("*") if path.is_file())
    assert key.encode() not in written
    assert b"[key sk-v" in written


@pytest.mark.parametrize(
    "orders, period_seconds, seen",
    [
        ([order("a"), order("a")], 1.0, "two sources are called 'a'"),
        ([order("a")], 0.001, "a period of 0.001 s; it must be between 0.05 and 3600 s"),
        ([order("a", period_seconds=1e6)], 1.0, "source 'a': a period of 1000000.0 s"),
        ([order("a")], float("nan"), "a period of nan s"),
    ],
)
def test_impossible_orders_are_refused_before_anything_starts(
    tmp_path: Path, orders: list[object], period_seconds: float, seen: str
) -> None:
    run = create_run(tmp_path, facts={})
    with pytest.raises(RecorderError, match="the recording cannot be made") as refused:
        start_recorder(run, sources=orders, period_seconds=period_seconds)  # type: ignore[arg-type]
    assert seen in str(refused.value)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no run\.json"):
        start_recorder(tmp_path, sources=[], period_seconds=1.0)


def test_run_json_is_whole_at_every_moment(tmp_path: Path) -> None:
    with recorder_of(tmp_path, order("a")) as recorder:
        for number in range(200):
            recorder.add_facts(number=number, filler="x" * 2000)
            json.loads((recorder.run / "run.json").read_bytes())
    assert read_run(recorder.run).facts["number"] == 199
