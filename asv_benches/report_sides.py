"""Outliers below, above and on both sides: the paper's simulation extended, breakdown of fits, and rates of TAIL_KEPT.

python -m asv_benches.report_sides [--replicates 300] [--write docs/benchmarks/sides.inc]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import powerkern as pk

from .bench_robust import fit
from .report import list_table, machine

#: The estimators to compare, with their options.
METHODS: dict[str, dict[str, Any]] = {
    "both": {"rectify": "both"},
    "one": {"rectify": "one"},
    "cellwise": {"estimator": "rewml", "convention": "cellwise"},
    "nr": {"rectify": "none"},
}
#: Families and lambdas. Box-Cox with lambda = 0 is lognormal; others have their bound at 3 standard deviations, and the
#: prestandardised column does not depend on abs(lambda). Yeo-Johnson has a bound where lambda is not within 0 to 2.
CASES = [("box-cox", v) for v in (-1.0, 0.0, 1.0)] + [("yeo-johnson", v) for v in (0.0, 0.5, 1.0, 1.5)]
SIDES = ("low", "high", "two")
SETTINGS = [(0.05, 6.0), (0.1, 6.0), (0.1, 10.0), (0.15, 6.0), (0.15, 10.0), (0.2, 10.0), (0.25, 10.0)]
#: For the breakdown: fractions of outliers in ascending order, and their distance.
SHARES, FAR = (0.05, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25, 0.3), 10.0
SEED = 99


def simulated(
    case: tuple[str, float], n: int, share: float, k: float, side: str, replicates: int, seed: int = SEED
) -> np.ndarray:
    """Return columns that are normal after a transform, except for a fraction of outliers at k standard deviations.

    Under Box-Cox, psi is bounded on one side if lambda is not 0. Normal values y are then truncated to abs(y) < 2.97,
    and the bound is 3 standard deviations from the mean, or 1.2 k if there are outliers on its side.

    Parameters
    ----------
    case : (str, float)
        Family and lambda.
    n : int
        Number of rows.
    share : float
        Fraction of outliers.
    k : float
        Distance of outliers, in standard deviations.
    side : str
        Side of the outliers.
    replicates : int
        Number of columns.
    seed : int
        Seed of the simulation.
    """
    family, lmbda = case
    rng = np.random.default_rng([seed, n])
    y = rng.normal(size=(n, replicates))
    if family == "box-cox" and lmbda:
        y = ndtri(ndtr(-2.97) + (1.0 - 2.0 * ndtr(-2.97)) * ndtr(y))
    n_out = round(n * share)
    n_low = {"low": n_out, "high": 0, "two": n_out // 2}[side]
    y[:n_low], y[n_low:n_out] = -k, k
    if family == "box-cox":
        if not lmbda:
            return np.exp(y)
        bounded = "high" if lmbda < 0.0 else "low"
        at = 1.2 * k if n_out and side in (bounded, "two") else 3.0
        return (1.0 + np.sign(lmbda) * y / at) ** (1.0 / lmbda)
    m = np.where(y >= 0.0, lmbda, 2.0 - lmbda)
    logs = np.where(m == 0.0, np.abs(y), np.log1p(m * np.abs(y)) / np.where(m == 0.0, 1.0, m))
    return np.copysign(np.expm1(logs), y)


def fitted(x: np.ndarray, family: str, method: str) -> pk.PowerFit:
    options = dict(METHODS[method])
    return fit(x, family, options.pop("estimator", "robust"), **options)


def simulation(n: int, replicates: int) -> Iterator[tuple[str, ...]]:
    """Yield the bias and mean squared error of lambda by each method, on the same samples."""
    settings = [(0.0, 0.0, "-"), *((share, k, side) for side in SIDES for share, k in SETTINGS)]
    for case in CASES:
        for share, k, side in settings:
            x = simulated(case, n, share, k, side if share else "high", replicates)
            errors = {name: fitted(x, case[0], name).lmbda - case[1] for name in METHODS}
            gain = errors["both"] ** 2 - errors["one"] ** 2
            yield (
                f"{case[0]} {case[1]:g}", str(n), side, f"{share:.0%}", f"{k:g}",
                *(f"{e.mean():+.3f}" for e in errors.values()),
                *(f"{(e**2).mean():.4f}" for e in errors.values()),
                f"{gain.mean():+.4f} ± {gain.std() / np.sqrt(replicates):.4f}",
            )  # fmt: skip


def breakdown(n: int, replicates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each case and side, with the two fractions of `_breaks_at` for each method."""
    for case in CASES:
        for side in SIDES:
            yield (f"{case[0]} {case[1]:g}", str(n), side, *(_breaks_at(case, n, side, m, replicates) for m in METHODS))


def _breaks_at(case: tuple[str, float], n: int, side: str, method: str, replicates: int) -> str:
    """Return two fractions of outliers, as text, that describe the breakdown of a method.

    They are the largest fraction at which fewer than 5 % of the columns break down, and the smallest at which half do.
    A fit breaks down if it keeps more than half of the outliers.

    Parameters
    ----------
    case : (str, float)
        Family and lambda.
    n : int
        Number of rows.
    side : str
        Side of the outliers.
    method : str
        The estimator.
    replicates : int
        Number of columns.
    """
    firm, half = 0.0, "-"
    for share in SHARES:
        x = simulated(case, n, share, FAR, side, replicates)
        broken = _broken(x, fitted(x, case[0], method), round(n * share)).mean()
        if broken < 0.05:
            firm = share
        if broken >= 0.5:
            half = f"{share:.1%}"
            break
    return f"{firm:.1%}, {half}"


def _broken(x: np.ndarray, found: pk.PowerFit, n_out: int) -> np.ndarray:
    """Return for each column whether the fit kept more than half of the outliers, which are its first `n_out` rows."""
    return found.weights(x)[:n_out].mean(axis=0) > 0.5


def alarms(replicates: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each case: the rate of status TAIL_KEPT in clean columns, after a breakdown, and without one."""
    for case in CASES:
        clean = [_alarm(fitted(simulated(case, n, 0.0, 0.0, "high", replicates), case[0], "both")).mean()
                 for n in (20, 50, 100, 400)]  # fmt: skip
        kept, others = [], []
        for method in ("both", "one", "nr"):
            for share, k in SETTINGS[1:]:
                for side in ("low", "high"):
                    x = simulated(case, 100, share, k, side, replicates // 4)
                    found = fitted(x, case[0], method)
                    broken = _broken(x, found, round(100 * share))
                    kept.append(_alarm(found)[broken])
                    others.append(_alarm(found)[~broken])
        told, false = np.concatenate(kept), np.concatenate(others)
        yield (f"{case[0]} {case[1]:g}", *(f"{v:.1%}" for v in clean), f"{told.mean():.0%} of {told.size}",
               f"{false.mean():.1%} of {false.size}")  # fmt: skip


def _alarm(found: pk.PowerFit) -> np.ndarray:
    return np.asarray(found.status == pk.Status.TAIL_KEPT)


def tables(replicates: int) -> Iterator[tuple[str, tuple[str, ...], Iterable[tuple[str, ...]]]]:
    """Yield the title, headings and rows of each table."""
    names = tuple(METHODS)
    figures = (*(f"bias, {m}" for m in names), *(f"MSE, {m}" for m in names), "MSE of both less that of one")
    headings = ("data", "n", "outliers", "share", "k", *figures)
    for n, few in ((100, replicates), (400, replicates // 2)):
        yield f"Bias and mean squared error of lambda, n = {n}, {few} replicates", headings, simulation(n, few)
    title = (
        f"Outliers at {FAR:g}: share up to which less than 5 % of the columns keep most of them, and from which half do"
    )
    yield title, ("data", "n", "outliers", *names), breakdown(200, replicates // 4)
    headings = ("data", "clean, n = 20", "50", "100", "400", "told, of fits that kept outliers", "of other fits")
    yield "How often the status says that a tail was kept", headings, alarms(replicates)


def main() -> None:
    """Print the tables and write them."""
    parser = argparse.ArgumentParser(prog="python -m asv_benches.report_sides", description=__doc__)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--write", type=Path, help="write the tables as reStructuredText to this file")
    options = parser.parse_args()
    text = f"Measured by ``python -m asv_benches.report_sides`` on: {machine()}\n"
    for title, headings, rows in tables(options.replicates):
        table = list_table(f"\n{title}:", headings, rows)
        print(table, flush=True)
        text += table
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
