"""Golden-section search in reverse communication (see `powerkern.kernels.optimize.status`).

References
----------
.. [1] J. Kiefer, "Sequential minimax search for a maximum", Proc. AMS 4, 1953, 502-506.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import compiled_as, kernel
from powerkern.kernels.elementary.constants import EPS, LARGEST
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


class GoldenState(NamedTuple):
    """State of golden-section search: the bracket [a, b], the best point in it, and the point to evaluate next."""

    x: float  #: point to evaluate next; the best point once the search is over
    a: float
    b: float
    best: float  #: best point so far
    fun: float  #: the function at `best`
    xtol: float
    n_eval: int
    max_eval: int
    status: int


@kernel
def golden_section_start(a: float, b: float, xtol: float, max_eval: int) -> GoldenState:
    """Return the initial state of golden-section search, which requests f at the point a + 0.381966 (b - a).

    Parameters
    ----------
    a, b : float
        The bracket, a < b.
    xtol : float
        Width of the bracket at which the search ends.
    max_eval : int
        Largest number of evaluations.
    """
    a, b = float(a), float(b)
    usable = usable_bracket(a, b, xtol, max_eval)
    return GoldenState(
        x=a + product(GOLDEN, b - a) if usable else math.nan,
        a=a,
        b=b,
        best=a,  # the first point is better and leaves the bracket unchanged
        fun=LARGEST,
        xtol=float(xtol),
        n_eval=0,
        max_eval=max_eval,
        status=RUNNING if usable else INVALID,
    )


@kernel
def golden_section_step(state: GoldenState, f: float) -> GoldenState:
    """Return the next state of golden-section search, given f at ``state.x``.

    The next bracket is one of two candidates, and neither depends on f. The CPU can compute both while it evaluates f,
    and then only has to compare f with the best value and select.
    """
    better = ((f < state.fun) & (f >= -LARGEST)) | (state.n_eval == 0)
    fun = finite_or_largest(float(f)) if better else state.fun
    if better:
        a, b, best, x = _shrink(state.a, state.b, state.x, state.best)
    else:
        a, b, best, x = _shrink(state.a, state.b, state.best, state.x)
    n_eval = state.n_eval + 1
    reach = max(best - a, b - best)
    status = minimum_status(reach <= max(state.xtol, 4.0 * EPS * abs(best)), fun, n_eval, state.max_eval)
    return GoldenState(x if status == RUNNING else best, a, b, best, fun, state.xtol, n_eval, state.max_eval, status)


@kernel
def _shrink(a: float, b: float, best: float, other: float) -> tuple[float, float, float, float]:
    """Replace one end of the bracket by the worse of two inner points; return the bracket, best point and next point.

    `best` is the better of the two points, `other` the worse one. The next point lies in the longer part of the new
    bracket. It is computed from the ends of the bracket, so that rounding errors do not accumulate.
    """
    a, b = other if other < best else a, b if other < best else other
    part = product(GOLDEN, b - a)
    return a, b, best, b - part if b - best > best - a else a + part


# --- plain calls --------------------------------------------------------------------------------------


@kernel
def _golden_section(
    f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200
) -> Minimum:
    """Run `golden_section` without checking arguments, for jitted code.

    Parameters
    ----------
    f, a, b, xtol, max_eval
        As for `golden_section`.
    """
    state = golden_section_start(a, b, xtol, max_eval)
    while state.status == RUNNING:  # at most max_eval steps
        state = golden_section_step(state, f(state.x))
    return minimum(state.x, state.fun, state.n_eval, state.status)


@compiled_as(_golden_section)
def golden_section(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Minimise a function of one variable in [a, b] by golden-section search.

    Each evaluation shrinks the bracket by the factor 0.618. Neither derivatives nor smoothness are needed [1]_; if f is
    smooth, `brent` needs fewer evaluations.

    Parameters
    ----------
    f : callable
        ``f(x) -> float``. Values that are not finite count as larger than every finite one.
    a, b : float
        The bracket, finite, a < b.
    xtol : float
        Absolute tolerance of x, but at least ``4 eps abs(x)``, where eps is the machine epsilon of float64.
    max_eval : int
        Maximum number of evaluations.

    Returns
    -------
    Minimum
        ``(x, fun, n_eval, status)``: the best point, f there, the number of evaluations and
        `CONVERGED`, `MAX_EVAL` or `NOT_FINITE` (f was never finite). For a unimodal f the minimum is within xtol of x,
        provided that f resolves such small changes of x; near a smooth minimum rounding hides changes below about
        1e-8. For any other f, x is near a local minimum or an end. The ends are never evaluated.

    Raises
    ------
    ValueError
        If the bracket is not finite and ordered, xtol is negative or max_eval is less than 1. Jitted code gets
        the status `INVALID` instead.

    See Also
    --------
    powerkern.kernels.optimize.golden_section.golden_section_start : the same search, with f evaluated by the caller.

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
    return _golden_section(returning_floats(f), *read_bracket(a, b), *read_limits(xtol, max_eval))
