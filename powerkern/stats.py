"""The power transforms of `scipy.stats` and `scipy.special`: same names, same signatures, exact and fast.

Change one import line, ``from scipy.stats import boxcox`` to ``from powerkern.stats import boxcox``. Errors, warnings
and return types are those of the SciPy that is installed, up to 1.18. What differs: lambda is the root of the score
instead of a line search's 1e-8, nothing overflows, and no search for a bracket can fail.

Every function computes in float64. Results are float32 where SciPy's promotion makes them so (float16 counts as
float32), float64 otherwise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.exceptions import AxisError
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from powerkern._engine.one_column import fit_vector, interval_vector, nll_vector
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.boxcox import boxcox_array, inv_boxcox_array
from powerkern.kernels.elementwise import boxcox_each, inv_boxcox_each, inv_yeojohnson_each, yeojohnson_each
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON, lowest
from powerkern.kernels.lambda_bounds import lambda_ranges
from powerkern.kernels.yeojohnson import inv_yeojohnson_array, yeojohnson_array

__all__ = [
    "boxcox",
    "boxcox_llf",
    "boxcox_normmax",
    "inv_boxcox",
    "inv_yeojohnson",
    "yeojohnson",
    "yeojohnson_llf",
    "yeojohnson_normmax",
]


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
#: SciPy's distance of the transformed data from overflow.
_SAFETY = 1e4
#: The largest magnitude that transformed data of a type may have.
_OVERFLOW = {dtype: float(np.finfo(dtype).max) / _SAFETY for dtype in (_FLOAT32, _FLOAT64)}

#: What a NaN in the data of a fit does by default: SciPy 1.18 propagates it, older ones (None) refuse it.
_NAN_POLICY = "propagate" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18) else None

_NOT_1D = "Data must be 1-dimensional."
_NOT_POSITIVE_FINITE = "The `x` argument of `boxcox_normmax` must contain only positive, finite, real numbers."


# --- Box-Cox ------------------------------------------------------------------------------------------


def boxcox(
    x: ArrayLike,
    lmbda: ArrayLike | None = None,
    alpha: float | None = None,
    optimizer: Callable[..., Any] | None = None,
    *,
    nan_policy: str | None = _NAN_POLICY,
) -> Any:
    r"""Box-Cox transform of `x`, by the given lambda or by the one of maximum likelihood.

    .. math:: \psi(\lambda, x) = (x^\lambda - 1)/\lambda \quad (\lambda \ne 0), \qquad \psi(0, x) = \ln x

    Parameters
    ----------
    x : array_like
        The data. To estimate lambda: 1-D, positive, finite, not constant. With `lmbda` given any shape: NaN for
        ``x < 0``, and the limit (-inf or -1/lmbda) for ``x == 0``.
    lmbda : array_like of float, optional
        Transform by this; it broadcasts against `x`.
    alpha : float, optional
        Also return the ``100 (1 - alpha)`` % likelihood interval of lambda. Ignored when `lmbda` is given.
    optimizer : callable, optional
        Called with the negative log-likelihood (a function of lambda); returns an object whose attribute ``x`` is
        the minimiser. Only for bounds and the like of your own: without it lambda is exact. Ignored when `lmbda`
        is given.
    nan_policy : {"propagate", "omit", "raise"}, optional
        What a NaN in `x` does: makes all results NaN, is left out of the fit and stays NaN, or raises ValueError. With
        `lmbda` given, NaN stays NaN unless it is to raise.
        Default: as in the installed SciPy, "propagate" from 1.18 on; before, lambda is not fitted to NaN (ValueError).

    Returns
    -------
    y : ndarray
        The transformed data. An empty `x` is returned as it is, alone.
    maxlog : float
        The estimate of lambda. Only without `lmbda`.
    (min_ci, max_ci) : tuple of float
        The lambdas whose log-likelihood lies ``chi2(1 - alpha, 1)/2`` below that of `maxlog`. Only with `alpha`.

    Raises
    ------
    ValueError
        `x` is not 1-D, constant, not positive or not finite; `alpha` is not in [0, 1]; see also `boxcox_normmax`.
    TypeError
        `x` does not hold real numbers.

    Warns
    -----
    UserWarning
        The transformed data would overflow at the optimum, so lambda is bounded; see `boxcox_normmax`.

    See Also
    --------
    boxcox_normmax, boxcox_llf, inv_boxcox

    Notes
    -----
    Within 1e-12 of the true maximiser for well-conditioned data. `scipy.stats.boxcox` stops at about 1e-8 and
    returns a wrong lambda for tight clusters. The interval is found for every `alpha`, while SciPy's search gives
    up ("Could not find endpoint.") on intervals wider than 50.

    References
    ----------
    Box and Cox (1964), An Analysis of Transformations, J. R. Stat. Soc. B 26, 211-252, equations 1 and 8.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.stats import boxcox, inv_boxcox
    >>> x = [0.7, 1.6, 2.3, 3.3, 5.8, 9.4, 20.1]
    >>> y, lmbda, (low, high) = boxcox(x, alpha=0.05)
    >>> round(float(lmbda), 6), round(low, 4), round(high, 4)
    (-0.031211, -0.7785, 0.7204)
    >>> np.allclose(inv_boxcox(y, lmbda), x)
    True
    """
    x = np.asanyarray(x)
    if lmbda is not None:
        _contains_nan(x, nan_policy)  # which may be an error
        return _transform(_BOXCOX, x, lmbda)
    if x.size == 0 and x.ndim == 1:
        return np.asarray(x)
    column, low, high = _column(x)
    if low == high:
        raise ValueError("Data must not be constant.")
    if not low > 0.0 and np.any(column <= 0.0):
        raise ValueError("Data must be positive.")
    if _contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            nan = _nan_of(x)
            return (
                (_transform(_BOXCOX, x, nan), nan) if alpha is None else (_transform(_BOXCOX, x, nan), nan, (nan, nan))
            )
        column, low, high = _column(_without_nan(column))
        if low == high:
            raise ValueError("Data must not be constant.")
    if not 0.0 < low <= high < math.inf:
        raise ValueError(_NOT_POSITIVE_FINITE)
    optimum = _maximum_likelihood(column, BOX_COX, None, optimizer)
    dtype = _float_dtype(x.dtype)
    maxlog = _bounded(optimum, _range(BOX_COX, low, high, _OVERFLOW[dtype]), f"overflow in {dtype.name}.")
    y = _transform(_BOXCOX, x, maxlog)
    if alpha is None:
        return y, maxlog
    return y, maxlog, _likelihood_interval(column, maxlog, alpha)


def boxcox_normmax(
    x: ArrayLike,
    brack: Sequence[float] | None = None,
    method: str = "pearsonr",
    optimizer: Callable[..., Any] | None = None,
    *,
    ymax: float | None = None,
    nan_policy: str | None = _NAN_POLICY,
) -> Any:
    r"""The lambda that makes the Box-Cox transform of `x` most normal.

    Parameters
    ----------
    x : array_like
        The data: 1-D, positive, finite, not constant.
    brack : sequence of 2 or 3 floats, optional
        The first points of the search with ``method="pearsonr"``. Maximum likelihood needs none: it checks them as
        SciPy does and goes its own way to the one maximum. Not together with `optimizer`.
    method : {"pearsonr", "mle", "all"}
        "pearsonr" maximises the correlation of the sorted transformed data with the medians of normal order
        statistics (the probability plot), "mle" the log-likelihood `boxcox_llf`; "all" does both.
    optimizer : callable, optional
        Called with the function of lambda to be minimised: one minus the correlation, or the negative
        log-likelihood. Returns an object whose attribute ``x`` is the minimiser.
    ymax : float, optional
        Bound of the transformed data's magnitude. Default: the largest number of x's dtype, divided by 10,000.
        Infinity: no bound. It holds for every method, as it does in SciPy (whose documentation says otherwise).
    nan_policy : {"propagate", "omit", "raise"}, optional
        What a NaN in `x` does: makes the result NaN, is left out, or raises ValueError.
        Default: as in the installed SciPy, "propagate" from 1.18 on; before, lambda is not fitted to NaN (ValueError).

    Returns
    -------
    maxlog : float or ndarray
        The optimal lambda; for ``method="all"`` an array: by correlation, by likelihood.

    Raises
    ------
    ValueError
        `x` is not 1-D, empty, constant, not positive or not finite; `ymax` is not positive, or no lambda satisfies
        it; `method` is unknown; `optimizer` is not callable or its result has no attribute ``x``; `brack` has
        another length than 2 or 3, or does not bracket a minimum.
    TypeError
        `x` does not hold real numbers.

    Warns
    -----
    UserWarning
        The bound is active. The log-likelihood is concave, so the bounded maximum is the free one moved to the
        bound.

    See Also
    --------
    boxcox, boxcox_llf

    Notes
    -----
    Maximum likelihood: within 1e-12 of the true maximiser for well-conditioned data. The correlation is evaluated
    from scaled exponentials and cannot overflow; its maximiser (the one downhill from `brack`, should there be
    several) is good to about 1e-8. With fewer than three distinct values the correlation is the same for every
    lambda, and the result is 1.
    The bound on lambda solves ``expm1(t)/t = ymax/|ln x|`` for ``t = lmbda ln x``: the Lambert W form of SciPy,
    without its overflow and also for ``ymax < |ln x|``, where SciPy answers 0 and exceeds `ymax`.

    References
    ----------
    Box and Cox (1964), An Analysis of Transformations, J. R. Stat. Soc. B 26, 211-252, equation 8.
    Filliben (1975), The Probability Plot Correlation Coefficient Test for Normality, Technometrics 17, 111-117.
    Corless et al. (1996), On the Lambert W Function, Adv. Comput. Math. 5, 329-359.

    Examples
    --------
    >>> from powerkern.stats import boxcox_normmax
    >>> x = [0.7, 1.6, 2.3, 3.3, 5.8, 9.4, 20.1]
    >>> boxcox_normmax(x, method="all").round(6)
    array([-0.03479 , -0.031211])
    """
    x = np.asanyarray(x)
    if _contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            return np.asarray([_nan_of(x)] * 2) if method == "all" else _nan_of(x)
        x = _without_nan(x)
    column, low, high = _column(x)
    if not 0.0 < low <= high < math.inf:
        raise ValueError(_NOT_POSITIVE_FINITE)
    consequence = "exceed specified `ymax`."
    if ymax is None:
        dtype = _float_dtype(x.dtype)
        ymax, consequence = _OVERFLOW[dtype], f"overflow in {dtype.name}."
    elif ymax <= 0:
        raise ValueError("`ymax` must be strictly positive")
    if optimizer is not None and brack is not None:
        raise ValueError("`brack` must be None if `optimizer` is given")
    if method not in ("pearsonr", "mle", "all"):
        raise ValueError(f"Method {method} not recognized.")
    if low == high:
        raise ValueError("Data must not be constant.")

    optima = []
    if method != "mle":
        optima.append(_best_correlation(column, brack, optimizer))
    if method != "pearsonr":
        optima.append(_maximum_likelihood(column, BOX_COX, brack, optimizer))
    lambdas = _range(BOX_COX, low, high, ymax)
    for i, optimum in enumerate(optima):
        optima[i] = _bounded(optimum, lambdas, consequence)
    return np.array(optima) if method == "all" else optima[0]


def boxcox_llf(
    lmb: float,
    data: ArrayLike,
    *,
    axis: int | tuple[int, ...] | None = 0,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Any:
    r"""Log-likelihood of lambda under the Box-Cox model, maximised over location and scale.

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \ln x_i - \frac{n}{2} \ln \mathrm{Var}\, \psi(\lambda, x)

    with the variance's divisor n; the constant ``-n/2 (ln 2 pi + 1)`` is left out, as in SciPy.

    Parameters
    ----------
    lmb : float
        The transformation parameter.
    data : array_like
        The data, of any shape. Masked elements are ignored.
    axis : int, tuple of int or None, default 0
        The axes along which each log-likelihood runs; None: all.
    keepdims : bool, default False
        Keep the reduced axes, with length one.
    nan_policy : {"propagate", "omit", "raise"}
        What a NaN in a slice does: makes its result NaN, is left out, or raises ValueError.

    Returns
    -------
    llf : float or ndarray
        NaN where a value is not positive and finite, inf where all values are equal.

    Raises
    ------
    ValueError
        `nan_policy` is unknown, or there are NaN and it is "raise".
    numpy.exceptions.AxisError
        `axis` does not fit `data`.
    TypeError
        `data` does not hold real numbers.

    Warns
    -----
    RuntimeWarning
        A slice is empty, or is left empty without its NaN (`scipy.stats`' SmallSampleWarning); its result is NaN.

    See Also
    --------
    boxcox, boxcox_normmax

    Notes
    -----
    Evaluated without overflow or cancellation: exact to rounding also for tight clusters, where SciPy's
    log-sum-exp loses all digits.

    References
    ----------
    Box and Cox (1964), An Analysis of Transformations, J. R. Stat. Soc. B 26, 211-252, equation 8.

    Examples
    --------
    >>> from powerkern.stats import boxcox_llf
    >>> round(float(boxcox_llf(-8, [198.0, 233.0, 233.0, 392.0])), 10)
    -17.9393420858
    """
    return _log_likelihood(BOX_COX, lmb, data, axis, keepdims, nan_policy)


def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Inverse of the Box-Cox transform.

    .. math:: \psi^{-1}(\lambda, y) = (1 + \lambda y)^{1/\lambda} \quad (\lambda \ne 0), \qquad
              \psi^{-1}(0, y) = e^y

    Parameters
    ----------
    y, lmbda : array_like of float
        Transformed values and lambdas; they broadcast against each other.
    out : ndarray, optional
        Where to put the result.

    Returns
    -------
    x : ndarray or float
        NaN where ``1 + lmbda y < 0``, outside the range of the transform.

    Raises
    ------
    TypeError
        `y` does not hold real numbers.

    See Also
    --------
    boxcox

    Examples
    --------
    >>> from powerkern.stats import inv_boxcox
    >>> inv_boxcox([[0.0], [1.5]], [1.0, 2.0])
    array([[1. , 1. ],
           [2.5, 2. ]])
    """
    return _transform(_INV_BOXCOX, np.asarray(y), lmbda, out)


# --- Yeo-Johnson --------------------------------------------------------------------------------------


def yeojohnson(x: ArrayLike, lmbda: ArrayLike | None = None, *, nan_policy: str | None = _NAN_POLICY) -> Any:
    r"""Yeo-Johnson transform of `x`, by the given lambda or by the one of maximum likelihood.

    .. math:: \psi(\lambda, x) = \frac{(1 + x)^\lambda - 1}{\lambda} \quad (x \ge 0), \qquad
              \psi(\lambda, x) = -\frac{(1 - x)^{2 - \lambda} - 1}{2 - \lambda} \quad (x < 0)

    and the limits ``ln(1 + x)`` for ``lmbda = 0``, ``-ln(1 - x)`` for ``lmbda = 2``.

    Parameters
    ----------
    x : array_like
        The data. To estimate lambda: 1-D and finite. With `lmbda` given any shape; NaN stays NaN.
    lmbda : array_like of float, optional
        Transform by this; it broadcasts against `x`.
    nan_policy : {"propagate", "omit", "raise"}, optional
        What a NaN in `x` does: makes all results NaN, is left out of the fit and stays NaN, or raises ValueError. With
        `lmbda` given, NaN stays NaN unless it is to raise.
        Default: as in the installed SciPy, "propagate" from 1.18 on; before, lambda is not fitted to NaN (ValueError).

    Returns
    -------
    y : ndarray
        The transformed data. An empty `x` is returned as it is, alone.
    maxlog : float
        The estimate of lambda, `yeojohnson_normmax`. Only without `lmbda`.

    Raises
    ------
    ValueError
        `x` is complex; or lambda is to be estimated and `x` is not 1-D or not finite.
    TypeError
        `x` does not hold numbers.

    See Also
    --------
    yeojohnson_normmax, yeojohnson_llf, inv_yeojohnson

    Notes
    -----
    Constant data have no maximum: lambda is 1 and `y` is `x`. (SciPy answers so for zeros only, and for other
    constants with whatever the search ends at.)

    References
    ----------
    Yeo and Johnson (2000), A New Family of Power Transformations to Improve Normality or Symmetry, Biometrika 87,
    954-959, equation 2.1.

    Examples
    --------
    >>> from powerkern.stats import inv_yeojohnson, yeojohnson
    >>> import numpy as np
    >>> darwin = [6.1, -8.4, 1.0, 2.0, 0.7, 2.9, 3.5, 5.1, 1.8, 3.6, 7.0, 3.0, 9.3, 7.5, -6.0]
    >>> y, lmbda = yeojohnson(darwin)
    >>> round(float(lmbda), 6)
    1.305275
    >>> np.allclose(inv_yeojohnson(y, lmbda), darwin)
    True
    """
    x = np.asanyarray(x)
    if x.size == 0:
        return np.asarray(x)
    _reject_complex(x)
    if lmbda is not None:
        _contains_nan(x, nan_policy)  # which may be an error
        return _transform(_YEOJOHNSON, x, lmbda)
    maxlog = yeojohnson_normmax(x, nan_policy=nan_policy)
    return _transform(_YEOJOHNSON, x, maxlog), maxlog


def yeojohnson_normmax(
    x: ArrayLike,
    brack: Sequence[float] | None = None,
    *,
    ymax: float | None = None,
    nan_policy: str | None = _NAN_POLICY,
) -> Any:
    r"""The lambda of maximum likelihood of the Yeo-Johnson transform.

    Parameters
    ----------
    x : array_like
        The data: 1-D and finite.
    brack : sequence of 2 or 3 floats, optional
        When given, lambda is not bounded, as in SciPy. Otherwise unused, but checked: the one maximum is found from
        anywhere.
    ymax : float, optional
        Bound of the transformed data's magnitude (not a parameter of SciPy's). Default: a 10,000th of the square
        root of the largest number of x's dtype, so that the variance of the transformed data is finite too.
        Infinity: no bound.
    nan_policy : {"propagate", "omit", "raise"}, optional
        What a NaN in `x` does: makes the result NaN, is left out, or raises ValueError.
        Default: as in the installed SciPy, "propagate" from 1.18 on; before, lambda is not fitted to NaN (ValueError).

    Returns
    -------
    maxlog : float
        The optimal lambda; 1 for empty or constant data.

    Raises
    ------
    ValueError
        `x` is complex, not 1-D or not finite; `brack` has another length than 2 or 3, or does not bracket a
        minimum; `ymax` is not positive, or no lambda satisfies it.
    TypeError
        `x` does not hold numbers.

    Warns
    -----
    UserWarning
        The given `ymax` is active. The default bound is silent, as in SciPy.

    See Also
    --------
    yeojohnson, yeojohnson_llf

    Notes
    -----
    Within 1e-12 of the true maximiser for well-conditioned data. SciPy bounds lambda much earlier, as though the
    data were 20 times larger, and returns its bound without a word: -110 in place of -14,427 for one 1 among
    9,999 zeros. Given `brack` it fails with BracketError or ends anywhere where the likelihood overflows.

    References
    ----------
    Yeo and Johnson (2000), A New Family of Power Transformations to Improve Normality or Symmetry, Biometrika 87,
    954-959, equation 3.1.

    Examples
    --------
    >>> from powerkern.stats import yeojohnson_normmax
    >>> round(float(yeojohnson_normmax([-1.2, 0.0, 0.4, 1.3, 3.0, 8.1])), 6)
    0.31308
    """
    x = np.asanyarray(x)
    _reject_complex(x)
    if _contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            return _nan_of(x)
        x = _without_nan(x)
    if x.size == 0:
        return np.float64(1.0)
    column, low, high = _column(x)
    if not -math.inf < low <= high < math.inf:
        raise ValueError("Yeo-Johnson input must be finite.")
    if ymax is not None and ymax <= 0:
        raise ValueError("`ymax` must be strictly positive")
    if low == high:
        return np.float64(1.0)
    optimum = _maximum_likelihood(column, YEO_JOHNSON, brack, None)
    if ymax is not None:
        return _bounded(optimum, _range(YEO_JOHNSON, low, high, ymax), "exceed specified `ymax`.")
    if brack is not None:
        return optimum
    overflow = _OVERFLOW[_float_dtype(x.dtype)]
    for magnitude in (math.sqrt(overflow / _SAFETY), overflow):
        lower, upper = _range(YEO_JOHNSON, low, high, magnitude)
        if lower <= upper:
            return np.float64(min(max(optimum, lower), upper))
    return optimum


def yeojohnson_llf(
    lmb: float,
    data: ArrayLike,
    *,
    axis: int | tuple[int, ...] | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:
    r"""Log-likelihood of lambda under the Yeo-Johnson model, maximised over location and scale.

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \mathrm{sign}(x_i) \ln(1 + |x_i|)
              - \frac{n}{2} \ln \mathrm{Var}\, \psi(\lambda, x)

    with the variance's divisor n; the constant ``-n/2 (ln 2 pi + 1)`` is left out, as in SciPy.

    Parameters
    ----------
    lmb : float
        The transformation parameter.
    data : array_like
        The data, of any shape. Masked elements are ignored.
    axis : int, tuple of int or None, default 0
        The axes along which each log-likelihood runs; None: all.
    nan_policy : {"propagate", "omit", "raise"}
        What a NaN in a slice does: makes its result NaN, is left out, or raises ValueError.
    keepdims : bool, default False
        Keep the reduced axes, with length one.

    Returns
    -------
    llf : float or ndarray
        NaN where a value is not finite, inf where all values are equal.

    Raises
    ------
    ValueError
        `nan_policy` is unknown, or there are NaN and it is "raise".
    numpy.exceptions.AxisError
        `axis` does not fit `data`.
    TypeError
        `data` does not hold real numbers.

    Warns
    -----
    RuntimeWarning
        A slice is empty, or is left empty without its NaN (`scipy.stats`' SmallSampleWarning); its result is NaN.

    See Also
    --------
    yeojohnson, yeojohnson_normmax

    Notes
    -----
    Evaluated without overflow or cancellation, for any finite `lmb`.

    References
    ----------
    Yeo and Johnson (2000), A New Family of Power Transformations to Improve Normality or Symmetry, Biometrika 87,
    954-959, equation 3.1.

    Examples
    --------
    >>> from powerkern.stats import yeojohnson_llf
    >>> round(float(yeojohnson_llf(0.5, [-1.2, 0.0, 0.4, 1.3, 3.0, 8.1])), 6)
    -5.266188
    """
    return _log_likelihood(YEO_JOHNSON, lmb, data, axis, keepdims, nan_policy)


def inv_yeojohnson(y: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Inverse of the Yeo-Johnson transform.

    .. math:: \psi^{-1}(\lambda, y) = (1 + \lambda y)^{1/\lambda} - 1 \quad (y \ge 0), \qquad
              \psi^{-1}(\lambda, y) = 1 - (1 - (2 - \lambda) y)^{1/(2 - \lambda)} \quad (y < 0)

    and the limits ``expm1(y)`` for ``lmbda = 0``, ``-expm1(-y)`` for ``lmbda = 2``.

    Parameters
    ----------
    y, lmbda : array_like of float
        Transformed values and lambdas; they broadcast against each other.
    out : ndarray, optional
        Where to put the result.

    Returns
    -------
    x : ndarray or float
        NaN where `y` is outside the range of the transform: ``1 + lmbda y < 0`` for ``y >= 0``,
        ``1 - (2 - lmbda) y < 0`` for ``y < 0``.

    Raises
    ------
    TypeError
        `y` does not hold real numbers.

    See Also
    --------
    yeojohnson

    Examples
    --------
    >>> from powerkern.stats import inv_yeojohnson
    >>> inv_yeojohnson([[-1.0], [1.5]], [1.0, 2.0])
    array([[-1.        , -1.71828183],
           [ 1.5       ,  1.        ]])
    """
    return _transform(_INV_YEOJOHNSON, np.asarray(y), lmbda, out)


# --- arrays in, arrays out ----------------------------------------------------------------------------


class _Elementwise(NamedTuple):
    """A transform of a contiguous vector, by one lambda or by one lambda an element."""

    by_one: Callable[[FloatArray, float, FloatArray], None]
    by_each: Callable[[FloatArray, FloatArray, FloatArray], None]


def _transform(kernel: _Elementwise, x: NDArray[Any], lmbda: ArrayLike, out: NDArray[np.floating] | None = None) -> Any:
    """Apply a transform with NumPy's broadcasting and type promotion."""
    values = _float64(np.asarray(x))
    if isinstance(lmbda, int | float | np.number):
        dtype, shape = _float_dtype(x.dtype, lmbda), x.shape
        result = np.empty(values.size)
        kernel.by_one(values.reshape(-1), float(lmbda), result)
    else:
        lambdas = np.asarray(lmbda)
        dtype, shape = _float_dtype(x.dtype, lambdas), np.broadcast_shapes(x.shape, lambdas.shape)
        result = np.empty(math.prod(shape))
        # a scalar is a vector of one element to _float64
        every_x = np.broadcast_to(values.reshape(x.shape), shape).flatten()
        every_lmbda = np.broadcast_to(_float64(lambdas).reshape(lambdas.shape), shape).flatten()
        kernel.by_each(every_x, every_lmbda, result)
    result = result.reshape(shape).astype(dtype, copy=False)
    if out is None:
        return result[()]
    np.copyto(out, result, casting="same_kind")
    return out


_BOXCOX = _Elementwise(boxcox_array, boxcox_each)
_INV_BOXCOX = _Elementwise(inv_boxcox_array, inv_boxcox_each)
_YEOJOHNSON = _Elementwise(yeojohnson_array, yeojohnson_each)
_INV_YEOJOHNSON = _Elementwise(inv_yeojohnson_array, inv_yeojohnson_each)


def _float_dtype(*operands: Any) -> np.dtype[Any]:
    """The type of a result: float32 where promotion says so or says float16, float64 otherwise."""
    promoted = np.result_type(*operands)
    return _FLOAT32 if promoted.kind == "f" and promoted.itemsize <= 4 else _FLOAT64


def _float64(x: NDArray[Any]) -> FloatArray:
    """`x` as contiguous, writable float64, which is what the compiled code is made for (it writes to none of it)."""
    if x.dtype.kind not in "fiub":
        raise TypeError(f"cannot transform data of type {x.dtype}: convert it to real numbers")
    values = np.ascontiguousarray(x, dtype=np.float64)
    return values if values.flags.writeable else values.copy()


def _column(x: NDArray[Any]) -> tuple[FloatArray, float, float]:
    """The data of one column, with minimum and maximum (both NaN when it holds a NaN)."""
    if x.ndim != 1:
        raise ValueError(_NOT_1D)
    if x.size == 0:
        raise ValueError("Data must not be empty.")
    if np.ma.is_masked(x):
        raise ValueError("Data must not be masked: leave the masked elements out with `.compressed()`.")
    column = _float64(x)
    return column, np.minimum.reduce(column), np.maximum.reduce(column)


def _scalar(lmbda: Any) -> float:
    """Lambda as a float; optimizers for several variables pass arrays of length one."""
    return float(lmbda.item() if isinstance(lmbda, np.ndarray) else lmbda)


def _reject_complex(x: NDArray[Any]) -> None:
    if x.dtype.kind == "c":
        raise ValueError("Yeo-Johnson transformation is not defined for complex numbers.")


# --- missing values -----------------------------------------------------------------------------------


def _check_nan_policy(nan_policy: str | None) -> None:
    if nan_policy not in ("propagate", "raise", "omit"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}.")


def _contains_nan(x: NDArray[Any], nan_policy: str | None) -> bool:
    """Whether there are NaN to be seen to; never where `nan_policy` is None: what follows refuses them then."""
    if nan_policy is None:
        return False
    _check_nan_policy(nan_policy)
    contains = x.dtype.kind == "f" and x.size > 0 and bool(np.isnan(np.max(x)))
    if contains and nan_policy == "raise":
        raise ValueError("The input contains nan values")
    return contains


def _without_nan(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x[~np.isnan(x)])


def _nan_of(x: NDArray[Any]) -> Any:
    """NaN of the type of the data."""
    return x.dtype.type(math.nan)


# --- optima -------------------------------------------------------------------------------------------


def _negative_llf(column: FloatArray, family: int) -> Callable[[Any], float]:
    """The function of lambda that maximum likelihood minimises."""

    def negative_llf(lmbda: Any) -> float:
        return float(column.size * nll_vector(column, family, np.array([_scalar(lmbda)]))[0])

    return negative_llf


def _maximum_likelihood(
    column: FloatArray, family: int, brack: Sequence[float] | None, optimizer: Callable[..., Any] | None
) -> np.float64:
    """The maximum-likelihood lambda, or what the user's optimizer makes of the likelihood."""
    if optimizer is not None:
        return _user_optimum(optimizer, _negative_llf(column, family))
    if brack is not None:
        _check_brack(brack, _negative_llf(column, family))
    fit = fit_vector(column, family)
    if fit.status != Status.OK:
        warnings.warn(Status(fit.status).sentence, stacklevel=3)
    return np.float64(fit.lmbda)


def _user_optimum(optimizer: Callable[..., Any], objective: Callable[[Any], float]) -> np.float64:
    if not callable(optimizer):
        raise ValueError("`optimizer` must be a callable")
    optimum = getattr(optimizer(objective), "x", None)
    if optimum is None:
        raise ValueError(
            "The `optimizer` argument of `boxcox_normmax` must return an object containing the optimal `lmbda` in "
            "attribute `x`."
        )
    return np.float64(_scalar(optimum))


def _check_brack(brack: Sequence[float], objective: Callable[[Any], float]) -> None:
    """The checks that `scipy.optimize.brent` makes before its search."""
    if len(brack) not in (2, 3):
        raise ValueError("Bracketing interval must be length 2 or 3 sequence.")
    values = [objective(float(lmbda)) for lmbda in brack]
    if len(brack) == 2:
        return
    requirement = "Bracketing values (xa, xb, xc) do not fulfill this requirement: "
    if not min(brack[0], brack[2]) < brack[1] < max(brack[0], brack[2]):
        raise ValueError(requirement + "(xa < xb) and (xb < xc)")
    if not values[1] < min(values[0], values[2]):
        raise ValueError(requirement + "(f(xb) < f(xa)) and (f(xb) < f(xc))")


def _best_correlation(
    column: FloatArray, brack: Sequence[float] | None, optimizer: Callable[..., Any] | None
) -> np.float64:
    """The lambda of the straightest normal probability plot."""
    logs = _centred_logs(np.sort(column))
    objective = _one_minus_correlation(logs)
    if optimizer is not None:
        return _user_optimum(optimizer, objective)
    if np.count_nonzero(np.diff(logs)) < 2:  # two distinct values lie on a straight line whatever lambda
        return np.float64(1.0)
    if brack is None:  # the exponents that change the shape of the data without collapsing it
        reach = 5.0 / (logs[-1] - logs[0])
        brack = (-reach, reach)
    return np.float64(optimize.brent(objective, brack=brack))


def _one_minus_correlation(logs: FloatArray) -> Callable[[Any], float]:
    """One minus the correlation of transformed data and normal order statistics, as a function of lambda.

    Correlation does not see location and scale, so exp(lambda ln x) is scaled to at most 1. For unit vectors u, v
    one minus their product is ``|u - v|^2/2``, which does not cancel.
    """
    expected = _unit(special.ndtri(_order_statistic_medians(logs.size)))

    def one_minus_correlation(lmbda: Any) -> float:
        exponent = _scalar(lmbda)
        from_extreme = logs - (logs[-1] if exponent > 0.0 else logs[0])
        y = np.expm1(exponent * from_extreme) / exponent if exponent else from_extreme
        gap = _unit(y) - expected
        return float(0.5 * (gap @ gap))

    return one_minus_correlation


def _unit(y: FloatArray) -> FloatArray:
    """`y` with mean 0 and length 1."""
    y = y / np.max(np.abs(y))
    y = y - y.mean()
    return np.asarray(y / math.sqrt(y @ y))


def _order_statistic_medians(n: int) -> FloatArray:
    """Filliben's (1975) medians of n uniform order statistics."""
    medians = np.empty(n)
    medians[:] = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    medians[-1] = 0.5 ** (1.0 / n)
    medians[0] = 1.0 - medians[-1]
    return medians


def _centred_logs(x: FloatArray) -> FloatArray:
    """``ln x - ln ref`` for sorted x, ref their median; without cancellation near ref (NUMERICS 2)."""
    ref = x[x.size // 2]
    logs = np.log(x) - math.log(ref)
    near = (0.5 * ref < x) & (x < 2.0 * ref)
    logs[near] = np.log1p((x[near] - ref) / ref)
    return np.asarray(logs)


def _likelihood_interval(column: FloatArray, lmbda: float, alpha: float) -> tuple[float, float]:
    """Where the log-likelihood lies chi2(1 - alpha, 1)/2 below its value at `lmbda`, be that the maximum or not."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError("`alpha` must be between 0 and 1.")
    if alpha == 0.0:
        return -math.inf, math.inf
    drop = 0.5 * float(special.chdtri(1, alpha)) / column.size
    return interval_vector(column, BOX_COX, lmbda, drop) if drop > 0.0 else (float(lmbda), float(lmbda))


# --- bounds on lambda ---------------------------------------------------------------------------------


def _range(family: int, low: float, high: float, ymax: float) -> tuple[float, float]:
    """The lambdas whose transforms of [`low`, `high`] stay within ``[-ymax, ymax]``."""
    lower, upper = np.empty((2, 1))
    lambda_ranges(family, np.array([low]), np.array([high]), ymax, lower, upper)
    return float(lower[0]), float(upper[0])


def _bounded(lmbda: np.float64, lambdas: tuple[float, float], consequence: str) -> np.float64:
    """`lmbda`, or the end of the interval next to it, with SciPy's warning."""
    lower, upper = lambdas
    if lower <= lmbda <= upper:
        return lmbda
    bound = np.float64(min(max(lmbda, lower), upper))
    if lower > upper or not math.isfinite(bound):
        raise ValueError("No lambda keeps the transformed data within `ymax`.")
    warnings.warn(
        f"The optimal lambda is {lmbda}, but the returned lambda is the constrained optimum to ensure that the "
        f"maximum or the minimum of the transformed data does not {consequence}",
        stacklevel=3,
    )
    return bound


# --- the log-likelihood along axes --------------------------------------------------------------------


def _log_likelihood(
    family: int,
    lmb: float,
    data: ArrayLike,
    axis: int | tuple[int, ...] | None,
    keepdims: bool,
    nan_policy: str,
) -> Any:
    """The log-likelihood of every slice of `data` along `axis`."""
    _check_nan_policy(nan_policy)
    data = np.atleast_1d(np.asanyarray(data))
    values = _float64(np.asarray(data))
    axes = _reduced_axes(axis, data.ndim)
    rows, shape = _rows(values, axes)
    ignored = _rows(np.ma.getmaskarray(data), axes)[0]
    missing = np.isnan(rows) & ~ignored
    if nan_policy == "raise" and missing.any():
        raise ValueError("The input contains nan values")
    if nan_policy == "omit":
        ignored = ignored | missing
    columns = [row[~out] for row, out in zip(rows, ignored, strict=True)] if ignored.any() else list(rows)
    _warn_of_empty(columns, rows.shape[1], nan_policy, several=bool(shape))
    each = [_column_llf(family, _scalar(lmb), column) for column in columns]
    llf = np.array(each, dtype=_float_dtype(data.dtype, lmb)).reshape(shape)
    return np.expand_dims(llf, axes) if keepdims else llf[()]


def _column_llf(family: int, lmb: float, column: FloatArray) -> float:
    """The log-likelihood of one column without its NaN."""
    if column.size == 0:
        return math.nan
    low, high = column.min(), column.max()
    floor = lowest(family)
    if not floor < low <= high < math.inf:
        return math.nan
    if low == high:
        return math.inf
    return -_negative_llf(column, family)(lmb)


def _rows(data: NDArray[Any], axes: tuple[int, ...]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """A matrix whose rows are the slices of `data` along `axes`, and the shape of the remaining axes."""
    last = np.moveaxis(data, axes, range(-len(axes), 0))
    shape = last.shape[: data.ndim - len(axes)]
    return np.ascontiguousarray(last.reshape(math.prod(shape), math.prod(last.shape[len(shape) :]))), shape


def _reduced_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """`axis` as a tuple of axes counted from 0."""
    if axis is None:
        return tuple(range(ndim))
    given = np.atleast_1d(axis)
    if given.dtype.kind not in "iuf" or np.any(given != np.floor(given)):
        raise AxisError("`axis` must be an integer, a tuple of integers, or `None`.")
    axes = tuple(int(one) % ndim for one in given)
    if np.any((given < -ndim) | (given >= ndim)):
        raise AxisError(f"`axis` is out of bounds for array of dimension {ndim}")
    if len(set(axes)) < len(axes):
        raise AxisError("`axis` must contain only distinct elements")
    return axes


def _warn_of_empty(columns: list[FloatArray], length: int, nan_policy: str, several: bool) -> None:
    """SciPy's warning when there is nothing to compute a log-likelihood from."""
    if all(column.size for column in columns):
        return
    omitted = nan_policy == "omit" and length > 0
    if several and not omitted and length > 0:
        return  # fully masked slices: SciPy says nothing
    if not several:
        subject, outcome = "one or more sample arguments is too small; ", "all returned values will be NaN. "
    elif omitted:
        subject = "one or more axis-slices of one or more sample arguments is too small; "
        outcome = "corresponding elements of returned arrays will be NaN. "
    else:
        subject = "all axis-slices of one or more sample arguments are too small; "
        outcome = "all elements of returned arrays will be NaN. "
    message = "After omitting NaNs, " + subject if omitted else subject[0].upper() + subject[1:]
    warnings.warn(
        message + outcome + "See documentation for sample size requirements.", _small_sample_warning(), stacklevel=4
    )


def _small_sample_warning() -> type[Warning]:
    """SciPy's category, a RuntimeWarning, so that filters for it work here; private there, hence the guard."""
    try:
        from scipy.stats._axis_nan_policy import SmallSampleWarning
    except ImportError:
        return RuntimeWarning
    return SmallSampleWarning  # type: ignore[no-any-return]
