"""Inverse transforms beyond the formula: values without an inverse, exact ends of the data, lost digits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.choices import OutOfRange
from powerkern._input.messages import warn
from powerkern._results.column_table import ColumnTable
from powerkern._results.lost_digits import TOLERANCES, LostDigits, find_lost_digits, round_trip_errors
from powerkern._status import is_failed
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

_FLOAT64 = np.dtype(np.float64)
#: Number of adjacent elements to reduce at once, so that narrow matrices fill vector registers.
_WIDTH = 512
#: Points at which to test for lost digits: distances beyond the transformed ends of the data, in units of the
#: transformed range.
_STEPS_OUT = 0.0, 0.25, 1.0, 4.0
#: Number of columns that a warning describes.
_N_DESCRIBED = 5
#: Advice on lost digits.
_REMEDY = "keep the original values, or fit with bounds= on lambda"


class Inversion:
    """Handler of an inverse transform for values without an inverse and for results that lack digits.

    The object is passed to `transform_matrix` as its `completion`.

    "clip" moves all results outside the range of the fitted data to the nearest end. This preserves order. If only
    values without an inverse were moved, a large z without an inverse would become the end of the fitted data, while a
    smaller z, whose inverse lies beyond this end, would keep its larger result.

    Where psi is flat, many x share one z. The z of an end of the fitted data is mapped to exactly that end.

    Each column has safe bounds of z, between which no result lacks digits. They are computed once per fit. The smallest
    and the largest result are recorded only for columns with values outside these bounds, and for columns that lack
    digits within the range of the fitted data.
    """

    def __init__(
        self,
        table: ColumnTable,
        standardize: bool,
        out_of_range: OutOfRange,
        dtype: np.dtype[Any],
        numbers: NDArray[np.intp] | None = None,
        *,
        keeps_infinite: bool = False,
    ) -> None:
        """Prepare the handler for a matrix that has all columns of the table, or the columns at positions `numbers`.

        Parameters
        ----------
        table : ColumnTable
            The fitted columns.
        standardize : bool
            True if the transformed values are standardised.
        out_of_range : {"nan", "clip", "raise"}
            Treatment of values without an inverse, as in `PowerFit.inverse_transform`.
        dtype : dtype
            Type of the result.
        numbers : ndarray of int, optional
            For each column of the matrix, its position in `table`. Default: all columns of `table`, in order.
        keeps_infinite : bool
            True to return infinite values unchanged, as the transform with ``infinite="keep"`` does.
        """
        self._table, self._standardize, self._dtype, self._numbers = table, standardize, dtype, numbers
        self._out_of_range, self._clip = out_of_range, out_of_range == "clip"
        self._keeps_infinite = keeps_infinite
        self._ranges: deque[tuple[NDArray[np.intp], FloatArray, FloatArray]] = deque()
        watched, is_lossy = self._watched
        if self._clip:
            watched = self._watched_for_clipping
        self.watched: FloatArray = watched if numbers is None else watched[:, numbers]
        self.is_inspected: NDArray[np.bool_] | None = (
            is_lossy if numbers is None or is_lossy is None else is_lossy[numbers]
        )

    def part(self, numbers: NDArray[np.intp]) -> Inversion:
        """Return a handler for a matrix of the columns at positions `numbers`, which may repeat."""
        return Inversion(
            self._table,
            self._standardize,
            self._out_of_range,
            self._dtype,
            numbers,
            keeps_infinite=self._keeps_infinite,
        )

    def repair(self, j: int, z: NDArray[Any], x: FloatArray) -> int:
        """Replace the results of column `j` for values without an inverse by NaN or by the nearest end of the data.

        With "clip", `inspect` later replaces every other result that lies outside the range of the data by the nearest
        end of this range. If the image of an end of the data rounds to the end of the range of psi, values that equal
        this image have an inverse: the end of the data.

        Parameters
        ----------
        j : int
            Position of the column in the matrix.
        z : (k,) ndarray
            Transformed values of the column.
        x : (k,) ndarray
            Results of the inversion; modified in place.

        Returns
        -------
        int
            Number of values without an inverse; 0 with "clip".
        """
        table, j = self._table, j if self._numbers is None else int(self._numbers[j])
        low, high = self._transformed_ends[:, j]
        rounding = self._rounding[j]
        missing = np.flatnonzero(~np.isfinite(x) & ~np.isnan(z))
        at = z[missing].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # images of outliers, or of the ends, may be infinite
            inside = (low - rounding <= at) & (at <= high + rounding)
            nearest = np.where((at >= high) | (at - low > high - at), table.x_max[j], table.x_min[j])
        is_kept = np.isinf(at) & self._keeps_infinite
        x[missing] = np.where(is_kept, at, np.where(inside | self._clip, nearest, np.nan))
        return 0 if self._clip else int(np.count_nonzero(~inside & ~is_kept))

    def inspect(self, images: NDArray[Any], places: NDArray[np.intp], numbers: NDArray[np.intp]) -> None:
        """Restore the exact ends of the data in the inspected columns, and record the range of the results.

        Parameters
        ----------
        images : (m, k) ndarray
            Results of a block of columns; modified in place.
        places : ndarray of int
            Positions in `images` of the columns to inspect.
        numbers : ndarray of int
            Positions of the same columns in the matrix.
        """
        chosen = images if places.size == images.shape[1] else images[:, places]
        numbers = numbers if self._numbers is None else self._numbers[numbers]
        low, high = _ranges(np.where(np.isinf(chosen), np.nan, chosen) if self._keeps_infinite else chosen)
        ends, found = self._ends[:, numbers], self._images_of_ends[:, numbers]
        with np.errstate(invalid="ignore"):
            hit = np.flatnonzero(((low <= found) & (found <= high)).any(axis=0))
        if hit.size:
            part = chosen if hit.size == places.size else chosen[:, hit]
            for k in range(2):
                rows, columns = _true_positions(part == found[k, hit])
                images[rows, places[hit[columns]]] = ends[k, hit[columns]]
            low, high = np.where(low == found[0], ends[0], low), np.where(high == found[1], ends[1], high)
        if self._clip:
            first, last = self._clipping_ends[:, numbers]
            part = images[:, places]
            clipped = np.clip(part, first, last)
            images[:, places] = np.where(np.isinf(part), part, clipped) if self._keeps_infinite else clipped
            low, high = np.clip(low, first, last), np.clip(high, first, last)
        self._ranges.append((numbers, low, high))

    def find_lost_digits(self) -> list[LostDigits]:
        """Return a description of the lost digits of each column whose results have too few correct digits."""
        if not self._ranges:
            return []
        p = len(self._table)
        low, high = np.full(p, np.nan), np.full(p, np.nan)
        for numbers, lows, highs in self._ranges:
            low[numbers], high[numbers] = np.fmin(low[numbers], lows), np.fmax(high[numbers], highs)
        first, last = self._ends
        is_lossy = self._watched[1]
        is_suspect = (low < first) | (high > last)  # not where NaN
        suspects = np.flatnonzero(is_suspect if is_lossy is None else is_suspect | is_lossy & ~np.isnan(low))
        if not suspects.size:
            return []
        part = self._table.take(suspects)
        found = find_lost_digits(part, low[suspects], high[suspects], self._standardize, self._dtype)
        return [each._replace(column=int(suspects[each.column])) for each in found]

    def _cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, which is evaluated once per fit for all columns and cached under `name`."""
        key, memo = (name, self._standardize, self._dtype), self._table.inversion_cache
        if key not in memo:
            memo[key] = compute()
        return memo[key]

    @property
    def _ends(self) -> NDArray[Any]:
        """Smallest and largest fitted value of each column, (2, p), rounded to the type of the results."""
        return np.asarray(self._cached("ends", self._read_ends))

    @np.errstate(over="ignore")
    def _read_ends(self) -> NDArray[Any]:
        return np.array([self._table.x_min, self._table.x_max]).astype(self._dtype)

    @property
    def _images_of_ends(self) -> NDArray[Any]:
        """Ends of the data after a round trip, that is, transformed and inverted: (2, p)."""
        return np.asarray(self._cached("images", self._invert_ends))

    def _invert_ends(self) -> NDArray[Any]:
        ends = self._ends.copy()
        self._table.transform(ends, ends, forward_direction(self._standardize), 1)
        self._table.transform(ends, ends, inverse_direction(self._standardize), 1)
        return ends

    @np.errstate(all="ignore")
    def _find_safe_bounds(self) -> FloatArray:
        """Return the bounds of z between which no result lacks digits, (2, p); NaN if even the data lose digits.

        The round trip is tested at the ends of the data and then farther out, because errors grow outwards. Values
        that need range checks count as unsafe: they are inspected anyway, and kernels for them need not be compiled.
        """
        ends = self._transformed_ends
        outwards = np.array([-1.0, 1.0])[:, np.newaxis] * (ends[1] - ends[0])
        z = ends + np.array(_STEPS_OUT)[:, np.newaxis, np.newaxis] * outwards  # (step, side, column)
        x = self._table.transform_ordinary(z.reshape(-1, len(self._table)), inverse_direction(self._standardize))
        x[:2] = self._table.x_min, self._table.x_max
        x[np.isnan(self._table.transform_ordinary(x, forward_direction(self._standardize)))] = np.nan
        errors = round_trip_errors(self._table, x, self._standardize, self._dtype)
        is_safe = (np.isfinite(x) & (errors <= TOLERANCES[self._dtype])).reshape(z.shape)
        n_safe = np.logical_and.accumulate(is_safe, axis=0).sum(axis=0)
        bounds = np.take_along_axis(z, np.maximum(n_safe - 1, 0)[np.newaxis], axis=0)[0]
        bounds[n_safe == 0] = np.nan
        bounds[:, is_failed(self._table.status)] = np.inf * np.array([[-1.0], [1.0]])
        return np.asarray(bounds)

    @property
    def _watched(self) -> tuple[FloatArray, NDArray[np.bool_] | None]:
        """The limits and the mask that `_find_watched` returns, from the cache."""
        found: tuple[FloatArray, NDArray[np.bool_] | None] = self._cached("watched", self._find_watched)
        return found

    def _find_watched(self) -> tuple[FloatArray, NDArray[np.bool_] | None]:
        """Return the limits of z outside which kernels report results for inspection, and a mask of lossy columns.

        The limits are the rows INNER_LOW to WATCHED_MAX of `kernels.transforms.matrix`. They are NaN for ends of the
        data whose round trip is exact, since these need no inspection. The mask marks columns that lack digits within
        the data; it is None if there are none.
        """
        ends = self._ends.astype(np.float64)
        z = self._ends.copy()
        self._table.transform(z, z, forward_direction(self._standardize), 1)
        z = np.where(self._images_of_ends == self._ends, np.nan, z.astype(np.float64))
        safe = self._find_safe_bounds()
        is_lossy = np.asarray(np.isnan(safe).any(axis=0))
        inner_low = np.fmax(safe[0], np.nextafter(z[0], np.inf))
        inner_high = np.fmin(safe[1], np.nextafter(z[1], -np.inf))
        return np.concatenate([[inner_low, inner_high], safe, z, ends]), is_lossy if is_lossy.any() else None

    @property
    def _watched_for_clipping(self) -> FloatArray:
        """The limits of `_find_watched`, narrowed to the transformed range of the data less its rounding error.

        Results outside these limits are inspected, and clipped if they lie outside the range of the data.
        """
        return np.asarray(self._cached("watched for clipping", self._narrow_watched))

    def _narrow_watched(self) -> FloatArray:
        watched = self._watched[0].copy()
        with np.errstate(invalid="ignore"):  # an end whose image is infinite becomes NaN, and narrows nothing
            ends = self._transformed_ends + np.array([[1.0], [-1.0]]) * self._rounding
        ends = np.where(is_failed(self._table.status), np.array([[-np.inf], [np.inf]]), ends)
        for low in (0, 2):  # the inner bounds, then the safe bounds
            watched[low] = np.fmax(watched[low], ends[0])
            watched[low + 1] = np.fmin(watched[low + 1], ends[1])
        return watched

    @property
    def _clipping_ends(self) -> NDArray[Any]:
        """Limits of results with "clip", (2, p): the range of the fitted data; infinite for untransformed columns."""
        is_free = is_failed(self._table.status) | np.isnan(self._ends).any(axis=0)
        return np.where(is_free, np.array([[-np.inf], [np.inf]], dtype=self._dtype), self._ends)

    @property
    def _rounding(self) -> FloatArray:
        """Bound on the rounding error of the transformed ends of the data, (p,)."""
        largest = np.fmax(np.abs(self._transformed_ends).max(axis=0), np.abs(self._table.intercept))
        return np.asarray(16.0 * np.finfo(self._dtype).eps * largest)

    @property
    def _transformed_ends(self) -> NDArray[Any]:
        return np.asarray(self._cached("transformed", lambda: transformed_ends(self._table, self._standardize)))


def _true_positions(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows and columns of the True elements of a matrix; faster than `numpy.nonzero` if there are few."""
    if mask.flags.f_contiguous:
        columns, rows = divmod(np.flatnonzero(mask.T), mask.shape[0])
        return rows, columns
    rows, columns = divmod(np.flatnonzero(mask), mask.shape[1])
    return rows, columns


def _ranges(images: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the smallest and the largest value of each column, ignoring NaN.

    Several rows of a narrow matrix are joined to one, so that vector instructions apply.
    """
    n, p = images.shape
    k = _WIDTH // p
    if k > 1 and n >= 2 * k and images.flags.c_contiguous:
        whole, rest = images[: n // k * k].reshape(-1, k * p), images[n // k * k :]
        low, high = (f.reduce(whole, axis=0).reshape(k, p) for f in (np.fmin, np.fmax))
        low, high = np.concatenate([low, rest]), np.concatenate([high, rest])
        return np.fmin.reduce(low, axis=0), np.fmax.reduce(high, axis=0)
    return np.fmin.reduce(images, axis=0), np.fmax.reduce(images, axis=0)


def transformed_ends(table: ColumnTable, standardize: bool) -> FloatArray:
    """Return the transforms of the smallest and the largest fitted value of each column, (2, p)."""
    ends = np.array([table.x_min, table.x_max])
    table.transform(ends, ends, forward_direction(standardize), 1)
    return ends


def warn_about_values_without_inverse(where: str) -> None:
    """Warn that values without an inverse became NaN; `where` names their columns."""
    warn(
        f"Some values in {where} are beyond the range of the transform, so they have no inverse and became NaN; use "
        "out_of_range='clip' for the nearest end of the fitted data, or out_of_range='raise' for an error"
    )


def first_without_inverse(table: ColumnTable, j: int, z: NDArray[Any], standardize: bool, dtype: np.dtype[Any]) -> int:
    """Return the position of the first value of a column that has no inverse.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    j : int
        Position of the column.
    z : (n,) ndarray
        Transformed values of the column.
    standardize : bool
        True if `z` is standardised.
    dtype : dtype
        Type of the result.
    """
    column, images = table.take(slice(j, j + 1)), np.empty((len(z), 1), dtype=dtype)
    inversion = Inversion(column, standardize, "nan", dtype)
    column.transform(z[:, np.newaxis], images, inverse_direction(standardize), 1, inversion)
    return int(np.argmax(np.isnan(images[:, 0]) & ~np.isnan(z)))


def describe_lost_digits(found: Sequence[LostDigits], label: Callable[[int], str]) -> str:
    """Return text that says where the results in `found` have too few digits; `label` returns a column's name."""
    texts = [f"{label(each.column)} {each.text}" for each in found[:_N_DESCRIBED]]
    rest = f" and {len(found) - _N_DESCRIBED} more" if len(found) > _N_DESCRIBED else ""
    return ", ".join(texts) + rest


def note_on_inverse(table: ColumnTable, standardize: bool, label: Callable[[int], str]) -> list[str]:
    """Return a note on the columns whose inverse transform loses digits of float64, or no note if there are none."""
    found = find_lost_digits(table, table.x_min, table.x_max, standardize, _FLOAT64)
    if not found:
        return []
    return [f"{describe_lost_digits(found, label)}: the inverse transform restores {_few_digits(_FLOAT64)} there"]


def warn_about_lost_digits(found: Sequence[LostDigits], label: Callable[[int], str], dtype: np.dtype[Any]) -> None:
    """Issue one warning about results with too few digits, if there are any.

    `found` describes the lost digits, `label` takes a column's position and returns its name, and `dtype` is the type
    of the results.
    """
    if found:
        warn(
            f"{describe_lost_digits(found, label)}: the transform is so flat there that its inverse restores "
            f"{_few_digits(dtype)}; {_REMEDY}"
        )


def _few_digits(dtype: np.dtype[Any]) -> str:
    return f"fewer than {round(-np.log10(TOLERANCES[dtype]))} digits"
