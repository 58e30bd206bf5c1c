"""Checks of all input.

Whatever a user passes becomes a real numeric array, or one sentence that names the column, the row and the remedy.
TypeError: this kind of thing can never be fitted. ValueError: right kind, wrong shape or value.
"""

from __future__ import annotations

import contextlib
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, NamedTuple, NoReturn, TypeGuard

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.foreign import is_of, library, refuse_foreign
from powerkern._input.messages import did_you_mean, warn

#: In place of weights: there are none.
NO_WEIGHTS: NDArray[np.float64] = np.empty(0)


class Matrix(NamedTuple):
    """A matrix as the user gave it: any real dtype, memory order, strides and byte order."""

    #: Two-dimensional; shares memory with the input wherever the input is an array already.
    values: NDArray[Any]
    #: Column names, when there are any.
    names: list[str] | None
    #: Whether the input was one-dimensional; `values` has shape (n, 1) then.
    was_vector: bool
    #: Weights of the rows; empty where there are none.
    weight: NDArray[np.float64] = NO_WEIGHTS
    #: The input and the columns of it that were read, where results are to be of the same kind.
    given: Any = None
    part: Any = None


# --- matrices -----------------------------------------------------------------------------------------


def as_matrix(X: object, column_names: Sequence[str] | None = None, what: str = "X") -> Matrix:
    """Read anything array-like as a two-dimensional real array, without a copy where that is possible.

    Parameters
    ----------
    X : array_like of shape (n, p) or (n,)
        Array, masked array, nested lists, data frame or series (pandas, polars, pyarrow), or anything with
        ``__array__``. Masked and null entries become NaN. Numeric columns of different types become one float64 array.
    column_names : sequence of str, optional
        Names of the columns; by default those of the data frame.
    what : str, default "X"
        What messages call the argument.

    Raises
    ------
    TypeError
        If X does not hold real numbers, is sparse, or is a Dask collection.
    ValueError
        If X is not one- or two-dimensional, is ragged or empty, or `column_names` do not fit.
    """
    matrix = as_rows(X, column_names, what)
    if matrix.values.shape[0] == 0:
        raise ValueError(f"{what} has no rows (shape {matrix.values.shape}); there is nothing to do")
    return matrix


def as_rows(X: object, column_names: Sequence[str] | None = None, what: str = "X") -> Matrix:
    """`as_matrix` for input that may have no rows, but must have columns."""
    values, names = _read(X, what, column_names)
    was_vector = values.ndim == 1
    if was_vector:
        values = values[:, np.newaxis]
    p = values.shape[1]
    if p == 0:
        raise ValueError(f"{what} has no columns (shape {values.shape}); there is nothing to do")
    if column_names is not None:
        names = as_names(column_names, p)
    return Matrix(values, names, was_vector)


def _read(X: object, what: str, column_names: Sequence[str] | None = None) -> tuple[NDArray[Any], list[str] | None]:
    """X as a real array of one or two dimensions, and the names of its columns."""
    values, names, wide = _contents(X, what, column_names)
    _warn_of_rounding(values, wide, names if column_names is None else column_names, what)
    return values, names


def numbers(X: object, what: str = "X") -> NDArray[Any]:
    """Anything array-like, of any number of dimensions, as a real array; masked and null entries are NaN.

    Raises
    ------
    TypeError
        If X does not hold real numbers: text, dates, categories, complex numbers, sparse or lazy arrays.
    ValueError
        If X is ragged, or holds integers beyond the range of float64.
    """
    return _contents(X, what, dimensions=None)[0]


def refuse_non_numbers(X: object, what: str = "X") -> None:
    """Raise as `numbers` does, without reading the numbers; columns of Python objects that are all numbers pass."""
    table = _table(X)
    if table is not None:
        for j, dtype in enumerate(table.types):
            kind = _kind(dtype)
            if kind != "number" and not (kind == "object" and all(map(_is_real, table.objects(j)))):
                _reject_column(table, j, what)
        return
    values = np.asarray(X) if hasattr(X, "__array__") else _from_sequence(X, what)
    if values.dtype == object and all(map(_is_real, values.flat)):
        _as_floats(values, what)
    elif _kind(values.dtype) != "number":
        _reject_array(_kind(values.dtype), values.dtype, values, what, None)


def as_reals(what: str, value: object) -> NDArray[np.float64]:
    """An argument as an array of float64 of any number of dimensions; masked and null entries are NaN."""
    try:
        array = numbers(value, what)
    except TypeError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be a real number or real numbers, got {value!r}")
    return array.astype(np.float64)


def _contents(
    X: object, what: str, column_names: Sequence[str] | None = None, dimensions: tuple[int, ...] | None = (1, 2)
) -> tuple[NDArray[Any], list[str] | None, list[bool]]:
    """The numbers, names of columns, and whether columns, each or all, are of integers that float64 may round."""
    refuse_foreign(X, what)
    table = _table(X)
    if table is not None:
        return _table_values(table, what), table.names, [_is_wide_integer(dtype) for dtype in table.types]
    X = filled(X)
    values = np.asarray(X) if hasattr(X, "__array__") else _from_sequence(X, what)
    if dimensions is not None and values.ndim not in dimensions:
        described = f"has {values.ndim} dimensions" if values.ndim else f"is a {type(X).__name__}"
        error = TypeError if values.ndim == 0 and _kind(values.dtype) != "number" else ValueError
        raise error(f"{what} {described}; pass a table of shape (n, p) or one column of shape (n,)")
    kind = _kind(values.dtype)
    if kind != "number":
        # numbers beside text in a list have become text: look for the culprit in the list itself
        cells = values if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        _reject_array(kind, values.dtype, cells, what, None if column_names is None else list(column_names))
    return values, None, [_is_wide_integer(values.dtype)]


#: Beyond it, integers have no float64 of their own.
_LARGEST_INTEGER = 2**53


def _is_wide_integer(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds integers that float64 may round."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iu" and dtype.itemsize >= 8
    return re.match(r"(sparse\[)?u?int(64|128)\b", str(dtype).lower()) is not None


def _warn_of_rounding(values: NDArray[Any], wide: list[bool], names: Sequence[str] | None, what: str) -> None:
    """Name the columns of integers too large for float64, once; `wide` is one entry per column, or one for all."""
    if not any(wide) or values.size == 0:
        return
    if values.ndim == 1:
        values = values[:, np.newaxis]
    p = values.shape[1]
    at = np.flatnonzero(np.broadcast_to(wide, (p,)))
    chosen = values if at.size == p else values[:, at]
    with np.errstate(invalid="ignore"):
        high, low = np.fmax.reduce(chosen, axis=0), np.fmin.reduce(chosen, axis=0)
    # what is float64 already may have been rounded down to it
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
    """Lists and scalars as an array; None is missing, integers of any size are numbers."""
    try:
        values = np.asarray(X)
    except ValueError:
        raise _ragged(X, what) from None
    if values.dtype != object or values.ndim == 0 or not all(map(_is_real, values.flat)):
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
    return ValueError(f"{what} is ragged below its rows; pass a table of shape (n, p) or one column of shape (n,)")


def _as_floats(values: NDArray[Any], what: str) -> NDArray[np.float64]:
    """An array of Python's numbers as float64; None is missing."""
    try:
        return values.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{what} has integers beyond the range of float64, 1.8e308; divide all of them by a constant first"
        ) from None


def _length(row: Any) -> int | None:
    """How many values a row has; None when it is a single value and no row."""
    try:
        return None if isinstance(row, str | bytes) else len(row)
    except TypeError:
        return None


def filled(X: Any) -> Any:
    """A masked array as a plain one, with NaN for what is masked; anything else as it is."""
    if not is_masked_array(X):
        return X
    if not np.ma.is_masked(X) or _kind(X.dtype) != "number":
        return np.asarray(X.data)
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    values = np.array(X.data, dtype=dtype)
    values[np.ma.getmaskarray(X)] = np.nan
    return values


def is_masked_array(X: object) -> bool:
    """Whether X is a masked array; NumPy imports `numpy.ma` at first use, which no fit should do: see `is_of`."""
    return is_of(X, "numpy.ma", "MaskedArray")


def is_numeric(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds real numbers."""
    return _kind(dtype) == "number"


# --- tables of pandas, polars and pyarrow -------------------------------------------------------------


class _Table(NamedTuple):
    """The columns of a data frame, or the one of a series."""

    types: list[Any]
    names: list[str] | None
    #: All values at once, without a copy where the library can; None where it cannot, or does so badly.
    whole: Callable[[], NDArray[Any]] | None
    #: One column as floats of a type, its null entries as NaN.
    column: Callable[[int, DTypeLike], NDArray[Any]]
    #: The same as Python objects.
    objects: Callable[[int], Any]
    was_vector: bool


def _table(X: Any) -> _Table | None:
    own = library(X)
    if own == "pandas" and hasattr(X, "to_numpy"):
        return _pandas_table(X)
    if own == "polars" and hasattr(X, "to_numpy"):
        return _polars_table(X)
    if own == "pyarrow" and (hasattr(X, "column_names") or hasattr(X, "to_numpy")):
        return _arrow_table(X)
    return None


def _pandas_table(X: Any) -> _Table:
    is_frame = hasattr(X, "columns")

    def series(j: int) -> Any:
        return X.iloc[:, j] if is_frame else X

    def column(j: int, dtype: DTypeLike) -> NDArray[Any]:
        one = series(j)
        missing = {} if isinstance(one.dtype, np.dtype) else {"na_value": np.nan}
        return np.asarray(one.to_numpy(dtype=dtype, **missing))

    def objects(j: int) -> Any:
        return series(j).to_numpy(dtype=object)

    if not is_frame:
        name = getattr(X, "name", None)
        return _Table([X.dtype], None if name is None else [str(name)], X.to_numpy, column, objects, True)
    # 0, 1, 2, ... are pandas' default names: nobody named the columns
    unnamed = X.columns.dtype.kind == "i" and list(X.columns) == list(range(len(X.columns)))
    names = None if unnamed else [str(name) for name in X.columns]
    return _Table(list(X.dtypes), names, X.to_numpy, column, objects, False)


def _polars_table(X: Any) -> _Table:
    is_frame = hasattr(X, "columns")
    columns = X.get_columns() if is_frame else [X]

    def column(j: int, dtype: DTypeLike) -> NDArray[Any]:
        return np.asarray(columns[j].cast(float).to_numpy(), dtype=dtype)

    def objects(j: int) -> Any:
        return columns[j].to_list()

    names = [str(one.name) for one in columns] if is_frame or X.name else None
    types = [one.dtype for one in columns]
    numpys_own = types and re.fullmatch(r"U?Int(8|16|32|64)|Float(32|64)|Boolean", str(types[0]))
    return _Table(types, names, X.to_numpy if numpys_own else None, column, objects, not is_frame)


def _arrow_table(X: Any) -> _Table:
    is_frame = hasattr(X, "column_names")
    columns = [X.column(j) for j in range(len(X.column_names))] if is_frame else [X]

    def column(j: int, dtype: DTypeLike) -> NDArray[Any]:
        return np.asarray(columns[j].cast("float64", safe=False).to_numpy(zero_copy_only=False), dtype=dtype)

    def objects(j: int) -> Any:
        return columns[j].to_pylist()

    names = [str(name) for name in X.column_names] if is_frame else None
    return _Table([one.type for one in columns], names, None, column, objects, not is_frame)


def _table_values(table: _Table, what: str) -> NDArray[Any]:
    """One array of the table's values: the library's own when all columns are of one type, float64 otherwise."""
    for j, dtype in enumerate(table.types):
        if _kind(dtype) != "number":
            _reject_column(table, j, what)
    if not table.types:
        return np.empty((0, 0))
    if table.whole is not None and len(set(table.types)) == 1:
        values = table.whole()
        if _kind(values.dtype) == "number":  # an object array where the library has missing values of its own
            return values
    dtype = np.float32 if all(map(is_single, table.types)) else np.float64
    if table.was_vector:
        return table.column(0, dtype)
    first = table.column(0, dtype)
    values = np.empty((first.size, len(table.types)), dtype=dtype, order="F")
    values[:, 0] = first
    for j in range(1, len(table.types)):
        values[:, j] = table.column(j, dtype)
    return values


def is_single(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds float32."""
    return re.match(r"(sparse\[)?float(32)?(?![0-9])", str(dtype).lower()) is not None


def output_type(dtype: Any) -> type[np.floating[Any]]:
    """What numbers of a NumPy type are transformed to: float32 of either byte order to float32, all else to float64."""
    return np.float32 if isinstance(dtype, np.dtype) and dtype.newbyteorder("=") == np.float32 else np.float64


# --- what is not a number -----------------------------------------------------------------------------

_KINDS = {**dict.fromkeys("biuf", "number"), **dict.fromkeys("SUT", "text"), **dict.fromkeys("Mm", "time")}
_KINDS |= {"c": "complex", "O": "object"}

#: The names that pandas' extension types, polars and pyarrow give their types, in lower case.
_NAMED_KINDS = (
    ("number", r"(sparse\[)?(u?int\d*|float\d*|half_?float|double|bool(ean)?|decimal.*|null)\b"),
    ("complex", r"(sparse\[)?complex"),
    ("text", r"(large_)?(str|utf8)"),
    ("category", r"categor|enum|dictionary"),
    ("time", r"date|time|duration|period"),
)

_COMPLAINTS = {
    "complex": "is complex ({}); fit its real and imaginary parts, or its modulus, as columns of their own",
    "time": "holds dates or times ({}); convert it to numbers first, such as days since a fixed day, or leave it out",
    "category": "is categorical ({}); encode it as numbers if they mean amounts, or leave it out",
    "text": "holds text ({}); convert it to numbers, or leave it out",
    "object": "is of type {}; convert it to numbers, or leave it out",
    "other": "is of type {}; convert it to numbers, or leave it out",
}


def _kind(dtype: Any) -> str:
    """What a column of this type holds, whichever library's type it is."""
    if isinstance(dtype, np.dtype):
        return _KINDS.get(dtype.kind, "other")
    name = str(dtype).lower()
    return next((kind for kind, pattern in _NAMED_KINDS if re.match(pattern, name)), "object")


def _reject_column(table: _Table, j: int, what: str) -> NoReturn:
    dtype = table.types[j]
    kind = _kind(dtype)
    label = what if table.was_vector else column_label(j, table.names)
    cells = table.objects(j) if kind in ("object", "text") else []
    if kind == "object" or any(cell is not None for cell in cells):
        _reject_cells(cells, lambda i: f"{label}, row {i}", label, dtype)
    raise TypeError(f"{label} {_COMPLAINTS[kind].format(dtype)}")


def _reject_array(kind: str, dtype: np.dtype[Any], cells: NDArray[Any], what: str, names: list[str] | None) -> NoReturn:
    if kind in ("object", "text") and cells.size:
        p = cells.shape[1] if cells.ndim == 2 else 1
        known = names if names is not None and len(names) == p else None

        def place(k: int) -> str:
            label = what if cells.ndim == 1 else column_label(k % p, known)
            return f"{label}, row {k // p}"

        _reject_cells(cells.ravel().tolist(), place, what, dtype)
    if dtype.names is not None:
        raise TypeError(
            f"{what} is a structured array; pass numpy.lib.recfunctions.structured_to_unstructured({what}, dtype=float)"
        )
    raise TypeError(f"{what} {_COMPLAINTS[kind].format(dtype)}")


def _reject_cells(cells: Any, place: Callable[[int], str], what: str, dtype: object) -> NoReturn:
    """Blame the first cell that is no real number, or, when there is none, the type they are stored as."""
    for k, cell in enumerate(cells):
        if not _is_real(cell):
            raise TypeError(f"{place(k)}: {_shortened(cell)} is not a real number; {_cell_remedy(cell)}")
    raise TypeError(f"{what} has type {dtype}, although it holds numbers only; convert it with .astype(float)")


def _is_real(cell: object) -> bool:
    """Whether a cell of an object array is a number, or None, which `astype(float)` turns into NaN."""
    return cell is None or isinstance(cell, Real | Decimal | np.bool_ | np.floating | np.integer)


def _shortened(cell: object) -> str:
    text = repr(cell)
    described = text if len(text) <= 40 else text[:37] + "..."
    return described if isinstance(cell, str | bytes | Complex) else f"{described} ({type(cell).__name__})"


def _cell_remedy(cell: object) -> str:
    if isinstance(cell, Complex):
        return "fit real and imaginary parts, or the modulus, as columns of their own"
    return "convert the column to numbers (missing values: NaN), or leave it out"


# --- names and places ---------------------------------------------------------------------------------


def column_label(j: int, names: Sequence[str] | None) -> str:
    """What messages call a column: ``column 3`` or ``column 3 ('price')``."""
    return f"column {j}" if names is None else f"column {j} ({names[j]!r})"


def column_labels(indices: Iterable[int], names: Sequence[str] | None) -> str:
    """The first few columns of a list, for a message."""
    every = [int(j) for j in indices]
    text = ", ".join(column_label(j, names) for j in every[:10])
    return text if len(every) <= 10 else f"{text} and {len(every) - 10} more"


def position_of(column: int | str, names: Sequence[str] | None, p: int) -> int:
    """Where a column is among p columns, given its name or its position.

    Raises
    ------
    ValueError
        There is no such name, or position.
    """
    if isinstance(column, str):
        if names is None or column not in names:
            there = (
                f"the columns are {_few(names)}{did_you_mean(column, names)}" if names else "the columns have no names"
            )
            raise ValueError(f"there is no column {column!r}; {there}")
        return list(names).index(column)
    j = operator.index(column)
    if not -p <= j < p:
        raise ValueError(f"there is no column {j}; there are {p}")
    return j % p


class Place(NamedTuple):
    """Where the offending value of a domain error is, and what is wrong with it."""

    #: Counted from 0; None where the input is one-dimensional.
    column: int | None
    row: int
    #: The message without the location.
    reason: str


def domain_error(
    kind: str, j: int | None, i: int, value: float, names: Sequence[str] | None, shift: float = 0.0
) -> ValueError:
    """The error for a value outside the domain, for a reason in `_DOMAIN_REMEDIES`; j is None for 1-D input."""
    place = f"row {i}" if j is None else f"{column_label(j, names)}, row {i}"
    reason = f"the value is {float(value)}{_DOMAIN_REMEDIES[kind].format(shift=shift, end=-shift)}"
    error = ValueError(f"{place}: {reason}")
    vars(error)["place"] = Place(j, i, reason)
    return error


def place_of(error: Exception) -> Place | None:
    """The arguments of `domain_error`, for callers who know the location by another name; None for other errors."""
    return vars(error).get("place")


_DOMAIN_REMEDIES = {
    "overflow": ", which plus shift = {shift} overflows float64; divide both by the largest value",
    "not above": " and not above -shift = {end}, beyond which the shifted Box-Cox transformation is defined; fit with "
    "a larger shift, drop the row, or use family='yeo-johnson'",
    "infinite": "; replace infinite values, or mark them missing with NaN",
    "not positive": ", and the Box-Cox transformation can only be applied to strictly positive data; shift or drop the "
    "column, or use family='yeo-johnson'",
}


@contextlib.contextmanager
def naming(chunk: str) -> Iterator[None]:
    """Errors name the chunk, from whose start they count rows."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        named = kind(f"in {chunk}: {error}")
        vars(named).update(vars(error))  # its place
        raise named from None


def as_names(column_names: Sequence[str], p: int) -> list[str]:
    if isinstance(column_names, str):
        raise TypeError(f"column_names is one string; pass a list of {p} names")
    names = listed(column_names)
    for j, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"column_names[{j}] is {name!r}, a {type(name).__name__}; names must be strings")
    if len(names) != p:
        raise ValueError(
            f"column_names has {_count(len(names), 'name')}, X has {_count(p, 'column')}; pass one name per column"
        )
    if len(set(names)) < p:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"column_names has {twice!r} more than once; give every column a different name")
    return names


def check_n_features(
    values: NDArray[Any], p_fitted: int, names: Sequence[str] | None, fitted_names: Sequence[str] | None
) -> None:
    """Refuse a matrix whose columns are not those of the fit.

    Names are compared where both have them; a single column may have any name.

    Raises
    ------
    ValueError
        If the number of columns, their names or their order differ from the fit's.
    """
    p = values.shape[1]
    if names is None or fitted_names is None or p == p_fitted == 1:
        if p != p_fitted:
            raise ValueError(f"X has {_count(p, 'column')}, the fit has {p_fitted}; pass the columns that were fitted")
        return
    if list(names) == list(fitted_names):
        return
    missing = [name for name in fitted_names if name not in names]
    others = [name for name in names if name not in fitted_names]
    beside = f"; it has {_few(others)} beside" if others else ""
    if missing:
        raise ValueError(f"X lacks {_few(missing)} of the columns that were fitted{beside}")
    if p != p_fitted:
        raise ValueError(
            f"X has {p} columns, the fit has {p_fitted}{beside}; pass the columns that were fitted, each once"
        )
    j = next(j for j in range(p) if names[j] != fitted_names[j])
    there = f"{column_label(j, names)} of X is {fitted_names[j]!r} in the fit"
    raise ValueError(f"X has the columns of the fit in another order: {there}; reorder the columns of X")


def _few(names: Sequence[str]) -> str:
    """The first few names of a list, for a message."""
    text = ", ".join(map(repr, names[:5]))
    return text if len(names) <= 5 else f"{text} and {len(names) - 5} more"


def _count(n: int | None, noun: str) -> str:
    """`n` things in words; None: one that is not in a row."""
    if n is None:
        return f"a single {noun}"
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


# --- words, weights and output arrays -----------------------------------------------------------------


def is_whole(value: object) -> TypeGuard[int]:
    """Whether an argument is a whole number of 64 bits; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63


def is_real(value: object) -> TypeGuard[float]:
    """Whether an argument is a number that is not complex; True and False are none."""
    return is_whole(value) or isinstance(value, float | np.floating)


def listed(value: Any) -> list[Any]:
    """The entries of an iterable; of a memory view, too, which Python iterates in one dimension only."""
    return value.tolist() if isinstance(value, memoryview) else list(value)


def as_choice(what: str, value: object, known: Iterable[str]) -> str:
    """An argument that must be one of the `known` words.

    Raises
    ------
    ValueError
        If it is not; the nearest word is suggested.
    """
    options = list(known)
    if isinstance(value, str) and value in options:
        return value
    raise ValueError(
        f"{what} must be one of {', '.join(map(repr, options))}, got {value!r}{did_you_mean(value, options)}"
    )


def as_flag(what: str, value: object) -> bool:
    """True or False, and nothing merely truthy or falsy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be True or False, got {value!r}")
    return bool(value)


#: Weights sum to more.
_LEAST_TOTAL = 1e-290


def as_weights(sample_weight: object, n_rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    """Sample weights as a contiguous float64 vector; messages call them `name`, as the caller's argument is called.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        If there is not one per row, one is negative, NaN or infinite, or they sum to zero or out of float64's range.
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
    if not (high > _LEAST_TOTAL and float(high) * n_rows < np.inf):  # else there is no need to look at the sum
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not _LEAST_TOTAL < total < np.inf:
            raise ValueError(f"{name} sums to {total:.3g}, beyond the range of float64; divide it by its largest value")
    return weights


def as_out(out: object, shape: tuple[int, ...], dtype: DTypeLike, values: NDArray[Any] | None = None) -> NDArray[Any]:
    """A user's ``out=`` array, checked.

    Parameters
    ----------
    out : ndarray
        The array to check.
    shape, dtype
        What it has to be.
    values : ndarray, optional
        The input. Writing over it is fine cell by cell, not where cells lie elsewhere in the same memory.

    Raises
    ------
    TypeError
        If `out` is not an array.
    ValueError
        If it has another shape or dtype, is read-only, or overlaps the input without being the same array.
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
        raise ValueError("out overlaps X in memory; pass X itself to work in place, or an array apart from it")
    return out


def _overlap_shifted(out: NDArray[Any], values: NDArray[Any]) -> bool:
    """Whether a cell of `out` lies on another cell of the input, or on the same with another type."""
    if _layout(out) == _layout(values):
        return False
    try:
        return np.shares_memory(out, values, max_work=100_000)  # type: ignore[arg-type]  # the stub is too narrow
    except np.exceptions.TooHardError:
        return True


def _layout(a: NDArray[Any]) -> tuple[int, np.dtype[Any], list[tuple[int, int]]]:
    """Where an array lies in memory; axes of length 1 do not matter."""
    axes = [(length, stride) for length, stride in zip(a.shape, a.strides, strict=True) if length != 1]
    return a.__array_interface__["data"][0], a.dtype, axes
