"""The judgement of one recording: each check of each subject, made when first asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pytest_thermal.findings import comparison, exertion, heat, loop, throughput, trust
from pytest_thermal.findings.earlier import Earlier
from pytest_thermal.findings.limits import Limits
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.run_events import critical_stops, lost_loads
from pytest_thermal.findings.run_facts import CUT_SHORT, planned_seconds, time_scale_of
from pytest_thermal.findings.stretching import stretch
from pytest_thermal.findings.subjects import CHECKS, has_limits, is_heated, subjects
from pytest_thermal.findings.telling import shortened, span
from pytest_thermal.findings.verdict import OpenError, Verdict, undecided
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.said import packed, say, unpacked
from pytest_thermal.model.series import Figure
from pytest_thermal.recording import Recording


class Judgement:
    """Findings and figures of one recording; lazy, and each worked out once.

    Args:
        recording: A run, or a log from elsewhere, whose phases are then found where it names none.
        limits: Of its bench (``limits_for``).
        earlier: What to compare it with (``choose_earlier``); None: nothing, and ``drift`` is skipped.
        time_scale: How many times faster than a real one the bench's loop was: all is judged in a real one's time.
        simulated: Whether the bench is the demo bench: told in each finding's evidence and in the summary.
        loads: What was to be loaded, of ``cpu``, ``accelerator`` and ``inference``; None: what ``run.json`` says, and
            where it says nothing, everything.
    """

    def __init__(
        self,
        recording: Recording,
        limits: Limits,
        *,
        earlier: Earlier | None = None,
        time_scale: float = 1.0,
        simulated: bool = False,
        loads: Collection[str] | None = None,
    ) -> None:
        self.limits = limits
        self.simulated = simulated
        self.time_scale = time_scale
        self._earlier = earlier
        self._material = Material(
            stretch(recording, time_scale), limits, loads=loads, earlier=_before(earlier, limits, loads)
        )
        self._found: dict[tuple[str, str], Finding] = {}

    @property
    def recording(self) -> Recording:
        """What is judged, in the time of a real loop, with the phases that were found in it."""
        return self._material.recording

    def subjects(self, check: str) -> tuple[str, ...]:
        """What a check is about in this recording.

        Raises:
            KeyError: There is no check of that name.
        """
        requests = self.recording.requests
        inference = "inference" in (self._material.loads or ()) or (requests is not None and len(requests) > 0)
        return subjects(check, self._material.sensors, inference=inference)

    def finding(self, check: str, subject: str) -> Finding:
        """What a check concludes about a subject; inconclusive for a sensor that the recording has not.

        Raises:
            KeyError: There is no check of that name.
        """
        if check not in CHECKS:
            raise KeyError(f"no thermal check {check!r}; there are: {', '.join(CHECKS)}")
        key = check, subject
        if key not in self._found:
            self._found[key] = self._judge(check, subject)
        return self._found[key]

    def findings(self) -> tuple[Finding, ...]:
        """Every check of every subject, in the order of ``CHECKS``."""
        return tuple(self.finding(check, subject) for check in CHECKS for subject in self.subjects(check))

    def figures(self) -> Mapping[str, tuple[Figure, ...]]:
        """All figures of each heated temperature, by sensor id."""
        found = {}
        for sensor in self._material.sensors:
            series = self._material.series(sensor.id)
            if series is None or not is_heated(sensor) or not series.present.any():
                continue
            figures = self._material.figures(series).figures()
            found[sensor.id] = (
                (*figures, self._material.resistance(series)) if self._material.is_main(sensor) else figures
            )
        return found

    def warnings(self) -> tuple[str, ...]:
        """What a reader of the whole run should know: stops, lost loads, phases cut short or found."""
        told = [*critical_stops(self.recording), *lost_loads(self.recording)]
        if self.recording.state == "cut off":
            told.append(say("the run was cut off: it is judged as far as it was recorded"))
        for name, phase in self._material.phases.items():
            planned = planned_seconds(self.recording.facts, name)
            if planned and phase.duration_seconds < CUT_SHORT * planned * self.time_scale:
                lasted = phase.duration_seconds / self.time_scale
                told.append(
                    say(
                        "{name} was cut short: {lasted} of {planned}",
                        name=name,
                        lasted=span(lasted),
                        planned=span(planned),
                    )
                )
        if not any(is_heated(sensor) and has_limits(sensor) for sensor in self._material.sensors):
            told.append(
                say(
                    "no temperature of a processor or an accelerator: its heat cannot be judged; a log's "
                    "columns are called as in cpu0.temperature_celsius, gpu0.temperature_celsius"
                )
            )
        if self._material.phases_from:
            told.append(
                say(
                    "the log names no phases: they were found from {phases_from}",
                    phases_from=self._material.phases_from,
                )
            )
        elif not self._material.phases:
            told.append(say("no phases: {why_no_phases}", why_no_phases=self._material.why_no_phases))
        return tuple(told)

    def summary(self) -> dict[str, Any]:
        """Figures, findings and limits with their origins as plain JSON, for ``summary.json``."""
        earlier = self._earlier
        return {
            "simulated": self.simulated,
            "time_scale": self.time_scale,
            "state": self.recording.state,
            "against": None if earlier is None else _against(earlier),
            "warnings": list(self.warnings()),
            "warnings_said": packed(list(self.warnings())),
            "limits": [
                {"name": limit.name, "value": limit.value, "unit": limit.unit, "origin": limit.origin}
                for limit in self.limits
            ],
            "phases": [
                {"name": phase.name, "start_seconds": phase.start_seconds, "end_seconds": phase.end_seconds}
                for phase in self.recording.phases
            ],
            "figures": {sensor: [_figure(one) for one in figures] for sensor, figures in self.figures().items()},
            "findings": [finding_as_json(found) for found in self.findings()],
        }

    # ---------------------------------------------------------------------------------------------------------------

    def _judge(self, check: str, subject: str) -> Finding:
        begin = time.perf_counter()
        try:
            verdict = self._checks()[check](subject)
        except OpenError as error:
            verdict = undecided(error)
        evidence = {**verdict.evidence, "simulated": True} if self.simulated else verdict.evidence
        return Finding(
            check=check,
            layer=check,
            subject=subject,
            outcome=verdict.outcome,
            seen=shortened(verdict.seen),
            likely=verdict.likely,
            advice=verdict.advice,
            evidence=evidence,
            warnings=verdict.warnings if verdict.outcome is not Outcome.INCONCLUSIVE else (),
            duration_seconds=time.perf_counter() - begin,
        )

    def _checks(self) -> Mapping[str, Callable[[str], Verdict]]:
        material = self._material
        return {
            "coverage": lambda subject: trust.coverage(material, subject),
            "baseline": lambda subject: heat.baseline(material, subject),
            "threshold": lambda subject: heat.threshold(material, subject),
            "rise": lambda subject: heat.rise(material, subject),
            "settled": lambda subject: heat.settled(material, subject),
            "load": lambda subject: exertion.load(material, subject),
            "throttling": lambda subject: exertion.throttling(material, subject),
            "pump": lambda subject: loop.pump(material, subject),
            "leak": lambda subject: loop.leak(material, subject),
            "rebound": lambda subject: loop.rebound(material, subject),
            "drift": lambda subject: comparison.drift(material, self._earlier, subject),
            "throughput": lambda _: throughput.throughput(material, self.time_scale),
        }


def _before(earlier: Earlier | None, limits: Limits, loads: Collection[str] | None) -> Material | None:
    if earlier is None or earlier.recording is None:
        return None
    return Material(stretch(earlier.recording, time_scale_of(earlier.recording.facts)), limits, loads=loads)


def _against(earlier: Earlier) -> dict[str, Any]:
    run = earlier.recording.path.name if earlier.recording is not None else None
    return {"asked": earlier.name, "run": run, "why": list(earlier.why)}


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "name": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "uncertainty": figure.uncertainty,
        "reason": figure.reason,
        "detail": {name: _plain(value) for name, value in figure.detail.items()},
    }


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """A finding as it stands in ``summary.json``: in English, and beside it what its words are made of."""
    warnings = list(finding.warnings)
    return {
        "check": finding.check,
        "subject": finding.subject,
        "outcome": str(finding.outcome),
        "seen": finding.seen,
        "likely": finding.likely,
        "advice": finding.advice,
        "evidence": {name: _plain(value) for name, value in finding.evidence.items()},
        "warnings": warnings,
        "said": packed([finding.seen, finding.likely, finding.advice, *warnings]),
    }


def told_finding(finding: Mapping[str, Any], tell: Callable[[str], str]) -> Mapping[str, Any]:
    """A finding of ``finding_as_json``, told in another language; as it stands where its English text was changed."""
    english = [finding.get("seen"), finding.get("likely"), finding.get("advice"), *(finding.get("warnings") or ())]
    said = unpacked(finding.get("said"))
    if not isinstance(said, list) or said != english:
        return finding
    seen, likely, advice, *warnings = (tell(text) if isinstance(text, str) else text for text in said)
    return {**finding, "seen": seen, "likely": likely, "advice": advice, "warnings": warnings}


def _plain(value: object) -> object:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
