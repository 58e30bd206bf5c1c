"""Huber's location and scale of a vector: public functions for Python and for jitted code."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

import numpy as np
import numpy.typing as npt

from powerkern._input.arrays import is_whole
from powerkern._jit import allocated, compiled_as, kernel, release
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.location.loc_scale import LocScale
from powerkern.kernels.location.location import (
    Estimate,
    apply_estimator,
    for_squares,
    huber_columns,
    huber_scale_columns,
    location_by,
    proposal2_by,
    proposal2_columns,
    scale_by,
    without_missing,
)
from powerkern.kernels.plain_arguments import as_real, as_vector, format_argument


@kernel
def _estimate_vector(estimate: Estimate, x: np.ndarray, options: tuple[float, ...]) -> LocScale:
    """Apply an estimator to a copy of a sorted vector; `options` are the estimator's options."""
    y = allocated((x.size,))
    copy(x, y)
    result = apply_estimator(estimate, for_squares(without_missing(y, x[:0])), options)
    release(y)
    return result


@kernel
def _huber_location(x: np.ndarray, scale: float | None = None, k: float = 1.5) -> LocScale:
    return _estimate_vector(location_by, x, (k, math.nan if scale is None else scale))


@kernel
def _huber_scale(x: np.ndarray, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    return _estimate_vector(scale_by, x, (0.0, k, float(ddof), math.nan if center is None else center))


@kernel
def _huber_proposal2(x: np.ndarray, k: float = 1.5, k_location: float | None = None) -> LocScale:
    return _estimate_vector(proposal2_by, x, (k, k if k_location is None else k_location))


def _sorted_values(x: npt.ArrayLike) -> np.ndarray:
    """Return the values of a vector, sorted and without NaN; raise ValueError if a value is infinite."""
    ascending = np.sort(as_vector("x", x))
    ascending = ascending[: np.searchsorted(ascending, np.nan)]
    if ascending.size and np.isinf(ascending[[0, -1]]).any():
        raise ValueError("x has infinite values; replace them, or mark them missing with NaN")
    return ascending


def _read_number(what: str, value: object, least: float) -> float:
    """Convert the argument called `what` to a float; raise ValueError unless it is finite and exceeds `least`."""
    if not isinstance(value, Real):
        raise TypeError(f"{what} must be a number, got {format_argument(value)}")
    number = as_real(what, value)
    if not least < number < math.inf:
        kind = "finite" if least == -math.inf else "positive and finite"
        raise ValueError(f"{what} must be {kind}, got {format_argument(value)}")
    return number


def _call_entry(columns_by: Callable[..., None], x: npt.ArrayLike, *options: float) -> LocScale:
    out = np.empty((1, 4))
    columns_by(_sorted_values(x)[None], np.empty((1, 0)), np.array(options), out)
    loc, scale, n_iter, status = out[0].tolist()
    return LocScale(loc, scale, int(n_iter), int(status))


@compiled_as(_huber_location)
def huber_location(x: npt.ArrayLike, scale: float | None = None, k: float = 1.5) -> LocScale:
    r"""Return Huber's M-estimate of location for a known scale.

    The estimate is the root mu of [1]_

    .. math:: \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr) = 0, \qquad \psi_k(u) = \max(-k, \min(k, u))

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are ignored.
    scale : float, optional
        The scale s > 0; by default the normalised median absolute deviation, 1.4826 MAD.
    k : float, default 1.5
        Distance beyond which values are clipped, in units of the scale. 1.345 has 95 % efficiency for normal data.

    Returns
    -------
    LocScale
        ``loc`` mu, ``scale`` s, ``n_iter`` iterations and ``status``, a `powerkern.location.LocationStatus`: CONVERGED;
        ZERO_SCALE if MAD = 0, with the median as loc; EMPTY if there are no values, with loc and scale NaN.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If x is not one-dimensional or has infinite values, or `scale` or `k` is not positive.

    See Also
    --------
    huber_proposal2 : estimates the scale as well.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    The method is Newton's, with a bracket as a safeguard. psi is piecewise linear, so a step is exact if the same
    values are clipped before and after it. The result is the root to rounding, about 1e-15 of the scale.

    Jitted code must pass a contiguous float64 vector, sorted in ascending order and without NaN, which is not checked.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964, 73-101.

    Examples
    --------
    >>> from powerkern.kernels import huber_location
    >>> huber_location([1.0, 2.0, 10.0])
    LocScale(loc=2.61195166387, scale=1.48260221850, n_iter=2, status=0)
    """
    known = math.nan if scale is None else _read_number("scale", scale, 0.0)
    return _call_entry(huber_columns, x, _read_number("k", k, 0.0), known)


@compiled_as(_huber_scale)
def huber_scale(x: npt.ArrayLike, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    r"""Return Huber's M-estimate of scale about a center.

    The estimate is the root s of [1]_

    .. math:: \sum_i \min\Bigl(\Bigl(\frac{x_i - c}{s}\Bigr)^2, k^2\Bigr) = (n - \text{ddof})\, \beta(k), \qquad
              \beta(k) = \operatorname{E} \min(Z^2, k^2),

    with c the center and Z standard normal.

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are ignored.
    center : float, optional
        The center c; by default the median.
    k : float, default 1.5
        Distance beyond which values are clipped, in units of the scale.
    ddof : int, default 0
        Pass 1 if the center was estimated and s**2 should agree with the unbiased variance for large k.

    Returns
    -------
    LocScale
        ``loc`` the center, ``scale`` s, ``n_iter`` and ``status`` as for `huber_location`. The scale is 0
        (ZERO_SCALE) if more than a fraction 1 - beta(k)/k**2 of the values, 65 % for k = 1.5, equals the center.

    Raises
    ------
    TypeError, ValueError
        As for `huber_location`; also if `center` is not finite, or `ddof` is not a non-negative whole number.

    See Also
    --------
    huber_proposal2 : estimates the location as well.

    Notes
    -----
    The equation, multiplied by s**2, is piecewise linear and concave in s**2, so Newton steps from above decrease to
    the root and find it to rounding.

    Jitted code must pass a vector as described for `huber_location`.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 5.2.

    Examples
    --------
    >>> from powerkern.kernels import huber_scale
    >>> huber_scale([1.0, 2.0, 10.0]).scale
    3.42201673808
    """
    about = math.nan if center is None else _read_number("center", center, -math.inf)
    if not is_whole(ddof) or ddof < 0:
        raise ValueError(f"ddof must be a whole number, 0 or more, got {format_argument(ddof)}")
    return _call_entry(huber_scale_columns, x, 0.0, _read_number("k", k, 0.0), float(ddof), about)


@compiled_as(_huber_proposal2)
def huber_proposal2(x: npt.ArrayLike, k: float = 1.5, k_location: float | None = None) -> LocScale:
    r"""Return location and scale by Huber's proposal 2.

    The estimates are the roots mu and s of [1]_

    .. math:: \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr) = 0, \qquad
              \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr)^2 = (n - 1)\, \beta(k), \qquad
              \beta(k) = \operatorname{E} \psi_k(Z)^2,

    with ``psi_k(u) = max(-k, min(k, u))`` and Z standard normal.

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are ignored.
    k : float, default 1.5
        Distance beyond which values are clipped, in units of the scale.
    k_location : float, optional
        Constant of the first equation, by default `k`; statsmodels' ``Huber(norm=HuberT())`` uses 1.345.

    Returns
    -------
    LocScale
        ``loc``, ``scale``, ``n_iter`` and ``status`` as for `huber_location`. If most values are equal and the
        only root has s = 0, loc is their value.

    Raises
    ------
    TypeError, ValueError
        As for `huber_location`.

    See Also
    --------
    huber_location : for a known scale.
    huber_scale : for a known location.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    The iteration starts from the median and the normalised MAD. Each step solves both equations jointly for the current
    sets of clipped values, until these sets no longer change. This takes two to five steps in most cases, and the
    result is the root to rounding. MASS::hubers in R stops silently after 30 steps of a fixed-point iteration;
    statsmodels raises an error.

    Jitted code must pass a vector as described for `huber_location`.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 6.4.

    Examples
    --------
    >>> from powerkern.kernels import huber_proposal2
    >>> huber_proposal2([150.4, 28.8, 46.6, 40.2, 46.5])
    LocScale(loc=50.4285587761, scale=26.4094900696, n_iter=3, status=0)
    """
    of_location = k if k_location is None else k_location
    return _call_entry(proposal2_columns, x, _read_number("k", k, 0.0), _read_number("k_location", of_location, 0.0))
