"""Transforms of whole matrices, along the lines in which values lie or by column, in blocks that fit the cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import cache_blocks, cache_shape, line_blocks, slices
from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import Scratch, copied_rows, gathered, is_native, is_turned, scatter, write_rows
from powerkern._engine.lines import Layout, Lines, layout_of
from powerkern._engine.threads import SERIAL_VALUES, work_off
from powerkern._input.arrays import output_type
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import CENTER, DIVISOR
from powerkern.kernels.transforms import gather
from powerkern.kernels.transforms import matrix as rowwise
from powerkern.kernels.transforms.branch import HIGH, LOW

#: Code, in place of a family, of columns that are gathered.
_GATHERED = -1
#: float64 is transformed along lines if at least this fraction of a sample of the columns can be.
_ORDINARY = 0.5
_SAMPLE = 64

#: Given a column's number, its values and their images, repairs the images; returns how many remain without one.
Repair = Callable[[int, NDArray[Any], FloatArray], int]
#: Numbers of columns.
Numbers = slice | NDArray[np.intp]


def transform_matrix(
    values: NDArray[Any],
    out: NDArray[Any] | None,
    family: IntArray,
    direction: int,
    results: FloatArray,
    n_threads: int,
    repair: Repair | None = None,
    fields: FloatArray | None = None,
) -> IntArray:
    """Transform every column in a `direction` (see `columnwise`); returns how many values of each have no image.

    `out` may be `values`, or None to count only. `family` has one entry per column. `fields` of the results (see
    `rowwise.fields_of`) may have been made before. Ordinary values of float32 are transformed as
    `powerkern.kernels.transforms.single` says, everything else in float64.
    """
    fields = rowwise.fields_of(results) if fields is None else fields
    transform = _Transform(values, out, family, direction, results, fields, repair)
    if values.size:
        transform.run(n_threads)
    return transform.failures()


class _Transform:
    """The transform of a matrix, part by part."""

    def __init__(
        self,
        values: NDArray[Any],
        out: NDArray[Any] | None,
        family: IntArray,
        direction: int,
        results: FloatArray,
        fields: FloatArray,
        repair: Repair | None,
    ) -> None:
        self._values, self._out, self._repair = values, out, repair
        self._family, self._direction, self._results = family, direction, results
        self._fields = np.ascontiguousarray(fields)
        self._single = output_type(values.dtype) is np.float32
        if self._single and direction in (gather.FORWARD, gather.INVERSE):
            self._fields = rowwise.raw_fields(fields, family)
        self._every = -(-family.size // _SAMPLE) or 1
        self._some_rescaled = self._single and bool(_rescaled(results[:: self._every]).any())
        self._code = self._code_of_all()
        self._lines: Lines | None = None
        self._scratch, self._copies = Scratch(), Scratch()
        self._failures: deque[tuple[Numbers, IntArray]] = deque()

    def run(self, n_threads: int) -> None:
        """Transform the whole matrix."""
        values, out, layout = self._values, self._out, Layout.APART
        if out is not None and not np.may_share_memory(values, out):
            layout = layout_of(values, out)
            if layout != Layout.APART and self._code not in (None, _GATHERED):
                self._lines = Lines(values, out, layout)
        if values.size < SERIAL_VALUES:
            self._transform_part(slice(0, values.shape[0]), slice(0, values.shape[1]))
            return
        blocks = line_blocks(values, n_threads, layout == Layout.APART)
        work_off(self._transform_part, blocks, values.shape, n_threads, takes_part=True)

    def _transform_part(self, rows: slice, columns: slice) -> None:
        source, target = self._values[rows, columns], None if self._out is None else self._out[rows, columns]
        code = self._code_of(columns)
        if code is not None and target is not None and self._lines is not None:
            found = self._lines.transform(self._entry(code), self._fields, rows, columns)
            self._patch(source, target, columns, found)
            return
        if code is not None:
            self._apply(code, source, target, columns)
            return
        codes = self._codes(columns)
        for each in np.unique(codes).tolist():
            numbers = columns.start + np.flatnonzero(codes == each)
            some = self._values[rows][:, numbers]
            self._apply(each, some, some, numbers)
            if self._out is not None:
                self._out[rows, numbers] = some

    def failures(self) -> IntArray:
        """The number of values without an image, by column."""
        total = np.zeros(self._family.size, dtype=np.int64)
        for numbers, counts in self._failures:
            total[numbers] += counts
        return total

    def _code_of_all(self) -> int | None:
        """The common code of all columns, see `_codes`; None if it may differ.

        float64 is transformed along lines if most columns of the sample can be; for float32 each column decides
        separately.
        """
        if self._family.size == 0 or self._some_rescaled:
            return None
        code = int(self._family[0])
        if (self._family != code).any():
            return None if self._single else _GATHERED
        if self._single or self._values.size < SERIAL_VALUES:  # a sample would take as long as the transform
            return code
        sample = np.ascontiguousarray(self._fields[:, :: self._every])
        nothing = np.empty((0, sample.shape[1]))
        whole = slice(0, 0), slice(0, sample.shape[1])
        found = Lines(nothing, nothing, Layout.ROWS).transform(self._entry(code), sample, *whole)
        ordinary = np.count_nonzero(found[LOW] <= found[HIGH])
        return code if ordinary >= _ORDINARY * sample.shape[1] else _GATHERED

    def _code_of(self, columns: slice) -> int | None:
        """The common code of these columns; None if it differs."""
        if self._code is not None:
            return self._code
        codes = self._codes(columns)
        return int(codes[0]) if (codes == codes[0]).all() else None

    def _codes(self, columns: slice) -> IntArray:
        """The family of each column transformed along lines, or _GATHERED, which gives float32 other bits.

        If the sample has no rescaled columns, any others have no ordinary values and are patched.
        """
        family = self._family[columns]
        return np.where(_rescaled(self._results[columns]), _GATHERED, family) if self._some_rescaled else family

    def _entry(self, code: int) -> Callable[..., None]:
        return (rowwise.APPLY_SINGLE if self._single else rowwise.APPLY)[code, self._direction]

    def _apply(self, code: int, source: NDArray[Any], target: NDArray[Any] | None, numbers: Numbers) -> None:
        """Transform some columns, in some rows, from a copy whose lines lie as in the target: into it, if possible."""
        if code == _GATHERED:
            self._by_column(source, target, numbers)
            return
        turned = is_turned(source if target is None else target)
        copy = copied_rows(source.T if turned else source, self._copies)
        copy, layout = (copy.T, Layout.COLUMNS) if turned else (copy, Layout.ROWS)
        images = copy if target is None or layout_of(copy, target) != layout else target
        whole = slice(0, source.shape[0]), slice(0, source.shape[1])
        fields = np.ascontiguousarray(self._fields[:, numbers])
        found = Lines(copy, images, layout).transform(self._entry(code), fields, *whole)
        self._patch(source if images is copy else copy, images, numbers, found)
        if target is not None and images is copy:
            write_rows(copy.T if turned else copy, target.T if turned else target)

    def _patch(self, source: NDArray[Any], target: NDArray[Any], numbers: Numbers, found: FloatArray) -> None:
        """Replace the images of values that are not ordinary."""
        if not found[rowwise.EXTREME].any():
            return
        extreme = np.flatnonzero(found[rowwise.EXTREME])
        beside = source[:, extreme]
        block = gathered(beside, self._scratch)
        low, high = found[: rowwise.EXTREME, extreme, np.newaxis]
        ordinary = ~((block < low) | (block > high) | (low > high)) if self._single else None
        every = np.arange(self._family.size)[numbers] if isinstance(numbers, slice) else numbers
        images = self._images(block, beside, every[extreme]).T
        if ordinary is not None:
            np.copyto(images, target[:, extreme], where=ordinary.T)
        with np.errstate(over="ignore"):
            target[:, extreme] = images

    # --- by column ----------------------------------------------------------------------------------------

    def _by_column(self, source: NDArray[Any], target: NDArray[Any] | None, numbers: Numbers) -> None:
        every = np.arange(self._family.size)[numbers]
        height, width = cache_shape(source)
        for rows, group in cache_blocks((source.shape[0], source.shape[1]), height, width, 1):
            for some in slices(group, width):
                part = source[rows, some]
                block = self._images(gathered(part, self._scratch), part, every[some])
                if target is not None:
                    scatter(block, target[rows, some])

    def _images(self, block: FloatArray, source: NDArray[Any], numbers: NDArray[np.intp]) -> FloatArray:
        """Replace columns, as rows of a block, by their images; `source` has the original values."""
        counts = np.zeros(numbers.size, dtype=np.int64)
        for code, run in _runs(self._family[numbers]):
            gather.APPLY[code, self._direction](block[run], self._results[numbers[run]], counts[run])
        if self._repair is not None:
            counts = self._repaired(block, source, numbers, counts)
        if counts.any():
            self._failures.append((numbers, counts))
        return block

    def _repaired(
        self, block: FloatArray, source: NDArray[Any], numbers: NDArray[np.intp], counts: IntArray
    ) -> IntArray:
        """Repair values without an image; returns how many of each column remain."""
        if self._single:  # infinite once rounded
            beyond = abs(block) > np.finfo(np.float32).max
            counts = counts + np.count_nonzero(beyond & np.isfinite(block), axis=1)
            block[beyond] = np.inf
        for j in np.flatnonzero(counts):
            counts[j] = self._repair(int(numbers[j]), source[:, j], block[j])  # type: ignore[misc]
        return counts


def _rescaled(results: FloatArray) -> BoolArray:
    """A mask of the columns that are shifted or scaled before the transform."""
    return np.asarray((results[:, CENTER] != 0.0) | (results[:, DIVISOR] != 1.0))


def _runs(family: IntArray) -> Iterable[tuple[int, slice]]:
    """Runs of adjacent columns of one family."""
    if family[0] == family[-1] and (family == family[0]).all():
        yield int(family[0]), slice(0, family.size)
        return
    ends = [*(np.flatnonzero(np.diff(family)) + 1).tolist(), family.size]
    for start, stop in zip([0, *ends], ends, strict=False):
        yield int(family[start]), slice(start, stop)


def count_outside(values: NDArray[Any], family: IntArray, results: FloatArray, n_threads: int) -> IntArray:
    """The number of values outside the domain of the fit, by column."""
    failures = np.zeros(values.shape[1], dtype=np.int64)

    def job(group: slice) -> None:
        part = values[:, group]
        if not is_native(part):
            with np.errstate(over="ignore"):
                part = part.astype(np.float64)
        for code, run in _runs(family[group]):
            gather.count_outside(part[:, run], code, results[group][run], failures[group][run])

    n, p = values.shape
    for_each_group(job, (n, p), n_threads, takes_part=True)
    return failures


def changed_matrix(change: Callable[[FloatArray, slice], None], values: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """A new matrix, changed by ``change(block, columns)``, a block of contiguous rows at a time.

    Row j of a block has some of the values of column ``columns.start + j``. float32 for float32, else float64.
    """
    n, p = values.shape
    out = np.empty((n, p), dtype=output_type(values.dtype), order="F" if values.flags.f_contiguous else "C")
    height, width = cache_shape(values)
    scratch = Scratch()

    def job(rows: slice, columns: slice) -> None:
        for group in slices(columns, width):
            block = gathered(values[rows, group], scratch)
            change(block, group)
            scatter(block, out[rows, group])

    work_off(job, cache_blocks((n, p), height, width, n_threads), (n, p), n_threads, takes_part=True)
    return out
