"""Measure every figure of the scikit-learn estimators, in one run.

python -m asv_benches.report_sklearn [--only WORD] [--write FILE]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_sklearn
from .report import FAMILIES, Figure, main


def figures() -> Iterator[Figure]:
    """Yield figures for the speed relative to scikit-learn, and for threads in worker processes."""
    peer = "scikit-learn's, 10000 x 40"
    for method in FAMILIES:
        for job, target in (("fit", ">= 100 x"), ("transform", ">= 5 x"), ("inverse_transform", ">= 5 x")):
            name = f"PowerTransformer({method!r}).{job} over {peer}"
            yield Figure(name, target, bench_sklearn.Speedup, "track_speedup", (job, method, 10_000, 40))
    for job in ("fit", "transform"):
        name = f"PowerTransformer.{job} over the function, 10000 x 100: share that is added"
        yield Figure(name, "<= 0.25", bench_sklearn.Overhead, "track_share", (job, 10_000, 100))
    name = "grid search, n_jobs=2, time of n_threads=None over n_threads=1"
    yield Figure(name, "<= 1.1", bench_sklearn.GridSearch, "track_ratio", (20_000, 40))
    name = "threads of two joblib workers over the CPUs"
    yield Figure(name, "<= 1", bench_sklearn.GridSearch, "track_threads", (20_000, 40))


if __name__ == "__main__":
    main(figures)
