"""Time of fits with weights, missing values or a given lambda, relative to the plain fit of the same matrix.

Fits with both weights and missing values are compared with unweighted fits of the same values.

python -m asv_benches.report_weights [--only WORD] [--seconds S] [--write FILE]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import bench_fit
from .report import FAMILIES, Figure, crossed, main

#: Rows.
SIZES = (256, 500, 600, 1000, 10_000, 100_000, 500_000, 1_000_000)
_REGIMES = [*bench_fit.REGIMES, *bench_fit.REGIMES_WITH_GAPS]


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for family, n, regime, n_threads in itertools.product(FAMILIES, SIZES, _REGIMES, (1, 2)):
        if n_threads == 1 or regime == "weights":
            name = f"CPU time over plain, fit {family}, {n} rows: {regime}{', two threads' * (n_threads > 1)}"
            yield Figure(name, "<= 1.5 x", bench_fit.Regimes, "track_cost", (family, n, regime, n_threads))


if __name__ == "__main__":
    main(figures, crossed, seconds=0.4)
