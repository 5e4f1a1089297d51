"""All curves of a run as data for the page's script: charts, what they share, and packed values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_thermal.analysis import ThrottleKind
from pytest_thermal.findings import Limit
from pytest_thermal.findings.subjects import in_order
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.series import FloatArray, Series
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.run_page.kinds import (
    DRAWN_PER_UNIT,
    TEMPERATURE,
    Kind,
    by_kind,
    is_main_part,
    part_of,
)
from pytest_thermal.reporting.run_page.packing import pack_times, pack_values
from pytest_thermal.reporting.run_page.spans import HOLE_TICKS, Gaps, Span
from pytest_thermal.reporting.run_page.thinning import least_and_most, next_step, step_for, with_breaks
from pytest_thermal.reporting.run_page.traffic import MOST_STRETCHES, traffic
from pytest_thermal.reporting.run_page.words import Words

MOST_POINTS = 3_000_000
"""Up to so many readings each is drawn (16 cards for 24 h at 5 s are 2.5 million); above, least and most of stretches
of time."""
MOST_CHARACTERS = 4_200_000
"""Of packed values in one page: with all else it stays below 5 MB."""
TOLD_EVENTS = ("critical", "warning", "broken")
Threshold = Callable[[Sensor], Limit | None]
_TRAFFIC_STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600)


@dataclass(kw_only=True)
class Curves:
    """What the script draws."""

    charts: list[dict[str, Any]] = field(default_factory=list)
    bases: list[dict[str, Any]] = field(default_factory=list)
    """Times that several curves share."""
    packed: dict[str, str] = field(default_factory=dict)
    """Values and times by the id that charts and bases name them by."""
    step_seconds: float | None = None
    """Length of the stretches whose least and most are drawn; None where every reading is."""

    @property
    def characters(self) -> int:
        """Of packed values."""
        return sum(map(len, self.packed.values()))


def curves_of(recording: Recording, *, threshold: Threshold, time_scale: float, words: Words) -> Curves:
    """Every sensor that has a curve, and the requests.

    Every reading where they are at most ``MOST_POINTS``; else the least and the most of each stretch of time, short
    enough to see and long enough for the page to stay below ``MOST_CHARACTERS``.
    """
    start, duration = extent(recording)
    kinds = by_kind(in_order(series.sensor for series in recording.series.values()))
    drawn = [recording.series[sensor.id] for sensors in kinds.values() for sensor in sensors]
    points = sum(len(series) for series in drawn)
    step = None if points <= MOST_POINTS else step_for(duration, len(drawn), MOST_POINTS)
    while True:
        found = _curves(recording, kinds, threshold=threshold, step=step, words=words, start=start, duration=duration)
        if found.characters <= MOST_CHARACTERS:
            break
        step = next_step(step or 2 * max(series.period_seconds for series in drawn))
    _add_traffic(found, recording, start=start, duration=duration, time_scale=time_scale, words=words)
    return found


def extent(recording: Recording) -> tuple[float, float]:
    """When the time axis begins (the recording's seconds) and how long it is."""
    starts = [recording.start_seconds, *(phase.start_seconds for phase in recording.phases)]
    ends = [recording.end_seconds, *(phase.end_seconds for phase in recording.phases)]
    start = min((one for one in starts if one is not None), default=0.0)
    end = max((one for one in ends if one is not None), default=start)
    return start, max(end - start, 1.0)


def span_data(spans: tuple[Span, ...], start_seconds: float) -> list[list[Any]]:
    """Spans as the script takes them: begin, end, why."""
    return [
        [round(span.start_seconds - start_seconds, 3), round(span.end_seconds - start_seconds, 3), span.why]
        for span in spans
    ]


def frame(
    recording: Recording,
    *,
    time_scale: float,
    throttled: Mapping[str, Mapping[ThrottleKind, tuple[Span, ...]]],
    missing: list[Gaps],
    words: Words,
) -> dict[str, Any]:
    """What all charts share: the time axis, phases, devices, ribbons, marks."""
    start, duration = extent(recording)
    devices = list(dict.fromkeys(sensor.device for sensor in in_order(one.sensor for one in recording.series.values())))
    return {
        "start": round(start, 3) if recording.absolute_time else None,
        "scale": time_scale,
        "duration": round(duration, 3),
        "phases": [
            {
                "name": phase.name,
                "label": words(f"phase_{phase.name}"),
                "start": round(phase.start_seconds - start, 3),
                "end": round(phase.end_seconds - start, 3),
            }
            for phase in recording.phases
        ],
        "devices": devices,
        "throttling": [
            {"device": device, "kind": kind.name.lower(), "spans": span_data(spans, start)}
            for device, kinds in throttled.items()
            for kind, spans in kinds.items()
        ],
        "missing": {one.sensor_id: span_data(one.spans, start) for one in missing},
        "marks": [
            {"time": round(event.time_seconds - start, 3), "text": event_words(event.detail, words) or event.kind}
            for event in recording.events
            if event.kind in TOLD_EVENTS or event.detail.get("what") == "lost"
        ][:200],
    }


def event_words(detail: Mapping[str, Any], words: Words) -> str:
    """What happened, in the words of whoever noted it."""
    if detail.get("text"):
        text = detail["text"]
        return words.told(text) if isinstance(text, str) else str(text)
    said = [str(detail[name]) for name in ("name", "what", "load", "tool", "because", "detail") if detail.get(name)]
    return ", ".join(said)


# ------------------------------------------------------------------------------------------------------------ sensors


def _curves(
    recording: Recording,
    kinds: Mapping[Kind, list[Sensor]],
    *,
    threshold: Threshold,
    step: float | None,
    words: Words,
    start: float,
    duration: float,
) -> Curves:
    found = Curves(step_seconds=step)
    count = 0 if step is None else math.ceil(duration / step) + 1
    if step is not None:
        found.bases.append({"first": step / 4, "step": step / 2, "count": 2 * count})
    shared: dict[bytes, int] = {}
    for kind, sensors in kinds.items():
        chart: dict[str, Any] = {
            "id": kind.id,
            "title": words(f"chart_{kind.id}"),
            "unit": kind.unit,
            "decimals": kind.decimals,
            "zero": kind.from_zero,
            "open": kind.main,
            "ribbons": kind is TEMPERATURE or kind.id == "clock",
            "limits": _limit_lines(sensors, threshold) if kind is TEMPERATURE else [],
            "series": [],
        }
        for sensor in sensors:
            series = recording.series[sensor.id]
            values = series.values * DRAWN_PER_UNIT.get(sensor.unit, 1.0)
            if step is None:
                base, values = _full(found, shared, series, values, start)
            else:
                base = 0
                values = least_and_most(series.time_seconds - start, values, step_seconds=step, count=count)
            chart["series"].append(_curve(found, sensor, kind, base, values))
        found.charts.append(chart)
    return found


def _full(
    found: Curves, shared: dict[bytes, int], series: Series, values: FloatArray, start: float
) -> tuple[int, FloatArray]:
    """Times and values with a break in each hole; series of one source share their times."""
    times, values = with_breaks(series.time_seconds - start, values, most_seconds=HOLE_TICKS * series.period_seconds)
    key = times.tobytes()
    if key not in shared:
        shared[key] = len(found.bases)
        name = f"t{len(found.bases)}"
        found.packed[name] = pack_times(times)
        found.bases.append({"packed": name, "count": int(times.size)})
    return shared[key], values


def _curve(found: Curves, sensor: Sensor, kind: Kind, base: int, values: FloatArray) -> dict[str, Any]:
    packed = pack_values(values, finest=kind.finest)
    name = f"v{len(found.packed)}"
    found.packed[name] = packed.text
    return {
        "sensor": sensor.id,
        "device": sensor.device,
        "part": part_of(sensor),
        "main": is_main_part(sensor),
        "base": base,
        "packed": name,
        "offset": packed.offset,
        "step": packed.step,
    }


def _limit_lines(sensors: list[Sensor], threshold: Threshold) -> list[dict[str, Any]]:
    """Thresholds of the sensors in one chart: one line each value, with the devices it holds for."""
    devices: dict[tuple[float, str], list[str]] = {}
    for sensor in sensors:
        limit = threshold(sensor)
        if limit is not None and sensor.unit is Unit.CELSIUS:
            devices.setdefault((limit.value, limit.text), []).append(sensor.device)
    return [
        {"value": value, "text": text, "devices": list(dict.fromkeys(of))}
        for (value, text), of in sorted(devices.items())
    ]


# ----------------------------------------------------------------------------------------------------------- requests


def _add_traffic(
    found: Curves, recording: Recording, *, start: float, duration: float, time_scale: float, words: Words
) -> None:
    if recording.requests is None or not len(recording.requests):
        return
    step = next(
        (one for one in _TRAFFIC_STEPS if one * MOST_STRETCHES >= duration), math.ceil(duration / MOST_STRETCHES)
    )
    made = traffic(
        recording.requests,
        start_seconds=start,
        duration_seconds=duration,
        step_seconds=float(step),
        time_scale=time_scale,
    )
    base = len(found.bases)
    found.bases.append({"first": made.first_seconds, "step": made.step_seconds, "count": made.answered_per_second.size})
    rates = {"answered": made.answered_per_second, "failed": made.failed_per_second}
    times = {
        "latency_p50": made.latency_p50_seconds,
        "latency_p99": made.latency_p99_seconds,
        "ttft_p50": made.ttft_p50_seconds,
        "ttft_p99": made.ttft_p99_seconds,
    }
    tokens = {"tokens": made.tokens_per_second} if made.tokens_per_second.any() else {}
    for name, unit, series, finest in (
        ("requests", "1/s", rates, 0.001),
        ("latency", "s", times, 0.0001),
        ("tokens", "1/s", tokens, 0.1),
    ):
        if series:
            chart = _traffic_chart(found, name, unit=unit, series=series, finest=finest, base=base, words=words)
            found.charts.append({**chart, "note": words("per_stretch", seconds=f"{made.step_seconds:g}")})


def _traffic_chart(
    found: Curves,
    name: str,
    *,
    unit: str,
    series: Mapping[str, FloatArray],
    finest: float,
    base: int,
    words: Words,
) -> dict[str, Any]:
    curves = []
    for key, values in series.items():
        if np.isnan(values).all():
            continue
        packed = pack_values(values, finest=finest)
        place = f"v{len(found.packed)}"
        found.packed[place] = packed.text
        curves.append(
            {
                "sensor": words(f"requests_{key}"),
                "device": None,
                "part": "",
                "main": not key.endswith("p99"),
                "base": base,
                "packed": place,
                "offset": packed.offset,
                "step": packed.step,
                "bad": key == "failed",
            }
        )
    return {
        "id": name,
        "title": words(f"chart_{name}"),
        "unit": unit,
        "decimals": {"latency": 3, "requests": 2}.get(name, 0),
        "zero": True,
        "open": True,
        "ribbons": False,
        "limits": [],
        "series": curves,
    }
