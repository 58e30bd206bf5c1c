"""Transforms along contiguous lines of a matrix, its rows or its columns: nothing is gathered or scattered.

Each entry computes the constants of its columns, transforms every value and says which columns have values that are
not ordinary. Of ordinary ones, float64 gets the bits that the loops of `kernels.transforms.gather` give, and float32
the bits of `powerkern.kernels.transforms.single`.

The entries of `APPLY` take (x, where, fields, found, out, column_major, packed), where is [begin, stride, within,
height, to, out_stride, first], `fields` are of `fields_of`, and `packed` is scratch space for BLOCK values:

* the lines of x begin at ``begin + k stride``, and their values are `within` apart (both may be negative); values that
  are not side by side are packed, a block at a time;
* the lines of out begin at ``to + k out_stride``, and are dense; out may be x;
* `column_major`: a line has the values of one column, `height` of them, and there is one for each column;
  else it has one of each, in their order, and there are `height` lines;
* the columns are fields[:, first + j], as many as `found` has;
* found[LOW : HIGH + 1, j]: the bounds between which values of column j are ordinary, the first above the second where
  none is; found[EXTREME, j] > 0 where a value is not. Where no column of a band has ordinary values, nothing is
  written to out.

The entries of `APPLY_SINGLE` do it for float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from powerkern._jit import (
    BOOLEAN,
    COLUMN,
    COLUMN32,
    COUNTS,
    LANES,
    ROWS,
    allocated,
    borrowed,
    entry,
    first_lanes,
    in_all_lanes,
    inlined,
    kernel,
    load,
    release,
    select,
    store,
    widest_vectors,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import CENTER, DIVISOR, INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE, STATUS, UNFITTED
from powerkern.kernels.transforms import single
from powerkern.kernels.transforms.branch import (
    BLOCK,
    F_LMBDA,
    F_PASSES,
    F_REF,
    F_SLOPE,
    HIGH,
    LOW,
    N_FIELDS,
    PrepareAll,
    in_turn,
)
from powerkern.kernels.transforms.columns import TRANSFORMS, WIDTH
from powerkern.kernels.transforms.family import (
    BOX_COX,
    FORWARD,
    FORWARD_STANDARDIZED,
    INVERSE,
    INVERSE_STANDARDIZED,
    YEO_JOHNSON,
)
from powerkern.kernels.transforms.lines import (
    BAND,
    Lines,
    Traversal,
    block_in_place,
    lines_at,
    pack,
    traversal_of,
)

#: The rows of `found`, after LOW and HIGH.
EXTREME = 2
N_FOUND = 3
#: Transforms a block x by constants c: (x, c, out, spare).
_Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]


def fields_of(results: FloatArray) -> FloatArray:
    """Fit parameters from which column constants are derived: rows `F_LMBDA` to `F_PASSES`, a column for each fit.

    Less than a third of the results: reading all of them would dominate transforms of short columns.
    """
    passes = (results[:, CENTER] != 0.0) | (results[:, DIVISOR] != 1.0)
    for status in UNFITTED:
        passes |= results[:, STATUS] == status
    return np.vstack([results.T[[LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR]], passes])


def raw_fields(fields: FloatArray, family: IntArray) -> FloatArray:
    """The fields of the same lambdas without standardising, for `APPLY_SINGLE`."""
    raw = np.zeros_like(fields)
    raw[[F_LMBDA, F_PASSES]] = fields[[F_LMBDA, F_PASSES]]
    raw[F_REF], raw[F_SLOPE] = np.where(family == BOX_COX, 1.0, 0.0), 1.0
    return raw


@kernel
def _any_ordinary(low: FloatArray, high: FloatArray) -> bool:
    """Whether a column has ordinary values."""
    n = 0
    for j in range(low.size):
        n += low[j] <= high[j]
    return n > 0


@inlined
def _fill_band(prepare: PrepareAll, fields: FloatArray, found: FloatArray, c: FloatArray) -> None:
    """The constants of a band, a block of columns at a time, and the bounds of its ordinary values.

    Of columns that pass unchanged, or are to be rescaled first, no value is ordinary.
    """
    widest_vectors()
    fields, found = borrowed(fields), borrowed(found)
    p = fields.shape[1]
    work = allocated((N_FIELDS, BLOCK))
    for k in range(-(-p // BLOCK)):
        first = k * BLOCK
        n = min(BLOCK, p - first)
        for row in range(N_FIELDS):
            of, to = fields[row, first : first + n], work[row]
            for j in range(n):
                to[j] = of[j]
        prepare(work, c[k], n)
        for j in range(n):
            c[k, LOW, j] = math.inf if work[F_PASSES, j] > 0.0 else c[k, LOW, j]
            found[LOW, first + j] = c[k, LOW, j]
        for j in range(n):
            c[k, HIGH, j] = -math.inf if work[F_PASSES, j] > 0.0 else c[k, HIGH, j]
            found[HIGH, first + j] = c[k, HIGH, j]
    release(work)


@inlined
def _along_lines(
    transform: _Transform,
    lines: Lines,
    traversal: Traversal,
    c: FloatArray,
    spare: FloatArray,
    column: FloatArray,
    packed: FloatArray,
    extreme: FloatArray,
) -> None:
    """Transform every block of every line, and prefetch the values to come.

    In `spare` is room for a block's transform, in `packed` for its values, and in `column` for constants of
    column-major lines.
    """
    widest_vectors()
    out, column_major, height = borrowed(lines.out), lines.column_major, lines.height
    total = height * extreme.size
    packed = borrowed(packed)
    for line in range(traversal.n_lines):
        stop = min(traversal.width, total - line * traversal.width)
        source, begin = line * traversal.times, 0  # of values that are packed
        for k in range(-(-stop // traversal.block)):
            place = k * traversal.block
            n = min(traversal.block, stop - place)
            if traversal.dense:
                block = block_in_place(lines, traversal, line, place, n)
            else:
                source, begin = pack(lines, traversal, source, begin, packed[:n])
                block = packed[:n]
            if column_major and traversal.joined:
                _spread(c, line * height + place, n, height, column)
            elif column_major and k == 0:
                _spread_one(c, line, n, column)
            constants = borrowed(column) if column_major else borrowed(c[k])
            if _any_extreme(block, constants):
                number = (line * height if column_major else 0) + place
                _note_extreme(block, constants, number, height if column_major else 1, extreme)
            to = line * (traversal.width if traversal.joined else lines.out_stride) + place
            transform(block, constants, out[to : to + n], spare)


@inlined
def _repeat(c: FloatArray, p: int, width: int) -> None:
    """The constants of p columns for a line of so many values, in which they follow one another again and again."""
    for j in range(p, width):
        to, of = j, j - p
        for k in range(c.shape[1]):
            c[to // BLOCK, k, to % BLOCK] = c[of // BLOCK, k, of % BLOCK]


@inlined
def _spread_one(c: FloatArray, j: int, n: int, column: FloatArray) -> None:
    """The constants of n values of column j; whole vectors are stored."""
    for row in range(c.shape[1]):
        constant = in_all_lanes(c[j // BLOCK, row, j % BLOCK])
        for i in range(0, n, LANES):
            store(column, (row, i), constant)


@inlined
def _spread(c: FloatArray, first: int, n: int, height: int, column: FloatArray) -> None:
    """The constants of n values from number `first` on, of columns of so many values one after the other.

    Whole vectors are stored, so up to seven more are written, of the next columns.
    """
    widest_vectors()
    j, end = first // height, height - first % height
    for i in range(0, n, LANES):
        if end == i:
            j, end = j + 1, end + height
        for k in range(c.shape[1]):
            store(column, (k, i), in_all_lanes(c[j // BLOCK, k, j % BLOCK]))
        while end < i + LANES:  # there the next column begins
            j, before = j + 1, first_lanes(end - i)
            for k in range(c.shape[1]):
                next_one = in_all_lanes(c[j // BLOCK, k, j % BLOCK])
                store(column, (k, i), select(before, load(column, (k, i)), next_one))
            end += height


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


# --- entries ------------------------------------------------------------------------------------------

_Apply = Callable[[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, bool, FloatArray], None]
#: The directions of a transform, and of its inverse.
_DIRECTIONS = (FORWARD, FORWARD_STANDARDIZED), (INVERSE, INVERSE_STANDARDIZED)


def _entry_of(column: Any, name: str, prepare: PrepareAll, transform: _Transform, n_constants: int) -> _Apply:
    """The entry of a transform of vectors of this type, read as the first argument and written as the fifth."""

    def along_lines(
        x: FloatArray,
        where: IntArray,
        fields: FloatArray,
        found: FloatArray,
        out: FloatArray,
        column_major: bool,
        packed: FloatArray,
    ) -> None:
        # bands of at most BAND columns of about the same width, whose constants are held at once
        fields, found, first, p = borrowed(fields), borrowed(found), where[6], found.shape[1]
        n_bands, blocks = -(-p // BAND), -(-BAND // BLOCK)
        width = -(-p // n_bands)
        if BLOCK < width < p:
            width = -(-width // BLOCK) * BLOCK
        room = allocated((blocks + 3, n_constants, WIDTH))  # no transform has fewer constants than `spare` rows
        c, spare, column = room[: blocks + 1], room[blocks + 1], room[blocks + 2]
        for k in range(n_bands):
            left, right = k * width, min(k * width + width, p)
            lines = lines_at(x, where, out, column_major, left)
            traversal = traversal_of(lines, right - left)
            _fill_band(prepare, fields[:, first + left : first + right], found[:, left:right], c)
            if traversal.joined and not column_major:
                _repeat(c, p, traversal.width)
            if _any_ordinary(found[LOW, left:right], found[HIGH, left:right]):
                _along_lines(transform, lines, traversal, c, spare, column, packed, found[EXTREME, left:right])
            else:
                found[EXTREME, left:right] = 1.0
        release(room)

    along_lines.__name__ = along_lines.__qualname__ = name  # the name of its file
    return entry((column._replace(writable=False), COUNTS, ROWS, ROWS, column, BOOLEAN, column))(along_lines)


#: The entry for a family and a direction.
APPLY = {
    key: _entry_of(COLUMN, f"{each.name}_lines", in_turn(each.prepare), each.block, each.n_constants)
    for key, each in TRANSFORMS.items()
}

#: The entry of float32 for a family and a direction; for raw transforms, fields are `raw_fields`.
APPLY_SINGLE = {
    (family, direction): each
    for family, rows in ((BOX_COX, single.BOXCOX_ROWS), (YEO_JOHNSON, single.YEOJOHNSON_ROWS))
    for row, directions in zip(rows, _DIRECTIONS, strict=True)
    for each in [_entry_of(COLUMN32, *row)]
    for direction in directions
}
