"""The weighted sample that has the power sums of a column: nodes and weights of the Gauss rules of its bins.

At most four nodes in a bin (`powerkern.kernels.power_sums.gauss`) have the same first eight moments as its values.
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

#: Weights that are multiples of a quantum times 2 to this power have not been rounded.
_SPARE_BITS = 20.0


class Nodes(NamedTuple):
    """Scratch for the sample of a column, for the figures of each bin that `bound_errors` needs, and small arrays."""

    position: FloatArray
    weight: FloatArray
    bin_position: FloatArray
    bin_weight: FloatArray
    bin_remainder: FloatArray
    bin_power: FloatArray
    bin_blur: FloatArray
    small: FloatArray


class Sample(NamedTuple):
    """A column's bins as weighted logs; `sign` is 1, -1, or 0 for both.

    In units of the logs, `half` is half a bin, `rounding` the rounding error of a log that is 0, and `origin` the
    position on the grid that logs of one sign are relative to. `whole`: no sum of weights can have been rounded.
    """

    centered: Centered
    sign: float
    half: float
    rounding: float
    origin: float
    whole: bool
    n_bins: int
    n_bins_below: int
    weight: float


class _Layout(NamedTuple):
    """The occupied bins, from `begin` to before `end`, as distances from 0 (for one sign, from `origin`).

    `turned`: the grid is for both signs, and all values are negative. `low` and `high` are the ends of the distances.
    """

    sign: float
    turned: bool
    begin: int
    end: int
    origin: int
    low: int
    high: int


@kernel
def _find_layout(sums: FloatArray, grid: FloatArray) -> _Layout:
    """Return the part of their grid that the data occupy: it may have been made for a much wider range."""
    first, begin, end = int(grid[G_FIRST]), 0, int(grid[G_BINS])
    while begin < end and not sums[begin, 0] > 0.0:
        begin += 1
    while end > begin and not sums[end - 1, 0] > 0.0:
        end -= 1
    sign, low, high = grid[G_SIGN], first + begin, first + end
    if sign == 0.0 and high > 0 > low:
        return _Layout(0.0, False, begin, end, 0, low, high)
    turned = sign == 0.0 and low < 0
    if turned:
        low, high = -high, -low
    if sign == 0.0:
        sign = -1.0 if turned else 1.0
    origin = 0 if low <= 0 <= high else _middle(sums, first, begin, end, turned)
    return _Layout(sign, turned, begin, end, origin, low - origin, high - origin)


@kernel
def _middle(sums: FloatArray, first: int, begin: int, end: int, turned: bool) -> int:
    """Return the index of the bin that holds the mean of the logs; negated if the grid is `turned`."""
    total = turn = 0.0
    for b in range(begin, end):
        total += sums[b, 0]
        turn += sums[b, 0] * (b - begin)
    at = first + begin + math.floor(turn / total)
    return -at if turned else at


@kernel
def _magnitude(log_of_it: float, base: float, smallest: float, largest: float) -> float:
    """Return the magnitude that has this log, within bounds."""
    size = expm1(log_of_it) if base == 1.0 else exp(log_of_it)
    return min(max(size, smallest), largest)


@kernel
def _moved(extreme: float, distance: float, log_of_it: float, base: float, smallest: float, largest: float) -> float:
    """Return the magnitude whose log is `distance` from the log of `extreme`.

    Close to the extreme it is computed from the difference: rounding of exp could exceed the distance between values.
    """
    if abs(distance) < 1.0:
        return min(max(extreme + (base + extreme) * expm1(distance), smallest), largest)
    return _magnitude(log_of_it, base, smallest, largest)


@kernel
def make_sample(sums: FloatArray, base: float, grid: FloatArray, nodes: Nodes) -> Sample:
    """Return the Gauss rules of all bins; the sums have at least one value.

    Parameters
    ----------
    sums : (n_bins, N_POWERS)
        Power sums of the bins of the column.
    base : float
        0 (Box-Cox) or 1 (Yeo-Johnson).
    grid : (N_GRID,)
        Its grid.
    nodes : Nodes
        Receives the nodes.
    """
    layout = _find_layout(sums, grid)
    sigma_bins = 1.0  # the unit of the logs, in bins
    while sigma_bins < max(abs(layout.low), abs(layout.high)):
        sigma_bins *= 2.0
    width = 2.0 ** grid[G_EXPONENT]
    sigma, half = sigma_bins * width, 0.5 / sigma_bins
    first, turned = int(grid[G_FIRST]), layout.turned
    n = n_below = n_bins_below = 0
    total = turn = 0.0
    whole, per_quantum = True, 2.0 ** -(grid[G_QUANTUM] + _SPARE_BITS)
    n_bins = _add_end(first, layout, 0, sigma_bins, nodes)
    for b in range(layout.begin, layout.end):
        if not sums[b, 0] > 0.0:
            continue
        below = layout.sign == 0.0 and first + b < 0
        distance = -(first + b + 0.5) if turned else first + b + 0.5
        center = (distance - layout.origin) / sigma_bins
        found, remainder = gauss_rule(sums[b], nodes.small)
        for k in range(found):
            step = half * nodes.small[0, k]
            at = center - step if turned else center + step
            nodes.position[n] = -at if below else at  # rounding may put a node beyond 0: others make up for it
            nodes.weight[n] = nodes.small[1, k]
            turn += nodes.small[1, k] * at
            n += 1
        nodes.bin_position[n_bins] = -center if below else center
        nodes.bin_weight[n_bins] = sums[b, 0]
        whole = whole and math.floor(sums[b, 0] * per_quantum) == sums[b, 0] * per_quantum
        nodes.bin_remainder[n_bins] = remainder
        nodes.bin_blur[n_bins] = 0.0 if found == 1 and _is_one_value(sums[b]) else 1.0
        n_bins += 1
        total += sums[b, 0]
        if below:
            n_below, n_bins_below = n, n_bins
    n_bins = _add_end(first + int(grid[G_BINS]), layout, n_bins, sigma_bins, nodes)
    pos, neg = slice(n_below, n), slice(0, n_below)
    values = nodes.position[pos], nodes.weight[pos], nodes.position[neg], nodes.weight[neg]
    centered = _bounded(values, base, grid, layout, sigma, width, turn / total)
    rounding = 0.0 if is_delicate(base, grid) else EPS / sigma
    return Sample(centered, layout.sign, half, rounding, layout.origin / sigma_bins, whole, n_bins, n_bins_below, total)


@kernel
def _is_one_value(sums: FloatArray) -> bool:
    """Return whether the power sums of a bin could come from a single value, up to rounding."""
    mean = sums[1] / sums[0]
    return bool(abs(sums[2] / sums[0] - mean * mean) <= ONE_NODE)


@kernel
def _add_end(at: int, layout: _Layout, n_bins: int, sigma_bins: float, nodes: Nodes) -> int:
    """Append an end of the grid as a bin without weight; return the new number of bins."""
    distance = (-at if layout.turned else at) - layout.origin
    nodes.bin_position[n_bins] = (abs(distance) if layout.sign == 0.0 else distance) / sigma_bins
    nodes.bin_weight[n_bins] = nodes.bin_remainder[n_bins] = 0.0
    return n_bins + 1


@kernel
def _bounded(
    values: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    base: float,
    grid: FloatArray,
    layout: _Layout,
    sigma: float,
    width: float,
    jacobian: float,
) -> Centered:
    """Return the logs of the column, bounded by the occupied bins: with wider bounds the sums would lose all digits."""
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
    smallest = _moved(nearest, inward[0], low, base, nearest, farthest)
    largest = _moved(farthest, inward[1], high, base, nearest, farthest)
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
    """Return the arrays of `Nodes` for at most `n_bins` bins, and the ends of the grid."""
    position, weight = (np.empty(N_NODES * n_bins) for _ in range(2))
    middle, own, remainder, power, blur = (np.empty(n_bins + 2) for _ in range(5))
    return Nodes(position, weight, middle, own, remainder, power, blur, np.empty((7, N_POWERS)))
