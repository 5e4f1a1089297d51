"""What this machine offers: every described source tried, each in a thread of its own with a deadline."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

from pytest_thermal.model import Reading, Sensor
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import joined, say
from pytest_thermal.sensors.opening import SpecError, absent_apart, apart, open_source
from pytest_thermal.sensors.source import Absent, Availability, Source, SourceSpec, TellsAbsent

if TYPE_CHECKING:
    from typing_extensions import Self

DISCOVERY_SECONDS = 90.0
"""For one source to say what it has: a tool may have to wake its devices first."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What became of one source."""

    spec: SourceSpec
    """As given; with what others give already, where that is so."""
    availability: Availability
    sensors: tuple[Sensor, ...] = ()
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By sensor: the first reading."""
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What this machine offers."""

    found: tuple[Found, ...]

    @property
    def specs(self) -> tuple[SourceSpec, ...]:
        """The sources worth recording, for :func:`~pytest_thermal.sensors.open_source` in any process."""
        return tuple(one.spec for one in self.found if one.sensors)

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """Every sensor, each once, by source."""
        return tuple(sensor for one in self.found for sensor in one.sensors)


def discover(specs: Iterable[SourceSpec], *, seconds: float = DISCOVERY_SECONDS) -> Discovery:
    """Try every source once, all at the same time.

    A fallback is tried only where what it stands in for is not available. Of sensors with one id the first source's
    counts. A source that does not answer in ``seconds`` is not available; its thread is left behind.

    Raises:
        SpecError: Two sources have one name, a description leads nowhere, or a sensor that the bench names is lacking.
    """
    wanted = list(specs)
    _names_once(wanted)
    by_name: dict[str, Found] = {}
    for fallback in (False, True):
        due = [
            spec
            for spec in wanted
            if bool(spec.fallback_for) is fallback
            and not (spec.fallback_for in by_name and by_name[spec.fallback_for].availability.ok)
        ]
        for spec, found in zip(due, _tried(due, seconds), strict=True):
            by_name[spec.name] = found
    in_order = [by_name[spec.name] for spec in wanted if spec.name in by_name]
    for one in in_order:
        _all_needed(one)
    return Discovery(found=tuple(_first_only(_makers_apart(in_order))))


class SensorSet:
    """Every sensor of some sources, read in this thread. A context manager that closes them."""

    def __init__(self, specs: Iterable[SourceSpec]) -> None:
        self._sources: list[Source] = []
        self._sensors: list[Sensor] = []
        try:
            for spec in specs:
                source = open_source(spec)
                self._sources.append(source)
                self._sensors += source.sensors()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """Every sensor, by source."""
        return tuple(self._sensors)

    def read(self) -> dict[str, Reading]:
        """One reading of each, by the sensor's id."""
        return {reading.sensor_id: reading for source in self._sources for reading in source.read()}

    def close(self) -> None:
        """Close the sources."""
        for source in self._sources:
            source.close()
        self._sources = []


def _names_once(specs: Sequence[SourceSpec]) -> None:
    owners: dict[str, SourceSpec] = {}
    for spec in specs:
        other = owners.setdefault(spec.name, spec)
        if other is not spec:
            raise SpecError(
                say(
                    "two sources are called {name!r}: {first} and {second}\n"
                    "likely: a plugin brings one that is there already\ntry: give it another name",
                    name=spec.name,
                    first=other.factory,
                    second=spec.factory,
                )
            )


def _all_needed(found: Found) -> None:
    devices = {sensor.device for sensor in found.sensors}
    lacking = {device: name for device, name in found.spec.needed.items() if device not in devices}
    if not lacking:
        return
    wanted = joined(
        ", ", [say("{device} to be {name!r}", device=device, name=name) for device, name in lacking.items()]
    )
    here = sorted({one.identity for one in (*found.sensors, *(absent.sensor for absent in found.absent))})
    likely = say("the name is another, or two sensors have it") if here else found.availability.reason
    advice = (
        say("one of these, or its number alone: {names}", names=joined("; ", here))
        if here
        else say("see to that, or take the name out of the bench's files")
    )
    raise SpecError(
        say(
            "source {name}: the bench says {wanted}, and there is no such sensor\nlikely: {likely}\ntry: {advice}",
            name=found.spec.name,
            wanted=wanted,
            likely=likely,
            advice=advice,
        )
    )


def _tried(specs: Sequence[SourceSpec], seconds: float) -> list[Found]:
    trials = [_Trial(spec) for spec in specs]
    for trial in trials:
        trial.start()
    return [trial.outcome(seconds) for trial in trials]


class _Trial(threading.Thread):
    """One source, made, asked and closed by one thread; nobody waits for it longer than agreed."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(name=f"thermal-discover-{spec.name}", daemon=True)
        self._spec = spec
        self._found: Found | None = None
        self._error: SpecError | None = None

    def run(self) -> None:
        try:
            source = open_source(self._spec)
        except SpecError as error:
            self._error = error
            return
        except Exception as error:  # noqa: BLE001 - whoever wrote the source, the others go on
            self._found = _unavailable(
                self._spec, say("making it raised {kind}: {error}", kind=type(error).__name__, error=error)
            )
            return
        try:
            self._found = _ask(self._spec, source)
        except SpecError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - whoever wrote the source, the others go on
            self._found = _unavailable(
                self._spec, say("asking for its sensors raised {kind}: {error}", kind=type(error).__name__, error=error)
            )
        finally:
            source.close()

    def outcome(self, seconds: float) -> Found:
        self.join(seconds)
        if self._error is not None:
            raise self._error
        return self._found or _unavailable(self._spec, say("gave no answer in {seconds:g} s", seconds=seconds))


def _ask(spec: SourceSpec, source: Source) -> Found:
    availability = source.probe()
    absent = tuple(source.absent()) if isinstance(source, TellsAbsent) else ()
    if not availability.ok:
        return Found(spec=spec, availability=availability, absent=absent)
    sensors = tuple(source.sensors())
    if not sensors:
        return Found(spec=spec, availability=Availability(ok=False, reason=say("it has no sensor")), absent=absent)
    readings = {reading.sensor_id: reading for reading in source.read()}
    return Found(spec=spec, availability=availability, sensors=sensors, readings=readings, absent=absent)


def _unavailable(spec: SourceSpec, reason: str) -> Found:
    return Found(spec=spec, availability=Availability(ok=False, reason=reason))


def _makers_apart(found: Sequence[Found]) -> list[Found]:
    """Where devices of two makers have one name, those that come later take on their maker's."""
    makers: dict[str, str] = {}
    result = []
    for one in found:
        devices = {sensor.device for sensor in one.sensors}
        maker = one.spec.maker
        if maker and any(makers.get(device, maker) != maker for device in devices):
            names = {sensor.id: apart(sensor, maker) for sensor in one.sensors}
            result.append(
                replace(
                    one,
                    spec=replace(one.spec, apart=maker),
                    sensors=tuple(names.values()),
                    readings={
                        names[name].id: replace(reading, sensor_id=names[name].id)
                        for name, reading in one.readings.items()
                        if name in names
                    },
                    absent=tuple(absent_apart(absent, maker) for absent in one.absent),
                )
            )
        else:
            result.append(one)
            makers.update(dict.fromkeys(devices, maker) if maker else {})
    return result


def _inside_first(found: Sequence[Found]) -> list[Found]:
    """Sources that see the machine from outside without the processors and cards of those that see it from inside.

    A card of one source and a card of the other that have one number need not be one card; of processors, only what
    nobody else gives is kept, since sockets are counted alike.
    """
    inside = {_figure_of(sensor) for one in found if not one.spec.from_outside for sensor in one.sensors}
    cards = any(kind is Kind.ACCELERATOR for kind, _ in inside)
    result = []
    for one in found:
        gone = {
            sensor.id
            for sensor in one.sensors
            if one.spec.from_outside
            and sensor.device not in one.spec.needed
            and (
                (_figure_of(sensor)[0] is Kind.ACCELERATOR and cards)
                or (_figure_of(sensor)[0] is Kind.CPU and _figure_of(sensor) in inside)
            )
        }
        if not gone:
            result.append(one)
            continue
        left = tuple(sensor for sensor in one.sensors if sensor.id not in gone)
        why = say(
            "{count} sensors of processors or cards are left out: other sources give these, and which of them is which "
            "cannot be told",
            count=len(gone),
        )
        reason = joined("; ", filter(None, (one.availability.reason, why)))
        spec = replace(one.spec, without=tuple(sorted({*one.spec.without, *gone})))
        result.append(replace(one, spec=spec, availability=Availability(ok=bool(left), reason=reason), sensors=left))
    return result


def _figure_of(sensor: Sensor) -> tuple[Kind, str]:
    return kind_of(sensor.device), sensor.id.removeprefix(sensor.device)


def _first_only(found: Sequence[Found]) -> list[Found]:
    """Of several sensors of one id the first; a source that comes later is told to leave it out."""
    owners: dict[str, str] = {}
    result = []
    for one in _inside_first(found):
        taken = sorted(sensor.id for sensor in one.sensors if sensor.id in owners)
        from_whom = joined(", ", sorted({owners[sensor_id] for sensor_id in taken}))
        for sensor in one.sensors:
            owners.setdefault(sensor.id, one.spec.name)
        if not taken:
            result.append(one)
            continue
        left = tuple(sensor for sensor in one.sensors if sensor.id not in taken)
        already = (
            say("{source} gives {count} of its {sensors} sensors already", source=from_whom, count=len(taken),
                sensors=len(one.sensors))
            if left
            else say("{source} gives all of its sensors already", source=from_whom)
        )  # fmt: skip
        said = one.availability.reason if left else ""
        reason = joined("; ", filter(None, (said, already)))
        spec = replace(one.spec, without=tuple(sorted({*one.spec.without, *taken})))
        result.append(replace(one, spec=spec, availability=Availability(ok=bool(left), reason=reason), sensors=left))
    return result
