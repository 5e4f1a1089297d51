"""A Prometheus as a source: what known exporters tell of this bench, and each PromQL that the bench names.

Two queries a reading, one for each kind. A sample that is too old is missing: its own time counts, not the answer's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Missing, Reading, Sensor
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.opening import SpecError
from pytest_thermal.sensors.prometheus import exporters
from pytest_thermal.sensors.prometheus.answer import Answered, Sample
from pytest_thermal.sensors.prometheus.exporters import Named
from pytest_thermal.sensors.prometheus.freshness import PUSHED, Target, intervals_of, target
from pytest_thermal.sensors.prometheus.hosts import several_hosts
from pytest_thermal.sensors.prometheus.promql import marked, selector
from pytest_thermal.sensors.prometheus.reading import Mark, Series, Told, mark_of, reading_of
from pytest_thermal.sensors.prometheus.roles import Role, roles_of
from pytest_thermal.sensors.prometheus.server import Server
from pytest_thermal.sensors.source import Absent, Availability

NAME = "prometheus"
_OF, _IS = "thermal_of", "thermal_is"
"""Labels that our queries add: whose time a sample is, and which expression's value."""
_UP = "up"
_MARKS = ("", _UP, PUSHED)
_TIMES_OF_UP = "5m"
_SLOW_SECONDS = 10.0


def make(*, url: str, user: str | None = None, labels: str = "{}", named: str = "{}") -> PrometheusSource:
    """The source: the server at ``url``; ``labels`` and ``named`` are the bench's, as JSON."""
    return PrometheusSource(
        server=Server(url, user=user, environ=os.environ), labels=json.loads(labels), named=json.loads(named)
    )


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a sensor's figure is found in answers."""

    sensor: Sensor
    series: Series


class PrometheusSource:
    """Sensors of one server."""

    def __init__(self, *, server: Server, labels: Mapping[str, Sequence[str]], named: Mapping[str, str]) -> None:
        self.name = NAME
        self._server = server
        self._labels = labels
        self._named = named
        self._roles: tuple[Role, ...] = ()
        self._names: tuple[str, ...] = ()
        self._places: tuple[Place, ...] = ()
        self._absent: tuple[Absent, ...] = ()
        self._targets: frozenset[Target] = frozenset()
        self._intervals: dict[Target, float] = {}
        self._availability: Availability | None = None
        self._refusal = ""

    def probe(self) -> Availability:
        """Whether it answers and knows something of this bench."""
        if self._availability is None:
            self._availability = self._discover()
        return self._availability

    def sensors(self) -> Sequence[Sensor]:
        """What it knew at start.

        Raises:
            SpecError: It cannot be told which of its series are this bench's, or which one a sensor is.
        """
        self.probe()
        if self._refusal:
            raise SpecError(say("source {name}: {refusal}", name=self.name, refusal=self._refusal))
        return tuple(place.sensor for place in self._places)

    def absent(self) -> Sequence[Absent]:
        """What it knows and is not recorded."""
        self.probe()
        return self._absent

    def read(self) -> Sequence[Reading]:
        """One reading of each sensor."""
        self.probe()
        known = self._ask_known()
        roles = self._ask_roles() if self._roles else {}
        return [
            reading_of(place.sensor, place.series, roles.get(place.series.key, known), self._intervals)
            for place in self._places
        ]

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    # ------------------------------------------------------------------------------------------------ at the start

    def _discover(self) -> Availability:
        unfit = self._server.unfit()
        if unfit:
            return Availability(ok=False, reason=unfit)
        answered = self._server.ask("count(up)")
        if answered.problem:
            return Availability(
                ok=False, reason=say("{trouble} (at {url})", trouble=answered.problem.said, url=self._server.url)
            )
        self._roles, self._refusal = roles_of(self._named, self._server.ask)
        remark = "" if self._refusal else self._find_names()
        known = self._server.ask(selector(self._names, self._labels)) if self._names else Answered()
        samples = known.samples
        remark = _left_out(known.problem.said) if known.problem else remark
        self._targets = frozenset(
            target(labels) for labels in (*(one.labels for one in samples), *(role.labels for role in self._roles))
        ) - {("", "")}
        self._intervals = self._scrapes()
        self._refusal = self._refusal or self._settle(samples)
        if not (self._places or self._refusal):
            return Availability(ok=False, reason=remark or self._nothing())
        slowest = max(self._intervals.values(), default=0.0)
        told = say("its targets are asked every {seconds:g} s", seconds=slowest) if slowest > _SLOW_SECONDS else ""
        return Availability(ok=True, reason=joined("; ", filter(None, (remark, told))))

    def _find_names(self) -> str:
        """Which of the known exporters' metrics the server has of this bench; a remark where they are left out."""
        wanted = selector([*exporters.METRICS, *exporters.FACTS], self._labels)
        counted = self._server.ask(f"count by (__name__, job, instance, Hostname) ({wanted})")
        if counted.problem:
            return _left_out(counted.problem.said)
        hosts = several_hosts(counted.samples, self._server.ask("up == 0").samples, self._labels)
        if hosts and self._named:
            return _left_out(joined("; ", hosts))
        self._refusal = joined("\n", hosts) if hosts else ""
        self._names = () if hosts else tuple(sorted({one.name for one in counted.samples}))
        return ""

    def _scrapes(self) -> dict[Target, float]:
        """How often each target is asked, by when it was."""
        if not self._targets:
            return {}
        jobs, instances = (sorted({*part}) for part in zip(*self._targets, strict=True))
        asked = {"job": jobs, "instance": instances}
        return intervals_of(self._server.ask(f"{selector(['up'], asked)}[{_TIMES_OF_UP}]"))

    def _settle(self, samples: Sequence[Sample]) -> str:
        """Which sensors there are; or why that cannot be told."""
        taken = {role.series for role in self._roles}
        places = {role.sensor.id: Place(sensor=role.sensor, series=role.as_series()) for role in self._roles}
        absent: dict[str, Absent] = {}
        groups: dict[str, list[Named]] = {}
        for one in exporters.sensors_of(samples):
            if (one.sample.name, one.sample.series) not in taken:
                groups.setdefault(one.sensor_id, []).append(one)
        for sensor_id, group in groups.items():
            if sensor_id in places:
                continue
            first = group[0]
            sensor = Sensor(
                id=sensor_id, unit=first.unit, device=first.device, identity=first.identity, source=NAME,
                label=first.label,
            )  # fmt: skip
            if len({_whose(one) for one in group}) > 1:
                return _two_of_one(sensor_id, group)
            gone = _not_offered(sensor, group)
            if gone is not None:
                absent[sensor_id] = gone
            else:
                places[sensor_id] = Place(sensor=sensor, series=Series.of_known(group))
        self._places = tuple(places.values())
        self._absent = tuple(absent.values())
        return ""

    def _nothing(self) -> str:
        labels = joined(", ", [f"{name} {value}" for name, value in self._labels.items()])
        return say(
            "{url} knows no metric of dcgm-exporter, npu-exporter, node_exporter or ipmi_exporter{of}",
            url=self._server.url,
            of=say(" with {labels}", labels=labels) if labels else "",
        )

    # -------------------------------------------------------------------------------------------------- each reading

    def _ask_known(self) -> Told:
        names = [name for name in self._names if name not in exporters.FACTS]
        if not names:
            return Told()
        times = [marked(f"timestamp({selector([name], self._labels)})", _OF, name) for name in names]
        answered = self._server.ask(" or ".join([selector(names, self._labels), *times, *self._beside()]))
        return _told(answered, lambda one: _OF not in one.labels)

    def _ask_roles(self) -> dict[str, Told]:
        asked = self._server.ask(" or ".join([*(self._query(role) for role in self._roles), *self._beside()]))
        if asked.refused and len(self._roles) > 1:
            # One of them cannot be computed now: the others can.
            alone = {
                role.key: self._server.ask(" or ".join([self._query(role), *self._beside()])) for role in self._roles
            }
        else:
            alone = dict.fromkeys((role.key for role in self._roles), asked)
        return {key: _told(answered, _is_of(key), of=key) for key, answered in alone.items()}

    def _query(self, role: Role) -> str:
        times = [marked(f"timestamp({one.text})", _OF, role.key) for one in role.selectors]
        return " or ".join([marked(f"({role.expression})", _IS, role.key), *times])

    def _beside(self) -> list[str]:
        """What tells why a sample is none: targets that do not answer, and when a gateway was told."""
        jobs = sorted({job for job, _ in self._targets})
        down = [marked(f"({selector(['up'], {'job': jobs})} == 0)", _OF, _UP)] if jobs else []
        return [*down, marked(PUSHED, _OF, PUSHED)]


def _is_of(key: str) -> Callable[[Sample], bool]:
    return lambda one: one.labels.get(_IS) == key


def _told(answered: Answered, is_value: Callable[[Sample], bool], *, of: str = "") -> Told:
    """The answer by what each sample of it is."""

    def bare(sample: Sample) -> Sample:
        kept = {name: value for name, value in sample.labels.items() if name not in (_OF, _IS)}
        return Sample(labels=kept, value=sample.value, text=sample.text)

    marks: dict[str, list[Sample]] = {}
    values: dict[str, list[tuple[Mark, Sample]]] = {}
    for one in answered.samples:
        sample = bare(one)
        marks.setdefault(one.labels.get(_OF, ""), []).append(sample)
        if is_value(one):
            values.setdefault(of or sample.name, []).append((mark_of(sample.labels), sample))
    return Told(
        at_seconds=answered.at_seconds,
        values=values,
        times={
            (name, one.series): one.value
            for name, found in marks.items() if (name == of if of else name not in _MARKS) for one in found
        },
        down=frozenset(target(one.labels) for one in marks.get(_UP, ())),
        pushes=tuple(marks.get(PUSHED, ())),
        problem=answered.problem,
    )  # fmt: skip


def _whose(one: Named) -> tuple[str, str, str]:
    """What two series of one sensor have in common. A UUID is the world's; any other name is its machine's."""
    machine = "" if one.sample.labels.get("UUID") else one.sample.labels.get("instance", "")
    return one.sample.name, one.identity, machine


def _left_out(why: str) -> str:
    return say("what exporters tell is left out: {why}", why=why)


def _two_of_one(sensor_id: str, group: Sequence[Named]) -> str:
    seen = sorted(
        {
            say(
                "{metric} of {device} from {instance}",
                metric=one.sample.name,
                device=one.identity,
                instance=one.sample.labels.get("instance"),
            )
            for one in group
        }
    )[:4]
    return say(
        "{sensor} would be several series: {series}\n"
        "likely: it knows two machines, or two exporters tell of one device\n"
        "try: narrow it by labels in the bench's config.toml: {setting}",
        sensor=sensor_id,
        series=joined("; ", seen),
        setting='prometheus_labels = {instance = "…"}',
    )


def _not_offered(sensor: Sensor, group: Sequence[Named]) -> Absent | None:
    first = group[0]
    instances = {one.sample.labels.get("GPU_I_ID", "") for one in group}
    why = first.left_out or exporters.blank(first.sample)
    if not why and first.zero_is_blank and first.sample.value == 0.0:
        why = say("raw 0: there is no such sensor")
    if not why and not first.of_card and len(instances) > 1:
        why = say("left out: {count} instances of the card, and none tells the whole card's", count=len(instances))
    if not why:
        return None
    return Absent(sensor=sensor, reading=Reading(sensor_id=sensor.id, missing=Missing.NOT_OFFERED, detail=why))
