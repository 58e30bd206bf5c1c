"""Plotting positions of sorted, possibly weighted values: the normal quantiles to plot them against."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from powerkern._estimators.ties import sort_with_weights
from powerkern._input import lazy_scipy_special as special
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.location.weights import new_frequency_work
from powerkern.kernels.normality.plotting_positions import weigh_columns

#: Function that returns the normal quantiles for a number of values, see `normal_quantiles`.
Quantiles: TypeAlias = Callable[[int], FloatArray]
#: Number of normal quantiles that are cached for later columns: 8 MB.
_KEPT = 2**20


def sort_and_weigh(
    block: FloatArray, weight: Weights, quantiles: Quantiles
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sort each row of a block; return the sorted rows, their plotting positions, and the totals of their weights.

    The three arrays are arguments of `positions_in_row`. With weights, tied values are merged, so that results depend
    neither on the order of rows nor on the division of a value's weight among rows. Without weights, the positions
    are normal quantiles; if all rows have equally many values, one row of positions serves all.

    Parameters
    ----------
    block : (p, n) ndarray
        Columns as rows, NaN for missing; overwritten.
    weight : (n,) ndarray or None
        Weight of each value; None: all 1.
    quantiles : function
        Returns the normal quantiles for a number of values, as `normal_quantiles` does.
    """
    columns, weights = sort_with_weights(block, weight)
    n = block.shape[1]
    if weights is not None:
        positions, totals = np.zeros((2, *block.shape)), np.zeros((len(block), 2))
        weigh_columns(columns, weights, new_frequency_work(n), positions, totals)
        return columns, positions, totals
    totals = np.empty((0, 2))
    if not np.isnan(columns[:, -1]).any():
        return columns, quantiles(n)[np.newaxis, np.newaxis], totals
    positions = np.zeros((1, *block.shape))
    for j, count in enumerate(np.count_nonzero(~np.isnan(columns), axis=1)):
        positions[0, j, :count] = quantiles(count)
    return columns, positions, totals


def cached_quantiles(n: int) -> Quantiles:
    """Return `normal_quantiles` with a cache of recent results: up to 8 MB, but at least one result for `n` values."""
    return functools.lru_cache(maxsize=1 + _KEPT // max(n, 1))(normal_quantiles)


def normal_quantiles(n: int) -> FloatArray:
    """Return normal quantiles at Filliben's (1975) medians of n uniform order statistics, scaled to mean square 1."""
    if n < 2:
        return np.zeros(n)
    medians = (np.arange(1, (n + 1) // 2 + 1) - 0.3175) / (n + 0.365)
    medians[0] = 1.0 - 0.5 ** (1.0 / n)
    lower = special.ndtri(medians)
    q = np.concatenate([lower, -lower[: n // 2][::-1]])
    return np.asarray(q * np.sqrt(n / (q @ q)))
