"""Fits, profiles and intervals of long columns from power sums over blocks of their rows.

A sketch costs as much as two evaluations of the likelihood, reads the data once, and uses all threads for one column.
Power sums are stored as integer multiples of a quantum, one for each column, so that they do not depend on the order in
which blocks, chunks or sites are merged. Ranges do not depend on this order either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from powerkern._engine import by_column
from powerkern._engine.by_column import for_each_group
from powerkern._engine.by_row_block import Parts, for_each_row_block
from powerkern._engine.gather import NO_WEIGHTS, Columns
from powerkern._estimators.ranges import BLOCK_ROWS, Ranges, range_matrix, total_weights
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, IntArray, Weights
from powerkern.kernels.censored.fit import LOC_ERROR, N_CENSORED_FIELDS
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.likelihood.scratch import new_scratch
from powerkern.kernels.power_sums import fit as sketch
from powerkern.kernels.power_sums import gauss, grids, sample
from powerkern.kernels.power_sums import ranges as range_kernels
from powerkern.kernels.power_sums import sums as sum_kernels
from powerkern.kernels.results import N_RESULTS, STATUS, ColumnFit
from powerkern.kernels.transforms.family import is_mirrored

#: Sums in units of the quantum stay below 2**_BITS for the announced weight, and must stay below 2**ROOM for more data.
_BITS, ROOM = 59, 61
#: Number of values that describe the rounding of the sums of a column.
N_ROUNDINGS = 4
_NO_WEIGHT = 2.0**-960
_LARGEST = float(np.finfo(np.float64).max)
#: Relative error of references that are powers of e.
_REFERENCE_ERROR = 2.0**-51

#: Rows of the sample that predicts the ranges of columns.
_GUESSED = 2**15
#: Number of columns that are copied at a time when columns are fitted again.
_COPIED = 8


def fit_long_columns(
    values: Columns,
    family: int,
    lmbda: FloatArray,
    weight: Weights,
    n_threads: int,
    progress: bool = False,
) -> FloatArray:
    """Fit columns of many rows from power sums, reading the data once if a sample of the rows predicts their ranges.

    Columns for which the sums are not accurate enough are fitted from their values. Arguments and result are as for
    `fit_matrix` in `_engine.by_column`.
    """
    n = len(values)
    step = max(1, n // _GUESSED)
    some = None if weight is None else weight[::step].copy()
    guess = widen_ranges(range_matrix(values[::step], family, some, n_threads), family)
    cells = make_grids(guess, family, total=n if weight is None else float(weight.sum()))
    ranges, sums = Ranges(values, family, weight, BLOCK_ROWS), Sketches(values, family, weight, cells)

    def job(parts: Parts, rows: slice, group: slice) -> None:
        note = ranges.of_block(rows, group)
        with sums.of_block(group) as add:
            for block, at in parts:
                note(block, at)
                add(block, at)

    for_each_row_block(job, values, BLOCK_ROWS, n_threads, progress)
    found = ranges.total()
    results, _ = PowerSums(sums.totals, sums.roundings, family, _with_extremes(cells, found)).fit(lmbda, n_threads)

    outside = found[:, range_kernels.R_COUNT] < 0.0
    results[outside, STATUS] = found[outside, range_kernels.R_COUNT]

    def on_own_grids(x: Columns, at: IntArray) -> FloatArray:
        return _compute_power_sums(x, family, found[at], weight, n_threads).fit(lmbda[at], n_threads)[0]

    def direct(x: Columns, at: IntArray) -> FloatArray:
        return by_column.fit_matrix(x, family, lmbda[at], weight, n_threads, progress, lockstep=False)

    _redo(on_own_grids, ~outside & (sums.inside == 0), values, results)
    _redo(direct, ~outside & (results[:, STATUS] == Status.UNRESOLVED), values, results)
    return results


def _redo(
    job: Callable[[Columns, IntArray], FloatArray],
    chosen: BoolArray,
    values: Columns,
    out: FloatArray,
) -> None:
    """Replace the results of some columns by the results of another algorithm.

    Parameters
    ----------
    job : function
        Takes columns and their positions; returns their results.
    chosen : (p,) ndarray of bool
        The columns. They may be copied, and are therefore fitted a few at a time.
    values : (n, p) ndarray or AffineView
        The matrix.
    out : (p, ...) ndarray
        The results; changed in place.
    """
    every = np.flatnonzero(chosen)
    for at in np.split(every, range(_COPIED, every.size, _COPIED)) if every.size else ():
        together = int(at[-1]) - int(at[0]) < at.size
        out[at] = job(values[:, at[0] : at[-1] + 1] if together else values[:, at], at)


def widen_ranges(ranges: FloatArray, family: int) -> FloatArray:
    """Extend ranges at both ends by half of their width on the log scale, without changing the sign of an end.

    Parameters
    ----------
    ranges : (p, N_RANGE) ndarray
        The ranges.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    """
    ends = ranges[:, [range_kernels.R_MIN, range_kernels.R_MAX]]
    least = np.nextafter(0.0, 1.0)
    with np.errstate(all="ignore"):  # columns without a value in the sample
        logs = signed_logs(ends, family)
        logs += 0.5 * (logs[:, 1:] - logs[:, :1]) * [-1.0, 1.0]
        wide = np.exp(logs) if not is_mirrored(family) else np.copysign(np.expm1(abs(logs)), logs)
        low, high = np.minimum(wide[:, 0], ends[:, 0]), np.maximum(wide[:, 1], ends[:, 1])
        low = np.where(ends[:, 0] >= 0.0, np.maximum(low, least if not is_mirrored(family) else 0.0), low)
        high = np.where(ends[:, 1] < 0.0, np.minimum(high, -least), high)
    wider = ranges.copy()
    wider[:, range_kernels.R_MIN], wider[:, range_kernels.R_MAX] = (
        np.maximum(low, -_LARGEST),
        np.minimum(high, _LARGEST),
    )
    return wider


def signed_logs(values: FloatArray, family: int) -> FloatArray:
    """Return the logs that the transform exponentiates: ln(x) for Box-Cox, sign(x) ln(1 + abs(x)) for Yeo-Johnson."""
    logs: FloatArray = np.copysign(np.log1p(abs(values)), values) if is_mirrored(family) else np.log(values)
    return logs


def _with_extremes(cells: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return copies of grids with the smallest and the largest values of `ranges` in place of their own."""
    cells = cells.copy()
    some = ranges[:, range_kernels.R_COUNT] > 0.0
    cells[some, grids.G_MIN], cells[some, grids.G_MAX] = (
        ranges[some, range_kernels.R_MIN],
        ranges[some, range_kernels.R_MAX],
    )
    return cells


def profile_long_columns(
    values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Evaluate the profile likelihood as `profile_matrix` does, from power sums where these are accurate enough.

    Arguments and result are as for `profile_matrix` in `_engine.by_column`.
    """
    largest = float(np.maximum(abs(lmbdas), abs(2.0 - lmbdas)).max())
    found = range_matrix(values, family, weight, n_threads)
    sums = _compute_power_sums(values, family, found, weight, n_threads, largest)
    g = sums.profile(lmbdas, n_threads)
    coarse = np.ldexp(largest, sums.cells[:, grids.G_EXPONENT].astype(np.int64)) > grids.WIDTH
    _redo(lambda x, _: by_column.profile_matrix(x, family, lmbdas, weight, n_threads), coarse, values, g)
    return g


def find_long_intervals(
    values: Columns, family: int, lmbda: FloatArray, drop: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Find likelihood intervals as `interval_matrix` does, from power sums where these are accurate enough.

    Arguments and result are as for `interval_matrix` in `_engine.by_column`.
    """
    sums = _compute_power_sums(values, family, range_matrix(values, family, weight, n_threads), weight, n_threads)
    ends = sums.interval(lmbda, drop, n_threads)
    coarse = sums.fit(np.full(len(lmbda), np.nan), n_threads)[0][:, STATUS] == Status.UNRESOLVED

    def direct(x: Columns, at: IntArray) -> FloatArray:
        return by_column.interval_matrix(x, family, lmbda[at], drop[at], weight, n_threads)

    _redo(direct, coarse, values, ends)
    return ends


def _compute_power_sums(
    values: Columns,
    family: int,
    ranges: FloatArray,
    weight: Weights,
    n_threads: int,
    largest_exponent: float = 0.0,
) -> PowerSums:
    """Compute the power sums of all columns on grids chosen for their ranges.

    The arguments are as for `make_grids` and `sketch_matrix`.
    """
    cells = make_grids(ranges, family, largest_exponent)
    sketches = sketch_matrix(values, family, cells, weight, n_threads)
    return PowerSums(sketches.totals, sketches.roundings, family, cells)


def fit_vector(x: FloatArray, family: int, lmbda: float = np.nan) -> ColumnFit:
    """Fit one vector of any length from power sums, by the algorithm for long columns."""
    values, weight = x.reshape(-1, 1), None
    sums = _compute_power_sums(values, family, range_matrix(values, family, weight, 1), weight, 1)
    return ColumnFit(*sums.fit(np.array([lmbda]), 1)[0][0].tolist())


def make_grids(
    ranges: FloatArray, family: int, largest_exponent: float = 0.0, stream: bool = False, total: float = 0.0
) -> FloatArray:
    """Return the grids for the power sums of columns of known ranges, (p, N_GRID); see `kernels.power_sums`.

    Parameters
    ----------
    ranges : (p, N_RANGE) ndarray
        The ranges of the columns.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    largest_exponent : float
        The largest exponent that is expected, in units of 1/spread of the logs; 0: the default.
    stream : bool
        Whether later rows may have values outside the ranges.
    total : float
        Weight to expect in each column, if it is larger than the weight in the column's range.
    """
    cells = np.empty((len(ranges), grids.N_GRID))
    grids.grid_columns(ranges, family, largest_exponent, int(stream), cells)
    used = cells[:, grids.G_BINS] > 0.0
    cells[used, grids.G_QUANTUM] = quantum_exponents(np.maximum(total_weights(ranges[used]), total))
    return cells


def references_for(cells: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ln(r) and r, where r are the references that Box-Cox streams use for the grids `cells`."""
    reference_logs, references = np.empty(len(cells)), np.empty(len(cells))
    grids.write_stream_references(np.array(cells), reference_logs, references)
    return reference_logs, references


def is_on_reference_grid(cells: FloatArray) -> BoolArray:
    """Return a mask of the grids whose reference agrees, up to rounding, with the reference of `references_for`."""
    references = references_for(cells)[1]
    on: BoolArray = abs(cells[:, grids.G_REF] - references) <= _REFERENCE_ERROR * references
    return on


def quantum_exponents(weight: FloatArray) -> FloatArray:
    """Return the exponent e of each column's quantum 2**e; sums are stored as integer multiples of the quantum.

    The total weight of the column, `weight`, is below 2**_BITS quanta.
    """
    exponents: FloatArray = np.frexp(np.maximum(weight, _NO_WEIGHT))[1] - float(_BITS)
    return exponents


def bin_starts(cells: FloatArray) -> IntArray:
    """Return the position of the first bin of each column, followed by the total number of bins: p + 1 integers.

    `cells` holds the grids of the columns, (p, N_GRID).
    """
    starts = np.zeros(len(cells) + 1, dtype=np.int64)
    cells[:, grids.G_BINS].astype(np.int64).cumsum(out=starts[1:])
    return starts


def sketch_matrix(values: Columns, family: int, cells: FloatArray, weight: Weights, n_threads: int) -> Sketches:
    """Compute the power sums of all columns.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    cells : (p, N_GRID) ndarray
        The grids of the columns.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    n_threads : int
        Maximum number of threads.
    """
    sums = Sketches(values, family, weight, cells)

    def job(parts: Parts, rows: slice, group: slice) -> None:
        with sums.of_block(group) as add:
            for block, at in parts:
                add(block, at)

    for_each_row_block(job, values, BLOCK_ROWS, n_threads)
    return sums


class Sketches:
    """Power sums over blocks of rows, accumulated as multiples of a quantum.

    Parameters
    ----------
    values : (n, p) ndarray or AffineView
        The matrix.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    cells : (p, N_GRID) ndarray
        The grids of the columns.

    Attributes
    ----------
    totals : (bins of all columns, N_POWERS) ndarray of int64
        The sums.
    roundings : (p, 4) ndarray of int64
        For each column: the number of times that its sums were rounded to quanta, the number of rows summed, the number
        of sums of weights that were rounded to 0, and the number of times that its sums were moved to another
        reference.
    inside : (p,) ndarray of int64
        0 for a column that has values outside its grid, otherwise 1.
    """

    def __init__(self, values: Columns, family: int, weight: Weights, cells: FloatArray) -> None:
        p = values.shape[1]
        self._family, self._cells = family, cells
        self._weight = NO_WEIGHTS if weight is None else weight
        self._starts = bin_starts(cells)
        self._per_quantum = np.ldexp(1.0, -cells[:, grids.G_QUANTUM].astype(np.int64))
        self._total = np.zeros(p)
        self.totals = np.zeros((int(self._starts[-1]), gauss.N_POWERS), dtype=np.int64)
        self.roundings = np.zeros((p, N_ROUNDINGS), dtype=np.int64)
        self.inside = np.ones(p, dtype=np.int64)
        self._adding = threading.Lock()

    @contextmanager
    def of_block(self, group: slice) -> Iterator[Callable[[FloatArray, slice], None]]:
        """Yield a function that adds rows of one block to the sums of the columns `group`.

        On exit, the sums of the block are rounded to quanta and added to the totals, unless these no longer fit in 64
        bits.
        """
        first, last = int(self._starts[group.start]), int(self._starts[group.stop])
        starts, chunk = self._starts[group.start : group.stop + 1] - first, sum_kernels.new_chunk()
        part = _aligned_zeros((last - first) * gauss.N_POWERS)
        cells, inside, rows = self._cells[group], self.inside[group], 0

        def add(block: FloatArray, at: slice) -> None:
            nonlocal rows
            rows += at.stop - at.start
            sum_kernels.sketch_columns(block, self._weight[at], self._family, cells, chunk, part, starts, inside)

        yield add
        width, n_bins = group.stop - group.start, np.diff(starts)
        per_quantum = self._per_quantum[group]
        part *= np.repeat(per_quantum, gauss.N_POWERS * n_bins) if width > 1 else per_quantum
        sums, column = part.reshape(-1, gauss.N_POWERS), np.repeat(np.arange(width), n_bins)
        total = np.bincount(column, sums[:, 0], width)
        light = (sums[:, 0] > 0.0) & (sums[:, 0] <= 0.5)
        lost = np.bincount(column[light], minlength=width) if light.any() else 0
        quanta = np.rint(sums, out=sums)
        with self._adding:
            self._total[group] += total
            if self.has_room(group).all():
                self.totals[first:last] += quanta.astype(np.int64)
            self.roundings[group] += _roundings_of(total > 0.0, rows, lost)

    def has_room(self, group: slice = slice(None)) -> BoolArray:
        """Return a mask of the columns whose weight, in quanta, fits in 64 bits."""
        room: BoolArray = self._total[group] < 2.0**ROOM
        return room


def _roundings_of(some: BoolArray, rows: int, lost: NDArray[np.intp] | int) -> IntArray:
    """Return the increments of `Sketches.roundings` for a block of rows.

    Parameters
    ----------
    some : (p,) ndarray of bool
        Columns that have weight in the block.
    rows : int
        Number of rows in the block.
    lost : (p,) ndarray or int
        Number of bins of each column whose weight rounds to 0.
    """
    found = np.zeros((some.size, N_ROUNDINGS), dtype=np.int64)
    found[:, 0], found[:, 1], found[:, 2] = some, rows * some, lost
    return found


def _aligned_zeros(n: int) -> FloatArray:
    """Return n zeros in memory that starts at the beginning of a cache line."""
    room = np.zeros(n + 8)
    start = -room.ctypes.data // room.itemsize % 8
    return room[start : start + n]


def no_censored_results(p: int) -> FloatArray:
    """Return the results on censored cells, (p, N_CENSORED_FIELDS), for p columns without such cells."""
    table = np.zeros((p, N_CENSORED_FIELDS))
    table[:, LOC_ERROR:] = np.nan
    return table


class MixedSums:
    """Power sums of columns of different kinds, for example of both families, with the interface of `PowerSums`.

    Parameters
    ----------
    parts : sequence of (ndarray, PowerSums or MixedSums)
        Positions of the columns of each kind, and their sums.
    """

    def __init__(self, parts: Sequence[tuple[IntArray, PowerSums | MixedSums]]) -> None:
        self._parts = [(at, sums) for at, sums in parts if at.size]

    def fit(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Fit all columns; see `PowerSums.fit`."""
        results, _, error = self.fit_censored(lmbda, n_threads)
        return results, error

    def fit_censored(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fit all columns; see `PowerSums.fit_censored`."""
        found = [sums.fit_censored(lmbda[at], n_threads) for at, sums in self._parts]
        results, censored, error = zip(*found, strict=True)
        return self._join_families(results), self._join_families(censored), self._join_families(error)

    def profile(self, lmbdas: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood of every column at every lambda; see `PowerSums.profile`."""
        return self._join_families([sums.profile(lmbdas, n_threads) for _, sums in self._parts])

    def likelihood(self, lmbda: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood of each column at its lambda; see `PowerSums.likelihood`."""
        return self._join_families([sums.likelihood(lmbda[at], n_threads) for at, sums in self._parts])

    def interval(self, lmbda: FloatArray, drop: FloatArray, n_threads: int) -> FloatArray:
        """Return the ends of the likelihood interval of each column; see `PowerSums.interval`."""
        return self._join_families([sums.interval(lmbda[at], drop[at], n_threads) for at, sums in self._parts])

    def _join_families(self, results: Sequence[FloatArray]) -> FloatArray:
        """Concatenate the results of the kinds, in the original order of the columns."""
        order = np.argsort(np.concatenate([at for at, _ in self._parts]))
        joined: FloatArray = np.concatenate(results)[order]
        return joined


class PowerSums:
    """The power sums of several columns, from which they can be fitted.

    Parameters
    ----------
    totals : (bins of all columns, N_POWERS) ndarray of int64
        The sums, in quanta, as in `Sketches`.
    roundings : (p, 4) ndarray of int64
        Counts of the roundings of each column's sums, as in `Sketches`.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    cells : (p, N_GRID) ndarray
        The grids of the columns.
    """

    def __init__(self, totals: IntArray, roundings: IntArray, family: int, cells: FloatArray) -> None:
        self.totals, self.family, self.cells = totals, family, cells
        self._roundings = np.minimum(roundings, [_LARGEST, BLOCK_ROWS, _LARGEST, 1.0])
        self._starts = bin_starts(cells)

    def fit(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Fit all columns; return the results, (p, N_RESULTS), and bounds on the error of lambda due to the sums.

        Parameters
        ----------
        lmbda : (p,) ndarray
            Given lambdas; NaN where lambda is to be fitted.
        n_threads : int
            Maximum number of threads.
        """
        results, _, error = self.fit_censored(lmbda, n_threads)
        return results, error

    def fit_censored(self, lmbda: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fit all columns; return the results, the results on censored cells, and bounds on the error of lambda.

        See `fit`. The results on censored cells have shape (p, N_CENSORED_FIELDS).
        """
        out = np.empty((len(self.cells), N_RESULTS))
        error = np.empty(len(self.cells))

        def job(group: slice) -> None:
            given, found = (self._roundings[group], lmbda[group]), (out[group], error[group])
            sketch.fit_sums(*self._columns(group), *given, *self._scratch(group), *found)

        for_each_group(job, self._shape, n_threads)
        return out, no_censored_results(len(out)), error

    def profile(self, lmbdas: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood g, per unit of weight, of every column at every lambda."""
        out = np.empty((len(self.cells), lmbdas.size))

        def job(group: slice) -> None:
            self._write_profile(group, lmbdas, out[group])

        for_each_group(job, self._shape, n_threads)
        return out

    def likelihood(self, lmbda: FloatArray, n_threads: int) -> FloatArray:
        """Return the negative profile log-likelihood of each column at its own lambda: lmbda[j] for column j."""
        out = np.empty((len(self.cells), 1))

        def job(group: slice) -> None:
            for j in range(group.start, group.stop):
                one = slice(j, j + 1)
                self._write_profile(one, lmbda[one], out[one])

        for_each_group(job, self._shape, n_threads)
        return out[:, 0]

    def interval(self, lmbda: FloatArray, drop: FloatArray, n_threads: int) -> FloatArray:
        """Return the interval of lambda of each column, (p, 2).

        At its ends, the negative profile log-likelihood per unit of weight is `drop` above its minimum.

        Parameters
        ----------
        lmbda, drop : (p,) ndarray
            For each column, the lambda that minimises the negative profile log-likelihood per unit of weight, and the
            increase from this minimum to the ends of the interval.
        n_threads : int
            Maximum number of threads.
        """
        out = np.empty((len(self.cells), 2))
        at = np.column_stack([lmbda, drop])

        def job(group: slice) -> None:
            self._write_interval(group, at[group], out[group])

        for_each_group(job, self._shape, n_threads)
        return out

    def _write_profile(self, group: slice, lmbdas: FloatArray, out: FloatArray) -> None:
        """Write the negative profile log-likelihood of the columns in `group` at every lambda to `out`."""
        sketch.profile_sums(*self._columns(group), lmbdas, *self._scratch(group), out)

    def _write_interval(self, group: slice, at: FloatArray, out: FloatArray) -> None:
        """Write the interval ends of the columns in `group` to `out`; `at` holds lambda and drop of each column."""
        sketch.interval_sums(*self._columns(group), at, *self._scratch(group), out)

    @property
    def _shape(self) -> tuple[int, int]:
        """Shape of a matrix that would take as long to fit as these sums, used to divide the work among threads."""
        return max(1, gauss.N_NODES * int(self.cells[:, grids.G_BINS].max(initial=0.0))), len(self.cells)

    def _columns(self, group: slice) -> tuple[FloatArray, IntArray, int, FloatArray]:
        starts = self._starts[group.start : group.stop + 1]
        cells = self.cells[group]
        quanta = np.repeat(np.ldexp(1.0, cells[:, grids.G_QUANTUM].astype(np.int64)), np.diff(starts))
        sums = self.totals[starts[0] : starts[-1]] * quanta[:, None]
        return sums, starts - starts[0], self.family, cells

    def _scratch(self, group: slice) -> tuple[sample.Nodes, Scratch]:
        n_bins = int(self.cells[group, grids.G_BINS].max(initial=0.0))
        return sample.new_nodes(max(1, n_bins)), new_scratch()
