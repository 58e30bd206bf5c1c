"""Test whether the central part of a column is normal, regardless of its tails.

References
----------
.. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._estimators.ties import sort_with_weights
from powerkern._input import lazy_scipy_special as special
from powerkern._results.central_null import LEVELS, SIZES, TABLE
from powerkern._results.column_table import ColumnTable
from powerkern._results.display import short_repr
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.location.location import proposal2_columns
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED
from powerkern.kernels.transforms.gather import APPLY

#: Central fraction of the distribution that is tested, and the normal quantile at its upper end.
CENTRAL, _QUANTILE = 0.8, 1.2815515655446004


class CentralNormality(NamedTuple):
    """Distance of the central part of transformed columns from a normal distribution, one entry per column.

    Attributes
    ----------
    statistic : ndarray
        Mean distance of the central 80 % of the standardised values from normal scores.
    pvalue : ndarray
        Probability that a normal sample of the same size has at least this statistic; never reported below 0.001. NaN
        for fewer than 6 values.
    """

    statistic: FloatArray
    pvalue: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


def measure_central_normality(
    table: ColumnTable, values: NDArray[Any], weight: Weights, n_threads: int
) -> CentralNormality:
    """Test whether the central part of each column is normal once it is transformed.

    Parameters
    ----------
    table, values, weight, n_threads
        As in `measure_normality`.
    """
    rows = table.kernel_rows
    figures = table.compute_by_family(
        lambda code, at: np.column_stack(central_matrix(values[:, at], code, rows[at], weight, n_threads))
    )
    return CentralNormality(figures[:, 0], figures[:, 1])


def central_matrix(
    values: NDArray[Any], family: int | None, results: FloatArray, weight: Weights, n_threads: int
) -> CentralNormality:
    """Test whether the central part of each column is normal after its transform.

    Parameters
    ----------
    values, results, weight, n_threads
        As in `moments_matrix`.
    family : int or None
        A code of `kernels.transforms.family`; None tests the untransformed values.
    """

    def measure(block: FloatArray, group: slice) -> FloatArray:
        columns, weights = sort_with_weights(block, weight)
        if family is not None:
            APPLY[family, FORWARD_STANDARDIZED](columns, results[group], np.zeros(len(columns), dtype=np.int64))
        return np.column_stack(central_distances(columns, weights))

    distance, n = measure_columns(measure, values, 2, n_threads).T.copy()
    return CentralNormality(distance, central_pvalue(distance, n))


def central_distances(columns: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the test statistic and the number of values of each column.

    `columns` holds one column per row, sorted with NaN last. `weights` has the same shape; None: all one.
    """
    fits = np.empty((len(columns), 4))
    each = np.empty((len(columns), 0)) if weights is None else np.where(np.isnan(columns), 0.0, weights)
    proposal2_columns(columns.copy(), each.copy(), np.array([_QUANTILE, _QUANTILE]), fits)
    w = np.where(np.isnan(columns), 0.0, 1.0) if weights is None else each
    p, total = _plotting_positions(columns, w)
    with np.errstate(all="ignore"):
        inside = (np.abs(p - 0.5) <= 0.5 * CENTRAL) & (w > 0.0)
        away = np.abs((columns - fits[:, :1]) / fits[:, 1:2] - special.ndtri(p))
        distance = np.sum(np.where(inside, w * away, 0.0), axis=1) / np.sum(np.where(inside, w, 0.0), axis=1)
    distance[~(fits[:, 1] > 0.0)] = np.nan
    return distance, total


def _plotting_positions(columns: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return plotting positions (i - 1/3)/(n + 1/3), averaged over ties, and the total weight n of each row.

    `columns`, (p, n), are sorted along the rows, and `w`, (p, n), are the weights of the values.
    """
    upper = np.cumsum(w, axis=1)
    total = upper[:, -1]
    new = np.ones(columns.shape, dtype=np.bool_)
    new[:, 1:] = columns[:, 1:] != columns[:, :-1]
    last = np.ones(columns.shape, dtype=np.bool_)
    last[:, :-1] = new[:, 1:]
    first = np.maximum.accumulate(np.where(new, upper - w, -np.inf), axis=1)
    end = np.minimum.accumulate(np.where(last, upper, np.inf)[:, ::-1], axis=1)[:, ::-1]
    middle = 0.5 * (first + end) + 1.0 / 6.0
    return middle / (total[:, np.newaxis] + 1.0 / 3.0), total


def central_pvalue(statistic: FloatArray, n: FloatArray) -> FloatArray:
    """Return p-values, interpolated in ln n and ln p between simulated quantiles of ``statistic * sqrt(n)``."""
    scaled, size = statistic * np.sqrt(n), np.log(np.clip(n, SIZES[0], SIZES[-1]))
    at = np.interp(size, np.log(SIZES), np.arange(len(SIZES), dtype=np.float64))
    low = np.minimum(at.astype(np.intp), len(SIZES) - 2)
    quantiles = TABLE[low] + (at - low)[:, np.newaxis] * (TABLE[low + 1] - TABLE[low])
    log_p = np.log(LEVELS)
    p = np.array([np.exp(np.interp(x, [0.0, *row], [0.0, *log_p])) for x, row in zip(scaled, quantiles, strict=True)])
    return np.where((n >= SIZES[0]) & ~np.isnan(statistic), p, np.nan)
