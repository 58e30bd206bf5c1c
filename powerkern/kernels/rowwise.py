"""Transforms along contiguous lines of a matrix, its rows or its columns: nothing is gathered or scattered.

Each entry computes the constants of its columns, transforms every value and says which columns have values that are
not ordinary. Of ordinary ones, float64 gets the bits that the loops of `powerkern.kernels.columnwise` give, and float32
those of `powerkern.kernels.single`.

The entries of `APPLY` take (x, stride, results, found, out, out_stride, upright):

* the lines of x begin `stride` apart, those of out `out_stride`; an empty out: values are only looked at;
* `upright`: a line has values of one column, and there is one for each of the `results`; else it has one of each, in
  their order, and the last line may be shorter;
* found[LOW : HIGH + 1, j]: the bounds between which values of column j are ordinary, the first above the second where
  none is; found[EXTREME, j] > 0 where a value is not.

The entries of `APPLY_SINGLE`, for float32, also take whether values are `standardized`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from powerkern._jit import (
    BOOLEAN,
    COLUMN,
    COLUMN32,
    INTEGER,
    LANES,
    READ_COLUMN,
    READ_COLUMN32,
    ROWS,
    aligned,
    borrowed,
    entry,
    in_all_lanes,
    inlined,
    kernel,
    prefetch,
    store,
    widest_vectors,
)
from powerkern._typing import FloatArray
from powerkern.kernels import boxcox, single, yeojohnson
from powerkern.kernels.branch import HIGH, LOW
from powerkern.kernels.columnwise import FORWARD, FORWARD_STANDARDIZED, INVERSE, INVERSE_STANDARDIZED
from powerkern.kernels.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.results import INTERCEPT, LMBDA, LOG_FACTOR, N_RESULTS, REF, SLOPE, is_identity, is_rescaled

#: The rows of what is found, after LOW and HIGH.
EXTREME = 2
N_FOUND = 3

#: Values of a line that are transformed together. Sixteen cache lines: as many as a core can have in flight.
ROW_BLOCK = 128
#: Columns of which constants are held at once: they stay in the second-level cache.
BAND = 1024
# numbers from one constant of a block to the next: one stride for all, and room for `_spread`
_WIDTH = ROW_BLOCK + LANES
#: Shorter rows, and shorter columns, are joined where no memory is between them: the last block of each would be too
#: short, and of columns constants would be copied as many times as there are values.
SHORTEST_ROW, SHORTEST_COLUMN = 512, 64
_LINE_BYTES = 64

#: Writes the constants of column j, of a fit in fields[:, j], into c[:, j].
_Prepare = Callable[[FloatArray, FloatArray, int], None]
#: Transforms a block x by constants c: (x, c, out, spare).
_Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]

# what the constants of a column are made of: rows of an array of fields
_L, _R, _A, _B, _S, _PASSES = range(6)


class _Lines(NamedTuple):
    """Where values are, and where their images go."""

    x: FloatArray
    stride: int
    out: FloatArray
    out_stride: int
    upright: bool


@inlined
def _by_bands(
    prepare: _Prepare,
    transform: _Transform,
    n_constants: int,
    lines: _Lines,
    results: FloatArray,
    found: FloatArray,
    raw_ref: float,
) -> None:
    """BAND columns after BAND columns: their constants, then their values. For `raw_ref` see `_fill`."""
    results, found, x, out = borrowed(results), borrowed(found), borrowed(lines.x), borrowed(lines.out)
    p, upright = results.shape[0], lines.upright
    height = x.size - (p - 1) * lines.stride if upright else 0
    blocks = -(-max(min(p, BAND), SHORTEST_ROW) // ROW_BLOCK)
    c = aligned(np.empty((blocks + 1, n_constants, _WIDTH)))
    for left in range(0, p, BAND):
        right = min(left + BAND, p)
        for k in range(-(-(right - left) // ROW_BLOCK)):
            first = left + k * ROW_BLOCK
            last = min(first + ROW_BLOCK, right)
            _fill(prepare, results[first:last], raw_ref, c[k])
            for j in range(last - first):
                found[LOW, first + j], found[HIGH, first + j] = c[k, LOW, j], c[k, HIGH, j]
        begin, to = (left * lines.stride, left * lines.out_stride) if upright else (left, left)
        band = _Lines(x[begin:], lines.stride, out[to:], lines.out_stride, upright)
        _along_lines(transform, band, height, right - left, c, found[EXTREME, left:right])


@inlined
def _fill(prepare: _Prepare, results: FloatArray, raw_ref: float, c: FloatArray) -> None:
    """The constants of up to ROW_BLOCK columns: standardised, or with the reference `raw_ref` where that is not NaN.

    Of columns that pass unchanged, or are to be rescaled first, no value is ordinary.
    """
    widest_vectors()
    n, raw, results = results.shape[0], raw_ref == raw_ref, borrowed(results)
    fields = np.empty((6, ROW_BLOCK))
    for j in range(n):
        for k in range(0, N_RESULTS, LANES):
            prefetch(results, (j + ROW_BLOCK // 8, k))
        fit = results[j]
        fields[_L, j] = fit[LMBDA]
        fields[_R, j], fields[_A, j] = raw_ref if raw else fit[REF], 1.0 if raw else fit[SLOPE]
        fields[_B, j], fields[_S, j] = 0.0 if raw else fit[INTERCEPT], 0.0 if raw else fit[LOG_FACTOR]
        fields[_PASSES, j] = 1.0 if is_identity(fit) or is_rescaled(fit) else 0.0
    for j in range(n):
        prepare(fields, c, j)
    for j in range(n):
        c[LOW, j] = math.inf if fields[_PASSES, j] > 0.0 else c[LOW, j]
    for j in range(n):
        c[HIGH, j] = -math.inf if fields[_PASSES, j] > 0.0 else c[HIGH, j]


@inlined
def _along_lines(transform: _Transform, lines: _Lines, height: int, p: int, c: FloatArray, extreme: FloatArray) -> None:
    """`transform` every block of every line, prefetching what comes after it; `p` columns, of `height` if upright."""
    widest_vectors()
    x, out, upright = borrowed(lines.x), borrowed(lines.out), lines.upright
    joined, n_lines, stride, out_stride, width = _lines_of(lines, height, p)
    if joined and not upright:
        _repeat(c, p, min(width, x.size))
    spare, column = aligned(np.empty((4, _WIDTH))), aligned(np.empty((c.shape[1] + 1, _WIDTH)))
    ahead, step = ROW_BLOCK if upright else stride, _LINE_BYTES // x.itemsize
    for line in range(n_lines):
        start = line * stride
        stop = min(start + width, x.size)
        for k in range(-(-(stop - start) // ROW_BLOCK)):
            first = start + k * ROW_BLOCK
            n = min(ROW_BLOCK, stop - first)
            for j in range(0, n, step):
                prefetch(x, (first + ahead + j,))
            if upright and (joined or k == 0):
                _spread(c, line * height + k * ROW_BLOCK, n, height, column)
            constants = borrowed(column) if upright else borrowed(c[k])
            if _any_extreme(x[first : first + n], constants):
                place = line * height if upright else 0
                _note_extreme(x[first : first + n], constants, place + k * ROW_BLOCK, height if upright else 1, extreme)
            if out.size > 0:
                to = line * out_stride + k * ROW_BLOCK
                transform(x[first : first + n], constants, out[to : to + n], spare)


@inlined
def _lines_of(lines: _Lines, height: int, p: int) -> tuple[bool, int, int, int, int]:
    """Whether lines are joined; how many there are then, how far apart, and of how many values."""
    length = height if lines.upright else p
    apart = lines.stride != length or (lines.out.size > 0 and lines.out_stride != length)
    if apart or length >= (SHORTEST_COLUMN if lines.upright else SHORTEST_ROW):
        return False, p if lines.upright else -(-lines.x.size // lines.stride), lines.stride, lines.out_stride, length
    width = length * (p if lines.upright else max(1, SHORTEST_ROW // length))
    return True, 1 if lines.upright else -(-lines.x.size // width), width, width, width


@inlined
def _repeat(c: FloatArray, p: int, width: int) -> None:
    """The constants of p columns for a line of so many values, in which they follow one another again and again."""
    for j in range(p, width):
        to, of = j, j - p
        for k in range(c.shape[1]):
            c[to // ROW_BLOCK, k, to % ROW_BLOCK] = c[of // ROW_BLOCK, k, of % ROW_BLOCK]


@inlined
def _spread(c: FloatArray, first: int, n: int, height: int, column: FloatArray) -> None:
    """The constants of n values from number `first` on, of columns of so many values one after the other."""
    j, begin = first // height, 0
    end = (j + 1) * height - first
    while begin < n:
        block, place = j // ROW_BLOCK, j % ROW_BLOCK
        for i in range(begin, min(n, end), LANES):
            for k in range(c.shape[1]):
                store(column, (k, i), in_all_lanes(c[block, k, place]))  # up to seven more: the next column's
        j, begin, end = j + 1, end, end + height


@inlined
def _any_extreme(x: FloatArray, c: FloatArray) -> bool:
    """Whether a value of a block is not ordinary."""
    widest_vectors()
    low, high, n = c[LOW], c[HIGH], 0
    for j in range(x.size):
        n += (x[j] < low[j]) | (x[j] > high[j])
    return n > 0


@kernel
def _note_extreme(x: FloatArray, c: FloatArray, first: int, height: int, extreme: FloatArray) -> None:
    """extreme = 1 for columns of values of a block that are not ordinary; their numbers, from `first` on, by `height`.

    The last line of joined rows has columns more than once.
    """
    for j in range(x.size):
        if x[j] < c[LOW, j] or x[j] > c[HIGH, j]:
            extreme[(first + j) // height % extreme.size] = 1.0


# --- float64 ------------------------------------------------------------------------------------------

_ENTRY = (READ_COLUMN, INTEGER, ROWS, ROWS, COLUMN, INTEGER, BOOLEAN)


@inlined
def _boxcox_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_constants(fields[_L, j], False, c, j)


@entry(_ENTRY)
def _boxcox(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    prepare, transform = _boxcox_constants, boxcox.boxcox_block
    _by_bands(prepare, transform, boxcox.CONSTANTS, lines, results, found, math.nan)


@inlined
def _inv_boxcox_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_constants(fields[_L, j], True, c, j)


@entry(_ENTRY)
def _inv_boxcox(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    prepare, transform = _inv_boxcox_constants, boxcox.inv_boxcox_block
    _by_bands(prepare, transform, boxcox.CONSTANTS, lines, results, found, math.nan)


@inlined
def _boxcox_standardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_standardized_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], c, j)


@entry(_ENTRY)
def _boxcox_standardized(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(
        _boxcox_standardized_constants,
        boxcox.boxcox_standardized_block,
        boxcox.STANDARDIZED_CONSTANTS,
        lines,
        results,
        found,
        math.nan,
    )


@inlined
def _boxcox_unstandardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_unstandardized_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], c, j)


@entry(_ENTRY)
def _boxcox_unstandardized(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(
        _boxcox_unstandardized_constants,
        boxcox.boxcox_unstandardized_block,
        boxcox.UNSTANDARDIZED_CONSTANTS,
        lines,
        results,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_constants(fields[_L, j], False, c, j)


@entry(_ENTRY)
def _yeojohnson(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(_yeojohnson_constants, yeojohnson.yeojohnson_block, yeojohnson.CONSTANTS, lines, results, found, math.nan)


@inlined
def _inv_yeojohnson_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_constants(fields[_L, j], True, c, j)


@entry(_ENTRY)
def _inv_yeojohnson(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(
        _inv_yeojohnson_constants,
        yeojohnson.inv_yeojohnson_block,
        yeojohnson.CONSTANTS,
        lines,
        results,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_standardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_standardized_constants(
        fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j
    )


@entry(_ENTRY)
def _yeojohnson_standardized(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(
        _yeojohnson_standardized_constants,
        yeojohnson.yeojohnson_standardized_block,
        yeojohnson.STANDARDIZED_CONSTANTS,
        lines,
        results,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_unstandardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_unstandardized_constants(
        fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j
    )


@entry(_ENTRY)
def _yeojohnson_unstandardized(
    x: FloatArray, stride: int, results: FloatArray, found: FloatArray, out: FloatArray, out_stride: int, upright: bool
) -> None:
    lines = _Lines(x, stride, out, out_stride, upright)
    _by_bands(
        _yeojohnson_unstandardized_constants,
        yeojohnson.yeojohnson_unstandardized_block,
        yeojohnson.UNSTANDARDIZED_CONSTANTS,
        lines,
        results,
        found,
        math.nan,
    )


_Apply = Callable[[FloatArray, int, FloatArray, FloatArray, FloatArray, int, bool], None]

#: The entry for a family and a direction.
APPLY: dict[tuple[int, int], _Apply] = {
    (BOX_COX, FORWARD): _boxcox,
    (BOX_COX, INVERSE): _inv_boxcox,
    (BOX_COX, FORWARD_STANDARDIZED): _boxcox_standardized,
    (BOX_COX, INVERSE_STANDARDIZED): _boxcox_unstandardized,
    (YEO_JOHNSON, FORWARD): _yeojohnson,
    (YEO_JOHNSON, INVERSE): _inv_yeojohnson,
    (YEO_JOHNSON, FORWARD_STANDARDIZED): _yeojohnson_standardized,
    (YEO_JOHNSON, INVERSE_STANDARDIZED): _yeojohnson_unstandardized,
}


# --- float32 ------------------------------------------------------------------------------------------

_ENTRY_SINGLE = (READ_COLUMN32, INTEGER, ROWS, ROWS, COLUMN32, INTEGER, BOOLEAN, BOOLEAN)


@inlined
def _boxcox_single_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    single.boxcox_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j)


@entry(_ENTRY_SINGLE)
def _boxcox_single(
    x: FloatArray,
    stride: int,
    results: FloatArray,
    found: FloatArray,
    out: FloatArray,
    out_stride: int,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _Lines(x, stride, out, out_stride, upright), math.nan if standardized else 1.0
    prepare, transform = _boxcox_single_constants, single.boxcox_block
    _by_bands(prepare, transform, single.BOXCOX_CONSTANTS, lines, results, found, raw_ref)


@inlined
def _inv_boxcox_single_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    single.inv_boxcox_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j)


@entry(_ENTRY_SINGLE)
def _inv_boxcox_single(
    x: FloatArray,
    stride: int,
    results: FloatArray,
    found: FloatArray,
    out: FloatArray,
    out_stride: int,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _Lines(x, stride, out, out_stride, upright), math.nan if standardized else 1.0
    _by_bands(
        _inv_boxcox_single_constants,
        single.inv_boxcox_block,
        single.INV_BOXCOX_CONSTANTS,
        lines,
        results,
        found,
        raw_ref,
    )


@inlined
def _yeojohnson_single_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    single.yeojohnson_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j)


@entry(_ENTRY_SINGLE)
def _yeojohnson_single(
    x: FloatArray,
    stride: int,
    results: FloatArray,
    found: FloatArray,
    out: FloatArray,
    out_stride: int,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _Lines(x, stride, out, out_stride, upright), math.nan if standardized else 0.0
    _by_bands(
        _yeojohnson_single_constants,
        single.yeojohnson_block,
        single.YEOJOHNSON_CONSTANTS,
        lines,
        results,
        found,
        raw_ref,
    )


@inlined
def _inv_yeojohnson_single_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    single.inv_yeojohnson_constants(fields[_L, j], fields[_R, j], fields[_A, j], fields[_B, j], fields[_S, j], c, j)


@entry(_ENTRY_SINGLE)
def _inv_yeojohnson_single(
    x: FloatArray,
    stride: int,
    results: FloatArray,
    found: FloatArray,
    out: FloatArray,
    out_stride: int,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _Lines(x, stride, out, out_stride, upright), math.nan if standardized else 0.0
    _by_bands(
        _inv_yeojohnson_single_constants,
        single.inv_yeojohnson_block,
        single.INV_YEOJOHNSON_CONSTANTS,
        lines,
        results,
        found,
        raw_ref,
    )


_ApplySingle = Callable[[FloatArray, int, FloatArray, FloatArray, FloatArray, int, bool, bool], None]

#: The entry for a family and a direction without standardising.
APPLY_SINGLE: dict[tuple[int, int], _ApplySingle] = {
    (BOX_COX, FORWARD): _boxcox_single,
    (BOX_COX, INVERSE): _inv_boxcox_single,
    (YEO_JOHNSON, FORWARD): _yeojohnson_single,
    (YEO_JOHNSON, INVERSE): _inv_yeojohnson_single,
}
