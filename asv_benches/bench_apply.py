"""transform and inverse_transform beside scikit-learn's; new output, out= and in place."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
from sklearn.preprocessing import PowerTransformer, StandardScaler

import powerkern as pk

from ._measure import FAMILIES, ORDERS, InTurns, matrix

JOBS = ["transform", "inverse_transform"]
#: Where the result goes.
TARGETS = ["new array", "out=", "in place"]
OUTPUTS = ["raw", "standardized"]


class _Apply(InTurns):
    """A fitted matrix, what a job takes (transformed values, for the inverse) and an array for what it gives."""

    def prepare(self, job: str, family: str, output: str, order: str, n: int, p: int) -> None:
        x = matrix(family, n, p, order)
        self.fit = pk.fit(x, family=family, standardize=output == "standardized")
        z = self.fit.transform(x)
        self.input = x if job == "transform" else z
        self.work, self.out = self.input.copy(order="K"), np.empty_like(self.input)
        self.run(job, "in place")  # compiles
        self.restore()

    def restore(self) -> None:
        np.copyto(self.work, self.input)

    def run(self, job: str, target: str, n_threads: int | None = None) -> Any:
        out = {"new array": None, "out=": self.out, "in place": self.work}[target]
        return getattr(self.fit, job)(self.work, out=out, n_threads=n_threads)


class Time(_Apply):
    """Seconds of a job with a new array for its result."""

    params = (JOBS, FAMILIES, ORDERS, [10_000], [100])
    param_names = ("job", "family", "order", "n", "p")

    def setup(self, job: str, family: str, order: str, n: int, p: int) -> None:
        self.prepare(job, family, "standardized", order, n, p)

    def time_apply(self, job: str, family: str, order: str, n: int, p: int) -> None:
        self.run(job, "new array")


class OneThread(_Apply):
    """Cost on one thread in passes of np.exp over the same matrix."""

    params = (JOBS, FAMILIES, TARGETS, ["C"], [10_000], [100])
    param_names = ("job", "family", "target", "order", "n", "p")

    def setup(self, job: str, family: str, target: str, order: str, n: int, p: int) -> None:
        self.prepare(job, family, "standardized", order, n, p)

    def track_exp_units(self, job: str, family: str, target: str, order: str, n: int, p: int) -> float:
        exponentials = np.empty_like(self.input)
        calls = {
            "powerkern": lambda: self.run(job, target, 1),
            "np.exp": lambda: np.exp(self.input, out=exponentials),
        }
        self.compare(calls, before=self.restore)
        return self.ratio("powerkern", "np.exp")


class Memory(_Apply):
    """Memory that a job takes, arrays and other objects of Python, as a share of the matrix's."""

    params = (JOBS, ["yeo-johnson"], TARGETS, [10_000], [100])
    param_names = ("job", "family", "target", "n", "p")

    def setup(self, job: str, family: str, target: str, n: int, p: int) -> None:
        self.prepare(job, family, "standardized", "C", n, p)

    def track_share(self, job: str, family: str, target: str, n: int, p: int) -> float:
        tracemalloc.start()
        try:
            result = self.run(job, target)
            return tracemalloc.get_traced_memory()[1] / result.nbytes
        finally:
            tracemalloc.stop()


class Peers(_Apply):
    """How many times faster than scikit-learn on a row-major matrix, all threads against the peer as it is."""

    params = (JOBS, FAMILIES, OUTPUTS, ["scikit-learn"], [10_000], [100])
    param_names = ("job", "family", "output", "library", "n", "p")

    def setup(self, job: str, family: str, output: str, library: str, n: int, p: int) -> None:
        self.prepare(job, family, output, "C", n, p)
        # fitted by hand: its own fit would take most of the time, and find the same
        self.peer = PowerTransformer(family, standardize=output == "standardized")
        self.peer.lambdas_, self.peer.n_features_in_ = self.fit.lmbda, p
        if output == "standardized":
            x = matrix(family, n, p)
            raw = pk.fit(x, family, standardize=False, lmbda=self.fit.lmbda).transform(x)
            self.peer._scaler = StandardScaler().fit(raw)

    def track_speedup(self, job: str, family: str, output: str, library: str, n: int, p: int) -> float:
        self.compare(
            {"powerkern": lambda: self.run(job, "new array"), library: lambda: getattr(self.peer, job)(self.input)}
        )
        return self.ratio(library, "powerkern")
