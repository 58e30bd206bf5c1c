"""Transformed columns and their derivatives in lambda, for the joint likelihood of several columns ([1]_).

References
----------
.. [1] D. F. Andrews, R. Gnanadesikan and J. L. Warner, "Transformations of multivariate data", Biometrics 27, 1971,
   825-840.
"""

from __future__ import annotations

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import copy
from powerkern.kernels.likelihood.logs import prepare
from powerkern.kernels.likelihood.optimum import exponent_of
from powerkern.kernels.likelihood.score import nll_at, score_with_derivatives
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.likelihood.two_pass import centered_column

#: Statistics of a column: the negative log-likelihood g, and the mean log-Jacobian term J of the centered logs.
G, JACOBIAN = range(2)
#: Number of statistics.
N_STATISTICS = 2


@entry((ROWS, COLUMN, COLUMN, INTEGER, COLUMN, WORK, ROWS, ROWS, ROWS, ROWS))
def derivative_columns(
    columns: FloatArray,
    weight: FloatArray,
    root: FloatArray,
    family: int,
    lmbda: FloatArray,
    work: Work,
    y: FloatArray,
    y1: FloatArray,
    y2: FloatArray,
    statistics: FloatArray,
) -> None:
    """Write the transform psi of every column, with its first two derivatives in lambda, for a joint likelihood.

    Each of psi, psi' and psi'' is centered by its own mean, divided by the standard deviation of psi, and multiplied by
    `root`. They are computed from logs minus c, the log of a reference value in the data. So psi lacks a factor
    exp(c lambda), and the mean J in `statistics` lacks the term c. The joint score of column j is
    ``sum_k (R^-1)_jk mean(psi'_j psi_k) - J_j``, with the correlation matrix R of psi. Both terms lack the same c, so
    the omissions cancel.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, without NaN.
    weight : (n,)
        Weights of the values, none of them 0; empty if all are one.
    root : (n,)
        Square roots of the weights; empty if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        The lambda of each column.
    work : Work
        Scratch.
    y, y1, y2 : (p, n)
        Receive psi, psi' and psi''.
    statistics : (p, N_STATISTICS)
        Receives the negative log-likelihood g per observation, and the mean log-Jacobian term J.
    """
    for j in range(columns.shape[0]):
        column = prepare(columns[j], weight, family, work)
        centered = centered_column(column, work)
        logs = centered.logs
        mu = exponent_of(lmbda[j], column.sign) * logs.sigma
        at = score_with_derivatives(logs, mu, work.scratch, y[j], y1[j], y2[j])
        sign = -1.0 if column.sign < 0.0 else 1.0
        statistics[j, G] = nll_at(logs, mu, at, centered.log_reference)
        statistics[j, JACOBIAN] = sign * logs.jacobian * logs.sigma
        # for negative values psi = -b_(2 - lambda), so psi' = b' and psi'' = -b''
        _restore_order(column.x, sign, root, work.spare, y[j])
        _restore_order(column.x, logs.sigma, root, work.spare, y1[j])
        _restore_order(column.x, sign * logs.sigma * logs.sigma, root, work.spare, y2[j])


@kernel
def _restore_order(x: FloatArray, factor: float, root: FloatArray, spare: FloatArray, values: FloatArray) -> None:
    """Undo the reordering of values by `split_signs`, and multiply them by a factor and by `root`.

    Parameters
    ----------
    x : (n,)
        The column; the signs of its values determined the order.
    factor : float
        A factor for all values.
    root : (n,)
        A factor for each row; not applied if empty.
    spare : (n,)
        Scratch.
    values : (n,)
        The values to reorder, in place.
    """
    front, back = 0, x.size - 1
    copy(values, spare)
    for i in range(x.size):
        above = x[i] >= 0.0
        values[i] = factor * spare[front if above else back]
        front += above
        back -= not above
    for i in range(root.size):
        values[i] *= root[i]
