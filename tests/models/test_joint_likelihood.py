"""Newton's method of joint fits on functions whose minima and intervals are known, and the likelihood itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from powerkern._models.joint_likelihood import (
    MAX_EVAL,
    JointEvaluation,
    JointLikelihood,
    Singular,
    inverse_hessian,
    minimize,
    minimize_from_starts,
    newton,
    profile_ends,
)
from powerkern._status import JointStatus
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON


class Surface:
    """A stand-in for a joint likelihood of two lambdas.

    It is the sum of f over the two coordinates of the lambdas rotated by `angle`. `df` and `d2f` are the derivatives of
    f; all three take an array of two coordinates. Evaluation raises `Singular` where `singular(lmbda)` is true.
    """

    def __init__(self, f, df, d2f, angle=0.3, singular=lambda x: False):
        self._functions, self._singular = (f, df, d2f), singular
        self._rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        self.points = []

    def evaluate(self, lmbda, tolerance=0.0):
        self.points.append(lmbda)
        if self._singular(lmbda):
            raise Singular(np.array([0, 1]))
        x = self._rotation @ lmbda
        f, df, d2f = (function(x) for function in self._functions)
        return JointEvaluation(float(f.sum()), self._rotation.T @ df, self._rotation.T @ np.diag(d2f) @ self._rotation)


def quadratic(curvature, center=0.0):
    curvature = np.asarray(curvature)
    return Surface(
        lambda x: 0.5 * curvature * (x - center) ** 2, lambda x: curvature * (x - center), lambda x: curvature + 0.0 * x
    )


def two_wells():
    """Return a function with minima at 1 and, lower, at about -1 in the first coordinate."""
    slope = np.array([0.1, 0.0])
    return Surface(
        lambda x: np.array([0.25 * (x[0] ** 2 - 1.0) ** 2 + 0.1 * x[0], 0.5 * x[1] ** 2]),
        lambda x: np.array([x[0] * (x[0] ** 2 - 1.0), x[1]]) + slope,
        lambda x: np.array([3.0 * x[0] ** 2 - 1.0, 1.0]),
    )


HESSIANS = [
    np.array([[2.0, 0.3], [0.3, 1.0]]),
    np.array([[2e12, 3e-1], [3e-1, 1e-12]]),
    np.diag([3.0, 5.0, 0.25]),
    np.array([[4.0]]),
]


@pytest.mark.parametrize("hessian", HESSIANS, ids=lambda h: f"{len(h)}x{len(h)}")
def test_newton_steps_and_inverses_solve_the_equations(hessian):
    gradient = np.arange(1.0, len(hessian) + 1.0) * np.sqrt(np.diag(hessian))
    step = newton(JointEvaluation(1.0, gradient, hessian))
    scale = np.sqrt(np.diag(hessian))
    np.testing.assert_allclose(hessian @ step.step / scale, -gradient / scale, rtol=1e-13)
    assert step.decrement == pytest.approx(-gradient @ step.step, rel=1e-13)
    assert step.convex
    inverse = inverse_hessian(hessian)
    np.testing.assert_allclose(
        (hessian @ inverse) / np.outer(scale, 1.0 / scale), np.eye(len(hessian)), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize(
    "hessian",
    [np.diag([1.0, -1.0]), np.zeros((2, 2)), np.diag([1.0, 0.0]), np.ones((2, 2)), np.array([[1.0, 3.0], [3.0, 1.0]])],
)
def test_steps_descend_where_the_hessian_is_not_positive_definite(hessian):
    gradient = np.array([0.5, -2.0])
    step = newton(JointEvaluation(0.0, gradient, hessian))
    assert not step.convex
    assert gradient @ step.step < 0.0
    assert step.decrement == pytest.approx(-gradient @ step.step, rel=1e-12)
    assert inverse_hessian(hessian) is None


@pytest.mark.parametrize("center", [0.0, 3.0])
def test_a_quadratic_is_minimised_in_two_steps_and_certified(center):
    surface = quadratic([2.0, 5.0], center)
    found = minimize(surface, np.array([7.0, -4.0]))
    assert found.status == JointStatus.CONVERGED
    np.testing.assert_allclose(found.lmbda, surface._rotation.T @ [center, center], rtol=0, atol=1e-12)
    assert found.n_eval == len(surface.points) == 3  # the start, the minimum, and a last step from there
    assert abs(found.at.f) < 1e-20


def test_steps_are_halved_until_the_function_falls():
    surface = Surface(
        lambda x: np.log(np.cosh(x)), lambda x: np.tanh(x), lambda x: 1.0 / np.cosh(x) ** 2
    )  # full steps from 2 diverge
    found = minimize(surface, surface._rotation.T @ [2.0, -2.5])
    assert found.status == JointStatus.CONVERGED
    assert found.n_eval == len(surface.points)
    np.testing.assert_allclose(found.lmbda, 0.0, rtol=0, atol=1e-7)
    values = [surface.evaluate(point).f for point in list(surface.points)]
    assert min(values) == found.at.f


def test_a_search_that_leads_to_dependence_raises_and_one_past_it_goes_on():
    far = Surface(lambda x: -x, lambda x: -np.ones(2), lambda x: np.full(2, 1e-9), singular=lambda x: x.any())
    with pytest.raises(Singular):
        minimize(far, np.zeros(2))
    wall = Surface(*quadratic([1.0, 1.0])._functions, singular=lambda x: abs(x - 1.0).max() < 0.2)
    found = minimize(wall, np.array([2.0, 2.0]))  # the first step ends at the minimum, past the wall
    assert found.status == JointStatus.CONVERGED


def test_searches_without_a_minimum_end():
    """The function falls without end, or is not finite at the start."""
    surface = Surface(lambda x: -x, lambda x: -np.ones(2), lambda x: -np.ones(2), singular=lambda x: abs(x).max() > 1e6)
    found = minimize(surface, np.zeros(2))
    assert found.status == JointStatus.NOT_CONVERGED
    assert MAX_EVAL <= found.n_eval < 2 * MAX_EVAL
    nowhere = Surface(lambda x: np.full(2, np.inf), lambda x: np.ones(2), lambda x: np.ones(2))
    found = minimize(nowhere, np.ones(2))
    assert (found.status, found.n_eval) == (JointStatus.NOT_CONVERGED, 1)


def test_the_lowest_of_the_minima_from_several_starts_is_found_and_marked():
    surface = two_wells()
    start = [surface._rotation.T @ np.array(point) for point in ([1.5, 0.3], [-1.5, 0.2], [1.2, 0.0])]
    alone = minimize(surface, start[1])
    singles = sum(minimize(two_wells(), point).n_eval for point in start)
    found = minimize_from_starts(surface, start)
    np.testing.assert_allclose(found.lmbda, alone.lmbda, rtol=0, atol=1e-9)
    assert found.status == JointStatus.SEVERAL_OPTIMA
    assert found.n_eval == singles
    again = minimize_from_starts(surface, [start[1], start[0]])
    np.testing.assert_allclose(again.lmbda, alone.lmbda, rtol=0, atol=1e-9)
    assert again.status == JointStatus.SEVERAL_OPTIMA
    same = minimize_from_starts(surface, [start[0], start[2]])
    assert same.status == JointStatus.CONVERGED
    assert same.lmbda @ surface._rotation[0] > 0.5


def test_a_start_that_is_singular_is_passed_over_unless_it_is_the_first():
    surface = Surface(*quadratic([1.0, 2.0])._functions, singular=lambda x: x[0] > 10.0)
    found = minimize_from_starts(surface, [np.ones(2), np.full(2, 99.0)])
    assert found.status == JointStatus.CONVERGED
    with pytest.raises(Singular):
        minimize_from_starts(surface, [np.full(2, 99.0), np.ones(2)])


@pytest.mark.parametrize("drop", [1e-3, 1.9])
def test_profile_intervals_of_a_quadratic_are_walds(drop):
    surface = quadratic([2.0, 5.0])
    ends = profile_ends(surface, np.zeros(2), drop)
    covariance = np.linalg.inv(surface.evaluate(np.zeros(2)).hessian)
    width = np.sqrt(2.0 * drop * np.diag(covariance))
    np.testing.assert_allclose(ends, [-width, width], rtol=1e-10)


def test_profile_intervals_end_where_the_profile_has_fallen():
    surface = Surface(
        lambda x: np.cosh(x) + 0.2 * x**3, lambda x: np.sinh(x) + 0.6 * x**2, lambda x: np.cosh(x) + 1.2 * x
    )
    best = minimize(surface, np.full(2, 0.1))
    drop = 0.4
    ends = profile_ends(surface, best.lmbda, drop)
    assert (ends[0] < best.lmbda).all()
    assert (ends[1] > best.lmbda).all()
    for side in ends:
        for j, end in enumerate(side):
            grid = best.lmbda[1 - j] + np.linspace(-3.0, 3.0, 60_001)
            points = np.empty((grid.size, 2))
            points[:, j], points[:, 1 - j] = end, grid
            x = points @ surface._rotation.T
            profile = (np.cosh(x) + 0.2 * x**3).sum(axis=1).min()
            assert profile == pytest.approx(best.at.f + drop, abs=1e-7)


def plain_likelihood(X, lmbda, family, weight, covariates):
    """Return the joint negative log-likelihood per observation by its definition, up to an additive constant.

    Parameters
    ----------
    X : (n, p) ndarray
        The responses.
    lmbda : (p,) ndarray
        Their lambdas.
    family : int
        BOX_COX or YEO_JOHNSON.
    weight : (n,) ndarray or None
        Weights of the rows.
    covariates : (n, k) ndarray
        The covariates, including a column of ones for an intercept.
    """
    w = np.ones(len(X)) if weight is None else weight
    w = w / w.sum()
    psi = special.boxcox if family == BOX_COX else yeo_johnson
    y = np.column_stack([psi(x, one) for x, one in zip(X.T, lmbda, strict=True)])
    root = np.sqrt(w)[:, np.newaxis]
    coef = np.linalg.lstsq(covariates * root, y * root, rcond=None)[0]
    rest = (y - covariates @ coef) * root
    logs = np.log(X) if family == BOX_COX else np.sign(X) * np.log1p(abs(X))
    return 0.5 * np.linalg.slogdet(rest.T @ rest)[1] - ((lmbda - 1.0) * (w @ logs)).sum()


def yeo_johnson(x, lmbda):
    return np.where(
        x >= 0.0, special.boxcox1p(np.maximum(x, 0.0), lmbda), -special.boxcox1p(np.maximum(-x, 0.0), 2.0 - lmbda)
    )


@pytest.mark.parametrize("family", [BOX_COX, YEO_JOHNSON])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_covariates", [0, 2])
def test_likelihood_and_derivatives_are_those_of_the_definition(family, is_weighted, n_covariates):
    rng = np.random.default_rng(n_covariates)
    X = rng.lognormal(sigma=0.4, size=(40, 3)) - (family == YEO_JOHNSON)
    X[:, 1] += 0.5 * abs(X[:, 0])
    weight = rng.uniform(0.5, 3.0, 40) if is_weighted else None
    design = np.column_stack([np.ones(40), rng.normal(size=(40, n_covariates))])
    root = np.ones((40, 1)) if weight is None else np.sqrt(weight)[:, np.newaxis]
    basis = np.linalg.qr(design * root)[0].T if n_covariates else np.empty((0, 40))
    likelihood = JointLikelihood(np.ascontiguousarray(X.T), family, weight, np.ascontiguousarray(basis), 1)
    order = likelihood.order

    def f(lmbda):
        return plain_likelihood(X, lmbda, family, weight, design)

    at = np.array([0.3, 0.9, 1.4])
    found = likelihood.evaluate(at[order])
    other = np.array([0.5, 0.2, 1.1])
    assert found.f - likelihood.evaluate(other[order]).f == pytest.approx(f(at) - f(other), abs=1e-10)
    h = 1e-4
    steps = h * np.eye(3)
    gradient = [(f(at + d) - f(at - d)) / (2 * h) for d in steps]
    np.testing.assert_allclose(likelihood.restore_order(found.gradient), gradient, rtol=0, atol=1e-6)
    hessian = [
        [(f(at + d + e) - f(at + d - e) - f(at - d + e) + f(at - d - e)) / (4 * h * h) for e in steps] for d in steps
    ]
    np.testing.assert_allclose(likelihood.restore_order(found.hessian), hessian, rtol=0, atol=1e-5)
    one = likelihood.column(1)
    assert one.n_columns == 1
    j = order[1]
    alone = plain_likelihood(X[:, j : j + 1], at[j : j + 1], family, weight, design)
    moved = plain_likelihood(X[:, j : j + 1], other[j : j + 1], family, weight, design)
    values = one.evaluate(at[j : j + 1]).f, one.evaluate(other[j : j + 1]).f
    assert values[0] - values[1] == pytest.approx(alone - moved, abs=1e-11)


def test_dependent_columns_are_named_without_the_others():
    rng = np.random.default_rng(0)
    a, b, c = rng.lognormal(size=(3, 30))
    for columns, expected in (([a, b, c, a], [0, 3]), ([c, a, b, a + 2.0 * c], [0, 1, 3]), ([b, b, a], [0, 1])):
        likelihood = JointLikelihood(np.array(columns), BOX_COX, None, np.empty((0, 30)), 1)
        with pytest.raises(Singular) as caught:
            likelihood.evaluate(np.ones(len(columns)))
        assert caught.value.columns.tolist() == expected
    basis = np.linalg.qr(np.column_stack([np.ones(30), b]))[0].T
    likelihood = JointLikelihood(np.array([a, b, c]), BOX_COX, None, np.ascontiguousarray(basis), 1)
    with pytest.raises(Singular) as caught:
        likelihood.evaluate(np.ones(3))
    assert caught.value.columns.tolist() == [1]
