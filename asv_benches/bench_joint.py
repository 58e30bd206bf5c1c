"""Joint fits, compared with a SciPy minimiser that has no derivatives."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.optimize
import scipy.special

from powerkern import fit
from powerkern.joint import fit_joint

from ._measure import InTurns


def correlated(n: int, p: int) -> np.ndarray:
    """Return columns that are normal and equally correlated after Box-Cox transforms with lambdas from -0.5 to 1.2."""
    rng = np.random.default_rng(20240601)
    z = np.sqrt(0.5) * (rng.normal(size=(n, p)) + rng.normal(size=(n, 1)))
    return np.asarray(scipy.special.inv_boxcox(0.2 * np.clip(z, -4.0, 4.0), np.linspace(-0.5, 1.2, p)))


def peer(x: np.ndarray) -> np.ndarray:
    """Fit as R's car does: BFGS with finite differences, starting from the fits of single columns."""
    logs = np.log(x)
    unit = np.exp(logs.mean(axis=0))

    def nll(lmbda: np.ndarray) -> float:
        z = scipy.special.boxcox(x, lmbda) / unit ** (lmbda - 1.0)
        return 0.5 * float(np.linalg.slogdet(np.cov(z.T, bias=True))[1])

    return np.asarray(scipy.optimize.minimize(nll, fit(x, "box-cox").lmbda, method="BFGS").x)


class Joint(InTurns):
    """Elapsed seconds of a joint fit on all threads, and CPU seconds on one."""

    params = ([(10_000, 20)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        self.x = correlated(*shape)
        fit_joint(self.x[:100, :3], family="box-cox")  # compiles

    def track_seconds(self, shape: tuple[int, int]) -> float:
        self.compare({"powerkern": lambda: fit_joint(self.x, family="box-cox")})
        return self.laps["powerkern"].wall

    def track_cpu_seconds(self, shape: tuple[int, int]) -> float:
        self.compare({"powerkern": lambda: fit_joint(self.x, family="box-cox", n_threads=1)})
        return self.laps["powerkern"].cpu


class Peer(InTurns):
    """Speed of a joint fit relative to the function `peer`, both with all threads."""

    params = ([(1_000, 5)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        self.x = correlated(*shape)
        fit_joint(self.x[:100, :3], family="box-cox")  # compiles

    def track_speedup(self, shape: tuple[int, int]) -> float:
        self.compare({"powerkern": lambda: fit_joint(self.x, family="box-cox"), "scipy": lambda: peer(self.x)})
        return self.ratio("scipy", "powerkern")


class Wide:
    """Seconds of one joint fit of a hundred columns or more."""

    params = ([100],)
    param_names = ("p",)

    def setup(self, p: int) -> None:
        self.x = correlated(2_000, p)
        fit_joint(self.x[:, :3], family="box-cox")  # compiles

    def track_seconds(self, p: int) -> float:
        start = time.perf_counter()
        fit_joint(self.x, family="box-cox")
        return time.perf_counter() - start


class Identity:
    """Number of results that change in any bit with the number of threads, memory order, or order of columns."""

    def track_differences(self) -> int:
        x = correlated(3_000, 20)
        expected = fit_joint(x, family="box-cox", n_threads=1).lmbda
        others: list[Callable[[], np.ndarray]] = [
            lambda: fit_joint(x, family="box-cox", n_threads=8).lmbda,
            lambda: fit_joint(np.asfortranarray(x), family="box-cox").lmbda,
            lambda: fit_joint(x[:, ::-1], family="box-cox").lmbda[::-1],
        ]
        return int(sum(np.sum(other() != expected) for other in others))
