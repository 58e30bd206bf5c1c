"""All plots on existing axes, with wrong arguments, in dark styles, and without matplotlib."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import processes
import pytest
from pictured import skewed

import powerkern as pk
from powerkern import plot
from powerkern.cellwise import wrapped_pca
from powerkern.completion import RankProfile
from powerkern.joint import fit_joint
from powerkern.plot import (
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
)  # fmt: skip
from powerkern.regression import fit_regression

# --- axes, styles ------------------------------------------------------------------------------------


X = skewed()
FIT = pk.fit(X)
DRAW = {
    "qq_plot": lambda ax: qq_plot(X, FIT, ax=ax),
    "histogram_plot": lambda ax: histogram_plot(X, FIT, ax=ax),
    "forest_plot": lambda ax: forest_plot(None, FIT, ax=ax),
    "reliability_plot": lambda ax: reliability_plot([0, 1], [0.1, 0.9], ax=ax),
    "profile_plot": lambda ax: profile_plot(None, FIT, ax=ax),
    "cell_map": lambda ax: cell_map(X, FIT, ax=ax),
    "score_plot": lambda ax: score_plot(np.arange(30.0) ** 2, ax=ax),
    "lambda_map": lambda ax: lambda_map([[0.1, 0.3], [0.2, 0.4]], [[0.0, 1.0], [0.0, 1.0]], ax=ax),
    "objective_plot": lambda ax: objective_plot(None, FIT, ax=ax),
    "outlier_map": lambda ax: outlier_map(None, wrapped_pca(X, 2), ax=ax),
    "elbow_plot": lambda ax: elbow_plot(RankProfile(np.array([1, 2]), np.ones(2), np.ones(2), 1, 1), ax=ax),
    "residual_plot": lambda ax: residual_plot(X[:, 1], X[:, 0], fit_regression(X[:, 1], X[:, 0]), ax=ax),
}


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_axes_given_are_used_and_returned(draw):
    figure, (left, right) = plt.subplots(1, 2)
    assert draw(right) is right
    assert not left.has_data()
    figure.canvas.draw()
    assert draw(None).figure is not figure


def test_every_picture_is_drawn_here():
    assert {*DRAW, "before_after_plot"} == set(plot.__all__)


@pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)
def test_legends_and_lines_stand_out_on_a_dark_style(draw):
    with plt.style.context("dark_background"):
        ax = draw(None)
        ax.figure.canvas.draw()
        for line in ax.lines:
            assert max(mpl.colors.to_rgb(line.get_color())) > 0.3


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib.pyplot'] = None\n"
        "import powerkern as pk; from powerkern.plot import qq_plot\n"
        "x = [1.0, 2.0, 5.0]; qq_plot(x, pk.fit(x))"
    )
    _, complaint = processes.start(code).communicate()
    assert "powerkern.plot needs matplotlib: pip install matplotlib" in complaint


@pytest.mark.slow
def test_joint_fits_are_drawn_column_by_column() -> None:
    X = np.random.default_rng(0).lognormal(size=(60, 2))
    joint = fit_joint(X, family="box-cox")
    for one, other in ((qq_plot(X, joint, column=1), qq_plot(X, joint.power_fit, column=1)),):
        for line, expected in zip(one.lines, other.lines, strict=True):
            assert np.array_equal(line.get_xydata(), expected.get_xydata())
    cells = [cell_map(X, fit).images[0].get_array() for fit in (joint, joint.power_fit)]
    assert np.array_equal(cells[0], cells[1])


# --- wrong arguments ---------------------------------------------------------------------------------


ONE_OR_TWO = "a PowerFit or a JointFit"
KINDS = {
    qq_plot: ONE_OR_TWO,
    histogram_plot: ONE_OR_TWO,
    before_after_plot: ONE_OR_TWO,
    cell_map: "a PowerFit, a JointFit or a DDCFit",
    forest_plot: "a PowerFit, a RegressionFit or a JointFit",
    profile_plot: "a PowerFit or a RegressionFit",
    objective_plot: "a PowerFit",
    outlier_map: "a WrappedPCA",
}


@pytest.mark.parametrize("draw", KINDS, ids=lambda draw: draw.__name__)
def test_the_data_come_first_the_fit_second(draw):
    with pytest.raises(TypeError, match=f"fit must be {KINDS[draw]}, got ndarray$"):
        draw(X, X)
    fit = wrapped_pca(X, 2) if draw is outlier_map else FIT
    with pytest.raises(TypeError, match=f"fit must be {KINDS[draw]}, got ndarray; the data come first, the fit second"):
        draw(fit, X)


def test_residuals_are_drawn_of_regressions():
    with pytest.raises(TypeError, match="fit must be a RegressionFit, got PowerFit"):
        residual_plot(X, X, FIT)


def test_other_arguments_of_the_wrong_kind_are_refused():
    X = skewed()
    with pytest.raises(TypeError, match="columns must be a sequence of positions or names, got 0"):
        before_after_plot(X, pk.fit(X), columns=0)
    with pytest.raises(ValueError, match="band must be a probability between 0 and 1, or None, got 'a'"):
        qq_plot(X, pk.fit(X), band="a")


# --- subfigures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("draw", [*DRAW.values()], ids=DRAW)
def test_plots_are_drawn_on_axes_of_a_subfigure(draw, layout):
    """Plots are drawn on axes of a matplotlib SubFigure, which has neither a size in inches nor a canvas."""
    figure = plt.figure(layout=layout)
    part = figure.subfigures(1, 2)[1]
    ax = part.subplots()
    assert draw(ax) is ax
    assert ax.figure is part
    assert {one.figure for one in figure.axes} == {part}
    figure.canvas.draw()


@pytest.mark.slow
def test_panels_are_drawn_in_a_subfigure():
    part = plt.figure().subfigures(1, 2)[0]
    panels = before_after_plot(X, FIT, ax=part.subplots(3, 2))
    assert {panel.figure for panel in panels.flat} == {part}
    part.canvas.draw()


def test_names_are_shortened_by_the_width_of_the_subfigure():
    long = pk.fit(X, column_names=[letter * 80 for letter in "abc"])
    figure = plt.figure(figsize=(12.0, 4.0))
    whole = forest_plot(None, long, ax=figure.subplots())
    part = forest_plot(None, long, ax=plt.figure(figsize=(12.0, 4.0)).subfigures(1, 3)[0].subplots())
    lengths = [len(ax.get_yticklabels()[0].get_text()) for ax in (whole, part)]
    assert lengths == [48, 16]
