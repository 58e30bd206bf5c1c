"""Normality plots over lambda, as in `scipy.stats`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arguments import as_whole
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.stats._arrays import as_float64, as_scalar, read_column, read_data
from powerkern.stats._optima import correlations

#: Largest number of lambdas: 8 MB of correlations, and more than a plot can show.
_MOST_LAMBDAS = 1_000_000


def boxcox_normplot(x: ArrayLike, la: float, lb: float, plot: Any = None, N: int = 80) -> Any:
    """Compute the probability plot correlation coefficient of Box-Cox transforms of `x` at equally spaced lambdas.

    Parameters
    ----------
    x : array_like
        The data: 1-D and positive.
    la, lb : float
        Smallest and largest lambda.
    plot : matplotlib Axes or pyplot, optional
        Object on which to plot the correlations, with a method ``plot`` and with ``set_title`` or ``title``.
    N : int, default 80
        Number of lambdas.

    Returns
    -------
    lmbdas : (N,) ndarray
        The lambdas. An empty `x` is returned unchanged, without other results.
    ppcc : (N,) ndarray
        Correlation of the sorted transformed data with the medians of normal order statistics; NaN for data that are
        constant or not finite.

    Raises
    ------
    ValueError
        If `lb` is not larger than `la`, or `x` is not positive or not 1-D.

    See Also
    --------
    boxcox_normmax, yeojohnson_normplot

    Notes
    -----
    The correlation is evaluated from scaled exponentials, so it is finite even where SciPy's evaluation overflows.

    Examples
    --------
    >>> from powerkern.stats import boxcox_normplot
    >>> lmbdas, ppcc = boxcox_normplot([0.7, 1.6, 2.3, 3.3, 5.8, 9.4, 20.1], -1, 1, N=3)
    >>> ppcc.round(4)
    array([0.894 , 0.9983, 0.8889])
    """
    return _normplot(x, BOX_COX, "Box-Cox Normality Plot", la, lb, plot, N)


def yeojohnson_normplot(x: ArrayLike, la: float, lb: float, plot: Any = None, N: int = 80) -> Any:
    """Compute the probability plot correlation coefficient of Yeo-Johnson transforms of `x` at equally spaced lambdas.

    Parameters
    ----------
    x : array_like
        The data: 1-D.
    la, lb, plot, N
        As in `boxcox_normplot`; results and errors are also the same.

    Examples
    --------
    >>> from powerkern.stats import yeojohnson_normplot
    >>> lmbdas, ppcc = yeojohnson_normplot([-1.2, 0.0, 0.4, 1.3, 3.0, 8.1], -1, 1, N=3)
    >>> ppcc.round(4)
    array([0.8154, 0.9717, 0.9186])
    """
    return _normplot(x, YEO_JOHNSON, "Yeo-Johnson Normality Plot", la, lb, plot, N)


def _normplot(x: ArrayLike, family: int, title: str, la: float, lb: float, plot: Any, n: int) -> Any:
    """Compute the probability plot correlation coefficient at equally spaced lambdas, and plot it if `plot` is given.

    Parameters
    ----------
    x : array-like
        The data.
    family : int
        A code of `kernels.transforms.family`.
    title : str
        Title of the plot.
    la, lb : float
        Smallest and largest lambda.
    plot : object or None
        Object to plot on, as in `boxcox_normplot`.
    n : int
        Number of lambdas.
    """
    data = read_data(x)
    if data.size == 0:
        return np.asarray(data)
    la, lb, n = as_scalar(la, "la"), as_scalar(lb, "lb"), as_whole("N", n, 0, _MOST_LAMBDAS)
    if not (np.isfinite(la) and np.isfinite(lb)):
        raise ValueError("`la` and `lb` must be finite.")
    if lb <= la:
        raise ValueError("`lb` has to be larger than `la`.")
    data = as_float64(data)
    if family == BOX_COX and np.any(data <= 0):
        raise ValueError("Data must be positive.")
    lmbdas = np.linspace(la, lb, num=n)
    column, low, high = read_column(data)
    varies = -np.inf < low < high < np.inf
    ppcc: FloatArray = correlations(column, family, lmbdas) if varies else np.full(lmbdas.size, np.nan)
    if plot is not None:
        plot.plot(lmbdas, ppcc, "x")
        _label(plot, title, "$\\lambda$", "Prob Plot Corr. Coef.")
    return lmbdas, ppcc


def _label(plot: Any, title: str, x: str, y: str) -> None:
    """Set the title and the axis labels of matplotlib Axes, or of the current plot of pyplot.

    Parameters
    ----------
    plot : object
        Object to plot on, as in `boxcox_normplot`; methods that it does not have are skipped.
    title, x, y : str
        The title, and the labels of the horizontal and of the vertical axis.
    """
    prefix = "set_" if hasattr(plot, "set_title") else ""
    for name, text in (("title", title), ("xlabel", x), ("ylabel", y)):
        method = getattr(plot, prefix + name, None)
        if method is not None:
            method(text)
