"""Each PromQL that the bench names: tried once by itself, so that Prometheus' own words tell what is wrong with it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.prometheus import exporters
from pytest_thermal.sensors.prometheus.answer import Answered, Sample
from pytest_thermal.sensors.prometheus.freshness import target
from pytest_thermal.sensors.prometheus.promql import UNITS, Selector, selectors, unit_of
from pytest_thermal.sensors.prometheus.reading import Series, mark_of

_SOURCE = "prometheus"
_QUANTITIES = {
    Unit.CELSIUS: "temperature_celsius",
    Unit.WATTS: "power_watts",
    Unit.RPM: "speed_rpm",
    Unit.VOLTS: "voltage_volts",
    Unit.AMPERES: "current_amperes",
    Unit.LITERS_PER_MINUTE: "flow_liters_per_minute",
    Unit.PASCALS: "pressure_pascals",
    Unit.MEGAHERTZ: "clock_megahertz",
    Unit.BYTES: "memory.used_bytes",
}
_TURNS = re.compile(r"pump|fan|blower")
_MOST_SHOWN = 4

Ask = Callable[[str], Answered]


@dataclass(frozen=True, kw_only=True)
class Role:
    """A sensor that is an expression."""

    key: str
    """``s0``: what our queries call it."""
    expression: str
    """Giving a vector."""
    selectors: tuple[Selector, ...]
    sensor: Sensor
    scale: float
    labels: Mapping[str, str]
    """Of the series that it is, or is made of."""
    series: tuple[str, frozenset[tuple[str, str]]]
    """The series that it is, where it is one as it stands."""
    mark: tuple[tuple[str, str], ...]

    def as_series(self) -> Series:
        """How it is found in later answers."""
        return Series(
            key=self.key,
            marks=frozenset({self.mark}),
            scale=self.scale,
            from_target=target(self.labels),
            is_role=True,
        )


class _RefusedError(Exception):
    """Why an expression is no sensor: what was seen, what is likely, what to try."""

    def __init__(self, seen: str, likely: str, remedy: str) -> None:
        super().__init__(
            joined("\n", [seen, say("likely: {likely}", likely=likely), say("try: {remedy}", remedy=remedy)])
        )


def roles_of(named: Mapping[str, str], ask: Ask) -> tuple[tuple[Role, ...], str]:
    """The expressions as sensors; or, for the person who wrote them, what is wrong with the first that is none."""
    roles = []
    for number, (name, expression) in enumerate(named.items()):
        try:
            roles.append(_role(f"s{number}", name, expression, ask))
        except _RefusedError as error:
            return (), say("{name}: {text}", name=name, text=error.args[0])
    return tuple(roles), ""


def _role(key: str, name: str, expression: str, ask: Ask) -> Role:
    answered = ask(expression)
    if answered.problem is not None:
        raise _RefusedError(
            say("{name}: {text}", name=expression, text=answered.problem.said),
            say("a slip in the expression") if answered.refused else say("the server has a fault of its own now"),
            say("paste the expression into the server's own page (Graph), and correct it until it shows one row"),
        )
    if answered.kind not in ("vector", "scalar"):
        raise _RefusedError(
            say(
                "{expression} is a {kind}, and no number at a moment",
                expression=expression,
                kind=answered.kind or say("thing of no kind"),
            ),
            say("a range such as [5m] stands behind it"),
            say("take the range off, or put avg_over_time(…) around it"),
        )
    found = selectors(expression)
    if len(answered.samples) != 1:
        raise _none(expression, found, ask) if not answered.samples else _several(expression, answered.samples)
    sample = answered.samples[0]
    device, dot, quantity = name.partition(".")
    unit, scale, quantity = _measures(expression, device, quantity if dot else "")
    labels = sample.labels or _labels_below(found, ask)
    return Role(
        key=key,
        expression=f"vector({expression})" if answered.kind == "scalar" else expression,
        selectors=found,
        sensor=Sensor(
            id=f"{device}.{quantity}", unit=unit, device=device, source=_SOURCE, label=expression[:120],
            identity=", ".join(f'{label}="{value}"' for label, value in mark_of(sample.labels)) or expression[:120],
        ),
        scale=scale,
        labels=labels,
        series=(sample.name, sample.series),
        mark=mark_of(sample.labels),
    )  # fmt: skip


def _measures(expression: str, device: str, quantity: str) -> tuple[Unit, float, str]:
    """Unit, scale and quantity: by the sensor's own id where that was given, else by the metric's name."""
    by_name = unit_of(expression, exporters.UNITS)
    if quantity:
        unit = next((unit for unit in Unit if quantity == unit.value or quantity.endswith(f"_{unit.value}")), None)
        if unit is None:
            raise _RefusedError(
                say("the id {sensor} ends in no unit", sensor=f"{device}.{quantity}"),
                say("the last word of a sensor's id is its unit"),
                say("one of these at its end: {units}", units=joined(", ", [f"_{one.value}" for one in Unit])),
            )
        return unit, by_name[1] if by_name and by_name[0] is unit else 1.0, quantity
    if by_name is None:
        raise _RefusedError(
            say("{expression} does not say in which unit it is", expression=expression),
            say("the metric's name does not end in one of {units}", units=joined(", ", [f"_{end}" for end in UNITS])),
            say(
                'name the whole sensor: "{device}.temperature_celsius" = "prometheus:…", and scale it in the '
                "expression",
                device=device,
            ),
        )
    unit, scale = by_name
    if unit is Unit.PERCENT:
        return unit, scale, "speed_percent" if _TURNS.search(device) else "utilization_percent"
    return unit, scale, _QUANTITIES[unit]


def _several(expression: str, samples: Sequence[Sample]) -> _RefusedError:
    common = set.intersection(*({*one.labels.items()} for one in samples))
    apart = [
        "{" + ", ".join(f'{label}="{value}"' for label, value in sorted({*one.labels.items()} - common)) + "}"
        for one in samples[:_MOST_SHOWN]
    ]
    shown = joined(", ", apart)
    if len(samples) > _MOST_SHOWN:
        shown = say("{names} and {count} more", names=shown, count=len(samples) - _MOST_SHOWN)
    return _RefusedError(
        say("{expression} is {count} series: {series}", expression=expression, count=len(samples), series=shown),
        say("it selects more than the one sensor, or more than the one machine"),
        say("narrow it by labels, such as {labels}", labels=apart[0]),
    )


def _none(expression: str, found: Sequence[Selector], ask: Ask) -> _RefusedError:
    """Why nothing is selected: another label, another name, or an exporter that does not answer."""
    for one in found:
        if ask(f"count({one.text})").samples:
            continue
        down = ask("up == 0").samples
        others = ask(f'count by (instance) ({{__name__="{one.name}"}})').samples if one.name else ()
        if one.name and others:
            shown = ask(one.name).samples[:_MOST_SHOWN]
            rows = ", ".join(
                "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(row.series)) + "}" for row in shown
            )
            return _RefusedError(
                say(
                    "{expression} selects nothing; {metric} has {rows}",
                    expression=expression,
                    metric=one.name,
                    rows=rows,
                ),
                say("a label has another value"),
                say("take the labels of one of these"),
            )
        near = _nearest(one.name, ask)
        gone = ", ".join(sorted({row.labels.get("instance", "") for row in down})[:_MOST_SHOWN])
        return _RefusedError(
            say(
                "{expression} selects nothing: the server has no {metric}",
                expression=expression,
                metric=one.name or one.text,
            ),
            say("its exporter does not answer: Prometheus does not reach {targets}", targets=gone)
            if down
            else say("a slip in the name"),
            say("near to it: {names}", names=near)
            if near
            else say("start the exporter, and look at the server's page Status, Targets"),
        )
    return _RefusedError(
        say("{expression} gives nothing now, though the server has what is in it", expression=expression),
        say("a comparison in it does not hold, or the labels of its two sides do not match"),
        say("paste it into the server's own page (Graph), and correct it until it shows one row"),
    )


def _nearest(name: str, ask: Ask) -> str:
    if not name:
        return ""
    stem = name.split("_", maxsplit=1)[0]
    names = {row.name for row in ask(f'count by (__name__) ({{__name__=~"{re.escape(stem)}_.*"}})').samples}
    return ", ".join(difflib.get_close_matches(name, names, n=3, cutoff=0.5))


def _labels_below(found: Sequence[Selector], ask: Ask) -> Mapping[str, str]:
    """The labels of a series that an expression is made of, where itself has none."""
    for one in found:
        samples = ask(one.text).samples
        if samples:
            return samples[0].labels
    return {}
