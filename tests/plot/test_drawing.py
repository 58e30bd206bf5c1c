"""Axes, colors, titles, legends and labels of points, compared with plain versions of their rules."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from powerkern.plot._drawing import (
    count_names,
    draw_legend_above,
    get_axes,
    label_points,
    mix_colors,
    set_title,
    shorten,
)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


def empty_axes(width: float = 6.4, height: float = 4.8):
    return plt.subplots(figsize=(width, height))[1]


def test_other_objects_than_axes_are_refused():
    for wrong in (plt.figure(), "left", [empty_axes()]):
        with pytest.raises(TypeError, match=f"ax must be matplotlib Axes, got {type(wrong).__name__}"):
            get_axes(wrong)


def test_a_mixed_color_has_the_given_fraction_of_the_first():
    assert mix_colors((1.0, 0.0, 0.4), (0.0, 1.0, 0.8), 0.25) == pytest.approx((0.25, 0.75, 0.7))


# --- legends and names -------------------------------------------------------------------------------


def legend_width(ax, n_columns: int) -> float:
    style = {"frameon": False, "borderaxespad": 0.2, "fontsize": "small", "columnspacing": 1.2, "handlelength": 1.4}
    return ax.legend(ncols=n_columns, **style).get_window_extent().width / ax.get_window_extent().width


@pytest.mark.parametrize(("width", "n_columns"), [(11.0, 3), (7.0, 2), (2.5, 1)])
def test_a_legend_above_has_as_many_columns_as_fit_in_three_quarters_of_the_width(width, n_columns):
    ax = empty_axes(width)
    for k in range(3):
        ax.plot([0.0, 1.0], label=f"entry number {k} of three")
    fitting = [k for k in (3, 2) if legend_width(ax, k) <= 0.75]
    assert [*fitting, 1][0] == n_columns
    draw_legend_above(ax)
    legend = ax.get_legend()
    extent, frame = legend.get_window_extent(), ax.get_window_extent()
    assert legend._ncols == n_columns
    assert extent.y0 >= frame.y1 - 0.5
    assert abs(extent.x0 - frame.x0) < 0.02 * frame.width


@pytest.mark.parametrize("across", [False, True])
def test_as_many_names_are_drawn_as_fit_at_the_size_of_the_labels(across):
    ax = empty_axes()
    points = ax.get_position().size * [6.4, 4.8] * 72.0
    assert count_names(ax, across) == int(0.6 * points[0 if across else 1] / ax.xaxis.label.get_fontsize())
    ax.set_position((0.1, 0.1, 0.01, 0.01))
    assert count_names(ax, across) == 1


# --- titles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "length", "expected"),
    [("abcdefghij", 6, "abc…ij"), ("abcdefghij", 9, "abcd…ghij"), ("abcdefghij", 2, "a…"), ("abc", 2, "a…")],
)
def test_a_shortened_label_has_the_given_length(label, length, expected):
    assert shorten(label, length) == expected


def test_a_title_takes_one_line_if_it_fits_and_then_two_before_it_is_shortened():
    ax = empty_axes()
    set_title(ax, "age", 0.5)
    assert ax.get_title() == "age, lambda = 0.5"
    width = ax.title.get_window_extent().width
    set_title(ax, "w" * 26, 0.123456)
    assert ax.get_title() == f"{'w' * 26}\nlambda = 0.123" or width > ax.get_window_extent().width


def test_a_shortened_title_is_the_longest_that_fits():
    ax = empty_axes(3.0)
    set_title(ax, "n" * 90, 1.0)
    label, detail = ax.get_title().split("\n")
    assert detail == "lambda = 1"
    room = ax.get_window_extent().width
    assert 0.85 * room < ax.title.get_window_extent().width <= room
    assert "…" in label


def test_a_title_of_tiny_axes_keeps_eight_characters():
    ax = empty_axes()
    ax.set_position((0.1, 0.1, 0.02, 0.1))
    set_title(ax, "abcdefghijklmnop", 1.0)
    assert ax.get_title() == "abcd…nop\nlambda = 1"
    set_title(ax, "abcdefgh", 1.0)
    assert ax.get_title() == "abcdefgh\nlambda = 1"


# --- labels of points --------------------------------------------------------------------------------


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def candidate_boxes(point, width: float, height: float, unit: float) -> list[tuple[float, ...]]:
    """Return the boxes (left, bottom, right, top) in which a label of `point` may be drawn, in order of preference.

    They are sorted by distance from the point, and at equal distances by direction: upper right, lower right, upper
    left, lower left, right, above, below, left. `width` and `height` are the size of the label in pixels, and `unit` is
    1/72 inch in pixels.
    """
    boxes = []
    for distance in (3.0, 10.0, 20.0, 35.0, 55.0, 80.0):
        for degrees in (45, 315, 135, 225, 0, 90, 270, 180):
            dx, dy = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
            x = -0.5 if degrees in (90, 270) else (-1.0 if dx < 0.0 else 0.0)
            y = -0.5 if degrees in (0, 180) else (-1.0 if dy < 0.0 else 0.0)
            left, low = point + np.array([x * width, y * height]) + distance * unit * np.array([dx, dy])
            boxes.append((left, low, left + width, low + height))
    return boxes


@pytest.mark.parametrize("seed", range(4))
def test_labels_take_the_nearest_free_places(seed):
    """Overlaps of labels and legend are avoided first, then leaving the axes, then covering points."""
    rng = np.random.default_rng(seed)
    ax = empty_axes(3.0, 2.5)
    points = np.concatenate([rng.random((8, 2)), 0.05 * rng.random((6, 2)) + [0.9, 0.9]])
    ax.plot(*points.T, ".", label="points")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.legend(loc=("lower left", "upper right")[seed % 2])
    chosen = rng.permutation(len(points))[:9].tolist()
    label_points(ax, points, chosen, [f"row {i}" for i in chosen])
    unit, frame = ax.figure.dpi / 72.0, ax.get_window_extent()
    pixels = ax.transData.transform(points)
    taken = [tuple(ax.get_legend().get_window_extent().extents)]
    for i, text in zip(chosen, ax.texts, strict=True):
        text.get_window_extent()  # updates the position, with the extent of the line
        drawn = Text.get_window_extent(text)
        costs = []
        for box in candidate_boxes(pixels[i], drawn.width, drawn.height, unit):
            hits = sum(overlap(box, other) for other in taken)
            leaves = box[0] < frame.x0 or box[1] < frame.y0 or box[2] > frame.x1 or box[3] > frame.y1
            covers = any(overlap(box, (x - unit, y - unit, x + unit, y + unit)) for x, y in pixels)
            costs.append((hits, leaves, covers))
        best = costs.index(min(costs))
        expected = candidate_boxes(pixels[i], drawn.width, drawn.height, unit)[best]
        np.testing.assert_allclose(drawn.extents, expected, atol=0.6)
        assert text.get_text() == f"row {i}"
        assert text.arrow_patch.get_visible() == (best >= 8)
        assert not text.get_in_layout()
        taken.append(expected)


# --- styles ------------------------------------------------------------------------------------------


def test_areas_have_no_outline_and_dots_no_edge():
    import powerkern as pk
    from powerkern.plot import cell_map, histogram_plot, qq_plot

    X = np.random.default_rng(0).lognormal(size=(60, 2))
    X[3, 1], X[4] = np.nan, 1e3
    fit = pk.fit(X, "box-cox", "robust")
    qq = qq_plot(X, fit)
    assert [area.get_linewidth() for area in qq.patches] == [0.0]
    assert list(qq.collections[0].get_linewidth()) == [0.0]
    assert [line.get_markeredgewidth() for line in qq.lines[1:3]] == [0.0, 0.0]
    assert qq.collections[0].get_zorder() < min(line.get_zorder() for line in qq.lines)
    cells = cell_map(X, fit)
    assert cells.patch.get_linewidth() == 0.0
    assert mpl.colors.to_rgb(histogram_plot(X, fit).patches[0].get_facecolor()[:3]) == pytest.approx((0.75,) * 3)
