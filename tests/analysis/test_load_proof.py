from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.load_proof import judge_idle, prove_load, throughput_held
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.series import Figure, Series
from tests.analysis.signals import EPOCH, Floats, Plan, counting, series, white

PLAN = Plan(steady=1800.0)
STEADY, BASELINE = PLAN.phases["steady"], PLAN.phases["baseline"]
LOADED = (PLAN.times >= PLAN.load_on) & (PLAN.times < PLAN.load_off)
INTO = PLAN.times - STEADY.start_seconds


def power(watts: Floats) -> Series:
    noise = white(np.random.default_rng(71), watts.size, 8.0)
    return series(PLAN.times, watts + noise, name="gpu0.power_watts", unit=Unit.WATTS)


def utilization(percent: Floats) -> Series:
    return series(PLAN.times, percent, name="gpu0.utilization_percent", unit=Unit.PERCENT)


FULL_POWER, FULL_USE = np.where(LOADED, 600.0, 60.0), np.where(LOADED, 99.0, 1.0)


def test_full_use_and_a_plateau_prove_the_load() -> None:
    found = prove_load(STEADY, utilization=utilization(FULL_USE), power=power(FULL_POWER), baseline=BASELINE)
    assert found.proven is Answer.YES
    assert found.power.value == pytest.approx(600, abs=2)
    assert found.on_plateau.value == 1.0
    assert found.utilization.value == 99.0


def test_either_is_enough_alone() -> None:
    assert prove_load(STEADY, utilization=utilization(FULL_USE)).proven is Answer.YES
    assert prove_load(STEADY, power=power(FULL_POWER), baseline=BASELINE).proven is Answer.YES


def test_power_alone_needs_to_know_what_idle_was() -> None:
    assert prove_load(STEADY, power=power(FULL_POWER)).proven is Answer.UNKNOWN


def test_a_load_at_two_thirds_is_none() -> None:
    found = prove_load(STEADY, utilization=utilization(np.where(LOADED, 66.0, 1.0)), power=power(FULL_POWER))
    assert found.proven is Answer.NO
    assert found.reason == "utilisation is 66 %, below 90 %"


def test_power_that_stays_at_idle_is_no_load_whatever_the_utilisation_says() -> None:
    idle = power(np.full(PLAN.times.size, 60.0))
    found = prove_load(STEADY, utilization=utilization(FULL_USE), power=idle, baseline=BASELINE)
    assert found.proven is Answer.NO
    assert "60 W under load against 60 W at idle" in found.reason


def test_a_meter_that_shows_nothing_proves_nothing() -> None:
    nothing = series(PLAN.times, np.zeros(PLAN.times.size), name="cpu0.power_watts", unit=Unit.WATTS)
    found = prove_load(STEADY, power=nothing, baseline=BASELINE)
    assert found.proven is Answer.UNKNOWN
    assert "0 W in steady: its meter shows nothing" in found.reason
    assert prove_load(STEADY, utilization=utilization(FULL_USE), power=nothing, baseline=BASELINE).proven is Answer.YES


def test_a_load_that_dies_half_way_is_no_load() -> None:
    died = np.where(LOADED & (INTO < 1200), 600.0, 60.0)
    found = prove_load(STEADY, power=power(died), baseline=BASELINE)
    assert found.proven is Answer.NO
    assert found.on_plateau.value == pytest.approx(2 / 3, abs=0.03)


def test_a_device_that_slows_itself_down_under_full_use_was_loaded() -> None:
    throttled = np.where(LOADED & (INTO > 900), 380.0, FULL_POWER)
    found = prove_load(STEADY, utilization=utilization(FULL_USE), power=power(throttled), baseline=BASELINE)
    assert found.proven is Answer.YES


def test_idle_power_outweighs_a_utilisation_that_reads_full() -> None:
    died = np.where(LOADED & (INTO < 1500), FULL_POWER, 60.0)
    found = prove_load(STEADY, utilization=utilization(FULL_USE), power=power(died), baseline=BASELINE)
    assert found.proven is Answer.NO
    assert "that of an idle device for 17% of steady" in found.reason


def test_short_pauses_between_pieces_of_work_are_no_dips() -> None:
    pieces = np.where(LOADED & (counting(PLAN.times.size) % 20 < 3), 250.0, FULL_POWER)
    assert prove_load(STEADY, power=power(pieces), baseline=BASELINE).proven is Answer.YES


def test_nothing_measured_is_unknown_and_says_what_is_missing() -> None:
    found = prove_load(STEADY)
    assert found.proven is Answer.UNKNOWN
    assert "utilization: not measured" in found.reason
    assert "power: not measured" in found.reason
    blank = utilization(np.full(PLAN.times.size, np.nan))
    assert prove_load(STEADY, utilization=blank).proven is Answer.UNKNOWN


def test_throughput_decides_only_where_nothing_else_is_known() -> None:
    held = Figure(name="throughput_held", value=0.98, unit="ratio", uncertainty=0.02)
    fell = Figure(name="throughput_held", value=0.4, unit="ratio", uncertainty=0.02)
    assert prove_load(STEADY, throughput=held).proven is Answer.YES
    assert prove_load(STEADY, throughput=fell).proven is Answer.NO
    assert prove_load(STEADY, utilization=utilization(FULL_USE), throughput=fell).proven is Answer.YES


@pytest.mark.parametrize("rate", [0.5, 20.0])
def test_a_throughput_that_falls_is_told_with_its_uncertainty(rate: float) -> None:
    rng = np.random.default_rng(72)
    moments = STEADY.start_seconds + np.sort(rng.uniform(0, 1800, round(1800 * rate)))
    share = (moments - STEADY.start_seconds) / 1800
    kept = moments[rng.random(moments.size) < 1 - 0.5 * share]
    held, fell = throughput_held(moments, STEADY), throughput_held(kept, STEADY)
    assert held.value is not None
    assert fell.value is not None
    assert fell.uncertainty is not None
    assert abs(held.value - 1) < 3 * (held.uncertainty or 0)
    assert abs(fell.value - 0.55 / 0.95) < 3 * fell.uncertainty
    assert 0.5 < fell.uncertainty / (0.58 * np.sqrt(2 / (360 * rate * 0.75))) < 2.5


def test_tokens_count_where_requests_bring_different_amounts() -> None:
    moments = STEADY.start_seconds + counting(1800) + 0.5
    amounts = np.where(counting(1800) < 900, 200.0, 100.0)
    assert throughput_held(moments, STEADY).value == 1.0
    assert throughput_held(moments, STEADY, amounts=amounts).value == 0.5
    assert throughput_held(moments[::-1], STEADY, amounts=amounts[::-1]).value == 0.5


def test_a_throughput_that_stops_is_zero_and_a_few_requests_are_none() -> None:
    early = STEADY.start_seconds + counting(300)
    assert throughput_held(early, STEADY).value == 0.0
    few = throughput_held(STEADY.start_seconds + counting(9, 200.0), STEADY)
    assert few.value is None
    assert throughput_held(np.empty(0), STEADY).value is None


def test_a_baseline_is_idle_or_not() -> None:
    assert judge_idle(BASELINE, utilization=utilization(FULL_USE))[0] is Answer.YES
    busy, mean = judge_idle(BASELINE, utilization=utilization(np.full(PLAN.times.size, 35.0)))
    assert busy is Answer.NO
    assert mean.value == 35.0
    assert judge_idle(BASELINE, utilization=None)[0] is Answer.UNKNOWN
    assert judge_idle(BASELINE, utilization=utilization(np.full(PLAN.times.size, np.nan)))[0] is Answer.UNKNOWN


def test_what_went_on_before_the_stretch_that_is_used_does_not_make_a_baseline_busy() -> None:
    early = np.where(PLAN.times < EPOCH + 200, 90.0, FULL_USE)
    assert judge_idle(BASELINE, utilization=utilization(early))[0] is Answer.YES
