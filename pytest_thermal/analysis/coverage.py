"""How much of what should have been measured was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, FloatArray, Phase, Series

LEAST_COVERAGE = 0.95
MOST_GAP_TICKS = 5.0
LATENESS_TICKS = 0.5
"""A reading may come this much late without making the gap before it a tick longer."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What part of a phase a sensor covered."""

    coverage: Figure
    """Readings present ÷ readings due, as a ratio, at most 1."""
    longest_gap: Figure
    """The longest time without a reading, in seconds, up to the first and from the last one included."""
    complete: Answer
    """NO: below 95 % or a gap of more than five ticks; findings about the phase are inconclusive."""
    reason: str
    """What is missing, in words; empty when complete."""


def measure_coverage(series: Series, phase: Phase) -> Coverage:
    """Coverage and longest gap of one sensor in one phase.

    Due are duration ÷ nominal period readings, or as many as there are rows if that is more; present are those that
    are not NaN. A gap is the time between two present readings (1 tick when none is missing), at the phase's edges
    the time from and to the edge. Own definition: a figure from less than 95 % of the readings, or across a gap of
    more than five ticks, is not trusted.
    """
    part = series.during(phase)
    period = series.period_seconds
    due = max(round(phase.duration_seconds / period), len(part), 1)
    times, _ = part.readings()
    coverage = min(times.size / due, 1.0)
    gap, gap_start = _longest_gap(times, phase)
    ticks = gap / period
    problems = []
    if coverage < LEAST_COVERAGE:
        problems.append(
            say("{size} of {due} readings are there, {coverage:.1%}", size=times.size, due=due, coverage=coverage)
        )
    if ticks > MOST_GAP_TICKS + LATENESS_TICKS:
        problems.append(say("no reading for {gap:.0f} s, {ticks:.0f} ticks", gap=gap, ticks=ticks))
    return Coverage(
        coverage=Figure(
            name="coverage",
            value=coverage,
            unit="ratio",
            detail={"phase": phase.name, "present": int(times.size), "due": due},
        ),
        longest_gap=Figure(
            name="longest_gap",
            value=gap,
            unit="seconds",
            detail={"phase": phase.name, "ticks": round(ticks, 2), "start_seconds": gap_start},
        ),
        complete=Answer.NO if problems else Answer.YES,
        reason=joined("; ", problems),
    )


def _longest_gap(times: FloatArray, phase: Phase) -> tuple[float, float]:
    """Length and start of the longest time without a reading, in seconds."""
    if times.size == 0:
        return phase.duration_seconds, phase.start_seconds
    found = [
        (float(times[0]) - phase.start_seconds, phase.start_seconds),
        (phase.end_seconds - float(times[-1]), float(times[-1])),
    ]
    if times.size > 1:
        gaps = np.diff(times)
        longest = int(np.argmax(gaps))
        found.append((float(gaps[longest]), float(times[longest])))
    return max(found)
