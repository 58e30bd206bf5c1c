"""Read ratings from a sparse matrix, three arrays, or a data frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._input.alignment import align_rows, is_whole_label
from powerkern._input.arrays import as_weights, is_masked_array, numbers
from powerkern._input.foreign import refuse_foreign
from powerkern._input.label_values import cast_exactly, is_missing_label
from powerkern._input.messages import shown
from powerkern._typing import FloatArray


class Entries(NamedTuple):
    """The k ratings of a sparse matrix.

    Attributes
    ----------
    rows, columns : (n,), (p,) ndarray
        Labels of the rows and of the columns.
    row, column : (k,) ndarray of int
        Position of the row and of the column of each rating among these labels.
    value : (k,) ndarray
        The ratings.
    weight : (k,) ndarray or None
        Weights of the ratings, in units of `mean_weight`; None: all one.
    mean_weight : float
        Mean of the weights that the user passed.
    """

    rows: NDArray[Any]
    columns: NDArray[Any]
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: FloatArray
    weight: FloatArray | None
    mean_weight: float

    def select(self, chosen: NDArray[np.bool_]) -> Entries:
        """Return the ratings that the mask `chosen`, (k,), selects."""
        weight = None if self.weight is None else self.weight[chosen]
        return self._replace(row=self.row[chosen], column=self.column[chosen], value=self.value[chosen], weight=weight)


def read_ratings(ratings: Any, weight: ArrayLike | None) -> Entries:
    """Read ratings in any form that `fit_ratings` accepts; drop missing ratings and ratings of weight 0."""
    is_sparse = hasattr(ratings, "tocoo")
    row, column, values = _read_sparse(ratings) if is_sparse else _read_triplet(ratings)
    value = numbers(values, "ratings").astype(np.float64)
    weights = (
        None
        if weight is None
        else check_weights(align_rows(weight, _row_labels(ratings), "weight", "ratings"), value.size)
    )
    kept = ~np.isnan(value) if weights is None else ~np.isnan(value) & (weights > 0.0)
    infinite = np.isinf(value) & kept
    if infinite.any():
        k = int(np.argmax(infinite))
        raise ValueError(f"rating {k} (row {row[k]}, column {column[k]}) is {value[k]}; remove it")
    row, column, value = row[kept], column[kept], value[kept]
    if is_sparse:
        rows, columns = (np.arange(size) for size in ratings.shape)
    else:
        (rows, row), (columns, column) = _encode_labels(row, "rows"), _encode_labels(column, "columns")
    if weights is None or not value.size:
        return Entries(rows, columns, row, column, value, None, 1.0)
    mean = float(weights[kept].mean())
    return Entries(rows, columns, row, column, value, weights[kept] / mean, mean)


#: Kinds of labels that do not compare with each other, by the kind of their NumPy type.
_KINDS = {**dict.fromkeys("biufc", "numbers"), **dict.fromkeys("US", "text"), "M": "dates", "m": "durations"}
#: Names of the second and third of the three arrays of ratings, for messages.
_PARTS = ("the column labels", "the values")


def _row_labels(ratings: Any) -> Any:
    """Return the part of `ratings` that may have an index: the first of several arrays, or the whole data frame."""
    return ratings[0] if isinstance(ratings, tuple | list) and ratings else ratings


def _read_sparse(ratings: Any) -> list[NDArray[Any]]:
    """Return the row indices, column indices and values of the stored entries of a sparse matrix."""
    sparse = ratings.tocoo()
    if len(sparse.shape) != 2:
        raise ValueError(f"ratings have {len(sparse.shape)} dimensions; pass a sparse matrix with two")
    return [np.asarray(sparse.row, dtype=np.intp), np.asarray(sparse.col, dtype=np.intp), np.asarray(sparse.data)]


def _read_triplet(ratings: Any) -> list[NDArray[Any]]:
    """Return row labels, column labels and values from a data frame or a sequence of three arrays."""
    refuse_foreign(ratings, "ratings")
    if hasattr(ratings, "columns") and hasattr(ratings, "__getitem__"):
        names = ratings.column_names if hasattr(ratings, "column_names") else ratings.columns  # Arrow has both
        parts = [ratings[name] for name in names]
    elif isinstance(ratings, tuple | list):
        parts = list(ratings)
    else:
        raise TypeError(
            f"ratings must be a sparse matrix, or (row, column, value), got {type(ratings).__name__}; "
            "uv_decompose and UVImputer take dense matrices"
        )
    if len(parts) != 3:
        raise ValueError(
            f"ratings must be three arrays or columns (row, column, value), got {len(parts)}; "
            "for a list of triplets, pass tuple(zip(*triplets))"
        )
    parts[1:] = [align_rows(one, parts[0], what, "the row labels") for one, what in zip(parts[1:], _PARTS, strict=True)]
    if any(is_masked_array(one) and np.ma.is_masked(one) for one in parts[:2]):
        raise ValueError("labels of rows or columns are masked; leave out these ratings")
    given = [*map(_as_labels, parts[:2]), numbers(parts[2], "ratings")]
    if len({one.shape for one in given}) != 1 or given[0].ndim != 1:
        raise ValueError(
            "ratings must be three arrays of one length (row, column, value), got shapes "
            f"{', '.join(str(one.shape) for one in given)}"
        )
    return given


def _as_labels(given: Any) -> NDArray[Any]:
    """Convert labels to an array, without rounding large integers or turning text into objects."""
    try:
        labels = np.asarray(given)
    except ValueError:
        raise ValueError(f"labels must be an array, got {shown(given)}, whose parts have different lengths") from None
    if labels.dtype.kind == "O" and labels.size and all(map(is_whole_label, labels.flat)):
        whole = list(map(int, labels.flat))
        low, high = min(whole), max(whole)
        if low >= -(2**63) and high < 2**63:
            return np.array(whole, dtype=np.int64).reshape(labels.shape)
        return np.array(whole, dtype=np.uint64 if low >= 0 and high < 2**64 else object).reshape(labels.shape)
    if labels.dtype.kind in "OT" and labels.size and all(isinstance(label, str) for label in labels.flat):
        return labels.astype(np.str_)
    if labels.dtype.kind == "f" and labels.size and not hasattr(given, "dtype"):
        # a list of integers, some beyond 2**63, has become an array of floats
        exact = np.asarray(given, dtype=object)
        return labels if not all(map(is_whole_label, exact.flat)) else _as_labels(exact)
    return labels


def _encode_labels(labels: NDArray[Any], what: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels in increasing order, and the position of each label among them.

    Raise if a label is missing, or if the labels cannot be sorted; `what`, "rows" or "columns", is for messages.
    """
    missing = any(map(is_missing_label, labels)) if labels.dtype.kind == "O" else bool((labels != labels).any())
    if missing:
        raise ValueError(f"labels of {what} are missing; leave out these ratings")
    try:
        distinct, position = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError(f"the labels of {what} cannot be sorted; use numbers or strings") from None
    return distinct, position


def check_weights(weight: ArrayLike, n: int) -> FloatArray:
    """Return the weights of n ratings as an array, (n,); raise if there are not n valid weights."""
    if np.shape(weight) != (n,):
        raise ValueError(f"weight has shape {np.shape(weight)}, and there are {n} ratings; pass one weight for each")
    return as_weights(weight, n, "weight")


def find_labels(labels: NDArray[Any], given: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find the labels `given` in the sorted array `labels`: return their positions, and a mask of the labels found."""
    wanted = _as_labels(given)
    if labels.dtype.kind == "O" or wanted.dtype.kind == "O":
        return _find_objects(labels, wanted)
    kinds = {_KINDS.get(array.dtype.kind) for array in (labels, wanted) if array.size}
    if len(kinds) > 1:
        raise TypeError(f"labels are of type {labels.dtype}, got {wanted.dtype}; pass labels of the fitted type")
    wanted, exact = cast_exactly(wanted, labels.dtype)
    position = np.minimum(np.searchsorted(labels, wanted), labels.size - 1)
    return position, np.asarray(labels[position] == wanted) & exact


def _find_objects(labels: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find labels that are Python objects; see `find_labels`. A missing label is never found."""
    table = {label: k for k, label in enumerate(labels.tolist())}
    is_text = {isinstance(label, str) for label in table}
    found = np.full(wanted.shape, -1, dtype=np.intp)
    for where, label in np.ndenumerate(wanted):
        if is_missing_label(label):
            continue
        if is_text and isinstance(label, str) not in is_text:
            raise TypeError(f"labels are of type {labels.dtype}, got {shown(label)}; pass labels of the fitted type")
        try:
            found[where] = table.get(label, -1)
        except TypeError:
            raise TypeError(f"{shown(label)} is a {type(label).__name__}, which cannot be a label") from None
    return np.maximum(found, 0), found >= 0
