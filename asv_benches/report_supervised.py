"""Every figure that powerkern.supervised is meant to reach, measured in one run; about five minutes.

python -m asv_benches.report_supervised [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_supervised
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """All figures, in their full sizes."""
    fold = "one fold of the breast-cancer data, naive Bayes, 4 epochs by training accuracy"
    # a tenth of the 3.4 s that the published code takes
    yield Figure(fold, "<= 0.34 s", bench_supervised.Fold, "track_seconds", ("naive Bayes", 4))
    beside = bench_supervised.BesidePublished, "track_speedup", ("naive Bayes", 4)
    yield Figure(f"{fold}, over scoring every trial anew, as published", ">= 10 x", *beside)
    for classifier, published in bench_supervised.PUBLISHED.items():
        for search, gain in published.items():
            name = f"{classifier}, {search}: gain in 5 times 10 folds, less the published {gain:+.3f}"
            parameters = (classifier, search, 5)  # as published: a difference of means rounded to three decimals
            yield Figure(name, "<= 0.001 points", bench_supervised.Published, "track_difference", parameters)


if __name__ == "__main__":
    main(figures)
