"""`fit`: fit power transforms to the columns of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, overload

from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._estimators.base import Estimator, Run
from powerkern._estimators.spec import FitOptions, FitSpec, OnFailure, UnknownGroups
from powerkern._fit.columns import fit_columns
from powerkern._fit.groups import fit_groups
from powerkern._input import frames as _frames
from powerkern._input.censoring import Marks, with_marks, without_flags
from powerkern._input.choices import LIKELIHOOD, Infinite
from powerkern._input.infinite import without_infinite
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
    infinite: Infinite = "raise",
    on_failure: OnFailure = "raise",
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
        Real numbers: arrays of any library in memory, in any order and with any strides, masked arrays, lists, Arrow
        data, or data frames of any library that narwhals reads. X is not changed, and is copied only if it is small (up
        to 128 KB). NaN, masked and null entries are missing, and ignored.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform. "best": for each column, the one that `criterion` prefers; columns that are not positive get
        Yeo-Johnson.
    estimator : Estimator or str, default "mle"
        The method that estimates lambda: maximum likelihood (`ML`), a method that resists outliers (`AdaptiveRewML`,
        `RewML`, `RewMLNR`, `Carroll`, `MTL`), or the largest correlation in a normal QQ plot (`PPCC`). An estimator
        with default options can be given by name: "mle", "robust", "rewml", "rewml-nr", "carroll", "mtl", "ppcc".
    standardize : bool, default True
        Let the fit's `transform` return values with mean 0 and standard deviation 1 (1/n).
    sample_weight : (n,) array-like, or str, optional
        Non-negative weights of the rows, or the name of the column that holds them (not fitted). Integer weights act
        as repeated rows, and other weights interpolate; rows of weight 0 are ignored.
    lmbda : float or (p,) array-like, optional
        Use these lambdas instead of fitting; NaN entries are fitted. Only with "mle".
    shift : float or (p,) array-like, default 0
        Box-Cox transforms ``x + shift``, a sum in float64, for values above -shift. The shift is not fitted.
    origin : {"fit"}, optional
        "fit": also fit an origin and a unit of each column, and transform ``(x - center)/divisor``. lambda is then the
        same for x and ``a + b x``. Only with "mle", "central-mle", "robust", "rewml" or "rewml-nr"; the fit takes 10 to
        50 times as long. See the guide on units and origin.
    ymax : float, optional
        Upper limit on ``|psi|``; lambda is restricted so that no value of the data exceeds it. Default: no limit when
        standardizing, else the largest float64 divided by 1e4. Only with "mle".
    bounds : (low, high), optional
        Smallest and largest lambda: numbers, or (p,) arrays; None or infinity means no bound. A lambda beyond a
        bound is clipped (status `Status.AT_BOUND`, unless a more severe one applies), and all other results are
        computed at the bound.
    below, above : (n, p) array-like of bool, or dict, optional
        True for cells that are only known to lie below (above) the number in the cell, their detection limit. A marked
        NaN is censored at the limit of its column (see `limits`). Data frames are aligned by their
        labels. If columns of `X` hold the flags, name them, as in ``{"lead": "lead_flag"}``; they are not fitted. Only
        with "mle".
    between : (lower, upper), optional
        Two arrays of the shape of `X`, for binned or rounded data: cells are only known to lie between the two numbers.
        If both are NaN, the cell has the value in `X`; if one is NaN, the interval is open at that end. Only with
        "mle".
    limits : (low, high), optional
        Detection limits: numbers, or (p,) arrays; None means no limit. Cells at or beyond a limit are only known to be
        beyond it. Only with "mle".
    criterion : {"likelihood", "ppcc", "pearson", "central"}, default "likelihood"
        The criterion by which ``family="best"`` chooses. "likelihood": the larger likelihood. "ppcc": the larger
        correlation with normal quantiles (see `PowerFit.normality`). "pearson": the smaller statistic of Pearson's
        chi-square test of normality, divided by its degrees of freedom, as in R's bestNormalize. "central": the smaller
        statistic of `PowerFit.central_normality`; a column is not transformed (lambda = 1, status
        `Status.LEFT_AS_IT_IS`) if the statistic of the untransformed column is smaller still, or if the p-value of the
        better transform is below 0.05. Robust fits are compared on the values that both keep.
    infinite : {"raise", "missing", "keep"}, default "raise"
        Treatment of infinite values. "raise": an error. "missing": they are left out, like NaN, and a warning counts
        them. "keep": they are left out of the fit, and passed on by `transform` and its inverse. The fit's `transform`
        uses the same treatment by default.
    on_failure : {"raise", "passthrough"}, default "raise"
        Treatment of columns with values outside the domain of Box-Cox. "raise": an error. "passthrough": they pass
        unchanged, as do columns with fewer than three distinct values, which have the same shape under every lambda.
        A warning lists both.
    column_names : sequence of str, optional
        Names used in messages and stored with the fit; default: the names in a data frame.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        Treatment of columns of a data frame that hold no numbers: raise an error, or leave them out, with a
        warning or silently.
    groups : (n,) array-like, str or list of str, optional
        Fit each group of rows separately. Give the labels of the rows (numbers, text, dates, categories, in any
        order), or the column or columns of a data frame that hold the labels (they are not fitted).
    dropna : bool, optional
        Treatment of rows without a label: True leaves them out, False makes them a group. Default: an error.
    unknown : {"raise", "nan", "pooled"}, default "raise"
        Treatment of new rows whose group was not in the fitted data. "raise": an error. "nan": their results are NaN.
        "pooled": the fit of all rows transforms them.
    shrink : bool, default False
        Shrink each group's lambda towards the pooled lambda, more strongly for groups with little information. Only
        with "mle".
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
        Non-numeric, infinite or out-of-domain data (the message names column and row), or arguments that cannot be
        combined.

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
    has_limits = not (below is None and above is None and between is None and limits is None)
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
        infinite=infinite,
        on_failure=on_failure,
        dropna=dropna,
        unknown=unknown,
        shrink=shrink,
    )
    rows, groups_of_rows = (X, None) if groups is None else without_groups(X, groups, dropna)
    if has_limits:
        rows, marks = without_flags(rows, marks)
    matrix = read(rows, sample_weight, column_names=column_names, non_numeric=non_numeric)
    if spec.infinite != "raise":
        matrix = without_infinite(matrix, spec.infinite)
    levels = None if matrix.names is None or column_names is not None else _frames.level_names(rows)
    run = Run(thread_count(n_threads, matrix.values.size), progress)
    labels = ColumnLabels(matrix.names, levels, matrix.was_vector)
    spec, requested = spec.match_columns(matrix.values.shape[1], matrix.names, matrix.values.dtype)
    if has_limits:
        matrix = with_marks(matrix, rows, marks, spec.limits_of(matrix.values.shape[1]))
    data = FittedData.remember(matrix, X, sample_weight)
    if groups_of_rows is not None:
        return fit_groups(matrix, groups_of_rows, spec, requested, labels, data, run)
    columns = fit_columns(matrix, spec, requested, run)
    return build_power_fit(spec, labels, columns, data.take_fingerprints(run.n_threads))
