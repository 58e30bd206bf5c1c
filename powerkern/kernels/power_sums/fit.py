"""Fits, profiles and intervals from power sums.

The nodes and weights of a column (`powerkern.kernels.power_sums.sample`) are fitted by the functions of
`powerkern.kernels.likelihood.mle` that fit weighted logs, so a fit from a sketch is the fit of that sample, with the
same certificate. `bound_errors` bounds the error of lambda that comes from the sums.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, COUNTS, INTEGER, ROWS, entry, kernel, named_tuple
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.likelihood.interval import interval_of
from powerkern.kernels.likelihood.optimum import exponent_of, write_fit
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.likelihood.scratch import SCRATCH
from powerkern.kernels.likelihood.two_pass import profile_of, two_pass_optimum
from powerkern.kernels.power_sums.errors import Rounded, bound_errors
from powerkern.kernels.power_sums.grids import G_MAX, G_MIN, G_QUANTUM
from powerkern.kernels.power_sums.sample import Nodes, make_sample
from powerkern.kernels.results import STATUS, write_identity, write_range
from powerkern.kernels.status_codes import CONSTANT, EMPTY, ROUTE_POWER_SUMS, UNRESOLVED
from powerkern.kernels.transforms.family import log_offset

#: Lambda is certified where the bound on its error is below this, times |lambda| where that exceeds 1: the accuracy
#: that the guide promises.
TOLERANCE = 1e-11
#: And where the bound on the relative error of the standard deviation is below this: standardised values share it.
SD_TOLERANCE = 5e-11
_NODES = named_tuple(Nodes, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, ROWS)


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, COLUMN, _NODES, SCRATCH, ROWS, COLUMN))
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
    """Fit the columns of a sketch; bound the error of lambda that is due to the sketch (inf: not resolved).

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        Where the bins of each column begin.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    roundings : (p, 4)
        By column: how often its sums were rounded; over how many rows at most each was taken; how many of them came
        to nothing; how often they were moved to another reference.
    lmbda : (p,)
        Lambdas at which to evaluate; NaN: search.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, N_RESULTS)
        Receives the results.
    error : (p,)
        Receives bounds on the errors of lambda.
    """
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        of = roundings[j]
        rounded = Rounded(2.0 ** grids[j, G_QUANTUM], of[0], of[1], of[2], of[3] > 0.0)
        error[j] = _fit_column(own, log_offset(family), grids[j], rounded, lmbda[j], nodes, scratch, out[j])


@kernel
def _total(sums: FloatArray) -> float:
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
    total = _total(sums)
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
    found = exponent_of(best.exponent, sample.sign)
    # constants beyond float64 may also come from lost digits
    if not (error <= TOLERANCE * max(1.0, abs(found)) and of_sd <= SD_TOLERANCE):
        row[STATUS] = UNRESOLVED
    return error


@entry((ROWS, COUNTS, INTEGER, ROWS, COLUMN, _NODES, SCRATCH, ROWS))
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
    """Write g of every column of a sketch at every lambda; NaN for a column with fewer than two values.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        Where the bins of each column begin.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    lmbdas : (k,)
        Where to evaluate.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, k)
        Receives g.
    """
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if _total(own) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = make_sample(own, log_offset(family), grids[j], nodes)
            profile_of(sample.centered, sample.sign, lmbdas, scratch, out[j])


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, _NODES, SCRATCH, ROWS))
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
    """Write likelihood intervals of the columns of a sketch.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        Where the bins of each column begin.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns.
    at : (p, 2)
        The best lambda of each column, and the drop.
    nodes : Nodes
        Scratch.
    scratch : Scratch
        Scratch of `score`.
    out : (p, 2)
        Receives the lower and the upper end.
    """
    for j in range(grids.shape[0]):
        own = sums[starts[j] : starts[j + 1]]
        out[j] = math.nan
        if _total(own) > 0.0 and grids[j, G_MIN] < grids[j, G_MAX]:
            sample = make_sample(own, log_offset(family), grids[j], nodes)
            interval_of(sample.centered, sample.sign, at[j, 0], at[j, 1], scratch, out[j])
