"""Difficult columns, each generated from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Generator = np.random.Generator

_LARGEST = 1.7e308


class Batch(NamedTuple):
    """Columns of equal length that are fitted together, with the same weights."""

    name: str
    family: str
    values: np.ndarray
    weight: np.ndarray | None
    kinds: list[str]


def batch(seed: int, index: int, kinds: dict[str, KindOfColumn] | None = None) -> Batch:
    """Generate batch number `index` of the sequence with this seed, from columns of these kinds (default: all)."""
    rng = np.random.default_rng([seed, index])
    family = str(rng.choice(["box-cox", "yeo-johnson"]))
    n = _length(rng)
    width = 16 if n <= 100 else 6 if n <= 1000 else 3
    weight = _weights(rng, n)
    names = [str(rng.choice(list(kinds or KINDS))) for _ in range(width)]
    made = [_column(np.random.default_rng([seed, index, j]), n, family, name) for j, name in enumerate(names)]
    order = "F" if rng.random() < 0.5 else "C"
    return Batch(f"{seed}:{index}", family, np.array(np.column_stack(made), order=order), weight, names)


def _length(rng: Generator) -> int:
    """Draw a length from 2 to 5,000, more often a short one."""
    if rng.random() < 0.3:
        return int(rng.integers(2, 12))
    return min(5000, int(2.0 * 10.0 ** rng.uniform(0.0, 3.4)))


def _weights(rng: Generator, n: int) -> np.ndarray | None:
    """Return None for half of the batches; else draw whole numbers, some 0, or numbers over up to 24 decades."""
    kind = rng.random()
    if kind < 0.5:
        return None
    if kind < 0.65:
        weight = rng.integers(1, 10, n).astype(np.float64)
    elif kind < 0.75:
        weight = rng.uniform(0.5, 2.0, n)
    else:
        decades = rng.choice([1.0, 3.0, 6.0, 12.0])
        weight = 10.0 ** rng.uniform(-decades, decades, n)
    if rng.random() < 0.3:
        weight[rng.random(n) < 0.3] = 0.0
    if not weight.any():
        weight[0] = 1.0
    return weight


def _column(rng: Generator, n: int, family: str, kind: str) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = KINDS[kind](rng, n)
        if rng.random() < 0.15:
            x = x * 10.0 ** rng.uniform(-300.0, 300.0)
        if rng.random() < 0.15:
            x = _tied(rng, x)
        x = _signed(rng, np.clip(x, -_LARGEST, _LARGEST))
    if family == "box-cox":
        x = np.abs(x)
        x[x == 0.0] = 1.0 if rng.random() < 0.7 else 5e-324
    if rng.random() < 0.3:
        x[rng.random(n) < rng.choice([0.05, 0.5, 0.9])] = np.nan
    return x


def _tied(rng: Generator, x: np.ndarray) -> np.ndarray:
    """Round values to one to three digits."""
    digits = int(rng.integers(0, 3))
    return np.array([float(f"{v:.{digits}e}") for v in x.tolist()])


def _signed(rng: Generator, x: np.ndarray) -> np.ndarray:
    """Return x, |x|, -|x|, or x with random signs."""
    kind = rng.integers(0, 5)
    if kind == 0:
        return -np.abs(x)
    if kind == 1:
        return np.abs(x)
    if kind == 2:
        return np.where(rng.random(x.size) < rng.choice([0.02, 0.5]), -x, x)
    return x


# --- kinds of columns ---------------------------------------------------------------------------------

KindOfColumn = Callable[[Generator, int], np.ndarray]


def _normal(rng: Generator, n: int) -> np.ndarray:
    return rng.normal(rng.normal() * 3.0, 10.0 ** rng.uniform(-2.0, 2.0), n)


def _lognormal(rng: Generator, n: int) -> np.ndarray:
    return rng.lognormal(0.0, 10.0 ** rng.uniform(-2.0, 1.3), n)


def _heavy(rng: Generator, n: int) -> np.ndarray:
    return rng.standard_t(rng.choice([0.2, 0.5, 1.0, 2.0]), n)


def _pareto(rng: Generator, n: int) -> np.ndarray:
    return np.exp(rng.exponential(10.0 ** rng.uniform(-1.0, 1.5), n))


def _mixture(rng: Generator, n: int) -> np.ndarray:
    """Draw two or three clusters that are far apart relative to their widths."""
    centers = rng.normal(0.0, 10.0 ** rng.uniform(0.0, 6.0), 3)
    widths = 10.0 ** rng.uniform(-6.0, 2.0, 3)
    which = rng.choice(3, n, p=rng.choice([[0.5, 0.5, 0.0], [0.9, 0.05, 0.05], [0.34, 0.33, 0.33]]))
    return rng.normal(centers[which], widths[which])


def _outliers(rng: Generator, n: int) -> np.ndarray:
    """Draw normal values, a few of them multiplied by 1e2 to 1e200."""
    x = rng.normal(0.0, 1.0, n)
    x[rng.integers(0, n, 1 + n // 50)] *= 10.0 ** rng.uniform(2.0, 200.0)
    return x


def _counts(rng: Generator, n: int) -> np.ndarray:
    if rng.random() < 0.5:
        return rng.poisson(10.0 ** rng.uniform(-2.0, 3.0), n).astype(np.float64)
    return rng.negative_binomial(0.5, rng.uniform(0.01, 0.5), n).astype(np.float64) + float(rng.integers(0, 2))


def _binary(rng: Generator, n: int) -> np.ndarray:
    """Draw n values from two, one of which is rare."""
    x = np.full(n, rng.choice([0.0, 1.0, 2.5, 1e-5]))
    x[rng.random(n) < rng.choice([1.0 / n, 0.01, 0.3])] += 10.0 ** rng.uniform(-8.0, 8.0)
    return x


def _few(rng: Generator, n: int) -> np.ndarray:
    """Draw n values from at most five distinct ones."""
    pool = KINDS[str(rng.choice(["normal", "lognormal", "decades", "offset", "counts"]))](rng, int(rng.integers(1, 6)))
    return rng.choice(pool, n)


def _decades(rng: Generator, n: int) -> np.ndarray:
    """Draw values with uniform logarithms, over up to 600 decades."""
    decades = rng.choice([3.0, 30.0, 300.0])
    return 10.0 ** rng.uniform(-decades, decades, n)


def _subnormal(rng: Generator, n: int) -> np.ndarray:
    return rng.integers(1, 10 ** int(rng.integers(1, 15)), n) * 5e-324


def _offset(rng: Generator, n: int) -> np.ndarray:
    """Draw years, counters or time stamps: large values that differ little."""
    offset = rng.choice([2000.0, 1e5, 1e8, 1e12, 1.7e18])
    return offset + np.round(rng.normal(0.0, 10.0 ** rng.uniform(-2.0, 3.0), n), int(rng.integers(0, 6)))


def _neighbors(rng: Generator, n: int) -> np.ndarray:
    """Draw values that differ by at most 1e5 units in the last place."""
    base = 10.0 ** rng.uniform(-20.0, 20.0)
    return base + rng.integers(0, 10 ** int(rng.integers(1, 6)), n) * np.spacing(base)


def _tiny(rng: Generator, n: int) -> np.ndarray:
    """Draw values near 0, where Yeo-Johnson is almost linear."""
    return rng.normal(0.0, 10.0 ** rng.uniform(-30.0, -3.0), n)


KINDS: dict[str, KindOfColumn] = {
    "normal": _normal,
    "lognormal": _lognormal,
    "heavy": _heavy,
    "pareto": _pareto,
    "mixture": _mixture,
    "outliers": _outliers,
    "counts": _counts,
    "binary": _binary,
    "few": _few,
    "decades": _decades,
    "subnormal": _subnormal,
    "offset": _offset,
    "neighbors": _neighbors,
    "tiny": _tiny,
}
