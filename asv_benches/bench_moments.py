"""Moments and log-sum-exps of one vector, compared with NumPy's and SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from powerkern._jit import COLUMN, entry
from powerkern.kernels import log_mean, log_var, logsumexp
from powerkern.kernels.moments import two_pass_moments

from ._measure import best_of, exp_units

Job = Callable[[np.ndarray, np.ndarray], Any]


@entry((COLUMN,))
def _variance(x: np.ndarray) -> float:
    return two_pass_moments(x).m2 / x.size


@entry((COLUMN, COLUMN))
def _weighted_variance(x: np.ndarray, w: np.ndarray) -> float:
    moments = two_pass_moments(x, w)
    return moments.m2 / moments.weight


def _numpy_weighted_variance(x: np.ndarray, w: np.ndarray) -> float:
    return float(np.average((x - np.average(x, weights=w)) ** 2, weights=w))


def _scipy_log_var(x: np.ndarray) -> float:
    """Return the log of the variance as scipy.stats does: logs of negative numbers have imaginary part pi."""
    mean = scipy.special.logsumexp(x) - np.log(x.size)
    deviations = scipy.special.logsumexp([x + 0j, np.full(x.size, mean + np.pi * 1j)], axis=0)
    return float(np.real(scipy.special.logsumexp(2.0 * deviations)) - np.log(x.size))


#: By job and library: a function of a vector and positive weights; the peer is numpy, or scipy for logs.
JOBS: dict[str, dict[str, Job]] = {
    "variance": {"powerkern": lambda x, w: _variance(x), "peer": lambda x, w: np.var(x)},
    "weighted variance": {"powerkern": _weighted_variance, "peer": _numpy_weighted_variance},
    "logsumexp": {"powerkern": lambda x, w: logsumexp(x), "peer": lambda x, w: scipy.special.logsumexp(x)},
    "weighted logsumexp": {"powerkern": logsumexp, "peer": lambda x, w: scipy.special.logsumexp(x, b=w)},
    "log_mean": {
        "powerkern": lambda x, w: log_mean(x).log,
        "peer": lambda x, w: scipy.special.logsumexp(x) - np.log(x.size),
    },
    "log_var": {"powerkern": lambda x, w: log_var(x), "peer": lambda x, w: _scipy_log_var(x)},
}
LIBRARIES = ["powerkern", "peer"]
SIZES = [100_000]


def _exact(job: str, x: np.ndarray, w: np.ndarray) -> float:
    """Compute the reference for a job in extended precision; weighted jobs use the weights `w`."""
    long = x.astype(np.longdouble)
    if job == "variance":
        return float(np.var(long))
    if job == "weighted variance":
        mean = np.average(long, weights=w)
        return float(np.average((long - mean) ** 2, weights=w))
    scale = long.max()
    numbers = np.exp(long - scale)
    if job == "log_var":
        return float(2 * scale + np.log(np.var(numbers)))
    total = np.sum(numbers * w) if job == "weighted logsumexp" else np.sum(numbers)
    return float(scale + np.log(total / x.size if job == "log_mean" else total))


class _Vector:
    def setup(self, job: str, n: int, *library: str) -> None:
        rng = np.random.default_rng(20240601)
        self.x, self.w = rng.normal(loc=100.0, scale=3.0, size=n), rng.uniform(0.5, 2.0, n)
        self.run("powerkern", job)  # compiles

    def run(self, library: str, job: str) -> Any:
        return JOBS[job][library](self.x, self.w)


class Time(_Vector):
    """Time of one call, in seconds."""

    params = (list(JOBS), SIZES, LIBRARIES)
    param_names = ("job", "n", "library")

    def time_call(self, job: str, n: int, library: str) -> None:
        self.run(library, job)


class Error(_Vector):
    """Relative error for nearly equal values, in units of 2.2e-16."""

    params = (list(JOBS), [1_000], LIBRARIES)
    param_names = ("job", "n", "library")

    def setup(self, job: str, n: int, library: str) -> None:
        super().setup(job, n, library)
        self.x = 1.0 + 1e-6 * (self.x - 100.0)  # nearly equal values, whose variance may lose digits

    def track_relative_error(self, job: str, n: int, library: str) -> float:
        exact = _exact(job, self.x, self.w)
        return float(abs(self.run(library, job) - exact) / abs(exact) / np.finfo(float).eps)

    track_relative_error.unit = "eps"  # type: ignore[attr-defined]


class Ratio(_Vector):
    """Speed of powerkern relative to the peer, and time of powerkern in passes of np.exp over the vector."""

    params = (list(JOBS), SIZES)
    param_names = ("job", "n")

    def track_speedup(self, job: str, n: int) -> float:
        return best_of(lambda: self.run("peer", job)) / best_of(lambda: self.run("powerkern", job))

    def track_exp_passes(self, job: str, n: int) -> float:
        return exp_units(lambda: self.run("powerkern", job), n)

    track_speedup.unit = "times faster"  # type: ignore[attr-defined]
    track_exp_passes.unit = "np.exp passes"  # type: ignore[attr-defined]
