"""UVImputer: scikit-learn's own checks, and what it fills in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from powerkern.completion import UVImputer

nan = np.nan


@parametrize_with_checks([UVImputer(random_state=0), UVImputer(2, method="cd", shrinkage=0.0, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def holes(X, fraction=0.2, seed=0):
    mask = np.random.default_rng(seed).uniform(size=X.shape) < fraction
    return np.where(mask, nan, X), mask


def test_better_than_means_and_neighbours():
    X = load_breast_cancer().data
    M, mask = holes(X)

    def error(imputer):
        return np.sqrt(np.mean((((imputer.fit_transform(M) - X) / X.std(axis=0))[mask]) ** 2))

    assert error(UVImputer(random_state=0)) < 0.8 * error(KNNImputer()) < 0.8 * error(SimpleImputer())


def test_values_that_are_there_stay():
    M, mask = holes(load_breast_cancer().data)
    filled = UVImputer(random_state=0).fit_transform(M)
    assert (filled[~mask] == M[~mask]).all()
    assert np.isfinite(filled).all()


def test_units_of_columns_do_not_matter():
    M, _ = holes(load_breast_cancer().data[:, :6])
    units = 2.0 ** np.array([0, 30, -20, 4, 100, -3])
    one = UVImputer(2, random_state=0).fit_transform(M)
    np.testing.assert_allclose(UVImputer(2, random_state=0).fit_transform(M * units) / units, one, rtol=1e-9)


def test_new_rows_in_a_pipeline():
    M, _ = holes(load_breast_cancer().data)
    pipeline = make_pipeline(UVImputer(5, random_state=0), StandardScaler()).fit(M[:400])
    assert np.isfinite(pipeline.transform(M[400:])).all()
    np.testing.assert_allclose(pipeline.transform(M[400:401]), pipeline.transform(M[400:])[:1], rtol=1e-12)


def test_the_rank_is_at_most_the_matrix():
    imputer = UVImputer(50, random_state=0).fit(np.arange(12.0).reshape(3, 4))
    assert imputer.rank_ == imputer.decomposition_.rank == 3


def test_float32_stays():
    M, _ = holes(load_breast_cancer().data.astype(np.float32))
    assert UVImputer(random_state=0).fit_transform(M).dtype == np.float32


def test_columns_without_values_and_constant_ones():
    X = np.array([[1.0, nan, 5.0], [2.0, nan, 5.0], [nan, nan, nan]])
    with pytest.warns(UserWarning, match="no entries in row 2, column 1"):
        filled = UVImputer(random_state=0).fit_transform(X)
    np.testing.assert_allclose(filled[:, 1], 0.0)
    np.testing.assert_allclose(filled[2], [1.5, 0.0, 5.0])


def test_rows_without_values_become_the_means():
    M, _ = holes(load_breast_cancer().data[:50, :4])
    imputer = UVImputer(2, random_state=0).fit(M)
    for n in (1, 3):
        np.testing.assert_allclose(imputer.transform([[nan] * 4] * n), [np.nanmean(M, axis=0)] * n, rtol=1e-14)


def test_frames_come_out_as_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, nan, 3.0, 4.0], "b": [2.0, 4.0, nan, 8.0]}, index=list("wxyz"))
    imputer = UVImputer(1, random_state=0).set_output(transform="pandas")
    filled = imputer.fit_transform(frame)
    assert list(filled.columns) == ["a", "b"]
    assert list(filled.index) == list("wxyz")
    assert not filled.isna().any(axis=None)


def test_clones_and_seeds():
    M, _ = holes(load_breast_cancer().data)
    imputer = UVImputer(3, random_state=5)
    assert (clone(imputer).fit_transform(M) == imputer.fit_transform(M)).all()


@pytest.mark.parametrize("options", [{"rank": 0}, {"shrinkage": -1.0}, {"method": "svd"}, {"n_threads": 0}])
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        UVImputer(**options).fit([[1.0, 2.0], [3.0, 4.0]])
