"""Functions on data frames and series of any library: select columns by name, and label results like the input."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from powerkern._input.alignment import align_rows, axis_labels, few, matching_order, may_go_by_position
from powerkern._input.array_libraries import as_array_like
from powerkern._input.arrays import as_choice, as_matrix, as_rows
from powerkern._input.foreign import library
from powerkern._input.frame import Frame
from powerkern._input.messages import shown, warn
from powerkern._input.wrapping import as_frame, unwrap
from powerkern._typing import BoolArray, FloatArray

NonNumeric = Literal["raise", "warn", "ignore"]


def _as_table(X: Any) -> Frame | None:
    """Return a wrapped data frame, or None if X is anything else, such as a series."""
    frame = as_frame(X)
    return None if frame is None or frame.is_series else frame


def names_of(X: Any) -> list[Any] | None:
    """Return the column labels of a data frame, or None if X is not a data frame."""
    frame = _as_table(X)
    return None if frame is None else frame.names


def chosen_positions(X: Any, non_numeric: NonNumeric, kept: Sequence[str] = ()) -> list[int] | None:
    """Return the positions of the columns of a data frame that are numeric or named in `kept`; None: all columns.

    Parameters
    ----------
    X : object
        The data.
    non_numeric : {"raise", "warn", "ignore"}
        Treatment of other columns. "raise" selects all columns, so that the reader rejects them; "warn" warns.
    kept : sequence of str
        Names of columns to select in any case.
    """
    as_choice("non_numeric", non_numeric, ("raise", "warn", "ignore"))
    frame = None if non_numeric == "raise" else _as_table(X)
    if frame is None:
        return None
    names, numeric = frame.names or [], set(_numeric(frame))
    wanted = [j for j, name in enumerate(names) if name in kept or j in numeric]
    others = ", ".join(repr(name) for j, name in enumerate(names) if name not in kept and j not in numeric)
    if not others:
        return None
    if not [j for j in wanted if names[j] not in kept]:
        raise TypeError(f"no column of X holds numbers: {others}")
    if non_numeric == "warn":
        warn(f"columns that hold no numbers are left out of the fit: {others}")
    return wanted


def numeric_positions(X: Any) -> tuple[list[int] | None, list[Any] | None]:
    """Return positions of the numeric columns of a data frame and names of all columns; (None, None) for other data."""
    frame = _as_table(X)
    if frame is None:
        return None, None
    positions, names = _numeric(frame), frame.names or []
    if not positions:
        raise TypeError(f"no column of X holds numbers: {', '.join(map(repr, names))}")
    return positions, names


def _numeric(frame: Frame) -> list[int]:
    """Return the positions of the columns that hold numbers, including columns of Python numbers."""
    return [j for j in range(len(frame.types)) if frame.holds_numbers(j)]


def without_weights(X: Any, sample_weight: Any, what: str = "X") -> tuple[Any, Any]:
    """Return the rows without the column of weights, and the weights.

    Parameters
    ----------
    X : object
        The rows.
    sample_weight : object
        The weights, which are aligned with the rows by label, or the name of the column of a data frame that holds
        them.
    what : str
        The name of X in messages.
    """
    if sample_weight is None:
        return X, None
    if not isinstance(sample_weight, str):
        return X, align_rows(sample_weight, unwrap(X), "sample_weight", what)
    frame = _as_table(X)
    if frame is None:
        raise TypeError(
            f"sample_weight={shown(sample_weight)} names a column, but X is a "
            f"{type(unwrap(X)).__name__}, not a data frame; pass an array of weights"
        )
    names = frame.names or []
    at = position_named(sample_weight, names, "sample_weight")
    rest = frame.select([j for j in range(len(names)) if j != at])
    weight: FloatArray = as_rows(frame.select([at]), what="sample_weight").values[:, 0]
    return rest if X is frame else rest.native, weight


def read_flags(X: Any, name: Any, argument: str) -> BoolArray:
    """Return a column of flags (True and False, or 1 and 0) of a data frame as a mask; raise for other values.

    Parameters
    ----------
    X : data frame
        The data.
    name : object
        The name of the column.
    argument : str
        The argument that names the column, for messages.
    """
    frame = _as_table(X)
    if frame is None:
        kind = type(unwrap(X)).__name__
        raise TypeError(
            f"{argument}={shown(name)} names a column of flags, but X is a {kind}, not a data frame; pass an array"
        )
    at = position_named(name, frame.names or [], argument)
    try:
        numbers = as_rows(frame.select([at])).values[:, 0]
    except TypeError:
        raise TypeError(f"{argument}={shown(name)}: column {name!r} must hold flags, True or False") from None
    flags = numbers == 1.0
    wrong = np.flatnonzero(~flags & (numbers != 0.0))
    if wrong.size:
        i = wrong[0]
        raise ValueError(f"column {name!r}, row {i}: flags are True or False ({argument}), got {numbers[i]:g}")
    return np.asarray(flags)


def without_columns(X: Any, left_out: Collection[Any]) -> Any:
    """Return a data frame without the columns called `left_out`."""
    frame = _as_table(X)
    assert frame is not None
    rest = frame.select([j for j, name in enumerate(frame.names or []) if name not in left_out])
    return rest if X is frame else rest.native


def position_named(name: Any, names: list[Any], argument: str) -> int:
    """Return the position of the column called `name`; raise unless exactly one column has this name.

    Parameters
    ----------
    name : object
        The name.
    names : list
        The names of all columns.
    argument : str
        The argument in which the user gave the name, for messages.
    """
    if names.count(name) != 1:
        found = "no column" if name not in names else "more than one column"
        raise ValueError(f"{argument}={shown(name)}: there is {found} of that name among {', '.join(map(repr, names))}")
    return names.index(name)


def select(X: Any, rows: NDArray[np.intp] | None, columns: Any) -> Any:
    """Select rows (None: all) and columns by position; return a data frame for a data frame, otherwise an array."""
    frame = _as_table(X)
    if frame is None:
        matrix = as_matrix(X)
        part = matrix.values[:, columns] if rows is None else matrix.values[np.ix_(rows, columns)]
        return part[:, 0] if matrix.was_vector and len(columns) else part
    part = frame.select([int(j) for j in columns], rows)
    return part if X is frame else part.native


def columns_named(X: Any, names: list[Any] | None) -> Any:
    """Return the columns `names` of a data frame in this order, or X unchanged if one is missing."""
    frame = None if names is None else _as_table(X)
    if frame is None or names is None:
        return X
    order = matching_order(frame.names or [], names)
    if order is None:
        return X
    part = frame.select(order)
    return part if X is frame else part.native


def order_chunk(chunk: Any, labels: Sequence[Any] | None) -> Any:
    """Put the labelled columns of a chunk in the order of `labels`, the labels of the first chunk.

    A chunk with other labels is returned unchanged, and the caller rejects it. A chunk with unnamed columns is returned
    unchanged as well, and the caller matches its columns by position.
    """
    if labels is None:
        return chunk
    if (axis := axis_labels(chunk)) is not None:
        order = matching_order(axis, labels) if len(axis) == len(labels) else None
        return chunk if order is None else chunk[:, order]
    own = names_of(chunk)
    return chunk if own is None or len(own) != len(labels) else columns_named(chunk, list(labels))


def replace_columns(X: Any, part: Any, values: NDArray[Any]) -> Any:
    """Return a copy of `X` in which the columns of `part` are replaced by `values`.

    If `X` is not a data frame or series, `values` are returned as an array of the library of `X`.
    """
    frame = as_frame(X)
    if frame is None:
        return as_array_like(values, X)
    chosen = frame if part is X else as_frame(part)
    assert chosen is not None
    return frame.replace(chosen, values)


def column_at(X: Any, position: int) -> Any:
    """Return one column of a data frame, given by position, as a series of its library."""
    frame = as_frame(X)
    assert frame is not None
    return frame.series(position)


def labelled(part: Any, values: NDArray[Any], columns: Sequence[str] | None = None) -> Any:
    """Return `values` with the labels of `part` if that is a data frame or series, otherwise unchanged.

    Values keep their type. They get the index of `part`, and its column names or the names `columns`.
    """
    frame = as_frame(part)
    return values if frame is None else frame.label(values, columns)


def order_frame(value: Any, names: list[Any] | None, what: str) -> Any:
    """Put the columns of a data frame in the order `names`; raise if labels differ. Return other objects unchanged.

    The message of the error calls the argument `what`.
    """
    labels = names_of(value)
    if labels is None or names is None:
        return value
    part = columns_named(value, names)
    if names_of(part) != list(names) and not may_go_by_position(labels, names):
        raise ValueError(f"{what} has the columns {few(labels)}, and not {few(names)}; use the same labels")
    return part


def label_like(values: FloatArray, *sources: Any) -> Any:
    """Return `values` labelled like the first source of the same shape, or as an array if that source has no labels."""
    for source in sources:
        if getattr(source, "shape", None) == values.shape:
            return labelled(source, values)
    return values


def by_name(values: NDArray[Any], names: Sequence[Any] | None, levels: Sequence[Any] | None = None) -> Any:
    """Return one value per column as a pandas series with the labels of the columns.

    If the columns have no labels or pandas is not installed, the array is returned.

    Parameters
    ----------
    values : (p,) ndarray
        The values.
    names : sequence or None
        Labels of the columns.
    levels : sequence, optional
        Names of the levels of labels that have several levels.
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


def level_names(X: Any) -> list[Any] | None:
    """Return the names of the levels of the column labels of a pandas data frame, or None if they have no names."""
    if library(X) != "pandas" or not hasattr(X, "columns"):
        return None
    names = list(X.columns.names)
    return None if all(name is None for name in names) else names
