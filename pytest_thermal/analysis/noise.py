"""What a sensor's readings are worth: their resolution, noise, and what both do to a mean."""

from __future__ import annotations

import math

import numpy as np

from pytest_thermal.analysis.numerics import inner
from pytest_thermal.model.series import FloatArray, Series

STEPS = (5.0, 2.0, 1.0, 0.5, 0.25, 0.2, 0.125, 0.1, 0.0625, 0.05, 0.03125, 0.025, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Steps that sensors' converters and tools' formats have, coarse to fine, in °C (or any other unit)."""

FINEST = (0.03125, 0.001)
"""Every step of ``STEPS`` is a multiple of one of these."""

WHOLE = 1.0
"""A step above this is believed only when many levels stand on it: two readings 5 apart prove no step of 5."""

LEVELS_FOR_A_COARSE_STEP = 6

LOOKED_AT = 2048
"""Readings looked at for resolution and noise, evenly spread: they are the sensor's, not each reading's."""

FLICKERS = 6
"""Changes of level that a quarter of a window needs to count as flickering."""

TWO_LEVELS = 0.995
"""Readings count as standing on two levels when this share of them does."""

UNIFORM_SIGMA = 1 / math.sqrt(12)
"""Standard deviation of a uniform distribution of width 1."""


def estimate_resolution(values: FloatArray) -> float | None:
    """The step between neighbouring readings that a sensor can show, in its unit; None where none is seen.

    Args:
        values: Readings, shape (n,), NaN for missing.

    The coarsest step of ``STEPS`` on whose grid (through the first reading) all distinct readings lie. None for
    fewer than two distinct readings, and for readings on no such grid, whose resolution then does not matter.
    Quantisation as uniform error: Widrow and Kollár, "Quantization Noise", Cambridge University Press (2008).
    """
    present = values[~np.isnan(values)]
    if present.size > LOOKED_AT:
        present = present[np.linspace(0, present.size - 1, LOOKED_AT).astype(np.intp)]
    if present.size < 2 or not _on_finest_grid(present[:64] - present[0]):
        return None
    levels = np.unique(present)
    above = levels[1:] - levels[0]
    if levels.size < 2 or not _on_finest_grid(above):
        return None
    for step in STEPS:
        if step > WHOLE and levels.size < LEVELS_FOR_A_COARSE_STEP:
            continue
        if _on_grid(above, step):
            return step
    return None


def _on_finest_grid(above: FloatArray) -> bool:
    """Whether differences (n,) lie on one of the finest of ``STEPS``; if not, they lie on none at all."""
    return any(_on_grid(above, step) for step in FINEST)


def _on_grid(above: FloatArray, step: float) -> bool:
    turns = above / step
    return bool(np.abs(turns - np.rint(turns)).max() < 1e-3)


def resolution_of(series: Series) -> float | None:
    """The resolution that the source declares, else the estimated one, in the sensor's unit."""
    return series.resolution if series.resolution is not None else estimate_resolution(series.values)


def noise_sigma(values: FloatArray) -> float:
    """Reading-to-reading noise of ``values`` (n,), in their unit, slow changes left out.

    σ = √(½ · mean of squared differences of neighbours), the largest 2 % of the differences left out as jumps, which
    makes it a few per cent too small for normal noise.
    Source: von Neumann et al., "The mean square successive difference", Ann. Math. Stat. 12 (1941).
    """
    if values.size > LOOKED_AT:
        first = np.linspace(0, values.size - 2, LOOKED_AT).astype(np.intp)
        squares = (values[first + 1] - values[first]) ** 2
        squares = squares[~np.isnan(squares)]
    else:
        squares = np.diff(values[~np.isnan(values)]) ** 2
    if squares.size < 2:
        return 0.0
    keep = max(2, math.ceil(0.98 * squares.size))
    if keep < squares.size:
        squares = np.partition(squares, keep - 1)[:keep]
    return math.sqrt(float(squares.mean()) / 2)


def dither(values: FloatArray, resolution: float) -> float:
    """How much quantisation can feign or hide in a trend of ``values`` (n,): 1 for a bare staircase, 0 with much noise.

    exp(−2π²σ²/q²), where q is the resolution and σ the noise before quantisation, by Sheppard's correction
    σ² = σ_seen² − q²/12 (Widrow and Kollár, "Quantization Noise", 2008: the error of the mean of a Gaussian signal is
    a sine of its level with this factor). σ_seen is that of the quietest quarter of the values, as flicker at one place
    says nothing of the others: its noise from one reading to the next, or its scatter where each quarter flickers to
    and fro, as no monotonic staircase does.
    """
    present = values[~np.isnan(values)]
    quarters = np.array_split(present, 4) if present.size >= 4 * FLICKERS else [present]
    seen = min(noise_sigma(quarter) for quarter in quarters) ** 2
    if len(quarters) > 1 and all(np.count_nonzero(np.diff(quarter)) >= FLICKERS for quarter in quarters):
        seen = max(seen, min(float(quarter.var()) for quarter in quarters))
    before = seen - resolution**2 / 12
    return math.exp(-2 * math.pi**2 * max(before, 0.0) / resolution**2)


def quantisation_sigma(values: FloatArray, resolution: float | None) -> float:
    """Standard uncertainty of the mean of ``values`` (n,) that their resolution q causes, in their unit: ≤ q/√12.

    With readings on three levels or more, q/√12·exp(−2π²σ²/q²), σ² = s² − q²/12 (see ``dither``). On two levels σ
    cannot be told from where the signal stands between them: q/√12·|2p − 1| with p the share of one level, which is
    exact at both ends, a constant reading and an even flicker.
    """
    if resolution is None or values.size == 0:
        return 0.0
    levels, counts = np.unique(np.rint((values - values[0]) / resolution), return_counts=True)
    most = int(np.argmax(counts))
    beside = int(counts[np.abs(levels - levels[most]) == 1].max(initial=0))
    main = int(counts[most])
    if main + beside >= TWO_LEVELS * values.size:
        return resolution * UNIFORM_SIGMA * abs(main - beside) / (main + beside)
    before = max(float(values.var()) - resolution**2 / 12, 0.0)
    return resolution * UNIFORM_SIGMA * math.exp(-2 * math.pi**2 * before / resolution**2)


def lag_one(residuals: FloatArray) -> float:
    """Correlation of neighbours in ``residuals`` (n,), bias corrected, in [0, 0.99].

    r + (1 + 4r)/n: Marriott and Pope, "Bias in the estimation of autocorrelations", Biometrika 41 (1954).
    Below 1.645/√n it cannot be told from none and is 0, so that white noise is not punished.
    """
    power = inner(residuals, residuals)
    if residuals.size < 4 or power == 0:
        return 0.0
    seen = inner(residuals[1:], residuals[:-1]) / power
    if seen < 1.645 / math.sqrt(residuals.size):
        return 0.0
    return min(seen + (1 + 4 * seen) / residuals.size, 0.99)


def mean_and_sigma(time_seconds: FloatArray, values: FloatArray, resolution: float | None) -> tuple[float, float]:
    """Mean of a window and its standard uncertainty, for noise that is correlated over time.

    Args:
        time_seconds: Shape (n,), n ≥ 1.
        values: Shape (n,), no NaN.
        resolution: Of the sensor, in the same unit.

    u² = s²/n_eff + u_q², where s is the scatter about the straight line through the window, n_eff = n·(1−ρ)/(1+ρ)
    for a first-order autoregressive noise (Bayley and Hammersley, J. R. Stat. Soc. Suppl. 8 (1946)), the larger of
    what single readings and the means of about 20 blocks give (Flyvbjerg and Petersen, J. Chem. Phys. 91 (1989)),
    and u_q what quantisation leaves. Combined as in the GUM (JCGM 100:2008).
    """
    mean = float(values.mean())
    worst = 0.0
    for blocks in {min(values.size, 512), min(values.size, 20)}:
        if blocks < 4:
            continue
        at, level = block_means(time_seconds, values, blocks)
        centred = at - at.mean()
        residuals = level - level.mean()
        residuals -= centred * (inner(centred, residuals) / inner(centred, centred))
        rho = lag_one(residuals)
        effective = max(blocks * (1 - rho) / (1 + rho), 1.5)
        spread = inner(residuals, residuals) / max(blocks - 2, 1)
        worst = max(worst, spread / effective)
    return mean, math.hypot(math.sqrt(worst), quantisation_sigma(values, resolution))


def block_means(time_seconds: FloatArray, values: FloatArray, blocks: int) -> tuple[FloatArray, FloatArray]:
    """Mean time and mean value of ``blocks`` runs of neighbours of nearly equal count; shapes (n,) → (blocks,)."""
    if blocks >= values.size:
        return time_seconds, values
    edges = np.linspace(0, values.size, blocks + 1).astype(np.intp)
    counts = np.diff(edges)
    origin = time_seconds[0]  # unix times are large: a sum of them would lose the milliseconds
    return (
        origin + np.add.reduceat(time_seconds - origin, edges[:-1]) / counts,
        np.add.reduceat(values, edges[:-1]) / counts,
    )
