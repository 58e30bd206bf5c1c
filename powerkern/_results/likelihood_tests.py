"""Tests and intervals that follow from a likelihood and its curvature, for every maximum likelihood fit."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input import special
from powerkern._input.arrays import as_reals
from powerkern._typing import FloatArray

#: Convenient powers, the most convenient first, in the order of R's car (which has .33 for 1/3).
CONVENIENT = (1.0, 0.0, -1.0, 1.0 / 2.0, 1.0 / 3.0, -1.0 / 2.0, -1.0 / 3.0, 2.0, -2.0)

#: Lambdas that summaries test: the logarithm, and no transform.
TESTED = (0.0, 1.0)

#: Of an interval: from the profile likelihood, or from its curvature.
Method = Literal["profile", "wald"]


class Interval(NamedTuple):
    """Intervals for lambda, one entry per column."""

    low: FloatArray
    high: FloatArray


class LikelihoodRatio(NamedTuple):
    """A likelihood ratio test, one entry per column.

    Attributes
    ----------
    statistic : ndarray
        ``2 (nll(lmbda0) - nll)``, not negative; NaN where there is no maximum of the likelihood to compare with.
    df : int
        Degrees of freedom: how many lambdas are given under the hypothesis.
    pvalue : ndarray
        Probability that a chi-square variable with `df` degrees of freedom exceeds the statistic.
    """

    statistic: FloatArray
    df: int
    pvalue: FloatArray


def likelihood_ratio(nll0: ArrayLike, nll: ArrayLike, df: int = 1) -> LikelihoodRatio:
    """The test of lambdas with negative log-likelihood `nll0` against the best ones, with `nll` (of all rows both)."""
    with np.errstate(invalid="ignore"):
        statistic = np.maximum(2.0 * np.subtract(nll0, nll), 0.0)
    return LikelihoodRatio(np.asarray(statistic), df, np.asarray(special.chdtrc(df, statistic)))


def hypothesis_lambdas(lmbda0: ArrayLike, n: int, each: str = "column") -> FloatArray:
    """The lambdas of a hypothesis: one for all, of shape (), or one for each of `n`; or the error."""
    given = as_reals("lmbda0", lmbda0)
    if given.ndim > 1 or given.size not in (1, n) or not np.isfinite(given).all():
        raise ValueError(f"lmbda0 must be one finite number, or one per {each} ({n})")
    return given.reshape(()) if given.size == 1 else given


def checked_level(level: float) -> float:
    """A confidence level, or the error that says what it should be."""
    if as_reals("level", level).ndim > 0 or not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    return float(level)


def standard_error(information: ArrayLike) -> FloatArray:
    """``1/sqrt(information)``; NaN where the curvature of the likelihood is not positive."""
    curvature = np.asarray(information, dtype=np.float64)
    return np.asarray(1.0 / np.sqrt(np.where(curvature > 0.0, curvature, np.nan)))


def wald_interval(lmbda: ArrayLike, se: ArrayLike, level: float = 0.95) -> Interval:
    """``lmbda -+ Phi^-1((1 + level)/2) se``. R's car takes 1.96 for the quantile 1.959964 of level 0.95."""
    # from the lower tail, whose probability is exact for levels close to 1
    width = -special.ndtri(0.5 * (1.0 - checked_level(level))) * np.asarray(se, dtype=np.float64)
    return Interval(np.subtract(lmbda, width), np.add(lmbda, width))


def rounded_power(lmbda: ArrayLike, interval: Interval) -> FloatArray:
    """The first of the `CONVENIENT` powers inside the interval; lambda itself where there is none."""
    rounded = np.array(lmbda, dtype=np.float64)
    for power in reversed(CONVENIENT):
        rounded[(interval.low <= power) & (power <= interval.high)] = power
    return rounded
