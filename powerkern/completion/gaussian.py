"""Fit a normal distribution to rows by expectation-maximization (EM): a UV decomposition of full rank.

With the covariance V^T V + shrinkage I, a row is u V plus noise, where u is standard normal. Its conditional mean is
u V, with u fitted to the observed values of the row by a ridge regression. There are as many components as columns, and
the update of V accounts for the uncertainty of the u of each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.products import cholesky, combine, gram, invert_lower
from powerkern._engine.threads import run_parallel
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate.conditional import conditional_rows

#: Rows are summed in at most _BLOCKS blocks, which do not depend on the number of threads, so neither do results. A
#: block has at least as many rows as there are columns, and at least _BLOCK_WORK multiplications.
_BLOCKS, _BLOCK_WORK = 16, 60_000
#: Number of epochs at each shrinkage.
_EPOCHS = 2
#: Over-relaxation of a step of EM: _FARTHER times the fraction of missing entries, but at most _FARTHEST.
_FARTHER, _FARTHEST = 2.5, 0.7
#: Number of shrinkages that the estimate of work assumes.
_STEPS = 8
#: Number of multiplications that take as long as one pass over a value.
_CHEAP = 128
_NO_RESIDUALS = np.empty((0, 0))


@dataclass(frozen=True)
class Gaussian:
    """A normal distribution of rows with p values.

    Attributes
    ----------
    mean : (p,) ndarray
        Mean of each value.
    covariance : (p, p) ndarray
        Covariance of the values.
    shrinkage : float
        Number that was added to the diagonal of the covariance.
    """

    mean: FloatArray
    covariance: FloatArray
    shrinkage: float

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.mean.size)

    def complete_rows(self, values: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Replace NaN in rows by conditional means.

        Parameters
        ----------
        values : (n, p) ndarray
            The rows; NaN is missing.
        n_threads : int
            Maximum number of threads.

        Returns
        -------
        completed : (n, p) ndarray
            The rows without NaN.
        residuals : (n, p) ndarray
            Each observed value minus its conditional mean given the other observed values of the row; else NaN.
        """
        residuals = np.empty_like(values)
        deviations, _ = _run_e_step(self, values, residuals, n_threads)
        return np.where(np.isnan(values), deviations + self.mean, values), residuals


@dataclass(frozen=True)
class FittedGaussian:
    """A distribution fitted to n rows, with the completed rows.

    Attributes
    ----------
    model : Gaussian
        The distribution.
    deviations : (n, p) ndarray
        Completed rows minus the mean.
    spread : (p, p) ndarray
        The sum of the conditional covariances of the rows.
    """

    model: Gaussian
    deviations: FloatArray
    spread: FloatArray

    def estimates_at(self, row: NDArray[Any], column: NDArray[Any]) -> FloatArray:
        """Return the estimates of missing entries, given their rows and columns, (k,) each."""
        return np.asarray(self.deviations[row, column] + self.model.mean[column])


class GaussianPath:
    """Fits of a distribution to one matrix for a sequence of shrinkages, each started from the previous fit.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix; NaN is missing.
    n_threads : int
        Maximum number of threads.
    """

    #: The first shrinkage, which is large for z-scores, and the factor between successive shrinkages.
    first, step = 0.3, math.sqrt(10.0)

    def __init__(self, values: FloatArray, n_threads: int) -> None:
        self._values = values
        self._n_threads = n_threads
        self._farther = min(_FARTHER * np.count_nonzero(np.isnan(values)) / values.size, _FARTHEST)

    @staticmethod
    def count_multiplications(values: FloatArray) -> float:
        """Return the approximate number of multiplications for all fits to the rows `values`."""
        n, p = values.shape
        return float(_row_work(values) * n + n * p * p / 8 + p**3) * _EPOCHS * _STEPS

    def refine(self, start: FittedGaussian | None, shrinkage: float) -> FittedGaussian:
        """Run _EPOCHS epochs of EM with this shrinkage from `start`, or from a standard normal distribution if None."""
        p = self._values.shape[1]
        fitted = start or self.start_from(Gaussian(np.zeros(p), np.eye(p), shrinkage))
        for _ in range(_EPOCHS):
            maximized = _maximize(fitted, shrinkage, self._n_threads)
            fitted = self.start_from(_over_relax(fitted.model, maximized, self._farther))
        return fitted

    def start_from(self, model: Gaussian) -> FittedGaussian:
        """Run an E-step on the rows of this path; `model` may have been fitted to other rows."""
        deviations, spread = _run_e_step(model, self._values, _NO_RESIDUALS, self._n_threads)
        return FittedGaussian(model, deviations, spread)


def _maximize(fitted: FittedGaussian, shrinkage: float, n_threads: int) -> Gaussian:
    """Run an M-step: return the distribution with the expected moments of the rows, and the shrinkage added."""
    shift = fitted.deviations.mean(axis=0)
    centered = np.subtract(fitted.deviations.T, shift[:, None], order="C")
    covariance = (gram(centered, n_threads) + fitted.spread) / centered.shape[1]
    np.fill_diagonal(covariance, covariance.diagonal() + shrinkage)
    return Gaussian(fitted.model.mean + shift, covariance, shrinkage)


def _over_relax(before: Gaussian, after: Gaussian, farther: float) -> Gaussian:
    """Extrapolate an EM step by the factor ``1 + farther``, because such steps are short if many values are missing.

    Parameters
    ----------
    before, after : Gaussian
        The distribution before and after the step.
    farther : float
        Additional step as a fraction of the EM step.

    Returns
    -------
    Gaussian
        The extrapolated distribution. It is `after` if the extrapolated covariance minus half of the shrinkage is not
        positive definite.
    """
    covariance = after.covariance + farther * (after.covariance - before.covariance)
    diagonal = covariance.diagonal() - farther * (after.shrinkage - before.shrinkage)
    np.fill_diagonal(covariance, diagonal - 0.5 * after.shrinkage)
    _, sound = cholesky(covariance)
    if sound < len(covariance):
        return after
    np.fill_diagonal(covariance, diagonal)
    return Gaussian(after.mean + farther * (after.mean - before.mean), covariance, after.shrinkage)


def _run_e_step(
    model: Gaussian, values: FloatArray, residuals: FloatArray, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Run an E-step: return the completed rows minus the mean, and the sum of the conditional covariances of the rows.

    Parameters
    ----------
    model : Gaussian
        The distribution.
    values : (n, p) ndarray
        The rows; NaN is missing.
    residuals : (n, p) ndarray
        Receives the residuals, see `Gaussian.complete_rows`; empty to skip them.
    n_threads : int
        Maximum number of threads.
    """
    n, p = values.shape
    given, deviations = values - model.mean, np.empty((n, p))
    covariance = np.require(model.covariance, requirements="W")  # a fitted estimator may be a read-only memory map
    precision = _invert(covariance)
    work = _row_work(values)
    height = max(p, -(-n // _BLOCKS), int(_BLOCK_WORK / work))
    blocks = slices(slice(0, n), height)
    sums, counts = np.zeros((len(blocks), 2, p, p)), np.zeros(len(blocks))

    def job(block: slice) -> None:
        k = block.start // height
        some = given[block], covariance, precision, deviations[block]
        counts[k] = conditional_rows(*some, sums[k], residuals[block])

    run_parallel(job, [(block,) for block in blocks], (n, int(work) // _CHEAP), n_threads)
    by_precision, by_covariance = sums.sum(axis=0)
    spread = _symmetrize(by_precision)
    if counts.any():
        explained = combine(
            covariance, combine(_symmetrize(by_covariance), covariance, None, n_threads), None, n_threads
        )
        spread += counts.sum() * covariance - explained
    return deviations, spread


def _row_work(values: FloatArray) -> float:
    """Return the approximate number of multiplications in an E-step per row of `values`."""
    p = values.shape[1]
    missing = np.count_nonzero(np.isnan(values)) / values.shape[0]
    smaller = min(missing, p - missing)
    return float(smaller**3 + 2 * p * smaller + p)


def _symmetrize(lower: FloatArray) -> FloatArray:
    """Return the symmetric matrix with the lower triangle of `lower`."""
    whole = lower + lower.T
    np.fill_diagonal(whole, lower.diagonal())
    return np.asarray(whole)


def _invert(matrix: FloatArray) -> FloatArray:
    """Invert a positive definite matrix."""
    factor, _ = cholesky(matrix)
    return gram(np.ascontiguousarray(invert_lower(factor).T))
