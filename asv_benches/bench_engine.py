"""The engine that runs kernels: gathering columns from a matrix, and scheduling groups of columns on threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from powerkern._engine.by_column import for_each_group
from powerkern.kernels.transforms import gather as columnwise

from ._measure import NP_EXP, InTurns, matrix, passes_of_np_exp


class Cores(InTurns):
    """Speedup of two threads over one for np.exp on data in cache, which shows how many cores are free now."""

    def track_thread_scaling(self) -> float:
        with ThreadPoolExecutor(2) as pool:
            self.compare(passes_of_np_exp(pool))
        return self.ratio(*NP_EXP)


class Gather(InTurns):
    """Time to copy the columns of a C-ordered matrix to contiguous memory, by powerkern or NumPy's transposed copy."""

    params = (["powerkern", "numpy"], [10_000], [96])
    param_names = ("library", "n", "p")

    def setup(self, library: str, n: int, p: int) -> None:
        self.x = matrix("yeo-johnson", n, p)
        self.out, self.columns = np.empty_like(self.x), np.empty((columnwise.CACHE_LINE, n))
        self.gather()

    def gather(self) -> None:
        for start in range(0, self.x.shape[1], columnwise.CACHE_LINE):
            columnwise.gather(self.x[:, start : start + columnwise.CACHE_LINE], self.columns)

    def copy(self) -> None:
        for start in range(0, self.x.shape[1], columnwise.CACHE_LINE):
            np.copyto(self.columns, self.x[:, start : start + columnwise.CACHE_LINE].T)

    def track_exp_units(self, library: str, n: int, p: int) -> float:
        call = {"powerkern": self.gather, "numpy": self.copy}[library]
        self.compare({library: call, "np.exp": lambda: np.exp(self.x, out=self.out)})
        return self.ratio(library, "np.exp")


class Driver(InTurns):
    """Microseconds to schedule a group of columns, without the work on the group."""

    params = ([1, 2], [10_000], [8_000])
    param_names = ("n_threads", "n", "p")

    def track_microseconds_per_group(self, n_threads: int, n: int, p: int) -> float:
        self.compare({"powerkern": lambda: for_each_group(lambda group: None, (n, p), n_threads)})
        return 1e6 * self.laps["powerkern"].wall / (p / columnwise.CACHE_LINE)

    track_microseconds_per_group.unit = "microseconds"  # type: ignore[attr-defined]
