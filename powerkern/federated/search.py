"""Lambda of one column, asked for point by point: a search that is stepped from outside.

`search` is a generator. It yields the exponents at which it wants the likelihood, is sent what was found there, and
returns the optimum. Whoever drives it evaluates many columns at once, and the points of a round in one message.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

from powerkern.kernels.likelihood.score import Score, has_root_near
from powerkern.kernels.optimize.minimize import (
    CONVERGED,
    RUNNING,
    brent_start,
    brent_step,
    newton_start,
    newton_step,
)

METHODS = ("newton", "brent")

#: Longest first step of Newton, and its tolerance, in units of the logs' range: as for pooled data.
_MAX_STEP = 4.0
XTOL = 1e-8
#: Its tolerance where sums are rounded, far below what rounding does.
ROUNDED_XTOL = 1e-5
#: Half the width of the grid, and of Brent's bracket without a grid.
_SPAN = 32.0
_BRACKET = 8.0
#: Brent hands over to Newton here: function values alone give no more than the square root of their rounding.
_BRENT_XTOL = 1e-4
_BRENT_EVAL = 10


class Evaluation(NamedTuple):
    """The likelihood at a point."""

    x: float
    nll: float
    at: Score


class Found(NamedTuple):
    """The last point evaluated, whether it is certified to be the optimum, and how many were evaluated.

    `at_bound`: the optimum lies beyond the end of the interval that was searched, at which the last point is.
    """

    best: Evaluation
    certified: bool
    n_eval: int
    at_bound: bool = False


class Interval(NamedTuple):
    """Where the likelihood may be asked for."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, x: float) -> float:
        """The nearest point of the interval."""
        return min(max(x, self.low), self.high)

    def excludes_optimum(self, e: Evaluation) -> bool:
        """Whether a convex function still decreases outwards at an end of the interval."""
        return (e.x <= self.low and e.at.d1 > 0.0) or (e.x >= self.high and e.at.d1 < 0.0)


EVERYWHERE = Interval()


Search = Generator[list[float], Sequence[Evaluation], Found]


def search(
    start: float, method: str, grid: int, max_rounds: int, xtol: float = XTOL, within: Interval = EVERYWHERE
) -> Search:
    """Ask for values of a strictly convex function until its minimum is known to rounding, 3 to `max_rounds` times.

    A grid of points first if `grid` is more than 1; then, for "brent", Brent's method on values to a rough tolerance;
    then Newton-Halley on the derivative, which alone can tell the minimum to more than half of the digits. No point
    outside `within` is asked for: a step that leaves it is cut at its end, and where the derivative there has the
    sign of a minimum beyond, the end is the constrained minimum.
    """
    start = within.clip(start)
    left, n_eval = max_rounds - 1, 0  # the last round is for the point found
    lo, hi = -math.inf, math.inf
    state = newton_start(start, _MAX_STEP, xtol, left)
    if grid > 1:
        found = yield [within.clip(x) for x in _points(start, grid)]
        left, n_eval = left - 1, len(found)
        lo, hi = _bracket(found, lo, hi)
        best = min(found, key=_distance)
        state = newton_start(best.x, _MAX_STEP, xtol, left + 1)._replace(lo=lo, hi=hi)
        state = newton_step(state, best.at.d1, best.at.d2, best.at.d3)
    if method == "brent" and left > 1 and lo < within.high and hi > within.low:
        low = within.clip(lo if lo > -math.inf else min(start, hi) - _BRACKET)
        high = within.clip(hi if hi < math.inf else max(start, lo) + _BRACKET)
        brent = brent_start(low, high, _BRENT_XTOL, min(_BRENT_EVAL, left - 1))
        while brent.status == RUNNING:
            found = yield [brent.x]
            left, n_eval = left - 1, n_eval + 1
            lo, hi = _bracket(found, lo, hi)
            brent = brent_step(brent, found[0].nll)
        state = newton_start(brent.x, _MAX_STEP, xtol, left)._replace(lo=lo, hi=hi)
    while state.status == RUNNING:
        state = state._replace(x=within.clip(state.x))
        (last,) = yield [state.x]
        n_eval += 1
        if within.excludes_optimum(last):
            return Found(last, False, n_eval, at_bound=True)
        state = newton_step(state, last.at.d1, last.at.d2, last.at.d3)
    (last,) = yield [within.clip(state.x)]
    certified = state.status == CONVERGED and has_root_near(last.at.d1, last.at.d2, last.at.d3)
    return Found(last, certified, n_eval + 1)


def at_point(x: float) -> Search:
    """Ask for the value at one point, which is the result."""
    (last,) = yield [x]
    return Found(last, True, 1)


def _bracket(found: Sequence[Evaluation], lo: float, hi: float) -> tuple[float, float]:
    """The bracket of the minimum after some more points: the derivative is negative at `lo`, positive at `hi`."""
    lo = max([lo, *(e.x for e in found if e.at.d1 < 0.0)])
    hi = min([hi, *(e.x for e in found if e.at.d1 > 0.0)])
    return lo, hi


def _points(start: float, n: int) -> list[float]:
    """Points about the start, denser near it."""
    unit = _SPAN / math.sinh(3.0)
    return [start + unit * math.sinh(6.0 * k / (n - 1) - 3.0) for k in range(n)]


def _distance(e: Evaluation) -> float:
    """How far the optimum seems to be from a point."""
    step = abs(e.at.d1 / e.at.d2) if e.at.d2 > 0.0 else math.inf
    return step if step == step else math.inf
