"""Transforms along contiguous lines of a matrix, its rows or its columns: nothing is gathered or scattered.

Each entry computes the constants of its columns, transforms every value and says which columns have values that are
not ordinary. Of ordinary ones, float64 gets the bits that the loops of `kernels.transforms.gather` give, and float32
those of `powerkern.kernels.transforms.single`.

The entries of `APPLY` take (x, where, fields, found, out, upright), with `where` of `shared_lines`, `fields` of
`fields_of`:

* the lines of x begin at ``begin + k stride``, and their values are `within` apart (both may be negative); values that
  are not side by side are packed, a block at a time;
* the lines of out begin `out_stride` apart, and are dense; an empty out: values are only looked at;
* `upright`: a line has the values of one column, `height` of them, and there is one for each of the `fields`; else it
  has one of each, in their order, and there are `height` lines;
* found[LOW : HIGH + 1, j]: the bounds between which values of column j are ordinary, the first above the second where
  none is; found[EXTREME, j] > 0 where a value is not.

Threads that call an entry with the same arguments share the work: ``where[NEXT]`` counts the parts that are taken. A
call returns after some `_CALL_VALUES`, for Ctrl-C to be prompt, and is to be repeated until ``where[DONE]`` is not 0.

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
    COUNTS,
    LANES,
    READ_COLUMN,
    READ_COLUMN32,
    ROWS,
    aligned,
    borrowed,
    entry,
    fetch_add,
    first_lanes,
    in_all_lanes,
    inlined,
    kernel,
    load,
    pack_eight,
    pack_every_other,
    prefetch,
    select,
    store,
    widest_vectors,
)
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import CENTER, DIVISOR, INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE, STATUS, UNFITTED
from powerkern.kernels.transforms import boxcox, single, yeojohnson
from powerkern.kernels.transforms.branch import (
    F_INTERCEPT,
    F_LMBDA,
    F_LOG_FACTOR,
    F_PASSES,
    F_REF,
    F_SLOPE,
    HIGH,
    LOW,
    N_FIELDS,
)
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.transforms.gather import FORWARD, FORWARD_STANDARDIZED, INVERSE, INVERSE_STANDARDIZED

#: The rows of what is found, after LOW and HIGH.
EXTREME = 2
N_FOUND = 3
#: Where the number of parts that are taken is in `where`, and what tells that none is left.
NEXT, DONE = 6, 7

#: Values of a line that are transformed together. Sixteen cache lines: as many as a core can have in flight.
ROW_BLOCK = 128
#: Columns of which constants are held at once: they stay in the second-level cache.
BAND = 1024
# Numbers from one constant of a block to the next: one stride for all, with room for `_spread`. A load waits for stores
# a little before it, give or take multiples of 4 KB; no two rows lie so.
_WIDTH = 192
#: Shorter rows, and shorter columns, are joined where no memory is between them: the last block of each would be too
#: short, and of columns constants would be copied as many times as there are values.
SHORTEST_ROW, SHORTEST_COLUMN = 512, 64
_LINE_BYTES = 64
# Values of a part at the end, so that threads end together; of one before, as constants may have to be made for it; and
# of a call.
_FINE_VALUES, _COARSE_VALUES, _CALL_VALUES = 32_768, 524_288, 524_288
# blocks of scratch space that transforms need
_N_SPARE = 3
# a multiple of all vectors' lengths
_WHOLE = 16

#: Adds to fields[:, :n], of the fits of n columns, what their constants are made of.
_Begin = Callable[[FloatArray, int], None]
#: Writes the constants of column j, of a fit in fields[:, j], into c[:, j].
_Prepare = Callable[[FloatArray, FloatArray, int], None]
#: Transforms a block x by constants c: (x, c, out, spare).
_Transform = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], None]
#: Whether the values of a column with this lambda are to be transformed apart, by another transform: see `_Apart`.
_IsDear = Callable[[float], bool]


def shared_lines(begin: int, stride: int, within: int, height: int, out_stride: int, n_threads: int = 1) -> IntArray:
    """The argument `where` of the entries, for so many threads."""
    return np.array([begin, stride, within, height, out_stride, n_threads, 0, 0], dtype=np.int64)


def fields_of(results: FloatArray) -> FloatArray:
    """What of the results of fits constants are made of, a row for each `F_LMBDA` to `F_PASSES`, a column for each fit.

    Less than a third of them: of short columns, results would be a good part of what a transform reads.
    """
    passes = np.isin(results[:, STATUS], UNFITTED) | (results[:, CENTER] != 0.0) | (results[:, DIVISOR] != 1.0)
    return np.array([*results.T[[LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR]], passes])


class _Lines(NamedTuple):
    """Where values are, and where their images go: see above."""

    x: FloatArray
    begin: int
    stride: int
    within: int
    height: int
    out: FloatArray
    out_stride: int
    upright: bool
    where: IntArray


@inlined
def _lines_at(x: FloatArray, where: IntArray, out: FloatArray, upright: bool) -> _Lines:
    return _Lines(x, where[0], where[1], where[2], where[3], out, where[4], upright, where)


@inlined
def _part_of(lines: _Lines, left: int, top: int, bottom: int) -> _Lines:
    """The columns from `left` on, in the rows from `top` to `bottom`."""
    stride, within, upright = lines.stride, lines.within, lines.upright
    begin = lines.begin + (left * stride + top * within if upright else top * stride + left * within)
    to = left * lines.out_stride + top if upright else top * lines.out_stride + left
    return _Lines(
        borrowed(lines.x),
        begin,
        stride,
        within,
        bottom - top,
        borrowed(lines.out)[to:],
        lines.out_stride,
        upright,
        borrowed(lines.where),
    )


class _Grid(NamedTuple):
    """Bands of `width` columns: the first `n_whole` in `coarse` parts of their rows, the others in `fine` ones."""

    width: int
    n_whole: int
    coarse: int
    fine: int
    n_parts: int


@inlined
def _grid_of(lines: _Lines, p: int) -> _Grid:
    """Bands of about the same width, whose constants are held at once; the last are for all threads to end together."""
    height, n_threads = max(1, lines.height), lines.where[5]
    most = min(BAND, max(1, _FINE_VALUES // height)) if lines.upright else BAND
    width = -(-p // -(-p // most))
    if ROW_BLOCK < width < p:
        width = -(-width // ROW_BLOCK) * ROW_BLOCK
    n_bands, values = -(-p // width), height * width
    coarse = max(1, (values + _COARSE_VALUES // 2) // _COARSE_VALUES)
    fine = max(1, (values + _FINE_VALUES // 2) // _FINE_VALUES)
    n_whole = max(0, n_bands - n_threads) if n_threads > 1 else n_bands
    return _Grid(width, n_whole, coarse, fine, n_whole * coarse + (n_bands - n_whole) * fine)


@inlined
def _part_at(grid: _Grid, part: int, height: int, times: int) -> tuple[int, int, int]:
    """The first column of a part, and the rows that it is between: as many `times` over."""
    beyond = part - grid.n_whole * grid.coarse
    pieces = grid.coarse if beyond < 0 else grid.fine
    band = part // pieces if beyond < 0 else grid.n_whole + beyond // pieces
    tall = -(-height // (pieces * times)) * times
    top = min(height, (part if beyond < 0 else beyond) % pieces * tall)
    return band * grid.width, top, min(height, top + tall)


@inlined
def _by_bands(
    begin: _Begin,
    prepare: _Prepare,
    transform: _Transform,
    is_dear: _IsDear,
    dear: _Transform,
    n_constants: int,
    lines: _Lines,
    fields: FloatArray,
    found: FloatArray,
    raw_ref: float,
) -> None:
    """Take parts until none is left, or enough are done: constants if its columns are others, then values.

    For `raw_ref` see `_fill`.
    """
    fields, found, where, p = borrowed(fields), borrowed(found), borrowed(lines.where), fields.shape[1]
    grid = _grid_of(lines, p)
    blocks = -(-BAND // ROW_BLOCK)
    room = aligned(np.empty((blocks + 4, n_constants, _WIDTH)))  # no transform has fewer constants than `spare` rows
    c, spare, column = room[: blocks + 1], room[blocks + 1], room[blocks + 2]
    some_dear = is_dear(0.0)  # so for any transform with dear columns; for others the compiler leaves all of it out
    apart = _room_apart(n_constants, some_dear)
    times = 1 if lines.upright else _rows_joined(p)
    n_dear, of, values = 0, -1, 0
    while values < _CALL_VALUES:
        k = fetch_add(where, NEXT, 1)
        if k >= grid.n_parts:
            where[DONE] = 1
            break
        left, top, bottom = _part_at(grid, k, lines.height, times)
        right = min(left + grid.width, p)
        part = _part_of(lines, left, top, bottom)
        course = _course_of(part, right - left)
        if left != of:
            of = left
            _fill_band(begin, prepare, fields[:, left:right], found[:, left:right], raw_ref, c)
            if course.joined and not part.upright:
                _repeat(c, p, course.width)
            if some_dear:
                n_dear = _find_dear(is_dear, fields[F_LMBDA, left:right], course, lines, c, apart)
        _along_lines(transform, dear, part, course, c, spare, column, found[EXTREME, left:right], apart, n_dear)
        values += max(1, bottom - top) * (right - left)


@inlined
def _fill_band(
    begin: _Begin, prepare: _Prepare, fields: FloatArray, found: FloatArray, raw_ref: float, c: FloatArray
) -> None:
    """The constants of a band, and the bounds of its ordinary values."""
    fields, found = borrowed(fields), borrowed(found)
    p = fields.shape[1]
    work = np.empty((single.N_WORK_FIELDS, ROW_BLOCK))
    for k in range(-(-p // ROW_BLOCK)):
        first = k * ROW_BLOCK
        last = min(first + ROW_BLOCK, p)
        _fill(begin, prepare, fields[:, first:last], raw_ref, work, c[k])
        for j in range(last - first):
            found[LOW, first + j] = c[k, LOW, j]
        for j in range(last - first):
            found[HIGH, first + j] = c[k, HIGH, j]


@inlined
def _all_alike(
    begin: _Begin,
    prepare: _Prepare,
    transform: _Transform,
    n_constants: int,
    lines: _Lines,
    fields: FloatArray,
    found: FloatArray,
    raw_ref: float,
) -> None:
    """`_by_bands` with one transform for all columns."""
    _by_bands(begin, prepare, transform, _never, _nothing, n_constants, lines, fields, found, raw_ref)


@inlined
def _never(lmbda: float) -> bool:
    """No column is dear."""
    return False


@inlined
def _nothing(x: FloatArray, c: FloatArray, out: FloatArray, spare: FloatArray) -> None:
    """Nothing to do."""


@inlined
def _fill(
    begin: _Begin, prepare: _Prepare, fields: FloatArray, raw_ref: float, work: FloatArray, c: FloatArray
) -> None:
    """The constants of up to ROW_BLOCK columns: standardised, or with the reference `raw_ref` where that is not NaN.

    Of columns that pass unchanged, or are to be rescaled first, no value is ordinary.
    """
    widest_vectors()
    n, raw, work = fields.shape[1], raw_ref == raw_ref, borrowed(work)
    for k in range(N_FIELDS):
        alike = raw and F_REF <= k <= F_LOG_FACTOR
        value = raw_ref if k == F_REF else (1.0 if k == F_SLOPE else 0.0)
        of, to = fields[k], work[k]
        for j in range(n):
            to[j] = value if alike else of[j]
    begin(work, n)
    for j in range(n):
        prepare(work, c, j)
    for j in range(n):
        c[LOW, j] = math.inf if work[F_PASSES, j] > 0.0 else c[LOW, j]
    for j in range(n):
        c[HIGH, j] = -math.inf if work[F_PASSES, j] > 0.0 else c[HIGH, j]


class _Apart(NamedTuple):
    """Values that wait until there are enough of them: they need another transform than those around them.

    One by one, they would take as long as a vector full of them.
    """

    #: where in a line its columns, which may be there more than once, have such values, and where these are in memory
    columns: IntArray
    offsets: IntArray
    #: the constants of these columns
    constants: FloatArray
    values: FloatArray
    #: the constants of each of the values
    lots: FloatArray
    #: where in `out` their images go
    places: IntArray
    spare: FloatArray


@inlined
def _room_apart(n_constants: int, needed: bool) -> _Apart:
    """Room for a line and what still waited before it, and a vector; none if it is not `needed`."""
    most = BAND + ROW_BLOCK + LANES if needed else 0
    whole, room = np.empty((3, most), np.int64), np.empty((2 * n_constants + _N_SPARE + 1, most))
    lots, spare = room[n_constants:], room[2 * n_constants :]
    return _Apart(whole[0], whole[1], room, spare[_N_SPARE], lots[:n_constants], whole[2], spare)


class _Course(NamedTuple):
    """How values are taken: `n_lines` of `width`, each of which is `times` lines of `length` of the matrix, joined."""

    joined: bool
    n_lines: int
    width: int
    length: int
    times: int
    #: how many are transformed together
    block: int
    #: whether they are looked at where they are; else they are packed
    dense: bool
    #: from values to those to be fetched beforehand, and how many of them are in a cache line
    ahead: int
    step: int


@inlined
def _along_lines(
    transform: _Transform,
    dear: _Transform,
    lines: _Lines,
    course: _Course,
    c: FloatArray,
    spare: FloatArray,
    column: FloatArray,
    extreme: FloatArray,
    apart: _Apart,
    n_dear: int,
) -> None:
    """`transform` every block of every line, fetching what comes after it.

    In `spare` is room for a block's transform and for its values, in `column` for constants of upright lines.
    """
    widest_vectors()
    out, upright, height, total = borrowed(lines.out), lines.upright, lines.height, lines.height * extreme.size
    packed = borrowed(spare[_N_SPARE].view(lines.x.dtype))
    waiting = at = 0
    for line in range(course.n_lines):
        stop = min(course.width, total - line * course.width)
        source, begin = line * course.times, 0  # of values that are packed
        for k in range(-(-stop // course.block)):
            place = k * course.block
            n = min(course.block, stop - place)
            if course.dense:
                block = _where_it_lies(lines, course, line, place, n)
            else:
                source, begin = _pack(lines, course, source, begin, packed[:n])
                block = packed[:n]
            if upright and course.joined:
                _spread(c, line * height + place, n, height, column)
            elif upright and k == 0:
                _spread_one(c, line, n, column)
            constants = borrowed(column) if upright else borrowed(c[k])
            number = (line * height if upright else 0) + place
            if _any_extreme(block, constants):
                _note_extreme(block, constants, number, height if upright else 1, extreme)
            if out.size > 0:
                to = line * (course.width if course.joined else lines.out_stride) + place
                if n_dear > 0 and upright:
                    waiting, at = _set_apart_of_columns(block, number, height, to, column, apart, n_dear, waiting, at)
                elif n_dear > 0 and k == 0:
                    waiting = _set_apart_of_line(lines, course, line, stop, to, apart, n_dear, waiting)
                transform(block, constants, out[to : to + n], spare)
                ends = place + n == stop
                enough = waiting >= (1 if ends and line + 1 == course.n_lines else ROW_BLOCK)
                if enough and (upright or ends):
                    waiting = _finish(dear, apart, waiting, out)


@inlined
def _where_it_lies(lines: _Lines, course: _Course, line: int, place: int, n: int) -> FloatArray:
    """A block of values that are side by side; those to come are fetched."""
    x = borrowed(lines.x)
    first = lines.begin + line * (course.width if course.joined else lines.stride) + place
    for j in range(0, n, _LINE_BYTES // x.itemsize):
        prefetch(x, (first + course.ahead + j,))
    return x[first : first + n]


@inlined
def _find_dear(
    is_dear: _IsDear, lmbdas: FloatArray, course: _Course, lines: _Lines, c: FloatArray, apart: _Apart
) -> int:
    """List the dear columns of a line; returns how many there are."""
    n = 0
    for k in range(1 if lines.upright else course.times):
        for j in range(lmbdas.size):
            if is_dear(lmbdas[j]):
                place = k * lmbdas.size + j
                apart.columns[n], apart.offsets[n] = place, k * lines.stride + j * lines.within
                for row in range(c.shape[1]):
                    apart.constants[row, n] = c[place // ROW_BLOCK, row, place % ROW_BLOCK]
                n += 1
    return n


@inlined
def _copy_lots(of: FloatArray, first: int, apart: _Apart, waiting: int, n: int) -> None:
    """Let the constants of n values wait with these; whole vectors are copied."""
    lots = borrowed(apart.lots)
    for k in range(0, n, LANES):
        for row in range(lots.shape[0]):
            store(lots, (row, waiting + k), load(of, (row, first + k)))


@inlined
def _set_apart_of_line(
    lines: _Lines, course: _Course, line: int, stop: int, to: int, apart: _Apart, n_dear: int, waiting: int
) -> int:
    """Let the values of dear columns in a line wait, of which there are `stop`; their images go to places from `to` on.

    Returns how many wait.
    """
    widest_vectors()
    x, columns, offsets, n = borrowed(lines.x), borrowed(apart.columns), borrowed(apart.offsets), n_dear
    while n > 0 and columns[n - 1] >= stop:
        n -= 1
    first = lines.begin + line * course.times * lines.stride
    values, places = borrowed(apart.values)[waiting : waiting + n], borrowed(apart.places)[waiting : waiting + n]
    for k in range(n):
        values[k] = x[np.uint64(first + offsets[k])]
    for k in range(n):
        places[k] = to + columns[k]
    _copy_lots(borrowed(apart.constants), 0, apart, waiting, n)
    return waiting + n


@inlined
def _set_apart_of_columns(
    x: FloatArray,
    first: int,
    height: int,
    to: int,
    column: FloatArray,
    apart: _Apart,
    n_dear: int,
    waiting: int,
    k: int,
) -> tuple[int, int]:
    """The same where columns lie one after the other; the block begins with value number `first` of them all.

    Dear columns are looked for from the k-th on. Returns how many values wait, and which column is next.
    """
    while k < n_dear and apart.columns[k] * height < first + x.size:
        begin = apart.columns[k] * height - first
        here = max(begin, 0)
        n = min(begin + height, x.size) - here
        for j in range(n):
            apart.values[waiting + j], apart.places[waiting + j] = x[here + j], to + here + j
        _copy_lots(column, here, apart, waiting, n)
        waiting += max(n, 0)
        if begin + height > x.size:
            break
        k += 1
    return waiting, k


@inlined
def _rows_joined(p: int) -> int:
    """As many as fill whole vectors, unless that is more than a band: values beyond would be computed one by one.

    About two blocks of values, if that can be: constants of more would leave the first-level cache.
    """
    step = LANES
    while step > 1 and p * step // 2 % LANES == 0:
        step //= 2
    return max(1, 2 * ROW_BLOCK // (p * step)) * step if p * step <= BAND else max(1, SHORTEST_ROW // p)


@inlined
def _course_of(lines: _Lines, p: int) -> _Course:
    """Short lines are joined where their images are."""
    upright = lines.upright
    length, count = (lines.height, p) if upright else (p, lines.height)
    joined = length < (SHORTEST_COLUMN if upright else SHORTEST_ROW)
    joined = joined and (lines.out.size == 0 or lines.out_stride == length)
    times = (count if upright else _rows_joined(length)) if joined else 1
    dense = lines.within == 1 and (lines.stride == length or not joined)
    if dense:
        ahead = ROW_BLOCK if upright else (length * times if joined else lines.stride)
    elif upright:
        ahead = max(1, ROW_BLOCK // length) * lines.stride if joined else ROW_BLOCK * lines.within
    else:
        ahead = times * lines.stride
    step = max(1, _LINE_BYTES // (lines.x.itemsize * max(1, abs(lines.within))))
    # of a column by itself about even blocks: as little as can be is to be made of its constants
    blocks = max(1, -(-length // ROW_BLOCK))
    block = -(-length // (blocks * LANES)) * LANES if upright and not joined else ROW_BLOCK
    return _Course(joined, -(-count // times), length * times, length, times, max(1, block), dense, ahead, step)


@inlined
def _pack(lines: _Lines, course: _Course, number: int, begin: int, packed: FloatArray) -> tuple[int, int]:
    """Values one after the other, from one of a line of the matrix on; returns where those that follow begin."""
    widest_vectors()
    x, packed, within, place = borrowed(lines.x), borrowed(packed), lines.within, 0
    while place < packed.size:
        n = min(course.length - begin, packed.size - place)
        first, j = lines.begin + number * lines.stride + begin * within, 0
        while j < n:  # a range would divide, for the number of steps
            prefetch(x, (first + course.ahead + j * within,))
            j += course.step
        _pack_part(x, first, within, packed[place : place + n])
        place, begin = place + n, begin + n
        if begin == course.length:
            number, begin = number + 1, 0
    return number, begin


@inlined
def _pack_part(x: FloatArray, first: int, within: int, packed: FloatArray) -> None:
    widest_vectors()
    whole = packed.size - packed.size % LANES
    if within == 2:
        for j in range(0, whole, LANES):
            pack_every_other(x, first + 2 * j, packed, j)
    else:
        for j in range(0, whole, LANES):
            pack_eight(x, first + j * within, within, packed, j)
    for j in range(whole, packed.size):
        packed[j] = x[np.uint64(first + j * within)]  # an index without a sign is not checked for one


@inlined
def _repeat(c: FloatArray, p: int, width: int) -> None:
    """The constants of p columns for a line of so many values, in which they follow one another again and again."""
    for j in range(p, width):
        to, of = j, j - p
        for k in range(c.shape[1]):
            c[to // ROW_BLOCK, k, to % ROW_BLOCK] = c[of // ROW_BLOCK, k, of % ROW_BLOCK]


@inlined
def _spread_one(c: FloatArray, j: int, n: int, column: FloatArray) -> None:
    """The constants of n values of column j; whole vectors are stored."""
    for row in range(c.shape[1]):
        constant = in_all_lanes(c[j // ROW_BLOCK, row, j % ROW_BLOCK])
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
            store(column, (k, i), in_all_lanes(c[j // ROW_BLOCK, k, j % ROW_BLOCK]))
        while end < i + LANES:  # there the next column begins
            j, before = j + 1, first_lanes(end - i)
            for k in range(c.shape[1]):
                next_one = in_all_lanes(c[j // ROW_BLOCK, k, j % ROW_BLOCK])
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


@inlined
def _finish(dear: _Transform, apart: _Apart, waiting: int, out: FloatArray) -> int:
    """Write the images of values that wait; returns how many still do."""
    widest_vectors()
    whole, lots, places = -(-waiting // _WHOLE) * _WHOLE, borrowed(apart.lots), borrowed(apart.places)
    values = borrowed(apart.values)[:whole]
    for j in range(waiting, whole):
        values[j] = values[j - 1]
        for row in range(lots.shape[0]):
            lots[row, j] = lots[row, j - 1]
    dear(values, lots, values, borrowed(apart.spare))
    for j in range(waiting):
        out[places[j]] = values[j]
    return 0


# --- float64 ------------------------------------------------------------------------------------------

_ENTRY = (READ_COLUMN, COUNTS, ROWS, ROWS, COLUMN, BOOLEAN)


@inlined
def _at_once(fields: FloatArray, n: int) -> None:
    """Constants are made of nothing else."""


@inlined
def _boxcox_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_constants(fields[F_LMBDA, j], False, c, j)


@entry(_ENTRY)
def _boxcox(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(_at_once, _boxcox_constants, boxcox.boxcox_block, boxcox.CONSTANTS, lines, fields, found, math.nan)


@inlined
def _inv_boxcox_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_constants(fields[F_LMBDA, j], True, c, j)


@entry(_ENTRY)
def _inv_boxcox(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _by_bands(
        _at_once,
        _inv_boxcox_constants,
        boxcox.inv_boxcox_block,
        boxcox.is_dear,
        boxcox.inv_boxcox_dear,
        boxcox.CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _boxcox_standardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_standardized_constants(
        fields[F_LMBDA, j], fields[F_REF, j], fields[F_SLOPE, j], fields[F_INTERCEPT, j], c, j
    )


@entry(_ENTRY)
def _boxcox_standardized(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(
        _at_once,
        _boxcox_standardized_constants,
        boxcox.boxcox_standardized_block,
        boxcox.STANDARDIZED_CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _boxcox_unstandardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    boxcox.boxcox_unstandardized_constants(
        fields[F_LMBDA, j], fields[F_REF, j], fields[F_SLOPE, j], fields[F_INTERCEPT, j], c, j
    )


@entry(_ENTRY)
def _boxcox_unstandardized(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(
        _at_once,
        _boxcox_unstandardized_constants,
        boxcox.boxcox_unstandardized_block,
        boxcox.UNSTANDARDIZED_CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_constants(fields[F_LMBDA, j], False, c, j)


@entry(_ENTRY)
def _yeojohnson(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(
        _at_once,
        _yeojohnson_constants,
        yeojohnson.yeojohnson_block,
        yeojohnson.CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _inv_yeojohnson_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_constants(fields[F_LMBDA, j], True, c, j)


@entry(_ENTRY)
def _inv_yeojohnson(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _by_bands(
        _at_once,
        _inv_yeojohnson_constants,
        yeojohnson.inv_yeojohnson_block,
        yeojohnson.is_dear,
        yeojohnson.inv_yeojohnson_dear,
        yeojohnson.CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_standardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_standardized_constants(
        fields[F_LMBDA, j], fields[F_REF, j], fields[F_SLOPE, j], fields[F_INTERCEPT, j], fields[F_LOG_FACTOR, j], c, j
    )


@entry(_ENTRY)
def _yeojohnson_standardized(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(
        _at_once,
        _yeojohnson_standardized_constants,
        yeojohnson.yeojohnson_standardized_block,
        yeojohnson.STANDARDIZED_CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


@inlined
def _yeojohnson_unstandardized_constants(fields: FloatArray, c: FloatArray, j: int) -> None:
    yeojohnson.yeojohnson_unstandardized_constants(
        fields[F_LMBDA, j], fields[F_REF, j], fields[F_SLOPE, j], fields[F_INTERCEPT, j], fields[F_LOG_FACTOR, j], c, j
    )


@entry(_ENTRY)
def _yeojohnson_unstandardized(
    x: FloatArray, where: IntArray, fields: FloatArray, found: FloatArray, out: FloatArray, upright: bool
) -> None:
    lines = _lines_at(x, where, out, upright)
    _all_alike(
        _at_once,
        _yeojohnson_unstandardized_constants,
        yeojohnson.yeojohnson_unstandardized_block,
        yeojohnson.UNSTANDARDIZED_CONSTANTS,
        lines,
        fields,
        found,
        math.nan,
    )


_Apply = Callable[[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, bool], None]

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

_ENTRY_SINGLE = (READ_COLUMN32, COUNTS, ROWS, ROWS, COLUMN32, BOOLEAN, BOOLEAN)


@entry(_ENTRY_SINGLE)
def _boxcox_single(
    x: FloatArray,
    where: IntArray,
    fields: FloatArray,
    found: FloatArray,
    out: FloatArray,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _lines_at(x, where, out, upright), math.nan if standardized else 1.0
    _all_alike(
        single.begin_boxcox,
        single.boxcox_constants,
        single.boxcox_block,
        single.BOXCOX_CONSTANTS,
        lines,
        fields,
        found,
        raw_ref,
    )


@entry(_ENTRY_SINGLE)
def _inv_boxcox_single(
    x: FloatArray,
    where: IntArray,
    fields: FloatArray,
    found: FloatArray,
    out: FloatArray,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _lines_at(x, where, out, upright), math.nan if standardized else 1.0
    _all_alike(
        single.begin_boxcox,
        single.inv_boxcox_constants,
        single.inv_boxcox_block,
        single.INV_BOXCOX_CONSTANTS,
        lines,
        fields,
        found,
        raw_ref,
    )


@entry(_ENTRY_SINGLE)
def _yeojohnson_single(
    x: FloatArray,
    where: IntArray,
    fields: FloatArray,
    found: FloatArray,
    out: FloatArray,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _lines_at(x, where, out, upright), math.nan if standardized else 0.0
    _all_alike(
        single.begin_yeojohnson,
        single.yeojohnson_constants,
        single.yeojohnson_block,
        single.YEOJOHNSON_CONSTANTS,
        lines,
        fields,
        found,
        raw_ref,
    )


@entry(_ENTRY_SINGLE)
def _inv_yeojohnson_single(
    x: FloatArray,
    where: IntArray,
    fields: FloatArray,
    found: FloatArray,
    out: FloatArray,
    upright: bool,
    standardized: bool,
) -> None:
    lines, raw_ref = _lines_at(x, where, out, upright), math.nan if standardized else 0.0
    _all_alike(
        single.begin_yeojohnson,
        single.inv_yeojohnson_constants,
        single.inv_yeojohnson_block,
        single.INV_YEOJOHNSON_CONSTANTS,
        lines,
        fields,
        found,
        raw_ref,
    )


_ApplySingle = Callable[[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, bool, bool], None]

#: The entry for a family and a direction without standardising.
APPLY_SINGLE: dict[tuple[int, int], _ApplySingle] = {
    (BOX_COX, FORWARD): _boxcox_single,
    (BOX_COX, INVERSE): _inv_boxcox_single,
    (YEO_JOHNSON, FORWARD): _yeojohnson_single,
    (YEO_JOHNSON, INVERSE): _inv_yeojohnson_single,
}
