"""The Box-Cox shift: its validation, and the conversion of results for shifted and scaled columns to the data's units.

Kernels receive (x + shift)/divisor, rounded twice. Here the results are converted to the units of the data, in which
``(x - center)/divisor`` is transformed. The field `CENTER` of the results is -shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._estimators.bisection import largest_float
from powerkern._input.arguments import each_column
from powerkern._input.arrays import Matrix
from powerkern._input.messages import shown
from powerkern._typing import BoolArray, FloatArray, Weights
from powerkern.kernels.results import CENTER, DIVISOR, KEPT_HIGH, KEPT_LOW, NLL, X_MAX, X_MIN
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored


def given_shift(shift: ArrayLike | float, family: str, p: int, names: Sequence[Any] | None = None) -> FloatArray:
    """Validate `shift` and return one value per column, (p,).

    Parameters
    ----------
    shift : float or (p,) array-like
        The argument of the user; a series is aligned with `names`.
    family : str
        Name of the transform.
    p : int
        Number of columns.
    names : sequence, optional
        Labels of the columns.

    Raises
    ------
    TypeError
        The shift is not a number.
    ValueError
        The shift has neither one value nor p values, a value is not finite, or the family has no shift.
    """
    if isinstance(shift, float) and shift == 0.0:  # fast path: no shift
        return np.zeros(p)
    given = each_column("shift", shift, p, names)
    if not np.isfinite(given).all():
        raise ValueError(f"shift must be finite, got {given[~np.isfinite(given)][0]}")
    if given.any() and (family not in FAMILIES or is_mirrored(FAMILIES[family])):
        raise ValueError(f"shift works only with family='box-cox', not with family={shown(family)}; leave it out")
    return given


def convert_to_data_units(results: FloatArray, shift: FloatArray, divisor: FloatArray | None = None) -> None:
    """Convert ranges, kept intervals and likelihoods for ``(values + shift)/divisor`` to the data's units, in place.

    Ranges are exact except for the rounding of the sum. The kept interval contains exactly the same values as before.

    Parameters
    ----------
    results : (p, N_RESULTS) ndarray
        Results in the units of the shifted and divided columns; changed in place.
    shift : (p,) ndarray
        The amount added to each column.
    divisor : (p,) ndarray, optional
        The divisor of each column; default: 1.
    """
    if not shift.any() and divisor is None:
        return
    divisor = np.ones(shift.size) if divisor is None else divisor
    results[:, CENTER] = divisor * results[:, CENTER] - shift
    results[:, DIVISOR] *= divisor
    results[:, NLL] += np.log(divisor)
    results[:, [X_MIN, X_MAX]] = results[:, [X_MIN, X_MAX]] * divisor[:, np.newaxis] - shift[:, np.newaxis]
    for column, sign in ((KEPT_LOW, -1.0), (KEPT_HIGH, 1.0)):
        results[:, column] = sign * _largest(sign * results[:, column], sign * shift, divisor)


def express_in_data_units(
    results: FloatArray, matrix: Matrix, shift: FloatArray, divisor: FloatArray | None = None
) -> None:
    """Convert results for ``(values + shift)/divisor`` to the units of the matrix, in place, with exact ranges.

    Parameters
    ----------
    results : (p, N_RESULTS) ndarray
        Results in the units of the shifted and divided columns; changed in place.
    matrix : Matrix
        The data, with the weights of the rows.
    shift : (p,) ndarray
        The amount added to each column.
    divisor : (p,) ndarray, optional
        The divisor of each column; default: 1.
    """
    if divisor is None and not shift.any():
        return
    convert_to_data_units(results, shift, divisor)
    results[:, [X_MIN, X_MAX]] = extremes(matrix.values, matrix.weight)


def extremes(values: NDArray[Any], weight: Weights) -> FloatArray:
    """Return the smallest and the largest value of positive weight in each column, (p, 2); NaN if there is none."""
    counted = values if weight is None else values[weight > 0.0]
    if not len(counted):
        return np.full((values.shape[1], 2), np.nan)
    return np.column_stack([np.fmin.reduce(counted, axis=0), np.fmax.reduce(counted, axis=0)]).astype(np.float64)


def _largest(limit: FloatArray, shift: FloatArray, divisor: FloatArray) -> FloatArray:
    """Return the largest x for which the rounded value of ``(x + shift)/divisor`` is at most `limit`; NaN for NaN."""

    def is_within(x: FloatArray) -> BoolArray:
        with np.errstate(over="ignore"):
            return np.asarray((x + shift) / divisor <= limit)

    return np.where(np.isnan(limit), np.nan, largest_float(is_within, -np.inf, limit.size))
