"""Kinds of columns and cells of any library: numbers, or the reason why not."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, NoReturn

import numpy as np

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

_LEFT_OUT = "or leave it out (of a data frame: pk.fit(X, non_numeric='ignore'))"

COMPLAINTS = {
    "complex": "is complex ({}); fit its real and imaginary parts, or its modulus, as columns of their own",
    "time": "holds dates or times ({}); convert it to numbers first, such as days since a fixed day, " + _LEFT_OUT,
    "category": "is categorical ({}); encode it as numbers if they mean amounts, " + _LEFT_OUT,
    "text": "holds text ({}); convert it to numbers, " + _LEFT_OUT,
    "object": "is of type {}; convert it to numbers, " + _LEFT_OUT,
    "other": "is of type {}; convert it to numbers, " + _LEFT_OUT,
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
    return cell is None or isinstance(cell, Real | Decimal | np.bool_ | np.floating | np.integer)


def _shortened(cell: object) -> str:
    text = repr(cell)
    described = text if len(text) <= 40 else text[:37] + "..."
    return described if isinstance(cell, str | bytes | Complex) else f"{described} ({type(cell).__name__})"


def _cell_remedy(cell: object) -> str:
    if isinstance(cell, Complex):
        return "fit real and imaginary parts, or the modulus, as columns of their own"
    if isinstance(cell, str) and re.fullmatch(r"\s*-?\d[\d.]*(,\d+)+(\.\d+)?\s*", cell):
        return "read commas with decimal=',' or thousands=',' of pandas.read_csv"
    return f"convert the column to numbers (missing values: NaN), {_LEFT_OUT}"
