"""The class of fitted regressions: likelihood profiles, intervals, tests, summary and JSON."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._models.design import Covariates
from powerkern._models.regression_applying import RegressionPredictions
from powerkern._models.regression_problem import ResponseLikelihood, ResponseResults
from powerkern._results.inference import (
    Interval,
    LikelihoodOptimum,
    LikelihoodRatio,
    Method,
    RoundedPowers,
    confidence_interval,
    evaluate_curves,
    name_intervals,
    ratio_test,
    standard_error_from,
)
from powerkern._results.json_entries import read_finite, read_numbers
from powerkern._results.power_fit import PowerFit
from powerkern._results.summary import Summary, likelihood_entries
from powerkern._status import Status, is_failed
from powerkern._typing import FloatArray

#: Statuses of a fitted lambda that minimises `nll`, at least among the lambdas searched.
_FOUND = (Status.SCANNED, Status.MULTIMODAL)


class RegressionFit(RegressionPredictions, RoundedPowers):
    """Power transforms of responses, each with a linear model of the covariates.

    `fit_regression` returns it. Arrays have one entry, or one column, per response. `save` and `to_json` do not store
    how a formula codes categories, so a fit by a formula cannot predict after it is read back; pickle it instead.

    Attributes
    ----------
    power_fit : PowerFit
        The transforms of the responses; `power_fit.transform` standardises by the residual scale.
    lmbda : (p,) ndarray
        The transformation parameter; 1 for a response that could not be fitted.
    lambdas : Series or ndarray
        `lmbda` as a series indexed by the names of the responses, see `powerkern.PowerFit`.
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
        Residual sum of squares of psi. Like `coef`, `scale` and `scale_unbiased` it refers to raw psi, and may overflow
        (inf) or underflow (0) even if predictions do not.
    llf, nll : (p,) ndarray
        Log-likelihood ``-n/2 ln(RSS/n) + (lmbda - 1) sum(J)``, as `scipy.stats.boxcox_llf` defines it, and its
        negative. psi and J are as in `powerkern.fit`. car and statsmodels subtract ``n/2 (1 + ln 2 pi)``, MASS
        subtracts ``n/2 ln(n)`` and centers J.
    information : (p,) ndarray
        Second derivative of `nll` in lambda.
    n_obs : (p,) ndarray
        Number of values that are not missing; with weights, the sum of their weights.
    rank : (p,) ndarray of int
        Number of coefficients.
    n_iter : (p,) ndarray of int
        Number of evaluations of the likelihood and its derivatives, including evaluations on a sample of the rows.
    status : (p,) ndarray of int
        A `powerkern.Status` for each response.
    status_text : list of str
        The status of each response in words.
    scanned : Interval
        Range of lambda in which the minimum was searched for; NaN where lambda was given.
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each response.
    shift : (p,) ndarray
        In shifted Box-Cox fits, ``y + shift`` is transformed; otherwise 0.
    n_responses : int
        Number of responses.
    column_names : list of str or None
        Names of the responses, if they had names.
    intercept : bool
        True if the model has an intercept.
    formula : str or None
        The formula, if the fit used one.
    """

    def __repr__(self) -> str:
        fitted = np.count_nonzero(~is_failed(self.status))
        text = f"{fitted} of {self.n_responses} responses fitted to {len(self.covariate_names)} covariates"
        return f"RegressionFit(family={self.family!r}, {text})"

    # --- likelihood -------------------------------------------------------------------------------------

    def profile(self, lmbdas: ArrayLike, *, n_threads: int | None = None) -> FloatArray:
        """Return the negative log-likelihood of every response at given lambdas.

        Up to sign and a constant, this is the curve that ``MASS::boxcox`` of R plots.

        Parameters
        ----------
        lmbdas : float or (m,) array-like
            Lambdas at which to evaluate.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (p, m) ndarray
            In the units of `nll`; NaN for responses that could not be fitted. For a scalar, (p,).

        Raises
        ------
        ValueError
            If the fit no longer has its data (it was copied, pickled or read from JSON), or the data were changed.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.isclose(fit.profile(fit.lmbda)[0, 0], fit.nll[0]))
        True
        """
        return evaluate_curves(self._likelihood(n_threads).curve, lmbdas)

    def confint(self, *, level: float = 0.95, method: Method = "profile", n_threads: int | None = None) -> Interval:
        """Return confidence intervals for lambda, from the profile likelihood or from the curvature of `nll`.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level, between 0 and 1.
        method : {"profile", "wald"}, default "profile"
            "profile": the lambdas on either side at which the log-likelihood is half a chi-square quantile below its
            maximum. "wald": ``lmbda -+ Phi^-1((1 + level)/2) se``, which needs no data.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Interval
            `low` and `high`, as `PowerFit.confint` returns them; NaN for responses whose lambda does not minimise `nll`
            (given, at a bound, not fitted).

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> low, high = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).confint()
        >>> bool(low[0] < 0.0 < high[0])
        True
        """
        interval = confidence_interval(self._optimum(), level, method, lambda: self._likelihood(n_threads))
        return name_intervals(interval, self.column_names)

    def standard_error(self) -> FloatArray:
        """Return the standard error of lambda, ``1/sqrt(information)``; NaN where lambda does not minimise `nll`.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> bool(fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).standard_error()[0] < 0.5)
        True
        """
        return np.where(np.isin(self.status, _FOUND), standard_error_from(self.information), np.nan)

    def lr_test(self, lmbda0: ArrayLike, *, n_threads: int | None = None) -> LikelihoodRatio:
        """Test the hypothesis ``lambda = lmbda0`` for each response by a likelihood ratio test.

        Parameters
        ----------
        lmbda0 : float or (p,) array-like
            The lambda to test, or one for each response.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        LikelihoodRatio
            A named tuple: the array ``statistic``, ``2 (nll(lmbda0) - nll)``; ``df``, the degrees of freedom of the
            chi-square distribution, which is 1; and the array ``pvalue``. NaN where lambda does not minimise `nll`.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> test = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).lr_test(0.0)
        >>> bool(test.pvalue[0] > 0.05)
        True
        """
        return ratio_test(self._optimum(), lmbda0, lambda: self._likelihood(n_threads))

    def _optimum(self) -> LikelihoodOptimum:
        nll = np.where(np.isin(self.status, _FOUND), self.nll, np.nan)
        return LikelihoodOptimum(
            self.lmbda, nll, self.standard_error(), self.n_obs, each="response", names=self.column_names
        )

    def summary(self, *, level: float = 0.95, method: Method | None = None, n_threads: int | None = None) -> Summary:
        """Return a table of lambda, rounded power, standard error, interval, tests of 0 and 1, scale and status.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the interval, and of the Wald interval for the rounded power.
        method : {"profile", "wald"}, optional
            Kind of the interval, as in `confint`: "profile" (default), or "wald" (default if the fit no longer has its
            data).
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Summary
            The table, which can be printed or converted to arrays (`Summary.to_dict`) or a data frame
            (`Summary.to_frame`). It has no tests if the fit no longer has its data.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> summary = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).summary()
        >>> sorted(summary.to_dict())[:4]
        ['column', 'family', 'high', 'lmbda']
        """
        likelihood = None if self._problem is None else functools.cache(lambda: self._likelihood(n_threads))
        found, notes = likelihood_entries(self._optimum(), level, method, likelihood)
        rest = {"n_obs": self.n_obs, "rank": self.rank, "scale": self.scale, "status": np.array(self.status_text)}
        title = f"{self.n_responses} responses given {', '.join(self.covariate_names)}"
        names = self.power_fit._label_texts()
        return Summary(title, names, [{"family": np.array(self.families), **found}, rest], notes=notes)

    def _likelihood(self, n_threads: int | None) -> ResponseLikelihood:
        """Return the likelihood of the responses; raise a ValueError if the fit no longer has its data."""
        return ResponseLikelihood(
            self._fitted_problem(), self.power_fit._table, self._results.has_own_basis, thread_count(n_threads)
        )

    def _to_record(self) -> dict[str, Any]:
        results = {name: getattr(self._results, name) for name in ("scanned", "gamma", "rank", "one")}
        rest = {
            "covariates": self._covariates.to_record(),
            "center": self._center,
            "power": self.power_fit._to_record(),
        }
        return {**results, **rest}

    @classmethod
    def _from_record(cls, record: Any) -> RegressionFit:
        power = PowerFit._from_record(record.get("power"))
        covariates = Covariates.from_record(record.get("covariates"))
        p, k = power.n_features, len(covariates.names)
        scanned, gamma, one = (
            read_numbers(record, name, (p, width)) for name, width in (("scanned", 2), ("gamma", k), ("one", k))
        )
        rank = read_finite(record, "rank", (p,)).astype(np.int64)
        center = read_numbers(record, "center", (k,))
        results = ResponseResults(power._table.kernel_rows, scanned, gamma, rank, one, np.zeros(p, np.bool_))
        return cls(power, covariates, results, center)
