"""What the likelihood of a fit says beyond the estimate: profiles, intervals, tests, rounded powers, a summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import count_outside
from powerkern._engine.by_column import likelihoods
from powerkern._engine.shifted import Columns, shifted
from powerkern._engine.threads import thread_count
from powerkern._estimators import power_sums
from powerkern._estimators.likelihood import ML
from powerkern._estimators.shift import to_own_units
from powerkern._input import frames, special
from powerkern._input.arguments import domain_error_in, weights_of
from powerkern._input.arrays import as_choice, as_matrix, as_reals, check_n_features, is_whole
from powerkern._results.columns import FittedColumns
from powerkern._results.likelihood_tests import (
    TESTED,
    Interval,
    LikelihoodRatio,
    Method,
    checked_level,
    hypothesis_lambdas,
    likelihood_ratio,
    rounded_power,
    standard_error,
    wald_interval,
)
from powerkern._results.normality import Normality, moments_matrix, normality_figures
from powerkern._results.robust_intervals import REPLICATES, bootstrap_errors
from powerkern._results.summary import (
    NOTE_ON_TESTS,
    NOTE_WITHOUT_DATA,
    Summary,
    estimates,
    note_on_bootstrap,
    note_on_intervals,
)
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.normality.criteria import N_NORMALITY
from powerkern.kernels.results import KEPT_HIGH, KEPT_LOW, ROUTE, X_MAX, X_MIN

#: Columns of a matrix.
Chosen = slice | NDArray[np.intp]
#: Statuses of columns whose lambda is what the estimator finds: of maximum likelihood, and of the others.
_FOUND = (Status.OK,)
_FOUND_ROBUSTLY = [s for s in Status if not s.failed and s not in (Status.AT_BOUND, Status.FIXED, Status.ROUNDED)]
#: Replicates of a bootstrap.
_FEWEST_REPLICATES = 20
#: Names of figures in a summary.
_SHORTER = {"pvalue": "p_normal"}


class Inference(FittedColumns):
    """Methods of a fit that look at its likelihood."""

    # --- likelihood -------------------------------------------------------------------------------------

    def profile(
        self,
        lmbdas: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Negative log-likelihood of every column at given lambdas; for robust fits, that of the values kept.

        Parameters
        ----------
        lmbdas : float or (k,) array-like
            Where to evaluate.
        X : array-like, optional
            The fitted data. Not needed right after `fit`, which remembers its data without copying them (so they
            must not be changed in between), until the fit is used to overwrite them. A fit that was pickled or read
            from JSON has none.
        sample_weight : (n,) array-like, or str, optional
            Weights that go with `X`, or the name of its column that holds them.
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
        points, threads = _grid(lmbdas), thread_count(n_threads)
        if X is None and sample_weight is None and self._sums is not None:
            g = self._sums.profile(np.atleast_1d(points), threads)
        else:
            values, weight = self._kept_values(X, sample_weight)

            def profile(chosen: Chosen, code: int, at: FloatArray) -> FloatArray:
                return power_sums.profile_matrix(values[:, chosen], code, at, weight, threads)

            g = self._curves(profile, np.atleast_1d(points)) + np.log(self.divisor)[:, None]
        g *= self.n_kept[:, None]
        return g[:, 0] if points.ndim == 0 else g

    def objective_curve(
        self,
        lmbdas: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """What the estimator minimises, of every column at given lambdas.

        ``u`` is the column as the estimator sees it: in robust fits prestandardised, ``(x - median)/MAD`` or
        ``exp((ln x - median)/MAD)`` by default, else the data.

        ============  =====================================================================================
        estimator     objective
        ============  =====================================================================================
        rewml         ``1/n sum rho((psi(u_i) - loc)/scale - z_i)`` with the rectified psi (on one side, or on
                      both: see `route`), ascending values, normal scores z, Huber's location and scale, and
                      the bisquare rho: from 0 to 1
        rewml-nr      the same with the plain psi
        carroll       ``ln scale - (lambda - 1) mean(J)`` with Huber's scale of psi(u)
        mtl           the least ``1/2 ln Var(psi) - (lambda - 1) mean(J)`` of any `h` n consecutive order statistics
        ks            Kolmogorov-Smirnov distance of psi from the normal distribution
        ppcc          1 - r, r the correlation with normal quantiles
        mle           ``1/2 ln Var(psi) - (lambda - 1) mean(J)``, `nll` per observation
        ============  =====================================================================================

        Parameters
        ----------
        lmbdas : float or (k,) array-like
            Where to evaluate: lambdas of the data, as `lmbda` and `lmbda0` are.
        X, sample_weight, n_threads
            As in `profile`.

        Returns
        -------
        (n_features, k) ndarray
            NaN where the objective is not defined, as for columns that could not be fitted. For a scalar,
            (n_features,).

        See Also
        --------
        powerkern.plot.objective_plot : its picture.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=100), "box-cox", "rewml")
        >>> bool(np.isclose(fit.objective_curve(fit.lmbda0)[0, 0], fit.objective[0]))
        True
        >>> bool(fit.objective_curve(np.linspace(-3.0, 3.0, 601)).min() >= fit.objective[0])
        True
        """
        solver = self.estimator.solver()
        if solver is None:
            curve = self.profile(lmbdas, X, sample_weight=sample_weight, n_threads=n_threads)
            return curve / (self.n_kept if curve.ndim == 1 else self.n_kept[:, None])
        points, threads = _grid(lmbdas), thread_count(n_threads)
        values, weight = self._as_they_are(X, sample_weight)
        columns = shifted(values, self.shift)

        def objective(chosen: Chosen, code: int, at: FloatArray) -> FloatArray:
            routes = self._results[chosen, ROUTE].copy()
            return solver.objective(columns[:, chosen], code, at, weight, threads, routes)

        found = self._curves(objective, np.atleast_1d(points))
        return found[:, 0] if points.ndim == 0 else found

    def confint(
        self,
        level: float = 0.95,
        X: object = None,
        *,
        method: Method | Literal["bootstrap"] | None = None,
        replicates: int = REPLICATES,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> Interval:
        """Intervals for lambda: from the likelihood, or of the estimators that have none of their own, by a bootstrap.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level, between 0 and 1.
        X, sample_weight, n_threads
            As in `profile`.
        method : {"profile", "wald", "bootstrap"}, optional
            "profile" (default of maximum likelihood): where `nll` exceeds its minimum by half a chi-square quantile.
            "wald": ``lmbda -+ Phi^-1((1 + level)/2)/sqrt(information)``, as R's car prints it. That needs no data; the
            other has better coverage in short columns. "bootstrap" (of all other estimators, and of them only):
            ``lmbda -+ Phi^-1((1 + level)/2) se`` with the `standard_error`.
        replicates : int, default 200
            Of the bootstrap, see `standard_error`.

        Returns
        -------
        Interval
            Arrays `low` and `high`; NaN for columns whose lambda was not found by the estimator (given, at a bound, not
            fitted).

        Notes
        -----
        What an interval of a robust fit covers is the lambda that the estimator finds in a very long column of the same
        kind. Without outliers that of RewML does so in 93 to 97 % of columns of 50 to 1000 values at level 0.95, of the
        others within 3.5 % of 95 (see the guide on robust fits); ``1/sqrt(information)`` of the values kept would be
        too short, as it takes them as given.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox")
        >>> np.ravel(fit.confint()).round(4)
        array([-0.0534, 0.2082])
        >>> np.ravel(fit.confint(method="wald")).round(4)
        array([-0.0543, 0.2071])
        """
        level = checked_level(level)
        by_bootstrap = not self._by_likelihood
        method = method or ("bootstrap" if by_bootstrap else "profile")
        if (as_choice("method", method, (*get_args(Method), "bootstrap")) == "bootstrap") != by_bootstrap:
            which = "method='bootstrap'" if by_bootstrap else "method='profile' or 'wald'"
            raise ValueError(f"intervals of estimator={self.estimator.name!r} are made with {which}, not {method!r}")
        if method != "profile":
            se = self.standard_error(X, replicates=replicates, sample_weight=sample_weight, n_threads=n_threads)
            return wald_interval(self.lmbda, se, level)
        threads = thread_count(n_threads)
        with np.errstate(divide="ignore"):
            drop = 0.5 * special.chdtri(1, 1.0 - level) / self.n_obs
        if X is None and sample_weight is None and self._sums is not None:
            ends = self._sums.interval(self.lmbda, drop, threads)
        else:
            values, weight = self._remembered(X, sample_weight)
            ends = np.empty((self.n_features, 2))
            for code, chosen in self._by_family():
                args = values[:, chosen], code, self.lmbda[chosen], drop[chosen], weight, threads
                ends[chosen] = power_sums.interval_matrix(*args)
        ends[drop == 0.0] = self.lmbda[drop == 0.0, None]  # a level that rounds to 0
        ends[self.status != Status.OK] = np.nan
        return Interval(ends[:, 0], ends[:, 1])

    def standard_error(
        self,
        X: object = None,
        *,
        replicates: int = REPLICATES,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """The standard error of lambda: ``1/sqrt(information)``; of the other estimators by a bootstrap.

        Parameters
        ----------
        X, sample_weight, n_threads
            As in `profile`; maximum likelihood needs no data for it.
        replicates : int, default 200
            How often rows are drawn with replacement and fitted; more of them have a steadier spread: that of 200 is
            within some 6 % of that of very many.

        Returns
        -------
        (n_features,) ndarray
            NaN for columns whose lambda was not found by the estimator (given, at a bound, not fitted), and where most
            replicates cannot be fitted.

        Raises
        ------
        ValueError
            A robust fit without its data.

        Notes
        -----
        Half the distance between the quantiles Phi(-1) and Phi(1) of the replicates' lambdas, times sqrt(m/n): a
        replicate has m values, at most 500 of n, drawn in proportion to their weights from those that are not missing.
        It takes as long as fitting 200 columns of m values for each column; what is drawn does not depend on threads,
        nor on the number and order of columns. Under ``family="best"`` the family is taken as given.

        References
        ----------
        .. [1] P. J. Bickel, F. Götze and W. R. van Zwet, "Resampling fewer than n observations: gains, losses, and
           remedies for losses", Statistica Sinica 7, 1997, 1-31.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> robust, likely = pk.fit(x, "box-cox", "rewml"), pk.fit(x, "box-cox")
        >>> bool(0.5 < robust.standard_error()[0] / likely.standard_error()[0] < 2.0)
        True
        """
        solver = self.estimator.solver()
        if solver is None:
            return self._of_found(standard_error(self.information))
        if not is_whole(replicates) or not replicates >= _FEWEST_REPLICATES:
            raise ValueError(f"replicates must be a whole number of at least {_FEWEST_REPLICATES}, got {replicates!r}")
        values, weight = self._as_they_are(X, sample_weight)
        shift, errors = self.shift, np.empty(self.n_features)
        for code, chosen in self._by_family():
            args = values[:, chosen], shift[chosen], weight, code, int(replicates), thread_count(n_threads)
            errors[chosen] = bootstrap_errors(solver, *args)
        return self._of_found(errors)

    def lr_test(
        self,
        lmbda0: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> LikelihoodRatio:
        """Likelihood ratio tests of given lambdas, column by column.

        ``2 (nll(lmbda0) - nll)`` is chi-square with one degree of freedom, up to O(1/n), if `lmbda0` is true.

        Parameters
        ----------
        lmbda0 : float or (n_features,) array-like
            The lambda to test, or one for each column.
        X, sample_weight, n_threads
            As in `profile`: without data, fits of sketches answer from their power sums.

        Returns
        -------
        LikelihoodRatio
            Arrays `statistic` and `pvalue`, and `df`, which is 1. NaN for columns whose lambda was not found by
            maximum likelihood (given, at a bound, rounded, not fitted).

        Raises
        ------
        ValueError
            Robust fits, which have no likelihood ratio; a fit without its data; lambdas that are not finite.

        Notes
        -----
        The statistic is a difference of two sums over the rows: it is accurate to about 1e-15 times `nll`.

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
        self._refuse_robust("a likelihood ratio test")
        given = hypothesis_lambdas(lmbda0, self.n_features)
        if given.ndim == 0:
            nll0 = self.profile(given, X, sample_weight=sample_weight, n_threads=n_threads)
        else:
            nll0 = self.n_obs * self._likelihoods(given, X, sample_weight, thread_count(n_threads))
        return likelihood_ratio(nll0, self._optimal_nll())

    def rounded(self, level: float = 0.95) -> FloatArray:
        """Convenient powers: the first of 1, 0, -1, 1/2, 1/3, -1/2, -1/3, 2, -2 inside the Wald interval.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the interval, between 0 and 1.

        Returns
        -------
        (n_features,) ndarray
            `lmbda` itself where no such power is inside, and for columns whose lambda was not found by maximum
            likelihood. As R's ``car::powerTransform(x)$roundlam``, where 1/3 is written .33.

        Raises
        ------
        ValueError
            Robust fits, which have no such interval.

        See Also
        --------
        PowerFit.rounded_fit : the fit with these powers.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox")
        >>> fit.lmbda.round(3), fit.rounded()
        (array([0.076]), array([0.]))
        """
        self._refuse_robust("a rounded power")
        return rounded_power(self.lmbda, self.confint(level, method="wald"))

    def normality(
        self, X: object = None, *, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
    ) -> Normality:
        """How close to normal the columns are before and after their transform.

        Parameters
        ----------
        X : (n, n_features) array-like, optional
            The fitted data, or others; not needed right after `fit`, see `profile`. NaN is missing.
        sample_weight : (n,) array-like, or str, optional
            Weights that go with `X`, or the name of its column that holds them: counts of its rows as in
            `powerkern.fit`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Normality
            `before` and `after`, each with arrays `skewness`, `kurtosis`, `ppcc` and `pvalue`
            (`scipy.stats.skew`, `kurtosis`, `probplot`, `normaltest`). NaN for columns without two distinct values;
            p-values also for fewer than 8 values.

        Raises
        ------
        ValueError
            Values outside the domain, a wrong shape.

        Notes
        -----
        The data are read once; a column is sorted, measured, transformed in place and measured again. Moments are
        taken about the mean, of values scaled by a power of 2: they neither overflow nor lose digits to an offset.
        The p-value after a fit is too large by a little, as lambda was chosen to make it so.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> before, after = pk.fit(np.random.default_rng(0).lognormal(size=200), "box-cox").normality()
        >>> before.skewness.round(2), after.skewness.round(2)
        (array([1.69]), array([-0.01]))
        """
        values, weight = self._as_they_are(X, sample_weight)
        found = np.empty((self.n_features, 2, N_NORMALITY))
        for code, chosen in self._by_family():
            found[chosen] = moments_matrix(
                values[:, chosen], code, self._results[chosen], weight, thread_count(n_threads)
            )
        return Normality(normality_figures(found[:, 0]), normality_figures(found[:, 1]))

    def summary(
        self,
        X: object = None,
        *,
        level: float = 0.95,
        sample: object = None,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> Summary:
        """A table of what was found, to print or as arrays or a data frame.

        Parameters
        ----------
        X : (n, n_features) array-like, optional
            The fitted data; not needed right after `fit`, see `profile`.
        level : float, default 0.95
            Confidence level of intervals and rounded powers.
        sample : (n, n_features) array-like, optional
            In place of `X`, rows drawn at random from data that are too many: `normality` is of these, and so are the
            replicates of the bootstrap, whose spread is brought to that of all rows. All else is from what the fit
            knows by itself.
        sample_weight : (n,) array-like, or str, optional
            Weights that go with `X` or with the sample, or the name of its column that holds them.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Summary
            For each column: `lmbda`, the `rounded` power, standard error `se`, ends `low` and `high` of the Wald
            interval, likelihood ratio tests of lambda = 0 (`lr_0`, p-value `p_0`) and 1 (`lr_1`, `p_1`); skewness,
            kurtosis, ppcc and p-value of normality before and after (see `normality`); n_obs and status. What needs
            the data is left out where the fit no longer has them. Of robust fits `se` is by the bootstrap of
            `standard_error`, `low` and `high` are those of `confint`, and there are no tests and rounded powers. Notes
            say so.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> summary = pk.fit(np.random.default_rng(0).lognormal(size=200), "box-cox").summary()
        >>> for line in str(summary).splitlines()[2:4]:
        ...     print(line)
        column  family      lmbda  rounded        se        low    high    lr_0      p_0    lr_1         p_1
        0       box-cox  0.076378        0  0.066698  -0.054349  0.2071  1.3231  0.25003  164.89  9.6708e-38
        >>> sorted(summary.to_dict())[:5]
        ['column', 'family', 'high', 'kurtosis', 'kurtosis_after']
        """
        names = self.column_names or map(str, range(self.n_features))
        if X is not None and sample is not None:
            raise ValueError("pass the data as X, or rows drawn from them as sample, not both")
        shape, note = self._shape_entries(X, sample, sample_weight, n_threads)
        first: dict[str, NDArray[Any]] = {"family": np.array(self.families)}
        last: dict[str, NDArray[Any]] = {"n_obs": self.n_obs, "status": np.array(self.status_text)}
        if self._by_likelihood:
            found, notes = self._estimates(level, X, sample_weight if sample is None else None, n_threads)
        else:
            found, notes = self._robust_estimates(level, X, sample, sample_weight, n_threads)
        return Summary(repr(self), names, [first | found, *shape, last], notes=[*notes, *note])

    def _estimates(
        self, level: float, X: object, sample_weight: ArrayLike | str | None, n_threads: int | None
    ) -> tuple[dict[str, FloatArray], list[str]]:
        """The entries of a summary that follow from the likelihood, and what there is to say of them."""
        interval = self.confint(level, method="wald")
        tests, notes = {}, [note_on_intervals(level)]
        if X is not None or self._data is not None or self._sums is not None:
            nll0 = self.profile(list(TESTED), X, sample_weight=sample_weight, n_threads=n_threads)
            tests = {f"{at:g}": likelihood_ratio(nll0[:, k], self._optimal_nll()) for k, at in enumerate(TESTED)}
            notes.append(NOTE_ON_TESTS)
        else:
            notes.append(NOTE_WITHOUT_DATA)
        rounded = rounded_power(self.lmbda, interval)
        return estimates(self.lmbda, rounded, self.standard_error(), interval, tests), notes

    def _robust_estimates(
        self,
        level: float,
        X: object,
        sample: object,
        sample_weight: ArrayLike | str | None,
        n_threads: int | None,
    ) -> tuple[dict[str, FloatArray], list[str]]:
        """The same of estimators that are not maximum likelihood, and have no tests."""
        notes = [f"no tests: estimator={self.estimator.name!r} is not maximum likelihood"]
        if X is None and sample is None and self._data is None:
            found, which = {}, "no intervals: the fit no longer has its data; pass X"
        else:
            rows = X if sample is None else sample
            se = self.standard_error(rows, sample_weight=sample_weight, n_threads=n_threads)
            if sample is not None:
                se *= np.sqrt(self._share_of(sample, sample_weight))
            interval = wald_interval(self.lmbda, se, level)
            found, which = {"se": se, "low": interval.low, "high": interval.high}, note_on_bootstrap(level)
        return {"lmbda": self.lmbda, **found, "n_kept": self.n_kept}, [*notes, which]

    def _share_of(self, sample: object, sample_weight: ArrayLike | str | None) -> FloatArray:
        """How much of the weight of each column a sample has; none of a column without values."""
        values, weight = self._as_they_are(sample, sample_weight)
        there = ~np.isnan(values)
        drawn: FloatArray = weight @ there if weight.size else np.count_nonzero(there, axis=0).astype(np.float64)
        return np.divide(drawn, self.n_obs, out=np.zeros_like(drawn), where=self.n_obs > 0.0)

    def _shape_entries(
        self, X: object, sample: object, sample_weight: ArrayLike | str | None, n_threads: int | None
    ) -> tuple[list[dict[str, FloatArray]], list[str]]:
        """The entries of a summary that say how normal columns are, or what stands in their way."""
        if X is None and sample is None and self._data is None:
            return [], ["no figures of normality: the fit no longer has its data; pass X"]
        rows = X if sample is None else sample
        before, after = self.normality(rows, sample_weight=sample_weight, n_threads=n_threads)
        entries = {}
        for name, x, z in zip(before._fields, before, after, strict=True):
            short = _SHORTER.get(name, name)
            entries[short], entries[f"{short}_after"] = x, z
        notes = ["p_normal: D'Agostino and Pearson's test, before and after the transform"]
        if sample is not None:
            notes.append(f"figures of normality are of {len(as_matrix(sample).values)} rows, drawn at random")
        return [entries], notes

    def _optimal_nll(self) -> FloatArray:
        """`nll` of the columns whose lambda was found by maximum likelihood."""
        return np.where(self.status == Status.OK, self.nll, np.nan)

    def _of_found(self, figures: FloatArray) -> FloatArray:
        """The figures of columns whose lambda was found by the estimator; NaN of others."""
        found = _FOUND if self._by_likelihood else _FOUND_ROBUSTLY
        return np.where(np.isin(self.status, found), figures, np.nan)

    def _by_family(self) -> list[tuple[int, Chosen]]:
        """Each family in use, and its columns."""
        codes = np.unique(self._families).tolist()
        return [(code, slice(None) if len(codes) == 1 else np.flatnonzero(self._families == code)) for code in codes]

    def _curves(self, of: Callable[[Chosen, int, FloatArray], FloatArray], at: FloatArray) -> FloatArray:
        """A function of the columns of one family, its code and lambdas, of all columns: (n_features, len(at))."""
        found = np.empty((self.n_features, at.size))
        for code, chosen in self._by_family():
            found[chosen] = of(chosen, code, at)
        return found

    def _kept_values(self, X: object, sample_weight: ArrayLike | str | None) -> tuple[Columns, FloatArray]:
        """What the likelihood is of, with weights: the data as they are transformed, without values left out."""
        if self._by_likelihood:
            return self._remembered(X, sample_weight)
        values, weight = self._as_they_are(X, sample_weight)
        low, high = self._results[:, KEPT_LOW], self._results[:, KEPT_HIGH]
        kept = np.where((values >= low) & (values <= high), values, np.nan)
        return (kept - self.center) / self.divisor, weight

    @property
    def _by_likelihood(self) -> bool:
        """Whether lambda is the maximum likelihood estimate of all values."""
        return isinstance(self.estimator, ML)

    def _refuse_robust(self, what: str) -> None:
        if not self._by_likelihood:
            raise ValueError(f"{what} of lambda: for estimator='mle' only, not for {self.estimator.name!r}")

    def _likelihoods(
        self, lmbda: FloatArray, X: object, sample_weight: ArrayLike | str | None, n_threads: int
    ) -> FloatArray:
        """Negative log-likelihood per observation of every column at a lambda of its own."""
        if X is None and sample_weight is None and self._sums is not None:
            return self._sums.likelihood(lmbda, n_threads)
        values, weight = self._remembered(X, sample_weight)
        g = np.empty(self.n_features)
        for code, chosen in self._by_family():
            g[chosen] = likelihoods(values[:, chosen], code, lmbda[chosen], weight, n_threads)
        return g

    def _results_at(
        self, lmbda: FloatArray, X: object, sample_weight: ArrayLike | str | None, n_threads: int
    ) -> FloatArray:
        """Results of every column with these lambdas."""
        if X is None and sample_weight is None and self._sums is not None:
            results, _ = self._sums.fit(lmbda, n_threads)
        else:
            values, weight = self._remembered(X, sample_weight)
            results = np.empty_like(self._results)
            for code, chosen in self._by_family():
                results[chosen] = power_sums.fit_matrix(values[:, chosen], code, lmbda[chosen], weight, n_threads)
        to_own_units(results, self.shift)
        results[:, [X_MIN, X_MAX]] = self._results[:, [X_MIN, X_MAX]]
        return results

    def _remembered(self, X: object, sample_weight: ArrayLike | str | None) -> tuple[Columns, FloatArray]:
        """The data as they are transformed, with weights."""
        values, weight = self._as_they_are(X, sample_weight)
        return shifted(values, self.shift), weight

    def _as_they_are(self, X: object, sample_weight: ArrayLike | str | None) -> tuple[NDArray[Any], FloatArray]:
        """The data, in their own units, with weights."""
        if X is not None:
            X, sample_weight = frames.without_weights(X, sample_weight)
            matrix = as_matrix(frames.columns_named(X, self.column_names))
            check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
            weight = weights_of(sample_weight, matrix.values.shape[0])
            weighted = matrix.values[weight > 0.0] if weight.size else matrix.values
            counts = count_outside(weighted, self._families, self._results, 1)
            if counts.any():
                j = int(np.argmax(counts > 0))
                raise domain_error_in(matrix, j, matrix.names or self.column_names, weight, self.shift[j])
            return matrix.values, weight
        if sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass both, or neither to use the fitted data and weights")
        if self._data is None:
            raise ValueError(
                "this fit no longer has its data (it was made from chunks, pickled, read from JSON, or the data were "
                "overwritten); pass X, or some 10,000 rows of it drawn at random: figures are then those of a fit to "
                "so many rows, and summary(sample=rows) has standard errors and intervals for all of them"
            )
        return self._data


def _grid(lmbdas: ArrayLike) -> FloatArray:
    """Lambdas at which something is to be evaluated."""
    points = as_reals("lmbdas", lmbdas)
    if points.ndim > 1 or not np.isfinite(points).all():
        raise ValueError("lmbdas must be a finite number or a one-dimensional array of them")
    return points
