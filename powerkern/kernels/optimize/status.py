"""Status codes and helpers for minimisers and root finders in reverse communication.

In reverse communication the caller evaluates the function. A solver is a pair of kernels: ``*_start`` makes a state,
and ``*_step`` takes a state and the function value at ``state.x`` and returns the next state. The caller may be a
jitted loop, a loop over many columns in lockstep, or a server that asks clients over a network. A state holds only
numbers, so it can be stored or sent. While ``state.status == RUNNING``, ``state.x`` is the point to evaluate next;
afterwards it is the result::

    state = brent_start(a, b, xtol, max_eval)
    while state.status == RUNNING:
        state = brent_step(state, f(state.x))

`golden_section`, `brent` and `newton_root` consist of this loop. The solvers do not depend on power transforms.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import compiled_as, fma, kernel
from powerkern.kernels.elementary.constants import LARGEST
from powerkern.kernels.plain_arguments import as_real, format_argument

#: The result is within the tolerance.
CONVERGED = 0
#: The function must be evaluated at ``state.x``.
RUNNING = 1
#: ``max_eval`` evaluations were made; ``x`` is the best point so far.
MAX_EVAL = 2
#: No finite function value, or no finite point, could be found.
NOT_FINITE = 3
#: The start was unusable: ``a < b`` does not hold, or an argument is not finite or not positive.
INVALID = 4
#: Largest limit on evaluations that is passed to kernels, whose integers have 64 bits.
MOST_EVALUATIONS = 2**62
#: (3 - sqrt(5))/2, the squared inverse of the golden ratio.
GOLDEN = 0.3819660112501051


class Minimum(NamedTuple):
    """A minimum of a function of one variable, with details of how the search for it ended."""

    x: float  #: the minimiser
    fun: float  #: the function at x
    n_eval: int  #: evaluations made
    status: int  #: `CONVERGED`, `MAX_EVAL`, `NOT_FINITE` or `INVALID`


@kernel
def _product_unfused(a, b):  # type: ignore[no-untyped-def]
    return fma(a, b, 0.0)


@compiled_as(_product_unfused)
def product(a: float, b: float) -> float:
    """Return a*b, and prevent the compiler from fusing the product with a following addition.

    Compiled code and plain Python therefore round alike, and visit the same points.
    """
    return a * b


@kernel
def finite_or_largest(f: float) -> float:
    """Replace a value that is not finite by the largest float, as R's optimize() does."""
    return f if -LARGEST <= f <= LARGEST else LARGEST


@kernel
def usable_bracket(a: float, b: float, xtol: float, max_eval: int) -> bool:
    """Return whether the arguments of a search are valid: a < b, both finite, xtol >= 0 and max_eval >= 1.

    Parameters
    ----------
    a : float
        Lower end of the bracket.
    b : float
        Upper end of the bracket.
    xtol : float
        Absolute tolerance.
    max_eval : int
        Largest number of evaluations.
    """
    return a >= -LARGEST and a < b and b <= LARGEST and xtol >= 0.0 and max_eval >= 1


@kernel
def minimum_status(converged: bool, fun: float, n_eval: int, max_eval: int) -> int:
    """Return the final status of a minimisation, or RUNNING if it must continue.

    Parameters
    ----------
    converged : bool
        Whether the tolerance is reached.
    fun : float
        The lowest value so far.
    n_eval : int
        Number of evaluations so far.
    max_eval : int
        Largest number of evaluations.
    """
    if converged or n_eval >= max_eval:
        if fun == LARGEST:
            return NOT_FINITE
        return CONVERGED if converged else MAX_EVAL
    return RUNNING


@kernel
def minimum(x: float, fun: float, n_eval: int, status: int) -> Minimum:
    """Build the result of a minimisation; its `fun` is inf if the function was never finite.

    Parameters
    ----------
    x : float
        The best point.
    fun : float
        The function at x; LARGEST if no value was finite.
    n_eval : int
        Number of evaluations.
    status : int
        The final status.
    """
    return Minimum(x, math.inf if fun == LARGEST else fun, n_eval, status)


def read_bracket(a: object, b: object) -> tuple[float, float]:
    """Convert the ends of a bracket to floats; raise ValueError unless both are finite and a < b."""
    a, b = as_real("a", a), as_real("b", b)
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        raise ValueError(f"the bracket must be finite with a < b, got a = {a} and b = {b}")
    return a, b


def returning_floats(f: Callable[[float], object]) -> Callable[[float], float]:
    """Wrap a user's function: convert its value to a float, and name ``f(x)`` in the error if that is impossible."""
    return lambda x: as_real("f(x)", f(x))


def read_limits(xtol: object, max_eval: object) -> tuple[float, int]:
    """Convert a tolerance and an evaluation limit; raise ValueError unless xtol >= 0 and max_eval >= 1."""
    tolerance = as_real("xtol", xtol)
    if not tolerance >= 0.0:
        raise ValueError(f"xtol must not be negative, got {tolerance}")
    try:
        count = operator.index(max_eval)  # type: ignore[arg-type]  # TypeError for anything else
    except TypeError:
        raise TypeError(f"max_eval must be a whole number, got {format_argument(max_eval)}") from None
    if count < 1:
        raise ValueError(f"max_eval must be at least 1, got {format_argument(max_eval)}")
    return tolerance, min(count, MOST_EVALUATIONS)
