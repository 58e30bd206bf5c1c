"""Rectified transforms: single values compared with mpmath, columns with single values, change points with R."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jitted import jitted
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import cellwise_steps

from powerkern.kernels import (
    inv_rectified_boxcox,
    inv_rectified_yeojohnson,
    rectified_boxcox,
    rectified_yeojohnson,
)
from powerkern.kernels.transforms import rectified as rect

FORWARD = {"box-cox": rectified_boxcox, "yeo-johnson": rectified_yeojohnson}
INVERSE = {"box-cox": inv_rectified_boxcox, "yeo-johnson": inv_rectified_yeojohnson}
RULES = {"none": rect.NOT_RECTIFIED, "paper": rect.QUARTILES, "cellwise": rect.CELLWISE, "both": rect.BOTH}
LAMBDAS = (-40.0, -3.0, -1.0, -1e-9, 0.0, 0.3, 0.999, 1.0, 1.001, 1.7, 2.0, 2.5, 4.0, 40.0)
#: Change points, lower and upper.
POINTS = {"box-cox": (0.4, 3.0), "yeo-johnson": (-0.8, 1.5)}
VALUES = {
    "box-cox": (1e-300, 1e-5, 0.39, 0.4, 0.41, 1.0, 2.99, 3.0, 3.01, 50.0, 1e9, 1e300),
    "yeo-johnson": (-1e300, -1e9, -3.0, -0.8, -0.79, -1e-12, 0.0, 1e-300, 1.49, 1.5, 1.51, 80.0, 1e12),
}
families = pytest.mark.parametrize("family", FORWARD)


@jitted
def transformed(x, logs, n, n_negative, below, lmbda, rule, y):
    rank = rect.tail_rank(n, 0.25)
    column = rect.SortedColumn(x, logs, n, n_negative, below, rank, n - 1 - rank)
    rect.transform_sorted(column, lmbda, rule, y)
    return rect.change_point(column, lmbda, rule if rule != rect.NOT_RECTIFIED else rect.QUARTILES)


def by_kernel(family, x, lmbda, rule):
    """Transform a column by the kernel under a rectification rule; return the images and the change point."""
    x = np.asarray(x, dtype=float)
    if family == "box-cox":
        logs, n_negative, below = np.log(x), 0, 0.0
    else:
        logs, n_negative, below = np.copysign(np.log1p(abs(x)), x), int(np.sum(x < 0)), 2.0
    room = np.full(rect.ROOM, np.nan)
    y = np.full(x.size + rect.ROOM, np.nan)
    columns = np.append(x, room), np.append(logs, room)
    change = transformed(*columns, x.size, n_negative, below, lmbda, RULES[rule], y)
    return y[: x.size], change


def exactly(family, x, lmbda):
    """Return the exact rectified transform of one value, and the sum of the magnitudes of its terms.

    The change points are those in POINTS for the family.
    """
    lower, upper = POINTS[family]
    beyond = x > upper if lmbda < 1 else lmbda > 1 and x < lower
    if not beyond:
        y = oracles.power_transform(family, x, lmbda)
        return y, abs(y)
    c = upper if lmbda < 1 else lower
    at, slope = oracles.power_transform(family, c, lmbda), oracles.power_transform_slope(family, c, lmbda)
    rise = (mpmath.mpf(x) - mpmath.mpf(c)) * slope
    return at + rise, abs(at) + abs(rise)


def columns():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 4, 5, 8, 31, 100):
        yield f"{n} values", np.sort(rng.normal(size=n))
    yield "outliers", np.sort(np.append(rng.normal(size=30), [25.0, 26.0, -40.0]))
    yield "ties", np.sort(rng.integers(-2, 3, 40).astype(float))
    yield "negative", np.sort(-0.1 - rng.exponential(size=25))
    yield "positive", np.sort(0.1 + rng.exponential(size=25))


NAMED = dict(columns())


def column_of(family, name):
    return np.exp(NAMED[name]) if family == "box-cox" else NAMED[name]


# --- one value ----------------------------------------------------------------------------------------


@families
@pytest.mark.parametrize("lmbda", LAMBDAS)
def test_one_value_is_exact(family, lmbda):
    with mpmath.workdps(60):
        for x in VALUES[family]:
            y, size = exactly(family, x, lmbda)
            found = FORWARD[family](x, lmbda, *POINTS[family])
            if size < 1e300:
                assert abs(found - y) <= 2e-15 * (size + mpmath.mpf("1e-290")), x
            else:
                assert abs(found) > 1e299, x


@families
@pytest.mark.parametrize("lmbda", LAMBDAS)
def test_inverse_is_accurate(family, lmbda):
    """Compare inverses with the original values: errors stay below the effect of rounding in y and in psi."""
    with mpmath.workdps(60):
        for x in VALUES[family]:
            exact, size = exactly(family, x, lmbda)
            y = float(exact)
            if not 1e-290 < size < 1e290 or abs(x) > 1e290:
                continue
            back = INVERSE[family](y, lmbda, *POINTS[family])
            lower, upper = POINTS[family]
            at = min(x, upper) if lmbda < 1 else max(x, lower) if lmbda > 1 else x
            slope = oracles.power_transform_slope(family, at, lmbda)
            worth = 4e-16 * size / slope
            if worth > 1e-3 * abs(x):  # psi is flat there: y does not determine x
                continue
            assert abs(back - mpmath.mpf(x)) <= 4 * worth + 1e-14 * abs(x), x


@families
def test_inverse_exists_for_every_value(family):
    """On the linear side, which is unbounded, the inverse of any y is finite, and its transform is y."""
    lower, upper = POINTS[family]
    for lmbda in LAMBDAS:
        if abs(lmbda) > 4.0:
            continue
        for y in (1e3, 1e6) if lmbda < 1 else (-1e3, -1e6) if lmbda > 1 else (1e3,):
            x = INVERSE[family](y, lmbda, lower, upper)
            assert math.isfinite(x)
            if lmbda == 1 or family == "yeo-johnson" or x > 0:
                assert FORWARD[family](x, lmbda, lower, upper) == pytest.approx(y, rel=1e-13)


def test_range_of_box_cox_begins_where_psi_does():
    for lmbda in (0.25, 0.5, 1.0):
        inside, outside = (inv_rectified_boxcox(-1.0 / lmbda + d, lmbda, *POINTS["box-cox"]) for d in (1e-3, -1e-3))
        assert 0.0 < inside < 0.01
        assert math.isnan(outside)


@families
@given(data=st.data())
def test_rectified_transform_is_increasing_and_continuous(family, data):
    lmbda = data.draw(st.floats(-4.0, 6.0))
    lower, upper = POINTS[family]
    low = 1e-3 if family == "box-cox" else -50.0
    x, step = data.draw(st.floats(low, 50.0)), data.draw(st.floats(1e-9, 10.0))
    transform = FORWARD[family]
    assert transform(x, lmbda, lower, upper) <= transform(x + step, lmbda, lower, upper)
    for c in (lower, upper):
        below, above = (transform(float(np.nextafter(c, end)), lmbda, lower, upper) for end in (-np.inf, np.inf))
        assert above - below <= 1e-14 * (1.0 + abs(above)) + 1e-13


@families
@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 20.0])
def test_continuous_in_lambda_at_1(family, x):
    lower, upper = POINTS[family]
    identity = x - 1.0 if family == "box-cox" else x
    for lmbda in (1.0 - 1e-13, 1.0, 1.0 + 1e-13):
        assert FORWARD[family](x, lmbda, lower, upper) == pytest.approx(identity, abs=1e-11)


@families
def test_differentiable_at_the_change_point(family):
    lower, upper = POINTS[family]
    for lmbda in (-2.0, 0.5, 1.5, 3.0):
        c = upper if lmbda < 1 else lower
        h = 1e-6
        left, at, right = (FORWARD[family](c + d, lmbda, lower, upper) for d in (-h, 0.0, h))
        assert (right - at) / h == pytest.approx((at - left) / h, rel=1e-4)


@families
def test_nan_in_nan_out(family):
    for position in range(4):
        arguments = [2.0, 0.5, *POINTS[family]]
        arguments[position] = math.nan
        if position == 2:  # the change point of the other side is not used
            continue
        arguments[0] = 4.0 if position == 3 else arguments[0]
        if position != 3:
            assert math.isnan(FORWARD[family](*arguments))
            assert math.isnan(INVERSE[family](*arguments))


def test_box_cox_knows_no_negative_values_but_on_the_line():
    assert math.isnan(rectified_boxcox(-1.0, 0.5, 0.4, 3.0))
    assert rectified_boxcox(-1.0, 2.0, 0.4, 3.0) == pytest.approx(float(exactly("box-cox", -1.0, 2.0)[0]))


# --- sorted columns -----------------------------------------------------------------------------------


@families
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NAMED)
def test_columns_are_as_their_values(family, rule, name):
    x = column_of(family, name)
    for lmbda in (-3.0, -0.5, 0.0, 0.3, 1.0, 1.7, 2.0, 4.0):
        y, change = by_kernel(family, x, lmbda, rule)
        expected = oracles.rectified_by_rule(family, x, lmbda, rule)
        size = np.max(np.abs(expected[np.abs(expected) < np.inf]), initial=1.0)
        assert_allclose(y, expected.astype(float), rtol=1e-13, atol=1e-14 * float(size))
        assert np.all(np.diff(y) >= 0.0)
        if rule != "none" and lmbda != 1.0:
            at = oracles.change_point(family, x, lmbda, rule)
            assert change.x == pytest.approx(at, rel=1e-9, abs=1e-12)


def smallest_of(values, lmbda):
    """Transform `values` by Box-Cox with rule "both"; return the image of the smallest, and the lower quartile.

    The lower quartile is the change point.
    """
    x = np.sort(np.asarray(values, dtype=float))
    return by_kernel("box-cox", x, lmbda, "both")[0][0], x[(x.size + 3) // 4 - 1]


@pytest.mark.parametrize("lmbda", [v for v in LAMBDAS if v > 0])
@pytest.mark.parametrize("smallest", [1e-300, 1e-9, 0.3999, 0.4])
def test_small_values_go_on_in_logs(lmbda, smallest):
    found, c = smallest_of([smallest, 0.4, 0.5, 1.0, 2.0, 3.0, 4.0], lmbda)
    with mpmath.workdps(60):
        c, m = mpmath.mpf(c), mpmath.mpf(lmbda)
        at, rise = oracles.power_transform("box-cox", 0.4, lmbda), c**m * mpmath.log(mpmath.mpf(smallest) / c)
        assert abs(found - (at + rise)) <= 4e-15 * (abs(at) + abs(rise))


@pytest.mark.parametrize("lmbda", [0.05, 0.3, 1.0, 1.7, 4.0])
def test_small_values_go_on_with_the_slope_of_their_change_point(lmbda):
    rest, h = [0.4, 0.5, 1.0, 2.0, 3.0, 4.0], 1e-6
    below, at = (smallest_of([v, *rest], lmbda)[0] for v in (0.4 - h, 0.4))
    assert (at - below) / h == pytest.approx(0.4 ** (lmbda - 1.0), rel=1e-5)


def test_rectified_on_both_sides_is_continuous_in_lambda():
    x = column_of("box-cox", "outliers")
    for lmbda in (0.0, 1.0):
        left, at, right = (by_kernel("box-cox", x, lmbda + d, "both")[0] for d in (-1e-12, 0.0, 1e-12))
        assert_allclose(left, at, rtol=1e-9, atol=1e-9)
        assert_allclose(right, at, rtol=1e-9, atol=1e-9)


def test_transforms_of_small_values_are_unbounded():
    """The rectified transform falls below -10/lambda; the plain one is bounded by -1/lambda."""
    for lmbda in (0.1, 0.5, 2.0):
        assert smallest_of([1e-200, 0.4, 0.5, 1.0, 2.0, 3.0, 4.0], lmbda)[0] < -10.0 / lmbda


def test_both_sides_of_yeo_johnson_are_those_of_the_paper():
    for lmbda in (-1.0, 0.5, 1.0, 1.5, 3.0):
        assert_array_equal(*(by_kernel("yeo-johnson", NAMED["outliers"], lmbda, r)[0] for r in ("both", "paper")))


@families
def test_change_points_of_the_paper_are_quartiles(family):
    for name in NAMED:
        x = column_of(family, name)
        assert [by_kernel(family, x, lmbda, "paper")[1].x for lmbda in (1.5, 0.5)] == list(oracles.quartiles(x))


def test_transforms_and_change_points_are_those_of_cellwise():
    for step in cellwise_steps():
        plain, rectified = (by_kernel(step.family, step.u, step.lmbda, rule)[0] for rule in ("none", "cellwise"))
        assert_allclose(plain[step.positions], step.plain, rtol=1e-12, atol=1e-12)
        assert_allclose(rectified[step.positions], step.rectified, rtol=1e-10, atol=1e-10)
        if step.lmbda != 1.0:
            change = by_kernel(step.family, step.u, step.lmbda, "cellwise")[1].x
            assert change == pytest.approx(step.change, rel=1e-10)


def test_outliers_do_not_move_the_rest():
    x = NAMED["outliers"]
    far = x.copy()
    far[-2:] *= 1e6
    for lmbda in (0.2, 1.8):
        near, away = (by_kernel("yeo-johnson", values, lmbda, "paper")[0] for values in (x, far))
        assert_array_equal(near[:-2], away[:-2])


# --- inverses, by the logs of a sorted column ---------------------------------------------------------


def sorted_column(family, x):
    """Return a sorted column in the form that kernels take, without scratch at the end of its arrays."""
    is_box_cox = family == "box-cox"
    logs = np.log(x) if is_box_cox else np.copysign(np.log1p(abs(x)), x)
    rank = rect.tail_rank(x.size, 0.25)
    n_negative = 0 if is_box_cox else int(np.sum(x < 0.0))
    return rect.SortedColumn(x, logs, x.size, n_negative, 0.0 if is_box_cox else 2.0, rank, x.size - 1 - rank)


@families
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["31 values", "outliers", "negative", "positive", "ties"])
@pytest.mark.parametrize("lmbda", [-1.5, -0.4, 0.0, 0.3, 0.9, 1.0, 1.2, 2.0, 2.6])
def test_logs_are_found_from_images(family, rule, name, lmbda):
    x = column_of(family, name)
    column, y = sorted_column(family, x), oracles.rectified_by_rule(family, x, lmbda, rule).astype(float)
    found = np.array([rect.rectified_log_at(float(v), column, lmbda, RULES[rule]) for v in y])
    # the derivative of psi in the log, at most that at the change point, says how well y determines the log
    rise = np.abs(np.gradient(y, column.logs)) if len(set(x)) == x.size else np.full(x.size, np.nan)
    is_determined = np.isfinite(rise) & (rise > 1e-6 * (1.0 + np.abs(y))) & (np.abs(column.logs) < 10.0)
    exact = np.where(is_determined, column.logs, found)
    assert_allclose(found, exact, rtol=1e-7, atol=1e-8)


@families
@pytest.mark.parametrize("rule", ["paper", "both"])
def test_images_on_the_tangents_are_inverted_to_any_distance(family, rule):
    """On the linear side of Yeo-Johnson every image has a value; Box-Cox ends at 0, where the log is -inf."""
    column = sorted_column(family, column_of(family, "31 values"))
    for lmbda, side in ((0.5, 1.0), (-1.0, 1.0), (1.5, -1.0), (3.0, -1.0)):
        change = rect.change_point(column, lmbda, RULES[rule])
        y = change.psi + side * 50.0
        x = change.x + side * 50.0 / change.slope
        found = rect.rectified_log_at(y, column, lmbda, RULES[rule])
        if family == "yeo-johnson":
            assert found == pytest.approx(math.copysign(math.log1p(abs(x)), x), rel=1e-12)
        elif rule == "both" and side < 0.0:  # linear in ln x
            log, slope = column.logs[column.lower], math.exp(lmbda * column.logs[column.lower])
            assert found == pytest.approx(log - 50.0 / slope, rel=1e-12)
        else:
            assert found == (pytest.approx(math.log(x), rel=1e-12) if x > 0.0 else -math.inf)
        if side > 0.0 and family == "box-cox" and rule == "both" and lmbda > 0.0:
            below = psi_of("box-cox", column.logs[column.lower], lmbda) - 3.0
            slope = math.exp(lmbda * column.logs[column.lower])
            expected = column.logs[column.lower] - 3.0 / slope
            assert rect.rectified_log_at(below, column, lmbda, RULES[rule]) == pytest.approx(expected, rel=1e-12)


def psi_of(family, log, lmbda):
    m = lmbda - 2.0 if family == "yeo-johnson" and log < 0.0 else lmbda
    return math.expm1(m * log) / m if m else log


@families
@pytest.mark.parametrize("lmbda", [-2.0, 0.0, 1e-40, 0.7, 2.0, 2.0 + 1e-40, 3.5])
def test_transforms_of_signed_logs_and_back(family, lmbda):
    shift = 2.0 if family == "yeo-johnson" else 0.0
    for log in (-3.0, -0.1, 0.0, 0.4, 2.0):
        y = rect.psi_at(log, lmbda, shift)
        assert y == pytest.approx(psi_of(family, log, lmbda), rel=1e-13)
        assert rect.log_at(y, lmbda, shift) == pytest.approx(log, rel=1e-12)
        value = math.exp(log) if family == "box-cox" else math.copysign(math.expm1(abs(log)), log)
        assert rect.value_at(log, shift) == pytest.approx(value, rel=1e-14)
        assert rect.exponent_at(log, lmbda, shift) == (lmbda - shift if log < 0.0 else lmbda)


def test_images_outside_the_range_have_infinite_logs():
    assert rect.log_at(-2.0, 0.5, 0.0) == rect.log_at(-3.0, 0.5, 0.0) == -math.inf
    assert rect.log_at(0.5, -2.0, 0.0) == rect.log_at(0.6, -2.0, 0.0) == math.inf
    assert rect.log_at(-1.0, 3.0, 2.0) == -math.inf  # the exponent of a negative log is 1
    assert rect.log_at(0.499, -2.0, 0.0) == pytest.approx(math.log(1.0 - 0.998) / -2.0)


@pytest.mark.parametrize(
    ("n", "fraction", "expected"),
    [
        (1, 0.25, 0),
        (4, 0.25, 0),
        (5, 0.25, 1),
        (8, 0.25, 1),
        (9, 0.25, 2),
        (10, 0.1, 0),
        (30, 0.1, 2),
        (31, 0.1, 3),
        (3, 0.01, 0),
    ],
)
def test_ranks_of_tails(n, fraction, expected):
    """Compare ranks with ceil(fraction n) - 1.

    0.1 * 30 exceeds 3 by a rounding error, which must not increase the rank.
    """
    assert rect.tail_rank(n, fraction) == expected


@families
@pytest.mark.parametrize("rule", ["paper", "cellwise", "both"])
@pytest.mark.parametrize("lmbda", [-3.0, -0.5, 0.0, 0.3, 1.7, 2.0, 4.0])
def test_positions_and_slopes_of_change_points(family, rule, lmbda):
    """Compare slopes with dpsi/dx = e^((lambda - 1) log), and positions with the number of values before the point."""
    for name in ("31 values", "outliers", "ties"):
        x = column_of(family, name)
        column = sorted_column(family, x)
        change = rect.change_point(column, lmbda, RULES[rule])
        assert change.x == pytest.approx(oracles.change_point(family, x, lmbda, rule), rel=1e-9, abs=1e-12)
        log = math.log(change.x) if family == "box-cox" else math.copysign(math.log1p(abs(change.x)), change.x)
        assert change.psi == pytest.approx(psi_of(family, log, lmbda), rel=1e-9, abs=1e-12)
        assert change.slope == pytest.approx(math.exp((lmbda - 1.0) * log), rel=1e-9)
        if rule == "cellwise" and x[0] < change.x < x[-1]:
            assert change.position == np.sum(x < change.x)
        elif rule == "cellwise":
            assert change.position == (0 if change.x == x[0] else x.size - 1)
        else:
            assert change.position == (column.upper if lmbda < 1.0 else column.lower)
