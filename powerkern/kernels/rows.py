"""Transforms along the rows of a C-contiguous matrix: nothing is gathered or scattered.

`constants` prepares what depends on a column alone, `find_extreme` finds the columns that need the loops of
`powerkern.kernels.tiles` for some of their values, the entries of `APPLY` transform the rest, to the same bits.
All but `constants` take rows of `stride` values, one after the other, of which those from `left` on are meant, as
many as there are columns of constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from powerkern._jit import BOOLEAN, COLUMN, COUNTS, INTEGER, READ_COLUMN, ROWS, entry, widest_vectors
from powerkern.kernels import boxcox, yeojohnson
from powerkern.kernels.likelihood import FloatArray
from powerkern.kernels.mle import (
    BOX_COX,
    CENTRE,
    DIVISOR,
    INTERCEPT,
    LMBDA,
    LOG_FACTOR,
    REF,
    SLOPE,
    YEO_JOHNSON,
    is_identity,
)
from powerkern.kernels.tiles import FORWARD, FORWARD_STANDARDIZED, INVERSE, INVERSE_STANDARDIZED

# the same in both families
LOW, HIGH = boxcox.LOW, boxcox.HIGH


def constants(family: int, what: int, results: FloatArray) -> FloatArray:
    """The constants of each column, for what is to be done; LOW > HIGH where none of its values is ordinary."""
    n_constants, prepare = _CONSTANTS[family]
    c = np.zeros((n_constants, results.shape[0]))
    prepare(results, what in (INVERSE, INVERSE_STANDARDIZED), what in (FORWARD_STANDARDIZED, INVERSE_STANDARDIZED), c)
    return c


@entry((ROWS, BOOLEAN, BOOLEAN, ROWS))
def _boxcox_constants(results: FloatArray, inverse: bool, standardized: bool, c: FloatArray) -> None:
    for j in range(results.shape[0]):
        fit = results[j]
        if not is_identity(fit):
            boxcox.boxcox_constants(fit[LMBDA], fit[REF], fit[SLOPE], fit[INTERCEPT], inverse, standardized, c[:, j])
        else:
            c[LOW, j], c[HIGH, j] = math.inf, -math.inf


@entry((ROWS, BOOLEAN, BOOLEAN, ROWS))
def _yeojohnson_constants(results: FloatArray, inverse: bool, standardized: bool, c: FloatArray) -> None:
    for j in range(results.shape[0]):
        fit = results[j]
        if not is_identity(fit) and fit[CENTRE] == 0.0 and fit[DIVISOR] == 1.0:  # others are rescaled first
            yeojohnson.yeojohnson_constants(
                fit[LMBDA], fit[REF], fit[SLOPE], fit[INTERCEPT], fit[LOG_FACTOR], inverse, standardized, c[:, j]
            )
        else:
            c[LOW, j], c[HIGH, j] = math.inf, -math.inf


_CONSTANTS: dict[int, tuple[int, Callable[[FloatArray, bool, bool, FloatArray], None]]] = {
    BOX_COX: (boxcox.N_CONSTANTS, _boxcox_constants),
    YEO_JOHNSON: (yeojohnson.N_CONSTANTS, _yeojohnson_constants),
}


@entry((READ_COLUMN, INTEGER, INTEGER, ROWS, COUNTS))
def find_extreme(x: FloatArray, stride: int, left: int, c: FloatArray, found: npt.NDArray[np.int64]) -> None:
    """found = 1 for columns with a value that is not ordinary."""
    widest_vectors()
    low, high = c[LOW], c[HIGH]
    for start in range(left, x.size, stride):
        row = x[start : start + found.size]
        for j in range(row.size):
            found[j] |= (row[j] < low[j]) | (row[j] > high[j])


_ROWS = (READ_COLUMN, INTEGER, INTEGER, ROWS, COLUMN)


@entry(_ROWS)
def _boxcox(x: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    boxcox.boxcox_rows(x, stride, left, c, out)


@entry(_ROWS)
def _inv_boxcox(y: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    boxcox.inv_boxcox_rows(y, stride, left, c, out)


@entry(_ROWS)
def _boxcox_standardized(x: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    boxcox.boxcox_standardized_rows(x, stride, left, c, out)


@entry(_ROWS)
def _boxcox_unstandardized(z: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    boxcox.boxcox_unstandardized_rows(z, stride, left, c, out)


@entry(_ROWS)
def _yeojohnson(x: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    yeojohnson.yeojohnson_rows(x, stride, left, c, out)


@entry(_ROWS)
def _inv_yeojohnson(y: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    yeojohnson.inv_yeojohnson_rows(y, stride, left, c, out)


@entry(_ROWS)
def _yeojohnson_standardized(x: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    yeojohnson.yeojohnson_standardized_rows(x, stride, left, c, out)


@entry(_ROWS)
def _yeojohnson_unstandardized(z: FloatArray, stride: int, left: int, c: FloatArray, out: FloatArray) -> None:
    yeojohnson.yeojohnson_unstandardized_rows(z, stride, left, c, out)


#: The entry for a family and what is to be done.
APPLY: dict[tuple[int, int], Callable[[FloatArray, int, int, FloatArray, FloatArray], None]] = {
    (BOX_COX, FORWARD): _boxcox,
    (BOX_COX, INVERSE): _inv_boxcox,
    (BOX_COX, FORWARD_STANDARDIZED): _boxcox_standardized,
    (BOX_COX, INVERSE_STANDARDIZED): _boxcox_unstandardized,
    (YEO_JOHNSON, FORWARD): _yeojohnson,
    (YEO_JOHNSON, INVERSE): _inv_yeojohnson,
    (YEO_JOHNSON, FORWARD_STANDARDIZED): _yeojohnson_standardized,
    (YEO_JOHNSON, INVERSE_STANDARDIZED): _yeojohnson_unstandardized,
}
