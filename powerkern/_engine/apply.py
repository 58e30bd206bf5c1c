"""Transforms of whole matrices, along the lines in which values lie or by column, in blocks that fit the cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import SMALLEST_PART, cache_blocks, cache_shape, line_blocks, slices
from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import Scratch, copied_rows, gathered, is_native, scatter, write_rows
from powerkern._engine.lines import Layout, Lines, along_lines, layout_of
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


class _Patch(NamedTuple):
    """Images of some columns, which replace values where `mask` is true; both have one row per column."""

    columns: NDArray[np.intp]
    images: FloatArray
    mask: BoolArray

    def put(self, target: NDArray[Any]) -> None:
        """Write the images to the target."""
        if self.columns.size:
            values = target[:, self.columns]
            with np.errstate(over="ignore"):
                np.copyto(values, self.images.T, where=self.mask.T, casting="same_kind")
            target[:, self.columns] = values


_NO_PATCH = _Patch(np.empty(0, dtype=np.intp), np.empty((0, 0)), np.empty((0, 0), dtype=np.bool_))


class _Transform:
    """The transform of a matrix, as a whole or part by part."""

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
        self._family, self._direction, self._results, self._fields = family, direction, results, fields
        self._single = output_type(values.dtype) is np.float32
        if self._single and direction in (gather.FORWARD, gather.INVERSE):
            self._fields = rowwise.raw_fields(fields, family)
        self._every = -(-family.size // _SAMPLE) or 1
        self._some_rescaled = self._single and bool(_rescaled(results[:: self._every]).any())
        self._code = self._code_of_all()
        self._scratch, self._copies = Scratch(), Scratch()
        self._failures: deque[tuple[Numbers, IntArray]] = deque()

    def run(self, n_threads: int) -> None:
        """Transform the whole matrix: in place if possible, otherwise in parts."""
        values, out, shape = self._values, self._out, self._values.shape
        layout = layout_of(values, out)
        apart = layout == Layout.APART
        if apart or out is None or self._code in (None, _GATHERED) or np.may_share_memory(values, out):
            blocks = line_blocks(values, n_threads, apart)
            work_off(self._transform_part, blocks, shape, n_threads, takes_part=True)
            return
        lines = Lines(self._entry(self._code), values, out, layout, self._fields, n_threads)
        try:  # every thread takes lines until none is left
            n_working = min(n_threads, -(-values.size // SMALLEST_PART))
            work_off(lines.work, [()] * n_working, shape, n_threads, takes_part=True)
        except BaseException:
            lines.stop()
            raise
        if lines.found[rowwise.EXTREME].any():

            def patch(rows: slice, columns: slice) -> None:
                self._patch(values[rows, columns], columns, lines.found[:, columns]).put(out[rows, columns])

            work_off(patch, line_blocks(values, n_threads, True), shape, n_threads, takes_part=True)

    def _transform_part(self, rows: slice, columns: slice) -> None:
        code = self._code_of(columns)
        if code is not None:
            target = None if self._out is None else self._out[rows, columns]
            self._apply(code, self._values[rows, columns], target, columns)
            return
        codes = self._codes(columns)
        for each in np.unique(codes).tolist():
            numbers = columns.start + np.flatnonzero(codes == each)
            source = self._values[rows][:, numbers]
            self._apply(each, source, source, numbers)
            if self._out is not None:
                self._out[rows, numbers] = source

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
        sample = self._fields[:, :: self._every]
        found = along_lines(self._entry(code), np.empty((0, sample.shape[1])), None, Layout.ROWS, sample)
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
        """Transform some columns, in some rows."""
        if code == _GATHERED:
            self._by_column(source, target, numbers)
            return
        entry, fields = self._entry(code), self._fields[:, numbers]
        layout = layout_of(source, target)
        before = target is None or np.may_share_memory(source, target)  # later, extreme values would be overwritten
        given, to = source, None if before else target
        if layout == Layout.APART:
            given, layout = copied_rows(source, self._copies), Layout.ROWS
            to = given if to is None or layout_of(given, to) != layout else to
        found = along_lines(entry, given, to, layout, fields)
        patch = self._patch(source, numbers, found)
        if target is None:
            return
        if to is given:
            write_rows(given, target)
        elif to is None:
            along_lines(entry, source, target, layout, fields)
        patch.put(target)

    def _patch(self, source: NDArray[Any], numbers: Numbers, found: FloatArray) -> _Patch:
        """The images of values that are not ordinary."""
        extreme = np.flatnonzero(found[rowwise.EXTREME])
        if extreme.size == 0:
            return _NO_PATCH
        low, high = found[: rowwise.EXTREME, extreme, np.newaxis]
        beside = source[:, extreme]
        block = gathered(beside, self._scratch)
        mask = (block < low) | (block > high) | (low > high)
        here = np.flatnonzero(mask.any(axis=1))  # what was found may be of more rows
        if here.size == 0:
            return _NO_PATCH
        if here.size < extreme.size:
            extreme, block, beside, mask = extreme[here], block[here], beside[:, here], mask[here]
        every = np.arange(self._family.size)[numbers] if isinstance(numbers, slice) else numbers
        return _Patch(extreme, self._images(block, beside, every[extreme]), mask)

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
