"""The judgement of a fleet: each node, each temperature over all nodes, each kind of place, and the common start."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.fleet import Consistency, Consistent, Member, judge_fleet
from pytest_thermal.bench.fleet_file import FleetFile
from pytest_thermal.findings.fleet.archive import FoundRun, Roster
from pytest_thermal.findings.fleet.conditions import differences, usual_conditions
from pytest_thermal.findings.fleet.consistency_check import consistency_verdict, place_verdict
from pytest_thermal.findings.fleet.node_check import node_verdict, not_whole
from pytest_thermal.findings.fleet.node_run import Card, LimitsOf, NodeRun, read_node
from pytest_thermal.findings.fleet.side_by_side import Family, position_of, side_by_side
from pytest_thermal.findings.fleet.timing import TOGETHER_SECONDS, Timing, timing_of
from pytest_thermal.findings.limits import Limits
from pytest_thermal.findings.telling import few, span
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped, undecided
from pytest_thermal.model import Finding
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say

NODE, CONSISTENCY, PLACE, SIMULTANEOUS = "node", "consistency", "place", "simultaneous"
CHECKS = (NODE, CONSISTENCY, PLACE, SIMULTANEOUS)
OF_HEAT = ("baseline", "threshold", "rise", "settled", "load", "throttling", "pump", "rebound")
"""Checks that an earlier run must not have failed itself to be what drift is measured by."""
DAY_SECONDS = 86_400.0
MOST_AGE_SECONDS = 30 * DAY_SECONDS
"""A node whose run is that much older than the middle of the fleet's was not measured with it. Own criterion: runs are
made each quarter, and a fleet's within weeks."""
CLOCKS_SECONDS = 3600.0
"""By which clocks of nodes that ran together may differ."""
FLEET = "fleet"
"""The subject of what is about no single node."""


class FleetJudgement:
    """Findings of a fleet; lazy. Runs are read one after the other, when first needed, and only figures are kept.

    Args:
        roster: Which nodes there are (``find_fleet``).
        limits: Of the fleet's own checks.
        places: Where nodes and cards sit; None: nobody says.
        limits_of_runs: What to judge single runs by; None: each by its own limits, or by its summary.
        bench: The bench that all runs should be of; empty: whichever most are of.
        with_drift: Whether to look for an earlier run of each node.
        note: Told of each node before it is read, for whoever shows progress.
    """

    def __init__(
        self,
        roster: Roster,
        limits: Limits,
        *,
        places: FleetFile | None = None,
        limits_of_runs: LimitsOf | None = None,
        bench: str = "",
        with_drift: bool = True,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.roster = roster
        self.limits = limits
        self.places = places
        self.bench = bench
        self._limits_of_runs = limits_of_runs
        self._with_drift = with_drift
        self._note = note
        self._found: dict[tuple[str, str], Finding] = {}

    # ---------------------------------------------------------------------------------------------------- what is asked

    def subjects(self, check: str) -> tuple[str, ...]:
        """What a check is about.

        Raises:
            KeyError: There is no check of that name.
        """
        if check == NODE:
            return tuple(self.roster.nodes)
        if check == CONSISTENCY:
            return self.roster.sensors
        if check == PLACE:
            return kinds_of_places(self.places)
        if check == SIMULTANEOUS:
            return (FLEET,)
        raise KeyError(f"no fleet check {check!r}; there are: {', '.join(CHECKS)}")

    def finding(self, check: str, subject: str) -> Finding:
        """What a check concludes about a subject.

        Raises:
            KeyError: There is no such check, or no such node.
        """
        key = check, subject
        if key not in self._found:
            begin = time.perf_counter()
            try:
                verdict = self._verdict(check, subject)
            except OpenError as error:
                verdict = undecided(error)
            evidence = dict(verdict.evidence)
            if self.is_simulated(evidence.get("node") if check == NODE else None):
                evidence["simulated"] = True
            self._found[key] = Finding(
                check=check,
                layer=check,
                subject=subject,
                outcome=verdict.outcome,
                seen=verdict.seen,
                likely=verdict.likely,
                advice=verdict.advice,
                evidence=evidence,
                warnings=verdict.warnings,
                duration_seconds=time.perf_counter() - begin,
            )
        return self._found[key]

    def findings(self) -> Iterator[Finding]:
        """Every check of every subject."""
        for check in CHECKS:
            for subject in self.subjects(check):
                yield self.finding(check, subject)

    def _verdict(self, check: str, subject: str) -> Verdict:
        if check == NODE and subject not in self.roster.nodes:
            raise OpenError(
                say(
                    "no node {node}: no run of it lies below {folder}, and nothing names it",
                    node=subject,
                    folder=self.roster.folder,
                ),
                likely=say("the nodes' runs were not brought back yet, or lie elsewhere"),
                advice=say("--runs DIR with the folder that holds them; fleet.toml names those that must be there"),
            )
        if check == NODE:
            return node_verdict(self, subject)
        if check == CONSISTENCY:
            return consistency_verdict(self, subject)
        if check == PLACE:
            return place_verdict(self, subject)
        if check == SIMULTANEOUS:
            return self._simultaneous()
        raise KeyError(f"no fleet check {check!r}; there are: {', '.join(CHECKS)}")

    # ----------------------------------------------------------------------------------------------------------- nodes

    @cached_property
    def runs(self) -> Mapping[str, NodeRun]:
        """Every node's newest run in figures."""
        return {name: read for name, (read, _) in self._read.items()}

    def run(self, name: str) -> NodeRun | None:
        """A node's newest run; None where it has none."""
        return self.runs.get(name)

    def earlier(self, name: str) -> NodeRun | None:
        """The earlier run of the same machine that a node's drift is measured by; None where there is none."""
        return self._read[name][1] if name in self._read else None

    @cached_property
    def _read(self) -> Mapping[str, tuple[NodeRun, NodeRun | None]]:
        found = {}
        for name, node in self.roster.nodes.items():
            if node.newest is None:
                continue
            self._note(name)
            newest = read_node(node.newest, name, limits=self._limits_of_runs)
            found[name] = newest, self._earlier(newest, node.history) if self._with_drift else None
        return found

    def _earlier(self, newest: NodeRun, history: Sequence[FoundRun]) -> NodeRun | None:
        if newest.trouble:
            return None
        for one in history:
            if one.trouble or one.state != "finished":
                continue
            read = read_node(one, newest.node, limits=self._limits_of_runs)
            good = not any(told["check"] in OF_HEAT for told in read.findings if told["outcome"] == "failed")
            if not_whole(read) is None and good and not differences(read.conditions, newest.conditions):
                return read
        return None

    def is_simulated(self, node: object = None) -> bool:
        """Whether a node's run, or that of any, is simulated."""
        runs = [self.runs[node]] if isinstance(node, str) and node in self.runs else list(self.runs.values())
        if isinstance(node, str) and node not in self.runs:
            return False
        return any(run.simulated for run in runs)

    # -------------------------------------------------------------------------------------------------- comparability

    @cached_property
    def _usual(self) -> tuple[Mapping[str, str], tuple[str, ...]]:
        whole = [run.conditions for run in self.runs.values() if not_whole(run) is None and run.state != "foreign"]
        return usual_conditions(whole)

    @property
    def split(self) -> tuple[str, ...]:
        """In what the nodes differ half and half."""
        return self._usual[1]

    def not_comparable(self, name: str) -> tuple[str, ...]:
        """In what a node differs from most."""
        run = self.run(name)
        if run is None or run.trouble:
            return ()
        if run.state == "foreign":
            lost = sorted(self._usual_devices - {card.device for card in run.cards})
            return (say("{names} missing, which most nodes have", names=few(lost)),) if lost else ()
        return differences(run.conditions, self._usual[0])

    def is_measure(self, name: str) -> bool:
        """Whether a node's figures are compared with others': a whole run, under the conditions that most have."""
        run = self.run(name)
        if run is None or not_whole(run) is not None or self.split:
            return False
        return not self.not_comparable(name) and not self.outdated(name) and not self.twins(name)

    @cached_property
    def _usual_devices(self) -> frozenset[str]:
        """Devices whose temperatures more than half of the nodes have."""
        every = [{card.device for card in run.cards} for run in self.runs.values() if not run.trouble]
        counts = Counter(device for devices in every for device in devices)
        return frozenset(device for device, count in counts.items() if 2 * count > len(every))

    def outdated(self, name: str) -> str:
        """Why a node's newest run says nothing of the node beside the others' now, in words; empty where it does."""
        newest = self.roster.nodes[name].newest
        if newest is None or newest.start_seconds is None:
            return ""
        end = newest.start_seconds if newest.end_seconds is None else newest.end_seconds
        for other, runs in self.roster.nodes.items():
            met = runs.newest
            if other == name or met is None or met.start_seconds is None or name not in met.together:
                continue
            if met.start_seconds - end > CLOCKS_SECONDS:
                return say(
                    "its newest run is {age} older than that of {other}, which was to be made together with it",
                    age=_age(met.start_seconds - newest.start_seconds),
                    other=other,
                )
        starts = [one.newest.start_seconds for one in self.roster.nodes.values() if one.newest is not None]
        middle = statistics.median([start for start in starts if start is not None])
        if middle - newest.start_seconds > MOST_AGE_SECONDS:
            return say(
                "its newest run is {age} older than the others': it tells of an earlier time",
                age=_age(middle - newest.start_seconds),
            )
        return ""

    def twins(self, name: str) -> tuple[str, ...]:
        """Other nodes whose newest runs measured one of the same cards: one machine under several names."""
        newest = self.roster.nodes[name].newest
        if newest is None:
            return ()
        return tuple(dict.fromkeys(one for card in sorted(newest.cards) for one in self._homes[card] if one != name))

    @cached_property
    def _homes(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, runs in self.roster.nodes.items():
            for card in runs.newest.cards if runs.newest is not None else ():
                found.setdefault(card, []).append(name)
        return found

    @cached_property
    def not_compared(self) -> tuple[str, ...]:
        """Nodes whose figures say nothing beside the others'."""
        return tuple(name for name in self.roster.nodes if not self.is_measure(name))

    # ------------------------------------------------------------------------------------------------------- figures

    @cached_property
    def families(self) -> Mapping[str, Family]:
        """Every kind of temperature, compared over all nodes that are comparable."""
        cards = [card for name in self.runs if self.is_measure(name) for card in self.runs[name].cards]
        return side_by_side(cards, self.limits, self.places)

    @property
    def left_out(self) -> Iterator[tuple[Card, str]]:
        """Cards that are no measure for others, with why."""
        for family in self.families.values():
            if not family.idle:
                yield from family.left_out

    def nodes_in(self, kind: str, name: str) -> frozenset[str]:
        """Nodes with cards in a place that are compared."""
        return self._nodes_in.get((kind, name), frozenset())

    @cached_property
    def _nodes_in(self) -> Mapping[tuple[str, str], frozenset[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for family in self.families.values():
            for card in family.cards.values():
                for place in position_of(card, self.places).items():
                    found.setdefault(place, set()).add(card.node)
        return {place: frozenset(nodes) for place, nodes in found.items()}

    def worst_of(self, name: str) -> tuple[Card, float] | None:
        """The card of a node whose rise is furthest from the median of its kind, and by how much, °C."""
        return self._worst.get(name)

    @cached_property
    def _worst(self) -> Mapping[str, tuple[Card, float]]:
        found: dict[str, tuple[Card, float]] = {}
        for family in self.families.values():
            rise = family.of("rise")
            for one in rise.found.members if rise is not None and rise.found.median is not None else ():
                card = family.cards[one.member.key]
                before = found.get(card.node)
                if card.is_main and (before is None or abs(one.deviation) > abs(before[1])):
                    found[card.node] = card, one.deviation
        return found

    @cached_property
    def _rates(self) -> tuple[Mapping[str, float], str]:
        """Tokens per second in steady where every node's answers count them, else answers per second."""
        used = {name: run.used for name, run in self.runs.items() if run.used is not None and self.is_measure(name)}
        tokens = {name: one.tokens_per_second for name, one in used.items() if one.tokens_per_second is not None}
        if used and len(tokens) == len(used):
            return tokens, "tokens/s"
        answers = {name: one.answers_per_second for name, one in used.items() if one.answers_per_second is not None}
        return answers, "answers/s"

    @property
    def throughput_unit(self) -> str:
        """``tokens/s`` or ``answers/s``."""
        return self._rates[1]

    @cached_property
    def throughput(self) -> Consistency:
        """Throughput of the nodes in steady, side by side."""
        rates = self._rates[0]
        middle = sorted(rates.values())[len(rates) // 2] if rates else 0.0
        least = self.limits["consistency_throughput_least"].value * middle
        members = [Member(key=name, value=rate) for name, rate in rates.items()]
        return judge_fleet(members, least_deviation=max(least, 1e-9))

    def slow(self, name: str) -> Consistent | None:
        """A node's throughput where it is too far below the others', or where that cannot be told."""
        if self.throughput.median is None:
            return None
        return next(
            (
                one
                for one in self.throughput.members
                if one.member.key == name
                and ((one.consistent is Answer.NO and one.deviation < 0) or one.consistent is Answer.UNKNOWN)
            ),
            None,
        )

    # --------------------------------------------------------------------------------------------------------- timing

    @cached_property
    def timing(self) -> Timing:
        """When the nodes entered steady."""
        return timing_of(run for run in self.runs.values() if not run.trouble)

    def _simultaneous(self) -> Verdict:
        timing = self.timing
        spread = timing.spread_seconds
        if spread is None:
            return skipped(say("fewer than two nodes say when they entered steady"))
        evidence: dict[str, Scalar] = {
            "spread_seconds": round(spread, 3),
            "limit_seconds": TOGETHER_SECONDS,
            "limit_origin": "default",
            "shared_seconds": round(timing.shared_seconds, 3),
            "nodes": len(timing.starts),
        }
        missing = len(self.roster.nodes) - len(timing.starts)
        warnings = (say("{count} more nodes do not say when they entered steady", count=missing),) if missing else ()
        said = say("{count} nodes entered steady within {span}", count=len(timing.starts), span=_seconds(spread))
        if timing.corrected:
            said = say("{said}, {count} clocks corrected", said=said, count=len(timing.corrected))
        together = say("and were in it together for {span}", span=span(timing.shared_seconds))
        if spread <= TOGETHER_SECONDS:
            return passed(joined(", ", [said, together]), evidence=evidence, warnings=warnings)
        late = sorted(timing.offsets.items(), key=lambda one: -abs(one[1]))[:3]
        clocks = [say("{node} {seconds:+.1f} s in every phase", node=name, seconds=seconds) for name, seconds in late]
        return failed(
            say(
                "{said}, more than {most:g} s apart ({first} first, {last} last), {apart}",
                said=said,
                most=TOGETHER_SECONDS,
                first=timing.first,
                last=timing.last,
                apart=together if timing.shared_seconds else say("and were never all in it at one time"),
            ),
            likely=say("clocks that differ, or starts one after another: {clocks}", clocks=joined("; ", clocks))
            if clocks
            else say(
                "they were started one after another: what they share (supply, branch, quota) was never in full use"
            ),
            advice=say("start them together, with a barrier between nodes; set their clocks by NTP or PTP"),
            evidence=evidence,
            warnings=warnings,
        )


def kinds_of_places(places: FleetFile | None) -> tuple[str, ...]:
    """Kinds of places that a fleet's file names."""
    if places is None:
        return ()
    named = [*places.places.values(), *places.cards.values()]
    return tuple(dict.fromkeys(kind for one in named for kind in one))


def _age(seconds: float) -> str:
    days = seconds / DAY_SECONDS
    return say("{days:.0f} days", days=days) if days >= 2 else span(seconds)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 90 else span(value)
