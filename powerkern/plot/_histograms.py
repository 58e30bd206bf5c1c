"""Histograms of columns before and after their transforms, and plots of many columns in one figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import to_list
from powerkern._input.messages import shown
from powerkern._results.power_fit import PowerFit
from powerkern._typing import FloatArray, Limits
from powerkern.joint import JointFit
from powerkern.plot._drawing import get_axes, mix_colors, pyplot, set_title, text_color
from powerkern.plot._fits import (
    CensoringMarks,
    NoValuesError,
    PlotColumn,
    column_transforms,
    find_columns,
    read_column,
    read_marked_columns,
    select_column,
    title_label,
)
from powerkern.plot._qq import draw_qq

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Histograms extend from -4 to 4 standard deviations; the legend counts the values beyond.
_REACH = 4.0
#: Smallest and largest number of bins of a histogram.
_FEWEST_BINS, _MOST_BINS = 8, 80
#: Width and height of a panel with its labels, and margins for labels at left, right, bottom and top, in inches.
_PANEL, _ROOM = (3.0, 2.7), (0.62, 0.1, 0.5, 0.5)
#: Largest number of panels in a row of a figure, and in a figure.
_PANELS_IN_A_ROW, _MOST_PANELS = 4, 200


def histogram_plot(
    X: object,
    fit: PowerFit | JointFit,
    *,
    column: int | str = 0,
    below: object = None,
    above: object = None,
    limits: Limits | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw histograms of one column before and after its transform, with the normal density.

    The values of both histograms are standardized as in `qq_plot` and use the same bins. Censored values, and values
    beyond four standard deviations, are not drawn. The legend gives their numbers. The area of a histogram is the
    fraction of the values that are drawn.

    Parameters
    ----------
    X, fit, column, below, above, limits, ax
        As in `qq_plot`.

    Returns
    -------
    matplotlib Axes
        The axes. Their first two patches are the histograms before and after; their line is the normal density.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import histogram_plot
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> ax = histogram_plot(x, pk.fit(x, family="box-cox"))
    >>> [patch.get_label() for patch in ax.patches]
    ['before', 'after']
    """
    one = select_column(X, fit, column, CensoringMarks(below, above, limits))
    ax = get_axes(ax)
    _draw_histograms(ax, one)
    ax.legend()
    set_title(ax, one.label, one.lmbda)
    return ax


def before_after_plot(
    X: object,
    fit: PowerFit | JointFit,
    *,
    columns: Sequence[int | str] | None = None,
    kinds: Sequence[str] = ("histogram", "qq"),
    band: float | None = 0.95,
    below: object = None,
    above: object = None,
    limits: Limits | None = None,
    ax: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Draw many columns before and after their transforms in one figure, with histograms, QQ plots, or both.

    Parameters
    ----------
    X, fit, band, below, above, limits
        As in `qq_plot`.
    columns : sequence of int or str, optional
        Columns to draw, by position or by name; default: all.
    kinds : sequence of {"histogram", "qq"}, default ("histogram", "qq")
        Kinds of panels to draw for each column.
    ax : (k, len(kinds)) array-like of matplotlib Axes, optional
        Axes to draw on, a row for each column; default: a new figure.

    Returns
    -------
    (k, len(kinds)) ndarray of matplotlib Axes
        The axes, with a row for each column; the figure is ``axes[0, 0].figure``. The panels of a column without values
        show "no values".

    Raises
    ------
    ValueError
        If a kind is unknown, `ax` has another shape, or there are more than 200 panels.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import before_after_plot
    >>> X = np.random.default_rng(0).lognormal(size=(200, 5))
    >>> before_after_plot(X, pk.fit(X), columns=[0, 3, 4]).shape
    (3, 2)
    """
    draw = _check_kinds(kinds, band)
    fit = column_transforms(X, fit)
    matrix = read_marked_columns(X, fit, CensoringMarks(below, above, limits))
    chosen = find_columns(columns, matrix, fit)
    panels = _new_panels(len(chosen), len(draw)) if ax is None else np.asarray(ax, dtype=object)
    if panels.shape != (len(chosen), len(draw)):
        raise ValueError(f"ax must be an array of {len(chosen)} x {len(draw)} axes, got shape {panels.shape}")
    legends = False
    for j, axes in zip(chosen, panels, strict=True):
        try:
            one = read_column(matrix, fit, j)
        except NoValuesError:
            _write_no_values(axes, title_label(j, matrix.names or fit.column_names))
            continue
        for panel, draw_one in zip(axes, draw, strict=True):
            draw_one(panel, one)
        set_title(axes[0], one.label, one.lmbda)
        if not legends:
            for panel in axes:
                panel.legend(fontsize="x-small", handlelength=1.2)
            legends = True
    return panels


def _write_no_values(axes: Sequence[Axes], label: str) -> None:
    """Write "no values" into the panels of a column without values."""
    axes[0].set_title(label, parse_math=False)
    for panel in axes:
        panel.set(xticks=[], yticks=[])
        panel.text(0.5, 0.5, "no values", ha="center", va="center", transform=panel.transAxes, color=text_color(panel))


def _check_kinds(kinds: Sequence[str], band: float | None) -> list[Callable[[Axes, PlotColumn], None]]:
    """Return one drawing function for each kind of panel; raise a ValueError for unknown kinds.

    `band` is the probability of the band in QQ plots.
    """
    draw: dict[str, Callable[[Axes, PlotColumn], None]] = {
        "histogram": _draw_histograms,
        "qq": lambda ax, one: draw_qq(ax, one, band=band),
    }
    names = [kinds] if isinstance(kinds, str) else to_list(kinds)
    if isinstance(kinds, str) or not names or not set(names) <= draw.keys():
        raise ValueError(f"kinds must be a sequence of 'histogram' and 'qq', got {shown(kinds)}")
    return [draw[name] for name in names]


def _new_panels(k: int, width: int) -> NDArray[Any]:
    """Make a figure with `width` panels side by side for each of k columns; return the axes, (k, width).

    Several columns may share a row of the figure. Unused axes are removed.
    """
    if k * width > _MOST_PANELS:
        raise ValueError(f"a figure holds at most {_MOST_PANELS} panels, not {k * width:,}; select fewer with columns=")
    in_a_row = min(k, max(1, _PANELS_IN_A_ROW // width))
    n_rows, n_columns = -(-k // in_a_row), in_a_row * width
    (w, h), (left, right, bottom, top) = _PANEL, _ROOM
    width_all, height_all = w * n_columns, h * n_rows
    room = {  # explicit, because the layout engines of matplotlib take seconds for thirty columns
        "left": left / width_all, "right": 1.0 - right / width_all, "wspace": (left + right) / (w - left - right),
        "bottom": bottom / height_all, "top": 1.0 - top / height_all, "hspace": (bottom + top) / (h - bottom - top),
    }  # fmt: skip
    figure, axes = pyplot().subplots(
        n_rows, n_columns, figsize=(width_all, height_all), squeeze=False, gridspec_kw=room
    )
    groups = axes.reshape(n_rows * in_a_row, width)
    for empty in groups[k:].ravel():
        figure.delaxes(empty)
    return np.asarray(groups[:k])


def _draw_histograms(ax: Axes, one: PlotColumn) -> None:
    """Draw the histograms of a column before and after its transform, and the normal density."""
    n = one.after.size + one.n_censored
    edges = _bin_edges(n)
    _draw_histogram(
        ax, one.before, edges, "before", n, fill=True, color=mix_colors(text_color(ax), ax.get_facecolor(), 0.25)
    )
    _draw_histogram(ax, one.after, edges, "after", n, color="C0", linewidth=1.5)
    z = np.linspace(-_REACH, _REACH, 201)
    ax.plot(z, np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi), color=text_color(ax), linewidth=0.8, label="normal")
    ax.set(xlabel="standardized value", ylabel="density", xlim=(-_REACH, _REACH))


def _draw_histogram(ax: Axes, values: FloatArray, edges: FloatArray, label: str, n: int, **style: Any) -> None:
    """Draw one histogram as a density; its label counts censored values and the values beyond the outer edges.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on.
    values : (n,) ndarray
        Standardized observed values.
    edges : (k + 1,) ndarray
        Edges of the bins.
    label : str
        Name for the legend.
    n : int
        Number of all values, including censored ones.
    **style
        Options of `matplotlib.axes.Axes.stairs`.
    """
    counts = np.histogram(values, edges)[0]
    beyond = values.size - int(counts.sum())
    parts = [f"{k:,} {what}" for k, what in ((n - values.size, "censored"), (beyond, "beyond")) if k]
    text = f"{label} ({', '.join(parts)})" if parts else label
    ax.stairs(counts / (n * np.diff(edges)), edges, label=text, **style)


def _bin_edges(n: int) -> FloatArray:
    """Return edges of bins from -4 to 4, with the bin width of Freedman and Diaconis for n standard normal values."""
    width = 2.0 * 1.349 / np.cbrt(n)
    return np.linspace(-_REACH, _REACH, int(np.clip(2.0 * _REACH / width, _FEWEST_BINS, _MOST_BINS)) + 1)
