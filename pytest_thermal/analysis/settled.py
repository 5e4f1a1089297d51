"""Whether a temperature has settled: by a named standard's rate, and by what it would still rise by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.noise import resolution_of
from pytest_thermal.analysis.settling_rates import SETTLING_RATES, SettlingRate
from pytest_thermal.analysis.trend import Trend, fit_trend
from pytest_thermal.model.said import joined, say
from pytest_thermal.model.series import Figure, Phase, Series

ALLOWED_REMAINING = 1.0
"""°C that the temperature may still rise by: what a sensor of 1 °C can show."""

GOOD_ENOUGH = 0.5
"""A bound is good for a verdict when it is at most this share of what is allowed."""

WIDER = 1.5
"""A window that is too short for a verdict is made longer by this factor."""

SLOWEST_SECONDS = 1800.0
"""The slowest constant to reckon with where none is known: no loop of a machine is slower."""

SHOWS_THE_MODE = 3.0
"""In slow constants: a window up to this long still shows that mode's bend,"""
MODE_IS_OVER = 6.0
"""and one that begins so long after the load went on shows no more of it."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Whether a phase ended settled, and why."""

    settled: Answer
    slope: Figure
    """In the sensor's unit per minute, over the standard's interval at the end of the phase; one sigma."""
    remaining: Figure
    """What the temperature would still change by, in the sensor's unit; ``detail`` has the 95 % bound."""
    rate: SettlingRate
    reason: str
    """What speaks against it, or what keeps it open; empty for YES."""


@dataclass(frozen=True, kw_only=True)
class _SlowConstant:
    """The slow time constant to reckon with, in seconds."""

    tau: float
    sigma: float
    known: bool
    origin: str


@dataclass(frozen=True, kw_only=True)
class _EndSlope:
    """A trend at the end of a phase, and what it is times this or that."""

    trend: Trend
    to_interval: float
    """× slope: mean slope over the standard's interval, by the shape that fits best."""
    to_remaining: float
    """× slope: remaining rise, in seconds."""
    to_interval_most: float
    to_remaining_most: float
    """The same by the shape, of those that fit, by which it is the most."""


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

    The slope is that of ``fit_trend`` over the standard's interval at the end of the phase, or over the first of some
    other windows whose bounds are at most half of what is allowed. A straight line through an exponential of constant
    τ over a window T has a slope greater than the curve's at its end, by the factor g(T/τ) of ``curvature``. So the
    mean slope over the interval I is slope·g(I/τ)/g(T/τ), which must be within the rate, and the remaining rise, slow
    constant times slope at the end, is slope·τ/g(T/τ). Its bound combines those of slope and τ.

    That holds where the window is bent like that. Where it may as well be straight, as of a room that warms up, it has
    to be within the rate, and the rest within 1 °C, by either shape.

    Where τ is not known, its upper bound stands for it, else half of the time under load, at most half an hour: a
    slower mode would not show in this record by any means, and a faster one has less to go. The temperature can then
    be called settled, and unsettled by the rate over the interval itself, but never by the remaining rise.

    YES: the 95 % bounds of both are within what is allowed. NO: one of them is beyond it even at its lower bound.
    Else UNKNOWN.
    """
    since = phase.start_seconds if loaded_since_seconds is None else loaded_since_seconds
    constant = _slow_constant(slow, min((phase.end_seconds - since) / 2, SLOWEST_SECONDS))
    slopes = _end_slopes(series, phase, rate, constant, since)
    unit = str(series.sensor.unit)
    first = next(slopes, None)
    if first is None:
        return _undecided(
            series,
            rate,
            "remaining_rise",
            say("too few readings at the end of {phase_name} for a slope", phase_name=phase.name),
        )
    end = _best(chain([first], slopes), rate, allowed_remaining)
    share = constant.sigma / constant.tau
    remaining = end.trend.slope * end.to_remaining
    reach = math.hypot(end.trend.half_width * end.to_remaining, 1.645 * remaining * share)
    upper = abs(end.trend.slope) * end.to_remaining_most
    upper += math.hypot(end.trend.half_width * end.to_remaining_most, 1.645 * upper * share)
    sigma = math.hypot(end.trend.sigma, end.trend.quantisation / math.sqrt(3)) * end.to_remaining
    figure = Figure(
        name="remaining_rise",
        value=remaining,
        unit=unit,
        uncertainty=math.hypot(sigma, remaining * share),
        detail={
            "upper": remaining + reach,
            "lower": remaining - reach,
            "slow_seconds": constant.tau,
            "slow_from": constant.origin,
        },
    )
    # Without a known constant a longer window's slope says nothing of the interval's, but that it is no greater.
    against = _too_fast(end if constant.known else first, rate)
    open_questions = _may_be_too_fast(end, rate)
    least, most = max(abs(remaining) - reach, 0.0), upper
    if constant.known and least > allowed_remaining:
        against.append(
            say(
                "{remaining:+.1f} °C are still to come, more than {allowed_remaining:g} °C",
                remaining=remaining,
                allowed_remaining=allowed_remaining,
            )
        )
    elif most > allowed_remaining:
        doubt = "" if constant.known else say(" as the slow time constant is not known")
        open_questions.append(
            say(
                "up to {most:.1f} °C may still be to come, more than {allowed_remaining:g} °C{doubt}",
                most=most,
                allowed_remaining=allowed_remaining,
                doubt=doubt,
            )
        )
    return Settled(
        settled=Answer.NO if against else Answer.UNKNOWN if open_questions else Answer.YES,
        slope=_slope_figure(end.trend, series, end.to_interval),
        remaining=figure,
        rate=rate,
        reason=joined("; ", against or open_questions),
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
        return _undecided(series, rate, "drift_over_phase", say("too few readings in the baseline for a slope"))
    least, most = _magnitude(trend.slope, trend.half_width)
    allowed = ALLOWED_REMAINING + (resolution_of(series) or 0.0)
    drift = most * trend.span_seconds
    if least > rate.per_second:
        answer, why = (
            Answer.NO,
            say("it moves by {slope:+.2f} K/min, more than {spoken}", slope=trend.slope * 60, spoken=_spoken(rate)),
        )
    elif most <= rate.per_second or drift <= allowed:
        answer, why = Answer.YES, ""
    else:
        answer, why = Answer.UNKNOWN, say("it may drift by up to {drift:.1f} K over the phase", drift=drift)
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

    12/u³·((u/2)(eᵘ+1) − eᵘ + 1), from the least-squares slope of the integral; 1 + u/2 for small u.
    """
    if windows < 1e-2:
        return 1 + windows / 2
    grown = math.exp(windows)
    return 12 / windows**3 * (windows / 2 * (grown + 1) - grown + 1)


def _slow_constant(slow: Figure | None, otherwise: float) -> _SlowConstant:
    if slow is not None and slow.value is not None:
        return _SlowConstant(tau=slow.value, sigma=slow.uncertainty or 0.0, known=True, origin="fit")
    bound = slow.detail.get("at_most_seconds") if slow is not None else None
    if isinstance(bound, (int, float)) and bound < otherwise:
        return _SlowConstant(tau=float(bound), sigma=0.0, known=False, origin="upper bound of the fit")
    return _SlowConstant(tau=otherwise, sigma=0.0, known=False, origin="half of the time under load")


def _end_slopes(
    series: Series, phase: Phase, rate: SettlingRate, constant: _SlowConstant, since: float
) -> Iterator[_EndSlope]:
    """The trend over each window that says something of the end, the standard's interval first."""
    step = resolution_of(series)
    interval = min(rate.seconds, phase.duration_seconds)
    for window in _windows(rate.seconds, phase.duration_seconds):
        over = phase.end_seconds - window - since >= MODE_IS_OVER * constant.tau
        if window > interval and window > SHOWS_THE_MODE * constant.tau and not over:
            continue
        part = series.between(phase.end_seconds - window, phase.end_seconds)
        trend = fit_trend(part.time_seconds, part.values, step, tau=constant.tau)
        if trend is not None:
            bend = _bend(window, constant.tau)
            to_interval = _bend(interval, constant.tau) / bend if constant.known and bend > 1 else 1.0
            shapes = [(to_interval, constant.tau / bend)] if trend.may_be_bent else []
            # A constant that stands for an unknown one is long already: its bend is doubted where much is made of it.
            if not shapes or (trend.may_be_straight if constant.known else window > constant.tau):
                shapes.append((1.0, constant.tau))
            yield _EndSlope(
                trend=trend,
                to_interval=shapes[0][0],
                to_remaining=shapes[0][1],
                to_interval_most=max(one[0] for one in shapes),
                to_remaining_most=max(one[1] for one in shapes),
            )


def _bend(window: float, tau: float) -> float:
    """``curvature``, or 1 for a window in which that mode is over: a slope there is of something else."""
    return curvature(window / tau) if window <= SHOWS_THE_MODE * tau else 1.0


def _windows(interval: float, whole: float) -> Iterator[float]:
    """The standard's interval, half of it in case the curve is much bent, then longer ones up to the whole phase."""
    yield min(interval, whole)
    if interval / 2 < whole:
        yield interval / 2
    window = interval * WIDER
    while window < whole:
        yield window
        window *= WIDER
    if interval < whole:
        yield whole


def _best(slopes: Iterable[_EndSlope], rate: SettlingRate, allowed: float) -> _EndSlope:
    """The first whose bounds leave room for a verdict, else the one with the narrowest."""
    found: list[tuple[float, _EndSlope]] = []
    for end in slopes:
        half = end.trend.half_width
        width = max(half * end.to_interval_most / rate.per_second, half * end.to_remaining_most / allowed)
        if width <= GOOD_ENOUGH:
            return end
        found.append((width, end))
    return min(found, key=lambda pair: pair[0])[1]


def _too_fast(end: _EndSlope, rate: SettlingRate) -> list[str]:
    least, _ = _magnitude(end.trend.slope, end.trend.half_width)
    if least * end.to_interval <= rate.per_second:
        return []
    return [
        say(
            "it moves by {slope:+.2f} K/min, more than {spoken}",
            slope=end.trend.slope * end.to_interval * 60,
            spoken=_spoken(rate),
        )
    ]


def _may_be_too_fast(end: _EndSlope, rate: SettlingRate) -> list[str]:
    _, most = _magnitude(end.trend.slope, end.trend.half_width)
    if most * end.to_interval_most <= rate.per_second:
        return []
    slope, half = (60 * value * end.to_interval_most for value in (end.trend.slope, end.trend.half_width))
    return [
        say(
            "its slope is only known to {slope:+.2f} ± {half:.2f} K/min, against {spoken}",
            slope=slope,
            half=half,
            spoken=_spoken(rate),
        )
    ]


def _magnitude(value: float, reach: float) -> tuple[float, float]:
    """Least and greatest size of a value that is known to ± reach."""
    return max(abs(value) - reach, 0.0), abs(value) + reach


def _spoken(rate: SettlingRate) -> str:
    return say(
        "{kelvin:g} K in {seconds:g} min ({rate_name})",
        kelvin=rate.kelvin,
        seconds=rate.seconds / 60,
        rate_name=say("default") if rate.name == "default" else rate.name,
    )


def _per_minute(series: Series) -> str:
    return f"{series.sensor.unit}/minute"


def _undecided(series: Series, rate: SettlingRate, remaining: str, why: str) -> Settled:
    return Settled(
        settled=Answer.UNKNOWN,
        slope=Figure.missing("slope", _per_minute(series), why),
        remaining=Figure.missing(remaining, str(series.sensor.unit), why),
        rate=rate,
        reason=why,
    )


def _slope_figure(trend: Trend, series: Series, factor: float = 1.0) -> Figure:
    return Figure(
        name="slope",
        value=trend.slope * factor * 60,
        unit=_per_minute(series),
        uncertainty=trend.sigma * factor * 60,
        detail={
            "upper": trend.upper * factor * 60,
            "lower": trend.lower * factor * 60,
            "quantisation": trend.quantisation * factor * 60,
            "window_seconds": trend.span_seconds,
            "readings": trend.readings,
            "effective_readings": round(trend.effective_readings, 1),
        },
    )
