"""exp, expm1, log and log1p compared with NumPy's, and the time of the functions that kernels use inside loops."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numba
import numpy as np

from powerkern._jit import widest_vectors
from powerkern.kernels.elementary import exp, log

from ._measure import best_of, exp_units

Loop = Callable[[np.ndarray, np.ndarray], object]


def loop_of(function: Callable[[float], float]) -> Loop:
    """Compile a loop that LLVM vectorises, as in the kernels."""

    @numba.njit(error_model="numpy", fastmath={"contract"})
    def loop(x: np.ndarray, out: np.ndarray) -> None:
        widest_vectors()
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


#: By function and library: a loop that computes one array from another.
FUNCTIONS: dict[str, dict[str, Loop]] = {
    name: {"powerkern": loop_of(getattr(log if name.startswith("log") else exp, name)), "numpy": getattr(np, name)}
    for name in ("exp", "expm1", "log", "log1p")
}
LIBRARIES = ["powerkern", "numpy"]
SIZES = [10_000]


def values(function: str, n: int) -> np.ndarray:
    """Return `n` values for a function: normal, or for logarithms made positive."""
    x = np.random.default_rng(20240601).standard_normal(n)
    return np.exp(x) if function.startswith("log") else x


class Elementary:
    """Time of a function for n values, in passes of np.exp."""

    params = (list(FUNCTIONS), LIBRARIES, SIZES)
    param_names = ("function", "library", "n")

    def setup(self, function: str, library: str, n: int) -> None:
        self.x, self.out = values(function, n), np.empty(n)
        self.loop = FUNCTIONS[function][library]
        self.loop(self.x, self.out)  # compiles

    def track_exp_units(self, function: str, library: str, n: int) -> float:
        return exp_units(lambda: self.loop(self.x, self.out), n)

    track_exp_units.unit = "np.exp passes"  # type: ignore[attr-defined]


class Ratio:
    """Speed of each function relative to NumPy's."""

    params = (list(FUNCTIONS), SIZES)
    param_names = ("function", "n")

    def setup(self, function: str, n: int) -> None:
        self.x, self.out = values(function, n), np.empty(n)

    def track_speedup(self, function: str, n: int) -> float:
        ours, theirs = (FUNCTIONS[function][library] for library in LIBRARIES)
        return best_of(lambda: theirs(self.x, self.out)) / best_of(lambda: ours(self.x, self.out))

    track_speedup.unit = "times faster"  # type: ignore[attr-defined]


class Accuracy:
    """Largest error over 2000 values of all magnitudes, in units in the last place."""

    params = (list(FUNCTIONS), LIBRARIES)
    param_names = ("function", "library")

    def track_ulp(self, function: str, library: str) -> float:
        rng = np.random.default_rng(20240601)
        if function.startswith("log"):
            x = np.concatenate([10.0 ** rng.uniform(-307.0, 308.0, 1000), rng.uniform(0.3, 3.0, 1000)])
        else:
            x = np.concatenate([rng.uniform(-700.0, 700.0, 1000), rng.uniform(-1.0, 1.0, 1000)])
        out = np.empty_like(x)
        FUNCTIONS[function][library](x, out)
        with mpmath.workprec(200):
            exact = [getattr(mpmath, function)(mpmath.mpf(v)) for v in x]
            return max(
                float(abs(mpmath.mpf(y) - e) / np.spacing(abs(float(e)))) for y, e in zip(out, exact, strict=True)
            )

    track_ulp.unit = "ulp"  # type: ignore[attr-defined]


@numba.njit(error_model="numpy", fastmath={"contract"})
def _extended_log(x: np.ndarray, out: np.ndarray) -> None:
    widest_vectors()
    for i in range(x.size):
        k, m = log.split(x[i])
        hi, lo = log.extended_log(k, m - 1.0, 0.0)
        out[i] = hi + 2.0 * lo


INNER = {
    "log_normal": loop_of(log.log_normal),
    "extended_log": _extended_log,
    "expm1_minus_x": loop_of(exp.expm1_minus_x),
}


class Inner:
    """Time of functions used inside the loops of other kernels, divided by the time of np.exp."""

    params = (list(INNER), ["float64", "float32"], [10_000])
    param_names = ("function", "dtype", "n")

    def setup(self, function: str, dtype: str, n: int) -> None:
        if dtype == "float32" and function != "expm1_minus_x":
            raise NotImplementedError  # asv skips it
        x = values("log" if function.startswith("log") else "exp", n)
        self.x, self.out = x.astype(dtype), np.empty(n, dtype)

    def track_exp_units(self, function: str, dtype: str, n: int) -> float:
        return exp_units(lambda: INNER[function](self.x, self.out), n)

    track_exp_units.unit = "np.exp passes"  # type: ignore[attr-defined]
