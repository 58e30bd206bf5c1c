"""Measures of the normality of columns before and after their transform."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._estimators.plotting_positions import cached_quantiles, sort_and_weigh
from powerkern._input import lazy_scipy_special as special
from powerkern._results.column_table import ColumnTable
from powerkern._results.display import short_repr
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.normality.moments import (
    COUNT,
    KURTOSIS,
    N_NORMALITY,
    PPCC,
    SKEWNESS,
    normality_columns,
)
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED
from powerkern.kernels.transforms.gather import APPLY

#: Smallest sample size for which the normal approximations of the test statistics hold.
_FEWEST = 8
#: For larger samples, `dagostino_pearson` uses the limits of Z1**2 and Z2**2: n/6 skewness**2 and n/24 kurtosis**2.
_MANY = 1e8
#: Degrees of freedom that Pearson's test loses: one each for the total count, the mean and the standard deviation.
ESTIMATED = 3


class NormalityMeasures(NamedTuple):
    """Measures of the normality of columns, one entry per column.

    Attributes
    ----------
    skewness : ndarray
        ``m3/m2**1.5`` with central moments ``m`` (1/n); 0 for a normal distribution.
    kurtosis : ndarray
        ``m4/m2**2 - 3``; 0 for a normal distribution.
    ppcc : ndarray
        Probability plot correlation coefficient: the correlation of the ascending values with normal quantiles at
        Filliben's median ranks; 1 for a straight QQ plot.
    pvalue : ndarray
        P-value of D'Agostino and Pearson's test of normality, which combines skewness and kurtosis; NaN for fewer than
        8 values.
    """

    skewness: FloatArray
    kurtosis: FloatArray
    ppcc: FloatArray
    pvalue: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


class Normality(NamedTuple):
    """Measures of the normality of columns before and after the transforms of a fit.

    Attributes
    ----------
    before, after : NormalityMeasures
        The measures before and after; NaN for columns with fewer than two distinct values.
    """

    before: NormalityMeasures
    after: NormalityMeasures


def moments_matrix(
    values: NDArray[Any], family: int, results: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Compute measures of normality of each column before and after its transform.

    Parameters
    ----------
    values : (n, p) ndarray
        The data.
    family : int
        A code of `kernels.transforms.family`.
    results : (p, N_RESULTS) ndarray
        Rows of `kernels.results.ColumnFit`, whose transforms are applied.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    n_threads : int
        Maximum number of threads.

    Returns
    -------
    (p, 2, N_NORMALITY) ndarray
        Measures before and after, in the order of `kernels.normality.moments`.
    """
    quantiles = cached_quantiles(len(values))

    def measure(block: FloatArray, group: slice) -> FloatArray:
        rows, n = block.shape
        work, out = np.empty((2, n)), np.empty((2, rows, N_NORMALITY))
        columns, positions, totals = sort_and_weigh(block, weight, quantiles)
        for k in range(2):
            if k == 1:  # increasing transforms keep the order
                APPLY[family, FORWARD_STANDARDIZED](columns, results[group], np.zeros(rows, dtype=np.int64))
            normality_columns(columns, positions, totals, work, out[k])
        return out.swapaxes(0, 1).reshape(rows, -1)

    return measure_columns(measure, values, 2 * N_NORMALITY, n_threads).reshape(-1, 2, N_NORMALITY)


def measure_normality(table: ColumnTable, values: NDArray[Any], weight: Weights, n_threads: int) -> Normality:
    """Measure how close to normal columns are before and after the transforms of a fit.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    values : (n, p) ndarray
        The data.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    n_threads : int
        Maximum number of threads.
    """
    rows = table.kernel_rows
    moments = table.compute_by_family(
        lambda code, chosen: moments_matrix(values[:, chosen], code, rows[chosen], weight, n_threads)
    )
    return Normality(_name_measures(moments[:, 0]), _name_measures(moments[:, 1]))


def _name_measures(moments: FloatArray) -> NormalityMeasures:
    """Convert the rows of `moments_matrix`, (p, N_NORMALITY), to named measures, and add p-values."""
    skewness, kurtosis = moments[:, SKEWNESS], moments[:, KURTOSIS]
    pvalue = dagostino_pearson(skewness, kurtosis, moments[:, COUNT])
    return NormalityMeasures(skewness, kurtosis, moments[:, PPCC], pvalue)


def pearson_normality(z: FloatArray, weight: Weights) -> float:
    """Return Pearson's chi-square statistic of normality divided by its degrees of freedom: about 1 for normal data.

    The values are standardised by their mean and standard deviation (divisor n - 1) and counted in
    ``k = ceil(2 n**0.4)`` classes of equal probability [1]_. The result is ``sum (count - n/k)**2/(n/k)``, divided by
    ``k - 3``. This is the ratio of R's ``nortest::pearson.test`` that bestNormalize compares. It is NaN if all values
    are equal, and for fewer than 3 values, whose classes leave no degree of freedom.

    Parameters
    ----------
    z : (n,) ndarray
        The values; NaN is missing.
    weight : (n,) ndarray or None
        Frequency weights; None: all one.

    References
    ----------
    .. [1] D. S. Moore, "Tests of chi-squared type", in D'Agostino and Stephens (eds.), Goodness-of-Fit Techniques,
       Marcel Dekker, 1986.
    """
    present = ~np.isnan(z)
    z, w = z[present], np.ones(np.count_nonzero(present)) if weight is None else weight[present]
    n = float(w.sum())
    k = int(np.ceil(2.0 * n**0.4))
    if k <= ESTIMATED or n < ESTIMATED or not np.ptp(z[w > 0.0]) > 0.0:
        return float("nan")
    away = z - (w * z).sum() / n
    classes = np.floor(k * special.ndtr(away / np.sqrt((w * away * away).sum() / (n - 1.0)))).astype(np.int64)
    counts = np.bincount(np.minimum(classes, k - 1), weights=w, minlength=k)
    return float(((counts - n / k) ** 2).sum() / (n / k) / (k - ESTIMATED))


def dagostino_pearson(skewness: FloatArray, kurtosis: FloatArray, n: FloatArray) -> FloatArray:
    """Return p-values of the omnibus test of normality of D'Agostino and Pearson.

    They are ``P(chi-square with 2 degrees of freedom > Z1**2 + Z2**2)``, where Z1 and Z2 are skewness and kurtosis
    transformed to standard normal variables [1]_, [2]_. `scipy.stats.normaltest` does the same, but replaces a skewness
    of exactly 0 by 1. The result is NaN for fewer than 8 values.

    References
    ----------
    .. [1] R. B. D'Agostino, "Transformation to normality of the null distribution of g1", Biometrika 57, 1970,
       679-681.
    .. [2] F. J. Anscombe and W. J. Glynn, "Distribution of the kurtosis statistic b2 for normal samples",
       Biometrika 70, 1983, 227-234.
    """
    n = np.where(n >= _FEWEST, n, np.nan)
    few = np.minimum(n, _MANY)
    squares = _normal_skewness(skewness, few) ** 2 + _normal_kurtosis(kurtosis, few) ** 2
    limit = n * (skewness**2 / 6.0 + kurtosis**2 / 24.0)
    return np.exp(-0.5 * np.where(n > _MANY, limit, squares))


def _normal_skewness(g1: FloatArray, n: FloatArray) -> FloatArray:
    """Transform skewness `g1` of samples of size `n` to a standard normal variable, by Johnson's S_U."""
    variance = 6.0 * (n - 2.0) / ((n + 1.0) * (n + 3.0))
    kurtosis = 3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
    kurtosis /= (n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0)
    w2 = np.sqrt(2.0 * (kurtosis - 1.0)) - 1.0
    return np.arcsinh(g1 * np.sqrt(0.5 * (w2 - 1.0) / variance)) / np.sqrt(0.5 * np.log(w2))


def _normal_kurtosis(g2: FloatArray, n: FloatArray) -> FloatArray:
    """Transform excess kurtosis `g2` of samples of size `n` to a standard normal variable (Wilson and Hilferty)."""
    mean = -6.0 / (n + 1.0)
    variance = 24.0 * n * (n - 2.0) * (n - 3.0) / ((n + 1.0) ** 2 * (n + 3.0) * (n + 5.0))
    skewness = 6.0 * (n * n - 5.0 * n + 2.0) / ((n + 7.0) * (n + 9.0))
    skewness *= np.sqrt(6.0 * (n + 3.0) * (n + 5.0) / (n * (n - 2.0) * (n - 3.0)))
    a = 6.0 + 8.0 / skewness * (2.0 / skewness + np.sqrt(1.0 + 4.0 / skewness**2))
    standard = (g2 - mean) / np.sqrt(variance)
    root = np.cbrt((1.0 - 2.0 / a) / (1.0 + standard * np.sqrt(2.0 / (a - 4.0))))
    return (1.0 - 2.0 / (9.0 * a) - root) / np.sqrt(2.0 / (9.0 * a))
