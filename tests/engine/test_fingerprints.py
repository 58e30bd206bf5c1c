"""Fingerprints of large matrices, compared with the sum that defines them."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern._engine import fingerprints
from powerkern._engine.fingerprints import fingerprint_columns, fingerprint_vector
from powerkern.kernels.fingerprint import KEYS

GOLDEN, PERIOD = np.uint64(0x9E3779B97F4A7C15), 1024


def compute_fingerprint(column: np.ndarray) -> int:
    """Return the sum that `powerkern.kernels.fingerprint` defines."""
    i = np.arange(column.size)
    with np.errstate(over="ignore"):
        z = column.view(np.uint64) ^ KEYS.view(np.uint64)[i % PERIOD] ^ ((i // PERIOD).astype(np.uint64) * GOLDEN)
        return int(np.sum((z & np.uint64(0xFFFFFFFF)) * (z >> np.uint64(32)), dtype=np.uint64).view(np.int64))


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "upside down": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "float32": lambda x: x.astype(np.float32),
    "big-endian": lambda x: x.astype(">f8"),
    "long double": lambda x: x.astype(np.longdouble),
    "record": lambda x: _as_field(x),
}


def _as_field(x):
    records = np.zeros(x.shape, dtype=[("a", "<f8"), ("b", "<i4")])
    records["a"] = x
    return records["a"]  # strides are not multiples of 8 bytes


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n, p", [(1500, 3), (3, 1500), (1, 1)])
def test_fingerprints_do_not_depend_on_layout_parts_or_threads(name, n, p, monkeypatch):
    values = LAYOUTS[name](np.random.default_rng(n).normal(size=(n, p)).astype(np.float32).astype(np.float64))
    expected = [compute_fingerprint(np.array(values[:, j], dtype=np.float64)) for j in range(p)]
    for part in (131_072, n * p, max(1, n * p - 1), 1000):
        monkeypatch.setattr(fingerprints, "_PART", part)
        monkeypatch.setattr(fingerprints, "_ROWS", part)
        for n_threads in (1, 2):
            assert fingerprint_columns(values, n_threads).tolist() == expected
    assert fingerprint_vector(np.array(values[:, 0], dtype=np.float64)) == expected[0]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n, p", [(70_000, 2), (2, 140_000)])
def test_fingerprints_of_matrices_of_several_tasks(n, p, order):
    values = np.asarray(np.random.default_rng(0).normal(size=(n, p)), order=order)
    prints = fingerprint_columns(values, 2)
    for j in (0, p // 2 + 1, p - 1)[:p]:
        assert prints[j % p] == compute_fingerprint(np.array(values[:, j % p]))


def test_a_matrix_without_rows_has_fingerprints_of_0():
    assert fingerprint_columns(np.empty((0, 3)), 1).tolist() == [0, 0, 0]
    assert fingerprint_columns(np.empty((0, 3), np.float32), 1).tolist() == [0, 0, 0]
