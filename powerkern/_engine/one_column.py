"""Call kernels for a single vector, either to avoid overhead or to trace the fit of one column in a debugger.

With ``NUMBA_DISABLE_JIT=1`` in the environment a debugger can step from here into the kernels.
"""

from __future__ import annotations

import numpy as np

from powerkern._engine.gather import NO_WEIGHTS
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood import mle
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import N_RESULTS, ColumnFit
from powerkern.kernels.robust.fit import EstimatorEntries
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.scratch import new_robust_work


def fit_vector_robustly(x: FloatArray, family: int, entries: EstimatorEntries, options: Options) -> ColumnFit:
    """Fit one vector by a robust estimator; the caller must have checked domain and shape.

    Parameters
    ----------
    x : (n,) ndarray
        The values, contiguous float64.
    family : int
        A code of `kernels.transforms.family`.
    entries : EstimatorEntries
        The compiled entries of the estimator.
    options : Options
        The options of the estimator, from `RobustEstimator.kernel_options`.
    """
    out = np.empty((1, N_RESULTS))
    work = new_robust_work(x.size)
    entries.fit(np.sort(x).reshape(1, -1), None, family, options, work, out)
    return ColumnFit(*out[0].tolist())


def nll_vector(x: FloatArray, family: int, lmbdas: FloatArray) -> FloatArray:
    """Return the negative log-likelihood per observation of one contiguous float64 vector, at each lambda."""
    out = np.empty(lmbdas.size)
    mle.profile_columns(x.reshape(1, -1), NO_WEIGHTS, family, lmbdas, new_work(x.size), out.reshape(1, -1))
    return out


def interval_vector(x: FloatArray, family: int, lmbda: float, drop: float) -> tuple[float, float]:
    """Return the two lambdas at which the negative log-likelihood g of a vector exceeds its minimum by `drop`.

    Parameters
    ----------
    x : (n,) ndarray
        The values, contiguous float64.
    family : int
        A code of `kernels.transforms.family`.
    lmbda : float
        The lambda that minimises g, per observation.
    drop : float
        The excess of g over its minimum at the ends of the interval.
    """
    out = np.empty((1, 2))
    mle.interval_columns(x.reshape(1, -1), NO_WEIGHTS, family, np.array([[lmbda, drop]]), new_work(x.size), out)
    return float(out[0, 0]), float(out[0, 1])
