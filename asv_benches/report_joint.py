"""Measure every figure that powerkern.joint is meant to reach, in one run.

python -m asv_benches.report_joint [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_joint
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    shape = (10_000, 20)
    yield Figure("joint fit, 10000 x 20, all threads, seconds", "<= 1", bench_joint.Joint, "track_seconds", (shape,))
    name = "joint fit, 10000 x 20, one thread, seconds of CPU time"
    yield Figure(name, "<= 1", bench_joint.Joint, "track_cpu_seconds", (shape,))
    name = "joint fit, 1000 x 5, over scipy's BFGS with differences, as R's car has it"
    yield Figure(name, ">= 1 x", bench_joint.Peer, "track_speedup", ((1_000, 5),))
    yield Figure("joint fit, 2000 x 200, seconds", "<= 10", bench_joint.Wide, "track_seconds", (200,))
    name = "joint fit: values that differ in any bit by threads (1, 2, 8), memory order, permuted columns"
    yield Figure(name, "<= 0", bench_joint.Identity, "track_differences")


if __name__ == "__main__":
    main(figures)
