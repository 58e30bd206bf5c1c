"""The data of a fit, remembered or given again, and their likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.by_column import likelihoods
from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._engine.threads import thread_count
from powerkern._estimators.likelihood import ML
from powerkern._estimators.power_sums import MixedSums, PowerSums, fit_matrix, interval_matrix, profile_matrix
from powerkern._estimators.shift import to_own_units
from powerkern._input.arguments import domain_error_in
from powerkern._input.reading import read_fitted
from powerkern._results.columns import ColumnResults, FittedColumns
from powerkern._results.fitted_data import FittedData
from powerkern._typing import FloatArray


def data_of(
    fit: FittedColumns, X: object, sample_weight: ArrayLike | str | None, n_threads: int | None = None
) -> tuple[NDArray[Any], FloatArray]:
    """The data, in their own units, with weights; an error if those that the fit remembers were changed."""
    if X is not None:
        matrix = read_fitted(X, fit.column_names, fit.n_features, sample_weight)
        weight = matrix.weight
        weighted = matrix.values[weight > 0.0] if weight.size else matrix.values
        counts = fit.columns.count_outside(weighted, 1)
        if counts.any():
            j = int(np.argmax(counts > 0))
            raise domain_error_in(matrix, j, matrix.names or fit.column_names, weight, fit.shift[j])
        return matrix.values, weight
    if sample_weight is not None:
        raise ValueError("sample_weight goes with X: pass both, or neither to use the fitted data and weights")
    if not isinstance(fit.source.data, FittedData):
        raise ValueError(
            "this fit no longer has its data (it was made from chunks, copied, pickled or read from JSON, or has "
            "overwritten them); pass X, or some 10,000 rows of it drawn at random: figures are then those of a fit to "
            "so many rows, and summary(sample=rows) has standard errors and intervals for all of them"
        )
    return fit.source.data.checked(fit.column_names, n_threads)


def columns_seen(fit: FittedColumns, values: NDArray[Any]) -> Columns:
    """The columns as the estimator sees them: shifted and divided, but for the scaling of robust estimators."""
    if isinstance(fit.estimator, ML) or fit.spec.origin is not None:
        return shift_and_scale(values, 0.0 - fit.center, fit.divisor)
    return shift_and_scale(values, fit.shift)


def likelihood_of(
    fit: FittedColumns, X: object, sample_weight: ArrayLike | str | None, n_threads: int | None
) -> DataLikelihood | SumsLikelihood:
    """The likelihood of the data; of robust fits, of the values kept."""
    threads, columns = thread_count(n_threads), fit.columns
    if X is None and sample_weight is None and fit.source.sums is not None:
        return SumsLikelihood(columns, fit.source.sums, threads)
    values, weight = data_of(fit, X, sample_weight, threads)
    if isinstance(fit.estimator, ML):
        return DataLikelihood(columns, columns_seen(fit, values), weight, threads, columns.divisor)
    kept = np.where((values >= columns.kept_low) & (values <= columns.kept_high), values, np.nan)
    return DataLikelihood(columns, (kept - columns.center) / columns.divisor, weight, threads, columns.divisor)


@dataclass(frozen=True)
class DataLikelihood:
    """The likelihood of values as they are transformed, with their weights."""

    columns: ColumnResults
    values: Columns
    weight: FloatArray
    n_threads: int
    #: The divisor of the values.
    unit: FloatArray | float = 1.0

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Negative log-likelihoods at every lambda: (p, len(lmbdas))."""

        def curve(code: int, at: Any) -> FloatArray:
            return profile_matrix(self.values[:, at], code, lmbdas, self.weight, self.n_threads)

        g: FloatArray = self.columns.gathered(curve) + np.reshape(np.log(self.unit), (-1, 1))
        g *= self.columns.n_kept[:, None]
        return g

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Negative log-likelihoods at one lambda, or at one for each column."""
        if lmbda.ndim == 0:
            return self.curve(lmbda[None])[:, 0]

        def at_own(code: int, at: Any) -> FloatArray:
            return likelihoods(self.values[:, at], code, lmbda[at], self.weight, self.n_threads)

        g: FloatArray = self.columns.n_obs * (self.columns.gathered(at_own) + np.log(self.unit))
        return g

    def ends(self, drop: FloatArray) -> FloatArray:
        """Ends of profile intervals."""
        lmbda = self.columns.lmbda

        def ends(code: int, at: Any) -> FloatArray:
            return interval_matrix(self.values[:, at], code, lmbda[at], drop[at], self.weight, self.n_threads)

        return self.columns.gathered(ends)

    def results(self, lmbda: FloatArray) -> FloatArray:
        """Results of every column at another lambda, (p, N_RESULTS)."""

        def fit(code: int, at: Any) -> FloatArray:
            return fit_matrix(self.values[:, at], code, lmbda[at], self.weight, self.n_threads)

        found = self.columns.gathered(fit)
        to_own_units(found, 0.0 - self.columns.center, self.columns.divisor)
        return found


@dataclass(frozen=True)
class SumsLikelihood:
    """The likelihood by power sums."""

    columns: ColumnResults
    sums: PowerSums | MixedSums
    n_threads: int

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Negative log-likelihoods at every lambda: (p, len(lmbdas))."""
        return self.sums.profile(lmbdas, self.n_threads) * self.columns.n_kept[:, None]

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Negative log-likelihoods at one lambda, or at one for each column."""
        if lmbda.ndim == 0:
            return self.curve(lmbda[None])[:, 0]
        return self.columns.n_obs * self.sums.likelihood(lmbda, self.n_threads)

    def ends(self, drop: FloatArray) -> FloatArray:
        """Ends of profile intervals."""
        return self.sums.interval(self.columns.lmbda, drop, self.n_threads)

    def results(self, lmbda: FloatArray) -> FloatArray:
        """Results of every column at another lambda, (p, N_RESULTS)."""
        found, _ = self.sums.fit(lmbda, self.n_threads)
        to_own_units(found, self.columns.shift)
        return found
