"""What is asked of every chunk in one pass over the data, and how an engine asks it.

A pass is a function of a chunk that can be pickled, and whose results `merge` adds up in any order; an engine is a
function that applies a pass to every chunk it has. Neither knows anything else of the other.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from powerkern import _frames
from powerkern._typing import BoolArray
from powerkern._validate import as_rows
from powerkern.sketch.merging import range_of, sketch
from powerkern.sketch.summaries import Grid, Range, Sketch

S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Pass(ABC, Generic[S]):
    """What one pass asks of every chunk.

    Attributes
    ----------
    weight_name : str or None
        The column of a data frame that holds the weights of its rows.
    n_threads : int or None
        Threads of each call; None: all CPUs of the process.
    """

    weight_name: str | None = None
    n_threads: int | None = 1

    def __call__(self, chunk: Any, weight: Any = None) -> S:
        """The summary of a chunk of rows, which may have none, and of their weights."""
        if self.weight_name is not None:
            chunk, weight = _frames.without_weights(chunk, self.weight_name)
        return self.summary(chunk, weight)

    @abstractmethod
    def summary(self, chunk: Any, weight: ArrayLike | None) -> S:
        """The summary of a chunk."""

    @abstractmethod
    def part(self, columns: ArrayLike) -> Self | None:
        """What to ask of chunks that have only these columns (indices); None if nothing."""


class MapReduce(Protocol):
    """An engine: it calls a pass with every chunk, and merges what comes back, two by two, in any order.

    ``map_reduce(function, merge)`` calls ``function(chunk)``, or ``function(chunk, weight)``, wherever the chunks are,
    and returns ``merge(...)`` of all results, or None if there are no chunks.
    """

    def __call__(self, function: Pass[S], merge: Callable[[S, S], S], /) -> S | None:
        """The summary of all chunks."""


@dataclass(frozen=True, kw_only=True)
class RangePass(Pass[Range]):
    """The first pass: ranges of the columns."""

    family: str
    shift: ArrayLike = 0.0
    column_names: tuple[str, ...] | None = None

    def summary(self, chunk: Any, weight: ArrayLike | None) -> Range:
        """Ranges of the columns of a chunk."""
        return range_of(
            chunk,
            self.family,
            sample_weight=weight,
            shift=self.shift,
            column_names=self.column_names,
            n_threads=self.n_threads,
        )

    def part(self, columns: ArrayLike) -> Self | None:
        """Ranges of these columns."""
        at = np.asarray(columns)
        if not at.size:
            return None
        shift = np.asarray(self.shift)
        names = None if self.column_names is None else tuple(self.column_names[j] for j in at)
        return dataclasses.replace(self, shift=shift[at] if shift.ndim else shift, column_names=names)


@dataclass(frozen=True, kw_only=True)
class SketchPass(Pass[Sketch]):
    """A later pass: power sums of some of the columns.

    Attributes
    ----------
    grid : Grid
        Of the chosen columns.
    chosen : (p,) ndarray of bool
        Which columns of the data those are.
    """

    grid: Grid
    chosen: BoolArray

    def summary(self, chunk: Any, weight: ArrayLike | None) -> Sketch:
        """Sums of the chosen columns of a chunk."""
        values = as_rows(chunk, what="chunk").values  # whose names the first pass has checked, or replaced
        chosen = values if self.chosen.all() else values[:, self.chosen]
        return sketch(chosen, self.grid, sample_weight=weight, n_threads=self.n_threads)

    def part(self, columns: ArrayLike) -> Self | None:
        """Sums of those of these columns that were chosen."""
        at = np.asarray(columns)
        chosen, position = self.chosen[at], np.cumsum(self.chosen) - 1
        if not chosen.any():
            return None
        return dataclasses.replace(self, grid=self.grid.part(position[at][chosen]), chosen=chosen)
