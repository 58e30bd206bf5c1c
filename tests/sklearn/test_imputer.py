"""UVImputer: scikit-learn's own checks, and the imputed values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from powerkern.sklearn import UVImputer

nan = np.nan


@parametrize_with_checks(
    [
        UVImputer(random_state=0),
        UVImputer(2, method="cd", shrinkage=0.0, random_state=0),
        UVImputer(2, normalize="both", n_starts=2, random_state=0),
        UVImputer(2, add_indicator=True, random_state=0),
        UVImputer(2, missing_values=-1, random_state=0),
    ]
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def holes(X, fraction=0.2, seed=0):
    mask = np.random.default_rng(seed).uniform(size=X.shape) < fraction
    return np.where(mask, nan, X), mask


def test_errors_are_smaller_than_of_means_and_neighbors():
    X = load_breast_cancer().data
    M, mask = holes(X)

    def error(imputer):
        return np.sqrt(np.mean((((imputer.fit_transform(M) - X) / X.std(axis=0))[mask]) ** 2))

    assert error(UVImputer(random_state=0)) < 0.6 * error(KNNImputer()) < 0.6 * error(SimpleImputer())
    assert error(UVImputer(10, random_state=0)) < 0.8 * error(KNNImputer())


def test_values_that_are_there_stay():
    M, mask = holes(load_breast_cancer().data)
    filled = UVImputer(random_state=0).fit_transform(M)
    assert (filled[~mask] == M[~mask]).all()
    assert np.isfinite(filled).all()


@pytest.mark.parametrize("rank", [2, "auto"])
def test_units_of_columns_do_not_matter(rank):
    M, _ = holes(load_breast_cancer().data[:, :6])
    units = 2.0 ** np.array([0, 30, -20, 4, 900, -900])
    one = UVImputer(rank, random_state=0).fit_transform(M)
    np.testing.assert_allclose(UVImputer(rank, random_state=0).fit_transform(M * units) / units, one, rtol=1e-9)


@pytest.mark.parametrize("normalize", ["columns", "rows", "both", None])
def test_a_common_unit_of_columns_scales_results(normalize):
    rng = np.random.default_rng(0)
    full = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=8) + 0.1 * rng.normal(size=(200, 8))
    M, mask = holes(full)
    filled = UVImputer(normalize=normalize, random_state=0).fit_transform(M)
    assert np.sqrt(np.mean((filled - full)[mask] ** 2)) < 0.3 * full.std()
    scaled = UVImputer(normalize=normalize, random_state=0).fit_transform(4.0 * M)
    np.testing.assert_allclose(scaled, 4.0 * filled, rtol=1e-9)


def test_chosen_model():
    M, _ = holes(load_breast_cancer().data)
    imputer = UVImputer(random_state=0).fit(M)
    assert imputer.rank_ == 30
    assert 0.0 < imputer.shrinkage_ < 0.1
    assert imputer.weights_.sum() == pytest.approx(1.0)
    assert imputer.validation_rmse_ == pytest.approx(0.38, abs=0.08)
    np.testing.assert_allclose(imputer.scale_, np.nanstd(M, axis=0), rtol=1e-12)


def test_the_seed_hardly_matters():
    X = load_breast_cancer().data
    M, mask = holes(X)
    filled = [UVImputer(random_state=seed).fit_transform(M) for seed in range(3)]
    errors = [np.sqrt(np.mean((((one - X) / X.std(axis=0))[mask]) ** 2)) for one in filled]
    assert max(errors) < 1.02 * min(errors)


def test_the_best_of_several_starts_is_used():
    M, mask = holes(load_breast_cancer().data[:100, :8])
    options = {"tol": 1e-2, "shrinkage": 0.01, "random_state": 3}
    best = UVImputer(3, n_starts=4, **options).fit(M)
    filled = best.transform(M)
    np.testing.assert_array_equal(filled, best.decomposition_.fold_in(M))
    assert (filled[~mask] == M[~mask]).all()
    assert best.decomposition_.rmse < UVImputer(3, **options).fit(M).decomposition_.rmse


def test_ranks_are_compared_by_their_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 20)) + 0.2 * rng.normal(size=(150, 20))
    M, mask = holes(X)
    search = GridSearchCV(UVImputer(shrinkage=0.05, random_state=0), {"rank": [1, 3, 8]}, cv=3).fit(M)
    assert search.best_params_ == {"rank": 3}
    auto = UVImputer(random_state=0).fit(M[:100])
    error = np.sqrt(np.mean(((auto.transform(M) - X) / auto.scale_)[100:][mask[100:]] ** 2))
    assert -auto.score(M[100:]) == pytest.approx(error, rel=0.3)
    assert auto.score(M[100:]) == auto.score(M[100:])
    assert np.isnan(auto.score(np.full((2, 20), nan)))


def test_new_rows_in_a_pipeline_are_imputed_one_by_one():
    M, _ = holes(load_breast_cancer().data)
    pipeline = make_pipeline(UVImputer(random_state=0), StandardScaler()).fit(M[:400])
    assert np.isfinite(pipeline.transform(M[400:])).all()
    np.testing.assert_allclose(pipeline.transform(M[400:401]), pipeline.transform(M[400:])[:1], rtol=1e-12)


def test_the_rank_is_at_most_the_matrix():
    imputer = UVImputer(50, random_state=0).fit(np.arange(12.0).reshape(3, 4))
    assert imputer.rank_ == imputer.decomposition_.rank == 3


def test_float32_stays():
    M, _ = holes(load_breast_cancer().data.astype(np.float32))
    assert UVImputer(random_state=0).fit_transform(M).dtype == np.float32


def test_empty_and_constant_columns_are_imputed():
    X = np.array([[1.0, nan, 5.0], [2.0, nan, 5.0], [nan, nan, nan]])
    with pytest.warns(UserWarning, match="no entries in row 2, column 1"):
        filled = UVImputer(random_state=0).fit_transform(X)
    np.testing.assert_allclose(filled[:, 1], 0.0, atol=1e-300)
    np.testing.assert_allclose(filled[2], [1.5, 0.0, 5.0])


def test_rows_without_values_become_the_means():
    M, _ = holes(load_breast_cancer().data[:50, :4])
    imputer = UVImputer(2, random_state=0).fit(M)
    chosen = UVImputer(random_state=0).fit(M).transform([[nan] * 4] * 2)
    np.testing.assert_allclose(chosen, [np.nanmean(M, axis=0)] * 2, rtol=0.05)
    assert (chosen[0] == chosen[1]).all()
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


@pytest.mark.parametrize("rank", [1, "auto"])
def test_indicators_are_those_of_scikit_learn(rank):
    M, _ = holes(load_breast_cancer().data[:60, :5])
    M[:, [1, 3]] = load_breast_cancer().data[:60, [1, 3]]
    new, _ = holes(load_breast_cancer().data[60:80, :5], seed=1)
    imputer = UVImputer(rank, add_indicator=True, random_state=0).fit(M)
    plain = UVImputer(rank, random_state=0).fit(M)
    peer = SimpleImputer(add_indicator=True).fit(M)
    assert (imputer.transform(new)[:, 5:] == peer.transform(new)[:, 5:]).all()
    assert (imputer.transform(new)[:, 5:] == MissingIndicator(error_on_new=False).fit(M).transform(new)).all()
    assert (imputer.transform(new)[:, :5] == plain.transform(new)).all()
    assert imputer.score(new) == plain.score(new)
    for names in (None, list("abcde")):
        assert (imputer.get_feature_names_out(names) == peer.get_feature_names_out(names)).all()
        assert (plain.get_feature_names_out(names) == SimpleImputer().fit(M).get_feature_names_out(names)).all()
    assert imputer.transform(new.astype(np.float32)).dtype == np.float32
    assert plain.indicator_ is None


def test_nothing_missing_needs_no_indicators():
    X = load_breast_cancer().data[:60, :5]
    assert (UVImputer(1, add_indicator=True, random_state=0).fit_transform(X) == X).all()


@pytest.mark.parametrize("rank", [1, "auto"])
@pytest.mark.parametrize(
    ("marker", "dtype"), [(-1, np.float64), (0.1, np.float32), (-999, np.int64), (np.inf, np.float64)]
)
def test_a_number_may_mark_missing_values(rank, marker, dtype):
    M, mask = holes(np.round(load_breast_cancer().data[:60, :5] * 8))
    marked = np.where(mask, marker, M).astype(dtype)
    options = {"add_indicator": True, "random_state": 0}
    imputer = UVImputer(rank, missing_values=marker, **options).fit(marked)
    as_nan = UVImputer(rank, **options).fit(M)
    np.testing.assert_allclose(imputer.transform(marked), as_nan.transform(M), rtol=1e-6)
    assert (imputer.transform(marked)[:, 5:] == mask).all()
    assert imputer.score(marked) == as_nan.score(M)


def test_nan_beside_another_marker_is_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, -1.0, 3.0, 4.0], "b": [2.0, 4.0, nan, 8.0]})
    message = r"^column 1 \('b'\), row 2: the value is NaN, but missing_values is -1; mark missing values with it"
    with pytest.raises(ValueError, match=message):
        UVImputer(1, missing_values=-1).fit(frame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_named_indicators(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"a": [1.0, None, 3.0, 4.0], "b": [2.0, 4.0, 6.0, 8.0], "c": [1.0, 3.0, None, 7.0]})
    imputer = UVImputer(1, add_indicator=True, random_state=0).set_output(transform=library).fit(frame)
    filled = imputer.transform(frame)
    assert type(filled) is frames.DataFrame
    assert list(filled.columns) == ["a", "b", "c", "missingindicator_a", "missingindicator_c"]
    assert list(filled["missingindicator_c"]) == [0.0, 0.0, 1.0, 0.0]
    assert np.isfinite(imputer.score(frame))


def test_missing_as_pandas_says():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int64"), "b": pd.array([2, 4, None, 8], "Int64")})
    imputer = UVImputer(1, missing_values=pd.NA, add_indicator=True, random_state=0)
    filled = imputer.fit_transform(frame)
    assert (filled == UVImputer(1, add_indicator=True, random_state=0).fit_transform(frame)).all()
    assert filled.shape == (4, 4)


def test_clones_with_a_seed_give_the_same_result():
    M, _ = holes(load_breast_cancer().data)
    for imputer in (UVImputer(3, random_state=5), UVImputer(random_state=5)):
        assert (clone(imputer).fit_transform(M) == imputer.fit_transform(M)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 0},
        {"rank": "best"},
        {"shrinkage": -1.0},
        {"method": "svd"},
        {"max_deviation": 0.0},
        {"n_threads": 0},
        {"missing_values": "?"},
        {"add_indicator": "yes"},
    ],
)
def test_invalid_parameters_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        UVImputer(**options).fit([[1.0, 2.0], [3.0, 4.0]])


def with_a_wild_cell(M):
    """Return a copy of the table whose first value in column 4 is a million."""
    wild, at = M.copy(), (int(np.argmin(np.isnan(M[:, 4]))), 4)
    wild[at] = 1e6
    return wild, at


@pytest.mark.parametrize("options", [{}, {"rank": 5}, {"rank": 2, "normalize": "columns", "n_starts": 2}])
def test_a_wild_cell_counts_as_missing_and_stays(options):
    M, _ = holes(load_breast_cancer().data)
    wild, at = with_a_wild_cell(M)
    without = M.copy()
    without[at] = nan
    found, expected = (UVImputer(random_state=0, **options).fit(one) for one in (wild, without))
    filled = found.transform(wild)
    assert filled[at] == 1e6
    filled[at] = expected.transform(without)[at]
    np.testing.assert_array_equal(filled, expected.transform(without))
    assert found.score(wild) == expected.score(without)


def test_a_wild_cell_ruins_neither_its_column_nor_its_row():
    X = load_breast_cancer().data
    M, mask = holes(X)
    wild, (i, j) = with_a_wild_cell(M)

    def errors(fitted_to, **options):
        """Fit to `fitted_to`, impute the table with the wild cell, and return two root mean square errors.

        The first is over the missing cells, the second over row `i` without the wild cell.
        """
        filled = UVImputer(random_state=0, **options).fit(fitted_to).transform(wild)
        squares = ((filled - X) / X.std(axis=0)) ** 2
        return np.sqrt(np.mean(squares[mask])), np.sqrt(np.mean(np.delete(squares[i], j)))

    assert max(errors(wild)) < 0.4
    assert errors(wild, max_deviation=None)[0] > 1e3
    assert errors(M)[1] < 0.4
    assert errors(M, max_deviation=None)[1] > 1e3


def test_limits_of_outliers_agree_with_the_definition():
    x = np.array([0.0, 1.0, 2.0, 3.0, 7.0, nan, 11.0, 1e300])  # row 5 has values in other columns
    X = np.column_stack([x, -x, np.full(8, 5.0), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 4.0]])
    found = UVImputer(1, max_deviation=10.0).fit(X).limits_
    mad = 1.482602218505602
    upper, lower = (
        3.0 + 10.0 * mad * np.median([0.0, 4.0, 8.0, 1e300]),
        3.0 - 10.0 * mad * np.median([3.0, 2.0, 1.0, 0.0]),
    )
    few = 10.0 * mad * 3.0  # most values are 0, so the median is taken over nonzero deviations
    expected = [[lower, -upper, -np.inf, -few], [upper, -lower, np.inf, few]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.isinf(UVImputer(1, max_deviation=None).fit(X).limits_).all()


def test_values_whose_squares_overflow_have_no_neighbors():
    t = np.random.default_rng(0).uniform(-3.0, 3.0, 300)
    X = np.column_stack([np.sin(t), np.cos(2.0 * t), t**2, np.sin(3.0 * t)])
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.15] = np.nan
    imputer = UVImputer(max_deviation=None, random_state=0).fit(X)
    assert imputer.weights_[0] < 1.0
    near, far = imputer.transform([[1e100, np.nan, 1.0, 2.0], [1e200, np.nan, 1.0, 2.0]])
    assert np.isfinite(near).all()
    assert np.isfinite(far).all()


def test_shrinkage_needs_a_rank():
    with pytest.raises(ValueError, match=r"shrinkage=5.0 needs a rank"):
        UVImputer(shrinkage=5.0).fit(np.eye(4))


@pytest.mark.parametrize("rank", ["auto", 2])
def test_results_do_not_depend_on_memory_layout(rank):
    """Data frames of pandas are column-major."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 5))
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    expected = UVImputer(rank, random_state=0).fit(X)
    filled, score = expected.transform(X), expected.score(X)
    assert np.isfinite(score)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    for other in (np.asfortranarray(X), pandas.DataFrame(X), wide, X[::-1][::-1], X.tolist()):
        imputer = UVImputer(rank, random_state=0).fit(other)
        assert np.array_equal(imputer.transform(other), filled)
        assert imputer.score(other) == score
    assert UVImputer(rank, random_state=0).fit(X).score(X.astype(np.float32)) == pytest.approx(score, rel=1e-5)


def test_values_at_the_limits_are_no_outliers():
    X = np.random.default_rng(0).normal(size=(30, 3))
    imputer = UVImputer(1, random_state=0).fit(X)
    low, high = imputer.limits_
    rows = np.vstack([low, high, np.nextafter(low, -np.inf), np.nextafter(high, np.inf)])
    assert np.isnan(imputer._mask_outliers(rows)).tolist() == [[False] * 3] * 2 + [[True] * 3] * 2


def test_a_score_is_minus_the_error_of_hidden_values_in_units_of_the_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) * [1.0, 100.0, 1e-3] + rng.normal(size=(40, 3)) * [0.1, 10.0, 1e-4]
    X[3, 1] = np.nan
    imputer = UVImputer(1, random_state=0).fit(X)
    hidden = []
    estimate = imputer._estimate_missing

    def recorded(values):
        hidden.append(np.isnan(values) & ~np.isnan(X))
        return estimate(values)

    imputer._estimate_missing = recorded
    score = imputer.score(X)
    assert hidden[0].sum() == pytest.approx(0.2 * 119, abs=12)
    errors = (estimate(np.where(hidden[0], np.nan, X)) - X) / imputer.scale_
    assert score == pytest.approx(-np.sqrt(np.mean(errors[hidden[0]] ** 2)))
    imputer._estimate_missing = estimate
    assert np.isnan(imputer.score(np.full((2, 3), np.nan)))
    one = np.array([[np.nan, 5.0, np.nan]])
    assert imputer.score(one) == pytest.approx(-abs(estimate(np.full((1, 3), np.nan))[0, 1] - 5.0) / imputer.scale_[1])
