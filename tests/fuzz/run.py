"""Fuzz runs: totals, and the replay of one column."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from . import columns
from .checks import Finding
from .others import CHECKS

#: Seconds after which a batch is reported as hanging.
HANGS = 300.0
HANG_STATUS = 3


@dataclass
class Totals:
    """Numbers of columns and values checked, and the findings."""

    n_columns: int = 0
    n_values: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def by_kind(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.findings)


@contextmanager
def limited(batch: columns.Batch) -> Iterator[None]:
    """Print the batch's name and end the process if a check takes too long: compiled code cannot be interrupted."""

    def give_up() -> None:
        print(f"hang            {batch.name}:*  no end within {HANGS:g} s", flush=True)
        os._exit(HANG_STATUS)

    timer = threading.Timer(HANGS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def batches(seed: int, n_columns: int, longest: int) -> Iterator[columns.Batch]:
    """Yield batches of at most `longest` rows until they have at least `n_columns` columns in total."""
    done = index = 0
    while done < n_columns:
        batch = columns.batch(seed, index)
        index += 1
        if len(batch.values) <= longest:
            done += batch.values.shape[1]
            yield batch


def fuzz(seed: int, n_columns: int, longest: int = 5000, what: str = "fits", show: bool = False) -> Totals:
    """Run one kind of check on at least `n_columns` columns; return the totals.

    Parameters
    ----------
    seed : int
        Seed of the sequence of batches.
    n_columns : int
        Number of columns.
    longest : int
        Largest number of rows.
    what : str
        Kind of check, a key of CHECKS.
    show : bool
        Whether to print findings and a progress bar.
    """
    totals = Totals()
    with _progress(n_columns, show) as advance:
        for batch in batches(seed, n_columns, longest):
            with limited(batch):
                found = list(CHECKS[what](batch))
            totals.n_columns += batch.values.shape[1]
            totals.n_values += int(np.count_nonzero(~np.isnan(batch.values)))
            totals.findings += found
            if show:
                for finding in found:
                    print(line(finding, batch), flush=True)
            advance(batch.values.shape[1])
    return totals


@contextmanager
def _progress(n_columns: int, show: bool) -> Iterator:
    """Yield a function that advances a progress bar of `n_columns` steps.

    The function does nothing if `show` is False or tqdm is not installed.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if not show or tqdm is None:
        yield lambda n: None
        return
    with tqdm(total=n_columns, unit="column", disable=None) as bar:
        yield bar.update


def line(finding: Finding, batch: columns.Batch) -> str:
    """Format a finding in a batch as one line, which includes the name that `replay` takes."""
    j = finding.column.rsplit(":", 1)[1]
    kind = "" if j == "*" else f" {batch.kinds[int(j)]}"
    weighted = "" if batch.weight is None else ", weighted"
    about = f"{batch.family}{kind}, n = {len(batch.values)}{weighted}"
    return f"{finding.kind:<16}{finding.column:<14} {about}: {finding.text}"


def replay(name: str, what: str) -> None:
    """Print a column, its weights, and the findings about it.

    The name of a column is "seed:batch:column", and "*" in place of the column stands for all columns. `what` is the
    kind of check, a key of CHECKS.
    """
    seed, index, j = name.split(":")
    batch = columns.batch(int(seed), int(index))
    with np.printoptions(threshold=200, floatmode="unique", linewidth=120):
        print(f"{batch.family}, {batch.values.shape[0]} rows, {batch.values.shape[1]} columns")
        if j != "*":
            print(f"x = np.{batch.values[:, int(j)]!r}  # {batch.kinds[int(j)]}")
        print(f"weight = {batch.weight!r}")
    for finding in CHECKS[what](batch):
        if "*" in (j, finding.column[-1]) or finding.column == name:
            print(line(finding, batch))


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 if no check failed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--columns", type=int, default=2000, help="how many columns to fit (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sequence of columns (default: %(default)s)")
    parser.add_argument("--longest", type=int, default=5000, help="most rows of a column (default: %(default)s)")
    parser.add_argument("--what", choices=CHECKS, default="fits", help="what to look at (default: %(default)s)")
    parser.add_argument("--replay", metavar="SEED:BATCH:COLUMN", help="look at one column again, * for the whole batch")
    options = parser.parse_args(arguments)
    if options.replay:
        replay(options.replay, options.what)
        return 0
    totals = fuzz(options.seed, options.columns, options.longest, options.what, show=True)
    print(f"{totals.n_columns} columns, {totals.n_values} values, {len(totals.findings)} findings")
    for kind, count in totals.by_kind.most_common():
        first = next(f.column for f in totals.findings if f.kind == kind)
        print(f"  {kind:<16}{count:>6}   python -m tests.fuzz --what {options.what} --replay {first}")
    return int(bool(totals.findings))


if __name__ == "__main__":
    sys.exit(main())
