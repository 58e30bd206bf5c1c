"""Maximum likelihood of one column: from raw values to lambda and the constants that standardise with it.

How a column is fitted (`fit_columns`), unless it is one of many short ones (`powerkern.kernels.likelihood.lockstep`):

1. `kernels.likelihood.one_pass` finds the optimum by Halley steps on the sums of one pass: on a sample in float32;
   one step on all values in float32, while their logs are taken; the last step in float64. Absent values are squeezed
   out first if they are many in the sample; all values are scanned chunk by chunk, while their logs are taken.
2. Columns that are short, tightly clustered, of enormous range, of whose weight a few values carry nearly all, or
   whose sums lose digits go to `powerkern.kernels.likelihood.two_pass`, which holds for any data.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.interval import interval_of
from powerkern.kernels.likelihood.logs import prepare
from powerkern.kernels.likelihood.one_pass import ONE_PASS_MIN, one_pass_optimum
from powerkern.kernels.likelihood.optimum import exponent_of, write_fit
from powerkern.kernels.likelihood.scratch import WORK, Work
from powerkern.kernels.likelihood.two_pass import centered_column, profile_of, two_pass_optimum
from powerkern.kernels.results import DEFERRED, N_EVAL, STATUS, write_identity, write_range
from powerkern.kernels.status_codes import NOT_CERTIFIED, OK, ROUTE_ONE_PASS, ROUTE_TWO_PASS


@kernel
def one_pass_column(
    x: FloatArray, weight: FloatArray | None, family: int, lmbda: float, work: Work, row: FloatArray
) -> None:
    """Fit one column from the sums of one pass; write evaluations only if the result cannot be certified.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    weight : (n,) or None
        Weights of the values; None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN: search.
    work : Work
        Scratch.
    row : (N_RESULTS,)
        Receives the results.
    """
    best, column = one_pass_optimum(x, weight, family, lmbda, work)
    row[N_EVAL] = best.n_eval
    if best.status == NOT_CERTIFIED:
        return
    write_range(row, column.found.weight, column.found.low, column.found.high)
    write_fit(row, best, column.sign, ROUTE_ONE_PASS, lmbda)


@kernel
def two_pass_column(x: FloatArray, weight: FloatArray, family: int, lmbda: float, work: Work, row: FloatArray) -> None:
    """Fit any column; the row has the number of evaluations made before.

    Parameters
    ----------
    x : (n,)
        The values, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : float
        The lambda at which to evaluate; NaN: search.
    work : Work
        Scratch.
    row : (N_RESULTS,)
        Has the number of evaluations made so far; receives the results.
    """
    column, n_eval = prepare(x, weight, family, work), int(row[N_EVAL])
    write_range(row, column.found.weight, column.found.low, column.found.high)
    if column.status != OK:
        write_identity(row, column.status)
        return
    exponent = exponent_of(lmbda, column.sign)
    best = two_pass_optimum(centered_column(column, work), exponent, n_eval, work.scratch)
    write_fit(row, best, column.sign, ROUTE_TWO_PASS, lmbda)


def fit_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit the rows of `columns`, each one column of the user's matrix made contiguous, one by one.

    By several entries: most data need only one, and the others are not compiled.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        Lambdas at which to evaluate; NaN: search.
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
    """Fit the rows of `columns` that one pass can fit; leave the status DEFERRED in the others.

    Parameters
    ----------
    columns, family, lmbda, work, out
        As in `fit_columns`.
    none : (0,)
        In the place of the weights, so that all entries have the same signature.
    """
    for j in range(columns.shape[0]):
        one_pass_column(columns[j], None, family, lmbda[j], work, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def weighted_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit as `one_pass_columns` does, with a weight for each value of a row.

    Parameters
    ----------
    columns, family, lmbda, work, out
        As in `fit_columns`.
    weight : (n,)
        Weights of the values.
    """
    for j in range(columns.shape[0]):
        one_pass_column(columns[j], weight, family, lmbda[j], work, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def two_pass_columns(
    columns: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: Work, out: FloatArray
) -> None:
    """Fit the rows of `columns` whose status is DEFERRED.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        Lambdas at which to evaluate; NaN: search.
    work : Work
        Scratch.
    out : (p, N_RESULTS)
        Has the statuses; receives the results.
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
    """Evaluate g of the rows of `columns` at all `lmbdas`; NaN for a column that cannot be fitted.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbdas : (k,)
        Where to evaluate.
    work : Work
        Scratch.
    out : (p, k)
        Receives g.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        column = prepare(columns[j], weight, family, work)
        if column.status == OK:
            profile_of(centered_column(column, work), column.sign, lmbdas, work.scratch, out[j])


@entry((ROWS, COLUMN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, weight: FloatArray, family: int, at: FloatArray, work: Work, out: FloatArray
) -> None:
    """Find the lambdas at which g of each row exceeds g(at[:, 0]) by at[:, 1]; NaN as in `profile_columns`.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, NaN missing.
    weight : (n,)
        Weights of the values; empty or None: all one.
    family : int
        BOX_COX or YEO_JOHNSON.
    at : (p, 2)
        The best lambda of each column, and the drop.
    work : Work
        Scratch.
    out : (p, 2)
        Receives the lower and the upper end.
    """
    out[:] = math.nan
    for j in range(columns.shape[0]):
        column = prepare(columns[j], weight, family, work)
        if column.status == OK:
            interval_of(centered_column(column, work), column.sign, at[j, 0], at[j, 1], work.scratch, out[j])
