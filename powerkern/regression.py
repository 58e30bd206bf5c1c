"""Power transforms of responses given covariates: Box and Cox's regression, for thousands of responses at once."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._arguments import as_reals, domain_error_in, given_lambdas, weights_of
from powerkern._back_transform import Kind, back_transformed
from powerkern._design import Basis, Covariates, basis_of, read_covariates, warn_dropped
from powerkern._engine.by_column import column_figures
from powerkern._engine.shifted import Columns, shifted
from powerkern._engine.threads import thread_count
from powerkern._estimators import ESTIMATORS
from powerkern._likelihood_tests import (
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
from powerkern._power_fit import BEST, FIT_FAMILIES, PowerFit, warn_unfitted
from powerkern._shift import extremes, given_shift, to_own_units
from powerkern._status import Status, is_failed
from powerkern._summary import NOTE_ON_TESTS, Summary, estimates, note_on_intervals
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern._validate import Matrix, as_choice, as_flag, as_matrix
from powerkern.kernels import regression as kernel
from powerkern.kernels.family import BOX_COX, FAMILIES, YEO_JOHNSON
from powerkern.kernels.results import N_RESULTS, NLL, STATUS, X_MAX, X_MIN

__all__ = ["Interval", "LikelihoodRatio", "RegressionFit", "Summary", "fit_regression"]

#: Statuses of a lambda at a minimum.
_FOUND = (Status.SCANNED, Status.MULTIMODAL)
_FORMAT, _VERSION = "powerkern.RegressionFit", 1
#: Figures that JSON keeps besides the results.
_FIGURES = ("scanned", "gamma", "rank", "one")


def fit_regression(
    Y: object,
    X: object,
    family: str = "box-cox",
    *,
    formula: str | None = None,
    intercept: bool = True,
    estimator: str = "mle",
    sample_weight: ArrayLike | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    n_threads: int | None = None,
    progress: bool = False,
) -> RegressionFit:
    """Fit a power transform to every response, such that it is normal about a linear model of the covariates.

    For each column y of Y, lambda minimises ``1/2 ln(RSS(lambda)/n) - (lambda - 1) mean(J)``, RSS the residual sum of
    squares of ``psi(lambda, y)`` regressed on X; psi and J as in `powerkern.fit`. This is the profile likelihood of
    ``psi(lambda, y) = X beta + scale N(0, 1)`` ([1]_, section 3).

    Parameters
    ----------
    Y : (n, p) or (n,) array-like
        Responses, one per column. NaN is missing in that response alone: its other rows are used.
    X : (n, k) or (n,) array-like
        Covariates that all responses share: numbers, none missing. With a `formula`, a data frame.
    family : {"box-cox", "yeo-johnson", "best"}, default "box-cox"
        The transform; "best" takes, column by column, the one with the larger likelihood, Yeo-Johnson where values are
        not positive.
    formula : str, optional
        The right-hand side of a model formula, such as ``"~ weight + C(group)"``, that `formulaic` evaluates in the
        data frame X. It says itself whether there is an intercept.
    intercept : bool, default True
        Add a constant to the covariates. Without one among them, lambda of Box-Cox depends on the units of y.
    estimator : {"mle"}
        Maximum likelihood. The robust estimators of `powerkern.fit` are refused: see Notes.
    sample_weight : (n,) array-like, optional
        Non-negative weights of the rows; integer weights act as if rows were repeated.
    lmbda : float or (p,) array-like, optional
        Take these lambdas instead of fitting; NaN entries are fitted.
    shift : float or (p,) array-like, default 0
        Of Box-Cox: what is transformed is ``y + shift``.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit.
    progress : bool, default False
        Show a progress bar (needs tqdm) when the work takes more than about a second.

    Returns
    -------
    RegressionFit

    Raises
    ------
    TypeError
        Data that are not real numbers.
    ValueError
        Infinite responses, responses not above -shift under Box-Cox, missing covariates (naming column and row); no
        more rows than coefficients; names that a formula does not find; shapes that do not fit.
    ImportError
        A formula where formulaic is not installed.

    Warns
    -----
    UserWarning
        Once, naming covariates that are constant or linear combinations of those before, which are left out; once,
        listing responses without a maximum of the likelihood.

    Notes
    -----
    Unlike that of a column alone, this likelihood may have several minima. It is scanned over
    lambda, at steps of 1/2 in units of one over the standard deviation of the logs, to four such units
    around 0 (1 for Yeo-Johnson data of both signs), and on as long as it falls. The scan looks for sign changes of the
    derivative, which Newton's and Halley's steps bring to 0. In long columns a scan of a sample of the rows, evenly
    spaced, comes first; all rows are scanned if it saw anything but one minimum, or if no root in all rows is in its
    range. The status says what was seen: the only minimum, several (the lowest is taken), or a likelihood that grows
    to the end.
    `RegressionFit.scanned` has the ends of the scan.

    lambda is found to about 1e-12 on well-conditioned data. The residual sum of squares is formed from
    residuals where it is a small part of the total.

    Robust estimators are refused. Carroll's replaces the standard deviation by Huber's scale of the residuals. That
    bounds what a residual does, but not what a row of covariates does: one remote row draws the fit through itself, its
    residual is small under every lambda, and the scale does not see it. The scale is of use only with coefficients that
    resist such rows, whose objective has local minima of its own for each lambda; no certificate could be given.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.regression import fit_regression
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20.0, 60.0, size=500)
    >>> dose = np.exp(1.0 + 0.02 * age + 0.3 * rng.normal(size=500))
    >>> fit = fit_regression(dose, age)
    >>> bool(abs(fit.lmbda[0]) < 0.2)
    True
    >>> fit.status_text
    ['optimum found and certified; a scan of lambda saw no other']
    """
    as_choice("family", family, FIT_FAMILIES)
    _refuse_robust(estimator)
    if family == BEST and lmbda is not None:
        raise ValueError("lmbda cannot be given with family='best'")
    matrix = as_matrix(Y, what="Y")
    n, p = matrix.values.shape
    covariates, design = read_covariates(X, formula, intercept)
    if len(design) != n:
        raise ValueError(f"Y has {n} rows, X has {len(design)}; pass the same rows")
    weight = weights_of(sample_weight, n)
    given = given_lambdas(lmbda, p)
    threads = thread_count(n_threads)
    shift = given_shift(shift, family, p)
    problem = _Problem.of(matrix, design, covariates.intercept, weight, shift)
    codes = (YEO_JOHNSON, BOX_COX) if family == BEST else (FAMILIES[family],)
    parts = [_fitted(problem, code, given, threads, progress) for code in codes]
    figures, families = _better(parts, codes)
    outside = np.flatnonzero(figures.results[:, STATUS] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.names, weight, shift[j])
    if shift.any():
        to_own_units(figures.results, shift)
        figures.results[:, [X_MIN, X_MAX]] = extremes(matrix.values, weight)
    warn_dropped(covariates.names, problem.basis.used)
    warn_unfitted(figures.results[:, STATUS], matrix.names)
    power = PowerFit(
        family, figures.results, families=families, column_names=matrix.names, was_vector=matrix.was_vector
    )
    return RegressionFit(power, covariates, figures, problem.basis.center, problem)


def _refuse_robust(estimator: str) -> None:
    if as_choice("estimator", estimator, ("mle", *ESTIMATORS)) != "mle":
        raise ValueError(
            f"estimator={estimator!r}: with covariates only 'mle' is offered, because a robust scale of residuals "
            "does not resist a remote row of covariates, which draws the fit to itself; look at residuals() instead"
        )


# --- fitting ------------------------------------------------------------------------------------------


class _Figures(NamedTuple):
    """What is found for each response: a row of results, ends of the scan, coefficients, rank of its design.

    `own` says whether that design has a basis of its own, for the rows that are not missing.

    Coefficients refer to covariates less their center, and to psi less its value at a reference in the data (nothing,
    without a constant), over the residual scale.
    """

    results: FloatArray
    scanned: FloatArray
    gamma: FloatArray
    rank: IntArray
    one: FloatArray
    own: BoolArray


class _Problem(NamedTuple):
    """Responses, covariates and weights, of the rows that count, with the basis of all of these."""

    values: Columns
    covariates: FloatArray
    intercept: bool
    weight: FloatArray
    basis: Basis

    @classmethod
    def of(
        cls, matrix: Matrix, covariates: FloatArray, intercept: bool, weight: FloatArray, shift: FloatArray
    ) -> _Problem:
        """The problem, less rows of weight zero; refused if it has no more rows than coefficients."""
        values = matrix.values
        if weight.size and not weight.all():
            counted = weight > 0.0
            values, covariates, weight = values[counted], covariates[counted], weight[counted]
        basis = basis_of(covariates, intercept, weight)
        if len(covariates) <= basis.rank:
            raise ValueError(
                f"there are {len(covariates)} rows (of positive weight) and {basis.rank} coefficients; a regression "
                "needs more rows than coefficients: leave out covariates"
            )
        return cls(shifted(values, shift), covariates, intercept, weight, basis)

    def bases(self, deficient: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Basis]]:
        """Bases of their own for columns whose missing values may leave a design of lower rank, one per pattern."""
        patterns: dict[bytes, list[int]] = {}
        for j in deficient:
            patterns.setdefault(np.packbits(self._present(int(j))).tobytes(), []).append(int(j))
        found = []
        for columns in patterns.values():
            present = self._present(columns[0])
            basis = basis_of(self.covariates, self.intercept, self.weight, present)
            found.append((np.array(columns), basis))
        return found

    def _present(self, j: int) -> BoolArray:
        column = self.values[:, j : j + 1]
        values = column if isinstance(column, np.ndarray) else column.values
        return np.asarray(~np.isnan(values.astype(np.float64)[:, 0]))

    def figures(
        self,
        compute: Callable[[FloatArray, kernel.Design, slice, kernel.RegressionWork, FloatArray], None],
        basis: Basis,
        columns: slice | NDArray[np.intp],
        width: int,
        n_threads: int,
        progress: bool = False,
    ) -> FloatArray:
        """What ``compute(columns, design, group, work, out)`` finds, (p, width)."""
        scratch = _Scratch(basis.design)

        def measure(block: FloatArray, group: slice) -> FloatArray:
            out = np.empty((block.shape[0], width))
            compute(block, basis.design, group, scratch.work, out)
            return out

        return column_figures(measure, self.values[:, columns], width, n_threads, progress)


class _Scratch(threading.local):
    """Each thread's arrays of `kernels.regression.RegressionWork`."""

    def __init__(self, design: kernel.Design) -> None:
        self.work = kernel.new_regression_work(design)


def _fitted(problem: _Problem, family: int, given: FloatArray, n_threads: int, progress: bool) -> _Figures:
    """Figures of every response under one family."""
    everything = np.arange(problem.values.shape[1])
    figures = _fitted_with(problem, problem.basis, everything, family, given, n_threads, progress)
    deficient = np.flatnonzero(figures.results[:, STATUS] == kernel.BAD_RANK)
    for columns, basis in problem.bases(deficient):
        part = _fitted_with(problem, basis, columns, family, given[columns], n_threads, False)
        for whole, own in zip(figures, part, strict=True):
            whole[columns] = own
    too_few = figures.results[:, STATUS] == kernel.BAD_RANK
    figures.results[too_few, STATUS] = Status.TOO_FEW
    return figures


def _fitted_with(
    problem: _Problem,
    basis: Basis,
    columns: NDArray[np.intp],
    family: int,
    given: FloatArray,
    n_threads: int,
    progress: bool,
) -> _Figures:
    """Figures of some of the responses, whose rows have this basis."""
    width = N_RESULTS + 2 + basis.rank

    def regress(
        block: FloatArray, design: kernel.Design, group: slice, work: kernel.RegressionWork, out: FloatArray
    ) -> None:
        results, extra = np.empty((len(block), N_RESULTS)), np.empty((len(block), width - N_RESULTS))
        kernel.regress_columns(block, design, family, given[group], work, results, extra)
        out[:, :N_RESULTS], out[:, N_RESULTS:] = results, extra

    chosen = slice(None) if columns.size == problem.values.shape[1] else columns
    found = problem.figures(regress, basis, chosen, width, n_threads, progress)
    results, scanned, on_basis = np.split(found, [N_RESULTS, N_RESULTS + 2], axis=1)
    gamma = _sum_of_products(on_basis, basis.to_coef)
    if problem.intercept:
        gamma[:, 0] += _sum_of_products(gamma, (problem.basis.center - basis.center)[np.newaxis])[:, 0]
    gamma[:, ~basis.used] = np.nan
    p = columns.size
    return _Figures(
        results.copy(),
        scanned,
        gamma,
        np.full(p, basis.rank),
        np.broadcast_to(basis.one, (p, basis.one.size)).copy(),
        np.full(p, basis is not problem.basis),
    )


def _sum_of_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """``a @ b.T`` in an order of summation that does not depend on the number of rows, as that of BLAS may."""
    total = np.zeros((len(a), len(b)))
    for k in range(a.shape[1]):
        total += a[:, k, np.newaxis] * b[:, k]
    return total


def _better(parts: list[_Figures], codes: tuple[int, ...]) -> tuple[_Figures, IntArray]:
    """Figures of the likelier family, response by response."""
    figures = parts[0]
    families = np.full(len(figures.results), codes[0])
    for code, other in zip(codes[1:], parts[1:], strict=True):
        status = other.results[:, STATUS]
        usable = (status >= 0) & ~is_failed(status)
        better = usable & ((other.results[:, NLL] < figures.results[:, NLL]) | is_failed(figures.results[:, STATUS]))
        families[better] = code
        for whole, own in zip(figures, other, strict=True):
            whole[better] = own[better]
    return figures, families


# --- the fitted object --------------------------------------------------------------------------------


class RegressionFit:
    """Power transforms of responses, each with its linear model of the covariates.

    Made by `fit_regression`; `from_json` reads one back. Arrays have one entry, or one column, per response.

    Attributes
    ----------
    lmbda : (p,) ndarray
        The transformation parameter; 1 for a response that could not be fitted.
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
        Residual sum of squares of psi. Like `coef` and both scales it is that of raw psi, and may be beyond float64
        (inf, or 0) where predictions are not.
    llf, nll : (p,) ndarray
        Log-likelihood ``-n/2 ln(RSS/n) + (lmbda - 1) sum(J)``, as `scipy.stats.boxcox_llf` counts it, and its negative.
        car and statsmodels subtract ``n/2 (1 + ln 2 pi)``, MASS subtracts ``n/2 ln(n)`` and centers J.
    information : (p,) ndarray
        Second derivative of `nll` in lambda.
    se : (p,) ndarray
        Standard error of lambda, ``1/sqrt(information)``.
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
        figures: _Figures,
        center: FloatArray,
        problem: _Problem | None = None,
    ) -> None:
        self._power = power
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

    @property
    def power_fit(self) -> PowerFit:
        """The transforms alone, standardised by the residual scale, less a reference value in the data."""
        return self._power

    @property
    def family(self) -> str:
        """The family asked for."""
        return self._power.family

    @property
    def families(self) -> list[str]:
        """The transform of each response."""
        return self._power.families

    @property
    def n_responses(self) -> int:
        """Number of responses."""
        return self._power.n_features

    @property
    def column_names(self) -> list[str] | None:
        """Names of the responses."""
        return self._power.column_names

    @property
    def covariate_names(self) -> list[str]:
        """Names of the covariates, in the order of `coef`."""
        return list(self._covariates.names)

    @property
    def formula(self) -> str | None:
        """The formula that the covariates come from."""
        return self._covariates.formula

    @property
    def intercept(self) -> bool:
        """Whether there is a constant among the covariates."""
        return self._covariates.intercept

    @property
    def lmbda(self) -> FloatArray:
        """The transformation parameter of each response."""
        return self._power.lmbda

    @property
    def shift(self) -> FloatArray:
        """What Box-Cox adds to each response before it is transformed."""
        return self._power.shift

    @property
    def n_obs(self) -> FloatArray:
        """Number, or total weight, of the values that are not missing."""
        return self._power.n_obs

    @property
    def n_iter(self) -> IntArray:
        """Evaluations of the likelihood."""
        return self._power.n_iter

    @property
    def nll(self) -> FloatArray:
        """Negative log-likelihood at `lmbda`."""
        return self._power.nll

    @property
    def llf(self) -> FloatArray:
        """Log-likelihood at `lmbda`, without constants."""
        return -self.nll

    @property
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return self._power.information

    @property
    def se(self) -> FloatArray:
        """Standard error of lambda; NaN where it was not found."""
        return np.where(self._was_found, standard_error(self.information), np.nan)

    @property
    def rank(self) -> IntArray:
        """Number of coefficients of each response."""
        return self._figures.rank

    @property
    def status(self) -> IntArray:
        """A `powerkern.Status` for each response."""
        return self._power.status

    @property
    def status_text(self) -> list[str]:
        """The status of each response in words."""
        return self._power.status_text

    @property
    def scanned(self) -> Interval:
        """Ends of the scan of lambda."""
        return Interval(self._figures.scanned[:, 0].copy(), self._figures.scanned[:, 1].copy())

    @property
    def scale(self) -> FloatArray:
        """``sqrt(RSS/n)``."""
        with np.errstate(over="ignore"):
            return np.where(is_failed(self.status), np.nan, self._power.scale * self._factor)

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
            gamma[:, 0] -= _sum_of_products(np.nan_to_num(gamma), center[np.newaxis])[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            coef = gamma * self.scale[:, np.newaxis] + self._figures.one * self._location[:, np.newaxis]
        coef[is_failed(self.status)] = np.nan
        return np.asarray(coef.T)

    @property
    def _factor(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(self._power.log_factor)

    @property
    def _location(self) -> FloatArray:
        """psi at the reference, which coefficients on the internal scale are relative to."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._power.loc * self._factor)

    @property
    def _degrees_of_freedom(self) -> FloatArray:
        """n - rank; NaN where it is not positive."""
        left = self.n_obs - self.rank
        return np.where(left > 0.0, left, np.nan)

    @property
    def _was_found(self) -> BoolArray:
        return np.isin(self.status, _FOUND)

    # --- applying ---------------------------------------------------------------------------------------

    def transform(self, Y: object, *, n_threads: int | None = None) -> Any:
        """``psi(lambda, y)`` of every response.

        Parameters
        ----------
        Y : (n, p) array-like, or (n,) where the fit was to one response
            NaN stays NaN.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or a data frame or series where `Y` is one of pandas or polars

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> fit = fit_regression(np.array([1.0, 2.0, 4.0, 9.0]), np.arange(4.0), lmbda=0.0)
        >>> bool(np.allclose(fit.transform(np.array([np.e])), 1.0))
        True
        """
        return self._raw.transform(Y, n_threads=n_threads)

    def inverse_transform(self, Z: object, *, n_threads: int | None = None) -> Any:
        """The y with ``psi(lambda, y) = z``: undo `transform`. NaN, with a warning, beyond the range of psi.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> y = np.array([1.0, 2.0, 4.0, 9.0])
        >>> fit = fit_regression(y, np.arange(4.0))
        >>> bool(np.allclose(fit.inverse_transform(fit.transform(y)), y))
        True
        """
        return self._raw.inverse_transform(Z, n_threads=n_threads)

    @property
    def _raw(self) -> PowerFit:
        """The transform without the residual scale."""
        power = self._power
        return PowerFit(
            power.family,
            power._results,
            families=power._families,
            standardize=False,
            column_names=power.column_names,
            was_vector=power._was_vector,
        )

    def fitted_values(self, X: object = None) -> FloatArray:
        """Fitted means of ``psi(lambda, y)``, ``X coef``: (n, p), or (n,) where the fit was to one response.

        Parameters
        ----------
        X : array-like, optional
            Covariates as in `fit_regression`; default: those of the fit, rows of weight zero left out, while it has
            them.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.allclose(fit.fitted_values([10.0]), fit.coef[0] + 10.0 * fit.coef[1]))
        True
        """
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = self._linear(X) * self.scale + np.where(self._figures.one.any(axis=1), self._location, 0.0)
        return self._shaped(fitted)

    def residuals(self, Y: object = None, X: object = None, *, standardized: bool = False) -> FloatArray:
        """``psi(lambda, y) - X coef``: (n, p), or (n,) where the fit was to one response.

        Parameters
        ----------
        Y, X : array-like, optional
            Responses and covariates of the same rows; default: those of the fit, rows of weight zero left out, while it
            has them.
        standardized : bool, default False
            Divide by `scale`. The quotient is finite even where psi overflows or underflows.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.allclose(np.mean(fit.residuals(standardized=True) ** 2), 1.0))
        True
        """
        standardized = as_flag("standardized", standardized)
        if (Y is None) != (X is None):
            raise ValueError("Y and X go together: pass both, or neither to use the data of the fit")
        if Y is None:
            problem = self._remembered()
            values = problem.values
            matrix = values if isinstance(values, np.ndarray) else values.values
        else:
            matrix = as_matrix(Y, what="Y").values
        linear = self._linear(X)
        if matrix.shape != linear.shape:
            raise ValueError(f"Y has shape {matrix.shape}, the fit and X ask for {linear.shape}; pass matching rows")
        z = np.asarray(self._power.transform(matrix.astype(np.float64).reshape(linear.shape)))
        rest = z - linear
        with np.errstate(over="ignore", invalid="ignore"):
            return self._shaped(rest if standardized else rest * self.scale)

    def predict(
        self,
        X: object,
        kind: Kind = "median",
        *,
        quantile: float = 0.5,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Predict responses on their own scale.

        Parameters
        ----------
        X : (m, k) array-like
            Covariates, as in `fit_regression`; a data frame where the fit was by a formula.
        kind : {"median", "mean", "quantile"}, default "median"
            "median" is ``psi^-1(eta)``, eta = X coef; "quantile" is ``psi^-1(eta + scale Phi^-1(quantile))``; "mean" is
            the integral of ``psi^-1(eta + scale z) phi(z)`` by Gauss and Hermite's rule of 32 nodes.
        quantile : float, default 0.5
            Between 0 and 1, for ``kind="quantile"``.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (m, p) ndarray, or (m,) where the fit was to one response
            NaN for responses that could not be fitted.

        Notes
        -----
        The range of psi has an end unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson), and the normal model
        puts some probability beyond it. A median or quantile there is the end of the domain: -shift
        (Box-Cox, lambda > 0), inf (lambda < 0), -inf (Yeo-Johnson, lambda > 2). Means are those of the part inside the
        range: nodes beyond are left out, and the others' weights brought to a sum of one. For -1 <= lambda < 0 (Box-Cox
        and the upper branch of Yeo-Johnson; 2 < lambda <= 3 for the lower) the exact integral diverges at the end; the
        rule, whose outermost nodes are 10 scales out, is a fair summary where the end is farther than that, and depends
        on where nodes lie where it is not.

        Coefficients and scale are taken as known: quantiles bound new responses a little too tightly in small samples.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=2000)
        >>> fit = fit_regression(np.exp(1.0 + x + 0.5 * rng.normal(size=2000)), x, lmbda=0.0)
        >>> bool(np.allclose(fit.predict([0.0]), np.exp(fit.coef[0])))
        True
        >>> bool(np.allclose(fit.predict([0.0], "mean"), np.exp(fit.coef[0] + fit.scale**2 / 2)))
        True
        """
        found = back_transformed(self._power, self._linear(X), 1.0, kind, quantile, thread_count(n_threads))
        return self._shaped(found)

    def _linear(self, X: object) -> FloatArray:
        """The linear model, as many residual scales above the reference: (m, p)."""
        covariates = self._remembered().covariates if X is None else self._covariates.matrix(X)
        gamma = np.nan_to_num(self._figures.gamma)
        gamma[is_failed(self.status)] = np.nan
        return _sum_of_products(covariates - self._center, gamma)

    def _shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self._power._was_vector else values

    # --- likelihood -------------------------------------------------------------------------------------

    def profile(self, lmbdas: ArrayLike, *, n_threads: int | None = None) -> FloatArray:
        """Negative log-likelihood of every response at given lambdas: what ``MASS::boxcox`` plots.

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
        points = as_reals("lmbdas", lmbdas)
        if points.ndim > 1 or not np.isfinite(points).all():
            raise ValueError("lmbdas must be a finite number or a one-dimensional array of them")
        at = np.atleast_1d(points)
        return self._profile(np.broadcast_to(at, (self.n_responses, at.size)), n_threads, points.ndim == 0)

    def _profile(self, at: FloatArray, n_threads: int | None, scalar: bool) -> FloatArray:
        """Negative log-likelihoods; `at` has a row of lambdas for each response."""
        g = self._figures_at(kernel.profile_columns, np.ascontiguousarray(at), at.shape[1], n_threads)
        g *= self.n_obs[:, np.newaxis]
        return g[:, 0] if scalar else g

    def confint(self, level: float = 0.95, *, method: Method = "profile", n_threads: int | None = None) -> Interval:
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
            Arrays `low` and `high`; NaN for responses whose lambda was not found as a minimum.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> low, high = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).confint()
        >>> bool(low[0] < 0.0 < high[0])
        True
        """
        level = checked_level(level)
        if as_choice("method", method, get_args(Method)) == "wald":
            return wald_interval(self.lmbda, self.se, level)
        from scipy.special import chdtri  # costs a third of the time to import powerkern

        drop = 0.5 * chdtri(1, 1.0 - level) / self.n_obs
        at = np.column_stack([self.lmbda, drop])
        ends = self._figures_at(kernel.interval_columns, at, 2, n_threads)
        ends[~self._was_found] = np.nan
        return Interval(ends[:, 0], ends[:, 1])

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
        given = hypothesis_lambdas(lmbda0, self.n_responses, "response")
        nll0 = self._profile(np.broadcast_to(given.reshape(-1, 1), (self.n_responses, 1)), n_threads, True)
        return likelihood_ratio(nll0, np.where(self._was_found, self.nll, np.nan))

    def rounded(self, level: float = 0.95) -> FloatArray:
        """Convenient powers: the first of 1, 0, -1, 1/2, 1/3, -1/2, -1/3, 2, -2 inside the Wald interval, else lambda.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> float(fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x).rounded()[0])
        0.0
        """
        return rounded_power(self.lmbda, self.confint(level, method="wald"))

    def summary(self, *, level: float = 0.95, n_threads: int | None = None) -> Summary:
        """A table of lambda, rounded power, standard error, Wald interval, tests of 0 and 1, scale and status.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of interval and rounded power.
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
        tests = {f"{at:g}": self.lr_test(at, n_threads=n_threads) for at in TESTED} if has_data else {}
        found = estimates(self.lmbda, self.rounded(level), self.se, self.confint(level, method="wald"), tests)
        rest = {"n_obs": self.n_obs, "rank": self.rank, "scale": self.scale, "status": np.array(self.status_text)}
        names = self.column_names or [str(j) for j in range(self.n_responses)]
        title = f"{self.n_responses} responses given {', '.join(self.covariate_names)}"
        notes = [note_on_intervals(level), NOTE_ON_TESTS if has_data else "no tests: the fit no longer has its data"]
        return Summary(title, names, [{"family": np.array(self.families), **found}, rest], notes=notes)

    def _figures_at(self, entry: Callable[..., None], at: FloatArray, width: int, n_threads: int | None) -> FloatArray:
        """What an entry of `kernels.regression` finds for every response: (p, width); `at` has a row for each."""
        problem, threads = self._remembered(), thread_count(n_threads)
        found = np.full((self.n_responses, width), np.nan)
        for columns, basis in self._bases():
            code = self._power._families[columns[0]]

            def compute(
                block: FloatArray,
                design: kernel.Design,
                group: slice,
                work: kernel.RegressionWork,
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
        codes = self._power._families
        return [
            (columns[codes[columns] == code], basis)
            for columns, basis in parts
            for code in np.unique(codes[columns]).tolist()
        ]

    def _remembered(self) -> _Problem:
        if self._problem is None:
            raise ValueError("this fit no longer has its data (it was pickled, or read from JSON); fit again")
        return self._problem

    # --- JSON -------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Write the fit as JSON text that `from_json` reads back bit for bit.

        How a formula codes categories is not kept: such a fit, read back, predicts no more; pickle it instead.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import RegressionFit, fit_regression
        >>> fit = fit_regression(np.array([1.0, 2.0, 4.0, 9.0]), np.arange(4.0))
        >>> bool((RegressionFit.from_json(fit.to_json()).coef == fit.coef).all())
        True
        """
        covariates = self._covariates
        head = {
            "format": _FORMAT,
            "version": _VERSION,
            "covariates": covariates.names,
            "columns": covariates.columns,
            "intercept": covariates.intercept,
            "formula": covariates.formula,
            "center": self._center.tolist(),
        }
        figures = {name: _written(getattr(self._figures, name)) for name in _FIGURES}
        return json.dumps({**head, **figures, "power": json.loads(self._power.to_json())}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> RegressionFit:
        """Read the text that `to_json` wrote.

        Raises
        ------
        ValueError
            The text is not JSON, not such a fit, of a later version, or damaged.
        """
        record = _loaded(text)
        try:
            power = PowerFit.from_json(json.dumps(record["power"]))
            names, p = [str(name) for name in record["covariates"]], power.n_features
            covariates = Covariates(names, record["columns"], bool(record["intercept"]), record["formula"], None)
            k = len(names)
            scanned, gamma, one = (
                _read(record[name], (p, width)) for name, width in (("scanned", 2), ("gamma", k), ("one", k))
            )
            rank = _read(record["rank"], (p,)).astype(np.int64)
            center = _read(record["center"], (k,))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a fit: the JSON text is damaged ({error})") from None
        return cls(
            power, covariates, _Figures(power._results, scanned, gamma, rank, one, np.zeros(p, np.bool_)), center
        )


def _loaded(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not a fit: the text is not JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError("not a fit: the JSON text was not written by RegressionFit.to_json")
    if record.get("version") != _VERSION:
        raise ValueError(f"the fit has version {record.get('version')!r}, this powerkern reads version {_VERSION}")
    return record


def _written(values: NDArray[Any]) -> Any:
    """An array as nested lists; None for NaN, words for infinities."""
    if values.ndim > 1:
        return [_written(row) for row in values]
    return [None if math.isnan(v) else v if math.isfinite(v) else repr(v) for v in values.tolist()]


def _read(values: Any, shape: tuple[int, ...]) -> FloatArray:
    """The array that `_written` wrote."""
    numbers = np.array(values, dtype=object)
    if numbers.shape != shape:
        raise ValueError(f"not a fit: the JSON text is damaged (figures of shape {numbers.shape}, not {shape})")
    found = [math.nan if value is None else float(value) for value in numbers.ravel().tolist()]
    return np.array(found).reshape(shape)
