"""Fit columns, and evaluate likelihood profiles and intervals, from power sums.

A weighted sample with the power sums of the column (`powerkern.kernels.power_sums.sample`) is fitted like any weighted
column by `powerkern.kernels.likelihood.two_pass`, which also certifies the optimum. `bound_errors` bounds the error of
lambda that comes from replacing the column by the sample.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, COUNTS, INTEGER, ROWS, entry, kernel, named_tuple
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.likelihood.interval import write_interval
from powerkern.kernels.likelihood.optimum import exponent_of, write_fit
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.likelihood.scratch import SCRATCH
from powerkern.kernels.likelihood.two_pass import two_pass_optimum, write_profile
from powerkern.kernels.power_sums.errors import Rounded, bound_errors
from powerkern.kernels.power_sums.grids import G_MAX, G_MIN, G_QUANTUM
from powerkern.kernels.power_sums.sample import Nodes, make_sample
from powerkern.kernels.results import STATUS, write_identity, write_range
from powerkern.kernels.status_codes import CONSTANT, EMPTY, ROUTE_POWER_SUMS, UNRESOLVED
from powerkern.kernels.transforms.family import log_offset

#: Largest bound on the error of a certified lambda, times |lambda| if that exceeds 1: the accuracy that the user guide
#: promises.
TOLERANCE = 1e-11
#: Largest bound on the relative error of the standard deviation, which standardised values inherit.
SD_TOLERANCE = 5e-11
NODES = named_tuple(Nodes, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, ROWS)


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, COLUMN, NODES, SCRATCH, ROWS, COLUMN))
def fit_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    roundings: FloatArray,
    lmbda: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
    error: FloatArray,
) -> None:
    """Fit the columns of a sketch, and bound the error of lambda that is due to the sketch.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        The bins of column j are ``sums[starts[j]:starts[j + 1]]``.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    roundings : (p, 4)
        For each column: the number of times that sums were rounded; the largest number of rows summed before rounding;
        the number of roundings that gave 0; and the number of times that sums were moved to another reference.
    lmbda : (p,)
        Given lambdas; NaN where lambda is to be fitted.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, N_RESULTS)
        Receives the results.
    error : (p,)
        Receives bounds on the errors of lambda; inf for columns that the sketch does not resolve.
    """
    for j in range(grids.shape[0]):
        column_sums = sums[starts[j] : starts[j + 1]]
        rounded = rounded_sums(grids[j], roundings[j])
        error[j] = _fit_column(column_sums, log_offset(family), grids[j], rounded, lmbda[j], nodes, scratch, out[j])


@kernel
def rounded_sums(grid: FloatArray, counts: FloatArray) -> Rounded:
    """Return the `Rounded` record of a column; `counts` is the column's row in `roundings` (see `fit_sums`)."""
    return Rounded(2.0 ** grid[G_QUANTUM], counts[0], counts[1], counts[2], counts[3] > 0.0)


@kernel
def total_weight(sums: FloatArray) -> float:
    """Return the total weight of the values in all bins, given the power sums of the bins."""
    total = 0.0
    for b in range(sums.shape[0]):
        total += sums[b, 0]
    return total


@kernel
def _fit_column(
    sums: FloatArray,
    base: float,
    grid: FloatArray,
    rounded: Rounded,
    lmbda: float,
    nodes: Nodes,
    scratch: Scratch,
    row: FloatArray,
) -> float:
    """Fit one column of a sketch, and return a bound on the error of lambda.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of the column.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    rounded : Rounded
        Record of the rounding of the power sums.
    lmbda : float
        A given lambda; NaN if lambda is to be fitted.
    nodes : Nodes
        Scratch for the sample.
    scratch : Scratch
        Scratch of the search.
    row : (N_RESULTS,)
        Receives the results.
    """
    total = total_weight(sums)
    write_range(row, total, grid[G_MIN], grid[G_MAX])
    if not total > 0.0 or grid[G_MIN] == grid[G_MAX]:
        write_identity(row, CONSTANT if total > 0.0 else EMPTY)
        return 0.0
    sample = make_sample(sums, base, grid, nodes)
    if sample.centered.logs.pos.size + sample.centered.logs.neg.size < 2:
        write_identity(row, UNRESOLVED)
        return math.inf
    exponent = exponent_of(lmbda, sample.sign)
    best = two_pass_optimum(sample.centered, exponent, 0, scratch)
    write_fit(row, best, sample.sign, ROUTE_POWER_SUMS, lmbda)
    if lmbda == lmbda:
        return 0.0
    error, of_sd = bound_errors(sample, best, nodes, rounded)
    fitted = exponent_of(best.exponent, sample.sign)
    # even if constants are out of range for float64, since lost digits may be the reason
    if not (error <= TOLERANCE * max(1.0, abs(fitted)) and of_sd <= SD_TOLERANCE):
        row[STATUS] = UNRESOLVED
    return error


@entry((ROWS, COUNTS, INTEGER, ROWS, COLUMN, NODES, SCRATCH, ROWS))
def profile_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    lmbdas: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """Write the negative log-likelihood of every column of a sketch at every lambda.

    The result is NaN for a column with fewer than two distinct values.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        The bins of column j are ``sums[starts[j]:starts[j + 1]]``.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    lmbdas : (k,)
        The lambdas.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, k)
        Receives g, the negative log-likelihood per unit of weight.
    """
    for j in range(grids.shape[0]):
        column_sums = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if total_weight(column_sums) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = make_sample(column_sums, log_offset(family), grids[j], nodes)
            write_profile(sample.centered, sample.sign, lmbdas, scratch, out[j])


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, NODES, SCRATCH, ROWS))
def interval_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    at: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    out: FloatArray,
) -> None:
    """Write the likelihood interval of every column of a sketch; NaN for a column with fewer than two distinct values.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        The bins of column j are ``sums[starts[j]:starts[j + 1]]``.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    at : (p, 2)
        For each column, the lambda that minimises g, and the amount by which g exceeds its minimum at the ends of the
        interval.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, 2)
        Receives the lower and the upper end.
    """
    for j in range(grids.shape[0]):
        column_sums = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if total_weight(column_sums) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = make_sample(column_sums, log_offset(family), grids[j], nodes)
            write_interval(sample.centered, sample.sign, at[j, 0], at[j, 1], scratch, out[j])
