"""The parts of a fitted regression: transforms, covariates, coefficients, and the data that it remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from powerkern._models.design import Covariates
from powerkern._models.regression_problem import Figures, Problem, sum_of_products
from powerkern._results.columns import Of
from powerkern._results.inference import Interval
from powerkern._results.power_fit import PowerFit
from powerkern._status import is_failed
from powerkern._typing import FloatArray, IntArray


class RegressionModel:
    """A regression's parts and figures: the base of `RegressionFit`, for functions that become its methods."""

    def __init__(
        self,
        power: PowerFit,
        covariates: Covariates,
        figures: Figures,
        center: FloatArray,
        problem: Problem | None = None,
    ) -> None:
        self.power_fit = power
        self._covariates = covariates
        self._figures = figures
        self._center = center
        self._problem = problem

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_problem": None}  # a fit travels without the data it came from

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
    rank = Of[IntArray]("_figures.rank")
    status = Of[IntArray]("power_fit.status")
    status_text = Of[list[str]]("power_fit.status_text")

    @property
    def covariate_names(self) -> list[str]:
        """Names of the covariates, in the order of `coef`."""
        return list(self._covariates.names)

    @property
    def llf(self) -> FloatArray:
        """Log-likelihood at `lmbda`, without constants."""
        return -self.nll

    @property
    def scanned(self) -> Interval:
        """Ends of the scan of lambda."""
        return Interval(self._figures.scanned[:, 0].copy(), self._figures.scanned[:, 1].copy())

    @property
    def scale(self) -> FloatArray:
        """``sqrt(RSS/n)``."""
        with np.errstate(over="ignore"):
            return np.where(is_failed(self.status), np.nan, self.power_fit.scale * self._factor)

    @property
    def scale_unbiased(self) -> FloatArray:
        """``sqrt(RSS/(n - rank))``; NaN where n - rank is not positive."""
        left = self.n_obs - self.rank
        return np.asarray(self.scale * np.sqrt(self.n_obs / np.where(left > 0.0, left, np.nan)))

    @property
    def rss(self) -> FloatArray:
        """Residual sum of squares."""
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * self.scale * self.n_obs)

    @property
    def coef(self) -> FloatArray:
        """Coefficients: (k, p)."""
        gamma, center = self._figures.gamma.copy(), self._center
        if self._covariates.intercept:
            gamma[:, 0] -= sum_of_products(np.nan_to_num(gamma), center[np.newaxis])[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            coef = gamma * self.scale[:, np.newaxis] + self._figures.one * self._location[:, np.newaxis]
        coef[is_failed(self.status)] = np.nan
        return np.asarray(coef.T)

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
        return PowerFit(replace(self.power_fit.info, standardize=False), self.power_fit.columns)

    def _linear(self, covariates: object, Y: object = None) -> FloatArray:
        """Return the linear model in residual scales above the reference, (m, p); rows are aligned with `Y`."""
        if covariates is None:
            rows = self._remembered().covariates
        else:
            rows = self._covariates.matrix(covariates, of=Y, whose="Y")
        gamma = np.nan_to_num(self._figures.gamma)
        gamma[is_failed(self.status)] = np.nan
        return sum_of_products(rows - self._center, gamma)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self.power_fit.info.was_vector else values

    def _remembered(self) -> Problem:
        if self._problem is None:
            raise ValueError("this fit no longer has its data (it was pickled, or read from JSON); fit again")
        return self._problem
