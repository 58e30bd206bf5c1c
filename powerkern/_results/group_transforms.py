"""Transform rows that belong to groups, each by the fit of its group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import transform_matrix
from powerkern._engine.gather import BlockScratch
from powerkern._engine.ragged import Groups, lies_in_runs, transform_runs
from powerkern._estimators.routes import LOCKSTEP_MAX
from powerkern._input.arguments import domain_error
from powerkern._input.arrays import Matrix, output_type
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.labels import Runs
from powerkern._results.column_table import ColumnTable
from powerkern._results.image_repair import ImageRepair, error_without_image
from powerkern._results.inversion import (
    Inversion,
    first_without_inverse,
    warn_about_lost_digits,
    warn_about_values_without_inverse,
)
from powerkern._results.lost_digits import LostDigits
from powerkern._typing import IntArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction


def transform_by_group(
    matrix: Matrix,
    runs: Runs,
    table: ColumnTable,
    *,
    standardize: bool,
    completion: ImageRepair | Inversion,
    out_of_range: OutOfRange,
    infinite: Infinite,
    names: list[Any] | None,
    list_columns: Callable[[IntArray], str],
    n_threads: int,
) -> NDArray[Any]:
    """Transform every row by the fit of its group, or undo the transform; rows without a group become NaN.

    Parameters
    ----------
    matrix : Matrix
        The rows.
    runs : Runs
        The group codes of the rows; negative for rows without a group.
    table : ColumnTable
        The results of all columns of the first group, then of the second, and so on.
    standardize : bool
        True if transformed values are standardised.
    completion : ImageRepair or Inversion
        An `ImageRepair` to transform, or an `Inversion` to undo the transform. It is made for all columns of the table
        and for the floating-point type of the result.
    out_of_range : {"nan", "raise", "clip"}
        Treatment of values without an image.
    infinite : {"raise", "missing", "keep"}
        Treatment of infinite values.
    names : list or None
        Labels of the columns.
    list_columns : function
        Takes positions in the table and returns text for messages that names their groups and columns.
    n_threads : int
        Maximum number of threads.

    Raises
    ------
    ValueError
        Values outside the domain, or values without an inverse if ``out_of_range="raise"``.
    """
    values, p, families = matrix.values, matrix.values.shape[1], table.family_codes
    out = np.empty_like(values, dtype=output_type(values.dtype), subok=False)
    forward = isinstance(completion, ImageRepair)
    direction = (forward_direction if forward else inverse_direction)(standardize)
    plain = forward and out_of_range == infinite == "raise"
    if plain and lies_in_runs(values, runs) and (families == families[0]).all():
        counts = transform_runs(values, runs, int(families[0]), direction, table.kernel_rows, out, n_threads)
        _raise_first_error(matrix, runs, table, np.flatnonzero(counts), infinite, names)
        return out
    groups, scratch, images = Groups(runs, len(table) // p, LOCKSTEP_MAX), BlockScratch(), BlockScratch()
    failed: list[IntArray] = []
    lost_digits: list[LostDigits] = []

    def transform_batch(batch: slice, threads: int) -> None:
        columns = (groups.codes[batch, np.newaxis] * p + np.arange(p)).ravel()
        block = groups.pad_batch(values, batch, scratch)
        part = completion.part(columns)
        if isinstance(part, ImageRepair) and out_of_range == "clip":
            part.clip_block(block)
        codes, rows, fields = table.family_codes[columns], table.kernel_rows[columns], table.row_fields[:, columns]
        image = images.block(*block.shape)
        n_lost = transform_matrix(block.T, image.T, codes, direction, rows, threads, part, fields)
        if isinstance(part, ImageRepair):
            part.repair_rounded(block, image)
        groups.scatter_batch(image, batch, out)
        if n_lost.any():
            failed.append(columns[n_lost > 0])
        if isinstance(part, Inversion):
            lost_digits.extend(part.find_lost_digits())

    groups.for_each_batch(transform_batch, p, n_threads)
    if failed:
        columns = np.sort(np.concatenate(failed))
        first = int(columns[0])
        if forward:
            _raise_first_error(matrix, runs, table, columns, infinite, names)
        elif out_of_range == "raise":
            raise _error_without_inverse(matrix, runs, table, first, standardize, names, out.dtype)
        else:
            warn_about_values_without_inverse(list_columns(columns))
    if isinstance(completion, ImageRepair):
        completion.warn(lambda k: list_columns(np.array([k])))
    warn_about_lost_digits(sorted(lost_digits), lambda k: list_columns(np.array([k])), out.dtype)
    if (runs.codes < 0).any():
        out[runs.rows(runs.codes < 0)] = np.nan
    return out


def _raise_first_error(
    matrix: Matrix,
    runs: Runs,
    table: ColumnTable,
    columns: IntArray,
    infinite: Infinite,
    names: list[Any] | None,
) -> None:
    """Raise an error for the first value without an image, unless its transform merely overflows.

    Parameters
    ----------
    matrix, runs, table, names
        As in `transform_by_group`.
    columns : ndarray of int
        Columns that have values without an image: their positions in `table`, in ascending order.
    infinite
        As in `error_without_image`.
    """
    for k in columns.tolist():
        g, j = divmod(k, matrix.values.shape[1])
        in_group = np.zeros(len(matrix.values))
        in_group[runs.rows(runs.codes == g)] = 1.0
        error = error_without_image(matrix, j, table, k, infinite=infinite, names=names, weight=in_group)
        if error is not None:
            raise error


def _error_without_inverse(
    matrix: Matrix,
    runs: Runs,
    table: ColumnTable,
    k: int,
    standardize: bool,
    names: list[Any] | None,
    dtype: np.dtype[Any],
) -> ValueError:
    """Return the error for the first value without an inverse in one column of one group.

    Parameters
    ----------
    matrix, runs, table, standardize, names
        As in `transform_by_group`.
    k : int
        Position in `table` of the column of this group.
    dtype : dtype
        Type of the result.
    """
    g, j = divmod(k, matrix.values.shape[1])
    rows = np.sort(np.arange(len(matrix.values))[runs.rows(runs.codes == g)])
    z = matrix.values[rows, j]
    first = first_without_inverse(table, k, z, standardize, dtype)
    column = None if matrix.was_vector else j
    return domain_error("without inverse", column, int(rows[first]), float(z[first]), matrix.names or names)
