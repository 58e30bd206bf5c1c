"""Data for tests of plots."""

from __future__ import annotations

import numpy as np


def skewed(n=120, p=3, seed=0):
    """Return lognormal columns, (n, p)."""
    return np.random.default_rng(seed).lognormal(size=(n, p))


def responses(n=60, seed=0):
    """Return two responses, and the covariates on which they depend."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    eta = 5.0 + x @ [1.0, -0.5]
    return (eta[:, np.newaxis] + 0.3 * rng.normal(size=(n, 2))) ** [2.0, 3.0], x
