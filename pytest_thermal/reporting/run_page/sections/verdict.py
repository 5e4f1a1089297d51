"""The verdict: what failed, what could not be measured, what passed; in that order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_thermal.findings.alike import of_one_cause, saying_the_same
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import utc
from pytest_thermal.reporting.run_page.subject import SEVERITY, Subject
from pytest_thermal.reporting.run_page.words import Words

MARKS = {"failed": "✗", "inconclusive": "?", "blocked": "–", "passed": "✓", "skipped": "–"}
"""Outcomes are told by sign and word, and only then by colour."""
ENDED_BY_PLAN = "done"
"""What ``run.json`` says of a run whose session ended by itself; with more where it did not go through all phases."""
_MOST_CHANGED = 8
_MOST_SEEN = 8


def verdict(subject: Subject) -> Markup:
    """The page's head."""
    words, outcome = subject.words, subject.verdict
    counts = {kind: sum(1 for one in subject.findings if one.get("outcome") == kind) for kind in SEVERITY}
    says = f"verdict_{outcome}_says" if any(counts.values()) else "verdict_nothing_says"
    facts = subject.recording.facts
    where = [facts.get("bench"), (facts.get("host") or {}).get("name"), utc(facts.get("start_seconds"))]
    return tag(
        "header",
        tag("p", " · ".join(str(one) for one in where if one and one != "–"), class_="where"),
        tag("h1", words("title", run=subject.recording.path.name)),
        _simulated(subject),
        tag(
            "div",
            tag("p", tag("span", MARKS[outcome], aria_hidden="true"), " ", words(f"verdict_{outcome}"), class_="word"),
            tag("p", words(says)),
            tag(
                "ul",
                *(tag("li", badge(kind, words), f" {count}") for kind, count in counts.items() if count),
                class_="counts",
            ),
            class_=f"verdict {outcome}",
            id="verdict",
        ),
        *_reservations(subject),
    )


def badge(outcome: str, words: Words) -> Markup:
    """An outcome as sign and word."""
    kind = outcome if outcome in MARKS else "inconclusive"
    return tag(
        "span", tag("span", MARKS[kind], aria_hidden="true"), f" {words.get(outcome, outcome)}", class_=f"badge {kind}"
    )


def findings(subject: Subject) -> Markup:
    """What was found, the worst first; what passed is folded away."""
    return findings_section(subject.findings, subject.warnings, subject.words)


def findings_section(found: Sequence[Mapping[str, Any]], remarks: Iterable[str], words: Words) -> Markup:
    """The same of findings as plain data (``finding_as_json``), with remarks on the whole."""
    parts: list[Markup] = []
    for outcome in ("failed", "inconclusive", "blocked"):
        bad = [one for one in found if one.get("outcome") == outcome]
        parts += [_cause(group, words) for group in of_one_cause(bad)]
    notes = [
        tag("li", tag("b", f"{one['check']}[{one['subject']}]"), f": {text}")
        for one in found
        for text in one.get("warnings") or ()
    ]
    notes += [tag("li", text) for text in remarks]
    if notes:
        parts.append(tag("section", tag("h3", words("notes")), tag("ul", *notes), class_="notes"))
    for outcome, key in (("passed", "passed_checks"), ("skipped", "skipped_checks")):
        rest = [one for one in found if one.get("outcome") == outcome]
        if rest:
            parts.append(
                tag(
                    "details",
                    tag("summary", words(key, count=len(rest))),
                    tag("ul", *(tag("li", _name(one), ": ", str(one["seen"])) for one in rest), class_="plain"),
                )
            )
    return tag("section", *parts, id="findings")


def _simulated(subject: Subject) -> Markup | None:
    if not subject.simulated:
        return None
    words, scale = subject.words, subject.time_scale
    scaled = "" if scale == 1 else f" {words('scaled_says', scale=f'{scale:g}')}"
    return tag("p", tag("strong", words("simulated")), f" {words('simulated_says')}{scaled}", class_="banner")


def _reservations(subject: Subject) -> Iterator[Markup]:
    words, recording = subject.words, subject.recording
    if recording.changed:
        shown = recording.changed[:_MOST_CHANGED]
        more = len(recording.changed) - len(shown)
        items = [tag("li", text) for text in shown] + ([tag("li", words("and_more", count=more))] if more else [])
        yield tag("div", words("changed_says"), tag("ul", *items), class_="banner bad")
    why = str(recording.facts.get("ended_because") or "").removeprefix(ENDED_BY_PLAN).lstrip("; ")
    if recording.state == "cut off" or why:
        said = words("cut_short_because", why=why) if why else words("cut_short_says")
        yield tag("p", said, class_="banner")
    if subject.judged_now and recording.facts:
        yield tag("p", words("judged_now"), class_="banner")


def _cause(group: Sequence[Mapping[str, Any]], words: Words) -> Markup:
    """Findings of one cause: what was seen of each, and the cause and what to try once; of many, the cause first."""
    outcome, first = str(group[0]["outcome"]), group[0]
    seen = [
        joined(tag("p", *_listed(same), class_="names"), tag("p", str(same[0]["seen"]), class_="seen"))
        for same in saying_the_same(group)
    ]
    shown: list[Markup] = seen
    if len(seen) > _MOST_SEEN:
        rest = seen[_MOST_SEEN:]
        shown = [*seen[:_MOST_SEEN], tag("details", tag("summary", words("and_more", count=len(rest))), *rest)]
    remedy = [
        tag("p", tag("b", f"{words(key)}: "), str(first[name]))
        for key, name in (("likely", "likely"), ("try", "advice"))
        if first.get(name)
    ]
    parts = [*remedy, *shown] if len(seen) > 2 else [*shown, *remedy]
    return tag("article", badge(outcome, words), *parts, class_=f"finding {outcome}")


def _listed(same: Sequence[Mapping[str, Any]]) -> Iterator[Markup]:
    for index, one in enumerate(same):
        if index:
            yield Markup(", ")
        yield _name(one)


def _name(one: Mapping[str, Any]) -> Markup:
    return tag("code", f"{one['check']}[{one['subject']}]")
