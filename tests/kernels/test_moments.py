"""Mergeable moments, and log-sum-exp means and variances, compared with rational and multiprecision arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numba
import numpy as np
import oracles
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from powerkern._jit import JIT_DISABLED
from powerkern.kernels import chan_merge, log_mean, log_var, logsumexp, welford_update
from powerkern.kernels import moments as m

EMPTY = m.Moments(0.0, 0.0, 0.0)
EPS = np.finfo(float).eps
SMALLEST = 5e-324
#: plain Python adds a block one value after the other, compiled code in many partial sums
SLACK = 4.0 if JIT_DISABLED else 1.0

# sizes around the boundaries of blocks
SIZES = [1, 2, 3, 7, m.BLOCK - 1, m.BLOCK, m.BLOCK + 1, 1024, 5137]


@numba.njit
def jitted_moments(x):
    return m.two_pass_moments(x)


@numba.njit
def jitted_weighted_moments(x, w):
    return m.two_pass_moments(x, w)


@numba.njit
def jitted_sums(x, w):
    return m.sum_of(x), m.sum_of(x, w)


@numba.njit
def jitted_welford(x, w):
    state = m.Moments(0.0, 0.0, 0.0)
    for i in range(x.size):
        state = welford_update(state, x[i], w[i])
    return state


@numba.njit
def jitted_merge_tree(parts):
    return m.merge_tree(parts)


def columns(n, seed=0):
    """Return columns of n values by name, from easy to adversarial for a variance."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=n)
    yield "normal", normal
    yield "far from 0", normal + 1e8
    yield "very far from 0", np.round(normal * 100.0) + 1e15
    yield "lognormal", np.exp(3.0 * normal)
    yield "one outlier", np.where(np.arange(n) == 0, 1e20, normal)
    yield "tiny", 1e-140 * normal
    yield "large", 1e140 * normal
    yield "two values", np.where(normal > 0.0, 1.0, 1.0 + EPS)


def assert_moments(result, x, w=None, rtol=1e-15):
    """Compare moments with rational arithmetic.

    The mean agrees to `rtol` times the root mean square, the variance to 10 `rtol` times itself.
    """
    rtol *= SLACK
    weight, mean, m2 = oracles.exact_moments(x, w)
    size = math.sqrt(float(m2 / weight) + float(mean) ** 2)
    assert result.weight == pytest.approx(float(weight), rel=rtol, abs=0.0)
    assert abs(Fraction(result.mean) - mean) <= Fraction(rtol * size)
    assert abs(Fraction(result.m2) - m2) <= Fraction(10 * rtol) * m2


# --- vectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_moments_of_a_vector(n):
    for _, x in columns(n):
        assert_moments(jitted_moments(x), x)


@pytest.mark.parametrize("n", SIZES)
def test_weighted_moments_of_a_vector(n):
    w = np.random.default_rng(1).uniform(0.0, 3.0, n)
    for _, x in columns(n):
        assert_moments(jitted_weighted_moments(x, w), x, w)


def test_moments_of_a_long_vector_far_from_zero():
    x = np.random.default_rng(2).normal(size=20_003) + 1e6
    assert_moments(jitted_moments(x), x)


@pytest.mark.parametrize("n", SIZES)
def test_integer_weights_are_repetitions(n):
    rng = np.random.default_rng(3)
    w = rng.integers(0, 4, n).astype(float)
    w[0] = 2.0
    x = rng.normal(size=n) + 100.0
    weighted = jitted_weighted_moments(x, w)
    repeated = jitted_moments(np.repeat(x, w.astype(int)))
    np.testing.assert_allclose(weighted, repeated, rtol=4e-15, atol=1e-26)


def test_sums_agree_with_fsum():
    x = np.random.default_rng(4).lognormal(sigma=3.0, size=10_000)
    w = np.random.default_rng(5).uniform(size=x.size)
    total, weighted = jitted_sums(x, w)
    assert total == pytest.approx(math.fsum(x), rel=4e-16 * SLACK, abs=0.0)
    assert weighted == pytest.approx(math.fsum(w * x), rel=1e-15 * SLACK, abs=0.0)
    with np.errstate(invalid="ignore"):  # plain Python warns, compiled code does not
        assert jitted_sums(np.array([1.0, math.inf]), np.ones(2)) == (math.inf, math.inf)


def test_sums_keep_what_single_additions_lose():
    x = np.full(100 * m.BLOCK, 2.0**-4)
    x[0] = 2.0**60
    total, weighted = jitted_sums(x, np.ones(x.size))
    # the sum of a later block is below half a unit in the last place of the first
    assert total == weighted == 2.0**60 + 99 * m.BLOCK * 2.0**-4


def test_moments_of_nothing():
    empty = np.empty(0)
    assert jitted_moments(empty) == EMPTY
    assert jitted_weighted_moments(empty, empty) == EMPTY
    assert jitted_weighted_moments(np.array([5.0, 7.0]), np.zeros(2)) == EMPTY


@pytest.mark.parametrize("value", [0.0, 0.1, -1e140, 5e-324, math.pi])
@pytest.mark.parametrize("n", SIZES)
def test_constant_columns_have_variance_zero(n, value):
    assert jitted_moments(np.full(n, value / n)) == (n, value / n, 0.0)


def test_weighted_constants_have_no_negative_variance():
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = np.full(rng.integers(2, 40), rng.normal())
        result = jitted_weighted_moments(x, rng.uniform(size=x.size))
        assert result.mean == pytest.approx(x[0], rel=1e-15, abs=0.0)
        assert 0.0 <= result.m2 <= (EPS * x[0]) ** 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("position", [0, 1500, 2999])
def test_moments_of_values_that_are_not_finite(bad, position):
    x = np.ones(3000)
    x[position] = bad
    with np.errstate(invalid="ignore"):
        results = jitted_moments(x), jitted_weighted_moments(x, np.ones(x.size))
    assert all(math.isnan(result.m2) and not math.isfinite(result.mean) for result in results)


@given(st.permutations(range(30)), st.floats(1e-100, 1e100), st.floats(-1e3, 1e3))
def test_permutation_scale_and_shift(order, scale, shift):
    x = np.random.default_rng(6).normal(size=30)
    before = jitted_moments(x)
    after = jitted_moments(scale * (x[order] + shift))
    size = 1.0 + abs(shift)
    assert after.mean / scale == pytest.approx(before.mean + shift, abs=1e-15 * size)
    assert after.m2 / scale / scale == pytest.approx(before.m2, rel=1e-15 * size**2, abs=0.0)


# --- one more value -----------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [x for _, x in columns(500)], ids=[name for name, _ in columns(1)])
def test_welford_agrees_with_rational_arithmetic(x):
    w = np.random.default_rng(7).uniform(0.5, 2.0, x.size)
    state = EMPTY
    for value, weight in zip(x, w, strict=True):
        state = welford_update(state, value, weight)
    for result in (state, jitted_welford(x, w)):
        exact = oracles.exact_moments(x, w)
        condition = math.sqrt(1.0 + float(exact[1] ** 2 * exact[0] / exact[2]))
        np.testing.assert_allclose(result, [float(v) for v in exact], rtol=x.size * EPS * condition)


def test_welford_ignores_weight_zero():
    state = m.Moments(3.0, 2.0, 1.0)
    assert welford_update(state, math.nan, 0.0) == state
    assert welford_update(EMPTY, 5.0, 0.0) == EMPTY
    assert welford_update(EMPTY, 5.0) == (1.0, 5.0, 0.0)
    assert math.isnan(welford_update(state, math.nan).mean)


# --- merges -------------------------------------------------------------------------------------------

values = st.floats(-1e6, 1e6)
parts = hnp.arrays(float, st.integers(0, 20), elements=values)


def part_of(x):
    return m.Moments(*jitted_moments(x))


def assert_close(a, b, data):
    """Check that moments `a` and `b` of the same `data` are equal up to the rounding of a few merges."""
    scale = max(1e-300, float(np.max(np.abs(data), initial=0.0)))
    assert a.weight == b.weight
    assert abs(a.mean - b.mean) <= 8 * EPS * scale
    rounding = 16 * EPS * (b.m2 + scale * math.sqrt(b.m2 * b.weight) + EPS * scale**2 * b.weight)
    # squares below 1e-308 are rounded to the smallest subnormal number, before they are multiplied by a weight
    assert abs(a.m2 - b.m2) <= rounding + 4.0 * SMALLEST * b.weight


@given(parts, parts)
@example(np.array([0.0]), np.array([6.75787372e-160, 0.0, 0.0]))
def test_merge_is_the_moments_of_the_union(x, y):
    both = np.concatenate([x, y])
    assert_close(chan_merge(part_of(x), part_of(y)), part_of(both), both)


@given(parts, parts)
def test_merge_commutes(x, y):
    a, b = part_of(x), part_of(y)
    assert_close(chan_merge(a, b), chan_merge(b, a), np.concatenate([x, y]))


@given(parts, parts, parts)
def test_merge_is_associative(x, y, z):
    a, b, c = part_of(x), part_of(y), part_of(z)
    left, right = chan_merge(chan_merge(a, b), c), chan_merge(a, chan_merge(b, c))
    assert_close(left, right, np.concatenate([x, y, z]))


@given(parts)
def test_merging_with_nothing_changes_nothing(x):
    a = part_of(x)
    assert chan_merge(a, EMPTY) == chan_merge(EMPTY, a) == a


def test_merging_one_value_is_an_update():
    a = part_of(np.array([1.0, 2.0, 6.0]))
    assert chan_merge(a, m.Moments(2.0, 7.5, 0.0)) == pytest.approx(welford_update(a, 7.5, 2.0), rel=4e-16, abs=0.0)


def test_unequal_parts_far_from_zero():
    x = np.random.default_rng(8).normal(size=3000) + 1e4
    merged = chan_merge(part_of(x[:1]), chan_merge(part_of(x[1:2990]), part_of(x[2990:])))
    assert_moments(merged, x, rtol=1e-12)


def tree(parts, merge, empty):
    """Merge `parts` by `merge`, recursively, in the order of `merge_tree`; return `empty` if there are none.

    The first operand of the last merge of n parts comprises the first 2^k parts, the largest power of two below n.
    """
    if len(parts) <= 1:
        return parts[0] if parts else empty
    half = 1 << (len(parts) - 1).bit_length() - 1
    return merge(tree(parts[:half], merge, empty), tree(parts[half:], merge, empty))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 13, 64, 65])
def test_tree_has_fixed_boundaries(n):
    rng = np.random.default_rng(11)
    rows = np.column_stack([rng.integers(0, 5, n), rng.normal(size=n), rng.uniform(size=n)]).astype(float)
    expected = tree([m.Moments(*row) for row in rows.tolist()], chan_merge, EMPTY)
    assert m.merge_tree(rows.copy()) == expected
    np.testing.assert_allclose(jitted_merge_tree(rows), expected, rtol=1e-14)


def test_tree_of_blocks_equals_the_vector():
    x = np.random.default_rng(12).normal(size=20 * m.BLOCK + 5) + 10.0
    blocks = [jitted_moments(x[i : i + m.BLOCK]) for i in range(0, x.size, m.BLOCK)]
    assert_moments(m.merge_tree(np.array(blocks)), x, rtol=4e-15)


# --- logarithms ---------------------------------------------------------------------------------------

finite_logs = st.one_of(st.floats(-800.0, 800.0), st.floats(-1e300, 1e300), st.just(-math.inf))
log_vectors = hnp.arrays(float, st.integers(1, 12), elements=finite_logs)
sign_values = st.sampled_from([-1.0, 1.0, 1.0, 0.0])


def tolerance(logs, *more):
    """Return 2e-15 times the largest magnitude among 1 and the finite values of all arguments."""
    sizes = [1.0, *(abs(v) for v in (*logs, *more) if math.isfinite(v))]
    return 2e-15 * max(sizes)


def assert_log(result, exact, logs):
    if math.isinf(exact):
        assert result == exact
    else:
        assert abs(result - exact) <= tolerance([max(logs)], exact)


@given(log_vectors)
def test_logsumexp_agrees_with_mpmath(logs):
    assert_log(logsumexp(logs), oracles.log_sum(logs), logs)


@given(log_vectors, st.data())
def test_weighted_logsumexp_agrees_with_mpmath(logs, data):
    weights = data.draw(hnp.arrays(float, logs.size, elements=st.one_of(st.just(0.0), st.floats(1e-3, 1e3))))
    counted = logs[weights > 0.0]
    exact = oracles.log_sum(logs, weights)
    assert_log(logsumexp(logs, weights), exact, counted if counted.size else logs)


@given(log_vectors)
def test_log_mean_of_positive_numbers(logs):
    result = log_mean(logs)
    log, sign = oracles.log_mean(logs)
    assert_log(result.log, log, logs)
    assert result.sign == sign


@given(log_vectors)
def test_log_var_of_positive_numbers(logs):
    assert_log_var(log_var(logs), oracles.log_var(logs), logs)


def assert_log_var(result, exact, logs):
    if math.isinf(exact):
        assert result == exact
    else:
        assert abs(result - exact) <= 2.0 * tolerance(logs, exact)


@given(
    hnp.arrays(float, st.integers(1, 12), elements=st.one_of(st.floats(-300.0, 300.0), st.just(-math.inf))), st.data()
)
def test_mean_and_variance_of_signed_numbers_agree_with_mpmath(logs, data):
    signs = data.draw(hnp.arrays(float, logs.size, elements=sign_values))
    mean = log_mean(logs, signs)
    log, sign = oracles.log_mean(logs, signs)
    largest = max(v if s else -math.inf for v, s in zip(logs, signs, strict=True))
    # the mean of numbers that cancel is known to the rounding of the largest
    error = (
        abs(mean.sign * math.exp(mean.log - largest) - sign * math.exp(log - largest)) if largest > -math.inf else 0.0
    )
    assert error <= 2e-15 * (1.0 + abs(largest) * math.exp(log - largest) if largest > -math.inf else 1.0)
    assert_log_var(
        log_var(logs, signs), oracles.log_var(logs, signs), [v for v, s in zip(logs, signs, strict=True) if s]
    )


@pytest.mark.parametrize("center", [0.0, 1.0, -700.0, 1e5, 1e12])
@pytest.mark.parametrize("spread", [1e-3, 1e-8, 1e-13])
def test_log_var_of_nearly_equal_numbers(center, spread):
    logs = center + spread * np.random.default_rng(13).normal(size=50)
    for signs in (None, np.ones(50), -np.ones(50)):
        assert log_var(logs, signs) == pytest.approx(oracles.log_var(logs), rel=1e-15, abs=4e-15)


@pytest.mark.parametrize(
    "logs",
    [
        [0.0, 1e-200],
        [0.0, 5e-324],
        [1e-300, 3e-300, -1e-300],
        [1e300, -1e300],
        [1e300, 1e300, 9.9e299],
        [-1e300, -1e300 * (1.0 + EPS)],
        [-math.inf, 0.0],
        [-math.inf, -math.inf, 700.0],
        [-800.0] * 5 + [800.0],
    ],
    ids=str,
)
def test_log_var_at_the_limits(logs):
    assert log_var(logs) == pytest.approx(oracles.log_var(logs), rel=4e-15, abs=0.0)


@pytest.mark.parametrize("n", [*SIZES[:-1], pytest.param(SIZES[-1], marks=pytest.mark.slow)])
def test_long_vectors_of_logs(n):
    rng = np.random.default_rng(14)
    logs = 100.0 * rng.normal(size=n) + 1000.0
    signs = rng.choice([-1.0, 1.0], n)
    assert logsumexp(logs) == pytest.approx(oracles.log_sum(logs), rel=4e-16, abs=0.0)
    assert logsumexp(logs, np.arange(1.0, n + 1.0)) == pytest.approx(
        oracles.log_sum(logs, np.arange(1.0, n + 1.0)), rel=4e-16, abs=0.0
    )
    assert log_mean(logs, signs) == pytest.approx(oracles.log_mean(logs, signs), rel=1e-14, abs=0.0)
    if n > 1:
        assert log_var(logs) == pytest.approx(oracles.log_var(logs), rel=4e-16, abs=0.0)
        assert log_var(logs, signs) == pytest.approx(oracles.log_var(logs, signs), rel=4e-16, abs=0.0)


def test_sum_close_to_one_keeps_its_digits():
    for logs in ([0.0, -50.0], [0.0] + [-60.0] * 5000, [-300.0, 0.0]):
        assert logsumexp(logs) == pytest.approx(oracles.log_sum(logs), rel=4e-15, abs=0.0)  # 2e-15 in vectors of two


@given(log_vectors, st.floats(-1e3, 1e3))
def test_adding_a_constant_to_logs_scales_the_results(logs, shift):
    moved = logs + shift
    slack = 8.0 * tolerance(logs, shift)
    pairs = [(logsumexp(moved), logsumexp(logs) + shift), (log_mean(moved).log, log_mean(logs).log + shift)]
    for a, b in pairs:
        assert a == b or abs(a - b) <= slack


@given(log_vectors, st.randoms())
def test_order_does_not_matter(logs, random):
    shuffled = list(logs)
    random.shuffle(shuffled)
    for f in (logsumexp, lambda v: log_mean(v).log):
        assert f(shuffled) == f(logs) or abs(f(shuffled) - f(logs)) <= tolerance([max(logs)])


@pytest.mark.parametrize(
    "logs, weights, expected",
    [
        ([], None, -math.inf),
        ([], [], -math.inf),
        ([-math.inf], None, -math.inf),
        ([-math.inf, -math.inf], [1.0, 2.0], -math.inf),
        ([math.inf, 3.0], None, math.inf),
        ([math.inf, -math.inf], None, math.inf),
        ([math.inf, 3.0], [2.0, 1.0], math.inf),
        ([math.inf, 3.0], [0.0, 1.0], 3.0),
        ([math.nan, 3.0], [0.0, 1.0], 3.0),
        ([5.0, 3.0], [0.0, 0.0], -math.inf),
        ([3.0, 3.0], [1.0, -1.0], -math.inf),
        ([1.0, 1.0], None, 1.0 + math.log(2.0)),
        ([1e300, 1e300], None, 1e300),
        ([3.0, 2.0], [-1.0, 1.0], math.nan),
        ([math.nan, 3.0], None, math.nan),
        ([math.nan, -math.inf], None, math.nan),
        ([math.nan, math.inf], None, math.nan),
        ([1.0, 3.0], [math.nan, 1.0], math.nan),
        ([math.inf, math.inf], [1.0, -1.0], math.nan),
        ([1.0, 0.0], [1e-310, 1.0], 0.0),
        ([1.0, 0.0], [1e-200, 1e200], math.log(1e200)),
        ([0.0, -1.0], [1e-309, 1.0], -1.0),
        ([5.0, 4.0], [math.inf, math.inf], math.inf),
    ],
)
def test_logsumexp_of_special_values(logs, weights, expected):
    assert logsumexp(logs, weights) == pytest.approx(expected, rel=1e-15, abs=0.0, nan_ok=True)


NO_NUMBER = (math.nan, math.nan)


@pytest.mark.parametrize(
    "logs, signs, mean, variance",
    [
        ([], None, NO_NUMBER, math.nan),
        ([], [], NO_NUMBER, math.nan),
        ([-math.inf], None, (-math.inf, 0.0), -math.inf),
        ([2.0], None, (2.0, 1.0), -math.inf),
        ([2.0], [-1], (2.0, -1.0), -math.inf),
        ([7.0], [0], (-math.inf, 0.0), -math.inf),
        ([2.0, 2.0], [1, -1], (-math.inf, 0.0), 4.0),
        ([900.0, 2.0, 2.0], [0, 1, -1], (-math.inf, 0.0), 4.0 + math.log(2.0 / 3.0)),
        ([math.nan, 2.0], None, NO_NUMBER, math.nan),
        ([math.nan, 2.0], [0, 1], (2.0 - math.log(2.0), 1.0), 4.0 - 2.0 * math.log(2.0)),
        ([math.inf, 2.0], None, (math.inf, 1.0), math.nan),
        ([math.inf, 2.0], [-1, 1], (math.inf, -1.0), math.nan),
        ([math.inf, math.inf], [-1, 1], NO_NUMBER, math.nan),
    ],
)
def test_log_mean_and_log_var_of_special_values(logs, signs, mean, variance):
    assert tuple(log_mean(logs, signs)) == pytest.approx(mean, rel=1e-15, abs=0.0, nan_ok=True)
    assert log_var(logs, signs) == pytest.approx(variance, rel=1e-15, abs=0.0, nan_ok=True)


def test_log_var_agrees_with_the_published_formula():
    # the published form: logs of the deviations, then a log-sum-exp of their doubles
    logs = np.random.default_rng(15).normal(scale=200.0, size=40)
    mean = log_mean(logs).log
    deviations = [a + math.log(-math.expm1(b - a)) for a, b in ((max(v, mean), min(v, mean)) for v in logs.tolist())]
    expected = logsumexp(2.0 * np.array(deviations)) - math.log(logs.size)
    assert log_var(logs) == pytest.approx(expected, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("function", [logsumexp, log_mean, log_var])
def test_any_vector_of_real_numbers_is_accepted(function):
    logs = np.array([1.0, 2.0, 4.0])
    expected = function(logs)
    read_only = logs.copy()
    read_only.flags.writeable = False
    same = [
        [1, 2, 4],
        (1.0, 2.0, 4.0),
        read_only,
        np.repeat(logs, 2)[::2],
        logs.astype(np.float32),
        logs.astype(np.int8),
        logs.astype(">f8"),
        logs.astype(np.longdouble),
    ]
    for variant in same:
        assert function(variant) == expected
        assert function(variant, np.ones(3)) == pytest.approx(expected, rel=1e-15, abs=0.0)
    assert function(logs, [True, True, True]) == pytest.approx(expected, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("function, name", [(logsumexp, "weights"), (log_mean, "signs"), (log_var, "signs")])
def test_input_other_than_real_vectors_is_rejected(function, name):
    with pytest.raises(ValueError, match="logs must be one-dimensional"):
        function(3.0)
    with pytest.raises(ValueError, match="logs must be one-dimensional"):
        function(np.ones((2, 2)))
    for bad in (["a", "b"], [1j], [None, 1.0], np.array(["2020-01-01"], dtype="datetime64[D]")):
        with pytest.raises(TypeError, match="logs must be real numbers"):
            function(bad)
    with pytest.raises(TypeError, match=f"{name} must be real numbers"):
        function([1.0], ["x"])
    with pytest.raises(ValueError, match=f"{name} must have one value for each log: got 2 for 3"):
        function([1.0, 2.0, 3.0], [1.0, 1.0])
    with pytest.raises(ValueError, match=f"{name} must be one-dimensional"):
        function([1.0], 1.0)


@pytest.mark.parametrize("function", [log_mean, log_var])
@pytest.mark.parametrize("bad", [0.5, 2.0, -3.0, math.nan, math.inf])
def test_signs_other_than_0_and_1_and_minus_1_are_rejected(function, bad):
    with pytest.raises(ValueError, match="at position 1"):
        function([1.0, 2.0], [1.0, bad])


@numba.njit
def user_logs(logs, weights, signs):
    return (
        logsumexp(logs),
        logsumexp(logs, weights),
        logsumexp(logs, weights=weights),
        log_mean(logs),
        log_mean(logs, signs=signs),
        log_var(logs),
        log_var(logs, signs),
    )


@pytest.mark.slow
def test_logs_from_jitted_code():
    rng = np.random.default_rng(16)
    logs, weights, signs = rng.normal(size=3000), rng.uniform(size=3000), rng.choice([-1.0, 0.0, 1.0], 3000)
    expected = (
        logsumexp(logs),
        logsumexp(logs, weights),
        logsumexp(logs, weights),
        log_mean(logs),
        log_mean(logs, signs),
        log_var(logs),
        log_var(logs, signs),
    )
    for result, value in zip(user_logs(logs, weights, signs), expected, strict=True):
        assert result == pytest.approx(value, rel=1e-14, abs=0.0)
