"""Digits that a transform rounds away, so that its inverse cannot restore them.

A transformed value z is rounded, by dz. Its inverse then differs from x by dz/z'(x), which is large where psi is flat:
far out, if its exponent m is negative, and near the origin if m is large. With d = ln((offset + |x|)/(offset + |ref|))
and the slope a and intercept b of a fit,

    z = a b_m(d) + b,     z' = a e^(m d)/(offset + |x|),     |dz| <= eps (|z| + |z - b| + |b|) times a small number.

Where dz exceeds what is left of the range of z, x may be anywhere between the ends of the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

#: Relative errors of round trips that are not worth a warning: six digits of float64 are left, three of float32.
TOLERANCES = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}
#: Rounding of standardised float64, in units of eps (|z| + |z - b| + |b|). In two million round trips of simulated
#: columns the largest was 1.16, and half were below 0.2.
_ROUNDING = 1.25
#: Parts of the rest of the range of z that rounding may take before x counts as lost altogether.
_MOST_OF_REST = 0.25
#: S is at least this, see `kernels.transforms.yeojohnson_standardized`.
_SMALLEST_SHIFT = -700.0
#: Bisection of the logs of values: to 1e-12 of their range.
_N_HALVINGS = 40


class LostDigits(NamedTuple):
    """Values of a column whose round trip is less accurate than the tolerance, on one side of its centre."""

    column: int
    #: the first value outwards that is
    first: float
    #: the outermost value, and how many of its digits are left
    last: float
    n_digits: int

    @property
    def text(self) -> str:
        """Description of the values in words."""
        digits = {0: "no digits", 1: "1 digit"}.get(self.n_digits, f"{self.n_digits} digits")
        side = f"from x = {self.first:.3g} on" if self.last >= self.first else f"up to x = {self.first:.3g}"
        return f"{side} ({digits} at {self.last:.3g})"


def find_lost_digits(
    table: ColumnTable, low: FloatArray, high: FloatArray, standardize: bool, dtype: np.dtype[Any]
) -> list[LostDigits]:
    """Find the columns that lose digits between their centres and the given smallest and largest values (NaN: none).

    A column is listed once for each direction from its centre in which digits are lost. If digits are lost at the
    centre itself, the column is listed once: for the direction away from the end of the fitted data at which digits are
    kept.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    low, high : (p,) ndarray
        Smallest and largest value of each column; NaN: none.
    standardize : bool
        Whether transformed values are standardised.
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
    """Return the value of each column nearest to its start, towards its end, whose round trip exceeds the tolerance."""
    near, far = _log_positions(table, starts), _log_positions(table, ends)
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (near + far)
        x = _values_at(table, middle)
        is_lossy = round_trip_errors(table, x[np.newaxis], standardize, dtype)[0] > TOLERANCES[dtype]
        near, far = np.where(is_lossy, near, middle), np.where(is_lossy, middle, far)
    return _values_at(table, far)


def _log_positions(table: ColumnTable, x: FloatArray) -> FloatArray:
    """Return the signed logs of one value per column, on the scale that the column's transform takes."""
    u = (x - table.center) / table.divisor
    return np.where(table.mirrored, np.copysign(np.log1p(abs(u)), u), np.log(u))


def _values_at(table: ColumnTable, positions: FloatArray) -> FloatArray:
    """Return the values with these signed logs."""
    u = np.where(table.mirrored, np.copysign(np.expm1(abs(positions)), positions), np.exp(positions))
    return np.asarray(table.center + table.divisor * u)


def round_trip_errors(table: ColumnTable, x: FloatArray, standardize: bool, dtype: np.dtype[Any]) -> FloatArray:
    """Bound the relative errors of values (k, p) that are transformed, rounded to `dtype`, and transformed back.

    They are relative to |x|, or where 0 is inside the domain to the standard deviation of x at the centre of the column
    if that is larger. 0 for NaN, and for columns without a fit.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    x : (k, p) ndarray
        The values.
    standardize : bool
        Whether transformed values are standardised.
    dtype : dtype
        Type to which transformed values are rounded.
    """
    with np.errstate(all="ignore"):
        rounding, log_slope, exponent, size = _rounding_at(table, x, standardize, dtype)
        change = rounding * np.exp(-log_slope)
        rest = change * abs(exponent) / (table.divisor * size)  # of the range of z, the part that rounding takes
        anywhere = np.maximum(abs(x - table.x_min), abs(x - table.x_max))
        change = np.where(rest < _MOST_OF_REST, change / (1.0 - rest), anywhere)
        recentering = np.finfo(np.float64).eps * 2.0 * (abs(table.center) + abs(x))  # of x = center + divisor u
        errors = (change + recentering) / np.maximum(abs(x), _smallest_sizes(table))
    errors[np.isnan(x) | is_failed(table.status)] = 0.0
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))


def _centers(table: ColumnTable) -> FloatArray:
    """Return the values that are transformed to 0, moved inside the data."""
    x = np.zeros((1, len(table)))
    table.transform(x, x, inverse_direction(standardized=True), 1)
    return np.asarray(np.clip(x[0], table.x_min, table.x_max))


def _smallest_sizes(table: ColumnTable) -> FloatArray:
    """Return the |x| below which errors are absolute: the standard deviation at the centre; 0 for a domain x > 0."""
    log_slope = _rounding_at(table, _centers(table)[np.newaxis], True, np.dtype(np.float64))[1]
    inside: BoolArray = table.mirrored | (table.center != 0.0)
    return np.where(inside, np.nan_to_num(np.exp(-log_slope[0]), nan=0.0, posinf=0.0), 0.0)


def _rounding_at(
    table: ColumnTable, x: FloatArray, standardize: bool, dtype: np.dtype[Any]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Bound the rounding of transformed values; also return ln z', exponents, and offset + |u|, u = rescaled x."""
    z = x.copy()
    table.transform(z, z, forward_direction(standardize), 1)
    mirrored, ref, lmbda = table.mirrored, table.ref, table.lmbda
    u, log_divisor = (x - table.center) / table.divisor, np.log(table.divisor)
    offset, negative = np.where(mirrored, 1.0, 0.0), mirrored & (u < 0.0)
    exponent, size = np.where(negative, 2.0 - lmbda, lmbda), offset + abs(u)
    half_ulp = 0.5 * np.finfo(dtype).eps * abs(z)
    if not standardize:
        return 2.0 * half_ulp, (exponent - 1.0) * np.log(size) - log_divisor, exponent, size
    # as in `kernels.transforms.yeojohnson_standardized`: from the reference if x has its sign, else from 0
    own = np.where(ref < 0.0, 2.0 - lmbda, lmbda)
    base = np.log(offset + abs(ref))
    shift = np.where(mirrored, np.maximum(np.where(ref == 0.0, table.log_factor, own * base), _SMALLEST_SHIFT), 0.0)
    beside = ~mirrored | ((ref != 0.0) & ((ref < 0.0) == negative))
    psi_of_ref = np.where(own == 0.0, base, -np.expm1(-shift) / np.where(own == 0.0, 1.0, own))
    start = table.intercept - np.where(beside, 0.0, np.sign(ref) * table.slope * psi_of_ref)
    rounding = half_ulp + _ROUNDING * np.finfo(np.float64).eps * (abs(z) + abs(z - start) + abs(start))
    log_slope = np.log(table.slope) + (exponent - 1.0) * np.log(size) - log_divisor
    return rounding, log_slope - np.where(beside, exponent * base, shift), exponent, size
