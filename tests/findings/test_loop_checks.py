"""Pump and rebound."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.model import Outcome
from tests.analysis.signals import Floats, Plan, with_gap
from tests.findings.recordings import (
    GPU,
    PLAN,
    PUMP,
    USE,
    WATTS,
    Change,
    changed,
    healthy,
    in_phase,
    judged,
    limits,
    loaded,
    without,
    without_phase,
)

PASSED, FAILED, OPEN = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE
STEADY = PLAN.phases["steady"].start_seconds


def first_line(message: str) -> str:
    return message.splitlines()[0]


def from_on(seconds: float, speed: float, length: float = 1e9) -> Change:
    def change(values: Floats, plan: Plan) -> Floats:
        low = (plan.times >= STEADY + seconds) & (plan.times < STEADY + seconds + length)
        return np.where(low, speed, values).astype(np.float64)

    return change


def test_a_pump_that_turns() -> None:
    found = judged(healthy()).finding("pump", PUMP)
    assert found.outcome is PASSED
    assert found.message.startswith(f"pump: {PUMP} turns at 2800 rpm, at its slowest at 27")


def test_a_pump_that_stops() -> None:
    found = judged(changed(healthy(), PUMP, from_on(600.0, 0.0))).finding("pump", PUMP)
    assert found.outcome is FAILED
    seen = f"{PUMP} stood still for 30 min from 10 min into steady on"
    assert found.message.splitlines() == [
        f"pump: {seen} (2799 rpm otherwise; at least 50 % (default) of that)",
        "likely: the pump lost its power, is blocked, or its control turns it down",
        "try: take the load off; look at its connector and its control, listen to it",
    ]


def test_a_pump_that_slows_down_for_a_while() -> None:
    run = changed(healthy(), PUMP, from_on(600.0, 1300.0, 60.0))
    found = judged(run).finding("pump", PUMP)
    assert found.outcome is FAILED
    assert "fell to 1300 rpm for 60 s from 10 min into steady on" in found.seen
    relaxed = limits(pump_least=(0.4, "conftest.py"))
    assert judged(run, limits=relaxed).finding("pump", PUMP).outcome is PASSED


def test_two_readings_of_nothing_are_the_tachometers() -> None:
    run = changed(healthy(), PUMP, from_on(600.0, 0.0, 10.0))
    assert judged(run).finding("pump", PUMP).outcome is PASSED


def test_a_pump_that_never_turned() -> None:
    found = judged(changed(healthy(), PUMP, lambda values, _: values * 0)).finding("pump", PUMP)
    assert found.outcome is FAILED
    assert "stood still" in found.seen
    assert "and never turned" in found.seen


def test_a_pump_that_rests_at_idle_and_turns_under_load() -> None:
    run = changed(healthy(), PUMP, lambda values, _: np.where(loaded(), values, 0.0))
    assert judged(run).finding("pump", PUMP).outcome is PASSED


def test_a_pump_that_nobody_saw() -> None:
    run = changed(healthy(), PUMP, lambda values, plan: with_gap(values, plan.times, 600.0, 60.0))
    assert judged(run).finding("pump", PUMP).outcome is OPEN
    gone = changed(healthy(), PUMP, lambda values, _: np.full(values.size, np.nan))
    found = judged(gone).finding("pump", PUMP)
    assert found.outcome is OPEN
    assert first_line(found.message) == f"inconclusive: pump: {PUMP} gave no reading at all"


def test_a_bench_without_a_pump_sensor_has_no_such_check() -> None:
    assert judged(without(healthy(), PUMP)).subjects("pump") == ()


# ------------------------------------------------------------------------------------------------------------ rebound


def hump(size: float) -> Change:
    def change(values: Floats, plan: Plan) -> Floats:
        since = plan.times - plan.load_off
        return np.asarray(values + np.where((since > 200) & (since < 300), size, 0.0), dtype=np.float64)

    return change


def test_it_only_falls() -> None:
    found = judged(healthy()).finding("rebound", GPU)
    assert found.outcome is PASSED
    assert found.message == f"rebound: {GPU} fell by 32.8 °C in cooldown and did not come back up"


def test_it_comes_back_up() -> None:
    found = judged(changed(healthy(), GPU, hump(6.0))).finding("rebound", GPU)
    assert found.outcome is FAILED
    lines = found.message.splitlines()
    assert lines[0].startswith(f"rebound: {GPU} came back up by ")
    assert lines[0].endswith("into cooldown (at most 2 °C for 30 s, default)")
    assert lines[1].startswith("likely: one of these: pump stopped, air in the loop: ")


def test_it_comes_back_up_with_power() -> None:
    run = changed(healthy(), GPU, hump(6.0))
    run = changed(run, WATTS, hump(400.0))
    found = judged(run).finding("rebound", GPU)
    assert found.outcome is OPEN
    assert "while the power was up again" in found.seen
    assert "likely: something loaded the device in cooldown" in found.message


@pytest.mark.parametrize("phase", ["cooldown", "steady"])
def test_without_a_phase(phase: str) -> None:
    found = judged(without_phase(healthy(), phase)).finding("rebound", GPU)
    assert found.outcome is OPEN
    assert f"the run has no {phase}" in found.seen


def test_what_was_never_hot_cannot_show_that_it_stays_cool() -> None:
    run = changed(healthy(), GPU, lambda values, _: np.where(in_phase("baseline"), values, 31.0))
    found = judged(changed(run, USE, lambda values, _: values * 0)).finding("rebound", GPU)
    assert found.outcome is OPEN
