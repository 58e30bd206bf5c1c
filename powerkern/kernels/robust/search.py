"""The start of a robust fit: the lambda that minimises an estimator's objective over all of a range.

A scan on a few order statistics finds the cells of local minima (`find_start`); these are narrowed, by Brent's method
or at LANES points at a time, and once more on all values. Or Brent's method searches the full interval, as in R.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    LANES,
    for_none,
    kernel,
    reduction,
    widest_vectors,
)
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp_log import exp, log
from powerkern.kernels.likelihood.scratch import Work, new_work
from powerkern.kernels.optimize.minimize import RUNNING, brent_start, brent_step
from powerkern.kernels.results import N_RESULTS
from powerkern.kernels.robust.huber import CELLWISE_BETA, huber_likelihood_of, one_step_of
from powerkern.kernels.robust.loc_scale import LocScale
from powerkern.kernels.robust.order_statistics import SLACK
from powerkern.kernels.robust.qq import bisquare_objective_of, sampled_score, weighted_bisquare_of
from powerkern.kernels.robust.qq_lanes import qq_objectives
from powerkern.kernels.robust.qq_search import MOST_POINTS, CellWork, new_cell_work, qq_objective, search_cells
from powerkern.kernels.robust.reweighting import Eight, new_eight
from powerkern.kernels.robust.weights import (
    Counts,
    CountsWork,
    Nodes,
    counts_of,
    new_counts_work,
    part_of,
    position_at,
    position_from_above,
    total_of,
)
from powerkern.kernels.transforms.rectified import (
    CELLWISE,
    NOT_RECTIFIED,
    ROOM,
    SortedColumn,
    rank_of,
    transform_sorted,
)

# what is minimised over lambda: the bisquare QQ distance, Carroll's likelihood, the trimmed likelihood
QQ, CARROLL, TRIMMED = range(3)
# how a column is brought to a common scale
RAW, MEDIAN, MAD = range(3)
# how lambda is searched for
GLOBAL, BRENT = range(2)
#: Number of reweighting steps: as many as it takes until the values kept no longer change.
UNTIL_SETTLED = -1

#: Huber's constant for location and scale.
HUBER_K = 1.5
#: R's default tolerance of optimize(): the fourth root of the rounding unit.
CELLWISE_XTOL = 0.0001220703125

#: Order statistics used by the scan; longer columns than ALL are searched on them, too, before all values are.
SAMPLE, ALL = 128, 512
#: Spacing of the scan, and by how much the second grid is finer.
_STEP, _FINER = 0.5, 4.0
#: Points of the second grid there, outwards from an end.
_OUTWARD_LANES = 16
#: Cells wider than this may hold several minima: the search in one begins with points that are evenly spaced.
_WIDE = 0.13
#: Where such a search looks at first about the minimum that is expected, and later: parts of the way to either end of
#: the interval; and what is left of an interval by points that are evenly spaced.
_PARTS = (-0.5, -0.18, -0.07, -0.025, 0.025, 0.07, 0.18, 0.5)
_CLOSER = (-0.4, -0.1, -0.03, -0.002, 0.002, 0.03, 0.1, 0.4)
_EVENLY = 2.0 / (LANES + 1.0)
#: Cells of Carroll's search as narrow as this are not divided; and what is taken for the most that they may hide.
_NARROW, _HIDDEN = 0.03, 0.01
#: It may end where the minima of two cubics differ by no more than this, in lambda and the objective, and curvatures
#: beside each other by no more than that share of them.
_OFF, _SURE, _STEADY = 5e-6, 3e-10, 0.15
#: Maximum number of points of a scan, and into how many parts its steps are divided with weights, LANES at a time.
_MAX_SCAN, _WEIGHTED_PARTS = 64, 4
#: Points of the second grid: about the lowest point, or outwards in doubling steps.
_N_SECOND = 13
#: Local minima that are followed up.
_MAX_CELLS = 16
#: Local minima this close to the lowest make the objective multimodal if they are that far from it in lambda; those on
#: the sample are refined on all values.
_MARGIN, _APART = 0.02, 0.25
#: Points of the scan this close to it are followed up.
_RIVAL = 0.1
#: Where a second start is looked for at first: how far above and below the first.
_ABOUT = (0.125, 0.0, -0.125, -0.25, -0.375, -0.5, -0.75, -1.0)
#: Tolerances on the sample and on all values, and half the interval that is searched on all values,
#: and the widest it grows to.
_COARSE_XTOL, _FINE_XTOL, _REACH, _WIDEST = 2e-3, 1e-5, 0.04, 4.0
_MAX_EVAL = 100


# a cell: its ends and the objective there (inf: unknown), its lowest point known and the objective there, where its
# minimum was found (NaN: not searched), and what that is at least
LOW, HIGH, AT_LOW, AT_HIGH, LOWEST, VALUE, MINIMISER, FLOOR = range(8)


class Options(NamedTuple):
    """What `fit_sorted` is asked to do; `low`, `high` bound the search in lambda of the prestandardised column."""

    criterion: int
    rule: int  #: change points of `kernels.transforms.rectified`; BOTH: those, or the quartile that lambda flattens
    prestandardize: int
    search: int
    cellwise: bool  #: R's conventions: the interval is searched as it is and widened afterwards; n - 1
    low: float
    high: float
    cutoff: float  #: values further from the center are left out
    n_reweight: int
    adaptive: bool  #: steps after the first cut off where there are more values than of a normal sample, or far out
    fraction: float  #: of the values that the trimmed likelihood keeps
    c: float  #: constant of the bisquare distance
    lower_tail: float  #: shares of the values beyond the change points
    upper_tail: float
    first_rule: int  #: change points where the first weights are set


class RobustWork(NamedTuple):
    """Scratch: of `mle`, four arrays of the column's length, small ones, and the sizes that the scores are for."""

    mle: Work
    values: FloatArray
    logs: FloatArray
    y: FloatArray
    scores: FloatArray
    scores_of: npt.NDArray[np.int64]  #: the length of the column that the scores are for
    sample: FloatArray  #: (5, SAMPLE + ROOM): values, logs, scores, y, ones
    #: (5, MOST_POINTS): points of the scan, values there, and what they are likely near them at least; Carroll's
    #: search: location and scale there
    grid: FloatArray
    cells: FloatArray  #: (_MAX_CELLS, 8): where local minima are, see LOW ...
    lanes: FloatArray  #: LANES * ALL: transforms of a short column at LANES lambdas
    trial: FloatArray  #: N_RESULTS: a fit beside that of the column
    counts: CountsWork  #: of a column with weights
    sample_counts: CountsWork
    search: CellWork  #: for columns of up to ALL values
    eight: Eight  #: the same


class Sorted(NamedTuple):
    """What an objective is evaluated on: a column, its normal scores, its mean log, and room for its transform.

    The type of `counts`, weights or None, says which code is compiled; with weights, the scores have nodes.
    """

    column: SortedColumn
    counts: Counts | None
    scores: FloatArray | Nodes
    jacobian: float
    y: FloatArray  #: as long as the arrays of `column`
    lanes: FloatArray  #: see `RobustWork`
    outward: tuple[FloatArray, FloatArray, FloatArray]


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
    value: float  #: of the objective


def new_robust_work(n: int, weighted: bool = False) -> RobustWork:
    """The arrays of `RobustWork` for columns of up to `n` values, and for weights."""
    values, logs, y, scores = (np.ones(n + ROOM) for _ in range(4))
    sample, grid, cells = (
        np.ones((5, SAMPLE + ROOM)),
        np.empty((5, MOST_POINTS)),
        np.empty((_MAX_CELLS, 8)),
    )
    counts, sample_counts = new_counts_work(n if weighted else 0), new_counts_work(SAMPLE if weighted else 0)
    return RobustWork(
        new_work(n), values, logs, y, scores, np.full(1, -1), sample, grid, cells, np.ones(LANES * ALL),
        np.empty(N_RESULTS), counts, sample_counts, new_cell_work(ALL), new_eight(min(n, ALL)),
    )  # fmt: skip


@kernel
def with_rule(o: Options, rule: int) -> Options:
    """The same with other change points."""
    first_rule = o.first_rule if o.first_rule == NOT_RECTIFIED else rule
    return Options(
        o.criterion, rule, o.prestandardize, o.search, o.cellwise, o.low, o.high, o.cutoff, o.n_reweight, o.adaptive,
        o.fraction, o.c, o.lower_tail, o.upper_tail, first_rule,
    )  # fmt: skip


@kernel
def change_ranks(counts: Counts | None, n: int, options: Options) -> tuple[int, int]:
    """Which of n order statistics, from 0, the change points are, or are found from."""
    if counts is not None:
        return position_at(counts, options.lower_tail), position_from_above(counts, options.upper_tail)
    return rank_of(n, options.lower_tail), n - 1 - rank_of(n, options.upper_tail)


@reduction
def mean_of(x: FloatArray, w: FloatArray | None) -> float:
    """The mean of values, with their weights or without."""
    widest_vectors()
    total, weight = 0.0, 0.0
    for i in range(x.size):
        if w is None:
            total += x[i]
        else:
            total += w[i] * x[i]
            weight += w[i]
    return total / (x.size if w is None else weight)


# --- objectives ---------------------------------------------------------------------------------------


@kernel
def huber_of(y: FloatArray, counts: Counts | None, criterion: int) -> LocScale:
    """One step from median and MAD: iterated to the end, RewML resists fewer outliers.

    Carroll's likelihood [2]_ has the density that is normal in the center and falls off more slowly beyond.
    """
    if criterion == CARROLL:
        return huber_likelihood_of(y, counts, HUBER_K)
    return one_step_of(y, counts, HUBER_K, CELLWISE_BETA)


@kernel
def objective(at: Sorted, lmbda: float, options: Options) -> float:
    """What the estimator minimises; NaN where it is not defined."""
    transform_sorted(at.column, lmbda, options.rule, at.y)
    y = at.y[: at.column.n]
    if options.criterion == TRIMMED:
        return best_window(at.counts, at, lmbda, options.fraction).value
    estimate = huber_of(y, at.counts, options.criterion)
    if options.criterion == CARROLL:
        return _carroll_value(at, lmbda, estimate.scale)
    if not estimate.scale > 0.0:
        return math.nan
    return _distance(at.counts, y, at.scores, estimate, options.c)


@kernel
def _carroll_value(at: Sorted, lmbda: float, scale: float) -> float:
    return log(scale) - (lmbda - 1.0) * at.jacobian if scale > 0.0 else math.nan


@kernel
def _plain_distance(counts: None, y: FloatArray, scores: FloatArray, estimate: LocScale, c: float) -> float:
    return bisquare_objective_of(y, scores, estimate.loc, estimate.scale, c)


@for_none(_plain_distance)
def _distance(counts: Counts, y: FloatArray, nodes: Nodes, estimate: LocScale, c: float) -> float:
    """The bisquare distance from normal scores."""
    return weighted_bisquare_of(y, nodes, counts.total, estimate.loc, estimate.scale, c)


class Window(NamedTuple):
    """Values from `start` to `stop`, without a weight of the first and of the last, and the trimmed likelihood."""

    start: int
    stop: int
    below: float
    above: float
    value: float


@kernel
def window_size(n: float, fraction: float) -> float:
    """How many of n values a fraction is: more than half of them. Between whole numbers it is interpolated."""
    whole = float(np.floor(n))
    size = _whole_window(whole, fraction)
    return size if whole == n else size + (n - whole) * (_whole_window(whole + 1.0, fraction) - size)


@kernel
def _whole_window(n: float, fraction: float) -> float:
    return min(max(float(np.ceil(fraction * n)), float(np.floor(0.5 * n)) + 1.0), n)


@kernel
def _best_plain_window(counts: None, at: Sorted, lmbda: float, fraction: float) -> Window:
    size = int(window_size(float(at.column.n), fraction))
    start, value = _best_start(at, lmbda, size)
    return Window(start, start + size, 0.0, 0.0, value)


@for_none(_best_plain_window)
def best_window(counts: Counts, at: Sorted, lmbda: float, fraction: float) -> Window:
    """The consecutive values, a fraction of all, with the largest likelihood.

    Every window has those in the middle in common. Sums about their mean, cumulated outwards from there, only grow:
    nothing is subtracted, and infinite values spoil only the windows that they are in.
    """
    return _best_weighted_window(at, counts, lmbda, counts.unit * window_size(counts.total / counts.unit, fraction))


@kernel
def _best_start(at: Sorted, lmbda: float, size: int) -> tuple[int, float]:
    """Start and objective of the best `size` consecutive values."""
    n, y, logs = at.column.n, at.y, at.column.logs
    first, last = n - size, size
    center = mean_of(y[first:last], None)
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


@kernel
def _best_weighted_window(at: Sorted, counts: Counts, lmbda: float, size: float) -> Window:
    """Windows of a given weight that begin or end between two values: those in between have a lower likelihood.

    For mean and mean square are linear between, so that the log of the variance is concave.
    """
    n, y, before = at.column.n, at.y, counts.before
    tolerance, end = SLACK * counts.total, 0.0
    middle = counts.lower
    first, last = y[position_at(counts, 1.0 - size / counts.total)], y[position_at(counts, size / counts.total)]
    unit = 1.0 / (last - first) if last > first else 1.0
    _cumulate_outwards(at, counts, middle, unit)
    best, right = Window(0, n, 0.0, 0.0, math.inf), (0.0, 0.0, 0.0)
    i, j, start = 0, 0, 0.0
    while True:
        while i < middle and before[i + 1] <= start + tolerance:
            i += 1
        end = start + size
        while j < n - 1 and before[j + 1] < end - tolerance:
            if j > middle:
                right = _added(right, at, counts.w[j], j, middle, unit)
            j += 1
        total = right if j <= middle else _added(right, at, end - before[j], j, middle, unit)
        if i < middle:
            left = (at.outward[0][i + 1], at.outward[1][i + 1], at.outward[2][i + 1])
            left = _added(left, at, before[i + 1] - start, i, middle, unit)
            total = (total[0] + left[0], total[1] + left[1], total[2] + left[2])
        mean = total[0] / size
        variance = total[1] / size - mean * mean
        if variance > 0.0:
            value = 0.5 * log(variance) - (lmbda - 1.0) * (at.column.logs[middle] + total[2] / size) - log(unit)
            if value < best.value:
                below, above = start - before[i], before[j + 1] - end
                below, above = below if below > tolerance else 0.0, above if above > tolerance else 0.0
                best = Window(i, j + 1, below, above, value)
        following = j
        while following < n and before[following + 1] <= end + tolerance:  # weights may be smaller than the tolerance
            following += 1
        if following == n:
            return best
        start = min(before[i + 1], before[following + 1] - size)


@kernel
def _cumulate_outwards(at: Sorted, counts: Counts, middle: int, unit: float) -> None:
    """Sums from each value up to the one in the middle, to `at.outward`."""
    left, left_squares, left_jacobian = at.outward
    left[middle] = left_squares[middle] = left_jacobian[middle] = 0.0
    for i in range(middle - 1, -1, -1):
        inner = (left[i + 1], left_squares[i + 1], left_jacobian[i + 1])
        left[i], left_squares[i], left_jacobian[i] = _added(inner, at, counts.w[i], i, middle, unit)


@kernel
def _added(
    sums: tuple[float, float, float], at: Sorted, weight: float, i: int, middle: int, unit: float
) -> tuple[float, float, float]:
    """Sum, sum of squares, and of logs, all relative to the value in the middle, with value i of that weight."""
    d = (at.y[i] - at.y[middle]) * unit
    step = weight * d
    return sums[0] + step, sums[1] + step * d, sums[2] + weight * (at.column.logs[i] - at.column.logs[middle])


# --- search -------------------------------------------------------------------------------------------


@kernel
def sampled(every: Sorted, options: Options, work: RobustWork) -> Sorted:
    """SAMPLE evenly spaced order statistics of a column, with their scores."""
    values, logs, y = work.sample[0], work.sample[1], work.sample[3]
    counts, scores = _sample_scores(every.counts, every, work)
    n_negative = 0
    for k in range(SAMPLE):
        i = _sample_position(every.counts, every.column.n, k)
        values[k], logs[k] = every.column.x[i], every.column.logs[i]
        n_negative += i < every.column.n_negative
    lower, upper = change_ranks(None, SAMPLE, options)
    column = SortedColumn(values, logs, SAMPLE, n_negative, every.column.below, lower, upper)
    return Sorted(column, counts, scores, mean_of(logs[:SAMPLE], None), y, every.lanes, every.outward)


@kernel
def _sample_position(counts: Counts | None, n: int, k: int) -> int:
    """Which value of a column is number k of the sample."""
    if counts is None:
        return ((2 * k + 1) * n) // (2 * SAMPLE)
    return position_at(counts, (k + 0.5) / SAMPLE)


@kernel
def _plain_sample_scores(counts: None, every: Sorted, work: RobustWork) -> tuple[None, FloatArray]:
    scores = work.sample[2]
    for k in range(SAMPLE):
        scores[k] = every.scores[_sample_position(None, every.column.n, k)]
    return None, scores[:SAMPLE]


@for_none(_plain_sample_scores)
def _sample_scores(counts: Counts, every: Sorted, work: RobustWork) -> tuple[Counts | None, FloatArray | Nodes]:
    """What the sample has instead of the column's counts and scores: each value counts once."""
    of_sample = counts_of(work.sample[4, :SAMPLE], work.sample_counts)
    nodes = work.sample_counts.nodes
    row, score, spread, weight = nodes.row, nodes.score, nodes.spread, nodes.weight
    for k in range(SAMPLE):
        row[k], spread[k], weight[k] = k, 0.0, of_sample.w[k]
        score[k] = sampled_score(counts, (k + 0.5) / SAMPLE)
    return of_sample, Nodes(row[:SAMPLE], score[:SAMPLE], spread[:SAMPLE], weight[:SAMPLE])


@kernel
def _scan(at: Sorted, low: float, high: float, options: Options, work: RobustWork) -> GridScan:
    """Local minima of the objective on a grid, as cells after the first, and on a second one.

    That is finer, about the lowest point (where cells are divided there is no need of it); or it goes on outwards from
    the end of the interval where the lowest point is, in doubling steps: R's conventions take the interval as it is.
    """
    side_by_side, divided = by_lanes(at, options), options.criterion == CARROLL
    if side_by_side:
        n_points = _scan_points(at.counts, at.scores, at, low, high, options, work)
    elif divided:
        n_points = _divided_points(at, low, high, options, work)
    else:
        n_points = _on_grid(at, low, high, 1, options, work)
    points, values, floors = work.grid[0, :n_points], work.grid[1, :n_points], work.grid[2, :n_points]
    best = _lowest(values)
    n_cells = _add_minima(points, values, floors, options.cellwise, work.cells, 1)
    lowest, origin = values[best], points[best]
    outwards = not options.cellwise and best in (0, n_points - 1)
    if (side_by_side or divided) and not outwards:
        return GridScan(n_cells, n_points, True)
    step = (high - low) / _n_steps(low, high) * (1.0 if best > 0 else -1.0)
    n_second = _OUTWARD_LANES if side_by_side else _N_SECOND
    points, values, floors = work.grid[0, :n_second], work.grid[1, :n_second], work.grid[2, :n_second]
    for k in range(n_second):
        if side_by_side:  # from inside on: the lowest may be between
            points[k] = origin + step * (2.0**k * 0.25 - 1.0 if k > 0 else -1.0)
        elif outwards:
            points[k] = origin + step * (2.0**k * 0.5 - 1.0)
        else:
            points[k] = min(max(origin + step * (k - n_second // 2) / _FINER, low), high)
    best = _evaluate(at, points, values, floors, options)
    n_cells = _add_minima(points, values, floors, False, work.cells, n_cells)
    inside = not outwards or 0 < best < n_second - 1 or values[best] > lowest
    return GridScan(n_cells, n_points + n_second, inside)


@kernel
def _lowest(values: FloatArray) -> int:
    best = 0
    for k in range(values.size):
        if values[k] < values[best]:
            best = k
    return best


@kernel
def _n_steps(low: float, high: float) -> int:
    return min(max(math.ceil((high - low) / _STEP), 2), _MAX_SCAN - 1)


@kernel
def _on_grid(at: Sorted, low: float, high: float, n_parts: int, options: Options, work: RobustWork) -> int:
    """Points of even steps, in `work.grid`, and how many."""
    last = _n_steps(low, high) * n_parts
    n_points = (last // LANES + 1) * LANES if by_lanes(at, options) else last + 1
    for k in range(n_points):
        work.grid[0, k] = low + (high - low) / last * min(k, last)
    _evaluate(at, work.grid[0, :n_points], work.grid[1], work.grid[2], options)
    return last + 1


@kernel
def _in_cells(
    counts: None, scores: FloatArray, at: Sorted, low: float, high: float, options: Options, work: RobustWork
) -> int:
    qq = qq_objective(at.column, scores, options.rule, HUBER_K, options.c, work.search)
    return search_cells(qq, low, high, work.grid, work.search)


@for_none(_in_cells)
def _scan_points(
    counts: Counts, scores: Nodes, at: Sorted, low: float, high: float, options: Options, work: RobustWork
) -> int:
    """Points, in `work.grid`, and how many: wherever the objective may be lowest; of even steps if there are counts."""
    return _on_grid(at, low, high, _WEIGHTED_PARTS, options, work)


@kernel
def _divided_points(at: Sorted, low: float, high: float, options: Options, work: RobustWork) -> int:
    """Points of even steps, and halfway between any two where Carroll's objective may be lowest; returns how many."""
    points, values, floors = work.grid[0], work.grid[1], work.grid[2]
    last, lowest = _n_steps(low, high), math.inf
    n = last + 1
    for k in range(n):
        points[k], floors[k] = low + (high - low) / last * k, -math.inf
        lowest = min(lowest, _write_carroll(at, k, options, work))
    n_before = 0
    while n_before < n:
        n_before, k = n, 0
        while k < n - 1 and n < MOST_POINTS:
            if floors[k] < math.inf and points[k + 1] - points[k] > _NARROW and _may_be_lower(at, k, lowest, work):
                for row in range(work.grid.shape[0]):
                    for i in range(n, k + 1, -1):
                        work.grid[row, i] = work.grid[row, i - 1]
                n += 1
                points[k + 1], floors[k + 1] = 0.5 * (points[k] + points[k + 2]), -math.inf
                lowest = min(lowest, _write_carroll(at, k + 1, options, work))
                k += 2
            else:
                floors[k] = math.inf  # it need not be looked at again
                k += 1
    for k in range(n):
        floors[k] = values[k] - _HIDDEN
    return n


@kernel
def _write_carroll(at: Sorted, k: int, options: Options, work: RobustWork) -> float:
    """Carroll's objective, location and scale at a point of `work.grid`; the objective is infinite if undefined."""
    grid = work.grid
    transform_sorted(at.column, grid[0, k], options.rule, at.y)
    estimate = huber_of(at.y[: at.column.n], at.counts, CARROLL)
    value = _carroll_value(at, grid[0, k], estimate.scale)
    grid[1, k] = value if value == value else math.inf
    grid[3, k], grid[4, k] = estimate.loc, estimate.scale
    return float(grid[1, k])


@kernel
def _may_be_lower(at: Sorted, k: int, lowest: float, work: RobustWork) -> bool:
    """Whether Carroll's objective may be lower than that between point k of `work.grid` and the next.

    In units of exp((lambda - 1) mean J), in which log(scale) is the objective, the distance of a value from the
    location is taken to lie between its distances at both ends. The scale is then at least that of the shorter ones.
    """
    grid, n = work.grid, at.column.n
    if not (grid[1, k] < math.inf and grid[1, k + 1] < math.inf):
        return True
    y, z = at.y, at.lanes[: at.column.x.size]
    transform_sorted(at.column, grid[0, k], NOT_RECTIFIED, y)
    transform_sorted(at.column, grid[0, k + 1], NOT_RECTIFIED, z)
    unit_y, unit_z = exp(grid[1, k] - lowest) / grid[4, k], exp(grid[1, k + 1] - lowest) / grid[4, k + 1]
    total = _pull_of_nearest(y[:n], z[:n], part_of(at.counts, 0, n), grid[3, k], grid[3, k + 1], unit_y, unit_z)
    return total <= total_of(at.counts, n) * math.erf(HUBER_K / math.sqrt(2.0))


@reduction
def _pull_of_nearest(
    y: FloatArray, z: FloatArray, w: FloatArray | None, center_y: float, center_z: float, unit_y: float, unit_z: float
) -> float:
    """Sum of u psi(u), u the distance closest to 0 between those of y and of z from their centers, in their units."""
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        u, v = (y[i] - center_y) * unit_y, (z[i] - center_z) * unit_z
        nearest = max(min(u, v), -max(u, v), 0.0)
        if w is None:
            total += nearest * min(nearest, HUBER_K)
        else:
            total += w[i] * nearest * min(nearest, HUBER_K)
    return total


@kernel
def by_lanes(at: Sorted, options: Options) -> bool:
    """Whether the objective is evaluated at LANES lambdas at once."""
    return at.column.n <= ALL and options.search == GLOBAL and options.criterion == QQ and options.rule != CELLWISE


@kernel
def _evaluate(at: Sorted, points: FloatArray, values: FloatArray, floors: FloatArray, options: Options) -> int:
    """The objective at all points, infinite where it is not defined, and what is likely near; returns the lowest."""
    best, side_by_side = 0, by_lanes(at, options)
    if side_by_side:
        rises = 0.0, 0.0
        qq_objectives(
            at.column, rises, at.counts, at.scores, options.rule, HUBER_K, options.c, points, at.lanes, values
        )
    for k in range(points.size):
        value = values[k] if side_by_side else objective(at, points[k], options)
        values[k] = value if value == value else math.inf
        floors[k] = values[k] - _RIVAL
        if values[k] < values[best]:
            best = k
    return best


@kernel
def _highest(cells: FloatArray) -> int:
    """The cell after the first with the largest value; NaN counts as the largest."""
    best = 1
    for k in range(2, cells.shape[0]):
        largest = cells[best, VALUE]
        if largest == largest and not cells[k, VALUE] <= largest:
            best = k
    return best


@kernel
def _add_minima(
    points: FloatArray, values: FloatArray, floors: FloatArray, ends: bool, cells: FloatArray, n_cells: int
) -> int:
    """Add cells around local minima (at `ends`, too) to the first n_cells, in place of higher ones if room is short."""
    last = points.size - 1
    for k in range(0 if ends else 1, points.size if ends else last):
        before, after = max(k - 1, 0), min(k + 1, last)
        if values[before] >= values[k] and (k == last or values[after] > values[k]):
            place = n_cells
            if n_cells < cells.shape[0]:
                n_cells += 1
            else:
                place = _highest(cells)
                if not values[k] < cells[place, VALUE]:
                    continue
            if points[before] > points[after]:
                before, after = after, before
            _write_cell(cells[place], points[before], points[after], points[k], values[k])
            cells[place, AT_LOW] = values[before] if before != k else math.inf
            cells[place, AT_HIGH] = values[after] if after != k else math.inf
            cells[place, FLOOR] = min(floors[max(k - 1, 0)], floors[k])
    return n_cells


@kernel
def _write_cell(cell: FloatArray, low: float, high: float, lowest: float, value: float) -> None:
    cell[LOW], cell[HIGH], cell[AT_LOW], cell[AT_HIGH] = low, high, math.inf, math.inf
    cell[LOWEST], cell[VALUE], cell[MINIMISER], cell[FLOOR] = lowest, value, math.nan, value


@kernel
def find_start(every: Sorted, low: float, high: float, options: Options, work: RobustWork) -> Start:
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
        divided = by_lanes(every, options) or (options.criterion == CARROLL and n <= ALL)
        sample = every if n <= SAMPLE or divided else sampled(every, options, work)
        scan = _scan(sample, low, high, options, work)
        first = int(scan.n_cells > 1 and (by_lanes(sample, options) or options.criterion == CARROLL))
        for k in range(1, scan.n_cells):
            limit = min(limit, cells[k, VALUE])
        if n > ALL:
            coarse = _descend(sample, cells[first : scan.n_cells], _COARSE_XTOL, limit, _MARGIN, widest, options, work)
            _close_in(cells[first : scan.n_cells])
            scan = GridScan(scan.n_cells, scan.n_eval + coarse.n_eval, scan.inside)
            limit, widest = coarse.value, _WIDEST
    cells = cells[first : scan.n_cells]
    best = _descend(every, cells, xtol, limit, 0.0, widest, options, work)
    n_rivals = 0
    for k in range(cells.shape[0]):
        where = cells[k, MINIMISER] if cells[k, MINIMISER] == cells[k, MINIMISER] else cells[k, LOWEST]
        n_rivals += abs(where - best.lmbda) > _APART and cells[k, VALUE] <= best.value + _MARGIN
    return Start(best.lmbda, scan.n_eval + best.n_eval, n_rivals, scan.inside, best.value)


@kernel
def is_lower_below(at: Sorted, lmbda: float, options: Options, work: RobustWork) -> bool:
    """Whether the objective is lower at one of a few points below lmbda than there and a little above."""
    points, values, floors = work.grid[0, :LANES], work.grid[1, :LANES], work.grid[2, :LANES]
    for k in range(LANES):
        points[k] = lmbda + _ABOUT[k]
    return _evaluate(at, points, values, floors, options) > 1


@kernel
def _close_in(cells: FloatArray) -> None:
    """Cells around the minima found in them."""
    for k in range(cells.shape[0]):
        x = cells[k, MINIMISER]
        value = cells[k, VALUE] if x == x else math.inf
        _write_cell(cells[k], x - _REACH, x + _REACH, x, value)
        cells[k, FLOOR] = value - _MARGIN


@kernel
def _descend(
    at: Sorted,
    cells: FloatArray,
    xtol: float,
    limit: float,
    margin: float,
    widest: float,
    options: Options,
    work: RobustWork,
) -> LocalMinimum:
    """The lowest of the minima in the cells that may be lower than `limit` and one found, give or take a margin."""
    best = LocalMinimum(math.nan, math.inf, 0)
    n_eval = 0
    for k in range(cells.shape[0]):
        bound = min(limit, best.value) + margin
        if cells[k, FLOOR] <= bound and not _is_known(cells, k):
            if by_lanes(at, options) and cells[k, VALUE] > -math.inf:
                found = _narrowed(at, cells[k], xtol, bound, options, work.grid)
            else:
                found = _minimum(at, cells[k, LOW], cells[k, HIGH], xtol, widest, options)
            cells[k, VALUE], cells[k, MINIMISER] = found.value, found.lmbda
            n_eval += found.n_eval
            if found.value < best.value or best.lmbda != best.lmbda:
                best = found
    return LocalMinimum(best.lmbda, best.value, n_eval)


@kernel
def _minimum(at: Sorted, low: float, high: float, xtol: float, widest: float, options: Options) -> LocalMinimum:
    """Brent's method in an interval; again in one 3 times as wide, up to `widest`, while the result is at an end."""
    n_eval = 0
    while True:
        state = brent_start(low, high, xtol, _MAX_EVAL)
        while state.status == RUNNING:
            state = brent_step(state, objective(at, state.x, options))
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
def _narrowed(
    at: Sorted, cell: FloatArray, xtol: float, bound: float, options: Options, grid: FloatArray
) -> LocalMinimum:
    """A minimum in a cell, LANES points at a time: about where it is expected, or evenly spaced.

    The search ends at the minimum of a cubic through four points if that is good; or where the neighbors of the lowest
    point are `xtol` from it, or the objective is not going to be as low as `bound`. Where a parabola misleads, it is
    taken every other time only. What the scan found in a cell says where to look, and is looked at again: it may be in
    float32.
    """
    points, values, floors = grid[0, :LANES], grid[1, :LANES], grid[2, :LANES]
    around, n_eval = _bracket_of(cell), 0
    expected = _vertex_of(around)[0] if around.high - around.low <= _WIDE else math.nan
    while True:
        before = around
        _place_points(around, expected, _PARTS if n_eval == 0 else _CLOSER, points)
        if n_eval == 0:
            _put_nearest(points, around.x)
            around = _Bracket(around.low, around.low, around.high, math.inf, math.inf, math.inf)
        best = _evaluate(at, points, values, floors, options)
        n_eval += LANES
        around = _tightened(around, points, values, best)
        at_kink = math.nan
        if around.x == points[best]:
            vertex, value = _minimum_among(points, values, best)
            if value == value:
                return LocalMinimum(vertex, value, n_eval)
            at_kink = _minimum_at_kink(around, points, values, best)
        width = around.high - around.low
        if n_eval >= _MAX_EVAL or width <= 2.0 * xtol or not _may_reach(around, bound):
            return LocalMinimum(around.x, around.value, n_eval)
        was_quick = expected != expected or width <= _EVENLY * (before.high - before.low)
        expected = at_kink if at_kink == at_kink else _vertex_of(around)[0] if was_quick else math.nan


@kernel
def _place_points(around: _Bracket, expected: float, parts: tuple[float, ...], points: FloatArray) -> None:
    """Points on both sides of where a minimum is expected, or evenly spaced if that is NaN."""
    for k in range(LANES):
        way = around.low - expected if parts[k] < 0.0 else around.high - expected
        even = around.low + (around.high - around.low) * (k + 1.0) / (LANES + 1.0)
        points[k] = expected + abs(parts[k]) * way if expected == expected else even


@kernel
def _minimum_among(points: FloatArray, values: FloatArray, k: int) -> tuple[float, float]:
    """Where the cubic through the lowest point, number k, its neighbors and one further out is lowest, and how low.

    NaN unless the one by another point has the same minimum, and the curvatures by any three of the five points
    nearly agree: they do not where there is a kink among these.
    """
    if k < 1 or k > points.size - 2:
        return math.nan, math.nan
    around = _bracket_among(points, values, k)
    x, value = _vertex_of(around)
    to_low, to_x, to_high = x - around.low, x - around.x, x - around.high
    rise, slope = to_low * to_x * to_high, to_low * to_x + to_low * to_high + to_x * to_high
    for first in range(max(k - 3, 0), min(k - 1, points.size - 5) + 1):
        left, right, curvature, is_steady = _thirds_among(points, values, first, k)
        change = abs(right - left)
        if is_steady and change * abs(slope) <= 2.0 * _OFF * curvature and change * abs(rise) <= _SURE:
            third = right if first < k - 2 else left
            return x - (0.5 * third * slope / curvature if curvature > 0.0 else 0.0), value + third * rise
    return math.nan, math.nan


@kernel
def _thirds_among(points: FloatArray, values: FloatArray, first: int, k: int) -> tuple[float, float, float, bool]:
    """The third divided differences of five points, the second one about number k, and whether all are nearly that."""
    low, high = _bracket_among(points, values, first + 1), _bracket_among(points, values, first + 3)
    at_low, at_high = _curvature_of(low), _curvature_of(high)
    middle = _curvature_of(_bracket_among(points, values, first + 2))
    at_k = at_low if k == first + 1 else middle if k == first + 2 else at_high
    is_steady = max(at_low, middle, at_high) - min(at_low, middle, at_high) <= _STEADY * at_k
    return (middle - at_low) / (high.x - low.low), (at_high - middle) / (high.high - low.x), at_k, is_steady


@kernel
def _minimum_at_kink(around: _Bracket, points: FloatArray, values: FloatArray, k: int) -> float:
    """Where there is a minimum near point number k if one parabola ends, and another begins, between two points.

    NaN if there is none, or are too few points on either side.
    """
    last = points.size - 1
    if k < 2 or k > last - 2:
        return math.nan
    above = _curvature_of(_bracket_among(points, values, k + 1))
    j = k if above > _curvature_of(_bracket_among(points, values, k - 1)) else k - 1
    if j < 2 or j > last - 3:
        return math.nan
    left, right = _bracket_among(points, values, j - 1), _bracket_among(points, values, j + 2)
    at_low = values[j] - _parabola(right, points[j])[0]
    at_high = _parabola(left, points[j + 1])[0] - values[j + 1]
    if not at_low * at_high < 0.0:
        return math.nan
    x = points[j] + (points[j + 1] - points[j]) * at_low / (at_low - at_high)
    if _parabola(right, x)[1] < 0.0:
        x = _vertex_of(right)[0]
    elif _parabola(left, x)[1] > 0.0:
        x = _vertex_of(left)[0]
    return x if around.low < x < around.high else math.nan


@kernel
def _parabola(around: _Bracket, x: float) -> tuple[float, float]:
    """The parabola through three points at x, and its slope there."""
    curvature, to_low, to_high = _curvature_of(around), x - around.low, x - around.high
    chord = (around.at_high - around.at_low) / (around.high - around.low)
    return around.at_low + (chord + curvature * to_high) * to_low, chord + curvature * (to_low + to_high)


@kernel
def _bracket_among(points: FloatArray, values: FloatArray, k: int) -> _Bracket:
    """A point and its neighbors."""
    return _Bracket(points[k - 1], points[k], points[k + 1], values[k - 1], values[k], values[k + 1])


@kernel
def _curvature_of(around: _Bracket) -> float:
    """The second divided difference."""
    from_low, from_high = around.x - around.low, around.high - around.x
    rises = (around.at_low - around.value) / from_low + (around.at_high - around.value) / from_high
    return rises / (from_low + from_high)


@kernel
def _put_nearest(points: FloatArray, x: float) -> None:
    """Let the point nearest to x be x."""
    nearest = 0
    for k in range(points.size):
        if abs(points[k] - x) < abs(points[nearest] - x):
            nearest = k
    points[nearest] = x


@kernel
def _may_reach(around: _Bracket, bound: float) -> bool:
    """Whether the lowest value between the neighbors of the lowest point may be as low as that.

    It is taken to be lower than at the lowest point by no more than the objective is higher at the neighbors.
    """
    return around.value - max(around.at_low, around.at_high) + around.value <= bound


@kernel
def _bracket_of(cell: FloatArray) -> _Bracket:
    return _Bracket(cell[LOW], cell[LOWEST], cell[HIGH], cell[AT_LOW], cell[VALUE], cell[AT_HIGH])


@kernel
def _vertex_of(around: _Bracket) -> tuple[float, float]:
    """Where the parabola through three points is lowest, and how low; NaN if the objective is infinite at one."""
    curvature = _curvature_of(around)
    slope = (around.at_high - around.value) / (around.high - around.x) - curvature * (around.high - around.x)
    step = 0.0 if curvature <= 0.0 else -0.5 * slope / curvature
    return around.x + step, around.value + 0.5 * slope * step


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
