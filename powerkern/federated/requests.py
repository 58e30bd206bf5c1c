"""What a server asks for when it asks for moments: one row of numbers a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern.federated.pool import PooledColumn
from powerkern.kernels import partial_moments

FloatArray = NDArray[np.float64]

# a row: number of the column, bounds of its values, frame, exponents
_INDEX, _LOW, _HIGH, _FRAME = 0, 1, 2, 3
_AT = _FRAME + partial_moments.N_FRAME


class MomentsRequest(NamedTuple):
    """Columns that are asked for, bounds of their values, their frames, and the exponents."""

    which: NDArray[np.intp]
    low: FloatArray
    high: FloatArray
    frames: FloatArray
    at: FloatArray


def write_moments_request(columns: Sequence[tuple[int, PooledColumn]], at: Sequence[Sequence[float]]) -> FloatArray:
    """Body of a request for moments of some columns at exponents of each."""
    rows = [
        [float(j), column.x_min, column.x_max, *map(float, column.frame), *points]
        for (j, column), points in zip(columns, at, strict=True)
    ]
    return np.array(rows)


def read_moments_request(body: FloatArray, n_columns: int) -> MomentsRequest:
    """The parts of a request's body.

    Raises
    ------
    ValueError
        They make no sense for `n_columns` columns.
    """
    if body.ndim != 2 or body.dtype.kind != "f" or body.shape[0] == 0 or body.shape[1] <= _AT:
        raise ValueError("not a table of exponents")
    if not np.isfinite(body).all():
        raise ValueError("NaN or infinite values")
    index = body[:, _INDEX].astype(np.intp)
    if (
        not ((index == body[:, _INDEX]) & (index >= 0) & (index < n_columns)).all()
        or np.unique(index).size < index.size
    ):
        raise ValueError(f"columns other than 0 to {n_columns - 1}")
    frames = np.array(body[:, _FRAME:_AT])
    if not (frames[:, partial_moments.SIGMA] > 0.0).all():
        raise ValueError("a unit that is not positive")
    low, high = np.array(body[:, _LOW]), np.array(body[:, _HIGH])
    return MomentsRequest(index, low, high, frames, np.array(body[:, _AT:]))
