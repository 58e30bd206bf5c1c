"""Fits that maximise the correlation of the normal QQ plot, compared with SciPy."""

from __future__ import annotations

import numpy as np
import scipy.stats

import powerkern as pk

from ._measure import FAMILIES, PEER_COLUMNS, InTurns, exp_units, matrix


class Fit:
    """Time of fits of many columns on one thread, in passes of np.exp over the matrix."""

    params = (FAMILIES, [200, 10_000])
    param_names = ("family", "n")

    def setup(self, family: str, n: int) -> None:
        self.x = matrix(family, n, 100_000 // n)
        pk.fit(self.x, family, "ppcc")  # compiles

    def time_fit(self, family: str, n: int) -> None:
        pk.fit(self.x, family, "ppcc", n_threads=1)

    def track_exp_passes(self, family: str, n: int) -> float:
        return exp_units(lambda: pk.fit(self.x, family, "ppcc", n_threads=1), self.x.size)


class OverScipy(InTurns):
    """Speed relative to scipy.stats.boxcox_normmax(method="pearsonr"), column by column on one thread."""

    params = ([200, 10_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        self.x = matrix("box-cox", n, PEER_COLUMNS)
        pk.fit(self.x, "box-cox", "ppcc")  # compiles

    def track_speedup(self, n: int) -> float:
        self.compare(
            {
                "powerkern": lambda: pk.fit(self.x, "box-cox", "ppcc", n_threads=1),
                "scipy": lambda: [scipy.stats.boxcox_normmax(c, method="pearsonr") for c in self.x.T],
            }
        )
        return self.ratio("scipy", "powerkern")

    def track_difference(self, n: int) -> float:
        """Largest difference of lambda from the result of SciPy, whose search is accurate to some 1e-8."""
        expected = [scipy.stats.boxcox_normmax(c, method="pearsonr") for c in self.x.T]
        return float(abs(pk.fit(self.x, "box-cox", "ppcc").lmbda - np.array(expected)).max())
