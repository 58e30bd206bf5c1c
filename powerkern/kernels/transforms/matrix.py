"""Transforms along contiguous lines of a matrix, its rows or its columns: nothing is gathered or scattered.

Each entry computes the constants of its columns, transforms every value and says which columns have values that are
not ordinary. Of ordinary ones, float64 gets the bits that the loops of `kernels.transforms.gather` give, and float32
the bits of `powerkern.kernels.transforms.single`.

The entries of `APPLY` take (x, where, fields, found, out, column_major, packed); `where` is a `Placement` as an array,
`fields` are of `select_fields`, and `packed` is scratch space for BLOCK values:

* the lines of x begin at ``begin + k stride``, and their values are `within` apart (both may be negative); values that
  are not side by side are packed, a block at a time;
* the lines of out begin at ``to + k out_stride``, and are dense; out may be x. Rows of out without memory between them
  are joined, `times` of them (`rows_joined`);
* `column_major`: a line has the values of one column, `height` of them, and there is one for each column;
  else it has one of each, in their order, and there are `height` lines;
* the columns are fields[:, first + j], as many as `found` has;
* found[LOW : HIGH + 1, j]: the bounds between which values of column j are ordinary, the first above the second where
  none is; found[EXTREME, j] > 0 where a value is not. Where no column of a band has ordinary values, nothing is
  written to out;
* found may have BEYOND and the rows after it, for inverse transforms that restore the ends of the fitted data exactly:
  values outside INNER_LOW and INNER_HIGH are looked at one by one. Those equal to Z_MIN or Z_MAX become X_MIN or X_MAX,
  and found[BEYOND, j] > 0 where one is outside SAFE_LOW and SAFE_HIGH. Other values cost nothing: the inner bounds
  are checked together with ordinary values.

The entries of `APPLY_SINGLE` do it for float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from powerkern._jit import (
    BOOLEAN,
    COLUMN,
    COLUMN32,
    COUNTS,
    ROWS,
    allocated,
    entry,
    inlined,
    kernel,
    release,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import CENTER, DIVISOR, STATUS, UNFITTED
from powerkern.kernels.transforms import single
from powerkern.kernels.transforms.branch import (
    BLOCK,
    F_LMBDA,
    F_REF,
    F_SLOPE,
    HIGH,
    LOW,
    N_FIELDS,
    PrepareAll,
    in_turn,
)
from powerkern.kernels.transforms.columns import FIT_FIELDS, TRANSFORMS, WIDTH, broadcast_constants
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
    column_lines,
    fetch_ahead,
    pack,
    read_placement,
)

#: The rows of `found`, after LOW and HIGH.
EXTREME = 2
#: Their number.
N_FOUND = 3
#: More rows of `found`, if ends are restored: marks, and bounds of `N_WATCHED` kinds.
BEYOND, INNER_LOW, INNER_HIGH, SAFE_LOW, SAFE_HIGH, Z_MIN, Z_MAX, WATCHED_MIN, WATCHED_MAX = range(3, 12)
#: Kinds of bounds.
N_WATCHED = 8
#: Values that are searched together for those outside inner bounds: few parts of a block have any.
_SCANNED = 32
#: Transforms a block x by constants c: (x, c, out, spare).
_Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]


def select_fields(results: FloatArray) -> FloatArray:
    """Select the parameters that column constants are computed from: rows as from `F_LMBDA`, one column for each fit.

    Columns that pass unchanged, or are rescaled first, get NaN, so that none of their values is ordinary. The selection
    is less than a third of the results: reading all of them would dominate transforms of short columns.
    """
    passes = (results[:, CENTER] != 0.0) | (results[:, DIVISOR] != 1.0)
    for status in UNFITTED:
        passes |= results[:, STATUS] == status
    fields = results.T[[*FIT_FIELDS]]
    fields[:, passes] = np.nan
    return fields


def raw_fields(fields: FloatArray, family: IntArray) -> FloatArray:
    """Return the fields of the same lambdas without standardising, for `APPLY_SINGLE`."""
    raw = np.zeros_like(fields)
    raw[F_LMBDA], raw[F_REF], raw[F_SLOPE] = fields[F_LMBDA], family == BOX_COX, 1.0
    return raw


@inlined
def _fill_band(
    prepare: PrepareAll, fields: FloatArray, first: int, found: FloatArray, left: int, right: int, c: FloatArray
) -> int:
    """Write the constants of a band, a block of columns at a time, and the bounds of its ordinary values.

    The first column is fields[:, first + left]. Returns how many columns have ordinary values.
    """
    first, low, high = first + left, found[LOW][left:right], found[HIGH][left:right]
    work, n_ordinary = allocated((N_FIELDS, BLOCK)), 0
    for k in range(-(-low.size // BLOCK)):
        start = k * BLOCK
        n = min(BLOCK, low.size - start)
        for row in range(N_FIELDS):
            of, to = fields[row][first + start : first + start + n], work[row]
            for j in range(n):
                to[j] = of[j]
        prepare(work, c[k], n)
        for j in range(n):
            low[start + j], high[start + j] = c[k, LOW, j], c[k, HIGH, j]
            n_ordinary += c[k, LOW, j] <= c[k, HIGH, j]
        if found.shape[0] > N_FOUND:
            for j in range(n):
                inner_low, inner_high = found[INNER_LOW, left + start + j], found[INNER_HIGH, left + start + j]
                c[k, LOW, j] = inner_low if inner_low > c[k, LOW, j] else c[k, LOW, j]
                c[k, HIGH, j] = inner_high if inner_high < c[k, HIGH, j] else c[k, HIGH, j]
    release(work)
    return n_ordinary


@inlined
def _along_lines(
    transform: _Transform,
    lines: Lines,
    column_major: bool,
    height: int,
    room: FloatArray,
    packed: FloatArray,
    found: FloatArray,
    left: int,
    right: int,
) -> None:
    """Transform every block of every line of the columns from `left` to `right`.

    `room` holds the constants, and scratch for a block.
    """
    column, spare, restored, out, extreme = room[-1], room[-2], room[-3], lines.out, found[EXTREME][left:right]
    total, is_watched = height * extreme.size, found.shape[0] > N_FOUND
    for line in range(lines.n_lines):
        stop = min(lines.width, total - line * lines.width)
        number, begin = line * lines.times, 0
        for k in range(-(-stop // lines.block)):
            place = k * lines.block
            n = min(lines.block, stop - place)
            if lines.dense:
                at = lines.begin + line * lines.stride + place
                block = lines.x[at : at + n]
                fetch_ahead(lines, at, n)
            else:
                block = packed[:n]
                number, begin = pack(lines, number, begin, block)
            first = line * height + place if column_major else place
            if column_major and (lines.joined or k == 0):
                broadcast_constants(room, first, n, height, column)
            constants = column if column_major else room[k]
            n_restored = 0
            if _any_extreme(block, constants):
                if is_watched:
                    each = height if column_major else 1
                    n_restored = _note_watched(block, constants, first, each, found, left, right, restored)
                else:
                    _note_extreme(block, constants, first, height if column_major else 1, extreme)
            to = line * lines.out_step + place
            transform(block, constants, out[to : to + n], spare)
            for i in range(n_restored):
                out[to + int(restored[0, i])] = restored[1, i]


@inlined
def _repeat(c: FloatArray, p: int, width: int) -> None:
    """Write the constants of p columns, repeated for a line of values."""
    for j in range(p, width):
        to, of = j, j - p
        for k in range(c.shape[1]):
            c[to // BLOCK, k, to % BLOCK] = c[of // BLOCK, k, of % BLOCK]


@inlined
def _any_extreme(x: FloatArray, c: FloatArray) -> bool:
    """Return whether a value of a block is not ordinary."""
    return _count_outside(x, c[LOW], c[HIGH]) > 0


@inlined
def _count_outside(x: FloatArray, low: FloatArray, high: FloatArray) -> int:
    """Return the number of values outside their bounds; NaN does not count."""
    n = 0
    for j in range(x.size):
        n += (x[j] < low[j]) | (x[j] > high[j])
    return n


@kernel
def _note_extreme(x: FloatArray, c: FloatArray, first: int, height: int, extreme: FloatArray) -> None:
    """Mark the columns that have values in the block that are not ordinary.

    Value i belongs to column ``(first + i)//height``: `first` is the position of the first value in the line, `height`
    the number of consecutive values of one column. A line of joined rows has every column more than once.
    """
    for j in range(x.size):
        if x[j] < c[LOW, j] or x[j] > c[HIGH, j]:
            extreme[(first + j) // height % extreme.size] = 1.0


@kernel
def _note_watched(
    x: FloatArray,
    c: FloatArray,
    first: int,
    height: int,
    found: FloatArray,
    left: int,
    right: int,
    restored: FloatArray,
) -> int:
    """Mark columns as `_note_extreme` does, and values to be replaced by the ends of the data.

    These are values beyond the safe bounds, and values whose images are the ends of the data.

    Parameters
    ----------
    x : (n,) ndarray
        The block.
    c : ndarray
        Its constants, with the inner bounds.
    first, height : int
        As in `_note_extreme`.
    found : ndarray
        Bounds and marks of all columns.
    left, right : int
        The columns of the band.
    restored : ndarray
        Receives the positions of ends in the block, restored[0], and their images, restored[1]; scratch space.

    Returns
    -------
    int
        The number of ends.
    """
    outside, low, high, n_outside, n = restored[2], c[LOW], c[HIGH], 0, 0
    for start in range(0, x.size, _SCANNED):
        part = x[start : start + _SCANNED]
        if _count_outside(part, low[start : start + _SCANNED], high[start : start + _SCANNED]) > 0:
            for j in range(start, start + part.size):  # without branches
                outside[n_outside] = float(j)
                n_outside += (x[j] < low[j]) | (x[j] > high[j])
    for i in range(n_outside):
        j = int(outside[i])
        z, k = x[j], left + (first + j) // height % (right - left)
        if z < found[LOW, k] or z > found[HIGH, k]:
            found[EXTREME, k] = 1.0
        if z < found[SAFE_LOW, k] or z > found[SAFE_HIGH, k]:
            found[BEYOND, k] = 1.0
        if z == found[Z_MIN, k] or z == found[Z_MAX, k]:
            restored[0, n] = float(j)
            restored[1, n] = found[WATCHED_MIN, k] if z == found[Z_MIN, k] else found[WATCHED_MAX, k]
            n += 1
    return n


# --- entries ------------------------------------------------------------------------------------------

_Apply = Callable[[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, bool, FloatArray], None]
#: The directions of a transform, and of its inverse.
_DIRECTIONS = (FORWARD, FORWARD_STANDARDIZED), (INVERSE, INVERSE_STANDARDIZED)


def _make_entry(column: Any, name: str, prepare: PrepareAll, transform: _Transform, n_constants: int) -> _Apply:
    """Return the entry of a transform of vectors of this type, read as the first argument and written as the fifth."""

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
        placement, p = read_placement(where), found.shape[1]
        n_bands = -(-p // BAND)
        width = -(-p // n_bands)
        if BLOCK < width < p:
            width = -(-width // BLOCK) * BLOCK
        room = allocated((-(-BAND // BLOCK) + 4, n_constants, WIDTH))  # a block's transform takes fewer rows
        for k in range(n_bands):
            left, right = k * width, min(k * width + width, p)
            lines = column_lines(x, placement, out, column_major, left, right - left)
            if _fill_band(prepare, fields, placement.first, found, left, right, room) > 0:
                if lines.joined and not column_major:
                    _repeat(room, p, lines.width)
                _along_lines(transform, lines, column_major, placement.height, room, packed, found, left, right)
            else:
                found[EXTREME][left:right] = 1.0
        release(room)

    along_lines.__name__ = along_lines.__qualname__ = name  # the name of its file
    return entry((column._replace(writable=False), COUNTS, ROWS, ROWS, column, BOOLEAN, column))(along_lines)


#: The entry for a family and a direction.
APPLY = {
    key: _make_entry(COLUMN, f"{each.name}_lines", in_turn(each.prepare), each.block, each.n_constants)
    for key, each in TRANSFORMS.items()
}

#: The entry of float32 for a family and a direction; for raw transforms, fields are `raw_fields`.
APPLY_SINGLE = {
    (family, direction): each
    for family, rows in ((BOX_COX, single.BOXCOX_ROWS), (YEO_JOHNSON, single.YEOJOHNSON_ROWS))
    for row, directions in zip(rows, _DIRECTIONS, strict=True)
    for each in [_make_entry(COLUMN32, *row)]
    for direction in directions
}
