"""Summaries of chunks, which can be merged over rows and joined over columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeVar


class ChunkSummary(ABC):
    """Base class of summaries of chunks, which hold separate entries for each column."""

    @abstractmethod
    def _merge(self, other: Any) -> Self:
        """Return the summary of the rows of `self` and of `other`."""

    @classmethod
    @abstractmethod
    def _join_columns(cls, parts: Sequence[Any]) -> Self:
        """Join summaries of different columns of the same rows, from left to right."""


S = TypeVar("S", bound=ChunkSummary)


def merge(a: S, b: S) -> S:
    """Merge two ranges, or two sketches, of different rows.

    Ranges, and sketches on one grid, hold sums of whole numbers. The same chunks therefore give the same bits in any
    order and grouping of the merges. If the rows are divided into chunks differently, the grid differs, and lambda
    agrees to about 1e-14. Sketches of streams (see `extend`) are first moved to a common grid, which exists for any two
    streams of the same columns. Lambda then depends on the order of merging at the level of 1e-13.

    Parameters
    ----------
    a, b : Range or Sketch
        Two ranges or two sketches. If `b` has the column labels of `a` in another order, its columns are reordered.

    Returns
    -------
    Range or Sketch
        The summary of all rows, with the columns in the order of `a`.

    Raises
    ------
    ValueError
        If the families or the columns differ, or if the sketches have different grids that cannot be combined.
    """
    if not (isinstance(a, ChunkSummary) and type(a) is type(b)):
        raise TypeError(f"merge takes two ranges or two sketches, got {type(a).__name__} and {type(b).__name__}")
    return a._merge(b)


def join_columns(parts: Sequence[S]) -> S:
    """Join ranges or sketches of different columns of the same rows, from left to right."""
    return parts[0]._join_columns(parts)
