"""Columns of any library: their kinds, or the reason why they hold no numbers; and columns of data frames as arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.foreign import library

_KINDS = {**dict.fromkeys("biuf", "number"), **dict.fromkeys("SUT", "text"), **dict.fromkeys("Mm", "time")}
_KINDS |= {"c": "complex", "O": "object"}

#: The names that pandas' extension types, polars and pyarrow give their types, in lower case.
_NAMED_KINDS = (
    ("number", r"(sparse\[)?(u?int\d*|float\d*|half_?float|double|bool(ean)?|decimal.*|null)\b"),
    ("complex", r"(sparse\[)?complex"),
    ("text", r"(large_)?(str|utf8)"),
    ("category", r"categor|enum|dictionary"),
    ("encoded", r"run_end_encoded"),
    ("time", r"date|time|duration|period"),
)

#: How messages about columns that hold no numbers end; callers that can leave such columns out say how.
LEAVE_OUT = ", or leave it out"

COMPLAINTS = {
    "complex": "is complex ({}); fit its real and imaginary parts, or its modulus, as columns of their own",
    "time": "holds dates or times ({}); convert it to numbers first, such as days since a fixed day" + LEAVE_OUT,
    "category": "is categorical ({}); encode it as numbers if they mean amounts" + LEAVE_OUT,
    "encoded": "is run-end encoded ({}); decode it first, with pyarrow.compute.run_end_decode",
    "text": "holds text ({}); convert it to numbers" + LEAVE_OUT,
    "object": "is of type {}; convert it to numbers" + LEAVE_OUT,
    "other": "is of type {}; convert it to numbers" + LEAVE_OUT,
}


def kind_of(dtype: Any) -> str:
    """The kind of a column of this type, of any library: "number", "text", "time", ..."""
    if isinstance(dtype, np.dtype):
        return _KINDS.get(dtype.kind, "other")
    name = str(dtype).lower()
    return next((kind for kind, pattern in _NAMED_KINDS if re.match(pattern, name)), "object")


def is_numeric(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds real numbers."""
    return kind_of(dtype) == "number"


def is_single(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds float32."""
    return re.match(r"(sparse\[)?float(32)?(?![0-9])", str(dtype).lower()) is not None


def is_wide_integer(dtype: Any) -> bool:
    """Whether a column of this type, of whichever library, holds integers that float64 may round."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iu" and dtype.itemsize >= 8
    return re.match(r"(sparse\[)?u?int(64|128)\b", str(dtype).lower()) is not None


def reject_cells(cells: Any, place: Callable[[int], str], what: str, dtype: object) -> NoReturn:
    """Raise for the first cell that is not a real number or, if all are, for the type of the column."""
    for k, cell in enumerate(cells):
        if not is_number(cell):
            raise TypeError(f"{place(k)}: {_shortened(cell)} is not a real number; {_cell_remedy(cell)}")
    raise TypeError(f"{what} has type {dtype}, although it holds numbers only; convert it with .astype(float)")


def is_number(cell: object) -> bool:
    """Whether a cell of an object array is a number, or None, which `astype(float)` turns into NaN."""
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


# --- data frames and series ------------------------------------------------------------------------------


class Table(NamedTuple):
    """The columns of a data frame, or the one of a series."""

    types: list[Any]
    names: list[Any] | None
    #: All values at once, without a copy where the library can; None where it cannot, or does so badly.
    whole: Callable[[], NDArray[Any]] | None
    #: One column as floats of a type, its null entries as NaN.
    column: Callable[[int, DTypeLike], NDArray[Any]]
    #: The same as Python objects.
    objects: Callable[[int], Any]
    was_vector: bool


def holds_numbers(table: Table, j: int) -> bool:
    """Return whether a column holds real numbers, which may be Python objects; None and NA are missing."""
    kind = kind_of(table.types[j])
    return kind == "number" or (kind == "object" and all(map(is_number, table.objects(j))))


def objects_as_floats(cells: Any) -> NDArray[np.float64]:
    """Return Python numbers as float64; None and NA are missing."""
    return np.array([np.nan if is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)


def is_missing(cell: object) -> bool:
    """Return whether a cell is None or NA of pandas."""
    return cell is None or type(cell).__name__ == "NAType"


def table_of(X: Any) -> Table | None:
    """Return the columns of a data frame or series; None if X is neither."""
    own = library(X)
    if own == "pandas" and hasattr(X, "to_numpy"):
        return _pandas_table(X)
    if own == "polars" and hasattr(X, "to_numpy"):
        return _polars_table(X)
    if own == "pyarrow" and (hasattr(X, "column_names") or hasattr(X, "to_numpy")):
        return _arrow_table(X)
    return None


def _pandas_table(X: Any) -> Table:
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
        return Table([X.dtype], None if name is None else [name], X.to_numpy, column, objects, True)
    return Table(list(X.dtypes), X.columns.tolist(), X.to_numpy, column, objects, False)


def _polars_table(X: Any) -> Table:
    is_frame = hasattr(X, "columns")
    columns = X.get_columns() if is_frame else [X]

    def column(j: int, dtype: DTypeLike) -> NDArray[Any]:
        return np.asarray(columns[j].cast(float).to_numpy(), dtype=dtype)

    def objects(j: int) -> Any:
        return columns[j].to_list()

    names = [str(one.name) for one in columns] if is_frame or X.name else None
    types = [one.dtype for one in columns]
    numpys_own = types and re.fullmatch(r"U?Int(8|16|32|64)|Float(32|64)|Boolean", str(types[0]))
    return Table(types, names, X.to_numpy if numpys_own else None, column, objects, not is_frame)


def _arrow_table(X: Any) -> Table:
    is_frame = hasattr(X, "column_names")
    columns = [X.column(j) for j in range(len(X.column_names))] if is_frame else [X]

    def column(j: int, dtype: DTypeLike) -> NDArray[Any]:
        return np.asarray(columns[j].cast("float64", safe=False).to_numpy(zero_copy_only=False), dtype=dtype)

    def objects(j: int) -> Any:
        return columns[j].to_pylist()

    names = [str(name) for name in X.column_names] if is_frame else None
    return Table([one.type for one in columns], names, None, column, objects, not is_frame)
