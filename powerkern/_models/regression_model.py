"""The parts of a fitted regression: transforms, covariates, coefficients, and the fitted data."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerkern._models.design import Covariates
from powerkern._models.regression_problem import RegressionProblem, ResponseResults, sum_of_products
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import Interval
from powerkern._results.power_fit import PowerFit
from powerkern._results.stored_fit import StoredFit
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray


class RegressionModel(StoredFit):
    """Base class of `RegressionFit` that holds its attributes, which the docstring of `RegressionFit` describes."""

    power_fit: PowerFit
    family: str
    n_responses: int
    formula: str | None
    intercept: bool
    covariate_names: list[str]
    lmbda: FloatArray
    shift: FloatArray
    n_obs: FloatArray
    n_iter: IntArray
    nll: FloatArray
    llf: FloatArray
    information: FloatArray
    status: IntArray
    rank: IntArray
    scanned: Interval
    scale: FloatArray
    scale_unbiased: FloatArray
    rss: FloatArray
    coef: FloatArray

    _covariates: Covariates
    _results: ResponseResults
    _center: FloatArray
    _problem: RegressionProblem | None
    _data: FittedData | None

    def __init__(
        self,
        power_fit: PowerFit,
        covariates: Covariates,
        results: ResponseResults,
        center: FloatArray,
        problem: RegressionProblem | None = None,
        data: FittedData | None = None,
    ) -> None:
        """Make a fit from its parts.

        Parameters
        ----------
        power_fit : PowerFit
            The transforms of the responses.
        covariates : Covariates
            Specification of the design.
        results : ResponseResults
            The results of each response.
        center : (k,) ndarray
            Numbers subtracted from the covariates.
        problem : RegressionProblem, optional
            Responses and covariates of the rows in use, for methods that need the fitted data.
        data : FittedData, optional
            Values and fingerprints of the responses, which detect later changes.
        """
        vars(self).update(
            _covariates=covariates,
            _results=results,
            _center=center,
            _problem=problem,
            _data=data,
            power_fit=power_fit,
            family=power_fit.family,
            n_responses=power_fit.n_features,
            column_names=power_fit.column_names,
            formula=covariates.formula,
            intercept=covariates.intercept,
            covariate_names=list(covariates.names),
            lmbda=power_fit.lmbda,
            shift=power_fit.shift,
            n_obs=power_fit.n_obs,
            n_iter=power_fit.n_iter,
            nll=power_fit.nll,
            llf=-power_fit.nll,
            information=power_fit.information,
            status=power_fit.status,
            rank=results.rank,
            scanned=Interval(*results.scanned.T),
        )
        n_obs, failed = self.n_obs, is_failed(self.status)
        left = n_obs - self.rank
        with np.errstate(over="ignore"):
            scale = np.where(failed, np.nan, power_fit.scale * self._factor)
            rss = scale * scale * n_obs
        unbiased = scale * np.sqrt(n_obs / np.where(left > 0.0, left, np.nan))
        vars(self).update(scale=scale, scale_unbiased=unbiased, rss=rss)
        vars(self).update(coef=self._coefficients(failed))
        for array in (self.llf, self.rank, *self.scanned, self.scale, self.scale_unbiased, self.rss, self.coef):
            array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles contain no data
        return type(self), (self.power_fit, self._covariates, self._results, self._center)

    @property
    def families(self) -> list[str]:
        """The transform of each response, "box-cox" or "yeo-johnson"."""
        return self.power_fit.families

    @property
    def status_text(self) -> list[str]:
        """The status of each response in words."""
        return self.power_fit.status_text

    @property
    def lambdas(self) -> Any:
        """`lmbda` as a pandas series indexed by response label; an array if there are no labels or no pandas."""
        return self.power_fit.lambdas

    def _coefficients(self, failed: BoolArray) -> FloatArray:
        """Return the coefficients in the units of raw psi, (k, p); NaN for the responses in the mask `failed`."""
        gamma, center = self._results.gamma.copy(), self._center
        if self._covariates.intercept:
            gamma[:, 0] -= sum_of_products(np.nan_to_num(gamma), center[np.newaxis])[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            coef = gamma * self.scale[:, np.newaxis] + self._results.one * self._location[:, np.newaxis]
        coef[failed] = np.nan
        return coef.T

    @property
    def _factor(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(self.power_fit.log_factor)

    @property
    def _location(self) -> FloatArray:
        """Psi at the reference point inside the data, which is subtracted from psi on the internal scale: (p,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.power_fit.loc * self._factor)

    @property
    def _raw(self) -> PowerFit:
        """The transforms of the responses without standardisation, which return psi itself."""
        return self.power_fit._with_spec(standardize=False)

    def _linear_predictor(self, covariates: object, Y: object = None) -> FloatArray:
        """Return the linear predictor on the internal scale: (psi - psi at the reference)/(residual scale), (m, p).

        `covariates` defaults to the fitted rows. Labelled covariates are put in the order of the rows of `Y`.
        """
        if covariates is None:
            rows = self._fitted_problem(checked=False).covariates  # unchecked: covariates were copied
        else:
            rows = self._covariates.matrix(covariates, of=Y, whose="Y")
        gamma = np.nan_to_num(self._results.gamma)
        gamma[is_failed(self.status)] = np.nan
        return sum_of_products(rows - self._center, gamma)

    def _shape_like_input(self, values: FloatArray) -> FloatArray:
        """Return values, (m, p), as a vector if the fit was made from a vector of responses."""
        return values[:, 0] if self.power_fit._labels.was_vector else values

    def _fitted_problem(self, checked: bool = True) -> RegressionProblem:
        """Return the fitted responses and covariates; if `checked`, raise if responses or weights were changed."""
        if self._problem is None:
            raise ValueError("this fit no longer has its data (it was copied, pickled or read from JSON); fit again")
        if checked and self._data is not None:
            self._data.checked(self.column_names, what="Y", remedy="fit again, or fit a copy, Y.copy()")
        return self._problem
