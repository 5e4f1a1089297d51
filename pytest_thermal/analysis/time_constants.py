"""The fast and the slow time constant of a heating or cooling curve, or why they cannot be told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.curve_points import INVERTIBLE, CurvePoints, binned, crossings
from pytest_thermal.analysis.exponentials import ExponentialFit, fit_exponentials, refine
from pytest_thermal.analysis.noise import noise_sigma, resolution_of
from pytest_thermal.analysis.numerics import student_quantile
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import say
from pytest_thermal.model.series import Figure, FloatArray, Series

WITHIN = 0.10
"""A time constant that is not known to within this share, at ``SURE`` two-sided, is refused."""
SURE = 0.99
WHITE = 0.01
"""Residuals are called not white when white ones would look like this less often."""
WHITE_ELSE = 0.05
"""The same where the plain fit has failed already: of several tries one looks white by chance."""
EXACT = 0.001
"""Residuals below this share of the curve's height need not be white: no sensor could tell."""
STAIRCASE_CARE = 1.5
"""Errors of a staircase's crossings are neither normal nor quite independent: its bounds are widened by this."""
HIDDEN_NOISE = 0.1
"""Noise below this share of the resolution does not show in the readings."""
LONGEST_SECONDS = 4 * 3600.0
"""No more of a curve is looked at: later the room changes more than the loop, and it would only cost time."""
LEAST_READINGS = 24
LEAST_POINTS, LEAST_POINTS_ELSE = 12, 40
"""With few points anything looks white: more are needed where the plain fit has failed already."""


@dataclass(frozen=True, kw_only=True)
class TimeConstants:
    """T(t) = final − fast_rise·e^(−t/fast) − slow_rise·e^(−t/slow), t from the start of the curve.

    All five or none, but for the fast mode: it is missing on its own when one exponential is enough, or when it is
    too fast for the sampling.
    """

    fast: Figure
    """In seconds."""
    slow: Figure
    """In seconds; of the only mode, where there is one. One that is refused because it is not known well enough has
    the bound that is known of it in its detail, ``at_most_seconds``."""
    fast_rise: Figure
    """In the sensor's unit; negative when cooling."""
    slow_rise: Figure
    final: Figure
    """Where the curve leads to, in the sensor's unit."""


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """Present readings of a curve from its onset on."""

    seconds: FloatArray
    values: FloatArray
    step: float | None
    noise: float
    """σ before quantisation."""
    swing: float
    unit: str

    @property
    def bare(self) -> bool:
        """Whether the readings are a staircase that noise does not smooth."""
        return self.step is not None and math.exp(-2 * (math.pi * self.noise / self.step) ** 2) > INVERTIBLE


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """One way to look at a curve, in seconds since its onset."""

    skip: float
    narrowest: float
    end: float


def fit_time_constants(series: Series, start_seconds: float, end_seconds: float) -> TimeConstants:
    """Fit two exponentials to the response to a step of load.

    Args:
        series: A temperature.
        start_seconds: When the load went on (or off), unix time.
        end_seconds: Up to when it stayed so.

    Two exponentials are the step response of two thermal RC lumps in Foster form (Székely and Van Bien, "Fine
    structure of heat flow path in semiconductor devices: a measurement and identification method", Solid-State
    Electronics 31 (1988)), one being the lumped capacitance of any textbook (Incropera and DeWitt, "Fundamentals of
    Heat and Mass Transfer"). The curve is taken as some hundred points (``curve_points``) and fitted by
    ``exponentials``. It begins at the first reading that has moved, and amplitudes are free, so a load that starts
    late does no harm.

    Refused, not guessed: when the residuals are not white (Ljung and Box, p < 0.01); when a constant is not known to
    10 % at 99 %; when the curve is too short, too flat or too sparse. Where the plain fit's residuals are not white,
    a few set wider bins and later starts are tried: correlated noise, or a load that took some seconds to rise, are
    no reason to refuse the slow constant. The fast one is also refused when it changes with where the fit begins.
    """
    times, values = series.between(start_seconds, min(end_seconds, start_seconds + LONGEST_SECONDS)).readings()
    seconds = times - start_seconds
    unit = str(series.sensor.unit)
    if seconds.size < LEAST_READINGS:
        return _refused(unit, say("{size} readings are too few for a curve", size=seconds.size))
    step = resolution_of(series)
    few = max(values.size // 50, 3)
    begin, end = float(np.median(values[:3])), float(np.median(values[-few:]))
    noise = _noise(values, begin, end, step)
    swing = abs(end - begin)
    if swing < max(6 * noise, 4 * (step or 0.0), 1e-6):
        return _refused(
            unit, say("the temperature moves by {swing:.1f} only, too little against noise and resolution", swing=swing)
        )
    moved = max(4 * noise, 1.01 * (step or 0.0), 0.02 * swing)
    onset = _onset(series, start_seconds, seconds, values, moved)
    curve = _Curve(seconds=seconds - onset, values=values, step=step, noise=noise, swing=swing, unit=unit)
    reason = say("the curve has too few points")
    for cut in _cuts(curve, series.period_seconds):
        points = _points(curve, cut)
        if points is None:
            continue
        fit = fit_exponentials(points, cut.narrowest)
        if fit is None:
            reason = say("no exponentials follow the curve")
            continue
        unlikely = fit.whiteness()
        plain = cut.skip == 0 and cut.narrowest == series.period_seconds
        if unlikely < (WHITE if plain else WHITE_ELSE) and fit.scatter > EXACT * swing:
            reason = say(
                "the residuals are not white (p = {unlikely:.2g}): the curve is not two exponentials", unlikely=unlikely
            )
            continue
        if curve.bare and not _stays_on_staircase(fit, curve, cut):
            reason = say("the fitted curve leaves the staircase of the readings")
            continue
        return _told(fit, curve, cut, onset)
    return _refused(unit, reason)


def _noise(values: FloatArray, begin: float, end: float, step: float | None) -> float:
    """σ before quantisation, from the part of the curve that passes through many levels at no great speed.

    On a plateau a coarse sensor may stand between two levels and show less noise than there is.
    """
    progress = (values - begin) / (end - begin) if end != begin else np.zeros(values.size)
    passed, arrived = np.flatnonzero(progress >= 0.5), np.flatnonzero(progress >= 0.97)
    low = int(passed[0]) if passed.size else 0
    high = int(arrived[0]) if arrived.size else values.size
    stretch = values[low:high] if high - low >= 30 else values
    drift = (stretch[-1] - stretch[0]) / max(stretch.size - 1, 1)
    seen = noise_sigma(stretch) ** 2 - drift**2 / 2
    return math.sqrt(max(seen - (0.0 if step is None else step**2 / 12), 0.0))


def _onset(series: Series, start_seconds: float, seconds: FloatArray, values: FloatArray, threshold: float) -> float:
    """When the curve begins, in seconds after the start: the first of two readings in a row that have moved."""
    _, before = series.between(start_seconds - 10 * series.period_seconds, start_seconds).readings()
    level = float(np.median(before)) if before.size else float(values[0])
    moved = np.abs(values - level) > threshold
    first = np.flatnonzero(moved[:-1] & moved[1:])
    return float(seconds[first[0]]) if first.size else 0.0


def _cuts(curve: _Curve, period: float) -> Iterator[_Cut]:
    trials = ((0, 1), (10, 1)) if curve.bare else ((0, 1), (3, 1), (10, 1), (3, 8), (30, 8), (30, 32))
    span = float(curve.seconds[-1])
    for end in (span, span / 4) if span > 3600 else (span,):
        for skip, narrowest in trials:
            if max(skip, narrowest) * period <= end / 20:
                yield _Cut(skip=skip * period, narrowest=narrowest * period, end=end)


def _inside(curve: _Curve, cut: _Cut) -> tuple[FloatArray, FloatArray]:
    low, high = np.searchsorted(curve.seconds, (cut.skip, cut.end * (1 + 1e-12)))
    return curve.seconds[low:high] - cut.skip, curve.values[low:high]


def _points(curve: _Curve, cut: _Cut) -> CurvePoints | None:
    seconds, values = _inside(curve, cut)
    if seconds.size < LEAST_READINGS:
        return None
    if curve.bare and curve.step is not None:
        points = crossings(seconds, values, resolution=curve.step)
    else:
        points = binned(seconds, values, narrowest=cut.narrowest, resolution=curve.step, noise=curve.noise)
    least = LEAST_POINTS if curve.bare or cut.skip == 0 else LEAST_POINTS_ELSE
    return points if points is not None and points.seconds.size >= least else None


def _stays_on_staircase(fit: ExponentialFit, curve: _Curve, cut: _Cut) -> bool:
    """Whether all but 2 % of the readings are where the fitted curve puts them; some thousand are looked at."""
    seconds, values = _inside(curve, cut)
    some = slice(None, None, max(seconds.size // 2000, 1))
    step = curve.step or 0.0
    reach = step / 2 + 4 * max(curve.noise, HIDDEN_NOISE * step)
    return float(np.mean(np.abs(values[some] - fit.at(seconds[some])) <= reach)) >= 0.98


def _told(fit: ExponentialFit, curve: _Curve, cut: _Cut, onset: float) -> TimeConstants:
    slowest = fit.taus.size - 1
    tau, span = float(fit.taus[slowest]), cut.end - cut.skip
    quantile = student_quantile(0.5 + SURE / 2, fit.freedom) * (STAIRCASE_CARE if curve.bare else 1.0)
    spread = quantile * fit.relative(slowest)
    if tau > span:
        return _refused(curve.unit, say("the curve is shorter ({span:.0f} s) than its slow constant", span=span))
    if spread > WITHIN:
        why = say("the slow constant, about {tau:.0f} s, is only known to ±{spread:.0%}", tau=tau, spread=spread)
        return _refused(curve.unit, why, at_most=tau * (1 + spread) if spread < 1 else None)
    detail: dict[str, Scalar] = {
        "skipped_seconds": onset + cut.skip,
        "span_seconds": span,
        "bin_seconds": cut.narrowest,
        "degrees_of_freedom": fit.freedom,
    }
    slow, slow_rise = _mode(fit, slowest, onset + cut.skip, curve.unit, detail)
    final = Figure(name="final", value=fit.final, unit=curve.unit, uncertainty=fit.final_sigma, detail=detail)
    why = _why_no_fast(fit, curve, cut, quantile)
    if why:
        fast = Figure.missing("fast_time_constant", "seconds", why)
        fast_rise = Figure.missing("fast_rise", curve.unit, why)
    else:
        fast, fast_rise = _mode(fit, 0, onset + cut.skip, curve.unit, detail)
    return TimeConstants(fast=fast, slow=slow, fast_rise=fast_rise, slow_rise=slow_rise, final=final)


def _why_no_fast(fit: ExponentialFit, curve: _Curve, cut: _Cut, quantile: float) -> str:
    if fit.taus.size == 1:
        return say("one exponential describes the curve")
    tau, spread = float(fit.taus[0]), quantile * fit.relative(0)
    if spread > WITHIN:
        return say("the fast constant, about {tau:.1f} s, is only known to ±{spread:.0%}", tau=tau, spread=spread)
    if tau < 2 * cut.narrowest:
        return say("faster than two readings ({narrowest:.0f} s)", narrowest=2 * cut.narrowest)
    if curve.bare:
        return ""
    later = _Cut(skip=cut.skip + max(tau / 2, cut.narrowest), narrowest=cut.narrowest, end=cut.end)
    points = _points(curve, later)
    again = refine(points, fit.taus) if points is not None else None
    if again is None:
        return ""
    moved = abs(math.log(float(again.taus[0]) / tau))
    if moved > WITHIN / 2 and moved > 2 * math.hypot(fit.relative(0), again.relative(0)):
        return say(
            "the fast constant depends on where the fit begins ({tau:.1f} s, {taus:.1f} s): more modes",
            tau=tau,
            taus=again.taus[0],
        )
    return ""


def _mode(
    fit: ExponentialFit, mode: int, skipped: float, unit: str, detail: Mapping[str, Scalar]
) -> tuple[Figure, Figure]:
    """Constant and rise of one mode, the rise taken back to the start of the curve."""
    tau, relative = float(fit.taus[mode]), fit.relative(mode)
    name = "fast" if fit.taus.size > 1 and mode == 0 else "slow"
    grown = math.exp(min(skipped / tau, 50.0))
    rise = float(fit.rises[mode]) * grown
    sigma = math.hypot(fit.rise_sigma(mode) * grown, rise * relative * skipped / tau)
    return (
        Figure(name=f"{name}_time_constant", value=tau, unit="seconds", uncertainty=relative * tau, detail=detail),
        Figure(name=f"{name}_rise", value=rise, unit=unit, uncertainty=sigma, detail=detail),
    )


def _refused(unit: str, reason: str, *, at_most: float | None = None) -> TimeConstants:
    bound: dict[str, Scalar] = {} if at_most is None else {"at_most_seconds": at_most}
    return TimeConstants(
        fast=Figure.missing("fast_time_constant", "seconds", reason),
        slow=Figure.missing("slow_time_constant", "seconds", reason, **bound),
        fast_rise=Figure.missing("fast_rise", unit, reason),
        slow_rise=Figure.missing("slow_rise", unit, reason),
        final=Figure.missing("final", unit, reason),
    )
