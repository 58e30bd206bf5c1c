"""Pictures of searches: errors by rank, scores by trial, scores of pairs of lambdas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arrays import as_reals, listed
from powerkern._typing import FloatArray
from powerkern.completion import RankProfile
from powerkern.plot._drawing import axes_of, faint, ink, key_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Markers of pairs of lambdas on a map of scores, in order.
_MARKS = "*oDsX^v"


def elbow_plot(profile: RankProfile, *, ax: Axes | None = None) -> Axes:
    """Elbow plot: errors of decompositions, on entries fitted to and on entries held out, against the rank.

    The first falls with every component, the second as long as components predict the entries held out: the best rank
    has the smallest error, and the elbow lies farthest below the dotted line from the first point to the best.

    Parameters
    ----------
    profile : RankProfile
        The errors, by `powerkern.completion.rank_profile`.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its lines are the errors on the entries fitted to, those on the entries held out, the straight line, and the
        marks of the best rank and of the elbow.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import rank_profile
    >>> from powerkern.plot import elbow_plot
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(80, 40))
    >>> ax = elbow_plot(rank_profile(M, random_state=0))
    >>> [line.get_label() for line in ax.lines[-2:]]
    ['best: 3', 'elbow: 3']
    """
    if not isinstance(profile, RankProfile):
        raise TypeError(f"profile must be a RankProfile, got {type(profile).__name__}")
    ax = axes_of(ax)
    ax.plot(profile.ranks, profile.rmse, ".-", color=faint(ax), label="fitted to")
    ax.plot(profile.ranks, profile.validation_rmse, ".-", color="C0", label="held out")
    error = dict(zip(profile.ranks.tolist(), profile.validation_rmse.tolist(), strict=True))
    ends = int(profile.ranks[0]), profile.best
    ax.plot(ends, [error[rank] for rank in ends], ":", color=ink(ax), linewidth=0.8, label="first to best")
    for rank, name, marker, size in ((profile.best, "best", "o", 9.0), (profile.elbow, "elbow", "s", 13.0)):
        style = {"markersize": size, "markerfacecolor": "none", "color": ink(ax), "linestyle": ""}
        ax.plot([rank], [error[rank]], marker, label=f"{name}: {rank}", **style)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="rank", ylabel="root mean square error")
    ax.legend()
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
    history = as_reals("scores", scores)
    if history.ndim != 1 or history.size == 0:
        raise ValueError(f"scores must be a one-dimensional array of at least one score, got shape {history.shape}")
    trials = np.arange(1, history.size + 1)
    ax = axes_of(ax)
    ax.plot(trials, history, ".", color=faint(ax), label="trial")
    ax.plot(trials, np.fmax.accumulate(history), color="C0", drawstyle="steps-post", label="best so far")
    ax.set(xlabel="trial", ylabel="score")
    ax.legend()
    return ax


def lambda_map(
    scores: ArrayLike,
    lmbdas: Sequence[ArrayLike],
    *,
    marks: Mapping[str, ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Heat map of the scores of pairs of lambdas, with the optima of searches that see only part of it.

    Marked are the full optimum, the best of all pairs; the spherical optimum, the best pair of equal lambdas; and the
    diagonal optimum, which has for each column the best lambda with the other column at 1 (or at the lambda of the map
    that is closest to 1).

    Parameters
    ----------
    scores : (m, k) array-like
        Scores, greater being better; the first lambda changes from row to row: `grid_scores_` of a
        `powerkern.supervised.SupervisedPowerTransformer`. NaN for pairs that have none.
    lmbdas : pair of (m,) and (k,) array-like
        Increasing lambdas: `grid_lambdas_`. There is no spherical optimum where none is in both.
    marks : dict of str to (2,) array-like, optional
        Further pairs to mark, by name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The labels of the marks have their scores; a further mark has the score of the closest pair.

    Raises
    ------
    ValueError
        If the scores are not a table of the lambdas, or none is a number.

    References
    ----------
    .. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers
       in Artificial Intelligence 5, 2022, 877569, Fig. 3.

    Examples
    --------
    >>> from powerkern.plot import lambda_map
    >>> ax = lambda_map([[0.7, 0.6], [0.9, 0.8]], [[0.0, 1.0], [0.0, 1.0]])
    >>> [line.get_label() for line in ax.lines]
    ['full: 0.9', 'spherical: 0.8', 'diagonal: 0.8']
    """
    table = as_reals("scores", scores)
    axes = [as_reals("each of lmbdas", axis) for axis in listed(lmbdas)]
    if not isinstance(marks, Mapping | None):
        raise TypeError(f"marks must be a dict of pairs of lambdas by name, got {type(marks).__name__}")
    given = {name: as_reals(f"the mark {name!r}", at) for name, at in (marks or {}).items()}
    if any(at.shape != (2,) for at in given.values()):
        raise ValueError("each mark must be two lambdas, of the first and of the second column")
    if [axis.ndim for axis in axes] != [1, 1] or table.shape != tuple(axis.size for axis in axes):
        raise ValueError(f"scores must be a table of two lists of lambdas, got shape {table.shape}")
    if np.isnan(table).all():
        raise ValueError("no pair of lambdas has a score")
    ax = axes_of(ax)
    mesh = ax.pcolormesh(*axes, table.T, shading="nearest")
    ax.figure.colorbar(mesh, ax=ax, label="score")
    points = {**_optima(table, axes), **given}
    for (name, (first, second)), marker in zip(points.items(), _MARKS * len(points), strict=False):
        score = table[_closest(axes[0], first), _closest(axes[1], second)]
        style = {"markeredgecolor": ink(ax), "markerfacecolor": ax.get_facecolor(), "markersize": 9, "clip_on": False}
        ax.plot(first, second, marker, label=f"{name}: {score:.4g}", linestyle="", zorder=3, **style)
    ax.set(xlabel="lambda of the first column", ylabel="lambda of the second column")
    key_above(ax)
    return ax


def _optima(table: FloatArray, axes: list[FloatArray]) -> dict[str, FloatArray]:
    """The pairs of lambdas that searches would find, by name."""
    i, j = np.unravel_index(int(np.nanargmax(table)), table.shape)
    found = {"full": np.array([axes[0][i], axes[1][j]])}
    equal, first, second = np.intersect1d(axes[0], axes[1], return_indices=True)
    if equal.size and not np.isnan(along := table[first, second]).all():
        found["spherical"] = np.repeat(equal[np.nanargmax(along)], 2)
    column, row = table[:, _closest(axes[1], 1.0)], table[_closest(axes[0], 1.0)]
    if not (np.isnan(column).all() or np.isnan(row).all()):
        found["diagonal"] = np.array([axes[0][np.nanargmax(column)], axes[1][np.nanargmax(row)]])
    return found


def _closest(axis: FloatArray, lmbda: float) -> int:
    return int(np.argmin(abs(axis - lmbda)))
