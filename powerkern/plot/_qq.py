"""Normal QQ plots of columns before and after their transforms, and of residuals of regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from powerkern._input.arrays import is_real
from powerkern._input.messages import shown
from powerkern._results.power_fit import PowerFit
from powerkern._typing import BoolArray, FloatArray, Limits
from powerkern.joint import JointFit
from powerkern.plot._band import normal_scores, simultaneous_band
from powerkern.plot._drawing import get_axes, reference_grey, set_title, text_color
from powerkern.plot._fits import (
    CensoringMarks,
    PlotColumn,
    check_fit,
    find_column,
    read_columns,
    select_column,
    title_label,
)
from powerkern.regression import RegressionFit, fit_regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points closer to each other than this on both axes are drawn as one. The unit is a standard deviation near the
#: center, and the distance from the center far out.
_STEP = 0.005


def qq_plot(
    X: object,
    fit: PowerFit | JointFit,
    *,
    column: int | str = 0,
    band: float | None = 0.95,
    below: object = None,
    above: object = None,
    limits: Limits | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a normal QQ plot of one column before and after its transform.

    The sorted values, standardized by their mean and standard deviation, are drawn against the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``. Normal values lie on the diagonal. For a fit with ``standardize=True``, transformed
    values are drawn as `PowerFit.transform` returns them, so that outliers stand out after a robust fit. Values that a
    robust fit left out are red, and the blue stripe contains the values that it kept (`PowerFit.weights`).

    In a column with censored cells, the observed values are drawn at the plotting positions of Hirsch and Stedinger
    [2]_, as in R's NADA [3]_. The limits of a column must be all lower limits or all upper limits.

    Parameters
    ----------
    X : (n, p) array-like, or (n,) if the fit was to one column
        The data; missing values are left out.
    fit : PowerFit or JointFit
        The fit.
    column : int or str, default 0
        The column, by position or by name.
    band : float or None, default 0.95
        Probability with which the grey band contains all points of a normal sample [1]_; None draws no band. There is
        no band for columns with censored cells.
    below, above, limits
        Censored cells, as in `powerkern.fit`; `limits` defaults to the limits of the fit.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes. Their first two lines are the points before and after. A third line holds the values left out, if
        there are any.

    Notes
    -----
    The band is simultaneous: every order statistic has the same probability of leaving it, about 0.004 for 20 values
    and 0.001 for 5,000. This probability is chosen so that a standard normal sample lies entirely inside with
    probability `band`. Since mean, standard deviation and lambda are estimated, normal columns leave the band less
    often.

    Points within 0.005 standard deviations of each other are drawn once, so that an image file with a million values
    is no larger than one with a few thousand.

    Let :math:`L_1 < \dots < L_m` be the lower limits in a column, :math:`L_0 = -\infty`, and
    :math:`L_{m+1} = \infty`. Of the values, :math:`A_j` are observed in :math:`[L_j, L_{j+1})`, and :math:`B_j` are
    known to be less than :math:`L_j`. From the largest limit downwards, :math:`L_j` is exceeded with probability

    .. math:: p_j = p_{j+1} + \frac{A_j}{A_j + B_j} (1 - p_{j+1}), \qquad p_{m+1} = 0,

    and the i-th of the :math:`A_j` values between two limits has the normal score
    :math:`\Phi^{-1}(1 - p_j + \frac{i}{A_j + 1} (p_j - p_{j+1}))`. Upper limits are treated as lower limits of -x.
    Values before the transform are standardized by the mean and the standard deviation of the censored normal
    likelihood.

    References
    ----------
    .. [1] S. Aldor-Noiman, L. D. Brown, A. Buja, W. Rolke and R. A. Stine, "The power to see: a new graphical test of
       normality", The American Statistician 67, 2013, 249-260.
    .. [2] R. M. Hirsch and J. R. Stedinger, "Plotting positions for historical floods and their precision", Water
       Resources Research 23, 1987, 715-727.
    .. [3] D. R. Helsel, "Statistics for Censored Environmental Data Using Minitab and R", second edition, Wiley, 2012.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import qq_plot
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> ax = qq_plot(x, pk.fit(x, family="box-cox"))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['before', 'after']
    """
    one = select_column(X, fit, column, CensoringMarks(below, above, limits))
    return _draw_qq_axes(get_axes(ax), one, band, "standardized value")


def residual_plot(
    Y: object,
    X: object,
    fit: RegressionFit,
    *,
    column: int | str = 0,
    band: float | None = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw a normal QQ plot of the residuals of one response, before and after its transform.

    The sorted residuals, divided by their standard deviation (``sqrt(RSS/n)``), are drawn against the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``. The residuals before the transform are from the linear model of the untransformed
    response (lambda = 1), and the residuals after the transform are from the fit.

    Parameters
    ----------
    Y : (n, p) or (n,) array-like
        The responses.
    X : (n, k) or (n,) array-like
        The covariates, or the data frame in which the formula of the fit is evaluated.
    fit : RegressionFit
        The fit.
    column, ax
        As in `qq_plot`.
    band : float or None, default 0.95
        Probability with which the grey band contains all points if the residuals are independent; see `qq_plot`.

    Returns
    -------
    matplotlib Axes
        The axes. Their first two lines are the residuals before and after.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import residual_plot
    >>> from powerkern.regression import fit_regression
    >>> x = np.arange(50.0)
    >>> y = np.exp(0.1 * x + np.random.default_rng(0).normal(size=50))
    >>> ax = residual_plot(y, x, fit_regression(y, x))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['before', 'after']
    """
    check_fit(Y, fit, RegressionFit)
    power = fit.power_fit
    matrix = read_columns(Y, power)
    j = find_column(column, matrix, power)
    plain = fit_regression(
        matrix.values[:, j], X, fit.families[j], formula=fit.formula,
        intercept=fit.formula is not None or fit.intercept, lmbda=1.0, shift=power.shift[j],
    )  # fmt: skip
    before = plain.residuals(standardized=True)
    after = fit.residuals(Y, X, standardized=True).reshape(len(before), -1)[:, j]
    known = ~(np.isnan(before) | np.isnan(after))
    label = title_label(j, matrix.names or power.column_names)
    if not known.any():
        raise ValueError(
            f"{label}: no row has a residual both before and after the transform; too many values are missing"
        )
    kept = np.ones(np.count_nonzero(known), dtype=bool)
    one = PlotColumn(label, float(power.lmbda[j]), before[known], after[known], kept)
    return _draw_qq_axes(get_axes(ax), one, band, "standardized residual")


# --- parts --------------------------------------------------------------------------------------------


def _draw_qq_axes(ax: Axes, one: PlotColumn, band: float | None, ylabel: str) -> Axes:
    """Draw the QQ plot of one column, with labels, legend and title.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    one : PlotColumn
        The column.
    band : float or None
        Probability of the band.
    ylabel : str
        Label of the vertical axis.
    """
    draw_qq(ax, one, band=band, ylabel=ylabel)
    ax.legend()
    set_title(ax, one.label, one.lmbda)
    return ax


def draw_qq(ax: Axes, one: PlotColumn, *, band: float | None, ylabel: str = "standardized value") -> None:
    """Draw the sorted values before and after, the diagonal, and the band around the diagonal.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    one : PlotColumn
        The column.
    band : float or None
        Probability with which the band contains all points of a normal sample; None draws no band.
    ylabel : str
        Label of the vertical axis.
    """
    every = np.ones(one.before.size, dtype=bool)
    order = np.argsort(one.after)
    after, kept = one.after[order], one.kept[order]
    if one.positions is None:
        scores = normal_scores(np.arange(1, after.size + 1), after.size)
    else:
        scores = np.asarray(ndtri(np.sort(one.positions)))
    rings = {"marker": "o", "markersize": 5.0, "markerfacecolor": "none", "markeredgewidth": 0.8}
    _draw_points(ax, scores, np.sort(one.before), every, label="before", color=reference_grey(ax), **rings)
    dots = {"marker": ".", "markersize": 5.0, "markeredgewidth": 0.0}  # small enough to fit into the rings
    _draw_points(ax, scores, after, every, label="after", color="C0", **dots)
    if not kept.all():
        _draw_points(ax, scores, after, ~kept, label="left out of the fit", color="C3", **dots)
        ax.axhspan(after[kept][0], after[kept][-1], color="C0", alpha=0.1, linewidth=0.0)
    ax.axline((0.0, 0.0), slope=1.0, color=text_color(ax), linewidth=0.8)
    ax.set(xlabel="normal score", ylabel=ylabel)
    if band is not None:
        if not (is_real(band) and 0.0 < band < 1.0):
            raise ValueError(f"band must be a probability between 0 and 1, or None, got {shown(band)}")
        if one.positions is not None:
            return
        style = {"color": text_color(ax), "alpha": 0.12, "linewidth": 0.0, "zorder": 0.5}
        ax.fill_between(
            *simultaneous_band(after.size, float(band)), label=f"{100 * band:g}% of normal samples", **style
        )


def _draw_points(ax: Axes, scores: FloatArray, values: FloatArray, chosen: BoolArray, **style: Any) -> None:
    """Draw sorted values, but only the first point in each cell of a fine grid, and the last point.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    scores, values : (n,) ndarray
        Normal scores, and the sorted values.
    chosen : (n,) ndarray of bool
        Mask of the values to draw.
    **style
        Options of `matplotlib.axes.Axes.plot`.
    """
    points = np.stack([scores[chosen], values[chosen]])
    cells = np.floor(np.arcsinh(points) / _STEP)
    seen = np.concatenate([[True], (np.diff(cells) != 0.0).any(axis=0)])
    seen[-1] = True
    ax.plot(*points[:, seen], linestyle="", **style)
