"""Fit columns with censored cells from power sums of the observed values and counts of the censoring intervals.

Profile likelihoods and confidence intervals of lambda are computed from the same sums. The nodes of the Gauss rules
represent the observed values. Cells with the same interval are one weighted term of the likelihood, as in
`powerkern.kernels.censored`, whose functions fit the column. `_bound_errors` bounds the errors that come from the power
sums; the censoring intervals and their weights are exact.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, COUNTS, INTEGER, ROWS, entry, kernel
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.censored.column import ABOVE, BELOW, CensoredColumn, write_term_logs
from powerkern.kernels.censored.fit import (
    LOC_ERROR,
    N_ABOVE,
    N_BELOW,
    N_BETWEEN,
    SCALE_ERROR,
    fit_prepared_column,
    interval_of_prepared_column,
    profile_prepared_column,
)
from powerkern.kernels.censored.likelihood import SMALL_STEP, Scales, profile_at
from powerkern.kernels.censored.scratch import CELLS, CENSORED_WORK, COUNT, HIGH, LIMIT, LOW, SIDE, CensoredWork
from powerkern.kernels.censored.search import SearchResult
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.likelihood.logs import offset_log
from powerkern.kernels.likelihood.optimum import Optimum
from powerkern.kernels.likelihood.score import Logs, LogStatistics, Scratch
from powerkern.kernels.likelihood.scratch import SCRATCH
from powerkern.kernels.likelihood.two_pass import Centered
from powerkern.kernels.power_sums.errors import (
    FittedNormal,
    Rounded,
    bound_sums,
    rounding_of_reference,
    shift_at,
)
from powerkern.kernels.power_sums.fit import NODES, SD_TOLERANCE, TOLERANCE, rounded_sums, total_weight
from powerkern.kernels.power_sums.grids import G_MAX, G_MIN, G_REF, reference_excess
from powerkern.kernels.power_sums.sample import Nodes, Sample, make_sample
from powerkern.kernels.results import LMBDA, STATUS, write_identity, write_range
from powerkern.kernels.status_codes import MULTIMODAL, ROUTE_POWER_SUMS, SCANNED, UNRESOLVED
from powerkern.kernels.transforms.family import log_offset

#: Columns of the table of intervals: the ends, infinite for an open interval, and the weight of the cells.
I_LOW, I_HIGH, I_WEIGHT = range(3)
#: Accuracy of the search for lambda, in standard errors (`powerkern.kernels.censored.search`).
SEARCH_ERROR = 1e-9


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, ROWS, COUNTS, COLUMN, NODES, SCRATCH, CENSORED_WORK, ROWS, ROWS, COLUMN))
def fit_censored_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    roundings: FloatArray,
    intervals: FloatArray,
    interval_starts: IntArray,
    lmbda: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    censored_work: CensoredWork,
    out: FloatArray,
    out_censored: FloatArray,
    error: FloatArray,
) -> None:
    """Fit columns with at least two distinct values and at least one interval; bound the errors of lambda.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of all columns, one column after the other.
    starts : (p + 1,) int
        The bins of column j are ``sums[starts[j]:starts[j + 1]]``.
    family : int
        BOX_COX or YEO_JOHNSON.
    grids : (p, N_GRID)
        The grids of the columns. The grid of a column covers the ends of its intervals.
    roundings : (p, 4)
        Record of the rounding of each column's sums (see `fit_sums`).
    intervals : (n_intervals, 3)
        The distinct intervals of all columns, one column after the other: lower end, upper end and weight.
    interval_starts : (p + 1,) int
        The intervals of column j are ``intervals[interval_starts[j]:interval_starts[j + 1]]``.
    lmbda : (p,)
        Given lambdas; NaN where lambda is to be fitted.
    nodes : Nodes
        Scratch for the sample.
    scratch : Scratch
        Scratch of `score`.
    censored_work : CensoredWork
        Scratch for the censored cells.
    out : (p, N_RESULTS)
        Receives the results.
    out_censored : (p, N_CENSORED_FIELDS)
        Receives the weights of the censored cells and the standard errors.
    error : (p,)
        Receives bounds on the errors of lambda; infinite if the sums do not resolve it.
    """
    for j in range(grids.shape[0]):
        error[j] = _fit_column(
            sums[starts[j] : starts[j + 1]],
            log_offset(family),
            grids[j],
            rounded_sums(grids[j], roundings[j]),
            intervals[interval_starts[j] : interval_starts[j + 1]],
            lmbda[j],
            nodes,
            scratch,
            censored_work,
            out[j],
            out_censored[j],
        )


@kernel
def _fit_column(
    sums: FloatArray,
    base: float,
    grid: FloatArray,
    rounded: Rounded,
    intervals: FloatArray,
    lmbda: float,
    nodes: Nodes,
    scratch: Scratch,
    censored_work: CensoredWork,
    row: FloatArray,
    censored: FloatArray,
) -> float:
    """Fit one column, and return a bound on the error of lambda.

    Parameters
    ----------
    sums, grid, intervals, lmbda, nodes, scratch, censored_work
        The parts of the arguments of `fit_censored_sums` that belong to this column.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    rounded : Rounded
        Record of the rounding of the sums.
    row : (N_RESULTS,)
        Receives the results.
    censored : (N_CENSORED_FIELDS,)
        Receives the weights of the censored cells and the standard errors.
    """
    _write_counts(intervals, censored)
    counted = censored[N_BELOW] + censored[N_ABOVE] + censored[N_BETWEEN]
    write_range(row, total_weight(sums) + counted, grid[G_MIN], grid[G_MAX])
    sample, column = _prepare(sums, base, grid, intervals, nodes, censored_work)
    if _has_one_node(sample):
        write_identity(row, UNRESOLVED)
        return math.inf
    optimum, best = fit_prepared_column(column, lmbda, ROUTE_POWER_SUMS, False, scratch, censored_work, row, censored)
    if lmbda == lmbda:
        return 0.0
    # for the error bounds: transform the ends of the intervals at the optimum
    profile_at(column, optimum.mu, optimum.profile.scales, SMALL_STEP, scratch, censored_work)
    error, normal_error = _bound_errors(sample, column, optimum, best, nodes, rounded, censored_work)
    if row[STATUS] == SCANNED or row[STATUS] == MULTIMODAL:
        searched = SEARCH_ERROR / (math.sqrt(column.total * optimum.profile.d2) * column.centered.logs.sigma)
        accurate = error <= max(TOLERANCE * max(1.0, abs(row[LMBDA])), searched) and normal_error <= SD_TOLERANCE
        if not accurate:
            row[STATUS] = UNRESOLVED
        return error + searched
    return math.inf


@kernel
def _has_one_node(sample: Sample) -> bool:
    """Return whether the sample has fewer than two nodes, so that no scale can be fitted."""
    return bool(sample.centered.logs.pos.size + sample.centered.logs.neg.size < 2)


@kernel
def _write_counts(intervals: FloatArray, censored: FloatArray) -> None:
    """Write the total weights of the cells below, above and between limits, and NaN for the standard errors."""
    censored[N_BELOW] = censored[N_ABOVE] = censored[N_BETWEEN] = 0.0
    censored[LOC_ERROR] = censored[SCALE_ERROR] = math.nan
    for k in range(intervals.shape[0]):
        is_below, is_above = intervals[k, I_LOW] == -math.inf, intervals[k, I_HIGH] == math.inf
        kind = N_BELOW if is_below else N_ABOVE if is_above else N_BETWEEN
        censored[kind] += intervals[k, I_WEIGHT]


@kernel
def _prepare(
    sums: FloatArray, base: float, grid: FloatArray, intervals: FloatArray, nodes: Nodes, censored_work: CensoredWork
) -> tuple[Sample, CensoredColumn]:
    """Compute the sample that represents the values of a column, and the logs of the ends of its intervals.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of the column.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    intervals : (n_intervals, 3)
        Lower end, upper end and weight of each distinct interval of the column; an open interval has an infinite end.
    nodes : Nodes
        Receives the nodes.
    censored_work : CensoredWork
        Receives the terms of the likelihood, and the logs of the ends of their intervals.
    """
    sample = make_sample(sums, base, grid, nodes, False)
    n_limits = n_intervals = 0
    counted = 0.0
    for k in range(intervals.shape[0]):
        low, high, weight = intervals[k, I_LOW], intervals[k, I_HIGH], intervals[k, I_WEIGHT]
        counted += weight
        if low > -math.inf and high < math.inf:
            table = censored_work.terms.intervals
            table[CELLS, n_intervals], table[LOW, n_intervals], table[HIGH, n_intervals] = weight, low, high
            n_intervals += 1
        else:
            is_below = low == -math.inf
            censored_work.cells[LIMIT, n_limits] = high if is_below else low
            censored_work.cells[SIDE, n_limits] = BELOW if is_below else ABOVE
            censored_work.cells[COUNT, n_limits] = weight
            n_limits += 1
    c, logs = sample.centered, sample.centered.logs
    reference = grid[G_REF]
    around = Centered(logs, offset_log(base, reference), base, c.smallest, c.largest, math.nan, reference)
    terms = write_term_logs(n_limits, n_intervals, around, sample.sign, False, censored_work)
    points = terms.points
    origin = 0.0
    if sample.sign != 0.0:
        origin = sample.origin - reference_excess(base, reference) / logs.sigma
    low, high, neg_high = logs.low, logs.high, logs.neg_high
    for k in range(points.pos.size):
        points.pos[k] -= origin
        low, high = min(low, points.pos[k]), max(high, points.pos[k])
    for k in range(points.neg.size):
        neg_high = max(neg_high, points.neg[k])
    bounded = Logs(
        logs.pos, logs.pos_weight, logs.neg, logs.neg_weight, low, high, neg_high, logs.jacobian, logs.sigma, 0.0
    )
    centered = Centered(bounded, c.log_reference, c.offset, c.smallest, c.largest, c.heavy, c.reference)
    sample = Sample(
        centered,
        sample.sign,
        sample.half,
        sample.rounding,
        sample.origin,
        sample.whole,
        sample.n_bins,
        sample.n_bins_below,
        sample.weight,
    )
    values = LogStatistics(sample.weight, 0.0)
    return sample, CensoredColumn(centered, sample.sign, terms, sample.weight + counted, values, 0.0, True)


@kernel
def _bound_errors(
    sample: Sample,
    column: CensoredColumn,
    optimum: SearchResult,
    best: Optimum,
    nodes: Nodes,
    rounded: Rounded,
    censored_work: CensoredWork,
) -> tuple[float, float]:
    """Return bounds on the error of lambda, and on the larger of the errors of loc and log(scale).

    The error of loc is in units of the scale.

    Let y be the transformed values, and let m be the mean and ``1/theta`` the standard deviation of the fitted normal
    distribution. A prime denotes the derivative in the exponent. The score is the derivative of the likelihood
    maximised over m and ``theta``. By the envelope theorem, errors of the sums change it by at most ``theta^2`` times
    the error of ``sum (y - m)(y' - m') + theta'/theta (y - m)^2``. The bounds of `bound_sums` assume that m is the mean
    of y, as it is without censored cells. If m differs from the mean of y, errors of the sums of y and y' are added.

    Parameters
    ----------
    sample, column
        The column as `_prepare` returns it.
    optimum : SearchResult
        The optimum in units of the logs, with the likelihood there.
    best : Optimum
        The optimum in units of the data.
    nodes : Nodes
        Statistics of the bins, written by `make_sample`.
    rounded : Rounded
        Record of the rounding of the sums.
    censored_work : CensoredWork
        The array `y` holds the transforms of the ends of the intervals at the optimum.
    """
    profile, logs = optimum.profile, column.centered.logs
    scales, slopes, second = profile.scales, profile.slopes, profile.sums
    det = second.aa * second.dd - second.ad * second.ad
    information = column.total * profile.d2
    if not (information > 0.0 and det > 0.0 and scales.alpha > 0.0):
        return math.inf, math.inf
    sd = best.sd / logs.sigma
    # s'/s of the values is g' plus the mean log, relative to the shift
    rate = slopes.alpha / scales.alpha - profile.at.d1 - (logs.jacobian - shift_at(sample, optimum.mu))
    offset, offset_rate = scales.delta * sd, sd * (slopes.delta - scales.delta * rate)
    model = FittedNormal(optimum.mu, sd, best.log_factor, rate, offset, offset_rate)
    errors = bound_sums(sample, model, nodes, rounded)
    variance, turn = sd * sd, abs(rate)
    score = errors.products + turn * errors.squares + errors.lost
    score += abs(offset) * errors.slopes + (abs(offset_rate) + 2.0 * abs(offset) * turn) * errors.firsts
    error = score / (variance * information * logs.sigma) + _noise(
        sample, column, optimum, rounded.moved, censored_work
    )
    s = sd * scales.alpha
    first, square = errors.firsts / s, errors.squares / (s * s)
    of_alpha, of_delta = scales.alpha * square + abs(scales.delta) * first, scales.alpha * first
    scale = (second.dd * of_alpha + abs(second.ad) * of_delta) / (det * scales.alpha)
    loc = (second.aa * of_delta + abs(second.ad) * of_alpha) / det
    return error, max(loc, scale)


@kernel
def _noise(
    sample: Sample, column: CensoredColumn, optimum: SearchResult, moved: bool, censored_work: CensoredWork
) -> float:
    """Bound the error of lambda due to rounding of the logs of nodes and interval ends, and of the reference.

    As in `powerkern.kernels.power_sums.errors`, all errors are assumed to have the same sign. The score of a censored
    cell grows with its distance from the mean, so the error of its log counts more if the distance is large
    (`_squared_lever`).

    Parameters
    ----------
    sample, column
        The column as `_prepare` returns it.
    optimum : SearchResult
        The optimum in units of the logs.
    moved : bool
        Whether the logs were rounded relative to an earlier reference (`Rounded.moved`).
    censored_work : CensoredWork
        The array `y` holds the transforms of the ends of the intervals at the optimum.
    """
    logs, scales = sample.centered.logs, optimum.profile.scales
    rounding = rounding_of_reference(sample, moved)
    largest = scales.alpha + abs(scales.delta)
    amplified = max(1.0, largest * largest)
    noise = 0.0
    for k in range(logs.pos.size):
        noise += amplified * logs.pos_weight[k] * (EPS * abs(logs.pos[k] + sample.origin) + rounding) ** 2
    for k in range(logs.neg.size):
        noise += amplified * logs.neg_weight[k] * (EPS * logs.neg[k] + rounding) ** 2
    terms = column.terms
    n_points = terms.points.pos.size + terms.points.neg.size
    for k in range(terms.n_pos):
        noise += terms.weight[k] * _squared_lever(k, sample, column, scales, rounding, censored_work)
    for k in range(n_points - terms.n_neg, n_points):
        noise += terms.weight[k] * _squared_lever(k, sample, column, scales, rounding, censored_work)
    for k in range(terms.n_intervals):
        low, high = int(terms.intervals[LOW, k]), int(terms.intervals[HIGH, k])
        levers = _squared_lever(low, sample, column, scales, rounding, censored_work)
        levers += _squared_lever(high, sample, column, scales, rounding, censored_work)
        noise += terms.intervals[CELLS, k] * levers
    information = column.total * optimum.profile.d2
    return 4.0 * math.sqrt(column.total * noise) / (information * logs.sigma)


@kernel
def _squared_lever(
    k: int, sample: Sample, column: CensoredColumn, scales: Scales, rounding: float, censored_work: CensoredWork
) -> float:
    """Return (r (1 + d))^2 for an end of an interval, where r is a bound on the rounding error of its log.

    d is the distance of the transformed end from the mean, in units of the scale.

    Parameters
    ----------
    k : int
        Index of the end among the points of `column.terms`.
    sample, column
        The column as `_prepare` returns it.
    scales : Scales
        The scales at the optimum.
    rounding : float
        Absolute part of the rounding error of a log (`rounding_of_reference`).
    censored_work : CensoredWork
        The array `y` holds the transforms of the ends of the intervals at the optimum.
    """
    points = column.terms.points
    n_pos = points.pos.size
    position = points.pos[k] + sample.origin if k < n_pos else points.neg[k - n_pos]
    distance = abs(scales.alpha * censored_work.y[0, k] - scales.delta)
    lever: float = (1.0 + distance) * (EPS * abs(position) + rounding)
    return lever * lever


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, COUNTS, COLUMN, NODES, SCRATCH, CENSORED_WORK, ROWS))
def profile_censored_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    intervals: FloatArray,
    interval_starts: IntArray,
    lmbdas: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    censored_work: CensoredWork,
    out: FloatArray,
) -> None:
    """Evaluate minus the profile log-likelihood per unit of weight at every lambda; NaN if a column cannot be fitted.

    Parameters
    ----------
    sums, starts, family, grids, intervals, interval_starts, nodes, scratch, censored_work
        As for `fit_censored_sums`.
    lmbdas : (k,)
        The lambdas.
    out : (p, k)
        Receives the values.
    """
    for j in range(grids.shape[0]):
        out[j] = math.nan
        table = intervals[interval_starts[j] : interval_starts[j + 1]]
        sample, column = _prepare(
            sums[starts[j] : starts[j + 1]], log_offset(family), grids[j], table, nodes, censored_work
        )
        if not _has_one_node(sample):
            profile_prepared_column(column, lmbdas, scratch, censored_work, out[j])


@entry((ROWS, COUNTS, INTEGER, ROWS, ROWS, COUNTS, ROWS, NODES, SCRATCH, CENSORED_WORK, ROWS))
def interval_censored_sums(
    sums: FloatArray,
    starts: IntArray,
    family: int,
    grids: FloatArray,
    intervals: FloatArray,
    interval_starts: IntArray,
    at: FloatArray,
    nodes: Nodes,
    scratch: Scratch,
    censored_work: CensoredWork,
    out: FloatArray,
) -> None:
    """Find the likelihood intervals of columns with censored cells.

    The ends of an interval are the lambdas at which minus the profile log-likelihood exceeds its minimum by a given
    amount.

    Parameters
    ----------
    sums, starts, family, grids, intervals, interval_starts, nodes, scratch, censored_work
        As for `fit_censored_sums`.
    at : (p, 2)
        For each column, the fitted lambda, and the excess at the ends of the interval, per unit of weight.
    out : (p, 2)
        Receives the lower and the upper end; NaN for columns that cannot be fitted, infinite if the excess is never
        reached.
    """
    for j in range(grids.shape[0]):
        out[j] = math.nan
        table = intervals[interval_starts[j] : interval_starts[j + 1]]
        sample, column = _prepare(
            sums[starts[j] : starts[j + 1]], log_offset(family), grids[j], table, nodes, censored_work
        )
        if not _has_one_node(sample):
            out[j, 0], out[j, 1] = interval_of_prepared_column(column, at[j, 0], at[j, 1], scratch, censored_work)
