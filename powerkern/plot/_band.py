"""Compute the band that contains a whole normal QQ plot with a given probability."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, ndtri

from powerkern._typing import FloatArray, IntArray

#: Number of simulated samples from which the local level is computed.
_SAMPLES = 2000
#: Number of order statistics in each half of a large sample at which the band is computed.
_PER_HALF = 60


class Band(NamedTuple):
    """Lower and upper ends of the band at a selection of normal scores."""

    scores: FloatArray
    low: FloatArray
    high: FloatArray


def normal_scores(ranks: FloatArray | IntArray, n: int) -> FloatArray:
    """Return approximate medians of order statistics of n standard normal values; `ranks` count from 1."""
    return np.asarray(ndtri((ranks - 1.0 / 3.0) / (n + 1.0 / 3.0)))


@lru_cache(maxsize=256)
def simultaneous_band(n: int, level: float) -> Band:
    """Return the band that contains all order statistics of `n` standard normal values with probability `level`.

    Every order statistic has the same probability of leaving the band. This probability is computed from the uniform
    order statistics, ``U_(i) ~ Beta(i, n + 1 - i)``. The result is the tail-sensitive band of Aldor-Noiman, Brown,
    Buja, Rolke and Stine, "The power to see: a new graphical test of normality", The American Statistician 67, 2013,
    249-260. As in the paper, it is computed by simulation, here with 2,000 samples and a fixed seed.
    """
    ranks = _ranks(n)
    low = ndtri(betaincinv(ranks, n + 1 - ranks, 0.5 * _local_level(n, level)))
    return Band(normal_scores(ranks, n), low, -low[::-1])


def _ranks(n: int) -> IntArray:
    """Return the ranks at which the band is computed: all, or for large n a symmetric selection, denser at the ends."""
    half = np.unique(np.geomspace(1, (n + 1) / 2, _PER_HALF).astype(np.int64))
    ranks: IntArray = np.union1d(half, n + 1 - half)
    return ranks


def _local_level(n: int, level: float) -> float:
    """Return the probability with which one of `n` order statistics may leave a band of joint probability `level`."""
    ranks = _ranks(n)
    # gaps between uniform order statistics are gamma variables over their sum
    gaps = np.diff(np.concatenate(([0], ranks, [n + 1])))
    sums = np.random.default_rng(0).standard_gamma(gaps, (_SAMPLES, gaps.size)).cumsum(axis=1)
    p = betainc(ranks, n + 1 - ranks, sums[:, :-1] / sums[:, -1:])
    return float(np.quantile(2.0 * np.minimum(p, 1.0 - p).min(axis=1), 1.0 - level))
