"""Methods of `PowerFit` for inference on lambda: profiles, intervals, tests, rounded powers."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.limits import ESTIMATED
from powerkern._estimators.power_sums import MixedSums, PowerSums
from powerkern._input.arguments import as_whole
from powerkern._input.arrays import as_choice
from powerkern._input.messages import shown, suggest_in_class
from powerkern._results.column_warnings import warn_about_overflow
from powerkern._results.fit_attributes import FitAttributes
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import (
    Interval,
    LikelihoodOptimum,
    LikelihoodRatio,
    Method,
    RoundedPowers,
    as_level,
    confidence_interval,
    evaluate_curves,
    name_intervals,
    ratio_test,
    refuse_number,
    standard_error_from,
    wald_interval,
)
from powerkern._results.likelihood import (
    LIKELIEST,
    CensoredLikelihood,
    DataLikelihood,
    SumsLikelihood,
    build_censored_likelihood,
    build_likelihood,
    columns_as_transformed,
    evaluate_objective,
    find_optimum,
    read_data,
    replace_rounded,
)
from powerkern._results.robust_intervals import REPLICATES, bootstrap_errors
from powerkern._typing import FloatArray, Weights

#: Smallest accepted number of bootstrap replicates.
_FEWEST_REPLICATES = 20
#: Largest accepted number of replicates. The relative error of a standard error is 1/sqrt(2 replicates), here 0.2 %.
_MOST_REPLICATES = 100_000


@suggest_in_class
class FitInference(FitAttributes, RoundedPowers):
    """Base class of `PowerFit` with its methods for inference on lambda."""

    def profile(
        self,
        lmbdas: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Return the negative log-likelihood of every column at given lambdas (for robust fits, of the kept values).

        Parameters
        ----------
        lmbdas : float or (k,) array-like
            Lambdas at which to evaluate.
        X : array-like, optional
            The fitted data. Not needed right after `fit`, which keeps a copy of small data and a reference to large
            data. If large data were changed in place after the fit, methods raise ValueError. A fit that was copied,
            pickled or read from JSON has no data, and neither has a fit whose `transform` overwrote the data.
        sample_weight : (n,) array-like, or str, optional
            Weights of the rows of `X`, or the name of the column of `X` that holds them.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (n_features, k) ndarray
            In the units of `nll`; NaN for columns that could not be fitted. For a scalar, (n_features,).

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.arange(1.0, 50.0), family="box-cox")
        >>> bool(np.isclose(fit.profile(fit.lmbda)[0, 0], fit.nll[0]))
        True
        """
        return evaluate_curves(self._likelihood(X, sample_weight, n_threads).curve, lmbdas)

    def objective_curve(
        self,
        lmbdas: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Return the estimator's objective function for every column at given lambdas.

        ``u`` is the column that the estimator transforms. In robust fits it is prestandardised, by default to
        ``(x - median)/MAD`` or ``exp((ln x - median)/MAD)``; otherwise it is the data. psi and J are as in
        `powerkern.fit`.

        =============  ====================================================================================
        estimator      objective
        =============  ====================================================================================
        robust, rewml  ``1/n sum rho((psi(u_i) - loc)/scale - z_i)`` with the rectified psi (on one side, or on
                       both: see `route`), ascending values, normal scores z, Huber's location and scale, and
                       the bisquare rho, which lies between 0 and 1
        rewml-nr       as rewml, with the plain psi
        carroll        ``ln scale - (lambda - 1) mean(J)`` with Huber's scale of psi(u)
        mtl            the smallest ``1/2 ln Var(psi) - (lambda - 1) mean(J)`` of any `h` n consecutive order statistics
        ppcc           1 - r, where r is the correlation with normal quantiles
        mle            ``1/2 ln Var(psi) - (lambda - 1) mean(J)``, `nll` per observation
        =============  ====================================================================================

        Parameters
        ----------
        lmbdas : float or (k,) array-like
            Lambdas at which to evaluate. Like `lmbda` and `lmbda0` they refer to the data, not to ``u``.
        X, sample_weight, n_threads
            As in `profile`.

        Returns
        -------
        (n_features, k) ndarray
            NaN where the objective is not defined, and for columns that could not be fitted. For a scalar,
            (n_features,).

        See Also
        --------
        powerkern.plot.objective_plot : a plot of this curve.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=100), "box-cox", "robust")
        >>> bool(np.isclose(fit.objective_curve(fit.lmbda0)[0, 0], fit.objective[0]))
        True
        >>> bool(fit.objective_curve(np.linspace(-3.0, 3.0, 601)).min() >= fit.objective[0])
        True
        """
        if self.estimator.has_likelihood:
            curve = self.profile(lmbdas, X, sample_weight=sample_weight, n_threads=n_threads)
            return curve / (self.n_kept if curve.ndim == 1 else self.n_kept[:, None])
        values, weight = self._read_data(X, sample_weight, n_threads)
        columns, threads = columns_as_transformed(self._spec, self._table, values), thread_count(n_threads)
        estimator = self._spec.method
        return evaluate_curves(
            lambda at: evaluate_objective(estimator, self._table, columns, weight, at, threads), lmbdas
        )

    def confint(
        self,
        X: object = None,
        *,
        level: float = 0.95,
        method: Method | Literal["bootstrap"] | None = None,
        replicates: int = REPLICATES,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> Interval:
        """Return confidence intervals for lambda, from the likelihood or, for other estimators, from a bootstrap.

        Parameters
        ----------
        X, sample_weight, n_threads
            As in `profile`.
        level : float, default 0.95
            Confidence level, between 0 and 1.
        method : {"profile", "wald", "bootstrap"}, optional
            "profile" (default of maximum likelihood): the lambdas at which `nll` exceeds its minimum by half a
            chi-square quantile. "wald": ``lmbda -+ Phi^-1((1 + level)/2)/sqrt(information)``, as in R's car. This
            interval needs no data, but its coverage is worse in short columns. It is the only choice with
            ``origin="fit"``. "bootstrap" (for all other estimators, and only for them):
            ``lmbda -+ Phi^-1((1 + level)/2) se`` with the `standard_error`.
        replicates : int, default 200
            Number of bootstrap replicates, see `standard_error`.

        Returns
        -------
        Interval
            `low` and `high`: arrays or, if columns have names, pandas series. NaN for columns whose lambda the
            estimator did not determine (given, at a bound, not fitted). `Interval.to_frame` returns a data frame.

        Notes
        -----
        The interval of a robust fit is for the limit of the estimate as the column gets longer. At level 0.95 and
        without outliers, the intervals of "robust" cover this limit in 93 to 97 % of columns of 50 to 1000 values, and
        the intervals of the other estimators in 91.5 to 98.5 % (see the guide on robust fits). An interval based on
        ``1/sqrt(information)`` of the kept values would be too short, because it treats their selection as fixed.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox")
        >>> np.ravel(fit.confint()).round(4)
        array([-0.0534, 0.2082])
        >>> np.ravel(fit.confint(method="wald")).round(4)
        array([-0.0543, 0.2071])
        """
        refuse_number(X)
        with_origin, by_bootstrap = self._spec.origin is not None, not self.estimator.has_likelihood
        method = method or ("bootstrap" if by_bootstrap else "wald" if with_origin else "profile")
        if method == "profile" and with_origin:
            raise ValueError("intervals of lambda fitted with its origin need method='wald', not 'profile'")
        if (as_choice("method", method, (*get_args(Method), "bootstrap")) == "bootstrap") != by_bootstrap:
            which = "method='bootstrap'" if by_bootstrap else "method='profile' or 'wald'"
            name = self.estimator.name
            raise ValueError(f"intervals of estimator={name!r} need {which}, not {shown(method)}")
        if by_bootstrap:
            level = as_level(level)
            se = self.standard_error(X, replicates=replicates, sample_weight=sample_weight, n_threads=n_threads)
            return name_intervals(wald_interval(self.lmbda, se, level), self.column_names)
        interval = confidence_interval(
            self._optimum(), level, method, lambda: self._likelihood(X, sample_weight, n_threads)
        )
        return name_intervals(interval, self.column_names)

    def standard_error(
        self,
        X: object = None,
        *,
        replicates: int = REPLICATES,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Return the standard error of lambda.

        It is ``1/sqrt(information)`` for maximum likelihood, and a bootstrap estimate for other estimators.

        Parameters
        ----------
        X, sample_weight, n_threads
            As in `profile`; not needed for maximum likelihood.
        replicates : int, default 200
            Number of bootstrap samples. With 200 samples, the standard error is within about 6 % of its limit for
            infinitely many samples.

        Returns
        -------
        (n_features,) ndarray
            NaN for columns whose lambda the estimator did not determine (given, at a bound, not fitted), and where
            more than half of the replicates cannot be fitted.

        Raises
        ------
        ValueError
            The fit no longer has its data, and the estimator is not maximum likelihood.

        Notes
        -----
        A replicate consists of m of the n observed values, at most 500, drawn with replacement in proportion to their
        weights. The standard error is half the distance between the quantiles Phi(-1) and Phi(1) of the replicates'
        lambdas, times sqrt(m/n). For each column, this takes as long as fitting 200 columns of m values. The draws do
        not depend on threads, nor on the number and order of columns. Under ``family="best"`` the family is not
        selected again.

        References
        ----------
        .. [1] P. J. Bickel, F. Götze and W. R. van Zwet, "Resampling fewer than n observations: gains, losses, and
           remedies for losses", Statistica Sinica 7, 1997, 1-31.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> robust, likely = pk.fit(x, "box-cox", "robust"), pk.fit(x, "box-cox")
        >>> bool(0.5 < robust.standard_error()[0] / likely.standard_error()[0] < 2.0)
        True
        """
        if self.estimator.has_likelihood:
            return np.where(np.isin(self.status, LIKELIEST), standard_error_from(self.information), np.nan)
        replicates = as_whole("replicates", replicates, _FEWEST_REPLICATES, _MOST_REPLICATES)
        values, weight = self._read_data(X, sample_weight, n_threads)
        shift = self.shift if self._spec.origin is None else np.zeros(self.n_features)
        threads = thread_count(n_threads)

        def errors(code: int, at: Any) -> FloatArray:
            return bootstrap_errors(self._spec.method, values[:, at], shift[at], weight, code, replicates, threads)

        return np.where(np.isin(self.status, ESTIMATED), self._table.compute_by_family(errors), np.nan)

    def lr_test(
        self,
        lmbda0: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> LikelihoodRatio:
        """Test the hypothesis ``lambda = lmbda0`` in each column by a likelihood ratio test.

        If the hypothesis is true, ``2 (nll(lmbda0) - nll)`` is chi-square distributed with one degree of freedom, up to
        O(1/n).

        Parameters
        ----------
        lmbda0 : float or (n_features,) array-like
            The lambda to test, or one for each column.
        X, sample_weight, n_threads
            As in `profile`. Fits of sketches do not need the data: they use their power sums.

        Returns
        -------
        LikelihoodRatio
            A named tuple: the array ``statistic``; ``df``, the degrees of freedom, which is 1; and the array
            ``pvalue``, the probability that a chi-square variable exceeds the statistic. NaN for columns whose lambda
            does not maximise the likelihood (given, at a bound, rounded, not fitted).

        Raises
        ------
        ValueError
            The fit is robust, so there is no likelihood ratio; the fit no longer has its data; or a lambda is not
            finite.

        Notes
        -----
        The statistic is the difference of two sums over the rows, so its absolute error is about 1e-15 times `nll`.

        References
        ----------
        .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252, eq. (10).

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).lognormal(size=(200, 2))
        >>> test = pk.fit(X, family="box-cox").lr_test(0.0)
        >>> test.pvalue.round(2)
        array([0.6 , 0.98])
        """
        return ratio_test(self._optimum(), lmbda0, lambda: self._likelihood(X, sample_weight, n_threads))

    def rounded_fit(
        self,
        X: object = None,
        *,
        level: float = 0.95,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> Self:
        """Return a copy of the fit with lambdas rounded to convenient powers (see `rounded`), and new means and scales.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals from which the powers are chosen.
        X, sample_weight, n_threads
            As in `profile`. Fits of sketches do not need the data: they use their power sums.

        Returns
        -------
        PowerFit
            Columns whose lambda has changed get the status `Status.ROUNDED`; no other status changes. `ymax` is not
            applied again. Rounding the result again changes nothing.

        Raises
        ------
        ValueError
            The fit is robust, so there is no likelihood interval; or the fit no longer has its data.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, family="box-cox").rounded_fit()
        >>> fit.lmbda, fit.status_text
        (array([0.]), ['lambda rounded to a convenient power inside its confidence interval'])
        >>> bool(np.allclose(fit.transform(x), (np.log(x) - np.log(x).mean()) / np.log(x).std()))
        True
        """
        refuse_number(X)
        rounded = self._optimum().rounded(level)
        rows = self._likelihood(X, sample_weight, n_threads).results(rounded)
        fit = self._with_table(replace_rounded(self._table, rounded, rows), self._data)
        if not self.standardize:
            warn_about_overflow(fit._table, self._list_columns)
        return fit

    # --- data and likelihood ------------------------------------------------------------------------------

    def _read_data(
        self, X: object, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
    ) -> tuple[NDArray[Any], Weights]:
        """Return values and weights of `X`, or of the remembered data if `X` is None.

        Raise a ValueError if the fit has censored cells, because the callers treat every cell as an observed value.
        Arguments are described in `profile`.
        """
        if self._table.n_censored.any():
            raise ValueError(
                "this fit has censored cells, which this method would treat as observed values; use profile, confint, "
                "lr_test and summary without X, and expected or draw for values of the censored cells"
            )
        treatment = self._spec.infinite
        return read_data(self._table, self.column_names, self._data, X, sample_weight, n_threads, treatment)

    def _likelihood(
        self, X: object, sample_weight: ArrayLike | str | None, n_threads: int | None
    ) -> DataLikelihood | SumsLikelihood | CensoredLikelihood:
        """Return the likelihood of `X`, or of the remembered data if `X` is None.

        Arguments are described in `profile`.
        """
        threads = thread_count(n_threads)
        if X is None and sample_weight is None and isinstance(self._data, PowerSums | MixedSums):
            return SumsLikelihood(self._table, self._data, threads)
        if self._table.censored is not None:
            if X is not None or sample_weight is not None or not isinstance(self._data, FittedData):
                raise ValueError(
                    "the likelihood of censored cells needs the fitted data with their limits; leave out X, or, if the "
                    "fit was copied, pickled or stored, fit again or use confint(method='wald')"
                )
            return build_censored_likelihood(self._table, self._data, self.column_names, threads)
        values, weight = self._read_data(X, sample_weight, threads)
        return build_likelihood(self._spec, self._table, values, weight, threads)

    def _optimum(self) -> LikelihoodOptimum:
        if not self.estimator.has_likelihood:
            name = self.estimator.name
            raise ValueError(f"tests and rounded powers of lambda need estimator='mle', not {name!r}")
        return find_optimum(self._table, self.column_names, self.standard_error())
