"""Transform a matrix in place along its lines (rows or columns), without copying columns.

Each entry computes the constants of its columns, transforms every value, and reports which columns have values that are
not ordinary, that is, need range checks (`kernels.transforms.branch`). Images of ordinary float64 values have the same
bits as with the entries of `kernels.transforms.gather`, and images of ordinary float32 values those of
`kernels.transforms.single`. Images of other values are arbitrary.

The entries of `APPLY` have the following arguments:

x
    The memory of the matrix. Line k begins at ``x[begin + k stride]``, and its values are `within` apart; both may be
    negative. Values that are not adjacent are packed, a block at a time.
where
    A `Placement` as an array: begin, stride, within and so on.
fields
    The result of `select_fields`. Column j of the matrix has the parameters fields[:, first + j].
bounds
    An array with a column for each column of the matrix. The rows LOW and HIGH receive the bounds of ordinary values;
    if bounds[LOW, j] > bounds[HIGH, j], no value of column j is ordinary. bounds[EXTREME, j] becomes positive if a
    value of column j is not ordinary. Columns are processed in bands of up to BAND columns. If no column of a band has
    ordinary values, no images are written for the band.
out
    The memory of the images; may be x. Line k begins at ``out[to + k out_stride]``, and is contiguous. Up to `times`
    adjacent rows are joined (`rows_joined`).
column_major
    True: a line has the `height` values of one column. False: a line has one value of each column, and there are
    `height` lines.
packed
    Scratch for BLOCK values.

Inverse transforms may restore the smallest and the largest value of the fitted data exactly. Then `bounds` also has the
rows from BEYOND on, which the caller fills (BEYOND with 0). Values outside INNER_LOW and INNER_HIGH are examined one by
one: those equal to Z_MIN or Z_MAX become WATCHED_MIN or WATCHED_MAX, and bounds[BEYOND, j] becomes positive if a value
is outside SAFE_LOW and SAFE_HIGH. This costs nothing for other values, since inner bounds are tested together with the
bounds of ordinary values.

The entries of `APPLY_SINGLE` do the same for float32.
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

#: Index of the row of `bounds` that marks columns with values that need range checks; LOW and HIGH precede it.
EXTREME = 2
#: Number of rows of `bounds`, if the extremes of the fitted data are not restored.
N_BOUNDS = 3
#: Indices of further rows of `bounds`, if the extremes are restored: marks of columns with values outside the safe
#: bounds, and `N_WATCHED` rows of bounds and values.
BEYOND, INNER_LOW, INNER_HIGH, SAFE_LOW, SAFE_HIGH, Z_MIN, Z_MAX, WATCHED_MIN, WATCHED_MAX = range(3, 12)
#: Number of rows after BEYOND.
N_WATCHED = 8
#: Number of values that are tested at a time for values outside inner bounds; few such parts of a block have any.
_SCANNED = 32
#: Transforms a block x of values that need no range checks, with constants c: (x, c, out, spare).
_Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]


def select_fields(results: FloatArray) -> FloatArray:
    """Return the parameters from which constants are computed: rows F_LMBDA, F_REF, ..., and a column for each fit.

    Columns that are not transformed, or that are rescaled first, get NaN, so that all their values are treated one by
    one. The selection is less than a third of the results; reading all of them would dominate transforms of short
    columns.
    """
    passes = (results[:, CENTER] != 0.0) | (results[:, DIVISOR] != 1.0)
    for status in UNFITTED:
        passes |= results[:, STATUS] == status
    fields = results.T[[*FIT_FIELDS]]
    fields[:, passes] = np.nan
    return fields


def raw_fields(fields: FloatArray, family: IntArray) -> FloatArray:
    """Return the fields to pass to `APPLY_SINGLE` for transforms that do not standardise.

    The result has the lambdas of `fields`, the slope 1, the intercept 0, and the reference 1 for Box-Cox and 0 for
    Yeo-Johnson. `family`, (p,), holds the code of each column's family.
    """
    raw = np.zeros_like(fields)
    raw[F_LMBDA], raw[F_REF], raw[F_SLOPE] = fields[F_LMBDA], family == BOX_COX, 1.0
    return raw


@inlined
def _fill_band(
    prepare: PrepareAll, fields: FloatArray, first: int, bounds: FloatArray, left: int, right: int, c: FloatArray
) -> int:
    """Compute the constants of a band of columns; return how many of them have values that need no range checks.

    Parameters
    ----------
    prepare : kernel
        Computes constants from parameters.
    fields : (N_FIELDS, p)
        The parameters of all fits.
    first : int
        Column of `fields` that belongs to the first column of the matrix.
    bounds : (N_BOUNDS or more, p)
        Receives, in the rows LOW and HIGH, bounds between which values need no range checks.
    left : int
        Index of the first column of the band.
    right : int
        One more than the index of the last column of the band.
    c : (n_blocks, n_constants, WIDTH)
        Receives the constants.
    """
    first, low, high = first + left, bounds[LOW][left:right], bounds[HIGH][left:right]
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
        if bounds.shape[0] > N_BOUNDS:
            for j in range(n):
                inner_low, inner_high = bounds[INNER_LOW, left + start + j], bounds[INNER_HIGH, left + start + j]
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
    bounds: FloatArray,
    left: int,
    right: int,
) -> None:
    """Transform all lines of a band of columns, block by block, and mark columns with values that need range checks.

    Parameters
    ----------
    transform : kernel
        Transforms a block, given its constants.
    lines : Lines
        The lines, and their division into blocks.
    column_major : bool
        Whether lines are columns.
    height : int
        Number of rows.
    room : (n_blocks + 3, n_constants, WIDTH)
        The constants of the columns; the last three elements are scratch for a block.
    packed : (BLOCK,)
        Scratch for blocks whose values are not contiguous.
    bounds : (N_BOUNDS or more, p)
        Bounds between which values need no range checks; receives marks in the row EXTREME.
    left : int
        Index of the first column of the band.
    right : int
        One more than the index of the last column of the band.
    """
    column, spare, restored, out, extreme = room[-1], room[-2], room[-3], lines.out, bounds[EXTREME][left:right]
    total, is_watched = height * extreme.size, bounds.shape[0] > N_BOUNDS
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
                    n_restored = _note_watched(block, constants, first, each, bounds, left, right, restored)
                else:
                    _note_extreme(block, constants, first, height if column_major else 1, extreme)
            to = line * lines.out_step + place
            transform(block, constants, out[to : to + n], spare)
            for i in range(n_restored):
                out[to + int(restored[0, i])] = restored[1, i]


@inlined
def _repeat(c: FloatArray, p: int, width: int) -> None:
    """Repeat the constants of p columns until there are constants for `width` values."""
    for j in range(p, width):
        to, of = j, j - p
        for k in range(c.shape[1]):
            c[to // BLOCK, k, to % BLOCK] = c[of // BLOCK, k, of % BLOCK]


@inlined
def _any_extreme(x: FloatArray, c: FloatArray) -> bool:
    """Return whether any value of a block is outside its bounds, which are in the rows LOW and HIGH of `c`."""
    return _count_outside(x, c[LOW], c[HIGH]) > 0


@inlined
def _count_outside(x: FloatArray, low: FloatArray, high: FloatArray) -> int:
    """Return the number of elements of x that are outside [low, high], element by element; ignore NaN."""
    n = 0
    for j in range(x.size):
        n += (x[j] < low[j]) | (x[j] > high[j])
    return n


@kernel
def _note_extreme(x: FloatArray, c: FloatArray, first: int, height: int, extreme: FloatArray) -> None:
    """Mark the columns that have values outside their bounds in a block.

    Value i of the block belongs to column ``(first + i)//height``, modulo the number of columns since a line may join
    several rows.

    Parameters
    ----------
    x : (n,)
        The block.
    c : (n_constants, WIDTH)
        The constants of each value, with the bounds in the rows LOW and HIGH.
    first : int
        Position of the first value within its line.
    height : int
        Number of consecutive values of one column.
    extreme : (p,)
        Set to 1 for columns with values outside their bounds.
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
    bounds: FloatArray,
    left: int,
    right: int,
    restored: FloatArray,
) -> int:
    """Mark columns with values outside their bounds, and list values that are transformed extremes of the fitted data.

    Columns with values that need range checks are marked in the row EXTREME of `bounds`, and columns with values
    outside the safe bounds in the row BEYOND.

    Parameters
    ----------
    x : (n,)
        The block.
    c : (n_constants, WIDTH)
        The constants of each value, with inner bounds in the rows LOW and HIGH.
    first : int
        Position of the first value within its line.
    height : int
        Number of consecutive values of one column.
    bounds : (N_BOUNDS + 1 + N_WATCHED, p)
        Bounds and marks of all columns; marks are set.
    left : int
        Index of the first column of the band.
    right : int
        One more than the index of the last column of the band.
    restored : (>= 3, WIDTH)
        Row 0 receives the indices of values in the block that equal Z_MIN or Z_MAX, row 1 the images to restore; row 2
        is scratch.

    Returns
    -------
    int
        The number of values to restore.
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
        if z < bounds[LOW, k] or z > bounds[HIGH, k]:
            bounds[EXTREME, k] = 1.0
        if z < bounds[SAFE_LOW, k] or z > bounds[SAFE_HIGH, k]:
            bounds[BEYOND, k] = 1.0
        if z == bounds[Z_MIN, k] or z == bounds[Z_MAX, k]:
            restored[0, n] = float(j)
            restored[1, n] = bounds[WATCHED_MIN, k] if z == bounds[Z_MIN, k] else bounds[WATCHED_MAX, k]
            n += 1
    return n


# --- entries ------------------------------------------------------------------------------------------

_Apply = Callable[[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, bool, FloatArray], None]
#: The directions that transform, and those that invert.
_DIRECTIONS = (FORWARD, FORWARD_STANDARDIZED), (INVERSE, INVERSE_STANDARDIZED)


def _make_entry(column: Any, name: str, prepare: PrepareAll, transform: _Transform, n_constants: int) -> _Apply:
    """Make an entry of `APPLY` or `APPLY_SINGLE`; the docstring of the module describes its arguments.

    Parameters
    ----------
    column : Array
        The type of the vectors of values and images.
    name : str
        The name of the entry.
    prepare : kernel
        Computes the constants of columns.
    transform : kernel
        Transforms a block, given its constants.
    n_constants : int
        Number of constants of a column.
    """

    def along_lines(
        x: FloatArray,
        where: IntArray,
        fields: FloatArray,
        bounds: FloatArray,
        out: FloatArray,
        column_major: bool,
        packed: FloatArray,
    ) -> None:
        # divide the columns into bands of about the same width, at most BAND; the constants of a band are computed at
        # once
        placement, p = read_placement(where), bounds.shape[1]
        n_bands = -(-p // BAND)
        width = -(-p // n_bands)
        if BLOCK < width < p:
            width = -(-width // BLOCK) * BLOCK
        room = allocated((-(-BAND // BLOCK) + 4, n_constants, WIDTH))  # n_constants exceeds the rows of scratch needed
        for k in range(n_bands):
            left, right = k * width, min(k * width + width, p)
            lines = column_lines(x, placement, out, column_major, left, right - left)
            if _fill_band(prepare, fields, placement.first, bounds, left, right, room) > 0:
                if lines.joined and not column_major:
                    _repeat(room, p, lines.width)
                _along_lines(transform, lines, column_major, placement.height, room, packed, bounds, left, right)
            else:
                bounds[EXTREME][left:right] = 1.0
        release(room)

    along_lines.__name__ = along_lines.__qualname__ = name  # the cache identifies code by this name
    return entry((column._replace(writable=False), COUNTS, ROWS, ROWS, column, BOOLEAN, column))(along_lines)


#: The entry for each family and direction.
APPLY = {
    key: _make_entry(COLUMN, f"{each.name}_lines", in_turn(each.prepare), each.block, each.n_constants)
    for key, each in TRANSFORMS.items()
}

#: The float32 entry for each family and direction; for raw transforms pass `raw_fields`.
APPLY_SINGLE = {
    (family, direction): each
    for family, rows in ((BOX_COX, single.BOXCOX_ROWS), (YEO_JOHNSON, single.YEOJOHNSON_ROWS))
    for row, directions in zip(rows, _DIRECTIONS, strict=True)
    for each in [_make_entry(COLUMN32, *row)]
    for direction in directions
}
