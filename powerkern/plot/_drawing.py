"""Axes, colors, titles, legends and labels of points, shared by all plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from powerkern._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Smallest number of characters to which a label is shortened.
_SHORTEST = 8
#: Candidate positions of the label of a point: distances in points, nearest first, and directions.
_DISTANCES = (3.0, 10.0, 20.0, 35.0, 55.0, 80.0)
_DIRECTIONS = np.pi / 4.0 * np.array([1, 7, 3, 5, 0, 2, 6, 4])


def pyplot() -> Any:
    """Import matplotlib.pyplot; raise an ImportError that says how to install it if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("powerkern.plot needs matplotlib: pip install matplotlib") from None
    return plt


def get_axes(ax: Axes | None, **figure_options: Any) -> Axes:
    """Return `ax`, or the axes of a new figure if it is None."""
    plt = pyplot()
    if ax is None:
        ax = plt.subplots(layout="constrained", **figure_options)[1]
    elif not isinstance(ax, plt.Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {type(ax).__name__}")
    return ax


def figure_width(ax: Axes) -> float:
    """Return the width of the figure or subfigure in inches; only figures have `get_figwidth`."""
    return float(ax.figure.bbox.width / ax.figure.dpi)


def text_color(ax: Axes) -> Any:
    """Return the color of text on these axes, which depends on the style of matplotlib, light or dark."""
    return ax.xaxis.label.get_color()


def reference_grey(ax: Axes) -> tuple[float, ...]:
    """Return a grey between the colors of text and background, for reference lines."""
    return mix_colors(text_color(ax), ax.get_facecolor(), 0.4)


def mix_colors(color: Any, other: Any, fraction: float) -> tuple[float, ...]:
    """Mix two colors: the fraction `fraction` of `color`, and the rest of `other`."""
    from matplotlib.colors import to_rgb

    return tuple(fraction * a + (1.0 - fraction) * b for a, b in zip(to_rgb(color), to_rgb(other), strict=True))


def draw_legend_above(ax: Axes, **options: Any) -> None:
    """Draw a legend above an image, in as many columns as its width allows; pass `options` to `Axes.legend`."""
    room = 0.75 * ax.get_window_extent().width
    for n_columns in (3, 2, 1):
        key = ax.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns, frameon=False, borderaxespad=0.2,
            fontsize="small", columnspacing=1.2, handlelength=1.4, **options,
        )  # fmt: skip
        if key.get_window_extent().width <= room:
            return


def count_names(ax: Axes, across: bool) -> int:
    """Return the number of names that fit along the vertical axis, or along the horizontal axis if `across`.

    Names on the horizontal axis are rotated.
    """
    extent, size = ax.get_window_extent(), ax.xaxis.label.get_fontsize() * ax.figure.dpi / 72.0
    return max(1, int(0.6 * (extent.width if across else extent.height) / size))


def set_title(ax: Axes, label: str, lmbda: float) -> None:
    """Set a title with a column's label and lambda, at most as wide as the axes.

    A long title takes two lines, and the middle of a longer label is replaced by an ellipsis.
    """
    detail = f"lambda = {lmbda:.3g}"
    title = ax.set_title(f"{label}, {detail}", parse_math=False)
    room, length = ax.get_window_extent().width, len(label)
    if title.get_window_extent().width <= room:
        return
    while True:
        title.set_text(f"{shorten(label, length)}\n{detail}")
        width = title.get_window_extent().width
        if width <= room or length <= _SHORTEST:
            return
        length = max(_SHORTEST, min(length - 1, int(length * room / width)))


def shorten(label: str, length: int) -> str:
    """Shorten a label to at most `length` characters by replacing its middle with an ellipsis."""
    if len(label) <= length:
        return label
    tail = (length - 1) // 2
    return f"{label[: length - 1 - tail]}…{label[len(label) - tail :]}"


def label_points(ax: Axes, points: FloatArray, chosen: Sequence[int], texts: Sequence[str]) -> None:
    """Label the chosen points without covering other labels, the legend or, if possible, other points.

    Each label takes the nearest free place inside the axes. A label that is not next to its point is connected to it by
    a line.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes to draw on; they have a legend.
    points : (n, 2) ndarray
        Coordinates of all points, in units of the data.
    chosen : sequence of int
        Positions of the points to label.
    texts : sequence of str
        Label of each chosen point.
    """
    ax.figure.canvas.figure.draw_without_rendering()  # settles the layout, on which the free places depend
    grey = reference_grey(ax)
    at, unit = ax.transData.transform(points), ax.figure.dpi / 72.0
    frame, taken = ax.get_window_extent(), np.array([ax.get_legend().get_window_extent().extents])
    for i, text in zip(chosen, texts, strict=True):
        note = ax.annotate(
            text, tuple(points[i]), (0.0, 0.0), textcoords="offset points", va="bottom", fontsize="small",
            parse_math=False,
            arrowprops={"arrowstyle": "-", "color": grey, "linewidth": 0.6, "shrinkA": 0.0, "shrinkB": 2.0},
        )  # fmt: skip
        note.set_in_layout(False)
        extent = note.get_window_extent()
        boxes = _label_boxes(at[i], extent.width, extent.height, unit)
        outside = (boxes < np.tile(frame.min, 2)).any(axis=1) | (boxes > np.tile(frame.max, 2)).any(axis=1)
        texts_hit, points_hit = _count_overlaps(boxes, taken), _count_overlaps(boxes, np.hstack([at - unit, at + unit]))
        best = int(np.argmin(100.0 * texts_hit + 10.0 * outside + 1.0 * (points_hit > 0)))
        note.set_position(tuple((boxes[best, :2] - at[i]) / unit))
        note.arrow_patch.set_visible(best >= _DIRECTIONS.size)
        taken = np.vstack([taken, boxes[best]])


def _label_boxes(point: FloatArray, width: float, height: float, unit: float) -> FloatArray:
    """Return candidate positions for the label of a point, nearest first, as boxes (left, lower, right, upper): (m, 4).

    Parameters
    ----------
    point : (2,) ndarray
        The labelled point, in pixels.
    width, height : float
        Size of the label, in pixels.
    unit : float
        Number of pixels in a typographic point.
    """
    direction = np.column_stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)])
    corner = np.where(np.abs(direction) < 0.1, -0.5, np.where(direction < 0.0, -1.0, 0.0)) * [width, height]
    lower = np.concatenate([point + corner + distance * unit * direction for distance in _DISTANCES])
    return np.hstack([lower, lower + np.array([width, height])])


def _count_overlaps(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """Return the number of boxes in `others` that each box overlaps."""
    apart = (boxes[:, np.newaxis, :2] >= others[:, 2:]) | (boxes[:, np.newaxis, 2:] <= others[:, :2])
    return np.asarray((~apart.any(axis=2)).sum(axis=1), dtype=np.float64)
