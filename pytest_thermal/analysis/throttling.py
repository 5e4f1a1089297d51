"""For how long a device slowed itself down, and for which reason."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, FloatArray, Phase, Series

ANY_REASON = "slowdown"
"""What a device's summary is called that says whether it is slowed down, and not why."""
MOST_TICKS = 5.0
"""A sampled flag is believed for no longer than this after its reading."""


class ThrottleKind(str, Enum):
    """What a reason for a lower clock is about."""

    THERMAL = "thermal"
    POWER = "power"
    """A power cap or brake: the device does what it was told, and it is no thermal finding."""
    EITHER = "thermal or power"
    """The device's word for both, such as NVIDIA's hardware slowdown; its parts say which."""
    OTHER = "other"
    """Idle, a set clock, synchronisation with other devices."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Throttling:
    """Throttling of one device in one phase, in milliseconds."""

    reasons: Mapping[str, Figure]
    """By reason; ``detail["kind"]`` has the kind."""
    thermal: Figure
    """By heat: the longest of the thermal reasons, which may overlap."""


def kind_of(reason: str) -> ThrottleKind:
    """The kind of a reason by its name, as tools spell it: ``hw_thermal_slowdown``, ``sw_power_cap``."""
    words = set(re.split(r"[^a-z]+", reason.lower()))
    if words & {"thermal", "temperature", "temp", "prochot", "overheat", "overtemp"}:
        return ThrottleKind.THERMAL
    if words & {"power", "brake", "edp", "current", "ppt", "edc", "tdc", "tdp"}:
        return ThrottleKind.POWER
    if {"hw", "slowdown"} <= words or words == {"slowdown"}:
        return ThrottleKind.EITHER
    return ThrottleKind.OTHER


def measure_throttling(reasons: Mapping[str, Series], phase: Phase) -> Throttling:
    """Milliseconds per reason in one phase.

    Args:
        reasons: Reason → its series: a counter of milliseconds that only grows (unit ``milliseconds``), or a flag
            that is above zero while the reason holds (any other unit).
        phase: The phase.

    Counter: the sum of its increments from the last reading before the phase to the last one in it; one that falls
    has begun again from zero. Its uncertainty is one period's share of the steps at the two edges. Flag: each reading
    holds until the next, at most five ticks; each change of the flag is known to one period, ±period/√12.
    """
    figures = {reason: _spent(reason, series, phase) for reason, series in reasons.items()}
    thermal = [
        figure
        for reason, figure in figures.items()
        if kind_of(reason) is ThrottleKind.THERMAL and figure.value is not None
    ]
    whole = figures.get(ANY_REASON)
    if not thermal and whole is not None and whole.value == 0.0:
        # A device that says in one word whether it is slowed down at all, and is not, is not slowed down by heat.
        thermal = [whole]
    if thermal:
        longest = max(thermal, key=lambda figure: figure.value or 0.0)
        total = Figure(
            name="thermal_throttling",
            value=longest.value,
            unit="milliseconds",
            uncertainty=longest.uncertainty,
            detail={"phase": phase.name, "reason": longest.name},
        )
    else:
        why = say("the device reports no thermal reason for throttling") if not reasons else _why_none(figures)
        total = Figure.missing("thermal_throttling", "milliseconds", why, phase=phase.name)
    return Throttling(reasons=figures, thermal=total)


def _why_none(figures: Mapping[str, Figure]) -> str:
    said = [
        say("{name}: {reason}", name=name, reason=figure.reason) for name, figure in figures.items() if figure.reason
    ]
    return joined("; ", said) or say("none of the reasons that the device reports is thermal")


def _spent(reason: str, series: Series, phase: Phase) -> Figure:
    kind = kind_of(reason)
    counter = series.sensor.unit is Unit.MILLISECONDS
    lead = 2 * MOST_TICKS * series.period_seconds
    times, values = series.between(phase.start_seconds - lead, phase.end_seconds).readings()
    first = max(int(np.searchsorted(times, phase.start_seconds)) - 1, 0)
    times, values = times[first:], values[first:]
    if times.size < 2 or times[-1] < phase.start_seconds:
        why = say("{size} readings around {phase_name}", size=times.size, phase_name=phase.name)
        return Figure.missing(reason, "milliseconds", why, kind=str(kind), phase=phase.name)
    spent, sigma = _counted(times, values, phase) if counter else _flagged(times, values, phase, series.period_seconds)
    return Figure(
        name=reason,
        value=spent,
        unit="milliseconds",
        uncertainty=sigma,
        detail={"kind": str(kind), "phase": phase.name},
    )


def _counted(
    times: FloatArray,
    values: FloatArray,
    phase: Phase,
) -> tuple[float, float]:
    steps = np.diff(values)
    steps = np.where(steps < 0, values[1:], steps)
    outside = float(np.clip((phase.start_seconds - times[0]) / (times[1] - times[0]), 0.0, 1.0))
    spent = float(steps.sum() - outside * steps[0])
    edges = math.hypot(float(steps[0]) * (outside > 0), float(steps[-1]))
    return spent, edges / math.sqrt(12)


def _flagged(
    times: FloatArray,
    values: FloatArray,
    phase: Phase,
    period: float,
) -> tuple[float, float]:
    until = np.minimum(np.append(times[1:], phase.end_seconds), times + MOST_TICKS * period)
    held = np.maximum(until - np.maximum(times, phase.start_seconds), 0.0)
    active = values > 0
    changes = int(np.count_nonzero(active[1:] != active[:-1]))
    return 1000 * float(held[active].sum()), 1000 * period * math.sqrt(changes / 12)
