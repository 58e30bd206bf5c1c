"""Minimise the QQ objective in a bracket, by evaluating it at LANES lambdas at a time."""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import LANES, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.robust.column import Prestandardized
from powerkern.kernels.robust.options import Options
from powerkern.kernels.robust.qq_column import evaluate
from powerkern.kernels.robust.scratch import RobustWork
from powerkern.kernels.robust.search import AT_HIGH, AT_LOW, HIGH, LOW, LOWEST, MAX_EVAL, VALUE, LocalMinimum, Stop

#: Cells wider than this may contain several minima, so the search begins with evenly spaced points. This and the
#: following constants were chosen by trial on 160 difficult columns of 12 to 40 values (`tests.fuzz.starts`), which
#: take 64.5 evaluations on average and end at most 7e-8 above the lowest minimum. Half takes 65.4; double takes 63.4,
#: and ends at most 1e-7 above.
_WIDE = 0.13
#: Positions of the first points around the expected minimum, as fractions of the distance to either end of the
#: interval. Each is about 0.4 times the next one, so that the interval shrinks by about the same factor however far the
#: minimum is from its expected position.
_PARTS = (-0.5, -0.18, -0.07, -0.025, 0.025, 0.07, 0.18, 0.5)
#: Positions of later points, when the expected minimum is more accurate.
_CLOSER = (-0.4, -0.1, -0.03, -0.002, 0.002, 0.03, 0.1, 0.4)
#: Factor by which evenly spaced points shrink an interval.
_EVENLY = 2.0 / (LANES + 1.0)
#: The minimum of a cubic is accepted if the minimum of another cubic differs by at most _OFF in lambda and _SURE in the
#: objective, and if neighboring second differences differ by at most the fraction _STEADY. Half, double and ten times
#: _OFF change nothing. A tenth and ten times _SURE take 65.0 and 63.9 evaluations; accepting no cubic takes 72.6. Half
#: and double _STEADY change nothing.
_OFF, _SURE, _STEADY = 5e-6, 3e-10, 0.15


class _Bracket(NamedTuple):
    """The lowest point so far, `x`, its two neighbors, and the objective at all three."""

    low: float
    x: float
    high: float
    at_low: float
    value: float
    at_high: float


@kernel
def minimize_in_bracket(
    standardized: Prestandardized, cell: FloatArray, stop: Stop, options: Options, work: RobustWork
) -> LocalMinimum:
    """Find a minimum in a cell by evaluating the objective at LANES lambdas at a time.

    The lambdas are close to the expected minimum, the vertex of a parabola through three points. If a round does not
    shrink the bracket enough, the next round uses evenly spaced points. The search ends if the minimum of a cubic
    through four points can be trusted, if the neighbors of the lowest point are within the tolerance, or if the
    minimum is expected to be higher than `stop.bound`. The objective values in `cell` may be in float32. They only
    locate the minimum and are not compared with new values.

    Parameters
    ----------
    standardized : Prestandardized
        The prestandardised column, with room for its transform.
    cell : (8,)
        The cell, with the fields LOW, HIGH, ... of `kernels.robust.search`.
    stop : Stop
        Tolerance and bound at which the search ends.
    options : Options
        The options of the fit.
    work : RobustWork
        Scratch.
    """
    points, values = work.grid[0, :LANES], work.grid[1, :LANES]
    around, n_eval = _Bracket(cell[LOW], cell[LOWEST], cell[HIGH], cell[AT_LOW], cell[VALUE], cell[AT_HIGH]), 0
    expected = _parabola_vertex(around)[0] if around.high - around.low <= _WIDE else math.nan
    while True:  # LANES evaluations per round, at most MAX_EVAL in all
        before = around
        _place_points(around, expected, _PARTS if n_eval == 0 else _CLOSER, points)
        if n_eval == 0:
            _put_nearest(points, around.x)
            around = _Bracket(around.low, around.low, around.high, math.inf, math.inf, math.inf)
        best = evaluate(standardized, LANES, options, work)
        n_eval += LANES
        around = _tighten(around, points, values, best)
        if around.x == points[best]:
            vertex, value = _minimum_among(points, values, best)
            if value == value:
                return LocalMinimum(vertex, value, n_eval)
        width = around.high - around.low
        # assume that the minimum is below the value at x by no more than the higher neighbor is above it
        least = around.value - max(around.at_low, around.at_high) + around.value
        if n_eval >= MAX_EVAL or width <= 2.0 * stop.xtol or not least <= stop.bound:
            return LocalMinimum(around.x, around.value, n_eval)
        was_quick = expected != expected or width <= _EVENLY * (before.high - before.low)
        expected = _parabola_vertex(around)[0] if was_quick else math.nan


@kernel
def _place_points(around: _Bracket, expected: float, parts: tuple[float, ...], points: FloatArray) -> None:
    """Write LANES points around the expected minimum, or evenly spaced points if `expected` is NaN.

    `parts` are the positions of the points, as fractions of the distance from `expected` to the lower (negative) or
    upper (positive) end of the bracket.
    """
    for k in range(LANES):
        way = around.low - expected if parts[k] < 0.0 else around.high - expected
        even = around.low + (around.high - around.low) * (k + 1.0) / (LANES + 1.0)
        points[k] = expected + abs(parts[k]) * way if expected == expected else even


@kernel
def _minimum_among(points: FloatArray, values: FloatArray, k: int) -> tuple[float, float]:
    """Return the minimiser and the minimum of the cubic through point k, its two neighbors and a fourth point.

    Both are NaN unless the cubic through another fourth point has nearly the same minimiser and minimum, and the second
    differences of neighboring points nearly agree, so that there is no kink.
    """
    if k < 1 or k > points.size - 2:
        return math.nan, math.nan
    around = _bracket_among(points, values, k)
    x, value = _parabola_vertex(around)
    to_low, to_x, to_high = x - around.low, x - around.x, x - around.high
    rise, slope = to_low * to_x * to_high, to_low * to_x + to_low * to_high + to_x * to_high
    for first in range(max(k - 3, 0), min(k - 1, points.size - 5) + 1):
        left, right, curvature, is_steady = _thirds_among(points, values, first, k)
        change = abs(right - left)
        if is_steady and change * abs(slope) <= 2.0 * _OFF * curvature and change * abs(rise) <= _SURE:
            third = right if first < k - 2 else left
            return x - (0.5 * third * slope / curvature if curvature > 0.0 else 0.0), value + third * rise
    return math.nan, math.nan


@kernel
def _thirds_among(points: FloatArray, values: FloatArray, first: int, k: int) -> tuple[float, float, float, bool]:
    """Return the third divided differences of five points, the second divided difference at point k, and a flag.

    The flag is true if the three second differences nearly agree, so that the two third differences can be trusted. The
    five points begin at index `first`.
    """
    low, high = _bracket_among(points, values, first + 1), _bracket_among(points, values, first + 3)
    at_low, at_high = _second_difference(low), _second_difference(high)
    middle = _second_difference(_bracket_among(points, values, first + 2))
    at_k = at_low if k == first + 1 else middle if k == first + 2 else at_high
    is_steady = max(at_low, middle, at_high) - min(at_low, middle, at_high) <= _STEADY * at_k
    return (middle - at_low) / (high.x - low.low), (at_high - middle) / (high.high - low.x), at_k, is_steady


@kernel
def _bracket_among(points: FloatArray, values: FloatArray, k: int) -> _Bracket:
    """Return the bracket formed by point k and its two neighbors."""
    return _Bracket(points[k - 1], points[k], points[k + 1], values[k - 1], values[k], values[k + 1])


@kernel
def _second_difference(around: _Bracket) -> float:
    """Return the second divided difference of the three points of a bracket."""
    from_low, from_high = around.x - around.low, around.high - around.x
    rises = (around.at_low - around.value) / from_low + (around.at_high - around.value) / from_high
    return rises / (from_low + from_high)


@kernel
def _put_nearest(points: FloatArray, x: float) -> None:
    """Replace the point nearest to x by x."""
    nearest = 0
    for k in range(points.size):
        if abs(points[k] - x) < abs(points[nearest] - x):
            nearest = k
    points[nearest] = x


@kernel
def _parabola_vertex(around: _Bracket) -> tuple[float, float]:
    """Return the minimiser and minimum of the parabola through the points of a bracket; NaN if a value is infinite."""
    curvature = _second_difference(around)
    slope = (around.at_high - around.value) / (around.high - around.x) - curvature * (around.high - around.x)
    step = 0.0 if curvature <= 0.0 else -0.5 * slope / curvature
    return around.x + step, around.value + 0.5 * slope * step


@kernel
def _tighten(around: _Bracket, points: FloatArray, values: FloatArray, best: int) -> _Bracket:
    """Return the bracket around the lowest point evaluated so far; its ends are the nearest points on either side.

    `around` is the bracket before the new `points` were evaluated. `best` is the index of the lowest new point.
    """
    low, x, high, at_low, value, at_high = around
    if values[best] <= value:
        if x < points[best] and value < math.inf:
            low, at_low = x, value
        elif x > points[best] and value < math.inf:
            high, at_high = x, value
        x, value = points[best], values[best]
    for k in range(points.size):
        if low < points[k] < x:
            low, at_low = points[k], values[k]
        elif x < points[k] < high:
            high, at_high = points[k], values[k]
    return _Bracket(low, x, high, at_low, value, at_high)
