"""The parts of a fitted regression: transforms, covariates, coefficients, and the data that it remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from powerkern._models.design import Covariates
from powerkern._models.regression_problem import Figures, Problem, sum_of_products
from powerkern._results.columns import Of, read_only
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import Interval
from powerkern._results.power_fit import PowerFit
from powerkern._status import is_failed
from powerkern._typing import FloatArray, IntArray


class RegressionModel:
    """A regression's parts and figures: the base of `RegressionFit`, for functions that become its methods."""

    power_fit: PowerFit
    _covariates: Covariates
    _figures: Figures
    _center: FloatArray
    _problem: Problem | None
    _data: FittedData | None

    def __init__(
        self,
        power: PowerFit,
        covariates: Covariates,
        figures: Figures,
        center: FloatArray,
        problem: Problem | None = None,
        data: FittedData | None = None,
    ) -> None:
        vars(self).update(
            power_fit=power, _covariates=covariates, _figures=figures, _center=center, _problem=problem, _data=data
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_problem": None, "_data": None}  # a fit travels without the data it came from

    family = Of[str]("power_fit.family")
    families = Of[list[str]]("power_fit.families")
    n_responses = Of[int]("power_fit.n_features")
    column_names = Of["list[str] | None"]("power_fit.column_names")
    formula = Of["str | None"]("_covariates.formula")
    intercept = Of[bool]("_covariates.intercept")
    lmbda = Of[FloatArray]("power_fit.lmbda")
    lambdas = Of[Any]("power_fit.lambdas")
    shift = Of[FloatArray]("power_fit.shift")
    n_obs = Of[FloatArray]("power_fit.n_obs")
    n_iter = Of[IntArray]("power_fit.n_iter")
    nll = Of[FloatArray]("power_fit.nll")
    information = Of[FloatArray]("power_fit.information")
    status = Of[IntArray]("power_fit.status")
    status_text = Of[list[str]]("power_fit.status_text")

    @property
    def rank(self) -> IntArray:
        """Number of coefficients."""
        return read_only(self._figures.rank)

    @property
    def covariate_names(self) -> list[str]:
        """Names of the covariates, in the order of `coef`."""
        return list(self._covariates.names)

    @property
    def llf(self) -> FloatArray:
        """Log-likelihood at `lmbda`, without constants."""
        return read_only(-self.nll)

    @property
    def scanned(self) -> Interval:
        """Ends of the scan of lambda."""
        return Interval(*map(read_only, self._figures.scanned.T))

    @property
    def scale(self) -> FloatArray:
        """``sqrt(RSS/n)``."""
        with np.errstate(over="ignore"):
            return read_only(np.where(is_failed(self.status), np.nan, self.power_fit.scale * self._factor))

    @property
    def scale_unbiased(self) -> FloatArray:
        """``sqrt(RSS/(n - rank))``; NaN where n - rank is not positive."""
        left = self.n_obs - self.rank
        return read_only(self.scale * np.sqrt(self.n_obs / np.where(left > 0.0, left, np.nan)))

    @property
    def rss(self) -> FloatArray:
        """Residual sum of squares."""
        with np.errstate(over="ignore"):
            return read_only(self.scale * self.scale * self.n_obs)

    @property
    def coef(self) -> FloatArray:
        """Coefficients: (k, p)."""
        gamma, center = self._figures.gamma.copy(), self._center
        if self._covariates.intercept:
            gamma[:, 0] -= sum_of_products(np.nan_to_num(gamma), center[np.newaxis])[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            coef = gamma * self.scale[:, np.newaxis] + self._figures.one * self._location[:, np.newaxis]
        coef[is_failed(self.status)] = np.nan
        return read_only(coef.T)

    @property
    def _factor(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(self.power_fit.log_factor)

    @property
    def _location(self) -> FloatArray:
        """psi at the reference, which coefficients on the internal scale are relative to."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.power_fit.loc * self._factor)

    @property
    def _raw(self) -> PowerFit:
        """The transform without the residual scale."""
        return PowerFit(replace(self.power_fit.spec, standardize=False), self.power_fit.labels, self.power_fit.columns)

    def _linear(self, covariates: object, Y: object = None) -> FloatArray:
        """Return the linear model in residual scales above the reference, (m, p); rows are aligned with `Y`."""
        if covariates is None:
            rows = self._remembered(checked=False).covariates  # in a copy of their own
        else:
            rows = self._covariates.matrix(covariates, of=Y, whose="Y")
        gamma = np.nan_to_num(self._figures.gamma)
        gamma[is_failed(self.status)] = np.nan
        return sum_of_products(rows - self._center, gamma)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self.power_fit.labels.was_vector else values

    def _remembered(self, checked: bool = True) -> Problem:
        """The data of the fit; with `checked`, an error if the responses or weights were changed."""
        if self._problem is None:
            raise ValueError("this fit no longer has its data (it was copied, pickled or read from JSON); fit again")
        if checked and self._data is not None:
            self._data.checked(self.column_names, what="Y", remedy="fit again, or fit a copy, Y.copy()")
        return self._problem
