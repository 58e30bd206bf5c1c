"""Options `out_of_range` and `infinite` of the transformers. The defaults reproduce scikit-learn's behaviour."""

import numpy as np
import pytest
from sklearn import preprocessing

import powerkern as pk
from powerkern.sklearn import GroupedPowerTransformer, PowerTransformer

X = np.random.default_rng(0).lognormal(size=(50, 3))


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_by_default_transformers_refuse_what_scikit_learn_refuses(value):
    new = X.copy()
    new[3, 1] = value
    for transformer in (
        preprocessing.PowerTransformer("box-cox"),
        PowerTransformer("box-cox"),
        GroupedPowerTransformer("box-cox"),
    ):
        transformer.fit(X)
        with pytest.raises(ValueError, match=r"strictly positive|inf"):
            transformer.transform(new)


@pytest.mark.parametrize("kind", [PowerTransformer, GroupedPowerTransformer])
def test_new_values_are_clipped_and_infinite_ones_missing(kind):
    train, new = X.copy(), X.copy()
    train[0, 0], new[1, 1], new[2, 2], new[3, 0] = np.inf, 0.0, 1e300, -np.inf
    transformer = kind("box-cox", out_of_range="clip", infinite="missing")
    with pytest.warns(UserWarning, match=r"^1 infinite value is treated as missing \(.*column 0: 1\)$"):
        transformer.fit(train)
    with pytest.warns(UserWarning, match=r"^2 values are beyond .*; 1 infinite value is"):
        z = transformer.transform(new)
    fit = pk.fit(np.where(np.isinf(train), np.nan, train), "box-cox")
    expected = fit.transform(np.clip(np.where(np.isinf(new), np.nan, new), fit.x_min, fit.x_max))
    np.testing.assert_allclose(z, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [PowerTransformer, GroupedPowerTransformer])
def test_infinite_values_go_through_and_back(kind):
    train = X.copy()
    train[0, 0] = np.inf
    transformer = kind(infinite="keep").fit(train)
    z = transformer.transform(train)
    assert np.isposinf(z[0, 0])
    back = transformer.inverse_transform(z)
    np.testing.assert_allclose(back, train, rtol=1e-12)


def test_partial_fit_goes_on_from_rows_with_infinite_values():
    train = X.copy()
    train[0, 0] = np.inf
    transformer = PowerTransformer(infinite="keep").fit(train)
    transformer.partial_fit(train)
    expected = pk.fit(np.where(np.isinf(train), np.nan, train))
    np.testing.assert_allclose(transformer.lambdas_, expected.lmbda, rtol=1e-9)
