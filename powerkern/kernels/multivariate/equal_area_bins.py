"""Equal-area bins over [0, 1] for probabilities ([1]_): narrow where values are dense, and wide elsewhere.

References
----------
.. [1] P. Röchner, H. O. Marques, R. J. G. B. Campello, A. Zimek and F. Rothlauf, "Robust statistical scaling of outlier
   scores: improving the quality of outlier probabilities for outliers", SISAP 2024.
"""

from __future__ import annotations

from powerkern._jit import COLUMN, COUNTS, INTEGER, bits_of, entry, float_of, kernel
from powerkern._typing import FloatArray, IntArray


@kernel
def _bins_of_area(
    values: FloatArray, cumulative_counts: IntArray, area: float, n_bins: int, first: IntArray, edges: FloatArray
) -> int:
    """Divide [0, 1] into the widest bins whose area, count times width, is at most `area`; return their number.

    The result is n_bins + 1 if more than `n_bins` bins are needed.

    A value on an edge belongs to the bin to the right of the edge. The value 1 belongs to the last bin, unless the area
    of that bin would then exceed `area`. If rounding would put an edge on the last value of its bin, the edge moves up
    by one float64.

    Parameters
    ----------
    values : (m,)
        Distinct values in ascending order.
    cumulative_counts : (m,) int
        The number of data values less than or equal to each distinct value.
    area : float
        Largest count times width of a bin.
    n_bins : int
        Number of bins allowed.
    first : (n_bins + 1,) int
        Receives the index of the first distinct value of each bin, then m.
    edges : (n_bins + 1,)
        Receives the edges of the bins.
    """
    n = values.size
    left, start, k = 0.0, 0, 0
    while k < n_bins:
        edges[k], first[k] = left, start
        k += 1
        before = cumulative_counts[start - 1] if start > 0 else 0
        low, stop = start, n  # bisect for the first value that does not fit into the bin
        while low < stop:
            mid = (low + stop) // 2
            grown = (cumulative_counts[mid] - before) * (values[mid] - left)
            if grown < area or (values[mid] == 1.0 and grown == area):
                low = mid + 1
            else:
                stop = mid
        inside = cumulative_counts[stop - 1] - before if stop > start else 0
        end = values[stop] if stop < n else 1.0
        if inside * (end - left) <= area:
            if stop == n:
                edges[k], first[k] = 1.0, n
                return k
            left = end
        else:
            left = min(end, max(left + area / inside, float_of(bits_of(abs(values[stop - 1])) + 1)))
        start = stop
    return n_bins + 1


@entry((COLUMN, COUNTS, INTEGER, COUNTS, COLUMN))
def equal_area_bins(
    values: FloatArray, cumulative_counts: IntArray, n_bins: int, first: IntArray, edges: FloatArray
) -> int:
    """Write at most `n_bins` bins over [0, 1] that minimise the largest count times width; return their number.

    Parameters
    ----------
    values : (m,)
        Distinct values in ascending order.
    cumulative_counts : (m,) int
        The number of data values less than or equal to each distinct value.
    n_bins : int
        Number of bins allowed, at least 1.
    first : (n_bins + 1,) int
        Receives the index of the first distinct value of each bin, then m.
    edges : (n_bins + 1,)
        Receives the edges of the bins.

    Notes
    -----
    The number of bins decreases as the area grows, so bisection over the float64 numbers finds the smallest area
    exactly. If there are enough bins for every distinct value and every gap, that area is the smallest positive
    float64, and each value has a bin with the width of one float64 spacing.
    """
    too_small, enough = 0, bits_of(1.0 * cumulative_counts[cumulative_counts.size - 1])
    while enough - too_small > 1:
        mid = too_small + (enough - too_small) // 2
        if _bins_of_area(values, cumulative_counts, float_of(mid), n_bins, first, edges) > n_bins:
            too_small = mid
        else:
            enough = mid
    return _bins_of_area(values, cumulative_counts, float_of(enough), n_bins, first, edges)
