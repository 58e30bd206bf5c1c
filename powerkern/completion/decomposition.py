"""UV decomposition of a matrix with missing entries: M ~ U V, fitted to the entries that are present."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._input.arrays import as_choice, as_matrix, column_label, domain_error, is_real, is_whole
from powerkern._input.messages import warn
from powerkern._typing import FloatArray
from powerkern.completion.epochs import half_epoch, packed
from powerkern.completion.normalization import (
    NORMALIZATIONS,
    ROUNDING,
    means,
    offsets_and_scales,
    rms,
    row_offsets,
    unit_of,
)
from powerkern.kernels.multivariate.completion import Cells, coordinate_rows, follow, least_squares_rows

Normalize = Literal["rows", "columns", "both", "zscores"]
#: An element of U or V, its row and its column.
Element = tuple[Literal["U", "V"], int, int]

_KERNELS = {"cd": coordinate_rows, "als": least_squares_rows}
_STARTS = ("random", "mean", "means")
_ORDERS = ("fixed", "columns-first", "permuted")
_CRITERIA = ("rmse", "change")

#: Passes of least squares that fold in new rows: each brings what the entries hardly determine nearer to its optimum.
_FOLD_PASSES = 3


@dataclass(frozen=True, repr=False, eq=False)
class UVDecomposition:
    """M ~ U V, made by `uv_decompose`.

    Attributes
    ----------
    U : (m, rank) ndarray
        Left factor.
    V : (rank, n) ndarray
        Right factor.
    row_offset, column_offset, column_scale : (m,), (n,), (n,) ndarray
        What `normalize` took out: zeros and ones where it took nothing.
    history : (n_epochs,) ndarray
        Root mean square error (RMSE) on the entries fitted to after each epoch, of the normalised matrix.
    validation_history : (n_epochs,) ndarray
        The same on the entries held out; empty if there were none.
    epoch : int
        The epoch that U and V are from: the last one or, with entries held out, that of the smallest validation RMSE.
    converged : bool
        Whether `tol` was reached, or the fit was exact, before `max_epochs`.
    normalize : str or None
        As given.
    ridge : float
        As given.
    """

    U: FloatArray
    V: FloatArray
    row_offset: FloatArray
    column_offset: FloatArray
    column_scale: FloatArray
    history: FloatArray
    validation_history: FloatArray
    epoch: int
    converged: bool
    normalize: str | None
    ridge: float

    @property
    def rank(self) -> int:
        """Number of columns of U and rows of V."""
        return int(self.U.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the decomposed matrix."""
        return int(self.U.shape[0]), int(self.V.shape[1])

    @property
    def rmse(self) -> float:
        """RMSE on the entries fitted to, of the epoch that U and V are from."""
        return float(self.history[self.epoch - 1])

    @property
    def validation_rmse(self) -> float:
        """RMSE on the entries held out, of that epoch; NaN if there were none."""
        return float(self.validation_history[self.epoch - 1]) if self.validation_history.size else math.nan

    def __repr__(self) -> str:
        return f"UVDecomposition(shape={self.shape}, rank={self.rank}, rmse={self.rmse:.6g}, epoch={self.epoch})"

    def reconstruct(self) -> FloatArray:
        """U V with what `normalize` took out added back: an estimate of every entry.

        Examples
        --------
        >>> from powerkern.completion import uv_decompose
        >>> nan = float("nan")
        >>> result = uv_decompose([[1, 2, nan], [2, 4, 6], [3, nan, 9]], rank=1, tol=1e-12, random_state=0)
        >>> result.reconstruct().round(6)
        array([[1., 2., 3.],
               [2., 4., 6.],
               [3., 6., 9.]])
        """
        return self._denormalized(self.U, self.row_offset)

    def complete(self, M: object) -> FloatArray:
        """`M`, which has the shape of the decomposed matrix, with NaN replaced by estimates."""
        values, _ = _read(M)
        if values.shape != self.shape:
            raise ValueError(f"M has shape {values.shape}, the decomposed matrix {self.shape}; fold_in takes new rows")
        return np.where(np.isnan(values), self.reconstruct(), values)

    def fold_in(self, M: object, *, n_threads: int | None = None) -> FloatArray:
        """Rows, new ones perhaps, with NaN replaced by estimates.

        Each row is fitted to its own entries by least squares (with the decomposition's ridge), V held fixed. Where
        they do not determine it, the shortest solution is taken; a row without entries becomes `column_offset`.

        Parameters
        ----------
        M : (k, n) array-like
            As many columns as the decomposed matrix; NaN is missing.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit.

        Returns
        -------
        (k, n) ndarray

        Examples
        --------
        >>> from powerkern.completion import uv_decompose
        >>> result = uv_decompose([[1, 2, 3], [2, 4, 6]], rank=1, tol=1e-12, random_state=0)
        >>> result.fold_in([[10, float("nan"), 30]]).round(6)
        array([[10., 20., 30.]])
        """
        values, _ = _read(M)
        if values.shape[1] != self.shape[1]:
            raise ValueError(f"M has {values.shape[1]} columns, the decomposed matrix has {self.shape[1]}")
        threads = thread_count(n_threads)
        row_offset = row_offsets(values, self.normalize)
        rest = (values - row_offset[:, None] - self.column_offset) / self.column_scale
        unit, unit_of_V = unit_of(rest), unit_of(self.V)
        cells = packed(rest / unit, threads)
        Vt, U = np.ascontiguousarray(self.V.T) / unit_of_V, np.zeros((values.shape[0], self.rank))
        for _ in range(_FOLD_PASSES):
            half_epoch(least_squares_rows, cells, Vt, U, self.ridge / unit_of_V**2, 1.0, threads)
        estimate = self._denormalized(U * (unit / unit_of_V), row_offset)
        return np.where(np.isnan(values), estimate, values)

    def _denormalized(self, U: FloatArray, row_offset: FloatArray) -> FloatArray:
        return np.asarray((U @ self.V) * self.column_scale + self.column_offset + row_offset[:, None])


def uv_decompose(
    M: object,
    rank: int,
    method: str = "cd",
    *,
    normalize: Normalize | None = None,
    init: str | tuple[ArrayLike, ArrayLike] = "random",
    n_starts: int = 1,
    order: str | Sequence[Element] = "fixed",
    skip: float = 0.0,
    damping: float = 1.0,
    ridge: float = 0.0,
    criterion: str = "rmse",
    tol: float = 1e-4,
    max_epochs: int = 200,
    validation_fraction: float = 0.0,
    patience: int = 5,
    random_state: Any = None,
    n_threads: int | None = None,
) -> UVDecomposition:
    r"""Approximate a matrix with missing entries by a product U V of rank `rank`.

    Minimises, over the observed entries,

    .. math:: \sum_{r, s} \Bigl(m_{rs} - \sum_k u_{rk} v_{ks}\Bigr)^2 + \text{ridge}\, (|U|^2 + |V|^2)

    by epochs that improve U with V held fixed and V with U held fixed. The problem is not convex: the result is a
    stationary point, which depends on the start.

    Parameters
    ----------
    M : (m, n) array-like
        Real numbers; NaN (masked, null) is missing. Not changed.
    rank : int
        Number of components, at most min(m, n).
    method : {"cd", "als"}, default "cd"
        Coordinate descent, which improves one element at a time ([1]_, section 9.4; its cost grows as `rank`), or
        alternating least squares, which solves for a whole row of U or column of V ([2]_; fewer epochs, but the cost of
        one grows as ``rank**2``).
    normalize : {None, "rows", "columns", "both", "zscores"}
        First subtract the means of rows, of columns, or of rows and then of columns; "zscores": subtract the means
        of the columns and divide by their standard deviations. Means are of the observed entries; all is undone in
        `UVDecomposition.reconstruct`.
    init : {"random", "mean", "means"} or (U, V), default "random"
        Start from normal variates whose products have the entries' root mean square; from the constant
        ``sqrt(abs(mean)/d)``, with ``U V = mean`` (all components start equal: for "cd" only); from half the mean of
        the row plus half that of the column, which has rank 2 (further components have U = 0 and a random V); or from
        given factors.
    n_starts : int, default 1
        Random starts to try; the one with the smallest (validation) RMSE is returned.
    order : {"fixed", "columns-first", "permuted"} or sequence of ("U" or "V", row, column), default "fixed"
        What an epoch improves first: U, which belongs to the rows of M, or V, which belongs to its columns. With "cd"
        also a new random permutation of all elements of both in every epoch, or just these elements in this order
        (either on one thread).
    skip : float, default 0
        With "cd": an element that an epoch moved by no more than this fraction of its factor's root mean square is good
        already, and the next epoch leaves it out; the one after it visits it again (on one thread).
    damping : float from 0.01 to 1, default 1
        Fraction of the way to its optimum that an element moves.
    ridge : float, default 0
        Penalty on the factors' squares.
    criterion : {"rmse", "change"}, default "rmse"
        What `tol` is compared with: the change of the RMSE between epochs as a fraction of it, or the largest change of
        an element as a fraction of its factor's root mean square.
    tol : float, default 1e-4
        Stop when an epoch changes the criterion by no more than this; 0: do not.
    max_epochs : int, default 200
        Maximum number of epochs.
    validation_fraction : float from 0 to 0.9, default 0
        Hold out this random fraction of the entries, and return the factors of the epoch that predicts them best. The
        factors are not fitted again with the entries that were held out.
    patience : int, default 5
        With entries held out, stop after this many epochs without a new smallest RMSE on them.
    random_state : int, numpy.random.Generator or None
        Seed of starts, permutations and of what is held out; None: different each time.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. U and V do not depend on it, bit for bit.

    Returns
    -------
    UVDecomposition

    Raises
    ------
    TypeError
        Data that are not real numbers, or arguments of the wrong kind.
    ValueError
        Infinite entries (naming column and row), no entries at all, a rank larger than the matrix, and arguments out
        of range.

    Warns
    -----
    UserWarning
        Once, listing rows and columns without entries: U or V is zero there, and their estimates are what `normalize`
        adds back.

    Notes
    -----
    Without a ridge, entries that no data determine (a row with fewer entries than `rank`) are whatever the start made
    of them. A constant matrix is fitted exactly; its missing entries get the constant where the rank is 1 or
    `normalize` takes means out, and components in excess leave them undetermined.

    References
    ----------
    .. [1] J. Leskovec, A. Rajaraman, J. D. Ullman, "Mining of Massive Datasets", 3rd ed., Cambridge University Press
       2020, section 9.4.
    .. [2] Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, "Large-scale parallel collaborative filtering for the Netflix
       prize", AAIM 2008, 337-348.

    Examples
    --------
    The example of [1]_, its first element, and then as many epochs as it takes:

    >>> import numpy as np
    >>> from powerkern.completion import uv_decompose
    >>> nan = float("nan")
    >>> M = np.array([[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, nan, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, nan]])
    >>> ones = np.ones((5, 2)), np.ones((2, 5))
    >>> uv_decompose(M, 2, init=ones, order=[("U", 0, 0)], max_epochs=1).U[0]
    array([2.6, 1. ])
    >>> result = uv_decompose(M, 2, init=ones, tol=1e-9)
    >>> result
    UVDecomposition(shape=(5, 5), rank=2, rmse=0.332358, epoch=23)
    >>> result.complete(M)[[2, 4], [1, 4]].round(2)
    array([3.83, 4.67])
    """
    values, names = _read(M)
    shape = values.shape
    rank = _rank(rank, shape)
    kernel = _KERNELS[as_choice("method", method, _KERNELS)]
    settings = _Settings(
        rank=rank,
        kernel=kernel,
        init=as_choice("init", init, _STARTS) if isinstance(init, str) else _factors(init, rank, shape),
        order=as_choice("order", order, _ORDERS) if isinstance(order, str) else _elements(order, rank, shape),
        skip=_real("skip", skip),
        damping=_real("damping", damping, 0.01, 1.0),
        ridge=_real("ridge", ridge),
        criterion=as_choice("criterion", criterion, _CRITERIA),
        tol=_real("tol", tol),
        max_epochs=_whole("max_epochs", max_epochs),
        patience=_whole("patience", patience),
        n_threads=thread_count(n_threads),
    )
    if method == "als" and (skip or not (isinstance(order, str) and order != "permuted")):
        raise ValueError("method='als' solves for whole rows: an order of elements, or skip, needs method='cd'")
    if method == "als" and isinstance(init, str) and init == "mean" and rank > 1:
        raise ValueError("init='mean' has equal components, which method='als' cannot tell apart; use init='random'")
    if isinstance(init, str) and init == "means" and rank == 1:
        raise ValueError("init='means' is a product of rank 2; use init='mean' for rank 1")
    if _whole("n_starts", n_starts) > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError("n_starts > 1 needs init='random': other starts are always the same")
    if normalize is not None:
        as_choice("normalize", normalize, NORMALIZATIONS)
    warn_empty(values, names)
    generator = np.random.default_rng(random_state)
    held = _held_out(values, _real("validation_fraction", validation_fraction, 0.0, 0.9), generator)
    if held.value.size:
        values = values.copy()
        values[held.row, held.column] = np.nan
    return _decompose(values, held, normalize, settings, n_starts, generator)


# --- the rank -------------------------------------------------------------------------------------------


class RankProfile(NamedTuple):
    """How well decompositions of several ranks predict entries that were held out; made by `rank_profile`."""

    #: The ranks tried.
    ranks: NDArray[np.int64]
    #: RMSE of each on the entries fitted to.
    rmse: FloatArray
    #: RMSE of each on the entries held out.
    validation_rmse: FloatArray
    #: The rank with the smallest validation RMSE.
    best: int
    #: Where that curve bends: the rank at which it is farthest below the straight line from its first point to its
    #: best.
    elbow: int


def rank_profile(
    M: object,
    ranks: Sequence[int] | None = None,
    method: str = "als",
    *,
    validation_fraction: float = 0.1,
    random_state: Any = None,
    **options: Any,
) -> RankProfile:
    """Decompose with several ranks, and see how well each predicts the same entries, held out of all of them.

    Parameters
    ----------
    M : (m, n) array-like
        Real numbers; NaN is missing.
    ranks : sequence of int, optional
        Ranks to try, in increasing order; default: 1 to min(m, n, 10).
    method, validation_fraction, random_state, **options
        As in `uv_decompose`.

    Returns
    -------
    RankProfile
        Both `best` and `elbow` are estimates from one random split: where they differ, the ranks between them are as
        good a guess.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import rank_profile
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(80, 40))
    >>> rank_profile(M, random_state=0).best
    3
    """
    matrix = as_matrix(M, what="M")
    tried = range(1, min(*matrix.values.shape, 10) + 1) if ranks is None else np.atleast_1d(ranks).tolist()
    if len(tried) == 0 or any(low >= high for low, high in itertools.pairwise(tried)):
        raise ValueError(f"ranks must be increasing whole numbers, got {ranks!r}")
    if _real("validation_fraction", validation_fraction) == 0.0:
        raise ValueError("validation_fraction is 0: ranks are compared on entries held out")
    seed = np.random.default_rng(random_state).integers(2**63)
    options |= {"validation_fraction": validation_fraction, "random_state": seed}
    results = [uv_decompose(M, rank, method, **options) for rank in tried]
    errors = np.array([result.validation_rmse for result in results])
    best = int(np.argmin(errors))
    below = np.interp(tried[: best + 1], [tried[0], tried[best]], errors[[0, best]]) - errors[: best + 1]
    bend = int(np.argmax(below)) if below.max() > 0.0 else best
    rmse = np.array([result.rmse for result in results])
    return RankProfile(np.array(tried), rmse, errors, int(tried[best]), int(tried[bend]))


# --- the descent ----------------------------------------------------------------------------------------


class _Settings(NamedTuple):
    """The arguments of `uv_decompose` that the descent needs, checked."""

    rank: int
    kernel: Any
    init: Any
    order: Any
    skip: float
    damping: float
    ridge: float
    criterion: str
    tol: float
    max_epochs: int
    patience: int
    n_threads: int


class _Held(NamedTuple):
    """Entries held out."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: FloatArray


class _Run(NamedTuple):
    """The descent from one start."""

    U: FloatArray
    Vt: FloatArray
    history: list[float]
    validation_history: list[float]
    epoch: int
    converged: bool

    @property
    def score(self) -> float:
        """The criterion by which the best of several runs is chosen; smaller is better."""
        return min(self.validation_history, default=self.history[-1])


#: Improves both factors in place; returns the sum of squared residuals.
_Epoch = Callable[[FloatArray, FloatArray], float]


def _decompose(
    values: FloatArray,
    held: _Held,
    normalize: Normalize | None,
    settings: _Settings,
    n_starts: int,
    generator: np.random.Generator,
) -> UVDecomposition:
    """Decompose; inside, entries are of order 1 (a power of 4 is taken out), so that no square over- or underflows."""
    unit = unit_of(values)
    values = values / unit
    row_offset, column_offset, column_scale = offsets_and_scales(values, normalize)
    values -= row_offset[:, None]
    values -= column_offset
    values /= column_scale
    held_rest = held.value / unit - row_offset[held.row] - column_offset[held.column]
    held = held._replace(value=held_rest / column_scale[held.column])
    # z-scores have no unit; otherwise each factor takes its root
    root = 1.0 if normalize == "zscores" else math.sqrt(unit)
    inner = settings._replace(ridge=settings.ridge / root / root)
    rows = packed(values, settings.n_threads)
    cols = packed(np.ascontiguousarray(values.T), settings.n_threads)
    unseen = [np.diff(cells.start) == 0 for cells in (rows, cols)]
    runs = []
    for _ in range(n_starts):
        U, Vt = _start(values, rows.value, inner, root, generator)
        U[unseen[0]], Vt[unseen[1]] = 0.0, 0.0
        runs.append(_descend(U, Vt, _epoch(rows, cols, inner, generator), held, inner, rms(rows.value)))
    best = min(runs, key=lambda run: run.score)
    return UVDecomposition(
        U=best.U * root,
        V=np.ascontiguousarray(best.Vt.T) * root,
        row_offset=row_offset * unit,
        column_offset=column_offset * unit,
        column_scale=column_scale * unit if normalize == "zscores" else column_scale,
        history=np.array(best.history) * root * root,
        validation_history=np.array(best.validation_history) * root * root,
        epoch=best.epoch,
        converged=best.converged,
        normalize=normalize,
        ridge=settings.ridge,
    )


def _descend(U: FloatArray, Vt: FloatArray, epoch: _Epoch, held: _Held, settings: _Settings, size: float) -> _Run:
    """Epochs until the criterion stands still, or the RMSE on what is held out rises; `size` is that of the entries."""
    history: list[float] = []
    errors: list[float] = []
    best, kept, converged = 0, (U, Vt), False
    while len(history) < settings.max_epochs and not converged:
        before = U.copy(), Vt.copy()
        history.append(epoch(U, Vt))
        moves = _moves(before, (U, Vt)) if settings.criterion == "change" else []
        converged = _stands_still(history, moves, settings.tol, size)
        if held.value.size:
            errors.append(rms(held.value - _products(U, Vt, held.row, held.column)))
            if errors[-1] == min(errors):
                best, kept = len(errors), (U.copy(), Vt.copy())
            elif len(errors) - best >= settings.patience:
                break
    if not math.isfinite(history[-1]):
        raise ValueError("the factors overflow; start from smaller ones")
    return _Run(*kept, history, errors, best or len(history), converged)


def _stands_still(history: list[float], moves: list[FloatArray], tol: float, size: float) -> bool:
    """Whether the fit is exact, or the criterion changes by no more than `tol`: the moves, if there are any."""
    if history[-1] <= ROUNDING * size:
        return True
    if moves:
        return tol > 0.0 and all(bool((move <= tol).all()) for move in moves)
    return tol > 0.0 and len(history) > 1 and abs(history[-2] - history[-1]) <= tol * history[-2]


def _epoch(rows: Cells, cols: Cells, settings: _Settings, generator: np.random.Generator) -> _Epoch:
    """A function that visits all elements, or those asked for."""
    if settings.skip == 0.0 and isinstance(settings.order, str) and settings.order != "permuted":
        return _by_halves(rows, cols, settings)
    return _one_by_one(rows, cols, settings, generator)


def _by_halves(rows: Cells, cols: Cells, settings: _Settings) -> _Epoch:
    """One factor, then the other, on several threads."""

    def epoch(U: FloatArray, Vt: FloatArray) -> float:
        halves = [(rows, Vt, U), (cols, U, Vt)]
        for cells, other, own in halves if settings.order == "fixed" else reversed(halves):
            options = settings.ridge, settings.damping, settings.n_threads
            squares = half_epoch(settings.kernel, cells, other, own, *options)
        return math.sqrt(float(squares.sum()) / rows.value.size)

    return epoch


def _one_by_one(rows: Cells, cols: Cells, settings: _Settings, generator: np.random.Generator) -> _Epoch:
    """Single elements, without those that are good already."""
    m, n_cells, permuted = rows.start.size - 1, rows.value.size, False
    elements = settings.order
    if isinstance(elements, str):
        permuted = elements == "permuted"
        factors = _all_elements(rows, cols, settings.rank)
        elements = np.vstack(factors[::-1] if elements == "columns-first" else factors)
    row_of = np.repeat(np.arange(m), np.diff(rows.start))
    by_row = (rows.start, rows.column, np.arange(n_cells))
    by_column = (cols.start, cols.column, np.argsort(rows.column, kind="stable"))
    good = np.zeros((m + cols.start.size - 1, settings.rank), dtype=bool)

    def epoch(U: FloatArray, Vt: FloatArray) -> float:
        residual = rows.value - _products(U, Vt, row_of, rows.column)
        visits = generator.permutation(elements) if permuted else elements
        visits = visits[~good[visits[:, 0] * m + visits[:, 1], visits[:, 2]]]
        before = U.copy(), Vt.copy()
        follow(by_row, by_column, visits, U, Vt, settings.ridge, settings.damping, residual)
        if settings.skip > 0.0:
            good[:] = ~good & (np.vstack(_moves(before, (U, Vt))) <= settings.skip)
        return rms(residual)

    return epoch


def _all_elements(rows: Cells, cols: Cells, rank: int) -> list[NDArray[np.int64]]:
    """Every element of each factor, as `follow` takes them."""
    parts = []
    for factor, cells in enumerate((rows, cols)):
        i, k = np.divmod(np.arange((cells.start.size - 1) * rank), rank)
        parts.append(np.column_stack([np.full_like(i, factor), i, k]))
    return parts


def _start(
    values: FloatArray, entries: FloatArray, settings: _Settings, root: float, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """U and the transpose of V to start from; `root` is the unit that given ones are in."""
    d, init, shape = settings.rank, settings.init, values.shape
    if not isinstance(init, str):
        U, V = init
        return np.array(U / root, order="C"), np.array(V.T / root, order="C")
    if init == "random":
        size = math.sqrt(rms(entries) / math.sqrt(d))
        return size * generator.standard_normal((shape[0], d)), size * generator.standard_normal((shape[1], d))
    if init == "means":
        ones = [np.ones((size, 1)) for size in shape]
        halves = [means(values, axis)[:, None] / 2.0 for axis in (1, 0)]
        rest = np.zeros((shape[0], d - 2)), generator.standard_normal((shape[1], d - 2))
        return np.hstack([halves[0], ones[0], rest[0]]), np.hstack([ones[1], halves[1], rest[1]])
    mean = float(entries.mean())
    if abs(mean) <= 1e-12 * rms(entries):
        raise ValueError("init='mean' starts at 0, and stays there, where the entries' mean is 0; use init='random'")
    size = math.sqrt(abs(mean) / d)
    return np.full((shape[0], d), size), np.full((shape[1], d), math.copysign(size, mean))


# --- arithmetic -----------------------------------------------------------------------------------------


def _products(U: FloatArray, Vt: FloatArray, row: NDArray[Any], column: NDArray[Any]) -> FloatArray:
    """Entries of U V."""
    return np.asarray(np.einsum("ij,ij->i", U[row], Vt[column]))


def _moves(before: Sequence[FloatArray], after: Sequence[FloatArray]) -> list[FloatArray]:
    """How far the elements of factors moved, as fractions of their factor's root mean square."""
    return [abs(new - old) / (rms(new) or 1.0) for old, new in zip(before, after, strict=True)]


def _held_out(values: FloatArray, fraction: float, generator: np.random.Generator) -> _Held:
    """A random fraction of the entries: at least one unless it is 0, and not all of them."""
    row, column = np.nonzero(~np.isnan(values)) if fraction > 0.0 else (np.empty(0, np.intp), np.empty(0, np.intp))
    if fraction > 0.0:
        if row.size < 2:
            raise ValueError("M has one entry only: none can be held out; use validation_fraction=0")
        count = min(max(round(fraction * row.size), 1), row.size - 1)
        chosen = np.sort(generator.choice(row.size, count, replace=False))
        row, column = row[chosen], column[chosen]
    return _Held(row, column, values[row, column])


# --- arguments ------------------------------------------------------------------------------------------


def _read(M: object, what: str = "M") -> tuple[FloatArray, list[str] | None]:
    """M as a contiguous float64 matrix without infinities, and the names of its columns."""
    matrix = as_matrix(M, what=what)
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        values = np.ascontiguousarray(matrix.values, dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        j = int(np.argmax(infinite.any(axis=0)))
        i = int(np.argmax(infinite[:, j]))
        raise domain_error("infinite", None if matrix.was_vector else j, i, float(values[i, j]), matrix.names)
    return values, matrix.names


def warn_empty(values: FloatArray, names: list[str] | None) -> None:
    """Refuse a matrix without entries; warn of rows and columns without."""
    missing = np.isnan(values)
    if missing.all():
        raise ValueError("M has no entries (all are missing); there is nothing to decompose")
    rows, cols = (np.flatnonzero(missing.all(axis=axis)) for axis in (1, 0))
    labels = [*(f"row {i}" for i in rows), *(column_label(int(j), names) for j in cols)]
    if labels:
        text = ", ".join(labels[:10]) + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
        warn(f"no entries in {text}: estimates there are what normalize adds back")


def _whole(what: str, value: object) -> int:
    """An argument that is a whole number of at least 1."""
    if not is_whole(value):
        raise TypeError(f"{what} must be a whole number, got {value!r}")
    if value < 1:
        raise ValueError(f"{what} must be at least 1, got {value}")
    return int(value)


def _real(what: str, value: object, low: float = 0.0, high: float = math.inf) -> float:
    """An argument that is a finite real number from `low` to `high`."""
    if not is_real(value):
        raise TypeError(f"{what} must be a real number, got {value!r}")
    if not (low <= value <= high and value < math.inf):
        limits = f"at least {low:.3g}" if high == math.inf else f"from {low:.3g} to {high:.3g}"
        raise ValueError(f"{what} must be finite and {limits}, got {value}")
    return float(value)


def _rank(rank: object, shape: tuple[int, int]) -> int:
    checked = _whole("rank", rank)
    if checked > min(shape):
        raise ValueError(f"rank is {checked}, but M has shape {shape}; use at most {min(shape)}")
    return checked


def _elements(order: Any, rank: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Elements to visit, as `follow` takes them: (0, i, s) is U[i, s], and (1, j, s) is V[s, j]."""
    visits = []
    if not isinstance(order, Iterable):
        raise TypeError(f"order must be 'fixed', 'permuted' or a sequence of elements, got {order!r}")
    for element in order:
        if not isinstance(element, tuple | list) or len(element) != 3 or not all(map(is_whole, element[1:])):
            raise TypeError(f"order has {element!r}; an element is ('U' or 'V', row, column)")
        factor, i, j = element
        sizes = {"U": (shape[0], rank), "V": (rank, shape[1])}[as_choice("an element of order", factor, ("U", "V"))]
        if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise ValueError(f"order has {element!r}, but {factor} has shape {sizes}")
        visits.append((0, i, j) if factor == "U" else (1, j, i))
    if not visits:
        raise ValueError("order has no elements; name some, or use 'fixed' or 'permuted'")
    return np.array(visits, dtype=np.int64)


def _factors(init: Any, rank: int, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Given factors to start from, checked."""
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise TypeError("init must be 'random', 'mean' or a pair (U, V) of arrays")
    factors = _read(init[0], "U")[0], _read(init[1], "V")[0]
    for factor, name, wanted in zip(factors, "UV", ((shape[0], rank), (rank, shape[1])), strict=True):
        if factor.shape != wanted or np.isnan(factor).any():
            raise ValueError(f"{name} in init must have shape {wanted} and no NaN, got shape {factor.shape}")
    return factors
