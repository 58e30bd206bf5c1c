"""Transformed values and their derivatives in lambda, compared with mpmath value by value."""

from __future__ import annotations

import mpmath
import numpy as np
import oracles
import pytest

from powerkern.kernels.likelihood import joint_derivatives
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.transforms.family import FAMILIES

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=30)
COLUMNS = {
    "lognormal": ("box-cox", np.exp(NORMAL)),
    "positive": ("yeo-johnson", np.exp(NORMAL)),
    "negative": ("yeo-johnson", -np.exp(NORMAL)),
    "both signs": ("yeo-johnson", NORMAL),
    "both signs, far off": ("yeo-johnson", np.append(50.0 + NORMAL, [-1.0, -2.0])),
    "years": ("box-cox", np.round(1980.0 + 12.0 * NORMAL)),
    "tight": ("box-cox", 1e4 + 1e-3 * NORMAL),
    "huge": ("box-cox", 1e300 * np.exp(NORMAL)),
    "tiny": ("box-cox", 1e-300 * np.exp(NORMAL)),
    "small of both signs": ("yeo-johnson", 1e-15 * NORMAL),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("lmbda", [-1.5, 0.0, 0.3, 2.0])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_agree_with_mpmath(name: str, lmbda: float, weighted: bool) -> None:
    family, x = COLUMNS[name]
    n = x.size
    weight = np.random.default_rng(1).exponential(size=n) if weighted else np.empty(0)
    root = np.sqrt(weight / weight.sum()) if weighted else np.full(n, n**-0.5)
    (y, y1, y2), figures = np.empty((3, 1, n)), np.empty((1, joint_derivatives.N_STATISTICS))
    args = x[np.newaxis], weight, root, FAMILIES[family], np.array([lmbda]), new_work(n)
    joint_derivatives.derivative_columns(*args, y, y1, y2, figures)

    g, score, *_ = oracles.likelihood(family, lmbda, x, weight if weighted else None)
    assert abs(figures[0, joint_derivatives.G] - float(g)) <= 1e-13 * max(1.0, abs(float(g)))
    # the score of one column: Cov(psi, psi')/Var(psi) - mean(J), in units of the noise of psi'
    unit = np.linalg.norm(y1[0])
    assert abs(y[0] @ y1[0] - figures[0, joint_derivatives.JACOBIAN] - float(score)) <= 1e-13 * unit
    with mpmath.workdps(60):
        exact = exact_columns(family, lmbda, x, weight if weighted else np.ones(n))
        # change of the derivatives if psi is multiplied by exp(c lambda)
        c = mean_jacobian(family, x, weight) - mpmath.mpf(float(figures[0, joint_derivatives.JACOBIAN]))
        expected = [exact[0], exact[1] - c * exact[0], exact[2] - 2 * c * exact[1] + c * c * exact[0]]
        for found, values in zip((y[0], y1[0], y2[0]), expected, strict=True):
            np.testing.assert_allclose(
                found, np.array([float(v) for v in values]) * root, rtol=0.0, atol=2e-13 * float(max(abs(found)))
            )


def exact_columns(family: str, lmbda: float, x: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
    """Return psi and its first two derivatives in lambda, centered at weighted means and divided by the sd of psi."""
    one_branch = family == "box-cox" or (x >= 0.0).all() or (x < 0.0).all()  # 1e450 beside 1: only differences
    parts = [oracles.power_derivatives(family, lmbda, v, x[0] if one_branch else None) for v in x]
    w = np.array([mpmath.mpf(float(v)) for v in weight])
    columns = [np.array([part[k] for part in parts]) for k in range(3)]
    centered = [v - (w * v).sum() / w.sum() for v in columns]
    sd = mpmath.sqrt((w * centered[0] ** 2).sum() / w.sum())
    return [v / sd for v in centered]


def mean_jacobian(family: str, x: np.ndarray, weight: np.ndarray) -> mpmath.mpf:
    w = [mpmath.mpf(float(v)) for v in weight] if weight.size else [mpmath.mpf(1)] * x.size
    parts = [oracles.log_and_branch(family, 1.0, v) for v in x]
    return mpmath.fdot(w, [s * a for a, _, s in parts]) / mpmath.fsum(w)
