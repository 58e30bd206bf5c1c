"""Maps of the cells of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from powerkern._status import is_failed
from powerkern._typing import FloatArray
from powerkern.fitting import PowerFit
from powerkern.joint import JointFit
from powerkern.plot._drawing import axes_of, by_column, matrix_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def cell_map(
    X: object,
    fit: PowerFit | JointFit,
    *,
    cutoff: float | None = None,
    max_shape: tuple[int, int] = (200, 100),
    ax: Axes | None = None,
) -> Axes:
    """Map of the cells of a matrix on the transformed, standardised scale: outlying ones are coloured.

    A cell is yellow up to the cutoff, then red (high) or blue (low), the darker the further out; missing cells are
    blank. Of a large matrix each block of cells is drawn in the mean of its colours.

    Parameters
    ----------
    X : (n, p) array-like
        The data.
    fit : PowerFit or JointFit
        The fit; made with ``standardize=True``, and preferably robust (``estimator="rewml"``), since outliers
        in a maximum likelihood fit hide themselves.
    cutoff : float, optional
        How far out is outlying; default: that of each column, see `PowerFit.standardized_cutoff`: 2.576, or more in
        short columns, unless a `quantile` was given to the fit.
    max_shape : (int, int), default (200, 100)
        Largest number of rows and columns to draw; more are drawn as blocks.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first image holds a number for each cell or block: 0 up to the cutoff, 1 (-1) from twice the cutoff on.

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
    fit = by_column(fit)
    if not fit.standardize:
        raise ValueError("a cell map needs standardised values: fit with standardize=True")
    if cutoff is not None and not cutoff > 0.0:
        raise ValueError(f"cutoff must be a positive number, got {cutoff}")
    cutoffs = fit.standardized_cutoff() if cutoff is None else np.full(fit.n_features, float(cutoff))
    if not (isinstance(max_shape, Sequence) and len(max_shape) == 2 and min(max_shape) >= 1):
        raise ValueError(f"max_shape must be two numbers of at least 1, rows and columns, got {max_shape!r}")
    matrix = matrix_of(X, fit)
    z = fit.transform(matrix.values).astype(np.float64)
    z[:, is_failed(fit.status)] = np.nan  # not on a standardised scale
    excess = np.clip((np.abs(z) - cutoffs) / cutoffs, 0.0, 1.0) * np.sign(z)
    rows, columns = (-(-size // limit) for size, limit in zip(excess.shape, max_shape, strict=True))
    ax = axes_of(ax)
    image = ax.imshow(
        _block_means(excess, rows, columns),
        cmap=_cell_colours(),
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, matrix.values.shape[1] - 0.5, matrix.values.shape[0] - 0.5, -0.5),
    )
    bar = ax.figure.colorbar(image, ax=ax, ticks=[-1.0, 0.0, 1.0])
    bar.ax.set_yticklabels(_labels(cutoffs))
    names = matrix.names or fit.column_names
    if names is not None and len(names) <= 40:
        ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set(xlabel="" if names else "column", ylabel="row")
    return ax


def _labels(cutoffs: FloatArray) -> list[str]:
    """What the ends and the middle of the scale of colours mean."""
    if cutoffs.min() < cutoffs.max():
        return ["≤ -2 cutoffs", "within ±cutoff", "≥ 2 cutoffs"]
    cutoff = float(cutoffs[0])
    return [f"≤ -{2 * cutoff:.1f}", f"within ±{cutoff:.1f}", f"≥ {2 * cutoff:.1f}"]


def _block_means(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """Means of blocks of cells, NaN left out; the last blocks may be smaller."""
    row_starts, column_starts = np.arange(0, values.shape[0], rows), np.arange(0, values.shape[1], columns)

    def sums(of: NDArray[Any]) -> FloatArray:
        by_row: FloatArray = np.add.reduceat(of, row_starts, axis=0, dtype=np.float64)
        return np.asarray(np.add.reduceat(by_row, column_starts, axis=1))

    seen = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums(np.where(seen, values, 0.0)) / sums(seen))


def _cell_colours() -> Any:
    """Blue, yellow, red; missing cells are left blank."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["midnightblue", "dodgerblue", "lightyellow", "orangered", "darkred"]
    return LinearSegmentedColormap.from_list("cells", colours)
