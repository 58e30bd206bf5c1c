"""Fits of origin and unit by a published optimiser: likelihood, ranges, and the results for 500 columns.

``python tests/support/origin_oracle.py`` writes tests/data/origin.json (some ten minutes; SciPy 1.14 or later).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

FAMILIES = ("yeo-johnson", "box-cox")
REFERENCE = Path(__file__).parents[1] / "data" / "origin.json"
#: Seed and number of the columns.
SEED, N_COLUMNS = 2, 500


class Case(NamedTuple):
    """A column, a family, and the highest log-likelihood per observation found by the published optimiser."""

    x: np.ndarray
    family: str
    published: float


def likelihood(family: str, lmbda: float, origin: float, unit: float, x: np.ndarray) -> float:
    """Return the profile log-likelihood of (x - origin)/unit, divided by the number of values; -inf outside the domain.

    Parameters
    ----------
    family : str
        The transform.
    lmbda, origin, unit : float
        The parameters.
    x : (n,) ndarray
        The column.
    """
    if family == "box-cox":
        if not origin < x.min():
            return -np.inf
        a, m, sign = np.log(x - origin), np.full(x.size, lmbda), np.ones(x.size)
        unit = 1.0
    else:
        u = (x - origin) / unit
        a, sign = np.log1p(np.abs(u)), np.where(u < 0.0, -1.0, 1.0)
        m = np.where(u < 0.0, 2.0 - lmbda, lmbda)
    y = sign * np.where(m == 0.0, a, np.expm1(m * a) / np.where(m == 0.0, 1.0, m))
    return float(-0.5 * np.log(y.var()) - np.log(unit) + (lmbda - 1.0) * np.mean(sign * a))


def ranges(family: str, x: np.ndarray) -> tuple[float, list[tuple[float, float]]]:
    """Return the interquartile range, and the published ranges of lambda, origin and unit."""
    lower, median, upper = np.quantile(x, [0.25, 0.5, 0.75])
    iqr = upper - lower or x.std()
    if family == "yeo-johnson":
        return iqr, [(-4.0, 6.0), (x.min() - iqr, x.max() + iqr), (0.5 * iqr, 2.0 * iqr)]
    gap = np.median(np.diff(np.unique(x)))
    return iqr, [(-4.0, 6.0), (x.min() - max(iqr, median - x.min()), x.min() - min(0.5 * iqr, gap))]


def published(family: str, x: np.ndarray) -> float:
    """Return the highest likelihood that the published optimiser finds from its start.

    It is COBYQA, a derivative-free trust region method. It runs from the published start, and twice
    more, in half of the ranges, about the best point.
    """
    iqr, box = ranges(family, x)
    low, high = np.array(box).T
    scale = np.array([1.0, iqr, iqr])[: len(box)]

    def loss(theta: np.ndarray) -> float:
        own = theta * scale
        return -likelihood(family, own[0], own[1], own[2] if own.size == 3 else 1.0, x)

    if family == "yeo-johnson":
        start = np.array([1.0, np.quantile(x, 0.05 if stats.skew(x) >= 0.0 else 0.95), iqr])
    else:
        start = np.array([1.0, low[1]])
    bounds = np.column_stack([low, high]) / scale[:, np.newaxis]
    options = {"final_tr_radius": 1e-6, "maxfev": 500}
    best = optimize.minimize(loss, start / scale, method="COBYQA", bounds=bounds, options=options)
    half = 0.25 * (bounds[:, 1] - bounds[:, 0])
    around = np.column_stack([np.maximum(bounds[:, 0], best.x - half), np.minimum(bounds[:, 1], best.x + half)])
    for step in (-1.0, 1.0):
        begin = np.clip(best.x + np.eye(best.x.size)[0] * step, *around.T)
        again = optimize.minimize(loss, begin, method="COBYQA", bounds=around, options=options)
        best = min(best, again, key=lambda found: found.fun)
    return float(-best.fun)


def columns_of(kind: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a column of `n` values; `kind`, from 0 to 9, chooses the shape of the distribution."""
    draw = (
        lambda: rng.gamma(rng.uniform(0.5, 5.0), size=n),
        lambda: rng.lognormal(0.0, rng.uniform(0.2, 1.5), size=n),
        lambda: rng.normal(size=n),
        lambda: -rng.gamma(rng.uniform(0.5, 5.0), size=n),
        lambda: rng.standard_t(rng.uniform(1.5, 6.0), size=n),
        lambda: rng.beta(rng.uniform(0.5, 3.0), rng.uniform(0.5, 3.0), size=n),
        lambda: np.append(rng.normal(0.0, 1.0, n // 2), rng.normal(4.0, 0.5, n - n // 2)),
        lambda: rng.poisson(rng.uniform(2.0, 10.0), size=n).astype(float),
        lambda: rng.uniform(size=n),
        lambda: (lambda g: np.sign(g) * np.abs(g) ** rng.uniform(1.0, 3.0))(rng.normal(size=n)),
    )
    return draw[kind % 10]()


def generate_columns() -> Iterator[np.ndarray]:
    """Yield the columns for which tests/data/origin.json has a likelihood."""
    rng = np.random.default_rng(SEED)
    for k in range(N_COLUMNS):
        yield columns_of(k, int(rng.choice([20, 50, 100, 300])), rng)


def read_cases() -> Iterator[Case]:
    """Yield the cases of tests/data/origin.json; raise ValueError if the columns are no longer generated equally."""
    for x, record in zip(generate_columns(), json.loads(REFERENCE.read_text(encoding="utf-8")), strict=True):
        if not np.isclose(x.sum(), record["sum"], rtol=1e-9, atol=1e-9):
            raise ValueError(f"NumPy now draws other columns: run {Path(__file__).name} again")
        for family in FAMILIES:
            yield Case(x, family, record[family])


if __name__ == "__main__":
    records = [{"sum": float(x.sum()), **{f: published(f, x) for f in FAMILIES}} for x in generate_columns()]
    REFERENCE.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n", encoding="utf-8")
