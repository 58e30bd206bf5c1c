"""Methods of a fit about outliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerkern._estimators.adaptive_rewml import AdaptiveRewML
from powerkern._estimators.options import checked_cutoff, normal_quantile
from powerkern._estimators.rewml import Reweighted
from powerkern._estimators.robust import small_sample_cutoff
from powerkern._input.reading import labelled, read_fitted
from powerkern._results.columns import FittedColumns
from powerkern._results.inference import Interval
from powerkern._status import is_failed
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import FAMILIES, INVERSE_STANDARDIZED, domain_lower_bound


def weights(fit: FittedColumns, X: object) -> Any:
    """Which values the fit would keep, with weight 1, and which it would leave out, with weight 0.

    The forms of RewML keep values within the cut-off of Huber's location and scale of the transformed data when it last
    fitted lambda (`outliers` are those beyond the cut-off at the lambda found), the trimmed likelihood its window
    of order statistics, and the other estimators everything.

    Parameters
    ----------
    X : (n, n_features) array-like, or (n,) where the fit was to one column
        The fitted data, or new ones. Missing values, and all values of a column that could not be fitted, have
        weight 0 and 1.

    Returns
    -------
    ndarray, or a data frame or series like `X`
        0 or 1; same shape as `X`, columns in the order of the fit. On the fitted data, their sums are `n_kept`,
        or more where values tie with the last ones that the trimmed likelihood keeps.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
    >>> int(pk.fit(x, estimator="robust").weights(x)[-1])
    0
    """
    matrix = read_fitted(X, fit.column_names, fit.n_features)
    values = matrix.values
    if not fit.estimator.keeps_all:
        low, high = fit.columns.kept_low, fit.columns.kept_high
        kept = (values >= low) & (values <= high) | (is_failed(fit.status) & ~np.isnan(values))
    else:
        kept = ~np.isnan(values)
    return labelled(matrix, kept.astype(np.float64))


def outliers(fit: FittedColumns, X: object, *, cutoff: float | None = None) -> Any:
    """Values beyond the cut-off on the standardised scale: ``|psi(x) - loc| > cutoff scale``.

    The cut-off is ``Phi^-1(cutoff)``; of reweighted maximum likelihood by the paper's convention, the quantile of
    Student's t with n_kept/4 degrees of freedom, nearly the same in long columns. About 1 % of clean values are
    then beyond the default one in short columns, too.

    Parameters
    ----------
    X : (n, n_features) array-like, or (n,) where the fit was to one column
        The fitted data, or new ones. Missing values are no outliers, nor are values of columns not fitted.
    cutoff : float, optional
        Quantile of the normal distribution. Default: `cutoff` of the fit, 0.995 unless given, which
        flags about 1 % of normal data.

    Returns
    -------
    ndarray of bool, or a data frame or series like `X`
        Same shape as `X`, the columns in the order of the fit: ``X[fit.outliers(X).any(axis=1)]`` has the rows.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
    >>> bool(pk.fit(x, estimator="robust").outliers(x)[-1])
    True
    """
    matrix = read_fitted(X, fit.column_names, fit.n_features)
    low, high = cutoffs(fit, cutoff=cutoff)
    with np.errstate(invalid="ignore"):
        beyond = (matrix.values < low) | (matrix.values > high)
    return labelled(matrix, beyond)


def cutoffs(fit: FittedColumns, *, cutoff: float | None = None) -> Interval:
    """The cut-offs for outliers in the units of the data.

    Parameters
    ----------
    cutoff : float, optional
        Quantile of the normal distribution; default: `cutoff` of the fit.

    Returns
    -------
    Interval
        Arrays `low` and `high`: values with ``psi = loc -+ cutoff scale`` (see `outliers`); -inf (-shift under
        Box-Cox) and inf beyond the range of the transform; NaN for columns that could not be fitted.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> x = np.random.default_rng(0).lognormal(size=1000)
    >>> low, high = pk.fit(x, "box-cox", "robust").cutoffs()
    >>> bool(0.0 < low[0] < 0.2 < 5.0 < high[0])
    True
    """
    reach = standardized_cutoff(fit, cutoff=cutoff)
    ends = np.array([-reach, reach])
    fit.columns.transform(ends, ends, INVERSE_STANDARDIZED, 1)
    low, high = ends
    ends_of_domain = np.array([domain_lower_bound(code) for code in FAMILIES.values()])
    low = np.where(np.isnan(low), fit.center + ends_of_domain[fit.columns.codes], low)
    high = np.where(np.isnan(high), np.inf, high)
    failed = is_failed(fit.status)
    low[failed] = high[failed] = np.nan
    return Interval(low, high)


def standardized_cutoff(fit: FittedColumns, *, cutoff: float | None = None) -> FloatArray:
    """The cut-off for outliers of each column on the standardised scale, see `outliers`.

    Weights count values. Where the mean of the weights, each weighted by itself, is less than one, they are
    relative, and that mean counts as one value: equal weights that sum to one change nothing.

    Parameters
    ----------
    cutoff : float, optional
        Quantile of the normal distribution; default: `cutoff` of the fit.

    Returns
    -------
    (n_features,) ndarray

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 1))
    >>> [pk.fit(X[:n], estimator="robust").standardized_cutoff().round(1).tolist() for n in (10, 50, 1000)]
    [[7.2], [3.0], [2.6]]
    """
    cutoff = fit.cutoff if cutoff is None else checked_cutoff("cutoff", cutoff)
    normal = np.full(fit.n_features, normal_quantile(cutoff))
    estimator = fit.estimator
    as_r = isinstance(estimator, Reweighted) and estimator.convention == "cellwise"
    if as_r or not isinstance(estimator, AdaptiveRewML | Reweighted):
        return normal
    units = fit.columns.unit_weights
    n_kept = fit.n_kept if units is None else fit.n_kept / units
    return np.where(is_failed(fit.status), normal, small_sample_cutoff(cutoff, n_kept))
