"""The better of the two families, column by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import fit_matrix
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.results import CENTER, DIVISOR, KEPT_HIGH, KEPT_LOW, LMBDA, NLL, STATUS

#: Columns compared at a time when both families are fitted robustly.
_COMPARED = 64


def best_family(
    fitted_as: Callable[[int], FloatArray], values: NDArray[Any], weight: FloatArray, robust: bool, n_threads: int
) -> tuple[FloatArray, IntArray]:
    """Results of the family with the larger likelihood, and which one that is, for every column."""
    results, other = fitted_as(YEO_JOHNSON), fitted_as(BOX_COX)
    at = np.flatnonzero((other[:, STATUS] >= 0) & ~is_failed(other[:, STATUS]))
    if not robust:
        better = other[at, NLL] < results[at, NLL]
    else:
        better = _likelier(values, weight, at, other[at], results[at], n_threads)
    better |= is_failed(results[at, STATUS])
    families = np.full(len(results), YEO_JOHNSON)
    families[at[better]] = BOX_COX
    results[at[better]] = other[at[better]]
    return results, families


def _likelier(
    values: NDArray[Any],
    weight: FloatArray,
    at: NDArray[np.intp],
    box_cox: FloatArray,
    yeo_johnson: FloatArray,
    n_threads: int,
) -> BoolArray:
    """Whether Box-Cox gives the values that both fits keep a larger likelihood, each with its lambda."""
    low = np.maximum(box_cox[:, KEPT_LOW], yeo_johnson[:, KEPT_LOW])
    high = np.minimum(box_cox[:, KEPT_HIGH], yeo_johnson[:, KEPT_HIGH])
    better = np.zeros(at.size, dtype=np.bool_)
    for start in range(0, at.size, _COMPARED):
        part = slice(start, start + _COMPARED)
        x = values[:, at[part]].astype(np.float64)
        x[~((x >= low[part]) & (x <= high[part]))] = np.nan
        nll = []
        for code, fit in ((BOX_COX, box_cox[part]), (YEO_JOHNSON, yeo_johnson[part])):
            scaled = (x - fit[:, CENTER]) / fit[:, DIVISOR]
            lmbda = np.ascontiguousarray(fit[:, LMBDA])
            refit = fit_matrix(scaled, code, lmbda, weight, n_threads)
            nll.append(refit[:, NLL] + np.log(fit[:, DIVISOR]))
        better[part] = nll[0] < nll[1]
    return better
