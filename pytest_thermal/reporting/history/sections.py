"""What the page says of one bench: how its newest run stands, charts, runs, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_thermal.model import Sensor
from pytest_thermal.model.said import say
from pytest_thermal.reporting.history.archive import LeftOut, RunEntry
from pytest_thermal.reporting.history.panels import (
    RESISTANCE,
    RISE,
    Link,
    Quantity,
    name_of,
    panels,
    quarter_of,
    written,
)
from pytest_thermal.reporting.history.story import DEFAULT_LIMIT_CELSIUS, BenchHistory, Change
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import number, utc
from pytest_thermal.reporting.run_page.sections.verdict import badge
from pytest_thermal.reporting.run_page.tables import table
from pytest_thermal.reporting.run_page.words import Words

_BY = {"rise": say("rise"), "resistance": say("resistance")}
"""By which figure two runs were compared."""
MOST_RUNS = 40
"""Drawn, and in the table of figures: twelve quarters of three runs each, and more than a chart has room for. The
table of runs holds all."""


def bench_section(story: BenchHistory, *, link: Link, words: Words) -> Markup:
    """Everything of one bench."""
    runs = story.runs[-MOST_RUNS:]
    return joined(
        _simulated(story, words),
        _newest(story, words),
        *_creep(story, words),
        _charts(story, runs, link=link, words=words),
        _changes(story, words),
        _runs(story, link=link, words=words),
        _figures(story, runs, link=link, words=words),
    )


def left_out(them: Sequence[LeftOut], words: Words) -> Markup | None:
    """What of the archive could not be read, and why."""
    if not them:
        return None
    return tag(
        "section",
        tag("h2", words("left_out", count=len(them))),
        tag("p", words("left_out_says"), class_="hint"),
        table(
            [words("directory"), words("why")],
            [[tag("code", one.name), tag("td", words.told(one.why), class_="why")] for one in them],
        ),
        id="left-out",
    )


# ---------------------------------------------------------------------------------------------------------------------


def _simulated(story: BenchHistory, words: Words) -> Markup | None:
    if not story.simulated:
        return None
    return tag(
        "p", tag("span", words("simulated"), class_="simulated"), f" {words('simulated_history_says')}", class_="banner"
    )


def _newest(story: BenchHistory, words: Words) -> Markup:
    """How the newest run stands against the one that it was compared with, in a sentence."""
    run = story.newest
    if not run.points:
        return tag("p", words("no_figures_yet"), class_="banner")
    before = story.earlier_of(run)
    found = sorted(_all_changes(story, run, before), key=lambda one: -one[1].celsius)
    told = [sensor for sensor, _ in found if run.points[sensor.id].drift_outcome == "failed"]
    if not run.against:
        said = words("newest_says_alone", why=words.told(run.against_why) or words("no_reason_told"))
    elif before is None:
        said = words("newest_says_gone", run=run.against)
    elif not found:
        said = words("newest_says_unknown", run=run.against)
    else:
        sensor, change = next(((one, own) for one, own in found if one in told), found[0])
        said = words(
            "newest_says_failed" if told else "newest_says_good",
            sensor=name_of(sensor),
            celsius=number(change.celsius, 1, sign=not told),
            run=run.against,
            limit=_limit(run),
        )
    outcome = run.verdict or "inconclusive"
    return tag(
        "div",
        tag("p", f"{words('newest_run')}: {run.name} ", badge(outcome, words)),
        tag("p", said),
        class_=f"verdict {'failed' if told else outcome}",
    )


def _creep(story: BenchHistory, words: Words) -> Iterator[Markup]:
    for sensor, change, first in story.creeping():
        yield tag(
            "p",
            words(
                "creep",
                sensor=name_of(sensor),
                celsius=number(change.celsius, 1),
                run=first.name,
                limit=_limit(story.newest),
            ),
            class_="banner bad",
        )


def _charts(story: BenchHistory, runs: Sequence[RunEntry], *, link: Link, words: Words) -> Markup:
    newest = story.newest
    hint = words("panels_hint", limit=_limit(newest), origin=newest.limit_origin or "default")
    parts: list[Markup] = [tag("p", hint, class_="hint")]
    if len(story.runs) > len(runs):
        parts.append(tag("p", words("older_runs", count=len(story.runs) - len(runs)), class_="hint"))
    for quantity in (RISE, RESISTANCE):
        drawn = panels(story, runs, quantity, link=link, words=words)
        parts.append(tag("h3", words(f"panels_{quantity.id}")))
        none = "no_figures_yet" if quantity is RISE else "no_resistance"
        parts.append(tag("div", *drawn, class_="panels") if drawn else tag("p", words(none)))
    return joined(*parts)


def _changes(story: BenchHistory, words: Words) -> Markup | None:
    run = story.newest
    before = story.earlier_of(run)
    rows: list[tuple[float, list[object]]] = []
    firsts = {first.name for sensor in story.sensors if (first := story.first_with(sensor.id)) is not None}
    for sensor in story.sensors:
        point = run.points.get(sensor.id)
        if point is None:
            continue
        change = story.change(run, before, sensor.id)
        first = story.first_with(sensor.id)
        whole = story.change(run, first, sensor.id)
        line = story.line(run, sensor.id)
        rows.append(
            (
                -(change.celsius if change is not None else -1e9),
                [
                    tag("code", name_of(sensor)),
                    _value(point.rise_celsius, RISE, words.told(point.why)),
                    _value(point.resistance, RESISTANCE, "" if point.resistance is not None else words.told(point.why)),
                    _change(change, point.drift_outcome),
                    words.told(_BY.get(change.by, change.by)) if change is not None else "–",
                    written(line.rise_celsius, RISE) if line is not None and line.rise_celsius is not None else "–",
                    joined(number(whole.celsius, 1, sign=True), _origin(first.name) if len(firsts) > 1 else None)
                    if whole is not None and first is not None
                    else "–",
                ],
            )
        )
    if not rows:
        return None
    compared = run.against or words("none")
    head = [
        words("sensor"), words("rise_now"), words("resistance"), joined(words("change"), _origin(compared)),
        words("by"), words("fails_at"), joined(words("since_first"), _origin(*firsts) if len(firsts) == 1 else None),
    ]  # fmt: skip
    body = [row for _, row in sorted(rows, key=lambda one: one[0])]
    return joined(tag("h3", words("changes")), table(head, body))


def _runs(story: BenchHistory, *, link: Link, words: Words) -> Markup:
    """Every run, the newest first: what it is worth, and why it is no part of the curves where it is not."""
    rows: list[list[object]] = []
    for run in reversed(story.runs):
        target = link(run)
        named: object = tag("code", run.name)
        if target is not None:
            named = tag("a", named, href=target)
        if run.why_no_figures:
            comparable: object = tag("td", f"– {words.told(run.why_no_figures)}", class_="why inconclusive")
        elif run is story.newest:
            comparable = words("newest")
        else:
            why = story.why_not_comparable(run)
            comparable = tag("td", _in_a_row(why, words), class_="why inconclusive") if why else words("yes")
        mark = tag("div", words("simulated"), class_="simulated") if run.simulated else None
        against = run.against or (run.against_why if run.points else "") or "–"
        rows.append(
            [
                joined(named, mark),
                joined(quarter_of(run, words), tag("div", utc(run.start_seconds), class_="limit")),
                badge(run.verdict, words) if run.verdict else "–",
                comparable,
                tag("td", against, class_="why"),
            ]
        )
    head = [words("run"), words("started"), words("verdict"), words("comparable"), words("compared_with")]
    return joined(tag("h3", words("runs_table")), table(head, rows))


def _figures(story: BenchHistory, runs: Sequence[RunEntry], *, link: Link, words: Words) -> Markup | None:
    """All that the charts draw, as numbers."""
    shown = [run for run in runs if run.points]
    if not shown:
        return None
    parts: list[Markup] = []
    for quantity in (RISE, RESISTANCE):
        rows = [
            [tag("code", name_of(sensor)), *(_matrix_cell(story, run, sensor, quantity, words) for run in shown)]
            for sensor in story.sensors
            if any(quantity.id in point.figures for run in shown if (point := run.points.get(sensor.id)))
        ]
        if rows:
            head = [words("sensor"), *(_column(run, link, words) for run in shown)]
            parts += [tag("h3", words(f"panels_{quantity.id}")), tag("div", table(head, rows), class_="matrix")]
    return tag("details", tag("summary", words("figures_of_sensors")), *parts)


def _column(run: RunEntry, link: Link, words: Words) -> Markup:
    day, target = utc(run.start_seconds)[:10], link(run)
    said = day if target is None else tag("a", day, href=target)
    return joined(said, tag("div", quarter_of(run, words), class_="limit"))


def _in_a_row(texts: Sequence[str], words: Words) -> str:
    return words.told.template("; ").join(map(words.told, texts))


def _matrix_cell(story: BenchHistory, run: RunEntry, sensor: Sensor, quantity: Quantity, words: Words) -> Markup:
    point = run.points.get(sensor.id)
    if point is None:
        return tag("td", "–")
    value = quantity.value(point)
    if value is None:
        return tag(
            "td", "?" if quantity.id in point.figures else "–", title=words.told(point.why), class_="inconclusive"
        )
    change = story.change(run, story.earlier_of(run), sensor.id) if quantity is RISE else None
    said = tag("div", number(change.celsius, 1, sign=True), class_="change") if change is not None else None
    failed = "failed" if point.drift_outcome == "failed" else None
    return tag("td", tag("span", f"{value:.{quantity.decimals}f}", class_="value"), said, class_=failed)


def _origin(run: str) -> Markup:
    return tag("div", run, class_="limit")


def _value(value: float | None, quantity: Quantity, why: str) -> Markup:
    if value is None:
        return tag("td", "–" if not why else "?", title=why or None, class_="inconclusive" if why else None)
    return tag("td", tag("span", f"{value:.{quantity.decimals}f}", class_="value"))


def _change(change: Change | None, outcome: str) -> Markup:
    if change is None:
        return tag("td", "–" if not outcome else "?", class_="inconclusive" if outcome == "inconclusive" else None)
    return tag(
        "td",
        tag("span", number(change.celsius, 1, sign=True), class_="value"),
        class_=outcome if outcome in ("failed", "inconclusive") else None,
    )


def _all_changes(story: BenchHistory, run: RunEntry, before: RunEntry | None) -> Iterator[tuple[Sensor, Change]]:
    for sensor in story.sensors:
        change = story.change(run, before, sensor.id)
        if change is not None:
            yield sensor, change


def _limit(run: RunEntry) -> str:
    return f"{run.limit_celsius if run.limit_celsius is not None else DEFAULT_LIMIT_CELSIUS:g}"
