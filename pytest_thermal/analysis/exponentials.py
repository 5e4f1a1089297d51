"""Least squares of one or two exponentials through the points of a curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_thermal.analysis.curve_points import CurvePoints
from pytest_thermal.analysis.numerics import chi_squared_above, fisher_above, inner
from pytest_thermal.model.series import FloatArray, IndexArray

GRID = 24
"""Constants tried before the search, from half the narrowest bin to the length of the curve."""

SECOND_MODE = 0.001
"""A second exponential is taken when chance would improve the fit as much less often."""

CLEARLY = 3.0
"""Where the best single exponential leaves so many times the squares of two, no test is needed."""

MOST_STEPS = 30
STRAIGHT = 100.0
"""Times the length of the curve: a constant above that is a straight line, and how long it is nobody can tell."""
MOST_LOG_SPREAD = 20.0
"""Between two constants' logarithms: beyond that the search has left all reason."""


@dataclass(frozen=True, kw_only=True)
class ExponentialFit:
    """T(t) = final − Σ rises·e^(−t/taus), t from the first point's origin; modes ordered from fast to slow."""

    taus: FloatArray
    """Seconds, shape (1,) or (2,)."""
    rises: FloatArray
    """In the sensor's unit, same shape."""
    final: float
    covariance: FloatArray
    """Of (final, rises…, ln taus…)."""
    squares: float
    freedom: int
    residuals: FloatArray
    """Weighted to equal variance, shape (points,)."""

    @property
    def scatter(self) -> float:
        """Root mean square of the residuals, in the sensor's unit."""
        return math.sqrt(self.squares / self.residuals.size)

    @property
    def final_sigma(self) -> float:
        """Standard uncertainty of ``final``."""
        return self._sigma(0)

    def relative(self, mode: int) -> float:
        """Standard uncertainty of a time constant, as a share of it."""
        return self._sigma(1 + self.taus.size + mode)

    def rise_sigma(self, mode: int) -> float:
        """Standard uncertainty of a mode's rise."""
        return self._sigma(1 + mode)

    def at(self, seconds: FloatArray) -> FloatArray:
        """The curve at times of shape (n,)."""
        return np.asarray(self.final - np.einsum("tm,m->t", np.exp(-seconds[:, None] / self.taus), self.rises))

    def whiteness(self) -> float:
        """How likely white residuals would be as correlated as these.

        Q = n(n+2)·Σ r_k²/(n−k) over lags 1 to 10, χ² with as many degrees of freedom: Ljung and Box, "On a measure of
        lack of fit in time series models", Biometrika 65 (1978).
        """
        count = self.residuals.size
        lags = min(10, count // 5)
        padded = np.concatenate([self.residuals, np.zeros(lags)])
        products = np.correlate(padded, self.residuals, "valid")
        if products[0] == 0:
            return 1.0
        seen = float(np.sum((products[1:] / products[0]) ** 2 / (count - np.arange(1, lags + 1))))
        return chi_squared_above(count * (count + 2) * seen, lags)

    def _sigma(self, index: int) -> float:
        return math.sqrt(max(float(self.covariance[index, index]), 0.0))


def fit_exponentials(points: CurvePoints, narrowest: float) -> ExponentialFit | None:
    """Two exponentials where they are significantly better than one (F test), else one; None where neither fits.

    Args:
        points: Of the curve.
        narrowest: The fastest constant looked for is half of this, in seconds.

    Separable least squares: for each pair of constants on a grid the amplitudes follow from linear equations (Golub
    and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate", SIAM J. Numer. Anal. 10 (1973)); from the best pair on, ``refine``.
    """
    span = float(points.seconds[-1])
    grid = np.asarray(np.geomspace(max(narrowest / 2, span / 5000), span, GRID), dtype=np.float64)
    root = _root(points)
    columns = np.concatenate([np.ones((points.seconds.size, 1)), _decays(points, grid)], axis=1) * root[:, None]
    target = (points.values - points.values[-1]) * root
    gram = np.einsum("ti,tj->ij", columns, columns)
    right = np.einsum("ti,t->i", columns, target)
    total = inner(target, target)
    single = np.arange(1, GRID + 1)
    fast, slow = (1 + index for index in np.triu_indices(GRID, 2))
    pairs = _squares(gram, right, total, _with_constant(fast, slow))
    best = int(np.argmin(pairs))
    two = refine(points, grid[[fast[best] - 1, slow[best] - 1]])
    singles = _squares(gram, right, total, _with_constant(single))
    if two is not None and _least(singles) > CLEARLY * two.squares:
        return two
    one = refine(points, grid[[int(np.argmin(singles))]])
    if one is None or two is None:
        return one or two
    better = (one.squares - two.squares) / 2 / max(two.squares / two.freedom, 1e-300)
    return two if fisher_above(better, 2, two.freedom) < SECOND_MODE else one


def refine(points: CurvePoints, taus: FloatArray) -> ExponentialFit | None:
    """The least-squares fit next to ``taus`` (modes,), in seconds: Levenberg–Marquardt on their logarithms.

    At each step the amplitudes are solved for. The covariance is that of all parameters together, widened by
    (1 + ρ)/(1 − ρ) where neighbouring residuals are correlated by ρ > 0, significantly or not. None where the
    equations are singular or the search leaves all reason.
    """
    try:
        return _refine(points, np.log(taus))
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True, kw_only=True)
class _State:
    logs: FloatArray
    jacobian: FloatArray
    amplitudes: FloatArray
    residuals: FloatArray
    squares: float


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """What stays while constants are tried."""

    points: CurvePoints
    root: FloatArray
    """Of the weights."""
    target: FloatArray


def _refine(points: CurvePoints, logs: FloatArray) -> ExponentialFit | None:
    root = _root(points)
    modes = logs.size
    freedom = points.seconds.size - 1 - 2 * modes
    if freedom < 3:
        return None
    problem = _Problem(points=points, root=root, target=(points.values - points.values[-1]) * root)
    state = _solve(problem, logs)
    beyond = math.log(STRAIGHT * float(points.seconds[-1]))
    damping = 1e-3
    for _ in range(MOST_STEPS):
        normal = np.einsum("ti,tj->ij", state.jacobian, state.jacobian)
        slope = np.einsum("ti,t->i", state.jacobian, state.residuals)
        diagonal = np.einsum("ii->i", normal)  # a view
        diagonal += damping * diagonal
        step = np.linalg.solve(normal, slope)[1 + modes :]
        trial = state.logs + np.clip(step, -1.0, 1.0)
        if not -MOST_LOG_SPREAD <= float(trial.max() - trial.min()) <= MOST_LOG_SPREAD:  # or not a number
            return None
        candidate = _solve(problem, trial)
        if candidate.squares <= state.squares:
            settled = state.squares - candidate.squares <= 1e-5 * state.squares and float(np.abs(step).max()) < 1e-3
            state, damping = candidate, damping / 5
            if settled or float(trial.max()) > beyond:
                break
        else:
            damping *= 5
            if damping > 1e8:
                break
    normal = np.einsum("ti,tj->ij", state.jacobian, state.jacobian)
    covariance = np.linalg.inv(normal) * (state.squares / freedom * _inflation(state.residuals))
    order = np.argsort(state.logs)
    index = np.concatenate([[0], 1 + order, 1 + modes + order])
    return ExponentialFit(
        taus=np.exp(state.logs[order]),
        rises=-state.amplitudes[1:][order],
        final=float(state.amplitudes[0] + points.values[-1]),
        covariance=covariance[np.ix_(index, index)],
        squares=state.squares,
        freedom=freedom,
        residuals=state.residuals,
    )


def _solve(problem: _Problem, logs: FloatArray) -> _State:
    points, root = problem.points, problem.root
    taus = np.exp(logs)
    modes = taus.size
    decays = _decays(points, taus)
    jacobian = np.empty((root.size, 1 + 2 * modes))
    design = jacobian[:, : 1 + modes]
    design[:, 0] = root
    np.multiply(decays, root[:, None], out=design[:, 1:])
    gram = np.einsum("ti,tj->ij", design, design)
    amplitudes = np.linalg.solve(gram, np.einsum("ti,t->i", design, problem.target))
    residuals = problem.target - np.einsum("ti,i->t", design, amplitudes)
    np.multiply(design[:, 1:] * (amplitudes[1:] / taus), points.seconds[:, None], out=jacobian[:, 1 + modes :])
    return _State(
        logs=logs,
        jacobian=jacobian,
        amplitudes=amplitudes,
        residuals=residuals,
        squares=inner(residuals, residuals),
    )


def _root(points: CurvePoints) -> FloatArray:
    return np.asarray(np.sqrt(points.weights / points.weights.mean()))


def _decays(points: CurvePoints, taus: FloatArray) -> FloatArray:
    """Mean of e^(−t/τ) over each point's width, shape (points, taus): e^(−t/τ)·sinh(x)/x with x = width/2τ."""
    half = np.minimum(points.widths[:, None] / (2 * taus), 30.0)
    np.maximum(half, 1e-9, out=half)
    return np.asarray(np.exp(-points.seconds[:, None] / taus) * (np.sinh(half) / half))


def _with_constant(*modes: IndexArray) -> IndexArray:
    return np.stack([np.zeros_like(modes[0]), *modes], axis=1)


def _squares(gram: FloatArray, right: FloatArray, total: float, chosen: IndexArray) -> FloatArray:
    """Least sum of squares with the columns in each row of ``chosen`` (choices, columns), shape (choices,)."""
    systems = gram[chosen[:, :, None], chosen[:, None, :]]
    size = chosen.shape[1]
    ridge = 1e-12 * np.einsum("kii->k", systems) / size
    systems = systems + ridge[:, None, None] * np.eye(size)
    sides = right[chosen]
    found = np.linalg.solve(systems, sides[:, :, None])[:, :, 0]
    return np.asarray(total - np.einsum("ki,ki->k", found, sides))


def _least(squares: FloatArray) -> float:
    """The least of a smooth curve given on a grid: that of the parabola through its lowest three points."""
    at = min(max(int(np.argmin(squares)), 1), squares.size - 2)
    left, middle, right = squares[at - 1 : at + 2].tolist()
    bend = left - 2 * middle + right
    return float(middle - (left - right) ** 2 / (8 * bend)) if bend > 0 else float(middle)


def _inflation(residuals: FloatArray) -> float:
    power = inner(residuals, residuals)
    if power == 0:
        return 1.0
    rho = min(max(inner(residuals[1:], residuals[:-1]) / power + 1 / residuals.size, 0.0), 0.9)
    return (1 + rho) / (1 - rho)
