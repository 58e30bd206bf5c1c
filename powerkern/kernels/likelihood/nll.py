"""The likelihoods as printed in the papers. Fits compute the same quantities by other formulas, for speed and range.

`boxcox_nll` and `yeojohnson_nll` use the transforms themselves. They overflow if a power does, and lose digits if the
values differ little from each other. Fits use `powerkern.kernels.likelihood.score` (any data),
`powerkern.kernels.likelihood.one_pass` (long columns) and `powerkern.kernels.likelihood.lockstep` (many short columns),
which do not have these problems. Tests compare each of them with the functions here.

References
----------
.. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.
.. [2] I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve normality or symmetry",
   Biometrika 87, 2000, 954-959.
"""

from __future__ import annotations

import math

import numpy.typing as npt

from powerkern._jit import READ_COLUMN, REAL, compiled_as, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.plain_arguments import as_real, as_vector
from powerkern.kernels.transforms.boxcox import boxcox
from powerkern.kernels.transforms.yeojohnson import yeojohnson


@kernel
def _boxcox_nll(x: FloatArray, lmbda: float) -> float:
    """Return the result of `boxcox_nll` without checking arguments, for jitted code."""
    n, mean, variance, jacobian = x.size, 0.0, 0.0, 0.0
    for i in range(n):
        mean += boxcox(x[i], lmbda) / n  # [1]_, eq. (1)
        jacobian += log(x[i]) / n
    for i in range(n):
        variance += (boxcox(x[i], lmbda) - mean) ** 2 / n
    # [1]_, eq. (8), divided by -n
    return 0.5 * log(variance) - (lmbda - 1.0) * jacobian if n > 0 else math.nan


@kernel
def _yeojohnson_nll(x: FloatArray, lmbda: float) -> float:
    """Return the result of `yeojohnson_nll` without checking arguments, for jitted code."""
    n, mean, variance, jacobian = x.size, 0.0, 0.0, 0.0
    for i in range(n):
        mean += yeojohnson(x[i], lmbda) / n  # [2]_, the definition of psi
        jacobian += math.copysign(log1p(abs(x[i])), x[i]) / n
    for i in range(n):
        variance += (yeojohnson(x[i], lmbda) - mean) ** 2 / n
    # [2]_, the log-likelihood at the best mean and variance, divided by -n and without constants
    return 0.5 * log(variance) - (lmbda - 1.0) * jacobian if n > 0 else math.nan


@entry((READ_COLUMN, REAL))
def _boxcox_entry(x: FloatArray, lmbda: float) -> float:
    return _boxcox_nll(x, lmbda)


@entry((READ_COLUMN, REAL))
def _yeojohnson_entry(x: FloatArray, lmbda: float) -> float:
    return _yeojohnson_nll(x, lmbda)


@compiled_as(_boxcox_nll)
def boxcox_nll(x: npt.ArrayLike, lmbda: float) -> float:
    r"""Return the negative profile log-likelihood of lambda in Box and Cox's model, per observation.

    .. math:: \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline{\ln x},
              \qquad \psi_\lambda(x) = (x^\lambda - 1)/\lambda

    That is minus [1]_, eq. (8), divided by n. The constant ``(1 + ln(2 pi))/2`` is left out.

    Parameters
    ----------
    x : array_like, shape (n,)
        Positive values.
    lmbda : float
        The power.

    Returns
    -------
    float
        NaN if there are no values, or if a value is NaN or negative; -inf if all values are equal.

    Raises
    ------
    ValueError
        If x is not a vector.

    See Also
    --------
    yeojohnson_nll : for values of any sign.
    powerkern.PowerFit.profile : the same quantity from a fit, for data of any size and range.

    Notes
    -----
    This is the formula of the paper, with the variance computed in two passes. The result is inaccurate if the
    transformed values differ by little more than their rounding errors. Jitted code must pass a contiguous float64
    vector, which is not checked.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> from powerkern.kernels import boxcox_nll
    >>> round(boxcox_nll([1.0, 2.0, 4.0, 8.0], 0.0), 12)
    0.784779625915
    """
    return float(_boxcox_entry(as_vector("x", x), as_real("lmbda", lmbda)))


@compiled_as(_yeojohnson_nll)
def yeojohnson_nll(x: npt.ArrayLike, lmbda: float) -> float:
    r"""Return the negative profile log-likelihood of lambda in Yeo and Johnson's model, per observation.

    .. math:: \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x)
              - (\lambda - 1)\, \overline{\operatorname{sign}(x) \ln(1 + |x|)}

    with their transform :math:`\psi_\lambda` [1]_. The constant ``(1 + ln(2 pi))/2`` is left out.

    Parameters
    ----------
    x : array_like, shape (n,)
        The values.
    lmbda : float
        The power.

    Returns
    -------
    float
        NaN if there are no values, or if a value is NaN; -inf if all values are equal.

    Raises
    ------
    ValueError
        If x is not a vector.

    See Also
    --------
    boxcox_nll : for positive values.
    powerkern.PowerFit.profile : the same quantity from a fit, for data of any size and range.

    Notes
    -----
    As for `boxcox_nll`.

    References
    ----------
    .. [1] I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve normality or symmetry",
       Biometrika 87, 2000, 954-959.

    Examples
    --------
    >>> from powerkern.kernels import yeojohnson_nll
    >>> round(yeojohnson_nll([-2.0, 0.0, 1.0], 1.0), 12)
    0.22091637614
    """
    return float(_yeojohnson_entry(as_vector("x", x), as_real("lmbda", lmbda)))
