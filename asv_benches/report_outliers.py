"""Every figure that powerkern.outliers is meant to reach, measured in one run.

python -m asv_benches.report_outliers [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_outliers
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """All figures, in their full sizes."""
    for rule in bench_outliers.RULES:
        name = f"{rule}: largest error of parameters and probabilities over the reference vectors"
        yield Figure(name, "<= 1e-9", bench_outliers.Accuracy, "track_worst", (rule,))
    for order in ("C", "F"):
        name = f"10000 x 200 scores to probabilities (mean + nMAD), order {order}, in medians by numpy"
        yield Figure(name, "<= 5", bench_outliers.Probabilities, "track_medians", ("mean+nmad", order, 10_000, 200))
    name = "proposal 2 of 10000 x 200 scores, one thread, over statsmodels"
    yield Figure(name, ">= 9 x", bench_outliers.Proposal2, "track_speedup", (10_000, 200))


if __name__ == "__main__":
    main(figures)
