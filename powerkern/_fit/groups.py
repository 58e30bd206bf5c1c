"""Fit groups of rows, each with lambdas of its own."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from powerkern._engine.gather import BlockScratch
from powerkern._engine.ragged import Groups
from powerkern._estimators.base import ColumnSpec, Run
from powerkern._estimators.routes import LOCKSTEP_MAX
from powerkern._estimators.spec import FitSpec
from powerkern._fit.columns import fit_columns
from powerkern._fit.shrinkage import shrink_lambdas
from powerkern._input.arguments import place_of
from powerkern._input.arrays import Matrix, column_label
from powerkern._input.labels import MISSING, Keys, Runs, check_rows
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.fitted_data import FittedData, GroupedData
from powerkern._results.grouped_fit import GroupedFit, build_grouped_fit
from powerkern._results.power_fit import PowerFit
from powerkern._typing import FloatArray
from powerkern.kernels.censored.fit import N_CENSORED_FIELDS
from powerkern.kernels.results import N_RESULTS


def fit_groups(
    matrix: Matrix,
    labels_of_rows: tuple[Keys, Runs],
    spec: FitSpec,
    requested: ColumnSpec,
    labels: ColumnLabels,
    data: FittedData,
    run: Run,
) -> GroupedFit:
    """Fit every group of rows of a matrix and, if requested, all rows together.

    Parameters
    ----------
    matrix : Matrix
        The data.
    labels_of_rows : (Keys, Runs)
        The groups, and the group of each row.
    spec, requested : FitSpec, ColumnSpec
        The options of the fit, and given lambdas, shifts and limits of each column.
    labels : ColumnLabels
        The labels of the columns.
    data : FittedData
        The references to the data that the fit stores.
    run : Run
        Threads and progress.
    """
    keys, runs = labels_of_rows
    check_rows(runs, len(matrix.values))
    grouped = data.grouped(len(keys))
    fit_at = functools.partial(_fit_each_group, matrix, runs, keys, spec, requested, run)
    columns, pooled = fit_at(data=grouped), None
    if spec.unknown == "pooled" or spec.shrink:
        labelled = _rows_of(matrix, runs.rows(runs.codes >= 0)) if (runs.codes == MISSING).any() else matrix
        pooled = PowerFit(spec, labels, fit_columns(labelled, spec, requested, Run(run.n_threads)))
        if spec.shrink:
            columns = shrink_lambdas(columns, pooled._table, fit_at)
    return build_grouped_fit(spec, labels, keys, columns, pooled, grouped, runs)


def _fit_each_group(
    matrix: Matrix,
    runs: Runs,
    keys: Keys,
    spec: FitSpec,
    requested: ColumnSpec,
    run: Run,
    given: FloatArray | None = None,
    data: GroupedData | None = None,
) -> ColumnTable:
    """Fit every column of every group, or compute the results at given lambdas; return one row per group and column.

    Parameters
    ----------
    matrix : Matrix
        The data.
    runs : Runs
        The group of each row.
    keys : Keys
        The groups.
    spec, requested : FitSpec, ColumnSpec
        The options of the fit, and given lambdas, shifts and limits of each column.
    run : Run
        Threads and progress.
    given : (G, p) ndarray, optional
        Lambdas at which to compute the results of each group.
    data : GroupedData, optional
        Receives the fingerprints of the groups.
    """
    n_groups, p = len(keys), matrix.values.shape[1]
    groups = Groups(runs, n_groups, LOCKSTEP_MAX)
    raw, families = np.empty((n_groups, p, N_RESULTS)), np.empty((n_groups, p), dtype=np.int64)
    units, has_units = np.ones((n_groups, p)), False
    censored = np.empty((n_groups if matrix.ends is not None else 0, p, N_CENSORED_FIELDS))
    scratch = BlockScratch()

    def fit_side_by_side(part: Matrix, batch: slice, threads: int) -> None:
        """Fit the groups `batch` on several threads, and store the results.

        `part` has the columns of the first of these groups, then those of the second, and so on.
        """
        nonlocal has_units
        at = groups.codes[batch]
        each = requested.tiled(at.size)
        if given is not None:
            each = each._replace(lmbda=given[at].ravel())
        try:
            found = fit_columns(part, spec, each, Run(threads))
        except ValueError as error:
            raise _locate_error(error, groups, batch, matrix, keys) from None
        shape = raw[at].shape
        raw[at], families[at] = found.kernel_rows.reshape(shape), found.family_codes.reshape(shape[:-1])
        if found.censored is not None:
            censored[at] = found.censored.reshape(censored[at].shape)
        if found.unit_weights is not None:
            has_units = True
            units[at] = found.unit_weights.reshape(shape[:-1])

    def fit_batch(batch: slice, threads: int) -> None:
        block = groups.pad_batch(matrix.values, batch, scratch)
        if data is not None:
            data.record_batch(groups.codes[batch], block, groups.lengths[batch])
        fit_side_by_side(Matrix(block.T, None, False), batch, threads)

    def fit_each(batch: slice, threads: int) -> None:
        for k in range(batch.start, batch.stop):
            part = _rows_of(matrix, groups.rows(k))
            if data is not None:
                data.record_group(int(groups.codes[k]), part)
            fit_side_by_side(part, slice(k, k + 1), threads)

    can_pad = matrix.weight is None and matrix.ends is None
    groups.for_each_batch(fit_batch if can_pad else fit_each, p, run.n_threads, run.progress)
    flat = raw.reshape(-1, N_RESULTS)
    return ColumnTable(
        flat,
        families.ravel(),
        unit_weights=units.ravel() if has_units else None,
        censored=None if matrix.ends is None else censored.reshape(-1, N_CENSORED_FIELDS),
    )


def _rows_of(matrix: Matrix, rows: Any) -> Matrix:
    weight = None if matrix.weight is None else matrix.weight[rows]
    ends = None if matrix.ends is None else matrix.ends[rows]
    return Matrix(matrix.values[rows], None, False, weight, ends)


def _locate_error(error: ValueError, groups: Groups, batch: slice, matrix: Matrix, keys: Keys) -> ValueError:
    """Return an error that names the user's column and row (or group) instead of a place in a matrix of groups.

    The matrix of groups has the columns of the first group, then those of the second group, and so on. An error without
    a place in a column is returned unchanged.

    Parameters
    ----------
    error : ValueError
        The error, with its place in the matrix of groups.
    groups : Groups
        The rows of each group.
    batch : slice
        The groups whose columns are in the matrix.
    matrix : Matrix
        The data of the user.
    keys : Keys
        The labels of the groups.
    """
    place = place_of(error)
    if place is None or place.column is None:
        return error
    k, j = divmod(place.column, matrix.values.shape[1])
    if place.row is None:
        where = f"group {keys.label(int(groups.codes[batch.start + k]))!r}"
    else:
        where = f"row {np.arange(len(matrix.values))[groups.rows(batch.start + k)][place.row]}"
    if not matrix.was_vector:
        where = f"{column_label(j, matrix.names)}, {where}"
    return ValueError(f"{where}: {place.reason}")
