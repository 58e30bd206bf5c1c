"""Cell maps, checked by the data that are drawn."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from pictured import skewed

import powerkern as pk
from powerkern.cellwise import ddc
from powerkern.plot import cell_map

# --- transforms --------------------------------------------------------------------------------------


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
    fit = pk.fit(X, "box-cox", pk.AdaptiveRewML(cutoff=0.99))
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


@pytest.mark.slow
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
    assert np.mean(np.abs(drawn) > 0.5) < 0.05  # noise is pale
    squares = ax.collections[0]
    assert len(squares.get_offsets()) == np.count_nonzero(np.abs(drawn) == 1.0)
    assert any(np.abs(at - [11, 7]).max() < max(rows, columns) for at in squares.get_offsets())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_cell_map_hatches_what_was_not_fitted_and_names_what_there_is():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(skewed(12, 5), columns=list("abcde"), index=[f"sample {i}" for i in range(12)])
    X["b"] = X["c"] = X["e"] = 1.0
    X.iloc[3, 0] = np.nan
    ax = cell_map(X, pk.fit(X))
    hatched = [(patch.get_x(), patch.get_width()) for patch in ax.patches if patch.get_hatch()]
    assert hatched == [(0.5, 2.0), (3.5, 1.0)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing", "not fitted"]
    assert ax.patch.get_hatch()  # the hatched background shows through missing cells
    assert [label.get_text() for label in ax.get_xticklabels()] == list("abcde")
    assert [label.get_text() for label in ax.get_yticklabels()] == list(X.index)
    assert np.isnan(drawn_cells(ax)[3, 0])
    assert cell_map(X[["d"]].to_numpy(), pk.fit(X[["d"]].to_numpy())).get_legend() is None


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_missing_normal_and_outlying_cells_differ_in_color(style):
    with plt.style.context(style):
        fit = pk.fit(np.random.default_rng(0).normal(size=(50, 2)))
        ax = cell_map(np.array([[0.0, np.nan], [9.0, -9.0]] * 10), fit)
        image = ax.images[0]
        cells = [image.cmap(image.norm(value))[:3] for value in (0.0, 1.0, -1.0)] + [ax.get_facecolor()[:3]]
        for one, other in itertools.combinations(np.array(cells), 2):
            assert np.abs(one - other).max() > 0.09
        assert ax.patch.get_hatch()


@pytest.mark.slow
def test_many_names_of_a_cell_map_are_thinned():
    X = np.random.default_rng(0).normal(size=(20, 300))
    names = [f"feature {j}" for j in range(300)]
    ax = cell_map(X, pk.fit(X, column_names=names))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [names[int(at)] for at in ax.get_xticks()]
    assert 10 <= len(labels) <= 40
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


def test_names_of_rows_and_columns_overlap_in_no_small_cell_map():
    frame = pd.DataFrame(skewed(40, 8), columns=[f"a rather long name {j}" for j in range(8)])
    frame.index = [f"row {i}" for i in range(40)]
    _, ax = plt.subplots(figsize=(3.6, 2.7), layout="constrained")
    cell_map(frame, pk.fit(frame), ax=ax)
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) > 3
    assert all(a.y0 >= b.y1 for a, b in itertools.pairwise(boxes))
    assert ax.get_window_extent().height > 0.3 * ax.figure.bbox.height


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
def test_invalid_options_of_cell_maps_are_refused(options, message):
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


def test_cell_map_needs_standardised_values():
    X = skewed()
    with pytest.raises(ValueError, match="standardize=True"):
        cell_map(X, pk.fit(X, standardize=False))


# --- residuals of predictions ------------------------------------------------------------------------


def test_cell_map_shows_the_residuals_of_deviating_cells():
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


def test_the_color_bar_and_the_axes_of_a_cell_map():
    X = np.random.default_rng(0).normal(size=(30, 5))
    fit = pk.fit(X, lmbda=1.0)
    ax = cell_map(X, fit, cutoff=1.5)
    bar = ax.figure.axes[-1]
    assert [label.get_text() for label in bar.get_yticklabels()] == ["≤ -3.0", "within ±1.5", "≥ 3.0"]
    assert bar.get_yticks().tolist() == [-1.0, 0.0, 1.0]
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.5, 4.5), (29.5, -0.5))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column", "row")
    assert ax.get_legend() is None
    assert not ax.collections  # squares are for blocks only


def test_the_strongest_blocks_are_enlarged_in_their_color():
    X = np.random.default_rng(0).normal(size=(60, 12))
    fit = pk.fit(X, lmbda=1.0)
    X[31, 7], X[2, 10] = 60.0, -60.0
    ax = cell_map(X, fit, max_shape=(20, 4))
    drawn = drawn_cells(ax)
    assert drawn.shape == (20, 4)
    (squares,) = ax.collections
    found = {
        tuple(at): color for at, color in zip(squares.get_offsets().tolist(), squares.get_facecolors(), strict=True)
    }
    assert found.keys() == {(7.0, 31.0), (10.0, 1.0)}  # centers of blocks of 3 rows and 3 columns
    assert found[7.0, 31.0][0] > found[7.0, 31.0][2]  # red
    assert found[10.0, 1.0][2] > found[10.0, 1.0][0]  # blue
    cmap = ax.images[0].cmap
    np.testing.assert_allclose(found[7.0, 31.0], cmap(1.0))
    np.testing.assert_allclose(found[10.0, 1.0], cmap(0.0))
    assert list(squares.get_linewidths()) == [0]


def test_colors_just_beyond_the_cutoff_are_paler_in_blocks():
    X = np.random.default_rng(0).normal(size=(8, 8))
    fit = pk.fit(X, lmbda=1.0)
    contrast = []
    for max_shape in ((8, 8), (4, 4)):
        cmap = cell_map(X, fit, max_shape=max_shape).images[0].cmap
        grey, near, far = (np.array(cmap(at)[:3]) for at in (0.5, 0.51, 1.0))
        contrast.append(np.abs(near - grey).max() / np.abs(far - grey).max())
    assert contrast[0] == pytest.approx(0.4, abs=0.03)
    assert contrast[1] == pytest.approx(0.0, abs=0.03)


@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_failed_columns_are_hatched_in_runs_and_missing_cells_dotted():
    X = np.random.default_rng(0).normal(size=(12, 5))
    X[:, [1, 2, 4]] = 1.0
    X[3, 0] = np.nan
    names = [f"c{j}" for j in range(5)]
    ax = cell_map(pd.DataFrame(X, columns=names, index=[f"r{i}" for i in range(12)]), pk.fit(X, column_names=names))
    hatched = [(patch.get_x(), patch.get_width()) for patch in ax.patches if patch.get_hatch()]
    assert hatched == [(0.5, 2.0), (3.5, 1.0)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing", "not fitted"]
    assert ax.patch.get_hatch()
    assert [label.get_text() for label in ax.get_xticklabels()] == names
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"r{i}" for i in range(12)]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("", "")
    full = np.where(np.isnan(X), 0.0, X)
    whole = cell_map(full, pk.fit(full))
    assert [text.get_text() for text in whole.get_legend().get_texts()] == ["not fitted"]
    assert not whole.patch.get_hatch()
    only_failed = X.copy()
    only_failed[3, 0], only_failed[5, 1] = 0.0, np.nan  # missing in a failed column: hatched, not dotted
    assert not cell_map(only_failed, pk.fit(only_failed)).patch.get_hatch()


def test_names_that_do_not_fit_are_thinned_evenly_turned_and_shortened():
    X = np.random.default_rng(0).normal(size=(5, 120))
    names = [f"feature number {j} of many" for j in range(120)]
    fit = pk.fit(X, column_names=names)
    ax = plt.subplots(figsize=(4.0, 3.0), layout="constrained")[1]
    cell_map(X, fit, ax=ax)
    ticks = ax.get_xticks()
    steps = set(np.diff(ticks))
    assert ticks[0] == 0
    assert len(steps) == 1
    labels = ax.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {90.0}
    for at, label in zip(ticks, labels, strict=True):
        head, tail = label.get_text().split("…")
        assert names[int(at)].startswith(head)
        assert names[int(at)].endswith(tail)
        assert 8 <= len(label.get_text()) <= 20
    short = cell_map(X[:, :3], pk.fit(X[:, :3], column_names=["a", "b", "c"]))
    assert {label.get_rotation() for label in short.get_xticklabels()} == {0.0}


def test_names_of_blocks_stand_at_their_first_columns():
    X = np.random.default_rng(0).normal(size=(6, 8))
    ax = cell_map(X, pk.fit(X, column_names=list("abcdefgh")), max_shape=(6, 2))
    assert ax.get_xticks().tolist() == [0, 4]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "e"]
    assert ax.get_xlabel() == "column in blocks of 4"


def test_short_columns_are_scaled_to_their_own_cutoff_by_default():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[8:, 0] = np.nan
    fit = pk.fit(X, estimator="robust")
    own, cutoff = fit.standardized_cutoff(), scipy.stats.norm.ppf(fit.cutoff)
    assert own[0] > 1.5 * cutoff
    X[0], X[1] = [10.5, 4.0], -30.0
    z = fit.transform(X)
    assert ((abs(z[0]) > own) & (abs(z[0]) < 2.0 * own)).any()
    expected = np.clip(np.abs(z) / own - 1.0, 0.0, 1.0) * np.sign(z)
    np.testing.assert_allclose(drawn_cells(cell_map(X, fit)), expected, atol=1e-12)
    by_hand = np.clip(np.abs(z) / 5.0 - 1.0, 0.0, 1.0) * np.sign(z)
    np.testing.assert_allclose(drawn_cells(cell_map(X, fit, cutoff=5.0)), by_hand, atol=1e-12)


@pytest.mark.parametrize("max_shape", [(1, 1), [3, 2]])
def test_the_smallest_maps_have_one_block(max_shape):
    X = np.random.default_rng(0).normal(size=(6, 4))
    assert drawn_cells(cell_map(X, pk.fit(X), max_shape=max_shape)).shape == tuple(max_shape)
    for wrong in ((1, 0), (0, 1), (1, 1, 1)):
        with pytest.raises(ValueError, match="max_shape must be two whole numbers of at least 1"):
            cell_map(X, pk.fit(X), max_shape=wrong)
