"""The passes of fits from chunks: subclasses of `Pass`, each of which computes another summary of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._input.arrays import Matrix
from powerkern._input.censoring import given_limits
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.sketch.engine import Pass, Passes
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.order import Bins, ColumnSample, count_in_bins, draw_sample
from powerkern.sketch.serial import no_limits
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import range_of_matrix, sketch_matrix
from powerkern.sketch.summary import ChunkSummary, S, join_columns

#: Largest number of times that columns are read again on finer grids, because the grid is too coarse.
_REREADINGS = 3


@dataclass(frozen=True, kw_only=True)
class FirstPass(Pass[S]):
    """Base class of first passes, which check that all values are in the domain of the family.

    Attributes
    ----------
    family : str
        The transform to fit.
    shift : float or ndarray
        Number to add to the values, for all columns or for each chosen column.
    limits : (low, high) or None
        Detection limits, as for `powerkern.fit`.
    """

    family: str
    shift: ArrayLike = 0.0
    limits: Any = None

    def ranges(self, matrix: Matrix) -> Range:
        """Return the ranges of the columns of a chunk."""
        return range_of_matrix(matrix, self.family, self.shift, self.n_threads, self.limits_of(matrix))

    def limits_of(self, matrix: Matrix) -> FloatArray | None:
        """Return the limits of the columns of a matrix, (2, p), or None."""
        return None if self.limits is None else given_limits(self.limits, matrix.values.shape[1], matrix.names)

    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Return the shift and the limits of the columns at `positions`; see `Pass.select_fields`."""
        limits = self.limits and tuple(end if np.ndim(end) == 0 else np.asarray(end)[positions] for end in self.limits)
        shift = np.asarray(self.shift)
        return {"shift": shift[positions] if shift.ndim else shift, "limits": limits}


@dataclass(frozen=True, kw_only=True)
class RangePass(FirstPass[Range]):
    """Pass that computes the ranges of the columns."""

    def summary(self, matrix: Matrix) -> Range:
        """Return the ranges of a chunk."""
        return self.ranges(matrix)


@dataclass(frozen=True, kw_only=True)
class SamplePass(FirstPass[ColumnSample]):
    """Pass that computes the ranges of the columns and draws a sample, for estimators that use order statistics."""

    def summary(self, matrix: Matrix) -> ColumnSample:
        """Return the sample of a chunk."""
        found = self.ranges(matrix)
        return draw_sample(_add_shift(matrix, found.shift), matrix.weight, found, thread_count(self.n_threads))


@dataclass(frozen=True, kw_only=True)
class SketchPass(Pass[Sketch]):
    """Pass that computes the power sums of the chosen columns.

    Attributes
    ----------
    grid : Grid
        The grid of the chosen columns.
    """

    grid: Grid

    def summary(self, matrix: Matrix) -> Sketch:
        """Return the power sums of a chunk."""
        return sketch_matrix(matrix, self.grid, self.n_threads)

    def limits_of(self, matrix: Matrix) -> FloatArray:
        """Return the limits of all columns of a matrix, (2, p); columns that are not chosen have none."""
        if self.chosen is None:
            return self.grid.limits
        limits = no_limits(self.chosen.size)
        limits[:, self.chosen] = self.grid.limits
        return limits

    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Return the grid of the columns at `positions`; see `Pass.select_fields`."""
        return {"grid": self.grid.part(positions)}


def sketch_until_resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """Sketch all data, then repeat the columns whose grid is too coarse on finer grids.

    Parameters
    ----------
    grid : Grid
        The first grid of all p columns.
    read : function
        ``read(grid, chosen)`` makes a pass over the data, and returns the sketch of the columns in the mask `chosen`,
        (p,). Its argument `grid` has only these columns.

    Returns
    -------
    Sketch
        The sketch of all columns, each on the finest grid that was used for it.
    """
    at = np.arange(grid.n_features)
    total = read(grid, np.ones(at.size, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = total.unresolved()
        if not coarse.any():
            break
        again = read(total.grid.refined(coarse).part(coarse), coarse)
        total = join_columns([total, again]).part(np.where(coarse, at.size + np.cumsum(coarse) - 1, at))
    return total


# --- passes for estimators that need the order of the values ------------------------------------------


def _add_shift(matrix: Matrix, shift: FloatArray) -> FloatArray:
    """Return the values of a chunk plus the shift of each column, (p,), in column-major order."""
    values: FloatArray = matrix.values.astype(np.float64, order="F")
    values += shift
    return values


@dataclass(frozen=True, kw_only=True)
class BinsPass(Pass[Bins]):
    """Pass that counts the values of the chosen columns in bins, with weights and moments.

    Attributes
    ----------
    edges : list of ndarray
        Ascending edges of the bins of each chosen column.
    quantum : (n_chosen,) ndarray of int
        Exponents of the units of weights, see `Bins`.
    shift : (n_chosen,) ndarray
        Number to add to the values of each column.
    """

    edges: list[FloatArray]
    quantum: IntArray
    shift: FloatArray

    def summary(self, matrix: Matrix) -> Bins:
        """Return the counts of a chunk."""
        moved = _add_shift(matrix, self.shift)
        return count_in_bins(moved, matrix.weight, self.edges, self.quantum, thread_count(self.n_threads))

    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Return the edges, quanta and shifts of the columns at `positions`; see `Pass.select_fields`."""
        return {
            "edges": [self.edges[j] for j in positions],
            "quantum": self.quantum[positions],
            "shift": self.shift[positions],
        }


class Kept(ChunkSummary):
    """Power sums of the kept values of each column, which are the values inside an interval.

    Parameters
    ----------
    sketch : Sketch
        The power sums.
    ends : (2, p) ndarray
        Smallest and largest kept value.
    weight : (p,) ndarray
        Weight of all values, kept or not.
    near : (4, p) ndarray of int
        Weight of the values within the uncertainty of the ends of the interval, in units of the quantum: just below
        the lower end, just above it, just below the upper end, just above it.
    """

    def __init__(self, sketch: Sketch, ends: FloatArray, weight: FloatArray, near: IntArray) -> None:
        self.sketch = sketch
        self.ends = ends
        self.weight = weight
        self.near = near

    def _merge(self, other: Self) -> Self:
        """Return the sums over the rows of `self` and `other`."""
        ends = np.stack([np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])])
        sketch, weight = self.sketch._merge(other.sketch), self.weight + other.weight
        return type(self)(sketch, ends, weight, self.near + other.near)

    def part(self, k: int) -> Self:
        """Return the sums of column `k`."""
        return type(self)(self.sketch.part([k]), self.ends[:, [k]], self.weight[[k]], self.near[:, [k]])

    @classmethod
    def _join_columns(cls, parts: Sequence[Self]) -> Self:
        """Join sums of different columns of the same rows."""
        return cls(
            join_columns([part.sketch for part in parts]),
            np.concatenate([part.ends for part in parts], axis=1),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.near for part in parts], axis=1),
        )


@dataclass(frozen=True, kw_only=True)
class KeptPass(Pass[Kept]):
    """Pass that centers and scales the values inside an interval (the kept values), and computes their power sums.

    Attributes
    ----------
    grid : Grid
        The grid of ``(x + shift - center)/divisor``; its own shift is 0.
    interval : (n_chosen, 5) ndarray
        For each column: lower and upper end of the interval, center, divisor, and a value to exclude, or NaN. All of
        them except the divisor are on the scale of ``x + shift``.
    zones : (n_chosen, 2, 3) ndarray
        One row for the lower and one for the upper end of each interval: the smallest possible value, the value, and
        the largest possible value of the end.
    quantum : (n_chosen,) ndarray of int
        Exponents of the units of weights.
    shift : (n_chosen,) ndarray
        Number to add to the values of each column.
    """

    grid: Grid
    interval: FloatArray
    zones: FloatArray
    quantum: IntArray
    shift: FloatArray

    def summary(self, matrix: Matrix) -> Kept:
        """Return the power sums of a chunk."""
        x, weights = _add_shift(matrix, self.shift), matrix.weight
        low, high, center, divisor, tied = self.interval.T
        there = ~np.isnan(x)
        weight_of_all = np.count_nonzero(there, axis=0).astype(np.float64) if weights is None else weights @ there
        x[x == tied] = np.nan
        near = np.zeros((4, low.size), np.int64)
        for k in range(4):  # below and above the lower end, then below and above the upper end
            start, stop = self.zones[:, k // 2, k % 2], self.zones[:, k // 2, k % 2 + 1]
            row, j = np.nonzero((start <= x) & (x < stop))
            weight_of = np.ones(row.size) if weights is None else weights[row]
            np.add.at(near[k], j, np.rint(np.ldexp(weight_of, -self.quantum[j])).astype(np.int64))
        x[~((low <= x) & (x <= high))] = np.nan
        if weights is not None:
            x[weights == 0.0] = np.nan
        ends = np.stack([np.fmin.reduce(x, axis=0, initial=np.inf), np.fmax.reduce(x, axis=0, initial=-np.inf)])
        x -= center
        x /= divisor
        own = sketch_matrix(Matrix(x, None, False, weights), self.grid, self.n_threads)
        return Kept(own, ends, weight_of_all, near)

    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Return the fields of the columns at `positions`; see `Pass.select_fields`."""
        each = {name: getattr(self, name)[positions] for name in ("interval", "zones", "quantum", "shift")}
        return {"grid": self.grid.part(positions), **each}


def sum_kept_values(
    passes: Passes,
    ranges: Range,
    chosen: BoolArray,
    family: str,
    interval: FloatArray,
    zones: FloatArray,
    quantum: IntArray,
) -> Kept:
    """Sum the powers of the kept values of each chosen column in passes over the data; see `KeptPass`.

    Parameters
    ----------
    passes : Passes
        Reads the chunks.
    ranges : Range
        Ranges of all columns.
    chosen : (p,) ndarray of bool
        Columns to sum.
    family : str
        The transform.
    interval, zones, quantum : ndarray
        As in `KeptPass`.
    """
    at, first = np.flatnonzero(chosen), list[Kept]()  # later readings are of some columns only

    def read(grid: Grid, some: BoolArray) -> Sketch:
        own = np.zeros_like(chosen)
        own[at[some]] = True
        each = {"interval": interval[some], "zones": zones[some], "quantum": quantum[some], "shift": ranges.shift[own]}
        kept = passes(KeptPass, grid=grid, chosen=own, **each)
        first.append(kept)
        return kept.sketch

    low, high = ((interval[:, k] - interval[:, 2]) / interval[:, 3] for k in range(2))
    high, weight = np.maximum(high, np.nextafter(low, np.inf)), float(ranges.n_obs[chosen].max())
    total = sketch_until_resolved(Range.from_bounds(low, high, family, weight).grid(), read)
    return Kept(total, first[0].ends, first[0].weight, first[0].near)
