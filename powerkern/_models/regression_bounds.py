"""Regressions with bounds on lambda.

The likelihood of a regression may have several maxima. Clipping the unbounded estimate of lambda may therefore miss the
best lambda within the bounds, which is found by a search.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.results import LMBDA, STATUS

#: Number of points of the first grid, number of points of each finer grid about the minimum, number of finer grids.
_POINTS, _FINER_POINTS, _FINER = 65, 17, 9
#: Statuses of responses whose lambda was fitted, so that it may violate the bounds.
_FITTED = (Status.OK, Status.SCANNED, Status.MULTIMODAL, Status.AT_END, Status.NOT_CERTIFIED)


def find_outside(results: FloatArray, bounds: FloatArray, given: FloatArray) -> NDArray[np.intp]:
    """Return the positions of responses whose fitted lambda is outside its bounds.

    Parameters
    ----------
    results : (p, N_RESULTS) ndarray
        Rows of `kernels.results.ColumnFit`.
    bounds : (2, p) ndarray
        Lower and upper bounds.
    given : (p,) ndarray
        Lambdas that the user fixed; NaN where lambda was fitted.
    """
    low, high = bounds
    lmbda = results[:, LMBDA]
    fitted = np.isnan(given) & np.isin(results[:, STATUS], _FITTED)
    return np.flatnonzero(fitted & ((lmbda < low) | (lmbda > high)))


def minimize_within(g: Callable[[FloatArray], FloatArray], bounds: FloatArray, scanned: FloatArray) -> FloatArray:
    """Minimise a function of lambda for each of q responses, within bounds, on a grid and then on finer grids.

    Parameters
    ----------
    g : callable
        Takes lambdas, (q, m), with one row for each response, and returns the values of the functions, (q, m).
    bounds : (2, q) ndarray
        Lower and upper bounds; may be infinite.
    scanned : (q, 2) ndarray
        Ends of the grid where there is no finite bound.

    Returns
    -------
    (q,) ndarray
        The lambdas of the minima, accurate to about 1e-8.
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
    """Set the status of responses refitted at the best lambda within `bounds`, (2, p): AT_BOUND or SCANNED.

    `results`, (p, N_RESULTS), is modified in place.
    """
    low, high = bounds
    held = (results[:, LMBDA] == low) | (results[:, LMBDA] == high)
    fixed = results[:, STATUS] == Status.FIXED
    results[fixed, STATUS] = np.where(held, Status.AT_BOUND, Status.SCANNED)[fixed]
