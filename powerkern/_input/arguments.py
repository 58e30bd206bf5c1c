"""Validation of arguments that several interfaces share: numbers, lambdas, bounds, weights, out-of-domain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.alignment import align_columns
from powerkern._input.arrays import (
    Matrix,
    as_reals,
    as_weights,
    column_label,
    is_integer,
    is_real,
    numbers,
    output_type,
    to_list,
)
from powerkern._input.messages import shown
from powerkern._typing import FloatArray, IntArray, Weights

_FLOAT64 = np.dtype(np.float64)

#: Factor by which transformed values stay below overflow if no ymax is given, as in scipy.
_SAFETY = 1e4


def as_generator(rng: Any) -> np.random.Generator:
    """Convert the argument `rng` to a random generator, as SPEC 7 of Scientific Python describes.

    A generator is returned unchanged. None, an integer of at least 0, a seed sequence or a bit generator seeds a new
    generator, as in `numpy.random.default_rng`.
    """
    is_seed = is_integer(rng) and rng >= 0
    kinds = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
    if not (rng is None or is_seed or isinstance(rng, kinds)):
        raise TypeError(f"rng must be a whole number of at least 0, a numpy.random.Generator or None, got {shown(rng)}")
    return np.random.default_rng(rng)


#: Largest integer that an argument may be, unless its function has another limit.
_LARGEST_COUNT = 2**31 - 1
#: Largest `n_starts`, because every start is a complete search.
MOST_STARTS = 10_000


def as_whole(what: str, value: object, least: int = 1, most: int = _LARGEST_COUNT) -> int:
    """Return an argument as an int; raise unless it is an integer within limits.

    Parameters
    ----------
    what : str
        Name of the argument, for messages.
    value : object
        The argument.
    least, most : int
        Smallest and largest number accepted.
    """
    if not is_integer(value):
        raise TypeError(f"{what} must be a whole number, got {shown(value)}")
    number = int(value)
    if number < least:
        raise ValueError(f"{what} must be at least {least}, got {shown(number)}")
    if number > most:
        raise ValueError(f"{what} must be at most {most}, got {shown(number)}")
    return number


def as_number(what: str, value: object, interval: str = "(-inf, inf)") -> float:
    """Return an argument as a float; raise unless it is a number in `interval`, such as "[0, 1)".

    `what` is the name of the argument in messages.
    """
    if not is_real(value):
        raise TypeError(f"{what} must be a number, got {shown(value)}")
    low, high = map(float, interval[1:-1].split(","))
    number: Any = value
    if isinstance(number, np.longdouble):
        with np.errstate(over="ignore"):  # a number beyond float64 becomes infinite
            number = float(number)
    inside = low < number < high or (number == low and interval[0] == "[") or (number == high and interval[-1] == "]")
    if not inside:
        raise ValueError(f"{what} must be a number in {interval}, got {shown(value)}")
    return float(number)


def column_positions(columns: Any, n: int) -> IntArray:
    """Return the positions of the selected columns among n columns, given one or more positions, a mask or a slice."""
    every: IntArray = np.arange(n)
    if isinstance(columns, slice):
        columns = every[columns]
    try:
        chosen = np.atleast_1d(np.asarray(columns))
    except ValueError:  # ragged
        chosen = np.empty(0, dtype=object)
    if chosen.dtype == bool and chosen.shape == (n,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or ((chosen < -n) | (chosen >= n)).any():
        text = f"columns must be positions from 0 to {n - 1}, or a mask of {n} columns, got {shown(columns)}"
        raise (ValueError if chosen.dtype.kind in "iub" else TypeError)(text)
    found: IntArray = every[chosen]
    return found


def is_weightless(sample_weight: ArrayLike | None, n: int) -> bool:
    """Return whether `sample_weight` consists of n weights that are all zero, as is allowed in chunks of the data."""
    if sample_weight is None:
        return False
    weights = numbers(sample_weight, "sample_weight")
    return weights.shape == (n,) and not np.any(weights)


def weights_of(sample_weight: ArrayLike | None, n: int) -> Weights:
    """Validate weights and return them as the kernels require: contiguous and writable; None if none were given."""
    return None if sample_weight is None else np.require(as_weights(sample_weight, n), requirements=["C", "W"])


def each_column(what: str, value: object, p: int, names: Sequence[Any] | None = None) -> FloatArray:
    """Return an argument with one number, or one per column, as a writable array of p numbers.

    Parameters
    ----------
    what : str
        The name of the argument in messages.
    value : object
        The argument. A series is aligned by label with `names`.
    p : int
        The number of columns.
    names : sequence, optional
        The labels of the columns.
    """
    given = as_reals(what, align_columns(value, names, what))
    if given.shape not in ((), (p,)):
        raise ValueError(f"{what} must be one number or one per column ({p}), got shape {given.shape}")
    return np.array(np.broadcast_to(given, (p,)))


def given_lambdas(lmbda: ArrayLike | None, p: int, names: Sequence[Any] | None = None) -> FloatArray:
    """Return one lambda per column, NaN where lambda is to be fitted; a series is aligned with the labels `names`."""
    if lmbda is None:
        return np.full(p, np.nan)
    given = each_column("lmbda", lmbda, p, names)
    if np.isinf(given).any():
        raise ValueError("lmbda must be finite, or NaN for columns to fit")
    return given


def as_pair(what: str, value: object) -> tuple[Any, Any]:
    """Return an argument that is a pair (low, high) of numbers, arrays or None; raise TypeError for anything else.

    `what` is the name of the argument in the message.
    """
    try:
        pair = to_list(value)
    except TypeError:
        pair = []
    if len(pair) != 2 or isinstance(value, str | dict | set):
        raise TypeError(
            f"{what} must be a pair (low, high) of lambdas, None where there is no bound, got {shown(value)}"
        )
    return pair[0], pair[1]


def column_ends(what: str, pair: tuple[Any, Any], p: int, names: Sequence[Any] | None) -> tuple[FloatArray, FloatArray]:
    """Return two (p,) arrays: the lower and the upper ends of an interval for each column.

    Parameters
    ----------
    what : str
        The name of the argument.
    pair : pair
        The lower and the upper ends: numbers, or one per column; None means infinite.
    p : int
        The number of columns.
    names : sequence or None
        Labels of the columns, with which series are aligned.
    """
    low, high = pair
    lower = each_column(f"the lower end of {what}", -math.inf if low is None else low, p, names)
    return lower, each_column(f"the upper end of {what}", math.inf if high is None else high, p, names)


def given_bounds(bounds: object, p: int, names: Sequence[Any] | None = None) -> FloatArray:
    """Return the smallest and the largest lambda of each column, (2, p); infinite where there is no bound.

    Series are aligned with the labels `names`.

    Raises
    ------
    TypeError
        `bounds` is not a pair of numbers or of arrays of numbers.
    ValueError
        The number of bounds is neither 1 nor `p`, a bound is NaN, or low is above high.
    """
    if bounds is None:
        return np.repeat([[-math.inf], [math.inf]], p, axis=1)
    low, high = column_ends("bounds", as_pair("bounds", bounds), p, names)
    wrong = ~(low <= high) | (low == math.inf) | (high == -math.inf)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            f"bounds must be an interval, low <= high; for {column_label(j, names)}, low is {low[j]:g} and "
            f"high {high[j]:g}"
        )
    return np.stack([low, high])


def output_limit(ymax: float | None, standardize: bool, dtype: np.dtype[Any] = _FLOAT64) -> float:
    """Return the limit on transformed values: `ymax`, or a default.

    The default is infinity for standardized output, and 1e-4 of the largest number of the output type for raw output.

    Parameters
    ----------
    ymax : float or None
        The argument of the user.
    standardize : bool
        Whether the output is standardized.
    dtype : dtype
        Type of the data, which determines the type of the output and thus where it overflows.
    """
    if ymax is None:
        return math.inf if standardize else float(np.finfo(output_type(dtype)).max) / _SAFETY
    limit = as_reals("ymax", ymax)
    if limit.ndim > 0 or not limit > 0.0:
        raise ValueError(f"ymax must be positive, got {shown(ymax)}")
    return float(limit)


# --- values outside the domain --------------------------------------------------------------------------


def refuse_infinite(matrix: Matrix) -> None:
    """Raise if any value is infinite; the error names the first infinite value of the first affected column."""
    if matrix.values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(matrix.values, dtype=np.float64)
        if np.isfinite(np.sum(values)):  # faster than checking each value
            return
    infinite = np.isinf(values)
    if infinite.any():
        raise domain_error_in(matrix, int(np.argmax(infinite.any(axis=0))), matrix.names)


def domain_error_in(
    matrix: Matrix,
    j: int,
    names: list[str] | None,
    weight: Weights = None,
    shift: float = 0.0,
    remedy_of_infinite: str = "",
) -> ValueError:
    """Return the error for the first value of column `j` that is infinite or outside the domain.

    Parameters
    ----------
    matrix : Matrix
        The data.
    j : int
        Position of the column, which must contain such a value.
    names : list of str or None
        Names of the columns.
    weight : (n,) ndarray or None
        Weight of each row; rows of weight 0 are ignored. None: all 1.
    shift : float
        The shift of the column, which the transform adds to its values; the values in `matrix` do not include it.
    remedy_of_infinite : str
        Last words of the message if the value is infinite.
    """
    with np.errstate(over="ignore"):
        column = np.asarray(matrix.values[:, j], dtype=np.float64)
        if weight is not None:
            column = np.where(weight > 0.0, column, np.nan)
        moved = column + shift
    kind, offends = "infinite", np.isinf(column)
    if not offends.any():
        kind, offends = "overflow", np.isinf(moved)
    if not offends.any():
        kind, offends = "not above" if shift else "not positive", moved <= 0.0
    i = int(np.argmax(offends))
    remedy = remedy_of_infinite if kind == "infinite" else ""
    return domain_error(kind, None if matrix.was_vector else j, i, float(column[i]), names, shift, remedy)


class Place(NamedTuple):
    """The location and the cause of an error, stored in the exception."""

    #: Position of the column; None if the input is one-dimensional.
    column: int | None
    #: Number of the row, from 0; None if the error is about the whole column.
    row: int | None
    #: The message without the location.
    reason: str


def column_error(j: int, names: Sequence[Any] | None, reason: str) -> ValueError:
    """Return an error about column j as a whole."""
    error = ValueError(f"{column_label(j, names)}: {reason}")
    vars(error)["place"] = Place(j, None, reason)
    return error


def domain_error(
    kind: str,
    j: int | None,
    i: int,
    value: float,
    names: Sequence[str] | None,
    shift: float = 0.0,
    remedy: str = "",
) -> ValueError:
    """Return the error for a value outside the domain of the transform.

    Parameters
    ----------
    kind : str
        The kind of error, a key of `_DOMAIN_REMEDIES`.
    j : int or None
        Position of the column; None for 1-D input.
    i : int
        Position of the row.
    value : float
        The value in the data, before the shift is added.
    names : sequence of str or None
        Names of the columns.
    shift : float
        The shift of the column, which the transform adds to its values.
    remedy : str
        Further advice, added at the end of the message.
    """
    reason = f"the value is {float(value)}{_DOMAIN_REMEDIES[kind].format(shift=shift, end=-shift)}{remedy}"
    error = ValueError(f"{describe_cell(i, j, names)}: {reason}")
    vars(error)["place"] = Place(j, i, reason)
    return error


def describe_cell(i: int, j: int | None, names: Sequence[Any] | None) -> str:
    """Return the place of a cell for a message: column and row, or the row alone if `j` is None (1-D input)."""
    return f"row {i}" if j is None else f"{column_label(j, names)}, row {i}"


def place_of(error: Exception) -> Place | None:
    """Return the `Place` stored in an error, for callers that reword its message; None if no place is stored."""
    return vars(error).get("place")


#: Last words of the messages about values outside the domain: the problem, and the remedy.
_DOMAIN_REMEDIES = {
    "overflow": ", which plus shift = {shift} overflows float64; divide the column and the shift by the largest value",
    "not above": " and not above -shift = {end}, beyond which the shifted Box-Cox transformation is defined; fit with "
    "a larger shift, drop the row, or fit with family='yeo-johnson'",
    "without inverse": ", beyond the range of the transform, and has no inverse; use out_of_range='clip' or "
    "out_of_range='nan', or keep values inside the range",
    "infinite": "; replace infinite values, or mark them missing with NaN",
    "not positive": ", and the Box-Cox transformation can only be applied to strictly positive data; shift or drop the "
    "column, or fit with family='yeo-johnson'",
}
