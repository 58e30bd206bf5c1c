"""The optimum of a well-conditioned column from the sums of one pass.

The two passes within a block of `kernels.likelihood.score` hold for any data; most columns do not need them. Where
``Y_0 = e^t - 1`` (t = m d, with logs d centered near their mean) has a mean that does not dwarf its standard
deviation, the raw sums of Y_0..Y_3 and of their products give g', g'', g''' to nearly full precision.

All steps to the optimum but the last are taken on sums in float32, the last in float64 (see
`powerkern.kernels.likelihood.one_pass_sums`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import float_of, for_none, kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.likelihood.logs import FEW, INF_BITS, Prepared
from powerkern.kernels.likelihood.one_pass_chunks import (
    LogKind,
    Seen,
    Weights,
    logs_of_run,
    measured,
    no_logs,
    rounded,
    take_logs,
    with_first,
)
from powerkern.kernels.likelihood.one_pass_sums import (
    AnyFloats,
    LogSums,
    add_chunk,
    center,
    growth,
    moments_at,
    shifted_score,
)
from powerkern.kernels.likelihood.optimum import Optimum
from powerkern.kernels.likelihood.score import WEIGHT, has_root_near, score_from_moments
from powerkern.kernels.likelihood.scratch import CHUNK, SAMPLE, Work
from powerkern.kernels.moments import part_of, weight_at
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import RUNNING

_OK, _FIXED, _NOT_CERTIFIED = int(Status.OK), int(Status.FIXED), int(Status.NOT_CERTIFIED)
#: Shorter columns take two passes at once.
ONE_PASS_MIN = 256
#: Longer ones start from the optimum of a sample: one value in SAMPLE_STRIDE, more (ONE_PASS_MIN) where the column is
#: short, and at most SAMPLE.
SAMPLE_STRIDE = 16
#: Logs with an absolute error of 2e-16 are used where their standard deviation exceeds this and |d| stays below
#: ONE_PASS_REACH.
ONE_PASS_SPREAD = 1e-2
#: The standard deviation of the transformed values must exceed this too: it divides those errors.
ONE_PASS_SD = 1e-3
ONE_PASS_REACH = 600.0
#: The effective number of values, (sum w)^2/sum w^2 (Kish), must be at least this: a few that carry nearly all of the
#: weight need a reference among them, as two passes have it.
MIN_EFFECTIVE = 32.0
#: Missing values stay in the sums, where they add nothing, unless they are more than this share of a sample: then it is
#: cheaper to squeeze them out first, which with weights costs more than twice as much.
MOST_MISSING, MOST_MISSING_WEIGHTED = 0.125, 0.7
#: The values of columns that would be too short without the others stay where they are if they are at least this share:
#: two passes cost more.
_LEAST_PRESENT = 1.0 / 16.0
#: Moments are moved by Taylor series no farther than this, in units of 1/sqrt(`growth`): where a floor kept the
#: exponent from 0 and outliers dominate the higher moments, what is left out would count.
TAYLOR_REACH = 1e-4
_MAX_ONE_PASS_EVAL = 20


class Logs(NamedTuple):
    """Logs and their weights, in float32 or float64; their total, the largest magnitude, the weighted mean and spread.

    Values that are missing have a log of 0, and what they weigh is not in the total.
    """

    d: AnyFloats
    weight: AnyFloats | None
    total: float
    farthest: float
    jacobian: float
    spread: float


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


#: `step`, in units of 1/sqrt(`growth`): a step below it ends the walk, for what remains is a fraction of its cube.
#: `floor`: the smallest |m| * spread at which sums are evaluated, for Y_2 and Y_3 lose one and two powers of it.
#: `reach`: squares of e^t stay finite for |t| up to it.
_COARSE = _Stage(5e-2, 1e-2, 40.0)
FINE = _Stage(2e-5, 1e-5, 340.0)
#: Moments at the start, and no step.
GIVEN = _Stage(math.inf, 1e-5, 340.0)


@kernel
def weights_of(weight: FloatArray, n: int, weighted: bool | None) -> Weights:
    """The weights of a column of `n` values; `weighted` is None, a type, for columns without weights, else True."""
    if weighted is None:
        return Weights(None, float(n), float(n), 1.0, 1.0)
    return measured(weight)


class OnePass(NamedTuple):
    """An optimum from the sums of one pass, and the smallest and largest value.

    NOT_CERTIFIED where those sums lose too many digits.

    `stopped`: at a value that is not finite, or of a sign that was not expected, or because many are missing. `n_obs`:
    the number of values, or their weight.
    """

    optimum: Optimum
    stopped: bool
    n_obs: float
    x_min: float
    x_max: float


@kernel
def _off_the_floor(x: float, both_signs: bool, floor: float) -> float:
    """The nearest point at which |x| (and |2 - x|) are at least `floor`."""
    if abs(x) < floor:
        return math.copysign(floor, x)
    if both_signs and abs(2.0 - x) < floor:
        return 2.0 - math.copysign(floor, 2.0 - x)
    return x


@kernel
def _in_reach(column: LogKind, exponent: float, farthest: float, reach: float) -> bool:
    """Whether |t| <= `reach` for all logs up to the `farthest`."""
    steepest = max(abs(exponent), abs(2.0 - exponent) if column.sign == 0.0 else 0.0)
    return steepest * farthest <= reach


@kernel
def spread_of(column: LogKind, sums: LogSums) -> float:
    """Standard deviation of the logs, about 0 with both signs; 0 if there are none."""
    if not sums.weight > 0.0:
        return 0.0
    mean = 0.0 if column.sign == 0.0 else sums.total / sums.weight
    return math.sqrt(max(sums.squares / sums.weight - mean * mean, 0.0))


@kernel
def _admissible(column: LogKind, low: int, high: int) -> bool:
    """Whether `LogSums` of all values, or of some, allow a fit in one pass."""
    if max(low, high) >= INF_BITS:
        return False
    if column.sign == 0.0:
        return column.known or (low > 0 and high >= 0)
    # 0 and -0 are not negative
    return low >= (1 if column.sign < 0.0 else 0) and column.offset + float_of(low) >= SMALLEST_NORMAL


@kernel
def _farthest(column: LogKind, low: int, high: int) -> float:
    """The largest magnitude of the logs."""
    if column.sign == 0.0:
        return log1p(float_of(max(low, high)))
    above = abs(log(column.offset + float_of(high)) - column.log_ref)
    return max(above, abs(log(column.offset + float_of(low)) - column.log_ref))


@kernel
def walk_from(
    column: LogKind, logs: Logs, start: float, stage: _Stage, moments: FloatArray, part: FloatArray | None
) -> _Walk:
    """Halley steps on raw sums until a step is below the tolerance; not good where these lose too many digits.

    `part` as for `add_chunk`.
    """
    x = at = start
    state = newton_start(start, 2.0 / logs.spread, 0.0, _MAX_ONE_PASS_EVAL)
    while state.status == RUNNING:
        x = state.x
        at = _off_the_floor(x, column.sign == 0.0, stage.floor / logs.spread)
        if not _in_reach(column, at, logs.farthest, stage.reach):
            break
        moments[:] = 0.0
        moments[WEIGHT] = logs.total
        for i in range(0, logs.d.size, CHUNK):
            end = i + CHUNK
            add_chunk(logs.d[i:end], part_of(logs.weight, i, end), at, column.sign == 0.0, moments, part)
        if not center(moments):
            break
        if stage.step == math.inf:
            return _Walk(x, at, state.n_eval + 1, True)
        d1, d2, d3 = shifted_score(moments, logs.jacobian, x - at)
        state = newton_step(state, d1, d2, d3)
        if abs(state.x - x) * math.sqrt(growth(moments)) <= stage.step:
            return _Walk(state.x, at, state.n_eval, has_root_near(d1, d2, d3))
    return _Walk(x, at, state.n_eval, False)


class _Sample(NamedTuple):
    """Evenly spaced values of a column and their weights, and whether any or many of them are missing."""

    x: FloatArray
    weight: FloatArray | None
    gaps: bool
    sparse: bool


@kernel
def _sample_of(x: FloatArray, weight: FloatArray | None, work: Work) -> _Sample:
    """At most SAMPLE values."""
    stride = max(min(SAMPLE_STRIDE, x.size // ONE_PASS_MIN), -(-x.size // SAMPLE))
    n = x.size // stride
    values = _every(stride, x, work.spare[n : 2 * n])
    own = _weights_of_every(weight, stride, work.split[:n])
    missing = _n_missing(values, own)
    return _Sample(values, own, missing > 0, _are_many(missing, n, x.size, own))


@kernel
def _walk_on_sample(
    column: LogKind, sample: _Sample, scale: float, work: Work, moments: FloatArray
) -> tuple[_Walk, float]:
    """The optimum of a sample, nearly to float32 precision, and their spread.

    A spread of 0 if they do not differ, or if one is not finite or of an unexpected sign.
    """
    n = sample.x.size
    weight, d32 = sample.weight, work.d32[:n]
    none = Seen(no_logs(column), 0 if sample.gaps else n)
    seen = logs_of_run(column, sample.x, weight, work.spare[:n], d32, none, 0)
    sums = with_first(seen.sums, weight, seen.complete)
    spread = spread_of(column, sums)
    if not (spread > 0.0 and _admissible(column, sums.low, sums.high)):
        return _Walk(1.0, 1.0, 0, False), 0.0
    farthest, jacobian = _farthest(column, sums.low, sums.high), sums.total / sums.weight
    logs = Logs(d32, rounded(weight, scale, work.weight32[:n]), scale * sums.weight, farthest, jacobian, spread)
    return walk_from(column, logs, 1.0, _COARSE, moments, None), spread


@kernel
def _is_sparse(x: FloatArray, weight: FloatArray | None) -> bool:
    """Whether many of a few evenly spaced values are missing; not asked where there are weights."""
    if weight is not None:
        return False
    few = min(x.size, FEW)
    stride = x.size // few
    missing = 0
    for i in range(0, few * stride, stride):
        missing += x[i] != x[i]
    return _are_many(missing, few, x.size, None)


@kernel
def _are_many(missing: int, n: int, size: int, weight: FloatArray | None) -> bool:
    """Whether to squeeze a column of so many values, of `n` of which so many are missing."""
    most = MOST_MISSING if weight is None else MOST_MISSING_WEIGHTED
    present = size * (1.0 - missing / n)
    return missing > n * most and not size * _LEAST_PRESENT < present < ONE_PASS_MIN


@reduction
def _n_missing(x: FloatArray, weight: FloatArray | None) -> int:
    """How many values are missing or have no weight."""
    widest_vectors()
    n = 0
    for i in range(x.size):
        n += (x[i] != x[i]) | (not weight_at(weight, i) > 0.0)
    return n


@kernel
def _every(stride: int, x: FloatArray, out: FloatArray) -> FloatArray:
    """Evenly spaced values, copied to `out` unless they are all."""
    if stride == 1:
        return x
    for i in range(out.size):
        out[i] = x[i * stride]
    return out


@for_none()
def _weights_of_every(weight: FloatArray, stride: int, out: FloatArray) -> FloatArray:
    return _every(stride, weight, out)


@kernel
def _declined(n_eval: int, stopped: bool) -> OnePass:
    return OnePass(no_optimum(n_eval), stopped, 0.0, 0.0, 0.0)


@kernel
def one_pass_optimum(column: Prepared, weights: Weights, known: bool, exponent: float, work: Work) -> OnePass:
    """Optimum from the sums of one pass, or the moments at a given `exponent` (NaN: none given)."""
    x, n = column.x, column.x.size
    if n < ONE_PASS_MIN or not _is_even(weights.total, weights.squares):
        return _declined(0, False)
    moments, given = work.scratch.moments[0], exponent == exponent
    if not known and _is_sparse(x, weights.values):
        return _declined(0, True)
    sample = _sample_of(x, weights.values, work)
    if sample.sparse:
        return _declined(0, True)
    wanted = _logs_wanted(column, weights.values, known, work)
    if not 0.0 < wanted.offset + wanted.ref < math.inf:  # a few values are all missing, or one has no logarithm
        return _declined(0, True)
    walk, spread = _Walk(1.0, 1.0, 0, False), 0.0
    if not given:
        walk, spread = _walk_on_sample(wanted, sample, weights.scale, work, moments)
        if spread == 0.0:
            return _declined(0, True)
    n_eval = walk.n_eval + (not given)
    start = _off_the_floor(walk.x, wanted.sign == 0.0, _COARSE.floor / spread) if walk.good else 1.0
    gaps = sample.gaps or not weights.smallest > 0.0
    sums = take_logs(wanted, x, weights, gaps, math.nan if given else start, work, moments)
    if not _admissible(wanted, sums.low, sums.high):
        return _declined(n_eval, True)
    farthest, jacobian = _farthest(wanted, sums.low, sums.high), sums.total / sums.weight
    spread = spread_of(wanted, sums)
    if walk.good and _in_reach(wanted, start, farthest, _COARSE.reach) and center(moments):
        d1, d2, d3 = score_from_moments(moments, jacobian)
        start = newton_step(newton_start(start, 2.0 / spread, 0.0, 2), d1, d2, d3).x
    even = _is_even(sums.weight, sums.weight_squares)
    if not (even and spread >= ONE_PASS_SPREAD and farthest <= ONE_PASS_REACH):
        return _declined(n_eval, False)
    logs = Logs(work.spare[:n], weights.values, sums.weight, farthest, jacobian, spread)
    walk = walk_from(
        wanted, logs, exponent if given else start, GIVEN if given else FINE, moments, work.scratch.moments[1]
    )
    n_eval += walk.n_eval
    moved = walk.x - walk.evaluated_at
    near = abs(moved) * math.sqrt(growth(moments)) <= TAYLOR_REACH
    mean, variance, curvature = moments_at(moments, moved)
    if not (walk.good and near and variance >= ONE_PASS_SD * ONE_PASS_SD):
        return _declined(n_eval, False)
    status = _FIXED if given else _OK
    nll = 0.5 * log(variance) + wanted.log_ref - (walk.x - 1.0) * jacobian
    best = Optimum(walk.x, mean, math.sqrt(variance), 0.0, wanted.ref, wanted.log_ref, nll, curvature, n_eval, status)
    low, high = float_of(sums.low), float_of(max(sums.high, 0))
    if wanted.sign > 0.0:
        return OnePass(best, False, sums.weight, low, high)
    if wanted.sign < 0.0:
        return OnePass(best, False, sums.weight, -high, -low)
    return OnePass(best, False, sums.weight, -low, high)


@kernel
def _is_even(total: float, squares: float) -> bool:
    """Whether the effective number of values is large enough, given the sum of their weights and that of squares."""
    return total * total >= MIN_EFFECTIVE * squares


@kernel
def no_optimum(n_eval: int) -> Optimum:
    """An optimum that was not certified."""
    return Optimum(1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, n_eval, _NOT_CERTIFIED)


@kernel
def _rough_log(x: FloatArray, weight: FloatArray | None, offset: float, work: Work) -> float:
    """Mean log of a few evenly spaced values, or their weighted median: where values are tied Y_j vanishes there.

    NaN if all of them are missing.
    """
    few = min(x.size, FEW)
    stride = x.size // few
    if weight is not None:
        some = slice(0, few * stride, stride)
        return log(offset + _weighted_median(x[some], weight[some], work.spare, work.weight_split))
    total = n = 0.0
    for i in range(few):
        value = abs(x[i * stride])
        if value == value:
            total += log(offset + value)
            n += 1.0
    return total / n if n > 0.0 else math.nan


@kernel
def _weighted_median(x: FloatArray, weight: FloatArray, ordered: FloatArray, own: FloatArray) -> float:
    """The weighted median of a few magnitudes, put in order with their weights; NaN if all are missing."""
    half, n = 0.0, 0
    for i in range(x.size):
        size, k = abs(x[i]), n
        if size != size:
            continue
        half += 0.5 * weight[i]
        while k > 0 and ordered[k - 1] > size:
            ordered[k], own[k] = ordered[k - 1], own[k - 1]
            k -= 1
        ordered[k], own[k] = size, weight[i]
        n += 1
    before = 0.0
    for k in range(n):
        before += own[k]
        if before >= half:
            return float(ordered[k])
    return math.nan


@kernel
def _logs_wanted(column: Prepared, weight: FloatArray | None, known: bool, work: Work) -> LogKind:
    offset, both_signs = column.offset, column.sign == 0.0
    ref = 0.0 if both_signs else exp(_rough_log(column.x, weight, offset, work)) - offset
    return LogKind(column.sign, known, offset, ref, 0.0 if both_signs else log(offset + ref))
