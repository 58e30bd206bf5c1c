"""Bounds on the errors of a fit from power sums.

By the error formula of Gauss rules ([1]_), for f with eight derivatives, a bin's mean of f and its rule's differ by at
most ``max|f^(8)| h^8/8! r``, h half its width and r = E pi_4(t)^2 <= min(1/64, E pi_3(t)^2), pi_k the monic orthogonal
polynomials of its values.
With f = e^(2 m a) the relative error is ``(2 |m| h)^8 r e^(2 |m| h)/8!``: 3e-13 for 2 |m| h = 0.16. A bin that holds
at most four distinct values is represented exactly. Sums over blocks of rows are rounded to whole numbers of a quantum,
so that no order of adding them up makes a difference. `bound_errors` sums the effects of all this on lambda.

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

#: Error of the distance between two references in logs, in roundings: `reference_excess` is precise to 2**-64.
_MOVED = 2.0**-11
#: In grids that reach farther than this the logs may have been rounded relative to the reference they had before.
_NARROW = 0.0625
#: Independent roundings are taken to come to less than this many of their standard deviations: a normal variable
#: exceeds 8 with probability 1e-15.
_SIGMAS = 8.0


class Rounded(NamedTuple):
    """How sums were rounded: the quantum, the number of roundings, how many gave 0 (`lost`), and the rows of each sum.

    `moved`: the logs were taken relative to another reference than they have now.
    """

    quantum: float
    times: float
    rows: float
    lost: float
    moved: bool


@kernel
def bound_errors(sample: Sample, best: Optimum, nodes: Nodes, rounded: Rounded) -> tuple[float, float]:
    """Return bounds of the error of the optimum and of the relative error of the standard deviation there.

    Both include the errors of the Gauss rules and rounding within bins. The bound for lambda also includes rounding of
    the logs and of the sums.

    Parameters
    ----------
    sample : Sample
        The nodes and weights.
    best : Optimum
        The fit of the sample.
    nodes : Nodes
        The bins as `make_sample` writes them.
    rounded : Rounded
        How the sums were rounded.
    """
    logs = sample.centered.logs
    mu, shift = best.exponent * logs.sigma, 0.0
    if sample.sign != 0.0:
        shift = logs.high if mu > 0.0 else logs.low
    turn = abs(logs.jacobian - shift)
    variance = (best.sd / logs.sigma) ** 2
    mean = _mean_power(sample, mu, shift, best.log_factor, nodes)
    squares = products = quanta = farthest = 0.0
    for b in range(sample.n_bins):
        below = b < sample.n_bins_below
        exponent = 2.0 * logs.sigma - mu if below else mu
        a = nodes.bin_position[b] - shift
        grows = abs(exponent) * sample.half
        height = sample.half * exp(exponent * a + grows - best.log_factor)
        reach = abs(a) + sample.half
        distance = abs(nodes.bin_power[b] - mean) + 2.0 * height
        lever = (distance * distance + variance) * (reach + turn)
        if sample.whole:
            lever = 2.0 * distance * height * (reach + turn) + variance * sample.half
        if nodes.bin_weight[b] == 0.0:
            farthest = max(farthest, lever)
            continue
        quanta += lever * lever
        # of y^2 and, its derivative in the exponent, of y y': their eighth derivatives times h^8/8! r
        rule = 8.0 * (2.0 * grows) ** 6 / 40320.0 * nodes.bin_remainder[b]
        rounding = (4.0 + 0.5 * rounded.rows * nodes.bin_blur[b]) * EPS
        weight = nodes.bin_weight[b] * height * height
        squares += weight * (rule + rounding)
        products += weight * (rule + rounding) * reach
        if grows > 0.0:
            products += weight * rule * 3.0 / abs(exponent)
    lost = _SIGMAS * rounded.quantum * math.sqrt(rounded.times / 12.0 * quanta)
    if rounded.lost > 0.0:
        lost += 0.5 * rounded.quantum * rounded.lost * farthest
    total = variance * sample.weight * best.curvature
    error = (products + turn * squares + lost) * logs.sigma / total + _noise(sample, rounded.moved)
    return error, 0.5 * squares / (variance * sample.weight)


@kernel
def _mean_power(sample: Sample, mu: float, shift: float, log_factor: float, nodes: Nodes) -> float:
    """Write y at the middle of each bin and return the mean of y, both times e^-log_factor."""
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
def _noise(sample: Sample, moved: bool) -> float:
    """Return the error of lambda due to rounding of logs and of the reference, in units of 1/(spread of the logs)."""
    logs = sample.centered.logs
    rounding = sample.rounding
    if moved:
        rounding = max(rounding, (_MOVED if logs.sigma < _NARROW else 1.0) * EPS / logs.sigma)
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
