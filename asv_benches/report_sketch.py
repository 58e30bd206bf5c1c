"""Measure every figure that sketches, tall columns and Dask are meant to reach, in one run.

python -m asv_benches.report_sketch [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_dask, bench_fit, bench_sketch
from .report import FAMILIES, Figure, main

#: Shapes of the matrices, and the length of the tall column.
WIDE = (1_000_000, 100)
TALL = 100_000_000
DASK = (2_000_000, 20)


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    yield from equality()
    yield from cost()
    yield from tall()
    yield from chunked()


def equality() -> Iterator[Figure]:
    """Yield figures for the equality of fits from sketches and direct fits."""
    one = bench_sketch.Equality
    for name, what in (
        ("shared", "well-conditioned reference columns of any length"),
        ("data", "columns of ../shared/data"),
    ):
        yield Figure(f"{what}: difference of lambda from direct fits", "<= 1e-10", one, "track_worst", (name,))
        yield Figure(f"{what}: read again on a finer grid", "<= 5", one, "track_refined", (name,))
        yield Figure(f"{what}: not resolved by the finest grid", "<= 0", one, "track_unresolved", (name,))


def cost() -> Iterator[Figure]:
    """Yield figures for the time on one thread."""
    n, p = WIDE
    for family in FAMILIES:
        for order in ("C", "F"):
            what, parameters = f"sketch fit {family}, {n} x {p}, order {order}, one thread", (family, order, n, p)
            yield Figure(f"{what}, in passes of np.exp", "<= 6", bench_sketch.Fit, "track_exp_units", parameters)
            what = what.replace("sketch fit", "fit")
            yield Figure(f"{what}, in passes of np.exp", "<= 6", bench_fit.OneThread, "track_exp_units", parameters)
            method = "track_time_over_direct"
            yield Figure(f"{what}, over passes of the likelihood", "<= 1", bench_sketch.Fit, method, parameters)
        parameters, parts = (family, n // 10, 10), bench_sketch.Parts
        yield Figure(f"sketch {family}: time per value", "<= 5 ns", parts, "track_nanoseconds_a_value", parameters)
        yield Figure(f"sketch {family}: size per column", "<= 20000 B", parts, "track_bytes_a_column", parameters)
        method = "track_gigabytes_merged_a_second"
        yield Figure(f"sketch {family}: merged a second", ">= 0.5 GB", parts, method, parameters)


def tall() -> Iterator[Figure]:
    """Yield figures for one long column."""
    for family in FAMILIES:
        what, parameters = f"fit {family}, {TALL} x 1", (family, TALL)
        one = bench_sketch.Tall
        yield Figure(f"{what}: two threads over one", ">= 1.8 x", one, "track_thread_scaling", parameters)
        method = "track_thread_scaling_of_cpu_time"
        yield Figure(f"{what}: two threads over one, by CPU time", ">= 1.8 x", one, method, parameters)
        yield Figure(f"{what}: one thread, in passes of np.exp", "<= 6", one, "track_exp_units", parameters)
        yield Figure(f"{what}: results that differ by threads (1, 2, 5)", "<= 0", one, "track_differences", parameters)


def chunked() -> Iterator[Figure]:
    """Yield figures for fits from Dask arrays."""
    for family in FAMILIES:
        what, parameters = f"dask {family}, 10000 x 12", (family, 10_000, 12)
        name = f"{what}, nine chunkings: difference of lambda from powerkern.fit"
        yield Figure(name, "<= 1e-10", bench_dask.Chunks, "track_worst", parameters)
        yield Figure(f"{what}: passes over the data", "<= 2", bench_dask.Chunks, "track_passes", parameters)
        what = f"dask {family}, {DASK[0]} x {DASK[1]}, two threads"
        beside, parameters = bench_dask.BesideNumpy, (family, *DASK)
        yield Figure(f"{what}, over numpy on two", "<= 1.5", beside, "track_time_over_numpy", parameters)
        yield Figure(f"{what}, over numpy on one", "<= 0.8", beside, "track_time_over_one_thread", parameters)
        yield Figure(f"{what}: rows", ">= 5e6 a second", bench_dask.BesideSum, "track_rows_a_second", parameters)
        name, method = f"{what}, over Dask's own sum of a column, per value", "track_time_over_sum_of_a_column"
        yield Figure(name, "<= 1", bench_dask.BesideSum, method, parameters)
    for p in (10, 1000):
        name = f"dask, 480 MB of {p} columns in a worker of 450 MB: growth of its peak, in chunks of 6 MB"
        parameters = (60_000_000 // p, p, 750_000 // p)
        yield Figure(name, "<= 10", bench_dask.LargerThanMemory, "track_growth_in_chunks", parameters)


if __name__ == "__main__":
    main(figures)
