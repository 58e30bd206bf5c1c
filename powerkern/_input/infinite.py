"""Treatment of infinite values: raise an error, treat them as missing, or keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import Matrix, as_choice, column_label, output_type
from powerkern._input.choices import Infinite
from powerkern._input.messages import counted, warn
from powerkern._typing import IntArray


def as_infinite(value: object) -> Infinite:
    """Return an argument that must be a treatment of infinite values; raise for any other value."""
    return as_choice("infinite", value, get_args(Infinite))  # type: ignore[return-value]


def without_infinite(matrix: Matrix, infinite: Infinite, *, warns: bool = True) -> Matrix:
    """Return the data to fit: unless ``infinite="raise"``, a copy with NaN in place of infinite values.

    Parameters
    ----------
    matrix : Matrix
        The data; returned unchanged if no value is infinite.
    infinite : {"raise", "missing", "keep"}
        The treatment. With "raise", infinite values are not replaced here, and the fit raises an error for them.
    warns : bool
        With "missing", warn once, with the number of infinite values in each column, including rows of weight 0.
    """
    if infinite == "raise" or matrix.values.dtype.kind != "f":
        return matrix
    values: NDArray[Any] = matrix.values
    with np.errstate(over="ignore"):
        if values.dtype.itemsize > 8:  # long doubles beyond float64 are infinite
            values = values.astype(output_type(values.dtype))
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(np.sum(values, dtype=np.float64)):  # faster than checking each value
            return matrix._replace(values=values)
    is_infinite = np.isinf(values)
    counts = np.count_nonzero(is_infinite, axis=0)
    if not counts.any():
        return matrix._replace(values=values)
    if warns and infinite == "missing":
        warn(describe_missing(counts, lambda j: column_label(j, matrix.names)))
    return matrix._replace(values=np.where(is_infinite, values.dtype.type(np.nan), values))


def describe_missing(counts: IntArray, label: Callable[[int], str]) -> str:
    """Return the warning that counts the infinite values treated as missing, by column.

    Parameters
    ----------
    counts : (p,) ndarray of int
        Number of infinite values in each column.
    label : function
        Takes the position of a column; returns its name for messages.
    """
    return counted("infinite value", counts, "treated as missing", label)
