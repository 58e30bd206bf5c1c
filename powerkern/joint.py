"""Transform columns together: fit a lambda for each column so that the columns become jointly normal."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.products import combine
from powerkern._engine.threads import thread_count
from powerkern._estimators.shift import given_shift
from powerkern._fit.fit import fit
from powerkern._input import frames
from powerkern._input.arguments import MOST_STARTS, as_whole
from powerkern._input.arrays import as_choice, column_labels
from powerkern._input.choices import OutOfRange
from powerkern._input.messages import suggest_keywords, warn
from powerkern._input.reading import read, read_fitted
from powerkern._models.joint_rows import JointRows, joint_likelihood, make_design, read_joint_covariates, select_rows
from powerkern._models.joint_search import FittedLikelihood, JointFitState, find_lowest_minimum, make_fit_state
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import (
    Interval,
    LikelihoodOptimum,
    LikelihoodRatio,
    Method,
    RoundedPowers,
    confidence_interval,
    name_intervals,
    ratio_test,
    refuse_number,
)
from powerkern._results.power_fit import PowerFit
from powerkern._results.stored_fit import StoredFit
from powerkern._results.summary import Summary, likelihood_entries
from powerkern._status import JointStatus
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.outliers import mahalanobis

__all__ = ["JointFit", "JointStatus", "fit_joint"]


def fit_joint(
    X: object,
    covariates: object = None,
    family: str = "yeo-johnson",
    *,
    formula: str | None = None,
    sample_weight: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    n_starts: int = 1,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> JointFit:
    r"""Fit a power transform to every column so that the transformed columns are jointly normal.

    The lambdas minimise

    .. math:: \tfrac{1}{2} \ln \det S(\lambda) - \sum_j (\lambda_j - 1)\, \overline{J_j}

    ([1]_, [2]_) with the covariance S (divisor n) of the transformed columns, or of their residuals given covariates
    and an intercept. psi and J are as in `powerkern.fit`. For one column without covariates, the result is the fit of
    `powerkern.fit`.

    Parameters
    ----------
    X : (n, p) array-like
        The data. Rows with a missing value (NaN, null) in any column are left out, with one warning that counts them.
    covariates : (n, q) or (n,) array-like, optional
        Covariates of a linear model for the means of the transformed columns; an intercept is added. Covariates that
        depend linearly on earlier ones are left out, with a warning that names them. With a `formula`, a data frame.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    formula : str, optional
        The right-hand side of a model formula, such as ``"~ weight + C(group)"``, that `formulaic` evaluates in the
        data frame `covariates`.
    sample_weight : (n,) array-like, optional
        Non-negative weights of the rows; integer weights act as if rows were repeated.
    shift : float or (p,) array-like, default 0
        For Box-Cox: transform ``x + shift``.
    n_starts : int, default 1
        Number of searches. The first starts from the fits of single columns (given the covariates), all others from
        random lambdas around these. The lowest minimum is returned; the status says whether there were several.
    column_names : sequence of str, optional
        Names used in messages and kept with the fit; default: the names in a data frame.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit, nor on the order of
        the columns.

    Returns
    -------
    JointFit

    Raises
    ------
    TypeError
        If data are not real numbers.
    ValueError
        If a value is infinite or outside the domain, or a covariate is missing or infinite (the message names column
        and row); if a column has fewer than two distinct values; if there are no more complete rows than columns and
        coefficients; if transformed columns are linearly dependent (the message names them), because the objective then
        has no minimum; if a formula has no constant.
    ImportError
        If there is a formula and formulaic is not installed.

    Warns
    -----
    UserWarning
        Once, counting rows that were left out; if a search did not converge.

    Notes
    -----
    The objective is not convex. The result is a local minimum near the fits of single columns, with a zero gradient and
    a positive definite Hessian. Newton's method with exact derivatives takes 5 to 8 evaluations. If there are few rows,
    ``n < 2 p + r`` (where r is the number of coefficients of the design), there may be lambdas at which S is singular
    and the objective is unbounded below. The fit is the local optimum next to these lambdas.

    The fit needs memory for five more arrays of the size of the data.

    References
    ----------
    .. [1] D. F. Andrews, R. Gnanadesikan and J. L. Warner, "Transformations of multivariate data", Biometrics 27,
       1971, 825-840.
    .. [2] S. Velilla, "A note on the multivariate Box-Cox transformation to normality", Statistics & Probability
       Letters 17, 1993, 259-263.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.joint import fit_joint
    >>> logs = np.random.default_rng(0).normal(size=(500, 2))
    >>> logs[:, 1] += 2.0 * logs[:, 0]
    >>> joint = fit_joint(np.exp(logs), family="box-cox")
    >>> bool((abs(joint.lmbda) < 3 * joint.standard_error()).all())
    True
    >>> bool(joint.lr_test(0.0).pvalue > 0.01), bool(joint.lr_test(1.0).pvalue < 1e-6)
    (True, True)
    """
    as_choice("family", family, FAMILIES)
    n_starts = as_whole("n_starts", n_starts, most=MOST_STARTS)
    matrix = read(X, sample_weight, column_names=column_names)
    data = FittedData.remember(matrix, X, sample_weight)
    matrix = matrix._replace(values=data.values, weight=data.weight)
    shifts, threads = given_shift(shift, family, matrix.values.shape[1], matrix.names), thread_count(n_threads)
    terms, given = read_joint_covariates(covariates, formula, len(matrix.values), X)
    rows = select_rows(matrix, given, family, shifts)
    design = make_design(rows, terms)
    terms.warn_dropped(design.used)
    likelihood = joint_likelihood(rows, design, FAMILIES[family], shifts, threads)
    best = find_lowest_minimum(likelihood, rows, design, FAMILIES[family], shifts, int(n_starts), threads)
    if best.status == JointStatus.NOT_CONVERGED:
        warn(f"{best.status.sentence}; try other starts (n_starts=10)")
    lmbda, weight = likelihood.restore_order(best.lmbda), rows.weight
    columns = fit(
        rows.values, family, sample_weight=weight, lmbda=lmbda, shift=shift, column_names=rows.names, n_threads=threads
    )
    found = make_fit_state(columns, likelihood, best, rows, terms, design, threads)
    return JointFit(found, rows, data.take_fingerprints(threads))


class JointFit(StoredFit, RoundedPowers):
    """Power transforms fitted to columns together, returned by `fit_joint`.

    Attributes
    ----------
    power_fit : PowerFit
        The transforms of the columns with the lambdas of the joint fit, for `powerkern.plot`, say.
    family, column_names, n_features, lmbda, lambdas
        As in `powerkern.PowerFit`.
    lmbda_cov : (p, p) ndarray
        Covariance matrix of `lmbda`, the inverse Hessian of the negative log-likelihood; NaN if it is not positive
        definite.
    llf : float
        Joint log-likelihood ``-n (1/2 ln det S - sum_j (lmbda_j - 1) mean(J_j))``, without constants, as in
        `powerkern.fit`. Add ``-n p/2 (1 + ln(2 pi))`` for the log-likelihood of the data. R's ``car::powerTransform``
        reports `nll` plus ``(p - 1) n/2 ln(n/(n - 1))``.
    nll : float
        Minus `llf`.
    coef : (rank, p) ndarray
        Coefficients of the standardised transformed columns: their means, or intercepts and slopes of covariates.
    coef_names : list of str
        "Intercept" and the covariates that were not left out; "x0", "x1", ... if they have no names.
    cov : (p, p) ndarray
        Covariance (1/n) of the standardised transformed columns, or of their residuals given the covariates. Without
        covariates, it is the correlation matrix.
    n_obs : float
        Number of complete rows; with weights, the sum of their weights.
    n_iter : int
        Number of evaluations of the joint likelihood and its derivatives. Evaluations for starting values with
        covariates are not counted.
    status : JointStatus
        Outcome of the search; its `sentence` describes it.
    """

    power_fit: PowerFit
    family: str
    n_features: int
    lmbda: FloatArray
    lmbda_cov: FloatArray
    llf: float
    nll: float
    coef: FloatArray
    coef_names: list[str]
    cov: FloatArray
    n_obs: float
    n_iter: int
    status: JointStatus

    _found: JointFitState
    _rows: JointRows | None
    _data: FittedData | None

    def __init__(self, state: JointFitState, rows: JointRows | None = None, data: FittedData | None = None) -> None:
        """Build a fit from the results of the search.

        Parameters
        ----------
        state : JointFitState
            The results.
        rows, data : JointRows and FittedData, optional
            The complete rows, used by methods that are called without `X`, and the data from which they were selected.
        """
        for array in (state.lmbda_cov, state.coef, state.cov):
            array.flags.writeable = False
        power_fit = state.power_fit
        vars(self).update(
            _found=state,
            _rows=rows,
            _data=data,
            power_fit=power_fit,
            family=power_fit.family,
            column_names=power_fit.column_names,
            n_features=power_fit.n_features,
            lmbda=power_fit.lmbda,
            lmbda_cov=state.lmbda_cov,
            llf=state.llf,
            nll=-state.llf,
            coef=state.coef,
            coef_names=[state.covariates.names[k] for k in state.kept.tolist()],
            cov=state.cov,
            n_obs=float(power_fit.n_obs[0]),
            n_iter=state.n_iter,
            status=state.status,
        )

    @property
    def lambdas(self) -> Any:
        """`lmbda` as a pandas series with the labels of the columns, if they have labels and pandas is installed."""
        return self.power_fit.lambdas

    def _optimum(self) -> LikelihoodOptimum:
        """Return the maximum of the likelihood in the form that tests and rounded powers use."""
        nll, n_obs = np.asarray(self.nll), np.asarray(self.n_obs)
        return LikelihoodOptimum(
            self.lmbda, nll, self.standard_error(), n_obs, self.n_features, names=self.column_names
        )

    def __repr__(self) -> str:
        given = f", {_count_phrase(len(self.coef) - 1, 'covariate')}" if len(self.coef) > 1 else ""
        return (
            f"JointFit(family={self.family!r}, {_count_phrase(self.n_features, 'column')}{given}, {self.status.label})"
        )

    def __reduce__(self) -> tuple[Any, ...]:  # fits are pickled without their data
        return type(self), (self._found,)

    # --- applying ---------------------------------------------------------------------------------------

    def transform(self, X: object, **options: Any) -> Any:
        """Transform and standardise every column of `X`; see `PowerFit.transform`."""
        return self.power_fit.transform(X, **options)

    def inverse_transform(self, Z: object, *, out_of_range: OutOfRange = "nan", **options: Any) -> Any:
        """Undo `transform`; see `PowerFit.inverse_transform`."""
        return self.power_fit.inverse_transform(Z, out_of_range=out_of_range, **options)

    def mahalanobis(self, X: object, covariates: object = None, *, n_threads: int | None = None) -> Any:
        """Return the Mahalanobis distance of each transformed row from the fitted normal distribution.

        The distance is ``sqrt(r^T cov^-1 r)``, where r is the standardised transformed row minus its fitted mean.

        Parameters
        ----------
        X : (n, n_features) array-like
            The fitted data, or new data. A row with a missing value has the distance NaN. A row whose transform is
            infinite has an infinite distance.
        covariates : (n, q) array-like, optional
            The covariates of these rows; needed if the fit had covariates.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (n,) ndarray, or a series with the index of a data frame
            Distances, not squared. On the fitted data their squares sum to n p. If the model holds they are chi-square
            with p degrees of freedom, up to O(1/n).

        Raises
        ------
        ValueError
            As in `transform`; also if covariates are missing, or do not match the fit.

        See Also
        --------
        powerkern.outliers.mahalanobis : distances without a transform.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.joint import fit_joint
        >>> X = np.random.default_rng(0).lognormal(size=(200, 3))
        >>> distance = fit_joint(X, family="box-cox").mahalanobis(X)
        >>> round(float((distance**2).sum()), 6)
        600.0
        """
        matrix = read_fitted(X, self.column_names, self.n_features)
        values = np.asarray(matrix.values, dtype=np.float64)
        residuals = self.power_fit.transform(values, n_threads=n_threads)
        coef = np.array(self.coef.T)  # a copy: kernels do not accept the read-only memory maps of joblib
        design = self._found.covariates.matrix(covariates, len(values), X)[:, self._found.kept]
        residuals -= combine(coef, np.ascontiguousarray(design.T)).T
        too_far = np.isinf(residuals).any(axis=1) & ~np.isnan(residuals).any(axis=1)
        residuals[too_far] = np.nan  # `mahalanobis` accepts NaN, but not infinite values
        distances = mahalanobis(residuals, np.zeros(self.n_features), self.cov)
        distances[too_far] = np.inf
        return frames.labelled(X, distances)

    # --- likelihood -------------------------------------------------------------------------------------

    def confint(
        self,
        X: object = None,
        covariates: object = None,
        *,
        level: float = 0.95,
        method: Method = "profile",
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Interval:
        """Return a confidence interval for each lambda, with the other lambdas unrestricted.

        Parameters
        ----------
        X, covariates, sample_weight : array-like, optional
            The fitted data. They are not needed right after `fit_joint`, which remembers them; see `PowerFit.profile`.
        level : float, default 0.95
            Confidence level, between 0 and 1.
        method : {"profile", "wald"}, default "profile"
            "profile" ends where the likelihood, maximised over the other lambdas, has fallen by half a chi-square
            quantile. "wald" is ``lmbda -+ Phi^-1((1 + level)/2) se`` with the `standard_error`; it needs no data.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Interval
            `low` and `high`, as in `PowerFit.confint`. NaN, with a warning, if the profile does not fall that far, or
            if Newton's method does not converge.

        Notes
        -----
        An end of a profile interval takes about five evaluations of the joint likelihood, by the method of [1]_. It is
        accurate up to the rounding of the likelihood, some ``1e-7 sqrt(n)`` standard errors.

        References
        ----------
        .. [1] D. J. Venzon and S. H. Moolgavkar, "A method for computing profile-likelihood-based confidence
           intervals", Applied Statistics 37, 1988, 87-94.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.joint import fit_joint
        >>> joint = fit_joint(np.random.default_rng(0).lognormal(size=(200, 2)), family="box-cox")
        >>> low, high = joint.confint()
        >>> bool((low < 0.0).all() and (high > 0.0).all())
        True
        """
        refuse_number(X)
        interval = confidence_interval(
            self._optimum(), level, method, lambda: self._likelihood(X, covariates, sample_weight, n_threads)
        )
        lost = np.flatnonzero(np.isnan(interval.low + interval.high))
        if lost.size and method != "wald":
            warn(
                f"{column_labels(lost, self.column_names)}: an end of the profile interval was not found; use "
                "method='wald'"
            )
        return name_intervals(interval, self.column_names)

    def standard_error(self) -> FloatArray:
        """Return the standard errors of lambda: the square roots of the diagonal of `lmbda_cov`."""
        return np.asarray(np.sqrt(np.diag(self.lmbda_cov)))

    def lr_test(
        self,
        lmbda0: ArrayLike,
        X: object = None,
        covariates: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> LikelihoodRatio:
        """Test whether all lambdas have given values, by one likelihood ratio test.

        If `lmbda0` is true, ``2 (nll(lmbda0) - nll)`` is chi-square with p degrees of freedom, up to O(1/n).

        Parameters
        ----------
        lmbda0 : float or (p,) array-like
            The lambdas to test; one number applies to all columns. 0 tests whether the logarithms are jointly normal, 1
            whether the data are.
        X, covariates, sample_weight, n_threads
            As in `confint`.

        Returns
        -------
        LikelihoodRatio
            A named tuple of numbers: ``statistic``, infinite if a transform with `lmbda0` overflows; ``df``, which is
            p; and ``pvalue``, the probability that a chi-square variable exceeds the statistic.

        Raises
        ------
        ValueError
            If lambdas are not finite or not one per column, or if `lmbda0` makes columns linearly dependent.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.joint import fit_joint
        >>> joint = fit_joint(np.random.default_rng(0).lognormal(size=(200, 2)), family="box-cox")
        >>> bool(joint.lr_test(1.0).pvalue < 1e-6 < joint.lr_test([0.0, 0.0]).pvalue)
        True
        """
        test = ratio_test(self._optimum(), lmbda0, lambda: self._likelihood(X, covariates, sample_weight, n_threads))
        return LikelihoodRatio(test.statistic[()], test.df, test.pvalue[()])

    def summary(
        self,
        X: object = None,
        covariates: object = None,
        *,
        level: float = 0.95,
        method: Method | None = None,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Summary:
        """Return a table of the lambdas, with joint tests of no transform, of logarithms and of the rounded powers.

        Parameters
        ----------
        X, covariates, sample_weight, n_threads
            As in `confint`; without data the tests are left out.
        level : float, default 0.95
            Confidence level of the intervals.
        method : {"profile", "wald"}, optional
            Method of the intervals, as in `confint`. The default is "profile"; without data it is "wald".

        Returns
        -------
        Summary
            For each column `lmbda`, the `rounded` power, `se`, and the ends `low` and `high`; then the joint tests.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.joint import fit_joint
        >>> summary = fit_joint(np.random.default_rng(0).lognormal(size=(200, 2)), family="box-cox").summary()
        >>> sorted(summary.tests)
        ['all 0', 'all 1', 'rounded']
        """
        has_data = X is not None or self._rows is not None
        likelihood = functools.cache(lambda: self._likelihood(X, covariates, sample_weight, n_threads))
        table, notes = likelihood_entries(self._optimum(), level, method, likelihood if has_data else None)
        tests = {}
        if has_data:
            for name, at in (("all 0", 0.0), ("all 1", 1.0), ("rounded", table["rounded"])):
                tests[name] = ratio_test(self._optimum(), at, likelihood)
        names = self.power_fit._label_texts()
        return Summary(repr(self), names, [table], tests=tests, notes=[*notes, self.status.sentence])

    def _likelihood(
        self, X: object, covariates: object, sample_weight: ArrayLike | None, n_threads: int | None
    ) -> FittedLikelihood:
        """Return the likelihood of the fitted data, which are either remembered or passed again.

        Parameters
        ----------
        X, covariates, sample_weight, n_threads
            As in `confint`.
        """
        with warnings.catch_warnings():  # the fit has warned about rows left out
            warnings.simplefilter("ignore")
            rows = self._fitted_rows(X, covariates, sample_weight)
        design = make_design(rows, self._found.covariates)
        likelihood = joint_likelihood(
            rows, design, FAMILIES[self.family], self.power_fit.shift, thread_count(n_threads)
        )
        return FittedLikelihood(likelihood, self.lmbda, self.n_obs, self.column_names)

    def _fitted_rows(self, X: object, covariates: object, sample_weight: ArrayLike | None) -> JointRows:
        """Return the complete rows of the fitted data; raise if the data passed are not the fitted ones.

        Parameters
        ----------
        X, covariates, sample_weight
            As in `confint`; None: the remembered data.
        """
        if X is None:
            if covariates is not None or sample_weight is not None:
                raise ValueError(
                    "covariates and sample_weight need X: pass all of them, or none to use the fitted data"
                )
            if self._rows is None:
                raise ValueError("this fit no longer has its data (it was copied, pickled or read from JSON); pass X")
            if self._data is not None:
                self._data.checked(self.column_names)
            return self._rows
        matrix = read_fitted(X, self.column_names, self.n_features, sample_weight)
        given = self._found.covariates.matrix(covariates, len(matrix.values), X)
        rows = select_rows(matrix, given, self.family, self.power_fit.shift)
        if not math.isclose(rows.n_obs, self.n_obs, rel_tol=1e-9):
            raise ValueError(
                f"X has {rows.n_obs:g} complete rows (or total weight), the fit had {self.n_obs:g}; pass the "
                "fitted data, and their weights if they had any"
            )
        return rows

    def _to_record(self) -> dict[str, Any]:
        return self._found.to_record()

    @classmethod
    def _from_record(cls, record: Any) -> JointFit:
        return cls(JointFitState.from_record(record))


def _count_phrase(n: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless the count is 1."""
    return f"{n} {noun}{'s' * (n != 1)}"


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
