"""Box-Cox functions of ``1 + x``, from `scipy.special`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._typing import FloatArray
from powerkern.kernels.transforms.elementwise import inv_yeojohnson_each, yeojohnson_each
from powerkern.stats._arrays import Elementwise, transform_like_input


def boxcox1p(x: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Transform ``1 + x`` by Box-Cox, accurately for small `x`.

    .. math:: \psi(\lambda, x) = ((1 + x)^\lambda - 1)/\lambda \quad (\lambda \ne 0), \qquad \psi(0, x) = \ln(1 + x)

    Parameters
    ----------
    x, lmbda : array_like of float
        Values and lambdas; they broadcast against each other.
    out : ndarray, optional
        Array for the result.

    Returns
    -------
    y : ndarray or float
        The transformed values. NaN where ``x < -1``; the limit (-inf or ``-1/lmbda``) where ``x == -1``.

    Raises
    ------
    TypeError
        If `x` is not real.

    See Also
    --------
    inv_boxcox1p, boxcox, yeojohnson

    Examples
    --------
    >>> from powerkern.stats import boxcox1p
    >>> boxcox1p([1e-20, 3.0], 0.5)
    array([1.e-20, 2.e+00])
    """
    return transform_like_input(_BOXCOX1P, x, lmbda, out)


def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, out: FloatArray | None = None) -> Any:
    r"""Invert `boxcox1p`.

    .. math:: \psi^{-1}(\lambda, y) = (1 + \lambda y)^{1/\lambda} - 1 \quad (\lambda \ne 0), \qquad
              \psi^{-1}(0, y) = e^y - 1

    Parameters
    ----------
    y, lmbda, out
        As in `inv_boxcox`; errors are also the same.

    Returns
    -------
    x : ndarray or float
        The original values; NaN where ``1 + lmbda y < 0``, outside the range of the transform.

    Examples
    --------
    >>> from powerkern.stats import inv_boxcox1p
    >>> inv_boxcox1p([1e-20, 2.0], 0.5)
    array([1.e-20, 3.e+00])
    """
    return transform_like_input(_INV_BOXCOX1P, y, lmbda, out)


def _boxcox1p_each(x: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """Transform ``1 + x`` by Box-Cox into `out`, with one lambda per element.

    The kernel of Yeo-Johnson computes this for x >= 0. For x < 0, ``1 + x = 1/(1 + u)`` with ``u = -x/(1 + x) > 0``, so
    the transform of x is minus the transform of u with -lambda.
    """
    low = x < 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(low, -x / (1.0 + x), x)
    u[x < -1.0] = np.nan
    yeojohnson_each(u, np.where(low, -lmbda, lmbda), out)
    np.negative(out, out=out, where=low)


def _inv_boxcox1p_each(y: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """Invert `_boxcox1p_each`: write the x that are transformed to `y` into `out`, with one lambda per element."""
    low = y < 0.0
    inv_yeojohnson_each(np.abs(y), np.where(low, -lmbda, lmbda), out)
    u = out[low]
    out[low] = np.where(u > 1.0, -1.0 / (1.0 + 1.0 / np.maximum(u, 1.0)), -u / (1.0 + np.minimum(u, 1.0)))


def _fix_lambda(each: Any) -> Any:
    """Return a kernel with a single lambda for all elements, given a kernel `each` with one lambda per element."""
    return lambda x, lmbda, out: each(x, np.full(x.size, lmbda), out)


_BOXCOX1P = Elementwise(_fix_lambda(_boxcox1p_each), _boxcox1p_each)
_INV_BOXCOX1P = Elementwise(_fix_lambda(_inv_boxcox1p_each), _inv_boxcox1p_each)
