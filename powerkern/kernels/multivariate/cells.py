"""Predict each cell from the other cells of its row, by the steps of the DDC algorithm [1]_.

Columns stay in the order of the rows, with NaN for missing values, so medians are computed by selection rather than
sorting.

References
----------
.. [1] P. J. Rousseeuw and W. Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018, 135-145.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, COUNTS, INTEGER, REAL, ROWS, entry, kernel, reduction
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.elementary.constants import insert

#: Selection of a median: up to _FEW values are sorted. Of more values, only those between two order statistics of a
#: sample of size _SAMPLE are kept, from _BELOW ranks below the expected rank to _ABOVE ranks above it. These constants
#: affect only the time. Medians of 100, 1,000 and 10,000 values take 14, 5.9 and 4.3 operations per value. Samples of
#: 12 take 15, 7.5 and 6.6, samples of 48 take 25, 7.9 and 4.7; twice _BELOW or twice _ABOVE take at least 18, 7.1 and
#: 5.1 (report_constants median).
_FEW, _SAMPLE, _BELOW, _ABOVE = 48, 24, 3, 4
#: Distances, in units of the raw MAD, at which the weights of the location vanish and the squares in the scale are
#: clipped ([1]_).
LOCATION_REACH, SCALE_REACH = 3.0, 2.5
#: E min(Z**2, k**2) of a standard normal Z for k = 2.5 Phi^-1(3/4), which makes the scale consistent.
SCALE_FACTOR = 0.8444720379134234
#: Largest |correlation| of a tolerance ellipse, so that it does not degenerate to a line.
_NARROWEST = 0.99
#: Smallest scale of residuals, in units of the column's scale; smaller residuals are rounding errors.
_EXACT = 1e-12
#: Largest ratio of two values; its products with values below 1e8 do not overflow.
_HUGE = 1e300


# --- medians --------------------------------------------------------------------------------------------


@kernel
def median_of_values(a: FloatArray, n: int) -> float:
    """Return the median of ``a[:n]`` by selection, which overwrites `a`; NaN if n is 0."""
    if n == 0:
        return math.nan
    low, high = _neighbors(a, n, (n - 1) // 2)
    return low if n % 2 else low + 0.5 * (high - low)


@kernel
def _neighbors(a: FloatArray, n: int, k: int) -> tuple[float, float]:
    """Return the order statistics k and k + 1 (counted from 0) of ``a[:n]``, which is overwritten."""
    above = math.inf
    while n > _FEW:
        lo, hi = _bracket(a, n, k)
        below_lo, up_to_lo = _counts(a[:n], lo)
        below_hi, up_to_hi = _counts(a[:n], hi)
        if below_lo <= k < up_to_lo:
            return lo, lo if k + 1 < up_to_lo else min(above, _least_above(a[:n], lo))
        if below_hi <= k < up_to_hi:
            return hi, hi if k + 1 < up_to_hi else min(above, _least_above(a[:n], hi))
        if k < below_lo:
            n, above = _keep_between(a, n, -math.inf, lo), lo
        elif k < below_hi:
            n, above, k = _keep_between(a, n, lo, hi), hi, k - up_to_lo
        else:
            n, k = _keep_between(a, n, hi, math.inf), k - up_to_hi
    _insertion_sort(a, n)
    return a[k], a[k + 1] if k + 1 < n else above


@kernel
def _bracket(a: FloatArray, n: int, k: int) -> tuple[float, float]:
    """Return two values, from a sorted sample of ``a[:n]``, that probably enclose the order statistic k."""
    stride = n // _SAMPLE
    for i in range(_SAMPLE):
        a[i], a[i * stride] = a[i * stride], a[i]
    _insertion_sort(a, _SAMPLE)
    rank = k * _SAMPLE // n
    return a[max(rank - _BELOW, 0)], a[min(rank + _ABOVE, _SAMPLE - 1)]


@kernel
def _counts(a: FloatArray, t: float) -> tuple[int, int]:
    """Return the number of values less than t, and the number of values at most t."""
    below = up_to = 0
    for i in range(a.size):
        below += 1 if a[i] < t else 0
        up_to += 1 if a[i] <= t else 0
    return below, up_to


@kernel
def _least_above(a: FloatArray, t: float) -> float:
    least = math.inf
    for i in range(a.size):
        if t < a[i] < least:
            least = a[i]
    return least


@kernel
def _keep_between(a: FloatArray, n: int, lo: float, hi: float) -> int:
    """Move the values strictly between lo and hi to the front of `a`; return their number."""
    kept = 0
    for i in range(n):
        value = a[i]
        a[kept] = value
        kept += 1 if lo < value < hi else 0
    return kept


@kernel
def _insertion_sort(a: FloatArray, n: int) -> None:
    for i in range(1, n):
        insert(a[i], i, a)


@kernel
def _median_of_distances(x: FloatArray, center: float, work: FloatArray) -> float:
    """Return the median of ``|x - center|`` over the values that are not NaN; `work` is scratch."""
    n = 0
    for i in range(x.size):
        work[n] = abs(x[i] - center)
        n += 0 if math.isnan(x[i]) else 1
    return median_of_values(work, n)


# --- location and scale in one step ---------------------------------------------------------------------


@entry((ROWS, COLUMN, ROWS))
def one_step_columns(columns: FloatArray, work: FloatArray, out: FloatArray) -> None:
    """Write `one_step_location` of each row, and `one_step_scale` of its residuals.

    The rows are replaced by their residuals. `work`, (n,), is scratch, and `out`, (k, 2), receives the results.
    """
    for j in range(columns.shape[0]):
        x = columns[j]
        loc = one_step_location(x, work)
        for i in range(x.size):
            x[i] -= loc
        out[j, 0], out[j, 1] = loc, one_step_scale(x, work)


@kernel
def one_step_location(x: FloatArray, work: FloatArray) -> float:
    """Return the mean of x with weights ``(1 - (t/3)**2)**2`` for ``|t| <= 3`` and 0 beyond, t = (x - median)/MAD.

    `work`, (n,), is scratch.
    """
    n = 0
    for i in range(x.size):
        work[n] = x[i]
        n += 0 if math.isnan(x[i]) else 1
    median = median_of_values(work, n)
    mad = _median_of_distances(x, median, work)
    if not mad > 0.0:
        return median
    return median + _weighted_mean(x, median, LOCATION_REACH * mad)


@reduction
def _weighted_mean(x: FloatArray, center: float, cutoff: float) -> float:
    """Return the mean of x - center with bisquare weights, which are 0 beyond a distance of `cutoff`."""
    total = weight = 0.0
    for i in range(x.size):
        d = (x[i] - center) / cutoff
        v = 1.0 - d * d if abs(d) <= 1.0 else 0.0
        total += v * v * (d if abs(d) <= 1.0 else 0.0)
        weight += v * v
    return cutoff * total / weight


@kernel
def one_step_scale(x: FloatArray, work: FloatArray) -> float:
    """Return the scale about 0, ``s sqrt(mean(min((x/s)**2, 2.5**2))/delta)``, where s is the median of ``|x|``.

    delta is `SCALE_FACTOR`, and `work`, (n,), is scratch.
    """
    s = _median_of_distances(x, 0.0, work)
    if not 0.0 < s < math.inf:
        return s
    total, n = _clipped_squares(x, s)
    return s * math.sqrt(total / (n * SCALE_FACTOR))


@reduction
def _clipped_squares(x: FloatArray, s: float) -> tuple[float, float]:
    """Return the sum of ``min((x/s)**2, 2.5**2)``, and the number of values that are not NaN."""
    total = n = 0.0
    for i in range(x.size):
        d = min(abs(x[i]) / s, SCALE_REACH)
        present = x[i] == x[i]
        total += d * d if present else 0.0
        n += 1.0 if present else 0.0
    return total, n


# --- pairs of columns -----------------------------------------------------------------------------------


@entry((ROWS, INTEGER, INTEGER, REAL, ROWS, ROWS))
def pair_correlations(u: FloatArray, start: int, stop: int, limit: float, work: FloatArray, out: FloatArray) -> None:
    """Write the correlation of each of the columns start, ..., stop - 1 with every column before it.

    Parameters
    ----------
    u : (p, n)
        Standardised columns as rows; NaN if missing.
    start : int
        Index of the first column.
    stop : int
        Index after the last column.
    limit : float
        Squared radius of the tolerance ellipse, see `pair_correlation`.
    work : (3, n)
        Scratch.
    out : (stop - start, p)
        Receives, for each column, the correlations with all columns before it.
    """
    for j in range(start, stop):
        for h in range(j):
            out[j - start, h] = pair_correlation(u[j], u[h], limit, work)


@kernel
def pair_correlation(y: FloatArray, z: FloatArray, limit: float, work: FloatArray) -> float:
    """Return the correlation of the points inside a robust tolerance ellipse; 0 if these points have no spread.

    The ellipse has unit variances and the correlation ``(scale(y + z)**2 - scale(y - z)**2)/4`` (`one_step_scale`).

    Parameters
    ----------
    y, z : (n,)
        Two standardised columns; NaN if missing.
    limit : float
        Squared radius of the tolerance ellipse.
    work : (3, n)
        Scratch.
    """
    plus, minus = work[0], work[1]
    for i in range(y.size):
        plus[i], minus[i] = y[i] + z[i], y[i] - z[i]
    wide, narrow = one_step_scale(plus, work[2]), one_step_scale(minus, work[2])
    rho = 0.25 * (wide * wide - narrow * narrow)
    if math.isnan(rho):
        return 0.0
    rho = min(max(rho, -_NARROWEST), _NARROWEST)
    return _correlation_inside(y, z, plus, minus, 0.5 / (1.0 + rho), 0.5 / (1.0 - rho), limit)


@reduction
def _correlation_inside(
    y: FloatArray, z: FloatArray, plus: FloatArray, minus: FloatArray, a: float, b: float, limit: float
) -> float:
    """Return the correlation of the points (y, z) inside an ellipse; 0 if it is undefined.

    The result is exactly symmetric in y and z.

    Parameters
    ----------
    y : (n,)
        First coordinates.
    z : (n,)
        Second coordinates.
    plus : (n,)
        y + z.
    minus : (n,)
        y - z.
    a : float
        Factor of (y + z)**2 in the quadratic form of the ellipse.
    b : float
        Factor of (y - z)**2.
    limit : float
        Largest value of the quadratic form inside the ellipse.
    """
    n = sy = sz = syy = szz = syz = 0.0
    for i in range(y.size):
        inside = a * (plus[i] * plus[i]) + b * (minus[i] * minus[i]) <= limit
        v, w = (y[i] if inside else 0.0), (z[i] if inside else 0.0)
        n += 1.0 if inside else 0.0
        sy += v
        sz += w
        syy += v * v
        szz += w * w
        syz += v * w
    if n < 3.0:
        return 0.0
    vy, vz = syy - sy * sy / n, szz - sz * sz / n
    if not (vy > 0.0 and vz > 0.0):
        return 0.0
    return min(max((syz - sy * sz / n) / math.sqrt(vy * vz), -1.0), 1.0)


@entry((ROWS, INTEGER, INTEGER, COUNTS, COUNTS, REAL, ROWS, COLUMN))
def neighbor_slopes(
    u: FloatArray,
    start: int,
    stop: int,
    first: IntArray,
    neighbors: IntArray,
    cutoff: float,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """Write the slope of each of the columns start, ..., stop - 1 on each of its neighbors.

    Parameters
    ----------
    u : (p, n)
        Standardised columns as rows; NaN if missing.
    start : int
        Index of the first column.
    stop : int
        Index after the last column.
    first : (p + 1,) int
        The neighbors of column j are ``neighbors[first[j]:first[j + 1]]``.
    neighbors : (first[p],) int
        Indices of the neighbors of all columns.
    cutoff : float
        Largest residual of a point that is used, in units of the scale of the residuals.
    work : (2, n)
        Scratch.
    out : (first[p],)
        Receives a slope for each neighbor, see `slope`.
    """
    for j in range(start, stop):
        for t in range(first[j], first[j + 1]):
            out[t] = slope(u[j], u[neighbors[t]], cutoff, work)


@kernel
def slope(y: FloatArray, z: FloatArray, cutoff: float, work: FloatArray) -> float:
    """Return the slope of y on z through the origin, by least squares over the points without a large residual.

    Residuals are measured from the line whose slope is the median of y/z.

    Parameters
    ----------
    y : (n,)
        The response.
    z : (n,)
        The predictor.
    cutoff : float
        Largest residual of a point that is used, in units of the scale of the residuals.
    work : (2, n)
        Scratch.
    """
    ratios, residuals = work[0], work[1]
    n = 0
    for i in range(y.size):
        ratio = y[i] / (z[i] if z[i] != 0.0 else math.nan)
        ratios[n] = min(max(ratio, -_HUGE), _HUGE)
        n += 0 if math.isnan(ratio) else 1
    if n == 0:
        return 0.0
    start = median_of_values(ratios, n)
    for i in range(y.size):
        residuals[i] = y[i] - start * z[i]
    limit = cutoff * one_step_scale(residuals, ratios)
    products, squares = _products_inside(y, z, residuals, limit)
    return products / squares if squares > 0.0 else start


@reduction
def _products_inside(y: FloatArray, z: FloatArray, residuals: FloatArray, limit: float) -> tuple[float, float]:
    products = squares = 0.0
    for i in range(y.size):
        inside = abs(residuals[i]) <= limit
        products += y[i] * z[i] if inside else 0.0
        squares += z[i] * z[i] if inside else 0.0
    return products, squares


# --- predictions ----------------------------------------------------------------------------------------


@entry((ROWS, INTEGER, INTEGER, COUNTS, COUNTS, COLUMN, COLUMN, COLUMN, ROWS))
def predict_columns(
    u: FloatArray,
    start: int,
    stop: int,
    first: IntArray,
    neighbors: IntArray,
    weights: FloatArray,
    slopes: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """Predict each cell of the columns start, ..., stop - 1 from the neighbors of its column.

    If a neighboring column has the value x in the row of the cell, it predicts ``slope x``. The result is the weighted
    mean of the predictions by all neighbors that are observed in this row; 0 if there are none.

    Parameters
    ----------
    u : (p, n)
        Standardised columns as rows; NaN if missing.
    start : int
        Index of the first column.
    stop : int
        Index after the last column.
    first : (p + 1,) int
        The neighbors of column j are ``neighbors[first[j]:first[j + 1]]``.
    neighbors : (first[p],) int
        Indices of the neighbors of all columns.
    weights, slopes : (first[p],)
        The weight of each neighbor, and the slope of the column on it.
    work : (n,)
        Scratch.
    out : (stop - start, n)
        Receives the predictions.
    """
    for j in range(start, stop):
        sums = out[j - start]
        sums[:] = 0.0
        work[:] = 0.0
        for t in range(first[j], first[j + 1]):
            x, weight = u[neighbors[t]], weights[t]
            factor = weight * slopes[t]
            for i in range(x.size):
                present = x[i] == x[i]
                sums[i] += factor * x[i] if present else 0.0
                work[i] += weight if present else 0.0
        for i in range(sums.size):
            sums[i] = sums[i] / work[i] if work[i] > 0.0 else 0.0


@entry((ROWS, ROWS, REAL, ROWS, ROWS))
def deshrink_columns(z: FloatArray, predicted: FloatArray, cutoff: float, work: FloatArray, out: FloatArray) -> None:
    """Write, for each column, the slope of the values on their predictions, and the scale of the residuals.

    Predictions are shrunk towards 0; the slope is the factor that undoes this. It is 1 if all predictions are 0.

    Parameters
    ----------
    z : (p, n)
        Standardised columns as rows.
    predicted : (p, n)
        The predictions of these columns.
    cutoff : float
        Largest residual of a point that is used, in units of the scale of the residuals.
    work : (2, n)
        Scratch.
    out : (p, 2)
        Receives slope and scale.
    """
    for j in range(z.shape[0]):
        shrunken = False
        for i in range(z.shape[1]):
            shrunken |= predicted[j, i] != 0.0
        factor = slope(z[j], predicted[j], cutoff, work) if shrunken else 1.0
        for i in range(z.shape[1]):
            work[0, i] = z[j, i] - factor * predicted[j, i]
        out[j, 0], out[j, 1] = factor, max(one_step_scale(work[0], work[1]), _EXACT)
