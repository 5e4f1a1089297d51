"""A thermal run, or a log from elsewhere, that is judged again: no load, no waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin.thermal_session import ThermalEnding, ThermalSession, ending_of

if TYPE_CHECKING:
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.recording import Recording


class ReplaySession(ThermalSession):
    """A run, or a log from elsewhere, that is judged again."""

    def __init__(self, config: pytest.Config, recording: Recording) -> None:
        super().__init__(config, demo=bool(recording.facts.get("simulated", False)))
        self._recording = recording

    @property
    def phases(self) -> Sequence[str]:
        """Of its plan, else those that are there."""
        planned = self._recording.facts.get("plan", {}).get("seconds", {})
        if planned:
            from pytest_thermal.experiment.plan import PHASE_ORDER

            return [name for name in PHASE_ORDER if name in planned]
        return [phase.name for phase in self.judgement().recording.phases] or ["baseline", "steady", "cooldown"]

    @property
    def sensors(self) -> Sequence[Sensor]:
        """Of every column."""
        return [series.sensor for series in self._recording.series.values()]

    @property
    def path(self) -> Path | None:
        """What was given."""
        return self._recording.path

    @property
    def inference(self) -> bool:
        """By its requests."""
        return self._recording.requests is not None

    def close(self) -> None:
        """Nothing goes on."""

    def conclude(self, *, interrupted: bool) -> None:
        """Nothing is kept: what was recorded stays as it is."""

    def state(self) -> object:
        """It never changes."""
        return "recorded"

    def ensure(self, phase: str) -> None:
        """Nothing: what was not recorded is for each finding to say."""

    def recording(self) -> Recording:
        """As it was read."""
        return self._recording

    def ending(self, node: str) -> ThermalEnding | None:
        """What to tell of this run."""
        said = " (simulated: a run of the demo bench)" if self.simulated else ""
        return ending_of(self, node, [f"thermal: replay of {self._recording.path}{said}"])
