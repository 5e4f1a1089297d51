"""What happened while a run was recorded that its findings should tell."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

from pytest_thermal.analysis import OwnTime
from pytest_thermal.findings.run_facts import time_scale_of
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import Event, Recording

CRITICAL = "critical"
"""A temperature crossed a critical threshold, a pump stopped or there is a leak, and the load was taken off."""
PUMP, LEAK = "pump", "leak"
"""The ``what`` of such an event where it was no temperature."""
LOAD, LOST = "load", "lost"
"""A load that ended by itself."""
USED, STARVED = "used", "starved"
"""CPU time that the loads had in the stretch up to then; and that it was little, with who had it instead."""

CLIENT_LIMITED = "client-limited"
"""The load generator itself was the limit: its times, and what it could ask for, are not the gateway's."""

TOGETHER, ENTERED, STARTS = "together", "entered", "starts"
"""How a phase was entered beside other nodes, and by how much their starts differ."""
MOST_DIFFER_SECONDS = 10.0
"""Of the nodes' starts of one phase, that is not worth a word. Own criterion: small beside any phase."""


def critical_stops(recording: Recording) -> tuple[str, ...]:
    """Why the load was taken off before its time, in words."""
    return tuple(_text(event) for event in recording.events if event.kind == CRITICAL)


def lost_loads(recording: Recording, kinds: frozenset[str] | None = None) -> tuple[str, ...]:
    """Loads that ended by themselves, in words; only of these kinds, where some are given."""
    return tuple(
        _text(event)
        for event in recording.events
        if event.kind == LOAD
        and event.detail.get("what") == LOST
        and (kinds is None or event.detail.get("load") in kinds)
    )


def client_limits(recording: Recording, phase: str) -> tuple[str, ...]:
    """Why the load generator was the limit in that phase, in words; empty where it was not."""
    return tuple(
        _text(event)
        for event in recording.events
        if event.kind == LOAD and event.detail.get("what") == CLIENT_LIMITED and event.detail.get("phase") == phase
    )


def own_times(recording: Recording) -> tuple[OwnTime, ...]:
    """What the loads had of the processors, stretch by stretch; what cannot be read is left out."""
    found = []
    scale = time_scale_of(recording.facts)
    for event in recording.events:
        detail = event.detail
        if event.kind != LOAD or detail.get("what") != USED:
            continue
        with contextlib.suppress(KeyError, TypeError, ValueError, ZeroDivisionError):
            seconds, cores = float(detail["seconds"]), float(detail["cores"])
            quota = detail.get("quota_cores")
            share = float(detail["cpu_seconds"]) / (seconds * cores)
            if not (seconds > 0 and cores > 0 and math.isfinite(seconds) and share >= 0):
                continue
            found.append(
                OwnTime(
                    start_seconds=event.time_seconds - seconds * scale,
                    end_seconds=event.time_seconds,
                    share=min(share, 1.0),  # what feeds accelerators may keep further cores busy
                    cores=cores,
                    stopped=float(detail.get("stopped", 0.0)),
                    quota_cores=None if quota is None else float(quota),
                )
            )
    return tuple(found)


def busy_beside(recording: Recording) -> str:
    """Who had the processors instead of the loads, in words; empty where nobody was seen."""
    told = (event.detail for event in recording.events if event.kind == LOAD)
    return next((str(one["beside"]) for one in told if one.get("what") == STARVED and one.get("beside")), "")


def apart(recording: Recording, phase: str) -> tuple[str, ...]:
    """Who was missing when a phase was entered together with other nodes, and starts that differ by much, in words."""
    found = []
    for event in recording.events:
        detail = event.detail
        if event.kind != TOGETHER or detail.get("phase") != phase:
            continue
        missing = detail.get("missing")
        if detail.get("what") == ENTERED and isinstance(missing, list) and missing:
            found.append(say("{phase} was entered without {names}", phase=phase, names=joined(", ", map(str, missing))))
        elif detail.get("what") == ENTERED and detail.get("text"):
            found.append(str(detail["text"]))
        differ = detail.get("differ_seconds")
        starts = detail.get("starts_seconds")
        if isinstance(differ, int | float) and isinstance(starts, Mapping) and differ > MOST_DIFFER_SECONDS:
            last = max(starts, key=lambda node: starts[node])
            found.append(
                say(
                    "{phase} began {seconds:.0f} s later on {node} than on the first node",
                    phase=phase,
                    seconds=float(differ),
                    node=str(last),
                )
            )
    return tuple(found)


def _text(event: Event) -> str:
    text = event.detail.get("text", "")
    told = text if isinstance(text, str) else str(text)
    return told or ", ".join(f"{name} {value}" for name, value in event.detail.items())
