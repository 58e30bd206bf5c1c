"""Differences between results of code for each instruction set of this computer, each in a separate process.

python -m asv_benches.report_differences [> docs/benchmarks/differences.inc]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ._measure import FAMILIES, FloatArray, in_new_process_for
from .report import list_table, machine
from .report_cpus import targets

#: Rows and columns of matrices that together cover every route of fits in memory.
SHAPES = ((20, 2_000), (100, 1_000), (300, 500), (2_000, 100), (100_000, 4))
#: The seed and the number of the batches of difficult columns, those of ``python -m tests.fuzz``.
DIFFICULT = (900, 150)

#: Transforms and inverses use the same rounded lambda on every CPU, so only their own differences remain.
_RESULTS = """
import warnings, numpy as np, powerkern as pk
from asv_benches._measure import matrix
from tests.fuzz import columns
warnings.simplefilter("ignore")  # some difficult columns cannot be fitted
results = {}
for family in %r:
    for n, p in %r:
        x = matrix(family, n, p)
        fit, robust = pk.fit(x, family), pk.fit(x, family, "robust")
        given = pk.fit(x, family, lmbda=np.round(fit.lmbda, 1))
        z = given.transform(x)
        found = {
            "lambda": fit.lmbda,
            "lambda, rewml": robust.lmbda,
            "likelihood": fit.nll,
            "mean of transformed values": given.loc,
            "their standard deviation": given.scale,
            "transform": z,
            "inverse": given.inverse_transform(z),
        }
        results |= {f"{name}, {family}, {n}": values for name, values in found.items()}
for i in range(%r[1]):
    batch = columns.batch(%r[0], i)
    fit = pk.fit(batch.values, batch.family, sample_weight=batch.weight)
    results |= {f"lambda, difficult columns, {i}": fit.lmbda}
np.savez(%r, **results)
print()
"""

Results = dict[str, FloatArray]


def results(folder: Path) -> Iterator[tuple[str, Results]]:
    """Yield the name of each CPU, and the results of the code compiled for it."""
    for cpu in targets():
        file = str(folder / f"{cpu.name}.npz")
        in_new_process_for(cpu, _RESULTS % (FAMILIES, SHAPES, DIFFICULT, DIFFICULT, file))
        with np.load(file) as arrays:
            yield cpu.name, dict(arrays)


def difference(a: FloatArray, b: FloatArray) -> float:
    """Return the largest difference of the elements of `a` and `b`, relative to max(1, their magnitude)."""
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(a), 1.0), initial=0.0))


def largest(job: str, theirs: Results, ours: Results) -> float:
    """Return the largest difference, over all shapes, between the results `theirs` and `ours` of a job.

    A job is called "lambda, box-cox", for example.
    """
    return max(difference(ours[name], theirs[name]) for name in ours if name.rpartition(", ")[0] == job)


def rows(by_cpu: dict[str, Results]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each result: its largest differences between code for the first CPU and for every other."""
    first, *others = by_cpu.values()
    for job in dict.fromkeys(name.rpartition(", ")[0] for name in first):
        yield job, *(f"{largest(job, theirs, first):.1e}" for theirs in others)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        by_cpu = dict(results(Path(folder)))
    first, *others = by_cpu
    conditions = f"Measured by ``python -m asv_benches.report_differences`` on: {machine()}."
    print(list_table(conditions, (f"largest difference from {first}", *others), rows(by_cpu)), end="")
