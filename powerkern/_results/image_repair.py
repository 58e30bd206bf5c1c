"""Treatment of values that a transform cannot map: raise an error, replace and count them, or pass them on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.apply import map_blocks
from powerkern._input.arguments import domain_error
from powerkern._input.arrays import Matrix, output_type
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.infinite import describe_missing
from powerkern._input.messages import counted, warn
from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import FloatArray, IntArray, Weights

_NO_IMAGE = "outside the domain of the transform, or so large that it overflows, and became NaN"
#: Ends of messages about values without an image.
_OFFERS_INFINITE = ", or use infinite='missing' or infinite='keep'"
_OFFERS_RANGE = ", or use out_of_range='clip' or out_of_range='nan'"
_CLIPPED = "beyond the range of the fitted data, and became its nearest end"


class ImageRepair:
    """Handler that replaces the results for values without an image under a forward transform, and counts these values.

    A value has no image if it is infinite, outside the domain, or transformed to a number that overflows. The option
    `infinite` replaces the result for an infinite value by NaN ("missing") or by the value itself ("keep"). The option
    `out_of_range` replaces the result for a finite value by NaN ("nan"); with "clip", images that overflow become the
    largest number of their type. With "raise" no result is replaced.

    A handler is built from the results of a fit and these options. It is passed to `transform_matrix` as `completion`,
    and its methods are called by several threads.
    """

    #: None, because a forward transform need not restore the exact ends of the data; see `Inversion`.
    watched = None
    is_inspected = None

    def __init__(
        self,
        table: ColumnTable,
        out_of_range: OutOfRange,
        infinite: Infinite,
        dtype: np.dtype[Any],
        numbers: NDArray[np.intp] | None = None,
    ) -> None:
        """Prepare the handler for a matrix that has all columns of the table, or the columns at positions `numbers`.

        Parameters
        ----------
        table : ColumnTable
            The results of the fit.
        out_of_range : {"raise", "nan", "clip"}
            Treatment of finite values without an image. "clip" also moves values outside the range of the fitted data
            to the nearest end of that range.
        infinite : {"raise", "missing", "keep"}
            Treatment of infinite values.
        dtype : dtype
            The type of the images.
        numbers : ndarray of int, optional
            For each column of the matrix, its position in `table`; positions may repeat. Default: all columns of
            `table`, in order.
        """
        self._table, self._out_of_range, self._infinite, self._dtype = table, out_of_range, infinite, dtype
        self._numbers = numbers
        self._found: deque[tuple[int, int, int]] = deque()

    def part(self, numbers: NDArray[np.intp]) -> ImageRepair:
        """Return a handler for a matrix of the table columns `numbers`; both handlers share their counts."""
        part = ImageRepair(self._table, self._out_of_range, self._infinite, self._dtype, numbers)
        part._found = self._found
        return part

    def repair(self, j: int, x: NDArray[Any], images: FloatArray) -> int:
        """Replace the results of column `j` for values without an image, as the options say, and count these values.

        Parameters
        ----------
        j : int
            Position of the column in the matrix.
        x : (k,) ndarray
            Values of the column.
        images : (k,) ndarray
            Transforms of the values; modified in place.

        Returns
        -------
        int
            Number of values without an image for which an error must be raised.
        """
        j = j if self._numbers is None else int(self._numbers[j])
        with np.errstate(over="ignore"):
            x = np.asarray(x, dtype=np.float64)
        is_infinite = np.isinf(x)
        is_outside = (x <= domain_end(self._table, j)) & ~is_infinite
        is_lost = (is_outside | ~np.isfinite(images)) & ~np.isnan(x) & ~is_infinite
        n_infinite, n_lost = int(np.count_nonzero(is_infinite)), int(np.count_nonzero(is_lost))
        if self._infinite != "raise":
            images[is_infinite] = np.nan if self._infinite == "missing" else x[is_infinite]
        if self._out_of_range == "clip":  # `_clip` leaves only overflow, and columns without fitted values
            largest = np.finfo(self._dtype).max
            images[is_lost] = np.where(is_outside[is_lost], np.nan, np.clip(images[is_lost], -largest, largest))
        elif self._out_of_range == "nan":
            images[is_lost] = np.nan
        n_outside = int(np.count_nonzero(is_outside))
        # under "clip", `_clip` has counted the clipped values, and values whose images overflow are not counted
        self._found.append((j, n_infinite, n_outside if self._out_of_range == "clip" else n_lost))
        return (n_infinite if self._infinite == "raise" else 0) + (n_outside if self._out_of_range == "raise" else 0)

    def repair_rounded(self, x: NDArray[Any], images: NDArray[np.floating]) -> None:
        """Replace images that overflow in float32, either before or when they are rounded.

        `x` and `images`, (p, n), hold the values and their transforms, one column of the data per row.
        """
        if self._dtype == np.float64:
            return
        largest = np.finfo(self._dtype).max
        beyond = abs(images) > largest
        if self._infinite == "keep":
            beyond &= np.isfinite(x)
        ends = {"raise": np.inf, "clip": largest, "nan": np.nan}
        images[beyond] = np.copysign(ends[self._out_of_range], images[beyond])
        if self._out_of_range == "nan":  # under "clip", `_clip` has counted the values that it moved
            counts = np.count_nonzero(beyond, axis=1)
            numbers = np.arange(counts.size) if self._numbers is None else self._numbers
            self._found.extend((j, 0, n) for j, n in zip(numbers.tolist(), counts.tolist(), strict=True) if n)

    def inspect(self, images: NDArray[Any], places: NDArray[np.intp], numbers: NDArray[np.intp]) -> None:
        """Do nothing: unlike `Inversion`, this handler does not change the results of values that have an image."""

    def clip_matrix(self, values: NDArray[Any], n_threads: int) -> NDArray[Any]:
        """Return a copy of a matrix with finite values clipped to the range of the fitted data; count clipped values.

        Clipping all values preserves their order. If only values without an image were moved, a 0 in a Box-Cox column
        would get the image of the smallest fitted value, which is above the images of smaller positive values.
        """
        low, high = fitted_range(self._table, np.dtype(output_type(values.dtype)))

        def change(block: FloatArray, columns: slice) -> None:
            self._clip(block, low[columns], high[columns], np.arange(columns.start, columns.stop))

        return map_blocks(change, values, n_threads)

    def clip_block(self, block: FloatArray) -> None:
        """Clip a float64 block in place, as `clip_matrix` does; each row of the block is one column of the data."""
        low, high = fitted_range(self._table, np.dtype(np.float64))
        numbers = np.arange(len(block)) if self._numbers is None else self._numbers
        self._clip(block, low[numbers], high[numbers], numbers)

    def _clip(self, block: FloatArray, low: FloatArray, high: FloatArray, numbers: NDArray[np.intp]) -> None:
        low, high = low[:, np.newaxis], high[:, np.newaxis]
        below, above = (block < low) & (block > -np.inf), (block > high) & (block < np.inf)
        counts = np.count_nonzero(below | above, axis=1)
        if counts.any():
            np.copyto(block, low, where=below)
            np.copyto(block, high, where=above)
            moved = np.flatnonzero(counts)
            self._found.extend(zip(numbers[moved].tolist(), [0] * moved.size, counts[moved].tolist(), strict=True))

    def counts(self) -> tuple[IntArray, IntArray]:
        """Return two counts for each column of the table: infinite values, and finite values that were replaced."""
        total = np.zeros((2, len(self._table)), dtype=np.int64)
        for j, n_infinite, n_lost in self._found:
            total[:, j] += n_infinite, n_lost
        return total[0], total[1]

    def warn(self, label: Callable[[int], str]) -> None:
        """Issue one warning with the number of replaced values in each column.

        `label` takes the position of a column in the table and returns its name.
        """
        infinite, lost = self.counts()
        parts = []
        if lost.any() and self._out_of_range != "raise":
            what = _CLIPPED if self._out_of_range == "clip" else _NO_IMAGE
            parts.append(counted("value", lost, what, label))
        if infinite.any() and self._infinite == "missing":
            parts.append(describe_missing(infinite, label))
        if parts:
            warn("; ".join(parts))


def fitted_range(table: ColumnTable, dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest number of type `dtype` within the range of the fitted data of each column.

    Columns that had no values are unbounded. The ends are rounded inwards, so that they stay in the domain. If the
    range contains no number of this type, both ends are the smallest number above the range.
    """
    low = np.where(np.isnan(table.x_min), -np.inf, table.x_min)
    high = np.where(np.isnan(table.x_max), np.inf, table.x_max)
    if dtype == np.float64:
        return low, high
    largest = np.finfo(dtype).max
    with np.errstate(over="ignore"):
        near_low, near_high = low.astype(dtype), high.astype(dtype)
    near_low = np.where(near_low < low, np.nextafter(near_low, dtype.type(np.inf)), near_low)
    near_high = np.where(near_high > high, np.nextafter(near_high, -dtype.type(np.inf)), near_high)
    has_values = ~np.isnan(table.x_min)
    near_low[has_values] = np.clip(near_low[has_values], -largest, largest)
    return near_low.astype(np.float64), np.maximum(near_low, near_high).astype(np.float64)


def domain_end(table: ColumnTable, j: int) -> float:
    """Return the lower bound of the domain of column `j` (exclusive), in units of the data; -inf if there is none."""
    is_free = table.mirrored[j] or is_failed(table.status[j : j + 1])[0]
    return -np.inf if is_free else float(table.center[j])


def error_without_image(
    matrix: Matrix,
    column: int,
    table: ColumnTable,
    number: int,
    *,
    infinite: Infinite,
    names: list[Any] | None,
    weight: Weights = None,
) -> ValueError | None:
    """Return the error for a column's first value without an image; None for values that merely overflow.

    Parameters
    ----------
    matrix : Matrix
        The data.
    column : int
        Position of the column in the matrix.
    table : ColumnTable
        The results of the fit.
    number : int
        Position of the column in the table.
    infinite : {"raise", "missing", "keep"}
        Treatment of infinite values; they are skipped unless it is "raise".
    names : list or None
        Labels of the columns.
    weight : (n,) ndarray or None
        Weights of the rows; rows of weight 0 are skipped.
    """
    with np.errstate(over="ignore"):
        x = np.array(matrix.values[:, column], dtype=np.float64)
        if weight is not None:
            x[weight == 0.0] = np.nan
        if infinite != "raise":
            x[np.isinf(x)] = np.nan
    shift = float(table.shift[number])
    kinds = {
        "infinite": np.isinf(x),
        "not above" if shift else "not positive": x <= domain_end(table, number),
    }
    kind = next((name for name, offends in kinds.items() if offends.any()), None)
    if kind is None:
        return None
    i = int(np.argmax(kinds[kind]))
    place, labels = None if matrix.was_vector else column, matrix.names or names
    remedy = _OFFERS_INFINITE if kind == "infinite" else _OFFERS_RANGE
    return domain_error(kind, place, i, float(x[i]), labels, shift, remedy)
