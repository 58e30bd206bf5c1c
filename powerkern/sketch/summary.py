"""Summaries of chunks, which can be merged over rows and joined over columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeVar


class ChunkSummary(ABC):
    """A summary of some rows, column by column."""

    @abstractmethod
    def merged(self, other: Any) -> Self:
        """Return the summary of the rows of both summaries."""

    @classmethod
    @abstractmethod
    def side_by_side(cls, parts: Sequence[Any]) -> Self:
        """Join summaries of different columns of the same rows, from left to right."""


S = TypeVar("S", bound=ChunkSummary)


def merge(a: S, b: S) -> S:
    """Merge two ranges, or two sketches, of different rows.

    Sketches on one grid are sums of whole numbers, and so are ranges: the same chunks give the same bits in whatever
    order and grouping they are merged. Rows divided into other chunks give another grid, and lambda to about 1e-14.
    Sketches of streams are first brought to a common grid (see `extend`), which any two streams of one column have; the
    order of merging then matters at the level of 1e-13.

    Parameters
    ----------
    a, b : Range or Sketch
        Two ranges or two sketches. If `b` has the column labels of `a` in another order, its columns are reordered.

    Returns
    -------
    Range or Sketch
        With the columns in the order of `a`.

    Raises
    ------
    ValueError
        If families or columns differ, or if the grids have no common grid.
    """
    if not (isinstance(a, ChunkSummary) and type(a) is type(b)):
        raise TypeError(f"merge takes two ranges or two sketches, got {type(a).__name__} and {type(b).__name__}")
    return a.merged(b)


def beside(parts: Sequence[S]) -> S:
    """Join ranges or sketches of different columns of the same rows, from left to right."""
    return parts[0].side_by_side(parts)
