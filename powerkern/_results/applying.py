"""Methods of a fit that apply it to data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.threads import thread_count
from powerkern._input import batches as _batches
from powerkern._input.arguments import domain_error, domain_error_in
from powerkern._input.arrays import Matrix, as_choice, column_label, column_labels, output_type
from powerkern._input.messages import warn
from powerkern._input.reading import as_out, read_fitted, wrap_like_input
from powerkern._results.columns import ColumnResults, FittedColumns
from powerkern._results.inversion import (
    Inversion,
    OutOfRange,
    first_without_inverse,
    transformed_ends,
    warn_of_lost_digits,
    warn_of_values_without_inverse,
)
from powerkern._typing import IntArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

_OUT_OF_RANGE = get_args(OutOfRange)


def transform(fit: FittedColumns, X: object, *, out: NDArray[Any] | None = None, n_threads: int | None = None) -> Any:
    """Transform every column of `X`.

    Parameters
    ----------
    X : (n, n_features) array-like, or (n,) where the fit was to one column
        NaN stays NaN. Columns that could not be fitted are passed through unchanged. In a data
        frame the fitted columns are found by name, and others are passed through.
    out : ndarray, optional
        Where to write; may be `X` itself, which is then overwritten only if every value is in the domain.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    ndarray, or the kind of `X`: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
        float32 for float32 input, else float64; same shape as `X`, and the order of its memory, by rows or by
        columns, where it is an array. Data frames keep their index, names and order
        of columns; of nullable columns, missing values are null. Tables that are read in batches are transformed
        in batches, when they are read: a lazy frame of polars comes back as one, a data set, scanner, file or
        RecordBatchReader of pyarrow and a relation of DuckDB as a `pyarrow.RecordBatchReader`, which can be read
        once.

    Raises
    ------
    TypeError
        `out` for a table that is read in batches.
    ValueError
        Infinite values, values not above -shift under Box-Cox (naming column and row), or a wrong shape.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 2))
    >>> Z = pk.fit(X, family="box-cox").transform(X)
    >>> bool(np.allclose(Z.mean(axis=0), 0)), bool(np.allclose(Z.std(axis=0), 1))
    (True, True)
    """
    lazily = _batches.applied(X, functools.partial(transform, fit, n_threads=n_threads), out)
    if lazily is not None:
        return lazily
    matrix = read_fitted(X, fit.column_names, fit.n_features)
    direction = forward_direction(fit.standardize)
    result, target = _target(matrix, out)
    n_threads = thread_count(n_threads, matrix.values.size)
    if out is not None:
        if np.shares_memory(target, matrix.values):  # all or nothing: check before overwriting
            counts = fit.columns.count_outside(matrix.values, n_threads)
            _refuse(fit, matrix, counts)
        fit.source.forget(target)
    counts = fit.columns.transform(matrix.values, target, direction, n_threads)
    _refuse(fit, matrix, counts)
    return result if out is not None else wrap_like_input(matrix, result)


def inverse_transform(
    fit: FittedColumns,
    Z: object,
    *,
    out: NDArray[Any] | None = None,
    n_threads: int | None = None,
    out_of_range: OutOfRange = "nan",
) -> Any:
    """Undo `transform`.

    Parameters
    ----------
    Z : (n, n_features) array-like, or (n,) where the fit was to one column
        Transformed values; NaN stays NaN. Data frames are treated as by `transform`.
    out : ndarray, optional
        Where to write; may be `Z` itself.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.
    out_of_range : {"nan", "raise", "clip"}, default "nan"
        A power transform maps onto a half line unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson).
        A value beyond its end has no inverse: it becomes NaN, with one warning; or a ValueError is raised; or
        the value becomes the nearest end of the fitted data (`x_min` or `x_max`).

    Returns
    -------
    ndarray, or the kind of `Z`: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
        float32 for float32 input, else float64; same shape as `Z`.

    Warns
    -----
    UserWarning
        Values that have no inverse. Once, listing columns, if the transform was so flat that fewer than six digits of
        float64, or three of float32, of some values are left, and from which value on.

    Notes
    -----
    Rounding z changes x by ``eps |z|/z'(x)``, which is large where psi is close to the end of its range. Digits count
    relative to ``|x|``, or under Yeo-Johnson to the standard deviation of x at the centre of the column if that is
    larger.
    The transforms of `x_min` and `x_max` become exactly these.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> fit = pk.fit(X)
    >>> bool(np.allclose(fit.inverse_transform(fit.transform(X)), X))
    True
    """
    return invert(fit, Z, out=out, n_threads=n_threads, out_of_range=out_of_range)


def invert(
    fit: FittedColumns,
    Z: object,
    *,
    out: NDArray[Any] | None = None,
    n_threads: int | None = None,
    out_of_range: OutOfRange = "nan",
    warns_of_digits: bool = True,
) -> Any:
    """Undo `transform`, as `inverse_transform` does, with or without its warning about lost digits."""
    as_choice("out_of_range", out_of_range, _OUT_OF_RANGE)
    again = functools.partial(
        invert, fit, n_threads=n_threads, out_of_range=out_of_range, warns_of_digits=warns_of_digits
    )
    lazily = _batches.applied(Z, again, out)
    if lazily is not None:
        return lazily
    matrix = read_fitted(Z, fit.column_names, fit.n_features)
    result, target = _target(matrix, out)
    direction = inverse_direction(fit.standardize)
    inversion = Inversion(fit.columns, fit.standardize, out_of_range, target.dtype)
    threads = thread_count(n_threads, matrix.values.size)

    def apply(to: NDArray[Any] | None) -> None:
        lost = np.flatnonzero(fit.columns.transform(matrix.values, to, direction, threads, inversion))
        if lost.size:
            if out_of_range == "raise":
                raise _inverse_error(fit, matrix, int(lost[0]), target.dtype)
            warn_of_values_without_inverse(column_labels(lost, fit.column_names))

    if out is not None:
        if out_of_range == "raise" and np.shares_memory(target, matrix.values):
            apply(None)  # all or nothing: check before overwriting
        fit.source.forget(target)
    apply(target)
    if warns_of_digits:
        warn_of_lost_digits(inversion.lost_digits(), lambda j: column_label(j, fit.column_names), target.dtype)
    return result if out is not None else wrap_like_input(matrix, result)


def warn_overflow(columns: ColumnResults, labels: Callable[[IntArray], str]) -> None:
    """Warn of columns, as `labels` calls them, whose raw output overflows: a given lambda does not bound it."""
    overflows = np.flatnonzero(np.isinf(transformed_ends(columns, standardize=False)).any(axis=0))
    if overflows.size:
        warn(f"{labels(overflows)}: raw values overflow; standardize=True stays finite")


def _target(matrix: Matrix, out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """The array to return, and it as a matrix."""
    dtype = output_type(matrix.values.dtype)
    shape = matrix.values.shape[:1] if matrix.was_vector else matrix.values.shape
    if out is None:
        between, within = map(abs, matrix.values.strides)
        by_column = matrix.values.flags.f_contiguous or between < within
        out = np.empty(shape, dtype=dtype, order="F" if by_column else "C")
    else:
        out = as_out(out, shape, dtype, matrix.values)
    return out, out.reshape(matrix.values.shape) if matrix.was_vector else out


def _refuse(fit: FittedColumns, matrix: Matrix, counts: IntArray) -> None:
    if counts.any():
        j = int(np.argmax(counts > 0))
        raise domain_error_in(matrix, j, matrix.names or fit.column_names, shift=fit.shift[j])


def _inverse_error(fit: FittedColumns, matrix: Matrix, j: int, dtype: np.dtype[Any]) -> ValueError:
    """Return the error for the first value of column j that has no inverse."""
    z = matrix.values[:, j]
    i = first_without_inverse(fit.columns, j, z, fit.standardize, dtype)
    names = matrix.names or fit.column_names
    return domain_error("without inverse", None if matrix.was_vector else j, i, float(z[i]), names)
