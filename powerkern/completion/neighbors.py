"""Estimate missing values of a row from the rows nearest to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.threads import run_parallel
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.neighbors import neighbor_means

#: Number of rows in a task.
_ROWS = 64
#: Maximum number of nearest rows considered.
_FARTHEST = 256


@dataclass(frozen=True)
class Donors:
    """Rows whose values fill the gaps of other rows.

    Attributes
    ----------
    completed : (p, m) ndarray
        The columns of the donors, completed by a model.
    values, residuals : (m, p) ndarray
        The values of the donors, and the residuals of the model; NaN where missing.
    """

    completed: FloatArray
    values: FloatArray
    residuals: FloatArray

    @classmethod
    def of(cls, values: FloatArray, completed: FloatArray, residuals: FloatArray) -> Donors:
        """Make donors from rows, their completion, and its residuals."""
        return cls(np.ascontiguousarray(completed.T), values, residuals)

    def estimate_gaps(
        self, values: FloatArray, completed: FloatArray, asked: NDArray[np.bool_], n_neighbors: int, n_threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return two estimates of gaps: the mean of the neighbors, and `completed` plus its mean error there.

        Both are `completed` where no neighbor has a value, or where no estimate is asked for.

        Parameters
        ----------
        values : (n, p) ndarray
            The rows; NaN is missing.
        completed : (n, p) ndarray
            Their completion by the model.
        asked : (n, p) ndarray of bool
            Entries to estimate.
        n_neighbors : int
            Number of neighbors to average.
        n_threads : int
            Largest number of threads at work.
        """
        means, corrections = np.where(asked, np.nan, completed), np.zeros_like(completed)
        parts = self.completed, self.values, self.residuals
        columns, donors, residuals = (np.require(part, requirements="W") for part in parts)  # may be read-only maps

        nearest = min(n_neighbors, len(self.values))  # there may be fewer donors, and kernels take 64-bit integers
        reach = self._count_candidates(nearest)

        def job(rows: slice) -> None:
            outputs = means[rows], corrections[rows]
            neighbor_means(values[rows], columns, donors, residuals, nearest, reach, *outputs)

        blocks = [(rows,) for rows in slices(slice(0, len(values)), _ROWS)]
        run_parallel(job, blocks, (values.size, self.values.shape[0] // 16 + 1), n_threads)
        return np.where(np.isnan(means), completed, means), completed + corrections

    def _count_candidates(self, n_neighbors: int) -> int:
        """Return twice the number of donors needed for `n_neighbors` values on average, at most _FARTHEST."""
        share = np.count_nonzero(~np.isnan(self.values)) / self.values.size
        return min(math.ceil(2.0 * n_neighbors / share), _FARTHEST)
