"""Forest plots: the lambdas of many columns with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from powerkern._input.messages import shown
from powerkern._results.power_fit import PowerFit
from powerkern._typing import FloatArray
from powerkern.joint import JointFit
from powerkern.plot._drawing import figure_width, get_axes, shorten, text_color
from powerkern.plot._fits import check_fit, find_columns, fit_arguments
from powerkern.regression import RegressionFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names of columns are shortened to this number of characters per inch of the width of the figure.
_LABEL = 4.0
#: Height of a line, and of the space above and below all lines, in inches.
_LINE, _FRAME = 0.24, 1.0


def forest_plot(
    X: object,
    fit: PowerFit | RegressionFit | JointFit,
    *,
    columns: Sequence[int | str] | None = None,
    level: float | None = 0.95,
    sort: bool = False,
    limits: tuple[float, float] = (-5.0, 5.0),
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot: lambda of every column with its confidence interval, one line per column.

    Dashed lines mark lambda = 1 (no transform) and lambda = 0 (the logarithm, for Box-Cox).

    Parameters
    ----------
    X : (n, p) array-like or None
        The fitted data. Pass None if the fit still has them, and for a `RegressionFit`, which keeps its data.
    fit : PowerFit, RegressionFit or JointFit
        The fit.
    columns : sequence of int or str, optional
        Columns to draw, from top to bottom, by position or by name; default: all.
    level : float or None, default 0.95
        Confidence level of the intervals, which `fit.confint` computes; None draws no intervals.
    sort : bool, default False
        Order the columns by lambda, the largest on top.
    limits : (float, float), default (-5, 5)
        Widest range of the axis of lambda. A lambda outside it is drawn as an arrowhead at the edge, with its value in
        the right margin, so that one extreme lambda does not compress the rest of the plot.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure, whose height is proportional to the number of columns.

    Returns
    -------
    matplotlib Axes
        The axes. Their first collection holds the intervals, and their first line the lambdas. A column without an
        interval (because lambda was given, is at a bound, or was not fitted) has a hollow marker.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import forest_plot
    >>> X = np.random.default_rng(0).lognormal(size=(100, 3))
    >>> ax = forest_plot(X, pk.fit(X, "box-cox", column_names=["a", "b", "c"]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['a', 'b', 'c']
    """
    check_fit(X, fit, PowerFit, RegressionFit, JointFit)
    ends = np.asarray(limits)
    if ends.shape != (2,) or ends.dtype.kind not in "iuf" or not -np.inf < ends[0] < ends[1] < np.inf:
        raise ValueError(f"limits must be two finite numbers, the smaller one first, got {shown(limits)}")
    data, single = fit_arguments(X, fit)
    order = np.array(find_columns(columns, None, single))
    if sort:
        order = order[np.argsort(-fit.lmbda[order])]
    unknown = np.full(fit.lmbda.shape, np.nan)
    intervals = (unknown, unknown) if level is None else fit.confint(*data, level=level)
    ax = get_axes(ax, figsize=(6.4, max(2.4, _FRAME + _LINE * order.size)))
    low, high = (np.asarray(end)[order] for end in intervals)
    _draw_estimates(ax, fit.lmbda[order], low, high, ends, hollow=level is not None)
    for value in (0.0, 1.0):
        ax.axvline(value, color=text_color(ax), linewidth=0.8, linestyle="--", alpha=0.5, zorder=0.5)
    names, length = fit.column_names, int(_LABEL * figure_width(ax))
    ax.set_yticks(range(order.size), [shorten(str(names[j] if names else j), length) for j in order], parse_math=False)
    ax.set(xlabel="lambda" if level is None else f"lambda, {100 * level:g}% interval")
    ax.set_ylim(order.size - 0.5, -0.5)
    return ax


def _draw_estimates(
    ax: Axes, lmbda: FloatArray, low: FloatArray, high: FloatArray, limits: FloatArray, *, hollow: bool
) -> None:
    """Draw intervals and markers of lambdas within the limits; draw lambdas outside as arrowheads with their values.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    lmbda, low, high : (k,) ndarray
        Lambda of each column and the ends of its interval; NaN for a missing interval.
    limits : (2,) ndarray
        Range of lambda to draw.
    hollow : bool
        True to draw hollow markers for columns without an interval.
    """
    lines, bounded = np.arange(lmbda.size), ~np.isnan(high - low)
    ax.hlines(lines[bounded], *(np.clip(end[bounded], *limits) for end in (low, high)), color="C0", linewidth=1.5)
    inside = (lmbda >= limits[0]) & (lmbda <= limits[1])
    bare = inside & ~bounded & hollow
    ax.plot(lmbda[inside], lines[inside], "o", color="C0", markersize=5)
    ax.plot(lmbda[bare], lines[bare], "o", color="C0", markersize=5, markerfacecolor=ax.get_facecolor())
    for line in np.flatnonzero(~inside):
        _draw_beyond(ax, int(line), float(lmbda[line]), *limits)


def _draw_beyond(ax: Axes, line: int, lmbda: float, low: float, high: float) -> None:
    """Draw a lambda outside the limits: an arrowhead at the edge, and the value in the right margin.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    line : int
        Vertical position of the column.
    lmbda : float
        The lambda.
    low, high : float
        Limits of the axis of lambda.
    """
    edge, marker = (low, "<") if lmbda < low else (high, ">")
    ax.plot(edge, line, marker, color="C3", markersize=6, clip_on=False)
    ax.annotate(
        f"{lmbda:.3g}", (1.0, line), (7.0, 0.0), xycoords=("axes fraction", "data"), textcoords="offset points",
        va="center", color="C3", fontsize="small", annotation_clip=False,
    )  # fmt: skip
