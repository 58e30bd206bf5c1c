"""Fingerprints of columns, compared with the formula in Python integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from powerkern.kernels.fingerprint import KEYS, add_fingerprints

GOLDEN, LOW, PERIOD = 0x9E3779B97F4A7C15, 0xFFFFFFFF, 1024


def fingerprint(column: np.ndarray) -> int:
    """Return the sum that the module's docstring defines."""
    total = 0
    for i, bits in enumerate(column.view(np.uint64).tolist()):
        z = bits ^ (int(KEYS[i % PERIOD]) % 2**64) ^ (i // PERIOD * GOLDEN % 2**64)
        total += (z & LOW) * (z >> 32)
    return total % 2**64


@pytest.mark.parametrize("n, p", [(5, 3), (40, 17), (1030, 3), (1, 1), (1, 17)])
@pytest.mark.parametrize("layout", ["rows", "columns", "every other", "parts", "lengths"])
def test_fingerprints_are_as_defined(n, p, layout):
    x = np.random.default_rng(n).normal(size=(n, p))
    lengths = np.zeros(0, dtype=np.int64)
    if layout == "every other":
        memory, strides = np.repeat(np.repeat(x, 2, axis=0), 2, axis=1), (4 * p, 2)
    elif layout == "rows":
        memory, strides = x, (p, 1)
    else:
        memory, strides = np.ascontiguousarray(x.T), (1, n)
    if layout == "lengths":
        lengths = np.maximum(n - 5 * np.arange(p), 0)  # of 1,030 rows, the last column ends before the second period
    bits, out = memory.ravel().view(np.int64), np.zeros(p, dtype=np.int64)
    cuts = [0, n // 3, n] if layout == "parts" else [0, n]
    with np.errstate(over="ignore"):
        for first, last in itertools.pairwise(cuts):
            add_fingerprints(bits, first * strides[0], *strides, first, last - first, lengths, KEYS, out)
    counts = lengths if lengths.size else [n] * p
    assert out.view(np.uint64).tolist() == [fingerprint(x[:count, j]) for j, count in enumerate(counts)]
