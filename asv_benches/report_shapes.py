"""Cost per value in matrices of any shape, relative to the best shape, measured in one run.

python -m asv_benches.report_shapes [--only WORD] [--write FILE]

For code for CPUs with AVX2 but without AVX-512, put NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES="" before the command.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from numba.core.registry import cpu_target

from . import bench_fit
from .report import FAMILIES, Figure, main

#: Values of every matrix.
VALUES = 3_000_000
#: Largest accepted cost per value, by number of rows, relative to columns of 10,000.
OVER_LONG = {20: 4, 50: 2, 100: 2, 200: 2, 255: 2, 512: 2, 1_000: 2}


def figures() -> Iterator[Figure]:
    """Yield all figures; `n` is the number of rows, and the CPU is the target of the compiled code."""
    cpu = f"on {cpu_target.target_context.codegen().magic_tuple()[1]}"
    yield from fitting(cpu)
    yield from on_two_threads(cpu)


def fitting(cpu: str) -> Iterator[Figure]:
    """Yield figures for maximum likelihood on one thread; scikit-learn is compared with two threads."""
    for family, (n, limit), order in itertools.product(FAMILIES, OVER_LONG.items(), ("C", "F")):
        name = f"fit {family}, n = {n}, order {order}, {cpu}: cost a value over that at n = 10000, order C"
        parameters = (family, order, n, "unweighted", VALUES)
        yield Figure(name, f"<= {limit}", bench_fit.ByLength, "track_over_long", parameters)
    for family, n in itertools.product(FAMILIES, (50, 255)):
        name = f"weighted fit {family}, n = {n}, {cpu}: cost a value over an unweighted one at n = 10000"
        parameters = (family, "C", n, "weighted", VALUES)
        yield Figure(name, "<= 3", bench_fit.ByLength, "track_over_long", parameters)
    for family, target in (("yeo-johnson", ">= 3000 x"), ("box-cox", ">= 1000 x")):
        name = (
            f"fit {family}, 50 x 20000, two threads, {cpu}, over scikit-learn's of {bench_fit.ShortPeers.few} columns"
        )
        yield Figure(name, target, bench_fit.ShortPeers, "track_speedup", (family, 50, 20_000))


def on_two_threads(cpu: str) -> Iterator[Figure]:
    """Yield speedups by a second thread for vectors, few columns and many short ones, and for np.exp."""
    vectors = [f"{n} x 1" for n in (40_000, 100_000, 300_000, 1_000_000, 3_000_000)]
    matrices = ["20 x 50000", "50 x 20000", "300 x 3400", "1000 x 1000", "10000 x 10", "10000 x 100", "10000 x 1000"]
    few = ["20000 x 3", "100000 x 2", "100000 x 3", "300000 x 3"]
    regimes = ["5 % missing", "weights", "weights, 5 % missing"]
    cases = [
        *itertools.product(vectors, "F", ("float64", "float32"), ["plain"]),
        *itertools.product(vectors[1:3], "F", ["float64"], regimes),
        *itertools.product([*few, *matrices], "CF", ["float64"], ["plain"]),
    ]
    for family, case in itertools.product(FAMILIES, cases):
        name = f"fit {family}, {', '.join(case)}, {cpu}: two threads over one"
        yield Figure(name, ">= 1.6 x", bench_fit.TwoThreads, "track_gain", (family, *case))


if __name__ == "__main__":
    main(figures)
