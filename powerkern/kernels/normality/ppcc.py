"""Find the lambda with the largest probability plot correlation coefficient (PPCC), the straightest normal QQ plot.

The objective is 1 - r, where r is the correlation of the ascending transformed values with normal quantiles at
Filliben's median ranks [1]_. r does not depend on the location and the scale of the transformed values, which are
therefore chosen for accuracy. For values of one sign, powers are divided by the largest power, so that none of them
exceeds 1. For values of both signs a large common factor is divided out. The exponent of negative values under
Yeo-Johnson is 2 - lambda.

The objective may have several minima. It is evaluated on a grid about the start, and the grid is extended while the
objective decreases. Brent's method then finds the minimum near the lowest point of the grid.

References
----------
.. [1] J. J. Filliben, "The probability plot correlation coefficient test for normality", Technometrics 17, 1975,
   111-117.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import BLOCKS, COLUMN, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import expm1
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.location.order_statistics import n_present
from powerkern.kernels.normality.moments import mean_and_variance, one_minus_correlation
from powerkern.kernels.normality.plotting_positions import PlottingPositions, positions_in_row
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING
from powerkern.kernels.status_codes import MULTIMODAL, NOT_CERTIFIED, SCANNED
from powerkern.kernels.transforms.family import log_offset

# indices in a row that `maximize_ppcc_columns` writes
OPTIMUM_LMBDA, OPTIMUM_VALUE, OPTIMUM_N_EVAL, OPTIMUM_STATUS, N_OPTIMUM = range(5)

#: Number of grid points, and their largest distance from the start in units of 1/sd(logs). Steps of 0.5 suffice: in 2
#: of 6,000 simulated columns (2,000 of them clustered) they miss the minimum that steps of 0.26 find, which is lower by
#: 5e-4 at most.
_POINTS, _RADIUS = 17, 4.0
_STEP = 2.0 * _RADIUS / (_POINTS - 1)
#: Largest number of steps by which the grid extends in either direction, 200/sd(logs); a safeguard. A tenth gives the
#: same minima for 60 difficult columns (report_constants ppcc).
_MOST_STEPS = 400
#: If the objective varies by less than this over the grid, as for two distinct values, it does not determine lambda.
#: 1e-7 and 1e-11 change nothing for 60 difficult columns (report_constants ppcc).
_FLAT = 1e-9
#: A column is called multimodal if a second minimum is less than this many times as high as the lowest one. Of 60
#: difficult columns 1 is; with 4 instead of 2, 3 would be (report_constants ppcc).
_RIVAL = 2.0
#: Tolerance of Brent's method in units of 1/sd(logs), and largest number of its evaluations. 60 difficult columns take
#: 38.3 evaluations on average; with a hundred times the tolerance 32.9 (report_constants ppcc).
_XTOL, _MAX_EVAL = 2.5e-10, 100
#: Largest exponent t for which values of both signs need no common factor, since e**300 can be squared.
_MODERATE = 300.0
#: Value of the objective if the variance of the transformed values is not positive and finite; 1 - r for r = -1.
_WORST = 2.0
#: Smallest |exponent|, by which one can divide.
_TINY = 1e-290


# --- the transform ------------------------------------------------------------------------------------


class ScaledLogs(NamedTuple):
    """Logs of the magnitudes (plus 1 for Yeo-Johnson) of ascending values, in units of their standard deviation.

    If all values have one sign, the log of the median is subtracted, without cancellation.
    """

    d: FloatArray
    n_negative: int  #: number of negative values, which come first
    scale: float  #: standard deviation of the logs; exponents are lambda times scale


@kernel
def _scaled_logs(positions: PlottingPositions, x: FloatArray, family: int, d: FloatArray, y: FloatArray) -> ScaledLogs:
    """Return the logs of ascending values in units of their standard deviation.

    Parameters
    ----------
    positions : PlottingPositions
        Weights of the values.
    x : (n,)
        The values, ascending.
    family : int
        BOX_COX or YEO_JOHNSON.
    d : (n,)
        Receives the logs.
    y : (n,)
        Scratch.
    """
    offset = log_offset(family)
    border = 0
    while border < x.size and x[border] < 0.0:
        border += 1
    reference = abs(x[x.size // 2]) if border in (0, x.size) else 0.0
    log_reference = offset_log(offset, reference)
    largest = 0.0
    for i in range(x.size):
        d[i] = centered_log(abs(x[i]), offset, reference, log_reference)
        largest = max(largest, abs(d[i]))
    for i in range(x.size):  # divided twice, because the square of a tiny scale would be 0
        d[i] /= largest
        y[i] = -d[i] if i < border else d[i]
    _, variance = mean_and_variance(positions, y)
    sd = math.sqrt(variance)
    for i in range(x.size):
        d[i] /= sd
    return ScaledLogs(d, border, largest * sd)


@kernel
def _transform_branch(d: FloatArray, m: float, top: float, log_factor: float, sign: float, y: FloatArray) -> None:
    """Set y = sign (e**(m (d - top)) - 1)/m, or y = sign e**(m (d - top) - log_factor)/m if log_factor > 0.

    Parameters
    ----------
    d : (n,)
        Logs of the values of one sign.
    m : float
        The exponent of these values.
    top : float
        The log that is subtracted from all logs.
    log_factor : float
        The log of a common factor that is divided out; 0 for none.
    sign : float
        The sign of the values.
    y : (n,)
        Receives the transformed values.
    """
    m = m if abs(m) > _TINY else _TINY
    factor, one = sign / m, 1.0 if log_factor > 0.0 else 0.0
    for i in range(d.size):
        y[i] = (expm1(m * (d[i] - top) - log_factor) + one) * factor


@kernel
def _transform(logs: ScaledLogs, exponent: float, y: FloatArray) -> None:
    """Write the transformed values, up to an additive constant and a positive factor."""
    d, border = logs.d, logs.n_negative
    both_signs = 0 < border < d.size
    first, last = (0.0, 0.0) if both_signs else (d[0], d[-1])
    mirrored, log_factor = 2.0 * logs.scale - exponent, 0.0
    if both_signs:
        log_factor = max(exponent * d[-1], mirrored * d[0])
        log_factor = log_factor if log_factor > _MODERATE else 0.0
    _transform_branch(d[border:], exponent, last if exponent > 0.0 else first, log_factor, 1.0, y[border:])
    _transform_branch(d[:border], mirrored, first if mirrored > 0.0 else last, log_factor, -1.0, y[:border])


# --- the objective ------------------------------------------------------------------------------------


class PlottedColumn(NamedTuple):
    """Logs and plotting positions of a sorted column, and scratch for its transformed values."""

    logs: ScaledLogs
    positions: PlottingPositions
    y: FloatArray


@kernel
def one_minus_ppcc(column: PlottedColumn, exponent: float) -> float:
    """Return 1 - r at an exponent, where r is the probability plot correlation coefficient of the transformed column.

    The exponent is lambda times ``column.logs.scale``.
    """
    _transform(column.logs, exponent, column.y)
    mean, variance = mean_and_variance(column.positions, column.y)
    if not 0.0 < variance < math.inf:
        return _WORST
    return one_minus_correlation(column.positions, column.y, mean, 1.0 / math.sqrt(variance))


# --- its minimum --------------------------------------------------------------------------------------


class _GridSummary(NamedTuple):
    """Summary of the objective 1 - r on the grid of exponents."""

    #: indices of the first, the last and the lowest point
    first: int
    last: int
    best: int
    #: the smallest and the largest value, and the value of the second lowest local minimum
    lowest: float
    highest: float
    second_minimum: float


@kernel
def _evaluate_on_grid(column: PlottedColumn, origin: float, values: FloatArray) -> _GridSummary:
    """Evaluate the objective 1 - r on a grid of exponents, which is extended at either end while 1 - r decreases.

    r is the probability plot correlation coefficient. The exponents are ``origin + k _STEP``, at first for k = 0, ...,
    _POINTS - 1. The value for step k is written to ``values[_MOST_STEPS + k]``.
    """
    first, last = 0, _POINTS - 1
    for k in range(_POINTS):
        values[_MOST_STEPS + k] = one_minus_ppcc(column, origin + k * _STEP)
    while first > -_MOST_STEPS and values[_MOST_STEPS + first] < values[_MOST_STEPS + first + 1] - _FLAT:
        first -= 1
        values[_MOST_STEPS + first] = one_minus_ppcc(column, origin + first * _STEP)
    while last < _MOST_STEPS and values[_MOST_STEPS + last] < values[_MOST_STEPS + last - 1] - _FLAT:
        last += 1
        values[_MOST_STEPS + last] = one_minus_ppcc(column, origin + last * _STEP)
    grid_values = values[_MOST_STEPS + first : _MOST_STEPS + last + 1]
    best, highest = 0, 0.0
    for k in range(grid_values.size):
        best = k if grid_values[k] < grid_values[best] else best
        highest = max(highest, grid_values[k])
    return _GridSummary(first, last, first + best, grid_values[best], highest, second_minimum(grid_values))


@kernel
def second_minimum(values: FloatArray) -> float:
    """Return the second lowest local minimum of a sequence; inf if there is at most one.

    The first element counts as a minimum if the second is larger; the last element never counts.
    """
    lowest, second = math.inf, math.inf
    for k in range(values.size - 1):
        before = values[k - 1] if k > 0 else math.inf
        if before > values[k] < values[k + 1]:
            lowest, second = min(lowest, values[k]), max(lowest, min(second, values[k]))
    return second


@kernel
def _maximize_ppcc(column: PlottedColumn, start: float, values: FloatArray, out: FloatArray) -> None:
    """Find the lambda with the largest probability plot correlation r; write it with its status to `out`.

    `out` also receives 1 - r and the number of evaluations. `start` is the lambda at the center of the grid, and
    `values` is scratch for the objective on the grid.
    """
    scale = column.logs.scale
    origin = start * scale - _RADIUS
    grid = _evaluate_on_grid(column, origin, values)
    n_points = grid.last - grid.first + 1
    out[OPTIMUM_LMBDA], out[OPTIMUM_VALUE] = start, grid.lowest
    out[OPTIMUM_N_EVAL], out[OPTIMUM_STATUS] = n_points, SCANNED
    if grid.highest - grid.lowest < _FLAT:
        return
    best = origin + grid.best * _STEP
    state = brent_start(-_STEP, _STEP, _XTOL, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, one_minus_ppcc(column, best + state.x))
    if state.fun < grid.lowest:
        out[OPTIMUM_LMBDA], out[OPTIMUM_VALUE] = (best + state.best) / scale, state.fun
    else:
        out[OPTIMUM_LMBDA] = best / scale
    out[OPTIMUM_N_EVAL] += state.n_eval
    if grid.second_minimum < _RIVAL * out[OPTIMUM_VALUE]:
        out[OPTIMUM_STATUS] = MULTIMODAL
    if state.status != CONVERGED or grid.best == grid.first or grid.best == grid.last:
        out[OPTIMUM_STATUS] = NOT_CERTIFIED


@entry((ROWS, BLOCKS, ROWS, INTEGER, COLUMN, ROWS, ROWS))
def ppcc_objective_columns(
    block: FloatArray,
    positions: FloatArray,
    totals: FloatArray,
    family: int,
    lmbdas: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """Write 1 - r of each row at each lambda, where r is the probability plot correlation coefficient.

    Parameters
    ----------
    block, positions, totals, family
        As for `maximize_ppcc_columns`.
    lmbdas : (k,)
        The lambdas.
    work : (2, n)
        Scratch.
    out : (p, k)
        Receives 1 - r; NaN for rows without two distinct values.
    """
    for j in range(block.shape[0]):
        n = n_present(block[j])
        out[j] = math.nan
        if n > 1 and block[j, 0] < block[j, n - 1]:
            column = _plotted_column(block[j, :n], positions, totals, j, family, work[0, :n], work[1, :n])
            for k in range(lmbdas.size):
                out[j, k] = one_minus_ppcc(column, lmbdas[k] * column.logs.scale)


@kernel
def _plotted_column(
    x: FloatArray, positions: FloatArray, totals: FloatArray, j: int, family: int, d: FloatArray, y: FloatArray
) -> PlottedColumn:
    """Return a sorted column with its logs and plotting positions.

    Parameters
    ----------
    x : (n,)
        The column, ascending, without NaN.
    positions : (2, p, n), or (1, p, n) or (1, 1, n)
        Plotting positions of all rows (`positions_in_row`).
    totals : (p, 2)
        Totals written by `weigh_columns`.
    j : int
        Index of the row that contains the column.
    family : int
        BOX_COX or YEO_JOHNSON.
    d : (n,)
        Receives the logs.
    y : (n,)
        Scratch.
    """
    row = positions_in_row(positions, totals, j, x)
    return PlottedColumn(_scaled_logs(row, x, family, d, y), row, y)


def new_search_work(n: int) -> FloatArray:
    """Allocate scratch of `maximize_ppcc_columns` for columns of up to `n` values."""
    return np.empty((3, max(n, 2 * _MOST_STEPS + 1)))


@entry((ROWS, BLOCKS, ROWS, INTEGER, COLUMN, ROWS, ROWS))
def maximize_ppcc_columns(
    block: FloatArray,
    positions: FloatArray,
    totals: FloatArray,
    family: int,
    start: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """Find, for each row, the lambda that makes its normal probability plot straightest.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last, each in the domain of the family, with at least two distinct values.
    positions, totals
        Plotting positions of the rows, written by `weigh_columns` (see `positions_in_row`).
    family : int
        BOX_COX or YEO_JOHNSON.
    start : (p,)
        Lambda at the center of each grid; rows with NaN are skipped.
    work : (3, k)
        Scratch, from `new_search_work`.
    out : (p, N_OPTIMUM)
        Receives lambda, 1 - r there, the number of evaluations, and a `powerkern.Status`. If all lambdas are equally
        good, as for two distinct values, lambda is the start.
    """
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            column = _plotted_column(block[j, :n], positions, totals, j, family, work[0, :n], work[1, :n])
            _maximize_ppcc(column, start[j], work[2], out[j])
