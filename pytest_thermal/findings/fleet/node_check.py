"""One node: whether its newest run is there, whole, comparable and good, also against its fleet and its own history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_thermal.analysis import drift as drift_of
from pytest_thermal.analysis.fleet import Consistent
from pytest_thermal.findings.alike import of_one_cause
from pytest_thermal.findings.fleet.side_by_side import NODE
from pytest_thermal.findings.telling import shortened, span
from pytest_thermal.findings.verdict import Verdict
from pytest_thermal.model import Outcome
from pytest_thermal.model.findings import Scalar
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


def node_verdict(fleet: FleetJudgement, name: str) -> Verdict:
    """Everything of one node in one verdict: the worst decides, and leads."""
    runs, run = fleet.roster.nodes[name], fleet.run(name)
    warnings = list(runs.notes)
    if runs.newest is None or run is None:
        return Verdict(
            outcome=Outcome.INCONCLUSIVE,
            seen=f"{name} is missing: {runs.expected_by} tells of it, and no run of it is below {fleet.roster.folder}",
            likely="the node was down, its job did not start, or its run was not brought back",
            advice=f"look at {name}; run it again alone, and judge the fleet anew",
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
            seen=f"{name}: {_said_whole(run)}, {run.passed} checks passed{_said_worst(fleet, name)}",
            evidence=evidence,
            warnings=tuple(warnings),
        )
    remarks.sort(key=lambda one: one.outcome is not Outcome.FAILED)
    told = [one.seen for one in remarks[:_MOST_TOLD]]
    if len(remarks) > _MOST_TOLD:
        told.append(f"and {len(remarks) - _MOST_TOLD} more")
    for one in remarks:
        evidence |= one.evidence
    first = remarks[0]
    return Verdict(
        outcome=first.outcome,
        seen=shortened(f"{name}: {'; '.join(told)}", LONGEST),
        likely=first.likely,
        advice=first.advice,
        evidence=evidence,
        warnings=tuple(warnings),
    )


def not_whole(run: NodeRun) -> Remark | None:
    """Why a run is not all of what it was to be; None where it is."""
    if run.trouble:
        return _open(
            f"its newest run {run.path.name} cannot be read: {run.trouble}",
            "it was copied in part, or its disk has a fault",
            f"bring it back anew, or pytest suites/thermal --replay {run.path}",
        )
    if run.state not in ("finished", "foreign"):
        return _open(
            f"its newest run is {run.state}{_how_far(run)}",
            "the node went down, its job was ended, or the run goes on",
            "run it again; what was recorded can be replayed",
        )
    if run.changed:
        return _open(
            f"{len(run.changed)} of its files are not as they were when the run ended: {run.changed[0]}",
            "they were edited, or copied in part",
            "bring the run directory back as it was written",
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
            f"its run is of bench {run.bench or 'unknown'}, and {fleet.bench} is expected",
            "another bench's files were on that node",
            "--bench as on the nodes, or run it again with the right one",
        )
    used = run.used
    if used is not None and used.requests and not used.answered:
        denied = used.most_frequent_error.startswith(_UNAUTHORISED)
        yield _open(
            f"not comparable: none of its {used.requests:,} requests was answered: {used.most_frequent_error}",
            "no key, or a wrong one, on this node" if denied else "the gateway was not reached from this node",
            "pytest suites/supernode on that node says at which layer",
        )
    different = fleet.not_comparable(name)
    if different:
        yield _open(
            f"not comparable: {'; '.join(different[:3])}",
            "it was set up in another way than the others",
            "make it as the others are, and run it again",
        )
    elif fleet.split and run.state != "foreign":
        yield _open(
            f"the nodes are not alike, and no majority says which are as they should be: {fleet.split[0]}",
            "two kinds of nodes lie in one archive",
            "judge them apart, each with a folder of its own: --runs DIR",
        )


def _own(run: NodeRun) -> Iterator[Remark]:
    """What its own thermal checks found, those of one cause together."""
    for outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.BLOCKED):
        told = [one for one in run.findings if one["outcome"] == outcome.value]
        for same in of_one_cause(told):
            yield _of_run(run, outcome, same)


def _of_run(run: NodeRun, outcome: Outcome, same: Sequence[Mapping[str, Any]]) -> Remark:
    names = [f"{one['check']}[{one['subject']}]" for one in same]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    word = "failed" if outcome is Outcome.FAILED else "open"
    return Remark(
        outcome=Outcome.FAILED if outcome is Outcome.FAILED else Outcome.INCONCLUSIVE,
        seen=f"{names[0]}{more} {word}: {same[0]['seen']}",
        likely=str(same[0]["likely"]),
        advice=str(same[0]["advice"]) or f"pytest suites/thermal --replay {run.path}",
        evidence={"check_of_run": names[0]},
    )


def _against_the_fleet(fleet: FleetJudgement, name: str, run: NodeRun) -> Iterator[Remark]:
    """A node all of whose cards are warmer than others', and one that answers slower."""
    seen: set[str] = set()
    for family in fleet.families.values():
        for one in family.compared:
            for place in one.found.places:
                kind = family.name.partition("*")[0]
                if place.name_in(NODE) != name or kind in seen or one.unit != "°C":
                    continue
                seen.add(kind)
                effect = place.effect if abs(place.effect) > one.allowed else place.against
                words = "warmer" if effect > 0 else "colder"
                yield Remark(
                    outcome=Outcome.FAILED,
                    seen=f"all its {place.members} {family.name.removesuffix('.temperature_celsius')} are "
                    f"{abs(effect):.1f} °C {words} than the other nodes' by their {one.figure} "
                    f"(median {one.median:.1f} °C, allowed {one.allowed:.1f} °C, {one.limit_origin})",
                    likely="this node's loop: pump, flow, air, supply; not one card"
                    if effect > 0
                    else "its load was less than the others', or its supply is colder",
                    advice="compare its pump, flow and coolant supply with a neighbour's"
                    if effect > 0
                    else "compare its power and its requests with the others'",
                    evidence=_evidence(effect, one.allowed, one.limit_origin),
                )
    slow = fleet.slow(name)
    if slow is not None:
        yield _slower(fleet, run.used, slow)


def _evidence(value: float, limit: float, origin: str) -> dict[str, Scalar]:
    return {"deviation_celsius": round(value, 2), "limit_celsius": round(limit, 2), "limit_origin": origin}


def _slower(fleet: FleetJudgement, used: Used | None, slow: Consistent) -> Remark:
    found, unit = fleet.throughput, fleet.throughput_unit
    median = found.median or 0.0
    limited = used is not None and used.limited > _LIMITED_SHARE * used.requests
    return Remark(
        outcome=Outcome.FAILED,
        seen=f"{slow.member.value:,.3g} {unit} in steady, {-100 * slow.deviation / median:.0f} % less than the fleet's "
        f"median of {median:,.3g} (allowed {100 * (found.threshold or 0.0) / median:.0f} %)",
        likely=f"its quota: {used.limited:,} of its {used.requests:,} requests were refused with 429"
        if limited and used is not None
        else "its way to the gateway, or a slower engine behind it",
        advice="give all nodes one quota, or fewer concurrent requests"
        if limited
        else "pytest suites/supernode on that node, and test_throughput of its run",
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
                seen=f"{card.sensor} gets {found.value:.1f} °C hotter than in this node's run {earlier.path.name}, by "
                f"its {found.detail.get('figure')}; {limit.text} or more fails",
                likely="paste has aged, filters or radiator have clogged, or coolant is lost",
                advice="clean, top up, bleed",
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
        yield f"judged anew: {run.why_judged}"
    if run.state == "foreign":
        yield "a log from elsewhere: nothing says of which machine it is, or that it is whole"
    timing = fleet.timing
    if run.node in timing.corrected:
        ahead = timing.corrected[run.node]
        yield f"its clock is {abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}, as its run says; taken off"
    if run.node in timing.offsets:
        late = timing.offsets[run.node]
        yield (
            f"every phase of it begins {abs(late):.1f} s {'later' if late > 0 else 'earlier'} than in the middle of "
            "the fleet: its clock is that far off, or it was started so; phases are compared by phase"
        )
    if run.clock_steps:
        yield f"its clock was set {run.clock_steps} time{'s' if run.clock_steps > 1 else ''} during the run"
    used = run.used
    if used is not None and used.limited:
        when = ", ".join(f"{count:,} in {phase or 'no phase'}" for phase, count in used.by_phase.items())
        yield f"{used.limited:,} of {used.requests:,} requests refused for a quota (429), {when}"
    cards = [card.device for card, why in fleet.left_out if card.node == run.node and why and card.is_main]
    if cards and run.cards and fleet.is_measure(run.node):
        yield f"not compared with others, since not loaded in full: {', '.join(dict.fromkeys(cards))}"


def _how_far(run: NodeRun) -> str:
    if not run.phases:
        return " before its first phase"
    last = run.phases[-1]
    planned = run.planned.get(str(last.name))
    of = f" of {span(planned)}" if planned else ""
    return f" in {last.name}, after {span(last.duration_seconds)}{of}"


def _said_whole(run: NodeRun) -> str:
    return "its log is there" if run.state == "foreign" else "its run is there, whole and sealed"


def _said_worst(fleet: FleetJudgement, name: str) -> str:
    worst = fleet.worst_of(name)
    if worst is None:
        return ""
    card, deviation = worst
    return f"; furthest from the fleet's median: {card.device} by {deviation:+.1f} °C"


def _open(seen: str, likely: str, advice: str) -> Remark:
    return Remark(outcome=Outcome.INCONCLUSIVE, seen=seen, likely=likely, advice=advice)
