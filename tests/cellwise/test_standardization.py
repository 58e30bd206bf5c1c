"""Consistency factors of robust scales and correlated columns of the wrapped search, compared with plain versions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from powerkern.cellwise import ddc, wrap
from powerkern.cellwise.constants import moments, wrap_constants
from powerkern.cellwise.standardization import _central_part_factor, _mcd_factors, check_standardization, is_usable


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75, 0.975])
def test_the_factor_of_a_central_part_makes_its_standard_deviation_1(share):
    q = scipy.stats.norm.ppf(0.5 + 0.5 * share)
    expected = 1.0 / scipy.stats.truncnorm(-q, q).std()
    assert _central_part_factor(np.array([share]))[0] == pytest.approx(expected, rel=1e-9)
    assert _central_part_factor(np.array([1.0]))[0] == 1.0


def test_raw_scales_use_the_central_half():
    raw = _mcd_factors(9)[0]
    assert raw[:3].tolist() == [1.0, 1.0, 1.0]
    expected = _central_part_factor(np.array([(n // 2 + 1) / n for n in range(3, 10)]))
    np.testing.assert_allclose(raw[3:], expected)
    assert not _mcd_factors(9).flags.writeable


@pytest.mark.parametrize(("method", "error"), [("mcd", 0.035), ("wrapping", 0.045)])
def test_scales_of_few_normal_values_are_unbiased(method, error):
    """The mean scale of 3,000 columns is compared with 1; its standard error is about 0.01."""
    rng = np.random.default_rng(5)
    for n in (4, 5, 6, 7, 10, 11, 24, 25):
        scale = wrap(rng.normal(size=(n, 3000)), method=method).scale
        assert scale.mean() == pytest.approx(1.0, abs=error), n


@pytest.mark.parametrize(("b", "c"), [(1.5, 4.0), (0.5, 2.0), (2.5, 6.0)])
def test_moments_of_psi_are_integrals(b, c):
    constants = wrap_constants(b, c)

    def psi(z: float) -> float:
        return z if z < b else constants.q1 * math.tanh(constants.q2 * (c - z))

    def mean(f) -> float:
        parts = [scipy.integrate.quad(lambda z: f(z) * scipy.stats.norm.pdf(z), *ends)[0] for ends in ((0, b), (b, c))]
        return 2.0 * sum(parts)

    expected = mean(lambda z: psi(z) / z if z else 1.0), mean(lambda z: psi(z) ** 2), mean(lambda z: z * psi(z))
    assert moments(constants) == pytest.approx(expected, rel=1e-9)


def test_usable_scales_are_positive_and_finite():
    scale = np.array([1.0, 0.0, -1.0, np.inf, np.nan, 5e-324])
    assert is_usable(scale).tolist() == [True, False, False, False, False, True]
    found = check_standardization(2.0, [1.0, 3.0], 2)
    assert (found.loc.tolist(), found.scale.tolist(), found.status.tolist()) == ([2.0, 2.0], [1.0, 3.0], [0, 0])
    assert found.n_iter.tolist() == [0, 0]
    for loc, scale in ((0.0, 0.0), (0.0, [1.0, -1.0]), ([1.0, 2.0, 3.0], 1.0), (np.inf, 1.0), (0.0, [[1.0, 2.0]])):
        with pytest.raises(ValueError, match=r"(scale|loc) must be"):
            check_standardization(loc, scale, 2)


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("most", [100, 2])
def test_the_wrapped_search_correlates_wrapped_columns_where_both_have_values(most, include_self, missing):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 1)) + rng.normal(size=(60, 6)) * [0.3, 0.5, 0.8, 1.0, 1.5, 9.0]
    X[:, 3] *= -1.0
    X[rng.random(X.shape) < missing] = np.nan
    X[5, 0] = 50.0
    fit = ddc(X, search="wrapped", min_correlation=0.4, include_self=include_self, n_neighbors=most, max_missing=1.0)
    z = (X - fit.loc) / fit.scale
    constants = wrap_constants()
    size = np.abs(z)
    w = np.where(size < 1.5, z, np.sign(z) * constants.q1 * np.tanh(constants.q2 * np.maximum(4.0 - size, 0.0)))
    w -= np.nanmean(w, axis=0)
    connected = []
    for j in range(6):
        found = {}
        for h in set(range(6)) - {j}:
            both = ~np.isnan(w[:, j]) & ~np.isnan(w[:, h])
            product = w[both, j] @ w[both, h]
            correlation = product / math.sqrt((w[both, j] @ w[both, j]) * (w[both, h] @ w[both, h]))
            if abs(correlation) >= 0.4:
                found[h] = correlation, product / (w[both, h] @ w[both, h])
        order = sorted(found, key=lambda h: -abs(found[h][0]))[:most]
        columns, correlations, slopes = fit.neighbors(j)
        assert columns.tolist() == order
        np.testing.assert_allclose(correlations, [found[h][0] for h in order], rtol=1e-9)
        np.testing.assert_allclose(slopes, [found[h][1] for h in order], rtol=1e-9)
        connected.append(bool(order))
    assert fit.connected.tolist() == connected
    assert set(connected) == {True, False}
    predicted, u = np.empty_like(z), np.where(size <= fit.cutoff, z, np.nan)
    for j in range(6):
        columns, correlations, slopes = fit.neighbors(j)
        if include_self and connected[j]:
            columns, correlations, slopes = (
                np.append(first, rest) for first, rest in ((j, columns), (1.0, correlations), (1.0, slopes))
            )
        columns = columns.astype(int)
        weight = np.where(np.isnan(u[:, columns]), 0.0, np.abs(correlations))
        total = weight.sum(axis=1)
        sums = (weight * np.nan_to_num(u[:, columns]) * slopes).sum(axis=1)
        predicted[:, j] = np.where(total > 0.0, sums / np.where(total > 0.0, total, 1.0), 0.0) * fit.deshrinkage[j]
    np.testing.assert_allclose(fit.predicted, predicted * fit.scale + fit.loc, rtol=1e-8, atol=1e-10)
