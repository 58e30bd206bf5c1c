"""Transforms along the rows of a C-contiguous matrix: nothing is gathered or scattered.

`constants` prepares what depends on a column alone. The entries of `APPLY` transform every value, to the bits that
the loops of `powerkern.kernels.columnwise` give if it is ordinary, and report which columns have others; `find_extreme`
only reports. These entries take rows of `stride` values, one after the other, of which those from `left` on are
used, as many as `found` has elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from powerkern._jit import (
    BLOCKS,
    BOOLEAN,
    COLUMN,
    COUNTS,
    INTEGER,
    READ_COLUMN,
    ROWS,
    entry,
    inlined,
    prefetch,
    widest_vectors,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels import boxcox, yeojohnson
from powerkern.kernels.columnwise import FORWARD, FORWARD_STANDARDIZED, INVERSE, INVERSE_STANDARDIZED
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.results import INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE, is_identity, is_rescaled

# the same in both families
LOW, HIGH = boxcox.LOW, boxcox.HIGH

#: Values of a row that are transformed together. Sixteen cache lines: as many as a core can have in flight.
ROW_BLOCK = 128
_LINE = 8


def constants(family: int, direction: int, results: FloatArray) -> FloatArray:
    """The constants of each column, for what a `direction` does; LOW > HIGH where none of its values is ordinary."""
    n_constants, prepare = _CONSTANTS[family]
    c = np.zeros((n_constants, results.shape[0]))
    prepare(
        results,
        direction in (INVERSE, INVERSE_STANDARDIZED),
        direction in (FORWARD_STANDARDIZED, INVERSE_STANDARDIZED),
        c,
    )
    return c


def in_blocks(c: FloatArray) -> FloatArray:
    """Constants as the entries take them: (n, constants, ROW_BLOCK)."""
    blocks = np.zeros((-(-c.shape[1] // ROW_BLOCK), c.shape[0], ROW_BLOCK))
    for k, block in enumerate(blocks):
        part = c[:, k * ROW_BLOCK : (k + 1) * ROW_BLOCK]
        block[:, : part.shape[1]] = part
    return blocks


@entry((ROWS, BOOLEAN, BOOLEAN, ROWS))
def _boxcox_constants(results: FloatArray, inverse: bool, standardized: bool, c: FloatArray) -> None:
    for j in range(results.shape[0]):
        fit = results[j]
        if not (is_identity(fit) or is_rescaled(fit)):  # gathered, to be rescaled first
            boxcox.boxcox_constants(fit[LMBDA], fit[REF], fit[SLOPE], fit[INTERCEPT], inverse, standardized, c[:, j])
        else:
            c[LOW, j], c[HIGH, j] = math.inf, -math.inf


@entry((ROWS, BOOLEAN, BOOLEAN, ROWS))
def _yeojohnson_constants(results: FloatArray, inverse: bool, standardized: bool, c: FloatArray) -> None:
    for j in range(results.shape[0]):
        fit = results[j]
        if not (is_identity(fit) or is_rescaled(fit)):
            yeojohnson.yeojohnson_constants(
                fit[LMBDA], fit[REF], fit[SLOPE], fit[INTERCEPT], fit[LOG_FACTOR], inverse, standardized, c[:, j]
            )
        else:
            c[LOW, j], c[HIGH, j] = math.inf, -math.inf


_CONSTANTS: dict[int, tuple[int, Callable[[FloatArray, bool, bool, FloatArray], None]]] = {
    BOX_COX: (boxcox.N_CONSTANTS, _boxcox_constants),
    YEO_JOHNSON: (yeojohnson.N_CONSTANTS, _yeojohnson_constants),
}


@entry((READ_COLUMN, INTEGER, INTEGER, BLOCKS, COUNTS))
def find_extreme(x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray) -> None:
    """found = 1 for columns with a value that is not ordinary."""
    for start in range(left, x.size, stride):
        stop = min(start + found.size, x.size)
        for k in range(-(-(stop - start) // ROW_BLOCK)):
            first = start + k * ROW_BLOCK
            _note_extreme(x[first : min(first + ROW_BLOCK, stop)], c[k], found[k * ROW_BLOCK :])


@inlined
def _note_extreme(x: FloatArray, c: FloatArray, found: IntArray) -> None:
    """found = 1 for values of a block that are not ordinary."""
    widest_vectors()
    low, high = c[LOW], c[HIGH]
    for j in range(x.size):
        found[j] |= (x[j] < low[j]) | (x[j] > high[j])


@inlined
def _along_rows(
    transform: Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None],
    x: FloatArray,
    stride: int,
    left: int,
    c: FloatArray,
    found: IntArray,
    out: FloatArray,
) -> None:
    """`transform` every block of every row, prefetching the same block of the next row."""
    widest_vectors()
    spare = np.empty((3, ROW_BLOCK))
    for start in range(left, x.size, stride):
        stop = min(start + found.size, x.size)
        for k in range(-(-(stop - start) // ROW_BLOCK)):
            first = start + k * ROW_BLOCK
            n = min(ROW_BLOCK, stop - first)
            for j in range(0, n, _LINE):
                prefetch(x, (first + stride + j,))
            _note_extreme(x[first : first + n], c[k], found[k * ROW_BLOCK :])
            transform(x[first : first + n], c[k], out[first : first + n], spare)


_ROWS = (READ_COLUMN, INTEGER, INTEGER, BLOCKS, COUNTS, COLUMN)


@entry(_ROWS)
def _boxcox(x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray) -> None:
    _along_rows(boxcox.boxcox_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _inv_boxcox(x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray) -> None:
    _along_rows(boxcox.inv_boxcox_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _boxcox_standardized(
    x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray
) -> None:
    _along_rows(boxcox.boxcox_standardized_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _boxcox_unstandardized(
    x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray
) -> None:
    _along_rows(boxcox.boxcox_unstandardized_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _yeojohnson(x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray) -> None:
    _along_rows(yeojohnson.yeojohnson_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _inv_yeojohnson(x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray) -> None:
    _along_rows(yeojohnson.inv_yeojohnson_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _yeojohnson_standardized(
    x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray
) -> None:
    _along_rows(yeojohnson.yeojohnson_standardized_block, x, stride, left, c, found, out)


@entry(_ROWS)
def _yeojohnson_unstandardized(
    x: FloatArray, stride: int, left: int, c: FloatArray, found: IntArray, out: FloatArray
) -> None:
    _along_rows(yeojohnson.yeojohnson_unstandardized_block, x, stride, left, c, found, out)


#: The entry for a family and a direction.
APPLY: dict[tuple[int, int], Callable[[FloatArray, int, int, FloatArray, IntArray, FloatArray], None]] = {
    (BOX_COX, FORWARD): _boxcox,
    (BOX_COX, INVERSE): _inv_boxcox,
    (BOX_COX, FORWARD_STANDARDIZED): _boxcox_standardized,
    (BOX_COX, INVERSE_STANDARDIZED): _boxcox_unstandardized,
    (YEO_JOHNSON, FORWARD): _yeojohnson,
    (YEO_JOHNSON, INVERSE): _inv_yeojohnson,
    (YEO_JOHNSON, FORWARD_STANDARDIZED): _yeojohnson_standardized,
    (YEO_JOHNSON, INVERSE_STANDARDIZED): _yeojohnson_unstandardized,
}
