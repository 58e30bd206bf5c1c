"""Arguments with one value per row or per column: aligned by label, matched by position, or rejected."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import powerkern as pk
import powerkern.xarray as pkx
from powerkern._input.arguments import column_positions
from powerkern.cellwise import wrap, wrapped_pca
from powerkern.completion import fit_ratings, uv_decompose
from powerkern.joint import fit_joint
from powerkern.location import location_scale
from powerkern.outliers import brier_score, fit_scaling, ks_distance, mahalanobis, outlier_probability, skill_score
from powerkern.regression import fit_regression
from powerkern.sketch import Range, extend, finish, fit_chunks, range_of
from powerkern.sklearn import GroupedPowerTransformer, PowerTransformer

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
    model = fit_ratings((rows, np.arange(N) % 5, VALUES[:, 0]), 1, shrinkage=0.5, weight=weight, rng=0)
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


#: Arguments with one value per row: name in messages, values, and a function whose result depends on their order.
ROWS: dict[str, tuple[str, Any, Callable[[Any, Any], Any]]] = {
    "fit": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(X, "box-cox", sample_weight=w).lmbda),
    "robust": ("sample_weight", WEIGHTS, lambda X, w: pk.fit(X, "box-cox", "robust", sample_weight=w).lmbda),
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
        assert not np.array_equal(figure(FRAME, shuffled.to_numpy()), right)  # the result depends on the order

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
            figure(FRAME, pd.Series(values))  # the labels are default ones, but aligning by them would give rows of NaN

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


def test_labels_of_several_levels_and_of_time_are_aligned() -> None:
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
    options: dict[str, Any] = {"rank": 1, "shrinkage": 0.5, "rng": 0}
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


# --- columns ----------------------------------------------------------------------------------------------

#: Labels of two columns, by type.
COLUMN_LABELS: dict[str, Any] = {
    "text": ["a", "b"],
    "default": [0, 1],
    "integers": [10, 20],
    "reversed": [1, 0],
    "levels": pd.MultiIndex.from_tuples([("a", "w"), ("b", "u")], names=["kind", "unit"]),
    "categories": pd.CategoricalIndex(["x", "y"], name="kind"),
    "dates": pd.to_datetime(["2024-01-01", "2024-02-01"]),
    "mixed": ["a", 2.5],
}


def named(labels: Any) -> pd.DataFrame:
    return pd.DataFrame(VALUES, columns=COLUMN_LABELS[labels])


#: Arguments with one value per column: name in messages, two values, and a function whose result depends on order.
COLUMNS: dict[str, tuple[str, Any, Callable[[Any, Any], Any]]] = {
    "lmbda": ("lmbda", [0.2, 0.9], lambda X, v: pk.fit(X, "box-cox", lmbda=v).nll),
    "shift": ("shift", [0.5, 3.0], lambda X, v: pk.fit(X, "box-cox", shift=v).lmbda),
    "bounds": ("the lower end of bounds", [0.5, 1.5], lambda X, v: pk.fit(X, "box-cox", bounds=(v, None)).lmbda),
    "upper": ("the upper end of bounds", [-1.5, -2.5], lambda X, v: pk.fit(X, "box-cox", bounds=(None, v)).lmbda),
    "robust": (
        "the lower end of bounds",
        [0.5, 1.5],
        lambda X, v: pk.fit(X, "box-cox", "rewml", bounds=(v, None)).lmbda,
    ),
    "limits": ("the lower end of limits", [0.5, 1.0], lambda X, v: pk.fit(X, "box-cox", limits=(v, None)).lmbda),
    "upper limits": (
        "the upper end of limits",
        [2.7, 4.0],
        lambda X, v: pk.fit(X, "box-cox", limits=(None, v), groups=CODES).lmbda,
    ),
    "expected": (
        "the lower end of limits",
        [0.5, 1.0],
        lambda X, v: pk.fit(X, "box-cox").expected(X, limits=(v, None)),
    ),
    "draw": (
        "the upper end of limits",
        [1.5, 3.0],
        lambda X, v: pk.fit(X, "box-cox").draw(X, limits=(None, v), rng=0),
    ),
    "fraction_below": ("limit", [0.5, 1.0], lambda X, v: pk.fit(X, "box-cox").fraction_below(v)),
    "lr_test": ("lmbda0", [0.2, 0.9], lambda X, v: pk.fit(X, "box-cox").lr_test(v).pvalue),
    "joint": ("shift", [0.5, 3.0], lambda X, v: fit_joint(X, family="box-cox", shift=v).lmbda),
    "joint lr_test": ("lmbda0", [0.2, 0.9], lambda X, v: fit_joint(X, family="box-cox").lr_test(v).statistic),
    "regression": ("lmbda", [0.2, 0.9], lambda X, v: fit_regression(X, COVARIATE, lmbda=v).nll),
    "chunks": ("shift", [0.5, 3.0], lambda X, v: fit_chunks([X], "box-cox", shift=v).lmbda),
    "chunks lmbda": ("lmbda", [0.2, 0.9], lambda X, v: fit_chunks([X], "box-cox", lmbda=v).nll),
    "chunks bounds": (
        "the lower end of bounds",
        [0.5, 1.5],
        lambda X, v: fit_chunks([X], "box-cox", bounds=(v, None)).lmbda,
    ),
    "mahalanobis": ("loc", [0.2, 0.9], lambda X, v: np.asarray(mahalanobis(X, loc=v))),
    "scaling": (
        "center",
        [0.2, 0.9],
        lambda X, v: np.asarray(outlier_probability(X, center=v, scale="nmad", method="gaussian")),
    ),
    "ks_distance": ("scale", [0.2, 0.9], lambda X, v: ks_distance(X, loc=1.0, scale=v)),
    "wrap": ("loc", [0.2, 0.9], lambda X, v: np.asarray(wrap(X, loc=v, scale=1.0).values)),
    "inverse_mean": ("mean", [0.2, 0.9], lambda X, v: pk.fit(X, "box-cox").inverse_mean(v, 0.1)),
    "inverse_quantile": ("sd", [0.2, 0.9], lambda X, v: pk.fit(X, "box-cox").inverse_quantile(0.1, v, 0.3)),
}


@pytest.mark.parametrize("argument", COLUMNS)
class TestColumns:
    def test_the_same_labels_in_another_order_are_aligned(self, argument: str) -> None:
        _, values, figure = COLUMNS[argument]
        right = np.asarray(figure(VALUES, np.array(values)))
        assert not np.allclose(figure(VALUES, np.array(values[::-1])), right, equal_nan=True)
        for labels in COLUMN_LABELS:
            X = named(labels)
            for given in (pd.Series(values, index=X.columns), pd.Series(values, index=X.columns)[::-1]):
                np.testing.assert_array_equal(np.asarray(figure(X, given)), right)

    def test_values_without_labels_go_by_position(self, argument: str) -> None:
        _, values, figure = COLUMNS[argument]
        right = np.asarray(figure(VALUES, np.array(values)))
        for given in (values, tuple(values), pl.Series(values), pd.array(values), pd.Series(values)):
            np.testing.assert_array_equal(np.asarray(figure(FRAME, given)), right)
        np.testing.assert_array_equal(np.asarray(figure(VALUES, pd.Series(values, index=["b", "a"]))), right)

    def test_other_labels_are_refused_by_name(self, argument: str) -> None:
        what, values, figure = COLUMNS[argument]
        with pytest.raises(ValueError, match=rf"{what} has the label 'c', and the columns are 'a', 'b'"):
            figure(FRAME, pd.Series(values, index=["a", "c"]))
        with pytest.raises(ValueError, match=rf"{what} has the label 5, and the columns are 10, 20"):
            figure(named("integers"), pd.Series(values, index=[10, 5]))
        with pytest.raises(ValueError, match=rf"{what} has labels that occur more than once"):
            figure(FRAME, pd.Series(values, index=["a", "a"]))


def test_a_covariance_is_aligned_along_both_axes() -> None:
    cov = pd.DataFrame([[1.0, 0.3], [0.3, 9.0]], index=["a", "b"], columns=["a", "b"])
    right = mahalanobis(VALUES, cov=cov.to_numpy())
    for given in (cov, cov.iloc[::-1, ::-1], cov.iloc[::-1], cov.to_numpy()):
        np.testing.assert_array_equal(mahalanobis(FRAME, cov=given), right)
    with pytest.raises(ValueError, match="cov has the label 'z'"):
        mahalanobis(FRAME, cov=cov.rename(columns={"b": "z"}))


# --- the columns of later data ------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", COLUMN_LABELS)
class TestLaterData:
    def test_columns_in_another_order_are_found_by_label(self, labels: str) -> None:
        X = named(labels)
        turned = X.iloc[:, ::-1]
        plain, fit = pk.fit(VALUES, "box-cox"), pk.fit(X, "box-cox")
        z = fit.transform(turned)
        assert z.columns.equals(turned.columns)
        np.testing.assert_array_equal(z.to_numpy(), plain.transform(VALUES)[:, ::-1])
        np.testing.assert_array_equal(
            fit.inverse_transform(z), plain.inverse_transform(plain.transform(VALUES))[:, ::-1]
        )
        np.testing.assert_array_equal(np.asarray(fit.confint(turned)), np.asarray(plain.confint()))
        np.testing.assert_array_equal(fit.profile([0.3], turned), plain.profile([0.3]))
        np.testing.assert_array_equal(np.asarray(fit.transform(VALUES)), plain.transform(VALUES))

    def test_grouped_joint_and_regression_fits_find_columns_by_label(self, labels: str) -> None:
        X = named(labels)
        turned, groups = X.iloc[:, ::-1], CODES
        grouped, plain = pk.fit(X, "box-cox", groups=groups), pk.fit(VALUES, "box-cox", groups=groups)
        np.testing.assert_array_equal(
            grouped.transform(turned, groups=groups).to_numpy(), plain.transform(VALUES, groups=groups)[:, ::-1]
        )
        joint, right = fit_joint(X, family="box-cox"), fit_joint(VALUES, family="box-cox")
        np.testing.assert_array_equal(joint.mahalanobis(turned), right.mahalanobis(VALUES))
        np.testing.assert_array_equal(np.asarray(joint.confint(turned)), np.asarray(right.confint(VALUES)))
        regression = fit_regression(X, COVARIATE)
        residuals = fit_regression(VALUES, COVARIATE).residuals(VALUES, COVARIATE)
        np.testing.assert_array_equal(regression.residuals(turned, COVARIATE), residuals)

    def test_detectors_and_wrapping_find_columns_by_label(self, labels: str) -> None:
        X = named(labels)
        turned = X.iloc[:, ::-1]
        wrapped = wrap(X)
        np.testing.assert_array_equal(np.asarray(wrapped.transform(turned))[:, ::-1], np.asarray(wrap(VALUES).values))
        scaling = fit_scaling(X)
        np.testing.assert_array_equal(
            np.asarray(scaling.probability(turned))[:, ::-1],
            np.asarray(fit_scaling(VALUES).probability(VALUES)),
        )

    def test_labels_keep_their_type(self, labels: str) -> None:
        X = named(labels)
        fit = pk.fit(X, "box-cox")
        for one in (fit, pk.PowerFit.from_json(fit.to_json()), pickle.loads(pickle.dumps(fit))):
            assert one.column_names == X.columns.tolist()
            assert [type(label) for label in one.column_names] == [type(label) for label in X.columns.tolist()]
            assert list(one) == X.columns.tolist()
            assert one.lambdas.index.names == X.columns.names
            for j, label in enumerate(X.columns):
                assert one.lambdas[label] == one[label].lmbda[0] == fit.lmbda[j]
            assert X[one.column_names].equals(X)
            np.testing.assert_array_equal((X * one.lambdas)[X.columns.tolist()], VALUES * fit.lmbda)

    def test_grouped_labels_keep_their_type(self, labels: str) -> None:
        X = named(labels)
        fit = pk.fit(X, "box-cox", groups=CODES)
        for one in (fit, pk.GroupedFit.from_json(fit.to_json())):
            for j, label in enumerate(X.columns):
                np.testing.assert_array_equal(one.lambdas[label], fit.lmbda[:, j])
                assert one[2].lambdas[label] == fit.lmbda[1, j]
            assert one.lambdas.columns.names == X.columns.names
            assert list(one.lambdas.index) == [1, 2, 3]

    def test_chunks_keep_labels(self, labels: str) -> None:
        X = named(labels)
        assert fit_chunks([X[:30], X[30:]]).column_names == X.columns.tolist()
        summary = range_of(X, "yeo-johnson")
        assert Range.from_bytes(summary.to_bytes()).column_names == X.columns.tolist()


def test_default_labels_are_not_names_if_other_labels_are_text() -> None:
    right = pk.fit(VALUES).transform(VALUES)
    for fitted, later in ((named("text"), named("default")), (named("default"), named("text"))):
        np.testing.assert_array_equal(pk.fit(fitted).transform(later), right)


@pytest.mark.parametrize("fitted, later", [("default", "integers"), ("integers", "default"), ("text", "levels")])
def test_other_column_labels_are_refused_by_name(fitted: str, later: str) -> None:
    fit, X = pk.fit(named(fitted)), named(later)
    first = named(fitted).columns.tolist()[0]
    with pytest.raises(ValueError, match=f"X lacks {first!r}, .* of the columns that were fitted"):
        fit.transform(X)


def test_whole_numbers_are_labels_where_labels_are_whole_numbers() -> None:
    fit = pk.fit(named("integers"))
    assert fit[20].column_names == [20]
    with pytest.raises(KeyError, match="there is no column 0; the columns are 10, 20"):
        fit[0]
    assert pk.fit(named("reversed"))[0].lmbda == pk.fit(named("reversed")).lmbda[1]
    assert pk.fit(named("text"))[0].column_names == ["a"]
    assert pk.fit(named("default"))[-1].column_names == [1]


def test_labels_that_no_file_keeps_are_refused_when_saving() -> None:
    fit = pk.fit(pd.DataFrame(VALUES, columns=pd.period_range("2024-01", periods=2, freq="M")))
    with pytest.raises(TypeError, match=r"the column label Period\('2024-01', 'M'\) is a Period, .*astype\(str\)"):
        fit.to_json()


@pytest.mark.parametrize(
    "labels",
    [{"integer": "1"}, [{"integer": "x"}], [{"boolean": "yes"}], [{"levels": "ab"}], [1], [{"a": "b", "c": "d"}]],
)
def test_damaged_labels_are_refused(labels: Any) -> None:
    record = json.loads(pk.fit(named("text").iloc[:, :1]).to_json())
    record["column_names"] = labels
    with pytest.raises(ValueError, match="column_names is not a list of names"):
        pk.PowerFit.from_json(json.dumps(record), check=False)


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [[0, 2], [-3], [[0], [1]]])
def test_positions_of_no_column_are_refused(columns: Any) -> None:
    with pytest.raises(ValueError, match=r"columns must be positions from 0 to 1, or a mask of 2 columns, got"):
        column_positions(columns, 2)


@pytest.mark.parametrize("columns", ["a", [0.5], [[0], [1, 2]]])
def test_columns_that_are_no_positions_are_refused(columns: Any) -> None:
    with pytest.raises(TypeError, match=r"columns must be positions from 0 to 1, or a mask of 2 columns, got"):
        column_positions(columns, 2)


@pytest.mark.parametrize("several", ["yes", 1, False])
def test_damaged_keys_of_groups_are_refused(several: Any) -> None:
    keys = pd.DataFrame({"one": CODES, "two": np.arange(N) % 2})
    record = json.loads(pk.fit(VALUES, groups=keys).to_json())
    record["several"] = several
    with pytest.raises(ValueError, match="the labels are not labels of groups: they have several keys"):
        pk.GroupedFit.from_json(json.dumps(record), check=False)


def test_transformed_columns_are_inverted_from_matrices_only() -> None:
    transformer = PowerTransformer(variables=[0]).fit(VALUES)
    with pytest.raises(ValueError, match=r"X must be a matrix of 2 columns, got shape \(60,\)"):
        transformer.inverse_transform(VALUES[:, 0])


# --- means on the transformed scale, decompositions, errors ---------------------------------------------------


@pytest.mark.parametrize("labels", COLUMN_LABELS)
def test_predicted_means_are_aligned_and_keep_their_labels(labels: str) -> None:
    X = named(labels).set_axis(LABELS, axis=0)
    mean = pd.DataFrame(RNG.normal(size=(N, 2)), index=X.index, columns=X.columns)
    sd = 0.1 * mean.abs()
    turned, shuffled = mean.iloc[:, ::-1], sd.iloc[SHUFFLE, ::-1]
    plain, fit = pk.fit(VALUES, "box-cox"), pk.fit(X, "box-cox")
    right = pd.DataFrame(plain.inverse_mean(mean.to_numpy(), sd.to_numpy()), X.index, X.columns)
    pd.testing.assert_frame_equal(fit.inverse_mean(turned, shuffled), right)
    found = fit.inverse_quantile(turned, shuffled, 0.9)
    np.testing.assert_array_equal(found, plain.inverse_quantile(mean.to_numpy(), sd.to_numpy(), 0.9))
    assert found.columns.equals(X.columns)
    grouped = pk.fit(VALUES, "box-cox", groups=CODES).inverse_mean(mean.to_numpy(), sd.to_numpy(), CODES)
    codes = pd.Series(CODES, index=LABELS)[::-1]
    found = pk.fit(X, "box-cox", groups=CODES).inverse_mean(turned, shuffled, codes)
    pd.testing.assert_frame_equal(found, pd.DataFrame(grouped, X.index, X.columns))


def test_predicted_means_of_other_columns_are_refused() -> None:
    other = FRAME.rename(columns={"b": "c"})
    for fit, more in ((pk.fit(FRAME), ()), (pk.fit(FRAME, groups=CODES), (CODES,))):
        with pytest.raises(ValueError, match="mean has the columns 'a', 'c', and not 'a', 'b'; use the same labels"):
            fit.inverse_mean(other, 0.1, *more)
        with pytest.raises(ValueError, match="sd has the columns 'a', 'c'"):
            fit.inverse_mean(FRAME, other, *more)


def test_spreads_by_column_are_aligned_by_label() -> None:
    mean = FRAME.iloc[:2] * 0.1
    right = pk.fit(VALUES).inverse_mean(mean.to_numpy(), [0.1, 0.4])
    np.testing.assert_array_equal(pk.fit(FRAME).inverse_mean(mean, pd.Series({"b": 0.4, "a": 0.1})), right)


def test_matrices_to_complete_are_aligned_with_the_decomposed_one() -> None:
    low_rank = RNG.normal(size=(12, 2)) @ RNG.normal(size=(2, 4))
    low_rank[[1, 5, 7], [0, 2, 3]] = np.nan
    M = pd.DataFrame(low_rank, index=LABELS[:12], columns=list("abcd"))
    plain, result = (uv_decompose(X, 2, rng=0) for X in (low_rank, M))
    turned = M.iloc[::-1, [3, 1, 0, 2]]
    for right, found in (
        (plain.complete(low_rank), result.complete(turned)),
        (plain.fold_in(low_rank), result.fold_in(turned)),
    ):
        np.testing.assert_allclose(found, right[::-1][:, [3, 1, 0, 2]], rtol=1e-12)
    with pytest.raises(ValueError, match="X lacks 'd' of the columns that were fitted"):
        result.fold_in(M.rename(columns={"d": "e"}))
    with pytest.raises(ValueError, match=r"the decomposed matrix has no row labelled -1"):
        result.complete(M.rename(index={LABELS[3]: -1}))


def test_pairs_to_predict_are_aligned() -> None:
    rows, columns = (pd.Series(each, index=LABELS) for each in (CODES, np.arange(N) % 5))
    model = fit_ratings((rows, columns, VALUES[:, 0]), 1, shrinkage=0.5, rng=0)
    right = model.predict(CODES, np.arange(N) % 5)
    np.testing.assert_array_equal(model.predict(rows, columns.iloc[SHUFFLE]), right)


def test_errors_are_aligned_with_those_of_the_reference() -> None:
    error, reference = pd.Series({"x": 1.0, "y": 2.0, "z": 4.0}), pd.Series({"z": 8.0, "y": 4.0, "x": 4.0})
    pd.testing.assert_series_equal(skill_score(error, reference), pd.Series({"x": 2.0, "y": 1.0, "z": 1.0}))
    frames = pd.DataFrame([[1.0, 2.0]], columns=["a", "b"]), pd.DataFrame([[8.0, 4.0]], columns=["b", "a"])
    pd.testing.assert_frame_equal(skill_score(*frames), pd.DataFrame([[2.0, 2.0]], columns=["a", "b"]))
    with pytest.raises(ValueError, match="reference has no row labelled 'z'"):
        skill_score(error, reference.rename({"z": "w"}))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_floats_that_may_be_rounded_identifiers_are_refused(kind: type) -> None:
    ids = 2**60 + np.arange(3).repeat(20)
    grouped = pk.fit(VALUES, groups=ids)
    with pytest.raises(ValueError, match=r"may be a rounded integer \(float\d\d\), .*pass integers"):
        grouped.transform(VALUES, groups=ids.astype(kind))
    model = fit_ratings((ids, np.arange(N) % 5, VALUES[:, 0]), 1, shrinkage=0.5, rng=0)
    with pytest.raises(ValueError, match="may be a rounded integer"):
        model.predict(ids.astype(kind), 0)
    small = ids - 2**60
    right = pk.fit(VALUES, groups=small).transform(VALUES, groups=small)
    np.testing.assert_array_equal(pk.fit(VALUES, groups=small).transform(VALUES, groups=small.astype(kind)), right)


def test_groups_of_the_transformer_are_aligned() -> None:
    right = GroupedPowerTransformer("box-cox").fit(VALUES, groups=CODES)
    shuffled = pd.Series(CODES, index=LABELS).iloc[SHUFFLE]
    found = GroupedPowerTransformer("box-cox").fit(FRAME, groups=shuffled)
    np.testing.assert_array_equal(found.lambdas_, right.lambdas_)
    z = right.transform(VALUES, groups=CODES)
    np.testing.assert_array_equal(found.transform(FRAME, groups=shuffled), z)
    back = found.inverse_transform(pd.DataFrame(z, index=LABELS), groups=shuffled)
    np.testing.assert_array_equal(back, right.inverse_transform(z, groups=CODES))
    with pytest.raises(ValueError, match="groups has no row labelled"):
        found.transform(FRAME, groups=pd.Series(CODES))


def test_labels_of_an_outlier_map_are_aligned() -> None:
    pytest.importorskip("matplotlib")
    from powerkern.plot import outlier_map

    names = pd.Series([f"row {label}" for label in LABELS], index=LABELS)
    maps = [outlier_map(FRAME, wrapped_pca(FRAME, 1), labels=each) for each in (names.tolist(), names.iloc[SHUFFLE])]
    texts = [[text.get_text() for text in each.texts] for each in maps]
    assert texts[0]
    assert texts[1] == texts[0]
