"""One node against its fleet, and a place in the rack against a bad card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.numerics import robust_sigma
from pytest_thermal.model.said import say
from pytest_thermal.model.series import FloatArray, IndexArray

LEAST_DEVIATION = 5.0
"""°C: what chips of one kind may differ by."""
LEAST_SETTLING_APART = 0.5
"""Of the fleet's median: a fit of a slow time constant is known less well than a level. Own criterion."""
LEAST_THROUGHPUT_APART = 0.1
"""Of the fleet's median: what nodes behind one gateway differ by without a fault. Own criterion."""
SIGMAS = 3.5
"""Iglewicz and Hoaglin's cut for the modified z-score."""
LEAST_MEMBERS = 5
LEAST_IN_PLACE = 3
"""Below this a place's effect and its only card's cannot be told apart."""
ROUNDS = 10
MOST_MARKED = 300
"""Places whose effects are looked for one by one, before those of all others together."""
SCALE_DOUBT = 2.326 * 1.167
"""× 1/√n: how much greater than its median absolute deviation says a normal sample's spread may be, at 99 %: that
measure has 37 % of the standard deviation's efficiency."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One card's figure (a rise or a resistance times power, °C) and where the card sits."""

    key: str
    """Host and sensor: ``node07 gpu3.temperature_celsius``."""
    value: float
    position: Mapping[str, str] = field(default_factory=dict)
    """Kind of place → place: ``{"slot": "3", "branch": "B"}``. The same kinds for all, or none."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place that runs hotter or colder than the others, whatever card is in it."""

    kind: str
    name: str
    effect: float
    """°C against the fleet's median."""
    members: int
    against: float = 0.0
    """°C against the median of the other places of its kind: of two halves of a fleet, each is the other's measure."""
    also: tuple[tuple[str, str], ...] = ()
    """Other places, kind and name, that hold the very same members: a rack that is one branch."""

    def name_in(self, kind: str) -> str:
        """Its name among places of a kind; empty where it is none of them."""
        return next((name for known, name in ((self.kind, self.name), *self.also) if known == kind), "")


@dataclass(frozen=True, kw_only=True)
class Consistent:
    """One member's verdict."""

    member: Member
    consistent: Answer
    deviation: float
    """From the fleet's median, °C."""
    own: float
    """What is left of it after the effects of its places, °C: the card's own."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class Consistency:
    """A fleet's figures side by side."""

    median: float | None
    scale: float | None
    """Spread of the cards' own deviations, one sigma, °C."""
    threshold: float | None
    """Deviation that is an outlier, °C."""
    members: tuple[Consistent, ...]
    places: tuple[Place, ...]
    """Those whose effect is beyond ``threshold``."""
    effects: tuple[Place, ...]
    """All that could have one."""
    reason: str
    """Why nothing could be judged; empty where it could."""


def judge_fleet(members: Sequence[Member], *, least_deviation: float = LEAST_DEVIATION) -> Consistency:
    """Find members that stand out of a fleet, and places that do.

    Model: value = median + Σ effect of its places + own, the effects by median polish (Tukey, "Exploratory Data
    Analysis", Addison-Wesley (1977)), so that a bad card does not make its slot look hot, and a hot slot not its
    cards. Places may hold each other, as a rack its branches and a branch its nodes: then polish alone would share
    a warm branch out among them. So marked effects are taken off first, one by one, that place first whose median
    explains most of what is there (matching pursuit in the sum of absolute deviations). The scale is 1.4826·MAD of
    what is the cards' own (Hampel, J. Am. Stat. Assoc. 69 (1974)), × √(n/(n−p)) for
    p effects. A member is an outlier when its own deviation exceeds 3.5 scales (Iglewicz and Hoaglin, "How to Detect
    and Handle Outliers", ASQC (1993)), the scale taken at its 99 % bound, as one from few members is hardly known,
    and ``least_deviation``; a place, when its effect does. A place with fewer than three members has no effect of its
    own, nor any place in a fleet that has fewer than five members more than places. UNKNOWN for all with fewer than
    five members.
    """
    if len(members) < LEAST_MEMBERS:
        why = say("{count} members are too few for a fleet, needs {least}", count=len(members), least=LEAST_MEMBERS)
        lone = tuple(
            Consistent(member=m, consistent=Answer.UNKNOWN, deviation=0.0, own=0.0, reason=why) for m in members
        )
        return Consistency(median=None, scale=None, threshold=None, members=lone, places=(), effects=(), reason=why)
    values = np.array([member.value for member in members])
    median = float(np.median(values))
    own, effects = _polish(values - median, members, least_deviation)
    free = max(len(members) - len(effects), 1)
    scale = robust_sigma(own) * math.sqrt(len(members) / free)
    threshold = max(SIGMAS * scale * (1 + SCALE_DOUBT / math.sqrt(free)), least_deviation)
    places = tuple(place for place in effects if _stands_out(place, effects, threshold))
    return Consistency(
        median=median,
        scale=scale,
        threshold=threshold,
        members=tuple(
            _judged(member, member.value - median, float(alone), threshold, places)
            for member, alone in zip(members, own, strict=True)
        ),
        places=places,
        effects=tuple(effects),
        reason="",
    )


def _judged(member: Member, deviation: float, own: float, threshold: float, places: Sequence[Place]) -> Consistent:
    here = [place for place in places if member.position.get(place.kind) == place.name]
    if abs(own) > threshold:
        answer = Answer.NO
        where = ", also against the other cards of its place" if member.position else ""
        reason = f"{own:+.1f} °C against the fleet{where}"
    elif here and abs(deviation) > threshold:
        answer = Answer.YES
        reason = f"{deviation:+.1f} °C goes with its place: " + ", ".join(
            f"{place.kind} {place.name} is {place.effect:+.1f} °C for {place.members} cards" for place in here
        )
    else:
        answer, reason = Answer.YES, ""
    return Consistent(member=member, consistent=answer, deviation=deviation, own=own, reason=reason)


def _stands_out(place: Place, places: Sequence[Place], threshold: float) -> bool:
    """Of two places that differ the warmer one: which of them is as it should be cannot be told."""
    if abs(place.effect) > threshold:
        return True
    few = sum(1 for other in places if other.kind == place.kind) == 2
    return place.against > threshold and few


def _polish(deviations: FloatArray, members: Sequence[Member], least: float) -> tuple[FloatArray, list[Place]]:
    """Own deviations, shape (n,), and the effect of every place with enough members."""
    own = deviations.copy()
    groups = _groups(members)
    if len(members) - len(groups) < LEAST_MEMBERS:
        groups = []
    effects = _marked(own, [inside for _, inside in groups], least)
    for _ in range(ROUNDS):
        for index, (_, inside) in enumerate(groups):
            shift = float(np.median(own[inside]))
            effects[index] += shift
            own[inside] -= shift
    by_kind: dict[str, list[float]] = {}
    for (names, _), effect in zip(groups, effects.tolist(), strict=True):
        by_kind.setdefault(names[0][0], []).append(effect)
    return own, [
        Place(
            kind=kind,
            name=name,
            effect=effect,
            members=int(inside.size),
            against=effect - _others(by_kind[kind], effect),
            also=tuple(also),
        )
        for (((kind, name), *also), inside), effect in zip(groups, effects.tolist(), strict=True)
    ]


def _marked(own: FloatArray, groups: Sequence[IndexArray], least: float) -> FloatArray:
    """Take effects of at least half of ``least`` off ``own``, shape (n,), in place; what they are, shape (groups,).

    What a place explains is by how much its median shortens the sum of absolute deviations in it, times the share of
    what it would shorten if all its members were off by just that: of a branch two of whose three nodes are warm, the
    two nodes explain more.
    """
    effects = np.zeros(len(groups))
    of_member: dict[int, list[int]] = {}
    for index, inside in enumerate(groups):
        for member in inside.tolist():
            of_member.setdefault(member, []).append(index)
    scores = np.array([_explained(own[inside], least) for inside in groups])
    for _ in range(MOST_MARKED):
        best = int(np.argmax(scores)) if scores.size else -1
        if best < 0 or scores[best] <= 0:
            break
        inside = groups[best]
        shift = float(np.median(own[inside]))
        effects[best] += shift
        own[inside] -= shift
        for index in {index for member in inside.tolist() for index in of_member[member]}:
            scores[index] = _explained(own[groups[index]], least)
    return effects


def _explained(values: FloatArray, least: float) -> float:
    middle = float(np.median(values))
    if abs(middle) < least / 2:
        return 0.0
    gain = float(np.abs(values).sum() - np.abs(values - middle).sum())
    return gain * max(gain / (values.size * abs(middle)), 0.0)


def _others(effects: Sequence[float], own: float) -> float:
    """The middle of the other places of a kind; of many the middle of all, which one place hardly moves."""
    if len(effects) == 2:
        return sum(effects) - own
    return float(np.median(effects))


def _groups(members: Sequence[Member]) -> list[tuple[list[tuple[str, str]], IndexArray]]:
    """Kinds and names, and members (indices), of each place that can have an effect, the largest first.

    The largest first, since a branch holds nodes: what all of them share is the branch's.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for index, member in enumerate(members):
        for kind, name in member.position.items():
            found.setdefault((kind, name), []).append(index)
    groups: dict[bytes, tuple[list[tuple[str, str]], IndexArray]] = {}
    for place, indices in sorted(found.items(), key=lambda one: (-len(one[1]), one[0])):
        if LEAST_IN_PLACE <= len(indices) < len(members):
            inside = np.array(indices, dtype=np.intp)
            groups.setdefault(inside.tobytes(), ([], inside))[0].append(place)
    return list(groups.values())
