"""UV decomposition of a matrix with missing entries: M ~ U V, fitted to the observed entries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._input.alignment import align_rows, matching_order
from powerkern._input.arguments import as_generator, as_number, as_whole, refuse_infinite
from powerkern._input.arrays import Matrix, as_choice, as_matrix, check_n_features, column_label, is_whole, listed
from powerkern._input.frames import labelled
from powerkern._input.messages import shown, warn
from powerkern._typing import FloatArray
from powerkern.completion.descent import Held, Settings, descend, make_epoch, start
from powerkern.completion.epochs import half_epoch, pack_observed
from powerkern.completion.normalization import NORMALIZATIONS, Normalization, rms, unit_of
from powerkern.kernels.multivariate.completion import coordinate_rows, least_squares_rows

Normalize = Literal["rows", "columns", "both", "columns-first", "average", "zscores"]
#: An element of U or V, its row and its column.
Element = tuple[Literal["U", "V"], int, int]

_KERNELS = {"cd": coordinate_rows, "als": least_squares_rows}
_STARTS = ("random", "mean", "means")
_ORDERS = ("fixed", "columns-first", "permuted")
_CRITERIA = ("rmse", "change")

#: Least-squares passes that fold in new rows; each brings ill-determined directions nearer to their optimum.
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
    history : (n_epochs,) ndarray
        Root mean square error (RMSE) on the entries fitted to after each epoch, for the normalized matrix.
    validation_history : (n_epochs,) ndarray
        The same on the entries held out; empty if there were none.
    epoch : int
        The epoch of U and V: the last or, with entries held out, the one with the smallest validation RMSE.
    converged : bool
        Whether `tol` was reached, or the fit was exact, before `max_epochs`.
    ridge : float
        As given.
    """

    U: FloatArray
    V: FloatArray
    history: FloatArray
    validation_history: FloatArray
    epoch: int
    converged: bool
    ridge: float
    _normalization: Normalization
    _row_offset: FloatArray
    #: Positions of the rows of the matrix, a series if they have labels, and the labels of its columns.
    _rows: Any = None
    _column_names: list[Any] | None = None

    @property
    def normalize(self) -> str | None:
        """As given."""
        return self._normalization.kind

    @property
    def row_offset(self) -> FloatArray:
        """Offsets subtracted from rows, (m,)."""
        return np.asarray(self._row_offset * self._normalization.unit[0])

    @property
    def column_offset(self) -> FloatArray:
        """Offsets subtracted from columns, (n,)."""
        return np.asarray(self._normalization.offset * self._normalization.unit)

    @property
    def column_scale(self) -> FloatArray:
        """Scales of columns, (n,); ones unless `normalize` is "zscores"."""
        unit = self._normalization.unit if self.normalize == "zscores" else 1.0
        return np.asarray(self._normalization.scale * unit)

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
        """RMSE of U V on the entries fitted to."""
        return float(self.history[self.epoch - 1])

    @property
    def validation_rmse(self) -> float:
        """RMSE of U V on the entries held out; NaN if there were none."""
        return float(self.validation_history[self.epoch - 1]) if self.validation_history.size else math.nan

    def __repr__(self) -> str:
        return f"UVDecomposition(shape={self.shape}, rank={self.rank}, rmse={self.rmse:.6g}, epoch={self.epoch})"

    def reconstruct(self) -> FloatArray:
        """Estimates of all entries: U V with offsets and scales restored.

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
        root = self._normalization.root
        return self._normalization.restore((self.U / root) @ (self.V / root), self._row_offset)

    def complete(self, M: object) -> FloatArray:
        """`M`, of the shape of the decomposed matrix, with NaN replaced by estimates.

        Labels of rows and columns are aligned with those of the decomposed matrix.
        """
        values, names = _read(M)
        if values.shape != self.shape:
            raise ValueError(f"M has shape {values.shape}, the decomposed matrix {self.shape}; fold_in takes new rows")
        rows = np.asarray(align_rows(self._rows, M, "the decomposed matrix", "M"))
        return np.where(np.isnan(values), self.reconstruct()[rows][:, self._match_columns(values, names)], values)

    def _match_columns(self, values: FloatArray, names: list[Any] | None) -> NDArray[np.intp] | slice:
        """Return the column of the decomposed matrix that each column of `values` is, by their names."""
        known = self._column_names
        order = None if names is None or known is None else matching_order(known, names)
        if order is None:
            check_n_features(values, self.shape[1], names, known)
        return slice(None) if order is None else np.array(order)

    def fold_in(self, M: object, *, n_threads: int | None = None) -> FloatArray:
        """Rows, old or new, with NaN replaced by estimates.

        Each row of `M`, (k, n), is fitted to its own entries by least squares (with the decomposition's ridge), V held
        fixed. Where they do not determine it, the shortest solution is taken; a row without entries becomes
        `column_offset`. Columns with labels are aligned. Results do not depend on `n_threads`, bit for bit.

        Examples
        --------
        >>> from powerkern.completion import uv_decompose
        >>> result = uv_decompose([[1, 2, 3], [2, 4, 6]], rank=1, tol=1e-12, random_state=0)
        >>> result.fold_in([[10, float("nan"), 30]]).round(6)
        array([[10., 20., 30.]])
        """
        given, names = _read(M)
        if given.shape[1] != self.shape[1]:
            raise ValueError(f"M has {given.shape[1]} columns, the decomposed matrix has {self.shape[1]}")
        positions = self._match_columns(given, names)
        values = np.empty_like(given)
        values[:, positions] = given
        threads = thread_count(n_threads)
        row_offset, root = self._normalization.row_offsets(values), self._normalization.root
        rest = self._normalization.normalize_rows(values, row_offset)
        unit = unit_of(rest)  # new rows may be of another size
        cells = pack_observed(rest / unit, threads)
        Vt, U = np.ascontiguousarray(self.V.T) / root, np.zeros((values.shape[0], self.rank))
        for _ in range(_FOLD_PASSES):
            half_epoch(least_squares_rows, cells, Vt, U, self.ridge / root / root, 1.0, threads)
        estimates = self._normalization.restore((U * unit) @ Vt.T, row_offset)
        return np.where(np.isnan(given), estimates[:, positions], given)


def uv_decompose(
    M: object,
    rank: int,
    method: str = "cd",
    *,
    normalize: Normalize | None = None,
    init: str | tuple[ArrayLike, ArrayLike] = "random",
    n_starts: int = 1,
    order: str | Sequence[Element] = "fixed",
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

    Minimizes, over the observed entries,

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
    normalize : {None, "rows", "columns", "both", "columns-first", "average", "zscores"}
        First subtract the means of rows, of columns, of rows and then of columns ("both"), or of columns and then of
        rows ("columns-first"); "average": half of the sum of the row's mean and the column's; "zscores": subtract the
        means of the columns and divide by their standard deviations. Means are of the observed entries; all is undone
        in `UVDecomposition.reconstruct`.
    init : {"random", "mean", "means"} or (U, V), default "random"
        Start from normal variates whose products have the entries' root mean square; from the constant
        ``sqrt(abs(mean)/d)``, with ``U V = mean`` (all components start equal: for "cd" only); from the average of the
        row's mean and the column's, which has rank 2 (further components have U = 0 and a random V); or from given
        factors.
    n_starts : int, default 1
        Random starts to try; the one with the smallest (validation) RMSE is returned.
    order : {"fixed", "columns-first", "permuted"} or sequence of ("U" or "V", row, column), default "fixed"
        The factor improved first in an epoch: U, of the rows of M, or V, of its columns. With "cd" also a new random
        permutation of all elements of both in every epoch, or the given elements in this order (either on one thread).
    damping : float from 0.01 to 1, default 1
        Fraction of the way to its optimum that an element moves.
    ridge : float, default 0
        Penalty on the factors' squares.
    criterion : {"rmse", "change"}, default "rmse"
        The quantity compared with `tol`: the relative change of the RMSE between epochs, or the largest change of an
        element as a fraction of its factor's root mean square.
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
        Seed of starts, permutations and held-out entries; None: different each time.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. U and V do not depend on it, bit for bit.

    Returns
    -------
    UVDecomposition

    Raises
    ------
    TypeError, ValueError
        Data that are not real numbers, infinite entries (naming column and row), no entries at all, a rank larger than
        the matrix, or unsuitable arguments.

    Warns
    -----
    UserWarning
        Once, listing rows and columns without entries: U or V is zero there, and their estimates are the offsets alone.

    Notes
    -----
    Without a ridge, entries that no data determine (in a row with fewer entries than `rank`) depend on the start.
    A constant matrix is fitted exactly; its missing entries get the constant where the rank is 1 or
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
    rank = _check_rank(rank, shape)
    kernel = _KERNELS[as_choice("method", method, _KERNELS)]
    settings = Settings(
        rank=rank,
        kernel=kernel,
        init=as_choice("init", init, _STARTS) if isinstance(init, str) else _check_factors(init, rank, shape),
        order=as_choice("order", order, _ORDERS) if isinstance(order, str) else _check_order(order, rank, shape),
        damping=as_number("damping", damping, "[0.01, 1]"),
        ridge=as_number("ridge", ridge, "[0, inf)"),
        criterion=as_choice("criterion", criterion, _CRITERIA),
        tol=as_number("tol", tol, "[0, inf)"),
        max_epochs=as_whole("max_epochs", max_epochs),
        patience=as_whole("patience", patience),
        n_threads=thread_count(n_threads),
    )
    if method == "als" and not (isinstance(order, str) and order != "permuted"):
        raise ValueError("method='als' solves for whole rows: an order of elements needs method='cd'")
    if method == "als" and isinstance(init, str) and init == "mean" and rank > 1:
        raise ValueError("init='mean' has equal components, which method='als' cannot tell apart; use init='random'")
    if isinstance(init, str) and init == "means" and rank == 1:
        raise ValueError("init='means' is a product of rank 2; use init='mean' for rank 1")
    if as_whole("n_starts", n_starts) > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError("n_starts > 1 needs init='random': other starts are always the same")
    if normalize is not None:
        as_choice("normalize", normalize, NORMALIZATIONS)
    warn_empty(values, names)
    generator = as_generator(random_state)
    held = _select_held_out(values, as_number("validation_fraction", validation_fraction, "[0, 0.9]"), generator)
    result = _decompose(values, held, normalize, settings, n_starts, generator)
    return replace(result, _rows=labelled(M, np.arange(shape[0])), _column_names=names)


def complete_by_average(M: object, decompositions: Sequence[UVDecomposition]) -> FloatArray:
    """Replace NaN in `M` by the average of the estimates of several decompositions, weighted by ``1/RMSE**2``.

    Different starts, orders and normalisations end in different minima, whose errors partly cancel in the average.

    Parameters
    ----------
    M : (m, n) array-like
        The decomposed matrix, as for `UVDecomposition.complete`.
    decompositions : sequence of UVDecomposition
        Decompositions of `M`. The RMSE is that of entries held out if all of them have such entries, otherwise that of
        the entries fitted to. Decompositions that fit exactly share the whole weight.

    Returns
    -------
    ndarray, shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import complete_by_average, uv_decompose
    >>> nan = float("nan")
    >>> M = np.array([[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, nan, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, nan]])
    >>> starts = [uv_decompose(M, 1, init="mean"), uv_decompose(M, 1, normalize="average", random_state=0)]
    >>> bool(np.isfinite(complete_by_average(M, starts)).all())
    True
    """
    every = list(decompositions)
    if not every or not all(isinstance(each, UVDecomposition) for each in every):
        raise TypeError(f"decompositions must be one or more results of uv_decompose, got {shown(decompositions)}")
    validated = np.array([each.validation_rmse for each in every])
    errors = np.array([each.rmse for each in every]) if np.isnan(validated).any() else validated
    least = max(float(errors.min()), np.finfo(float).tiny)  # of an exact fit: 0
    weights = (least / np.maximum(errors, least)) ** 2
    estimates = np.average([each.complete(M) for each in every], axis=0, weights=weights)
    values, _ = _read(M)
    return np.where(np.isnan(values), estimates, values)


# --- one decomposition ----------------------------------------------------------------------------------


def _decompose(
    values: FloatArray,
    held: tuple[NDArray[np.intp], NDArray[np.intp]],
    normalize: Normalize | None,
    settings: Settings,
    n_starts: int,
    generator: np.random.Generator,
) -> UVDecomposition:
    """The best of several starts, without the entries that are held out; inside, entries are of order 1."""
    fitted = values.copy()
    fitted[held] = math.nan
    normalization = Normalization.of(fitted, normalize)
    row_offset, root = normalization.row_offsets(fitted), normalization.root
    rest = normalization.normalize_rows(values, row_offset)
    out = Held(*held, rest[held])
    rest[held] = math.nan
    inner = settings._replace(ridge=settings.ridge / root / root)
    rows, cols = (
        pack_observed(rest, settings.n_threads),
        pack_observed(np.ascontiguousarray(rest.T), settings.n_threads),
    )
    unseen = [np.diff(cells.start) == 0 for cells in (rows, cols)]
    runs = []
    for _ in range(n_starts):
        U, Vt = start(rest, rows.value, inner, root, generator)
        U[unseen[0]], Vt[unseen[1]] = 0.0, 0.0
        runs.append(descend(U, Vt, make_epoch(rows, cols, inner, generator), out, inner, rms(rows.value)))
    best = min(runs, key=lambda run: run.score)
    with np.errstate(over="ignore"):  # squared errors beyond float64 are infinite
        history, validation_history = (
            np.array(errors) * root * root for errors in (best.history, best.validation_history)
        )
    return UVDecomposition(
        U=best.U * root,
        V=np.ascontiguousarray(best.Vt.T) * root,
        history=history,
        validation_history=validation_history,
        epoch=best.epoch,
        converged=best.converged,
        ridge=settings.ridge,
        _normalization=normalization,
        _row_offset=row_offset,
    )


def _select_held_out(
    values: FloatArray, fraction: float, generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of a random fraction of the entries: at least one unless it is 0, and not all of them."""
    if fraction == 0.0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    row, column = np.nonzero(~np.isnan(values))
    if row.size < 2:
        raise ValueError("M has one entry only: none can be held out; use validation_fraction=0")
    count = min(max(round(fraction * row.size), 1), row.size - 1)
    chosen = np.sort(generator.choice(row.size, count, replace=False))
    return row[chosen], column[chosen]


# --- arguments ------------------------------------------------------------------------------------------


def _read(M: object, what: str = "M") -> tuple[FloatArray, list[str] | None]:
    """Read M, which may have been read before, as a contiguous float64 matrix without infinities, and its labels."""
    matrix = M if isinstance(M, Matrix) else as_matrix(M, what=what)
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        values = np.ascontiguousarray(matrix.values, dtype=np.float64)
    refuse_infinite(matrix._replace(values=values))
    return values, matrix.names


def warn_empty(values: FloatArray, names: list[str] | None) -> None:
    """Refuse a matrix without entries; warn of rows and columns without entries."""
    missing = np.isnan(values)
    if missing.all():
        raise ValueError("M has no entries (all are missing); there is nothing to decompose")
    rows, cols = (np.flatnonzero(missing.all(axis=axis)) for axis in (1, 0))
    labels = [*(f"row {i}" for i in rows), *(column_label(int(j), names) for j in cols)]
    if labels:
        text = ", ".join(labels[:10]) + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
        warn(f"no entries in {text}: their estimates are the offsets of normalize alone")


def _check_rank(rank: object, shape: tuple[int, int]) -> int:
    checked = as_whole("rank", rank)
    if checked > min(shape):
        raise ValueError(f"rank is {checked}, but M has shape {shape}; use at most {min(shape)}")
    return checked


def _check_order(order: Any, rank: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Elements to visit, as `follow` takes them: (0, i, s) is U[i, s], and (1, j, s) is V[s, j]."""
    visits = []
    if not isinstance(order, Iterable):
        raise TypeError(f"order must be 'fixed', 'permuted' or a sequence of elements, got {shown(order)}")
    for element in listed(order):
        if not isinstance(element, tuple | list) or len(element) != 3 or not all(map(is_whole, element[1:])):
            raise TypeError(f"order has {shown(element)}; an element is ('U' or 'V', row, column)")
        factor, i, j = element
        sizes = {"U": (shape[0], rank), "V": (rank, shape[1])}[as_choice("an element of order", factor, ("U", "V"))]
        if not (0 <= i < sizes[0] and 0 <= j < sizes[1]):
            raise ValueError(f"order has {shown(element)}, but {factor} has shape {sizes}")
        visits.append((0, i, j) if factor == "U" else (1, j, i))
    if not visits:
        raise ValueError("order has no elements; name some, or use 'fixed' or 'permuted'")
    return np.array(visits, dtype=np.int64)


def _check_factors(init: Any, rank: int, shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Given factors to start from, checked."""
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise TypeError("init must be 'random', 'mean' or a pair (U, V) of arrays")
    factors = _read(init[0], "U")[0], _read(init[1], "V")[0]
    for factor, name, wanted in zip(factors, "UV", ((shape[0], rank), (rank, shape[1])), strict=True):
        if factor.shape != wanted or np.isnan(factor).any():
            raise ValueError(f"{name} in init must have shape {wanted} and no NaN, got shape {factor.shape}")
    return factors
