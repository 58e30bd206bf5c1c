"""Model sparse ratings by biases and a UV decomposition, fitted to the known ratings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.blocks import slices
from powerkern._engine.threads import thread_count
from powerkern._input.alignment import align_rows
from powerkern._input.arguments import as_generator, as_number
from powerkern._input.arrays import as_reals, is_integer
from powerkern._input.messages import shown
from powerkern._typing import FloatArray
from powerkern.completion.entries import Entries, check_weights, find_labels, read_ratings
from powerkern.completion.epochs import half_epoch, run_until_converged
from powerkern.completion.normalization import rms, unit_of
from powerkern.kernels.multivariate.completion import ObservedCells, least_squares_rows

#: Fraction of the ratings held out, and the largest number held out.
_HELD_OUT, _ENOUGH = 0.1, 100_000
#: Ranks tried. The search stops after _PATIENCE successive ranks that gain less than a standard error.
_RANKS, _PATIENCE = (1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64), 2
#: Relative decrease of the error below which the search for a ridge stops.
_GAIN = 1e-3
#: The first shrinkage, the factor between successive shrinkages, and the maximum number of steps.
_FIRST, _STEP, _MOST_STEPS = 0.5, math.sqrt(2.0), 20
_TOL, _FINAL_TOL = 2e-4, 1e-6
#: Number of entries whose factors are gathered at a time; the factors of all entries may not fit in memory.
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, repr=False, eq=False)
class RatingModel:
    r"""A model of ratings, ``mean + row_bias + column_bias + u v``, returned by `fit_ratings`.

    Attributes
    ----------
    rows, columns : (n,), (p,) ndarray
        Labels of the rows and of the columns that have ratings, in increasing order. For a sparse matrix they are the
        indices of all rows and columns, from 0, with or without ratings.
    mean : float
        Mean of all ratings.
    row_bias, column_bias : (n,), (p,) ndarray
        Amounts by which the ratings by a row, and the ratings of a column, exceed the mean.
    U, V : (n, rank), (rank, p) ndarray
        The factors.
    shrinkage : float
        The shrinkage that `fit_ratings` chose or was given; it determines `ridge`.
    ridge, bias_ridge : float
        Penalties on squared factors and on squared biases, in units of the weights.
    rmse : float
        Root mean square error on the fitted ratings.
    validation_rmse : float
        Root mean square error on the ratings that were held out while rank and shrinkage were chosen.
    """

    rows: NDArray[Any]
    columns: NDArray[Any]
    mean: float
    row_bias: FloatArray
    column_bias: FloatArray
    U: FloatArray
    V: FloatArray
    shrinkage: float
    ridge: float
    bias_ridge: float
    rmse: float
    validation_rmse: float
    _mean_weight: float

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.U.shape[1])

    def __repr__(self) -> str:
        return (
            f"RatingModel({self.rows.size} rows, {self.columns.size} columns, rank={self.rank}, "
            f"validation_rmse={self.validation_rmse:.6g})"
        )

    def predict(self, rows: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return the estimated ratings for pairs of a row label and a column label.

        The two arrays of labels broadcast against each other; series are aligned by their index. Bias and factors of a
        row or column without ratings are 0. If neither has ratings, the estimate is the mean. TypeError is raised for
        numbers if the labels are text, and for text if they are numbers.
        """
        columns = align_rows(columns, rows, "columns", "rows")
        (i, known), (j, known_too) = find_labels(self.rows, rows), find_labels(self.columns, columns)
        if not _do_broadcast(i, j):
            raise ValueError(
                f"rows has shape {i.shape} and columns {j.shape}; pass equally long arrays, or a single row or column"
            )
        products = np.einsum("...k,...k->...", self.U[i], self.V.T[j])
        bias = np.where(known, self.row_bias[i], 0.0) + np.where(known_too, self.column_bias[j], 0.0)
        return np.asarray(self.mean + bias + np.where(known & known_too, products, 0.0))

    def fold_in(self, columns: ArrayLike, values: ArrayLike, weight: ArrayLike | None = None) -> FoldedRow:
        """Estimate bias and factors of a new row from its ratings, by a ridge regression with V held fixed.

        Parameters
        ----------
        columns : (k,) array-like of labels
            The columns that the row has rated. Columns that are not in the model affect only the bias.
        values : (k,) array-like
            Ratings of these columns.
        weight : (k,) array-like, optional
            Weights of these ratings. The default is the mean weight in the fit, 1 if the fit had no weights.
        """
        values, weight = (
            align_rows(values, columns, "values", "columns"),
            align_rows(weight, columns, "weight", "columns"),
        )
        given, found = np.asarray(columns), as_reals("values", values)
        if given.ndim != 1 or given.shape != found.shape or not np.isfinite(found).all():
            raise ValueError("columns and values must be two arrays of one length, the values finite numbers")
        j, known = find_labels(self.columns, columns)
        root = np.sqrt(np.full(found.size, self._mean_weight) if weight is None else check_weights(weight, found.size))
        one = math.sqrt(self.ridge / self.bias_ridge)
        other = np.vstack([np.where(known, self.V[:, j], 0.0), np.full(j.size, one)]) * root
        rest = (found - self.mean - np.where(known, self.column_bias[j], 0.0)) * root
        unit = unit_of(rest)  # products with numbers near the largest or the smallest would not be representable
        gram = other @ other.T + self.ridge * np.eye(len(other))
        own = np.linalg.solve(gram, other @ (rest / unit)) * unit
        return FoldedRow(self, float(own[-1] * one), own[:-1])


@dataclass(frozen=True, repr=False, eq=False)
class FoldedRow:
    """A new row of a model, with estimated bias and factors; returned by `RatingModel.fold_in`.

    Attributes
    ----------
    model : RatingModel
        The model.
    bias : float
        Amount by which the ratings by the row exceed the mean.
    u : (rank,) ndarray
        Factors of the row.
    """

    model: RatingModel
    bias: float
    u: FloatArray

    def predict(self, columns: ArrayLike) -> FloatArray:
        """Return the estimated ratings by this row of the columns with these labels."""
        j, known = find_labels(self.model.columns, columns)
        by_column = self.model.column_bias[j] + np.einsum("k,...k->...", self.u, self.model.V.T[j])
        return np.asarray(self.model.mean + self.bias + np.where(known, by_column, 0.0))


def fit_ratings(
    ratings: Any,
    rank: int | str = "auto",
    *,
    shrinkage: float | None = None,
    weight: ArrayLike | None = None,
    rng: Any = None,
    n_threads: int | None = None,
) -> RatingModel:
    r"""Fit biases and a decomposition to a matrix with few known entries, without forming a dense matrix.

    The fit minimises, over the known entries,

    .. math:: \sum w_{rs} (m_{rs} - \mu - b_r - c_s - \sum_k u_{rk} v_{ks})^2
              + \text{ridge}\, (|U|^2 + |V|^2) + \text{bias ridge}\, (|b|^2 + |c|^2),

    where :math:`\mu` is the mean of these entries [1]_. It alternates least squares in the order of [2]_.

    Parameters
    ----------
    ratings : sparse matrix or array of scipy, or (row, column, value)
        A sparse matrix, all of whose stored entries are ratings, including zeros. Otherwise three arrays of equal
        length, or a data frame with three columns: row labels, column labels, and values. Labels may be of any type
        that can be sorted. A pair of labels may occur more than once; such ratings are not summed. NaN is missing.
    rank : "auto" or int, default "auto"
        Number of components, 0 for biases alone. "auto" chooses it by the error on held-out ratings.
    shrinkage : float > 0, optional
        The ridge in units of ``w s (sqrt(k) + sqrt(l))``. w is the mean weight, s the RMSE of biases alone, and k and l
        are the mean numbers of ratings of a row and of a column, without the held-out ratings. By default it is chosen
        by the error on held-out ratings.
    weight : array-like, optional
        Non-negative weights of the ratings, in the order of the ratings. Only their ratios affect the estimates.
    rng : int, numpy.random.Generator or None, optional
        Seed of the choice of held-out ratings and of the random starts.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results are bit-identical for any number.

    Returns
    -------
    RatingModel

    Raises
    ------
    TypeError, ValueError
        If ratings have another form, one is infinite, there are fewer than ten, a label is missing, or an option is out
        of range.

    Notes
    -----
    A tenth of the ratings (at most 100,000) is held out. The ridge of the biases is chosen first, then the ridge of the
    factors for one component, two components and so on. Each fit starts from the previous one. The search stops when
    two successive ranks lower the error by less than its standard error. Finally, all ratings are fitted. An epoch
    takes about ``rank**2 + 4 rank`` multiplications per rating.

    References
    ----------
    .. [1] Y. Koren, R. Bell, C. Volinsky, "Matrix factorization techniques for recommender systems", Computer 42 (8),
       2009, 30-37, eq. (5).
    .. [2] Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, "Large-scale parallel collaborative filtering for the Netflix
       prize", AAIM 2008, 337-348.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import fit_ratings
    >>> rng = np.random.default_rng(0)
    >>> users, films = rng.integers(0, 300, 9000), rng.integers(0, 80, 9000)
    >>> taste, kind = rng.normal(size=(300, 2)), rng.normal(size=(80, 2))
    >>> stars = 3 + 0.5 * kind[films, 0] + (taste[users] * kind[films]).sum(axis=1) + 0.3 * rng.normal(size=9000)
    >>> model = fit_ratings((users, films, stars), rng=0)
    >>> model.rank, round(model.validation_rmse, 1)
    (2, 0.3)
    >>> model.predict(7, [3, 14, 15]).round(1)
    array([2.3, 3.4, 3.4])
    >>> newcomer = model.fold_in([3, 14, 15], [5.0, 1.0, 2.0])
    >>> newcomer.predict([9, 26]).round(1)
    array([7. , 4.3])
    """
    given = read_ratings(ratings, weight)
    _check_options(rank, shrinkage, given)
    unit = unit_of(given.value)
    entries = given._replace(value=given.value / unit)
    generator, threads = as_generator(rng), thread_count(n_threads)
    held = np.zeros(given.value.size, dtype=bool)
    held[generator.permutation(held.size)[: min(int(_HELD_OUT * held.size), _ENOUGH)]] = True
    fold = _RatingsFold(_RatingsFit(entries.select(~held), threads), entries.select(held))
    best = fold.choose(rank, shrinkage, generator)
    whole = _RatingsFit(entries, threads)
    final = whole.refine(best, _FINAL_TOL)
    root = math.sqrt(unit)
    return RatingModel(
        rows=given.rows,
        columns=given.columns,
        mean=whole.mean * unit,
        row_bias=final.U[:, -1] * (final.one * unit),
        column_bias=final.Vt[:, -1] * (final.one * unit),
        U=final.U[:, :-1] * root,
        V=np.ascontiguousarray(final.Vt[:, :-1].T) * root,
        shrinkage=final.ridge / fold.fit.unit,
        ridge=final.ridge * given.mean_weight * unit,
        bias_ridge=final.bias_ridge * given.mean_weight,
        rmse=whole.error(final, entries) * unit,
        validation_rmse=best.error * unit,
        _mean_weight=given.mean_weight,
    )


def _check_options(rank: int | str, shrinkage: float | None, entries: Entries) -> None:
    """Raise if rank or shrinkage is invalid, or if there are too few ratings."""
    if not ((isinstance(rank, str) and rank == "auto") or (is_integer(rank) and int(rank) >= 0)):
        raise ValueError(f"rank must be 'auto' or a whole number of at least 0, got {shown(rank)}")
    if shrinkage is not None:
        as_number("shrinkage", shrinkage, "(0, inf)")
    largest = min(entries.rows.size, entries.columns.size)
    if rank != "auto" and int(rank) > largest:
        raise ValueError(
            f"rank is {shown(rank)}, but there are {entries.rows.size} rows and {entries.columns.size} columns; use at "
            f"most {largest}"
        )
    if int(_HELD_OUT * entries.value.size) < 1:
        raise ValueError(f"there are {entries.value.size} ratings; at least {math.ceil(1.0 / _HELD_OUT)} are needed")


# --- fits ---------------------------------------------------------------------------------------------


def _do_broadcast(*arrays: NDArray[Any]) -> bool:
    """Return whether arrays broadcast against each other."""
    try:
        np.broadcast_shapes(*(each.shape for each in arrays))
    except ValueError:
        return False
    return True


class _Model(NamedTuple):
    """Factors and biases of a model, with the ridges and the error of the fit.

    Attributes
    ----------
    U, Vt : (n, rank + 1), (p, rank + 1) ndarray
        The factors; the last column holds the biases, divided by `one`.
    ridge, bias_ridge : float
        Penalties on squared factors and on squared biases.
    error, standard_error : float
        RMSE on the held-out ratings and its standard error; NaN before they are computed.
    """

    U: FloatArray
    Vt: FloatArray
    ridge: float
    bias_ridge: float
    error: float = math.nan
    standard_error: float = math.nan

    @property
    def one(self) -> float:
        """Unit in which the factors store biases, chosen so that `ridge` penalizes factors and biases alike."""
        return math.sqrt(self.ridge / self.bias_ridge)

    def with_ridges(self, ridge: float, bias_ridge: float) -> _Model:
        """Return a copy with the same estimates, but with the ridges `ridge` and `bias_ridge`."""
        other = _Model(self.U.copy(), self.Vt.copy(), ridge, bias_ridge)
        for factor in other.U, other.Vt:
            factor[:, -1] *= self.one / other.one
        return other


class _SortedEntries(NamedTuple):
    """The k ratings, sorted by row (or by column).

    Attributes
    ----------
    start : (n + 1,) ndarray of int
        Position of the first rating of each row (column), followed by k.
    joined : (k,) ndarray of int
        Column (row) of each rating.
    order : (k,) ndarray of int
        Position of each rating before sorting.
    """

    start: NDArray[np.int64]
    joined: NDArray[np.int32]
    order: NDArray[np.intp]

    @classmethod
    def sort(cls, row: NDArray[np.intp], column: NDArray[np.intp], n: int) -> _SortedEntries:
        """Sort ratings by row. To sort them by column, exchange `row` and `column`.

        Parameters
        ----------
        row : (k,) ndarray of int
            Row of each rating.
        column : (k,) ndarray of int
            Column of each rating.
        n : int
            Number of rows.
        """
        order = np.argsort(row, kind="stable")
        start = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=n), out=start[1:])
        return cls(start, column[order].astype(np.int32), order)


class _RatingsFit:
    """One set of ratings, with the methods that fit models to it.

    Parameters
    ----------
    entries : Entries
        The ratings.
    n_threads : int
        Maximum number of threads.
    """

    def __init__(self, entries: Entries, n_threads: int) -> None:
        self.entries, self._n_threads = entries, n_threads
        n, p = entries.rows.size, entries.columns.size
        self._by_row = _SortedEntries.sort(entries.row, entries.column, n)
        self._by_column = _SortedEntries.sort(entries.column, entries.row, p)
        self.mean = float(np.average(entries.value, weights=entries.weight))
        self._rest = entries.value - self.mean
        self._breadth = math.sqrt(entries.value.size / n) + math.sqrt(entries.value.size / p)
        #: RMSE of biases alone.
        self.residual = rms(self._rest)
        self.largest_rank = min(n, p)

    @property
    def unit(self) -> float:
        """Ridge that corresponds to a shrinkage of 1."""
        return max(self.residual, np.finfo(float).tiny) * self._breadth

    def initial_model(self, ridge: float) -> _Model:
        """Return the initial model, which has no components and biases of 0."""
        n, p = self.entries.rows.size, self.entries.columns.size
        return _Model(np.zeros((n, 1)), np.zeros((p, 1)), ridge, ridge)

    def refine(self, model: _Model, tol: float = _TOL) -> _Model:
        """Run epochs until the relative change of the RMSE is at most `tol`; the model is modified in place."""

        def epoch() -> FloatArray:
            self._half_epoch(self._by_row, self.entries.column, model.Vt, model.U, model)
            return self._half_epoch(self._by_column, self.entries.row, model.U, model.Vt, model)

        run_until_converged(epoch, tol)
        return model

    def _half_epoch(
        self, side: _SortedEntries, joined: NDArray[np.intp], fixed: FloatArray, factor: FloatArray, model: _Model
    ) -> FloatArray:
        """Improve one factor and its biases in place, with the other factor and its biases held fixed.

        Parameters
        ----------
        side : _SortedEntries
            The ratings, sorted by the rows of `factor`.
        joined : (k,) ndarray of int
            The row of `fixed` to which each rating belongs, with the ratings in their order before sorting.
        fixed : (p, rank + 1) ndarray
            The factor held fixed, with its biases.
        factor : (n, rank + 1) ndarray
            The factor to improve, with its biases.
        model : _Model
            The model, which has the ridge and the unit of the biases.
        """
        value = (self._rest - fixed[joined, -1] * model.one)[side.order]
        across = fixed.copy()
        across[:, -1] = model.one
        cells = ObservedCells(side.start, side.joined, value)
        if self.entries.weight is not None:
            cells = cells._replace(root=np.sqrt(self.entries.weight[side.order]))
        return half_epoch(least_squares_rows, cells, across, factor, model.ridge, 1.0, self._n_threads)

    def squares(self, model: _Model, entries: Entries) -> FloatArray:
        """Return the squared error of the model for each rating in `entries`."""
        squares = np.empty(entries.value.size)
        for part in slices(slice(0, squares.size), _AT_A_TIME):
            u, v = model.U[entries.row[part]], model.Vt[entries.column[part]]
            estimates = np.einsum("ij,ij->i", u[:, :-1], v[:, :-1]) + (u[:, -1] + v[:, -1]) * model.one
            squares[part] = (entries.value[part] - self.mean - estimates) ** 2
        return squares

    def error(self, model: _Model, entries: Entries) -> float:
        """Return the (weighted) RMSE of the model on the ratings in `entries`."""
        return math.sqrt(float(np.average(self.squares(model, entries), weights=entries.weight)))


class _RatingsFold(NamedTuple):
    """A fit to most ratings, and the held-out ratings on which candidate models are evaluated."""

    fit: _RatingsFit
    held: Entries

    def choose(self, rank: int | str, shrinkage: float | None, generator: np.random.Generator) -> _Model:
        """Return the model with the smallest error on the held-out ratings.

        Parameters
        ----------
        rank : "auto" or int
            Number of components.
        shrinkage : float or None
            As in `fit_ratings`.
        generator : numpy.random.Generator
            Source of random components.
        """
        biases = self._evaluate(self.fit.initial_model(1.0))
        best = current = self._search_path(biases, lambda model, ridge: model.with_ridges(ridge, ridge), 1.0, 2.0)
        self.fit.residual = self.fit.error(best, self.fit.entries)
        s, failures = shrinkage or _FIRST, 0
        for r in _RANKS if rank == "auto" else (int(rank),):
            if failures == _PATIENCE or not 0 < r <= self.fit.largest_rank:
                break
            current = self._evaluate(self._add_components(current, r, s * self.fit.unit, generator))
            if shrinkage is None:
                current = self._search_path(
                    current, lambda model, s: model.with_ridges(s * self.fit.unit, model.bias_ridge), s, _STEP
                )
            s = current.ridge / self.fit.unit
            gained = rank != "auto" or current.error < best.error - best.standard_error
            best, failures = (current, 0) if gained else (best, failures + 1)
        return self._search_path(best, lambda model, own: model.with_ridges(model.ridge, own), best.bias_ridge, 2.0)

    def _search_path(
        self, start: _Model, changed: Callable[[_Model, float], _Model], setting: float, step: float
    ) -> _Model:
        """Decrease a setting, such as a ridge, while the error on held-out ratings falls; if it does not, increase it.

        Each fit starts from the previous one. The best model is returned.

        Parameters
        ----------
        start : _Model
            The model to start from, with its error.
        changed : callable
            ``changed(model, setting)`` returns a copy of the model with this setting.
        setting : float
            Setting of `start`.
        step : float
            Factor between successive settings, greater than 1.
        """
        best = start
        for factor in (1.0 / step, step):
            current, s = start, setting
            for _ in range(_MOST_STEPS):
                s *= factor
                current = self._evaluate(changed(current, s))
                if not current.error < best.error * (1.0 - _GAIN):
                    break
                best = current
            if best is not start:
                break
        return best

    def _evaluate(self, model: _Model) -> _Model:
        """Refine a model, and compute its error on the held-out ratings and the standard error of this error."""
        fitted = self.fit.refine(model)
        squares = self.fit.squares(fitted, self.held)
        share = np.full(squares.size, 1.0) if self.held.weight is None else self.held.weight
        share = share / share.sum()
        mean = float(share @ squares)
        error = math.sqrt(mean)
        standard_error = float(np.linalg.norm(share * (squares - mean))) / (2.0 * error) if error > 0.0 else 0.0
        return fitted._replace(error=error, standard_error=standard_error)

    def _add_components(self, model: _Model, rank: int, ridge: float, generator: np.random.Generator) -> _Model:
        """Return a copy of a model with random components added and another ridge.

        Parameters
        ----------
        model : _Model
            The model to extend.
        rank : int
            Number of components of the result.
        ridge : float
            Penalty on the squared factors of the result.
        generator : numpy.random.Generator
            Source of the components.
        """
        grown = model.with_ridges(ridge, model.bias_ridge)
        added = rank + 1 - model.U.shape[1]
        size = math.sqrt(self.fit.residual / math.sqrt(rank))
        U, Vt = (np.hstack([size * generator.standard_normal((len(f), added)), f]) for f in (grown.U, grown.Vt))
        return _Model(U, Vt, grown.ridge, grown.bias_ridge)
