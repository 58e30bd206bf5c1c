"""Heat maps of the scores of pairs of lambdas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input.arrays import as_reals, to_list
from powerkern._typing import FloatArray
from powerkern.plot._drawing import draw_legend_above, get_axes, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Markers of pairs of lambdas on a map of scores, in order.
_MARKS = "*oDsX^v"


def lambda_map(
    scores: ArrayLike,
    lmbdas: Sequence[ArrayLike],
    *,
    marks: Mapping[str, ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a heat map of the scores of pairs of lambdas, and mark the optima of full and of restricted searches.

    Three optima are marked. The full optimum is the best of all pairs. The spherical optimum is the best pair of equal
    lambdas. The diagonal optimum combines the best lambda of each column while the other column has lambda 1, or the
    lambda of the map that is closest to 1.

    Parameters
    ----------
    scores : (m, k) array-like
        Scores; larger is better. Row i belongs to the i-th lambda of the first column. `grid_scores_` of a
        `powerkern.sklearn.SupervisedPowerTransformer` is such a table. NaN marks pairs without a score.
    lmbdas : pair of (m,) and (k,) array-like
        Increasing lambdas of the two columns, such as `grid_lambdas_`. The spherical optimum needs a lambda that is in
        both arrays.
    marks : dict of str to (2,) array-like, optional
        Further pairs to mark, by name.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        The axes. The label of each mark gives its score. A pair in `marks` that is not on the grid of the map gets the
        score of the closest pair on the grid.

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
    axes = [as_reals("each of lmbdas", axis) for axis in to_list(lmbdas)]
    if not isinstance(marks, Mapping | None):
        raise TypeError(f"marks must be a dict from names to pairs of lambdas, got {type(marks).__name__}")
    given = {name: as_reals(f"the mark {name!r}", at) for name, at in (marks or {}).items()}
    if any(at.shape != (2,) for at in given.values()):
        raise ValueError("each mark must be two lambdas, of the first and of the second column")
    if [axis.ndim for axis in axes] != [1, 1] or table.shape != tuple(axis.size for axis in axes):
        raise ValueError(f"scores must be a matrix with one entry per pair of lambdas, got shape {table.shape}")
    if np.isnan(table).all():
        raise ValueError("no pair of lambdas has a score: scores are all NaN")
    ax = get_axes(ax)
    mesh = ax.pcolormesh(*axes, table.T, shading="nearest")
    ax.figure.colorbar(mesh, ax=ax, label="score")
    points = {**_find_optima(table, axes), **given}
    for (name, (first, second)), marker in zip(points.items(), _MARKS * len(points), strict=False):
        score = table[_index_of_closest(axes[0], first), _index_of_closest(axes[1], second)]
        style = {
            "markeredgecolor": text_color(ax),
            "markerfacecolor": ax.get_facecolor(),
            "markersize": 9,
            "clip_on": False,
        }
        ax.plot(first, second, marker, label=f"{name}: {score:.4g}", linestyle="", zorder=3, **style)
    ax.set(xlabel="lambda of the first column", ylabel="lambda of the second column")
    draw_legend_above(ax)
    return ax


def _find_optima(table: FloatArray, axes: list[FloatArray]) -> dict[str, FloatArray]:
    """Return the optimal pairs of lambdas of full, spherical and diagonal searches, by name of the search."""
    i, j = np.unravel_index(int(np.nanargmax(table)), table.shape)
    found = {"full": np.array([axes[0][i], axes[1][j]])}
    equal, first, second = np.intersect1d(axes[0], axes[1], return_indices=True)
    if equal.size and not np.isnan(along := table[first, second]).all():
        found["spherical"] = np.repeat(equal[np.nanargmax(along)], 2)
    column, row = table[:, _index_of_closest(axes[1], 1.0)], table[_index_of_closest(axes[0], 1.0)]
    if not (np.isnan(column).all() or np.isnan(row).all()):
        found["diagonal"] = np.array([axes[0][np.nanargmax(column)], axes[1][np.nanargmax(row)]])
    return found


def _index_of_closest(axis: FloatArray, lmbda: float) -> int:
    """Return the index of the element of `axis` that is closest to `lmbda`."""
    return int(np.argmin(abs(axis - lmbda)))
