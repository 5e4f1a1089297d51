"""Faults made in a model of three heat capacities (``signals.Loop``) and named from its curves alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.health import check_health
from pytest_thermal.analysis.loop_faults import LoopFault, LoopFaultKind, LoopSensors, name_loop_fault
from pytest_thermal.analysis.loop_shape import LoopShape, find_departure, find_swing, measure_shape
from pytest_thermal.analysis.rebound import find_rebound
from pytest_thermal.analysis.time_constants import fit_time_constants
from pytest_thermal.model.readings import Unit
from tests.analysis.signals import (
    HEALTHY,
    Loop,
    LoopRun,
    Plan,
    bubbles,
    loop_modes,
    loop_run,
    quantised,
    series,
    white,
)

Then = Sequence[tuple[float, Loop]]

PLANS = [(Plan(steady=2400.0), 1.0), (Plan(steady=2400.0, period=5.0), 1.0), (Plan(steady=2400.0), 0.1)]
MOST_RISE = 40.0
RUNS = 5


def some_loop(rng: np.random.Generator) -> Loop:
    """A healthy loop of its own: no two benches are alike."""
    parts = ("contact", "transfer", "radiator", "die_capacity", "plate_capacity", "coolant_capacity")
    return replace(
        HEALTHY,
        supply=rng.uniform(20, 30),
        **{name: getattr(HEALTHY, name) * rng.uniform(0.9, 1.1) for name in parts},
    )


def shape_of(run: LoopRun) -> LoopShape:
    return measure_shape(run.temperature, run.phases, power=run.power)


def named(run: LoopRun, *, earlier: LoopRun | None = None, **others: object) -> LoopFault:
    return name_loop_fault(
        run.temperature,
        run.phases,
        shape_of(run),
        most_rise=MOST_RISE,
        sensors=LoopSensors(power=run.power, **others),  # type: ignore[arg-type]
        health=check_health(run.temperature, run.phases),
        rebound=find_rebound(run.temperature, run.phases[3], power=run.power),
        earlier=shape_of(earlier) if earlier else None,
    )


def tally(
    make: Callable[[np.random.Generator, Plan, Loop], tuple[Loop, Then]], plan: Plan, step: float, *, compared: bool
) -> list[LoopFault]:
    rng = np.random.default_rng(111)
    faults = []
    for _ in range(RUNS):
        healthy = some_loop(rng)
        loop, then = make(rng, plan, healthy)
        run = loop_run(plan, rng, loop=loop, then=then, resolution=step)
        earlier = loop_run(plan, rng, loop=healthy, resolution=step) if compared else None
        faults.append(named(run, earlier=earlier))
    return faults


FAULTS: dict[str, tuple[LoopFaultKind, Callable[[np.random.Generator, Plan, Loop], tuple[Loop, Then]]]] = {
    "pump stops": (
        LoopFaultKind.PUMP_STOPPED,
        lambda _, plan, loop: (loop, [(plan.steady / 2, replace(loop, transfer=0.07))]),
    ),
    "flow falls": (
        LoopFaultKind.FLOW_LOW,
        lambda _, plan, loop: (loop, [(plan.steady / 2, replace(loop, transfer=loop.transfer * 2.5))]),
    ),
    "contact lets go": (
        LoopFaultKind.CONTACT,
        lambda _, plan, loop: (loop, [(plan.steady / 2, replace(loop, contact=loop.contact * 2))]),
    ),
    "fan stops": (
        LoopFaultKind.RADIATOR,
        lambda _, plan, loop: (loop, [(plan.steady * 0.3, replace(loop, radiator=loop.radiator * 2.5))]),
    ),
    "air": (LoopFaultKind.AIR, lambda rng, plan, loop: (loop, bubbles(rng, plan, loop))),
    "warm supply": (LoopFaultKind.SUPPLY_WARM, lambda _, __, loop: (replace(loop, supply=50.0), [])),
}

FROM_THE_START: dict[str, tuple[LoopFaultKind, Callable[[np.random.Generator, Plan, Loop], tuple[Loop, Then]]]] = {
    "contact": (LoopFaultKind.CONTACT, lambda _, __, loop: (replace(loop, contact=loop.contact * 2), [])),
    "flow": (
        LoopFaultKind.FLOW_LOW,
        lambda _, __, loop: (replace(loop, transfer=loop.transfer * 2.5, radiator=loop.radiator * 1.3), []),
    ),
    "radiator": (LoopFaultKind.RADIATOR, lambda _, __, loop: (replace(loop, radiator=loop.radiator * 1.8), [])),
}


def wrongly_named(faults: list[LoopFault], kind: LoopFaultKind) -> int:
    return sum(fault.kind is not None and fault.kind is not kind for fault in faults)


@pytest.mark.parametrize("plan, step", PLANS)
@pytest.mark.parametrize("compared", [False, True])
def test_a_healthy_loop_is_never_given_a_fault(plan: Plan, step: float, compared: bool) -> None:
    for fault in tally(lambda _, __, loop: (loop, []), plan, step, compared=compared):
        assert fault == LoopFault(kind=None, candidates=(), evidence=())


@pytest.mark.parametrize("plan, step", PLANS)
@pytest.mark.parametrize("name", FAULTS)
def test_what_happens_during_a_run_is_named(name: str, plan: Plan, step: float) -> None:
    kind, make = FAULTS[name]
    faults = tally(make, plan, step, compared=False)
    assert sum(fault.kind is kind for fault in faults) >= RUNS - 1
    assert wrongly_named(faults, kind) <= 1
    assert all(fault.evidence for fault in faults if fault.kind is kind)


@pytest.mark.parametrize("plan, step", PLANS)
@pytest.mark.parametrize("name", FROM_THE_START)
def test_what_was_wrong_from_the_start_is_named_against_an_earlier_run(name: str, plan: Plan, step: float) -> None:
    kind, make = FROM_THE_START[name]
    faults = tally(make, plan, step, compared=True)
    assert sum(fault.kind is kind for fault in faults) >= RUNS - 1
    assert wrongly_named(faults, kind) == 0


@pytest.mark.parametrize("name", FROM_THE_START)
def test_without_an_earlier_run_it_is_seen_and_left_unnamed(name: str) -> None:
    plan, step = PLANS[0]
    for fault in tally(FROM_THE_START[name][1], plan, step, compared=False):
        assert fault.kind is None
        assert FROM_THE_START[name][0] in fault.candidates
        assert "above 40 °C" in fault.evidence[0]


def test_a_pump_that_is_seen_to_stop_decides() -> None:
    plan = PLANS[0][0]
    rng = np.random.default_rng(112)
    half = plan.phases["steady"].start_seconds + plan.steady / 2
    run = loop_run(plan, rng, then=[(plan.steady / 2, replace(HEALTHY, transfer=HEALTHY.transfer * 1.8))])
    rpm = np.where(plan.times < half, 3600.0, 0.0)
    pump = series(plan.times, rpm, name="pump0.speed_rpm", unit=Unit.RPM)
    fault = named(run, pump=pump)
    assert fault.kind is LoopFaultKind.PUMP_STOPPED
    assert "the pump fell from 3600.0 to 0.0 rpm" in fault.evidence
    assert named(run, fan=pump).kind is LoopFaultKind.RADIATOR
    assert named(run, flow=pump).kind is LoopFaultKind.FLOW_LOW


def test_a_pump_that_reads_zero_while_all_is_well_is_no_fault() -> None:
    plan = PLANS[0][0]
    run = loop_run(plan, np.random.default_rng(113))
    pump = series(plan.times, np.zeros(plan.times.size), name="pump0.speed_rpm", unit=Unit.RPM)
    assert named(run, pump=pump).kind is None


def test_more_power_is_no_fault() -> None:
    plan = PLANS[0][0]
    rng = np.random.default_rng(114)
    half = plan.phases["steady"].start_seconds + plan.steady / 2
    healthy = loop_run(plan, rng)
    more = healthy.temperature.values + np.where((plan.times > half) & (plan.times < plan.load_off), 9.0, 0.0)
    watts = healthy.power.values + np.where((plan.times > half) & (plan.times < plan.load_off), 150.0, 0.0)
    run = LoopRun(
        temperature=series(plan.times, more),
        power=series(plan.times, watts, name="gpu0.power_watts", unit=Unit.WATTS),
        coolant=healthy.coolant,
        phases=healthy.phases,
    )
    assert named(run).kind is not LoopFaultKind.CONTACT
    without = name_loop_fault(run.temperature, run.phases, shape_of(run), most_rise=MOST_RISE)
    assert without.kind is LoopFaultKind.CONTACT


def test_unrest_that_follows_the_power_is_no_air() -> None:
    plan = PLANS[0][0]
    rng = np.random.default_rng(115)
    healthy = loop_run(plan, rng, resolution=None)
    loaded = (plan.times >= plan.load_on) & (plan.times < plan.load_off)
    swing = np.where(loaded, np.sign(np.sin(plan.times / 25)), 0.0)
    run = LoopRun(
        temperature=series(plan.times, healthy.temperature.values + 3 * swing),
        power=series(plan.times, healthy.power.values + 60 * swing, name="gpu0.power_watts", unit=Unit.WATTS),
        coolant=healthy.coolant,
        phases=healthy.phases,
    )
    assert named(run).kind is None
    steady_power = replace(run, power=healthy.power)
    assert named(steady_power).kind is LoopFaultKind.AIR


def test_a_supply_that_is_measured_decides() -> None:
    plan = PLANS[0][0]
    run = loop_run(plan, np.random.default_rng(116), loop=replace(HEALTHY, supply=50.0))
    warm = series(plan.times, np.full(plan.times.size, 50.0), name="coolant_supply.temperature_celsius")
    cool = series(plan.times, np.full(plan.times.size, 30.0), name="coolant_supply.temperature_celsius")
    assert named(run, coolant_supply=warm).kind is LoopFaultKind.SUPPLY_WARM
    assert named(run, coolant_supply=cool).kind is None


def test_a_stuck_sensor_is_all_that_is_said() -> None:
    plan = PLANS[0][0]
    healthy = loop_run(plan, np.random.default_rng(117))
    values = healthy.temperature.values.copy()
    values[200:] = values[200]
    fault = named(replace(healthy, temperature=series(plan.times, values)))
    assert fault.kind is LoopFaultKind.SENSOR_STUCK


def test_a_rebound_alone_is_pump_or_air() -> None:
    plan = PLANS[0][0]
    healthy = loop_run(plan, np.random.default_rng(118))
    into = plan.times - plan.load_off
    back = quantised(healthy.temperature.values + np.clip((into - 300) / 60, 0, 1) * 12, 1.0)
    run = replace(healthy, temperature=series(plan.times, back))
    assert find_rebound(run.temperature, run.phases[3]).found is Answer.YES
    fault = named(run)
    assert fault.kind is None
    assert fault.candidates == (LoopFaultKind.PUMP_STOPPED, LoopFaultKind.AIR)
    standing = series(plan.times, np.where(into > 0, 0.0, 3600.0), name="pump0.speed_rpm", unit=Unit.RPM)
    assert named(run, pump=standing).kind is LoopFaultKind.PUMP_STOPPED


def test_a_departure_is_timed_and_measured() -> None:
    plan = PLANS[0][0]
    run = loop_run(
        plan, np.random.default_rng(119), then=[(1500.0, replace(HEALTHY, contact=HEALTHY.contact * 2))], resolution=0.1
    )
    found = find_departure(run.temperature, plan.phases["steady"])
    assert found is not None
    assert found.start_seconds - plan.phases["steady"].start_seconds == pytest.approx(1500, abs=25)
    assert found.rise == pytest.approx(620 * HEALTHY.contact, abs=0.8)


def test_what_happens_before_there_is_a_course_is_no_departure() -> None:
    plan = PLANS[0][0]
    worse = replace(HEALTHY, contact=HEALTHY.contact * 2)
    early, later = (loop_run(plan, np.random.default_rng(121), then=[(at, worse)]) for at in (180.0, 300.0))
    assert find_departure(early.temperature, plan.phases["steady"]) is None
    assert find_departure(later.temperature, plan.phases["steady"]) is not None


def test_what_comes_back_is_no_departure() -> None:
    plan = PLANS[0][0]
    then = [(1000.0, replace(HEALTHY, contact=HEALTHY.contact * 2)), (1200.0, HEALTHY)]
    run = loop_run(plan, np.random.default_rng(120), then=then)
    assert find_departure(run.temperature, plan.phases["steady"]) is None


def test_the_parts_of_a_known_loop_are_told_apart() -> None:
    plan = PLANS[0][0]
    run = loop_run(plan, np.random.default_rng(121), resolution=0.1)
    constants = fit_time_constants(run.temperature, plan.load_on, plan.load_off)
    shape = measure_shape(run.temperature, run.phases, power=run.power, constants=constants)
    assert shape.slow_seconds.value == pytest.approx(loop_modes(HEALTHY)[2], rel=0.1)
    assert shape.watts.value == pytest.approx(560, abs=5)
    assert shape.prompt.value is not None
    assert shape.plate.value is not None
    assert shape.prompt.value == pytest.approx(560 * (HEALTHY.contact + 0.6 * HEALTHY.transfer), rel=0.15)
    assert shape.prompt.value + shape.plate.value == pytest.approx(
        560 * (HEALTHY.contact + HEALTHY.transfer + 0.2 * HEALTHY.radiator), rel=0.1
    )
    assert shape.per_watt(shape.rise) == pytest.approx(HEALTHY.contact + HEALTHY.transfer + HEALTHY.radiator, rel=0.02)
    assert shape.wander.value is not None
    assert shape.wander.value < 0.15


def test_a_run_without_a_baseline_has_no_shape_and_no_fault() -> None:
    plan = PLANS[0][0]
    run = loop_run(plan, np.random.default_rng(122))
    headless = replace(run, phases=run.phases[1:])
    shape = shape_of(headless)
    assert shape.rise.reason == "the run has no baseline"
    assert name_loop_fault(headless.temperature, headless.phases, shape, most_rise=MOST_RISE).kind is None
    only_ramp = run.phases[1:2]
    assert name_loop_fault(run.temperature, only_ramp, shape, most_rise=MOST_RISE).kind is None


def test_a_run_without_cooldown_is_read_from_its_heating() -> None:
    plan = PLANS[0][0]
    rng = np.random.default_rng(123)
    run, ill = loop_run(plan, rng), loop_run(plan, rng, loop=replace(HEALTHY, contact=HEALTHY.contact * 2))
    shapes = [measure_shape(each.temperature, each.phases[:3], power=each.power) for each in (run, ill)]
    fault = name_loop_fault(ill.temperature, ill.phases[:3], shapes[1], most_rise=MOST_RISE, earlier=shapes[0])
    assert fault.kind is LoopFaultKind.CONTACT


def test_white_noise_alone_is_no_fault() -> None:
    plan = PLANS[0][0]
    flat = series(plan.times, 40 + white(np.random.default_rng(124), plan.times.size, 0.5))
    phases = tuple(plan.phases.values())
    shape = measure_shape(flat, phases)
    assert name_loop_fault(flat, phases, shape, most_rise=MOST_RISE).kind is None


@pytest.mark.parametrize("seed", range(3))
def test_a_control_that_hunts_is_no_air(seed: int) -> None:
    """A smooth swing of ±2 °C every 5 min at constant power."""
    plan = PLANS[0][0]
    run = loop_run(plan, np.random.default_rng(seed), resolution=None)
    loaded = (plan.times >= plan.load_on) & (plan.times < plan.load_off)
    swings = run.temperature.values + np.where(loaded, 2.0 * np.sin(2 * np.pi * plan.times / 300.0), 0.0)
    hunting = replace(run, temperature=series(plan.times, quantised(swings, 1.0)))
    assert named(hunting).candidates == ()
    found = find_swing(hunting.temperature, plan.phases["steady"])
    assert found is not None
    assert found.period_seconds == pytest.approx(300.0, abs=15.0)
    assert found.amplitude == pytest.approx(2.0, abs=0.2)
    assert find_swing(run.temperature, plan.phases["steady"]) is None
