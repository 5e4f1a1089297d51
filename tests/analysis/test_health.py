from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.health import Health, check_health
from pytest_thermal.model.readings import Unit
from tests.analysis.signals import (
    EPOCH,
    Floats,
    Plan,
    TwoModes,
    autoregressive,
    quantised,
    series,
    ticks,
    white,
    with_lost,
)

PLAN = Plan(steady=1200.0)
PHASES = tuple(PLAN.phases.values())


def run(seed: int, noise: float = 0.3) -> Floats:
    return TwoModes().on(PLAN) + white(np.random.default_rng(seed), PLAN.times.size, noise)


def checked(values: Floats) -> Health:
    return check_health(series(PLAN.times, values), PHASES)


@pytest.mark.parametrize("period", [1.0, 5.0])
@pytest.mark.parametrize("step", [None, 0.1, 1.0])
def test_a_healthy_sensor_is_healthy(step: float | None, period: float) -> None:
    rng = np.random.default_rng(91)
    plan = Plan(period=period, steady=1800.0)
    for _ in range(30):
        modes = TwoModes(fast_seconds=rng.uniform(1, 25), fast_rise=rng.uniform(8, 30), slow_rise=rng.uniform(4, 20))
        noise = rng.choice([0.0, 0.1, 0.3, 1.0])
        unrest = autoregressive(rng, plan.times.size, 0.3, 10)
        seen = with_lost(rng, modes.on(plan) + unrest + white(rng, plan.times.size, noise), 0.02)
        found = check_health(
            series(plan.times, quantised(seen, step) if step else seen, period=period), tuple(plan.phases.values())
        )
        assert found.stuck is Answer.NO
        assert found.spikes.value == found.dropouts.value == 0
        assert not found.rejected.any()
        assert found.reason == ""


def test_resolution_and_noise_are_told() -> None:
    found = checked(quantised(run(1), 0.1))
    assert found.resolution.value == 0.1
    assert found.noise.value == pytest.approx(0.3, rel=0.15)
    assert checked(run(1)).resolution.value is None


@pytest.mark.parametrize("readings", [1, 2, 3])
@pytest.mark.parametrize("height", [20.0, -20.0])
def test_a_spike_or_dropout_of_up_to_three_readings_is_rejected(height: float, readings: int) -> None:
    values = quantised(run(2), 1.0)
    values[900 : 900 + readings] += height
    found = checked(values)
    assert np.flatnonzero(found.rejected).tolist() == list(range(900, 900 + readings))
    assert (found.spikes.value, found.dropouts.value) == ((1, 0) if height > 0 else (0, 1))


def test_a_spike_next_to_a_dropout_is_both() -> None:
    values = quantised(run(2), 1.0)
    values[900] += 30
    values[901] -= 20
    found = checked(values)
    assert np.flatnonzero(found.rejected).tolist() == [900, 901]
    assert (found.spikes.value, found.dropouts.value) == (1, 1)


def test_what_lasts_longer_is_told_as_it_is() -> None:
    values = run(3)
    values[900:910] += 20
    assert not checked(values).rejected.any()


def test_each_of_many_spikes_counts() -> None:
    values = run(4)
    where = np.arange(50, values.size, 150)
    values[where] += 25
    found = checked(values)
    assert found.spikes.value == where.size
    assert np.flatnonzero(found.rejected).tolist() == where.tolist()


def test_failed_reads_written_as_zero_are_dropouts_however_long() -> None:
    values = quantised(run(5), 1.0)
    values[100:103] = 0
    values[700:760] = 0
    found = checked(values)
    assert found.dropouts.value == 2
    assert np.count_nonzero(found.rejected) == 63


def test_what_lies_between_two_failed_reads_is_no_spike() -> None:
    values = quantised(run(5), 1.0)
    values[[700, 702]] = 0
    found = checked(values)
    assert (found.spikes.value, found.dropouts.value) == (0, 2)
    assert np.flatnonzero(found.rejected).tolist() == [700, 702]


def test_a_sensor_that_really_stands_near_zero_has_no_dropouts() -> None:
    cold = quantised(white(np.random.default_rng(6), 600, 1.0), 1.0)
    assert not check_health(series(ticks(600), cold)).rejected.any()


def test_the_start_of_a_load_is_no_spike() -> None:
    values = np.where(PLAN.times < PLAN.load_on, 35.0, 75.0)
    assert not checked(values).rejected.any()


def test_an_overshoot_that_stays_up_is_no_spike() -> None:
    values = np.where(PLAN.times < PLAN.load_on, 35.0, 48.0)
    values[300] = 62.0
    assert not checked(values).rejected.any()


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_processor_that_jumps_at_idle_all_the_time_has_no_spikes(share: float) -> None:
    rng = np.random.default_rng(7)
    values = 45 + white(rng, 2000, 0.5)
    values[rng.random(2000) < share] += 14
    assert check_health(series(ticks(2000), values)).spikes.value == 0


def test_readings_next_to_holes_are_compared_with_their_neighbours() -> None:
    values = run(8)
    values[899] = values[901] = np.nan
    values[900] += 25
    found = checked(values)
    assert np.flatnonzero(found.rejected).tolist() == [900]


def test_power_may_jump() -> None:
    watts = np.where(np.arange(600) % 50 == 0, 600.0, 60.0)
    assert not check_health(series(ticks(600), watts, name="gpu0.power_watts", unit=Unit.WATTS)).rejected.any()


# ------------------------------------------------------------------------------------------------ stuck


@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize("since", [100.0, 330.0, 1000.0])
def test_a_sensor_stuck_through_a_change_of_load_is_found(since: float, step: float) -> None:
    for seed in range(5):
        values = quantised(run(seed), step)
        first = int(since)
        values[first:] = values[first]
        found = checked(values)
        assert found.stuck is Answer.YES
        assert "stood at" in found.reason
        assert found.longest_constant.value == pytest.approx(PLAN.end - EPOCH - since - 1, abs=40)


def test_a_fine_sensor_stuck_within_a_phase_is_found() -> None:
    values = quantised(run(9), 0.1)
    values[800:900] = values[800]
    assert checked(values).stuck is Answer.YES


def test_a_coarse_sensor_that_stands_still_within_a_phase_may_be_right() -> None:
    assert checked(quantised(run(10, noise=0.05), 1.0)).stuck is Answer.NO


def test_a_room_that_does_not_follow_the_load_is_not_stuck() -> None:
    room = np.full(PLAN.times.size, 23.0)
    assert check_health(series(PLAN.times, room), PHASES, heated=False).stuck is not Answer.YES
    assert check_health(series(PLAN.times, room), PHASES).stuck is Answer.YES


def test_a_log_without_phases_that_never_moves_is_unknown() -> None:
    found = check_health(series(ticks(600), np.full(600, 41.0)))
    assert found.stuck is Answer.UNKNOWN
    assert "never moved" in found.reason


def test_the_first_readings_after_a_change_may_be_as_before() -> None:
    late = TwoModes().at(PLAN.times, PLAN.load_on + 40, PLAN.load_off)
    assert checked(quantised(late, 1.0)).stuck is Answer.NO


@pytest.mark.parametrize("values", [np.empty(0), np.array([40.0]), np.full(50, np.nan)])
def test_no_readings_are_unknown(values: Floats) -> None:
    found = check_health(series(ticks(values.size), values), PHASES)
    assert found.stuck is Answer.UNKNOWN
    assert found.longest_constant.value is None
    assert not found.rejected.any()


def test_a_lively_sensor_that_stands_still_for_most_of_a_run_is_stuck() -> None:
    """Although most of its readings then do not differ, and it moves again just when the load is taken off."""
    values = quantised(run(5), 0.1)
    stood = (PLAN.times > PLAN.load_on + 200.0) & (PLAN.times < PLAN.load_off)
    found = checked(np.where(stood, 65.3, values))
    assert found.stuck is Answer.YES
    assert "although it moves all the time otherwise" in found.reason
