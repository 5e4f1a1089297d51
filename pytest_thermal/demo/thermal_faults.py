"""What can be wrong with the simulated machine's cooling or its sensors, and from when on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .thermal_model import HEALTHY, Condition, Fault, Since, healthy

CARD = "gpu0"
"""The device at which a fault sits that is not the whole loop's."""

Read = float | None
"""What a sensor gives: None for nothing."""


class Sensing:
    """What a fault does to readings; as it comes, nothing."""

    def spoil(self, sensor_id: str, value: float, since: Since) -> Read:  # noqa: ARG002 - a fault looks at them
        """The reading in place of ``value``. Called once a reading, in order."""
        return value


@dataclass(frozen=True, kw_only=True)
class ThermalFault:
    """One thing that can be wrong. Both callables make a fresh one for each simulated machine."""

    name: str
    description: str
    loop: Callable[[], Fault] = lambda: healthy
    sensing: Callable[[], Sensing] = Sensing


# ---------------------------------------------------------------------------------------------- in the loop itself


def _always(condition: Condition) -> Callable[[], Fault]:
    return lambda: lambda _since, _rng: condition


def _in_steady(condition: Condition) -> Callable[[], Fault]:
    """From the middle of steady on, when the ramp is as long as the demo bench's."""

    def now(since: Since, rng: random.Random) -> Condition:  # noqa: ARG001 - as every fault is called
        return condition if since.on is not None and since.on >= 350.0 else HEALTHY

    return lambda: now


class _Air:
    """Bubbles pass through the plates under load; in cooldown they gather there and stay."""

    BUBBLE, LOCKED = Condition(plates=2.0), Condition(plates=10.0)

    def __init__(self) -> None:
        self._until = 60.0
        self._bubble = False

    def __call__(self, since: Since, rng: random.Random) -> Condition:
        if since.on is None:
            return HEALTHY
        if since.off is not None:
            return self.LOCKED if since.off >= 90.0 else HEALTHY
        if since.on >= self._until:
            self._bubble = not self._bubble
            self._until = since.on + (rng.uniform(15.0, 60.0) if self._bubble else rng.uniform(20.0, 90.0))
        return self.BUBBLE if self._bubble else HEALTHY


# ------------------------------------------------------------------------------------------------- in the sensors


class _Stuck(Sensing):
    """The card's temperature stands still from some time in steady on."""

    def __init__(self) -> None:
        self._held: float | None = None

    def spoil(self, sensor_id: str, value: float, since: Since) -> Read:
        if sensor_id != f"{CARD}.temperature_celsius" or since.on is None or since.on < 300.0:
            return value
        if self._held is None:
            self._held = value
        return self._held


class _Dropout(Sensing):
    """The card's temperature cannot be read for 45 of each 150 seconds."""

    def spoil(self, sensor_id: str, value: float, since: Since) -> Read:
        if sensor_id != f"{CARD}.temperature_celsius" or since.on is None or (since.on - 60.0) % 150.0 >= 45.0:
            return value
        return None


class _Spike(Sensing):
    """The card's temperature is 30 °C too high in one reading, and the processor's in another."""

    def __init__(self) -> None:
        self._due = {f"{CARD}.temperature_celsius": 300.0, "cpu0.package.temperature_celsius": 420.0}

    def spoil(self, sensor_id: str, value: float, since: Since) -> Read:
        due = self._due.get(sensor_id)
        if due is None or since.on is None or since.on < due:
            return value
        del self._due[sensor_id]
        return value + 30.0


# ---------------------------------------------------------------------------------------------------------- table

_ROWS = (
    ThermalFault(
        name="pump_stop", description="the pump stops some minutes into the load", loop=_in_steady(Condition(pump=0.0))
    ),
    ThermalFault(
        name="leak",
        description="coolant reaches the leak detector some minutes into the load",
        loop=_in_steady(Condition(leak=2.0)),
    ),
    ThermalFault(
        name="air",
        description="air in the loop: bubbles pass through the cold plates, and gather there in cooldown",
        loop=_Air,
    ),
    ThermalFault(
        name="low_flow",
        description="only a third of the coolant flows, as in a kinked hose or a clogged filter",
        loop=_always(Condition(flow=0.35)),
    ),
    ThermalFault(
        name="degraded_contact",
        description=f"the paste under {CARD} has dried out, or its plate is not pressed on",
        loop=_always(Condition(contact=MappingProxyType({CARD: 1.9}))),
    ),
    ThermalFault(
        name="fouled_radiator",
        description="the radiator is full of dust: the coolant itself runs warm",
        loop=_always(Condition(radiator=2.4)),
    ),
    ThermalFault(
        name="warm_supply",
        description="the air at the radiator is 17 °C too warm, from the start on",
        loop=_always(Condition(ambient_celsius=44.5)),
    ),
    ThermalFault(
        name="throttling",
        description=f"{CARD} slows itself down at 65 °C already",
        loop=_always(Condition(slowdown=MappingProxyType({CARD: 65.0}))),
    ),
    ThermalFault(
        name="sensor_stuck",
        description=f"the temperature of {CARD} stands still from some minutes into the load on",
        sensing=_Stuck,
    ),
    ThermalFault(
        name="sensor_dropout",
        description=f"the temperature of {CARD} cannot be read for most of a minute, again and again",
        sensing=_Dropout,
    ),
    ThermalFault(
        name="spike",
        description=f"one reading of {CARD} and one of cpu0 are 30 °C too high",
        sensing=_Spike,
    ),
)

_FAULTS: Mapping[str, ThermalFault] = MappingProxyType({row.name: row for row in _ROWS})

THERMAL_FAULTS: Mapping[str, str] = MappingProxyType({row.name: row.description for row in _ROWS})
"""Name of every thermal fault → what is wrong, in a sentence."""


def thermal_fault(name: str | None) -> ThermalFault:
    """The fault of that name; a healthy machine for None or an empty name.

    Raises:
        ValueError: there is none; the message lists the names.
    """
    if not name:
        return ThermalFault(name="", description="nothing is wrong")
    if name not in _FAULTS:
        raise ValueError(f"no thermal demo fault is called {name!r}\ntry: one of {', '.join(_FAULTS)}")
    return _FAULTS[name]
