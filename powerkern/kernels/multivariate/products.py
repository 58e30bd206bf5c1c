"""Products and factors of matrices whose rows are long columns of data, for likelihoods of several columns.

Each element is computed by the same operations in the same order, however rows are divided among threads. The BLAS does
not guarantee this: with OpenBLAS the last bits of a product depend on the number of threads.
"""

from __future__ import annotations

from powerkern._jit import ROWS, entry, kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.cholesky import dot, factor_cholesky

#: Length of the blocks into which rows are cut; blocks of a hundred rows fit the second-level cache.
BLOCK = 512

#: Number of rows of `a` whose inner products are summed together; rows after the last multiple are summed one by one.
TILE = 4

#: Number of rows that one thread processes at a time.
GROUP = 16


@entry((ROWS, ROWS, ROWS))
def cross(a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    """Set out = a b^T, the inner products of the rows of `a` with the rows of `b`, summed block by block."""
    p, q = a.shape[0], b.shape[0]
    fours, twos = p - p % TILE, q - q % 2
    out[:] = 0.0
    for start in range(0, a.shape[1], BLOCK):
        stop = start + BLOCK
        for i in range(0, fours, TILE):
            a0, a1, a2, a3 = a[i][start:stop], a[i + 1][start:stop], a[i + 2][start:stop], a[i + 3][start:stop]
            for j in range(0, twos, 2):
                _add_tile(a0, a1, a2, a3, b[j][start:stop], b[j + 1][start:stop], out[i : i + TILE, j : j + 2])
        for i in range(p):
            for j in range(twos if i < fours else 0, q):
                out[i, j] += dot(a[i][start:stop], b[j][start:stop])


@reduction
def _add_tile(
    a0: FloatArray,
    a1: FloatArray,
    a2: FloatArray,
    a3: FloatArray,
    b0: FloatArray,
    b1: FloatArray,
    out: FloatArray,
) -> None:
    """Add the inner products of four rows with two rows to `out`; each loaded value is used two or four times.

    Parameters
    ----------
    a0, a1, a2, a3 : (n,)
        The four rows.
    b0, b1 : (n,)
        The two rows.
    out : (4, 2)
        The inner products are added to this array.
    """
    s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = 0.0
    for i in range(a0.size):
        s00 += a0[i] * b0[i]
        s01 += a0[i] * b1[i]
        s10 += a1[i] * b0[i]
        s11 += a1[i] * b1[i]
        s20 += a2[i] * b0[i]
        s21 += a2[i] * b1[i]
        s30 += a3[i] * b0[i]
        s31 += a3[i] * b1[i]
    out[0, 0] += s00
    out[0, 1] += s01
    out[1, 0] += s10
    out[1, 1] += s11
    out[2, 0] += s20
    out[2, 1] += s21
    out[3, 0] += s30
    out[3, 1] += s31


@entry((ROWS, ROWS, ROWS))
def combine(factors: FloatArray, a: FloatArray, out: FloatArray) -> None:
    """Set out = factors a, linear combinations of the rows of `a`."""
    q, p = factors.shape
    fours = p - p % 4
    out[:] = 0.0
    for start in range(0, a.shape[1], BLOCK):
        stop = start + BLOCK
        for i in range(q):
            f, y = factors[i], out[i][start:stop]
            for k in range(0, fours, 4):
                a0, a1, a2, a3 = a[k][start:stop], a[k + 1][start:stop], a[k + 2][start:stop], a[k + 3][start:stop]
                _add_four(f[k], f[k + 1], f[k + 2], f[k + 3], a0, a1, a2, a3, y)
            for k in range(fours, p):
                add_multiple(f[k], a[k][start:stop], y)


@kernel
def _add_four(
    f0: float,
    f1: float,
    f2: float,
    f3: float,
    a0: FloatArray,
    a1: FloatArray,
    a2: FloatArray,
    a3: FloatArray,
    out: FloatArray,
) -> None:
    """Add f0 a0 + f1 a1 + f2 a2 + f3 a3 to `out`; four rows at once save loads and stores of the sum.

    Parameters
    ----------
    f0, f1, f2, f3 : float
        The factors.
    a0, a1, a2, a3 : (n,)
        The rows.
    out : (n,)
        The sum to add to.
    """
    for i in range(out.size):
        out[i] += (f0 * a0[i] + f1 * a1[i]) + (f2 * a2[i] + f3 * a3[i])


@kernel
def add_multiple(factor: float, a: FloatArray, out: FloatArray) -> None:
    """Add `factor` times `a` to `out`."""
    for i in range(out.size):
        out[i] += factor * a[i]


@entry((ROWS, ROWS))
def cholesky(a: FloatArray, out: FloatArray) -> int:
    """Write the lower triangular factor with ``out out^T = a``, zero above the diagonal.

    Returns the index of the first row without a positive pivot, or the number of rows if there is no such row. The rows
    of `out` before that index are valid.
    """
    out[:] = 0.0
    return factor_cholesky(a, out, 0.0, 0.0)


@entry((ROWS, ROWS))
def invert_lower(a: FloatArray, out: FloatArray) -> None:
    """Write the inverse of a lower triangular matrix, row by row."""
    out[:] = 0.0
    for i in range(a.shape[0]):
        y = out[i]
        y[i] = 1.0
        for k in range(i):
            add_multiple(-a[i, k], out[k, : k + 1], y[: k + 1])
        inverse = 1.0 / a[i, i]
        for k in range(i + 1):
            y[k] *= inverse
