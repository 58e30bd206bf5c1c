"""Time of fits and transforms with code for each instruction set of this computer, each in separate processes.

python -m asv_benches.report_cpus [> docs/benchmarks/cpus.inc]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from powerkern._jit.cpus import Cpu, runnable

from ._measure import FAMILIES, Units, in_new_process_for
from .report import list_table, machine

#: Processes for each instruction set.
_ROUNDS = 3

#: Code that measures jobs for a matrix of 10,000 rows, in ns of CPU time per value on one thread, and the units.
_JOBS = """
import json, powerkern as pk
from asv_benches._measure import InTurns, exp_passes, matrix
figures, turns = {}, InTurns()
turns.seconds = 1.0
for family in %r:
    x = matrix(family, 10_000, 20)
    fit = pk.fit(x, family, n_threads=1)
    z = fit.transform(x)
    calls = {
        "fit": lambda: pk.fit(x, family, n_threads=1),
        "robust": lambda: pk.fit(x, family, "robust", n_threads=1),
        "transform": lambda: fit.transform(x, n_threads=1),
        "inverse": lambda: fit.inverse_transform(z, n_threads=1),
    }
    figures |= {f"{job}, {family}": lap.cpu / x.size * 1e9 for job, lap in turns.compare(calls).items()}
print(json.dumps([exp_passes(), figures]))
"""


def targets() -> list[Cpu]:
    """Return this CPU and its instruction sets, except x86-64-v2, because the kernels use nothing that it adds."""
    return [cpu for cpu in runnable() if cpu.name != "x86-64-v2"]


def measured(cpu: Cpu) -> dict[str, float]:
    """Return the time in ns per value of both `Units` and of each job, by name."""
    passes, figures = json.loads(in_new_process_for(cpu, _JOBS % FAMILIES))
    return Units(*passes)._asdict() | figures


def least() -> dict[str, dict[str, float]]:
    """Return by instruction set the shortest times of several processes, which alternate between instruction sets."""
    found = [(cpu.name, measured(cpu)) for _ in range(_ROUNDS) for cpu in targets()]
    names = dict.fromkeys(name for name, _ in found)
    return {name: _least(figures for of, figures in found if of == name) for name in names}


def _least(runs: Iterable[dict[str, float]]) -> dict[str, float]:
    first, *others = runs
    return {job: min(figure, *(run[job] for run in others)) for job, figure in first.items()}


def rows() -> Iterator[tuple[str, ...]]:
    """Yield a row for each instruction set: the units, and the time of each job in ns and in units."""
    for name, figures in least().items():
        numpys, ours = figures.pop("numpys"), figures.pop("ours")
        costs = (f"{figure:.2f} ({figure / ours:.1f})" for figure in figures.values())
        yield name, f"{ours:.2f}", f"{numpys:.2f}", *costs


if __name__ == "__main__":
    jobs = (f"{job}, {family}" for family in FAMILIES for job in ("fit", "robust", "transform", "inverse"))
    conditions = f"Measured by ``python -m asv_benches.report_cpus`` on: {machine()}."
    print(list_table(conditions, ("code for", "powerkern's exp", "np.exp", *jobs), rows()), end="")
