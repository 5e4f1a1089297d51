"""The thermal run as tests see it: the same whether it is made now or judged again from its directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.said import say
from pytest_thermal.plugin.evidence.properties import add_properties
from pytest_thermal.plugin.keys import FINDINGS
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.outcomes import FindingWarning, conclude
from pytest_thermal.plugin.parametrisation import NOTHING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_thermal.findings import Judgement, Limits
    from pytest_thermal.model.readings import Sensor
    from pytest_thermal.model.series import Figure, Phase, Series
    from pytest_thermal.recording import Recording, Requests

PHASES_NEEDED: dict[str, str] = {
    "baseline": "baseline",
    "rebound": "cooldown",
    "coverage": "cooldown",
    "leak": "cooldown",
}
"""The last phase that a check needs; any other needs those under load."""


class Evidence(Protocol):
    """Where a run's recording comes from."""

    @property
    def simulated(self) -> bool:
        """Whether the bench is simulated."""
        ...

    def ensure(self, phase: str) -> None:
        """Have that phase, and those before it."""
        ...

    def judgement(self) -> Judgement:
        """All that is known so far, judged."""
        ...

    @property
    def phases(self) -> Sequence[str]:
        """The phases that the run has or will have, in order."""
        ...

    @property
    def sensors(self) -> Sequence[Sensor]:
        """Every sensor of the run."""
        ...

    @property
    def path(self) -> Path | None:
        """The run directory or log."""
        ...

    @property
    def noted(self) -> list[Finding]:
        """What tests asked, for the summary."""
        ...


class ThermalRun:
    """One thermal run. Figures and findings bring about the phases that they need."""

    def __init__(self, evidence: Evidence, limits: Limits) -> None:
        self._evidence = evidence
        self.limits = limits

    @property
    def simulated(self) -> bool:
        """Whether what was measured is the demo bench."""
        return self._evidence.simulated

    @property
    def path(self) -> Path | None:
        """The run directory, once there is one."""
        return self._evidence.path

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases of this run, in order."""
        return tuple(self._evidence.phases)

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """Every sensor of the run."""
        return tuple(self._evidence.sensors)

    def ensure(self, phase: str) -> None:
        """Go through the phases up to this one, those that are missing; raises ExperimentBrokenError if it cannot."""
        self._evidence.ensure(phase)

    def prepare(self, check: str) -> None:
        """Go through the phases that a check needs."""
        if check == "phase":
            return
        wanted = PHASES_NEEDED.get(check, "limit" if "limit" in self.phases else "steady")
        names = [name for name in self.phases if name == wanted] or list(self.phases[-1:])
        for name in names:
            self.ensure(name)

    @property
    def recording(self) -> Recording:
        """What was recorded so far, in bench time: seconds of a demo bench are stretched by its time scale."""
        return self._evidence.judgement().recording

    def phase(self, name: str) -> Phase:
        """When a phase began and ended.

        Raises:
            KeyError: The run has no such phase.
        """
        self.ensure(name)
        found = {phase.name: phase for phase in self.recording.phases}
        return next(phase for known, phase in found.items() if known == name)

    def series(self, sensor: str) -> Series:
        """A sensor's readings over the run."""
        return self.recording.series[sensor]

    @property
    def requests(self) -> Requests | None:
        """The inference requests of the load; None where there were none."""
        return self.recording.requests

    def rise(self, sensor: str) -> Figure:
        """Rise of a temperature in steady over its baseline, °C, with its uncertainty."""
        return self.figure(sensor, "rise")

    def note(self, found: Finding) -> None:
        """Keep a finding that a test asked for, for the summary."""
        self._evidence.noted.append(found)

    def figure(self, sensor: str, name: str) -> Figure:
        """A figure of a sensor by its name: `baseline`, `steady`, `rise`, `peak`, `resistance`, and so on.

        Raises:
            KeyError: There is no such figure.
        """
        self.prepare("cooldown" if name == "rebound" else name)
        for figure in self._evidence.judgement().figures().get(sensor, ()):
            if figure.name == name:
                return figure
        raise KeyError(f"{sensor} has no figure {name!r}")

    def finding(self, check: str, subject: str) -> Finding:
        """What a check concludes of a sensor, device or phase."""
        if check == "phase":
            from pytest_thermal.findings.phase import phase_finding

            self.ensure(subject)
            return phase_finding(self.recording, subject)
        self.prepare(check)
        if subject == NOTHING:
            return _nothing_measured(check)
        return self._evidence.judgement().finding(check, subject)


class JudgedRun:
    """A thermal run as one test asks it: its findings end the test."""

    def __init__(self, run: ThermalRun, item: pytest.Item) -> None:
        self._run = run
        self._item = item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def require(self, check: str, subject: str) -> Finding:
        """A check that must hold for a sensor, device or phase.

        Raises:
            FindingFailed: it failed.
            Inconclusive: it could not be measured.
            pytest.skip.Exception: it does not apply, or the run was broken before.
        """
        __tracebackhide__ = True
        found = self._run.finding(check, subject)
        self._item.stash.setdefault(FINDINGS, []).append(found)
        self._run.note(found)
        add_properties(self._item, found, simulated=self._run.simulated, run=self._run.path)
        told = catalogue(self._item.config)
        for text in found.warnings:
            self._item.warn(FindingWarning(told(say("{check}: {text}", check=found.check, text=text))))
        conclude(found, advisory=self._item.get_closest_marker("advisory") is not None)
        return found


def _nothing_measured(check: str) -> Finding:
    return Finding(
        check=check,
        layer=check,
        subject=NOTHING,
        outcome=Outcome.INCONCLUSIVE,
        seen=say("no temperature of a processor or an accelerator is measured on this bench"),
        likely=say("a virtual machine, a container without the host's /sys, or a driver that is missing"),
        advice=say(
            "pytest --sensors says why for each source; cpu_temp_path and gpu_temp_cmd name a file and a command"
        ),
    )
