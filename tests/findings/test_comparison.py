"""Which earlier run is chosen, and what drift against it is concluded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_thermal.findings import Earlier, choose_earlier
from pytest_thermal.model import Outcome
from pytest_thermal.recording import open_recording
from tests.analysis.signals import HEALTHY
from tests.findings.archives import write_run
from tests.findings.recordings import (
    CPU,
    FACTS,
    GPU,
    PLAN,
    USE,
    WATTS,
    changed,
    healthy,
    judged,
    with_limits,
    without,
    without_phase,
)

PASSED, FAILED, OPEN, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.SKIPPED
AGED = replace(HEALTHY, contact=HEALTHY.contact * 1.5)


def first_line(message: str) -> str:
    return message.splitlines()[0]


def against(recording: object, *, name: str = "latest", why: tuple[str, ...] = ()) -> Earlier:
    return Earlier(name=name, recording=recording, why=why)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------------- drift


def test_no_drift() -> None:
    found = judged(healthy(seed=2), earlier=against(healthy())).finding("drift", GPU)
    assert found.outcome is PASSED
    assert first_line(found.message) == (
        f"drift: {GPU} gets 0.1 ± 0.5 °C hotter than in 20270115T080000Z_lab-7, by its resistance; "
        "less than 5 °C (default)"
    )
    assert found.evidence["by"] == "resistance"


def test_paste_that_has_aged_since_is_named_by_the_earlier_curve() -> None:
    judgement = judged(healthy(loop=AGED), earlier=against(healthy()))
    found = judgement.finding("drift", GPU)
    assert found.outcome is FAILED
    assert first_line(found.message).endswith("by its resistance; 5 °C (default) or more fails")
    assert "likely: contact or paste: +6." in found.message
    assert "try: mount the cold plate anew" in found.message


def test_a_run_that_is_not_comparable_names_no_fault() -> None:
    other = replace(healthy(), facts={**FACTS, "load": {"mode": "cpu"}})
    idle = changed(healthy(), USE, lambda values, _: values * 0.5)
    hot = healthy(loop=replace(HEALTHY, contact=HEALTHY.contact * 1.6))
    assert "likely: contact or paste: +" in judged(hot, earlier=against(healthy())).finding("rise", GPU).message
    for earlier in (other, idle):
        found = judged(hot, earlier=against(earlier, name="old")).finding("rise", GPU)
        assert found.outcome is FAILED
        assert "likely: one of these: " in found.message


def test_without_power_the_rises_are_compared() -> None:
    now, then = without(healthy(loop=AGED), WATTS), without(healthy(), WATTS)
    found = judged(now, earlier=against(then)).finding("drift", GPU)
    assert found.outcome is FAILED
    assert "by its rise" in found.seen


def test_much_cooler_is_told() -> None:
    found = judged(healthy(), earlier=against(healthy(loop=AGED))).finding("drift", GPU)
    assert found.outcome is PASSED
    assert "cooler than in" in found.seen
    assert len(found.warnings) == 1


def test_drift_that_fails_does_so_although_the_load_is_not_proven() -> None:
    now = changed(without(healthy(loop=AGED), WATTS), USE, lambda values, _: values * 0.5)
    found = judged(now, earlier=against(without(healthy(), WATTS))).finding("drift", GPU)
    assert found.outcome is FAILED


def test_drift_that_would_pass_needs_the_load_in_both_runs() -> None:
    idle = changed(healthy(), USE, lambda values, _: values * 0.5)
    assert judged(idle, earlier=against(healthy())).finding("drift", GPU).outcome is OPEN
    found = judged(healthy(), earlier=against(idle)).finding("drift", GPU)
    assert found.outcome is OPEN
    assert "the earlier run 20270115T080000Z_lab-7 is no ground to compare on: gpu0 was not loaded" in found.seen


def test_nothing_to_compare_with() -> None:
    found = judged(healthy(), earlier=against(None, why=("reports/runs holds no earlier run of this bench",)))
    assert found.finding("drift", GPU).outcome is SKIPPED
    assert found.finding("drift", GPU).seen == (
        f"{GPU}: no earlier run to compare with: reports/runs holds no earlier run of this bench"
    )
    asked = judged(healthy(), earlier=against(None, name="old", why=("old: there is nothing of that name",)))
    assert asked.finding("drift", GPU).outcome is OPEN
    assert first_line(asked.finding("drift", GPU).message) == (
        "inconclusive: drift: no comparison with old: old: there is nothing of that name"
    )
    assert judged(healthy()).finding("drift", GPU).outcome is SKIPPED


def test_a_run_asked_for_by_name_that_is_not_comparable_is_an_open_question() -> None:
    other = replace(healthy(), facts={**FACTS, "load": {"mode": "gpu"}})
    found = judged(healthy(), earlier=against(other, name="old")).finding("drift", GPU)
    assert found.outcome is OPEN
    assert (
        "not comparable with 20270115T080000Z_lab-7: another load: concurrent_requests was not set, now 8" in found.seen
    )
    skipped = judged(healthy(), earlier=against(other)).finding("drift", GPU)
    assert skipped.outcome is SKIPPED


def test_another_card_in_the_same_place_is_not_the_same_sensor() -> None:
    then = healthy()
    one = then.series[GPU]
    swapped = replace(one, sensor=replace(one.sensor, identity="GPU-another"))
    earlier = replace(then, series={**then.series, GPU: swapped})
    judgement = judged(healthy(), earlier=against(earlier, name="old"))
    assert judgement.finding("drift", GPU).outcome is OPEN
    assert "another set of sensors" in judgement.finding("drift", CPU).seen


# ------------------------------------------------------------------------------------------------------------- choice


def test_the_newest_run_is_chosen(tmp_path: Path) -> None:
    write_run(tmp_path, healthy(), days_ago=9)
    newest = write_run(tmp_path, healthy(seed=3), days_ago=2)
    now = open_recording(write_run(tmp_path, healthy(seed=4)))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is not None
    assert found.recording.path == newest
    assert found.why == ()
    assert not found.named
    assert judged(now, earlier=found).finding("drift", GPU).outcome is PASSED


def test_each_newer_run_that_is_passed_over_is_told_with_its_reason(tmp_path: Path) -> None:
    chosen = write_run(tmp_path, healthy(), days_ago=9)
    write_run(tmp_path, healthy(), days_ago=7, state="cut off")
    write_run(tmp_path, healthy(), days_ago=6, load={"mode": "gpu"})
    write_run(tmp_path, healthy(), days_ago=5, simulated=True)
    write_run(tmp_path, without_phase(healthy(), "steady"), days_ago=4)
    write_run(tmp_path, with_limits(healthy(), WATTS, cap=500.0), days_ago=3)
    write_run(tmp_path, healthy(), days_ago=2, plan={"seconds": {"steady": 3600.0}})
    write_run(tmp_path, healthy(), days_ago=1, bench="lab-8", host="lab-8")
    (tmp_path / "20270101T000000Z_broken").mkdir()
    (tmp_path / "20270101T000000Z_broken" / "run.json").write_text("{")
    later = write_run(tmp_path, healthy(), days_ago=-1)
    now = open_recording(write_run(tmp_path, healthy(seed=4)))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is not None
    assert found.recording.path == chosen
    told = "\n".join(found.why)
    assert len(found.why) == 7, told
    assert "damaged" in found.why[0]
    assert [line.split(": ", 1)[1] for line in found.why[1:]] == [
        "another length of steady: was 3600 s, now 2400 s",
        "another power limit of gpu0: was 500 W, now not known",
        "it has no steady",
        "another bench: lab-7 (simulated), now lab-7",
        "another load: concurrent_requests was not set, now 8; another load: mode was gpu, now mixed",
        "it is not finished: cut off",
    ]
    assert later.name not in told


def test_a_run_that_was_cut_short_is_no_measure_for_others(tmp_path: Path) -> None:
    """Neither one whose director was killed, nor one that was ended in the middle of steady."""
    steady = PLAN.phases["steady"]
    phases = {**PLAN.phases, "steady": replace(steady, end_seconds=steady.start_seconds + 900.0)}
    cut = replace(healthy(), phases=tuple(phases.values()))
    killed = write_run(tmp_path, healthy(), days_ago=3, ended_because="the process that recorded is gone")
    short = write_run(tmp_path, cut, days_ago=2, ended_because="interrupted by KeyboardInterrupt")
    now = open_recording(write_run(tmp_path, healthy(seed=4)))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is None
    assert found.why == (
        f"{short.name}: its steady was cut short: 15 min of 40 min",
        f"{killed.name}: it is not finished: cut off",
    )
    for run, why in ((killed, "it is not finished: cut off"), (short, "its steady was cut short: 15 min of 40 min")):
        asked = judged(now, earlier=choose_earlier(tmp_path, now, run.name)).finding("drift", GPU)
        assert asked.outcome is OPEN
        assert asked.seen == f"not comparable with {run.name}: {why}"


@pytest.mark.parametrize("damaged", [{"sources": [1]}, {"load": 7, "phases": [None]}, {"sensors": 3}, {"host": 1}])
def test_a_run_of_another_shape_is_passed_over_or_refused_by_name(tmp_path: Path, damaged: dict[str, Any]) -> None:
    older = write_run(tmp_path, healthy(), days_ago=3)
    odd = write_run(tmp_path, healthy(), days_ago=2, **damaged)
    now = open_recording(write_run(tmp_path, healthy(seed=4)))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is not None
    assert found.recording.path in (older, odd)
    asked = choose_earlier(tmp_path, now, odd.name)
    assert judged(now, earlier=asked).finding("drift", GPU).outcome in (PASSED, OPEN)
    (odd / "run.json").write_text(json.dumps({"format": 1, "start_seconds": 1.0, "sensors": "x", "phases": {"a": 1}}))
    assert choose_earlier(tmp_path, now, "latest").recording is not None
    assert choose_earlier(tmp_path, now, odd.name).recording is None


def test_a_run_that_failed_itself_is_no_measure_for_others(tmp_path: Path) -> None:
    good = write_run(tmp_path, healthy(), days_ago=3)
    hot = write_run(tmp_path, healthy(loop=AGED), days_ago=2)
    failed = [{"check": check, "outcome": "failed"} for check in ("drift", "coverage", "rise", "rise")]
    (hot / "summary.json").write_text(json.dumps({"findings": [*failed, {"check": "pump", "outcome": "passed"}]}))
    now = open_recording(write_run(tmp_path, healthy(loop=AGED)))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is not None
    assert found.recording.path == good
    assert found.why == (f"{hot.name}: it failed itself: rise, drift",)
    assert judged(now, earlier=found).finding("drift", GPU).outcome is FAILED
    asked = choose_earlier(tmp_path, now, hot.name)
    assert asked.recording is not None
    assert judged(now, earlier=asked).finding("drift", GPU).outcome is PASSED
    (hot / "summary.json").write_text(json.dumps({"findings": [{"check": "throughput", "outcome": "failed"}]}))
    again = choose_earlier(tmp_path, now, "latest").recording
    assert again is not None
    assert again.path == hot


def test_runs_of_other_benches_are_counted(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        write_run(tmp_path, healthy(), days_ago=day, bench="lab-8", host="lab-8")
    now = open_recording(write_run(tmp_path, healthy()))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is None
    assert found.why == ("3 runs of other benches",)


def test_an_empty_archive(tmp_path: Path) -> None:
    found = choose_earlier(tmp_path / "none", healthy(), "latest")
    assert found.recording is None
    assert found.why == (f"{tmp_path / 'none'} holds no earlier run of this bench",)


def test_no_comparison_is_wanted(tmp_path: Path) -> None:
    write_run(tmp_path, healthy(), days_ago=9)
    found = choose_earlier(tmp_path, healthy(), "none")
    assert found.recording is None
    assert not found.named


def test_a_run_by_name_and_by_path(tmp_path: Path) -> None:
    other = write_run(tmp_path, healthy(), days_ago=9, load={"mode": "gpu"})
    now = open_recording(write_run(tmp_path, healthy()))
    for asked in (other.name, str(other), other):
        found = choose_earlier(tmp_path, now, asked)
        assert found.named
        assert found.recording is not None
        assert found.recording.path == other
        assert found.why[-1] == "another load: mode was gpu, now mixed"
    missing = choose_earlier(tmp_path, now, "nowhere")
    assert missing.recording is None
    assert "there is nothing of that name" in missing.why[0]
    itself = choose_earlier(tmp_path, now, now.path)
    assert itself.recording is None
    assert itself.why == ("that is this very run",)


def test_a_damaged_run_is_no_reason_to_stop(tmp_path: Path) -> None:
    run = write_run(tmp_path, healthy(), days_ago=1)
    (run / "samples" / "invented.csv").write_bytes(b"\xff\x00\xfe" * 100)
    older = write_run(tmp_path, healthy(), days_ago=2)
    now = open_recording(write_run(tmp_path, healthy()))
    found = choose_earlier(tmp_path, now, "latest")
    assert found.recording is not None
    assert found.recording.path == older
    assert "another set of sensors: 3 new" in found.why[0]


def test_the_demo_benchs_earlier_run_is_compared_in_the_time_of_a_real_loop(tmp_path: Path) -> None:
    fast = {**FACTS, "simulated": True, "time_scale": 20.0, "plan": {"seconds": {"steady": 120.0}}}
    run = replace(healthy(), facts=fast)
    start = PLAN.times[0]
    series = {
        name: replace(one, time_seconds=start + (one.time_seconds - start) / 20, period_seconds=0.25)
        for name, one in run.series.items()
    }
    phases = tuple(
        replace(
            phase,
            start_seconds=start + (phase.start_seconds - start) / 20,
            end_seconds=start + (phase.end_seconds - start) / 20,
        )
        for phase in run.phases
    )
    quick = replace(run, series=series, phases=phases, requests=None)
    write_run(tmp_path, quick, days_ago=1)
    earlier = choose_earlier(tmp_path, quick, "latest")
    judgement = judged(quick, earlier=earlier, time_scale=20.0, simulated=True)
    found = judgement.finding("drift", GPU)
    assert found.outcome is PASSED, found.message
    assert found.evidence["drift_celsius"] == pytest.approx(0.0, abs=0.1)
    assert found.evidence["simulated"] is True
    assert np.ptp(judgement.recording.series[GPU].time_seconds) > 3000
