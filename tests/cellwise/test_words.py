"""Printed results of cellwise methods, their error messages, and rows without values."""

from __future__ import annotations

import numpy as np
import pytest

from powerkern.cellwise import cells, check_data, ddc, wrapped_pca


def data(n=200, p=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, p))


def test_results_print_on_one_line():
    X = data()
    X[3, 2] = 50.0
    fit = ddc(X)
    cells = int(np.count_nonzero(fit.flagged))
    assert repr(fit) == f"DDCFit(200 rows, 60 columns; flagged: {cells} cells, {int(fit.flagged_rows.sum())} rows)"
    assert repr(fit.predict(X[:7])).startswith("Cells(7 rows, 60 columns; flagged: ")
    pca = wrapped_pca(X, 2)
    assert repr(pca).startswith("WrappedPCA(2 components of 60 columns, ")
    assert repr(pca).endswith(f"{int(pca.outliers.sum())} outlying rows)")


def test_a_check_prints_twenty_lines_at_most():
    X = data()
    X[:, 5:45] = 1.0
    check = check_data(X)
    assert repr(check) == "DataCheck(200 rows and 20 columns kept, 0 and 40 dropped)"
    lines = str(check).splitlines()
    assert len(check.messages) == 40
    assert lines[:14] == check.messages[:14]
    assert lines[14:] == ["... and 26 more, in `messages`.", "Kept: 200 rows, 20 columns."]
    X[:, 20:45] = data()[:, 20:45]
    assert str(check_data(X)).splitlines()[:-1] == check_data(X).messages  # fifteen are all printed


def test_tiny_units_name_the_option():
    X = data(50, 4)
    X[:, 1] *= 1e-14
    (sentence,) = check_data(X).messages
    assert "or its unit is large; lower min_scale to keep it" in sentence
    assert check_data(X, min_scale=0.0).messages == []


def test_infinite_scores_are_refused():
    pca = wrapped_pca(data(), 2)
    with pytest.raises(ValueError, match=r"scores, entry \(1, 0\): the value is infinite"):
        pca.inverse_transform([[0.0, 1.0], [np.inf, 0.0]])
    assert np.isnan(pca.inverse_transform([[np.nan, 0.0]])).all()


def test_a_row_without_values_is_not_an_inlier():
    pytest.importorskip("sklearn")
    from powerkern.sklearn import DDC

    X = data(100, 4)
    detector = DDC().fit(X)
    rows = np.vstack([np.full((1, 4), np.nan), X[:1], np.full((1, 4), 99.0)])
    rows[2] *= [1.0, -1.0, 1.0, -1.0]
    assert detector.predict(rows).tolist() == [-1, 1, -1]
    assert np.isnan(detector.score_samples(rows)).tolist() == [True, False, False]


def test_a_correlation_at_the_limit_counts():
    from powerkern.cellwise.neighbors import _select_correlated

    assert _select_correlated(np.array([0.5, -0.75, 0.25, 0.4]), 0.5).tolist() == [1, 0]


def test_a_residual_at_the_cutoff_is_not_flagged():
    one = np.ones(1)
    rule = cells._FlagRule(0.0 * one, one, None, one, one, 0.0, 1.0, 2.0)
    z = np.array([[-2.0, 2.0, np.nextafter(2.0, 3.0), 0.0]])
    judged = cells._flag_cells(z.T, z, np.zeros_like(z), rule)
    assert judged.flagged.ravel().tolist() == [False, False, True, False]
