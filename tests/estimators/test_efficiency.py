"""Error and bias of robust fits: of clean data, of data with outliers, and as a function of one additional value."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import ndtri

import powerkern as pk

#: The same cut-off in every step, and two steps; otherwise the default.
FIXED = pk.AdaptiveRewML(n_reweight=2, adaptive_cutoff=False)


def lognormal(n: int, share: float, distance: float, replicates: int = 600) -> np.ndarray:
    """Draw lognormal columns, (n, replicates), in which the first fraction `share` of the rows is exp(distance)."""
    y = np.random.default_rng(99).normal(size=(n, replicates))
    y[: round(share * n)] = distance
    return np.exp(y)


def mean_squared_error(x: np.ndarray, estimator: object) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(np.mean(pk.fit(x, "box-cox", estimator).lmbda ** 2))


@pytest.mark.parametrize("n", [50, 100, 400])
def test_clean_columns_cost_at_most_half_as_much_again_as_maximum_likelihood(n):
    x = lognormal(n, 0.0, 0.0)
    least = mean_squared_error(x, "mle")
    assert mean_squared_error(x, "robust") < 1.5 * least
    assert mean_squared_error(x, FIXED) > 1.7 * least


def test_the_bias_of_clean_columns_vanishes():
    x = lognormal(2000, 0.0, 0.0, 150)
    assert abs(pk.fit(x, "box-cox", "robust").lmbda.mean()) < 0.01
    assert pk.fit(x, "box-cox", FIXED).lmbda.mean() > 0.03


@pytest.mark.parametrize(
    ("share", "distance"), [(0.05, -6.0), (0.1, -6.0), (0.05, 4.0), (0.1, 4.0), (0.1, 10.0), (0.15, 6.0)]
)
def test_outliers_do_no_more_harm_than_to_fixed_cutoffs(share, distance):
    x = lognormal(100, share, distance)
    assert mean_squared_error(x, "robust") < mean_squared_error(x, FIXED)


def sensitivity_curve(x, points, family, estimator):
    """Return for each of `points` n + 1 times the change of lambda when this value is added to the n values `x`."""
    with_one_more = np.vstack([np.repeat(x[:, np.newaxis], len(points), axis=1), points])
    change = pk.fit(with_one_more, family, estimator).lmbda - pk.fit(x, family, estimator).lmbda
    return (len(x) + 1) * change


@pytest.mark.parametrize("first_weights", ["rectified", "plain"])
@pytest.mark.parametrize("kind", [pk.AdaptiveRewML, pk.RewML])
def test_the_sensitivity_curve_returns_to_0(kind, first_weights):
    """Far values must not change lambda, except for RewML with rectified first weights under Box-Cox.

    There, the first cut-off excludes some of the ordinary values, too.
    """
    quantiles, far = ndtri(np.arange(1, 100) / 100), np.array([-10.0, -5.0, 4.0, 10.0])
    estimator = kind(first_weights=first_weights, prestandardize="none")
    curve = sensitivity_curve(np.exp(quantiles), np.exp(far), "box-cox", estimator)
    expected = -3.495 if (kind, first_weights) == (pk.RewML, "rectified") else 0.0
    np.testing.assert_allclose(curve, expected, atol=0.01 if expected else 1e-6)
    np.testing.assert_allclose(sensitivity_curve(quantiles, far, "yeo-johnson", estimator), 0.0, atol=1e-6)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
@pytest.mark.parametrize("prestandardize", ["none", "mad"])
def test_far_values_change_nothing(family, prestandardize):
    """Adding one value 4 to 15 standard deviations from the center changes lambda by less than 0.05/(n + 1)."""
    base, far = ndtri(np.arange(1, 100) / 100), np.array([-15.0, -10.0, -6.0, -5.0, 4.0, 5.0, 6.0, 10.0, 15.0])
    x, z = (np.exp(base), np.exp(far)) if family == "box-cox" else (base, far)
    curve = sensitivity_curve(x, z, family, pk.AdaptiveRewML(prestandardize=prestandardize))
    assert abs(curve).max() < 0.05
