"""Transforms of whole matrices: by column, through blocks that stay in the cache, or along the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import LONGEST_ROW, SHORTEST_ROW, cache_blocks, cache_shape, rows_at_once, slices
from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import Scratch, gathered, is_native, scatter
from powerkern._engine.threads import work_off
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels import columnwise, rowwise

#: A matrix is transformed along its rows where at least this fraction of its columns has ordinary values: the others
#: are gathered.
_ORDINARY = 0.9

#: Given a column's number, its values and their images, repair the latter; returns how many cannot be repaired.
Repair = Callable[[int, NDArray[Any], FloatArray], int]


def transform_matrix(
    values: NDArray[Any],
    out: NDArray[Any] | None,
    family: IntArray,
    direction: int,
    results: FloatArray,
    n_threads: int,
    repair: Repair | None = None,
) -> IntArray:
    """Transform every column in a `direction` (see `columnwise`); returns how many values of each have no image.

    `out` may be `values`, or None to count only. `family` has one entry per column.
    """
    n, p = values.shape
    image = values if out is None else out
    bands = [] if out is None else bands_of(values, out, family, direction, results)
    in_place = np.may_share_memory(values, image)
    height, width = (rows_at_once(values.shape, n_threads), p) if bands else cache_shape(values)
    failures = np.zeros((p, -(-n // height)), dtype=np.int64)
    scratch = Scratch()
    largest = np.finfo(np.float64 if out is None else out.dtype).max

    def transformed(source: NDArray[Any], numbers: NDArray[np.intp], top: int) -> FloatArray:
        """The columns with these numbers, from row `top` on, as the rows of a block."""
        block = gathered(source, scratch)
        counts = np.zeros(numbers.size, dtype=np.int64)
        for code, run in _runs(family[numbers]):
            columnwise.APPLY[code, direction](block[run], results[numbers[run]], counts[run])
        if repair is not None:
            if largest < np.finfo(np.float64).max:  # infinite once rounded to float32
                counts += np.count_nonzero((abs(block) > largest) & np.isfinite(block), axis=1)
                block[abs(block) > largest] = np.inf
            for j in np.flatnonzero(counts):
                counts[j] = repair(int(numbers[j]), source[:, j], block[j])
        failures[numbers, top // height] = counts
        return block

    def by_column(rows: slice, columns: slice) -> None:
        for group in slices(columns, width):
            block = transformed(values[rows, group], np.arange(group.start, group.stop), rows.start)
            if out is not None:
                scatter(block, out[rows, group])

    def along_rows(rows: slice, _: slice) -> None:
        for band in bands:
            source, target = values[rows], image[rows]
            # in place, extreme values must be found before they are overwritten
            extreme = band.extreme_columns(source) if in_place else band.apply(source, target)
            block = transformed(source[:, extreme], extreme, rows.start) if extreme.size else None
            if in_place:
                band.apply(source, target)
            if block is not None:
                target[:, extreme] = block.T

    job = along_rows if bands else by_column
    work_off(job, cache_blocks(values.shape, height, width, n_threads), values.shape, n_threads)
    return np.asarray(failures.sum(axis=1))


class Band(NamedTuple):
    """Columns of a C-contiguous matrix, from `left` on, that are transformed along its rows by the entry `transform`.

    `stride` is the length of a row, of several where rows are short; there are constants for as many columns.
    """

    transform: Callable[..., None]
    constants: FloatArray
    stride: int
    left: int
    width: int
    times: int

    def apply(self, rows: FloatArray, out: FloatArray) -> NDArray[np.intp]:
        """Transform the columns in some rows; returns the numbers of those with a value that is not ordinary."""
        return self._numbers(lambda *where: self.transform(*where, out.reshape(-1)), rows)

    def extreme_columns(self, rows: FloatArray) -> NDArray[np.intp]:
        """The numbers of those columns of the matrix that have a value in the `rows` which is not ordinary."""
        return self._numbers(rowwise.find_extreme, rows)

    def _numbers(self, find: Callable[..., None], rows: FloatArray) -> NDArray[np.intp]:
        found = np.zeros((self.times, self.width), dtype=np.int64)
        find(rows.reshape(-1), self.stride, self.left, self.constants, found.reshape(-1))
        return self.left + np.flatnonzero(found.any(axis=0))


def bands_of(
    values: NDArray[Any], out: NDArray[Any], family: IntArray, direction: int, results: FloatArray
) -> list[Band]:
    """Bands of columns to transform along the rows of both; none where columns are better gathered."""
    n, p = values.shape
    along = all(is_native(x) and x.flags.c_contiguous for x in (values, out))
    if min(n, p) == 1 or not along or (family != family[0]).any():
        return []
    times = min(n, -(-SHORTEST_ROW // p)) if p < SHORTEST_ROW else 1
    code, ordinary, bands = int(family[0]), 0, []
    for group in slices(slice(0, p), LONGEST_ROW):
        constants = rowwise.constants(code, direction, results[group])
        ordinary += int(np.count_nonzero(constants[rowwise.LOW] <= constants[rowwise.HIGH]))
        blocks = rowwise.in_blocks(np.tile(constants, (1, times)))
        width = group.stop - group.start
        bands.append(Band(rowwise.APPLY[code, direction], blocks, times * p, group.start, width, times))
    return bands if ordinary >= _ORDINARY * p else []


def _runs(family: IntArray) -> Iterable[tuple[int, slice]]:
    """Runs of neighboring columns of one family."""
    if family[0] == family[-1] and (family == family[0]).all():
        yield int(family[0]), slice(0, family.size)
        return
    ends = [*(np.flatnonzero(np.diff(family)) + 1).tolist(), family.size]
    for start, stop in zip([0, *ends], ends, strict=False):
        yield int(family[start]), slice(start, stop)


def count_outside(values: NDArray[Any], family: IntArray, results: FloatArray, n_threads: int) -> IntArray:
    """How many values of each column are outside the domain of its fit."""
    failures = np.zeros(values.shape[1], dtype=np.int64)

    def job(group: slice) -> None:
        part = values[:, group]
        if not is_native(part):
            with np.errstate(over="ignore"):
                part = part.astype(np.float64)
        for code, run in _runs(family[group]):
            columnwise.count_outside(part[:, run], code, results[group][run], failures[group][run])

    for_each_group(job, values.shape, n_threads)
    return failures


def changed_matrix(change: Callable[[FloatArray, slice], None], values: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """A new matrix, in which ``change(block, columns)`` has changed every value, a block of contiguous rows at a time.

    Row j of a block has some of the values of column ``columns.start + j``. float32 for float32, else float64.
    """
    n, p = values.shape
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    out = np.empty((n, p), dtype=dtype, order="F" if values.flags.f_contiguous else "C")
    height, width = cache_shape(values)
    scratch = Scratch()

    def job(rows: slice, columns: slice) -> None:
        for group in slices(columns, width):
            block = gathered(values[rows, group], scratch)
            change(block, group)
            scatter(block, out[rows, group])

    work_off(job, cache_blocks((n, p), height, width, n_threads), (n, p), n_threads)
    return out
