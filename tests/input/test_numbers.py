"""All interfaces accept the same input as numbers, and treat masked values as missing."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import powerkern as pk
from powerkern import location, outliers, regression, sketch, stats
from powerkern import sklearn as estimators
from powerkern.completion import fit_ratings

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2023, 1, 1), datetime.date(2023, 5, 1)]
TIMES = [datetime.datetime(2020, 1, i, i) for i in (1, 2, 4, 9)]
STEPS = [b - a for a, b in zip(TIMES, [*TIMES[1:], TIMES[0]], strict=True)]
WORDS = ["1", "2", "4", "9"]
HUGE = [10**400, 1, 2, 3]

#: Columns of objects that are not real numbers.
OTHERS = {
    "polars dates": pl.DataFrame({"a": DAYS}),
    "polars times": pl.DataFrame({"a": TIMES}),
    "polars durations": pl.DataFrame({"a": STEPS}),
    "polars categories": pl.DataFrame({"a": WORDS}, schema={"a": pl.Categorical}),
    "polars strings": pl.DataFrame({"a": WORDS}),
    "pandas dates": pd.DataFrame({"a": pd.to_datetime(DAYS)}),
    "pandas durations": pd.DataFrame({"a": pd.to_timedelta(STEPS)}),
    "pandas categories of numbers": pd.DataFrame({"a": pd.Categorical([1.0, 2.0, 4.0, 9.0])}),
    "pandas strings": pd.DataFrame({"a": WORDS}),
    "pandas objects": pd.DataFrame({"a": pd.Series(DAYS, dtype=object)}),
    "dates": np.array(DAYS, dtype="datetime64[D]")[:, None],
    "durations": np.array(STEPS, dtype="timedelta64[h]")[:, None],
    "strings": np.array(WORDS)[:, None],
    "bytes": np.array(WORDS, dtype="S")[:, None],
    "objects": np.array(WORDS, dtype=object)[:, None],
    "list of strings": [[word] for word in WORDS],
    "complex": np.array([1.0 + 1.0j, 2.0, 4.0, 9.0])[:, None],
    "integers of 400 digits": [[number] for number in HUGE],
    "integers of 400 digits in an array": np.array(HUGE, dtype=object)[:, None],
}
ROWS = np.array([[1.0], [2.0], [4.0], [9.0]])
FIT = pk.fit(ROWS)
TRANSFORMER = estimators.PowerTransformer().fit(ROWS)


def series(X):
    """Return the single column of X as a vector: a Series of a data frame, an array or a list."""
    if hasattr(X, "columns"):
        return X["a"]
    return [row[0] for row in X] if isinstance(X, list) else X[:, 0]


READERS = {
    "fit": pk.fit,
    "sample_weight": lambda X: pk.fit(ROWS, sample_weight=series(X)),
    "lmbda": lambda X: pk.fit(np.hstack([ROWS] * 4), lmbda=series(X)),
    "shift": lambda X: pk.fit(np.hstack([ROWS] * 4), "box-cox", shift=series(X)),
    "bounds": lambda X: pk.fit(np.hstack([ROWS] * 4), bounds=(None, series(X))),
    "transform": FIT.transform,
    "fit_chunks": lambda X: sketch.fit_chunks([X]),
    "regression, response": lambda X: regression.fit_regression(series(X), ROWS),
    "regression, covariates": lambda X: regression.fit_regression(ROWS, X),
    "location_scale": location.location_scale,
    "zscore": outliers.zscore,
    "PowerTransformer": lambda X: estimators.PowerTransformer().fit_transform(X),
    "PowerTransformer.partial_fit": lambda X: estimators.PowerTransformer().partial_fit(X),
    "PowerTransformer.transform": TRANSFORMER.transform,
    "PowerTransformer.inverse_transform": TRANSFORMER.inverse_transform,
    "LocationScaler": lambda X: estimators.LocationScaler().fit(X),
    "UVImputer": lambda X: estimators.UVImputer().fit(X),
    "PowerTransformedRegressor": lambda X: estimators.PowerTransformedRegressor().fit(ROWS, series(X)),
    "PowerTransformedRegressor, features": lambda X: estimators.PowerTransformedRegressor().fit(X, ROWS[:, 0]),
    "stats.boxcox": lambda X: stats.boxcox(series(X)),
    "stats.boxcox of lmbda": lambda X: stats.boxcox(ROWS, series(X)),
    "stats.inv_boxcox": lambda X: stats.inv_boxcox(series(X), 0.5),
    "stats.yeojohnson": lambda X: stats.yeojohnson(series(X)),
    "stats.boxcox_llf": lambda X: stats.boxcox_llf(0.5, series(X)),
    "stats.boxcox_guerrero": lambda X: stats.boxcox_guerrero(series(X)),
    "fit_ratings": lambda X: fit_ratings((np.arange(4), np.arange(4), series(X))),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("reader", READERS)
def test_values_that_are_not_numbers_are_rejected(reader, other):
    with pytest.raises((TypeError, ValueError)):
        READERS[reader](OTHERS[other])


@pytest.mark.parametrize("other", ["polars dates", "pandas strings", "pandas objects"])
def test_estimators_name_the_column_as_fit_does(other):
    words = []
    for reader in ("fit", "PowerTransformer"):
        with pytest.raises((TypeError, ValueError)) as caught:
            READERS[reader](OTHERS[other])
        words.append(str(caught.value))
    advice = ("(of a data frame: non_numeric='ignore')", "(variables= names the columns to transform)")
    assert words[0].replace(*advice) == words[1]
    assert words[0].startswith("column 0 ('a')")


def test_columns_of_objects_that_are_numbers_are_for_scikit_learn():
    given = pd.DataFrame({"a": pd.Series([1, 2.0, None, 9], dtype=object)})
    found = estimators.PowerTransformer().fit(given)
    assert found.lambdas_ == estimators.PowerTransformer().fit([[1.0], [2.0], [np.nan], [9.0]]).lambdas_


def test_an_empty_data_frame_is_not_called_sparse():
    with pytest.raises(ValueError, match=r"0 feature\(s\)|0 sample\(s\)|at least one"):
        estimators.PowerTransformer().fit(pd.DataFrame())


# --- masks --------------------------------------------------------------------------------------------


def masked(values, *at):
    given = np.ma.array(values, mask=False)
    given[list(at)] = np.ma.masked
    return given


def test_masked_lambdas_are_fitted():
    X = np.random.default_rng(0).lognormal(size=(50, 3))
    found = pk.fit(X, lmbda=np.ma.array([1.0, 99.0, 3.0], mask=[0, 1, 0])).lmbda
    assert found.tolist() == [1.0, pk.fit(X[:, 1]).lmbda[0], 3.0]


def test_masked_shifts_are_refused():
    with pytest.raises(ValueError, match="shift must be finite"):
        pk.fit(np.ones((4, 2)), "box-cox", shift=np.ma.array([0.0, 1.0], mask=[0, 1]))


def test_masked_values_of_a_series_are_missing():
    x = np.random.default_rng(1).lognormal(size=48)
    hole = x.copy()
    hole[5] = np.nan
    x[5] = 1e6
    assert stats.boxcox_guerrero(masked(x, 5), 12) == stats.boxcox_guerrero(hole, 12)


@pytest.mark.parametrize("transform", [stats.boxcox, stats.yeojohnson, stats.inv_boxcox, stats.inv_yeojohnson])
def test_masked_values_are_not_transformed(transform):
    z = transform(masked([1.0, 2.0, 3.0], 1), 0.5)
    assert np.ma.getmaskarray(z).tolist() == [False, True, False]
    assert np.isnan(z.data).tolist() == [False, True, False]


def test_masked_ratings_are_missing():
    rng = np.random.default_rng(2)
    row, column = np.divmod(np.arange(60), 10)
    value = rng.normal(size=60)
    kept = np.arange(60) != 7
    whole = fit_ratings((row[kept], column[kept], value[kept]), rank=1)
    value[7] = 1e6
    assert fit_ratings((row, column, masked(value, 7)), rank=1).mean == whole.mean


def test_masked_weights_are_refused():
    with pytest.raises(ValueError, match="row 1"):
        pk.fit(ROWS, sample_weight=masked([1.0, 1.0, 1.0, 1.0], 1))
