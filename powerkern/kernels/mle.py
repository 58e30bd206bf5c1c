"""Maximum likelihood of one column: from raw values to lambda and the constants that standardise with it.

The road of a column (`fit_column`):

1. `scan` counts NaN, negative values and the extremes in one integer pass; NaN are squeezed out.
2. `split_signs` (Yeo-Johnson with both signs only) makes two contiguous arrays of magnitudes.
3. `_fit_plain` takes the logs and walks to the optimum by Halley steps on plain sums: on every 16th value in float32,
   on all values in float32, and the last step in float64 (`powerkern.kernels.plainsums`).
4. Columns that are short, weighted, tightly clustered, of enormous range, or whose plain sums lose digits go to `_fit_careful`
   (`powerkern.kernels.likelihood`), which holds for any data.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import bits_of, entry, float_of, kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern.kernels.elementary import exp, expm1, log, log1p
from powerkern.kernels.likelihood import (
    N_MOMENTS,
    SCRATCH,
    WEIGHT,
    YY,
    YY1,
    YY2,
    YY3,
    FloatArray,
    Logs,
    Score,
    Y,
    Y1,
    Y1Y1,
    Y1Y2,
    Y2,
    Y3,
    nll_at,
    score,
    score_from_moments,
)
from powerkern.kernels.minimize import CONVERGED, RUNNING, newton_start, newton_step
from powerkern.kernels.plainsums import AnyFloats, add_branch, centre, log_pass

BOX_COX, YEO_JOHNSON = 0, 1

# one row of results a column; lmbda, loc ... of powerkern.fitting.PowerFit are its columns
LMBDA, LOC, SCALE, LOG_FACTOR, REF, SLOPE, INTERCEPT, NLL, CURVATURE, N_OBS, N_EVAL, STATUS, X_MIN, X_MAX = range(14)
N_RESULTS = 14

# STATUS of a column whose values are outside the domain; the driver raises
BAD_INFINITE, BAD_NOT_POSITIVE = -1, -2

_OK, _FIXED, _CONSTANT, _EMPTY = int(Status.OK), int(Status.FIXED), int(Status.CONSTANT), int(Status.EMPTY)
_UNREPRESENTABLE, _NOT_CERTIFIED = int(Status.UNREPRESENTABLE), int(Status.NOT_CERTIFIED)

MAX_EVAL = 100

_MAGNITUDE = 0x7FFFFFFFFFFFFFFF
_INF_BITS = 0x7FF0000000000000
_SMALLEST_NORMAL = 2.2250738585072014e-308

#: Exponents above this are carried apart, in LOG_FACTOR.
_LARGE_LOG = 600.0

#: Shorter columns go the careful way at once.
PLAIN_MIN = 256
#: Columns at least this long start from the optimum of a sample, every SAMPLE_STRIDE-th value.
SAMPLE_MIN = 4096
SAMPLE_STRIDE = 16
#: Plain logs are used where their standard deviation exceeds this times the reference log: 13 digits of d.
PLAIN_SPREAD = 1e-3
#: |m d| up to which squares of e^{m d} stay finite, in float32 and float64.
REACH32, REACH64 = 40.0, 340.0
#: Smallest |m| * spread at which plain sums are evaluated: Y_2 and Y_3 lose 1 and 2 powers of it.
FLOOR32, FLOOR64 = 1e-2, 1e-5
#: Steps times spread at which a stage hands over: what remains is about its cube.
STEP32, STEP64 = 5e-2, 1e-4


class Scan(NamedTuple):
    """Counts, and bit patterns of the smallest and largest magnitude, of the values that are not NaN."""

    n_nan: int
    n_negative: int
    low: int
    high: int


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
    """One pass in integers: the magnitudes of float64 are ordered as their bit patterns are."""
    widest_vectors()
    n_nan = n_negative = 0
    low, high = _MAGNITUDE, 0
    for i in range(x.size):
        bits = bits_of(x[i]) & _MAGNITUDE
        is_nan = bits > _INF_BITS
        n_nan += is_nan
        n_negative += x[i] < 0.0
        high = max(high, 0 if is_nan else bits)
        low = min(low, bits)
    return Scan(n_nan, n_negative, low, high)


@kernel
def squeeze(x: FloatArray, weight: FloatArray, weight_out: FloatArray) -> int:
    """Move the values that are not NaN and have a weight to the front; returns their number."""
    n = 0
    for i in range(x.size):
        if x[i] == x[i] and (weight.size == 0 or weight[i] > 0.0):
            x[n] = x[i]
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
def _careful_side(x: FloatArray, base: float, reference: float, d: FloatArray) -> None:
    """d = ln((base + x)/(base + reference)) without cancellation: x - reference is exact where the ratio is near 1."""
    divisor = base + reference
    log_divisor = log1p(reference) if base == 1.0 else log(reference)
    for i in range(x.size):
        ratio = (x[i] - reference) / divisor
        if abs(ratio) <= 0.5:
            d[i] = log1p(ratio)
        else:
            d[i] = (log1p(x[i]) if base == 1.0 else log(x[i])) - log_divisor


@kernel
def _scale_down(d: FloatArray, exponent: int) -> None:
    """Multiply by 2^-exponent, in two steps that cannot overflow."""
    half = math.ldexp(1.0, -exponent // 2)
    rest = math.ldexp(1.0, -exponent - (-exponent // 2))
    for i in range(d.size):
        d[i] = d[i] * half * rest


@kernel
def _weighted_mean(d: FloatArray, weight: FloatArray) -> float:
    """Running weighted mean (West 1979): no overflow, no cancellation."""
    total = mean = 0.0
    for i in range(d.size):
        total += weight[i]
        mean += (d[i] - mean) * (weight[i] / total)
    return mean


@kernel
def careful_logs(sides: Sides, base: float, reference: float, spare: FloatArray) -> Logs:
    """Logs of a column in units of a power of two, written to `spare`."""
    n_pos = sides.pos.size
    pos, neg = spare[:n_pos], spare[n_pos : n_pos + sides.neg.size]
    _careful_side(sides.pos, base, reference, pos)
    _careful_side(sides.neg, base, 0.0, neg)
    low, high, neg_high = pos.min(), pos.max(), 0.0
    widest = max(-low, high)
    if neg.size > 0:
        neg_high = neg.max()
        widest = max(widest, neg_high)
    exponent = math.frexp(widest)[1]
    _scale_down(spare[: n_pos + neg.size], exponent)
    jacobian = _weighted_mean(pos, sides.pos_weight)
    if neg.size > 0:
        below = _weighted_mean(neg, sides.neg_weight)
        w_neg = sides.neg_weight.sum()
        share = w_neg / (w_neg + sides.pos_weight.sum())
        jacobian = (1.0 - share) * jacobian - share * below
    half = math.ldexp(1.0, -exponent // 2)
    rest = math.ldexp(1.0, -exponent - (-exponent // 2))
    return Logs(
        pos,
        sides.pos_weight,
        neg,
        sides.neg_weight,
        low * half * rest,
        high * half * rest,
        neg_high * half * rest,
        jacobian,
        math.ldexp(1.0, exponent),
    )


@kernel
def _careful_optimum(sides: Sides, base: float, exponent: float, spare: FloatArray, scratch: FloatArray) -> Optimum:
    """Certified optimum, or the moments at a given `exponent` (NaN: none given)."""
    one_sided = sides.neg.size == 0
    reference = _typical(sides.pos) if one_sided else 0.0
    logs = careful_logs(sides, base, reference, spare)
    n_eval = 0
    status = _FIXED
    mu = exponent * logs.sigma
    if exponent != exponent:
        state = newton_start(min(logs.sigma, 1.0), 4.0, 1e-8, MAX_EVAL)
        while state.status == RUNNING:
            at = score(logs, state.x, scratch)
            state = newton_step(state, at.d1, at.d2, at.d3)
        status = _OK if state.status == CONVERGED else _NOT_CERTIFIED
        n_eval = state.n_eval
        mu = state.x
    at = score(logs, mu, scratch)
    log_reference = log1p(reference) if base == 1.0 else log(reference)
    if one_sided:
        reference = sides.pos.max() if mu > 0.0 else sides.pos.min()
        log_ref = log1p(reference) if base == 1.0 else log(reference)
    else:
        log_ref, log_reference = 0.0, 0.0
    if not abs(mu / logs.sigma) < math.inf:
        status = _UNREPRESENTABLE
    return Optimum(
        mu / logs.sigma,
        at.mean * logs.sigma,
        math.sqrt(at.variance) * logs.sigma,
        at.log_factor,
        reference,
        log_ref,
        nll_at(logs, mu, at, log_reference),
        at.d2 * logs.sigma * logs.sigma,
        n_eval + 1,
        status,
    )


@kernel
def _typical(x: FloatArray) -> float:
    """The median of up to 65 evenly spaced values: a reference inside the bulk of the data."""
    sample = x[:: max(1, x.size // 65)].copy()
    sample.sort()
    return sample[sample.size // 2]


# --- the plain way ------------------------------------------------------------------------------------


class _Problem(NamedTuple):
    """Logs of the two branches, the mean log-Jacobian, and the log scale on which the score bends."""

    pos: AnyFloats
    neg: AnyFloats
    jacobian: float
    spread: float
    high: float


class _Walk(NamedTuple):
    """Where a walk of Halley steps ended, and where its last moments were taken."""

    x: float
    evaluated_at: float
    n_eval: int
    good: bool


@kernel
def _off_the_floor(x: float, two_sided: bool, floor: float) -> float:
    """The nearest point at which |x| (and |2 - x|) are at least `floor`."""
    if abs(x) < floor:
        return math.copysign(floor, x)
    if two_sided and abs(2.0 - x) < floor:
        return 2.0 - math.copysign(floor, 2.0 - x)
    return x


@kernel
def _walk(problem: _Problem, x: float, tolerance: float, floor: float, reach: float, moments: FloatArray) -> _Walk:
    """Halley steps on plain sums from x until a step is below the tolerance; not good where plain sums fail."""
    two_sided = problem.neg.size > 0
    at = x
    state = newton_start(x, 2.0 / problem.spread, tolerance / problem.spread, 20)
    while state.status == RUNNING:
        x = state.x
        at = _off_the_floor(x, two_sided, floor / problem.spread)
        if not max(abs(at), abs(2.0 - at) if two_sided else 0.0) * problem.high <= reach:
            return _Walk(x, at, state.n_eval, False)
        moments[:] = 0.0
        add_branch(problem.pos, at, 1.0, moments)
        if two_sided:
            add_branch(problem.neg, 2.0 - at, -1.0, moments)
        if not centre(moments):
            return _Walk(x, at, state.n_eval, False)
        d1, d2, d3 = score_from_moments(moments, problem.jacobian)
        shift = x - at
        state = newton_step(state, d1 + shift * (d2 + 0.5 * shift * d3), d2 + shift * d3, d3)
    return _Walk(state.x, at, state.n_eval, state.status == CONVERGED)


@kernel
def _every(x: FloatArray, stride: int, out: FloatArray) -> FloatArray:
    """Every stride-th value, made contiguous at the front of `out`."""
    n = x.size // stride
    for i in range(n):
        out[i] = x[i * stride]
    return out[:n]


@kernel
def _rough_centre(x: FloatArray, base: float) -> float:
    """Mean log of up to 64 evenly spaced values."""
    n = min(x.size, 64)
    stride = x.size // n
    total = 0.0
    for i in range(n):
        total += log(base + x[i * stride])
    return total / n


@kernel
def _take_logs(
    sides: Sides, base: float, log_ref: float, spare: FloatArray, d32: npt.NDArray[np.float32]
) -> tuple[float, float]:
    """Logs of both sides, non-negative one first; returns the mean log-Jacobian and the spread."""
    n_pos, n = sides.pos.size, sides.pos.size + sides.neg.size
    total, squares = log_pass(sides.pos, base, log_ref, spare[:n_pos], d32[:n_pos])
    if n == n_pos:
        mean = total / n
        return mean, math.sqrt(max(squares / n - mean * mean, 0.0))
    below, squares_below = log_pass(sides.neg, base, 0.0, spare[n_pos:n], d32[n_pos:n])
    return (total - below) / n, math.sqrt((squares + squares_below) / n)


@kernel
def _plain_optimum(
    sides: Sides,
    base: float,
    low: float,
    high: float,
    spare: FloatArray,
    d32: npt.NDArray[np.float32],
    moments: FloatArray,
) -> Optimum:
    """Optimum from plain sums; its status says when they do not do."""
    n_pos, n = sides.pos.size, sides.pos.size + sides.neg.size
    one_sided = n == n_pos
    log_ref = _rough_centre(sides.pos, base) if one_sided else 0.0
    reach = max(abs(log(base + high) - log_ref), abs(log(base + low) - log_ref))
    start, n_eval = 1.0, 0
    if n >= SAMPLE_MIN:
        sample = Sides(
            _every(sides.pos, SAMPLE_STRIDE, spare[: n // 4]),
            _every(sides.neg, SAMPLE_STRIDE, spare[n // 4 : n // 2]),
            sides.pos_weight,
            sides.neg_weight,
        )
        k = sample.pos.size
        jacobian, spread = _take_logs(sample, base, log_ref, spare[n // 2 :], d32)
        problem = _Problem(d32[:k], d32[k : k + sample.neg.size], jacobian, spread, reach)
        walk = _walk(problem, start, STEP32, FLOOR32, REACH32, moments)
        n_eval += walk.n_eval
        if walk.good:
            start = walk.x
    jacobian, spread = _take_logs(sides, base, log_ref, spare, d32)
    problem = _Problem(d32[:n_pos], d32[n_pos:n], jacobian, spread, reach)
    walk = _walk(problem, start, STEP32, FLOOR32, REACH32, moments)
    n_eval += walk.n_eval
    if walk.good:
        start = walk.x
    exact = _Problem(spare[:n_pos], spare[n_pos:n], jacobian, spread, reach)
    walk = _walk(exact, start, STEP64, FLOOR64, REACH64, moments)
    n_eval += walk.n_eval
    usable = walk.good and spread >= PLAIN_SPREAD * max(1.0, abs(log_ref))
    mean, variance, curvature = _moments_at(moments, walk.x - walk.evaluated_at)
    nll = 0.5 * log(variance) + log_ref - (walk.x - 1.0) * jacobian
    ref = exp(log_ref) - base if one_sided else 0.0
    return Optimum(
        walk.x,
        mean,
        math.sqrt(variance),
        0.0,
        ref,
        log_ref,
        nll,
        curvature,
        n_eval,
        _OK if usable else _NOT_CERTIFIED,
    )


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
    """Scratch for one column: three (with weights five) arrays of its length, and a small one."""

    spare: FloatArray
    split: FloatArray
    weight: FloatArray
    weight_split: FloatArray
    d32: npt.NDArray[np.float32]
    small: FloatArray


@kernel
def fit_column(x: FloatArray, weight: FloatArray, family: int, lmbda: float, work: Work, row: FloatArray) -> None:
    """Fit one column (overwritten) into `row`; `weight` may be empty (all one) and `lmbda` NaN (to be found)."""
    n = x.size
    found = scan(x)
    if found.n_nan > 0 or weight.size > 0:
        n = squeeze(x, weight, work.weight)
        found = scan(x[:n])
    x = x[:n]
    base = 1.0 if family == YEO_JOHNSON else 0.0
    one_sided = found.n_negative == 0 or found.n_negative == n
    status = _refusal(n, found, family, one_sided)
    if status != _OK:
        _write_identity(row, status)
        return
    weight = work.weight[: n if weight.size > 0 else 0]
    low, high = float_of(found.low), float_of(found.high)
    sign = 0.0 if not one_sided else (1.0 if found.n_negative == 0 else -1.0)
    sides = _sides(x, weight, found.n_negative, work)
    spare = work.spare if sign == 1.0 else x
    best = _optimum(sides, base, low, high, lmbda if sign >= 0.0 else 2.0 - lmbda, spare, work)
    if best.status == _UNREPRESENTABLE:
        _write_identity(row, _UNREPRESENTABLE)
        return
    _write(row, best, sign)
    row[N_OBS] = n if weight.size == 0 else weight.sum()
    row[X_MIN] = low if found.n_negative == 0 else -high if one_sided else -sides.neg.max()
    row[X_MAX] = -low if found.n_negative == n else high if one_sided else sides.pos.max()


@kernel
def _refusal(n: int, found: Scan, family: int, one_sided: bool) -> int:
    """Why a column cannot be fitted, or OK."""
    if n == 0:
        return _EMPTY
    if found.high == _INF_BITS:
        return BAD_INFINITE
    if family == BOX_COX and (found.n_negative > 0 or found.low == 0):
        return BAD_NOT_POSITIVE
    return _CONSTANT if one_sided and found.low == found.high else _OK


@kernel
def _sides(x: FloatArray, weight: FloatArray, n_negative: int, work: Work) -> Sides:
    """Magnitudes by sign: x itself where nothing is negative, else in `work.split`."""
    n = x.size
    if n_negative == 0:
        return Sides(x, x[:0], weight, weight[:0])
    border = split_signs(x, x, work.split)
    weight_split = work.weight_split[: weight.size]
    if weight.size > 0:
        split_signs(x, weight, weight_split)
    if border == 0:
        return Sides(work.split[:n], x[:0], weight_split, weight[:0])
    return Sides(work.split[:border], work.split[border:n], weight_split[:border], weight_split[border:])


@kernel
def _optimum(
    sides: Sides, base: float, low: float, high: float, exponent: float, spare: FloatArray, work: Work
) -> Optimum:
    """The plain way where it holds, else the careful one."""
    n_pos, n = sides.pos.size, sides.pos.size + sides.neg.size
    n_eval = 0
    if sides.pos_weight.size == 0:
        if n >= PLAIN_MIN and exponent != exponent and base + low >= _SMALLEST_NORMAL:
            best = _plain_optimum(sides, base, low, high, spare, work.d32, work.small[:N_MOMENTS])
            if best.status == _OK:
                return best
            n_eval = best.n_eval
        ones = work.weight[:n]
        ones[:] = 1.0
        sides = Sides(sides.pos, sides.neg, ones[:n_pos], ones[n_pos:])
    best = _careful_optimum(sides, base, exponent, spare, work.small)
    return best


@kernel
def _b(m: float, a: float) -> float:
    return a if m == 0.0 else expm1(m * a) / m


@kernel
def _write(row: FloatArray, best: Optimum, sign: float) -> None:
    """Translate the optimum of one branch (sign +-1) or of both (0) into lambda and the constants of the transform."""
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
    row[LMBDA] = m if sign > 0.0 else 2.0 - m
    row[LOC] = loc
    row[SCALE] = best.sd * factor
    row[LOG_FACTOR] = log_factor
    row[REF] = sign * best.ref
    row[INTERCEPT] = -sign * best.mean / best.sd
    row[NLL] = best.nll
    row[CURVATURE] = best.curvature
    row[N_EVAL] = best.n_eval
    row[STATUS] = best.status


@kernel
def _write_identity(row: FloatArray, status: int) -> None:
    row[:] = np.nan
    row[LMBDA], row[LOC], row[SCALE], row[LOG_FACTOR] = 1.0, 0.0, 1.0, 0.0
    row[REF], row[SLOPE], row[INTERCEPT] = 0.0, 1.0, 0.0
    row[N_OBS], row[N_EVAL] = 0.0, 0.0
    row[STATUS] = status


@entry(
    "void(float64[:, ::1], float64[::1], int64, float64[::1], "
    "Tuple((float64[::1], float64[::1], float64[::1], float64[::1], float32[::1], float64[::1])), float64[:, ::1])"
)
def fit_columns(
    block: FloatArray, weight: FloatArray, family: int, lmbda: FloatArray, work: tuple[FloatArray, ...], rows: FloatArray
) -> None:
    """Fit the rows of `block`, each one column of the user's matrix, contiguous and overwritten."""
    spare, split, w, w_split, d32, small = work
    for j in range(block.shape[0]):
        fit_column(block[j], weight, family, lmbda[j], Work(spare, split, w, w_split, d32, small), rows[j])
