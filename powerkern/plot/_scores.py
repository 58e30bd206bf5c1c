"""Pictures of scores: reliability of probabilities, history of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from powerkern.outliers import reliability_diagram
from powerkern.outliers.measures import Strategy
from powerkern.plot._drawing import axes_of, faint, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Area of all markers of a reliability diagram together, in square points.
_MARKERS = 600.0


def reliability_plot(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    strategy: Strategy = "equal-area",
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Reliability diagram of outlier probabilities: fraction of outliers against mean probability, bin by bin.

    Parameters
    ----------
    y_true, y_prob, strategy, n_bins
        As in `powerkern.outliers.reliability_diagram`.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        A marker for each bin, its area proportional to the number of scores; on the dashed diagonal, probabilities are
        frequencies.

    Examples
    --------
    >>> from powerkern.plot import reliability_plot
    >>> ax = reliability_plot([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
    >>> ax.get_ylabel()
    'fraction of outliers'
    """
    diagram = reliability_diagram(y_true, y_prob, strategy=strategy, n_bins=n_bins)
    ax = axes_of(ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=ink(ax), linewidth=0.8, linestyle="--", alpha=0.6)
    full = diagram.n_scores > 0.0
    x, y = diagram.mean_prob[full], diagram.frequency[full]
    line = ax.plot(x, y)[0]
    ax.scatter(x, y, s=_MARKERS * diagram.n_scores[full] / diagram.n_scores.sum(), color=line.get_color())
    ax.set(xlabel="mean probability", ylabel="fraction of outliers")
    return ax


def search_plot(scores: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """History of a search: the score of every trial, and the best one so far.

    Parameters
    ----------
    scores : (k,) array-like
        Scores in the order of the trials, greater being better; NaN for trials that failed.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the trials and the best so far.

    Examples
    --------
    >>> from powerkern.plot import search_plot
    >>> search_plot([0.7, 0.6, 0.9, 0.8]).lines[1].get_ydata().tolist()
    [0.7, 0.7, 0.9, 0.9]
    """
    history = np.asarray(scores, dtype=np.float64)
    if history.ndim != 1 or history.size == 0:
        raise ValueError(f"scores must be a one-dimensional array of at least one score, got shape {history.shape}")
    trials = np.arange(1, history.size + 1)
    ax = axes_of(ax)
    ax.plot(trials, history, ".", color=faint(ax), label="trial")
    ax.plot(trials, np.fmax.accumulate(history), color="C0", drawstyle="steps-post", label="best so far")
    ax.set(xlabel="trial", ylabel="score")
    ax.legend()
    return ax
