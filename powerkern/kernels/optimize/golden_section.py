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


@kernel
def golden_section_start(a: float, b: float, xtol: float, max_eval: int) -> GoldenState:
    """Return the state that asks for the first point, a + 0.381966 (b - a).

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
    """Return the next state, given f at ``state.x``.

    Both outcomes of the comparison are prepared while f is being evaluated: a loop waits for f and one selection only.
    """
    better = ((f < state.fun) & (f >= -LARGEST)) | (state.n_eval == 0)
    fun = finite_or_largest(float(f)) if better else state.fun
    if better:
        a, b, best, x = _shrunk(state.a, state.b, state.x, state.best)
    else:
        a, b, best, x = _shrunk(state.a, state.b, state.best, state.x)
    n_eval = state.n_eval + 1
    reach = max(best - a, b - best)
    status = minimum_status(reach <= max(state.xtol, 4.0 * EPS * abs(best)), fun, n_eval, state.max_eval)
    return GoldenState(x if status == RUNNING else best, a, b, best, fun, state.xtol, n_eval, state.max_eval, status)


@kernel
def _shrunk(a: float, b: float, best: float, other: float) -> tuple[float, float, float, float]:
    """Return the shrunken bracket, whose new end is the worse of two inner points; the better point; and the next one.

    That lies in the longer part, and is measured from the end: errors do not grow.
    """
    a, b = other if other < best else a, b if other < best else other
    part = product(GOLDEN, b - a)
    return a, b, best, b - part if b - best > best - a else a + part


# --- plain calls --------------------------------------------------------------------------------------


@kernel
def _golden_section(
    f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200
) -> Minimum:
    state = golden_section_start(a, b, xtol, max_eval)
    while state.status == RUNNING:  # at most max_eval steps
        state = golden_section_step(state, f(state.x))
    return minimum(state.x, state.fun, state.n_eval, state.status)


@compiled_as(_golden_section)
def golden_section(f: Callable[[float], float], a: float, b: float, xtol: float = 1e-8, max_eval: int = 200) -> Minimum:
    """Return the minimum of a function of one variable in [a, b] by golden-section search.

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
    powerkern.kernels.optimize.golden_section.golden_section_start : the same search, stepped by the caller.

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
