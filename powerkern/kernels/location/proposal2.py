"""Huber's proposal 2: location and scale of a sorted column, estimated jointly.

References
----------
.. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, chapters 5 (scale) and 6 (location and scale).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import kernel, widest_vectors
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.location.huber import huber_beta, location_about, solve_jointly
from powerkern.kernels.location.loc_scale import MOST_ITERATIONS, TAIL, VANISHED, LocScale
from powerkern.kernels.location.order_statistics import RangeSums, Sorted, find_position, sum_range, weight_between

#: Largest number of iterations before the scale is bracketed. 180 simulated columns take 3.7 iterations on average and
#: 35 at most; with 8 instead of 30, 4.4 and 60; with 60, 3.7 and 46 (report_constants bisquare).
_MAX_SOLVED = 30


@kernel
def _proposal2_about(
    col: Sorted, start: float, k_location: float, k_scale: float, dof: float
) -> tuple[float, float, int, bool]:
    """Solve Huber's proposal 2 ([1]_, section 6.4) for (mu, s), with a constant for each equation.

    The equations are sum w psi((y - center - mu)/s; k_location) = 0 and sum w psi((y - center - mu)/s; k_scale)**2 =
    dof beta(k_scale).

    For given sets of clipped values, mu is a linear function of s, and s solves a quadratic equation. If the same
    values are clipped at this solution, it is the root. If such steps do not converge, `_bracketed_proposal2` is used.
    Returns mu, s, the number of iterations, and whether the iteration converged.

    Parameters
    ----------
    col : Sorted
        The column, relative to its lower median.
    start : float
        The scale at which the iteration starts.
    k_location : float
        Constant k of Huber's psi in the location equation, in units of the scale.
    k_scale : float
        Constant k of Huber's psi in the scale equation, in units of the scale.
    dof : float
        Degrees of freedom: the total weight minus one.
    """
    target = dof * huber_beta(k_scale)
    mu, s = col.median, start
    last, solved = (-1, -1, -1, -1), False
    for n_iter in range(1, _MAX_SOLVED + 1):
        at = _clip(col, mu, s, k_location, k_scale)
        if solved and at.positions == last:
            return mu, s, n_iter, True
        last = at.positions
        new_mu, new_s = _solve_clipped(at, target, k_scale)
        solved = new_s >= 0.0
        if solved:
            if new_s == 0.0 or (abs(new_mu - mu) <= 4.0 * EPS * s and abs(new_s - s) <= 4.0 * EPS * s):
                return new_mu, new_s, n_iter, True
            mu, s = new_mu, new_s
        else:  # s is too small; a fixed-point step enlarges it
            mu, s = mu + _psi_sum(at, mu, s) / at.total, s * math.sqrt(_psi_squares(at, mu, s, k_scale) / target)
    return _bracketed_proposal2(col, s, k_location, k_scale, target)


@kernel
def _bracketed_proposal2(
    col: Sorted, start: float, k_location: float, k_scale: float, target: float
) -> tuple[float, float, int, bool]:
    """Solve the equations of `_proposal2_about` by bracketing s and solving for mu at each s: slow but sure.

    The other arguments are those of `_proposal2_about`.

    Parameters
    ----------
    target : float
        The right side of the scale equation, dof beta(k_scale).
    """
    low, high, s, mu = 0.0, math.inf, start, col.median
    for n_iter in range(_MAX_SOLVED + 1, MOST_ITERATIONS + 1):
        mu, _, _ = location_about(col, s, k_location)
        at = _clip(col, mu, s, k_location, k_scale)
        if _psi_squares(at, mu, s, k_scale) > target:
            low = s
        else:
            high = s
        new_mu, new_s = _solve_clipped(at, target, k_scale)
        if low < new_s < high and _clip(col, new_mu, new_s, k_location, k_scale).positions == at.positions:
            return new_mu, new_s, n_iter, True
        if high < math.inf and high - low <= 4.0 * EPS * high:
            return mu, s, n_iter, True
        if high < VANISHED * start:
            return mu, 0.0, n_iter, True
        if math.isinf(high) or low == 0.0:
            s = 4.0 * low if low > 0.0 else 0.25 * high
        else:
            s = math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return mu, s, MOST_ITERATIONS, False


class _Clipped(NamedTuple):
    """Sums that occur in the equations of proposal 2, at a given location and scale."""

    positions: tuple[int, int, int, int]  #: range of values not clipped in the location equation, then in the scale one
    near: RangeSums  #: sums over values that are not clipped in the location equation
    pull: float  #: sum of psi over values that are clipped in the location equation
    within: RangeSums  #: sums over values that are not clipped in the scale equation
    total: float  #: weight of all values


@kernel
def _clip(col: Sorted, mu: float, s: float, k_location: float, k_scale: float) -> _Clipped:
    """Return the sums over the values that psi does not clip in the equations of location and of scale (`_Clipped`).

    Parameters
    ----------
    col : Sorted
        The column, relative to its lower median.
    mu : float
        The location, relative to ``col.center``.
    s : float
        The scale.
    k_location : float
        Constant k of Huber's psi in the location equation, in units of the scale.
    k_scale : float
        Constant k of Huber's psi in the scale equation, in units of the scale.
    """
    widest_vectors()
    total = col.total
    tail = int(TAIL * col.y.size)
    lo = find_position(col.y, col.center, mu - k_location * s, tail)
    hi = find_position(col.y, col.center, mu + k_location * s, col.y.size - tail)
    near = sum_range(col, lo, hi)
    pull = k_location * (weight_between(col, hi, col.y.size) - weight_between(col, 0, lo))
    if k_scale == k_location:
        return _Clipped((lo, hi, lo, hi), near, pull, near, total)
    first = find_position(col.y, col.center, mu - k_scale * s, lo)
    last = find_position(col.y, col.center, mu + k_scale * s, hi)
    return _Clipped((lo, hi, first, last), near, pull, sum_range(col, first, last), total)


@kernel
def _psi_sum(at: _Clipped, mu: float, s: float) -> float:
    """Return the sum of s psi((y - center - mu)/s), the left side of the location equation times s."""
    return at.near.first - at.near.weight * mu + s * at.pull


@kernel
def _psi_squares(at: _Clipped, mu: float, s: float, k_scale: float) -> float:
    """Return the sum of psi((y - center - mu)/s)**2, the left side of the scale equation."""
    squares = at.within.second - mu * (2.0 * at.within.first - mu * at.within.weight)
    return max(squares, 0.0) / (s * s) + k_scale * k_scale * (at.total - at.within.weight)


@kernel
def _solve_clipped(at: _Clipped, target: float, k_scale: float) -> tuple[float, float]:
    """Solve both equations for given clipped values; return mu and s, or s = -1 if there is no solution."""
    a, b = at.near, at.within
    if not (a.weight > 0.0 and b.weight > 0.0):
        return 0.0, -1.0
    mean, pull = a.first / a.weight, at.pull / a.weight
    center = b.first / b.weight
    gap = center - mean
    squares = max(b.second - b.first * center, 0.0) + b.weight * gap * gap
    # leading s**2 + 2 half s - squares = 0
    half = b.weight * gap * pull
    leading = target - k_scale * k_scale * (at.total - b.weight) - b.weight * pull * pull
    if not leading > 0.0:
        return mean, -1.0
    root = math.sqrt(half * half + leading * squares)
    s = squares / (half + root) if half > 0.0 else (root - half) / leading
    return mean + pull * s, s


@kernel
def sorted_huber_proposal2(y: np.ndarray, w: np.ndarray, k: float, k_location: float) -> LocScale:
    """Return location and scale of a sorted column by Huber's proposal 2.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    k : float
        Constant k of psi in the scale equation, in units of the scale.
    k_location : float
        Constant k of psi in the location equation, in units of the scale.
    """
    return solve_jointly(_proposal2_about, y, w, k, k_location)
