"""Fitting power transforms to the columns of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, overload

from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._estimators.base import Estimator, Run
from powerkern._estimators.spec import LIKELIHOOD, FitOptions, FitSpec, UnknownGroups
from powerkern._fit.columns import fit_columns
from powerkern._fit.groups import fit_groups
from powerkern._input import frames as _frames
from powerkern._input.censoring import Marks, with_marks
from powerkern._input.labels import GroupsLike, without_groups
from powerkern._input.reading import read
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.fitted_data import FittedData
from powerkern._results.grouped_fit import GroupedFit
from powerkern._results.power_fit import PowerFit, build_power_fit
from powerkern._typing import Bounds, Limits


@overload
def fit(
    X: object,
    family: str = ...,
    estimator: Estimator | str = ...,
    *,
    groups: None = None,
    **options: Unpack[FitOptions],
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
    **options: Unpack[FitOptions],
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
    below: object = None,
    above: object = None,
    between: tuple[object, object] | None = None,
    limits: Limits | None = None,
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
        Real numbers: arrays of any library in memory, of any order and strides, lists, data frames of any library that
        narwhals reads, Arrow data, masked arrays. Not changed, and copied only if small (128 KB). NaN (masked, null)
        is missing and ignored.
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
        Smallest and largest lambda: numbers, or (p,) arrays; None or infinity for no bound. A lambda beyond
        is clipped (`Status.AT_BOUND`, unless a graver status holds), and all other figures are those at the bound.
    below, above : (n, p) array-like of bool, optional
        True where a cell is only known to be below (above) the number in it, its detection limit: a cell of NaN marked
        so has the limit of its column, see `limits`. Data frames are aligned by their labels. Only with "mle".
    between : (lower, upper), optional
        Two arrays of the shape of `X`: cells are only known to lie between these, as binned or rounded data do. NaN in
        both: the cell is what `X` has; in one: there is no such end. Only with "mle".
    limits : (low, high), optional
        Numbers, or (p,) arrays; None where there is no limit: cells at or beyond them are only known to be beyond, and
        count as such. Only with "mle".
    criterion : {"likelihood", "ppcc", "pearson", "central"}, default "likelihood"
        How ``family="best"`` chooses: the larger likelihood; the larger correlation with normal quantiles (see
        `PowerFit.normality`); or the smaller statistic of Pearson's chi-square test of normality over its degrees of
        freedom, as R's bestNormalize does. Robust fits are compared on the values that both keep. "central": the
        smaller statistic of `PowerFit.central_normality`; a column is left untransformed, with lambda = 1 and
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
        Shrink lambda of each group towards the pooled lambda, small groups most. Only with "mle".
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
    marks = Marks(below, above, between)
    has_limits = marks.are_given or limits is not None
    spec = FitSpec.checked(
        grouped=groups is not None,
        family=family,
        estimator=estimator,
        standardize=standardize,
        lmbda=lmbda,
        shift=shift,
        origin=origin,
        ymax=ymax,
        bounds=bounds,
        limits=limits,
        censored=has_limits,
        criterion=criterion,
        dropna=dropna,
        unknown=unknown,
        shrink=shrink,
    )
    rows, groups_of_rows = (X, None) if groups is None else without_groups(X, groups, dropna)
    matrix = read(rows, sample_weight, column_names=column_names, non_numeric=non_numeric)
    levels = None if matrix.names is None or column_names is not None else _frames.level_names(rows)
    run = Run(thread_count(n_threads, matrix.values.size), progress)
    labels = ColumnLabels(matrix.names, levels, matrix.was_vector)
    spec, asked = spec.resolved(matrix.values.shape[1], matrix.names, matrix.values.dtype)
    if has_limits:
        matrix = with_marks(matrix, rows, marks, spec.limits_of(matrix.values.shape[1]))
    data = FittedData.remember(matrix, X, sample_weight)
    if groups_of_rows is not None:
        return fit_groups(matrix, groups_of_rows, spec, asked, labels, data, run)
    columns = fit_columns(matrix, spec, asked, run)
    return build_power_fit(spec, labels, columns, data.take_prints(run.n_threads))
