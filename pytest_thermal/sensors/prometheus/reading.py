"""From what a server told to one sensor's reading: a value that is new enough, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.model.said import say
from pytest_thermal.sensors.prometheus import exporters
from pytest_thermal.sensors.prometheus.answer import Sample
from pytest_thermal.sensors.prometheus.exporters import Named
from pytest_thermal.sensors.prometheus.freshness import PUSHED, Target, longest_seconds, pushed_seconds, target
from pytest_thermal.sensors.tools.answer import Problem

_VOLATILE = frozenset({
    "__name__", "pod", "pod_name", "container", "container_name", "namespace", "uid", "pod_uid", "exported_pod",
    "exported_container", "exported_namespace", "DCGM_FI_DRIVER_VERSION", "driver_version", "modelName", "model_name",
    "job", "endpoint", "service",
})  # fmt: skip
"""Labels that change while the device stays: who uses it, how it is scraped."""
_MOST_WATTS = 1_500.0
"""More than a processor's package draws."""

Mark = tuple[tuple[str, str], ...]


def mark_of(labels: Mapping[str, str]) -> Mark:
    """What stays of a series."""
    return tuple(sorted(pair for pair in labels.items() if pair[0] not in _VOLATILE))


@dataclass(frozen=True, kw_only=True)
class Told:
    """One answer of the server, taken apart."""

    at_seconds: float = 0.0
    values: Mapping[str, Sequence[tuple[Mark, Sample]]] = field(default_factory=dict)
    """By metric, or an expression's key: its samples, and what stays of the series of each."""
    times: Mapping[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    """By whose (a metric, an expression's key) and series: when it was sampled, in seconds of the server's clock."""
    down: frozenset[Target] = frozenset()
    pushes: tuple[Sample, ...] = ()
    problem: Problem | None = None


@dataclass(kw_only=True)
class Series:
    """Which series a sensor is, and what it needs from one reading to the next."""

    key: str
    """The metric's name, or an expression's key."""
    marks: frozenset[Mark]
    scale: float
    from_target: Target
    is_role: bool = False
    counts_joules: bool = False
    zero_is_blank: bool = False
    last: tuple[float, float] | None = None
    """Of a counter: when it was sampled, and its joules."""
    power: float | None = None

    @classmethod
    def of_known(cls, group: Sequence[Named]) -> Series:
        """That of a known exporter: one series, or several that show one figure of a card."""
        first = group[0]
        return cls(
            key=first.sample.name,
            marks=frozenset(mark_of(one.sample.labels) for one in group),
            scale=first.scale,
            from_target=target(first.sample.labels),
            counts_joules=first.counts_joules,
            zero_is_blank=first.zero_is_blank,
        )


def reading_of(sensor: Sensor, series: Series, told: Told, intervals: Mapping[Target, float]) -> Reading:
    """The sensor's reading."""

    def missing(why: Missing, detail: str) -> Reading:
        return Reading(sensor_id=sensor.id, missing=why, detail=detail)

    if told.problem is not None:
        return missing(told.problem.missing, told.problem.said)
    candidates = told.values.get(series.key, ())
    found = [sample for mark, sample in candidates if mark in series.marks]
    if not found:
        return missing(*_why_none(series, [sample for _, sample in candidates], told))
    if series.is_role and len(candidates) > 1:
        return missing(Missing.NOT_UNDERSTOOD, say("{count} series where the start had one", count=len(candidates)))
    # Two servers that stand in for each other, each with its own scrapes: the newer is now.
    newest = max(_sampled(series, one, told) for one in found)
    of_now = [one for one in found if _sampled(series, one, told) == newest]
    if len({one.text for one in of_now}) > 1:
        return missing(Missing.NOT_UNDERSTOOD, say("{count} series of it that differ", count=len(of_now)))
    sample = of_now[0]
    stale = _why_stale(series, sample, told, intervals)
    if stale:
        return missing(Missing.STALE, stale)
    if not math.isfinite(sample.value):
        return missing(Missing.NOT_OFFERED, sample.text)
    if why := exporters.blank(sample):
        return missing(Missing.NOT_OFFERED, say("raw {value}: {why}", value=sample.text, why=why))
    if why := exporters.broken(sample):
        return missing(Missing.DEVICE_ERROR, say("raw {value}: {why}", value=sample.text, why=why))
    if series.zero_is_blank and sample.value == 0.0:
        return missing(Missing.NOT_OFFERED, say("raw 0: there is no such sensor"))
    if series.counts_joules:
        return _power(sensor, series, sample, _sampled(series, sample, told))
    return Reading(sensor_id=sensor.id, value=sample.value * series.scale)


def _why_none(series: Series, candidates: Sequence[Sample], told: Told) -> tuple[Missing, str]:
    if series.from_target in told.down:
        job, instance = series.from_target
        return Missing.ABSENT, say(
            "Prometheus does not reach the exporter {instance} (up is 0, job {job})", instance=instance, job=job
        )
    if series.is_role and candidates:
        labels = ", ".join(f'{name}="{value}"' for name, value in mark_of(candidates[0].labels))
        return Missing.ABSENT, say("another series than at the start: {labels}", labels=labels)
    return Missing.ABSENT, say("Prometheus has no such series now")


def _sampled(series: Series, sample: Sample, told: Told) -> float:
    """When it was sampled; of an expression, the oldest that went into it."""
    if series.is_role:
        return min((at for (key, _), at in told.times.items() if key == series.key), default=told.at_seconds)
    return told.times.get((series.key, sample.series), told.at_seconds)


def _why_stale(series: Series, sample: Sample, told: Told, intervals: Mapping[Target, float]) -> str:
    most = longest_seconds(series.from_target, intervals)
    age = told.at_seconds - _sampled(series, sample, told)
    if age > most:
        return say("Prometheus' sample is {age:.0f} s old, and at most {most:.0f} s are a reading", age=age, most=most)
    groups = [sample.labels, *(dict(labels) for (key, labels) in told.times if series.is_role and key == series.key)]
    pushed = [at for at in (pushed_seconds(labels, told.pushes) for labels in groups) if at is not None]
    ago = told.at_seconds - min(pushed, default=told.at_seconds)
    if ago > most:
        return say(
            "pushed {ago:.0f} s ago ({metric}): a push gateway shows its last value for ever", ago=ago, metric=PUSHED
        )
    return ""


def _power(sensor: Sensor, series: Series, sample: Sample, sampled_seconds: float) -> Reading:
    """Mean power between two samples of a counter of joules; the same sample again says the same."""
    before = series.last
    if before is None or sampled_seconds > before[0]:
        series.last = (sampled_seconds, sample.value)
        watts = (sample.value - before[1]) / (sampled_seconds - before[0]) if before else -1.0
        # node_exporter does not say where the counter turns.
        series.power = watts if 0.0 < watts <= _MOST_WATTS else None
    if series.power is None:
        detail = say("there is no sample before this one, or the counter turned or stood still between them")
        return Reading(sensor_id=sensor.id, missing=Missing.UNREADABLE, detail=detail)
    return Reading(sensor_id=sensor.id, value=series.power)
