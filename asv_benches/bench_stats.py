"""powerkern.stats compared with scipy.stats, for single columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
import scipy.stats

from powerkern import stats

from ._measure import best_of

#: By job: a function of a library's functions, a positive column, and a column of both signs.
JOBS: dict[str, Callable[[Any, np.ndarray, np.ndarray], Any]] = {
    "boxcox": lambda lib, x, y: lib.boxcox(x),
    "boxcox with interval": lambda lib, x, y: lib.boxcox(x, alpha=0.05),
    "boxcox, lambda given": lambda lib, x, y: lib.boxcox(x, 0.3),
    "boxcox_normmax pearsonr": lambda lib, x, y: lib.boxcox_normmax(x),
    "boxcox_llf": lambda lib, x, y: lib.boxcox_llf(0.3, x),
    "inv_boxcox": lambda lib, x, y: getattr(lib, "inv_boxcox", scipy.special.inv_boxcox)(x, 0.3),
    "yeojohnson": lambda lib, x, y: lib.yeojohnson(y),
    "yeojohnson, lambda given": lambda lib, x, y: lib.yeojohnson(y, 0.3),
    "yeojohnson_llf": lambda lib, x, y: lib.yeojohnson_llf(0.3, y),
}
LIBRARIES = {"powerkern": stats, "scipy": scipy.stats}

#: Columns and their optimal lambdas, the roots of the score computed with 100 digits.
MAXIMISERS: dict[str, tuple[str, list[float], float]] = {
    "lengths": ("boxcox", [198.0, 233.0, 233.0, 392.0], -2.7162586965346601504),
    "years": ("boxcox", [2003.0, 1950.0, 1997.0, 2000.0, 2009.0], 103.97915769238019405),
    "three ties": ("boxcox", [0.1, 0.1, 0.1, 0.101], -361.14497321496459684),
    "Darwin": (
        "yeojohnson",
        [6.1, -8.4, 1.0, 2.0, 0.7, 2.9, 3.5, 5.1, 1.8, 3.6, 7.0, 3.0, 9.3, 7.5, -6.0],
        1.3052747124258047028,
    ),
    "one or two": ("yeojohnson", [1.0] + 9 * [2.0], 24.651791076307352678),
    "three close": ("yeojohnson", [23.81, 23.98, 23.97], 308.96461196638170205),
}


class _Columns:
    def setup(self, job: str, n: int, *library: str) -> None:
        rng = np.random.default_rng(20240601)
        self.x, self.y = rng.lognormal(size=n), rng.standard_t(5, size=n)
        self.run("powerkern", job)  # compiles

    def run(self, library: str, job: str) -> Any:
        return JOBS[job](LIBRARIES[library], self.x, self.y)


class Time(_Columns):
    """Seconds of one call of a function."""

    params = (list(JOBS), [1_000], list(LIBRARIES))
    param_names = ("job", "n", "library")

    def time_call(self, job: str, n: int, library: str) -> None:
        self.run(library, job)


class Ratio(_Columns):
    """Speed of a function relative to SciPy's, both measured in the same run."""

    params = (list(JOBS), [1_000])
    param_names = ("job", "n")

    def track_speedup(self, job: str, n: int) -> float:
        seconds = {library: best_of(lambda library=library: self.run(library, job)) for library in LIBRARIES}
        return seconds["scipy"] / seconds["powerkern"]


class Overhead(_Columns):
    """Microseconds of a call for three values, which is nearly all overhead."""

    params = (list(JOBS), [3])
    param_names = ("job", "n")

    def track_overhead(self, job: str, n: int) -> float:
        return 1e6 * best_of(lambda: self.run("powerkern", job))

    track_overhead.unit = "microseconds"  # type: ignore[attr-defined]


class Accuracy:
    """Error of lambda, |lambda - lambda*|/max(1, |lambda*|), where lambda* is the exact optimum."""

    params = (list(MAXIMISERS), list(LIBRARIES))
    param_names = ("column", "library")

    def track_error(self, column: str, library: str) -> float:
        family, x, exact = MAXIMISERS[column]
        with np.errstate(all="ignore"):
            if family == "boxcox":
                lmbda = LIBRARIES[library].boxcox_normmax(x, method="mle", ymax=np.inf)
            else:  # with a bracket, SciPy does not bound lambda
                lmbda = LIBRARIES[library].yeojohnson_normmax(np.array(x), brack=(-2.0, 2.0))
        return abs(lmbda - exact) / max(1.0, abs(exact))
