"""Plots over lambda: the profile likelihood, and the objective of robust fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri

from powerkern._input.arrays import as_reals, column_label
from powerkern._results.power_fit import PowerFit
from powerkern.kernels.location.loc_scale import R_MAD_FACTOR
from powerkern.plot._drawing import get_axes, set_title, text_color
from powerkern.plot._fits import check_fit, find_column, fit_arguments, read_columns, title_label
from powerkern.regression import RegressionFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Range of lambda to draw on each side of the optimum, in units of 1/(MAD of the logs).
_REACH = 2.5


def profile_plot(
    X: object,
    fit: PowerFit | RegressionFit,
    *,
    column: int | str = 0,
    level: float = 0.95,
    lmbdas: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the profile log-likelihood of lambda for one column, with the likelihood interval.

    The horizontal line is half a chi-square quantile below the maximum. It intersects the curve at the ends of the
    interval that `PowerFit.confint` returns. R's ``MASS::boxcox`` draws the same plot.

    Parameters
    ----------
    X : (n, p) array-like or None
        The fitted data. Pass None if the fit still has them, and for a `RegressionFit`, which keeps its data.
    fit : PowerFit or RegressionFit
        The fit, with or without covariates.
    column : int or str, default 0
        The column, or response, by position or by name.
    level : float, default 0.95
        Confidence level of the interval.
    lmbdas : (k,) array-like, optional
        Lambdas at which to evaluate; default: 101 points over a range twice as wide as the interval.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes. Their first line is the curve.

    Raises
    ------
    ValueError
        If the column could not be fitted, or if its lambda does not maximize the likelihood and `lmbdas` is not given.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import profile_plot
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> fit = pk.fit(x, family="box-cox")
    >>> curve = profile_plot(x, fit).lines[0]
    >>> bool(np.isclose(curve.get_ydata().max(), -fit.nll[0], rtol=1e-4))
    True
    """
    check_fit(X, fit, PowerFit, RegressionFit)
    data, power = fit_arguments(X, fit)
    j = find_column(column, None, power)
    low, high = (float(np.asarray(end)[j]) for end in fit.confint(*data, level=level))
    if lmbdas is None:
        if not np.isfinite(high - low):
            label = column_label(j, fit.column_names)
            raise ValueError(f"{label} has no likelihood interval ({fit.status_text[j]}); pass lmbdas")
        lmbdas = np.linspace(low - 0.5 * (high - low), high + 0.5 * (high - low), 101)
    points = as_reals("lmbdas", lmbdas)
    ax = get_axes(ax)
    ax.plot(points, -fit.profile(points, *data)[j], color="C0")
    ax.axvline(fit.lmbda[j], color="C1", label="maximum")
    if np.isfinite(high - low):
        drop = 0.5 * chdtri(1, 1.0 - level)
        style = {"color": text_color(ax), "linewidth": 0.8, "linestyle": "--", "alpha": 0.6}
        ax.axhline(-fit.nll[j] - drop, label=f"maximum less {drop:.3g}", **style)
        ax.axvspan(low, high, color="C1", alpha=0.15, label=f"{low:.3g} to {high:.3g} ({100 * level:g}%)")
    ax.locator_params(axis="x", nbins=6)
    ax.set(xlabel="lambda", ylabel="log-likelihood")
    ax.legend()
    set_title(ax, title_label(j, fit.column_names), float(fit.lmbda[j]))
    return ax


def objective_plot(
    X: object,
    fit: PowerFit,
    *,
    column: int | str = 0,
    lmbdas: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the objective of the estimator over lambda for one column, with its minima and the start and end of the fit.

    The objective of a robust fit (see `PowerFit.objective_curve`) often has several minima. The plot shows whether the
    chosen minimum is clearly lower than the others.

    Parameters
    ----------
    X, column, ax
        As in `profile_plot`.
    fit : PowerFit
        The fit.
    lmbdas : (k,) array-like, optional
        Lambdas at which to evaluate. The default is 600 points from 2.5/s below to 2.5/s above `lmbda0` and `lmbda`,
        where s is the MAD of the logs of the values.

    Returns
    -------
    matplotlib Axes
        The axes. Their lines are the curve, its minima, and two vertical lines at `lmbda0` and at `lmbda`.

    Raises
    ------
    ValueError
        If the column could not be fitted.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import objective_plot
    >>> x = np.random.default_rng(1).lognormal(size=40)
    >>> fit = pk.fit(x, "box-cox", "robust")
    >>> curve, minima, start, end = objective_plot(x, fit).lines
    >>> bool(curve.get_ydata().min() == minima.get_ydata().min() == fit.objective_curve(fit.lmbda0)[0, 0])
    True
    """
    check_fit(X, fit, PowerFit)
    values = None if X is None else read_columns(X, fit).values
    j = find_column(column, None, fit)
    if np.isnan(fit.objective[j]):
        raise ValueError(
            f"{column_label(j, fit.column_names)} has no objective ({fit.status_text[j]}); choose another column"
        )
    start, end = fit.lmbda0[j], fit.lmbda[j]
    if lmbdas is None:
        reach = _REACH / _spread_of_logs(fit, values, j)
        lmbdas = np.linspace(min(start, end) - reach, max(start, end) + reach, 600)
    points = np.union1d(as_reals("lmbdas", lmbdas), [start])
    curve = fit.objective_curve(points, values)[j]
    inner = curve[1:-1]
    lowest = 1 + np.flatnonzero((inner <= curve[:-2]) & (inner < curve[2:]))
    ax = get_axes(ax)
    ax.plot(points, curve, color="C0")
    ax.plot(points[lowest], curve[lowest], "o", color="C0", markersize=4, label="local minima")
    ax.axvline(start, color="C2", linestyle="--", label=f"start: {start:.3g}")
    ax.axvline(end, color="C1", label=f"lambda: {end:.3g}")
    ax.set(xlabel="lambda", ylabel=f"objective of {fit.estimator.name!r}")
    ax.legend()
    set_title(ax, title_label(j, fit.column_names), float(end))
    return ax


def _spread_of_logs(fit: PowerFit, X: object, j: int) -> float:
    """Return the MAD of ln u, or of sign(u) ln(1 + |u|) for Yeo-Johnson, of column `j`; u = (x - center)/divisor.

    If the MAD is 0, return the range of the logs, or 1 if that is 0, too.
    """
    values, _ = fit._read_data(X)
    x = values[:, j].astype(np.float64)
    x = (x[~np.isnan(x)] - fit.center[j]) / fit.divisor[j]
    logs = np.log(x) if fit.families[j] == "box-cox" else np.copysign(np.log1p(np.abs(x)), x)
    return float(R_MAD_FACTOR * np.median(np.abs(logs - np.median(logs))) or np.ptp(logs) or 1.0)
