"""What happened while a run was recorded that its findings should tell."""

from __future__ import annotations

from pytest_thermal.recording import Event, Recording

CRITICAL = "critical"
"""A temperature crossed a critical threshold, and the load was taken off."""
LOAD, LOST = "load", "lost"
"""A load that ended by itself."""


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


def _text(event: Event) -> str:
    return str(event.detail.get("text", "")) or ", ".join(f"{name} {value}" for name, value in event.detail.items())
