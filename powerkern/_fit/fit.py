"""Fitting and applying power transforms to the columns of a matrix."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._engine.threads import thread_count
from powerkern._estimators.estimators import Estimator, as_estimator
from powerkern._estimators.likelihood import ML
from powerkern._estimators.limits import LambdaLimit, apply_limit, lambda_limit
from powerkern._estimators.nearest_normal import NearestNormal
from powerkern._estimators.origin import FITTED, WithOrigin, check_origin, in_units, likeliest_with_origin, with_origin
from powerkern._estimators.power_sums import fit_matrix
from powerkern._estimators.robust import Robust, weights_of_one
from powerkern._estimators.robust_bounds import moved_to
from powerkern._estimators.shift import extremes, given_shift, to_own_units
from powerkern._estimators.standard_units import scaled_by
from powerkern._fit.best_family import CENTRAL, CRITERIA, LIKELIHOOD, best_family, leave_alone
from powerkern._fit.groups import fit_groups
from powerkern._input import frames as _frames
from powerkern._input.arguments import domain_error_in, given_lambdas
from powerkern._input.arrays import Matrix, as_choice, as_flag
from powerkern._input.labels import GroupsLike, without_groups
from powerkern._input.messages import shown
from powerkern._input.reading import read
from powerkern._results.columns import ColumnResults, FitInfo, Source
from powerkern._results.fitted_data import FittedData
from powerkern._results.grouped_fit import GroupedFit, UnknownGroups
from powerkern._results.power_fit import BEST, FIT_FAMILIES, PowerFit, as_power_fit, finished
from powerkern._typing import Bounds, FloatArray, IntArray
from powerkern.kernels.results import STATUS, X_MAX, X_MIN
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored

__all__ = ["GroupedFit", "fit", "inverse_transform", "transform"]


class _Options(TypedDict, total=False):
    """Options of `fit` with groups and without."""

    standardize: bool
    sample_weight: ArrayLike | str | None
    lmbda: ArrayLike | None
    shift: ArrayLike
    origin: str | None
    ymax: float | None
    bounds: Bounds | None
    criterion: str
    column_names: Sequence[str] | None
    non_numeric: _frames.NonNumeric
    n_threads: int | None
    progress: bool


@overload
def fit(
    X: object,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: None = None,
    **options: Unpack[_Options],
) -> PowerFit: ...


@overload
def fit(
    X: object,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: GroupsLike,
    dropna: bool | None = ...,
    unknown: UnknownGroups = ...,
    shrink: bool = ...,
    **options: Unpack[_Options],
) -> GroupedFit: ...


def fit(
    X: object,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    standardize: bool = True,
    sample_weight: ArrayLike | str | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    origin: str | None = None,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    criterion: str = LIKELIHOOD,
    column_names: Sequence[str] | None = None,
    non_numeric: _frames.NonNumeric = "raise",
    groups: GroupsLike | None = None,
    dropna: bool | None = None,
    unknown: UnknownGroups = "raise",
    shrink: bool = False,
    n_threads: int | None = None,
    progress: bool = False,
) -> PowerFit | GroupedFit:
    r"""Fit a power transform to every column, by maximum likelihood or robustly.

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        Real numbers: arrays of any order and strides, lists, data frames of pandas and polars, Arrow tables, masked
        arrays. Not changed, and copied only if small (128 KB). NaN (masked, null) is missing and ignored.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best": the better one by `criterion`, column by column, for positive values.
    estimator : Estimator or str, default "mle"
        How lambda is found: `ML` (maximum likelihood); `AdaptiveRewML`, `RewML`, `RewMLNR`, `Carroll` or `MTL`, which
        resist outliers;
        `PPCC`, the straightest QQ plot. Or, with default options, its name: "mle", "robust", "rewml", "rewml-nr",
        "carroll", "mtl", "ppcc".
    standardize : bool, default True
        Let the fit's `transform` return values with mean 0 and standard deviation 1 (1/n).
    sample_weight : (n,) array-like, or str, optional
        Non-negative weights of the rows, or the name of the column that holds them (not fitted). Integer weights act
        as if rows were repeated, others continue that; rows of weight 0 are absent.
    lmbda : float or (p,) array-like, optional
        Take these lambdas instead of fitting; NaN entries are fitted. Only with "mle".
    shift : float or (p,) array-like, default 0
        Box-Cox transforms ``x + shift``, a sum in float64, for values above -shift. The shift is not fitted.
    origin : {"fit"}, optional
        "fit": transform ``(x - center)/divisor``, both found with lambda, which is then the same for ``a + b x``. With
        "mle", "central-mle", "robust", "rewml" or "rewml-nr"; 10 to 50 times the work. See the guide on units and
        origin.
    ymax : float, optional
        Largest ``|psi|`` of the data: lambda is the best one that keeps it. Default: none when standardizing, else the
        largest float64 divided by 1e4. Only with "mle".
    bounds : (low, high), optional
        Smallest and largest lambda: numbers, or (p,) arrays; None or infinity where there is no bound. A lambda beyond
        is clipped (`Status.AT_BOUND`, unless a graver status holds), and all other figures are those at the bound.
    criterion : {"likelihood", "ppcc", "pearson", "central"}, default "likelihood"
        How ``family="best"`` chooses: the larger likelihood; the larger correlation with normal quantiles (see
        `PowerFit.normality`); or the smaller statistic of Pearson's chi-square test of normality over its degrees of
        freedom, as R's bestNormalize does. Robust fits are compared on the values that both keep. "central": the
        smaller statistic of `PowerFit.central_normality`; a column stays as it is, with lambda = 1 and
        `Status.LEFT_AS_IT_IS`, if its own is smaller, or the better transform's p-value is below 0.05.
    column_names : sequence of str, optional
        Names used in messages and kept with the fit; default: the names in a data frame.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        Columns of a data frame without numbers: raise, or leave them out, with a warning or silently.
    groups : (n,) array-like, str or list of str, optional
        Fit each group of rows by itself: labels of the rows (numbers, text, dates, categories, in any order), or the
        column, or columns, of a data frame that hold them (not fitted).
    dropna : bool, optional
        Rows without a label: True leaves them out, False makes them a group. Default: an error.
    unknown : {"raise", "nan", "pooled"}, default "raise"
        How the fit will treat rows of other groups: "pooled" transforms them by the fit of all rows.
    shrink : bool, default False
        Draw lambda of each group towards that of all rows, the more the less its rows say. Only with "mle".
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit.
    progress : bool, default False
        Show a progress bar (needs tqdm) when the work takes more than about a second.

    Returns
    -------
    PowerFit
        With `groups`, a `GroupedFit`.

    Raises
    ------
    TypeError, ValueError
        Data that are not real numbers, infinite, or outside the domain, by column and row; arguments that do not fit.

    Warns
    -----
    UserWarning
        Once, listing columns that could not be fitted and pass through unchanged, and those whose lambda is in doubt.

    Notes
    -----
    `ML` minimises :math:`\tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline J`, with

    * Box-Cox (x > 0): :math:`\psi_\lambda(x) = (x^\lambda - 1)/\lambda`, :math:`\ln x` for 0; :math:`J = \ln x`;
    * Yeo-Johnson: :math:`\psi_\lambda(x) = ((1 + x)^\lambda - 1)/\lambda` for x >= 0,
      :math:`-((1 - x)^{2 - \lambda} - 1)/(2 - \lambda)` for x < 0; :math:`J = \operatorname{sign}(x) \ln(1 + |x|)`.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 3))
    >>> bool(np.abs(pk.fit(X, family="box-cox").lmbda).max() < 0.1)
    True
    """
    as_choice("family", family, FIT_FAMILIES)
    as_choice("criterion", criterion, (LIKELIHOOD, CENTRAL, *CRITERIA))
    estimator = as_estimator(estimator)
    check_together(family, estimator, lmbda, ymax, criterion)
    if origin is not None:
        as_choice("origin", origin, (FITTED,))
    solver = estimator.solver() if origin is None else with_origin(estimator)
    standardize = as_flag("standardize", standardize)
    rows, labels = (X, None) if groups is None else without_groups(X, groups, dropna)
    matrix = read(rows, sample_weight, column_names=column_names, non_numeric=non_numeric)
    p = matrix.values.shape[1]
    fitting = _Fitting(
        family,
        solver,
        given_lambdas(lmbda, p, matrix.names),
        given_shift(shift, family, p, matrix.names),
        lambda_limit(ymax, bounds, p, standardize, matrix.values.dtype, matrix.names),
        criterion,
        estimator.prestandardize if isinstance(estimator, ML) else "none",
        origin is not None,
    )
    if origin is not None:
        check_origin(estimator, fitting.shift, bounds)
    levels = None if column_names is not None else _frames.level_names(rows)
    info = FitInfo(family, estimator, standardize, matrix.names, matrix.was_vector, origin, levels)
    threads, unbounded = thread_count(n_threads), lmbda is not None or solver is not None
    if as_flag("shrink", shrink) and (solver is not None or family == BEST or lmbda is not None or origin):
        raise ValueError("shrink=True is for lambdas fitted by maximum likelihood, in one family, without origin=")
    data = FittedData.remember(matrix, X, sample_weight)
    if labels is not None:
        return fit_groups(
            matrix,
            labels,
            info,
            fitting.fitted,
            data,
            dropna=dropna,
            unknown=unknown,
            shrink=shrink,
            n_threads=threads,
            progress=progress,
            unbounded=unbounded,
        )
    if dropna is not None or unknown != "raise" or shrink:
        raise TypeError("dropna, unknown and shrink go with groups=; leave them out")
    columns = fitting.fitted(matrix, threads, progress)
    return finished(info, columns, Source(data.take_prints(threads)), unbounded=unbounded)


class _Fitting(NamedTuple):
    """How each column is fitted: the arguments of `fit`, checked."""

    family: str
    solver: Robust | NearestNormal | WithOrigin | None
    given: FloatArray
    shift: FloatArray
    limit: LambdaLimit
    criterion: str
    prestandardize: str
    with_origin: bool

    def fitted(
        self, matrix: Matrix, n_threads: int, progress: bool = False, *, given: FloatArray | None = None
    ) -> ColumnResults:
        """Results of the columns of a matrix, or of several groups of them; or at given lambdas."""
        repeats = matrix.values.shape[1] // self.shift.size
        each = self if repeats == 1 else self._repeated(repeats)
        return (each if given is None else each._replace(given=given))._fitted(matrix, n_threads, progress)

    def _repeated(self, k: int) -> _Fitting:
        """The same for k groups side by side."""
        limit = self.limit._replace(bounds=_tiled(self.limit.bounds, k))
        return self._replace(given=_tiled(self.given, k), shift=_tiled(self.shift, k), limit=limit)

    def _fitted(self, matrix: Matrix, n_threads: int, progress: bool) -> ColumnResults:
        values, weight = matrix.values, matrix.weight
        is_robust = isinstance(self.solver, Robust | WithOrigin)
        in_family = functools.partial(self._in_family, matrix=matrix, n_threads=n_threads, progress=progress)
        families: IntArray | str = self.family
        if self.family == BEST:
            results, families = best_family(in_family, values, weight, is_robust, self.criterion, n_threads)
            if self.criterion == CENTRAL:
                leave_alone(results, families, values, weight, n_threads)
        else:
            results = in_family(FAMILIES[self.family])
        outside = np.flatnonzero(results[:, STATUS] < 0)
        if outside.size:
            j = int(outside[0])
            raise domain_error_in(matrix, j, matrix.names, weight, self.shift[j])
        if self.shift.any() or self.with_origin or self.prestandardize != "none":
            results[:, [X_MIN, X_MAX]] = extremes(values, weight)
        return ColumnResults(results, families, unit_weights=weights_of_one(values, weight) if is_robust else None)

    def _in_family(self, code: int, matrix: Matrix, n_threads: int, progress: bool) -> FloatArray:
        """Results of every column under one family, (p, N_RESULTS)."""
        values, weight, given = matrix.values, matrix.weight, self.given

        def likeliest(columns: Columns) -> FloatArray:
            return maximum_likelihood(
                columns, code, given, weight, self.limit, n_threads=n_threads, names=matrix.names, progress=progress
            )

        if self.solver is not None:
            columns = shift_and_scale(values, self.shift)
            results = fitted_otherwise(self.solver, columns, code, weight, self.limit, n_threads, progress)
        elif self.with_origin:
            bounds = self.limit.bounds
            return likeliest_with_origin(values, code, given, bounds, weight, n_threads, progress, likeliest)
        elif self.prestandardize != "none" and is_mirrored(code):
            return in_units(likeliest, values, *scaled_by(self.prestandardize, values, weight, n_threads))
        else:
            results = likeliest(shift_and_scale(values, self.shift))
        to_own_units(results, self.shift)
        return results


def _tiled(each: FloatArray, k: int) -> FloatArray:
    """`numpy.tile` along the last axis, in a tenth of its time."""
    *rows, p = each.shape
    tiled = np.empty((*rows, k, p))
    tiled[...] = each[..., np.newaxis, :]
    return tiled.reshape(*rows, k * p)


def check_together(
    family: str, estimator: Estimator, lmbda: ArrayLike | None, ymax: float | None, criterion: str = LIKELIHOOD
) -> None:
    """Raise for arguments that do not go with each other."""
    if criterion != LIKELIHOOD and family != BEST:
        raise ValueError(f"criterion goes with family='best' only, not with family={shown(family)}; leave it out")
    other = not isinstance(estimator, ML)
    choice = f"estimator={estimator.name!r}" if other else f"family={shown(family)}"
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
    solver: Robust | NearestNormal | WithOrigin,
    columns: Columns,
    family: int,
    weight: FloatArray,
    limit: LambdaLimit,
    n_threads: int,
    progress: bool,
) -> FloatArray:
    """Results of every column by an estimator other than maximum likelihood, lambda within the bounds of the limit."""
    results = solver.fit(columns, family, weight, n_threads, progress)
    moving = solver.kept_by if isinstance(solver, WithOrigin) else solver
    if moving is None:
        return results

    def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
        return moved_to(bounded, columns[:, at], family, moving, results[at], weight, n_threads)

    apply_limit(refit, family, results, None, limit._replace(ymax=math.inf), np.full(len(results), np.nan))
    return results


def transform(X: object, fit: PowerFit, **options: Any) -> Any:
    """Apply a fit: `PowerFit.transform` as a function."""
    return as_power_fit(fit, "the second argument").transform(X, **options)


def inverse_transform(Z: object, fit: PowerFit, **options: Any) -> Any:
    """Undo a fit's transform: `PowerFit.inverse_transform` as a function."""
    return as_power_fit(fit, "the second argument").inverse_transform(Z, **options)
