"""What is taken out of a matrix before it is completed and put back afterwards: offsets of rows and columns, scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powerkern._typing import FloatArray

NORMALIZATIONS = ("rows", "columns", "both", "zscores")
#: A spread below this multiple of the size of the values is rounding.
ROUNDING = 1e-15


@dataclass(frozen=True)
class Normalization:
    """Offsets and scales that bring the columns of a matrix, and of new rows, to mean 0 and mean square 1.

    With "zscores" each column has a scale of its own, otherwise all have the same.
    """

    kind: str | None
    column_offset: FloatArray
    column_scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray, kind: str | None) -> Normalization:
        """That of a matrix, NaN where an entry is missing."""
        unit = unit_of(values)
        row_offset, offset, scale = offsets_and_scales(values / unit, kind)
        if kind != "zscores":
            rest = values / unit - row_offset[:, None] - offset
            scale = scale * (rms(rest[~np.isnan(rest)]) or 1.0)
        return cls(kind, offset * unit, scale * unit)

    def normalized(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Normalised rows, and the offsets of rows that were taken out of them."""
        row_offset = row_offsets(values, self.kind)
        return (values - row_offset[:, None] - self.column_offset) / self.column_scale, row_offset

    def restored(self, rows: FloatArray, row_offset: FloatArray) -> FloatArray:
        """What `normalized` took out put back."""
        return np.asarray(rows * self.column_scale + self.column_offset + row_offset[:, None])


def offsets_and_scales(values: FloatArray, normalize: str | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Offsets of rows, offsets of columns and scales of columns."""
    row_offset = row_offsets(values, normalize)
    p = values.shape[1]
    if normalize not in ("columns", "both", "zscores"):
        return row_offset, np.zeros(p), np.ones(p)
    column_offset = means(values - row_offset[:, None], 0)
    if normalize != "zscores":
        return row_offset, column_offset, np.ones(p)
    scale = np.sqrt(means((values - column_offset) ** 2, 0))
    scale[scale <= ROUNDING * np.abs(column_offset)] = 1.0  # constant, or nothing observed
    return row_offset, column_offset, scale


def row_offsets(values: FloatArray, normalize: str | None) -> FloatArray:
    """Means of rows where they are to be taken out."""
    return means(values, 1) if normalize in ("rows", "both") else np.zeros(values.shape[0])


def means(values: FloatArray, axis: int) -> FloatArray:
    """Means of what is observed; 0 where nothing is."""
    seen = ~np.isnan(values)
    return np.asarray(np.sum(values, axis=axis, where=seen) / np.maximum(np.count_nonzero(seen, axis=axis), 1))


def unit_of(values: FloatArray) -> float:
    """A power of 4 near the largest absolute value."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    exponent = math.frexp(largest)[1] - 1 if largest > 0.0 else 0
    return math.ldexp(1.0, exponent - exponent % 2)


def rms(x: FloatArray) -> float:
    """Root mean square."""
    return math.sqrt(float(np.mean(x * x)))
