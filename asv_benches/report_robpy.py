"""RewML compared with robpy, a package by one of RewML's authors: bias, error and time in the paper's simulation.

python -m asv_benches.report_robpy [--write docs/benchmarks/robpy.inc]

robpy pins scikit-learn below 1.7, so it needs a separate environment: ``pip install robpy -e '.[sklearn]'``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import powerkern as pk

from .report import list_table, machine
from .report_sides import simulated

CASES = [("yeo-johnson", 0.5), ("yeo-johnson", 1.0), ("box-cox", 0.0), ("box-cox", 1.0)]
#: Values in a column, fraction of outliers, and their distance.
SETTINGS = [(100, 0.0, 10.0), (100, 0.1, 10.0), (1000, 0.1, 10.0)]
REPLICATES = 100


def robpy(X: np.ndarray, family: str) -> np.ndarray:
    """Return the lambda of each column by robpy, which fits one column at a time."""
    from robpy.preprocessing import RobustPowerTransformer  # asv imports every module, installed or not

    method = family.replace("-", "")
    return np.array([RobustPowerTransformer(method).fit(x).lambda_rew for x in X.T])


def ours(X: np.ndarray, family: str, estimator: str) -> np.ndarray:
    """Return the lambda of each column by powerkern on one thread, because robpy uses one."""
    return pk.fit(X, family, estimator, n_threads=1).lmbda


FITS: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
    "robpy": robpy,
    "powerkern": lambda X, family: ours(X, family, "robust"),
    "powerkern, the paper's rules": lambda X, family: ours(X, family, "rewml"),
}


def rows() -> list[tuple[str, ...]]:
    found = []
    for family, lmbda in CASES:
        for n, share, k in SETTINGS:
            X = simulated((family, lmbda), n, share, k, "high", REPLICATES)
            cells = [f"{family} {lmbda:g}", f"{n:,}", f"{share:.0%}"]
            for fit in FITS.values():
                fit(X[:, :2], family)  # compiled
                begin = time.perf_counter()
                error = fit(X, family) - lmbda
                seconds = time.perf_counter() - begin
                cells.append(f"{error.mean():+.3f}, {np.mean(error**2):.3f}, {1e3 * seconds / REPLICATES:.2g} ms")
            found.append(tuple(cells))
            print(" | ".join(cells), flush=True)
    return found


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as reStructuredText")
    args = parser.parse_args()
    head = ("true lambda", "n", "outliers", *(f"{name}: bias, MSE, time per column" for name in FITS))
    caption = (
        f"Measured by ``python -m asv_benches.report_robpy``, {REPLICATES} replicates, one thread, on: {machine()}"
    )
    table = list_table(caption, head, rows())
    if args.write:
        args.write.write_text(table, encoding="utf-8")


if __name__ == "__main__":
    run()
