"""Blocks of a vector, so that loops over them stay in the first-level cache and become packed code."""

from __future__ import annotations

from powerkern._jit import inlined, kernel, widest_vectors
from powerkern._typing import FloatArray

#: Values per block: a block and its scratch stay in the first-level cache.
BLOCK = 512


@inlined
def own_block(x: FloatArray, out: FloatArray, start: int) -> FloatArray:
    """The block of `out` that begins at `start`, holding the values of `x`; `out` may be `x`.

    A loop over one array vectorises; were it to read `x` and write `out`, LLVM would check at run time that
    they do not overlap, and run scalar code when they are the same.
    """
    widest_vectors()
    block = out[start : start + BLOCK]
    if x.ctypes.data != out.ctypes.data:
        source = x[start : start + BLOCK]
        for i in range(block.size):
            block[i] = source[i]
    return block


@kernel
def all_within(x: FloatArray, low: float, high: float) -> bool:
    """Whether all values that are not NaN are between low and high."""
    widest_vectors()
    n = 0
    for i in range(x.size):
        n += (x[i] < low) | (x[i] > high)
    return n == 0
