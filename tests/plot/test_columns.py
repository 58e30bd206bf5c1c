"""QQ plots, histograms, many columns and residuals, checked by the data that are drawn."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
from pictured import responses, skewed

import powerkern as pk
from powerkern.plot import before_after_plot, histogram_plot, qq_plot, residual_plot
from powerkern.plot._band import simultaneous_band
from powerkern.plot._drawing import shorten
from powerkern.plot._fits import row_names, standardize_values
from powerkern.plot._histograms import _bin_edges as bin_edges
from powerkern.plot._qq import _draw_points as draw_points
from powerkern.regression import fit_regression

# --- QQ plots ----------------------------------------------------------------------------------------


def test_qq_plot_shows_sorted_values_over_normal_scores():
    X = skewed()
    X[5, 1] = np.nan
    fit = pk.fit(X, "box-cox")
    before, after = qq_plot(X, fit, column=1).lines[:2]
    x = np.delete(X[:, 1], 5)
    assert np.allclose(before.get_ydata(), np.sort((x - x.mean()) / x.std()))
    assert np.allclose(after.get_ydata(), np.sort(fit.transform(X)[:, 1])[:-1])
    scores = scipy.stats.norm.ppf((np.arange(1, 120) - 1 / 3) / (119 + 1 / 3))
    assert np.allclose(before.get_xdata(), scores)
    assert np.allclose(after.get_xdata(), scores)


def test_qq_plot_of_a_raw_fit_is_standardised():
    X = skewed()
    standardised = qq_plot(X, pk.fit(X)).lines[1].get_ydata()
    raw = qq_plot(X, pk.fit(X, standardize=False)).lines[1].get_ydata()
    assert np.allclose(raw, standardised)


def test_qq_plot_shows_what_a_robust_fit_left_out():
    x = skewed()[:, 0]
    x[[3, 50]], x[7] = 1e3, np.nan
    fit = pk.fit(x, "box-cox", "robust")
    ax = qq_plot(x, fit)
    after, left_out = ax.lines[1:3]
    z = fit.transform(x)
    assert np.array_equal(after.get_ydata(), np.sort(z)[:-1])
    dropped = (fit.weights(x) == 0.0) & ~np.isnan(x)
    assert dropped[[3, 50]].all()
    assert np.array_equal(left_out.get_ydata(), np.sort(z[dropped]))
    assert np.array_equal(left_out.get_xdata(), after.get_xdata()[np.isin(after.get_ydata(), z[dropped])])
    band = ax.patches[0]
    kept = z[fit.weights(x) == 1.0]
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((kept.min(), kept.max()))
    assert len(qq_plot(x, pk.fit(x, "box-cox")).patches) == 0


def test_columns_go_by_position_or_name():
    X = skewed()
    fit = pk.fit(X, column_names=["a", "b", "c"])
    by_name, by_position = qq_plot(X, fit, column="c"), qq_plot(X, fit, column=-1)
    assert by_name.get_title() == by_position.get_title()
    assert by_name.get_title().startswith("c, lambda = ")
    with pytest.raises(ValueError, match="there is no column 'd'; the columns are 'a', 'b', 'c'"):
        qq_plot(X, fit, column="d")
    with pytest.raises(ValueError, match="there is no column 3; there are 3 columns"):
        qq_plot(X, fit, column=3)


def test_one_column_may_be_a_vector():
    x = skewed()[:, 0]
    assert len(qq_plot(x, pk.fit(x)).lines[1].get_ydata()) == 120


@pytest.mark.slow
def test_many_points_are_thinned_to_what_can_be_seen():
    x = np.random.default_rng(0).standard_normal(200_000)
    x[:3] = 30.0, -35.0, 35.0
    ax = qq_plot(x, pk.fit(x, lmbda=1.0))
    scores = scipy.stats.norm.ppf((np.arange(1, x.size + 1) - 1 / 3) / (x.size + 1 / 3))
    before = np.sort((x - x.mean()) / x.std())
    points = ax.lines[0].get_xydata()
    assert len(points) < 4000
    # every point has a drawn point next to it, and all outermost points are drawn
    next_to = np.clip(np.searchsorted(points[:, 0], scores, side="right") - 1, 0, None)
    for axis, values in enumerate((scores, before)):
        assert np.abs(points[next_to, axis] - values).max() <= 0.006 * np.hypot(1.0, np.abs(values)).max()
    assert np.array_equal(points[[0, -2, -1], 1], before[[0, -2, -1]])


@pytest.mark.parametrize("n", [1, 2, 5, 50, 700])
def test_the_band_contains_whole_normal_samples(n):
    """The band contains 95 of 100 normal samples entirely, for every sample size.

    The band and the test are both simulations, with a joint Monte Carlo error of at most 2 of 100.
    """
    band = simultaneous_band(n, 0.95)
    z = np.sort(np.random.default_rng(3).standard_normal((2000, n)), axis=1)
    scores = scipy.stats.norm.ppf((np.arange(1, n + 1) - 1 / 3) / (n + 1 / 3))
    low, high = np.interp(scores, band.scores, band.low), np.interp(scores, band.scores, band.high)
    assert ((z >= low) & (z <= high)).all(axis=1).mean() == pytest.approx(0.95, abs=0.025)
    assert np.array_equal(band.low, -band.high[::-1])


def test_the_band_of_one_value_is_that_of_the_normal_distribution():
    low, high = (float(end[0]) for end in simultaneous_band(1, 0.95)[1:])
    assert (low, high) == pytest.approx((-1.96, 1.96), abs=0.1)


def test_band_is_drawn_and_left_out():
    X = skewed()
    fit = pk.fit(X)
    (band,) = qq_plot(X, fit, band=0.9).collections
    assert band.get_label() == "90% of normal samples"
    drawn = band.get_paths()[0].vertices
    expected = simultaneous_band(120, 0.9)
    assert drawn[:, 1].min() == pytest.approx(expected.low.min())
    assert drawn[:, 1].max() == pytest.approx(expected.high.max())
    assert not qq_plot(X, fit, band=None).collections
    with pytest.raises(ValueError, match=r"band must be a probability between 0 and 1, or None, got 95"):
        qq_plot(X, fit, band=95)


def test_a_column_without_values_has_no_qq_plot():
    fit = pk.fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match="column 1 has no values"):
        qq_plot(np.column_stack([np.ones(4), np.full(4, np.nan)]), fit, column=1)
    with pytest.raises(TypeError, match="integer"):
        qq_plot(np.ones((4, 2)), fit, column=1.0)


def test_a_column_without_values_does_not_keep_others_from_being_drawn():
    X = skewed(p=3)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="not fitted"):
        fit = pk.fit(X, column_names=list("abc"))
    for row, panels in enumerate(before_after_plot(X, fit)):
        for ax in panels:
            assert [text.get_text() for text in ax.texts] == (["no values"] if row == 1 else [])
            assert bool(ax.lines) == (row != 1)


# --- histograms, many columns ------------------------------------------------------------------------


def test_histograms_count_every_value():
    X = skewed(400)
    X[7, 0] = np.nan
    fit = pk.fit(X, "box-cox")
    ax = histogram_plot(X, fit)
    x = np.delete(X[:, 0], 7)
    for patch, values in zip(ax.patches, ((x - x.mean()) / x.std(), fit.transform(X)[:, 0]), strict=True):
        density, edges, _ = patch.get_data()
        inside = np.abs(values) <= 4.0
        assert edges[[0, -1]].tolist() == [-4.0, 4.0]
        freedman_diaconis = 2.0 * np.subtract(*scipy.stats.norm.ppf([0.75, 0.25])) / 399 ** (1 / 3)
        assert np.diff(edges) == pytest.approx(freedman_diaconis, rel=0.1)
        assert np.sum(density * np.diff(edges)) == pytest.approx(np.count_nonzero(inside) / 399)
        beyond = np.count_nonzero(~inside & ~np.isnan(values))
        assert (f"({beyond} beyond)" in patch.get_label()) == (beyond > 0)
    z, density = ax.lines[0].get_data()
    assert np.allclose(density, scipy.stats.norm.pdf(z))


def test_many_columns_have_rows_of_panels():
    X = skewed(p=5)
    fit = pk.fit(X, "box-cox", column_names=list("abcde"))
    axes = before_after_plot(X, fit, columns=["e", 0, 2])
    assert axes.shape == (3, 2)
    assert [ax.get_title().split(",")[0] for ax in axes[:, 0]] == ["e", "a", "c"]
    alone = qq_plot(X, fit, column="e")
    for one, other in zip(axes[0, 1].lines[:2], alone.lines[:2], strict=True):
        assert np.array_equal(one.get_xydata(), other.get_xydata())
    assert len(axes[0, 0].figure.axes) == 6  # no panel is empty
    only = before_after_plot(X, fit, kinds=["qq"], band=None)
    assert only.shape == (5, 1)
    assert not only[0, 0].collections


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["a", "z"]}, ValueError, "there is no column 'z'"),
        ({"columns": "a"}, TypeError, "columns must be a sequence"),
        ({"columns": []}, ValueError, "columns is empty; leave it out"),
        ({"kinds": "qq"}, ValueError, "kinds must be a sequence of 'histogram' and 'qq'"),
        ({"kinds": []}, ValueError, "kinds must be a sequence"),
        ({"kinds": ["box"]}, ValueError, "kinds must be a sequence"),
        ({"columns": [0] * 101}, ValueError, "at most 200 panels, not 202"),
    ],
)
def test_invalid_choices_of_columns_are_refused(options, error, message):
    X = skewed(p=1)
    with pytest.raises(error, match=message):
        before_after_plot(X, pk.fit(X, column_names=["a"]), **options)


def test_many_columns_are_drawn_on_given_axes():
    X = skewed(p=2)
    given = plt.subplots(2, 2)[1]
    assert before_after_plot(X, pk.fit(X), ax=given)[1, 1] is given[1, 1]
    assert all(ax.has_data() for ax in given.flat)
    with pytest.raises(ValueError, match=r"ax must be an array of 2 x 1 axes, got shape \(2, 2\)"):
        before_after_plot(X, pk.fit(X), kinds=["qq"], ax=given)


def test_before_and_after_are_both_seen_where_they_coincide():
    x = np.random.default_rng(0).normal(size=300)
    fit = pk.fit(x, lmbda=1.0)
    before, after = histogram_plot(x, fit).patches
    assert before.get_fill()
    assert not after.get_fill()
    before, after = qq_plot(x, fit).lines[:2]
    assert (before.get_marker(), before.get_markerfacecolor()) == ("o", "none")
    assert after.get_markersize() <= before.get_markersize()


def test_titles_fit_their_axes():
    X = skewed(p=2)
    name = "how often do you $pay$ in cash, on a scale from 0 (never) to 10 (whenever I can, and I can always)"
    fit = pk.fit(X, column_names=[name, "x"])
    title = qq_plot(X, fit).title
    assert title.get_text().startswith("how often")
    assert "…" in title.get_text()
    assert title.get_text().endswith(f"\nlambda = {fit.lmbda[0]:.3g}")
    assert title.get_window_extent().width <= title.axes.get_window_extent().width
    for ax in before_after_plot(X, fit)[:, 0]:
        assert ax.title.get_window_extent().width <= ax.get_window_extent().width
    title.figure.canvas.draw()  # dollar signs must not start a formula


@pytest.mark.parametrize(("label", "length", "expected"), [("abcdefghij", 7, "abc…hij"), ("abcdef", 6, "abcdef")])
def test_labels_are_shortened_in_the_middle(label, length, expected):
    assert shorten(label, length) == expected


def test_lines_and_text_follow_a_dark_style():
    X = skewed()
    with plt.style.context("dark_background"):
        ax = qq_plot(X, pk.fit(X))
        diagonal = ax.lines[2]
        assert mpl.colors.to_rgb(diagonal.get_color()) == (1.0, 1.0, 1.0)
        assert mpl.colors.to_rgb(ax.lines[0].get_color()) == pytest.approx((0.4, 0.4, 0.4))


# --- residuals ---------------------------------------------------------------------------------------


def test_residuals_are_those_of_least_squares_before_and_after():
    Y, x = responses()
    Y[3, 1] = np.nan
    fit = fit_regression(Y, x)
    design = np.column_stack([np.ones(len(x)), x])
    before, after = residual_plot(Y, x, fit, column=1).lines[:2]
    kept = np.arange(len(x)) != 3
    for line, lmbda in ((before, 1.0), (after, fit.lmbda[1])):
        psi = scipy.stats.boxcox(Y[kept, 1], lmbda)
        residuals = psi - design[kept] @ np.linalg.lstsq(design[kept], psi, rcond=None)[0]
        assert np.allclose(line.get_ydata(), np.sort(residuals / residuals.std()), atol=1e-8)
        assert line.get_xdata().size == kept.sum()


def test_residuals_of_a_fit_by_formula():
    pytest.importorskip("formulaic")
    pd = pytest.importorskip("pandas")
    Y, x = responses()
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    by_formula = residual_plot(Y, frame, fit_regression(Y, frame, formula="~ a + b"))
    plain = residual_plot(Y, x, fit_regression(Y, x))
    assert np.allclose(by_formula.lines[0].get_ydata(), plain.lines[0].get_ydata())
    assert np.allclose(by_formula.lines[1].get_ydata(), plain.lines[1].get_ydata())


def test_values_whose_squares_overflow_are_drawn():
    x = np.random.default_rng(0).lognormal(size=30)
    huge, plain = (
        before_after_plot(unit * x, pk.fit(unit * x, "box-cox"), kinds=["qq"])[0, 0] for unit in (2.0**1000, 1.0)
    )
    np.testing.assert_allclose(huge.lines[0].get_ydata(), plain.lines[0].get_ydata(), atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*no values")
@pytest.mark.parametrize("empty", [0, 2])
def test_an_empty_column_leaves_its_panels_empty(empty):
    X = skewed()
    X[:, empty] = np.nan
    panels = before_after_plot(X, pk.fit(X))
    assert [[text.get_text() for text in panel.texts] for panel in panels[empty]] == [["no values"]] * 2
    assert panels[empty, 0].get_title() == f"column {empty}"
    drawn = np.delete(panels, empty, axis=0)
    assert all(panel.has_data() for panel in drawn.flat)
    assert drawn[0, 0].get_legend() is not None
    with pytest.raises(ValueError, match=f"column {empty} has no values; there is nothing to draw"):
        qq_plot(X, pk.fit(X), column=empty)


# --- details of drawing ------------------------------------------------------------------------------


def test_the_diagonal_and_the_least_and_greatest_bands():
    X = skewed()
    fit = pk.fit(X)
    diagonal = qq_plot(X, fit).lines[2]
    assert (diagonal.get_xy1(), diagonal.get_slope()) == ((0.0, 0.0), 1.0)
    for band in (0.0, 1.0, -0.5, np.nan, True):
        with pytest.raises(ValueError, match="band must be a probability between 0 and 1, or None"):
            qq_plot(X, fit, band=band)


def test_points_in_one_cell_of_the_grid_are_drawn_by_the_first_and_the_last_of_all():
    ax = plt.subplots()[1]
    scores = np.array([0.0011, 0.0012, 0.0013, 0.3, 0.30001, 0.30002])
    values = np.array([0.0021, 0.0022, 0.0031, 0.3, 0.30001, 0.30002])
    draw_points(ax, scores, values, np.ones(6, bool), marker=".")
    draw_points(ax, scores, values, np.array([True, True, False, False, False, False]), marker=".")
    assert ax.lines[0].get_xdata().tolist() == [0.0011, 0.3, 0.30002]
    assert ax.lines[0].get_ydata().tolist() == [0.0021, 0.3, 0.30002]
    assert ax.lines[1].get_xdata().tolist() == [0.0011, 0.0012]
    assert ax.lines[0].get_linestyle() == "None"
    draw_points(ax, scores[:3], np.array([0.0021, 0.0022, 0.0053]), np.ones(3, bool), marker=".")
    assert ax.lines[2].get_xdata().tolist() == [0.0011, 0.0013]


def test_panels_have_one_size_whatever_their_number():
    X = skewed(p=5)
    axes = before_after_plot(X, pk.fit(X))
    figure = axes[0, 0].figure
    assert figure.get_size_inches().tolist() == pytest.approx([12.0, 8.1])  # two columns a row, two panels each
    assert len(figure.axes) == 10  # the sixth place is empty
    for k, panels in enumerate(axes):
        for i, panel in enumerate(panels):
            left, low, right, top = panel.get_position().extents * np.tile(figure.get_size_inches(), 2)
            column, row = 2 * (k % 2) + i, k // 2
            assert (left, right) == pytest.approx((3.0 * column + 0.62, 3.0 * column + 2.9))
            assert (8.1 - top, 8.1 - low) == pytest.approx((2.7 * row + 0.5, 2.7 * row + 2.2))


def test_more_kinds_than_fit_in_a_row_take_a_row_for_each_column():
    X = skewed(20, 2)
    axes = before_after_plot(X, pk.fit(X), kinds=["histogram"] * 5)
    assert axes.shape == (2, 5)
    assert axes[0, 0].figure.get_size_inches().tolist() == pytest.approx([15.0, 5.4])


def test_a_figure_holds_at_most_so_many_panels(monkeypatch):
    monkeypatch.setattr("powerkern.plot._histograms._MOST_PANELS", 4)
    X = skewed(20, 3)
    assert before_after_plot(X, pk.fit(X), columns=[0, 1]).shape == (2, 2)
    with pytest.raises(ValueError, match="a figure holds at most 4 panels, not 6"):
        before_after_plot(X, pk.fit(X))


@pytest.mark.parametrize(("n", "n_bins"), [(1, 8), (20, 8), (399, 21), (100_000, 80)])
def test_bins_follow_freedman_and_diaconis_within_limits(n, n_bins):
    edges = bin_edges(n)
    assert edges.size == n_bins + 1
    assert edges[[0, -1]].tolist() == [-4.0, 4.0]


def test_a_band_of_a_large_sample_is_computed_at_a_symmetric_selection_of_ranks():
    for n in (2, 3, 300, 2001):
        band = simultaneous_band(n, 0.9)
        scores = scipy.stats.norm.ppf((np.arange(1, n + 1) - 1 / 3) / (n + 1 / 3))
        assert np.isin(band.scores, scores).all()
        np.testing.assert_allclose(band.scores, -band.scores[::-1], atol=1e-12)
        assert (band.scores[0], band.scores[-1]) == (scores[0], scores[-1])
        assert band.scores.size <= min(n, 120)
    assert simultaneous_band(1, 0.9).low[0] == pytest.approx(-1.645, abs=0.1)


def test_equal_values_and_one_value_stand_at_zero():
    assert standardize_values(np.full(5, 3.0)).tolist() == [0.0] * 5
    assert standardize_values(np.array([7.0])).tolist() == [0.0]
    assert standardize_values(np.array([1e308, -1e308])).tolist() == [1.0, -1.0]


def test_rows_are_named_by_an_index_that_does_more_than_count():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert row_names(frame) is None
    assert row_names(frame.to_numpy()) is None
    assert row_names([1.0, 2.0]) is None  # lists have a method `index`
    assert row_names(frame.set_axis([10, 20])) == ["10", "20"]


@pytest.mark.filterwarnings("ignore:.*no values")
def test_residuals_that_are_never_both_there_are_refused():
    Y, x = responses()
    fit = fit_regression(Y, x)
    with pytest.raises(ValueError, match="column 1: no row has a residual both before and after the transform"):
        residual_plot(np.column_stack([Y[:, 0], np.full(60, np.nan)]), x, fit, column=1)


def test_residuals_without_an_intercept_are_those_through_the_origin():
    Y, x = responses()
    fit = fit_regression(Y, x, intercept=False)
    before = residual_plot(Y, x, fit).lines[0].get_ydata()
    residuals = (Y[:, 0] - 1.0) - x @ np.linalg.lstsq(x, Y[:, 0] - 1.0, rcond=None)[0]
    np.testing.assert_allclose(before, np.sort(residuals / np.sqrt(np.mean(residuals**2))), atol=1e-8)
    ax = residual_plot(Y, x, fit)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("normal score", "standardized residual")
