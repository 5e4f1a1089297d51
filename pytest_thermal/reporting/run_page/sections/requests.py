"""The load's requests: how many, how long they took, which errors."""

from __future__ import annotations

import numpy as np

from pytest_thermal.model.phases import PHASES
from pytest_thermal.recording import Requests
from pytest_thermal.reporting.run_page.curves import extent
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import elapsed, number
from pytest_thermal.reporting.run_page.subject import Subject
from pytest_thermal.reporting.run_page.tables import table
from pytest_thermal.reporting.run_page.traffic import Tally, errors, tally

MOST_ERRORS = 50
_COLUMNS = ("total", "failed", "cut_off", "requests_latency_p50", "requests_latency_p99", "requests_ttft_p50",
            "requests_ttft_p99", "tokens")  # fmt: skip


def requests(subject: Subject) -> Markup:
    """By phase, and the errors with how often each came."""
    words, told = subject.words, subject.recording.requests
    if told is None or not len(told):
        return tag("section", tag("h2", words("requests")), tag("p", words("no_requests")), id="requests")
    there = told.phase.counts(np.ones(len(told), dtype=np.bool_))
    phases = [*(name for name in PHASES if name in there), *(name for name in there if name and name not in PHASES)]
    rows = [
        [words.get(f"phase_{name}", name), *_row(tally(told, time_scale=subject.time_scale, phase=name))]
        for name in phases
    ]
    rows.append([words("whole_run"), *_row(tally(told, time_scale=subject.time_scale))])
    return tag(
        "section",
        tag("h2", words("requests")),
        table([words("phase"), *(words(key) for key in _COLUMNS)], rows),
        _errors(subject, told),
        id="requests",
    )


def _row(counted: Tally) -> list[object]:
    return [
        f"{counted.total:,}",
        tag("td", f"{counted.failed:,}", class_="failed" if counted.failed else None),
        f"{counted.cut_off:,}",
        number(counted.latency_p50_seconds, 3, unit="s"),
        number(counted.latency_p99_seconds, 3, unit="s"),
        number(counted.ttft_p50_seconds, 3, unit="s"),
        number(counted.ttft_p99_seconds, 3, unit="s"),
        f"{counted.tokens:,.0f}",
    ]


def _errors(subject: Subject, told: Requests) -> Markup:
    words = subject.words
    found = errors(told)
    if not found:
        return tag("p", words("no_errors"))
    start, _ = extent(subject.recording)
    rows: list[list[object]] = [
        [text, f"{count:,}", elapsed(first - start)] for text, (count, first) in list(found.items())[:MOST_ERRORS]
    ]
    if len(found) > MOST_ERRORS:
        rows.append([words("and_more", count=len(found) - MOST_ERRORS)])
    return joined(
        tag("h3", words("errors")), table([words("error"), words("count"), words("first")], rows, id_="errors")
    )
