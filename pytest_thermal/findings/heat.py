"""How warm it is at idle, how warm it gets, by how much, and whether it is done: baseline, threshold, rise, settled."""

from __future__ import annotations

import numpy as np

from pytest_thermal.analysis import Answer, LoopFaultKind, find_departure, find_swing
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import (
    ADVICE,
    fault_words,
    need_belief,
    need_cold_start,
    need_coverage,
    need_load,
    need_phases,
    need_series,
    need_value,
)
from pytest_thermal.findings.run_events import critical_stops
from pytest_thermal.findings.telling import FAULTS, degrees, span
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Series

FORESEEN = 15.0
"""°C still to come: a bound above this says only that nothing is known."""
SWING = 1.0
"""°C of a regular swing that is worth a word."""
_COOLING = say("the loop takes away too little heat: pump, flow, air, contact, radiator")


def baseline(material: Material, subject: str) -> Verdict:
    """Whether the baseline is settled, idle and no warmer than a cooled device at idle is."""
    series = need_series(material, subject)
    need_phases(material, "baseline")
    found = material.figures(series)
    limit = material.limits["baseline_most"]
    level = found.baseline
    evidence: dict[str, Scalar] = {
        "baseline_celsius": level.value,
        "limit_celsius": limit.value,
        "limit_origin": limit.origin,
    }
    if material.is_main(series.sensor):
        if level.value is not None and level.value > limit.value:
            likely, advice = fault_words(
                material, series, say("the supply or the room is too warm, or the device is not idle"), _WARM_ADVICE
            )
            return failed(
                say(
                    "{subject} stands at {level} at idle, more than {limit}",
                    subject=subject,
                    level=degrees(level),
                    limit=limit.text,
                ),
                likely=likely,
                advice=advice,
                evidence=evidence,
            )
        fault = material.fault(series)
        if fault.kind is LoopFaultKind.SUPPLY_WARM:
            return failed(
                say(
                    "{subject} stands at {level} at idle: {names}",
                    subject=subject,
                    level=degrees(level),
                    names=joined("; ", fault.evidence),
                ),
                likely=FAULTS[fault.kind],
                advice=ADVICE[fault.kind],
                evidence=evidence,
            )
    idle, how = material.idle(series.sensor.device)
    if idle is Answer.NO:
        most = material.limits["idle_most"]
        return failed(
            say(
                "{device} was not idle in the baseline: {how}, more than {most}",
                device=series.sensor.device,
                how=how,
                most=most.text,
            ),
            likely=say("something else ran on it; a baseline under load makes every rise too small"),
            advice=say("end it and run again"),
            evidence=evidence,
        )
    settled = found.baseline_settled
    if settled is not None and settled.settled is Answer.NO and level.value is not None:
        return failed(
            say("{subject} is not settled in the baseline: {reason}", subject=subject, reason=settled.reason),
            likely=say("the machine was still warm from earlier work, or the room's temperature moves"),
            advice=say("let it stand, or a longer --baseline"),
            evidence=evidence,
        )
    need_belief(material, series)
    need_cold_start(material, series)
    need_value(level, say("the baseline of {subject}", subject=subject))
    return passed(
        say("{subject} stands at {level} at idle ({how}), settled", subject=subject, level=degrees(level), how=how),
        evidence=evidence,
    )


_WARM_ADVICE = say("cool the room or the facility water, and look for what else runs on the machine")


def threshold(material: Material, subject: str) -> Verdict:
    """Whether the highest plausible reading stays at or below the lower of the bench's and the device's limit."""
    series = need_series(material, subject)
    limit = material.limits.threshold(series.sensor)
    if limit is None:
        return skipped(say("{subject}: no limit for what is neither a processor nor an accelerator", subject=subject))
    peak = material.figures(series).peak
    top = need_value(peak, say("the peak of {subject}", subject=subject))
    at = float(peak.detail.get("time_seconds") or 0.0)
    where = _phase_at(material, at)
    warnings = _left_out(peak.detail.get("highest_rejected"), limit.value, subject)
    evidence: dict[str, Scalar] = {
        "peak_celsius": top,
        "limit_celsius": limit.value,
        "limit_origin": limit.origin,
        "phase": where,
    }
    if top > limit.value:
        over = material.figures(series).clean
        above = float(np.count_nonzero(over.values > limit.value)) * over.period_seconds
        stops = critical_stops(material.recording)
        likely, advice = fault_words(material, series, _COOLING, say("test_rise and test_settled say more of the loop"))
        return failed(
            say(
                "{subject} reached {top:.1f} °C{and_where}, more than {limit}, and was above it for {above}",
                subject=subject,
                top=top,
                and_where=say(" in {where}", where=where) if where else "",
                limit=limit.text,
                above=span(above),
            ),
            likely=likely,
            advice=advice,
            warnings=(*warnings, *stops),
            evidence={**evidence, "above_seconds": above},
        )
    left = _margin(material, series)
    if left is not None and left < 0:
        likely, advice = fault_words(material, series, _COOLING, say("test_rise and test_settled say more of the loop"))
        return failed(
            say(
                "{subject} reached {top:.1f} °C{and_where}, {left:g} K more than the device's own limit "
                "(its margin to it)",
                subject=subject,
                top=top,
                and_where=say(" in {where}", where=where) if where else "",
                left=-left,
            ),
            likely=likely,
            advice=advice,
            warnings=warnings,
            evidence={**evidence, "margin_kelvin": left},
        )
    if not material.to_be_loaded(series.sensor.device):
        return _not_loaded(material, series)
    need_phases(material, "steady")
    need_coverage(material, series, *material.phases)
    need_belief(material, series)
    need_load(material, series.sensor.device)
    return passed(
        say(
            "{subject} reached {top:.1f} °C{and_where}, at most {limit}",
            subject=subject,
            top=top,
            and_where=say(" in {where}", where=where) if where else "",
            limit=limit.text,
        ),
        warnings=warnings,
        evidence=evidence,
    )


def rise(material: Material, subject: str) -> Verdict:
    """Whether the temperature rises over its baseline by no more than it should."""
    series = need_series(material, subject)
    allowed = material.limits.rise(series.sensor)
    if allowed is None:
        return skipped(say("{subject}: no limit for what is neither a processor nor an accelerator", subject=subject))
    need_phases(material, "baseline", "steady")
    least, most = allowed
    found = material.figures(series)
    evidence: dict[str, Scalar] = {
        "rise_celsius": found.rise.value,
        "uncertainty_celsius": found.rise.uncertainty,
        "baseline_celsius": found.baseline.value,
        "steady_celsius": found.steady.value,
        "limit_celsius": most.value,
        "limit_origin": most.origin,
    }
    value = need_value(found.rise, say("the rise of {subject}", subject=subject))
    rose = say(
        "{subject} rose by {rise} over its baseline of {baseline:.1f} °C",
        subject=subject,
        rise=degrees(found.rise),
        baseline=found.baseline.value,
    )
    if value > most.value:
        likely, advice = fault_words(material, series, _COOLING, say("compare with an earlier run: --against RUN"))
        return failed(
            say("{rose}, more than {most}", rose=rose, most=most.text), likely=likely, advice=advice, evidence=evidence
        )
    if not material.to_be_loaded(series.sensor.device):
        return _not_loaded(material, series)
    need_belief(material, series)
    need_coverage(material, series, "steady")
    need_cold_start(material, series)
    need_load(material, series.sensor.device)
    _need_no_more_to_come(material, series, value, most.value)
    if value < least.value:
        warning = say(
            "{rose}, less than {least}: check that the load was real, that it reached this device, "
            "and that the sensor is this device's",
            rose=rose,
            least=least.text,
        )
        return passed(say("{rose}, at most {most}", rose=rose, most=most.text), warnings=(warning,), evidence=evidence)
    return passed(say("{rose}, at most {most}", rose=rose, most=most.text), evidence=evidence)


def settled(material: Material, subject: str) -> Verdict:
    """Whether the temperature moves no more at the end of steady, and would not rise by much more."""
    series = need_series(material, subject)
    need_phases(material, "steady")
    rate, remaining = material.limits["settling"], material.limits["remaining_most"]
    judged = material.figures(series).settled
    if judged is None:
        raise OpenError(say("whether {subject} has settled was not judged", subject=subject))
    evidence: dict[str, Scalar] = {
        "slope_celsius_per_minute": judged.slope.value,
        "remaining_celsius": judged.remaining.value,
        "rate": judged.rate.name,
        "limit_celsius_per_minute": rate.value,
        "limit_origin": rate.origin,
        "limit_remaining_celsius": remaining.value,
    }
    if judged.settled is Answer.NO:
        proof = material.proof(series.sensor.device)
        otherwise, try_this = (
            say("steady was too short for this loop, or the room warms up"),
            say("a longer --duration"),
        )
        if material.to_be_loaded(series.sensor.device) and proof.proven is Answer.NO:
            otherwise, try_this = (
                say("the load did not stay: {reason}", reason=proof.reason),
                say("see what ended it in events.jsonl"),
            )
        likely, advice = fault_words(material, series, otherwise, try_this)
        return failed(
            say("{subject} has not settled at the end of steady: {reason}", subject=subject, reason=judged.reason),
            likely=likely,
            advice=advice,
            evidence=evidence,
        )
    if not material.to_be_loaded(series.sensor.device):
        return _not_loaded(material, series)
    need_belief(material, series)
    need_coverage(material, series, "steady")
    unrest = _unrest(material, series)
    if unrest:
        likely, advice = fault_words(material, series, "", "")
        return failed(
            say("{subject} was not at rest in steady: {unrest}", subject=subject, unrest=unrest),
            likely=likely,
            advice=advice,
            evidence=evidence,
        )
    if judged.settled is not Answer.YES:
        raise OpenError(
            say("whether {subject} has settled is not known: {reason}", subject=subject, reason=judged.reason),
            likely=next(
                iter(_swings(material, series)), say("steady is too short for this loop, or the sensor too coarse")
            ),
            advice=say("a longer --duration, or a shorter sample interval"),
        )
    need_load(material, series.sensor.device)
    slope = need_value(judged.slope, say("the slope of {subject}", subject=subject))
    left = need_value(judged.remaining, say("what {subject} would still rise by", subject=subject))
    return passed(
        say(
            "{subject} moves by {slope:+.3f} K/min at the end of steady, with {left:+.1f} °C to come "
            "(at most {kelvin:g} K in {seconds:g} min, {rate_origin}; {remaining})",
            subject=subject,
            slope=slope,
            left=left,
            kelvin=judged.rate.kelvin,
            seconds=judged.rate.seconds / 60,
            rate_origin=rate.origin,
            remaining=remaining.text,
        ),
        warnings=_swings(material, series),
        evidence=evidence,
    )


# ---------------------------------------------------------------------------------------------------------------------


def _not_loaded(material: Material, series: Series) -> Verdict:
    loads = joined(", ", sorted(material.loads or ())) or "no"
    return skipped(
        say(
            "{sensor}: {device} was not to be loaded; this run has {loads} load",
            sensor=series.sensor.id,
            device=series.sensor.device,
            loads=loads,
        )
    )


def _need_no_more_to_come(material: Material, series: Series, risen: float, most: float) -> None:
    """That what may still come would not carry the rise over its limit."""
    judged = material.figures(series).settled
    if judged is None:
        raise OpenError(say("what {sensor} would still rise by was not judged", sensor=series.sensor.id))
    if judged.settled is Answer.YES:
        return
    upper = judged.remaining.detail.get("upper")
    is_bound = judged.remaining.detail.get("slow_from") == "fit"  # else it holds only if nothing slower is there
    if not isinstance(upper, (int, float)) or not is_bound or risen + upper > most:
        raise OpenError(
            say(
                "{sensor} rose by {risen:.1f} °C so far, and {still}: that may be more than {most:g} °C",
                sensor=series.sensor.id,
                risen=risen,
                still=_still(upper, is_bound=is_bound),
                most=most,
            ),
            likely=say("steady was too short for this loop"),
            advice=say("a longer --duration"),
        )


def _still(upper: Scalar, *, is_bound: bool) -> str:
    if not isinstance(upper, (int, float)) or not is_bound or upper > FORESEEN:
        return say("what is still to come is not known")
    return say("up to {upper:.1f} °C may still be to come", upper=upper)


def _swings(material: Material, series: Series) -> tuple[str, ...]:
    """A regular swing, which is no fault of the loop but of what controls it."""
    swing = find_swing(material.figures(series).clean, material.phases["steady"])
    if swing is None or swing.amplitude < SWING:
        return ()
    return (
        say(
            "{sensor} swings by ±{amplitude:.1f} °C every {period}: look at the control of its fan or pump",
            sensor=series.sensor.id,
            amplitude=swing.amplitude,
            period=span(swing.period_seconds),
        ),
    )


def _unrest(material: Material, series: Series) -> str:
    """What happened in steady that a rate at its end does not show: air that passes, a course that was left."""
    fault = material.fault(series)
    if not fault.candidates:
        return ""
    clean, steady = material.figures(series).clean, material.phases["steady"]
    if fault.kind is LoopFaultKind.AIR or find_departure(clean, steady) is not None:
        return fault.evidence[0]
    return ""


def _phase_at(material: Material, seconds: float) -> str:
    for phase in material.recording.phases:
        if phase.start_seconds <= seconds < phase.end_seconds:
            return phase.name
    return ""


def _margin(material: Material, series: Series) -> float | None:
    """The least that was left to a limit which the device tells as a margin only, in K; for its own temperature."""
    margin = material.series(f"{series.sensor.device}.temperature_kelvin_margin")
    if margin is None or not material.is_main(series.sensor):
        return None
    _, values = margin.readings()
    return float(values.min()) if values.size else None


def _left_out(highest: object, limit: float, subject: str) -> tuple[str, ...]:
    if not isinstance(highest, (int, float)) or highest <= limit:
        return ()
    return (
        say(
            "{subject}: a reading of {highest:.1f} °C was left out as a spike of the sensor",
            subject=subject,
            highest=highest,
        ),
    )
