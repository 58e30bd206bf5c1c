"""Largest probability plot correlation coefficient (PPCC): the lambda of the straightest normal QQ plot.

The objective is 1 - r, with r the correlation of the ascending transformed values with normal quantiles at Filliben's
median ranks [1]_. r does not change with location and scale of the transformed values, so these are chosen for
accuracy: values of one sign are taken relative to the end from which every exponent is negative; values of both signs
lose a common factor if they are large. The exponent of values below 0 under Yeo-Johnson is 2 - lambda.

The objective may have several minima. It is scanned in steps about the start, on as long as it falls, and minimised by
Brent's method next to the lowest point.

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

# fields of a row that `maximize_ppcc_columns` writes
OPTIMUM_LMBDA, OPTIMUM_VALUE, OPTIMUM_N_EVAL, OPTIMUM_STATUS, N_OPTIMUM = range(5)

#: Scanned points, and their largest distance from the start, in units of 1/sd(logs). Steps of 0.5 are enough: of 6,000
#: simulated columns, 2,000 of them clustered, they missed the minimum that steps of 0.26 find in two, by 5e-4 at most.
_POINTS, _RADIUS = 17, 4.0
_STEP = 2.0 * _RADIUS / (_POINTS - 1)
#: A guard: most steps from the start of the scan downwards and upwards, if it goes on: 200/sd(logs). Of 60 nasty
#: columns a tenth leaves the same minima (report_constants ppcc).
_MOST_STEPS = 400
#: An objective that changes by less over the whole scan does not distinguish lambdas: two distinct values. 1e-7 and
#: 1e-11 change nothing in 60 nasty columns (report_constants ppcc).
_FLAT = 1e-9
#: Another minimum makes a column multimodal if it is less than this many times as high as the lowest, which defines the
#: status. Of 60 nasty columns 1 is, with 4 in place of 2 3 would be (report_constants ppcc).
_RIVAL = 2.0
#: Tolerance of Brent's method, in units of 1/sd(logs), and most evaluations. 60 nasty columns take 38.3 evaluations; a
#: hundred times as much takes 32.9 (report_constants ppcc).
_XTOL, _MAX_EVAL = 2.5e-10, 100
#: Exponents of values of both signs need no common factor up to here: e**300 can be squared.
_MODERATE = 300.0
#: The objective where the variance of the transformed values is not a number: 1 - r for the worst correlation.
_WORST = 2.0
#: An exponent closer to 0 counts as this: it can be divided by.
_TINY = 1e-290


# --- the transform ------------------------------------------------------------------------------------


class ScaledLogs(NamedTuple):
    """Logs of the magnitudes (plus 1 under Yeo-Johnson) of ascending values, in units of their standard deviation.

    Logs of values of one sign are relative to the log of the median, without cancellation. Exponents are in units of
    1/scale.
    """

    d: FloatArray
    n_negative: int
    scale: float


@kernel
def _scaled_logs(positions: PlottingPositions, x: FloatArray, family: int, d: FloatArray, y: FloatArray) -> ScaledLogs:
    """Return the logs of ascending values, in `d`; `y` is scratch."""
    base = log_offset(family)
    border = 0
    while border < x.size and x[border] < 0.0:
        border += 1
    reference = abs(x[x.size // 2]) if border in (0, x.size) else 0.0
    log_reference = offset_log(base, reference)
    largest = 0.0
    for i in range(x.size):
        d[i] = centered_log(abs(x[i]), base, reference, log_reference)
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
def _transform_branch(d: FloatArray, m: float, top: float, excess: float, sign: float, y: FloatArray) -> None:
    """Set y = sign (e**(m (d - top)) - 1)/m, or sign e**(m (d - top) - excess)/m if there is an excess."""
    m = m if abs(m) > _TINY else _TINY
    factor, one = sign / m, 1.0 if excess > 0.0 else 0.0
    for i in range(d.size):
        y[i] = (expm1(m * (d[i] - top) - excess) + one) * factor


@kernel
def _transform(logs: ScaledLogs, exponent: float, y: FloatArray) -> None:
    """Write the transformed values, up to a shift and a positive factor."""
    d, border = logs.d, logs.n_negative
    both_signs = 0 < border < d.size
    first, last = (0.0, 0.0) if both_signs else (d[0], d[-1])
    mirrored, excess = 2.0 * logs.scale - exponent, 0.0
    if both_signs:
        excess = max(exponent * d[-1], mirrored * d[0])
        excess = excess if excess > _MODERATE else 0.0
    _transform_branch(d[border:], exponent, last if exponent > 0.0 else first, excess, 1.0, y[border:])
    _transform_branch(d[:border], mirrored, first if mirrored > 0.0 else last, excess, -1.0, y[:border])


# --- the objective ------------------------------------------------------------------------------------


class PlottedColumn(NamedTuple):
    """A sorted column as the objective needs it: logs, plotting positions, and room for the transformed values."""

    logs: ScaledLogs
    positions: PlottingPositions
    y: FloatArray


@kernel
def one_minus_ppcc(column: PlottedColumn, exponent: float) -> float:
    """Return 1 - r at an exponent, lambda in units of 1/scale."""
    _transform(column.logs, exponent, column.y)
    mean, variance = mean_and_variance(column.positions, column.y)
    if not 0.0 < variance < math.inf:
        return _WORST
    return one_minus_correlation(column.positions, column.y, mean, 1.0 / math.sqrt(variance))


# --- its minimum --------------------------------------------------------------------------------------


class _ScanSummary(NamedTuple):
    """The first and the last point of a scan, the lowest one, the values there, and the second lowest minimum."""

    first: int
    last: int
    best: int
    lowest: float
    highest: float
    second_minimum: float


@kernel
def _scan(column: PlottedColumn, origin: float, values: FloatArray) -> _ScanSummary:
    """Evaluate the objective at ``origin + k _STEP``, k = 0.._POINTS - 1, and beyond either end while it falls there.

    The value at step k is written to ``values[_MOST_STEPS + k]``.
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
    scanned = values[_MOST_STEPS + first : _MOST_STEPS + last + 1]
    best, highest = 0, 0.0
    for k in range(scanned.size):
        best = k if scanned[k] < scanned[best] else best
        highest = max(highest, scanned[k])
    return _ScanSummary(first, last, first + best, scanned[best], highest, second_minimum(scanned))


@kernel
def second_minimum(values: FloatArray) -> float:
    """Return the second lowest of the local minima, the last value excluded; infinite if there is one at most."""
    lowest, second = math.inf, math.inf
    for k in range(values.size - 1):
        before = values[k - 1] if k > 0 else math.inf
        if before > values[k] < values[k + 1]:
            lowest, second = min(lowest, values[k]), max(lowest, min(second, values[k]))
    return second


@kernel
def _maximize_ppcc(column: PlottedColumn, start: float, values: FloatArray, out: FloatArray) -> None:
    """Write the best lambda, the objective there, the number of evaluations, and a status."""
    scale = column.logs.scale
    origin = start * scale - _RADIUS
    scan = _scan(column, origin, values)
    n_points = scan.last - scan.first + 1
    out[OPTIMUM_LMBDA], out[OPTIMUM_VALUE] = start, scan.lowest
    out[OPTIMUM_N_EVAL], out[OPTIMUM_STATUS] = n_points, SCANNED
    if scan.highest - scan.lowest < _FLAT:
        return
    best = origin + scan.best * _STEP
    state = brent_start(-_STEP, _STEP, _XTOL, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, one_minus_ppcc(column, best + state.x))
    if state.fun < scan.lowest:
        out[OPTIMUM_LMBDA], out[OPTIMUM_VALUE] = (best + state.best) / scale, state.fun
    else:
        out[OPTIMUM_LMBDA] = best / scale
    out[OPTIMUM_N_EVAL] += state.n_eval
    if scan.second_minimum < _RIVAL * out[OPTIMUM_VALUE]:
        out[OPTIMUM_STATUS] = MULTIMODAL
    if state.status != CONVERGED or scan.best == scan.first or scan.best == scan.last:
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
    """Write 1 - r of each row at each lambda.

    Parameters
    ----------
    block, positions, totals, family
        As for `maximize_ppcc_columns`.
    lmbdas : (k,)
        Where the objective is evaluated.
    work : (2, n)
        Scratch.
    out : (p, k)
        Receives the objective; NaN for rows without two distinct values.
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
    """Return the sorted values `x` of row j with their logs, in `d`, and plotting positions; `y` is scratch."""
    row = positions_in_row(positions, totals, j, x)
    return PlottedColumn(_scaled_logs(row, x, family, d, y), row, y)


def new_search_work(n: int) -> FloatArray:
    """Return scratch of `maximize_ppcc_columns` for columns of up to `n` values."""
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
    """Find the lambda of the straightest probability plot of each row.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, sorted, NaN last, each in the domain of the family, with at least two distinct values.
    positions, totals
        Their plotting positions, see `positions_in_row`.
    family : int
        BOX_COX or YEO_JOHNSON.
    start : (p,)
        Lambdas about which to scan; a row whose start is NaN is skipped.
    work
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
