from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.rebound import find_rebound
from pytest_thermal.model.readings import Unit
from tests.analysis.signals import Floats, Plan, TwoModes, autoregressive, quantised, series, white

PLAN = Plan(steady=1200.0, cooldown=900.0)
COOLDOWN = PLAN.phases["cooldown"]
INTO = PLAN.times - PLAN.load_off


def bump(height: float, start: float, seconds: float) -> Floats:
    """A rise that comes within half a minute and stays for so long."""
    up = np.clip((INTO - start) / 30, 0, 1)
    down = np.clip((INTO - start - seconds) / 30, 0, 1)
    return np.asarray(height * (up - down))


def fallen() -> Floats:
    return TwoModes().on(PLAN)


@pytest.mark.parametrize("period", [1.0, 5.0])
@pytest.mark.parametrize("step", [None, 0.1, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_healthy_cooling_has_no_rebound(noise: float, step: float | None, period: float) -> None:
    plan = Plan(period=period, steady=900.0, cooldown=1800.0)
    rng = np.random.default_rng(81)
    for _ in range(20):
        modes = TwoModes(slow_seconds=rng.uniform(100, 600), fast_seconds=rng.uniform(3, 30))
        seen = modes.on(plan) + white(rng, plan.times.size, noise)
        readings = series(plan.times, quantised(seen, step) if step else seen, period=period)
        found = find_rebound(readings, plan.phases["cooldown"])
        assert found.found is Answer.NO
        assert found.rise.value == 0.0


def test_noise_with_memory_makes_no_rebound() -> None:
    rng = np.random.default_rng(82)
    for _ in range(20):
        seen = quantised(fallen() + autoregressive(rng, PLAN.times.size, 0.4, 20), 1.0)
        assert find_rebound(series(PLAN.times, seen), COOLDOWN).found is Answer.NO


@pytest.mark.parametrize("period", [1.0, 5.0])
@pytest.mark.parametrize("step", [0.1, 1.0])
def test_a_rebound_is_found_and_measured(step: float, period: float) -> None:
    plan = Plan(period=period, steady=1200.0, cooldown=900.0)
    into = plan.times - plan.load_off
    rng = np.random.default_rng(83)
    for _ in range(10):
        clean = TwoModes(slow_seconds=60.0).on(plan) + np.clip((into - 500) / 60, 0, 1) * 5.0
        seen = quantised(clean + white(rng, clean.size, 0.3), step)
        found = find_rebound(series(plan.times, seen, period=period), plan.phases["cooldown"])
        assert found.found is Answer.YES
        assert found.rise.value == pytest.approx(5.0, abs=0.7)
        assert isinstance(found.rise.detail["start_seconds"], float)
        assert 500 <= found.rise.detail["start_seconds"] - plan.load_off <= 580


def test_a_short_bump_is_not_sustained_and_a_small_one_not_enough() -> None:
    settled = np.where(INTO > 0, 32.0, fallen())
    assert (
        find_rebound(series(PLAN.times, settled + np.where((INTO > 400) & (INTO < 420), 6.0, 0.0)), COOLDOWN).found
        is Answer.NO
    )
    assert find_rebound(series(PLAN.times, settled + bump(1.5, 400, 200)), COOLDOWN).found is Answer.NO
    assert find_rebound(series(PLAN.times, settled + bump(6, 400, 200)), COOLDOWN).found is Answer.YES


def test_what_counts_can_be_set() -> None:
    readings = series(PLAN.times, np.where(INTO > 0, 32.0, fallen()) + bump(1.5, 400, 200))
    assert find_rebound(readings, COOLDOWN, least_rise=1.0).found is Answer.YES
    assert find_rebound(readings, COOLDOWN, least_rise=1.0, least_seconds=300).found is Answer.NO


def test_a_coarse_sensor_needs_two_of_its_steps() -> None:
    readings = quantised(np.where(INTO > 0, 32.0, fallen()) + bump(2.4, 400, 300), 2.0)
    assert find_rebound(series(PLAN.times, readings, resolution=2.0), COOLDOWN).found is Answer.NO


def test_power_that_came_back_is_no_rebound() -> None:
    readings = series(PLAN.times, np.where(INTO > 0, 32.0, fallen()) + bump(10, 400, 200))
    idle = np.where(INTO > 0, 60.0, 600.0)
    again = np.where((INTO > 400) & (INTO < 630), 300.0, idle)

    def watts(drawn: Floats) -> object:
        return find_rebound(
            readings,
            COOLDOWN,
            power=series(PLAN.times, drawn, name="gpu0.power_watts", unit=Unit.WATTS),
        ).found

    assert watts(idle) is Answer.YES
    assert watts(again) is Answer.UNKNOWN


def test_holes_in_the_cooldown_do_not_hide_it() -> None:
    seen = np.where(INTO > 0, 32.0, fallen()) + bump(6, 400, 200)
    seen[np.random.default_rng(84).random(seen.size) < 0.3] = np.nan
    assert find_rebound(series(PLAN.times, seen), COOLDOWN).found is Answer.YES


@pytest.mark.parametrize("spoil", [lambda v: np.where(INTO > 40, np.nan, v), lambda v: np.full(v.size, np.nan)])
def test_a_cooldown_that_was_hardly_seen_is_unknown(spoil: Callable[[Floats], Floats]) -> None:
    found = find_rebound(series(PLAN.times, spoil(fallen())), COOLDOWN)
    assert found.found is Answer.UNKNOWN
    assert found.rise.value is None
    assert found.reason
