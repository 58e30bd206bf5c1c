"""Fits of random partitions of difficult columns: weights up to 1e18, up to 99 % missing values, any chunks and order.

``python -m tests.fuzz.partitions --columns 2000 --seed 1`` fits each batch of columns twice from chunks, whose ranges
and sketches are merged in two different orders. Both fits must be bit-identical. A certified lambda must be within
1e-10, times ``max(1, |lambda|)``, of the lambda that `powerkern.fit` finds for the pooled rows. If the two differ, ball
arithmetic decides which is wrong.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import powerkern as pk
from powerkern import Status
from powerkern.sketch import MapReduce, fit_chunks
from tests.support.fits import kernel_rows

from . import columns
from .checks import ROUNDINGS, TOLERANCE, Finding
from .oracle import Likelihood, NotResolved
from .run import limited, line

#: Largest number of rows of a batch that may be cut into single rows.
_SINGLE = 60
#: Statuses of columns without an optimum, on which chunks and pooled rows must agree.
_NO_OPTIMUM = (Status.CONSTANT, Status.EMPTY, Status.UNREPRESENTABLE, Status.NO_SPREAD)


class Engine:
    """Engine over chunks of rows that merges random pairs of summaries until one is left."""

    def __init__(self, chunks: list[tuple[np.ndarray, ...]], seed: int) -> None:
        self._chunks, self._rng = chunks, np.random.default_rng(seed)

    def __call__(self, function: Callable[..., Any], merge: Callable[[Any, Any], Any]) -> Any:
        left = [function(*chunk) for chunk in self._chunks]
        while len(left) > 1:
            a, b = (left.pop(int(self._rng.integers(len(left)))) for _ in range(2))
            left.append(merge(a, b))
        return left[0]


# --- partitions ---------------------------------------------------------------------------------------


def batch(seed: int, index: int) -> columns.Batch:
    """Return batch `index` of `columns.batch` with this seed, with more missing values and larger weights."""
    made = columns.batch(seed, index)
    rng = np.random.default_rng([seed, index, 1])
    values = made.values.copy()
    for j in np.flatnonzero(rng.random(values.shape[1]) < 0.4):
        values[rng.random(len(values)) < rng.choice([0.75, 0.9, 0.99]), j] = np.nan
    return made._replace(values=values, weight=_weights(rng, made.weight, len(values)))


def _weights(rng: np.random.Generator, weight: np.ndarray | None, n: int) -> np.ndarray | None:
    """Return the given weights, or draw `n` of them.

    Weights drawn are large, have a few very large ones, spread over 18 decades, or are zero in a range of rows.
    """
    kind = rng.random()
    if kind < 0.4:
        return weight
    heavier = np.ones(n) if kind < 0.8 else rng.uniform(0.5, 2.0, n)
    if kind < 0.5:
        heavier *= 10.0 ** rng.uniform(0.0, 18.0)
    elif kind < 0.7:
        heavier[rng.integers(0, n, 1 + n // 100)] *= 10.0 ** rng.uniform(1.0, 18.0)
    elif kind < 0.9:
        heavier *= 10.0 ** rng.uniform(0.0, rng.choice([1.0, 3.0, 18.0]), n)
    else:
        heavier[n // 3 : n // 2] = 0.0
    return heavier


def chunks_of(made: columns.Batch, seed: int) -> list[tuple[np.ndarray, ...]]:
    """Split the rows of a batch at random places; return the chunks, each with its weights."""
    rng, n = np.random.default_rng(seed), len(made.values)
    n_cuts = int(rng.choice([0, 1, 3, 12, n if n <= _SINGLE else 30]))
    cuts = np.arange(1, n) if n_cuts == n else np.sort(rng.integers(0, n + 1, n_cuts))
    parts = np.split(made.values, cuts)
    return [(x,) for x in parts] if made.weight is None else list(zip(parts, np.split(made.weight, cuts), strict=True))


# --- checks -------------------------------------------------------------------------------------------


def check(made: columns.Batch, index: int, seen: Counter[str]) -> Iterator[Finding]:
    """Fit a batch from chunks, merged in two orders, and from the pooled rows; yield the findings.

    Parameters
    ----------
    made : Batch
        The columns and their weights.
    index : int
        Seed of the partition and of the orders of merging.
    seen : Counter
        Counts the outcomes of the columns; updated in place.
    """
    chunks = chunks_of(made, index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            fit, other = (
                fit_chunks(MapReduce(Engine(chunks, k)), made.family, n_threads=1) for k in (index, index + 1)
            )
            pooled = pk.fit(made.values, made.family, sample_weight=made.weight, n_threads=1)
        except Exception as error:
            yield Finding("exception", f"{made.name}:*", repr(error))
            return
    same = np.array([a.tobytes() == b.tobytes() for a, b in zip(kernel_rows(fit), kernel_rows(other), strict=True)])
    for j in range(fit.n_features):
        name, status = f"{made.name}:{j}", Status(int(fit.status[j]))
        seen["certified" if status == Status.OK else status.name] += 1
        if not same[j]:
            yield Finding("order", name, f"lambda {fit.lmbda[j]!r} or {other.lmbda[j]!r}")
        pooled_status = Status(int(pooled.status[j]))
        if status in _NO_OPTIMUM and pooled_status != status:
            yield Finding("status", name, f"{status.name}, pooled {pooled_status.name}")
        if status == Status.OK:
            yield from _check_lambda(made, j, name, float(fit.lmbda[j]), float(pooled.lmbda[j]), pooled_status, seen)


def _check_lambda(
    made: columns.Batch, j: int, name: str, lmbda: float, pooled: float, status: Status, seen: Counter[str]
) -> Iterator[Finding]:
    """Compare lambda with that of the pooled rows; if they differ, compare both with the exact optimum.

    Parameters
    ----------
    made : Batch
        The columns and their weights.
    j : int
        Index of the column.
    name : str
        Its name in findings.
    lmbda, pooled : float
        Lambda from chunks and from the pooled rows.
    status : Status
        Status of the pooled fit.
    seen : Counter
        Counts the outcomes of the columns; updated in place.
    """
    allowed = TOLERANCE * max(1.0, abs(lmbda))
    if status == Status.OK and abs(lmbda - pooled) <= allowed:
        return
    likelihood = Likelihood(made.values[:, j], made.weight, made.family)
    try:
        if likelihood.is_minimum(lmbda, allowed):
            seen["pooled fit farther off"] += 1
            return
        best = likelihood.optimum(lmbda)
        rounding = ROUNDINGS * likelihood.rounding_of_optimum(best)
    except NotResolved:
        seen["not resolved by ball arithmetic"] += 1
        return
    if abs(lmbda - best) <= allowed + rounding:
        seen["within rounding of the data"] += 1
        return
    yield Finding("lambda", name, f"{lmbda!r}, exact {best!r}, pooled {pooled!r}, rounding of data {rounding:.1e}")


def fuzz(seed: int, n_columns: int, longest: int = 2000, show: bool = False) -> tuple[Counter[str], list[Finding]]:
    """Check at least `n_columns` columns of up to `longest` rows; return counts of outcomes, and failures.

    With `show`, failures are printed as they occur.
    """
    seen: Counter[str] = Counter()
    findings, done, index = [], 0, 0
    while done < n_columns:
        made = batch(seed, index)
        if len(made.values) <= longest:
            with limited(made):
                found = list(check(made, index, seen))
            if show:
                for finding in found:
                    print(line(finding, made), flush=True)
            findings += found
            done += made.values.shape[1]
        index += 1
    seen["columns"] = done
    return seen, findings


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 if no check failed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.partitions", description=__doc__)
    parser.add_argument("--columns", type=int, default=1000, help="how many columns to fit (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sequence of columns (default: %(default)s)")
    parser.add_argument("--longest", type=int, default=2000, help="most rows of a column (default: %(default)s)")
    options = parser.parse_args(arguments)
    seen, findings = fuzz(options.seed, options.columns, options.longest, show=True)
    print(f"{seen.pop('columns')} columns, each fitted in two orders; {len(findings)} findings")
    for what, count in seen.most_common():
        print(f"  {what:<34}{count:>6}")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
