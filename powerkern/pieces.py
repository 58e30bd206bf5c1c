"""The row driver: ranges and power sums of pieces of rows on a pool of threads, and what follows from the sums.

Fits of few long columns, and profiles and intervals of long ones, take this way: a sketch costs what two evaluations of
the likelihood cost, and uses all threads for one column.

The sums of a piece are rounded to whole numbers of a quantum, a power of two some 2**58 times smaller than the total
weight. Whole numbers add up to the same bits in any order: results depend neither on the number of threads nor on
the order in which pieces, chunks or sites are merged.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern import columns
from powerkern._status import Status
from powerkern.columns import Tiles, for_each_group, for_each_piece
from powerkern.kernels import mle, sketch
from powerkern.kernels.likelihood import BLOCK, N_MOMENTS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Rows of a piece.
PIECE = 131_072
#: Whole numbers stay below 2**_BITS; two bits more are room for data that were not announced.
_BITS = 59
_NO_WEIGHT = 2.0**-960
#: Values of a column in a piece that are looked at to learn the spread of the logs.
SAMPLE = 256

#: Columns as long as _TALL are fitted from sketches when there are at most _FEW of them. (Not by the number of threads,
#: on which no result may depend.)
_TALL = 2**22
_FEW = 2
#: Profiles of columns as long as _LONG at _MANY lambdas, and intervals, come from sketches.
_LONG = 32_768
_MANY = 4


def fit_matrix(
    values: NDArray[Any],
    family: int,
    lmbda: FloatArray,
    weight: FloatArray,
    n_threads: int,
    progress: bool = False,
) -> tuple[FloatArray, Sums | None]:
    """`columns.fit_matrix`; few long columns from power sums, which come with the result where they sufficed."""
    n, p = values.shape
    if n < _TALL or p > _FEW:
        return columns.fit_matrix(values, family, lmbda, weight, n_threads, progress), None
    found = range_matrix(values, family, weight, n_threads)
    if (found[:, sketch.R_COUNT] < 0.0).any():
        results = np.full((p, mle.N_RESULTS), np.nan)
        results[:, mle.STATUS] = np.minimum(found[:, sketch.R_COUNT], Status.OK)
        return results, None
    sums = _summed(values, family, found, weight, n_threads)
    results, _ = sums.fit(lmbda, n_threads)
    unresolved = results[:, mle.STATUS] == Status.UNRESOLVED
    if not unresolved.any():
        return results, sums
    results[unresolved] = columns.fit_matrix(
        values[:, unresolved], family, lmbda[unresolved], weight, n_threads, progress
    )
    return results, None


def profile_matrix(
    values: NDArray[Any], family: int, lmbdas: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """`columns.profile_matrix`, from power sums where that is faster."""
    if values.shape[0] < _LONG or lmbdas.size < _MANY:
        return columns.profile_matrix(values, family, lmbdas, weight, n_threads)
    largest = float(np.maximum(abs(lmbdas), abs(2.0 - lmbdas)).max())
    found = range_matrix(values, family, weight, n_threads)
    sums = _summed(values, family, found, weight, n_threads, largest)
    g = sums.profile(lmbdas, n_threads)
    coarse = np.ldexp(largest, sums.cells[:, sketch.G_EXPONENT].astype(np.int64)) > sketch.WIDTH
    if coarse.any():
        g[coarse] = columns.profile_matrix(values[:, coarse], family, lmbdas, weight, n_threads)
    return g


def interval_matrix(
    values: NDArray[Any], family: int, lmbda: FloatArray, drop: FloatArray, weight: FloatArray, n_threads: int
) -> FloatArray:
    """`columns.interval_matrix`, from power sums where that is faster."""
    if values.shape[0] < _LONG:
        return columns.interval_matrix(values, family, lmbda, drop, weight, n_threads)
    sums = _summed(values, family, range_matrix(values, family, weight, n_threads), weight, n_threads)
    ends = sums.interval(lmbda, drop, n_threads)
    coarse = sums.fit(np.full(len(lmbda), np.nan), n_threads)[0][:, mle.STATUS] == Status.UNRESOLVED
    if coarse.any():
        ends[coarse] = columns.interval_matrix(
            values[:, coarse], family, lmbda[coarse], drop[coarse], weight, n_threads
        )
    return ends


def _summed(
    values: NDArray[Any],
    family: int,
    found: FloatArray,
    weight: FloatArray,
    n_threads: int,
    largest_exponent: float = 0.0,
) -> Sums:
    """Power sums of all columns, on grids for their ranges."""
    cells = np.empty((len(found), sketch.N_GRID))
    sketch.grid_columns(found, family, largest_exponent, np.zeros(len(found), dtype=np.int64), cells)
    quantum = quantum_for(float(found[:, sketch.R_WEIGHT].max()))
    totals, _ = sketch_matrix(values, family, cells, quantum, weight, n_threads)
    return Sums(totals, family, cells, quantum)


def range_matrix(values: NDArray[Any], family: int, weight: FloatArray, n_threads: int) -> FloatArray:
    """Ranges of all columns (see `kernels.sketch`): (p, N_RANGE); a negative count marks values out of the domain."""
    n, p = values.shape
    parts = np.zeros((max(1, -(-n // PIECE)), p, sketch.N_RANGE))
    parts[..., sketch.R_MIN], parts[..., sketch.R_MAX] = np.inf, -np.inf

    def job(tiles: Tiles, rows: slice, group: slice) -> None:
        stride = max(1, (rows.stop - rows.start) // SAMPLE)
        own, chunk = parts[rows.start // PIECE, group], sketch.new_chunk()
        for block, at in tiles:
            first = -(at.start - rows.start) % stride
            sketch.range_columns(block, weight[at], family, first, stride, chunk, own)

    for_each_piece(job, values, PIECE, n_threads)
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = np.concatenate([merge_ranges(parts[: len(parts) - len(odd) : 2], parts[1::2]), odd])
    total: FloatArray = parts[0]
    return total


def merge_ranges(a: FloatArray, b: FloatArray) -> FloatArray:
    """The ranges, in the last axis, of the rows of both; what is out of the domain stays so."""
    merged = a + b
    merged[..., sketch.R_MIN] = np.minimum(a[..., sketch.R_MIN], b[..., sketch.R_MIN])
    merged[..., sketch.R_MAX] = np.maximum(a[..., sketch.R_MAX], b[..., sketch.R_MAX])
    outside = np.minimum(a[..., sketch.R_COUNT], b[..., sketch.R_COUNT])
    merged[..., sketch.R_COUNT] = np.where(outside < 0, outside, merged[..., sketch.R_COUNT])
    share = b[..., sketch.R_SAMPLE] / np.maximum(merged[..., sketch.R_SAMPLE], 1.0)
    delta = b[..., sketch.R_MEAN] - a[..., sketch.R_MEAN]
    merged[..., sketch.R_MEAN] = a[..., sketch.R_MEAN] + delta * share
    merged[..., sketch.R_SQUARES] += delta * delta * share * a[..., sketch.R_SAMPLE]
    return merged


def quantum_for(weight: float) -> int:
    """Exponent of the quantum for sums of this total weight."""
    return math.frexp(max(weight, _NO_WEIGHT))[1] - _BITS


def starts_of(cells: FloatArray) -> IntArray:
    """Where the bins of each column start, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(cells[:, sketch.G_BINS])]).astype(np.int64)


def sketch_matrix(
    values: NDArray[Any], family: int, cells: FloatArray, quantum: int, weight: FloatArray, n_threads: int
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Power sums of all columns in quanta, (bins of all columns, N_POWERS), and which columns stay on their grids."""
    starts = starts_of(cells)
    totals = np.zeros((int(starts[-1]), sketch.N_POWERS), dtype=np.int64)
    inside = np.ones(len(cells), dtype=np.int64)
    adding = threading.Lock()

    def job(tiles: Tiles, rows: slice, group: slice) -> None:
        own = starts[group.start : group.stop + 1]
        part, chunk = _aligned_zeros(int(own[-1] - own[0]) * sketch.N_POWERS), sketch.new_chunk()
        for block, at in tiles:
            sketch.sketch_columns(block, weight[at], family, cells[group], chunk, part, own - own[0], inside[group])
        part *= 2.0**-quantum
        quanta = np.rint(part, out=part).astype(np.int64).reshape(-1, sketch.N_POWERS)
        with adding:
            totals[own[0] : own[-1]] += quanta

    for_each_piece(job, values, PIECE, n_threads)
    return totals, inside.astype(bool)


def _aligned_zeros(n: int) -> FloatArray:
    """Zeros whose rows of eight are cache lines."""
    room = np.zeros(n + 8)
    start = -room.ctypes.data // room.itemsize % 8
    return room[start : start + n]


class Sums:
    """Sketched columns, ready to be fitted."""

    def __init__(self, totals: IntArray, family: int, cells: FloatArray, quantum: int) -> None:
        self.totals, self.family, self.cells, self.quantum = totals, family, cells, quantum
        self._starts = starts_of(cells)

    def fit(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Results (p, mle.N_RESULTS) and bounds of what the sketch adds to the error of lambda."""
        out = np.empty((len(self.cells), mle.N_RESULTS))
        error = np.empty(len(self.cells))

        def job(group: slice) -> None:
            sketch.fit_sums(*self._columns(group), lmbda[group], *self._scratch(group), out[group], error[group])

        for_each_group(job, self._shape, n_threads)
        return out, error

    def profile(self, lmbdas: FloatArray, n_threads: int) -> FloatArray:
        """g of every column at every lambda."""
        out = np.empty((len(self.cells), lmbdas.size))

        def job(group: slice) -> None:
            sketch.profile_sums(*self._columns(group), lmbdas, *self._scratch(group), out[group])

        for_each_group(job, self._shape, n_threads)
        return out

    def interval(self, lmbda: FloatArray, drop: FloatArray, n_threads: int) -> FloatArray:
        """Lambdas at which g exceeds its minimum by `drop`: (p, 2)."""
        out = np.empty((len(self.cells), 2))
        at = np.column_stack([lmbda, drop])

        def job(group: slice) -> None:
            sketch.interval_sums(*self._columns(group), at[group], *self._scratch(group), out[group])

        for_each_group(job, self._shape, n_threads)
        return out

    @property
    def _shape(self) -> tuple[int, int]:
        """A matrix that would be as much work."""
        return max(1, sketch.N_NODES * int(self.cells[:, sketch.G_BINS].max(initial=0.0))), len(self.cells)

    def _columns(self, group: slice) -> tuple[FloatArray, IntArray, int, FloatArray]:
        starts = self._starts[group.start : group.stop + 1]
        sums = np.ldexp(self.totals[starts[0] : starts[-1]].astype(np.float64), self.quantum)
        return sums, starts - starts[0], self.family, self.cells[group]

    def _scratch(self, group: slice) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        n_bins = int(self.cells[group, sketch.G_BINS].max(initial=0.0))
        return sketch.new_nodes(max(1, n_bins)), (np.empty((4, BLOCK)), np.empty((2, N_MOMENTS)))
