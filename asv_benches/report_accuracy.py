"""Errors of lambda, by powerkern and by peers, for the table of docs/accuracy.rst.

python -m asv_benches.report_accuracy [--write docs/benchmarks/accuracy.inc]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from .bench_fit import Accuracy
from .report import list_table, machine

COLLECTIONS = {"tests": "tests/data", "shared": "collected reference values"}
HEADINGS = ("columns", "library", "right to 1e-10", "worst error", "worst ill-conditioned, in units of half an ulp")


def rows() -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for each library and each collection of columns that is available on this machine."""
    for cases, name in COLLECTIONS.items():
        for library in Accuracy.params[1]:
            benchmark, parameters = Accuracy(), (cases, library)
            try:
                benchmark.setup(*parameters)
            except NotImplementedError:  # not on this machine
                continue
            yield (
                f"{len(benchmark.well)} well- and {len(benchmark.ill)} ill-conditioned ones of {name}",
                library,
                f"{benchmark.track_share_to_1e_10(*parameters):.1%}",
                f"{benchmark.track_worst(*parameters):.2g}",
                f"{benchmark.track_worst_ill(*parameters):.2g}",
            )


def main() -> None:
    """Print the table and write it."""
    parser = argparse.ArgumentParser(prog="python -m asv_benches.report_accuracy", description=__doc__)
    parser.add_argument("--write", type=Path, help="write the table as reStructuredText to this file")
    options = parser.parse_args()
    table = list_table(f"Measured by ``python -m asv_benches.report_accuracy`` on: {machine()}", HEADINGS, rows())
    print(table)
    if options.write:
        options.write.write_text(table)


if __name__ == "__main__":
    main()
