"""Measure every figure that powerkern.federated is meant to reach, in one run.

python -m asv_benches.report_federated [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_federated as bench
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for method in bench.METHODS:
        for kind in bench.REFERENCES:
            name, parameters = f"{kind} reference columns, 100 skewed sites, {method}", (method, kind, bench.N_SITES)
            yield Figure(f"{name}: error of lambda", "<= 1e-10", bench.References, "track_worst", parameters)
            yield Figure(f"{name}: rounds", "<= 30", bench.References, "track_most_rounds", parameters)
        sites, name = (method, 100_000, 10), f"100 sites of 1000 x 10, {method}"
        yield Figure(f"{name}: rounds", "<= 30", bench.HundredSites, "track_rounds", sites)
        yield Figure(f"{name}: error of lambda", "<= 1e-10", bench.HundredSites, "track_error", sites)
        track = "track_bytes_received_per_site_and_column"
        yield Figure(f"{name}: received, a site and column", "<= 100000 B", bench.HundredSites, track, sites)
        yield Figure(f"{name}: time over pooled", "<= 100 x", bench.HundredSites, "track_time_over_pooled", sites)


if __name__ == "__main__":
    main(figures)
