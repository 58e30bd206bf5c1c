"""Compute robust principal components of wrapped data, with the distances and cut-offs of the outlier map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtri

from powerkern._engine import products
from powerkern._engine.threads import thread_count
from powerkern._input import frames
from powerkern._input.arguments import as_number, as_whole, refuse_infinite
from powerkern._input.arrays import Matrix, as_flag, as_matrix, as_reals
from powerkern._input.reading import read_fitted
from powerkern._typing import BoolArray, FloatArray
from powerkern.cellwise.constants import wrap_constants
from powerkern.cellwise.standardization import estimate_standardization, is_usable, mcd, warn_of_scales
from powerkern.cellwise.wrapping import normalize_rows, wrap_scores

#: By default, the components explain at least the fraction _SHARE of the variance, but there are at most _MOST of them.
_SHARE = 0.8
_MOST = 10
#: Eigenvalues below this multiple of the largest count as zero.
_ZERO = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class WrappedPCA:
    """Robust principal components, returned by `wrapped_pca`.

    Attributes
    ----------
    components : (k, p) ndarray
        The loadings: orthonormal rows, whose entry of largest absolute value is positive. Loadings of columns that were
        left out are 0.
    eigenvalues : (k,) ndarray
        Robust variances of the scores.
    explained_variance_ratio : (k,) ndarray
        `eigenvalues` divided by the sum of all eigenvalues.
    center, divisor : (p,) ndarray
        A row x is projected as ``(x - center)/divisor``; `divisor` is 1 if ``standardize=False``.
    loc, scale : (p,) ndarray
        Robust location and scale of the columns.
    scores : (n, k) ndarray or data frame
        Scores of the original, unwrapped data, so that outliers stand out. If the data are a data frame, the scores and
        distances have its index, and the components are called "PC1", "PC2", ...
    score_distances, orthogonal_distances : (n,) ndarray or series
        Distance from the center within the space of the components, in standard deviations of the scores, and distance
        from that space.
    score_cutoff, orthogonal_cutoff : float
        Cut-offs beyond which a row is an outlier.
    quantile : float
        Fraction of regular rows below each cut-off.
    column_names : list of str or None
        Names of the columns.
    """

    components: FloatArray
    eigenvalues: FloatArray
    explained_variance_ratio: FloatArray
    center: FloatArray
    divisor: FloatArray
    loc: FloatArray
    scale: FloatArray
    scores: Any
    score_distances: Any
    orthogonal_distances: Any
    score_cutoff: float
    orthogonal_cutoff: float
    quantile: float
    column_names: list[str] | None

    def __repr__(self) -> str:
        k, p = self.components.shape
        explained = float(np.sum(self.explained_variance_ratio))
        outlying = int(np.count_nonzero(np.asarray(self.outliers)))
        return f"WrappedPCA({k} components of {p} columns, {explained:.1%} of the variance; {outlying} outlying rows)"

    @property
    def outliers(self) -> Any:
        """Mask of the fitted rows that lie beyond either cut-off."""
        inside, outside = np.asarray(self.score_distances), np.asarray(self.orthogonal_distances)
        is_outlier = (inside > self.score_cutoff) | (outside > self.orthogonal_cutoff)
        return frames.labelled(self.score_distances, is_outlier)

    def transform(self, X: object) -> Any:
        """Return the scores of the rows of `X`, (n, k); missing values count as the center of their column."""
        scores = self._center_rows(X) @ self.components.T
        return frames.labelled(X, scores, _component_names(self.eigenvalues.size))

    def inverse_transform(self, scores: object) -> FloatArray:
        """Return the points of the component space that have these scores, (n, p), in the units of the data."""
        given, k = as_reals("scores", scores), self.eigenvalues.size
        if given.shape[-1:] != (k,):
            raise ValueError(f"scores must have {k} columns, one per component, got shape {given.shape}")
        infinite = np.argwhere(np.isinf(given))
        if infinite.size:
            raise ValueError(f"scores, entry {tuple(infinite[0].tolist())}: the value is infinite; leave that row out")
        return np.asarray(self.center + self.divisor * (given @ self.components))

    def distances(self, X: object) -> tuple[Any, Any]:
        """Return the score distances and the orthogonal distances of the rows of `X`."""
        _, inside, outside = _distances(self._center_rows(X), self.components, self.eigenvalues)
        return frames.labelled(X, inside), frames.labelled(X, outside)

    def _center_rows(self, X: object) -> FloatArray:
        """Read `X`, and return ``(X - center)/divisor``; see the function `_center_rows`."""
        matrix = read_fitted(X, self.column_names, self.center.size)
        refuse_infinite(matrix)
        return _center_rows(matrix, self.center, self.divisor, is_usable(self.scale))


def wrapped_pca(
    X: object,
    n_components: int | None = None,
    *,
    standardize: bool = True,
    b: float = 1.5,
    c: float = 4.0,
    method: str = "wrapping",
    quantile: float = 0.975,
    n_threads: int | None = None,
) -> WrappedPCA:
    """Compute robust principal components: the eigenvectors of the correlation of wrapped data.

    The components are the eigenvectors of `wrapped_correlation` (with ``standardize=False``, of `wrapped_covariance`).
    They are computed from W'W or WW', whichever is smaller, W being the wrapped data. Then the original, unwrapped data
    are projected, so that outliers stand out. Let t be the scores of a row, y the row minus the center (divided by the
    scales) and P the components. The distances of the row are:

    - score distance: ``sqrt(sum_j t_j**2 / eigenvalue_j)``. Its cut-off is the square root of a quantile of the
      chi-square distribution with one degree of freedom per component.
    - orthogonal distance: ``|y - P' t|``. Its cut-off is ``(m + s z)**(3/2)``. Here m and s are the univariate MCD
      location and scale of the distances to the power 2/3, which are about normal (Wilson and Hilferty), and z is the
      normal quantile [2]_.

    A row with only a large score distance is a good leverage point. A row with only a large orthogonal distance is an
    orthogonal outlier. A row with two large distances is a bad leverage point. `powerkern.plot.outlier_map` draws them.

    Parameters
    ----------
    X : (n, p) array-like
        Array or data frame. Missing values (NaN) count as the center of their column.
    n_components : int, optional
        Number of components; default: as many as explain 80 % of the variance, but at most 10.
    standardize : bool, default True
        Divide columns by their robust scales.
    b, c, method
        As in `wrap`.
    quantile : float, default 0.975
        Fraction of regular rows below each cut-off.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    WrappedPCA

    Raises
    ------
    TypeError, ValueError
        If `X` has values that are not real numbers or are infinite, if no column has a positive scale, if
        `n_components` exceeds the rank of the wrapped data, or if an option is invalid.

    Warns
    -----
    UserWarning
        A warning lists the columns without a positive scale. They are left out, and their loadings are 0.

    Notes
    -----
    If the components span all dimensions, or nearly all, orthogonal distances are rounding errors. Distances below
    1e-12 times the length of the longest row are set to 0.

    References
    ----------
    .. [1] J. Raymaekers, P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
       184-198.
    .. [2] M. Hubert, P. J. Rousseeuw, K. Vanden Branden, "ROBPCA: a new approach to robust principal component
       analysis", Technometrics 47, 2005, 64-79.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrapped_pca
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> X[:4] = 20.0
    >>> fit = wrapped_pca(X, 2)
    >>> np.flatnonzero(fit.orthogonal_distances > 2.0 * fit.orthogonal_cutoff)
    array([0, 1, 2, 3])
    """
    matrix = as_matrix(X)
    threads = thread_count(n_threads)
    largest = min(matrix.values.shape)
    if n_components is not None and as_whole("n_components", n_components) > largest:
        raise ValueError(f"n_components must be from 1 to {largest}, the smaller dimension of X, got {n_components}")
    quantile = as_number("quantile", quantile, "(0, 1)")
    constants = wrap_constants(b, c)
    found = estimate_standardization(matrix, method, constants, threads)
    usable = is_usable(found.scale)
    if not usable.any():
        raise ValueError(
            "no column of X has a positive, finite scale, so there are no components; pass columns in "
            "which fewer than half of the values are equal"
        )
    warn_of_scales(found.scale, matrix.names, "left out of the components")
    units = np.where(usable, found.scale, 1.0)
    divisor = units if as_flag("standardize", standardize) else np.ones(units.size)
    block = wrap_scores(matrix.values, found, constants, threads)
    center = np.where(usable, found.loc + units * block.mean(axis=1), 0.0)
    normalize_rows(block, threads)
    block[~usable] = 0.0
    block *= (units / divisor)[:, None]
    values, components, total = _eigendecompose(block, n_components, threads)
    components[:, ~usable] = 0.0  # exactly, without rounding errors
    centered = _center_rows(matrix, center, divisor, usable)
    scores, inside, outside = _distances(centered, components, values)
    return WrappedPCA(
        components, values, values / total, center, divisor, found.loc, found.scale,
        frames.labelled(X, scores, _component_names(values.size)),
        frames.labelled(X, inside), frames.labelled(X, outside), float(np.sqrt(chdtri(values.size, 1.0 - quantile))),
        _orthogonal_cutoff(outside, quantile), quantile, matrix.names,
    )  # fmt: skip


def _component_names(k: int) -> list[str]:
    """Return the names "PC1" to "PCk"."""
    return [f"PC{i}" for i in range(1, k + 1)]


def _eigendecompose(
    block: FloatArray, n_components: int | None, n_threads: int
) -> tuple[FloatArray, FloatArray, float]:
    """Compute the largest eigenvalues of ``block block'`` and their eigenvectors.

    Parameters
    ----------
    block : (p, n) ndarray
        The centered columns, as rows.
    n_components : int or None
        Number of eigenvalues; None: as many as explain the fraction _SHARE of the variance.
    n_threads : int
        Maximum number of threads.

    Returns
    -------
    eigenvalues : (k,) ndarray
        The largest eigenvalues, in decreasing order.
    eigenvectors : (k, p) ndarray
        Their eigenvectors, as rows.
    total : float
        The sum of all eigenvalues.
    """
    from scipy.linalg import eigh  # costs a third of the time to import powerkern

    p, n = block.shape
    product = products.gram(block if p <= n else np.ascontiguousarray(block.T), n_threads)
    size, total = product.shape[0], float(np.trace(product))
    most = min(size, _MOST if n_components is None else n_components)
    values, vectors = eigh(product, subset_by_index=[size - most, size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.sum(values > _ZERO * values[0]))
    if n_components is None:
        rank = min(rank, int(np.searchsorted(np.cumsum(values), _SHARE * total)) + 1)
    elif rank < n_components:
        raise ValueError(f"n_components is {n_components}, but the wrapped data have rank {rank}; use at most {rank}")
    values, vectors = values[:rank], vectors[:, :rank]
    rows = vectors.T if p <= n else (block @ vectors / np.sqrt(values)).T
    return np.ascontiguousarray(values), _fix_signs(rows), total


def _fix_signs(rows: FloatArray) -> FloatArray:
    """Multiply each row by 1 or -1 so that its entry of largest absolute value is positive."""
    largest = np.take_along_axis(rows, np.argmax(np.abs(rows), axis=1)[:, None], axis=1)
    return np.ascontiguousarray(rows * np.sign(largest))


def _center_rows(matrix: Matrix, center: FloatArray, divisor: FloatArray, usable: BoolArray) -> FloatArray:
    """Return ``(x - center)/divisor`` for each row x; missing values and unusable columns become 0.

    Parameters
    ----------
    matrix : Matrix
        The data, (n, p).
    center, divisor : (p,) ndarray
        Number to subtract from each column, and divisor of the result.
    usable : (p,) ndarray of bool
        Columns with a positive, finite scale.
    """
    with np.errstate(over="ignore"):  # nan_to_num below turns an overflow into the largest float64
        centered = (np.asarray(matrix.values, dtype=np.float64) - center) / divisor
    centered[:, ~usable] = 0.0
    return np.nan_to_num(centered, copy=False)


def _distances(
    centered: FloatArray, components: FloatArray, eigenvalues: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the scores of rows, and their score distances and orthogonal distances.

    Parameters
    ----------
    centered : (n, p) ndarray
        The rows, centered and divided by the scales.
    components : (k, p) ndarray
        The loadings.
    eigenvalues : (k,) ndarray
        Variances of the scores.

    Returns
    -------
    scores : (n, k) ndarray
        The scores.
    score_distances, orthogonal_distances : (n,) ndarray
        The distances; see `WrappedPCA`.
    """
    scores = centered @ components.T
    outside, lengths = _lengths(centered - scores @ components), _lengths(centered)
    outside[outside <= _ZERO * lengths.max(initial=0.0)] = 0.0
    return scores, _lengths(scores / np.sqrt(eigenvalues)), outside


def _lengths(rows: FloatArray) -> FloatArray:
    """Return the Euclidean length of each row, even if squares overflow."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        large = np.isinf(lengths)
        lengths[large] = np.hypot.reduce(rows[large], axis=1)
    return np.asarray(lengths)


def _orthogonal_cutoff(outside: FloatArray, quantile: float) -> float:
    """Return the cut-off of the orthogonal distances `outside`, (n,), see `wrapped_pca`; 0 if all distances are 0."""
    loc, scale = mcd((outside ** (2.0 / 3.0))[:, None])[0, :2]
    return float(max(loc + scale * ndtri(quantile), 0.0) ** 1.5)
