"""The optimum of a well-conditioned column from the sums of one pass.

The two passes within a block of `kernels.likelihood.score` hold for any data; most columns do not need them. Where
``Y_0 = e^t - 1`` (t = m d, with logs d centered near their mean) has a mean that does not dwarf its standard
deviation, the raw sums of Y_0..Y_3 and of their products give g', g'', g''' to nearly full precision.

All steps to the optimum but the last are taken on sums in float32, the last in float64 (see
`powerkern.kernels.likelihood.one_pass_sums`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from powerkern._jit import kernel, reduction, specialize_on_none
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import SMALLEST_NORMAL
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.logs import (
    NOTHING,
    Prepared,
    Scan,
    joined,
    magnitudes_of,
    power_of_two_above,
    prepared,
    scan,
    squeeze,
)
from powerkern.kernels.likelihood.one_pass_sums import AnyFloats, LogKind, add_sums, rounded, take_logs
from powerkern.kernels.likelihood.optimum import LogUnits, Optimum, exponent_of, optimum_in
from powerkern.kernels.likelihood.profile import (
    Moments,
    centered,
    exponents_off_zero,
    growth,
    has_root_near,
    moments_at,
    no_sums,
    score_from_moments,
    shifted_score,
)
from powerkern.kernels.likelihood.scratch import CHUNK, SAMPLE, Work
from powerkern.kernels.likelihood.two_pass import typical
from powerkern.kernels.moments import part_of
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import RUNNING
from powerkern.kernels.status_codes import FIXED, NOT_CERTIFIED, OK

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
#: Absent values stay in the sums, where they add nothing, unless they are more than this share: then it is cheaper to
#: squeeze them out first.
_MOST_ABSENT = 0.25
#: The values of columns that would be too short without the others stay where they are if they are at least this share:
#: two passes cost more.
_LEAST_PRESENT = 1.0 / 16.0
#: Number of values among which a reference is chosen.
_FEW = 11
#: Moments are moved by Taylor series no farther than this, in units of 1/sqrt(`growth`): where a floor kept the
#: exponent from 0 and outliers dominate the higher moments, the terms left out would count.
TAYLOR_REACH = 1e-4
_MAX_EVAL = 20


class _Logs(NamedTuple):
    """Logs and their weights, in float32 or float64; their total, the largest magnitude, the weighted mean and spread.

    `total` is in units of the weights given here; absent values do not count.
    """

    d: AnyFloats
    weight: Any
    both_signs: bool
    total: float
    farthest: float
    jacobian: float
    spread: float


class _Walk(NamedTuple):
    """Where a walk of Halley steps ended, and its last moments and where these were taken."""

    x: float
    evaluated_at: float
    n_eval: int
    good: bool
    moments: Moments


class _Stage(NamedTuple):
    """Tolerances of a walk in float32 or float64."""

    step: float
    floor: float
    reach: float


#: `step`, in units of 1/sqrt(`growth`): a step below it ends the walk, for the error left is a fraction of its cube.
#: `floor`: the smallest |m| * spread at which sums are evaluated, for Y_2 and Y_3 lose one and two powers of it.
#: `reach`: squares of e^t stay finite for |t| up to it.
_COARSE = _Stage(5e-2, 1e-2, 40.0)
FINE = _Stage(2e-5, 1e-5, 340.0)
#: Moments at the start, and no step.
_GIVEN = _Stage(math.inf, 1e-5, 340.0)


# --- from logs to the optimum -------------------------------------------------------------------------


@kernel
def _is_in_reach(exponent: float, both_signs: bool, farthest: float, reach: float) -> bool:
    """Whether |t| <= `reach` for all logs up to the `farthest`."""
    return max(abs(exponent), abs(2.0 - exponent) if both_signs else 0.0) * farthest <= reach


@kernel
def _spread_of(both_signs: bool, weight: float, total: float, squares: float) -> float:
    """Standard deviation of logs, about 0 with both signs, from weighted sums."""
    mean = 0.0 if both_signs else total / weight
    return math.sqrt(max(squares / weight - mean * mean, 0.0))


@kernel
def _walk_from(logs: _Logs, start: float, stage: _Stage) -> _Walk:
    """Halley steps on raw sums until a step is below the tolerance; not good where these lose too many digits."""
    x = at = start
    moments = no_sums(0.0)
    state = newton_start(start, 2.0 / logs.spread, 0.0, _MAX_EVAL)
    while state.status == RUNNING:
        x = state.x
        at = exponents_off_zero(x, logs.both_signs, 2.0, stage.floor / logs.spread)
        if not _is_in_reach(at, logs.both_signs, logs.farthest, stage.reach):
            break
        moments = no_sums(0.0)
        for i in range(0, logs.d.size, CHUNK):
            end = i + CHUNK
            moments = add_sums(moments, logs.d[i:end], part_of(logs.weight, i, end), at, logs.both_signs)
        moments, kept = centered(moments, logs.total)
        if not kept:
            break
        d1, d2, d3 = shifted_score(moments, logs.jacobian, x - at)
        state = newton_step(state, d1, d2, d3)
        if abs(state.x - x) * math.sqrt(growth(moments)) <= stage.step:
            given = stage.step == math.inf
            return _Walk(x if given else state.x, at, state.n_eval, given or has_root_near(d1, d2, d3), moments)
    return _Walk(x, at, state.n_eval, False, moments)


@kernel
def optimum_of_logs(
    d: FloatArray, weight: FloatArray | None, both_signs: bool, units: LogUnits, start: float, given: float
) -> Optimum:
    """Optimum of ascending logs, of one sign or signed, searched for from `start`; or moments at a `given` exponent.

    NOT_CERTIFIED where the sums lose too many digits: nothing else holds then.
    """
    n, effective, total, squares = _sum_and_squares(d, weight)
    farthest, spread = max(-d[0], d[-1]), _spread_of(both_signs, n, total, squares)
    even = effective >= min(MIN_EFFECTIVE, 0.25 * d.size)
    if not (even and spread >= ONE_PASS_SPREAD and farthest <= ONE_PASS_REACH):
        return _no_optimum(0)
    return _optimum_from(_Logs(d, weight, both_signs, n, farthest, total / n, spread), units, start, given, 0)


@reduction
def _sum_and_squares(d: FloatArray, weight: FloatArray | None) -> tuple[float, float, float, float]:
    """The sum of the weights, and that divided by their mean; the sum of values, and of their squares."""
    n = weight_squares = total = squares = 0.0
    for i in range(d.size):
        weighted = d[i]
        if weight is not None:
            weighted = weight[i] * d[i]
            n += weight[i]
            weight_squares += weight[i] * weight[i]
        total += weighted
        squares += weighted * d[i]
    if weight is None:
        return float(d.size), math.inf, total, squares
    return n, n * n / weight_squares, total, squares


@kernel
def _optimum_from(logs: _Logs, units: LogUnits, start: float, given: float, n_eval: int) -> Optimum:
    """The optimum of float64 logs, searched for from `start`, or moments at a `given` exponent, both of the column."""
    is_given = given == given
    walk = _walk_from(logs, (given if is_given else start) * units.unit, _GIVEN if is_given else FINE)
    n_eval += walk.n_eval
    if not walk.good:
        return _no_optimum(n_eval)
    moved = walk.x - walk.evaluated_at
    near = abs(moved) * math.sqrt(growth(walk.moments)) <= TAYLOR_REACH
    mean, variance, curvature = moments_at(walk.moments, moved)
    if not (near and variance >= ONE_PASS_SD * ONE_PASS_SD):
        return _no_optimum(n_eval)
    exponent, status = (given, FIXED) if is_given else (walk.x / units.unit, OK)
    return optimum_in(units, exponent, mean, variance, curvature, logs.jacobian, n_eval, status)


@kernel
def _no_optimum(n_eval: int) -> Optimum:
    """An optimum that was not certified."""
    return Optimum(1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, n_eval, NOT_CERTIFIED)


# --- from values to the optimum -----------------------------------------------------------------------


@kernel
def one_pass_optimum(
    x: FloatArray, weight: FloatArray | None, family: int, lmbda: float, work: Work
) -> tuple[Optimum, Prepared]:
    """Optimum from the sums of one pass, or the moments at a given `lmbda` (NaN: none given); and the scanned column.

    NOT_CERTIFIED where those sums lose too many digits, or where the column cannot be fitted.
    """
    sample = _sample_of(x, weight, family, work)
    share = sample.found.n / sample.x.size
    if share < 1.0 - _MOST_ABSENT and not _LEAST_PRESENT * x.size < share * x.size < ONE_PASS_MIN:
        n = squeeze(x, weight, work.packed, work.weight)
        x, weight = work.packed[:n], _squeezed(weight, work.weight, n)
        sample = _sample_of(x, weight, family, work)
    best, column = _no_optimum(0), prepared(x, weight, sample.found, family)
    for _ in range(2):  # again if the sample has not shown that there are values of both signs
        best, known = _optimum_of(column, sample, family, lmbda, best.n_eval, work)
        if known.sign == column.sign:
            break
        column = known
    return best, known


@kernel
def _sample_of(x: FloatArray, weight: FloatArray | None, family: int, work: Work) -> Prepared:
    """Evenly spaced values of a column, at most SAMPLE."""
    stride = max(min(x.size // ONE_PASS_MIN, SAMPLE_STRIDE), (x.size + SAMPLE - 1) // SAMPLE, 1)
    some, own = _every(x, stride, work.split), _every(weight, stride, work.weight_split)
    return prepared(some, own, scan(some, own), family)


@specialize_on_none()
def _every(x: FloatArray, stride: int, out: FloatArray) -> FloatArray:
    """Evenly spaced values, copied to `out`."""
    some = out[: x.size // stride]
    for i in range(some.size):
        some[i] = x[i * stride]
    return some


@specialize_on_none()
def _squeezed(weight: FloatArray, out: FloatArray, n: int) -> FloatArray:
    return out[:n]


@kernel
def _optimum_of(
    guess: Prepared, sample: Prepared, family: int, lmbda: float, n_eval: int, work: Work
) -> tuple[Optimum, Prepared]:
    """`one_pass_optimum` of a column of which a sample is known, or all."""
    x, both_signs, given = guess.x, guess.sign == 0.0, exponent_of(lmbda, guess.sign)
    if guess.status != OK or x.size < ONE_PASS_MIN or not _is_even(sample.found, x.size / sample.x.size):
        return _no_optimum(n_eval), guess
    ref = 0.0 if both_signs else abs(typical(x, _FEW, work.spare))
    base = guess.offset + ref
    if not base >= SMALLEST_NORMAL:  # NaN if a few values are all absent
        return _no_optimum(n_eval), guess
    units, kind, start = LogUnits(1.0, ref, log(base)), LogKind(both_signs, guess.offset, 1.0 / base), math.nan
    # keeps weights in the range of float32
    scale = 1.0 if guess.weight is None else 1.0 / power_of_two_above(sample.found.weight)
    if given != given:
        walk, spread = _walk_on_sample(sample, kind, units.log_ref, scale, work)
        if not spread > 0.0:
            return _no_optimum(n_eval), guess
        n_eval += walk.n_eval + 1
        if walk.good:
            start = exponents_off_zero(walk.x, both_signs, 2.0, _COARSE.floor / spread)
    total, squares, sums, found = _take_all_logs(x, guess.weight, kind, start, scale, work)
    known, n = prepared(x, guess.weight, found, family), found.weight
    if known.status != OK or known.sign != guess.sign:
        return _no_optimum(n_eval), known
    farthest, jacobian = _farthest(found, kind, units.log_ref), total / n
    spread = _spread_of(both_signs, n, total, squares)
    if not (_is_even(found, 1.0) and spread >= ONE_PASS_SPREAD and farthest <= ONE_PASS_REACH):
        return _no_optimum(n_eval), known
    if start == start and _is_in_reach(start, both_signs, farthest, _COARSE.reach):
        moments, kept = centered(sums, scale * n)
        if kept:
            d1, d2, d3 = score_from_moments(moments, jacobian)
            start = newton_step(newton_start(start, 2.0 / spread, 0.0, 2), d1, d2, d3).x
    logs = _Logs(work.spare[: x.size], guess.weight, both_signs, n, farthest, jacobian, spread)
    return _optimum_from(logs, units, start if start == start else 1.0, given, n_eval), known


@kernel
def _is_even(found: Scan, factor: float) -> bool:
    """Whether the effective number of values is large enough, given a scan of them, or of one in `factor`."""
    return factor * found.weight * found.weight >= MIN_EFFECTIVE * found.squares


@kernel
def _farthest(found: Scan, kind: LogKind, log_ref: float) -> float:
    """The largest magnitude of the logs; NaN where one is of a subnormal number."""
    smallest, largest = magnitudes_of(found)
    low, high = kind.offset + smallest, kind.offset + largest
    return max(abs(log(high) - log_ref), abs(log(low) - log_ref)) if low >= SMALLEST_NORMAL else math.nan


@kernel
def _walk_on_sample(sample: Prepared, kind: LogKind, log_ref: float, scale: float, work: Work) -> tuple[_Walk, float]:
    """The optimum of a sample, nearly to float32 precision, and the spread of its logs."""
    n, found, d32 = sample.x.size, sample.found, work.d32[: sample.x.size]
    total, squares = take_logs(sample.x, sample.weight, kind, work.spare[:n], d32)
    spread = _spread_of(kind.both_signs, found.weight, total, squares)
    if not spread > 0.0:
        return _Walk(1.0, 1.0, 0, False, no_sums(0.0)), 0.0
    weight32, farthest = rounded(sample.weight, scale, work.weight32[:n]), _farthest(found, kind, log_ref)
    mean = total / found.weight
    logs = _Logs(d32, weight32, kind.both_signs, scale * found.weight, farthest, mean, spread)
    return _walk_from(logs, 1.0, _COARSE), spread


@kernel
def _take_all_logs(
    x: FloatArray, weight: FloatArray | None, kind: LogKind, exponent: float, scale: float, work: Work
) -> tuple[float, float, Moments, Scan]:
    """All logs, to ``work.spare``: the sums of these, of their squares, and in float32 of powers (exponent NaN: none).

    The sums of powers are taken of each chunk while it is in the first-level cache.
    """
    total, squares, sums, found = 0.0, 0.0, no_sums(0.0), NOTHING
    for start in range(0, x.size, CHUNK):
        end = min(start + CHUNK, x.size)
        own, d32 = part_of(weight, start, end), work.d32[: end - start]
        found = joined(found, scan(x[start:end], own))
        part, part_squares = take_logs(x[start:end], own, kind, work.spare[start:end], d32)
        total, squares = total + part, squares + part_squares
        if exponent == exponent:
            own32 = rounded(own, scale, work.weight32[: end - start])
            sums = add_sums(sums, d32, own32, exponent, kind.both_signs)
    return total, squares, sums, found
