"""Elbow plots: errors of decompositions by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern.completion import RankProfile
from powerkern.plot._drawing import get_axes, reference_grey, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def elbow_plot(profile: RankProfile, *, ax: Axes | None = None) -> Axes:
    """Draw an elbow plot: the errors on fitted and on held-out entries against the rank of the decomposition.

    The error on the fitted entries falls with every component. The error on the held-out entries falls as long as a
    further component improves their prediction. The best rank has the smallest held-out error. The elbow is the point
    farthest below the dotted line from the first point to the best rank.

    Parameters
    ----------
    profile : RankProfile
        The errors by rank, from `powerkern.completion.rank_profile`.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes. Their lines are the errors on the fitted entries, the errors on the held-out entries, the dotted line,
        and the markers of the best rank and of the elbow.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import rank_profile
    >>> from powerkern.plot import elbow_plot
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(80, 40))
    >>> ax = elbow_plot(rank_profile(M, rng=0))
    >>> [line.get_label() for line in ax.lines[-2:]]
    ['best: 3', 'elbow: 3']
    """
    if not isinstance(profile, RankProfile):
        raise TypeError(f"profile must be a RankProfile, got {type(profile).__name__}")
    ax = get_axes(ax)
    ax.plot(profile.ranks, profile.rmse, ".-", color=reference_grey(ax), label="fitted")
    ax.plot(profile.ranks, profile.validation_rmse, ".-", color="C0", label="held out")
    error = dict(zip(profile.ranks.tolist(), profile.validation_rmse.tolist(), strict=True))
    ends = int(profile.ranks[0]), profile.best
    ax.plot(ends, [error[rank] for rank in ends], ":", color=text_color(ax), linewidth=0.8, label="first to best")
    for rank, name, marker, size in ((profile.best, "best", "o", 9.0), (profile.elbow, "elbow", "s", 13.0)):
        style = {"markersize": size, "markerfacecolor": "none", "color": text_color(ax), "linestyle": ""}
        ax.plot([rank], [error[rank]], marker, label=f"{name}: {rank}", **style)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="rank", ylabel="root mean square error")
    ax.legend()
    return ax
