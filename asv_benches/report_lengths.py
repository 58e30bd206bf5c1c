"""Time per value of fits and transforms for columns of any length, by powerkern and by peers, for a plot.

python -m asv_benches.report_lengths [--write docs/images/cost_by_length.csv] && python docs/images/cost_by_length.py

The unit is CPU time on one thread, in ns per value. powerkern is measured with code for this CPU and, in a separate
process, for AVX2.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import scipy.stats
from sklearn.preprocessing import PowerTransformer

import powerkern as pk
from powerkern._jit.cpus import Cpu, runnable, this_cpu

from ._measure import FAMILIES, InTurns, in_new_process_for, instruction_set, matrix
from .bench_fit import fit, fit_by_scipy, fit_by_sklearn
from .report import machine

LENGTHS = (20, 50, 100, 200, 300, 500, 1_000, 3_000, 10_000, 100_000, 1_000_000)
#: Values of a matrix whose columns are not longer; peers are measured on few columns, because they are slow.
VALUES, PEER_VALUES, PEER_COLUMNS = 1_000_000, 10_000, 50


class Cost(NamedTuple):
    """One point of the plot: library, job, family, number of rows, and time per value in ns."""

    library: str
    job: str
    family: str
    n: int
    ns: float


def calls(library: str, x: np.ndarray, family: str) -> dict[str, Callable[[], Any]]:
    """Return two functions that fit the columns of `x` with a library and transform them."""
    found = fit(x, family, 1)
    if library == "powerkern":
        jobs = lambda: fit(x, family, 1), lambda: found.transform(x, n_threads=1)
    elif library == "scikit-learn":
        peer = PowerTransformer(family, standardize=False)
        peer.lambdas_, peer.n_features_in_ = found.lmbda, x.shape[1]
        jobs = lambda: fit_by_sklearn(x, family), lambda: peer.transform(x)
    else:
        one = scipy.stats.boxcox if family == "box-cox" else scipy.stats.yeojohnson
        lambdas = found.lmbda.tolist()
        jobs = (
            lambda: fit_by_scipy(x, family),
            lambda: [one(column, lmbda) for column, lmbda in zip(x.T, lambdas, strict=True)],
        )
    return dict(zip(("fit", "transform"), jobs, strict=True))


def costs(library: str, values: int, most_columns: int = VALUES) -> Iterator[Cost]:
    """Measure the cost of each job of a library, for each family and number of rows.

    A matrix has about `values` values, but at most `most_columns` columns.
    """
    turns = InTurns()
    turns.seconds = 0.3
    for family in FAMILIES:
        pk.fit(matrix(family, 100, 8), family)  # compiles
        for n in LENGTHS:
            x = matrix(family, n, min(max(1, values // n), most_columns))
            for job, lap in turns.compare(calls(library, x, family)).items():
                yield Cost(library, job, family, n, 1e9 * lap.cpu / x.size)


def own_costs() -> str:
    """Measure powerkern in this process; return the instruction set and the costs as JSON."""
    return json.dumps([instruction_set(), list(costs("powerkern", VALUES))])


def restricted(cpu: Cpu) -> Iterator[Cost]:
    """Yield the costs of powerkern with code for one CPU, measured in a separate process."""
    printed = in_new_process_for(cpu, f"from {__package__}.report_lengths import own_costs; print(own_costs())")
    name, points = json.loads(printed)
    for point in points:
        yield Cost(*point)._replace(library=f"powerkern, {name}")


def points() -> Iterator[Cost]:
    """Yield all points of the figure."""
    for cpu in runnable():
        if cpu in (this_cpu(), Cpu("x86-64-v3")):
            yield from restricted(cpu)
    for peer in ("scikit-learn", "SciPy"):
        yield from costs(peer, PEER_VALUES, PEER_COLUMNS)


def write(file: TextIO) -> None:
    """Write a line of conditions, and a line for each point as it is measured."""
    print("#", machine(), file=file)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Cost._fields)
    for point in points():
        writer.writerow(point._replace(ns=float(f"{point.ns:.4g}")))


def main() -> None:
    """Print the points, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="write the figures to this file")
    path = parser.parse_args().write
    if path is None:
        write(sys.stdout)
    else:
        with path.open("w", encoding="utf-8") as file:
            write(file)


if __name__ == "__main__":
    main()
