"""The functions of `powerkern.kernels`, called in a user's jitted code, compared with plain numba loops.

python -m asv_benches.bench_drop_in    # prints the ratios
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from powerkern import kernels
from powerkern.kernels.moments import Moments

from ._measure import InTurns

_N = 2_000
_XTOL = 1e-6


class Pair(NamedTuple):
    """Our function, a plain implementation of it, and a function that draws data; the first two run as jitted code."""

    ours: Callable[..., Any]
    plain: Callable[..., Any]
    data: Callable[[np.random.Generator], np.ndarray]


def _normal(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=_N)


def _sorted(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=_N)
    x[: _N // 10] += 8.0
    return np.sort(x)


def _positive(rng: np.random.Generator) -> np.ndarray:
    return rng.lognormal(size=_N)


def _starts(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, 100)


# --- logarithms and moments ---------------------------------------------------------------------------


def _plain_logsumexp(x: np.ndarray) -> float:
    largest, total = x.max(), 0.0
    for value in x:
        total += math.exp(value - largest)
    return largest + math.log(total)


def _plain_log_mean(x: np.ndarray) -> float:
    largest, total = x.max(), 0.0
    for value in x:
        total += math.exp(value - largest)
    return largest + math.log(total / x.size)


def _plain_log_var(x: np.ndarray) -> float:
    largest, mean, total = x.max(), 0.0, 0.0
    for value in x:
        mean += math.exp(value - largest)
    mean /= x.size
    for value in x:
        total += (math.exp(value - largest) - mean) ** 2
    return 2.0 * largest + math.log(total / x.size)


def _welford(x: np.ndarray) -> float:
    state = Moments(0.0, 0.0, 0.0)
    for value in x:
        state = kernels.welford_update(state, value)
    return state.m2


def _plain_welford(x: np.ndarray) -> float:
    n, mean, m2 = 0.0, 0.0, 0.0
    for value in x:
        n += 1.0
        delta = value - mean
        mean += delta / n
        m2 += delta * (value - mean)
    return m2


def _chan(x: np.ndarray) -> float:
    state = Moments(0.0, 0.0, 0.0)
    for value in x:
        state = kernels.chan_merge(state, Moments(8.0, value, 1.0))
    return state.m2


def _plain_chan(x: np.ndarray) -> float:
    n, mean, m2 = 0.0, 0.0, 0.0
    for value in x:
        total, delta = n + 8.0, value - mean
        mean += delta * 8.0 / total
        m2 += 1.0 + delta * delta * n * 8.0 / total
        n = total
    return m2


# --- rectified transforms: lambda 0.3, change points of the data's quartiles -----------------------------

_LMBDA = 0.3
_POINTS = {"box-cox": (0.51, 1.96), "yeo-johnson": (-0.67, 0.67)}


def _rectified(function: Callable[..., float], family: str) -> Callable[[np.ndarray], np.ndarray]:
    lower, upper = _POINTS[family]

    def loop(x: np.ndarray) -> np.ndarray:
        out = np.empty(x.size)
        for i in range(x.size):
            out[i] = function(x[i], _LMBDA, lower, upper)
        return out

    return loop


_LOWER, _UPPER = _POINTS["box-cox"]
_YJ_UPPER = _POINTS["yeo-johnson"][1]


def _plain_rectified_boxcox(x: np.ndarray) -> np.ndarray:
    out, at, slope = np.empty(x.size), (_UPPER**_LMBDA - 1.0) / _LMBDA, _UPPER ** (_LMBDA - 1.0)
    for i in range(x.size):
        out[i] = at + (x[i] - _UPPER) * slope if x[i] > _UPPER else (x[i] ** _LMBDA - 1.0) / _LMBDA
    return out


def _plain_inv_rectified_boxcox(y: np.ndarray) -> np.ndarray:
    out, at, slope = np.empty(y.size), (_UPPER**_LMBDA - 1.0) / _LMBDA, _UPPER ** (_LMBDA - 1.0)
    for i in range(y.size):
        out[i] = _UPPER + (y[i] - at) / slope if y[i] > at else (1.0 + _LMBDA * y[i]) ** (1.0 / _LMBDA)
    return out


def _plain_rectified_yeojohnson(x: np.ndarray) -> np.ndarray:
    out, at, slope = np.empty(x.size), ((1.0 + _YJ_UPPER) ** _LMBDA - 1.0) / _LMBDA, (1.0 + _YJ_UPPER) ** (_LMBDA - 1.0)
    for i in range(x.size):
        if x[i] > _YJ_UPPER:
            out[i] = at + (x[i] - _YJ_UPPER) * slope
        elif x[i] >= 0.0:
            out[i] = ((1.0 + x[i]) ** _LMBDA - 1.0) / _LMBDA
        else:
            out[i] = -((1.0 - x[i]) ** (2.0 - _LMBDA) - 1.0) / (2.0 - _LMBDA)
    return out


def _plain_inv_rectified_yeojohnson(y: np.ndarray) -> np.ndarray:
    out, at, slope = np.empty(y.size), ((1.0 + _YJ_UPPER) ** _LMBDA - 1.0) / _LMBDA, (1.0 + _YJ_UPPER) ** (_LMBDA - 1.0)
    for i in range(y.size):
        if y[i] > at:
            out[i] = _YJ_UPPER + (y[i] - at) / slope
        elif y[i] >= 0.0:
            out[i] = (1.0 + _LMBDA * y[i]) ** (1.0 / _LMBDA) - 1.0
        else:
            out[i] = 1.0 - (1.0 - (2.0 - _LMBDA) * y[i]) ** (1.0 / (2.0 - _LMBDA))
    return out


# --- robust statistics of a sorted vector -------------------------------------------------------------


def _bisquare(y: np.ndarray) -> float:
    return kernels.bisquare_objective(y, y[::-1].copy(), 0.1, 1.1)


def _plain_bisquare(y: np.ndarray) -> float:
    scores, total = y[::-1].copy(), 0.0
    for i in range(y.size):
        t = ((y[i] - 0.1) / 1.1 - scores[i]) / 0.5
        total += 1.0 - (1.0 - t * t) ** 3 if abs(t) <= 1.0 else 1.0
    return total / y.size


def _plain_huber_location(x: np.ndarray) -> float:
    mu = np.median(x)
    reach = 1.5 * 1.4826022185056018 * np.median(np.abs(x - mu))
    for _ in range(100):
        total = 0.0
        for value in x:
            total += min(max(value - mu, -reach), reach)
        mu += total / x.size
        if abs(total) <= 1e-10 * reach * x.size:
            break
    return mu


_BETA = 0.7784655


def _plain_huber_scale(x: np.ndarray) -> float:
    center = np.median(x)
    s = 1.4826022185056018 * np.median(np.abs(x - center))
    for _ in range(100):
        total = 0.0
        for value in x:
            total += min(((value - center) / s) ** 2, 2.25)
        factor = math.sqrt(total / (x.size * _BETA))
        s *= factor
        if abs(factor - 1.0) <= 1e-10:
            break
    return s


def _plain_huber_proposal2(x: np.ndarray) -> float:
    mu = np.median(x)
    s = 1.4826022185056018 * np.median(np.abs(x - mu))
    for _ in range(100):
        first, second = 0.0, 0.0
        for value in x:
            u = min(max((value - mu) / s, -1.5), 1.5)
            first += u
            second += u * u
        mu += s * first / x.size
        factor = math.sqrt(second / ((x.size - 1) * _BETA))
        s *= factor
        if abs(first) <= 1e-10 * x.size and abs(factor - 1.0) <= 1e-10:
            break
    return s


# --- solvers: a hundred brackets of one function --------------------------------------------------------


@numba.njit
def bowl(x: float) -> float:
    """Evaluate a strictly convex, skewed function whose minimum is at 0.2852."""
    return math.cosh(x - 0.3) + 0.1 * x**4


@numba.njit
def slope(x: float) -> tuple[float, float, float]:
    """Return the first three derivatives of `bowl` at x."""
    e = math.exp(x - 0.3)
    sinh, cosh = 0.5 * (e - 1.0 / e), 0.5 * (e + 1.0 / e)
    return sinh + 0.4 * x**3, cosh + 1.2 * x**2, sinh + 2.4 * x


def _golden(starts: np.ndarray) -> float:
    total = 0.0
    for start in starts:
        total += kernels.golden_section(bowl, start - 4.0, start + 6.0, _XTOL).x
    return total


def _plain_golden(starts: np.ndarray) -> float:
    total, ratio = 0.0, 0.6180339887498949
    for start in starts:
        a, b = start - 4.0, start + 6.0
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        at_c, at_d = bowl(c), bowl(d)
        while b - a > _XTOL:
            if at_c < at_d:
                b, d, at_d = d, c, at_c
                c = b - ratio * (b - a)
                at_c = bowl(c)
            else:
                a, c, at_c = c, d, at_d
                d = a + ratio * (b - a)
                at_d = bowl(d)
        total += 0.5 * (a + b)
    return total


def _brent(starts: np.ndarray) -> float:
    total = 0.0
    for start in starts:
        total += kernels.brent(bowl, start - 4.0, start + 6.0, _XTOL).x
    return total


def _plain_brent(starts: np.ndarray) -> float:
    total, ratio = 0.0, 0.3819660112501051
    for start in starts:
        a, b = start - 4.0, start + 6.0
        x = w = v = a + ratio * (b - a)
        fx = fw = fv = bowl(x)
        d = e = 0.0
        while True:
            middle, tol = 0.5 * (a + b), 1.5e-8 * abs(x) + _XTOL / 3.0
            if abs(x - middle) <= 2.0 * tol - 0.5 * (b - a):
                break
            p = q = r = 0.0
            if abs(e) > tol:
                r, q = (x - w) * (fx - fv), (x - v) * (fx - fw)
                p, q = (x - v) * q - (x - w) * r, 2.0 * (q - r)
                p, q = (-p if q > 0.0 else p), abs(q)
                r, e = e, d
            if abs(p) < abs(0.5 * q * r) and q * (a - x) < p < q * (b - x):
                d = p / q
                u = x + d
                if u - a < 2.0 * tol or b - u < 2.0 * tol:
                    d = tol if x < middle else -tol
            else:
                e = (b if x < middle else a) - x
                d = ratio * e
            u = x + (d if abs(d) >= tol else math.copysign(tol, d))
            fu = bowl(u)
            if fu <= fx:
                a, b = (a, x) if u < x else (x, b)
                v, fv, w, fw, x, fx = w, fw, x, fx, u, fu
            else:
                a, b = (u, b) if u < x else (a, u)
                if fu <= fw or w == x:
                    v, fv, w, fw = w, fw, u, fu
                elif fu <= fv or v in (x, w):
                    v, fv = u, fu
        total += x
    return total


def _newton(starts: np.ndarray) -> float:
    total = 0.0
    for start in starts:
        total += kernels.newton_root(slope, start + 2.0, 10.0, _XTOL).x
    return total


def _plain_newton(starts: np.ndarray) -> float:
    """Iterate Halley's method without a bracket."""
    total = 0.0
    for start in starts:
        x, step = start + 2.0, 1.0
        while abs(step) > _XTOL:
            f, df, d2f = slope(x)
            step = f * df / (df * df - 0.5 * f * d2f)
            x -= step
        total += x
    return total


PAIRS = {
    "logsumexp": Pair(kernels.logsumexp, _plain_logsumexp, _normal),
    "log_mean": Pair(lambda x: kernels.log_mean(x).log, _plain_log_mean, _normal),
    "log_var": Pair(kernels.log_var, _plain_log_var, _normal),
    "welford_update": Pair(_welford, _plain_welford, _normal),
    "chan_merge": Pair(_chan, _plain_chan, _normal),
    "rectified_boxcox": Pair(_rectified(kernels.rectified_boxcox, "box-cox"), _plain_rectified_boxcox, _positive),
    "inv_rectified_boxcox": Pair(
        _rectified(kernels.inv_rectified_boxcox, "box-cox"), _plain_inv_rectified_boxcox, _normal
    ),
    "rectified_yeojohnson": Pair(
        _rectified(kernels.rectified_yeojohnson, "yeo-johnson"), _plain_rectified_yeojohnson, _normal
    ),
    "inv_rectified_yeojohnson": Pair(
        _rectified(kernels.inv_rectified_yeojohnson, "yeo-johnson"), _plain_inv_rectified_yeojohnson, _normal
    ),
    "bisquare_objective": Pair(_bisquare, _plain_bisquare, _sorted),
    "huber_location": Pair(lambda x: kernels.huber_location(x).loc, _plain_huber_location, _sorted),
    "huber_scale": Pair(lambda x: kernels.huber_scale(x).scale, _plain_huber_scale, _sorted),
    "huber_proposal2": Pair(lambda x: kernels.huber_proposal2(x).scale, _plain_huber_proposal2, _sorted),
    "golden_section": Pair(_golden, _plain_golden, _starts),
    "brent": Pair(_brent, _plain_brent, _starts),
    "newton_root": Pair(_newton, _plain_newton, _starts),
}


def _jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a plain implementation, or a user's function that calls ours."""

    def call(x: np.ndarray) -> Any:
        return function(x)

    own = function.__module__ == __name__
    return numba.njit(function if own else call)  # type: ignore[no-any-return]


class DropIn(InTurns):
    """Time of a jitted function that calls ours, divided by the time of the plain implementation."""

    params = (list(PAIRS),)
    param_names = ("function",)
    seconds = 0.3

    def setup(self, function: str) -> None:
        pair = PAIRS[function]
        self.x = pair.data(np.random.default_rng(20240601))
        self.ours, self.plain = _jitted(pair.ours), _jitted(pair.plain)
        found, expected = np.asarray(self.ours(self.x)), np.asarray(self.plain(self.x))  # compiles both
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)  # the plain ones are less exact

    def time_ours(self, function: str) -> None:
        self.ours(self.x)

    def track_ratio_to_plain_loop(self, function: str) -> float:
        self.compare({"ours": lambda: self.ours(self.x), "plain": lambda: self.plain(self.x)})
        return self.ratio("ours", "plain")

    track_ratio_to_plain_loop.unit = "of the plain loop's time"  # type: ignore[attr-defined]


def main() -> None:
    """Print the ratios."""
    benchmark = DropIn()
    for function in PAIRS:
        benchmark.setup(function)
        sys.stdout.write(f"{function:26} {benchmark.track_ratio_to_plain_loop(function):6.2f}\n")


if __name__ == "__main__":
    main()
