"""Fits of origin and unit, compared with plain fits of distances from the true origin; tests of normality."""

from __future__ import annotations

import time

import numpy as np

from powerkern import fit


def skewed(n: int, p: int) -> np.ndarray:
    """Return gamma columns, skewed to either side, far from zero."""
    rng = np.random.default_rng(20261124)
    return 100.0 + np.where(np.arange(p) % 2, -1.0, 1.0) * rng.gamma(3.0, size=(n, p))


class Origin:
    """Fits of origin, unit and lambda by three estimators: seconds, and time relative to a plain fit."""

    params = ([(10_000, 1_000), (500, 1_000)], ["yeo-johnson", "box-cox"], ["mle", "central-mle", "robust"])
    param_names = ("shape", "family", "estimator")
    timeout = 600

    def setup(self, shape: tuple[int, int], family: str, estimator: str) -> None:
        """Generate columns and compile the kernels."""
        self.x = skewed(*shape)
        self.y = np.abs(self.x - 100.0)
        fit(self.x[:, :8], family, estimator, origin="fit")

    def time_fit(self, shape: tuple[int, int], family: str, estimator: str) -> None:
        """Fit lambda, origin and unit."""
        fit(self.x, family, estimator, origin="fit")

    def track_ratio_to_a_plain_fit(self, shape: tuple[int, int], family: str, estimator: str) -> float:
        """Time relative to a plain maximum likelihood fit of the distances from 100, the true origin.

        Each time is the shortest of three alternating calls.
        """
        best = [np.inf, np.inf]
        for _ in range(3):
            for k, run in enumerate(
                (lambda: fit(self.x, family, estimator, origin="fit"), lambda: fit(self.y, family))
            ):
                start = time.perf_counter()
                run()
                best[k] = min(best[k], time.perf_counter() - start)
        return best[0] / best[1]


class Central:
    """Seconds of the test of central normality."""

    params = ([(10_000, 100), (500, 1_000)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        """Make the fit that is tested."""
        self.fit = fit(skewed(*shape), origin="fit")

    def time_central_normality(self, shape: tuple[int, int]) -> None:
        """Compute statistic and p-value of every column."""
        self.fit.central_normality()
