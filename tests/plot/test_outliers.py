"""Outlier maps, score plots and reliability diagrams, checked by the data that are drawn."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from powerkern.cellwise import wrapped_pca
from powerkern.outliers import fit_scaling
from powerkern.plot import outlier_map, reliability_plot, score_plot
from powerkern.plot._drawing import label_points

# --- outlier maps ------------------------------------------------------------------------------------


def _with_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(100, 5))
    X[[7, 9]] = [[9.0] * 5, [-20.0] * 5]
    return X


def test_outlier_map_draws_every_row_once_and_the_cutoffs():
    fit = wrapped_pca(_with_outliers(), 2)
    ax = outlier_map(None, fit)
    regular, outlying, vertical, horizontal = ax.lines
    assert regular.get_xdata().size + outlying.get_xdata().size == 100
    assert outlying.get_xdata().size == fit.outliers.sum()
    assert vertical.get_xdata()[0] == fit.score_cutoff
    assert horizontal.get_ydata()[0] == fit.orthogonal_cutoff


@pytest.mark.slow
def test_labels_of_an_outlier_map_do_not_overlap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(150, 6))
    X[5:20] = 9.0 + 0.1 * rng.normal(size=(15, 6))
    for size in ((6.4, 4.8), (3.6, 2.9)):
        ax = plt.subplots(figsize=size, layout="constrained")[1]
        outlier_map(X, wrapped_pca(X, 2), labels=15, ax=ax)
        ax.figure.canvas.draw()
        boxes = [Text.get_window_extent(text) for text in ax.texts] + [ax.get_legend().get_window_extent()]
        assert len(boxes) == 16
        for one, other in itertools.combinations(boxes, 2):
            assert not one.padded(-0.5).overlaps(other.padded(-0.5))


def test_a_label_covers_no_other_point_if_there_is_a_free_place():
    """Other points lie to the right of the labelled point, where its label is tried first."""
    ax = plt.subplots()[1]
    x, y = np.meshgrid([0.5, 0.52, 0.55, 0.58], [0.5, 0.47, 0.53])
    points = np.column_stack([x.ravel(), y.ravel()])
    points = points[~((points[:, 0] == 0.5) & (points[:, 1] != 0.5))]
    ax.plot(*points.T, ".", label="points")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.legend(loc="lower left")
    label_points(ax, points, [0], ["labelled"])
    box = Text.get_window_extent(ax.texts[0])
    assert not any(box.contains(x, y) for x, y in ax.transData.transform(points))


def test_a_label_stands_next_to_its_point_if_nothing_is_in_the_way():
    ax = plt.subplots()[1]
    ax.plot([0.5], [0.5], ".", label="point")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.legend(loc="lower left")
    label_points(ax, np.array([[0.5, 0.5]]), [0], ["labelled"])
    box, (x, y) = Text.get_window_extent(ax.texts[0]), ax.transData.transform((0.5, 0.5))
    gaps = np.maximum([box.x0 - x, box.y0 - y], [x - box.x1, y - box.y1])
    assert (np.abs(gaps) < 4.0 * ax.figure.dpi / 72.0).all()


def test_rows_of_a_frame_are_labelled_by_its_index():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(_with_outliers(), index=[f"bottle {i}" for i in range(100)])
    assert [text.get_text() for text in outlier_map(X, wrapped_pca(X, 2), labels=2).texts] == ["bottle 9", "bottle 7"]


@pytest.mark.slow
def test_outlier_map_labels_the_farthest_rows():
    fit = wrapped_pca(_with_outliers(), 2)
    assert [text.get_text() for text in outlier_map(None, fit, labels=2).texts] == ["9", "7"]
    names = [f"row {i}" for i in range(100)]
    texts = {text.get_text() for text in outlier_map(None, fit, labels=names).texts}
    assert texts == {names[i] for i in np.flatnonzero(fit.outliers)}
    with pytest.raises(ValueError, match="99 entries"):
        outlier_map(None, fit, labels=names[1:])


def test_outlier_map_draws_new_rows():
    fit = wrapped_pca(_with_outliers(), 2)
    ax = outlier_map(_with_outliers()[:20], fit)
    assert sum(line.get_xdata().size for line in ax.lines[:2]) == 20


# --- reliability -------------------------------------------------------------------------------------


def test_reliability_of_each_bin_that_has_scores():
    y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9, 1.0]
    ax = reliability_plot(y, p, strategy="equal-width", n_bins=4)
    assert np.array_equal(ax.lines[0].get_xydata(), [[0.0, 0.0], [1.0, 1.0]])  # the diagonal of perfect calibration
    assert np.allclose(ax.lines[1].get_xydata(), [[0.15, 0.0], [0.3, 1.0], [0.9, 2.0 / 3.0]])
    sizes = ax.collections[0].get_sizes()
    assert np.allclose(sizes / sizes.sum(), [2 / 6, 1 / 6, 3 / 6])
    key = ax.get_legend()
    assert [text.get_text() for text in key.get_texts()] == ["calibrated", "1 scores", "3 scores"]
    assert [handle.get_sizes()[0] for handle in key.legend_handles[1:]] == [sizes.min(), sizes.max()]


# --- rules for outlier scores ------------------------------------------------------------------------


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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["scores", "one", "two"]


def test_score_plot_rejects_scores_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="one detector"):
        score_plot(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no finite values"):
        score_plot([np.nan, np.inf])
    with pytest.raises(ValueError, match="placed by hand"):
        score_plot(SCORES, ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


@pytest.mark.parametrize("bins", [[0.0, 1.0, 1.0, 2.0], [2.0, 2.0]])
def test_edges_of_bins_are_different(bins):
    with pytest.raises(ValueError, match="bins must be strictly ascending edges"):
        score_plot([0.5, 1.5, 2.5], bins=bins)


def test_residuals_are_drawn_at_the_centers_of_the_bins_below_the_histogram():
    edges = np.array([-4.0, -1.0, 0.0, 1.0, 3.0, 12.0])
    ax = score_plot(SCORES, bins=edges)
    below = ax.figure.axes[-1]
    share = np.histogram(SCORES, edges)[0] / SCORES.size
    heights, drawn, _ = ax.patches[0].get_data()
    np.testing.assert_allclose(heights, share / np.diff(edges))
    np.testing.assert_array_equal(drawn, edges)
    fine = np.linspace(-4.0, 12.0, 400)
    scaling = fit_scaling(SCORES, scale="sd")
    assert [line.get_label() for line in ax.lines] == ["mean + sd", "mean + nMAD"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), (fine[1:] + fine[:-1]) / 2.0)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.diff(scaling.cdf(fine)) / np.diff(fine))
    np.testing.assert_allclose(below.lines[0].get_xdata(), [-2.5, -0.5, 0.5, 2.0, 7.5])
    np.testing.assert_allclose(below.lines[0].get_ydata(), (share - np.diff(scaling.cdf(edges))) / np.diff(edges))
    assert below.lines[0].get_color() == ax.lines[0].get_color() != ax.lines[1].get_color()
    assert below.lines[-1].get_ydata() == [0.0, 0.0]
    assert ax.get_gridspec().get_height_ratios() == [3.0, 1.0]
    assert ax.get_position().y0 > below.get_position().y1
    assert ax.get_shared_x_axes().joined(ax, below)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bins": "nosuch"}, ValueError, "bins must be as in numpy.histogram_bin_edges, got 'nosuch'"),
        ({"bins": 0}, ValueError, "bins"),
        ({"rules": ["sd"]}, TypeError, "rules must be a dict from legend names to fit_scaling options, got list"),
    ],
)
def test_score_plot_rejects_other_bins_and_rules(options, error, message):
    with pytest.raises(error, match=message):
        score_plot(SCORES, **options)


def test_an_outlier_map_starts_at_zero_and_labels_ten_rows():
    X = _with_outliers()
    X[20:32] = 9.0 + np.random.default_rng(1).normal(size=(12, 5))
    fit = wrapped_pca(X, 2)
    ax = outlier_map(X, fit)
    far = np.maximum(fit.score_distances / fit.score_cutoff, fit.orthogonal_distances / fit.orthogonal_cutoff)
    order = np.argsort(-far, kind="stable")
    assert (far[order[:11]] > 1.0).all()
    assert [text.get_text() for text in ax.texts] == [str(i) for i in order[:10]]
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0.0, 0.0)
    regular, outlying = (line.get_xydata() for line in ax.lines[:2])
    points = np.column_stack([fit.score_distances, fit.orthogonal_distances])
    np.testing.assert_array_equal(regular, points[far <= 1.0])
    np.testing.assert_array_equal(outlying, points[far > 1.0])
    assert len(outlier_map(X, fit, labels=0).texts) == 0


def test_an_outlier_map_of_all_components_shows_score_distances():
    X = _with_outliers()[:, :2]
    fit = wrapped_pca(X, 2)
    assert fit.orthogonal_cutoff == 0.0
    ax = outlier_map(X, fit, labels=1)
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), fit.score_distances[fit.score_distances > fit.score_cutoff])


def test_labels_may_be_names_of_all_rows():
    X = _with_outliers()
    fit = wrapped_pca(X, 2)
    names = [f"row {i}" for i in range(100)]
    ax = outlier_map(None, fit, labels=names)
    assert {text.get_text() for text in ax.texts} == {names[i] for i in np.flatnonzero(fit.outliers)}
    with pytest.raises(ValueError, match="labels has 99 entries, there are 100 rows"):
        outlier_map(None, fit, labels=names[1:])


def test_markers_of_a_reliability_diagram_have_one_total_area():
    for n in (6, 60):
        ax = reliability_plot(np.arange(n) % 2, np.arange(n) / n, n_bins=3)
        assert ax.collections[0].get_sizes().sum() == pytest.approx(600.0)
