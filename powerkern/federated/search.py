"""The search for lambda in one column, as a generator that the caller feeds with evaluations.

`search` is a generator. It yields the exponents at which it needs the likelihood, receives the evaluations by `send`,
and returns the optimum. The caller evaluates many columns at once, all points of a round in one message.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

from powerkern.kernels.likelihood.score import Score
from powerkern.kernels.likelihood.score_formulas import has_root_near
from powerkern.kernels.optimize.brent import brent_start, brent_step
from powerkern.kernels.optimize.newton import newton_start, newton_step
from powerkern.kernels.optimize.status import CONVERGED, RUNNING

METHODS = ("newton", "brent")

#: Longest first Newton step, and tolerance, for scaled logs; the same values as for pooled data.
_MAX_STEP, _XTOL = 4.0, 1e-8
#: Half the width of the first bracket of Brent's method.
_BRACKET = 8.0
#: Tolerance and number of evaluations at which Newton's method takes over from Brent's. Values alone locate a minimum
#: only to the square root of their rounding error.
_BRENT_XTOL, _BRENT_EVAL = 1e-4, 10
#: Half the width of the first certifying bracket is four times the error of x, but at least _LEAST_RADIUS max(1, |x|).
#: While a bracket fails, it is widened by the factor _WIDEN, up to _MOST_BRACKETS brackets in all.
_LEAST_RADIUS, _WIDEN, _MOST_BRACKETS = 1e-12, 16.0, 4


class EvaluatedPoint(NamedTuple):
    """Negative log-likelihood and its derivatives at a point, with a bound on the error of the first derivative."""

    x: float
    nll: float
    at: Score
    error: float


class ColumnOptimum(NamedTuple):
    """Result of a search: the best point, whether it is certified, number of evaluations, and an error bound.

    The error bound is for the distance to the optimum. It is 0 if the moments equal those of a fit in memory, and
    infinite if no bound is known.
    """

    best: EvaluatedPoint
    certified: bool
    n_eval: int
    error: float = 0.0


Search = Generator[list[float], Sequence[EvaluatedPoint], ColumnOptimum]


def search(start: float, method: str, max_rounds: int) -> Search:
    """Find the minimum of a strictly convex function from the point `start`, in 3 to `max_rounds` rounds.

    The method "newton" applies Newton-Halley steps to the derivative. "brent" first applies Brent's method to the
    values, to a rough tolerance, and then Newton-Halley steps, because values locate the minimum only to half of the
    digits.
    """
    left, n_eval = max_rounds - 1, 0  # the last round certifies
    lo, hi = -math.inf, math.inf
    state = newton_start(start, _MAX_STEP, _XTOL, left)
    if method == "brent" and left > 1:
        brent = brent_start(start - _BRACKET, start + _BRACKET, _BRENT_XTOL, min(_BRENT_EVAL, left - 1))
        while brent.status == RUNNING:
            (last,) = yield [brent.x]
            left, n_eval = left - 1, n_eval + 1
            lo = max(lo, last.x) if last.at.d1 < -last.error else lo
            hi = min(hi, last.x) if last.at.d1 > last.error else hi
            brent = brent_step(brent, last.nll)
        state = newton_start(brent.x, _MAX_STEP, _XTOL, left)._replace(lo=lo, hi=hi)
    error = 0.0
    while state.status == RUNNING:
        (last,) = yield [state.x]
        left, n_eval = left - 1, n_eval + 1
        error = last.error / last.at.d2 if last.at.d2 > 0.0 else math.inf
        if last.error > 0.0 and abs(last.at.d1) <= last.error:
            break
        state = newton_step(state, last.at.d1, last.at.d2, last.at.d3)
    if error > 0.0:
        return (yield from _certify_by_bracket(state.x, error, left + 1, n_eval))
    (last,) = yield [state.x]
    certified = state.status == CONVERGED and has_root_near(last.at.d1, last.at.d2, last.at.d3)
    return ColumnOptimum(last, certified, n_eval + 1)


def evaluate_once(x: float) -> Search:
    """Return a generator like `search` that evaluates the likelihood at the point `x` and returns this point."""
    (last,) = yield [x]
    return ColumnOptimum(last, True, 1)


def _certify_by_bracket(x: float, error: float, rounds: int, n_eval: int) -> Search:
    """Certify the optimum by a bracket: at its ends, the derivative has opposite signs and exceeds its error bound.

    The derivative increases strictly, so the bracket contains the exact optimum. No linearisation is involved.

    Parameters
    ----------
    x : float
        Approximate optimum.
    error : float
        First-order bound on the error of `x`.
    rounds : int
        Number of rounds left.
    n_eval : int
        Number of evaluations so far.
    """
    radius = max(_LEAST_RADIUS * max(1.0, abs(x)), 4.0 * error)
    for _ in range(min(max(rounds, 1), _MOST_BRACKETS)):
        if not x - radius < x < x + radius < math.inf:
            break
        best, low, high = yield [x, x - radius, x + radius]
        n_eval += 3
        if low.at.d1 + low.error < 0.0 < high.at.d1 - high.error:
            return ColumnOptimum(best, True, n_eval, radius)
        radius *= _WIDEN
    else:
        return ColumnOptimum(best, False, n_eval, math.inf)
    (best,) = yield [x]
    return ColumnOptimum(best, False, n_eval + 1, math.inf)
