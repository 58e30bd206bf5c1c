"""Columns of data frames and series of pandas, polars and pyarrow, as arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.foreign import library


class Table(NamedTuple):
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


def table_of(X: Any) -> Table | None:
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
        return Table([X.dtype], None if name is None else [str(name)], X.to_numpy, column, objects, True)
    # 0, 1, 2, ... are pandas' default names: nobody named the columns
    unnamed = X.columns.dtype.kind == "i" and list(X.columns) == list(range(len(X.columns)))
    names = None if unnamed else [str(name) for name in X.columns]
    return Table(list(X.dtypes), names, X.to_numpy, column, objects, False)


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
