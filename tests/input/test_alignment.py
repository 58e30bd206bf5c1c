"""Arguments with one value per row or per column: aligned by label, refused by name, or taken by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import powerkern as pk
import powerkern.xarray as pkx
from powerkern.completion import fit_ratings
from powerkern.joint import fit_joint
from powerkern.location import location_scale
from powerkern.outliers import brier_score
from powerkern.regression import fit_regression
from powerkern.sketch import extend, finish, fit_chunks

N = 60
RNG = np.random.default_rng(20)
VALUES = np.add(RNG.lognormal(size=(N, 2)), [0.1, 2.0])
#: Distinct labels whose order is neither ascending nor the order of the rows.
LABELS = RNG.permutation(np.arange(100, 100 + N))
FRAME = pd.DataFrame(VALUES, index=LABELS, columns=["a", "b"])
SHUFFLE = RNG.permutation(N)
WEIGHTS = RNG.integers(1, 6, N).astype(float)
CODES = np.repeat([3, 1, 2], N // 3)[RNG.permutation(N)]
COVARIATE = np.log(VALUES[:, 0]) + RNG.normal(size=N)
TRUTH = RNG.integers(0, 2, N).astype(float)


def brier(X: Any, truth: Any) -> Any:
    return brier_score(truth, (X[:, 0] if isinstance(X, np.ndarray) else X["a"]) * 0.01)


def ratings(X: Any, weight: Any) -> Any:
    rows = CODES if isinstance(X, np.ndarray) else pd.Series(CODES, index=X.index)
    model = fit_ratings((rows, np.arange(N) % 5, VALUES[:, 0]), 1, shrinkage=0.5, weight=weight, random_state=0)
    return model.predict([1, 2, 3], [0, 1, 2])


def with_joint(X: Any, covariate: Any) -> Any:
    fit = fit_joint(X, covariate, "box-cox")
    return np.hstack(
        [fit.lmbda, np.asarray(fit.mahalanobis(X, covariate)), fit.confint(X, covariate, method="wald").low]
    )


def with_regression(X: Any, covariate: Any) -> Any:
    fit = fit_regression(X, covariate)
    return np.hstack([fit.lmbda, np.asarray(fit.residuals(X, covariate)).ravel()])


def with_groups(X: Any, groups: Any) -> Any:
    fit = pk.fit(X, "box-cox", groups=groups)
    z = np.asarray(fit.transform(X, groups=groups))
    back = np.asarray(fit.inverse_transform(fit.transform(X, groups=groups), groups=groups))
    return np.vstack([fit.lmbda, z, back])


def group_means(X: Any, groups: Any) -> Any:
    fit = pk.fit(VALUES, "box-cox", groups=CODES)
    return np.asarray(fit.inverse_mean(X, 0.1, groups))


#: Arguments with one value per row: name in messages, values, and a figure that depends on their order.
ROWS: dict[str, tuple[str, Any, Callable[[Any, Any], Any]]] = {
    "fit": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(X, "box-cox", sample_weight=w).lmbda),
    "robust": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(X, "box-cox", "rewml", sample_weight=w).lmbda),
    "confint": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(VALUES, "box-cox").confint(X, sample_weight=w)[0]),
    "profile": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(VALUES, "box-cox").profile([0.1], X, sample_weight=w)),
    "lr_test": (
        "sample_weight",
        WEIGHTS,
        lambda X, w: pk.fit(VALUES, "box-cox").lr_test(0.1, X, sample_weight=w).pvalue,
    ),
    "location": ("sample_weight", WEIGHTS, lambda X, w: location_scale(X, "huber", sample_weight=w).loc),
    "joint weights": ("sample_weight", WEIGHTS, lambda X, w: fit_joint(X, family="box-cox", sample_weight=w).lmbda),
    "regression weights": (
        "sample_weight",
        WEIGHTS,
        lambda X, w: fit_regression(X, COVARIATE, sample_weight=w).lmbda,
    ),
    "chunks": ("sample_weight", WEIGHTS, lambda X, w: fit_chunks([X], "box-cox", sample_weight=[w]).lmbda),
    "extend": ("sample_weight", WEIGHTS, lambda X, w: finish(extend(None, X, "box-cox", sample_weight=w)).lmbda),
    "groups": ("groups", CODES, with_groups),
    "inverse_mean": ("groups", CODES, group_means),
    "joint": ("covariates", COVARIATE, with_joint),
    "regression": ("covariates", COVARIATE, with_regression),
    "ratings": ("weight", WEIGHTS, ratings),
    "scores": ("y_true", TRUTH, brier),
}


@pytest.mark.parametrize("argument", ROWS)
class TestRows:
    def test_the_same_labels_in_another_order_are_aligned(self, argument: str) -> None:
        _, values, figure = ROWS[argument]
        right = np.asarray(figure(VALUES, values))
        shuffled = pd.Series(values, index=LABELS).iloc[SHUFFLE]
        np.testing.assert_array_equal(figure(FRAME, shuffled), right)
        assert not np.array_equal(figure(FRAME, shuffled.to_numpy()), right)  # the figure depends on the order

    def test_values_without_labels_go_by_position(self, argument: str) -> None:
        _, values, figure = ROWS[argument]
        right = np.asarray(figure(VALUES, values))
        for container in (np.asarray, list, pl.Series, pd.array):
            np.testing.assert_array_equal(figure(FRAME, container(values)), right)
        np.testing.assert_array_equal(figure(VALUES, pd.Series(values, index=LABELS)), right)

    def test_other_labels_are_refused_by_name(self, argument: str) -> None:
        what, values, figure = ROWS[argument]
        other = pd.Series(values, index=np.where(LABELS == 117, 7, LABELS))
        with pytest.raises(ValueError, match=rf"{what} has no row labelled 117, .*{what}\.to_numpy\(\)"):
            figure(FRAME, other)
        with pytest.raises(ValueError, match=rf"{what} has no row labelled \d+"):
            figure(FRAME, pd.Series(values))  # nobody chose these labels, but pandas would fill rows with NaN

    def test_more_labels_are_refused_with_the_remedy(self, argument: str) -> None:
        what, values, figure = ROWS[argument]
        more = pd.Series(np.append(values, values[:1]), index=np.append(LABELS, 7))
        with pytest.raises(ValueError, match=rf"{what} has {N + 1} rows, .* has {N}; .*{what}\.loc\["):
            figure(FRAME, more)

    def test_repeated_labels_must_be_in_one_order(self, argument: str) -> None:
        _, values, figure = ROWS[argument]
        right = np.asarray(figure(VALUES, values))
        repeated = FRAME.set_axis(np.arange(N) // 2, axis=0)
        np.testing.assert_array_equal(figure(repeated, pd.Series(values, index=repeated.index)), right)
        with pytest.raises(ValueError, match=r"has the row label \d+ more than once, .*in the same order"):
            figure(repeated, pd.Series(values, index=repeated.index).iloc[::-1])


def test_labels_of_several_levels_and_of_time() -> None:
    right = pk.fit(VALUES, "box-cox", sample_weight=WEIGHTS).lmbda
    pairs = pd.MultiIndex.from_arrays([np.arange(N) // 7, LABELS], names=["site", "id"])
    days = pd.date_range("2024-01-01", periods=N, tz="Europe/Berlin")
    for index in (pairs, days, pd.CategoricalIndex(LABELS.astype(str)), pd.Index(LABELS / 8)):
        frame, weights = FRAME.set_axis(index, axis=0), pd.Series(WEIGHTS, index=index)
        for given in (weights, weights.iloc[SHUFFLE]):
            np.testing.assert_array_equal(pk.fit(frame, "box-cox", sample_weight=given).lmbda, right)


def test_row_labels_beyond_2_53_are_exact() -> None:
    labels = 2**60 + np.arange(N)
    weights = pd.Series(WEIGHTS, index=labels.astype(np.uint64)).iloc[SHUFFLE]
    found = pk.fit(FRAME.set_axis(labels, axis=0), "box-cox", sample_weight=weights).lmbda
    np.testing.assert_array_equal(found, pk.fit(VALUES, "box-cox", sample_weight=WEIGHTS).lmbda)


def test_a_frame_of_covariates_is_aligned_in_formulas_too() -> None:
    pytest.importorskip("formulaic")
    frame = pd.DataFrame({"x": COVARIATE, "g": CODES}, index=LABELS)
    right = fit_regression(VALUES, frame, formula="~ x + C(g)")
    found = fit_regression(FRAME, frame.iloc[SHUFFLE], formula="~ x + C(g)")
    np.testing.assert_array_equal(found.lmbda, right.lmbda)
    np.testing.assert_array_equal(found.residuals(FRAME, frame.iloc[SHUFFLE]), right.residuals(VALUES, frame))


def test_keys_of_several_groups_are_aligned() -> None:
    keys = pd.DataFrame({"one": CODES, "two": np.arange(N) % 2}, index=LABELS)
    right = pk.fit(VALUES, groups=keys)
    np.testing.assert_array_equal(pk.fit(FRAME, groups=keys.iloc[SHUFFLE]).lmbda, right.lmbda)


def test_triplets_of_series_are_aligned() -> None:
    rows, columns, values = (pd.Series(each, index=LABELS) for each in (CODES, np.arange(N) % 5, VALUES[:, 0]))
    options: dict[str, Any] = {"rank": 1, "shrinkage": 0.5, "random_state": 0}
    right = fit_ratings((rows, columns, values), **options).predict([1, 2], [3, 4])
    found = fit_ratings((rows, columns.iloc[SHUFFLE], values.iloc[::-1]), **options).predict([1, 2], [3, 4])
    np.testing.assert_array_equal(found, right)
    with pytest.raises(ValueError, match="the values has no row labelled"):
        fit_ratings((rows, columns, values.reset_index(drop=True)), **options)


def test_weights_of_labelled_arrays_are_aligned() -> None:
    x = xr.DataArray(VALUES, dims=("time", "lat"), coords={"time": LABELS, "lat": [10.0, 20.0]})
    weights = xr.DataArray(WEIGHTS, dims="time", coords={"time": LABELS})
    right = pkx.fit(x, "box-cox", dim="time", sample_weight=weights).lmbda
    np.testing.assert_array_equal(pkx.fit(x, "box-cox", dim="time", sample_weight=weights[SHUFFLE]).lmbda, right)
    shift = xr.DataArray([0.5, 1.0], dims="lat", coords={"lat": [10.0, 20.0]})
    right = pkx.fit(x, "box-cox", dim="time", shift=shift).lmbda
    np.testing.assert_array_equal(pkx.fit(x, "box-cox", dim="time", shift=shift[::-1]).lmbda, right)
    with pytest.raises(ValueError, match=r"sample_weight has no row labelled"):
        pkx.fit(x, dim="time", sample_weight=weights.assign_coords(time=np.arange(N)))


def test_labelled_arrays_are_aligned_with_frames() -> None:
    weights = xr.DataArray(WEIGHTS, dims="time", coords={"time": LABELS})[SHUFFLE]
    right = pk.fit(VALUES, "box-cox", sample_weight=WEIGHTS).lmbda
    np.testing.assert_array_equal(pk.fit(FRAME, "box-cox", sample_weight=weights).lmbda, right)
