"""Minimize the error of a UV decomposition from one start, in epochs that improve one factor with the other fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.completion.epochs import half_epoch
from powerkern.completion.normalization import ROUNDING, observed_means, product_entries, rms
from powerkern.kernels.multivariate.completion import ObservedCells, update_elements


class Settings(NamedTuple):
    """Checked arguments of `uv_decompose` for the descent; `ridge` is in units of the normalized matrix.

    `kernel` is the compiled function for `method`; see `half_epoch`.
    """

    rank: int
    kernel: Any
    init: Any
    order: Any
    damping: float
    ridge: float
    criterion: str
    tol: float
    max_epochs: int
    patience: int
    n_threads: int


class Held(NamedTuple):
    """The held-out entries: their positions and normalized values."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: FloatArray


class Descent(NamedTuple):
    """Result of the descent from one start.

    Attributes
    ----------
    U : (m, rank) ndarray
        Left factor.
    Vt : (n, rank) ndarray
        Transpose of the right factor.
    history, validation_history : list of float
        RMSE on the fitted and on the held-out entries after each epoch.
    epoch : int
        The epoch of the factors.
    converged : bool
        Whether the criterion fell to the tolerance.
    """

    U: FloatArray
    Vt: FloatArray
    history: list[float]
    validation_history: list[float]
    epoch: int
    converged: bool

    @property
    def score(self) -> float:
        """Error by which starts are compared: the smallest validation RMSE or, without held-out entries, the RMSE."""
        return min(self.validation_history, default=self.history[-1])


#: Signature of a function that improves both factors in place and returns the RMSE on the fitted entries.
Epoch = Callable[[FloatArray, FloatArray], float]


def descend(U: FloatArray, Vt: FloatArray, epoch: Epoch, held: Held, settings: Settings, size: float) -> Descent:
    """Run epochs until the criterion converges, the validation RMSE stops falling, or `max_epochs` is reached.

    Parameters
    ----------
    U : (m, rank) ndarray
        Left factor to start from; modified in place.
    Vt : (n, rank) ndarray
        Transpose of the right factor to start from; modified in place.
    epoch : callable
        Improves both factors in place and returns the RMSE.
    held : Held
        Held-out entries; there may be none.
    settings : Settings
        Options of the descent.
    size : float
        Root mean square of the fitted entries.
    """
    history: list[float] = []
    errors: list[float] = []
    best, kept, converged = 0, (U, Vt), False
    while len(history) < settings.max_epochs and not converged:
        before = U.copy(), Vt.copy()
        history.append(epoch(U, Vt))
        moves = []
        if settings.criterion == "change":  # as fractions of the root mean square of the factor
            moves = [abs(new - old) / (rms(new) or 1.0) for old, new in zip(before, (U, Vt), strict=True)]
        converged = _has_converged(history, moves, settings.tol, size)
        if held.value.size:
            errors.append(rms(held.value - product_entries(U, Vt, held.row, held.column)))
            if errors[-1] == min(errors):
                best, kept = len(errors), (U.copy(), Vt.copy())
            elif len(errors) - best >= settings.patience:
                break
    if not math.isfinite(history[-1]):
        raise ValueError("the factors overflow; pass smaller factors as init")
    return Descent(*kept, history, errors, best or len(history), converged)


def _has_converged(history: list[float], moves: list[FloatArray], tol: float, size: float) -> bool:
    """Return whether the fit is exact or the criterion is at most `tol`.

    Parameters
    ----------
    history : list of float
        RMSE after each epoch.
    moves : list of ndarray
        For each factor, the changes of its elements in the last epoch, as fractions of the root mean square of the
        factor. If the list is empty, the criterion is the relative change of the RMSE.
    tol : float
        Tolerance; 0 accepts only exact fits.
    size : float
        Root mean square of the entries. A fit is exact if its RMSE is at most a rounding error of `size`.
    """
    if history[-1] <= ROUNDING * size:
        return True
    if moves:
        return tol > 0.0 and all(bool((move <= tol).all()) for move in moves)
    return tol > 0.0 and len(history) > 1 and abs(history[-2] - history[-1]) <= tol * history[-2]


def make_epoch(rows: ObservedCells, cols: ObservedCells, settings: Settings, generator: np.random.Generator) -> Epoch:
    """Return a function that runs one epoch, in the order of updates given by `settings`.

    Parameters
    ----------
    rows, cols : ObservedCells
        The observed entries packed by row, and packed by column.
    settings : Settings
        Options of the descent.
    generator : numpy.random.Generator
        Source of permutations.
    """
    if isinstance(settings.order, str) and settings.order != "permuted":
        return _make_half_epochs(rows, cols, settings)
    return _make_element_epochs(rows, cols, settings, generator)


def _make_half_epochs(rows: ObservedCells, cols: ObservedCells, settings: Settings) -> Epoch:
    """Return a function that improves one factor, then the other, on several threads; arguments as in `make_epoch`."""

    def epoch(U: FloatArray, Vt: FloatArray) -> float:
        halves = [(rows, Vt, U), (cols, U, Vt)]
        for cells, other, own in halves if settings.order == "fixed" else reversed(halves):
            options = settings.ridge, settings.damping, settings.n_threads
            squares = half_epoch(settings.kernel, cells, other, own, *options)
        return math.sqrt(float(squares.sum()) / rows.value.size)

    return epoch


def _make_element_epochs(
    rows: ObservedCells, cols: ObservedCells, settings: Settings, generator: np.random.Generator
) -> Epoch:
    """Return a function that runs an epoch of updates of single elements, on one thread.

    Parameters
    ----------
    rows, cols : ObservedCells
        The observed entries packed by row, and packed by column.
    settings : Settings
        Options of the descent. Its `order` is "permuted" or an array of elements.
    generator : numpy.random.Generator
        Source of permutations.
    """
    m, n_cells = rows.start.size - 1, rows.value.size
    permuted = isinstance(settings.order, str)
    elements = _list_elements(rows, cols, settings.rank) if permuted else settings.order
    row_of = np.repeat(np.arange(m), np.diff(rows.start))
    by_row = (rows.start, rows.column, np.arange(n_cells))
    by_column = (cols.start, cols.column, np.argsort(rows.column, kind="stable"))

    def epoch(U: FloatArray, Vt: FloatArray) -> float:
        residual = rows.value - product_entries(U, Vt, row_of, rows.column)
        visits = generator.permutation(elements) if permuted else elements
        update_elements(by_row, by_column, visits, U, Vt, settings.ridge, settings.damping, residual)
        return rms(residual)

    return epoch


def _list_elements(rows: ObservedCells, cols: ObservedCells, rank: int) -> NDArray[np.int64]:
    """Return a list of all elements of two factors of rank `rank`, in the form that `update_elements` takes."""
    parts = []
    for factor, cells in enumerate((rows, cols)):
        i, k = np.divmod(np.arange((cells.start.size - 1) * rank), rank)
        parts.append(np.column_stack([np.full_like(i, factor), i, k]))
    return np.vstack(parts)


def initial_factors(
    values: FloatArray, entries: FloatArray, settings: Settings, root: float, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the starting U and the transpose of the starting V.

    Parameters
    ----------
    values : (m, n) ndarray
        The normalized matrix; NaN is missing.
    entries : (k,) ndarray
        The observed values of the matrix.
    settings : Settings
        Options of the descent; `init` names the start, or is a pair of factors.
    root : float
        Unit of the factors: factors that the user passes as `init` are divided by it.
    generator : numpy.random.Generator
        Source of random starts.
    """
    d, init, shape = settings.rank, settings.init, values.shape
    if not isinstance(init, str):
        U, V = init
        return np.array(U / root, order="C"), np.array(V.T / root, order="C")
    if init == "random":
        size = math.sqrt(rms(entries) / math.sqrt(d))
        return size * generator.standard_normal((shape[0], d)), size * generator.standard_normal((shape[1], d))
    if init == "means":
        ones = [np.ones((size, 1)) for size in shape]
        halves = [observed_means(values, axis)[:, None] / 2.0 for axis in (1, 0)]
        rest = np.zeros((shape[0], d - 2)), generator.standard_normal((shape[1], d - 2))
        return np.hstack([halves[0], ones[0], rest[0]]), np.hstack([ones[1], halves[1], rest[1]])
    mean = float(entries.mean())
    if abs(mean) <= 1e-12 * rms(entries):
        raise ValueError("init='mean' starts at 0 and stays there if the mean of the entries is 0; use init='random'")
    size = math.sqrt(abs(mean) / d)
    return np.full((shape[0], d), size), np.full((shape[1], d), math.copysign(size, mean))
