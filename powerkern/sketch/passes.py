"""The passes that fits make: functions that summarise a chunk."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._input.arrays import Matrix, check_n_features
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.sketch.columns import Additive, beside, resolved
from powerkern.sketch.engine import Pass, Passes, S
from powerkern.sketch.merging import merge, range_of_matrix, sketch_of_matrix
from powerkern.sketch.order import Bins, Sample, bins_of, sample_of
from powerkern.sketch.summaries import Grid, Range, Sketch


@dataclass(frozen=True, kw_only=True)
class FirstPass(Pass[S]):
    """A first pass, which checks that all values are in the domain of the family.

    Attributes
    ----------
    family : str
        The transform that is to be fitted.
    shift : float or (p,) ndarray
        Added to the values.
    """

    family: str
    shift: ArrayLike = 0.0

    def ranges(self, matrix: Matrix) -> Range:
        """Ranges of the columns of a chunk."""
        return range_of_matrix(matrix, self.family, self.shift, self.n_threads)

    def part(self, columns: ArrayLike) -> Self | None:
        """The same, over these columns."""
        at = np.asarray(columns)
        if not at.size:
            return None
        shift = np.asarray(self.shift)
        names = None if self.column_names is None else tuple(self.column_names[j] for j in at)
        return dataclasses.replace(self, shift=shift[at] if shift.ndim else shift, column_names=names)


@dataclass(frozen=True, kw_only=True)
class RangePass(FirstPass[Range]):
    """Ranges of the columns."""

    def summary(self, matrix: Matrix) -> Range:
        """The ranges of a chunk."""
        return self.ranges(matrix)


@dataclass(frozen=True, kw_only=True)
class SamplePass(FirstPass[Sample]):
    """A sample of the columns, and their ranges: for estimators that need the order of the values."""

    def summary(self, matrix: Matrix) -> Sample:
        """The sample of a chunk."""
        found = self.ranges(matrix)
        moved = _moved(matrix, np.ones(found.n_features, dtype=bool), found.shift)
        return sample_of(moved, matrix.weight, found, thread_count(self.n_threads))


@dataclass(frozen=True, kw_only=True)
class ChosenPass(Pass[S]):
    """A pass over some of the columns.

    Attributes
    ----------
    chosen : (p,) ndarray of bool
        Which columns of the data those are.
    """

    chosen: BoolArray

    def part(self, columns: ArrayLike) -> Self | None:
        """The same pass, over the chosen columns among these."""
        at = np.asarray(columns)
        chosen = self.chosen[at]
        if not chosen.any():
            return None
        own = (np.cumsum(self.chosen) - 1)[at][chosen]
        return dataclasses.replace(self, chosen=chosen, **self._of(own))

    @abstractmethod
    def _of(self, own: IntArray) -> dict[str, Any]:
        """Fields that have an entry for each chosen column, for these of them."""


@dataclass(frozen=True, kw_only=True)
class SketchPass(ChosenPass[Sketch]):
    """A later pass: power sums of some of the columns.

    Attributes
    ----------
    grid : Grid
        Of the chosen columns.
    """

    grid: Grid

    def summary(self, matrix: Matrix) -> Sketch:
        """Sums of the chosen columns, whose names the first pass has checked, or replaced."""
        if not self.chosen.all():
            matrix = matrix._replace(values=matrix.values[:, self.chosen])
        check_n_features(matrix.values, self.grid.n_features, None, self.grid.column_names)
        return sketch_of_matrix(matrix, self.grid, self.n_threads)

    def _of(self, own: IntArray) -> dict[str, Any]:
        return {"grid": self.grid.part(own)}


# --- passes for estimators that need the order of the values -----------------------------------------------


def _moved(matrix: Matrix, chosen: BoolArray, shift: FloatArray) -> FloatArray:
    """The chosen columns of a chunk plus their shifts."""
    values: FloatArray = matrix.values[:, chosen].astype(np.float64)
    values += shift
    return values


@dataclass(frozen=True, kw_only=True)
class BinsPass(ChosenPass[Bins]):
    """How many values of the chosen columns lie between edges, and their moments there.

    Attributes
    ----------
    edges, quantum, shift
        One entry for each chosen column.
    """

    edges: list[FloatArray]
    quantum: IntArray
    shift: FloatArray

    def summary(self, matrix: Matrix) -> Bins:
        """Counts of a chunk."""
        moved = _moved(matrix, self.chosen, self.shift)
        return bins_of(moved, matrix.weight, self.edges, self.quantum, thread_count(self.n_threads))

    def _of(self, own: IntArray) -> dict[str, Any]:
        return {"edges": [self.edges[j] for j in own], "quantum": self.quantum[own], "shift": self.shift[own]}


class Kept(Additive):
    """Power sums of the values inside an interval, the smallest and the largest of them, and some weights."""

    def __init__(self, sketch: Sketch, ends: FloatArray, weight: FloatArray, near: IntArray) -> None:
        self.sketch = sketch
        self.ends = ends  #: (2, p)
        self.weight = weight  #: of all values, kept or not
        #: (4, p): below and above either end, of the values that may be on its other side, in quanta
        self.near = near

    def merged(self, other: Self) -> Self:
        """The sums of the rows of both."""
        ends = np.stack([np.minimum(self.ends[0], other.ends[0]), np.maximum(self.ends[1], other.ends[1])])
        return type(self)(merge(self.sketch, other.sketch), ends, self.weight + other.weight, self.near + other.near)

    def part(self, k: int) -> Self:
        """Of one column."""
        return type(self)(self.sketch.part([k]), self.ends[:, [k]], self.weight[[k]], self.near[:, [k]])

    @classmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Sums of different columns of the same rows as one."""
        return cls(
            beside([part.sketch for part in parts]),
            np.concatenate([part.ends for part in parts], axis=1),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.near for part in parts], axis=1),
        )


@dataclass(frozen=True, kw_only=True)
class KeptPass(ChosenPass[Kept]):
    """Power sums of the values inside an interval of each chosen column, moved and scaled.

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
        """Sums of a chunk."""
        x, weights = _moved(matrix, self.chosen, self.shift), matrix.weight
        low, high, center, divisor, tied = self.interval.T
        there = ~np.isnan(x)
        weight_of_all = weights @ there if weights.size else np.count_nonzero(there, axis=0).astype(np.float64)
        x[x == tied] = np.nan
        near = np.zeros((4, low.size), np.int64)
        for k in range(4):  # below and above the lower end, below and above the upper one
            start, stop = self.zones[:, k // 2, k % 2], self.zones[:, k // 2, k % 2 + 1]
            row, j = np.nonzero((start <= x) & (x < stop))
            weight_of = weights[row] if weights.size else np.ones(row.size)
            np.add.at(near[k], j, np.rint(np.ldexp(weight_of, -self.quantum[j])).astype(np.int64))
        x[~((low <= x) & (x <= high))] = np.nan
        if weights.size:
            x[weights == 0.0] = np.nan
        ends = np.stack([np.fmin.reduce(x, axis=0, initial=np.inf), np.fmax.reduce(x, axis=0, initial=-np.inf)])
        x -= center
        x /= divisor
        own = sketch_of_matrix(Matrix(x, None, False, weights), self.grid, self.n_threads)
        return Kept(own, ends, weight_of_all, near)

    def _of(self, own: IntArray) -> dict[str, Any]:
        each = {name: getattr(self, name)[own] for name in ("interval", "zones", "quantum", "shift")}
        return {"grid": self.grid.part(own), **each}


def kept_sums(
    passes: Passes,
    intervals: FloatArray,
    zones: FloatArray,
    quantum: IntArray,
    chosen: BoolArray,
    ranges: Range,
    family: str,
    weight: float,
) -> Kept:
    """Power sums of the values inside an interval of each chosen column, see `KeptPass`; `weight` is their largest."""
    at = np.flatnonzero(chosen)
    first: list[Kept] = []  # later ones are of some columns only

    def read(grid: Grid, some: BoolArray) -> Sketch:
        own = np.zeros_like(chosen)
        own[at[some]] = True
        kept = passes(
            KeptPass,
            grid=grid.part(some),
            interval=intervals[some],
            zones=zones[some],
            quantum=quantum[some],
            shift=ranges.shift[own],
            chosen=own,
        )
        first.append(kept)
        return kept.sketch

    total = resolved(_grid_of(intervals, family, weight), read)
    return Kept(total, first[0].ends, first[0].weight, first[0].near)


def _grid_of(intervals: FloatArray, family: str, weight: float) -> Grid:
    """A grid for the values inside intervals, moved and scaled."""
    low, high = ((intervals[:, k] - intervals[:, 2]) / intervals[:, 3] for k in range(2))
    return Range.from_bounds(low, np.maximum(high, np.nextafter(low, np.inf)), family, weight).grid()
