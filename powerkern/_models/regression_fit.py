"""The fitted regressions: coefficients, predictions, intervals and tests, JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._models import regression_applying
from powerkern._models.design import Basis, Covariates
from powerkern._models.regression_problem import Figures, Problem, sum_of_products
from powerkern._results import json
from powerkern._results.columns import Of
from powerkern._results.inference import (
    Interval,
    LikelihoodRatio,
    Method,
    Optimum,
    confidence_interval,
    curves,
    ratio_test,
    rounded,
    standard_error_of,
)
from powerkern._results.power_fit import PowerFit
from powerkern._results.summary import Summary, likelihood_entries
from powerkern._status import Status, is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.regression import fit as kernel
from powerkern.kernels.regression.likelihood import Design, RegressionWork

#: Statuses of a lambda at a minimum.
_FOUND = (Status.SCANNED, Status.MULTIMODAL)


class RegressionFit(json.Recorded):
    """Power transforms of responses, each with its linear model of the covariates.

    Made by `fit_regression`. Arrays have one entry, or one column, per response. `save` and `to_json` do not keep how
    a formula codes categories: such a fit, read back, predicts no more; pickle it instead.

    Attributes
    ----------
    lmbda : (p,) ndarray
        The transformation parameter; 1 for a response that could not be fitted.
    lambdas : Series or ndarray
        `lmbda` by name, see `powerkern.PowerFit`.
    coef : (k, p) ndarray
        Coefficients of the covariates, in the order of `covariate_names`, in the model of ``psi(lambda, y)``. NaN for
        covariates that were left out, and for responses that could not be fitted.
    covariate_names : list of str
        Names of the covariates; "Intercept" is the constant.
    scale : (p,) ndarray
        ``sqrt(RSS/n)``, the maximum likelihood estimate of the residual standard deviation of psi.
    scale_unbiased : (p,) ndarray
        ``sqrt(RSS/(n - rank))``.
    rss : (p,) ndarray
        Residual sum of squares of psi. Like `coef` and both scales it refers to raw psi, and may overflow (inf) or
        underflow (0) where predictions do not.
    llf, nll : (p,) ndarray
        Log-likelihood ``-n/2 ln(RSS/n) + (lmbda - 1) sum(J)``, as `scipy.stats.boxcox_llf` counts it, and its negative.
        car and statsmodels subtract ``n/2 (1 + ln 2 pi)``, MASS subtracts ``n/2 ln(n)`` and centers J.
    information : (p,) ndarray
        Second derivative of `nll` in lambda.
    n_obs : (p,) ndarray
        Values that are not missing; with weights, the sum of their weights.
    rank : (p,) ndarray of int
        Number of coefficients.
    n_iter : (p,) ndarray of int
        Evaluations of the likelihood and its derivatives, those on a sample of the rows too.
    status : (p,) ndarray of int
        A `powerkern.Status` each; `status_text` has them in words.
    scanned : Interval
        Ends of the scan of lambda; NaN where lambda was given.
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each response.
    shift : (p,) ndarray
        In shifted Box-Cox fits ``y + shift`` is transformed; else 0.
    column_names : list of str or None
        Names of the responses, where they had names.
    formula : str or None
        The formula, if there was one.
    """

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

    def __repr__(self) -> str:
        fitted = np.count_nonzero(~is_failed(self.status))
        text = f"{fitted} of {self.n_responses} responses fitted to {len(self.covariate_names)} covariates"
        return f"RegressionFit(family={self.family!r}, {text})"

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
        """``sqrt(RSS/(n - rank))``."""
        return np.asarray(self.scale * np.sqrt(self.n_obs / self._degrees_of_freedom))

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
    def _degrees_of_freedom(self) -> FloatArray:
        """n - rank; NaN where it is not positive."""
        left = self.n_obs - self.rank
        return np.where(left > 0.0, left, np.nan)

    @property
    def _was_found(self) -> BoolArray:
        return np.isin(self.status, _FOUND)

    # --- applying ---------------------------------------------------------------------------------------

    transform = regression_applying.transform
    inverse_transform = regression_applying.inverse_transform
    fitted_values = regression_applying.fitted_values
    residuals = regression_applying.residuals
    predict = regression_applying.predict

    @property
    def _raw(self) -> PowerFit:
        """The transform without the residual scale."""
        return PowerFit(replace(self.power_fit.info, standardize=False), self.power_fit.columns)

    def _linear(self, covariates: object) -> FloatArray:
        """The linear model, as many residual scales above the reference: (m, p)."""
        rows = self._remembered().covariates if covariates is None else self._covariates.matrix(covariates)
        gamma = np.nan_to_num(self._figures.gamma)
        gamma[is_failed(self.status)] = np.nan
        return sum_of_products(rows - self._center, gamma)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self.power_fit.info.was_vector else values

    # --- likelihood -------------------------------------------------------------------------------------

    def profile(self, lmbdas: ArrayLike, *, n_threads: int | None = None) -> FloatArray:
        """Negative log-likelihood of every response at given lambdas, the curve that ``MASS::boxcox`` plots.

        Parameters
        ----------
        lmbdas : float or (m,) array-like
            Where to evaluate.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (p, m) ndarray
            In the units of `nll`; NaN for responses that could not be fitted. For a scalar, (p,).

        Raises
        ------
        ValueError
            The fit no longer has its data (it was pickled, or read from JSON).

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.isclose(fit.profile(fit.lmbda)[0, 0], fit.nll[0]))
        True
        """
        return curves(self._likelihood(n_threads).curve, lmbdas)

    def confint(self, *, level: float = 0.95, method: Method = "profile", n_threads: int | None = None) -> Interval:
        """Intervals for lambda: where `nll` has grown by half a chi-square quantile, or from its curvature.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level, between 0 and 1.
        method : {"profile", "wald"}, default "profile"
            Where the profile likelihood ends, on either side of lambda, or ``lmbda -+ Phi^-1((1 + level)/2) se``. The
            latter needs no data.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Interval
            `low` and `high`, as `PowerFit.confint` returns them; NaN for responses whose lambda was not found as a
            minimum.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> low, high = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).confint()
        >>> bool(low[0] < 0.0 < high[0])
        True
        """
        interval = confidence_interval(self.optimum, level, method, lambda: self._likelihood(n_threads))
        return interval.named(self.column_names)

    def standard_error(self) -> FloatArray:
        """The standard error of lambda, ``1/sqrt(information)``; NaN where lambda was not found.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> bool(fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).standard_error()[0] < 0.5)
        True
        """
        return np.where(self._was_found, standard_error_of(self.information), np.nan)

    def lr_test(self, lmbda0: ArrayLike, *, n_threads: int | None = None) -> LikelihoodRatio:
        """Likelihood ratio tests of given lambdas, response by response.

        Parameters
        ----------
        lmbda0 : float or (p,) array-like
            The lambda to test, or one for each response.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        LikelihoodRatio
            ``2 (nll(lmbda0) - nll)``, chi-square with `df` = 1, and its p-value. NaN where lambda was not found.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> test = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).lr_test(0.0)
        >>> bool(test.pvalue[0] > 0.05)
        True
        """
        return ratio_test(self.optimum, lmbda0, lambda: self._likelihood(n_threads))

    rounded = rounded

    @property
    def optimum(self) -> Optimum:
        """The maxima of the likelihoods, for tests and rounded powers."""
        nll = np.where(self._was_found, self.nll, np.nan)
        return Optimum(self.lmbda, nll, self.standard_error(), self.n_obs, each="response")

    def summary(self, *, level: float = 0.95, method: Method | None = None, n_threads: int | None = None) -> Summary:
        """A table of lambda, rounded power, standard error, interval, tests of 0 and 1, scale and status.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of interval and rounded power.
        method : {"profile", "wald"}, optional
            Of the interval, as in `confint`: "profile" (default), or "wald" (default where the fit no longer has its
            data).
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Summary
            To print, or as arrays (`Summary.to_dict`) or a data frame (`Summary.to_frame`). Tests are left out where
            the fit no longer has its data.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> summary = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).summary()
        >>> sorted(summary.to_dict())[:4]
        ['column', 'family', 'high', 'lmbda']
        """
        has_data = self._problem is not None
        found, notes = likelihood_entries(
            self.optimum, level, method, (lambda: self._likelihood(n_threads)) if has_data else None
        )
        rest = {"n_obs": self.n_obs, "rank": self.rank, "scale": self.scale, "status": np.array(self.status_text)}
        title = f"{self.n_responses} responses given {', '.join(self.covariate_names)}"
        names = self.power_fit.info.labels(self.n_responses)
        return Summary(title, names, [{"family": np.array(self.families), **found}, rest], notes=notes)

    def _likelihood(self, n_threads: int | None) -> _Likelihood:
        self._remembered()
        return _Likelihood(self, n_threads)

    def _figures_at(self, entry: Callable[..., None], at: FloatArray, width: int, n_threads: int | None) -> FloatArray:
        """Figures (p, width) that an entry of `kernels.regression` computes; `at` has a row for each response."""
        problem, threads = self._remembered(), thread_count(n_threads)
        found = np.full((self.n_responses, width), np.nan)
        for columns, basis in self._bases():
            code = self.power_fit.columns.codes[columns[0]]

            def compute(
                block: FloatArray,
                design: Design,
                group: slice,
                work: RegressionWork,
                out: FloatArray,
                code: int = int(code),
                own: FloatArray = at[columns],
            ) -> None:
                entry(block, design, code, own[group].copy(), work, out)

            found[columns] = problem.figures(compute, basis, columns, width, threads)
        return found

    def _bases(self) -> list[tuple[NDArray[np.intp], Basis]]:
        """Responses that were fitted, by family and basis."""
        problem, fitted = self._remembered(), ~is_failed(self.status)
        own = self._figures.own
        parts = [(np.flatnonzero(fitted & ~own), problem.basis), *problem.bases(np.flatnonzero(fitted & own))]
        codes = self.power_fit.columns.codes
        return [
            (columns[codes[columns] == code], basis)
            for columns, basis in parts
            for code in np.unique(codes[columns]).tolist()
        ]

    def _remembered(self) -> Problem:
        if self._problem is None:
            raise ValueError("this fit no longer has its data (it was pickled, or read from JSON); fit again")
        return self._problem

    def to_record(self) -> dict[str, Any]:
        """The entries that JSON keeps."""
        figures = {name: getattr(self._figures, name) for name in ("scanned", "gamma", "rank", "one")}
        rest = {"covariates": self._covariates.to_record(), "center": self._center, "power": self.power_fit.to_record()}
        return {**figures, **rest}

    @classmethod
    def from_record(cls, record: Any) -> RegressionFit:
        """The fit with these entries."""
        power = PowerFit.from_record(json.as_record(record).get("power"))
        covariates = Covariates.from_record(record.get("covariates"))
        p, k = power.n_features, len(covariates.names)
        scanned, gamma, one = (
            json.numbers_in(record, name, (p, width)) for name, width in (("scanned", 2), ("gamma", k), ("one", k))
        )
        rank = json.finite_in(record, "rank", (p,)).astype(np.int64)
        center = json.numbers_in(record, "center", (k,))
        figures = Figures(power.columns.raw, scanned, gamma, rank, one, np.zeros(p, np.bool_))
        return cls(power, covariates, figures, center)


class _Likelihood(NamedTuple):
    """The likelihood of the responses of a fit."""

    fit: RegressionFit
    n_threads: int | None

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Negative log-likelihoods at every lambda: (p, len(lmbdas))."""
        return self._at(np.broadcast_to(lmbdas, (self.fit.n_responses, lmbdas.size)))

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Negative log-likelihoods at one lambda, or at one for each response."""
        return self._at(np.broadcast_to(lmbda.reshape(-1, 1), (self.fit.n_responses, 1)))[:, 0]

    def ends(self, drop: FloatArray) -> FloatArray:
        """Ends of profile intervals."""
        at = np.column_stack([self.fit.lmbda, drop])
        return self.fit._figures_at(kernel.interval_columns, at, 2, self.n_threads)

    def _at(self, lmbdas: FloatArray) -> FloatArray:
        at = np.ascontiguousarray(lmbdas)
        g = self.fit._figures_at(kernel.profile_columns, at, at.shape[1], self.n_threads)
        g *= self.fit.n_obs[:, np.newaxis]
        return g
