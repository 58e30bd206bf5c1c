"""Maximum likelihood of one column: from the values to lambda and the constants of the standardised transform.

`fit_columns` fits a column as follows, unless it is one of many short ones (`powerkern.kernels.likelihood.lockstep`):

1. `kernels.likelihood.one_pass` takes Halley steps on raw sums. The first steps use float32 sums over a sample. The
   next step uses float32 sums over all values, formed chunk by chunk in the loop that computes the logs. The last step
   uses float64 sums. If many values of the sample are absent, absent values are removed from the column first.
2. `powerkern.kernels.likelihood.two_pass`, which handles any data, fits the columns that remain: columns that are
   short, tightly clustered or of enormous range, columns in which a few values carry nearly all the weight, and columns
   whose sums lose digits.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.interval import write_interval
from powerkern.kernels.likelihood.logs import prepare
from powerkern.kernels.likelihood.one_pass import ONE_PASS_MIN, one_pass_optimum
from powerkern.kernels.likelihood.optimum import exponent_of, write_fit
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.likelihood.two_pass import centered_column, two_pass_optimum, write_profile
from powerkern.kernels.results import DEFERRED, N_EVAL, STATUS, write_identity, write_range
from powerkern.kernels.status_codes import NOT_CERTIFIED, OK, ROUTE_ONE_PASS, ROUTE_TWO_PASS


@kernel
def one_pass_column(
    x: FloatArray, weight: FloatArray | None, family: int, lmbda: float, work: Work, row: FloatArray
) -> None:
    """Fit one column from raw sums; if the result cannot be certified, write only the number of evaluations.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,) or None
        Weights of the values; None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    work : Work
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    """
    best, column = one_pass_optimum(x, weight, family, lmbda, work)
    row[N_EVAL] = best.n_eval
    if best.status == NOT_CERTIFIED:
        return
    write_range(row, column.summary.weight, column.summary.low, column.summary.high)
    write_fit(row, best, column.sign, ROUTE_ONE_PASS, lmbda)


@kernel
def two_pass_column(x: FloatArray, weight: FloatArray, family: int, lmbda: float, work: Work, row: FloatArray) -> None:
    """Fit one column, whatever its data, from moments computed in two passes.

    Parameters
    ----------
    x : (n,)
        The values; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN to search for the optimum.
    work : Work
        Scratch.
    row : (N_RESULTS,)
        Receives the results; on entry, N_EVAL holds the number of evaluations made so far.
    """
    column, n_eval = prepare(x, weight, family, work), int(row[N_EVAL])
    write_range(row, column.summary.weight, column.summary.low, column.summary.high)
    if column.status != OK:
        write_identity(row, column.status)
        return
    exponent = exponent_of(lmbda, column.sign)
    best = two_pass_optimum(centered_column(column, work), exponent, n_eval, work.scratch)
    write_fit(row, best, column.sign, ROUTE_TWO_PASS, lmbda)


def fit_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit columns, stored as rows, one by one.

    The work is divided among several entries. Most data need only one of them, and an entry that is not needed is not
    compiled.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        The lambda at which to evaluate each column; NaN to search for the optimum.
    work : Work
        Scratch.
    out : (p, N_RESULTS)
        Receives the results.
    """
    out[:, STATUS], out[:, N_EVAL] = DEFERRED, 0.0
    if columns.shape[1] >= ONE_PASS_MIN:
        fit = weighted_columns if weight.size else one_pass_columns
        fit(columns, weight, family, lmbda, work, out)
    if (out[:, STATUS] == DEFERRED).any():
        two_pass_columns(columns, weight, family, lmbda, work, out)


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def one_pass_columns(
    columns: FloatArray, none: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit the columns for which raw sums are accurate enough; the others keep the status DEFERRED.

    Parameters
    ----------
    columns, family, lmbda, work, out
        As for `fit_columns`.
    none : (0,)
        An empty array in place of the weights, so that all entries have the same signature.
    """
    for j in range(columns.shape[0]):
        one_pass_column(columns[j], None, family, lmbda[j], work, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def weighted_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit like `one_pass_columns`, but with a weight for each row of the data.

    Parameters
    ----------
    columns, family, lmbda, work, out
        As for `fit_columns`.
    weight : (n,)
        Weights of the values.
    """
    for j in range(columns.shape[0]):
        one_pass_column(columns[j], weight, family, lmbda[j], work, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def two_pass_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit those columns whose status in `out` is DEFERRED, from moments computed in two passes.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        The lambda at which to evaluate each column; NaN to search for the optimum.
    work : Work
        Scratch.
    out : (p, N_RESULTS)
        Receives the results; on entry, STATUS selects the columns to fit.
    """
    for j in range(columns.shape[0]):
        if out[j, STATUS] == DEFERRED:
            two_pass_column(columns[j], weight, family, lmbda[j], work, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def profile_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbdas: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Evaluate the negative log-likelihood g of each column at all `lmbdas`; a column that cannot be fitted gets NaN.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbdas : (k,)
        The lambdas.
    work : Work
        Scratch.
    out : (p, k)
        Receives g, per observation.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        column = prepare(columns[j], weight, family, work)
        if column.status == OK:
            write_profile(centered_column(column, work), column.sign, lmbdas, work.scratch, out[j])


@entry((ROWS, COLUMN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, weight: FloatArray, family: int, at: FloatArray, work: Work, out: FloatArray
) -> None:
    """Find, for each column, the two lambdas at which the negative log-likelihood exceeds its minimum by a given drop.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows; NaN if missing.
    weight : (n,)
        Weights of the values; empty or None if all are one.
    family : int
        BOX_COX or YEO_JOHNSON.
    at : (p, 2)
        For each column, the lambda that minimises the negative log-likelihood, and the drop, per observation.
    work : Work
        Scratch.
    out : (p, 2)
        Receives the lower and the upper end of each interval; NaN for a column that cannot be fitted.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        column = prepare(columns[j], weight, family, work)
        if column.status == OK:
            write_interval(centered_column(column, work), column.sign, at[j, 0], at[j, 1], work.scratch, out[j])
