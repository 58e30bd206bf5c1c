"""Solvers compared with scipy.optimize: overhead of a call, number of evaluations, and many problems in lockstep."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from powerkern._jit import COLUMN, entry, kernel
from powerkern.kernels import brent, golden_section, newton_root
from powerkern.kernels.optimize import brent as brent_kernels
from powerkern.kernels.optimize import newton, status

from ._measure import best_of

XTOL = 1e-6


def bowl(x: float) -> float:
    """Evaluate a strictly convex, skewed function whose minimum is at 0.2852."""
    return math.cosh(x - 0.3) + 0.1 * x**4


def slope(x: float) -> tuple[float, float, float]:
    """Return the first three derivatives of `bowl` at x."""
    return math.sinh(x - 0.3) + 0.4 * x**3, math.cosh(x - 0.3) + 1.2 * x**2, math.sinh(x - 0.3) + 2.4 * x


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[[float], Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, x: float) -> Any:
        self.calls += 1
        return self.function(x)


def _scipy_halley(f: Callable[[float], Any]) -> Any:
    return scipy.optimize.root_scalar(f, fprime=True, fprime2=True, x0=5.0, xtol=XTOL, method="halley")


#: By method and library: the objective, and a function that minimises it.
METHODS: dict[str, dict[str, tuple[Callable[[float], Any], Callable[[Callable[[float], Any]], Any]]]] = {
    "golden section": {
        "powerkern": (bowl, lambda f: golden_section(f, -4.0, 6.0, XTOL)),
        "scipy": (bowl, lambda f: scipy.optimize.golden(f, brack=(-4.0, -0.2, 6.0), tol=XTOL)),
    },
    "Brent": {
        "powerkern": (bowl, lambda f: brent(f, -4.0, 6.0, XTOL)),
        "scipy": (bowl, lambda f: scipy.optimize.fminbound(f, -4.0, 6.0, xtol=XTOL)),
    },
    "Halley": {
        "powerkern": (slope, lambda f: newton_root(f, 5.0, 10.0, XTOL)),
        "scipy": (slope, _scipy_halley),
    },
    "Newton": {
        "powerkern": (slope, lambda f: newton_root(lambda x: (*f(x)[:2], 0.0), 5.0, 10.0, XTOL)),
        "scipy": (
            slope,
            lambda f: scipy.optimize.root_scalar(lambda x: f(x)[:2], fprime=True, x0=5.0, xtol=XTOL, method="newton"),
        ),
    },
}


class Call:
    """Time of one call of a solver with a Python function, and the number of evaluations."""

    params = (list(METHODS), ["powerkern", "scipy"])
    param_names = ("method", "library")

    def setup(self, method: str, library: str) -> None:
        self.objective, self.run = METHODS[method][library]

    def time_call(self, method: str, library: str) -> None:
        self.run(self.objective)

    def track_evaluations(self, method: str, library: str) -> int:
        counted = Counted(self.objective)
        self.run(counted)
        return counted.calls

    track_evaluations.unit = "evaluations"  # type: ignore[attr-defined]


class Ratio:
    """Time of SciPy's solver divided by the time of ours."""

    params = (list(METHODS),)
    param_names = ("method",)

    def track_speedup(self, method: str) -> float:
        (ours, run_ours), (theirs, run_theirs) = METHODS[method]["powerkern"], METHODS[method]["scipy"]
        return best_of(lambda: run_theirs(theirs)) / best_of(lambda: run_ours(ours))

    track_speedup.unit = "times faster"  # type: ignore[attr-defined]


# --- many problems: a jitted loop over states ---------------------------------------------------------


@kernel
def _shifted_bowl(x: float, center: float) -> float:
    return math.cosh(x - center) + 0.1 * x**4


@entry((COLUMN, COLUMN))
def _brent_each(centers: np.ndarray, out: np.ndarray) -> None:
    for i in range(centers.size):
        state = brent_kernels.brent_start(-4.0, 6.0, 1e-6, 100)
        while state.status == status.RUNNING:
            state = brent_kernels.brent_step(state, _shifted_bowl(state.x, centers[i]))
        out[i] = state.x


@entry((COLUMN, COLUMN))
def _newton_each(centers: np.ndarray, out: np.ndarray) -> None:
    for i in range(centers.size):
        c = centers[i]
        state = newton.newton_start(1.0, 1.0, 1e-6, 100)
        while state.status == status.RUNNING:
            x = state.x
            state = newton.newton_step(
                state,
                math.sinh(x - c) + 0.4 * x**3,
                math.cosh(x - c) + 1.2 * x**2,
                math.sinh(x - c) + 2.4 * x,
            )
        out[i] = state.x


class Many:
    """Time per problem in a jitted loop over problems with a cheap function, dominated by the search steps."""

    params = (["Brent", "Halley"], [10_000])
    param_names = ("method", "problems")

    def setup(self, method: str, problems: int) -> None:
        self.centers = np.random.default_rng(20240601).uniform(-3.0, 5.0, problems)
        self.out = np.empty(problems)
        self.run = {"Brent": _brent_each, "Halley": _newton_each}[method]
        self.run(self.centers, self.out)  # compiles

    def time_all(self, method: str, problems: int) -> None:
        self.run(self.centers, self.out)

    def track_time_per_problem(self, method: str, problems: int) -> float:
        return best_of(lambda: self.run(self.centers, self.out)) / problems * 1e9

    track_time_per_problem.unit = "ns"  # type: ignore[attr-defined]
