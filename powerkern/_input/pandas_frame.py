"""Data frames of pandas, read without narwhals, so that nothing they hold is lost.

narwhals would lose the index; column labels that are not text, are repeated or have several levels; ``attrs``;
subclasses; the difference between null and NaN in nullable types; and sparse columns. Reading without it is also
faster: converting a frame of ten columns to an array takes 90 us with narwhals and 2 us with pandas.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powerkern._input.columns import ColumnType, describe_dtype, describe_narwhals_type
from powerkern._input.frame import Frame


class PandasFrame(Frame):
    """A data frame, series, index or extension array of pandas."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.is_series = not hasattr(native, "columns")

    @functools.cached_property
    def names(self) -> list[Any] | None:  # type: ignore[override]
        if not self.is_series:
            names: list[Any] = self.native.columns.tolist()
            return names
        name = getattr(self.native, "name", None)
        return None if name is None else [name]

    @functools.cached_property
    def types(self) -> list[ColumnType]:  # type: ignore[override]
        dtypes = [self.native.dtype] if self.is_series else self.native.dtypes
        return [describe_dtype(one) if isinstance(one, np.dtype) else _describe_extension_type(one) for one in dtypes]

    def to_array(self) -> NDArray[Any] | None:
        values: NDArray[Any] = self.native.to_numpy()
        return values

    def column(self, j: int, dtype: DTypeLike) -> NDArray[Any]:
        one = self.series(j)
        missing = {} if isinstance(one.dtype, np.dtype) else {"na_value": np.nan}
        return np.asarray(one.to_numpy(dtype=dtype, **missing))

    def objects(self, j: int) -> Any:
        return self.series(j).to_numpy(dtype=object)

    def series(self, j: int) -> Any:
        return self.native if self.is_series else self.native.iloc[:, j]

    def select(self, columns: Sequence[int], rows: NDArray[np.intp] | None = None) -> Frame:
        frame = self.native
        if list(columns) != list(range(frame.shape[1])):
            frame = frame.iloc[:, list(columns)]
        return PandasFrame(frame if rows is None else frame.iloc[rows])

    def replace(self, part: Frame, values: NDArray[Any]) -> Any:
        X, chosen = self.native, part.native
        if self.is_series:
            if not hasattr(X, "index"):  # an Index, or an array of an extension type
                return values
            return _like_series(X, values, X._constructor).__finalize__(X)
        result = chosen._constructor(values, index=X.index, columns=chosen.columns, copy=False)
        if any(not isinstance(dtype, np.dtype) for dtype in chosen.dtypes):
            import pandas

            make = chosen._constructor_sliced
            columns = [_like_series(chosen.iloc[:, j], values[:, j], make) for j in range(chosen.shape[1])]
            result = chosen._constructor(pandas.concat(columns, axis=1))
            result.columns = chosen.columns  # concat loses the type of labels and the names of their levels
        if chosen is X:
            return result.__finalize__(X)
        everything = X.copy()
        for j, position in enumerate(X.columns.get_indexer(chosen.columns)):
            everything.isetitem(position, result.iloc[:, j])
        return everything

    def label(self, values: NDArray[Any], columns: Sequence[str] | None = None) -> Any:
        if not hasattr(self.native, "index"):
            return values
        import pandas

        if values.ndim == 1:
            name = self.native.name if self.is_series else None
            return pandas.Series(values, self.native.index, name=name, copy=False)
        labels = self.native.columns if columns is None else columns
        return pandas.DataFrame(values, self.native.index, labels, copy=False)


@functools.lru_cache(maxsize=256)
def _describe_extension_type(dtype: Any) -> ColumnType:
    if "Sparse" in type(dtype).__name__:
        return describe_dtype(dtype.subtype)._replace(name=str(dtype))
    import narwhals.stable.v2 as nw
    import pandas

    empty = nw.from_native(pandas.Series([], dtype=dtype), series_only=True)
    return describe_narwhals_type(empty.dtype, str(dtype))


def _like_series(source: Any, values: NDArray[Any], make: Any) -> Any:
    """Return values as a series like `source`; in nullable types, null entries stay null and NaN stays NaN.

    Parameters
    ----------
    source : pandas.Series
        The series whose index, name and type family the result gets.
    values : ndarray
        The values.
    make : callable
        Constructor of the series.
    """
    kind = _floating_type(source.dtype, values.dtype)
    if isinstance(kind, np.dtype):
        return make(values, index=source.index, name=source.name)
    import pandas

    null = source.isna().to_numpy()
    if "pyarrow" in kind:
        import pyarrow

        column = pandas.arrays.ArrowExtensionArray(
            pyarrow.array(values, pyarrow.float32() if kind.startswith("float") else pyarrow.float64(), mask=null)
        )
    else:
        column = pandas.arrays.FloatingArray(values.astype(kind.lower()), null)
    return make(column, index=source.index, name=source.name)


def _floating_type(dtype: Any, result: np.dtype[Any]) -> Any:
    """Return the floating-point type in the type family of `dtype`: NumPy's, pandas' nullable or Arrow's.

    Single precision stays single if `result`, the type of the values, is single.
    """
    if isinstance(dtype, np.dtype) or "Sparse" in type(dtype).__name__:
        return result
    single = result == np.float32 or _describe_extension_type(dtype).is_single
    if "Arrow" in type(dtype).__name__:
        return "float[pyarrow]" if single else "double[pyarrow]"
    return "Float32" if single else "Float64"
