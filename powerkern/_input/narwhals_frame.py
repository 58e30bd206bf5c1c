"""Data frames and series that narwhals reads: polars, pyarrow, Modin, cuDF, and anything that exports Arrow data.

This module is imported when such an object is first passed, so that users of arrays and pandas do not wait for the
import of narwhals.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import DTypeLike, NDArray

from powerkern._input.columns import ColumnType, describe_narwhals_type
from powerkern._input.foreign import is_instance_by_name, library
from powerkern._input.frame import Frame

#: Types that also exist in NumPy.
_NUMPY_TYPES = frozenset(
    (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64, nw.Float32, nw.Float64)
)


class NarwhalsFrame(Frame):
    """A data frame or series in memory, wrapped by narwhals. A series is stored as a frame of one column.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The wrapped data frame.
    is_series : bool
        Whether the user passed a series.
    unwrap : callable
        Converts a data frame or series of narwhals to the kind of object that the user passed.
    """

    def __init__(self, frame: nw.DataFrame[Any], is_series: bool, unwrap: Callable[[Any], Any]) -> None:
        self._frame, self.is_series, self._unwrap = frame, is_series, unwrap

    @functools.cached_property
    def native(self) -> Any:
        return self._give(self._frame)

    @property
    def plain(self) -> Any:
        frame = self._frame[:, 0] if self.is_series else self._frame
        return frame.to_native()

    def _give(self, frame: nw.DataFrame[Any]) -> Any:
        return self._unwrap(frame[:, 0] if self.is_series else frame)

    @functools.cached_property
    def names(self) -> list[Any] | None:  # type: ignore[override]
        names: list[Any] = self._frame.columns
        return names if not self.is_series or names[0] not in ("", None) else None

    @functools.cached_property
    def _dtypes(self) -> list[Any]:
        return self._frame.schema.dtypes()

    @functools.cached_property
    def types(self) -> list[ColumnType]:  # type: ignore[override]
        return [
            describe_narwhals_type(dtype, self._type_name(j) if isinstance(dtype, nw.Unknown) else str(dtype))
            for j, dtype in enumerate(self._dtypes)
        ]

    def _type_name(self, j: int) -> str:
        """Return the name of the type of column `j` in its library, for a type that narwhals does not know."""
        native = self._columns[j].to_native()
        return str(getattr(native, "type", None) or native.dtype)

    @functools.cached_property
    def _columns(self) -> list[Any]:
        return list(self._frame.iter_columns())

    def to_array(self) -> NDArray[Any] | None:
        is_polars = self._frame.implementation.is_polars()  # other libraries would copy columns to rows
        if not is_polars or type(self._dtypes[0]) not in _NUMPY_TYPES:
            return None
        return self._frame[:, 0].to_numpy() if self.is_series else self._frame.to_numpy()

    def column(self, j: int, dtype: DTypeLike) -> NDArray[Any]:
        one = self._columns[j]
        if type(self._dtypes[j]) not in _NUMPY_TYPES:
            one = one.cast(nw.Float64)  # only then: Arrow refuses to cast integers that float64 rounds
        return np.asarray(one.to_numpy(), dtype=dtype)

    def objects(self, j: int) -> Any:
        return self._columns[j].to_list()

    def encode(self) -> tuple[NDArray[Any], list[Any] | None]:
        one, dtype = self._columns[0], self._dtypes[0]
        has_missing_values = isinstance(dtype, nw.Date | nw.Datetime | nw.Duration)  # in NumPy: NaT
        if has_missing_values or (type(dtype) in (*_NUMPY_TYPES, nw.Boolean) and not one.null_count()):
            return one.to_numpy(), None
        if one.implementation.is_pyarrow() and isinstance(dtype, nw.Categorical):  # it need not be of text
            coded = one.to_native().combine_chunks()
            return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
        distinct = one.drop_nulls().unique().to_list()
        if not distinct:
            return np.full(len(one), -1), distinct
        codes = one.replace_strict(distinct, list(range(len(distinct))), default=-1, return_dtype=nw.Int64)
        return codes.to_numpy(), distinct

    def series(self, j: int) -> Any:
        return self._columns[j].to_native()

    def select(self, columns: Sequence[int], rows: NDArray[np.intp] | None = None) -> Frame:
        frame = self._frame
        if list(columns) != list(range(len(frame.columns))):
            frame = frame[:, list(columns)]
        if rows is not None and len(columns):  # a frame without columns has no rows
            frame = frame[np.asarray(rows), :]
        return self if frame is self._frame else NarwhalsFrame(frame, self.is_series, self._unwrap)

    def replace(self, part: Frame, values: NDArray[Any]) -> Any:
        assert isinstance(part, NarwhalsFrame)
        result = part._with_nulls(part._like(values.reshape(-1, len(part._frame.columns)), part._frame.columns))
        if part is not self:
            result = self._frame.with_columns(*result.iter_columns())
        if result.implementation.is_pyarrow() and _has_notes(self._frame.to_native().schema):
            result = nw.from_native(_with_notes(self._frame.to_native(), result.to_native(), part._frame.columns))
        return self._give(result)

    def label(self, values: NDArray[Any], columns: Sequence[str] | None = None) -> Any:
        if values.ndim == 2:
            return self._unwrap(self._like(values, columns or self._frame.columns))
        name = self._frame.columns[0] if self.is_series else ""
        return self._unwrap(self._like(values[:, np.newaxis], [name])[:, 0])

    def _like(self, values: NDArray[Any], names: Sequence[Any]) -> nw.DataFrame[Any]:
        """Return values as a frame of the same library, with column names `names` and the row labels of this frame."""
        native = self._frame.to_native()
        if self._frame.implementation.is_pandas_like():
            return nw.from_native(type(native)(values, columns=list(names), index=native.index), eager_only=True)
        return nw.from_dict(dict(zip(names, values.T, strict=True)), backend=self._frame.implementation)

    def _with_nulls(self, result: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """Return `result` with null entries where this frame has them; both must have the same column names."""
        nullable = [one for one in self._columns if one.null_count()]
        if not nullable:
            return result
        return result.with_columns(
            *(nw.when(~one.is_null()).then(nw.col(one.name)).alias(one.name) for one in nullable)
        )


def wrap_by_narwhals(X: Any) -> NarwhalsFrame | None:
    """Wrap a data frame or series in memory; return None if X is neither or is lazy.

    Raises
    ------
    ValueError
        Two columns have the same name.
    TypeError
        X exports Arrow data, and pyarrow, which would read them, is not installed.
    """
    unwrap: Callable[[Any], Any] = nw.to_native
    if library(X) == "narwhals":
        unwrap, X = rewrapping(X), X.to_native()
    elif library(X) == "pyarrow" and hasattr(X, "__arrow_c_array__"):
        X, unwrap = _as_chunked(X), _without_chunks
    try:
        wrapped = nw.from_native(X, allow_series=True, pass_through=True)
        if wrapped is X and (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
            wrapped = nw.from_native(_load_arrow(X), allow_series=True)
    except DuplicateError as error:
        names = " ".join(str(error).split())
        raise ValueError(
            f"X has several columns with the same name; give every column its own name ({names})"
        ) from None
    if isinstance(wrapped, nw.Series):
        return NarwhalsFrame(wrapped.to_frame(), True, unwrap)
    return NarwhalsFrame(wrapped, False, unwrap) if isinstance(wrapped, nw.DataFrame) else None


def rewrapping(X: Any) -> Callable[[Any], Any]:
    """Return a function that wraps objects in the version of narwhals (current or stable) that wraps X."""
    parts = type(X).__module__.split(".")
    home = importlib.import_module(".".join(parts[:3]) if parts[1] == "stable" else parts[0])
    return lambda other: home.from_native(nw.to_native(other, pass_through=True), allow_series=True)


def _as_chunked(X: Any) -> Any:
    """Convert a pyarrow record batch to a table, or a pyarrow array to a chunked array."""
    import pyarrow

    is_batch = is_instance_by_name(X, "pyarrow", "RecordBatch")
    return pyarrow.Table.from_batches([X]) if is_batch else pyarrow.chunked_array([X])


def _without_chunks(wrapped: Any) -> Any:
    """Convert a pyarrow table to a record batch, or a pyarrow chunked array to an array."""
    import pyarrow

    native = wrapped.to_native()
    if isinstance(wrapped, nw.Series):
        return native.combine_chunks()
    return pyarrow.RecordBatch.from_arrays([one.combine_chunks() for one in native.columns], schema=native.schema)


def _load_arrow(X: Any) -> Any:
    """Convert an object that exports Arrow data to a pyarrow table or chunked array."""
    try:
        import pyarrow
    except ImportError:
        raise TypeError(f"a {type(X).__name__} needs pyarrow: pip install pyarrow") from None
    is_stream = hasattr(X, "__arrow_c_stream__")
    column = pyarrow.chunked_array(X) if is_stream else pyarrow.chunked_array([pyarrow.array(X)])
    return pyarrow.Table.from_struct_array(column) if pyarrow.types.is_struct(column.type) else column


def is_numeric_arrow_type(dtype: Any) -> bool:
    """Return whether an object is a pyarrow type of real numbers."""
    import pyarrow

    if not isinstance(dtype, pyarrow.DataType):
        return False
    empty = nw.from_native(pyarrow.chunked_array([], type=dtype), series_only=True)
    return describe_narwhals_type(empty.dtype, str(dtype)).kind == "number"


# --- parts of Arrow tables that narwhals drops ---------------------------------------------------------------


def _has_notes(schema: Any) -> bool:
    return schema.metadata is not None or any(field.metadata or not field.nullable for field in schema)


def _with_notes(given: Any, table: Any, names: Sequence[str]) -> Any:
    """Return an Arrow table with the metadata of another table and of its fields.

    Parameters
    ----------
    given : pyarrow.Table
        The table whose metadata are copied.
    table : pyarrow.Table
        The table that receives the metadata.
    names : sequence of str
        The transformed columns, for which pandas' notes on types are dropped.
    """
    import pyarrow

    fields = [field.with_type(column.type) for field, column in zip(given.schema, table.columns, strict=True)]
    schema = pyarrow.schema(fields, without_types(given.schema.metadata, names))
    return pyarrow.Table.from_arrays(table.columns, schema=schema)


def without_types(metadata: Mapping[bytes, bytes] | None, names: Sequence[str]) -> Mapping[bytes, bytes] | None:
    """Return the metadata of an Arrow table without pandas' notes on the types of the columns `names`."""
    if metadata is None or b"pandas" not in metadata:
        return metadata
    pandas = json.loads(metadata[b"pandas"])
    kept = [column for column in pandas["columns"] if column["field_name"] not in names]
    return {**metadata, b"pandas": json.dumps({**pandas, "columns": kept}).encode()}
