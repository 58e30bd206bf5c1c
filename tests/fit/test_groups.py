"""Fits of groups equal separate fits of the rows of each group, for all labels and orders of rows."""

from __future__ import annotations

import datetime
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fits import kernel_rows
from scipy import optimize

import powerkern as pk
from powerkern import GroupedFit, Status

RNG = np.random.default_rng(20261124)


def panel(n_groups=12, longest=60, p=2, seed=0):
    """Return the rows of groups in random order: (n, p) values and n group numbers.

    Each group has at least 5 and fewer than `longest` rows.
    """
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(5, longest, n_groups)))
    return rng.lognormal(size=(codes.size, p)) * (1 + codes[:, None]), codes


def same(grouped, alone, label):
    """Return whether the results of group `label` are bit-identical to those of a fit of its rows alone."""
    return np.array_equal(kernel_rows(grouped[label]), kernel_rows(alone), equal_nan=True)


# --- the oracle: every group by itself ------------------------------------------------------------------


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox", "best"])
@pytest.mark.parametrize("estimator", ["mle", "robust", "carroll", "mtl"])
def test_each_group_is_fitted_as_by_itself(family, estimator):
    X, codes = panel()
    X[::11, 1] = np.nan
    fit = pk.fit(X, family, estimator, groups=codes)
    Z = fit.transform(X, groups=codes)
    assert fit.lmbda.shape == fit.status.shape == fit.loc.shape == (12, 2)
    for label in range(12):
        rows = codes == label
        alone = pk.fit(X[rows], family, estimator)
        assert same(fit, alone, label)
        assert fit[label].families == alone.families
        np.testing.assert_allclose(Z[rows], alone.transform(X[rows]), rtol=0, atol=1e-14)
        np.testing.assert_array_equal(fit.lmbda[label], alone.lmbda)
    np.testing.assert_allclose(fit.inverse_transform(Z, groups=codes), X, rtol=1e-9)


@pytest.mark.parametrize("lengths", [(3, 4, 500, 512, 513, 700, 700), (2, 2, 3, 100_001)])
def test_long_and_short_groups_are_fitted_as_by_themselves(lengths):
    codes = RNG.permutation(np.repeat(np.arange(len(lengths)), lengths))
    x = RNG.gamma(3.0, size=codes.size)
    fit = pk.fit(x, groups=codes)
    assert all(same(fit, pk.fit(x[codes == g]), g) for g in range(len(lengths)))


@pytest.mark.parametrize("estimator", ["mle", "robust"])
def test_weighted_groups_are_fitted_as_by_themselves(estimator):
    X, codes = panel()
    w = RNG.integers(0, 4, codes.size).astype(float)
    fit = pk.fit(X, "box-cox", estimator, groups=codes, sample_weight=w)
    for label in range(12):
        rows = codes == label
        assert same(fit, pk.fit(X[rows], "box-cox", estimator, sample_weight=w[rows]), label)


@pytest.mark.parametrize(
    "options",
    [
        {"lmbda": [0.5, np.nan]},
        {"bounds": ([0.2, -np.inf], [0.4, 0.1])},
        {"family": "box-cox", "shift": [1.0, 0.5]},
        {"standardize": False, "ymax": 5.0},
        {"standardize": False},
    ],
)
def test_other_arguments_apply_to_each_group(options):
    X, codes = panel()
    fit = pk.fit(X, **options, groups=codes)
    Z = fit.transform(X, groups=codes)
    for label in range(12):
        rows = codes == label
        alone = pk.fit(X[rows], **options)
        assert same(fit, alone, label)
        np.testing.assert_allclose(Z[rows], alone.transform(X[rows]), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_memory_orders_do_not_change_groups(dtype, order):
    X, codes = panel()
    X = np.asarray(10 * X).astype(dtype, order=order)
    fit = pk.fit(X, groups=codes)
    Z = fit.transform(X, groups=codes)
    assert Z.dtype == (np.float32 if dtype == np.float32 else np.float64)
    for label in range(12):
        rows = codes == label
        assert same(fit, pk.fit(X[rows]), label)
        np.testing.assert_allclose(Z[rows], fit[label].transform(X[rows].astype(float)), rtol=1e-6, atol=1e-6)


def test_neither_threads_nor_the_order_of_rows_change_a_bit():
    X, codes = panel(300, 400)
    fit = pk.fit(X, groups=codes, n_threads=1)
    again = pk.fit(X, groups=codes, n_threads=2)
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(again))
    Z = fit.transform(X, groups=codes, n_threads=1)
    np.testing.assert_array_equal(Z, fit.transform(X, groups=codes, n_threads=2))
    sort = np.argsort(codes, kind="stable")
    ordered = pk.fit(X[sort], groups=codes[sort])
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(ordered))
    np.testing.assert_array_equal(Z[sort], ordered.transform(X[sort], groups=codes[sort]))


# --- labels ---------------------------------------------------------------------------------------------

NAMES = ["b", "a", "c"]
LABELS = {
    "text": np.array(NAMES),
    "objects": np.array(NAMES, dtype=object),
    "integers": np.array([-5, 10**12, 7]),
    "unsigned": np.array([2**63 + 5, 1, 2], dtype=np.uint64),
    "small": np.array([3, 1, 2], dtype=np.int8),
    "floats": np.array([0.5, -1.5, 1e300]),
    "whole floats": np.array([3.0, 1.0, 2.0]),
    "booleans": np.array([True, False, True]),
    "dates": np.array(["2020-01-02", "2019-05-01", "2021-01-01"], dtype="datetime64[D]"),
    "durations": np.array([3, 1, 2], dtype="timedelta64[h]"),
    "date objects": np.array([datetime.date(2020, 1, d) for d in (3, 1, 2)], dtype=object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label_gives_the_same_fit(kind):
    X, codes = panel(3)
    labels = LABELS[kind][codes]
    fit = pk.fit(X, groups=labels)
    own = pk.fit(X, groups=np.unique(labels, return_inverse=True)[1])
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(own))  # ascending, as from np.unique
    assert fit.groups == sorted(set(fit.groups))
    Z = fit.transform(X, groups=labels)
    for forms in (list(labels), pd.Series(labels), labels.astype(object) if kind != "dates" else labels):
        np.testing.assert_array_equal(kernel_rows(pk.fit(X, groups=forms)), kernel_rows(fit))
        np.testing.assert_array_equal(fit.transform(X, groups=forms), Z)
    for label in fit.groups:
        assert label in fit
        assert fit[label].lmbda.shape == (2,)
    again = GroupedFit.from_json(fit.to_json())
    assert again.groups == fit.groups
    np.testing.assert_array_equal(again.transform(X, groups=labels), Z)


@pytest.mark.parametrize(
    "labels_of",
    [
        pd.Categorical,
        lambda labels: pd.Series(labels, dtype="string"),
        lambda labels: pd.Series(labels, dtype="category"),
        lambda labels: pd.Index(labels),
        lambda labels: pl.Series(labels.tolist()),
        lambda labels: pl.Series(labels.tolist(), dtype=pl.Categorical),
        lambda labels: pl.Series(labels.tolist(), dtype=pl.Enum(["z", *sorted(NAMES)])),
        lambda labels: pa.array(labels.tolist()),
        lambda labels: pa.chunked_array([labels[:9].tolist(), labels[9:].tolist()]),
        lambda labels: pa.array(labels.tolist()).dictionary_encode(),
    ],
)
def test_labels_of_other_libraries_give_the_same_fit(labels_of):
    X, codes = panel(3)
    labels = np.array(NAMES)[codes]
    fit = pk.fit(X, groups=labels_of(labels))
    assert fit.groups == ["a", "b", "c"]
    np.testing.assert_array_equal(kernel_rows(fit), kernel_rows(pk.fit(X, groups=labels)))
    np.testing.assert_array_equal(
        fit.transform(X, groups=labels_of(labels)), pk.fit(X, groups=labels).transform(X, groups=labels)
    )


def test_numbers_are_the_same_whatever_their_type_and_text_is_not():
    X, codes = panel(3)
    fit = pk.fit(X, groups=codes)
    Z = fit.transform(X, groups=codes)
    for other in (codes.astype(float), codes.astype(np.uint8), codes.astype(object), pd.Series(codes, dtype="Int64")):
        np.testing.assert_array_equal(fit.transform(X, groups=other), Z)
    assert fit[1].lmbda[0] == fit[1.0].lmbda[0] == fit[np.int8(1)].lmbda[0]
    for wrong in ("1", True, 1.5, None, (1,), [1]):
        assert wrong not in fit
        with pytest.raises(KeyError):
            fit[wrong]
    with pytest.raises(TypeError, match=r"groups holds text, the labels of the fit are numbers"):
        fit.transform(X, groups=codes.astype(str))
    with pytest.raises(TypeError, match="holds booleans"):
        fit.transform(X, groups=codes > 0)


@pytest.mark.parametrize("pair", [(1, "1"), (1, True), ("a", 2.0), (datetime.date(2020, 1, 1), "2020-01-01")])
def test_labels_that_would_collide_or_are_of_two_kinds_are_refused(pair):
    with pytest.raises(TypeError, match=r"groups mixes .* and .*: row 0 has .*, row 3 has .*; convert them"):
        pk.fit(RNG.normal(size=6), groups=[pair[0]] * 3 + [pair[1]] * 3)
    with pytest.raises(TypeError, match="groups mixes"):
        pk.fit(RNG.normal(size=6), groups=pd.Series([pair[0]] * 3 + [pair[1]] * 3, dtype=object))


def test_large_whole_numbers_stay_apart():
    x = RNG.lognormal(size=90)
    labels = np.repeat(np.array([2**53, 2**53 + 1, 2**53 + 2]), 30)
    fit = pk.fit(x, groups=labels)
    assert fit.groups == [2**53, 2**53 + 1, 2**53 + 2]
    assert GroupedFit.from_json(fit.to_json()).groups == fit.groups
    with pytest.raises(ValueError, match="the label 9007199254740992 may be a rounded integer"):
        pk.fit(x, groups=labels.astype(object) + 0).transform(x, groups=np.repeat([2.0**53, 2.0**60, 2.0**53], 30))
    with pytest.raises(ValueError, match="different labels that become equal"):
        pk.fit(x, groups=[2**53, 2**53 + 1, 0.5] * 30)


def test_several_keys_are_tuples():
    X, codes = panel(6)
    site, plate = np.array(["x", "y"])[codes % 2], codes // 2
    frame = pd.DataFrame({"site": site, "a": X[:, 0], "plate": plate, "b": X[:, 1]})
    fit = pk.fit(frame, groups=["site", "plate"])
    assert fit.groups == [(s, k) for s in "xy" for k in range(3)]
    assert fit.group_names == ["site", "plate"]
    assert fit.column_names == ["a", "b"]
    Z = fit.transform(frame)
    assert list(Z.columns) == list(frame.columns)
    assert Z["site"].equals(frame["site"])
    for label in fit.groups:
        rows = (site == label[0]) & (plate == label[1])
        assert same(fit, pk.fit(X[rows]), label)
        np.testing.assert_allclose(Z.loc[rows, ["a", "b"]], fit[label].transform(X[rows]), atol=1e-14)
    keys = frame[["site", "plate"]]
    np.testing.assert_array_equal(kernel_rows(pk.fit(X, groups=keys)), kernel_rows(fit))
    again = GroupedFit.from_json(fit.to_json())
    pd.testing.assert_frame_equal(again.transform(frame), Z)
    assert ("x", 9) not in fit
    with pytest.raises(KeyError, match="tuple of 2"):
        fit["x"]
    with pytest.raises(ValueError, match="row 0: the fit has no such group"):
        fit.transform(frame.assign(plate=77))


def test_two_keys_may_have_hundreds_of_combinations():
    keys = np.repeat(np.column_stack([np.arange(400) // 20, np.arange(400) % 20]), 4, axis=0)
    x = RNG.lognormal(size=1600)
    fit = pk.fit(x, groups=keys)
    assert fit.groups == [(i, j) for i in range(20) for j in range(20)]
    assert same(fit, pk.fit(x[4 * 217 : 4 * 218]), (10, 17))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_keep_their_kind(library):
    X, codes = panel(4, p=1)
    frame = library({"id": np.array(list("dcab"))[codes], "x": X[:, 0], "note": codes.astype(str)})
    numbers = frame.select(["id", "x"]) if library is not pd.DataFrame else frame[["id", "x"]]
    fit = pk.fit(numbers, groups="id")
    Z = fit.transform(frame)
    assert type(Z) is type(frame)
    back = fit.inverse_transform(Z)
    np.testing.assert_allclose(np.asarray(back["x"]), X[:, 0], rtol=1e-10)
    assert list(np.asarray(back["id"])) == list(np.asarray(frame["id"]))
    assert list(np.asarray(back["note"])) == list(np.asarray(frame["note"]))


def test_a_lazy_frame_is_transformed_in_batches():
    X, codes = panel(4, p=1)
    frame = pl.DataFrame({"id": codes, "x": X[:, 0]})
    fit = pk.fit(frame, groups="id")
    assert fit.transform(frame.lazy()).collect().equals(fit.transform(frame))


# --- missing labels, unknown groups ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1.0, np.nan, 2.0]),
        np.array(["a", None, "b"], dtype=object),
        np.array(["2020", "NaT", "2021"], "M8[Y]"),
    ],
)
def test_missing_labels_raise_are_dropped_or_are_a_group(labels):
    X, codes = panel(3)
    own = labels[codes]
    first = int(np.flatnonzero(codes == 1)[0])
    with pytest.raises(ValueError, match=rf"groups, row {first}: the label is missing; pass dropna=True"):
        pk.fit(X, groups=own)
    there = codes != 1
    dropped = pk.fit(X, groups=own, dropna=True, unknown="pooled")
    assert len(dropped) == 2
    np.testing.assert_array_equal(dropped.pooled.lmbda, pk.fit(X[there]).lmbda)
    Z = dropped.transform(X, groups=own)
    assert np.isnan(Z[~there]).all()
    assert not np.isnan(Z[there]).any()
    kept = pk.fit(X, groups=own, dropna=False)
    assert kept.groups[-1] is None
    assert same(kept, pk.fit(X[~there]), None)
    np.testing.assert_allclose(kept.transform(X, groups=own)[~there], kept[None].transform(X[~there]), atol=1e-14)
    again = GroupedFit.from_json(kept.to_json())
    np.testing.assert_array_equal(again.transform(X, groups=own), kept.transform(X, groups=own))


def test_unknown_groups_raise_become_nan_or_use_the_pooled_fit():
    X, codes = panel(6)
    known = codes < 4
    fits = {how: pk.fit(X[known], groups=codes[known], unknown=how) for how in ("raise", "nan", "pooled")}
    first = int(np.flatnonzero(~known)[0])
    with pytest.raises(ValueError, match=rf"groups, row {first}: the fit has no such group"):
        fits["raise"].transform(X, groups=codes)
    Z = fits["nan"].transform(X, groups=codes)
    assert np.isnan(Z[~known]).all()
    np.testing.assert_array_equal(Z[known], fits["raise"].transform(X[known], groups=codes[known]))
    pooled = fits["pooled"].transform(X, groups=codes)
    np.testing.assert_array_equal(pooled[~known], pk.fit(X[known]).transform(X[~known]))
    np.testing.assert_allclose(fits["pooled"].inverse_transform(pooled, groups=codes), X, rtol=1e-9)
    means = fits["pooled"].inverse_mean(pooled, 0.0, groups=codes)
    np.testing.assert_allclose(means, X, rtol=1e-9)
    again = GroupedFit.from_json(fits["pooled"].to_json())
    np.testing.assert_array_equal(again.transform(X, groups=codes), pooled)
    for n in (0, 1):  # only unknown groups, or one known group
        assert np.isnan(fits["nan"].transform(X[: 1 + n], groups=np.full(1 + n, 99))).all()


# --- groups that cannot be fitted ------------------------------------------------------------------------


def test_groups_of_one_row_and_constant_groups_pass_through_with_one_warning():
    x = np.concatenate([RNG.lognormal(size=30), [1.5], np.full(5, 2.0), [np.nan, np.nan], np.arange(9.0) + 3])
    labels = np.repeat(["fitted", "one", "constant", "empty", "nine"], [30, 1, 5, 2, 9])
    with pytest.warns(UserWarning, match="group 'constant'; group 'one': not fitted") as seen:
        fit = pk.fit(x, groups=labels)
    assert len(seen) == 1
    status = dict(zip(fit.groups, fit.status[:, 0], strict=True))
    assert status["one"] == status["constant"] == Status.CONSTANT
    assert status["empty"] == Status.EMPTY
    assert status["fitted"] == status["nine"] == Status.OK
    z = fit.transform(x, groups=labels)
    np.testing.assert_array_equal(z[30:36], x[30:36])
    assert "3 of them not fitted" in repr(fit)
    with pytest.warns(UserWarning, match=r"group 0; group 1; group 2; group 3; group 4 and 35 more: not fitted"):
        many = pk.fit(np.arange(40.0), groups=np.arange(40))
    np.testing.assert_array_equal(many.transform(np.arange(40.0), groups=np.arange(40)), np.arange(40.0))


@pytest.mark.parametrize("options", [{}, {"origin": "fit"}, {"family": "box-cox", "shift": 1.0}])
def test_a_group_of_weight_0_is_empty(options):
    x, labels = RNG.lognormal(size=60), np.repeat([0, 1, 2], 20)
    with pytest.warns(UserWarning, match="group 1: not fitted: no values"):
        fit = pk.fit(x, groups=labels, sample_weight=np.where(labels == 1, 0.0, 1.0), **options)
    assert fit.status[1, 0] == Status.EMPTY
    options = {**options, "family": options.get("family", "yeo-johnson")}
    np.testing.assert_allclose(fit.lmbda[2], pk.fit(x[40:], **options).lmbda, rtol=1e-9)


def test_a_warning_names_groups_far_from_zero():
    x, labels = RNG.gamma(3.0, size=90), np.repeat(["near", "far"], 45)
    with pytest.warns(UserWarning, match=r"group 'far': .lambda. is large because the data lie far from zero.*origin="):
        pk.fit(np.where(labels == "far", 1e4 + x, x), groups=labels)


@pytest.mark.parametrize("family", ["yeo-johnson", "box-cox", "best"])
@pytest.mark.parametrize("estimator", ["mle", "central-mle", "robust"])
def test_each_group_has_its_own_origin(family, estimator):
    lengths = np.array([40, 7, 1, 300])
    labels = np.repeat(np.arange(4), lengths)
    x = 1000.0 * labels + RNG.gamma(3.0, size=labels.size)
    at = RNG.permutation(x.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(x[at], family, estimator, groups=labels[at], origin="fit")
        alone = [pk.fit(x[at][labels[at] == g], family, estimator, origin="fit") for g in range(4)]
        single = [each.transform(x[at][labels[at] == g]) for g, each in enumerate(alone)]
    np.testing.assert_array_equal(fit.lmbda[:, 0], [each.lmbda[0] for each in alone])
    np.testing.assert_array_equal(fit.status[:, 0], [each.status[0] for each in alone])
    z = fit.transform(x[at], groups=labels[at])
    for g in range(4):
        np.testing.assert_array_equal(z[labels[at] == g], single[g])
    np.testing.assert_allclose(fit.inverse_transform(z, groups=labels[at]), x[at], rtol=1e-12)
    again = type(fit).from_json(fit.to_json())
    np.testing.assert_array_equal(again.transform(x[at], groups=labels[at]), z)


def test_shrinking_cannot_be_combined_with_an_origin():
    with pytest.raises(ValueError, match="without origin="):
        pk.fit(RNG.gamma(3.0, size=20), groups=np.repeat([0, 1], 10), origin="fit", shrink=True)


def test_tables_that_are_read_in_batches_are_refused_with_the_remedy():
    frame = pl.DataFrame({"id": [0, 1] * 10, "x": np.arange(20.0)}).lazy()
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame; fit it by powerkern\.sketch"):
        pk.fit(frame, groups="id")


def test_one_group_of_all_rows_is_the_fit_of_all_rows():
    x = RNG.lognormal(size=1000)
    fit = pk.fit(x, groups=np.zeros(1000))
    assert same(fit, pk.fit(x), 0)
    np.testing.assert_array_equal(fit.transform(x, groups=np.zeros(1000)), fit[0].transform(x))


def test_a_value_outside_the_domain_is_named_by_its_own_row():
    X, codes = panel()
    X[37, 1] = -1.0
    with pytest.raises(ValueError, match=r"column 1, row 37: the value is -1\.0"):
        pk.fit(X, "box-cox", groups=codes)
    X[37, 1] = np.inf
    with pytest.raises(ValueError, match=r"column 1, row 37: the value is inf"):
        pk.fit(X, groups=codes)
    X[37, 1] = 1.0
    fit = pk.fit(X, "box-cox", groups=codes)
    X[5, 0] = 0.0
    with pytest.raises(ValueError, match=r"column 0, row 5: the value is 0\.0"):
        fit.transform(X, groups=codes)
    X[5, 0], X[37, 1] = 1.0, -1.0
    with pytest.raises(ValueError, match=r"column 1, row 37: the value is -1"):
        pk.fit(X, "box-cox", groups=codes, sample_weight=np.ones(len(X)))


def test_values_without_an_inverse_are_named_by_group():
    x = np.exp(RNG.normal(size=60))
    labels = np.repeat([1, 2], 30)
    fit = pk.fit(x, "box-cox", groups=labels, lmbda=-0.8)
    z = fit.transform(x, groups=labels)
    z[45] = 1e3
    with pytest.warns(UserWarning, match="Some values in group 2 are beyond"):
        back = fit.inverse_transform(z, groups=labels)
    assert np.isnan(back[45])
    np.testing.assert_allclose(np.delete(back, 45), np.delete(x, 45), rtol=1e-9)
    with pytest.raises(ValueError, match=r"^row 45: the value is 1000\.0, beyond the range of the transform"):
        fit.inverse_transform(z, groups=labels, out_of_range="raise")
    assert fit.inverse_transform(z, groups=labels, out_of_range="clip")[45] == x[30:].max()


# --- wrong input -----------------------------------------------------------------------------------------

X0 = np.arange(1.0, 7.0)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 1, 2], r"groups has 3 labels, and there are 6 rows"),
        ([], r"groups has no labels"),
        ([None] * 6, r"the label is missing"),
        ("id", r"groups='id' names a column, but X is a \w+, not a data frame"),
        (3, r"groups must be a label for each row"),
        ({1, 2, 3, 4, 5, 6}, r"groups must be a label for each row, .* got set"),
        (memoryview(np.ones((6, 2))), r"groups must be a label for each row, .* got memoryview"),
        ({"a": [1]}, r"groups must be a label for each row, .* got dict"),
        ([[1], [2], [3], [4], [5], [6]], r"groups has the label \[1\].*, a list; .*astype\(str\)"),
        ([1j] * 6, r"groups has the label 1j.*, a complex; "),
        (np.ones(6, dtype=complex), r"groups has type complex128"),
        (np.array([b"a"] * 6), r"groups has type \|S1"),
        ([b"a"] * 6, r"groups has the label b'a', a bytes; "),
        (np.ones((6, 2, 2)), r"groups must have one label for each row"),
        ([1.0, np.inf] * 3, r"groups has infinite labels"),
        (pd.DataFrame(index=range(6)), r"groups has no columns"),
        ([10**30] * 6, r"convert them to text"),
    ],
)
def test_wrong_labels_are_refused(groups, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pk.fit(X0, groups=groups)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": "nosuch"}, r"there is no column of that name among 'id', 'x'"),
        ({"groups": ["id", "id"]}, r"names a column twice"),
        ({"groups": ["id", "nosuch"]}, r"groups='nosuch': there is no column of that name"),
        ({"groups": "id", "unknown": "other"}, r"unknown"),
        ({"groups": "id", "dropna": "yes"}, r"dropna must be True, False or None"),
        ({"groups": "id", "shrink": 1.5}, r"shrink"),
        ({"groups": "id", "shrink": True, "estimator": "robust"}, r"shrink"),
        ({"groups": "id", "shrink": True, "lmbda": 0.5}, r"shrink"),
        ({"dropna": True}, r"work only with groups="),
        ({"shrink": True}, r"work only with groups="),
        ({"unknown": "nan"}, r"work only with groups="),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pk.fit(pd.DataFrame({"id": [1, 1, 1, 2, 2, 2], "x": X0}), **options)


def test_wrong_calls_of_the_fit_are_refused():
    fit = pk.fit(X0, groups=[1, 1, 1, 2, 2, 2])
    with pytest.raises(TypeError, match="groups= is missing"):
        fit.transform(X0)
    with pytest.raises(ValueError, match="groups has 2 labels, and there are 6 rows"):
        fit.transform(X0, groups=[1, 2])
    with pytest.raises(ValueError, match="groups has 2 keys, the fit has 1"):
        fit.transform(X0, groups=np.ones((6, 2)))
    with pytest.raises(ValueError):
        fit.transform(np.ones((6, 2)), groups=[1, 1, 1, 2, 2, 2])


# --- the object ------------------------------------------------------------------------------------------


def test_a_group_has_its_own_rows_for_intervals():
    X, codes = panel()
    w = RNG.integers(1, 3, codes.size).astype(float)
    fit = pk.fit(X, groups=codes, sample_weight=w)
    alone = pk.fit(X[codes == 3], sample_weight=w[codes == 3])
    np.testing.assert_array_equal(fit[3].confint(), alone.confint())
    assert str(fit[3].summary()) == str(alone.summary())
    travelled = pickle.loads(pickle.dumps(fit))
    with pytest.raises(ValueError, match="no longer has its data"):
        travelled[3].confint(method="profile")
    np.testing.assert_array_equal(travelled.transform(X, groups=codes), fit.transform(X, groups=codes))


def test_saved_fits_of_groups_are_loaded(tmp_path):
    X, codes = panel(4)
    fit = pk.fit(X, groups=codes, unknown="pooled")
    fit.save(tmp_path / "fit.json")
    again = pk.load(tmp_path / "fit.json")
    assert isinstance(again, GroupedFit)
    np.testing.assert_array_equal(again.transform(X, groups=codes), fit.transform(X, groups=codes))


def test_a_fit_of_groups_has_length_labels_and_a_frame():
    X, codes = panel(4)
    labels = np.array(["a", "b", "c", "d"])[codes]
    fit = pk.fit(pd.DataFrame({"id": labels, "u": X[:, 0], "v": X[:, 1]}), groups="id")
    assert len(fit) == 4
    assert list(fit) == ["a", "b", "c", "d"]
    frame = fit.to_frame()
    assert frame.index.names == ["id", "column"]
    assert frame.loc[("c", "v"), "lmbda"] == fit.lmbda[2, 1]
    table = fit.summary().to_dict()
    assert table["column"].tolist()[:2] == ["a: u", "a: v"]
    np.testing.assert_array_equal(table["se"].reshape(4, 2)[1], fit["b"].standard_error())
    robust = pk.fit(X[:, 0], estimator="robust", groups=labels).summary().to_dict()
    assert "n_kept" in robust
    assert pk.fit(X[:, 0], groups=labels).to_frame().index.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("what", ["keys", "groups", "several", "unknown", "group_names", "fit", "pooled"])
def test_damaged_json_is_refused(what):
    fit = pk.fit(RNG.lognormal(size=60), groups=np.repeat(["a", "b"], 30))
    record = json.loads(fit.to_json())
    for wrong in (None, 3.5, [], "x", {"type": "text", "labels": ["a"]}):
        if what in ("pooled", "group_names") and wrong is None:
            continue
        with pytest.raises(ValueError, match="not a fit"):
            GroupedFit.from_json(json.dumps({**record, what: wrong}), check=False)


def test_inverse_mean_of_one_column_takes_vectors():
    frame = pd.DataFrame({"label": ["a", "b"] * 10, "x": np.random.default_rng(0).lognormal(size=20)})
    fit, labels = pk.fit(frame, groups="label"), ["b", "a", "b"]
    found = fit.inverse_mean([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], labels)
    assert found.shape == (3,)
    assert found.tolist() == fit.inverse_mean([[0.1], [0.2], [0.3]], [1.0, 2.0, 3.0], labels)[:, 0].tolist()


def test_inverse_mean_uses_the_group_of_each_row():
    X, codes = panel(5)
    fit = pk.fit(X, groups=codes)
    mean, sd = RNG.normal(size=X.shape), RNG.uniform(0.1, 0.5, len(X))
    found = fit.inverse_mean(mean, sd, groups=codes)
    for label in range(5):
        rows = codes == label
        np.testing.assert_array_equal(found[rows], fit[label].inverse_mean(mean[rows], sd[rows, None]))


# --- shrinkage -------------------------------------------------------------------------------------------


def lambdas_of_groups(n, tau, seed=0, n_groups=200):
    """Return groups of n rows that are normal after Box-Cox: values, group numbers, and the true lambda of each group.

    The lambdas are drawn from N(0.3, tau**2).
    """
    rng = np.random.default_rng(seed)
    truth = 0.3 + tau * rng.normal(size=n_groups)
    y = 5.0 + 0.5 * rng.normal(size=(n_groups, n))
    x = (1.0 + truth[:, None] * y) ** (1.0 / truth[:, None])
    return x.ravel(), np.repeat(np.arange(n_groups), n), truth


def test_shrinking_is_the_posterior_mean_of_the_estimates():
    x, codes, truth = lambdas_of_groups(20, 0.1)
    plain, fit = pk.fit(x, "box-cox", groups=codes), pk.fit(x, "box-cox", groups=codes, shrink=True)
    center, estimate, s2 = fit.pooled.lmbda[0], plain.lmbda[:, 0], 1.0 / plain.information[:, 0]
    tau2 = optimize.brentq(lambda t: np.sum((estimate - center) ** 2 / (s2 + t)) - estimate.size, 0.0, 100.0)
    expected = (estimate * tau2 + center * s2) / (s2 + tau2)
    np.testing.assert_allclose(fit.lmbda[:, 0], expected, rtol=0, atol=1e-9)
    assert set(fit.status[:, 0]) == {Status.SHRUNK}
    alone = pk.fit(x[codes == 7], "box-cox", lmbda=fit.lmbda[7])  # mean and scale of the group itself
    np.testing.assert_allclose(kernel_rows(fit[7])[0, 1:7], kernel_rows(alone)[0, 1:7], rtol=1e-12)
    z = fit.transform(x, groups=codes).reshape(-1, 20)
    np.testing.assert_allclose(z.mean(axis=1), 0.0, atol=1e-10)
    assert np.square(fit.lmbda[:, 0] - truth).mean() < 0.6 * np.square(estimate - truth).mean()
    again = GroupedFit.from_json(fit.to_json())
    np.testing.assert_array_equal(again.lmbda, fit.lmbda)


def test_equal_groups_are_drawn_to_the_pooled_lambda_and_long_ones_stay():
    x, codes, _ = lambdas_of_groups(3000, 0.0, n_groups=4)
    rng = np.random.default_rng(3)
    fit = pk.fit(x, "box-cox", groups=codes, shrink=True)
    plain = pk.fit(x, "box-cox", groups=codes)
    assert (abs(fit.lmbda - fit.pooled.lmbda) <= abs(plain.lmbda - fit.pooled.lmbda)).all()
    y = np.concatenate([np.exp(rng.normal(size=4000)), 5.0 + rng.normal(size=4000)])
    labels = np.repeat([0, 1], 4000)
    np.testing.assert_allclose(
        pk.fit(y, "box-cox", groups=labels, shrink=True).lmbda, pk.fit(y, "box-cox", groups=labels).lmbda, atol=0.02
    )


def test_shrunk_groups_have_no_wald_interval():
    x, codes = panel(p=1)
    table = pk.fit(x, "box-cox", groups=codes, shrink=True).summary()
    assert not {"se", "low", "high"} & set(table.to_dict())
    assert "Wald" not in str(table)


def test_groups_without_a_fit_do_not_shrink():
    x, codes, _ = lambdas_of_groups(20, 0.1)
    x[:20] = 2.0
    with pytest.warns(UserWarning, match="group 0, column 0; group 199, column 1: not fitted"):
        fit = pk.fit(np.column_stack([x, x[::-1]]), "box-cox", groups=codes, shrink=True)
    assert fit.status[0, 0] == fit.status[-1, 1] == Status.CONSTANT
    assert (fit.status[1:, 0] == Status.SHRUNK).all()


@pytest.mark.slow
def test_a_million_groups_are_fitted():
    n_groups = 1_000_000
    codes = np.repeat(np.arange(n_groups), 5)
    x = RNG.lognormal(size=codes.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = pk.fit(x, groups=codes)
    assert len(fit) == n_groups
    for g in (0, 777_777):
        assert same(fit, pk.fit(x[5 * g : 5 * g + 5]), g)


def test_columns_that_fail_are_named():
    X = np.column_stack([RNG.lognormal(size=30), np.full(30, 2.0), RNG.lognormal(size=30)])
    X[:10, 2] = 5.0
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(X, groups=np.repeat([1, 2, 3], 10), column_names=["a", "b", "c"])
    assert repr(fit).endswith(
        "3 groups, column 1 ('b') not fitted in 3 of them, column 2 ('c') not fitted in 1 of them)"
    )
    with pytest.warns(UserWarning, match="not fitted"):
        one = pk.fit(X[:, 2], groups=np.repeat([1, 2, 3], 10))
    assert repr(one).endswith("3 groups, 1 of them not fitted)")


@pytest.mark.parametrize("estimator", ["mle", "robust"])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_sorted_and_unsorted_groups_are_transformed_to_the_same_bits(family, standardize, estimator):
    """Sorted and shuffled rows are transformed to the same bits, although by different code.

    Columns of sorted groups are transformed in place, one run of rows after another. Shuffled rows are first copied to
    padded blocks.
    """
    X = np.asfortranarray(RNG.lognormal(size=(6000, 2)) - (family == "yeo-johnson"))
    X[RNG.random(X.shape) < 0.02] = np.nan
    X[200:300], X[7, 0] = 2.0, 1e250 if family == "box-cox" else -1e250
    groups = np.repeat(np.arange(60), 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a constant group, and raw values that overflow
        fit = pk.fit(X, family, estimator, groups=groups, standardize=standardize, unknown="nan")
    groups[:150] = 99
    order = RNG.permutation(6000)
    in_runs, in_blocks = fit.transform(X, groups), fit.transform(X[order], groups[order])
    np.testing.assert_array_equal(in_runs[order], in_blocks)
    assert np.isnan(in_runs[:150]).all()
    X[3456, 1] = np.inf
    with pytest.raises(ValueError, match=r"column 1, row 3456: the value is inf"):
        fit.transform(X, groups)
