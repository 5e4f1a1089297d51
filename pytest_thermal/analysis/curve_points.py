"""A heating or cooling curve as some hundred points with weights, freed of quantisation as far as that goes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.noise import UNIFORM_SIGMA
from pytest_thermal.model.series import FloatArray, IndexArray

GROWTH = 0.04
"""A bin is this share of the time since the curve began: as curves of exponentials flatten, bins may widen."""

INVERTIBLE = 0.35
"""Up to this share of ripple (σ ≥ 0.23 q) the mean of readings still says where between two levels the signal is."""

LEAST_CROSSINGS = 8

CROSSING_ERROR = 0.03
"""How well a crossing tells the signal at best, in steps: converters' steps are not all of one size."""

FLICKER_VARIANCE = 0.14
"""Variance of a crossing's time, in units of its flicker times the period: ∫Φ(1−Φ) = σ/√π with flicker = 4σ."""


@dataclass(frozen=True, kw_only=True)
class CurvePoints:
    """Points of a curve: shapes (m,)."""

    seconds: FloatArray
    """Since the curve began."""
    widths: FloatArray
    """Width of the stretch of time each point is the mean of, in seconds."""
    values: FloatArray
    weights: FloatArray
    """1 ÷ variance, up to a common factor."""


def binned(
    seconds: FloatArray, values: FloatArray, *, narrowest: float, resolution: float | None, noise: float
) -> CurvePoints:
    """Means over bins that widen with time.

    Args:
        seconds: Time since the curve began, shape (n,), increasing, from 0 on.
        values: Shape (n,), no NaN.
        narrowest: Least width of a bin, in seconds.
        resolution: Of the sensor, or None.
        noise: σ of the readings before quantisation, in the sensor's unit; used where there is a resolution.

    The mean of quantised noisy readings is m(μ) = μ + Σ_k (−1)^k q/(πk)·sin(2πkμ/q)·D^(k²), D = exp(−2π²σ²/q²)
    (Widrow and Kollár, "Quantization Noise", 2008); this is solved for μ with two terms, where within a bin the
    signal's own sweep s adds s²/12 to σ². Rounding is assumed; rounding down differs by a constant only.
    """
    edges = _bin_edges(seconds, narrowest)
    counts = np.diff(np.append(edges, seconds.size))
    middle = np.add.reduceat(seconds, edges) / counts
    spread = np.add.reduceat((seconds - np.repeat(middle, counts)) ** 2, edges) / counts
    widths = np.sqrt(12 * spread)
    means = np.add.reduceat(values, edges) / counts
    if resolution is not None and means.size > 2:
        sweep = np.abs(np.gradient(means, middle)) * widths
        means = _unrippled(means, resolution, noise**2 + sweep**2 / 12)
    return CurvePoints(seconds=middle, widths=widths, values=means, weights=counts.astype(np.float64))


def _bin_edges(seconds: FloatArray, narrowest: float) -> IndexArray:
    """First index of each bin that holds a reading."""
    last = float(seconds[-1])
    straight = np.arange(0.0, min(last, narrowest / GROWTH) + narrowest, narrowest)
    begin = float(straight[-1])
    steps = max(math.ceil(math.log(max(last / begin, 1.0)) / GROWTH), 0) if begin > 0 else 0
    borders = np.concatenate([straight, begin * np.exp(GROWTH * np.arange(1, steps + 1))])
    edges = np.searchsorted(seconds, borders - 1e-9 * narrowest)
    return np.asarray(np.unique(edges[edges < seconds.size]), dtype=np.intp)


def _unrippled(means: FloatArray, resolution: float, variance: FloatArray) -> FloatArray:
    damping = np.minimum(np.exp(-2 * np.pi**2 * variance / resolution**2), INVERTIBLE)
    turns = means / resolution
    level = turns.copy()
    for _ in range(6):
        angle = 2 * np.pi * level
        excess = -damping * np.sin(angle) / np.pi + damping**4 * np.sin(2 * angle) / (2 * np.pi)
        slope = 1 - 2 * damping * np.cos(angle) + 2 * damping**4 * np.cos(2 * angle)
        level = level - (level + excess - turns) / np.maximum(slope, 0.15)
    return np.asarray(level * resolution)


def crossings(seconds: FloatArray, values: FloatArray, *, resolution: float) -> CurvePoints | None:
    """Where a bare staircase passes from one level to the next: there the signal is known far better than its step.

    Between two neighbouring levels the signal was half a step from either, at a time known to one reading. Where
    noise made it flicker, the time is such that as many readings are on the far side before it as on the near side
    after it. Jumps over several levels count as plain readings with error
    q/√12. Arguments and result as in ``binned``; None where there are too few crossings to tell a curve.
    """
    levels = np.rint((values - values[0]) / resolution).astype(np.intp)
    steps = np.diff(levels)
    single = np.flatnonzero(np.abs(steps) == 1)
    if single.size < LEAST_CROSSINGS:
        return None
    borders = levels[single] + steps[single] / 2
    order = np.lexsort((single, borders))
    first = np.flatnonzero(np.concatenate(([True], np.diff(borders[order]) != 0)))
    last = np.append(first[1:], single.size) - 1
    begin, end = single[order][first], single[order][last]
    heights = borders[order][first]
    rising = levels[-1] > levels[0]
    before = [
        np.count_nonzero((levels[low + 1 : high + 1] < border) == rising)
        for low, high, border in zip(begin.tolist(), end.tolist(), heights.tolist(), strict=True)
    ]
    between = (seconds[begin] + seconds[begin + 1]) / 2
    flicker = seconds[end + 1] - seconds[begin]
    readings = np.maximum(end - begin, 1)
    at = between + (seconds[end] - seconds[begin]) * np.array(before) / readings
    usable = flicker <= np.maximum(0.5 * at, 4 * np.median(np.diff(seconds)))
    at, index = np.unique(at[usable], return_index=True)
    heights, flicker = values[0] + resolution * heights[usable][index], flicker[usable][index]
    if at.size < LEAST_CROSSINGS:
        return None
    slopes = np.abs(np.gradient(heights, at))
    period = float(np.median(np.diff(seconds)))
    blur = np.minimum(flicker * UNIFORM_SIGMA, np.sqrt(FLICKER_VARIANCE * flicker * period))
    variance = (slopes * blur) ** 2 + (CROSSING_ERROR * resolution) ** 2
    jumps = np.flatnonzero(np.abs(steps) > 1) + 1
    return _merged(
        CurvePoints(seconds=at, widths=np.zeros(at.size), values=heights, weights=1 / variance),
        CurvePoints(
            seconds=seconds[jumps],
            widths=np.zeros(jumps.size),
            values=values[jumps],
            weights=np.full(jumps.size, 1 / (resolution * UNIFORM_SIGMA) ** 2),
        ),
    )


def _merged(one: CurvePoints, other: CurvePoints) -> CurvePoints:
    seconds = np.concatenate([one.seconds, other.seconds])
    order = np.argsort(seconds, kind="stable")
    return CurvePoints(
        seconds=seconds[order],
        widths=np.concatenate([one.widths, other.widths])[order],
        values=np.concatenate([one.values, other.values])[order],
        weights=np.concatenate([one.weights, other.weights])[order],
    )
