"""`Estimator`: the interface of all estimators of lambda, used by fits, results, chunks and the command line."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.limits import LambdaLimit, apply_limit
from powerkern._estimators.options import OPTION_CHECKS
from powerkern._estimators.origin import OriginFit
from powerkern._estimators.shift import express_in_data_units
from powerkern._input.arrays import Matrix
from powerkern._typing import FloatArray, Weights


class Run(NamedTuple):
    """Settings for running a fit: the number of threads, and whether to show a progress bar."""

    n_threads: int
    progress: bool = False


class ColumnSpec(NamedTuple):
    """Settings that the user fixed: given lambdas, shifts and limits on lambda, with one entry per column."""

    #: Given lambdas; NaN where lambda is to be fitted.
    lmbda: FloatArray
    shift: FloatArray
    limit: LambdaLimit

    @classmethod
    def free(cls, p: int) -> ColumnSpec:
        """Return a specification for p columns without given lambdas, shifts or limits."""
        bounds = np.repeat([[-math.inf], [math.inf]], p, axis=1)
        return cls(np.full(p, math.nan), np.zeros(p), LambdaLimit(math.inf, False, bounds))

    def tiled(self, n_groups: int) -> ColumnSpec:
        """Repeat the specification for each of `n_groups` groups, whose columns are placed side by side."""
        limit = self.limit._replace(bounds=_tile(self.limit.bounds, n_groups))
        return ColumnSpec(_tile(self.lmbda, n_groups), _tile(self.shift, n_groups), limit)


def _tile(each: FloatArray, k: int) -> FloatArray:
    """Repeat the last axis of `each` k times, as `numpy.tile` does but ten times faster."""
    *rows, p = each.shape
    tiled = np.empty((*rows, k, p))
    tiled[...] = each[..., np.newaxis, :]
    return tiled.reshape(*rows, k * p)


class Estimator(ABC):
    """Base class of the estimators of lambda: frozen dataclasses whose fields are their options.

    Options are validated, and left out of the repr while they have their defaults. A subclass has a name, sets the
    class attributes below, and implements `fit_values` and `objective`. `powerkern.fit` calls `fit_columns`.
    """

    name: ClassVar[str]
    #: Whether every value counts, so that none is left out as an outlier.
    keeps_all: ClassVar[bool] = True
    #: Whether lambda maximises the likelihood of all values, so that tests, given lambdas and `ymax` make sense.
    has_likelihood: ClassVar[bool] = False
    #: Whether the estimator resists outliers.
    is_robust: ClassVar[bool] = True
    #: Whether the estimator can be used with ``origin="fit"``.
    fits_origin: ClassVar[bool] = False
    #: Whether the estimator is defined only with ``origin="fit"``.
    needs_origin: ClassVar[bool] = False
    #: Whether the estimator needs all values of a column in sorted order.
    needs_order: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Validate every option and convert it to a plain Python type."""
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if not (value is None and default is None):  # by the convention
                object.__setattr__(self, name, OPTION_CHECKS[name](name, value))

    def __repr__(self) -> str:
        given = ((name, default, getattr(self, name)) for name, default in self._defaults().items())
        options = ", ".join(f"{name}={value!r}" for name, default, value in given if value != default)
        return f"{type(self).__name__}({options})"

    def __dir__(self) -> list[str]:
        """Return the names of the options. Methods are left out, because fits call them and users do not."""
        return [name for name in super().__dir__() if name.startswith("_") or name in self._defaults()]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]

    @property
    @abstractmethod
    def cutoff(self) -> float:
        """Quantile of the fitted normal beyond which values are outliers; some estimators have it as an option."""

    @property
    def sets_unit(self) -> bool:
        """True if the option `prestandardize` was given, which must not be combined with a fitted origin and unit."""
        return False

    @property
    def fits_chunks(self) -> bool:
        """True if the estimator can be fitted from summaries of chunks of rows."""
        return not (self.needs_order or self.needs_origin)

    @property
    def widens_small_samples(self) -> bool:
        """True if the cut-off for outliers in short columns is a quantile of Student's t; see `PowerFit.outliers`."""
        return False

    def fit_columns(self, matrix: Matrix, family: int, requested: ColumnSpec, run: Run) -> FloatArray:
        """Fit every column and return the results, (p, N_RESULTS), in the units of the data.

        Parameters
        ----------
        matrix : Matrix
            The data, with the weights of the rows.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        requested : ColumnSpec
            Given lambdas, shifts and limits of each column.
        run : Run
            Threads and progress.
        """
        columns = shift_and_scale(matrix.values, requested.shift)
        results = self.fit_values(columns, family, matrix.weight, run)
        self.clip_lambdas(results, columns, family, matrix, requested, run)
        express_in_data_units(results, matrix, requested.shift)
        return results

    def fit_censored_columns(
        self, matrix: Matrix, family: int, requested: ColumnSpec, run: Run
    ) -> tuple[FloatArray, FloatArray]:
        """Fit every column of a matrix with censored cells.

        Return the fields of `kernels.results`, (p, N_RESULTS), and the fields of `kernels.censored.fit` about the
        censored cells, (p, N_CENSORED_FIELDS). The arguments are as for `fit_columns`.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot fit censored cells; use estimator='mle'")

    @abstractmethod
    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Fit lambda of every column, ignoring limits and given lambdas.

        Return the results, (p, N_RESULTS), in the units of `values`.

        Parameters
        ----------
        values : (n, p) ndarray or AffineView
            The columns, to which shifts have been added.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        weight : (n,) ndarray
            Weight of each row; None: all 1.
        run : Run
            Threads and progress.
        """

    @abstractmethod
    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """Return the objective that the estimator minimises, for every column at every lambda, as a (p, k) array.

        Parameters
        ----------
        values : (n, p) ndarray or AffineView
            The columns, shifted and scaled as for the fit.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        lmbdas : (k,) ndarray
            Lambdas at which to evaluate the objective.
        weight : (n,) ndarray
            Weight of each row; None: all 1.
        n_threads : int
            Maximum number of threads.
        routes : (p,) ndarray
            `Route` by which each column was fitted; the objective may depend on it.
        """

    def clip_lambdas(
        self, results: FloatArray, columns: Columns, family: int, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> None:
        """Clip lambdas to their bounds and recompute the results of the clipped columns, in place.

        Parameters
        ----------
        results : (p, N_RESULTS) ndarray
            The results of `fit_values`; changed in place.
        columns : (n, p) ndarray or AffineView
            The columns that were fitted.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        matrix : Matrix
            The data, with the weights of the rows and the labels of the columns.
        requested : ColumnSpec
            The bounds and the given lambdas.
        run : Run
            Threads and progress.
        """

        def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
            return self.recompute_at(bounded, columns[:, at], family, results[at], matrix.weight, run.n_threads)

        apply_limit(refit, family, results, None, requested.limit._replace(ymax=math.inf), requested.lmbda)

    def recompute_at(
        self, lmbda: FloatArray, columns: Columns, family: int, results: FloatArray, weight: Weights, n_threads: int
    ) -> FloatArray:
        """Return the results at other lambdas, computed from the values that the fit of each column kept.

        Parameters
        ----------
        lmbda : (p,) ndarray
            The other lambdas.
        columns : (n, p) ndarray or AffineView
            The columns that were fitted.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        results : (p, N_RESULTS) ndarray
            The results of the fit, which include the interval of the values kept.
        weight : (n,) ndarray
            Weight of each row; None: all 1.
        n_threads : int
            Maximum number of threads.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no lmbda=; leave it out")

    # --- with origin="fit" --------------------------------------------------------------------------------

    def fit_origin(self, values: Columns, family: int, weight: Weights, requested: ColumnSpec, run: Run) -> OriginFit:
        """Estimate the origin and the unit of every column.

        Parameters
        ----------
        values : (n, p) ndarray
            The data.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        weight : (n,) ndarray
            Weight of each row; None: all 1.
        requested : ColumnSpec
            The bounds and the given lambdas.
        run : Run
            Threads and progress.
        """
        raise NotImplementedError(f"{type(self).__name__} fits no origin; leave out origin='fit'")

    def for_rescaled(self, family: int) -> Estimator:
        """Return the estimator for rescaled columns: minus their origin, divided by their unit."""
        return self

    def fit_at_origin(
        self, rescaled: Columns, family: int, origin: OriginFit, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> FloatArray:
        """Fit columns minus their origin, divided by their unit; return the results for these rescaled columns.

        Parameters
        ----------
        rescaled : (n, p) AffineView
            The columns minus their origins, divided by their units.
        family : int
            Code of the transform, see `kernels.transforms.family`.
        origin : OriginFit
            The result of `fit_origin`.
        matrix : Matrix
            The data, with the weights of the rows and the labels of the columns.
        requested : ColumnSpec
            The bounds and the given lambdas.
        run : Run
            Threads and progress.
        """
        raise NotImplementedError(f"{type(self).__name__} fits no origin; leave out origin='fit'")
