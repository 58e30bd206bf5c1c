"""Bound the errors of a fit from power sums.

In each bin a Gauss rule replaces the values. By its error formula ([1]_), the mean of a function f with eight
derivatives changes by at most ``max|f^(8)| h^8/8! r``. Here h is half the width of the bin, t in [-1, 1] is the
position of a value in the bin, r = E pi_4(t)^2 <= min(1/64, E pi_3(t)^2), E denotes the mean over the bin's values, and
pi_k are their monic orthogonal polynomials. For f = e^(2 m a), the square of a power with log a and exponent m, the
relative error is
``(2 |m| h)^8 r e^(2 |m| h)/8!``, which is 2e-13 for 2 |m| h = 0.16. A bin with at most four distinct values is
represented exactly. Sums over blocks of rows are rounded to multiples of a quantum, so that they do not depend on the
order of addition. `bound_errors` bounds the error of lambda that results from the Gauss rules and from rounding.

References
----------
.. [1] W. Gautschi, "Orthogonal Polynomials: Computation and Approximation", Oxford University Press, 2004.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.likelihood.optimum import Optimum
from powerkern.kernels.power_sums.sample import Nodes, Sample

#: Error of the log distance between two references, in units of EPS; `reference_excess` is accurate to 2**-64.
_MOVED = 2.0**-11
#: If the logs extend farther than this, they may have been rounded relative to an earlier reference.
_NARROW = 0.0625
#: Bound on a sum of independent rounding errors, in units of its standard deviation. A normal variable exceeds 8 with
#: probability 1e-15.
_SIGMAS = 8.0


class Rounded(NamedTuple):
    """Record of how the power sums of a column were rounded."""

    quantum: float  #: sums are multiples of this
    times: float  #: number of roundings
    rows: float  #: largest number of rows that were summed before rounding
    lost: float  #: number of roundings that gave 0
    moved: bool  #: whether logs were computed relative to a reference other than the current one


class FittedNormal(NamedTuple):
    """The normal distribution fitted to the transformed values, and the derivatives of its parameters at the optimum.

    `mu` is the exponent in units of the logs. `sd` is the standard deviation times e^-log_factor; the transformed
    values y are multiplied by the same factor. `scale_rate` is the derivative of ln(1/sd) in mu. `offset` is the mean
    of the distribution minus the mean of y, and `offset_rate` its derivative in mu; both are 0 without censored cells.
    """

    mu: float
    sd: float
    log_factor: float
    scale_rate: float
    offset: float
    offset_rate: float


class SumErrors(NamedTuple):
    """Bounds on the errors of weighted sums over the transformed values y and their derivatives y' in mu.

    `squares` is for ``(y - mean)^2`` and `products` for ``(y - mean)(y' - mean')``. `firsts` is for y and `slopes` for
    y'; these two bounds are needed only if the model has an offset, and do not include the effect of rounding the
    weights. `lost` bounds the effect of rounding the weights on the product of score and variance.
    """

    squares: float
    products: float
    firsts: float
    slopes: float
    lost: float


@kernel
def shift_at(sample: Sample, mu: float) -> float:
    """Return the log that is subtracted before powers are formed: the log in the range with the largest e^(mu log).

    The result is 0 if the column has both signs.
    """
    if sample.sign == 0.0:
        return 0.0
    return sample.centered.logs.high if mu > 0.0 else sample.centered.logs.low


@kernel
def bound_errors(sample: Sample, best: Optimum, nodes: Nodes, rounded: Rounded) -> tuple[float, float]:
    """Return bounds on the error of lambda, and on the relative error of the standard deviation, at the optimum.

    Both bounds include the errors of the Gauss rules and of rounding within bins. The bound for lambda also includes
    rounding of the logs and of the sums.

    Parameters
    ----------
    sample : Sample
        The weighted sample that represents the column.
    best : Optimum
        The fit of the sample.
    nodes : Nodes
        Statistics of the bins, written by `make_sample`.
    rounded : Rounded
        Record of the rounding of the sums.
    """
    logs = sample.centered.logs
    mu = best.exponent * logs.sigma
    turn = abs(logs.jacobian - shift_at(sample, mu))
    sd = best.sd / logs.sigma
    errors = bound_sums(sample, FittedNormal(mu, sd, best.log_factor, turn, 0.0, 0.0), nodes, rounded)
    variance = sd * sd
    total = variance * sample.weight * best.curvature
    error = (errors.products + turn * errors.squares + errors.lost) * logs.sigma / total + _noise(sample, rounded.moved)
    return error, 0.5 * errors.squares / (variance * sample.weight)


@kernel
def bound_sums(sample: Sample, model: FittedNormal, nodes: Nodes, rounded: Rounded) -> SumErrors:
    """Return bounds on the errors of the sums that determine the score.

    Parameters
    ----------
    sample : Sample
        The weighted sample that represents the column.
    model : FittedNormal
        The fitted distribution.
    nodes : Nodes
        Statistics of the bins, written by `make_sample`.
    rounded : Rounded
        Record of the rounding of the sums.
    """
    logs, mu = sample.centered.logs, model.mu
    shift, turn, variance = shift_at(sample, mu), abs(model.scale_rate), model.sd * model.sd
    mean = _mean_power(sample, mu, shift, model.log_factor, nodes) + model.offset
    squares = products = firsts = slopes = quanta = farthest = 0.0
    for b in range(sample.n_bins):
        below = b < sample.n_bins_below
        exponent = 2.0 * logs.sigma - mu if below else mu
        a = nodes.bin_position[b] - shift
        grows = abs(exponent) * sample.half
        height = sample.half * exp(exponent * a + grows - model.log_factor)
        reach = abs(a) + sample.half
        distance = abs(nodes.bin_power[b] - mean) + 2.0 * height
        lever = (distance * distance + variance) * (reach + turn)
        if sample.whole:
            lever = 2.0 * distance * height * (reach + turn) + variance * sample.half
        lever += distance * abs(model.offset_rate)
        if nodes.bin_weight[b] == 0.0:
            farthest = max(farthest, lever)
            continue
        quanta += lever * lever
        # errors of the rule for y^2, and for its derivative in the exponent y y': eighth derivatives times h^8/8! r
        doubled = 2.0 * grows
        rule = 8.0 * doubled**6 / 40320.0 * nodes.bin_remainder[b]
        rounding = (4.0 + 0.5 * rounded.rows * nodes.bin_blur[b]) * EPS
        weight = nodes.bin_weight[b] * height * height
        squares += weight * (rule + rounding)
        products += weight * (rule + rounding) * reach
        products += weight * 48.0 * sample.half * doubled**5 / 40320.0 * nodes.bin_remainder[b]  # 3/exponent times rule
        # of y and y': their eighth derivatives are exponent^7 and (7 + exponent a) exponent^6, times e^(exponent a)
        single = nodes.bin_weight[b] * height
        cubed = grows * grows * grows
        first_rule = cubed * cubed / 40320.0 * nodes.bin_remainder[b]
        firsts += single * (grows * first_rule + rounding)
        slopes += single * ((7.0 * sample.half + grows * reach) * first_rule + rounding * reach)
    lost = _SIGMAS * rounded.quantum * math.sqrt(rounded.times / 12.0 * quanta)
    if rounded.lost > 0.0:
        lost += 0.5 * rounded.quantum * rounded.lost * farthest
    return SumErrors(squares, products, firsts, slopes, lost)


@kernel
def _mean_power(sample: Sample, mu: float, shift: float, log_factor: float, nodes: Nodes) -> float:
    """Write the transform y of the middle of each bin to `nodes.bin_power`; return the mean of y over all values.

    The transforms and their mean are divided by e^log_factor.

    Parameters
    ----------
    sample : Sample
        The weighted sample that represents the column.
    mu : float
        The exponent, in units of the logs.
    shift : float
        The log at which y = 0 (`shift_at`).
    log_factor : float
        The log of the factor that y is divided by.
    nodes : Nodes
        Statistics of the bins; receives y.
    """
    total = 0.0
    for b in range(sample.n_bins):
        below = b < sample.n_bins_below
        exponent = 2.0 * sample.centered.logs.sigma - mu if below else mu
        t = exponent * (nodes.bin_position[b] - shift)
        power = (nodes.bin_position[b] - shift) * exp(-log_factor)
        if abs(t) > EPS:
            scaled = expm1(t) * exp(-log_factor) if t < 1.0 else exp(t - log_factor) - exp(-log_factor)
            power = scaled / exponent
        nodes.bin_power[b] = -power if below else power
        if nodes.bin_weight[b] > 0.0:
            total += nodes.bin_weight[b] * nodes.bin_power[b]
    return total / sample.weight


@kernel
def rounding_of_reference(sample: Sample, moved: bool) -> float:
    """Return the absolute part of the rounding error of a log, in units of the logs.

    The other part is EPS times the log. The absolute part is larger if the logs were `moved`, that is, rounded relative
    to an earlier reference.
    """
    sigma = sample.centered.logs.sigma
    if moved:
        return max(sample.rounding, (_MOVED if sigma < _NARROW else 1.0) * EPS / sigma)
    return sample.rounding


@kernel
def _noise(sample: Sample, moved: bool) -> float:
    """Bound the error of lambda due to rounding of the logs and of their reference.

    `moved` says whether the logs were rounded relative to an earlier reference (`Rounded.moved`).
    """
    logs = sample.centered.logs
    rounding = rounding_of_reference(sample, moved)
    spread = noise = 0.0
    for k in range(logs.pos.size):
        spread += logs.pos_weight[k] * (logs.pos[k] - logs.jacobian) ** 2
        noise += logs.pos_weight[k] * (EPS * abs(logs.pos[k] + sample.origin) + rounding) ** 2
    for k in range(logs.neg.size):
        spread += logs.neg_weight[k] * (logs.neg[k] + logs.jacobian) ** 2
        noise += logs.neg_weight[k] * (EPS * logs.neg[k] + rounding) ** 2
    if not spread > 0.0:
        return math.inf
    return 4.0 * math.sqrt(sample.weight * noise) / (spread * logs.sigma)
