"""Products of matrices whose rows are data columns; the results do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._engine.blocks import slices
from powerkern._engine.threads import run_parallel
from powerkern._typing import FloatArray
from powerkern.kernels.multivariate import products

#: Multiplications that take as long as fitting one value; converts work to the unit of `run_parallel`.
_CHEAP = 128
#: Rows of a panel, few enough for the second-level cache.
_PANEL = 64


def cross(a: FloatArray, b: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return the inner products of the p rows of `a` with the q rows of `b`, as a matrix (p, q)."""
    out = np.empty((a.shape[0], b.shape[0]))
    _by_rows(lambda rows: products.cross(a[rows], b, out[rows]), out, a.shape[1], n_threads)
    return out


def gram(a: FloatArray, n_threads: int = 1) -> FloatArray:
    """Return the inner products of the p rows of `a` with each other, as a matrix (p, p).

    The bits of an element do not depend on the order of the rows.
    """
    p = a.shape[0]
    out = np.empty((p, p))

    def job(rows: slice, columns: slice) -> None:
        part = _whole_tiles(a, rows, columns)
        out[rows, columns] = part
        out[columns, rows] = part.T

    parts = slices(slice(0, p), _PANEL)
    run_parallel(
        job,
        [(rows, columns) for rows in parts for columns in parts if columns.start <= rows.start],
        (p * p // 2, a.shape[1] // _CHEAP + 1),
        n_threads,
    )
    return out


def cross_rows(a: FloatArray, rows: slice, b: FloatArray) -> FloatArray:
    """Return the inner products of some rows of `a` with all rows of `b`.

    The products are computed on the calling thread, and are bit-identical to the elements of `gram`.
    """
    out = np.empty((rows.stop - rows.start, b.shape[0]))
    for columns in slices(slice(0, b.shape[0]), _PANEL):
        out[:, columns] = _whole_tiles(a, rows, columns, b)
    return out


def _whole_tiles(a: FloatArray, rows: slice, columns: slice, b: FloatArray | None = None) -> FloatArray:
    """Return inner products of rows, each summed in a full tile so that its bits do not depend on its position.

    Parameters
    ----------
    a : (p, n) ndarray
        The left matrix.
    rows : slice
        The rows of `a`, which are the rows of the result.
    columns : slice
        The rows of `b`, which are the columns of the result.
    b : (q, n) ndarray, optional
        The right matrix; by default `a`.
    """
    left, right = _pad_rows(a[rows]), _pad_rows((a if b is None else b)[columns])
    out = np.empty((left.shape[0], right.shape[0]))
    products.cross(left, right, out)
    return out[: rows.stop - rows.start, : columns.stop - columns.start]


def _pad_rows(rows: FloatArray) -> FloatArray:
    """Append rows of zeros up to a multiple of the height of a tile."""
    missing = -rows.shape[0] % products.TILE
    return np.vstack([rows, np.zeros((missing, rows.shape[1]))]) if missing else rows


def combine(factors: FloatArray, a: FloatArray, out: FloatArray | None = None, n_threads: int = 1) -> FloatArray:
    """Return the product of `factors` and `a`, whose rows are linear combinations of the rows of `a`.

    Parameters
    ----------
    factors : (k, p) ndarray
        A row for each combination.
    a : (p, n) ndarray
        The rows that are combined.
    out : (k, n) ndarray, optional
        Receives the product, and is returned.
    n_threads : int
        Maximum number of threads.
    """
    factors = np.ascontiguousarray(factors)
    out = np.empty((factors.shape[0], a.shape[1])) if out is None else out
    _by_rows(lambda rows: products.combine(factors[rows], a, out[rows]), out, a.shape[0], n_threads)
    return out


def _by_rows(job: Callable[[slice], None], out: FloatArray, depth: int, n_threads: int) -> None:
    """Call `job` for groups of rows of a product, on several threads.

    Parameters
    ----------
    job : callable
        Called with a slice of rows of `out`.
    out : ndarray
        The product.
    depth : int
        Number of multiplications per element.
    n_threads : int
        Maximum number of threads.
    """
    groups = [(rows,) for rows in slices(slice(0, out.shape[0]), products.GROUP)]
    run_parallel(job, groups, (out.size, depth // _CHEAP), n_threads)


def cholesky(a: FloatArray) -> tuple[FloatArray, int]:
    """Return the lower Cholesky factor of a matrix, and the index of the first row whose pivot is not positive.

    If all pivots are positive, the index is the number of rows.
    """
    out = np.empty_like(a)
    return out, products.cholesky(a, out)


def invert_lower(a: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangular matrix."""
    out = np.empty_like(a)
    products.invert_lower(a, out)
    return out
