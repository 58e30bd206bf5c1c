"""What weights, missing values and a given lambda cost, each beside the plain fit of the same matrix, in one run.

python -m asv_benches.report_weights [--only WORD]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import bench_fit
from .report import FAMILIES, Figure, main


def figures() -> Iterator[Figure]:
    """All figures, in their full sizes."""
    _, sizes, regimes, threads = bench_fit.Regimes.params
    for family, n, regime, n_threads in itertools.product(FAMILIES, sizes, regimes, threads):
        if n_threads == 1 or regime == "weights":
            name = f"fit {family}, {n} rows, {n_threads} thread{'s' * (n_threads > 1)}: {regime}, CPU time over plain"
            yield Figure(name, "<= 1.5 x", bench_fit.Regimes, "track_cost", (family, n, regime, n_threads))


if __name__ == "__main__":
    main(figures)
