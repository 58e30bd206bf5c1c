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
from powerkern._input.arguments import MOST_STARTS, as_generator, as_number, as_whole, refuse_infinite
from powerkern._input.arrays import Matrix, as_choice, as_matrix, check_n_features, column_label, is_whole, to_list
from powerkern._input.frames import labelled
from powerkern._input.messages import shown, warn
from powerkern._typing import FloatArray
from powerkern.completion.descent import Held, Settings, descend, initial_factors, make_epoch
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

#: Number of least-squares passes that fold in new rows; each moves ill-determined directions closer to their optimum.
_FOLD_PASSES = 3


@dataclass(frozen=True, repr=False, eq=False)
class UVDecomposition:
    """A decomposition M ~ U V, returned by `uv_decompose`.

    Attributes
    ----------
    U : (m, rank) ndarray
        Left factor.
    V : (rank, n) ndarray
        Right factor.
    history : (n_epochs,) ndarray
        Root mean square error (RMSE) on the fitted entries after each epoch, for the normalized matrix.
    validation_history : (n_epochs,) ndarray
        RMSE on the held-out entries after each epoch; empty if there were none.
    epoch : int
        The epoch of U and V: the last or, with entries held out, the one with the smallest validation RMSE.
    converged : bool
        Whether the criterion fell to `tol`, or the fit became exact, within `max_epochs`.
    ridge : float
        Penalty on the squares of the factors, as passed to `uv_decompose`.
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
    #: Positions of the rows of the matrix: a series indexed by the labels of the rows, or an array if they have no
    #: labels.
    _rows: Any = None
    _column_names: list[Any] | None = None

    @property
    def normalize(self) -> str | None:
        """The argument `normalize` that was passed to `uv_decompose`."""
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
        """RMSE of U V on the fitted entries."""
        return float(self.history[self.epoch - 1])

    @property
    def validation_rmse(self) -> float:
        """RMSE of U V on the held-out entries; NaN if there were none."""
        return float(self.validation_history[self.epoch - 1]) if self.validation_history.size else math.nan

    def __repr__(self) -> str:
        return f"UVDecomposition(shape={self.shape}, rank={self.rank}, rmse={self.rmse:.6g}, epoch={self.epoch})"

    def reconstruct(self) -> FloatArray:
        """Return the estimates of all entries: U V with offsets and scales restored.

        Examples
        --------
        >>> from powerkern.completion import uv_decompose
        >>> nan = float("nan")
        >>> result = uv_decompose([[1, 2, nan], [2, 4, 6], [3, nan, 9]], rank=1, tol=1e-12, rng=0)
        >>> result.reconstruct().round(6)
        array([[1., 2., 3.],
               [2., 4., 6.],
               [3., 6., 9.]])
        """
        root = self._normalization.root
        return self._normalization.restore((self.U / root) @ (self.V / root), self._row_offset)

    def complete(self, M: object) -> FloatArray:
        """Return `M` with NaN replaced by estimates.

        `M` must have the shape of the decomposed matrix. If both have labels, rows and columns are matched by labels.
        """
        values, names = _read(M, known=self._column_names)
        if values.shape != self.shape:
            raise ValueError(
                f"M has shape {values.shape}, the decomposed matrix {self.shape}; use fold_in for new rows"
            )
        rows = np.asarray(align_rows(self._rows, M, "the decomposed matrix", "M"))
        return np.where(np.isnan(values), self.reconstruct()[rows][:, self._match_columns(values, names)], values)

    def _match_columns(self, values: FloatArray, names: list[Any] | None) -> NDArray[np.intp] | slice:
        """Return the position in the decomposed matrix of each column of `values`, matched by name."""
        known = self._column_names
        order = None if names is None or known is None else matching_order(known, names)
        if order is None:
            check_n_features(values, self.shape[1], names, known)
        return slice(None) if order is None else np.array(order)

    def fold_in(self, M: object, *, n_threads: int | None = None) -> FloatArray:
        """Return rows, fitted or new, with NaN replaced by estimates.

        The factors of each row of `M`, (k, n), are fitted to the observed entries of the row by least squares, with V
        held fixed and with the ridge of the decomposition. If the entries do not determine the factors, the shortest
        solution is used. A row without entries becomes `column_offset`. Columns with labels are aligned. Results are
        bit-identical for any `n_threads`.

        Examples
        --------
        >>> from powerkern.completion import uv_decompose
        >>> result = uv_decompose([[1, 2, 3], [2, 4, 6]], rank=1, tol=1e-12, rng=0)
        >>> result.fold_in([[10, float("nan"), 30]]).round(6)
        array([[10., 20., 30.]])
        """
        given, names = _read(M, known=self._column_names)
        if given.shape[1] != self.shape[1]:
            raise ValueError(
                f"M has {given.shape[1]} columns, the decomposed matrix has {self.shape[1]}; pass the same columns"
            )
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
    rng: Any = None,
    n_threads: int | None = None,
) -> UVDecomposition:
    r"""Approximate a matrix with missing entries by a product U V of rank `rank`.

    The factors minimize, over the observed entries,

    .. math:: \sum_{r, s} \Bigl(m_{rs} - \sum_k u_{rk} v_{ks}\Bigr)^2 + \text{ridge}\, (|U|^2 + |V|^2).

    Each epoch improves U with V held fixed, and V with U held fixed. The problem is not convex: the result is a
    stationary point that depends on the start.

    Parameters
    ----------
    M : (m, n) array-like
        Real numbers; NaN (masked, null) is missing. It is not modified.
    rank : int
        Number of components, at most min(m, n).
    method : {"cd", "als"}, default "cd"
        "cd" is coordinate descent, which improves one element at a time ([1]_, section 9.4); the cost of an epoch is
        proportional to `rank`. "als" is alternating least squares, which solves for a whole row of U or column of V
        ([2]_); it needs fewer epochs, but the cost of an epoch grows as ``rank**2``.
    normalize : {None, "rows", "columns", "both", "columns-first", "average", "zscores"}
        Offsets to subtract first: the means of rows, of columns, of rows and then of columns ("both"), or of columns
        and then of rows ("columns-first"). "average" subtracts half of the sum of the row mean and the column mean.
        "zscores" subtracts the column means and divides by the standard deviations. Means are over the observed
        entries. `UVDecomposition.reconstruct` undoes the normalization.
    init : {"random", "mean", "means"} or (U, V), default "random"
        Starting factors. "random": normal variates, such that the elements of U V have the root mean square of the
        entries. "mean": the constant ``sqrt(abs(mean)/rank)``, so that ``U V = mean``. All components start equal, and
        only "cd" can separate them. "means": the average of the row mean and the column mean, which has rank 2; further
        components have U = 0 and a random V.
    n_starts : int, default 1
        Number of random starts; the result with the smallest (validation) RMSE is returned.
    order : {"fixed", "columns-first", "permuted"} or sequence of ("U" or "V", row, column), default "fixed"
        Order of updates in an epoch: U before V ("fixed") or V before U ("columns-first"). "cd" also allows a new
        random permutation of all elements of both factors in every epoch ("permuted"), or a sequence of elements, which
        are updated in this order. The latter two run on one thread.
    damping : float from 0.01 to 1, default 1
        Fraction of the full step that an update takes; 1 moves an element to its optimum.
    ridge : float, default 0
        Penalty on the squares of the factors.
    criterion : {"rmse", "change"}, default "rmse"
        The quantity compared with `tol`: the relative change of the RMSE between epochs ("rmse"), or the largest change
        of an element as a fraction of the root mean square of its factor ("change").
    tol : float, default 1e-4
        Stop when the criterion is at most this after an epoch; 0 disables the test.
    max_epochs : int, default 200
        Maximum number of epochs.
    validation_fraction : float from 0 to 0.9, default 0
        Hold out this random fraction of the entries, and return the factors of the epoch that predicts them best. The
        factors are not fitted again with all entries afterwards.
    patience : int, default 5
        With entries held out, stop after this many epochs without a new smallest RMSE on them.
    rng : int, numpy.random.Generator or None, optional
        Seed of starts, permutations and held-out entries; None gives a different result each time.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. U and V are bit-identical for any number.

    Returns
    -------
    UVDecomposition

    Raises
    ------
    TypeError, ValueError
        If data are not real numbers, an entry is infinite (the message names column and row), there are no entries,
        `rank` exceeds the dimensions of the matrix, or an argument is invalid.

    Warns
    -----
    UserWarning
        One warning that lists rows and columns without entries. U or V is zero there, and the estimates consist of the
        offsets only.

    Notes
    -----
    Without a ridge, estimates that the data do not determine (in a row with fewer entries than `rank`) depend on the
    start. A constant matrix is fitted exactly. Its missing entries get the constant if the rank is 1 or `normalize`
    subtracts means; otherwise, superfluous components leave them undetermined.

    References
    ----------
    .. [1] J. Leskovec, A. Rajaraman, J. D. Ullman, "Mining of Massive Datasets", 3rd ed., Cambridge University Press
       2020, section 9.4.
    .. [2] Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, "Large-scale parallel collaborative filtering for the Netflix
       prize", AAIM 2008, 337-348.

    Examples
    --------
    The example of [1]_. First, one element is updated; then, epochs run until they converge:

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
        raise ValueError("an order of single elements needs method='cd'; method='als' updates whole rows and columns")
    if method == "als" and isinstance(init, str) and init == "mean" and rank > 1:
        raise ValueError("init='mean' has equal components, which method='als' cannot separate; use init='random'")
    if isinstance(init, str) and init == "means" and rank == 1:
        raise ValueError("init='means' is a product of rank 2; use init='mean' for rank 1")
    if as_whole("n_starts", n_starts, most=MOST_STARTS) > 1 and not (isinstance(init, str) and init == "random"):
        raise ValueError("n_starts > 1 needs init='random': with any other init, all starts are identical")
    if normalize is not None:
        as_choice("normalize", normalize, NORMALIZATIONS)
    warn_empty(values, names)
    generator = as_generator(rng)
    held = _select_held_out(values, as_number("validation_fraction", validation_fraction, "[0, 0.9]"), generator)
    result = _decompose(values, held, normalize, settings, n_starts, generator)
    return replace(result, _rows=labelled(M, np.arange(shape[0])), _column_names=names)


def complete_by_average(M: object, decompositions: Sequence[UVDecomposition]) -> FloatArray:
    """Replace NaN in `M` by the average of the estimates of several decompositions, weighted by ``1/RMSE**2``.

    Different starts, orders and normalisations lead to different minima, whose errors partly cancel in the average.

    Parameters
    ----------
    M : (m, n) array-like
        The decomposed matrix, as for `UVDecomposition.complete`.
    decompositions : sequence of UVDecomposition
        Decompositions of `M`. The RMSE refers to the held-out entries if all decompositions have such entries,
        otherwise to the fitted entries. If some decompositions are exact, only these are averaged.

    Returns
    -------
    ndarray, shape (m, n)

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import complete_by_average, uv_decompose
    >>> nan = float("nan")
    >>> M = np.array([[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, nan, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, nan]])
    >>> starts = [uv_decompose(M, 1, init="mean"), uv_decompose(M, 1, normalize="average", rng=0)]
    >>> bool(np.isfinite(complete_by_average(M, starts)).all())
    True
    """
    every = list(decompositions)
    if not every or not all(isinstance(each, UVDecomposition) for each in every):
        raise TypeError(f"decompositions must be one or more results of uv_decompose, got {shown(decompositions)}")
    validated = np.array([each.validation_rmse for each in every])
    errors = np.array([each.rmse for each in every]) if np.isnan(validated).any() else validated
    least = max(float(errors.min()), np.finfo(float).tiny)  # 0 for an exact fit
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
    """Decompose a matrix from several starts, without the held-out entries; return the best decomposition.

    Parameters
    ----------
    values : (m, n) ndarray
        The matrix; NaN is missing.
    held : pair of (k,) ndarray
        Rows and columns of the held-out entries.
    normalize : str or None
        As in `uv_decompose`.
    settings : Settings
        Options of the descent; the ridge is in the units of `values`.
    n_starts : int
        Number of starts.
    generator : numpy.random.Generator
        Source of random starts and permutations.
    """
    fitted = values.copy()
    fitted[held] = math.nan
    normalization = Normalization.from_matrix(fitted, normalize)
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
        U, Vt = initial_factors(rest, rows.value, inner, root, generator)
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
    """Return the rows and columns of a random fraction of the entries of `values`; NaN is missing.

    If the fraction is 0, no entry is selected. Otherwise at least one entry is selected, but not all.
    """
    if fraction == 0.0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    row, column = np.nonzero(~np.isnan(values))
    if row.size < 2:
        raise ValueError("M has only one entry, so none can be held out; use validation_fraction=0")
    count = min(max(round(fraction * row.size), 1), row.size - 1)
    chosen = np.sort(generator.choice(row.size, count, replace=False))
    return row[chosen], column[chosen]


# --- arguments ------------------------------------------------------------------------------------------


def _read(M: object, what: str = "M", known: list[Any] | None = None) -> tuple[FloatArray, list[str] | None]:
    """Return a matrix as contiguous float64, with the labels of its columns; raise for infinite entries.

    Parameters
    ----------
    M : array-like or Matrix
        The matrix.
    what : str
        Name of the argument, for messages.
    known : list, optional
        Names of the columns for messages, if `M` has no labels.
    """
    matrix = M if isinstance(M, Matrix) else as_matrix(M, what=what)
    with np.errstate(over="ignore"):  # long doubles beyond float64 are infinite
        values = np.ascontiguousarray(matrix.values, dtype=np.float64)
    has_known = known is not None and len(known) == values.shape[1]
    refuse_infinite(matrix._replace(values=values, names=matrix.names or (known if has_known else None)))
    return values, matrix.names


def warn_empty(values: FloatArray, names: list[str] | None) -> None:
    """Warn about rows and columns without entries; raise ValueError if the whole matrix has none."""
    missing = np.isnan(values)
    if missing.all():
        raise ValueError("M has no entries (all are missing); there is nothing to decompose")
    rows, cols = (np.flatnonzero(missing.all(axis=axis)) for axis in (1, 0))
    labels = [*(f"row {i}" for i in rows), *(column_label(int(j), names) for j in cols)]
    if labels:
        text = ", ".join(labels[:10]) + (f" and {len(labels) - 10} more" if len(labels) > 10 else "")
        warn(f"no entries in {text}: estimates there consist only of the offsets of normalize")


def _check_rank(rank: object, shape: tuple[int, int]) -> int:
    """Return `rank`; raise unless it is a whole number from 1 to the smaller dimension of `shape`."""
    checked = as_whole("rank", rank)
    if checked > min(shape):
        raise ValueError(f"rank is {checked}, but M has shape {shape}; use at most {min(shape)}")
    return checked


def _check_order(order: Any, rank: int, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Check `order`, and convert it to the array that `update_elements` takes, (k, 3).

    A row (0, i, s) of the array stands for U[i, s], and a row (1, j, s) for V[s, j].

    Parameters
    ----------
    order : sequence of ("U" or "V", row, column)
        The elements.
    rank : int
        Number of components.
    shape : (int, int)
        Shape of the matrix.
    """
    visits = []
    if not isinstance(order, Iterable):
        raise TypeError(f"order must be 'fixed', 'permuted' or a sequence of elements, got {shown(order)}")
    for element in to_list(order):
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
    """Return the pair `init` as starting factors U and V; raise if a shape is wrong or a value is missing."""
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise TypeError("init must be 'random', 'mean' or a pair (U, V) of arrays")
    factors = _read(init[0], "U")[0], _read(init[1], "V")[0]
    for factor, name, wanted in zip(factors, "UV", ((shape[0], rank), (rank, shape[1])), strict=True):
        if factor.shape != wanted or np.isnan(factor).any():
            raise ValueError(f"{name} in init must have shape {wanted} and no NaN, got shape {factor.shape}")
    return factors
