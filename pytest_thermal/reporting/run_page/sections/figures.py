"""Figures with their limits and where each limit came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_thermal.findings import CHECKS, Limit
from pytest_thermal.findings.devices import power_of, utilization_of
from pytest_thermal.findings.limits import UNITS
from pytest_thermal.findings.subjects import in_order
from pytest_thermal.model import Sensor, Unit
from pytest_thermal.model.series import Phase, Series
from pytest_thermal.reporting.run_page.kinds import DRAWN_PER_UNIT, kind_of_quantity
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import number, with_uncertainty
from pytest_thermal.reporting.run_page.sections.verdict import badge
from pytest_thermal.reporting.run_page.subject import SEVERITY, Subject
from pytest_thermal.reporting.run_page.tables import table

Figures = Mapping[str, Mapping[str, Any]]


def figures(subject: Subject) -> Markup:
    """Key figures of temperatures; of devices; and, folded away, all sensors, checks and limits."""
    words = subject.words
    return tag(
        "section",
        tag("h2", words("figures")),
        _temperatures(subject),
        tag("h3", words("by_device")),
        _devices(subject),
        tag("h3", words("of_the_run")),
        _of_the_run(subject),
        _by_phase(subject),
        _checks(subject),
        _limits(subject),
        id="figures",
    )


# ------------------------------------------------------------------------------------------------------- temperatures


def _temperatures(subject: Subject) -> Markup:
    words = subject.words
    sensors = [sensor for sensor in _sensors(subject) if subject.figures(sensor.id)]
    if not sensors:
        return tag("p", words("no_figures"))
    columns = ("baseline", "steady", "rise", "peak", "slope", "remaining", "rebound", "slow", "resistance", "drift")
    head = [words("sensor"), *(words(name) for name in columns)]
    rows = [[_short(sensor), *_row(subject, sensor)] for sensor in sensors]
    return joined(tag("p", words("figures_hint"), class_="hint"), table(head, rows, id_="key-figures"))


def _short(sensor: Sensor) -> Markup:
    """All of this table are temperatures: that need not be said in each row."""
    return tag("code", sensor.id.removesuffix(".temperature_celsius"), title=sensor.id)


def _row(subject: Subject, sensor: Sensor) -> Iterator[Markup]:
    words, known = subject.words, _named(subject.figures(sensor.id))

    def cell(name: str, check: str | None, limit: Markup | None, **style: Any) -> Markup:
        return _figure_cell(subject, known.get(name), _outcome(subject, check, sensor.id), limit, **style)

    yield cell("baseline", "baseline", _at_most(subject, subject.limit("baseline_most")))
    yield cell("steady", None, None)
    yield cell("rise", "rise", _rise_limit(subject, sensor), sign=True)
    yield cell("peak", "threshold", _at_most(subject, subject.threshold(sensor)))
    yield cell("steady_slope", "settled", _at_most(subject, subject.limit("settling")), decimals=3, sign=True)
    yield cell("remaining_rise", "settled", _at_most(subject, subject.limit("remaining_most")), sign=True)
    yield cell("rebound", "rebound", _at_most(subject, subject.limit("rebound_most")))
    yield cell("slow", None, None, decimals=0)
    resistance = known.get("resistance")
    reference = ((resistance or {}).get("detail") or {}).get("reference")
    over = _small(words("over", reference=reference)) if reference else None
    yield cell("resistance", None, over, decimals=4)
    drift = subject.finding("drift", sensor.id)
    yield _drift_cell(subject, drift)


def _named(told: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Figures by name. A slope stands twice: the one of steady comes right before what is still to come."""
    found: dict[str, Mapping[str, Any]] = {}
    for before, one in zip([{}, *told], told, strict=False):
        name = str(one.get("name"))
        if name == "remaining_rise" and before.get("name") == "slope":
            found["steady_slope"] = before
        if name == "slow_time_constant" and (found.get("slow") or {}).get("value") is None:
            found["slow"] = one
        found.setdefault(name, one)
    return found


def _figure_cell(
    subject: Subject,
    figure: Mapping[str, Any] | None,
    outcome: str | None,
    limit: Markup | None,
    *,
    decimals: int = 1,
    sign: bool = False,
) -> Markup:
    told = figure or {}
    unit = UNITS.get(str(told.get("unit")), {"celsius/watt": "°C/W", "seconds": "s"}.get(str(told.get("unit")), ""))
    text = with_uncertainty(told.get("value"), told.get("uncertainty"), decimals, sign=sign, unit=unit)
    reason = str(told.get("reason") or "") or None
    return tag(
        "td",
        tag("div", text, title=reason, class_="value"),
        limit,
        badge(outcome, subject.words) if outcome in SEVERITY and outcome != "skipped" else None,
        class_=outcome,
    )


def _outcome(subject: Subject, check: str | None, of: str) -> str | None:
    found = subject.finding(check, of) if check else None
    return None if found is None else str(found.get("outcome"))


def _at_most(subject: Subject, limit: Limit | None, key: str = "at_most") -> Markup | None:
    if limit is None:
        return None
    return _small(f"{subject.words(key, limit=_value(limit))} ({limit.origin})")


def _rise_limit(subject: Subject, sensor: Sensor) -> Markup | None:
    found = subject.rise(sensor)
    if found is None or subject.finding("rise", sensor.id) is None:
        return None
    least, most = found
    origins = dict.fromkeys((least.origin, most.origin))
    allowed = subject.words("between", least=f"{least.value:g}", most=_value(most))
    return _small(f"{allowed} ({', '.join(origins)})")


def _value(limit: Limit) -> str:
    if limit.unit == "ratio":
        return f"{100 * limit.value:g} %"
    return f"{limit.value:g} {UNITS.get(limit.unit, limit.unit)}".strip()


def _small(text: str) -> Markup:
    return tag("div", text, class_="limit")


def _drift_cell(subject: Subject, drift: Mapping[str, Any] | None) -> Markup:
    if drift is None or drift.get("outcome") == "skipped":
        return tag("td", tag("div", "–", title=str(drift["seen"]) if drift else None, class_="value"))
    evidence = drift.get("evidence") or {}
    change = next((value for name, value in evidence.items() if "drift" in name or "change" in name), None)
    return tag(
        "td",
        tag("div", number(change, 1, sign=True, unit="°C"), title=str(drift["seen"]), class_="value"),
        _at_most(subject, subject.limit("drift_most")),
        badge(str(drift["outcome"]), subject.words) if drift["outcome"] in ("failed", "inconclusive") else None,
        class_=str(drift["outcome"]),
    )


# ------------------------------------------------------------------------------------------------------------ devices


def _devices(subject: Subject) -> Markup:
    words = subject.words
    names = [str(one["subject"]) for one in subject.findings if one.get("check") in ("load", "throttling")]
    rows = [[tag("code", name), *_device_row(subject, name)] for name in dict.fromkeys(names)]
    head = [words(key) for key in ("device", "utilisation", "power", "load_check", "throttling")]
    return table(head, rows) if rows else tag("p", words("no_devices"))


def _of_the_run(subject: Subject) -> Markup:
    """Phases, pumps, throughput, and checks of somebody else's."""
    words = subject.words
    shown = [one for one in subject.findings if one["check"] in ("phase", "pump", "leak", "throughput")]
    shown += [one for one in subject.findings if one["check"] not in (*CHECKS, "phase")]
    limits = {"pump": "pump_least", "throughput": "throughput_least"}
    rows: list[list[object]] = []
    for one in shown:
        limit = subject.limit(limits.get(str(one["check"]), ""))
        rows.append(
            [
                tag("code", f"{one['check']}[{one['subject']}]"),
                tag("td", badge(str(one["outcome"]), words), class_=str(one["outcome"])),
                str(one["seen"]),
                _at_most(subject, limit, "at_least") or _limit_of(one),
            ]
        )
    return table([words(key) for key in ("check", "outcome", "seen", "limit")], rows)


def _device_row(subject: Subject, name: str) -> Iterator[Markup]:
    steady = next((phase for phase in subject.recording.phases if phase.name == "steady"), None)
    series = subject.recording.series
    load, throttling = subject.finding("load", name), subject.finding("throttling", name)
    use, watts = _mean(utilization_of(name, series), steady), _mean(power_of(name, series), steady)
    least = _at_most(subject, subject.limit("utilization_least"), "at_least") if load else None
    yield tag("td", tag("div", number(use, 0, unit="%"), class_="value"), least)
    yield tag("td", tag("div", number(watts, 0, unit="W"), class_="value"))
    yield _said(subject, load)
    yield _said(
        subject, throttling, _at_most(subject, subject.limit("throttling_most")) if throttling is not None else None
    )


def _said(subject: Subject, found: Mapping[str, Any] | None, limit: Markup | None = None) -> Markup:
    if found is None:
        return tag("td", "")
    outcome = str(found["outcome"])
    return tag(
        "td", badge(outcome, subject.words), tag("div", str(found["seen"]), class_="limit said"), limit, class_=outcome
    )


def _mean(series: Series | None, phase: Phase | None) -> float | None:
    if series is None or phase is None:
        return None
    _, values = series.during(phase).readings()
    return float(values.mean()) if values.size else None


# ------------------------------------------------------------------------------------------------------- folded tables


def _by_phase(subject: Subject) -> Markup:
    words, phases = subject.words, subject.recording.phases
    rows: list[list[object]] = []
    for sensor in _sensors(subject):
        series = subject.recording.series[sensor.id]
        kind = kind_of_quantity(sensor)
        if kind is None or sensor.unit is Unit.MILLISECONDS:
            continue
        factor = DRAWN_PER_UNIT.get(sensor.unit, 1.0)
        cells: list[object] = []
        for phase in phases:
            _, values = series.during(phase).readings()
            cells.append(_spread(values * factor, kind.decimals) if values.size else "–")
        rows.append([tag("code", sensor.id), kind.unit, *cells])
    head = [words("sensor"), "", *(words(f"phase_{phase.name}") for phase in phases)]
    return tag("details", tag("summary", words("by_phase")), table(head, rows))


def _spread(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], decimals: int) -> str:
    return f"{number(values.mean(), decimals)} ({number(values.min(), decimals)} … {number(values.max(), decimals)})"


def _checks(subject: Subject) -> Markup:
    words = subject.words
    rows = [
        [tag("code", str(one["check"])), tag("code", str(one["subject"])), badge(str(one["outcome"]), words),
         str(one["seen"]), _limit_of(one)]
        for one in subject.findings
    ]  # fmt: skip
    head = [words("check"), words("subject"), words("outcome"), words("seen"), words("limit")]
    return tag("details", tag("summary", words("all_checks", count=len(rows))), table(head, rows))


def _limit_of(found: Mapping[str, Any]) -> str:
    evidence = found.get("evidence") or {}
    values = [
        f"{value:g} {name.removeprefix('limit').strip('_').replace('_', ' ')}".strip()
        for name, value in evidence.items()
        if name.startswith("limit") and isinstance(value, (int, float))
    ]
    origin = evidence.get("limit_origin")
    return f"{', '.join(values)} ({origin})" if values and origin else ", ".join(values)


def _limits(subject: Subject) -> Markup:
    words = subject.words
    rows = [[tag("code", limit.name), _value(limit), limit.origin] for limit in subject.limits]
    head = [words("limit"), words("value"), words("origin")]
    return tag("details", tag("summary", words("all_limits", count=len(rows))), table(head, rows))


def _sensors(subject: Subject) -> tuple[Sensor, ...]:
    return in_order(series.sensor for series in subject.recording.series.values())
