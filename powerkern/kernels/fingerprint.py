"""Compute 64-bit fingerprints of columns: columns that differ in any bit almost certainly differ in the fingerprint.

Each row i has a pseudo-random key. The row's term is the product of the two 32-bit halves of ``bits(x_i) ^ key_i``, and
the fingerprint is the sum of all terms modulo 2**64. Sums over parts of the rows can be added in any order, so results
do not depend on the division into threads and blocks. A change that is not designed to deceive goes undetected with a
probability of about 2**-32, since a change in one half of the bits of a value is multiplied by the other half, which
the key makes random.
"""

from __future__ import annotations

import numpy as np

from powerkern._jit import COUNTS, INTEGER, JIT_DISABLED, entry, inlined, kernel
from powerkern._jit.interface import Array
from powerkern._typing import IntArray

__all__ = ["JIT_DISABLED", "KEYS", "add_fingerprints"]

#: Read-only contiguous vector of the bit patterns of float64 values.
_READ_BITS = Array("int64", 1, writable=False)
#: Rows that share one table of keys; its 8 KB stay in the first-level cache.
_PERIOD = 1024
#: The lower half of 64 bits.
_LOW = 0xFFFFFFFF
#: The fractional part of the golden ratio times 2**64, made odd, as a signed number. Its multiples k * _GOLDEN look
#: random, which makes the keys of different periods differ.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
#: Smallest number of columns for which a row-major matrix is read row by row instead of column by column.
_WIDE = 16


def _random_keys(n: int) -> IntArray:
    """Return the first n outputs of splitmix64 (Steele, Lea & Flood 2014)."""
    z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(_GOLDEN + 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)


#: Keys of the rows of a period; in period k they are xor-ed with ``k * _GOLDEN``.
KEYS = _random_keys(_PERIOD)


@inlined
def _term(bits: int, key: int) -> int:
    """Return the term of one row in the fingerprint of its column, given the bits of the value and the key."""
    z = bits ^ key
    return (z & _LOW) * ((z >> 32) & _LOW)


@kernel
def _sum_of_column(values: IntArray, keys: IntArray, salt: int | np.int64) -> int:
    """Return the sum of `_term` over contiguous values; the key of value i is ``keys[i] ^ salt``."""
    total = 0
    for i in range(values.size):
        total += _term(values[i], keys[i] ^ salt)
    return total


@entry((_READ_BITS, INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, COUNTS, COUNTS, COUNTS))
def add_fingerprints(
    memory: IntArray,
    begin: int,
    row_stride: int,
    column_stride: int,
    first_row: int,
    n_rows: int,
    lengths: IntArray,
    keys: IntArray,
    out: IntArray,
) -> None:
    """Add the contributions of some rows to the fingerprints of all columns.

    Parameters
    ----------
    memory : ndarray of int64
        The bits of the values; row i of column j is at ``begin + i*row_stride + j*column_stride``.
    begin, row_stride, column_stride : int
        Steps in `memory` from one row of a column to the next, and from one column of a row to the next. Reading is
        fastest if one of the steps is 1.
    first_row : int
        Index, in the whole column, of the first row.
    n_rows : int
        The number of rows.
    lengths : (p,) ndarray of int
        Number of rows of each column; empty if every column has `n_rows`. If not empty, `row_stride` must be 1.
    keys : (1024,) ndarray of int64
        The table `KEYS`. Row i of the whole column uses entry i % 1024, xor-ed with ``(i // 1024) * _GOLDEN``
        modulo 2**64.
    out : (p,) ndarray of int64
        The fingerprints of the rows read so far; updated in place.
    """
    p, top = out.size, 0
    while top < n_rows:
        row = first_row + top
        at, salt = row % _PERIOD, np.int64(row // _PERIOD) * np.int64(_GOLDEN)
        height = min(_PERIOD - at, n_rows - top)
        base = begin + top * row_stride
        # slices and unsigned indices: numba's test for negative indices would keep loops from vectorising
        if column_stride == 1 and row_stride != 1 and p >= _WIDE:
            for i in range(height):
                key, line = keys[at + i] ^ salt, base + i * row_stride
                values = memory[line : line + p]
                for j in range(p):
                    out[j] += _term(values[j], key)
        else:
            for j in range(p):
                line = base + j * column_stride
                count = min(height, max(lengths[j] - top, 0)) if lengths.size else height
                if row_stride == 1:
                    out[j] += _sum_of_column(memory[line : line + count], keys[at : at + count], salt)
                else:
                    total = 0
                    for i in range(count):
                        total += _term(memory[np.uint64(line + i * row_stride)], keys[at + i] ^ salt)
                    out[j] += total
        top += height
