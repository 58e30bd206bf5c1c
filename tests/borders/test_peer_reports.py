"""Reproduce public bug reports of other projects with inputs of our own.

Each docstring names the report and says what went wrong there. Expected values come from definitions, NumPy, SciPy or
the same data in another form. The last line says how powerkern behaved when the test was first run.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.special

import powerkern as pk
from powerkern import stats
from powerkern.completion import fit_ratings, uv_decompose
from powerkern.outliers import mahalanobis
from powerkern.sklearn import GroupedPowerTransformer, PowerTransformedRegressor, UVImputer

RNG = np.random.default_rng
X = RNG(11).lognormal(size=(40, 3))


def test_negative_values_are_rejected() -> None:
    """sktime 4769, 4770: Box-Cox silently returned numbers for negative values.

    powerkern at first run: correct.
    """
    x = X.copy()
    x[17, 1] = -0.5
    with pytest.raises(ValueError, match=r"column 1, row 17.*-0\.5"):
        pk.fit(x, "box-cox")
    with pytest.raises(ValueError, match="positive"):
        stats.boxcox(x[:, 1])
    fitted = pk.fit(X, "box-cox")
    with pytest.raises(ValueError, match=r"column 1, row 17"):
        fitted.transform(x)


@pytest.mark.parametrize("lmbda", [-2.0, -0.5, -1e-9, 0.0, 0.3, 4.0])
def test_inverse_of_every_sign_of_lambda(lmbda: float) -> None:
    """Merlion 185: the inverse was exp(y) for negative lambda, too, instead of only for lambda = 0.

    powerkern at first run: correct.
    """
    x = np.array([0.25, 0.9, 1.0, 2.0, 7.5])
    fit = pk.fit(x, "box-cox", lmbda=lmbda)
    np.testing.assert_allclose(fit.inverse_transform(fit.transform(x)), x, rtol=1e-11)
    np.testing.assert_allclose(stats.inv_boxcox(stats.boxcox(x, lmbda), lmbda), x, rtol=1e-13)


def test_an_inverse_beyond_the_range_is_not_infinite() -> None:
    """tbats 22: the inverse of a large forecast was inf, and a later step failed on it.

    powerkern at first run: out_of_range="raise" did not name the row.
    """
    fit = pk.fit(X[:, 0], "box-cox", lmbda=-0.5)
    with pytest.warns(UserWarning, match=r"outside|range"):
        back = fit.inverse_transform(np.array([0.0, 1e6]))
    assert np.isfinite(back[0])
    assert math.isnan(back[1])
    assert np.isfinite(fit.inverse_transform(np.array([0.0, 1e6]), out_of_range="clip")).all()
    with pytest.raises(ValueError, match="row 1"):
        fit.inverse_transform(np.array([0.0, 1e6]), out_of_range="raise")


def test_inverse_of_objects() -> None:
    """scikit-hts 38: inv_boxcox of an object column raised a TypeError about casting rules.

    powerkern at first run: rejected, with advice.
    """
    z = pd.Series([0.1, -0.2, 0.5], dtype=object)
    try:
        found = stats.inv_boxcox(z, 0.5)
    except TypeError as error:
        assert "convert" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(found, scipy.special.inv_boxcox(z.astype(float), 0.5), rtol=1e-14)
    with pytest.raises(TypeError, match=r"number|convert"):
        stats.inv_boxcox(np.array([0.1, "a"], dtype=object), 0.5)


@pytest.mark.parametrize("lmbda", [-3.0, -1.0, 0.5, 2.0])
def test_values_between_zero_and_one(lmbda: float) -> None:
    """scales (R package) 103: the inverse transform did not restore x for 0 < x < 1.

    powerkern at first run: correct.
    """
    x = np.linspace(0.01, 0.99, 25)
    np.testing.assert_allclose(stats.inv_boxcox(stats.boxcox(x, lmbda), lmbda), x, rtol=1e-12)
    np.testing.assert_allclose(
        stats.boxcox(x, lmbda), [float((mpmath.mpf(v) ** lmbda - 1) / lmbda) for v in x], rtol=1e-14
    )


def test_the_inverse_at_the_end_of_its_domain() -> None:
    """coreforecast 25: an inequality was reversed where 1 + lambda y vanishes.

    powerkern at first run: correct.
    """
    with np.errstate(all="ignore"):
        expected = scipy.special.inv_boxcox(np.array([-2.0, -1.9, -2.1]), 0.5)
    np.testing.assert_allclose(stats.inv_boxcox(np.array([-2.0, -1.9, -2.1]), 0.5), expected, rtol=1e-15)


def test_guerrero_divides_standard_deviations() -> None:
    """coreforecast 97: the coefficient of variation used variances instead of standard deviations.

    powerkern at first run: correct.
    """
    x = np.exp(RNG(3).normal(size=96) * 0.3 + np.repeat(np.arange(8), 12) * 0.4)
    found = stats.boxcox_guerrero(x, 12)
    parts = x.reshape(8, 12)
    mean, sd = parts.mean(axis=1), parts.std(axis=1, ddof=1)

    def variation(lmbda: float) -> float:
        ratio = sd / mean ** (1 - lmbda)
        return float(ratio.std(ddof=1) / ratio.mean())

    grid = np.linspace(-1, 2, 3001)
    assert abs(found - grid[np.argmin([variation(t) for t in grid])]) < 2e-3


def test_guerrero_of_values_that_are_not_positive() -> None:
    """forecast (R) 878: Guerrero's method accepted series with zeros.

    powerkern at first run: correct.
    """
    x = X[:, 0].copy()
    x[5] = 0.0
    with pytest.raises(ValueError, match=r"row 5|positive"):
        stats.boxcox_guerrero(x, 4)


def test_a_target_outside_the_domain_is_named() -> None:
    """pycaret 1417: a target with zeros failed in a pipeline, and the message did not say which value was invalid.

    powerkern at first run: correct.
    """
    y = np.r_[X[:, 0], 0.0]
    model = PowerTransformedRegressor(family="box-cox")
    with pytest.raises(ValueError, match=r"row 40|positive"):
        model.fit(RNG(1).normal(size=(41, 2)), y)


def test_a_series_of_weights_next_to_an_array() -> None:
    """category_encoders 280, feature_engine 376: an array X with a labelled Series gave a result of NaN only.

    powerkern at first run: correct.
    """
    weight = pd.Series(np.arange(1.0, 41.0), index=RNG(2).permutation(1000)[:40])
    np.testing.assert_array_equal(
        pk.fit(X, sample_weight=weight).lmbda, pk.fit(X, sample_weight=weight.to_numpy()).lmbda
    )


def test_a_frame_with_gaps_in_its_index() -> None:
    """category_encoders 134, 181: an index other than 0, 1, 2, ... caused an IndexingError or NaN.

    powerkern at first run: correct.
    """
    frame = pd.DataFrame(X, columns=list("abc"))
    frame = frame[frame["a"] > 0.8].sample(frac=1.0, random_state=0)
    z = pk.fit(frame).transform(frame)
    assert z.index.equals(frame.index)
    np.testing.assert_array_equal(z.to_numpy(), pk.fit(frame.to_numpy()).transform(frame.to_numpy()))


def test_a_permuted_target_keeps_its_permutation() -> None:
    """category_encoders 387: aligning a shuffled y with X by label would undo the shuffle of a permutation test.

    powerkern at first run: correct (estimators match rows by position).
    """
    frame, y = pd.DataFrame(X, columns=list("abc")), pd.Series(X[:, 0] * 2 + 1)
    shuffled = y.sample(frac=1.0, random_state=1)
    found = PowerTransformedRegressor().fit(frame, shuffled).predict(frame)
    np.testing.assert_array_equal(found, PowerTransformedRegressor().fit(frame, shuffled.to_numpy()).predict(frame))


def test_a_series_with_an_unsorted_index() -> None:
    """cuML 4572: transform failed for data on which fit_transform succeeded.

    powerkern at first run: correct.
    """
    x = pd.Series(X[:, 0], index=RNG(5).permutation(40), name="x")
    fit = pk.fit(x)
    z = fit.transform(x)
    assert z.index.equals(x.index)
    np.testing.assert_array_equal(z.to_numpy(), fit.transform(x.to_numpy()))


def test_identifiers_of_another_type_are_reported_as_unknown() -> None:
    """Surprise 19, 259, 312: users 0 and "0" were confused, and every prediction was the mean.

    powerkern at first run: correct.
    """
    users, items = np.repeat(np.arange(10), 4), np.tile(np.arange(4), 10)
    ratings = 3.0 + users / 10 + items / 7
    model = fit_ratings((users, items, ratings), 1)
    assert np.unique(model.predict(users, items).round(6)).size > 10
    with pytest.raises((TypeError, ValueError), match=r"number|text|type"):
        model.predict(np.array(["0", "1"]), np.array([0, 1]))


def test_dask_frames_with_integer_columns() -> None:
    """dask-ml 157: scalers failed on data frames, or matched columns by position.

    powerkern at first run: correct.
    """
    dd = pytest.importorskip("dask.dataframe")
    import powerkern.dask

    frame = pd.DataFrame(X, columns=[7, 3, 5])
    lazy = dd.from_pandas(frame, npartitions=3)
    fit = powerkern.dask.fit(lazy)
    np.testing.assert_allclose(fit.lmbda, pk.fit(frame).lmbda, rtol=1e-9)
    z = powerkern.dask.transform(lazy, fit).compute()
    np.testing.assert_allclose(z.to_numpy(), pk.fit(frame).transform(frame).to_numpy(), rtol=1e-8, atol=1e-8)


def test_partitions_with_columns_in_another_order() -> None:
    """dask 6856: partitions with columns in another order failed in the last step, or values moved to other columns.

    powerkern at first run: correct.
    """
    frame = pd.DataFrame(X, columns=list("abc"))
    parts = [frame.iloc[:20], frame.iloc[20:, [2, 0, 1]]]
    try:
        found = pk.sketch.fit_chunks(parts)
    except ValueError as error:
        assert "column" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(found.lmbda, pk.fit(frame).lmbda, rtol=1e-9)


def test_groups_of_a_categorical() -> None:
    """featurewiz 100: category dtypes failed with "indexes don't match".

    powerkern at first run: correct.
    """
    labels = RNG(6).permutation(np.repeat(["low", "mid", "high", "low"], 10))
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["g"] = pd.Categorical(labels, categories=["high", "mid", "low", "never"], ordered=True)
    shuffled = frame.sample(frac=1.0, random_state=2)
    fit, plain = pk.fit(shuffled, groups="g"), pk.fit(X, groups=labels)
    z = fit.transform(shuffled).loc[frame.index, ["a", "b", "c"]]
    np.testing.assert_allclose(z.to_numpy(), plain.transform(X, labels), rtol=1e-12, atol=1e-12)
    found = GroupedPowerTransformer(groups="g").fit_transform(frame)
    np.testing.assert_allclose(np.asarray(found, float)[:, :3], plain.transform(X, labels), rtol=1e-12, atol=1e-12)


def test_many_batches_and_one_are_one_fit() -> None:
    """river 996: the result of learn_many differed greatly from the result of calling learn_one in a loop.

    powerkern at first run: correct.
    """
    fits = [pk.sketch.fit_chunks([X[i : i + size] for i in range(0, 40, size)]) for size in (1, 7, 40)]
    for one in fits[1:]:
        np.testing.assert_allclose(one.lmbda, fits[0].lmbda, rtol=1e-12)
    np.testing.assert_allclose(fits[0].lmbda, pk.fit(X).lmbda, rtol=1e-9)


def test_distances_of_a_singular_covariance() -> None:
    """mosegui/mahalanobis 1: multinomial counts sum to 10, so distances were NaN, with a RuntimeWarning.

    powerkern at first run: a ValueError that names the columns.
    """
    counts = RNG(7).multinomial(10, [0.2] * 5, size=200).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = mahalanobis(counts)
        except ValueError as error:
            assert "singular" in str(error) or "rank" in str(error) or "combination" in str(error)  # noqa: PT017
            return
    center = counts - counts.mean(axis=0)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", center, np.linalg.pinv(np.cov(counts.T)), center))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_imputed_values_differ_by_row() -> None:
    """fancyimpute 92: all missing values of a feature were replaced by one number although the rows differ.

    powerkern at first run: correct.
    """
    a, b = RNG(8).normal(size=30), RNG(9).normal(size=6)
    full = np.outer(a, b) + 5.0
    holes = full.copy()
    holes[RNG(10).uniform(size=full.shape) < 0.15] = np.nan
    found = UVImputer(1, random_state=0).fit_transform(holes)
    missing = np.isnan(holes[:, 0])
    assert missing.sum() > 1
    assert np.unique(found[missing, 0].round(6)).size == missing.sum()
    assert np.abs(found - full)[np.isnan(holes)].mean() < 0.5 * np.abs(5.0 - full)[np.isnan(holes)].mean()
    assert uv_decompose(holes, 1).complete(holes).shape == full.shape


def test_missing_labels_are_distinguished_from_labels() -> None:
    """skrub 905: pd.NA in a categorical column raised a TypeError about mixed types.

    powerkern at first run: correct.
    """
    labels = pd.Series(["one", "two", None] * 13 + ["one"], dtype="string").astype("category")
    with pytest.raises(ValueError, match=r"row 2.*label|dropna"):
        pk.fit(X, groups=labels)
    fit = pk.fit(X, groups=labels, dropna=True)
    assert list(fit.groups) == ["one", "two"]


def test_null_and_nan_of_polars_are_both_missing() -> None:
    """polars 16453: whether NaN and null were treated alike depended on the number of rows.

    powerkern at first run: correct, but see finding 18.
    """
    values: list[Any] = [1.0, float("nan"), 3.0, None, 2.0, 7.0] * 200
    frame = pl.DataFrame({"x": values})
    fit = pk.fit(frame)
    present = np.array([v for v in values if v is not None and v == v])
    np.testing.assert_allclose(fit.lmbda, pk.fit(present).lmbda, rtol=1e-13)
    z = fit.transform(frame)["x"]
    assert z.null_count() == 200
    assert z.is_nan().sum() == 200


@pytest.mark.parametrize("order", [("y", "x", "t"), ("t", "y", "x")])
def test_the_order_of_dimensions_is_preserved(order: tuple[str, ...]) -> None:
    """xgcm 533, xarray 1483, 1739: the dimension was moved to the end, and stacked coordinates lost their names.

    powerkern at first run: correct for plain dimensions; see finding 13 for stacked ones.
    """
    xr = pytest.importorskip("xarray")
    import powerkern.xarray

    data = xr.DataArray(
        RNG(12).lognormal(size=(30, 2, 3)), dims=("t", "y", "x"), coords={"y": [10, 20], "x": [1.0, 2.0, 3.0]}
    ).transpose(*order)
    fit = powerkern.xarray.fit(data, dim="t")
    z = fit.transform(data)
    assert z.dims == order
    np.testing.assert_array_equal(z["y"], data["y"])
    stacked = data.stack(cell=("y", "x"))
    back = powerkern.xarray.fit(stacked, dim="t").transform(stacked).unstack("cell")
    np.testing.assert_allclose(back.transpose(*order), z, rtol=1e-12)


def test_a_lambda_far_outside_the_usual_bracket() -> None:
    """systemds 2499: the search started in [-2, 2] and had to widen that interval.

    powerkern at first run: correct.
    """
    x = RNG(13).normal(100.0, 1.0, size=500) ** (1 / 30)
    fit = pk.fit(x, "box-cox")
    assert abs(fit.lmbda[0]) > 5
    assert fit.profile(fit.lmbda)[0, 0] <= fit.profile(fit.lmbda[0] + np.array([-0.5, 0.5])).min()


def test_a_constant_column_has_no_logarithm_of_zero() -> None:
    """augurs 185: a constant column has variance 0, and log(0) made its likelihood unusable.

    powerkern at first run: correct.
    """
    x = X.copy()
    x[:, 1] = 4.0
    with pytest.warns(UserWarning, match=r"1"):
        model = pk.fit(x)
    assert np.isfinite(model.transform(x)).all()
    np.testing.assert_array_equal(model.lmbda[[0, 2]], pk.fit(X[:, [0, 2]]).lmbda)
