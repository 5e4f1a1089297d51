"""A judged fleet as rows: what the terminal, the page and the pictures show. Plain data."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.findings.fleet.judgement import NODE, FleetJudgement
from pytest_thermal.findings.fleet.node_run import NodeRun, Used
from pytest_thermal.findings.fleet.side_by_side import Family, place_said
from pytest_thermal.model.said import joined, say

_LIMITS = {
    "requests": say("requests a minute (RPM)"),
    "tokens": say("tokens a minute (TPM)"),
    "parallel": say("requests at one time"),
    "rate": say("a rate, it does not say of what"),
    "money": say("what is paid for"),
    "untold": say("it does not say which"),
}
"""`access.limits.LIMITS`, in words."""


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """One node."""

    name: str
    place: str
    """``rack R1, branch A``; empty where nobody says."""
    outcome: str
    seen: str
    run: str
    """Path of its newest run; empty where it has none."""
    by: str
    rise_celsius: float | None
    """Median of the rises of its compared accelerators, or of whatever is compared."""
    worst_device: str
    worst_celsius: float | None
    """Deviation of that device's rise from the fleet's median."""
    tokens_per_second: float | None
    answers_per_second: float | None
    requests: int | None
    limited: int | None
    failed: int | None
    tokens: float | None
    """Prompt and completion, of answered requests."""
    late_seconds: float | None
    """Later into steady than the first node."""
    simulated: bool
    outliers: tuple[str, ...]
    """Its cards that stand out of the fleet."""


@dataclass(frozen=True, kw_only=True)
class DomainRow:
    """What all nodes together asked of one gateway."""

    name: str
    nodes: int
    requests: int
    answered: int
    limited: int
    failed: int
    tokens: float
    tokens_per_second: float | None
    """Summed over nodes, each over its own steady."""
    answers_per_second: float | None
    limited_nodes: tuple[str, ...]
    """Those refused for a quota, the most often refused first."""
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    by_limit: Mapping[str, int] = field(default_factory=dict)
    """Refused requests by the limit that they met."""


@dataclass(frozen=True, kw_only=True)
class UseRow:
    """What one node asked of one gateway."""

    node: str
    domain: str
    requests: int
    limited: int
    failed: int
    prompt_tokens: float
    completion_tokens: float
    tokens_per_second: float | None
    """Completion tokens in steady."""
    limits: str
    """Which limits were met, in words."""
    error: str
    """The most frequent one; empty where there was none."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One card's rise."""

    rise_celsius: float
    deviation_celsius: float
    own_celsius: float
    """What is left of the deviation without its places'."""
    is_outlier: bool


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Nodes × cards of one kind of temperature."""

    family: str
    devices: tuple[str, ...]
    median_celsius: float
    allowed_celsius: float
    limit_origin: str
    cells: Mapping[tuple[str, str], Cell] = field(default_factory=dict)
    """By node and device."""


def node_rows(fleet: FleetJudgement) -> Iterator[NodeRow]:
    """Every node, in the fleet's order."""
    first = min(fleet.timing.starts.values(), default=0.0)
    rises = _rises(fleet)
    outliers = _outliers(fleet)
    for name in fleet.roster.nodes:
        found, run = fleet.finding(NODE, name), fleet.run(name)
        used = run.used if run is not None else None
        worst = fleet.worst_of(name)
        start = fleet.timing.starts.get(name)
        yield NodeRow(
            name=name,
            place=place_words(fleet, name),
            outcome=str(found.outcome),
            seen=found.seen,
            run=str(run.path) if run is not None else "",
            by=run.how if run is not None else "",
            rise_celsius=statistics.median(rises[name]) if rises.get(name) else None,
            worst_device=worst[0].device if worst is not None else "",
            worst_celsius=worst[1] if worst is not None else None,
            tokens_per_second=used.tokens_per_second if used is not None else None,
            answers_per_second=used.answers_per_second if used is not None else None,
            requests=used.requests if used is not None else None,
            limited=used.limited if used is not None else None,
            failed=used.failed if used is not None else None,
            tokens=_tokens(used) if used is not None else None,
            late_seconds=None if start is None else start - first,
            simulated=run.simulated if run is not None else False,
            outliers=tuple(outliers.get(name, ())),
        )


def place_words(fleet: FleetJudgement, name: str) -> str:
    """Where a node stands."""
    told = fleet.places.places.get(name, {}) if fleet.places is not None else {}
    return joined(", ", [place_said(kind, place) for kind, place in told.items()])


def domain_rows(fleet: FleetJudgement) -> tuple[DomainRow, ...]:
    """What was asked of each gateway. Of a run that does not say which of several was asked, those are one row."""
    by_domain: dict[str, list[tuple[NodeRun, Used]]] = {}
    for run in fleet.runs.values():
        for name, used in run.used.by_domain.items() if run.used is not None else ():
            by_domain.setdefault(name, []).append((run, used))
    return tuple(_domain(name, told) for name, told in by_domain.items())


def use_rows(fleet: FleetJudgement) -> Iterator[UseRow]:
    """What each node asked of each gateway, in the fleet's order."""
    for run in fleet.runs.values():
        for name, used in run.used.by_domain.items() if run.used is not None else ():
            yield UseRow(
                node=run.node,
                domain=name,
                requests=used.requests,
                limited=used.limited,
                failed=used.failed,
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                tokens_per_second=used.tokens_per_second,
                limits=limits_said(used.by_limit),
                error=used.most_frequent_error,
            )


def limits_said(by_limit: Mapping[str, int]) -> str:
    """Which limits refused how many requests, the most frequent first; empty for none."""
    ordered = sorted(by_limit.items(), key=lambda one: -one[1])
    return joined(
        ", ", [say("{limit} × {count:,}", limit=_LIMITS.get(name, name), count=count) for name, count in ordered]
    )


def _domain(name: str, told: Sequence[tuple[NodeRun, Used]]) -> DomainRow:
    every = [used for _, used in told]
    limited = sorted(((used.limited, run.node) for run, used in told if used.limited), reverse=True)
    return DomainRow(
        name=name,
        nodes=len(told),
        requests=sum(used.requests for used in every),
        answered=sum(used.answered for used in every),
        limited=sum(used.limited for used in every),
        failed=sum(used.failed for used in every),
        tokens=sum(map(_tokens, every)),
        tokens_per_second=_summed([used.tokens_per_second for used in every]),
        answers_per_second=_summed([used.answers_per_second for used in every]),
        limited_nodes=tuple(node for _, node in limited),
        prompt_tokens=sum(used.prompt_tokens for used in every),
        completion_tokens=sum(used.completion_tokens for used in every),
        by_limit=dict(sum((Counter(used.by_limit) for used in every), Counter())),
    )


def matrices(fleet: FleetJudgement) -> tuple[Matrix, ...]:
    """One for each kind of temperature that stands for its device and could be compared."""
    return tuple(found for family in fleet.families.values() if (found := _matrix(family)) is not None)


def _matrix(family: Family) -> Matrix | None:
    rise = family.of("rise")
    if rise is None or rise.found.median is None:
        return None
    cells: dict[tuple[str, str], Cell] = {}
    for one in rise.found.members:
        card = family.cards[one.member.key]
        if card.is_main:
            cells[card.node, card.device] = Cell(
                rise_celsius=one.member.value,
                deviation_celsius=one.deviation,
                own_celsius=one.own,
                is_outlier=one.consistent is Answer.NO,
            )
    if not cells:
        return None
    return Matrix(
        family=family.name,
        devices=tuple(dict.fromkeys(device for _, device in cells)),
        median_celsius=rise.median,
        allowed_celsius=rise.allowed,
        limit_origin=rise.limit_origin,
        cells=cells,
    )


def _rises(fleet: FleetJudgement) -> Mapping[str, list[float]]:
    """By node, rises of its main temperatures; of accelerators alone where there are some."""
    found: dict[str, list[float]] = {}
    ordered = sorted(matrices(fleet), key=lambda one: one.family.startswith("cpu"))
    for matrix in ordered[:1]:
        for (node, _), cell in matrix.cells.items():
            found.setdefault(node, []).append(cell.rise_celsius)
    return found


def _outliers(fleet: FleetJudgement) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for family in fleet.families.values():
        for one in family.compared:
            for member in one.found.members:
                card = family.cards[member.member.key]
                told = found.setdefault(card.node, [])
                if member.consistent is Answer.NO and card.device not in told:
                    told.append(card.device)
    return found


def _tokens(used: Used) -> float:
    return used.prompt_tokens + used.completion_tokens


def _summed(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
