"""Axes, titles and the columns of a fit, shared by all plots."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from powerkern._fit.fit import PowerFit
from powerkern._input.arrays import Matrix, column_label
from powerkern._input.reading import read_fitted
from powerkern._typing import BoolArray, FloatArray
from powerkern.joint import JointFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A label is not shortened to fewer characters.
_SHORTEST = 8


def pyplot() -> Any:
    """matplotlib.pyplot, or an ImportError that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("powerkern.plot needs matplotlib: pip install 'powerkern[plot]'") from None
    return plt


def axes_of(ax: Axes | None, **figure_options: Any) -> Axes:
    """The axes given, or those of a new figure."""
    plt = pyplot()
    return plt.subplots(layout="constrained", **figure_options)[1] if ax is None else ax


def ink(ax: Axes) -> Any:
    """The color of text on these axes, whether the style is light or dark."""
    return ax.xaxis.label.get_color()


def faint(ax: Axes) -> tuple[float, ...]:
    """A grey between the colors of text and background, for comparisons."""
    from matplotlib.colors import to_rgb

    share = 0.4
    pairs = zip(to_rgb(ink(ax)), to_rgb(ax.get_facecolor()), strict=True)
    return tuple(share * text + (1.0 - share) * ground for text, ground in pairs)


def set_title(ax: Axes, label: str, detail: str) -> None:
    """A title as wide as the axes at most: on one line, on two, or with the middle of the label left out."""
    title = ax.set_title(f"{label}, {detail}", parse_math=False)
    room, length = ax.get_window_extent().width, len(label)
    if title.get_window_extent().width <= room:
        return
    while True:
        title.set_text(f"{shortened(label, length)}\n{detail}")
        width = title.get_window_extent().width
        if width <= room or length <= _SHORTEST:
            return
        length = max(_SHORTEST, min(length - 1, int(length * room / width)))


def shortened(label: str, length: int) -> str:
    """A label of at most so many characters, an ellipsis in place of its middle."""
    if len(label) <= length:
        return label
    tail = (length - 1) // 2
    return f"{label[: length - 1 - tail]}…{label[len(label) - tail :]}"


# --- columns ------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """The observed values of one column, before and after its transform."""

    label: str
    lmbda: float
    #: Less their mean and divided by their standard deviation.
    before: FloatArray
    #: Standardized by the fit, or like `before` if it does not standardize.
    after: FloatArray
    #: The values that the fit kept.
    kept: BoolArray

    @property
    def detail(self) -> str:
        """The second half of a title."""
        return f"lambda = {self.lmbda:.3g}"


def column_of(matrix: Matrix, fit: PowerFit, j: int) -> Column:
    """Column j of the data and of the fit."""
    names = matrix.names or fit.column_names
    values, part = matrix.values[:, j : j + 1], fit.part(slice(j, j + 1))
    before = values[:, 0].astype(np.float64)
    known = ~np.isnan(before)
    if not known.any():
        raise ValueError(f"{column_label(j, names)} has no values; there is nothing to draw")
    after = part.transform(values)[known, 0].astype(np.float64)
    return Column(
        label=title_label(j, names),
        lmbda=float(fit.lmbda[j]),
        before=standardized(before[known]),
        after=after if fit.standardize else standardized(after),
        kept=part.weights(values)[known, 0] > 0.0,
    )


def title_label(j: int, names: Sequence[str] | None) -> str:
    """Name of a column in titles."""
    return f"column {j}" if names is None else names[j]


def standardized(values: FloatArray) -> FloatArray:
    """Less their mean, divided by their standard deviation unless that is 0."""
    spread = float(values.std())
    result: FloatArray = (values - values.mean()) / (spread or 1.0)
    return result


def by_column(fit: PowerFit | JointFit) -> PowerFit:
    """The transforms of single columns."""
    if not isinstance(fit, PowerFit | JointFit):
        raise TypeError(f"fit must be a PowerFit or a JointFit, got {type(fit).__name__}")
    return fit.columns if isinstance(fit, JointFit) else fit


def matrix_of(X: object, fit: PowerFit) -> Matrix:
    """X, checked to have the columns of the fit."""
    return read_fitted(X, fit.column_names, fit.n_features)


def position(column: int | str, matrix: Matrix | None, fit: PowerFit) -> int:
    """Position of a column."""
    if isinstance(column, str):
        names = (matrix.names if matrix is not None else None) or fit.column_names or []
        if column not in names:
            raise ValueError(
                f"there is no column {column!r}; the columns are {', '.join(map(repr, names)) or 'unnamed'}"
            )
        return names.index(column)
    j = operator.index(column)
    if not -fit.n_features <= j < fit.n_features:
        raise ValueError(f"there is no column {j}; the fit has {fit.n_features}")
    return j % fit.n_features


def positions(columns: Sequence[int | str] | None, matrix: Matrix | None, fit: PowerFit) -> list[int]:
    """Positions of columns; all by default."""
    if columns is None:
        return list(range(fit.n_features))
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a sequence of positions or names, got {columns!r}")
    chosen = [position(column, matrix, fit) for column in columns]
    if not chosen:
        raise ValueError("columns is empty; leave it out to draw all of them")
    return chosen
