"""This run against an earlier one: whether they may be compared, and by which figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure

FAILS_AT = 5.0
"""°C of drift that fail: more than seasons and sensors do, and what aged paste or a clogged filter costs."""
SAME_WATTS = 0.02
"""Power limits are the same within this share: tools print them rounded."""
SAME_SECONDS = 0.1
"""Phases are of the same length within this share."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What must be the same in two runs for a difference in temperature to mean something."""

    bench: str
    load: Mapping[str, Scalar]
    """What made the heat: its kind and the parameters that set how much of it."""
    power_limits: Mapping[str, float] = field(default_factory=dict)
    """Device → watts."""
    sensors: frozenset[str] = frozenset()
    """Stable identity and id of every sensor judged."""
    steady_seconds: float = 0.0
    """Planned length of steady; 0 where it is not known."""


def not_comparable(now: RunFacts, then: RunFacts) -> tuple[str, ...]:
    """Why two runs may not be compared, one sentence a reason; empty where they may.

    Runs of another bench, another load, another power limit, another set of sensors, or another length of steady are
    not comparable: each moves the temperature by itself.
    """
    reasons = []
    if now.bench != then.bench:
        reasons.append(say("another bench: {bench}, now {bench_2}", bench=then.bench, bench_2=now.bench))
    for key in sorted(now.load.keys() | then.load.keys()):
        before, after = then.load.get(key), now.load.get(key)
        if before != after:
            reasons.append(
                say(
                    "another load: {key} was {spoken}, now {spoken_2}",
                    key=key,
                    spoken=_spoken(before),
                    spoken_2=_spoken(after),
                )
            )
    for device in sorted(now.power_limits.keys() | then.power_limits.keys()):
        was, is_now = then.power_limits.get(device), now.power_limits.get(device)
        if was is None or is_now is None or abs(was - is_now) > SAME_WATTS * max(was, is_now):
            reasons.append(
                say(
                    "another power limit of {device}: was {watts}, now {watts_2}",
                    device=device,
                    watts=_watts(was),
                    watts_2=_watts(is_now),
                )
            )
    gone, new = sorted(then.sensors - now.sensors), sorted(now.sensors - then.sensors)
    if gone or new:
        said = [say("{count} gone ({names})", count=len(gone), names=joined(", ", gone[:3]))] if gone else []
        said += [say("{count} new ({names})", count=len(new), names=joined(", ", new[:3]))] if new else []
        reasons.append(say("another set of sensors: {names}", names=joined(", ", said)))
    longest = max(now.steady_seconds, then.steady_seconds)
    if abs(now.steady_seconds - then.steady_seconds) > SAME_SECONDS * longest:
        reasons.append(
            say(
                "another length of steady: was {steady_seconds:.0f} s, now {steady_seconds_2:.0f} s",
                steady_seconds=then.steady_seconds,
                steady_seconds_2=now.steady_seconds,
            )
        )
    return tuple(reasons)


def drift(
    rise: Figure, earlier_rise: Figure, *, resistance: Figure | None = None, earlier_resistance: Figure | None = None
) -> Figure:
    """How much hotter this run is than an earlier, comparable one, in °C at this run's power.

    Args:
        rise: From ``levels.rise``, °C.
        earlier_rise: The earlier run's.
        resistance: From ``resistance.resistance``, °C/W.
        earlier_resistance: The earlier run's.

    By resistance where both runs have one against the same reference: (R − R_earlier)·P with this run's P, free of
    the room's temperature and of a different power. Else by rise. ``detail["figure"]`` says which. u² is the sum of
    both runs' u² (GUM). A drift of ``FAILS_AT`` or more fails.
    """
    if resistance is not None and earlier_resistance is not None:
        now, then, watts = resistance.value, earlier_resistance.value, resistance.detail.get("watts")
        same = resistance.detail.get("reference") == earlier_resistance.detail.get("reference")
        if now is not None and then is not None and same and isinstance(watts, (int, float)):
            sigma = math.hypot(resistance.uncertainty or 0.0, earlier_resistance.uncertainty or 0.0)
            return Figure(
                name="drift",
                value=(now - then) * watts,
                unit="celsius",
                uncertainty=sigma * watts,
                detail={
                    "figure": "resistance",
                    "reference": resistance.detail.get("reference"),
                    "now": now,
                    "earlier": then,
                    "watts": watts,
                },
            )
    if rise.value is None or earlier_rise.value is None:
        said = rise.reason or say("in the earlier run: {reason}", reason=earlier_rise.reason)
        return Figure.missing("drift", rise.unit, said)
    return Figure(
        name="drift",
        value=rise.value - earlier_rise.value,
        unit=rise.unit,
        uncertainty=math.hypot(rise.uncertainty or 0.0, earlier_rise.uncertainty or 0.0),
        detail={"figure": "rise", "now": rise.value, "earlier": earlier_rise.value},
    )


def _spoken(value: Scalar) -> str:
    return say("not set") if value is None else str(value)


def _watts(value: float | None) -> str:
    return say("not known") if value is None else f"{value:g} W"
