"""Whether what a source says is from now: a value that never changes while what it follows does is not proven.

A BMC that hangs goes on giving its last readings, each with ``ok``. That a fan or a pump keeps its speed is no sign of
it: a control does that. Signs are: a sensor that wavered and wavers no more; and a reading that has to follow the load,
as the coolant's return or a power supply's, that did not move by one step from idle to full load. Where not one sensor
of that source moved either, none of them is proven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from pytest_thermal.analysis.stale import Standstill, held, stopped_wavering
from pytest_thermal.findings.telling import span
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Phase, Series

BEFORE_SECONDS = 60.0
"""So long before the load changes a standstill has to have begun."""
LEAST_SECONDS = 300.0
"""So long it has to have gone on since: the coolant takes minutes to warm up."""
MOVED_CELSIUS = 10.0
"""A processor or an accelerator that changes by less does not show that the load has."""
WAVERING = frozenset({Unit.RPM, Unit.LITERS_PER_MINUTE, Unit.PASCALS})
_FOLLOWS = re.compile(r"(?:^|[._])(?:return|outlet|exhaust)\d*(?:[._]|$)")
_LEVELS = WAVERING | {Unit.CELSIUS, Unit.WATTS, Unit.AMPERES, Unit.VOLTS, Unit.KELVIN_MARGIN}
"""What a source is known by to be alive. Counters and shares may well stand still."""
ADVICE = say("read it with another tool while the load changes; restart the BMC, or whatever it comes from")


def unproven(series: Series, every: Mapping[str, Series], phases: Mapping[str, Phase]) -> str:
    """Why a sensor's readings may be old ones, in words; empty where nothing says so.

    Args:
        series: The sensor's.
        every: All of the run, by id.
        phases: Of the run.
    """
    sensor = series.sensor
    if sensor.unit in WAVERING:
        stood = stopped_wavering(series)
        if stood is not None:
            return say("{stood} although it wavers all the time otherwise", stood=_stood(stood))
    for start, end, what in _changes(phases):
        stood = held(series, start, end)
        if stood is None or not _load_moved(every.values(), start, end):
            continue
        if follows_load(sensor):
            return say("{stood} while {what}", stood=_stood(stood), what=what)
        if _is_dead(sensor.source, every.values(), start, end):
            return say(
                "{stood} while {what}, and so did all that {source} gives",
                stood=_stood(stood),
                what=what,
                source=sensor.source,
            )
    return ""


def follows_load(sensor: Sensor) -> bool:
    """Whether its reading has to change with the load: what comes back from the machine, or is fed into it."""
    if kind_of(sensor.device) is not Kind.OTHER or sensor.device.startswith("facility"):
        return False
    return (
        sensor.unit is Unit.WATTS
        or (sensor.unit is Unit.CELSIUS and _FOLLOWS.search(sensor.id) is not None)
        or (sensor.unit is Unit.CELSIUS and sensor.device.startswith("coolant_return"))
    )


def _changes(phases: Mapping[str, Phase]) -> Iterator[tuple[float, float, str]]:
    loaded = [phase for name, phase in phases.items() if name in LOADED_PHASES]
    if loaded and "baseline" in phases:
        start, end = min(one.start_seconds for one in loaded), max(one.end_seconds for one in loaded)
        if end - start >= LEAST_SECONDS:
            yield start - BEFORE_SECONDS, end, say("the load went from idle to full")
    cooldown = phases.get("cooldown")
    if loaded and cooldown is not None and cooldown.duration_seconds >= LEAST_SECONDS:
        yield cooldown.start_seconds - BEFORE_SECONDS, cooldown.end_seconds, say("the load went from full to idle")


def _load_moved(every: Iterable[Series], start: float, end: float) -> bool:
    """Whether some processor or accelerator got warmer, or colder, meanwhile."""
    for one in every:
        if one.sensor.unit is not Unit.CELSIUS or kind_of(one.sensor.device) is Kind.OTHER:
            continue
        _, before = one.between(start, start + BEFORE_SECONDS).readings()
        _, after = one.between(end - LEAST_SECONDS / 2, end).readings()
        if before.size and after.size and abs(float(np.median(after) - np.median(before))) >= MOVED_CELSIUS:
            return True
    return False


def _is_dead(source: str, every: Iterable[Series], start: float, end: float) -> bool:
    """Whether nothing that a source measures moved, though some of it follows the load."""
    own = [one for one in every if one.sensor.source == source and one.sensor.unit in _LEVELS and one.present.any()]
    return any(follows_load(one.sensor) for one in own) and all(held(one, start, end) is not None for one in own)


def _stood(stood: Standstill) -> str:
    return say(
        "stood at {value:g} for {lasted}", value=stood.value, lasted=span(stood.end_seconds - stood.start_seconds)
    )
