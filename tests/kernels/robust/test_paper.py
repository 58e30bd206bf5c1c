"""The paper's equations, written as short functions, compared with the oracles and with the fast kernels."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

import powerkern as pk
from powerkern.kernels.location.huber import HUBER_K, huber_beta, nonempty_one_step
from powerkern.kernels.location.loc_scale import LocScale
from powerkern.kernels.robust import paper, qq
from powerkern.kernels.robust.reweighting import within_cutoff
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED

LENGTHS = (3, 4, 5, 8, 21, 50, 257)


def columns(n):
    """Return four sorted columns: normal, contaminated, tied, and skewed."""
    rng = np.random.default_rng(n)
    z = np.sort(rng.normal(size=n))
    return [z, np.sort(np.where(np.arange(n) < n // 5, 9.0, z)), np.sort(np.round(z, 1)), np.sort(np.exp(2.0 * z))]


def test_rho_and_psi_agree_with_their_formulas():
    t = np.linspace(-1.0, 1.0, 81)
    expected = np.where(abs(t) <= 0.5, 1.0 - (1.0 - (t / 0.5) ** 2) ** 3, 1.0)
    np.testing.assert_allclose([qq.rho(v) for v in t], expected, atol=1e-15)
    u = np.array([-np.inf, -2.0, -1.5, 0.3, 1.5, 7.0])
    np.testing.assert_array_equal([paper.huber_psi(v) for v in u], np.clip(u, -1.5, 1.5))


@pytest.mark.parametrize("n", LENGTHS)
def test_one_step_and_its_fast_form(n):
    for y in columns(n):
        found = paper.huber_one_step(np.random.default_rng(1).permutation(y))
        beta = huber_beta(HUBER_K)
        if found[1] == 0.0:
            assert nonempty_one_step(y, None, HUBER_K, beta).scale == 0.0
            continue
        np.testing.assert_allclose(found, oracles.huber_one_step(y, HUBER_K, beta), rtol=1e-13)
        np.testing.assert_allclose(nonempty_one_step(y, None, HUBER_K, beta)[:2], found, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", LENGTHS)
def test_distance_is_the_mean_of_rho(n):
    scores = oracles.normal_scores(n)
    for y in columns(n):
        t = (y - 0.1) / 1.2 - scores
        for c in (0.2, 0.5, 1.5):
            expected = np.mean([qq.rho(v, c) for v in t])
            assert qq.contiguous_bisquare_objective(y, scores, 0.1, 1.2, c) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("n", [21, 50, 257, 530])
def test_objective_and_its_fast_forms(family, n):
    """`objective_curve` evaluates lambdas in lanes for up to 512 values, and one at a time for longer columns."""
    for x in columns(n)[:2]:
        x = np.exp(x) if family == "box-cox" else x
        lmbdas = np.array([-2.0, 0.0, 0.7, 1.0, 2.5])
        fit = pk.fit(x, family, pk.RewML(prestandardize="none"))
        curve = fit.objective_curve(lmbdas, x)[0]
        expected = [paper.qq_objective(x, v, family == "yeo-johnson") for v in lmbdas]
        np.testing.assert_allclose(curve, expected, atol=1e-6)  # beta is rounded to seven digits in robust fits


@pytest.mark.parametrize("n", LENGTHS)
def test_weights_and_their_fast_form(n):
    for y in columns(n):
        loc, scale = np.median(y), 0.8
        weights = paper.outlier_weights(y, loc, scale, 2.0)
        kept = within_cutoff(y, LocScale(loc, scale, 1, 0), 2.0, 1.0, NOT_RECTIFIED)
        np.testing.assert_array_equal(np.flatnonzero(weights), np.arange(kept.start, kept.stop))
