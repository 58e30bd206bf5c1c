"""Simulate the null distribution of the test of central normality; write ``powerkern/_results/central_null.py``.

``python -m asv_benches.report_central`` takes a minute, and writes the same file each time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from powerkern._results import central_normality

#: Sizes. The ranks in the central part jump with n, so all sizes of short columns are needed.
SIZES = (*range(6, 31), 34, 40, 50, 70, 130, 250, 500, 1000, 3000, 10_000)
LEVELS = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.075, 0.05, 0.025, 0.01, 0.005, 0.001)
REPLICATES, SEED, AT_ONCE = 30_000, 20261124, 3_000_000


def quantiles(n: int) -> np.ndarray:
    """Return the quantiles at 1 - LEVELS of sqrt(n) times the statistic, simulated for normal samples of n values."""
    rng = np.random.default_rng([SEED, n])
    found, step = np.empty(REPLICATES), max(AT_ONCE // n, 1)
    for start in range(0, REPLICATES, step):
        x = np.sort(rng.normal(size=(min(step, REPLICATES - start), n)), axis=1)
        found[start : start + len(x)] = central_normality.central_distances(x, None)[0]
    return np.quantile(found, 1.0 - np.array(LEVELS)) * np.sqrt(n)


def main() -> None:
    """Write the module."""
    sizes = ", ".join(map(str, SIZES[25:])).replace("10000", "10_000")
    rows = "\n".join(" ".join(f"{q:.3f}" for q in quantiles(n)) for n in SIZES)
    module = f'''"""Null distribution of the test of central normality, written by ``asv_benches/report_central.py``."""

from __future__ import annotations

import numpy as np

#: Numbers of values.
SIZES = (*range(6, 31), {sizes})
#: Tail probabilities.
LEVELS = np.array(
    {list(LEVELS)!r}
)
#: Quantiles of ``statistic * sqrt(n)`` in {REPLICATES:,} normal samples of each size: a row each.
_ROWS = """\\
{rows}
"""
TABLE = np.array(_ROWS.split(), dtype=np.float64).reshape(len(SIZES), len(LEVELS))
'''
    Path(central_normality.__file__).with_name("central_null.py").write_text(module, encoding="utf-8")


if __name__ == "__main__":
    main()
