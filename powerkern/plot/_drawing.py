"""Where pictures are drawn: axes, and the columns of a fit."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from powerkern import _frames
from powerkern._validate import Matrix, as_matrix, check_n_features, column_label
from powerkern.fitting import PowerFit
from powerkern.joint import JointFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_of(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("powerkern.plot needs matplotlib: pip install 'powerkern[plot]'") from None
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def by_column(fit: PowerFit | JointFit) -> PowerFit:
    """The transforms of single columns."""
    return fit.columns if isinstance(fit, JointFit) else fit


def matrix_of(X: object, fit: PowerFit) -> Matrix:
    """X, checked to have the columns of the fit."""
    matrix = as_matrix(_frames.columns_named(X, fit.column_names))
    check_n_features(matrix.values, fit.n_features, matrix.names, fit.column_names)
    return matrix


def position(column: int | str, matrix: Matrix | None, fit: PowerFit) -> int:
    """Where a column stands."""
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


def title_of(j: int, matrix: Matrix, fit: PowerFit) -> str:
    return f"{column_label(j, matrix.names or fit.column_names)}, lambda = {fit.lmbda[j]:.3g}"
