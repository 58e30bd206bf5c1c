"""Pictures of rules that make probabilities of scores: what they assume, how good they are, which are better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arrays import as_reals
from powerkern._typing import FloatArray
from powerkern.outliers import RankComparison, compare_ranks, fit_scaling
from powerkern.plot._drawing import axes_of, faint, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What `score_plot` compares: the classical rule, and a robust one.
_RULES: Mapping[str, Mapping[str, Any]] = {"mean + sd": {"scale": "sd"}, "mean + nMAD": {}}
#: Points of a density.
_POINTS = 400


def score_plot(
    scores: ArrayLike,
    rules: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    bins: Any = "auto",
    ax: Axes | None = None,
) -> Axes:
    """Histogram of outlier scores with the densities that rules fit to them, and below what these leave over.

    A rule suits where its density follows the histogram on the side of the inliers and leaves the outliers over, to the
    right. Outliers enlarge a standard deviation, so that the density is too wide for the inliers [1]_.

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
    """Axes in the lower part of the room of these, which move up."""
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError("ax must be a subplot, whose room is divided; it was placed by hand")
    upper, lower = spec.subgridspec(2, 1, height_ratios=[3.0, 1.0])
    ax.set_subplotspec(upper)
    ax.tick_params(labelbottom=False)
    return ax.figure.add_subplot(lower, sharex=ax)


def skill_plot(skills: Mapping[str, ArrayLike] | ArrayLike, names: Sequence[str], *, ax: Axes | None = None) -> Axes:
    """Skill scores of rules over many cases: one box a rule, and a color for each stratum.

    Parameters
    ----------
    skills : (n, k) array-like, or dict of them
        `powerkern.outliers.skill_score` of each rule, relative to the same reference, a row for each case; by stratum,
        for the outliers and the inliers say. Infinite ones are drawn just beyond the finite ones.
    names : sequence of str
        Names of the k rules, from top to bottom.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        A box from the lower to the upper quartile, with the median, whiskers and points as matplotlib draws them; right
        of the line at 0, errors are smaller than those of the reference.

    Raises
    ------
    ValueError
        There is not one column a rule, or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import skill_plot
    >>> skills = np.random.default_rng(0).normal(size=(20, 2))
    >>> ax = skill_plot({"outliers": skills + 1.0, "inliers": skills}, ["mean + nMAD", "median + nMAD"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['mean + nMAD', 'median + nMAD']
    """
    strata = dict(skills) if isinstance(skills, Mapping) else {"": skills}
    tables = [_finite_table(table, len(names)) for table in strata.values()]
    ax = axes_of(ax)
    ax.axvline(0.0, color=ink(ax), linewidth=0.8, linestyle="--", alpha=0.6)
    height = 0.8 / len(tables)
    for i, (stratum, table) in enumerate(zip(strata, tables, strict=True)):
        _draw_boxes(ax, table, height * (i + 0.5) - 0.4, 0.8 * height, label=stratum, color=f"C{i}")
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("skill score")
    if isinstance(skills, Mapping):
        ax.legend()
    return ax


def _draw_boxes(ax: Axes, table: FloatArray, shift: float, height: float, *, label: str, color: str) -> None:
    """A box for each column, with whiskers and points as matplotlib has them."""
    from matplotlib.cbook import boxplot_stats

    boxes = boxplot_stats(table)
    lines = np.arange(len(boxes)) + shift
    q1, q3 = (np.array([box[quartile] for box in boxes]) for quartile in ("q1", "q3"))
    ax.barh(lines, q3 - q1, height, q1, color=color, edgecolor=ink(ax), alpha=0.7, label=label)
    for line, box in zip(lines, boxes, strict=True):
        ax.plot([box["med"]] * 2, [line - height / 2.0, line + height / 2.0], color=ink(ax))
        ends = [[box["whislo"], box["whishi"]], [box["q1"], box["q3"]]]
        ax.hlines([line, line], *ends, color=ink(ax), linewidth=0.8)
        ax.plot(box["fliers"], np.full(len(box["fliers"]), line), ".", color=faint(ax))


def _finite_table(table: ArrayLike, k: int) -> FloatArray:
    """Skill scores, infinite ones a tenth of the range beyond the others."""
    values = as_reals("table", table)
    if values.ndim != 2 or values.shape[1] != k or np.isnan(values).any():
        raise ValueError(f"skills must have a column for each of {k} names and no NaN, got shape {values.shape}")
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    room = 0.1 * (high - low) or 1.0
    return np.asarray(np.clip(values, low - room, high + room))


def rank_plot(
    errors: ArrayLike | RankComparison, names: Sequence[str], *, alpha: float = 0.05, ax: Axes | None = None
) -> Axes:
    """Mean ranks of methods on a line; bars join those that the tests do not tell apart.

    Parameters
    ----------
    errors : (n, k) array-like, or RankComparison
        A row for each case, a column for each method, lower being better; or what `powerkern.outliers.compare_ranks`
        made of them.
    names : sequence of str
        Names of the k methods.
    alpha : float, default 0.05
        Level of the tests, all together.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Rank 1, the best, to the left; its first k texts are the methods with their mean ranks, the best first.

    Raises
    ------
    ValueError
        There is not one name a method, or as `powerkern.outliers.compare_ranks`.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import rank_plot
    >>> errors = np.random.default_rng(0).uniform(size=(30, 3)) + [0.0, 0.0, 0.5]
    >>> [text.get_text() for text in rank_plot(errors, ["a", "b", "c"]).texts[:3]]
    ['b (1.60)', 'a (1.63)', 'c (2.77)']
    """
    comparison = errors if isinstance(errors, RankComparison) else compare_ranks(errors)
    ranks = comparison.mean_ranks
    k = ranks.size
    if len(names) != k:
        raise ValueError(f"names has {len(names)} entries for {k} methods; pass one each")
    groups = comparison.groups(alpha)
    rows = (k + 1) // 2  # of names on either side
    ax = axes_of(ax, figsize=(8.0, 1.2 + 0.25 * (rows + len(groups))))
    ax.hlines(0.0, 1.0, k, color=ink(ax))
    ax.vlines(np.arange(1, k + 1), 0.0, 0.3, color=ink(ax))
    bars = 0.5 * len(groups)
    for i, j in enumerate(np.argsort(ranks, kind="stable")):
        left = i < rows
        depth = -(0.8 + bars + 0.8 * (i if left else k - 1 - i))
        end = 0.9 if left else k + 0.1
        ax.plot([ranks[j], ranks[j], end], [0.0, depth, depth], color=ink(ax), linewidth=0.8)
        side = "right" if left else "left"
        ax.text(end, depth, f" {names[j]} ({ranks[j]:.2f}) ".strip(), ha=side, va="center", parse_math=False)
    for i, group in enumerate(groups):
        ends = ranks[list(group)]
        ax.hlines(-0.4 - 0.5 * i, ends.min() - 0.03, ends.max() + 0.03, color="C0", linewidth=4.0)
    for rank in range(1, k + 1):
        ax.annotate(str(rank), (rank, 0.3), xytext=(0.0, 2.0), textcoords="offset points", ha="center")
    ax.set(xlabel="mean rank", xlim=(1.0 - 0.45 * k, k + 0.45 * k), ylim=(-(0.8 + bars + 0.8 * rows), 1.2))
    ax.set_axis_off()
    return ax
