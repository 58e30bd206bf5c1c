"""Plotting positions of a sorted column: weights, and the normal quantiles with which its values are compared.

A value of weight w stands for w copies, each with its own quantile (Filliben's median ranks [1]_). The probability plot
needs the mean quantile of the copies of each value, and the variance of the quantiles of the copies of one value.

References
----------
.. [1] J. J. Filliben, "The probability plot correlation coefficient test for normality", Technometrics 17, 1975,
   111-117.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import BLOCKS, ROWS, entry, inlined, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.location.order_statistics import n_present
from powerkern.kernels.location.weights import FREQUENCY_WORK, FrequencyWeights, FrequencyWork, frequency_weights
from powerkern.kernels.robust.qq import FILLIBEN, filliben_end, first_score, normal_nodes

#: Largest distance between normal quantiles that share a node (`powerkern.kernels.robust.qq.normal_nodes`).
_CLOSE = 1.0 / 48.0


class PlottingPositions(NamedTuple):
    """Weights and normal quantiles of the values of a sorted column, made by `weigh_columns`."""

    #: if the weights are equal, each value's fraction of the total (`fraction` is then not read); otherwise 0
    equal: float
    #: mean normal quantile of the copies of each value, over the root mean square of all quantiles
    quantile: FloatArray
    fraction: FloatArray  #: fraction of the total weight that each value has
    n: float  #: effective number of values
    half_variance_within: float  #: half the mean variance, over all values, of the quantiles of a value's copies


@inlined
def fraction_at(positions: PlottingPositions, i: int) -> float:
    """Return the weight of value i as a fraction of the total weight."""
    return positions.equal if positions.equal > 0.0 else positions.fraction[i]


@entry((ROWS, ROWS, FREQUENCY_WORK, BLOCKS, ROWS))
def weigh_columns(
    columns: FloatArray, weights: FloatArray, work: FrequencyWork, positions: FloatArray, totals: FloatArray
) -> None:
    """Merge tied values of sorted rows with positive weights, and write their plotting positions.

    A value of weight w stands for w copies, each with its own normal quantile.

    Parameters
    ----------
    columns, weights : (p, n)
        Columns as rows, sorted, NaN last, and the weight of each value. Each run of equal values is replaced in place
        by one value with the sum of their weights; NaN fills the end of the row.
    work : FrequencyWork
        Scratch.
    positions : (2, p, n)
        Receives, for each value, the mean normal quantile of its copies and its fraction of the total weight.
    totals : (p, 2)
        Receives, for each row, the effective number of values and half of the variance of the quantiles among the
        copies of one value, averaged over the values.
    """
    for j in range(columns.shape[0]):
        n = n_present(columns[j])
        if n > 0:
            unit = frequency_weights(weights[j, :n], work).unit  # before ties are merged
            n = _merge_ties(columns[j, :n], weights[j, :n])
            counts = _with_unit(frequency_weights(weights[j, :n], work), unit)
            _weigh(counts, positions[0, j, :n], positions[1, j, :n], totals[j])


@kernel
def _merge_ties(x: FloatArray, weight: FloatArray) -> int:
    """Replace each run of equal values by one value of their total weight; return the number of distinct values."""
    n = 0
    for i in range(x.size):
        if n > 0 and x[n - 1] == x[i]:
            weight[n - 1] += weight[i]
        else:
            x[n], weight[n] = x[i], weight[i]
            n += 1
    x[n:] = math.nan
    return n


@kernel
def _with_unit(counts: FrequencyWeights, unit: float) -> FrequencyWeights:
    """Return a copy of the weights in which `unit` is the weight that counts as one value."""
    return FrequencyWeights(
        counts.w, counts.before, counts.after, counts.half_partner, counts.majority_partner, counts.nodes,
        counts.lower, counts.upper, counts.total, unit, counts.factor,
    )  # fmt: skip


@kernel
def _weigh(counts: FrequencyWeights, quantile: FloatArray, fraction: FloatArray, totals: FloatArray) -> None:
    """Write the plotting positions of one row.

    `quantile` and `fraction` receive the normal quantile and the weight of each value, and `totals` two numbers for the
    row, as described in `weigh_columns`.
    """
    n, total, unit = fraction.size, counts.total, counts.unit
    row, score, spread, weight = normal_nodes(counts, FILLIBEN, _CLOSE)
    quantile[:] = 0.0
    squares, between = 0.0, 0.0
    for k in range(row.size):
        quantile[row[k]] += weight[k] * score[k]
        squares += weight[k] * (score[k] * score[k] + spread[k])
    more, formula = filliben_end(counts), first_score(counts)
    for i in range(n):  # the first and the last copy have different median ranks
        first = max(min(unit, counts.before[i + 1]) - counts.before[i], 0.0)
        last = max(min(unit, counts.after[i]) - counts.after[i + 1], 0.0)
        quantile[i] += (first - last) * more
        squares += (first + last) * more * (2.0 * formula + more)
    root_mean_square = math.sqrt(squares / total)
    for i in range(n):
        fraction[i] = counts.w[i] / total
        quantile[i] /= counts.w[i] * root_mean_square
        between += fraction[i] * (quantile[i] * quantile[i])
    totals[0], totals[1] = total / unit, max(0.5 - 0.5 * between, 0.0)


@kernel
def positions_in_row(positions: FloatArray, totals: FloatArray, j: int, x: FloatArray) -> PlottingPositions:
    """Return the plotting positions of row j.

    Parameters
    ----------
    positions : (2, p, n), or (1, p, n) or (1, 1, n)
        Quantiles and fractions written by `weigh_columns`. For equal weights the array contains only quantiles, either
        for each row or one set for all rows.
    totals : (p, 2)
        Totals written by `weigh_columns`; not read for equal weights.
    j : int
        Index of the row.
    x : (n,)
        The values of the row, without the NaN at its end.
    """
    n, k = x.size, min(j, positions.shape[1] - 1)
    quantile = positions[0, k, :n]
    # `x` is a placeholder for fractions: masked loads are slow beyond the end of an array, even if they read nothing
    if positions.shape[0] == 1:
        return PlottingPositions(1.0 / n, quantile, x, float(n), 0.0)
    return PlottingPositions(0.0, quantile, positions[1, k, :n], totals[j, 0], totals[j, 1])
