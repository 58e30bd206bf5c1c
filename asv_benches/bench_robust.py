"""Robust fits: time in passes of np.exp, agreement with R's cellWise, the paper's simulation, and extreme columns."""

from __future__ import annotations

import json
import math
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy.special import ndtr, ndtri

import powerkern as pk
from powerkern._estimators.estimators import ESTIMATORS
from powerkern.kernels import bisquare_objective
from powerkern.kernels.location import huber, loc_scale
from powerkern.kernels.transforms import rectified as kernels

from ._measure import FAMILIES, InTurns, exp_units, lap_of

RESISTANT = ["robust", "rewml-nr", "carroll", "mtl"]
_SHARED = Path(__file__).resolve().parents[2] / "shared"


def contaminated(n: int, p: int) -> np.ndarray:
    """Return lognormal columns in which a twentieth of the values are distant outliers."""
    rng = np.random.default_rng(20240601)
    x = rng.lognormal(sigma=0.7, size=(n, p))
    x[rng.random((n, p)) < 0.05] *= 50.0
    return x


def fit(
    X: np.ndarray,
    family: str,
    estimator: str = "robust",
    *,
    sample_weight: np.ndarray | None = None,
    n_threads: int | None = None,
    **options: Any,
) -> pk.PowerFit:
    """Fit by an estimator, given its name and options.

    Parameters
    ----------
    X : (n, p) ndarray
        The data.
    family : str
        The transform.
    estimator : str
        Name of the estimator.
    sample_weight : (n,) ndarray, optional
        Weights of the rows.
    n_threads : int, optional
        Number of threads.
    **options
        Options of the estimator.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns that are not certified
        return pk.fit(X, family, ESTIMATORS[estimator](**options), sample_weight=sample_weight, n_threads=n_threads)


# --- cost ---------------------------------------------------------------------------------------------


class OneThread(InTurns):
    """Time to fit a matrix on one thread, with sort and gather, in passes of np.exp; and speedup by a second thread."""

    params = (RESISTANT, ["yeo-johnson"], [2_000], [40])
    param_names = ("estimator", "family", "n", "p")

    def setup(self, estimator: str, family: str, n: int, p: int) -> None:
        self.x = contaminated(n, p)
        self.moderate, self.out = np.log(self.x), np.empty_like(self.x)
        fit(self.x[:, :8], family, estimator)  # compiles

    def track_exp_units(self, estimator: str, family: str, n: int, p: int) -> float:
        calls = {
            "powerkern": lambda: fit(self.x, family, estimator, n_threads=1),
            "np.exp": lambda: np.exp(self.moderate, out=self.out),
        }
        self.compare(calls)
        return self.ratio("powerkern", "np.exp")

    track_exp_units.unit = "np.exp passes"  # type: ignore[attr-defined]

    def track_thread_scaling(self, estimator: str, family: str, n: int, p: int) -> float:
        """Track the speedup of two threads over one."""
        one, two = (lambda threads=t: fit(self.x, family, estimator, n_threads=threads) for t in (1, 2))
        self.compare({"one thread": one, "two threads": two})
        return self.ratio("one thread", "two threads")


class Weighted(InTurns):
    """CPU time of a fit with fractional weights, relative to an unweighted fit, on one thread, with sort and gather."""

    params = ([*RESISTANT, "ppcc"], [100, 2_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        self.x = contaminated(n, 20_000 // n)
        self.weight = np.random.default_rng(1).exponential(3.0, n)
        for weight in (None, self.weight):
            fit(self.x[:, :8], "box-cox", estimator, sample_weight=weight)  # compiles

    def track_ratio(self, estimator: str, n: int) -> float:
        weights = {"plain": None, "weighted": self.weight}
        self.compare(
            {
                name: lambda w=w: fit(self.x, "box-cox", estimator, sample_weight=w, n_threads=1)
                for name, w in weights.items()
            }
        )
        return self.ratio("weighted", "plain")

    track_ratio.unit = "times"  # type: ignore[attr-defined]


class ShortColumns(InTurns):
    """CPU time per value of short columns on one thread, relative to columns of 10,000 values.

    Sort and gather are included.
    """

    params = ([*RESISTANT, "ppcc"], [20, 50, 300])
    param_names = ("estimator", "n")
    values = 1_000_000

    def setup(self, estimator: str, n: int) -> None:
        self.short, self.long = contaminated(n, self.values // n), contaminated(10_000, self.values // 10_000)
        fit(self.short[:, :8], "yeo-johnson", estimator)  # compiles

    def track_over_long(self, estimator: str, n: int) -> float:
        laps = self.compare(
            {
                "short": lambda: fit(self.short, "yeo-johnson", estimator, n_threads=1),
                "long": lambda: fit(self.long, "yeo-johnson", estimator, n_threads=1),
            }
        )
        return laps["short"].cpu / self.short.size / (laps["long"].cpu / self.long.size)

    def track_ns(self, estimator: str, n: int) -> float:
        """CPU time per value, in nanoseconds."""
        self.track_over_long(estimator, n)
        return 1e9 * self.laps["short"].cpu / self.short.size

    track_ns.unit = "ns"  # type: ignore[attr-defined]


class Spectra(InTurns):
    """Milliseconds to fit 500 columns of 180 values, an example of many short columns."""

    params = (["robust"], FAMILIES, ["simulated"])
    param_names = ("estimator", "family", "data")

    def setup(self, estimator: str, family: str, data: str) -> None:
        self.x = self.load(data)
        if family == "box-cox":
            self.x = np.abs(self.x) + 1.0
        fit(self.x, family, estimator)  # compiles

    def load(self, data: str) -> np.ndarray:
        if data == "simulated":
            return contaminated(180, 500)
        path = _SHARED / "data/data_glass.csv.gz"
        if not path.exists():
            raise NotImplementedError
        return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 13:513]

    def track_ms(self, estimator: str, family: str, data: str) -> float:
        self.compare({"all threads": lambda: fit(self.x, family, estimator)})
        return 1e3 * self.laps["all threads"].wall

    track_ms.unit = "ms"  # type: ignore[attr-defined]

    def track_evaluations(self, estimator: str, family: str, data: str) -> float:
        """Track the mean number of evaluations of objective and likelihood per column, including those on a sample."""
        return float(fit(self.x, family, estimator).n_iter.mean())


@numba.njit(error_model="numpy")
def _transform(
    x: np.ndarray, logs: np.ndarray, n_negative: int, below: float, lmbda: float, rule: int, y: np.ndarray
) -> None:
    """Compute the rectified transform of a sorted column, as the kernels do.

    Parameters
    ----------
    x, logs : ndarray
        The sorted column with room for scratch, and its logs.
    n_negative : int
        Number of negative values.
    below : float
        Shift of the exponent for negative values: 0 or 2.
    lmbda : float
        Lambda.
    rule : int
        Code of the rule of rectification.
    y : ndarray
        Receives the transform.
    """
    n = x.size - kernels.ROOM
    rank = kernels.tail_rank(n, 0.25)
    quartiles = rank, n - 1 - rank
    kernels.transform_sorted(kernels.SortedColumn(x, logs, n, n_negative, below, *quartiles), lmbda, rule, y)


@numba.njit(error_model="numpy")
def _huber(y: np.ndarray) -> loc_scale.LocScale:
    return huber.sorted_one_step(y, y[:0], 1.5, huber.CELLWISE_BETA)


class _Column:
    """A sorted column in the form that the kernel of the objective requires."""

    def __init__(self, x: np.ndarray, family: str) -> None:
        self.x = np.sort(np.asarray(x, dtype=float))
        if family == "box-cox":
            self.logs, self.n_negative, self.below = np.log(self.x), 0, 0.0
        else:
            self.logs = np.copysign(np.log1p(np.abs(self.x)), self.x)
            self.n_negative, self.below = int(np.sum(self.x < 0.0)), 2.0
        n = self.x.size
        self.scores = ndtri((np.arange(1, n + 1) - 1.0 / 3.0) / (n + 1.0 / 3.0))
        room = np.ones(kernels.ROOM)
        self.x, self.logs, self._y = np.append(self.x, room), np.append(self.logs, room), np.ones(n + room.size)
        self.y = self._y[:n]

    def transform(self, lmbda: float, rule: int) -> None:
        _transform(self.x, self.logs, self.n_negative, self.below, lmbda, rule, self._y)

    def huber(self) -> loc_scale.LocScale:
        return _huber(self.y)

    def objective(self, lmbda: float, rule: int) -> float:
        self.transform(lmbda, rule)
        loc, scale = self.huber()[:2]
        return float(bisquare_objective(self.y, self.scores, loc, scale))


class Kernels:
    """Time of one evaluation of the objective, or of a part of it, in passes of np.exp, including calls from Python."""

    params = (["transform", "huber", "bisquare", "objective"], ["yeo-johnson"], [10_000])
    param_names = ("part", "family", "n")

    def setup(self, part: str, family: str, n: int) -> None:
        x = contaminated(n, 1)[:, 0]
        self.column = _Column(x if family == "box-cox" else x - np.median(x), family)
        self.column.transform(0.3, kernels.QUARTILES)
        self.run(part)

    def run(self, part: str) -> None:
        column = self.column
        if part == "transform":
            column.transform(0.3, kernels.QUARTILES)
        elif part == "huber":
            column.huber()
        elif part == "bisquare":
            bisquare_objective(column.y, column.scores, 0.0, 1.0)
        else:
            column.objective(0.3, kernels.QUARTILES)

    def track_exp_passes(self, part: str, family: str, n: int) -> float:
        return exp_units(lambda: self.run(part), n)

    track_exp_passes.unit = "np.exp passes"  # type: ignore[attr-defined]


# --- agreement with R ---------------------------------------------------------------------------------

RECORDS = {
    "synthetic": "",
    "brands": "data_brands.csv",
    "clothes": "data_clothes.csv",
    "philips": "data_philips.csv",
    "topgear_paper": "topgear_paper.csv",
    "glass_part": "data_glass.csv.gz",
}
_FAMILIES = {"YJ": "yeo-johnson", "BC": "box-cox"}


@cache
def _data(file: str) -> dict[str, np.ndarray]:
    if not (_SHARED / "refs/cellwise").is_dir():
        raise NotImplementedError
    if not RECORDS[file]:
        paths = (_SHARED / "refs/cellwise/inputs").glob("syn_*.csv")
        found = {path.stem.removeprefix("syn_"): np.genfromtxt(path, skip_header=1) for path in paths}
    else:
        path = _SHARED / "data" / RECORDS[file]
        table = np.genfromtxt(path, delimiter=",", names=True, deletechars="", replace_space=" ")
        found = {name: table[name] for name in table.dtype.names}
    return {name: x[np.isfinite(x)] for name, x in found.items()}


@cache
def _records(file: str) -> list[dict[str, Any]]:
    _data(file)
    read = json.loads((_SHARED / f"refs/cellwise/{file}.json").read_text())
    read = read["records"] if isinstance(read, dict) else read
    return [r for r in read if r["robust"] and r["standardize"] and "error" not in r]


class Cellwise:
    """Differences between fits by R's rules and all records in a file of R's cellWise 2.5.3 with standardize=TRUE."""

    params = (["brands"],)
    param_names = ("records",)

    def setup(self, file: str) -> None:
        _records(file)

    def fits(self, file: str, **options: str) -> Any:
        """Yield each record with its column (without missing values) and our fit of this column."""
        for record in _records(file):
            x = _data(file)[record["column"]]
            yield record, x, fit(x, _FAMILIES[record["type"]], "rewml", convention="cellwise", **options)

    def track_other_cells(self, file: str) -> int:
        """Count the records whose excluded cells differ from ours.

        With missing values, only the numbers of excluded cells are compared.
        """
        differ = 0
        for record, x, fitted in self.fits(file):
            left_out = np.flatnonzero(fitted.weights(x) == 0.0).tolist()
            whole = x.size == record["n"]
            differ += left_out != sorted(record["w0"]) if whole else len(left_out) != len(record["w0"])
        return differ

    def track_lambda(self, file: str) -> float:
        return max(abs(fitted.lmbda[0] - record["lambda"]) for record, _, fitted in self.fits(file))

    def track_from_polished(self, file: str) -> float:
        """Largest distance from R's lambda after refinement to tolerance 1e-12.

        The error of the unrefined lambda is near 1e-8/curvature.
        """
        return max(abs(fitted.lmbda[0] - record["lambda_polished"]) for record, _, fitted in self.fits(file))

    def track_from_optimum(self, file: str) -> float:
        """Largest difference in lambda from the maximum likelihood fit of the cells that R keeps in its last fit."""
        worst = 0.0
        for record, x, fitted in self.fits(file):
            if x.size == record["n"]:
                u = np.delete((x - record["locx"]) / record["scalex"], record["w0_lastfit"])
                family = _FAMILIES[record["type"]]
                worst = max(worst, abs(fitted.lmbda[0] - fit(u, family, "mle").lmbda[0]))
        return worst

    def track_objective_over_rs(self, file: str) -> float:
        """Largest excess of the objective at our start over the objective at R's start."""
        worst = -math.inf
        for record, x, fitted in self.fits(file, search="global"):
            column = _Column((x - record["locx"]) / record["scalex"], _FAMILIES[record["type"]])
            ours, theirs = (column.objective(v, kernels.CELLWISE) for v in (fitted.lmbda0[0], record["lambda0"]))
            worst = max(worst, ours - theirs)
        return worst


class Units:
    """Largest relative error of Huber's location and scale of the transformed columns of refs/cellwise/units.json."""

    def setup(self) -> None:
        _data("synthetic")

    def track_worst(self) -> float:
        worst = 0.0
        for unit in json.loads((_SHARED / "refs/cellwise/units.json").read_text())["units"]:
            for kind in ("yj", "bc"):
                for record in unit[kind]:
                    for values, figures in ((kind, "huber_plain"), (f"{kind}r", "huber_rect")):
                        column = _Column(np.ones(len(record[values])), "box-cox")
                        column.y = np.sort(record[values])
                        loc, scale = column.huber()[:2]
                        errors = abs(np.array([loc, scale]) - record[figures])
                        worst = max(worst, float(errors.max() / abs(record[figures][1])))
        return worst


class TopGear:
    """Lambda of a Box-Cox fit of a column of the paper's section 4."""

    params = (["MPG"], ["mle", "rewml"], ["paper"])
    param_names = ("column", "estimator", "convention")

    def setup(self, column: str, estimator: str, convention: str) -> None:
        self.x = _data("topgear_paper")[column]

    def track_lambda(self, column: str, estimator: str, convention: str) -> float:
        options = {} if estimator == "mle" else {"convention": convention}
        return float(fit(self.x, "box-cox", estimator, **options).lmbda[0])


# --- the paper's sections 2.6 and 3 -------------------------------------------------------------------


class Sensitivity:
    """Sensitivity of lambda to a value z added to 99 normal quantiles (Box-Cox: exponentials), by R's rules."""

    params = (FAMILIES,)
    param_names = ("family",)

    def curves(self, family: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the values z, and the sensitivity curves of RewML and of maximum likelihood."""
        base, z = ndtri(np.arange(1, 100) / 100), np.linspace(-10.0, 10.0, 401)
        X, x = np.vstack([np.repeat(base[:, None], z.size, axis=1), z]), base
        if family == "box-cox":
            X, x = np.exp(X), np.exp(base)
        options = {"estimator": "rewml", "convention": "cellwise", "prestandardize": "none"}
        robust = fit(X, family, **options).lmbda - fit(x, family, **options).lmbda
        return z, 100 * robust, 100 * (fit(X, family, "mle").lmbda - fit(x, family, "mle").lmbda)

    def track_near_center(self, family: str) -> float:
        """Largest difference between the two curves for abs(z) <= 2."""
        z, robust, likelihood = self.curves(family)
        return float(np.abs(robust - likelihood)[np.abs(z) <= 2.0].max())

    def track_last_that_counts(self, family: str) -> float:
        """Largest abs(z) at which RewML's curve is not 0; values farther out do not affect lambda."""
        z, robust, _ = self.curves(family)
        return float(np.abs(z)[np.abs(robust) > 1e-9].max())


def simulated(family: str, lmbda: float, share: float, k: float, replicates: int) -> np.ndarray:
    """Return columns of 100 values, normal after the transform except for a fraction of outliers.

    Under Box-Cox with lambda = 1, values are normal about 1 with standard deviation 1/3 between 0.01 and 1.99, and
    outliers are at 1 + k/3.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : float
        Lambda.
    share : float
        Fraction of outliers.
    k : float
        Value of the outliers after the transform; -k for lambda = 1.5.
    replicates : int
        Number of columns.
    """
    rng = np.random.default_rng(99)
    n_out = round(100 * share)
    if family == "box-cox" and lmbda == 1.0:
        low, high = ndtr([-2.97, 2.97])
        y = ndtri(rng.uniform(low, high, size=(100, replicates)))
    else:
        y = rng.normal(size=(100, replicates))
    y[:n_out] = -k if lmbda > 1.0 else k
    if family == "box-cox":
        return np.exp(y) if lmbda == 0.0 else 1.0 + y / 3.0
    m = np.where(y >= 0.0, lmbda, 2.0 - lmbda)
    return np.copysign(np.expm1(np.log1p(m * np.abs(y)) / m), y)


#: By (family, lambda), with 10 % at k = 10: bias and mean squared error of R's RewML in 100 replicates.
PUBLISHED: dict[tuple[str, float], tuple[float, float]] = {
    ("yeo-johnson", 0.5): (-0.036, 0.025),
    ("yeo-johnson", 1.0): (-0.039, 0.029),
    ("yeo-johnson", 1.5): (0.037, 0.030),
    ("box-cox", 0.0): (-0.011, 0.009),
}
#: Further settings (share, k).
SETTINGS = [(0.0, 0.0), (0.05, 10.0), (0.1, 4.0), (0.1, 10.0), (0.15, 6.0), (0.15, 10.0)]


def errors(
    case: tuple[str, float], at: tuple[float, float], replicates: int, estimator: str = "robust", **options: str
) -> np.ndarray:
    """Return the error of lambda in each replicate.

    Parameters
    ----------
    case : (str, float)
        Family and lambda.
    at : (float, float)
        Fraction of outliers, and their value after the transform.
    replicates : int
        Number of columns.
    estimator : str
        Name of the estimator.
    **options
        Options of the estimator.
    """
    family, lmbda = case
    return fit(simulated(family, lmbda, *at, replicates), family, estimator, **options).lmbda - lmbda


class Simulation:
    """Bias and mean squared error of lambda in the simulation of the paper's section 3, with columns of 100 values."""

    params = ([("yeo-johnson", 0.5)], [(0.1, 10.0)], ["mle", "robust"], [200])
    param_names = ("case", "contamination", "estimator", "replicates")

    def track_bias(self, case: tuple[str, float], at: tuple[float, float], estimator: str, replicates: int) -> float:
        return float(errors(case, at, replicates, estimator).mean())

    def track_mse(self, case: tuple[str, float], at: tuple[float, float], estimator: str, replicates: int) -> float:
        return float((errors(case, at, replicates, estimator) ** 2).mean())


class BesideR:
    """RewML's absolute bias and mean squared error minus the values published for R, in standard errors.

    The standard errors are those of a mean of 100 replicates.
    """

    params = ([("yeo-johnson", 0.5)], [(0.1, 10.0)], [200])
    param_names = ("case", "contamination", "replicates")

    def track_bias(self, case: tuple[str, float], at: tuple[float, float], replicates: int) -> float:
        error = errors(case, at, replicates)
        return float((abs(error.mean()) - abs(PUBLISHED[case][0])) / (error.std() / 10.0))

    def track_mse(self, case: tuple[str, float], at: tuple[float, float], replicates: int) -> float:
        squares = errors(case, at, replicates) ** 2
        return float((squares.mean() - PUBLISHED[case][1]) / (squares.std() / 10.0))

    def track_mse_over_rs(self, case: tuple[str, float], at: tuple[float, float], replicates: int) -> float:
        """Mean squared error relative to that of fits by R's rules, on the same samples."""
        ours, theirs = (
            errors(case, at, replicates),
            errors(case, at, replicates, estimator="rewml", convention="cellwise"),
        )
        return float((ours**2).mean() / (theirs**2).mean())


# --- nasty columns ------------------------------------------------------------------------------------


def nasty(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "1e12 + Exp(1)": 1e12 + rng.exponential(size=n),
        "near 1e300": 1e300 * rng.uniform(0.1, 1.0, size=n),
        "constant": np.full(n, 3.0),
        "binary": rng.integers(0, 2, n).astype(float) + 1.0,
        "zero-inflated": np.where(rng.random(n) < 0.6, 1e-300, rng.lognormal(size=n)),
        "two values": np.repeat([1.0, 2.0], n // 2),
        "exp(50 z)": np.exp(50.0 * rng.normal(size=n)),
        "1 + 1e-10 z": 1.0 + 1e-10 * rng.normal(size=n),
        "1e-300": 1e-300 * rng.lognormal(size=n),
    }


class Nasty:
    """Time of the slowest of several extreme columns, relative to a lognormal column with outliers."""

    params = (["robust"], FAMILIES)
    param_names = ("estimator", "family")

    def track_slowest(self, estimator: str, family: str) -> float:
        columns = {"usual": contaminated(1_000, 1)[:, 0], **nasty(1_000)}
        seconds = dict.fromkeys(columns, math.inf)
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end or math.inf in seconds.values():
            for name, x in columns.items():
                seconds[name] = min(seconds[name], lap_of(lambda x=x: fit(x, family, estimator)).wall)
        usual = seconds.pop("usual")
        return max(seconds.values()) / usual


class Identity:
    """Number of results that change in any bit with threads, memory order, or the order of rows or columns."""

    params = (["robust"],)
    param_names = ("estimator",)

    def track_differences(self, estimator: str) -> int:
        x = contaminated(700, 60)
        expected = fit(x, "yeo-johnson", estimator, n_threads=1)._table.kernel_rows
        others = [
            fit(y, "yeo-johnson", estimator, n_threads=t)._table.kernel_rows
            for y in (x, np.asfortranarray(x), x[::-1])
            for t in (1, 2, 8)
        ]
        turned = fit(x[:, ::-1], "yeo-johnson", estimator)._table.kernel_rows[::-1]
        return int(sum(np.sum(other != expected) for other in (*others, turned)))
