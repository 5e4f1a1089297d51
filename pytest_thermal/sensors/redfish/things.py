"""What is measured where: one thing with its quantities in one resource, and how they are read out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_thermal.model import Missing, Reading, Unit
from pytest_thermal.model.said import say

Resource = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Member:
    """An element of an array, known by what it says of itself and never by its place alone."""

    array: str
    key: str
    value: str

    def find(self, resource: Resource) -> Resource | None:
        """That element; None where none is it, or two are."""
        members = resource.get(self.array)
        found = [
            one for one in members if isinstance(one, Mapping) and str(one.get(self.key)) == self.value
        ] if isinstance(members, Sequence) and not isinstance(members, str) else []  # fmt: skip
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number of a thing."""

    name: str
    """As in the sensor's id: ``speed_rpm``."""
    unit: Unit
    keys: tuple[str, ...]
    """Where it stands, from the thing's part of the resource on."""
    scale: float = 1.0
    """What one is in ``unit``."""
    offset: float = 0.0
    """Added after scaling."""
    limits: Mapping[str, float] = field(default_factory=dict)
    data_source: str = ""
    """The sensor's own resource that it is an excerpt of."""


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A pump, a fan, a probe: what the bench may give a name of its own."""

    uri: str
    name: str
    """As the service calls it."""
    device: str
    """What ids call it."""
    quantities: tuple[Quantity, ...]
    part: str = ""
    """Which of several in one resource: ``supply``."""
    within: tuple[str | Member, ...] = ()
    """Where in the resource its status and quantities stand."""
    longer: str = ""
    """What ids call it where ``device`` is another's too."""
    left_out: str = ""
    """Why it is not recorded unless the bench names it."""
    summary: bool = False
    """Whether it only sums up what is measured elsewhere: it gives way to what it repeats, and to any of its name."""

    @property
    def identity(self) -> str:
        """What stays the same over reboots."""
        parts = [one if isinstance(one, str) else f"{one.array}[{one.value}]" for one in self.within]
        return "#".join(filter(None, (self.uri, "/".join(filter(None, (*parts, self.part))))))

    @property
    def names(self) -> frozenset[str]:
        """What a bench file may call it by, folded."""
        return frozenset({self.name.casefold(), self.identity.casefold(), self.uri.casefold()})


READABLE = frozenset({"", "Enabled", "Degraded", "Quiesced", "InTest", "Qualified"})
"""States, as DMTF's Resource.State names them, in which a reading is one."""
_STATES: Mapping[str, Missing] = {"Absent": Missing.ABSENT, "UnavailableOffline": Missing.DEVICE_ERROR}
_DETECTOR = {"ok": 0.0, "warning": 1.0, "critical": 2.0}
TIME = "ReadingTime"
_MOST = 1e18


def part_of(resource: Resource, thing: Thing) -> Resource | None:
    """The thing's own part of its resource; None where it is no more."""
    found: Resource | None = resource
    for step in thing.within:
        if found is None:
            return None
        one = step.find(found) if isinstance(step, Member) else found.get(step)
        found = one if isinstance(one, Mapping) else None
    return found


def state_of(part: Resource) -> str:
    """``Enabled``, ``Absent`` …; empty where it does not say."""
    status = part.get("Status")
    state = status.get("State") if isinstance(status, Mapping) else None
    return state if isinstance(state, str) else ""


def number_in(told: object) -> float | None:
    """The number that ``told`` is; None for anything else, and for one that no quantity has."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not -_MOST <= told <= _MOST:
        return None
    return float(told)


def readings(thing: Thing, resource: Resource) -> list[Reading]:
    """One reading of each quantity, its id being the thing's device's. The state comes before any figure."""
    part = part_of(resource, thing)
    return [_reading(f"{thing.device}.{one.name}", one, part) for one in thing.quantities]


def _reading(sensor_id: str, quantity: Quantity, part: Resource | None) -> Reading:
    if part is None:
        return Reading(sensor_id=sensor_id, missing=Missing.ABSENT, detail=say("not in the BMC's answer"))
    raw: Any = part
    for key in quantity.keys:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    if quantity.unit is Unit.STATE:
        return _detector(sensor_id, raw, part)
    state = state_of(part)
    if state not in READABLE:
        return _silent(sensor_id, state)
    if raw is None:
        return Reading(sensor_id=sensor_id, missing=Missing.NOT_OFFERED, detail="null")
    value = number_in(raw)
    if value is None:
        return Reading(sensor_id=sensor_id, missing=Missing.NOT_UNDERSTOOD, detail=f"{raw!r}"[:80])
    return Reading(sensor_id=sensor_id, value=round(value * quantity.scale + quantity.offset, 9))


def _silent(sensor_id: str, state: str) -> Reading:
    return Reading(sensor_id=sensor_id, missing=_STATES.get(state, Missing.NOT_OFFERED), detail=state)


def _detector(sensor_id: str, raw: object, part: Resource) -> Reading:
    """A leak detector's word; where it has none of its own, its health."""
    state = state_of(part)
    status = part.get("Status")
    word = raw if raw is not None else status.get("Health") if isinstance(status, Mapping) else None
    value = _DETECTOR.get(word.casefold()) if isinstance(word, str) else None
    # One that is out of order and says that there is a leak is believed all the same.
    if state not in READABLE and (value != _DETECTOR["critical"] or state in ("Absent", "Disabled")):
        return _silent(sensor_id, state)
    if value is not None:
        return Reading(sensor_id=sensor_id, value=value)
    if word is None:
        return Reading(sensor_id=sensor_id, missing=Missing.NOT_OFFERED, detail="null")
    missing = {"unavailable": Missing.DEVICE_ERROR, "absent": Missing.ABSENT}.get(str(word).casefold())
    return Reading(sensor_id=sensor_id, missing=missing or Missing.NOT_UNDERSTOOD, detail=str(word)[:80])
