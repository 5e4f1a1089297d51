"""The cards of a fleet side by side: each figure of each kind of temperature against the fleet's median."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.analysis.fleet import Consistency, Consistent, Member, judge_fleet, sigmas_of
from pytest_thermal.bench.fleet_file import FleetFile
from pytest_thermal.findings.fleet.node_run import Card
from pytest_thermal.findings.limits import Limit, Limits
from pytest_thermal.model import Outcome
from pytest_thermal.model.said import say

NODE, CARD = "node", "card"
"""Kinds of places that need no file: the node that a card is in, and its number there."""
_KINDS = {
    "node": say("node"),
    "card": say("card"),
    "rack": say("rack"),
    "slot": say("slot"),
    "branch": say("branch"),
    "manifold": say("manifold"),
    "card slot": say("card slot"),
}
OF_NODES = ("rack", "slot", "branch")
"""Kinds of places that hold whole nodes. Within a node cards may differ by design, one plate behind the other."""
RESISTANCE, SETTLING = "resistance", "slow_time_constant"
_DEVICE_NUMBER = re.compile(r"^([a-z_]+)\d+(?=\.|$)")


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One figure of one kind of temperature over the fleet."""

    figure: str
    """``rise``, ``peak``, ``resistance``, ``slow_time_constant``."""
    unit: str
    """As people write it."""
    decimals: int
    scale: float
    """What the members' values are in units of the figure: °C per °C/W for a resistance, which is watts; else 1."""
    limit: Limit
    found: Consistency

    @property
    def allowed(self) -> float:
        """The deviation that is an outlier, in the figure's unit."""
        return (self.found.threshold or 0.0) / self.scale

    @property
    def median(self) -> float:
        """In the figure's unit."""
        return (self.found.median or 0.0) / self.scale

    @property
    def by_limit(self) -> bool:
        """Whether the least deviation decides, and not the fleet's own spread."""
        least = self.limit.value * (1 if self.limit.unit == "celsius" else self.found.median or 0.0)
        return (self.found.threshold or 0.0) <= least + 1e-9

    @property
    def limit_origin(self) -> str:
        """Where the allowed deviation came from."""
        if self.by_limit:
            return say("{name}: {text}", name=self.limit.name, text=self.limit.origin)
        return say(
            "{sigmas:.1f} sigma by the median absolute deviation of {cards} cards",
            sigmas=sigmas_of(len(self.found.members)),
            cards=len(self.found.members),
        )


@dataclass(frozen=True, kw_only=True)
class Family:
    """All temperatures of one kind: ``gpu*.temperature_celsius`` over all nodes."""

    name: str
    cards: Mapping[str, Card]
    """By key of their members."""
    compared: tuple[Compared, ...]
    left_out: tuple[tuple[Card, str], ...]
    """Cards that are no measure, with why; those that were not to be loaded too."""
    idle: bool
    """Whether the device of every card was not to be loaded."""

    def of(self, figure: str) -> Compared | None:
        """What a figure came to; None where too few cards have it."""
        return next((one for one in self.compared if one.figure == figure), None)

    def outliers(self, sensor: str) -> Iterator[tuple[Compared, Consistent, Card]]:
        """Figures of that sensor that stand out, in any node."""
        for one in self.compared:
            for member in one.found.members:
                card = self.cards[member.member.key]
                if card.sensor == sensor and member.consistent.name == "NO":
                    yield one, member, card


def family_of(sensor: str) -> str:
    """The kind of a temperature: its id with ``*`` for the device's number."""
    return _DEVICE_NUMBER.sub(r"\1*", sensor)


def kind_said(kind: str) -> str:
    """A kind of places in words."""
    return _KINDS.get(kind, kind)


def place_said(kind: str, name: str) -> str:
    """``rack R1``."""
    return say("{kind} {name}", kind=kind_said(kind), name=name)


def side_by_side(cards: Sequence[Card], limits: Limits, places: FleetFile | None) -> dict[str, Family]:
    """Every kind of temperature, by its name. Only cards whose device was loaded in full are a measure for others."""
    grouped: dict[str, list[Card]] = {}
    for card in cards:
        grouped.setdefault(family_of(card.sensor), []).append(card)
    return {name: _family(name, own, limits, places) for name, own in grouped.items()}


def position_of(card: Card, places: FleetFile | None) -> dict[str, str]:
    """Kind of place → name, the node and the card's number among them."""
    told = places.position(card.node, card.device) if places is not None else {}
    return {**told, NODE: card.node, CARD: card.device}


def _family(name: str, cards: Sequence[Card], limits: Limits, places: FleetFile | None) -> Family:
    left_out = [(card, card.load_seen) for card in cards if card.load != Outcome.PASSED.value]
    loaded = [card for card in cards if card.load == Outcome.PASSED.value]
    left_out += [(card, _why(card)) for card in loaded if card.value("rise") is None]
    keyed = {f"{card.node} {card.sensor}": card for card in loaded}
    positions = {key: position_of(card, places) for key, card in keyed.items()}
    degrees = limits["consistency_least"]
    compared = []
    # A place's peak is as warm as its room or its supply; what its heat adds, and so its flow, is the same anywhere.
    of_places = dict.fromkeys(OF_NODES, limits["consistency_place_least"].value)
    for figure in ("rise", "peak"):
        values = {key: value for key, card in keyed.items() if (value := card.value(figure)) is not None}
        own = of_places if figure == "rise" else {}
        compared.append(_compared(figure, "°C", 1, 1.0, degrees, values, positions, own))
    values, watts = _resistances(keyed)
    if values:
        compared.append(_compared(RESISTANCE, "°C/W", 4, watts, degrees, values, positions, of_places))
    seconds = {key: value for key, card in keyed.items() if (value := card.value(SETTLING)) is not None}
    if seconds:
        limit = limits["consistency_settling_least"]
        compared.append(_compared(SETTLING, "s", 0, 1.0, limit, seconds, positions))
    return Family(
        name=name,
        cards=keyed,
        compared=tuple(compared),
        left_out=tuple(left_out),
        idle=bool(cards) and all(card.load == Outcome.SKIPPED.value for card in cards),
    )


def _compared(  # noqa: PLR0917 - one row of a table
    figure: str,
    unit: str,
    decimals: int,
    scale: float,
    limit: Limit,
    values: Mapping[str, float],
    positions: Mapping[str, Mapping[str, str]],
    of_places: Mapping[str, float] | None = None,
) -> Compared:
    members = [Member(key=key, value=value * scale, position=positions[key]) for key, value in values.items()]
    least = limit.value
    if limit.unit != "celsius":
        least *= abs(statistics.median(values.values())) * scale if values else 1.0
    found = judge_fleet(members, least_deviation=least, least_of_places=of_places)
    return Compared(figure=figure, unit=unit, decimals=decimals, scale=scale, limit=limit, found=found)


def _resistances(cards: Mapping[str, Card]) -> tuple[dict[str, float], float]:
    """Resistances against the reference that most cards have, °C/W, and the cards' usual power, W."""
    known = {key: card.figures[RESISTANCE] for key, card in cards.items() if card.value(RESISTANCE) is not None}
    references = Counter(str(one.detail.get("reference")) for one in known.values())
    usual = next(iter(references.most_common(1)), ("", 0))[0]
    same = {key: one for key, one in known.items() if str(one.detail.get("reference")) == usual}
    watts = [float(told) for one in same.values() if isinstance(told := one.detail.get("watts"), (int, float))]
    if not watts:
        return {}, 1.0
    return {key: float(one.value) for key, one in same.items() if one.value is not None}, statistics.median(watts)


def _why(card: Card) -> str:
    figure = card.figures.get("rise")
    return figure.reason if figure is not None and figure.reason else say("it has no rise")
