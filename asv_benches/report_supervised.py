"""Measure every figure that powerkern.sklearn.supervised is meant to reach, in one run of about ten minutes.

python -m asv_benches.report_supervised [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_supervised
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    fold = "one fold of the breast-cancer data, naive Bayes, 4 epochs by training accuracy"
    # a tenth of the 3.4 s that the published code takes
    yield Figure(fold, "<= 0.34 s", bench_supervised.Fold, "track_seconds", ("naive Bayes", 4))
    beside = bench_supervised.BesidePublished, "track_speedup", ("naive Bayes", 4)
    yield Figure(f"{fold}, over scoring every trial anew, as published", ">= 10 x", *beside)
    blocks, many = bench_supervised.Blocks, "blocks, nearest neighbors, 50 columns"
    yield Figure(f"{many}, 2,000 rows: best score less the grid's", ">= 0 points", blocks, "track_gain", (2000, 50))
    yield Figure(f"{many}, 2,000 rows: trials", "<= 0.1 of the grid's", blocks, "track_trials", (2000, 50))
    yield Figure(f"{many}, 2,000 rows: CPU time, grid's over blocks'", ">= 10 x", blocks, "track_speedup", (2000, 50))
    # the time of the grid is its number of trials at 2,000 rows times the time of a trial here
    yield Figure(f"{many}, 10,000 rows", "<= 150 s of CPU time", blocks, "track_seconds", (10_000, 50))
    for classifier, published in bench_supervised.PUBLISHED.items():
        for search, gain in published.items():
            name = f"{classifier}, {search}: gain in 5 times 10 folds, less the published {gain:+.3f}"
            parameters = (classifier, search, 5)  # as published: a difference of means rounded to three decimals
            yield Figure(name, "<= 0.001 points", bench_supervised.Published, "track_difference", parameters)


if __name__ == "__main__":
    main(figures)
