"""For authors of engines: functions that apply a pass to every chunk, wherever it is, and merge the summaries.

`powerkern.sketch.fit_with` takes an engine (`MapReduce`) and hands it one `Pass` for each pass over the data. Passes
and the summaries that they return can be pickled. Chunks that hold only some of the columns are summarised by
`Pass.part`; `beside` puts their summaries side by side.

Engines run a task that raises again and again, and report its error as a page of traces. A chunk that is refused once
is refused always: the refusal travels as a result, and is raised where the fit was asked for.
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arrays import Matrix, naming
from powerkern._input.reading import read_chunk
from powerkern._typing import BoolArray
from powerkern.sketch.columns import beside
from powerkern.sketch.merging import merge

__all__ = [
    "Column",
    "MapReduce",
    "Outcome",
    "Pass",
    "Passes",
    "S",
    "beside",
    "columns_to_read",
    "in_turn",
    "merged_outcome",
    "named",
    "naming",
    "outcome_of",
]

S = TypeVar("S")


# --- passes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pass(ABC, Generic[S]):
    """A function that summarises a chunk: one pass over the data applies it to every chunk.

    Attributes
    ----------
    sample_weight : str or None
        The column of a data frame that holds the weights of its rows.
    n_threads : int or None
        Threads of each call; None: all CPUs of the process.
    column_names : tuple of str or None
        Names of the columns, instead of the names in the chunks.
    """

    sample_weight: str | None = None
    n_threads: int | None = 1
    column_names: tuple[str, ...] | None = None

    def __call__(self, chunk: Any, sample_weight: Any = None) -> S:
        """The summary of a chunk of rows, possibly none, with their weights."""
        weight = sample_weight if self.sample_weight is None else self.sample_weight
        return self.summary(read_chunk(chunk, weight, self.column_names))

    @abstractmethod
    def summary(self, matrix: Matrix) -> S:
        """The summary of the rows of a chunk."""

    @abstractmethod
    def part(self, columns: ArrayLike) -> Self | None:
        """The pass over chunks that have only these columns (indices); None if it needs none of them."""


class MapReduce(Protocol):
    """An engine: it applies a pass to every chunk, and merges the summaries two by two, in any order.

    ``map_reduce(function, merge)`` calls ``function(chunk)``, or ``function(chunk, sample_weight)``, wherever the
    chunks are, and returns all results merged by ``merge(a, b)``, or None if there are no chunks.
    """

    def __call__(self, function: Pass[S], merge: Callable[[S, S], S], /) -> S | None:
        """The summary of all chunks."""


@dataclass(frozen=True)
class Passes:
    """Makes passes over the data of an engine.

    Attributes
    ----------
    map_reduce : MapReduce
        The engine.
    sample_weight, n_threads
        As every `Pass` has them.
    bar : object, optional
        A progress bar, which counts the passes.
    chosen : (p,) ndarray of bool, optional
        The columns to pass over, as if there were no others; default: all.
    """

    map_reduce: MapReduce
    sample_weight: str | None = None
    n_threads: int | None = 1
    bar: Any = None
    chosen: BoolArray | None = None

    def __call__(self, kind: Callable[..., Pass[S]], **fields: Any) -> S:
        """The summary of all chunks by a pass of this kind, which has these fields."""
        common: dict[str, Any] = {"sample_weight": self.sample_weight, "n_threads": self.n_threads}
        function = kind(**fields, **common)
        if self.chosen is not None:
            function = OnColumns(inner=function, chosen=self.chosen, **common)
        total = self.map_reduce(function, _merged)
        if total is None:
            raise ValueError("there are no chunks: none were given, or they could be read only once")
        if self.bar is not None:
            self.bar.update()
        return total

    def on(self, chosen: BoolArray) -> Passes:
        """Passes over these columns, as if there were no others."""
        return dataclasses.replace(self, chosen=chosen)


@dataclass(frozen=True, kw_only=True)
class OnColumns(Pass[S]):
    """A pass over some of the columns, as if there were no others.

    Attributes
    ----------
    inner : Pass
        The pass.
    chosen : (p,) ndarray of bool
        The columns.
    """

    inner: Pass[S]
    chosen: BoolArray

    def summary(self, matrix: Matrix) -> S:
        """The summary of the chosen columns."""
        names = None if self.inner.column_names is None else list(self.inner.column_names)
        return self.inner.summary(matrix._replace(values=matrix.values[:, self.chosen], names=names))

    def part(self, columns: ArrayLike) -> Self | None:
        """The same pass, over the chosen columns among these."""
        at = np.asarray(columns)
        inner = self.inner.part((np.cumsum(self.chosen) - 1)[at][self.chosen[at]])
        return None if inner is None else dataclasses.replace(self, inner=inner, chosen=self.chosen[at])


def _merged(a: S, b: S) -> S:
    """`merge` for summaries of any kind."""
    both: Any = (a, b)
    whole: S = merge(*both)
    return whole


def in_turn(
    function: Callable[..., S],
    merge: Callable[[S, S], S],
    chunks: Iterable[tuple[contextlib.AbstractContextManager[Any], tuple[Any, ...]]],
    bar: Any = None,
) -> S | None:
    """The engine of one thread: chunks with their weights, each in a context that names it in errors."""
    total: S | None = None
    for context, chunk in chunks:
        with context:
            part = function(*chunk)
            total = part if total is None else merge(total, part)
        if bar is not None:
            bar.update()
    return total


# --- refusals that travel as results ------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """A summary, or the error in its place; both None where there were no rows."""

    summary: S | None = None
    error: TypeError | ValueError | None = None

    def value(self) -> S | None:
        """The summary; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.summary


def outcome_of(name: str, function: Callable[..., S], *chunk: object) -> Outcome[S]:
    """``function(*chunk)``; a refusal names the chunk, from whose start it counts rows."""
    try:
        with naming(name):
            return Outcome(function(*chunk))
    except (TypeError, ValueError) as error:
        return Outcome(error=error)


def merged_outcome(merge: Callable[[S, S], S], a: Outcome[S], b: Outcome[S]) -> Outcome[S]:
    """Both summaries merged, or an error of either."""
    if a.error is not None or b.error is not None:
        return a if a.error is not None else b
    if a.summary is None or b.summary is None:
        return b if a.summary is None else a
    try:
        return Outcome(merge(a.summary, b.summary))
    except (TypeError, ValueError) as error:
        return Outcome(error=error)


# --- columns of a table -------------------------------------------------------------------------------


def named(sample_weight: object) -> str | None:
    """The column that holds the weights, where a name is given; None for arrays of weights, or none."""
    return sample_weight if isinstance(sample_weight, str) else None


class Column(NamedTuple):
    """A column of a table, by the name of its type."""

    name: str
    kind: str
    is_numeric: bool


def columns_to_read(table: Sequence[Column], columns: Sequence[str] | None, sample_weight: object) -> list[str]:
    """Names of the columns that a fit reads, in order, weights last.

    Parameters
    ----------
    table : sequence of Column
        All columns.
    columns : sequence of str, optional
        Those to fit; default: all of numbers but the weights.
    sample_weight : str, optional
        The column of weights.

    Raises
    ------
    TypeError, ValueError
        Columns that are not there, that hold no numbers, that are named twice, or none at all.
    """
    if not (sample_weight is None or isinstance(sample_weight, str)):
        raise TypeError(f"sample_weight must be the name of a column, got {type(sample_weight).__name__}")
    if isinstance(columns, str):
        raise TypeError(f"columns is one string; pass a list of names, such as [{columns!r}]")
    weights = [] if sample_weight is None else [sample_weight]
    if columns is None:
        columns = [one.name for one in table if one.is_numeric and one.name not in weights]
        if not columns:
            raise TypeError(f"no column of X holds numbers: {', '.join(repr(one.name) for one in table)}")
    names = [*columns, *weights]
    if not columns or len(set(names)) < len(names):
        raise ValueError(f"columns must name at least one column, each once, and not the weights, got {list(columns)}")
    return _checked(table, names)


def _checked(table: Sequence[Column], names: Sequence[str]) -> list[str]:
    """These names; an error where a column is not there once, or holds no numbers."""
    for name in names:
        found = [one for one in table if one.name == name]
        if len(found) != 1:
            known = ", ".join(repr(one.name) for one in table)
            raise ValueError(f"there is {'more than one' if found else 'no'} column {name!r} among {known}")
        if not found[0].is_numeric:
            kind = found[0].kind
            raise TypeError(f"column {name!r} is of type {kind}, which holds no numbers; convert it or leave it out")
    return list(names)
