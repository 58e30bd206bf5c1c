"""Passes of fits from chunks: functions that summarise a chunk."""

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
from powerkern.sketch.order import Bins, ColumnSample, bins_of, sample_of
from powerkern.sketch.serial import unlimited
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import range_of_matrix, sketch_of_matrix
from powerkern.sketch.summary import ChunkSummary, S, beside

#: Largest number of times that columns are read again on a finer grid, because their grid does not resolve them.
_REREADINGS = 3


@dataclass(frozen=True, kw_only=True)
class FirstPass(Pass[S]):
    """A first pass, which checks that all values are in the domain of the family.

    Attributes
    ----------
    family : str
        The transform that is to be fitted.
    shift : float or ndarray
        Added to the values; one for all columns, or one for each chosen column.
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

    def fields_of(self, own: IntArray) -> dict[str, Any]:
        """Return the shift and the limits, restricted to the columns `own`; see `Pass.fields_of`."""
        limits = self.limits and tuple(end if np.ndim(end) == 0 else np.asarray(end)[own] for end in self.limits)
        shift = np.asarray(self.shift)
        return {"shift": shift[own] if shift.ndim else shift, "limits": limits}


@dataclass(frozen=True, kw_only=True)
class RangePass(FirstPass[Range]):
    """Pass for the ranges of the columns."""

    def summary(self, matrix: Matrix) -> Range:
        """Return the ranges of a chunk."""
        return self.ranges(matrix)


@dataclass(frozen=True, kw_only=True)
class SamplePass(FirstPass[ColumnSample]):
    """Pass for a sample of the columns and their ranges, for estimators that need the order of the values."""

    def summary(self, matrix: Matrix) -> ColumnSample:
        """Return the sample of a chunk."""
        found = self.ranges(matrix)
        return sample_of(_moved(matrix, found.shift), matrix.weight, found, thread_count(self.n_threads))


@dataclass(frozen=True, kw_only=True)
class SketchPass(Pass[Sketch]):
    """Pass for the power sums of the chosen columns.

    Attributes
    ----------
    grid : Grid
        The grid of the chosen columns.
    """

    grid: Grid

    def summary(self, matrix: Matrix) -> Sketch:
        """Return the power sums of a chunk; the first pass has checked or replaced its column names."""
        return sketch_of_matrix(matrix, self.grid, self.n_threads)

    def limits_of(self, matrix: Matrix) -> FloatArray:
        """Return the limits of all columns of a matrix, (2, p); columns that are not chosen have none."""
        if self.chosen is None:
            return self.grid.limits
        limits = unlimited(self.chosen.size)
        limits[:, self.chosen] = self.grid.limits
        return limits

    def fields_of(self, own: IntArray) -> dict[str, Any]:
        """Return the grid, restricted to the columns `own`; see `Pass.fields_of`."""
        return {"grid": self.grid.part(own)}


def resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """Return the sketch of all data, with finer grids for columns that their grid does not resolve.

    Parameters
    ----------
    grid : Grid
        The grid of all columns, for the range of the data.
    read : function
        ``read(grid, chosen)`` passes over the data, and returns the sketch of the columns in the mask `chosen`;
        `grid` has these columns only.
    """
    at = np.arange(grid.n_features)
    total = read(grid, np.ones(at.size, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = total.unresolved()
        if not coarse.any():
            break
        again = read(total.grid.refined(coarse).part(coarse), coarse)
        total = beside([total, again]).part(np.where(coarse, at.size + np.cumsum(coarse) - 1, at))
    return total


# --- passes for estimators that need the order of the values ------------------------------------------


def _moved(matrix: Matrix, shift: FloatArray) -> FloatArray:
    """Return the columns of a chunk plus their shifts, each contiguous."""
    values: FloatArray = matrix.values.astype(np.float64, order="F")
    values += shift
    return values


@dataclass(frozen=True, kw_only=True)
class BinsPass(Pass[Bins]):
    """Pass for counts and moments of the values of the chosen columns between edges.

    Attributes
    ----------
    edges, quantum, shift
        One entry for each chosen column.
    """

    edges: list[FloatArray]
    quantum: IntArray
    shift: FloatArray

    def summary(self, matrix: Matrix) -> Bins:
        """Return the counts of a chunk."""
        moved = _moved(matrix, self.shift)
        return bins_of(moved, matrix.weight, self.edges, self.quantum, thread_count(self.n_threads))

    def fields_of(self, own: IntArray) -> dict[str, Any]:
        """Return the edges, quanta and shifts, restricted to the columns `own`; see `Pass.fields_of`."""
        return {"edges": [self.edges[j] for j in own], "quantum": self.quantum[own], "shift": self.shift[own]}


class Kept(ChunkSummary):
    """Power sums of the values inside an interval, with the ends and weights that check them.

    Parameters
    ----------
    sketch : Sketch
        The power sums.
    ends : (2, p) ndarray
        Smallest and largest value inside the interval.
    weight : (p,) ndarray
        Weight of all values, kept or not.
    near : (4, p) ndarray of int
        In quanta: below and above either end, the weight of the values that may be on its other side.
    """

    def __init__(self, sketch: Sketch, ends: FloatArray, weight: FloatArray, near: IntArray) -> None:
        self.sketch = sketch
        self.ends = ends  #: (2, p)
        self.weight = weight  #: of all values, kept or not
        #: (4, p), in quanta: below and above either end, the weight of the values that may be on its other side
        self.near = near

    def merged(self, other: Self) -> Self:
        """Return the sums over the rows of both summaries."""
        ends = np.stack([np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])])
        sketch, weight = self.sketch.merged(other.sketch), self.weight + other.weight
        return type(self)(sketch, ends, weight, self.near + other.near)

    def part(self, k: int) -> Self:
        """Return the sums of one column."""
        return type(self)(self.sketch.part([k]), self.ends[:, [k]], self.weight[[k]], self.near[:, [k]])

    @classmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Join sums of different columns of the same rows."""
        return cls(
            beside([part.sketch for part in parts]),
            np.concatenate([part.ends for part in parts], axis=1),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.near for part in parts], axis=1),
        )


@dataclass(frozen=True, kw_only=True)
class KeptPass(Pass[Kept]):
    """Pass for power sums of the values inside an interval of each chosen column, centered and scaled.

    Attributes
    ----------
    grid : Grid
        Of ``(x + shift - center)/divisor``, without a shift of its own.
    interval : (n_chosen, 5) ndarray
        Smallest and largest value kept, center, divisor, and a value that is left out, or NaN; all of x + shift.
    zones : (n_chosen, 2, 3) ndarray
        Either end of the interval, between the bounds of where it may be.
    quantum, shift : (n_chosen,) ndarray
        Exponents of the quanta of weights, and shifts.
    """

    grid: Grid
    interval: FloatArray
    zones: FloatArray
    quantum: IntArray
    shift: FloatArray

    def summary(self, matrix: Matrix) -> Kept:
        """Return the sums of a chunk."""
        x, weights = _moved(matrix, self.shift), matrix.weight
        low, high, center, divisor, tied = self.interval.T
        there = ~np.isnan(x)
        weight_of_all = np.count_nonzero(there, axis=0).astype(np.float64) if weights is None else weights @ there
        x[x == tied] = np.nan
        near = np.zeros((4, low.size), np.int64)
        for k in range(4):  # below and above the lower end, below and above the upper one
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
        own = sketch_of_matrix(Matrix(x, None, False, weights), self.grid, self.n_threads)
        return Kept(own, ends, weight_of_all, near)

    def fields_of(self, own: IntArray) -> dict[str, Any]:
        """Return the fields with one entry per column, restricted to the columns `own`; see `Pass.fields_of`."""
        each = {name: getattr(self, name)[own] for name in ("interval", "zones", "quantum", "shift")}
        return {"grid": self.grid.part(own), **each}


def kept_sums(
    passes: Passes,
    ranges: Range,
    chosen: BoolArray,
    family: str,
    interval: FloatArray,
    zones: FloatArray,
    quantum: IntArray,
) -> Kept:
    """Return the power sums of the values inside an interval of each chosen column; see `KeptPass`.

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
    total = resolved(Range.from_bounds(low, high, family, weight).grid(), read)
    return Kept(total, first[0].ends, first[0].weight, first[0].near)
