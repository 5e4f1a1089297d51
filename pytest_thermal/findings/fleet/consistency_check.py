"""One temperature over all nodes, and one kind of place: what stands out, by how much, and where to look."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.fleet import LEAST_MEMBERS, Consistent, Place
from pytest_thermal.findings.fleet.side_by_side import (
    CARD,
    NODE,
    OF_NODES,
    RESISTANCE,
    SETTLING,
    Compared,
    Family,
    family_of,
    kind_said,
    place_said,
    position_of,
)
from pytest_thermal.findings.telling import shortened
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say

if TYPE_CHECKING:
    from pytest_thermal.findings.fleet.judgement import FleetJudgement
    from pytest_thermal.findings.fleet.node_run import Card

LONGEST = 480
"""Characters of what was seen where several cards stand out."""
_MOST_TOLD = 4
OF_HEAT = ("rise", "peak", RESISTANCE)
"""Figures by which a place is judged, in °C, a resistance at the fleet's usual power."""
_PLURALS = {
    "rack": say("racks"),
    "slot": say("slots"),
    "branch": say("branches"),
    "manifold": say("manifolds"),
    "card slot": say("card slots"),
}
FIGURES = {
    "rise": say("rise"),
    "peak": say("peak"),
    RESISTANCE: say("resistance"),
    SETTLING: say("slow time constant"),
}


def consistency_verdict(fleet: FleetJudgement, sensor: str) -> Verdict:
    """Whether no node's sensor of that name stands out of all temperatures of its kind."""
    family = fleet.families.get(family_of(sensor))
    if family is None or not any(card.sensor == sensor for card in _all(family)):
        raise OpenError(
            say("no node that could be compared has {sensor}", sensor=sensor),
            likely=_why_no_node(fleet),
            advice=say("test_node of each says why"),
        )
    if family.idle:
        return skipped(say("{sensor}: its device was not to be loaded, in any node", sensor=sensor))
    warnings = list(_warnings(family, sensor))
    by_card: dict[str, list[tuple[Compared, Consistent]]] = {}
    for one, member, card in family.outliers(sensor):
        by_card.setdefault(card.node, []).append((one, member))
    if by_card:
        return _outliers(fleet, family, sensor, by_card, warnings)
    _require_judged(family, sensor)
    rise = family.of("rise")
    if rise is None or rise.found.median is None:
        few = rise.found.reason if rise is not None else say("no card has a rise")
        left = joined(
            "; ",
            dict.fromkeys(
                say("{node} {device}: {why}", node=card.node, device=card.device, why=why)
                for card, why in family.left_out[:2]
            ),
        )
        seen = say("{sensor} cannot be compared: {few}", sensor=sensor, few=few)
        raise OpenError(
            say("{seen} ({left})", seen=seen, left=left) if left else seen,
            likely=_why_no_node(fleet) or say("a small fleet, or cards that were not loaded in full"),
            advice=say("bring the runs of more nodes together below one folder"),
        )
    own = [one for one in rise.found.members if family.cards[one.member.key].sensor == sensor]
    if not own:
        why = next((why for card, why in family.left_out if card.sensor == sensor), say("it has no rise"))
        raise OpenError(
            say("{sensor} cannot be compared in any node: {why}", sensor=sensor, why=why),
            advice=say("test_node of each says why"),
        )
    if len(rise.found.members) < LEAST_MEMBERS:
        warnings.append(
            say(
                "{count} cards have no spread of their own: they agree within what chips of one kind may differ by, "
                "and no more is known",
                count=len(rise.found.members),
            )
        )
    furthest = max(own, key=lambda one: abs(one.own))
    node = family.cards[furthest.member.key].node
    return passed(
        say(
            "{sensor} of {nodes} nodes: rise within {deviation:.1f} °C of what its place has "
            "(furthest: {furthest}; median {median:.1f} °C over {cards} cards), allowed {allowed:.1f} °C",
            sensor=sensor,
            nodes=len(own),
            deviation=abs(furthest.own),
            furthest=node,
            median=rise.median,
            cards=len(rise.found.members),
            allowed=rise.allowed,
        ),
        evidence={
            "deviation_celsius": round(furthest.own, 2),
            "limit_celsius": round(rise.allowed, 2),
            "limit_origin": rise.limit_origin,
            "median_celsius": round(rise.median, 2),
            "nodes": len(own),
            "cards": len(rise.found.members),
            "furthest": node,
            "not_compared_nodes": len(fleet.not_compared),
        },
        warnings=tuple(warnings),
    )


def _outliers(
    fleet: FleetJudgement,
    family: Family,
    sensor: str,
    by_node: dict[str, list[tuple[Compared, Consistent]]],
    warnings: list[str],
) -> Verdict:
    worst_first = sorted(
        by_node.items(), key=lambda one: -max(abs(m.own) / (c.found.threshold or 1) for c, m in one[1])
    )
    told = []
    for node, found in worst_first[:_MOST_TOLD]:
        card = family.cards[found[0][1].member.key]
        told.append(
            say(
                "{node} {device}{place}: {figures}",
                node=node,
                device=card.device,
                place=_place_words(card, fleet),
                figures=joined(", ", [_said(*one) for one in found]),
            )
        )
    if len(worst_first) > _MOST_TOLD:
        told.append(say("and {count} more nodes", count=len(worst_first) - _MOST_TOLD))
    _, (first, *_) = worst_first[0]
    compared, member = first
    warm = member.own > 0
    seen = say(
        "{sensor}: {outliers}; allowed {allowed} from the median ({origin})",
        sensor=sensor,
        outliers=joined("; ", told),
        allowed=_number(compared, compared.allowed),
        origin=compared.limit_origin,
    )
    where = _whole(family, sensor, {card for found in by_node.values() for card in _cards(family, found)})
    return failed(
        shortened(seen, LONGEST),
        likely=_likely(compared, where, warm=warm),
        advice=_advice(compared, where, warm=warm),
        evidence={
            **_evidence(compared, member),
            "node": ", ".join(node for node, _ in worst_first),
            "card": family.cards[member.member.key].device,
            **{f"place_{kind.replace(' ', '_')}": name for kind, name in member.member.position.items()},
        },
        warnings=tuple(warnings),
    )


def _evidence(one: Compared, member: Consistent) -> dict[str, Scalar]:
    value = member.member.value / one.scale
    known: dict[str, Scalar] = {
        "figure": one.figure,
        "value": round(value, one.decimals + 1),
        "median": round(one.median, one.decimals + 1),
        "limit_origin": one.limit_origin,
    }
    if one.figure == SETTLING:
        return {**known, "deviation_seconds": round(member.own, 1), "limit_seconds": round(one.allowed, 1)}
    # A resistance's deviation is told in °C at the fleet's usual power.
    return {
        **known,
        "deviation_celsius": round(member.own, 2),
        "limit_celsius": round(one.found.threshold or 0.0, 2),
    }


def _said(one: Compared, member: Consistent) -> str:
    value, off = member.member.value / one.scale, member.own / one.scale
    told = {
        "figure": FIGURES[one.figure],
        "value": _number(one, value),
        "own": f"{off:+.{one.decimals}f}",
        "median": _number(one, one.median),
    }
    if not _by_place(one, member):
        return say("{figure} {value}, {own} from the median {median}", **told)
    whole = f"{member.deviation / one.scale:+.{one.decimals}f}"
    return say("{figure} {value}, {own} of its own, {whole} in all (median {median})", whole=whole, **told)


def _by_place(one: Compared, member: Consistent) -> bool:
    """Whether a good part of a deviation is its places'."""
    return abs(member.deviation - member.own) > 0.2 * (one.found.threshold or 0.0)


def _number(one: Compared, value: float) -> str:
    return f"{value:.{one.decimals}f} {one.unit}"


def _place_words(card: Card, fleet: FleetJudgement) -> str:
    position = position_of(card, fleet.places)
    known = [place_said(kind, name) for kind, name in position.items() if kind not in (NODE, CARD)]
    return say(" ({places})", places=joined(", ", known)) if known else ""


def _cards(family: Family, found: Sequence[tuple[Compared, Consistent]]) -> Iterator[tuple[str, str]]:
    yield from ((card.node, card.sensor) for _, member in found for card in (family.cards[member.member.key],))


def _require_judged(family: Family, sensor: str) -> None:
    """That no figure of this sensor is left open."""
    for one in family.compared:
        unknown = [
            member
            for member in one.found.members
            if member.consistent is Answer.UNKNOWN and family.cards[member.member.key].sensor == sensor
        ]
        if not unknown or one.found.median is None:
            continue
        furthest = max(unknown, key=lambda member: abs(member.own))
        card, values = family.cards[furthest.member.key], [member.member.value / one.scale for member in unknown]
        raise OpenError(
            say(
                "{sensor} cannot be judged by its {figure}, {least} to {most}: {why}",
                sensor=sensor,
                figure=FIGURES[one.figure],
                least=_number(one, min(values)),
                most=_number(one, max(values)),
                why=furthest.reason,
            ),
            likely=say(
                "one of them is off, and which cannot be told from so few; or two kinds of cards, loads or loops that "
                "no condition tells apart (furthest from the median: {node} {device})",
                node=card.node,
                device=card.device,
            ),
            advice=say(
                "bring the runs of more nodes together; compare models, firmware, power and coolant supply, and judge "
                "what differs apart"
            ),
        )


def _whole(family: Family, sensor: str, off: Collection[tuple[str, str]]) -> str:
    """``node`` where all cards of each node that stands out do so, ``slot`` where this card does in every node.

    In nodes of one or two cards, and of few nodes, that is no place which could have an effect of its own.
    """
    nodes = {card.node for card in family.cards.values() if (card.node, card.sensor) in off}
    every = [card for card in family.cards.values() if card.sensor == sensor]
    if len(every) > 1 and all((card.node, sensor) in off for card in every):
        return CARD
    outliers = {(card.node, card.sensor) for one in _all_outliers(family) for card in (one,)}
    if nodes and all((card.node, card.sensor) in outliers for card in family.cards.values() if card.node in nodes):
        return NODE
    return ""


def _all_outliers(family: Family) -> Iterator[Card]:
    for one in family.compared:
        yield from (family.cards[m.member.key] for m in one.found.members if m.consistent is Answer.NO)


def _likely(one: Compared, where: str, *, warm: bool) -> str:
    if where == NODE:
        return (
            say("the node's loop (pump, flow, air, supply) or the card itself: all that is compared of it is off")
            if warm
            else say("the node had less to do, or a colder supply: all that is compared of it is off")
        )
    if where == CARD:
        return say("its place in the chassis rather than the cards: it is off in every node")
    if one.figure == SETTLING:
        return (
            say("less flow than the others, or more coolant in its part of the loop")
            if warm
            else say("another loop or sensor")
        )
    if warm:
        return say("this card, and not its place: cold plate's contact, paste or pad, or its own flow path is blocked")
    return say("less load than the others, a sensor that reads low, or a card of another kind")


def _advice(one: Compared, where: str, *, warm: bool) -> str:
    if where == NODE:
        return say("compare its pump, flow, coolant supply and power with a neighbour's before a cold plate is touched")
    if where == CARD:
        return say("compare its flow path and cold plate in two nodes, and with a fleet that is known to be good")
    if one.figure == SETTLING:
        return say("compare its flow with a neighbour's, and the curves of both in report.html")
    if warm:
        return say(
            "mount its cold plate anew; if it stays, swap it with a neighbour: the heat goes with the card or stays"
        )
    return say("compare its power and utilisation with a neighbour's in report.html")


def _warnings(family: Family, sensor: str) -> list[str]:
    told: list[str] = []
    rise = family.of("rise")
    device = sensor.partition(".")[0]
    told += [
        say(
            "{device} is {effect:+.1f} °C off in every node: its place in the chassis, and not its cards",
            device=device,
            effect=place.effect,
        )
        for place in (rise.found.places if rise is not None else ())
        if place.kind == CARD and place.name == device
    ]
    left = [say("{name}: {text}", name=card.node, text=why) for card, why in family.left_out if card.sensor == sensor]
    if left:
        told.append(say("no measure in {count} nodes: {why}", count=len(left), why=joined("; ", left[:2])))
    return told


def _all(family: Family) -> list[Card]:
    return [*family.cards.values(), *(card for card, _ in family.left_out)]


def _why_no_node(fleet: FleetJudgement) -> str:
    if not fleet.runs:
        return say("no run lies below that folder")
    if fleet.split:
        return say("two kinds of nodes lie in one archive: {difference}", difference=fleet.split[0])
    if fleet.not_compared:
        return say(
            "{count} of {nodes} nodes have no run that could be compared",
            count=len(fleet.not_compared),
            nodes=len(fleet.roster.nodes),
        )
    return ""


# -------------------------------------------------------------------------------------------------------------- places


def place_verdict(fleet: FleetJudgement, kind: str) -> Verdict:
    """Whether no place of a kind is warmer or colder than the others, whatever card is in it."""
    judged: dict[str, Place] = {}
    bad: dict[str, tuple[Family, Compared, Place]] = {}
    for family in fleet.families.values():
        for one in family.compared:
            if one.figure not in OF_HEAT:
                continue
            for place in one.found.effects:
                name = place.name_in(kind)
                if not name or place.name_in(NODE):  # a place that is one node is judged as that node
                    continue
                before = judged.get(name)
                if before is None or abs(place.effect) > abs(before.effect):
                    judged[name] = place
                known = bad.get(name)
                if not _is_off(place, one):
                    continue
                if known is None or abs(_off(place)) > abs(_off(known[2])):
                    bad[name] = family, one, place
    if bad:
        return _warm_places(fleet, kind, bad)
    if not judged:
        return _no_place(fleet, kind)
    furthest = max(judged, key=lambda name: abs(judged[name].effect))
    return passed(
        say(
            "{count} {places} within {deviation:.1f} °C of the fleet's median (furthest: {furthest})",
            count=len(judged),
            places=_plural(kind),
            deviation=abs(judged[furthest].effect),
            furthest=place_said(kind, furthest),
        ),
        evidence={"deviation_celsius": round(judged[furthest].effect, 2), "places": len(judged), "furthest": furthest},
    )


def _is_off(place: Place, one: Compared) -> bool:
    """Of two halves the warmer one is told."""
    return place in one.found.places and (abs(place.effect) > place.allowed or place.against > 0)


def _off(place: Place) -> float:
    """°C, against what is its measure."""
    return place.effect if abs(place.effect) > place.allowed else place.against


def _warm_places(fleet: FleetJudgement, kind: str, bad: dict[str, tuple[Family, Compared, Place]]) -> Verdict:
    told = []
    ordered = sorted(bad.items(), key=lambda one: -abs(_off(one[1][2])))
    for name, (family, one, place) in ordered[:_MOST_TOLD]:
        off = _off(place)
        than = (
            say("the other half, and which is as it should be cannot be told")
            if place.parted
            else say("the fleet's median of {median}", median=_number(one, one.median))
        )
        also = [place_said(k, n) for k, n in ((place.kind, place.name), *place.also) if k not in (kind, NODE)]
        told.append(
            say(
                "{place}{alias}: {nodes}{count} {family} are {off:+.1f} °C against {than} by their {figure}",
                place=place_said(kind, name),
                alias=say(" (the same as {places})", places=joined(", ", also)) if also else "",
                nodes=_nodes_words(fleet, kind, name),
                count=place.members,
                family=family.name.removesuffix(".temperature_celsius"),
                off=off,
                than=than,
                figure=FIGURES[one.figure],
            )
        )
    _, (_, one, place) = ordered[0]
    off = _off(place)
    warm, of_kind = off > 0, kind_said(kind)
    return failed(
        shortened(
            say(
                "{places}; allowed {allowed:.1f} °C ({origin})",
                places=joined("; ", told),
                allowed=place.allowed,
                origin=place_origin(fleet, place, kind),
            ),
            LONGEST,
        ),
        likely=say(
            "the {kind} and not its cards: too little flow, air, a valve, or a supply that is too warm; or the other "
            "half is too cold",
            kind=of_kind,
        )
        if place.parted
        else say(
            "the {kind} and not its cards: too little flow, air, a valve, or a supply that is too warm", kind=of_kind
        )
        if warm
        else say(
            "the {kind} gets colder coolant or more flow than the others, or its nodes had less to do", kind=of_kind
        ),
        advice=say(
            "measure flow and supply of that {kind} against another's; compare coolant_supply of their nodes",
            kind=of_kind,
        ),
        evidence={
            "place": f"{kind} {ordered[0][0]}",
            "deviation_celsius": round(off, 2),
            "limit_celsius": round(place.allowed, 2),
            "limit_origin": place_origin(fleet, place, kind),
            "cards": place.members,
        },
    )


def place_origin(fleet: FleetJudgement, place: Place, kind: str) -> str:
    """Where what a place may be off by came from."""
    limit = fleet.limits["consistency_place_least" if kind in OF_NODES else "consistency_least"]
    if place.allowed <= limit.value + 1e-9:
        return say("{name}: {text}", name=limit.name, text=limit.origin)
    return say("what such places differ by, to one false alarm in a hundred fleets")


def _no_place(fleet: FleetJudgement, kind: str) -> Verdict:
    nodes = {
        name: fleet.nodes_in(kind, name)
        for name in dict.fromkeys(
            member.position[kind]
            for family in fleet.families.values()
            for one in family.compared[:1]
            for member in (found.member for found in one.found.members)
            if kind in member.position
        )
    }
    if not nodes:
        raise OpenError(
            say("no {kind} can be judged: no card that could be compared is in one", kind=kind_said(kind)),
            likely=_why_no_node(fleet),
            advice=say("test_node of each node says why"),
        )
    if len(nodes) == 1:
        place = place_said(kind, next(iter(nodes)))
        return skipped(say("all cards are in {place}: there is nothing to compare it with", place=place))
    if all(len(found) < 2 for found in nodes.values()):
        return skipped(
            say(
                "no {kind} holds two nodes: what is its own cannot be told from its node's; test_node judges that",
                kind=kind_said(kind),
            )
        )
    raise OpenError(
        say(
            "no {kind} can be judged: a place needs 3 cards, and a fleet 5 cards more than places", kind=kind_said(kind)
        ),
        likely=say("a small fleet"),
        advice=say("bring the runs of more nodes together"),
    )


def _nodes_words(fleet: FleetJudgement, kind: str, name: str) -> str:
    count = len(fleet.nodes_in(kind, name))
    return say("{count} nodes, ", count=count) if count > 1 else ""


def _plural(kind: str) -> str:
    return _PLURALS.get(kind, f"{kind}s")
