"""Searches as practitioners set them up: weights, groups, metadata, data frames, missing values, selected columns."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, LeaveOneGroupOut, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from powerkern.sklearn import PowerTransformedClassifier, SupervisedPowerTransformer

QUICK = {"lmbdas": [-1.0, 0.0, 1.0], "max_epochs": 1}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X[:, [1, 4, 9]], y


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# --- weights --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_weights_are_repeated_rows(wine, family):
    X, y = wine
    weight = np.random.default_rng(0).integers(0, 4, size=len(y))
    weight[np.argmax(X[:, 0])] = 0  # rows of no weight do not set the range
    folds = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), weight)

    def splits(of_row):
        return list(LeaveOneGroupOut().split(of_row, groups=of_row))

    options = {"family": family, **QUICK}
    weighted = PowerTransformedClassifier(GaussianNB(), cv=splits(folds), **options).fit(X, y, sample_weight=weight)
    plain = PowerTransformedClassifier(GaussianNB(), cv=splits(folds[repeated]), **options).fit(
        X[repeated], y[repeated]
    )
    np.testing.assert_allclose(weighted.lambdas_, plain.lambdas_, rtol=1e-7)
    np.testing.assert_allclose(weighted.history_.score, plain.history_.score, rtol=1e-12)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), rtol=1e-5, atol=1e-12)


@pytest.mark.slow
def test_equal_weights_change_nothing(wine):
    X, y = wine
    plain = SupervisedPowerTransformer(GaussianNB(), **QUICK).fit(X, y)
    weighted = SupervisedPowerTransformer(GaussianNB(), **QUICK).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(weighted.history_.score, plain.history_.score, rtol=1e-12)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-9)


@pytest.mark.slow
def test_weights_with_missing_values(wine):
    X, y = wine
    X = X.copy()
    X[::7, 0] = np.nan
    weight = np.arange(len(y)) % 3
    model = SupervisedPowerTransformer(
        HistGradientBoostingClassifier(max_iter=2), family="yeo-johnson", cv=2, starts="ones", max_epochs=0
    )
    Z = model.fit(X, y, sample_weight=weight).transform(X)[:, 0]
    seen = ~np.isnan(Z)
    assert np.average(Z[seen], weights=weight[seen]) == pytest.approx(0.0, abs=1e-12)
    assert np.average(Z[seen] ** 2, weights=weight[seen]) == pytest.approx(1.0)


def test_missing_values_of_constant_columns_become_0_as_they_do():
    X = np.random.default_rng(0).lognormal(size=(40, 2))
    X[:, 1], y = 5.0, X[:, 0] > 1.0
    X[::7] = np.nan
    model = SupervisedPowerTransformer(HistGradientBoostingClassifier(max_iter=2), cv=2, starts="ones", max_epochs=0)
    Z = model.fit(X, y).transform(X)
    assert np.isnan(Z[::7, 0]).all()
    assert (Z[:, 1] == 0.0).all()


def test_an_estimator_that_takes_no_weights(wine):
    X, y = wine
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight; choose another"):
        SupervisedPowerTransformer(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))


@pytest.mark.slow
def test_a_scorer_that_takes_no_weights(wine):
    X, y = wine

    def right(estimator, X, y):
        return float((estimator.predict(X) == y).sum())

    weight = 1.0 + np.arange(len(y)) % 2
    model = SupervisedPowerTransformer(GaussianNB(), scoring=right, **QUICK).fit(X, y, sample_weight=weight)
    assert (5.0 * model.history_.score == np.round(5.0 * model.history_.score)).all()


@pytest.mark.parametrize(
    ("weight", "message"), [(np.ones(3), "X has 178 rows"), (np.full(178, -1.0), "row 0: the weight is -1.0")]
)
def test_bad_weights(wine, weight, message):
    with pytest.raises(ValueError, match=message):
        SupervisedPowerTransformer(GaussianNB()).fit(*wine, sample_weight=weight)


# --- groups and metadata --------------------------------------------------------------------------------


def test_groups_go_to_the_splitter(wine):
    X, y = wine
    groups = np.arange(len(y)) % 6
    model = SupervisedPowerTransformer(GaussianNB(), cv=GroupKFold(3), **QUICK).fit(X, y, groups=groups)
    scores = cross_val_score(GaussianNB(), model.transform(X), y, cv=list(GroupKFold(3).split(X, y, groups)))
    assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-12)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        SupervisedPowerTransformer(GaussianNB(), cv=GroupKFold(3)).fit(X, y)


class TakesMarks(ClassifierMixin, BaseEstimator):
    """A classifier whose `fit` requires metadata `mark`, one value per row, equal to the first column."""

    def fit(self, X, y, mark=None):
        assert mark.tolist() == X[:, 0].tolist()
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_other_arguments_go_to_fit_row_by_row():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % 2
    options = {"family": "yeo-johnson", "starts": "ones", "max_epochs": 0}
    mark = SupervisedPowerTransformer(GaussianNB(), **options).fit(X, y).transform(X)[:, 0]
    model = PowerTransformedClassifier(TakesMarks(), **options).fit(X, y, mark=mark)
    assert model.best_score_ == 0.5


@pytest.mark.slow
def test_metadata_routing(wine, routing):
    """An outer pipeline passes on weights for the last step of a pipeline, and groups for the splitter."""
    X, y = wine
    weight, groups = 1.0 + np.arange(len(y)) % 3, np.arange(len(y)) % 5
    steps = make_pipeline(SimpleImputer(), LogisticRegression().set_fit_request(sample_weight=True))
    steps[-1].set_score_request(sample_weight=True)
    model = SupervisedPowerTransformer(steps, cv=GroupKFold(2), **QUICK).set_fit_request(sample_weight=True)
    outer = make_pipeline(model, LogisticRegression().set_fit_request(sample_weight=True))
    outer.fit(X, y, sample_weight=weight, groups=groups)
    inner = outer[0]
    scores = []
    for train, test in GroupKFold(2).split(X, y, groups):
        Z = inner.transform(X)
        fitted = LogisticRegression().fit(Z[train], y[train], sample_weight=weight[train])
        scores.append(fitted.score(Z[test], y[test], sample_weight=weight[test]))
    assert inner.best_score_ == pytest.approx(np.mean(scores), abs=1e-12)


def test_weights_that_the_estimator_does_not_request(wine, routing):
    X, y = wine
    estimator = GaussianNB().set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
    model = SupervisedPowerTransformer(estimator, **QUICK).set_fit_request(sample_weight=True)
    model.fit(X, y, sample_weight=1.0 + np.arange(len(y)) % 2)
    assert model.best_score_ == pytest.approx(cross_val_score(GaussianNB(), model.transform(X), y).mean(), abs=1e-12)


# --- data frames, missing values ------------------------------------------------------------------------


def frames(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=["malic", "magnesium", "color"])


@pytest.mark.slow
def test_steps_that_choose_columns_by_name(wine):
    X, y = frames(wine[0]), wine[1]
    steps = make_pipeline(make_column_transformer(("passthrough", ["malic", "color"])), KNeighborsClassifier())
    by_name = PowerTransformedClassifier(steps, **QUICK).fit(X, y)
    by_position = PowerTransformedClassifier(KNeighborsClassifier(), **QUICK).fit(wine[0][:, [0, 2]], y)
    assert by_name.best_score_ == by_position.best_score_
    assert by_name.predict(X).tolist() == by_position.predict(wine[0][:, [0, 2]]).tolist()
    outer = make_pipeline(SupervisedPowerTransformer(steps, **QUICK).set_output(transform="pandas"), steps)
    assert outer.fit(X, y).predict(X).tolist() == by_name.predict(X).tolist()


@pytest.mark.slow
def test_positions_count_constant_columns(wine):
    X, y = wine
    padded = np.insert(X, 1, 5.0, axis=1)
    steps = make_pipeline(ColumnTransformer([("last", "passthrough", [3])]), KNeighborsClassifier())
    alone = SupervisedPowerTransformer(KNeighborsClassifier(), **QUICK).fit(X[:, [2]], y)
    model = SupervisedPowerTransformer(steps, **QUICK).fit(padded, y)
    assert model.best_score_ == alone.best_score_
    assert set(model.history_.column) == {-1, 0, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_imputers_in_the_pipeline(wine, library):
    X, y = wine[0].copy(), wine[1]
    X[::9, 1] = np.nan
    pytest.importorskip(library)
    given = X if library == "numpy" else frames(X)
    if library == "polars":
        import polars

        given = polars.from_pandas(given)
    steps = make_pipeline(SimpleImputer(strategy="median"), KNeighborsClassifier())
    model = PowerTransformedClassifier(steps, **QUICK).fit(given, y)
    Z = model.transform(given)
    assert np.array_equal(np.isnan(Z), np.isnan(X))
    assert model.best_score_ == pytest.approx(cross_val_score(steps, Z, y).mean(), abs=1e-12)
    assert model.predict(given).tolist() == steps.fit(Z, y).predict(Z).tolist()


def test_an_imputer_in_a_search_for_the_imputer(wine):
    X, y = wine[0].copy(), wine[1]
    X[::9, 1] = np.nan
    tuned = GridSearchCV(make_pipeline(SimpleImputer(), GaussianNB()), {"gaussiannb__var_smoothing": [1e-9, 0.1]}, cv=2)
    model = SupervisedPowerTransformer(tuned, cv=2, starts="ones", max_epochs=0).fit(X, y)
    assert np.isnan(model.transform(X)).sum() == 20
    with pytest.raises(ValueError, match="contains NaN"):
        SupervisedPowerTransformer(make_pipeline(GaussianNB()), cv=2, max_epochs=0).fit(X, y)


# --- some columns only ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_variables_by_name_beside_columns_of_words(wine):
    pandas = pytest.importorskip("pandas")
    X, y = frames(wine[0]), wine[1]
    X.insert(1, "region", np.where(np.arange(len(y)) % 2, "north", "south"))
    X.index = np.arange(len(y)) + 100
    steps = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough"), KNeighborsClassifier()
    )
    model = PowerTransformedClassifier(steps, variables=["color", "malic"], **QUICK).fit(X, y)
    Z = model.transform(X)
    assert isinstance(Z, pandas.DataFrame)
    assert list(Z.columns) == list(X.columns)
    pandas.testing.assert_frame_equal(Z[["region", "magnesium"]], X[["region", "magnesium"]])
    alone = SupervisedPowerTransformer(GaussianNB(), starts=[model.lambdas_[[3, 0]]], max_epochs=0)
    np.testing.assert_allclose(
        Z[["color", "malic"]], alone.fit(X[["color", "malic"]], y).transform(X[["color", "malic"]])
    )
    assert np.isnan(model.lambdas_).tolist() == [False, True, True, False]
    assert set(model.history_.column) == {-1, 0, 3}
    assert model.best_score_ == pytest.approx(cross_val_score(steps, Z, y).mean(), abs=1e-12)
    back = model.inverse_transform(Z)
    pandas.testing.assert_frame_equal(back, X)
    assert model.predict(X.iloc[:5]).shape == (5,)


@pytest.mark.slow
def test_variables_of_polars(wine):
    polars = pytest.importorskip("polars")
    X, y = wine
    given = polars.DataFrame({"a": X[:, 0], "word": ["x", "y"] * 89, "b": X[:, 1]})
    steps = make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["word"]), remainder="passthrough"), KNeighborsClassifier()
    )
    Z = SupervisedPowerTransformer(steps, variables=["a", "b"], **QUICK).fit(given, y).transform(given)
    assert Z.columns == ["a", "word", "b"]
    assert Z["word"].to_list() == given["word"].to_list()
    assert abs(Z["a"].mean()) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("variables", [[2, 0], [-1, 0], [True, False, True], np.array([0, 2])])
def test_variables_of_arrays(wine, variables):
    X, y = wine
    model = SupervisedPowerTransformer(KNeighborsClassifier(), variables=variables, **QUICK).fit(X, y)
    Z = model.transform(X)
    np.testing.assert_array_equal(Z[:, 1], X[:, 1])
    np.testing.assert_allclose(Z[:, [0, 2]].std(axis=0), 1.0)
    np.testing.assert_allclose(model.inverse_transform(Z), X, rtol=1e-9)
    scores = cross_val_score(KNeighborsClassifier(), Z, y)
    assert model.best_score_ == pytest.approx(scores.mean(), abs=1e-12)


@pytest.mark.slow
def test_all_variables_in_another_order(wine):
    X, y = wine
    model = SupervisedPowerTransformer(KNeighborsClassifier(), variables=[2, 1, 0], **QUICK).fit(X, y)
    Z = model.transform(X)
    assert all(np.corrcoef(X[:, j], Z[:, j])[0, 1] > 0.8 for j in range(3))
    np.testing.assert_allclose(model.inverse_transform(Z), X, rtol=1e-9)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (["malic"], "there is no column 'malic'; the columns have no names"),
        ([3], "there is no column 3; there are 3 columns"),
        ([0, 0], "one or more columns, each once"),
        ([], "one or more columns, each once"),
    ],
)
def test_bad_variables(wine, variables, message):
    with pytest.raises(ValueError, match=message):
        SupervisedPowerTransformer(GaussianNB(), variables=variables).fit(*wine)


def test_variables_that_are_not_there(wine):
    with pytest.raises(ValueError, match=r"there is no column 'hue'; the columns are .*color"):
        SupervisedPowerTransformer(GaussianNB(), variables=["hue"]).fit(frames(wine[0]), wine[1])


def test_offending_values_are_placed_in_the_whole_table(wine):
    X, y = frames(wine[0]), wine[1]
    X.loc[4, "color"] = np.inf
    with pytest.raises(ValueError, match=r"^column 2 \('color'\), row 4: the value is inf"):
        SupervisedPowerTransformer(GaussianNB(), variables=["color"]).fit(X, y)


# --- bounds, limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["iterative", "spherical", "diagonal", "grid"])
def test_bounds(wine, search):
    X, y = wine[0][:, :2], wine[1]
    bounds = (-1.5, [0.5, 2.5])
    model = SupervisedPowerTransformer(GaussianNB(), search=search, bounds=bounds, restart_every=1, random_state=0).fit(
        X, y
    )
    assert (model.lambdas_ >= -1.5).all()
    assert (model.lambdas_ <= [0.5, 2.5]).all()
    if search == "grid":
        assert [axis.tolist() for axis in model.grid_lambdas_] == [[-1.5, -1, 0, 0.5], [-1.5, -1, 0, 1, 2, 2.5]]
        assert model.grid_scores_.shape == (4, 6)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_values_far_beyond_count_as_a_range_beyond(wine, family):
    X, y = wine
    model = SupervisedPowerTransformer(GaussianNB(), family=family, starts=[-5.0, 1.0, 5.0], max_epochs=0).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    ends = np.vstack([low - 0.99 * (high - low), high + 0.99 * (high - low)])
    np.testing.assert_allclose(model.transform([[-1e300] * 3, [1e300] * 3]), model.transform(ends), rtol=1e-9)
    assert abs(model.transform(ends)[1]).max() < 1e3


# --- time, progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["iterative", "spherical", "diagonal", "grid"])
def test_a_search_ends_with_its_time(wine, search):
    X, y = wine
    model = SupervisedPowerTransformer(GaussianNB(), search=search, max_time=0.0).fit(X, y)
    assert model.timed_out_
    assert model.best_score_ == pytest.approx(cross_val_score(GaussianNB(), model.transform(X), y).mean(), abs=1e-12)
    assert not SupervisedPowerTransformer(GaussianNB(), max_time=1e6, **QUICK).fit(X, y).timed_out_


def test_epochs_that_gain_too_little_end_the_search():
    X, y = load_wine(return_X_y=True)
    every = SupervisedPowerTransformer(GaussianNB(), starts="ones").fit(X, y)
    fewer = SupervisedPowerTransformer(GaussianNB(), starts="ones", tol=0.5).fit(X, y)
    assert every.history_.epoch.max() > fewer.history_.epoch.max() == 0


def test_progress(wine, capsys):
    pytest.importorskip("tqdm")
    import powerkern._engine.threads as threads

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_PROGRESS_DELAY", 0.0)
        SupervisedPowerTransformer(GaussianNB(), progress=True, search="spherical").fit(*wine)
    assert "/14" in capsys.readouterr().err


def test_a_regressor_by_weighted_rows():
    X, y = load_diabetes(return_X_y=True)
    weight = np.arange(len(y)) % 2
    model = SupervisedPowerTransformer(Ridge(), family="yeo-johnson", search="spherical", cv="train")
    Z = model.fit(X, y, sample_weight=weight).transform(X)
    np.testing.assert_allclose(Z, model.fit(X[1::2], y[1::2]).transform(X), rtol=1e-9, atol=1e-12)
