"""Fit low-rank decompositions, in which a row is u V + b with a bias b, by alternating least squares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.products import cross
from powerkern._typing import FloatArray
from powerkern.completion.epochs import half_epoch, pack_observed, run_until_converged
from powerkern.completion.normalization import observed_means, product_entries, rms
from powerkern.kernels.multivariate.completion import least_squares_rows


@dataclass(frozen=True)
class LowRank:
    """A low-rank model of rows: the components V, with constants that shrink the coefficients and the bias of a row.

    Attributes
    ----------
    Vt : (p, rank) ndarray
        The transpose of V.
    shrinkage : float
        The ridge in units of sqrt(n) + sqrt(p), for an (n, p) matrix.
    ridge : float
        Penalty on squared coefficients.
    caution : float
        The bias of a row is the sum of its k observed values, divided by ``k + caution``.
    """

    Vt: FloatArray
    shrinkage: float
    ridge: float
    caution: float

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.Vt.shape[1])

    def complete_rows(self, values: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray]:
        """Replace NaN in rows, (n, p), by estimates; also return the residuals, which are NaN for missing values."""
        bias = shrunken_means(values, self.caution)[:, None]
        U, Vt = np.zeros((values.shape[0], self.rank)), np.require(self.Vt, requirements="W")  # may be a read-only map
        half_epoch(least_squares_rows, pack_observed(values - bias, n_threads), Vt, U, self.ridge, 1.0, n_threads)
        estimates = cross(U, Vt, n_threads) + bias
        return np.where(np.isnan(values), estimates, values), values - estimates


@dataclass(frozen=True)
class FittedLowRank:
    """A low-rank model fitted to n rows, with the coefficients `U`, (n, rank), and the biases, (n,), of these rows."""

    model: LowRank
    U: FloatArray
    bias: FloatArray

    def estimates_at(self, row: NDArray[Any], column: NDArray[Any]) -> FloatArray:
        """Return the estimates of entries, given their rows and columns, (k,) each."""
        return np.asarray(product_entries(self.U, self.model.Vt, row, column) + self.bias[row])


class LowRankPath:
    """Fits of low-rank models to one matrix for several ranks and shrinkages, each started from the previous fit.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix; NaN is missing.
    n_threads : int
        Maximum number of threads.
    tol : float
        Relative change of the RMSE at which a fit has converged.
    """

    #: The first shrinkage, and the factor between successive shrinkages.
    first, step = 0.14, math.sqrt(2.0)

    def __init__(self, values: FloatArray, n_threads: int, tol: float = 3e-4) -> None:
        self._caution = _caution(values)
        self._bias = shrunken_means(values, self._caution)
        rest = values - self._bias[:, None]
        self._rows, self._columns = (
            pack_observed(rest, n_threads),
            pack_observed(np.ascontiguousarray(rest.T), n_threads),
        )
        self._shape = values.shape
        self._size = rms(self._rows.value)
        self._tol = tol
        self._n_threads = n_threads

    def count_multiplications(self, rank: int) -> float:
        """Return the approximate number of multiplications in an epoch with this rank."""
        return float(self._rows.value.size) * rank * (rank + 4.0) + sum(self._shape) * rank**3 / 3.0

    def add_components(self, start: FittedLowRank | None, rank: int, generator: np.random.Generator) -> FittedLowRank:
        """Add random components to the fit `start`, or to an empty fit if None, until there are `rank`."""
        given = (start.U, start.model.Vt) if start else [np.empty((size, 0)) for size in self._shape]
        size = math.sqrt(self._size / math.sqrt(rank))
        U, Vt = (
            np.hstack([own, size * generator.standard_normal((own.shape[0], rank - own.shape[1]))]) for own in given
        )
        return FittedLowRank(LowRank(Vt, 0.0, 0.0, self._caution), U, self._bias)

    def refine(self, start: FittedLowRank, shrinkage: float) -> FittedLowRank:
        """Run epochs with this shrinkage from the fit `start` until the RMSE converges."""
        ridge = shrinkage * sum(map(math.sqrt, self._shape))
        U, Vt = start.U.copy(), start.model.Vt.copy()

        def epoch() -> FloatArray:
            half_epoch(least_squares_rows, self._rows, Vt, U, ridge, 1.0, self._n_threads)
            return half_epoch(least_squares_rows, self._columns, U, Vt, ridge, 1.0, self._n_threads)

        run_until_converged(epoch, self._tol)
        return FittedLowRank(LowRank(Vt, shrinkage, ridge, self._caution), U, self._bias)


def shrunken_means(values: FloatArray, caution: float) -> FloatArray:
    """Return the mean of each row shrunk towards 0: the sum of its k observed values, divided by ``k + caution``."""
    count = np.count_nonzero(~np.isnan(values), axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.maximum(count + caution, 1.0))


def _caution(values: FloatArray) -> float:
    """Return the variance within rows divided by the variance between rows; infinite if rows do not differ."""
    seen = ~np.isnan(values)
    count = np.count_nonzero(seen, axis=1)
    of_rows = observed_means(values, 1)
    freedom = int(np.sum(np.maximum(count - 1, 0)))
    within = float(np.nansum((values - of_rows[:, None]) ** 2)) / max(freedom, 1)
    between = float(np.sum(count * of_rows**2)) - np.count_nonzero(count) * within
    return within * count.sum() / between if between > 0.0 else math.inf
