"""Pictures are tested by the data of what is drawn."""

from __future__ import annotations

import numpy as np
import processes
import pytest
import scipy.stats

import powerkern as pk

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from powerkern.cellwise import ddc, wrapped_pca  # noqa: E402
from powerkern.joint import fit_joint  # noqa: E402
from powerkern.plot import (  # noqa: E402
    cell_map,
    outlier_map,
    profile_plot,
    qq_plot,
    reliability_plot,
    residual_plot,
    search_plot,
    sensitivity_plot,
)
from powerkern.regression import fit_regression  # noqa: E402


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
    assert "'c'" in by_name.get_title()
    with pytest.raises(ValueError, match="there is no column 'd'; the columns are 'a', 'b', 'c'"):
        qq_plot(X, fit, column="d")
    with pytest.raises(ValueError, match="there is no column 3; the fit has 3"):
        qq_plot(X, fit, column=3)


def test_one_column_may_be_a_vector():
    x = skewed()[:, 0]
    assert len(qq_plot(x, pk.fit(x)).lines[1].get_ydata()) == 120


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
    assert (low, high) == pytest.approx([end[2] for end in fit.confint(level)])
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
    fit = pk.fit(X, "box-cox", "rewml", quantile=0.99)
    drawn = np.ma.filled(cell_map(X, fit).images[0].get_array(), np.nan)
    assert np.array_equal(np.abs(drawn) > 0.0, fit.outliers(X))
    assert (drawn[5:9, 1] == 1.0).all()


def test_large_cell_maps_are_block_means():
    X = np.random.default_rng(0).normal(size=(101, 7))
    fit = pk.fit(X, lmbda=1.0)
    X[50, 2] = np.nan
    cutoff = 0.5
    ax = cell_map(X, fit, cutoff=cutoff, max_shape=(20, 3))
    full = np.ma.filled(cell_map(X, fit, cutoff=cutoff).images[0].get_array(), np.nan)
    drawn = np.asarray(ax.images[0].get_array())
    expected = [[np.nanmean(full[i : i + 6, j : j + 3]) for j in range(0, 7, 3)] for i in range(0, 101, 6)]
    assert np.allclose(drawn, expected)
    assert ax.get_ylim() == (100.5, -0.5)


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
        ({"max_shape": (0, 5)}, "max_shape must be two numbers of at least 1"),
        ({"max_shape": 10}, "max_shape must be two numbers of at least 1"),
    ],
)
def test_cell_map_options(options, message):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=message):
        cell_map(X, pk.fit(X), **options)


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


# --- all of them --------------------------------------------------------------------------------------

X = skewed()
FIT = pk.fit(X)
DRAW = {
    "qq_plot": lambda ax: qq_plot(X, FIT, ax=ax),
    "reliability_plot": lambda ax: reliability_plot([0, 1], [0.1, 0.9], ax=ax),
    "profile_plot": lambda ax: profile_plot(FIT, ax=ax),
    "cell_map": lambda ax: cell_map(X, FIT, ax=ax),
    "search_plot": lambda ax: search_plot([0.1, 0.3], ax=ax),
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
    low, high = (end[1] for end in fit.confint(0.95))
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
