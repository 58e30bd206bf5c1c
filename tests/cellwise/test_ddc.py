"""Detection of deviating cells, compared with a plain implementation and with published results.

The published results are the cells of the Top Gear data that Rousseeuw and Van den Bossche (2018) single out.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
import plain_ddc as plain
import polars as pl
import pytest
from reference_files import SHARED
from samples import factors_with_outlying_cells

from powerkern.cellwise import ddc, wrapped_pca
from powerkern.cellwise.cells import Cells


def parts(cells):
    return [getattr(cells, field.name) for field in fields(Cells)]


def assert_same(a, b):
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("quantile, least", [(0.99, 0.5), (0.95, 0.3)])
@pytest.mark.parametrize("seed", range(3))
def test_results_equal_the_plain_implementation(seed, quantile, least, include_self):
    x = factors_with_outlying_cells(seed=seed)
    fit = ddc(x, quantile=quantile, min_correlation=least, include_self=include_self)
    residuals, flagged, imputed, rows, flagged_rows = plain.ddc(x, quantile, least, include_self)
    np.testing.assert_allclose(fit.residuals, residuals, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(fit.flagged, flagged)
    np.testing.assert_allclose(fit.imputed, imputed, rtol=1e-8)
    np.testing.assert_allclose(fit.row_outlyingness, rows, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(fit.flagged_rows, flagged_rows)


@pytest.mark.parametrize("search", ["pairs", "wrapped"])
def test_predict_on_the_same_rows_says_the_same(search):
    x = factors_with_outlying_cells()
    fit = ddc(x, search=search)
    assert_same(parts(fit.predict(x)), parts(fit))
    assert_same(parts(fit.predict(x[10:20])), [part[10:20] for part in parts(fit)])


@pytest.mark.parametrize("search", ["pairs", "wrapped"])
def test_planted_cells_are_found_and_replaced(search):
    rng = np.random.default_rng(3)
    clean = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 20)) + 0.2 * rng.normal(size=(400, 20))
    planted = rng.random(clean.shape) < 0.05
    x = np.where(planted, clean + 6.0 * rng.choice([-1.0, 1.0], clean.shape), clean)
    fit = ddc(x, search=search)
    assert fit.flagged[planted].mean() > 0.97
    assert fit.flagged[~planted].mean() < 0.04
    error = np.sqrt(np.mean((fit.imputed - clean)[planted] ** 2))
    assert error < 0.65 * clean.std()


def test_the_wrapped_search_tolerates_missing_values():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 12))
    full = ddc(x, search="wrapped")
    holes = np.where(rng.random(x.shape) < 0.3, np.nan, x)
    fit = ddc(holes, search="wrapped")
    assert fit.connected.all()
    np.testing.assert_allclose(
        np.sort(fit.neighbors(0).correlations), np.sort(full.neighbors(0).correlations), atol=0.06
    )  # fmt: skip
    assert not np.isnan(fit.imputed).any()


def test_neighbors_are_sorted_by_correlation():
    x = factors_with_outlying_cells(n=300, missing=0.0)
    fit = ddc(x)
    found = fit.neighbors(0)
    assert (np.diff(np.abs(found.correlations)) <= 0.0).all()
    assert (np.abs(found.correlations) >= 0.5).all()
    assert 0 not in found.columns
    assert fit.connected.tolist() == [True] * 5 + [False]
    assert fit.neighbors(-1).columns.size == 0
    few = ddc(x, search="wrapped", n_neighbors=2)
    assert few.neighbors(0).columns.size == 2
    with pytest.raises(ValueError, match="no column 6; there are 6 columns"):
        fit.neighbors(6)
    with pytest.raises(ValueError, match="no column 'a'"):
        fit.neighbors("a")
    with pytest.raises(TypeError):
        fit.neighbors(1.5)


def test_auto_takes_pairs_for_few_columns_and_products_for_many():
    assert ddc(factors_with_outlying_cells()).search == "pairs"
    assert ddc(np.random.default_rng(0).normal(size=(12, 800))).search == "wrapped"


@pytest.mark.parametrize("search", ["pairs", "wrapped"])
def test_the_same_bits_for_any_threads_layout_and_order(search):
    x = factors_with_outlying_cells(2000, 24)
    base = parts(ddc(x, search=search, n_threads=1))
    assert_same(parts(ddc(np.asfortranarray(x), search=search, n_threads=3)), base)
    order = np.random.default_rng(0).permutation(24)
    other = parts(ddc(x[:, order], search=search, n_threads=2))
    expected = [part[:, order] if np.ndim(part) == 2 else part for part in base]
    assert_same(other, expected)


def test_permuted_rows_and_shifted_columns_keep_results():
    x = factors_with_outlying_cells()
    base = ddc(x)
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_allclose(ddc(x[order]).residuals, base.residuals[order], rtol=1e-8, atol=1e-9)
    factor, shift = np.array([2.0, -1.0, 0.5, -3.0, 4.0, 1.0]), np.arange(6.0)
    moved = ddc(x * factor + shift)
    np.testing.assert_allclose(moved.residuals, base.residuals * np.sign(factor), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(moved.imputed, base.imputed * factor + shift, rtol=1e-7, atol=1e-8)


def test_copies_of_a_column_agree_exactly():
    x = factors_with_outlying_cells(missing=0.0)[:, :2]
    x = np.column_stack([x, 3.0 * x[:, 0]])
    x[5, 2] = 1e6
    assert ddc(x).flagged[5, 2]


def test_one_column_and_more_columns_than_rows_are_fitted():
    x = np.append(np.random.default_rng(0).normal(size=40), [30.0])
    fit = ddc(x)
    assert fit.flagged[40, 0]
    assert fit.imputed.shape == (41,)
    assert fit.imputed[40] == pytest.approx(fit.loc[0])
    wide = ddc(factors_with_outlying_cells(15, 60, missing=0.0))
    assert np.isfinite(wide.residuals).all()


def test_dropped_rows_and_columns_are_missing_from_results():
    x = factors_with_outlying_cells()
    x = np.column_stack([np.arange(1.0, 91.0), x, np.ones(90)])
    x[4, 1:] = np.nan
    fit = ddc(x)
    assert fit.check.columns.tolist() == [1, 2, 3, 4, 5, 6]
    assert 4 not in fit.check.rows
    assert fit.residuals.shape == (fit.check.rows.size, 6)
    found = fit.predict(x)
    assert found.residuals.shape == (90, 6)
    assert np.isnan(found.residuals[4]).all()
    assert not found.flagged_rows[4]
    np.testing.assert_allclose(found.imputed[4], fit.loc)
    with pytest.raises(ValueError, match="the fit has 8"):
        fit.predict(x[:, 1:7])


def test_frames_keep_names_and_labels():
    frame = pd.DataFrame(factors_with_outlying_cells(), columns=list("abcdef"))
    frame.insert(0, "name", [f"row {i}" for i in range(90)])
    fit = ddc(frame)
    assert fit.column_names == list("abcdef")
    assert list(fit.imputed.columns) == list("abcdef")
    np.testing.assert_array_equal(fit.residuals, ddc(frame[list("abcdef")].to_numpy()).residuals)
    again = fit.predict(frame[["f", "e", "d", "c", "b", "a"]])
    pd.testing.assert_frame_equal(again.residuals.iloc[fit.check.rows], fit.residuals)
    pd.testing.assert_frame_equal(fit.predict(frame).flagged.iloc[fit.check.rows], fit.flagged)
    kept = fit.predict(frame[list("abcdef")])  # without the column that was left out
    pd.testing.assert_frame_equal(kept.residuals.iloc[fit.check.rows], fit.residuals)
    assert isinstance(ddc(pl.DataFrame(frame)).imputed, pl.DataFrame)
    assert fit.neighbors("a").columns.tolist() == fit.neighbors(0).columns.tolist()


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"quantile": 1.0}, ValueError, "quantile must be"),
        ({"min_correlation": 0.0}, ValueError, "min_correlation must be"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be"),
        ({"search": "fast"}, ValueError, "search must be one of"),
        ({"include_self": 1}, TypeError, "include_self must be True or False"),
        ({"max_missing": 2.0}, ValueError, "max_missing"),
    ],
)
def test_invalid_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ddc(factors_with_outlying_cells(), **options)


def test_invalid_data_are_refused():
    with pytest.raises(ValueError, match=r"leaves no column.*column 0 has 1 distinct value"):
        ddc(np.ones((9, 2)))
    x = factors_with_outlying_cells()
    fit = ddc(x)
    x[2, 3] = -np.inf
    with pytest.raises(ValueError, match="column 3, row 2"):
        ddc(x)
    with pytest.raises(ValueError, match="column 3, row 2"):
        fit.predict(x)


def top_gear():
    cars = pd.read_csv(SHARED / "data" / "topgear.csv")
    names = pd.read_csv(SHARED / "data" / "topgear_names.csv")
    cars.index = names.Maker + " " + names.Model
    skewed = ["Price", "Displacement", "BHP", "Torque", "TopSpeed"]
    cars[skewed] = np.log(cars[skewed].where(cars[skewed] > 0))
    return cars.drop(columns="Verdict")


#: Cells that the paper names in its section on the cars; -1 marks values that are too small, 1 too large.
NAMED = [
    ("Peugeot 107", "Weight", -1),  # 210 kg
    ("BMW i3", "MPG", 1),
    ("Chevrolet Volt", "MPG", 1),
    ("Vauxhall Ampera", "MPG", 1),
    ("Mercedes-Benz G-Class", "Height", 1),
    ("Ssangyong Rodius", "Acceleration", -1),  # 0 seconds
    ("Caterham Super 7", "Weight", -1),
]


@pytest.mark.needs_shared_data
def test_cells_named_in_the_paper_are_flagged():
    cars = top_gear()
    assert cars.loc["Peugeot 107", "Weight"] == 210
    fit = ddc(cars)
    assert "Cylinders" not in fit.column_names
    for car, column, side in NAMED:
        assert fit.flagged.loc[car, column], (car, column)
        assert np.sign(fit.residuals.loc[car, column]) == side
    assert fit.flagged.loc["Peugeot 107"].sum() == 1
    assert 600.0 < fit.imputed.loc["Peugeot 107", "Weight"] < 1100.0
    assert fit.flagged_rows["Renault Twizy"]


@pytest.mark.needs_shared_data
def test_the_two_runs_of_philips_parts_that_deviate():
    parts = np.genfromtxt(SHARED / "data" / "data_philips.csv", delimiter=",", skip_header=1)
    fit = ddc(parts)
    beginning, later, last = (fit.flagged[rows].mean() for rows in (slice(100), slice(100, 490), slice(565, None)))
    assert beginning > 4.0 * later
    assert fit.flagged[490:565].mean() > 10.0 * last
    one = wrapped_pca(parts, 1)
    assert one.outliers[490:565].all()
    assert one.outliers[100:490].mean() < 0.2


def test_a_row_with_one_value_has_an_outlyingness():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1)) + 0.3 * rng.normal(size=(50, 3))
    fit = ddc(X)
    found = fit.predict(np.array([[0.1, np.nan, np.nan], [9.0, np.nan, np.nan], [np.nan] * 3]))
    assert np.isfinite(found.row_outlyingness[:2]).all()
    assert found.row_outlyingness[0] < found.row_outlyingness[1]
    assert np.isnan(found.row_outlyingness[2])


def test_arrays_for_a_fit_of_a_data_frame_have_all_its_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1)) + 0.3 * rng.normal(size=(50, 4))
    fit = ddc(pd.DataFrame(X, columns=list("abcd")))
    np.testing.assert_array_equal(fit.predict(X).residuals, fit.residuals)
    for wrong in (X[:, :3], np.column_stack([X, X[:, 0]])):
        with pytest.raises(ValueError, match="columns"):
            fit.predict(wrong)


def test_rows_of_one_outlyingness_are_not_flagged():
    X = np.tile(np.array([[1.0], [2.0], [3.0], [4.0], [-1.0], [-2.0], [-3.0], [-4.0]]), (1, 1))
    fit = ddc(np.column_stack([X, X]), max_discrete=0)
    assert not fit.flagged_rows.any()
    assert np.isfinite(fit.row_outlyingness).all()
