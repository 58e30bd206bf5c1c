"""Cholesky factorisation, and the solution of linear systems by means of the factor.

References
----------
.. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th ed., Johns Hopkins University Press, 2013,
   section 4.2.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray


@reduction
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def factor_cholesky(a: FloatArray, factor: FloatArray, least: float, floor: float) -> int:
    """Write the lower triangular L with ``L L^T = a``, row by row.

    Parameters
    ----------
    a : (n, n)
        A symmetric matrix; only its lower triangle is read.
    factor : (n, n)
        Receives L; elements above the diagonal are left unchanged. May be `a` itself.
    least : float
        A pivot must exceed this fraction of its diagonal element in `a`.
    floor : float
        Pivots below this are raised to it before they are compared with `least`. A positive floor makes it possible to
        factor matrices that are singular up to rounding.

    Returns
    -------
    int
        The first row whose pivot is too small, or n if there is none. The rows before it contain L.
    """
    n = len(a)
    for i in range(n):
        for j in range(i):
            factor[i, j] = (a[i, j] - dot(factor[i, :j], factor[j, :j])) / factor[j, j]
        diagonal = a[i, i]
        pivot = diagonal - dot(factor[i, :i], factor[i, :i])
        if pivot < floor:
            pivot = floor
        if not pivot > least * abs(diagonal):
            return i
        factor[i, i] = math.sqrt(pivot)
    return n


@kernel
def solve_factored(factor: FloatArray, v: FloatArray) -> None:
    """Replace v by (L L^T)^-1 v, where L is the lower triangle of `factor`."""
    n = v.size
    for k in range(n):
        rest = v[k]
        for i in range(k):
            rest -= factor[k, i] * v[i]
        v[k] = rest / factor[k, k]
    for k in range(n - 1, -1, -1):
        rest = v[k]
        for i in range(k + 1, n):
            rest -= factor[i, k] * v[i]
        v[k] = rest / factor[k, k]
