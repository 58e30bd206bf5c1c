"""Data that several test files generate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def lognormal_columns(n: int, sigma: ArrayLike, mean: float = 0.0, seed: int = 0) -> np.ndarray:
    """Draw a matrix (n, k) of lognormal columns, whose logs have this mean and the k standard deviations in `sigma`."""
    return np.random.default_rng(seed).lognormal(mean, sigma, size=(n, len(np.atleast_1d(sigma))))


def contaminated_lognormal(n: int = 200, p: int = 12, seed: int = 5) -> np.ndarray:
    """Draw a matrix (n, p) of lognormal columns; a twentieth of the rows, at random positions, is multiplied by 30."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(sigma=0.6, size=(n, p))
    x[: n // 20] *= 30.0
    return x[rng.permutation(n)]


def factors_with_outlying_cells(n: int = 90, p: int = 6, seed: int = 0, missing: float = 0.05) -> np.ndarray:
    """Draw columns that depend on two common factors, in different units, with outlying and missing cells.

    Two rows are outlying as a whole, and the last column depends on no factor.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.3 * rng.normal(size=(n, p))
    x[:, p - 1] = rng.normal(size=n)
    x[rng.random((n, p)) < 0.06] += 9.0
    x[:2] = 8.0 * rng.choice([-1.0, 1.0], (2, p))
    x[rng.random((n, p)) < missing] = np.nan
    return x * 10.0 ** rng.integers(-2, 3, p) + rng.normal(size=p)
