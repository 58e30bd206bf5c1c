"""Simulations with each tuning constant of the kernels at its value and at other values, run as plain Python.

NUMBA_DISABLE_JIT=1 python -m asv_benches.report_constants [area ...]

Constants are changed in the modules, which would have no effect on compiled code. An area takes a few minutes at most.
The results are quoted in comments beside the constants. The numbers of evaluations are those of the objective or the
likelihood per column.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

import powerkern as pk
from powerkern._estimators import routes
from powerkern._jit import JIT_DISABLED
from powerkern.kernels.likelihood import interval, mle
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.location.biweight import sorted_bisquare
from powerkern.kernels.location.proposal2 import sorted_huber_proposal2
from powerkern.kernels.multivariate import cells
from powerkern.kernels.robust import qq_column
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.regression import fit_regression
from tests.fuzz import starts

Column = tuple[str, np.ndarray]


# --- maximum likelihood --------------------------------------------------------------------------------


def error_of(family: str, x: np.ndarray, lmbda: float) -> float:
    """Return the error of lambda times the standard deviation of the logs.

    The error is a Newton step in extended precision.
    """
    wide = x.astype(np.longdouble)
    logs = np.log(wide) if family == "box-cox" else np.log1p(abs(wide))
    sign = np.ones(x.size) if family == "box-cox" else np.where(x >= 0.0, 1.0, -1.0)
    center = logs.mean() if family == "box-cox" else np.longdouble(0.0)
    logs = logs - center

    def score(at: Any) -> Any:
        m = np.where(sign > 0.0, at, 2.0 - at)
        t = m * logs
        small, m = abs(t) < 1e-3, np.where(m == 0.0, 1.0, m)
        grown = np.where(small, logs * (1.0 + t * (1.0 + t * (1.0 + t * (1.0 + t / 5) / 4) / 3) / 2), np.expm1(t) / m)
        near_0 = logs**2 * (1.0 / 2 + t * (1.0 / 3 + t * (1.0 / 8 + t * (1.0 / 30 + t / 144))))
        y, slope = sign * grown, np.where(small, near_0, (logs * np.exp(t) - grown) / m)
        y, slope = y - y.mean(), slope - slope.mean()
        return (y * slope).mean() / (y * y).mean() - (sign * logs).mean()

    spread = np.longdouble((sign * logs).std())
    h = np.longdouble(1e-5) / spread
    at = np.longdouble(lmbda)
    return float(abs(score(at) / ((score(at + h) - score(at - h)) / (2.0 * h))) * spread)


@cache
def short_matrices() -> list[Column]:
    rng, matrices = np.random.default_rng(8), []
    for n in (3, 4, 6, 10, 30, 60):
        z, t = rng.normal(size=(3, n, 1)), rng.standard_t(2, size=(3, n, 1))
        far = np.where(rng.random((3, n, 1)) < 0.1, 50.0, 1.0)
        positive = (np.exp(z), np.exp(0.3 * z) + 5, np.exp(2 * z), 1e3 + z, 1e5 + z, abs(t) + 0.01, far * np.exp(z))
        both = (z, t, 5.0 * z + 2.0, np.exp(z) - 1.0, far * z, 3.0 - np.exp(z))
        matrices += [
            ("box-cox", np.hstack(np.concatenate(positive, axis=2))),
            ("yeo-johnson", np.hstack(np.concatenate(both, axis=2))),
        ]
    return matrices


@cache
def rare_binaries() -> list[Column]:
    matrices = []
    for n in (20, 100, 300):
        X = np.empty((n, 12))
        for j in range(12):
            X[:, j] = (-1.0, -0.01)[j % 2]
            X[: 1 + j % 3, j] = (2.0, 30.0)[j // 6]
            X[-1, j] += 1e-3
        matrices.append(("yeo-johnson", X))
    return matrices


def fits_of_matrices(matrices: Callable[[], list[Column]]) -> str:
    errors: list[float] = []
    n_eval: list[float] = []
    routes: list[str] = []
    for family, X in matrices():
        fit = pk.fit(X, family, n_threads=1)
        errors += [error_of(family, X[:, j], fit.lmbda[j]) for j in range(X.shape[1])]
        n_eval += list(fit.n_iter)
        routes += list(fit.route)
    n_lockstep = routes.count("lockstep")
    quantiles = "errors of {:.0e} (median) and {:.0e} (99 %)".format(*np.nanpercentile(errors, (50, 99)))
    return f"{np.mean(n_eval):.2f} evaluations, {n_lockstep} of {len(routes)} columns in lockstep, {quantiles}"


def in_two_passes() -> str:
    kept = routes.LOCKSTEP_MAX
    replace_everywhere("LOCKSTEP_MAX", kept, 0)
    text = fits_of_matrices(short_matrices)
    replace_everywhere("LOCKSTEP_MAX", 0, kept)
    return text


# --- intervals ------------------------------------------------------------------------------------------


@cache
def interval_columns() -> list[tuple[np.ndarray, int, float]]:
    rng, columns = np.random.default_rng(0), []
    for n in (8, 40, 150):
        z = rng.normal(size=(6, n))
        for x in (
            np.exp(z[0]),
            rng.gamma(0.5, size=n),
            np.exp(0.1 * z[1]),
            z[2],
            rng.standard_t(3, size=n),
            np.exp(2 * z[3]),
        ):
            family = BOX_COX if x.min() > 0.0 else YEO_JOHNSON
            fit = pk.fit(x, "box-cox" if family == BOX_COX else "yeo-johnson", n_threads=1)
            columns.append((x, family, float(fit.lmbda[0])))
    return columns


def ends(drops: tuple[float, ...]) -> tuple[np.ndarray, float]:
    """Return the distances of interval ends from lambda, and the mean number of evaluations per end.

    The distances, (n_columns * n_drops, 2), have a row (lower end, upper end) for each column and drop of the
    log-likelihood.
    """
    calls, score, distances = [0], interval.score, []

    def counted(*arguments: Any) -> Any:
        calls[0] += 1
        return score(*arguments)

    interval.score = counted
    for x, family, lmbda in interval_columns():
        for drop in drops:
            found = np.empty((1, 2))
            at = np.array([[lmbda, drop]])
            mle.interval_columns(x[None].copy(), np.empty(0), family, at, new_work(x.size), found)
            distances.append(found[0] - lmbda)
    interval.score = score
    return np.array(distances), calls[0] / (2 * len(distances))


@cache
def exact_ends(drops: tuple[float, ...]) -> np.ndarray:
    names = ("_END_ERROR", "_ROUNDINGS", "_PANEL_ERROR", "_FELT_ERROR")
    before = [getattr(interval, name) for name in names]
    for name, value in zip(names, (1e-14, 2.0, 1e-12, 1e-13), strict=True):
        setattr(interval, name, value)
    distances, _ = ends(drops)
    for name, value in zip(names, before, strict=True):
        setattr(interval, name, value)
    return distances


def intervals() -> str:
    parts = []
    for drops in ((0.5, 0.05, 0.005), (1e-7, 1e-9, 1e-12)):
        exact = exact_ends(drops)
        distances, n_eval = ends(drops)
        parts.append(f"{n_eval:.2f} evaluations, ends to {np.nanmax(abs(distances / exact - 1.0)):.0e}")
    return "drops of .5 to .005: {}; of 1e-7 to 1e-12: {}".format(*parts)


# --- location, medians ------------------------------------------------------------------------------------


@cache
def location_columns() -> list[np.ndarray]:
    rng, columns = np.random.default_rng(0), []
    for n in (10, 30, 100):
        for k in range(60):
            z, far = rng.normal(size=n), rng.random(n)
            shapes = (z, rng.standard_t(2, size=n), np.where(far < 0.2, z + 8.0, z), np.round(2.0 * z), np.exp(z))
            columns.append(np.sort((*shapes, np.where(far < 0.45, z + 6.0, z))[k % 6]))
    return columns


def locations() -> str:
    none = np.empty(0)
    bisquare = [sorted_bisquare(y, none, 4.685) for y in location_columns()]
    joint = [sorted_huber_proposal2(y, none, 1.5, 1.5) for y in location_columns()]
    return "bisquare {:.2f} iterations (at most {}), proposal 2 {:.2f} ({})".format(
        *(f([r.n_iter for r in results]) for results in (bisquare, joint) for f in (np.mean, max))
    )


def medians() -> str:
    """Describe the number of operations per value for a median by selection, at three lengths.

    An operation is a value read in a pass over the column, or moved by a sort.
    """
    looked, parts = [0.0], []
    originals = {name: getattr(cells, name) for name in ("_counts", "_keep_between", "_least_above", "_insertion_sort")}

    def counted(name: str, *arguments: Any) -> Any:
        size = arguments[1] if name in ("_keep_between", "_insertion_sort") else len(arguments[0])
        looked[0] += 0.75 * size * size if name == "_insertion_sort" else size
        return originals[name](*arguments)

    for name in originals:
        setattr(cells, name, partial(counted, name))
    rng = np.random.default_rng(0)
    for n, n_columns in ((100, 30), (1_000, 30), (10_000, 6)):
        looked[0] = 0.0
        for _ in range(n_columns):
            cells._neighbors(rng.normal(size=n), n, (n - 1) // 2)
        parts.append(f"{looked[0] / n_columns / n:.1f}")
    for name, original in originals.items():
        setattr(cells, name, original)
    return f"{', '.join(parts)} operations a value of 100, 1,000 and 10,000"


# --- regressions --------------------------------------------------------------------------------------------


@cache
def responses() -> list[tuple[str, np.ndarray, np.ndarray]]:
    rng, jobs = np.random.default_rng(5), []
    for n in (12, 30, 60):
        for explained in (0.0, 0.5, 0.99, 0.99999, 1.0 - 1e-9):
            for k, lmbda in enumerate((0.0, 0.5, 1.0, -1.0)):
                Z = rng.normal(size=(n, 2))
                error = rng.normal(size=n) if k else rng.standard_t(2, size=n)
                eta = np.sqrt(explained / 2.0) * Z.sum(axis=1) + np.sqrt(1.0 - explained) * error
                y = (
                    np.exp(0.7 * eta)
                    if lmbda == 0.0
                    else np.maximum(1.0 + lmbda * (0.15 * eta + 1.0), 1e-3) ** (1 / lmbda)
                )
                y = np.where(rng.random(n) < 0.1, np.nan, y) if k == 1 else y
                jobs.append(("yeo-johnson", Z, y - np.median(y)) if k == 2 else ("box-cox", Z, y))
    return jobs


def fit_responses() -> np.ndarray:
    fits = [fit_regression(y, Z, family, n_threads=1) for family, Z, y in responses()]
    return np.array([(fit.lmbda[0], fit.nll[0], fit.n_iter[0]) for fit in fits])


@cache
def first_regressions() -> np.ndarray:
    return fit_responses()


def regressions() -> str:
    first, now = first_regressions(), fit_responses()
    rises = abs(now[:, 1] - first[:, 1]) > 1e-12 * (1.0 + abs(first[:, 1]))
    return (
        f"{now[:, 2].mean():.2f} evaluations, lambda changes by {abs(now[:, 0] - first[:, 0]).max():.0e} at most, "
        f"g by more than 1e-12 in {rises.sum()} of {len(now)}"
    )


# --- robust fits --------------------------------------------------------------------------------------------


@cache
def nasty_columns() -> list[tuple[str, np.ndarray, float]]:
    """Return (family, column, minimum) for difficult columns.

    The minimum is the global one of the QQ objective, found by brute force.
    """
    columns = []
    for family, x in starts.columns(160, 21, (12, 20, 30, 40)):
        u, _ = starts.prestandardized(family, x)
        columns.append((family, x, starts.brute_force(starts.qq, family, u)[1]))
    return columns


def robust_starts() -> str:
    n_eval, excess, n_multimodal = [], [], 0
    for family, x, lowest in nasty_columns():
        fit = pk.fit(x, family, starts.ONE_SIDED["robust"], n_threads=1)
        u, power = starts.prestandardized(family, x)
        with np.errstate(all="ignore"):
            excess.append(starts.qq(family, u, fit.lmbda0 * power)[0] - lowest)
        n_eval.append(fit.n_iter[0])
        n_multimodal += fit.status[0] == pk.Status.MULTIMODAL
    return f"{np.mean(n_eval):.1f} evaluations, at most {max(excess):.0e} above the minimum, {n_multimodal} multimodal"


@cache
def lowest_values(estimator: str) -> list[tuple[str, np.ndarray, float]]:
    """Return (family, column, minimum) for difficult columns.

    The minimum is the global one of the estimator's objective, found by brute force.
    """
    columns = []
    for family, x in starts.columns(60, 31, (12, 20, 30)):
        if estimator == "ppcc":
            u, spread = np.sort(x), starts.signed_logs(family, x).std()
            likely = float(pk.fit(x, family, n_threads=1).lmbda[0])
            lowest = starts.brute_force(starts.ppcc, family, u, likely - 4 / spread, likely + 4 / spread, 0.01 / spread)
        else:
            lowest = starts.brute_force(starts.OBJECTIVES[estimator], family, starts.prestandardized(family, x)[0])
        columns.append((family, x, lowest[1]))
    return columns


def starts_of(estimator: str) -> str:
    n_eval, excess, n_multimodal = [], [], 0
    for family, x, lowest in lowest_values(estimator):
        fit = pk.fit(x, family, estimator, n_threads=1)
        u, power = (np.sort(x), 1.0) if estimator == "ppcc" else starts.prestandardized(family, x)
        at = fit.lmbda if estimator == "ppcc" else fit.lmbda0 * power
        with np.errstate(all="ignore"):
            excess.append(starts.OBJECTIVES[estimator](family, u, at)[0] - lowest)
        n_eval.append(fit.n_iter[0])
        n_multimodal += fit.status[0] == pk.Status.MULTIMODAL
    return f"{np.mean(n_eval):.1f} evaluations, at most {max(excess):.0e} above the minimum, {n_multimodal} multimodal"


@cache
def weighted_columns() -> list[tuple[np.ndarray, np.ndarray | None]]:
    rng, columns = np.random.default_rng(0), []
    for k in range(24):
        z, far = rng.normal(size=30), rng.random(30) < 0.15
        shapes = (np.exp(z), np.where(far, 1e-3, 1.0) * np.exp(z), np.where(far, 50.0, 1.0) * np.exp(z))
        x = (*shapes, rng.gamma(1.0, size=30) + 0.01)[k % 4]
        columns.append((x, rng.integers(1, 5, 30).astype(float) if k // 4 % 2 else None))
    return columns


def weighted_fits() -> str:
    fits = [pk.fit(x, "box-cox", "robust", sample_weight=w, n_threads=1) for x, w in weighted_columns()]
    n_eval = [
        [f.n_iter[0] for f, (_, w) in zip(fits, weighted_columns(), strict=True) if (w is None) == b] for b in (1, 0)
    ]
    lmbda = np.array([fit.lmbda[0] for fit in fits])
    return "{:.1f} evaluations, {:.1f} with weights, lambdas add up to {:.6f}".format(
        *map(np.mean, n_eval), lmbda.sum()
    )


@cache
def origin_columns() -> list[Column]:
    rng, columns = np.random.default_rng(3), []
    for n in (12, 30):
        for k, x in enumerate(starts._shapes(rng, n)):
            for family in starts.FAMILIES:
                y = np.exp(np.clip(x, -8.0, 8.0)) if family == "box-cox" and k % 2 else 3.0 * x + 50.0 * (k % 3)
                if np.unique(y).size > 4:
                    columns.append((family, y - min(y.min(), 0.0) + 0.01 if family == "box-cox" else y))
    return columns


def fit_origins() -> np.ndarray:
    fits = [pk.fit(x, family, origin="fit", n_threads=1) for family, x in origin_columns()]
    return np.array([(fit.nll[0], fit.n_iter[0]) for fit in fits])


@cache
def first_origins() -> np.ndarray:
    return fit_origins()


def origins() -> str:
    first, now = first_origins(), fit_origins()
    change = now[:, 0] - first[:, 0]
    return (
        f"{now[:, 1].mean():.1f} evaluations, {(change < -1e-6).sum()} better and {(change > 1e-6).sum()} worse maxima"
    )


# --- what is varied -------------------------------------------------------------------------------------------

Measure = Callable[[], str]
#: By area: the simulation, and for modules of powerkern.kernels the constants and the other values to try.
AREAS: dict[str, tuple[Measure, dict[str, dict[str, tuple[Any, ...]]]]] = {
    "lockstep": (
        partial(fits_of_matrices, short_matrices),
        {
            "likelihood.lockstep": {
                "_FEWEST": (5.0,), "_MAX_EVAL": (6, 24), "_LONGEST": (1.0, 4.0), "_EXPANSION": (2.0, 8.0),
            },
            "likelihood.one_pass": {"TAYLOR_REACH": (1e-5, 1e-3)},
        },
    ),
    "two-pass": (
        in_two_passes,
        {
            "likelihood.two_pass": {"MAX_EVAL": (15, 30), "MOST_TYPICAL": (7, 127)},
            "optimize.newton": {"_EXPANSION": (2.0, 8.0)},
        },
    ),
    "rare": (
        partial(fits_of_matrices, rare_binaries),
        {"likelihood.lockstep": {"_MAX_GROWTH_TO_CURVATURE": (10.0, 1e3, 1e9)}},
    ),
    "interval": (
        intervals,
        {
            "likelihood.interval": {
                "_END_ERROR": (1e-13, 1e-11), "_ROUNDINGS": (4.0, 80.0), "_FELT": (5e-7, 1e-5),
                "_PANEL_ERROR": (5e-9, 1e-7), "_FELT_ERROR": (5e-10, 1e-8), "_NEARLY": (5e-5, 2e-4),
            },
        },
    ),
    "bisquare": (
        locations,
        {
            "location.biweight": {"_NEAR": (0.0, 0.01, 0.04), "_STEEP": (0.1, 0.4, -1e9)},
            "location.proposal2": {"_MAX_SOLVED": (8, 60)},
        },
    ),
    "median": (
        medians,
        {"multivariate.cells": {"_FEW": (24, 96), "_SAMPLE": (12, 48), "_BELOW": (1, 6), "_ABOVE": (2, 8)}},
    ),
    "regression": (
        regressions,
        {
            "regression.search": {
                "_STEP": (0.25, 1.0), "GROWTH": (1.25, 3.0), "_SHORT": (1e-4, 4e-4, 2e-3), "MAX_EVAL": (15,),
            },
            "regression.likelihood": {
                "_BY_SUBTRACTION": (1e-2, 1e-6), "_FLOOR": (1e-4, 1e-6), "STEPS": (4, 16), "MORE": (20,),
            },
        },
    ),
    "weights": (
        weighted_fits,
        {
            "robust.qq": {"_COPIES": (4.0, 16.0)},
            "robust.qq_column": {
                "_WEIGHTED_PARTS": (2, 8),
                "_ABOUT": tuple(tuple(f * v for v in qq_column._ABOUT) for f in (0.5, 2.0)),
            },
        },
    ),
    "starts": (
        robust_starts,
        {
            "robust.bracket": {
                "_WIDE": (0.065, 0.26), "_OFF": (2.5e-6, 5e-5), "_SURE": (0.0, 3e-11, 3e-9), "_STEADY": (0.075, 0.3),
            },
            "robust.qq_search": {
                "_NARROW": (0.0425, 0.17), "_HIDDEN": (0.0015, 0.006), "_STEEP": (0.1, 0.4), "_LEVEL": (0.0, 3e-4),
                "_NARROWEST": (0.005, 0.02), "_RIVAL_WIDTH": (0.085, 0.26), "_RIVAL_MARGIN": (0.0, 0.04),
                "_AT_ONCE": (3,),
            },
            "robust.search": {"_MARGIN": (0.01, 0.04), "_APART": (0.125, 0.5), "_FINE_XTOL": (5e-6, 2e-5)},
        },
    ),
    "ppcc": (
        partial(starts_of, "ppcc"),
        {
            "normality.ppcc": {
                "_XTOL": (2.5e-9, 2.5e-8), "_RIVAL": (1.0, 4.0), "_MOST_STEPS": (40,), "_FLAT": (1e-11, 1e-7),
            },
        },
    ),
    "carroll": (
        partial(starts_of, "carroll"),
        {
            "robust.carroll": {"_NARROW": (0.015, 0.06), "_HIDDEN": (0.005, 0.02)},
            "robust.search": {"_STEP": (0.25, 1.0), "_RIVAL": (0.05, 0.2)},
        },
    ),
    "origin": (
        origins,
        {
            "origin.maximum": {
                "_HOPELESS": (1.0, 4.0), "_LOWER": (5e-6, 2e-5), "_LONGEST": ((0.5, 0.5, 0.25), (2.0, 2.0, 1.0)),
                "_CONVERGED": (1e-7, 1e-6), "_ON_SAMPLE": (5e-4, 2e-3), "_ROUGHLY": (5e-3, 2e-2),
                "_MOST_STEPS": (40, 160),
                "_GRID_STEPS": (4, 16), "_NOISE": (0.0, 1e-13), "_SINGULAR": (1e-12, 1e-8), "_DAMPED": (5e-3, 2e-2),
                "_MORE": (2.0, 8.0), "_LESS": (0.05, 0.2),
            },
        },
    ),
}  # fmt: skip


def replace_everywhere(name: str, old: Any, new: Any) -> None:
    """Change the constant called `name` from `old` to `new` in its module and in all modules that import it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("powerkern.") and getattr(module, name, None) is old:
            setattr(module, name, new)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m asv_benches.report_constants", description=__doc__)
    parser.add_argument("areas", nargs="*", default=list(AREAS), help=f"any of {', '.join(AREAS)}")
    if not JIT_DISABLED:
        parser.error("set NUMBA_DISABLE_JIT=1: constants are changed in the modules")
    warnings.simplefilter("ignore", UserWarning)
    for area in parser.parse_args().areas:
        measure, modules = AREAS[area]
        print(f"{area}: {measure()}", flush=True)
        for module, constants in modules.items():
            for name, values in constants.items():
                old = getattr(import_module(f"powerkern.kernels.{module}"), name)
                for value in values:
                    replace_everywhere(name, old, value)
                    print(f"  {module}.{name} = {value} (now {old}): {measure()}", flush=True)
                    replace_everywhere(name, value, old)


if __name__ == "__main__":
    main()
