"""Maximum likelihood of one column: from raw values to lambda and the constants that standardise with it.

How a column is fitted (`fit_column`):

1. `powerkern.kernels.one_pass` finds the optimum by Halley steps on the sums of one pass: on a sample in float32;
   one step on all values in float32, while their logs are taken; the last step in float64. It stops at a value for
   which that will not do.
2. Then `powerkern.kernels.logs` counts NaN, negative values and the extremes in one integer pass, squeezes NaN out, and
   step 1 is tried again.
3. Columns that are short, tightly clustered, of enormous range, of whose weight a few values carry nearly all, or
   whose sums lose digits go to `powerkern.kernels.two_pass`, which holds for any data.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, borrowed, entry, float_of, kernel
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.interval import interval_of
from powerkern.kernels.logs import prepare, total_weight, unscanned
from powerkern.kernels.one_pass import one_pass_optimum, weights_of
from powerkern.kernels.results import LMBDA, LMBDA0, N_EVAL, STATUS, write_fit, write_identity, write_range
from powerkern.kernels.scratch import WORK, Work, borrowed_work
from powerkern.kernels.two_pass import centered_column, profile_of, two_pass_optimum

_OK, _FIXED, _NOT_CERTIFIED = int(Status.OK), int(Status.FIXED), int(Status.NOT_CERTIFIED)
_ONE_PASS, _TWO_PASS = int(Route.ONE_PASS), int(Route.TWO_PASS)


@kernel
def fit_column(
    x: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: float,
    work: Work,
    row: FloatArray,
    weighted: bool | None = None,
) -> None:
    """Fit one column into `row`; `weight` may be empty (all one) and `lmbda` NaN (to be found).

    The sums of one pass are compiled without weights, or with them where `weighted` is True, by its type. Weights that
    they are not compiled for are not lost: the column is fitted in two passes.
    """
    try_one_pass = (weight.size == 0) == (weighted is None)
    column = unscanned(x, weight, family)
    weights = weights_of(column, weighted)
    known, n_eval = not (try_one_pass and weights.smallest > 0.0), 0
    while True:  # one call of one_pass_optimum, not two, which would double the compiled code
        if known:
            column = prepare(x, weight, family, work)
            weights = weights_of(column, weighted)
        exponent = lmbda if column.sign >= 0.0 else 2.0 - lmbda
        if try_one_pass and column.status == _OK:
            quick = one_pass_optimum(column, weights, known, exponent, work)
            n_eval += quick.optimum.n_eval
            if quick.optimum.status != _NOT_CERTIFIED:
                write_range(row, quick.n_obs, quick.x_min, quick.x_max)
                write_fit(row, quick.optimum, column.sign, _ONE_PASS)
                _keep_given(row, lmbda)
                row[N_EVAL] = n_eval
                return
            try_one_pass = quick.stopped
        if known:
            break
        known = True
    found = column.found
    low, high, negative_high = float_of(found.low), float_of(found.high), float_of(found.negative_high)
    x_min = low if column.sign > 0.0 else -negative_high
    x_max = -low if column.sign < 0.0 else high
    write_range(row, float(column.x.size) if weight.size == 0 else total_weight(column.weight), x_min, x_max)
    if column.status != _OK:
        write_identity(row, column.status)
        return
    best = two_pass_optimum(centered_column(column, work), exponent, n_eval, work.scratch)
    write_fit(row, best, column.sign, _TWO_PASS)
    _keep_given(row, lmbda)


@kernel
def _keep_given(row: FloatArray, lmbda: float) -> None:
    """A given lambda without the rounding of 2 - (2 - lambda)."""
    if lmbda == lmbda and row[STATUS] == _FIXED:
        row[LMBDA] = row[LMBDA0] = lmbda


@kernel
def profile_column(
    x: FloatArray, weight: FloatArray, family: int, lmbdas: FloatArray, work: Work, out: FloatArray
) -> None:
    """out = g(lambda) for every lambda; NaN for a column that cannot be fitted."""
    column = prepare(x, weight, family, work)
    out[:] = math.nan
    if column.status != _OK:
        return
    profile_of(centered_column(column, work), column.sign, lmbdas, work.scratch, out)


@kernel
def interval_column(
    x: FloatArray, weight: FloatArray, family: int, lmbda: float, drop: float, work: Work, out: FloatArray
) -> None:
    """The two lambdas at which g exceeds g(lmbda) by `drop`; NaN for a column that cannot be fitted."""
    column = prepare(x, weight, family, work)
    out[:] = math.nan
    if column.status != _OK:
        return
    interval_of(centered_column(column, work), column.sign, lmbda, drop, work.scratch, out)


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def fit_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Fit the rows of `columns`, each one column of the user's matrix made contiguous.

    For columns without weights; with weights `fit_weighted_columns` is faster.
    """
    each, columns, weight, out = borrowed_work(work), borrowed(columns), borrowed(weight), borrowed(out)
    for j in range(columns.shape[0]):
        fit_column(columns[j], weight, family, lmbda[j], each, out[j])


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def fit_weighted_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Fit the rows of `columns` with a weight for each value of a row: an entry of its own, compiled where used."""
    each, columns, weight, out = borrowed_work(work), borrowed(columns), borrowed(weight), borrowed(out)
    for j in range(columns.shape[0]):
        fit_column(columns[j], weight, family, lmbda[j], each, out[j], True)


@entry((ROWS, COLUMN, INTEGER, COLUMN, WORK, ROWS))
def profile_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbdas: FloatArray,
    work: Work,
    out: FloatArray,
) -> None:
    """Profile likelihoods of the rows of `columns` at all `lmbdas`."""
    each = borrowed_work(work)
    for j in range(columns.shape[0]):
        profile_column(columns[j], weight, family, lmbdas, each, out[j])


@entry((ROWS, COLUMN, INTEGER, ROWS, WORK, ROWS))
def interval_columns(
    columns: FloatArray, weight: FloatArray, family: int, at: FloatArray, work: Work, out: FloatArray
) -> None:
    """Likelihood intervals of the rows of `columns`; `at` holds lambda and the drop of each."""
    each = borrowed_work(work)
    for j in range(columns.shape[0]):
        interval_column(columns[j], weight, family, at[j, 0], at[j, 1], each, out[j])
