"""A recording as it was read, whether from a run directory or from a log of elsewhere."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model import Missing
from pytest_thermal.model.series import FloatArray, Phase, Series
from pytest_thermal.recording.labels import Labels


@dataclass(frozen=True, kw_only=True)
class MissingStretch:
    """Why a sensor's values are missing, from a time on until a value comes or another stretch begins."""

    time_seconds: float
    sensor_id: str
    reason: Missing
    detail: str


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened: a phase, a load, a warning, a fault, or what the recorder had to say."""

    time_seconds: float
    kind: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Timing:
    """How the sampling of one source went; all arrays have one entry per tick."""

    source: str
    time_seconds: FloatArray
    lateness_ms: FloatArray
    """How long after it was due a reading began; NaN where there was no reading."""
    read_ms: FloatArray
    """How long it took."""
    period_seconds: float
    reason: str
    """Why it did not sample at the end; empty where it did."""
    missed: int | None
    """Slots without a reading, as the recorder counted them; None where it did not say."""
    priority: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Requests:
    """The load's requests, one entry each, in the order in which they ended."""

    start_seconds: FloatArray
    ttft_seconds: FloatArray
    """Until the first token; NaN where there was none."""
    latency_seconds: FloatArray
    """NaN where it is not known."""
    status: NDArray[np.int64]
    """The HTTP status; 0 where there was no answer."""
    error: Labels
    """Empty where there was none."""
    prompt_tokens: FloatArray
    completion_tokens: FloatArray
    """NaN where the answer did not say."""
    phase: Labels
    domain: Labels
    """Whose gateway was asked; empty where the run does not say."""
    limit: Labels
    """Which limit refused it; empty for none, and where the run does not say."""

    def __len__(self) -> int:
        return int(self.start_seconds.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Series, phases and everything else that is known of one recording."""

    path: Path
    state: str
    """``finished``, ``cut off``, ``recording`` (it goes on), ``prepared`` (nothing yet), or ``foreign``."""
    series: Mapping[str, Series]
    """By sensor id."""
    phases: tuple[Phase, ...]
    notes: tuple[str, ...]
    """Everything that was corrected or left out while reading, with file and line."""
    missing: tuple[MissingStretch, ...] = ()
    events: tuple[Event, ...] = ()
    requests: Requests | None = None
    timing: Mapping[str, Timing] = field(default_factory=dict)
    """By source."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """``run.json``; empty for a log from elsewhere."""
    summary: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    """What is not as it was when the run ended and was sealed: files edited, gone or added since."""
    absolute_time: bool = True
    """Whether times are unix time. A log that only counts seconds, or has no date, begins at 0 instead."""

    @property
    def start_seconds(self) -> float | None:
        """Time of the first sample of any sensor; None where there is none."""
        return min((float(s.time_seconds[0]) for s in self.series.values() if len(s)), default=None)

    @property
    def end_seconds(self) -> float | None:
        """Time of the last sample of any sensor; None where there is none."""
        return max((float(s.time_seconds[-1]) for s in self.series.values() if len(s)), default=None)

    def why_missing(self, sensor_id: str, time_seconds: float) -> MissingStretch | None:
        """Why that sensor has no value at that time; None where nothing says so."""
        stretches = self._stretches.get(sensor_id, [])
        index = bisect.bisect_right([stretch.time_seconds for stretch in stretches], time_seconds + 0.0005)
        return stretches[index - 1] if index else None

    @cached_property
    def _stretches(self) -> dict[str, list[MissingStretch]]:
        found: dict[str, list[MissingStretch]] = {}
        for stretch in sorted(self.missing, key=lambda stretch: stretch.time_seconds):
            found.setdefault(stretch.sensor_id, []).append(stretch)
        return found
