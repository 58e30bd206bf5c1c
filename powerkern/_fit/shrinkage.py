"""Empirical Bayes estimates of the lambdas of groups, which shrink them towards the lambda of all rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._results.column_table import ColumnTable
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import LMBDA0, N_EVAL, STATUS

#: Tolerances of the variance between groups: full precision, with the smallest rtol that `brentq` accepts.
_SMALLEST, _RTOL = np.finfo(np.float64).tiny, 4.0 * np.finfo(np.float64).eps
#: Limit on iterations. At worst Brent's method bisects, some 1,000 times down to the smallest float64.
_MAX_ITER = 5000


def shrink_lambdas(columns: ColumnTable, pooled: ColumnTable, at: Callable[[FloatArray], ColumnTable]) -> ColumnTable:
    """Shrink the lambdas of the groups towards the pooled lambdas; return the results at the shrunk lambdas.

    If the lambdas of groups are normal about the pooled lambda_0 with variance ``tau^2``, and the likelihood of a group
    has its maximum at lambda_g with curvature ``1/s_g^2``, the posterior mean is ``(w lambda_g + v lambda_0)/(w + v)``
    with ``w = 1/s_g^2`` and ``v = 1/tau^2``. `between` estimates tau^2.

    Parameters
    ----------
    columns : ColumnTable
        The results of each column of each group, group by group.
    pooled : ColumnTable
        The results of each column for all rows.
    at : function
        Takes lambdas, (G, p); returns the results at these lambdas.
    """
    p = len(pooled)
    lmbda, information = columns.lmbda.reshape(-1, p).copy(), columns.information.reshape(-1, p)
    moves = (columns.status == Status.OK).reshape(-1, p) & (information > 0.0)
    for j in range(p):
        some = moves[:, j]
        variance = between(lmbda[some, j], 1.0 / information[some, j], pooled.lmbda[j])
        weight = variance * information[some, j]
        lmbda[some, j] = pooled.lmbda[j] + (lmbda[some, j] - pooled.lmbda[j]) * (weight / (1.0 + weight))
    rows = at(lmbda).kernel_rows.copy()
    kept = ~moves.ravel()
    rows[:, LMBDA0] = columns.lmbda
    rows[:, N_EVAL] += columns.n_iter
    rows[rows[:, STATUS] == Status.FIXED, STATUS] = Status.SHRUNK
    rows[kept] = columns.kernel_rows[kept]
    return ColumnTable(rows, columns.family_codes)


def between(estimates: FloatArray, variances: FloatArray, center: float) -> float:
    """Estimate the variance of the true values of groups about a known center, in excess of the estimation variances.

    The estimate is the root tau^2 of ``sum (x_g - c)^2/(s_g^2 + tau^2) = G`` [1], where G is the number of groups, or 0
    if the left side is below G at 0. It is consistent for any distribution of the groups.

    Parameters
    ----------
    estimates, variances : (G,) ndarray
        The estimate of each group, x_g, and its variance, s_g^2.
    center : float
        The center c.

    References
    ----------
    .. [1] R. C. Paule, J. Mandel (1982), "Consensus values and weighting factors", Journal of Research of the National
       Bureau of Standards 87(5), 377-385, eq. (6); with the center known, G takes the place of G - 1.
    """
    squares = (estimates - center) ** 2

    def excess(tau2: float) -> float:
        return float(np.sum(squares / (variances + tau2)) - estimates.size)

    if not estimates.size or excess(0.0) <= 0.0:
        return 0.0
    from scipy.optimize import brentq  # here: slow to import

    return float(brentq(excess, 0.0, float(squares.sum()), xtol=_SMALLEST, rtol=_RTOL, maxiter=_MAX_ITER))
