"""Fits of groups, beside lockstep in a matrix, the transform of a vector, and pandas' groupby.apply of SciPy's fit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from scipy import stats

import powerkern as pk

from ._measure import best_of, in_new_process

#: Groups, and their least and largest number of rows.
SHAPES = ((10_000, 50, 500), (50_000, 5, 50), (1_000, 500, 5_000))
ORDERS = ("sorted", "shuffled")
#: Groups that groupby.apply is timed on: its time is proportional.
_APPLIED = 100

_CHILD = """
import warnings
import numpy as np
import powerkern as pk
from asv_benches._measure import peak_memory
warnings.simplefilter("ignore")
codes = np.repeat(np.arange({groups}), 5)
x = np.random.default_rng(0).lognormal(size=codes.size)
pk.fit(x[:5000], groups=codes[:5000])
before = peak_memory()
fit = pk.fit(x, groups=codes)
print(peak_memory() - before - fit._table.kernel_rows.nbytes / 1e6)
"""


def rows(shape: tuple[int, int, int], order: str) -> tuple[np.ndarray, np.ndarray]:
    """Return values and labels."""
    groups, least, largest = shape
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), rng.integers(least, largest + 1, groups))
    labels = labels if order == "sorted" else rng.permutation(labels)
    return rng.gamma(3.0, size=labels.size), labels


class Groups:
    """One column in many groups."""

    params = (list(SHAPES), list(ORDERS), [1, 2])
    param_names = ("shape", "order", "threads")

    def setup(self, shape: tuple[int, int, int], order: str, threads: int) -> None:
        self.x, self.labels = rows(shape, order)
        self.fit = pk.fit(self.x, groups=self.labels)
        self.vector = pk.fit(self.x)
        self.matrix = self.x[: self.x.size // 200 * 200].reshape(200, -1)
        pk.fit(self.matrix)

    def time_fit(self, shape: tuple[int, int, int], order: str, threads: int) -> None:
        pk.fit(self.x, groups=self.labels, n_threads=threads)

    def time_transform(self, shape: tuple[int, int, int], order: str, threads: int) -> None:
        self.fit.transform(self.x, groups=self.labels, n_threads=threads)

    def track_fit_over_lockstep(self, shape: tuple[int, int, int], order: str, threads: int) -> float:
        """Time of a value over that in a matrix of 200 rows."""
        own = best_of(lambda: pk.fit(self.x, groups=self.labels, n_threads=threads))
        return own / best_of(lambda: pk.fit(self.matrix, n_threads=threads)) * self.matrix.size / self.x.size

    def track_transform_over_vector(self, shape: tuple[int, int, int], order: str, threads: int) -> float:
        """Time over that of the transform of all rows by one lambda."""
        own = best_of(lambda: self.fit.transform(self.x, groups=self.labels, n_threads=threads))
        return own / best_of(lambda: self.vector.transform(self.x, n_threads=threads))

    def track_groupby_apply_over_fit(self, shape: tuple[int, int, int], order: str, threads: int) -> float:
        """Time of groupby.apply(scipy.stats.yeojohnson), from some of the groups, over that of the fit."""
        frame = pd.DataFrame({"id": self.labels, "x": self.x})
        some = frame[frame["id"] < _APPLIED]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = best_of(lambda: some.groupby("id")["x"].apply(lambda x: stats.yeojohnson(x)[1]), at_least=1)
        own = best_of(lambda: pk.fit(self.x, groups=self.labels, n_threads=threads))
        return peer * len(frame) / len(some) / own


class Memory:
    """Groups of five rows: bytes a group by which the peak of a process grows, beside the results."""

    params = ([1_000_000],)
    param_names = ("groups",)
    unit = "bytes"

    def track_bytes_of_group(self, groups: int) -> float:
        return float(in_new_process(_CHILD.format(groups=groups))) * 1e6 / groups
