"""Location and scale of columns, for transforms that do not depend on the unit: medians, quartiles, spreads.

Weights are treated as repetition counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns
from powerkern._estimators.ties import sort_with_weights
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.location.loc_scale import MAD_FACTOR

#: Ways to standardise columns before they are transformed.
STANDARDIZED = ("none", "mad", "std")


def row_quantiles(columns: FloatArray, weights: FloatArray | None, at: tuple[float, ...]) -> FloatArray:
    """Return linearly interpolated quantiles of sorted columns, as `numpy.quantile` does: (len(at), p).

    Parameters
    ----------
    columns : (p, n) ndarray
        Sorted columns as rows, NaN last.
    weights : (p, n) ndarray or None
        Weights of the values; None: all 1.
    at : tuple of float
        Probabilities between 0 and 1.
    """
    counts = np.count_nonzero(~np.isnan(columns), axis=1)
    found = np.full((len(at), len(columns)), np.nan)
    if weights is None:
        some = np.flatnonzero(counts)
        for k, p in enumerate(at):
            place = p * (counts[some] - 1)
            low = place.astype(np.intp)
            x, y = columns[some, low], columns[some, np.minimum(low + 1, counts[some] - 1)]
            found[k, some] = x + (place - low) * (y - x)
        return found
    for j in np.flatnonzero(counts):
        x, below = columns[j, : counts[j]], np.cumsum(weights[j, : counts[j]])
        for k, p in enumerate(at):
            place = p * max(below[-1] - 1.0, 0.0)
            first, second = np.searchsorted(below, [np.floor(place), np.floor(place) + 1.0], side="right")
            low, high = x[min(first, x.size - 1)], x[min(second, x.size - 1)]
            found[k, j] = low + (place - np.floor(place)) * (high - low)
    return found


def row_moments(columns: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation (1/n) of each row.

    They are computed from differences to the first value, in units of the range, so that sums cannot overflow.

    Parameters
    ----------
    columns : (p, n) ndarray
        Columns as rows; NaN is missing.
    weights : (p, n) ndarray or None
        Weights of the values; None: all 1.
    """
    with np.errstate(all="ignore"):
        first, unit = columns[:, :1], np.nanmax(np.abs(columns - columns[:, :1]), axis=1, initial=0.0, keepdims=True)
        u = (columns - first) / np.where(unit > 0.0, unit, 1.0)
        w = np.where(np.isnan(u), 0.0, 1.0 if weights is None else weights)
        w /= np.maximum(w.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        u = np.where(np.isnan(u), 0.0, u)
        mean = (w * u).sum(axis=1, keepdims=True)
        sd = np.sqrt((w * (u - mean) ** 2).sum(axis=1))
    return (first + unit * mean)[:, 0], unit[:, 0] * sd


def center_and_scale(
    prestandardize: str, values: Columns, weight: Weights, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Return the center and the divisor of each column: median and MAD, or mean and standard deviation.

    If the MAD is 0, the standard deviation replaces it. A column without spread, or whose spread underflows to 0, gets
    the center 0 and the divisor 1.

    Parameters
    ----------
    prestandardize : {"mad", "std"}
        Median and MAD, or mean and standard deviation.
    values : (n, p) ndarray or AffineView
        The matrix.
    weight : (n,) ndarray
        Weight of each row, as a number of repetitions; None: all 1.
    n_threads : int
        Maximum number of threads.
    """

    @np.errstate(all="ignore")  # infinite values, which the fit refuses
    def measure(block: FloatArray, group: slice) -> FloatArray:
        columns, weights = sort_with_weights(block, weight)
        center, spread = row_moments(columns, weights)
        if prestandardize == "mad":
            median = row_quantiles(columns, weights, (0.5,))[0]
            away = np.abs(columns - median[:, np.newaxis])
            order = np.argsort(away, axis=1)
            ranked = None if weights is None else np.take_along_axis(weights, order, axis=1)
            mad = MAD_FACTOR * row_quantiles(np.take_along_axis(away, order, axis=1), ranked, (0.5,))[0]
            center, spread = median, np.where(mad > 0.0, mad, spread)
        return np.column_stack([center, spread])

    center, divisor = measure_columns(measure, values, 2, n_threads).T.copy()
    return replace_unusable_scales(center, divisor)


def replace_unusable_scales(
    center: FloatArray, divisor: FloatArray, others: tuple[float | FloatArray, float | FloatArray] = (0.0, 1.0)
) -> tuple[FloatArray, FloatArray]:
    """Replace centers and divisors by `others` where either is not finite or the divisor is 0; return the results."""
    fine: NDArray[np.bool_] = np.isfinite(center) & np.isfinite(divisor) & (divisor > 0.0)
    return np.where(fine, center, others[0]), np.where(fine, divisor, others[1])
