"""Whether the readings can be judged at all: ``coverage``."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.analysis import Answer
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import need_phases, need_series, why_missing
from pytest_thermal.findings.telling import span
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model import Missing, Unit
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, last_part, say
from pytest_thermal.model.series import Series

OF_A_RUN = ("baseline", "ramp", "steady", "cooldown")
OF_A_LOG = ("baseline", "steady")
DEVICE_AT_FAULT = frozenset(
    {Missing.ABSENT, Missing.UNREADABLE, Missing.DEVICE_ERROR, Missing.IMPLAUSIBLE, Missing.STUCK, Missing.STALE}
)
"""Reasons for a missing reading that speak against the device or its driver; a slow tool's do not."""


def coverage(material: Material, subject: str) -> Verdict:
    """Readings present ÷ readings due and the longest gap, in every phase; and whether the sensor can be believed.

    Holes leave the question open, as they do for every figure that needs the phase; those that the device itself is to
    blame for fail.
    """
    series = need_series(material, subject, empty=True)
    if not series.present.any() and _is_not_offered(material, series):
        return skipped(
            say(
                "{subject}: not offered by the device: {why_missing}",
                subject=subject,
                why_missing=why_missing(material, series),
            )
        )
    need_phases(material, *(OF_A_LOG if material.is_foreign else OF_A_RUN))
    worst = 1.0
    holes: list[tuple[str, str]] = []
    reasons: list[str] = []
    for phase in material.phases:
        covered = material.coverage(series, phase)
        worst = min(worst, covered.coverage.value or 0.0)
        if covered.complete is not Answer.YES:
            holes.append((phase, covered.reason))
            reasons.append(why_missing(material, series, covered.longest_gap))
    unbelievable, evidence = _unbelievable(material, series)
    evidence["coverage"] = worst
    limits = material.limits
    if holes and not unbelievable:
        also = say("; also in {names}", names=joined(", ", (phase for phase, _ in holes[1:]))) if len(holes) > 1 else ""
        seen = say(
            "{subject} has holes in {holes}: {holes_2}{also} (at least {coverage_least}, no gap over {gap_most})",
            subject=subject,
            holes=holes[0][0],
            holes_2=holes[0][1],
            also=also,
            coverage_least=limits["coverage_least"].text,
            gap_most=limits["gap_most"].text,
        )
        likely = next(filter(None, reasons), "")
        advice = say("pytest --sensors; the run's missing.jsonl says why each reading is missing")
        if _by_device(material, series, [phase for phase, _ in holes]):
            return failed(seen, likely=likely or say("the device or its driver"), advice=advice, evidence=evidence)
        raise OpenError(seen, likely=likely or say("the source was too slow, or nobody sampled then"), advice=advice)
    if unbelievable:
        return failed(
            say("{subject} cannot be believed: {unbelievable}", subject=subject, unbelievable=unbelievable),
            likely=say("the sensor or its driver: no device does that"),
            advice=say("read it with another tool; look at its cabling, driver and firmware"),
            evidence=evidence,
        )
    longest = max((material.coverage(series, phase).longest_gap.value or 0.0) for phase in material.phases)
    return passed(
        say(
            "{subject}: at least {worst:.1%} of its readings in every phase, longest gap {longest}",
            subject=subject,
            worst=worst,
            longest=span(longest),
        ),
        evidence=evidence,
    )


def _by_device(material: Material, series: Series, phases: Sequence[str]) -> bool:
    """Whether readings are missing there because the device did not give them, and not because none were taken."""
    own = [stretch for stretch in material.recording.missing if stretch.sensor_id == series.sensor.id]
    for name in phases:
        phase = material.phases[name]
        before = [stretch for stretch in own if stretch.time_seconds < phase.start_seconds]
        inside = [stretch for stretch in own if phase.start_seconds <= stretch.time_seconds < phase.end_seconds]
        if any(stretch.reason in DEVICE_AT_FAULT for stretch in inside):
            return True
        silent = not series.during(phase).present.any()
        if silent and before and before[-1].reason in DEVICE_AT_FAULT:
            return True
    return False


def _is_not_offered(material: Material, series: Series) -> bool:
    reasons = {stretch.reason for stretch in material.recording.missing if stretch.sensor_id == series.sensor.id}
    return reasons == {Missing.NOT_OFFERED}


def _unbelievable(material: Material, series: Series) -> tuple[str, dict[str, Scalar]]:
    """What a temperature does that no device does; of other quantities nothing is known that they cannot do."""
    if series.sensor.unit is not Unit.CELSIUS:
        return "", {}
    health = material.figures(series).health
    figures: dict[str, Scalar] = {
        "spikes": health.spikes.value,
        "dropouts": health.dropouts.value,
        "stuck": str(health.stuck),
    }
    found = [*_counted(int(health.spikes.value or 0), int(health.dropouts.value or 0))]
    if health.stuck is Answer.YES:
        found.append(last_part(health.reason))
    return joined("; ", filter(None, found)), figures


def _counted(spikes: int, dropouts: int) -> tuple[str, str]:
    return (
        (say("1 spike") if spikes == 1 else say("{spikes} spikes", spikes=spikes)) if spikes else "",
        (say("1 dropout") if dropouts == 1 else say("{dropouts} dropouts", dropouts=dropouts)) if dropouts else "",
    )
