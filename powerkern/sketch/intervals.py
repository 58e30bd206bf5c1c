"""`CountedIntervals`: the part of a sketch that describes censored cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from powerkern._estimators.censored_sums import IntervalTable
from powerkern._estimators.power_sums import ROOM
from powerkern._input.arguments import column_error
from powerkern._input.arrays import Matrix
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.transforms.family import domain_lower_bound

#: Largest number of distinct intervals of a column. Each takes 24 bytes and adds a term to the likelihood.
MOST_INTERVALS = 4096


@final
class CountedIntervals:
    """The distinct intervals of the censored cells of p columns, with the total weight of the cells in each interval.

    Parameters
    ----------
    starts : (p + 1,) ndarray of int64
        Position of the first interval of each column, followed by the total number k of intervals.
    ends : (k, 2) ndarray
        Lower and upper ends, infinite for open intervals, ascending within each column. They include the shift of the
        column, as the extremes of the grid do.
    counts : (k,) ndarray of int64
        Total weights of the cells in units of ``2**grid.quantum``.
    observed : (2, p) ndarray
        Smallest and largest observed value; inf and -inf without values, NaN if unknown.
    """

    def __init__(self, starts: IntArray, ends: FloatArray, counts: IntArray, observed: FloatArray) -> None:
        self.starts, self.ends, self.counts, self.observed = starts, ends, counts, observed

    @classmethod
    def without_cells(cls, observed: FloatArray) -> CountedIntervals:
        """Return an object for columns without censored cells; `observed` is described in `CountedIntervals`."""
        starts = np.zeros(observed.shape[1] + 1, dtype=np.int64)
        return cls(starts, np.empty((0, 2)), np.empty(0, dtype=np.int64), observed)

    @property
    def totals(self) -> IntArray:
        """Total weight of the censored cells of each column, (p,), in units of ``2**grid.quantum``."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.diff(sums[self.starts])

    def merge(self, other: CountedIntervals, names: Sequence[str] | None) -> CountedIntervals:
        """Return the intervals of the cells of `self` and `other`.

        Raise ValueError if a column has more than `MOST_INTERVALS` distinct intervals; the message takes the name of
        the column from `names`.
        """
        observed = np.stack(
            [np.minimum(self.observed[0], other.observed[0]), np.maximum(self.observed[1], other.observed[1])]
        )
        if not (self.counts.size or other.counts.size):
            return self.without_cells(observed)
        ends = np.concatenate([self.ends, other.ends])
        counts = np.concatenate([self.counts, other.counts])
        column = np.concatenate([self._columns(), other._columns()])
        return _collect(column, ends, counts, observed, names)

    def _columns(self) -> IntArray:
        """Return the position of the column of each interval, (k,)."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def part(self, columns: IntArray) -> CountedIntervals:
        """Return the intervals of the columns at these positions."""
        at = [np.arange(self.starts[j], self.starts[j + 1]) for j in columns]
        starts = np.concatenate([[0], np.cumsum([own.size for own in at])]).astype(np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *at])
        return CountedIntervals(starts, self.ends[rows], self.counts[rows], self.observed[:, columns])

    @classmethod
    def join_columns(cls, parts: Sequence[CountedIntervals]) -> CountedIntervals:
        """Join the intervals of different columns of the same rows."""
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([part.ends for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.observed for part in parts], axis=1),
        )

    def rescale(self, exponents: IntArray) -> CountedIntervals:
        """Return a copy with weights in units that are larger by the factors ``2**exponents``, one for each column."""
        if not self.counts.size or not exponents.any():
            return self
        counts = np.rint(np.ldexp(self.counts.astype(np.float64), -exponents[self._columns()])).astype(np.int64)
        return CountedIntervals(self.starts, self.ends, counts, self.observed)

    def table(self, quantum: IntArray) -> IntervalTable:
        """Return the intervals and their weights as the table that fits read; `quantum` is as in `Grid`."""
        weight = np.ldexp(self.counts.astype(np.float64), quantum[self._columns()])
        return IntervalTable(self.starts, np.column_stack([self.ends, weight]), self.observed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountedIntervals) and all(
            np.array_equal(a, b, equal_nan=a.dtype == np.float64)
            for a, b in zip(self.arrays(), other.arrays(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def arrays(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """Return the arrays of the object, in the order of its parameters."""
        return self.starts, self.ends, self.counts, self.observed

    def are_within(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """Return a mask of the columns whose intervals have all finite ends between `low` and `high`, (p,) each."""
        column = self._columns()
        closed = np.where(np.isinf(self.ends), self.ends[:, ::-1], self.ends)
        outside = ((closed < low[column, None]) | (closed > high[column, None])).any(axis=1)
        within = np.ones(self.starts.size - 1, dtype=bool)
        within[column[outside]] = False
        return within

    def is_sound(self, low: FloatArray, high: FloatArray) -> bool:
        """Return whether the arrays are consistent, and the intervals lie in the range [low, high] of the grid."""
        sizes = np.diff(self.starts)
        if not (self.starts[0] == 0 and self.starts[-1] == self.counts.size and (sizes >= 0).all()):
            return False
        column, (first, last) = self._columns(), self.ends.T
        ordered = np.lexsort((last, first, column))
        return bool(
            (sizes <= MOST_INTERVALS).all()
            and (first < last).all()
            and ((first > -np.inf) | (last < np.inf)).all()
            and self.are_within(low, high).all()
            and (self.counts >= 0).all()
            and (self.totals >= 0).all()
            and (ordered == np.arange(ordered.size)).all()
        )


def standard_ends(matrix: Matrix, family: int, shift: FloatArray) -> Matrix:
    """Add the shift to the cells, and replace interval ends that are not above the domain's lower bound by -inf.

    Parameters
    ----------
    matrix : Matrix
        The cells, with the ends of intervals.
    family : int
        A code of `kernels.transforms.family`.
    shift : (p,) ndarray
        Number to add to each column.

    Returns
    -------
    Matrix
        The cells in float64.
    """
    assert matrix.ends is not None
    values, ends = matrix.values + shift, matrix.ends + shift
    lowest = domain_lower_bound(family)
    low, high = np.minimum(values, ends), np.maximum(values, ends)
    opened = np.isfinite(ends) & (low <= lowest) & (lowest < high)
    if opened.any():
        values[opened], ends[opened] = high[opened], -np.inf
    return matrix._replace(values=values, ends=ends)


def values_of(matrix: Matrix) -> Matrix:
    """Return a matrix with NaN in place of censored cells."""
    assert matrix.ends is not None
    return matrix._replace(values=np.where(np.isnan(matrix.ends), matrix.values, np.nan), ends=None)


def count_intervals(matrix: Matrix, quantum: IntArray) -> CountedIntervals:
    """Count the distinct intervals of the censored cells of each column.

    Parameters
    ----------
    matrix : Matrix
        The cells, in the form that `standard_ends` returns.
    quantum : (p,) ndarray of int
        Exponents of the units of weights, as in `Grid`.

    Raises
    ------
    ValueError
        If a column has too many distinct intervals, or more weight than its grid was made for.
    """
    assert matrix.ends is not None
    values, ends, weight = matrix.values, matrix.ends, matrix.weight
    has_weight = None if weight is None else weight > 0.0
    censored = ~np.isnan(ends) & ~np.isnan(values)
    if has_weight is not None:
        censored &= has_weight[:, None]
    columns, rows, counts = [], [], []
    for j in np.flatnonzero(censored.any(axis=0)):
        at = np.flatnonzero(censored[:, j])
        own, total = _distinct(values[at, j], ends[at, j], None if weight is None else weight[at])
        quanta = np.rint(np.ldexp(total, -int(quantum[j])))
        if not quanta.sum() < 2.0**ROOM:
            reason = (
                "the chunk has more censored cells, or more total weight, than the grid was made for; make the grid "
                "from the merged ranges of all chunks"
            )
            raise column_error(int(j), matrix.names, reason)
        columns.append(np.full(len(own), j))
        rows.append(own)
        counts.append(quanta.astype(np.int64))
    present = np.isnan(ends) if has_weight is None else np.isnan(ends) & has_weight[:, None]
    observed = np.where(present, values, np.nan)
    extremes = np.stack(
        [np.fmin.reduce(observed, axis=0, initial=np.inf), np.fmax.reduce(observed, axis=0, initial=-np.inf)]
    )
    if not columns:
        return CountedIntervals.without_cells(extremes)
    return _collect(np.concatenate(columns), np.concatenate(rows), np.concatenate(counts), extremes, matrix.names)


def end_range(matrix: Matrix) -> FloatArray:
    """Return the smallest and the largest finite entry of ``matrix.ends`` in each column, (2, p).

    One end of the interval of a censored cell is in ``matrix.ends``, and the other end is in ``matrix.values``. The
    result is inf and -inf for a column without finite entries.
    """
    assert matrix.ends is not None
    inner = np.isfinite(matrix.ends)
    if matrix.weight is not None:
        inner &= (matrix.weight > 0.0)[:, None]
    low = np.min(matrix.ends, axis=0, where=inner, initial=np.inf)
    return np.stack([low, np.max(matrix.ends, axis=0, where=inner, initial=-np.inf)])


def _distinct(x: FloatArray, end: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the distinct intervals between `x` and `end`, (k, 2), and the total weight of the cells in each, (k,).

    `x` and `end`, (n,), are the ends of the intervals of n censored cells of a column, in either order.
    """
    if (x == x[0]).all() and (end == end[0]).all():
        total = float(x.size) if weight is None else math.fsum(weight)
        return np.sort([[x[0], end[0]]], axis=1) + 0.0, np.array([total])
    rows = np.column_stack([np.minimum(x, end), np.maximum(x, end)]) + 0.0
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weight, len(distinct)).astype(np.float64)


def _collect(
    column: IntArray, ends: FloatArray, counts: IntArray, observed: FloatArray, names: Sequence[str] | None
) -> CountedIntervals:
    """Sort intervals by column and ends, and add the weights of equal intervals.

    Parameters
    ----------
    column : (k,) ndarray of int
        Position of the column of each interval.
    ends : (k, 2) ndarray
        The intervals.
    counts : (k,) ndarray of int
        The weights of the intervals.
    observed : (2, p) ndarray
        The extremes of the values, as in `CountedIntervals`.
    names : sequence or None
        Names of the columns, for messages.
    """
    order = np.lexsort((ends[:, 1], ends[:, 0], column))
    column, ends, counts = column[order], ends[order], counts[order]
    is_new = _mask_changes(column) | _mask_changes(ends[:, 0]) | _mask_changes(ends[:, 1])
    first = np.flatnonzero(is_new)
    sizes = np.bincount(column[first], minlength=observed.shape[1])
    if (sizes > MOST_INTERVALS).any():
        j = int(np.argmax(sizes > MOST_INTERVALS))
        reason = (
            f"it has more than {MOST_INTERVALS} distinct limits, which a summary of chunks cannot hold; round the "
            "limits, or fit the rows in memory by powerkern.fit"
        )
        raise column_error(j, names, reason)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return CountedIntervals(starts, ends[first], np.add.reduceat(counts, first), observed)


def _mask_changes(entries: IntArray | FloatArray) -> BoolArray:
    """Return a mask of the entries that differ from the previous entry; it is True for the first one."""
    mask = np.ones(entries.size, dtype=bool)
    mask[1:] = entries[1:] != entries[:-1]
    return mask
