"""Yeo-Johnson functions of `scipy.stats`, and the inverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import YEO_JOHNSON
from powerkern.stats._arrays import (
    INV_YEOJOHNSON,
    NAN_POLICY,
    YEOJOHNSON,
    as_scalar,
    contains_nan,
    drop_nan,
    float_dtype,
    nan_like,
    read_column,
    read_data,
    reject_complex,
    transform_array,
    transform_like_input,
)
from powerkern.stats._likelihood import log_likelihood
from powerkern.stats._optima import OVERFLOW, SAFETY, clip_lambda, lambda_range, maximum_likelihood


def yeojohnson(x: ArrayLike, lmbda: ArrayLike | None = None, *, nan_policy: str | None = NAN_POLICY) -> Any:
    r"""Transform `x` by Yeo-Johnson, with a given lambda or with the maximum likelihood estimate.

    .. math:: \psi(\lambda, x) = \frac{(1 + x)^\lambda - 1}{\lambda} \quad (x \ge 0), \qquad
              \psi(\lambda, x) = -\frac{(1 - x)^{2 - \lambda} - 1}{2 - \lambda} \quad (x < 0)

    and the limits ``ln(1 + x)`` for ``lmbda = 0``, ``-ln(1 - x)`` for ``lmbda = 2``.

    Parameters
    ----------
    x : array_like
        The data. To estimate lambda, they must be 1-D and finite. With `lmbda`, they may have any shape; NaN stays NaN.
    lmbda : array_like of float, optional
        Lambda of the transform; it broadcasts against `x`. By default it is estimated.
    nan_policy : {"propagate", "omit", "raise"}, optional
        As in `boxcox`.

    Returns
    -------
    y : ndarray; with `lmbda`, the type of `x`
        The transformed data; see `boxcox`. An empty `x` is returned unchanged, without other results.
    maxlog : float
        The estimate of lambda by `yeojohnson_normmax`. Only without `lmbda`.

    Raises
    ------
    ValueError
        If `x` is complex, or if lambda is estimated and `x` is not 1-D or not finite.
    TypeError
        If `x` is not numeric.

    See Also
    --------
    yeojohnson_normmax, yeojohnson_llf, inv_yeojohnson

    Notes
    -----
    The likelihood of constant data has no maximum. Lambda is then 1, and `y` equals `x`. (SciPy does this for zeros
    only; for other constants it returns the point at which its search stops.)

    References
    ----------
    Yeo and Johnson (2000), A New Family of Power Transformations to Improve Normality or Symmetry, Biometrika 87,
    954-959, equations 2.1 and 3.1.

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
    given, x = x, read_data(x)
    if x.size == 0:
        return np.asarray(x)
    reject_complex(x)
    if lmbda is not None:
        contains_nan(x, nan_policy)  # raises under "raise"
        return transform_like_input(YEOJOHNSON, given, lmbda)
    maxlog = yeojohnson_normmax(x, nan_policy=nan_policy)
    return transform_array(YEOJOHNSON, x, maxlog), maxlog


def yeojohnson_normmax(
    x: ArrayLike,
    brack: Sequence[float] | None = None,
    *,
    ymax: float | None = None,
    nan_policy: str | None = NAN_POLICY,
) -> Any:
    r"""Return the maximum likelihood lambda of the Yeo-Johnson transform.

    Parameters
    ----------
    x : array_like
        The data: 1-D and finite.
    brack : sequence of 2 or 3 floats, optional
        Initial points, which are checked but not used, because the likelihood has a single maximum. If they are given,
        lambda is not bounded, as in SciPy.
    ymax : float, optional
        Bound on the magnitude of transformed data (not a parameter in SciPy). The default is the square root of the
        largest number of the dtype of `x`, divided by 10,000, so that the variance of the transformed data does not
        overflow either. Infinity means no bound.
    nan_policy : {"propagate", "omit", "raise"}, optional
        As in `boxcox`.

    Returns
    -------
    maxlog : float
        The optimal lambda; 1 for empty or constant data.

    Raises
    ------
    ValueError
        If `x` is complex, not 1-D or not finite; if `brack` has a length other than 2 or 3, or does not bracket a
        minimum; if `ymax` is not positive, or no lambda satisfies it.
    TypeError
        If `x` is not numeric.

    Warns
    -----
    UserWarning
        The given `ymax` is active. For the default bound there is no warning, as in SciPy.

    Notes
    -----
    For well-conditioned data, lambda is within 1e-12 of the exact maximiser. SciPy's bound on lambda is much tighter,
    as though the data were 20 times larger, and SciPy returns it without a warning: -110 instead of -14,427 for one 1
    among 9,999 zeros. With `brack`, SciPy fails with BracketError, or returns an arbitrary point if the likelihood
    overflows.

    Examples
    --------
    >>> from powerkern.stats import yeojohnson_normmax
    >>> round(float(yeojohnson_normmax([-1.2, 0.0, 0.4, 1.3, 3.0, 8.1])), 6)
    0.31308
    """
    x = read_data(x)
    reject_complex(x)
    if contains_nan(x, nan_policy):
        if nan_policy == "propagate":
            return nan_like(x)
        x = drop_nan(x)
    if x.size == 0:
        return np.float64(1.0)
    column, low, high = read_column(x)
    if not -math.inf < low <= high < math.inf:
        raise ValueError("Yeo-Johnson input must be finite.")
    if ymax is not None and (ymax := as_scalar(ymax, "ymax")) <= 0:
        raise ValueError("`ymax` must be strictly positive")
    if low == high:
        return np.float64(1.0)
    optimum = maximum_likelihood(column, YEO_JOHNSON, brack, None)
    if ymax is not None:
        return clip_lambda(optimum, lambda_range(YEO_JOHNSON, low, high, ymax), "exceed specified `ymax`.")
    if brack is not None:
        return optimum
    overflow, _ = OVERFLOW[float_dtype(x.dtype)]
    for magnitude in (math.sqrt(overflow / SAFETY), overflow):
        lower, upper = lambda_range(YEO_JOHNSON, low, high, magnitude)
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
    r"""Return the log-likelihood of lambda under the Yeo-Johnson model, maximised over location and scale.

    .. math:: \ell(\lambda) = (\lambda - 1) \sum_i \mathrm{sign}(x_i) \ln(1 + |x_i|)
              - \frac{n}{2} \ln \mathrm{Var}\, \psi(\lambda, x)

    with divisor n in the variance. The constant ``-n/2 (ln 2 pi + 1)`` is omitted, as in SciPy.

    Parameters
    ----------
    lmb, data, axis, nan_policy, keepdims
        As for `boxcox_llf`; errors and warnings are also the same.

    Returns
    -------
    llf : float or ndarray
        Log-likelihood of each slice. NaN if a value is not finite; inf if all values are equal.

    Notes
    -----
    The evaluation neither overflows nor cancels, for any finite `lmb`.

    Examples
    --------
    >>> from powerkern.stats import yeojohnson_llf
    >>> round(float(yeojohnson_llf(0.5, [-1.2, 0.0, 0.4, 1.3, 3.0, 8.1])), 6)
    -5.266188
    """
    return log_likelihood(YEO_JOHNSON, lmb, data, axis, keepdims, nan_policy)


def inv_yeojohnson(y: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Invert the Yeo-Johnson transform.

    .. math:: \psi^{-1}(\lambda, y) = (1 + \lambda y)^{1/\lambda} - 1 \quad (y \ge 0), \qquad
              \psi^{-1}(\lambda, y) = 1 - (1 - (2 - \lambda) y)^{1/(2 - \lambda)} \quad (y < 0)

    and the limits ``expm1(y)`` for ``lmbda = 0``, ``-expm1(-y)`` for ``lmbda = 2``.

    Parameters
    ----------
    y, lmbda, out
        As in `inv_boxcox`; errors are also the same.

    Returns
    -------
    x : ndarray or float, or the type of `y`
        The original values. NaN where `y` is outside the range of the transform: ``1 + lmbda y < 0`` for ``y >= 0``,
        ``1 - (2 - lmbda) y < 0`` for ``y < 0``.

    Examples
    --------
    >>> from powerkern.stats import inv_yeojohnson
    >>> inv_yeojohnson([[-1.0], [1.5]], [1.0, 2.0])
    array([[-1.        , -1.71828183],
           [ 1.5       ,  1.        ]])
    """
    return transform_like_input(INV_YEOJOHNSON, y, lmbda, out)
