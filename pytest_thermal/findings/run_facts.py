"""What ``run.json`` says of a run that its findings need: load, plan, what it may be compared with."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from pytest_thermal.analysis import RunFacts
from pytest_thermal.bench import Monitor, is_loopback
from pytest_thermal.findings.subjects import is_heated
from pytest_thermal.findings.telling import span
from pytest_thermal.model import Sensor
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import Recording

BY_MODE: Mapping[str, frozenset[str]] = {
    "cpu": frozenset({"cpu"}),
    "gpu": frozenset({"accelerator"}),
    "inference": frozenset({"inference"}),
    "mixed": frozenset({"cpu", "inference"}),
}
"""What each ``[stress] mode`` puts under load."""
CUT_SHORT = 0.95
"""Of the planned length of a phase; less was not gone through."""
SIMULATED_IDENTITY = "simulated-"
"""How the identity of a device of the demo bench begins."""
_VERSION = re.compile(r"\s+v?\d[\w.-]*")
_LOADED_BY = {
    Kind.CPU: frozenset({"cpu"}),
    Kind.ACCELERATOR: frozenset({"accelerator", "inference"}),
    Kind.OTHER: frozenset[str](),
}


def planned_loads(facts: Mapping[str, Any]) -> frozenset[str] | None:
    """The kinds of load that a run was to have: ``cpu``, ``accelerator``, ``inference``; None where it does not say.

    By its mode, else by what was started; not both, since a limit phase starts more than steady had.
    """
    load = facts.get("load")
    mode = str(load.get("mode")) if isinstance(load, Mapping) else ""
    if mode in BY_MODE:
        return BY_MODE[mode]
    return frozenset(str(work.get("kind")) for work in _works(facts)) or None


def is_to_be_loaded(device: str, loads: Collection[str] | None) -> bool:
    """Whether a device is to be loaded; where nothing says what is, every one is."""
    return loads is None or bool(loads_of(device) & set(loads))


def loads_of(device: str) -> frozenset[str]:
    """The kinds of load that reach a device."""
    return _LOADED_BY[kind_of(device)]


def serves_itself(facts: Mapping[str, Any]) -> bool:
    """Whether the inference that a run asked for was served by the machine itself: one of its gateways is loopback."""
    gateways = facts.get("gateways")
    return isinstance(gateways, Mapping) and any(is_loopback(str(url)) for url in gateways.values())


def planned_seconds(facts: Mapping[str, Any], phase: str) -> float | None:
    """How long a phase was to last, in wall seconds; None where the run does not say."""
    plan = facts.get("plan")
    seconds = plan.get("seconds") if isinstance(plan, Mapping) else None
    value = seconds.get(phase) if isinstance(seconds, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else None


def why_not_whole(lasted: Mapping[str, float], planned: Mapping[str, float], names: Collection[str]) -> tuple[str, ...]:
    """Why a run that ended in order is yet no whole one: phases of these names are not there, or shorter than planned.

    Both lengths by phase, in wall seconds; of a phase that was not planned only that it is there is asked.
    """
    lacking = [name for name in names if name not in lasted]
    if lacking:
        return (say("it has no {names}", names=joined(" and no ", lacking)),)
    return tuple(
        say(
            "its {phase} was cut short: {lasted} of {planned}",
            phase=name,
            lasted=span(lasted[name]),
            planned=span(planned[name]),
        )
        for name in names
        if lasted[name] < CUT_SHORT * planned.get(name, 0.0)
    )


def lengths_of(facts: Mapping[str, Any]) -> dict[str, float]:
    """Phases by ``run.json`` and how long they lasted, in wall seconds; one that has no end is not among them."""
    found = {}
    told = facts.get("phases")
    for phase in told if isinstance(told, list) else []:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            lasted = float(phase["end_seconds"]) - float(phase["start_seconds"])
            if lasted >= 0:
                found[str(phase["name"])] = lasted
    return found


def plan_of(facts: Mapping[str, Any]) -> dict[str, float]:
    """How long each phase was to last, in wall seconds; those of which the run says it."""
    return {name: seconds for name in PHASES if (seconds := planned_seconds(facts, name)) is not None}


def is_simulated(facts: Mapping[str, Any]) -> bool:
    """Whether a run was made on the demo bench: it says so, or its loop is faster than any, or its sensors say so."""
    if facts.get("simulated") or time_scale_of(facts) != 1.0:
        return True
    sensors = facts.get("sensors")
    told = [one.get("identity") for one in sensors if isinstance(one, Mapping)] if isinstance(sensors, list) else []
    return any(str(identity).startswith(SIMULATED_IDENTITY) for identity in told)


def time_scale_of(facts: Mapping[str, Any]) -> float:
    """How many times faster than a real one the run's loop was; 1 where it does not say."""
    scale = facts.get("time_scale")
    return float(scale) if isinstance(scale, (int, float)) and scale > 0 else 1.0


def recorded_thresholds(facts: Mapping[str, Any]) -> tuple[Monitor, Callable[[str], str]]:
    """The thresholds that a run was made with, and where each came from; the defaults where it does not say."""
    told, origins = facts.get("monitor"), facts.get("monitor_origins")
    try:
        monitor = Monitor.model_validate(told or {})
    except ValidationError:  # of another version
        monitor, origins = Monitor(), {}
    known: Mapping[str, Any] = origins if isinstance(origins, Mapping) else {}
    return monitor, lambda name: str(known.get(name, "default"))


def node_of_facts(facts: Mapping[str, Any]) -> str:
    """The node that a run was made on: of virtual nodes on one host its own name; empty where the run does not say."""
    host = facts.get("host")
    told = host if isinstance(host, Mapping) else {}
    return str(facts.get("node") or told.get("node") or told.get("name") or "")


def machine_of(facts: Mapping[str, Any]) -> str:
    """What tells machines of one name apart; empty where the run does not say."""
    host = facts.get("host")
    return str((host if isinstance(host, Mapping) else {}).get("machine_id") or "")


def comparable_facts(recording: Recording) -> RunFacts:
    """What must be the same for two runs to be comparable, from ``run.json`` and the sensors."""
    return facts_of(recording.facts, [series.sensor for series in recording.series.values() if len(series)])


def facts_of(facts: Mapping[str, Any], sensors: Collection[Sensor]) -> RunFacts:
    """The same from a run's facts and sensors, without its samples."""
    load = facts.get("load")
    caps = {sensor.device: sensor.limits["cap"] for sensor in sensors if "cap" in sensor.limits}
    bench = str(facts.get("bench", ""))
    return RunFacts(
        bench=f"{bench} (simulated)" if is_simulated(facts) else bench,
        load={**(dict(_flat(load, "")) if isinstance(load, Mapping) else {}), **_tools(facts)},
        power_limits=caps,
        sensors=frozenset(f"{sensor.id} ({sensor.identity})" for sensor in sensors if is_heated(sensor)),
        steady_seconds=(planned_seconds(facts, "steady") or 0.0),
    )


def _works(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [work for work in facts.get("works") or () if isinstance(work, Mapping)]


def _tools(facts: Mapping[str, Any]) -> dict[str, Scalar]:
    """What made the heat of steady, by kind: each heats differently. Versions do not matter."""
    loads = planned_loads(facts) or frozenset()
    return {
        f"{work['kind']} tool": _VERSION.sub("", str(work["tool"]))
        for work in _works(facts)
        if work.get("kind") in loads and work.get("tool")
    }


def _flat(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Scalar]]:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif value is None or isinstance(value, (str, int, float, bool)):
            yield name, value
        else:
            yield name, str(value)
