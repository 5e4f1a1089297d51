"""The simulated machine's heat: dies on cold plates, one coolant loop, a radiator with a fan. No clock, no files.

All times are bench seconds: those of the simulated machine, which pass faster than ours.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

STEP_SECONDS = 0.5
"""The model goes in steps of this length; power is constant within one."""

FLOW_LITERS_PER_MINUTE = 6.0
PUMP_RPM = 2800.0
FAN_IDLE_RPM, FAN_FULL_RPM = 900.0, 1500.0

_POWER_LAG_SECONDS = 1.0
_FAN_LAG_SECONDS = 20.0
_PUMP_LAG_SECONDS = 2.0
_MEMORY_LAG_SECONDS = 12.0
_FAN_LEVELS = 12
"""Fan, pump and flow go in so many levels, each with its own solution of the network, worked out once."""
_FLOW_LEVELS = 20

_WATER_JOULES_PER_LITER = 4150.0
_STANDING_WATER = 0.12
"""Of the heat that nominal flow takes from a plate, what goes without any."""

_LEAST_ALLOWED = 0.05
"""Of its power, that a device keeps to itself however hot it is."""

_FULL_LOAD = 0.5
_LOAD_SETTLES_SECONDS = 5.0
_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Device:
    """A processor under its cold plate. Resistances in °C/W, heat capacities in J/°C."""

    name: str
    contact: float
    """Die to plate: paste and mounting pressure."""
    transfer: float
    """Plate to coolant, at nominal flow."""
    die_capacity: float
    plate_capacity: float
    idle_watts: float
    full_watts: float
    idle_megahertz: float
    full_megahertz: float
    slowdown_celsius: float
    """At which it slows itself down."""
    shutdown_celsius: float
    memory: float = 0.0
    """Plate to memory, °C per watt of the device; 0 for one whose memory is not measured."""

    @property
    def is_card(self) -> bool:
        """Whether it is an accelerator."""
        return self.name.startswith("gpu")


def _card(name: str) -> Device:
    return Device(
        name=name, contact=0.036, transfer=0.036, die_capacity=120.0, plate_capacity=700.0, idle_watts=55.0,
        full_watts=475.0, idle_megahertz=345.0, full_megahertz=1980.0, slowdown_celsius=87.0, shutdown_celsius=92.0,
        memory=0.037,
    )  # fmt: skip


DEVICES = (
    Device(
        name="cpu0", contact=0.050, transfer=0.055, die_capacity=80.0, plate_capacity=500.0, idle_watts=60.0,
        full_watts=300.0, idle_megahertz=1500.0, full_megahertz=4400.0, slowdown_celsius=95.0, shutdown_celsius=105.0,
    ),
    _card("gpu0"),
    _card("gpu1"),
)  # fmt: skip
"""A workstation: one processor and two cards."""
_IDLE_WATTS = sum(one.idle_watts for one in DEVICES)
_FULL_WATTS = sum(one.full_watts for one in DEVICES)

RADIATOR = 0.0055
"""Coolant to room, °C/W, with the fan at its full speed."""
COOLANT_CAPACITY = 9_000.0
"""J/°C: two litres."""
AMBIENT_CELSIUS = 27.5

Load = Mapping[str, float]
"""Device → share of it that is busy, 0 to 1; one that is not named is idle."""

IDLE: Load = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The state that the loop is in; as it comes, a healthy one's."""

    ambient_celsius: float = AMBIENT_CELSIUS
    pump: float = 1.0
    """Share of its speed."""
    flow: float = 1.0
    """Share of what flows at that speed in a clean loop."""
    plates: float = 1.0
    """Factor on the resistance of every plate to the coolant: bubbles."""
    contact: Mapping[str, float] = field(default_factory=dict)
    """Device → factor on its contact resistance."""
    radiator: float = 1.0
    """Factor on its resistance."""
    slowdown: Mapping[str, float] = field(default_factory=dict)
    """Device → °C at which it slows down, in place of its own limit."""
    leak: float = 0.0
    """What the leak detector says: 0 dry, 1 warning, 2 critical."""


@dataclass(frozen=True, kw_only=True)
class Since:
    """What the model has seen of the load, in bench seconds; None for what has not happened."""

    on: float | None = None
    """Since it came on; still counted when it is off again."""
    off: float | None = None
    """Since it went off; None while it is on."""


class LoadWatch:
    """Tells load from idle. Blips of under five seconds are none, pauses of up to half a minute do not end one."""

    def __init__(self) -> None:
        self._busy = 0.0
        self._quiet = 0.0
        self._on: float | None = None
        self._off: float | None = None

    def advance(self, load: Load, seconds: float) -> Since:
        """What is known after so many more seconds under ``load``."""
        busy = max(load.values(), default=0.0) >= _FULL_LOAD
        self._busy = self._busy + seconds if busy else 0.0
        self._quiet = 0.0 if busy else self._quiet + seconds
        self._on = None if self._on is None else self._on + seconds
        if self._on is not None and self._quiet >= _LOAD_SETTLES_SECONDS:
            self._off = self._quiet
        if self._busy >= _LOAD_SETTLES_SECONDS:
            if self._on is None or (self._off is not None and self._off > _PAUSE_SECONDS):
                self._on = self._busy
            self._off = None
        return Since(on=self._on, off=self._off)


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """One device at one moment, as it is: no sensor has rounded or spoilt it."""

    busy: float
    watts: float
    celsius: float
    memory_celsius: float
    megahertz: float
    thermal_milliseconds: float
    """Spent slowed down by heat so far."""


@dataclass(frozen=True, kw_only=True)
class LoopState:
    """The machine at one moment."""

    devices: Mapping[str, DeviceState]
    pump_rpm: float
    fan_rpm: float
    flow_liters_per_minute: float
    supply_celsius: float
    return_celsius: float
    ambient_celsius: float
    leak: float
    since: Since


Fault = Callable[[Since, random.Random], Condition]
"""The loop's state, from what the model has seen of the load; asked at every step."""

HEALTHY = Condition()


def healthy(since: Since, rng: random.Random) -> Condition:  # noqa: ARG001 - as every fault is called
    """Nothing is wrong."""
    return HEALTHY


@dataclass
class _Running:
    """What a device does, beside being hot."""

    watts: float
    memory: float
    allowed: float = 1.0
    """Share of its power that it allows itself."""
    thermal_milliseconds: float = 0.0


@dataclass(frozen=True)
class _Network:
    """Everything that the network's solution depends on."""

    contacts: tuple[float, ...]
    transfers: tuple[float, ...]
    radiator: float


class LoopModel:
    """The machine over time. It begins idle and settled.

    Die, plate and, for all devices together, the coolant are heat capacities in a row. Within a step their
    temperatures follow the exact solution for constant power (the exponential of the network's matrix).
    """

    def __init__(self, *, fault: Fault = healthy, seed: int = 0) -> None:
        """``seed`` decides whatever is left to chance in a fault."""
        self._fault = fault
        self._rng = random.Random(seed)  # noqa: S311 - bubbles, no secrets
        self._watch = LoadWatch()
        self._since = Since()
        self._condition = fault(self._since, self._rng)
        self._load: Load = IDLE
        self._left = 0.0
        self._fan = 0.0
        self._pump = self._condition.pump
        self._solutions: dict[_Network, list[tuple[float, ...]]] = {}
        self._network = self._make_network()
        self._rows = self._solution()
        self._celsius = self._settled()
        self._running = [
            _Running(watts=one.idle_watts, memory=self._memory_goal(index, one, one.idle_watts))
            for index, one in enumerate(DEVICES)
        ]

    def advance(self, seconds: float, load: Load) -> LoopState:
        """Let bench time pass under a load, in whole steps (the rest is carried over), and look."""
        self._load = load
        self._left += seconds
        while self._left >= STEP_SECONDS:
            self._left -= STEP_SECONDS
            self._step()
        return self._state()

    # ------------------------------------------------------------------------------------------------ one step

    def _step(self) -> None:
        self._since = self._watch.advance(self._load, STEP_SECONDS)
        before, levels = self._condition, (self._flow, self._fan_rpm)
        self._condition = self._fault(self._since, self._rng)
        for device, running, celsius in zip(DEVICES, self._running, self._celsius[::2], strict=False):
            self._slow_down(device, running, celsius)
            busy = self._load.get(device.name, 0.0) * running.allowed
            goal = device.idle_watts + (device.full_watts - device.idle_watts) * busy
            running.watts += (goal - running.watts) * STEP_SECONDS / _POWER_LAG_SECONDS
        watts = [running.watts for running in self._running]
        heat = (sum(watts) - _IDLE_WATTS) / (_FULL_WATTS - _IDLE_WATTS)
        self._fan += (heat - self._fan) * STEP_SECONDS / _FAN_LAG_SECONDS
        self._pump += (self._condition.pump - self._pump) * STEP_SECONDS / _PUMP_LAG_SECONDS
        if self._condition is not before or (self._flow, self._fan_rpm) != levels:
            self._network = self._make_network()
            self._rows = self._solution()
        given = (*self._celsius, *watts, self._condition.ambient_celsius)
        self._celsius = [sum(map(operator.mul, row, given)) for row in self._rows]
        for index, (device, running) in enumerate(zip(DEVICES, self._running, strict=True)):
            goal = self._memory_goal(index, device, running.watts)
            running.memory += (goal - running.memory) * STEP_SECONDS / _MEMORY_LAG_SECONDS

    def _slow_down(self, device: Device, running: _Running, celsius: float) -> None:
        limit = self._condition.slowdown.get(device.name, device.slowdown_celsius)
        if celsius > limit:
            running.allowed = max(running.allowed - 0.03, _LEAST_ALLOWED)
        elif celsius < limit - 1.5:
            running.allowed = min(running.allowed + 0.01, 1.0)
        if running.allowed < 1.0 and self._load.get(device.name, 0.0) > 0:
            running.thermal_milliseconds += STEP_SECONDS * 1000

    def _memory_goal(self, index: int, device: Device, watts: float) -> float:
        return self._celsius[2 * index + 1] + device.memory * watts

    # ---------------------------------------------------------------------------------------------- the network

    @property
    def _flow(self) -> float:
        """Share of nominal flow, in levels."""
        return round(self._pump * self._condition.flow * _FLOW_LEVELS) / _FLOW_LEVELS

    @property
    def _fan_rpm(self) -> float:
        """In levels."""
        return FAN_IDLE_RPM + (FAN_FULL_RPM - FAN_IDLE_RPM) * round(self._fan * _FAN_LEVELS) / _FAN_LEVELS

    def _make_network(self) -> _Network:
        condition = self._condition
        carried = self._flow**0.7 * (1 - _STANDING_WATER) + _STANDING_WATER
        return _Network(
            contacts=tuple(one.contact * condition.contact.get(one.name, 1.0) for one in DEVICES),
            transfers=tuple(one.transfer * condition.plates / carried for one in DEVICES),
            radiator=RADIATOR * condition.radiator * (FAN_FULL_RPM / self._fan_rpm) ** 0.9,
        )

    def _settled(self) -> list[float]:
        """Temperatures of idle devices, after hours: die and plate of each, then the coolant."""
        network = self._network
        coolant = self._condition.ambient_celsius + sum(one.idle_watts for one in DEVICES) * network.radiator
        found = []
        for device, contact, transfer in zip(DEVICES, network.contacts, network.transfers, strict=True):
            plate = coolant + device.idle_watts * transfer
            found += [plate + device.idle_watts * contact, plate]
        return [*found, coolant]

    def _solution(self) -> list[tuple[float, ...]]:
        if self._network not in self._solutions:
            self._solutions[self._network] = _solve(self._network)
        return self._solutions[self._network]

    def _state(self) -> LoopState:
        flow = self._flow * FLOW_LITERS_PER_MINUTE
        coolant = self._celsius[-1]
        carried = sum(
            (plate - coolant) / transfer
            for plate, transfer in zip(self._celsius[1:-1:2], self._network.transfers, strict=True)
        )
        warmer = carried / (max(flow, 0.15 * FLOW_LITERS_PER_MINUTE) / 60 * _WATER_JOULES_PER_LITER)
        return LoopState(
            devices={
                device.name: DeviceState(
                    busy=self._load.get(device.name, 0.0),
                    watts=running.watts,
                    celsius=celsius,
                    memory_celsius=running.memory,
                    megahertz=_clock(device, self._load.get(device.name, 0.0), running.allowed),
                    thermal_milliseconds=running.thermal_milliseconds,
                )
                for device, running, celsius in zip(DEVICES, self._running, self._celsius[::2], strict=False)
            },
            pump_rpm=PUMP_RPM * self._pump if self._pump > 0.02 else 0.0,
            fan_rpm=FAN_IDLE_RPM + (FAN_FULL_RPM - FAN_IDLE_RPM) * self._fan,
            flow_liters_per_minute=flow,
            supply_celsius=coolant,
            return_celsius=coolant + warmer,
            ambient_celsius=self._condition.ambient_celsius,
            leak=self._condition.leak,
            since=self._since,
        )


def _clock(device: Device, busy: float, allowed: float) -> float:
    if busy < 0.05:
        return device.idle_megahertz
    return device.full_megahertz * (0.4 + 0.6 * allowed)


def _solve(network: _Network) -> list[tuple[float, ...]]:
    """Rows that take (temperatures, watts, ambient) to the temperatures one step later, power held constant."""
    count, size = len(DEVICES), 3 * len(DEVICES) + 2
    coolant, ambient = 2 * count, size - 1
    rates = [[0.0] * size for _ in range(size)]

    def join(one: int, other: int, resistance: float, capacity: float, other_capacity: float | None) -> None:
        for a, b, heat in ((one, other, capacity), (other, one, other_capacity)):
            if heat is not None:
                rates[a][a] -= 1 / (resistance * heat)
                rates[a][b] += 1 / (resistance * heat)

    for index, device in enumerate(DEVICES):
        die, plate = 2 * index, 2 * index + 1
        rates[die][coolant + 1 + index] = 1 / device.die_capacity
        join(die, plate, network.contacts[index], device.die_capacity, device.plate_capacity)
        join(plate, coolant, network.transfers[index], device.plate_capacity, COOLANT_CAPACITY)
    join(coolant, ambient, network.radiator, COOLANT_CAPACITY, None)
    return [tuple(row) for row in _exponential(rates, STEP_SECONDS)[: coolant + 1]]


def _exponential(rates: Sequence[Sequence[float]], seconds: float) -> list[list[float]]:
    """e^(rates·seconds) as its power series; the fastest rate is about 0.5/s, so that ten terms leave no error."""
    size = len(rates)
    columns = [[row[index] * seconds for row in rates] for index in range(size)]
    term = [[float(a == b) for b in range(size)] for a in range(size)]
    total = [row[:] for row in term]
    for order in range(1, 11):
        term = [[sum(map(operator.mul, row, column)) / order for column in columns] for row in term]
        total = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(total, term, strict=True)]
    return total
