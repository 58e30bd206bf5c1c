"""Find values whose digits are lost in the rounding of their transforms, so that the inverse cannot restore them.

A transformed value z has a rounding error dz. Its inverse then differs from x by dz/z'(x). This is large where psi is
flat: in the tail if the exponent m is negative, and near the origin if m is large. With
d = ln((offset + |x|)/(offset + |ref|)), b_m(d) = (e^(m d) - 1)/m, and the slope a and the intercept b of a fit,

    z = a b_m(d) + b,     z' = a e^(m d)/(offset + |x|),     |dz| <= eps (|z| + |z - b| + |b|) times a small number.

If dz exceeds the distance of z from the end of its range, x may be anywhere in the range of the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

#: Largest relative error of a round trip without a warning: six digits are left in float64, three in float32.
TOLERANCES = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
#: Rounding of standardised float64, in units of eps (|z| + |z - b| + |b|). In two million round trips of simulated
#: columns the largest was 1.16, and half were below 0.2.
_ROUNDING = 1.25
#: If rounding exceeds this fraction of the distance from z to the end of its range, all digits of x count as lost.
_MOST_OF_REST = 0.25
#: Lower bound of the log-scale S, see `kernels.transforms.yeojohnson_standardized`.
_SMALLEST_SHIFT = -700.0
#: Number of bisection steps on the logs of values, which locate a value to 1e-12 of the range of the logs.
_N_HALVINGS = 40


class LostDigits(NamedTuple):
    """Range of values on one side of a column's centre whose round trip is less accurate than the tolerance."""

    #: Position of the column.
    column: int
    #: End of the range that is nearer to the centre.
    first: float
    #: Outer end of the range.
    last: float
    #: Number of correct digits at `last`.
    n_digits: int

    @property
    def text(self) -> str:
        """Text with the start of the range and the number of digits left at its outer end."""
        digits = {0: "no digits", 1: "1 digit"}.get(self.n_digits, f"{self.n_digits} digits")
        side = f"from x = {self.first:.3g} on" if self.last >= self.first else f"up to x = {self.first:.3g}"
        return f"{side} ({digits} at {self.last:.3g})"


def find_lost_digits(
    table: ColumnTable, low: FloatArray, high: FloatArray, standardize: bool, dtype: np.dtype[Any]
) -> list[LostDigits]:
    """Find the columns whose values lose digits in a round trip, and the values at which the loss begins.

    A column is listed once for each direction from its centre in which digits are lost. If digits are lost at the
    centre itself, the column is listed only once. The direction then points away from the end of the fitted data at
    which no digits are lost.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    low, high : (p,) ndarray
        Smallest and largest value of each column to consider; NaN: none.
    standardize : bool
        True if transformed values are standardised.
    dtype : dtype
        Type to which transformed values are rounded.
    """

    def is_lossy(of: ColumnTable, x: FloatArray) -> BoolArray:
        return np.asarray(round_trip_errors(of, x, standardize, dtype) > TOLERANCES[dtype])

    ends = np.array([low, high])
    lossy = is_lossy(table, ends)
    at = np.flatnonzero(lossy.any(axis=0))
    if not at.size:
        return []
    part, ends, lossy = table.take(at), ends[:, at], lossy[:, at]
    center, least, most = _centers(part), part.x_min, part.x_max
    at_center, at_least, at_most = is_lossy(part, np.array([center, least, most]))
    is_upward = np.where(at_center, ~at_least | at_most, ends >= center)  # the direction of each end
    start = np.where(at_center, np.where(is_upward[0], least, most), center)
    down = np.where(lossy & ~is_upward, ends, np.inf).min(axis=0)
    up = np.where(lossy & is_upward, ends, -np.inf).max(axis=0)
    found: list[LostDigits] = []
    for last, far in ((down, np.inf), (up, -np.inf)):
        k = np.flatnonzero(last != far)
        chosen, outermost = part.take(k), last[k]
        first = _first_lossy(chosen, start[k], outermost, standardize, dtype)
        errors = round_trip_errors(chosen, outermost[np.newaxis], standardize, dtype)[0]
        n_digits = np.floor(-np.log10(np.minimum(1.0, errors))).astype(int)
        each = zip(at[k].tolist(), first.tolist(), outermost.tolist(), n_digits.tolist(), strict=True)
        found.extend(LostDigits(*values) for values in each)
    return sorted(found)


@np.errstate(all="ignore")
def _first_lossy(
    table: ColumnTable, starts: FloatArray, ends: FloatArray, standardize: bool, dtype: np.dtype[Any]
) -> FloatArray:
    """Find by bisection the first value, from a start towards an end, whose round-trip error exceeds the tolerance.

    Parameters
    ----------
    table, standardize, dtype
        As in `find_lost_digits`.
    starts, ends : (p,) ndarray
        Start, and an end at which the tolerance is exceeded, for each column.

    Returns
    -------
    (p,) ndarray
        The first such value of each column.
    """
    near, far = _log_positions(table, starts), _log_positions(table, ends)
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (near + far)
        x = _values_at(table, middle)
        is_lossy = round_trip_errors(table, x[np.newaxis], standardize, dtype)[0] > TOLERANCES[dtype]
        near, far = np.where(is_lossy, near, middle), np.where(is_lossy, middle, far)
    return _values_at(table, far)


def _log_positions(table: ColumnTable, x: FloatArray) -> FloatArray:
    """Return ln u, or sign(u) ln(1 + |u|) for Yeo-Johnson, where u = (x - center)/divisor; `x` has shape (p,)."""
    u = (x - table.center) / table.divisor
    return np.where(table.mirrored, np.copysign(np.log1p(abs(u)), u), np.log(u))


def _values_at(table: ColumnTable, positions: FloatArray) -> FloatArray:
    """Return the values whose signed logs are `positions`; the inverse of `_log_positions`."""
    u = np.where(table.mirrored, np.copysign(np.expm1(abs(positions)), positions), np.exp(positions))
    return np.asarray(table.center + table.divisor * u)


def round_trip_errors(table: ColumnTable, x: FloatArray, standardize: bool, dtype: np.dtype[Any]) -> FloatArray:
    """Bound the relative errors of values that are transformed, rounded to `dtype`, and transformed back: (k, p).

    Errors are relative to |x| or, if 0 is inside the domain, to the larger of |x| and the standard deviation of x at
    the centre of the column. Errors are 0 for NaN, and for columns without a fit.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    x : (k, p) ndarray
        The values.
    standardize : bool
        True if transformed values are standardised.
    dtype : dtype
        Type to which transformed values are rounded.
    """
    with np.errstate(all="ignore"):
        rounding, log_slope, exponent, size = _rounding_at(table, x, standardize, dtype)
        change = rounding * np.exp(-log_slope)
        rest = change * abs(exponent) / (table.divisor * size)  # rounding/(distance of z from the end of its range)
        anywhere = np.maximum(abs(x - table.x_min), abs(x - table.x_max))
        change = np.where(rest < _MOST_OF_REST, change / (1.0 - rest), anywhere)
        recentering = np.finfo(np.float64).eps * 2.0 * (abs(table.center) + abs(x))  # rounding of center + divisor u
        errors = (change + recentering) / np.maximum(abs(x), _smallest_sizes(table))
    errors[np.isnan(x) | is_failed(table.status)] = 0.0
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))


def _centers(table: ColumnTable) -> FloatArray:
    """Return the centre of each column: the value that is transformed to 0, clipped to the range of the data."""
    x = np.zeros((1, len(table)))
    table.transform(x, x, inverse_direction(standardized=True), 1)
    return np.asarray(np.clip(x[0], table.x_min, table.x_max))


def _smallest_sizes(table: ColumnTable) -> FloatArray:
    """Return the |x| below which errors are absolute: the standard deviation at the centre; 0 if x > 0 is required."""
    log_slope = _rounding_at(table, _centers(table)[np.newaxis], True, np.dtype(np.float64))[1]
    inside: BoolArray = table.mirrored | (table.center != 0.0)
    return np.where(inside, np.nan_to_num(np.exp(-log_slope[0]), nan=0.0, posinf=0.0), 0.0)


def _rounding_at(
    table: ColumnTable, x: FloatArray, standardize: bool, dtype: np.dtype[Any]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Bound the rounding errors of transformed values.

    Parameters
    ----------
    table, x, standardize, dtype
        As in `round_trip_errors`.

    Returns
    -------
    rounding, log_slope, exponent, size : (k, p) ndarray
        The bounds, ln z'(x), the exponents of psi, and offset + |u| with u = (x - center)/divisor.
    """
    z = x.copy()
    table.transform(z, z, forward_direction(standardize), 1)
    mirrored, ref, lmbda = table.mirrored, table.ref, table.lmbda
    u, log_divisor = (x - table.center) / table.divisor, np.log(table.divisor)
    offset, negative = np.where(mirrored, 1.0, 0.0), mirrored & (u < 0.0)
    exponent, size = np.where(negative, 2.0 - lmbda, lmbda), offset + abs(u)
    half_ulp = 0.5 * np.finfo(dtype).eps * abs(z)
    if not standardize:
        return 2.0 * half_ulp, (exponent - 1.0) * np.log(size) - log_divisor, exponent, size
    # as in `kernels.transforms.yeojohnson_standardized`: logs are measured from the reference if x has the same sign as
    # it, otherwise from 0
    own = np.where(ref < 0.0, 2.0 - lmbda, lmbda)
    base = np.log(offset + abs(ref))
    shift = np.where(mirrored, np.maximum(np.where(ref == 0.0, table.log_factor, own * base), _SMALLEST_SHIFT), 0.0)
    beside = ~mirrored | ((ref != 0.0) & ((ref < 0.0) == negative))
    psi_of_ref = np.where(own == 0.0, base, -np.expm1(-shift) / np.where(own == 0.0, 1.0, own))
    start = table.intercept - np.where(beside, 0.0, np.sign(ref) * table.slope * psi_of_ref)
    rounding = half_ulp + _ROUNDING * np.finfo(np.float64).eps * (abs(z) + abs(z - start) + abs(start))
    log_slope = np.log(table.slope) + (exponent - 1.0) * np.log(size) - log_divisor
    return rounding, log_slope - np.where(beside, exponent * base, shift), exponent, size
