"""The whole page: one HTML text that loads nothing, from one judged run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_thermal import __version__
from pytest_thermal.reporting.run_page import palette
from pytest_thermal.reporting.run_page.curves import Curves, curves_of, frame
from pytest_thermal.reporting.run_page.markup import Markup, joined, json_script, tag
from pytest_thermal.reporting.run_page.overview import overviews
from pytest_thermal.reporting.run_page.sections.figures import figures
from pytest_thermal.reporting.run_page.sections.requests import requests
from pytest_thermal.reporting.run_page.sections.run_facts import run_facts
from pytest_thermal.reporting.run_page.sections.sampling import sampling
from pytest_thermal.reporting.run_page.sections.verdict import findings, verdict
from pytest_thermal.reporting.run_page.shell import asset, whole_page
from pytest_thermal.reporting.run_page.spans import gaps, throttled
from pytest_thermal.reporting.run_page.subject import Subject

_SCRIPT_WORDS = (
    "zoom_all", "zoom_in", "zoom_out", "earlier", "later", "devices_all", "devices_none", "device_itself",
    "no_inflate", "more_curves", "chart_timeline", "row_thermal", "row_power", "row_either", "row_missing",
)  # fmt: skip


def page_html(subject: Subject, *, redact: Callable[[str], str] = str) -> str:
    """The page as HTML text.

    Args:
        subject: What it is about.
        redact: Takes keys out of text. Everything but packed values and the page's own scripts goes through it.
    """
    words, recording = subject.words, subject.recording
    missing, slowed = gaps(recording), throttled(recording)
    curves = curves_of(recording, threshold=subject.threshold, time_scale=subject.time_scale, words=words)
    data = {
        **frame(recording, time_scale=subject.time_scale, throttled=slowed, missing=missing, words=words),
        "thinned": curves.step_seconds,
        "charts": curves.charts,
        "bases": curves.bases,
        "words": words.some(*_SCRIPT_WORDS),
        "dashes": palette.DASHES,
        "colours": len(palette.LIGHT),
    }
    main = tag(
        "main",
        verdict(subject),
        findings(subject),
        run_facts(subject),
        _curves(subject, curves),
        figures(subject),
        sampling(subject, missing),
        requests(subject),
        _sign_off(subject),
        tag("footer", words("made_by", version=__version__, run=recording.path.name)),
    )
    # What is data is redacted before it is written as JSON, whose escapes a key would hide behind.
    told = redact(main) + json_script(_redacted(data, redact), id_="page-data")
    return _document(subject, told, curves, title=redact(words("title", run=recording.path.name)))


def _document(subject: Subject, told: str, curves: Curves, *, title: str) -> str:
    packed = "".join(f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in curves.packed.items())
    return whole_page(
        told + packed,
        title=title,
        language=subject.words.language,
        styles=[asset("uplot.min.css"), palette.style_sheet(), asset("page.css")],
        scripts=[asset("uplot.min.js"), asset("page.js")] if curves.charts else [],
        # The library's licence goes where the library goes.
        remark=f"uPlot, which draws the curves:\n{asset('uplot-license.txt')}",
    )


def _redacted(data: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(data, str):
        return redact(data)
    if isinstance(data, dict):
        return {redact(name): _redacted(value, redact) for name, value in data.items()}
    return [_redacted(value, redact) for value in data] if isinstance(data, (list, tuple)) else data


def _curves(subject: Subject, curves: Curves) -> Markup:
    words = subject.words
    if not curves.charts:
        return tag("section", tag("h2", words("curves")), tag("p", words("no_curves")), id="curves")
    step = curves.step_seconds
    drawn = words("drawn_all") if step is None else words("drawn_thinned", seconds=f"{step:g}")
    stills = overviews(subject.recording, threshold=subject.threshold)
    hints: list[Any] = [tag("p", words("zoom_hint"), class_="hint scripted"), tag("p", drawn, class_="hint")]
    legend = tag(
        "p",
        tag("span", class_="mark hot"), f" {words('ribbon_throttle')}; ",
        tag("span", class_="mark gone"), f" {words('ribbon_missing')}; {words('dotted_marks')}",
        class_="hint scripted",
    )  # fmt: skip
    return tag(
        "section",
        tag("h2", words("curves")),
        tag("p", words("no_script"), class_="banner unscripted"),
        *hints,
        legend,
        tag("div", id="controls", class_="controls scripted"),
        *(
            tag(
                "figure",
                tag("figcaption", _caption(chart)),
                stills.get(chart["id"]),
                id=f"chart-{chart['id']}",
                class_="chart" if chart["id"] in stills else "chart scripted",
            )
            for chart in curves.charts
            if chart["open"]
        ),
        tag("figure", tag("figcaption", words("chart_timeline")), id="chart-timeline", class_="chart scripted"),
        tag(
            "details",
            tag("summary", words("more_curves")),
            *(
                tag("figure", tag("figcaption", _caption(chart)), id=f"chart-{chart['id']}", class_="chart")
                for chart in curves.charts
                if not chart["open"]
            ),
            id="more-curves",
            class_="scripted",
        )
        if any(not chart["open"] for chart in curves.charts)
        else None,
        id="curves",
    )


def _caption(chart: dict[str, Any]) -> Markup:
    unit = f" ({chart['unit']})" if chart["unit"] else ""
    note = tag("small", f" {chart['note']}") if chart.get("note") else None
    return joined(chart["title"], unit, note)


def _sign_off(subject: Subject) -> Markup:
    words = subject.words
    fields = [tag("div", tag("span", words(key)), class_="line") for key in ("name", "date", "signature")]
    return tag(
        "section",
        tag("h2", words("sign")),
        tag("p", words("sign_says", choice=words("sign_choice"))),
        tag("div", *fields, class_="lines"),
        id="sign",
    )
