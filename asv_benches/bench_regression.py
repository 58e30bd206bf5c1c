"""Regressions of many responses, compared with fits of these columns and with a loop of SciPy's minimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special

import powerkern as pk
from powerkern.regression import fit_regression

from ._measure import InTurns

#: Responses on which SciPy is measured; its time is scaled to all responses.
_PEER_COLUMNS = 20


def responses(n: int, p: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return p lognormal responses, (n, p), and the k normal covariates on which they depend, (n, k)."""
    rng = np.random.default_rng(20240601)
    X = rng.normal(size=(n, k))
    return np.exp(0.3 * X @ rng.normal(size=(k, p)) + 0.5 * rng.normal(size=(n, p))), X


def scipy_loop(Y: np.ndarray, X: np.ndarray) -> list[float]:
    """Minimise the profile likelihood of each response by SciPy, with one QR decomposition of `X` for all responses."""
    Q = np.linalg.qr(np.column_stack([np.ones(len(X)), X]))[0]

    def fit(y: np.ndarray) -> float:
        mean = np.log(y).mean()

        def g(lmbda: float) -> float:
            psi = scipy.special.boxcox(y, lmbda)
            rest = psi - Q @ (Q.T @ psi)
            return float(0.5 * np.log(rest @ rest / y.size) - (lmbda - 1.0) * mean)

        return float(scipy.optimize.minimize_scalar(g, bracket=(-1.0, 1.0), method="brent").x)

    return [fit(y) for y in Y.T]


class _BesideFit(InTurns):
    """Box-Cox regressions of responses on covariates, compared with plain fits of the response columns."""

    param_names = ["n", "p", "k"]
    params = [[2000], [100], [5]]

    def setup(self, n: int, p: int, k: int) -> None:
        self.Y, self.X = responses(n, p, k)
        fit_regression(self.Y, self.X)
        pk.fit(self.Y, "box-cox")

    def _calls(self, n_threads: int | None) -> dict[str, Callable[[], Any]]:
        return {
            "regression": lambda: fit_regression(self.Y, self.X, n_threads=n_threads),
            "fit": lambda: pk.fit(self.Y, "box-cox", n_threads=n_threads),
        }

    def time_fit_regression(self, n: int, p: int, k: int) -> None:
        fit_regression(self.Y, self.X)

    def track_over_fit(self, n: int, p: int, k: int) -> float:
        """Time of the regressions relative to a fit of the response columns, on two threads."""
        self.compare(self._calls(2))
        return self.ratio("regression", "fit")


class Regression(_BesideFit):
    """Responses without missing values; also compared with SciPy."""

    def track_over_scipy(self, n: int, p: int, k: int) -> float:
        """Time of SciPy's loop relative to ours; SciPy's time is extrapolated from a few columns."""
        few = self.Y[:, :_PEER_COLUMNS].copy()
        calls = {"regression": self._calls(None)["regression"], "scipy": lambda: scipy_loop(few, self.X)}
        self.compare(calls)
        return self.ratio("scipy", "regression") * p / few.shape[1]


class MissingValues(_BesideFit):
    """Responses with missing values in different rows."""

    def setup(self, n: int, p: int, k: int) -> None:
        self.Y, self.X = responses(n, p, k)
        self.Y[np.random.default_rng(0).random(self.Y.shape) < 0.05] = np.nan
        fit_regression(self.Y, self.X)
        pk.fit(self.Y, "box-cox")
