"""Measure every figure that powerkern.outliers is meant to reach, in one run.

python -m asv_benches.report_outliers [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_normality_search, bench_outliers
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for rule in bench_outliers.RULES:
        name = f"{rule}: largest error of parameters and probabilities over the reference vectors"
        yield Figure(name, "<= 1e-9", bench_outliers.Accuracy, "track_worst", (rule,))
    for measure in bench_outliers.MEASURES:
        but = ", but for 3 of 132 that the reference rounds" if measure in ("refine", "calib") else ""
        name = f"{measure}, overall and by class: largest error over the reference vectors and rules{but}"
        yield Figure(name, "<= 1e-9", bench_outliers.MeasureAccuracy, "track_worst", (measure,))
    for order in ("C", "F"):
        name = f"10000 x 200 scores to probabilities (mean + nMAD), order {order}, in medians by numpy"
        yield Figure(name, "<= 5", bench_outliers.Probabilities, "track_medians", ("mean+nmad", order, 10_000, 200))
    name = "proposal 2 of 10000 x 200 scores, one thread, over statsmodels"
    yield Figure(name, ">= 9 x", bench_outliers.Proposal2, "track_speedup", (10_000, 200))
    for rule in ("unify", "linear"):
        name = f"10000 x 50 scores, one thread, rule {rule!r} of PyOD"
        yield Figure(f"{name}: times faster", ">= 1 x", bench_outliers.OverPyOD, "track_speedup", (rule, 10_000, 50))
        yield Figure(f"{name}: difference", "<= 1e-9", bench_outliers.OverPyOD, "track_difference", (rule, 10_000, 50))
    for n in (200, 10_000):
        name = f'estimator="ppcc", columns of {n}'
        yield Figure(
            f"{name}: lambda beside SciPy", "<= 1e-6", bench_normality_search.OverScipy, "track_difference", (n,)
        )
        yield Figure(f"{name}: times faster", ">= 1 x", bench_normality_search.OverScipy, "track_speedup", (n,))


if __name__ == "__main__":
    main(figures)
