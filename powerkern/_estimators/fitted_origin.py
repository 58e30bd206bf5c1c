"""`WithOrigin`: wraps an estimator so that it also fits the origin and the unit of each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.base import ColumnSpec, Estimator, Run
from powerkern._estimators.origin import mark_origin
from powerkern._estimators.shift import express_in_data_units
from powerkern._input.arrays import Matrix
from powerkern._typing import FloatArray, Weights

#: The only value of ``origin=`` besides None.
FITTED = "fit"


@dataclass(frozen=True, repr=False)
class WithOrigin(Estimator):
    """Wrapper of an estimator for ``origin="fit"``: transforms ``(x - center)/divisor`` with fitted center and divisor.

    A fit runs the wrapper, but shows the options, the name and the class attributes of `inner`.
    """

    inner: Estimator

    def __post_init__(self) -> None:
        """Do nothing: this class has no options to validate."""

    @property
    def cutoff(self) -> float:
        """The cut-off of the inner estimator; see `Estimator.cutoff`."""
        return self.inner.cutoff

    def fit_columns(self, matrix: Matrix, family: int, requested: ColumnSpec, run: Run) -> FloatArray:
        """Fit origins and units, then the rescaled columns; return results in the units of the data.

        The arguments are as for `Estimator.fit_columns`.
        """
        origin = self.inner.fit_origin(matrix.values, family, matrix.weight, requested, run)
        shift = 0.0 - origin.center
        rescaled = shift_and_scale(matrix.values, shift, origin.divisor)
        results = self.inner.fit_at_origin(rescaled, family, origin, matrix, requested, run)
        express_in_data_units(results, matrix, shift, origin.divisor)
        mark_origin(results, origin)
        if not self.inner.has_likelihood:  # with a likelihood, lambdas are within the bounds already
            self.inner.clip_lambdas(results, matrix.values, family, matrix, requested, run)
        return results

    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Fit origin, unit and lambda of every column; see `Estimator.fit_values`."""
        assert isinstance(values, np.ndarray)  # shift and origin exclude each other
        matrix = Matrix(values, None, False, weight)
        return self.fit_columns(matrix, family, ColumnSpec.free(values.shape[1]), run)

    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """Evaluate the objective of the inner estimator for rescaled columns; see `Estimator.objective`."""
        return self.inner.for_rescaled(family).objective(values, family, lmbdas, weight, n_threads, routes)
