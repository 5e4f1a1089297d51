"""What a listener is told while an experiment runs. Listeners are called from the watching thread, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HottestSensor:
    """The newest reading of one of the hottest temperatures, in °C."""

    sensor: str
    celsius: float
    since_baseline_celsius: float | None
    """Against the mean of the baseline so far; None while there is none."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where an experiment stands."""

    phase: str
    phase_seconds: float
    """Since the phase began."""
    phase_left_seconds: float
    left_seconds: float
    """Until the whole plan is done."""
    hottest: Sequence[HottestSensor] = ()
    requests: int = 0
    failed: int = 0
    in_flight: int = 0
    warnings: int = 0
    load: str = ""
    """What makes the heat just now, in a few words; empty when nothing does."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something a person should know at once: a threshold crossed, a load lost, a hung tool."""

    text: str
    kind: str
    """``phase``, ``note``, ``warning``, ``critical``, ``load``, ``recorder``."""
