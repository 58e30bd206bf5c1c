"""What the benchmarks of kernels share: the fastest of several calls, in seconds or in passes of np.exp."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


def best_of(call: Callable[[], Any], seconds: float = 0.05, at_least: int = 5) -> float:
    """Seconds of the fastest of the calls that fit into `seconds`, after one that warms up."""
    call()
    best, calls = np.inf, 0
    end = time.perf_counter() + seconds
    while calls < at_least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best


def exp_units(call: Callable[[], Any], n: int) -> float:
    """Time of `call` in units of one pass of np.exp over n moderate values, both measured now."""
    x, out = np.linspace(-1.0, 1.0, n), np.empty(n)
    return best_of(call) / best_of(lambda: np.exp(x, out=out))
