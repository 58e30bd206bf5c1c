"""Estimates of the gaps in a row from the rows nearest to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.threads import run_parallel
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.neighbors import neighbor_means

#: Rows that are handled together by one thread.
_ROWS = 64
#: Maximum number of nearest rows considered.
_FARTHEST = 256


@dataclass(frozen=True)
class Donors:
    """Rows whose values fill gaps in others.

    Attributes
    ----------
    completed : (p, m) ndarray
        Their columns, completed by a model.
    values, residuals : (m, p) ndarray
        Their values, and the residuals of the model; NaN where missing.
    """

    completed: FloatArray
    values: FloatArray
    residuals: FloatArray

    @classmethod
    def of(cls, values: FloatArray, completed: FloatArray, residuals: FloatArray) -> Donors:
        """From rows, their completion and its residuals."""
        return cls(np.ascontiguousarray(completed.T), values, residuals)

    def estimate_gaps(
        self, values: FloatArray, completed: FloatArray, asked: NDArray[np.bool_], n_neighbors: int, n_threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Two estimates of the gaps in `values`: the neighbors' mean, and `completed` plus its mean error there.

        Both are `completed` where no neighbor has a value, or where no estimate is asked for.
        """
        means, corrections = np.where(asked, np.nan, completed), np.zeros_like(completed)
        parts = self.completed, self.values, self.residuals
        columns, donors, residuals = (np.require(part, requirements="W") for part in parts)  # may be read-only maps

        reach = self._count_candidates(n_neighbors)

        def job(rows: slice) -> None:
            outputs = means[rows], corrections[rows]
            neighbor_means(values[rows], columns, donors, residuals, n_neighbors, reach, *outputs)

        blocks = [(rows,) for rows in slices(slice(0, len(values)), _ROWS)]
        run_parallel(job, blocks, (values.size, self.values.shape[0] // 16 + 1), n_threads)
        return np.where(np.isnan(means), completed, means), completed + corrections

    def _count_candidates(self, n_neighbors: int) -> int:
        """Twice the number of rows that on average include `n_neighbors` with a value."""
        share = np.count_nonzero(~np.isnan(self.values)) / self.values.size
        return min(math.ceil(2.0 * n_neighbors / share), _FARTHEST)
