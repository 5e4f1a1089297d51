"""The fault of a cooling loop, named from the shape of its curves with the evidence; or left unnamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.health import Health
from pytest_thermal.analysis.loop_shape import (
    Departure,
    LoopShape,
    block_level,
    find_departure,
    find_swing,
    wander_of_means,
)
from pytest_thermal.analysis.rebound import Rebound
from pytest_thermal.analysis.time_constants import fit_time_constants
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Phase, Series

EXCESS = 5.0
"""°C above what is expected, or above an earlier run, from which a fault is looked for, as in ``drift``."""
WANDER = 1.0
"""°C of unrest that neither noise nor resolution nor power explain."""
POWER_STEADY = 0.05
"""Power that changes by less than this share has not changed."""
FLOW_RISE, PUMP_RISE = 16.0, 22.0
"""°C of a departure at the cold plate: up to the first it is less flow, from the second on it is none."""
STOPPED = 0.2
"""A pump or fan below this share of its speed has stopped."""
LOW_FLOW = 0.7
WARMEST_SUPPLY = 45.0
"""°C: the warmest facility water of ASHRAE's class W45; above it the supply is at fault, not the loop."""
WARMEST_IDLE = 50.0
"""°C: a liquid-cooled device that idles above this has a warm supply, or is not idle."""
CONTACT_PROMPT = 0.55
"""Of an excess over an earlier run, the contact's goes at once; some of it with the plate, as it also slows the die."""
FLOW_PLATE, FLOW_PROMPT = 0.35, 0.35
"""That of the flow goes with the cold plate, and little of it before."""
RADIATOR_LASTING, RADIATOR_PLATE = 0.7, 0.2
"""That of radiator or fan is nearly all in the coolant."""
GROSS_CONTACT_SHARE, GROSS_RADIATOR_SHARE = 0.85, 0.3
"""Prompt share of the whole rise, where there is no earlier run to compare with."""
AT_ONCE, NOT_AT_ONCE = 0.5, 0.4
"""Of a departure from one 10 s to the next: at least the first for a step, as only the contact makes it."""
AS_THE_LOOP, FASTER_THAN_THE_LOOP = 1.5, 2.5
"""A departure's rate against that at which the whole loop warms up."""


class LoopFaultKind(str, Enum):
    """What can be wrong with a cooling loop."""

    PUMP_STOPPED = "pump stopped"
    FLOW_LOW = "flow low"
    AIR = "air in the loop"
    CONTACT = "contact or paste"
    RADIATOR = "radiator or fan"
    SUPPLY_WARM = "supply too warm"
    SENSOR_STUCK = "sensor stuck"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class LoopSensors:
    """What else is measured in the loop; all optional."""

    power: Series | None = None
    pump: Series | None = None
    """Speed, rpm."""
    flow: Series | None = None
    fan: Series | None = None
    """Speed of the radiator's fan, rpm."""
    coolant_supply: Series | None = None


@dataclass(frozen=True, kw_only=True)
class LoopFault:
    """What the curves say is wrong."""

    kind: LoopFaultKind | None
    """None: nothing is wrong, or it cannot be told what (then ``candidates`` is not empty)."""
    candidates: tuple[LoopFaultKind, ...]
    """What it may be; the one named, where one is."""
    evidence: tuple[str, ...]
    """What was seen, a sentence each, with numbers and units."""


HEALTHY = LoopFault(kind=None, candidates=(), evidence=())


def name_loop_fault(
    temperature: Series,
    phases: Sequence[Phase],
    shape: LoopShape,
    *,
    most_rise: float,
    sensors: LoopSensors | None = None,
    health: Health | None = None,
    rebound: Rebound | None = None,
    earlier: LoopShape | None = None,
) -> LoopFault:
    """Name what is wrong with the loop of one heated device.

    Args:
        temperature: Of the device, °C, spikes taken out.
        phases: Of the run.
        shape: From ``loop_shape.measure_shape``.
        most_rise: The highest rise that is still right for this device, °C.
        sensors: Other sensors of the loop.
        health: From ``check_health``.
        rebound: From ``find_rebound``.
        earlier: The shape of an earlier, comparable, healthy run.

    Looked for in this order; nothing is named unless something is out of its place:

    1. a stuck sensor: no other conclusion can be drawn from it;
    2. a departure in steady at constant power (``find_departure``): a step is the contact; a rise faster
       than the whole loop could warm up is heat that stays at the cold plate, pump or flow; one as slow as the loop's
       own warming is radiator or fan. A pump or fan that is seen to stop decides;
    3. unrest in steady that power does not explain: air;
    4. a supply, or an idle temperature, that is too warm while the rise is right;
    5. too high a rise from the start: by where the excess over an earlier run lies, prompt (contact), cold plate
       (flow) or lasting (radiator or fan); without an earlier run only where the whole curve leaves no doubt;
    6. a rebound in cooldown without any of these: pump or air, unnamed.

    Reasoning on heat capacities in a row: see ``loop_shape``.
    """
    loop = sensors or LoopSensors()
    steady = next((phase for phase in phases if phase.name == "steady"), None)
    if health is not None and health.stuck is Answer.YES:
        return _named(LoopFaultKind.SENSOR_STUCK, health.reason)
    if steady is None:
        return HEALTHY
    departure = find_departure(temperature, steady, least=EXCESS)
    if departure is not None and not _power_rose(loop.power, steady, departure):
        load_on = min(phase.start_seconds for phase in phases if phase.name in {"ramp", "steady"})
        return _from_departure(departure, steady, loop, _warming_rate(temperature, load_on, departure))
    return (
        _air(temperature, steady, shape, loop, rebound)
        or _warm_supply(steady, shape, loop, most_rise, earlier)
        or _from_start(steady, shape, loop, most_rise, earlier)
        or _from_rebound(loop, phases, rebound)
        or HEALTHY
    )


def _named(kind: LoopFaultKind, *evidence: str) -> LoopFault:
    return LoopFault(kind=kind, candidates=(kind,), evidence=evidence)


def _unnamed(candidates: Sequence[LoopFaultKind], *evidence: str) -> LoopFault:
    return LoopFault(kind=None, candidates=tuple(candidates), evidence=evidence)


# ------------------------------------------------------------------------------------------------ something happened


def _power_rose(power: Series | None, steady: Phase, departure: Departure) -> bool:
    if power is None:
        return False
    before = block_level(power, steady.start_seconds, departure.start_seconds)
    after = block_level(power, departure.start_seconds, departure.start_seconds + 120.0)
    return before is not None and after is not None and after > before * (1 + POWER_STEADY)


def _from_departure(departure: Departure, steady: Phase, loop: LoopSensors, whole_loop: float | None) -> LoopFault:
    """Args: ``whole_loop`` is the rate in K/s at which all of the heat, kept in the loop, warms it."""
    at = departure.start_seconds
    said = say(
        "{rise:+.1f} °C from {at:.0f} s into steady on, and no more power",
        rise=departure.rise,
        at=at - steady.start_seconds,
    )
    pump = _falls_to(loop.pump, steady, at, STOPPED)
    if pump:
        return _named(LoopFaultKind.PUMP_STOPPED, said, say("the pump fell {pump}", pump=pump))
    fan = _falls_to(loop.fan, steady, at, STOPPED)
    if fan:
        return _named(LoopFaultKind.RADIATOR, said, say("the fan fell {fan}", fan=fan))
    flow = _falls_to(loop.flow, steady, at, LOW_FLOW)
    if flow:
        return _named(LoopFaultKind.FLOW_LOW, said, say("the flow fell {flow}", flow=flow))
    if departure.at_once >= AT_ONCE * departure.rise:
        return _named(
            LoopFaultKind.CONTACT, said, say("{at_once:.1f} °C of it within seconds", at_once=departure.at_once)
        )
    if departure.at_once >= NOT_AT_ONCE * departure.rise:
        return _unnamed((LoopFaultKind.CONTACT, LoopFaultKind.FLOW_LOW), said)
    rate = say("{first_rate:.1f} K/min in the first minute", first_rate=departure.first_rate * 60)
    if whole_loop is None:
        some = (LoopFaultKind.PUMP_STOPPED, LoopFaultKind.FLOW_LOW, LoopFaultKind.RADIATOR)
        return _unnamed(some, said, rate, say("how fast the whole loop warms up is not known"))
    compared = say(
        "{rate}; the whole loop warms up by {whole_loop:.1f} K/min at most", rate=rate, whole_loop=whole_loop * 60
    )
    if departure.first_rate <= AS_THE_LOOP * whole_loop:
        return _named(LoopFaultKind.RADIATOR, said, compared)
    if departure.first_rate < FASTER_THAN_THE_LOOP * whole_loop:
        return _unnamed((LoopFaultKind.FLOW_LOW, LoopFaultKind.RADIATOR), said, compared)
    if departure.rise >= PUMP_RISE:
        return _named(LoopFaultKind.PUMP_STOPPED, said, compared)
    if departure.rise <= FLOW_RISE:
        return _named(LoopFaultKind.FLOW_LOW, said, compared)
    return _unnamed((LoopFaultKind.PUMP_STOPPED, LoopFaultKind.FLOW_LOW), said, compared)


def _warming_rate(temperature: Series, load_on: float, departure: Departure) -> float | None:
    """The slow mode's rise over its constant, from the heating curve up to the departure, K/s.

    Where no constants can be had, the slope from one to three minutes after the load went on, with half as much again
    for what it has lost of its first steepness by then.
    """
    constants = fit_time_constants(temperature, load_on, departure.start_seconds)
    if constants.slow.value is not None and constants.slow_rise.value is not None:
        return abs(constants.slow_rise.value) / constants.slow.value
    first = block_level(temperature, load_on + 55.0, load_on + 66.0)
    second = block_level(temperature, load_on + 175.0, load_on + 186.0)
    if first is None or second is None or departure.start_seconds < load_on + 190.0 or second <= first:
        return None
    return 1.5 * (second - first) / 120.0


def _falls_to(series: Series | None, steady: Phase, at: float, share: float) -> str:
    """Evidence that a speed or flow fell below a share of itself about the time of the departure, or nothing."""
    if series is None:
        return ""
    before = block_level(series, steady.start_seconds - 300.0, at - 15.0)
    after = block_level(series, at, steady.end_seconds)
    if before is None or after is None or before <= 0 or after > share * before:
        return ""
    return say("from {before:.1f} to {after:.1f} {unit}", before=before, after=after, unit=series.sensor.unit)


# ------------------------------------------------------------------------------------------------ from the start on


def _air(
    temperature: Series, steady: Phase, shape: LoopShape, loop: LoopSensors, rebound: Rebound | None
) -> LoopFault | None:
    wander = shape.wander.value
    if wander is None or wander < WANDER or loop.power is None:
        return None
    unrest = wander_of_means(loop.power, steady)
    watts, risen = shape.watts.value, shape.rise.value
    if unrest is None or not watts or risen is None:
        return None
    by_power = unrest * abs(risen) / watts
    if by_power > wander / 2 or find_swing(temperature, steady) is not None:
        return None
    evidence = [
        say(
            "the temperature wanders by {wander:.1f} °C (one sigma), of which power explains {by_power:.1f} °C",
            wander=wander,
            by_power=by_power,
        )
    ]
    if rebound is not None and rebound.found is Answer.YES:
        evidence.append(say("in cooldown it came back: {reason}", reason=rebound.reason))
    return _named(LoopFaultKind.AIR, *evidence)


def _warm_supply(
    steady: Phase, shape: LoopShape, loop: LoopSensors, most_rise: float, earlier: LoopShape | None
) -> LoopFault | None:
    if loop.coolant_supply is not None:
        supply = block_level(loop.coolant_supply, steady.start_seconds, steady.end_seconds)
        if supply is not None and supply > WARMEST_SUPPLY:
            return _named(
                LoopFaultKind.SUPPLY_WARM,
                say(
                    "the coolant is supplied at {supply:.1f} °C, above {warmest_supply:g} °C",
                    supply=supply,
                    warmest_supply=WARMEST_SUPPLY,
                ),
            )
        if supply is not None:
            return None
    idle, risen = shape.baseline.value, shape.rise.value
    if idle is None or risen is None or risen > most_rise:
        return None
    before = earlier.baseline.value if earlier is not None else None
    if before is not None:
        if idle - before < EXCESS or abs(risen - ((earlier.rise.value if earlier else None) or risen)) >= EXCESS:
            return None
        return _named(
            LoopFaultKind.SUPPLY_WARM,
            say(
                "idle is {idle:.1f} °C, {idle_2:+.1f} °C against the earlier run, and the rise has not changed",
                idle=idle,
                idle_2=idle - before,
            ),
        )
    if idle <= WARMEST_IDLE:
        return None
    return _named(
        LoopFaultKind.SUPPLY_WARM,
        say("idle is {idle:.1f} °C already, and the rise of {risen:.1f} °C is right", idle=idle, risen=risen),
    )


def _from_start(
    steady: Phase, shape: LoopShape, loop: LoopSensors, most_rise: float, earlier: LoopShape | None
) -> LoopFault | None:
    risen = shape.rise.value
    if risen is None:
        return None
    excess = _excess(shape, earlier) if earlier is not None else None
    if excess is None and risen <= most_rise:
        return None
    if excess is not None and sum(excess) < EXCESS:
        return None
    pump = _standstill(loop.pump, steady, say("the pump"))
    if pump:
        return _named(LoopFaultKind.PUMP_STOPPED, say("the rise is {risen:.1f} °C", risen=risen), pump)
    fan = _standstill(loop.fan, steady, say("the fan"))
    if fan:
        return _named(LoopFaultKind.RADIATOR, say("the rise is {risen:.1f} °C", risen=risen), fan)
    if excess is not None:
        return _by_excess(excess)
    return _by_share(shape, risen, most_rise)


def _excess(shape: LoopShape, earlier: LoopShape) -> tuple[float, float, float] | None:
    """Prompt, plate's and lasting excess over an earlier run, °C, scaled to this run's power where both are known."""
    scale = shape.watts.value / earlier.watts.value if shape.watts.value and earlier.watts.value else 1.0
    parts = []
    for now, before in (
        (shape.prompt, earlier.prompt),
        (shape.plate, earlier.plate),
        (shape.lasting, earlier.lasting),
    ):
        if now.value is None or before.value is None:
            return None
        parts.append(now.value - scale * before.value)
    return parts[0], parts[1], parts[2]


def _by_excess(excess: tuple[float, float, float]) -> LoopFault:
    whole = sum(excess)
    prompt, plate, lasting = (part / whole for part in excess)
    said = say(
        "{whole:+.1f} °C against the earlier run: {excess:+.1f} °C of it go at once with the "
        "load, {excess_2:+.1f} °C within a minute, {excess_3:+.1f} °C later",
        whole=whole,
        excess=excess[0],
        excess_2=excess[1],
        excess_3=excess[2],
    )
    if prompt >= CONTACT_PROMPT:
        return _named(LoopFaultKind.CONTACT, said)
    if plate >= FLOW_PLATE and prompt <= FLOW_PROMPT:
        return _named(LoopFaultKind.FLOW_LOW, said)
    if lasting >= RADIATOR_LASTING and plate <= RADIATOR_PLATE:
        return _named(LoopFaultKind.RADIATOR, said)
    return _unnamed(_ANY, said)


def _by_share(shape: LoopShape, risen: float, most_rise: float) -> LoopFault:
    said = say("the rise is {risen:.1f} °C, above {most_rise:g} °C", risen=risen, most_rise=most_rise)
    if shape.prompt.value is None:
        return _unnamed(_ANY, said)
    share = shape.prompt.value / risen
    where = say("{share:.0%} of it goes within seconds of the load", share=share)
    if share >= GROSS_CONTACT_SHARE:
        return _named(LoopFaultKind.CONTACT, said, where)
    if share <= GROSS_RADIATOR_SHARE:
        either = (LoopFaultKind.RADIATOR, LoopFaultKind.PUMP_STOPPED, LoopFaultKind.FLOW_LOW)
        return _unnamed(either, said, where)
    return _unnamed(_ANY, said, where)


_ANY = (LoopFaultKind.CONTACT, LoopFaultKind.FLOW_LOW, LoopFaultKind.RADIATOR)


def _standstill(series: Series | None, steady: Phase, what: str) -> str:
    if series is None:
        return ""
    speed = block_level(series, steady.start_seconds, steady.end_seconds)
    if speed is None or speed > 0:
        return ""
    return say("{what} stands still", what=what)


def _from_rebound(loop: LoopSensors, phases: Sequence[Phase], rebound: Rebound | None) -> LoopFault | None:
    if rebound is None or rebound.found is not Answer.YES:
        return None
    cooldown = next((phase for phase in phases if phase.name == "cooldown"), None)
    if cooldown is not None:
        stands = _standstill(loop.pump, cooldown, say("the pump"))
        if stands:
            return _named(LoopFaultKind.PUMP_STOPPED, rebound.reason, say("{stands} in cooldown", stands=stands))
    return _unnamed((LoopFaultKind.PUMP_STOPPED, LoopFaultKind.AIR), rebound.reason)
