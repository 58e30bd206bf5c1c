"""Between the user's matrix, of any order and strides, and contiguous columns: gather, and transform in tiles.

A row-major matrix is read in groups of GROUP columns, one cache line wide; a tile of TILE rows of a group stays in
the cache while its columns are taken one by one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from powerkern._jit import COLUMN, COUNTS, INTEGER, READ_MATRIX, ROWS, WRITE_MATRIX, entry, kernel, widest_vectors
from powerkern.kernels._interim import (
    boxcox_loop,
    boxcox_standardized,
    boxcox_unstandardized,
    inv_boxcox_loop,
)
from powerkern.kernels.likelihood import FloatArray
from powerkern.kernels.mle import BOX_COX, INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE, STATUS, is_identity
from powerkern.kernels._interim import (
    inv_yeojohnson_loop,
    yeojohnson_loop,
    yeojohnson_standardized,
    yeojohnson_unstandardized,
)

#: Columns in a group: one cache line of float64.
GROUP = 8
#: Rows in a tile.
TILE = 512

# what is done to a column
FORWARD, INVERSE, FORWARD_STANDARDIZED, INVERSE_STANDARDIZED = range(4)


@entry((READ_MATRIX, ROWS))
def gather(x: FloatArray, out: FloatArray) -> None:
    """out = x.T, a cache line of columns at a time."""
    n, p = x.shape
    for first in range(0, p - GROUP + 1, GROUP):
        part, rows = x[:, first : first + GROUP], out[first : first + GROUP]
        for i in range(n):
            for j in range(GROUP):
                rows[j, i] = part[i, j]
    for j in range(p - p % GROUP, p):
        for i in range(n):
            out[j, i] = x[i, j]


@entry((READ_MATRIX, WRITE_MATRIX, INTEGER, INTEGER, ROWS, ROWS, COUNTS))
def transform(
    x: FloatArray,
    out: FloatArray,
    family: int,
    what: int,
    rows: FloatArray,
    scratch: FloatArray,
    failures: npt.NDArray[np.int64],
) -> None:
    """Transform the columns of a group tile by tile; row j of `rows` is the fit of column j; `out` may be `x`.

    `failures` counts, per column, values outside the domain (forward) or without an inverse.
    """
    for start in range(0, x.shape[0], TILE):
        tile, tile_out = x[start : start + TILE], out[start : start + TILE]
        before, after = scratch[0, : tile.shape[0]], scratch[1, : tile.shape[0]]
        for j in range(tile.shape[1]):
            for i in range(before.size):
                before[i] = tile[i, j]
            if is_identity(rows[j]):
                after[:] = before
            else:
                _transform_column(before, after, family, what, rows[j])
                if what == FORWARD or what == FORWARD_STANDARDIZED:
                    failures[j] += _count_outside(before, family)
                else:
                    failures[j] += _count_lost(before, after)
            for i in range(after.size):
                tile_out[i, j] = after[i]


@entry((READ_MATRIX, INTEGER, ROWS, COUNTS))
def count_outside(x: FloatArray, family: int, rows: FloatArray, failures: npt.NDArray[np.int64]) -> None:
    """Count the values of each column that are outside the domain of its fit."""
    for j in range(x.shape[1]):
        if not is_identity(rows[j]):
            failures[j] += _count_outside(x[:, j], family)


@kernel
def _transform_column(x: FloatArray, out: FloatArray, family: int, what: int, row: FloatArray) -> None:
    """Transform one contiguous column."""
    lmbda, ref, slope, intercept = row[LMBDA], row[REF], row[SLOPE], row[INTERCEPT]
    if family == BOX_COX:
        if what == FORWARD:
            boxcox_loop(x, lmbda, out)
        elif what == INVERSE:
            inv_boxcox_loop(x, lmbda, out)
        elif what == FORWARD_STANDARDIZED:
            boxcox_standardized(x, lmbda, ref, slope, intercept, out)
        else:
            boxcox_unstandardized(x, lmbda, ref, slope, intercept, out)
    elif what == FORWARD:
        yeojohnson_loop(x, lmbda, out)
    elif what == INVERSE:
        inv_yeojohnson_loop(x, lmbda, out)
    elif what == FORWARD_STANDARDIZED:
        yeojohnson_standardized(x, lmbda, ref, slope, intercept, row[LOG_FACTOR], out)
    else:
        yeojohnson_unstandardized(x, lmbda, ref, slope, intercept, row[LOG_FACTOR], out)


@kernel
def _count_outside(x: FloatArray, family: int) -> int:
    """Infinite values and, under Box-Cox, those that are not positive; NaN is neither."""
    widest_vectors()
    n = 0
    if family == BOX_COX:
        for i in range(x.size):
            n += (x[i] <= 0.0) | (x[i] == math.inf)
    else:
        for i in range(x.size):
            n += abs(x[i]) == math.inf
    return n


@kernel
def _count_lost(before: FloatArray, after: FloatArray) -> int:
    """Values that were numbers and are NaN now."""
    widest_vectors()
    n = 0
    for i in range(before.size):
        n += (before[i] == before[i]) & (after[i] != after[i])
    return n
