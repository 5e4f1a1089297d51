"""Load and throttling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.model import Outcome
from pytest_thermal.model.series import Series
from pytest_thermal.recording import Event, Recording
from tests.analysis.signals import Floats, Plan, with_gap
from tests.findings.recordings import (
    CAP,
    CPU,
    FACTS,
    GPU,
    HOT,
    PLAN,
    USE,
    WATTS,
    changed,
    healthy,
    in_phase,
    judged,
    limits,
    made_series,
    requests,
    without,
)

PASSED, FAILED, OPEN, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.SKIPPED


def first_line(message: str) -> str:
    return message.splitlines()[0]


# --------------------------------------------------------------------------------------------------------------- load


def test_a_device_loaded_in_full() -> None:
    found = judged(healthy()).finding("load", "gpu0")
    assert found.outcome is PASSED
    assert found.message == "load: gpu0 was loaded in full in steady: utilisation 99 %, 620 W over 57 W at idle"


def test_a_device_that_was_not() -> None:
    run = changed(healthy(), USE, lambda values, _: values * 0.5)
    found = judged(run).finding("load", "gpu0")
    assert found.outcome is FAILED
    assert found.message.splitlines() == [
        "load: gpu0 was not loaded in full in steady: utilisation is 50 %, below 90 %",
        "likely: too little work for it, or work that waits for something else",
        "try: --find-concurrency, or [stress] mode gpu where the model is served by another machine",
    ]


def test_a_load_that_ends_shortly_before_the_end_is_none_although_its_mean_is_high() -> None:
    gone = PLAN.load_off - 150.0

    def ends(values: Floats, plan: Plan) -> Floats:
        return np.where(plan.times >= gone, 0.0, values)

    run = without(changed(healthy(), USE, ends), WATTS)
    steady = in_phase("steady")
    assert run.series[USE].values[steady].mean() > 90
    found = judged(run).finding("load", "gpu0")
    assert found.outcome is FAILED
    assert "in the last 5 min: utilisation is 50 %, below 90 %" in found.seen


def test_what_ended_a_load_is_told() -> None:
    run = changed(healthy(), USE, lambda values, plan: np.where(plan.times > PLAN.load_on + 1000, 0.0, values))
    events = (
        Event(time_seconds=PLAN.load_on + 1000, kind="load", detail={"what": "started", "load": "accelerator"}),
        Event(
            time_seconds=PLAN.load_on + 1000,
            kind="load",
            detail={"what": "lost", "load": "accelerator", "text": "the accelerator load (gpu_burn) was lost: exit 1"},
        ),
    )
    judgement = judged(replace(run, events=events))
    found = judgement.finding("load", "gpu0")
    assert "likely: the accelerator load (gpu_burn) was lost: exit 1" in found.message
    assert "try: see what ended it in events.jsonl" in found.message
    assert judgement.finding("load", "cpu0").warnings == ()
    assert judgement.warnings() == ("the accelerator load (gpu_burn) was lost: exit 1",)


def test_a_load_that_was_not_measured() -> None:
    found = judged(without(healthy(), USE, WATTS)).finding("load", "gpu0")
    assert found.outcome is OPEN
    assert found.message.splitlines() == [
        "inconclusive: load: whether gpu0 was loaded is not known: utilisation: not measured; power: not measured",
        "try: log gpu0.utilization_percent (nvidia-smi: utilization.gpu) or gpu0.power_watts beside the temperature",
    ]


def test_a_load_that_was_measured_in_part_only() -> None:
    run = changed(healthy(), USE, lambda values, plan: with_gap(values, plan.times, 600.0, 60.0))
    assert judged(run).finding("load", "gpu0").outcome is PASSED  # the power shows it
    found = judged(without(run, WATTS)).finding("load", "gpu0")
    assert found.outcome is OPEN
    assert "utilisation: no reading for 65 s, 13 ticks in steady" in found.seen


def test_a_throughput_that_fell_accuses_no_device_whose_readings_have_holes() -> None:
    """Whoever loads it may have stood still, as whoever reads it did."""
    whole = healthy()
    assert whole.requests is not None
    last = PLAN.load_off - 800.0  # of 2400 s of steady
    starts = whole.requests.start_seconds
    kept = starts[(starts < last) | (np.arange(starts.size) % 2 == 0)]
    less = replace(whole, requests=requests(kept, np.full(kept.size, 2.0)), facts={**FACTS, "gateways": HERE})
    assert judged(less).finding("load", "gpu0").outcome is PASSED  # what it did is measured
    held_up = less
    for name in (USE, WATTS):
        held_up = changed(held_up, name, lambda values, plan: with_gap(values, plan.times, 600.0, 60.0))
    found = judged(held_up).finding("load", "gpu0")
    assert found.outcome is OPEN
    assert "utilisation: no reading for 65 s, 13 ticks in steady" in found.seen
    found = judged(without(less, USE, WATTS)).finding("load", "gpu0")
    assert found.outcome is FAILED  # nothing else is known
    assert found.seen.endswith("inference throughput fell to 50%")


HERE = {"east": "http://127.0.0.1:8000/v1"}


def test_answers_prove_a_load_only_of_the_machine_that_computes_them() -> None:
    run = without(healthy(), USE, WATTS)
    there = replace(run, facts={**FACTS, "gateways": {"east": "https://gateway.example/v1"}})
    assert judged(there).finding("load", "gpu0").outcome is OPEN
    for url in ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"):
        here = replace(run, facts={**FACTS, "gateways": {"east": url}})
        found = judged(here).finding("load", "gpu0")
        assert found.outcome is PASSED
        assert found.seen.endswith("inference throughput held at 100 %")


# ---------------------------------------------------------------------------------- a processor that others had, too


def accounted(share: float, *, start: float = 0.0, end: float = 2400.0, **more: object) -> tuple[Event, ...]:
    """What the loads had of eight cores, booked every 30 s from ``start`` to ``end`` of steady."""
    begin = PLAN.phases["steady"].start_seconds
    return tuple(
        Event(
            time_seconds=float(begin + at + 30.0),
            kind="load",
            detail={"what": "used", "load": "cpu", "seconds": 30.0, "cpu_seconds": 240.0 * share, "cores": 8, **more},
        )
        for at in np.arange(start, end, 30.0)
    )


STARVED = Event(
    time_seconds=PLAN.phases["steady"].start_seconds + 60.0,
    kind="load",
    detail={"what": "starved", "beside": "make (process 7, 3.9 cores)", "text": "the loads had 52 %"},
)


def test_a_processor_whose_time_was_its_loads_own() -> None:
    found = judged(replace(healthy(), events=accounted(0.97))).finding("load", "cpu0")
    assert found.outcome is PASSED
    assert found.seen.endswith("97 % of the time of 8 cores its load's own")
    assert found.evidence["own_share_percent"] == pytest.approx(97.0)


@pytest.mark.parametrize("check, subject", [("load", "cpu0"), ("rise", CPU), ("threshold", CPU), ("settled", CPU)])
def test_a_processor_that_was_busy_with_others_work_leaves_its_findings_open(check: str, subject: str) -> None:
    run = replace(healthy(), events=(*accounted(0.52), STARVED))
    found = judged(run).finding(check, subject)
    assert found.outcome is OPEN
    assert found.message.splitlines() == [
        (
            f"inconclusive: {check}: whether cpu0 was loaded in full is not known: "
            "it was busy, but the load itself had 52 % of its 8 cores' time, below 80 %"
        ),
        "likely: something else computed beside it: make (process 7, 3.9 cores)",
        "try: end what runs beside it; where that belongs to the bench: thermal_limits own_share_least",
    ]
    # Whoever had the processor: what is said of the card does not change.
    assert judged(run).finding("load", "gpu0").outcome is PASSED


def test_what_held_the_load_up_is_told() -> None:
    quota = judged(replace(healthy(), events=accounted(0.5, quota_cores=4.0))).finding("load", "cpu0")
    assert quota.outcome is OPEN
    assert quota.likely == "its control group may use 4 of these 8 cores"
    idle = changed(healthy(), "cpu0.utilization_percent", lambda values, _: values * 0.4)
    idle = changed(idle, "cpu0.package.power_watts", lambda values, _: np.full_like(values, 41.0))
    stopped = judged(replace(idle, events=accounted(0.4, stopped=0.6))).finding("load", "cpu0")
    assert stopped.outcome is FAILED
    assert "utilisation is 39 %, below 90 %" in stopped.seen
    assert stopped.likely == "it stood still (SIGSTOP, a debugger, a batch system) for 60 % of that time"


def test_a_load_that_lost_the_processor_at_the_end_of_steady() -> None:
    events = (*accounted(1.0, end=2100.0), *accounted(0.3, start=2100.0))
    found = judged(replace(healthy(), events=events)).finding("rise", CPU)
    assert found.outcome is OPEN
    assert "in the last 5 min: the load itself had 30 % of its 8 cores' time" in found.seen


def test_a_run_that_does_not_tell_its_loads_time_is_judged_as_before() -> None:
    at = PLAN.phases["steady"].end_seconds
    wrong: list[dict[str, object]] = [
        {},
        {"seconds": 0.0},
        {"seconds": "long"},
        {"seconds": 2400.0, "cores": 0},
        {"seconds": float("nan")},
    ]
    broken = tuple(
        Event(time_seconds=at, kind="load", detail={"what": "used", "cpu_seconds": 1.0, "cores": 8, **one})
        for one in wrong
    )
    for events in ((), accounted(0.1, end=600.0), broken):
        assert judged(replace(healthy(), events=events)).finding("load", "cpu0").outcome is PASSED


def test_where_the_machine_serves_its_requests_itself_its_load_has_to_share() -> None:
    here = {**FACTS, "gateways": {"east": "http://127.0.0.1:8000/v1"}}
    for share, outcome in ((0.6, PASSED), (0.4, OPEN)):
        run = replace(healthy(), facts=here, events=accounted(share))
        assert judged(run).finding("load", "cpu0").outcome is outcome


def test_how_much_it_must_have_can_be_set() -> None:
    allowed = limits(own_share_least=(50.0, "conftest.py"))
    assert judged(replace(healthy(), events=accounted(0.52)), limits=allowed).finding("load", "cpu0").outcome is PASSED


def test_a_simulated_processor_has_no_time_of_its_own() -> None:
    run = replace(healthy(), facts={**FACTS, "simulated": True}, events=accounted(0.1))
    assert judged(run).finding("load", "cpu0").outcome is PASSED


# --------------------------------------------------------------------------------------------------------- throttling


def counting_up(values: Floats, plan: Plan) -> Floats:
    """20 ms of each second of the first 100 s of steady."""
    start = plan.phases["steady"].start_seconds
    return np.clip(plan.times - start, 0.0, 100.0) * 20.0


def test_no_throttling() -> None:
    found = judged(healthy()).finding("throttling", "gpu0")
    assert found.outcome is PASSED
    assert found.message == "throttling: gpu0 did not slow itself down because of heat"


def test_throttling_by_heat() -> None:
    found = judged(changed(healthy(), HOT, counting_up)).finding("throttling", "gpu0")
    assert found.outcome is FAILED
    assert first_line(found.message) == (
        "throttling: gpu0 slowed itself down for 2000 ms in steady because of heat, more than 0 ms (default)"
    )
    assert found.evidence["steady_thermal_milliseconds"] == pytest.approx(2000.0)
    assert found.evidence["ramp_thermal_milliseconds"] == 0.0
    allowed = limits(throttling_most=(2500.0, "conftest.py"))
    assert judged(changed(healthy(), HOT, counting_up), limits=allowed).finding("throttling", "gpu0").outcome is PASSED


def test_throttling_by_heat_fails_although_nobody_knows_the_load() -> None:
    run = without(changed(healthy(), HOT, counting_up), USE, WATTS)
    assert judged(run).finding("throttling", "gpu0").outcome is FAILED


def test_a_power_cap_is_told_and_fails_nothing() -> None:
    found = judged(changed(healthy(), CAP, counting_up)).finding("throttling", "gpu0")
    assert found.outcome is PASSED
    assert found.warnings == ("gpu0 was slowed down for 2000 ms in steady: power_cap (power)",)


def test_what_was_throttled_before_the_run_is_none_of_it() -> None:
    run = changed(healthy(), HOT, lambda values, _: values + 123_456.0)
    assert judged(run).finding("throttling", "gpu0").outcome is PASSED


def with_register(bits: int) -> Recording:
    """A device that has no counters, and in steady these reasons for a while."""
    run = without(healthy(), HOT, CAP)
    start = PLAN.phases["steady"].start_seconds
    active = (PLAN.times >= start + 100) & (PLAN.times < start + 130)
    register: Series = made_series("gpu0.throttle_reasons_bits", np.where(active, float(bits), 1.0))
    return replace(run, series={**run.series, register.sensor.id: register})


@pytest.mark.parametrize(
    "bits, outcome",
    [(0x20, FAILED), (0x40, FAILED), (0x48, FAILED), (0x4, PASSED), (0x88, PASSED), (0x8, OPEN), (0x1, PASSED)],
)
def test_a_register_of_reasons_is_read_where_there_are_no_counters(bits: int, outcome: Outcome) -> None:
    found = judged(with_register(bits)).finding("throttling", "gpu0")
    assert found.outcome is outcome
    if outcome is FAILED:
        assert "slowed itself down for 30 s in steady because of heat" in found.seen
    if outcome is OPEN:
        assert "by its hardware, for heat or power: it does not say which" in found.seen


@pytest.mark.parametrize(
    "active, outcome",
    [
        ("socket_thermal", FAILED),
        ("prochot", FAILED),
        ("ppt", PASSED),
        ("", PASSED),
    ],
)
def test_flags_of_single_reasons_are_read_where_there_are_no_counters(active: str, outcome: Outcome) -> None:
    run = without(healthy(), HOT, CAP)
    for reason in ("prochot", "socket_thermal", "ppt"):
        run = with_flag(run, reason, active=reason == active)
    assert judged(run).finding("throttling", "gpu0").outcome is outcome


@pytest.mark.parametrize("active, outcome", [(False, PASSED), (True, OPEN)])
def test_a_device_that_says_only_whether_it_is_slowed_down(active: bool, outcome: Outcome) -> None:
    run = with_flag(without(healthy(), HOT, CAP), "slowdown", active=active)
    assert judged(run).finding("throttling", "gpu0").outcome is outcome


def with_flag(run: Recording, reason: str, *, active: bool) -> Recording:
    """A flag that is up for half a minute of steady, or never."""
    start = PLAN.phases["steady"].start_seconds
    held = (PLAN.times >= start + 100) & (PLAN.times < start + 130) & active
    flag: Series = made_series(f"gpu0.throttle.{reason}_bits", held.astype(float))
    return replace(run, series={**run.series, flag.sensor.id: flag})


def test_a_device_whose_heat_is_no_reason_it_reports() -> None:
    found = judged(without(healthy(), HOT)).finding("throttling", "gpu0")
    assert found.outcome is OPEN
    assert "none of the reasons that the device reports is thermal" in found.seen


def test_a_counter_with_a_hole_under_load() -> None:
    run = changed(healthy(), HOT, lambda values, plan: with_gap(values, plan.times, 1500.0, 60.0))
    found = judged(run).finding("throttling", "gpu0")
    assert found.outcome is OPEN
    assert f"{HOT} has holes in steady" in found.seen


def test_an_idle_device_that_does_not_throttle_has_shown_nothing() -> None:
    run = changed(healthy(), USE, lambda values, _: values * 0)
    assert judged(run).finding("throttling", "gpu0").outcome is OPEN
    assert judged(run, loads=("cpu",)).finding("throttling", "gpu0").outcome is SKIPPED


def test_how_hot_it_was_is_told_beside_the_throttling() -> None:
    found = judged(changed(healthy(), HOT, counting_up)).finding("throttling", "gpu0")
    assert "at 65.0 °C at most" in found.likely
    assert GPU in judged(healthy()).subjects("rise")
