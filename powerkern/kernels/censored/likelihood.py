"""The likelihood of a column with censored cells, which are only known to lie in an interval, at a given lambda.

The transformed values y = psi(x) are normal with mean mu and standard deviation sigma. Let theta = 1/sigma and
gamma = mu/sigma ([1]_, parametrised as in [2]_, section 2), and let J be the log-Jacobian term of a value. The
transform of a censored cell is below or above a limit c, or between a and b. Then::

    l(lambda, theta, gamma) = sum_values [ln theta - 1/2 (theta y - gamma)^2 + (lambda - 1) J]
                              + sum_below ln Phi(theta c - gamma) + sum_above ln Phi(gamma - theta c)
                              + sum_between ln(Phi(theta b - gamma) - Phi(theta a - gamma))

For a given lambda the log-likelihood is concave in (theta, gamma) [2]_, so Newton's method finds its maximum. Here the
transformed values are first standardised by their mean and standard deviation, ``z = (y - mean)/s``. The parameters
``alpha = theta s`` and ``delta = gamma - theta mean`` take the place of theta and gamma. The values then contribute ``W
[ln alpha - 1/2 (alpha^2 + delta^2) - g]``, where W is their weight and g is the negative log-likelihood of
`powerkern.kernels.likelihood`, whose derivatives in lambda are known. The constant W/2 is added to the log-likelihood,
so that it equals ``-W g`` for a column without censored cells. In the code, c denotes a standardised limit, or the
middle of the standardised interval from a to b, and h denotes half the length of this interval. The probability of the
interval is that of a standard normal variable between ``m - t`` and ``m + t``, where ``m = alpha c - delta`` and
``t = alpha h``.

The first derivative of the profile log-likelihood is ``dl/dlambda`` at the maximum in (alpha, delta). Its second
derivative is ``l_11 - l_1a l_aa^-1 l_a1``, where the index 1 denotes a derivative in lambda and the index a denotes
derivatives in (alpha, delta). The last step of Newton's method is not taken; both derivatives are corrected for it.

References
----------
.. [1] J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica 26, 1958, 24-36.
.. [2] R. J. Olsen, "Note on the uniqueness of the maximum likelihood estimator for the Tobit model", Econometrica 46,
   1978, 1211-1215.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.censored.column import CensoredColumn, Terms
from powerkern.kernels.censored.scratch import CELLS, HIGH, LOW, CensoredWork
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log
from powerkern.kernels.elementary.normal import (
    NARROW,
    log_probability_below,
    log_probability_between,
    log_probability_of,
)
from powerkern.kernels.likelihood.score import Score, Scratch, log_factor_at, nll_at, score_by_sums_with_points
from powerkern.kernels.likelihood.score_formulas import Y1, YY, YY1, ratios, taylor_moments

#: Newton's method ends when the next step, which is not taken, is at most this long relative to the parameters. The
#: likelihood and the score are corrected for the step, with an error of about its square; the information is not
#: corrected.
SMALL_STEP = 1e-7
#: A guard against endless searches.
_MOST_STEPS = 60
#: Distance beyond a limit from which the curvature of ln Phi is set to 1. It differs from 1 by less than 1e-8 there,
#: which is also the rounding error of the formula.
_FAR = 1e4
#: Smallest determinant of the information on (alpha, delta), relative to its diagonal: 45 rounding errors.
_SINGULAR = 1e-14


class Scales(NamedTuple):
    """Parameters of the normal distribution of the standardised values: its mean is delta/alpha, its sd 1/alpha."""

    alpha: float
    delta: float


class Sums(NamedTuple):
    """Minus the log-likelihood of all cells, and its derivatives in alpha (a), delta (d) and the exponent (m)."""

    nll: float
    a: float
    d: float
    m: float
    aa: float
    ad: float
    dd: float
    ma: float
    md: float
    mm: float


class Profile(NamedTuple):
    """Minus the profile log-likelihood per unit of weight, and its first two derivatives in the exponent.

    `scales` are the alpha and delta that maximise the likelihood, and `slopes` their derivatives in the exponent. `at`
    holds the moments by which values and limits are standardised, `mean_slope` the derivative of their mean, and
    `sd_slope` the derivative of the log of their standard deviation. `is_maximum` tells whether Newton's method has
    converged.
    """

    nll: float
    d1: float
    d2: float
    scales: Scales
    slopes: Scales
    sums: Sums
    at: Score
    mean_slope: float
    sd_slope: float
    is_maximum: bool


@kernel
def profile_at(
    column: CensoredColumn, mu: float, start: Scales, small_step: float, scratch: Scratch, censored_work: CensoredWork
) -> Profile:
    """Evaluate the profile likelihood at the exponent `mu`: maximise the likelihood over alpha and delta.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    mu : float
        The exponent, in units of the logs.
    start : Scales
        The alpha and delta at which Newton's method starts.
    small_step : float
        Newton's method ends when the relative length of the next step, which is not taken, is at most this.
    scratch : Scratch
        Scratch of `kernels.likelihood.score`.
    censored_work : CensoredWork
        Receives the standardised ends of the intervals.
    """
    centered, points, y = column.centered, column.terms.points, censored_work.y
    at = score_by_sums_with_points(
        centered.logs, column.sign == 0.0, column.values, points, mu, scratch, y[0], y[1], y[2]
    )
    if not at.variance > 0.0:
        return _no_profile(at)
    moments = scratch.moments[0]
    _standardize(points.pos.size + points.neg.size, ratios(moments), censored_work)
    g = nll_at(centered.logs, mu, at, centered.log_reference)
    value_nll = (
        g + (mu / centered.logs.sigma - 1.0) * column.mean_log_shift * centered.logs.sigma,
        at.d1 + column.mean_log_shift,
        at.d2,
    )
    rates = (moments[Y1], moments[YY1] / moments[YY])
    return _maximize(column, value_nll, start, small_step, at, rates, censored_work)


@kernel
def taylor_profile(column: CensoredColumn, mu: float, at: Profile, step: float, d3: float, scratch: Scratch) -> Profile:
    """Return the profile likelihood at ``mu + step`` by Taylor expansion from `mu`, where it was evaluated last.

    Parameters
    ----------
    column : CensoredColumn
        The column; its logs must have a reference that is common to all values (``Logs.center`` is 0).
    mu : float
        The exponent, in units of the logs.
    at : Profile
        The profile likelihood at `mu`.
    step : float
        The step of the exponent, which must be tiny.
    d3 : float
        The third derivative of the profile likelihood.
    scratch : Scratch
        Holds the moments at `mu`.
    """
    logs, both_signs, score = column.centered.logs, column.sign == 0.0, at.at
    mean, variance, _ = taylor_moments(scratch.moments[0], step)
    log_factor = log_factor_at(logs, both_signs, mu + step)
    factor = exp(score.log_factor - log_factor)
    moved = Score(score.d1, score.d2, score.d3, mean * factor, variance * factor * factor, log_factor, score.shift)
    nll = at.nll + step * (at.d1 + step * (at.d2 / 2.0 + step * d3 / 6.0))
    d1, d2 = at.d1 + step * (at.d2 + step * d3 / 2.0), at.d2 + step * d3
    scales = Scales(at.scales.alpha + step * at.slopes.alpha, at.scales.delta + step * at.slopes.delta)
    mean_slope = at.mean_slope * factor
    return Profile(nll, d1, d2, scales, at.slopes, at.sums, moved, mean_slope, at.sd_slope, at.is_maximum)


@kernel
def _no_profile(at: Score) -> Profile:
    nothing = Sums(math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return Profile(math.inf, math.nan, math.nan, Scales(1.0, 0.0), Scales(0.0, 0.0), nothing, at, 0.0, 0.0, False)


@kernel
def _standardize(n_points: int, sd_ratios: tuple[float, float, float], censored_work: CensoredWork) -> None:
    """Standardise the ends of the intervals in ``censored_work.y``, and their first two derivatives in the exponent.

    An end y becomes ``z = (y - mean)/s``, which has the derivatives ``z' = (y' - mean')/s - z s'/s`` and
    ``z'' = (y'' - mean'')/s - 2 z' s'/s - z s''/s``. Here ``s'/s`` is the first of `sd_ratios` (the `ratios` of
    moments), and ``s''/s`` is the second minus the square of the first.
    """
    slope, bend = sd_ratios[0], sd_ratios[1] - sd_ratios[0] * sd_ratios[0]
    y0, y1, y2 = censored_work.y[0], censored_work.y[1], censored_work.y[2]
    for i in range(n_points):
        z1 = y1[i] - slope * y0[i]
        y2[i] = y2[i] - 2.0 * slope * z1 - bend * y0[i]
        y1[i] = z1


@kernel
def _maximize(
    column: CensoredColumn,
    value_nll: tuple[float, float, float],
    start: Scales,
    small_step: float,
    at: Score,
    rates: tuple[float, float],
    censored_work: CensoredWork,
) -> Profile:
    """Maximise the likelihood in (alpha, delta) by Newton's method; halve steps that decrease it.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    value_nll : (float, float, float)
        ``g = ln s - (lambda - 1) mean(J)`` and its first two derivatives in the exponent. The mean is over the observed
        values, and s is the standard deviation by which everything is standardised.
    start : Scales
        The alpha and delta at which to start.
    small_step : float
        Newton's method ends when the relative length of the next step, which is not taken, is at most this.
    at : Score
        The moments by which everything is standardised.
    rates : (float, float)
        Derivatives in the exponent of the mean and of the log of the standard deviation.
    censored_work : CensoredWork
        Holds the standardised ends of the intervals.
    """
    scales, step, slopes = start, Scales(0.0, 0.0), Scales(0.0, 0.0)
    sums = _sums_at(column, value_nll, scales, censored_work)
    is_maximum = False
    for _ in range(_MOST_STEPS):
        step, slopes = _newton_step(sums)
        size = abs(step.alpha) / scales.alpha + abs(step.delta) / (1.0 + abs(scales.delta))
        is_maximum = size <= small_step
        if is_maximum or not size < math.inf:
            break
        length, higher = 1.0, False
        for _ in range(_MOST_STEPS):
            trial = Scales(scales.alpha + length * step.alpha, scales.delta + length * step.delta)
            if trial.alpha > 0.0:
                there = _sums_at(column, value_nll, trial, censored_work)
                higher = there.nll <= sums.nll
                if higher:
                    scales, sums = trial, there
                    break
            length *= 0.5
        if not higher:
            break  # the step is lost in the rounding of the likelihood
    if not is_maximum:  # only a small step can be corrected for
        step = Scales(0.0, 0.0)
    per = 1.0 / column.total
    gain = 0.5 * (sums.a * step.alpha + sums.d * step.delta)
    d1 = sums.m + sums.ma * step.alpha + sums.md * step.delta
    d2 = sums.mm + sums.ma * slopes.alpha + sums.md * slopes.delta
    best = Scales(scales.alpha + step.alpha, scales.delta + step.delta) if is_maximum else scales
    return Profile((sums.nll + gain) * per, d1 * per, d2 * per, best, slopes, sums, at, rates[0], rates[1], is_maximum)


@kernel
def _newton_step(sums: Sums) -> tuple[Scales, Scales]:
    """Return the Newton step in (alpha, delta), and the derivatives of the maximising (alpha, delta) in the exponent.

    The step is infinite if the Hessian is singular.
    """
    det = sums.aa * sums.dd - sums.ad * sums.ad
    if not det > _SINGULAR * sums.aa * sums.dd:
        return Scales(math.inf, math.inf), Scales(0.0, 0.0)
    step = Scales((sums.ad * sums.d - sums.dd * sums.a) / det, (sums.ad * sums.a - sums.aa * sums.d) / det)
    return step, Scales((sums.ad * sums.md - sums.dd * sums.ma) / det, (sums.ad * sums.ma - sums.aa * sums.md) / det)


@kernel
def _sums_at(
    column: CensoredColumn, value_nll: tuple[float, float, float], at: Scales, censored_work: CensoredWork
) -> Sums:
    """Return minus the log-likelihood of all cells, and its derivatives, at given alpha and delta.

    Parameters
    ----------
    column : CensoredColumn
        The column.
    value_nll : (float, float, float)
        ``g = ln s - (lambda - 1) mean(J)`` and its first two derivatives in the exponent. The mean is over the observed
        values, and s is the standard deviation by which everything is standardised.
    at : Scales
        The alpha and delta at which to evaluate.
    censored_work : CensoredWork
        Holds the standardised ends of the intervals.
    """
    alpha, delta, w = at.alpha, at.delta, column.values.weight
    nll = s_a = s_d = s_aa = s_dd = 0.0
    if w > 0.0:
        nll = w * (value_nll[0] - 0.5 - log(alpha))
        s_a, s_aa = -w / alpha, w / (alpha * alpha)
    if column.are_standard:
        nll += 0.5 * w * (alpha * alpha + delta * delta)
        s_a, s_d, s_aa, s_dd = s_a + w * alpha, w * delta, s_aa + w, w
    sums = Sums(nll, s_a, s_d, w * value_nll[1], s_aa, 0.0, s_dd, 0.0, 0.0, w * value_nll[2])
    terms, y = column.terms, censored_work.y
    first_neg = terms.points.pos.size + terms.points.neg.size - terms.n_neg
    for first, n in ((0, terms.n_pos), (first_neg, terms.n_neg)):
        stop = first + n
        side, count = terms.side[first:stop], terms.weight[first:stop]
        sums = _add_sums(sums, _sums_of_limits(side, count, y[0, first:stop], y[1, first:stop], y[2, first:stop], at))
    if terms.n_intervals > 0:
        sums = _add_sums(sums, _sums_of_intervals(terms, y, at))
    if terms.value_index >= 0:
        k = terms.value_index
        sums = _add_sums(sums, _sums_of_value(w, y[0, k], y[1, k], y[2, k], at))
    return sums


@kernel
def _add_sums(a: Sums, b: Sums) -> Sums:
    """Return the `Sums` over two sets of cells together, given the `Sums` over each set."""
    return Sums(
        a.nll + b.nll, a.a + b.a, a.d + b.d, a.m + b.m, a.aa + b.aa, a.ad + b.ad, a.dd + b.dd, a.ma + b.ma, a.md + b.md,
        a.mm + b.mm,
    )  # fmt: skip


@reduction
def _sums_of_limits(
    side: FloatArray, count: FloatArray, c: FloatArray, c1: FloatArray, c2: FloatArray, at: Scales
) -> Sums:
    """Return `Sums` over the cells that are censored below or above a limit.

    With ``m = alpha c - delta``, s and -r in the code are the first two derivatives of ``ln Phi(side m)`` in m.

    Parameters
    ----------
    side : (k,)
        1 if the cells of a limit lie below it, -1 if they lie above it.
    count : (k,)
        The total weight of the cells of each limit.
    c, c1, c2 : (k,)
        The standardised limits, and their first two derivatives in the exponent.
    at : Scales
        The alpha and delta at which to evaluate.
    """
    alpha, delta = at.alpha, at.delta
    nll = a = d = slope = aa = ad = dd = by_a = by_d = bend = 0.0
    for i in range(side.size):
        m = alpha * c[i] - delta
        p = log_probability_below(side[i] * m)
        score = side[i] * p.d_mid
        s = count[i] * score
        r = s * (m + score) if side[i] * m > -_FAR else count[i]
        nll -= count[i] * p.log
        a -= s * c[i]
        d += s
        slope -= s * c1[i]
        aa += r * c[i] * c[i]
        ad -= r * c[i]
        dd += r
        by_a += r * c[i] * c1[i]
        by_d -= r * c1[i]
        bend += alpha * (r * c1[i] * c1[i]) - s * c2[i]
    return Sums(nll, a, d, alpha * slope, aa, ad, dd, alpha * by_a + slope, alpha * by_d, alpha * bend)


@kernel
def _sums_of_intervals(terms: Terms, y: FloatArray, at: Scales) -> Sums:
    """Return `Sums` over the cells that are censored to an interval with two ends.

    Parameters
    ----------
    terms : Terms
        The intervals.
    y : (3, k)
        The standardised ends, and their first two derivatives in the exponent.
    at : Scales
        The alpha and delta at which to evaluate.
    """
    sums = Sums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(terms.n_intervals):
        count, i, j = terms.intervals[CELLS, k], int(terms.intervals[LOW, k]), int(terms.intervals[HIGH, k])
        low, high = (y[0, i], y[1, i], y[2, i]), (y[0, j], y[1, j], y[2, j])
        if 0.5 * at.alpha * (high[0] - low[0]) > NARROW:
            sums = _add_sums(sums, _sums_of_wide_interval(count, low, high, at))
        else:
            sums = _add_sums(sums, _sums_of_narrow_interval(count, low, high, at))
    return sums


@kernel
def _sums_of_narrow_interval(
    count: float, low: tuple[float, float, float], high: tuple[float, float, float], at: Scales
) -> Sums:
    """Return `Sums` over the cells of one interval, computed from its middle and half its length.

    Parameters
    ----------
    count : float
        The total weight of the cells.
    low, high : (float, float, float)
        The standardised ends, and their derivatives in the exponent.
    at : Scales
        The alpha and delta at which to evaluate.
    """
    middle = 0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2])
    half = 0.5 * (high[0] - low[0]), 0.5 * (high[1] - low[1]), 0.5 * (high[2] - low[2])
    m, t = at.alpha * middle[0] - at.delta, at.alpha * half[0]
    p = log_probability_between(m, t)
    s, q = p.d_mid, p.d_half
    common = m * s + t * q
    mm, mt, tt = -common - s * s, -(m * q + t * s) - s * q, -common - q * q
    return _sums_by_coordinates(count, p.log, (s, q), (mm, mt, tt), middle, half, 0.0, at.alpha)


@kernel
def _sums_of_wide_interval(
    count: float, low: tuple[float, float, float], high: tuple[float, float, float], at: Scales
) -> Sums:
    """Return `Sums` over the cells of one interval, computed from its two ends.

    The result is accurate even if one end is much farther from the mean than the other. The arguments are those of
    `_sums_of_narrow_interval`.
    """
    a, b = at.alpha * low[0] - at.delta, at.alpha * high[0] - at.delta
    p = log_probability_of(a, b)
    u, v = -p.at_low, p.at_high  # the derivatives in a and b
    first = low if u < 0.0 else (0.0, 0.0, 0.0)  # without a density an end counts as infinite
    second = high if v > 0.0 else (0.0, 0.0, 0.0)
    aa = (-u * (a + u) if a < _FAR else -1.0) if u < 0.0 else 0.0
    bb = (-v * (b + v) if b > -_FAR else -1.0) if v > 0.0 else 0.0
    return _sums_by_coordinates(count, p.log, (u, v), (aa, -u * v, bb), first, second, 1.0, at.alpha)


@kernel
def _sums_by_coordinates(
    count: float,
    log_p: float,
    gradient: tuple[float, float],
    hessian: tuple[float, float, float],
    first: tuple[float, float, float],
    second: tuple[float, float, float],
    share_of_delta: float,
    alpha: float,
) -> Sums:
    """Return `Sums` by the chain rule, given the derivatives of the log-probability of a cell in two coordinates.

    The coordinates are ``alpha c - delta`` and ``alpha h - share_of_delta delta``, where `first` holds c and `second`
    holds h.

    Parameters
    ----------
    count : float
        The total weight of the cells.
    log_p : float
        The log of the probability of a cell.
    gradient : (float, float)
        The derivatives of `log_p` in the two coordinates.
    hessian : (float, float, float)
        The second derivatives of `log_p`: in the first coordinate, in both, and in the second.
    first, second : (float, float, float)
        c and h, each with its first two derivatives in the exponent.
    share_of_delta : float
        1 if the second coordinate contains delta, otherwise 0.
    alpha : float
        The alpha at which to evaluate.
    """
    (s, q), (mm, mt, tt), e = gradient, hessian, share_of_delta
    (c, c1, c2), (h, h1, h2) = first, second
    slope = s * c1 + q * h1
    bend = alpha * (mm * c1 * c1 + 2.0 * mt * c1 * h1 + tt * h1 * h1) + (s * c2 + q * h2)
    return Sums(
        -count * log_p,
        -count * (s * c + q * h),
        count * (s + e * q),
        -count * alpha * slope,
        -count * (mm * c * c + 2.0 * mt * c * h + tt * h * h),
        count * (mm * c + mt * (e * c + h) + e * tt * h),
        -count * (mm + 2.0 * e * mt + e * tt),
        -count * (alpha * (mm * c * c1 + mt * (c * h1 + h * c1) + tt * h * h1) + slope),
        count * alpha * (mm * c1 + mt * (e * c1 + h1) + e * tt * h1),
        -count * alpha * bend,
    )


@kernel
def _sums_of_value(weight: float, c: float, c1: float, c2: float, at: Scales) -> Sums:
    """Return `Sums` over observed values that are all equal; their log-density is ``-m^2/2``, ``m = alpha c - delta``.

    Parameters
    ----------
    weight : float
        The total weight of the values.
    c, c1, c2 : float
        The standardised value, and its first two derivatives in the exponent.
    at : Scales
        The alpha and delta at which to evaluate.
    """
    alpha, m = at.alpha, at.alpha * c - at.delta
    return Sums(
        weight * 0.5 * m * m,
        weight * m * c,
        -weight * m,
        weight * alpha * m * c1,
        weight * c * c,
        -weight * c,
        weight,
        weight * (alpha * c * c1 + m * c1),
        -weight * alpha * c1,
        weight * alpha * (alpha * c1 * c1 + m * c2),
    )
