"""The fit of the columns of a matrix: by one family, or by the better of both."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.limits import LambdaLimit, apply_limit
from powerkern._estimators.nearest_normal import NearestNormal
from powerkern._estimators.origin import WithOrigin, in_units, likeliest_with_origin, with_origin
from powerkern._estimators.power_sums import fit_matrix
from powerkern._estimators.robust import Robust, weights_of_one
from powerkern._estimators.robust_bounds import moved_to
from powerkern._estimators.shift import extremes, to_own_units
from powerkern._estimators.spec import BEST, CENTRAL, ColumnSpec, FitSpec
from powerkern._estimators.standard_units import scaled_by
from powerkern._fit.best_family import best_family, leave_alone
from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix
from powerkern._results.column_table import ColumnTable
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored


def fit_columns(
    matrix: Matrix, spec: FitSpec, asked: ColumnSpec, n_threads: int, progress: bool = False
) -> ColumnTable:
    """Fit the columns of a matrix.

    Parameters
    ----------
    matrix : Matrix
        The data, or several groups of rows side by side.
    spec : FitSpec
        What is asked of the fit.
    asked : ColumnSpec
        What is asked of each column of the matrix.
    n_threads : int
        Largest number of threads at work.
    progress : bool
        Show a progress bar.

    Raises
    ------
    ValueError
        The first value outside the domain of the family, by column and row.
    """
    values, weight = matrix.values, matrix.weight
    in_family = functools.partial(
        _fit_family, matrix=matrix, spec=spec, asked=asked, n_threads=n_threads, progress=progress
    )
    is_robust = not spec.estimator.has_likelihood and not spec.estimator.needs_order
    families: IntArray | str = spec.family
    if spec.family == BEST:
        results, families = best_family(in_family, values, weight, is_robust, spec.criterion, n_threads)
        if spec.criterion == CENTRAL:
            leave_alone(results, families, values, weight, n_threads)
    else:
        results = in_family(FAMILIES[spec.family])
    outside = np.flatnonzero(results[:, STATUS] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.names, weight, asked.shift[j])
    rescaled = spec.origin is not None or (spec.estimator.has_likelihood and spec.estimator.sets_unit)
    if rescaled or asked.shift.any():
        results[:, [X_MIN, X_MAX]] = extremes(values, weight)
    return ColumnTable(results, families, unit_weights=weights_of_one(values, weight) if is_robust else None)


def _fit_family(
    code: int, matrix: Matrix, spec: FitSpec, asked: ColumnSpec, n_threads: int, progress: bool
) -> FloatArray:
    """Results of every column under one family, (p, N_RESULTS)."""
    values, weight = matrix.values, matrix.weight

    def likeliest(columns: Columns) -> FloatArray:
        results = fit_matrix(columns, code, asked.lmbda, weight, n_threads, progress)

        def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
            return fit_matrix(columns[:, at], code, bounded, weight, n_threads)

        apply_limit(refit, code, results, matrix.names, asked.limit, asked.lmbda)
        return results

    solver = spec.estimator.solver() if spec.origin is None else with_origin(spec.estimator)
    if solver is not None:
        columns = shift_and_scale(values, asked.shift)
        results = _fit_by_solver(solver, columns, code, weight, asked.limit, n_threads, progress)
    elif spec.origin is not None:
        bounds = asked.limit.bounds
        return likeliest_with_origin(values, code, asked.lmbda, bounds, weight, n_threads, progress, likeliest)
    elif spec.estimator.sets_unit and is_mirrored(code):
        return in_units(likeliest, values, *scaled_by(spec.estimator.prestandardize, values, weight, n_threads))
    else:
        results = likeliest(shift_and_scale(values, asked.shift))
    to_own_units(results, asked.shift)
    return results


def _fit_by_solver(
    solver: Robust | NearestNormal | WithOrigin,
    columns: Columns,
    family: int,
    weight: FloatArray,
    limit: LambdaLimit,
    n_threads: int,
    progress: bool,
) -> FloatArray:
    """Results of every column by an estimator other than maximum likelihood, lambda within the bounds of the limit."""
    results = solver.fit(columns, family, weight, n_threads, progress)
    moving = solver.kept_by if isinstance(solver, WithOrigin) else solver
    if moving is None:
        return results

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        return moved_to(bounded, columns[:, at], family, moving, results[at], weight, n_threads)

    apply_limit(refit, family, results, None, limit._replace(ymax=math.inf), np.full(len(results), np.nan))
    return results
