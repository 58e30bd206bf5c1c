"""Tukey's bisquare location of a sorted column, with several scales, and the one-step biweight ([1]_).

References
----------
.. [1] T. C. Beers, K. Flynn and K. Gebhardt, "Measures of location and scale for velocities in clusters of galaxies",
   Astron. J. 100, 1990, 32-46.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import scale_about, solve_jointly
from powerkern.kernels.location.loc_scale import (
    MAD_FACTOR,
    MOST_ITERATIONS,
    VANISHED,
    ZERO_SCALE,
    LocScale,
    make_loc_scale,
)
from powerkern.kernels.location.order_statistics import Sorted, find_position, mad_about, sorted_column

#: Largest last step of the bisquare location, in units of its scale: 500 rounding errors.
_TOLERANCE = 1e-13
#: A Newton step replaces the reweighting step if the latter is shorter than _NEAR, in units of the rejection distance,
#: and the slope is at least _STEEP times the weight. Reweighting alone takes 18.1 iterations on average on 180
#: simulated columns; _NEAR = 0.01, 0.02 and 0.04 take 4.2, 4.1 and 4.0. Twice _STEEP takes 4.4, and 63 on one column;
#: half of it changes nothing (report_constants bisquare).
_NEAR, _STEEP = 0.02, 0.2


@reduction
def _biweight_sums(
    part: np.ndarray, w: FloatArray | None, center: float, mu: float, rejection: float
) -> tuple[float, float, float]:
    """Return weighted sums of u (1 - u**2)**2, (1 - u**2)**2 and (1 - u**2)(1 - 5 u**2).

    Here u = (y - center - mu)/rejection; the sums are over values with |u| <= 1.

    Parameters
    ----------
    part : ndarray of float64, shape (n,)
        The values y.
    w : ndarray of float64, shape (n,), or None
        Weights of the values; None if all are one.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    mu : float
        The location, relative to `center`.
    rejection : float
        The rejection distance, in units of the data.
    """
    psi, weight, slope = 0.0, 0.0, 0.0
    for i in range(part.size):
        each = 1.0 if w is None else w[i]
        u = ((part[i] - center) - mu) / rejection
        v = 1.0 - u * u
        psi += each * u * v * v
        weight += each * v * v
        slope += each * v * (1.0 - 5.0 * u * u)
    return psi, weight, slope


@reduction
def _biweight_squares(part: np.ndarray, w: np.ndarray, center: float, mu: float, rejection: float) -> float:
    """Return the weighted sum of u**2 (1 - u**2)**4, where u = (y - center - mu)/rejection.

    Parameters
    ----------
    part : ndarray of float64, shape (n,)
        The values y, at most `rejection` away from the location.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    center : float
        A value of the column. It is subtracted from y first, so that no digits are lost.
    mu : float
        The location, relative to `center`.
    rejection : float
        The rejection distance, in units of the data.
    """
    total = 0.0
    weighted = w.size > 0
    for i in range(part.size):
        u = ((part[i] - center) - mu) / rejection
        v = 1.0 - u * u
        total += (w[i] if weighted else 1.0) * u * u * (v * v) * (v * v)
    return total


@kernel
def _biweight_at(col: Sorted, mu: float, rejection: float) -> tuple[float, float, float]:
    """Return the sums of `_biweight_sums` over the values that are less than `rejection` away from the location.

    The location is ``col.center + mu``.
    """
    lo = find_position(col.y, col.center, mu - rejection, 0)
    hi = find_position(col.y, col.center, mu + rejection, col.y.size)
    if col.w.size == 0:
        return _biweight_sums(col.y[lo:hi], None, col.center, mu, rejection)
    return _biweight_sums(col.y[lo:hi], col.w[lo:hi], col.center, mu, rejection)


@kernel
def _bisquare_step(col: Sorted, mu: float, rejection: float) -> float:
    """Return the next step to the bisquare location: a reweighting step or, if that is short, a Newton step.

    The result is NaN if no value is within the rejection distance of the location.
    """
    psi, weight, slope = _biweight_at(col, mu, rejection)
    if weight == 0.0:
        return math.nan
    step = rejection * psi / weight
    if abs(step) < _NEAR * rejection and slope > _STEEP * weight:
        return rejection * psi / slope
    return step


@kernel
def _bisquare_about(col: Sorted, scale: float, c: float) -> tuple[float, int, bool]:
    """Return Tukey's bisquare location mu for a known scale, the number of iterations, and whether mu converged.

    mu is a root of sum w u (1 - u**2)**2 = 0, where u = (y - center - mu)/(c scale). The iteration starts at the
    median.
    """
    mu = col.median
    rejection = c * scale
    for n_iter in range(1, MOST_ITERATIONS + 1):
        step = _bisquare_step(col, mu, rejection)
        if math.isnan(step):
            return col.median, n_iter, False
        mu += step
        if abs(step) <= _TOLERANCE * scale:
            return mu, n_iter, True
    return mu, MOST_ITERATIONS, False


@kernel
def _bisquare_proposal2_about(
    col: Sorted, start: float, c: float, k_scale: float, dof: float
) -> tuple[float, float, int, bool]:
    """Solve Huber's proposal 2 with Tukey's bisquare in the location equation.

    The iteration starts at the median. Returns the location relative to ``col.center``, the scale, the number of
    iterations, and whether the iteration converged.

    Parameters
    ----------
    col : Sorted
        The column, relative to its lower median.
    start : float
        The scale at which the iteration starts.
    c : float
        Rejection distance of the bisquare in the location equation, in units of the scale.
    k_scale : float
        Constant k of Huber's psi in the scale equation, in units of the scale.
    dof : float
        Degrees of freedom in the scale equation: the total weight minus one.
    """
    mu, s = col.median, start
    for n_iter in range(1, MOST_ITERATIONS + 1):
        step = _bisquare_step(col, mu, c * s)
        if math.isnan(step):
            return mu, s, n_iter, False
        mu += step
        new_s, _, converged = scale_about(col, mu, s, k_scale, dof)
        change = max(abs(step), abs(new_s - s))
        if not converged:
            return mu, new_s, n_iter, False
        if new_s <= VANISHED * start:  # most values equal the median
            return col.median, 0.0, n_iter, True
        s = new_s
        if change <= _TOLERANCE * s:
            return mu, s, n_iter, True
    return mu, s, MOST_ITERATIONS, False


@kernel
def sorted_bisquare_proposal2(y: np.ndarray, w: np.ndarray, k: float, c: float) -> LocScale:
    """Return location and scale by Huber's proposal 2, with Tukey's bisquare in the location equation.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    k : float
        Constant k of Huber's psi in the scale equation, in units of the scale.
    c : float
        Rejection distance of the bisquare in the location equation, in units of the scale.
    """
    return solve_jointly(_bisquare_proposal2_about, y, w, k, c)


@kernel
def sorted_bisquare(y: np.ndarray, w: np.ndarray, c: float) -> LocScale:
    """Return Tukey's bisquare location of a sorted column, with the normalised MAD as the known scale.

    `y` and `w` are as for `sorted_column`; `c` is the rejection distance, in units of the scale.
    """
    col = sorted_column(y, w)
    scale = MAD_FACTOR * mad_about(col, col.median)
    mu, n_iter, converged = col.median, 0, True
    if scale > 0.0:
        mu, n_iter, converged = _bisquare_about(col, scale, c)
    return make_loc_scale(col.center + mu, scale, n_iter, converged)


@kernel
def sorted_biweight(y: np.ndarray, w: np.ndarray, c_location: float, c_scale: float) -> LocScale:
    """Return the one-step biweight location and the square root of the biweight midvariance ([1]_).

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    w : ndarray of float64, shape (n,) or (0,)
        Weights of the values; empty if all are one.
    c_location : float
        Rejection distance of the location, in units of the raw MAD.
    c_scale : float
        Rejection distance of the midvariance, in units of the raw MAD.
    """
    col = sorted_column(y, w)
    mad = mad_about(col, col.median)
    if mad == 0.0:
        return LocScale(col.center + col.median, 0.0, 0, ZERO_SCALE)
    rejection = c_location * mad
    psi, weight, _ = _biweight_at(col, col.median, rejection)
    mu = col.median + (rejection * psi / weight if weight > 0.0 else 0.0)
    rejection = c_scale * mad
    slope = abs(_biweight_at(col, col.median, rejection)[2])
    lo = find_position(y, col.center, col.median - rejection, 0)
    hi = find_position(y, col.center, col.median + rejection, y.size)
    squares = _biweight_squares(y[lo:hi], w[lo:hi], col.center, col.median, rejection)
    total = col.total
    scale = rejection * math.sqrt(total * squares) / slope if slope > 0.0 else math.nan
    return make_loc_scale(col.center + mu, scale, 1, slope > 0.0)
