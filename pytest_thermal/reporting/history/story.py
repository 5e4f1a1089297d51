"""What the runs of one bench say together: which of them may be compared, and by how much each sensor changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_thermal.analysis import drift, not_comparable
from pytest_thermal.findings.subjects import in_order
from pytest_thermal.model import Sensor
from pytest_thermal.model.series import Figure
from pytest_thermal.reporting.history.archive import Point, RunEntry

DEFAULT_LIMIT_CELSIUS = 5.0
"""Of runs that say of no limit: they were made before there was one in their summary."""
_NOTHING = Figure.missing("rise", "celsius", "not measured")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A sensor of one run against that of another, °C at the later run's power."""

    celsius: float
    by: str
    """``rise`` or ``resistance``."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Where a run fails by drift, in one sensor's figures: the earlier run's figure and the limit on top of it."""

    rise_celsius: float | None
    resistance: float | None
    """°C/W: the limit is in °C, so it is divided by this run's power."""


@dataclass(frozen=True)
class BenchHistory:
    """The runs of one bench, the oldest first."""

    bench: str
    """Its name, with ``(simulated)`` where it is."""
    host: str
    """Empty where the bench was run on machines of several names."""
    runs: tuple[RunEntry, ...]

    @property
    def newest(self) -> RunEntry:
        """The run that the others are seen from: the newest one with figures, else the newest."""
        return next((run for run in reversed(self.runs) if run.points), self.runs[-1])

    @property
    def simulated(self) -> bool:
        """Whether any of them was of the demo bench."""
        return any(run.simulated for run in self.runs)

    @cached_property
    def sensors(self) -> tuple[Sensor, ...]:
        """Every heated temperature that any of the runs has figures of, in a reader's order."""
        known = {
            name: sensor
            for run in self.runs
            for name, sensor in run.sensors.items()
            if run.points.get(name) is not None
        }
        return in_order(known.values())

    @cached_property
    def _by_name(self) -> Mapping[str, RunEntry]:
        return {run.name: run for run in self.runs}

    def why_not_comparable(self, run: RunEntry) -> tuple[str, ...]:
        """Why a run's figures and the newest run's say nothing of each other; empty where they do."""
        return () if run is self.newest else not_comparable(self.newest.facts, run.facts)

    @cached_property
    def comparable(self) -> frozenset[str]:
        """Names of the runs that may be compared with the newest one."""
        return frozenset(run.name for run in self.runs if run.points and not self.why_not_comparable(run))

    def earlier_of(self, run: RunEntry) -> RunEntry | None:
        """The run that it was compared with, where the archive still has its figures."""
        found = self._by_name.get(run.against)
        return found if found is not None and found.points else None

    def line(self, run: RunEntry, sensor: str) -> Line | None:
        """Where it fails by drift; None where it was not compared, or the earlier figure is not known."""
        before = self.earlier_of(run)
        then = before.points.get(sensor) if before is not None else None
        if then is None:
            return None
        limit = _limit(run)
        resistance = _figure(run, sensor, "resistance")
        watts = resistance.detail.get("watts") if resistance is not None else None
        by_power = isinstance(watts, int | float) and not isinstance(watts, bool) and watts > 0
        return Line(
            rise_celsius=None if then.rise_celsius is None else then.rise_celsius + limit,
            resistance=then.resistance + limit / float(watts) if then.resistance is not None and by_power else None,  # type: ignore[arg-type]
        )

    def change(self, run: RunEntry, before: RunEntry | None, sensor: str) -> Change | None:
        """How much hotter a sensor got; None where either run does not know."""
        now = run.points.get(sensor)
        then = before.points.get(sensor) if before is not None else None
        if now is None or then is None or now.rise_celsius is None or then.rise_celsius is None:
            return None
        found = drift(_rise(now), _rise(then), resistance=now.figures.get("resistance"),
                      earlier_resistance=then.figures.get("resistance"))  # fmt: skip
        if found.value is None:
            return None
        return Change(celsius=found.value, by=str(found.detail.get("figure", "rise")))

    def first_with(self, sensor: str) -> RunEntry | None:
        """The oldest run that is comparable with the newest one and knows that sensor; None where it is the newest."""
        for run in self.runs:
            point = run.points.get(sensor)
            if run.name in self.comparable and point is not None and point.rise_celsius is not None:
                return run if run is not self.newest else None
        return None

    def creeping(self) -> tuple[tuple[Sensor, Change, RunEntry], ...]:
        """Sensors that drifted by the limit since their first run though no single step did, the worst first."""
        limit, found = _limit(self.newest), []
        for sensor in self.sensors:
            first = self.first_with(sensor.id)
            whole = self.change(self.newest, first, sensor.id)
            point = self.newest.points.get(sensor.id)
            failed = point is not None and point.drift_outcome == "failed"  # that is told already
            if first is not None and whole is not None and whole.celsius >= limit and not failed:
                found.append((sensor, whole, first))
        return tuple(sorted(found, key=lambda one: -one[1].celsius))


def benches(runs: Sequence[RunEntry]) -> tuple[BenchHistory, ...]:
    """Runs by bench, that of the newest run first.

    A bench that ran more than once on each of several machines is several histories. Names that come once, as those of
    containers do, are no machines.
    """
    grouped: dict[str, list[RunEntry]] = {}
    for run in runs:
        grouped.setdefault(run.facts.bench, []).append(run)
    found = []
    for bench, own in grouped.items():
        counts: dict[str, int] = {}
        for run in own:
            counts[run.host] = counts.get(run.host, 0) + 1
        if len(counts) > 1 and min(counts.values()) > 1:
            found += [
                BenchHistory(bench=bench, host=host, runs=tuple(run for run in own if run.host == host))
                for host in counts
            ]
        else:
            found.append(
                BenchHistory(bench=bench, host=next(iter(counts)) if len(counts) == 1 else "", runs=tuple(own))
            )
    return tuple(sorted(found, key=lambda one: one.runs[-1].start_seconds, reverse=True))


def _limit(run: RunEntry) -> float:
    return run.limit_celsius if run.limit_celsius is not None else DEFAULT_LIMIT_CELSIUS


def _rise(point: Point) -> Figure:
    return point.figures.get("rise", _NOTHING)


def _figure(run: RunEntry, sensor: str, name: str) -> Figure | None:
    point = run.points.get(sensor)
    found = point.figures.get(name) if point is not None else None
    return found if found is not None and found.value is not None else None
