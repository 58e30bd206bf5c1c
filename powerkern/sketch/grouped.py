"""Fit groups from chunks: each (group, column) pair is treated as a separate column that is NaN in all other rows."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from powerkern._estimators.base import Estimator
from powerkern._input.alignment import ColumnNames, merging_order
from powerkern._input.arguments import place_of
from powerkern._input.arrays import Matrix, check_n_features, column_label
from powerkern._input.censoring import NO_MARKS, Marks
from powerkern._input.frames import names_of
from powerkern._input.labels import UNKNOWN, Keys, without_groups, without_names
from powerkern._input.reading import read_chunk
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.grouped_fit import GroupedFit, build_grouped_fit
from powerkern._typing import FloatArray, IntArray
from powerkern.sketch.driver import ChunkJob
from powerkern.sketch.engine import MapReduce, Pass, Passes
from powerkern.sketch.summary import ChunkSummary, S, merge

#: Largest number of cells of a block in which groups stand side by side.
_CELLS = 4_000_000


class _Labels(ChunkSummary):
    """The labels of the groups in some chunks, with the names of the columns to fit.

    Parameters
    ----------
    keys : Keys or None
        The groups; None if there are no rows.
    naming : ColumnNames
        Names and labels of the columns to fit.
    p : int
        Number of these columns.
    """

    def __init__(self, keys: Keys | None, naming: ColumnNames, p: int) -> None:
        self.keys, self.naming, self.p = keys, naming, p

    def _merge(self, other: Self) -> Self:
        """Return the groups of `self` and `other`, with the columns in the order of `self`."""
        if self.p != other.p:
            raise ValueError(
                f"one chunk has {self.p} columns, another {other.p}; all chunks must have the same columns"
            )
        merging_order(self.naming, other.naming)  # raises if the columns differ
        if self.keys is None or other.keys is None:
            return type(self)(other.keys if self.keys is None else self.keys, self.naming, self.p)
        return type(self)(self.keys.joined(other.keys), self.naming, self.p)

    @classmethod
    def _join_columns(cls, parts: Any) -> Self:
        """Raise TypeError, because every chunk must have the columns of labels."""
        raise TypeError("groups need chunks that have all columns; do not divide the data by columns")


@dataclass(frozen=True, kw_only=True)
class _FramePass(Pass[S]):
    """Base class of passes over data frames that have all columns, including the columns of labels."""

    def part(self, columns: ArrayLike) -> Self | None:
        """Raise TypeError, because every chunk must have the columns of labels."""
        raise TypeError("groups need chunks that have all columns; do not divide the data by columns")

    def summary(self, matrix: Matrix) -> S:
        """Raise NotImplementedError, because a matrix of numbers has no labels."""
        raise NotImplementedError

    def select_fields(self, positions: IntArray) -> dict[str, Any]:
        """Raise NotImplementedError, because this pass cannot be restricted to some columns."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _LabelsPass(_FramePass[_Labels]):
    """The first pass, which collects the labels in the columns `groups`."""

    groups: tuple[str, ...]

    def __call__(self, chunk: Any, sample_weight: Any = None, marks: Marks = NO_MARKS) -> _Labels:
        """Return the groups of a chunk; weights raise ValueError."""
        _refuse_weights(sample_weight)
        known = names_of(chunk)
        if known is None:
            raise TypeError(f"groups need chunks that are data frames, got {type(chunk).__name__}")
        for name in self.groups:
            if name not in known:
                raise ValueError(f"groups={name!r}: there is no column of that name among {', '.join(map(str, known))}")
        matrix = read_chunk(without_names(chunk, list(self.groups)), None, self.column_names)
        keys = without_groups(chunk, list(self.groups), None)[1][0] if len(matrix.values) else None
        return _Labels(keys, ColumnNames(matrix.names, matrix.labels), matrix.values.shape[1])


@dataclass(frozen=True, kw_only=True)
class _GroupedPass(_FramePass[S]):
    """A pass in which each column of each group counts as a column.

    Attributes
    ----------
    inner : Pass
        The pass over a matrix that has a column for each pair of group and column.
    keys : Keys
        The groups.
    p : int
        Number of columns of each group.
    """

    inner: Pass[S]
    keys: Keys
    p: int

    def __call__(self, chunk: Any, sample_weight: Any = None, marks: Marks = NO_MARKS) -> S:
        """Return the summary of a chunk; `sample_weight` and `marks` are not used."""
        assert self.keys.names is not None
        matrix = read_chunk(without_names(chunk, self.keys.names), labels=self.labels)
        check_n_features(matrix.values, self.p, None, None)
        runs = self.keys.runs_of(chunk, None, len(matrix.values), None)
        if (runs.codes == UNKNOWN).any():
            raise ValueError(
                "the data changed between two passes: there are new groups; every pass must read the same rows"
            )
        codes = np.repeat(runs.codes, runs.lengths)
        summaries = (
            self._summarize_block(wide, rows, matrix)
            for wide, rows in _place_side_by_side(matrix, codes, len(self.keys))
        )
        return functools.reduce(merge, summaries)

    def _summarize_block(self, wide: FloatArray, rows: IntArray, matrix: Matrix) -> S:
        """Return the summary of a block of side-by-side groups; errors name the column, and the row or the group.

        Parameters
        ----------
        wide : (height, n_groups p) ndarray
            The block.
        rows : (height, n_groups) ndarray of int
            Positions of its rows in the chunk.
        matrix : Matrix
            The chunk.
        """
        try:
            return self.inner.summarize_matrix(Matrix(wide, None, False))
        except ValueError as error:
            place = place_of(error)
            if place is None or place.column is None:
                raise
            g, j = divmod(place.column, matrix.values.shape[1])
            where = f"group {self.keys.label(g)!r}" if place.row is None else f"row {rows[place.row, g]}"
            raise ValueError(f"{column_label(j, matrix.names)}, {where}: {place.reason}") from None


def _place_side_by_side(matrix: Matrix, codes: IntArray, n_groups: int) -> Iterator[tuple[FloatArray, IntArray]]:
    """Yield the values of a chunk in blocks in which the groups stand side by side.

    Parameters
    ----------
    matrix : Matrix
        The chunk, with p columns.
    codes : (n,) ndarray of int
        Group of each row.
    n_groups : int
        Number of groups.

    Yields
    ------
    wide : (height, n_groups p) ndarray
        Rows of each group, padded with NaN.
    rows : (height, n_groups) ndarray of int
        Positions of these rows in the chunk; -1 where padded.
    """
    values, p = matrix.values, matrix.values.shape[1]
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n_groups))
    rank = np.arange(codes.size) - starts[codes[order]]
    height = max(1, min(_CELLS // (n_groups * p), int(rank.max(initial=0)) + 1))
    for top in range(0, int(rank.max(initial=0)) + 1, height):
        there = (rank >= top) & (rank < top + height)
        at, own = order[there], rank[there] - top
        wide, rows = np.full((height, n_groups, p), np.nan), np.full((height, n_groups), -1)
        wide[own, codes[at]], rows[own, codes[at]] = values[at], at
        yield wide.reshape(height, -1), rows


def fit_groups(
    map_reduce: MapReduce,
    groups: str | Sequence[str],
    family: str,
    estimator: Estimator | str,
    *,
    progress: bool,
    options: Mapping[str, Any],
) -> GroupedFit:
    """Fit groups of the rows that an engine reads, in passes over its chunks.

    A first pass collects the labels. In later passes, each column of each group counts as a column.

    Parameters
    ----------
    map_reduce : MapReduce
        The engine; its chunks are data frames.
    groups : str or list of str
        Name or names of the columns of labels. A missing label is an error.
    family, estimator, progress
        As for `fit_chunks`.
    options : mapping
        Options named in `ChunkOptions`; any other name raises TypeError.
    """
    job = ChunkJob.checked(family, estimator, map_reduce.task_threads, progress, **options)
    names = label_columns(groups, None)
    found = Passes(map_reduce.engine)(_LabelsPass, groups=tuple(names), column_names=job.column_names)
    if found.keys is None:
        raise ValueError("the chunks have no rows; pass at least one row")
    keys = replace(found.keys, several=not isinstance(groups, str))

    column_names, labels = found.naming.names, tuple(found.naming.labels or ())

    def on_groups(function: Pass[S], merge: Callable[[S, S], S]) -> S | None:
        return map_reduce.engine(_GroupedPass(inner=function, keys=keys, p=found.p, labels=labels), merge)

    spec, _ = job.spec.match_columns(found.p, column_names)
    with _groups_in_errors(keys, found.p, column_names):
        wide = replace(job, spec=spec.tiled(len(keys)), column_names=None).fit(on_groups)
    return build_grouped_fit(spec, ColumnLabels(column_names), keys, wide._table)


def label_columns(groups: str | Sequence[str], sample_weight: object) -> list[str]:
    """Return `groups`, a name or a list, as a list of names; raise if they are not names, or if there are weights."""
    _refuse_weights(sample_weight)
    names = [groups] if isinstance(groups, str) else groups
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise TypeError("groups must name the column, or the columns, of the chunks that hold the labels")
    return list(names)


def _refuse_weights(sample_weight: object) -> None:
    if sample_weight is not None:
        raise ValueError("weights cannot be combined with groups in chunks; repeat the rows, or use powerkern.fit")


@contextlib.contextmanager
def _groups_in_errors(keys: Keys, p: int, names: list[Any] | None) -> Iterator[None]:
    """Reword errors about a column of side-by-side groups so that they name the column and the group.

    Parameters
    ----------
    keys : Keys
        The groups.
    p : int
        Number of columns of each group.
    names : list or None
        Names of the columns.
    """
    try:
        yield
    except ValueError as error:
        place = place_of(error)
        if place is None or place.column is None:
            raise
        g, j = divmod(place.column, p)
        raise ValueError(f"{column_label(j, names)}, group {keys.label(g)!r}: {place.reason}") from None
