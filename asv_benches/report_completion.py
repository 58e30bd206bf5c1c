"""Measure every figure that powerkern.completion is meant to reach, in one run of some five minutes.

python -m asv_benches.report_completion [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_completion
from .report import Figure, main

#: Tables on which imputers are compared, and 1.02 times the error of the best peer.
TABLES = {
    "digits": ("1797 x 61, a fifth", 0.614),
    "philips": ("677 x 9, a fifth", 0.497),
    "mortality": ("198 x 91, a fifth", 0.107),
    "cancer": ("569 x 30, a fifth", 0.436),
    "ratings": ("1000 x 300, nine tenths", 0.773),
}


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
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
    for table, (size, limit) in TABLES.items():
        what = f"{table}, {size} missing"
        name = f"{what}: RMSE of UVImputer() in standard deviations"
        yield Figure(name, f"<= {limit}", bench_completion.Impute, "track_error", (table,))
        name = f"{what}: RMSE with one value of a million, over that without"
        yield Figure(name, "<= 1.02", bench_completion.Impute, "track_error_with_a_wild_cell", (table,))
        patient = (name for name, tables in bench_completion.Impute.patience.items() if table in tables)
        name = f"{what}: RMSE over that of the best of {', '.join(('KNNImputer', 'cmfrec', *patient))}"
        yield Figure(name, "<= 1.02", bench_completion.Impute, "track_error_over_best", (table,))
        name = f"{what}: times faster than the best of them"
        yield Figure(name, ">= 1 x", bench_completion.Impute, "track_times_faster_than_best", (table,))
        name = f"{what}: times faster than the fastest of them"
        yield Figure(name, ">= 1 x", bench_completion.Impute, "track_times_faster_than_fastest", (table,))
    what = "ratings as triplets, nine tenths missing"
    beside = bench_completion.RatingsBesideCmfrec
    yield Figure(
        f"{what}: RMSE over the best of cmfrec, its rank given", "<= 1.02", beside, "track_error_over_best", ()
    )
    yield Figure(f"{what}: times faster than one fit of cmfrec", ">= 1 x", beside, "track_times_faster", ())
    yield Figure("a new row of 30 ratings folded in", "<= 100 us", beside, "track_microseconds_of_fold_in", ())


if __name__ == "__main__":
    main(figures)
