"""Measure the coverage of intervals of robust fits, and the fraction of clean values flagged as outliers, in one run.

python -m asv_benches.report_coverage [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_coverage
from .report import Figure, main

#: Clean columns of a setting; the standard error of a coverage is 0.7 %.
COLUMNS = 1_000
CASES: list[bench_coverage.Case] = [
    *(("yeo-johnson", lmbda) for lmbda in (0.0, 0.5, 1.0, 1.5)),
    *(("box-cox", lmbda) for lmbda in (0.0, 1.0)),
]
CLEAN = (0.0, 0.0)


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    yield from clean()
    yield from contaminated()
    yield from flagged()
    yield from cost()


def clean() -> Iterator[Figure]:
    for n in (50, 100, 300, 1000):
        for case in CASES:
            yield _off(case, n, "robust", 2.0)
    for estimator in ("rewml-nr", "carroll", "mtl", "ppcc"):
        for n in (50, 300):
            for case in (("yeo-johnson", 1.0), ("box-cox", 0.0)):
                yield _off(case, n, estimator, 2.0)


def _off(case: bench_coverage.Case, n: int, estimator: str, most: float) -> Figure:
    name = f"{estimator}, {case[0]} {case[1]}, n = {n}, clean: distance of the coverage from 95 %"
    parameters = (case, n, estimator, CLEAN, COLUMNS)
    return Figure(name, f"<= {most} %", bench_coverage.Coverage, "track_off", parameters)


def contaminated() -> Iterator[Figure]:
    for n in (100, 400):
        for case in CASES:
            for share in (0.05, 0.1, 0.2):
                for k in (4.0, 10.0):
                    where = f"rewml, {case[0]} {case[1]}, n = {n}, {share:.0%} at k = {k:g}"
                    name = f"{where}: coverage of the lambda of clean columns, no promise"
                    parameters = (case, n, "robust", (share, k), COLUMNS // 2)
                    yield Figure(name, ">= 0", bench_coverage.Coverage, "track_coverage", parameters)


def flagged() -> Iterator[Figure]:
    for n in (5, 10, 20, 50, 100, 1000):
        for case in CASES:
            name = f"rewml, {case[0]} {case[1]}, n = {n}: clean values called outliers, nominally 1 %"
            yield Figure(name, "<= 2 %", bench_coverage.Flagged, "track_share", (case, n, "robust", 200_000))


def cost() -> Iterator[Figure]:
    for shape in ((50, 100), (1_000, 100), (10_000, 20)):
        name = f"rewml, {shape[0]} x {shape[1]}: CPU time of an interval over that of the fit"
        yield Figure(name, "<= 400 x", bench_coverage.Cost, "track_over_fit", ("robust", shape))


if __name__ == "__main__":
    main(figures)
