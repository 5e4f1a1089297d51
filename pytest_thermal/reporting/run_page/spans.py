"""Stretches of time that curves alone do not show: a device that slowed itself down, readings that are missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis import ThrottleKind, kind_of
from pytest_thermal.analysis.throttling import MOST_TICKS
from pytest_thermal.findings.devices import throttle_reasons
from pytest_thermal.model import Unit
from pytest_thermal.model.series import BoolArray, FloatArray, Series
from pytest_thermal.recording import MissingStretch, Recording

HOLE_TICKS = 1.75
"""Two rows further apart than this many periods have a lost one between them; a reading may be late by less."""
MOST_SPANS = 400
"""Of one sensor or device; where there are more, the nearest are drawn as one."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of time, in the recording's seconds."""

    start_seconds: float
    end_seconds: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """What is missing of one sensor."""

    sensor_id: str
    readings: int
    due: int
    """Readings that there would be without a gap; as many as there are where that is not known."""
    spans: tuple[Span, ...]
    longest: Span | None
    reasons: Mapping[str, int]
    """Reason → number of spans."""
    detail: str
    """What was seen when the first one went missing; may be empty."""


def throttled(recording: Recording) -> dict[str, dict[ThrottleKind, tuple[Span, ...]]]:
    """When each device slowed itself down, by what it was about; devices that never did are left out."""
    found: dict[str, dict[ThrottleKind, tuple[Span, ...]]] = {}
    for device in dict.fromkeys(series.sensor.device for series in recording.series.values()):
        by_kind: dict[ThrottleKind, list[Span]] = {}
        for reason, series in throttle_reasons(device, recording.series).items():
            kind = kind_of(reason)
            if kind is not ThrottleKind.OTHER:
                by_kind.setdefault(kind, []).extend(_active(series, reason))
        spans = {kind: fewer(spans) for kind, spans in by_kind.items() if spans}
        if spans:
            found[device] = spans
    return found


def gaps(recording: Recording) -> list[Gaps]:
    """What is missing of each sensor of which anything is, in the recording's order."""
    told: dict[str, list[MissingStretch]] = {}
    for stretch in sorted(recording.missing, key=lambda one: one.time_seconds):
        told.setdefault(stretch.sensor_id, []).append(stretch)
    end = recording.end_seconds
    found = []
    for name, series in recording.series.items():
        spans = _missing(series, told.get(name, []), end)
        if spans:
            found.append(_gaps(series, spans, told.get(name, [])))
    return found


def fewer(spans: Iterable[Span], most: int = MOST_SPANS) -> tuple[Span, ...]:
    """In order of time, those that touch as one, and where there are too many, those that are nearest to each other."""
    merged = _merged(sorted(spans, key=lambda span: span.start_seconds), 0.001)
    distance = 0.001
    while len(merged) > most:
        breaks = sorted(later.start_seconds - earlier.end_seconds for earlier, later in itertools.pairwise(merged))
        distance = max(2 * distance, breaks[len(merged) - most - 1])
        merged = _merged(merged, distance)
    return tuple(merged)


def _merged(spans: Sequence[Span], distance_seconds: float) -> list[Span]:
    merged: list[Span] = []
    for span in spans:
        last = merged[-1] if merged else None
        if last is not None and span.start_seconds - last.end_seconds <= distance_seconds:
            why = last.why if span.why in last.why.split(", ") else f"{last.why}, {span.why}"
            merged[-1] = Span(
                start_seconds=last.start_seconds, end_seconds=max(last.end_seconds, span.end_seconds), why=why
            )
        else:
            merged.append(span)
    return merged


def _active(series: Series, reason: str) -> list[Span]:
    times, values = series.readings()
    if times.size < 2:
        return []
    if series.sensor.unit is Unit.MILLISECONDS:
        grown = np.diff(values)
        active = (grown > 0) | ((grown < 0) & (values[1:] > 0))
        starts, ends = times[:-1], times[1:]
    else:
        active = values > 0
        starts = times
        period = series.period_seconds
        ends = np.minimum(np.append(times[1:], times[-1] + period), starts + MOST_TICKS * period)
    return [
        Span(start_seconds=float(starts[first]), end_seconds=float(ends[last]), why=reason)
        for first, last in _runs(active)
    ]


def _missing(series: Series, told: Sequence[MissingStretch], end_seconds: float | None) -> list[Span]:
    times, values, period = series.time_seconds, series.values, series.period_seconds
    pieces: list[tuple[float, float]] = []
    for first, last in _runs(np.isnan(values)):
        end = float(times[last + 1]) if last + 1 < times.size else float(times[last]) + period
        pieces.append((float(times[first]), end))
    holes = np.flatnonzero(np.diff(times) > HOLE_TICKS * period)
    pieces += [(float(times[hole]) + period, float(times[hole + 1])) for hole in holes]
    if times.size and end_seconds is not None and end_seconds - float(times[-1]) > HOLE_TICKS * period:
        pieces.append((float(times[-1]) + period, end_seconds))
    at = np.array([stretch.time_seconds for stretch in told])
    spans = []
    for start, end in sorted(pieces):
        index = int(np.searchsorted(at, start + 0.0005, side="right")) - 1
        # A reason holds from its time on until a value comes: one from before the last value says nothing of this gap.
        why = str(told[index].reason) if index >= 0 and not _value_between(times, values, at[index], start) else ""
        spans.append(Span(start_seconds=start, end_seconds=end, why=why))
    return spans


def _value_between(times: FloatArray, values: FloatArray, start: float, end: float) -> bool:
    low, high = np.searchsorted(times, (start - 0.0005, end - 0.0005))
    return bool(np.isfinite(values[low:high]).any())


def _gaps(series: Series, spans: Sequence[Span], told: Sequence[MissingStretch]) -> Gaps:
    reasons: dict[str, int] = {}
    for span in spans:
        reasons[span.why] = reasons.get(span.why, 0) + 1
    readings = int(np.count_nonzero(series.present))
    lost = sum(max(1, round((span.end_seconds - span.start_seconds) / series.period_seconds)) for span in spans)
    return Gaps(
        sensor_id=series.sensor.id,
        readings=readings,
        due=readings + lost,
        spans=fewer(spans),
        longest=max(spans, key=lambda span: span.end_seconds - span.start_seconds),
        reasons=reasons,
        detail=next((stretch.detail for stretch in told if stretch.detail), ""),
    )


def _runs(flags: BoolArray) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.diff(np.concatenate(([False], flags, [False])).astype(np.int8))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))
