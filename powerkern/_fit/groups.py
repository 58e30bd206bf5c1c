"""Fits of groups of rows: every group has its own lambdas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from powerkern._engine.gather import Scratch
from powerkern._engine.ragged import Groups
from powerkern._fit.shrinkage import shrunk
from powerkern._input.arguments import place_of
from powerkern._input.arrays import NO_WEIGHTS, Matrix, as_choice, column_label
from powerkern._input.labels import MISSING, Keys, Runs, check_rows
from powerkern._results.columns import ColumnResults, FitInfo, Source
from powerkern._results.grouped_fit import GroupedFit, UnknownGroups, finished_groups
from powerkern._results.power_fit import PowerFit
from powerkern._typing import FloatArray
from powerkern.kernels.results import N_RESULTS

#: Fits the columns of a matrix, or of groups side by side, with so many threads, at given lambdas or without.
Fitted = Callable[..., ColumnResults]


def fit_groups(
    matrix: Matrix,
    labels: tuple[Keys, Runs],
    info: FitInfo,
    fitted: Fitted,
    *,
    dropna: bool | None,
    unknown: UnknownGroups,
    shrink: bool,
    n_threads: int,
    progress: bool,
    unbounded: bool,
) -> GroupedFit:
    """The fit of every group of the rows of a matrix, and of all of them together where that is asked for."""
    as_choice("unknown", unknown, get_args(UnknownGroups))
    keys, runs = labels
    check_rows(runs, len(matrix.values))
    columns = grouped_columns(matrix, runs, len(keys), fitted, n_threads, progress)
    pooled = None
    if unknown == "pooled" or shrink:
        some = matrix
        if (runs.codes == MISSING).any():
            rows = runs.rows(runs.codes >= 0)
            some = _rows_of(matrix, rows)
        pooled = PowerFit(info, fitted(some, n_threads))
    if shrink:
        assert pooled is not None

        def at(lmbda: FloatArray) -> ColumnResults:
            return grouped_columns(matrix, runs, len(keys), fitted, n_threads, progress, given=lmbda)

        columns = shrunk(columns, pooled.columns, at)
    source = Source((matrix.values, matrix.weight))
    return finished_groups(GroupedFit(info, keys, columns, pooled, unknown, dropna, source, runs), unbounded)


def grouped_columns(
    matrix: Matrix,
    runs: Runs,
    n_groups: int,
    fitted: Fitted,
    n_threads: int,
    progress: bool,
    given: FloatArray | None = None,
) -> ColumnResults:
    """Results of every column of every group, those of the first group first; or at given lambdas, (G, p)."""
    groups, p = Groups(runs, n_groups), matrix.values.shape[1]
    raw, families = np.empty((n_groups, p, N_RESULTS)), np.empty((n_groups, p), dtype=np.int64)
    units, has_units = np.ones((n_groups, p)), False
    scratch = Scratch()

    def put(at: Any, found: ColumnResults) -> None:
        nonlocal has_units
        shape = raw[at].shape
        raw[at], families[at] = found.raw.reshape(shape), found.codes.reshape(shape[:-1])
        if found.unit_weights is not None:
            has_units = True
            units[at] = found.unit_weights.reshape(shape[:-1])

    def fit_batch(batch: slice, threads: int) -> None:
        at = groups.codes[batch]
        block = groups.padded(matrix.values, batch, scratch)
        part = Matrix(block.T, None, False)
        try:
            put(at, fitted(part, threads, **_given(given, at)))
        except ValueError as error:
            raise _placed(error, groups, batch, matrix) from None

    def fit_each(batch: slice, threads: int) -> None:
        for k in range(batch.start, batch.stop):
            at = groups.codes[k : k + 1]
            try:
                put(at, fitted(_rows_of(matrix, groups.rows(k)), threads, **_given(given, at)))
            except ValueError as error:
                raise _placed(error, groups, slice(k, k + 1), matrix) from None

    groups.for_each_batch(fit_each if matrix.weight.size else fit_batch, p, n_threads, progress)
    flat = raw.reshape(-1, N_RESULTS)
    return ColumnResults(flat, families.ravel(), unit_weights=units.ravel() if has_units else None)


def _given(lmbda: FloatArray | None, at: Any) -> dict[str, FloatArray]:
    return {} if lmbda is None else {"given": lmbda[at].ravel()}


def _rows_of(matrix: Matrix, rows: Any) -> Matrix:
    weight = matrix.weight[rows] if matrix.weight.size else NO_WEIGHTS
    return Matrix(matrix.values[rows], None, False, weight)


def _placed(error: ValueError, groups: Groups, batch: slice, matrix: Matrix) -> ValueError:
    """The error for a value outside the domain, with the row and the column of the data in which it is."""
    place = place_of(error)
    if place is None or place.column is None:
        return error
    k, j = divmod(place.column, matrix.values.shape[1])
    rows = np.arange(len(matrix.values))[groups.rows(batch.start + k)]
    row = f"row {rows[place.row]}"
    where = row if matrix.was_vector else f"{column_label(j, matrix.names)}, {row}"
    return ValueError(f"{where}: {place.reason}")
