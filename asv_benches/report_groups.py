"""Errors of lambda in groups of few rows with and without ``shrink=True``, by simulation.

python -m asv_benches.report_groups [--replicates N]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import powerkern as pk

LENGTHS = (5, 10, 20, 50)
#: Standard deviations of lambda between groups.
SPREADS = (0.0, 0.2, 0.5)
GROUPS = 200
#: So small that lambdas of up to 2 leave nearly all normal values in the range of the inverse.
SPREAD_OF_LOGS = 0.25


def simulated(n: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, group codes and the groups' lambdas, which are normal with mean 0.3 and sd `spread`.

    Each group has n rows that are normal after its Box-Cox transform.
    """
    rng = np.random.default_rng([seed, n, round(100 * spread)])
    truth = 0.3 + spread * rng.normal(size=GROUPS)
    logs = np.empty((GROUPS, n))
    for g, lmbda in enumerate(truth):
        y = rng.normal(size=10 * n)
        base = 1.0 + lmbda * SPREAD_OF_LOGS * y
        logs[g] = (np.log(base[base > 0.0]) / lmbda if abs(lmbda) > 1e-6 else SPREAD_OF_LOGS * y)[:n]
    return np.exp(1.0 + logs).ravel(), np.repeat(np.arange(GROUPS), n), truth


def errors(n: int, spread: float, replicates: int) -> np.ndarray:
    """Return root mean square errors of lambda: of separate groups, with ``shrink=True``, and of the pooled fit.

    They are taken over `replicates` data sets; `n` and `spread` are as in `simulated`.
    """
    found = []
    for seed in range(replicates):
        x, codes, truth = simulated(n, spread, seed)
        own = pk.fit(x, "box-cox", groups=codes)
        drawn = pk.fit(x, "box-cox", groups=codes, shrink=True)
        each = (own.lmbda[:, 0], drawn.lmbda[:, 0], np.full(GROUPS, drawn.pooled.lmbda[0]))
        found.append([np.mean((lmbda - truth) ** 2) for lmbda in each])
    return np.sqrt(np.mean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    replicates = parser.parse_args().replicates
    warnings.simplefilter("ignore")
    print(".. csv-table::\n   :header: rows a group, lambda between groups, own fit, shrunk, pooled fit\n")
    for spread in SPREADS:
        for n in LENGTHS:
            own, drawn, pooled = errors(n, spread, replicates)
            print(f"   {n}, {spread:g}, {own:.3f}, {drawn:.3f}, {pooled:.3f}")


if __name__ == "__main__":
    main()
