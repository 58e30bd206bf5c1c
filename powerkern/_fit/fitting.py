"""Fitting and applying power transforms to the columns of a matrix."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.shifted import Columns, shifted
from powerkern._engine.threads import thread_count
from powerkern._estimators.estimators import (
    QUANTILE,
    NearestNormal,
    Robust,
    other_estimator,
    plain_options,
    weights_of_one,
)
from powerkern._estimators.limits import LambdaLimit, apply_limit, lambda_limit
from powerkern._estimators.power_sums import fit_matrix
from powerkern._estimators.robust_bounds import moved_to
from powerkern._estimators.shift import extremes, given_shift, to_own_units
from powerkern._fit.best_family import CRITERIA, LIKELIHOOD, best_family
from powerkern._input import frames as _frames
from powerkern._input.arguments import domain_error_in, given_lambdas, weights_of
from powerkern._input.arrays import Matrix, as_choice, as_flag, as_matrix
from powerkern._results.likelihood_tests import Interval, LikelihoodRatio
from powerkern._results.normality import Normality, NormalityFigures
from powerkern._results.power_fit import (
    BEST,
    FIT_FAMILIES,
    OutOfRange,
    PowerFit,
    as_power_fit,
    warn_overflow,
    warn_unfitted,
)
from powerkern._results.summary import Summary
from powerkern._typing import Bounds, FloatArray
from powerkern.kernels.results import STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import FAMILIES

__all__ = [
    "Interval",
    "LikelihoodRatio",
    "Normality",
    "NormalityFigures",
    "OutOfRange",
    "PowerFit",
    "Summary",
    "fit",
    "inverse_transform",
    "transform",
]


def fit(
    X: object,
    family: str = "yeo-johnson",
    estimator: str = "mle",
    *,
    standardize: bool = True,
    sample_weight: ArrayLike | str | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    criterion: str = LIKELIHOOD,
    column_names: Sequence[str] | None = None,
    non_numeric: _frames.NonNumeric = "raise",
    n_threads: int | None = None,
    progress: bool = False,
    **estimator_options: Any,
) -> PowerFit:
    r"""Fit a power transform to every column, by maximum likelihood or robustly.

    lambda minimises

    .. math:: g(\lambda) = \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline J

    with

    * Box-Cox (x > 0): :math:`\psi_\lambda(x) = (x^\lambda - 1)/\lambda`, :math:`\ln x` for lambda = 0;
      :math:`J = \ln x`;
    * Yeo-Johnson: :math:`\psi_\lambda(x) = ((1 + x)^\lambda - 1)/\lambda` for x >= 0,
      :math:`-((1 - x)^{2 - \lambda} - 1)/(2 - \lambda)` for x < 0; :math:`J = \operatorname{sign}(x) \ln(1 + |x|)`;
    * shifted Box-Cox (x > -shift), the two-parameter transform with a given shift: Box-Cox of ``x + shift``
      ([1]_, eq. (2)).

    The function is strictly convex, so there is one optimum; it is found as the root of its derivative, to
    about 1e-13 on well-conditioned columns of any scale (see the page on numerics in the documentation).

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        Numbers of any real dtype: arrays of any order and strides, lists, data frames of pandas and polars,
        Arrow tables, masked arrays. Not changed and not copied. NaN (masked, null) is missing and ignored.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best" takes, column by column, the one with the larger likelihood of the data (for robust fits:
        of the values that both keep), or the better one by `criterion`; Yeo-Johnson where values are not positive.
    estimator : {"mle", "rewml", "rewml-nr", "carroll", "mtl", "ks", "ppcc"}, default "mle"
        Maximum likelihood, or one of these, that resist outliers [3]_:

        * "rewml": reweighted maximum likelihood. lambda0 brings the center of the data closest to normal quantiles;
          then, three times, lambda is the maximum likelihood estimate from the values within a cut-off, which is wider
          where no more values are far out than in a normal sample.
        * "rewml-nr": the same without rectification of the transform in the search for lambda0.
        * "carroll": maximum likelihood with the scale of Huber's least favourable density in place of the standard
          deviation [4]_: sum psi(u) u = n P(abs(Z) < 1.5), u = (psi(x) - loc)/scale.
        * "mtl": maximum trimmed likelihood, of the best `h` consecutive order statistics.

        or one of these, which make the transformed data look most normal (see Notes):

        * "ks": least Kolmogorov-Smirnov distance from the normal distribution with their mean and standard deviation.
        * "ppcc": largest correlation with normal quantiles, that is, the straightest QQ plot [5]_.
    standardize : bool, default True
        Let the fit's `transform` return values with mean 0 and standard deviation 1 (1/n).
    sample_weight : (n,) array-like, or str, optional
        Non-negative weights of the rows, or the name of the column of a data frame that holds them, which is not
        fitted (and which the fit's `transform` passes through). Integer weights act as if rows were repeated, others
        continue that (see Notes). Rows of weight 0 are absent.
    lmbda : float or (p,) array-like, optional
        Take these lambdas instead of fitting; NaN entries are fitted.
    shift : float or (p,) array-like, default 0
        Of Box-Cox: what is transformed is ``x + shift``, for values above -shift. The shift is not fitted: for
        0 < lambda < 1 the likelihood grows without bound as -shift comes near the smallest value. The sum is taken in
        float64: exactly where x and -shift are within a factor of two of each other, else to half a unit in its last
        place.
    ymax : float, optional
        Bound on the raw transformed values: lambda is the best one with ``|psi| <= ymax`` on the data (Marchand et al.
        2022). Default: none when standardising (the output is finite anyway), else the largest float64
        divided by 1e4, as in scipy.
    bounds : (low, high), optional
        Smallest and largest lambda that a fit may find: numbers, or (p,) arrays with one for each column; None, or
        infinity, where there is no bound. For maximum likelihood the best lambda between them is the free one clipped,
        and all other figures are those at that lambda; with `ymax`, both hold. Of other estimators see Notes. Lambdas
        that are given (`lmbda`) stay as they are. The status of columns that a bound holds is `Status.AT_BOUND`.
    criterion : {"likelihood", "ppcc", "pearson"}, default "likelihood"
        By which ``family="best"`` chooses, of the transforms that each family's fit has found: the larger likelihood;
        the larger correlation of the transformed values with normal quantiles, as ``fit.normality().after.ppcc``; or
        the smaller statistic of Pearson's chi-square test of normality over its degrees of freedom, with which R's
        bestNormalize compares transforms: ``sum (count - n/k)**2/(n/k)/(k - 3)`` of the counts in
        ``k = ceil(2 n**0.4)`` classes of equal probability. Of robust fits, for the values that both keep.
    column_names : sequence of str, optional
        Names used in messages and kept with the fit; default: those of a data frame.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        What to do with columns of a data frame that hold no numbers: raise a TypeError that names the first, or leave
        them out of the fit, with one warning or without. The fit's `transform` passes them through unchanged.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit.
    progress : bool, default False
        Show a progress bar (needs tqdm) when the work takes more than about a second.
    **estimator_options
        Of the estimators other than "mle"; they take no `lmbda` or `ymax`.

        * quantile (0.995, all): values further from the center than this normal quantile are outliers.
        * prestandardize ("mad", all that resist outliers): Yeo-Johnson transforms ``(x - median)/MAD``; Box-Cox looks
          at the logs, less their median, over their MAD. "median": Box-Cox looks at ``x/median``. "none": both look
          at x. `lmbda` of Box-Cox is always that of the data.
        * n_reweight (3, RewML): number of reweighting steps; "settled": until the values kept no longer change.
        * search ("global", RewML): a scan for the global minimum, or "brent", from the full interval at once.
        * convention ("adaptive", RewML): or "paper", RewML as printed in [3]_, with the cut-off at `quantile` in every
          step, ``n_reweight=2``, ``first_weights="plain"``, ``rectify="one"``; or "cellwise", as R's cellWise 2.5.3.
        * c (0.5, RewML): distance from the diagonal of the QQ plot, in scales, beyond which a value counts as lost.
        * change_points ((0.25, 0.75), "rewml"): quantiles beyond which the transform is rectified.
        * rectify ("both", "rewml"): Box-Cox starts from the transform rectified on the side that lambda flattens, and
          from that rectified on both sides; what counts is the fit that leaves more values at the quantiles of a
          normal distribution. "one": from the first alone. Yeo-Johnson is its own mirror image, and starts from the
          first.
        * first_weights ("rectified", "rewml"): the first values left out are far off on the rectified transform, or on
          the "plain" one, as in eq. (16) of [3]_.
        * h (0.95, "mtl"): fraction of the values kept, more than a half.
        * search_range ((-4, 6), all that resist outliers): of lambda of the prestandardised column. Where the scan's
          lowest point is an end of it, it goes on beyond.

    Returns
    -------
    PowerFit

    Raises
    ------
    TypeError
        Data that are not real numbers: strings, objects, complex, dates, sparse or lazy arrays.
    ValueError
        Infinite values, values not above -shift under Box-Cox (naming column and row), wrong shapes, no data, a shift
        that is not finite or of another family, bounds that are no intervals, or within which `ymax` cannot be kept.

    Warns
    -----
    UserWarning
        Once, listing columns that could not be fitted (constant, all missing, ...), which pass through unchanged, and
        those whose lambda is in doubt, each with the sentence of its `Status`.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252, eq. (1).
    .. [2] I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve normality or symmetry",
       Biometrika 87, 2000, 954-959, eq. (2.1).
    .. [3] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.
    .. [4] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42,
       1980, 71-78.
    .. [5] J. J. Filliben, "The probability plot correlation coefficient test for normality", Technometrics 17, 1975,
       111-117.

    Notes
    -----
    The Kolmogorov-Smirnov distance is ``max_i max(i/n - Phi(z_i), Phi(z_i) - (i - 1)/n)`` of the ascending transformed
    values, less their mean, over their standard deviation (with n - 1), see `powerkern.outliers.ks_distance`. The
    correlation is that of the ascending transformed values with normal quantiles at Filliben's median ranks, as in
    `scipy.stats.boxcox_normmax(x, method="pearsonr")`; those of tied values are not averaged. Neither depends on how
    lambda was found, and neither resists outliers: a value far out moves the mean and the standard deviation.

    Both can have several minima, and the distance has kinks. They are scanned on both sides of the most likely lambda,
    as far as 4/sd(logs) and on as long as they fall, to some 100/sd(logs); if they still fall there, the status is
    `NOT_CERTIFIED`. Kinks are found to about 1e-10, smooth minima by Brent's method to about 1e-8. In columns of up to
    512 values every step is looked at between whose ends the distance may be lowest. The status says whether the scan
    saw another minimum less than twice as high. Two distinct values look equally
    normal under any lambda: theirs is the most likely one. `nll` is the negative log-likelihood at the lambda found.

    With `bounds`, the estimators other than "mle" find lambda as without, and it is clipped at the end: what they keep
    stays the same, and their location, scale and likelihood are those of the values kept, at the bound. For RewML
    that is the best lambda within the bounds, given what is kept. The bounds are those of `lmbda` as the fit reports
    it: for estimators that resist outliers, under Yeo-Johnson, of the prestandardised column.

    Weights are counts: `n_obs` is their sum, and intervals are as narrow as for so many rows. For estimators other than
    "mle" a row of weight w is w values in medians (the mean of the first values up to which there is half of the
    weight, and more), quartiles (the first up to which there is that share), Huber's sums, trimmed windows (which may
    begin and end within a row), distribution functions and normal scores: with W the weight of the smaller values,
    these are Phi^-1((r + 1/6)/(n + 1/3)) at r = W + 1/2, W + 3/2, ..., W + w - 1/2, n the weight of all. For k < w <
    k + 1 they are a mixture, with shares k + 1 - w and w - k, of those at the centers of k and of k + 1 equal parts of
    the ranks from W to W + w; for w < 1 it is one part. The mean over copies is taken to 1e-6, at a cost that does not
    depend on their number. Where ``sum w**2/sum w`` is below one, weights are divided by it: equal weights below one
    act as none.

    Columns of which more than half is one value have no median distance from the median: estimators that resist
    outliers are fitted to the other values (`Status.TIED`), if these have one. `n_obs` counts all; "mtl" may leave the
    equal values out of its window.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 3))
    >>> fit = pk.fit(X, family="box-cox")
    >>> np.abs(fit.lmbda).max() < 0.1
    np.True_
    >>> np.abs(pk.fit(X - 5.0, "box-cox", shift=5.0).lmbda - fit.lmbda).max() < 1e-9
    np.True_
    >>> bounded = pk.fit(X, family="box-cox", bounds=(0.5, 2.0))
    >>> bounded.lmbda, bounded.status_text[0]
    (array([0.5, 0.5, 0.5]), 'at a bound of lambda, set by bounds=, by ymax= or by the policy of a federated site')
    """
    as_choice("family", family, FIT_FAMILIES)
    as_choice("criterion", criterion, (LIKELIHOOD, *CRITERIA))
    meant = inspect.signature(fit).parameters if estimator_options else ()
    other = other_estimator(estimator, estimator_options, meant)
    check_together(family, None if other is None else estimator, lmbda, ymax, criterion)
    standardize = as_flag("standardize", standardize)
    rows, sample_weight = _frames.without_weights(X, sample_weight)
    chosen = _frames.chosen_positions(rows, non_numeric)
    matrix = as_matrix(rows if chosen is None else _frames.taken(rows, None, chosen), column_names)
    n, p = matrix.values.shape
    weight = weights_of(sample_weight, n)
    given = given_lambdas(lmbda, p)
    limit = lambda_limit(ymax, bounds, p, standardize, matrix.values.dtype)
    threads = thread_count(n_threads)
    shift = given_shift(shift, family, p)
    columns = shifted(matrix.values, shift)

    def fitted_as(code: int) -> FloatArray:
        if other is not None:
            return fitted_otherwise(other, columns, code, weight, limit, threads, progress)
        return maximum_likelihood(
            columns, code, given, weight, limit, n_threads=threads, names=matrix.names, progress=progress
        )

    families = None
    if family == BEST:
        results, families = best_family(fitted_as, matrix.values, weight, isinstance(other, Robust), criterion, threads)
    else:
        results = fitted_as(FAMILIES[family])
    _check_domain(matrix, results, weight, shift)
    if shift.any():
        to_own_units(results, shift)
        results[:, [X_MIN, X_MAX]] = extremes(matrix.values, weight)
    warn_unfitted(results[:, STATUS], matrix.names)
    fitted = PowerFit(
        family,
        results,
        estimator=estimator,
        estimator_options=plain_options(estimator_options),
        families=families,
        quantile=QUANTILE if other is None else other.quantile,
        standardize=standardize,
        column_names=matrix.names,
        data=(matrix.values, weight),
        was_vector=matrix.was_vector,
        unit_weights=weights_of_one(matrix.values, weight) if isinstance(other, Robust) else None,
    )
    if (lmbda is not None or other is not None) and not standardize:
        warn_overflow(fitted)
    return fitted


def _check_domain(matrix: Matrix, results: FloatArray, weight: FloatArray, shift: FloatArray) -> None:
    """Raise for the first column with values outside the family's domain."""
    outside = np.flatnonzero(results[:, STATUS] < 0)
    if outside.size:
        j = int(outside[0])
        raise domain_error_in(matrix, j, matrix.names, weight, shift[j])


def check_together(
    family: str, other: str | None, lmbda: ArrayLike | None, ymax: float | None, criterion: str = LIKELIHOOD
) -> None:
    """Raise for arguments that do not go with each other; other: the estimator, unless maximum likelihood."""
    if criterion != LIKELIHOOD and family != BEST:
        raise ValueError(f"criterion goes with family='best' only, not with family={family!r}; leave it out")
    choice = f"estimator={other!r}" if other else f"family={family!r}"
    if lmbda is not None and (other or family == BEST):
        raise ValueError(f"lmbda cannot be given with {choice}")
    if ymax is not None and other:
        raise ValueError(f"ymax cannot be given with {choice}")


def maximum_likelihood(
    columns: Columns,
    family: int,
    given: FloatArray,
    weight: FloatArray,
    limit: LambdaLimit | None = None,
    *,
    n_threads: int = 1,
    names: list[str] | None = None,
    progress: bool = False,
) -> FloatArray:
    """Results of every column, (p, N_RESULTS), with lambda found, within the limit, where `given` is NaN."""
    results = fit_matrix(columns, family, given, weight, n_threads, progress)

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        return fit_matrix(columns[:, at], family, bounded, weight, n_threads)

    if limit is not None:
        apply_limit(refit, family, results, names, limit, given)
    return results


def fitted_otherwise(
    estimator: Robust | NearestNormal,
    columns: Columns,
    family: int,
    weight: FloatArray,
    limit: LambdaLimit,
    n_threads: int,
    progress: bool,
) -> FloatArray:
    """Results of every column by an estimator other than maximum likelihood, lambda within the bounds of the limit."""
    results = estimator.fit(columns, family, weight, n_threads, progress)

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        return moved_to(bounded, columns[:, at], family, estimator, results[at], weight, n_threads)

    apply_limit(refit, family, results, None, limit._replace(ymax=math.inf), np.full(len(results), np.nan))
    return results


def transform(X: object, fit: PowerFit, **options: Any) -> Any:
    """Apply a fit: `PowerFit.transform` as a function."""
    return as_power_fit(fit, "the second argument").transform(X, **options)


def inverse_transform(Z: object, fit: PowerFit, **options: Any) -> Any:
    """Undo a fit's transform: `PowerFit.inverse_transform` as a function."""
    return as_power_fit(fit, "the second argument").inverse_transform(Z, **options)
