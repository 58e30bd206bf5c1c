"""Slow, obvious versions of what powerkern computes. Imports nothing from powerkern."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath

# --- solvers ------------------------------------------------------------------------------------------


def netlib_fmin(f: Callable[[float], float], ax: float, bx: float, tol: float) -> list[float]:
    """Points at which netlib's fmin (Brent's localmin, R's optimize) evaluates f, in order."""
    c = 0.5 * (3.0 - math.sqrt(5.0))
    eps = math.sqrt(sys.float_info.epsilon)
    a, b = ax, bx
    x = w = v = a + c * (b - a)
    d = e = 0.0
    fx = fw = fv = f(x)
    points = [x]
    while True:
        xm = 0.5 * (a + b)
        tol1 = eps * abs(x) + tol / 3.0
        tol2 = 2.0 * tol1
        if abs(x - xm) <= tol2 - 0.5 * (b - a):
            return points
        p = q = r = 0.0
        if abs(e) > tol1:
            r = (x - w) * (fx - fv)
            q = (x - v) * (fx - fw)
            p = (x - v) * q - (x - w) * r
            q = 2.0 * (q - r)
            if q > 0.0:
                p = -p
            q = abs(q)
            r = e
            e = d
        if abs(p) >= abs(0.5 * q * r) or p <= q * (a - x) or p >= q * (b - x):
            e = b - x if x < xm else a - x
            d = c * e
        else:
            d = p / q
            u = x + d
            if u - a < tol2 or b - u < tol2:
                d = tol1 if x < xm else -tol1
        if abs(d) >= tol1:
            u = x + d
        elif d > 0.0:
            u = x + tol1
        else:
            u = x - tol1
        fu = f(u)
        points.append(u)
        if fu <= fx:
            if u < x:
                b = x
            else:
                a = x
            v, w, x = w, x, u
            fv, fw, fx = fw, fx, fu
        else:
            if u < x:
                a = u
            else:
                b = u
            if fu <= fw or w == x:
                v, w = w, u
                fv, fw = fw, fu
            elif fu <= fv or v in (x, w):
                v, fv = u, fu


# --- moments ------------------------------------------------------------------------------------------


def exact_moments(x: Sequence[float], w: Sequence[float] | None = None) -> tuple[Fraction, Fraction, Fraction]:
    """Weight, mean and sum of squared deviations in rational arithmetic."""
    values = [Fraction(float(v)) for v in x]
    weights = [Fraction(1)] * len(values) if w is None else [Fraction(float(v)) for v in w]
    weight = sum(weights, Fraction(0))
    mean = sum((a * v for a, v in zip(weights, values, strict=True)), Fraction(0)) / weight
    m2 = sum((a * (v - mean) ** 2 for a, v in zip(weights, values, strict=True)), Fraction(0))
    return weight, mean, m2


def log_numbers(logs: Sequence[float], signs: Sequence[float] | None = None) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    """(c, x) with the numbers equal to x e^c, c the largest finite log."""
    factors = [1.0] * len(logs) if signs is None else list(signs)
    counted = [float(v) for v, s in zip(logs, factors, strict=True) if s != 0.0 and v != -math.inf]
    c = mpmath.mpf(max(counted, default=0.0))
    numbers = [
        mpmath.mpf(float(s)) * mpmath.exp(mpmath.mpf(float(v)) - c) if s != 0.0 and v != -math.inf else mpmath.mpf(0)
        for v, s in zip(logs, factors, strict=True)
    ]
    return c, numbers


def log_sum(logs: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Logarithm of the sum of w e^l; enough digits for a sum that differs from 1 in the 200th."""
    with mpmath.workdps(300):
        c, numbers = log_numbers(logs, weights)
        return float(c + mpmath.log(mpmath.fsum(numbers)))


def log_mean(logs: Sequence[float], signs: Sequence[float] | None = None) -> tuple[float, float]:
    """Logarithm and sign of the mean of s e^l."""
    with mpmath.workdps(60):
        c, numbers = log_numbers(logs, signs)
        mean = mpmath.fsum(numbers) / len(numbers)
        return float(c + mpmath.log(abs(mean))), float(mpmath.sign(mean))


def log_var(logs: Sequence[float], signs: Sequence[float] | None = None) -> float:
    """Logarithm of the variance of s e^l, with 1/n; enough digits for numbers that differ in the 400th."""
    with mpmath.workdps(800):
        c, numbers = log_numbers(logs, signs)
        mean = mpmath.fsum(numbers) / len(numbers)
        variance = mpmath.fsum((v - mean) ** 2 for v in numbers) / len(numbers)
        return float(2 * c + mpmath.log(variance))
