"""Maps of the cells of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from powerkern._fit.fit import PowerFit
from powerkern._input.arrays import is_real, is_whole
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.cellwise import DDCFit
from powerkern.joint import JointFit
from powerkern.plot._drawing import axes_of, by_column, ink, matrix_of, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names on an axis at most, and their length.
_MOST_NAMES, _LABEL = 40, 20


def cell_map(
    X: object,
    fit: PowerFit | JointFit | DDCFit,
    *,
    cutoff: float | None = None,
    max_shape: tuple[int, int] = (200, 100),
    ax: Axes | None = None,
) -> Axes:
    """Map of the cells of a matrix, with outlying cells in color.

    Colors show transformed, standardized values, or residuals from the predictions of `powerkern.cellwise.ddc`, with a
    mark to the right of each row that deviates as a whole.

    A cell is yellow up to the cutoff, then red (high) or blue (low), the darker the further out. Missing cells are
    blank, and columns that could not be fitted hatched. Of a large matrix each block of cells has the color of the one
    that is furthest out, so that none is lost however many there are; colors are at their darkest from twice the value
    on that one normal block in a hundred exceeds (with the default cutoff), as they are from twice the cutoff on where
    cells are drawn singly, and the darkest blocks are enlarged where they would be too small to see.

    Parameters
    ----------
    X : (n, p) array-like
        The data.
    fit : PowerFit, JointFit or DDCFit
        The fit. Transforms are made with ``standardize=True``, and preferably robust (``estimator="rewml"``), since
        outliers in a maximum likelihood fit hide themselves. Of a `powerkern.cellwise.DDCFit` the columns that it
        kept are drawn, and all rows of `X`, judged by `powerkern.cellwise.DDCFit.predict`.
    cutoff : float, optional
        How far out is outlying; default: the normal quantile at the `cutoff` of the fit, 2.576 unless its estimator has
        another, beyond which lies one normal value in a hundred. Columns that are too short for it (see
        `PowerFit.standardized_cutoff`) are scaled down until it is theirs.
    max_shape : (int, int), default (200, 100)
        Largest number of rows and columns to draw; more are drawn as blocks, whose size the axes name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first image holds a number for each cell or block: 0 up to the cutoff, 1 (-1) from twice the cutoff (of
        blocks, see above) on, NaN where nothing is known.

    References
    ----------
    .. [1] P. J. Rousseeuw and W. Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018, 135-145.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import cell_map
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> fit = pk.fit(X)
    >>> X[3, 2] = 40.0
    >>> float(cell_map(X, fit).images[0].get_array()[3, 2])
    1.0
    """
    drawn = _of_deviations(X, fit) if isinstance(fit, DDCFit) else _of_transforms(X, by_column(fit))
    z = drawn.values if cutoff is not None else drawn.values * drawn.scaling
    cutoff = drawn.cutoff if cutoff is None else cutoff
    if not (is_real(cutoff) and 0.0 < cutoff < np.inf):
        raise ValueError(f"cutoff must be a positive number, got {cutoff!r}")
    if not (isinstance(max_shape, Sequence) and len(max_shape) == 2 and all(is_whole(k) and k >= 1 for k in max_shape)):
        raise ValueError(f"max_shape must be two whole numbers of at least 1, rows and columns, got {max_shape!r}")
    rows, columns = (-(-size // limit) for size, limit in zip(z.shape, max_shape, strict=True))
    ax = axes_of(ax)
    draw_cells(ax, furthest_out(z, rows, columns), z.shape, cutoff, 2.0 * _cutoff_of_blocks(cutoff, rows * columns))
    _mark_failed(ax, drawn.failed)
    _mark_rows(ax, drawn.rows)
    _name_columns(ax, drawn.names, z.shape[1], columns)
    _name_rows(ax, _row_names(X), len(z), rows)
    return ax


# --- parts --------------------------------------------------------------------------------------------


class _Drawn(NamedTuple):
    """Standardized values with their cutoff, column names, columns not fitted, and rows that deviate as a whole."""

    values: FloatArray
    cutoff: float
    scaling: FloatArray  #: of each column, that brings its own cutoff there
    names: list[str] | None
    failed: BoolArray
    rows: IntArray


def _of_transforms(X: object, fit: PowerFit) -> _Drawn:
    if not fit.standardize:
        raise ValueError("a cell map needs standardized values: fit with standardize=True")
    matrix = matrix_of(X, fit)
    failed = is_failed(fit.status)
    z = fit.transform(matrix.values).astype(np.float64)
    z[:, failed] = np.nan  # not on a standardized scale
    cutoff = float(ndtri(fit.cutoff))
    own, names = fit.standardized_cutoff(), matrix.names or fit.column_names
    return _Drawn(z, cutoff, cutoff / own, names, failed, np.empty(0, dtype=np.int64))


def _of_deviations(X: object, fit: DDCFit) -> _Drawn:
    cells = fit.predict(X)
    failed = np.zeros(fit.loc.size, dtype=bool)
    return _Drawn(
        np.asarray(cells.residuals),
        fit.cutoff,
        np.ones(failed.size),
        fit.column_names,
        failed,
        np.flatnonzero(cells.flagged_rows),
    )


def _mark_rows(ax: Axes, rows: IntArray) -> None:
    """Point at rows from the right."""
    if rows.size:
        beside = {"transform": ax.get_yaxis_transform(), "clip_on": False}
        ax.plot(np.full(rows.size, 1.01), rows, "<", color=ink(ax), markersize=4.0, **beside)


def draw_cells(ax: Axes, z: FloatArray, shape: tuple[int, ...], cutoff: float, darkest: float) -> None:
    """Standardized values, one a cell or block of a matrix of this shape, with a bar of their colors."""
    excess = np.clip((np.abs(z) - cutoff) / (darkest - cutoff), 0.0, 1.0) * np.sign(z)
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    image = ax.imshow(
        excess, cmap=_cell_colors(), vmin=-1.0, vmax=1.0, aspect="auto", interpolation="nearest", extent=extent
    )
    if excess.shape != shape:
        _enlarge_darkest(ax, excess, extent)
    bar = ax.figure.colorbar(image, ax=ax, ticks=[-1.0, 0.0, 1.0])
    bar.ax.set_yticklabels([f"≤ -{darkest:.1f}", f"within ±{cutoff:.1f}", f"≥ {darkest:.1f}"])


def _enlarge_darkest(ax: Axes, excess: FloatArray, extent: tuple[float, float, float, float]) -> None:
    """Squares on the darkest blocks, which may be too small to see."""
    left, right, bottom, top = extent
    rows, columns = np.nonzero(np.abs(excess) == 1.0)
    x = left + (columns + 0.5) * (right - left) / excess.shape[1]
    y = top + (rows + 0.5) * (bottom - top) / excess.shape[0]
    colors = _cell_colors()(0.5 + 0.5 * excess[rows, columns])
    ax.scatter(x, y, s=25.0, marker="s", color=colors, linewidths=0)


def _cutoff_of_blocks(cutoff: float, n_cells: int) -> float:
    """Cutoff for the most extreme of n normal values with the tail probability of a single one."""
    within = np.log1p(-2.0 * ndtr(-cutoff)) / n_cells
    return float(-ndtri(-0.5 * np.expm1(within))) if within else float(cutoff)  # 0: it is rarer than float64 can say


def furthest_out(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """The value of largest magnitude in each block of cells, NaN aside; the last blocks may be smaller."""
    row_starts, column_starts = np.arange(0, values.shape[0], rows), np.arange(0, values.shape[1], columns)

    def extreme(of: Any) -> FloatArray:
        by_row: FloatArray = of.reduceat(values, row_starts, axis=0)
        return np.asarray(of.reduceat(by_row, column_starts, axis=1))

    low, high = extreme(np.fmin), extreme(np.fmax)
    return np.where(-low > high, low, high)


def _mark_failed(ax: Axes, failed: BoolArray) -> None:
    """Hatch the columns without a scale, with a legend."""
    if not failed.any():
        return
    style = {"facecolor": "none", "edgecolor": ink(ax), "alpha": 0.5, "hatch": "///", "linewidth": 0.0}
    at = np.flatnonzero(failed)
    for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
        span = ax.axvspan(run[0] - 0.5, run[-1] + 0.5, **style)
    span.set_label("not fitted")
    ax.legend(handles=[span], loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, borderaxespad=0.2)


def _name_columns(ax: Axes, names: list[str] | None, p: int, block: int) -> None:
    if names is not None:
        at = np.arange(0, p, max(block, -(-p // _MOST_NAMES)))
        ax.set_xticks(at, [shortened(names[j], _LABEL) for j in at], rotation=90, parse_math=False)
    ax.set_xlabel(_axis_label("" if names else "column", block))


def _name_rows(ax: Axes, names: list[str] | None, n: int, block: int) -> None:
    named = names if n <= _MOST_NAMES else None
    if named is not None:
        ax.set_yticks(range(n), [shortened(name, _LABEL) for name in named], parse_math=False)
    ax.set_ylabel(_axis_label("" if named else "row", block))


def _axis_label(what: str, block: int) -> str:
    return what if block == 1 else f"{what} in blocks of {block:,}".lstrip()


def _row_names(X: Any) -> list[str] | None:
    """The index of a pandas data frame, unless it only counts."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(index, "is_unique") or type(index).__name__ == "RangeIndex":
        return None
    return list(map(str, index))


def _cell_colors() -> Any:
    """Blue, yellow, red; missing cells are left blank."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = ["midnightblue", "dodgerblue", "lightyellow", "orangered", "darkred"]
    return LinearSegmentedColormap.from_list("cells", colors)
