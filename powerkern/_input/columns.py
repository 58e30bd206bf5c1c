"""Kinds of column types in arrays and data frames, and messages about columns that do not hold numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

_KINDS = {**dict.fromkeys("biuf", "number"), **dict.fromkeys("SUT", "text"), **dict.fromkeys("Mm", "time")}
_KINDS |= {"c": "complex", "O": "object"}

#: Kinds of types that narwhals does not know, by their names in other libraries.
_UNKNOWN_KINDS = (("number", r"null$|half_?float|float16"), ("time", r"period"), ("encoded", r"run_end_encoded"))

#: Last words of messages about columns that hold no numbers. Callers that can omit such columns add the option.
LEAVE_OUT = ", or leave it out"

COMPLAINTS = {
    "complex": "is complex ({}); fit its real and imaginary parts, or its modulus, as columns of their own",
    "time": "holds dates or times ({}); convert it to numbers first, such as days since a fixed day" + LEAVE_OUT,
    "category": "is categorical ({}); convert the categories to numbers if they stand for amounts" + LEAVE_OUT,
    "encoded": "is run-end encoded ({}); decode it first, with pyarrow.compute.run_end_decode",
    "text": "holds text ({}); convert it to numbers" + LEAVE_OUT,
    "object": "is of type {}; convert it to numbers" + LEAVE_OUT,
    "other": "is of type {}; convert it to numbers" + LEAVE_OUT,
}


class ColumnType(NamedTuple):
    """The type of a column, whatever library it comes from."""

    #: "number", "text", "time", "category", "encoded", "complex", "object" or "other".
    kind: str
    #: Name of the type in its library.
    name: str
    #: Whether the type is float32.
    is_single: bool = False
    #: Whether the type is an integer type with values that float64 would round.
    is_wide_integer: bool = False


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return the kind of a NumPy type: "number", "text", "time", ..."""
    return _KINDS.get(dtype.kind, "other")


@functools.lru_cache(maxsize=256)
def describe_dtype(dtype: np.dtype[Any]) -> ColumnType:
    """Return the column type that corresponds to a NumPy type."""
    is_wide = dtype.kind in "iu" and dtype.itemsize >= 8
    return ColumnType(kind_of(dtype), str(dtype), dtype.newbyteorder("=") == np.float32, is_wide)


def describe_narwhals_type(dtype: Any, name: str) -> ColumnType:
    """Return the column type that corresponds to a type of narwhals; messages call it `name`."""
    kind: Any = type(dtype)
    return _describe_narwhals_class(kind, name)


@functools.lru_cache(maxsize=256)
def _describe_narwhals_class(dtype: Any, name: str) -> ColumnType:
    import narwhals.stable.v2 as nw

    if issubclass(dtype, nw.Boolean) or dtype.is_numeric():
        is_wide = issubclass(dtype, nw.Int64 | nw.UInt64 | nw.Int128 | nw.UInt128)
        return ColumnType("number", name, issubclass(dtype, nw.Float32), is_wide)
    if dtype.is_temporal():
        return ColumnType("time", name)
    if issubclass(dtype, nw.Categorical | nw.Enum):
        return ColumnType("category", name)
    if issubclass(dtype, nw.Unknown):
        unknown = (kind for kind, pattern in _UNKNOWN_KINDS if re.match(pattern, name.lower()))
        return ColumnType(next(unknown, "object"), name)
    return ColumnType("text" if issubclass(dtype, nw.String) else "object", name)


def reject_cells(cells: Any, place: Callable[[int], str], what: str, dtype: object) -> NoReturn:
    """Raise an error about the first cell that is not a real number or, if all are, about the type of the column.

    Parameters
    ----------
    cells : iterable
        The cells of the column.
    place : callable
        Takes the position of a cell; returns the name of the cell for the message.
    what : str
        Name of the column in messages.
    dtype : object
        Type of the column.
    """
    for k, cell in enumerate(cells):
        if not is_number(cell):
            raise TypeError(f"{place(k)}: {_shortened(cell)} is not a real number; {_cell_remedy(cell)}")
    raise TypeError(f"{what} has type {dtype}, although it holds numbers only; convert it with .astype(float)")


def is_number(cell: object) -> bool:
    """Return whether a cell of an object array is a number or None, which ``astype(float)`` converts."""
    return is_missing(cell) or isinstance(cell, Real | Decimal | np.bool_ | np.floating | np.integer)


def _shortened(cell: object) -> str:
    text = repr(cell)
    described = text if len(text) <= 40 else text[:37] + "..."
    return described if isinstance(cell, str | bytes | Complex) else f"{described} ({type(cell).__name__})"


def _cell_remedy(cell: object) -> str:
    if isinstance(cell, Complex):
        return "fit real and imaginary parts, or the modulus, as columns of their own"
    if isinstance(cell, str) and re.fullmatch(r"\s*-?\d[\d.]*(,\d+)+(\.\d+)?\s*", cell):
        return "read commas with decimal=',' or thousands=',' of pandas.read_csv"
    return f"convert the column to numbers (missing values: NaN){LEAVE_OUT}"


def objects_as_floats(cells: Any) -> NDArray[np.float64]:
    """Return Python numbers as float64; None and NA become NaN."""
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)


def is_missing(cell: object) -> bool:
    """Return whether a cell is None or pandas' NA."""
    return cell is None or type(cell).__name__ == "NAType"
