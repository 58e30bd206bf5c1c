"""Cell maps of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from powerkern._input.alignment import are_default
from powerkern._input.arrays import is_real, is_whole
from powerkern._input.messages import shown
from powerkern._results.power_fit import PowerFit
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.cellwise import DDCFit
from powerkern.joint import JointFit
from powerkern.plot._drawing import (
    count_names,
    draw_legend_above,
    get_axes,
    mix_colors,
    reference_grey,
    shorten,
    text_color,
)
from powerkern.plot._fits import check_fit, column_transforms, read_columns, row_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Longest name on an axis.
_LABEL = 20


def cell_map(
    X: object,
    fit: PowerFit | JointFit | DDCFit,
    *,
    cutoff: float | None = None,
    max_shape: tuple[int, int] = (200, 100),
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of the cells of a matrix, with outlying cells in color.

    Colors show transformed, standardized values, or residuals from the predictions of `powerkern.cellwise.ddc`. For
    residuals, a mark to the right of a row shows that it deviates as a whole.

    A cell is grey up to the cutoff. Beyond it, the cell is red (high) or blue (low). The color gets stronger with the
    distance and is strongest from twice the cutoff on. Missing cells are dotted, and columns that could not be fitted
    are hatched. Rows of a data frame with an index are named.

    A large matrix is drawn in blocks of cells, each in the color of its most outlying cell, so that no outlier is lost.
    The color scale allows for the fact that the largest of many normal values is large. The strongest blocks are
    enlarged if they would be too small to see.

    Parameters
    ----------
    X : (n, p) array-like
        The data.
    fit : PowerFit, JointFit or DDCFit
        The fit. A power transform needs ``standardize=True`` and should be robust (``estimator="robust"``), since
        outliers distort a maximum likelihood fit until they no longer stand out. For a `powerkern.cellwise.DDCFit`, the
        map shows the residuals that `powerkern.cellwise.DDCFit.predict` returns for the columns kept by the fit.
    cutoff : float, optional
        Absolute value beyond which a cell is outlying. The default is the normal quantile at the `cutoff` of the fit:
        2.576, which one normal value in a hundred exceeds, unless the estimator has another cutoff. Short columns have
        a larger cutoff (see `PowerFit.standardized_cutoff`). By default, their values are scaled so that the cutoffs of
        all columns are drawn in the same color.
    max_shape : (int, int), default (200, 100)
        Largest number of rows and columns to draw. A larger matrix is drawn in blocks; the axes name their size.
    ax : matplotlib Axes, optional
        Axes to draw on; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first image holds a number for each cell or block: 0 up to the cutoff, 1 (or -1) from twice the cutoff on,
        and NaN where nothing is known. The cutoff of a block is adjusted to its size.

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
    check_fit(X, fit, PowerFit, JointFit, DDCFit)
    drawn = _read_deviations(X, fit) if isinstance(fit, DDCFit) else _read_transforms(X, column_transforms(X, fit))
    z = drawn.values if cutoff is not None else drawn.values * drawn.scaling
    cutoff = drawn.cutoff if cutoff is None else cutoff
    if not (is_real(cutoff) and 0.0 < cutoff < np.inf):
        raise ValueError(f"cutoff must be a positive number, got {shown(cutoff)}")
    if not (isinstance(max_shape, Sequence) and len(max_shape) == 2 and all(is_whole(k) and k >= 1 for k in max_shape)):
        raise ValueError(f"max_shape must be two whole numbers of at least 1, rows and columns, got {shown(max_shape)}")
    rows, columns = (-(-size // limit) for size, limit in zip(z.shape, max_shape, strict=True))
    ax = get_axes(ax)
    draw_cells(ax, block_extremes(z, rows, columns), z.shape, cutoff, 2.0 * _cutoff_of_blocks(cutoff, rows * columns))
    marks = [_mark_missing(ax, z, drawn.failed), _mark_failed(ax, drawn.failed), _mark_rows(ax, drawn.rows)]
    if any(marks):
        draw_legend_above(ax, handles=[mark for mark in marks if mark])
    _label_axis(ax.xaxis, "column", drawn.names, z.shape[1], columns)
    ax.figure.canvas.figure.draw_without_rendering()  # settles the layout: rotated names leave less height for rows
    _label_axis(ax.yaxis, "row", row_names(X), len(z), rows)
    return ax


# --- parts --------------------------------------------------------------------------------------------


class _CellValues(NamedTuple):
    """Values of the cells to draw, the cutoff, the names of the columns, the failed columns and the deviating rows."""

    values: FloatArray
    cutoff: float
    scaling: FloatArray  #: factor of each column that maps its own cutoff to `cutoff`
    names: list[str] | None
    failed: BoolArray
    rows: IntArray


def _read_transforms(X: object, fit: PowerFit) -> _CellValues:
    """Return the standardized transforms of `X`; raise a ValueError unless the fit standardizes."""
    if not fit.standardize:
        raise ValueError("a cell map needs standardized values: fit with standardize=True")
    matrix = read_columns(X, fit)
    failed = is_failed(fit.status)
    z = fit.transform(matrix.values).astype(np.float64)
    z[:, failed] = np.nan  # these values are not standardized
    cutoff = float(ndtri(fit.cutoff))
    own, names = fit.standardized_cutoff(), matrix.names or fit.column_names
    return _CellValues(z, cutoff, cutoff / own, names, failed, np.empty(0, dtype=np.int64))


def _read_deviations(X: object, fit: DDCFit) -> _CellValues:
    """Return the standardized residuals of the cells of `X`, and the rows that deviate as a whole."""
    cells = fit.predict(X)
    failed = np.zeros(fit.loc.size, dtype=bool)
    rows = np.flatnonzero(cells.flagged_rows)
    return _CellValues(np.asarray(cells.residuals), fit.cutoff, np.ones(failed.size), fit.column_names, failed, rows)


def _mark_rows(ax: Axes, rows: IntArray) -> Any:
    """Draw an arrowhead to the right of each row at these positions."""
    if not rows.size:
        return None
    beside = {"transform": ax.get_yaxis_transform(), "clip_on": False}
    at = np.full(rows.size, 1.01)
    return ax.plot(at, rows, "<", color=text_color(ax), markersize=4.0, label="row deviates as a whole", **beside)[0]


def _mark_missing(ax: Axes, z: FloatArray, failed: BoolArray) -> Any:
    """Dot the background, which is visible through missing cells of `z`; `failed` masks columns to skip."""
    if not np.isnan(z[:, ~failed]).any():
        return None
    from matplotlib.patches import Patch

    style = {"hatch": "....", "edgecolor": reference_grey(ax), "facecolor": ax.get_facecolor(), "linewidth": 0.0}
    ax.patch.set(**style)
    return Patch(label="missing", **style)


def draw_cells(ax: Axes, z: FloatArray, shape: tuple[int, ...], cutoff: float, darkest: float) -> None:
    """Draw standardized values as an image, with a color bar.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    z : (k, l) ndarray
        One value for each cell or block; NaN is missing.
    shape : (int, int)
        Shape of the matrix of cells; blocks are drawn if it differs from the shape of `z`.
    cutoff : float
        Absolute value up to which a cell is grey.
    darkest : float
        Absolute value from which the color is strongest.
    """
    excess = np.clip((np.abs(z) - cutoff) / (darkest - cutoff), 0.0, 1.0) * np.sign(z)
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    image = ax.imshow(
        excess,
        cmap=_cell_colors(ax, blocks=excess.shape != shape),
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        extent=extent,
    )
    if excess.shape != shape:
        _enlarge_darkest(ax, excess, extent)
    bar = ax.figure.colorbar(image, ax=ax, ticks=[-1.0, 0.0, 1.0])
    bar.ax.set_yticklabels([f"≤ -{darkest:.1f}", f"within ±{cutoff:.1f}", f"≥ {darkest:.1f}"])


def _enlarge_darkest(ax: Axes, excess: FloatArray, extent: tuple[float, float, float, float]) -> None:
    """Draw squares on the blocks with the strongest color, so that small blocks are visible.

    `excess` holds the color of each block, from -1 to 1, and `extent` the position of the image, as in
    `matplotlib.axes.Axes.imshow`.
    """
    left, right, bottom, top = extent
    rows, columns = np.nonzero(np.abs(excess) == 1.0)
    x = left + (columns + 0.5) * (right - left) / excess.shape[1]
    y = top + (rows + 0.5) * (bottom - top) / excess.shape[0]
    colors = _cell_colors(ax, blocks=True)(0.5 + 0.5 * excess[rows, columns])
    ax.scatter(x, y, s=25.0, marker="s", color=colors, linewidths=0)


def _cutoff_of_blocks(cutoff: float, n_cells: int) -> float:
    """Return the cutoff for the most extreme of `n_cells` normal values.

    At least one of these values exceeds the result with the probability with which a single value exceeds `cutoff`.
    """
    within = np.log1p(-2.0 * ndtr(-cutoff)) / n_cells
    return float(-ndtri(-0.5 * np.expm1(within))) if within else float(cutoff)  # 0: the probability underflows


def block_extremes(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """Return the value of largest magnitude in each block of `rows` by `columns` cells, ignoring NaN.

    The last blocks may be smaller.
    """
    row_starts, column_starts = np.arange(0, values.shape[0], rows), np.arange(0, values.shape[1], columns)

    def extreme(of: Any) -> FloatArray:
        by_row: FloatArray = of.reduceat(values, row_starts, axis=0)
        return np.asarray(of.reduceat(by_row, column_starts, axis=1))

    low, high = extreme(np.fmin), extreme(np.fmax)
    return np.where(-low > high, low, high)


def _mark_failed(ax: Axes, failed: BoolArray) -> Any:
    """Hatch the failed columns; return the matplotlib artist of the last one for the legend, or None."""
    style = {"facecolor": ax.get_facecolor(), "edgecolor": reference_grey(ax), "hatch": "///", "linewidth": 0.0}
    at, span = np.flatnonzero(failed), None
    for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if at.size else []:
        span = ax.axvspan(run[0] - 0.5, run[-1] + 0.5, label="not fitted", **style)
    return span


def _label_axis(axis: Any, what: str, names: list[Any] | None, n: int, block: int) -> None:
    """Label an axis with as many names as fit, or with "column" or "row"; add the size of blocks.

    Parameters
    ----------
    axis : matplotlib Axis
        The axis to label.
    what : {"column", "row"}
        Label of an axis without names; with blocks, the first word of the label.
    names : list or None
        Name of each column or row.
    n : int
        Number of columns or rows.
    block : int
        Number of columns or rows in a block.
    """
    names = None if names is None or are_default(names) else names
    if names is not None:
        room, across = count_names(axis.axes, what == "column"), what == "column"
        at = np.arange(0, n, max(block, -(-n // room)))
        labels = [shorten(str(names[j]), _LABEL) for j in at]
        turned = across and len(labels) * (1 + max(map(len, labels))) > 1.5 * room
        if turned:  # turned names take at most a third of the height
            longest = max(8, count_names(axis.axes, across=False))
            labels = [shorten(label, longest) for label in labels]
        axis.set_ticks(at, labels, parse_math=False, rotation=90 if turned else 0)
    label = "" if names else what
    axis.set_label_text(label if block == 1 else f"{what} in blocks of {block:,}")


def _cell_colors(ax: Axes, *, blocks: bool) -> Any:
    """Return a color map from blue through grey to red, in which colors farther from grey have more contrast.

    With `blocks`, colors just beyond the cutoff are paler.
    """
    from matplotlib.colors import LinearSegmentedColormap

    normal = mix_colors(text_color(ax), ax.get_facecolor(), 0.1)
    low, high = (mix_colors(color, text_color(ax), 0.75) for color in ("tab:blue", "tab:red"))
    start = 0.0 if blocks else 0.4  # in a block, the largest of many normal values is often just beyond the cutoff
    near_low, near_high = (mix_colors(far, normal, start) for far in (low, high))
    nodes = [(0.0, low), (0.499, near_low), (0.499, normal), (0.501, normal), (0.501, near_high), (1.0, high)]
    return LinearSegmentedColormap.from_list("cells", nodes, N=1025)
