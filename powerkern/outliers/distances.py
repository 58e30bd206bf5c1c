"""Compute distances that reveal outliers: z-scores, Mahalanobis and Kolmogorov-Smirnov distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import map_blocks
from powerkern._engine.by_column import measure_columns
from powerkern._engine.threads import thread_count
from powerkern._input import frames
from powerkern._input.alignment import align_columns
from powerkern._input.arguments import as_whole, refuse_infinite
from powerkern._input.arrays import as_matrix, as_reals, column_label, warn_of_columns
from powerkern._typing import FloatArray
from powerkern.kernels.normality.ks_distance import ks_distance_columns
from powerkern.location import location_scale

#: The covariance of p columns is singular if the squared multiple correlation of a column with the others exceeds 1
#: minus p times this.
_SINGULAR = 1e-14
#: Largest number of values in a block of rows of `mahalanobis`, and largest number of multiplications in the product of
#: a block and a matrix. A block or a product of this size takes about 0.1 s on one core.
_BLOCK_VALUES, _BLOCK_PRODUCTS = 1 << 22, 1 << 31


# --- z-scores -------------------------------------------------------------------------------------------


def zscore(X: object, method: str = "mean-sd", *, ddof: int = 0, n_threads: int | None = None, **constants: Any) -> Any:
    """Return the distance of each value from the location of its column, in units of the scale: ``(x - loc)/scale``.

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        The data. NaN is missing and stays NaN.
    method : str, default "mean-sd"
        Method for location and scale, any of `powerkern.location.location_scale`. "median-mad" gives robust z-scores.
    ddof : int, default 0
        Standard deviations have the divisor ``n - ddof``, as in `scipy.stats.zscore`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.
    **constants
        Constants of the method.

    Returns
    -------
    ndarray or data frame
        A data frame if `X` is a data frame; float32 if `X` is float32, otherwise float64. Columns whose scale is 0
        become NaN.

    Raises
    ------
    TypeError, ValueError
        As in `powerkern.location.location_scale`.

    Warns
    -----
    UserWarning
        A warning lists the columns whose scale is 0, and the columns with too few values to estimate a scale.

    Examples
    --------
    >>> from powerkern.outliers import zscore
    >>> x = [1.0, 2.0, 3.0, 4.0, 50.0]
    >>> zscore(x)
    array([-0.57814716, -0.52558833, -0.4730295 , -0.42047066,  1.99723566])
    >>> zscore(x, "median-mad")
    array([-1.3489795 , -0.67448975, 0. , 0.67448975, 31.70101826])
    """
    matrix = as_matrix(X)
    threads = thread_count(n_threads)
    ddof = as_whole("ddof", ddof, 0)
    loc, scale = location_scale(X, method, n_threads=threads, **constants)
    if method.endswith("-sd"):
        scale = scale * bessel_factor(matrix.values, ddof, threads)
    troubles = ((scale == 0.0, "the scale is 0"), (np.isnan(scale) & ~np.isnan(loc), "too few values for a scale"))
    warn_of_columns(troubles, matrix.names, ": z-scores are NaN")
    scale = np.where(scale == 0.0, np.nan, scale)

    def change(block: FloatArray, group: slice) -> None:
        block -= loc[group, None]
        block /= scale[group, None]

    result = map_blocks(change, matrix.values, threads)
    return frames.replace_columns(X, X, result[:, 0] if matrix.was_vector else result)


def bessel_factor(values: NDArray[Any], ddof: int, n_threads: int) -> FloatArray:
    """Return ``sqrt(n/(n - ddof))`` for each column, n being its number of values; NaN unless n exceeds `ddof`.

    This is the ratio of the standard deviations with divisors n - ddof and n.
    """

    def count(block: FloatArray, group: slice) -> FloatArray:
        return np.asarray(np.count_nonzero(~np.isnan(block), axis=1)[:, None], dtype=np.float64)

    n_rows, p = values.shape
    n = measure_columns(count, values, 1, n_threads)[:, 0] if _has_missing(values) else np.full(p, float(n_rows))
    return np.asarray(np.sqrt(n / np.where(n > ddof, n - ddof, np.nan)))


# --- Mahalanobis distances ------------------------------------------------------------------------------


def mahalanobis(X: object, loc: ArrayLike | None = None, cov: ArrayLike | None = None) -> Any:
    """Return the Mahalanobis distance of each row from a location, ``sqrt((x - loc)^T cov^-1 (x - loc))``.

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        The points. A row with a missing value (NaN) has the distance NaN.
    loc : (p,) array-like, optional
        Location; by default the mean of the complete rows.
    cov : (p, p) array-like, optional
        Covariance matrix; by default the covariance of the complete rows, with divisor n - 1. A robust location and
        covariance, such as ``location_`` and ``covariance_`` of `sklearn.covariance.MinCovDet`, keep outliers from
        masking each other.

    Returns
    -------
    (n,) ndarray, or a series with the index of a data frame
        Distances, not squared. By default their squares sum to (n - 1) p. For normal data and the true location and
        covariance, the squares are chi-square with p degrees of freedom.

    Raises
    ------
    ValueError
        If the covariance is singular (a column is constant or depends linearly on other columns, or there are no more
        complete rows than columns), if a value is infinite, or if shapes do not match.

    Notes
    -----
    Distances are computed from a Cholesky factor of the correlation matrix, so the scales of the columns do not matter.

    Examples
    --------
    >>> from powerkern.outliers import mahalanobis
    >>> mahalanobis([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [1.0, 1.0]])
    array([1.41421356, 1.41421356, 1.41421356, 1.41421356, 0. ])
    """
    matrix = as_matrix(X)
    refuse_infinite(matrix)
    p = matrix.values.shape[1]
    unit = _column_units(matrix.values) if cov is None else np.ones(p)  # so that no square overflows or underflows
    if loc is None or cov is None:
        mean, sample_cov = _moments(matrix.values, unit)
    with np.errstate(over="ignore"):  # in units of a column of tiny values, loc may be infinite
        center = mean if loc is None else _check_shape("loc", loc, (p,), matrix.names) / unit
    covariance = sample_cov if cov is None else _check_shape("cov", cov, (p, p), matrix.names)
    if not np.allclose(covariance, covariance.T, atol=0.0):
        raise ValueError("cov is not symmetric; pass a covariance matrix")
    whiten = _make_whitener(covariance, matrix.names)
    squares = np.empty(len(matrix.values))
    for rows, block in _row_blocks(matrix.values):
        z = whiten(block / unit - center)
        np.einsum("ij,ij->j", z, z, out=squares[rows])
    return frames.labelled(X, np.sqrt(squares))


def _row_blocks(values: NDArray[Any]) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of rows and copies of these rows, in float64 and row-major order.

    Sums over blocks are therefore added in the same order for any memory layout. The product of a block with a (p, p)
    matrix takes at most about 0.1 s, so that a keyboard interrupt takes effect soon.
    """
    n, p = values.shape
    length = max(1, min(_BLOCK_VALUES // p, _BLOCK_PRODUCTS // p**2))
    for start in range(0, n, length):
        rows = slice(start, min(start + length, n))
        yield rows, np.ascontiguousarray(values[rows], dtype=np.float64)


def _has_missing(values: NDArray[Any]) -> bool:
    """Return True if a value is NaN, or if there are infinite values of both signs; otherwise return False.

    Testing the sum for NaN is faster than testing each value.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(np.sum(values, dtype=np.float64)))


def _column_units(values: NDArray[Any]) -> FloatArray:
    """Return a power of 2 near the largest absolute value of each column."""
    largest = np.zeros(values.shape[1])
    for _, block in _row_blocks(values):
        np.fmax(largest, np.fmax.reduce(np.abs(block), axis=0), out=largest)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(largest > 0.0, largest, 1.0))[1] - 1))


def _moments(values: NDArray[Any], unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the covariance (with divisor n - 1) of the complete rows of ``values/unit``."""
    p = values.shape[1]
    n, total = 0, np.zeros(p)
    for complete in _complete_rows(values, unit):
        n += len(complete)
        total += complete.sum(axis=0)
    if n <= p:
        raise ValueError(
            f"X has {n} rows without missing values for {p} columns: their covariance is singular; "
            "pass more rows than columns, or cov"
        )
    mean, products = total / n, np.zeros((p, p))
    for complete in _complete_rows(values, unit):
        deviations = complete - mean
        products += deviations.T @ deviations
    return mean, products / (n - 1)


def _complete_rows(values: NDArray[Any], unit: FloatArray) -> Iterator[FloatArray]:
    """Yield blocks of the rows of ``values/unit`` without missing values; `unit` has shape (p,)."""
    for _, block in _row_blocks(values):
        yield (block[~np.isnan(block).any(axis=1)] if _has_missing(block) else block) / unit


def _check_shape(what: str, given: ArrayLike, shape: tuple[int, ...], names: Sequence[Any] | None) -> FloatArray:
    """Return an argument as an array; raise ValueError unless it has the required shape and is finite.

    Parameters
    ----------
    what : str
        Name of the argument, for messages.
    given : array-like
        The argument, with a number for each column along each axis. Labels are aligned with `names`.
    shape : tuple of int
        Required shape.
    names : sequence or None
        Labels of the columns.
    """
    array = as_reals(what, align_columns(given, names, what))
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers of shape {shape}, got an array of shape {array.shape}")
    return array


def _make_whitener(cov: FloatArray, names: Sequence[str] | None) -> Callable[[FloatArray], FloatArray]:
    """Return a function that whitens deviations from the mean by a Cholesky factor of `cov`, (p, p).

    The function takes (n, p) deviations and returns the whitened ones as columns, (p, n). `names` are the names of the
    columns, for messages.
    """
    from scipy.linalg import blas, lapack  # costs a third of the time to import powerkern

    scale = np.sqrt(np.maximum(np.diag(cov), 0.0))
    if not (scale > 0.0).all():
        raise _singular_error(int(np.argmin(scale)), names, "has no variance")
    factor, stopped = lapack.dpotrf(cov / np.outer(scale, scale), lower=True)
    pivots = np.diag(factor) ** 2
    small = pivots < _SINGULAR * scale.size
    if stopped or small.any():
        j = stopped - 1 if stopped else int(np.argmax(small))
        raise _singular_error(j, names, "depends linearly on the columns before it")

    def whiten(deviations: FloatArray) -> FloatArray:
        return cast(FloatArray, blas.dtrsm(1.0, factor, (deviations / scale).T, lower=1, overwrite_b=1))

    return whiten


def _singular_error(j: int, names: Sequence[str] | None, why: str) -> ValueError:
    """Build the error for a singular covariance; `why` says what is wrong with column `j`."""
    return ValueError(f"the covariance is singular: {column_label(j, names)} {why}; leave it out, or pass cov")


# --- distance from normality ----------------------------------------------------------------------------


def ks_distance(
    X: ArrayLike, loc: ArrayLike | None = None, scale: ArrayLike | None = None, *, n_threads: int | None = None
) -> float | FloatArray:
    """Return the Kolmogorov-Smirnov distance of each column from a normal distribution, by default the fitted one.

    The distance is ``max_i max(i/n - F(x_i), F(x_i) - (i - 1)/n)`` for the ascending ``x_i``, with ``F(x) = Phi((x -
    loc)/scale)``.

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        The columns. NaN is missing.
    loc, scale : float or (p,) array-like, optional
        Mean and standard deviation of the distribution; by default the mean and standard deviation of the column, with
        divisor n - 1.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    float or (p,) ndarray
        Distance between 1/(2n) and 1; a float if `X` is one column. NaN for a column that is constant or has fewer than
        two values, unless its distribution is given.

    Raises
    ------
    ValueError
        If a value is infinite, a scale is not positive, or shapes do not match.

    See Also
    --------
    scipy.stats.kstest : the distance from any other distribution, such as the ``cdf`` of a `ScoreScaling`.

    Notes
    -----
    If the distribution is fitted to the column, the distance is smaller than for a given distribution. P-values must
    then be taken from Lilliefors' test rather than from the Kolmogorov-Smirnov test.

    Examples
    --------
    >>> from powerkern.outliers import ks_distance
    >>> ks_distance([-1.0, 0.0, 1.0])
    0.1746780794
    """
    matrix = as_matrix(X)
    p = matrix.values.shape[1]
    given = np.full((2, p), np.nan)
    for row, (what, value) in zip(given, (("loc", loc), ("scale", scale)), strict=True):
        if value is not None:
            row[:] = _check_shape(what, np.full(p, value) if np.ndim(value) == 0 else value, (p,), matrix.names)
    if (given[1] <= 0.0).any():
        raise ValueError(f"scale must be positive, got {np.nanmin(given[1]):g}")

    def measure(block: FloatArray, group: slice) -> FloatArray:
        block.sort(axis=1)  # NaN last
        out = np.empty((block.shape[0], 1))
        ks_distance_columns(block, given[0, group], given[1, group], out[:, 0])
        return out

    figures = measure_columns(measure, matrix.values, 1, thread_count(n_threads))[:, 0]
    if np.isinf(figures).any():
        refuse_infinite(matrix)
    return float(figures[0]) if matrix.was_vector else figures
