"""Intervals of robust fits: coverage and cost; and the fraction of clean values that are flagged as outliers."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

import powerkern as pk

from ._measure import InTurns

LEVEL = 0.95
#: Size of the grid of normal quantiles that represents a very long column.
_LONG = 100_001

Case = tuple[str, float]


def untransformed(case: Case, y: np.ndarray) -> np.ndarray:
    """Return the inverse transform, for the family and lambda of `case`, of the values `y`.

    For Box-Cox with lambda = 1, y is scaled first: the inverse is 1 + y/3, and at least 0.01.
    """
    family, lmbda = case
    if family == "box-cox":
        return np.exp(y) if lmbda == 0.0 else np.maximum(1.0 + y / 3.0, 0.01)
    m = np.where(y >= 0.0, lmbda, 2.0 - lmbda)
    log = np.where(m == 0.0, np.abs(y), np.log1p(m * np.abs(y)) / np.where(m == 0.0, 1.0, m))
    return np.copysign(np.expm1(log), y)


def fit(X: np.ndarray, case: Case, estimator: str) -> pk.PowerFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns that are not certified
        return pk.fit(X, case[0], estimator)


def samples(case: Case, n: int, columns: int, share: float = 0.0, k: float = 0.0) -> np.ndarray:
    """Return columns that are normal after the transform, except for a fraction of outliers.

    Parameters
    ----------
    case : Case
        Family and lambda.
    n, columns : int
        Numbers of rows and columns.
    share : float
        Fraction of outliers.
    k : float
        Value of the outliers after the transform, in standard deviations; -k under Yeo-Johnson with lambda > 1.
    """
    y = np.random.default_rng(1).normal(size=(n, columns))
    y[: round(share * n)] = -k if case[1] > 1.0 and case[0] == "yeo-johnson" else k
    return untransformed(case, y)


@cache
def target(case: Case, estimator: str) -> float:
    """Return the estimator's lambda for a very long clean column of `case`: the value that intervals should contain."""
    grid = untransformed(case, ndtri((np.arange(_LONG) + 0.5) / _LONG))
    return float(fit(grid, case, estimator).lmbda[0])


class Coverage:
    """Fraction of columns whose 95 % interval contains the `target`."""

    params = ([("yeo-johnson", 1.0)], [50], ["robust"], [(0.0, 0.0)], [100])
    param_names = ("case", "n", "estimator", "contamination", "columns")

    def track_coverage(self, case: Case, n: int, estimator: str, at: tuple[float, float], columns: int) -> float:
        low, high = fit(samples(case, n, columns, *at), case, estimator).confint(level=LEVEL)
        at_last = target(case, estimator)
        return float(np.mean((low <= at_last) & (at_last <= high)))

    def track_off(self, case: Case, n: int, estimator: str, at: tuple[float, float], columns: int) -> float:
        """Absolute difference between the coverage and 95 %, in percentage points."""
        return 100.0 * abs(self.track_coverage(case, n, estimator, at, columns) - LEVEL)


class Flagged:
    """Fraction of clean values flagged by the default cut-off, relative to the nominal 1 %."""

    params = ([("yeo-johnson", 1.0)], [20], ["robust"], [10_000])
    param_names = ("case", "n", "estimator", "values")

    def track_share(self, case: Case, n: int, estimator: str, values: int) -> float:
        x = samples(case, n, values // n)
        return 100.0 * float(fit(x, case, estimator).outliers(x).mean())


class Cost(InTurns):
    """CPU time of an interval, relative to the fit."""

    params = (["robust"], [(100, 50)])
    param_names = ("estimator", "shape")

    def setup(self, estimator: str, shape: tuple[int, int]) -> None:
        self.fitted = fit(samples(("yeo-johnson", 1.0), *shape), ("yeo-johnson", 1.0), estimator)

    def track_over_fit(self, estimator: str, shape: tuple[int, int]) -> float:
        x = samples(("yeo-johnson", 1.0), *shape)
        calls: dict[str, Any] = {
            "interval": self.fitted.confint,
            "fit": lambda: fit(x, ("yeo-johnson", 1.0), estimator),
        }
        self.compare(calls)
        return self.ratio("interval", "fit")
