"""Growth of memory while files are fitted in batches.

python -m asv_benches.report_batches [--megabytes 500]
"""

from __future__ import annotations

import argparse

from .bench_batches import KINDS, Memory

#: Rows of ten columns in a group: 8 MB, and 80 MB.
_ROWS = (100_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=500)
    megabytes = parser.parse_args().megabytes
    print(f"A Parquet file of {megabytes:g} MB, ten columns: growth of the peak memory of a process that fits it, MB")
    print("groups of".ljust(22), *(f"{rows * 80e-6:>8.0f} MB" for rows in _ROWS))
    for kind in KINDS:
        print(kind.ljust(22), *(f"{Memory().track_growth(kind, megabytes, rows):>8.0f} MB" for rows in _ROWS))


if __name__ == "__main__":
    main()
