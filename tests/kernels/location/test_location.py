"""Order statistics and M-estimators of sorted columns: brute force, exact estimating equations, R's one-step fit."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jitted import jitted
from reference_files import read_reference
from scipy import stats

from powerkern._jit import JIT_DISABLED
from powerkern.kernels import huber_location, huber_proposal2, huber_scale
from powerkern.kernels.location import biweight, huber, loc_scale, location, order_statistics, proposal2
from powerkern.kernels.location import huber_location as location_kernels
from powerkern.kernels.location.weights import new_frequency_work
from powerkern.location import location_scale

NO_WEIGHTS = np.empty(0)
BLOCK = 128


@jitted
def order_figures(y, w, point, weight, probability):
    """Return five order statistics of a sorted column `y` with weights `w`.

    These are the median, the MAD, the distance from `point` within which the values have weight `weight`, the quantile
    of `probability`, and the interquartile range.
    """
    col = order_statistics.sorted_column(y, w)
    return (
        col.center + col.median,
        order_statistics.mad_about(col, col.median),
        order_statistics.distance_at(col, point - col.center, weight),
        order_statistics.sorted_quantile(y, probability),
        order_statistics.sorted_iqr(y, w),
    )


@jitted
def sums_over_ranges(y, w, bounds, out):
    """Write four sums for each range of the indices of a sorted column to `out`; return the column's center.

    The sums are the weight of the range, the weighted sums of y - center and of its square, and the weight before the
    range.

    Parameters
    ----------
    y, w : (n,) ndarray
        The sorted column and its weights.
    bounds : (2 k,) ndarray of int
        First index of each range, and the index after its last.
    out : (4 k,) ndarray
        Receives the sums.
    """
    col = order_statistics.sorted_column(y, w)
    for i in range(bounds.size // 2):
        sums = order_statistics.sum_range(col, bounds[2 * i], bounds[2 * i + 1])
        out[4 * i], out[4 * i + 1], out[4 * i + 2] = sums.weight, sums.first, sums.second
        out[4 * i + 3] = order_statistics.weight_between(col, 0, bounds[2 * i])
    return col.center


@jitted
def position(y, center, t, guess):
    return order_statistics.find_position(y, center, t, guess)


@jitted
def estimate(y, w, k, c, which):
    if which == 0:
        return huber.huber(y, w, k)
    if which == 1:
        return huber.sorted_one_step(y, w, k, c)
    if which == 2:
        return huber.sorted_huber_location(y, w, math.nan, k)
    if which == 3:
        return huber.sorted_huber_scale(y, w, math.nan, k, c)
    if which == 4:
        return proposal2.sorted_huber_proposal2(y, w, k, c)
    if which == 5:
        return biweight.sorted_bisquare_proposal2(y, w, k, c)
    if which == 6:
        return biweight.sorted_bisquare(y, w, c)
    return biweight.sorted_biweight(y, w, k, c)


HUBER, ONE_STEP, LOCATION, SCALE, PROPOSAL2, BISQUARE2, BISQUARE, BIWEIGHT = range(8)
ESTIMATORS = {
    HUBER: (1.5, 0.0),
    ONE_STEP: (1.5, 0.7784),
    LOCATION: (1.5, 0.0),
    SCALE: (1.5, 0.0),
    PROPOSAL2: (1.5, 1.345),
    BISQUARE2: (1.5, 4.685),
    BISQUARE: (0.0, 4.685),
    BIWEIGHT: (6.0, 9.0),
}


def apply(which, y, w=NO_WEIGHTS, constants=None):
    y = np.asarray(y, dtype=float)
    return estimate(y, w, *(constants or ESTIMATORS[which]), which)


def columns(seed=0):
    """Return sorted columns of many shapes, by name."""
    rng = np.random.default_rng(seed)
    for n in (1, 2, 3, 4, 5, 30, 2 * BLOCK + 1, 5 * BLOCK):
        yield f"normal {n}", np.sort(rng.normal(size=n))
    yield "far from 0", np.sort(1e8 + rng.normal(size=40))
    yield "exponential", np.sort(rng.exponential(size=3 * BLOCK))
    yield "ties", np.sort(rng.integers(0, 6, 90).astype(float))
    yield "outliers", np.sort(np.append(rng.normal(size=20), [1e6, 1e7, -1e9, 1e12]))
    yield "45 % elsewhere", np.sort(np.append(rng.normal(size=22), 12.0 + rng.normal(size=18)))


NAMED = dict(columns())
named = pytest.mark.parametrize("name", NAMED)


def whole_weights(y, seed=1):
    return np.random.default_rng(seed).integers(1, 4, y.size).astype(float)


# --- order statistics and sums ------------------------------------------------------------------------


@named
def test_order_statistics_are_numpys(name):
    y = NAMED[name]
    point = float(np.quantile(y, 0.2)) + 0.1
    for share in (0.1, 0.5, 0.77, 1.0):
        found = order_figures(y, NO_WEIGHTS, point, share * y.size, share)
        distances = np.sort(abs(y - point))
        rank = share * y.size
        lower, upper = distances[max(math.ceil(rank), 1) - 1], distances[min(math.floor(rank), y.size - 1)]
        spread = np.quantile(y, 0.75) - np.quantile(y, 0.25)
        expected = np.median(y), np.median(abs(y - np.median(y))), 0.5 * (lower + upper)
        np.testing.assert_allclose(
            found, (*expected, np.quantile(y, share), spread), rtol=1e-13, atol=1e-7 * (y[0] > 1e7)
        )


@named
def test_weights_repeat_values(name):
    y, w = NAMED[name], whole_weights(NAMED[name])
    repeated = np.repeat(y, w.astype(int))
    for share in (0.3, 0.5, 0.9):
        weighted = order_figures(y, w, y[0] + 0.3, share * w.sum(), 0.5)
        plain = order_figures(repeated, NO_WEIGHTS, y[0] + 0.3, share * w.sum(), 0.5)
        np.testing.assert_allclose(np.delete(weighted, 3), np.delete(plain, 3), rtol=1e-14)
    for which in ESTIMATORS:
        weighted, plain = apply(which, y, w), apply(which, repeated)
        assert weighted.status == plain.status
        np.testing.assert_allclose(weighted[:2], plain[:2], rtol=1e-12)


def test_weights_that_are_no_binary_fractions_do_not_move_the_median():
    y = np.arange(10.0)
    assert order_figures(y, np.full(10, 0.1), 0.0, 0.5, 0.5)[0] == 4.5


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_ranges_agree_with_numpy(weighted):
    for y in NAMED.values():
        w = whole_weights(y) if weighted else NO_WEIGHTS
        ends = np.unique(np.linspace(0, y.size, 7).astype(int))
        bounds = np.array([(a, b) for a in ends for b in ends if a <= b])
        out = np.empty(4 * len(bounds))
        center = sums_over_ranges(y, w, bounds.ravel(), out)
        every = w if weighted else np.ones(y.size)
        for (a, b), found in zip(bounds, out.reshape(-1, 4), strict=True):
            d, v = y[a:b] - center, every[a:b]
            size = np.sum(every * (y - center) ** 2)
            expected = v.sum(), (v * d).sum(), (v * d * d).sum(), every[:a].sum()
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * size + 1e-300)


def test_outliers_beyond_a_range_do_not_touch_its_sums():
    y = np.concatenate([[-1e200, -1e20], np.arange(-300.0, 301.0), [1e20, 1e200]])
    out = np.empty(4)
    sums_over_ranges(y, NO_WEIGHTS, np.array([2, y.size - 2]), out)
    assert out.tolist() == [601.0, 0.0, float(2 * sum(i * i for i in range(301))), 2.0]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=20), st.integers(-6, 6), st.integers(-3, 25))
def test_position_counts_smaller_values_whatever_the_guess(values, t, guess):
    y = np.sort(np.array(values, dtype=float))
    assert position(y, 1.0, t - 1.0, guess) == np.searchsorted(y, t)


def test_trimmed_mean_leaves_out_weight_at_both_ends():
    y = np.sort(np.random.default_rng(2).normal(size=25))
    assert order_statistics.trimmed_mean(y, NO_WEIGHTS, 0.0, 2.0) == pytest.approx(y[:23].mean(), rel=1e-14)
    assert order_statistics.trimmed_mean(y, NO_WEIGHTS, 3.0, 3.0) == pytest.approx(y[3:22].mean(), rel=1e-14)
    w = whole_weights(y)
    repeated = np.repeat(y, w.astype(int))
    assert order_statistics.trimmed_mean(y, w, 4.0, 7.0) == pytest.approx(repeated[4:-7].mean(), rel=1e-13)


# --- M-estimators -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0.1, 1.345, 1.5, 2.5, 10.0])
def test_huber_beta_is_the_variance_of_a_clipped_normal_variable(k):
    assert huber.huber_beta(k) == pytest.approx(float(oracles.clipped_normal_variance(k)), rel=1e-13)


def assert_location(x, w, mu, s, k):
    """Check that `mu` solves Huber's equation for location, up to rounding.

    Parameters
    ----------
    x, w : (n,) ndarray
        Values and weights.
    mu, s, k : float
        Location, scale, and Huber's constant.
    """
    assert abs(oracles.clipped_sums(x, w, mu, s, k)[0]) <= 1e-13 * sum(w) + 1e-15 * sum(w) * abs(mu) / s


def assert_scale(x, w, mu, s, k, dof):
    target = dof * float(oracles.clipped_normal_variance(k))
    assert float(oracles.clipped_sums(x, w, mu, s, k)[1]) == pytest.approx(target, rel=1e-12 + 1e-15 * abs(mu) / s)


@pytest.mark.parametrize("weighted", [False, True])
@named
def test_estimating_equations_hold(name, weighted):
    y = NAMED[name]
    w = whole_weights(y) if weighted else np.ones(y.size)
    given_weights = w if weighted else NO_WEIGHTS
    if y.size < 3:
        return
    for k in (1.345, 1.5):
        location = apply(LOCATION, y, given_weights, (k, 0.0))
        assert_location(y, w, location.loc, location.scale, k)
        scale = apply(SCALE, y, given_weights, (k, 1.0))
        assert_scale(y, w, scale.loc, scale.scale, k, w.sum() - 1.0)
        both = apply(HUBER, y, given_weights, (k, 0.0))
        assert both.loc == location.loc
        assert_scale(y, w, both.loc, both.scale, k, w.sum())
        for k_location in (k, 1.2):
            joint = apply(PROPOSAL2, y, given_weights, (k, k_location))
            assert_location(y, w, joint.loc, joint.scale, k_location)
            assert_scale(y, w, joint.loc, joint.scale, k, w.sum() - 1.0)
            assert joint.status == loc_scale.CONVERGED


@named
def test_bisquare_equations_hold(name):
    y = NAMED[name]
    if y.size < 3:
        return
    location = apply(BISQUARE, y)
    assert abs(oracles.bisquare_sum(y, location.loc, 4.685 * location.scale)) <= 1e-13 * y.size + 1e-15 * abs(y[-1])
    joint = apply(BISQUARE2, y)
    assert abs(oracles.bisquare_sum(y, joint.loc, 4.685 * joint.scale)) <= 1e-12 * y.size + 1e-15 * abs(y[-1])
    assert_scale(y, np.ones(y.size), joint.loc, joint.scale, 1.5, y.size - 1.0)


@named
def test_biweight_and_one_step_agree_with_plain_numpy(name):
    y = NAMED[name]
    if y.size < 3:
        return
    np.testing.assert_allclose(
        apply(BIWEIGHT, y)[:2], oracles.biweight(y, 6.0, 9.0), rtol=1e-7 if y[0] > 1e7 else 1e-12
    )
    beta = ESTIMATORS[ONE_STEP][1]
    np.testing.assert_allclose(
        apply(ONE_STEP, y)[:2], oracles.huber_one_step(y, 1.5, beta), rtol=1e-7 if y[0] > 1e7 else 1e-12
    )


@given(st.lists(st.sampled_from([-3.0, 0.0, 0.1, 1.0, 2.5, 40.0, 1e5]), min_size=1, max_size=12))
def test_estimates_of_any_column_are_finite_and_inside_it(values):
    y = np.sort(values)
    for which in ESTIMATORS:
        result = apply(which, y)
        assert math.isfinite(result.loc)
        assert result.scale >= 0.0
        assert result.status in (loc_scale.CONVERGED, loc_scale.ZERO_SCALE)
        assert y[0] <= result.loc <= y[-1]
        if which in (LOCATION, PROPOSAL2) and result.scale > 0.0:
            k = ESTIMATORS[which][1 if which == PROPOSAL2 else 0]
            assert_location(y, np.ones(y.size), result.loc, result.scale, k)


@named
def test_estimates_move_and_grow_with_the_data(name):
    y = NAMED[name]
    for which in ESTIMATORS:
        at, moved = apply(which, y), apply(which, 4.0 * y - 8.0)
        assert moved.loc == pytest.approx(4.0 * at.loc - 8.0, rel=1e-12, abs=1e-12)
        assert moved.scale == pytest.approx(4.0 * at.scale, rel=1e-7 if y[0] > 1e7 else 1e-12)


def test_an_offset_costs_no_digits():
    y = np.sort(np.random.default_rng(4).integers(-4000, 4000, 61) / 1024.0)
    for which in ESTIMATORS:
        plain, far = apply(which, y), apply(which, y + 1e8)  # exact: the values are multiples of 2**-10
        assert far.loc - 1e8 == pytest.approx(plain.loc, abs=2e-8)
        assert far.scale == pytest.approx(plain.scale, rel=1e-13)


def test_columns_without_spread_have_status_zero_scale():
    for which in ESTIMATORS:
        for y in ([3.0], [3.0] * 6, [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]):
            result = apply(which, y)
            assert result.loc == 3.0
            assert result.scale == 0.0
            assert result.status == loc_scale.ZERO_SCALE
            if which in (ONE_STEP, BIWEIGHT):
                assert result.n_iter == 0


def test_columns_without_values_have_status_empty():
    for entry, n_options in (
        (location.order_columns, 4),
        (location.huber_columns, 2),
        (location.huber_scale_columns, 4),
        (location.proposal2_columns, 2),
        (location.bisquare_columns, 2),
        (location.biweight_columns, 2),
    ):
        out = np.empty((1, 4))
        entry(np.full((1, 3), np.nan), np.empty((1, 0)), np.ones(n_options), out)
        assert out[0, 2:].tolist() == [0, loc_scale.EMPTY]
        assert np.isnan(out[0, :2]).all()


def test_scales_survive_a_mad_of_zero():
    y = np.array([0.0] * 6 + [1.0, 2.0, 3.0, 4.0])
    assert apply(LOCATION, y)[:2] == (0.0, 0.0)
    scale = apply(SCALE, y)
    assert_scale(y, np.ones(10), 0.0, scale.scale, 1.5, 10.0)
    joint = apply(PROPOSAL2, y)
    assert_location(y, np.ones(10), joint.loc, joint.scale, 1.345)
    assert_scale(y, np.ones(10), joint.loc, joint.scale, 1.5, 9.0)


def test_proposal2_settles_near_its_breakdown_point():
    rng = np.random.default_rng(6)
    for n in (25, 42, 53):
        for share in (0.2, 0.255, 0.26, 0.3, 0.35, 0.4):
            y = np.sort(np.where(np.arange(n) < share * n, 1e6, 0.0) + rng.standard_t(1.0, n))
            for k, k_location in ((1.0, 1.0), (1.5, 1.5), (1.5, 1.345)):
                joint = apply(PROPOSAL2, y, constants=(k, k_location))
                assert joint.status == loc_scale.CONVERGED
                assert_location(y, np.ones(n), joint.loc, joint.scale, k_location)
                assert_scale(y, np.ones(n), joint.loc, joint.scale, k, n - 1.0)


def test_constants_out_of_reach_end_with_a_status():
    assert apply(BISQUARE, [0.0, 1.0, 2.0, 3.0], constants=(0.0, 1e-3)).status == loc_scale.MAX_ITER
    assert apply(BISQUARE2, [0.0, 1.0, 2.0, 3.0], constants=(1.5, 1e-3)).status == loc_scale.MAX_ITER


@pytest.mark.parametrize("weighted", [False, True])
def test_least_favourable_likelihood_is_stationary(weighted):
    """Check the equations sum psi(u) = 0 and sum psi(u) u = n P(|Z| < k) for u = (y - loc)/scale.

    The columns have different lengths; entries of the block after the end of a column must not be read.
    """
    ys = [y for y in NAMED.values() if y.size > 2 and y[0] > -1e8 and y[-1] < 1e8]
    block, weights = np.full((len(ys), max(map(len, ys)) + 1), -7.0), np.full((len(ys), max(map(len, ys)) + 1), 50.0)
    counts, out = np.array([y.size for y in ys]), np.empty((len(ys), 2))
    for j, y in enumerate(ys):
        block[j, : y.size], weights[j, : y.size] = y, whole_weights(y)
    if weighted:
        huber.weighted_likelihood_columns(block, weights, counts, new_frequency_work(block.shape[1]), out)
    else:
        huber.likelihood_columns(block, counts, out)
    for y, (loc, scale) in zip(ys, out, strict=True):
        w, u = whole_weights(y) if weighted else np.ones(y.size), (y - loc) / scale
        psi = np.clip(u, -huber.HUBER_K, huber.HUBER_K)
        assert abs(w @ psi) <= 1e-12 * w.sum()
        assert w @ (psi * u) == pytest.approx(math.erf(huber.HUBER_K / math.sqrt(2.0)) * w.sum(), rel=1e-12)


def test_least_favourable_likelihood_when_the_first_step_overshoots():
    """Check the equations for columns in which most values are clipped and a few are far away."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = np.sort(rng.standard_cauchy(17) * np.exp(rng.normal(size=17)))
        for k in (0.05, 0.4, 1.5):
            loc, scale, n_iter, status = huber.sorted_huber_likelihood(y, None, k)
            u = (y - loc) / scale
            psi = np.clip(u, -k, k)
            assert status == loc_scale.CONVERGED
            assert 1 <= n_iter <= 100
            if np.any(abs(u) < k):
                assert abs(psi.sum()) <= 1e-10
            assert psi @ u == pytest.approx(math.erf(k / math.sqrt(2.0)) * y.size, rel=1e-10)


def test_least_favourable_likelihood_without_spread():
    assert huber.sorted_huber_likelihood(np.array([1.0, 3.0, 3.0, 3.0]), None, 1.5) == (3.0, 0.0, 0, 1)


@pytest.mark.parametrize("limit", [0.1, 1.0, 2.576, 9.0])
def test_standard_deviation_within_a_limit(limit):
    assert huber.sd_within(limit) == pytest.approx(stats.truncnorm(-limit, limit).std(), rel=1e-9)
    assert huber.sd_within(math.inf) == 1.0


@named
def test_statuses_do_not_depend_on_the_unit(name):
    y = NAMED[name]
    for which in ESTIMATORS:
        at, small = apply(which, y), apply(which, 2.0**-40 * y)
        assert (small.status, small.n_iter) == (at.status, at.n_iter)
        assert small[:2] == (2.0**-40 * at.loc, 2.0**-40 * at.scale)


def test_small_constants_are_allowed():
    y = NAMED["normal 30"]
    joint = huber_proposal2(y, k=0.7, k_location=0.5)
    assert_location(y, np.ones(30), joint.loc, joint.scale, 0.5)
    assert_scale(y, np.ones(30), joint.loc, joint.scale, 0.7, 29.0)


@pytest.mark.parametrize("name", ["normal 30", "outliers", "45 % elsewhere", "ties"])
def test_iterations_are_counted(name, monkeypatch):
    """Each iteration takes one step of the bisquare, or two searches for the ends of the range that is not clipped."""
    y, steps, searches = NAMED[name], [], []
    bisquare_step, find_position = biweight._bisquare_step, huber.find_position
    monkeypatch.setattr(biweight, "_bisquare_step", lambda *a: steps.append(a) or bisquare_step(*a))
    monkeypatch.setattr(huber, "find_position", lambda *a: searches.append(a) or find_position(*a))
    col = order_statistics.sorted_column(y, NO_WEIGHTS)
    with np.errstate(all="ignore"):
        assert biweight._bisquare_about(col, 1.5, 4.685)[1] == len(steps) >= 1
        assert huber.location_about(col, 1.5, 1.345)[1] == len(searches) // 2 >= 1
        searches.clear()
        assert huber.scale_about(col, 0.3, 2.0, 1.5, y.size)[1] == len(searches) // 2 >= 1
        steps.clear()
        assert biweight._bisquare_proposal2_about(col, 1.5, 4.685, 1.5, y.size - 1.0)[2] == len(steps) >= 1
        searches.clear()
        assert huber.sorted_huber_likelihood(y, None, 1.5).n_iter == len(searches) // 2 >= 1


def test_searches_that_run_out_of_iterations_say_so(monkeypatch):
    for module in (biweight, huber, proposal2):
        monkeypatch.setattr(module, "MOST_ITERATIONS", 1)
    col = order_statistics.sorted_column(NAMED["outliers"], NO_WEIGHTS)
    with np.errstate(all="ignore"):
        assert huber.location_about(col, 0.2, 1.345)[1:] == (1, False)
        assert huber.scale_about(col, 0.3, 5e6, 1.5, 23.0)[1:] == (1, False)
        assert biweight._bisquare_about(col, 1.5, 4.685)[1:] == (1, False)
        assert biweight._bisquare_proposal2_about(col, 1.5, 4.685, 1.5, 23.0)[2:] == (1, False)
        result = huber.sorted_huber_likelihood(NAMED["outliers"], None, 1.5)
    assert (result.n_iter, result.status) == (1, loc_scale.MAX_ITER)
    monkeypatch.setattr(biweight, "scale_about", lambda *_: (0.75, 1, False))
    mu, s, n_iter, converged = biweight._bisquare_proposal2_about(col, 1.5, 4.685, 1.5, 23.0)
    assert (s, n_iter, converged) == (0.75, 1, False)
    assert mu == col.median + biweight._bisquare_step(col, col.median, 4.685 * 1.5)


@pytest.mark.parametrize("weighted", [False, True])
def test_bisquare_steps_are_newtons_where_they_are_short_and_the_slope_is_steep(weighted):
    kinds = set()
    for name in ("normal 30", "outliers", "45 % elsewhere", "ties"):
        y = NAMED[name]
        w = whole_weights(y) if weighted else np.ones(y.size)
        col = order_statistics.sorted_column(y, w if weighted else NO_WEIGHTS)
        for rejection in (1.0, 4.0, 9.0):
            for mu in (-2.0, -0.1, 0.0, 0.02, 0.3, 8.0, 50.0):
                u = (y - col.center - mu) / rejection
                u, v = u[abs(u) < 1.0], w[abs(u) < 1.0]
                total = v @ (1.0 - u * u) ** 2
                found = biweight._bisquare_step(col, mu, rejection)
                if total == 0.0:
                    assert math.isnan(found)
                    continue
                step, slope = v @ (u * (1.0 - u * u) ** 2) / total, v @ ((1.0 - u * u) * (1.0 - 5.0 * u * u))
                is_newton = abs(step) < 0.02 and slope > 0.2 * total
                kinds.add((abs(step) < 0.02, slope > 0.2 * total))
                expected = step * total / slope if is_newton else step
                assert found == pytest.approx(rejection * expected, rel=1e-10, abs=1e-14)
    assert len(kinds) == 4


@named
def test_the_central_half_determines_the_unit(name):
    y, w = NAMED[name], whole_weights(NAMED[name])
    n = y.size
    assert location._inner_half(y, NO_WEIGHTS) == y[3 * n // 4] - y[n // 4]
    repeated = np.repeat(y, w.astype(int))
    total = repeated.size
    first, last = repeated[math.floor(0.25 * total)], repeated[math.ceil(0.75 * total) - 1]
    assert location._inner_half(y, w) == last - first


def test_kernels_for_jitted_code_agree_with_the_public_functions():
    x = NAMED["45 % elsewhere"]
    with np.errstate(all="ignore"):
        for kernel, function, cases in (
            (location_kernels._huber_location, huber_location, [(), (None, 1.2), (2.5, 1.5)]),
            (location_kernels._huber_scale, huber_scale, [(), (None, 1.2, 1), (3.0, 1.5, 0)]),
            (location_kernels._huber_proposal2, huber_proposal2, [(), (1.2,), (1.5, 1.345)]),
        ):
            for arguments in cases:
                np.testing.assert_allclose(kernel(x, *arguments), function(x, *arguments), rtol=1e-14)


# --- public functions ---------------------------------------------------------------------------------


def test_public_functions_take_values_in_any_order_and_leave_nan_out():
    y = NAMED["45 % elsewhere"]
    x = np.append(np.random.default_rng(5).permutation(y), np.nan)
    for function, options, expected in (
        (huber_location, {}, apply(LOCATION, y)),
        (huber_scale, {}, apply(SCALE, y)),
        (huber_proposal2, {"k_location": 1.345}, apply(PROPOSAL2, y)),
        (huber_proposal2, {}, apply(PROPOSAL2, y, constants=(1.5, 1.5))),
    ):
        assert function(x, **options) == function(y, **options)
        np.testing.assert_allclose(function(x, **options), expected, rtol=1e-15)  # compiled twice: to rounding
    assert huber_location([]).status == loc_scale.EMPTY


def test_known_scale_and_center():
    x = [3.0, 1.0, 2.0, 80.0]
    location = huber_location(x, scale=1.0, k=1.345)
    assert_location(x, np.ones(4), location.loc, 1.0, 1.345)
    scale = huber_scale(x, center=-5.0, ddof=1)
    assert scale.loc == -5.0
    assert_scale(x, np.ones(4), -5.0, scale.scale, 1.5, 3.0)
    assert huber_scale(x, ddof=4).scale == 0.0


@pytest.mark.parametrize("k", [0.3, 0.7, 1.5])
@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_a_center_far_from_the_median_costs_no_digits(k, offset):
    rng = np.random.default_rng(5)
    y = np.concatenate([rng.normal(size=45), rng.normal(size=55) + offset])
    found = huber_scale(y, center=0.0, k=k)
    assert found.status == loc_scale.CONVERGED
    assert_scale(y, np.ones(100), 0.0, found.scale, k, 100.0)


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python sums in another order")
def test_weighted_locations_of_long_columns_are_solved_to_rounding():
    rng = np.random.default_rng(6)
    y, w = rng.normal(size=300_000), rng.uniform(0.5, 2.0, 300_000)
    mu, s = location_scale(y, "huber", sample_weight=w).loc[0], location_scale(y, sample_weight=w).scale[0]
    weight, u = w.astype(np.longdouble), (y - np.longdouble(mu)) / np.longdouble(s)
    assert abs((weight * np.clip(u, -1.5, 1.5)).sum() / weight[abs(u) < 1.5].sum()) < 4e-15


@pytest.mark.parametrize("factor", [2.0**700, 2.0**-700])
def test_units_whose_squares_are_out_of_range(factor):
    x = np.array([3.0, 1.0, 2.5, 80.0, 0.5])
    for function, options, moving in (
        (huber_location, {}, {}),
        (huber_location, {}, {"scale": 2.0}),
        (huber_scale, {"ddof": 1}, {}),
        (huber_scale, {}, {"center": -5.0}),
        (huber_proposal2, {}, {}),
    ):
        expected = function(x, **options, **moving)
        found = function(factor * x, **options, **{name: factor * value for name, value in moving.items()})
        assert found == expected._replace(loc=factor * expected.loc, scale=factor * expected.scale)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: huber_location([1.0, np.inf]), ValueError, "infinite"),
        (lambda: huber_location([[1.0, 2.0]]), ValueError, "one-dimensional"),
        (lambda: huber_location(["a"]), TypeError, "real numbers"),
        (lambda: huber_location([1.0, 2.0], scale=0.0), ValueError, "scale must be positive"),
        (lambda: huber_location([1.0, 2.0], k=-1.0), ValueError, "k must be positive"),
        (lambda: huber_location([1.0, 2.0], k=0.0), ValueError, "k must be positive"),
        (lambda: huber_scale([1.0, 2.0], center=-np.inf), ValueError, "center must be finite"),
        (lambda: huber_proposal2([1.0, 2.0], k_location=0.0), ValueError, "k_location must be positive"),
        (lambda: huber_location([1.0, 2.0], k="wide"), TypeError, "k must be a number"),
        (lambda: huber_location([1.0, 2.0], k=np.array([1.5])), TypeError, "k must be a number"),
        (lambda: huber_location([1.0, 2.0], scale="1.5"), TypeError, "scale must be a number"),
        (lambda: huber_scale([1.0, 2.0], center=np.nan), ValueError, "center must be finite"),
        (lambda: huber_scale([1.0, 2.0], ddof=-1), ValueError, "ddof must be a whole number"),
        (lambda: huber_scale([1.0, 2.0], ddof=0.5), ValueError, "ddof must be a whole number"),
        (lambda: huber_proposal2([1.0, 2.0], k_location=np.inf), ValueError, "k_location must be positive"),
    ],
)
def test_bad_input_is_rejected(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- reference values ---------------------------------------------------------------------------------


def test_one_step_is_that_of_cellwise():
    for record in read_reference("cellwise_steps.json")["huber"]:
        result = apply(ONE_STEP, np.sort(record["x"]), constants=(1.5, huber.CELLWISE_BETA))
        assert result.loc == pytest.approx(record["huber_loc"], rel=1e-13)
        assert result.scale == pytest.approx(record["huber_scale"], rel=1e-13)


def test_huber_kernels_agree_with_many_digits():
    for sample in read_reference("location.json")["samples"]:
        x, exact = sample["x"], sample["exact"]
        if exact["nmad"] == 0.0:
            continue
        for k in (1.345, 1.5):
            assert huber_location(x, k=k).loc == pytest.approx(exact[f"huber_location_{k}"], rel=1e-13)
            assert huber_scale(x, k=k).scale == pytest.approx(exact[f"huber_scale_{k}"], rel=1e-13)
            assert huber_proposal2(x, k)[:2] == pytest.approx(exact[f"proposal2_{k}"], rel=1e-13)
