"""Pictures are tested by the data of what is drawn."""

from __future__ import annotations

import itertools

import numpy as np
import processes
import pytest
import scipy.stats

import powerkern as pk

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from powerkern.cellwise import ddc, wrapped_pca  # noqa: E402
from powerkern.completion import RankProfile, rank_profile  # noqa: E402
from powerkern.joint import fit_joint  # noqa: E402
from powerkern.outliers import fit_scaling  # noqa: E402
from powerkern.plot import (  # noqa: E402
    before_after_plot,
    cell_map,
    elbow_plot,
    forest_plot,
    histogram_plot,
    lambda_map,
    objective_plot,
    outlier_map,
    profile_plot,
    qq_plot,
    reliability_plot,
    residual_plot,
    score_plot,
    search_plot,
    sensitivity_plot,
)
from powerkern.plot._band import simultaneous_band  # noqa: E402
from powerkern.plot._drawing import shortened  # noqa: E402
from powerkern.regression import fit_regression  # noqa: E402
from powerkern.sensitivity import sensitivity_curve  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def skewed(n=120, p=3, seed=0):
    return np.random.default_rng(seed).lognormal(size=(n, p))


# --- QQ plots -----------------------------------------------------------------------------------------


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
    fit = pk.fit(x, "box-cox", "rewml")
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
    with pytest.raises(ValueError, match="there is no column 3; there are 3"):
        qq_plot(X, fit, column=3)


def test_one_column_may_be_a_vector():
    x = skewed()[:, 0]
    assert len(qq_plot(x, pk.fit(x)).lines[1].get_ydata()) == 120


def test_many_points_are_thinned_to_what_can_be_seen():
    x = np.random.default_rng(0).standard_normal(200_000)
    x[:3] = 30.0, -35.0, 35.0
    ax = qq_plot(x, pk.fit(x, lmbda=1.0))
    scores = scipy.stats.norm.ppf((np.arange(1, x.size + 1) - 1 / 3) / (x.size + 1 / 3))
    before = np.sort((x - x.mean()) / x.std())
    points = ax.lines[0].get_xydata()
    assert len(points) < 4000
    # every point has a drawn one next to it, and the outermost are all there
    next_to = np.clip(np.searchsorted(points[:, 0], scores, side="right") - 1, 0, None)
    for axis, values in enumerate((scores, before)):
        assert np.abs(points[next_to, axis] - values).max() <= 0.006 * np.hypot(1.0, np.abs(values)).max()
    assert np.array_equal(points[[0, -2, -1], 1], before[[0, -2, -1]])


@pytest.mark.parametrize("n", [1, 2, 5, 50, 700])
def test_the_band_holds_whole_normal_samples(n):
    """95 of 100 standard normal samples, whatever their size: the Monte Carlo error of both simulations is within 2."""
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


# --- histograms, many columns -------------------------------------------------------------------------


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
        assert np.sum(density * np.diff(edges)) == pytest.approx(np.count_nonzero(inside) / 399)
        beyond = np.count_nonzero(~inside & ~np.isnan(values))
        assert (f"({beyond} beyond)" in patch.get_label()) == (beyond > 0)
    z, density = ax.lines[0].get_data()
    assert np.allclose(density, scipy.stats.norm.pdf(z))


def test_many_columns_in_one_figure():
    X = skewed(p=5)
    fit = pk.fit(X, "box-cox", column_names=list("abcde"))
    axes = before_after_plot(X, fit, columns=["e", 0, 2])
    assert axes.shape == (3, 2)
    assert [ax.get_title().split(",")[0] for ax in axes[:, 0]] == ["e", "a", "c"]
    alone = qq_plot(X, fit, column="e")
    for one, other in zip(axes[0, 1].lines[:2], alone.lines[:2], strict=True):
        assert np.array_equal(one.get_xydata(), other.get_xydata())
    assert len(axes[0, 0].figure.axes) == 6  # none is empty
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
        ({"columns": [0] * 101}, ValueError, "202 panels do not fit"),
    ],
)
def test_bad_choices_of_columns(options, error, message):
    X = skewed(p=1)
    with pytest.raises(error, match=message):
        before_after_plot(X, pk.fit(X, column_names=["a"]), **options)


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
    title.figure.canvas.draw()  # dollars are no formula


@pytest.mark.parametrize(("label", "length", "expected"), [("abcdefghij", 7, "abc…hij"), ("abcdef", 6, "abcdef")])
def test_labels_are_shortened_in_the_middle(label, length, expected):
    assert shortened(label, length) == expected


def test_lines_and_text_follow_a_dark_style():
    X = skewed()
    with plt.style.context("dark_background"):
        ax = qq_plot(X, pk.fit(X))
        diagonal = ax.lines[2]
        assert matplotlib.colors.to_rgb(diagonal.get_color()) == (1.0, 1.0, 1.0)
        assert matplotlib.colors.to_rgb(ax.lines[0].get_color()) == pytest.approx((0.4, 0.4, 0.4))


# --- forests ------------------------------------------------------------------------------------------


def intervals_of(ax):
    return {round(float(path.vertices[0, 1])): tuple(path.vertices[:, 0]) for path in ax.collections[0].get_paths()}


@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_forest_plot_has_lambdas_and_intervals():
    X = skewed(p=4)
    X[:, 2] = 1.0
    fit = pk.fit(X, "box-cox", column_names=list("abcd"))
    ax = forest_plot(fit, level=0.9)
    low, high = map(np.asarray, fit.confint(level=0.9))
    assert intervals_of(ax) == {j: pytest.approx((low[j], high[j])) for j in (0, 1, 3)}
    assert np.array_equal(ax.lines[0].get_xydata(), np.column_stack([fit.lmbda, np.arange(4)]))
    assert ax.lines[1].get_ydata().tolist() == [2]  # hollow: no interval
    assert ax.get_xlabel() == "lambda, 90% interval"
    assert ax.get_ylim() == (3.5, -0.5)


def test_forest_plot_in_order_and_of_chosen_columns():
    X = skewed(p=4)
    fit = pk.fit(X, "box-cox", column_names=list("abcd"))
    ax = forest_plot(fit, columns=["d", "b", 0], sort=True)
    order = sorted((3, 1, 0), key=lambda j: -fit.lmbda[j])
    assert ax.lines[0].get_xdata().tolist() == fit.lmbda[order].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["abcd"[j] for j in order]
    low, high = map(np.asarray, fit.confint())
    assert intervals_of(ax) == {k: pytest.approx((low[j], high[j])) for k, j in enumerate(order)}


def test_forest_plot_of_an_extreme_lambda_keeps_its_limits():
    x = np.random.default_rng(0).normal(2000.0, 1.0, size=(300, 1))
    X = np.column_stack([x**20.0 / 1e60, skewed(300, 1)])
    fit = pk.fit(X, "box-cox", lmbda=[-279.8, 0.5])
    ax = forest_plot(fit, limits=(-3.0, 3.0))
    assert [text.get_text() for text in ax.texts] == ["-280"]
    assert ax.get_xlim()[0] > -4.0
    assert ax.lines[0].get_xdata().tolist() == [0.5]
    for limits in ((1.0, -1.0), (-1.0, 0.0, 1.0), 3.0, ("low", "high"), (0.0, np.inf)):
        with pytest.raises(ValueError, match="limits must be two finite numbers, the smaller one first"):
            forest_plot(fit, limits=limits)


def test_forest_plots_of_other_fits():
    Y, x = responses()
    regression, joint = fit_regression(Y, x), fit_joint(Y, column_names=["u", "v"])
    for fit in (regression, joint):
        low, high = map(np.asarray, fit.confint(level=0.95))
        assert intervals_of(forest_plot(fit)) == {j: pytest.approx((low[j], high[j])) for j in (0, 1)}
    with pytest.raises(ValueError, match="X goes with a PowerFit or a JointFit"):
        forest_plot(regression, Y)
    again = pk.PowerFit.from_json(pk.fit(Y).to_json())
    assert intervals_of(forest_plot(again, Y)) == intervals_of(forest_plot(pk.fit(Y)))
    robust = pk.fit(Y, estimator="rewml")
    assert not intervals_of(forest_plot(robust, level=None))


# --- profiles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_profile_plot_shows_the_likelihood_and_its_interval(level):
    X = skewed()
    fit = pk.fit(X, "box-cox")
    ax = profile_plot(fit, column=2, level=level)
    lmbdas, llf = ax.lines[0].get_data()
    assert np.allclose(llf, [scipy.stats.boxcox_llf(lmbda, X[:, 2]) for lmbda in lmbdas])
    assert ax.lines[1].get_xdata()[0] == fit.lmbda[2]
    drop = 0.5 * scipy.stats.chi2.ppf(level, 1)
    assert ax.lines[2].get_ydata()[0] == pytest.approx(-fit.nll[2] - drop)
    span = ax.patches[0]
    low, high = span.get_x(), span.get_x() + span.get_width()
    assert (low, high) == pytest.approx([end[2] for end in fit.confint(level=level)])
    assert lmbdas[0] < low < high < lmbdas[-1]


def test_profile_plot_takes_the_data_again():
    X = skewed()
    fit = pk.PowerFit.from_json(pk.fit(X).to_json())
    with pytest.raises(ValueError, match="pass X"):
        profile_plot(fit)
    lmbdas = [0.0, 0.5]
    drawn = profile_plot(fit, X, lmbdas=lmbdas).lines[0]
    assert np.array_equal(drawn.get_ydata(), -fit.profile(lmbdas, X)[0])


def test_profile_plot_needs_a_maximum_or_points():
    fit = pk.fit(skewed(), lmbda=0.3)
    with pytest.raises(ValueError, match=r"no likelihood interval \(lambda as given\); pass lmbdas"):
        profile_plot(fit)
    assert len(profile_plot(fit, lmbdas=[0.2, 0.3]).lines[0].get_xdata()) == 2


# --- cell maps ----------------------------------------------------------------------------------------


def test_cell_map_colours_what_is_far_out():
    X = np.random.default_rng(0).normal(size=(60, 4))
    fit = pk.fit(X, lmbda=1.0)
    X[3, 1], X[7, 2], X[9, 0] = 4.0, -40.0, np.nan
    drawn = np.ma.filled(cell_map(X, fit).images[0].get_array(), np.nan)
    z = fit.transform(X)
    cutoff = scipy.stats.norm.ppf(0.995)
    assert drawn[3, 1] == pytest.approx((z[3, 1] - cutoff) / cutoff)
    assert drawn[7, 2] == -1.0
    assert np.isnan(drawn[9, 0])
    assert (drawn[np.abs(z) <= cutoff] == 0.0).all()


def test_the_cell_map_of_a_robust_fit_colours_its_outliers():
    X = skewed()
    X[5:9, 1], X[20, 2] = 1e5, np.nan
    fit = pk.fit(X, "box-cox", pk.RewML(cutoff=0.99))
    drawn = np.ma.filled(cell_map(X, fit).images[0].get_array(), np.nan)
    assert np.array_equal(np.abs(drawn) > 0.0, fit.outliers(X))
    assert (drawn[5:9, 1] == 1.0).all()


def drawn_cells(ax):
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def test_blocks_of_large_cell_maps_are_their_furthest_cells():
    X = np.random.default_rng(0).normal(size=(101, 7))
    fit = pk.fit(X, lmbda=1.0)
    X[50, 2] = np.nan
    X[6:12, :3] = np.nan
    cutoff, block = 0.5, 18
    ax = cell_map(X, fit, cutoff=cutoff, max_shape=(20, 3))
    z = fit.transform(X)
    darkest = 2.0 * scipy.stats.norm.isf((1.0 - (2.0 * scipy.stats.norm.cdf(cutoff) - 1.0) ** (1.0 / block)) / 2.0)
    drawn = drawn_cells(ax)
    assert drawn.shape == (17, 3)
    for (i, j), value in np.ndenumerate(drawn):
        cells = z[6 * i : 6 * i + 6, 3 * j : 3 * j + 3].ravel()
        cells = cells[~np.isnan(cells)]
        if not cells.size:
            assert (i, j) == (1, 0)
            assert np.isnan(value)
            continue
        furthest = cells[np.argmax(np.abs(cells))]
        excess = np.clip((abs(furthest) - cutoff) / (darkest - cutoff), 0.0, 1.0)
        assert value == pytest.approx(np.copysign(excess, furthest))
    assert ax.get_ylim() == (100.5, -0.5)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column in blocks of 3", "row in blocks of 6")


@pytest.mark.parametrize("shape", [(3000, 500), (20_000, 40), (300, 900)])
def test_a_large_cell_map_loses_no_outlier(shape):
    X = np.random.default_rng(0).normal(size=shape)
    fit = pk.fit(X, lmbda=1.0)
    X[150:160, 20:23] = 40.0
    X[7, 11] = -40.0
    ax = cell_map(X, fit)
    drawn = drawn_cells(ax)
    rows, columns = (-(-size // limit) for size, limit in zip(shape, (200, 100), strict=True))
    high, low = (drawn == 1.0), (drawn == -1.0)
    assert high[150 // rows, 20 // columns]
    assert low[7 // rows, 11 // columns]
    planted = np.zeros(shape, dtype=bool)
    planted[150:160, 20:23] = True
    blocks = {(i // rows, j // columns) for i, j in zip(*np.nonzero(planted), strict=True)}
    assert set(zip(*np.nonzero(high), strict=True)) == blocks
    assert np.count_nonzero(low) == 1
    assert np.mean(np.abs(drawn) > 0.5) < 0.05  # what is only noise is pale
    squares = ax.collections[0]
    assert len(squares.get_offsets()) == np.count_nonzero(np.abs(drawn) == 1.0)
    assert any(np.abs(at - [11, 7]).max() < max(rows, columns) for at in squares.get_offsets())


@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_cell_map_hatches_what_was_not_fitted_and_names_what_there_is():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(skewed(12, 5), columns=list("abcde"), index=[f"sample {i}" for i in range(12)])
    X["b"] = X["c"] = X["e"] = 1.0
    X.iloc[3, 0] = np.nan
    ax = cell_map(X, pk.fit(X))
    hatched = [(patch.get_x(), patch.get_width()) for patch in ax.patches if patch.get_hatch()]
    assert hatched == [(0.5, 2.0), (3.5, 1.0)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["not fitted"]
    assert [label.get_text() for label in ax.get_xticklabels()] == list("abcde")
    assert [label.get_text() for label in ax.get_yticklabels()] == list(X.index)
    assert np.isnan(drawn_cells(ax)[3, 0])
    assert cell_map(X[["a", "d"]].to_numpy(), pk.fit(X[["a", "d"]].to_numpy())).get_legend() is None


def test_many_names_of_a_cell_map_are_thinned():
    X = np.random.default_rng(0).normal(size=(20, 300))
    names = [f"feature {j}" for j in range(300)]
    ax = cell_map(X, pk.fit(X, column_names=names))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [names[int(at)] for at in ax.get_xticks()]
    assert 20 <= len(labels) <= 40


@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_cell_map_leaves_columns_that_were_not_fitted_blank():
    X = np.column_stack([skewed()[:, 0], np.full(120, 1e9)])
    drawn = np.ma.filled(cell_map(X, pk.fit(X)).images[0].get_array(), np.nan)
    assert np.isnan(drawn[:, 1]).all()
    assert not np.isnan(drawn[:, 0]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": 0.0}, "cutoff must be a positive number"),
        ({"cutoff": np.nan}, "cutoff must be a positive number"),
        ({"max_shape": (0, 5)}, "max_shape must be two whole numbers of at least 1"),
        ({"cutoff": "a"}, "cutoff must be a positive number"),
        ({"cutoff": np.inf}, "cutoff must be a positive number"),
        ({"max_shape": (2.5, 5)}, "max_shape must be two whole numbers of at least 1"),
        ({"max_shape": 10}, "max_shape must be two whole numbers of at least 1"),
    ],
)
def test_cell_map_options(options, message):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=message):
        cell_map(X, pk.fit(X), **options)


def test_a_huge_cutoff_hides_no_cell_beyond_it():
    X = np.random.default_rng(0).normal(size=(20, 3))
    fit = pk.fit(X)
    X[4, 1] = 1e4
    drawn = cell_map(X, fit, cutoff=50.0).images[0].get_array()
    assert drawn[4, 1] == 1.0
    assert np.count_nonzero(drawn) == 1


@pytest.mark.parametrize("draw", [qq_plot, histogram_plot, before_after_plot, cell_map])
def test_what_is_no_fit_is_said(draw):
    X = skewed()
    with pytest.raises(TypeError, match="fit must be a PowerFit or a JointFit, got ndarray"):
        draw(pk.fit(X), X)


def test_other_arguments_of_the_wrong_kind():
    X = skewed()
    with pytest.raises(TypeError, match="fit must be a WrappedPCA"):
        outlier_map(pk.fit(X))
    with pytest.raises(TypeError, match="columns must be a sequence of positions or names, got 0"):
        before_after_plot(X, pk.fit(X), columns=0)
    with pytest.raises(ValueError, match="band must be a probability between 0 and 1, or None, got 'a'"):
        qq_plot(X, pk.fit(X), band="a")
    with pytest.raises(TypeError, match="estimators must be a sequence of names, or a mapping, got 'mle'"):
        sensitivity_plot(X[:, 0], [1.0], estimators="mle")


def test_a_column_without_values_has_no_qq_plot():
    fit = pk.fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match="column 1 has no values"):
        qq_plot(np.column_stack([np.ones(4), np.full(4, np.nan)]), fit, column=1)
    with pytest.raises(TypeError, match="integer"):
        qq_plot(np.ones((4, 2)), fit, column=1.0)


def test_cell_map_needs_standardised_values():
    X = skewed()
    with pytest.raises(ValueError, match="standardize=True"):
        cell_map(X, pk.fit(X, standardize=False))


# --- objectives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["mle", "rewml", "carroll", "mtl", "ks", "ppcc"])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_objective_plot_marks_minima_start_and_end(family, estimator):
    X = skewed(n=50) + 5.0
    fit = pk.fit(X, family, estimator, column_names=["a", "b", "c"])
    ax = objective_plot(fit, column="b")
    curve, minima, start, end = ax.lines
    lmbdas, values = curve.get_data()
    assert np.array_equal(values, fit.objective_curve(lmbdas)[1])
    lowest = [k for k in range(1, len(values) - 1) if values[k - 1] >= values[k] < values[k + 1]]
    assert np.array_equal(minima.get_xdata(), lmbdas[lowest])
    assert np.array_equal(minima.get_ydata(), values[lowest])
    assert fit.objective[1] == pytest.approx(values.min(), abs=1e-9)
    assert start.get_xdata()[0] == fit.lmbda0[1]
    assert np.abs(minima.get_xdata() - fit.lmbda0[1]).min() < 1e-3
    assert end.get_xdata()[0] == fit.lmbda[1]
    assert lmbdas[0] < fit.lmbda[1] < lmbdas[-1]
    assert ax.get_title().startswith("b, ")


def test_objective_plot_takes_lambdas_and_the_data_again():
    x = skewed()[:, 0]
    fit = pk.PowerFit.from_json(pk.fit(x, "box-cox", "rewml").to_json())
    with pytest.raises(ValueError, match="pass X"):
        objective_plot(fit)
    points = np.linspace(-1.0, 1.0, 20)
    found = objective_plot(fit, x, lmbdas=points).lines[0].get_xdata()
    assert np.array_equal(found, np.union1d(points, fit.lmbda0))


def test_objective_plot_of_values_that_are_mostly_equal():
    x = np.append(np.full(30, 2.0), np.arange(1.0, 12.0))
    lmbdas = objective_plot(pk.fit(x, "box-cox")).lines[0].get_xdata()
    assert np.isfinite(lmbdas).all()
    assert np.ptp(lmbdas) > 1.0


def test_a_column_without_a_fit_has_no_objective():
    with pytest.warns(UserWarning, match="column 1"):
        fit = pk.fit(np.column_stack([skewed()[:, 0], np.ones(120)]), "box-cox", "rewml")
    with pytest.raises(ValueError, match="column 1 has no objective"):
        objective_plot(fit, column=1)


# --- sensitivity --------------------------------------------------------------------------------------


def test_sensitivity_is_the_change_times_the_size():
    x = np.random.default_rng(0).normal(size=30)
    z = np.array([-3.0, 0.0, 8.0])
    ax = sensitivity_plot(x, z, estimators=["mle"])
    expected = [31 * (pk.fit(np.append(x, one)).lmbda[0] - pk.fit(x).lmbda[0]) for one in z]
    assert np.allclose(ax.lines[0].get_ydata(), expected)


def test_sensitivity_counts_values_only():
    x, z = np.random.default_rng(0).normal(size=30), np.array([-1.0, 4.0])
    padded = np.insert(x, 7, np.nan)
    whole, holes = (sensitivity_plot(sample, z, estimators=["mle"]).lines[0] for sample in (x, padded))
    assert np.array_equal(whole.get_ydata(), holes.get_ydata())
    with pytest.raises(ValueError, match=r"one-dimensional, got shapes \(10, 3\) and \(2,\)"):
        sensitivity_plot(x.reshape(10, 3), z)


def test_sensitivity_with_options_of_the_estimators():
    x, z = np.random.default_rng(0).normal(size=60), [-5.0, 0.5, 3.0]
    named = {"once": pk.RewML(n_reweight=1), "trimmed": pk.MTL(h=0.9)}
    for line in sensitivity_plot(x, z, estimators=named).lines[:2]:
        assert np.array_equal(line.get_ydata(), sensitivity_curve(x, z, estimator=named[line.get_label()]))


def test_sensitivity_of_a_robust_estimator_is_bounded():
    x = np.random.default_rng(0).normal(size=60)
    mle, rewml = sensitivity_plot(x, [5.0, 50.0, 500.0]).lines[:2]
    assert [mle.get_label(), rewml.get_label()] == ["mle", "rewml"]
    base = pk.fit(x, estimator="rewml").lmbda[0]
    expected = 61 * (pk.fit(np.append(x, 5.0), estimator="rewml").lmbda[0] - base)
    assert rewml.get_ydata()[0] == pytest.approx(expected)
    assert np.ptp(rewml.get_ydata()) < 1.0  # left out, however far it is
    assert np.ptp(mle.get_ydata()) > 10.0


# --- reliability --------------------------------------------------------------------------------------


def test_reliability_of_each_bin_that_has_scores():
    y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9, 1.0]
    ax = reliability_plot(y, p, strategy="equal-width", n_bins=4)
    assert np.allclose(ax.lines[1].get_xydata(), [[0.15, 0.0], [0.3, 1.0], [0.9, 2.0 / 3.0]])
    sizes = ax.collections[0].get_sizes()
    assert np.allclose(sizes / sizes.sum(), [2 / 6, 1 / 6, 3 / 6])


# --- rules for outlier scores --------------------------------------------------------------------------

SCORES = np.append(np.random.default_rng(0).normal(size=190), np.random.default_rng(1).normal(8.0, size=10))


@pytest.mark.parametrize("method", ["gaussian", "huber", "linear", "gamma", "yeo-johnson"])
def test_score_plot_shows_densities_and_what_they_leave_over(method):
    scores = np.append(SCORES + 5.0, [np.nan, np.inf])
    ax = score_plot(scores, {"one": {"method": method}, "two": {"center": "median"}}, bins=30)
    below = ax.figure.axes[-1]
    x, density = ax.lines[0].get_data()
    step = x[1] - x[0]
    scaling = fit_scaling(SCORES + 5.0, method=method)
    assert (density * step).sum() == pytest.approx(np.diff(scaling.cdf([x[0] - step / 2, x[-1] + step / 2]))[0])
    share, edges = np.histogram(SCORES + 5.0, 30, density=True)
    expected = share - np.diff(scaling.cdf(edges)) / np.diff(edges)
    assert below.lines[0].get_ydata() == pytest.approx(expected, abs=1e-12)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


def test_score_plot_of_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="one detector"):
        score_plot(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no finite values"):
        score_plot([np.nan, np.inf])
    with pytest.raises(ValueError, match="placed by hand"):
        score_plot(SCORES, ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


# --- searches -----------------------------------------------------------------------------------------


def test_search_plot_shows_trials_and_the_best_so_far():
    scores = [np.nan, 0.4, 0.2, np.nan, 0.9, 0.5]
    trials, best = search_plot(scores).lines
    assert np.array_equal(trials.get_xdata(), [1, 2, 3, 4, 5, 6])
    assert np.array_equal(trials.get_ydata(), scores, equal_nan=True)
    assert np.array_equal(best.get_ydata(), [np.nan, 0.4, 0.4, 0.4, 0.9, 0.9], equal_nan=True)


@pytest.mark.parametrize("scores", [[], [[0.1, 0.2]]])
def test_search_plot_takes_one_score_a_trial(scores):
    with pytest.raises(ValueError, match="one-dimensional array of at least one score"):
        search_plot(scores)


def marks_of(ax):
    """Where the marks of a map are, and what their labels say they score."""
    return {
        line.get_label().split(":")[0]: (*np.ravel(line.get_data()), float(line.get_label().split(":")[1]))
        for line in ax.lines
    }


def test_lambda_map_marks_the_optima():
    first, second = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])
    scores = np.random.default_rng(4).random((4, 3)).round(3)
    ax = lambda_map(scores, [first, second], marks={"likely": (0.2, 1.9)})
    best = max(itertools.product(range(4), range(3)), key=lambda at: scores[at])
    equal = max([0.0, 1.0, 2.0], key=lambda lmbda: scores[int(lmbda) + 1, int(lmbda)])
    apart = int(np.argmax(scores[:, 1])), int(np.argmax(scores[2]))
    assert marks_of(ax) == {
        "full": (first[best[0]], second[best[1]], scores[best]),
        "spherical": (equal, equal, scores[int(equal) + 1, int(equal)]),
        "diagonal": (first[apart[0]], second[apart[1]], scores[apart]),
        "likely": (0.2, 1.9, scores[1, 2]),
    }
    assert np.array_equal(np.ravel(ax.collections[0].get_array()), scores.T.ravel())  # across: the first lambda


def test_lambda_map_of_lambdas_that_are_never_equal_and_of_missing_scores():
    ax = lambda_map([[np.nan, 0.5], [0.25, np.nan]], [[0.0, 1.0], [2.0, 3.0]])
    assert marks_of(ax) == {"full": (0.0, 3.0, 0.5), "diagonal": (1.0, 2.0, 0.25)}


@pytest.mark.parametrize(
    ("scores", "lmbdas", "message"),
    [
        ([[0.1, 0.2]], [[0.0], [0.0]], r"a table of two lists of lambdas, got shape \(1, 2\)"),
        ([0.1, 0.2], [[0.0, 1.0], [0.0]], "a table of two lists of lambdas"),
        ([[0.1]], [[[0.0]], [0.0]], "a table of two lists of lambdas"),
        ([[np.nan]], [[0.0], [0.0]], "no pair of lambdas has a score"),
    ],
)
def test_lambda_map_refuses_what_is_no_map(scores, lmbdas, message):
    with pytest.raises(ValueError, match=message):
        lambda_map(scores, lmbdas)


# --- all of them --------------------------------------------------------------------------------------

X = skewed()
FIT = pk.fit(X)
DRAW = {
    "qq_plot": lambda ax: qq_plot(X, FIT, ax=ax),
    "histogram_plot": lambda ax: histogram_plot(X, FIT, ax=ax),
    "forest_plot": lambda ax: forest_plot(FIT, ax=ax),
    "reliability_plot": lambda ax: reliability_plot([0, 1], [0.1, 0.9], ax=ax),
    "profile_plot": lambda ax: profile_plot(FIT, ax=ax),
    "cell_map": lambda ax: cell_map(X, FIT, ax=ax),
    "score_plot": lambda ax: score_plot(SCORES, ax=ax),
    "search_plot": lambda ax: search_plot([0.1, 0.3], ax=ax),
    "lambda_map": lambda ax: lambda_map([[0.1, 0.3], [0.2, 0.4]], [[0.0, 1.0], [0.0, 1.0]], ax=ax),
    "sensitivity_plot": lambda ax: sensitivity_plot(X[:, 0], [0.0, 1.0], estimators=["mle"], ax=ax),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_axes_given_are_used_and_returned(draw):
    figure, (left, right) = plt.subplots(1, 2)
    assert draw(right) is right
    assert not left.has_data()
    figure.canvas.draw()
    assert draw(None).figure is not figure


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib.pyplot'] = None\n"
        "import powerkern as pk; from powerkern.plot import qq_plot\n"
        "x = [1.0, 2.0, 5.0]; qq_plot(x, pk.fit(x))"
    )
    _, complaint = processes.start(code).communicate()
    assert "powerkern.plot needs matplotlib: pip install 'powerkern[plot]'" in complaint


def test_joint_fits_are_drawn_column_by_column() -> None:
    X = np.random.default_rng(0).lognormal(size=(60, 2))
    joint = fit_joint(X, family="box-cox")
    for one, other in ((qq_plot(X, joint, column=1), qq_plot(X, joint.columns, column=1)),):
        for line, expected in zip(one.lines, other.lines, strict=True):
            assert np.array_equal(line.get_xydata(), expected.get_xydata())
    cells = [cell_map(X, fit).images[0].get_array() for fit in (joint, joint.columns)]
    assert np.array_equal(cells[0], cells[1])


# --- regression fits ----------------------------------------------------------------------------------


def responses(n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    eta = 5.0 + x @ [1.0, -0.5]
    return (eta[:, np.newaxis] + 0.3 * rng.normal(size=(n, 2))) ** [2.0, 3.0], x


def test_profile_of_a_regression_fit_has_the_interval():
    Y, x = responses()
    fit = fit_regression(Y, x)
    ax = profile_plot(fit, column=1, lmbdas=np.linspace(-0.5, 1.0, 31))
    curve = ax.lines[0]
    assert np.allclose(curve.get_ydata(), -fit.profile(curve.get_xdata())[1])
    low, high = (end[1] for end in fit.confint(level=0.95))
    span = next(patch for patch in ax.patches)
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx((low, high))
    with pytest.raises(ValueError, match="X goes with a PowerFit"):
        profile_plot(fit, x)
    with pytest.raises(TypeError, match="of a JointFit"):
        profile_plot(fit_joint(Y))


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


# --- outlier maps ---------------------------------------------------------------------------------------


def _with_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(100, 5))
    X[[7, 9]] = [[9.0] * 5, [-20.0] * 5]
    return X


def test_outlier_map_draws_every_row_once_and_the_cutoffs():
    fit = wrapped_pca(_with_outliers(), 2)
    ax = outlier_map(fit)
    regular, outlying, vertical, horizontal = ax.lines
    assert regular.get_xdata().size + outlying.get_xdata().size == 100
    assert outlying.get_xdata().size == fit.outliers.sum()
    assert vertical.get_xdata()[0] == fit.score_cutoff
    assert horizontal.get_ydata()[0] == fit.orthogonal_cutoff


def test_outlier_map_labels():
    fit = wrapped_pca(_with_outliers(), 2)
    assert [text.get_text() for text in outlier_map(fit, labels=2).texts] == ["9", "7"]
    names = [f"row {i}" for i in range(100)]
    texts = {text.get_text() for text in outlier_map(fit, labels=names).texts}
    assert texts == {names[i] for i in np.flatnonzero(fit.outliers)}
    with pytest.raises(ValueError, match="99 entries"):
        outlier_map(fit, labels=names[1:])


def test_outlier_map_of_new_rows():
    fit = wrapped_pca(_with_outliers(), 2)
    ax = outlier_map(fit, _with_outliers()[:20])
    assert sum(line.get_xdata().size for line in ax.lines[:2]) == 20


# --- ranks ----------------------------------------------------------------------------------------------


def test_elbow_plot_draws_both_errors_and_marks_two_ranks():
    ranks = np.array([1, 2, 4, 7])
    profile = RankProfile(ranks, np.array([4.0, 2.0, 1.0, 0.5]), np.array([5.0, 3.0, 2.5, 2.6]), 4, 2)
    ax = elbow_plot(profile)
    fitted, held, chord, best, elbow = ax.lines
    assert fitted.get_ydata().tolist() == [4.0, 2.0, 1.0, 0.5]
    assert held.get_ydata().tolist() == [5.0, 3.0, 2.5, 2.6]
    assert fitted.get_xdata().tolist() == held.get_xdata().tolist() == [1, 2, 4, 7]
    assert chord.get_xydata().tolist() == [[1.0, 5.0], [4.0, 2.5]]
    assert best.get_xydata().tolist() == [[4.0, 2.5]]
    assert elbow.get_xydata().tolist() == [[2.0, 3.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fitted to", "held out", "best: 4", "elbow: 2"]
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_elbow_plot_of_one_rank_and_on_given_axes():
    given = plt.subplots()[1]
    rng = np.random.default_rng(0)
    assert elbow_plot(rank_profile(rng.normal(size=(20, 5)), [2], random_state=0), ax=given) is given
    assert given.lines[-1].get_label() == "elbow: 2"


def test_elbow_plot_says_what_is_no_profile():
    with pytest.raises(
        TypeError, match=r"profile must be a RankProfile, by powerkern\.completion\.rank_profile, got list"
    ):
        elbow_plot([1.0, 2.0])


# --- maps of deviating cells ----------------------------------------------------------------------------


def test_cell_map_of_deviating_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 4))
    X[7, 2] = X[7, 0] + 4.0
    X[9] = [9.0, -9.0, 9.0, -9.0]
    X[11, 1] = np.nan
    fit = ddc(np.column_stack([np.arange(60), X]))
    ax = cell_map(np.column_stack([np.arange(60), X]), fit)
    drawn = np.ma.filled(ax.images[0].get_array(), np.nan)
    expected = np.clip(np.abs(fit.residuals) / fit.cutoff - 1.0, 0.0, 1.0) * np.sign(fit.residuals)
    np.testing.assert_allclose(drawn, expected)
    assert drawn[7, 2] == 1.0
    assert np.isnan(drawn[11, 1])
    assert ax.lines[0].get_ydata().tolist() == np.flatnonzero(fit.flagged_rows).tolist()
    assert 9 in ax.lines[0].get_ydata()
