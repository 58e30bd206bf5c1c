"""Order statistics from passes over chunks: a sample, bins with exact counts, and points that represent them.

The first pass draws a sample, and the second counts the values between the sampled ones. Every order statistic is then
known to lie in the bin of its rank. Important bins are divided and counted again. Estimates are computed from points of
equal weight in the bins, or from points that have the moments of the bins. They differ from estimates computed from the
rows only because the positions of rows within bins are unknown. All rows of short columns are kept.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.threads import for_each
from powerkern._input import lazy_scipy_special as special
from powerkern._input.arrays import column_label
from powerkern._typing import BoolArray, FloatArray, IntArray, Weights
from powerkern.kernels.power_sums.ranges import R_MAX, R_MIN
from powerkern.sketch.grids import Range
from powerkern.sketch.summary import ChunkSummary, join_columns

#: Largest number of sampled values, and of bin edges, of a column; about 50 kB each.
SAMPLE, EDGES = 2048, 2048
#: Number of edges, at increasing distances, between the sample and the extreme value on either side.
_TAIL = 16
#: Number of points of equal weight in a bin; and smallest number of points in all bins, if there are at least as many
#: rows.
_POINTS, _FEWEST = 4, 1024
#: Sums of weights stay below ``2**_BITS`` quanta.
_BITS = 60
#: Relative change of the weight of a column that rounding may cause; weights below _TINY have fewer digits.
_ROUNDED, _TINY = 1e-9, 1e-270
#: Differences of values larger than this may overflow.
_HUGE = 2.0**1020


# --- the first pass -----------------------------------------------------------------------------------


class ColumnSample(ChunkSummary):
    """The ranges of the columns, and a random sample of each column in proportion to the weights.

    The key of a row is an exponential random number divided by the weight of the row. The random number is a hash of
    the value and its position in the chunk. The sample consists of the rows with the smallest keys. Results are
    therefore bit-identical for any order of merging.

    Parameters
    ----------
    of_range : Range
        The ranges.
    weights : (p, 3) ndarray
        For each column: the largest weight w_max, the sum of w/w_max, and the sum of (w/w_max)**2.
    drawn : list of (m, 3) ndarray
        For each column: key, value and weight of the m sampled rows.
    weighted : bool
        Whether rows have weights.
    """

    def __init__(self, of_range: Range, weights: FloatArray, drawn: list[FloatArray], weighted: bool) -> None:
        self.range = of_range
        self.weights = weights
        self.drawn = drawn
        self.weighted = weighted

    @property
    def ends(self) -> FloatArray:
        """Smallest and largest value of each column, plus the shift, (p, 2)."""
        return self.range._table[:, [R_MIN, R_MAX]]

    @property
    def unit(self) -> FloatArray:
        """Weight that counts as one value (`kernels.location.weights`), (p,).

        It is rounded to 24 bits, so that it does not depend on the order of merging.
        """
        top, total, squares = self.weights.T
        mean = np.where(total > 0.0, top * squares / np.where(total > 0.0, total, 1.0), 1.0)
        return np.where(mean < 1.0, mean, 1.0).astype(np.float32).astype(np.float64)

    @property
    def total(self) -> FloatArray:
        """Total weight of each column, (p,)."""
        total: FloatArray = self.weights[:, 0] * self.weights[:, 1]
        return total

    @property
    def slack(self) -> FloatArray:
        """Bound on the error of the total weight of each column, (p,), due to rounding weights to ``2**quantum``."""
        return np.ldexp(self.range.count, self.quantum)

    @property
    def quantum(self) -> IntArray:
        """Exponent for each column, (p,): weights are added as whole multiples of ``2**quantum``."""
        exponents = np.frexp(self.weights[:, 0])[1] + np.frexp(self.range.count)[1]
        return np.asarray(exponents - _BITS, dtype=np.int64)

    def _merge(self, other: Self) -> Self:
        """Return a sample of the rows of `self` and `other`, with the columns in the order of `self`."""
        both = self.range._merge(other.range)
        if (order := self.range._order_of(other.range)) is not None:
            other = other.part(order)
        top = np.maximum(self.weights[:, 0], other.weights[:, 0])
        share, of_other = (part.weights[:, 0] / np.where(top > 0.0, top, 1.0) for part in (self, other))
        sums = [self.weights[:, k] * share**k + other.weights[:, k] * of_other**k for k in (1, 2)]
        drawn = [_smallest_keys(np.concatenate(pair)) for pair in zip(self.drawn, other.drawn, strict=True)]
        return type(self)(both, np.column_stack([top, *sums]), drawn, self.weighted or other.weighted)

    def part(self, columns: Sequence[int]) -> Self:
        """Return the sample of the columns at these positions."""
        drawn = [self.drawn[j] for j in columns]
        return type(self)(self.range.part(columns), self.weights[columns], drawn, self.weighted)

    @classmethod
    def _join_columns(cls, parts: Sequence[Self]) -> Self:
        """Join samples of different columns of the same rows."""
        return cls(
            join_columns([part.range for part in parts]),
            np.concatenate([part.weights for part in parts]),
            [drawn for part in parts for drawn in part.drawn],
            any(part.weighted for part in parts),
        )


def draw_sample(values: FloatArray, weight: Weights, of_range: Range, n_threads: int = 1) -> ColumnSample:
    """Draw a sample of each column of a chunk.

    Parameters
    ----------
    values : (n, p) ndarray
        The chunk, plus the shift.
    weight : (n,) ndarray or None
        Weights of the rows; None: all one.
    of_range : Range
        Ranges of the columns of the chunk.
    n_threads : int
        Maximum number of threads.
    """
    n, p = values.shape
    weights, drawn = np.zeros((p, 3)), [np.empty((0, 3))] * p

    def draw(j: int) -> None:
        x, w = drop_missing(values[:, j], weight)
        w = np.ones(x.size) if w is None else w
        if x.size:
            share = w / w.max()
            weights[j] = w.max(), share.sum(), (share * share).sum()
        step = max(1, -(-x.size // SAMPLE))
        at = np.arange(0, x.size, step)
        drawn[j] = _smallest_keys(np.column_stack([_hash_to_exponentials(x[at], at) / (w[at] * step), x[at], w[at]]))

    for_each(draw, p, n, n_threads)
    return ColumnSample(of_range, weights, drawn, weight is not None)


def drop_missing(x: FloatArray, weight: Weights) -> tuple[FloatArray, Weights]:
    """Return the values of `x`, (n,), that are not NaN and have a positive weight, and the weights of these values.

    The second result is None if `weight` is None.
    """
    there = ~np.isnan(x)
    if weight is not None:
        there &= weight > 0.0
        return x[there], weight[there]
    return x[there], None


def _smallest_keys(drawn: FloatArray) -> FloatArray:
    """Return the (at most) `SAMPLE` rows of `drawn`, (m, 3), with the smallest keys in column 0, sorted by key."""
    return drawn[np.lexsort(drawn.T[::-1])[:SAMPLE]]


def _hash_to_exponentials(x: FloatArray, place: IntArray) -> FloatArray:
    """Hash each value and its position in the chunk to an exponential random number.

    The hash is SplitMix64 (Steele, Lea & Flood 2014).
    """
    bits = (x + 0.0).view(np.uint64) ^ (place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)
    exponential: FloatArray = -np.log((uniform + 0.5) * 2.0**-53)
    return exponential


# --- bins ---------------------------------------------------------------------------------------------


def first_edges(sample: ColumnSample, j: int) -> FloatArray:
    """Return edges of bins for column `j`: bins of about equal weight, and separate bins for repeated values.

    In the tails, each bin is twice as wide as the one before it. Bins are closed on the left, and the last edge is
    larger than all values.
    """
    low, high = sample.ends[j]
    values, counts = np.unique(sample.drawn[j][:, 1], return_counts=True)
    often = values[counts > 1]
    if values.size > EDGES // 2:
        often = values[counts > max(1, SAMPLE // 256)]
        every = np.repeat(values, counts)
        values = every[:: max(1, -(-every.size // (EDGES - 2 * _TAIL - 2 * often.size)))]
    farther = 0.5 ** np.arange(_TAIL)
    with np.errstate(over="ignore"):
        tails = [values[0] + (low - values[0]) * farther, values[-1] + (high - values[-1]) * farther]
    edges = np.concatenate([[low, _next_floats(high)], values, often, _next_floats(often), *tails])
    edges = edges[(low <= edges) & (edges <= _next_floats(high))]
    found: FloatArray = np.unique(edges)
    return found


def _next_floats(x: FloatArray | float) -> FloatArray:
    """Return the next larger float64 for each element."""
    return np.asarray(np.nextafter(x, np.inf))


class Bins(ChunkSummary):
    """Counts, weights, moments and extremes of the values in each bin of each column.

    Moments are weighted sums of ``t`` and ``t**2``, where t is the position in the bin from 0 to 1. Weights and moments
    are whole multiples of ``2**quantum``. Results are therefore bit-identical for any order of merging.

    Parameters
    ----------
    edges : list of ndarray
        Ascending edges of the bins of each column.
    quantum : (p,) ndarray of int
        Exponent of the unit of the weights and moments of each column.
    sums : (4, bins of all columns) ndarray of int64
        For each bin: number of rows, weight, first and second moment.
    ends : (2, bins of all columns) ndarray
        For each bin: smallest and largest value.
    """

    def __init__(self, edges: list[FloatArray], quantum: IntArray, sums: IntArray, ends: FloatArray) -> None:
        self.edges = edges
        self.quantum = quantum
        self.sums = sums
        self.ends = ends

    def _merge(self, other: Self) -> Self:
        """Return the bins of the rows of `self` and `other`, which have the same edges."""
        ends = np.stack([np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])])
        return type(self)(self.edges, self.quantum, self.sums + other.sums, ends)

    @classmethod
    def _join_columns(cls, parts: Sequence[Self]) -> Self:
        """Join bins of different columns of the same rows."""
        return cls(
            [edges for part in parts for edges in part.edges],
            np.concatenate([part.quantum for part in parts]),
            np.concatenate([part.sums for part in parts], axis=1),
            np.concatenate([part.ends for part in parts], axis=1),
        )

    def cells(self) -> list[CellMoments]:
        """Return the cells of each column, which are the bins that contain values, with their moments."""
        return [
            _build_cells(edges, int(quantum), self.sums[:, part], self.ends[:, part])
            for edges, quantum, part in zip(self.edges, self.quantum, self._parts(), strict=True)
        ]

    def weights(self) -> list[FloatArray]:
        """Return, for each column, the weights of its bins, (k,)."""
        return [
            np.ldexp(self.sums[1, part].astype(np.float64), int(quantum))
            for quantum, part in zip(self.quantum, self._parts(), strict=True)
        ]

    def _parts(self) -> Iterator[slice]:
        """Yield, for each column, the slice of its bins in `sums` and `ends`."""
        stops = np.cumsum([0, *(max(each.size - 1, 0) for each in self.edges)]).tolist()
        return itertools.starmap(slice, itertools.pairwise(stops))


def count_in_bins(
    values: FloatArray, weight: Weights, edges: list[FloatArray], quantum: IntArray, n_threads: int = 1
) -> Bins:
    """Count the values of a chunk in bins; leave out values outside all bins.

    Parameters
    ----------
    values : (n, p) ndarray
        The chunk, plus the shift.
    weight : (n,) ndarray or None
        Weights of the rows; None: all one.
    edges : list of (k_j,) ndarray
        Ascending edges of the bins of each column.
    quantum : (p,) ndarray of int
        Exponents of the units of weights, see `Bins`.
    n_threads : int
        Maximum number of threads.
    """
    sizes = [max(each.size - 1, 0) for each in edges]
    sums, ends = np.zeros((4, sum(sizes)), np.int64), np.empty((2, sum(sizes)))
    ends[0], ends[1] = np.inf, -np.inf
    starts = np.cumsum([0, *sizes])

    def count(j: int) -> None:
        if sizes[j]:
            x, w = drop_missing(values[:, j], weight)
            part = slice(starts[j], starts[j + 1])
            _count(x, w, edges[j], int(quantum[j]), sums[:, part], ends[:, part])

    for_each(count, len(edges), len(values), n_threads)
    return Bins(edges, quantum, sums, ends)


def _count(x: FloatArray, weight: Weights, edges: FloatArray, quantum: int, sums: IntArray, ends: FloatArray) -> None:
    """Add the values of a column to its bins.

    Parameters
    ----------
    x : (n,) ndarray
        The values, without NaN.
    weight : (n,) ndarray or None
        Weights of the values; None: all one.
    edges : (k + 1,) ndarray
        Ascending edges of the k bins.
    quantum : int
        Exponent of the unit of weights.
    sums : (4, k) ndarray of int
        Number of rows, weight and moments of each bin, see `Bins`; modified in place.
    ends : (2, k) ndarray
        Extremes of each bin; modified in place.
    """
    order = slice(None) if weight is None else np.argsort(x)
    x = np.sort(x) if weight is None else x[order]
    first = np.searchsorted(x, edges)
    rows = np.diff(first)
    filled = np.flatnonzero(rows)
    if not filled.size:
        return
    inside, starts = slice(first[0], first[-1]), first[filled] - first[0]
    each = np.repeat(filled, rows[filled])
    x = x[inside]
    scale = 0.25 if max(abs(edges[0]), abs(edges[-1])) > _HUGE else 1.0
    left, width = scale * edges[:-1], np.diff(scale * edges)
    t = (scale * x - left[each]) / width[each]
    quanta = np.ldexp(1.0 if weight is None else weight[order][inside], -quantum)
    sums[0] += rows
    for k, moment in enumerate((quanta, quanta * t, quanta * t * t), 1):
        sums[k, filled] += np.add.reduceat(np.rint(np.broadcast_to(moment, t.shape)).astype(np.int64), starts)
    ends[0, filled] = np.minimum(ends[0, filled], x[starts])
    ends[1, filled] = np.maximum(ends[1, filled], x[np.append(starts[1:], x.size) - 1])


# --- cells of a column -------------------------------------------------------------------------


class CellMoments(NamedTuple):
    """Disjoint, ascending cells that contain all values of a column, with the moments of these values.

    Attributes
    ----------
    rows, weight : (k,) ndarray
        Number and total weight of the rows of each cell.
    low, high : (k,) ndarray
        Smallest and largest value.
    mean, sd : (k,) ndarray
        Mean and standard deviation of the values.
    place : (k,) ndarray
        ``(mean - low)/(high - low)``, computed without the rounding error of the mean; 0.5 if low equals high.
    """

    rows: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    sd: FloatArray
    place: FloatArray

    @property
    def is_one_value(self) -> BoolArray:
        """Mask of the cells whose values are all equal."""
        equal: BoolArray = self.low == self.high
        return equal

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> CellMoments:
        """Return some of the cells, chosen by a mask or by indices."""
        return CellMoments(*(each[chosen] for each in self))


def check_unchanged(label: str, before: float, after: float, slack: float = 0.0) -> None:
    """Raise ValueError if two passes over a column read different rows.

    The rows count as different if the total weights of the column differ by more than rounding can explain.

    Parameters
    ----------
    label : str
        The column, for messages.
    before, after : float
        Total weights in the two passes.
    slack : float
        Additional difference to accept.
    """
    if abs(after - before) > _ROUNDED * max(before, _TINY) + slack:
        raise ValueError(
            f"{label}: the data changed between two passes, from {before:g} to {after:g} values (or total "
            "weight); every pass must read the same rows"
        )


def _build_cells(edges: FloatArray, quantum: int, sums: IntArray, ends: FloatArray) -> CellMoments:
    """Compute the cells of a column, with means and standard deviations, from the sums in its bins.

    Parameters
    ----------
    edges : (k + 1,) ndarray
        Edges of the bins.
    quantum : int
        Exponent of the unit of weights.
    sums : (4, k) ndarray of int
        Number of rows, weight and moments of each bin, see `Bins`.
    ends : (2, k) ndarray
        Extremes of each bin.
    """
    filled = np.flatnonzero(sums[1])  # weights may be rounded to nothing
    rows, weight, first, second = sums[:, filled].astype(np.float64)
    low, high = ends[:, filled]
    scale = 0.25 if edges.size and max(abs(edges[0]), abs(edges[-1])) > _HUGE else 1.0
    left = scale * edges[filled]
    width = np.diff(scale * edges)[filled]
    t = first / weight
    mean = np.clip((left + width * t) / scale, low, high)
    sd = width * np.sqrt(np.maximum(second / weight - t * t, 0.0)) / scale
    # low and left are close: their difference is exact, but mean - low is not
    with np.errstate(divide="ignore", invalid="ignore"):
        place = ((left - scale * low) + width * t) / (scale * high - scale * low)
    place = np.where(low == high, 0.5, np.clip(place, 0.0, 1.0))
    most = np.sqrt(scale * mean - scale * low) * np.sqrt(scale * high - scale * mean) / scale
    sd = np.where(low == high, 0.0, np.minimum(sd, most))
    return CellMoments(rows, np.ldexp(weight, quantum), low, high, mean, sd, place)


def rows_as_cells(drawn: FloatArray) -> CellMoments:
    """Return a cell for each sampled row; `drawn` is as in `ColumnSample`."""
    x, w = drawn[np.lexsort((drawn[:, 2], drawn[:, 1]))][:, 1:].T.copy()
    return CellMoments(np.ones(x.size), w, x, x, x, np.zeros(x.size), np.full(x.size, 0.5))


def narrower_edges(cells: CellMoments, parts: IntArray) -> FloatArray:
    """Return ascending edges that divide cell i into ``parts[i]`` parts of equal width.

    Undivided cells (of 1 part) get no edges, so the next pass does not count their values.
    """
    at = np.flatnonzero(parts > 1)
    if not at.size:
        return np.empty(0)
    cell = np.repeat(at, parts[at] - 1)
    first = np.cumsum(parts[at] - 1) - parts[at] + 1
    share = (np.arange(cell.size) - np.repeat(first, parts[at] - 1) + 1.0) / parts[cell]
    inner = 4.0 * (0.25 * cells.low[cell] * (1.0 - share) + 0.25 * cells.high[cell] * share)
    return np.unique(np.concatenate([inner, cells.low[at], cells.high[at], _next_floats(cells.high[at])]))


def even_parts(chosen: BoolArray) -> IntArray:
    """Return the number of parts into which to divide each cell: as many as `EDGES` allows if chosen, otherwise 1."""
    return np.where(chosen, max(2, EDGES // max(1, int(np.count_nonzero(chosen))) - 2), 1)


def choose_parts(cells: CellMoments, critical: BoolArray) -> IntArray:
    """Choose the number of parts into which to divide each cell.

    Cells in the mask `critical` are divided into equally many parts. The number of parts of any other cell depends on
    its weight w and on its width d on the scale of normal quantiles. A value may lie anywhere in its cell, which
    affects an objective that compares values with quantiles by about ``w d**2``. The total effect is smallest if
    the numbers of parts are proportional to ``(w d**2)**0.4``.
    """
    several = ~cells.is_one_value
    beyond = np.append(0.0, np.cumsum(cells.weight))
    score = special.ndtri(
        np.clip(beyond / beyond[-1], 1.0 / (3.0 * cells.rows.sum()), 1.0 - 1.0 / (3.0 * cells.rows.sum()))
    )
    effect = np.where(several & ~critical, cells.weight * np.diff(score) ** 2, 0.0) ** 0.4
    even = max(2, EDGES // (4 * max(1, int(np.count_nonzero(critical)))))
    own = np.rint(3 * EDGES // 4 * effect / effect.sum()) if effect.any() else effect
    parts: IntArray = np.where(critical, even, np.minimum(own, 4.0 * cells.rows)).astype(np.int64)
    return np.where(several & (cells.rows > 2), parts, 1)


def replace_divided_cells(cells: CellMoments, chosen: BoolArray, finer: CellMoments, label: str) -> CellMoments:
    """Replace divided cells by their parts.

    Parameters
    ----------
    cells : CellMoments
        The k cells before the division.
    chosen : (k,) ndarray of bool
        The cells that were divided.
    finer : CellMoments
        The parts, as counted by a later pass.
    label : str
        The column, for messages.

    Raises
    ------
    ValueError
        If the parts do not have the weight of the cells.
    """
    if not chosen.any():
        return cells
    low, high = cells.low[chosen], cells.high[chosen]
    at = np.searchsorted(low, finer.low, side="right") - 1
    own = finer.part((at >= 0) & (finer.high <= high[np.maximum(at, 0)]))
    check_unchanged(label, float(cells.weight[chosen].sum()), float(own.weight.sum()))
    both = [np.concatenate(pair) for pair in zip(cells.part(~chosen), own, strict=True)]
    return CellMoments(*both).part(np.lexsort((both[3], both[2])))


class CountedColumn(ABC):
    """A column whose values are counted in cells; subclasses choose which cells to divide and count again.

    Parameters
    ----------
    first : ColumnSample
        The sample of all columns.
    j : int
        Position of the column.
    """

    def __init__(self, first: ColumnSample, j: int) -> None:
        self.first, self.j = first, j
        self.label = column_label(j, first.range.column_names)
        self.is_binned = len(first.drawn[j]) < first.range.count[j]
        self.cells = rows_as_cells(first.drawn[j])
        self._is_counted, self._chosen = False, np.empty(0, dtype=bool)

    @abstractmethod
    def parts(self) -> IntArray:
        """Return the number of parts into which to divide each cell."""

    def choose_edges(self) -> FloatArray:
        """Return the edges of the bins in which the next pass counts values; no edges if it is not needed."""
        if not self._is_counted:
            return first_edges(self.first, self.j)
        parts = self.parts()
        self._chosen = parts > 1
        return narrower_edges(self.cells, parts)

    def divide(self, finer: CellMoments) -> None:
        """Replace the cells that were counted again by `finer`, the result of the count."""
        if self._is_counted:
            self.cells = replace_divided_cells(self.cells, self._chosen, finer, self.label)
        else:
            self.cells, self._is_counted = finer, True
            check_unchanged(self.label, self.first.total[self.j], float(finer.weight.sum()), self.first.slack[self.j])


def equal_points(
    cells: CellMoments, rng: np.random.Generator | None = None, effective_fraction: float = 1.0
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Represent the values of each cell by up to four points of equal weight.

    If there are few cells, each gets more points, even if its values are equal. Otherwise, the search would treat the
    points as a short column. The value of rank r among the n values of a cell is approximated by
    ``low + (high - low) (r/(n - 1))**a``, where a follows from the mean. Cells of one or two rows, or of one value, are
    represented exactly.

    Parameters
    ----------
    cells : CellMoments
        The cells.
    rng : numpy.random.Generator, optional
        Perturb the ranks as if they were order statistics of uniform random numbers.
    effective_fraction : float
        Number of these random numbers divided by the number of rows; below 1 if the rows have unequal weights.

    Returns
    -------
    x : (n,) ndarray
        The points, ascending.
    w : (n,) ndarray
        Their weights.
    cell : (n,) ndarray of int
        Index of the cell of each point.
    """
    rows, width = cells.rows, cells.high - cells.low
    n = np.minimum(rows, max(_POINTS, -(-_FEWEST // max(rows.size, 1)))).astype(np.int64)
    cell = np.repeat(np.arange(n.size), n)
    first = np.cumsum(n) - n
    k = np.arange(cell.size) - first[cell]
    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.where(rows[cell] > 1.0, ((k + 0.5) * rows[cell] / n[cell] - 0.5) / (rows[cell] - 1.0), 0.0)
        if rng is not None:
            rank = _perturb_ranks(rank, first, rows, cell, effective_fraction, rng)
    share = np.clip(cells.place, 0.02, 0.98)
    x = cells.low[cell] + width[cell] * np.clip(rank, 0.0, 1.0) ** ((1.0 - share) / share)[cell]
    weight = (cells.weight / n)[cell]
    if rng is not None and effective_fraction < 1.0:
        weight *= rng.standard_gamma(effective_fraction * rows[cell] / n[cell]) + 1e-9
        weight *= (cells.weight / np.bincount(cell, weight, rows.size))[cell]
    two = (rows == 2.0) & (width > 0.0)  # exact even if the weights of the two rows differ
    above = cells.weight * cells.place
    weight[two[cell]] = np.where(k == 0, (cells.weight - above)[cell], above[cell])[two[cell]]
    moved = x + (cells.mean - np.bincount(cell, x * weight, rows.size) / cells.weight)[cell]  # gives the cell its mean
    within = (np.minimum.reduceat(moved, first) >= cells.low) & (np.maximum.reduceat(moved, first) <= cells.high)
    return np.where(within[cell], moved, np.minimum(x, cells.high[cell])), weight, cell


def _perturb_ranks(
    rank: FloatArray, first: IntArray, rows: FloatArray, cell: IntArray, share: float, rng: np.random.Generator
) -> FloatArray:
    """Replace the relative rank of each point by the order statistic of this rank in a uniform random sample.

    Parameters
    ----------
    rank : (n,) ndarray
        Relative rank of each point in its cell, from 0 to 1.
    first : (k,) ndarray of int
        Position of the first point of each of the k cells.
    rows : (k,) ndarray
        Number of rows of each cell.
    cell : (n,) ndarray of int
        Index of the cell of each point.
    share : float
        Effective number of rows as a fraction of their number.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    steps = np.diff(rank, prepend=0.0)
    steps[first] = rank[first]
    last = np.append(first[1:], rank.size) - 1
    n = np.maximum(share * (rows - 1.0), 1.0)
    steps = rng.standard_gamma(np.maximum(steps, 0.0) * n[cell])
    rest = rng.standard_gamma(np.maximum(1.0 - rank[last], 0.0) * n)
    reached = np.cumsum(steps)
    reached -= (reached[first] - steps[first])[cell]
    total = reached[last] + rest
    return np.where(total[cell] > 0.0, reached / total[cell], rank)


def moment_points(cells: CellMoments) -> tuple[FloatArray, FloatArray, IntArray]:
    """Represent each cell by up to two points with the mean and the variance of its values.

    The results are as in `equal_points`.
    """
    sd = cells.sd
    left, right = cells.mean - sd, cells.mean + sd
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = left < cells.low  # moved to the lowest value; the other point then keeps mean and variance
        left = np.where(beyond, cells.low, left)
        right = np.where(beyond, cells.mean + sd * (sd / (cells.mean - cells.low)), right)
        over = right > cells.high
        right = np.where(over, cells.high, right)
        left = np.where(over, cells.mean - sd * (sd / (cells.high - cells.mean)), left)
        share = np.where(right > left, (cells.mean - left) / (right - left), 1.0)
    x = np.column_stack([np.where(sd > 0.0, left, cells.mean), np.where(sd > 0.0, right, cells.mean)])
    x = np.clip(x, cells.low[:, None], cells.high[:, None])
    weight = cells.weight[:, None] * np.column_stack([1.0 - share, share])
    some = weight.ravel() > 0.0
    return x.ravel()[some], weight.ravel()[some], np.repeat(np.arange(sd.size), 2)[some]


def weighted_median(x: FloatArray, w: FloatArray) -> float:
    """Return the first element of ascending `x`, (n,), at which the cumulative weight `w` reaches half of the total."""
    below = np.cumsum(w)
    return float(x[min(int(np.searchsorted(below, 0.5 * below[-1])), x.size - 1)])
