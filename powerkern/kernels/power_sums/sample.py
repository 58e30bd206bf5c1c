"""Build the weighted sample that represents a column given by power sums.

The sample consists of the nodes and weights of the Gauss rules of all bins. The rule of a bin has at most four nodes,
with the same first eight moments as the values in the bin (`powerkern.kernels.power_sums.gauss`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log1p
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.likelihood.score import Logs
from powerkern.kernels.likelihood.two_pass import Centered
from powerkern.kernels.power_sums.gauss import N_NODES, N_POWERS, ONE_NODE, gauss_rule
from powerkern.kernels.power_sums.grids import (
    G_BINS,
    G_EXPONENT,
    G_FIRST,
    G_MAX,
    G_MIN,
    G_QUANTUM,
    G_REF,
    G_SIGN,
    reference_excess,
)
from powerkern.kernels.power_sums.sums import is_delicate

#: Sums of weights that are multiples of the quantum times 2 to this power are considered exact.
_SPARE_BITS = 20.0


class Nodes(NamedTuple):
    """Scratch for the sample of a column, and for the statistics of its bins that determine the error bounds."""

    position: FloatArray  #: logs of the sample
    weight: FloatArray  #: weights of the sample
    bin_position: FloatArray  #: log at the middle of each bin
    bin_weight: FloatArray  #: total weight of each bin
    bin_remainder: FloatArray  #: bound on E pi_4^2 of each bin (`errors`)
    bin_power: FloatArray  #: y at the middle of each bin
    bin_blur: FloatArray  #: 0 if the bin certainly holds a single value, otherwise 1
    small: FloatArray  #: scratch of `gauss_rule`


class Sample(NamedTuple):
    """A weighted sample of logs with the same power sums as a column, and the layout of the bins."""

    centered: Centered
    sign: float  #: sign of all values; 0 if both signs occur
    half: float  #: half the width of a bin, in units of the logs
    rounding: float  #: absolute part of the rounding error of a log, in units of the logs
    origin: float  #: position on the grid that is the zero of logs of one sign, in units of the logs
    whole: bool  #: True if certainly no sum of weights was rounded
    n_bins: int
    n_bins_below: int  #: number of bins with negative values, if the column has both signs
    weight: float  #: total weight


class _Layout(NamedTuple):
    """The range of bins that the data occupy, and the position on the grid where logs are 0."""

    sign: float  #: sign of all values; 0 if both signs occur
    mirrored: bool  #: whether the grid is for both signs, but all values are negative
    begin: int  #: index of the first occupied bin
    end: int  #: one more than the index of the last occupied bin
    origin: int  #: position, in bins, that is the zero of logs of one sign
    low: int  #: ends of the occupied part, in bins from `origin`
    high: int


@kernel
def _find_layout(sums: FloatArray, grid: FloatArray, narrows: bool) -> _Layout:
    """Return the part of a grid that the data occupy; the grid may be much wider than the range of the data.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins.
    grid : (N_GRID,)
        The grid of the column.
    narrows : bool
        Whether to leave out empty bins at both ends; if False, the result covers the whole grid.
    """
    first, begin, end = int(grid[G_FIRST]), 0, int(grid[G_BINS])
    while narrows and begin < end and not sums[begin, 0] > 0.0:
        begin += 1
    while narrows and end > begin and not sums[end - 1, 0] > 0.0:
        end -= 1
    sign, low, high = grid[G_SIGN], first + begin, first + end
    if sign == 0.0 and high > 0 > low:
        return _Layout(0.0, False, begin, end, 0, low, high)
    mirrored = sign == 0.0 and low < 0
    if mirrored:
        low, high = -high, -low
    if sign == 0.0:
        sign = -1.0 if mirrored else 1.0
    origin = 0 if low <= 0 <= high else _middle(sums, first, begin, end, mirrored)
    return _Layout(sign, mirrored, begin, end, origin, low - origin, high - origin)


@kernel
def _middle(sums: FloatArray, first: int, begin: int, end: int, mirrored: bool) -> int:
    """Return the position on the grid of the bin that contains the mean of the logs.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins.
    first : int
        Position of the first bin on the grid.
    begin : int
        Index of the first occupied bin.
    end : int
        One more than the index of the last occupied bin.
    mirrored : bool
        Whether to negate the result, for negative values on a grid for both signs.
    """
    total = weighted_sum = 0.0
    for b in range(begin, end):
        total += sums[b, 0]
        weighted_sum += sums[b, 0] * (b - begin)
    at = first + begin + math.floor(weighted_sum / total)
    return -at if mirrored else at


@kernel
def _magnitude(log_of_it: float, base: float, smallest: float, largest: float) -> float:
    """Return the magnitude whose log is `log_of_it`, clipped to [smallest, largest].

    The log of a magnitude x is ln(base + x).
    """
    size = expm1(log_of_it) if base == 1.0 else exp(log_of_it)
    return min(max(size, smallest), largest)


@kernel
def _magnitude_at_distance(
    extreme: float, distance: float, log_of_it: float, base: float, smallest: float, largest: float
) -> float:
    """Return the magnitude whose log exceeds that of `extreme` by `distance`, clipped to [smallest, largest].

    Close to the extreme the result is computed from the distance, since the rounding error of exp(log) could exceed the
    distance between data values.

    Parameters
    ----------
    extreme : float
        The smallest or largest magnitude of the data.
    distance : float
        Difference of the logs, with its sign.
    log_of_it : float
        The log of the result, used if the distance is large.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    smallest : float
        Lower bound of the result.
    largest : float
        Upper bound of the result.
    """
    if abs(distance) < 1.0:
        return min(max(extreme + (base + extreme) * expm1(distance), smallest), largest)
    return _magnitude(log_of_it, base, smallest, largest)


@kernel
def make_sample(sums: FloatArray, base: float, grid: FloatArray, nodes: Nodes, narrows: bool = True) -> Sample:
    """Build the sample of a column that has at least one value.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of the column.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    nodes : Nodes
        Receives the sample and the statistics of the bins.
    narrows : bool
        Whether to narrow the bounds of the logs to the occupied bins. Use False if the bounds must also contain the
        ends of intervals of censored cells.
    """
    layout = _find_layout(sums, grid, narrows)
    sigma_bins = 1.0  # the unit of the logs, in bins
    while sigma_bins < max(abs(layout.low), abs(layout.high)):
        sigma_bins *= 2.0
    width = 2.0 ** grid[G_EXPONENT]
    sigma, half = sigma_bins * width, 0.5 / sigma_bins
    first, mirrored = int(grid[G_FIRST]), layout.mirrored
    n = n_below = n_bins_below = 0
    total = weighted_sum = 0.0
    whole, per_quantum = True, 2.0 ** -(grid[G_QUANTUM] + _SPARE_BITS)
    n_bins = _add_end(first, layout, 0, sigma_bins, nodes)
    for b in range(layout.begin, layout.end):
        if not sums[b, 0] > 0.0:
            continue
        below = layout.sign == 0.0 and first + b < 0
        distance = -(first + b + 0.5) if mirrored else first + b + 0.5
        center = (distance - layout.origin) / sigma_bins
        n_nodes, remainder = gauss_rule(sums[b], nodes.small)
        for k in range(n_nodes):
            step = half * nodes.small[0, k]
            at = center - step if mirrored else center + step
            nodes.position[n] = -at if below else at  # may cross 0 by rounding, which the other nodes compensate
            nodes.weight[n] = nodes.small[1, k]
            weighted_sum += nodes.small[1, k] * at
            n += 1
        nodes.bin_position[n_bins] = -center if below else center
        nodes.bin_weight[n_bins] = sums[b, 0]
        whole = whole and math.floor(sums[b, 0] * per_quantum) == sums[b, 0] * per_quantum
        nodes.bin_remainder[n_bins] = remainder
        nodes.bin_blur[n_bins] = 0.0 if n_nodes == 1 and _is_one_value(sums[b]) else 1.0
        n_bins += 1
        total += sums[b, 0]
        if below:
            n_below, n_bins_below = n, n_bins
    n_bins = _add_end(first + int(grid[G_BINS]), layout, n_bins, sigma_bins, nodes)
    pos, neg = slice(n_below, n), slice(0, n_below)
    values = nodes.position[pos], nodes.weight[pos], nodes.position[neg], nodes.weight[neg]
    centered = _bound_logs(values, base, grid, layout, sigma, width, weighted_sum / total)
    rounding = 0.0 if is_delicate(base, grid) else EPS / sigma
    return Sample(centered, layout.sign, half, rounding, layout.origin / sigma_bins, whole, n_bins, n_bins_below, total)


@kernel
def _is_one_value(sums: FloatArray) -> bool:
    """Return whether the power sums of a bin are those of a single distinct value, up to rounding."""
    mean = sums[1] / sums[0]
    return bool(abs(sums[2] / sums[0] - mean * mean) <= ONE_NODE)


@kernel
def _add_end(at: int, layout: _Layout, n_bins: int, sigma_bins: float, nodes: Nodes) -> int:
    """Append one end of the grid as a bin of weight 0; return the new number of bins.

    Parameters
    ----------
    at : int
        The end, as a position in bins.
    layout : _Layout
        The occupied part of the grid.
    n_bins : int
        Number of bins so far.
    sigma_bins : float
        The unit of the logs, in bins.
    nodes : Nodes
        Receives the bin.
    """
    distance = (-at if layout.mirrored else at) - layout.origin
    nodes.bin_position[n_bins] = (abs(distance) if layout.sign == 0.0 else distance) / sigma_bins
    nodes.bin_weight[n_bins] = nodes.bin_remainder[n_bins] = 0.0
    return n_bins + 1


@kernel
def _bound_logs(
    values: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    base: float,
    grid: FloatArray,
    layout: _Layout,
    sigma: float,
    width: float,
    jacobian: float,
) -> Centered:
    """Return the logs of the sample together with the tightest bounds on them that the occupied bins allow.

    With wider bounds the sums in the likelihood could lose all their digits.

    Parameters
    ----------
    values : tuple of four ndarrays
        Scaled logs of the positive values and their weights, then those of the negative values.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson), added to magnitudes before the logarithm.
    grid : (N_GRID,)
        The grid of the column.
    layout : _Layout
        The occupied part of the grid.
    sigma : float
        The unit of the logs.
    width : float
        Width of a bin.
    jacobian : float
        Mean of the scaled logs, the coefficient of lambda in the log-Jacobian.
    """
    pos, pos_weight, neg, neg_weight = values
    log_ref, origin = offset_log(base, grid[G_REF]), layout.origin * width
    low, high = log_ref + origin + layout.low * width, log_ref + origin + layout.high * width
    if layout.sign == 0.0:
        largest = _magnitude(high, base, 0.0, grid[G_MAX])
        neg_high = log1p(_magnitude(-low, base, 0.0, -grid[G_MIN])) / sigma
        logs = Logs(pos, pos_weight, neg, neg_weight, 0.0, log1p(largest) / sigma, neg_high, jacobian, sigma, 0.0)
        return Centered(logs, 0.0, base, 0.0, largest, math.nan, 0.0)
    nearest, farthest = max(grid[G_MIN], 0.0), grid[G_MAX]
    if layout.sign < 0.0:
        nearest, farthest = max(-grid[G_MAX], 0.0), -grid[G_MIN]
    origin -= reference_excess(base, grid[G_REF])
    first = centered_log(nearest, base, grid[G_REF], log_ref) - origin
    last = centered_log(farthest, base, grid[G_REF], log_ref) - origin
    inward = max(layout.low * width - first, 0.0), min(layout.high * width - last, 0.0)
    smallest = _magnitude_at_distance(nearest, inward[0], low, base, nearest, farthest)
    largest = _magnitude_at_distance(farthest, inward[1], high, base, nearest, farthest)
    logs = Logs(
        pos,
        pos_weight,
        neg,
        neg_weight,
        (centered_log(smallest, base, grid[G_REF], log_ref) - origin) / sigma,
        (centered_log(largest, base, grid[G_REF], log_ref) - origin) / sigma,
        0.0,
        jacobian,
        sigma,
        0.0,
    )
    return Centered(logs, log_ref + origin, base, smallest, largest, math.nan, 0.0)


def new_nodes(n_bins: int) -> Nodes:
    """Allocate `Nodes` for at most `n_bins` bins, plus the two ends of the grid."""
    position, weight = (np.empty(N_NODES * n_bins) for _ in range(2))
    middle, own, remainder, power, blur = (np.empty(n_bins + 2) for _ in range(5))
    return Nodes(position, weight, middle, own, remainder, power, blur, np.empty((7, N_POWERS)))
