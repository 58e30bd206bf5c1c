"""Conditional means and draws of censored cells, and fractions below a limit, from a fit."""

from __future__ import annotations

import numpy as np

from powerkern._engine.threads import thread_count
from powerkern._input import lazy_scipy_special as special
from powerkern._input.arrays import Matrix
from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.censored.conditional import interval_means
from powerkern.kernels.transforms.family import FORWARD_STANDARDIZED


def standardized_intervals(
    table: ColumnTable, matrix: Matrix, n_threads: int | None
) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray]:
    """Standardise the data, including the ends of the intervals of censored cells.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    matrix : Matrix
        The data. `values` holds one end of the interval of each censored cell, and `ends` the other.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    z : (n, p) ndarray
        The standardised values.
    is_censored : (n, p) ndarray of bool
        Mask of the censored cells.
    low, high : (k,) ndarray
        Standardised ends of the intervals of the k censored cells, row by row; NaN in columns without a fit.
    """
    assert matrix.ends is not None
    threads = thread_count(n_threads, matrix.values.size)
    z = _standardize(table, matrix.values, threads)
    censored = ~np.isnan(matrix.ends)
    inner = np.isfinite(matrix.ends)
    others = z
    if inner.any():
        others = _standardize(table, np.where(inner, matrix.ends, matrix.values), threads)
    here, ends, there = z[censored], matrix.ends[censored], others[censored]
    there = np.where(np.isinf(ends), ends, there)
    here[is_failed(table.status)[np.nonzero(censored)[1]]] = np.nan
    return z, censored, np.minimum(here, there), np.maximum(here, there)


def _standardize(table: ColumnTable, values: np.ndarray, n_threads: int) -> FloatArray:
    z = np.empty(values.shape)
    table.transform(values, z, FORWARD_STANDARDIZED, n_threads)
    return z


def conditional_means(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the mean of a standard normal variable conditional on each interval [`low`, `high`]."""
    means = np.empty(low.size)
    interval_means(np.ascontiguousarray(low), np.ascontiguousarray(high), means)
    return np.asarray(np.clip(means, low, high))


def conditional_draws(low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a standard normal variable conditional on each interval [`low`, `high`]; NaN if an end is NaN.

    The draw inverts the log of a probability that is uniform between Phi(low) and Phi(high). Intervals above 0 are
    mirrored, so that both probabilities are small and lose no digits.
    """
    upper = low + high > 0.0
    a, b = np.where(upper, -high, low), np.where(upper, -low, high)
    u = rng.random(low.size)
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN in columns that were not fitted
        log_p = np.logaddexp(special.log_ndtr(a) + np.log1p(-u), special.log_ndtr(b) + np.log(u))
    drawn = np.clip(special.ndtri_exp(log_p), a, b)
    return np.asarray(np.where(upper, -drawn, drawn))


def fractions_below(table: ColumnTable, limits: FloatArray, n_threads: int) -> FloatArray:
    """Return the probability below each column's limit under the fitted normal distribution: (p,)."""
    with np.errstate(invalid="ignore"):
        z = _standardize(table, limits[np.newaxis], n_threads)[0]
    z = np.where(~table.mirrored & (limits <= -table.shift), -np.inf, z)
    return np.where(is_failed(table.status), np.nan, special.ndtr(z))
