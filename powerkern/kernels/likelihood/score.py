"""Evaluate the score of a column (`powerkern.kernels.likelihood.score_formulas`) in two passes, for any float64 data.

Both families are made of one function of a log and an exponent, ``b_m(a) = expm1(m a)/m``: Box-Cox is
``b_lambda(ln x)``; Yeo-Johnson is ``b_lambda(log1p x)`` for x >= 0 and ``-b_{2-lambda}(log1p(-x))`` for x < 0.
Everything here works on such logs a:

* Logs are relative to the log of a reference, one of the values with the most weight. This changes g only by a known
  affine term. All logs are divided by a power of two `sigma` that makes them of order one; ``mu = m sigma`` is the
  exponent in these units.
* The derivatives y', y'', y''' of b in m are computed for each value without cancellation: with t = m a,
  ``y^(j) = Y_j/m^(j+1)``, ``Y_0 = e^t - 1`` and ``Y_j = t^j e^t - j Y_(j-1)`` (`derivatives`).
* Means, and products about the means, are computed in two passes over each block, which stays in the first-level cache.
  The moments of the blocks are then merged [1]_. All moments have a common factor ``e^-s``, which prevents overflow and
  cancels in g', g'', g'''. This replaces the variances in the log domain of [2]_.

The reference must carry much weight for the following reason. y and its derivatives vanish at the reference and have
small relative errors elsewhere. If a fraction omega of the weight is at y = 0, then, by Cauchy-Schwarz,
``sum w y^2 <= sum w (y - mean)^2/omega``. So variance, covariances and mean logs are well conditioned sums, even if all
other weights together are 1e-24 of the reference's. Relative to any other point the heavy values would have a common
offset, and the contributions of the other values would be lost in its rounding error.

References
----------
.. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
   variances", COMPSTAT 1982, 30-41.
.. [2] X. Xu and G. Cormode, "Power transform revisited: numerically stable, and federated", 2025, arXiv:2510.04995.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.one_pass_sums import add_sums
from powerkern.kernels.likelihood.score_formulas import (
    N_MOMENTS,
    SERIES_REACH,
    WEIGHT,
    Y1,
    Y2,
    YY,
    Origin,
    Y,
    add_signed_sums,
    central_moments,
    merge_moments,
    moments_of_block,
    phis,
    profile_nll,
    relative_to,
    scaled_derivatives,
    score_from_moments,
    zero_sums,
)
from powerkern.kernels.transforms.branch import LINEAR

#: Number of values in a block, whose derivatives and weights fit the first-level cache.
BLOCK = 512
#: Number of values whose raw sums are formed before they are added to the total.
_CHUNK = 4 * BLOCK
#: Smallest |m| * sd for which raw sums are used. For smaller t = m a, y'' loses digits in proportion to 1/t; y and y'
#: lose none.
_FAR_FROM_ZERO = 1e-4
#: Largest |t| for sums of squares of e^t: e^(2 * 300) is less than e^709, the largest float64.
_SUMMABLE = 300.0


class Logs(NamedTuple):
    """One column as weighted logs in units of `sigma`, split by sign.

    A column of one sign has only the branch `pos`, with logs relative to the reference. With both signs, `pos` and
    `neg` hold the logs of non-negative and negative values. The reference then has the sign of `center`, and its log is
    ``abs(center)``, which is subtracted only from the logs of values with the sign of the reference.
    """

    pos: FloatArray
    pos_weight: FloatArray
    neg: FloatArray
    neg_weight: FloatArray
    low: float  #: lower bound of `pos`
    high: float  #: upper bound of `pos`
    neg_high: float  #: upper bound of `neg`
    jacobian: float  #: weighted mean of the signed logs, minus `center`
    sigma: float  #: the unit of the logs, a power of two
    center: float  #: signed log of the reference of a column of both signs; otherwise 0


class LogStatistics(NamedTuple):
    """Total weight of a column's logs, and their standard deviation.

    For a column of both signs, `sd` is the root mean square of the logs. If `sd` is 0, moments are computed in two
    passes.
    """

    weight: float
    sd: float


class Score(NamedTuple):
    """The negative log-likelihood's first three derivatives in the exponent, and the moments of the transformed values.

    `mean` and `variance` are those of ``e^-log_factor b_mu(a - shift)`` over the logs a (see `b`), in units of sigma
    and sigma squared. With both signs they are those of ``e^-(log_factor + s) psi``, where s is
    `log_power_of_reference`.
    """

    d1: float
    d2: float
    d3: float
    mean: float
    variance: float
    log_factor: float
    shift: float


class Scratch(NamedTuple):
    """Scratch of `score`: the derivatives of a block of values, and three sets of moments."""

    y: FloatArray  #: y and its derivatives for a block, (4, BLOCK)
    moments: FloatArray  #: moments of all values; of a block; and room for the log of the value 0, (3, N_MOMENTS)


class _Scale(NamedTuple):
    """Scaling of the transform for values of one sign: a value with the log a has y = e^-log_factor b_m(a - shift)."""

    shift: float
    exponent: float  #: the exponent of these values, in units of the logs
    sign: float  #: the sign of these values
    largest_t: float  #: upper bound of |t|
    top: float  #: the log at which e^t is largest
    rest: float  #: non-negative; log_factor = exponent * top + rest
    log_factor: float
    opposite_log: float  #: signed log of the reference if its sign is not that of these values; otherwise 0


class _Branch(NamedTuple):
    """Logs of the values of one sign, their weights, and the scaling of their transform."""

    logs: FloatArray
    weight: FloatArray
    scale: _Scale


@kernel
def b(m: float, a: float) -> float:
    """Return b_m(a) = (e^(m a) - 1)/m, or its limit a if m a is tiny or subnormal."""
    return a if abs(m * a) < LINEAR else expm1(m * a) / m


@kernel
def score(logs: Logs, mu: float, scratch: Scratch) -> Score:
    """Evaluate the first three derivatives of a column's negative log-likelihood in the exponent.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    mu : float
        The exponent, in units of the logs.
    scratch : Scratch
        Receives the moments of the transformed values.
    """
    return _evaluate(logs, logs.neg.size > 0, mu, scratch)[0]


@kernel
def score_with_derivatives(
    logs: Logs, mu: float, scratch: Scratch, y: FloatArray, y1: FloatArray, y2: FloatArray
) -> Score:
    """Evaluate `score`, and write the transformed values y with their first two derivatives y' and y'' in the exponent.

    Each of y, y' and y'' is centered by its own mean and divided by the standard deviation of y. Values are in the
    order of ``logs.pos``, followed by ``logs.neg``.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    mu : float
        The exponent, in units of the logs.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    y, y1, y2 : (n,)
        Receive y, y' and y''.
    """
    return score_with_points(logs, logs.neg.size > 0, logs, mu, scratch, y, y1, y2)


@kernel
def score_with_points(
    logs: Logs,
    both_signs: bool,
    points: Logs,
    mu: float,
    scratch: Scratch,
    y: FloatArray,
    y1: FloatArray,
    y2: FloatArray,
) -> Score:
    """Evaluate `score`, and write the transform y of other points with two derivatives y' and y'' in the exponent.

    The points are standardised by moments of the column: from each of y, y' and y'' its mean over the column is
    subtracted, and the results are divided by the standard deviation of y over the column.

    Parameters
    ----------
    logs : Logs
        The column's logs, with bounds that include the points.
    both_signs : bool
        Whether there are values or points of both signs.
    points : Logs
        Logs of the points, with the unit and reference of `logs`.
    mu : float
        The exponent, in units of the logs.
    scratch : Scratch
        Scratch of `score`; receives the moments of the column.
    y, y1, y2 : (k,)
        Receive y, y' and y'' of ``points.pos``, then of ``points.neg``.
    """
    at, pos, neg, origin = _evaluate(logs, both_signs, mu, scratch)
    _write_points(points, pos.scale, neg.scale, origin, scratch, y, y1, y2)
    return at


@kernel
def score_by_sums_with_points(
    logs: Logs,
    both_signs: bool,
    statistics: LogStatistics,
    points: Logs,
    mu: float,
    scratch: Scratch,
    y: FloatArray,
    y1: FloatArray,
    y2: FloatArray,
) -> Score:
    """Evaluate `score_with_points` from raw sums, in half the time, or in two passes if the sums lose digits.

    Parameters
    ----------
    logs, both_signs, points, mu, scratch, y, y1, y2
        As for `score_with_points`.
    statistics : LogStatistics
        The weight and the standard deviation of the logs.
    """
    pos, neg = _branches(logs, both_signs, mu)
    origin = Origin(0.0, 0.0, 0.0, 0.0)
    if logs.center != 0.0 or not _add_branches_by_sums(pos, neg, statistics, scratch):
        origin = _add_branches(pos, neg, logs.center, scratch)
    _write_points(points, pos.scale, neg.scale, origin, scratch, y, y1, y2)
    return _score_from_branches(logs, pos, neg, origin, scratch)


@kernel
def _write_points(
    points: Logs,
    pos: _Scale,
    neg: _Scale,
    origin: Origin,
    scratch: Scratch,
    y: FloatArray,
    y1: FloatArray,
    y2: FloatArray,
) -> None:
    """Write the standardised transform y of points, with two derivatives y' and y'' in the exponent.

    Parameters
    ----------
    points : Logs
        Logs of the points.
    pos, neg : _Scale
        Scaling of the transform of non-negative and of negative points.
    origin : Origin
        The transform of the value 0 and its derivatives, relative to the reference.
    scratch : Scratch
        Holds the moments of the column.
    y, y1, y2 : (k,)
        Receive y, y' and y'' of ``points.pos``, then of ``points.neg``.
    """
    n_pos = points.pos.size
    _write_branch(_Branch(points.pos, points.pos, pos), origin, scratch, y, y1, y2)
    _write_branch(_Branch(points.neg, points.neg, neg), origin, scratch, y[n_pos:], y1[n_pos:], y2[n_pos:])


@kernel
def _evaluate(logs: Logs, both_signs: bool, mu: float, scratch: Scratch) -> tuple[Score, _Branch, _Branch, Origin]:
    """Evaluate `score`; return the result, the scaled logs of values of each sign, and the transform of the value 0."""
    pos, neg = _branches(logs, both_signs, mu)
    origin = _add_branches(pos, neg, logs.center, scratch)
    return _score_from_branches(logs, pos, neg, origin, scratch), pos, neg, origin


@kernel
def _score_from_branches(logs: Logs, pos: _Branch, neg: _Branch, origin: Origin, scratch: Scratch) -> Score:
    """Compute the score from the moments of the transformed values.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    pos, neg : _Branch
        The scaled logs of non-negative and of negative values.
    origin : Origin
        The transform of the value 0 and its derivatives, relative to the reference.
    scratch : Scratch
        Holds the moments, relative to the reference.
    """
    total = scratch.moments[0]
    log_factor = neg.scale.log_factor if logs.center < 0.0 else pos.scale.log_factor
    d1, d2, d3 = score_from_moments(total, logs.jacobian)
    return Score(d1, d2, d3, total[Y] - origin.y0, total[YY] / total[WEIGHT], log_factor, 0.0)


@kernel
def log_factor_at(logs: Logs, both_signs: bool, mu: float) -> float:
    """Return the log of the common factor that `score` divides out at the exponent `mu`."""
    pos, neg = _branches(logs, both_signs, mu)
    return neg.scale.log_factor if logs.center < 0.0 else pos.scale.log_factor


@kernel
def log_power_of_reference(logs: Logs, mu: float) -> float:
    """Return ``m*a``, the log of the reference raised to the power m, for a column of both signs.

    a is the log of the reference, and m is the exponent for its sign. `mu` is the exponent for non-negative values.
    """
    return (mu if logs.center > 0.0 else 2.0 * logs.sigma - mu) * abs(logs.center)


@kernel
def _branches(logs: Logs, both_signs: bool, mu: float) -> tuple[_Branch, _Branch]:
    """Return the logs of non-negative and of negative values, with scalings that divide out a common factor.

    The factor is the largest power e^(exponent * log) of a value. Its log is computed as exponent times log, since a
    difference of two large products would cancel.
    """
    center, negative_exponent = logs.center, 2.0 * logs.sigma - mu
    above_0, below_0 = max(center, 0.0), max(-center, 0.0)
    low = -above_0 if both_signs else logs.low
    top, neg_top = logs.high if mu > 0.0 else low, logs.neg_high if negative_exponent > 0.0 else -below_0
    excess = mu * (top + above_0) - negative_exponent * (neg_top + below_0)
    rest, neg_rest = max(0.0, -excess) if both_signs else 0.0, max(0.0, excess)
    largest_t, neg_reach = abs(mu) * max(logs.high, -low), abs(negative_exponent) * max(logs.neg_high, below_0)
    log_factor, neg_log_factor = mu * top + rest, negative_exponent * neg_top + neg_rest
    above_scale = _Scale(0.0, mu, 1.0, largest_t, top, rest, log_factor, -below_0)
    below_scale = _Scale(0.0, negative_exponent, -1.0, neg_reach, neg_top, neg_rest, neg_log_factor, above_0)
    return _Branch(logs.pos, logs.pos_weight, above_scale), _Branch(logs.neg, logs.neg_weight, below_scale)


@kernel
def add_moments(logs: Logs, both_signs: bool, mu: float, scratch: Scratch) -> None:
    """Write the moments of the transformed values and of their derivatives at the exponent `mu`.

    The scaling (`scaling_at`) depends only on the bounds in `logs`, so that moments of parts of a column can be merged.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    both_signs : bool
        Whether there are values of both signs.
    mu : float
        The exponent, in units of the logs.
    scratch : Scratch
        Receives the moments in ``scratch.moments[0]``.
    """
    shift, negative_exponent, log_factor = scaling_at(logs.low, logs.high, logs.neg_high, logs.sigma, both_signs, mu)
    largest_t = abs(mu) * (logs.high if both_signs else logs.high - logs.low)
    neg_reach = abs(negative_exponent) * logs.neg_high
    above_scale = _Scale(shift, mu, 1.0, largest_t, 0.0, log_factor, log_factor, 0.0)
    below_scale = _Scale(0.0, negative_exponent, -1.0, neg_reach, 0.0, log_factor, log_factor, 0.0)
    pos, neg = _Branch(logs.pos, logs.pos_weight, above_scale), _Branch(logs.neg, logs.neg_weight, below_scale)
    _add_branches(pos, neg, 0.0, scratch)


@kernel
def _add_branches(pos: _Branch, neg: _Branch, center: float, scratch: Scratch) -> Origin:
    """Write the moments of all transformed values to ``scratch.moments[0]``; return the transform of the value 0.

    Everything is relative to the reference. For values of the opposite sign, the transform is the sum of the transform
    of 0 and a term that depends on the value; the same holds for its derivatives. Both terms have the same sign, so
    nothing cancels.
    """
    origin = Origin(0.0, 0.0, 0.0, 0.0)
    if center != 0.0:
        origin = _derivatives_at_zero(pos.scale if center > 0.0 else neg.scale, center, scratch)
    total = scratch.moments[0]
    for i in range(N_MOMENTS):
        total[i] = 0.0
    _add_branch(pos, origin, scratch)
    _add_branch(neg, origin, scratch)
    return origin


@kernel
def _add_branches_by_sums(pos: _Branch, neg: _Branch, statistics: LogStatistics, scratch: Scratch) -> bool:
    """Write the moments of all transformed values, computed from raw sums; return whether the sums keep enough digits.

    The common factor ``e^log_factor`` is divided out of the sums, so all powers must be between e^-300 and e^300.

    Parameters
    ----------
    pos, neg : _Branch
        The scaled logs of non-negative and of negative values.
    statistics : LogStatistics
        The weight and the standard deviation of the logs.
    scratch : Scratch
        Receives the moments in ``scratch.moments[0]``.
    """
    sums = zero_sums(0.0)
    for branch in (pos, neg):
        m, scale = branch.scale.exponent, branch.scale
        if branch.logs.size == 0:
            continue
        if not (abs(m) * statistics.sd >= _FAR_FROM_ZERO and scale.largest_t <= _SUMMABLE):
            return False
        part = zero_sums(0.0)
        for start in range(0, branch.logs.size, _CHUNK):
            stop = start + _CHUNK
            part = add_sums(part, branch.logs[start:stop], branch.weight[start:stop], m, False)
        sums = add_signed_sums(sums, part, scale.sign)
    moments, kept = central_moments(sums, statistics.weight)
    factor = exp(-pos.scale.log_factor)
    total = scratch.moments[0]
    for i in range(N_MOMENTS):
        total[i] = moments[i] * (1.0 if i == WEIGHT else factor if i < YY else factor * factor)
    return bool(kept)


@kernel
def _derivatives_at_zero(scale: _Scale, center: float, scratch: Scratch) -> Origin:
    """Return the transform of the value 0 and its derivatives.

    Relative to the reference, which is `center` on the log scale, the log of 0 is ``-abs(center)``.
    """
    log_of_zero, y = scratch.moments[2, :1], scratch.y
    log_of_zero[0] = -abs(center)
    _derivatives(log_of_zero, scale, y)
    return Origin(y[0, 0], y[1, 0], y[2, 0], y[3, 0])


@kernel
def scaling_at(
    low: float, high: float, neg_high: float, sigma: float, both_signs: bool, mu: float
) -> tuple[float, float, float]:
    """Return the scaling that keeps the transform from overflowing at the exponent `mu`, as three numbers.

    The first is subtracted from the logs of a column of one sign. The second is the exponent of negative values. The
    third is the log of the factor divided out of the transform of a column of both signs. The first is 0 for columns of
    both signs; the other two are 0 for columns of one sign.

    Parameters
    ----------
    low : float
        Lower bound of the logs of a column of one sign.
    high : float
        Upper bound of the logs of a column of one sign, or of non-negative values.
    neg_high : float
        Upper bound of the logs of negative values.
    sigma : float
        The unit of the logs.
    both_signs : bool
        Whether there are values of both signs.
    mu : float
        The exponent, in units of the logs.
    """
    if both_signs:
        negative_exponent = 2.0 * sigma - mu
        return 0.0, negative_exponent, max(0.0, max(mu * high, negative_exponent * neg_high))
    # every t is <= 0, so nothing overflows, and no common factor is needed
    return (high if mu > 0.0 else low), 0.0, 0.0


@kernel
def nll_at(logs: Logs, mu: float, at: Score, log_ref: float) -> float:
    """Return the negative log-likelihood g per observation at the exponent `mu`, given the score at `mu`.

    The result is inf for absurd exponents (|lambda| beyond about 1e150), for which the variance of the transformed
    values underflows.

    Parameters
    ----------
    logs : Logs
        The column's logs.
    mu : float
        The exponent, in units of the logs.
    at : Score
        The score at `mu`.
    log_ref : float
        The log of the reference of a column of one sign; otherwise 0.
    """
    if not at.variance > 0.0:
        return math.inf
    sigma = logs.sigma  # a power of two
    log_base = at.log_factor + log(sigma) + (log_ref + sigma * at.shift)
    return profile_nll(log(at.variance), log_base, mu / sigma, sigma * (logs.jacobian - at.shift))


@kernel
def _add_branch(branch: _Branch, origin: Origin, scratch: Scratch) -> None:
    """Merge the moments of the values of one sign, block by block, into ``scratch.moments[0]``."""
    y, part = scratch.y, scratch.moments[1]
    for start in range(0, branch.logs.size, BLOCK):
        _derivatives(branch.logs[start : start + BLOCK], branch.scale, y)
        moments_of_block(y, branch.weight[start : start + BLOCK], part)
        if branch.scale.opposite_log != 0.0:
            relative_to(origin, branch.scale.opposite_log, part)
        merge_moments(scratch.moments[0], part)


@kernel
def _write_branch(
    branch: _Branch, origin: Origin, scratch: Scratch, y: FloatArray, y1: FloatArray, y2: FloatArray
) -> None:
    """Write the standardised transform y of the values of one sign, with two derivatives y' and y'' in the exponent.

    Parameters
    ----------
    branch : _Branch
        The scaled logs of the values.
    origin : Origin
        The transform of the value 0 and its derivatives, relative to the reference.
    scratch : Scratch
        Holds the moments of the column.
    y, y1, y2 : (k,)
        Receive y, y' and y''.
    """
    total, part = scratch.moments[0], scratch.y
    mean0, mean1, mean2 = total[Y], total[Y1], total[Y2]
    if branch.scale.opposite_log != 0.0:
        mean0, mean1, mean2 = mean0 - origin.y0, mean1 - origin.y1, mean2 - origin.y2
    sd = math.sqrt(total[YY] / total[WEIGHT])
    per_sd = 1.0 / sd if sd != 0.0 else math.inf  # plain Python would raise
    c = -branch.scale.opposite_log
    for start in range(0, branch.logs.size, BLOCK):
        a = branch.logs[start : start + BLOCK]
        _derivatives(a, branch.scale, part)
        part0, part1, part2 = part[0], part[1], part[2]
        out0, out1, out2 = y[start:], y1[start:], y2[start:]
        for i in range(a.size):
            out0[i] = (part0[i] - mean0) * per_sd
            out1[i] = (part1[i] + c * part0[i] - mean1) * per_sd
            out2[i] = (part2[i] + c * (2.0 * part1[i] + c * part0[i]) - mean2) * per_sd


@kernel
def _derivatives(a: FloatArray, scale: _Scale, y: FloatArray) -> None:
    """Write the transform of the logs `a`, and its first three derivatives in the exponent, to the rows of `y`."""
    if scale.largest_t <= SERIES_REACH:
        _derivatives_by_series(a, scale, exp(-scale.log_factor), y)
    else:
        _derivatives_closed(a, scale, y)


@kernel
def _derivatives_by_series(a: FloatArray, scale: _Scale, factor: float, y: FloatArray) -> None:
    """Compute the results of `_derivatives` from power series, which are valid for exponents close to 0.

    With the log u and t = m u, the j-th derivative is u^(j+1) phi_j(t) (`score_formulas.phis`). u is negated for
    negative values. `factor` multiplies all results.
    """
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    for i in range(a.size):
        u = (a[i] - scale.shift) * scale.sign
        t = scale.exponent * (a[i] - scale.shift)
        phi0, phi1, phi2, phi3 = phis(t, exp(t), 1.0)
        scaled = u * factor
        y0[i] = scaled * phi0
        y1[i] = scaled * u * phi1
        y2[i] = scaled * u * u * phi2
        y3[i] = scaled * u * u * u * phi3


@kernel
def _derivatives_closed(a: FloatArray, scale: _Scale, y: FloatArray) -> None:
    """Compute the results of `_derivatives` from closed formulas; the exponent m must not be close to 0.

    The j-th derivative is Y_j/m^(j+1) (`score_formulas.derivatives`).
    """
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    one = exp(-scale.log_factor)
    farthest = scale.shift + scale.top
    inverse = scale.sign / scale.exponent
    for i in range(a.size):
        e = exp(scale.exponent * (a[i] - farthest) - scale.rest)
        f0, f1, f2, f3 = scaled_derivatives(scale.exponent * (a[i] - scale.shift), e, one)
        y0[i] = f0 * inverse
        y1[i] = f1 * inverse * inverse
        y2[i] = f2 * inverse * inverse * inverse
        y3[i] = f3 * inverse * inverse * inverse * inverse
