"""Brent's minimiser in reverse communication (see `powerkern.kernels.optimize.status`).

References
----------
.. [1] R. P. Brent, "Algorithms for Minimization without Derivatives", Prentice-Hall, 1973, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import compiled_as, kernel
from powerkern.kernels.elementary.constants import LARGEST, SQRT_EPS
from powerkern.kernels.optimize.status import (
    GOLDEN,
    INVALID,
    RUNNING,
    Minimum,
    finite_or_largest,
    minimum,
    minimum_status,
    product,
    read_bracket,
    read_limits,
    returning_floats,
    usable_bracket,
)


class BrentState(NamedTuple):
    """State of Brent's minimiser: the bracket [a, b] and the three best points, named as in Brent's book."""

    x: float  #: point to evaluate next; the best point once the search is over
    a: float
    b: float
    best: float  #: best point so far (Brent's x)
    w: float  #: second best point
    v: float  #: previous value of w
    fun: float  #: the function at `best`, `w` and `v`
    fw: float
    fv: float
    d: float  #: last step
    e: float  #: the step before it
    xtol: float
    n_eval: int
    max_eval: int
    status: int


@kernel
def brent_start(a: float, b: float, xtol: float, max_eval: int) -> BrentState:
    """Return the initial state of Brent's minimiser, which requests f at the point a + 0.381966 (b - a).

    Parameters
    ----------
    a : float
        Lower end of the bracket.
    b : float
        Upper end of the bracket.
    xtol : float
        Absolute tolerance of the minimiser.
    max_eval : int
        Largest number of evaluations.
    """
    a, b = float(a), float(b)
    usable = usable_bracket(a, b, xtol, max_eval)
    x = a + product(GOLDEN, b - a) if usable else math.nan
    return BrentState(
        x=x,
        a=a,
        b=b,
        best=x,
        w=x,
        v=x,
        fun=LARGEST,
        fw=LARGEST,
        fv=LARGEST,
        d=0.0,
        e=0.0,
        xtol=float(xtol),
        n_eval=0,
        max_eval=max_eval,
        status=RUNNING if usable else INVALID,
    )


@kernel
def brent_step(state: BrentState, f: float) -> BrentState:
    """Return the next state of Brent's minimiser, given f at ``state.x``.

    The step leads to the minimum of a parabola through the three best points if that is plausible; otherwise it is a
    golden-section step. The sequence of points is that of netlib's fmin and R's optimize().
    """
    f, u, a, b = finite_or_largest(float(f)), state.x, state.a, state.b
    x, w, v, d, e = state.best, state.w, state.v, state.d, state.e
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
        elif f <= fv or v == x or v == w:  # noqa: SIM109  (a search in a tuple takes 0.1 s to compile)
            v, fv = u, f

    middle, n_eval = 0.5 * (a + b), state.n_eval + 1
    tol = product(SQRT_EPS, abs(x)) + state.xtol / 3.0
    converged = abs(x - middle) <= 2.0 * tol - 0.5 * (b - a)
    status = minimum_status(converged, fx, n_eval, state.max_eval)
    u = x
    if status == RUNNING:
        p, q, r = 0.0, 0.0, 0.0
        if abs(e) > tol:
            r = product(x - w, fx - fv)
            q = product(x - v, fx - fw)
            p = product(x - v, q) - product(x - w, r)
            q = 2.0 * (q - r)
            p = -p if q > 0.0 else p
            q = abs(q)
            r = e
            e = d
        if abs(p) < abs(0.5 * q * r) and q * (a - x) < p and p < q * (b - x):
            d = p / q
            if x + d - a < 2.0 * tol or b - (x + d) < 2.0 * tol:  # keep away from the ends
                d = tol if x < middle else -tol
        else:
            e = b - x if x < middle else a - x
            d = product(GOLDEN, e)
        nudge = tol if d > 0.0 else -tol
        u = x + (d if abs(d) >= tol else nudge)  # keep away from x
    return BrentState(u, a, b, x, w, v, fx, fw, fv, d, e, state.xtol, n_eval, state.max_eval, status)


# --- plain calls --------------------------------------------------------------------------------------


@kernel
def _brent(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Run `brent` without checking arguments, for jitted code.

    Parameters
    ----------
    f, a, b, xtol, max_eval
        As for `brent`.
    """
    state = brent_start(a, b, xtol, max_eval)
    while state.status == RUNNING:  # at most max_eval steps
        state = brent_step(state, f(state.x))
    return minimum(state.x, state.fun, state.n_eval, state.status)


@compiled_as(_brent)
def brent(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Minimise a function of one variable in [a, b] by Brent's method.

    A step leads to the minimum of the parabola through the three best points if that is plausible; otherwise it is a
    golden-section step [1]_. The points are exactly those of netlib's fmin and R's ``optimize(f, c(a, b), tol =
    xtol)``.

    Parameters
    ----------
    f, a, b, max_eval : callable, float, float, int
        As for `golden_section`, which raises the same errors.
    xtol : float
        Absolute accuracy of x. Points are never closer to each other than ``xtol/3 + 1.5e-8 abs(x)``.

    Returns
    -------
    Minimum
        As returned by `golden_section`. For a unimodal f the minimum is within ``xtol + 4.5e-8 abs(x)`` of x.

    See Also
    --------
    powerkern.kernels.optimize.brent.brent_start : the same search, with f evaluated by the caller.

    References
    ----------
    .. [1] R. P. Brent, "Algorithms for Minimization without Derivatives", Prentice-Hall, 1973, chapter 5.

    Examples
    --------
    >>> from powerkern.kernels import brent
    >>> brent(lambda x: (x - 2.0) ** 2, -4.0, 6.0)
    Minimum(x=2.0, fun=0.0, n_eval=6, status=0)
    """
    return _brent(returning_floats(f), *read_bracket(a, b), *read_limits(xtol, max_eval))
