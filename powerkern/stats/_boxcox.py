"""Box-Cox functions of `scipy.stats` and `scipy.special`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.stats._arrays import (
    BOXCOX,
    INV_BOXCOX,
    NAN_POLICY,
    as_scalar,
    contains_nan,
    drop_nan,
    float_dtype,
    nan_like,
    read_column,
    read_data,
    transform_array,
    transform_like_input,
)
from powerkern.stats._likelihood import log_likelihood
from powerkern.stats._optima import (
    OVERFLOW,
    best_correlation,
    clip_lambda,
    lambda_range,
    likelihood_interval,
    maximum_likelihood,
)

_NOT_POSITIVE_FINITE = "The `x` argument of `boxcox_normmax` must contain only positive, finite, real numbers."

#: Largest number of characters of an argument that a message repeats.
_LONGEST = 80


def boxcox(
    x: ArrayLike,
    lmbda: ArrayLike | None = None,
    alpha: float | None = None,
    optimizer: Callable[..., Any] | None = None,
    *,
    nan_policy: str | None = NAN_POLICY,
) -> Any:
    r"""Transform `x` by Box-Cox, with a given lambda or with the maximum likelihood estimate.

    .. math:: \psi(\lambda, x) = (x^\lambda - 1)/\lambda \quad (\lambda \ne 0), \qquad \psi(0, x) = \ln x

    Parameters
    ----------
    x : array_like
        The data. To estimate lambda, they must be 1-D, positive, finite and not constant. With `lmbda`, they may have
        any shape; the result is NaN for ``x < 0``, and the limit (-inf or -1/lmbda) for ``x == 0``.
    lmbda : array_like of float, optional
        Lambda of the transform; it broadcasts against `x`. By default it is estimated.
    alpha : float, optional
        Also return the ``100 (1 - alpha)`` % likelihood interval of lambda. Ignored when `lmbda` is given.
    optimizer : callable, optional
        Function that takes the negative log-likelihood (a function of lambda) and returns an object whose attribute
        ``x`` is the minimiser. It is useful only to impose constraints, since lambda is exact without it. Ignored when
        `lmbda` is given.
    nan_policy : {"propagate", "omit", "raise"}, optional
        Treatment of NaN in `x`. "propagate" makes all results NaN. "omit" omits NaN from the fit and keeps it in the
        result. "raise" raises a ValueError. With `lmbda` given, NaN stays NaN except under "raise".

        The default is that of the installed SciPy: "propagate" since version 1.18. With earlier versions, NaN raises a
        ValueError if lambda is estimated.

    Returns
    -------
    y : ndarray; with `lmbda`, the type of `x`
        The transformed data. With `lmbda`, series, data frames, labelled and masked arrays keep their type, as with the
        ufuncs of `scipy.special`. An empty `x` is returned unchanged, without other results.
    maxlog : float
        The estimate of lambda. Only without `lmbda`.
    (min_ci, max_ci) : tuple of float
        The lambdas whose log-likelihood lies ``chi2(1 - alpha, 1)/2`` below its maximum. Only with `alpha`.

    Raises
    ------
    ValueError
        If `x` is not 1-D, is constant, or has values that are not positive and finite; if `alpha` is not in [0, 1]. See
        also `boxcox_normmax`.
    TypeError
        If `x` is not real.

    Warns
    -----
    UserWarning
        The transformed data would overflow at the optimum, so lambda was moved to a bound; see `boxcox_normmax`.

    See Also
    --------
    boxcox_normmax, boxcox_llf, inv_boxcox

    Notes
    -----
    For well-conditioned data, lambda is within 1e-12 of the exact maximiser. `scipy.stats.boxcox` stops at about 1e-8
    and returns a wrong lambda for tight clusters. The interval is computed for every `alpha`, while SciPy's search
    fails ("Could not find endpoint.") for intervals wider than 50.

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
    given, x = x, read_data(x)
    if lmbda is not None:
        contains_nan(x, nan_policy)  # raises under "raise"
        return transform_like_input(BOXCOX, given, lmbda)
    if x.size == 0 and x.ndim == 1:
        return np.asarray(x)
    column, low, high = read_column(x)
    if low == high:
        raise ValueError("Data must not be constant.")
    if not low > 0.0 and np.any(column <= 0.0):
        raise ValueError("Data must be positive.")
    if contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            nan = nan_like(x)
            y = transform_array(BOXCOX, x, nan)
            return (y, nan) if alpha is None else (y, nan, (nan, nan))
        column, low, high = read_column(drop_nan(column))
        if low == high:
            raise ValueError("Data must not be constant.")
    if not 0.0 < low <= high < math.inf:
        raise ValueError(_NOT_POSITIVE_FINITE)
    optimum = maximum_likelihood(column, BOX_COX, None, optimizer)
    largest, consequence = OVERFLOW[float_dtype(x.dtype)]
    maxlog = clip_lambda(optimum, lambda_range(BOX_COX, low, high, largest), consequence)
    y = transform_array(BOXCOX, x, maxlog)
    if alpha is None:
        return y, maxlog
    return y, maxlog, likelihood_interval(column, maxlog, as_scalar(alpha, "alpha"))


def boxcox_normmax(
    x: ArrayLike,
    brack: Sequence[float] | None = None,
    method: str = "pearsonr",
    optimizer: Callable[..., Any] | None = None,
    *,
    ymax: float | None = None,
    nan_policy: str | None = NAN_POLICY,
) -> Any:
    r"""Return the lambda that makes the Box-Cox transform of `x` most normal.

    Parameters
    ----------
    x : array_like
        The data: 1-D, positive, finite, not constant.
    brack : sequence of 2 or 3 floats, optional
        Initial points of the search with ``method="pearsonr"``. With "mle" they are checked as in SciPy, but not used,
        because the likelihood has a single maximum. They cannot be combined with `optimizer`.
    method : {"pearsonr", "mle", "all"}
        "pearsonr" maximises the correlation of the sorted transformed data with the medians of normal order statistics
        (the probability plot). "mle" maximises the log-likelihood `boxcox_llf`. "all" returns both lambdas.
    optimizer : callable, optional
        Function that takes the function of lambda to be minimised (one minus the correlation, or the negative
        log-likelihood) and returns an object whose attribute ``x`` is the minimiser.
    ymax : float, optional
        Bound on the magnitude of transformed data. The default is the largest number of the dtype of `x`, divided by
        10,000; infinity means no bound. It applies to every method, as in SciPy (whose documentation says otherwise).
    nan_policy : {"propagate", "omit", "raise"}, optional
        As in `boxcox`.

    Returns
    -------
    maxlog : float or ndarray
        The optimal lambda. For ``method="all"``, an array of the lambdas by correlation and by likelihood.

    Raises
    ------
    ValueError
        If `x` is not 1-D, is empty or constant, or has values that are not positive and finite; if `ymax` is not
        positive, or no lambda satisfies it; if `method` is unknown; if `optimizer` is not callable or its result has no
        attribute ``x``; if `brack` has a length other than 2 or 3, or does not bracket a minimum.
    TypeError
        If `x` is not real.

    Warns
    -----
    UserWarning
        The bound `ymax` is active, so lambda was moved to the bound. Since the log-likelihood is concave, this is the
        maximum within the bound.

    Notes
    -----
    With "mle" and well-conditioned data, lambda is within 1e-12 of the exact maximiser. The correlation is evaluated
    from scaled exponentials and cannot overflow. Its maximiser is accurate to about 1e-8; if there are several,
    `brack` determines which one is found. With fewer than three distinct values all lambdas have the same correlation,
    and the result is 1. The bound on lambda solves ``expm1(t)/t = ymax/|ln x|`` for ``t = lmbda ln x``. SciPy solves
    the same equation by the Lambert W function, which may overflow, and for ``ymax < |ln x|`` it returns 0 and exceeds
    `ymax`.

    References
    ----------
    Filliben (1975), The Probability Plot Correlation Coefficient Test for Normality, Technometrics 17, 111-117.
    Corless et al. (1996), On the Lambert W Function, Adv. Comput. Math. 5, 329-359.

    Examples
    --------
    >>> from powerkern.stats import boxcox_normmax
    >>> x = [0.7, 1.6, 2.3, 3.3, 5.8, 9.4, 20.1]
    >>> boxcox_normmax(x, method="all").round(6)
    array([-0.03479 , -0.031211])
    """
    x = read_data(x)
    if contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            return np.asarray([nan_like(x)] * 2) if method == "all" else nan_like(x)
        x = drop_nan(x)
    column, low, high = read_column(x)
    if not 0.0 < low <= high < math.inf:
        raise ValueError(_NOT_POSITIVE_FINITE)
    consequence = "exceed specified `ymax`."
    if ymax is None:
        ymax, consequence = OVERFLOW[float_dtype(x.dtype)]
    elif (ymax := as_scalar(ymax, "ymax")) <= 0:
        raise ValueError("`ymax` must be strictly positive")
    if optimizer is not None and brack is not None:
        raise ValueError("`brack` must be None if `optimizer` is given")
    if method not in ("pearsonr", "mle", "all"):
        raise ValueError(f"Method {str(method)[:_LONGEST]} not recognized.")
    if low == high:
        raise ValueError("Data must not be constant.")

    optima = []
    if method != "mle":
        optima.append(best_correlation(column, brack, optimizer))
    if method != "pearsonr":
        optima.append(maximum_likelihood(column, BOX_COX, brack, optimizer))
    lambdas = lambda_range(BOX_COX, low, high, ymax)
    for i, optimum in enumerate(optima):
        optima[i] = clip_lambda(optimum, lambdas, consequence)
    return np.array(optima) if method == "all" else optima[0]


def boxcox_llf(
    lmb: float,
    data: ArrayLike,
    *,
    axis: int | tuple[int, ...] | None = 0,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Any:
    r"""Return the log-likelihood of lambda under the Box-Cox model, maximised over location and scale.

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \ln x_i - \frac{n}{2} \ln \mathrm{Var}\, \psi(\lambda, x)

    with divisor n in the variance. The constant ``-n/2 (ln 2 pi + 1)`` is omitted, as in SciPy.

    Parameters
    ----------
    lmb : float
        The transformation parameter.
    data : array_like
        The data, of any shape. Masked elements are ignored.
    axis : int, tuple of int or None, default 0
        The axes along which each log-likelihood is computed; None means all axes.
    keepdims : bool, default False
        Keep the reduced axes, with length one.
    nan_policy : {"propagate", "omit", "raise"}
        Treatment of NaN in a slice: "propagate" makes its result NaN, "omit" ignores NaN, "raise" raises a ValueError.

    Returns
    -------
    llf : float or ndarray
        Log-likelihood of each slice. NaN if a value is not positive and finite; inf if all values are equal.

    Raises
    ------
    ValueError
        If `nan_policy` is unknown, or if it is "raise" and the data contain NaN.
    numpy.exceptions.AxisError
        If `axis` does not match `data`.
    TypeError
        If `data` is not real.

    Warns
    -----
    RuntimeWarning
        A slice is empty, or empty after NaN are omitted, so its result is NaN. The category is SciPy's
        SmallSampleWarning, if the installed version has it.

    Notes
    -----
    The evaluation neither overflows nor cancels: it is exact to rounding error even for tight clusters, where SciPy's
    log-sum-exp loses all digits.

    Examples
    --------
    >>> from powerkern.stats import boxcox_llf
    >>> round(float(boxcox_llf(-8, [198.0, 233.0, 233.0, 392.0])), 10)
    -17.9393420858
    """
    return log_likelihood(BOX_COX, lmb, data, axis, keepdims, nan_policy)


def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Invert the Box-Cox transform.

    .. math:: \psi^{-1}(\lambda, y) = (1 + \lambda y)^{1/\lambda} \quad (\lambda \ne 0), \qquad
              \psi^{-1}(0, y) = e^y

    Parameters
    ----------
    y, lmbda : array_like of float
        Transformed values and lambdas; they broadcast against each other.
    out : ndarray, optional
        Array for the result.

    Returns
    -------
    x : ndarray or float, or the type of `y`
        The original values; NaN where ``1 + lmbda y < 0``, outside the range of the transform.

    Raises
    ------
    TypeError
        If `y` is not real.

    Examples
    --------
    >>> from powerkern.stats import inv_boxcox
    >>> inv_boxcox([[0.0], [1.5]], [1.0, 2.0])
    array([[1. , 1. ],
           [2.5, 2. ]])
    """
    return transform_like_input(INV_BOXCOX, y, lmbda, out)
