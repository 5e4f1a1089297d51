"""The slope of a window with a bound that may be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.noise import block_means, dither, lag_one
from pytest_thermal.analysis.numerics import CONFIDENCE, inner, student_quantile
from pytest_thermal.model.series import FloatArray

BLOCKS = (256, 64, 20)
"""Into how many blocks the noise is looked at: fast noise shows in many, slow wandering only in few."""

LEAST_READINGS = 6

UNLIKELIER = 6.0
"""A shape is out when its squares exceed the other's by this over the effective readings: likelihoods apart by e³."""

MOST_HIDDEN = 3.0
"""× the range of the slowest blocks' means: more than that no trend is off by. A line through noise of range R turns by
at most 1.5·R over the window; noise would have to cancel two thirds of a trend all the way to hide the rest."""


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A straight line through a window of readings. Slopes are in the sensor's unit per second."""

    slope: float
    sigma: float
    """Standard uncertainty of the slope from noise."""
    quantisation: float
    """The most that the resolution may hide, or feign."""
    half_width: float
    """Of the one-sided confidence bound: the true slope is below slope + half_width, and above slope − half_width,
    each with the given confidence."""
    readings: int
    effective_readings: float
    """How many uncorrelated readings would be worth as much."""
    span_seconds: float
    may_be_straight: bool = True
    may_be_bent: bool = False
    """Whether a straight line, and an exponential of the constant that was given, describe the readings: one does."""

    @property
    def upper(self) -> float:
        """Bound from above."""
        return self.slope + self.half_width

    @property
    def lower(self) -> float:
        """Bound from below."""
        return self.slope - self.half_width


def fit_trend(
    time_seconds: FloatArray,
    values: FloatArray,
    resolution: float | None,
    *,
    tau: float | None = None,
    confidence: float = CONFIDENCE,
) -> Trend | None:
    """Ordinary least squares slope with its bound under autocorrelated noise and quantisation.

    Args:
        time_seconds: Shape (n,), increasing, in seconds; steps may be uneven.
        values: Shape (n,), NaN for missing, in the sensor's unit.
        resolution: Of the sensor, same unit.
        tau: A time constant, in seconds, with which the values may still bend: the noise is then what is left about an
            exponential, where that is less than what is left about the line. A bend is no noise.
        confidence: One-sided, of each bound.

    Returns:
        None for fewer than six readings.

    Slope b = Σ(t−t̄)(y−ȳ)/S, S = Σ(t−t̄)². Noise: σ_b² = s²/S with s² = Σr²/(n_eff−2), n_eff = n(1−ρ)/(1+ρ), ρ the
    lag-1 correlation of the residuals (Santer et al., "Statistical significance of trends and trend differences",
    J. Geophys. Res. 105 (2000)), taken over means of 256, 64 and 20 blocks, the widest bound kept: white noise can
    hide slower noise that matters more (blocking after Flyvbjerg and Petersen, J. Chem. Phys. 91 (1989)). A few blocks
    that wander by chance leave hardly a degree of freedom; so the bound also ends at ``MOST_HIDDEN``.
    Quantisation: errors of at most q/2 of the least favourable signs move the slope by (q/2)·Σ|t−t̄|/S, which is
    1.5·q/T for even steps over a window T; noise takes it away by the factor D of ``noise.dither``. To the share D a
    residual counts as noise only with what exceeds q/2, or a bare staircase would be counted twice.
    """
    missing = np.isnan(values)
    time, readings = (time_seconds[~missing], values[~missing]) if missing.any() else (time_seconds, values)
    if readings.size < LEAST_READINGS:
        return None
    time = time - time[0]
    span = float(time[-1])
    centred = time - time.mean()
    scale = inner(centred, centred)
    slope = inner(centred, readings) / scale
    residuals = readings - readings.mean() - slope * centred
    about_line, about_bend = inner(residuals, residuals), math.inf
    if tau is not None:
        bent = _about_exponential(time, readings, tau)
        about_bend = inner(bent, bent)
        residuals = bent if about_bend < about_line else residuals
    quantisation = 0.0
    if resolution is not None:
        bare = dither(residuals, resolution)
        quantisation = bare * resolution / 2 * float(np.abs(centred).sum()) / scale
        residuals -= bare * np.clip(residuals, -resolution / 2, resolution / 2)
    sigma, noise_bound, effective = 0.0, 0.0, float(readings.size)
    for blocks in BLOCKS:
        if blocks > readings.size and blocks != BLOCKS[0]:
            continue
        level_sigma, level_effective = _slope_sigma(time, residuals, min(blocks, readings.size))
        level_bound = level_sigma * student_quantile(confidence, max(level_effective - 2, 0.5))
        if level_bound > noise_bound:
            sigma, noise_bound, effective = level_sigma, level_bound, level_effective
    _, means = block_means(time, readings, min(BLOCKS[-1], readings.size))
    noise_bound = min(noise_bound, MOST_HIDDEN * float(np.ptp(means)) / span)
    worse = 1 + UNLIKELIER / effective
    return Trend(
        slope=slope,
        sigma=sigma,
        quantisation=quantisation,
        half_width=noise_bound + quantisation,
        readings=int(readings.size),
        effective_readings=effective,
        span_seconds=span,
        may_be_straight=about_line <= worse * about_bend,
        may_be_bent=about_bend <= worse * about_line,
    )


def _about_exponential(time: FloatArray, readings: FloatArray, tau: float) -> FloatArray:
    """Residuals about the best a + b·e^(−t/τ), which has as many parameters as a straight line."""
    decay = np.exp(-(time - time[0]) / max(tau, 1e-3 * float(time[-1])))
    decay -= decay.mean()
    level = readings - readings.mean()
    return np.asarray(level - decay * (inner(decay, level) / max(inner(decay, decay), 1e-300)))


def _slope_sigma(time: FloatArray, residuals: FloatArray, blocks: int) -> tuple[float, float]:
    """Standard uncertainty of the slope from block means of the residuals, and how many of them count."""
    at, level = block_means(time, residuals, blocks)
    centred = at - at.mean()
    scale = inner(centred, centred)
    level = level - level.mean()
    level = level - centred * (inner(centred, level) / scale)
    rho = lag_one(level)
    effective = max(blocks * (1 - rho) / (1 + rho), 2.5)
    return math.sqrt(inner(level, level) / (effective - 2) / scale), effective
