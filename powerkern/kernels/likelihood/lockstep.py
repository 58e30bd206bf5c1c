"""Fit short columns eight at a time, one per lane of a vector, by Halley steps in lockstep on raw sums.

For columns of a few hundred values the overhead per column of `kernels.likelihood.one_pass` would dominate. Here every
operation applies to eight columns at once; their values are adjacent in a row-major matrix. Each lane has its own
exponent. A lane that has converged is evaluated again at the same exponent, and gives the same bits, until all lanes
have converged. The result for a column therefore does not depend on the other columns.

The sums are formed as in `one_pass`, in float64, about the mean log if all values have one sign. A missing value, or
one of weight 0, gets a log of 0, which adds nothing to any sum.

Columns that need more care are deferred to `kernels.likelihood.two_pass`. Some have fewer than three values, a narrow
spread, an enormous range, infinities or values outside the domain. In others the sums lose digits, the optimum cannot
be certified, or powers come near the limits of float64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import (
    BLOCKS,
    COLUMN,
    INTEGER,
    LANES,
    READ_MATRIX,
    ROWS,
    Lanes,
    Mask,
    any_lane,
    entry,
    in_all_lanes,
    kernel,
    load,
    named_tuple,
    select,
    square_root,
    store,
)
from powerkern._typing import FloatArray
from powerkern.kernels import results as field
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.exp import expm1_minus_x_lanes, make_rounder, scaled_expm1, scaled_expm1_dd
from powerkern.kernels.elementary.log import log_normal
from powerkern.kernels.likelihood.one_pass import FLOAT64, ONE_PASS_REACH, ONE_PASS_SD, ONE_PASS_SPREAD, TAYLOR_REACH
from powerkern.kernels.likelihood.score_formulas import (
    Moments,
    add_observation,
    central_moments,
    derivatives,
    has_root_near,
    moment_rate_squared,
    profile_nll,
    score_from_moments,
    shifted_score,
    taylor_moments,
    zero_sums,
)
from powerkern.kernels.results import DEFERRED, N_RESULTS, write_range
from powerkern.kernels.status_codes import FIXED, OK, ROUTE_LOCKSTEP
from powerkern.kernels.transforms.branch import LINEAR
from powerkern.kernels.transforms.family import is_mirrored, log_offset

#: Vectors (of eight columns) that are copied at a time, as many as the CPU prefetches along a row.
BAND = 8
#: Smallest number of values of a column. With two values of one sign the optimum is exactly at 0 or 2, where it cannot
#: be certified.
_FEWEST = 3.0
#: Largest magnitude of values; the inverses of larger ones are subnormal or nearly so.
_LARGEST = 1e300
#: Largest |log| of the power of `reference` that multiplies mean and standard deviation. The largest float64 is e^709,
#: so they may be as large as e^100.
_LARGEST_LOG = 600.0
#: Below this t, e^t - 1 rounds to -1.
_EXPM1_MIN = -50.0
#: Largest number of evaluations; columns that have not converged by then are deferred. 6 and 24 give the same results
#: for 234 simulated columns (report_constants lockstep).
_MAX_EVAL = 12
#: Largest ratio of the squared growth rate of the moments to the curvature of g, which multiplies rounding errors of
#: the sums. For 36 binary columns with a rare value the largest error of lambda, in units of 1/(spread of the logs), is
#: 1e-11 with 100, 9e-11 with 1,000, and 3e-10 without a limit; 10 defers more columns without a gain (report_constants
#: rare).
_MAX_GROWTH_TO_CURVATURE = 100.0
#: Longest first step, in units of 1/(sd of the logs), and the factor by which this limit grows from step to step. A
#: safeguard: half and double change the mean of 3.64 evaluations for 234 simulated columns by 0.01 at most
#: (report_constants lockstep).
_LONGEST, _EXPANSION = 2.0, 4.0

#: Index of the row of `LockstepWork.results` that holds the lambdas at which to evaluate, or NaN to search.
_GIVEN = N_RESULTS


class LockstepWork(NamedTuple):
    """Scratch for `fit_in_lockstep`.

    `block`, (BAND, n, LANES), holds the values of a band of columns. `results`, (N_RESULTS + 1, LANES), holds the
    results of the eight columns being fitted and, in its last row, the lambdas requested for these columns.
    """

    block: FloatArray
    results: FloatArray


_WORK = named_tuple(LockstepWork, BLOCKS, ROWS)


def new_lockstep_work(n: int) -> LockstepWork:
    """Allocate a `LockstepWork` for columns of `n` values."""
    return LockstepWork(np.empty((BAND, n, LANES)), np.empty((N_RESULTS + 1, LANES)))


class _Data(NamedTuple):
    """Number of values, sum of weights, smallest value and largest value of the column in each lane."""

    count: Lanes
    weight: Lanes
    low: Lanes
    high: Lanes


class LaneLogs(NamedTuple):
    """Summary of the logs of the column in each lane, and the exponent at which its search starts."""

    #: the sum of the weights, and whether there are values of both signs
    weight: Lanes
    both_signs: Mask
    #: the value whose log is subtracted from all logs (1 if there are both signs)
    reference: Lanes
    #: mean of the logs before centering; root mean square and largest magnitude after it
    jacobian: Lanes
    sd: Lanes
    largest_log: Lanes
    #: the exponent to start from: one Halley step from lambda = 1, or from 0 for Box-Cox
    start: Lanes


class _LaneHalleyResult(NamedTuple):
    """Result of Halley's iteration in each lane: exponent, number of evaluations, and whether the optimum is certified.

    `moments` holds the moments of the last evaluation, which was at the exponent `evaluated_at`.
    """

    x: Lanes
    evaluated_at: Lanes
    n_eval: Lanes
    certified: Mask
    moments: Moments


# --- sums -------------------------------------------------------------------------------------------


@kernel
def _sums(d: FloatArray, weight: FloatArray, both_signs: Mask, m: Lanes) -> Moments:
    """Return raw sums of the transform and its three derivatives, and of their products, at the exponents `m`.

    `d`, (n, LANES), holds the logs, which are signed in the lanes of `both_signs`.
    """
    below, r_pos = 2.0 - m, 1.0 / m
    # centered logs may be negative although all values have one sign; then both branches are the same
    m_neg, r_neg = select(both_signs, below, -m), select(both_signs, -1.0 / below, r_pos)
    t = zero_sums(in_all_lanes(0.0))
    for i in range(weight.size):
        a = load(d, (i, 0))
        negative = a < 0.0
        r = select(negative, r_neg, r_pos)
        t_row = select(negative, m_neg, m) * abs(a)
        y0, y1, y2, y3 = derivatives(t_row, expm1_minus_x_lanes(t_row), 1.0)
        r2 = r * r
        t = add_observation(t, y0 * r, y1 * r2, y2 * (r2 * r), y3 * (r2 * r2), weight[i])
    return t


# --- from values to logs ----------------------------------------------------------------------------


@kernel
def _summarize_values(x: FloatArray, weight: FloatArray) -> _Data:
    """Return the number, total weight and range of each lane's values, ignoring NaN and values of weight 0."""
    count = total = in_all_lanes(0.0)
    low, high = in_all_lanes(math.inf), in_all_lanes(-math.inf)
    for i in range(weight.size):
        if weight[i] > 0.0:
            v = load(x, (i, 0))
            present = v == v
            count = count + select(present, 1.0, 0.0)
            total = total + select(present, weight[i], 0.0)
            low = select(v < low, v, low)
            high = select(v > high, v, high)
    return _Data(count, total, low, high)


@kernel
def _in_domain(data: _Data, family: int) -> Mask:
    """Return a mask of the lanes with at least _FEWEST values, in the domain, of moderate size and not all equal."""
    least = select(data.low < 0.0, -data.high, data.low) + log_offset(family)
    largest = select(data.low < 0.0, -data.low, data.high) + log_offset(family)
    both_signs = (data.low < 0.0) & (data.high >= 0.0)
    inside = both_signs if is_mirrored(family) else data.low > math.inf
    inside = inside | ((least >= SMALLEST_NORMAL) & (least / largest >= SMALLEST_NORMAL))
    if not is_mirrored(family):
        inside = inside & (data.low > 0.0)
    moderate = (data.low > -_LARGEST) & (data.high < _LARGEST)
    return inside & moderate & (data.low < data.high) & (data.count >= _FEWEST)


@kernel
def _take_logs(x: FloatArray, weight: FloatArray, data: _Data, family: int) -> LaneLogs:
    """Replace values by their logs, which are centered if the values have one sign; return a description of the logs.

    `LaneLogs.start` is the result of one Halley step. For Yeo-Johnson the step begins at lambda = 1, where the power of
    a value is the value itself, and for Box-Cox at lambda = 0, where all sums are power sums of the logs.
    """
    both_signs, mirrored = (data.low < 0.0) & (data.high >= 0.0), is_mirrored(family)
    largest = select(-data.low > data.high, -data.low, data.high) + log_offset(family)
    scale = select(both_signs, 1.0, 1.0 / largest)
    if mirrored:
        total, t = _logs_and_sums(x, weight, both_signs, scale, log_offset(family))
        t, kept = central_moments(t, data.weight)
        d1, d2, d3 = score_from_moments(t, total / data.weight)
    else:
        total = _positive_logs(x, weight, scale)
    mean = select(both_signs, 0.0, total / data.weight)
    largest_log, total, s2, s3, s4, s5 = _centered_powers(x, weight, mean)
    sd, at = square_root(s2 / data.weight), 1.0
    if not mirrored:
        kept, at = s2 > 0.0, 0.0
        d1, d2, d3 = score_from_moments(_sums_at_zero(data.weight, s2, s3, s4, s5), total / data.weight)
    step = _limit_steps(_halley_lanes(d1, d2, d3), _LONGEST / sd)
    start = at + select(kept & (d2 > 0.0), step, 0.0)
    reference = select(both_signs, 1.0, largest * scaled_expm1(mean, make_rounder(0.0), 0.0))
    return LaneLogs(data.weight, both_signs, reference, total / data.weight, sd, largest_log, start)


@kernel
def _positive_logs(x: FloatArray, weight: FloatArray, scale: Lanes) -> Lanes:
    """Replace each positive value x by ln(scale x), and missing values by NaN; return the weighted sum of the logs."""
    total = in_all_lanes(0.0)
    for i in range(weight.size):
        v = load(x, (i, 0))
        present = (v == v) & (weight[i] > 0.0)
        a = log_normal(select(present, v * scale, 1.0))
        total = total + a * weight[i]
        store(x, (i, 0), select(present, a, math.nan))
    return total


@kernel
def _logs_and_sums(
    x: FloatArray, weight: FloatArray, both_signs: Mask, scale: Lanes, offset: float
) -> tuple[Lanes, Moments]:
    """Replace values by signed logs, and missing ones by NaN; return the sum of the logs, and raw sums at lambda = 1.

    Parameters
    ----------
    x : (n, LANES)
        The values; overwritten.
    weight : (n,)
        Weights of the values.
    both_signs : Mask
        The lanes whose columns have values of both signs; only their logs are signed.
    scale : Lanes
        Factor of offset + abs(x): one over the reference, or 1 if there are both signs.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    """
    total, t = in_all_lanes(0.0), zero_sums(in_all_lanes(0.0))
    for i in range(weight.size):
        v = load(x, (i, 0))
        present = (v == v) & (weight[i] > 0.0)
        ratio = select(present, (abs(v) + offset) * scale, 1.0)
        a = log_normal(ratio)
        side = select(both_signs & (v < 0.0), -1.0, 1.0)
        total = total + side * a * weight[i]
        y0, y1, y2, y3 = derivatives(a, (ratio - 1.0) - a, 1.0)
        t = add_observation(t, side * y0, y1, side * y2, y3, weight[i])
        store(x, (i, 0), select(present, side * a, math.nan))
    return total, t


@kernel
def _centered_powers(x: FloatArray, weight: FloatArray, mean: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Subtract the mean from the logs; return the largest magnitude, and the weighted sums of the first five powers."""
    largest_log = s1 = s2 = s3 = s4 = s5 = in_all_lanes(0.0)
    for i in range(weight.size):
        a = load(x, (i, 0)) - mean
        a = select(a == a, a, 0.0)
        square = a * a
        weighted = square * weight[i]
        s1, s2, s3 = s1 + a * weight[i], s2 + weighted, s3 + weighted * a
        s4, s5 = s4 + weighted * square, s5 + weighted * square * a
        largest_log = select(abs(a) > largest_log, abs(a), largest_log)
        store(x, (i, 0), a)
    return largest_log, s1, s2, s3, s4, s5


@kernel
def _sums_at_zero(weight: Lanes, s2: Lanes, s3: Lanes, s4: Lanes, s5: Lanes) -> Moments:
    """Return the moments of the transform and its derivatives at lambda = 0, from power sums of the centered logs.

    For a log a, the transform is a, and its derivatives are a^2/2, a^3/3 and a^4/4.

    Parameters
    ----------
    weight : Lanes
        The sum of the weights.
    s2, s3, s4, s5 : Lanes
        The weighted sums of a^2, ..., a^5.
    """
    y1, y2 = s2 / (2.0 * weight), s3 / (3.0 * weight)
    y1y1, y1y2 = s4 / 4.0 - weight * y1 * y1, s5 / 6.0 - weight * y1 * y2
    return (weight, in_all_lanes(0.0), y1, y2, s4 / (4.0 * weight), s2, s3 / 2.0, y1y1, s4 / 3.0, s5 / 4.0, y1y2)


# --- steps to the optimum ---------------------------------------------------------------------------


@kernel
def _halley_lanes(f: Lanes, df: Lanes, d2f: Lanes) -> Lanes:
    """Return `halley_step` for every lane."""
    newton = -(f / df)
    factor = 1.0 + 0.5 * newton * (d2f / df)
    return newton / select(factor > 0.5, factor, 1.0)


@kernel
def _limit_steps(step: Lanes, longest: Lanes) -> Lanes:
    """Return the steps, shortened to a magnitude of at most `longest`."""
    return select(step > longest, longest, select(step < -longest, -longest, step))


@kernel
def _exponents_off_zero(x: Lanes, both_signs: Mask, floor: Lanes) -> Lanes:
    """Return `exponents_off_zero` for every lane."""
    x = select(abs(x) < floor, select(x < 0.0, -floor, floor), x)
    below = 2.0 - x
    return select(both_signs & (abs(below) < floor), 2.0 - select(below < 0.0, -floor, floor), x)


@kernel
def _halley_iterations(
    d: FloatArray, weight: FloatArray, logs: LaneLogs, given: Lanes, ordinary: Mask
) -> _LaneHalleyResult:
    """Take Halley steps in all lanes until the steps in the lanes to fit (`ordinary`) are below the tolerance.

    Parameters
    ----------
    d : (n, LANES)
        The logs.
    weight : (n,)
        The weights of the logs.
    logs : LaneLogs
        Description of the logs.
    given : Lanes
        The exponent at which to evaluate each column; NaN to search for the optimum.
    ordinary : Mask
        The lanes to fit.
    """
    floor, longest = FLOAT64.floor / logs.sd, _LONGEST / logs.sd
    search, going, k = ~(given == given), ordinary, 0
    x, n_eval = select(search, logs.start, given), in_all_lanes(1.0)
    while True:
        n_eval = n_eval + select(going, 1.0, 0.0)
        at = _exponents_off_zero(x, logs.both_signs, floor)
        below = select(logs.both_signs, abs(2.0 - at), 0.0)
        steepest = select(below > abs(at), below, abs(at))
        t, kept = central_moments(_sums(d, weight, logs.both_signs, at), logs.weight)
        d1, d2, d3 = shifted_score(t, logs.jacobian, x - at)
        good = ordinary & kept & (steepest * logs.largest_log <= FLOAT64.largest_t) & (d2 > 0.0)
        step = select(search, _halley_lanes(d1, d2, d3), 0.0)
        rate = moment_rate_squared(t)
        arrived = abs(step) * square_root(rate) <= FLOAT64.step
        going, k = good & ~arrived, k + 1
        if k == _MAX_EVAL or not any_lane(going):
            break
        longest = select(going, longest * _EXPANSION, longest)
        x = select(going, x + _limit_steps(step, longest), x)
    good = good & (rate <= _MAX_GROWTH_TO_CURVATURE * d2) & (abs(x + step - at) * square_root(rate) <= TAYLOR_REACH)
    return _LaneHalleyResult(x + step, at, n_eval, good & arrived & (~search | has_root_near(d1, d2, d3)), t)


@kernel
def _fit_lanes(x: FloatArray, weight: FloatArray, family: int, results: FloatArray) -> None:
    """Fit the eight columns in `x`.

    Parameters
    ----------
    x : (n, LANES)
        The values, one column per lane; overwritten.
    weight : (n,)
        Weights of the rows.
    family : int
        BOX_COX or YEO_JOHNSON.
    results : (N_RESULTS + 1, LANES)
        Receives the results. On entry its last row holds the lambdas at which to evaluate, or NaN to search.
    """
    data = _summarize_values(x, weight)
    ordinary = _in_domain(data, family)
    logs = _take_logs(x, weight, data, family)
    ordinary = ordinary & (logs.sd >= ONE_PASS_SPREAD) & (logs.largest_log <= ONE_PASS_REACH)
    given = load(results, (_GIVEN, 0))
    best = _halley_iterations(x, weight, logs, select(data.high < 0.0, 2.0 - given, given), ordinary)
    _store_fits(results, data, logs, best, log_offset(family))


@kernel
def _store_fits(results: FloatArray, data: _Data, logs: LaneLogs, best: _LaneHalleyResult, offset: float) -> None:
    """Write the results of all lanes, as `optimum.write_fit` does for one column.

    Parameters
    ----------
    results : (N_RESULTS + 1, LANES)
        Receives the results. On entry its last row holds the lambdas at which columns were evaluated, or NaN.
    data : _Data
        Number, weights and range of the values.
    logs : LaneLogs
        Description of the logs.
    best : _LaneHalleyResult
        The optimum of each column.
    offset : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes.
    """
    mean, variance, curvature = taylor_moments(best.moments, best.x - best.evaluated_at)
    m, sd, log_base = best.x, square_root(variance), log_normal(logs.reference)
    t, given, side = m * log_base, load(results, (_GIVEN, 0)), select(data.high < 0.0, -1.0, 1.0)
    good = best.certified & (variance >= ONE_PASS_SD * ONE_PASS_SD) & (abs(t) <= _LARGEST_LOG)
    searched = select(side < 0.0, 2.0 - m, m)
    factor = scaled_expm1(t, make_rounder(0.0), 0.0)
    ref = logs.reference - offset
    store(results, (field.STATUS, 0), select(good, select(given == given, FIXED, OK), DEFERRED))
    store(results, (field.N_EVAL, 0), best.n_eval)
    store(
        results, (field.LMBDA, 0), select(given == given, given, searched)
    )  # without the rounding of 2 - (2 - lambda)
    store(results, (field.LOC, 0), side * (_branch(m, log_base, t) + factor * mean))
    store(results, (field.SCALE, 0), sd * factor)
    store(results, (field.LOG_FACTOR, 0), in_all_lanes(0.0))
    store(results, (field.REF, 0), side * select(ref > 0.0, ref, 0.0))
    store(results, (field.SLOPE, 0), 1.0 / sd)
    store(results, (field.INTERCEPT, 0), -side * mean / sd)
    store(results, (field.NLL, 0), profile_nll(log_normal(variance), log_base, m, logs.jacobian))
    store(results, (field.CURVATURE, 0), curvature)
    store(results, (field.N_OBS, 0), data.weight)
    store(results, (field.X_MIN, 0), data.low + 0.0)  # 0 for -0
    store(results, (field.X_MAX, 0), data.high + 0.0)


@kernel
def _branch(m: Lanes, a: Lanes, t: Lanes) -> Lanes:
    """Return the transform (e^t - 1)/m of every lane, for t = m a of moderate size, or its limit a if t is tiny."""
    head, tail = scaled_expm1_dd(select(t < _EXPM1_MIN, _EXPM1_MIN, t), 0.0, make_rounder(-1.0), 0.5)
    return select(abs(t) < LINEAR, a, 2.0 * (head + tail) / m)


@kernel
def _write(results: FloatArray, lane: int, row: FloatArray) -> None:
    """Copy the results of one lane to a row of the output, and fill the fields that lanes do not store."""
    for k in range(N_RESULTS):
        row[k] = results[k, lane]
    write_range(row, row[field.N_OBS], row[field.X_MIN], row[field.X_MAX])
    row[field.LMBDA0], row[field.OBJECTIVE], row[field.ROUTE] = row[field.LMBDA], row[field.NLL], ROUTE_LOCKSTEP


# --- a matrix ---------------------------------------------------------------------------------------


@kernel
def _copy(x: FloatArray, first: int, block: FloatArray) -> None:
    """Copy up to BAND times LANES columns, starting with column `first`, to lanes; fill unused lanes with NaN."""
    n, p = x.shape
    stop = min(p, first + BAND * LANES)
    n_vectors = (stop - first) // LANES if x.strides[1] == x.itemsize else 0
    for i in range(n):
        for k in range(n_vectors):
            store(block, (k, i, 0), load(x, (i, first + k * LANES)))
    for j in range(n_vectors * LANES, (stop - first + LANES - 1) // LANES * LANES):
        part, lane = block[j // LANES], j % LANES
        for i in range(n):
            part[i, lane] = x[i, first + j] if first + j < p else math.nan


@entry((READ_MATRIX, COLUMN, INTEGER, COLUMN, _WORK, ROWS))
def fit_in_lockstep(
    x: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: LockstepWork, out: FloatArray
) -> None:
    """Fit each column of `x` into a row of `out`; columns that this method cannot fit get the status DEFERRED.

    Parameters
    ----------
    x : (n, p)
        The matrix; NaN if missing.
    weight : (n,)
        Weights of the rows.
    family : int
        BOX_COX or YEO_JOHNSON.
    lmbda : (p,)
        The lambda at which to evaluate each column; NaN to search for the optimum.
    work : LockstepWork
        Scratch.
    out : (p, N_RESULTS)
        Receives the results.
    """
    block, results = work.block, work.results
    for j in range(0, x.shape[1], LANES):
        k = j // LANES % BAND
        if k == 0:
            _copy(x, j, block)
        width = min(LANES, x.shape[1] - j)
        for lane in range(LANES):
            results[_GIVEN, lane] = lmbda[j + lane] if lane < width else math.nan
        _fit_lanes(block[k], weight, family, results)
        for lane in range(width):
            _write(results, lane, out[j + lane])
