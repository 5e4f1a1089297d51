"""How warm it is at idle, how warm it gets, by how much, and whether it is done: baseline, threshold, rise, settled."""

from __future__ import annotations

import numpy as np

from pytest_thermal.analysis import Answer, LoopFaultKind, find_departure
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
from pytest_thermal.findings.telling import degrees, span
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.series import Series

FORESEEN = 15.0
"""°C still to come: a bound above this says only that nothing is known."""
_COOLING = "the loop takes away too little heat: pump, flow, air, contact, radiator"


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
                material, series, "the supply or the room is too warm, or the device is not idle", _WARM_ADVICE
            )
            return failed(
                f"{subject} stands at {degrees(level)} at idle, more than {limit.text}",
                likely=likely,
                advice=advice,
                evidence=evidence,
            )
        fault = material.fault(series)
        if fault.kind is LoopFaultKind.SUPPLY_WARM:
            return failed(
                f"{subject} stands at {degrees(level)} at idle: {'; '.join(fault.evidence)}",
                likely=str(fault.kind),
                advice=ADVICE[fault.kind],
                evidence=evidence,
            )
    idle, how = material.idle(series.sensor.device)
    if idle is Answer.NO:
        most = material.limits["idle_most"]
        return failed(
            f"{series.sensor.device} was not idle in the baseline: {how}, more than {most.text}",
            likely="something else ran on it; a baseline under load makes every rise too small",
            advice="end it and run again",
            evidence=evidence,
        )
    settled = found.baseline_settled
    if settled is not None and settled.settled is Answer.NO and level.value is not None:
        return failed(
            f"{subject} is not settled in the baseline: {settled.reason}",
            likely="the machine was still warm from earlier work, or the room's temperature moves",
            advice="let it stand, or a longer --baseline",
            evidence=evidence,
        )
    need_belief(material, series)
    need_cold_start(material, series)
    need_value(level, f"the baseline of {subject}")
    return passed(f"{subject} stands at {degrees(level)} at idle ({how}), settled", evidence=evidence)


_WARM_ADVICE = "cool the room or the facility water, and look for what else runs on the machine"


def threshold(material: Material, subject: str) -> Verdict:
    """Whether the highest plausible reading stays at or below the lower of the bench's and the device's limit."""
    series = need_series(material, subject)
    limit = material.limits.threshold(series.sensor)
    if limit is None:
        return skipped(f"{subject}: no limit for what is neither a processor nor an accelerator")
    peak = material.figures(series).peak
    top = need_value(peak, f"the peak of {subject}")
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
        likely, advice = fault_words(material, series, _COOLING, "test_rise and test_settled say more of the loop")
        return failed(
            f"{subject} reached {top:.1f} °C{f' in {where}' if where else ''}, more than {limit.text}, "
            f"and was above it for {span(above)}",
            likely=likely,
            advice=advice,
            warnings=(*warnings, *stops),
            evidence={**evidence, "above_seconds": above},
        )
    left = _margin(material, series)
    if left is not None and left < 0:
        likely, advice = fault_words(material, series, _COOLING, "test_rise and test_settled say more of the loop")
        return failed(
            f"{subject} reached {top:.1f} °C{f' in {where}' if where else ''}, {-left:g} K more than the device's own "
            "limit (its margin to it)",
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
        f"{subject} reached {top:.1f} °C{f' in {where}' if where else ''}, at most {limit.text}",
        warnings=warnings,
        evidence=evidence,
    )


def rise(material: Material, subject: str) -> Verdict:
    """Whether the temperature rises over its baseline by no more than it should."""
    series = need_series(material, subject)
    allowed = material.limits.rise(series.sensor)
    if allowed is None:
        return skipped(f"{subject}: no limit for what is neither a processor nor an accelerator")
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
    value = need_value(found.rise, f"the rise of {subject}")
    rose = f"{subject} rose by {degrees(found.rise)} over its baseline of {found.baseline.value:.1f} °C"
    if value > most.value:
        likely, advice = fault_words(material, series, _COOLING, "compare with an earlier run: --against RUN")
        return failed(f"{rose}, more than {most.text}", likely=likely, advice=advice, evidence=evidence)
    if not material.to_be_loaded(series.sensor.device):
        return _not_loaded(material, series)
    need_belief(material, series)
    need_coverage(material, series, "steady")
    need_cold_start(material, series)
    need_load(material, series.sensor.device)
    _need_no_more_to_come(material, series, value, most.value)
    if value < least.value:
        warning = (
            f"{rose}, less than {least.text}: check that the load was real, that it reached this device, "
            "and that the sensor is this device's"
        )
        return passed(f"{rose}, at most {most.text}", warnings=(warning,), evidence=evidence)
    return passed(f"{rose}, at most {most.text}", evidence=evidence)


def settled(material: Material, subject: str) -> Verdict:
    """Whether the temperature moves no more at the end of steady, and would not rise by much more."""
    series = need_series(material, subject)
    need_phases(material, "steady")
    rate, remaining = material.limits["settling"], material.limits["remaining_most"]
    judged = material.figures(series).settled
    if judged is None:
        raise OpenError(f"whether {subject} has settled was not judged")
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
        otherwise, try_this = "steady was too short for this loop, or the room warms up", "a longer --duration"
        if material.to_be_loaded(series.sensor.device) and proof.proven is Answer.NO:
            otherwise, try_this = f"the load did not stay: {proof.reason}", "see what ended it in events.jsonl"
        likely, advice = fault_words(material, series, otherwise, try_this)
        return failed(
            f"{subject} has not settled at the end of steady: {judged.reason}",
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
        return failed(f"{subject} was not at rest in steady: {unrest}", likely=likely, advice=advice, evidence=evidence)
    if judged.settled is not Answer.YES:
        raise OpenError(
            f"whether {subject} has settled is not known: {judged.reason}",
            likely="steady is too short for this loop, or the sensor too coarse",
            advice="a longer --duration, or a shorter sample interval",
        )
    need_load(material, series.sensor.device)
    slope = need_value(judged.slope, f"the slope of {subject}")
    left = need_value(judged.remaining, f"what {subject} would still rise by")
    return passed(
        f"{subject} moves by {slope:+.3f} K/min at the end of steady, with {left:+.1f} °C to come "
        f"(at most {judged.rate.kelvin:g} K in {judged.rate.seconds / 60:g} min, {rate.origin}; {remaining.text})",
        evidence=evidence,
    )


# ---------------------------------------------------------------------------------------------------------------------


def _not_loaded(material: Material, series: Series) -> Verdict:
    loads = ", ".join(sorted(material.loads or ())) or "no"
    return skipped(f"{series.sensor.id}: {series.sensor.device} was not to be loaded; this run has {loads} load")


def _need_no_more_to_come(material: Material, series: Series, risen: float, most: float) -> None:
    """That what may still come would not carry the rise over its limit."""
    judged = material.figures(series).settled
    if judged is None:
        raise OpenError(f"what {series.sensor.id} would still rise by was not judged")
    if judged.settled is Answer.YES:
        return
    upper = judged.remaining.detail.get("upper")
    is_bound = judged.remaining.detail.get("slow_from") == "fit"  # else it holds only if nothing slower is there
    if not isinstance(upper, (int, float)) or not is_bound or risen + upper > most:
        raise OpenError(
            f"{series.sensor.id} rose by {risen:.1f} °C so far, and {_still(upper, is_bound=is_bound)}: "
            f"that may be more than {most:g} °C",
            likely="steady was too short for this loop",
            advice="a longer --duration",
        )


def _still(upper: Scalar, *, is_bound: bool) -> str:
    if not isinstance(upper, (int, float)) or not is_bound or upper > FORESEEN:
        return "what is still to come is not known"
    return f"up to {upper:.1f} °C may still be to come"


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
    return (f"{subject}: a reading of {highest:.1f} °C was left out as a spike of the sensor",)
