"""Each phase of a run in a line: how long it was, how hot things stood at its end, what they drew, who was answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_thermal.findings import Judgement
from pytest_thermal.findings.devices import power_of
from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.findings.subjects import in_order, is_heated, main_temperature
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.reporting.phase_table import EDGE_READINGS
from pytest_thermal.reporting.run_page.traffic import tally


@dataclass(frozen=True, kw_only=True)
class PhaseFigures:
    """One phase; None is what was not measured."""

    name: str
    outcome: str
    """Of the phase itself."""
    seconds: float | None
    """As long as it lasted, in wall seconds; None where it was not gone through."""
    cpu_celsius: float | None
    """The hottest processor at the phase's end."""
    accelerator_celsius: float | None
    """The hottest accelerator at the phase's end."""
    watts: float | None
    """What all processors and accelerators whose power is measured drew together at the phase's end."""
    requests: int | None
    """That ended in it; None where the run had none at all."""
    failed: int | None


def phase_figures(judgement: Judgement, planned: Iterable[str]) -> tuple[PhaseFigures, ...]:
    """Every phase that was gone through or planned, in order."""
    recording = judgement.recording
    there = {phase.name: phase for phase in recording.phases}
    sensors = in_order(one.sensor for one in recording.series.values())
    devices = list(dict.fromkeys(sensor.device for sensor in sensors if is_heated(sensor)))
    mains = [main for device in devices if (main := main_temperature(device, sensors)) is not None]
    powers = [power for device in devices if (power := power_of(device, recording.series)) is not None]

    def hottest(kind: Kind, phase: Phase | None) -> float | None:
        return max(
            _at_the_end([recording.series[one.id] for one in mains if kind_of(one.device) is kind], phase), default=None
        )

    found = []
    names = {*there, *planned}
    for name in (name for name in PHASES if name in names):
        phase = there.get(name)
        drawn = _at_the_end(powers, phase)
        requests = recording.requests
        counted = None if requests is None else tally(requests, time_scale=judgement.time_scale, phase=name)
        found.append(
            PhaseFigures(
                name=name,
                outcome=str(phase_finding(recording, name).outcome),
                seconds=None if phase is None else phase.duration_seconds / judgement.time_scale,
                cpu_celsius=hottest(Kind.CPU, phase),
                accelerator_celsius=hottest(Kind.ACCELERATOR, phase),
                watts=sum(drawn) if drawn else None,
                requests=None if counted is None else counted.total,
                failed=None if counted is None else counted.failed,
            )
        )
    return tuple(found)


def _at_the_end(series: Sequence[Series], phase: Phase | None) -> list[float]:
    """The median of each one's last readings in a phase; of those that have any."""
    if phase is None:
        return []
    last = [one.during(phase).readings()[1][-EDGE_READINGS:] for one in series]
    return [float(np.median(values)) for values in last if values.size]
