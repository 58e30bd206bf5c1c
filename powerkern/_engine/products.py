"""Products of matrices whose rows are columns of data, on a pool of threads; the same bits for any number of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerkern._engine.blocks import slices
from powerkern._engine.threads import work_off
from powerkern._typing import FloatArray
from powerkern.kernels import products

#: Multiplications that cost as much as a value of a fit.
_CHEAP = 128


def cross(a: FloatArray, b: FloatArray, n_threads: int = 1) -> FloatArray:
    """The inner products of the rows of `a` with the rows of `b`, (p, q)."""
    out = np.empty((a.shape[0], b.shape[0]))
    _by_rows(lambda rows: products.cross(a[rows], b, out[rows]), out, a.shape[1], n_threads)
    return out


def combine(factors: FloatArray, a: FloatArray, out: FloatArray | None = None, n_threads: int = 1) -> FloatArray:
    """The product ``factors a``, linear combinations of the rows of `a`."""
    factors = np.ascontiguousarray(factors)
    out = np.empty((factors.shape[0], a.shape[1])) if out is None else out
    _by_rows(lambda rows: products.combine(factors[rows], a, out[rows]), out, a.shape[0], n_threads)
    return out


def _by_rows(job: Callable[[slice], None], out: FloatArray, depth: int, n_threads: int) -> None:
    """Call `job` for groups of the rows of a product of which an element takes `depth` multiplications."""
    groups = [(rows,) for rows in slices(slice(0, out.shape[0]), products.GROUP)]
    work_off(job, groups, (out.size, depth // _CHEAP), n_threads)


def cholesky(a: FloatArray) -> tuple[FloatArray, int]:
    """The lower factor, and the first row that has no positive pivot (the number of rows: none)."""
    out = np.empty_like(a)
    return out, products.cholesky(a, out)


def inverse_of_lower(a: FloatArray) -> FloatArray:
    """The inverse of a lower triangular matrix."""
    out = np.empty_like(a)
    products.invert_lower(a, out)
    return out
