"""Likelihood of columns that are jointly normal after their transforms, with derivatives, minimisation and intervals.

    f(lambda) = 1/2 ln det S(lambda) - sum_j (lambda_j - 1) mean(J_j)

Up to a constant, f is the negative log-likelihood per observation. For the values x of column j, J_j is ln x, or
sign(x) ln(1 + |x|) under Yeo-Johnson. S is the covariance (1/n) of the transformed columns, or of their residuals given
a design (Andrews, Gnanadesikan & Warner 1971; Velilla 1993). See docs/numerics: Joint fits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from powerkern._engine.by_column import derivative_matrix
from powerkern._engine.products import cholesky, combine, cross, invert_lower
from powerkern._status import JointStatus
from powerkern._typing import FloatArray, IntArray, Weights
from powerkern.kernels.likelihood.joint_derivatives import JACOBIAN, G

#: The covariance of p columns is singular if 1 minus the squared multiple correlation of a column with the others is
#: less than p times this.
_SINGULAR = 1e-14
#: Tolerance that replaces _SINGULAR at the last point of a search that did not converge.
_NEARLY_SINGULAR = 1e-6
#: A column belongs to a linear relation if its coefficient, in standard deviations, exceeds this.
_INVOLVED = 1e-6

#: The search takes a last Newton step if the predicted decrease of f is below this; the error that remains is about the
#: square of the decrease.
_DECREASE = 1e-12
MAX_EVAL = 200
_MAX_HALVINGS = 60
_ROUNDING = 1e-13

#: Tolerance that replaces _DECREASE at the ends of intervals, relative to the drop of the log-likelihood there.
_END_DECREASE = 1e-14

#: Rounding error of f, in units of the larger of |f| and 1.
_ROUNDING_OF_F = 16.0 * np.finfo(float).eps
_MAX_END_EVAL = 50


class Singular(Exception):
    """Exception for a singular covariance; `columns` are the positions of columns that are linearly dependent."""

    def __init__(self, columns: IntArray) -> None:
        super().__init__(columns)
        self.columns = columns


class JointEvaluation(NamedTuple):
    """The joint negative log-likelihood f per observation, its gradient (p,) and its Hessian (p, p), at one point."""

    f: float
    gradient: FloatArray
    hessian: FloatArray


class NewtonStep(NamedTuple):
    """A Newton step that minimises the joint negative log-likelihood f."""

    #: The step, (p,).
    step: FloatArray
    #: Twice the predicted decrease of f.
    decrement: float
    #: True if the Hessian is positive definite.
    convex: bool


class JointMinimum(NamedTuple):
    """Result of a search for a minimum of the joint negative log-likelihood, with number of evaluations and status."""

    lmbda: FloatArray
    at: JointEvaluation
    n_eval: int
    status: JointStatus


class JointLikelihood:
    """The joint likelihood of a set of columns.

    Parameters
    ----------
    columns : (p, n) ndarray
        The columns: contiguous, without missing values, inside the domain.
    family : int
        A code of `kernels.transforms.family`.
    weight : (n,) ndarray
        Positive weights of the rows; None: all one.
    basis : (rank, n) ndarray
        Orthonormal basis of the design, already multiplied by the roots of the weights. If the design is only an
        intercept, an empty basis (0, n) may be passed instead.
    n_threads : int
        Maximum number of threads.

    Notes
    -----
    Columns are sorted by a digest of their values, so that results do not depend on the order in which columns are
    passed. `order` holds the original positions of the sorted columns, and `restore_order` undoes the sort. The object
    holds four work arrays of the size of the columns.
    """

    def __init__(self, columns: FloatArray, family: int, weight: Weights, basis: FloatArray, n_threads: int) -> None:
        p, n = columns.shape
        digests = [hashlib.sha256(column, usedforsecurity=False).digest() for column in columns]
        self.order = np.array(sorted(range(p), key=digests.__getitem__))
        self._columns = columns[self.order]
        self._family, self._weight, self._basis, self._n_threads = family, weight, basis, n_threads
        self._root = np.full(n, math.sqrt(1.0 / n)) if weight is None else np.sqrt(weight / weight.sum())
        self._y, self._y1, self._y2, self._spare = (np.empty((p, n)) for _ in range(4))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self._columns)

    def restore_order(self, results: FloatArray) -> FloatArray:
        """Undo the sort of columns along every axis of `results`, which is a vector (p,) or a matrix (p, p)."""
        place = np.argsort(self.order)
        return results[np.ix_(*(place,) * results.ndim)]

    def column(self, j: int) -> JointLikelihood:
        """Return the likelihood of column `j` (in sorted order) alone."""
        one = self._columns[j : j + 1]
        return JointLikelihood(one, self._family, self._weight, self._basis, self._n_threads)

    def evaluate(self, lmbda: FloatArray, tolerance: float = _SINGULAR) -> JointEvaluation:
        """Return the negative log-likelihood f per observation and its derivatives at `lmbda`, (p,).

        f is infinite if a transform overflows.

        Raises
        ------
        Singular
            If, for a transformed column or its residuals, 1 minus the squared multiple correlation with the other
            columns is less than `tolerance` times p.
        """
        with np.errstate(all="ignore"):
            return self._evaluate(np.array(lmbda, dtype=np.float64), tolerance)

    def _evaluate(self, lmbda: FloatArray, tolerance: float) -> JointEvaluation:
        """Implement `evaluate`, which describes the arguments and suppresses floating-point warnings."""
        y, y1, y2, spare, threads = self._y, self._y1, self._y2, self._spare, self._n_threads
        out = (y, y1, y2)
        rows = derivative_matrix(self._columns.T, self._family, lmbda, self._weight, self._root, out, threads)
        f = float(rows[:, G].sum())
        if not (math.isfinite(f) and all(math.isfinite(float(part.sum())) for part in out)):
            return JointEvaluation(math.inf, np.full(len(lmbda), math.nan), np.full((len(lmbda),) * 2, math.nan))
        f += self._replace_by_residuals(out, tolerance)
        factor = self._orthonormalize(y, tolerance * len(y))
        # y = factor q with q q^T = I; a_jk = (S^-1 cov(y, y'_k))_j
        inverse = invert_lower(factor)
        shares = cross(y, y1, threads)
        a = combine(inverse.T, shares)
        bend = np.einsum("kj,kj->j", inverse, cross(y, y2, threads))
        y1 -= combine(shares.T, y, spare, threads)
        hessian = combine(inverse.T, inverse) * cross(y1, y1, threads) - a * a.T
        hessian[np.diag_indices_from(hessian)] += bend
        f += float(np.log(np.diag(factor)).sum())
        return JointEvaluation(f, np.diag(a) - rows[:, JACOBIAN], hessian)

    def _replace_by_residuals(self, out: tuple[FloatArray, ...], tolerance: float) -> float:
        """Replace psi, psi', psi'' in `out` by residuals given the design, divided by the norm of the residual of psi.

        Return the sum of the logs of these norms. `tolerance` is as in `evaluate`.
        """
        if not len(self._basis):
            return 0.0
        for part in out:
            part -= combine(cross(part, self._basis, self._n_threads), self._basis, self._spare, self._n_threads)
        norms = np.sqrt(np.einsum("ij,ij->i", out[0], out[0]))
        fitted = ~(norms**2 > tolerance)
        if fitted.any():
            raise Singular(np.sort(self.order[fitted]))
        for part in out:
            part /= norms[:, np.newaxis]
        return float(np.log(norms).sum())

    def _orthonormalize(self, y: FloatArray, tolerance: float) -> FloatArray:
        """Replace the rows of `y` by orthonormal rows q with ``y = factor q``; return the lower triangular factor.

        The Cholesky factorisation of y y^T is applied twice. The second pass removes the correlation that rounding
        errors leave after the first. A row is singular if its pivot, squared, is at most `tolerance`.
        """
        first, rank = cholesky(cross(y, y, self._n_threads))
        small = np.diag(first)[:rank] ** 2 <= tolerance
        if rank < len(y) or small.any():
            raise self._singular_error(first, int(np.argmax(small)) if small.any() else rank, y)
        combine(invert_lower(first), y, self._spare, self._n_threads)
        second, _ = cholesky(cross(self._spare, self._spare, self._n_threads))
        combine(invert_lower(second), self._spare, y, self._n_threads)
        return combine(first, second)

    def _singular_error(self, factor: FloatArray, j: int, y: FloatArray) -> Singular:
        """Return the exception that names a linearly dependent row of `y` and the rows on which it depends.

        `j` is the position of the first dependent row, and `factor` the Cholesky factor of the rows before it.
        """
        inverse = invert_lower(np.ascontiguousarray(factor[:j, :j]))
        half = combine(inverse, cross(y[:j], y[j : j + 1]))[:, 0]
        coefficients = np.einsum("k,kl->l", half, inverse)
        involved = np.append(np.flatnonzero(abs(coefficients) > _INVOLVED), j)
        return Singular(np.sort(self.order[involved]))


def newton(at: JointEvaluation) -> NewtonStep:
    """Return the Newton step; a multiple of the diagonal is added to a Hessian that is not positive definite."""
    diagonal = abs(np.diag(at.hessian))
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled, ridge = at.hessian / np.outer(scale, scale), 0.0
    while True:
        factor, rank = cholesky(scaled + ridge * np.eye(len(scale)))
        if rank == len(scale):
            break
        ridge = 10.0 * ridge if ridge > 0.0 else 1e-3
    half = np.einsum("ij,j->i", invert_lower(factor), at.gradient / scale)
    step = -np.einsum("ij,i->j", invert_lower(factor), half) / scale
    return NewtonStep(step, float(half @ half), ridge == 0.0)


def inverse_hessian(hessian: FloatArray) -> FloatArray | None:
    """Invert a Hessian; return None if it is not positive definite."""
    scale = np.sqrt(abs(np.diag(hessian)))
    if not (scale > 0.0).all():
        return None
    units = np.outer(scale, scale)
    factor, rank = cholesky(hessian / units)
    if rank < len(scale):
        return None
    inverse = invert_lower(factor)
    return np.asarray(combine(inverse.T, inverse) / units)


def minimize(likelihood: JointLikelihood, start: FloatArray) -> JointMinimum:
    """Find a local minimum of the negative log-likelihood f by Newton's method with backtracking, from `start`, (p,).

    Raises
    ------
    Singular
        If the covariance is singular at the start, or at lambdas that the search approaches because f has no lower
        bound.
    """
    lmbda, at, n_eval = start, likelihood.evaluate(start), 1
    while n_eval < MAX_EVAL and math.isfinite(at.f):
        step = newton(at)
        if step.convex and step.decrement <= _DECREASE:
            last = likelihood.evaluate(lmbda + step.step)
            return JointMinimum(lmbda + step.step, last, n_eval + 1, _convergence_status(last))
        tried = _backtrack(likelihood, lmbda, at, step)
        n_eval += tried.n_eval
        if tried.at is at:
            break
        lmbda, at = tried.lmbda, tried.at
    likelihood.evaluate(lmbda, _NEARLY_SINGULAR)  # raises if the search ended near linear dependence
    return JointMinimum(lmbda, at, n_eval, JointStatus.NOT_CONVERGED)


def _convergence_status(at: JointEvaluation) -> JointStatus:
    """Return CONVERGED if the next Newton step would be negligible, otherwise NOT_CONVERGED."""
    step = newton(at)
    converged = step.convex and step.decrement <= _DECREASE
    return JointStatus.CONVERGED if converged else JointStatus.NOT_CONVERGED


def _backtrack(likelihood: JointLikelihood, lmbda: FloatArray, at: JointEvaluation, step: NewtonStep) -> JointMinimum:
    """Halve a Newton step until the negative log-likelihood f decreases enough; return `at` itself if f never does.

    Parameters
    ----------
    likelihood : JointLikelihood
        The likelihood.
    lmbda : (p,) ndarray
        Lambdas from which the step starts.
    at : JointEvaluation
        Evaluation at `lmbda`.
    step : NewtonStep
        The step, with its predicted decrease.
    """
    fraction, singular = 1.0, None
    for k in range(1, _MAX_HALVINGS + 1):
        trial = lmbda + fraction * step.step
        try:
            found = likelihood.evaluate(trial)
        except Singular as error:
            singular = error
        else:
            if found.f <= at.f - 1e-4 * fraction * step.decrement + _ROUNDING * (1.0 + abs(at.f)):
                return JointMinimum(trial, found, k, JointStatus.NOT_CONVERGED)
        fraction *= 0.5
    if singular is not None:
        raise singular
    return JointMinimum(lmbda, at, _MAX_HALVINGS, JointStatus.NOT_CONVERGED)


def choose_start(likelihood: JointLikelihood, start: FloatArray, has_covariates: bool) -> FloatArray:
    """Return the lambdas from which the joint search starts.

    `start` holds the optimum of each column without covariates. If `has_covariates`, return the optimum of each column
    of `likelihood` given the covariates, searched from `start`.
    """
    if not has_covariates:
        return start
    return np.array([_optimize_column(likelihood, j, start[j : j + 1]) for j in range(len(start))])


def _optimize_column(likelihood: JointLikelihood, j: int, start: FloatArray) -> float:
    """Return the optimal lambda of column `j` alone, searched from `start`, (1,)."""
    try:
        return float(minimize(likelihood.column(j), start).lmbda[0])
    except Singular:
        raise Singular(likelihood.order[j : j + 1]) from None


def minimize_from_starts(likelihood: JointLikelihood, starts: list[FloatArray]) -> JointMinimum:
    """Return the lowest minimum of searches from several starts; `n_eval` counts the evaluations of all searches."""
    found = minimize(likelihood, starts[0])
    n_eval, several = found.n_eval, False
    for start in starts[1:]:
        try:
            other = minimize(likelihood, start)
        except Singular:
            continue
        n_eval += other.n_eval
        if other.status == JointStatus.CONVERGED:
            several |= found.status == JointStatus.CONVERGED and _are_distinct(found, other)
            if found.status != JointStatus.CONVERGED or other.at.f < found.at.f - _ROUNDING * (1.0 + abs(found.at.f)):
                found = other
    status = JointStatus.SEVERAL_OPTIMA if several else found.status
    return JointMinimum(found.lmbda, found.at, n_eval, status)


def _are_distinct(one: JointMinimum, other: JointMinimum) -> bool:
    """Return whether two minima differ: f, expanded to second order about `one`, is noticeably larger at `other`."""
    d = other.lmbda - one.lmbda
    return float(np.einsum("i,ij,j->", d, one.at.hessian, d)) > 1e4 * _DECREASE


# --- intervals ------------------------------------------------------------------------------------------


def profile_ends(likelihood: JointLikelihood, lmbda: FloatArray, drop: float) -> FloatArray:
    """Return the ends of profile intervals for each lambda, (2, p); NaN for ends that cannot be computed.

    At an end, f minimised over the other lambdas is `drop` above its minimum, which is at `lmbda`. If `drop` is below
    the rounding error of f, a computed end may be on the wrong side of `lmbda`; it is then set to `lmbda`.
    """
    best = likelihood.evaluate(lmbda)
    covariance = inverse_hessian(best.hessian)
    ends = np.full((2, len(lmbda)), math.nan)
    if covariance is not None:
        for j in range(len(lmbda)):
            step = math.sqrt(2.0 * drop / covariance[j, j]) * covariance[j]
            ends[0, j] = _profile_end(likelihood, best, lmbda, -step, j, drop)
            ends[1, j] = _profile_end(likelihood, best, lmbda, step, j, drop)
    return np.stack([np.minimum(ends[0], lmbda), np.maximum(ends[1], lmbda)])


def _profile_end(
    likelihood: JointLikelihood, best: JointEvaluation, lmbda: FloatArray, step: FloatArray, j: int, drop: float
) -> float:
    """Return one end of the profile interval of lambda_j, on the side to which `step` points.

    The end solves ``f = f_min + drop, df/dlambda_k = 0 (k != j)``. Each iteration solves these equations for the
    second-order expansion of f (Venzon & Moolgavkar 1988).

    Parameters
    ----------
    likelihood : JointLikelihood
        The likelihood.
    best : JointEvaluation
        Evaluation at the minimum.
    lmbda : (p,) ndarray
        The minimum.
    step : (p,) ndarray
        First step from the minimum.
    j : int
        Position of the lambda.
    drop : float
        Increase of f from the minimum to the end.
    """
    side = math.copysign(1.0, step[j])
    rounding = _ROUNDING_OF_F * max(abs(best.f), 1.0)
    enough = _END_DECREASE * drop + rounding**2 / (2.0 * drop)
    for _ in range(_MAX_END_EVAL):
        found = _evaluate_step(likelihood, lmbda, step)
        reduced = None if found is None else _make_profile_step(found[1], j)
        if found is None or reduced is None:
            break
        lmbda, step = found[0], reduced(best.f + drop, side)
        if float(np.einsum("i,ij,j->", step, best.hessian, step)) <= enough:
            return float(lmbda[j] + step[j])
    return math.nan


def _evaluate_step(
    likelihood: JointLikelihood, lmbda: FloatArray, step: FloatArray
) -> tuple[FloatArray, JointEvaluation] | None:
    """Take `step` from `lmbda`, halved until the likelihood is finite; return the new point and evaluation, or None."""
    for _ in range(_MAX_HALVINGS):
        try:
            at = likelihood.evaluate(lmbda + step)
        except Singular:
            return None
        if math.isfinite(at.f):
            return lmbda + step, at
        step = 0.5 * step
    return None


def _make_profile_step(at: JointEvaluation, j: int) -> Callable[[float, float], FloatArray] | None:
    """Return a function that computes the step to a point where the profile of lambda_j has a given value.

    The profile, which is the negative log-likelihood minimised over the other lambdas, is expanded to second order
    about `at`. Return None if the Hessian in the other lambdas is not positive definite, so that there is no profile.
    The function takes the value and the sign of the step in lambda_j.
    """
    others = np.arange(len(at.gradient)) != j
    inverse = inverse_hessian(at.hessian[np.ix_(others, others)])
    if inverse is None:
        return None
    g, h = at.gradient[others], at.hessian[others, j]
    to_profile = np.einsum("ij,j->i", inverse, g)
    lean = np.einsum("ij,j->i", inverse, h)
    slope = float(at.gradient[j] - lean @ g)
    bend = float(at.hessian[j, j] - lean @ h)
    f = at.f - 0.5 * float(to_profile @ g)

    def step_to(value: float, side: float) -> FloatArray:
        along = side * max(side * slope, 0.0)
        root = math.sqrt(max(along * along - 2.0 * bend * (f - value), 0.0))
        speed = along + side * root
        step = np.empty(len(at.gradient))
        step[j] = -2.0 * (f - value) / speed if speed != 0.0 else 0.0
        step[others] = -to_profile - lean * step[j]
        return step

    return step_to
