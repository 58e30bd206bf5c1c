"""Steps of `PowerFit.transform` and its inverse: allocation of the output, and errors about values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arguments import domain_error, domain_error_in
from powerkern._input.arrays import Matrix, output_type
from powerkern._input.reading import as_out
from powerkern._results.column_table import ColumnTable
from powerkern._results.inversion import first_without_inverse
from powerkern._typing import IntArray


def allocate_output(matrix: Matrix, out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the output array, which is `out` or a new array, and a two-dimensional view of it."""
    dtype = output_type(matrix.values.dtype)
    shape = matrix.values.shape[:1] if matrix.was_vector else matrix.values.shape
    if out is None:
        between, within = map(abs, matrix.values.strides)
        by_column = matrix.values.flags.f_contiguous or between < within
        out = np.empty(shape, dtype=dtype, order="F" if by_column else "C")
    else:
        out = as_out(out, shape, dtype, matrix.values)
    return out, out.reshape(matrix.values.shape) if matrix.was_vector else out


def refuse_outside(matrix: Matrix, counts: IntArray, table: ColumnTable, names: list[Any] | None) -> None:
    """Raise a ValueError for the first value outside the domain, if there is any.

    Parameters
    ----------
    matrix : Matrix
        The data.
    counts : (p,) ndarray of int
        Number of values outside the domain in each column.
    table : ColumnTable
        The fitted columns.
    names : list or None
        Labels of the fitted columns, for messages about data without labels.
    """
    if counts.any():
        j = int(np.argmax(counts > 0))
        raise domain_error_in(matrix, j, matrix.names or names, shift=table.shift[j])


def error_without_inverse(
    matrix: Matrix, j: int, table: ColumnTable, standardize: bool, names: list[Any] | None, dtype: np.dtype[Any]
) -> ValueError:
    """Return the error for the first value of a column that has no inverse.

    Parameters
    ----------
    matrix : Matrix
        The transformed values.
    j : int
        Position of the column.
    table : ColumnTable
        The fitted columns.
    standardize : bool
        True if the values are standardised.
    names : list or None
        Labels of the fitted columns, for messages about data without labels.
    dtype : dtype
        Type of the result.
    """
    z = matrix.values[:, j]
    i = first_without_inverse(table, j, z, standardize, dtype)
    return domain_error("without inverse", None if matrix.was_vector else j, i, float(z[i]), matrix.names or names)
