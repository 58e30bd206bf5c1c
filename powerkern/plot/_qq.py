"""Normal QQ plots: of columns before and after, of residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from powerkern._typing import FloatArray
from powerkern._validate import column_label
from powerkern.fitting import PowerFit
from powerkern.joint import JointFit
from powerkern.plot._drawing import axes_of, by_column, matrix_of, position, title_of
from powerkern.regression import RegressionFit, fit_regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def qq_plot(X: object, fit: PowerFit | JointFit, *, column: int | str = 0, ax: Axes | None = None) -> Axes:
    """Normal QQ plot of one column before and after its transform.

    The sorted values, less their mean and divided by their standard deviation, over the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``. What is normal lies on the diagonal. Values after a fit with
    ``standardize=True`` are drawn as `PowerFit.transform` gives them, so that a robust fit shows outliers as such:
    those that it left out are red, and the band holds what it kept (`PowerFit.weights`).

    Parameters
    ----------
    X : (n, p) array-like, or (n,) where the fit was to one column
        The data; missing values are left out.
    fit : PowerFit or JointFit
        The fit.
    column : int or str, default 0
        Which column, by position or by name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the points before and after; the third one, the values left out, if there are any.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import qq_plot
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> ax = qq_plot(x, pk.fit(x, family="box-cox"))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['before', 'after']
    """
    fit = by_column(fit)
    matrix = matrix_of(X, fit)
    j = position(column, matrix, fit)
    before = np.asarray(matrix.values[:, j], dtype=np.float64)
    after = fit.transform(matrix.values)[:, j].astype(np.float64)
    kept = ~np.isnan(before)
    n = int(kept.sum())
    if n == 0:
        raise ValueError(f"{column_label(j, matrix.names or fit.column_names)} has no values; there is nothing to draw")
    scores = _normal_scores(n)
    ax = axes_of(ax)
    ax.plot(scores, np.sort(_standardized(before[kept])), ".", label="before", color="0.6")
    shown = after[kept] if fit.standardize else _standardized(after[kept])
    order = np.argsort(shown)
    shown, left_out = shown[order], fit.weights(matrix.values)[kept, j][order] == 0.0
    ax.plot(scores, shown, ".", label="after", color="C0")
    if left_out.any():
        ax.plot(scores[left_out], shown[left_out], ".", label="left out of the fit", color="C3")
        ax.axhspan(shown[~left_out][0], shown[~left_out][-1], color="C0", alpha=0.1, linewidth=0.0)
    ax.axline((0.0, 0.0), slope=1.0, color="0.2", linewidth=0.8)
    ax.set(xlabel="normal score", ylabel="standardised value", title=title_of(j, matrix, fit))
    ax.legend()
    return ax


def residual_plot(Y: object, X: object, fit: RegressionFit, *, column: int | str = 0, ax: Axes | None = None) -> Axes:
    """Normal QQ plot of the residuals of one response, untransformed and transformed.

    The sorted residuals over their standard deviation (``sqrt(RSS/n)``), over the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``: those of the linear model of the response as it is (lambda = 1), and of the fit.

    Parameters
    ----------
    Y : (n, p) or (n,) array-like
        The responses.
    X : (n, k) or (n,) array-like
        The covariates, or the data frame that the fit's formula was evaluated in.
    fit : RegressionFit
        The fit.
    column : int or str, default 0
        Which response, by position or by name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the residuals before and after.

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
    power = fit.power_fit
    matrix = matrix_of(Y, power)
    j = position(column, matrix, power)
    plain = fit_regression(
        matrix.values[:, j], X, fit.families[j], formula=fit.formula,
        intercept=fit.formula is not None or fit.intercept, lmbda=1.0, shift=power.shift[j],
    )  # fmt: skip
    before = plain.residuals(standardized=True)
    after = fit.residuals(Y, X, standardized=True).reshape(len(before), -1)[:, j]
    ax = axes_of(ax)
    for residuals, label, color in ((before, "before", "0.6"), (after, "after", "C0")):
        known = np.sort(residuals[~np.isnan(residuals)])
        ax.plot(_normal_scores(known.size), known, ".", label=label, color=color)
    ax.axline((0.0, 0.0), slope=1.0, color="0.2", linewidth=0.8)
    ax.set(xlabel="normal score", ylabel="standardised residual", title=title_of(j, matrix, power))
    ax.legend()
    return ax


def _normal_scores(n: int) -> FloatArray:
    """Approximate medians of the order statistics of n normal values."""
    return np.asarray(ndtri((np.arange(1, n + 1) - 1.0 / 3.0) / (n + 1.0 / 3.0)))


def _standardized(values: FloatArray) -> FloatArray:
    spread = float(values.std())
    standardized: FloatArray = (values - values.mean()) / (spread or 1.0)
    return standardized
