"""Standard errors of lambda by a bootstrap, for estimators other than maximum likelihood.

The values that an estimator keeps depend on the data, so the curvature of its likelihood is not enough. Rows are drawn
with replacement, and every replicate is fitted as a column, by all threads. Replicates of long columns have fewer rows,
m of n, and the spread of lambda is multiplied by sqrt(m/n) [1]_, which bounds the cost of a column and its memory.

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

#: Most rows of a replicate, and the values of all replicates that are in memory at once.
_MOST_ROWS, _ROOM = 500, 4_000_000
#: Seed of the rows that are drawn, equal for all columns, whatever their number and order.
_SEED = 20240613
#: Phi(-1), Phi(1): where a normal distribution is one standard deviation from its center.
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

    Rows are drawn in proportion to `weight`. The error is half the distance between the quantiles Phi(-1) and Phi(1) of
    the replicates' lambdas, which a few extreme lambdas hardly change, times sqrt(m/n) for replicates of m out of n
    rows. It is NaN if fewer than half of the replicates can be fitted.

    Parameters
    ----------
    estimator : Estimator
        The estimator, which fits each replicate.
    values : (n, p) ndarray
        The data.
    shift : (p,) ndarray
        Added to each column.
    weight : (n,) ndarray
        One weight a row; None: all one.
    family : int
        A code of `kernels.transforms.family`.
    replicates : int
        Number of replicates.
    n_threads : int
        Largest number of threads at work.
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
    """Write replicates of the observed values, a row each, into `out`; returns sqrt(m/n)."""
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
    """Estimate the standard deviation of each row from two quantiles; NaN if more than half of the row is missing."""
    fitted = np.count_nonzero(~np.isnan(lmbda), axis=1)
    errors = np.full(len(lmbda), np.nan)
    for j in np.flatnonzero(2 * fitted >= lmbda.shape[1]):
        low, high = np.nanquantile(lmbda[j], _ONE_SIGMA)
        errors[j] = 0.5 * (high - low)
    return errors
