"""What happened while a run was recorded that its findings should tell."""

from __future__ import annotations

from pytest_thermal.recording import Event, Recording

CRITICAL = "critical"
"""A temperature crossed a critical threshold, and the load was taken off."""
LOAD, LOST = "load", "lost"
"""A load that ended by itself."""

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


def _text(event: Event) -> str:
    return str(event.detail.get("text", "")) or ", ".join(f"{name} {value}" for name, value in event.detail.items())
