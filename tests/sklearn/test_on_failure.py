"""Given lambdas, and features that are passed through with a warning."""

import numpy as np
import pytest
from scipy import stats

import powerkern as pk
from powerkern.sklearn import PowerTransformer

RNG = np.random.default_rng(5)
GOOD = RNG.lognormal(size=40)
X = np.column_stack([GOOD, GOOD - GOOD.min(), (np.arange(40) < 3) + 1.0, np.full(40, np.nan), np.full(40, 2.0)])


def test_given_lambdas_are_used():
    transformer = PowerTransformer("box-cox", lmbda=[0.5, np.nan], standardize=False)
    columns = np.column_stack([GOOD, GOOD**2])
    z = transformer.fit_transform(columns)
    np.testing.assert_allclose(z[:, 0], stats.boxcox(GOOD, 0.5), rtol=1e-12)
    assert transformer.lambdas_[0] == 0.5
    np.testing.assert_allclose(transformer.lambdas_[1], pk.fit(GOOD**2, "box-cox").lmbda, rtol=1e-12)
    again = PowerTransformer("box-cox", lmbda=0.5).partial_fit(columns[:20]).partial_fit(columns[20:])
    assert again.lambdas_.tolist() == [0.5, 0.5]
    some = PowerTransformer("box-cox", lmbda=[0.5, 0.25], variables=[1]).fit(columns)
    assert some.power_fit_.lmbda.tolist() == [0.25]
    with pytest.raises(ValueError, match="lmbda cannot be given with estimator='robust'"):
        PowerTransformer(lmbda=1.0, estimator="robust").fit(columns)


def test_features_outside_the_domain_or_with_few_values_are_left():
    transformer = PowerTransformer("box-cox", on_failure="passthrough")
    left = r"^column 4: not fitted: .*column 1: not transformed: .*; column 2: not transformed: "
    with pytest.warns(UserWarning, match=left) as caught:
        transformer.fit(X)
    assert len(caught) == 1
    z = transformer.transform(X)
    np.testing.assert_array_equal(z[:, 1:4], X[:, 1:4])
    np.testing.assert_array_equal(z[:, 4], 0.0)
    np.testing.assert_array_equal(z[:, 0], pk.fit(GOOD, "box-cox").transform(GOOD))
    np.testing.assert_array_equal(transformer.inverse_transform(z)[:, 1:], X[:, 1:])
    with pytest.raises(ValueError, match="strictly positive"):
        PowerTransformer("box-cox").fit(X)
    with pytest.raises(ValueError, match="partial_fit works only with on_failure='raise'"):
        transformer.partial_fit(X)


@pytest.mark.parametrize("estimator", ["mle", "robust", "ppcc"])
def test_fits_leave_columns_by_every_estimator(estimator):
    with pytest.warns(UserWarning, match="not transformed: values outside the domain"):
        fit = pk.fit(X[:, :3], "box-cox", estimator, on_failure="passthrough")
    few = pk.Status.NO_SPREAD if estimator == "robust" else pk.Status.FEW_DISTINCT
    assert fit.status[1:].tolist() == [pk.Status.OUTSIDE_DOMAIN, few]
    assert fit.lmbda[1:].tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(fit.lmbda[0], pk.fit(GOOD, "box-cox", estimator).lmbda[0])
    assert fit.n_obs.tolist() == [40, 40, 40]
    again = pk.PowerFit.from_json(fit.to_json())
    np.testing.assert_array_equal(again.transform(X[:, :3]), fit.transform(X[:, :3]))


def test_columns_of_groups_are_left_one_by_one():
    groups = np.arange(40) % 2
    x = GOOD.copy()
    x[0] = -1.0
    with pytest.warns(UserWarning, match="^group 0: not transformed: values outside the domain"):
        fit = pk.fit(x, "box-cox", groups=groups, on_failure="passthrough")
    z = fit.transform(x, groups)
    np.testing.assert_array_equal(z[::2], x[::2])
    np.testing.assert_array_equal(z[1::2], pk.fit(x[1::2], "box-cox").transform(x[1::2]))


def test_rows_of_weight_0_and_missing_values_do_not_count():
    x = np.array([1.0, 2.0, 3.0, np.nan, 2.0])
    with pytest.warns(UserWarning, match="fewer than three distinct"):
        fit = pk.fit(x, on_failure="passthrough", sample_weight=[1, 1, 0, 1, 1])
    assert fit.n_obs.tolist() == [3.0]
    assert fit.x_max.tolist() == [2.0]
    late = np.append(np.tile([1.0, 2.0], 50), 3.0)  # the third distinct value is the last row
    assert pk.fit(late, on_failure="passthrough").status.tolist() == [pk.Status.OK]


def test_limits_do_not_go_with_columns_left_as_they_are():
    with pytest.raises(ValueError, match="work only with on_failure='raise'"):
        pk.fit(GOOD, on_failure="passthrough", limits=(0.1, None))


def test_chunks_cannot_leave_columns():
    with pytest.raises((TypeError, ValueError), match="on_failure"):
        pk.sketch.fit_chunks([X[:, :1]], on_failure="passthrough")
