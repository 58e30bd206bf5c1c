"""Transform whole matrices in blocks that fit the cache, either in the order of memory or column by column."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import cache_blocks, cache_shape, line_blocks, slices
from powerkern._engine.by_column import for_each_group
from powerkern._engine.gather import (
    BlockScratch,
    copy_rows,
    gather_columns,
    is_column_major,
    is_native,
    scatter,
    write_rows,
)
from powerkern._engine.lines import LineOrder, MatrixLines, choose_line_order
from powerkern._engine.threads import SERIAL_VALUES, run_parallel
from powerkern._input.arrays import output_type
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms import gather
from powerkern.kernels.transforms import matrix as rowwise
from powerkern.kernels.transforms.family import FORWARD, INVERSE


class ImageHandler(Protocol):
    """Callbacks that treat values without an image and inspect extreme images; called from several threads."""

    @property
    def watched(self) -> FloatArray | None:
        """Bounds for the inspection of images, as an array.

        The rows are INNER_LOW to WATCHED_MAX of the array `bounds` of `kernels.transforms.matrix`. None means that no
        image is inspected.
        """

    @property
    def is_inspected(self) -> NDArray[np.bool_] | None:
        """Mask of the columns that are always inspected; None means that no column is."""

    def repair(self, j: int, values: NDArray[Any], images: FloatArray) -> int:
        """Treat the values of a block of column j that have no image; return how many of them count as failures.

        The handler decides on the results for these values: NaN, say, or the nearest end of a range. `transform_matrix`
        returns the number of failures. Missing values, whose images are also NaN, must not be counted.

        Parameters
        ----------
        j : int
            Index of the column in the whole matrix.
        values : (k,) ndarray
            The values of the column in this block.
        images : (k,) ndarray
            The images of all these values; infinite or NaN ones may be replaced in place.
        """

    def inspect(self, images: NDArray[Any], places: NDArray[np.intp], numbers: NDArray[np.intp]) -> None:
        """Inspect the final images of some columns, and correct them in place if necessary.

        This method is called for the columns that `is_inspected` selects, and for columns that have values outside the
        safe bounds or values that need range checks (`kernels.transforms.matrix`).

        Parameters
        ----------
        images : (m, p) ndarray
            Final images of a block of rows.
        places : (k,) ndarray of int
            The columns of `images` to inspect.
        numbers : (k,) ndarray of int
            Indices of these columns in the whole matrix.
        """


def transform_matrix(
    values: NDArray[Any],
    out: NDArray[Any] | None,
    family: IntArray,
    direction: int,
    results: FloatArray,
    n_threads: int,
    completion: ImageHandler | None = None,
    fields: FloatArray | None = None,
) -> IntArray:
    """Transform every column of a matrix; return the number of values without an image, by column.

    float32 values are transformed by `powerkern.kernels.transforms.single` where float32 arithmetic is accurate.
    Everything else is computed in float64.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix.
    out : (n, p) ndarray or None
        Receives the images; may be `values`. None: no images are stored; the values without an image are counted.
    family : (p,) ndarray of int
        Family of each column, a code of `kernels.transforms.family`.
    direction : int
        A direction of `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The fit of each column.
    n_threads : int
        Maximum number of threads.
    completion : ImageHandler, optional
        Replaces infinite and NaN images, and inspects extreme ones.
    fields : (N_FIELDS, p) ndarray, optional
        The result of `select_fields(results)`, if the caller has it already.
    """
    if not values.size:
        return np.zeros(family.size, dtype=np.int64)
    fields = rowwise.select_fields(results) if fields is None else fields
    transform = _MatrixTransform(values, out, family, direction, results, fields, completion)
    transform.run(n_threads)
    return transform.failures()


def transform_ordinary(
    values: FloatArray, family: IntArray, direction: int, results: FloatArray, fields: FloatArray
) -> FloatArray:
    """Return the images of ordinary float64 values (see `kernels.transforms.branch`), and NaN for all others.

    The other arguments are those of `transform_matrix`; `fields` is the result of ``select_fields(results)``.
    """
    images = np.empty_like(values)
    _OrdinaryTransform(values, images, family, direction, results, fields, None).run(1)
    return images


class _MatrixTransform:
    """The transform of one matrix, processed in parts by several threads."""

    def __init__(
        self,
        values: NDArray[Any],
        out: NDArray[Any] | None,
        family: IntArray,
        direction: int,
        results: FloatArray,
        fields: FloatArray,
        completion: ImageHandler | None,
    ) -> None:
        self._values, self._out, self._completion = values, out, completion
        self._watched = None if completion is None else completion.watched
        self._family, self._direction, self._results = family, direction, results
        self._single = output_type(values.dtype) is np.float32
        raw = self._single and direction in (FORWARD, INVERSE)
        self._fields = rowwise.raw_fields(fields, family) if raw else np.ascontiguousarray(fields)
        self._one_family = bool((family == family[0]).all())
        self._lines: MatrixLines | None = None
        self._scratch, self._copies = BlockScratch(), BlockScratch()
        self._failures: deque[tuple[NDArray[np.intp], IntArray]] = deque()

    def run(self, n_threads: int) -> None:
        """Transform the whole matrix.

        Nothing is copied if all columns have the same family and the output does not share memory with the source.
        """
        values, out = self._values, self._out
        if out is not None and self._one_family and not np.may_share_memory(values, out):
            layout = choose_line_order(values, out)
            self._lines = MatrixLines(values, out, layout) if layout != LineOrder.COPY else None
        if values.size < SERIAL_VALUES:
            self._transform_part(slice(0, values.shape[0]), slice(0, values.shape[1]))
            return
        blocks = line_blocks(values, n_threads, self._lines is None)
        run_parallel(self._transform_part, blocks, values.shape, n_threads, use_calling_thread=True)

    def _transform_part(self, rows: slice, columns: slice) -> None:
        source, target = self._values[rows, columns], None if self._out is None else self._out[rows, columns]
        numbers = np.arange(columns.start, columns.stop)
        if target is not None and self._lines is not None:
            bounds = self._lines.transform(self._entry(columns.start), self._fields, rows, columns, self._watched)
            self._patch(source, target, numbers, bounds)
            self._inspect(target, slice(None), numbers, bounds)
        elif self._one_family:
            _, bounds = self._transform_copy(source, target, numbers)
            self._inspect(target, slice(None), numbers, bounds)
        else:
            for family in np.unique(self._family[columns]):
                members = np.flatnonzero(self._family[columns] == family)
                images, bounds = self._transform_copy(source[:, members], None, numbers[members])
                if target is not None:
                    with np.errstate(over="ignore"):
                        target[:, members] = images
                self._inspect(target, members, numbers[members], bounds)

    def _inspect(
        self,
        target: NDArray[Any] | None,
        places: NDArray[np.intp] | slice,
        numbers: NDArray[np.intp],
        bounds: FloatArray,
    ) -> None:
        """Pass columns that are marked in `bounds`, or are always inspected, to the handler for inspection.

        Parameters
        ----------
        target : (m, p) ndarray or None
            Images of a block of rows; None: do nothing.
        places : (k,) ndarray of int or slice
            The columns of `target` that `bounds` describes.
        numbers : (k,) ndarray of int
            Indices of these columns in the whole matrix.
        bounds : (N_BOUNDS or more, k) ndarray
            Bounds and marks of these columns (see `MatrixLines.transform`).
        """
        completion = self._completion
        if target is None or completion is None or self._watched is None:
            return
        marks, always = bounds[rowwise.EXTREME : rowwise.BEYOND + 1], completion.is_inspected
        if marks.any() or (always is not None and always[numbers].any()):
            is_noted = np.asarray((marks > 0.0).any(axis=0))
            noted = np.flatnonzero(is_noted if always is None else is_noted | always[numbers])
            completion.inspect(target, noted if isinstance(places, slice) else places[noted], numbers[noted])

    def failures(self) -> IntArray:
        """Return the number of values without an image, by column."""
        total = np.zeros(self._family.size, dtype=np.int64)
        for numbers, counts in self._failures:
            total[numbers] += counts
        return total

    def _entry(self, column: int) -> Callable[..., None]:
        return (rowwise.APPLY_SINGLE if self._single else rowwise.APPLY)[int(self._family[column]), self._direction]

    def _transform_copy(
        self, source: NDArray[Any], target: NDArray[Any] | None, numbers: NDArray[np.intp]
    ) -> tuple[NDArray[Any], FloatArray]:
        """Copy columns of one family in the target's memory order; transform the copy, into the target if possible.

        Return the images (in scratch space if no target is given), and the bounds and marks of the columns (see
        `MatrixLines.transform`). `numbers` are the indices of the columns in the whole matrix.
        """
        transposed = is_column_major(source if target is None else target)
        copy = copy_rows(source.T if transposed else source, self._copies)
        copy, layout = (copy.T, LineOrder.COLUMNS) if transposed else (copy, LineOrder.ROWS)
        images = copy if target is None or choose_line_order(copy, target) != layout else target
        whole = slice(0, source.shape[0]), slice(0, source.shape[1])
        fields = np.ascontiguousarray(self._fields[:, numbers])
        watched = None if self._watched is None else self._watched[:, numbers]
        bounds = MatrixLines(copy, images, layout).transform(self._entry(numbers[0]), fields, *whole, watched)
        self._patch(source if images is copy else copy, images, numbers, bounds)
        if target is not None and images is copy:
            write_rows(copy.T if transposed else copy, target.T if transposed else target)
        return images, bounds

    def _patch(self, source: NDArray[Any], target: NDArray[Any], numbers: NDArray[np.intp], bounds: FloatArray) -> None:
        """Recompute in float64, with range checks, the images of columns that are marked in `bounds`.

        Parameters
        ----------
        source : (m, k) ndarray
            Values of columns of one family.
        target : (m, k) ndarray
            Images of these values; updated in place.
        numbers : (k,) ndarray of int
            Indices of these columns in the whole matrix.
        bounds : (N_BOUNDS or more, k) ndarray
            Bounds between which values need no range checks, and marks of columns with values outside (see
            `MatrixLines.transform`).
        """
        if not bounds[rowwise.EXTREME].any():
            return
        extreme = np.flatnonzero(bounds[rowwise.EXTREME])
        height, width = cache_shape(source)
        for rows in slices(slice(0, source.shape[0]), height):
            for some in slices(slice(0, extreme.size), width):
                columns = _as_slice(extreme[some])
                part, images = source[rows, columns], target[rows, columns]
                block = gather_columns(part, self._scratch)
                low, high = bounds[: rowwise.EXTREME, columns, np.newaxis]
                # float32 images of ordinary values are kept, unless they overflowed
                ordinary = (block >= low) & (block <= high) & np.isfinite(images.T) if self._single else None
                self._replace_by_images(block, part, numbers[columns])
                if ordinary is not None:
                    np.copyto(block, images.T, where=ordinary)
                scatter(block, images)
                if not isinstance(columns, slice):
                    target[rows, columns] = images

    def _replace_by_images(self, block: FloatArray, source: NDArray[Any], numbers: NDArray[np.intp]) -> None:
        """Replace columns of one family, the rows of `block`, by their images.

        `source` has the original values, and `numbers` the indices of the columns in the whole matrix.
        """
        counts = np.zeros(numbers.size, dtype=np.int64)
        entry = gather.APPLY[int(self._family[numbers[0]]), self._direction]
        entry(block, self._results[numbers], counts)
        if self._single:
            beyond = (abs(block) > np.finfo(np.float32).max) & np.isfinite(block)
            if beyond.any():  # infinite when rounded to float32
                counts = counts + np.count_nonzero(beyond, axis=1)
                block[beyond] = np.copysign(np.inf, block[beyond])
        if self._completion is not None:
            counts = self._repair(self._completion, block, source, numbers, counts)
        if counts.any():
            self._failures.append((numbers, counts))

    def _repair(
        self,
        completion: ImageHandler,
        block: FloatArray,
        source: NDArray[Any],
        numbers: NDArray[np.intp],
        counts: IntArray,
    ) -> IntArray:
        """Let the handler treat values without an image; return the number of failures in each column.

        Parameters
        ----------
        completion : ImageHandler
            The handler.
        block : (k, m) ndarray
            Images, a row for each column; repaired in place.
        source : (m, k) ndarray
            The original values.
        numbers : (k,) ndarray of int
            Indices of the columns in the whole matrix.
        counts : (k,) ndarray of int
            Number of values without an image in each column; replaced by the number of failures.
        """
        for j in np.flatnonzero(counts):
            counts[j] = completion.repair(int(numbers[j]), source[:, j], block[j])
        return counts


class _OrdinaryTransform(_MatrixTransform):
    """A transform that sets the images of values that need range checks to NaN instead of recomputing them."""

    def _patch(self, source: NDArray[Any], target: NDArray[Any], numbers: NDArray[np.intp], found: FloatArray) -> None:
        low, high = found[: rowwise.EXTREME]
        target[(source < low) | (source > high)] = np.nan


def _as_slice(numbers: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Convert increasing indices without gaps to a slice, which selects without a copy; return others unchanged."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == numbers.size else numbers


def count_outside(values: NDArray[Any], family: IntArray, results: FloatArray, n_threads: int) -> IntArray:
    """Return the number of values outside the domain of the fit, by column.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix.
    family : (p,) ndarray of int
        Family of each column, a code of `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        The fit of each column.
    n_threads : int
        Maximum number of threads.
    """
    failures = np.zeros(values.shape[1], dtype=np.int64)

    def job(group: slice) -> None:
        part = values[:, group]
        if not is_native(part):
            with np.errstate(over="ignore"):
                part = part.astype(np.float64)
        gather.count_outside(part, family[group], results[group], failures[group])

    n, p = values.shape
    for_each_group(job, (n, p), n_threads, use_calling_thread=True)
    return failures


def map_blocks(change: Callable[[FloatArray, slice], None], values: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """Return a copy of a matrix, after applying the function `change` to every block of the copy.

    The copy is float32 for float32 input, and otherwise float64.

    Parameters
    ----------
    change : callable
        Called as ``change(block, columns)`` with a contiguous block, to be changed in place, and a slice of columns.
        Row j of the block holds some of the values of column ``columns.start + j``.
    values : (n, p) ndarray
        The matrix.
    n_threads : int
        Maximum number of threads.
    """
    n, p = values.shape
    out = np.empty((n, p), dtype=output_type(values.dtype), order="F" if values.flags.f_contiguous else "C")
    height, width = cache_shape(values)
    scratch = BlockScratch()

    def job(rows: slice, columns: slice) -> None:
        for group in slices(columns, width):
            block = gather_columns(values[rows, group], scratch)
            change(block, group)
            scatter(block, out[rows, group])

    run_parallel(job, cache_blocks((n, p), height, width, n_threads), (n, p), n_threads, use_calling_thread=True)
    return out
