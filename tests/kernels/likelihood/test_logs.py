"""Columns prepared for their likelihood: summaries, signs, reasons for refusal, and centered logs."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from powerkern import Status
from powerkern._jit import LANES
from powerkern.kernels.likelihood import logs
from powerkern.kernels.likelihood.logs import Bounds, Magnitudes, ValueSummary
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import BAD_INFINITE, BAD_NOT_POSITIVE
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("n", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_summaries_count_what_is_present(n, is_weighted):
    x, weight = RNG.normal(size=n), RNG.integers(0, 4, n).astype(float)
    x[::5] = math.nan
    seen = ~np.isnan(x) & ((weight > 0.0) | (not is_weighted))
    found = logs.summarize_values(x, weight if is_weighted else None)
    own = weight[seen] if is_weighted else np.ones(seen.sum())
    ends = min(x[seen], default=math.inf), max(x[seen], default=-math.inf)
    assert found == pytest.approx((seen.sum(), *ends, own.sum(), own @ own))


def test_merged_summaries_are_those_of_the_union():
    one, other = ValueSummary(2.0, -1.0, 3.0, 2.5, 4.0), ValueSummary(3.0, 0.0, 7.0, 1.5, 1.0)
    assert logs.merge_summaries(one, other) == ValueSummary(5.0, -1.0, 7.0, 4.0, 5.0)
    assert logs.merge_summaries(logs.NOTHING, other) == other


def summary_of(low, high, n=5.0):
    return ValueSummary(n, low, high, n, n)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 2.0, 1.0), (1.0, 2.0, 1.0), (-2.0, -1.0, -1.0), (-2.0, 0.0, 0.0), (-1.0, 2.0, 0.0)],
)
def test_the_sign_of_a_column(low, high, expected):
    assert logs.sign_of(summary_of(low, high)) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, (Status.OK, Status.OK)),
        (2.0, 2.0, (Status.CONSTANT, Status.CONSTANT)),
        (0.0, 2.0, (BAD_NOT_POSITIVE, Status.OK)),
        (-1.0, 2.0, (BAD_NOT_POSITIVE, Status.OK)),
        (0.0, 0.0, (BAD_NOT_POSITIVE, Status.CONSTANT)),
        (-math.inf, 2.0, (BAD_INFINITE, BAD_INFINITE)),
        (1.0, math.inf, (BAD_INFINITE, BAD_INFINITE)),
    ],
)
def test_columns_that_cannot_be_fitted_are_refused_with_the_reason(low, high, expected):
    assert (logs.refusal(summary_of(low, high), BOX_COX), logs.refusal(summary_of(low, high), YEO_JOHNSON)) == expected
    assert logs.refusal(logs.NOTHING, BOX_COX) == logs.refusal(logs.NOTHING, YEO_JOHNSON) == Status.EMPTY


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 3.0, (1.0, 3.0)),
        (-3.0, -1.0, (1.0, 3.0)),
        (-3.0, 1.0, (0.0, 3.0)),
        (-1.0, 4.0, (0.0, 4.0)),
        (0.0, 4.0, (0.0, 4.0)),
    ],
)
def test_the_range_of_magnitudes(low, high, expected):
    assert logs.magnitude_range(summary_of(low, high)) == expected


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_prepared_columns_have_only_values_that_are_present(family, has_gaps, is_weighted):
    x, weight = RNG.gamma(2.0, size=20), RNG.integers(1, 4, 20).astype(float)
    if has_gaps:
        x[3], weight[5] = math.nan, 0.0
    seen = ~np.isnan(x) & ((weight > 0.0) | (not is_weighted))
    column = logs.prepare(x, weight if is_weighted else np.empty(0), family, new_work(20))
    assert column.x.tolist() == x[seen].tolist()
    assert column.weight.tolist() == (weight[seen].tolist() if is_weighted else [])
    assert np.shares_memory(column.x, x) is not (has_gaps)
    assert (column.offset, column.sign, column.status) == (float(family == YEO_JOHNSON), 1.0, Status.OK)
    assert column.summary.n == seen.sum()


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", ["positive", "negative", "both"])
def test_magnitudes_are_split_by_sign_with_their_weights(kind, is_weighted):
    x = RNG.normal(size=15)
    x = {"positive": abs(x), "negative": -abs(x), "both": x}[kind]
    sign = {"positive": 1.0, "negative": -1.0, "both": 0.0}[kind]
    weight = RNG.uniform(1.0, 2.0, 15) if is_weighted else np.empty(0)
    with np.errstate(over="ignore"):  # an index that is not used any more may wrap around
        found = logs.magnitudes_by_sign(x, weight, sign, new_work(15))
    own = weight if is_weighted else np.ones(15)
    pairs = [sorted(zip(abs(x[side]), own[side], strict=True)) for side in (x >= 0.0, x < 0.0)]
    if kind == "negative":  # all magnitudes of a column of one sign are in the first group
        pairs = pairs[::-1]
    assert sorted(zip(found.pos, found.pos_weight, strict=True)) == pairs[0]
    assert sorted(zip(found.neg, found.neg_weight, strict=True)) == pairs[1]


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("x", [1e-300, 0.4, 1.49, 1.5, 1.5 + 1e-13, 2.2, 2.99, 3.01, 3.6, 80.0, 1e300])
def test_centered_logs_do_not_cancel(offset, x):
    """Compare logs relative to the reference 1.5, ln((offset + x)/(offset + 1.5)), with mpmath."""
    with mpmath.workdps(60):
        exact = mpmath.log((mpmath.mpf(offset) + x) / (mpmath.mpf(offset) + 1.5))
        found = logs.centered_log(x, offset, 1.5, math.log(offset + 1.5))
        assert abs(found - exact) <= 4e-16 * abs(exact) * (1.0 if abs(exact) < 0.4 else 3.0)
    assert logs.offset_log(offset, x) == pytest.approx(math.log1p(x) if offset else math.log(x), rel=1e-15, abs=1e-300)


def test_units_are_powers_of_two_above_the_logs():
    for x in (1e-300, 0.3, 0.5, 0.99, 1.0, 3.0, 700.0):
        unit = logs.power_of_two_above(x)
        assert math.frexp(unit)[0] == 0.5
        assert x < unit <= 2.0 * x
    assert logs.power_of_two_above(0.0) == logs.power_of_two_above(5e-324) == 2.0**-1021
    assert logs.choose_log_unit(Bounds(-3.0, 1.0, 0.5)) == 4.0
    assert logs.choose_log_unit(Bounds(-0.1, 1.0, 0.5)) == 2.0
    assert logs.choose_log_unit(Bounds(-0.1, 0.2, 5.0)) == 8.0


@pytest.mark.parametrize("reference", [0.0, 2.0, -3.0])
def test_logs_of_both_signs_are_relative_to_the_reference_on_its_side(reference):
    pos, neg = np.array([0.5, 4.0, 0.0]), np.array([1.0, 9.0])
    magnitudes, d = Magnitudes(pos, neg, np.array([1.0, 2.0, 1.0]), np.array([3.0, 1.0])), np.empty(5)
    found = logs.logs_about(magnitudes, True, 1.0, reference, d)
    center = math.copysign(math.log1p(abs(reference)), reference)
    above, below = np.log1p(pos) - max(center, 0.0), np.log1p(neg) + min(center, 0.0)
    unit = 2.0 ** math.floor(1.0 + math.log2(max(abs(above).max(), below.max(), -above.min(), abs(center))))
    assert found.sigma == unit
    np.testing.assert_allclose(found.pos, above / unit, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(found.neg, below / unit, rtol=1e-14, atol=1e-16)
    bounds = (above.min() / unit, above.max() / unit, below.max() / unit)
    np.testing.assert_allclose((found.low, found.high, found.neg_high), bounds, rtol=1e-14, atol=1e-16)
    assert found.center == pytest.approx(center / unit, rel=1e-15)
    # the mean of signed logs, minus that of the reference
    signed = np.append(np.log1p(pos), -np.log1p(neg))
    mean = np.average(signed, weights=[1.0, 2.0, 1.0, 3.0, 1.0])
    assert found.jacobian == pytest.approx((mean - center) / unit, rel=1e-13)
    assert (found.pos_weight.tolist(), found.neg_weight.tolist()) == ([1.0, 2.0, 1.0], [3.0, 1.0])


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_logs_of_one_sign(offset):
    x, weight = RNG.gamma(2.0, size=7), RNG.uniform(1.0, 2.0, 7)
    found = logs.logs_about(Magnitudes(x, x[:0], weight, weight[:0]), False, offset, x[2], np.empty(7))
    d = np.log(offset + x) - np.log(offset + x[2])
    unit = 2.0 ** math.floor(1.0 + math.log2(abs(d).max()))
    assert (found.sigma, found.center, found.neg.size, found.neg_high) == (unit, 0.0, 0, 0.0)
    np.testing.assert_allclose(found.pos, d / unit, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose((found.low, found.high), (d.min() / unit, d.max() / unit), rtol=1e-12)
    assert found.jacobian == pytest.approx(np.average(d, weights=weight) / unit, rel=1e-12)
