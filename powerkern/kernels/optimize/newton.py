"""Bracketed Newton and Halley iteration in reverse communication (see `powerkern.kernels.optimize.status`).

References
----------
.. [1] J. F. Traub, "Iterative Methods for the Solution of Equations", Prentice-Hall, 1964 (Halley's method).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import compiled_as, kernel
from powerkern.kernels.elementary.constants import EPS, LARGEST
from powerkern.kernels.optimize.status import CONVERGED, INVALID, MAX_EVAL, NOT_FINITE, RUNNING, read_limits
from powerkern.kernels.plain_arguments import as_real

#: Factor by which the largest step grows while the root is not bracketed. It matters only far from the optimum: 2 and 8
#: take as many evaluations, 5.0 on average for 234 simulated columns (report_constants two-pass).
_EXPANSION = 4.0


class NewtonState(NamedTuple):
    """State of the bracketed Newton-Halley iteration.

    The root is bracketed once lo and hi are both finite. This never happens if all points lie on one side of the root.
    """

    x: float  #: point to evaluate next; the root once the search is over
    fun: float  #: the function at the last evaluated point
    lo: float  #: largest point where the function was negative, or -inf
    hi: float  #: smallest point where the function was positive, or inf
    step: float  #: the step that led to x
    proposed: float  #: Halley's step at the last evaluated point, before the safeguards
    max_step: float  #: longest step allowed while the root is not bracketed
    xtol: float
    n_eval: int
    max_eval: int
    status: int


class Root(NamedTuple):
    """A root of a function, with details of how the search for it ended."""

    x: float  #: the root
    fun: float  #: the function at the last evaluated point, one step before x
    n_eval: int  #: number of evaluations
    status: int  #: `CONVERGED`, `MAX_EVAL`, `NOT_FINITE` or `INVALID`


@kernel
def newton_start(x0: float, max_step: float, xtol: float, max_eval: int) -> NewtonState:
    """Return the initial state of the Newton-Halley iteration, which requests f, f' and f'' at x0.

    Parameters
    ----------
    x0 : float
        The first point.
    max_step : float
        Length of the longest first step.
    xtol : float
        Absolute tolerance of the root.
    max_eval : int
        Largest number of evaluations.
    """
    x0, max_step = float(x0), float(max_step)
    usable = -LARGEST <= x0 <= LARGEST and 0.0 < max_step <= LARGEST and xtol >= 0.0 and max_eval >= 1
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
    """Return the next state of the Newton-Halley iteration, given an increasing f and its derivatives at ``state.x``.

    The sign of f moves one end of the bracket. The step is Halley's, or Newton's if d2f is 0 or too large. The step is
    doubled if successive steps in one direction shrink too slowly. Once the root is bracketed, a bisection replaces a
    step that leaves the bracket, that goes back by more than three quarters of the previous step, or for which df is
    not a positive number. Before the root is bracketed, a step longer than ``max_step`` is shortened to it, and
    ``max_step`` is quadrupled. If f is infinite, only its sign is used. If f is NaN, half of the previous step is
    undone.

    Parameters
    ----------
    state : NewtonState
        The current state.
    f : float
        The function at ``state.x``.
    df : float
        The first derivative at ``state.x``.
    d2f : float
        The second derivative at ``state.x``.
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
        step = proposed = halley_step(f, df, d2f)
        slow = 0.5 * abs(state.proposed) < abs(proposed) <= abs(state.step)
        if slow and proposed * state.step > 0.0:
            step = 2.0 * state.step
        to_end = hi - x if f < 0.0 else lo - x
        if abs(to_end) <= LARGEST:
            swings = step * state.step < 0.0 and abs(step) > 0.75 * abs(state.step)
            if swings or not abs(step) < abs(to_end):
                step = 0.5 * to_end
        elif not abs(step) <= max_step:
            step = math.copysign(max_step, -f)
            max_step *= _EXPANSION

    n_eval = state.n_eval + 1
    status = RUNNING
    if not abs(x + step) <= LARGEST:
        status = NOT_FINITE
    elif abs(step) <= max(state.xtol, EPS * abs(x)):
        status = CONVERGED if f == f else NOT_FINITE
    elif n_eval >= state.max_eval:
        status = MAX_EVAL
    x_next = x + step if status == RUNNING or status == CONVERGED else x  # noqa: SIM109
    return NewtonState(x_next, f, lo, hi, step, proposed, max_step, state.xtol, n_eval, state.max_eval, status)


@kernel
def halley_step(f: float, df: float, d2f: float) -> float:
    """Return Halley's step -f/(df - f d2f/(2 df)), or Newton's if the correction is large; NaN if neither exists."""
    if not (abs(f) <= LARGEST and df > 0.0 and df <= LARGEST):
        return math.nan
    newton = f / df
    factor = 1.0 - 0.5 * newton * (d2f / df)
    return -newton / factor if 0.5 < factor <= LARGEST else -newton


# --- plain calls --------------------------------------------------------------------------------------


@kernel
def _newton_root(
    f_derivatives: Callable[[float], tuple[float, float, float]],
    x0: float,
    max_step: float = 1.0,
    xtol: float = 1e-12,
    max_eval: int = 200,
) -> Root:
    """Run `newton_root` without checking arguments, for jitted code.

    Parameters
    ----------
    f_derivatives, x0, max_step, xtol, max_eval
        As for `newton_root`.
    """
    state = newton_start(x0, max_step, xtol, max_eval)
    while state.status == RUNNING:  # at most max_eval steps
        f, df, d2f = f_derivatives(state.x)
        state = newton_step(state, f, df, d2f)
    return Root(state.x, state.fun, state.n_eval, state.status)


@compiled_as(_newton_root)
def newton_root(
    f_derivatives: Callable[[float], tuple[float, float, float]],
    x0: float,
    max_step: float = 1.0,
    xtol: float = 1e-12,
    max_eval: int = 200,
) -> Root:
    r"""Return the root of an increasing function of one variable by a safeguarded Halley iteration.

    The step is Halley's [1]_,

    .. math:: x \leftarrow x - \frac{f}{f' - f f''/(2 f')}

    If f'' is 0, or the correction in the denominator is not small, Newton's step to x - f/f' is taken instead. The
    signs of f bracket the root, and a step that leaves the bracket is replaced by a bisection. Before the root is
    bracketed, the length of steps is limited; the limit is quadrupled each time that it is reached. Steps that shrink
    too slowly are doubled. A typical use is to minimise a strictly convex function, with f its derivative.

    Parameters
    ----------
    f_derivatives : callable
        ``f_derivatives(x) -> (f, df, d2f)``, f increasing. Return 0 for d2f to get Newton's iteration. If f is
        infinite, only its sign is used; if f is NaN, half of the previous step is undone.
    x0 : float
        The first point.
    max_step : float
        Length of the longest first step, in units of x.
    xtol : float
        The iteration ends with the first step of at most this size, or of at most one rounding error of x. This step
        is taken, but f is not evaluated after it, since a Halley step of size h leaves an error of order h**3.
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
    newton_start : the same iteration, with f evaluated by the caller; its state includes the bracket.

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
    x0, max_step = as_real("x0", x0), as_real("max_step", max_step)
    if not math.isfinite(x0):
        raise ValueError(f"x0 must be finite, got {x0}")
    if not (math.isfinite(max_step) and max_step > 0.0):
        raise ValueError(f"max_step must be positive and finite, got {max_step}")

    def derivatives(x: float) -> tuple[float, float, float]:
        f, d1, d2 = f_derivatives(x)
        return as_real("f(x)", f), as_real("f'(x)", d1), as_real("f''(x)", d2)

    return _newton_root(derivatives, x0, max_step, *read_limits(xtol, max_eval))
