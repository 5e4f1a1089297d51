"""This run against an earlier one: ``drift``."""

from __future__ import annotations

from pytest_thermal.analysis import drift as drift_of
from pytest_thermal.analysis import not_comparable
from pytest_thermal.findings.earlier import Earlier
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
from pytest_thermal.model.series import Series

WHOLE_REASON = 120


def drift(material: Material, earlier: Earlier | None, subject: str) -> Verdict:
    """Whether the temperature rises by no more than in an earlier, comparable run."""
    series = need_series(material, subject)
    before = _earlier_of(material, earlier)
    if isinstance(before, str):
        return skipped(f"{subject}: {before}")
    if not material.to_be_loaded(series.sensor.device):
        return skipped(f"{subject}: {series.sensor.device} was not to be loaded")
    then = before.series(subject)
    name = before.recording.path.name
    if then is None or then.sensor.identity != series.sensor.identity:
        raise OpenError(f"{subject} is not in the earlier run {name}, or is another part there")
    need_phases(material, "baseline", "steady")
    found = drift_of(
        material.figures(series).rise,
        before.figures(then).rise,
        resistance=material.resistance(series) if material.is_main(series.sensor) else None,
        earlier_resistance=before.resistance(then) if material.is_main(series.sensor) else None,
    )
    limit = material.limits["drift_most"]
    if found.value is None:
        raise OpenError(f"the drift of {subject} against {name} is not known: {found.reason}")
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
    words = "hotter" if found.value >= 0 else "cooler"
    said = f"{subject} gets {abs(found.value):.1f}{sigma} °C {words} than in {name}, by its {by}"
    if found.value >= limit.value:
        likely, advice = fault_words(
            material,
            series,
            "paste has aged, filters or radiator have clogged, or coolant is lost",
            "clean, top up, bleed",
        )
        return failed(f"{said}; {limit.text} or more fails", likely=likely, advice=advice, evidence=evidence)
    _need_same_ground(material, series)
    try:
        _need_same_ground(before, then)
    except OpenError as error:
        raise OpenError(
            f"the earlier run {name} is no ground to compare on: {error.seen}", advice="--against another run"
        ) from error
    warnings: tuple[str, ...] = ()
    if found.value <= -limit.value:
        warnings = (f"{said}: check that the load is the same, and that the sensor is the same part's",)
    return passed(f"{said}; less than {limit.text}", warnings=warnings, evidence=evidence)


def _earlier_of(material: Material, earlier: Earlier | None) -> Material | str:
    """The earlier run, or why there is nothing to compare with."""
    if earlier is None:
        return "not compared with an earlier run"
    why = shortened("; ".join(earlier.why), WHOLE_REASON)
    if earlier.recording is None:
        if earlier.named:
            raise OpenError(f"no comparison with {earlier.name}: {why}", advice="--against latest, or another run")
        return f"no earlier run to compare with: {why}" if why else "no earlier run to compare with"
    if material.earlier is None:
        raise OpenError(f"the earlier run {earlier.recording.path.name} was not read")
    reasons = not_comparable(comparable_facts(material.recording), comparable_facts(earlier.recording))
    if reasons:
        said = shortened("; ".join(reasons), WHOLE_REASON)
        if earlier.named:
            raise OpenError(f"not comparable with {earlier.recording.path.name}: {said}", advice="--against latest")
        return f"not comparable with {earlier.recording.path.name}: {said}"
    return material.earlier


def _need_same_ground(material: Material, series: Series) -> None:
    """That the rise of a run is worth comparing."""
    need_belief(material, series)
    need_coverage(material, series, "steady")
    need_cold_start(material, series)
    need_load(material, series.sensor.device)
