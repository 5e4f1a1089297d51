"""The simulated machine before the usual limits: what each check says of many healthy and faulty runs.

``python -m tests.demo.many_benches 100 20``: so many healthy ones, so many of each fault. The tests run some of it.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis import (
    Answer,
    LoopSensors,
    TemperatureFigures,
    analyse_temperature,
    judge_idle,
    measure_shape,
    measure_throttling,
    name_loop_fault,
    prove_load,
)
from pytest_thermal.demo.simulated import simulate
from pytest_thermal.demo.thermal_faults import THERMAL_FAULTS
from pytest_thermal.demo.thermal_model import Load
from pytest_thermal.model.phases import PhaseName
from pytest_thermal.model.series import Phase, Series

EPOCH = 1_800_000_000.0
PERIOD = 5.0
SECONDS: Mapping[PhaseName, float] = {"baseline": 240.0, "ramp": 200.0, "steady": 520.0, "cooldown": 280.0}
"""Bench seconds: what the demo bench's minute comes to."""
FULL: Load = {"cpu0": 1.0, "gpu0": 1.0, "gpu1": 1.0}
RISES = {"cpu0": (25.0, 35.0), "gpu0": (30.0, 40.0), "gpu1": (30.0, 40.0)}
PEAKS = {"cpu0": 85.0, "gpu0": 83.0, "gpu1": 83.0}
HEATED = (
    "cpu0.package.temperature_celsius",
    "gpu0.temperature_celsius",
    "gpu0.memory.temperature_celsius",
    "gpu1.temperature_celsius",
    "gpu1.memory.temperature_celsius",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One simulated run as a judge gets it."""

    series: Mapping[str, Series]
    phases: Mapping[str, Phase]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was seen of one run."""

    against: frozenset[str]
    """``rise gpu0.temperature_celsius``: check and sensor or device."""
    figures: Mapping[str, TemperatureFigures]

    @property
    def checks(self) -> frozenset[str]:
        return frozenset(one.split(" ")[0] for one in self.against)


@functools.cache
def run(fault: str | None = None, *, seed: int = 0) -> Run:
    loaded = SECONDS["ramp"] + SECONDS["steady"]
    script: list[tuple[float, Load]] = [(SECONDS["baseline"], {}), (loaded, FULL), (SECONDS["cooldown"], {})]
    tracks = simulate(script, fault=fault, seed=seed, period_seconds=PERIOD)
    phases: dict[str, Phase] = {}
    start = EPOCH
    for name, seconds in SECONDS.items():
        phases[name] = Phase(name=name, start_seconds=start, end_seconds=start + seconds)
        start += seconds
    return Run(
        series={
            track.sensor.id: Series(
                sensor=track.sensor,
                time_seconds=EPOCH + np.array(track.times),
                values=np.array(track.values),
                period_seconds=PERIOD,
            )
            for track in tracks
        },
        phases=phases,
    )


@functools.cache
def judge(seen: Run) -> Verdict:
    """Every check that has something to say against it, or cannot tell."""
    against: list[str] = []
    figures = {}
    for name in HEATED:
        figures[name] = _temperature(seen, name, against)
    for device in RISES:
        _device(seen, device, against)
    pump = seen.series["pump0.speed_rpm"]
    usual = float(np.median(pump.during(seen.phases["baseline"]).values))
    if float(pump.during(seen.phases["steady"]).values.min()) < usual / 2:
        against.append("pump pump0.speed_rpm")
    if seen.series["leak0.detector_state"].values.max() > 0:
        against.append("leak leak0.detector_state")
    return Verdict(against=frozenset(against), figures=figures)


def _temperature(seen: Run, name: str, against: list[str]) -> TemperatureFigures:
    device = name.split(".", maxsplit=1)[0]
    phases = tuple(seen.phases.values())
    power = seen.series[f"{device}.power_watts"]
    found = analyse_temperature(seen.series[name], phases, power=power)
    least, most = RISES[device]
    sensors = LoopSensors(
        power=power,
        pump=seen.series["pump0.speed_rpm"],
        flow=seen.series["coolant.flow_liters_per_minute"],
        fan=seen.series["fan0.speed_rpm"],
        coolant_supply=seen.series["coolant_supply.temperature_celsius"],
    )
    shape = measure_shape(found.clean, phases, power=power, constants=found.heating)
    fault = name_loop_fault(
        found.clean, phases, shape, most_rise=most, sensors=sensors, health=found.health, rebound=found.rebound
    )
    assert found.settled
    assert found.baseline_settled
    assert found.rebound
    said = {
        "rise": found.rise.value is None or not least <= found.rise.value <= most,
        "threshold": found.peak.value is None or found.peak.value > PEAKS[device],
        "settled": found.settled.settled is not Answer.YES,
        "baseline": found.baseline_settled.settled is not Answer.YES,
        "rebound": found.rebound.found is not Answer.NO,
        "coverage": any(one.complete is not Answer.YES for one in found.coverage.values()),
        "stuck": found.health.stuck is Answer.YES,
        "spikes": bool(found.health.spikes.value or found.health.dropouts.value),
        f"fault:{fault.kind or 'unnamed'}": bool(fault.candidates),
    }
    against += [f"{check} {name}" for check, wrong in said.items() if wrong]
    return found


def _device(seen: Run, device: str, against: list[str]) -> None:
    use, power = seen.series[f"{device}.utilization_percent"], seen.series[f"{device}.power_watts"]
    proof = prove_load(seen.phases["steady"], utilization=use, power=power, baseline=seen.phases["baseline"])
    idle, _ = judge_idle(seen.phases["baseline"], utilization=use)
    against += [f"load {device}"] if proof.proven is not Answer.YES else []
    against += [f"idle {device}"] if idle is not Answer.YES else []
    counter = seen.series.get(f"{device}.throttle.thermal_milliseconds")
    if counter is not None:
        spent = [measure_throttling({"thermal": counter}, phase).thermal.value for phase in seen.phases.values()]
        against += [f"throttling {device}"] if any(value != 0.0 for value in spent) else []


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(healthy: int, faulty: int) -> None:
    for fault, count in [(None, healthy), *((name, faulty) for name in THERMAL_FAULTS)]:
        checks: Counter[str] = Counter()
        rises, peaks = defaultdict(list), defaultdict(list)
        for seed in range(count):
            verdict = judge(run(fault, seed=seed))
            checks.update(verdict.checks or ["passed"])
            for name, found in verdict.figures.items():
                rises[name].append(found.rise.value or np.nan)
                peaks[name].append(found.peak.value or np.nan)
        say(f"{fault or 'healthy'} ({count}): {dict(checks.most_common())}")
        for name in HEATED:
            rise, top = np.array(rises[name]), np.array(peaks[name])
            say(f"    {name:34} rise {rise.min():.1f} … {rise.max():.1f}, peak {top.min():.1f} … {top.max():.1f}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
