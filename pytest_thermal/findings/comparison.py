"""This run against an earlier one: ``drift``."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_thermal.analysis import drift as drift_of
from pytest_thermal.analysis import not_comparable
from pytest_thermal.findings.earlier import Earlier, why_no_measure
from pytest_thermal.findings.material import Material
from pytest_thermal.findings.needs import (
    fault_words,
    need_belief,
    need_cold_start,
    need_coverage,
    need_load,
    need_phases,
    need_series,
)
from pytest_thermal.findings.run_facts import comparable_facts
from pytest_thermal.findings.telling import shortened
from pytest_thermal.findings.verdict import OpenError, Verdict, failed, passed, skipped
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Series

WHOLE_REASON = 120

BY: Mapping[str, str] = {"rise": say("rise"), "resistance": say("resistance")}
"""What a drift is told by."""


def drift(material: Material, earlier: Earlier | None, subject: str) -> Verdict:
    """Whether the temperature rises by no more than in an earlier, comparable run."""
    series = need_series(material, subject)
    before = _earlier_of(material, earlier)
    if isinstance(before, str):
        return skipped(say("{subject}: {before}", subject=subject, before=before))
    if not material.to_be_loaded(series.sensor.device):
        return skipped(say("{subject}: {device} was not to be loaded", subject=subject, device=series.sensor.device))
    then = before.series(subject)
    name = before.recording.path.name
    if then is None or then.sensor.identity != series.sensor.identity:
        raise OpenError(
            say("{subject} is not in the earlier run {name}, or is another part there", subject=subject, name=name)
        )
    need_phases(material, "baseline", "steady")
    found = drift_of(
        material.figures(series).rise,
        before.figures(then).rise,
        resistance=material.resistance(series) if material.is_main(series.sensor) else None,
        earlier_resistance=before.resistance(then) if material.is_main(series.sensor) else None,
    )
    limit = material.limits["drift_most"]
    if found.value is None:
        raise OpenError(
            say(
                "the drift of {subject} against {name} is not known: {reason}",
                subject=subject,
                name=name,
                reason=found.reason,
            )
        )
    by = str(found.detail.get("figure", "rise"))
    evidence: dict[str, Scalar] = {
        "drift_celsius": found.value,
        "uncertainty_celsius": found.uncertainty,
        "by": by,
        "now": found.detail.get("now"),
        "earlier": found.detail.get("earlier"),
        "against": name,
        "limit_celsius": limit.value,
        "limit_origin": limit.origin,
    }
    sigma = f" ± {max(found.uncertainty, 0.05):.1f}" if found.uncertainty is not None else ""
    words = say("hotter") if found.value >= 0 else say("cooler")
    said = say(
        "{subject} gets {found:.1f}{sigma} °C {words} than in {name}, by its {by}",
        subject=subject,
        found=abs(found.value),
        sigma=sigma,
        words=words,
        name=name,
        by=BY.get(by, by),
    )
    if found.value >= limit.value:
        likely, advice = fault_words(
            material,
            series,
            say("paste has aged, filters or radiator have clogged, or coolant is lost"),
            say("clean, top up, bleed"),
        )
        return failed(
            say("{said}; {limit} or more fails", said=said, limit=limit.text),
            likely=likely,
            advice=advice,
            evidence=evidence,
        )
    _need_same_ground(material, series)
    try:
        _need_same_ground(before, then)
    except OpenError as error:
        raise OpenError(
            say("the earlier run {name} is no ground to compare on: {seen}", name=name, seen=error.seen),
            advice=say("--against another run"),
        ) from error
    warnings: tuple[str, ...] = ()
    if found.value <= -limit.value:
        warnings = (say("{said}: check that the load is the same, and that the sensor is the same part's", said=said),)
    return passed(say("{said}; less than {limit}", said=said, limit=limit.text), warnings=warnings, evidence=evidence)


def _earlier_of(material: Material, earlier: Earlier | None) -> Material | str:
    """The earlier run, or why there is nothing to compare with."""
    if earlier is None:
        return say("not compared with an earlier run")
    why = shortened(joined("; ", earlier.why), WHOLE_REASON)
    if earlier.recording is None:
        if earlier.named:
            raise OpenError(
                say("no comparison with {earlier_name}: {why}", earlier_name=earlier.name, why=why),
                advice=say("--against latest, or another run"),
            )
        return say("no earlier run to compare with: {why}", why=why) if why else say("no earlier run to compare with")
    if material.earlier is None:
        raise OpenError(say("the earlier run {path_name} was not read", path_name=earlier.recording.path.name))
    now, then = comparable_facts(material.recording), comparable_facts(earlier.recording)
    reasons = not_comparable(now, then) or why_no_measure(earlier.recording)
    if reasons:
        said = shortened(joined("; ", reasons), WHOLE_REASON)
        if earlier.named:
            raise OpenError(
                say("not comparable with {path_name}: {said}", path_name=earlier.recording.path.name, said=said),
                advice=say("--against latest"),
            )
        return say("not comparable with {path_name}: {said}", path_name=earlier.recording.path.name, said=said)
    return material.earlier


def _need_same_ground(material: Material, series: Series) -> None:
    """That the rise of a run is worth comparing."""
    need_belief(material, series)
    need_coverage(material, series, "steady")
    need_cold_start(material, series)
    need_load(material, series.sensor.device)
