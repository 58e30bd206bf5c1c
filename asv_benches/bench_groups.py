"""Fits of groups: compared with short columns in a matrix, transforms of a vector, and pandas' groupby with SciPy."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import optimize, stats

import powerkern as pk

from ._measure import best_of, in_new_process

#: Groups, and their least and largest number of rows.
SHAPES = ((10_000, 50, 500), (50_000, 5, 50), (1_000, 500, 5_000))
ORDERS = ("sorted", "shuffled")
#: Groups on which groupby.apply is timed; its time is proportional to their number.
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
    """Return the values of the rows, and their group labels, which are "sorted" or "shuffled" according to `order`.

    `shape` is the number of groups, and the smallest and the largest number of rows of a group.
    """
    groups, least, largest = shape
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(groups), rng.integers(least, largest + 1, groups))
    labels = labels if order == "sorted" else rng.permutation(labels)
    return rng.gamma(3.0, size=labels.size), labels


class Groups:
    """Fits and transforms of one column with many groups, in seconds and relative to other ways of computing them."""

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
        """Time of the fit per value, relative to a matrix of 200 rows, whose columns are fitted in lockstep."""
        own = best_of(lambda: pk.fit(self.x, groups=self.labels, n_threads=threads))
        return own / best_of(lambda: pk.fit(self.matrix, n_threads=threads)) * self.matrix.size / self.x.size

    def track_transform_over_vector(self, shape: tuple[int, int, int], order: str, threads: int) -> float:
        """Time of the transform by group, relative to a transform of all rows by one lambda."""
        own = best_of(lambda: self.fit.transform(self.x, groups=self.labels, n_threads=threads))
        return own / best_of(lambda: self.vector.transform(self.x, n_threads=threads))

    def track_groupby_apply_over_fit(self, shape: tuple[int, int, int], order: str, threads: int) -> float:
        """Time of groupby.apply(scipy.stats.yeojohnson), relative to the fit.

        The time of groupby.apply is extrapolated from some of the groups.
        """
        frame = pd.DataFrame({"id": self.labels, "x": self.x})
        some = frame[frame["id"] < _APPLIED]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = best_of(lambda: some.groupby("id")["x"].apply(lambda x: stats.yeojohnson(x)[1]), at_least=1)
        own = best_of(lambda: pk.fit(self.x, groups=self.labels, n_threads=threads))
        return peer * len(frame) / len(some) / own


class Memory:
    """Growth of a process's peak memory during a fit, without the results, in bytes per group of five rows."""

    params = ([1_000_000],)
    param_names = ("groups",)
    unit = "bytes"

    def track_bytes_of_group(self, groups: int) -> float:
        return float(in_new_process(_CHILD.format(groups=groups))) * 1e6 / groups


class Peers:
    """Box-Cox by group on one thread, compared with coreforecast (C++) and OpenTURNS (C++, a call per group)."""

    params = (["powerkern", "coreforecast", "openturns"], list(SHAPES))
    param_names = ("library", "shape")

    def setup(self, library: str, shape: tuple[int, int, int]) -> None:
        try:
            self.peer = importlib.import_module(library)
        except ImportError:
            raise NotImplementedError(f"{library} is not installed") from None  # asv skips the benchmark
        self.x, self.labels = rows(shape, "sorted")
        self.ends = np.flatnonzero(np.diff(self.labels, prepend=-1, append=-1))
        self.lambdas = _fit_lambdas(library, self.x, self.labels, self.ends)
        self.apply = _transform_of(library, self.x, self.labels, self.ends)

    def time_fit(self, library: str, shape: tuple[int, int, int]) -> None:
        _fit_lambdas(library, self.x, self.labels, self.ends)

    def time_transform(self, library: str, shape: tuple[int, int, int]) -> None:
        self.apply()

    def track_fit_over_powerkern(self, library: str, shape: tuple[int, int, int]) -> float:
        """Peer's time per group, relative to ours."""
        own = best_of(lambda: _fit_lambdas("powerkern", self.x, self.labels, self.ends))
        some = slice(len(self.lambdas) + 1)
        peer = best_of(lambda: _fit_lambdas(library, self.x, self.labels, self.ends[some]), at_least=1)
        return peer / own * (self.ends.size - 1) / len(self.lambdas)

    def track_transform_over_powerkern(self, library: str, shape: tuple[int, int, int]) -> float:
        """Peer's time per value, relative to ours."""
        own = best_of(_transform_of("powerkern", self.x, self.labels, self.ends))
        n = self.x.size if library != "openturns" else self.ends[_SEPARATE]
        return best_of(self.apply) / own * self.x.size / n

    def track_error_of_lambda(self, library: str, shape: tuple[int, int, int]) -> float:
        """Largest error of lambda in the first groups; the exact lambda is the root of the score in long double."""
        return max(
            abs(self.lambdas[g] - reference_lambda(self.x[self.ends[g] : self.ends[g + 1]])) for g in range(_CHECKED)
        )


#: Groups on which OpenTURNS is measured, because it fits one at a time; groups whose lambda is compared.
_SEPARATE, _CHECKED = 20, 20


def _fit_lambdas(library: str, x: np.ndarray, labels: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the lambda of each group by a library; by OpenTURNS, of the first `_SEPARATE` groups only.

    Parameters
    ----------
    library : str
        Name of the library.
    x, labels : (n,) ndarray
        Values and their groups.
    ends : (n_groups + 1,) ndarray
        First row of each group, and n.
    """
    if library == "powerkern":
        return pk.fit(x, "box-cox", groups=labels, n_threads=1).lmbda[:, 0]
    if library == "coreforecast":
        from coreforecast.grouped_array import GroupedArray
        from coreforecast.scalers import LocalBoxCoxScaler

        scaler = LocalBoxCoxScaler("loglik").fit(GroupedArray(x, ends.astype(np.int32), num_threads=1))
        return np.asarray(scaler.stats_)[:, 0]
    import openturns

    parts = [openturns.Sample(x[a:b, np.newaxis]) for a, b in itertools.pairwise(ends[: _SEPARATE + 1])]
    return np.array([openturns.BoxCoxFactory().build(part).getLambda()[0] for part in parts])


def _transform_of(library: str, x: np.ndarray, labels: np.ndarray, ends: np.ndarray) -> Callable[[], object]:
    """Fit the groups by a library; return a function that transforms their rows.

    The arguments are those of `_fit_lambdas`. By OpenTURNS, only the first `_SEPARATE` groups are fitted.
    """
    if library == "powerkern":
        fit = pk.fit(x, "box-cox", groups=labels, standardize=False)
        return lambda: fit.transform(x, labels, n_threads=1)
    if library == "coreforecast":
        from coreforecast.grouped_array import GroupedArray
        from coreforecast.scalers import LocalBoxCoxScaler

        rows_by_group = GroupedArray(x, ends.astype(np.int32), num_threads=1)
        scaler = LocalBoxCoxScaler("loglik").fit(rows_by_group)
        return lambda: scaler.transform(rows_by_group)
    import openturns

    parts = [openturns.Sample(x[a:b, np.newaxis]) for a, b in itertools.pairwise(ends[: _SEPARATE + 1])]
    fits = [openturns.BoxCoxFactory().build(part) for part in parts]
    return lambda: [fit(part) for fit, part in zip(fits, parts, strict=True)]


def reference_lambda(x: np.ndarray) -> float:
    """Return the root between -1 and 2 of Box-Cox's score, in long double."""
    logs = np.log(x.astype(np.longdouble))

    def score(lmbda: float) -> float:
        m = np.longdouble(lmbda)
        powers = np.exp(m * logs)
        psi, slope = powers / m, (powers * (logs * m - 1)) / m**2
        psi, slope = psi - psi.mean(), slope - slope.mean()
        return float(logs.mean() - (psi * slope).mean() / (psi * psi).mean())

    return float(optimize.brentq(score, -1.0 + 1e-9, 2.0, xtol=1e-15, rtol=1e-14))
