"""Forest, profile and objective plots: the drawn data are compared with the results of the fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from pictured import responses, skewed

import powerkern as pk
from powerkern.joint import fit_joint
from powerkern.plot import forest_plot, objective_plot, profile_plot
from powerkern.regression import fit_regression

# --- forests -----------------------------------------------------------------------------------------


def intervals_of(ax):
    return {round(float(path.vertices[0, 1])): tuple(path.vertices[:, 0]) for path in ax.collections[0].get_paths()}


@pytest.mark.filterwarnings("ignore:.*not fitted")
def test_forest_plot_has_lambdas_and_intervals():
    X = skewed(p=4)
    X[:, 2] = 1.0
    fit = pk.fit(X, "box-cox", column_names=list("abcd"))
    ax = forest_plot(None, fit, level=0.9)
    low, high = map(np.asarray, fit.confint(level=0.9))
    assert intervals_of(ax) == {j: pytest.approx((low[j], high[j])) for j in (0, 1, 3)}
    assert np.array_equal(ax.lines[0].get_xydata(), np.column_stack([fit.lmbda, np.arange(4)]))
    assert ax.lines[1].get_ydata().tolist() == [2]  # a hollow marker: no interval
    assert ax.get_xlabel() == "lambda, 90% interval"
    assert ax.get_ylim() == (3.5, -0.5)


def test_a_forest_is_as_high_as_it_has_columns():
    few, more = (forest_plot(None, pk.fit(skewed(p=p))).figure.get_figheight() for p in (10, 20))
    per_column = (more - few) / 10
    assert 0.1 < per_column < 0.5
    assert few > 10 * per_column


def test_forest_plot_in_order_and_of_chosen_columns():
    X = skewed(p=4)
    fit = pk.fit(X, "box-cox", column_names=list("abcd"))
    ax = forest_plot(None, fit, columns=["d", "b", 0], sort=True)
    order = sorted((3, 1, 0), key=lambda j: -fit.lmbda[j])
    assert ax.lines[0].get_xdata().tolist() == fit.lmbda[order].tolist()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["abcd"[j] for j in order]
    low, high = map(np.asarray, fit.confint())
    assert intervals_of(ax) == {k: pytest.approx((low[j], high[j])) for k, j in enumerate(order)}


def test_forest_plot_of_an_extreme_lambda_keeps_its_limits():
    x = np.random.default_rng(0).normal(2000.0, 1.0, size=(300, 1))
    X = np.column_stack([x**20.0 / 1e60, skewed(300, 1)])
    fit = pk.fit(X, "box-cox", lmbda=[-279.8, 0.5])
    ax = forest_plot(None, fit, limits=(-3.0, 3.0))
    assert [text.get_text() for text in ax.texts] == ["-280"]
    assert ax.get_xlim()[0] > -4.0
    ax.figure.canvas.draw()
    assert ax.texts[0].get_window_extent().x0 > ax.get_window_extent().x1  # in the margin, where no line runs
    assert ax.lines[0].get_xdata().tolist() == [0.5]
    for limits in ((1.0, -1.0), (-1.0, 0.0, 1.0), 3.0, ("low", "high"), (0.0, np.inf)):
        with pytest.raises(ValueError, match="limits must be two finite numbers, the smaller one first"):
            forest_plot(None, fit, limits=limits)


def test_forest_plots_of_other_fits():
    Y, x = responses()
    regression, joint = fit_regression(Y, x), fit_joint(Y, column_names=["u", "v"])
    for fit in (regression, joint):
        low, high = map(np.asarray, fit.confint(level=0.95))
        assert intervals_of(forest_plot(None, fit)) == {j: pytest.approx((low[j], high[j])) for j in (0, 1)}
    with pytest.raises(ValueError, match="X must be None for a RegressionFit"):
        forest_plot(Y, regression)
    again = pk.PowerFit.from_json(pk.fit(Y).to_json())
    assert intervals_of(forest_plot(Y, again)) == intervals_of(forest_plot(None, pk.fit(Y)))
    robust = pk.fit(Y, estimator="robust")
    assert not intervals_of(forest_plot(None, robust, level=None))


# --- profiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_profile_plot_shows_the_likelihood_and_its_interval(level):
    X = skewed()
    fit = pk.fit(X, "box-cox")
    ax = profile_plot(None, fit, column=2, level=level)
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
        profile_plot(None, fit)
    lmbdas = [0.0, 0.5]
    drawn = profile_plot(X, fit, lmbdas=lmbdas).lines[0]
    assert np.array_equal(drawn.get_ydata(), -fit.profile(lmbdas, X)[0])


def test_profile_plot_needs_a_maximum_or_points():
    fit = pk.fit(skewed(), lmbda=0.3)
    with pytest.raises(ValueError, match=r"no likelihood interval \(lambda as given\); pass lmbdas"):
        profile_plot(None, fit)
    assert len(profile_plot(None, fit, lmbdas=[0.2, 0.3]).lines[0].get_xdata()) == 2


def test_profile_of_a_regression_fit_has_the_interval():
    Y, x = responses()
    fit = fit_regression(Y, x)
    ax = profile_plot(None, fit, column=1, lmbdas=np.linspace(-0.5, 1.0, 31))
    curve = ax.lines[0]
    assert np.allclose(curve.get_ydata(), -fit.profile(curve.get_xdata())[1])
    low, high = (end[1] for end in fit.confint(level=0.95))
    span = next(patch for patch in ax.patches)
    assert (span.get_x(), span.get_x() + span.get_width()) == pytest.approx((low, high))
    with pytest.raises(ValueError, match="X must be None for a RegressionFit"):
        profile_plot(x, fit)
    with pytest.raises(TypeError, match="fit must be a PowerFit or a RegressionFit, got JointFit"):
        profile_plot(None, fit_joint(Y))


# --- objectives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["mle", "robust", "carroll", "mtl", "ppcc"])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_objective_plot_marks_minima_start_and_end(family, estimator):
    X = skewed(n=50) + 5.0
    fit = pk.fit(X, family, estimator, column_names=["a", "b", "c"])
    ax = objective_plot(None, fit, column="b")
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
    fit = pk.PowerFit.from_json(pk.fit(x, "box-cox", "robust").to_json())
    with pytest.raises(ValueError, match="pass X"):
        objective_plot(None, fit)
    points = np.linspace(-1.0, 1.0, 20)
    found = objective_plot(x, fit, lmbdas=points).lines[0].get_xdata()
    assert np.array_equal(found, np.union1d(points, fit.lmbda0))


def test_objective_plot_of_values_that_are_mostly_equal():
    x = np.append(np.full(30, 2.0), np.arange(1.0, 12.0))
    lmbdas = objective_plot(None, pk.fit(x, "box-cox")).lines[0].get_xdata()
    assert np.isfinite(lmbdas).all()
    assert np.ptp(lmbdas) > 1.0


def test_a_column_without_a_fit_has_no_objective():
    with pytest.warns(UserWarning, match="column 1"):
        fit = pk.fit(np.column_stack([skewed()[:, 0], np.ones(120)]), "box-cox", "robust")
    with pytest.raises(ValueError, match="column 1 has no objective"):
        objective_plot(None, fit, column=1)


# --- ranges and reference lines ----------------------------------------------------------------------


def test_reference_lines_of_a_forest_mark_no_transform_and_the_logarithm():
    ax = forest_plot(None, pk.fit(skewed(), "box-cox"))
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata() for line in dashed] == [[0.0, 0.0], [1.0, 1.0]]
    assert all(line.get_zorder() < ax.lines[0].get_zorder() for line in dashed)
    assert ax.figure.get_figheight() == pytest.approx(2.4)  # the least height


def test_lambdas_at_the_limits_are_points_and_those_beyond_are_arrowheads():
    X = skewed(p=5)
    lmbda = np.array([-3.0, 3.0, 3.5, -4.0, 0.25])
    ax = forest_plot(None, pk.fit(X, "box-cox", lmbda=lmbda), limits=(-3.0, 3.0), level=None)
    assert ax.lines[0].get_xydata().tolist() == [[-3.0, 0.0], [3.0, 1.0], [0.25, 4.0]]
    beyond = [
        (*line.get_xdata(), *line.get_ydata(), line.get_marker()) for line in ax.lines if line.get_marker() in "<>"
    ]
    assert beyond == [(3.0, 2, ">"), (-3.0, 3, "<")]
    assert [text.get_text() for text in ax.texts] == ["3.5", "-4"]
    assert [text.xy[1] for text in ax.texts] == [2, 3]
    assert not ax.lines[1].get_xdata().size  # without intervals, no marker is hollow
    assert ax.get_xlabel() == "lambda"


def test_intervals_are_cut_at_the_limits_and_given_lambdas_are_hollow():
    X = skewed(40, 3)
    fit = pk.fit(X, "box-cox", lmbda=[np.nan, np.nan, 0.5])
    low, high = map(np.asarray, fit.confint())
    limits = (float(low[0]) + 0.01, float(high[0]) - 0.02)
    ax = forest_plot(None, fit, limits=limits)
    expected = {j: tuple(np.clip([low[j], high[j]], *limits)) for j in (0, 1)}
    assert intervals_of(ax) == {j: pytest.approx(ends) for j, ends in expected.items()}
    hollow = [2] if limits[0] <= 0.5 <= limits[1] else []
    assert ax.lines[1].get_ydata().tolist() == hollow


@pytest.mark.parametrize("limits", [(-np.inf, 0.0), (1.0, 1.0), (np.nan, 1.0), (0.0, np.inf)])
def test_limits_of_a_forest_are_finite_and_different(limits):
    with pytest.raises(ValueError, match="limits must be two finite numbers, the smaller one first"):
        forest_plot(None, pk.fit(skewed()), limits=limits)


def test_a_profile_is_drawn_twice_as_wide_as_the_interval():
    fit = pk.fit(skewed(), "box-cox")
    ax = profile_plot(None, fit)
    low, high = (float(end[0]) for end in fit.confint())
    np.testing.assert_allclose(
        ax.lines[0].get_xdata(), np.linspace(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low, 101)
    )
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["maximum", "maximum less 1.92", f"{low:.3g} to {high:.3g} (95%)"]


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_an_objective_is_drawn_over_two_and_a_half_inverse_mads_of_the_logs(family):
    x = skewed()[:, 0] - (family == "yeo-johnson")
    fit = pk.fit(x, family, "robust")
    u = (x - fit.center[0]) / fit.divisor[0]
    logs = np.log(u) if family == "box-cox" else np.sign(u) * np.log1p(abs(u))
    reach = 2.5 / scipy.stats.median_abs_deviation(logs, scale="normal")
    lmbdas = objective_plot(None, fit).lines[0].get_xdata()
    ends = min(fit.lmbda0[0], fit.lmbda[0]) - reach, max(fit.lmbda0[0], fit.lmbda[0]) + reach
    assert (lmbdas[0], lmbdas[-1]) == pytest.approx(ends, rel=1e-4)
    assert lmbdas.size == np.union1d(np.linspace(*ends, 600), fit.lmbda0).size


def test_an_objective_of_mostly_equal_values_is_drawn_over_inverse_ranges_of_the_logs():
    x = np.append(np.full(30, 2.0), np.arange(1.0, 12.0))
    fit = pk.fit(x, "box-cox")
    lmbdas = objective_plot(None, fit).lines[0].get_xdata()
    assert np.ptp(lmbdas) == pytest.approx(2.0 * 2.5 / np.log(11.0) + abs(fit.lmbda0[0] - fit.lmbda[0]))
