"""Summaries of fits: the table as text, as arrays, and as a data frame."""

from __future__ import annotations

import html
import sys

import numpy as np
import pytest

import powerkern as pk
from powerkern._results.inference import likelihood_ratio
from powerkern._results.summary import Summary
from powerkern.joint import fit_joint
from powerkern.sketch import fit_chunks

MOMENTS = ("skewness", "kurtosis", "ppcc", "p_normal")
FIGURES = [*(name + when for name in MOMENTS for when in ("", "_after")), "p_central"]
ESTIMATES = ["lmbda", "rounded", "se", "low", "high"]
TESTS = ["lr_0", "p_0", "lr_1", "p_1"]


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).lognormal(size=(100, 3))


def test_entries_are_the_results_of_the_fit(x):
    fit = pk.fit(x, "box-cox", column_names=["a", "b", "c"])
    entries = fit.summary(level=0.8).to_dict()
    names = [
        "column",
        "family",
        *ESTIMATES,
        *TESTS,
        *FIGURES,
        "n_obs",
        "status",
    ]
    assert list(entries) == names
    assert {entry.shape for entry in entries.values()} == {(3,)}
    low, high = fit.confint(level=0.8)
    before, after = fit.normality()
    expected = {
        "lmbda": fit.lmbda,
        "rounded": fit.rounded(level=0.8),
        "se": fit.information**-0.5,
        "low": low,
        "high": high,
        "lr_0": fit.lr_test(0.0).statistic,
        "p_0": fit.lr_test(0.0).pvalue,
        "lr_1": fit.lr_test(1.0).statistic,
        "p_1": fit.lr_test(1.0).pvalue,
        "skewness": before.skewness,
        "kurtosis_after": after.kurtosis,
        "ppcc": before.ppcc,
        "p_normal_after": after.pvalue,
        "p_central": fit.central_normality().pvalue,
        "n_obs": fit.n_obs,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(entries[name], value, rtol=1e-13, err_msg=name)
    assert entries["column"].tolist() == ["a", "b", "c"]
    assert entries["status"].tolist() == fit.status_text
    assert entries["family"].tolist() == ["box-cox"] * 3


def test_text_has_blocks_of_all_columns(x):
    text = str(pk.fit(x, "box-cox", column_names=["a", "b", "c"]).summary())
    blocks = text.split("\n\n")
    assert blocks[0] == "PowerFit(family='box-cox', estimator=ML(), 3 of 3 columns fitted)"
    for block, head in zip(blocks[1:4], ("lmbda  rounded", "skewness  skewness_after", "n_obs  status"), strict=True):
        lines = block.splitlines()
        assert head in " ".join(lines[0].split()).replace(" ", "  ")
        assert [line[0] for line in lines[1:]] == ["a", "b", "c"]
    assert "profile likelihood interval of level 0.95" in blocks[4]
    assert "likelihood ratio tests" in blocks[4]
    assert repr(pk.fit(x, "box-cox", column_names=["a", "b", "c"]).summary()) == text


def test_many_columns_are_cut_short():
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(10, 2000)))
    summary = fit.summary()
    lines = str(summary).splitlines()
    assert len(lines) < 110
    assert "... and 1970 more columns: to_text(None), to_dict() or to_frame()" in lines
    whole = summary.to_text(None)
    assert "more columns" not in whole
    assert len(whole.splitlines()) > 6000
    assert len(summary.to_text(3).splitlines()) < 25
    assert summary.to_dict()["lmbda"].shape == (2000,)


def test_one_column_is_numbered_0():
    text = str(pk.fit(np.arange(1.0, 40.0), "box-cox").summary())
    assert "\n0       box-cox" in text


def test_names_of_several_lines_stay_on_one():
    fit = pk.fit(np.arange(1.0, 40.0), column_names=["height\r\nin m"])
    assert sum(line.startswith("height in m") for line in str(fit.summary()).splitlines()) == 3
    assert fit.summary().to_dict()["column"] == ["height\r\nin m"]


def test_a_frame_has_the_entries_by_column(x):
    pandas = pytest.importorskip("pandas")
    fit = pk.fit(pandas.DataFrame(x, columns=["a", "b", "c"]))
    summary = fit.summary()
    frame = summary.to_frame()
    assert frame.index.tolist() == ["a", "b", "c"]
    assert frame.index.name == "column"
    assert frame.columns.tolist() == list(summary.to_dict())[1:]
    np.testing.assert_array_equal(frame["lmbda"], fit.lmbda)
    assert frame.loc["b", "status"] == "optimum found and certified"


def test_a_frame_needs_pandas(x, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        pk.fit(x).summary().to_frame()


def test_summaries_without_data_have_no_tests(x):
    fit = pk.fit(x, "box-cox")
    read = pk.PowerFit.from_json(fit.to_json())
    summary = read.summary()
    assert list(summary.to_dict()) == ["column", "family", *ESTIMATES, "n_obs", "status"]
    assert "no likelihood ratio tests: the fit no longer has its data" in str(summary)
    assert "no measures of normality: the fit no longer has its data" in str(summary)
    assert str(read.summary(x)) == str(fit.summary())
    with pytest.raises(ValueError, match="sample_weight needs X"):
        fit.summary(sample_weight=np.ones(len(x)))


def test_summaries_from_power_sums_have_no_measures_of_normality(x):
    sketched = fit_chunks(lambda: iter([x[:50], x[50:]]), "box-cox").summary()
    entries, expected = sketched.to_dict(), pk.fit(x, "box-cox").summary().to_dict()
    assert list(entries) == ["column", "family", *ESTIMATES, *TESTS, "n_obs", "status"]
    for name in (*ESTIMATES, *TESTS):
        np.testing.assert_allclose(entries[name], expected[name], rtol=1e-6, atol=1e-9, err_msg=name)
    assert "no measures of normality" in str(sketched)


@pytest.mark.parametrize("estimator", ["robust", "ppcc"])
def test_summaries_of_other_estimators_have_no_tests(x, estimator):
    summary = pk.fit(x, "box-cox", estimator).summary()
    names = [
        "column",
        "family",
        "lmbda",
        "se",
        "low",
        "high",
        "n_kept",
        *FIGURES,
        "n_obs",
        "status",
    ]
    assert list(summary.to_dict()) == names
    assert f"no tests: estimator='{estimator}' is not maximum likelihood" in str(summary)


def test_weights_repeat_rows(x):
    whole, broken = np.arange(100) % 3, np.linspace(0.5, 2.0, 100)
    repeated = pk.fit(np.repeat(x, whole, axis=0)).summary().to_dict()
    for name, entry in pk.fit(x, sample_weight=whole).summary().to_dict().items():
        if entry.dtype.kind == "f":
            np.testing.assert_allclose(entry, repeated[name], rtol=1e-6, atol=1e-9, err_msg=name)
    summary = pk.fit(x, sample_weight=broken).summary()
    assert {"lr_0", "skewness"} <= set(summary.to_dict())


def test_columns_that_were_not_fitted_have_no_tests_in_the_summary(x):
    x[:, 1], x[:, 2] = 5.0, np.nan
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(x, "box-cox")
    entries = fit.summary().to_dict()
    assert entries["rounded"][1:].tolist() == [1.0, 1.0]
    for name in ("se", "low", "high", *TESTS, *FIGURES):
        assert np.isnan(entries[name][1:]).all(), name
    assert "nan" not in str(fit.summary())


def test_joint_tests_have_a_table_of_their_own():
    tests = {"lambda = 0": likelihood_ratio(-100.0, -160.5, 2), "lambda = 1": likelihood_ratio(-160.0, -160.5, 2)}
    text = str(Summary("joint", ["a", "b"], [{"lmbda": np.array([0.1, -0.0])}], tests=tests))
    assert text.splitlines()[-3:] == [
        "likelihood ratio test   lr  df           p",
        "lambda = 0             121   2  5.3111e-27",
        "lambda = 1               1   2     0.60653",
    ]
    assert "b           0" in text


def test_html_escapes_names_and_is_cut_short(x):
    fit = pk.fit(x, "box-cox", column_names=["<a>", "b", "c"])
    summary = fit.summary()
    text = summary._repr_html_()
    assert text.count("<table>") == text.count("overflow-x: auto") == len(summary.blocks) == 3
    assert "<th>lmbda</th>" in text
    assert "<td>&lt;a&gt;</td>" in text
    assert "<a>" not in text
    assert all(f"<p>{html.escape(note)}</p>" in text for note in summary.notes)
    assert "more columns" not in text
    wide = pk.fit(np.random.default_rng(0).lognormal(size=(10, 31))).summary()._repr_html_()
    assert wide.count("<tr>") == 3 * 31
    assert "... and 1 more columns" in wide
    joint = fit_joint(x, family="box-cox").summary()._repr_html_()
    assert "<td>all 0</td>" in joint
