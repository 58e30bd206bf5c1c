"""Power transforms of responses given covariates: Box-Cox regression, for thousands of responses at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.shift import convert_to_data_units, extremes
from powerkern._estimators.spec import BEST, FitSpec
from powerkern._fit.best_family import box_cox_is_better
from powerkern._input.arguments import domain_error_in
from powerkern._input.frames import level_names
from powerkern._input.messages import suggest_keywords
from powerkern._input.reading import read
from powerkern._models.design import Basis, read_covariates
from powerkern._models.regression_bounds import find_outside, mark_bounded, minimize_within
from powerkern._models.regression_fit import RegressionFit
from powerkern._models.regression_problem import RegressionProblem, ResponseResults, sum_of_products
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.fitted_data import FittedData
from powerkern._results.power_fit import build_power_fit
from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.regression import fit as kernel
from powerkern.kernels.regression.likelihood import Design, RegressionWork
from powerkern.kernels.results import BAD_RANK, N_RESULTS, STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import BOX_COX, FAMILIES, YEO_JOHNSON

__all__ = ["RegressionFit", "fit_regression"]


def fit_regression(
    Y: object,
    covariates: object,
    family: str = "box-cox",
    *,
    formula: str | None = None,
    intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    bounds: object = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> RegressionFit:
    r"""Fit a power transform to every response, so that transformed responses are normal about a linear model.

    For each column y of Y, lambda minimises

    .. math:: \tfrac{1}{2} \ln \frac{\mathrm{RSS}(\lambda)}{n} - (\lambda - 1)\, \overline J,

    where RSS is the residual sum of squares of ``psi(lambda, y)`` regressed on the covariates C, and psi and J are as
    in `powerkern.fit`. This is the profile likelihood of ``psi(lambda, y) = C beta + scale N(0, 1)`` ([1]_, section 3).

    Parameters
    ----------
    Y : (n, p) or (n,) array-like
        Responses, one per column. A NaN is missing only for its response; the other responses use the row.
    covariates : (n, k) or (n,) array-like
        Covariates shared by all responses: numeric, none missing. With a `formula`, a data frame.
    family : {"box-cox", "yeo-johnson", "best"}, default "box-cox"
        The transform. "best": for each response, the one with the larger likelihood; responses that are not positive
        get Yeo-Johnson.
    formula : str, optional
        The right-hand side of a model formula, such as ``"~ weight + C(group)"``, that `formulaic` evaluates in the
        data frame `covariates`. The formula determines whether there is an intercept.
    intercept : bool, default True
        Add a constant to the covariates. Without one, the lambda of Box-Cox depends on the units of y.
    sample_weight : (n,) array-like, optional
        Non-negative row weights; integer weights are equivalent to repeated rows.
    lmbda : float or (p,) array-like, optional
        Fix these lambdas; NaN entries are fitted.
    shift : float or (p,) array-like, default 0
        For Box-Cox: transform ``y + shift``.
    bounds : (low, high), optional
        Smallest and largest fitted lambda: numbers, or (p,) arrays with one per response; None or infinity means no
        bound. If the optimum of a response is outside, the minimum between the bounds is searched for on a grid of 65
        lambdas, then on finer grids around it, to about 1e-8 in lambda. If it is at a bound, the status is
        `Status.AT_BOUND`. Lambdas that were given are not bounded.
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
        If data are not real numbers.
    ValueError
        If a response is infinite, or not above -shift under Box-Cox, or a covariate is missing (the message names
        column and row); if there are no more rows than coefficients; if a formula has unknown names; if shapes are
        inconsistent.
    ImportError
        If there is a formula and formulaic is not installed.

    Warns
    -----
    UserWarning
        Once, naming covariates that are dropped as constant or linear combinations of earlier ones; once,
        listing responses whose likelihood has no maximum.

    Notes
    -----
    Unlike the likelihood of a column without covariates, this one may have several minima. It is scanned over lambda in
    steps of 1/2, in units of one over the standard deviation of the logs, to four such units around 0 (1 for
    Yeo-Johnson data of both signs), and farther while it decreases. Newton's and Halley's methods refine each sign
    change of the derivative. In long columns an evenly spaced sample of the rows is scanned first. All rows are scanned
    if the sample shows anything but one minimum, or if the search that starts from it finds no minimum of the
    likelihood of all rows inside the scan. The status reports the only minimum, the lowest of several, or a likelihood
    that grows to the end of the scan. The ends of the scan are in `RegressionFit.scanned`.

    lambda is accurate to about 1e-12 on well-conditioned data. The residual sum of squares is computed from
    residuals if it is a small part of the total.

    Only maximum likelihood is available, no robust estimator. Carroll's estimator replaces the standard deviation by
    Huber's scale of the residuals. This bounds the influence of a residual, but not of a row of covariates: a remote
    row attracts the fit, its residual is small under every lambda, and the scale does not detect it. The scale is
    useful only with coefficients that resist such rows. The objective of such coefficients has local minima for each
    lambda, so that no optimum could be certified. Outlying responses show in `RegressionFit.residuals`.

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
    ['optimum found; a scan of lambda found no lower one']
    """
    spec = FitSpec.checked(family=family, lmbda=lmbda, shift=shift, bounds=bounds)
    matrix = read(Y, sample_weight, what="Y")
    data = FittedData.remember(matrix, Y, sample_weight)
    matrix = matrix._replace(values=data.values, weight=data.weight)
    weight, (n, p) = matrix.weight, matrix.values.shape
    terms, design = read_covariates(covariates, formula, intercept, n, Y, "Y")
    (spec, requested), threads = spec.match_columns(p, matrix.names), thread_count(n_threads)
    given, shift, limits = requested.lmbda, requested.shift, requested.limit.bounds
    problem = RegressionProblem.of(matrix, design, terms.intercept, weight, shift)
    code = YEO_JOHNSON if family == BEST else FAMILIES[family]
    figures, families = _fit_family(problem, code, given, limits, threads, progress), np.full(p, code)
    if family == BEST:
        other = _fit_family(problem, BOX_COX, given, limits, threads, progress)
        better = box_cox_is_better(other.results, figures.results, None)
        figures.replace_rows(better, other, better)
        families[better] = BOX_COX
    outside = np.flatnonzero(figures.results[:, STATUS] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.names, weight, shift[j])
    if shift.any():
        convert_to_data_units(figures.results, shift)
        figures.results[:, [X_MIN, X_MAX]] = extremes(matrix.values, weight)
    terms.warn_dropped(problem.basis.used)
    labels = ColumnLabels(matrix.names, level_names(Y), matrix.was_vector)
    power = build_power_fit(spec, labels, ColumnTable(figures.results, families))
    return RegressionFit(power, terms, figures, problem.basis.center, problem, data.take_fingerprints(threads))


def _fit_family(
    problem: RegressionProblem, family: int, given: FloatArray, bounds: FloatArray, n_threads: int, progress: bool
) -> ResponseResults:
    """Fit every response with one family.

    Parameters
    ----------
    problem : RegressionProblem
        Responses and covariates.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    given : (p,) ndarray
        Lambda of each response; NaN if it is fitted.
    bounds : (2, p) ndarray
        Smallest and largest lambda.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    everything = np.arange(problem.values.shape[1])
    figures = _fit_within(problem, problem.basis, everything, family, given, bounds, n_threads, progress)
    deficient = np.flatnonzero(figures.results[:, STATUS] == BAD_RANK)
    for columns, basis in problem.bases(deficient):
        part = _fit_within(problem, basis, columns, family, given[columns], bounds[:, columns], n_threads, False)
        figures.replace_rows(columns, part)
    too_few = figures.results[:, STATUS] == BAD_RANK
    figures.results[too_few, STATUS] = Status.TOO_FEW
    return figures


def _fit_within(
    problem: RegressionProblem,
    basis: Basis,
    columns: NDArray[np.intp],
    family: int,
    given: FloatArray,
    bounds: FloatArray,
    n_threads: int,
    progress: bool,
) -> ResponseResults:
    """Fit some of the responses, with each lambda within its bounds.

    Parameters
    ----------
    problem : RegressionProblem
        Responses and covariates.
    basis : Basis
        Basis of the design of these responses.
    columns : (k,) ndarray of int
        Positions of the responses.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    given : (k,) ndarray
        Lambda of each response; NaN if it is fitted.
    bounds : (2, k) ndarray
        Smallest and largest lambda.
    n_threads : int
        Maximum number of threads.
    progress : bool
        Show a progress bar.
    """
    figures = _fit_unbounded(problem, basis, columns, family, given, n_threads, progress)
    moved = find_outside(figures.results, bounds, given)
    if not moved.size:
        return figures

    def g(lmbdas: FloatArray) -> FloatArray:
        def profile(block: FloatArray, design: Design, group: slice, work: RegressionWork, out: FloatArray) -> None:
            kernel.profile_columns(block, design, family, np.ascontiguousarray(lmbdas[group]), work, out)

        return problem.compute_results(profile, basis, columns[moved], lmbdas.shape[1], n_threads)

    best = minimize_within(g, bounds[:, moved], figures.scanned[moved])
    again = _fit_unbounded(problem, basis, columns[moved], family, best, n_threads, False)
    mark_bounded(again.results, bounds[:, moved])
    again.scanned[:] = figures.scanned[moved]
    figures.replace_rows(moved, again)
    return figures


def _fit_unbounded(
    problem: RegressionProblem,
    basis: Basis,
    columns: NDArray[np.intp],
    family: int,
    given: FloatArray,
    n_threads: int,
    progress: bool,
) -> ResponseResults:
    """Fit some of the responses, without bounds on lambda.

    Parameters
    ----------
    problem, basis, columns, family, given, n_threads, progress
        As in `_fit_within`.
    """
    width = N_RESULTS + 2 + basis.rank

    def regress(block: FloatArray, design: Design, group: slice, work: RegressionWork, out: FloatArray) -> None:
        results, extra = np.empty((len(block), N_RESULTS)), np.empty((len(block), width - N_RESULTS))
        kernel.regress_columns(block, design, family, given[group], work, results, extra)
        out[:, :N_RESULTS], out[:, N_RESULTS:] = results, extra

    chosen = slice(None) if columns.size == problem.values.shape[1] else columns
    found = problem.compute_results(regress, basis, chosen, width, n_threads, progress)
    results, scanned, on_basis = np.split(found, [N_RESULTS, N_RESULTS + 2], axis=1)
    gamma = sum_of_products(on_basis, basis.to_coef)
    if problem.intercept:
        gamma[:, 0] += sum_of_products(gamma, (problem.basis.center - basis.center)[np.newaxis])[:, 0]
    gamma[:, ~basis.used] = np.nan
    p = columns.size
    return ResponseResults(
        results.copy(),
        scanned,
        gamma,
        np.full(p, basis.rank),
        np.broadcast_to(basis.one, (p, basis.one.size)).copy(),
        np.full(p, basis is not problem.basis),
    )


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
