"""powerkern.dask compared with powerkern.fit in memory: time, passes over the data, memory, differences of lambda."""

from __future__ import annotations

import itertools
import threading
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import powerkern as pk
from powerkern.dask import fit

from ._measure import FAMILIES, InTurns, lap_of, matrix, peak_memory

_THREADS = 2


class BesideNumpy(InTurns):
    """Time of a fit of row chunks on Dask's threads, relative to powerkern.fit of the whole array."""

    params = (FAMILIES, [100_000], [20])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        self.chunked = da.from_array(self.x, chunks=(n // 20, p))
        self._fit(family)
        pk.fit(self.x[:100], family)

    def _fit(self, family: str) -> pk.PowerFit:
        with dask.config.set(scheduler="threads", num_workers=_THREADS):
            return fit(self.chunked, family)

    def track_time_over_numpy(self, family: str, n: int, p: int) -> float:
        self.compare({"dask": lambda: self._fit(family), "numpy": lambda: pk.fit(self.x, family, n_threads=_THREADS)})
        return self.ratio("dask", "numpy")

    def track_time_over_one_thread(self, family: str, n: int, p: int) -> float:
        self.compare({"dask": lambda: self._fit(family), "numpy": lambda: pk.fit(self.x, family, n_threads=1)})
        return self.ratio("dask", "numpy")


class BesideSum(BesideNumpy):
    """Time of a fit of all columns, relative to Dask's sum of one column, with chunks in memory."""

    def _compare(self, family: str) -> None:
        def total() -> Any:
            with dask.config.set(scheduler="threads", num_workers=_THREADS):
                return self.chunked[:, 0].sum().compute()

        self.compare({"fit": lambda: self._fit(family), "sum": total})

    def track_rows_a_second(self, family: str, n: int, p: int) -> float:
        self._compare(family)
        return n / self.laps["fit"].wall

    def track_time_over_sum_of_a_column(self, family: str, n: int, p: int) -> float:
        """Time of the fit divided by the number of columns, relative to the time of Dask's sum of one column."""
        self._compare(family)
        return self.ratio("fit", "sum") / p


class Chunks:
    """Accuracy of lambda, and reads per chunk, for Dask arrays whose chunks divide rows, columns, or both."""

    params = (FAMILIES, [10_000], [12])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        self.x[::7, ::3] = np.nan

    def track_worst(self, family: str, n: int, p: int) -> float:
        """Track the largest difference of lambda from powerkern.fit, relative to max(1, |lambda|)."""
        expected = pk.fit(self.x, family).lmbda
        sizes = itertools.product((n, n // 3 + 1, 997), (p, 5, 1))
        with dask.config.set(scheduler="synchronous"):
            found = [fit(da.from_array(self.x, chunks=size), family).lmbda for size in sizes]
        return float(np.max(np.abs(found - expected) / np.maximum(1.0, np.abs(expected))))

    def track_passes(self, family: str, n: int, p: int) -> float:
        """Largest number of times that a chunk is computed."""
        rows = n // 10
        reads, lock = np.zeros(10, dtype=int), threading.Lock()

        def read(_: np.ndarray, block_info: Any = None) -> np.ndarray:
            i = block_info[0]["chunk-location"][0]
            with lock:
                reads[i] += 1
            return self.x[i * rows : (i + 1) * rows].copy()

        empty = da.zeros(self.x.shape, chunks=(rows, p))
        with dask.config.set(scheduler="threads", num_workers=_THREADS):
            fit(empty.map_blocks(read, dtype=self.x.dtype, meta=self.x[:0]), family)
        return float(reads.max())


class LargerThanMemory:
    """A fit in a worker process that has less memory than the data, which are generated chunk by chunk."""

    params = ([600_000], [10], [75_000])
    param_names = ("n", "p", "rows")
    timeout = 300

    def track_growth_in_chunks(self, n: int, p: int, rows: int) -> float:
        """Growth of the worker's peak memory, in units of one chunk."""
        data = da.random.default_rng(0).random(size=(n, p), chunks=(rows, p))
        settings = {"distributed.logging.distributed": "error"}
        with (
            warnings.catch_warnings(),
            dask.config.set(settings),
            LocalCluster(1, 1, processes=True, dashboard_address=":0", memory_limit="450MB") as cluster,
            Client(cluster) as client,
        ):
            fit(data[:rows])  # compiles
            before = client.submit(peak_memory, pure=False).result()
            self.laps = {"fit": lap_of(lambda: fit(data))}
            after = client.submit(peak_memory, pure=False).result()
        return float((after - before) / (8e-6 * rows * p))
