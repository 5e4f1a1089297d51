"""Still overviews of the main charts as SVG: what shows without JavaScript, and until it has drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pytest_thermal.findings.subjects import in_order
from pytest_thermal.model.series import FloatArray, Phase, Series
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.run_page.curves import Threshold, extent
from pytest_thermal.reporting.run_page.kinds import Kind, by_kind, is_main_part, part_of
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import elapsed, round_values
from pytest_thermal.reporting.run_page.palette import colour_class
from pytest_thermal.reporting.run_page.thinning import least_and_most

STRETCHES = 220
_WIDTH, _HEIGHT = 960, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 8, 22
STILL = ("temperature", "power", "utilisation")


def overviews(recording: Recording, *, threshold: Threshold) -> dict[str, Markup]:
    """By the id of the chart that each stands in for, with its key; only curves that stand for a whole device."""
    sensors = in_order(series.sensor for series in recording.series.values())
    devices = list(dict.fromkeys(sensor.device for sensor in sensors))
    found = {}
    for kind, own in by_kind(sensors).items():
        if kind.id in STILL:
            main = [sensor for sensor in own if is_main_part(sensor)] or own
            shown = [recording.series[sensor.id] for sensor in main]
            limits = [limit.value for sensor in main if kind.id == "temperature" and (limit := threshold(sensor))]
            found[kind.id] = _svg(recording, kind, shown, sorted(set(limits)), devices)
    return found


def _svg(
    recording: Recording, kind: Kind, shown: Sequence[Series], limits: Sequence[float], devices: Sequence[str]
) -> Markup:
    start, duration = extent(recording)
    step = duration / STRETCHES
    curves = [
        (series, least_and_most(series.time_seconds - start, series.values, step_seconds=step, count=STRETCHES + 1))
        for series in shown
    ]
    known = np.concatenate([values for _, values in curves]) if curves else np.empty(0)
    known = np.append(known[~np.isnan(known)], [*limits, *([0.0] if kind.from_zero else [])])
    least, most = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = 0.05 * (most - least) or 1.0
    low, high = least - (0 if kind.from_zero and least >= 0 else room), most + room

    def x(seconds: float) -> float:
        return _LEFT + seconds / duration * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_band(phase, x, start) for phase in recording.phases]
    for value in round_values(low, high, about=4):
        text = tag("text", f"{value:g}", x=_LEFT - 5, y=f"{y(value) + 4:.1f}", text_anchor="end")
        parts += [_across(y(value), "grid"), text]
    for quarter in range(5):
        at = quarter / 4 * duration
        anchor = {0: "start", 4: "end"}.get(quarter, "middle")
        parts += [tag("text", elapsed(at), x=f"{x(at):.1f}", y=_HEIGHT - 6, text_anchor=anchor)]
    parts += [_across(y(limit), "most") for limit in limits]
    for series, values in curves:
        place = devices.index(series.sensor.device)
        path = "".join(_path(values, step, x, y))
        parts.append(tag("path", tag("title", series.sensor.id), class_=f"curve {colour_class(place)}", d=path))
    drawing = tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", class_="still")
    return joined(drawing, tag("div", *(_key(series, devices) for series in shown), class_="keys still"))


def _key(series: Series, devices: Sequence[str]) -> Markup:
    sensor = series.sensor
    swatch = tag("span", class_=f"swatch {colour_class(devices.index(sensor.device))}")
    return tag("span", swatch, " ".join(filter(None, [sensor.device, part_of(sensor)])), class_="key")


def _across(y: float, name: str) -> Markup:
    return tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_=name)


def _band(phase: Phase, x: Callable[[float], float], start_seconds: float) -> Markup:
    left, right = x(phase.start_seconds - start_seconds), x(phase.end_seconds - start_seconds)
    return tag(
        "rect",
        x=f"{left:.1f}",
        width=f"{max(right - left, 0.5):.1f}",
        y=_TOP,
        height=_HEIGHT - _TOP - _BOTTOM,
        class_=f"band {phase.name}",
    )


def _path(values: FloatArray, step_seconds: float, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """Lines through least and most; a stretch without a value breaks them."""
    commands, pen_up = [], True
    for index, value in enumerate(values):
        if np.isnan(value):
            pen_up = True
            continue
        commands.append(f"{'M' if pen_up else 'L'}{x((index + 0.5) * step_seconds / 2):.1f} {y(float(value)):.1f}")
        pen_up = False
    return "".join(commands)
