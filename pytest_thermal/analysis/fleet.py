"""One node against its fleet, and a place in the rack against a bad card."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.numerics import robust_sigma
from pytest_thermal.model.said import say
from pytest_thermal.model.series import FloatArray, IndexArray

LEAST_DEVIATION = 5.0
"""°C: what chips of one kind may differ by."""
LEAST_PLACE_APART = 3.0
"""°C: what the middles of many chips may differ by, in which what each of them has of its own is no more. A tenth of
the rise is, by m·c·ΔT, a good deal of the flow. Own criterion."""
LEAST_SETTLING_APART = 0.5
"""Of the fleet's median: a fit of a slow time constant is known less well than a level. Own criterion."""
LEAST_THROUGHPUT_APART = 0.1
"""Of the fleet's median: what nodes behind one gateway differ by without a fault. Own criterion."""
SIGMAS = 3.5
"""Iglewicz and Hoaglin's cut for the modified z-score."""
BY_CHANCE = 0.01
"""How likely chance alone may be to make an outlier of any member of a healthy fleet: 3.5 sigma, which it makes of one
in two thousand, would find one in most fleets of thousands."""
LEAST_MEMBERS = 5
"""Of which a spread can be told. Fewer are compared with ``least_deviation`` alone, and blamed for nothing."""
MOST_INFLATED = 2.0
"""× ``least_deviation``: where a fleet's own spread allows more than this, what lies between is not judged."""
LEAST_IN_PLACE = 3
"""Below this a place's effect and its only card's cannot be told apart."""
COHERENT = 0.75
"""Of a place's members must be off by half of what its median is, for that to be the place's."""
EFFICIENCY = 0.64
"""A median's variance is 1/0.64 of a mean's, of normal values."""
APART = 4.5
"""Ashman's D from which on values are two groups: a normal sample parted in its middle has 2.7, an even one 3.5. Own
criterion (Ashman, Bird and Zepf, Astron. J. 108 (1994), call 2 a clean separation)."""
LEAST_GROUP = 0.15
"""Of the members: a smaller group hardly widens a median absolute deviation, and stands out by itself."""
NO_MAJORITY = 0.4
"""Of the places of a kind: with so many off, which of them are as they should be cannot be told."""
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
    """°C against the median of the other places of its kind, of those on the other side where ``parted``."""
    parted: bool = False
    """Whether the places of its kind are two halves, each of which is the other's measure."""
    allowed: float = 0.0
    """°C from which on its effect stands out."""
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
    """Why not all could be judged; empty where they could."""


def judge_fleet(
    members: Sequence[Member],
    *,
    least_deviation: float = LEAST_DEVIATION,
    least_of_places: Mapping[str, float] | None = None,
) -> Consistency:
    """Find members that stand out of a fleet, and places that do.

    Model: value = median + Σ effect of its places + own, the effects by median polish (Tukey, "Exploratory Data
    Analysis", Addison-Wesley (1977)), so that a bad card does not make its slot look hot, and a hot slot not its
    cards. Places may hold each other, as a rack its branches and a branch its nodes: then polish alone would share
    a warm branch out among them. So marked effects are taken off first, one by one, that place first whose median
    explains most of what is there (matching pursuit in the sum of absolute deviations). The scale is 1.4826·MAD of
    what is the cards' own (Hampel, J. Am. Stat. Assoc. 69 (1974)), × √(n/(n−p)) for
    p effects. A member is an outlier when its own deviation exceeds 3.5 scales (Iglewicz and Hoaglin, "How to Detect
    and Handle Outliers", ASQC (1993)), or more where so many members would be beyond that by chance, the scale taken at
    its 99 % bound, as one from few members is hardly known, and ``least_deviation``. UNKNOWN is one between twice
    ``least_deviation`` and a scale that is greater than that, and every one of a fleet that is two groups of which the
    smaller does not stand out as a whole. A place stands out when its effect exceeds what the spread of its kind, or
    of the places within it, explains, and the least of its kind. A place with fewer than three members has no effect of
    its own, nor any place in a fleet that has fewer than five members more than places.

    With fewer than five members there is no spread: they agree where none is further than ``least_deviation`` from any
    other; else all of them are UNKNOWN.

    Args:
        members: The figures.
        least_deviation: In the unit of the values.
        least_of_places: By kind of place, the same for its places where it is not ``least_deviation``.
    """
    if len(members) < LEAST_MEMBERS:
        return _few(members, least_deviation)
    values = np.array([member.value for member in members])
    median = float(np.median(values))
    own, effects = _polish(values - median, members, least_deviation)
    free = max(len(members) - sum(1 for place in effects if place.effect), 1)
    scale = robust_sigma(own) * math.sqrt(len(members) / free)
    bound = scale * _doubt(free)
    threshold = max(sigmas_of(len(members)) * bound, least_deviation)
    effects = _allowed(effects, members, bound, least_deviation, least_of_places or {})
    places = tuple(place for place in effects if _stands_out(place))
    judged = [
        _judged(member, member.value - median, float(alone), threshold, least_deviation, places)
        for member, alone in zip(members, own, strict=True)
    ]
    reason = _two_groups_said(own, values, judged, least_deviation)
    if reason:
        judged = [replace(one, consistent=_doubted(one.consistent), reason=one.reason or reason) for one in judged]
    reason = reason or next((one.reason for one in judged if one.consistent is Answer.UNKNOWN), "")
    return Consistency(
        median=median,
        scale=scale,
        threshold=threshold,
        members=tuple(judged),
        places=places,
        effects=tuple(effects),
        reason=reason,
    )


def _few(members: Sequence[Member], least: float) -> Consistency:
    """Of fewer than five, which of them is right cannot be told, but whether they agree can."""
    values = np.array([member.value for member in members])
    middle = float(np.median(values)) if values.size else None
    apart = float(np.ptp(values)) if values.size else 0.0
    if values.size < 2:
        answer, why = Answer.UNKNOWN, say("there is nothing to compare it with")
    elif apart <= least:
        answer, why = Answer.YES, ""
    else:
        answer = Answer.UNKNOWN
        why = say(
            "{count} members are too few for a fleet, needs {least}: which of them is as it should be cannot be told",
            count=len(members),
            least=LEAST_MEMBERS,
        )
    return Consistency(
        median=middle if values.size > 1 else None,
        scale=None,
        threshold=least if values.size > 1 else None,
        members=tuple(
            Consistent(
                member=one, consistent=answer, deviation=one.value - (middle or 0.0), own=one.value - (middle or 0.0),
                reason=why,
            )
            for one in members
        ),
        places=(),
        effects=(),
        reason=why,
    )  # fmt: skip


def sigmas_of(count: int) -> float:
    """How many sigmas one of ``count`` normal values must be off to be no chance: `SIGMAS`, or more of many."""
    return max(SIGMAS, NormalDist().inv_cdf(1 - BY_CHANCE / 2 / count))


def _doubt(free: int) -> float:
    """× a spread from so many free values: its 99 % bound."""
    return 1 + SCALE_DOUBT / math.sqrt(free)


def _doubted(answer: Answer) -> Answer:
    return Answer.NO if answer is Answer.NO else Answer.UNKNOWN


def two_groups(values: FloatArray, *, least: float, share: float) -> IndexArray | None:
    """Those of ``values``, shape (n,), that are the upper one of two groups; None where there is one group.

    Parted where the squares within both sum up to least (Otsu, IEEE Trans. Syst. Man Cybern. 9 (1979)); two groups by
    ``APART``, by medians more than ``least`` apart, and by no fewer than ``share`` of the values in each.
    """
    count = values.size
    if count < 2:
        return None
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    below = np.arange(1, count)
    sums = np.cumsum(ordered)[:-1]
    between = (sums / below - (ordered.sum() - sums) / (count - below)) ** 2 * below * (count - below)
    at = int(np.argmax(between)) + 1
    low, high = ordered[:at], ordered[at:]
    spread = math.sqrt((float(np.var(low)) + float(np.var(high))) / 2)
    apart = float(np.median(high) - np.median(low))
    if apart <= least or apart < APART * spread or min(low.size, high.size) < share * count:
        return None
    return order[at:].astype(np.intp)


def _two_groups_said(own: FloatArray, values: FloatArray, judged: Sequence[Consistent], least: float) -> str:
    """That they are two kinds of members, neither of which is a measure for the other; empty where they are not."""
    upper = two_groups(own, least=least, share=LEAST_GROUP)
    if upper is None:
        return ""
    inside = np.zeros(own.size, dtype=np.bool_)
    inside[upper] = True
    smaller = inside if 2 * upper.size <= own.size else ~inside
    if all(judged[index].consistent is Answer.NO for index in np.flatnonzero(smaller).tolist()):
        return ""
    return say(
        "they are two groups, {low_count} near {low:.1f} and {high_count} near {high:.1f}, and which of them is as it "
        "should be cannot be told",
        low_count=int((~inside).sum()),
        low=float(np.median(values[~inside])),
        high_count=int(upper.size),
        high=float(np.median(values[inside])),
    )


def _judged(  # noqa: PLR0917 - private, and called once
    member: Member, deviation: float, own: float, threshold: float, least: float, places: Sequence[Place]
) -> Consistent:
    here = [place for place in places if member.position.get(place.kind) == place.name]
    if least < abs(own) <= threshold and threshold > MOST_INFLATED * least:
        answer = Answer.UNKNOWN
        reason = say(
            "the fleet scatters so much that only {threshold:.1f} would stand out, and {own:+.1f} may be chance or not",
            threshold=threshold,
            own=own,
        )
    elif abs(own) > threshold:
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


def _stands_out(place: Place) -> bool:
    """Of two halves both: which of them is as it should be cannot be told."""
    return abs(place.effect) > place.allowed or (place.parted and abs(place.against) > place.allowed)


def _allowed(
    places: Sequence[Place],
    members: Sequence[Member],
    scale: float,
    least: float,
    least_of_kinds: Mapping[str, float],
) -> list[Place]:
    """The places with what each of them may be off by, and what it is off by against those that are its measure."""
    by_kind: dict[str, list[Place]] = {}
    for place in places:
        for kind, _ in _names(place):
            by_kind.setdefault(kind, []).append(place)
    within = _nested(members, by_kind)
    spreads, sides = {}, {}
    for kind, some in by_kind.items():
        effects = np.array([one.effect for one in some])
        spreads[kind], warmer = _spread(effects, least=min(least, least_of_kinds.get(kind, least)))
        sides[kind] = None if warmer is None else [some[index] for index in warmer.tolist()]
    found = []
    for place in places:
        upper = sides[place.kind]
        others = [one.effect for one in by_kind[place.kind] if one is not place]
        if upper is not None:
            others = [one.effect for one in by_kind[place.kind] if (one in upper) != (place in upper)]
        known = [(kind, within[kind, name]) for kind, name in _names(place)]
        variance = scale**2 / place.members
        wanted = max(least_of_kinds.get(kind, least) for kind, _ in _names(place))
        for kind, inner in known:
            if len(by_kind[kind]) >= LEAST_MEMBERS:
                wanted = max(wanted, sigmas_of(len(by_kind[kind])) * spreads[kind] * _doubt(len(by_kind[kind])))
            for other, count in inner.items():
                if len(by_kind[other]) >= LEAST_MEMBERS:
                    variance += (spreads[other] * _doubt(len(by_kind[other]))) ** 2 / count
                else:
                    wanted = max(wanted, least)
        found.append(
            replace(
                place,
                against=place.effect - float(np.median(others)) if others else 0.0,
                parted=upper is not None,
                allowed=min(
                    max(wanted, sigmas_of(len(by_kind[place.kind])) * math.sqrt(variance / EFFICIENCY)),
                    MOST_INFLATED * max(least_of_kinds.get(kind, least) for kind, _ in _names(place)),
                ),
            )
        )
    return found


def _names(place: Place) -> list[tuple[str, str]]:
    return [(place.kind, place.name), *place.also]


def _spread(effects: FloatArray, *, least: float) -> tuple[float, IndexArray | None]:
    """What places of a kind differ by, within each group of them, and the warmer half where no majority agrees."""
    upper = two_groups(effects, least=least, share=LEAST_GROUP)
    if upper is None:
        return robust_sigma(effects), None
    inside = np.zeros(effects.size, dtype=np.bool_)
    inside[upper] = True
    centred = np.where(inside, effects - np.median(effects[inside]), effects - np.median(effects[~inside]))
    halves = min(upper.size, effects.size - upper.size) >= NO_MAJORITY * effects.size
    return robust_sigma(centred), upper if halves else None


def _nested(members: Sequence[Member], kinds: Iterable[str]) -> dict[tuple[str, str], dict[str, int]]:
    """Of each place the kinds of places that lie wholly within places of its kind, and how many of each in it."""
    wanted = list(kinds)
    inside: dict[tuple[str, str], dict[str, set[str]]] = {}
    homes: dict[tuple[str, str, str], set[str]] = {}
    for member in members:
        for kind in wanted:
            name = member.position.get(kind)
            if name is None:
                continue
            for other in wanted:
                sub = member.position.get(other)
                if other != kind and sub is not None:
                    inside.setdefault((kind, name), {}).setdefault(other, set()).add(sub)
                    homes.setdefault((kind, other, sub), set()).add(name)
    crossed = {(kind, other) for (kind, other, _), names in homes.items() if len(names) > 1}
    return {
        (kind, name): {
            other: len(subs)
            for other, subs in inside.get((kind, name), {}).items()
            if (kind, other) not in crossed and len(subs) > 1
        }
        for kind in wanted
        for name in {member.position[kind] for member in members if kind in member.position}
    }


def _polish(deviations: FloatArray, members: Sequence[Member], least: float) -> tuple[FloatArray, list[Place]]:
    """Own deviations, shape (n,), and the effect of every place with enough members."""
    own = deviations.copy()
    groups = _groups(members)
    if len(members) - len(groups) < LEAST_MEMBERS:
        groups = []
    effects = _marked(own, [inside for _, inside in groups], least)
    for _ in range(ROUNDS):
        for index, (_, inside) in enumerate(groups):
            if inside.size < LEAST_MEMBERS:
                continue  # what so few have in common by chance is no less than what each has of its own
            shift = _shift(own[inside], least)
            effects[index] += shift
            own[inside] -= shift
    return own, [
        Place(kind=kind, name=name, effect=effect, members=int(inside.size), also=tuple(also))
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
        shift = _shift(own[inside], least)
        effects[best] += shift
        own[inside] -= shift
        for index in {index for member in inside.tolist() for index in of_member[member]}:
            scores[index] = _explained(own[groups[index]], least)
    return effects


def _shift(values: FloatArray, least: float) -> float:
    """What a place's members, shape (n,), have in common: their median; nothing where it is far, and only some do."""
    middle = float(np.median(values))
    if abs(middle) < least / 2:
        return middle
    like = np.count_nonzero(values / middle >= 0.5)
    return middle if like >= COHERENT * values.size else 0.0


def _explained(values: FloatArray, least: float) -> float:
    middle = _shift(values, least)
    if abs(middle) < least / 2:
        return 0.0
    gain = float(np.abs(values).sum() - np.abs(values - middle).sum())
    return gain * max(gain / (values.size * abs(middle)), 0.0)


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
