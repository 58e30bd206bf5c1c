"""What fits and transforms cost with code for each instruction set that this computer has, a process for each.

python -m asv_benches.report_cpus [> docs/benchmarks/cpus.inc]
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from powerkern._jit.cpus import Cpu, runnable

from ._measure import FAMILIES, Units, in_new_process_for
from .report import list_table, machine

#: A matrix of 10,000 rows; ns a value of CPU time on one thread, and the units.
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
        "rewml": lambda: pk.fit(x, family, "rewml", n_threads=1),
        "transform": lambda: fit.transform(x, n_threads=1),
        "inverse": lambda: fit.inverse_transform(z, n_threads=1),
    }
    figures |= {f"{job}, {family}": lap.cpu / x.size * 1e9 for job, lap in turns.compare(calls).items()}
print(json.dumps([exp_passes(), figures]))
"""


def targets() -> list[Cpu]:
    """This CPU, and the instruction sets that it has; without x86-64-v2, which adds nothing that the kernels use."""
    return [cpu for cpu in runnable() if cpu.name != "x86-64-v2"]


def measured(cpu: Cpu) -> tuple[Units, dict[str, float]]:
    """The units, and ns a value by job."""
    passes, figures = json.loads(in_new_process_for(cpu, _JOBS % FAMILIES))
    return Units(*passes), figures


def rows() -> Iterator[tuple[str, ...]]:
    """Instruction set, the units, and job by job the cost in ns and in passes."""
    for cpu in targets():
        units, figures = measured(cpu)
        costs = (f"{figure:.2f} ({figure / units.ours:.1f})" for figure in figures.values())
        yield cpu.name, f"{units.ours:.2f}", f"{units.numpys:.2f}", *costs


if __name__ == "__main__":
    jobs = (f"{job}, {family}" for family in FAMILIES for job in ("fit", "rewml", "transform", "inverse"))
    conditions = f"Measured by ``python -m asv_benches.report_cpus`` on: {machine()}."
    print(list_table(conditions, ("code for", "powerkern's exp", "np.exp", *jobs), rows()), end="")
