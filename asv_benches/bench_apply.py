"""transform and inverse_transform compared with scikit-learn's, with new output, out= and in place."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import PowerTransformer, StandardScaler

import powerkern as pk

from ._measure import FAMILIES, NP_EXP, ORDERS, OWN_EXP, InTurns, Lap, matrix, passes_of_own_exp

#: Shapes of a million values, as (n, p, order); a vector has one column. Other shapes are compared with the first.
SHAPES = {
    "10000 x 100": (10_000, 100, "C"),
    "20 x 50000": (20, 50_000, "C"),
    "50 x 20000": (50, 20_000, "C"),
    "200 x 5000": (200, 5_000, "C"),
    "300 x 3400": (300, 3_400, "C"),
    "1000 x 1000": (1_000, 1_000, "C"),
    "250000 x 4": (250_000, 4, "C"),
    "vector": (1_000_000, 1, "C"),
    "20 x 50000, by column": (20, 50_000, "F"),
    "200 x 5000, by column": (200, 5_000, "F"),
    "10000 x 100, by column": (10_000, 100, "F"),
    "10000 x 100, every other column": (10_000, 100, "strided"),
}
DTYPES = ["float64", "float32"]

JOBS = ["transform", "inverse_transform"]
#: Targets of the result.
TARGETS = ["new array", "out=", "in place"]
OUTPUTS = ["raw", "standardized"]


class _Apply(InTurns):
    """A fitted matrix, the input of a job (for an inverse transform, the transformed values), and an output array."""

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
    """Seconds of a job that returns a new array."""

    params = (JOBS, FAMILIES, ORDERS, [10_000], [100])
    param_names = ("job", "family", "order", "n", "p")

    def setup(self, job: str, family: str, order: str, n: int, p: int) -> None:
        self.prepare(job, family, "standardized", order, n, p)

    def time_apply(self, job: str, family: str, order: str, n: int, p: int) -> None:
        self.run(job, "new array")


class OneThread(_Apply):
    """Time of a job on one thread, in passes of np.exp over the same matrix."""

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
    """Peak memory for arrays and other Python objects during a job, as a fraction of the memory of its result."""

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
    """Speed of a job relative to scikit-learn on a C-ordered matrix.

    powerkern uses all threads, and scikit-learn its defaults.
    """

    params = (JOBS, FAMILIES, OUTPUTS, ["scikit-learn"], [10_000], [100])
    param_names = ("job", "family", "output", "library", "n", "p")

    def setup(self, job: str, family: str, output: str, library: str, n: int, p: int) -> None:
        self.prepare(job, family, output, "C", n, p)
        # fitted by setting attributes: its fit would take most of the time and give the same lambdas
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


def laid_out(x: np.ndarray, order: str) -> np.ndarray:
    """Return the matrix in C order, in F order, or as every other column of a matrix twice as wide."""
    return np.repeat(x, 2, axis=1)[:, ::2] if order == "strided" else np.asarray(x, order=order)


#: The shape with which others are compared.
BEST = next(iter(SHAPES))
#: One of the alternating calls: a shape, a dtype and a number of threads.
Call = tuple[str, str, int]


@functools.lru_cache(maxsize=2 * len(SHAPES))
def _million(family: str, shape: str) -> np.ndarray:
    return matrix(family, *SHAPES[shape][:2])


def _call(job: str, family: str, output: str, call: Call) -> Callable[[], Any]:
    """Return a function that runs a job.

    Parameters
    ----------
    job : str
        "transform" or "inverse_transform".
    family : str
        The transform.
    output : {"standardized", "raw"}
        Output of the transform.
    call : Call
        Shape (a key of SHAPES), dtype and number of threads.
    """
    shape, dtype, n_threads = call
    x, (_, p, order) = _million(family, shape), SHAPES[shape]
    fit = pk.fit(x[:400], family=family, standardize=output == "standardized")
    values = (x if job == "transform" else fit.transform(x)).astype(dtype)
    given = laid_out(values[:, 0] if p == 1 else values, "C" if p == 1 else order)
    return lambda: getattr(fit, job)(given, n_threads=n_threads)


class _Regime(InTurns):
    """A job on a million values in a given shape; all results for this shape come from one run of alternating calls."""

    _measured: ClassVar[tuple[tuple[object, ...], dict[Any, Lap]]] = ((), {})

    def laps_of(self, job: str, family: str, output: str, shape: str) -> dict[Any, Lap]:
        """Measure a job for one shape, in a single run of alternating calls.

        The calls are, in both dtypes: the job for this shape on one and on two threads, and for the best shape on one
        thread. Passes of np.exp and of the package's own exp are timed in the same run.
        """
        regime = (job, family, output, shape, self.seconds)
        if _Regime._measured[0] != regime:
            every = [(shape, dtype, k) for dtype in DTYPES for k in (1, 2)] + [(BEST, dtype, 1) for dtype in DTYPES]
            calls = {call: _call(job, family, output, call) for call in every}
            laps = self.compare_on_free_cores({**calls, OWN_EXP: passes_of_own_exp()})
            _Regime._measured = regime, laps
        return _Regime._measured[1]

    def chosen(self, where: tuple[str, str, str, str], *calls: Call | str) -> list[Lap]:
        """Return the laps of the given calls; `where` holds the arguments of `laps_of`."""
        every = self.laps_of(*where)
        self.laps = {call if isinstance(call, str) else ", ".join(map(str, call)): every[call] for call in calls}
        return list(self.laps.values())


class Shape(_Regime):
    """CPU time of a job per value on one thread, relative to a matrix of 10,000 x 100 values of the same type."""

    params = (JOBS, ["yeo-johnson"], ["standardized"], ["20 x 50000", "200 x 5000", "vector"], DTYPES)
    param_names = ("job", "family", "output", "shape", "dtype")

    def track_over_best(self, job: str, family: str, output: str, shape: str, dtype: str) -> float:
        lap, best = self.chosen((job, family, output, shape), (shape, dtype, 1), (BEST, dtype, 1))
        sizes = [SHAPES[name][0] * SHAPES[name][1] for name in (shape, BEST)]
        return (lap.cpu / sizes[0]) / (best.cpu / sizes[1])


class OwnExp(_Regime):
    """CPU time of the best shape on one thread, in passes of the package's own exp over a block in cache.

    It reveals losses that affect all shapes alike, such as missing vectorisation.
    """

    params = (JOBS, FAMILIES, OUTPUTS, DTYPES)
    param_names = ("job", "family", "output", "dtype")

    def track_passes(self, job: str, family: str, output: str, dtype: str) -> float:
        lap, exponentials = self.chosen((job, family, output, BEST), (BEST, dtype, 1), OWN_EXP)
        return lap.cpu / exponentials.cpu  # of a million values each


class Float32(_Regime):
    """CPU time of a job for a float32 matrix on one thread, relative to a float64 matrix."""

    params = (JOBS, ["yeo-johnson"], ["standardized"], ["10000 x 100", "200 x 5000"])
    param_names = ("job", "family", "output", "shape")

    def track_over_float64(self, job: str, family: str, output: str, shape: str) -> float:
        double, single = self.chosen((job, family, output, shape), *((shape, dtype, 1) for dtype in DTYPES))
        return single.cpu / double.cpu


class Threads(_Regime):
    """Speedup of two threads over one in elapsed time, of the job and of np.exp in the same run."""

    params = (JOBS, ["yeo-johnson"], ["standardized"], ["20 x 50000", "vector"], DTYPES)
    param_names = ("job", "family", "output", "shape", "dtype")

    def track_two_over_one(self, job: str, family: str, output: str, shape: str, dtype: str) -> float:
        one, two, *_ = self.chosen((job, family, output, shape), (shape, dtype, 1), (shape, dtype, 2), *NP_EXP)
        return one.wall / two.wall

    def track_np_exp(self, job: str, family: str, output: str, shape: str, dtype: str) -> float:
        one, two = self.chosen((job, family, output, shape), *NP_EXP)
        return one.wall / two.wall


class Fit32(InTurns):
    """CPU time of a fit of a float32 matrix on one thread, relative to a fit of a float64 matrix."""

    params = (FAMILIES, ["C"], [(10_000, 100), (200, 5_000)])
    param_names = ("family", "order", "shape")

    def track_over_float64(self, family: str, order: str, shape: tuple[int, int]) -> float:
        given = {dtype: matrix(family, *shape, order=order, dtype=dtype) for dtype in DTYPES}
        calls = {dtype: lambda x=x: pk.fit(x, family, n_threads=1) for dtype, x in given.items()}
        laps = self.compare(calls)
        return laps["float32"].cpu / laps["float64"].cpu
