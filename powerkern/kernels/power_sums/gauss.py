"""Gauss rules from power sums: at most four nodes and weights with the first eight moments of a bin.

References
----------
.. [1] G. H. Golub and J. H. Welsch, "Calculation of Gauss quadrature rules", Math. Comp. 23, 1969, 221-230.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import EPS

#: Power sums of a bin, and nodes of its Gauss rule.
N_POWERS, N_NODES = 8, 4
#: Mean squares about the bin's mean below the first, and of higher polynomials below the second, are rounding: a few
#: EPS in sums of terms up to 1, to which the recursion of the polynomials adds.
ONE_NODE, _FEWER_NODES = 1e-15, 1e-13
#: Nodes are at most this far from the middle of the bin.
_BEYOND = 1.0 + 1e-6


@kernel
def gauss_rule(sums: FloatArray, small: FloatArray) -> tuple[int, float]:
    """Write the Gauss rule of power sums to small[0] and small[1]; return its size and a bound on E pi_4^2.

    Moments about the mean, Chebyshev's algorithm for the recurrence of the orthogonal polynomials, and the QL
    iteration for the eigenvalues of its Jacobi matrix and the first components of the eigenvectors (Golub, Welsch).
    Where the last polynomial is only rounding error, a node may lie outside: it is left out.
    """
    node, weight, diagonal, off = small[0], small[1], small[2], small[3]
    previous, current = small[4], small[5]
    total = sums[0]
    mean = sums[1] / total
    # moments about the mean: Horner's scheme of the binomial expansion, one shift of all at a time
    for k in range(N_POWERS):
        current[k] = sums[k] / total
        previous[k] = 0.0
    for k in range(1, N_POWERS):
        for i in range(N_POWERS - 1, k - 1, -1):
            current[i] -= mean * current[i - 1]
    n, square, alpha, beta = 1, 1.0, 0.0, 0.0
    diagonal[0] = mean
    while n < N_NODES:
        # sigma_k,l = sigma_k-1,l+1 - alpha sigma_k-1,l - beta sigma_k-2,l; previous becomes the new row
        for i in range(n, 2 * N_NODES - n):
            previous[i] = current[i + 1] - alpha * current[i] - beta * previous[i]
        found = previous[n]
        if not found > (ONE_NODE if n == 1 else _FEWER_NODES):
            break
        beta = found / square
        alpha = previous[n + 1] / found - current[n] / square
        diagonal[n] = mean + alpha
        off[n - 1] = math.sqrt(beta)
        previous, current = current, previous
        square = found
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
            diagonal[1] = mean  # two nodes about the mean, whatever the skewness
        elif not inside:
            n -= 1
    return n, min(square, 0.015625) if n == N_NODES else 0.0


@kernel
def _eigen(d: FloatArray, e: FloatArray, z: FloatArray, n: int) -> None:
    """Replace d by the eigenvalues of the tridiagonal matrix (d, e); write first components of eigenvectors to z.

    Implicit QL with Wilkinson's shift.
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
