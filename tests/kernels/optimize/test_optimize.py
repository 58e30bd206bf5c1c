"""Golden section, Brent and Newton-Halley: points, limits, failures, and calls from outside the package."""

from __future__ import annotations

import json
import math

import numba
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_files import read_reference
from scipy.optimize import fminbound

from powerkern._jit import JIT_DISABLED
from powerkern.kernels import brent, golden_section, newton_root
from powerkern.kernels.optimize import brent as brent_kernels
from powerkern.kernels.optimize import golden_section as golden_section_kernels
from powerkern.kernels.optimize import newton, status

C = 0.5 * (3.0 - math.sqrt(5.0))

SMOOTH = {
    "parabola": lambda x: (x - 2.0) ** 2,
    "quartic": lambda x: (x - 1.0) ** 4,
    "cosh": lambda x: math.cosh(x - 0.3) + 0.1 * x**4,
    "skew": lambda x: math.exp(x) - 3.0 * x,
    "wavy": lambda x: math.sin(3.0 * x) + 0.1 * x * x,
}
ROUGH = {
    "modulus": lambda x: abs(x - 1.0),
    "root": lambda x: math.sqrt(abs(x - 1.0)),
    "steps": lambda x: math.floor(4.0 * abs(x - 1.0)),
    "rising": lambda x: x,
    "falling": lambda x: -x,
    "flat": lambda x: 1.0,
    "huge": lambda x: 1e300 * abs(x - 1.0),
}
FUNCTIONS = SMOOTH | ROUGH
MINIMISERS = {
    "golden": (golden_section, golden_section_kernels.golden_section_start, golden_section_kernels.golden_section_step),
    "brent": (brent, brent_kernels.brent_start, brent_kernels.brent_step),
}


def recorded(f):
    """Return a function that calls `f` and records its arguments, and the list to which it adds them."""
    points = []

    def g(x):
        points.append(x)
        return f(x)

    return g, points


needs_jit = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
minimisers = pytest.mark.parametrize("minimise, start, step", MINIMISERS.values(), ids=MINIMISERS)
functions = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)


# --- the points visited -------------------------------------------------------------------------------


@functions
@pytest.mark.parametrize("xtol", [1e-8, 1.220703125e-4, 0.5])
@pytest.mark.parametrize("a, b", [(-4.0, 6.0), (0.0, 1.0), (-1e3, 2.0)])
def test_brent_visits_the_points_of_netlib_fmin(f, a, b, xtol):
    g, points = recorded(f)
    result = brent(g, a, b, xtol)
    assert points == oracles.netlib_fmin(f, a, b, xtol)
    assert result.n_eval == len(points)
    assert result.fun == f(result.x) == min(map(f, points))


@given(st.floats(-5, 5), st.floats(0.01, 100), st.floats(-1, 1), st.floats(1e-9, 0.1))
def test_brent_visits_the_points_of_netlib_fmin_on_any_convex_quartic(center, width, skew, xtol):
    def f(x):
        t = (x - center) / width
        return t * t + 0.3 * skew * t**3 + 0.25 * t**4

    g, points = recorded(f)
    brent(g, -4.0, 6.0, xtol)
    assert points == oracles.netlib_fmin(f, -4.0, 6.0, xtol)


@pytest.mark.parametrize("f", SMOOTH.values(), ids=SMOOTH)
def test_brent_agrees_with_scipy(f):
    # scipy's constants differ in the tenth digit: the same number of points, nearly the same points
    g, points = recorded(f)
    h, theirs = recorded(f)
    brent(g, -4.0, 6.0, 1e-5)
    fminbound(h, -4.0, 6.0, xtol=1e-5)
    assert len(points) == len(theirs)
    np.testing.assert_allclose(points, theirs, rtol=0, atol=1e-5)


def test_brent_visits_the_points_of_r_optimize():
    paths = read_reference("cellwise_steps.json")["optimize"]
    assert len(paths) >= 8
    for path in paths:
        # cellWise searches [-4, 6], or a wider bracket when the minimum is near an end
        brackets = ((-4.0, 6.0), (-4.0, 11.0), (-9.0, 6.0))
        starts = [brent_kernels.brent_start(a, b, 1.220703125e-4, 100) for a, b in brackets]
        (state,) = [start for start in starts if start.x == path["lambda"][0]]
        *points, minimum = path["lambda"]  # R evaluates the minimum once more at the end
        for lmbda, value in zip(points, path["value"][:-1], strict=True):
            assert state.status == status.RUNNING
            assert state.x == lmbda
            state = brent_kernels.brent_step(state, value)
        assert state.status == status.CONVERGED
        assert state.x == minimum


def test_golden_section_shrinks_by_the_golden_ratio():
    state = golden_section_kernels.golden_section_start(0.0, 1.0, 1e-6, 100)
    assert state.x == pytest.approx(C)
    state = golden_section_kernels.golden_section_step(state, abs(state.x - 1 / 3))
    assert state.x == pytest.approx(1.0 - C)
    widths = [1.0]
    while state.status == status.RUNNING:
        state = golden_section_kernels.golden_section_step(state, abs(state.x - 1 / 3))
        widths.append(state.b - state.a)
    np.testing.assert_allclose(np.diff(np.log(widths)), math.log(1.0 - C), rtol=1e-6)


# --- the answer ---------------------------------------------------------------------------------------


@minimisers
@functions
def test_minimum_is_the_best_point_visited_inside_the_bracket(minimise, start, step, f):
    g, points = recorded(f)
    result = minimise(g, -4.0, 6.0, 1e-6)
    assert result.status == status.CONVERGED
    assert result.n_eval == len(points)
    assert result.x in points
    assert result.fun == f(result.x) == min(map(f, points))
    assert -4.0 < min(points) <= max(points) < 6.0


@minimisers
@given(center=st.floats(-3.9, 5.9), power=st.sampled_from([0.5, 1.0, 1.5]), xtol=st.floats(1e-7, 0.1))
def test_minimum_is_within_xtol(minimise, start, step, center, power, xtol):
    result = minimise(lambda x: abs(x - center) ** power, -4.0, 6.0, xtol)
    assert result.status == status.CONVERGED
    assert abs(result.x - center) <= xtol + 5e-8 * abs(center)


@minimisers
@pytest.mark.parametrize("scale", [1e-300, 1e-10, 1e10, 1e300])
def test_any_scale_of_x(minimise, start, step, scale):
    result = minimise(lambda x: abs(x / scale - 0.3), -scale, 2.0 * scale, 1e-9 * scale)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(0.3 * scale, rel=1e-7, abs=0.0)


@minimisers
def test_ends_can_be_approached(minimise, start, step):
    assert minimise(lambda x: x, 0.0, 1.0, 1e-7).x == pytest.approx(0.0, abs=1e-6)
    assert minimise(lambda x: -x, 0.0, 1.0, 1e-7).x == pytest.approx(1.0, abs=1e-6)


@minimisers
def test_zero_tolerance_ends_at_the_resolution_of_floats(minimise, start, step):
    result = minimise(lambda x: abs(x - 0.7), 0.0, 1.0, xtol=0.0)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(0.7, rel=1e-7, abs=0.0)


@minimisers
@pytest.mark.parametrize("max_eval", [1, 2, 3, 7])
def test_evaluations_are_capped(minimise, start, step, max_eval):
    g, points = recorded(FUNCTIONS["modulus"])
    result = minimise(g, -4.0, 6.0, 1e-12, max_eval)
    assert result.status == status.MAX_EVAL
    assert result.n_eval == len(points) == max_eval
    assert result.fun == min(map(FUNCTIONS["modulus"], points))


@minimisers
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_avoided(minimise, start, step, bad):
    result = minimise(lambda x: abs(x - 1.0) if x < 2.0 else bad, -4.0, 6.0, 1e-6)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(1.0, abs=1e-6)


@minimisers
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_finite_value_at_all(minimise, start, step, bad):
    result = minimise(lambda x: bad, 0.0, 1.0)
    assert result.status == status.NOT_FINITE
    assert result.fun == math.inf
    assert minimise(lambda x: bad, 0.0, 1.0, max_eval=1).status == status.NOT_FINITE


@minimisers
@pytest.mark.parametrize(
    "arguments, message",
    [
        ((1.0, 1.0), "a < b"),
        ((2.0, 1.0), "a < b"),
        ((math.nan, 1.0), "finite"),
        ((0.0, math.nan), "finite"),
        ((-math.inf, 1.0), "finite"),
        ((0.0, math.inf), "finite"),
        ((0.0, 1.0, -1e-3), "xtol"),
        ((0.0, 1.0, math.nan), "xtol"),
        ((0.0, 1.0, 1e-3, 0), "max_eval"),
    ],
)
def test_unusable_arguments_are_rejected_before_an_evaluation(minimise, start, step, arguments, message):
    def never(x):
        raise AssertionError("evaluated")

    with pytest.raises(ValueError, match=message):
        minimise(never, *arguments)
    state = start(*(arguments + (1e-3, 10)[len(arguments) - 2 :]))
    assert state.status == status.INVALID
    assert math.isnan(state.x)


@minimisers
def test_errors_of_the_function_come_through(minimise, start, step):
    def broken(x):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        minimise(broken, 0.0, 1.0)


# --- Newton and Halley --------------------------------------------------------------------------------


def exponential(x):
    return math.exp(x) - 2.0, math.exp(x), math.exp(x)


def saturating(x):
    t = math.tanh(x - 3.0)
    return t, 1.0 - t * t, -2.0 * t * (1.0 - t * t)


def odd_power(x):
    return (x - 3.0) ** 9, 9.0 * (x - 3.0) ** 8, 72.0 * (x - 3.0) ** 7


def cube_root(x):
    t = x - 3.0
    size = max(abs(t), 1e-300)
    return math.copysign(size ** (1 / 3), t), size ** (-2 / 3) / 3, -2 / 9 * math.copysign(size ** (-5 / 3), t)


def arctangent(x):
    t = 10.0 * (x - 3.0)
    return math.atan(t), 10.0 / (1.0 + t * t), -200.0 * t / (1.0 + t * t) ** 2


def line(x):
    return 1e-5 * (x - 3.0), 1e-5, 0.0


ROOTS = {
    "exponential": (exponential, math.log(2.0)),
    "saturating": (saturating, 3.0),
    "odd power": (odd_power, 3.0),
    "cube root": (cube_root, 3.0),
    "arctangent": (arctangent, 3.0),
    "line": (line, 3.0),
}


@pytest.mark.parametrize("x0", [-300.0, -1.0, 0.0, 3.5, 300.0])
@pytest.mark.parametrize("f, root", ROOTS.values(), ids=ROOTS)
def test_root_is_found_from_any_start(f, root, x0):
    result = newton_root(f, x0)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(root, abs=1e-10 if f is odd_power else 1e-12)
    # roots of order 9 and 1/3 are approached linearly
    assert result.n_eval <= {odd_power: 90, cube_root: 60}.get(f, 30)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_root_is_found_for_any_sinh(root, x0, slope, max_step):
    def f(x):
        t = max(-600.0, min(600.0, slope * (x - root)))
        return math.sinh(t), slope * math.cosh(t), slope**2 * math.sinh(t)

    result = newton_root(f, x0, max_step)
    assert result.status == status.CONVERGED
    assert abs(result.x - root) <= 1e-12 + 4e-16 * abs(root)


def errors_of(f, root, x0, halley):
    state = newton.newton_start(x0, 10.0, 0.0, 50)
    errors = []
    while state.status == status.RUNNING and abs(state.x - root) > 1e-13:
        errors.append(abs(state.x - root))
        value, slope, curvature = f(state.x)
        state = newton.newton_step(state, value, slope, curvature if halley else 0.0)
    return errors


@pytest.mark.parametrize("halley, order", [(True, 3.0), (False, 2.0)])
def test_order_of_convergence_is_2_or_3(halley, order):
    def cubic(x):
        return x**3 - 2.0, 3.0 * x * x, 6.0 * x

    errors = errors_of(cubic, 2.0 ** (1 / 3), 2.0, halley)
    a, b, c = np.log(errors[-3:])
    assert (c - b) / (b - a) == pytest.approx(order, rel=0.1, abs=0.0)


def test_third_derivative_saves_evaluations():
    assert len(errors_of(exponential, math.log(2.0), 3.0, True)) < len(
        errors_of(exponential, math.log(2.0), 3.0, False)
    )


def test_halley_step_is_the_formula():
    state = newton.newton_step(newton.newton_start(1.0, 10.0, 0.0, 50), 0.3, 2.0, 0.7)
    assert state.x == pytest.approx(1.0 - 0.3 / (2.0 - 0.3 * 0.7 / (2 * 2.0)), rel=1e-15, abs=0.0)
    assert state.hi == 1.0
    assert state.lo == -math.inf


@pytest.mark.parametrize("x0", [1.3, 1.3917452002, 1.392, 1.5])
def test_newton_steps_that_swing_from_side_to_side_become_bisections(x0):
    """Newton's method for the arc tangent oscillates for ever from 1.3917."""
    state, k = newton.newton_start(x0, 10.0, 0.0, 50), 0
    while state.status == status.RUNNING:
        x, k = state.x, k + 1
        state = newton.newton_step(state, math.atan(x), 1.0 / (1.0 + x * x), 0.0)
    assert state.status == status.CONVERGED
    assert abs(state.x) < 1e-15
    assert k <= 10


@pytest.mark.parametrize("curvature", [100.0, math.inf, math.nan])
def test_newton_step_where_halley_does_not_fit(curvature):
    state = newton.newton_step(newton.newton_start(1.0, 10.0, 0.0, 50), 0.3, 2.0, curvature)
    assert state.x == 1.0 - 0.3 / 2.0


@pytest.mark.parametrize("slope", [0.0, -1.0, math.inf, math.nan])
def test_bisection_without_a_usable_slope(slope):
    state = newton.newton_start(0.0, 4.0, 0.0, 50)
    state = newton.newton_step(state, -1.0, slope, 0.0)
    assert state.x == 4.0  # no bracket yet: the largest step allowed, a longer one next time
    assert state.max_step == 16.0
    state = newton.newton_step(state, 1.0, slope, 0.0)
    assert state.x == 2.0
    state = newton.newton_step(state, -1.0, slope, 0.0)
    assert (state.lo, state.x, state.hi) == (2.0, 3.0, 4.0)


def test_bisection_when_the_step_leaves_the_bracket():
    state = newton.newton_start(0.0, 4.0, 0.0, 50)
    state = newton.newton_step(state, -1.0, 1e-9, 0.0)
    state = newton.newton_step(state, 1.0, 1e-9, 0.0)
    assert state.x == 2.0


def test_a_start_at_the_root_converges():
    result = newton_root(lambda x: (x, 1.0, 0.0), 0.0)
    assert result == newton.Root(0.0, 0.0, 1, status.CONVERGED)


@pytest.mark.parametrize("x0", [-300.0, 0.0, 2.0, 3.1, 5.0])
def test_the_bracket_holds_the_root(x0):
    state = newton.newton_start(x0, 1.0, 1e-9, 50)
    while state.status == status.RUNNING:
        state = newton.newton_step(state, *saturating(state.x))
        assert state.lo <= 3.0 <= state.hi
        assert state.lo > -math.inf or state.hi < math.inf
    assert state.status == status.CONVERGED


def test_last_step_is_taken_without_an_evaluation():
    state = newton.newton_start(1.0, 10.0, 1e-3, 50)
    state = newton.newton_step(state, 1e-4, 1.0, 0.0)
    assert state.status == status.CONVERGED
    assert state.x == 1.0 - 1e-4
    assert state.n_eval == 1


@pytest.mark.parametrize("max_eval", [1, 2, 5])
def test_newton_evaluations_are_capped(max_eval):
    result = newton_root(arctangent, -300.0, xtol=0.0, max_eval=max_eval)
    assert result.status == status.MAX_EVAL
    assert result.n_eval == max_eval
    assert result.fun == arctangent(result.x)[0]


def test_a_step_to_nan_is_halved():
    def f(x):
        return (math.log(x) - 1.0, 1.0 / x, -1.0 / x**2) if x > 0.0 else (math.nan, math.nan, math.nan)

    result = newton_root(f, 30.0, max_step=100.0)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(math.e, rel=1e-15, abs=0.0)
    back = newton.newton_step(
        newton.newton_step(newton.newton_start(30.0, 100.0, 0.0, 50), 5.0, 0.01, 0.0), math.nan, 1.0, 0.0
    )
    assert back.x == 30.0 - 50.0
    assert back.max_step == 50.0  # and the next step is not longer than the one that was safe


def test_nan_everywhere_ends_with_status_not_finite():
    def nowhere(x):
        return math.nan, math.nan, math.nan

    assert newton_root(nowhere, 1.0).status == status.NOT_FINITE
    result = newton_root(lambda x: (-1.0, 1.0, 0.0) if x == 0.0 else nowhere(x), 0.0)
    assert result.status == status.NOT_FINITE
    assert result.x == 0.0


def test_infinities_count_by_their_sign():
    def f(x):
        if x > 10.0:
            return math.inf, math.inf, math.inf
        if x < -10.0:
            return -math.inf, math.nan, math.nan
        return x - 3.0, 1.0, 0.0

    for x0 in (-100.0, 100.0):
        result = newton_root(f, x0)
        assert result.status == status.CONVERGED
        assert result.x == 3.0


@pytest.mark.parametrize("value", [1.0, -1.0, 5e-324])
def test_a_search_without_a_root_ends_with_a_status(value):
    assert newton_root(lambda x: (value, 0.0, 0.0), 0.0, max_eval=100).status == status.MAX_EVAL
    assert newton_root(lambda x: (value, 0.0, 0.0), 0.0, max_eval=10_000).status == status.NOT_FINITE


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((math.nan,), "x0"),
        ((math.inf,), "x0"),
        ((0.0, 0.0), "max_step"),
        ((0.0, math.inf), "max_step"),
        ((0.0, math.nan), "max_step"),
        ((0.0, 1.0, -1.0), "xtol"),
        ((0.0, 1.0, math.nan), "xtol"),
        ((0.0, 1.0, 1e-9, 0), "max_eval"),
    ],
)
def test_unusable_newton_arguments_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        newton_root(exponential, *arguments)
    state = newton.newton_start(*(arguments + (1.0, 1e-9, 10)[len(arguments) - 1 :]))
    assert state.status == status.INVALID
    assert math.isnan(state.x)


@pytest.mark.parametrize("square", [2.0, 2e-200, 2e200])
def test_zero_tolerance_ends_at_the_resolution_of_floats_near_the_root(square):
    # no float is the root, so f never vanishes
    root = newton_root(lambda x: (x * x - square, 2.0 * x, 2.0), 2.0 * math.sqrt(square), math.sqrt(square), xtol=0.0)
    assert root.status == status.CONVERGED
    assert root.x == pytest.approx(math.sqrt(square), rel=4e-16, abs=0.0)


def test_noise_at_the_root_does_not_keep_it_running():
    rng = np.random.default_rng(0)
    result = newton_root(lambda x: (x - 3.0 + 1e-3 * rng.normal(), 1.0, 0.0), 100.0, max_step=100.0)
    assert result.status == status.CONVERGED
    assert result.x == pytest.approx(3.0, abs=0.01)


# --- stepping from outside ----------------------------------------------------------------------------


def problems(n):
    rng = np.random.default_rng(1)
    return list(zip(rng.uniform(-3.0, 5.0, n), rng.uniform(0.1, 10.0, n), strict=True))


def bowl(x, center, width):
    return math.cosh((x - center) / width)


def bowl_slope(x, center, width):
    t = (x - center) / width
    return math.sinh(t), math.cosh(t) / width, math.sinh(t) / width**2


LOCKSTEP = {
    "golden": (
        lambda: golden_section_kernels.golden_section_start(-4.0, 6.0, 1e-6, 60),
        golden_section_kernels.golden_section_step,
        lambda *a: (bowl(*a),),
    ),
    "brent": (lambda: brent_kernels.brent_start(-4.0, 6.0, 1e-6, 60), brent_kernels.brent_step, lambda *a: (bowl(*a),)),
    "newton": (lambda: newton.newton_start(1.0, 1.0, 1e-9, 60), newton.newton_step, bowl_slope),
}
lockstep = pytest.mark.parametrize("start, step, evaluate", LOCKSTEP.values(), ids=LOCKSTEP)


def run_alone(start, step, evaluate, problem):
    state = start()
    while state.status == status.RUNNING:
        state = step(state, *evaluate(state.x, *problem))
    return state


@lockstep
def test_a_thousand_problems_in_lockstep_equal_one_by_one(start, step, evaluate):
    batch = problems(1000)
    states = [start() for _ in batch]
    while any(state.status == status.RUNNING for state in states):
        states = [
            step(state, *evaluate(state.x, *problem)) if state.status == status.RUNNING else state
            for state, problem in zip(states, batch, strict=True)
        ]
    assert states == [run_alone(start, step, evaluate, problem) for problem in batch]
    assert {state.status for state in states} == {status.CONVERGED}


@lockstep
def test_a_state_survives_a_trip_through_json(start, step, evaluate):
    problem = (1.3, 2.0)
    state = start()
    while state.status == status.RUNNING:
        assert all(type(v) in (float, int) for v in state)
        arrived = type(state)(*json.loads(json.dumps(state)))
        state = step(arrived, *evaluate(arrived.x, *problem))
    assert state == run_alone(start, step, evaluate, problem)


def test_integer_arguments_give_float_states():
    for state in (
        golden_section_kernels.golden_section_start(0, 1, 0, 10),
        brent_kernels.brent_start(0, 1, 0, 10),
        newton.newton_start(0, 1, 0, 10),
    ):
        assert all(
            type(v) is float for name, v in state._asdict().items() if name not in ("n_eval", "max_eval", "status")
        )


# --- jitted callers -----------------------------------------------------------------------------------


@numba.njit
def jitted_bowl(x):
    return math.cosh(x - 0.3) + 0.1 * x**4


@numba.njit
def jitted_slope(x):
    return math.exp(x) - 2.0, math.exp(x), math.exp(x)


@numba.njit
def user_calls(a, b, x0):
    return (
        golden_section(jitted_bowl, a, b),
        brent(jitted_bowl, a, b, xtol=1e-6, max_eval=50),
        newton_root(jitted_slope, x0),
    )


@numba.njit
def user_steps(a, b):
    state = brent_kernels.brent_start(a, b, 1e-6, 50)
    while state.status == status.RUNNING:
        state = brent_kernels.brent_step(state, jitted_bowl(state.x))
    return state


@numba.njit
def user_newton(x0):
    state = newton.newton_start(x0, 1.0, 1e-12, 50)
    while state.status == status.RUNNING:
        f, df, d2f = jitted_slope(state.x)
        state = newton.newton_step(state, f, df, d2f)
    return state


@pytest.mark.slow
def test_calls_from_jitted_code():
    golden, minimum, root = user_calls(-4.0, 6.0, 3.0)
    # the same points to the last bit: products that enter a sum are not fused
    assert golden == golden_section(jitted_bowl, -4.0, 6.0)
    assert minimum == brent(jitted_bowl, -4.0, 6.0, xtol=1e-6, max_eval=50)
    assert root.x == pytest.approx(math.log(2.0), rel=1e-15, abs=0.0)
    assert root.status == status.CONVERGED
    assert user_calls(-4, 6, 3) == (golden, minimum, root)


@pytest.mark.slow
def test_states_stepped_by_jitted_code():
    state = brent_kernels.brent_start(-4.0, 6.0, 1e-6, 50)
    while state.status == status.RUNNING:
        state = brent_kernels.brent_step(state, jitted_bowl(state.x))
    assert user_steps(-4.0, 6.0) == state
    assert user_newton(3.0).x == pytest.approx(math.log(2.0), rel=1e-15, abs=0.0)


@needs_jit
def test_bad_brackets_in_jitted_code_give_a_status():
    golden, minimum, root = user_calls(6.0, -4.0, math.nan)
    assert golden.status == minimum.status == root.status == status.INVALID
    assert golden.n_eval == minimum.n_eval == root.n_eval == 0


@needs_jit
def test_stepping_allocates_nothing():
    user_newton(3.0)
    user_steps(-4.0, 6.0)
    for function in (user_newton, user_steps):
        for code in function.inspect_llvm().values():
            assert "NRT_MemInfo" not in code
            assert "NRT_Allocate" not in code


# --- one step, by its rules ---------------------------------------------------------------------------


def step_by_the_rules(s, f, df, d2f):
    """Return the state after a Newton-Halley step from state `s`, by the rules in the docstring of `newton_step`.

    `f`, `df` and `d2f` are the function's value and first two derivatives at ``s.x``.
    """
    x, lo, hi, max_step = s.x, s.lo, s.hi, s.max_step
    if math.isnan(f):  # half of the last step is undone
        x, step, proposed = s.x - s.step, 0.5 * s.step, math.nan
        max_step = min(max_step, abs(step))
    elif f == 0.0:
        step = proposed = 0.0
    else:
        lo, hi = (x, hi) if f < 0.0 else (lo, x)
        proposed = math.nan
        if math.isfinite(f) and math.isfinite(df) and df > 0.0:
            correction = 1.0 - f * d2f / (2.0 * df * df)
            proposed = -f / df / (correction if correction > 0.5 and math.isfinite(correction) else 1.0)
        step = proposed
        if proposed * s.step > 0.0 and 0.5 * abs(s.proposed) < abs(proposed) <= abs(s.step):
            step = 2.0 * s.step
        end = hi if f < 0.0 else lo
        if math.isfinite(end):
            goes_back = step * s.step < 0.0 and abs(step) > 0.75 * abs(s.step)
            if goes_back or not abs(step) < abs(end - x):
                step = 0.5 * (end - x)
        elif not abs(step) <= max_step:
            step = math.copysign(max_step, -f)
            max_step = 4.0 * max_step
    n_eval = s.n_eval + 1
    if not math.isfinite(x + step):
        code = status.NOT_FINITE
    elif abs(step) <= max(s.xtol, 2.0**-52 * abs(x)):
        code = status.NOT_FINITE if math.isnan(f) else status.CONVERGED
    else:
        code = status.MAX_EVAL if n_eval >= s.max_eval else status.RUNNING
    x = x + step if code in (status.RUNNING, status.CONVERGED) else x
    return newton.NewtonState(x, f, lo, hi, step, proposed, max_step, s.xtol, n_eval, s.max_eval, code)


def test_steps_follow_the_rules_of_the_iteration():
    """Compare steps with `step_by_the_rules` for 3,000 random states and values.

    States and values are drawn from a coarse grid, so that steps often land exactly on an end of the bracket or a
    limit.
    """
    rng = np.random.default_rng(3)
    fs = [-math.inf, -2.0, -1.0, -0.75, -0.5, -0.1, 0.0, 0.1, 0.5, 0.75, 1.0, 2.0, math.inf, math.nan]
    dfs, d2fs = [0.5, 1.0, 1.0, 2.0, 0.0, -1.0, math.inf, math.nan], [0.0, 0.0, 1.0, -1.0, 4.0, math.inf]
    steps, ends = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, math.inf], [0.25, 0.5, 1.0, 3.0, math.inf]
    for _ in range(3000):
        f, df, d2f = (float(rng.choice(values)) for values in (fs, dfs, d2fs))
        x, lo, hi = float(rng.choice([0.0, 1.0, -3.0])), -float(rng.choice(ends)), float(rng.choice(ends))
        proposed = float(rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, math.nan]))
        step, max_step, xtol = (
            float(rng.choice(steps)),
            float(rng.choice([0.25, 1.0, 1e308])),
            float(rng.choice([0.0, 0.5])),
        )
        n_eval, max_eval = int(rng.integers(0, 4)), int(rng.integers(3, 6))
        state = newton.NewtonState(
            x, 1.0, x + lo, x + hi, step, proposed, max_step, xtol, n_eval, max_eval, status.RUNNING
        )
        assert repr(newton.newton_step(state, f, df, d2f)) == repr(step_by_the_rules(state, f, df, d2f))


@pytest.mark.parametrize(
    ("limit", "usable"),
    [
        ((0.0, 1.0, 0.0, 1), True),
        ((-1.7976931348623157e308, 1.7976931348623157e308, 0.0, 1), True),
        ((0.0, 1.0, -5e-324, 1), False),
        ((0.0, 0.0, 0.0, 1), False),
        ((0.0, 1.0, 0.0, 0), False),
    ],
)
def test_searches_of_roots_start_from_usable_arguments(limit, usable):
    state = newton.newton_start(*limit)
    assert state.status == (status.RUNNING if usable else status.INVALID)
    x0, max_step, xtol, max_eval = limit
    expected = (
        x0 if usable else math.nan,
        math.nan,
        -math.inf,
        math.inf,
        math.inf,
        math.nan,
        max_step,
        xtol,
        0,
        max_eval,
    )
    np.testing.assert_equal(tuple(state)[:-1], expected)


@pytest.mark.parametrize(
    ("arguments", "usable"),
    [
        ((-1.7976931348623157e308, 1.0, 0.0, 1), True),
        ((-1.0, 1.7976931348623157e308, 0.0, 1), True),
        ((1.0, 1.0, 0.0, 1), False),
        ((0.0, 1.0, -5e-324, 1), False),
        ((0.0, 1.0, 0.0, 0), False),
        ((-math.inf, 1.0, 0.0, 1), False),
        ((0.0, math.inf, 0.0, 1), False),
    ],
)
def test_brackets_are_finite_and_ordered(arguments, usable):
    assert bool(status.usable_bracket(*arguments)) is usable


@pytest.mark.parametrize(
    ("converged", "fun", "n_eval", "expected"),
    [
        (True, 1.0, 3, status.CONVERGED),
        (False, 1.0, 3, status.RUNNING),
        (False, 1.0, 4, status.MAX_EVAL),
        (True, 1.0, 4, status.CONVERGED),
        (True, 1.7976931348623157e308, 3, status.NOT_FINITE),
        (False, 1.7976931348623157e308, 4, status.NOT_FINITE),
        (False, 1.7976931348623157e308, 3, status.RUNNING),
    ],
)
def test_how_a_minimisation_ends(converged, fun, n_eval, expected):
    assert status.minimum_status(converged, fun, n_eval, 4) == expected
    assert status.minimum(2.0, fun, n_eval, expected).fun == (1.0 if fun == 1.0 else math.inf)


def test_limits_of_evaluations_fit_into_64_bits():
    assert status.read_limits(0, 2**70) == (0.0, 2**62)
    assert status.read_limits(np.float32(0.5), np.int8(1)) == (0.5, 1)
    with pytest.raises(TypeError, match=r"max_eval must be a whole number, got 1\.5"):
        status.read_limits(0.0, 1.5)
    with pytest.raises(ValueError, match="max_eval must be at least 1, got 0"):
        status.read_limits(0.0, 0)
    with pytest.raises(ValueError, match=r"xtol must not be negative, got -1\.0"):
        status.read_limits(-1.0, 5)


def brent_by_netlib(s, f):
    """Return the fields of Brent's state after one step by netlib's fmin from state `s`, given the finite value `f`."""
    x, w, v, fx, fw, fv, u, a, b, d, e = s.best, s.w, s.v, s.fun, s.fw, s.fv, s.x, s.a, s.b, s.d, s.e
    if f <= fx:
        a, b = (a, x) if u < x else (x, b)
        v, w, x, fv, fw, fx = w, x, u, fw, fx, f
    else:
        a, b = (u, b) if u < x else (a, u)
        if f <= fw or w == x:
            v, w, fv, fw = w, u, fw, f
        elif f <= fv or v in (x, w):
            v, fv = u, f
    xm, tol = 0.5 * (a + b), 2.0**-26 * abs(x) + s.xtol / 3.0
    if abs(x - xm) <= 2.0 * tol - 0.5 * (b - a):
        return x, a, b, x, w, v, fx, fw, fv, d, e
    p = q = r = 0.0
    if abs(e) > tol:
        r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
        p, q = (x - v) * q - (x - w) * r, 2.0 * (q - r)
        p, q = (-p, q) if q > 0.0 else (p, -q)
        r, e = e, d
    if abs(p) >= abs(0.5 * q * r) or p <= q * (a - x) or p >= q * (b - x):
        e = b - x if x < xm else a - x
        d = status.GOLDEN * e
    else:
        d = p / q
        if x + d - a < 2.0 * tol or b - (x + d) < 2.0 * tol:
            d = tol if x < xm else -tol
    u = x + (d if abs(d) >= tol else tol if d > 0.0 else -tol)
    return u, a, b, x, w, v, fx, fw, fv, d, e


def test_every_step_of_brent_is_that_of_netlib():
    """Compare steps with `brent_by_netlib` for 3,000 random states and values.

    States and values are drawn from a coarse grid, so that ties and steps equal to a limit occur.
    """
    rng = np.random.default_rng(5)
    for _ in range(3000):
        a, b = -float(rng.choice([0.5, 1.0, 2.0])), float(rng.choice([1.0, 2.0, 4.0]))
        inside = np.arange(a + 0.25, b, 0.25)
        u, x, w, v = (float(each) for each in rng.choice(inside, 4) * rng.choice([0.0, 1.0, 1.0], 4))
        fun, fw, fv = (float(each) for each in np.sort(rng.choice([0.0, 0.25, 0.5, 1.0], 3)))
        d, e = (float(each) for each in rng.choice([-1.0, -0.5, 0.125, 0.5, 1.0, 2.0], 2))
        xtol, f = float(rng.choice([0.0, 0.375, 1.5])), float(rng.choice([-0.25, 0.0, 0.25, 0.5, 0.75, 1.5]))
        state = brent_kernels.BrentState(u, a, b, x, w, v, fun, fw, fv, d, e, xtol, 3, 90, status.RUNNING)
        found = brent_kernels.brent_step(state, f)
        assert found[:11] == brent_by_netlib(state, f)
        assert found[11:14] == (xtol, 4, 90)
