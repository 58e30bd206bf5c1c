"""Choose a model, and the weights of its blend with neighbors, by the error on held-out entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.completion.gaussian import Gaussian, GaussianPath
from powerkern.completion.low_rank import LowRank, LowRankPath
from powerkern.completion.neighbors import Donors

#: Fraction of the entries to hold out in each fold, number to hold out in all folds, and maximum number of folds.
_HELD_OUT, _ENOUGH, _MAX_FOLDS = 0.1, 450, 5
#: Relative decrease of the error below which a search along a path stops.
_GAIN = 0.002
#: Maximum number of entries to hold out in a fold.
_MOST = 50_000
#: Maximum number of steps along a path, number of successive ranks without gain that end the search, and ranks tried.
_MAX_STEPS, _PATIENCE = 14, 2
_RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100)
#: Approximate number of epochs in the search for the shrinkage of a rank.
_FITS = 40
#: Relative change of the error at which the last fit of a decomposition stops.
_FINAL_TOL = 1e-5
#: Maximum number of rows searched for neighbors, and of rows on which weights are chosen.
_DONORS, _JUDGED = 8192, 2048


#: Models that complete rows.
Model = Gaussian | LowRank


@dataclass(frozen=True)
class Completion:
    """A blend of three estimates of missing entries.

    Attributes
    ----------
    model : Model
        The model of rows.
    donors : Donors or None
        The rows among which neighbors are searched; None if neighbors have no weight.
    weights : (3,) ndarray
        Weights of the estimate of the model, of the mean of the neighbors, and of the estimate of the model plus its
        mean error at the neighbors.
    n_neighbors : int
        Number of neighbors to average.
    validation_rmse : float
        RMSE on the held-out entries; NaN if there were none.
    """

    model: Model
    donors: Donors | None
    weights: FloatArray
    n_neighbors: int
    validation_rmse: float

    def complete_rows(self, values: FloatArray, n_threads: int) -> FloatArray:
        """Replace NaN in rows, (n, p), by estimates."""
        rows, _ = self.model.complete_rows(values, n_threads)
        if self.donors is not None:
            near = self.donors.estimate_gaps(values, rows, np.isnan(values), self.n_neighbors, n_threads)
            rows = self.weights[0] * rows + self.weights[1] * near[0] + self.weights[2] * near[1]
        return np.where(np.isnan(values), rows, values)


class _Fold(NamedTuple):
    """A matrix, `values`, without its held-out entries, and the row, column and value (`truth`) of these entries."""

    values: FloatArray
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    truth: FloatArray


class _Chosen(NamedTuple):
    """The best setting of a search, with the squared error on held-out entries and the fit to each fold."""

    error: float
    setting: float
    fitted: Sequence[Any]

    @property
    def models(self) -> list[Model]:
        return [one.model for one in self.fitted]


_NOTHING = _Chosen(math.inf, math.nan, [])


def choose(
    values: FloatArray, n_neighbors: int, budget: float, generator: np.random.Generator, n_threads: int
) -> Completion:
    """Choose the completion of a normalized matrix by the error on held-out entries.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix; NaN is missing, and at least one entry is observed.
    n_neighbors : int
        Number of neighbors to average; 0 for none.
    budget : float
        Largest number of multiplications for the choice of a model. If all rows would need more, the model is chosen on
        a random sample of rows.
    generator : numpy.random.Generator
        Source of folds, samples and starts.
    n_threads : int
        Maximum number of threads.
    """
    if rows := _rows_for_gaussian(values, budget):
        values_fitted = values[_sample_rows(len(values), rows, generator)]
        folds = list(_make_folds(values_fitted, generator))
        model, models = _choose_gaussian(values_fitted, folds, n_threads)
    else:
        folds = list(_make_folds(values, generator))
        model, models = _choose_low_rank(values, folds, budget, generator, n_threads)
    if not folds:
        return Completion(model, None, np.array([1.0, 0.0, 0.0]), n_neighbors, math.nan)
    weights, rmse = _choose_weights(folds, models, n_neighbors, generator, n_threads)
    if weights[0] == 1.0:
        return Completion(model, None, weights, n_neighbors, rmse)
    rows = values[_sample_rows(len(values), _DONORS, generator)]
    donors = Donors.from_rows(rows, *model.complete_rows(rows, n_threads))
    return Completion(model, donors, weights, n_neighbors, rmse)


# --- models ---------------------------------------------------------------------------------------------


def _rows_for_gaussian(values: FloatArray, budget: float) -> int:
    """Return the largest number of rows for which fitting a normal distribution takes at most `budget` multiplications.

    Return 0 if this number of rows has too few observed entries for the parameters of the distribution.
    """
    n, p = values.shape
    rows = min(n, int(n * budget / GaussianPath.count_multiplications(values)))
    entries = np.count_nonzero(~np.isnan(values)) * (rows / n)
    return rows if entries >= p * (p + 1) / 2 else 0


def _choose_gaussian(values: FloatArray, folds: list[_Fold], n_threads: int) -> tuple[Model, Sequence[Model]]:
    """Choose the shrinkage of a normal distribution; return its fit to all entries and its fits to the folds."""
    path = GaussianPath(values, n_threads)
    if not folds:
        return path.refine(None, path.first).model, []
    paths = [GaussianPath(fold.values, n_threads) for fold in folds]
    found = _search_both_ways(paths, [None] * len(folds), path.first, path.step, folds)
    start = path.start_from(found.fitted[0].model)
    return path.refine(start, found.setting).model, found.models


def _choose_low_rank(
    values: FloatArray, folds: list[_Fold], budget: float, generator: np.random.Generator, n_threads: int
) -> tuple[Model, Sequence[Model]]:
    """Choose rank and shrinkage of a decomposition; return its fit to all entries and its fits to the folds.

    Parameters
    ----------
    values : (n, p) ndarray
        The matrix; NaN is missing.
    folds : list of _Fold
        The matrix with different entries held out.
    budget : float
        Largest number of multiplications.
    generator : numpy.random.Generator
        Source of random components.
    n_threads : int
        Maximum number of threads.
    """
    path = LowRankPath(values, n_threads, _FINAL_TOL)
    if not folds:
        return path.refine(path.add_components(None, 1, generator), path.first).model, []
    paths = [LowRankPath(fold.values, n_threads) for fold in folds]
    best, latest, failures, spent = _NOTHING, _NOTHING, 0, 0.0
    for rank in (rank for rank in _RANKS if rank <= min(values.shape)):
        spent += _FITS * len(folds) * path.count_multiplications(rank)
        if failures == _PATIENCE or (rank > 1 and spent > budget):
            break
        starts = latest.fitted or [None] * len(folds)
        grown = [one.add_components(start, rank, generator) for one, start in zip(paths, starts, strict=True)]
        first = latest.setting * path.step if latest.fitted else path.first
        latest = _search_both_ways(paths, grown, first, path.step, folds)
        failures = 0 if latest.error < (1.0 - _GAIN) * best.error else failures + 1
        best = min(best, latest, key=lambda found: found.error)
    return path.refine(best.fitted[0], best.setting).model, best.models


def _search_both_ways(
    paths: Sequence[Any], starts: Sequence[Any], first: float, step: float, folds: list[_Fold]
) -> _Chosen:
    """Search for the best shrinkage by decreasing it from `first` or, if no smaller one is better, by increasing it.

    Parameters
    ----------
    paths : sequence of GaussianPath or LowRankPath
        Path of each fold.
    starts : sequence
        Fit of each fold to start from.
    first : float
        Shrinkage to start from.
    step : float
        Factor between successive shrinkages, greater than 1.
    folds : list of _Fold
        Held-out entries.
    """
    down = _search_along(paths, starts, (first * step**-k for k in range(_MAX_STEPS)), folds)
    if down.setting < first:
        return down
    up = _search_along(paths, down.fitted, (first * step**k for k in range(1, _MAX_STEPS)), folds)
    return min(down, up, key=lambda found: found.error)


def _search_along(
    paths: Sequence[Any], starts: Sequence[Any], settings: Iterable[float], folds: list[_Fold]
) -> _Chosen:
    """Try shrinkages in turn while the error on held-out entries falls; return the best one with its fits.

    Each fit starts from the previous one.

    Parameters
    ----------
    paths : sequence of GaussianPath or LowRankPath
        Path of each fold.
    starts : sequence
        Fit of each fold to start from.
    settings : iterable of float
        Shrinkages in the order in which to try them.
    folds : list of _Fold
        Held-out entries.
    """
    best, fitted = _NOTHING, starts
    for setting in settings:
        fitted = [path.refine(start, setting) for path, start in zip(paths, fitted, strict=True)]
        rest = (one.estimates_at(fold.row, fold.column) - fold.truth for one, fold in zip(fitted, folds, strict=True))
        error = sum(float(np.sum(each**2)) for each in rest)
        gained = error < (1.0 - _GAIN) * best.error
        best = min(best, _Chosen(error, setting, fitted), key=lambda found: found.error)
        if not gained:
            break
    return best


# --- held-out entries -----------------------------------------------------------------------------------


def _make_folds(values: FloatArray, generator: np.random.Generator) -> Iterator[_Fold]:
    """Yield folds with random, disjoint sets of held-out entries: more folds for smaller matrices.

    There is no fold if the matrix has a single entry.
    """
    row, column = np.nonzero(~np.isnan(values))
    held = min(max(1, int(_HELD_OUT * row.size)), _MOST)
    times = min(-(-_ENOUGH // held), _MAX_FOLDS, row.size - 1)
    chosen = generator.choice(row.size, times * held, replace=False)
    for cells in np.sort(chosen.reshape(times, held), axis=1):
        kept = values.copy()
        kept[row[cells], column[cells]] = np.nan
        yield _Fold(kept, row[cells], column[cells], values[row[cells], column[cells]])


def _sample_rows(n: int, size: int, generator: np.random.Generator) -> Any:
    """Return a sorted random sample of `size` of `n` row indices, or a slice of all rows if `n` is at most `size`."""
    return slice(None) if size >= n else np.sort(generator.choice(n, size, replace=False))


# --- neighbors -----------------------------------------------------------------------------------------


def _choose_weights(
    folds: list[_Fold], models: Sequence[Model], n_neighbors: int, generator: np.random.Generator, n_threads: int
) -> tuple[FloatArray, float]:
    """Choose the weights of the three estimates of a `Completion`; return the weights and the RMSE of the blend.

    Parameters
    ----------
    folds : list of _Fold
        Held-out entries.
    models : sequence of Model
        The model fitted to each fold.
    n_neighbors : int
        Number of neighbors to average; 0 for none.
    generator : numpy.random.Generator
        Source of samples of rows.
    n_threads : int
        Maximum number of threads.
    """
    estimates, truth = [], []
    for fold, model in zip(folds, models, strict=True):
        used = np.arange(len(fold.values))[_sample_rows(len(fold.values), _DONORS, generator)]
        judged = np.intersect1d(used[:_JUDGED], fold.row)
        values = fold.values[used]
        rows, residuals = model.complete_rows(values, n_threads)
        inside = np.isin(fold.row, judged)
        place = np.searchsorted(judged, fold.row[inside]), fold.column[inside]
        truth.append(fold.truth[inside])
        some = np.searchsorted(used, judged)
        estimates.append(rows[some][place][:, None])
        if n_neighbors:
            wanted = np.zeros((judged.size, values.shape[1]), dtype=bool)
            wanted[place] = True
            donors = Donors.from_rows(values, rows, residuals)
            near = donors.estimate_gaps(values[some], rows[some], wanted, n_neighbors, n_threads)
            estimates[-1] = np.column_stack([estimates[-1], *(estimate[place] for estimate in near)])
    weights = simplex_weights(np.vstack(estimates), np.concatenate(truth))
    rest = np.vstack(estimates) @ weights - np.concatenate(truth)
    return np.append(weights, np.zeros(3 - weights.size)), math.sqrt(float(np.mean(rest * rest)))


def simplex_weights(estimates: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the weights of m estimates that minimize the squared error; they are non-negative and sum to 1.

    The minimum lies inside a face of the simplex, where the gradient along the face vanishes. All faces are tried. If
    several faces are equally good, the first is used.

    Parameters
    ----------
    estimates : (n, m) ndarray
        The estimates, one per column.
    truth : (n,) ndarray
        The true values.
    """
    errors = estimates - truth[:, None]
    products = errors.T @ errors
    best = np.eye(len(products))[np.argmin(products.diagonal())]
    for size in range(2, len(products) + 1):
        for face in map(list, itertools.combinations(range(len(products)), size)):
            inside, *_ = np.linalg.lstsq(products[np.ix_(face, face)], np.ones(size), rcond=None)
            if inside.min() < 0.0 or not inside.sum() > 0.0:
                continue
            weights = np.zeros(len(products))
            weights[face] = inside / inside.sum()
            if weights @ products @ weights < (1.0 - _GAIN) * (best @ products @ best):
                best = weights
    return np.asarray(best)
