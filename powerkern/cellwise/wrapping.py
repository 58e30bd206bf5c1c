"""Wrapping: columns pulled in towards their centers, so that classical methods become robust to outlying cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, ndtr, ndtri

from powerkern._engine import products
from powerkern._engine.apply import changed_matrix
from powerkern._engine.by_column import column_figures, for_each_group
from powerkern._engine.gather import Scratch, gathered
from powerkern._engine.threads import thread_count
from powerkern._input import frames
from powerkern._input.arrays import Matrix, as_choice, as_matrix, check_n_features, column_labels, domain_error, is_real
from powerkern._input.messages import warn
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.multivariate.wrapping import KEPT, mcd_columns, wrap_columns
from powerkern.kernels.robust.loc_scale import BAD_INFINITE
from powerkern.location import METHODS, location_scale

_N_RESULTS = 4
_MISSING = ("keep", "center")


# --- the constants of psi -------------------------------------------------------------------------------


@dataclass(frozen=True)
class WrapConstants:
    """The constants of the wrapping function; see `wrap_constants`.

    Attributes
    ----------
    b : float
        Up to here psi is the identity.
    c : float
        From here on psi is 0.
    q1, q2 : float
        In between it is ``q1 tanh(q2 (c - |z|)) sign(z)``.
    """

    b: float
    c: float
    q1: float
    q2: float

    @property
    def array(self) -> FloatArray:
        """All of them, as kernels take them."""
        return np.array([self.b, self.c, self.q1, self.q2])


def wrap_constants(b: float = 1.5, c: float = 4.0) -> WrapConstants:
    """The constants q1 and q2 of the wrapping function for given b and c.

    ``psi(z) = z`` for ``|z| < b``, ``q1 tanh(q2 (c - |z|)) sign(z)`` for ``b <= |z| <= c``, and 0 beyond [1]_.
    q1 makes it continuous at b, ``q1 tanh(q2 (c - b)) = b``, and q2 optimal: of all such functions it has the largest
    efficiency at the normal distribution for its bound on the change-of-variance curve [2]_, where
    ``q1 = sqrt(A (k - 1))`` and ``q2 = sqrt((k - 1) B**2/A)/2`` for some k, with ``A = E psi(Z)**2`` and
    ``B = E Z psi(Z)`` of a standard normal Z. That is, ``q1 B = 2 q2 A``.

    Parameters
    ----------
    b, c : float
        ``0 < b < c``.

    Returns
    -------
    WrapConstants

    Raises
    ------
    ValueError
        If not ``0 < b < c < 40``.

    References
    ----------
    .. [1] J. Raymaekers, P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
       184-198.
    .. [2] F. R. Hampel, P. J. Rousseeuw, E. Ronchetti, "The change-of-variance curve and optimal redescending
       M-estimators", J. Amer. Statist. Assoc. 76, 1981, 643-648.

    Examples
    --------
    >>> from powerkern.cellwise import wrap_constants
    >>> found = wrap_constants(1.5, 4.0)
    >>> print(f"{found.q1:.6f} {found.q2:.7f}")
    1.540793 0.8622731
    """
    for what, value in (("b", b), ("c", c)):
        if not is_real(value):
            raise TypeError(f"{what} must be a number, got {value!r}")
    if not 0.0 < b < c < 40.0:
        raise ValueError(f"b and c must be numbers with 0 < b < c < 40, got b={b} and c={c}")
    return _optimal(float(b), float(c))


@lru_cache(maxsize=64)
def _optimal(b: float, c: float) -> WrapConstants:
    """`wrap_constants` of numbers that are in order."""
    from scipy.optimize import brentq

    most = 30.0 / (c - b) + 2.0 * b + 2.0
    q2 = float(brentq(_imbalance, 1e-100, most, args=(b, c), xtol=1e-15, maxiter=1000))
    return WrapConstants(b, c, b / math.tanh(q2 * (c - b)), q2)


#: Nodes and weights on [-1, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def _imbalance(q2: float, b: float, c: float) -> float:
    """``q1 B - 2 q2 A``, with the q1 that makes psi continuous."""
    q1 = b / math.tanh(q2 * (c - b))
    half = 0.5 * (c - b)
    z = b + half * (_NODES + 1.0)
    falling, weight = q1 * np.tanh(q2 * (c - z)), half * _WEIGHTS * np.exp(-0.5 * z * z)
    center = math.sqrt(math.pi / 2.0) * gammainc(1.5, 0.5 * b * b)
    a, slope = center + np.sum(weight * falling**2), center + np.sum(weight * falling * z)
    return float(q1 * slope - 2.0 * q2 * a)


# --- location and scale ---------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _mcd_factors(n_max: int) -> FloatArray:
    """What makes the raw and the final scale of n = 0, ..., n_max normal values consistent: (2, n_max + 1).

    The final one is unbiased, too, by a curve through the means of 200,000 samples of each of 21 sizes.
    """
    n = np.maximum(np.arange(n_max + 1), 1)
    share = np.minimum((n // 2 + 1) / n, 1.0)
    final = _of_central(np.array([2.0 * ndtr(KEPT) - 1.0]))[0]
    small = 1.0 + (2.0 + 0.5 * np.log(n) + np.where(n % 2, 8.5 / n, 0.0)) / n
    factors = np.vstack([_of_central(share), final * small])
    factors.flags.writeable = False
    return factors


def _of_central(share: FloatArray) -> FloatArray:
    """Standard deviation of a normal variable over that of its central part of this probability."""
    q = ndtri(0.5 * (1.0 + share))
    with np.errstate(invalid="ignore"):
        density = np.where(np.isinf(q), 0.0, q * np.exp(-0.5 * q * q) / math.sqrt(2.0 * math.pi))
    return np.asarray(1.0 / np.sqrt(1.0 - 2.0 * density / share))


def mcd(values: NDArray[Any], n_threads: int = 1, progress: bool = False) -> FloatArray:
    """Reweighted univariate MCD of every column: location, scale, 0, status; (p, 4)."""
    n = values.shape[0]
    factors = np.array(_mcd_factors(n))

    def measure(block: FloatArray, group: slice) -> FloatArray:
        out = np.empty((block.shape[0], _N_RESULTS))
        block.sort(axis=1)
        mcd_columns(block, factors, np.empty((2, n)), out)
        return out

    return column_figures(measure, values, _N_RESULTS, n_threads, progress)


@dataclass(frozen=True)
class Standardization:
    """Robust location and scale of columns, with a status each."""

    loc: FloatArray
    scale: FloatArray
    status: NDArray[np.int64]


def standardization(matrix: Matrix, method: str, n_threads: int, progress: bool = False) -> Standardization:
    """Location and scale by the MCD or a method of `location_scale`; infinite values are refused."""
    as_choice("method", method, ("mcd", *METHODS))
    if method != "mcd":
        found = location_scale(_named(matrix), method, n_threads=n_threads, progress=progress)
        return Standardization(found.loc, found.scale, found.status)
    results = mcd(matrix.values, n_threads, progress)
    status = results[:, 3].astype(np.int64)
    refuse_infinite(matrix, status == BAD_INFINITE)
    return Standardization(results[:, 0].copy(), results[:, 1].copy(), status)


def _named(matrix: Matrix) -> Any:
    """What `location_scale` reads as this matrix."""
    return matrix.values[:, 0] if matrix.was_vector else matrix.values


def refuse_infinite(matrix: Matrix, has: BoolArray) -> None:
    """Raise for the first infinite value of the first of these columns."""
    if has.any():
        j = int(np.argmax(has))
        with np.errstate(over="ignore"):
            column = np.asarray(matrix.values[:, j], dtype=np.float64)
        i = int(np.argmax(np.isinf(column)))
        raise domain_error("infinite", None if matrix.was_vector else j, i, column[i], matrix.names)


def is_usable(scale: FloatArray) -> BoolArray:
    """Which scales can be divided by."""
    return (scale > 0.0) & (scale < np.inf)


def warn_of_scales(scale: FloatArray, names: list[str] | None, consequence: str) -> None:
    """Name the columns without a positive, finite scale, once."""
    bad = np.flatnonzero(~is_usable(scale))
    if bad.size:
        warn(f"{column_labels(bad, names)}: no positive, finite scale; {consequence}")


# --- wrapped columns ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Wrapped:
    """Wrapped columns, by `wrap`.

    Attributes
    ----------
    values : ndarray or data frame, of the shape of the data
        ``loc + scale psi((x - loc)/scale)``.
    loc, scale : (p,) ndarray
        Robust location and scale of each column.
    status : (p,) ndarray of int
        A `powerkern.location.LocationStatus` each.
    constants : WrapConstants
        Those of psi.
    missing : {"keep", "center"}
        What became of missing values.
    column_names : list of str or None
        Names of the columns.
    """

    values: Any
    loc: FloatArray
    scale: FloatArray
    status: NDArray[np.int64]
    constants: WrapConstants
    missing: str
    column_names: list[str] | None

    def transform(self, X: object, *, n_threads: int | None = None) -> Any:
        """Wrap other rows about the same locations, with the same scales.

        Parameters
        ----------
        X : (n, p) or (n,) array-like
            Data with the columns of the fit.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray or data frame
            Like `X`.

        Raises
        ------
        ValueError
            If the columns are not those of the fit.
        """
        matrix = as_matrix(frames.columns_named(X, self.column_names))
        check_n_features(matrix.values, self.loc.size, matrix.names, self.column_names)
        refuse_infinite(matrix, has_infinite(matrix.values))
        return _wrapped(X, matrix, self.loc, self.scale, self.constants, self.missing, thread_count(n_threads))

    def correlation(self, *, n_threads: int | None = None) -> FloatArray:
        """Product-moment correlation of the wrapped columns; see `wrapped_correlation`."""
        usable = is_usable(self.scale)

        def change(part: FloatArray, group: slice) -> None:
            part -= self.loc[group, None]
            part[~usable[group]] = 0.0
            np.nan_to_num(part, copy=False)

        threads = thread_count(n_threads)
        return _correlation(columns_of(as_matrix(self.values).values, change, threads), threads)

    def covariance(self, *, n_threads: int | None = None) -> FloatArray:
        """``scale_j scale_k`` times the correlation of the wrapped columns; see `wrapped_covariance`."""
        return np.asarray(self.correlation(n_threads=n_threads) * np.outer(self.scale, self.scale))


def wrap(
    X: object,
    b: float = 1.5,
    c: float = 4.0,
    *,
    method: str = "mcd",
    missing: str = "keep",
    n_threads: int | None = None,
    progress: bool = False,
) -> Wrapped:
    """Wrap every column: ``loc + scale psi((x - loc)/scale)``.

    ``psi(z) = z`` for ``|z| < b``, ``q1 tanh(q2 (c - |z|)) sign(z)`` for ``b <= |z| <= c``, and 0 beyond: of
    normal values 87 % stay as they are, and a far outlier becomes the center of its column. Whatever is then computed
    by classical means, correlations above all, bounds the influence of each cell.

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        Array or data frame; NaN is missing.
    b, c : float, default 1.5 and 4
        Where psi leaves the identity, and where it vanishes; see `wrap_constants`.
    method : str, default "mcd"
        Location and scale of the columns: the reweighted univariate minimum covariance determinant (see Notes), or a
        method of `powerkern.location.location_scale`.
    missing : {"keep", "center"}, default "keep"
        Missing values stay missing, or become the location of their column, as outliers do.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.
    progress : bool, default False
        Show a progress bar (needs tqdm).

    Returns
    -------
    Wrapped
        With ``values``, ``loc``, ``scale``, and methods ``transform``, ``correlation`` and ``covariance``.

    Raises
    ------
    TypeError
        X does not hold real numbers.
    ValueError
        Infinite values, a wrong shape, unsuitable b and c, or an unknown option.

    Warns
    -----
    UserWarning
        Listing the columns without a positive scale (no values, or more than half of them equal): they stay as they
        are.

    See Also
    --------
    wrapped_correlation, wrapped_covariance, wrapped_pca
    powerkern.cellwise.Wrapper : the same for pipelines of scikit-learn.

    Notes
    -----
    The minimum covariance determinant of one column [2]_: of all sets of ``h = n//2 + 1`` consecutive order statistics
    the one with the smallest variance; its mean, and its standard deviation times the factor that makes it consistent
    for normal data. Then mean and standard deviation of the values within 2.2414 (the root of the 0.975 quantile of
    chi-square with one degree of freedom) of these, made consistent again, and unbiased for small n (within 1.5 %
    from n = 4 on, by simulation). Nearly half of a column may be arbitrary.

    psi is evaluated to a relative accuracy of about 1e-15.

    References
    ----------
    .. [1] J. Raymaekers, P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
       184-198.
    .. [2] P. J. Rousseeuw, A. M. Leroy, "Robust regression and outlier detection", Wiley, 1987, pp. 171-172.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrap
    >>> x = np.array([-2.1, -1.3, -0.6, -0.1, 0.2, 0.5, 1.2, 1.9, 50.0])
    >>> wrapped = wrap(x)
    >>> wrapped.values.round(2)
    array([-2.1 , -1.3 , -0.6 , -0.1 ,  0.2 ,  0.5 ,  1.2 ,  1.9 , -0.04])
    """
    matrix = as_matrix(X)
    constants, threads = wrap_constants(b, c), thread_count(n_threads)
    as_choice("missing", missing, _MISSING)
    found = standardization(matrix, method, threads, progress)
    warn_of_scales(found.scale, matrix.names, "left as they are")
    values = _wrapped(X, matrix, found.loc, found.scale, constants, missing, threads)
    return Wrapped(values, found.loc, found.scale, found.status, constants, missing, matrix.names)


def _wrapped(
    X: object,
    matrix: Matrix,
    loc: FloatArray,
    scale: FloatArray,
    constants: WrapConstants,
    missing: str,
    n_threads: int,
) -> Any:
    """The wrapped values, like X."""
    loc, scale = np.require(loc, requirements="W"), np.require(scale, requirements="W")  # as kernels take them
    usable = is_usable(scale)

    def change(block: FloatArray, group: slice) -> None:
        if missing == "center":
            np.copyto(block, loc[group, None], where=np.isnan(block))
        kept = None if usable[group].all() else block[~usable[group]]
        wrap_columns(block, loc[group], scale[group], loc[group], scale[group], constants.array)
        if kept is not None:
            block[~usable[group]] = kept

    result = changed_matrix(change, matrix.values, n_threads)
    return frames.restored(X, frames.columns_named(X, matrix.names), result[:, 0] if matrix.was_vector else result)


def has_infinite(values: NDArray[Any]) -> BoolArray:
    """Which columns have infinite values."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape[1], dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = ~np.isfinite(np.sum(values))
    return np.isinf(values).any(axis=0) if suspect else np.zeros(values.shape[1], dtype=bool)


# --- correlations ---------------------------------------------------------------------------------------


def wrapped_correlation(
    X: object, b: float = 1.5, c: float = 4.0, *, method: str = "mcd", n_threads: int | None = None
) -> FloatArray:
    """Robust correlation of all columns: the product-moment correlation of the wrapped columns.

    One product of matrices, whatever the number of columns, and positive semidefinite.

    Parameters
    ----------
    X : (n, p) array-like
        Array or data frame. Missing values (NaN) count as the location of their column, as far outliers do.
    b, c, method
        As in `wrap`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results are the same bits for any number of threads, memory
        order, and order of the columns.

    Returns
    -------
    (p, p) ndarray
        NaN for columns without a positive scale.

    Raises
    ------
    TypeError, ValueError
        As `wrap`.

    Warns
    -----
    UserWarning
        Listing the columns without a positive scale.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrapped_correlation
    >>> x = np.random.default_rng(0).normal(size=500)
    >>> X = np.column_stack([x, x + 0.5 * np.random.default_rng(1).normal(size=500)])
    >>> X[:5, 1] = 1000.0
    >>> print(f"{np.corrcoef(X, rowvar=False)[0, 1]:.3f} {wrapped_correlation(X)[0, 1]:.3f}")
    0.017 0.892
    """
    matrix = as_matrix(X)
    threads = thread_count(n_threads)
    constants = wrap_constants(b, c)
    found = standardization(matrix, method, threads)
    warn_of_scales(found.scale, matrix.names, "their correlations are NaN")
    return _correlation(wrapped_scores(matrix.values, found, constants, threads), threads)


def wrapped_covariance(
    X: object, b: float = 1.5, c: float = 4.0, *, method: str = "mcd", n_threads: int | None = None
) -> FloatArray:
    """Robust covariance of all columns: their `wrapped_correlation` times the products of their robust scales.

    Parameters
    ----------
    X, b, c, method, n_threads
        As in `wrapped_correlation`.

    Returns
    -------
    (p, p) ndarray
        With the squares of the robust scales on its diagonal; NaN for columns without a positive scale.

    Raises
    ------
    TypeError, ValueError
        As `wrap`.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrapped_covariance
    >>> X = np.random.default_rng(0).normal(size=(1000, 2)) * [1.0, 10.0]
    >>> np.sqrt(np.diag(wrapped_covariance(X))).round(1)
    array([1. , 9.7])
    """
    matrix = as_matrix(X)
    threads = thread_count(n_threads)
    constants = wrap_constants(b, c)
    found = standardization(matrix, method, threads)
    warn_of_scales(found.scale, matrix.names, "their covariances are NaN")
    block = wrapped_scores(matrix.values, found, constants, threads)
    return np.asarray(_correlation(block, threads) * np.outer(found.scale, found.scale))


def wrapped_scores(
    values: NDArray[Any], found: Standardization, constants: WrapConstants, n_threads: int
) -> FloatArray:
    """psi of the standardized columns, as rows: (p, n); 0 for what is missing, and where there is no scale."""
    usable = is_usable(found.scale)

    def change(part: FloatArray, group: slice) -> None:
        center, unit = np.zeros(part.shape[0]), np.ones(part.shape[0])
        wrap_columns(part, found.loc[group], found.scale[group], center, unit, constants.array)
        part[~usable[group]] = 0.0
        np.nan_to_num(part, copy=False)

    return columns_of(values, change, n_threads)


def columns_of(values: NDArray[Any], change: Callable[[FloatArray, slice], None], n_threads: int) -> FloatArray:
    """The columns of a matrix as rows of an array, each group changed by ``change(rows, group)``."""
    out = np.empty((values.shape[1], values.shape[0]))
    scratch = Scratch()

    def job(group: slice) -> None:
        part = gathered(values[:, group], scratch)
        change(part, group)
        out[group] = part

    for_each_group(job, values.shape, n_threads)
    return out


def unit_rows(block: FloatArray, n_threads: int) -> None:
    """Center the rows, and divide them by their lengths; a constant row becomes NaN."""

    def job(group: slice) -> None:
        part = block[group]
        part -= part.mean(axis=1, keepdims=True)
        lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
        with np.errstate(invalid="ignore", divide="ignore"):
            part /= np.where(lengths > 0.0, lengths, np.nan)[:, None]

    for_each_group(job, (block.shape[1], block.shape[0]), n_threads)


def _correlation(block: FloatArray, n_threads: int) -> FloatArray:
    """Correlation of the rows, which are changed."""
    unit_rows(block, n_threads)
    correlation = np.clip(products.gram(block, n_threads), -1.0, 1.0)
    known = ~np.isnan(np.diag(correlation))
    np.fill_diagonal(correlation, np.where(known, 1.0, np.nan))
    return correlation
