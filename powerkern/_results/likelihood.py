"""Likelihoods and other objectives of lambda, computed from the data that a fit remembers or is passed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.by_column import likelihoods
from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.base import Estimator
from powerkern._estimators.censored import (
    find_censored_intervals,
    has_censored,
    maximize_censored_likelihood,
    profile_censored_likelihood,
)
from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._estimators.routes import find_intervals, maximize_likelihood, profile_likelihood
from powerkern._estimators.shift import convert_to_data_units
from powerkern._estimators.spec import FitSpec
from powerkern._input.arguments import domain_error_in
from powerkern._input.choices import Infinite
from powerkern._input.infinite import without_infinite
from powerkern._input.reading import read_fitted
from powerkern._results.column_table import ColumnTable
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import LikelihoodOptimum
from powerkern._status import Status
from powerkern._typing import BoolArray, FloatArray, Weights
from powerkern.kernels.censored.fit import LOC_ERROR
from powerkern.kernels.results import NLL, STATUS, X_MAX, X_MIN

#: Types in which a fit may keep its data: the data themselves, or their power sums.
KeptData = FittedData | PowerSums | MixedSums

#: Statuses of maximum likelihood fits whose lambda maximises the likelihood.
LIKELIEST = (Status.OK, Status.SCANNED, Status.UNIT_AT_END, Status.ORIGIN_AT_END)


def read_data(
    table: ColumnTable,
    names: list[Any] | None,
    data: KeptData | None,
    X: object,
    sample_weight: ArrayLike | str | None,
    n_threads: int | None = None,
    infinite: Infinite = "raise",
) -> tuple[NDArray[Any], Weights]:
    """Return the values and weights that a fit was made from, in the units of the data.

    They are read from `X`, or taken from the fit after checking that they are unchanged.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    names : list or None
        Labels of the fitted columns.
    data : FittedData, PowerSums, MixedSums or None
        The data that the fit remembers.
    X, sample_weight : array-like or None
        The data and weights, if the user passed them again.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.
    infinite : {"raise", "missing", "keep"}
        The fit's treatment of infinite values.

    Raises
    ------
    ValueError
        `X` holds values outside the domain, or remembered data were changed, or there are no data.
    """
    if X is not None:
        matrix = without_infinite(read_fitted(X, names, len(table), sample_weight), infinite, warns=False)
        weight = matrix.weight
        weighted = matrix.values if weight is None else matrix.values[weight > 0.0]
        counts = table.count_outside(weighted, 1)
        if counts.any():
            j = int(np.argmax(counts > 0))
            raise domain_error_in(matrix, j, matrix.names or names, weight, table.shift[j])
        return matrix.values, weight
    if sample_weight is not None:
        raise ValueError("sample_weight needs X: pass both, or neither to use the fitted data and weights")
    if not isinstance(data, FittedData):
        raise ValueError(
            "this fit no longer has its data (it was made from chunks, copied, pickled or read from JSON, or has "
            "overwritten them); pass X. If X is too large, pass about 10,000 random rows; the results then "
            "describe a fit to that sample, and summary(sample=rows) has standard errors and intervals for all rows"
        )
    return data.checked(names, n_threads)


def columns_as_transformed(spec: FitSpec, table: ColumnTable, values: NDArray[Any]) -> Columns:
    """Return the columns of `values`, (n, p), in the form in which the estimator in `spec` receives them.

    Shifts are added, and origin and unit of ``origin="fit"`` are removed. Robust estimators prestandardise the columns
    themselves.
    """
    if spec.estimator.has_likelihood or spec.origin is not None:
        return shift_and_scale(values, 0.0 - table.center, table.divisor)
    return shift_and_scale(values, table.shift)


def build_likelihood(
    spec: FitSpec, table: ColumnTable, values: NDArray[Any], weight: Weights, n_threads: int
) -> DataLikelihood:
    """Return the likelihood of the data; for robust fits, the likelihood of the values that they keep.

    Parameters
    ----------
    spec : FitSpec
        The options of the fit.
    table : ColumnTable
        The fitted columns.
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    n_threads : int
        Maximum number of threads.
    """
    if spec.estimator.has_likelihood:
        return DataLikelihood(table, columns_as_transformed(spec, table, values), weight, n_threads, table.divisor)
    kept = np.where((values >= table.kept_low) & (values <= table.kept_high), values, np.nan)
    return DataLikelihood(table, (kept - table.center) / table.divisor, weight, n_threads, table.divisor)


def build_censored_likelihood(
    table: ColumnTable, data: FittedData, names: list[Any] | None, n_threads: int
) -> CensoredLikelihood:
    """Return the likelihood of remembered data with censored cells.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    data : FittedData
        The remembered data, including the intervals of censored cells.
    names : list or None
        Labels of the columns, for messages.
    n_threads : int
        Maximum number of threads.
    """
    values, weight = data.checked(names, n_threads)
    ends = data.read_unchanged_ends()
    columns, others = shift_and_scale(values, table.shift), shift_and_scale(ends, table.shift)
    return CensoredLikelihood(table, columns, others, has_censored(ends), weight, n_threads)


def find_optimum(table: ColumnTable, names: list[Any] | None, standard_error: FloatArray) -> LikelihoodOptimum:
    """Collect lambda, likelihood and standard error of each column, for tests and rounded powers.

    The likelihood of a column is NaN unless the fitted lambda is the maximiser among all lambdas.
    """
    is_optimum = table.status == Status.OK  # excludes origin="fit", whose likelihood is not comparable
    if table.censored is not None:
        is_optimum |= table.status == Status.SCANNED
    nll = np.where(is_optimum, table.nll, np.nan)
    return LikelihoodOptimum(table.lmbda, nll, standard_error, table.n_obs, names=names)


def evaluate_objective(
    estimator: Estimator,
    table: ColumnTable,
    columns: Columns,
    weight: Weights,
    lmbdas: FloatArray,
    n_threads: int,
) -> FloatArray:
    """Return the objective of an estimator for every column at every lambda: (p, len(lmbdas)).

    Parameters
    ----------
    estimator : Estimator
        The estimator.
    table : ColumnTable
        The fitted columns, with their families and routes.
    columns : (n, p) ndarray or AffineView
        The data as `columns_as_transformed` returns them.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    lmbdas : (m,) ndarray
        Lambdas at which to evaluate.
    n_threads : int
        Maximum number of threads.
    """

    def objective(code: int, chosen: Any) -> FloatArray:
        return estimator.objective(columns[:, chosen], code, lmbdas, weight, n_threads, table.route[chosen].copy())

    return table.compute_by_family(objective)


def replace_rounded(table: ColumnTable, lmbda: FloatArray, kernel_rows: FloatArray) -> ColumnTable:
    """Return a table with new results in the columns whose lambda was rounded.

    Parameters
    ----------
    table : ColumnTable
        The results before rounding.
    lmbda : (p,) ndarray
        The rounded lambdas.
    kernel_rows : (p, N_RESULTS) ndarray
        Results at the rounded lambdas; modified in place.
    """
    kernel_rows[kernel_rows[:, STATUS] == Status.FIXED, STATUS] = Status.ROUNDED
    kernel_rows[:, [X_MIN, X_MAX]] = table.kernel_rows[:, [X_MIN, X_MAX]]
    same = lmbda == table.lmbda
    kernel_rows[same] = table.kernel_rows[same]
    censored = table.censored
    if censored is not None:
        censored = censored.copy()
        censored[~same, LOC_ERROR:] = np.nan
    error = np.where(same, table.lmbda_error, 0.0)
    return ColumnTable(kernel_rows, table.family_codes, lmbda_error=error, censored=censored)


@dataclass(frozen=True)
class DataLikelihood:
    """The likelihood of lambda, computed from values and weights."""

    table: ColumnTable
    values: Columns
    weight: Weights
    n_threads: int
    #: Number by which the values of each column were divided.
    unit: FloatArray

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Return negative log-likelihoods at every lambda: (p, len(lmbdas))."""

        def curve(code: int, at: Any) -> FloatArray:
            return profile_likelihood(self.values[:, at], code, lmbdas, self.weight, self.n_threads)

        g: FloatArray = self.table.compute_by_family(curve) + np.reshape(np.log(self.unit), (-1, 1))
        g *= self.table.n_kept[:, None]
        return g

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Return the negative log-likelihood of each column at `lmbda`, a scalar array or one number per column."""
        if lmbda.ndim == 0:
            return self.curve(lmbda[None])[:, 0]

        def at_own(code: int, at: Any) -> FloatArray:
            return likelihoods(self.values[:, at], code, lmbda[at], self.weight, self.n_threads)

        g: FloatArray = self.table.n_obs * (self.table.compute_by_family(at_own) + np.log(self.unit))
        return g

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of profile intervals, (p, 2), at which the log-likelihood per row has fallen by `drop`."""
        lmbda = self.table.lmbda

        def ends(code: int, at: Any) -> FloatArray:
            return find_intervals(self.values[:, at], code, lmbda[at], drop[at], self.weight, self.n_threads)

        return self.table.compute_by_family(ends)

    def results(self, lmbda: FloatArray) -> FloatArray:
        """Return the results at the lambdas `lmbda`, (p,), as rows of `kernels.results.ColumnFit`."""

        def fit(code: int, at: Any) -> FloatArray:
            return maximize_likelihood(self.values[:, at], code, lmbda[at], self.weight, self.n_threads)

        rows = self.table.compute_by_family(fit)
        convert_to_data_units(rows, 0.0 - self.table.center, self.table.divisor)
        return rows


@dataclass(frozen=True)
class CensoredLikelihood:
    """The likelihood of lambda, computed from observed values, the intervals of censored cells, and weights."""

    table: ColumnTable
    values: Columns
    #: The other ends of the intervals of censored cells.
    others: Columns
    is_censored: BoolArray
    weight: Weights
    n_threads: int

    def _part(self, at: Any) -> tuple[Columns, Columns, BoolArray]:
        """Return values, interval ends and masks of the censored cells of the columns selected by `at`."""
        return self.values[:, at], self.others[:, at], self.is_censored[at]

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Return negative log-likelihoods at every lambda: (p, len(lmbdas))."""

        def curve(code: int, at: Any) -> FloatArray:
            return profile_censored_likelihood(*self._part(at), code, lmbdas, self.weight, self.n_threads)

        return self.table.compute_by_family(curve) * self.table.n_kept[:, None]

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Return the negative log-likelihood of each column at `lmbda`, a scalar array or one number per column."""
        given = np.broadcast_to(lmbda, (len(self.table),)).astype(np.float64)
        return self.table.n_obs * self.results(given)[:, NLL]

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of profile intervals, (p, 2), at which the log-likelihood per row has fallen by `drop`."""
        lmbda = self.table.lmbda

        def find(code: int, at: Any) -> FloatArray:
            return find_censored_intervals(*self._part(at), code, lmbda[at], drop[at], self.weight, self.n_threads)

        return self.table.compute_by_family(find)

    def results(self, lmbda: FloatArray) -> FloatArray:
        """Return the results at the lambdas `lmbda`, (p,), as rows of `kernels.results.ColumnFit`."""

        def fit(code: int, at: Any) -> FloatArray:
            return maximize_censored_likelihood(*self._part(at), code, lmbda[at], self.weight, self.n_threads)[0]

        rows = self.table.compute_by_family(fit)
        convert_to_data_units(rows, self.table.shift)
        return rows


@dataclass(frozen=True)
class SumsLikelihood:
    """The likelihood of lambda, computed from power sums."""

    table: ColumnTable
    sums: PowerSums | MixedSums
    n_threads: int

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Return negative log-likelihoods at every lambda: (p, len(lmbdas))."""
        return self.sums.profile(lmbdas, self.n_threads) * self.table.n_kept[:, None]

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Return the negative log-likelihood of each column at `lmbda`, a scalar array or one number per column."""
        if lmbda.ndim == 0:
            return self.curve(lmbda[None])[:, 0]
        return self.table.n_obs * self.sums.likelihood(lmbda, self.n_threads)

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of profile intervals, (p, 2), at which the log-likelihood per row has fallen by `drop`."""
        return self.sums.interval(self.table.lmbda, drop, self.n_threads)

    def results(self, lmbda: FloatArray) -> FloatArray:
        """Return the results at the lambdas `lmbda`, (p,), as rows of `kernels.results.ColumnFit`."""
        rows, _ = self.sums.fit(lmbda, self.n_threads)
        convert_to_data_units(rows, self.table.shift)
        return rows
