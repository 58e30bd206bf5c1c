"""Gauss rules from power sums: at most four nodes and weights with the same first eight moments as a bin.

References
----------
.. [1] G. H. Golub and J. H. Welsch, "Calculation of Gauss quadrature rules", Math. Comp. 23, 1969, 221-230.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS

#: Number of power sums of a bin, and largest number of nodes of its Gauss rule.
N_POWERS, N_NODES = 8, 4
#: Mean squares of the first orthogonal polynomial below ONE_NODE, and of higher ones below _FEWER_NODES, are treated as
#: rounding errors: a few EPS in sums of terms up to 1, and more from the recursion.
ONE_NODE, _FEWER_NODES = 1e-15, 1e-13
#: Largest distance of a node from the middle of the bin, in units of half the width.
_BEYOND = 1.0 + 1e-6


@kernel
def gauss_rule(sums: FloatArray, small: FloatArray) -> tuple[int, float]:
    """Compute the Gauss rule of a bin; return its number of nodes and a bound on E pi_4^2 (see `errors`).

    From moments about the mean, Chebyshev's algorithm gives the recurrence of the orthogonal polynomials. The QL
    iteration then gives the eigenvalues of their Jacobi matrix, which are the nodes, and the first components of the
    eigenvectors, which give the weights ([1]_). If a node lies outside the bin, the last polynomial consists of
    rounding errors and is dropped.

    Parameters
    ----------
    sums : (N_POWERS,)
        The power sums of the bin.
    small : (7, N_POWERS)
        Scratch; nodes are written to small[0] and weights to small[1].
    """
    node, weight, diagonal, off = small[0], small[1], small[2], small[3]
    previous, current = small[4], small[5]
    total = sums[0]
    mean = sums[1] / total
    # moments about the mean, by repeated Horner steps of the binomial expansion
    for k in range(N_POWERS):
        current[k] = sums[k] / total
        previous[k] = 0.0
    for k in range(1, N_POWERS):
        for i in range(N_POWERS - 1, k - 1, -1):
            current[i] -= mean * current[i - 1]
    n, previous_norm, alpha, beta = 1, 1.0, 0.0, 0.0
    diagonal[0] = mean
    while n < N_NODES:
        # sigma_k,l = sigma_k-1,l+1 - alpha sigma_k-1,l - beta sigma_k-2,l; previous becomes the new row
        for i in range(n, 2 * N_NODES - n):
            previous[i] = current[i + 1] - alpha * current[i] - beta * previous[i]
        square_norm = previous[n]
        if not square_norm > (ONE_NODE if n == 1 else _FEWER_NODES):
            break
        beta = square_norm / previous_norm
        alpha = previous[n + 1] / square_norm - current[n] / previous_norm
        diagonal[n] = mean + alpha
        off[n - 1] = math.sqrt(beta)
        previous, current = current, previous
        previous_norm = square_norm
        n += 1
    inside = False
    while not inside:
        for k in range(n):
            node[k], weight[k], small[6, k] = diagonal[k], 0.0, off[k]
        weight[0] = 1.0
        _eigen(node, small[6], weight, n)
        inside = True
        for k in range(n):
            weight[k] *= weight[k] * total
            inside = inside and abs(node[k]) <= _BEYOND
        if n <= 2:
            inside = inside or diagonal[1] == mean or n == 1
            diagonal[1] = mean  # ignore the skewness and place two nodes symmetrically about the mean
        elif not inside:
            n -= 1
    return n, min(previous_norm, 0.015625) if n == N_NODES else 0.0


@kernel
def _eigen(d: FloatArray, e: FloatArray, z: FloatArray, n: int) -> None:
    """Replace d by the eigenvalues of a tridiagonal matrix, and z by the first components of its eigenvectors.

    The matrix has the diagonal d and the off-diagonal e, which is overwritten. z must be the first unit vector. The
    method is implicit QL with Wilkinson's shift.
    """
    e[n - 1] = 0.0
    for low in range(n):
        for _ in range(40):
            m = low
            while m < n - 1 and abs(e[m]) > 0.5 * EPS * (abs(d[m]) + abs(d[m + 1])):
                m += 1
            if m == low:
                break
            g = (d[low + 1] - d[low]) / (2.0 * e[low])
            r = math.hypot(g, 1.0)
            g = d[m] - d[low] + e[low] / (g + math.copysign(r, g))
            s = c = 1.0
            p = 0.0
            split = False
            for i in range(m - 1, low - 1, -1):
                f, b = s * e[i], c * e[i]
                r = math.hypot(f, g)
                e[i + 1] = r
                split = r == 0.0
                if split:
                    d[i + 1] -= p
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                f = z[i + 1]
                z[i + 1] = s * z[i] + c * f
                z[i] = c * z[i] - s * f
            if not split:
                d[low] -= p
                e[low] = g
            e[m] = 0.0
