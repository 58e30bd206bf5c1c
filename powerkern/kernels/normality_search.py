"""Lambdas that make a column most nearly normal: Kolmogorov-Smirnov distance, or correlation of the QQ plot.

Neither criterion changes with location and scale of the transformed values, so these are chosen for accuracy: of one
sign, relative to the end from which every exponent is negative; of both signs, less a common factor where large.
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
    ROWS,
    Lanes,
    any_lane,
    borrowed,
    entry,
    for_none,
    in_all_lanes,
    inlined,
    kernel,
    load,
    select,
    square_root,
    store,
    widest_vectors,
)
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary import exp, expm1, expm1_lanes
from powerkern.kernels.erf import erf_lanes
from powerkern.kernels.family import log_offset
from powerkern.kernels.logs import centered_log, offset_log
from powerkern.kernels.minimize import CONVERGED, RUNNING, brent_start, brent_step
from powerkern.kernels.normality import (
    Weighing,
    ddof_of,
    decorrelation_by,
    ks_by,
    moments_by,
    n_present,
    weighing_of,
)

#: Criteria.
KS, PPCC = 0, 1

# what `criterion_columns` finds for a column
FOUND_LMBDA, FOUND_VALUE, FOUND_N_EVAL, FOUND_STATUS = range(4)
N_FOUND = 4

_SCANNED, _NOT_CERTIFIED, _MULTIMODAL = int(Status.SCANNED), int(Status.NOT_CERTIFIED), int(Status.MULTIMODAL)

#: Steps of a scan up and down from its start, their size as a fraction of 1/scale, and how many at most if it goes on.
_STEPS, _STEP, _FARTHEST = 16, 0.25, 400
#: The criteria of columns shorter than this have kinks closer together: their steps are divided by up to the second.
_SHORT, _FINEST = 1024, 16
#: A criterion that changes by less over the scan does not distinguish lambdas: two distinct values.
_FLAT = 1e-9
#: Other minima count if they are less than this many times as high as the lowest.
_RIVAL = 2.0
_MAX_EVAL = 100
#: Of lambda, in units of 1/scale.
_XTOL = 2.5e-10
#: Exponents of values of both signs need no common factor up to here.
_MODERATE = 300.0
_WORST = 2.0
#: An exponent closer to 0 counts as this: it can be divided by.
_TINY = 1e-290
#: Longer columns are transformed at one exponent at a time; and most whole steps that are looked at beforehand.
_MOST_LANES, _MOST_WHOLE = 512, 64
_SQRT_HALF = 0.7071067811865476


# --- the transform ------------------------------------------------------------------------------------


class ScaledLogs(NamedTuple):
    """Logs of the magnitudes (plus 1 under Yeo-Johnson) of ascending values, in units of their standard deviation.

    Of one sign they are relative to that of the median, without cancellation. Exponents are in units of 1/scale.
    """

    d: FloatArray
    n_negative: int
    scale: float


@kernel
def _logs_of(weighing: Weighing | None, x: FloatArray, family: int, d: FloatArray, y: FloatArray) -> ScaledLogs:
    """The logs, in `d`; `y` is scratch."""
    widest_vectors()
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
    for i in range(x.size):  # twice, because the square of a tiny scale would be 0
        d[i] /= largest
        y[i] = -d[i] if i < border else d[i]
    moments = moments_by(weighing, y)
    sd = math.sqrt(moments.m2 / moments.weight)
    for i in range(x.size):
        d[i] /= sd
    return ScaledLogs(d, border, largest * sd)


@kernel
def _branch(d: FloatArray, m: float, top: float, excess: float, sign: float, y: FloatArray) -> None:
    """y = sign e**-excess (e**(m (d - top)) - 1)/m."""
    widest_vectors()
    if m == 0.0:
        factor = sign * exp(-excess)
        for i in range(d.size):
            y[i] = factor * (d[i] - top)
    elif excess == 0.0:
        for i in range(d.size):
            y[i] = sign * expm1(m * (d[i] - top)) / m
    else:
        one = exp(-excess)
        for i in range(d.size):
            y[i] = sign * (exp(m * (d[i] - top) - excess) - one) / m


@kernel
def _transform(logs: ScaledLogs, exponent: float, y: FloatArray) -> None:
    """Transformed values, up to a shift and a positive factor."""
    d, border = logs.d, logs.n_negative
    n = d.size
    mirrored = 2.0 * logs.scale - exponent
    if border == 0:
        _branch(d, exponent, d[n - 1] if exponent > 0.0 else d[0], 0.0, 1.0, y)
    elif border == n:
        _branch(d, mirrored, d[0] if mirrored > 0.0 else d[n - 1], 0.0, -1.0, y)
    else:
        excess = max(exponent * d[n - 1], mirrored * d[0])
        excess = excess if excess > _MODERATE else 0.0
        _branch(d[border:], exponent, 0.0, excess, 1.0, y[border:])
        _branch(d[:border], mirrored, 0.0, excess, -1.0, y[:border])


# --- the criteria -------------------------------------------------------------------------------------


@kernel
def _criterion(
    weighing: Weighing | None, logs: ScaledLogs, exponent: float, which: int, q: FloatArray, y: FloatArray
) -> float:
    """KS distance from the fitted normal, or 1 - r, r the correlation with normal quantiles of unit length `q`."""
    _transform(logs, exponent, y)
    sample = moments_by(weighing, y)
    if not 0.0 < sample.m2 < math.inf:
        return _WORST
    if which == KS:
        return ks_by(weighing, y, sample.mean, math.sqrt(sample.m2 / ddof_of(weighing, y.size)))
    return decorrelation_by(weighing, y, q, sample.mean, 1.0 / math.sqrt(sample.m2))


class _Lanes(NamedTuple):
    """A column at LANES exponents: room for the transforms, exponents and their criteria, those of whole steps.

    `order` is where the distribution function was last found farthest from normal, at each.
    """

    y: FloatArray
    exponents: FloatArray
    values: FloatArray
    order: FloatArray
    coarse: FloatArray


@inlined
def _greater(x: Lanes, y: Lanes) -> Lanes:
    return select(x > y, x, y)


@kernel
def _transform_lanes(
    weighing: Weighing | None, logs: ScaledLogs, exponent: Lanes, y: FloatArray
) -> tuple[Lanes, Lanes]:
    """`_transform` for powers that need no common factor; returns mean and sum of squares about it."""
    d, border, n = logs.d, logs.n_negative, logs.d.size
    one_sign = border in (0, n)
    total = in_all_lanes(0.0)
    for side in range(2):
        m = exponent if side else 2.0 * logs.scale - exponent
        m = select(abs(m) < _TINY, in_all_lanes(_TINY), m)
        sign = 1.0 if side else -1.0
        top = in_all_lanes(0.0)
        if one_sign:
            ends = in_all_lanes(d[n - 1]), in_all_lanes(d[0])
            top = select(m > 0.0, ends[0], ends[1]) if side else select(m > 0.0, ends[1], ends[0])
        factor = sign / m
        for i in range(border if side else 0, n if side else border):
            value = expm1_lanes(m * (d[i] - top)) * factor
            store(y, (LANES * i,), value)
            total += _times(weighing, i, value)
    mean, squares = total * (1.0 / _sum_of_weights(weighing, n)), in_all_lanes(0.0)
    for i in range(n):
        difference = load(y, (LANES * i,)) - mean
        squares += _times(weighing, i, difference * difference)
    return mean, squares


@inlined
def _times(weighing: Weighing | None, i: int, x: Lanes) -> Lanes:
    """What value number i adds to a sum."""
    if weighing is None:
        return x
    return weighing.share[i] * x


@kernel
def _sum_of_weights(weighing: Weighing | None, n: int) -> float:
    if weighing is None:
        return float(n)
    return 1.0


@inlined
def _plain_departure(weighing: None, y: FloatArray, i: int, mean: Lanes, per_scale: Lanes, per_n: float) -> Lanes:
    z = (load(y, (LANES * i,)) - mean) * per_scale
    return abs(0.5 + 0.5 * erf_lanes(z) - (i + 0.5) * per_n)


@for_none(_plain_departure)
def _departure(weighing: Weighing, y: FloatArray, i: int, mean: Lanes, per_scale: Lanes, per_n: float) -> Lanes:
    """How far the distribution function of order statistic i is from the normal one; but for half a step, 1/(2n)."""
    z = (load(y, (LANES * i,)) - mean) * per_scale
    return abs(0.5 + 0.5 * erf_lanes(z) - weighing.middle[i]) + 0.5 * weighing.share[i]


@kernel
def _evaluate_lanes(
    weighing: Weighing | None, logs: ScaledLogs, which: int, q: FloatArray, known: float, work: _Lanes
) -> None:
    """`_criterion` at all `work.exponents`; of the KS distance a bound from below where all exceed `known`."""
    y, n, per_n = work.y, logs.d.size, 1.0 / logs.d.size
    step = per_n if weighing is None else 0.0  # weighted departures have it
    mean, squares = _transform_lanes(weighing, logs, load(work.exponents, (0,)), y)
    worst = in_all_lanes(0.0)
    if which == KS:
        per_scale = _SQRT_HALF / square_root(squares * (1.0 / ddof_of(weighing, n)))
        bound = _departure(weighing, y, int(work.order[0]), mean, per_scale, per_n)
        bound = _greater(bound, _departure(weighing, y, int(work.order[LANES - 1]), mean, per_scale, per_n))
        worst = bound + 0.5 * step
        if any_lane(worst < known):
            worst, order = in_all_lanes(0.0), in_all_lanes(0.0)
            for i in range(n):
                departure = _departure(weighing, y, i, mean, per_scale, per_n)
                order = select(departure > worst, in_all_lanes(float(i)), order)
                worst = _greater(departure, worst)
            store(work.order, (0,), order)
            worst += in_all_lanes(0.5 * step)
    else:
        per_scale = 1.0 / square_root(squares)
        for i in range(n):
            difference = (load(y, (LANES * i,)) - mean) * per_scale - q[i]
            worst += _times(weighing, i, difference * difference)
        worst = 0.5 * worst + in_all_lanes(_spread_of(weighing))
    usable = select(squares < math.inf, squares, in_all_lanes(0.0))
    store(work.values, (0,), select(usable > 0.0, worst, in_all_lanes(_WORST)))


@kernel
def _spread_of(weighing: Weighing | None) -> float:
    if weighing is None:
        return 0.0
    return weighing.spread


@kernel
def _is_moderate(logs: ScaledLogs, low: float, high: float) -> bool:
    """Whether no power needs a common factor at exponents between these."""
    n = logs.d.size
    if logs.n_negative in (0, n):
        return True
    return bool(max(high * logs.d[n - 1], (2.0 * logs.scale - low) * logs.d[0]) <= _MODERATE)


@kernel
def _block(
    weighing: Weighing | None,
    logs: ScaledLogs,
    first: float,
    step: float,
    which: int,
    q: FloatArray,
    y: FloatArray,
    known: float,
    work: _Lanes,
) -> None:
    """`_criterion` at LANES exponents from `first` on; of the KS distance a bound where all exceed `known`."""
    for i in range(LANES):
        work.exponents[i] = first + i * step
    if logs.d.size <= _MOST_LANES and _is_moderate(logs, first, work.exponents[LANES - 1]):
        _evaluate_lanes(weighing, logs, which, q, known, work)
        return
    for i in range(LANES):
        work.values[i] = _criterion(weighing, logs, work.exponents[i], which, q, y)


@kernel
def _whole_steps(
    weighing: Weighing | None,
    logs: ScaledLogs,
    first: float,
    count: int,
    which: int,
    q: FloatArray,
    y: FloatArray,
    work: _Lanes,
) -> float:
    """The criterion at `count` whole steps, to `work.coarse`; returns the lowest."""
    lowest = math.inf
    for k in range(0, count, LANES):
        _block(weighing, logs, first + k * _STEP, _STEP, which, q, y, math.inf, work)
        for i in range(LANES):
            work.coarse[k + i] = work.values[i]
            if k + i < count:
                lowest = min(lowest, work.values[i])
    return lowest


@kernel
def _search(
    weighing: Weighing | None,
    logs: ScaledLogs,
    start: float,
    which: int,
    q: FloatArray,
    y: FloatArray,
    work: _Lanes,
    out: FloatArray,
) -> None:
    """`out` = the best lambda, its criterion, evaluations and the status.

    A scan that goes on as long as it descends, and Brent's method between the neighbours of its lowest point.
    """
    fine = max(1, min(_FINEST, _SHORT // logs.d.size))
    step, origin = _STEP / fine, start * logs.scale
    low = _lower_end(weighing, logs, origin, which, q, y)
    best, k = low * fine, low * fine
    lowest, highest = math.inf, 0.0
    first, second = math.inf, math.inf  # the two lowest minima
    before, last = math.inf, math.inf
    n_whole, known = 0, math.inf
    if fine > 1 and _STEPS - low < _MOST_WHOLE:
        n_whole = _STEPS - low + 1
        known = _whole_steps(weighing, logs, origin + low * _STEP, n_whole, which, q, y, work)
    while k <= _STEPS * fine or (best == k - 1 and k < _FARTHEST * fine):
        if fine == 1:
            value = _criterion(weighing, logs, origin + k * step, which, q, y)
        else:
            i = (k - low * fine) % LANES
            if i == 0:
                # a bound will do where the whole steps, of which minima are counted, are known
                enough = min(known, lowest) if (k + LANES - 1) // fine - low < n_whole else math.inf
                _block(weighing, logs, origin + k * step, step, which, q, y, enough, work)
            value = work.values[i]
            if k % fine == 0 and k // fine - low < n_whole:
                value = work.coarse[k // fine - low]
        if k % fine == 0:
            if before > last < value:
                first, second = min(first, last), max(first, min(second, last))
            before, last = last, value
        if value < lowest:
            best, lowest = k, value
        highest = max(highest, value)
        k += 1
    out[FOUND_LMBDA], out[FOUND_VALUE], out[FOUND_N_EVAL] = start, lowest, k - low * fine
    if highest - lowest < _FLAT:
        out[FOUND_STATUS] = _SCANNED
        return
    center = origin + best * step
    state = brent_start(-step, step, _XTOL, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, _criterion(weighing, logs, center + state.x, which, q, y))
    better = state.fun < lowest
    out[FOUND_LMBDA] = (center + state.best if better else center) / logs.scale
    out[FOUND_VALUE] = state.fun if better else lowest
    out[FOUND_N_EVAL] += state.n_eval
    out[FOUND_STATUS] = _MULTIMODAL if second < _RIVAL * lowest else _SCANNED
    if state.status != CONVERGED or abs(best) >= _FARTHEST * fine:
        out[FOUND_STATUS] = _NOT_CERTIFIED


@kernel
def _lower_end(
    weighing: Weighing | None,
    logs: ScaledLogs,
    origin: float,
    which: int,
    q: FloatArray,
    y: FloatArray,
) -> int:
    """The step from which the scan goes up: the first at which the criterion is no lower than above it."""
    k = -_STEPS
    value = _criterion(weighing, logs, origin + k * _STEP, which, q, y)
    below = _criterion(weighing, logs, origin + (k - 1) * _STEP, which, q, y)
    while below < value - _FLAT and k > -_FARTHEST:
        k -= 1
        value, below = below, _criterion(weighing, logs, origin + (k - 1) * _STEP, which, q, y)
    return k - 1


def normal_quantiles(n: int) -> FloatArray:
    """Normal quantiles at Filliben's (1975) medians of n uniform order statistics, as a vector of length 1."""
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    medians = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    medians[-1] = 0.5 ** (1.0 / n)
    medians[0] = 1.0 - medians[-1]
    q = ndtri(medians)
    return np.asarray(q / np.sqrt(q @ q))


@entry((COLUMN, INTEGER, INTEGER, COLUMN, COLUMN, ROWS, COLUMN))
def criterion_at(
    x: FloatArray, family: int, which: int, lmbdas: FloatArray, quantiles: FloatArray, work: FloatArray, out: FloatArray
) -> None:
    """The criterion of one ascending column at each of some lambdas; arguments as for `criterion_columns`."""
    logs = _logs_of(None, x, family, work[0, : x.size], work[1, : x.size])
    for k in range(lmbdas.size):
        out[k] = _criterion(None, logs, lmbdas[k] * logs.scale, which, quantiles, work[1, : x.size])


@entry((COLUMN, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, ROWS, COLUMN))
def weighted_criterion_at(
    x: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    lmbdas: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """`criterion_at` with weights; `weighed` and `figures` are those of one row by `weigh_columns`."""
    weighing = weighing_of(weighed, figures, 0, x.size)
    logs = _logs_of(weighing, x, family, work[0, : x.size], work[1, : x.size])
    for k in range(lmbdas.size):
        out[k] = _criterion(weighing, logs, lmbdas[k] * logs.scale, which, x, work[1, : x.size])


def room_of_lanes(n: int) -> int:
    """Length of the scratch array of that name that columns of up to `n` values need."""
    return LANES * min(n, _MOST_LANES) + 3 * LANES + _MOST_WHOLE


@entry((ROWS, INTEGER, INTEGER, COLUMN, ROWS, ROWS, COLUMN, ROWS))
def criterion_columns(
    block: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    quantiles: FloatArray,
    work: FloatArray,
    lanes: FloatArray,
    out: FloatArray,
) -> None:
    """The lambda of each row, sorted with NaN last, that minimises a criterion.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, each in the domain of the family, with two distinct values at least.
    family, which : int
        BOX_COX or YEO_JOHNSON; KS or PPCC.
    start : (p,)
        Where the scans start; rows without one (NaN) are skipped.
    quantiles : (p, n)
        For PPCC: normal quantiles of the positions of each row's values, as a vector of unit length.
    work : (2, n)
    lanes : (room_of_lanes(n),)
        Scratch.
    out : (p, N_FOUND)
        Receives lambda, the criterion there, the number of evaluations, and a `powerkern.Status`. Where all lambdas
        are equally good, as for two distinct values, lambda is the start.
    """
    block, quantiles, work, lanes, out = (
        borrowed(block), borrowed(quantiles), borrowed(work), borrowed(lanes), borrowed(out)
    )  # fmt: skip
    each = _lanes_in(lanes)
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            logs = _logs_of(None, block[j, :n], family, work[0, :n], work[1, :n])
            each.order[:] = 0.0
            _search(None, logs, start[j], which, quantiles[j, :n], work[1, :n], each, out[j])


@kernel
def _lanes_in(lanes: FloatArray) -> _Lanes:
    small = lanes[: 3 * LANES + _MOST_WHOLE]
    return _Lanes(
        lanes[small.size :], small[:LANES], small[LANES : 2 * LANES], small[2 * LANES : 3 * LANES],
        small[3 * LANES :],
    )  # fmt: skip


@entry((ROWS, BLOCKS, ROWS, INTEGER, INTEGER, COLUMN, ROWS, COLUMN, ROWS))
def weighted_criterion_columns(
    block: FloatArray,
    weighed: FloatArray,
    figures: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    work: FloatArray,
    lanes: FloatArray,
    out: FloatArray,
) -> None:
    """`criterion_columns` with weights; `weighed` and `figures` are those of `weigh_columns`."""
    block, weighed, work, lanes, out = (
        borrowed(block), borrowed(weighed), borrowed(work), borrowed(lanes), borrowed(out)
    )  # fmt: skip
    each = _lanes_in(lanes)
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            weighing = weighing_of(weighed, figures, j, n)
            logs = _logs_of(weighing, block[j, :n], family, work[0, :n], work[1, :n])
            each.order[:] = 0.0
            _search(weighing, logs, start[j], which, weighing.quantile, work[1, :n], each, out[j])
