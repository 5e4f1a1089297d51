"""Small charts, one a device: a figure of each of its sensors over the runs, as SVG that needs no script."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Sensor
from pytest_thermal.reporting.history.archive import Point, RunEntry
from pytest_thermal.reporting.history.story import BenchHistory, Line
from pytest_thermal.reporting.run_page.kinds import is_main_part, part_of
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import round_values
from pytest_thermal.reporting.run_page.palette import colour_class
from pytest_thermal.reporting.run_page.words import Words

_WIDTH, _HEIGHT = 320, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 10, 34
_RADIUS = 3.4
_LABELS = 4
"""Quarters named below a chart: more of them would touch."""
Link = Callable[[RunEntry], str | None]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Which figure is drawn."""

    id: str
    decimals: int
    unit: str
    value: Callable[[Point], float | None]
    line: Callable[[Line], float | None]


RISE = Quantity(
    id="rise", decimals=1, unit="°C", value=lambda point: point.rise_celsius, line=lambda line: line.rise_celsius
)
RESISTANCE = Quantity(
    id="resistance", decimals=3, unit="°C/W", value=lambda point: point.resistance, line=lambda line: line.resistance
)


def panels(
    story: BenchHistory, runs: Sequence[RunEntry], quantity: Quantity, *, link: Link, words: Words
) -> list[Markup]:
    """One chart for each device of which any of these runs knows the figure."""
    devices: dict[str, list[Sensor]] = {}
    for sensor in story.sensors:
        if any((point := run.points.get(sensor.id)) is not None and _is_told(point, quantity) for run in runs):
            devices.setdefault(sensor.device, []).append(sensor)
    for sensors in devices.values():
        sensors.sort(key=lambda sensor: not is_main_part(sensor))
    return [
        tag(
            "figure",
            tag("figcaption", device),
            _Panel(story, runs, sensors, quantity, link=link, words=words).svg(),
            tag("div", *(_key(sensor, place) for place, sensor in enumerate(sensors)), class_="keys"),
            class_="panel",
            id=f"{quantity.id}-{device}",
        )
        for device, sensors in devices.items()
    ]


def quarter_of(run: RunEntry, words: Words) -> str:
    """``2026 Q1``, by UTC."""
    try:
        began = dt.datetime.fromtimestamp(run.start_seconds, tz=dt.timezone.utc)
    except (OverflowError, OSError, ValueError):
        return words("unknown")
    return words("quarter", year=began.year, number=(began.month + 2) // 3)


def name_of(sensor: Sensor) -> str:
    """``gpu0 memory``."""
    return " ".join(filter(None, [sensor.device, part_of(sensor)]))


def written(value: float, quantity: Quantity, *, sign: bool = False) -> str:
    """A figure with its unit."""
    return (
        f"{value:+.{quantity.decimals}f} {quantity.unit}" if sign else f"{value:.{quantity.decimals}f} {quantity.unit}"
    )


def _is_told(point: Point, quantity: Quantity) -> bool:
    """Whether a chart has anything to show of it: a value, or that it is not known."""
    figure = point.figures.get(quantity.id)
    return quantity.value(point) is not None or (quantity is RISE and bool(point.why)) or bool(figure and figure.value)


class _Panel:
    def __init__(
        self,
        story: BenchHistory,
        runs: Sequence[RunEntry],
        sensors: Sequence[Sensor],
        quantity: Quantity,
        *,
        link: Link,
        words: Words,
    ) -> None:
        self._story, self._runs, self._sensors, self._quantity = story, runs, sensors, quantity
        self._link, self._words = link, words
        known = [
            number
            for sensor in sensors
            for run in runs
            for number in (self._value(run, sensor), self._line_value(run, sensor))
            if number is not None
        ]
        least, most = (min(known), max(known)) if known else (0.0, 1.0)
        room = max(0.12 * (most - least), 10.0**-quantity.decimals, 0.02 * abs(most))
        self._low, self._high = least - room, most + room

    def svg(self) -> Markup:
        parts: list[Markup] = [*self._grid(), *self._quarters()]
        for place, sensor in enumerate(self._sensors):
            parts += [*self._dashes(sensor, place), *self._curve(sensor, place)]
        for place, sensor in enumerate(self._sensors):
            parts += self._marks(sensor, place)
        return tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", class_="history")

    # ---------------------------------------------------------------------------------------------------------------

    def _value(self, run: RunEntry, sensor: Sensor) -> float | None:
        point = run.points.get(sensor.id)
        return None if point is None else self._quantity.value(point)

    def _line_value(self, run: RunEntry, sensor: Sensor) -> float | None:
        line = self._story.line(run, sensor.id)
        return None if line is None else self._quantity.line(line)

    def _step(self) -> float:
        return (_WIDTH - _LEFT - _RIGHT) / len(self._runs)

    def _x(self, index: int) -> float:
        return _LEFT + (index + 0.5) * self._step()

    def _y(self, value: float) -> float:
        return _TOP + (self._high - value) / (self._high - self._low) * (_HEIGHT - _TOP - _BOTTOM)

    def _grid(self) -> Iterator[Markup]:
        for value in round_values(self._low, self._high, about=4):
            y = self._y(value)
            yield tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
            yield tag("text", f"{value:g}", x=_LEFT - 5, y=f"{y + 4:.1f}", text_anchor="end")

    def _quarters(self) -> Iterator[Markup]:
        """Each quarter's name below its first run, and every second one's field."""
        starts: list[tuple[int, str]] = []
        for index, run in enumerate(self._runs):
            name = quarter_of(run, self._words)
            if not starts or starts[-1][1] != name:
                starts.append((index, name))
        every = math.ceil(len(starts) / _LABELS)
        ends = [index for index, _ in starts[1:]] + [len(self._runs)]
        for number, ((begin, name), end) in enumerate(zip(starts, ends, strict=True)):
            left, right = _LEFT + begin * self._step(), _LEFT + end * self._step()
            if number % 2:
                width, height = f"{right - left:.1f}", _HEIGHT - _TOP - _BOTTOM
                yield tag("rect", x=f"{left:.1f}", width=width, y=_TOP, height=height, class_="band")
            if number % every == 0:
                middle = min(max((left + right) / 2, _LEFT + 20), _WIDTH - _RIGHT - 20)
                yield tag("text", name, x=f"{middle:.1f}", y=_HEIGHT - 5, text_anchor="middle")

    def _dashes(self, sensor: Sensor, place: int) -> Iterator[Markup]:
        for index, run in enumerate(self._runs):
            value = self._line_value(run, sensor)
            if value is None:
                continue
            said = self._words(
                "line_says",
                run=run.name,
                value=written(value, self._quantity),
                limit=f"{run.limit_celsius:g}" if run.limit_celsius is not None else "5",
                origin=run.limit_origin or "default",
                earlier=run.against,
            )
            half = min(0.42 * self._step(), 14)
            x, y = self._x(index), f"{self._y(value):.1f}"
            kind = f"most {colour_class(place)}"
            yield tag("line", tag("title", said), x1=f"{x - half:.1f}", x2=f"{x + half:.1f}", y1=y, y2=y, class_=kind)

    def _curve(self, sensor: Sensor, place: int) -> Iterator[Markup]:
        """A line through neighbouring values that may be compared; nothing across one that is not known."""
        path, pen_up = "", True
        for index, run in enumerate(self._runs):
            value = self._value(run, sensor)
            if value is None or run.name not in self._story.comparable:
                pen_up = True
                continue
            path += f"{'M' if pen_up else 'L'}{self._x(index):.1f} {self._y(value):.1f}"
            pen_up = False
        if "L" in path:
            yield tag("path", d=path, class_=f"curve {colour_class(place)}")

    def _marks(self, sensor: Sensor, place: int) -> Iterator[Markup]:
        for index, run in enumerate(self._runs):
            point = run.points.get(sensor.id)
            if point is None or not _is_told(point, self._quantity):
                continue
            value = self._quantity.value(point)
            x = f"{self._x(index):.1f}"
            if value is None:
                said = self._words(
                    "unknown_value", run=run.name, sensor=name_of(sensor), why=self._words.told(point.why)
                )
                y = _HEIGHT - _BOTTOM + 12
                mark = tag("text", tag("title", said), "?", x=x, y=y, text_anchor="middle", class_="unknown")
            else:
                said = tag("title", self._told(run, sensor, point, value))
                kind = self._kind(run, point, place)
                mark = tag("circle", said, cx=x, cy=f"{self._y(value):.1f}", r=_RADIUS, class_=kind)
            target = self._link(run)
            yield mark if target is None else tag("a", mark, href=target)

    def _kind(self, run: RunEntry, point: Point, place: int) -> str:
        apart = " apart" if run.name not in self._story.comparable else ""
        failed = " failed" if point.drift_outcome == "failed" else ""
        return f"dot {colour_class(place)}{apart}{failed}"

    def _told(self, run: RunEntry, sensor: Sensor, point: Point, value: float) -> str:
        """What a mark says when pointed at."""
        figure = written(value, self._quantity)
        lines = [self._words("known_value", run=run.name, sensor=name_of(sensor), value=figure)]
        why = self._story.why_not_comparable(run)
        if why:
            lines.append(
                self._words(
                    "not_comparable_value", why=self._words.told.template("; ").join(map(self._words.told, why))
                )
            )
        if point.drift_outcome == "failed":
            lines.append(self._words("failed_value"))
        return "\n".join(lines)


def _key(sensor: Sensor, place: int) -> Markup:
    swatch = tag("span", class_=f"swatch {colour_class(place)}")
    return tag("span", joined(swatch, name_of(sensor)), class_="key")
