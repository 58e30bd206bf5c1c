"""Order statistics from passes over chunks: a sample, bins with exact counts, and points that represent them.

The first pass draws a sample; the second counts the values between sampled ones. Every order statistic is then
bracketed by the bin of its rank, and important bins are divided and counted again. Estimates are computed from points
of equal weight in the bins, or from points with the moments of the bins. They differ from estimates of the rows only by
the unknown order within bins. Short columns are kept whole.
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
from powerkern.sketch.summary import ChunkSummary, beside

#: Largest numbers of sampled values and of bin edges of a column, about 50 kB each.
SAMPLE, EDGES = 2048, 2048
#: Number of edges between the sample and the extreme value on either side, with growing distances.
_TAIL = 16
#: Number of points of equal weight in a bin; and smallest number in all bins together, if there are as many rows.
_POINTS, _FEWEST = 4, 1024
#: Sums stay below 2**_BITS quanta.
_BITS = 60
#: Relative change of the weight of a column that rounding may cause; weights below _TINY have fewer digits.
_ROUNDED, _TINY = 1e-9, 1e-270
#: Beyond this, differences may overflow.
_HUGE = 2.0**1020


# --- the first pass -----------------------------------------------------------------------------------


class ColumnSample(ChunkSummary):
    """Ranges of the columns and a sample of the values of each, in proportion to their weights.

    Every row has a key: an exponential variable divided by the weight of the row, computed by a hash from its value and
    its place in the chunk. The rows with the smallest keys are sampled. Samples therefore merge in any order to the
    same bits.

    Parameters
    ----------
    of_range : Range
        The ranges.
    weights : (p, 3) ndarray
        The largest weight of each column, the sum of the weights divided by it, and the sum of the squares of these.
    drawn : list of (m, 3) ndarray
        Key, value and weight of the sampled rows of each column.
    weighted : bool
        Whether rows have weights.
    """

    def __init__(self, of_range: Range, weights: FloatArray, drawn: list[FloatArray], weighted: bool) -> None:
        self.range = of_range
        #: (p, 3): the largest weight; the sums of the weights divided by it, and of the squares of these
        self.weights = weights
        self.drawn = drawn  #: of each column, (m, 3): key, value, weight
        self.weighted = weighted

    @property
    def ends(self) -> FloatArray:
        """Smallest and largest value of each column, plus the shift, (p, 2)."""
        return self.range.table[:, [R_MIN, R_MAX]]

    @property
    def unit(self) -> FloatArray:
        """The weight that counts as one value (`kernels.location.weights`), to 24 bits: independent of order."""
        top, total, squares = self.weights.T
        mean = np.where(total > 0.0, top * squares / np.where(total > 0.0, total, 1.0), 1.0)
        return np.where(mean < 1.0, mean, 1.0).astype(np.float32).astype(np.float64)

    @property
    def total(self) -> FloatArray:
        """The weight of all values."""
        total: FloatArray = self.weights[:, 0] * self.weights[:, 1]
        return total

    @property
    def slack(self) -> FloatArray:
        """Bound on the rounding of `total` to quanta."""
        return np.ldexp(self.range.count, self.quantum)

    @property
    def quantum(self) -> IntArray:
        """Exponents of the quanta in which weights are added."""
        exponents = np.frexp(self.weights[:, 0])[1] + np.frexp(self.range.count)[1]
        return np.asarray(exponents - _BITS, dtype=np.int64)

    def merged(self, other: Self) -> Self:
        """Return the sample of the rows of both samples, with the columns in the order of this one."""
        both = self.range.merged(other.range)
        if (order := self.range.order_of(other.range)) is not None:
            other = other.part(order)
        top = np.maximum(self.weights[:, 0], other.weights[:, 0])
        share, of_other = (part.weights[:, 0] / np.where(top > 0.0, top, 1.0) for part in (self, other))
        sums = [self.weights[:, k] * share**k + other.weights[:, k] * of_other**k for k in (1, 2)]
        drawn = [_smallest(np.concatenate(pair)) for pair in zip(self.drawn, other.drawn, strict=True)]
        return type(self)(both, np.column_stack([top, *sums]), drawn, self.weighted or other.weighted)

    def part(self, columns: Sequence[int]) -> Self:
        """Return the sample of some of the columns."""
        drawn = [self.drawn[j] for j in columns]
        return type(self)(self.range.part(columns), self.weights[columns], drawn, self.weighted)

    @classmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Join samples of different columns of the same rows."""
        return cls(
            beside([part.range for part in parts]),
            np.concatenate([part.weights for part in parts]),
            [drawn for part in parts for drawn in part.drawn],
            any(part.weighted for part in parts),
        )


def sample_of(values: FloatArray, weight: Weights, of_range: Range, n_threads: int = 1) -> ColumnSample:
    """Draw the sample of a chunk whose ranges are known.

    Parameters
    ----------
    values : (n, p) ndarray
        The chunk, plus the shift.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    of_range : Range
        Ranges of the columns.
    n_threads : int
        Largest number of threads at work.
    """
    n, p = values.shape
    weights, drawn = np.zeros((p, 3)), [np.empty((0, 3))] * p

    def draw(j: int) -> None:
        x, w = present(values[:, j], weight)
        w = np.ones(x.size) if w is None else w
        if x.size:
            share = w / w.max()
            weights[j] = w.max(), share.sum(), (share * share).sum()
        step = max(1, -(-x.size // SAMPLE))
        at = np.arange(0, x.size, step)
        drawn[j] = _smallest(np.column_stack([_exponentials(x[at], at) / (w[at] * step), x[at], w[at]]))

    for_each(draw, p, n, n_threads)
    return ColumnSample(of_range, weights, drawn, weight is not None)


def present(x: FloatArray, weight: Weights) -> tuple[FloatArray, Weights]:
    """Return the observed values of positive weight, and their weights if there are any."""
    there = ~np.isnan(x)
    if weight is not None:
        there &= weight > 0.0
        return x[there], weight[there]
    return x[there], None


def _smallest(drawn: FloatArray) -> FloatArray:
    """Return the rows with the smallest keys, in the order of the keys."""
    return drawn[np.lexsort(drawn.T[::-1])[:SAMPLE]]


def _exponentials(x: FloatArray, place: IntArray) -> FloatArray:
    """Return an exponential variable for each value and its place, by SplitMix64 (Steele, Lea & Flood 2014)."""
    bits = (x + 0.0).view(np.uint64) ^ (place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)).astype(np.float64)
    exponential: FloatArray = -np.log((uniform + 0.5) * 2.0**-53)
    return exponential


# --- bins ---------------------------------------------------------------------------------------------


def first_edges(sample: ColumnSample, j: int) -> FloatArray:
    """Return edges of bins of about equal weight, with separate bins for repeated values.

    Bins in the tails double in width outwards. Bins are closed on the left; the last edge is beyond the largest value.
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
    edges = np.concatenate([[low, _after(high)], values, often, _after(often), *tails])
    edges = edges[(low <= edges) & (edges <= _after(high))]
    found: FloatArray = np.unique(edges)
    return found


def _after(x: FloatArray | float) -> FloatArray:
    """Return the next larger float64."""
    return np.asarray(np.nextafter(x, np.inf))


class Bins(ChunkSummary):
    """Rows, weights, moments and extremes of the values between edges, for each column.

    Weights and sums of ``t`` and ``t**2``, t the place in the bin from 0 to 1, are whole numbers of ``2**quantum``.
    Bins therefore merge in any order to the same bits.

    Parameters
    ----------
    edges : list of ndarray
        Ascending edges of the bins of each column.
    quantum : (p,) ndarray of int
        Exponents of the quanta.
    sums : (4, bins of all columns) ndarray of int64
        Rows, weight, first and second moment.
    ends : (2, bins of all columns) ndarray
        Smallest and largest value.
    """

    def __init__(self, edges: list[FloatArray], quantum: IntArray, sums: IntArray, ends: FloatArray) -> None:
        self.edges = edges
        self.quantum = quantum
        self.sums = sums  #: (4, bins of all columns): rows, weight, first and second moment
        self.ends = ends  #: (2, bins of all columns): smallest and largest value

    def merged(self, other: Self) -> Self:
        """Return the bins of the rows of both summaries, which have the same edges."""
        ends = np.stack([np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])])
        return type(self)(self.edges, self.quantum, self.sums + other.sums, ends)

    @classmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Join bins of different columns of the same rows."""
        return cls(
            [edges for part in parts for edges in part.edges],
            np.concatenate([part.quantum for part in parts]),
            np.concatenate([part.sums for part in parts], axis=1),
            np.concatenate([part.ends for part in parts], axis=1),
        )

    def cells(self) -> list[CellMoments]:
        """Return the cells of each column: its bins that contain values."""
        return [
            _cells(edges, int(quantum), self.sums[:, part], self.ends[:, part])
            for edges, quantum, part in zip(self.edges, self.quantum, self._parts(), strict=True)
        ]

    def weights(self) -> list[FloatArray]:
        """Return the weight of every bin of each column."""
        return [
            np.ldexp(self.sums[1, part].astype(np.float64), int(quantum))
            for quantum, part in zip(self.quantum, self._parts(), strict=True)
        ]

    def _parts(self) -> Iterator[slice]:
        """Yield the slice of the bins of each column."""
        stops = np.cumsum([0, *(max(each.size - 1, 0) for each in self.edges)]).tolist()
        return itertools.starmap(slice, itertools.pairwise(stops))


def bins_of(
    values: FloatArray, weight: Weights, edges: list[FloatArray], quantum: IntArray, n_threads: int = 1
) -> Bins:
    """Count the values of a chunk between edges; values beyond the edges are left out.

    Parameters
    ----------
    values : (n, p) ndarray
        The chunk, plus the shift.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    edges : list of (k_j,) ndarray
        Edges of each column.
    quantum : (p,) ndarray of int
        Exponents of the quanta of weights.
    n_threads : int
        Largest number of threads at work.
    """
    sizes = [max(each.size - 1, 0) for each in edges]
    sums, ends = np.zeros((4, sum(sizes)), np.int64), np.empty((2, sum(sizes)))
    ends[0], ends[1] = np.inf, -np.inf
    starts = np.cumsum([0, *sizes])

    def count(j: int) -> None:
        if sizes[j]:
            x, w = present(values[:, j], weight)
            part = slice(starts[j], starts[j + 1])
            _count(x, w, edges[j], int(quantum[j]), sums[:, part], ends[:, part])

    for_each(count, len(edges), len(values), n_threads)
    return Bins(edges, quantum, sums, ends)


def _count(x: FloatArray, weight: Weights, edges: FloatArray, quantum: int, sums: IntArray, ends: FloatArray) -> None:
    """Add values to the bins of a column.

    Parameters
    ----------
    x : (n,) ndarray
        The values.
    weight : (n,) ndarray
        Their weights; None: all one.
    edges : (k + 1,) ndarray
        Edges of the bins.
    quantum : int
        Exponent of the quantum of weights.
    sums : (4, k) ndarray of int
        Rows, weights and moments; modified in place.
    ends : (2, k) ndarray
        Extremes; modified in place.
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
    """Disjoint intervals that contain all values, in ascending order, with their means and standard deviations."""

    rows: FloatArray
    weight: FloatArray
    low: FloatArray  #: smallest and largest value
    high: FloatArray
    mean: FloatArray
    sd: FloatArray
    #: (mean - low)/(high - low), without the rounding of the mean, or 0.5
    place: FloatArray

    @property
    def is_one_value(self) -> BoolArray:
        """Mask of the cells whose values are all equal."""
        equal: BoolArray = self.low == self.high
        return equal

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> CellMoments:
        """Select some of the cells."""
        return CellMoments(*(each[chosen] for each in self))


def check_unchanged(label: str, before: float, after: float, slack: float = 0.0) -> None:
    """Raise if the weight of a column differs between passes by more than rounding, so that they read different rows.

    Parameters
    ----------
    label : str
        The column, for messages.
    before, after : float
        The weights.
    slack : float
        Further difference that rounding may cause.
    """
    if abs(after - before) > _ROUNDED * max(before, _TINY) + slack:
        raise ValueError(
            f"{label}: the data changed between two passes: there were {before:g} values (or weight), and then "
            f"{after:g}; every pass must read the same rows"
        )


def _cells(edges: FloatArray, quantum: int, sums: IntArray, ends: FloatArray) -> CellMoments:
    """Compute the cells of a column, with their means and standard deviations, from the sums of its bins.

    Parameters
    ----------
    edges : (k + 1,) ndarray
        Edges of the bins.
    quantum : int
        Exponent of the quantum of weights.
    sums : (4, k) ndarray of int
        Rows, weights and moments.
    ends : (2, k) ndarray
        Extremes.
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
    """Return sampled rows as cells, one for each row."""
    x, w = drawn[np.lexsort((drawn[:, 2], drawn[:, 1]))][:, 1:].T.copy()
    return CellMoments(np.ones(x.size), w, x, x, x, np.zeros(x.size), np.full(x.size, 0.5))


def narrower_edges(cells: CellMoments, parts: IntArray) -> FloatArray:
    """Return edges that divide each cell into `parts` parts; cells of one part get no edges and are not recounted."""
    at = np.flatnonzero(parts > 1)
    if not at.size:
        return np.empty(0)
    cell = np.repeat(at, parts[at] - 1)
    first = np.cumsum(parts[at] - 1) - parts[at] + 1
    share = (np.arange(cell.size) - np.repeat(first, parts[at] - 1) + 1.0) / parts[cell]
    inner = 4.0 * (0.25 * cells.low[cell] * (1.0 - share) + 0.25 * cells.high[cell] * share)
    return np.unique(np.concatenate([inner, cells.low[at], cells.high[at], _after(cells.high[at])]))


def even_parts(chosen: BoolArray) -> IntArray:
    """Return the same number of parts for every chosen cell, and 1 for all others."""
    return np.where(chosen, max(2, EDGES // max(1, int(np.count_nonzero(chosen))) - 2), 1)


def parts_of(cells: CellMoments, critical: BoolArray) -> IntArray:
    """Return the number of parts of each cell: equal for critical cells, otherwise by the uncertainty that they cause.

    A value may lie anywhere in its cell, of weight w and d normal quantiles wide. The effect on an objective that
    compares values with quantiles is about w d**2; the total is least if the numbers of parts are proportional to
    ``(w d**2)**0.4``.
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


def divided(cells: CellMoments, chosen: BoolArray, finer: CellMoments, label: str) -> CellMoments:
    """Replace the chosen cells by the counts between their edges; raise unless these have the same weight.

    Parameters
    ----------
    cells : CellMoments
        The cells.
    chosen : ndarray of bool
        Cells that were counted again.
    finer : CellMoments
        The new counts.
    label : str
        The column, for messages.
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
    """A column that is counted in cells, which are divided and counted again where that matters."""

    def __init__(self, first: ColumnSample, j: int) -> None:
        self.first, self.j = first, j
        self.label = column_label(j, first.range.column_names)
        self.is_binned = len(first.drawn[j]) < first.range.count[j]
        self.cells = rows_as_cells(first.drawn[j])
        self._is_counted, self._chosen = False, np.empty(0, dtype=bool)

    @abstractmethod
    def parts(self) -> IntArray:
        """Return the number of parts into which to divide each cell."""

    def narrow(self) -> FloatArray:
        """Return the edges between which the next pass counts the values."""
        if not self._is_counted:
            return first_edges(self.first, self.j)
        parts = self.parts()
        self._chosen = parts > 1
        return narrower_edges(self.cells, parts)

    def divide(self, finer: CellMoments) -> None:
        """Replace the cells by the new counts."""
        if self._is_counted:
            self.cells = divided(self.cells, self._chosen, finer, self.label)
        else:
            self.cells, self._is_counted = finer, True
            check_unchanged(self.label, self.first.total[self.j], float(finer.weight.sum()), self.first.slack[self.j])


def equal_points(
    cells: CellMoments, rng: np.random.Generator | None = None, share_of_rows: float = 1.0
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return ascending points, their weights, and the cell of each: up to four points of equal weight in a cell.

    If there are few cells, each gets more points, also for equal values, because long columns are searched in another
    way than short ones. In a cell, the value of rank r of n is taken to be ``low + (high - low) (r/(n - 1))**a``, with
    a from the mean. Cells of one or two rows, or of one value, are exact. With `rng`, the ranks are perturbed like
    uniform order statistics of an effective number of rows, the fraction `share_of_rows` of the rows.
    """
    rows, width = cells.rows, cells.high - cells.low
    n = np.minimum(rows, max(_POINTS, -(-_FEWEST // max(rows.size, 1)))).astype(np.int64)
    cell = np.repeat(np.arange(n.size), n)
    first = np.cumsum(n) - n
    k = np.arange(cell.size) - first[cell]
    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.where(rows[cell] > 1.0, ((k + 0.5) * rows[cell] / n[cell] - 0.5) / (rows[cell] - 1.0), 0.0)
        if rng is not None:
            rank = _scattered(rank, first, rows, cell, share_of_rows, rng)
    share = np.clip(cells.place, 0.02, 0.98)
    x = cells.low[cell] + width[cell] * np.clip(rank, 0.0, 1.0) ** ((1.0 - share) / share)[cell]
    weight = (cells.weight / n)[cell]
    if rng is not None and share_of_rows < 1.0:
        weight *= rng.standard_gamma(share_of_rows * rows[cell] / n[cell]) + 1e-9
        weight *= (cells.weight / np.bincount(cell, weight, rows.size))[cell]
    two = (rows == 2.0) & (width > 0.0)  # of different weights
    above = cells.weight * cells.place
    weight[two[cell]] = np.where(k == 0, (cells.weight - above)[cell], above[cell])[two[cell]]
    moved = x + (cells.mean - np.bincount(cell, x * weight, rows.size) / cells.weight)[cell]  # to the mean
    within = (np.minimum.reduceat(moved, first) >= cells.low) & (np.maximum.reduceat(moved, first) <= cells.high)
    return np.where(within[cell], moved, np.minimum(x, cells.high[cell])), weight, cell


def _scattered(
    rank: FloatArray, first: IntArray, rows: FloatArray, cell: IntArray, share: float, rng: np.random.Generator
) -> FloatArray:
    """Replace the ranks of points in cells, 0 to 1, by the order statistics of uniform values that have these ranks.

    Parameters
    ----------
    rank : (n,) ndarray
        Ranks of the points.
    first : (k,) ndarray of int
        Position of the first point of each cell.
    rows : (k,) ndarray
        Number of rows of each cell.
    cell : (n,) ndarray of int
        Cell of each point.
    share : float
        Effective number of rows over their number.
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
    """Return points like `equal_points`: up to two per cell, which have the mean and the variance of its values."""
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
    """Return the first of ascending values at which the cumulative weight reaches one half."""
    below = np.cumsum(w)
    return float(x[min(int(np.searchsorted(below, 0.5 * below[-1])), x.size - 1)])
