"""Estimate each missing value by a mean over the nearest rows in which the column is observed.

The squared distance of row x to a complete row f is the sum of (x_j - f_j)^2 over all j observed in x. A row at squared
distance d has the weight (h/(d + h/100))^2, where h is the squared distance of the farthest row used.
"""

from __future__ import annotations

import math

from powerkern._jit import INTEGER, ROWS, allocated, allocated_integers, entry, kernel, release
from powerkern._typing import FloatArray, IntArray

#: The 1/100 in the definition above. It limits the weight of a row at distance 0 to 101**2 times that of the farthest.
_SOFTENING = 0.01


@entry((ROWS, ROWS, ROWS, ROWS, INTEGER, INTEGER, ROWS, ROWS))
def neighbor_means(
    values: FloatArray,
    completed: FloatArray,
    donors: FloatArray,
    residuals: FloatArray,
    n_neighbors: int,
    n_candidates: int,
    means: FloatArray,
    corrections: FloatArray,
) -> None:
    """Estimate each missing value whose entry in `means` is NaN by a weighted mean over its nearest donor rows.

    Parameters
    ----------
    values : (n, p) ndarray
        The rows; NaN if missing.
    completed : (p, m) ndarray
        Columns of the donor rows with missing values filled in, for distances.
    donors, residuals : (m, p) ndarray
        Values of the donor rows, and residuals of these values from a model; NaN if missing.
    n_neighbors : int
        Number of donors to use for each value: the nearest donors in which the column is observed.
    n_candidates : int
        Number of nearest donors from which the donors to use are chosen.
    means, corrections : (n, p) ndarray
        Receive the weighted means of values and of residuals. Only entries where `means` is NaN are computed. They stay
        unchanged if no donor at a finite distance has a value in the column.
    """
    n, p = values.shape
    squares, observed = allocated((donors.shape[0],)), allocated_integers((p,))
    n_candidates = min(n_candidates, squares.size)
    distances, donor_rows = allocated((n_candidates,)), allocated_integers((n_candidates,))
    for i in range(n):
        n_observed = _squared_distances(values[i], completed, observed, squares)
        if n_observed in (0, p):
            continue  # no column for distances, or no missing value
        _nearest(squares, distances, donor_rows)
        for j in range(p):
            if math.isnan(values[i, j]) and math.isnan(means[i, j]):
                last = _farthest(donors, j, donor_rows, n_neighbors)
                if last >= 0:
                    means[i, j], corrections[i, j] = _weighted_means(donors, residuals, j, distances, donor_rows, last)
    release(squares)
    release(observed)
    release(distances)
    release(donor_rows)


@kernel
def _squared_distances(values: FloatArray, completed: FloatArray, observed: IntArray, squares: FloatArray) -> int:
    """Write the squared distance of a row to each donor, over the observed columns of the row.

    Returns the number of observed columns, whose indices `observed` receives. `completed` holds the columns of the
    donors.
    """
    n_observed = 0
    for j in range(values.size):
        if not math.isnan(values[j]):
            observed[n_observed] = j
            n_observed += 1
    squares[:] = 0.0
    fours = n_observed - n_observed % 4
    for a in range(0, fours, 4):
        i, j, k, m = observed[a], observed[a + 1], observed[a + 2], observed[a + 3]
        columns = completed[i], completed[j], completed[k], completed[m]
        _add_four_squares((values[i], values[j], values[k], values[m]), columns, squares)
    for a in range(fours, n_observed):
        value, column = values[observed[a]], completed[observed[a]]
        for k in range(squares.size):
            squares[k] += (column[k] - value) * (column[k] - value)
    return n_observed


@kernel
def _add_four_squares(
    values: tuple[float, float, float, float],
    columns: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    squares: FloatArray,
) -> None:
    """Add the squared differences of four columns from four values to `squares`.

    Four columns at once save loads and stores of the sums.
    """
    x0, x1, x2, x3 = values
    c0, c1, c2, c3 = columns
    for k in range(squares.size):
        d0, d1, d2, d3 = c0[k] - x0, c1[k] - x1, c2[k] - x2, c3[k] - x3
        squares[k] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)


@kernel
def _nearest(squares: FloatArray, distances: FloatArray, donor_rows: IntArray) -> None:
    """Write the smallest squared distances in ascending order, and the donor rows they belong to.

    Ties keep the earlier row; infinite distances get the row -1.
    """
    distances[:] = math.inf
    donor_rows[:] = -1
    last = distances.size - 1
    for k in range(squares.size):
        square = squares[k]
        if square < distances[last]:
            at = last
            while at > 0 and distances[at - 1] > square:
                distances[at], donor_rows[at] = distances[at - 1], donor_rows[at - 1]
                at -= 1
            distances[at], donor_rows[at] = square, k


@kernel
def _farthest(donors: FloatArray, j: int, donor_rows: IntArray, n_neighbors: int) -> int:
    """Return the position, in `donor_rows`, of the last of the `n_neighbors` nearest donors with a value in column j.

    The result is -1 if no donor has a value.
    """
    n_used, last, t = 0, -1, 0
    while n_used < n_neighbors and t < donor_rows.size and donor_rows[t] >= 0:
        if not math.isnan(donors[donor_rows[t], j]):
            n_used, last = n_used + 1, t
        t += 1
    return last


@kernel
def _weighted_means(
    donors: FloatArray, residuals: FloatArray, j: int, distances: FloatArray, donor_rows: IntArray, last: int
) -> tuple[float, float]:
    """Return weighted means of the values and of the residuals of column j over the nearest donors with a value.

    A donor at squared distance d has the weight (h/(d + h/100))^2, where h is the squared distance of the farthest
    donor.

    Parameters
    ----------
    donors, residuals : (n_donors, p)
        Values and residuals of the donor rows; NaN if missing.
    j : int
        Index of the column.
    distances : (k,)
        Squared distances of the nearest donors, ascending.
    donor_rows : (k,) int
        Row numbers of these donors.
    last : int
        Position of the farthest donor to use.
    """
    scale = distances[last]
    value = residual = weights = 0.0
    for t in range(last + 1):
        donor = donor_rows[t]
        if not math.isnan(donors[donor, j]):
            ratio = scale / (distances[t] + _SOFTENING * scale) if scale > 0.0 else 1.0
            value += ratio * ratio * donors[donor, j]
            residual += ratio * ratio * residuals[donor, j]
            weights += ratio * ratio
    return value / weights, residual / weights
