"""Addresses of loaded machine code and its constants in a process with little free address space nearby."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Loads entries, and between them reserves gigabytes and many small gaps of the address space.
SCRIPT = """
import ctypes
import numpy as np
import powerkern as pk

mmap = ctypes.CDLL(None).mmap
mmap.restype, mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
rng = np.random.default_rng(0)
x = rng.lognormal(size=(1000, 3))


def take(size):
    assert mmap(None, size, 0, 0x4022, -1, 0) not in (None, 2**64 - 1)  # private, anonymous, not reserved


for job in (
    lambda: pk.fit(x[:100]),
    lambda: pk.fit(x).transform(x),
    lambda: pk.fit(x, "box-cox").transform(x),
    lambda: pk.fit(x, "box-cox").inverse_transform(x - 2.0),
    lambda: pk.fit(x[:100], estimator="robust"),
):
    job()
    take(3 << 30), take(3 << 30)
    for _ in range(3000):
        take(4096 * int(rng.integers(1, 64)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="flags of Linux's mmap")
def test_code_and_constants_lie_together_in_a_crowded_process():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
