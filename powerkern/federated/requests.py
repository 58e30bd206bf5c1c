"""Requests for moments: one row of numbers per column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern.federated.pool import PooledColumn, frame_between
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.transforms.family import BOX_COX, log_offset

FloatArray = NDArray[np.float64]

# a row: number of the column, bounds of its values, frame, exponents
_INDEX, _LOW, _HIGH, _FRAME = 0, 1, 2, 3
_AT = _FRAME + partial_moments.N_SCALING

#: Most exponents of a column in one request.
MOST_POINTS = 1024
#: Two machines may form frames of the same bounds that differ by rounding.
_ROUNDING = 1e-9


class MomentsRequest(NamedTuple):
    """The columns of a request, bounds of their values, their frames, and the exponents."""

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


def read_moments_request(body: FloatArray, n_columns: int, family: int) -> MomentsRequest:
    """The parts of a request's body.

    Raises
    ------
    ValueError
        They make no sense for `n_columns` columns.
    """
    if body.ndim != 2 or body.dtype.kind != "f" or body.shape[0] == 0 or not 0 < body.shape[1] - _AT <= MOST_POINTS:
        raise ValueError("not a table of exponents")
    if not np.isfinite(body).all():
        raise ValueError("NaN or infinite values")
    column = body[:, _INDEX]
    if not np.isin(column, np.arange(n_columns)).all() or np.unique(column).size < column.size:
        raise ValueError(f"columns other than 0 to {n_columns - 1}")
    low, high, frames = np.array(body[:, _LOW]), np.array(body[:, _HIGH]), np.array(body[:, _FRAME:_AT])
    if not (frames[:, partial_moments.SIGMA] > 0.0).all():
        raise ValueError("a unit that is not positive")
    if not (low < high).all() or (family == BOX_COX and not (low > 0.0).all()):
        raise ValueError("bounds that no values can have")
    for x_min, x_max, frame in zip(low.tolist(), high.tolist(), frames.tolist(), strict=True):
        _check_frame(family, x_min, x_max, frame)
    return MomentsRequest(column.astype(np.intp), low, high, frames, np.array(body[:, _AT:]))


def _check_frame(family: int, low: float, high: float, given: list[float]) -> None:
    """Refuse a frame that does not follow from its bounds."""
    reference, sigma = given[partial_moments.REFERENCE], given[partial_moments.SIGMA]
    expected = frame_between(log_offset(family), low, high, reference)
    unit = expected.sigma / sigma
    ends = [expected.low * unit, expected.high * unit, expected.neg_high * unit]
    own = given[partial_moments.LOW : partial_moments.NEG_HIGH + 1]
    if not (
        float(expected.both_signs) == given[partial_moments.BOTH_SIGNS]
        and expected.reference == reference
        and 0.5 <= unit <= 2.0
        and all(abs(a - b) <= _ROUNDING for a, b in zip(ends, own, strict=True))
    ):
        raise ValueError("a frame that does not follow from its bounds")
