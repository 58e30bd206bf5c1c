"""Sketches: time in passes of np.exp, size, threads, and differences between fits from sketches and direct fits.

Reference values and data beside the repository (../shared) are used if present.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import powerkern as pk
from powerkern._estimators import routes
from powerkern.kernels.transforms.family import FAMILIES as FAMILY_CODES
from powerkern.sketch import extend, finish, fit_chunks, merge, range_of, summarize_chunk

from ._measure import FAMILIES, ORDERS, InTurns, matrix
from .bench_fit import Accuracy

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
#: Files of the folder of data that hold names, not numbers.
_NOT_DATA = ("topgear_names.csv",)


def fit(x: np.ndarray, family: str, n_threads: int | None = None) -> pk.PowerFit:
    """Fit from a sketch, in two passes over the data: one for the range, and one for the sketch."""
    grid = range_of(x, family, n_threads=n_threads).grid()
    return finish(summarize_chunk(x, grid, n_threads=n_threads), n_threads=n_threads)


class Fit(InTurns):
    """Time of a fit from a sketch, on one thread."""

    params = (FAMILIES, ORDERS, [10_000], [50])
    param_names = ("family", "order", "n", "p")

    def setup(self, family: str, order: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p, order)
        fit(self.x[:100], family)  # compiles
        pk.fit(self.x[:100], family)

    def track_exp_units(self, family: str, order: str, n: int, p: int) -> float:
        """Cost in passes of np.exp over the same matrix."""
        out = np.empty_like(self.x)
        self.compare({"sketch": lambda: fit(self.x, family, 1), "np.exp": lambda: np.exp(self.x, out=out)})
        return self.ratio("sketch", "np.exp")

    def track_time_over_direct(self, family: str, order: str, n: int, p: int) -> float:
        """Time of powerkern.fit, which sketches long columns, relative to a fit that reads the values several times."""
        unknown, code, unweighted = np.full(p, np.nan), FAMILY_CODES[family], None
        self.compare(
            {
                "powerkern": lambda: pk.fit(self.x, family, n_threads=1),
                "direct": lambda: routes.fit_in_memory(self.x, code, unknown, unweighted, 1),
            }
        )
        return self.ratio("powerkern", "direct")


class Parts(InTurns):
    """Time of each step of a fit, on one thread."""

    params = (FAMILIES, [100_000], [10])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        self.grid = range_of(self.x, family).grid()
        self.total = summarize_chunk(self.x, self.grid)
        finish(self.total)

    def time_range(self, family: str, n: int, p: int) -> None:
        range_of(self.x, family, n_threads=1)

    def time_sketch(self, family: str, n: int, p: int) -> None:
        summarize_chunk(self.x, self.grid, n_threads=1)

    def time_stream(self, family: str, n: int, p: int) -> None:
        functools.reduce(functools.partial(extend, family=family, n_threads=1), np.array_split(self.x, 10), None)

    def time_finish(self, family: str, n: int, p: int) -> None:
        finish(self.total, n_threads=1)

    def track_nanoseconds_a_value(self, family: str, n: int, p: int) -> float:
        self.compare({"sketch": lambda: summarize_chunk(self.x, self.grid, n_threads=1)})
        return 1e9 * self.laps["sketch"].wall / self.x.size

    def track_microseconds_a_bin(self, family: str, n: int, p: int) -> float:
        """Microseconds to fit lambda from a sketch, divided by the number of its bins."""
        self.compare({"finish": lambda: finish(self.total, n_threads=1)})
        return 1e6 * self.laps["finish"].wall / int(self.grid.n_bins.sum())

    def track_gigabytes_merged_a_second(self, family: str, n: int, p: int) -> float:
        self.compare({"merge": lambda: merge(self.total, self.total)})
        return 1e-9 * self.total.sums.nbytes / self.laps["merge"].wall

    def track_bytes_a_column(self, family: str, n: int, p: int) -> float:
        return len(self.total.to_bytes()) / p


class Tall(InTurns):
    """Fits of one long column, for which powerkern.fit uses all threads: time, speedup by threads, and bit-identity."""

    params = (FAMILIES, [1_000_000])
    param_names = ("family", "n")

    def setup(self, family: str, n: int) -> None:
        x = np.random.default_rng(0).standard_normal(n)
        self.x = np.exp(x, out=x) if family == "box-cox" else x
        pk.fit(self.x, family)  # compiles

    def _compare(self, family: str) -> None:
        self.compare(
            {
                "one thread": lambda: pk.fit(self.x, family, n_threads=1),
                "two threads": lambda: pk.fit(self.x, family, n_threads=2),
            }
        )

    def track_thread_scaling(self, family: str, n: int) -> float:
        """Track the speedup of two threads over one."""
        self._compare(family)
        return self.ratio("one thread", "two threads")

    def track_thread_scaling_of_cpu_time(self, family: str, n: int) -> float:
        """Track the speedup that two threads would give if no other process took CPU time."""
        self._compare(family)
        return 2.0 * self.laps["one thread"].cpu / self.laps["two threads"].cpu

    def track_exp_units(self, family: str, n: int) -> float:
        """Cost on one thread, in passes of np.exp."""
        out = np.empty_like(self.x)
        self.compare(
            {"powerkern": lambda: pk.fit(self.x, family, n_threads=1), "np.exp": lambda: np.exp(self.x, out=out)}
        )
        return self.ratio("powerkern", "np.exp")

    def track_differences(self, family: str, n: int) -> float:
        """Number of results that change in any bit with the number of threads."""
        one, *others = (pk.fit(self.x, family, n_threads=k)._table.kernel_rows for k in (1, 2, 5))
        return float(sum(np.count_nonzero(other != one) for other in others))


# --- accuracy -----------------------------------------------------------------------------------------

#: Families and columns.
Columns = Iterable[tuple[str, np.ndarray]]


def reference_columns(name: str) -> Columns:
    """Return the well-conditioned reference columns."""
    cases = Accuracy()
    cases.setup(name, "powerkern")
    return [(case.family, case.x) for case in cases.well]


def data_columns() -> Columns:
    """Return pairs (family, column) for all columns of the data beside the repository that the family can fit."""
    files = [file for file in sorted(_DATA.glob("*.csv*")) if file.name not in _NOT_DATA]
    if not files:
        raise NotImplementedError(f"no data at {_DATA}")
    found = []
    for x in (column for file in files for column in np.genfromtxt(file, delimiter=",", skip_header=1).T):
        values = x[~np.isnan(x)]
        if np.unique(values).size > 1:
            found += [(family, x) for family in FAMILIES if family != "box-cox" or values.min() > 0.0]
    return found


class Equality:
    """Fits of three chunks, compared column by column with fits of all rows in memory."""

    params = (["tests"],)
    param_names = ("columns",)

    def setup(self, name: str) -> None:
        self.columns = data_columns() if name == "data" else reference_columns(name)

    def track_worst(self, name: str) -> float:
        """Track the largest difference of lambda, relative to max(1, |lambda|)."""
        return max(self._difference(family, x) for family, x in self.columns)

    def track_refined(self, name: str) -> float:
        """Number of columns that were read again on a finer grid."""
        return float(sum(self._is_coarse(family, x) for family, x in self.columns))

    def track_unresolved(self, name: str) -> float:
        """Number of columns that the finest grid does not resolve."""
        return float(sum(self._fit(family, x).status[0] == pk.Status.UNRESOLVED for family, x in self.columns))

    @staticmethod
    def _fit(family: str, x: np.ndarray) -> pk.PowerFit:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return fit_chunks(np.array_split(x, 3), family)

    def _difference(self, family: str, x: np.ndarray) -> float:
        expected = pk.fit(x, family).lmbda[0]
        return float(abs(self._fit(family, x).lmbda[0] - expected) / max(1.0, abs(expected)))

    @staticmethod
    def _is_coarse(family: str, x: np.ndarray) -> bool:
        return bool(summarize_chunk(x, range_of(x, family).grid()).unresolved()[0])
