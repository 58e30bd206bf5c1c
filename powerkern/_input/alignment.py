"""Alignment by label: one rule for all arguments that have one value per row or one value per column.

If an argument and the data have the same labels in different orders, the values of the argument are reordered. If the
labels differ, an error names one of them. If the argument or the data have no labels, values are matched by position.

Rows have labels where pandas, Modin, cuDF or xarray give them an index. Two default indexes of the same length have the
same labels. A default index next to labels of another kind is an error, whereas pandas would fill such rows with NaN.
Columns with default names (labels 0, 1, 2, ... in this order) are matched by position with columns that have text
names.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from powerkern._input.foreign import library
from powerkern._input.messages import shown

# --- rows -----------------------------------------------------------------------------------------------


def row_labels(X: Any) -> Any:
    """Return the labels of the rows of `X` as an index, or None if they have no labels."""
    own = library(X)
    if own == "narwhals" and hasattr(X, "implementation"):
        return row_labels(X.to_native())
    if own in ("pandas", "modin", "cudf"):
        return getattr(X, "index", None) if hasattr(X, "iloc") else None
    if own == "xarray" and hasattr(X, "indexes") and len(X.dims) > 0:
        return X.indexes.get(X.dims[0])
    return None


def align_rows(values: Any, X: Any, what: str, whose: str = "X") -> Any:
    """Return `values`, which have one entry per row of `X`, reordered like the rows of `X`.

    Parameters
    ----------
    values : object
        The argument: series, data frame, array or list.
    X : object
        The data whose rows the argument describes.
    what, whose : str
        The names of the argument and of the data in messages.

    Raises
    ------
    ValueError
        The labels of `values` and of `X` differ, or are repeated and in different orders.
    """
    own = row_labels(values)
    labels = None if own is None else row_labels(X)
    if labels is None or own is labels or own.equals(labels):
        return values
    if len(own) != len(labels):
        if own.is_unique and labels.isin(own).all():
            raise ValueError(
                f"{what} has {len(own)} rows, {whose} has {len(labels)}; choose the rows of {whose}: "
                f"{what}.loc[{whose}.index]"
            )
        return values  # the caller compares lengths
    for labelled, name in ((own, what), (labels, whose)):
        if not labelled.is_unique:
            raise ValueError(
                f"{name} has the row label {_first(labelled, labelled.duplicated())!r} more than once, and the labels "
                f"of {what} and {whose} differ; pass {what}.to_numpy() if both are in the same order"
            )
    order = own.get_indexer(labels)
    if (order < 0).any():
        raise ValueError(
            f"{what} has no row labelled {_first(labels, order < 0)!r}, which {whose} has; give both the same labels, "
            f"or pass {what}.to_numpy() to take it by position"
        )
    return values.iloc[order] if hasattr(values, "iloc") else values[order]


def _first(labels: Any, chosen: Any) -> Any:
    return labels[chosen][:1].tolist()[0]


# --- columns --------------------------------------------------------------------------------------------


def axis_labels(X: Any) -> list[Any] | None:
    """Return the labels of the columns of an xarray matrix, or None if it has none or `X` is something else."""
    if library(X) != "xarray" or not hasattr(X, "indexes") or len(X.dims) != 2:
        return None
    index = X.indexes.get(X.dims[1])
    return None if index is None else index.tolist()


def are_default(labels: Sequence[Any]) -> bool:
    """Return whether labels are pandas' default labels 0, 1, 2, ..., which stand for unnamed columns."""
    return all(is_whole_label(label) and label == j for j, label in enumerate(labels))


def is_whole_label(label: Any) -> bool:
    """Return whether a label is an integer; True and False are not."""
    return isinstance(label, Integral) and not isinstance(label, bool | np.bool_)


def matching_order(labels: Sequence[Any], wanted: Sequence[Any]) -> list[int] | None:
    """Return the positions of the labels `wanted` among `labels`, or None if columns must be matched by position.

    The result is also None if a label is missing; the caller checks this, and the number of columns.
    """
    if len(labels) == len(wanted) and (len(labels) == 1 or list(labels) == list(wanted)):
        return None
    position = {label: j for j, label in enumerate(labels)}
    if len(position) < len(labels) or any(label not in position for label in wanted):
        return None
    return [position[label] for label in wanted]


def may_go_by_position(labels: Sequence[Any], wanted: Sequence[Any], *, one_may_differ: bool = True) -> bool:
    """Return whether columns with differing labels may be matched by position, as one list holds default labels.

    Default labels do not match other integers, which count as names. With `one_may_differ`, a single column may have
    any label.
    """
    if one_may_differ and len(labels) == len(wanted) == 1:
        return True
    for some, others in ((labels, wanted), (wanted, labels)):
        if are_default(some) and not any(map(is_whole_label, others)):
            return True
    return False


class ColumnNames(NamedTuple):
    """Names of columns in the results of a fit, and their labels in the data."""

    #: Names in results; None if there are none.
    names: list[Any] | None
    #: Labels in the data, which `names` may replace; None if the data have none.
    labels: list[Any] | None

    @property
    def are_new(self) -> bool:
        """True if the user gave columns names other than their labels in the data."""
        return self.labels is not None and self.names != self.labels


def merging_order(own: ColumnNames, other: ColumnNames) -> list[int] | None:
    """Return the position in `other` of each column of `own`, or None if both have the same order.

    Columns are matched by their labels in the data, or by their names if `own` or `other` has no labels.

    Raises
    ------
    ValueError
        A column is missing in `other`, or has different names in `own` and `other`.
    """
    by_label = own.labels is not None and other.labels is not None
    wanted, given = (own.labels, other.labels) if by_label else (own.names, other.names)
    if wanted is None or given is None:
        return None
    order = matching_order(given, wanted)
    if order is None and wanted != given and not may_go_by_position(given, wanted, one_may_differ=False):
        lacking = next((label for label in wanted if label not in given), wanted[0])
        another = next((label for label in given if label not in wanted), given[0])
        raise ValueError(
            f"column {wanted.index(lacking)} is {lacking!r} in one chunk and {another!r} in another; all chunks must "
            "have the same columns"
        )
    if by_label and own.are_new and other.are_new and own.names != other.names:
        names = other.names or [] if order is None else [(other.names or [])[j] for j in order]
        for label, a, b in zip(wanted, own.names or [], names, strict=True):
            if a != b:
                raise ValueError(
                    f"column {label!r} is called {a!r} in one chunk and {b!r} in another; give all chunks the same "
                    "names"
                )
    return order


def align_columns(values: Any, names: Sequence[Any] | None, what: str) -> Any:
    """Return `values`, a number or one entry per column, reordered like the columns called `names`.

    Parameters
    ----------
    values : object
        The argument. Series are aligned by their index. Square data frames, which have a row and a column for each
        column of the data, are aligned by index and columns. Anything else is returned unchanged.
    names : sequence or None
        The labels of the columns; None: they have none, and `values` are matched by position.
    what : str
        The name of the argument in messages.

    Raises
    ------
    ValueError
        The labels differ.
    """
    if names is None:
        return values
    labels = row_labels(values)
    if labels is None:
        return values
    rows = _order(labels.tolist(), names, what)
    if rows is not None:
        values = values.iloc[rows] if hasattr(values, "iloc") else values[rows]
    if library(values) == "pandas" and hasattr(values, "columns"):
        columns = _order(values.columns.tolist(), names, what)
        values = values if columns is None else values.iloc[:, columns]
    return values


def _order(labels: list[Any], names: Sequence[Any], what: str) -> list[int] | None:
    """Return the positions of `names` among `labels`, or None if entries are to be matched by position.

    Entries are matched by position if the two lists are equal, if either has default labels, and if their lengths
    differ, which the caller reports. Otherwise, raise ValueError if the labels differ or repeat; the message calls the
    argument `what`.
    """
    if len(labels) != len(names) or labels == list(names):
        return None  # the caller compares lengths
    order = matching_order(labels, names)
    if order is None and not may_go_by_position(labels, names):
        other = next((label for label in labels if label not in names), None)
        if other is None:
            raise ValueError(
                f"{what} has labels that occur more than once; pass {what}.to_numpy() to match by position"
            )
        raise ValueError(
            f"{what} has the label {shown(other)}, and the columns are {few(names)}; use their labels, or pass "
            f"{what}.to_numpy() to take it by position"
        )
    return order


def few(names: Sequence[Any]) -> str:
    """Return the first five labels of a list and the number of others, for a message."""
    text = ", ".join(map(repr, names[:5]))
    return text if len(names) <= 5 else f"{text} and {len(names) - 5} more"


# --- labels in JSON -------------------------------------------------------------------------------------


def labels_to_record(labels: Sequence[Any] | None) -> list[Any] | None:
    """Return column labels as JSON values: text unchanged, any other label as an object {type: text}.

    Raises
    ------
    TypeError
        A label has a type that cannot be stored.
    """
    return None if labels is None else [_label_to_record(label) for label in labels]


def labels_from_record(record: Any) -> list[Any] | None:
    """Return the labels that `labels_to_record` stored; raise ValueError for any other record."""
    if record is None:
        return None
    if not isinstance(record, list):
        raise ValueError("labels are not a list")
    return [_label_from_record(each) for each in record]


def _label_to_record(label: Any) -> Any:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, tuple):
        return {"levels": [_label_to_record(level) for level in label]}
    if label is None:
        return {"none": ""}
    if isinstance(label, bool | np.bool_):
        return {"boolean": str(bool(label))}
    if isinstance(label, Integral):
        return {"integer": str(int(label))}
    if isinstance(label, float | np.floating):
        return {"number": repr(float(label))}
    if isinstance(label, datetime.date):
        kind = "timestamp" if library(label) == "pandas" else type(label).__name__
        if kind in ("timestamp", "datetime", "date"):
            return {kind: label.isoformat()}
    raise TypeError(
        f"the column label {label!r} is a {type(label).__name__}, which cannot be stored in a file; rename the "
        "columns, for "
        "example X.columns = X.columns.astype(str), and fit again"
    )


def _timestamp(text: str) -> Any:
    import pandas

    return pandas.Timestamp(text)


def _boolean(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError("a label is neither True nor False")
    return text == "True"


_LABELS: dict[str, Callable[[str], Any]] = {
    "none": lambda text: None,
    "boolean": _boolean,
    "integer": int,
    "number": float,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timestamp": _timestamp,
}


def _label_from_record(record: Any) -> Any:
    if isinstance(record, str):
        return record
    if not isinstance(record, dict) or len(record) != 1:
        raise ValueError("a label is neither text nor an object with one entry")
    ((kind, value),) = record.items()
    if kind == "levels" and isinstance(value, list):
        return tuple(map(_label_from_record, value))
    if kind not in _LABELS or not isinstance(value, str):
        raise ValueError(
            f"the label {shown(record)} is neither a list of levels nor text of one of the types {', '.join(_LABELS)}"
        )
    return _LABELS[kind](value)
