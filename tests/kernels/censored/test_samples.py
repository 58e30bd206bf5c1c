"""Samples of long columns with censored cells: their fits compared with fits of the sampled cells and of all cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from powerkern._status import Status
from powerkern._typing import FloatArray
from powerkern.kernels.censored import column as columns
from powerkern.kernels.censored import fit, search
from powerkern.kernels.censored.likelihood import Scales, profile_at, taylor_profile
from powerkern.kernels.censored.scratch import CELLS, HIGH, LOW, CensoredWork, new_censored_work
from powerkern.kernels.likelihood.score import Scratch
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import N_OBS, N_RESULTS, STATUS
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

INF, NAN = math.inf, math.nan
KINDS = ("Box-Cox", "positive", "negative", "both signs")
kinds = pytest.mark.parametrize("kind", KINDS)


def cells(kind: str, n: int = 47, is_weighted: bool = True) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Return `n` cells, of which the last 15 are censored, as arrays `x`, `other` and weights, and the family.

    The arrays are those of `case` in test_profiles.py, as are `kind` and `is_weighted`.
    """
    rng = np.random.default_rng(3)
    z = rng.normal(0.4, 1.0, n)
    x = {"negative": -np.exp(0.7 * z), "both signs": z}.get(kind, np.exp(0.7 * z))
    other, middle = np.full(n, NAN), np.sort(x)[[n // 4, n // 3, n // 2, 2 * n // 3, 3 * n // 4]]
    for i in range(1, 16):
        x[-i] = middle[i % 5]
        other[-i] = (-INF, INF, middle[i % 5] + 0.1 + 0.01 * i, -INF, middle[i % 5] + 0.25)[i % 5]
    weight = rng.uniform(0.5, 2.0, n) if is_weighted else np.empty(0)
    return x, other, weight, BOX_COX if kind == "Box-Cox" else YEO_JOHNSON


def prepare(
    x: FloatArray, other: FloatArray, weight: FloatArray, family: int
) -> tuple[columns.CensoredColumn, Scratch, CensoredWork]:
    """Return the column prepared for its fit, and the two kinds of scratch arrays that the fit needs.

    The arguments are the results of `cells`.
    """
    work, own = new_work(x.size), new_censored_work(x.size, x.size)
    with np.errstate(all="ignore"):
        split = columns.split_cells(x, other, weight, family, work, own)
        return columns.prepare_column(split, weight.size > 0, family, work, own), work.scratch, own


def profile_of(column: columns.CensoredColumn, lmbda: float, kind: str, scratch: Any, own: Any) -> float:
    """Return the negative profile log-likelihood at `lmbda`, divided by the total weight.

    Parameters
    ----------
    column : CensoredColumn
        The prepared column.
    lmbda : float
        Lambda.
    kind : str
        Kind of the cells: "negative" cells have the exponent 2 - lambda.
    scratch, own
        The scratch arrays that `prepare` returns.
    """
    exponent = 2.0 - lmbda if kind == "negative" else lmbda
    with np.errstate(all="ignore"):
        at = profile_at(column, exponent * column.centered.logs.sigma, Scales(1.0, 0.0), 1e-9, scratch, own)
    return float(at.nll)


@kinds
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("stride", [1, 2, 5])
def test_a_sample_has_every_value_of_a_stride_and_all_terms(stride: int, is_weighted: bool, kind: str) -> None:
    """Compare the likelihood of a sample with that of its cells: every `stride`-th value, and all intervals.

    In the sample, the weight of an interval is divided by the stride.
    """
    x, other, weight, family = cells(kind, 47, is_weighted)
    column, scratch, own = prepare(x, other, weight, family)
    sample = columns.sample_column(column, stride, own)
    is_value = np.isnan(other)
    taken = np.zeros(x.size, dtype=bool)
    for sign in (False, True):  # values of either sign are sampled by themselves
        own_sign = np.flatnonzero(is_value & ((x < 0.0) == sign))
        taken[(own_sign[::-1] if sign else own_sign)[::stride]] = True  # negative values are stored from the end
    kept = taken | ~is_value
    w = (weight if is_weighted else np.ones(x.size)) / np.where(is_value, 1.0, stride)
    assert sample.total == pytest.approx(w[kept].sum(), rel=1e-12)
    assert sample.values.weight == pytest.approx(w[taken].sum(), rel=1e-12)
    expected = np.empty((1, 3))
    lmbdas = np.array([-0.6, 0.9, 1.8])
    fit.profile_censored_columns(
        x[np.newaxis, kept], other[np.newaxis, kept], w[kept], family, lmbdas,
        new_work(x.size), new_censored_work(x.size, x.size), expected,
    )  # fmt: skip
    found = [profile_of(sample, lmbda, kind, scratch, own) for lmbda in lmbdas]
    np.testing.assert_allclose(found, expected[0], rtol=1e-9, atol=1e-10)


@kinds
@pytest.mark.parametrize("stride", [2, 3])
def test_of_many_terms_every_term_of_a_stride_is_sampled(
    stride: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_FEW_TERMS", 2)
    column, _, own = prepare(*cells(kind))
    terms, sample = column.terms, columns.sample_column(column, stride, own)
    points, found = terms.points, sample.terms
    every = np.append(points.pos, points.neg)
    n_all, border = every.size, points.pos.size
    limits = np.append(np.arange(terms.n_pos)[::stride], np.arange(n_all - terms.n_neg, n_all)[::stride])
    n_found = found.points.pos.size + found.points.neg.size
    own_limits = np.append(np.arange(found.n_pos), np.arange(n_found - found.n_neg, n_found))
    own_points = np.append(found.points.pos, found.points.neg)
    np.testing.assert_array_equal(own_points[own_limits], every[limits])
    np.testing.assert_array_equal(found.weight[own_limits], terms.weight[limits])
    np.testing.assert_array_equal(found.side[own_limits], terms.side[limits])
    assert (found.n_pos, found.n_neg) == (len(range(0, terms.n_pos, stride)), len(range(0, terms.n_neg, stride)))
    taken = range(0, terms.n_intervals, stride)
    assert (found.n_intervals, found.value_index) == (len(taken), -1)
    for k, each in enumerate(taken):
        assert found.intervals[CELLS, k] == terms.intervals[CELLS, each]
        for row in (LOW, HIGH):
            own_at, at = int(found.intervals[row, k]), int(terms.intervals[row, each])
            assert own_points[own_at] == every[at]
            assert (own_at < found.points.pos.size) == (at < border)
    counted = terms.weight[limits].sum() + terms.intervals[CELLS, list(taken)].sum()
    assert sample.total - sample.values.weight == pytest.approx(counted, rel=1e-12)


@kinds
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_search_on_a_sample_first_ends_at_the_same_optimum(
    is_weighted: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_LONG", 40)
    monkeypatch.setattr(search, "_SAMPLE", 8)
    column, scratch, own = prepare(*cells(kind, 60, is_weighted))
    strides, sample_column = [], search.sample_column
    monkeypatch.setattr(search, "sample_column", lambda *a: strides.append(a[1]) or sample_column(*a))
    calls, evaluate = [], search.profile_at
    monkeypatch.setattr(search, "profile_at", lambda *a: calls.append(a[1]) or evaluate(*a))
    with np.errstate(all="ignore"):
        whole = search.find_optimum(column, NAN, False, scratch, own)
        assert strides == []
        assert whole.n_eval == len(calls)
        calls.clear()
        sampled = search.find_optimum(column, NAN, True, scratch, own)
        assert strides == [5]  # 45 values, of which at least 8 are sampled
        assert sampled.n_eval == len(calls)
        given = search.find_optimum(column, 0.3, True, scratch, own)
    assert sampled.mu == pytest.approx(whole.mu, abs=1e-8)
    assert sampled.profile.nll == pytest.approx(whole.profile.nll, rel=1e-12, abs=1e-13)
    assert sampled.profile.d2 == pytest.approx(whole.profile.d2, rel=1e-5)
    assert whole.status == Status.SCANNED
    assert sampled.status in (Status.SCANNED, Status.MULTIMODAL)
    assert (given.mu, given.n_eval, given.status) == (0.3, 1, Status.FIXED)
    assert 8 <= whole.n_eval <= 20
    monkeypatch.setattr(search, "_LONG", 10**6)
    with np.errstate(all="ignore"):
        search.find_optimum(column, NAN, True, scratch, own)
    assert len(strides) == 1


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("tilt", [0.1, -0.1])
def test_a_second_maximum_is_found_from_nine_standard_errors_away(
    tilt: float, side: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace the likelihood by (m^2 - 1)^2 + tilt m, which has two minima; the search starts at one of them."""
    column, scratch, own = prepare(*cells("positive"))
    base, seen = profile_at(column, 0.5, Scales(1.0, 0.0), 1e-9, scratch, own), []

    def evaluate(_: Any, m: float, *rest: Any) -> Any:
        seen.append(m)
        nll, d1 = (m * m - 1.0) ** 2 + tilt * m, 4.0 * m * (m * m - 1.0) + tilt
        return base._replace(nll=nll, d1=d1, d2=12.0 * m * m - 4.0, is_maximum=True)

    monkeypatch.setattr(search, "profile_at", evaluate)
    roots = np.sort(np.roots([4.0, 0.0, -4.0, tilt]).real)[[0, 2]]
    known, other = roots if side < 0.0 else roots[::-1]
    at = evaluate(None, known)
    column = column._replace(total=36.0 / at.d2)  # a standard error of 1/6
    seen.clear()
    with np.errstate(all="ignore"):
        found = search._check_uniqueness(
            column, search.SearchResult(known, at, 0.0, 5, Status.SCANNED), 30.0, search._EXACT, scratch, own
        )
    assert found.n_eval == 5 + len(seen)
    np.testing.assert_allclose([seen[0], seen[1]], [known + 0.5, known - 0.5], rtol=1e-12)
    assert min(abs(np.array(seen) - (known - 1.5 * side))) < 1e-12
    assert found.status == Status.MULTIMODAL
    is_lower = (other - known) * tilt < 0.0
    assert found.mu == pytest.approx(other if is_lower else known, abs=1e-7)
    assert search._check_uniqueness(
        column, found._replace(status=Status.AT_END), 30.0, search._EXACT, scratch, own
    ) == found._replace(status=Status.AT_END)


@kinds
@pytest.mark.parametrize("step", [1e-4, -2e-4])
def test_tiny_steps_by_taylor_series(step: float, kind: str) -> None:
    """Compare moments, likelihood, derivatives and scales after a step with an evaluation at the new exponent."""
    column, scratch, own = prepare(*cells(kind))
    centered = column.centered
    if centered.logs.center != 0.0:  # the series needs a reference that is common to all values
        return
    scales, mu = Scales(1.0, 0.0), 0.4
    with np.errstate(all="ignore"):
        ends = [profile_at(column, mu + h, scales, 1e-8, scratch, own).d2 for h in (-1e-3, 1e-3)]
        d3 = (ends[1] - ends[0]) / 2e-3
        expected = profile_at(column, mu + step, scales, 1e-8, scratch, own)
        at = profile_at(column, mu, scales, 1e-8, scratch, own)
        found = taylor_profile(column, mu, at, step, d3, scratch)
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-9, atol=1e-11)
    assert found.d2 == pytest.approx(expected.d2, rel=1e-6)
    np.testing.assert_allclose(found.scales, expected.scales, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.at[3:6], expected.at[3:6], rtol=1e-9, atol=1e-10)
    assert found.is_maximum


def test_a_column_without_cells_is_empty() -> None:
    row, fields = np.empty((1, N_RESULTS)), np.empty((1, fit.N_CENSORED_FIELDS))
    x, work = np.full((1, 3), NAN), (new_work(3), new_censored_work(3, 3))
    fit.fit_censored_columns(x, np.array([[NAN, INF, -INF]]), np.empty(0), BOX_COX, np.array([NAN]), *work, row, fields)
    assert (row[0, STATUS], row[0, N_OBS]) == (Status.EMPTY, 0.0)


@pytest.mark.parametrize("both_signs", [False, True])
def test_the_largest_exponent_is_64_standard_deviations_of_the_logs(both_signs: bool) -> None:
    column, _, _ = prepare(*cells("both signs" if both_signs else "positive"))
    logs = column.centered.logs
    d, w = np.append(logs.pos, -logs.neg), np.append(logs.pos_weight, logs.neg_weight)
    mean = 0.0 if both_signs else np.average(d, weights=w)
    sd = math.sqrt(np.average((d - mean) ** 2, weights=w))
    assert (logs.neg.size > 0) == both_signs
    assert search.get_largest_exponent(column) == pytest.approx(64.0 / sd, rel=1e-9)
