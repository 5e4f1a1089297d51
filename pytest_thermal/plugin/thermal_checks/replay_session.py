"""A thermal run, or a log from elsewhere, that is judged again: no load, no waiting."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.model.said import say
from pytest_thermal.plugin.active_bench import active_bench
from pytest_thermal.plugin.thermal_checks.session import ThermalEnding, ThermalSession, ending_of

if TYPE_CHECKING:
    from pytest_thermal.bench import Monitor
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.recording import Recording

MOST_NOTES = 8
"""Of what was corrected while reading, in the header."""


class ReplaySession(ThermalSession):
    """A run, or a log from elsewhere, that is judged again."""

    def __init__(self, config: pytest.Config, recording: Recording) -> None:
        from pytest_thermal.findings import is_simulated

        super().__init__(config, demo=is_simulated(recording.facts))
        self._recording = recording

    @property
    def phases(self) -> Sequence[str]:
        """Of its plan, else those that are there."""
        from pytest_thermal.model.phases import PHASES

        plan = self._recording.facts.get("plan")
        planned = plan.get("seconds") if isinstance(plan, dict) else None
        if isinstance(planned, dict) and planned:
            return [name for name in PHASES if name in planned]
        return [phase.name for phase in self.judgement().recording.phases] or ["baseline", "steady", "cooldown"]

    @property
    def sensors(self) -> Sequence[Sensor]:
        """Of every column, and those that the run declares and has lost."""
        from pytest_thermal.recording.words import sensor_from_json

        found = {series.sensor.id: series.sensor for series in self._recording.series.values()}
        for told in self._recording.facts.get("sensors") or ():
            with contextlib.suppress(ValueError, TypeError):
                sensor = sensor_from_json(told)
                found.setdefault(sensor.id, sensor)
        return list(found.values())

    @property
    def path(self) -> Path | None:
        """What was given."""
        return self._recording.path

    @property
    def inference(self) -> bool:
        """By its requests."""
        load = self._recording.facts.get("load")
        mode = load.get("mode") if isinstance(load, dict) else None
        return self._recording.requests is not None or mode in ("inference", "mixed")

    def close(self) -> None:
        """Nothing goes on."""

    def conclude(self, *, interrupted: bool) -> None:
        """Nothing is written: what was recorded stays as it is."""
        if not interrupted:
            self.noted += self.third_parties()

    def state(self) -> object:
        """It never changes."""
        return "recorded"

    def ensure(self, phase: str) -> None:
        """Nothing: what was not recorded is for each finding to say."""

    def recording(self) -> Recording:
        """As it was read."""
        return self._recording

    def thresholds(self) -> tuple[Monitor, Callable[[str], str]]:
        """Of the bench that is named now, else those that the run itself was made with, else the defaults."""
        from pytest_thermal.findings.run_facts import recorded_thresholds

        active = active_bench(self.config)
        if not active.is_fallback:
            return active.bench.monitor, active.bench.origin
        return recorded_thresholds(self._recording.facts)

    def header(self) -> list[str]:
        """What is judged, by which limits."""
        active = active_bench(self.config)
        recording = self._recording
        bench = recording.facts.get("bench")
        said = say(", recorded on bench {bench}", bench=bench) if bench else ""
        simulated = say(" (SIMULATED)") if self.simulated else ""
        lines = [say("thermal: replay of {path}{said}{simulated}", path=recording.path, said=said, simulated=simulated)]
        if not active.is_fallback:
            lines.append(
                say(
                    "thermal: by the limits of bench {bench_name} ({chosen_by})",
                    bench_name=active.bench.name,
                    chosen_by=active.chosen_by,
                )
            )
        else:
            own = recording.facts.get("monitor")
            lines.append(say("thermal: by the limits of that run") if own else say("thermal: by default limits"))
        return lines + [say("thermal: note: {note}", note=note) for note in recording.notes[:MOST_NOTES]]

    def ending(self, node: str) -> ThermalEnding | None:
        """What to tell of this run."""
        return ending_of(self, node, self.header())
