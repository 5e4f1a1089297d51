"""The whole page of a fleet: one HTML text that loads nothing and runs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pytest_thermal import __version__
from pytest_thermal.findings.fleet.judgement import PLACE, SIMULTANEOUS, FleetJudgement, kinds_of_places
from pytest_thermal.findings.fleet.overview import domain_rows, limits_said, node_rows, use_rows
from pytest_thermal.findings.fleet.side_by_side import kind_said, place_said
from pytest_thermal.findings.judgement import finding_as_json, told_finding
from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.reporting.fleet_page.matrix import matrix_section
from pytest_thermal.reporting.fleet_page.nodes import nodes_section
from pytest_thermal.reporting.fleet_page.words import fleet_words
from pytest_thermal.reporting.run_page.markup import Markup, tag
from pytest_thermal.reporting.run_page.numbers import number
from pytest_thermal.reporting.run_page.sections.verdict import MARKS, badge, findings_section
from pytest_thermal.reporting.run_page.shell import asset, whole_page
from pytest_thermal.reporting.run_page.subject import SEVERITY
from pytest_thermal.reporting.run_page.tables import table
from pytest_thermal.reporting.run_page.words import Words

_MOST_OPEN = 24
"""Rows of nodes and domains that are shown without being asked for."""
_MOST_OF_AN_ERROR = 120
ASSETS = files("pytest_thermal.reporting.fleet_page") / "assets"


def fleet_html(
    fleet: FleetJudgement, *, folder: Path, redact: Callable[[str], str] = str, told: Catalogue = IN_ENGLISH
) -> str:
    """The page as HTML text.

    Args:
        fleet: What it is about; its findings are made here where nobody asked for them before.
        folder: Where the page will lie: links to runs' pages are relative to it.
        redact: Takes keys out of text.
        told: The language of the page.
    """
    words = fleet_words(told)
    findings = [told_finding(finding_as_json(found), told) for found in fleet.findings()]
    judged = [one for one in findings if one["check"] != SIMULTANEOUS]
    main = tag(
        "main",
        _verdict(fleet, judged, words),
        findings_section(judged, [told(note) for note in fleet.roster.notes], words),
        nodes_section(list(node_rows(fleet)), words, folder=folder),
        matrix_section(fleet, words),
        _places(fleet, words),
        _start(fleet, words),
        _quota(fleet, words),
        tag("footer", words("fleet_made_by", version=__version__, folder=fleet.roster.folder)),
    )
    return whole_page(
        redact(main),
        title=redact(words("fleet_title", name=_name(fleet))),
        language=words.language,
        styles=[asset("page.css"), (ASSETS / "fleet.css").read_text(encoding="utf-8")],
    )


def _name(fleet: FleetJudgement) -> str:
    named = fleet.places.name if fleet.places is not None else ""
    return named or fleet.roster.folder.resolve().name


def _verdict(fleet: FleetJudgement, told: Sequence[Mapping[str, Any]], words: Words) -> Markup:
    counts = Counter(str(one["outcome"]) for one in told)
    outcome = next((kind for kind in SEVERITY if counts[kind]), "inconclusive")
    outcome = {"blocked": "inconclusive", "skipped": "passed"}.get(outcome, outcome)
    says = f"fleet_{outcome}_says" if fleet.roster.nodes else "fleet_nothing_says"
    nodes = Counter(str(fleet.finding("node", name).outcome) for name in fleet.roster.nodes)
    of_nodes = ", ".join(f"{count} {words.get(kind, kind)}" for kind, count in nodes.most_common())
    simulated = (
        tag("p", tag("strong", words("simulated")), f" {words('fleet_simulated_says')}", class_="banner")
        if fleet.is_simulated()
        else None
    )
    return tag(
        "header",
        tag("p", f"{len(fleet.roster.nodes)} {words('nodes').lower()}: {of_nodes}", class_="where"),
        tag("h1", words("fleet_title", name=_name(fleet))),
        simulated,
        tag(
            "div",
            tag("p", tag("span", MARKS[outcome], aria_hidden="true"), " ", words(f"verdict_{outcome}"), class_="word"),
            tag("p", words(says)),
            tag("ul", *(tag("li", badge(kind, words), f" {counts[kind]}") for kind in SEVERITY if counts[kind]),
                class_="counts"),
            class_=f"verdict {outcome}",
            id="verdict",
        ),
    )  # fmt: skip


def _places(fleet: FleetJudgement, words: Words) -> Markup:
    kinds, told = kinds_of_places(fleet.places), words.told
    if not kinds:
        return tag("section", tag("h2", words("places")), tag("p", words("no_places")), id="places")
    rows = [row for kind in kinds for row in _place_rows(fleet, kind, words)]
    verdicts = [
        tag("li", badge(str(found.outcome), words), f" {told(kind_said(kind))}: {told(found.seen)}")
        for kind in kinds
        for found in [fleet.finding(PLACE, kind)]
    ]
    return tag(
        "section",
        tag("h2", words("places")),
        tag("p", words("places_says"), class_="hint"),
        tag("ul", *verdicts, class_="plain"),
        table([words(key) for key in ("place", "kind", "effect", "cards", "nodes")], rows) if rows else None,
        id="places",
    )


def _place_rows(fleet: FleetJudgement, kind: str, words: Words) -> Iterator[list[object]]:
    for family in fleet.families.values():
        rise = family.of("rise")
        for place in rise.found.effects if rise is not None else ():
            name = place.name_in(kind)
            if not name or place.name_in("node"):
                continue
            bad = rise is not None and place in rise.found.places
            yield [
                words.told(place_said(kind, name)),
                family.name.removesuffix(".temperature_celsius"),
                tag(
                    "td",
                    tag("div", number(place.effect, 1, sign=True, unit="°C"), class_="value"),
                    badge("failed", words) if bad else None,
                    class_="failed" if bad else None,
                ),
                str(place.members),
                str(len(fleet.nodes_in(kind, name))),
            ]


def _start(fleet: FleetJudgement, words: Words) -> Markup:
    timing = fleet.timing
    found = fleet.finding(SIMULTANEOUS, "fleet")
    rows = [
        [name, tag("td", number(late, 1, sign=True, unit="s")), words("late_in_every_phase")]
        for name, late in timing.offsets.items()
    ]
    rows += [
        [name, tag("td", number(off, 1, sign=True, unit="s")), words("clock")] for name, off in timing.corrected.items()
    ]
    return tag(
        "section",
        tag("h2", words("start")),
        tag("p", words.told(found.seen)),
        tag("p", tag("b", f"{words('likely')}: "), words.told(found.likely)) if found.likely else None,
        table([words("node"), words("into_steady"), ""], rows) if rows else None,
        id="start",
    )


def _quota(fleet: FleetJudgement, words: Words) -> Markup:
    rows = []
    for row in domain_rows(fleet):
        names = ", ".join(row.limited_nodes[:12])
        more = f", {words('and_more', count=len(row.limited_nodes) - 12)}" if len(row.limited_nodes) > 12 else ""
        numbers = (
            row.nodes, row.requests, row.limited, row.failed, row.prompt_tokens, row.completion_tokens,
            row.tokens_per_second,
        )  # fmt: skip
        met = words.told(limits_said(row.by_limit))
        rows.append([row.name, *(tag("td", number(one, 0), class_="number") for one in numbers), met, f"{names}{more}"])
    head = (
        "domain", "nodes", "requests", "limited", "failed_requests", "tokens_in", "tokens_out", "rate_tokens",
        "limit_met", "limited_nodes",
    )  # fmt: skip
    return tag(
        "section",
        tag("h2", words("quota")),
        table([words(key).lower() for key in head], rows) if rows else tag("p", words("no_requests")),
        _uses(fleet, words),
        id="domains",
    )


def _uses(fleet: FleetJudgement, words: Words) -> Markup | None:
    """Every node with every domain that it asked, the most often refused first."""
    found = sorted(use_rows(fleet), key=lambda row: (-row.limited, -row.failed))
    if not found:
        return None
    head = (
        "node", "domain", "requests", "limited", "failed_requests", "tokens_in", "tokens_out", "rate_tokens",
        "limit_met", "frequent_error",
    )  # fmt: skip
    rows = []
    for row in found:
        numbers = (
            row.requests, row.limited, row.failed, row.prompt_tokens, row.completion_tokens, row.tokens_per_second,
        )  # fmt: skip
        cells = [tag("td", number(one, 0), class_="number") for one in numbers]
        rows.append([row.node, row.domain, *cells, words.told(row.limits), row.error[:_MOST_OF_AN_ERROR]])
    return tag(
        "details",
        tag("summary", words("by_node_and_domain")),
        table([words(key).lower() for key in head], rows, id_="use-table"),
        open=len(found) <= _MOST_OPEN,
    )
