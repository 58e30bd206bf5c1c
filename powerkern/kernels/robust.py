"""Robust power transforms of one column: RewML, Carroll's estimator and maximum trimmed likelihood.

How a column, sorted and without missing values, is fitted (`fit_sorted`):

1. `_prestandardized` divides out its scale and takes signed logs; each transform is then one exponential per value, and
   leaves the column sorted, so that medians are lookups and the values kept are consecutive.
2. `_search` minimises the estimator's objective over lambda: a scan on a few order statistics, Brent's method in the
   cells of its local minima, and once more on all values; or Brent's method from the full interval, as in R.
3. `_refitted` fits the values within the cut-off by maximum likelihood (`powerkern.kernels.mle`), as often as asked.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.
.. [2] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42, 1980.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    COLUMN,
    COUNTS,
    INTEGER,
    LANES,
    ROWS,
    borrowed,
    entry,
    kernel,
    named_tuple,
    reduction,
    widest_vectors,
)
from powerkern._status import Route, Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary import exp, log, log1p
from powerkern.kernels.family import is_mirrored, lowest
from powerkern.kernels.floats import EPS
from powerkern.kernels.huber import CELLWISE_BETA, huber_likelihood_of, one_step_of
from powerkern.kernels.loc_scale import LocScale
from powerkern.kernels.logs import centered_log
from powerkern.kernels.minimize import RUNNING, brent_start, brent_step
from powerkern.kernels.mle import fit_column
from powerkern.kernels.one_pass import ONE_PASS_MIN, LogUnits, optimum_of_logs
from powerkern.kernels.order_statistics import mad_of, median_of, position_of
from powerkern.kernels.qq import bisquare_objective_of, normal_scores
from powerkern.kernels.qq_lanes import qq_objectives
from powerkern.kernels.rectified import CELLWISE, NOT_RECTIFIED, ROOM, SortedColumn, log_at, transform_sorted, value_at
from powerkern.kernels.results import (
    BAD_INFINITE,
    BAD_NOT_POSITIVE,
    CENTER,
    DIVISOR,
    INTERCEPT,
    KEPT_HIGH,
    KEPT_LOW,
    LMBDA,
    LMBDA0,
    LOC,
    N_EVAL,
    N_KEPT,
    NLL,
    ROUTE,
    SCALE,
    SLOPE,
    STATUS,
    is_identity,
    write_fit,
    write_identity,
    write_range,
)
from powerkern.kernels.scratch import WORK, Work, borrowed_work, new_work

# what is minimised over lambda: the bisquare QQ distance, Carroll's likelihood, the trimmed likelihood
QQ, CARROLL, TRIMMED = range(3)
# how a column is brought to a common scale
RAW, MEDIAN, MAD = range(3)
# how lambda is searched for
GLOBAL, BRENT = range(2)

_OK, _FIXED, _CONSTANT, _EMPTY = int(Status.OK), int(Status.FIXED), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)
_MULTIMODAL, _NO_SPREAD = int(Status.MULTIMODAL), int(Status.NO_SPREAD)

_ONE_PASS, _REFIT = int(Route.ONE_PASS), int(Route.REFIT)

#: The constant of R's mad(), which prestandardises.
_MAD_FACTOR = 1.4826
#: Huber's constant for location and scale.
_HUBER_K = 1.5
#: R's default tolerance of optimize(): the fourth root of the rounding unit.
CELLWISE_XTOL = 0.0001220703125

#: Order statistics used by the scan; longer columns than _ALL are searched on them, too, before all values are.
SAMPLE, _ALL = 128, 512
#: Spacing of the scan, and by how much the second grid is finer.
_STEP, _FINER = 0.5, 4.0
#: Into how many parts its steps are divided where LANES points are evaluated at once: up to a length twice as many.
_PARTS_OF_STEP, _SHORT = 4, 32
#: Points of the second grid there, outwards from an end.
_OUTWARD_LANES = 16
#: Cells wider than this may hold several minima: the search in one begins with points that are evenly spaced.
_WIDE = 0.1
#: Where such a search looks about the minimum of a parabola: parts of the way to the ends of the interval, and of the
#: tolerance; and what is left of an interval by points that are evenly spaced.
_PARTS, _CLOSE, _EVENLY = (0.5, 0.125, 1.0 / 64.0, 1.0 / 128.0), 0.4, 2.0 / (LANES + 1.0)
#: Maximum number of points of a scan before its steps are divided, and room for them afterwards.
_MAX_SCAN = 64
_ROOM_FOR_SCAN = 2 * _PARTS_OF_STEP * _MAX_SCAN
#: Points of the second grid: about the lowest point, or outwards in doubling steps.
_N_SECOND = 13
#: Local minima that are followed up.
_MAX_CELLS = 16
#: Local minima this close to the lowest make the objective multimodal if they are that far from it in lambda; those on
#: the sample are refined on all values.
_MARGIN, _APART = 0.02, 0.25
#: Points of the scan this close to it are followed up.
_RIVAL = 0.1
#: Tolerances on the sample and on all values, and half the interval that is searched on all values,
#: and the widest it grows to.
_COARSE_XTOL, _FINE_XTOL, _REACH, _WIDEST = 2e-3, 1e-5, 0.04, 4.0
_MAX_EVAL = 100
#: Fits in ever wider intervals (convention "cellwise"), and windows tried by the trimmed likelihood.
_MAX_FITS, _MAX_WINDOWS = 20, 50
#: R widens the interval where lambda is that near to an end, as a fraction of its length.
_END = 0.05


# a cell: its ends and the objective there (inf: unknown), its lowest point known and the objective there, and where its
# minimum was found (NaN: not searched)
LOW, HIGH, AT_LOW, AT_HIGH, LOWEST, VALUE, MINIMISER = range(7)


class Options(NamedTuple):
    """What `fit_sorted` is asked to do; `low`, `high` bound the search in lambda of the prestandardised column."""

    criterion: int
    rule: int  #: change points of `powerkern.kernels.rectified`
    prestandardize: int
    search: int
    cellwise: bool  #: R's conventions: the interval is searched as it is and widened afterwards; n - 1
    low: float
    high: float
    cutoff: float  #: values further from the center are left out
    n_reweight: int
    fraction: float  #: of the values that the trimmed likelihood keeps


class RobustWork(NamedTuple):
    """Scratch: of `mle`, four arrays of the column's length, small ones, and the sizes that the scores are for."""

    mle: Work
    values: FloatArray
    logs: FloatArray
    y: FloatArray
    scores: FloatArray
    scores_of: npt.NDArray[np.int64]  #: the length of the column that the scores are for
    sample: FloatArray  #: (4, SAMPLE + ROOM): values, logs, scores, y
    grid: FloatArray  #: (2, _ROOM_FOR_SCAN): points of the scan and values there
    cells: FloatArray  #: (_MAX_CELLS, 7): where local minima are, see LOW ...
    lanes: FloatArray  #: LANES * SAMPLE: transforms of a short column at LANES lambdas


class _Sorted(NamedTuple):
    """What an objective is evaluated on: a column, its normal scores, its mean log, and room for its transform."""

    column: SortedColumn
    scores: FloatArray
    jacobian: float
    y: FloatArray  #: as long as the arrays of `column`
    lanes: FloatArray  #: see `RobustWork`
    outward: tuple[FloatArray, FloatArray, FloatArray]


class _Prescaling(NamedTuple):
    """Prestandardisation: ``(x - center)/divisor`` (Yeo-Johnson), ``(x/divisor)**(1/power)`` (Box-Cox)."""

    center: float
    divisor: float
    power: float
    status: int


class GridScan(NamedTuple):
    """Number of cells found, evaluations, and whether the lowest value is not at an end."""

    n_cells: int
    n_eval: int
    inside: bool


class LocalMinimum(NamedTuple):
    """A minimum of the objective."""

    lmbda: float
    value: float
    n_eval: int


class Start(NamedTuple):
    """Result of a search."""

    lmbda: float
    n_eval: int
    n_rivals: int
    inside: bool


class Kept(NamedTuple):
    """The consecutive values within the cut-off, and the location and scale that set it."""

    start: int
    stop: int
    loc: float
    scale: float


# --- prestandardisation -------------------------------------------------------------------------------


@kernel
def _prestandardized(x: FloatArray, family: int, how: int, work: RobustWork) -> tuple[_Prescaling, SortedColumn]:
    """The column that transforms act on, in `work.values`, and its signed logs in `work.logs`."""
    n = x.size
    values, logs = work.values[: n + ROOM], work.logs[: n + ROOM]
    values[n:] = 1.0
    logs[n:] = 0.0
    median, mad = median_of(x), _MAD_FACTOR * mad_of(x)
    status = _OK if mad > 0.0 else _NO_SPREAD
    if not is_mirrored(family):
        divisor, power = median if how != RAW else 1.0, 1.0
        _logs_about(x, divisor, logs)
        if how == MAD:  # exp((ln x - median)/MAD)
            middle, power = median_of(logs[:n]), _MAD_FACTOR * mad_of(logs[:n])
            _standardize(logs[:n], middle, power, logs)
            divisor *= exp(middle)
        _exponentials(logs[:n], values)
        return _Prescaling(0.0, divisor, power, status), SortedColumn(values, logs, n, 0, 0.0)
    center, divisor = (0.0, 1.0) if how == RAW else (median, mad)
    _standardize(x, center, divisor, values)
    _signed_logs(values[:n], logs)
    n_negative = position_of(logs[:n], 0.0, 0.0, n >> 1)
    return _Prescaling(center, divisor, 1.0, status), SortedColumn(values, logs, n, n_negative, 2.0)


@kernel
def _standardize(x: FloatArray, center: float, divisor: float, out: FloatArray) -> None:
    widest_vectors()
    for i in range(x.size):
        out[i] = (x[i] - center) / divisor


@kernel
def _logs_about(x: FloatArray, divisor: float, logs: FloatArray) -> None:
    """logs = ln(x/divisor)."""
    widest_vectors()
    log_divisor = log(divisor)
    for i in range(x.size):
        logs[i] = centered_log(x[i], 0.0, divisor, log_divisor)


@kernel
def _exponentials(logs: FloatArray, values: FloatArray) -> None:
    widest_vectors()
    for i in range(logs.size):
        values[i] = exp(logs[i])


@kernel
def _signed_logs(values: FloatArray, logs: FloatArray) -> None:
    widest_vectors()
    for i in range(values.size):
        logs[i] = math.copysign(log1p(abs(values[i])), values[i])


@reduction
def _mean(x: FloatArray) -> float:
    widest_vectors()
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total / x.size


# --- objectives ---------------------------------------------------------------------------------------


@kernel
def _huber(y: FloatArray, criterion: int) -> LocScale:
    """One step from median and MAD: iterated to the end, RewML resists fewer outliers.

    Carroll's likelihood [2]_ has the density that is normal in the center and falls off more slowly beyond.
    """
    if criterion == CARROLL:
        return huber_likelihood_of(y, _HUBER_K)
    return one_step_of(y, _HUBER_K, CELLWISE_BETA)


@kernel
def _objective(at: _Sorted, lmbda: float, options: Options) -> float:
    """What the estimator minimises; NaN where it is not defined."""
    transform_sorted(at.column, lmbda, options.rule, at.y)
    y = at.y[: at.column.n]
    if options.criterion == TRIMMED:
        return _best_window(at, lmbda, _window_size(y.size, options.fraction))[1]
    estimate = _huber(y, options.criterion)
    if not estimate.scale > 0.0:
        return math.nan
    if options.criterion == CARROLL:
        return log(estimate.scale) - (lmbda - 1.0) * at.jacobian
    return bisquare_objective_of(y, at.scores, estimate.loc, estimate.scale)


@kernel
def _window_size(n: int, fraction: float) -> int:
    return min(max(math.ceil(fraction * n), n // 2 + 1), n)


@kernel
def _best_window(at: _Sorted, lmbda: float, size: int) -> tuple[int, float]:
    """Start and objective of the `size` consecutive values with the largest likelihood.

    Every window has the values from n - size to size in common. Sums about their mean, cumulated outwards from there,
    only grow: nothing is subtracted, and infinite values spoil only the windows that they are in.
    """
    n, y, logs = at.column.n, at.y, at.column.logs
    first, last = n - size, size
    center = _mean(y[first:last])
    unit = 1.0 / (y[last - 1] - y[first]) if y[last - 1] > y[first] else 1.0
    total, squares, jacobian = 0.0, 0.0, 0.0
    for i in range(first, last):
        d = (y[i] - center) * unit
        total += d
        squares += d * d
        jacobian += logs[i]
    left, left_squares, left_jacobian = at.outward
    left[0] = left_squares[0] = left_jacobian[0] = 0.0
    for k in range(first):
        d = (y[first - 1 - k] - center) * unit
        left[k + 1] = left[k] + d
        left_squares[k + 1] = left_squares[k] + d * d
        left_jacobian[k + 1] = left_jacobian[k] + logs[first - 1 - k]
    best, best_start = math.inf, first
    for start in range(first + 1):
        if start > 0:
            d = (y[last + start - 1] - center) * unit
            total += d
            squares += d * d
            jacobian += logs[last + start - 1]
        k = first - start
        mean = (total + left[k]) / size
        variance = (squares + left_squares[k]) / size - mean * mean
        if variance > 0.0:
            value = 0.5 * log(variance) - (lmbda - 1.0) * (jacobian + left_jacobian[k]) / size
            if value < best:
                best, best_start = value, start
    return best_start, best - log(unit)


# --- search -------------------------------------------------------------------------------------------


@kernel
def _sampled(every: _Sorted, work: RobustWork) -> _Sorted:
    """SAMPLE evenly spaced order statistics of a column, with their scores."""
    n = every.column.n
    values, logs, scores, y = work.sample[0], work.sample[1], work.sample[2], work.sample[3]
    n_negative = 0
    for k in range(SAMPLE):
        i = ((2 * k + 1) * n) // (2 * SAMPLE)
        values[k], logs[k], scores[k] = every.column.x[i], every.column.logs[i], every.scores[i]
        n_negative += i < every.column.n_negative
    column = SortedColumn(values, logs, SAMPLE, n_negative, every.column.below)
    return _Sorted(column, scores[:SAMPLE], _mean(logs[:SAMPLE]), y, every.lanes, every.outward)


@kernel
def _scan(at: _Sorted, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Local minima of the objective on a grid, as cells after the first, and on a second one.

    That is finer, about the lowest point (where steps are not divided: all of it is in a grid of divided steps); or it
    goes on outwards from the end of the interval where the lowest of the steps is, in doubling steps: but R's
    conventions take the interval as it is.
    """
    by_lanes = _by_lanes(at, options)
    n_steps = min(max(math.ceil((high - low) / _STEP), 2), _MAX_SCAN - 1)
    wide, n_parts = (high - low) / n_steps, _parts_of_step(at, options)
    last = n_steps * n_parts
    n_points = (last // LANES + 1) * LANES if by_lanes else last + 1
    points, values = work.grid[0, :n_points], work.grid[1, :n_points]
    for k in range(n_points):
        points[k] = low + wide / n_parts * min(k, last)
    best = _evaluate(at, points, values, options)
    n_cells = _add_minima(points[: last + 1], values, options.cellwise, work.cells, 1)
    lowest, end = values[best], _lowest_step(values, n_parts, n_steps)
    outwards = not options.cellwise and end in (0, n_steps)
    if by_lanes and not outwards:
        return GridScan(n_cells, n_points, True)
    origin, step = points[end * n_parts], wide if end > 0 else -wide
    n_second = _OUTWARD_LANES if by_lanes else _N_SECOND
    points, values = work.grid[0, :n_second], work.grid[1, :n_second]
    for k in range(n_second):
        if by_lanes:  # from the neighbour inside on: the lowest may be between
            points[k] = origin + step * (2.0**k * 0.25 - 1.0 if k > 0 else -1.0)
        elif outwards:
            points[k] = origin + step * (2.0**k * 0.5 - 1.0)
        else:
            points[k] = min(max(origin + step * (k - n_second // 2) / _FINER, low), high)
    best = _evaluate(at, points, values, options)
    n_cells = _add_minima(points, values, False, work.cells, n_cells)
    inside = not outwards or 0 < best < n_second - 1 or values[best] > lowest
    return GridScan(n_cells, n_points + n_second, inside)


@kernel
def _lowest_step(values: FloatArray, n_parts: int, n_steps: int) -> int:
    """Which of the undivided steps is lowest."""
    best = 0
    for k in range(1, n_steps + 1):
        if values[k * n_parts] < values[best * n_parts]:
            best = k
    return best


@kernel
def _parts_of_step(at: _Sorted, options: Options) -> int:
    if not _by_lanes(at, options):
        return 1
    return _PARTS_OF_STEP if at.column.n > _SHORT else 2 * _PARTS_OF_STEP


@kernel
def _by_lanes(at: _Sorted, options: Options) -> bool:
    """Whether the objective is evaluated at LANES lambdas at once."""
    return at.column.n <= SAMPLE and options.search == GLOBAL and options.criterion == QQ and options.rule != CELLWISE


@kernel
def _evaluate(at: _Sorted, points: FloatArray, values: FloatArray, options: Options) -> int:
    """The objective at all points, infinite where it is not defined; returns where it is lowest."""
    best, by_lanes = 0, _by_lanes(at, options)
    if by_lanes:
        qq_objectives(at.column, at.scores, options.rule, _HUBER_K, points, at.lanes, values)
    for k in range(points.size):
        value = values[k] if by_lanes else _objective(at, points[k], options)
        values[k] = value if value == value else math.inf
        if values[k] < values[best]:
            best = k
    return best


@kernel
def _add_minima(points: FloatArray, values: FloatArray, ends: bool, cells: FloatArray, n_cells: int) -> int:
    """Add cells around local minima (at `ends`, too) to the first n_cells, in place of higher ones if room is short."""
    last = points.size - 1
    for k in range(0 if ends else 1, points.size if ends else last):
        before, after = max(k - 1, 0), min(k + 1, last)
        if values[before] >= values[k] and (k == last or values[after] > values[k]):
            place = n_cells
            if n_cells < cells.shape[0]:
                n_cells += 1
            else:
                place = 1 + int(np.argmax(cells[1:, VALUE]))
                if not values[k] < cells[place, VALUE]:
                    continue
            if points[before] > points[after]:
                before, after = after, before
            _write_cell(cells[place], points[before], points[after], points[k], values[k])
            cells[place, AT_LOW] = values[before] if before != k else math.inf
            cells[place, AT_HIGH] = values[after] if after != k else math.inf
    return n_cells


@kernel
def _write_cell(cell: FloatArray, low: float, high: float, lowest: float, value: float) -> None:
    cell[LOW], cell[HIGH], cell[AT_LOW], cell[AT_HIGH] = low, high, math.inf, math.inf
    cell[LOWEST], cell[VALUE], cell[MINIMISER] = lowest, value, math.nan


@kernel
def _search(every: _Sorted, low: float, high: float, options: Options, work: RobustWork) -> Start:
    """The minimiser of the objective: the best of the local minima that the scan saw, or where Brent's method ends.

    The first cell is the full interval. It is searched where the scan is coarse (and the answer never worse than
    Brent's method alone would find), or has seen no minimum. In long columns the minima are found on the sample, and
    those that may be the lowest are refined on all values.
    """
    cells, n, first = work.cells, every.column.n, 0
    _write_cell(cells[0], low, high, low, -math.inf)
    scan, xtol, limit, widest = GridScan(1, 0, True), CELLWISE_XTOL, math.inf, 0.0
    if options.search == GLOBAL:
        xtol = _FINE_XTOL
        sample = _sampled(every, work) if n > SAMPLE else every
        scan = _scan(sample, low, high, options, work)
        first = int(scan.n_cells > 1 and _by_lanes(every, options))
        if n > _ALL:
            coarse = _descend(sample, cells[first : scan.n_cells], _COARSE_XTOL, limit, widest, options, work.grid)
            _close_in(cells[first : scan.n_cells])
            scan = GridScan(scan.n_cells, scan.n_eval + coarse.n_eval, scan.inside)
            limit, widest = coarse.value + _MARGIN, _WIDEST
    cells = cells[first : scan.n_cells]
    if first:
        limit = np.min(cells[:, VALUE]) + _RIVAL
    best = _descend(every, cells, xtol, limit, widest, options, work.grid)
    n_rivals = 0
    for k in range(cells.shape[0]):
        n_rivals += abs(cells[k, MINIMISER] - best.lmbda) > _APART and cells[k, VALUE] <= best.value + _MARGIN
    return Start(best.lmbda, scan.n_eval + best.n_eval, n_rivals, scan.inside)


@kernel
def _close_in(cells: FloatArray) -> None:
    """Cells around the minima found in them."""
    for k in range(cells.shape[0]):
        x = cells[k, MINIMISER]
        _write_cell(cells[k], x - _REACH, x + _REACH, x, cells[k, VALUE] if x == x else math.inf)


@kernel
def _descend(
    at: _Sorted, cells: FloatArray, xtol: float, limit: float, widest: float, options: Options, grid: FloatArray
) -> LocalMinimum:
    """The lowest of the minima in the cells that are not higher than `limit`, nor much higher than one found."""
    best = LocalMinimum(math.nan, math.inf, 0)
    n_eval, lowest = 0, -1
    for k in range(cells.shape[0]):
        if cells[k, VALUE] <= min(limit, best.value + _RIVAL) and not _is_known(cells, k):
            narrowed = _by_lanes(at, options) and cells[k, VALUE] > -math.inf
            if narrowed:
                found = _narrowed(at, cells[k], max(xtol, _COARSE_XTOL), options, grid)
            else:
                found = _minimum(at, cells[k, LOW], cells[k, HIGH], xtol, widest, options)
            cells[k, VALUE], cells[k, MINIMISER] = found.value, found.lmbda
            n_eval += found.n_eval
            if found.value < best.value or best.lmbda != best.lmbda:
                best, lowest = found, k if narrowed else -1
    if lowest >= 0:  # the coarse search was cheap, and tells which cell is worth the fine one
        best = _narrowed(at, cells[lowest], xtol, options, grid)
        cells[lowest, VALUE], cells[lowest, MINIMISER] = best.value, best.lmbda
        n_eval += best.n_eval
    return LocalMinimum(best.lmbda, best.value, n_eval)


@kernel
def _minimum(at: _Sorted, low: float, high: float, xtol: float, widest: float, options: Options) -> LocalMinimum:
    """Brent's method in an interval; again in one 3 times as wide, up to `widest`, while the result is at an end."""
    n_eval = 0
    while True:
        state = brent_start(low, high, xtol, _MAX_EVAL)
        while state.status == RUNNING:
            state = brent_step(state, _objective(at, state.x, options))
        n_eval += state.n_eval
        width = high - low
        if width >= widest or min(state.x - low, high - state.x) >= 2.0 * xtol:
            return LocalMinimum(state.x, state.fun, n_eval)
        low, high = low - width, high + width


class _Bracket(NamedTuple):
    """The lowest point known, its neighbours, and the objective there."""

    low: float
    x: float
    high: float
    at_low: float
    value: float
    at_high: float


@kernel
def _narrowed(at: _Sorted, cell: FloatArray, xtol: float, options: Options, grid: FloatArray) -> LocalMinimum:
    """A minimum in a cell, LANES points at a time: evenly spaced, or about the minimum of a parabola.

    Where the parabola misleads, as at a kink, it is taken every other time only.
    """
    points, values = grid[0, :LANES], grid[1, :LANES]
    around = _Bracket(cell[LOW], cell[LOWEST], cell[HIGH], cell[AT_LOW], cell[VALUE], cell[AT_HIGH])
    if not abs(around.value) < math.inf:
        around = _Bracket(cell[LOW], cell[LOW], cell[HIGH], math.inf, math.inf, math.inf)
    n_eval, parabolic = 0, around.at_low + around.at_high < math.inf and around.high - around.low <= _WIDE
    while n_eval < _MAX_EVAL and around.high - around.low > 2.0 * xtol:
        width = around.high - around.low
        if parabolic:
            _points_about_vertex(around, xtol, points)
        else:
            for k in range(LANES):
                points[k] = around.low + width * (k + 1.0) / (LANES + 1.0)
        best = _evaluate(at, points, values, options)
        n_eval += LANES
        around = _tightened(around, points, values, best)
        quick = around.high - around.low <= _EVENLY * width
        parabolic = (quick or not parabolic) and around.at_low + around.at_high < math.inf
    cell[LOW], cell[LOWEST], cell[HIGH] = around.low, around.x, around.high
    cell[AT_LOW], cell[VALUE], cell[AT_HIGH] = around.at_low, around.value, around.at_high
    return LocalMinimum(around.x, around.value, n_eval)


@kernel
def _points_about_vertex(around: _Bracket, xtol: float, points: FloatArray) -> None:
    """Points on both sides of the minimum of the parabola through three points, ever closer to it."""
    from_low, from_high = around.x - around.low, around.x - around.high
    p, q = from_low * (around.value - around.at_high), from_high * (around.value - around.at_low)
    vertex = around.x - 0.5 * (from_low * p - from_high * q) / (p - q) if p != q else around.x
    left, right = vertex - around.low, around.high - vertex
    for k in range(3):
        points[k], points[LANES - 1 - k] = vertex - _PARTS[k] * left, vertex + _PARTS[k] * right
    points[3], points[4] = vertex - min(_CLOSE * xtol, _PARTS[3] * left), vertex + min(_CLOSE * xtol, _PARTS[3] * right)


@kernel
def _tightened(around: _Bracket, points: FloatArray, values: FloatArray, best: int) -> _Bracket:
    """The lowest of the old and the new points, and the nearest on both sides."""
    low, x, high, at_low, value, at_high = around
    if values[best] <= value:
        if x < points[best] and value < math.inf:
            low, at_low = x, value
        elif x > points[best] and value < math.inf:
            high, at_high = x, value
        x, value = points[best], values[best]
    for k in range(points.size):
        if low < points[k] < x:
            low, at_low = points[k], values[k]
        elif x < points[k] < high:
            high, at_high = points[k], values[k]
    return _Bracket(low, x, high, at_low, value, at_high)


@kernel
def _is_known(cells: FloatArray, k: int) -> bool:
    """Whether an earlier search ended in this cell, no higher than the cell's own value."""
    for j in range(k):
        if cells[k, LOW] <= cells[j, MINIMISER] <= cells[k, HIGH] and cells[j, VALUE] <= cells[k, VALUE]:
            return True
    return False


# --- reweighting --------------------------------------------------------------------------------------


@kernel
def _kept(at: _Sorted, lmbda: float, rule: int, options: Options) -> Kept:
    """The best window, or the values with ``|psi - loc| <= cutoff scale``; psi of all values stays in `at.y`."""
    transform_sorted(at.column, lmbda, rule, at.y)
    y = at.y[: at.column.n]
    if options.criterion == TRIMMED:
        size = _window_size(y.size, options.fraction)
        start = _best_window(at, lmbda, size)[0]
        return Kept(start, start + size, math.nan, math.nan)
    estimate = _huber(y, options.criterion)
    reach = options.cutoff * estimate.scale
    if not 0.0 < reach < math.inf:
        return Kept(0, 0, estimate.loc, estimate.scale)
    start = position_of(y, estimate.loc, -reach, 0)
    # the smallest number above reach: those at the cut-off itself are kept
    stop = position_of(y, estimate.loc, reach * (1.0 + EPS), y.size)
    return Kept(start, stop, estimate.loc, estimate.scale)


@kernel
def _refitted(
    at: _Sorted,
    values: FloatArray,
    family: int,
    prescaling: _Prescaling,
    lmbda0: float,
    options: Options,
    work: RobustWork,
    row: FloatArray,
) -> Kept:
    """Maximum likelihood on the values kept, alternating with the choice of what is kept; ends with their moments.

    `values` are what is fitted: their exponent times `power` is lambda of the column. The first cut is made on
    the rectified transform, on which outliers stand out. Every round raises the trimmed likelihood.
    """
    trimmed, power = options.criterion == TRIMMED, prescaling.power
    n_turns = _MAX_WINDOWS if trimmed else options.n_reweight
    last = Kept(0, 0, math.nan, math.nan)
    lmbda, status, n_eval = lmbda0, float(_OK), 0.0
    row[LMBDA], row[STATUS] = lmbda0 / power, status
    for turn in range(n_turns + 1):
        rectified = turn == 0 and n_turns > 0 and not trimmed
        kept = _kept(at, lmbda, options.rule if rectified else NOT_RECTIFIED, options)
        if kept.stop - kept.start < 2 or (kept.start == last.start and kept.stop == last.stop):
            break
        part = values[kept.start : kept.stop]
        given = row[LMBDA] if turn == n_turns and not trimmed else math.nan
        if not _fit_logs(at.column, kept, prescaling, lmbda, given, work.mle.scratch.moments[0], row):
            fit_column(part, part[:0], family, given, work.mle, row)
        n_eval += row[N_EVAL]
        if is_identity(row) or row[STATUS] < 0.0:
            break
        row[STATUS] = status = status if given == given else row[STATUS]
        lmbda, last = row[LMBDA] * power, kept
    row[N_EVAL] = n_eval
    return kept


@kernel
def _fit_logs(
    column: SortedColumn,
    kept: Kept,
    prescaling: _Prescaling,
    start: float,
    given: float,
    moments: FloatArray,
    row: FloatArray,
) -> bool:
    """Fit values of a short column by the logs there are, from `start` (of the prestandardised column), or at `given`.

    False where their sums would lose digits, or were not meant for so many values: they are to be fitted otherwise.
    """
    mirrored, power, first, last = column.below > 0.0, prescaling.power, kept.start, kept.stop
    if last - first >= ONE_PASS_MIN or (mirrored and not first < column.n_negative < last):
        return False
    units = LogUnits(1.0, 0.0, 0.0)
    if not mirrored:
        units = LogUnits(power, prescaling.divisor, log(prescaling.divisor))
    best = optimum_of_logs(column.logs[first:last], mirrored, units, start / power, given, moments)
    if best.status == _NOT_CERTIFIED:
        return False
    write_range(row, float(last - first), column.x[first], column.x[last - 1])
    write_fit(row, best, 0.0 if mirrored else 1.0, _ONE_PASS)
    return True


@kernel
def _restandardize(row: FloatArray, y: FloatArray, loc: float, scale: float) -> None:
    """Standardise by `loc` and `scale` of the transformed values instead of the mean and standard deviation of `y`."""
    mean = _mean(y)
    sd = 0.0
    for i in range(y.size):
        sd += (y[i] - mean) * (y[i] - mean)
    sd = math.sqrt(sd / y.size)
    shift, factor = (loc - mean) / sd, scale / sd
    row[LOC] += shift * row[SCALE]
    row[SCALE] *= factor
    row[INTERCEPT] = (row[INTERCEPT] - shift) / factor
    row[SLOPE] /= factor


# --- one column ---------------------------------------------------------------------------------------


@kernel
def fit_sorted(x: FloatArray, family: int, options: Options, work: RobustWork, row: FloatArray) -> None:
    """Fit one sorted column, NaN last, into a row of results."""
    n = _count(x)
    x = x[:n]
    status = _refusal(x, family)
    if status != _OK:
        _write_unfitted(x, status, row)
        return
    prescaling, column = _prestandardized(x, family, options.prestandardize, work)
    if prescaling.status != _OK:
        _write_unfitted(x, prescaling.status, row)
        return
    scores = work.scores[:n]
    if work.scores_of[0] != n:  # one table serves all columns of a length
        normal_scores(scores)
        work.scores_of[0] = n
    outward = (work.mle.spare, work.mle.split, work.mle.weight)
    every = _Sorted(column, scores, _mean(column.logs[:n]), work.y[: n + ROOM], work.lanes, outward)
    values = column.x[:n] if is_mirrored(family) else x
    low, high, n_eval = options.low, options.high, 0.0
    found, kept, widened = Start(math.nan, 0, 0, False), Kept(0, 0, math.nan, math.nan), True
    for _ in range(_MAX_FITS):
        found = _search(every, low, high, options, work)
        kept = _refitted(every, values, family, prescaling, found.lmbda, options, work, row)
        n_eval += found.n_eval + row[N_EVAL]
        if is_identity(row) or row[STATUS] < 0.0 or kept.stop - kept.start < 2:  # overflowed when prestandardised
            _write_unfitted(x, _UNREPRESENTABLE, row)
            return
        low, high, widened = _widened(low, high, row[LMBDA] * prescaling.power)
        if not (options.cellwise and widened):
            break
    row[N_EVAL] = n_eval
    if row[STATUS] == _OK and (not found.inside or (options.cellwise and widened)):
        row[STATUS] = _NOT_CERTIFIED
    _finish(x, every, prescaling, found, kept, options, row)


@kernel
def _widened(low: float, high: float, lmbda: float) -> tuple[float, float, bool]:
    """A wider interval where lambda ended close to an end, as in R, and whether it did."""
    margin = _END * (high - low)
    if lmbda - low < margin:
        return 1.0 + 2.0 * (low - 1.0), high, True
    if high - lmbda < margin:
        return low, 1.0 + 2.0 * (high - 1.0), True
    return low, high, False


@kernel
def _count(x: FloatArray) -> int:
    """How many values come before the NaN that end a sorted column."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) >> 1
        if x[middle] == x[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _refusal(x: FloatArray, family: int) -> int:
    """Why a sorted column cannot be fitted, or OK."""
    n = x.size
    if n == 0:
        return _EMPTY
    if x[0] == -math.inf or x[n - 1] == math.inf:
        return BAD_INFINITE
    if x[0] <= lowest(family):
        return BAD_NOT_POSITIVE
    return _CONSTANT if x[0] == x[n - 1] else _OK


@kernel
def _write_unfitted(x: FloatArray, status: int, row: FloatArray) -> None:
    n = x.size
    write_range(row, float(n), x[0] if n > 0 else math.nan, x[n - 1] if n > 0 else math.nan)
    write_identity(row, status)


@kernel
def _finish(
    x: FloatArray, every: _Sorted, prescaling: _Prescaling, found: Start, kept: Kept, options: Options, row: FloatArray
) -> None:
    """Complete a row: what concerns the column as a whole, and its location and scale by the estimator's rule."""
    n, n_kept = x.size, kept.stop - kept.start
    nll = row[NLL] + log(prescaling.divisor) if every.column.below > 0.0 else row[NLL]
    write_range(row, float(n), x[0], x[n - 1])
    row[NLL], row[LMBDA0], row[CENTER] = nll, found.lmbda / prescaling.power, prescaling.center
    row[DIVISOR] = prescaling.divisor if every.column.below > 0.0 else 1.0
    if row[STATUS] == _OK and found.n_rivals > 0:
        row[STATUS] = _MULTIMODAL
    if options.criterion == CARROLL:
        _restandardize(row, every.y[kept.start : kept.stop], kept.loc, kept.scale)
        return
    row[ROUTE] = _REFIT
    row[N_KEPT], row[KEPT_LOW], row[KEPT_HIGH] = n_kept, x[kept.start], x[kept.stop - 1]
    if options.cellwise:
        correction = math.sqrt(n_kept / (n_kept - 1.0))
        row[SCALE] *= correction
        row[INTERCEPT] /= correction
        row[SLOPE] /= correction
    if options.criterion == QQ:
        reach = options.cutoff * kept.scale
        lmbda = row[LMBDA] * prescaling.power
        row[KEPT_LOW] = _limit(x, kept.start, _original(kept.loc - reach, lmbda, every.column.below, prescaling), -1.0)
        row[KEPT_HIGH] = _limit(
            x, kept.stop - 1, _original(kept.loc + reach, lmbda, every.column.below, prescaling), 1.0
        )


@kernel
def _original(y: float, lmbda: float, below: float, prescaling: _Prescaling) -> float:
    """The value of the column whose transform is y; the end of the range beyond it."""
    at = log_at(y, lmbda, below)
    if below == 0.0:
        return prescaling.divisor * exp(prescaling.power * at)
    return prescaling.center + prescaling.divisor * value_at(at, below)


@kernel
def _limit(x: FloatArray, last: int, bound: float, side: float) -> float:
    """A bound that keeps x[last] but, however it was rounded, not its neighbour on that side (-1 or 1)."""
    if not (bound - x[last]) * side >= 0.0:
        return float(x[last])
    beyond = last + int(side)
    if 0 <= beyond < x.size and not (x[beyond] - bound) * side > 0.0:
        return float(x[last])
    return bound


# --- entry --------------------------------------------------------------------------------------------

_ROBUST_WORK = named_tuple(RobustWork, WORK, COLUMN, COLUMN, COLUMN, COLUMN, COUNTS, ROWS, ROWS, ROWS, COLUMN)


@entry((ROWS, INTEGER, COLUMN, _ROBUST_WORK, ROWS))
def fit_sorted_columns(
    columns: FloatArray, family: int, options: FloatArray, work: RobustWork, out: FloatArray
) -> None:
    """Fit the rows of `columns`, each a sorted column of the user's matrix; `options` holds the fields of `Options`."""
    w, columns, out = work, borrowed(columns), borrowed(out)
    each = RobustWork(
        borrowed_work(w.mle), borrowed(w.values), borrowed(w.logs), borrowed(w.y), borrowed(w.scores), w.scores_of,
        borrowed(w.sample), borrowed(w.grid), borrowed(w.cells), borrowed(w.lanes),
    )  # fmt: skip
    o = options
    asked = Options(
        int(o[0]), int(o[1]), int(o[2]), int(o[3]), o[4] > 0.0, o[5], o[6], o[7], int(o[8]), o[9]
    )  # fmt: skip
    for j in range(columns.shape[0]):
        fit_sorted(columns[j], family, asked, each, out[j])


def new_robust_work(n: int) -> RobustWork:
    """The arrays of `RobustWork` for columns of up to `n` values."""
    values, logs, y, scores = (np.ones(n + ROOM) for _ in range(4))
    sample, grid, cells = (
        np.ones((4, SAMPLE + ROOM)),
        np.empty((2, _ROOM_FOR_SCAN)),
        np.empty((_MAX_CELLS, 7)),
    )
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, np.ones(LANES * SAMPLE)
    )
