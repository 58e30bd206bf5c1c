"""Robust fits of random partitions, compared with fits of the same rows in memory.

``python -m tests.fuzz.robust_partitions --columns 600 --seed 1`` fits random columns (clean, contaminated, tied,
skewed, weighted, with missing values; both families) from chunks, merged in two random orders, and in memory. Both fits
from chunks must have the same bits, and lambda must be within ``lmbda_error`` of lambda in memory. At the end the run
prints quantiles of the errors of lambda and of their bounds, in standard errors. It also prints the number of columns
whose status is neither BRACKETED nor that of the fit in memory. ``--shortest 3 --longest 6000`` fits many columns in
little time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import powerkern as pk
from powerkern import Status
from powerkern.sketch import MapReduce, fit_chunks
from tests.support.fits import kernel_rows

from .partitions import Engine

ESTIMATORS = ("robust", "robust", "robust", "rewml-nr", "mtl", "carroll")
#: Accepted effect of rounding on lambda, if its bound is 0.
ROUNDING = 1e-9
#: Largest number of rows of a column that may be cut into single rows.
_SINGLE = 60


class Case(NamedTuple):
    """A column with its name, kind and weights, and the family and estimator of its fit."""

    name: str
    kind: str
    family: str
    estimator: str
    x: np.ndarray
    weight: np.ndarray | None


class Outcome(NamedTuple):
    """Comparison of fits from chunks and in memory: difference of lambda, its bound, equal bits, equal statuses."""

    case: Case
    status: Status
    difference: float
    bound: float
    standard_error: float
    same_bits: bool
    same_status: bool

    @property
    def holds(self) -> bool:
        """Return whether the stated bound holds."""
        rounding = ROUNDING * max(1.0, self.standard_error)
        is_close = self.difference <= self.bound + rounding or self.status == Status.UNRESOLVED
        return self.same_bits and is_close

    def __str__(self) -> str:
        case = self.case
        weighted = "" if case.weight is None else ", weighted"
        about = f"{case.name:<10} {case.estimator:<9} {case.family} {case.kind}, n = {case.x.size}{weighted}"
        bits = "" if self.same_bits else ", other bits in another order"
        off, bound = self.difference / self.standard_error, self.bound / self.standard_error
        return f"{about}: {self.status.name}, off by {off:.2e} standard errors, bound {bound:.2e}{bits}"


# --- columns ------------------------------------------------------------------------------------------


def shapes(rng: np.random.Generator, n: int) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions that draw a column of `n` values about 0, one for each kind of column."""
    z = rng.normal(size=n)
    far = rng.random(n) < rng.uniform(0.01, 0.25)
    side = rng.choice([-1.0, 1.0])
    outliers = np.where(far, side * rng.uniform(3.0, 10.0) + rng.choice([0.1, 1.0]) * z, z)
    skew = rng.uniform(0.05, 1.0)
    return {
        "clean": lambda: z,
        "contaminated": lambda: outliers,
        "skewed": lambda: np.sinh(skew * (z + side)),
        "skewed, contaminated": lambda: np.sinh(skew * outliers),
        "tied": lambda: np.round(outliers, rng.integers(0, 4)),
        "half equal": lambda: np.where(rng.random(n) < rng.uniform(0.1, 0.6), 0.5, outliers),
        "heavy tails": lambda: rng.standard_t(rng.choice([2.0, 3.0, 5.0]), n),
        "gamma": lambda: side * rng.gamma(rng.uniform(0.4, 5.0), size=n),
        "uniform": lambda: rng.uniform(-1.0, 1.0, n),
        "two groups": lambda: np.where(rng.random(n) < 0.5, z, z + rng.uniform(1.0, 6.0)),
        "counts": lambda: rng.poisson(rng.uniform(1.0, 30.0), n).astype(float),
        "far from 0": lambda: rng.uniform(5.0, 1000.0) + z,
    }


def weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    """Draw weights: mostly None, else whole numbers, fractions, or weights of many magnitudes."""
    kind = rng.random()
    if kind < 0.75:
        return None
    if kind < 0.85:
        return rng.integers(0, 5, n).astype(float)
    return rng.uniform(0.0, 1.0, n) / n if kind < 0.92 else rng.lognormal(0.0, 2.0, n)


def case_of(seed: int, index: int, shortest: int, longest: int) -> Case:
    """Draw the case with this seed and index, of `shortest` to `longest` rows."""
    rng = np.random.default_rng([seed, index])
    n = int(np.exp(rng.uniform(np.log(shortest), np.log(longest))))
    made = shapes(rng, n)
    kind = str(rng.choice(list(made)))
    family = str(rng.choice(["box-cox", "yeo-johnson"]))
    x = made[kind]()
    if family == "box-cox":
        x = np.exp(rng.uniform(0.05, 1.0) * (x - np.median(x))) if np.ptp(x) < 60.0 else x - x.min() + 1.0
    if rng.random() < 0.3:
        x[rng.random(n) < rng.choice([0.1, 0.5, 0.9])] = np.nan
    return Case(f"{seed}:{index}", kind, family, str(rng.choice(ESTIMATORS)), x, weights(rng, n))


def chunks_of(case: Case, rng: np.random.Generator) -> list[tuple[np.ndarray, ...]]:
    """Split the rows of a case at random places; return the chunks, each with its weights."""
    n = case.x.size
    cuts = np.arange(1, n) if n <= _SINGLE else np.sort(rng.integers(0, n + 1, rng.choice([0, 1, 3, 12])))
    parts = np.split(case.x, cuts)
    if case.weight is None:
        return [(part,) for part in parts]
    return list(zip(parts, np.split(case.weight, cuts), strict=True))


# --- checks -------------------------------------------------------------------------------------------


def outcome(case: Case, seed: int) -> Outcome:
    """Fit a case from chunks merged in two orders, and in memory; return the comparison."""
    chunks = chunks_of(case, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit, other = (
            fit_chunks(MapReduce(Engine(chunks, k)), case.family, case.estimator, n_threads=1) for k in (seed, seed + 1)
        )
        whole = pk.fit(case.x, case.family, case.estimator, sample_weight=case.weight, n_threads=1)
    same = kernel_rows(fit).tobytes() == kernel_rows(other).tobytes() and fit.lmbda_error == other.lmbda_error
    statuses = Status(int(fit.status[0])), Status(int(whole.status[0]))
    return Outcome(
        case,
        statuses[0],
        float(abs(fit.lmbda - whole.lmbda)[0]),
        float(fit.lmbda_error[0]),
        float(1.0 / np.sqrt(whole.information[0])) if whole.information[0] > 0.0 else 1.0,
        bool(same),
        statuses[0] in (statuses[1], Status.BRACKETED),
    )


def fuzz(seed: int, n_columns: int, shortest: int, longest: int) -> Iterator[Outcome]:
    """Yield the outcomes of `n_columns` columns of `shortest` to `longest` rows."""
    for index in range(n_columns):
        yield outcome(case_of(seed, index, shortest, longest), index)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 if all bounds hold, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.robust_partitions", description=__doc__)
    parser.add_argument("--columns", type=int, default=600, help="how many columns to fit (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sequence of columns (default: %(default)s)")
    parser.add_argument("--shortest", type=int, default=2_500, help="rows (default: %(default)s)")
    parser.add_argument("--longest", type=int, default=300_000, help="rows (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=np.inf, help="end after so many (default: at the last column)")
    parser.add_argument("--show", action="store_true", help="print every column, not only those that do not hold")
    options = parser.parse_args(arguments)
    done, end = [], time.monotonic() + options.seconds
    for one in fuzz(options.seed, options.columns, options.shortest, options.longest):
        done.append(one)
        if options.show or not one.holds:
            print(("" if one.holds else "FINDING ") + str(one), flush=True)
        if time.monotonic() > end:
            break
    failed = sum(not one.holds for one in done)
    print(f"{len(done)} columns, each fitted in two orders and in memory; {failed} findings")
    _print_bounds(done)
    return int(failed > 0)


def _print_bounds(done: list[Outcome]) -> None:
    """Print quantiles of differences and bounds, in standard errors, by estimator."""
    print(f"{'':<10}{'columns':>8}{'no bound':>10}{'<= 0.01':>9}{'status':>8}   off, bound: 50 %, 75 %, 90 %, most")
    for estimator in dict.fromkeys(ESTIMATORS):
        some = [one for one in done if one.case.estimator == estimator]
        figures = np.array([(one.difference, one.bound) for one in some]).reshape(-1, 2)
        figures /= np.array([[one.standard_error] for one in some]).reshape(-1, 1)
        finite = figures[np.isfinite(figures[:, 1])]
        quantiles = np.quantile(finite, [0.5, 0.75, 0.9, 1.0], axis=0).T if len(finite) else np.full((2, 4), np.nan)
        each = "   ".join(" ".join(f"{q:.1e}" for q in row) for row in quantiles)
        other, sharp = sum(not one.same_status for one in some), np.count_nonzero(figures[:, 1] <= 0.01)
        print(f"{estimator:<10}{len(some):>8}{len(some) - len(finite):>10}{sharp:>9}{other:>8}   {each}")


if __name__ == "__main__":
    sys.exit(main())
