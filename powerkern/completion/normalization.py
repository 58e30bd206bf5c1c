"""Normalize a matrix by offsets and scales before completion, and compute limits beyond which values are outliers."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.kernels.location.loc_scale import MAD_FACTOR

NORMALIZATIONS = ("rows", "columns", "both", "columns-first", "average", "zscores")
#: A standard deviation below this multiple of the absolute values is rounding error.
ROUNDING = 1e-15


@dataclass(frozen=True)
class Normalization:
    """Offsets and scales by which the values of a matrix, and of new rows, become of order 1.

    Attributes
    ----------
    kind : str or None
        One of `NORMALIZATIONS`, or None for no offsets.
    unit : (p,) ndarray
        Powers of 4 by which values are divided first, so that squares neither overflow nor underflow. They differ
        between columns for "zscores", and are equal otherwise.
    offset, scale : (p,) ndarray
        Offsets and scales of columns, in multiples of `unit`.
    """

    kind: str | None
    unit: FloatArray
    offset: FloatArray
    scale: FloatArray

    @classmethod
    def from_matrix(cls, values: FloatArray, kind: str | None) -> Normalization:
        """Compute the normalization of a matrix, (n, p); NaN is missing. `kind` is described in `Normalization`."""
        p = values.shape[1]
        each = kind == "zscores"
        unit = np.array([unit_of(column) for column in values.T]) if each else np.full(p, unit_of(values))
        plain = cls(kind, unit, np.zeros(p), np.ones(p))
        if kind not in ("columns", "both", "columns-first", "average", "zscores"):
            return plain
        if kind in ("columns-first", "average"):  # rows do not come before columns
            return replace(plain, offset=observed_means(values / unit, 0) * (0.5 if kind == "average" else 1.0))
        rest = plain.normalize_rows(values, plain.row_offsets(values))
        offset = observed_means(rest, 0)
        if not each:
            return replace(plain, offset=offset)
        scale = np.sqrt(observed_means((rest - offset) ** 2, 0))
        scale[scale <= ROUNDING * np.abs(offset)] = 1.0  # constant, or nothing observed
        return replace(plain, offset=offset, scale=scale)

    def scale_to_mean_square_1(self, values: FloatArray) -> Normalization:
        """Return a copy that scales the matrix to mean square 1, unless columns have scales already ("zscores")."""
        if self.kind == "zscores":
            return self
        rest = self.normalize_rows(values, self.row_offsets(values))
        return replace(self, scale=self.scale * (rms(rest[~np.isnan(rest)]) or 1.0))

    @property
    def root(self) -> float:
        """Unit of U and of V in a decomposition: the square root of `unit`; 1 for z-scores."""
        return 1.0 if self.kind == "zscores" else math.sqrt(self.unit[0])

    def row_offsets(self, values: FloatArray) -> FloatArray:
        """Return the offset of each row, (n,), in multiples of `unit`; zeros if `kind` has no row offsets."""
        if self.kind == "columns-first":
            return observed_means(values / self.unit - self.offset, 1)
        if self.kind == "average":
            return 0.5 * observed_means(values / self.unit, 1)
        return observed_means(values / self.unit, 1) if self.kind in ("rows", "both") else np.zeros(values.shape[0])

    def normalize_rows(self, values: FloatArray, row_offset: FloatArray) -> FloatArray:
        """Return ``(values/unit - row_offset - offset)/scale``."""
        return np.asarray((values / self.unit - row_offset[:, None] - self.offset) / self.scale)

    def restore(self, rows: FloatArray, row_offset: FloatArray) -> FloatArray:
        """Undo `normalize_rows`: return the rows in the units of the data."""
        return np.asarray((rows * self.scale + self.offset + row_offset[:, None]) * self.unit)


def outlier_limits(values: FloatArray, max_deviation: float | None) -> FloatArray:
    """Return the lower and upper limit of each column, (2, p), beyond which values are treated as outliers.

    A limit is the median plus or minus `max_deviation` times a scale. The scale is 1.4826 times the median distance
    from the median of the values on the same side or, if that is 0, of all values that differ from the median. If
    `max_deviation` is None, the limits are infinite.
    """
    ends = np.full((2, values.shape[1]), [[-math.inf], [math.inf]])
    if max_deviation is None:
        return ends
    max_deviation = min(max_deviation, sys.float_info.max)
    for j, column in enumerate(values.T):
        unit = unit_of(column)
        seen = column[~np.isnan(column)] / unit
        center = _median(seen)
        deviation = seen - center
        either = _median(abs(deviation[deviation != 0.0])) or math.inf
        for side, sign in enumerate((-1.0, 1.0)):
            scale = MAD_FACTOR * (_median(abs(deviation[sign * deviation >= 0.0])) or either)
            with np.errstate(over="ignore"):
                ends[side, j] = np.multiply(center + sign * max_deviation * scale, unit)
    return ends


def _median(x: FloatArray) -> float:
    """Return the median of `x`, or 0 if it is empty."""
    return float(np.median(x)) if x.size else 0.0


def observed_means(values: FloatArray, axis: int) -> FloatArray:
    """Return the means of the observed entries along `axis`; 0 if there are none."""
    seen = ~np.isnan(values)
    return np.asarray(np.sum(values, axis=axis, where=seen) / np.maximum(np.count_nonzero(seen, axis=axis), 1))


def unit_of(values: FloatArray) -> float:
    """Return a power of 4 near the largest absolute value, or 1 if all values are 0."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    exponent = math.frexp(largest)[1] - 1 if largest > 0.0 else 0
    return math.ldexp(1.0, exponent - exponent % 2)


def rms(x: FloatArray) -> float:
    """Return the root mean square of `x`."""
    return math.sqrt(float(np.mean(x * x)))


def product_entries(U: FloatArray, Vt: FloatArray, row: NDArray[Any], column: NDArray[Any]) -> FloatArray:
    """Return the entries of U V at k positions, (k,).

    Parameters
    ----------
    U : (m, rank) ndarray
        Left factor.
    Vt : (n, rank) ndarray
        Transpose of the right factor.
    row, column : (k,) ndarray of int
        Positions of the entries.
    """
    return np.asarray(np.einsum("ij,ij->i", U[row], Vt[column]))
