"""Plots of outliers: outlier maps, densities of scaling rules, reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.alignment import align_rows
from powerkern._input.arrays import as_reals, is_whole, to_list
from powerkern._input.messages import shown
from powerkern._typing import FloatArray
from powerkern.cellwise import WrappedPCA
from powerkern.outliers import fit_scaling, reliability_diagram
from powerkern.outliers.measures import Strategy
from powerkern.plot._drawing import get_axes, label_points, reference_grey, text_color
from powerkern.plot._fits import check_fit, row_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Default rules of `score_plot`: the classical rule and a robust one.
_RULES: Mapping[str, Mapping[str, Any]] = {"mean + sd": {"scale": "sd"}, "mean + nMAD": {}}
#: Number of points at which a density is drawn.
_POINTS = 400
#: Total area of the markers of a reliability diagram, in square points.
_MARKERS = 600.0


def outlier_map(X: object, fit: WrappedPCA, *, labels: Sequence[str] | int = 10, ax: Axes | None = None) -> Axes:
    """Draw the outlier map of robust principal components: orthogonal distances against score distances.

    The lines are the cut-offs. Regular rows lie to the lower left of both. Good leverage points lie to the right,
    orthogonal outliers above, and bad leverage points beyond both [1]_.

    Parameters
    ----------
    X : (n, p) array-like or None
        Rows to draw; None draws the fitted rows.
    fit : WrappedPCA
        The components, from `powerkern.cellwise.wrapped_pca`.
    labels : int or sequence of str, default 10
        Number of outliers to label, the most distant first. The labels are the index of a data frame `X`, otherwise the
        row numbers. Alternatively, a label for every row; then all outliers are labelled.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes. Their first two lines are the points of regular rows and of outliers.

    Raises
    ------
    ValueError
        If the columns of `X` differ from those of the fit, or if the number of labels is not the number of rows.

    References
    ----------
    .. [1] M. Hubert, P. J. Rousseeuw, K. Vanden Branden, "ROBPCA: a new approach to robust principal component
       analysis", Technometrics 47, 2005, 64-79.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrapped_pca
    >>> from powerkern.plot import outlier_map
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(100, 5))
    >>> X[7] = 9.0
    >>> ax = outlier_map(X, wrapped_pca(X, 2), labels=1)
    >>> [text.get_text() for text in ax.texts]
    ['7']
    """
    check_fit(X, fit, WrappedPCA)
    distances = (fit.score_distances, fit.orthogonal_distances) if X is None else fit.distances(X)
    inside, outside = map(np.asarray, distances)
    beyond = np.fmax(inside / fit.score_cutoff, outside / (fit.orthogonal_cutoff or np.inf))
    texts, chosen = _row_labels(align_rows(labels, X, "labels"), row_names(X), beyond)
    ax = get_axes(ax)
    far = beyond > 1.0
    for rows, label, color in ((~far, "regular", reference_grey(ax)), (far, "outlying", "C3")):
        ax.plot(inside[rows], outside[rows], ".", label=label, color=color)
    ax.axvline(fit.score_cutoff, color=text_color(ax), linewidth=0.8, label=f"cut-offs ({100 * fit.quantile:g}%)")
    ax.axhline(fit.orthogonal_cutoff, color=text_color(ax), linewidth=0.8)
    ax.set(xlabel=f"score distance ({fit.eigenvalues.size} components)", ylabel="orthogonal distance")
    ax.set(xlim=(0.0, None), ylim=(0.0, None))
    ax.legend()
    if len(chosen):
        label_points(ax, np.column_stack([inside, outside]), chosen, [texts[i] for i in chosen])
    return ax


def _row_labels(
    labels: Sequence[str] | int, names: list[str] | None, beyond: FloatArray
) -> tuple[Sequence[str], Sequence[int]]:
    """Return the label of each row, and the positions of the rows to label, most distant first.

    Parameters
    ----------
    labels : int or sequence of str
        As in `outlier_map`.
    names : list of str or None
        Index of the data frame, if there is one.
    beyond : (n,) ndarray
        Distance of each row relative to the cut-offs; rows beyond a cut-off have more than 1.
    """
    far = np.flatnonzero(beyond > 1.0)
    far = far[np.argsort(-beyond[far], kind="stable")]
    if isinstance(labels, int | np.integer):
        return names or [str(i) for i in range(beyond.size)], far[:labels].tolist()
    labels = to_list(labels)
    if len(labels) != beyond.size:
        raise ValueError(f"labels has {len(labels)} entries, there are {beyond.size} rows; pass one label per row")
    return [str(label) for label in labels], far.tolist()


def score_plot(
    scores: ArrayLike,
    rules: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    bins: Any = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Draw a histogram of outlier scores with the densities fitted by scaling rules, and residuals in a lower panel.

    A rule is suitable if its density matches the histogram of the inliers, so that only outliers, on the right, have
    large residuals. Outliers inflate the standard deviation, so a rule that uses it has a density that is too wide for
    the inliers [1]_.

    Parameters
    ----------
    scores : (n,) array-like
        Scores of one detector; larger is more outlying. NaN and infinite scores are left out.
    rules : dict, optional
        Rules to draw: a dictionary from names in the legend to arguments of `powerkern.outliers.fit_scaling`. The
        default is two rules: mean with standard deviation, and mean with nMAD.
    bins : int, sequence or str, default "auto"
        As in `numpy.histogram_bin_edges`.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure. The area of these axes is divided into two.

    Returns
    -------
    matplotlib Axes
        The axes. Their lines are the densities of the rules. The last axes of the figure show the residuals of each
        rule: in every bin, the density of the histogram minus the mean density of the rule.

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
        raise ValueError(f"scores must be the one-dimensional scores of one detector, got shape {values.shape}")
    values = values[np.isfinite(values)]
    if not values.size:
        raise ValueError("scores has no finite values; there is nothing to draw")
    if not isinstance(rules, Mapping | None):
        raise TypeError(f"rules must be a dict from legend names to fit_scaling options, got {type(rules).__name__}")
    try:
        edges = np.histogram_bin_edges(
            values, bins if isinstance(bins, str) or is_whole(bins) else as_reals("bins", bins)
        )
    except ValueError:
        if not isinstance(bins, str):
            raise
        raise ValueError(f"bins must be as in numpy.histogram_bin_edges, got {shown(bins)}") from None
    if not (np.diff(edges) > 0.0).all():
        raise ValueError("bins must be strictly ascending edges; leave out repeated ones")
    share = np.histogram(values, edges)[0] / values.size
    ax = get_axes(ax)
    below = _axes_below(ax)
    ax.stairs(share / np.diff(edges), edges, fill=True, color=reference_grey(ax), alpha=0.5, label="scores")
    fine = np.linspace(edges[0], edges[-1], _POINTS)
    for name, rule in (_RULES if rules is None else rules).items():
        scaling = fit_scaling(values, **rule)
        line = ax.plot((fine[1:] + fine[:-1]) / 2.0, np.diff(scaling.cdf(fine)) / np.diff(fine), label=name)[0]
        residual = (share - np.diff(scaling.cdf(edges))) / np.diff(edges)
        below.plot((edges[1:] + edges[:-1]) / 2.0, residual, ".-", color=line.get_color(), linewidth=0.8)
    below.axhline(0.0, color=text_color(ax), linewidth=0.8)
    ax.set(ylabel="density")
    below.set(xlabel="score", ylabel="residual")
    ax.legend()
    return ax


def _axes_below(ax: Axes) -> Axes:
    """Divide the area of `ax` into two; return new axes in the lower part."""
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError("ax must be a subplot, so that its space can be divided; this one was placed by hand")
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
    """Draw a reliability diagram: in each bin, the fraction of outliers against the mean outlier probability.

    Parameters
    ----------
    y_true, y_prob, strategy, n_bins
        As in `powerkern.outliers.reliability_diagram`.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes, with a marker for each bin, whose area is proportional to the number of scores. On the dashed
        diagonal, probabilities equal frequencies.

    Examples
    --------
    >>> from powerkern.plot import reliability_plot
    >>> ax = reliability_plot([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
    >>> ax.get_ylabel()
    'fraction of outliers'
    """
    diagram = reliability_diagram(y_true, y_prob, strategy=strategy, n_bins=n_bins)
    ax = get_axes(ax)
    diagonal = {"color": text_color(ax), "linewidth": 0.8, "linestyle": "--", "alpha": 0.6}
    ax.plot([0.0, 1.0], [0.0, 1.0], label="calibrated", **diagonal)
    full = diagram.n_scores > 0.0
    x, y = diagram.mean_prob[full], diagram.frequency[full]
    color = ax.plot(x, y)[0].get_color()
    counts = diagram.n_scores[full]
    area = _MARKERS / counts.sum()
    ax.scatter(x, y, s=area * counts, color=color)
    for count in np.unique([counts.min(), counts.max()]):
        ax.scatter([], [], s=area * count, color=color, label=f"{count:,.0f} scores")
    ax.set(xlabel="mean probability", ylabel="fraction of outliers")
    ax.legend()
    return ax
