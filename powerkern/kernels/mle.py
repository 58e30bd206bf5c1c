"""Maximum likelihood of one column: from raw values to lambda and the constants that standardise with it.

The road of a column (`fit_column`):

1. `_plain_optimum` walks to the optimum by Halley steps on plain sums (`powerkern.kernels.one_pass`): on a sample in
   float32; one step on all values in float32, with the logs being taken; the last step in float64. It stops at a value
   for which that will not do.
2. Then `scan` counts NaN, negative values and the extremes in one integer pass, NaN are squeezed out, and step 1 is
   tried again.
3. Columns that are short, weighted, tightly clustered, of enormous range, or whose plain sums lose digits go to
   `careful_optimum` (`powerkern.kernels.likelihood`), which holds for any data.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from powerkern._jit import bits_of, borrowed, entry, float_of, inlined, kernel, prefetch, reduction, widest_vectors
from powerkern._status import Status
from powerkern.kernels.elementary import exp, expm1, log, log1p
from powerkern.kernels.likelihood import (
    BLOCK,
    WEIGHT,
    Y1,
    Y1Y1,
    Y1Y2,
    Y2,
    Y3,
    YY,
    YY1,
    YY2,
    YY3,
    FloatArray,
    Logs,
    Score,
    Scratch,
    Y,
    growth_at_centre,
    nll_at,
    score,
    score_from_moments,
)
from powerkern.kernels.minimize import CONVERGED, RUNNING, newton_start, newton_step
from powerkern.kernels.one_pass import (
    CHUNK,
    INF_BITS,
    MAGNITUDE,
    SIGN,
    AnyFloats,
    Float32Array,
    LogSums,
    add_sums,
    centre,
    logs_of_one_sign,
    signed_logs,
)

BOX_COX, YEO_JOHNSON = 0, 1

# one row of results a column; lmbda, loc ... of powerkern.fitting.PowerFit are its columns
LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT, NLL, CURVATURE, N_OBS, N_EVAL, STATUS, X_MIN, X_MAX = range(14)
# of robust fits: the start (else LMBDA), how many values were kept and the interval they are in; what is transformed is
# (x - CENTRE)/DIVISOR
LMBDA0, N_KEPT, KEPT_LOW, KEPT_HIGH, CENTRE, DIVISOR = range(14, 20)
N_RESULTS = 20

# STATUS of a column whose values are outside the domain; the driver raises
BAD_INFINITE, BAD_NOT_POSITIVE = -1, -2

_OK, _FIXED, _CONSTANT, _EMPTY = int(Status.OK), int(Status.FIXED), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)
_NO_SPREAD = int(Status.NO_SPREAD)

MAX_EVAL = 100

_EPS = 2.220446049250313e-16
_SMALLEST_NORMAL = 2.2250738585072014e-308

#: Exponents above this are carried apart, in LOG_FACTOR.
_LARGE_LOG = 600.0

#: Logs in units below this are those of a tight cluster.
_TIGHT = 2.0**-20
#: Values among which a reference is chosen.
_MOST_TYPICAL = 63

#: At the ends of intervals the drop is exact to this share of it.
_END_ERROR = 1e-9
#: Drops below this share of g are integrated from g', in panels whose error is below that share of the drop.
_FELT, _PANEL_ERROR = 1e-6, 1e-8
#: After a step of this relative size Halley's next one is within rounding.
_NEARLY = 1e-4
#: Distances beyond this are infinite.
_FAR = 1e290

#: Shorter columns go the careful way at once.
PLAIN_MIN = 256
#: Longer ones start from the optimum of a sample: one value in SAMPLE_STRIDE, more (PLAIN_MIN) where the column is
#: short, and at most SAMPLE.
SAMPLE = 4096
SAMPLE_STRIDE = 16
#: Plain logs, right to 2e-16, are used where their standard deviation exceeds this and |d| stays below PLAIN_REACH.
PLAIN_SPREAD = 1e-2
#: So are they where the standard deviation of the transformed values exceeds this: it divides their errors.
PLAIN_SD = 1e-3
PLAIN_REACH = 600.0
_MAX_PLAIN_EVAL = 20
#: How many values are looked at to guess the sign, and a reference.
_FEW = 16
#: Logs are taken in pieces, between which values are fetched ahead, a cache line at a time: the next column, which lies
#: behind this one, or what follows in this one where it is longer than that.
_PIECE, _LINE = 256, 8
_NEXT_COLUMN, _SAME_COLUMN = 32_768, 1024


class Scan(NamedTuple):
    """Counts over all values, and bit patterns of magnitudes over those that are not NaN."""

    n_nan: int
    n_negative: int
    low: int
    high: int
    negative_high: int


class Sides(NamedTuple):
    """Magnitudes of a column's non-negative and negative values, and their weights (empty: all one)."""

    pos: FloatArray
    neg: FloatArray
    pos_weight: FloatArray
    neg_weight: FloatArray


class Optimum(NamedTuple):
    """Exponent, and mean and standard deviation of ``e^-log_factor b_m(d)``, d relative to `ref`, `log_ref`."""

    exponent: float
    mean: float
    sd: float
    log_factor: float
    ref: float
    log_ref: float
    nll: float
    curvature: float
    n_eval: int
    status: int


@reduction
def scan(x: FloatArray) -> Scan:
    """One pass in integers: magnitudes of float64 are ordered as their bit patterns are."""
    widest_vectors()
    n_nan = n_negative = 0
    low, high, negative_high = MAGNITUDE, 0, 0
    for i in range(x.size):
        bits = bits_of(x[i]) & MAGNITUDE
        negative = x[i] < 0.0
        n_nan += bits > INF_BITS
        n_negative += negative
        low = min(low, bits)
        high = max(high, 0 if bits > INF_BITS or negative else bits)
        negative_high = max(negative_high, bits if negative else 0)
    return Scan(n_nan, n_negative, low, high, negative_high)


@kernel
def squeeze(x: FloatArray, weight: FloatArray, out: FloatArray, weight_out: FloatArray) -> int:
    """Copy the values that are not NaN and have a weight, and their weights; returns their number."""
    n = 0
    for i in range(x.size):
        if x[i] == x[i] and (weight.size == 0 or weight[i] > 0.0):
            out[n] = x[i]
            if weight.size > 0:
                weight_out[n] = weight[i]
            n += 1
    return n


@kernel
def split_signs(x: FloatArray, values: FloatArray, out: FloatArray) -> int:
    """|values| where x >= 0 from the front of `out`, where x < 0 from its back; returns the border."""
    front = np.uint64(0)
    back = np.uint64(x.size - 1)
    for i in range(x.size):
        # no branch to mispredict: both ends are written, one of them advances
        magnitude = abs(values[i])
        out[front] = magnitude
        out[back] = magnitude
        front += np.uint64(x[i] >= 0.0)
        back -= np.uint64(x[i] < 0.0)
    return int(front)


# --- the careful way ----------------------------------------------------------------------------------


@kernel
def log_base(base: float, x: float) -> float:
    """ln(base + x), for a base of 0 or 1."""
    return log1p(x) if base == 1.0 else log(x)


@inlined
def centred_log(x: float, base: float, reference: float, log_reference: float) -> float:
    """ln((base + x)/(base + reference)) without cancellation: x - reference is exact where the ratio is small."""
    ratio = (x - reference) / (base + reference)
    near = abs(ratio) <= 0.5
    far_log = (log1p(x) if base == 1.0 else log(x)) - log_reference
    return log1p(ratio if near else 0.0) if near else far_log


@kernel
def _careful_side(x: FloatArray, base: float, reference: float, d: FloatArray) -> tuple[float, float]:
    """Centred logs of one side; returns the smallest and the largest (0 for an empty side)."""
    widest_vectors()
    log_reference = log_base(base, reference)
    for i in range(x.size):
        d[i] = centred_log(x[i], base, reference, log_reference)
    if x.size == 0:
        return 0.0, 0.0
    found = scan(x)
    low, high = float_of(found.low), float_of(found.high)
    return (
        centred_log(low, base, reference, log_reference),
        centred_log(high, base, reference, log_reference),
    )


@kernel
def _power_of_two_above(x: float) -> float:
    """The power of two above x, for 0 <= x < 2**1000; 2**-1021 for subnormal x."""
    exponent = bits_of(x) >> 52
    return float_of(max(exponent + 1, 2) << 52)


@reduction
def _weighted_sum(d: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Sum of weight times value, and of the weights, over a block."""
    widest_vectors()
    total = weights = 0.0
    for i in range(d.size):
        total += weight[i] * d[i]
        weights += weight[i]
    return total, weights


@kernel
def weighted_total(d: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """`_weighted_sum`, block by block."""
    total = weights = 0.0
    for i in range(0, d.size, BLOCK):
        part, part_weight = _weighted_sum(d[i : i + BLOCK], weight[i : i + BLOCK])
        total += part
        weights += part_weight
    return total, weights


class Bounds(NamedTuple):
    """Bounds of a column's centred logs; `neg_high` is 0 without negative values."""

    low: float
    high: float
    neg_high: float


@kernel
def centred_logs(sides: Sides, base: float, reference: float, d: FloatArray) -> Bounds:
    """Centred logs of both sides, written one after the other; a negative `reference` is one of the negative values."""
    border, n = sides.pos.size, sides.pos.size + sides.neg.size
    low, high = _careful_side(sides.pos, base, max(reference, 0.0), d[:border])
    return Bounds(low, high, _careful_side(sides.neg, base, max(-reference, 0.0), d[border:n])[1])


@kernel
def unit_of(bounds: Bounds) -> float:
    """The power of two that logs are divided by."""
    return _power_of_two_above(max(-bounds.low, max(bounds.high, bounds.neg_high)))


@kernel
def logs_in_units(sides: Sides, bounds: Bounds, sigma: float, centre: float, d: FloatArray) -> Logs:
    """Divide the logs in `d` by `sigma`; `centre` is the signed log of a reference with both signs, else 0."""
    border, n = sides.pos.size, sides.pos.size + sides.neg.size
    unit = 1.0 / sigma
    for i in range(n):
        d[i] *= unit
    centre *= unit
    pos, neg = d[:border], d[border:n]
    above, weight_above = weighted_total(pos, sides.pos_weight)
    below, weight_below = weighted_total(neg, sides.neg_weight)
    across = min(centre, 0.0) * weight_above + max(centre, 0.0) * weight_below
    jacobian = (above - below - across) / (weight_above + weight_below)
    return Logs(
        pos,
        sides.pos_weight,
        neg,
        sides.neg_weight,
        bounds.low * unit,
        bounds.high * unit,
        bounds.neg_high * unit,
        jacobian,
        sigma,
        centre,
    )


@kernel
def careful_logs(sides: Sides, base: float, reference: float, spare: FloatArray) -> Logs:
    """Logs of a column in units of a power of two, written to `spare`; for `reference` see `centred_logs`."""
    bounds = centred_logs(sides, base, reference, spare)
    centre = math.copysign(log_base(base, abs(reference)), reference) if sides.neg.size > 0 else 0.0
    sigma = max(unit_of(bounds), _power_of_two_above(abs(centre)))
    return logs_in_units(sides, bounds, sigma, centre, spare)


class Centred(NamedTuple):
    """Logs of a column and the log that they are relative to; the smallest and the largest magnitude in it."""

    logs: Logs
    log_reference: float
    base: float
    smallest: float
    largest: float


@kernel
def _careful(column: Prepared, work: Work) -> Centred:
    found, base = column.found, column.base
    sides = sides_of(column.x, column.weight, found.n_negative, work)
    reference = _reference(sides, column.weight.size > 0, work.spare)
    logs = careful_logs(sides, base, reference, work.spare)
    largest = max(float_of(found.high), float_of(found.negative_high))
    return Centred(logs, log_base(base, abs(reference)), base, float_of(found.low), largest)


@kernel
def _reference(sides: Sides, weighted: bool, scratch: FloatArray) -> float:
    """A value that many, or heavy ones, are close to; negative if it is one of the negative side of two.

    Without weights 0 will do for both signs: there is a value on either side of it.
    """
    if sides.neg.size == 0:
        return _typical(sides.pos, sides.pos_weight, scratch)
    if not weighted:
        return 0.0
    if _total_weight(sides.pos_weight) >= _total_weight(sides.neg_weight):
        return _typical(sides.pos, sides.pos_weight, scratch)
    return -_typical(sides.neg, sides.neg_weight, scratch)


@kernel
def has_root_near(d1: float, d2: float, d3: float) -> bool:
    """Newton-Kantorovich, to third order: with ``|g' g'''| <= g''^2 / 2`` g' has a root within twice the Newton step.

    g is strictly convex, so it is the only one.
    """
    return d2 > 0.0 and abs(d1 * d3) <= 0.5 * d2 * d2


@kernel
def careful_optimum(centred: Centred, exponent: float, n_eval: int, scratch: Scratch) -> Optimum:
    """Certified optimum, or the moments at a given `exponent` (NaN: none given)."""
    logs = centred.logs
    given = exponent == exponent
    state = newton_start(exponent * logs.sigma if given else _start(logs), 4.0, 1e-8, MAX_EVAL)
    searching = not given
    while True:  # one call of score, not two, which would double the compiled code
        mu = state.x
        at = score(logs, mu, scratch)
        n_eval += 1
        if not searching:
            break
        # a difference below its own rounding is none: Newton's steps would follow the noise
        d1 = at.d1 if abs(at.d1) > 2.0 * _EPS * abs(logs.jacobian) else 0.0
        state = newton_step(state, d1, at.d2, at.d3)
        searching = state.status == RUNNING
    certified = state.status == CONVERGED and has_root_near(at.d1, at.d2, at.d3)
    status = _FIXED if given else _OK if certified else _NOT_CERTIFIED
    extreme = 0.0
    if logs.neg.size == 0:
        extreme = centred.largest if mu > 0.0 else centred.smallest
    nll = nll_at(logs, mu, at, centred.log_reference)
    return optimum(logs, mu, _at_extreme(logs, mu, at), nll, centred.base, extreme, n_eval, status)


@kernel
def _start(logs: Logs) -> float:
    """lambda = 1, or 0 for a tight cluster, whose unit of lambda is large.

    Two values, and logs that are as good as symmetric, have their optimum at 0, where no step is taken any more.
    """
    if logs.neg.size == 0 and logs.sigma < _TIGHT:
        return 0.0
    return min(logs.sigma, 1.0)


@kernel
def _at_extreme(logs: Logs, mu: float, at: Score) -> Score:
    """The same score with mean and log-factor as standardising wants them.

    One branch: relative to the largest log for mu > 0, the smallest for mu < 0, where nothing overflows.
    """
    if logs.neg.size > 0:
        log_factor = at.log_factor + growth_at_centre(logs, mu)
        return Score(at.d1, at.d2, at.d3, at.mean, at.variance, log_factor, 0.0)
    shift = logs.high if mu > 0.0 else logs.low
    return Score(at.d1, at.d2, at.d3, at.mean - _b(-mu, shift), at.variance, 0.0, shift)


@kernel
def optimum(
    logs: Logs, mu: float, at: Score, nll: float, base: float, extreme: float, n_eval: int, status: int
) -> Optimum:
    """The optimum `mu` in the column's own units; `extreme` is the value at ``at.shift`` (0 with both signs)."""
    return Optimum(
        mu / logs.sigma,
        at.mean * logs.sigma,
        math.sqrt(at.variance) * logs.sigma,
        at.log_factor,
        extreme,
        log_base(base, extreme),
        nll,
        at.d2 * logs.sigma * logs.sigma,
        n_eval,
        status,
    )


@kernel
def _total_weight(weight: FloatArray) -> float:
    return weighted_total(weight, weight)[1]


@kernel
def _typical(x: FloatArray, weight: FloatArray, scratch: FloatArray) -> float:
    """The median of at most 63 values, evenly spaced in weight: a reference inside the bulk of the data.

    A value with more than half of the weight is the median.
    """
    spacing = _total_weight(weight) / min(x.size, _MOST_TYPICAL)
    seen, n = 0.0, 0
    for i in range(x.size):
        seen += weight[i]
        while n < _MOST_TYPICAL and (n + 0.5) * spacing < seen:
            value, k = x[i], n  # sorted as they come in
            while k > 0 and scratch[k - 1] > value:
                scratch[k] = scratch[k - 1]
                k -= 1
            scratch[k] = value
            n += 1
    return float(scratch[n // 2])


# --- the plain way ------------------------------------------------------------------------------------


class _Column(NamedTuple):
    """A column on the plain way: which logs stand for it.

    `sign` is 1, -1, or 0 for both signs, by a few of the values where it is not `known`.
    """

    sign: float
    known: bool
    base: float
    ref: float
    log_ref: float


class _Walk(NamedTuple):
    """Where a walk of Halley steps ended, and where its last moments were taken."""

    x: float
    evaluated_at: float
    n_eval: int
    good: bool


class _Stage(NamedTuple):
    """Tolerances of a walk in float32 or float64."""

    step: float
    floor: float
    reach: float


#: `step`, in units of 1/`_radius`: a step below it ends the walk, for what remains is a fraction of its cube. `floor`:
#: the smallest |m| * spread at which plain sums are evaluated, for Y_2 and Y_3 lose one and two powers of it.
#: `reach`: squares of e^t stay finite for |t| up to it.
_COARSE = _Stage(5e-2, 1e-2, 40.0)
_FINE = _Stage(2e-5, 1e-5, 340.0)


@kernel
def _off_the_floor(x: float, both_signs: bool, floor: float) -> float:
    """The nearest point at which |x| (and |2 - x|) are at least `floor`."""
    if abs(x) < floor:
        return math.copysign(floor, x)
    if both_signs and abs(2.0 - x) < floor:
        return 2.0 - math.copysign(floor, 2.0 - x)
    return x


@kernel
def _in_reach(column: _Column, exponent: float, farthest: float, reach: float) -> bool:
    """Whether |t| <= `reach` for all logs up to the `farthest`."""
    steepest = max(abs(exponent), abs(2.0 - exponent) if column.sign == 0.0 else 0.0)
    return steepest * farthest <= reach


@kernel
def _logs(column: _Column, x: FloatArray, d: FloatArray, d32: Float32Array) -> LogSums:
    if column.sign == 0.0:
        return signed_logs(x, d, d32)
    flip = SIGN if column.sign < 0.0 else 0
    kept = MAGNITUDE if column.known else -1
    return logs_of_one_sign(x, flip, kept, column.base, 1.0 / (column.base + column.ref), d, d32)


@kernel
def _spread(column: _Column, n: int, sums: LogSums) -> float:
    mean = 0.0 if column.sign == 0.0 else sums.total / n
    return math.sqrt(max(sums.squares / n - mean * mean, 0.0))


@kernel
def _plain(column: _Column, low: int, high: int) -> bool:
    """Whether `LogSums` of all values, or of some, do not speak against the plain way."""
    if max(low, high) >= INF_BITS:
        return False
    if column.sign == 0.0:
        return column.known or (low > 0 and high >= 0)
    # 0 and -0 are not negative
    return low >= (1 if column.sign < 0.0 else 0) and column.base + float_of(low) >= _SMALLEST_NORMAL


@kernel
def _farthest(column: _Column, low: int, high: int) -> float:
    """The largest magnitude of the logs."""
    if column.sign == 0.0:
        return log1p(float_of(max(low, high)))
    above = abs(log(column.base + float_of(high)) - column.log_ref)
    return max(above, abs(log(column.base + float_of(low)) - column.log_ref))


@kernel
def _shifted_score(moments: FloatArray, jacobian: float, shift: float) -> tuple[float, float, float]:
    """g', g'', g''' a tiny `shift` away from where the moments were taken."""
    d1, d2, d3 = score_from_moments(moments, jacobian)
    return d1 + shift * (d2 + 0.5 * shift * d3), d2 + shift * d3, d3


@kernel
def _walk(
    column: _Column,
    d: AnyFloats,
    farthest: float,
    jacobian: float,
    spread: float,
    start: float,
    stage: _Stage,
    moments: FloatArray,
) -> _Walk:
    """Halley steps on plain sums until a step is below the tolerance; not good where plain sums fail."""
    x = at = start
    state = newton_start(start, 2.0 / spread, 0.0, _MAX_PLAIN_EVAL)
    while state.status == RUNNING:
        x = state.x
        at = _off_the_floor(x, column.sign == 0.0, stage.floor / spread)
        if not _in_reach(column, at, farthest, stage.reach):
            break
        moments[:] = 0.0
        for i in range(0, d.size, CHUNK):
            add_sums(d[i : i + CHUNK], at, column.sign == 0.0, moments)
        if not centre(moments):
            break
        d1, d2, d3 = _shifted_score(moments, jacobian, x - at)
        state = newton_step(state, d1, d2, d3)
        if abs(state.x - x) * _radius(moments) <= stage.step:
            return _Walk(state.x, at, state.n_eval, has_root_near(d1, d2, d3))
    return _Walk(x, at, state.n_eval, False)


@kernel
def _radius(t: FloatArray) -> float:
    """How fast moments grow with lambda, as a log: its k-th power is the order of the score's k-th derivative."""
    return math.sqrt(abs((t[Y1Y1] + t[YY2]) / t[YY]))


@kernel
def _walk_on_sample(
    column: _Column, x: FloatArray, scratch: FloatArray, d32: Float32Array, moments: FloatArray
) -> tuple[_Walk, float]:
    """The optimum of at most SAMPLE evenly spaced values, nearly to float32 precision, and their spread.

    A spread of 0 if they do not differ or are not plain.
    """
    stride = max(min(SAMPLE_STRIDE, x.size // PLAIN_MIN), -(-x.size // SAMPLE))
    n = x.size // stride
    if stride > 1:
        for i in range(n):
            scratch[n + i] = x[i * stride]
        x = scratch[n : 2 * n]
    d32 = d32[:n]
    sums = _logs(column, x, scratch[:n], d32)
    spread = _spread(column, n, sums)
    if not (spread > 0.0 and _plain(column, sums.low, sums.high)):
        return _Walk(1.0, 1.0, 0, False), 0.0
    farthest = _farthest(column, sums.low, sums.high)
    return _walk(column, d32, farthest, sums.total / n, spread, 1.0, _COARSE, moments), spread


@kernel
def _logs_and_sums(
    column: _Column, x: FloatArray, exponent: float, d: FloatArray, d32: Float32Array, moments: FloatArray
) -> LogSums:
    """All logs and, while a chunk of them is in the cache, its float32 sums; stops at a value that is not plain."""
    sums = LogSums(0.0, 0.0, SIGN if column.sign == 0.0 else MAGNITUDE, SIGN)
    ahead = x.size if x.size <= _NEXT_COLUMN else _SAME_COLUMN
    moments[:] = 0.0
    for i in range(0, x.size, CHUNK):
        chunk = d[i : i + CHUNK]
        chunk32 = d32[: chunk.size]
        sums = _logs_of_chunk(column, x[i : i + CHUNK], ahead, chunk, chunk32, sums)
        if max(sums.low, sums.high) >= INF_BITS or (column.sign != 0.0 and sums.low < 0):
            break
        add_sums(chunk32, exponent, column.sign == 0.0, moments)
    return sums


@kernel
def _logs_of_chunk(
    column: _Column, x: FloatArray, ahead: int, d: FloatArray, d32: Float32Array, sums: LogSums
) -> LogSums:
    """Add `_logs` to `sums`, asking for the values that are so far `ahead` before each piece."""
    for i in range(0, x.size, _PIECE):
        piece = x[i : i + _PIECE]
        for j in range(0, piece.size, _LINE):
            prefetch(piece, (j + ahead,))
        part = _logs(column, piece, d[i : i + _PIECE], d32[i : i + _PIECE])
        low = max(sums.low, part.low) if column.sign == 0.0 else min(sums.low, part.low)
        sums = LogSums(sums.total + part.total, sums.squares + part.squares, low, max(sums.high, part.high))
    return sums


class _Plain(NamedTuple):
    """An optimum from plain sums, NOT_CERTIFIED where they will not do, and the smallest and largest value.

    `stopped`: at a value that is missing, not finite, or of a sign that was not expected.
    """

    optimum: Optimum
    stopped: bool
    x_min: float
    x_max: float


@kernel
def _not_plain(n_eval: int, stopped: bool) -> _Plain:
    return _Plain(_no_optimum(n_eval), stopped, 0.0, 0.0)


@kernel
def _plain_optimum(column: Prepared, known: bool, work: Work) -> _Plain:
    """Optimum from plain sums."""
    x, n = column.x, column.x.size
    if n < PLAIN_MIN:
        return _not_plain(0, False)
    d, moments = work.spare[:n], work.scratch.moments[0]
    frame = _plain_column(column, known)
    if not 0.0 < frame.base + frame.ref < math.inf:  # one of a few values is missing, or has no logarithm
        return _not_plain(0, True)
    walk, spread = _walk_on_sample(frame, x, work.spare, work.d32, moments)
    if spread == 0.0:
        return _not_plain(0, True)
    n_eval = walk.n_eval + 1
    start = _off_the_floor(walk.x, frame.sign == 0.0, _COARSE.floor / spread) if walk.good else 1.0
    sums = _logs_and_sums(frame, x, start, d, work.d32, moments)
    if not _plain(frame, sums.low, sums.high):
        return _not_plain(n_eval, True)
    farthest, jacobian, spread = _farthest(frame, sums.low, sums.high), sums.total / n, _spread(frame, n, sums)
    if walk.good and _in_reach(frame, start, farthest, _COARSE.reach) and centre(moments):
        d1, d2, d3 = score_from_moments(moments, jacobian)
        start = newton_step(newton_start(start, 2.0 / spread, 0.0, 2), d1, d2, d3).x
    if not (spread >= PLAIN_SPREAD and farthest <= PLAIN_REACH):
        return _not_plain(n_eval, False)
    walk = _walk(frame, d, farthest, jacobian, spread, start, _FINE, moments)
    n_eval += walk.n_eval
    mean, variance, curvature = _moments_at(moments, walk.x - walk.evaluated_at)
    if not (walk.good and variance >= PLAIN_SD * PLAIN_SD):
        return _not_plain(n_eval, False)
    nll = 0.5 * log(variance) + frame.log_ref - (walk.x - 1.0) * jacobian
    best = Optimum(walk.x, mean, math.sqrt(variance), 0.0, frame.ref, frame.log_ref, nll, curvature, n_eval, _OK)
    low, high = float_of(sums.low), float_of(max(sums.high, 0))
    if frame.sign > 0.0:
        return _Plain(best, False, low, high)
    return _Plain(best, False, -high, -low) if frame.sign < 0.0 else _Plain(best, False, -low, high)


@kernel
def _no_optimum(n_eval: int) -> Optimum:
    return Optimum(1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, n_eval, _NOT_CERTIFIED)


@kernel
def _moments_at(t: FloatArray, step: float) -> tuple[float, float, float]:
    """Mean and variance of the transformed values, and g'', a short step from where moments were taken (Taylor)."""
    mean = t[Y] + step * (t[Y1] + step * (t[Y2] / 2.0 + step * t[Y3] / 6.0))
    bend = t[Y1Y1] + t[YY2]
    square = t[YY] + step * (2.0 * t[YY1] + step * (bend + step * (t[Y1Y2] + t[YY3] / 3.0)))
    _, d2, d3 = score_from_moments(t, 0.0)
    return mean, square / t[WEIGHT], d2 + step * d3


# --- one column ---------------------------------------------------------------------------------------


class Work(NamedTuple):
    """Scratch for one column: five arrays of its length and two small ones."""

    packed: FloatArray
    spare: FloatArray
    split: FloatArray
    weight: FloatArray
    weight_split: FloatArray
    d32: Float32Array
    scratch: Scratch


class Prepared(NamedTuple):
    """A column without missing values; `sign` is 1, -1, or 0 for both signs; `status` is _OK or a refusal."""

    x: FloatArray
    weight: FloatArray
    found: Scan
    base: float
    sign: float
    status: int


@kernel
def prepare(x: FloatArray, weight: FloatArray, family: int, work: Work) -> Prepared:
    """Squeeze out missing values and zero weights, and look at what is left."""
    found = scan(x)
    n_weights = 0
    if found.n_nan > 0 or weight.size > 0:
        n = squeeze(x, weight, work.packed, work.weight)
        n_weights = n if weight.size > 0 else 0
        x = work.packed[:n]
        found = scan(x)
    base = 1.0 if family == YEO_JOHNSON else 0.0
    sign = 0.0
    if found.n_negative == 0:
        sign = 1.0
    elif found.n_negative == x.size:
        sign = -1.0
    return Prepared(x, work.weight[:n_weights], found, base, sign, _refusal(x.size, found, family, sign != 0.0))


@kernel
def _unscanned(x: FloatArray, weight: FloatArray, family: int) -> Prepared:
    """A column as most are, with the sign of a few evenly spaced values."""
    n = min(x.size, _FEW)
    n_negative = 0
    for i in range(n):
        n_negative += x[i * (x.size // n)] < 0.0
    sign = 0.0 if 0 < n_negative < n else 1.0 if n_negative == 0 else -1.0
    base, status = (1.0, _OK) if family == YEO_JOHNSON else (0.0, _OK if sign > 0.0 else BAD_NOT_POSITIVE)
    return Prepared(x, weight, Scan(0, 0, 0, 0, 0), base, sign, status)


@kernel
def fit_column(x: FloatArray, weight: FloatArray, family: int, lmbda: float, work: Work, row: FloatArray) -> None:
    """Fit one column into `row`; `weight` may be empty (all one) and `lmbda` NaN (to be found)."""
    hopeful = lmbda != lmbda and weight.size == 0
    column, known = _unscanned(x, weight, family), not hopeful
    n_eval = 0
    while True:  # one call of _plain_optimum, not two, which would double the compiled code
        if known:
            column = prepare(x, weight, family, work)
        if hopeful and column.status == _OK:
            plain = _plain_optimum(column, known, work)
            n_eval += plain.optimum.n_eval
            if plain.optimum.status == _OK:
                write_range(row, float(column.x.size), plain.x_min, plain.x_max)
                write_fit(row, plain.optimum, column.sign)
                row[N_EVAL] = n_eval
                return
            hopeful = plain.stopped
        if known:
            break
        known = True
    x, found = column.x, column.found
    low, high, negative_high = float_of(found.low), float_of(found.high), float_of(found.negative_high)
    n_obs = float(x.size) if weight.size == 0 else _total_weight(column.weight)
    x_min = low if column.sign > 0.0 else -negative_high
    x_max = -low if column.sign < 0.0 else high
    write_range(row, n_obs, x_min, x_max)
    if column.status != _OK:
        write_identity(row, column.status)
        return
    exponent = lmbda if column.sign >= 0.0 else 2.0 - lmbda
    best = careful_optimum(_careful(column, work), exponent, n_eval, work.scratch)
    write_fit(row, best, column.sign)
    if lmbda == lmbda and row[STATUS] == _FIXED:
        row[LMBDA] = row[LMBDA0] = lmbda  # without the rounding of 2 - (2 - lambda)


@kernel
def _refusal(n: int, found: Scan, family: int, one_sided: bool) -> int:
    """Why a column cannot be fitted, or OK."""
    if n == 0:
        return _EMPTY
    if max(found.high, found.negative_high) == INF_BITS:
        return BAD_INFINITE
    if family == BOX_COX and (found.n_negative > 0 or found.low == 0):
        return BAD_NOT_POSITIVE
    return _CONSTANT if one_sided and found.low == max(found.high, found.negative_high) else _OK


@kernel
def sides_of(x: FloatArray, weight: FloatArray, n_negative: int, work: Work) -> Sides:
    """Magnitudes and weights by sign, copied only where there are negative values or no weights."""
    n = x.size
    if weight.size == 0:
        weight = work.weight[:n]
        weight[:] = 1.0
    if n_negative == 0:
        return Sides(x, x[:0], weight, weight[:0])
    border = split_signs(x, x, work.split)
    weight_split = work.weight_split[:n]
    split_signs(x, weight, weight_split)
    if border == 0:
        return Sides(work.split[:n], x[:0], weight_split, weight[:0])
    return Sides(work.split[:border], work.split[border:n], weight_split[:border], weight_split[border:])


@kernel
def _rough_log(x: FloatArray, base: float) -> float:
    """Mean log of a few evenly spaced values."""
    n = min(x.size, _FEW)
    stride = x.size // n
    total = 0.0
    for i in range(n):
        total += log(base + abs(x[i * stride]))
    return total / n


@kernel
def _plain_column(column: Prepared, known: bool) -> _Column:
    base, both_signs = column.base, column.sign == 0.0
    ref = 0.0 if both_signs else exp(_rough_log(column.x, base)) - base
    return _Column(column.sign, known, base, ref, 0.0 if both_signs else log(base + ref))


@kernel
def _b(m: float, a: float) -> float:
    return a if m == 0.0 else expm1(m * a) / m


@kernel
def write_range(row: FloatArray, n_obs: float, x_min: float, x_max: float) -> None:
    """What a row says of the data: none left out, none rescaled."""
    row[N_OBS], row[X_MIN], row[X_MAX] = n_obs, x_min, x_max
    row[N_KEPT], row[KEPT_LOW], row[KEPT_HIGH] = n_obs, x_min, x_max
    row[CENTRE], row[DIVISOR] = 0.0, 1.0


@kernel
def write_fit(row: FloatArray, best: Optimum, sign: float) -> None:
    """Translate the optimum of one branch (sign +-1) or of both (0) into lambda and the constants of the transform.

    The identity where they are beyond float64.
    """
    m = best.exponent
    if sign == 0.0:
        log_factor = best.log_factor if best.log_factor > _LARGE_LOG else 0.0
        factor = exp(best.log_factor - log_factor)
        loc, sign = best.mean * factor, 1.0
        row[SLOPE] = 1.0 / (best.sd * factor)
    else:
        # psi(x) - psi(ref) = e^(m log_ref) b_m(d): the slope needs no power of ref, mean and sd do
        t = m * best.log_ref
        log_factor = t if t > _LARGE_LOG else 0.0
        factor = exp(t - log_factor)
        at_ref = (1.0 - exp(-t)) / m if log_factor > 0.0 else _b(m, best.log_ref)
        loc = sign * (at_ref + factor * best.mean)
        row[SLOPE] = 1.0 / best.sd
    row[LMBDA] = row[LMBDA0] = m if sign > 0.0 else 2.0 - m
    row[LOC] = loc
    row[SCALE] = best.sd * factor
    row[LOG_FACTOR] = log_factor
    row[REF] = sign * best.ref
    row[INTERCEPT] = -sign * best.mean / best.sd
    row[NLL] = best.nll
    row[CURVATURE] = best.curvature
    row[N_EVAL] = best.n_eval
    row[STATUS] = best.status
    if not (abs(row[LMBDA]) < math.inf and abs(row[SLOPE]) < math.inf and abs(row[INTERCEPT]) < math.inf):
        write_identity(row, _UNREPRESENTABLE)


@kernel
def is_identity(row: FloatArray) -> bool:
    """Whether the column could not be fitted and passes through unchanged."""
    return bool(row[STATUS] in (_CONSTANT, _EMPTY, _UNREPRESENTABLE, _NO_SPREAD))


@kernel
def write_identity(row: FloatArray, status: int) -> None:
    """The transform of a column without a fit."""
    row[LMBDA], row[LMBDA0], row[LOC], row[SCALE], row[LOG_FACTOR] = 1.0, 1.0, 0.0, 1.0, 0.0
    row[REF], row[SLOPE], row[INTERCEPT] = 0.0, 1.0, 0.0
    row[NLL], row[CURVATURE], row[N_EVAL] = math.nan, math.nan, 0.0
    if status == _EMPTY:
        row[X_MIN], row[X_MAX], row[KEPT_LOW], row[KEPT_HIGH] = math.nan, math.nan, math.nan, math.nan
    row[STATUS] = status


# --- profiles and intervals ---------------------------------------------------------------------------


@kernel
def profile_column(
    x: FloatArray, weight: FloatArray, family: int, lmbdas: FloatArray, work: Work, out: FloatArray
) -> None:
    """out = g(lambda) for every lambda; NaN for a column that cannot be fitted."""
    column = prepare(x, weight, family, work)
    out[:] = math.nan
    if column.status != _OK:
        return
    profile_of(_careful(column, work), column.sign, lmbdas, work.scratch, out)


@kernel
def profile_of(centred: Centred, sign: float, lmbdas: FloatArray, scratch: Scratch, out: FloatArray) -> None:
    """out = g(lambda) for every lambda; `sign` is 1, -1, or 0 for both signs."""
    for k in range(lmbdas.size):
        mu = (lmbdas[k] if sign >= 0.0 else 2.0 - lmbdas[k]) * centred.logs.sigma
        at = score(centred.logs, mu, scratch)
        out[k] = nll_at(centred.logs, mu, at, centred.log_reference)


@kernel
def interval_column(
    x: FloatArray, weight: FloatArray, family: int, lmbda: float, drop: float, work: Work, out: FloatArray
) -> None:
    """The two lambdas at which g exceeds g(lmbda) by `drop`; NaN for a column that cannot be fitted."""
    column = prepare(x, weight, family, work)
    out[:] = math.nan
    if column.status != _OK:
        return
    interval_of(_careful(column, work), column.sign, lmbda, drop, work.scratch, out)


@kernel
def interval_of(centred: Centred, sign: float, lmbda: float, drop: float, scratch: Scratch, out: FloatArray) -> None:
    """The two lambdas at which g exceeds g(lmbda) by `drop`; `sign` is 1, -1, or 0 for both signs."""
    sigma = centred.logs.sigma
    mu = (lmbda if sign >= 0.0 else 2.0 - lmbda) * sigma
    lower = _drop_point(centred, mu, drop, -1.0, scratch) / sigma
    upper = _drop_point(centred, mu, drop, 1.0, scratch) / sigma
    out[0] = lower if sign >= 0.0 else 2.0 - upper
    out[1] = upper if sign >= 0.0 else 2.0 - lower


class _Excess(NamedTuple):
    """What g exceeds its target by at a distance from its minimum, and three derivatives in the distance."""

    distance: float
    value: float
    d1: float
    d2: float
    d3: float


@kernel
def _drop_point(centred: Centred, mu: float, drop: float, side: float, scratch: Scratch) -> float:
    """Where g has grown by `drop` on one side of its minimum: the root of a convex function of the distance.

    It lies between the zeros of a chord and of a tangent, and is found where these meet. NaN if the cap of evaluations
    is reached before, an infinity if it is beyond float64.
    """
    logs = centred.logs
    low = high = _Excess(math.inf, 0.0, 1.0, 0.0, 0.0)
    lowest = math.nan
    distance, panel = 0.0, math.inf
    for _ in range(MAX_EVAL):
        at = score(logs, mu + side * distance, scratch)
        nll = nll_at(logs, mu + side * distance, at, centred.log_reference)
        here = _Excess(distance, nll - lowest - drop, side * at.d1, at.d2, side * at.d3)
        if lowest != lowest:
            lowest = nll
            low = _Excess(0.0, -drop, here.d1, here.d2, here.d3)
            distance = math.sqrt(2.0 * drop / at.d2)
            if drop < _FELT * (1.0 + abs(nll)):
                panel = distance
            continue
        if panel < math.inf:
            growth, error = _integral(low, here)
            if not error <= _PANEL_ERROR * drop:
                panel = 0.25 * (distance - low.distance)
                distance = low.distance + panel
                continue
            here = _Excess(distance, low.value + growth, here.d1, here.d2, here.d3)
            panel *= 2.0
        if here.value < 0.0:
            low = here
        else:
            high = here
        tolerance = max(_END_ERROR * drop / here.d1, _EPS * abs(mu))
        least, most = _zeros(low, high)
        if most - least <= tolerance:
            return mu + side * min(max(least, low.distance), high.distance)
        distance = min(_next_distance(low, high, here, least, most, tolerance), low.distance + panel)
        if not distance < _FAR:
            return side * math.inf
    return math.nan


@kernel
def _integral(a: _Excess, b: _Excess) -> tuple[float, float]:
    """The integral of g' from a to b, and a bound of its error, by Hermite's formulas of sixth and fourth order.

    g itself is known to its rounding only, in which a small drop is lost; g' is not.
    """
    h = b.distance - a.distance
    ends, bends = 0.5 * h * (a.d1 + b.d1), h * h * (a.d2 - b.d2)
    sixth = ends + bends / 10.0 + h * h * h * (a.d3 + b.d3) / 120.0
    return sixth, abs(sixth - ends - bends / 12.0)


@kernel
def _tangent_zero(at: _Excess) -> float:
    return at.distance - at.value / at.d1 if at.d1 > 0.0 else math.inf


@kernel
def _zeros(low: _Excess, high: _Excess) -> tuple[float, float]:
    """Bounds of the root of a convex function: the zeros of the chord and of the tangents at its ends."""
    most = min(high.distance, min(_tangent_zero(low), _tangent_zero(high)))
    if not high.distance < math.inf:
        return low.distance, math.inf
    share = low.value / (low.value - high.value)
    return low.distance + share * (high.distance - low.distance), most


@kernel
def _next_distance(low: _Excess, high: _Excess, here: _Excess, least: float, most: float, tolerance: float) -> float:
    """Halley's point; where it is good to the tolerance, a little beyond, so that it is enclosed."""
    newton = here.value / here.d1
    factor = 1.0 - 0.5 * newton * (here.d2 / here.d1)
    step = -newton / factor if factor > 0.5 else -newton
    x = here.distance + step
    if abs(step) <= _NEARLY * here.distance:
        x += math.copysign(0.25 * tolerance, step)
    if not high.distance < math.inf:
        farthest = 4.0 * here.distance
        return x if low.distance < x < farthest else farthest
    if not least <= x <= most:
        x = most
    return x if low.distance < x < high.distance else 0.5 * (low.distance + high.distance)


# --- entries ------------------------------------------------------------------------------------------

WORK = (
    "Tuple((float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
    "float32[::1], float64[:, ::1], float64[:, ::1]))"
)


@kernel
def unpack(work: tuple[Any, ...]) -> Work:
    """The tuple that entries take, by name."""
    packed, spare, split, weight, weight_split, d32, y, moments = work
    return Work(
        borrowed(packed),
        borrowed(spare),
        borrowed(split),
        borrowed(weight),
        borrowed(weight_split),
        borrowed(d32),
        Scratch(borrowed(y), borrowed(moments)),
    )


@entry(f"void(float64[:, ::1], float64[::1], int64, float64[::1], {WORK}, float64[:, ::1])")
def fit_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbda: FloatArray,
    work: tuple[FloatArray, ...],
    out: FloatArray,
) -> None:
    """Fit the rows of `columns`, each one column of the user's matrix made contiguous."""
    each, columns, weight, out = unpack(work), borrowed(columns), borrowed(weight), borrowed(out)
    for j in range(columns.shape[0]):
        fit_column(columns[j], weight, family, lmbda[j], each, out[j])


@entry(f"void(float64[:, ::1], float64[::1], int64, float64[::1], {WORK}, float64[:, ::1])")
def profile_columns(
    columns: FloatArray,
    weight: FloatArray,
    family: int,
    lmbdas: FloatArray,
    work: tuple[FloatArray, ...],
    out: FloatArray,
) -> None:
    """Profile likelihoods of the rows of `columns` at all `lmbdas`."""
    each = unpack(work)
    for j in range(columns.shape[0]):
        profile_column(columns[j], weight, family, lmbdas, each, out[j])


@entry(f"void(float64[:, ::1], float64[::1], int64, float64[:, ::1], {WORK}, float64[:, ::1])")
def interval_columns(
    columns: FloatArray, weight: FloatArray, family: int, at: FloatArray, work: tuple[Any, ...], out: FloatArray
) -> None:
    """Likelihood intervals of the rows of `columns`; `at` holds lambda and the drop of each."""
    each = unpack(work)
    for j in range(columns.shape[0]):
        interval_column(columns[j], weight, family, at[j, 0], at[j, 1], each, out[j])
