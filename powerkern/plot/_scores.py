"""Pictures of outlier scores and probabilities: densities that rules assume, reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arrays import as_reals
from powerkern.outliers import fit_scaling, reliability_diagram
from powerkern.outliers.measures import Strategy
from powerkern.plot._drawing import axes_of, faint, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Default rules of `score_plot`: the classical one and a robust one.
_RULES: Mapping[str, Mapping[str, Any]] = {"mean + sd": {"scale": "sd"}, "mean + nMAD": {}}
#: Points at which a density is drawn.
_POINTS = 400
#: Area of all markers of a reliability diagram together, in square points.
_MARKERS = 600.0


def score_plot(
    scores: ArrayLike,
    rules: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    bins: Any = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Histogram of outlier scores with the densities fitted by rules, and the residuals below.

    A rule suits if its density follows the histogram on the side of the inliers and leaves the outliers, to the right,
    as residuals. Outliers enlarge a standard deviation, so that the density is too wide for the inliers [1]_.

    Parameters
    ----------
    scores : (n,) array-like
        Scores of one detector, the larger the more outlying. NaN and infinite ones are left out.
    rules : dict, optional
        Arguments of `powerkern.outliers.fit_scaling` for each rule, by the name that the legend shows. By default mean
        with standard deviation, and mean with nMAD.
    bins : int, sequence or str, default "auto"
        As in `numpy.histogram_bin_edges`.
    ax : matplotlib Axes, optional
        A subplot, the room of which is divided; default: a new figure.

    Returns
    -------
    matplotlib Axes
        One line a rule, its density. The last axes of the figure have one line a rule of residuals: in each bin,
        density of the histogram minus mean density by the rule.

    Raises
    ------
    ValueError
        Scores of more than one detector, no finite scores, axes placed by hand, or as `powerkern.outliers.fit_scaling`.

    References
    ----------
    .. [1] P. Röchner, H. O. Marques, R. J. G. B. Campello, A. Zimek, F. Rothlauf, "Robust statistical scaling of
       outlier scores: improving the quality of outlier probabilities for outliers", SISAP 2024, figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import score_plot
    >>> rng = np.random.default_rng(0)
    >>> ax = score_plot(np.append(rng.normal(size=190), rng.normal(8.0, 1.0, size=10)))
    >>> [one.get_ylabel() for one in ax.figure.axes]
    ['density', 'residual']
    """
    values = as_reals("scores", scores)
    if values.ndim != 1:
        raise ValueError(f"scores must be those of one detector, one-dimensional, got shape {values.shape}")
    values = values[np.isfinite(values)]
    if not values.size:
        raise ValueError("scores has no finite values; there is nothing to draw")
    edges = np.histogram_bin_edges(values, bins)
    share = np.histogram(values, edges)[0] / values.size
    ax = axes_of(ax)
    below = _axes_below(ax)
    ax.stairs(share / np.diff(edges), edges, fill=True, color=faint(ax), alpha=0.5)
    fine = np.linspace(edges[0], edges[-1], _POINTS)
    for name, rule in (_RULES if rules is None else rules).items():
        scaling = fit_scaling(values, **rule)
        line = ax.plot((fine[1:] + fine[:-1]) / 2.0, np.diff(scaling.cdf(fine)) / np.diff(fine), label=name)[0]
        residual = (share - np.diff(scaling.cdf(edges))) / np.diff(edges)
        below.plot((edges[1:] + edges[:-1]) / 2.0, residual, ".-", color=line.get_color(), linewidth=0.8)
    below.axhline(0.0, color=ink(ax), linewidth=0.8)
    ax.set(ylabel="density")
    below.set(xlabel="score", ylabel="residual")
    ax.legend()
    return ax


def _axes_below(ax: Axes) -> Axes:
    """New axes in the lower part of the room of `ax`, which shrinks."""
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError("ax must be a subplot, whose room is divided; it was placed by hand")
    upper, lower = spec.subgridspec(2, 1, height_ratios=[3.0, 1.0])
    ax.set_subplotspec(upper)
    ax.tick_params(labelbottom=False)
    return ax.figure.add_subplot(lower, sharex=ax)


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
