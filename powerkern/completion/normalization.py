"""Normalize a matrix before completion: offsets, scales, and limits beyond which values are treated as outliers."""

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
    """Offsets and scales that bring the values of a matrix, and of new rows, to the order of 1.

    Attributes
    ----------
    kind : str or None
        One of `NORMALIZATIONS`, or None for no offsets.
    unit : (p,) ndarray
        Powers of 4 by which values are divided first, so that no square overflows or underflows. "zscores" has a unit
        for each column; otherwise all are equal.
    offset, scale : (p,) ndarray
        Offsets and scales of columns, in these units.
    """

    kind: str | None
    unit: FloatArray
    offset: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray, kind: str | None) -> Normalization:
        """Compute the normalization of a matrix; NaN is missing."""
        p = values.shape[1]
        each = kind == "zscores"
        unit = np.array([unit_of(column) for column in values.T]) if each else np.full(p, unit_of(values))
        plain = cls(kind, unit, np.zeros(p), np.ones(p))
        if kind not in ("columns", "both", "columns-first", "average", "zscores"):
            return plain
        if kind in ("columns-first", "average"):  # rows do not come before columns
            return replace(plain, offset=means(values / unit, 0) * (0.5 if kind == "average" else 1.0))
        rest = plain.normalize_rows(values, plain.row_offsets(values))
        offset = means(rest, 0)
        if not each:
            return replace(plain, offset=offset)
        scale = np.sqrt(means((rest - offset) ** 2, 0))
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
        """Unit of each factor of a decomposition: the root of the unit of the values; 1 for z-scores."""
        return 1.0 if self.kind == "zscores" else math.sqrt(self.unit[0])

    def row_offsets(self, values: FloatArray) -> FloatArray:
        """Return the offsets of rows, (n,), in units; zeros if none are subtracted."""
        if self.kind == "columns-first":
            return means(values / self.unit - self.offset, 1)
        if self.kind == "average":
            return 0.5 * means(values / self.unit, 1)
        return means(values / self.unit, 1) if self.kind in ("rows", "both") else np.zeros(values.shape[0])

    def normalize_rows(self, values: FloatArray, row_offset: FloatArray) -> FloatArray:
        """Return ``(values/unit - row_offset - offset)/scale``."""
        return np.asarray((values / self.unit - row_offset[:, None] - self.offset) / self.scale)

    def restore(self, rows: FloatArray, row_offset: FloatArray) -> FloatArray:
        """Undo `normalize_rows`."""
        return np.asarray((rows * self.scale + self.offset + row_offset[:, None]) * self.unit)


def limits(values: FloatArray, reach: float | None) -> FloatArray:
    """Return the limits of each column, (2, p), beyond which values are treated as outliers.

    The limits lie `reach` scales from the median. The scale of a side is 1.4826 times the median deviation of the
    values on that side or, if that is 0, of all values that differ from the median. If `reach` is None, the limits are
    infinite.
    """
    ends = np.full((2, values.shape[1]), [[-math.inf], [math.inf]])
    if reach is None:
        return ends
    reach = min(reach, sys.float_info.max)
    for j, column in enumerate(values.T):
        unit = unit_of(column)
        seen = column[~np.isnan(column)] / unit
        center = _median(seen)
        deviation = seen - center
        either = _median(abs(deviation[deviation != 0.0])) or math.inf
        for side, sign in enumerate((-1.0, 1.0)):
            scale = MAD_FACTOR * (_median(abs(deviation[sign * deviation >= 0.0])) or either)
            with np.errstate(over="ignore"):
                ends[side, j] = np.multiply(center + sign * reach * scale, unit)
    return ends


def _median(x: FloatArray) -> float:
    """Return the median, 0 if `x` is empty."""
    return float(np.median(x)) if x.size else 0.0


def means(values: FloatArray, axis: int) -> FloatArray:
    """Return the means of the observed entries along `axis`; 0 if there are none."""
    seen = ~np.isnan(values)
    return np.asarray(np.sum(values, axis=axis, where=seen) / np.maximum(np.count_nonzero(seen, axis=axis), 1))


def unit_of(values: FloatArray) -> float:
    """Return a power of 4 near the largest absolute value, 1 if all values are 0."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    exponent = math.frexp(largest)[1] - 1 if largest > 0.0 else 0
    return math.ldexp(1.0, exponent - exponent % 2)


def rms(x: FloatArray) -> float:
    """Return the root mean square."""
    return math.sqrt(float(np.mean(x * x)))


def products(U: FloatArray, Vt: FloatArray, row: NDArray[Any], column: NDArray[Any]) -> FloatArray:
    """Return some entries of U V.

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
