"""Measure every figure that powerkern.cellwise is meant to reach, in one run.

python -m asv_benches.report_cellwise [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_cellwise
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for shape in ((10_000, 1000), (1000, 2000)):
        name = f"correlation of {shape[0]} x {shape[1]} wrapped columns, in np.corrcoef"
        yield Figure(f"{name} by the clock", "<= 2 x", bench_cellwise.Correlation, "track_numpys", (shape,))
        yield Figure(f"{name} by CPU time", "<= 2 x", bench_cellwise.Correlation, "track_cpu_of_numpys", (shape,))
    shape = (10_000, 200)
    yield Figure("wrapping 10000 x 200, in np.median", "<= 2 x", bench_cellwise.Wrapping, "track_medians", (shape,))
    for search, shape in (("pairs", (1000, 200)), ("wrapped", (1000, 200)), ("wrapped", (1000, 2000))):
        name = f"deviating cells of {shape[0]} x {shape[1]}, search {search!r}"
        limit = "<= 1 s" if shape[1] == 200 else "<= 5 s"
        yield Figure(name, limit, bench_cellwise.DeviatingCells, "track_seconds", (search, shape))
        found = f"{name}: share of the planted cells found"
        yield Figure(found, ">= 0.95", bench_cellwise.DeviatingCells, "track_found", (search, shape))
    name = "robust components of 1000 x 200, in singular value decompositions"
    yield Figure(name, "<= 2 x", bench_cellwise.Components, "track_svds", ((1000, 200),))


if __name__ == "__main__":
    main(figures)
