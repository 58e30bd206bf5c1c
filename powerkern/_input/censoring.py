"""Censored cells: values known only to lie below a limit, above a limit, or between two numbers.

The user marks them by arrays of the shape of the data, or by limits of the columns. A matrix then stores one end of the
interval of each censored cell as its value, and the other end in `Matrix.ends`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input import frames
from powerkern._input.alignment import align_rows
from powerkern._input.arguments import column_ends, describe_cell
from powerkern._input.arrays import Matrix, as_rows, column_label
from powerkern._input.messages import shown
from powerkern._typing import BoolArray, FloatArray


class Marks(NamedTuple):
    """The arguments `below`, `above` and `between` of `powerkern.fit`, which mark censored cells."""

    below: Any = None
    above: Any = None
    between: Any = None

    @property
    def are_given(self) -> bool:
        """True if the user passed any of the three arguments."""
        return self.below is not None or self.above is not None or self.between is not None


#: Marks of data without censored cells.
NO_MARKS = Marks()


class Flags(NamedTuple):
    """Marks read from columns of a data frame, by the name of the column whose cells they mark."""

    by_column: Mapping[Any, BoolArray]


def without_flags(X: Any, marks: Marks) -> tuple[Any, Marks]:
    """Read the columns of `X` that hold flags; return `X` without them, and the marks with the flags filled in.

    Raises
    ------
    TypeError, ValueError
        Flags are named but `X` is not a data frame, a column is missing, or a flag is not True or False.
    """
    taken: set[Any] = set()
    for name in ("below", "above"):
        given = getattr(marks, name)
        if isinstance(given, str) or (isinstance(given, list | tuple) and given and isinstance(given[0], str)):
            raise TypeError(
                f"{name}={shown(given)}: say which column each flag marks, as in {name}={{'value': 'flag'}}"
            )
        if isinstance(given, dict):
            flags = {column: frames.read_flags(X, flag, f"{name}[{column!r}]") for column, flag in given.items()}
            marks = marks._replace(**{name: Flags(flags)})
            taken.update(given.values())
    return (frames.without_columns(X, taken) if taken else X), marks


def given_limits(limits: object, p: int, names: Sequence[Any] | None = None) -> FloatArray:
    """Return the lower and the upper detection limit of each column, (2, p); infinite where there is none.

    Series are aligned with the labels `names`.

    Raises
    ------
    TypeError
        `limits` is not a pair of numbers or of arrays of numbers.
    ValueError
        The number of limits is neither 1 nor `p`, a limit is NaN, or a lower limit is not below the upper one.
    """
    lower, upper = column_ends("limits", as_ends("limits", limits), p, names)
    wrong = ~(lower < upper)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"limits must be (low, high) with low < high; for {column_label(j, names)} they are {lower[j]:g} and "
            f"{upper[j]:g}"
        )
    return np.stack([lower, upper])


def as_ends(name: str, value: Any) -> tuple[Any, Any]:
    """Return `value` as a pair (low, high) of any objects; raise an error that calls it `name` unless it is a pair."""
    if isinstance(value, str | dict | set) or not hasattr(value, "__len__") or len(value) != 2:
        raise TypeError(f"{name} must be a pair (low, high), None where there is no limit, got {shown(value)}")
    low, high = value
    return low, high


def with_marks(matrix: Matrix, X: Any, marks: Marks, limits: FloatArray | None = None) -> Matrix:
    """Return a copy of a matrix that stores the intervals of its censored cells.

    Parameters
    ----------
    matrix : Matrix
        The data after reading.
    X : object
        The data that the user passed; marks in data frames are aligned with its rows.
    marks : Marks
        Marks of cells that are below or above the number in them, and of cells between two other numbers.
    limits : (2, p) ndarray, optional
        Limits of the columns; cells at or beyond a limit are censored at it.

    Raises
    ------
    TypeError, ValueError
        Marks have another shape or other labels, are not True and False, or contradict each other.
    """
    values: NDArray[Any] = matrix.values
    below, above = (_flags(name, getattr(marks, name), matrix, X) for name in ("below", "above"))
    if below is not None and above is not None:
        _refuse_cells(below & above, matrix, "is marked by both below= and above=")
    if limits is not None and not marks.are_given:
        values, ends = _censor_at_limits(values, limits)
        return matrix._replace(values=values, ends=ends)
    ends = _open_ends(below, above, values)
    if marks.between is not None:
        values = _mark_between(marks.between, ends, matrix, X)
    if limits is not None:
        values = _apply_limits(values, ends, limits)
    without = np.isnan(values)
    without &= ends == ends
    _refuse_cells(without, matrix, "is marked but has no number; put its limit there, or pass limits=")
    return matrix._replace(values=values, ends=ends)


def with_censored(matrix: Matrix, chunk: object, marks: Marks, limits: FloatArray | None) -> Matrix:
    """Return a matrix that stores the intervals of its censored cells; without marks and limits, the matrix itself.

    Parameters
    ----------
    matrix : Matrix
        The chunk after reading.
    chunk : object
        The chunk as the user passed it; marks in data frames are aligned with its rows.
    marks : Marks
        Marks of the censored cells of the chunk.
    limits : (2, p) ndarray or None
        Limits of the columns.
    """
    if not marks.are_given and (limits is None or not np.isfinite(limits).any()):
        return matrix
    return with_marks(matrix, chunk, marks, limits)


def _flags(name: str, given: Any, matrix: Matrix, X: Any) -> BoolArray | None:
    """Read a mask with the shape of a matrix, aligned with it by label; raise for entries other than True and False.

    Parameters
    ----------
    name : str
        Name of the argument, "below" or "above".
    given : object
        The argument; None: no mask.
    matrix : Matrix
        The data after reading.
    X : object
        The data that the user passed.
    """
    if given is None:
        return None
    if isinstance(given, Flags):
        return _spread_flags(name, given, matrix)
    read = _cells_like(name, given, matrix, X)
    if read.dtype == np.bool_:
        return read
    flags = read == 1.0
    wrong = ~flags & (read != 0.0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        where = describe_cell(i, None if matrix.was_vector else j, matrix.names)
        raise ValueError(f"{name}, {where}: marks are True or False, got {read[i, j]:g}")
    return np.asarray(flags)


def _spread_flags(name: str, flags: Flags, matrix: Matrix) -> BoolArray:
    """Expand the flags of some columns to a mask with the shape of the matrix; errors call the argument `name`."""
    names = matrix.names or []
    mask = np.zeros(matrix.values.shape, dtype=bool)
    for column, each in flags.by_column.items():
        if column not in names:
            fitted = ", ".join(map(repr, names))
            raise ValueError(f"{name}={{{column!r}: ...}}: {column!r} is not a fitted column; the columns are {fitted}")
        mask[:, names.index(column)] = each
    return mask


def _open_ends(below: BoolArray | None, above: BoolArray | None, like: NDArray[Any]) -> FloatArray:
    """Return -inf where `below` is set, inf where `above` is set and NaN elsewhere, in the memory order of `like`.

    Multiplying a sign by infinity takes a seventh of the time of an assignment under a mask.
    """
    order: Literal["F", "C"] = "F" if like.flags.f_contiguous else "C"
    if below is None and above is None:
        return np.full(like.shape, math.nan, order=order)
    sign: Any = 0
    for mark, of_end in ((below, -1), (above, 1)):
        if mark is not None:
            sign = sign + of_end * mark.view(np.int8)
    with np.errstate(invalid="ignore"):  # 0 times infinity is NaN
        return np.asarray(np.multiply(sign, math.inf, dtype=np.float64, order=order))


def _cells_like(name: str, given: Any, matrix: Matrix, X: Any) -> NDArray[Any]:
    """Read an argument that has one entry per cell of a matrix, aligned by label; arguments as in `_flags`."""
    given = frames.order_frame(align_rows(given, X, name), matrix.names, name)
    values = as_rows(given, what=name).values
    if values.shape != matrix.values.shape:
        n, p = matrix.values.shape
        expected = f"({n},)" if matrix.was_vector else f"({n}, {p})"
        raise ValueError(f"{name} must have the shape of X, {expected}, got shape {values.shape}")
    return values


def _mark_between(between: Any, ends: FloatArray, matrix: Matrix, X: Any) -> FloatArray:
    """Store the intervals of the argument `between`: upper ends in `ends`, lower ends in a copy of the values.

    The copy is returned. An interval that is open below has its upper end in the values, and -inf in `ends`.

    Parameters
    ----------
    between : (lower, upper)
        The argument of the user.
    ends : (n, p) ndarray
        The second ends of the intervals; changed in place.
    matrix : Matrix
        The data after reading.
    X : object
        The data that the user passed.
    """
    pair = as_ends("between", between)
    lower, upper = (
        np.asarray(_cells_like(f"the {side} ends of between", each, matrix, X), dtype=np.float64)
        for side, each in zip(("lower", "upper"), pair, strict=True)
    )
    given = ~(np.isnan(lower) & np.isnan(upper))
    _refuse_cells(given & ~np.isnan(ends), matrix, "is marked by between= and by below= or above=")
    _refuse_cells(lower > upper, matrix, "has a lower end above its upper end in between=")
    lower = np.where(np.isnan(lower), -math.inf, lower)
    upper = np.where(np.isnan(upper), math.inf, upper)
    values = np.array(matrix.values, dtype=np.float64)
    from_low = given & np.isfinite(lower)
    values[from_low] = lower[from_low]
    ends[from_low] = upper[from_low]
    to_high = given & ~np.isfinite(lower)
    values[to_high] = upper[to_high]
    ends[to_high] = -math.inf
    nothing = given & np.isinf(lower) & np.isinf(upper)
    values[nothing] = ends[nothing] = math.nan
    exact = given & (lower == upper)
    ends[exact] = math.nan
    return values


def _censor_at_limits(values: NDArray[Any], limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Clip values to the limits of their columns; return them, and the second ends of the intervals of their cells.

    This is for data without marks. Arithmetic takes half the time of the assignments under a mask in `_apply_limits`.
    """
    low, high = np.where(np.isfinite(limits), limits, math.nan)
    below = values <= low if np.isfinite(low).any() else None
    above = values >= high if np.isfinite(high).any() else None
    ends = _open_ends(below, above, values)
    order: Literal["F", "C"] = "F" if values.flags.f_contiguous else "C"
    moved: NDArray[Any] = np.maximum(values, limits[0], dtype=np.float64, order=order)  # NaN stays NaN
    if above is not None:
        np.minimum(moved, limits[1], out=moved)
    return moved, ends


def _apply_limits(values: NDArray[Any], ends: FloatArray, limits: FloatArray) -> FloatArray:
    """Censor cells at or beyond the limits of their columns, and marked cells without a number; return the values.

    Parameters
    ----------
    values : (n, p) ndarray
        The cells.
    ends : (n, p) ndarray
        Second ends of the intervals of marked cells, NaN for all other cells; changed in place.
    limits : (2, p) ndarray
        The limits.
    """
    values = np.array(values, dtype=np.float64)
    for limit, beyond, end in ((limits[0], np.less_equal, -math.inf), (limits[1], np.greater_equal, math.inf)):
        has = np.isfinite(limit)
        if not has.any():
            continue
        at = beyond(values, np.where(has, limit, math.nan))
        at = np.isnan(ends) & at | (ends == end) & np.isnan(values) & has
        np.copyto(values, limit, where=at)
        np.copyto(ends, end, where=at)
    return values


def _refuse_cells(wrong: BoolArray, matrix: Matrix, reason: str) -> None:
    """Raise an error with the text `reason` about the first cell in the mask `wrong`; do nothing if there is none."""
    if wrong.any():
        j = int(np.argmax(wrong.any(axis=0)))
        i = int(np.argmax(wrong[:, j]))
        raise ValueError(f"{describe_cell(i, None if matrix.was_vector else j, matrix.names)} {reason}")
