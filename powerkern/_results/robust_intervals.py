"""Standard errors of lambda by a bootstrap, for estimators other than maximum likelihood.

The values that an estimator keeps depend on the data, so the curvature of the likelihood does not give the standard
error. Rows are drawn with replacement, and all replicates are fitted as columns of one matrix, by all threads.
Replicates of long columns have m < n rows, and the standard deviation of lambda is multiplied by sqrt(m/n) [1]_. This
bounds the time and memory per column.

References
----------
.. [1] P. J. Bickel, F. Götze and W. R. van Zwet, "Resampling fewer than n observations: gains, losses, and remedies
   for losses", Statistica Sinica 7, 1997, 1-31.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.base import Estimator, Run
from powerkern._estimators.robust import weight_of_one
from powerkern._status import is_failed
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import LMBDA, STATUS

#: Default number of bootstrap replicates of each column.
REPLICATES = 200

#: Largest number of rows of a replicate, and largest number of values of all replicates in memory at once.
_MOST_ROWS, _ROOM = 500, 4_000_000
#: Seed of the draws. All columns use the same draws, so that results do not depend on number and order of columns.
_SEED = 20240613
#: Phi(-1) and Phi(1), the probabilities of the points one standard deviation from the center of a normal distribution.
_ONE_SIGMA = (0.15865525393145705, 0.8413447460685429)


def bootstrap_errors(
    estimator: Estimator,
    values: NDArray[Any],
    shift: FloatArray,
    weight: Weights,
    family: int,
    replicates: int,
    n_threads: int,
) -> FloatArray:
    """Return the bootstrap standard error of lambda for each column of ``values + shift``.

    Rows are drawn in proportion to `weight`. The standard error is half the distance between the quantiles Phi(-1) and
    Phi(1) of the replicates' lambdas, times the factor sqrt(m/n) of `_draw`. A few extreme lambdas hardly
    change these quantiles. The standard error is NaN if fewer than half of the replicates can be fitted.

    Parameters
    ----------
    estimator : Estimator
        The estimator, which fits each replicate.
    values : (n, p) ndarray
        The data.
    shift : (p,) ndarray
        Constant to add to each column.
    weight : (n,) ndarray
        Weights of the rows; None: all one.
    family : int
        A code of `kernels.transforms.family`.
    replicates : int
        Number of replicates.
    n_threads : int
        Maximum number of threads.
    """
    n, p = values.shape
    width = min(n, _MOST_ROWS) if weight is None else _MOST_ROWS
    uniform = np.random.default_rng(_SEED).random((replicates, _MOST_ROWS))[:, :width]
    errors = np.empty(p)
    step = max(_ROOM // uniform.size, 1)
    for start in range(0, p, step):
        part = range(start, min(start + step, p))
        drawn = np.full((len(part), *uniform.shape), np.nan)
        factor = np.array(
            [_draw(values[:, j].astype(np.float64) + shift[j], weight, uniform, drawn[j - start]) for j in part]
        )
        fits = estimator.fit_values(drawn.reshape(-1, uniform.shape[1]).T, family, None, Run(n_threads))
        lmbda = np.where(is_failed(fits[:, STATUS]), np.nan, fits[:, LMBDA]).reshape(len(part), replicates)
        errors[part.start : part.stop] = factor * _scale_from_quantiles(lmbda)
    return errors


def _draw(x: FloatArray, weight: Weights, uniform: FloatArray, out: FloatArray) -> float:
    """Draw bootstrap replicates of a column, and return the factor sqrt(m/n) for their standard error.

    Observed values are drawn with replacement, in proportion to their weights. n is their number; with weights, it is
    the number of observations that the weights stand for (see `weight_of_one`). A replicate has m values: the whole
    part of n, but at most `width`. The factor is NaN for a column without values.

    Parameters
    ----------
    x : (n_rows,) ndarray
        The column; NaN is missing.
    weight : (n_rows,) ndarray or None
        Weights of the rows; None: all one.
    uniform : (replicates, width) ndarray
        Uniform random numbers in [0, 1).
    out : (replicates, width) ndarray
        Receives one replicate per row, in the first m columns; the others are left unchanged.
    """
    seen = ~np.isnan(x)
    x = x[seen]
    below = np.arange(1.0, x.size + 1.0) if weight is None else np.cumsum(weight[seen])
    if not x.size:
        return math.nan
    n = float(x.size) if weight is None else below[-1] / weight_of_one(weight[seen])
    m = min(int(n), uniform.shape[1])
    rows = np.searchsorted(below, uniform[:, :m] * below[-1], side="right")
    out[:, :m] = x[np.minimum(rows, x.size - 1)]
    return math.sqrt(m / n)


def _scale_from_quantiles(lmbda: FloatArray) -> FloatArray:
    """Return half the distance between the quantiles Phi(-1) and Phi(1) of each row, a robust standard deviation.

    The result is NaN if more than half of the row is missing.
    """
    fitted = np.count_nonzero(~np.isnan(lmbda), axis=1)
    errors = np.full(len(lmbda), np.nan)
    for j in np.flatnonzero(2 * fitted >= lmbda.shape[1]):
        low, high = np.nanquantile(lmbda[j], _ONE_SIGMA)
        errors[j] = 0.5 * (high - low)
    return errors
