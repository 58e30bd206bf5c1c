"""Read data (numbers, column names, row weights), and return results in the form of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from powerkern._input import frames
from powerkern._input.alignment import axis_labels, row_labels
from powerkern._input.arguments import is_weightless, weights_of
from powerkern._input.arrays import Matrix, as_matrix, as_rows, check_n_features, is_masked_array
from powerkern._input.columns import LEAVE_OUT
from powerkern._input.foreign import library
from powerkern._input.messages import Rewording
from powerkern._input.wrapping import as_frame
from powerkern._typing import FloatArray

#: Rewording for functions that have the argument `non_numeric`, which their messages then suggest.
OFFERING_NON_NUMERIC = Rewording((f"{LEAVE_OUT}$", f"{LEAVE_OUT} (of a data frame: non_numeric='ignore')"))
#: Rewording for functions that need all columns, such as those that apply a fit: their messages do not suggest leaving
#: a column out.
NEEDING_ALL = Rewording((f"{LEAVE_OUT}$", ""))


def read(
    X: object,
    sample_weight: ArrayLike | str | None = None,
    *,
    column_names: Sequence[str] | None = None,
    non_numeric: frames.NonNumeric | None = None,
    what: str = "X",
) -> Matrix:
    """Read the data to fit and their weights.

    Parameters
    ----------
    X : array_like or data frame
        As for `as_matrix`.
    sample_weight : array_like or str, optional
        Weights, or the name of the column of a data frame that holds them.
    column_names : sequence of str, optional
        Names of the columns; by default the data frame's.
    non_numeric : {"raise", "warn", "ignore"}, optional
        Treatment of non-numeric columns of a data frame. Default: raise, for callers that offer no choice.
    what : str, default "X"
        Name of the argument in messages.
    """
    is_plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim in (1, 2) and X.size > 0
    raises = isinstance(non_numeric, str | None) and non_numeric in (None, "raise")  # a series compares its entries
    if is_plain and raises and sample_weight is None and column_names is None:
        X = cast(FloatArray, X)  # which leaves nothing to read: the frames below would show in small fits
        return Matrix(X if X.ndim == 2 else X[:, np.newaxis], None, X.ndim == 1)
    rows, weight = frames.without_weights(as_frame(X) or X, sample_weight, what)
    if non_numeric is None:
        matrix = as_matrix(rows, column_names, what)
    else:
        chosen = frames.chosen_positions(rows, non_numeric)
        if chosen is not None:
            rows = frames.select(rows, None, chosen)
        with OFFERING_NON_NUMERIC:
            matrix = as_matrix(rows, column_names, what)
    return matrix._replace(weight=weights_of(weight, len(matrix.values)))


def read_chunk(
    chunk: object,
    sample_weight: ArrayLike | str | None = None,
    column_names: Sequence[str] | None = None,
    what: str = "chunk",
    *,
    labels: Sequence[Any] | None = None,
) -> Matrix:
    """Read one chunk of the data. Unlike `read`, accept a chunk without rows and weights that are all zero.

    Parameters
    ----------
    chunk : array_like or data frame
        The rows of the chunk.
    sample_weight, column_names, what
        As in `read`.
    labels : sequence, optional
        Labels of the columns of earlier chunks; a data frame with the same labels is read in their order.
    """
    rows, weight = frames.without_weights(as_frame(chunk) or chunk, sample_weight, what)
    rows = frames.order_chunk(rows, labels)
    matrix = as_rows(rows, column_names, what)
    n = len(matrix.values)
    return matrix._replace(weight=np.zeros(n) if is_weightless(weight, n) else weights_of(weight, n))


def read_fitted(
    X: object,
    names: list[Any] | None,
    n_features: int,
    sample_weight: ArrayLike | str | None = None,
    *,
    what: str = "X",
) -> Matrix:
    """Read the fitted columns of `X`; a data frame may hold them in any order, next to other columns.

    Columns without labels get the names of the fit, for messages.

    Parameters
    ----------
    X : array_like or data frame
        As for `as_matrix`.
    names : list or None
        Labels of the fitted columns.
    n_features : int
        Number of fitted columns.
    sample_weight, what
        As in `read`.

    Raises
    ------
    ValueError
        If the number of columns, their names or their order differ from the fit's.
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and X.size > 0 and sample_weight is None:  # as in `read`
        values = X[:, np.newaxis] if X.ndim == 1 else X
        if values.shape[1:] == (n_features,):
            return Matrix(values, names, X.ndim == 1, given=X, part=X)
    given = as_frame(X) or X  # recognised once
    rows, weight = frames.without_weights(given, sample_weight, what)
    part = frames.columns_named(rows, names)
    with NEEDING_ALL:
        matrix = as_matrix(part, what=what)
    if matrix.was_vector and n_features > 1 and names is not None:
        _refuse_one_row(X, names, what)
    if names is not None and matrix.names is not None:
        _refuse_turned(X, names, what)
    check_n_features(matrix.values, n_features, matrix.names, names)
    own = matrix.names or names
    return matrix._replace(names=own, weight=weights_of(weight, len(matrix.values)), given=given, part=part)


def _refuse_turned(X: Any, names: list[Any], what: str) -> None:
    """Raise if `X` is an xarray matrix whose first dimension has the labels `names`; messages call it `what`."""
    if library(X) != "xarray" or len(X.dims) != 2:
        return
    rows, columns = X.dims
    labels = X.indexes.get(rows)
    if labels is not None and labels.tolist() == list(names) != axis_labels(X):
        raise ValueError(
            f"{what} has the fitted columns along its first dimension, {rows!r}; pass {what}.transpose({columns!r}, "
            f"{rows!r}), or fit with powerkern.xarray, which matches dimensions by name"
        )


def _refuse_one_row(X: object, names: list[Any], what: str) -> None:
    """Raise if `X` is one row of a data frame: a series with an entry for each of `names`; messages call it `what`."""
    labels = row_labels(X)
    if labels is not None and len(labels) == len(names) and set(labels) == set(names):
        raise ValueError(f"{what} is one row of a data frame; pass a frame of one row, such as X.iloc[[0]]")


def wrap_like_input(matrix: Matrix, values: NDArray[Any]) -> Any:
    """Return the input with `values` in place of the columns that were read; see `replace_columns`."""
    if matrix.was_vector and values.ndim == 2:
        values = values[:, 0]
    return frames.replace_columns(matrix.given, matrix.part, values)


def labelled(matrix: Matrix, values: NDArray[Any]) -> Any:
    """Return `values` in the shape of the columns that were read, with their index and names if they have any."""
    return frames.labelled(matrix.part, values[:, 0] if matrix.was_vector else values)


def as_out(out: object, shape: tuple[int, ...], dtype: DTypeLike, values: NDArray[Any] | None = None) -> NDArray[Any]:
    """Validate and return an array that the user passed as ``out=``.

    Parameters
    ----------
    out : ndarray
        The array to check.
    shape, dtype
        Required shape and type of `out`.
    values : ndarray, optional
        The input. `out` may be the same array, but must not be a shifted view of the same memory.

    Raises
    ------
    TypeError
        `out` is not an array.
    ValueError
        `out` has another shape or dtype, is read-only, or overlaps the input without being the same array.
    """
    if not isinstance(out, np.ndarray) or is_masked_array(out):
        raise TypeError(f"out is a {type(out).__name__}; pass a plain NumPy array")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the result has {shape}; pass np.empty({shape})")
    if out.dtype != np.dtype(dtype):
        raise ValueError(f"out has dtype {out.dtype}, the result has {np.dtype(dtype)}; pass an array of that dtype")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass an array that can be written to")
    if values is not None and _overlap_shifted(out, values):
        raise ValueError(
            "out overlaps X in memory; pass X itself to work in place, or an array that does not overlap it"
        )
    return out


def _overlap_shifted(out: NDArray[Any], values: NDArray[Any]) -> bool:
    """Return whether writing to a cell of `out` could change input cells that have yet to be read."""
    if _layout(out) == _layout(values):
        return False
    try:
        return np.shares_memory(out, values, max_work=100_000)  # type: ignore[arg-type]  # the stub is too narrow
    except np.exceptions.TooHardError:
        return True


def _layout(a: NDArray[Any]) -> tuple[int, np.dtype[Any], list[tuple[int, int]]]:
    """Return the address, dtype and strides of an array, without the axes of length 1."""
    axes = [(length, stride) for length, stride in zip(a.shape, a.strides, strict=True) if length != 1]
    return a.__array_interface__["data"][0], a.dtype, axes
