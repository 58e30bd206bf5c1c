"""powerkern.fit of whole matrices compared with scikit-learn's and SciPy's fits."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from sklearn.preprocessing import PowerTransformer

import powerkern as pk
from powerkern._estimators import limits

from ._measure import FAMILIES, ORDERS, PEER_COLUMNS, InTurns, in_new_process, matrix, peak_memory

#: Values in matrices that are parametrized by the number of rows alone.
VALUES = 1_000_000


def fit(x: np.ndarray, family: str, n_threads: int | None = None) -> pk.PowerFit:
    """Fit all columns without standardising; this file times such fits."""
    return pk.fit(x, family=family, standardize=False, n_threads=n_threads)


def fit_by_sklearn(x: np.ndarray, family: str) -> np.ndarray:
    return PowerTransformer(family, standardize=False).fit(x).lambdas_


def fit_by_scipy(x: np.ndarray, family: str) -> list[float]:
    one = scipy.stats.boxcox_normmax if family == "box-cox" else scipy.stats.yeojohnson_normmax
    options = {"method": "mle"} if family == "box-cox" else {}
    return [one(column, **options) for column in x.T]


#: Peers that are measured on PEER_COLUMNS columns; their time is scaled to all columns.
SCALED_PEERS: dict[str, Callable[[np.ndarray, str], Any]] = {
    f"scikit-learn, {PEER_COLUMNS} columns scaled": fit_by_sklearn,
    f"scipy, {PEER_COLUMNS} columns scaled": fit_by_scipy,
}


class Time:
    """Seconds of a fit of a million values."""

    params = (FAMILIES, [10_000], ORDERS, ["float64", "float32"])
    param_names = ("family", "n", "order", "dtype")

    def setup(self, family: str, n: int, order: str, dtype: str) -> None:
        self.x = matrix(family, n, VALUES // n, order, dtype)
        fit(self.x[:, :8], family)  # compiles

    def time_fit(self, family: str, n: int, order: str, dtype: str) -> None:
        fit(self.x, family)


class OneThread(InTurns):
    """Cost of a fit on one thread, in passes of np.exp over the same matrix."""

    params = (FAMILIES, ORDERS, [10_000], [100])
    param_names = ("family", "order", "n", "p")

    def setup(self, family: str, order: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p, order)
        self.out = np.empty_like(self.x)
        fit(self.x[:, :8], family)  # compiles

    def track_exp_units(self, family: str, order: str, n: int, p: int) -> float:
        calls = {"powerkern": lambda: fit(self.x, family, 1), "np.exp": lambda: np.exp(self.x, out=self.out)}
        self.compare(calls)
        return self.ratio("powerkern", "np.exp")

    def track_thread_scaling(self, family: str, order: str, n: int, p: int) -> float:
        """Track the speedup of two threads over one."""
        self.compare({"one thread": lambda: fit(self.x, family, 1), "two threads": lambda: fit(self.x, family, 2)})
        return self.ratio("one thread", "two threads")


#: Fractions of missing values.
_MISSING = {"1 % missing": 0.01, "30 % missing": 0.3}
#: Fits that are compared with the plain one.
REGIMES = ["weights", "counts", "half zero weights", *_MISSING, "given lambda", "given, weights"]
#: Weighted fits of a matrix with missing values.
REGIMES_WITH_GAPS = [f"{weights}, {gaps}" for weights in ("weights", "half zero weights") for gaps in _MISSING]


class Regimes(InTurns):
    """CPU time of a fit with weights, missing values or a given lambda, relative to the plain fit of the same matrix.

    A fit with both weights and missing values is compared with the unweighted fit of the same values.
    """

    params = (FAMILIES, [256, 10_000], ["weights", "1 % missing", "given lambda", "weights, 30 % missing"], [1])
    param_names = ("family", "n", "regime", "n_threads")

    def setup(self, family: str, n: int, regime: str, n_threads: int) -> None:
        self.plain = self.x = matrix(family, n, VALUES // n, "F")
        self.options: dict[str, Any] = {"lmbda": 0.5} if "given" in regime else {}
        rng = np.random.default_rng(1)
        share = next((share for gaps, share in _MISSING.items() if regime.endswith(gaps)), 0.0)
        if share > 0.0:
            gapped = np.where(rng.random(self.plain.shape) < share, np.nan, self.plain)
            self.x = np.asfortranarray(gapped)  # in the memory order of `plain`
        if regime == "counts":
            self.options["sample_weight"] = rng.integers(1, 6, n)
        elif "weights" in regime:
            self.plain = self.x
            zeros = rng.random(n) < 0.5 * regime.startswith("half")
            self.options["sample_weight"] = np.where(zeros, 0.0, rng.exponential(size=n))

    def fit(self, x: np.ndarray, family: str, n_threads: int, options: dict[str, Any]) -> pk.PowerFit:
        return pk.fit(x, family, standardize=False, n_threads=n_threads, **options)

    def track_cost(self, family: str, n: int, regime: str, n_threads: int) -> float:
        """CPU time relative to the plain fit without weights."""
        calls = {
            regime: lambda: self.fit(self.x, family, n_threads, self.options),
            "plain": lambda: self.fit(self.plain, family, n_threads, {}),
        }
        for call in calls.values():
            call()  # compiles
        self.compare(calls)
        return self.laps[regime].cpu / self.laps["plain"].cpu


class Shift(InTurns):
    """Time of a shifted Box-Cox fit on one thread, relative to a fit of values that were shifted before."""

    params = (["fit", "transform", "inverse_transform"], ORDERS, [10_000], [100])
    param_names = ("job", "order", "n", "p")

    def setup(self, job: str, order: str, n: int, p: int) -> None:
        self.sums = matrix("box-cox", n, p, order)
        self.x = self.sums - 1.0
        self.fitted, self.plain = pk.fit(self.x, "box-cox", shift=1.0), pk.fit(self.sums, "box-cox")
        self.z = self.plain.transform(self.sums)

    def run(self, job: str, fitted: pk.PowerFit, x: np.ndarray, shift: float) -> None:
        if job == "fit":
            pk.fit(x, "box-cox", shift=shift, n_threads=1)
        else:
            getattr(fitted, job)(x if job == "transform" else self.z, n_threads=1)

    def track_cost(self, job: str, order: str, n: int, p: int) -> float:
        calls = {
            "shifted": lambda: self.run(job, self.fitted, self.x, 1.0),
            "unshifted": lambda: self.run(job, self.plain, self.sums, 0.0),
        }
        self.compare(calls)
        return self.ratio("shifted", "unshifted")


class Peers(InTurns):
    """Speed of a fit relative to a peer on a C-ordered matrix; powerkern uses all threads, the peer its defaults."""

    params = (FAMILIES, list(SCALED_PEERS), [10_000], [100])
    param_names = ("family", "library", "n", "p")

    def setup(self, family: str, library: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        self.few = np.ascontiguousarray(self.x[:, :PEER_COLUMNS])
        fit(self.few, family)  # compiles

    def track_speedup(self, family: str, library: str, n: int, p: int) -> float:
        calls = {"powerkern": lambda: fit(self.x, family), library: lambda: SCALED_PEERS[library](self.few, family)}
        self.compare(calls)
        return p / PEER_COLUMNS * self.ratio(library, "powerkern")


class ByLength(InTurns):
    """Time per value in columns of n rows, relative to columns of 10,000 rows, on one thread."""

    params = (FAMILIES, ["C"], [20, 50, 255], ["unweighted"], [300_000])
    param_names = ("family", "order", "n", "weights", "n_values")

    def setup(self, family: str, order: str, n: int, weights: str, n_values: int) -> None:
        self.x, self.long = matrix(family, n, n_values // n, order), matrix(family, 10_000, n_values // 10_000)
        self.weight = np.random.default_rng(0).uniform(0.5, 2.0, n) if weights == "weighted" else None
        for x, weight in ((self.x, self.weight), (self.long, None)):
            pk.fit(x[:, :8], family, sample_weight=weight)  # compiles

    def compare_with_long(self, family: str) -> None:
        self.compare(
            {
                "fit": lambda: pk.fit(self.x, family, sample_weight=self.weight, n_threads=1),
                "long": lambda: pk.fit(self.long, family, n_threads=1),
            }
        )

    def track_ns(self, family: str, order: str, n: int, weights: str, n_values: int) -> float:
        """CPU time per value, in nanoseconds."""
        self.compare_with_long(family)
        return 1e9 * self.laps["fit"].cpu / self.x.size

    track_ns.unit = "ns"  # type: ignore[attr-defined]

    def track_over_long(self, family: str, order: str, n: int, weights: str, n_values: int) -> float:
        """CPU time per value, relative to unweighted columns of 10,000 values."""
        self.compare_with_long(family)
        return (self.laps["fit"].cpu / self.x.size) / (self.laps["long"].cpu / self.long.size)


class TwoThreads(InTurns):
    """Speedup of two threads over one, measured while two cores are free."""

    #: Rows and columns: one vector, a number of columns not divisible by two, many short columns.
    params = (FAMILIES, ["100000 x 1", "300000 x 3", "50 x 20000"], ["F"], ["float64"], ["plain"])
    param_names = ("family", "shape", "order", "dtype", "regime")

    def setup(self, family: str, shape: str, order: str, dtype: str, regime: str) -> None:
        n, p = (int(side) for side in shape.split(" x "))
        self.x, rng = matrix(family, n, p, order, dtype), np.random.default_rng(1)
        if "missing" in regime:
            self.x[rng.random(self.x.shape) < 0.05] = np.nan
        self.weight = rng.exponential(size=n) if "weights" in regime else None
        self.fit(family, 2)  # compiles

    def fit(self, family: str, n_threads: int) -> pk.PowerFit:
        return pk.fit(self.x, family, sample_weight=self.weight, n_threads=n_threads)

    def track_gain(self, family: str, shape: str, order: str, dtype: str, regime: str) -> float:
        self.compare_on_free_cores({"1 thread": lambda: self.fit(family, 1), "2 threads": lambda: self.fit(family, 2)})
        return self.ratio("1 thread", "2 threads")


class ShortPeers(InTurns):
    """Speed of the fit of a wide matrix relative to scikit-learn, on two threads."""

    #: Columns on which scikit-learn is measured; its time is scaled to all columns.
    few = 100
    params = (FAMILIES, [50], [20_000])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        fit(self.x[:, :8], family)  # compiles

    def track_speedup(self, family: str, n: int, p: int) -> float:
        part = np.ascontiguousarray(self.x[:, : self.few])
        self.compare(
            {"powerkern": lambda: fit(self.x, family, 2), "scikit-learn": lambda: fit_by_sklearn(part, family)}
        )
        return p / self.few * self.ratio("scikit-learn", "powerkern")


class LimitOnLambda(InTurns):
    """Time of fits with bounds on lambda for all columns, relative to fits that bound lambda only where necessary.

    Bounds are necessary in columns whose raw output may overflow. Fits run on one thread.
    """

    params = (FAMILIES, [30, 100])
    param_names = ("family", "n")

    def setup(self, family: str, n: int) -> None:
        self.x = matrix(family, n, VALUES // n, "F")
        fit(self.x[:, :8], family)  # compiles

    def track_speedup(self, family: str, n: int) -> float:
        self.compare(
            {"at a glance": lambda: fit(self.x, family, 1), "bounds": lambda: self.fit_with_all_bounds(family)}
        )
        return self.ratio("bounds", "at a glance")

    def fit_with_all_bounds(self, family: str) -> None:
        """Fit, computing the bounds on lambda for every column."""
        usual = limits.may_exceed_limit
        limits.may_exceed_limit = lambda family, results, ymax: np.full(len(results), True)
        try:
            fit(self.x, family, 1)
        finally:
            limits.may_exceed_limit = usual


class Columns(InTurns):
    """Microseconds and number of evaluations per column, on one thread."""

    params = (FAMILIES, [30, 1_000])
    param_names = ("family", "n")

    def setup(self, family: str, n: int) -> None:
        self.x = matrix(family, n, VALUES // n, "F")
        fit(self.x[:, :8], family)  # compiles

    def track_microseconds(self, family: str, n: int) -> float:
        self.compare({"powerkern": lambda: fit(self.x, family, 1)})
        return 1e6 * self.laps["powerkern"].wall / self.x.shape[1]

    track_microseconds.unit = "microseconds"  # type: ignore[attr-defined]

    def track_evaluations(self, family: str, n: int) -> float:
        """Mean number of evaluations, including those on a sample of the column."""
        return float(fit(self.x, family).n_iter.mean())


class Memory:
    """Memory in addition to the input, in MB."""

    params = (FAMILIES, ORDERS, [100_000], [20])
    param_names = ("family", "order", "n", "p")

    def track_resident(self, family: str, order: str, n: int, p: int) -> float:
        """Growth of the memory of a new process, in MB."""
        module = f"{__package__}.bench_fit"
        return float(in_new_process(f"from {module} import growth; print(growth({family!r}, {order!r}, {n}, {p}))"))

    track_resident.unit = "MB"  # type: ignore[attr-defined]

    def track_traced(self, family: str, order: str, n: int, p: int) -> float:
        """Peak of the memory that Python allocates during a fit for arrays and other objects, in MB."""
        x = matrix(family, n, p, order)
        fit(x[:, :8], family)
        tracemalloc.start()
        try:
            fit(x, family)
            return tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()

    track_traced.unit = "MB"  # type: ignore[attr-defined]


def growth(family: str, order: str, n: int, p: int) -> float:
    """Return the growth of the process's peak memory during a fit, in MB.

    The matrix exists, and the kernels are compiled, before the first measurement.

    Parameters
    ----------
    family : str
        The transform.
    order : {"C", "F"}
        Memory order.
    n, p : int
        Shape.
    """
    x = np.empty((n, p), order=order)
    np.random.default_rng(0).standard_gamma(4.0, out=x.ravel(order="K"))  # in place, since a copy would set the peak
    if family == "yeo-johnson":
        x -= 4.0
    fit(x[:100], family)  # compiles
    before = peak_memory()
    fit(x, family)
    return peak_memory() - before


# --- accuracy -----------------------------------------------------------------------------------------

_ROOT = Path(__file__).resolve().parents[1]
#: Columns with multiprecision optima: those of the tests, and more if they are beside the repository.
_CASES = {"tests": [_ROOT / "tests/data/mle.json"], "shared": [*_ROOT.parent.glob("shared/refs/mle_reference*.json")]}


class Case(NamedTuple):
    """A column, its optimum, and the effect of half-ulp changes of the data on the optimum.

    The effect is relative to max(1, |lambda|).
    """

    family: str
    x: np.ndarray
    lmbda: float
    sensitivity: float

    @property
    def ill(self) -> bool:
        return self.sensitivity > 1e-12

    def error(self, lmbda: float) -> float:
        error = abs(lmbda - self.lmbda) / max(1.0, abs(self.lmbda))
        return error if error == error else np.inf


def _read_cases(name: str) -> list[Case]:
    """Read the unweighted cases that have an optimum; the two collections use different field names."""
    cases = []
    for record in (record for file in _CASES[name] for record in json.loads(file.read_text())["cases"]):
        if name == "tests" and "weight" not in record:
            family, x, lmbda, sensitivity = (record[key] for key in ("family", "x", "lmbda", "sensitivity"))
        elif record.get("class") in ("well", "ill"):
            family = {"boxcox": "box-cox", "yeojohnson": "yeo-johnson"}[record["transform"]]
            x, lmbda, sensitivity = (record[key] for key in ("data", "lambda_star", "half_ulp_sensitivity"))
        else:
            continue
        cases.append(Case(family, np.array(x, dtype=float), float(lmbda), float(sensitivity)))
    return cases


def _fit_one(library: str, x: np.ndarray, family: str) -> float:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if library == "powerkern":
                return float(pk.fit(x, family=family).lmbda[0])
            peer = fit_by_sklearn if library == "scikit-learn" else fit_by_scipy
            return float(peer(x[:, np.newaxis], family)[0])
    except Exception:  # a peer that gives up (BracketError) has no result
        return np.nan


class Accuracy:
    """Distance of lambda from the multiprecision optimum, relative to max(1, |lambda|), in a collection of columns.

    A column is ill-conditioned if half-ulp changes of its values move the optimum by more than 1e-12.
    """

    params = (["tests"], ["powerkern", "scikit-learn", "scipy"])
    param_names = ("cases", "library")

    def setup(self, cases: str, library: str) -> None:
        every = _read_cases(cases)
        if not every:
            raise NotImplementedError
        self.well, self.ill = [case for case in every if not case.ill], [case for case in every if case.ill]

    def track_worst(self, cases: str, library: str) -> float:
        """Track the largest error among well-conditioned columns."""
        return max(case.error(_fit_one(library, case.x, case.family)) for case in self.well)

    def track_share_to_1e_10(self, cases: str, library: str) -> float:
        """Fraction of the well-conditioned columns that are accurate to 1e-10."""
        return float(np.mean([case.error(_fit_one(library, case.x, case.family)) <= 1e-10 for case in self.well]))

    def track_worst_ill(self, cases: str, library: str) -> float:
        """Track the largest error among ill-conditioned columns, in units of the effect of half-ulp changes."""
        errors = [case.error(_fit_one(library, case.x, case.family)) / case.sensitivity for case in self.ill]
        return max(errors, default=0.0)


class Identity:
    """Number of lambdas that change in any bit with settings that must not affect them."""

    params = (FAMILIES, [10_000], [40])
    param_names = ("family", "n", "p")

    def setup(self, family: str, n: int, p: int) -> None:
        self.x = matrix(family, n, p)
        self.expected = fit(self.x, family, 1).lmbda

    def differences(self, others: Iterable[np.ndarray]) -> float:
        return float(sum(np.count_nonzero(other != self.expected) for other in others))

    def track_differences(self, family: str, n: int, p: int) -> float:
        """Compare fits for different numbers of threads, memory orders, and orders of the columns."""
        shuffled = np.random.default_rng(0).permutation(p)
        others = [fit(x, family, k).lmbda for x in (self.x, np.asfortranarray(self.x)) for k in (1, 2, 8)]
        others += [fit(self.x[:, shuffled], family, k).lmbda[np.argsort(shuffled)] for k in (1, 2, 8)]
        return self.differences(others)

    def track_differences_at_once(self, family: str, n: int, p: int) -> float:
        """Compare fits in eight concurrent Python threads, in a forked child, and unpickled, with a plain fit."""
        with ThreadPoolExecutor(8) as pool:
            fits = list(pool.map(lambda _: fit(self.x, family), range(8)))
        fits.append(pickle.loads(pickle.dumps(fits[0])))
        if "fork" in multiprocessing.get_all_start_methods():
            with multiprocessing.get_context("fork").Pool(1) as child:
                fits.append(child.apply(fit, (self.x, family)))
        return self.differences(one.lmbda for one in fits)
