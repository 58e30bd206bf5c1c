"""Scalar minimisers and a root finder in reverse communication: states that the caller steps.

A solver is a pair of kernels. ``*_start`` makes a state, ``*_step`` takes a state and the values found at
``state.x`` and gives the next state. Whoever holds the state evaluates the function: a jitted loop, a loop
over many columns in lockstep, or clients at the other end of a network. A state holds numbers only, so it
can be stored or sent. As long as ``state.status == RUNNING``, ``state.x`` is the point to evaluate next;
afterwards it is the answer::

    state = brent_start(a, b, xtol, max_eval)
    while state.status == RUNNING:
        state = brent_step(state, f(state.x))

`golden_section`, `brent` and `newton_root` are that loop. The module knows nothing of power transforms.

References
----------
.. [1] R. P. Brent, "Algorithms for Minimization without Derivatives", Prentice-Hall, 1973, chapter 5.
.. [2] J. Kiefer, "Sequential minimax search for a maximum", Proc. AMS 4, 1953, 502-506.
.. [3] J. F. Traub, "Iterative Methods for the Solution of Equations", Prentice-Hall, 1964 (Halley's method).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import compiled_as, fma, kernel
from powerkern.kernels.elementary.constants import EPS, SQRT_EPS

#: The answer is within the tolerance.
CONVERGED = 0
#: ``state.x`` waits to be evaluated.
RUNNING = 1
#: ``max_eval`` evaluations were made; ``x`` is the best point so far.
MAX_EVAL = 2
#: No finite function value, or no finite point, could be found.
NOT_FINITE = 3
#: The start was unusable: ``a < b`` does not hold, or an argument is not finite or not positive.
INVALID = 4

_GOLDEN = 0.3819660112501051  # (3 - sqrt(5))/2, the squared inverse of the golden ratio
_HUGE = 1.7976931348623157e308
_EXPANSION = 4.0  # growth of Newton's step cap while a side of the bracket is open


class GoldenState(NamedTuple):
    """Golden-section search: the bracket [a, b], the best point in it and the point to evaluate next."""

    x: float  #: point to evaluate next; the best point once the search is over
    a: float
    b: float
    best: float  #: best point so far
    fun: float  #: the function there
    xtol: float
    n_eval: int
    max_eval: int
    status: int


class BrentState(NamedTuple):
    """Brent's minimiser: the bracket [a, b] and the three best points, named as in his book."""

    x: float  #: point to evaluate next; the best point once the search is over
    a: float
    b: float
    best: float  #: best point so far (Brent's x)
    w: float  #: second best
    v: float  #: the w before
    fun: float  #: the function at best
    fw: float
    fv: float
    d: float  #: last step
    e: float  #: the step before it
    xtol: float
    n_eval: int
    max_eval: int
    status: int


class NewtonState(NamedTuple):
    """Bracketed Newton-Halley iteration: the point, the signs seen and the last step.

    A sign change was seen when lo and hi are both finite. An approach from one side ends without one.
    """

    x: float  #: point to evaluate next; the root once the search is over
    fun: float  #: the function at the last evaluated point
    lo: float  #: largest point where the function was negative, or -inf
    hi: float  #: smallest point where it was positive, or inf
    step: float  #: the step that led to x
    proposed: float  #: Halley's step at the last evaluated point, before the safeguards
    max_step: float  #: longest step allowed while the root is not bracketed
    xtol: float
    n_eval: int
    max_eval: int
    status: int


class Minimum(NamedTuple):
    """Result of a minimisation."""

    x: float  #: the minimiser
    fun: float  #: the function there
    n_eval: int  #: evaluations made
    status: int  #: `CONVERGED`, `MAX_EVAL`, `NOT_FINITE` or `INVALID`


class Root(NamedTuple):
    """Result of a root search."""

    x: float  #: the root
    fun: float  #: the function at the last evaluated point, one step before x
    n_eval: int  #: evaluations made
    status: int  #: `CONVERGED`, `MAX_EVAL`, `NOT_FINITE` or `INVALID`


# --- shared helpers -----------------------------------------------------------------------------------


@kernel
def _product_unfused(a, b):  # type: ignore[no-untyped-def]
    return fma(a, b, 0.0)


@compiled_as(_product_unfused)
def _product(a: float, b: float) -> float:
    """a*b rounded before it enters a sum, so that compiled and plain code visit the same points."""
    return a * b


@kernel
def _finite_or_huge(f: float) -> float:
    """Any value that is not finite counts as the worst one, as in R's optimize()."""
    return f if -_HUGE <= f <= _HUGE else _HUGE


@kernel
def _usable_bracket(a: float, b: float, xtol: float, max_eval: int) -> bool:
    return a >= -_HUGE and a < b and b <= _HUGE and xtol >= 0.0 and max_eval >= 1


@kernel
def _minimum_status(converged: bool, fun: float, n_eval: int, max_eval: int) -> int:
    if converged or n_eval >= max_eval:
        if fun == _HUGE:
            return NOT_FINITE
        return CONVERGED if converged else MAX_EVAL
    return RUNNING


# --- golden section -----------------------------------------------------------------------------------


@kernel
def golden_section_start(a: float, b: float, xtol: float, max_eval: int) -> GoldenState:
    """State that asks for the first point, a + 0.381966 (b - a)."""
    a, b = float(a), float(b)
    usable = _usable_bracket(a, b, xtol, max_eval)
    return GoldenState(
        x=a + _product(_GOLDEN, b - a) if usable else math.nan,
        a=a,
        b=b,
        best=a,  # the first point, which is better, leaves the bracket as it is
        fun=_HUGE,
        xtol=float(xtol),
        n_eval=0,
        max_eval=max_eval,
        status=RUNNING if usable else INVALID,
    )


@kernel
def golden_section_step(state: GoldenState, f: float) -> GoldenState:
    """Next state, given f at ``state.x``.

    Both outcomes of the comparison are prepared while f is being evaluated: a loop waits for f and one selection only.
    """
    better = ((f < state.fun) & (f >= -_HUGE)) | (state.n_eval == 0)
    fun = _finite_or_huge(float(f)) if better else state.fun
    if better:
        a, b, best, x = _shrunk(state.a, state.b, state.x, state.best)
    else:
        a, b, best, x = _shrunk(state.a, state.b, state.best, state.x)
    n_eval = state.n_eval + 1
    reach = max(best - a, b - best)
    status = _minimum_status(reach <= max(state.xtol, 4.0 * EPS * abs(best)), fun, n_eval, state.max_eval)
    return GoldenState(x if status == RUNNING else best, a, b, best, fun, state.xtol, n_eval, state.max_eval, status)


@kernel
def _shrunk(a: float, b: float, best: float, other: float) -> tuple[float, float, float, float]:
    """The bracket with the worse of two inner points as an end, the better one, and the next point.

    That lies in the longer part, and is measured from the end: errors do not grow.
    """
    a, b = other if other < best else a, b if other < best else other
    part = _product(_GOLDEN, b - a)
    return a, b, best, b - part if b - best > best - a else a + part


# --- Brent --------------------------------------------------------------------------------------------


@kernel
def brent_start(a: float, b: float, xtol: float, max_eval: int) -> BrentState:
    """State that asks for the first point, a + 0.381966 (b - a)."""
    a, b = float(a), float(b)
    usable = _usable_bracket(a, b, xtol, max_eval)
    x = a + _product(_GOLDEN, b - a) if usable else math.nan
    return BrentState(
        x=x,
        a=a,
        b=b,
        best=x,
        w=x,
        v=x,
        fun=_HUGE,
        fw=_HUGE,
        fv=_HUGE,
        d=0.0,
        e=0.0,
        xtol=float(xtol),
        n_eval=0,
        max_eval=max_eval,
        status=RUNNING if usable else INVALID,
    )


@kernel
def brent_step(state: BrentState, f: float) -> BrentState:
    """Next state, given f at ``state.x``: the point sequence of netlib's fmin and R's optimize()."""
    return _brent_propose(_brent_record(state, _finite_or_huge(float(f))))


@kernel
def _brent_record(state: BrentState, f: float) -> BrentState:
    """Put the new point among the best three and shrink the bracket."""
    u, a, b = state.x, state.a, state.b
    x, w, v = state.best, state.w, state.v
    fx, fw, fv = state.fun, state.fw, state.fv
    if state.n_eval == 0:
        fx, fw, fv = f, f, f
    elif f <= fx:
        if u < x:
            b = x
        else:
            a = x
        v, fv = w, fw
        w, fw = x, fx
        x, fx = u, f
    else:
        if u < x:
            a = u
        else:
            b = u
        if f <= fw or w == x:
            v, fv = w, fw
            w, fw = u, f
        elif f <= fv or v in (x, w):
            v, fv = u, f
    n_eval = state.n_eval + 1
    return BrentState(x, a, b, x, w, v, fx, fw, fv, state.d, state.e, state.xtol, n_eval, state.max_eval, state.status)


@kernel
def _brent_propose(state: BrentState) -> BrentState:
    """Stop, or take the parabola's minimum where it can be trusted and a golden-section step elsewhere."""
    a, b, x, w, v = state.a, state.b, state.best, state.w, state.v
    fx, fw, fv, d, e = state.fun, state.fw, state.fv, state.d, state.e
    middle = 0.5 * (a + b)
    tol = _product(SQRT_EPS, abs(x)) + state.xtol / 3.0
    converged = abs(x - middle) <= 2.0 * tol - 0.5 * (b - a)
    status = _minimum_status(converged, fx, state.n_eval, state.max_eval)
    u = x
    if status == RUNNING:
        p, q, r = 0.0, 0.0, 0.0
        if abs(e) > tol:
            r = _product(x - w, fx - fv)
            q = _product(x - v, fx - fw)
            p = _product(x - v, q) - _product(x - w, r)
            q = 2.0 * (q - r)
            p = -p if q > 0.0 else p
            q = abs(q)
            r = e
            e = d
        if abs(p) < abs(0.5 * q * r) and q * (a - x) < p and p < q * (b - x):
            d = p / q
            if x + d - a < 2.0 * tol or b - (x + d) < 2.0 * tol:  # not too close to the ends
                d = tol if x < middle else -tol
        else:
            e = b - x if x < middle else a - x
            d = _product(_GOLDEN, e)
        nudge = tol if d > 0.0 else -tol
        u = x + (d if abs(d) >= tol else nudge)  # not too close to x
    return BrentState(u, a, b, x, w, v, fx, fw, fv, d, e, state.xtol, state.n_eval, state.max_eval, status)


# --- Newton and Halley --------------------------------------------------------------------------------


@kernel
def newton_start(x0: float, max_step: float, xtol: float, max_eval: int) -> NewtonState:
    """State that asks for f, f' and f'' at x0."""
    x0, max_step = float(x0), float(max_step)
    usable = -_HUGE <= x0 <= _HUGE and 0.0 < max_step <= _HUGE and xtol >= 0.0 and max_eval >= 1
    return NewtonState(
        x=x0 if usable else math.nan,
        fun=math.nan,
        lo=-math.inf,
        hi=math.inf,
        step=math.inf,
        proposed=math.nan,
        max_step=max_step,
        xtol=float(xtol),
        n_eval=0,
        max_eval=max_eval,
        status=RUNNING if usable else INVALID,
    )


@kernel
def newton_step(state: NewtonState, f: float, df: float, d2f: float) -> NewtonState:
    """Next state, given an increasing f and its derivatives at ``state.x``.

    The sign of f closes one side of the bracket. The step is Halley's, or Newton's when d2f is 0 or too
    large. It is doubled as long as steps in one direction shrink too slowly; a bisection takes its place when
    it leaves the closed bracket, goes back by more than half the last step, or df is not a positive number. While
    a side is open the step is at most ``max_step``, which grows with every step cut. An infinite f counts by its
    sign; at a NaN half the last step is taken back.
    """
    f, df, d2f = float(f), float(df), float(d2f)
    x, lo, hi, max_step = state.x, state.lo, state.hi, state.max_step
    if f != f:
        step = 0.5 * state.step  # from the last good point, x - state.step
        x = x - state.step
        proposed = math.nan
        max_step = min(max_step, abs(step))
    elif f == 0.0:
        step, proposed = 0.0, 0.0
    else:
        if f < 0.0:
            lo = x
        else:
            hi = x
        step = proposed = _halley(f, df, d2f)
        slow = 0.5 * abs(state.proposed) < abs(proposed) <= abs(state.step)
        if slow and proposed * state.step > 0.0:
            step = 2.0 * state.step
        to_end = hi - x if f < 0.0 else lo - x
        if abs(to_end) <= _HUGE:
            swings = step * state.step < 0.0 and abs(step) > 0.5 * abs(state.step)
            if swings or not abs(step) < abs(to_end):
                step = 0.5 * to_end
        elif not abs(step) <= max_step:
            step = math.copysign(max_step, -f)
            max_step *= _EXPANSION

    n_eval = state.n_eval + 1
    status = RUNNING
    if not abs(x + step) <= _HUGE:
        status = NOT_FINITE
    elif abs(step) <= max(state.xtol, EPS * abs(x)):
        status = CONVERGED if f == f else NOT_FINITE
    elif n_eval >= state.max_eval:
        status = MAX_EVAL
    x_next = x + step if status in (RUNNING, CONVERGED) else x
    return NewtonState(x_next, f, lo, hi, step, proposed, max_step, state.xtol, n_eval, state.max_eval, status)


@kernel
def _halley(f: float, df: float, d2f: float) -> float:
    """Halley's step -f/(df - f d2f/(2 df)), Newton's when the correction is not small, NaN without either."""
    if not (abs(f) <= _HUGE and df > 0.0 and df <= _HUGE):
        return math.nan
    newton = f / df
    factor = 1.0 - 0.5 * newton * (d2f / df)
    return -newton / factor if 0.5 < factor <= _HUGE else -newton


# --- plain calls --------------------------------------------------------------------------------------


@kernel
def _minimum(x: float, fun: float, n_eval: int, status: int) -> Minimum:
    return Minimum(x, math.inf if fun == _HUGE else fun, n_eval, status)


@kernel
def _golden_section(
    f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200
) -> Minimum:
    state = golden_section_start(a, b, xtol, max_eval)
    while state.status == RUNNING:
        state = golden_section_step(state, f(state.x))
    return _minimum(state.x, state.fun, state.n_eval, state.status)


@kernel
def _brent(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    state = brent_start(a, b, xtol, max_eval)
    while state.status == RUNNING:
        state = brent_step(state, f(state.x))
    return _minimum(state.x, state.fun, state.n_eval, state.status)


@kernel
def _newton_root(
    f_derivatives: Callable[[float], tuple[float, float, float]],
    x0: float,
    max_step: float = 1.0,
    xtol: float = 1e-12,
    max_eval: int = 200,
) -> Root:
    state = newton_start(x0, max_step, xtol, max_eval)
    while state.status == RUNNING:
        f, df, d2f = f_derivatives(state.x)
        state = newton_step(state, f, df, d2f)
    return Root(state.x, state.fun, state.n_eval, state.status)


def _check_bracket(a: float, b: float) -> None:
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        raise ValueError(f"the bracket must be finite with a < b, got a = {a} and b = {b}")


def _check_limits(xtol: float, max_eval: int) -> None:
    if not xtol >= 0.0:
        raise ValueError(f"xtol must not be negative, got {xtol}")
    if max_eval < 1:
        raise ValueError(f"max_eval must be at least 1, got {max_eval}")


@compiled_as(_golden_section)
def golden_section(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Minimum of a function of one variable in [a, b] by golden-section search.

    Each evaluation shrinks the bracket by the factor 0.618; derivatives and smoothness are not used [1]_.
    `brent` needs fewer evaluations where f is smooth.

    Parameters
    ----------
    f : callable
        ``f(x) -> float``. Values that are not finite count as larger than every finite one.
    a, b : float
        The bracket, finite, a < b.
    xtol : float
        Absolute accuracy of x. For an x so large that floats are further apart, a few of their spacings.
    max_eval : int
        Maximum number of evaluations.

    Returns
    -------
    Minimum
        ``(x, fun, n_eval, status)``: the best point, f there, the number of evaluations and
        `CONVERGED`, `MAX_EVAL` or `NOT_FINITE` (no finite value was met). For a unimodal f the minimum is within
        xtol of x, as long as f distinguishes points that close: near a smooth minimum rounding hides changes of x
        below about 1e-8. For any other f it is a local minimum or an end. The ends are never evaluated.

    Raises
    ------
    ValueError
        If the bracket is not finite and ordered, xtol is negative or max_eval is less than 1. Jitted code gets
        the status `INVALID` instead.

    See Also
    --------
    powerkern.kernels.optimize.minimize.golden_section_start : the same search, stepped by the caller.

    References
    ----------
    .. [1] J. Kiefer, "Sequential minimax search for a maximum", Proc. AMS 4, 1953, 502-506.

    Examples
    --------
    >>> from powerkern.kernels import golden_section
    >>> result = golden_section(lambda x: abs(x - 2.0), -4.0, 6.0, xtol=1e-6)
    >>> round(result.x, 5), result.n_eval, result.status
    (2.0, 34, 0)
    """
    _check_bracket(a, b)
    _check_limits(xtol, max_eval)
    return _golden_section(f, a, b, xtol, max_eval)


@compiled_as(_brent)
def brent(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Minimum of a function of one variable in [a, b] by Brent's method.

    Golden-section steps, replaced by the minimum of the parabola through the best three points where that
    can be trusted [1]_. The points are exactly those of netlib's fmin and of R's ``optimize(f, c(a, b), tol = xtol)``.

    Parameters
    ----------
    f, a, b, max_eval : callable, float, float, int
        As for `golden_section`, which raises the same errors.
    xtol : float
        Absolute accuracy of x: points are never closer than ``xtol/3 + 1.5e-8 abs(x)``.

    Returns
    -------
    Minimum
        As of `golden_section`. For a unimodal f the minimum is within ``xtol + 4.5e-8 abs(x)`` of x.

    See Also
    --------
    powerkern.kernels.optimize.minimize.brent_start : the same search, stepped by the caller.

    References
    ----------
    .. [1] R. P. Brent, "Algorithms for Minimization without Derivatives", Prentice-Hall, 1973, chapter 5.

    Examples
    --------
    >>> from powerkern.kernels import brent
    >>> brent(lambda x: (x - 2.0) ** 2, -4.0, 6.0)
    Minimum(x=2.0, fun=0.0, n_eval=6, status=0)
    """
    _check_bracket(a, b)
    _check_limits(xtol, max_eval)
    return _brent(f, a, b, xtol, max_eval)


@compiled_as(_newton_root)
def newton_root(
    f_derivatives: Callable[[float], tuple[float, float, float]],
    x0: float,
    max_step: float = 1.0,
    xtol: float = 1e-12,
    max_eval: int = 200,
) -> Root:
    r"""Root of an increasing function of one variable by a safeguarded Halley iteration.

    .. math:: x \leftarrow x - \frac{f}{f' - f f''/(2 f')}

    or Newton's x - f/f' where f'' is 0 or the correction is not small [1]_. The signs of f seen so far
    bracket the root: a step out of the bracket becomes a bisection, and before there is a bracket no step
    is longer than a cap that grows fourfold with every step it cuts. Steps that shrink too slowly are doubled.
    Typical use: the minimum of a strictly convex function, as the root of its derivative.

    Parameters
    ----------
    f_derivatives : callable
        ``f_derivatives(x) -> (f, df, d2f)``, f increasing. Return 0 for d2f to get Newton's iteration. An f of
        -inf or inf counts by its sign; at a NaN half of the last step is taken back.
    x0 : float
        The start.
    max_step : float
        Longest first step, in the natural unit of x.
    xtol : float
        The iteration ends with a step of at most this size (or of a rounding error of x). The step is
        taken but f is not evaluated after it: a Halley step of size h leaves an error of order h**3.
    max_eval : int
        Maximum number of evaluations.

    Returns
    -------
    Root
        ``(x, fun, n_eval, status)``: the root, f at the last evaluated point (one step before x), the number of
        evaluations and `CONVERGED`, `MAX_EVAL` or `NOT_FINITE` (f is NaN at the start or wherever the
        iteration leads, or the root is at infinity).

    Raises
    ------
    ValueError
        If x0 or max_step is not finite, max_step is not positive, xtol is negative or max_eval is less than 1.
        Jitted code gets the status `INVALID` instead.

    See Also
    --------
    newton_start : the same iteration, stepped by the caller; its state keeps the bracket.

    References
    ----------
    .. [1] J. F. Traub, "Iterative Methods for the Solution of Equations", Prentice-Hall, 1964.

    Examples
    --------
    >>> import math
    >>> from powerkern.kernels import newton_root
    >>> root = newton_root(lambda x: (math.exp(x) - 2.0, math.exp(x), math.exp(x)), x0=0.0)
    >>> abs(root.x - math.log(2.0)) < 1e-15, root.n_eval, root.status
    (True, 4, 0)
    """
    if not math.isfinite(x0):
        raise ValueError(f"x0 must be finite, got {x0}")
    if not (math.isfinite(max_step) and max_step > 0.0):
        raise ValueError(f"max_step must be positive and finite, got {max_step}")
    _check_limits(xtol, max_eval)
    return _newton_root(f_derivatives, x0, max_step, xtol, max_eval)
