"""Arrange many groups of rows as matrices with one column for each pair of a group and a data column.

Groups of similar length share a matrix, in which NaN pads the shorter groups. Kernels that handle missing values and
many columns therefore need not know about groups.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import BlockScratch, is_native
from powerkern._engine.threads import progress_bar, run_parallel
from powerkern._input.labels import Runs
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.transforms import ragged
from powerkern.kernels.transforms import runs as by_run

#: Values in a batch, unless one group has more.
_BATCH = 262_144
#: Largest ratio of the longest to the shortest padded group of a batch.
_PADDING = 1.04
_NO_ORDER = np.empty(0, dtype=np.int64)
#: Smallest mean number of rows per run for which runs are transformed in place, since each run needs a block of
#: constants, and number of values per task.
_ROWS_OF_A_RUN, _PART = 16, 131_072


class Groups:
    """The rows of each group, as index ranges.

    The rows of group codes[k] are ``order[starts[k]:starts[k] + lengths[k]]``. If `order` is empty, they are the
    consecutive rows ``starts[k]:starts[k] + lengths[k]``.

    Parameters
    ----------
    runs : Runs
        The group of each row.
    n_groups : int
        Number of groups.
    padded_up_to : int
        Groups with at most this many rows may be padded slightly, to share a matrix with longer groups.

    Attributes
    ----------
    codes : (G,) ndarray of int
        The groups that have rows, shortest first.
    starts, lengths : (G,) ndarray of int
        Start and length of each of these groups in `order`.
    order : ndarray of int
        Row indices, one group after the other; empty if the rows of every group are consecutive.
    """

    def __init__(self, runs: Runs, n_groups: int, padded_up_to: int = 0) -> None:
        self._padded_up_to = padded_up_to
        kept = runs.codes >= 0
        whole = runs if kept.all() else Runs(runs.codes[kept], runs.starts[kept], runs.lengths[kept])
        weights = None if whole.codes.size == whole.n_rows else whole.lengths
        lengths = np.bincount(whole.codes, weights, n_groups).astype(np.int64)
        codes = np.argsort(lengths, kind="stable")
        self.codes = codes[np.searchsorted(lengths[codes], 1) :]
        self.lengths = lengths[self.codes]
        starts = np.zeros(n_groups, dtype=np.int64)
        if whole.codes.size == self.codes.size:
            starts[whole.codes] = whole.starts
            self.order = _NO_ORDER
        else:
            starts[1:] = np.cumsum(lengths)[:-1]
            self.order = np.empty(int(lengths.sum()), dtype=np.int64)
            ragged.order_rows(whole.codes, whole.starts, whole.lengths, starts.copy(), self.order)
        self.starts = starts[self.codes]

    def rows(self, k: int) -> NDArray[np.int64] | slice:
        """Return the rows of the k-th group, as indices or as a slice."""
        part = slice(int(self.starts[k]), int(self.starts[k] + self.lengths[k]))
        return self.order[part] if self.order.size else part

    def batches(self, p: int) -> list[slice]:
        """Divide groups into batches of similar length, so that each batch makes a matrix of some 100,000 values.

        `p` is the number of data columns.
        """
        batches, k, n = [], 0, self.lengths.size
        while k < n:
            # only short groups are padded: they are fitted in lockstep, where missing values change no bit
            most = int(self.lengths[k])
            if most <= self._padded_up_to:
                most = min(max(int(most * _PADDING), most + 1), self._padded_up_to)
            width = max(1, _BATCH // (most * p))
            stop = min(k + width, int(np.searchsorted(self.lengths, most, side="right")))
            batches.append(slice(k, stop))
            k = stop
        return batches

    def for_each_batch(self, job: Callable[[slice, int], None], p: int, n_threads: int, progress: bool = False) -> None:
        """Call `job` for batches of groups.

        If there are enough batches, they are processed in parallel, each on one thread. Otherwise they are processed
        one after the other, each on all threads.

        Parameters
        ----------
        job : callable
            Called with a slice of groups and the number of threads it may use.
        p : int
            Number of data columns.
        n_threads : int
            Maximum number of threads.
        progress : bool
            Show a progress bar.
        """
        batches, shape = self.batches(p), (int(self.lengths.sum()), p)
        together = len(batches) < 2 * n_threads

        def on_one(batch: slice) -> None:
            job(batch, n_threads if together else 1)

        with progress_bar(self.codes.size, " groups", progress) as bar:
            run_parallel(on_one, ((batch,) for batch in batches), shape, 1 if together else n_threads, bar)

    def pad_batch(self, values: NDArray[Any], batch: slice, scratch: BlockScratch) -> FloatArray:
        """Return a scratch block with a row, padded with NaN, for each data column of each group of a batch."""
        starts, lengths = self.starts[batch], self.lengths[batch]
        block = scratch.block(starts.size * values.shape[1], int(lengths[-1]))
        order = self.order
        if not is_native(values):
            rows = [self.rows(k) for k in range(batch.start, batch.stop)]
            with np.errstate(over="ignore"):
                values = np.concatenate([values[some] for some in rows]).astype(np.float64)
            order, starts = _NO_ORDER, np.cumsum(lengths) - lengths
        ragged.pad(values, order, starts, lengths, block)
        return block

    def scatter_batch(self, block: FloatArray, batch: slice, out: NDArray[Any]) -> None:
        """Copy a padded block back to the rows of its groups in `out`, cast to ``out.dtype``."""
        starts, lengths = self.starts[batch], self.lengths[batch]
        if is_native(out):
            ragged.unpad(block, self.order, starts, lengths, out)
            return
        p = out.shape[1]
        with np.errstate(over="ignore"):
            for k, n in enumerate(lengths.tolist()):
                out[self.rows(batch.start + k)] = block[k * p : (k + 1) * p, :n].T


def lies_in_runs(values: NDArray[Any], runs: Runs) -> bool:
    """Return whether `transform_runs` suits these values: runs are long enough, and columns are contiguous float64."""
    in_one_piece = is_native(values) and values.strides[0] == values.itemsize
    return in_one_piece and runs.codes.size * _ROWS_OF_A_RUN <= len(values)


def transform_runs(
    values: NDArray[Any],
    runs: Runs,
    family: int,
    direction: int,
    results: FloatArray,
    out: NDArray[Any],
    n_threads: int,
) -> IntArray:
    """Transform every column forward, run by run; return the number of values without an image for each fit.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix, with contiguous columns.
    runs : Runs
        The group of each row.
    family : int
        A family of `kernels.transforms.family`.
    direction : int
        A forward direction of `kernels.transforms.family`.
    results : (G p, N_RESULTS) ndarray
        The fits of all columns of the first group, then of the second, and so on.
    out : (n, p) ndarray
        Receives the images, NaN for runs without a fit; with contiguous columns.
    n_threads : int
        Maximum number of threads.
    """
    p, failures = values.shape[1], deque[IntArray]()
    ends = np.cumsum(runs.lengths)
    stops = np.unique(np.append(np.searchsorted(ends, np.arange(_PART, len(values), _PART)), ends.size))
    parts = [slice(start, stop) for start, stop in itertools.pairwise([0, *stops.tolist()]) if start < stop]

    def transform_part(part: slice, column: slice) -> None:
        codes, j, counts = runs.codes[part], column.start, np.zeros(len(results), dtype=np.int64)
        fits = np.where(codes < 0, codes, codes * p + j)
        entry = by_run.APPLY[family, direction]
        entry(values[:, j], fits, runs.starts[part], runs.lengths[part], results, counts, out[:, j])
        failures.append(counts)

    columns = [slice(j, j + 1) for j in range(p)]
    run_parallel(transform_part, itertools.product(parts, columns), (len(values), p), n_threads)
    return np.asarray(np.sum(failures, axis=0))
