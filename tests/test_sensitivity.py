"""Sensitivity curves: the change of lambda times the size, by any estimator with its options."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

import powerkern as pk
from powerkern.sensitivity import sensitivity_curve

QUANTILES = ndtri(np.arange(1, 100) / 100)
FAR = np.array([-10.0, -5.0, 4.0, 10.0])


@pytest.mark.parametrize("estimator", ["mle", pk.AdaptiveRewML(n_reweight=3), "carroll", pk.MTL(h=0.9)])
@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox"])
def test_change_of_lambda_times_the_size(family, estimator):
    x, z = np.exp(np.random.default_rng(2).normal(size=30)), np.array([0.2, 3.0, 40.0])
    base = pk.fit(x, family, estimator).lmbda[0]
    expected = [31 * (pk.fit(np.append(x, one), family, estimator).lmbda[0] - base) for one in z]
    np.testing.assert_allclose(sensitivity_curve(x, z, family, estimator), expected, rtol=1e-12, atol=1e-13)


def test_missing_values_are_left_out():
    x = np.random.default_rng(0).normal(size=30)
    holes = np.insert(x, [3, 20], np.nan)
    curve = sensitivity_curve(holes, [-1.0, np.nan, 4.0])
    np.testing.assert_array_equal(curve, sensitivity_curve(x, [-1.0, np.nan, 4.0]))
    assert curve[1] == 0.0


def test_what_is_refused():
    x = np.arange(1.0, 9.0)
    with pytest.raises(ValueError, match=r"one-dimensional, got shapes \(2, 4\) and \(1,\)"):
        sensitivity_curve(x.reshape(2, 4), [1.0])
    for empty in ([], [np.nan, np.nan]):
        with pytest.raises(ValueError, match="x has no values, or only missing ones"):
            sensitivity_curve(empty, [1.0])
    with pytest.raises(ValueError, match="column 1, row 8"):
        sensitivity_curve(x, [1.0, -1.0], "box-cox")


@pytest.mark.parametrize("first_weights", ["rectified", "plain"])
@pytest.mark.parametrize("kind", [pk.AdaptiveRewML, pk.RewML])
def test_box_cox_returns_to_0(kind, first_weights):
    """Unless the first cut leaves out some of the sample, which a second one at the same cut-off does not take back."""
    estimator = kind(first_weights=first_weights, prestandardize="none")
    curve = sensitivity_curve(np.exp(QUANTILES), np.exp(FAR), "box-cox", estimator)
    if (kind, first_weights) == (pk.RewML, "rectified"):
        np.testing.assert_allclose(curve, -3.495, atol=0.01)
    else:
        np.testing.assert_allclose(curve, 0.0, atol=1e-6)
    np.testing.assert_allclose(sensitivity_curve(QUANTILES, FAR, estimator=estimator), 0.0, atol=1e-6)
