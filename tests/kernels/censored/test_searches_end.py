"""Termination of every search in fits of censored columns, on artificial likelihoods and on hostile columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.censored import column as columns
from powerkern.kernels.censored import fit, likelihood, search
from powerkern.kernels.censored.likelihood import Profile, Scales, Sums
from powerkern.kernels.censored.scratch import CensoredWork, new_censored_work
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import LMBDA, N_EVAL, N_RESULTS, STATUS
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

INF, NAN = math.inf, math.nan
NO_WEIGHTS = np.empty(0)
X = np.exp(np.random.default_rng(1).normal(size=12))

#: Artificial likelihoods without a maximum: minus the log-likelihood, the score and its slope at the k-th evaluation,
#: and whether the scales converged.
STARVING: dict[str, Callable[[Any, int], tuple[float, float, float, bool]]] = {
    "random": lambda rng, k: (rng.normal(), rng.normal(), rng.normal(), rng.random() < 0.5),
    "random slopes of all sizes": lambda rng, k: (
        rng.normal(),
        rng.normal(),
        float(10.0 ** rng.uniform(-300, 300)),
        True,
    ),
    "scores whose signs alternate": lambda rng, k: (rng.normal(), float((-1) ** k), 1.0, True),
    "steps that shrink": lambda rng, k: (0.0, -1.0, 1e9 * (k + 1.0), True),
    "steps that do not shrink": lambda rng, k: (0.0, -1.0, 1000.0 if k % 2 else 2500.0, True),
    "ends that recede": lambda rng, k: (0.0, 100.0 if k % 2 else 250.0, 1.0, True),
    "falls without end": lambda rng, k: (0.0, -1.0, 1e-300, True),
    "rises without end": lambda rng, k: (0.0, 1.0, -1.0, True),
    "never a maximum": lambda rng, k: (rng.normal(), float((-0.5) ** k), 1.0, False),
    "NaN": lambda rng, k: (NAN, NAN, NAN, False),
    "NaN now and then": lambda rng, k: (NAN if k % 3 else 0.0, NAN if k % 2 else rng.normal(), 1.0, True),
    "infinite": lambda rng, k: (INF * (-1) ** k, INF * (-1) ** k, 1.0, True),
}
starving = pytest.mark.parametrize("kind", STARVING)


def prepare(
    x: FloatArray, is_below: FloatArray, family: int = BOX_COX
) -> tuple[columns.CensoredColumn, Scratch, CensoredWork]:
    """Return the split column and scratch arrays for its fit; where `is_below` is True, the value is an upper limit."""
    work, own = new_work(x.size), new_censored_work(x.size, x.size)
    with np.errstate(all="ignore"):
        split = columns.split_cells(x, np.where(is_below, -INF, NAN), NO_WEIGHTS, family, work, own)
        return columns.prepare_column(split, False, family, work, own), work.scratch, own


def replace_profile(monkeypatch: pytest.MonkeyPatch, module: Any, kind: str) -> list[float]:
    """Let `module` use the artificial likelihood STARVING[kind]; return the list of exponents that it evaluates.

    The list is filled while the search runs.
    """
    lead, rng, seen = STARVING[kind], np.random.default_rng(0), []
    evaluate = module.profile_at

    def profile_at(column: Any, mu: float, *rest: Any) -> Profile:
        seen.append(mu)
        nll, d1, d2, is_maximum = lead(rng, len(seen))
        return evaluate(column, 0.5, *rest)._replace(nll=nll, d1=d1, d2=d2, is_maximum=is_maximum)

    monkeypatch.setattr(module, "profile_at", profile_at)
    return seen


@pytest.fixture
def column() -> Iterator[tuple[columns.CensoredColumn, Scratch, CensoredWork]]:
    """Yield a column whose smallest 30 % are censored at their upper limit, and scratch arrays for its fit."""
    with np.errstate(all="ignore"):
        yield prepare(np.maximum(X, np.quantile(X, 0.3)), np.quantile(X, 0.3) > X)


@starving
def test_the_search_of_lambda_ends(kind: str, column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = replace_profile(monkeypatch, search, kind)
    start = search.Start(0.5, Scales(1.0, 0.0), 0.0, search.get_largest_exponent(column[0]))
    found = search._search(column[0], start, search._EXACT, *column[1:])
    assert found.n_eval == len(seen) <= 101
    assert abs(found.mu) <= start.largest_exponent
    assert found.status in (Status.SCANNED, Status.NOT_CERTIFIED, Status.AT_END)
    if kind == "steps that do not shrink":
        assert (len(seen), found.status) == (100, Status.NOT_CERTIFIED)


@starving
def test_the_scan_for_other_maxima_ends(kind: str, column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = search.find_optimum(column[0], NAN, False, *column[1:])
    assert optimum.status == Status.SCANNED
    seen = replace_profile(monkeypatch, search, kind)
    reach = search.get_largest_exponent(column[0])
    found = search._check_uniqueness(column[0], optimum, reach, search._EXACT, *column[1:])
    assert found.n_eval - optimum.n_eval == len(seen) <= 6 * 103


@starving
def test_the_search_of_an_interval_end_terminates(kind: str, column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = replace_profile(monkeypatch, fit, kind)
    end = fit._drop_point(column[0], 0.5, 0.1, 1.0, *column[1:])
    assert len(seen) <= 101
    assert end >= 0.5 or end != end
    if kind == "ends that recede":
        assert len(seen) == 101
        assert end != end


@pytest.mark.parametrize(
    "kind", ["random", "never higher", "always higher", "singular", "NaN", "steps to negative scales"]
)
def test_the_search_of_the_scales_ends(kind: str, column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes at most 60 steps and halves each step at most 60 times."""
    rng, seen = np.random.default_rng(0), []

    def sums_at(*_: Any) -> Sums:
        k = len(seen)
        seen.append(k)
        a, d, m, aa, ad, dd, ma, md, mm = rng.normal(size=9).tolist()
        nll = {"never higher": float(k), "always higher": -float(k)}.get(kind, rng.normal())
        aa, dd = (aa * aa + 2.0, dd * dd + 2.0) if kind != "singular" else (0.0, 0.0)
        a = NAN if kind == "NaN" else 1e6 if kind == "steps to negative scales" else a
        return Sums(nll, a, d, m, aa, 0.1 * ad, dd, ma, md, mm)

    monkeypatch.setattr(likelihood, "_sums_at", sums_at)
    at = likelihood.profile_at(column[0], 0.5, Scales(1.0, 0.0), 1e-7, *column[1:])
    assert not at.is_maximum
    assert len(seen) <= 1 + 60 * 60
    if kind == "never higher":
        assert len(seen) == 61
    if kind == "always higher":
        assert len(seen) >= 61


@pytest.mark.parametrize("n", [0, 1, 5, 12])
def test_every_stride_th_number_is_copied(n: int) -> None:
    x = np.arange(float(n))
    for stride in range(1, n + 3):
        out = np.full(n + 1, -1.0)
        assert columns._copy_every(x, stride, out) == len(x[::stride])
        np.testing.assert_array_equal(out[: len(x[::stride])], x[::stride])


def test_ends_of_intervals_take_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find each end of an interval with at most 6 evaluations, for drops of the log-likelihood from 0.001 to 20."""
    for family, drop in ((BOX_COX, 1e-3), (BOX_COX, 0.1), (YEO_JOHNSON, 2.0), (BOX_COX, 5.0), (YEO_JOHNSON, 20.0)):
        with np.errstate(all="ignore"):
            prepared, *work = prepare(np.maximum(X, np.quantile(X, 0.3)), np.quantile(X, 0.3) > X, family)
            best = search.find_optimum(prepared, NAN, False, *work)
            evaluate, seen = likelihood.profile_at, []

            def profile_at(
                column: Any, mu: float, *rest: Any, evaluate: Any = evaluate, seen: list[float] = seen
            ) -> Profile:
                seen.append(mu)
                return evaluate(column, mu, *rest)

            monkeypatch.setattr(fit, "profile_at", profile_at)
            for side in (-1.0, 1.0):
                seen.clear()
                end = fit._drop_point(prepared, best.mu, drop, side, *work)
                assert len(seen) <= 6
                reached = evaluate(prepared, end, Scales(1.0, 0.0), 1e-9, *work)
                assert reached.nll - best.profile.nll == pytest.approx(drop, rel=1e-9, abs=1e-14)
                assert side * (end - best.mu) > 0.0


@pytest.mark.parametrize("factor", [0.5, 0.97, 1.001, 1.03, 1.5, 3.0])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_search_ends_at_its_limit_only_if_the_likelihood_rises_there(factor: float, seed: int) -> None:
    """Start searches with a limit below, just above and far above the optimum.

    If the optimum is inside the limit but a step crosses the limit, the status is NOT_CERTIFIED instead of AT_END.
    """
    x = np.random.default_rng(seed).lognormal(size=12)
    low = np.quantile(x, 0.3)
    with np.errstate(all="ignore"):
        prepared, *work = prepare(np.maximum(x, low), x < low)
        best = search.find_optimum(prepared, NAN, False, *work).mu
        for start in (-2.0, -0.5, 0.0, 0.3, 2.0):
            reach = factor * abs(best)
            if abs(start) > reach:
                continue
            found = search._search(prepared, search.Start(start, Scales(1.0, 0.0), 0.0, reach), search._EXACT, *work)
            if factor < 1.0:
                assert (found.status, found.mu) == (Status.AT_END, math.copysign(reach, best))
            elif abs(found.mu) == reach:
                assert found.status == Status.NOT_CERTIFIED
            else:
                assert (found.status, found.mu) == (Status.SCANNED, pytest.approx(best, abs=1e-8))


def hostile_columns() -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield cells and the other ends of their intervals: the first two arguments of `fit_censored_columns`."""
    rng = np.random.default_rng(6)
    kinds = itertools.cycle(("below", "above", "between"))
    for unit in (1.0, 5e-324, 1e-310, 1e300):
        for sigma in (1e-6, 1.0, 8.0):
            x = np.exp(sigma * np.clip(rng.normal(size=6), -2.0, 2.0))
            x = np.ceil(1e3 * x) * unit if unit < 1e-320 else x * unit
            middle, kind = np.median(x), next(kinds)
            if kind == "below":
                yield x, np.where(x <= middle, -INF, NAN)
            elif kind == "above":
                yield x, np.where(x >= middle, INF, NAN)
            else:
                yield x, np.where(np.arange(6) % 2, 1.25 * x, NAN)
    years = 1e15 + np.round(rng.normal(size=8))
    yield years, np.where(np.arange(8) < 3, -INF, NAN)
    yield np.full(6, 3.0), np.array([NAN, NAN, -INF, INF, 4.0, NAN])  # limits that equal the values
    yield np.array([1.0, 2.0, 2.0, 2.0, 1.0, 2.0]), np.array([NAN, NAN, -INF, -INF, INF, INF])
    yield np.array([1e-30, 1e30, 1.0, 2.0]), np.array([-INF, INF, NAN, NAN])
    yield np.arange(1.0, 7.0), np.full(6, -INF)  # no value
    yield np.arange(1.0, 7.0), np.arange(1.0, 7.0) + 1.0


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
def test_hostile_columns_get_a_status_and_a_finite_lambda(family: int) -> None:
    evaluations = []
    for x, other in hostile_columns():
        work, own = new_work(x.size), new_censored_work(x.size, x.size)
        row, out = np.empty((1, N_RESULTS)), np.empty((1, fit.N_CENSORED_FIELDS))
        cells, given = (x[np.newaxis], other[np.newaxis], NO_WEIGHTS, family), np.array([NAN])
        with np.errstate(all="ignore"):
            fit.fit_censored_columns(*cells, given, work, own, row, out)
            evaluations.append(row[0, N_EVAL])
            assert row[0, STATUS] in list(Status)
            assert np.isfinite(row[0, LMBDA])
            profile, ends = np.empty((1, 5)), np.empty((1, 2))
            fit.profile_censored_columns(*cells, np.array([-1e5, -3.0, 0.0, 2.0, 1e5]), work, own, profile)
            fit.interval_censored_columns(*cells, np.array([[row[0, LMBDA], 2.0]]), work, own, ends)
            assert not (ends[0, 0] > ends[0, 1])
    assert max(evaluations) <= 6 * 103
