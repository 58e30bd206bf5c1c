"""Copy columns of a matrix with any strides to contiguous rows of a block, and transform these rows.

`gather` copies a group of columns into the rows of a block, the entries in `APPLY` transform the rows in place, and
`scatter` copies them back. Each transform is a separate entry, so that only the transforms in use are compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._jit import (
    COUNTS,
    READ_MATRIX,
    READ_MATRIX32,
    ROWS,
    WRITE_MATRIX,
    allocated,
    entry,
    inlined,
    kernel,
    prefetch,
    release,
)
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.results import (
    CENTER,
    DIVISOR,
    INTERCEPT,
    LMBDA,
    LOG_FACTOR,
    REF,
    SLOPE,
    is_identity,
    is_rescaled,
)
from powerkern.kernels.transforms.branch import (
    BLOCK,
    N_FIELDS,
    Fit,
    in_turn,
)
from powerkern.kernels.transforms.columns import (
    FIT_FIELDS,
    N_ROOM,
    TRANSFORMS,
    WIDTH,
    column_transform,
    count_infinite,
)
from powerkern.kernels.transforms.columns import count_outside as _outside
from powerkern.kernels.transforms.family import (
    INVERSES,
    domain_lower_bound,
)

AnyArray = NDArray[Any]

#: Number of float64 values in a cache line.
CACHE_LINE = 8
#: Number of rows for which columns outside whole cache lines are copied at a time, few enough for the first-level
#: cache.
_TILE = 512

#: The largest float64.
_LARGEST = float(np.finfo(np.float64).max)

#: Copies one value between x[i, j] and block[j, i]: (x, block, i, j).
_Copy = Callable[[AnyArray, AnyArray, int, int], None]


@inlined
def _to_block(x: AnyArray, block: AnyArray, i: int, j: int) -> None:
    """Copy a value from ``x[i, j]`` to ``block[j, i]``."""
    block[j, i] = x[i, j]


@inlined
def _from_block(x: AnyArray, block: AnyArray, i: int, j: int) -> None:
    """Copy a value from ``block[j, i]`` to ``x[i, j]``."""
    x[i, j] = block[j, i]


@inlined
def _by_squares(copy: _Copy, x: AnyArray, block: AnyArray) -> None:
    """Copy all values between a matrix and a block by means of `copy`, which copies one value in either direction.

    The matrix is divided into squares whose side is one cache line, and the next squares are prefetched. The remaining
    rows and columns follow.
    """
    n, p = x.shape
    whole_rows, whole_columns = n - n % CACHE_LINE, p - p % CACHE_LINE
    for top in range(0, whole_rows, CACHE_LINE):
        for left in range(0, whole_columns, CACHE_LINE):
            for i in range(CACHE_LINE):
                prefetch(x, (top + i + 2 * CACHE_LINE, left))
            for j in range(CACHE_LINE):
                for i in range(CACHE_LINE):
                    copy(x, block, top + i, left + j)
    for top in range(0, n, _TILE):
        part, turned = x[top : top + _TILE, whole_columns:], block[whole_columns:, top : top + _TILE]
        for j in range(part.shape[1]):
            for i in range(part.shape[0]):
                copy(part, turned, i, j)
    for i in range(whole_rows, n):
        for j in range(whole_columns):
            copy(x, block, i, j)


@entry((READ_MATRIX, ROWS))
def gather(x: FloatArray, block: FloatArray) -> None:
    """Set block = x.T for a float64 matrix."""
    _by_squares(_to_block, x, block)


@entry((READ_MATRIX32, ROWS))
def gather_widened(x: Float32Array, block: FloatArray) -> None:
    """Set block = x.T for a float32 matrix, converted to float64."""
    _by_squares(_to_block, x, block)


@entry((ROWS, WRITE_MATRIX))
def scatter(block: FloatArray, out: FloatArray) -> None:
    """Set out = block.T for a float64 matrix."""
    _by_squares(_from_block, out, block)


# --- transforms of a block: row j has the fit in results[j]; `failures` counts values without an image -------------


@kernel
def prestandardize(x: FloatArray, fit: FloatArray) -> None:
    """Set x = (x - center)/divisor with the constants of a fit, for robust Yeo-Johnson fits and Box-Cox with a shift.

    x - center rounds to 0 or less only if x <= center, so the domain is the same before and after. Finite values that
    would overflow become the largest finite numbers, so that only infinite values are infinite afterwards.
    """
    center, divisor = fit[CENTER], fit[DIVISOR]
    for i in range(x.size):
        y = (x[i] - center) / divisor
        if abs(y) == math.inf and abs(x[i]) < math.inf:
            y = math.copysign(_LARGEST, y)
        x[i] = y


@kernel
def _unprestandardize(x: FloatArray, fit: FloatArray) -> int:
    """Set x = center + divisor x with the constants of a fit; return the number of finite values that overflow."""
    center, divisor, n = fit[CENTER], fit[DIVISOR], 0
    for i in range(x.size):
        y = center + divisor * x[i]
        n += (abs(x[i]) < math.inf) & (abs(y) == math.inf)
        x[i] = y
    return n


@entry((READ_MATRIX, COUNTS, ROWS, COUNTS))
def count_outside(x: FloatArray, family: IntArray, results: FloatArray, failures: IntArray) -> None:
    """Count the values of each column that are outside the domain of its fit, and add the counts to `failures`.

    Parameters
    ----------
    x : (n, p)
        The matrix.
    family : (p,) int
        BOX_COX or YEO_JOHNSON for each column.
    results : (p, N_RESULTS)
        The fits.
    failures : (p,) int
        The counts; updated in place.
    """
    for j in range(x.shape[1]):
        if is_identity(results[j]):
            failures[j] += count_infinite(x[:, j])
        else:
            failures[j] += _outside(x[:, j], end_of_domain(results[j], family[j]))


@kernel
def end_of_domain(fit: FloatArray, family: int) -> float:
    """Return the lower bound of the domain of a fit, in the units of the data; the bound is not part of the domain.

    For Box-Cox comparing x with the bound is exact, since x - center rounds to 0 or less only if x <= center.
    """
    return float(fit[CENTER] + domain_lower_bound(family))


@inlined
def read_fit(row: FloatArray) -> Fit:
    """Return the parameters in a row of results as a `Fit`."""
    return Fit(row[LMBDA], row[REF], row[SLOPE], row[INTERCEPT], row[LOG_FACTOR])


def _make_entry(family: int, direction: int) -> Callable[[FloatArray, FloatArray, IntArray], None]:
    """Make the entry that transforms the rows of a block by one family in one direction.

    The constants are computed for many columns at a time, so that their computation vectorises.
    """
    transform = TRANSFORMS[family, direction]
    prepare, n_constants = in_turn(transform.prepare), transform.n_constants
    transform_column, is_inverse = column_transform(family, direction), direction in INVERSES

    def by_column(block: FloatArray, results: FloatArray, failures: IntArray) -> None:
        c, room, fields = allocated((1, n_constants, BLOCK)), allocated((N_ROOM, WIDTH)), allocated((N_FIELDS, BLOCK))
        for j in range(block.shape[0]):
            k = j % BLOCK
            if k == 0:
                n = min(BLOCK, block.shape[0] - j)
                for i in range(n):
                    for field in range(N_FIELDS):
                        fields[field, i] = results[j + i, FIT_FIELDS[field]]
                prepare(fields, c[0], n)
            x, row = block[j], results[j]
            if is_identity(row):
                failures[j] += 0 if is_inverse else count_infinite(x)
                continue
            rescaled = is_rescaled(row)
            if not is_inverse and rescaled:
                prestandardize(x, row)
            n_failures = transform_column(x, c, k, read_fit(row), x, room)
            if is_inverse and rescaled:
                n_failures += _unprestandardize(x, row)
            failures[j] += n_failures
        release(c)
        release(room)
        release(fields)

    by_column.__name__ = by_column.__qualname__ = f"{transform.name}_columns"  # the cache identifies code by this name
    return entry((ROWS, ROWS, COUNTS))(by_column)


#: The entry for each family and direction.
APPLY = {key: _make_entry(*key) for key in TRANSFORMS}
