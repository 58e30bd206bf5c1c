"""Every figure that powerkern.federated is meant to reach, measured in one run.

python -m asv_benches.report_federated [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_federated as bench
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """All figures, in their full sizes."""
    for protocol in bench.PROTOCOLS:
        for kind in bench.REFERENCES:
            what, parameters = (
                f"{kind} reference columns, 100 skewed sites, {protocol}",
                (protocol, kind, bench.N_SITES),
            )
            yield Figure(f"{what}: error of lambda", "<= 1e-10", bench.References, "track_worst", parameters)
            if protocol == "sketch":
                method = "track_most_rounds_of_sketches"
                yield Figure(f"{what}: rounds", "<= 2", bench.References, method, parameters)
                name = f"{what}: columns left to moments"
                yield Figure(name, "<= 2", bench.References, "track_unresolved", parameters)
            yield Figure(f"{what}: rounds in all", "<= 30", bench.References, "track_most_rounds", parameters)
        sites, what = (protocol, 100_000, 10), f"100 sites of 1000 x 10, {protocol}"
        target = "<= 2" if protocol == "sketch" else "<= 30"
        yield Figure(f"{what}: rounds", target, bench.HundredSites, "track_rounds", sites)
        yield Figure(f"{what}: error of lambda", "<= 1e-10", bench.HundredSites, "track_error", sites)
        method = "track_bytes_received_per_site_and_column"
        yield Figure(f"{what}: received, a site and column", "<= 100000 B", bench.HundredSites, method, sites)
        yield Figure(f"{what}: time over pooled", "<= 100 x", bench.HundredSites, "track_time_over_pooled", sites)
    for protocol in ("sketch", "rounds"):
        what, parameters = f"masked, 20 sites of 100 x 3, {protocol}", (protocol, 2_000, 3)
        yield Figure(f"{what}: error of lambda", "<= 1e-10", bench.Masked, "track_error", parameters)
        yield Figure(f"{what}: time over open sums", "<= 20 x", bench.Masked, "track_time_over_open", parameters)


if __name__ == "__main__":
    main(figures)
