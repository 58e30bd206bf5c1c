"""Tests of lambda and measures of normality, column by column, compared with a loop of SciPy's functions."""

from __future__ import annotations

import numpy as np
import scipy.stats

import powerkern as pk

from ._measure import PEER_COLUMNS, InTurns, exp_units, matrix


class Summaries:
    """Time of tests of lambda and of measures of normality on one thread, also in passes of np.exp over the matrix."""

    params = (["yeo-johnson"], [200, 10_000])
    param_names = ("family", "n")

    def setup(self, family: str, n: int) -> None:
        self.x = matrix(family, n, 100_000 // n)
        self.fit = pk.fit(self.x, family, n_threads=1)
        self.own = np.linspace(-1.0, 1.0, self.x.shape[1])
        self.fit.summary()  # compiles
        self.fit.lr_test(self.own)

    def time_lr_test(self, family: str, n: int) -> None:
        self.fit.lr_test(1.0, n_threads=1)

    def time_lr_test_of_each(self, family: str, n: int) -> None:
        self.fit.lr_test(self.own, n_threads=1)

    def time_normality(self, family: str, n: int) -> None:
        self.fit.normality(n_threads=1)

    def track_lr_test(self, family: str, n: int) -> float:
        return exp_units(lambda: self.fit.lr_test(1.0, n_threads=1), self.x.size)

    def track_normality(self, family: str, n: int) -> float:
        return exp_units(lambda: self.fit.normality(n_threads=1), self.x.size)


class Normality(InTurns):
    """Skewness, kurtosis, QQ correlation and p-value before and after the transform: speed relative to SciPy."""

    params = ([200, 10_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.x = matrix("box-cox", n, PEER_COLUMNS)
        self.fit = pk.fit(self.x, "box-cox")
        self.z = self.fit.transform(self.x)
        self.fit.normality()  # compiles

    def by_scipy(self) -> np.ndarray:
        figures = [
            (
                scipy.stats.skew(c),
                scipy.stats.kurtosis(c),
                scipy.stats.probplot(c)[1][2],
                scipy.stats.normaltest(c).pvalue,
            )
            for part in (self.x, self.z)
            for c in part.T
        ]
        return np.array(figures).reshape(2, -1, 4)

    def track_speedup(self, n: int) -> float:
        self.compare({"powerkern": lambda: self.fit.normality(n_threads=1), "scipy": self.by_scipy})
        return self.ratio("scipy", "powerkern")

    def track_difference(self, n: int) -> float:
        """Largest difference from SciPy's results."""
        return float(abs(np.array(self.fit.normality()).swapaxes(1, 2) - self.by_scipy()).max())
