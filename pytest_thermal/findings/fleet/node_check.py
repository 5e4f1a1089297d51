"""One node: whether its newest run is there, whole, comparable and good, also against its fleet and its own history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_thermal.analysis import drift as drift_of
from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.fleet import Consistent, Place
from pytest_thermal.findings.alike import of_one_cause
from pytest_thermal.findings.earlier import NEEDED
from pytest_thermal.findings.fleet.consistency_check import FIGURES, place_origin
from pytest_thermal.findings.fleet.side_by_side import NODE, SETTLING, Compared, Family
from pytest_thermal.findings.run_facts import why_not_whole
from pytest_thermal.findings.telling import STATES, shortened, span
from pytest_thermal.findings.verdict import Verdict
from pytest_thermal.model import Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure

if TYPE_CHECKING:
    from pytest_thermal.findings.fleet.judgement import FleetJudgement
    from pytest_thermal.findings.fleet.node_run import Card, NodeRun, Used

LONGEST = 480
"""Characters of what was seen of a node that has several things to tell."""
_MOST_TOLD = 4
_LIMITED_SHARE = 0.01
"""Of a node's requests that were refused for a quota: told from here on."""
_UNAUTHORISED = ("401", "403")


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One thing that keeps a node from passing."""

    outcome: Outcome
    seen: str
    likely: str = ""
    advice: str = ""
    evidence: Mapping[str, Scalar] = field(default_factory=dict)


def _missed_because(fleet: FleetJudgement, name: str) -> str:
    """Names are taken as they are written; one that differs by its domain or by capitals alone is worth a look."""
    alike = [
        other
        for other, runs in fleet.roster.nodes.items()
        if runs.newest is not None and not runs.expected_by and _short(other) == _short(name)
    ]
    if alike:
        return say(
            "the run of {other} is here, of which nothing tells: perhaps the same node under another name",
            other=alike[0],
        )
    return say("the node was down, its job did not start, or its run was not brought back")


def _short(name: str) -> str:
    return name.partition(".")[0].casefold()


def node_verdict(fleet: FleetJudgement, name: str) -> Verdict:
    """Everything of one node in one verdict: the worst decides, and leads."""
    runs, run = fleet.roster.nodes[name], fleet.run(name)
    warnings = list(runs.notes)
    if runs.newest is None or run is None:
        return Verdict(
            outcome=Outcome.INCONCLUSIVE,
            seen=say(
                "{node} is missing: {teller} tells of it, and no run of it is below {folder}",
                node=name,
                teller=runs.expected_by,
                folder=fleet.roster.folder,
            ),
            likely=_missed_because(fleet, name),
            advice=say("look at {node}; run it again alone, and judge the fleet anew", node=name),
            evidence={"node": name, "missing": True},
        )
    remarks = [*_whole(fleet, name, run), *_own(run), *_against_the_fleet(fleet, name, run), *_drift(fleet, name, run)]
    warnings += _warnings(fleet, run)
    evidence: dict[str, Scalar] = {
        "node": name,
        "run": str(run.path),
        "state": run.state,
        "by": run.how,
        "passed_checks": run.passed,
        "open_or_failed_checks": len(run.findings),
    }
    worst = fleet.worst_of(name)
    if worst is not None:
        evidence |= {"worst_card": worst[0].sensor, "worst_deviation_celsius": round(worst[1], 2)}
    if not remarks:
        return Verdict(
            outcome=Outcome.PASSED,
            seen=say(
                "{node}: {whole}, {count} checks passed{worst}",
                node=name,
                whole=_said_whole(run),
                count=run.passed,
                worst=_said_worst(fleet, name),
            ),
            evidence=evidence,
            warnings=tuple(warnings),
        )
    remarks.sort(key=lambda one: one.outcome is not Outcome.FAILED)
    told = [one.seen for one in remarks[:_MOST_TOLD]]
    if len(remarks) > _MOST_TOLD:
        told.append(say("and {count} more", count=len(remarks) - _MOST_TOLD))
    for one in remarks:
        evidence |= one.evidence
    first = remarks[0]
    return Verdict(
        outcome=first.outcome,
        seen=shortened(say("{name}: {text}", name=name, text=joined("; ", told)), LONGEST),
        likely=first.likely,
        advice=first.advice,
        evidence=evidence,
        warnings=tuple(warnings),
    )


def not_whole(run: NodeRun) -> Remark | None:
    """Why a run is not all of what it was to be; None where it is."""
    if run.trouble:
        return _open(
            say("its newest run {run} cannot be read: {trouble}", run=run.path.name, trouble=run.trouble),
            say("it was copied in part, or its disk has a fault"),
            say("bring it back anew, or pytest suites/thermal --replay {run}", run=run.path),
        )
    if run.state not in ("finished", "foreign"):
        return _open(
            say("its newest run is {state}{how_far}", state=STATES.get(run.state, run.state), how_far=_how_far(run)),
            say("the node went down, its job was ended, or the run goes on"),
            say("run it again; what was recorded can be replayed"),
        )
    lasted = {str(phase.name): phase.duration_seconds for phase in run.phases}
    cut = why_not_whole(lasted, run.planned, [name for name in NEEDED if name in lasted])
    if cut:
        return _open(
            say("its newest run is not whole: {cut}", cut=joined("; ", cut)),
            say("the node went down, its job was ended, or the run goes on"),
            say("run it again; what was recorded can be replayed"),
        )
    if run.changed:
        return _open(
            say(
                "{count} of its files are not as they were when the run ended: {file}",
                count=len(run.changed),
                file=run.changed[0],
            ),
            say("they were edited, or copied in part"),
            say("bring the run directory back as it was written"),
        )
    return None


def _whole(fleet: FleetJudgement, name: str, run: NodeRun) -> Iterator[Remark]:
    remark = not_whole(run)
    if remark is not None:
        yield remark
    if run.trouble:
        return
    if fleet.bench and run.bench != fleet.bench:
        yield _open(
            say(
                "its run is of bench {bench}, and {expected} is expected",
                bench=run.bench or say("unknown"),
                expected=fleet.bench,
            ),
            say("another bench's files were on that node"),
            say("--bench as on the nodes, or run it again with the right one"),
        )
    used = run.used
    if used is not None and used.requests and not used.answered:
        denied = used.most_frequent_error.startswith(_UNAUTHORISED)
        yield _open(
            say(
                "not comparable: none of its {requests:,} requests was answered: {error}",
                requests=used.requests,
                error=used.most_frequent_error,
            ),
            say("no key, or a wrong one, on this node")
            if denied
            else say("the gateway was not reached from this node"),
            say("pytest suites/supernode on that node says at which layer"),
        )
    outdated, twins = fleet.outdated(name), fleet.twins(name)
    if outdated:
        yield _open(
            outdated,
            say(
                "its run did not start, or was not brought back, and an earlier one lies here; or its clock is far off"
            ),
            say("run it again, or bring its newest run back"),
        )
    if twins:
        yield _open(
            say("its cards are those of {others} too, by their UUIDs", others=joined(", ", twins[:3])),
            say("one machine under several names: another one was not measured; or a card was moved after its run"),
            say("look at the list of hosts for an alias; run both again, at one time"),
        )
    different = fleet.not_comparable(name)
    if different:
        yield _open(
            say("not comparable: {differences}", differences=joined("; ", different[:3])),
            say("it was set up in another way than the others"),
            say("make it as the others are, and run it again"),
        )
    elif fleet.split and run.state != "foreign":
        yield _open(
            say(
                "the nodes are not alike, and no majority says which are as they should be: {difference}",
                difference=fleet.split[0],
            ),
            say("two kinds of nodes lie in one archive"),
            say("judge them apart, each with a folder of its own: --runs DIR"),
        )


def _own(run: NodeRun) -> Iterator[Remark]:
    """What its own thermal checks found, those of one cause together."""
    for outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.BLOCKED):
        told = [one for one in run.findings if one["outcome"] == outcome.value]
        for same in of_one_cause(told):
            yield _of_run(run, outcome, same)


def _of_run(run: NodeRun, outcome: Outcome, same: Sequence[Mapping[str, Any]]) -> Remark:
    names = [f"{one['check']}[{one['subject']}]" for one in same]
    of = say("{name} and {count} more", name=names[0], count=len(names) - 1) if len(names) > 1 else names[0]
    return Remark(
        outcome=Outcome.FAILED if outcome is Outcome.FAILED else Outcome.INCONCLUSIVE,
        seen=say("{name} failed: {seen}", name=of, seen=same[0]["seen"])
        if outcome is Outcome.FAILED
        else say("{name} open: {seen}", name=of, seen=same[0]["seen"]),
        likely=same[0]["likely"],
        advice=same[0]["advice"] or f"pytest suites/thermal --replay {run.path}",
        evidence={"check_of_run": names[0]},
    )


def _against_the_fleet(fleet: FleetJudgement, name: str, run: NodeRun) -> Iterator[Remark]:
    """A node all of whose cards are warmer than others', and one that answers slower."""
    seen: set[str] = set()
    for family in fleet.families.values():
        for one in family.compared:
            for place in one.found.places:
                kind = family.name.partition("*")[0]
                if place.name_in(NODE) == name and kind not in seen:
                    seen.add(kind)
                    yield _of_node(fleet, family, one, place)
    slow = fleet.slow(name)
    if slow is not None:
        yield _slower(fleet, run.used, slow)


def _of_node(fleet: FleetJudgement, family: Family, one: Compared, place: Place) -> Remark:
    """All cards of a node are off."""
    parted = abs(place.effect) <= place.allowed and place.parted
    effect = place.against if parted else place.effect
    warm = effect > 0
    per = one.scale
    figures = {
        "count": place.members,
        "family": family.name.removesuffix(".temperature_celsius"),
        "off": f"{abs(effect) / per:.{one.decimals}f} {one.unit}",
        "figure": FIGURES[one.figure],
        "median": f"{one.median:.{one.decimals}f} {one.unit}",
        "allowed": f"{place.allowed / per:.{one.decimals}f} {one.unit}",
        "origin": place_origin(fleet, place, NODE) if one.unit != "s" else one.limit_origin,
    }
    evidence = (
        {"deviation_seconds": round(effect, 1), "limit_seconds": round(place.allowed, 1)}
        if one.figure == SETTLING
        else _evidence(effect, place.allowed, place_origin(fleet, place, NODE))
    )
    if place.parted:
        return Remark(
            outcome=Outcome.INCONCLUSIVE,
            seen=say(
                "all its {count} {family} are {off} above those of the other half of the nodes by their {figure} "
                "(median {median}, allowed {allowed}, {origin}): no majority says which half is as it should be",
                **figures,
            )
            if warm
            else say(
                "all its {count} {family} are {off} below those of the other half of the nodes by their {figure} "
                "(median {median}, allowed {allowed}, {origin}): no majority says which half is as it should be",
                **figures,
            ),
            likely=say(
                "the loop of the warmer ones (pump, flow, air, supply), or the others had less to do, a colder supply "
                "or another build"
            ),
            advice=say(
                "an earlier run of each node (drift) or the runs of more nodes tell which; compare pump, flow, supply "
                "and power of two of them"
            ),
            evidence=evidence,
        )
    seen = (
        say(
            "all its {count} {family} are {off} warmer than the other nodes' by their {figure} "
            "(median {median}, allowed {allowed}, {origin})",
            **figures,
        )
        if warm
        else say(
            "all its {count} {family} are {off} colder than the other nodes' by their {figure} "
            "(median {median}, allowed {allowed}, {origin})",
            **figures,
        )
    )
    if one.figure == SETTLING:
        seen = say(
            "all its {count} {family} are {off} off the other nodes' by their {figure} "
            "(median {median}, allowed {allowed}, {origin})",
            **figures,
        )
    return Remark(
        outcome=Outcome.FAILED,
        seen=seen,
        likely=_node_likely(family, one, place, warm=warm),
        advice=say("compare its pump, flow and coolant supply with a neighbour's")
        if warm
        else say("compare its power and its requests with the others'"),
        evidence=evidence,
    )


def _node_likely(family: Family, one: Compared, place: Place, *, warm: bool) -> str:
    if one.figure == SETTLING:
        return (
            say("less flow than the others, or more coolant in its part of the loop")
            if warm
            else say("another loop or sensor")
        )
    rise = family.of("rise")
    same = (
        next((other for other in rise.found.effects if other.name_in(NODE) == place.name_in(NODE)), None)
        if rise
        else None
    )
    if one.figure == "peak" and same is not None and abs(same.effect) < same.allowed / 2:
        # What its heat adds is as in the others: what is warmer was so before the load came.
        return (
            say("its supply or its room is warmer: by their rise its cards are as the others'")
            if warm
            else say("its supply or its room is colder: by their rise its cards are as the others'")
        )
    if warm:
        return say("this node's loop: pump, flow, air, supply; not one card")
    return say("its load was less than the others', or its supply is colder")


def _evidence(value: float, limit: float, origin: str) -> dict[str, Scalar]:
    return {"deviation_celsius": round(value, 2), "limit_celsius": round(limit, 2), "limit_origin": origin}


def _slower(fleet: FleetJudgement, used: Used | None, slow: Consistent) -> Remark:
    found, unit = fleet.throughput, fleet.throughput_unit
    median = found.median or 0.0
    limited = used is not None and used.limited > _LIMITED_SHARE * used.requests
    if slow.consistent is Answer.UNKNOWN:
        rates = [one.member.value for one in found.members]
        return Remark(
            outcome=Outcome.INCONCLUSIVE,
            seen=say(
                "{value:,.3g} {unit} in steady, and {least:,.3g} to {most:,.3g} in the fleet: {why}",
                value=slow.member.value,
                unit=unit,
                least=min(rates),
                most=max(rates),
                why=slow.reason,
            ),
            likely=say("a node whose way to the gateway, engine or quota is slower than the others'"),
            advice=say("bring the runs of more nodes together; test_throughput of each node's run judges it by itself"),
        )
    return Remark(
        outcome=Outcome.FAILED,
        seen=say(
            "{value:,.3g} {unit} in steady, {percent:.0f} % less than the fleet's median of {median:,.3g} "
            "(allowed {allowed:.0f} %)",
            value=slow.member.value,
            unit=unit,
            percent=-100 * slow.deviation / median,
            median=median,
            allowed=100 * (found.threshold or 0.0) / median,
        ),
        likely=say(
            "its quota: {limited:,} of its {requests:,} requests were refused with 429",
            limited=used.limited,
            requests=used.requests,
        )
        if limited and used is not None
        else say("its way to the gateway, or a slower engine behind it"),
        advice=say("give all nodes one quota, or fewer concurrent requests")
        if limited
        else say("pytest suites/supernode on that node, and test_throughput of its run"),
    )


def _drift(fleet: FleetJudgement, name: str, run: NodeRun) -> Iterator[Remark]:
    earlier = fleet.earlier(name)
    if earlier is None:
        return
    limit = fleet.limits["drift_most"]
    before = {card.sensor: card for card in earlier.cards}
    for card in run.cards:
        found = _drift_of(card, before.get(card.sensor))
        if found is not None and found.value is not None and found.value >= limit.value:
            yield Remark(
                outcome=Outcome.FAILED,
                seen=say(
                    "{sensor} gets {drift:.1f} °C hotter than in this node's run {run}, by its {figure}; "
                    "{limit} or more fails",
                    sensor=card.sensor,
                    drift=found.value,
                    run=earlier.path.name,
                    figure=say("resistance") if found.detail.get("figure") == "resistance" else say("rise"),
                    limit=limit.text,
                ),
                likely=say("paste has aged, filters or radiator have clogged, or coolant is lost"),
                advice=say("clean, top up, bleed"),
                evidence={"drift_celsius": round(found.value, 2), "against": earlier.path.name},
            )


def _drift_of(card: Card, before: Card | None) -> Figure | None:
    passed = Outcome.PASSED.value
    if before is None or not card.is_main or passed != card.load or passed != before.load:
        return None
    rise, then = card.figures.get("rise"), before.figures.get("rise")
    if rise is None or then is None:
        return None
    return drift_of(
        rise, then, resistance=card.figures.get("resistance"), earlier_resistance=before.figures.get("resistance")
    )


def _warnings(fleet: FleetJudgement, run: NodeRun) -> Iterator[str]:
    if run.how == "judged" and run.state != "foreign":
        yield say("judged anew: {why}", why=run.why_judged)
    if run.state == "foreign":
        yield say("a log from elsewhere: nothing says of which machine it is, or that it is whole")
    timing = fleet.timing
    if run.node in timing.corrected:
        ahead = timing.corrected[run.node]
        yield (
            say("its clock is {seconds:.1f} s ahead, as its run says; taken off", seconds=ahead)
            if ahead > 0
            else say("its clock is {seconds:.1f} s behind, as its run says; taken off", seconds=-ahead)
        )
    if run.node in timing.offsets:
        late = timing.offsets[run.node]
        yield say(
            "every phase of it begins {seconds:.1f} s {later} than in the middle of the fleet: its clock is that far "
            "off, or it was started so; phases are compared by phase",
            seconds=abs(late),
            later=say("later") if late > 0 else say("earlier"),
        )
    if run.clock_steps == 1:
        yield say("its clock was set 1 time during the run")
    elif run.clock_steps:
        yield say("its clock was set {count} times during the run", count=run.clock_steps)
    used = run.used
    if used is not None and used.limited:
        when = [
            say("{count:,} in {phase}", count=count, phase=phase or say("no phase"))
            for phase, count in used.by_phase.items()
        ]
        yield say(
            "{limited:,} of {requests:,} requests refused for a quota (429), {when}",
            limited=used.limited,
            requests=used.requests,
            when=joined(", ", when),
        )
    cards = [card.device for card, why in fleet.left_out if card.node == run.node and why and card.is_main]
    if cards and run.cards and fleet.is_measure(run.node):
        yield say(
            "not compared with others, since not loaded in full: {cards}", cards=joined(", ", dict.fromkeys(cards))
        )


def _how_far(run: NodeRun) -> str:
    if not run.phases:
        return say(" before its first phase")
    last = run.phases[-1]
    planned = run.planned.get(str(last.name))
    if not planned:
        return say(" in {phase}, after {span}", phase=last.name, span=span(last.duration_seconds))
    return say(
        " in {phase}, after {span} of {planned}",
        phase=last.name,
        span=span(last.duration_seconds),
        planned=span(planned),
    )


def _said_whole(run: NodeRun) -> str:
    return say("its log is there") if run.state == "foreign" else say("its run is there, whole and sealed")


def _said_worst(fleet: FleetJudgement, name: str) -> str:
    worst = fleet.worst_of(name)
    if worst is None:
        return ""
    card, deviation = worst
    return say(
        "; furthest from the fleet's median: {card} by {deviation:+.1f} °C", card=card.device, deviation=deviation
    )


def _open(seen: str, likely: str, advice: str) -> Remark:
    return Remark(outcome=Outcome.INCONCLUSIVE, seen=seen, likely=likely, advice=advice)
