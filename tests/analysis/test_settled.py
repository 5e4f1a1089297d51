from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.settled import Settled, curvature, judge_baseline_settled, judge_settled
from pytest_thermal.analysis.settling_rates import SETTLING_RATES, SettlingRate
from pytest_thermal.analysis.time_constants import fit_time_constants
from pytest_thermal.model.series import Figure, Phase, Series
from tests.analysis.signals import (
    EPOCH,
    Floats,
    Plan,
    TwoModes,
    autoregressive,
    counting,
    quantised,
    series,
    ticks,
    white,
)

STEADY = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 1800)
BASELINE = Phase(name="baseline", start_seconds=EPOCH, end_seconds=EPOCH + 120)


def slow(seconds: float, sigma: float = 0.0) -> Figure:
    return Figure(name="slow_time_constant", value=seconds, unit="seconds", uncertainty=sigma)


def approaching(seconds: float, remaining: float, noise: float = 0.05, seed: int = 31) -> Series:
    """An exponential of this constant that has ``remaining`` °C to go at the end of ``STEADY``."""
    left = remaining * np.exp((1800 - counting(1800)) / seconds)
    return series(ticks(1800), 70 - left + white(np.random.default_rng(seed), 1800, noise))


def value(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


@pytest.mark.parametrize("seconds", [200.0, 600.0, 2000.0])
@pytest.mark.parametrize("remaining", [0.3, 1.5, 5.0])
def test_the_remaining_rise_of_an_exponential_is_predicted(seconds: float, remaining: float) -> None:
    found = judge_settled(approaching(seconds, remaining, noise=0.02), STEADY, slow=slow(seconds))
    assert value(found.remaining) == pytest.approx(remaining, rel=0.1, abs=0.1)


@pytest.mark.parametrize("windows", [0.01, 0.3, 1.0, 2.5])
def test_the_bend_within_the_window_is_allowed_for(windows: float) -> None:
    times = np.linspace(0, windows, 4001)
    slope = np.polyfit(times, -np.exp(-times), 1)[0]
    assert curvature(windows) == pytest.approx(slope / math.exp(-windows), rel=1e-3)


def test_a_rate_alone_is_not_enough() -> None:
    """0.1 K/min is within 1 K in 5 min, and with a constant of an hour 6 °C are still to come."""
    readings = approaching(3600, 6.0)
    assert judge_settled(readings, STEADY, slow=slow(60)).settled is Answer.YES
    found = judge_settled(readings, STEADY, slow=slow(3600))
    assert found.settled is Answer.NO
    assert "still to come" in found.reason


def test_a_small_remaining_rise_is_not_enough_either() -> None:
    found = judge_settled(approaching(150, 0.95), STEADY, slow=slow(150))
    assert found.settled is Answer.NO
    assert "K/min" in found.reason


def test_what_the_noise_leaves_open_is_unknown() -> None:
    short = Phase(name="steady", start_seconds=EPOCH + 1500, end_seconds=EPOCH + 1800)
    found = judge_settled(approaching(600, 0.5, noise=2.0), short, slow=slow(600))
    assert found.settled is Answer.UNKNOWN
    assert found.reason


def test_what_the_resolution_leaves_open_is_unknown() -> None:
    short = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 300)
    constant = series(ticks(300), np.full(300, 60.0), resolution=1.0)
    assert judge_settled(constant, short, slow=slow(300)).settled is Answer.UNKNOWN
    longer = series(ticks(1800), np.full(1800, 60.0), resolution=1.0)
    assert judge_settled(longer, STEADY, slow=slow(300)).settled is Answer.YES


def test_a_constant_that_is_hardly_known_widens_the_bound() -> None:
    readings = approaching(600, 0.4, noise=0.02)
    assert judge_settled(readings, STEADY, slow=slow(600, 10)).settled is Answer.YES
    assert judge_settled(readings, STEADY, slow=slow(600, 600)).settled is Answer.UNKNOWN


def test_a_falling_temperature_has_not_settled() -> None:
    falling = series(ticks(1800), 70 - 0.01 * counting(1800))
    assert judge_settled(falling, STEADY, slow=slow(300)).settled is Answer.NO


def test_without_a_constant_it_may_be_called_settled_but_not_unsettled_by_the_remaining_rise() -> None:
    flat = series(ticks(1800), 60 + white(np.random.default_rng(32), 1800, 0.1))
    found = judge_settled(flat, STEADY)
    assert found.settled is Answer.YES
    assert found.remaining.detail["slow_from"] == "half of the time under load"
    open_one = judge_settled(approaching(3600, 6.0), STEADY, slow=Figure.missing("slow", "seconds", "not white"))
    assert open_one.settled is Answer.UNKNOWN
    assert "slow time constant is not known" in open_one.reason


@pytest.mark.parametrize("noise", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seconds", [70.0, 250.0])
def test_how_steep_it_was_before_does_not_make_its_end_unsettled(seconds: float, known: bool, noise: float) -> None:
    """A coarse or noisy sensor makes it look further back, and the phase begins with the load itself."""
    for seed in range(10):
        seen = 70 - 30 * np.exp(-counting(1500) / seconds) + white(np.random.default_rng(seed), 1500, noise)
        steady = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 1500)
        found = judge_settled(series(ticks(1500), quantised(seen, 1.0)), steady, slow=slow(seconds) if known else None)
        assert found.settled is not Answer.NO


def test_a_noisy_sensor_does_not_make_it_look_back_into_the_rise() -> None:
    strict = SettlingRate(name="strict", kelvin=0.2, seconds=300.0, origin="a test")
    steady = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 900)
    for seed in range(10):
        seen = 70 - 30 * np.exp(-counting(900) / 100) + white(np.random.default_rng(seed), 900, 1.0)
        found = judge_settled(series(ticks(900), seen), steady, slow=slow(100), rate=strict)
        assert found.settled is not Answer.NO


def test_a_coarse_sensor_does_not_make_the_slope_of_the_whole_phase_count() -> None:
    """0.12 K/min at its end and 0.36 K/min over the whole phase, of which one step of a degree shows little."""
    steady = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 900)
    for offset in np.linspace(0, 0.9, 10):
        seen = quantised(70 + offset - 6 * np.exp(-counting(900) / 450), 1.0)
        assert judge_settled(series(ticks(900), seen), steady).settled is not Answer.NO


def test_the_bound_of_a_refused_constant_is_used() -> None:
    bounded = Figure.missing("slow", "seconds", "only known to ±20 %", at_most_seconds=360.0)
    found = judge_settled(approaching(300, 0.3), STEADY, slow=bounded)
    assert found.settled is Answer.YES
    assert found.remaining.detail["slow_seconds"] == 360.0


@pytest.mark.parametrize(
    "name, kelvin_per_hour, answer",
    [
        ("default", 10.0, Answer.YES),
        ("iec62368", 5.5, Answer.YES),
        ("iec62368", 7.0, Answer.NO),
        ("iec62368_below_limit", 10.0, Answer.YES),
        ("iec61010", 1.5, Answer.YES),
        ("iec61010", 3.0, Answer.NO),
        ("iec60034", 1.5, Answer.YES),
        ("iec60598", 1.5, Answer.NO),
        ("iec60335_2_6", 3.5, Answer.YES),
    ],
)
def test_each_standard_has_its_rate(name: str, kelvin_per_hour: float, answer: Answer) -> None:
    hours = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 7200)
    drifting = series(ticks(7200), 60 + kelvin_per_hour / 3600 * counting(7200))
    assert judge_settled(drifting, hours, slow=slow(60), rate=SETTLING_RATES[name]).settled is answer


def test_a_rate_of_ones_own_is_taken() -> None:
    quick = SettlingRate(name="demo", kelvin=1.0, seconds=5.0, origin="a bench that runs sixty times as fast")
    minute = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 60)
    moving = series(ticks(240, 0.25), 50 + 0.1 * counting(240, 0.25), period=0.25)
    assert judge_settled(moving, minute, slow=slow(4), rate=quick).settled is Answer.YES
    assert judge_settled(moving, minute, slow=slow(4)).settled is Answer.NO


def test_too_few_readings_are_unknown() -> None:
    found = judge_settled(series(ticks(4, 100.0), np.full(4, 60.0), period=100.0), STEADY, slow=slow(100))
    assert found.settled is Answer.UNKNOWN
    assert found.slope.value is None


# ------------------------------------------------------------------------------------------------ over many runs


def judged(plan: Plan, modes: TwoModes, noise: Floats, step: float | None) -> Settled:
    seen = modes.on(plan) + noise
    readings = series(plan.times, quantised(seen, step) if step else seen, period=plan.period)
    constants = fit_time_constants(readings, plan.load_on, plan.load_off)
    return judge_settled(readings, plan.phases["steady"], slow=constants.slow, loaded_since_seconds=plan.load_on)


@pytest.mark.parametrize("memory_readings", [0, 10])
@pytest.mark.parametrize("period, step", [(1.0, 0.1), (1.0, 1.0), (5.0, 1.0)])
def test_a_run_that_is_called_settled_has_at_most_a_degree_to_go(
    period: float, step: float, memory_readings: float
) -> None:
    rng = np.random.default_rng(33)
    beyond, settled_ones = 0, 0
    for _ in range(30):
        plan = Plan(period=period, steady=float(rng.choice([900, 1800, 3600])))
        modes = TwoModes(slow_rise=rng.uniform(8, 20), slow_seconds=rng.uniform(250, 1500))
        count = plan.times.size
        noise = autoregressive(rng, count, 0.3, memory_readings) if memory_readings else white(rng, count, 0.3)
        if judged(plan, modes, noise, step).settled is Answer.YES:
            settled_ones += 1
            beyond += modes.remaining(plan) > 1.0
    assert settled_ones >= 1
    assert beyond <= max(1, 0.05 * settled_ones)


@pytest.mark.parametrize("period, step", [(1.0, None), (1.0, 1.0), (5.0, 0.1), (5.0, 1.0)])
def test_a_healthy_hour_is_called_settled_and_never_unsettled(period: float, step: float | None) -> None:
    rng = np.random.default_rng(34)
    plan = Plan(period=period)
    answers = [
        judged(
            plan,
            TwoModes(slow_rise=rng.uniform(8, 20), slow_seconds=rng.uniform(150, 400)),
            white(rng, plan.times.size, float(rng.choice([0.05, 0.3]))),
            step,
        ).settled
        for _ in range(15)
    ]
    assert Answer.NO not in answers
    assert answers.count(Answer.YES) >= 14


# ------------------------------------------------------------------------------------------------ the baseline


@pytest.mark.parametrize("step", [None, 0.1, 1.0])
def test_a_quiet_baseline_is_settled_even_with_a_coarse_sensor(step: float | None) -> None:
    rng = np.random.default_rng(35)
    for noise in (0.0, 0.1, 0.3):
        seen = 33.3 + white(rng, 120, noise)
        readings = series(ticks(120), quantised(seen, step) if step else seen, resolution=step)
        assert judge_baseline_settled(readings, BASELINE).settled is Answer.YES, noise


@pytest.mark.parametrize("step", [None, 1.0])
def test_a_baseline_that_still_cools_is_not_settled(step: float | None) -> None:
    cooling = 45 - 0.05 * counting(120) + white(np.random.default_rng(36), 120, 0.3)
    found = judge_baseline_settled(series(ticks(120), quantised(cooling, step) if step else cooling), BASELINE)
    assert found.settled is Answer.NO
    assert "-" in found.reason


def test_a_restless_baseline_is_unknown() -> None:
    restless = 45 + autoregressive(np.random.default_rng(37), 120, 3.0, 40)
    assert judge_baseline_settled(series(ticks(120), restless), BASELINE).settled is Answer.UNKNOWN


def test_a_baseline_of_five_readings_is_unknown() -> None:
    assert judge_baseline_settled(series(ticks(5), np.full(5, 30.0)), BASELINE).settled is Answer.UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_a_straight_course_is_not_made_slower_by_the_bend_of_a_mode(seed: int) -> None:
    """A room that warms up by 1.1 K in 5 min, read to 1 °C, whatever the loop's constant is."""
    times = ticks(3600)
    values = quantised(45.0 + 1.1 / 300.0 * counting(3600) + white(np.random.default_rng(seed), 3600, 0.3), 1.0)
    steady = Phase(name="steady", start_seconds=EPOCH, end_seconds=EPOCH + 3600.0)
    found = judge_settled(series(times, values), steady, slow=slow(300), loaded_since_seconds=EPOCH - 120.0)
    assert found.settled is not Answer.YES
