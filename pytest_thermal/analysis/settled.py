"""Whether a temperature has settled: by a named standard's rate, and by what it would still rise by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.noise import resolution_of
from pytest_thermal.analysis.trend import Trend, fit_trend
from pytest_thermal.model.series import Figure, Phase, Series

ALLOWED_REMAINING = 1.0
"""°C that the temperature may still rise by: the design."""


@dataclass(frozen=True, kw_only=True)
class SettlingRate:
    """A temperature counts as settled when it changes by at most ``kelvin`` in ``seconds``."""

    name: str
    kelvin: float
    seconds: float
    origin: str
    """Where the figure is from."""

    @property
    def per_second(self) -> float:
        """In kelvin per second."""
        return self.kelvin / self.seconds


def _table(*rates: SettlingRate) -> Mapping[str, SettlingRate]:
    return MappingProxyType({rate.name: rate for rate in rates})


SETTLING_RATES = _table(
    SettlingRate(
        name="default",
        kelvin=1.0,
        seconds=300.0,
        origin="1 K in 5 min, the rate that IEC 62368-1 allows well below the limit",
    ),
    SettlingRate(name="iec62368", kelvin=3.0, seconds=1800.0, origin="IEC 62368-1: 3 K in 30 min"),
    SettlingRate(
        name="iec62368_below_limit",
        kelvin=1.0,
        seconds=300.0,
        origin="IEC 62368-1: 1 K in 5 min where the temperature is at least 10 % below its limit",
    ),
    SettlingRate(
        name="iec61010",
        kelvin=2.0,
        seconds=3600.0,
        origin="2 K in 1 h: how IECEE laboratories read IEC 61010-1 (decision sheet DSH 335), which has no rate",
    ),
    SettlingRate(name="iec60034", kelvin=2.0, seconds=3600.0, origin="IEC 60034-1, edition 12: 2 K in 1 h"),
    SettlingRate(name="iec60598", kelvin=1.0, seconds=3600.0, origin="IEC 60598-1: 1 K in 1 h"),
    SettlingRate(name="iec60335_2_6", kelvin=1.0, seconds=900.0, origin="IEC 60335-2-6: 1 K in 15 min"),
)
"""Rates by name. They say when a part counts as settled, not how far it still has to go."""

WIDER = 1.5
"""A window that is too short for a verdict is made longer by this factor, up to the whole phase."""

FULL_CURVATURE = 3.0
"""In slow constants: a window longer than this shows that mode no more, and a slope in it is of something else."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Whether a phase ended settled, and why."""

    settled: Answer
    slope: Figure
    """In the sensor's unit per minute, at the end of the phase; one sigma."""
    remaining: Figure
    """What the temperature would still change by, in the sensor's unit; ``detail`` has the 95 % bound."""
    rate: SettlingRate
    reason: str
    """What speaks against it, or what keeps it open; empty for YES."""


def judge_settled(
    series: Series,
    phase: Phase,
    *,
    slow: Figure | None = None,
    rate: SettlingRate = SETTLING_RATES["default"],
    allowed_remaining: float = ALLOWED_REMAINING,
    loaded_since_seconds: float | None = None,
) -> Settled:
    """Whether the temperature has settled at the end of a phase.

    Args:
        series: A temperature.
        phase: Usually steady.
        slow: Slow time constant in seconds, with its uncertainty, from ``fit_time_constants`` of the heating or the
            cooling curve; None or without a value where it was refused.
        rate: What a standard allows.
        allowed_remaining: °C.
        loaded_since_seconds: When the load went on, unix time; default: the start of the phase.

    The slope is that of ``fit_trend`` over the end of the phase: over the standard's own interval, and longer as long
    as the slope's bound is wider than half of what is allowed. The remaining rise of an exponential is slope × slow
    constant τ at the end; a straight line over a window T shows a slope greater than that at its end by the factor g
    of ``curvature``, so remaining = slope·τ/g(T/τ). Its bound combines those of slope and τ. Where τ is not known, its
    upper bound stands for it, else half of the time under load: a slower mode would not show in this record by any
    means, and a faster one has less to go. It can then be called settled, never unsettled by this.

    YES: the slope's 95 % bounds are within the rate and the bound of the remaining rise is within what is allowed.
    NO: one of them is beyond it even at its lower bound. Else UNKNOWN.
    """
    since = phase.start_seconds if loaded_since_seconds is None else loaded_since_seconds
    known = slow is not None and slow.value is not None
    tau, tau_sigma, origin = _slow_constant(slow, (phase.end_seconds - since) / 2)
    trend = _trend_at_end(series, phase, rate, tau, allowed_remaining)
    if trend is None:
        why = f"too few readings at the end of {phase.name} for a slope"
        return Settled(
            settled=Answer.UNKNOWN,
            slope=Figure.missing("slope", _per_minute(series), why),
            remaining=Figure.missing("remaining_rise", str(series.sensor.unit), why),
            rate=rate,
            reason=why,
        )
    factor = tau / curvature(trend.span_seconds / tau)
    share = tau_sigma / tau
    remaining = trend.slope * factor
    reach = math.hypot(trend.half_width * factor, 1.645 * remaining * share)
    figure = Figure(
        name="remaining_rise",
        value=remaining,
        unit=str(series.sensor.unit),
        uncertainty=math.hypot(math.hypot(trend.sigma, trend.quantisation / math.sqrt(3)) * factor, remaining * share),
        detail={
            "upper": remaining + reach,
            "lower": remaining - reach,
            "slow_seconds": tau,
            "slow_from": origin,
        },
    )
    against, open_questions = _weigh(trend, rate, remaining, reach, allowed_remaining, known=known)
    answer = Answer.NO if against else Answer.UNKNOWN if open_questions else Answer.YES
    return Settled(
        settled=answer,
        slope=_slope_figure(trend, series),
        remaining=figure,
        rate=rate,
        reason="; ".join(against or open_questions),
    )


def judge_baseline_settled(series: Series, phase: Phase, *, rate: SettlingRate = SETTLING_RATES["default"]) -> Settled:
    """Whether a baseline is settled, as far as a short phase and the sensor's resolution can tell.

    NO: the slope over the phase is beyond the rate even at its lower bound. YES: it is within it at its upper bound,
    or the whole drift over the phase is, at its bound, at most 1 °C more than one step of the sensor: a rise can then
    not be wrong by more than a part of that. Else UNKNOWN. Slope as in ``fit_trend``; ``remaining`` is the drift.
    """
    part = series.during(phase)
    trend = fit_trend(part.time_seconds, part.values, resolution_of(series))
    unit = str(series.sensor.unit)
    if trend is None:
        why = "too few readings in the baseline for a slope"
        return Settled(
            settled=Answer.UNKNOWN,
            slope=Figure.missing("slope", _per_minute(series), why),
            remaining=Figure.missing("drift_over_phase", unit, why),
            rate=rate,
            reason=why,
        )
    least, most = _magnitude(trend.slope, trend.half_width)
    allowed = ALLOWED_REMAINING + (resolution_of(series) or 0.0)
    drift = most * trend.span_seconds
    if least > rate.per_second:
        answer, why = Answer.NO, f"it moves by {trend.slope * 60:+.2f} K/min, more than {_spoken(rate)}"
    elif most <= rate.per_second or drift <= allowed:
        answer, why = Answer.YES, ""
    else:
        answer, why = Answer.UNKNOWN, f"it may drift by up to {drift:.1f} K over the phase"
    return Settled(
        settled=answer,
        slope=_slope_figure(trend, series),
        remaining=Figure(
            name="drift_over_phase",
            value=trend.slope * trend.span_seconds,
            unit=unit,
            uncertainty=trend.sigma * trend.span_seconds,
            detail={"bound": drift, "allowed": allowed},
        ),
        rate=rate,
        reason=why,
    )


def curvature(windows: float) -> float:
    """g(u): slope of a straight line through e^(−t/τ) over a window of u·τ, over the curve's slope at the window's end.

    12/u³·((u/2)(eᵘ+1) − eᵘ + 1) → 1 + u/2 for small u; u taken as at most 3.
    """
    u = min(windows, FULL_CURVATURE)
    if u < 1e-2:
        return 1 + u / 2
    return 12 / u**3 * (u / 2 * (math.exp(u) + 1) - math.exp(u) + 1)


def _slow_constant(slow: Figure | None, otherwise: float) -> tuple[float, float, str]:
    """The slow constant to reckon with, its standard uncertainty, and where it comes from."""
    if slow is not None and slow.value is not None:
        return slow.value, slow.uncertainty or 0.0, "fit"
    bound = slow.detail.get("at_most_seconds") if slow is not None else None
    if isinstance(bound, (int, float)) and bound < otherwise:
        return float(bound), 0.0, "upper bound of the fit"
    return otherwise, 0.0, "half of the time under load"


def _trend_at_end(series: Series, phase: Phase, rate: SettlingRate, tau: float, allowed: float) -> Trend | None:
    """The trend over the shortest window that is good for a verdict, else over the one with the narrowest bound."""
    step = resolution_of(series)
    whole = phase.duration_seconds
    window = min(rate.seconds, whole)
    best: Trend | None = None
    while True:
        part = series.between(phase.end_seconds - window, phase.end_seconds)
        trend = fit_trend(part.time_seconds, part.values, step)
        if trend is not None:
            wanted = min(rate.per_second / 2, allowed / 2 / tau * curvature(trend.span_seconds / tau))
            if trend.half_width <= wanted:
                return trend
            if best is None or trend.half_width < best.half_width:
                best = trend
        if window >= whole:
            return best
        window = min(window * WIDER, whole)


def _weigh(
    trend: Trend, rate: SettlingRate, remaining: float, reach: float, allowed: float, *, known: bool
) -> tuple[list[str], list[str]]:
    """What speaks against settled, and what is open."""
    against, open_questions = [], []
    least, most = _magnitude(trend.slope, trend.half_width)
    if least > rate.per_second:
        against.append(f"it moves by {trend.slope * 60:+.2f} K/min, more than {_spoken(rate)}")
    elif most > rate.per_second:
        open_questions.append(
            f"its slope is only known to {trend.slope * 60:+.2f} ± {trend.half_width * 60:.2f} K/min, "
            f"against {_spoken(rate)}"
        )
    least, most = _magnitude(remaining, reach)
    if known and least > allowed:
        against.append(f"{remaining:+.1f} °C are still to come, more than {allowed:g} °C")
    elif most > allowed:
        doubt = "" if known else " and the slow time constant is not known"
        open_questions.append(f"up to {most:.1f} °C may still be to come, more than {allowed:g} °C{doubt}")
    return against, open_questions


def _magnitude(value: float, reach: float) -> tuple[float, float]:
    """Least and greatest size of a value that is known to ± reach."""
    return max(abs(value) - reach, 0.0), abs(value) + reach


def _spoken(rate: SettlingRate) -> str:
    return f"{rate.kelvin:g} K in {rate.seconds / 60:g} min ({rate.name})"


def _per_minute(series: Series) -> str:
    return f"{series.sensor.unit}/minute"


def _slope_figure(trend: Trend, series: Series) -> Figure:
    return Figure(
        name="slope",
        value=trend.slope * 60,
        unit=_per_minute(series),
        uncertainty=trend.sigma * 60,
        detail={
            "upper": trend.upper * 60,
            "lower": trend.lower * 60,
            "quantisation": trend.quantisation * 60,
            "window_seconds": trend.span_seconds,
            "readings": trend.readings,
            "effective_readings": round(trend.effective_readings, 1),
        },
    )
