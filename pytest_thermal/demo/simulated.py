"""The simulated machine as its sensors show it: rounded, a little noisy, now and then missing. No clock, no files."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_thermal.model import Missing, Reading, Sensor, Unit

from .thermal_faults import thermal_fault
from .thermal_model import DEVICES, IDLE, Device, Load, LoopModel, LoopState

SOURCE = "demo"

Take = Callable[[LoopState], float]


@dataclass(frozen=True, kw_only=True)
class _Gauge:
    """One sensor, where its value comes from, and what it adds to it."""

    sensor: Sensor
    take: Take
    step: float
    """The smallest difference that it shows, in its unit."""
    noise: float = 0.0
    """One sigma, in its unit."""
    share: float = 0.0
    """One sigma, as a share of the value."""
    most: float = math.inf
    exact: bool = False
    """Whether it has no noise at all."""


class Track(NamedTuple):
    """One sensor over time, in bench seconds since the beginning; NaN where there is no reading."""

    sensor: Sensor
    times: list[float]
    values: list[float]


class SimulatedMachine:
    """The machine with its sensors."""

    def __init__(self, *, fault: str | None = None, seed: int = 0) -> None:
        """``seed`` decides noise, and what a fault leaves to chance.

        Raises:
            ValueError: no thermal fault is called so.
        """
        wrong = thermal_fault(fault)
        self._model = LoopModel(fault=wrong.loop(), seed=seed)
        self._sensing = wrong.sensing()
        self._rng = random.Random(f"noise {seed}")  # noqa: S311 - noise, no secrets
        self._gauges = tuple(_gauges())
        self._state = self._model.advance(0.0, IDLE)

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """What is measured, always in this order."""
        return tuple(gauge.sensor for gauge in self._gauges)

    @property
    def state(self) -> LoopState:
        """The truth behind the readings."""
        return self._state

    def advance(self, seconds: float, load: Load) -> None:
        """Let so many bench seconds pass under ``load``."""
        self._state = self._model.advance(seconds, load)

    def read(self) -> list[Reading]:
        """One reading of each sensor."""
        return [self._reading(gauge) for gauge in self._gauges]

    def _reading(self, gauge: _Gauge) -> Reading:
        exact = gauge.take(self._state)
        noise = 0.0 if gauge.exact else self._rng.gauss(0.0, gauge.noise + gauge.share * exact)
        value = min(max(round((exact + noise) / gauge.step) * gauge.step, 0.0), gauge.most)
        seen = self._sensing.spoil(gauge.sensor.id, round(value, 6), self._state.since)
        if seen is None:
            return Reading(
                sensor_id=gauge.sensor.id, missing=Missing.UNREADABLE, detail="simulated: Input/output error"
            )
        return Reading(sensor_id=gauge.sensor.id, value=seen)


def simulate(
    script: Iterable[tuple[float, Load]], *, fault: str | None = None, seed: int = 0, period_seconds: float = 5.0
) -> list[Track]:
    """What a recorder would have written of a whole run.

    Args:
        script: What runs, in order: for so many bench seconds, this load.
        fault: Name of a thermal fault.
        seed: As of :class:`SimulatedMachine`.
        period_seconds: From one reading to the next, in bench seconds.

    Raises:
        ValueError: no thermal fault is called so.
    """
    machine = SimulatedMachine(fault=fault, seed=seed)
    times: list[float] = []
    rows: list[list[Reading]] = []
    for time, load in _ticks(script, period_seconds):
        machine.advance(period_seconds if times else 0.0, load)
        times.append(time)
        rows.append(machine.read())
    return [
        Track(sensor=sensor, times=times, values=[math.nan if (v := row[index].value) is None else v for row in rows])
        for index, sensor in enumerate(machine.sensors)
    ]


def _ticks(script: Iterable[tuple[float, Load]], period: float) -> Iterator[tuple[float, Load]]:
    """When readings are taken, and the load in the time before each."""
    end, number, load = 0.0, 0, IDLE
    for seconds, then in script:
        end += seconds
        while number * period < end:
            yield number * period, load
            load = then
            number += 1


# -------------------------------------------------------------------------------------------------------- sensors


def _gauges() -> Iterator[_Gauge]:
    for device in DEVICES:
        yield from _card_gauges(device) if device.is_card else _cpu_gauges(device)
    yield from _loop_gauges()


def _cpu_gauges(device: Device) -> Sequence[_Gauge]:
    name = device.name
    return (
        _Gauge(
            sensor=_sensor(
                name, "package.temperature_celsius", Unit.CELSIUS, "package", {"max": device.slowdown_celsius}
            ),
            take=lambda state: state.devices[name].celsius,
            step=0.125,
            noise=0.12,
        ),
        _Gauge(
            sensor=_sensor(name, "utilization_percent", Unit.PERCENT, "busy cores"),
            take=lambda state: 100 * state.devices[name].busy,
            step=0.1,
            noise=0.4,
            most=100.0,
        ),
        _Gauge(
            sensor=_sensor(name, "power_watts", Unit.WATTS, "package power"),
            take=lambda state: state.devices[name].watts,
            step=0.01,
            share=0.01,
        ),
        _Gauge(
            sensor=_sensor(
                name, "clock_megahertz", Unit.MEGAHERTZ, "mean of the cores", {"max": device.full_megahertz}
            ),
            take=lambda state: state.devices[name].megahertz,
            step=25.0,
            noise=15.0,
            most=device.full_megahertz,
        ),
    )


def _card_gauges(device: Device) -> Sequence[_Gauge]:
    name = device.name
    limits = {"slowdown": device.slowdown_celsius, "shutdown": device.shutdown_celsius}
    return (
        _Gauge(
            sensor=_sensor(name, "temperature_celsius", Unit.CELSIUS, "GPU temperature", limits),
            take=lambda state: state.devices[name].celsius,
            step=0.25,
            noise=0.12,
        ),
        _Gauge(
            sensor=_sensor(name, "memory.temperature_celsius", Unit.CELSIUS, "memory temperature", {"max": 95.0}),
            take=lambda state: state.devices[name].memory_celsius,
            step=0.25,
            noise=0.12,
        ),
        _Gauge(
            sensor=_sensor(name, "power_watts", Unit.WATTS, "power draw", {"cap": 500.0}),
            take=lambda state: state.devices[name].watts,
            step=0.01,
            share=0.01,
        ),
        _Gauge(
            sensor=_sensor(name, "utilization_percent", Unit.PERCENT, "GPU utilization"),
            take=lambda state: 99.0 * state.devices[name].busy,
            step=1.0,
            noise=0.4,
            most=100.0,
        ),
        _Gauge(
            sensor=_sensor(name, "clock_megahertz", Unit.MEGAHERTZ, "SM clock", {"max": device.full_megahertz}),
            take=lambda state: state.devices[name].megahertz,
            step=15.0,
            noise=8.0,
            most=device.full_megahertz,
        ),
        _Gauge(
            sensor=_sensor(
                name, "throttle.power_cap_milliseconds", Unit.MILLISECONDS, "time slowed down by power, in bench time"
            ),
            take=lambda _state: 0.0,
            step=1.0,
        ),
        _Gauge(
            sensor=_sensor(
                name, "throttle.thermal_milliseconds", Unit.MILLISECONDS, "time slowed down by heat, in bench time"
            ),
            take=lambda state: state.devices[name].thermal_milliseconds,
            step=1.0,
        ),
    )  # fmt: skip


def _loop_gauges() -> Sequence[_Gauge]:
    return (
        _Gauge(
            sensor=_sensor("pump0", "speed_rpm", Unit.RPM, "pump speed"),
            take=lambda state: state.pump_rpm,
            step=1.0,
            share=0.003,
        ),
        _Gauge(
            sensor=_sensor("fan0", "speed_rpm", Unit.RPM, "radiator fan speed"),
            take=lambda state: state.fan_rpm,
            step=1.0,
            share=0.005,
        ),
        _Gauge(
            sensor=_sensor("coolant", "flow_liters_per_minute", Unit.LITERS_PER_MINUTE, "coolant flow"),
            take=lambda state: state.flow_liters_per_minute,
            step=0.01,
            share=0.008,
        ),
        _probe("coolant_supply", "coolant to the plates", lambda state: state.supply_celsius),
        _probe("coolant_return", "coolant from the plates", lambda state: state.return_celsius),
        _probe("ambient", "air at the radiator", lambda state: state.ambient_celsius),
        _Gauge(
            sensor=_sensor("leak0", "detector_state", Unit.STATE, "leak detector under the loop"),
            take=lambda state: state.leak,
            step=1.0,
            exact=True,
        ),
    )


def _probe(device: str, label: str, take: Take) -> _Gauge:
    return _Gauge(sensor=_sensor(device, "temperature_celsius", Unit.CELSIUS, label), take=take, step=0.1, noise=0.08)


def _sensor(device: str, quantity: str, unit: Unit, label: str, limits: Mapping[str, float] | None = None) -> Sensor:
    return Sensor(
        id=f"{device}.{quantity}",
        unit=unit,
        device=device,
        identity=f"simulated-{device}",
        source=SOURCE,
        label=f"{label} (simulated)",
        limits=limits or {},
    )
