"""Conversion of arrays and data frames to numbers, and validation.

Every input becomes an array of real numbers, or raises an error whose message is one sentence with column, row and
remedy. A TypeError means that data of this kind can never be fitted, a ValueError that the kind is right, but the shape
or a value is wrong.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.alignment import are_default, axis_labels, few, is_whole_label, may_go_by_position
from powerkern._input.array_libraries import is_foreign_array, read_foreign_array
from powerkern._input.columns import COMPLAINTS, describe_dtype, is_number, kind_of, objects_as_floats, reject_cells
from powerkern._input.foreign import is_instance_by_name, library, refuse_foreign
from powerkern._input.frame import Frame
from powerkern._input.messages import did_you_mean, shown, warn
from powerkern._input.wrapping import as_frame
from powerkern._typing import BoolArray


class Matrix(NamedTuple):
    """A matrix as the user passed it: any real dtype, memory order, strides and byte order."""

    #: Two-dimensional; shares memory with the input wherever the input is an array already.
    values: NDArray[Any]
    #: Labels of the columns, if there are any.
    names: list[Any] | None
    #: Whether the input was one-dimensional; `values` then has shape (n, 1).
    was_vector: bool
    #: Weights of the rows; None if there are none.
    weight: NDArray[np.float64] | None = None
    #: Second end of the interval of each censored cell; `values` has the first. -inf or inf: the value lies below or
    #: above the first end. NaN: the cell is not censored. None: no cell is censored.
    ends: NDArray[np.float64] | None = None
    #: Labels of the columns in the data, which `names` may replace; None if the data have none.
    labels: list[Any] | None = None
    #: The input, and the part of it that was read, for results in the form of the input.
    given: Any = None
    part: Any = None


# --- matrices -----------------------------------------------------------------------------------------


def as_matrix(X: object, column_names: Sequence[str] | None = None, what: str = "X") -> Matrix:
    """Read anything array-like as a two-dimensional array of real numbers, without a copy if possible.

    Parameters
    ----------
    X : array_like of shape (n, p) or (n,)
        Array, masked array, nested lists, data frame or series, or anything with ``__array__``, ``__dlpack__`` or
        ``__arrow_c_stream__``. Masked and null entries become NaN. Numeric columns of different types become one
        float64 array.
    column_names : sequence of str, optional
        Names of the columns; by default the data frame's.
    what : str, default "X"
        Name of the argument in messages.

    Raises
    ------
    TypeError
        X does not hold real numbers, is sparse, or is a Dask collection.
    ValueError
        X has neither one nor two dimensions, is ragged or empty, or `column_names` do not match the columns.
    """
    matrix = as_rows(X, column_names, what)
    if matrix.values.shape[0] == 0:
        raise ValueError(f"{what} has no rows (shape {matrix.values.shape}); pass at least one row")
    return matrix


def as_rows(X: object, column_names: Sequence[str] | None = None, what: str = "X") -> Matrix:
    """Read a matrix as `as_matrix` does, but accept a matrix without rows."""
    values, names, wide = _contents(X, what, column_names)
    labels = names
    _warn_of_rounding(values, wide, column_names if names is None else names, what)
    was_vector = values.ndim == 1
    if was_vector:
        values = values[:, np.newaxis]
    p = values.shape[1]
    if p == 0:
        raise ValueError(f"{what} has no columns (shape {values.shape}); pass at least one column")
    if column_names is not None:
        names = as_names(column_names, p)
    return Matrix(values, names, was_vector, labels=labels)


def numbers(X: object, what: str = "X") -> NDArray[Any]:
    """Convert anything array-like to real numbers in an array of the same shape; masked and null entries become NaN.

    `what` is the name of the argument in messages.

    Raises
    ------
    TypeError
        If X does not hold real numbers: text, dates, categories, complex numbers, sparse or lazy arrays.
    ValueError
        If X is ragged, or holds integers beyond the range of float64.
    """
    return _contents(X, what, dimensions=None)[0]


def refuse_non_numbers(X: object, what: str = "X") -> None:
    """Raise the errors of `numbers` without converting the data; object arrays of Python numbers are accepted."""
    frame = as_frame(X)
    if frame is not None:
        _refuse_columns(frame, what)
        return
    values = np.asarray(X) if hasattr(X, "__array__") else _from_sequence(X, what)
    if values.dtype == object and all(map(is_number, values.flat)):
        _as_floats(values, what)
    elif kind_of(values.dtype) != "number":
        _reject_array(kind_of(values.dtype), values.dtype, values, what, None)


def as_reals(what: str, value: object) -> NDArray[np.float64]:
    """Return `value` as a float64 array of any number of dimensions; masked and null entries become NaN."""
    try:
        array = numbers(value, what)
    except TypeError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be a real number or real numbers, got {shown(value)}")
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        return array.astype(np.float64)


def _contents(
    X: object, what: str, column_names: Sequence[str] | None = None, dimensions: tuple[int, ...] | None = (1, 2)
) -> tuple[NDArray[Any], list[Any] | None, list[bool]]:
    """Read anything array-like as an array of real numbers.

    Parameters
    ----------
    X : object
        The input.
    what : str
        Name of the argument in messages.
    column_names : sequence of str, optional
        Names of the columns, for messages.
    dimensions : tuple of int or None
        Accepted numbers of dimensions; None: any.

    Returns
    -------
    ndarray, list or None, list of bool
        The numbers; the names of the columns in the input; whether float64 may round integers, for each column or once
        for all columns.
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and (dimensions is None or X.ndim in dimensions):
        return X, None, [False]
    frame = as_frame(X)
    if frame is not None:
        _refuse_columns(frame, what)
        wide = [frame.has_wide_integers(j) for j in range(len(frame.types))]
        return _frame_values(frame, what), frame.names, wide
    refuse_foreign(X, what)
    names = axis_labels(X)
    X = read_foreign_array(X, what) if is_foreign_array(X) else filled(X)
    values = np.asarray(X) if hasattr(X, "__array__") else _from_sequence(X, what)
    if dimensions is not None and values.ndim not in dimensions:
        described = f"has {values.ndim} dimensions" if values.ndim else f"is a {type(X).__name__}"
        if library(X) == "xarray" and values.ndim > 2:
            raise ValueError(f"{what} {described}; fit with powerkern.xarray, which takes any number of dimensions")
        error = TypeError if values.ndim == 0 and kind_of(values.dtype) != "number" else ValueError
        raise error(f"{what} {described}; pass a table of shape (n, p) or one column of shape (n,)")
    kind = kind_of(values.dtype)
    if kind != "number":
        # numbers beside text in a list have become text: look for the culprit in the list itself
        cells = values if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        _reject_array(kind, values.dtype, cells, what, None if column_names is None else list(column_names))
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
            values = values.astype(np.float64)
    return values, names, [describe_dtype(values.dtype).is_wide_integer]


#: Largest integer up to which float64 represents every integer.
_LARGEST_INTEGER = 2**53


def _warn_of_rounding(values: NDArray[Any], wide: list[bool], names: Sequence[str] | None, what: str) -> None:
    """Warn about columns of integers too large for float64.

    Parameters
    ----------
    values : ndarray
        The numbers.
    wide : list of bool
        Whether float64 may round numbers of the integer type: one entry per column, or one for all.
    names : sequence of str or None
        Names of the columns.
    what : str
        Name of the argument in messages.
    """
    if not any(wide) or values.size == 0:
        return
    if values.ndim == 1:
        values = values[:, np.newaxis]
    p = values.shape[1]
    at = np.flatnonzero(np.broadcast_to(wide, (p,)))
    chosen = values if at.size == p else values[:, at]
    with np.errstate(invalid="ignore"):
        high, low = np.fmax.reduce(chosen, axis=0), np.fmin.reduce(chosen, axis=0)
    # a float64 value of 2**53 may be a larger integer, rounded down
    beyond = _LARGEST_INTEGER + (values.dtype.kind in "iu")
    large = at[(high >= beyond) | (low <= -beyond if values.dtype.kind != "u" else False)]
    if large.size:
        known = names if names is not None and len(names) == p else None
        where = column_labels(large, known)
        warn(
            f"{what} holds integers beyond 2**53 ({where}): float64, in which everything is computed, rounds them; "
            "subtract a constant, or drop columns that are identifiers"
        )


def _from_sequence(X: Any, what: str) -> NDArray[Any]:
    """Convert a list or scalar to an array, as `numpy.asarray` does; Python objects that are numbers become float64.

    None becomes NaN. Integers too large for int64 become float64, with a warning if this may round them.

    Parameters
    ----------
    X : object
        The list or scalar.
    what : str
        Name of the argument in messages.
    """
    try:
        values = np.asarray(X)
    except ValueError:
        raise _ragged(X, what) from None
    if values.dtype != object or values.ndim == 0 or not all(map(is_number, values.flat)):
        return values
    floats = _as_floats(values, what)
    _warn_of_rounding(floats, [any(isinstance(cell, int) for cell in values.flat)], None, what)
    return floats


def _ragged(X: Any, what: str) -> ValueError:
    lengths = [_length(row) for row in X]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            return ValueError(
                f"{what} is ragged: row 0 has {_count(lengths[0], 'value')}, row {i} has {_count(length, 'value')}; "
                "all rows need the same number of values"
            )
    return ValueError(
        f"{what} is ragged: lists inside its rows differ in length; pass a table of shape (n, p) or one column of "
        "shape (n,)"
    )


def _as_floats(values: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Return an array of Python numbers as float64; None becomes NaN.

    `what` is the name of the argument in messages.
    """
    try:
        return objects_as_floats(values.ravel()).reshape(values.shape)
    except OverflowError:
        raise _too_large(what) from None


def _too_large(what: str) -> ValueError:
    return ValueError(
        f"{what} has integers beyond the range of float64, 1.8e308; divide all of them by a constant first"
    )


def _length(row: Any) -> int | None:
    """Return the number of values in a row, or None if the row is a single value."""
    try:
        return None if isinstance(row, str | bytes) else len(row)
    except TypeError:
        return None


def filled(X: Any) -> Any:
    """Return a masked array as a plain array with NaN for masked entries; return anything else unchanged."""
    if not is_masked_array(X):
        return X
    if not np.ma.is_masked(X) or kind_of(X.dtype) != "number":
        return np.asarray(X.data)
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    values = np.array(X.data, dtype=dtype)
    values[np.ma.getmaskarray(X)] = np.nan
    return values


def is_masked_array(X: object) -> bool:
    """Return whether X is a masked array, without touching `numpy.ma`, which NumPy imports at first use."""
    return type(X) is not np.ndarray and is_instance_by_name(X, "numpy.ma", "MaskedArray")


def _refuse_columns(frame: Frame, what: str) -> None:
    for j in range(len(frame.types)):
        if not frame.holds_numbers(j):
            _reject_column(frame, j, what)


def _frame_values(frame: Frame, what: str) -> NDArray[Any]:
    """Return the values of a data frame as one array, without a copy where the library can provide it.

    `what` is the name of the argument in messages.

    Columns of one NumPy type keep this type; all others become float64, or float32 if every column is of single
    precision.
    """
    types = frame.types
    if not types:
        return np.empty((0, 0))
    if types[0].kind == "number" and len(set(types)) == 1:
        whole = frame.to_array()
        if whole is not None and kind_of(whole.dtype) == "number":  # objects where the library has missing values
            return whole
    dtype = np.float32 if all(each.is_single for each in types) else np.float64
    first = _frame_column(frame, 0, dtype, what)
    if frame.is_series:
        return first
    values = np.empty((first.size, len(types)), dtype=dtype, order="F")
    values[:, 0] = first
    for j in range(1, len(types)):
        values[:, j] = _frame_column(frame, j, dtype, what)
    return values


def _frame_column(frame: Frame, j: int, dtype: DTypeLike, what: str) -> NDArray[Any]:
    if frame.types[j].kind != "object":
        return frame.column(j, dtype)
    try:
        return objects_as_floats(frame.objects(j)).astype(dtype)
    except OverflowError:
        raise _too_large(what) from None


def output_type(dtype: Any) -> type[np.floating[Any]]:
    """Return the type of transformed values: float32 for float32 input of either byte order, otherwise float64."""
    return np.float32 if isinstance(dtype, np.dtype) and dtype.newbyteorder("=") == np.float32 else np.float64


# --- refusals of non-numbers -----------------------------------------------------------------------------


def _reject_column(frame: Frame, j: int, what: str) -> NoReturn:
    kind, name = frame.types[j][:2]
    label = what if frame.is_series else column_label(j, frame.names)
    cells = frame.objects(j) if kind in ("object", "text") else []
    if kind == "object" or any(cell is not None for cell in cells):
        reject_cells(cells, lambda i: f"{label}, row {i}", label, name)
    raise TypeError(f"{label} {COMPLAINTS[kind].format(name)}")


def _reject_array(kind: str, dtype: np.dtype[Any], cells: NDArray[Any], what: str, names: list[Any] | None) -> NoReturn:
    if kind in ("object", "text") and cells.size:
        p = cells.shape[1] if cells.ndim == 2 else 1
        known = names if names is not None and len(names) == p else None

        def place(k: int) -> str:
            label = what if cells.ndim == 1 else column_label(k % p, known)
            return f"{label}, row {k // p}"

        reject_cells(cells.ravel().tolist(), place, what, dtype)
    if dtype.names is not None:
        raise TypeError(
            f"{what} is a structured array; pass numpy.lib.recfunctions.structured_to_unstructured({what}, dtype=float)"
        )
    raise TypeError(f"{what} {COMPLAINTS[kind].format(dtype)}")


# --- names and places ---------------------------------------------------------------------------------


def column_label(j: int, names: Sequence[Any] | None) -> str:
    """Return the name of a column for messages: ``column 3`` or ``column 3 ('price')``."""
    return (
        f"column {j}" if names is None or (is_whole_label(names[j]) and names[j] == j) else f"column {j} ({names[j]!r})"
    )


def column_labels(indices: Iterable[int], names: Sequence[str] | None) -> str:
    """Return the names of several columns for messages: the first ten, and the number of the other columns."""
    every = [int(j) for j in indices]
    text = ", ".join(column_label(j, names) for j in every[:10])
    return text if len(every) <= 10 else f"{text} and {len(every) - 10} more"


def warn_of_columns(cases: Iterable[tuple[BoolArray, str]], names: Sequence[str] | None, consequence: str = "") -> None:
    """Warn once about all columns that are affected by any of several cases.

    Parameters
    ----------
    cases : iterable of ((p,) ndarray of bool, str)
        The affected columns and the description of each case.
    names : sequence of str or None
        Names of the columns.
    consequence : str
        Last words of the message, after the cases.
    """
    parts = [f"{column_labels(np.flatnonzero(has), names)}: {what}" for has, what in cases if has.any()]
    if parts:
        warn("; ".join(parts) + consequence)


def position_of(column: object, names: Sequence[Any] | None, p: int) -> int:
    """Return the position of a column among p columns, given its label or its position.

    An integer is a position, unless integers are among the labels: then it is a label, as in pandas.

    Raises
    ------
    ValueError
        No column has this label or position, or several columns have this label.
    """
    labels = [] if names is None else list(names)
    if _is_among(column, labels):
        if labels.count(column) > 1:
            raise ValueError(f"{labels.count(column)} columns have the name {shown(column)}; pass the position instead")
        return labels.index(column)
    is_position = isinstance(column, int | np.integer) and (are_default(labels) or not any(map(is_whole_label, labels)))
    if not is_position and (labels or isinstance(column, str | tuple)):
        there = (
            f"the columns are {few(labels)}{did_you_mean(column, labels)}"
            if labels
            else "the columns have no names; pass a position"
        )
        raise ValueError(f"there is no column {shown(column)}; {there}")
    j = operator.index(column)  # type: ignore[arg-type]  # TypeError otherwise
    if not -p <= j < p:
        raise ValueError(f"there is no column {shown(j)}; there are {p} columns, numbered from 0")
    return j % p


def _is_among(column: object, labels: list[Any]) -> bool:
    """Return whether a label is in a list of labels; True and 1 are different labels."""
    try:
        hash(column)
    except TypeError:
        return False
    if isinstance(column, bool | np.bool_):
        return any(column is label for label in labels)
    return column in labels


@contextlib.contextmanager
def chunk_errors(chunk: str) -> Iterator[None]:
    """Prefix errors raised in this context with the name of the chunk; row numbers are relative to the chunk."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        named = kind(f"in {chunk}: {error}")
        vars(named).update(vars(error))  # the place of the error
        raise named from None


def as_names(column_names: Sequence[Any], p: int) -> list[Any]:
    """Validate and return the names that a user gives to p columns."""
    if isinstance(column_names, str):
        raise TypeError(f"column_names is one string; pass a list of {p} names")
    names = to_list(column_names.tolist() if hasattr(column_names, "tolist") else column_names)
    for j, name in enumerate(names):
        if name is None or not isinstance(name, Hashable):
            raise TypeError(
                f"column_names[{j}] is {shown(name)}, a {type(name).__name__}; labels are text, numbers or tuples"
            )
    if len(names) != p:
        raise ValueError(
            f"column_names has {_count(len(names), 'name')}, X has {_count(p, 'column')}; pass one name per column"
        )
    if len(set(names)) < p:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"column_names has {twice!r} more than once; give every column a different name")
    return names


def check_n_features(
    values: NDArray[Any], p_fitted: int, names: Sequence[Any] | None, fitted_names: Sequence[Any] | None
) -> None:
    """Raise unless the columns of a matrix match those of the fit.

    If the matrix or the fit has no labels, only the numbers of columns are compared. Otherwise the labels must be
    equal, with two exceptions: default labels (0, 1, 2, ...) match any labels that are not integers, and a single
    column may have any name.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix.
    p_fitted : int
        Number of columns of the fit.
    names, fitted_names : sequence or None
        Labels of the columns of the matrix and of the fit.

    Raises
    ------
    ValueError
        The number of columns, their names or their order differ from the fit's.
    """
    p = values.shape[1]
    if names is None or fitted_names is None or may_go_by_position(names, fitted_names):
        if p != p_fitted:
            raise ValueError(f"X has {_count(p, 'column')}, the fit has {p_fitted}; pass the columns that were fitted")
        return
    if list(names) == list(fitted_names):
        return
    missing = [name for name in fitted_names if name not in names]
    others = [name for name in names if name not in fitted_names]
    beside = f"; it also has {few(others)}" if others else ""
    if missing:
        remedy = "; pass X.to_numpy() to take columns by position" if any(map(is_whole_label, missing)) else ""
        raise ValueError(f"X lacks {few(missing)} of the columns that were fitted{beside}{remedy}")
    if p != p_fitted:
        raise ValueError(
            f"X has {p} columns, the fit has {p_fitted}{beside}; pass the columns that were fitted, each once"
        )
    j = next(j for j in range(p) if names[j] != fitted_names[j])
    there = f"{column_label(j, names)} of X is {fitted_names[j]!r} in the fit"
    raise ValueError(f"X has the columns of the fit in another order: {there}; reorder the columns of X")


def _count(n: int | None, noun: str) -> str:
    """Return a count with its noun, such as "2 columns"; None gives "a single column"."""
    if n is None:
        return f"a single {noun}"
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


# --- words, weights and output arrays -----------------------------------------------------------------


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether an argument is an integer of any size; True and False are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether an argument is an integer of at most 64 bits; True and False are not."""
    return is_integer(value) and -(2**63) <= int(value) < 2**63


def is_real(value: object) -> TypeGuard[float]:
    """Return whether an argument is a real number; True and False are not."""
    return is_whole(value) or isinstance(value, float | np.floating)


def to_list(value: Any) -> list[Any]:
    """Return the entries of an iterable, or of a memory view of any dimension, as a list."""
    return value.tolist() if isinstance(value, memoryview) else list(value)


def as_choice(what: str, value: object, known: Iterable[str]) -> str:
    """Return an argument that is one of the words `known`; `what` is the name of the argument in the message.

    Raises
    ------
    ValueError
        The argument is none of these words; the message suggests the most similar one.
    """
    options = list(known)
    if isinstance(value, str) and value in options:
        return value
    raise ValueError(
        f"{what} must be one of {', '.join(map(repr, options))}, got {shown(value)}{did_you_mean(value, options)}"
    )


def as_flag(what: str, value: object) -> bool:
    """Return an argument as a bool; raise TypeError unless it is True or False.

    `what` is the name of the argument in the message.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be True or False, got {shown(value)}")
    return bool(value)


#: The sum of the weights must be larger than this.
_LEAST_TOTAL = 1e-290


def as_weights(sample_weight: object, n_rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    """Validate sample weights and return them as a contiguous float64 vector; `name` is the name of the argument.

    Raises
    ------
    TypeError
        The weights are not real numbers.
    ValueError
        The weights are not a vector of length `n_rows`; a weight is negative, NaN or infinite; or the sum is zero or
        beyond the range of float64.
    """
    values, *_ = _contents(sample_weight, name)  # no warning of rounding: nothing is lost by it
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has shape {values.shape}, X has {n_rows} rows; pass one weight per row")
    weights = np.ascontiguousarray(values, dtype=np.float64)
    low, high = weights.min(initial=0.0), weights.max(initial=0.0)
    if not (low >= 0.0 and high < np.inf):
        i = int(np.argmin((weights >= 0.0) & (weights < np.inf)))
        raise ValueError(f"{name}, row {i}: the weight is {weights[i]}; weights must be finite and not negative")
    if high == 0.0:
        raise ValueError(f"{name} is zero in every row; give at least some rows a positive weight")
    if not (high > _LEAST_TOTAL and float(high) * n_rows < np.inf):  # otherwise the sum is in range
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not _LEAST_TOTAL < total < np.inf:
            raise ValueError(f"{name} sums to {total:.3g}, beyond the range of float64; divide it by its largest value")
    return weights
