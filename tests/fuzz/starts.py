"""Starts of robust fits, compared with brute force on columns with many minima, on grids over all lambdas.

``python -m tests.fuzz.starts --columns 2000 --seed 1`` prints the number of starts that are not the global minimum, by
estimator and status. The objectives are implemented independently, with a row of a matrix for each lambda, and only the
public interface of the package is imported.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

import powerkern as pk

FAMILIES = ("box-cox", "yeo-johnson")
ESTIMATORS = ("robust", "rewml-nr", "carroll", "mtl", "ppcc")
LENGTHS = (5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 127, 129, 150, 200, 300, 500)
#: Lengths of columns that are scanned on a sample.
LONG = (513, 600, 800, 1000)
#: Search range of lambda of a prestandardised column, and the largest accepted excess of the objective at a start.
LOW, HIGH, EXCESS = -4.0, 6.0, 1e-6
_HUBER_K, _HUBER_BETA, _MAD_FACTOR, _C = 1.5, 1.556931 / 2.0, 1.0 / float(ndtri(0.75)), 0.5

#: A fit that rectifies both sides may start from the minimum of either of two objectives, found by the same search.
ONE_SIDED = {"robust": pk.AdaptiveRewML(rectify="one")}

#: Two columns of which a scan in steps of 0.5 misses the minimum.
EXAMPLES = (
    ("box-cox", np.array([1.21, 1.06, 234.0, 2.94, 4.74, 0.556, 2e-6, 0.369, 0.0273, 1.41, 0.722, 102.0])),
    ("yeo-johnson", np.array([4.0, 4, 11, 11, 5, 12, 9, 9, 7, 11, 3, 4, 9, 16, 11])),
)


# --- columns ------------------------------------------------------------------------------------------


def _shapes(rng: np.random.Generator, n: int) -> Iterator[np.ndarray]:
    """Yield columns of n values about 0: clean, contaminated, skewed, heavy-tailed, tied, or clustered."""
    z = rng.normal(size=n)
    far = rng.random(n) < rng.uniform(0.02, 0.3)
    yield z
    yield np.where(far, rng.uniform(3.0, 12.0) + 0.1 * z, z)
    yield np.where(far, -rng.uniform(3.0, 12.0) + 0.1 * z, z)
    yield np.where(far, 8.0 * rng.normal(size=n), z)
    yield rng.standard_t(rng.choice([1.0, 2.0, 3.0]), size=n)
    yield rng.gamma(rng.uniform(0.3, 3.0), size=n)
    yield -rng.exponential(size=n)
    yield rng.uniform(-1.0, 1.0, n)
    yield np.where(rng.random(n) < 0.5, z, z + rng.uniform(2.0, 8.0))
    yield rng.poisson(rng.uniform(1.0, 9.0), n).astype(float)
    yield np.round(z * rng.uniform(1.0, 6.0))
    yield np.exp(rng.uniform(0.5, 2.0) * z)
    yield np.sort(z) ** 3
    yield rng.integers(0, 12, n) + 0.0


def columns(n_columns: int, seed: int, lengths: tuple[int, ...] = LENGTHS) -> Iterator[tuple[str, np.ndarray]]:
    """Yield `n_columns` pairs (family, column) of difficult columns with positive MADs and lengths from `lengths`."""
    rng = np.random.default_rng(seed)
    count = 0
    while True:
        for shape in range(sum(1 for _ in _shapes(rng, 5))):
            for family in FAMILIES:
                if count == n_columns:
                    return
                x = list(_shapes(rng, int(rng.choice(lengths))))[shape]
                if family == "box-cox":
                    is_positive = x.min() > 0.0 and rng.random() < 0.5
                    x = (
                        x
                        if is_positive
                        else x - x.min() + 1.0
                        if rng.random() < 0.3
                        else np.exp(np.clip(x, -30.0, 30.0))
                    )
                if np.median(abs(x - np.median(x))) > 0.0:
                    count += 1
                    yield family, x


# --- objectives ---------------------------------------------------------------------------------------


def prestandardized(family: str, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the sorted, prestandardised column, and the ratio of its lambdas to those of the data."""
    x = np.sort(x)
    if family == "yeo-johnson":
        center = np.median(x)
        return (x - center) / (1.4826 * np.median(abs(x - center))), 1.0
    logs = np.log(x / np.median(x))
    middle = np.median(logs)
    power = 1.4826 * np.median(abs(logs - middle))
    return np.exp((logs - middle) / power), float(power)


def signed_logs(family: str, u: np.ndarray) -> np.ndarray:
    return np.log(u) if family == "box-cox" else np.copysign(np.log1p(abs(u)), u)


def transforms(family: str, u: np.ndarray, lmbdas: np.ndarray, rectify: bool) -> np.ndarray:
    """Return the transforms of a sorted column `u`, one row for each lambda in `lmbdas`.

    With `rectify`, transforms are linear beyond a quartile.
    """
    logs, lmbda = signed_logs(family, u), lmbdas[:, None]
    m = np.where((logs < 0.0) & (family == "yeo-johnson"), lmbda - 2.0, lmbda)
    m = np.where(abs(m) < 1e-200, 1e-200, m)
    y = np.expm1(m * logs) / m
    if rectify:
        k, i = (u.size + 3) // 4 - 1, np.arange(u.size)
        for at, beyond in ((u.size - 1 - k, (lmbda < 1.0) & (i > u.size - 1 - k)), (k, (lmbda > 1.0) & (i < k))):
            tangent = y[:, [at]] + np.exp((lmbda - 1.0) * logs[at]) * (u - u[at])
            y = np.where(beyond, tangent, y)
    return y


def _huber_one_step(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    center = np.median(y, axis=1, keepdims=True)
    reach = _HUBER_K * _MAD_FACTOR * np.median(abs(y - center), axis=1, keepdims=True)
    weight = reach / np.maximum(abs(y - center), reach)
    loc = center + np.where(weight < 1.0, reach * np.sign(y - center), y - center).sum(
        axis=1, keepdims=True
    ) / weight.sum(axis=1, keepdims=True)
    reach = _HUBER_K * _MAD_FACTOR * np.median(abs(y - loc), axis=1, keepdims=True)
    squares = np.minimum(abs(y - loc), reach) ** 2
    return loc, np.sqrt(squares.mean(axis=1, keepdims=True) / _HUBER_BETA)


def _scores(n: int) -> np.ndarray:
    return ndtri((np.arange(1, n + 1) - 1.0 / 3.0) / (n + 1.0 / 3.0))


def qq(family: str, u: np.ndarray, lmbdas: np.ndarray, rectify: bool = True) -> np.ndarray:
    """Return for each lambda the mean bisquare distance of the transforms of `u` from normal scores.

    The arguments are as in `transforms`.
    """
    y = transforms(family, u, lmbdas, rectify)
    loc, scale = _huber_one_step(y)
    t = ((y - loc) / scale - _scores(u.size)) / _C
    near = np.maximum(1.0 - t * t, 0.0)
    return np.where(scale[:, 0] > 0.0, 1.0 - (np.where(np.isnan(near), 0.0, near) ** 3).mean(axis=1), math.inf)


def qq_nr(family: str, u: np.ndarray, lmbdas: np.ndarray) -> np.ndarray:
    return qq(family, u, lmbdas, rectify=False)


def carroll(family: str, u: np.ndarray, lmbdas: np.ndarray) -> np.ndarray:
    """Return for each lambda ln s - (lambda - 1) mean(J), where s is the scale of Huber's joint M-estimate.

    `u` is a sorted column.
    """
    y = transforms(family, u, lmbdas, False)
    part = math.erf(_HUBER_K / math.sqrt(2.0))
    loc = np.median(y, axis=1, keepdims=True)
    scale = np.median(abs(y - loc), axis=1, keepdims=True)
    for _ in range(1000):
        weight = np.minimum(1.0, _HUBER_K * scale / np.maximum(abs(y - loc), 1e-300))
        last, loc = (loc, scale), (weight * y).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        scale = np.sqrt((weight * (y - loc) ** 2).mean(axis=1, keepdims=True) / part)
        if (abs(scale - last[1]) + abs(loc - last[0]) <= 1e-12 * scale).all():
            break
    return np.log(scale[:, 0]) - (lmbdas - 1.0) * signed_logs(family, u).mean()


def mtl(family: str, u: np.ndarray, lmbdas: np.ndarray, h: float = 0.95) -> np.ndarray:
    """Return for each lambda the minimum of 1/2 ln Var - (lambda - 1) mean(J) over windows of a sorted column `u`.

    A window has a fraction `h` of the values.
    """
    n = u.size
    size = min(max(math.ceil(h * n), n // 2 + 1), n)
    y, logs = transforms(family, u, lmbdas, False), signed_logs(family, u)
    best = np.full(lmbdas.size, math.inf)
    for start in range(n - size + 1):
        part = y[:, start : start + size]
        best = np.fmin(best, np.log(part.std(axis=1)) - (lmbdas - 1.0) * logs[start : start + size].mean())
    return best


def ppcc(family: str, u: np.ndarray, lmbdas: np.ndarray) -> np.ndarray:
    """Return for each lambda 1 minus the correlation of transforms with normal quantiles at Filliben's medians.

    `u` is a sorted column.
    """
    n = u.size
    medians = (np.arange(1, n + 1) - 0.3175) / (n + 0.365)
    medians[-1] = 0.5 ** (1.0 / n)
    medians[0] = 1.0 - medians[-1]
    q, y = ndtri(medians), transforms(family, u, lmbdas, False)
    y = y - y.mean(axis=1, keepdims=True)
    return 0.5 * ((y / np.sqrt((y * y).sum(axis=1, keepdims=True)) - q / math.sqrt(q @ q)) ** 2).sum(axis=1)


Objective = Callable[[str, np.ndarray, np.ndarray], np.ndarray]
OBJECTIVES: dict[str, Objective] = {
    "robust": qq, "rewml-nr": qq_nr, "carroll": carroll, "mtl": mtl, "ppcc": ppcc,
}  # fmt: skip


def brute_force(
    objective: Objective, family: str, u: np.ndarray, low: float = LOW, high: float = HIGH, step: float = 0.005
) -> tuple[float, float]:
    """Return the lambda with the lowest objective, and the objective there, on a grid from `low` to `high`.

    The grid is refined around the six lowest local minima.

    Parameters
    ----------
    objective : callable
        One of the objectives of this module.
    family : str
        The transform.
    u : (n,) ndarray
        The sorted, prestandardised column.
    low, high, step : float
        The grid.
    """
    grid = np.linspace(low, high, math.ceil((high - low) / step) + 1)
    with np.errstate(all="ignore"):
        values = np.nan_to_num(objective(family, u, grid), nan=math.inf, posinf=math.inf)
        padded = np.concatenate([[math.inf], values, [math.inf]])
        minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]))
        best = (float(grid[np.argmin(values)]), float(values.min()))
        for k in minima[np.argsort(values[minima])][:6]:
            center, width = grid[k], grid[1] - grid[0]
            for _ in range(5):
                points = np.clip(center + width * np.linspace(-1.0, 1.0, 17), low, high)
                at = np.nan_to_num(objective(family, u, points), nan=math.inf, posinf=math.inf)
                center, width = points[np.argmin(at)], width / 8.0
                best = min(best, (float(center), float(at.min())), key=lambda b: b[1])
    return best


# --- starts -------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """The package's start, the start by brute force, the difference of their objectives, and the fit's status."""

    found: float
    best: float
    excess: float
    status: pk.Status


def start_of(family: str, x: np.ndarray, estimator: str) -> Start:
    """Fit a column with the estimator called `estimator`; compare the start with the global minimum by brute force."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(x, family, ONE_SIDED.get(estimator, estimator), n_threads=1)
    u, power = prestandardized(family, x)
    status, objective = pk.Status(int(fit.status[0])), OBJECTIVES[estimator]
    if estimator == "ppcc":  # "ppcc" searches the original column, around the maximum likelihood lambda
        u, power, found = np.sort(x), 1.0, float(fit.lmbda[0])
        spread = signed_logs(family, u).std()
        likely = float(pk.fit(x, family, n_threads=1).lmbda[0])
        low, high = min(likely - 4.0 / spread, found), max(likely + 4.0 / spread, found)
        best, value = brute_force(objective, family, u, low, high, 0.01 / spread)
    else:
        found = float(fit.lmbda0[0]) * power
        best, value = brute_force(objective, family, u)
    with np.errstate(all="ignore"):
        excess = float(objective(family, u, np.array([found]))[0]) - value
    return Start(found, best, excess, status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=ESTIMATORS, action="append")
    parser.add_argument("--list", action="store_true", help="list the starts that are not the minimum")
    asked = parser.parse_args()
    for estimator in asked.only or ESTIMATORS:
        seen, missed, excesses = Counter[str](), Counter[str](), [0.0]
        for k, (family, x) in enumerate(columns(asked.columns, asked.seed)):
            found, best, excess, status = start_of(family, x, estimator)
            seen[status.name] += 1
            if excess > EXCESS and not status.failed:
                missed[status.name] += 1
                excesses.append(excess)
                if asked.list:
                    print(
                        f"  {k:5d} {family:11s} n={x.size:3d} {found:9.4f} for {best:9.4f} +{excess:.2e} {status.name}"
                    )
        counts = ", ".join(f"{missed[name]} of {seen[name]} {name}" for name in sorted(seen))
        print(f"{estimator}: higher than brute force by {EXCESS:g}: {counts}; by up to {max(excesses):.2e}")


if __name__ == "__main__":
    main()
