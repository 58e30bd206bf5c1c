"""Run ``powerkern demo``: fit simulated data of known lambda, and measure error and speed."""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import powerkern as pk
from powerkern._cli.arguments import FAMILIES
from powerkern._cli.output import print_json, print_table
from powerkern._engine.threads import default_threads
from powerkern._input.tables import files
from powerkern._input.tables.table import one_line_file_errors

_PEER_COLUMNS = 3
_REPEATS = 3


class _DemoResults(NamedTuple):
    """Errors and times that the demo measured for one family."""

    #: "box-cox" or "yeo-johnson".
    family: str
    #: Root mean square of (estimate - truth) / standard error; 1 for an efficient estimator.
    rms_error: float
    #: Fraction of columns whose true lambda lies within 1.96 standard errors of the estimate.
    coverage: float
    fit_seconds: float
    #: Time of the fit, of the transform and of its inverse, in nanoseconds per value.
    ns_per_value: float
    transform_ns_per_value: float
    inverse_ns_per_value: float
    #: Largest error of inverse(transform(x)), relative to 1 + |x|.
    round_trip_error: float
    #: Time of a fit by each other library, in nanoseconds per value.
    peers: dict[str, float]


def run(args: argparse.Namespace) -> None:
    """Run the demo for both families; print or save the results."""
    if args.save:
        with one_line_file_errors("write", args.save):
            args.save.mkdir(parents=True, exist_ok=True)
    say = (lambda *_, **__: None) if args.json else print
    n_threads = args.n_threads or default_threads()
    say(f"powerkern {pk.__version__}: {args.rows:,} x {args.columns:,} simulated values each, {n_threads} threads")
    started = time.perf_counter()
    _warm_up(args)
    say(f"compiled, or loaded from the cache, in {time.perf_counter() - started:.1f} s\n")
    results = [_run_family(family, args, say) for family in ("box-cox", "yeo-johnson")]
    say()
    if args.json:
        print_json(
            {
                "rows": args.rows,
                "columns": args.columns,
                "n_threads": n_threads,
                "families": [f._asdict() for f in results],
            }
        )
        return
    print_table(["", *(f.family for f in results)], _demo_rows(results), left={0})
    measured = min(_PEER_COLUMNS, args.columns)
    print(
        f"\nTimes are the best of {_REPEATS} runs. Peers run on one core and are measured on {measured} of the columns."
    )
    if args.save:
        print(f"Saved in {args.save}: box-cox.npy, box-cox.json, yeo-johnson.npy, yeo-johnson.json.")


def _demo_rows(results: Sequence[_DemoResults]) -> list[list[str]]:
    """Return the rows of the printed table, each with a label and one cell per family."""

    def row(label: str, cell: Callable[[_DemoResults], str]) -> list[str]:
        return [label, *map(cell, results)]

    return [
        row("error of lambda, rms, in standard errors (expected: 1)", lambda f: f"{f.rms_error:.2f}"),
        row("true lambda within 1.96 standard errors (expected: 95 %)", lambda f: f"{f.coverage:.1%}"),
        row("error of inverse(transform(x)), relative", lambda f: f"{f.round_trip_error:.0e}"),
        row("fit, seconds", lambda f: f"{f.fit_seconds:.3f}"),
        row("fit, million values/s", lambda f: f"{1e3 / f.ns_per_value:,.1f}"),
        row("fit, ns/value", lambda f: f"{f.ns_per_value:.2f}"),
        *(
            row(f"  {peer}", lambda f: f"{f.peers[peer]:,.0f} (x {f.peers[peer] / f.ns_per_value:,.0f})")  # noqa: B023 - called at once
            for peer in results[0].peers
        ),
        row("transform, ns/value", lambda f: f"{f.transform_ns_per_value:.2f}"),
        row("inverse, ns/value", lambda f: f"{f.inverse_ns_per_value:.2f}"),
    ]


def _warm_up(args: argparse.Namespace) -> None:
    """Compile every kernel that is timed later."""
    for family in FAMILIES:
        for rows in (50, args.rows):  # short columns have a separate kernel
            x = _simulate(family, np.ones(2), rows, np.random.default_rng(0))
            fit = pk.fit(x, family=family, n_threads=args.n_threads)
        fit.inverse_transform(fit.transform(x))


def _run_family(family: str, args: argparse.Namespace, say: Callable[..., None]) -> _DemoResults:
    """Simulate data of one family; time and check the fit, the transform and its inverse. `say` prints progress."""
    rng = np.random.default_rng([args.seed, FAMILIES.index(family)])
    # for 0 <= lambda <= 2 Yeo-Johnson takes every real value, so that transformed data can be exactly normal
    truth = rng.uniform(*((-1, 1) if family == "box-cox" else (0, 2)), args.columns)
    x = _simulate(family, truth, args.rows, rng)
    say(f"timing {family}: powerkern", end="", flush=True)
    seconds, fit = _time_best(lambda: pk.fit(x, family=family, n_threads=args.n_threads))
    transform_seconds, z = _time_best(lambda: fit.transform(x, n_threads=args.n_threads))
    inverse_seconds, back = _time_best(lambda: fit.inverse_transform(z, n_threads=args.n_threads))
    error = (fit.lmbda - truth) * np.sqrt(fit.information)
    if args.save:
        path = args.save / f"{family}.npy"
        with files.replaced(path) as part:
            np.save(part, x)
        files.write_text(args.save / f"{family}.json", fit.to_json() + "\n")
    per_value = 1e9 / x.size
    peers = _time_peers(family, np.ascontiguousarray(x[:, :_PEER_COLUMNS]), say)
    say()
    return _DemoResults(
        family=family,
        rms_error=math.sqrt(np.mean(error**2)),
        coverage=float(np.mean(np.abs(error) < 1.959964)),
        fit_seconds=seconds,
        ns_per_value=seconds * per_value,
        transform_ns_per_value=transform_seconds * per_value,
        inverse_ns_per_value=inverse_seconds * per_value,
        round_trip_error=float(np.max(np.abs(back - x) / (1 + np.abs(x)))),
        peers=peers,
    )


def _simulate(family: str, lmbda: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a (rows, p) matrix of data whose column j is exactly normal after the transform with lmbda[j].

    Parameters
    ----------
    family : {"box-cox", "yeo-johnson"}
        The transform.
    lmbda : (p,) ndarray
        True lambda of each column.
    rows : int
        Number of rows.
    rng : numpy.random.Generator
        Random generator.
    """
    z = rng.standard_normal((rows, lmbda.size))
    if family == "box-cox":  # lambda does not depend on the scale; the standard deviation 0.15 keeps lambda y > -1
        x: NDArray[np.float64] = np.exp(rng.uniform(-3, 7, lmbda.size) + np.log1p(lmbda * (0.15 * z)) / lmbda)
        return x
    y = z + rng.uniform(-1, 1, lmbda.size)
    exponent = np.where(y >= 0, lmbda, 2 - lmbda)
    x = np.copysign(np.expm1(np.log1p(exponent * np.abs(y)) / exponent), y)
    return x


def _time_best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run `work` _REPEATS times; return the shortest time in seconds and the last result."""
    seconds = math.inf
    for _ in range(_REPEATS):
        started = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, result


def _time_peers(family: str, x: NDArray[np.float64], say: Callable[..., None]) -> dict[str, float]:
    """Return the time that scipy and scikit-learn, if installed, take to estimate lambda: ns per value, by package."""
    times = {}
    for package, peer in (("scipy", _fit_scipy), ("scikit-learn", _fit_sklearn)):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        say(f", {package}", end="", flush=True)
        peer(family, x[:100])  # so that its imports are not timed
        seconds, _ = _time_best(lambda: peer(family, x))  # noqa: B023 - called at once
        times[f"{package} {version}"] = seconds * 1e9 / x.size
    return times


def _fit_scipy(family: str, x: NDArray[np.float64]) -> None:
    """Estimate lambda of each column with scipy."""
    from scipy import stats

    for column in np.ascontiguousarray(x.T):
        if family == "box-cox":
            stats.boxcox_normmax(column, method="mle")
        else:
            stats.yeojohnson_normmax(column)


def _fit_sklearn(family: str, x: NDArray[np.float64]) -> None:
    """Estimate lambda of each column with scikit-learn."""
    from sklearn.preprocessing import PowerTransformer

    PowerTransformer(family, standardize=False).fit(x)
