"""Lambda of one column, asked for point by point: a search that is stepped from outside.

`search` is a generator. It yields the exponents at which it wants the likelihood, is sent what was found there, and
returns the optimum. Whoever drives it evaluates many columns at once, and the points of a round in one message.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

from powerkern.kernels.likelihood import Score
from powerkern.kernels.minimize import (
    CONVERGED,
    RUNNING,
    NewtonState,
    brent_start,
    brent_step,
    newton_start,
    newton_step,
)
from powerkern.kernels.mle import has_root_near

METHODS = ("newton", "brent")

#: Longest first step of Newton, and its tolerance, in units of the logs' range: as for pooled data.
_MAX_STEP = 4.0
_XTOL = 1e-8
#: Half the width of the grid, and of Brent's bracket without a grid.
_SPAN = 32.0
_BRACKET = 8.0
#: Brent hands over to Newton here: function values alone give no more than the square root of their rounding.
_BRENT_XTOL = 1e-4
_BRENT_EVAL = 15


class Evaluation(NamedTuple):
    """The likelihood at a point."""

    x: float
    nll: float
    at: Score


class Found(NamedTuple):
    """The last point evaluated, whether it is certified to be the optimum, and how many were."""

    best: Evaluation
    certified: bool
    n_eval: int


Search = Generator[list[float], Sequence[Evaluation], Found]


def search(start: float, method: str, grid: int, max_rounds: int) -> Search:
    """Ask for values of a strictly convex function until its minimum is known to rounding, in at most `max_rounds`.

    A grid of points first if `grid` is more than 1; then, for "brent", Brent's method on values to a rough tolerance;
    then Newton-Halley on the derivative, which alone can tell the minimum to more than half of the digits.
    """
    rounds, n_eval = 0, 0
    lo, hi = -math.inf, math.inf
    state = newton_start(start, _MAX_STEP, _XTOL, max(max_rounds - 1, 1))
    if grid > 1:
        found = yield _points(start, grid)
        rounds, n_eval = 1, len(found)
        lo = max((e.x for e in found if e.at.d1 < 0.0), default=lo)
        hi = min((e.x for e in found if e.at.d1 > 0.0), default=hi)
        state = _continued(min(found, key=_distance), lo, hi, max_rounds - rounds - 1)
    if method == "brent":
        low = lo if lo > -math.inf else min(start, hi) - _BRACKET
        high = hi if hi < math.inf else max(start, lo) + _BRACKET
        brent = brent_start(low, high, _BRENT_XTOL, min(_BRENT_EVAL, max_rounds - rounds - 1))
        last = None
        while brent.status == RUNNING:
            (last,) = yield [brent.x]
            rounds, n_eval = rounds + 1, n_eval + 1
            lo = max(lo, last.x) if last.at.d1 < 0.0 else lo
            hi = min(hi, last.x) if last.at.d1 > 0.0 else hi
            brent = brent_step(brent, last.nll)
        if last is not None:
            state = newton_start(brent.x, _MAX_STEP, _XTOL, max(max_rounds - rounds - 1, 1))._replace(lo=lo, hi=hi)
    while state.status == RUNNING:
        (last,) = yield [state.x]
        rounds, n_eval = rounds + 1, n_eval + 1
        state = newton_step(state, last.at.d1, last.at.d2, last.at.d3)
    (last,) = yield [state.x]
    certified = state.status == CONVERGED and has_root_near(last.at.d1, last.at.d2, last.at.d3)
    return Found(last, certified, n_eval + 1)


def _points(start: float, n: int) -> list[float]:
    """Points about the start, denser near it."""
    unit = _SPAN / math.sinh(3.0)
    return [start + unit * math.sinh(6.0 * k / (n - 1) - 3.0) for k in range(n)]


def _distance(e: Evaluation) -> float:
    """How far the optimum seems to be from a point."""
    step = abs(e.at.d1 / e.at.d2) if e.at.d2 > 0.0 else math.inf
    return step if step == step else math.inf


def _continued(e: Evaluation, lo: float, hi: float, max_rounds: int) -> NewtonState:
    """Newton's state one step from a point that was evaluated, with what is known of the bracket."""
    state = newton_start(e.x, _MAX_STEP, _XTOL, max(max_rounds, 1) + 1)._replace(lo=lo, hi=hi)
    return newton_step(state, e.at.d1, e.at.d2, e.at.d3)
