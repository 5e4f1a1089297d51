"""What a page is about: a recording, what was concluded of it, and where both came from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pytest_thermal.analysis import SETTLING_RATES
from pytest_thermal.findings import Limit, Limits, finding_as_json
from pytest_thermal.findings.judgement import told_finding
from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.findings.run_facts import is_simulated
from pytest_thermal.model import Sensor
from pytest_thermal.model.phases import PHASES
from pytest_thermal.model.said import unpacked
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.run_page.words import Words

SEVERITY = ("failed", "inconclusive", "blocked", "passed", "skipped")


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One judged run."""

    recording: Recording
    """In the time of a real loop, as ``Judgement.recording``."""
    summary: Mapping[str, Any]
    """As ``Judgement.summary()``, or ``summary.json``."""
    words: Words
    fingerprint: str = ""
    """Checksum of ``run.json``, which holds those of all other files; empty for a log from elsewhere."""
    judged_now: bool = False
    """Whether the summary was made for the page, and not by the run itself."""

    @property
    def time_scale(self) -> float:
        """How many times faster than a real one the loop was."""
        scale = self.summary.get("time_scale")
        return float(scale) if isinstance(scale, (int, float)) and scale > 0 else 1.0

    @property
    def simulated(self) -> bool:
        """Whether the bench was the demo bench."""
        return bool(self.summary.get("simulated")) or is_simulated(self.recording.facts)

    @cached_property
    def findings(self) -> tuple[Mapping[str, Any], ...]:
        """Those of the summary, and what became of each phase."""
        told = [one for one in self.summary.get("findings") or () if isinstance(one, Mapping)]
        return tuple(told_finding(one, self.words.told) for one in (*self._phases(), *told))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Of the summary, about the run as a whole."""
        english = [str(text) for text in self.summary.get("warnings") or ()]
        said = unpacked(self.summary.get("warnings_said"))
        return tuple(map(self.words.told, said)) if said == english else tuple(english)

    @cached_property
    def limits(self) -> Limits:
        """Those that were judged by."""
        found = {}
        for told in self.summary.get("limits") or ():
            limit = Limit(
                name=str(told["name"]),
                value=float(told["value"]),
                unit=str(told["unit"]),
                origin=self.words.told.template(str(told["origin"])),
            )
            found[limit.name] = limit
        return Limits(found, SETTLING_RATES["default"])

    def limit(self, name: str) -> Limit | None:
        """A limit by name, where the summary has it."""
        with contextlib.suppress(KeyError):
            return self.limits[name]
        return None

    def threshold(self, sensor: Sensor) -> Limit | None:
        """The temperature that a sensor must stay at or below, where the summary has that limit."""
        with contextlib.suppress(KeyError):
            return self.limits.threshold(sensor)
        return None

    def rise(self, sensor: Sensor) -> tuple[Limit, Limit] | None:
        """The least and the most that a temperature should rise by, where the summary has those limits."""
        with contextlib.suppress(KeyError):
            return self.limits.rise(sensor)
        return None

    def finding(self, check: str, subject: str) -> Mapping[str, Any] | None:
        """What a check concluded of a subject."""
        return self._by_name.get((check, subject))

    def figures(self, sensor: str) -> list[Mapping[str, Any]]:
        """Of one sensor, in the summary's order."""
        told = (self.summary.get("figures") or {}).get(sensor) or ()
        return [one for one in told if isinstance(one, Mapping)]

    @property
    def verdict(self) -> str:
        """``failed``, ``inconclusive`` or ``passed``; inconclusive where nothing was judged."""
        outcomes = {str(one.get("outcome")) for one in self.findings}
        if "failed" in outcomes:
            return "failed"
        unknown = outcomes & {"inconclusive", "blocked"} or self.recording.changed
        return "passed" if "passed" in outcomes and not unknown else "inconclusive"

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        return {(str(one.get("check")), str(one.get("subject"))): one for one in self.findings}

    def _phases(self) -> Iterator[Mapping[str, Any]]:
        plan = self.recording.facts.get("plan")
        planned = plan.get("seconds") if isinstance(plan, Mapping) else None
        names = {phase.name for phase in self.recording.phases} | set(planned if isinstance(planned, Mapping) else ())
        for name in PHASES:
            if name in names:
                yield finding_as_json(phase_finding(self.recording, name))
