"""Signals whose answer is known by construction: lumped thermal models, and what sensors and recorders do to them.

Nothing here imports the analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.readings import Sensor, Unit
from pytest_thermal.model.series import Phase, Series

Floats = NDArray[np.float64]

EPOCH = 1_800_000_000.0
"""When runs begin: unix time is large, and sums over it lose digits where the analysis is careless."""


def counting(count: int, step: float = 1.0) -> Floats:
    return np.asarray(step * np.arange(count), dtype=np.float64)


def ticks(count: int, period: float = 1.0) -> Floats:
    """Unix times of so many readings from the beginning of a run on."""
    return EPOCH + counting(count, period)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long the phases last, in seconds, and how often a sensor is read."""

    baseline: float = 300.0
    ramp: float = 120.0
    steady: float = 3600.0
    cooldown: float = 600.0
    period: float = 1.0

    @property
    def load_on(self) -> float:
        return EPOCH + self.baseline

    @property
    def load_off(self) -> float:
        return self.load_on + self.ramp + self.steady

    @property
    def end(self) -> float:
        return self.load_off + self.cooldown

    @property
    def times(self) -> Floats:
        return ticks(round((self.end - EPOCH) / self.period), self.period)

    @property
    def phases(self) -> dict[str, Phase]:
        steady = self.load_on + self.ramp
        return {
            "baseline": Phase(name="baseline", start_seconds=EPOCH, end_seconds=self.load_on),
            "ramp": Phase(name="ramp", start_seconds=self.load_on, end_seconds=steady),
            "steady": Phase(name="steady", start_seconds=steady, end_seconds=self.load_off),
            "cooldown": Phase(name="cooldown", start_seconds=self.load_off, end_seconds=self.end),
        }


def sensor(name: str = "gpu0.temperature_celsius", unit: Unit = Unit.CELSIUS) -> Sensor:
    device = name.split(".", maxsplit=1)[0]
    return Sensor(id=name, unit=unit, device=device, identity=f"GPU-{device}", source="invented")


def series(
    times: Floats,
    values: Floats,
    *,
    period: float = 1.0,
    name: str = "gpu0.temperature_celsius",
    unit: Unit = Unit.CELSIUS,
    resolution: float | None = None,
) -> Series:
    return Series(
        sensor=sensor(name, unit), time_seconds=times, values=values, period_seconds=period, resolution=resolution
    )  # fmt: skip


def straight(first: float, last: float, count: int) -> Floats:
    return np.asarray(np.linspace(first, last, count), dtype=np.float64)


# ------------------------------------------------------------------------------------------------ closed forms


@dataclass(frozen=True, kw_only=True)
class TwoModes:
    """Two exponentials after a step of load: the response of two lumps of heat capacity (a Foster network)."""

    baseline: float = 32.0
    fast_rise: float = 18.0
    fast_seconds: float = 12.0
    slow_rise: float = 16.0
    slow_seconds: float = 300.0

    @property
    def rise(self) -> float:
        return self.fast_rise + self.slow_rise

    def at(self, times: Floats, load_on: float, load_off: float) -> Floats:
        """Temperature at ``times``, °C; the load is on from ``load_on`` to ``load_off``."""
        result = np.full(times.shape, self.baseline)
        for amplitude, tau in ((self.fast_rise, self.fast_seconds), (self.slow_rise, self.slow_seconds)):
            heated = -np.expm1(-np.maximum(times - load_on, 0) / tau)
            cooled = -np.expm1(-np.maximum(times - load_off, 0) / tau)
            result += amplitude * (heated - cooled)
        return result

    def on(self, plan: Plan) -> Floats:
        return self.at(plan.times, plan.load_on, plan.load_off)

    def remaining(self, plan: Plan) -> float:
        """What it would still have risen by at the end of steady, °C."""
        loaded = plan.load_off - plan.load_on
        return float(
            self.fast_rise * np.exp(-loaded / self.fast_seconds) + self.slow_rise * np.exp(-loaded / self.slow_seconds)
        )


# ------------------------------------------------------------------------------------------------ a cooling loop


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Die, cold plate and coolant of one liquid-cooled card, and the room: three heat capacities in a row.

    Resistances in °C/W, capacities in J/°C. Healthy, 560 W more than idle raise the die by 34 °C.
    """

    contact: float = 0.022
    """Die to plate: paste and mounting pressure."""
    transfer: float = 0.014
    """Plate to coolant: falls with the flow."""
    radiator: float = 0.025
    """Coolant to air: radiator, fans and flow."""
    die_capacity: float = 120.0
    plate_capacity: float = 700.0
    coolant_capacity: float = 10_000.0
    supply: float = 26.0
    """What cools the radiator, °C."""


HEALTHY = Loop()


def run_loop(
    segments: Sequence[tuple[float, Loop, float]], times: Floats, *, start_power: float
) -> tuple[Floats, Floats]:
    """Die and coolant temperature at ``times``, exact for piecewise constant parameters.

    Args:
        segments: (from when, loop, watts), ordered; the first begins at or before the first time.
        times: Unix seconds, increasing.
        start_power: Watts at which everything has settled before the first segment.
    """
    state = _settled(segments[0][1], start_power)
    die, coolant = np.empty(times.shape), np.empty(times.shape)
    starts = [segment[0] for segment in segments]
    for index, (start, loop, watts) in enumerate(segments):
        end = starts[index + 1] if index + 1 < len(segments) else float(times[-1]) + 1
        here = (times >= start) & (times < end)
        steps = np.append(times[here] - start, end - start)
        path = _propagate(loop, watts, state, steps)
        die[here], coolant[here] = path[:-1, 0], path[:-1, 2]
        state = path[-1]
    return die, coolant


def _matrix(loop: Loop) -> Floats:
    g1, g2, g3 = 1 / loop.contact, 1 / loop.transfer, 1 / loop.radiator
    flows = np.array([[-g1, g1, 0.0], [g1, -g1 - g2, g2], [0.0, g2, -g2 - g3]])
    return np.asarray(flows / np.array([[loop.die_capacity], [loop.plate_capacity], [loop.coolant_capacity]]))


def _settled(loop: Loop, watts: float) -> Floats:
    coolant = loop.supply + watts * loop.radiator
    plate = coolant + watts * loop.transfer
    return np.array([plate + watts * loop.contact, plate, coolant])


def _propagate(loop: Loop, watts: float, state: Floats, steps: Floats) -> Floats:
    rates, vectors = np.linalg.eig(_matrix(loop))
    goal = _settled(loop, watts)
    weights = np.linalg.solve(vectors, state - goal)
    path = np.einsum("ij,tj->ti", vectors, np.exp(np.outer(steps, rates)) * weights).real
    return np.asarray(goal + path)


# ------------------------------------------------------------------------------- what sensors and recorders add


def white(rng: np.random.Generator, count: int, sigma: float) -> Floats:
    return rng.normal(0.0, sigma, count)


def autoregressive(rng: np.random.Generator, count: int, sigma: float, correlation_readings: float) -> Floats:
    """First-order autoregressive noise of standard deviation ``sigma``, whose memory fades with e^(−k/readings)."""
    rho = float(np.exp(-1 / correlation_readings))
    kicks = rng.normal(0.0, sigma * np.sqrt(1 - rho**2), count)
    kicks[0] = rng.normal(0.0, sigma)
    noise = np.empty(count)
    last = 0.0
    for index, kick in enumerate(kicks.tolist()):
        last = rho * last + kick
        noise[index] = last
    return noise


def quantised(values: Floats, step: float) -> Floats:
    return np.asarray(np.round(values / step) * step)


def with_gap(values: Floats, times: Floats, start: float, length: float) -> Floats:
    """NaN from ``start`` (seconds after the run began) for ``length`` seconds."""
    holes = (times >= EPOCH + start) & (times < EPOCH + start + length)
    return np.where(holes, np.nan, values)


def with_lost(rng: np.random.Generator, values: Floats, share: float) -> Floats:
    """Single readings lost at random."""
    return np.where(rng.random(values.size) < share, np.nan, values)


# ------------------------------------------------------------------------------------------------ runs of a loop

IDLE_WATTS, LOADED_WATTS = 60.0, 620.0


@dataclass(frozen=True, kw_only=True)
class LoopRun:
    """What a recorder would have seen of one card and its loop."""

    temperature: Series
    power: Series
    coolant: Series
    phases: tuple[Phase, ...]


def loop_run(
    plan: Plan,
    rng: np.random.Generator,
    *,
    loop: Loop = HEALTHY,
    then: Sequence[tuple[float, Loop]] = (),
    noise: float = 0.3,
    resolution: float | None = 1.0,
    watts: float = LOADED_WATTS,
    cap_celsius: float = 95.0,
) -> LoopRun:
    """One run; ``then`` changes the loop at seconds after steady began. Hotter than ``cap_celsius`` is cut off."""
    steady = plan.phases["steady"].start_seconds
    changes = [(steady + seconds, other) for seconds, other in then]
    at_end = changes[-1][1] if changes else loop
    segments = [(EPOCH, loop, IDLE_WATTS), (plan.load_on, loop, watts)]
    segments += [(when, other, watts) for when, other in changes if when < plan.load_off]
    segments += [(plan.load_off, at_end, IDLE_WATTS)]
    times = plan.times
    die, coolant = run_loop(segments, times, start_power=IDLE_WATTS)
    seen = np.minimum(die, cap_celsius) + white(rng, times.size, noise)
    loaded = (times >= plan.load_on) & (times < plan.load_off)
    drawn = np.where(loaded, watts, IDLE_WATTS) + white(rng, times.size, 0.01 * watts)
    return LoopRun(
        temperature=series(times, quantised(seen, resolution) if resolution else seen, period=plan.period),
        power=series(times, drawn, period=plan.period, name="gpu0.power_watts", unit=Unit.WATTS),
        coolant=series(times, coolant, period=plan.period, name="coolant_supply.temperature_celsius"),
        phases=tuple(plan.phases.values()),
    )  # fmt: skip


def bubbles(
    rng: np.random.Generator, plan: Plan, loop: Loop = HEALTHY, *, worse: float = 2.2
) -> list[tuple[float, Loop]]:
    """Air that passes through the plate now and then: the transfer to the coolant is bad for some seconds."""
    changes: list[tuple[float, Loop]] = []
    now = 0.0
    while now < plan.steady:
        now += float(rng.uniform(20, 90))
        bad = replace(loop, transfer=loop.transfer * worse)
        changes += [(now, bad), (now + float(rng.uniform(15, 60)), loop)]
        now = changes[-1][0]
    return changes


def loop_modes(loop: Loop) -> list[float]:
    """Time constants of a loop in seconds, fastest first."""
    return sorted((-1 / np.linalg.eigvals(_matrix(loop)).real).tolist())
