"""Means over the nearest rows that have a value, for each value that a row lacks.

The squared distance of row x to a complete row f is the sum of (x_j - f_j)^2 over all j seen in x. A row at squared
distance d counts with weight (h/(d + h/100))^2, where h is that of the farthest row that counts.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import INTEGER, ROWS, entry, kernel, widest_vectors
from powerkern._typing import FloatArray, IntArray

#: Nearest rows among which those that have a value are looked for.
REACH = 64
#: Added to squared distances, as a fraction of the largest: a twin does not outweigh all others.
_SOFTENING = 0.01


@entry((ROWS, ROWS, ROWS, ROWS, INTEGER, ROWS, ROWS))
def neighbor_means(
    values: FloatArray,
    completed: FloatArray,
    donors: FloatArray,
    residuals: FloatArray,
    n_neighbors: int,
    means: FloatArray,
    corrections: FloatArray,
) -> None:
    """Write means over the nearest donors where `values` is missing.

    Parameters
    ----------
    values : (n, p) ndarray
        NaN where missing.
    completed : (p, m) ndarray
        The columns of the donors without gaps, for distances.
    donors, residuals : (m, p) ndarray
        Values of the donors, and what a model is off for each of them; NaN where they are missing.
    n_neighbors : int
        How many donors count: the nearest that have the value, among the `REACH` nearest.
    means, corrections : (n, p) ndarray
        Receive the weighted means of values and of residuals. Where no donor has a value they stay as they are.
    """
    n, p = values.shape
    squares = np.empty(donors.shape[0])
    near, place = np.empty(min(REACH, squares.size)), np.empty(min(REACH, squares.size), dtype=np.int64)
    for i in range(n):
        if _squared_distances(values[i], completed, squares) in (0, p):
            continue  # there is nothing to measure by, or nothing to fill in
        _nearest(squares, near, place)
        for j in range(p):
            if math.isnan(values[i, j]):
                last = _farthest(donors, j, place, n_neighbors)
                if last >= 0:
                    means[i, j] = _weighted_mean(donors, j, near, place, last)
                    corrections[i, j] = _weighted_mean(residuals, j, near, place, last)


@kernel
def _squared_distances(values: FloatArray, completed: FloatArray, squares: FloatArray) -> int:
    """Squared distances to all donors; returns how many values they are over."""
    squares[:] = 0.0
    seen = 0
    for j in range(values.size):
        if not math.isnan(values[j]):
            _add_squares(values[j], completed[j], squares)
            seen += 1
    return seen


@kernel
def _add_squares(value: float, column: FloatArray, squares: FloatArray) -> None:
    widest_vectors()
    for k in range(squares.size):
        difference = column[k] - value
        squares[k] += difference * difference


@kernel
def _nearest(squares: FloatArray, near: FloatArray, place: IntArray) -> None:
    """The smallest distances in order, and whose they are; of equal ones those that come first."""
    near[:] = math.inf
    last = near.size - 1
    for k in range(squares.size):
        square = squares[k]
        if square < near[last]:
            at = last
            while at > 0 and near[at - 1] > square:
                near[at], place[at] = near[at - 1], place[at - 1]
                at -= 1
            near[at], place[at] = square, k


@kernel
def _farthest(donors: FloatArray, j: int, place: IntArray, n_neighbors: int) -> int:
    """Which of the nearest rows is the last of the `n_neighbors` that have a value in column j; -1: none has."""
    found, last = 0, -1
    for t in range(place.size):
        if found < n_neighbors and not math.isnan(donors[place[t], j]):
            found, last = found + 1, t
    return last


@kernel
def _weighted_mean(figures: FloatArray, j: int, near: FloatArray, place: IntArray, last: int) -> float:
    scale = near[last]
    total = weights = 0.0
    for t in range(last + 1):
        figure = figures[place[t], j]
        if not math.isnan(figure):
            ratio = scale / (near[t] + _SOFTENING * scale) if scale > 0.0 else 1.0
            total += ratio * ratio * figure
            weights += ratio * ratio
    return total / weights
