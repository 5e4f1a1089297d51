"""Recordings whose verdict is known by construction: one processor, one card, its loop, and inference requests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_thermal.bench import Monitor
from pytest_thermal.findings import Judgement, Limits, limits_for
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.recording import Labels, Recording, Requests
from tests.analysis.signals import (
    EPOCH,
    HEALTHY,
    Floats,
    Loop,
    Plan,
    TwoModes,
    loop_run,
    quantised,
    white,
)

PLAN = Plan(baseline=300.0, ramp=120.0, steady=2400.0, cooldown=600.0, period=5.0)
GPU, MEMORY, CPU = "gpu0.temperature_celsius", "gpu0.memory.temperature_celsius", "cpu0.package.temperature_celsius"
USE, WATTS, CPU_USE, CPU_WATTS = (
    "gpu0.utilization_percent", "gpu0.power_watts", "cpu0.utilization_percent", "cpu0.package.power_watts",
)  # fmt: skip
PUMP, LEAK, HOT = "pump0.speed_rpm", "leak0.detector_state", "gpu0.throttle.thermal_milliseconds"
CAP = "gpu0.throttle.power_cap_milliseconds"
FACTS: Mapping[str, Any] = {
    "bench": "lab-7",
    "simulated": False,
    "time_scale": 1.0,
    "start_seconds": EPOCH,
    "state": "finished",
    "load": {"mode": "mixed", "concurrent_requests": 8},
    "works": [{"kind": "cpu"}, {"kind": "inference"}, {"kind": "accelerator"}],
    "plan": {"seconds": {"baseline": 300.0, "ramp": 120.0, "steady": 2400.0, "cooldown": 600.0}},
}

Change = Callable[[Floats, Plan], Floats]


def unit_of(name: str) -> Unit:
    return next(unit for unit in Unit if name.endswith(unit.value))


def made_series(name: str, values: Floats, plan: Plan = PLAN, **limits: float) -> Series:
    device = name.partition(".")[0]
    sensor = Sensor(
        id=name, unit=unit_of(name), device=device, identity=f"ID-{device}", source="invented", limits=limits
    )
    return Series(sensor=sensor, time_seconds=plan.times, values=values, period_seconds=plan.period)


def loaded(plan: Plan = PLAN) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return (plan.times >= plan.load_on) & (plan.times < plan.load_off)


def healthy(
    plan: Plan = PLAN,
    *,
    seed: int = 1,
    loop: Loop = HEALTHY,
    then: Sequence[tuple[float, Loop]] = (),
    watts: float = 620.0,
) -> Recording:
    """Everything measured, and everything as it should be unless the loop is not."""
    return _made(plan, seed, loop, tuple(then), watts)


@functools.lru_cache(maxsize=64)
def _made(plan: Plan, seed: int, loop: Loop, then: tuple[tuple[float, Loop], ...], watts: float) -> Recording:
    rng = np.random.default_rng(seed)
    run = loop_run(plan, rng, loop=loop, then=then, watts=watts)
    on = loaded(plan)
    cpu = TwoModes(baseline=36.0, fast_rise=18.0, fast_seconds=12.0, slow_rise=11.0, slow_seconds=250.0).on(plan)
    memory = run.temperature.values + 2.0
    zero = np.zeros(plan.times.size)
    values: dict[str, Floats] = {
        GPU: run.temperature.values,
        MEMORY: memory,
        CPU: quantised(cpu + white(rng, cpu.size, 0.3), 1.0),
        USE: np.where(on, 99.0, 0.0),
        WATTS: run.power.values,
        CPU_USE: np.where(on, 98.0, 1.0),
        CPU_WATTS: np.where(on, 250.0, 40.0) + white(rng, cpu.size, 2.0),
        PUMP: 2800.0 + white(rng, cpu.size, 8.0),
        LEAK: zero,
        HOT: zero,
        CAP: zero,
    }
    return Recording(
        path=Path("20270115T080000Z_lab-7"),
        state="finished",
        series={name: made_series(name, one, plan) for name, one in values.items()},
        phases=tuple(plan.phases.values()),
        notes=(),
        facts=FACTS,
        requests=steady_requests(plan),
    )


def steady_requests(plan: Plan = PLAN, *, per_second: float = 4.0, latency: float = 2.0) -> Requests:
    starts = np.arange(plan.load_on, plan.load_off - latency, 1 / per_second, dtype=np.float64)
    return requests(starts, np.full(starts.size, latency))


def requests(starts: Floats, latency: Floats, status: Sequence[int] = (), error: Sequence[str] = ()) -> Requests:
    count = starts.size
    return Requests(
        start_seconds=starts,
        ttft_seconds=latency / 4,
        latency_seconds=latency,
        status=np.array(status if len(status) else [200] * count, dtype=np.int64),
        error=Labels.of(error if len(error) else [""] * count),
        prompt_tokens=np.full(count, 50.0),
        completion_tokens=np.full(count, 128.0),
        phase=Labels.of(["steady"] * count),
        domain=Labels.of([""] * count),
        limit=Labels.of([""] * count),
    )


def changed(recording: Recording, name: str, change: Change, plan: Plan = PLAN) -> Recording:
    """With other readings of one sensor."""
    one = recording.series[name]
    values = change(one.values.copy(), plan)
    return replace(recording, series={**recording.series, name: replace(one, values=values)})


def without(recording: Recording, *names: str) -> Recording:
    return replace(recording, series={name: one for name, one in recording.series.items() if name not in names})


def without_phase(recording: Recording, *names: str) -> Recording:
    return replace(recording, phases=tuple(phase for phase in recording.phases if phase.name not in names))


def with_limits(recording: Recording, name: str, **limits: float) -> Recording:
    one = recording.series[name]
    return replace(
        recording, series={**recording.series, name: replace(one, sensor=replace(one.sensor, limits=limits))}
    )


def limits(**overrides: tuple[float, str]) -> Limits:
    return limits_for(Monitor(), overrides=overrides)


def judged(recording: Recording, **more: Any) -> Judgement:
    return Judgement(recording, more.pop("limits", None) or limits(), **more)


def in_phase(name: str, plan: Plan = PLAN) -> np.ndarray[Any, np.dtype[np.bool_]]:
    phase: Phase = plan.phases[name]
    return (plan.times >= phase.start_seconds) & (plan.times < phase.end_seconds)
