"""What the device did: whether it was loaded in full, and whether heat made it slow itself down."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_thermal.analysis import Answer, LoadProof, ThrottleKind, Throttling, kind_of, measure_throttling
from pytest_thermal.findings.devices import throttle_reasons
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import (
    fault_words,
    load_advice,
    need_coverage,
    need_load,
    need_phases,
    unproven,
    why_starved,
)
from pytest_thermal.findings.run_events import critical_stops, lost_loads
from pytest_thermal.findings.run_facts import loads_of
from pytest_thermal.findings.telling import THROTTLES, milliseconds
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, Series


def load(material: Material, subject: str) -> Verdict:
    """Whether a device was loaded in full through steady: what every finding about heat rests on."""
    need_phases(material, "steady")
    if not material.to_be_loaded(subject):
        return skipped(
            say(
                "{subject} was not to be loaded; this run has {names} load",
                subject=subject,
                names=joined(", ", sorted(material.loads or ())),
            )
        )
    proof = material.proof(subject)
    evidence: dict[str, Scalar] = {
        "utilization_percent": proof.utilization.value,
        "power_watts": proof.power.value,
        "on_plateau": proof.on_plateau.value,
        "throughput_held": proof.throughput.value,
    }
    if proof.own is not None:
        evidence["own_share_percent"] = proof.own.value
    if proof.proven is Answer.UNKNOWN:
        raise unproven(material, subject, proof)
    if proof.proven is Answer.NO:
        stops = critical_stops(material.recording)
        lost = lost_loads(material.recording, loads_of(subject))
        likely, advice = (
            say("too little work for it, or work that waits for something else"),
            load_advice(material, subject),
        )
        if stops or lost:
            likely, advice = [*stops, *lost][0], say("see what ended it in events.jsonl")
        elif proof.is_starved:
            likely, advice = why_starved(material, proof)
        return failed(
            say("{subject} was not loaded in full in steady: {reason}", subject=subject, reason=proof.reason),
            likely=likely,
            advice=advice,
            evidence=evidence,
        )
    warnings = lost_loads(material.recording, loads_of(subject))
    return passed(
        say("{subject} was loaded in full in steady: {shown_by}", subject=subject, shown_by=_shown_by(proof)),
        warnings=warnings,
        evidence=evidence,
    )


def throttling(material: Material, subject: str) -> Verdict:
    """Milliseconds per phase and reason; heat fails, a power cap is told."""
    reasons = throttle_reasons(subject, material.recording.series)
    if not reasons:
        raise OpenError(
            say("the run has no reasons for throttling of {subject}", subject=subject), advice=say("pytest --sensors")
        )
    limit = material.limits["throttling_most"]
    measured = {
        name: measure_throttling(reasons, phase) for name, phase in material.phases.items() if name in LOADED_PHASES
    }
    hot = {name: found.thermal.value for name, found in measured.items() if found.thermal.value is not None}
    evidence: dict[str, Scalar] = {f"{name}_thermal_milliseconds": value for name, value in hot.items()}
    evidence |= {"limit_milliseconds": limit.value, "limit_origin": limit.origin}
    told = tuple(_others(subject, measured))
    if any(value > limit.value for value in hot.values()):
        where = joined(
            ", ",
            (
                say("{value} in {name}", value=milliseconds(value), name=name)
                for name, value in hot.items()
                if value > limit.value
            ),
        )
        main = material.main(subject)
        series = material.series(main.id) if main is not None else None
        otherwise, advice = (
            say("it ran into its own temperature limit"),
            say("test_threshold and test_rise say how hot it got"),
        )
        if series is not None:
            peak = material.figures(series).peak.value
            if peak is not None:
                otherwise = say(
                    "{otherwise}, at {peak:.1f} °C at most; or a part of it that has no sensor here did",
                    otherwise=otherwise,
                    peak=peak,
                )
            otherwise, advice = fault_words(material, series, otherwise, advice)
        return failed(
            say(
                "{subject} slowed itself down for {where} because of heat, more than {limit}",
                subject=subject,
                where=where,
                limit=limit.text,
            ),
            likely=otherwise,
            advice=advice,
            warnings=told,
            evidence=evidence,
        )
    need_phases(material, "steady")
    if not material.to_be_loaded(subject):
        return skipped(
            say(
                "{subject} was not to be loaded; this run has {names} load",
                subject=subject,
                names=joined(", ", sorted(material.loads or ())),
            )
        )
    for reason, series in reasons.items():
        if kind_of(reason) is ThrottleKind.THERMAL:
            _need_reason(material, series)
    missing = [found.thermal for found in measured.values() if found.thermal.value is None]
    if missing:
        raise OpenError(
            say(
                "whether {subject} slowed itself down because of heat is not known: {reason}",
                subject=subject,
                reason=missing[0].reason,
            )
        )
    _need_no_doubt(subject, measured)
    need_load(material, subject)
    return passed(
        say("{subject} did not slow itself down because of heat", subject=subject), warnings=told, evidence=evidence
    )


# ---------------------------------------------------------------------------------------------------------------------


def _shown_by(proof: LoadProof) -> str:
    shown = []
    if proof.utilization.value is not None:
        shown.append(say("utilisation {utilization:.0f} %", utilization=proof.utilization.value))
    if proof.power.value is not None:
        idle = proof.power.detail.get("idle")
        over = say(" over {idle:.0f} W at idle", idle=idle) if isinstance(idle, (int, float)) else ""
        shown.append(say("{power:.0f} W{over}", power=proof.power.value, over=over))
    if proof.own is not None and proof.own.value is not None:
        shown.append(
            say(
                "{own:.0f} % of the time of {cores:g} cores its load's own",
                own=proof.own.value,
                cores=proof.own.detail["cores"],
            )
        )
    if not shown and proof.throughput.value is not None:
        shown.append(say("inference throughput held at {throughput:.0f} %", throughput=proof.throughput.value * 100))
    return joined(", ", shown)


def _need_reason(material: Material, series: Series) -> None:
    for phase in LOADED_PHASES:
        if phase in material.phases:
            need_coverage(material, series, phase)


def _others(subject: str, measured: Mapping[str, Throttling]) -> list[str]:
    """Reasons that decide nothing."""
    found = []
    for phase, throttled in measured.items():
        for name, figure in throttled.reasons.items():
            kind = kind_of(name)
            if figure.value and figure.value >= 1 and kind in {ThrottleKind.POWER, ThrottleKind.EITHER}:
                found.append(
                    say(
                        "{subject} was slowed down for {figure} in {phase}: {name} ({kind})",
                        subject=subject,
                        figure=milliseconds(figure.value),
                        phase=phase,
                        name=name,
                        kind=THROTTLES[kind],
                    )
                )
    return found


def _need_no_doubt(subject: str, measured: Mapping[str, Throttling]) -> None:
    """That a slowdown which may be heat's has another reason beside it."""
    for phase, throttled in measured.items():
        either = _sum(throttled, ThrottleKind.EITHER)
        if either and not _sum(throttled, ThrottleKind.POWER):
            raise OpenError(
                say(
                    "{subject} was slowed down for {either} in {phase} by its hardware, for heat or power: "
                    "it does not say which",
                    subject=subject,
                    either=milliseconds(either),
                    phase=phase,
                ),
                advice=say("look at its temperatures and its power limit in that phase"),
            )


def _sum(throttled: Throttling, kind: ThrottleKind) -> float:
    return sum(_value(figure) for name, figure in throttled.reasons.items() if kind_of(name) is kind)


def _value(figure: Figure) -> float:
    return figure.value or 0.0
