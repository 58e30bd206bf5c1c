"""Regressions whose lambda is kept within bounds: their likelihood may have several minima, so it is not clipped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import LMBDA, STATUS

#: Points of the grid within bounds, and golden sections about the lowest.
_POINTS, _SECTIONS = 65, 45
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
#: Responses that have a lambda, which may be one to be moved.
_FITTED = (Status.OK, Status.SCANNED, Status.MULTIMODAL, Status.AT_END, Status.NOT_CERTIFIED)


def outside_of(results: FloatArray, bounds: FloatArray, given: FloatArray) -> NDArray[np.intp]:
    """Responses whose lambda was looked for and is outside `bounds`, (2, p)."""
    low, high = bounds
    lmbda = results[:, LMBDA]
    fitted = np.isnan(given) & np.isin(results[:, STATUS], _FITTED)
    return np.flatnonzero(fitted & ((lmbda < low) | (lmbda > high)))


def best_within(g: Callable[[FloatArray], FloatArray], bounds: FloatArray, scanned: FloatArray) -> FloatArray:
    """The lambdas within bounds at which `g` is lowest, to about 1e-8: on a grid, then by golden sections about that.

    `g` takes lambdas (q, m), a row for each response. Where there is no bound, `scanned` (q, 2) ends the grid.
    """
    low = np.minimum(bounds[1], np.maximum(bounds[0], scanned[:, 0]))
    high = np.maximum(bounds[0], np.minimum(bounds[1], scanned[:, 1]))
    grid, rows = np.linspace(low, high, _POINTS, axis=1), np.arange(low.size)
    best = np.argmin(_finite(g(grid)), axis=1)
    left, right = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, _POINTS - 1)]
    for _ in range(_SECTIONS):
        inner = np.column_stack([right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)])
        values = _finite(g(inner))
        lower = values[:, 0] < values[:, 1]
        left, right = np.where(lower, left, inner[:, 0]), np.where(lower, inner[:, 1], right)
    ends = np.column_stack([low, high, 0.5 * (left + right)])
    return np.asarray(ends[rows, np.argmin(_finite(g(ends)), axis=1)])


def mark_bounded(results: FloatArray, bounds: FloatArray) -> None:
    """Give rows of responses that were fitted at given lambdas, the best within bounds, their status."""
    low, high = bounds
    held = (results[:, LMBDA] == low) | (results[:, LMBDA] == high)
    fixed = results[:, STATUS] == Status.FIXED
    results[fixed, STATUS] = np.where(held, Status.AT_BOUND, Status.SCANNED)[fixed]


def _finite(values: FloatArray) -> FloatArray:
    """Values that are not defined are no minima."""
    return np.where(np.isnan(values), np.inf, values)
