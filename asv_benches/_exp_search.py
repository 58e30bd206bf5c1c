"""ExpSearch, the search for lambda in SecureFedYJ (federated Yeo-Johnson fits), for comparison.

The negative log-likelihood is convex, so the sign of its derivative tells on which side of the optimum an exponent
lies. Steps double until the sign changes; bisection follows. Every sign needs five sums over all sites: the sums of the
transformed values y, of their squares, of dy/dlambda, of the products y dy/dlambda, and of the logs (which need no
exponent).

T. Marchand, B. Muzellec, C. Beguier, J. Ogier du Terrail, M. Andreux, "SecureFedYJ: a safe feature Gaussianization
protocol for federated learning", NeurIPS 2022. In that protocol the sums are kept secret and the server learns only the
sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

#: Steps of the published protocol; doubling and bisection together.
N_STEPS = 40
#: Numbers that a site sends per step and column, of 8 bytes each if they are not encrypted.
N_SUMS = 5


def transformed(x: np.ndarray, lmbda: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the Yeo-Johnson transform of x and its derivative in lambda, by the textbook formulas in float64."""
    y, dy = np.empty_like(x), np.empty_like(x)
    for side, exponent, sign in ((x >= 0, lmbda, 1.0), (x < 0, 2.0 - lmbda, -1.0)):
        log = np.log1p(np.abs(x[side]))
        power = np.exp(exponent * log)
        if exponent == 0.0:
            y[side], dy[side] = sign * log, 0.5 * log**2
        else:
            y[side] = sign * (power - 1.0) / exponent
            dy[side] = (power * log - (power - 1.0) / exponent) / exponent
    return y, dy


def site_sums(x: np.ndarray, lmbda: float) -> np.ndarray:
    """Return the five sums that the module's docstring lists, as a site with values `x` sends them for one exponent."""
    y, dy = transformed(x, lmbda)
    return np.array([y.sum(), (y * y).sum(), dy.sum(), (y * dy).sum(), np.copysign(np.log1p(np.abs(x)), x).sum()])


def slope(sums: np.ndarray, n: int) -> float:
    """Return the derivative of the negative log-likelihood, up to a positive factor, from the sums of n values."""
    y, yy, dy, ydy, logs = sums.tolist()
    return (n * ydy - y * dy) * n / (n * yy - y * y) - logs if n * yy > y * y else math.nan


def exp_search(parts: Sequence[np.ndarray], n_steps: int = N_STEPS) -> tuple[float, list[float]]:
    """Search for the lambda of the pooled values of all sites in `n_steps` steps; return lambda, and all exponents.

    `parts` holds the values of each site. A slope of NaN counts as negative.
    """
    n = sum(part.size for part in parts)

    def sign(lmbda: float) -> bool:
        with np.errstate(all="ignore"):
            return slope(np.sum([site_sums(part, lmbda) for part in parts], axis=0), n) > 0.0

    return _search(sign, n_steps)


def _search(is_above: Callable[[float], bool], n_steps: int) -> tuple[float, list[float]]:
    """Double steps from 1 until the optimum is bracketed, then bisect; return the result, and the exponents evaluated.

    `n_steps` exponents are evaluated. `is_above` returns whether an exponent is above the optimum.
    """
    low, high, at, path = -math.inf, math.inf, 1.0, []
    for _ in range(n_steps):
        path.append(at)
        low, high = (low, at) if is_above(at) else (at, high)
        if math.isinf(low):
            at = 1.0 - max(1.0, 2.0 * (1.0 - high))
        elif math.isinf(high):
            at = 1.0 + max(1.0, 2.0 * (low - 1.0))
        else:
            at = 0.5 * (low + high)
    return at, path


def one_pass_variance(parts: Sequence[np.ndarray]) -> float:
    """Return the variance from the sums of values and squares of each site."""
    n = sum(part.size for part in parts)
    total, squares = sum(float(part.sum()) for part in parts), sum(float((part * part).sum()) for part in parts)
    return (squares - total * total / n) / n


def pairwise_variance(parts: Sequence[np.ndarray]) -> float:
    """Return the variance by merging, in pairs, the count, mean and sum of squares about the mean of each site.

    The merge is Chan, Golub and LeVeque's formula.
    """
    told = [(part.size, float(part.mean()), float(((part - part.mean()) ** 2).sum())) for part in parts if part.size]
    while len(told) > 1:
        pairs = [_merged(a, b) for a, b in zip(told[::2], told[1::2], strict=False)]
        told = pairs + told[len(pairs) * 2 :]
    n, _, about = told[0]
    return about / n


def _merged(a: tuple[int, float, float], b: tuple[int, float, float]) -> tuple[int, float, float]:
    n, d = a[0] + b[0], b[1] - a[1]
    return n, a[1] + d * b[0] / n, a[2] + b[2] + d * d * a[0] * b[0] / n
