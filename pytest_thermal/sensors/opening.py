"""From a source's description to the source, in whichever process it is wanted."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pytest_thermal.model import Reading, Sensor
from pytest_thermal.model.said import say
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.source import Absent, Availability, Source, SourceSpec, TellsAbsent


class SpecError(ValueError):
    """A source description that leads nowhere. The text is for whoever wrote it."""


def open_source(spec: SourceSpec) -> Source:
    """The source, its readings checked for plausibility and without the sensors that others give.

    Raises:
        SpecError: The factory cannot be imported or called with these options, or what it made is no source.
    """
    factory = _factory(spec)
    try:
        inspect.signature(factory).bind(**spec.options)
    except TypeError as error:
        raise SpecError(
            say(
                "source {name}: {factory} does not take the options {options}\nlikely: {error}\n"
                "try: name them as the callable's parameters are named",
                name=spec.name,
                factory=spec.factory,
                options=sorted(spec.options),
                error=error,
            )
        ) from error
    except ValueError:
        # A callable without a signature, such as one written in C, says by itself what it does not take.
        pass
    made = factory(**spec.options)
    if not isinstance(made, Source):
        raise SpecError(
            say(
                "source {name}: {factory} made a {kind}, which is no source\n"
                "likely: name, probe, sensors, read or close is missing\ntry: pytest_thermal.sensors.Source says what",
                name=spec.name,
                factory=spec.factory,
                kind=type(made).__name__,
            )
        )
    checked = Checked(made)
    named = Apart(checked, spec.apart) if spec.apart else checked
    return Without(named, spec.without) if spec.without else named


def apart(sensor: Sensor, word: str) -> Sensor:
    """The sensor under another name: of ``gpu0`` and ``amd``, that of ``gpu_amd0``."""
    kind, number = re.fullmatch(r"(.*?)(\d*)", sensor.device, re.DOTALL).groups()  # type: ignore[union-attr]
    device = f"{kind}_{word}{number}"
    return replace(sensor, device=device, id=f"{device}{sensor.id.removeprefix(sensor.device)}")


class Apart:
    """A source whose devices' names take on a word, since another maker's devices have these names."""

    def __init__(self, source: Source, word: str) -> None:
        self.name = source.name
        self._source = source
        self._word = word
        self._ids: dict[str, str] = {}

    def probe(self) -> Availability:
        """As the source says."""
        return self._source.probe()

    def sensors(self) -> Sequence[Sensor]:
        """All of them, renamed."""
        found = self._source.sensors()
        renamed = [apart(sensor, self._word) for sensor in found]
        self._ids = {old.id: new.id for old, new in zip(found, renamed, strict=True)}
        return renamed

    def absent(self) -> Sequence[Absent]:
        """As the source says, where it does, renamed."""
        given = self._source.absent() if isinstance(self._source, TellsAbsent) else ()
        return [absent_apart(one, self._word) for one in given]

    def read(self) -> Sequence[Reading]:
        """One reading of each."""
        if not self._ids:
            self.sensors()
        return [replace(one, sensor_id=self._ids.get(one.sensor_id, one.sensor_id)) for one in self._source.read()]

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def absent_apart(one: Absent, word: str) -> Absent:
    """What is not offered, under another name."""
    sensor = apart(one.sensor, word)
    return Absent(sensor=sensor, reading=replace(one.reading, sensor_id=sensor.id))


class Without:
    """A source, some of its sensors left out."""

    def __init__(self, source: Source, ids: Sequence[str]) -> None:
        self.name = source.name
        self._source = source
        self._ids = frozenset(ids)

    def probe(self) -> Availability:
        """As the source says."""
        return self._source.probe()

    def sensors(self) -> Sequence[Sensor]:
        """Those that are left."""
        return [sensor for sensor in self._source.sensors() if sensor.id not in self._ids]

    def absent(self) -> Sequence[Absent]:
        """As the source says, where it does."""
        return self._source.absent() if isinstance(self._source, TellsAbsent) else ()

    def read(self) -> Sequence[Reading]:
        """One reading of each that is left."""
        return [reading for reading in self._source.read() if reading.sensor_id not in self._ids]

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def _factory(spec: SourceSpec) -> Callable[..., object]:
    module, _, attribute = spec.factory.partition(":")
    try:
        found: object = importlib.import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SpecError(
            say(
                "source {name}: its factory {factory!r} cannot be imported\nlikely: {error}\n"
                'try: "package.module:callable", importable by a process of its own',
                name=spec.name,
                factory=spec.factory,
                error=error,
            )
        ) from error
    if not callable(found):
        raise SpecError(
            say(
                "source {name}: {factory} is a {kind}, which cannot be called",
                name=spec.name,
                factory=spec.factory,
                kind=type(found).__name__,
            )
        )
    return found
