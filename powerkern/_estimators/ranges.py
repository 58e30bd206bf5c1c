"""Ranges of columns: extremes, counts, weights and the spread of sampled logs, from which grids are chosen.

All sums are sums of integers, so that ranges do not depend on the order in which blocks, chunks or sites are merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import SMALLEST_PART
from powerkern._engine.by_row_block import Parts, for_each_row_block
from powerkern._engine.gather import NO_WEIGHTS, AffineView, Columns
from powerkern._engine.lines import join_rows
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.power_sums import ranges as sketch

#: Number of rows in a block.
BLOCK_ROWS = 131_072
#: Number of parts of blocks that each thread should get. Without weights, ranges are exact however rows are divided,
#: and parts of at least twice SMALLEST_PART values cost little.
_TURNS = 4
#: Number of values of a column in a block from which the spread of the logs is estimated.
SAMPLE = 256


def range_matrix(values: Columns, family: int, weight: Weights, n_threads: int) -> FloatArray:
    """Return the ranges of all columns, (p, N_RANGE); see `kernels.power_sums`.

    A negative count marks a column with values outside the domain of the transform.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    """
    n_rows = _rows_of_ranges(values.shape, n_threads) if weight is None else BLOCK_ROWS
    ranges = Ranges(values, family, weight, n_rows)

    def job(parts: Parts, rows: slice, group: slice) -> None:
        lines = None if weight is not None or isinstance(values, AffineView) else join_rows(values[rows, group])
        if lines is not None:
            ranges.add_lines(*lines, rows, group)
            return
        note = ranges.of_block(rows, group)
        for block, at in parts:
            note(block, at)

    for_each_row_block(job, values, n_rows, n_threads)
    return ranges.total()


def _rows_of_ranges(shape: tuple[int, int], n_threads: int) -> int:
    """Return the number of rows per set of ranges: a block, or 1/2, 1/4, ... of a block if threads would be idle."""
    n, p = shape
    n_rows = BLOCK_ROWS
    while n < n_rows * _TURNS * n_threads and n_rows * p >= 4 * SMALLEST_PART and n_threads > 1:
        n_rows //= 2
    return n_rows


class Ranges:
    """Ranges of the columns of a matrix, one set for every `n_rows` rows.

    `n_rows` divides the length of a block, so that a set covers rows of one block only.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_rows : int
        Number of rows that one set covers.
    """

    def __init__(self, values: Columns, family: int, weight: Weights, n_rows: int) -> None:
        n, p = values.shape
        self._family, self._n, self._n_rows = family, n, n_rows
        self._weight = NO_WEIGHTS if weight is None else weight
        self._parts = np.zeros((max(1, -(-n // n_rows)), p, sketch.N_RANGE))
        self._parts[..., sketch.R_MIN], self._parts[..., sketch.R_MAX] = np.inf, -np.inf

    def of_block(self, rows: slice, group: slice) -> Callable[[FloatArray, slice], None]:
        """Return a function that updates the ranges of the columns `group` by a part of the rows `rows`."""
        own = self._parts[rows.start // self._n_rows, group]

        def note(block: FloatArray, at: slice) -> None:
            sketch.range_columns(block, self._weight[at], self._family, *self._sampled(at), own)

        return note

    def add_lines(self, x: NDArray[Any], stride: int, times: int, rows: slice, group: slice) -> None:
        """Update the ranges by unweighted rows, which are processed in lines of several adjacent rows.

        The first three arguments are as `_engine.lines.join_rows` returns them.

        Parameters
        ----------
        x : (m,) ndarray
            The memory of the rows.
        stride : int
            Distance between the starts of two successive rows, in values.
        times : int
            Number of rows in a line.
        rows, group : slice
            The positions of these rows and of their columns in the matrix.
        """
        own, line = self._parts[rows.start // self._n_rows, group], np.empty((3, times * (group.stop - group.start)))
        first, step = self._sampled(rows)
        entry = sketch.range_lines32 if x.dtype == np.float32 else sketch.range_lines
        entry(x, times * stride, self._family, first * stride, step * stride, line, own)

    def _sampled(self, rows: slice) -> tuple[int, int]:
        """Return the position within `rows` of the first row whose logs are sampled, and the step to the next one."""
        start = rows.start // BLOCK_ROWS * BLOCK_ROWS
        step = max(1, min(BLOCK_ROWS, self._n - start) // SAMPLE)
        return -(rows.start - start) % step, step

    def total(self) -> FloatArray:
        """Merge the ranges of all rows into one range per column."""
        return merge_ranges(split_weights(self._parts))


_DIGITS = [sketch.R_WEIGHT, sketch.R_WEIGHT_1, sketch.R_WEIGHT_2]
_LIMB_BITS = int(math.log2(sketch.LIMB))


def split_weights(ranges: FloatArray) -> FloatArray:
    """Return ranges (last axis) with each weight split into three digits, without rounding."""
    ranges, weight = ranges.copy(), ranges[..., sketch.R_WEIGHT]
    if (weight < sketch.LIMB).all() and (weight == np.floor(weight)).all():  # one digit, as numbers of values have
        ranges[..., [*_DIGITS[1:], sketch.R_LEVEL]] = 0.0
        return ranges
    level = (np.frexp(ranges[..., sketch.R_WEIGHT])[1] - 1) // _LIMB_BITS
    rest = np.ldexp(ranges[..., sketch.R_WEIGHT], -_LIMB_BITS * level)
    for digit in _DIGITS:
        ranges[..., digit] = np.floor(rest)
        rest = (rest - ranges[..., digit]) * sketch.LIMB
    ranges[..., sketch.R_LEVEL] = np.where(ranges[..., sketch.R_WEIGHT] > 0.0, level, 0)
    return ranges


def total_weights(ranges: FloatArray) -> FloatArray:
    """Return the weight of each range (last axis), recombined from its digits."""
    level = _LIMB_BITS * ranges[..., sketch.R_LEVEL].astype(np.int64)
    digits = (np.ldexp(ranges[..., digit], level - k * _LIMB_BITS) for k, digit in enumerate(_DIGITS))
    total: FloatArray = sum(digits, np.zeros(ranges.shape[:-1]))
    return total


def _align_digits(ranges: FloatArray, level: FloatArray) -> FloatArray:
    """Return the digits of the weights of `ranges`, shifted to the exponents `level`; too small digits are dropped."""
    digits, down = ranges[..., _DIGITS], (level - ranges[..., sketch.R_LEVEL])[..., None]
    moved: FloatArray = np.where(down == 0.0, digits, 0.0)
    moved[..., 1:] += np.where(down == 1.0, digits[..., :-1], 0.0)
    moved[..., 2:] += np.where(down == 2.0, digits[..., :-2], 0.0)
    return moved


def merge_ranges(parts: FloatArray) -> FloatArray:
    """Merge ranges (last axis) over all parts (first axis).

    Counts, digits of weights and sums over sampled logs are integers, which are added without rounding. A column that
    is outside the domain in any part is marked in the result. Infinite values take precedence over other values outside
    the domain.
    """
    if len(parts) == 1:
        only: FloatArray = parts[0]
        return only
    with np.errstate(over="ignore"):  # extremes are not sums, and may overflow
        merged: FloatArray = parts.sum(axis=0)
    merged[..., sketch.R_MIN] = parts[..., sketch.R_MIN].min(axis=0)
    merged[..., sketch.R_MAX] = parts[..., sketch.R_MAX].max(axis=0)
    counts = parts[..., sketch.R_COUNT]
    if counts.min(initial=0.0) < 0.0:
        outside = np.where(counts < 0.0, counts, -np.inf).max(axis=0)  # BAD_INFINITE is the larger code
        merged[..., sketch.R_COUNT] = np.where(np.isfinite(outside), outside, merged[..., sketch.R_COUNT])
    if parts[..., sketch.R_LEVEL].any():
        level = np.where(parts[..., sketch.R_WEIGHT] > 0.0, parts[..., sketch.R_LEVEL], -np.inf).max(axis=0)
        level[np.isinf(level)] = 0.0
        merged[..., sketch.R_LEVEL] = level
        merged[..., _DIGITS] = _align_digits(parts, level).sum(axis=0)
    return merged
