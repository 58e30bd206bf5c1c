"""Summaries of different columns side by side; and columns that are read again, on finer grids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import numpy as np

from powerkern._engine.threads import thread_count
from powerkern._input.arrays import as_names
from powerkern._status import Status
from powerkern._typing import BoolArray
from powerkern.kernels.results import STATUS
from powerkern.sketch.summaries import Grid, Range, Sketch

#: How often columns that their grid does not resolve are read again, on a finer one.
_REREADINGS = 3


class Additive(ABC):
    """A summary that is neither a range nor a sketch, but that `merge` and `beside` take."""

    @abstractmethod
    def merged(self, other: Self) -> Self:
        """The summary of the rows of both."""

    @classmethod
    @abstractmethod
    def side_by_side(cls, parts: Sequence[Self]) -> Self:
        """Summaries of different columns of the same rows as one."""


Mergeable = TypeVar("Mergeable", Range, Sketch, Additive)


def beside(parts: Sequence[Mergeable], column_names: Sequence[str] | None = None) -> Mergeable:
    """Ranges, or sketches, of different columns of the same rows, as one of all columns.

    Parameters
    ----------
    parts : sequence of Range or of Sketch
        From left to right.
    column_names : sequence of str, optional
        Names of all columns; default: the names of the parts, if all have names.

    Returns
    -------
    Range or Sketch
    """
    first = parts[0]
    if isinstance(first, Additive):
        return first.side_by_side(parts)
    described = [part.grid if isinstance(part, Sketch) else part for part in parts]
    table = np.concatenate([one._table for one in described])
    names = None if column_names is None else as_names(column_names, len(table))
    if names is None and all(one.column_names is not None for one in described):
        names = [name for one in described for name in one.column_names or ()]
    shift = np.concatenate([one.shift for one in described])
    was_vector = len(parts) == 1 and described[0].was_vector
    if isinstance(first, Range):
        return Range(first.family, table, names, was_vector, shift)
    sums, roundings = (
        np.concatenate([getattr(part, name) for part in parts if isinstance(part, Sketch)])
        for name in ("sums", "roundings")
    )
    return Sketch(Grid(first.grid.family, table, names, was_vector, shift), sums, roundings)


def unresolved(total: Sketch) -> BoolArray:
    """Mask of the columns whose optimum the grid does not resolve, of which `finish` would warn."""
    nothing_given = np.full(total.grid.n_features, np.nan)
    status = total.power_sums().fit(nothing_given, thread_count(None))[0][:, STATUS]
    mask: BoolArray = status == Status.UNRESOLVED
    return mask


def replaced(total: Sketch, part: Sketch, columns: BoolArray) -> Sketch:
    """`total` with the columns of a mask replaced by those of `part`, which has no others."""
    position = np.cumsum(columns) - 1
    each = [part.part([position[j]]) if columns[j] else total.part([j]) for j in range(total.grid.n_features)]
    return beside(each, total.grid.column_names)


def resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """The sketch of all data, columns that their grid does not resolve on finer ones.

    Parameters
    ----------
    grid : Grid
        For the range of the data.
    read : function
        ``read(grid, chosen)`` passes over the data and returns the sketch of the columns of the mask `chosen`; the
        grid has all columns.

    Returns
    -------
    Sketch
    """
    total = read(grid, np.ones(grid.n_features, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = unresolved(total)
        if not coarse.any():
            break
        total = replaced(total, read(total.grid.refined(coarse), coarse), coarse)
    return total
