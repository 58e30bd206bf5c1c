"""Rows taken for draws from one normal distribution: a decomposition of full rank, fitted by expectation-maximisation.

A covariance V^T V + shrinkage I says that rows are u V plus noise, u standard normal. Conditional means are then u V
with u fitted to what is seen of the row, under a ridge; so this is a UV decomposition with as many components as there
are columns, in which what a row leaves open about its u is heeded when V is improved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.products import cholesky, combine, gram, inverse_of_lower
from powerkern._engine.threads import work_off
from powerkern._typing import FloatArray
from powerkern.kernels.conditional import conditional_rows

#: Rows are summed over in so many blocks, whatever the number of threads, of no fewer rows than this.
_BLOCKS, _BLOCK_ROWS = 16, 32
#: Epochs from one shrinkage to the next.
_EPOCHS = 3
#: Steps of a path that are reckoned with.
_STEPS = 8


@dataclass(frozen=True)
class Gaussian:
    """A normal distribution of rows.

    Attributes
    ----------
    mean : (p,) ndarray
    covariance : (p, p) ndarray
    shrinkage : float
        The part of it on the diagonal that no data are behind.
    """

    mean: FloatArray
    covariance: FloatArray
    shrinkage: float

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.mean.size)

    def completed(self, values: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Rows with NaN replaced by conditional means, and the residual of each value given the others of its row."""
        residuals = np.empty_like(values)
        rows, _ = _expected(self, values, residuals, n_threads)
        return np.where(np.isnan(values), rows + self.mean, values), residuals

    def at(self, values: FloatArray, row: NDArray[Any], column: NDArray[Any], n_threads: int) -> FloatArray:
        """Estimates of entries that `values` lacks."""
        rows, _ = _expected(self, values, np.empty((0, self.rank)), n_threads)
        return np.asarray(rows[row, column] + self.mean[column])


class GaussianPath:
    """Distributions of one matrix by their shrinkage, each fitted from that before it."""

    #: The shrinkage to begin with, where little is learned from z-scores, and the factor from one to the next.
    first, step = 0.3, math.sqrt(10.0)

    def __init__(self, values: FloatArray, n_threads: int) -> None:
        self._values = values
        self._n_threads = n_threads

    @staticmethod
    def work(values: FloatArray) -> float:
        """Multiplications along the path, about."""
        n, p = values.shape
        gaps = np.count_nonzero(np.isnan(values), axis=1)
        smaller = np.minimum(gaps, p - gaps).astype(float)
        epoch = float(np.sum(smaller**3 + 2 * p * smaller)) + n * p * p / 8 + p**3
        return float(epoch * _EPOCHS * _STEPS)

    def improved(self, start: Gaussian | None, shrinkage: float) -> Gaussian:
        """Some epochs on."""
        p = self._values.shape[1]
        model = start or Gaussian(np.zeros(p), np.eye(p), shrinkage)
        for _ in range(_EPOCHS):
            model = _epoch(model, self._values, shrinkage, self._n_threads)
        return model


def _epoch(model: Gaussian, values: FloatArray, shrinkage: float, n_threads: int) -> Gaussian:
    """The distribution with the moments that rows are expected to have under the present one, and the shrinkage."""
    rows, spread = _expected(model, values, np.empty((0, values.shape[1])), n_threads)
    shift = rows.mean(axis=0)
    deviations = np.subtract(rows.T, shift[:, None], order="C")
    covariance = (gram(deviations, n_threads) + spread) / rows.shape[0]
    np.fill_diagonal(covariance, covariance.diagonal() + shrinkage)
    return Gaussian(model.mean + shift, covariance, shrinkage)


def _expected(
    model: Gaussian, values: FloatArray, residuals: FloatArray, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Deviations of completed rows from the mean, and the sum of their conditional covariances; fills `residuals`."""
    n, p = values.shape
    deviations, rows = values - model.mean, np.empty((n, p))
    covariance = np.require(model.covariance, requirements="W")  # a fitted estimator may be a read-only memory map
    precision = _inverse(covariance)
    height = max(_BLOCK_ROWS, -(-n // _BLOCKS))
    blocks = slices(slice(0, n), height)
    sums, counts = np.zeros((len(blocks), 2, p, p)), np.zeros(len(blocks))

    def job(block: slice) -> None:
        k = block.start // height
        some = deviations[block], covariance, precision, rows[block]
        counts[k] = conditional_rows(*some, sums[k], residuals[block])

    work_off(job, [(block,) for block in blocks], (n, p * p), n_threads)
    by_precision, by_covariance = (_symmetric(total) for total in sums.sum(axis=0))
    explained = combine(covariance, combine(by_covariance, covariance)) if counts.any() else 0.0
    return rows, by_precision + counts.sum() * covariance - explained


def _symmetric(lower: FloatArray) -> FloatArray:
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive definite matrix."""
    factor, _ = cholesky(matrix)
    return gram(np.ascontiguousarray(inverse_of_lower(factor).T))
