"""Convert group labels from arrays, lists and data frames to arrays of a single type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import is_masked_array
from powerkern._input.foreign import library
from powerkern._input.wrapping import as_frame
from powerkern._typing import BoolArray

#: Kinds of labels, by the kind of NumPy type.
KINDS = {"i": "numbers", "u": "numbers", "f": "numbers", "b": "booleans", "U": "text", "M": "dates", "m": "durations"}


def values_of(column: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return labels as an array and None; or, if they must be encoded, their codes and the distinct labels.

    Codes are positions among the distinct labels, -1 for missing ones.
    """
    if type(column) is np.ndarray and column.dtype.kind in KINDS:
        return column, None
    own = library(column)
    if own == "pandas" and not isinstance(column.dtype, np.dtype):
        import pandas

        codes, found = pandas.factorize(column)
        if getattr(found, "tz", None) is not None:
            found = found.tz_convert("UTC").tz_localize(None)
        return codes, _from_objects(np.asarray(found, dtype=object)) if found.dtype.kind != "M" else found.to_numpy()
    frame = None if own == "pandas" else as_frame(column)
    if frame is not None:
        values, distinct = frame.encode()
        return values, None if distinct is None else _from_objects(objects(distinct))
    if is_masked_array(column):
        values = np.array(column.data, dtype=object)  # `filled(None)` would fill in "?"
        values[np.ma.getmaskarray(column)] = None
    else:
        values = np.asarray(column) if hasattr(column, "__array__") else objects(column)
    if values.dtype.kind == "T":
        values = values.astype(object)
    if values.dtype.kind == "O" and values.ndim == 1:
        return _encode_objects(values)
    if values.dtype.kind not in KINDS:
        raise TypeError(f"groups has type {values.dtype}; convert it to numbers, text, dates, booleans or categories")
    return values, None


def cast_exactly(labels: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], BoolArray]:
    """Cast numbers to another numeric type; return them, and a mask of the labels whose value is unchanged.

    Labels that are not numbers, or whose type has the kind of `dtype`, are returned without a cast.

    NumPy compares signed with unsigned integers in float64, which rounds integers beyond 2**53.

    Raises
    ------
    ValueError
        The labels are floats that may be rounded integers, and `dtype` is an integer type.
    """
    if labels.dtype.kind == dtype.kind or labels.dtype.kind not in "iuf" or dtype.kind not in "iuf":
        return labels, np.ones(labels.shape, dtype=np.bool_)
    if labels.dtype.kind == "f":
        rounded = np.isfinite(labels) & (np.abs(labels) >= 2.0 / np.finfo(labels.dtype).eps)
        if rounded.any():
            raise ValueError(
                f"the label {labels[rounded][0]:.17g} may be a rounded integer ({labels.dtype}), and the fitted labels "
                "are exact; pass integers, with missing ones as 'Int64' of pandas"
            )
    with np.errstate(invalid="ignore"):
        cast = labels.astype(dtype)
        return cast, np.asarray((cast.astype(labels.dtype) == labels) & ((cast < 0) == (labels < 0)))


def objects(cells: Any) -> NDArray[Any]:
    """Return Python objects as a vector of dtype object, without converting them."""
    found = np.empty(len(cells), dtype=object)
    found[:] = list(cells)
    return found


def _encode_objects(cells: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the codes of Python objects (-1: missing), and the array of the distinct objects."""
    _check_kinds(cells)
    table: dict[Any, int] = {}
    codes = np.array(
        [-1 if is_missing_label(cell) else table.setdefault(cell, len(table)) for cell in cells.tolist()],
        dtype=np.int64,
    )
    return codes, _from_objects(objects(table))


def is_missing_label(cell: Any) -> bool:
    """Return whether a label is None, NA, NaT or NaN of any type."""
    if isinstance(cell, Decimal):  # its signalling NaN cannot be compared
        return cell.is_nan()
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (isinstance(cell, Real | np.datetime64 | np.timedelta64) and bool(cell != cell))
    )


def _check_kinds(cells: NDArray[Any]) -> None:
    """Raise if labels are of different kinds, because 1, "1" and True are equal in some libraries and not in others."""
    of = {kind: _kind_of(kind) for kind in set(map(type, cells.tolist()))}
    found = {name: kind for kind, name in of.items() if name}
    if len(found) <= 1 and all(name is not None for name in of.values()):
        return
    rows: dict[str | None, int] = {}
    for i, cell in enumerate(cells):
        if not is_missing_label(cell):
            rows.setdefault(_kind_of(type(cell)), i)
    if None in rows:
        i = rows[None]
        raise TypeError(
            f"groups has the label {cells[i]!r}, a {type(cells[i]).__name__}; labels are numbers, text, dates, "
            "durations or booleans; convert groups with .astype(str)"
        )
    if len(rows) > 1:
        (one, i), (other, k) = list(rows.items())[:2]
        raise TypeError(
            f"groups mixes {one} and {other}: row {i} has {cells[i]!r}, row {k} has {cells[k]!r}; "
            "convert them to one type"
        )


def _kind_of(kind: type) -> str | None:
    """Return the kind of labels of a Python type: "" for missing values, None if the type cannot be a label."""
    if kind in (type(None),) or kind.__name__ in ("NAType", "NaTType"):
        return ""
    if issubclass(kind, bool | np.bool_):
        return "booleans"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, datetime.date | np.datetime64):
        return "dates"
    if issubclass(kind, datetime.timedelta | np.timedelta64):
        return "durations"
    return "numbers" if issubclass(kind, Real) else None


def _as_exact(cell: Any, method: str, convert: Any) -> Any:
    """Return a date or duration as a NumPy scalar, including the nanoseconds that pandas stores.

    Parameters
    ----------
    cell : object
        The date or duration.
    method : str
        Name of the method that converts pandas objects.
    convert : callable
        Function that converts all other objects.
    """
    return getattr(cell, method)() if hasattr(cell, method) else convert(cell)


def _from_objects(cells: NDArray[Any]) -> NDArray[Any]:
    """Convert distinct labels to a single dtype; raise if two of them become equal."""
    _check_kinds(cells)
    kinds = {_kind_of(type(cell)) for cell in cells} - {""}
    kind = kinds.pop() if kinds else "numbers"
    try:
        if kind == "text":
            found = np.array(cells.tolist(), dtype=np.str_)
        elif kind == "dates":
            found = np.array([_as_exact(cell, "to_datetime64", np.datetime64) for cell in cells.tolist()])
        elif kind == "durations":
            found = np.array([_as_exact(cell, "to_timedelta64", np.timedelta64) for cell in cells.tolist()])
        elif kind == "booleans":
            found = cells.astype(np.bool_)
        elif all(isinstance(cell, Integral) for cell in cells):
            whole = [int(cell) for cell in cells]
            found = np.array(whole, dtype=np.uint64 if max(whole, default=0) >= 2**63 else np.int64)
        else:
            found = np.array(cells.tolist(), dtype=np.float64)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"groups has labels that no array can hold ({error}); convert them to text") from None
    if np.unique(found).size < cells.size:
        raise ValueError(
            f"groups has different labels that become equal as {kind} of type {found.dtype}; convert them to text"
        )
    return found
