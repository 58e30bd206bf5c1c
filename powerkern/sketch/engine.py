"""Engines: functions that apply a pass to every chunk, on any machine, and merge the summaries.

`powerkern.sketch.fit_chunks` takes an engine as a `MapReduce` and calls it with one `Pass` for each pass over the data.
Passes and the summaries that they return can be pickled. If chunks hold only some of the columns, `Pass.part` returns
the pass for these columns, and `Pass.join` joins the summaries.

Dask, Ray and Spark retry a task that raises, and report its error with a long traceback. An invalid chunk stays
invalid, so its error is returned as a result (`ChunkOutcome`) and raised in the process that called `fit`.
"""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.alignment import are_default
from powerkern._input.arguments import as_whole
from powerkern._input.arrays import Matrix, check_n_features, chunk_errors
from powerkern._input.censoring import NO_MARKS, Marks, with_censored, without_flags
from powerkern._input.choices import Infinite
from powerkern._input.infinite import without_infinite
from powerkern._input.reading import read_chunk
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.sketch.summary import S, join_columns, merge

__all__ = [
    "NO_ROWS",
    "ChunkOutcome",
    "Engine",
    "MapReduce",
    "Pass",
    "Passes",
    "S",
    "TableColumn",
    "columns_to_read",
    "merge_outcomes",
    "summarize_or_catch",
    "summarize_tables",
]

#: The message of engines whose data have no rows.
NO_ROWS = "X has no rows; pass at least one row"


# --- passes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Pass(ABC, Generic[S]):
    """Base class of the functions that summarise a chunk; a pass over the data calls one of them for every chunk.

    Attributes
    ----------
    sample_weight : str or None
        Name of the column of weights, if chunks are data frames.
    n_threads : int or None
        Threads of each call; None: all CPUs of the process.
    column_names : tuple of str or None
        Names of the columns in results; default: their labels in the chunks.
    chosen : (p,) ndarray of bool or None
        The columns to summarise, as if there were no others; None: all.
    labels : tuple or None
        Labels of the columns in the first pass. Chunks with another order of columns are read in this order.
    infinite : {"raise", "missing", "keep"}
        Treatment of infinite values, see `powerkern.fit`; passes do not warn about them.
    flags : Marks
        Columns that mark censored cells in data frames, as dictionaries such as ``{"lead": "lead_flag"}``.
    """

    sample_weight: str | None = None
    n_threads: int | None = 1
    column_names: tuple[str, ...] | None = None
    chosen: BoolArray | None = None
    labels: tuple[Any, ...] | None = None
    infinite: Infinite = "raise"
    flags: Marks = NO_MARKS

    def __call__(self, chunk: Any, sample_weight: Any = None, marks: Marks = NO_MARKS) -> S:
        """Return the summary of a chunk.

        Parameters
        ----------
        chunk : object
            The rows, possibly none; anything that `powerkern.fit` accepts.
        sample_weight : array-like, optional
            Weights of the rows.
        marks : Marks
            Marks of censored cells.
        """
        weight = sample_weight if self.sample_weight is None else self.sample_weight
        chunk, flags = without_flags(chunk, self.flags)
        marks = Marks(*(given if flag is None else flag for given, flag in zip(marks, flags, strict=True)))
        return self.summarize_matrix(read_chunk(chunk, weight, self.column_names, labels=self.labels), chunk, marks)

    def summarize_matrix(self, matrix: Matrix, chunk: Any = None, marks: Marks = NO_MARKS) -> S:
        """Return the summary of the chosen columns of a matrix.

        Parameters
        ----------
        matrix : Matrix
            The rows, with all columns.
        chunk : object
            The chunk that the matrix was read from; marks in data frames are aligned with its rows.
        marks : Marks
            Marks of censored cells.
        """
        matrix = without_infinite(matrix, self.infinite, warns=False)
        matrix = with_censored(matrix, chunk, marks, self.limits_of(matrix))
        if self.chosen is not None:
            check_n_features(matrix.values, self.chosen.size, None, None)
            if not self.chosen.all():
                names, labels = (
                    each and list(itertools.compress(each, self.chosen)) for each in (matrix.names, matrix.labels)
                )
                ends = None if matrix.ends is None else matrix.ends[:, self.chosen]
                matrix = matrix._replace(values=matrix.values[:, self.chosen], ends=ends, names=names, labels=labels)
        return self.summary(matrix)

    def limits_of(self, matrix: Matrix) -> FloatArray | None:
        """Return the detection limits of all columns of `matrix`, (2, p), or None if there are none."""
        return None

    def part(self, columns: ArrayLike) -> Self | None:
        """Return a copy for chunks with only the columns at these positions; None if the pass needs none of them."""
        if self.flags.are_given:
            raise TypeError("columns of flags need chunks that have all columns; do not divide the data by columns")
        at = np.asarray(columns)
        chosen, own = None, at
        if self.chosen is not None:
            chosen = self.chosen[at]
            own = (np.cumsum(self.chosen) - 1)[at][chosen]
        if not own.size:
            return None
        names = None if self.column_names is None else tuple(self.column_names[j] for j in at)
        labels = None if self.labels is None else tuple(self.labels[j] for j in at)
        return dataclasses.replace(self, chosen=chosen, column_names=names, labels=labels, **self.select_fields(own))

    @staticmethod
    def join(parts: Sequence[S]) -> S:
        """Join the summaries of chunks with different columns of the same rows, from left to right."""
        return join_columns(parts)

    @abstractmethod
    def summary(self, matrix: Matrix) -> S:
        """Return the summary of the rows of a matrix that holds only the chosen columns."""

    @abstractmethod
    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Return the fields that have an entry for each chosen column, restricted to some of these columns.

        Parameters
        ----------
        positions : (k,) ndarray of int
            Positions among the chosen columns.

        Returns
        -------
        dict
            Keyword arguments for the pass over these columns.
        """


class Engine(Protocol):
    """A function that applies a pass to every chunk, and merges the summaries; see `MapReduce`."""

    def __call__(self, function: Pass[S], merge: Callable[[S, S], S], /) -> S | None:
        """Apply `function` to every chunk, and merge the results in pairs; return the total, or None without chunks."""


@dataclass(frozen=True, eq=False)
class MapReduce:
    """Chunks that an engine of yours reads, in place of chunks that this process reads.

    Parameters
    ----------
    engine : function
        ``engine(summarize, merge)`` calls ``summarize(chunk)`` for every chunk of rows, or
        ``summarize(chunk, sample_weight)`` if rows have weights. It merges the results in pairs by ``merge(a, b)``, in
        any order, and returns the last result; None if there are no chunks. It is called once for each pass over the
        data. `summarize` and its results, some 10 kB per column, can be pickled. Chunks are anything that
        `powerkern.fit` accepts, and may have no rows.
    task_threads : int or None, default 1
        Threads of each call of `summarize`; None: all CPUs of the process that calls it. Use 1 for engines that make
        several calls at a time.

    Notes
    -----
    If data frames have the same column labels in different orders, ``merge(a, b)`` uses the order of `a`. Let `a`
    always hold earlier chunks than `b` if the first chunk is to determine the order of the columns, and with it the
    order of arguments that have an entry for each column.

    An engine may divide its data by columns, too. ``summarize.part(columns)`` returns a function that summarises chunks
    which hold only the columns at these positions, or None if this pass needs none of them. ``summarize.join(parts)``
    joins the merged results of such blocks, from left to right.

    Examples
    --------
    Any map and any reduction work, such as those of a thread pool:

    >>> import functools
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import MapReduce, fit_chunks
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with ThreadPoolExecutor(2) as pool:
    ...     def engine(summarize, merge):
    ...         return functools.reduce(merge, pool.map(summarize, np.array_split(X, 10)))
    ...     fit = fit_chunks(MapReduce(engine))
    >>> bool(np.abs(fit.lmbda - pk.fit(X).lmbda).max() < 1e-12)
    True
    """

    engine: Engine
    task_threads: int | None = 1

    def __post_init__(self) -> None:
        if not callable(self.engine):
            raise TypeError(
                f"engine must be a function of two arguments, summarize and merge, got {type(self.engine).__name__}"
            )
        if self.task_threads is not None:
            as_whole("task_threads", self.task_threads)


@dataclass(frozen=True)
class Passes:
    """An engine with the options that all passes share; every call makes one pass over the data.

    Attributes
    ----------
    engine : function
        As in `MapReduce`.
    sample_weight, n_threads, infinite, flags
        As in `Pass`.
    bar : object, optional
        A progress bar, which counts the passes.
    columns : (p,) ndarray of bool, optional
        The columns to read, as if there were no others; default: all.
    labels : tuple, optional
        The labels of the columns, if the chunks of the first pass had labels; see `Pass`.
    """

    engine: Engine
    sample_weight: str | None = None
    n_threads: int | None = 1
    bar: Any = None
    columns: BoolArray | None = None
    labels: tuple[Any, ...] | None = None
    infinite: Infinite = "raise"
    flags: Marks = NO_MARKS

    def with_labels(self, labels: Sequence[Any] | None) -> Self:
        """Return a copy that reads the columns in the order of `labels`; if `labels` is None, return `self`."""
        return self if labels is None else dataclasses.replace(self, labels=tuple(labels))

    def __call__(self, kind: Callable[..., Pass[S]], *, chosen: BoolArray | None = None, **fields: Any) -> S:
        """Make one pass over the data, and return the summary of all chunks.

        Parameters
        ----------
        kind : type
            A subclass of `Pass`.
        chosen : ndarray of bool, optional
            The columns to summarise, out of those in `columns`; default: all.
        **fields
            The fields that `kind` adds to those of `Pass`.
        """
        if self.columns is not None:
            among, chosen = chosen, self.columns.copy()
            chosen[self.columns] = True if among is None else among
        total = self.engine(
            kind(
                sample_weight=self.sample_weight,
                n_threads=self.n_threads,
                chosen=chosen,
                labels=self.labels,
                infinite=self.infinite,
                flags=self.flags,
                **fields,
            ),
            merge,
        )
        if total is None:
            raise ValueError("there are no chunks; pass at least one, in a form that can be read repeatedly")
        if self.bar is not None:
            self.bar.update()
        return total


# --- errors as results --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChunkOutcome:
    """The summary of one or several chunks, or the error that one of them caused.

    Attributes
    ----------
    summary : ChunkSummary or None
        The summary; None if there is an error, or if there are no rows.
    error : TypeError or ValueError or None
        The error.
    position : int
        Position of the first of the chunks, for engines that merge outcomes in order of arrival.
    """

    summary: Any = None
    error: TypeError | ValueError | None = None
    position: int = 0

    def value(self) -> Any:
        """Return the summary, or raise the error; raise ValueError if there are no rows."""
        if self.error is not None:
            raise self.error
        if self.summary is None:
            raise ValueError(NO_ROWS)
        return self.summary


def summarize_or_catch(name: str, function: Callable[..., Any], *chunk: object) -> ChunkOutcome:
    """Return the result of ``function(*chunk)``, or the error that it raises, as an outcome.

    The message of the error names the chunk by `name` and counts rows from its start.
    """
    try:
        with chunk_errors(name):
            return ChunkOutcome(function(*chunk))
    except (TypeError, ValueError) as error:
        return ChunkOutcome(error=error)


def merge_outcomes(merge: Callable[[Any, Any], Any], outcomes: Iterable[ChunkOutcome]) -> ChunkOutcome:
    """Merge the summaries of all outcomes; stop at the first error and return it.

    `merge` merges two summaries; it may raise an error, too.
    """
    total = None
    for outcome in outcomes:
        if outcome.error is not None:
            return outcome
        if outcome.summary is not None:
            try:
                total = outcome.summary if total is None else merge(total, outcome.summary)
            except (TypeError, ValueError) as error:
                return ChunkOutcome(error=error)
    return ChunkOutcome(total)


def summarize_tables(
    function: Callable[[Any], Any], parts: Iterable[Any], place: Callable[[int], str]
) -> Iterator[ChunkOutcome]:
    """Yield the outcome of `function` for each Arrow table that has rows.

    Parameters
    ----------
    function : function
        Takes a table and returns its summary.
    parts : iterable of pyarrow.Table
        Consecutive rows of the data.
    place : function
        Returns a name for messages, given the position of the first row of a table.
    """
    rows = 0
    for part in parts:
        if part.num_rows:
            yield summarize_or_catch(place(rows), function, part)
        rows += part.num_rows


# --- columns of a table -------------------------------------------------------------------------------


class TableColumn(NamedTuple):
    """A column of a table: its name, the name of its type (`kind`), and whether it is numeric."""

    name: str
    kind: str
    is_numeric: bool


def columns_to_read(table: Sequence[TableColumn], columns: Sequence[str] | None, sample_weight: object) -> list[str]:
    """Return the names of the columns that a fit reads: the columns to fit, then the column of weights.

    Parameters
    ----------
    table : sequence of TableColumn
        All columns.
    columns : sequence of str, optional
        The columns to fit; default: all numeric columns except the weights.
    sample_weight : str, optional
        The column of weights.

    Raises
    ------
    TypeError, ValueError
        If a column does not exist, holds no numbers or is named twice, or if there are no columns.
    """
    if not (sample_weight is None or isinstance(sample_weight, str)):
        raise TypeError(f"sample_weight must be the name of a column, got {type(sample_weight).__name__}")
    if isinstance(columns, str):
        raise TypeError(f"columns is one string; pass a list of names, such as [{columns!r}]")
    weights = [] if sample_weight is None else [sample_weight]
    if columns is None or (columns and are_default(columns)):
        columns = [one.name for one in table if one.is_numeric and one.name not in weights]
        if not columns:
            raise TypeError(f"no column of X holds numbers: {', '.join(repr(one.name) for one in table)}")
    names = [*columns, *weights]
    if not columns or len(set(names)) < len(names):
        raise ValueError(f"columns must name at least one column, each once, and not the weights, got {list(columns)}")
    for name in names:
        found = [one for one in table if one.name == name]
        if len(found) != 1:
            known = ", ".join(repr(one.name) for one in table)
            raise ValueError(f"there is {'more than one' if found else 'no'} column {name!r} among {known}")
        if not found[0].is_numeric:
            kind = found[0].kind
            raise TypeError(f"column {name!r} is of type {kind}, which holds no numbers; convert it or leave it out")
    return names
