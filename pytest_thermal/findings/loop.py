"""The loop itself: its pump, whether it is tight, and what comes back when the load is off."""

from __future__ import annotations

import numpy as np

from pytest_thermal.analysis import Answer
from pytest_thermal.analysis.numerics import runs_of
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import (
    fault_words,
    need_belief,
    need_coverage,
    need_fresh,
    need_phases,
    need_series,
    need_value,
)
from pytest_thermal.findings.telling import degrees, span
from pytest_thermal.findings.trust import OF_A_LOG, OF_A_RUN
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.kinds import LEAK_ALARM, LEAK_WARNING
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.said import say
from pytest_thermal.model.series import FloatArray, Series

SLOW_READINGS = 3
"""A speed that is low for so many readings in a row is slow; a single one may be an error of the tachometer."""
COOLED = 2.0
"""Times the least rebound: a temperature that falls by less in cooldown has shown nothing about it."""


def pump(material: Material, subject: str) -> Verdict:
    """Whether the pump keeps its speed while there is heat to move."""
    series = need_series(material, subject)
    need_phases(material, "baseline", "steady")
    limit = material.limits["pump_least"]
    usual = max(_median(series, material, phase) for phase in ("baseline", "steady"))
    times, values = _under_load(series, material)
    slow = values < limit.value * usual if usual > 0 else values <= 0
    starts, ends = runs_of(slow)
    lasting = np.flatnonzero(ends - starts >= SLOW_READINGS)
    evidence: dict[str, Scalar] = {"usual_rpm": usual, "lowest_rpm": float(values.min()) if values.size else None}
    if lasting.size:
        first = int(lasting[0])
        since = float(times[starts[first]])
        until = float(times[ends[first]]) if ends[first] < times.size else float(times[-1]) + series.period_seconds
        lowest = float(values[starts[first] : ends[first]].min())
        what = say("stood still") if lowest <= 0 else say("fell to {lowest:.0f} rpm", lowest=lowest)
        where = _where(material, since)
        compared = (
            say("{usual:.0f} rpm otherwise; at least {limit} of that", usual=usual, limit=limit.text)
            if usual > 0
            else say("and never turned")
        )
        return failed(
            say(
                "{subject} {what} for {until} from {where} on ({compared})",
                subject=subject,
                what=what,
                until=span(until - since),
                where=where,
                compared=compared,
            ),
            likely=say("the pump lost its power, is blocked, or its control turns it down"),
            advice=say("take the load off; look at its connector and its control, listen to it"),
            evidence=evidence,
        )
    need_coverage(material, series, "baseline", *(phase for phase in LOADED_PHASES if phase in material.phases))
    need_fresh(material, series)
    return passed(
        say(
            "{subject} turns at {usual:.0f} rpm, at its slowest at {values:.0f} rpm under load",
            subject=subject,
            usual=usual,
            values=values.min(),
        ),
        evidence=evidence,
    )


def leak(material: Material, subject: str) -> Verdict:
    """Whether the detector saw the loop dry, from the first reading to the last."""
    series = need_series(material, subject)
    times, values = series.readings()
    worst = float(values.max())
    evidence: dict[str, Scalar] = {"worst_state": worst}
    if worst >= LEAK_WARNING:
        first = float(times[int(np.argmax(values >= min(worst, LEAK_ALARM)))])
        where = _where(material, first)
        return failed(
            say("{subject} reports a leak from {where} on", subject=subject, where=where)
            if worst >= LEAK_ALARM
            else say("{subject} warns of a leak from {where} on", subject=subject, where=where),
            likely=say(
                "coolant has come out of the loop; or the detector is wet with something else, or its cable is off"
            ),
            advice=say(
                "power off what stands below, close the loop's valves, look for the drop; then dry the detector"
            ),
            evidence=evidence,
        )
    need_phases(material, *(OF_A_LOG if material.is_foreign else OF_A_RUN))
    need_coverage(material, series, *material.phases)
    need_fresh(material, series)
    return passed(
        say("{subject} saw no leak in {count:,} readings", subject=subject, count=values.size), evidence=evidence
    )


def rebound(material: Material, subject: str) -> Verdict:
    """Whether the temperature only falls once the load is off."""
    series = need_series(material, subject)
    need_phases(material, "cooldown")
    limit, seconds = material.limits["rebound_most"], material.limits["rebound_seconds"]
    figures = material.figures(series)
    found = figures.rebound
    if found is None:
        raise OpenError(say("the cooldown of {subject} was not judged", subject=subject))
    evidence: dict[str, Scalar] = {
        "rebound_celsius": found.rise.value,
        "limit_celsius": limit.value,
        "limit_seconds": seconds.value,
        "limit_origin": limit.origin,
    }
    if found.found is Answer.YES:
        likely, advice = fault_words(
            material,
            series,
            say("heat that arrives late: pump stopped or air in the loop"),
            say("look at the pump; bleed the loop"),
        )
        return failed(
            say(
                "{subject} came back up by {rise}: {reason} (at most {limit:g} °C for {seconds:g} s, {limit_origin})",
                subject=subject,
                rise=degrees(found.rise),
                reason=found.reason,
                limit=limit.value,
                seconds=seconds.value,
                limit_origin=limit.origin,
            ),
            likely=likely,
            advice=advice,
            evidence=evidence,
        )
    need_belief(material, series)
    need_coverage(material, series, "steady", "cooldown")
    if found.found is Answer.UNKNOWN:
        raise OpenError(
            say("whether {subject} came back up is not known: {reason}", subject=subject, reason=found.reason),
            likely=say("something loaded the device in cooldown") if found.rise.value else "",
            advice=say("a longer --cooldown, with nothing else running"),
        )
    hot = need_value(figures.steady, say("the level of {subject} in steady", subject=subject))
    _, cooling = figures.clean.during(material.phases["cooldown"]).readings()
    fell = hot - float(cooling.min())
    if fell < COOLED * limit.value:
        raise OpenError(
            say(
                "{subject} fell by {fell:.1f} °C only in cooldown: too little to show whether it comes back up",
                subject=subject,
                fell=fell,
            ),
            likely=say("it was not hot: cool because idle"),
            advice=say("test_load says whether the device was loaded"),
        )
    return passed(
        say("{subject} fell by {fell:.1f} °C in cooldown and did not come back up", subject=subject, fell=fell),
        evidence=evidence,
    )


# ---------------------------------------------------------------------------------------------------------------------


def _median(series: Series, material: Material, phase: str) -> float:
    _, values = series.during(material.phases[phase]).readings()
    return float(np.median(values)) if values.size else 0.0


def _under_load(series: Series, material: Material) -> tuple[FloatArray, FloatArray]:
    loaded = [phase for name, phase in material.phases.items() if name in LOADED_PHASES]
    start, end = min(p.start_seconds for p in loaded), max(p.end_seconds for p in loaded)
    return series.between(start, end).readings()


def _where(material: Material, seconds: float) -> str:
    for phase in material.recording.phases:
        if phase.start_seconds <= seconds < phase.end_seconds:
            return say(
                "{seconds} into {phase_name}", seconds=span(seconds - phase.start_seconds), phase_name=phase.name
            )
    return say("the start")
