"""Linear equations from a Cholesky factor."""

from __future__ import annotations

from powerkern._jit import kernel
from powerkern._typing import FloatArray


@kernel
def solve_factored(factor: FloatArray, v: FloatArray) -> None:
    """v = (L L^T)^-1 v, with L the lower triangle of `factor`."""
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
