"""How good the sampling was: how late, how much was lost, what is missing and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_thermal.model.series import FloatArray
from pytest_thermal.recording import Timing
from pytest_thermal.reporting.run_page.curves import extent
from pytest_thermal.reporting.run_page.markup import Markup, tag
from pytest_thermal.reporting.run_page.numbers import elapsed, length, number
from pytest_thermal.reporting.run_page.spans import Gaps
from pytest_thermal.reporting.run_page.subject import Subject
from pytest_thermal.reporting.run_page.tables import table

MOST_ROWS = 400


def sampling(subject: Subject, gaps: Sequence[Gaps]) -> Markup:
    """Sources and their timing; then sensors of which something is missing."""
    words, recording = subject.words, subject.recording
    head = [words(key) for key in ("source", "period", "ticks", "lost", "late_p50", "late_p99", "late_most",
                                   "read_p99", "priority", "stopped")]  # fmt: skip
    rows = [_timing(subject, timing) for timing in recording.timing.values()]
    notes = recording.notes
    return tag(
        "section",
        tag("h2", words("sampling")),
        table(head, rows) if rows else tag("p", words("no_timing")),
        _missing(subject, gaps),
        tag(
            "details",
            tag("summary", words("reading_notes", count=len(notes))),
            tag("ul", *(tag("li", note) for note in notes[:MOST_ROWS])),
        )
        if notes
        else None,
        id="sampling",
    )


def _timing(subject: Subject, timing: Timing) -> list[object]:
    """Lateness as it really was, not stretched."""
    scale = subject.time_scale
    late, read = (array[~np.isnan(array)] / scale for array in (timing.lateness_ms, timing.read_ms))
    return [
        tag("code", timing.source),
        f"{timing.period_seconds / scale:g} s",
        f"{timing.time_seconds.size:,}",
        "–" if timing.missed is None else f"{timing.missed:,}",
        *(_ms(late, percent) for percent in (50, 99, 100)),
        _ms(read, 99),
        timing.priority,
        timing.reason,
    ]


def _ms(values: FloatArray, percent: float) -> str:
    return number(float(np.percentile(values, percent)), 1, unit="ms") if values.size else "–"


def _missing(subject: Subject, gaps: Sequence[Gaps]) -> Markup:
    words = subject.words
    start, _ = extent(subject.recording)
    rows: list[list[object]] = []
    for one in gaps[:MOST_ROWS]:
        longest = one.longest
        first = one.spans[0].start_seconds - start if one.spans else 0.0
        rows.append(
            [
                tag("code", one.sensor_id),
                f"{100 * one.readings / one.due:.2f} %" if one.due else "–",
                f"{sum(one.reasons.values()):,}",
                length(longest.end_seconds - longest.start_seconds) if longest else "–",
                elapsed(first),
                _why(subject, one),
            ]
        )
    rows += [[tag("code", name), "0 %", "–", "–", "–", words("never")] for name in _lost_sensors(subject)]
    if not rows:
        return tag("p", words("nothing_missing")) if subject.recording.series else tag("p", words("no_curves"))
    if len(gaps) > MOST_ROWS:
        rows.append([words("and_more", count=len(gaps) - MOST_ROWS)])
    head = [words(key) for key in ("sensor", "present", "gaps", "longest_gap", "first_gap", "why")]
    return table(head, rows, id_="missing")


def _why(subject: Subject, one: Gaps) -> str:
    words = subject.words
    told = ", ".join(f"{count} × {reason or words('no_reason')}" for reason, count in one.reasons.items())
    return f"{told}; {one.detail}" if one.detail else told


def _lost_sensors(subject: Subject) -> list[str]:
    """Sensors that the run declares and of which it has no column."""
    declared = subject.recording.facts.get("sensors")
    names = [str(one.get("id")) for one in (declared if isinstance(declared, list) else ()) if isinstance(one, dict)]
    return [name for name in dict.fromkeys(names) if name not in subject.recording.series]
