"""Regressions with bounds on lambda: the likelihood may have several minima, so lambda is not simply clipped."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import LMBDA, STATUS

#: Number of points of the grid within bounds; number of points of each finer grid about the minimum; number of finer
#: grids.
_POINTS, _FINER_POINTS, _FINER = 65, 17, 9
#: Statuses of responses whose lambda was fitted and may have to be moved.
_FITTED = (Status.OK, Status.SCANNED, Status.MULTIMODAL, Status.AT_END, Status.NOT_CERTIFIED)


def find_outside(results: FloatArray, bounds: FloatArray, given: FloatArray) -> NDArray[np.intp]:
    """Return the positions of responses whose fitted lambda is outside `bounds`, (2, p)."""
    low, high = bounds
    lmbda = results[:, LMBDA]
    fitted = np.isnan(given) & np.isin(results[:, STATUS], _FITTED)
    return np.flatnonzero(fitted & ((lmbda < low) | (lmbda > high)))


def minimize_within(g: Callable[[FloatArray], FloatArray], bounds: FloatArray, scanned: FloatArray) -> FloatArray:
    """Minimise `g` within bounds to about 1e-8, on a grid and then on finer grids about its minimum.

    `g` takes lambdas, (q, m), a row for each response. Without a bound, the grid ends at `scanned`, (q, 2).
    """
    low = np.minimum(bounds[1], np.maximum(bounds[0], scanned[:, 0]))
    high = np.maximum(bounds[0], np.minimum(bounds[1], scanned[:, 1]))
    rows = np.arange(low.size)
    for n_points in (_POINTS, *[_FINER_POINTS] * _FINER):
        grid = np.linspace(low, high, n_points, axis=1)
        values = g(grid)
        best = np.argmin(np.where(np.isnan(values), np.inf, values), axis=1)
        low, high = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, n_points - 1)]
    return np.asarray(grid[rows, best])


def mark_bounded(results: FloatArray, bounds: FloatArray) -> None:
    """Set the status of responses that were fitted at the best lambda within bounds."""
    low, high = bounds
    held = (results[:, LMBDA] == low) | (results[:, LMBDA] == high)
    fixed = results[:, STATUS] == Status.FIXED
    results[fixed, STATUS] = np.where(held, Status.AT_BOUND, Status.SCANNED)[fixed]
