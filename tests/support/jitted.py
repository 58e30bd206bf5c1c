"""Compilation of test functions that call kernels, as a user's functions would be compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from powerkern._jit import JIT_DISABLED


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function by plain numba with the error model of the kernels, unless numba is disabled."""
    if JIT_DISABLED:
        return np.errstate(all="ignore")(function)
    return numba.njit(error_model="numpy", fastmath={"contract"})(function)
