"""Estimate missing values of a row from the nearest rows."""

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
    """Donors: the m rows whose values fill the gaps of other rows.

    Attributes
    ----------
    completed : (p, m) ndarray
        The donors, completed by a model; one row per column of the data.
    values : (m, p) ndarray
        The observed values of the donors; NaN is missing.
    residuals : (m, p) ndarray
        The residuals of the model; NaN for missing values.
    """

    completed: FloatArray
    values: FloatArray
    residuals: FloatArray

    @classmethod
    def from_rows(cls, values: FloatArray, completed: FloatArray, residuals: FloatArray) -> Donors:
        """Make donors from rows of the data.

        Parameters
        ----------
        values : (m, p) ndarray
            The rows; NaN is missing.
        completed : (m, p) ndarray
            The rows, completed by the model.
        residuals : (m, p) ndarray
            The residuals of the model; NaN for missing values.
        """
        return cls(np.ascontiguousarray(completed.T), values, residuals)

    def estimate_gaps(
        self, values: FloatArray, completed: FloatArray, wanted: NDArray[np.bool_], n_neighbors: int, n_threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Estimate missing entries in two ways from the nearest donors.

        Parameters
        ----------
        values : (n, p) ndarray
            The rows; NaN is missing.
        completed : (n, p) ndarray
            The rows, completed by the model.
        wanted : (n, p) ndarray of bool
            Entries to estimate.
        n_neighbors : int
            Number of neighbors to average.
        n_threads : int
            Maximum number of threads.

        Returns
        -------
        means : (n, p) ndarray
            The mean value of the neighbors.
        corrected : (n, p) ndarray
            The estimate of the model plus its mean residual at the neighbors.

        Notes
        -----
        Entries that are not to be estimated, or for which no neighbor has a value, equal those of `completed`.
        """
        means, corrections = np.where(wanted, np.nan, completed), np.zeros_like(completed)
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
        """Return the number of nearest donors among which neighbors are searched, at most _FARTHEST.

        On average over the columns, twice `n_neighbors` of these donors have an observed value.
        """
        share = np.count_nonzero(~np.isnan(self.values)) / self.values.size
        return min(math.ceil(2.0 * n_neighbors / share), _FARTHEST)
