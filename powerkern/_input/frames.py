"""Data frames of pandas, polars and pyarrow in, the same kind out: columns by name, index and null entries kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powerkern._input.alignment import align_rows, few, matching_order, may_go_by_position
from powerkern._input.arrays import as_choice, as_matrix, as_rows
from powerkern._input.columns import holds_numbers, is_single, table_of
from powerkern._input.foreign import frame_library, library
from powerkern._input.messages import shown, warn
from powerkern._typing import FloatArray

NonNumeric = Literal["raise", "warn", "ignore"]


def chosen_positions(X: Any, non_numeric: NonNumeric, weights: str | None = None) -> list[int] | None:
    """Positions of the numeric columns of a data frame, and of its weights; None: all columns."""
    as_choice("non_numeric", non_numeric, ("raise", "warn", "ignore"))
    if non_numeric == "raise" or not _is_frame(X):
        return None
    names, numeric = _names(X), set(_numeric(X))
    wanted = [j for j, name in enumerate(names) if name == weights or j in numeric]
    others = ", ".join(repr(name) for j, name in enumerate(names) if name != weights and j not in numeric)
    if not others:
        return None
    if not [j for j in wanted if names[j] != weights]:
        raise TypeError(f"no column of X holds numbers: {others}")
    if non_numeric == "warn":
        warn(f"columns that hold no numbers are left out of the fit: {others}")
    return wanted


def numeric_positions(X: Any) -> tuple[list[int] | None, list[Any] | None]:
    """Positions of the numeric columns of a data frame, and the names of all; None if X is not a data frame."""
    if not _is_frame(X):
        return None, None
    positions, names = _numeric(X), _names(X)
    if not positions:
        raise TypeError(f"no column of X holds numbers: {', '.join(map(repr, names))}")
    return positions, names


def names_of(X: Any) -> list[Any] | None:
    """Return the labels of the columns of a data frame; None if X is not one."""
    return _names(X) if _is_frame(X) else None


def without_weights(X: Any, sample_weight: Any, what: str = "X") -> tuple[Any, Any]:
    """Rows and their weights, which may be given as the name of the column of a data frame that holds them.

    That column is then removed from the rows. Weights with row labels are put in the order of the rows.
    """
    if sample_weight is None:
        return X, None
    if not isinstance(sample_weight, str):
        return X, align_rows(sample_weight, X, "sample_weight", what)
    names = names_of(X)
    if names is None:
        raise TypeError(
            f"sample_weight={shown(sample_weight)} names a column, and the rows are no data frame "
            f"but a {type(X).__name__}"
        )
    at = position_named(sample_weight, names, "sample_weight")
    rest = taken(X, None, [j for j in range(len(names)) if j != at])
    weight: FloatArray = as_rows(taken(X, None, [at]), what="sample_weight").values[:, 0]
    return rest, weight


def position_named(name: str, names: list[str], argument: str) -> int:
    """Where the column is that an argument names, or the error."""
    if names.count(name) != 1:
        found = "no column" if name not in names else "more than one column"
        raise ValueError(f"{argument}={shown(name)}: there is {found} of that name among {', '.join(map(repr, names))}")
    return names.index(name)


def taken(X: Any, rows: Any, columns: Any) -> Any:
    """Rows (None: all) and columns at these positions, of a data frame as one, else of an array."""
    if not _is_frame(X):
        matrix = as_matrix(X)
        part = matrix.values[:, columns] if rows is None else matrix.values[np.ix_(rows, columns)]
        return part[:, 0] if matrix.was_vector and len(columns) else part
    part = _at(X, [int(j) for j in columns])
    if rows is None:
        return part
    if _is_arrow(X):
        return part.take(rows)
    if frame_library(X) == "pandas":
        return part.iloc[rows]
    return part[rows] if part.width else part  # a polars frame without columns has no rows


def columns_named(X: Any, names: list[Any] | None) -> Any:
    """Return the columns of a data frame that are called `names`, in that order; X itself if they are not all there."""
    if names is None or not _is_frame(X):
        return X
    order = matching_order(_names(X), names)
    return X if order is None else _at(X, order)


def order_chunk(chunk: Any, labels: Sequence[Any] | None) -> Any:
    """Return a data frame with its columns in the order of `labels`, those of the first chunk, if it has just these.

    Anything else is returned unchanged: the caller refuses other labels, and takes unnamed columns by position.
    """
    own = names_of(chunk)
    if own is None or labels is None or len(own) != len(labels):
        return chunk
    return columns_named(chunk, list(labels))


def restored(X: Any, part: Any, values: NDArray[Any]) -> Any:
    """X with `values` in place of the columns `part`, from which they were computed; an array if X is not a frame."""
    own = library(X)
    if own == "pandas" and hasattr(X, "index"):  # an Index, or an array of an extension type, gives an array
        return _in_pandas(X, part, values)
    if own == "polars":
        return _in_polars(X, part, values)
    if own == "pyarrow":
        return _in_arrow(X, part, values)
    return values


def column_at(X: Any, position: int) -> Any:
    """One column of a data frame, as its library has columns."""
    if _is_arrow(X):
        return X.column(position)
    return X.iloc[:, position] if frame_library(X) == "pandas" else X.to_series(position)


def labelled(part: Any, values: NDArray[Any], columns: Sequence[str] | None = None) -> Any:
    """`values`, a row for each row of `part`, as a frame or series, if `part` is one; else as they are.

    They keep their type. Index and names are those of `part`; the columns may have other names.
    """
    own, wide = library(part), values.ndim == 2
    name = None if _is_frame(part) else getattr(part, "name", None)
    if own == "pandas" and hasattr(part, "index"):
        import pandas

        if wide:
            return pandas.DataFrame(values, part.index, part.columns if columns is None else columns, copy=False)
        return pandas.Series(values, part.index, name=name, copy=False)
    if own == "polars":
        import polars

        return polars.DataFrame(values, columns or _names(part)) if wide else polars.Series(name, values)
    return values


def order_frame(value: Any, names: list[Any] | None, what: str) -> Any:
    """Return a data frame in the order of the columns called `names`; anything else unchanged; refuse other labels."""
    labels = names_of(value)
    if labels is None or names is None:
        return value
    part = columns_named(value, names)
    if _names(part) != list(names) and not may_go_by_position(labels, names):
        raise ValueError(f"{what} has the columns {few(labels)}, and not {few(names)}; use the same labels")
    return part


def label_like(values: FloatArray, *sources: Any) -> Any:
    """Return values with the labels of the first of the sources that has their shape; an array if that has none."""
    for source in sources:
        if getattr(source, "shape", None) == values.shape:
            return labelled(source, values)
    return values


def by_name(values: NDArray[Any], names: Sequence[Any] | None, levels: Sequence[Any] | None = None) -> Any:
    """Return statistics of columns as a pandas series by their labels.

    An array if the columns have no labels, or pandas is not installed. `levels` are the names of the levels of labels.
    """
    if names is None:
        return values
    try:
        import pandas
    except ImportError:
        return values
    index = pandas.Index(list(names))
    if levels is not None and len(levels) == index.nlevels:
        index = index.set_names(list(levels))
    return pandas.Series(values, index=index)


def _is_frame(X: Any) -> bool:
    return _is_arrow(X) or (frame_library(X) != "" and hasattr(X, "columns"))


def _is_arrow(X: Any) -> bool:
    """Whether X is a table or a record batch of pyarrow."""
    return library(X) == "pyarrow" and hasattr(X, "column_names")


def _names(X: Any) -> list[Any]:
    labels = X.column_names if _is_arrow(X) else X.columns
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def level_names(X: Any) -> list[Any] | None:
    """Return the names of the levels of the column labels of a data frame of pandas; None if they have none."""
    if library(X) != "pandas" or not _is_frame(X):
        return None
    names = list(X.columns.names)
    return None if all(name is None for name in names) else names


def _numeric(X: Any) -> list[int]:
    """Return the positions of the columns of a data frame that hold numbers, Python objects among them."""
    table = table_of(X)
    return [] if table is None else [j for j in range(len(table.types)) if holds_numbers(table, j)]


def _at(X: Any, positions: list[int]) -> Any:
    if positions == list(range(len(X.columns))):
        return X
    if _is_arrow(X):
        return X.select(positions)
    return X.iloc[:, positions] if frame_library(X) == "pandas" else X[:, positions]


def _in_pandas(X: Any, part: Any, values: NDArray[Any]) -> Any:
    if not _is_frame(X):
        return _pandas_column(X, values, X._constructor).__finalize__(X)
    result = part._constructor(values, index=X.index, columns=part.columns, copy=False)
    if any(not isinstance(dtype, np.dtype) for dtype in part.dtypes):
        import pandas

        columns = [
            _pandas_column(part.iloc[:, j], values[:, j], part._constructor_sliced) for j in range(part.shape[1])
        ]
        result = part._constructor(pandas.concat(columns, axis=1))
        result.columns = part.columns  # concat loses the type of labels and the names of their levels
    if part is X:
        return result.__finalize__(X)
    everything = X.copy()
    for j, position in enumerate(X.columns.get_indexer(part.columns)):
        everything.isetitem(position, result.iloc[:, j])
    return everything


def _pandas_column(source: Any, values: NDArray[Any], make: Any) -> Any:
    """Return values as a series like `source`; nullable types keep null entries, and NaN beside them."""
    kind = _pandas_type(source.dtype, values.dtype)
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


def _pandas_type(dtype: Any, result: np.dtype[Any]) -> Any:
    """The floating type of the same family: NumPy's, pandas' nullable one, or Arrow's; those keep single precision."""
    if isinstance(dtype, np.dtype) or "Sparse" in type(dtype).__name__:
        return result
    single = result == np.float32 or is_single(dtype)
    if "Arrow" in type(dtype).__name__:
        return "float[pyarrow]" if single else "double[pyarrow]"
    return "Float32" if single else "Float64"


def _in_polars(X: Any, part: Any, values: NDArray[Any]) -> Any:
    import polars

    def series(source: Any, column: NDArray[Any]) -> Any:
        one = polars.Series(source.name, column)
        return one.set(source.is_null(), None) if source.null_count() else one

    if not _is_frame(X):
        return series(X, values)
    return X.with_columns([series(source, values[:, j]) for j, source in enumerate(part.get_columns())])


def _in_arrow(X: Any, part: Any, values: NDArray[Any]) -> Any:
    import pyarrow

    def array(source: Any, column: NDArray[Any]) -> Any:
        one = pyarrow.array(column, mask=np.asarray(source.is_null()) if source.null_count else None)
        return pyarrow.chunked_array([one]) if isinstance(source, pyarrow.ChunkedArray) else one

    if not _is_frame(X):
        return array(X, values)
    columns, fields = list(X.columns), list(X.schema)
    position = {name: i for i, name in enumerate(X.column_names)}
    for j, name in enumerate(part.column_names):
        i = j if part is X else position[name]
        columns[i] = array(columns[i], values[:, j])
        fields[i] = fields[i].with_type(columns[i].type)
    schema = pyarrow.schema(fields, without_types(X.schema.metadata, part.column_names))
    return type(X).from_arrays(columns, schema=schema)


def without_types(metadata: Mapping[bytes, bytes] | None, names: Sequence[str]) -> Mapping[bytes, bytes] | None:
    """The metadata of an Arrow table, without pandas' notes on the types of the transformed columns."""
    if metadata is None or b"pandas" not in metadata:
        return metadata
    pandas = json.loads(metadata[b"pandas"])
    kept = [column for column in pandas["columns"] if column["field_name"] not in names]
    return {**metadata, b"pandas": json.dumps({**pandas, "columns": kept}).encode()}
