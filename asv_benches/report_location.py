"""Measure every figure that powerkern.location is meant to reach, in one run.

python -m asv_benches.report_location [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_location
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for value in bench_location.REFERENCES:
        name = f"largest relative error of {value} over the reference vectors"
        yield Figure(name, "<= 1e-10", bench_location.Accuracy, "track_worst", (value,))
    name = "largest relative error of R's one-step Huber location and scale"
    yield Figure(name, "<= 1e-10", bench_location.OneStep, "track_worst")
    size = (10_000, 100)
    for order in ("C", "F"):
        name = f"proposal 2, 10000 x 100, order {order}, one thread, sort included, in passes of np.exp"
        yield Figure(name, "<= 60", bench_location.OneThread, "track_exp_units", ("huber-proposal2", order, *size))
    name = "proposal 2, 10000 x 100, two threads over one"
    yield Figure(name, ">= 1.8 x", bench_location.OneThread, "track_thread_scaling", ("huber-proposal2", "C", *size))
    for method, (peer, _, _) in bench_location.PEERS.items():
        name = f"{method}, 10000 x 100, one thread, over {peer}"
        yield Figure(name, ">= 1 x", bench_location.Peers, "track_speedup", (method, *size))
    for method in bench_location.METHODS:
        name = f"{method}: values that differ in any bit by threads (1, 2, 8), order, permuted columns"
        yield Figure(name, "<= 0", bench_location.Identity, "track_differences", (method,))


if __name__ == "__main__":
    main(figures)
