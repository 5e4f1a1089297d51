"""Healthy and faulty runs by the hundred, and what the figures say of each; also how long a day takes.

``python -m tests.analysis.many_runs 2000`` and ``python -m tests.analysis.many_runs day``. The tests run some of it.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pytest_thermal.analysis import (
    Answer,
    LoopSensors,
    analyse_temperature,
    judge_idle,
    measure_shape,
    name_loop_fault,
    prove_load,
)
from pytest_thermal.model.readings import Unit
from tests.analysis.signals import (
    HEALTHY,
    Loop,
    LoopRun,
    Plan,
    TwoModes,
    autoregressive,
    bubbles,
    loop_run,
    quantised,
    series,
    white,
    with_gap,
    with_lost,
)

MOST_RISE, MOST_PEAK = 40.0, 83.0

Make = Callable[[np.random.Generator, Plan, Loop], LoopRun]


def some_plan(rng: np.random.Generator) -> Plan:
    return Plan(
        baseline=float(rng.choice([120, 300])),
        ramp=120.0,
        steady=float(rng.choice([2400, 3600])),
        cooldown=600.0,
        period=float(rng.choice([1, 5])),
    )


def some_loop(rng: np.random.Generator) -> Loop:
    """A healthy loop of its own: no two benches are alike."""
    parts = ("contact", "transfer", "radiator", "die_capacity", "plate_capacity", "coolant_capacity")
    return replace(
        HEALTHY,
        supply=rng.uniform(20, 30),
        **{name: getattr(HEALTHY, name) * rng.uniform(0.9, 1.1) for name in parts},
    )


def _seen(run: LoopRun, spoil: Callable[[np.ndarray[tuple[int, ...], np.dtype[np.float64]]], None]) -> LoopRun:
    values = run.temperature.values.copy()
    spoil(values)
    return replace(run, temperature=replace(run.temperature, values=values))


def healthy(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    run = loop_run(
        plan, rng, loop=loop, noise=float(rng.uniform(0.1, 0.4)), resolution=float(rng.choice([0.1, 1.0])), watts=600.0
    )
    values = with_lost(rng, run.temperature.values, 0.01)
    gap = with_gap(values, plan.times, float(rng.uniform(0, plan.end - plan.times[0])), 3 * plan.period)
    return replace(run, temperature=replace(run.temperature, values=gap))


def _changed(change: Callable[[Loop], Loop], *, at: float | None = None) -> Make:
    def make(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
        step = float(rng.choice([0.1, 1.0]))
        if at is None:
            return loop_run(plan, rng, loop=change(loop), resolution=step, watts=600.0)
        return loop_run(plan, rng, loop=loop, then=[(at * plan.steady, change(loop))], resolution=step, watts=600.0)

    return make


def _air(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    return loop_run(plan, rng, loop=loop, then=bubbles(rng, plan, loop), watts=600.0)


def _stuck(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    since = int(rng.uniform(0.05, 0.8) * plan.times.size)

    def spoil(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        values[since:] = values[since]

    return _seen(loop_run(plan, rng, loop=loop, watts=600.0), spoil)


def _dropping(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    def spoil(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        values[rng.integers(0, values.size, max(values.size // 400, 3))] = 0.0

    return _seen(loop_run(plan, rng, loop=loop, watts=600.0), spoil)


def _spiking(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    def spoil(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        values[rng.integers(10, values.size - 10, 2)] += 30.0

    return _seen(loop_run(plan, rng, loop=loop, watts=600.0), spoil)


def _holes(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    run = loop_run(plan, rng, loop=loop, watts=600.0)
    start = plan.baseline + plan.ramp + float(rng.uniform(0.1, 0.8)) * plan.steady
    return replace(
        run, temperature=replace(run.temperature, values=with_gap(run.temperature.values, plan.times, start, 60.0))
    )


def _half_load(rng: np.random.Generator, plan: Plan, loop: Loop) -> LoopRun:
    run = loop_run(plan, rng, loop=loop, watts=600.0)
    from_then = plan.times > plan.load_on + plan.ramp + 0.6 * plan.steady
    watts = np.where(from_then, 60.0, run.power.values)
    return replace(run, power=replace(run.power, values=watts))


FAULTS: dict[str, Make] = {
    "pump stops": _changed(lambda loop: replace(loop, transfer=0.07), at=0.5),
    "flow falls": _changed(lambda loop: replace(loop, transfer=loop.transfer * 2.5), at=0.5),
    "contact lets go": _changed(lambda loop: replace(loop, contact=loop.contact * 2), at=0.5),
    "fan stops": _changed(lambda loop: replace(loop, radiator=loop.radiator * 2.5), at=0.3),
    "contact": _changed(lambda loop: replace(loop, contact=loop.contact * 2)),
    "flow": _changed(lambda loop: replace(loop, transfer=loop.transfer * 2.5, radiator=loop.radiator * 1.3)),
    "radiator": _changed(lambda loop: replace(loop, radiator=loop.radiator * 1.8)),
    "warm supply": _changed(lambda loop: replace(loop, supply=50.0)),
    "air": _air,
    "stuck": _stuck,
    "dropouts": _dropping,
    "spikes": _spiking,
    "holes": _holes,
    "load dies": _half_load,
}


def verdict(run: LoopRun, plan: Plan) -> tuple[str, list[str]]:
    """``passed``, ``failed`` or ``open``, and what speaks against it: usual limits on this room's figures."""
    found = analyse_temperature(run.temperature, run.phases, power=run.power)
    shape = measure_shape(found.clean, run.phases, power=run.power)
    fault = name_loop_fault(
        found.clean,
        run.phases,
        shape,
        most_rise=MOST_RISE,
        sensors=LoopSensors(power=run.power),
        health=found.health,
        rebound=found.rebound,
    )
    proof = prove_load(plan.phases["steady"], power=run.power, baseline=plan.phases["baseline"])
    assert found.settled is not None
    assert found.baseline_settled is not None
    assert found.rebound is not None
    failed, left_open = [], []
    if found.rise.value is None or found.peak.value is None:
        left_open.append("rise or peak")
    else:
        failed += ["rise"] if found.rise.value > MOST_RISE else []
        failed += ["peak"] if found.peak.value > MOST_PEAK else []
    failed += ["stuck"] if found.health.stuck is Answer.YES else []
    failed += ["spikes"] if found.health.spikes.value else []
    failed += ["dropouts"] if found.health.dropouts.value else []
    failed += ["rebound"] if found.rebound.found is Answer.YES else []
    failed += [f"fault: {fault.kind or 'unnamed'}"] if fault.candidates else []
    failed += ["not settled"] if found.settled.settled is Answer.NO else []
    failed += ["baseline not settled"] if found.baseline_settled.settled is Answer.NO else []
    left_open += ["settled"] if found.settled.settled is Answer.UNKNOWN else []
    left_open += ["baseline settled"] if found.baseline_settled.settled is Answer.UNKNOWN else []
    left_open += ["load"] if proof.proven is not Answer.YES else []
    left_open += [name for name, covered in found.coverage.items() if covered.complete is Answer.NO]
    return ("failed", failed) if failed else ("open", left_open) if left_open else ("passed", [])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def many(count: int, seed: int = 2024) -> None:
    rng = np.random.default_rng(seed)
    for name, make, runs in [("healthy", healthy, count // 2)] + [
        (name, make, max(count // 2 // len(FAULTS), 1)) for name, make in FAULTS.items()
    ]:
        verdicts: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        for _ in range(runs):
            plan = some_plan(rng)
            said, why = verdict(make(rng, plan, some_loop(rng)), plan)
            verdicts[said] += 1
            reasons.update(why)
        say(f"{name:16} {dict(verdicts)}  {dict(reasons.most_common(5))}")


def day(sensors: int = 72) -> None:
    rng = np.random.default_rng(1)
    plan = Plan(baseline=600.0, ramp=600.0, steady=86_400 - 600 - 600 - 3600.0, cooldown=3600.0)
    times, phases = plan.times, tuple(plan.phases.values())
    loaded = (times >= plan.load_on) & (times < plan.load_off)
    watts = np.where(loaded, 620.0, 60.0) + white(rng, times.size, 5.0)
    power = series(times, watts, name="gpu0.power_watts", unit=Unit.WATTS)
    use = series(times, np.where(loaded, 99.0, 1.0), name="gpu0.utilization_percent", unit=Unit.PERCENT)
    temperatures = []
    for index in range(sensors):
        step, noise = ((None, 0.1), (0.1, 0.3), (1.0, 0.3), (1.0, 0.1), (1.0, 0.0))[index % 5]
        seen = TwoModes(slow_rise=rng.uniform(8, 20), slow_seconds=rng.uniform(150, 500)).on(plan)
        seen = seen + white(rng, times.size, noise)
        if index % 7 == 0:
            seen = seen + autoregressive(rng, times.size, 0.2, 30)
        temperatures.append(series(times, quantised(seen, step) if step else seen))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        for temperature in temperatures:
            found = analyse_temperature(temperature, phases, power=power)
            prove_load(phases[2], utilization=use, power=power, baseline=phases[0])
            judge_idle(phases[0], utilization=use)
            shape = measure_shape(found.clean, phases, power=power, constants=found.heating)
            name_loop_fault(
                found.clean,
                phases,
                shape,
                most_rise=MOST_RISE,
                sensors=LoopSensors(power=power),
                health=found.health,
                rebound=found.rebound,
            )
        say(
            f"{sensors} sensors x {times.size} readings: {time.perf_counter() - wall:.2f} s, "
            f"{time.process_time() - cpu:.2f} s of processor"
        )
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(f"memory at most {after:.0f} MB, of which {after - before:.0f} MB for the figures")


if __name__ == "__main__":
    day() if sys.argv[1:] == ["day"] else many(int(sys.argv[1]) if sys.argv[1:] else 200)
