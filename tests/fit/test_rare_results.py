"""Results that few callers need: parts of estimators, labels and numbers of unusual kinds."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from fits import fit_quietly, kernel_rows

import powerkern as pk
from powerkern import Status, stats
from powerkern._cli.arguments import option
from powerkern._cli.limits import censored_cells_of
from powerkern._cli.output import short
from powerkern._estimators.base import ColumnSpec, Run
from powerkern._estimators.fitted_origin import WithOrigin
from powerkern._input.alignment import labels_from_record, labels_to_record
from powerkern._input.arguments import given_lambdas
from powerkern._input.arrays import Matrix, position_of
from powerkern._input.infinite import without_infinite
from powerkern._input.tables.identifiers import IdentifierEvidence
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

X = np.random.default_rng(0).lognormal(size=(30, 2))


@pytest.mark.parametrize("value, log_factor", [(2.5, 700.0), (-3.25, -900.0), (7.0, 3.0), (9.999999, 2000.0)])
def test_numbers_beyond_float64_are_printed_with_their_factor(value: float, log_factor: float) -> None:
    with mpmath.workdps(30):
        exact = mpmath.mpf(value) * mpmath.exp(log_factor)
        digits, exponent = short(value, log_factor).split("e")
        printed = mpmath.mpf(digits) * mpmath.mpf(10) ** int(exponent)
        assert abs(printed / exact - 1) < 2e-5
    assert short(None) == ""
    assert (short(0.0, 5.0), short(2.0, 0.0), short(1.23456789)) == ("0", "2", "1.23457")


def test_options_of_estimators_are_numbers_or_words() -> None:
    assert [option(text) for text in ("settled", "3", "0.5", "1,2.5")] == ["settled", 3, 0.5, [1.0, 2.5]]
    assert isinstance(option("3"), int)


@pytest.mark.parametrize("names", [None, ["lead", "zinc"]])
def test_columns_with_limits_are_named_in_their_order(names: list[str] | None) -> None:
    fit = pk.fit(X, "box-cox", limits=([0.5, -np.inf], [np.inf, 2.0]), column_names=names)
    cells = censored_cells_of(fit)
    below, above = ("0", "1") if names is None else names
    assert (cells.refusal, list(cells.below), list(cells.above)) == ("", [below], [above])
    assert not list(censored_cells_of(pk.fit(X)).below)


def test_parts_of_estimators_are_those_of_fits() -> None:
    ml, run = pk.ML(), Run(1)
    np.testing.assert_array_equal(ml.fit_values(X, BOX_COX, None, run), kernel_rows(pk.fit(X, "box-cox")))
    fit = pk.fit(X, "box-cox")
    g = ml.objective(X, BOX_COX, np.array([0.2, 0.9]), None, 1, np.zeros(2))
    np.testing.assert_allclose(g * 30.0, fit.profile([0.2, 0.9]), rtol=1e-13)
    with_origin = WithOrigin(ml)
    expected = with_origin.fit_columns(Matrix(X, None, False), YEO_JOHNSON, ColumnSpec.free(2), run)
    np.testing.assert_array_equal(with_origin.fit_values(X, YEO_JOHNSON, None, run), expected)
    assert expected.shape == kernel_rows(fit).shape


def test_estimators_refuse_what_they_lack() -> None:
    free, run, carroll = ColumnSpec.free(2), Run(1), pk.PPCC()
    with pytest.raises(NotImplementedError, match="PPCC fits no origin"):
        carroll.fit_origin(X, BOX_COX, None, free, run)
    with pytest.raises(NotImplementedError, match="PPCC fits no origin"):
        carroll.fit_at_origin(X, BOX_COX, None, Matrix(X, None, False), free, run)
    with pytest.raises(NotImplementedError, match="CentralML takes no lmbda="):
        pk.CentralML().recompute_at(np.zeros(2), X, BOX_COX, np.zeros((2, 1)), None, 1)


def test_groups_with_weights_below_one_count_observations_as_fits_of_their_own() -> None:
    labels, weight = np.repeat(["a", "b"], 15), np.repeat([0.25, 3.0], 15)
    fit = fit_quietly(X, groups=labels, sample_weight=weight)
    for label in "ab":
        rows = labels == label
        alone = fit_quietly(X[rows], sample_weight=weight[rows])
        units = np.ones(2) if alone._table.unit_weights is None else alone._table.unit_weights
        np.testing.assert_array_equal(fit[label]._table.unit_weights, units)
        np.testing.assert_array_equal(fit[label].standardized_cutoff(), alone.standardized_cutoff())


def test_labels_of_every_kind_are_stored() -> None:
    labels = [None, True, False, 3, "a", 2.5, ("x", None), ("x", True)]
    found = labels_from_record(labels_to_record(labels))
    assert found == labels
    assert [type(each) for each in found] == [type(each) for each in labels]
    with pytest.raises(ValueError, match="neither True nor False"):
        labels_from_record([{"boolean": "1"}])


def test_true_and_1_are_different_labels() -> None:
    assert position_of(True, [False, True], 2) == 1
    assert position_of(1, ["a", "b"], 2) == 1
    with pytest.raises(ValueError, match="there is no column True"):
        position_of(True, [1, 0], 2)


def test_lambdas_that_are_not_given_are_to_be_fitted() -> None:
    np.testing.assert_array_equal(given_lambdas(None, 3), [np.nan] * 3)
    np.testing.assert_array_equal(given_lambdas(0.5, 2), [0.5, 0.5])


def test_group_labels_of_times_with_zones_and_of_masked_arrays() -> None:
    days = pd.date_range("2024-01-01", periods=3, tz="Europe/Berlin").repeat(10)
    fit = pk.fit(X, groups=pd.Series(days))
    codes = pk.fit(X, groups=np.repeat([0, 1, 2], 10))
    np.testing.assert_array_equal(fit.lmbda, codes.lmbda)
    assert fit.groups[0] == np.datetime64("2023-12-31T23:00")  # in UTC
    masked = np.ma.array(np.repeat([5, 7, 9], 10), mask=np.repeat([False, True, False], 10))
    dropped = pk.fit(X, groups=masked, dropna=True)
    assert dropped.groups == [5, 9]
    np.testing.assert_array_equal(dropped.lmbda, codes.lmbda[[0, 2]])


def test_long_doubles_beyond_float64_are_infinite_and_missing() -> None:
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long double is float64 here")
    values = np.array([[1.0, 2.0], [3.0, 4.0]], np.longdouble)
    values[1, 0] = np.longdouble(10) ** 400
    with pytest.warns(UserWarning, match="1 infinite value is treated as missing"):
        found = without_infinite(Matrix(values, None, False), "missing").values
    np.testing.assert_array_equal(found, [[1.0, 2.0], [np.nan, 4.0]])
    assert found.dtype == np.float64


def test_large_numbers_in_scientific_notation_are_measurements() -> None:
    for cell, is_measured in (("1e30", True), ("10000000000000000000", False)):
        evidence = IdentifierEvidence("x")
        evidence.add_cells([cell, "20000000000000000000"], np.array([float(cell), 2e19]), [2, 3])
        assert (evidence.reason() is None) == is_measured


def test_lambdas_of_groups_are_labelled_by_the_names_of_the_keys() -> None:
    frame = pd.DataFrame({"site": np.repeat(["a", "b"], 15), "x": X[:, 0], "y": X[:, 1]})
    found = pk.fit(frame, groups="site").lambdas
    assert (found.index.name, found.index.tolist(), found.columns.tolist()) == ("site", ["a", "b"], ["x", "y"])
    assert pk.fit(X, groups=frame["site"].to_numpy()).lambdas.index.name is None


def test_statuses_of_estimated_lambdas() -> None:
    not_estimated = {status for status in Status if status.failed} | {Status.AT_BOUND, Status.FIXED, Status.ROUNDED}
    assert {status for status in Status if not status.is_estimate} == not_estimated
    assert len(not_estimated) == 11


def test_tests_of_central_normality_have_a_short_representation() -> None:
    text = repr(pk.fit(X).central_normality())
    assert text.startswith("CentralNormality(statistic=array([")
    assert "pvalue=array([" in text


def test_intervals_of_alpha_0_are_unbounded_and_missing_values_are_propagated() -> None:
    x = X[:, 0]
    assert stats.boxcox(x, alpha=0.0)[2] == (-math.inf, math.inf)
    both = stats.boxcox_normmax([1.0, 2.0, np.nan], method="all", nan_policy="propagate")
    np.testing.assert_array_equal(both, [np.nan, np.nan])
