"""Choice of the algorithm for the likelihood, its maximum and its intervals, by the length of the columns.

=====================  ===============================================================================================
rows                   algorithm
=====================  ===============================================================================================
up to 512              lockstep: Halley's iteration, one column per vector lane (`kernels.likelihood.lockstep`)
513 to 999,999         one pass: Halley's iteration on sums over the logs (`kernels.likelihood.one_pass`)
from 1,000,000 on      power sums over blocks of rows (`powerkern._estimators.power_sums`)
any                    two passes (`kernels.likelihood.two_pass`): columns that lockstep and one pass defer because they
                       are tightly clustered, of enormous range, or short without their missing values
=====================  ===============================================================================================

Measured on one thread, with standard normal columns: at 50, 200 and 512 rows, lockstep takes 0.11, 0.19 and 0.84 times
as long as fitting column by column. At 300,000, 1,000,000 and 3,000,000 rows, power sums take 1.7, 0.96 and 0.79 times
as long as one pass, and let all threads work on one column. At 8,000 and 32,768 rows, profiles at four lambdas from
power sums take 2.2 and 0.55 times as long as directly; intervals take 1.7 and 0.37 times as long.

Short groups of rows are padded up to `LOCKSTEP_MAX` (`powerkern._engine.ragged`).
"""

from __future__ import annotations

import numpy as np

from powerkern._engine import by_column
from powerkern._engine.gather import Columns, FitScratch
from powerkern._estimators.power_sums import find_long_intervals, fit_long_columns, profile_long_columns
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import N_RESULTS, ColumnFit

#: Largest number of rows for which columns are fitted in lockstep: eight columns are 32 KB, which the first-level cache
#: holds.
LOCKSTEP_MAX = 512
#: Smallest number of rows for which a column is fitted from power sums.
SKETCHED_FROM = 1_000_000
#: Smallest number of rows for which intervals, and profiles at _MANY lambdas or more, come from power sums.
_LONG = 32_768
_MANY = 4


def maximize_likelihood(
    values: Columns, family: int, lmbda: FloatArray, weight: Weights, n_threads: int, progress: bool = False
) -> FloatArray:
    """Fit every column by maximum likelihood, or compute the results at given lambdas: (p, N_RESULTS).

    Arguments and result are as for `fit_matrix` in `_engine.by_column`.
    """
    n = len(values)
    if n >= SKETCHED_FROM:
        return fit_long_columns(values, family, lmbda, weight, n_threads, progress)
    return by_column.fit_matrix(values, family, lmbda, weight, n_threads, progress, lockstep=n <= LOCKSTEP_MAX)


def fit_in_memory(
    values: Columns, family: int, lmbda: FloatArray, weight: Weights, n_threads: int, progress: bool = False
) -> FloatArray:
    """Fit every column without power sums, however long it is; arguments as in `maximize_likelihood`."""
    lockstep = len(values) <= LOCKSTEP_MAX
    return by_column.fit_matrix(values, family, lmbda, weight, n_threads, progress, lockstep=lockstep)


def fit_vector(x: FloatArray, family: int, lmbda: float = np.nan, weight: Weights = None) -> ColumnFit:
    """Fit one vector as `fit_in_memory` does, with little overhead. The caller must check domain and shape.

    Parameters
    ----------
    x : (n,) ndarray
        The values: contiguous float64.
    family : int
        Code of the transform, see `kernels.transforms.family`.
    lmbda : float
        A given lambda; NaN if it is to be fitted.
    weight : (n,) ndarray
        Weight of each row; None: all 1.
    """
    out, given, scratch = np.empty((1, N_RESULTS)), np.array([lmbda]), FitScratch(x.size)
    by_column.fit_part(x.reshape(-1, 1), family, given, weight, scratch, out, x.size <= LOCKSTEP_MAX)
    return ColumnFit(*out[0].tolist())


def profile_likelihood(values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int) -> FloatArray:
    """Return the negative profile log-likelihood g, per unit of weight, for every column and lambda: (p, len(lmbdas)).

    Parameters
    ----------
    values, family, weight, n_threads
        As in `maximize_likelihood`.
    lmbdas : (m,) ndarray
        Lambdas at which to evaluate g.
    """
    is_short = len(values) < _LONG or lmbdas.size < _MANY
    profile = by_column.profile_matrix if is_short else profile_long_columns
    return profile(values, family, lmbdas, weight, n_threads)


def find_intervals(
    values: Columns, family: int, lmbda: FloatArray, drop: FloatArray, weight: Weights, n_threads: int
) -> FloatArray:
    """Return the two lambdas of each column at which the negative profile log-likelihood exceeds its minimum by `drop`.

    Parameters
    ----------
    values, family, weight, n_threads
        As in `maximize_likelihood`.
    lmbda : (p,) ndarray
        The lambda that minimises the negative profile log-likelihood per unit of weight.
    drop : (p,) ndarray
        The increase from the minimum to the two lambdas.

    Returns
    -------
    (p, 2) ndarray
        The lambdas.
    """
    find = by_column.interval_matrix if len(values) < _LONG else find_long_intervals
    return find(values, family, lmbda, drop, weight, n_threads)
