"""Rows of many groups of different lengths, as matrices with a column for each group and each column of the data.

Groups of about the same length share such a matrix, in which NaN fills up the shorter ones: kernels that know missing
values and many columns need not know groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import Scratch, is_native
from powerkern._engine.threads import progress_bar, run_parallel
from powerkern._input.labels import Runs
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood.lockstep import LOCKSTEP_MAX
from powerkern.kernels.transforms import ragged

#: Values in a batch, unless one group has more.
_BATCH = 262_144
#: The longest group of a batch is at most so much longer than the shortest.
_PADDING = 1.04
_NO_ORDER = np.empty(0, dtype=np.int64)


class Groups:
    """Where the rows of each group are: ``order[starts[g]:starts[g] + lengths[g]]``, or without an order there.

    Attributes
    ----------
    codes : (G,) ndarray of int
        The groups that have rows, shortest first.
    starts, lengths : (G,) ndarray of int
        Of each of them.
    order : ndarray of int
        Numbers of the rows, one group after the other; empty where groups lie in one piece each.
    """

    def __init__(self, runs: Runs, n_groups: int) -> None:
        kept = runs.codes >= 0
        lengths = np.bincount(runs.codes[kept], runs.lengths[kept], n_groups).astype(np.int64)
        codes = np.argsort(lengths, kind="stable")
        self.codes = codes[np.searchsorted(lengths[codes], 1) :]
        self.lengths = lengths[self.codes]
        starts = np.zeros(n_groups, dtype=np.int64)
        if np.count_nonzero(kept) == self.codes.size:
            starts[runs.codes[kept]] = runs.starts[kept]
            self.order = _NO_ORDER
        else:
            starts[1:] = np.cumsum(lengths)[:-1]
            self.order = np.empty(int(lengths.sum()), dtype=np.int64)
            ragged.order_rows(runs.codes, runs.starts, runs.lengths, starts.copy(), self.order)
        self.starts = starts[self.codes]

    def rows(self, k: int) -> NDArray[np.int64] | slice:
        """Return the rows of the k-th group."""
        part = slice(int(self.starts[k]), int(self.starts[k] + self.lengths[k]))
        return self.order[part] if self.order.size else part

    def batches(self, p: int) -> list[slice]:
        """Divide groups into batches of about the same length, each of which makes a matrix of some 100,000 values."""
        found, k, n = [], 0, self.lengths.size
        while k < n:
            # short groups are fitted in lockstep, where missing values do not change a bit; others are not padded
            most = int(self.lengths[k])
            if most <= LOCKSTEP_MAX:
                most = min(max(int(most * _PADDING), most + 1), LOCKSTEP_MAX)
            width = max(1, _BATCH // (most * p))
            stop = min(k + width, int(np.searchsorted(self.lengths, most, side="right")))
            found.append(slice(k, stop))
            k = stop
        return found

    def for_each_batch(self, job: Callable[[slice, int], None], p: int, n_threads: int, progress: bool = False) -> None:
        """Call `job` for batches of groups: side by side on threads, or one after the other with all of them.

        Parameters
        ----------
        job : callable
            Called with a slice of groups and the number of threads it may use.
        p : int
            Number of columns.
        n_threads : int
            Largest number of threads at work.
        progress : bool
            Show a progress bar.
        """
        batches, shape = self.batches(p), (int(self.lengths.sum()), p)
        together = len(batches) < 2 * n_threads

        def on_one(batch: slice) -> None:
            job(batch, n_threads if together else 1)

        with progress_bar(self.codes.size, " groups", progress) as bar:
            run_parallel(on_one, ((batch,) for batch in batches), shape, 1 if together else n_threads, bar)

    def pad_batch(self, values: NDArray[Any], batch: slice, scratch: Scratch) -> FloatArray:
        """Copy the columns of a batch into the rows of a block, padded with NaN, those of the first group first."""
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
        """Scatter a padded block to its original rows, cast to ``out.dtype``."""
        starts, lengths = self.starts[batch], self.lengths[batch]
        if is_native(out):
            ragged.unpad(block, self.order, starts, lengths, out)
            return
        p = out.shape[1]
        with np.errstate(over="ignore"):
            for k, n in enumerate(lengths.tolist()):
                out[self.rows(batch.start + k)] = block[k * p : (k + 1) * p, :n].T
