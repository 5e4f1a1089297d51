"""What happened while a run was recorded that its findings should tell."""

from __future__ import annotations

import contextlib
import math

from pytest_thermal.analysis import OwnTime
from pytest_thermal.findings.run_facts import time_scale_of
from pytest_thermal.recording import Event, Recording

CRITICAL = "critical"
"""A temperature crossed a critical threshold, and the load was taken off."""
LOAD, LOST = "load", "lost"
"""A load that ended by itself."""
USED, STARVED = "used", "starved"
"""CPU time that the loads had in the stretch up to then; and that it was little, with who had it instead."""

CLIENT_LIMITED = "client-limited"
"""The load generator itself was the limit: its times, and what it could ask for, are not the gateway's."""


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


def _text(event: Event) -> str:
    text = event.detail.get("text", "")
    told = text if isinstance(text, str) else str(text)
    return told or ", ".join(f"{name} {value}" for name, value in event.detail.items())
