"""The search for the lambda of one column, on functions whose minimum is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from powerkern.federated.search import ColumnOptimum, EvaluatedPoint, search
from powerkern.kernels.likelihood.score import Score

Function = Callable[[float], tuple[float, float, float, float]]


def cosh(center: float, width: float) -> Function:
    """Return a function that computes ln cosh((x - center)/width) and its first three derivatives.

    The function is strictly convex, and nearly linear far from the center.
    """

    def f(x: float) -> tuple[float, float, float, float]:
        t = (x - center) / width
        tanh = math.tanh(t)
        slope = 1.0 - tanh * tanh
        value = abs(t) + math.log1p(math.exp(-2.0 * abs(t)))
        return value, tanh / width, slope / width**2, -2.0 * tanh * slope / width**3

    return f


def run(
    f: Function, start: float, method: str, max_rounds: int = 28, error: float = 0.0, off: float = 1.0
) -> tuple[ColumnOptimum, int, int]:
    """Run a search on f with inexact derivatives.

    Parameters
    ----------
    f : callable
        Returns the value of the function at x and its first three derivatives.
    start : float
        First point of the search.
    method : str
        "newton" or "brent".
    max_rounds : int
        Maximum number of rounds; each evaluates one or more points.
    error : float
        Error bound of the first derivative that the search is given.
    off : float
        Largest error of the first derivative, as a multiple of `error`. The errors vary irregularly with x.

    Returns
    -------
    ColumnOptimum
        The result of the search.
    rounds : int
        Number of rounds.
    points : int
        Number of points evaluated.
    """
    asking = search(start, method, max_rounds)
    points, rounds, asked = next(asking), 0, 0
    while True:
        rounds, asked = rounds + 1, asked + len(points)
        found = []
        for x in points:
            value, d1, d2, d3 = f(x)
            d1 += off * error * math.cos(1e9 * x)
            found.append(EvaluatedPoint(x, value, Score(d1, d2, d3, 0.0, 1.0, 0.0, 0.0), error))
        try:
            points = asking.send(found)
        except StopIteration as end:
            return end.value, rounds, asked


@pytest.mark.parametrize("method", ["newton", "brent"])
@pytest.mark.parametrize("center", [-15.0, -0.3, 0.0, 1.0, 3.7, 15.0])
@pytest.mark.parametrize("width", [0.3, 1.0, 10.0])
def test_the_minimum_is_accurate_to_rounding(center: float, width: float, method: str) -> None:
    found, rounds, asked = run(cosh(center, width), 1.0, method)
    assert found.best.x == pytest.approx(center, abs=1e-13 * max(1.0, abs(center)) * max(1.0, width))
    assert found.certified
    assert found.n_eval == asked
    assert rounds <= 28


@pytest.mark.parametrize("method", ["newton", "brent"])
@pytest.mark.parametrize("max_rounds", [3, 5])
def test_no_more_rounds_than_allowed_and_no_certificate_then(method: str, max_rounds: int) -> None:
    found, rounds, _ = run(cosh(1e5, 0.1), 1.0, method, max_rounds)
    assert rounds <= max_rounds
    assert not found.certified


@pytest.mark.parametrize("method", ["newton", "brent"])
@pytest.mark.parametrize("error", [1e-15, 1e-9, 1e-4, 1e-2])
@pytest.mark.parametrize("center", [-15.0, 0.0, 3.7])
def test_the_minimum_is_within_the_bound_of_a_search_with_errors(center: float, error: float, method: str) -> None:
    found, rounds, asked = run(cosh(center, 1.0), 1.0, method, error=error)
    assert found.certified
    assert abs(found.best.x - center) <= found.error <= max(1e-8 * max(1.0, abs(center)), 100.0 * error)
    assert (found.n_eval, rounds <= 28) == (asked, True)


@pytest.mark.parametrize("max_rounds", [3, 5, 28])
def test_no_bound_where_the_error_hides_the_sign_of_the_derivative(max_rounds: int) -> None:
    found, rounds, _ = run(
        cosh(0.3, 1.0), 1.0, "newton", max_rounds, error=1.5, off=0.0
    )  # the derivative lies between -1 and 1
    assert rounds <= max_rounds
    assert (found.certified, found.error) == (False, math.inf)
