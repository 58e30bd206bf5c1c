"""Searches along paths of settings, held-out entries and estimates of work, compared with plain versions."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from powerkern.completion import descent, low_rank, ratings, selection
from powerkern.completion.epochs import run_until_converged
from powerkern.completion.gaussian import Gaussian as Normal
from powerkern.completion.gaussian import GaussianPath, _over_relax
from powerkern.completion.low_rank import LowRankPath
from powerkern.completion.neighbors import Donors
from powerkern.completion.rank import rank_profile


class Path:
    """A stand-in for a path of fits, whose held-out mean squared error at a setting is `error(setting)`.

    `log` holds, for each fit, its starting point and its setting.
    """

    step, first = 2.0, 1.0

    def __init__(self, error) -> None:
        self.error = error
        self.log: list[tuple[str, float]] = []

    def refine(self, start, setting):
        self.log.append((start, setting))
        label = f"{start}>{setting:g}"
        return SimpleNamespace(
            estimates_at=lambda row, column: np.full(1, math.sqrt(self.error(setting))), model=label, __str__=None,
            label=label,
        )  # fmt: skip


class Labelled(Path):
    def refine(self, start, setting):
        fitted = super().refine(getattr(start, "label", start), setting)
        return fitted


FOLD = selection._Fold(np.zeros((1, 1)), np.array([0]), np.array([0]), np.zeros(1))


def search(error, first=1.0):
    path = Labelled(error)
    found = selection._search_both_ways([path], ["s"], first, 2.0, [FOLD])
    return found, [setting for _, setting in path.log], path.log


def test_settings_decrease_while_the_error_falls():
    found, tried, log = search(lambda s: (math.log2(s) + 3.2) ** 2 + 1.0)
    assert tried == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert found.setting == 0.125
    assert found.error == pytest.approx(1.04)
    assert log[2] == ("s>1>0.5", 0.25)  # each from the previous fit
    assert found.models == [found.fitted[0].label]


def test_settings_increase_if_no_smaller_one_is_better():
    found, tried, log = search(lambda s: (math.log2(s) - 1.9) ** 2 + 1.0)
    assert tried == [1.0, 0.5, 2.0, 4.0, 8.0]
    assert found.setting == 4.0
    assert log[2][0] == "s>1"  # from the best one
    found, tried, _ = search(lambda s: (math.log2(s) + 0.1) ** 2 + 1.0)
    assert (found.setting, tried) == (1.0, [1.0, 0.5, 2.0, 4.0])


def test_gains_below_a_500th_end_the_search_but_count():
    found, tried, _ = search(lambda s: 1.0 + 0.0019 * math.log2(s) if s < 1.0 else 1.0)
    assert (found.setting, tried) == (0.5, [1.0, 0.5])
    found, tried, _ = search(lambda s: 1.0 + 0.0021 * math.log2(s) if s < 1.0 else 1.0)
    assert tried[:3] == [1.0, 0.5, 0.25]


def test_at_most_14_settings_are_tried():
    _, tried, _ = search(lambda s: s)
    assert tried == [2.0**-k for k in range(14)]
    _, tried, _ = search(lambda s: 1.0 / s)
    assert tried == [1.0, 0.5, *(2.0**k for k in range(1, 14))]


def test_errors_of_folds_are_added():
    paths = [Labelled(lambda s: s), Labelled(lambda s: 3.0 / s)]
    found = selection._search_both_ways(paths, ["a", "b"], 1.0, 2.0, [FOLD, FOLD])
    assert (found.setting, found.error) == (2.0, pytest.approx(3.5))


# --- ranks -------------------------------------------------------------------------------------------


class RankedPath(Path):
    """A path of low-rank models whose best error depends on the rank; the best setting is 1 for every rank."""

    by_rank: dict[int, float]
    made: list

    def __init__(self, values, n_threads, tol=None) -> None:
        self.values = values

    def count_multiplications(self, rank):
        return float(rank)

    def add_components(self, start, rank, generator):
        self.made.append((getattr(start, "label", start), rank))
        return f"{getattr(start, 'label', start)}+{rank}"

    def refine(self, start, setting):
        start = getattr(start, "label", start)
        rank = int(start.split("+")[-1].split(">")[0])
        error = self.by_rank.get(rank, 9.0) + 0.1 * math.log2(setting) ** 2
        label = f"{start}>{setting:g}"
        return SimpleNamespace(
            estimates_at=lambda row, column: np.full(1, math.sqrt(error)), model=label, label=label
        )  # fmt: skip


@pytest.mark.parametrize(
    ("errors", "budget", "ranks", "best"),
    [
        ({1: 4.0, 2: 3.0, 3: 2.0}, 1e9, [1, 2, 3, 4, 5], 3),
        ({1: 4.0, 2: 3.995, 3: 3.99}, 1e9, [1, 2, 3], 3),  # gains below a 500th count as failures
        ({1: 4.0, 2: 5.0, 3: 3.0, 4: 5.0}, 1e9, [1, 2, 3, 4, 5], 3),
        ({k: 10.0 - k for k in range(1, 9)}, 1e9, [1, 2, 3, 4, 5, 6], 6),  # no rank is above 7 columns
        ({1: 4.0, 2: 3.0, 3: 2.0}, 40.0 * 3.0 + 0.5, [1, 2], 2),
        ({1: 4.0, 2: 3.0, 3: 2.0}, 0.0, [1], 1),
    ],
)
def test_ranks_grow_until_two_gain_nothing_or_the_budget_is_spent(errors, budget, ranks, best, monkeypatch):
    monkeypatch.setattr(selection, "LowRankPath", RankedPath)
    monkeypatch.setattr(RankedPath, "by_rank", errors, raising=False)
    monkeypatch.setattr(RankedPath, "made", [], raising=False)
    model, models = selection._choose_low_rank(np.zeros((20, 7)), [FOLD], budget, np.random.default_rng(0), 1)
    assert [rank for _, rank in RankedPath.made] == ranks
    assert models[0].split("+")[-1].startswith(f"{best}>")
    assert model.startswith(models[0])  # all entries are fitted from the best fold
    assert model.endswith(">1")


# --- held-out entries --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "held", "times"), [((30, 20), 54, 5), ((100, 50), 450, 1), ((60, 50), 270, 2), ((2, 2), 1, 2)]
)
def test_folds_hold_out_disjoint_tenths_of_the_observed_entries(shape, held, times):
    values = np.arange(float(np.prod(shape))).reshape(shape)
    values[np.random.default_rng(0).random(shape) < 0.1] = np.nan
    values.flat[: values.size // 10 - np.isnan(values).sum()] = np.nan
    values = np.where(
        np.arange(values.size).reshape(shape) % 10 == 3, np.nan, np.arange(float(values.size)).reshape(shape)
    )
    folds = list(selection._make_folds(values, np.random.default_rng(1)))
    n = np.count_nonzero(~np.isnan(values))
    assert len(folds) == times
    seen: set = set()
    for fold in folds:
        assert fold.truth.size == held == max(1, int(0.1 * n))
        assert fold.truth.tolist() == values[fold.row, fold.column].tolist()
        kept = values.copy()
        kept[fold.row, fold.column] = np.nan
        np.testing.assert_array_equal(fold.values, kept)
        assert seen.isdisjoint(fold.truth.tolist())
        seen.update(fold.truth.tolist())
    assert not list(selection._make_folds(np.array([[1.0, np.nan]]), np.random.default_rng(1)))


def test_samples_of_rows_are_sorted_and_distinct():
    rows = selection._sample_rows(50, 20, np.random.default_rng(0))
    assert rows.size == np.unique(rows).size == 20
    assert (np.diff(rows) > 0).all()
    assert selection._sample_rows(20, 20, np.random.default_rng(0)) == slice(None)
    assert selection._sample_rows(21, 20, np.random.default_rng(0)).size == 20


def test_the_rows_for_a_normal_distribution_follow_from_budget_and_entries():
    values = np.random.default_rng(0).normal(size=(40, 4))
    values[::4, 1] = np.nan
    work = GaussianPath.count_multiplications(values)
    assert selection._rows_for_gaussian(values, work) == 40
    assert selection._rows_for_gaussian(values, 99.0 * work) == 40
    assert selection._rows_for_gaussian(values, 0.51 * work) == 20
    assert selection._rows_for_gaussian(values, 0.01 * work) == 0
    few = np.full((10, 4), np.nan)
    few.flat[:10] = 1.0  # as many entries as a covariance has
    assert selection._rows_for_gaussian(few, 1e12) == 10
    few.flat[9] = np.nan
    assert selection._rows_for_gaussian(few, 1e12) == 0


def test_estimates_of_work_count_the_entries():
    values = np.random.default_rng(0).normal(size=(40, 6))
    values[:20, :2] = np.nan  # one missing value per row on average
    work = (1.0**3 + 2 * 6 * 1.0 + 6) * 40 + 40 * 36 / 8 + 216
    ratio = GaussianPath.count_multiplications(values) / work
    assert ratio == pytest.approx(GaussianPath.count_multiplications(np.ones((10, 1))) / (10.0 + 10 / 8 + 1.0))
    assert LowRankPath(values, 1).count_multiplications(3) == 200.0 * 3 * 7 + 46 * 27 / 3


# --- biases of rows ----------------------------------------------------------------------------------


def test_means_of_rows_are_shrunk_by_the_caution():
    values = np.array([[1.0, 3.0, np.nan], [4.0, np.nan, np.nan], [np.nan] * 3])
    assert low_rank.shrunken_means(values, 2.0).tolist() == [4.0 / 4.0, 4.0 / 3.0, 0.0]
    assert low_rank.shrunken_means(values, 0.0).tolist() == [2.0, 4.0, 0.0]
    assert low_rank.shrunken_means(values, math.inf).tolist() == [0.0, 0.0, 0.0]


def test_the_caution_is_the_ratio_of_variances_within_and_between_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(8, 1)) * 2.0 + rng.normal(size=(8, 5))
    values[0, :3], values[1], values[2, 1:] = np.nan, np.nan, np.nan
    rows = [row[~np.isnan(row)] for row in values]
    rows = [row for row in rows if row.size]
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / sum(row.size - 1 for row in rows)
    n = sum(row.size for row in rows)
    between = sum(row.size * row.mean() ** 2 for row in rows) - len(rows) * within
    assert low_rank._caution(values) == pytest.approx(within * n / between)
    assert low_rank._caution(values - _means(values)) == math.inf


def _means(values):
    seen = ~np.isnan(values)
    return (np.nansum(values, axis=1) / np.maximum(seen.sum(axis=1), 1))[:, None]


# --- steps -------------------------------------------------------------------------------------------


def test_steps_are_extrapolated_without_the_change_of_shrinkage():
    before = Normal(np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 3.0]]), 0.5)
    after = Normal(np.array([1.5, 1.0]), np.array([[2.2, 0.7], [0.7, 2.8]]), 0.1)
    found = _over_relax(before, after, 0.6)
    assert found.mean.tolist() == pytest.approx([1.5 + 0.6 * 0.5, 1.0 - 0.6])
    expected = np.array([[2.2 + 0.6 * (0.2 + 0.4), 0.7 + 0.6 * 0.2], [0.82, 2.8 + 0.6 * (-0.2 + 0.4)]])
    np.testing.assert_allclose(found.covariance, expected)
    assert found.shrinkage == 0.1
    almost = Normal(np.zeros(1), np.array([[1.0]]), 0.4)
    # the extrapolated variance is 0.1, less than half of the shrinkage; 0.3 is more
    assert _over_relax(Normal(np.zeros(1), np.array([[1.9]]), 0.4), almost, 1.0) is almost
    assert _over_relax(Normal(np.zeros(1), np.array([[1.7]]), 0.4), almost, 1.0).covariance[0, 0] == pytest.approx(0.3)


@pytest.mark.parametrize(("tol", "n"), [(0.34, 2), (0.32, 3), (0.21, 3), (0.19, 4)])
def test_epochs_end_when_the_relative_change_is_small(tol, n):
    """The errors 2, 1.5, 1.25, 1.125, ... decrease by 1/3, 1/5, 1/9, ... of the new error."""
    errors = itertools.count(1)
    calls = []

    def epoch():
        calls.append(1.0 + 2.0 ** (1 - next(errors)))
        return np.array([0.25, 0.75]) * calls[-1] ** 2

    run_until_converged(epoch, tol)
    assert calls == [2.0, 1.5, 1.25, 1.125][:n]


@pytest.mark.parametrize(
    ("history", "moves", "tol", "expected"),
    [
        ([1.0], [], 0.5, False),
        ([2.0, 1.0], [], 0.5, True),
        ([2.0, 1.0], [], 0.49, False),
        ([1.0, 2.0], [], 1.0, True),
        ([1.0, 1.0], [], 0.0, False),
        ([1.0, 1e-20], [], 0.0, True),
        ([1.0], [[0.1, 0.2], [0.3]], 0.3, True),
        ([1.0], [[0.1, 0.2], [0.3]], 0.29, False),
        ([1.0], [[0.4, 0.2], [0.3]], 0.35, False),
        ([1.0], [[0.0], [0.0]], 0.0, False),
    ],
)
def test_the_criterion_of_convergence(history, moves, tol, expected):
    assert descent._has_converged(history, [np.array(move) for move in moves], tol, 10.0) == expected


def test_the_descent_keeps_the_epoch_with_the_least_validation_error():
    settings = descent.Settings(1, None, None, None, 1.0, 0.0, "rmse", 1e-9, 9, 3, 1)
    held = descent.Held(np.array([0]), np.array([0]), np.array([5.0]))
    values = iter([9.0, 6.0, 5.5, 7.0, 8.0, 9.5, 5.0])

    def epoch(U, Vt):
        U[0, 0] = next(values)
        return 1.0 / U[0, 0]

    found = descent.descend(np.zeros((1, 1)), np.ones((1, 1)), epoch, held, settings, 1.0)
    assert found.U.tolist() == [[5.5]]
    assert found.validation_history == [4.0, 1.0, 0.5, 2.0, 3.0, 4.5]
    assert (found.epoch, found.converged, found.score) == (3, False, 0.5)
    nothing = descent.Held(np.empty(0, int), np.empty(0, int), np.empty(0))
    values = iter([4.0, 4.0])
    found = descent.descend(np.zeros((1, 1)), np.ones((1, 1)), epoch, nothing, settings, 1.0)
    assert (found.epoch, found.converged, found.score, found.U.tolist()) == (2, True, 0.25, [[4.0]])
    values = iter([math.inf])
    with pytest.raises(ValueError, match="the factors overflow; pass smaller factors as init"):
        descent.descend(
            np.zeros((1, 1)), np.ones((1, 1)), lambda U, Vt: math.inf, nothing, settings._replace(max_epochs=1), 1.0
        )


def test_starts_of_the_descent():
    values = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 6.0]])
    entries = values[~np.isnan(values)]
    settings = descent.Settings(3, None, "random", None, 1.0, 0.0, "rmse", 0.0, 9, 3, 1)
    U, Vt = descent.initial_factors(values, entries, settings, 2.0, np.random.default_rng(0))
    size = math.sqrt(math.sqrt(np.mean(entries**2)) / math.sqrt(3))
    expected = np.random.default_rng(0)
    np.testing.assert_allclose(U, size * expected.standard_normal((2, 3)))
    np.testing.assert_allclose(Vt, size * expected.standard_normal((3, 3)))
    U, Vt = descent.initial_factors(-values, -entries, settings._replace(init="mean"), 2.0, np.random.default_rng(0))
    np.testing.assert_allclose(U @ Vt.T, np.full((2, 3), -3.0))
    np.testing.assert_allclose(U, 1.0)
    given = (np.arange(6.0).reshape(2, 3), np.arange(9.0).reshape(3, 3))
    U, Vt = descent.initial_factors(values, entries, settings._replace(init=given), 2.0, np.random.default_rng(0))
    np.testing.assert_array_equal(U, given[0] / 2.0)
    np.testing.assert_array_equal(Vt, given[1].T / 2.0)
    for nothing in (np.array([1.0, -1.0]), np.zeros(2)):
        with pytest.raises(ValueError, match="init='mean' starts at 0 and stays there"):
            descent.initial_factors(values, nothing, settings._replace(init="mean"), 1.0, None)


# --- neighbors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_neighbors", "missing", "expected"), [(3, 0, 6), (3, 5, 8), (200, 0, 256), (128, 0, 256), (127, 0, 254)]
)
def test_candidates_have_twice_as_many_values_as_neighbors(n_neighbors, missing, expected):
    values = np.zeros((5, 4))
    values.flat[:missing] = np.nan
    assert Donors.from_rows(values, values, values)._count_candidates(n_neighbors) == expected


def test_gaps_are_filled_by_means_and_mean_residuals_of_the_nearest_donors():
    rng = np.random.default_rng(0)
    completed = rng.normal(size=(70, 3))
    values = np.where(rng.random((70, 3)) < 0.3, np.nan, completed)
    residuals = np.where(np.isnan(values), np.nan, rng.normal(size=(70, 3)))
    donors = Donors.from_rows(values, completed, residuals)
    wanted = np.isnan(values)
    means, corrected = donors.estimate_gaps(values, completed, wanted, 4, 1)
    for i, j in np.argwhere(wanted):
        distance = ((completed - completed[i]) ** 2).sum(axis=1)
        distance[i] = np.inf
        near = [k for k in np.argsort(distance) if not np.isnan(values[k, j])][:4]
        seen = ~np.isnan(values[i])
        if not seen.any():
            continue
        if np.isclose(means[i, j], values[near, j].mean()):
            np.testing.assert_allclose(corrected[i, j], completed[i, j] + residuals[near, j].mean())
    np.testing.assert_array_equal(means[~wanted], completed[~wanted])
    np.testing.assert_array_equal(corrected[~wanted], completed[~wanted])


# --- profiles of ranks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("errors", "best", "elbow"),
    [
        ([5.0, 3.0, 2.5, 2.4, 2.6], 4, 2),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 5, 5),  # a straight line has no bend
        ([1.0, 2.0, 3.0], 1, 1),
        ([9.0, 5.0, 1.0, 1.0], 3, 3),
        ([5.0, 4.5, 1.0, 0.9], 4, 3),
    ],
)
def test_the_elbow_is_farthest_below_the_chord_to_the_best_rank(errors, best, elbow, monkeypatch):
    from powerkern.completion import rank as module

    monkeypatch.setattr(
        module, "uv_decompose", lambda M, r, *a, **o: SimpleNamespace(validation_rmse=errors[r - 1], rmse=1.0 / r)
    )
    profile = rank_profile(np.ones((20, 30)), range(1, len(errors) + 1))
    assert (profile.best, profile.elbow) == (best, elbow)
    assert profile.validation_rmse.tolist() == errors
    assert profile.rmse.tolist() == [1.0 / r for r in profile.ranks]


def test_ranks_up_to_ten_or_the_smaller_side_are_tried(monkeypatch):
    from powerkern.completion import rank as module

    monkeypatch.setattr(module, "uv_decompose", lambda M, r, *a, **o: SimpleNamespace(validation_rmse=1.0, rmse=1.0))
    assert rank_profile(np.ones((20, 30))).ranks.tolist() == list(range(1, 11))
    assert rank_profile(np.ones((20, 4))).ranks.tolist() == [1, 2, 3, 4]
    for fraction in (0, 0.0):
        with pytest.raises(ValueError, match="validation_fraction must be positive"):
            rank_profile(np.ones((20, 4)), validation_fraction=fraction)


# --- ratings -----------------------------------------------------------------------------------------


def fold_of(error_of, monkeypatch, largest_rank: int = 100, standard_error: float = 0.0):
    """Return a fold of rating models with a prescribed validation error, and the list of the models tried.

    Parameters
    ----------
    error_of : callable
        ``error_of(rank, ridge, bias_ridge)`` is the validation error of a model.
    monkeypatch : pytest.MonkeyPatch
        Replaces the evaluation of models.
    largest_rank : int
        Largest rank that the fold allows.
    standard_error : float
        Standard error of every validation error.

    Returns
    -------
    fold : _RatingsFold
        The fold.
    tried : list of tuple
        ``(rank, ridge, bias_ridge)`` of each model evaluated so far.
    """
    tried: list = []
    fit = SimpleNamespace(largest_rank=largest_rank, residual=0.0, unit=1.0, entries=None)
    fit.initial_model = lambda ridge: ratings._Model(np.zeros((1, 1)), np.zeros((1, 1)), ridge, ridge)
    fit.error = lambda model, entries: 1.0
    fold = ratings._RatingsFold(fit, None)

    def evaluate(self, model):
        rank = model.U.shape[1] - 1
        tried.append((rank, model.ridge, model.bias_ridge))
        return model._replace(error=error_of(*tried[-1]), standard_error=standard_error)

    monkeypatch.setattr(ratings._RatingsFold, "_evaluate", evaluate)
    return fold, tried


def test_ridges_of_ratings_are_searched_down_then_up(monkeypatch):
    fold, tried = fold_of(lambda rank, ridge, bias: (math.log2(bias) + 2.2) ** 2 + 1.0, monkeypatch)
    found = fold.choose(0, None, np.random.default_rng(0))
    assert [bias for _, _, bias in tried[:4]] == [1.0, 0.5, 0.25, 0.125]
    assert (found.bias_ridge, found.ridge) == (0.25, 0.25)
    assert found.error == pytest.approx(1.04)
    fold, tried = fold_of(lambda rank, ridge, bias: (math.log2(bias) - 2.8) ** 2 + 1.0, monkeypatch)
    assert fold.choose(0, None, np.random.default_rng(0)).bias_ridge == 8.0
    assert [bias for _, _, bias in tried[:6]] == [1.0, 0.5, 2.0, 4.0, 8.0, 16.0]


def test_ranks_of_ratings_stop_after_two_without_gain(monkeypatch):
    by_rank = {0: 3.0, 1: 2.0, 2: 1.5}
    fold, tried = fold_of(lambda rank, ridge, bias: by_rank.get(rank, 1.6), monkeypatch)
    assert fold.choose("auto", None, np.random.default_rng(0)).U.shape[1] - 1 == 2
    assert sorted({rank for rank, _, _ in tried}) == [0, 1, 2, 3, 5]
    fold, tried = fold_of(lambda rank, ridge, bias: by_rank.get(rank, 1.6), monkeypatch, largest_rank=1)
    assert fold.choose("auto", None, np.random.default_rng(0)).U.shape[1] - 1 == 1
    fold, tried = fold_of(lambda rank, ridge, bias: by_rank.get(rank, 1.6), monkeypatch, standard_error=0.7)
    assert fold.choose("auto", None, np.random.default_rng(0)).U.shape[1] - 1 == 1  # 1.5 is within a standard error
    assert sorted({rank for rank, _, _ in tried}) == [0, 1, 2, 3]
    fold, tried = fold_of(lambda rank, ridge, bias: by_rank.get(rank, 1.6), monkeypatch)
    fixed = fold.choose(5, 0.75, np.random.default_rng(0))
    assert (fixed.U.shape[1] - 1, fixed.ridge) == (5, 0.75)  # a rank that is given is kept
    assert {ridge for rank, ridge, _ in tried if rank == 5} == {0.75}


def test_errors_of_ratings_are_weighted_and_have_standard_errors():
    squares = np.array([1.0, 4.0, 9.0, 0.0])
    fit = SimpleNamespace(refine=lambda model: model, squares=lambda model, held: squares)
    model = ratings._Model(np.zeros((1, 1)), np.zeros((1, 1)), 1.0, 1.0)
    for weight in (None, np.array([1.0, 2.0, 3.0, 4.0])):
        found = ratings._RatingsFold(fit, SimpleNamespace(weight=weight))._evaluate(model)
        w = np.full(4, 0.25) if weight is None else weight / 10.0
        mean = (w * squares).sum()
        assert found.error == pytest.approx(math.sqrt(mean))
        variance = (w**2 * (squares - mean) ** 2).sum()  # of the weighted mean
        assert found.standard_error == pytest.approx(math.sqrt(variance) / (2.0 * math.sqrt(mean)))
    fit.squares = lambda model, held: np.zeros(4)
    exact = ratings._RatingsFold(fit, SimpleNamespace(weight=None))._evaluate(model)
    assert (exact.error, exact.standard_error) == (0.0, 0.0)


def test_other_ridges_keep_the_estimates_and_added_components_the_biases():
    rng = np.random.default_rng(0)
    model = ratings._Model(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), 2.0, 0.5)
    other = model.with_ridges(8.0, 0.125)
    assert (model.one, other.one) == (2.0, 8.0)
    for name in ("U", "Vt"):
        one, two = getattr(model, name), getattr(other, name)
        np.testing.assert_array_equal(two[:, :-1], one[:, :-1])
        np.testing.assert_allclose(two[:, -1] * other.one, one[:, -1] * model.one)
    fold = ratings._RatingsFold(SimpleNamespace(residual=3.0), None)
    grown = fold._add_components(model, 4, 8.0, np.random.default_rng(7))
    size, again = math.sqrt(3.0 / 2.0), np.random.default_rng(7)
    np.testing.assert_allclose(grown.U[:, :2], size * again.standard_normal((4, 2)))
    np.testing.assert_allclose(grown.Vt[:, :2], size * again.standard_normal((5, 2)))
    np.testing.assert_allclose(grown.U[:, 2:], model.with_ridges(8.0, 0.5).U)
    assert (grown.ridge, grown.bias_ridge) == (8.0, 0.5)


def test_the_unit_of_the_shrinkage_is_documented():
    entries = SimpleNamespace(
        rows=np.arange(4), columns=np.arange(9), row=np.array([0, 1, 2, 3, 3]), column=np.array([0, 1, 2, 8, 8]),
        value=np.array([1.0, 2.0, 3.0, 4.0, 5.0]), weight=np.array([1.0, 1.0, 2.0, 0.5, 0.5]),
    )  # fmt: skip
    fit = ratings._RatingsFit(entries, 1)
    mean = (entries.value * entries.weight).sum() / 5.0
    assert fit.mean == pytest.approx(mean)
    assert fit.residual == pytest.approx(math.sqrt(np.mean((entries.value - mean) ** 2)))
    assert fit.unit == pytest.approx(fit.residual * (math.sqrt(5 / 4) + math.sqrt(5 / 9)))
    assert fit.largest_rank == 4
