"""Fit the columns of a matrix with one family, or with the better family for each column."""

from __future__ import annotations

import numpy as np

from powerkern._estimators.base import ColumnSpec, Run
from powerkern._estimators.robust import weights_of_one
from powerkern._estimators.spec import BEST, FitSpec
from powerkern._fit.best_family import BestOf
from powerkern._fit.passthrough import pass_unfitted
from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix
from powerkern._results.column_table import ColumnTable
from powerkern._typing import IntArray
from powerkern.kernels.results import STATUS
from powerkern.kernels.transforms.family import FAMILIES

#: Last words of the message about an infinite value.
_OFFER = ", or use infinite='missing'"


def fit_columns(matrix: Matrix, spec: FitSpec, requested: ColumnSpec, run: Run) -> ColumnTable:
    """Fit every column of a matrix and return the table of results.

    Parameters
    ----------
    matrix : Matrix
        The data, or several groups of rows side by side.
    spec : FitSpec
        The options of the fit.
    requested : ColumnSpec
        Given lambdas, shifts and limits of each column of the matrix.
    run : Run
        Threads and progress.

    Raises
    ------
    ValueError
        A value is outside the domain of the family; the message names column and row of the first one.
    """
    families: IntArray | str = spec.family
    censored = None
    if matrix.ends is not None:
        results, censored = spec.method.fit_censored_columns(matrix, FAMILIES[spec.family], requested, run)
    elif families == BEST:
        results, families = BestOf(spec.method, spec.criterion).fit_columns(matrix, requested, run)
    else:
        results = spec.method.fit_columns(matrix, FAMILIES[spec.family], requested, run)
    if spec.on_failure == "passthrough":
        pass_unfitted(results, matrix.values, matrix.weight)
    outside = np.flatnonzero(results[:, STATUS] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.names, matrix.weight, requested.shift[j], _OFFER)
    units = weights_of_one(matrix.values, matrix.weight) if spec.estimator.is_robust else None
    return ColumnTable(results, families, unit_weights=units, censored=censored)
