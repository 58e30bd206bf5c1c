"""Every figure that powerkern.completion is meant to reach, measured in one run.

python -m asv_benches.report_completion [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_completion
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """All figures, in their full sizes."""
    error = bench_completion.Lecture, "track_error_of_first_elements"
    yield Figure("lecture example: largest error of u11, v11 and u31", "<= 1e-9", *error)
    name = "lecture example: largest error over its trajectory (1, 10, 5000 epochs)"
    yield Figure(name, "<= 1e-9", bench_completion.Trajectory, "track_error")
    for method in bench_completion.METHODS:
        size = (2000, 500, 5)
        what = f"2000 x 500, 30 % missing, rank 5, {method}"
        beside = bench_completion.BesideCmfrec
        yield Figure(
            f"{what}, two threads", "<= 0.1 s", bench_completion.Decompose, "track_seconds", (*size, method, 2)
        )
        name = f"{what}: held-out RMSE over the best of cmfrec"
        yield Figure(name, "<= 1.01", beside, "track_error_over_best", (*size, method))
        yield Figure(f"{what}: times faster than cmfrec", ">= 1 x", beside, "track_speedup", (*size, method))
        name = f"{what}: values that differ in any bit by threads (1, 2, 8)"
        yield Figure(name, "<= 0", bench_completion.Threads, "track_differences", (*size, method))


if __name__ == "__main__":
    main(figures)
