"""Slow, obvious versions of powerkern's computations; they import nothing from powerkern."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
from scipy import stats

# --- solvers ------------------------------------------------------------------------------------------


def netlib_fmin(f: Callable[[float], float], ax: float, bx: float, tol: float) -> list[float]:
    """Return the points at which netlib's fmin (Brent's localmin, R's optimize) evaluates `f`, in order.

    Parameters
    ----------
    f : callable
        The function to minimise.
    ax, bx : float
        Ends of the interval.
    tol : float
        Tolerance of the minimum.
    """
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
    """Return total weight, weighted mean, and weighted sum of squared deviations, in rational arithmetic.

    Without weights `w`, each value has weight 1.
    """
    values = [Fraction(float(v)) for v in x]
    weights = [Fraction(1)] * len(values) if w is None else [Fraction(float(v)) for v in w]
    weight = sum(weights, Fraction(0))
    mean = sum((a * v for a, v in zip(weights, values, strict=True)), Fraction(0)) / weight
    m2 = sum((a * (v - mean) ** 2 for a, v in zip(weights, values, strict=True)), Fraction(0))
    return weight, mean, m2


def log_numbers(logs: Sequence[float], signs: Sequence[float] | None = None) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    """Return c, the largest finite log, and the numbers sign e^(log - c) as mpmath numbers, for `logs` and `signs`.

    Without `signs`, all numbers are positive. A sign of 0 stands for the number 0.
    """
    factors = [1.0] * len(logs) if signs is None else list(signs)
    counted = [float(v) for v, s in zip(logs, factors, strict=True) if s != 0.0 and v != -math.inf]
    c = mpmath.mpf(max(counted, default=0.0))
    numbers = [
        mpmath.mpf(float(s)) * mpmath.exp(mpmath.mpf(float(v)) - c) if s != 0.0 and v != -math.inf else mpmath.mpf(0)
        for v, s in zip(logs, factors, strict=True)
    ]
    return c, numbers


def log_sum(logs: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return the logarithm of the sum of weight e^log, with enough digits for a sum that differs from 1 by 1e-200."""
    with mpmath.workdps(300):
        c, numbers = log_numbers(logs, weights)
        return float(c + mpmath.log(mpmath.fsum(numbers)))


def log_mean(logs: Sequence[float], signs: Sequence[float] | None = None) -> tuple[float, float]:
    """Return the logarithm of the absolute mean of the numbers sign e^log, and the sign of the mean.

    `logs` and `signs` are as in `log_numbers`.
    """
    with mpmath.workdps(60):
        c, numbers = log_numbers(logs, signs)
        mean = mpmath.fsum(numbers) / len(numbers)
        return float(c + mpmath.log(abs(mean))), float(mpmath.sign(mean))


def log_var(logs: Sequence[float], signs: Sequence[float] | None = None) -> float:
    """Return the logarithm of the variance (1/n) of the numbers sign e^log, even if they differ by only 1e-400.

    `logs` and `signs` are as in `log_numbers`.
    """
    with mpmath.workdps(800):
        c, numbers = log_numbers(logs, signs)
        mean = mpmath.fsum(numbers) / len(numbers)
        variance = mpmath.fsum((v - mean) ** 2 for v in numbers) / len(numbers)
        return float(2 * c + mpmath.log(variance))


# --- power transforms and their likelihood ------------------------------------------------------------


def _branch_derivatives(m: mpmath.mpf, a: mpmath.mpf) -> list[mpmath.mpf]:
    """Return b = expm1(m a)/m and its first three derivatives in m.

    The k-th derivative is a^(k+1) times the integral of s^k e^(m a s) over [0, 1].
    """
    t = m * a
    if abs(t) < 1:
        phi = [mpmath.mpf(0)] * 4
        term, j = mpmath.mpf(1), 0
        while abs(term) > mpmath.eps / 1000:
            phi = [p + term / (j + k + 1) for k, p in enumerate(phi)]
            j += 1
            term *= t / j
        return [a ** (k + 1) * p for k, p in enumerate(phi)]
    e = mpmath.exp(t)
    numerators = [e - 1]
    for k in range(1, 4):
        numerators.append(t**k * e - k * numerators[-1])
    return [numerator / m ** (k + 1) for k, numerator in enumerate(numerators)]


def log_and_branch(family: str, lmbda: object, x: float) -> tuple[mpmath.mpf, mpmath.mpf, int]:
    """Return (a, m, s), where psi(lambda, x) = s b_m(a), b_m(a) = (e^(m a) - 1)/m, and J = s a."""
    value, lam = x if isinstance(x, mpmath.mpf) else mpmath.mpf(float(x)), mpmath.mpf(lmbda)
    if family == "box-cox":
        return mpmath.log(value), lam, 1
    return mpmath.log1p(abs(value)), (lam if value >= 0 else 2 - lam), (1 if value >= 0 else -1)


def power_derivatives(family: str, lmbda: object, x: float, reference: float | None = None) -> list[mpmath.mpf]:
    """Return psi(lambda, x), minus psi(lambda, reference) if this is given, and three derivatives in lambda.

    The formula b_m(a) - b_m(r) = e^(m r) b_m(a - r) is differentiated by Leibniz' rule.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : number
        Lambda.
    x : float
        The value.
    reference : float, optional
        A value of the same sign.
    """
    a, m, sign = log_and_branch(family, lmbda, x)
    r = mpmath.mpf(0) if reference is None else log_and_branch(family, lmbda, reference)[0]
    b = _branch_derivatives(m, a - r)
    factor = mpmath.exp(m * r)
    derivatives = [factor * sum(math.comb(k, i) * r ** (k - i) * b[i] for i in range(k + 1)) for k in range(4)]
    return [sign ** (k + 1) * v for k, v in enumerate(derivatives)]


def _centered_moments(
    family: str, lmbda: object, x: Sequence[float], weight: Sequence[float] | None
) -> tuple[list[list[mpmath.mpf]], dict[tuple[int, int], mpmath.mpf], mpmath.mpf] | None:
    """Return psi and three derivatives in lambda, centered at their means; the means of their products; and mean(J).

    The result is None if the working precision leaves less than 30 digits of the variance.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : number
        Lambda.
    x : sequence of float
        The column.
    weight : sequence of float or None
        Weights of its values.
    """
    weights = [mpmath.mpf(1)] * len(x) if weight is None else [mpmath.mpf(float(w)) for w in weight]
    logs = [log_and_branch(family, lmbda, v) for v in x]
    one_branch = len({sign for _, _, sign in logs}) == 1
    parts = [power_derivatives(family, lmbda, v, x[0] if one_branch else None) for v in x]
    total = mpmath.fsum(weights)

    def mean(values: Sequence[mpmath.mpf]) -> mpmath.mpf:
        return mpmath.fdot(weights, values) / total

    centered, means = [], []
    for k in range(4):
        values = [derivatives[k] for derivatives in parts]
        means.append(mean(values))
        centered.append([v - means[k] for v in values])
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)]
    products = {(i, j): mean([u * v for u, v in zip(centered[i], centered[j], strict=True)]) for i, j in pairs}
    if products[0, 0] <= means[0] ** 2 * mpmath.eps**2 * mpmath.mpf(10) ** 60:
        return None
    return centered, products, mean([sign * a for a, _, sign in logs])


@contextlib.contextmanager
def _accurate_moments(
    family: str, lmbda: object, x: Sequence[float], weight: Sequence[float] | None, digits: int
) -> Iterator[tuple[list[list[mpmath.mpf]], dict[tuple[int, int], mpmath.mpf], mpmath.mpf]]:
    """Double the precision from `digits` on until `_centered_moments` has 30 digits of the variance; yield its result.

    The other arguments are those of `_centered_moments`.
    """
    moments = None
    while moments is None:
        with mpmath.workdps(digits):
            moments = _centered_moments(family, lmbda, x, weight)
            if moments is not None:
                yield moments
        digits *= 2


def likelihood(
    family: str, lmbda: object, x: Sequence[float], weight: Sequence[float] | None = None, digits: int = 60
) -> list[mpmath.mpf]:
    """Return g = 1/2 ln Var(psi) - (lambda - 1) mean(J) and its first three derivatives in lambda.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : number
        Lambda.
    x : sequence of float
        The column.
    weight : sequence of float, optional
        Weights of its values.
    digits : int
        Working precision; doubled until the variance has 30 digits.
    """
    with _accurate_moments(family, lmbda, x, weight, digits) as (_, c, jacobian):
        # ln V differentiated three times, V = C00 and V' = 2 C01 and so on
        v, v1, v2, v3 = c[0, 0], 2 * c[0, 1], 2 * (c[1, 1] + c[0, 2]), 2 * (3 * c[1, 2] + c[0, 3])
        return [
            mpmath.log(v) / 2 - (mpmath.mpf(lmbda) - 1) * jacobian,
            v1 / (2 * v) - jacobian,
            v2 / (2 * v) - v1**2 / (2 * v**2),
            v3 / (2 * v) - 3 * v1 * v2 / (2 * v**2) + v1**3 / v**3,
        ]


def standardized(
    family: str, lmbda: object, x: Sequence[float], weight: Sequence[float] | None = None, digits: int = 60
) -> list[float]:
    """Return (psi - mean)/sd for every value, where sd has the divisor n; the arguments are as in `likelihood`."""
    with _accurate_moments(family, lmbda, x, weight, digits) as (centered, products, _):
        return [float(v / mpmath.sqrt(products[0, 0])) for v in centered[0]]


def most_likely_lambda(
    family: str, x: Sequence[float], start: float, weight: Sequence[float] | None = None, digits: int = 60
) -> mpmath.mpf:
    """Return the root of g' near `start` to 25 digits, certified by a change of sign.

    Parameters
    ----------
    family : str
        The transform.
    x : sequence of float
        The column.
    start : float
        Start of Newton's method.
    weight : sequence of float, optional
        Weights of its values.
    digits : int
        Working precision.
    """
    with mpmath.workdps(digits):
        lam = mpmath.mpf(start)
        for _ in range(100):
            _, d1, d2, _ = likelihood(family, lam, x, weight, digits)
            lam -= d1 / d2
            if abs(d1 / d2) <= mpmath.mpf(10) ** -15 * max(1, abs(lam)):  # the next would be its square
                break
        width = mpmath.mpf(10) ** -25 * max(1, abs(lam))
        assert likelihood(family, lam - width, x, weight, digits)[1] < 0
        assert likelihood(family, lam + width, x, weight, digits)[1] > 0
        return lam


# --- a response given covariates ----------------------------------------------------------------------


def orthonormal(columns: Sequence[Sequence[object]]) -> list[list[mpmath.mpf]]:
    """Orthonormalise linearly independent columns by the Gram-Schmidt process."""
    basis: list[list[mpmath.mpf]] = []
    for column in columns:
        rest = [mpmath.mpf(v) for v in column]
        for _ in range(2):
            for q in basis:
                dot = mpmath.fdot(q, rest)
                rest = [v - dot * u for v, u in zip(rest, q, strict=True)]
        length = mpmath.sqrt(mpmath.fdot(rest, rest))
        basis.append([v / length for v in rest])
    return basis


def regression_likelihood(
    family: str,
    lmbda: object,
    y: Sequence[float],
    X: np.ndarray,
    weight: Sequence[float] | None = None,
    *,
    shifts: bool = True,
    digits: int = 60,
) -> list[mpmath.mpf]:
    """Return g = 1/2 ln(RSS/n) - (lambda - 1) mean(J) and its first two derivatives in lambda.

    RSS is the residual sum of squares of the regression of psi(lambda, y) on X.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : number
        Lambda.
    y : sequence of float
        The response.
    X : (n, k) ndarray
        The covariates.
    weight : sequence of float, optional
        Weights of the rows.
    shifts : bool
        Whether the columns of X span the constant, so that a constant may be subtracted from psi.
    digits : int
        Working precision.
    """
    with mpmath.workdps(digits):
        w = [mpmath.mpf(1)] * len(y) if weight is None else [mpmath.mpf(float(v)) for v in weight]
        root = [mpmath.sqrt(v) for v in w]
        columns = [[mpmath.mpf(float(v)) * r for v, r in zip(c, root, strict=True)] for c in np.asarray(X).T]
        basis = orthonormal(columns)
        logs = [log_and_branch(family, lmbda, v) for v in y]
        reference = y[0] if shifts and len({sign for _, _, sign in logs}) == 1 else None
        parts = [power_derivatives(family, lmbda, v, reference) for v in y]
        residuals = []
        for k in range(3):
            rest = [r * d[k] for r, d in zip(root, parts, strict=True)]
            for q in basis:
                dot = mpmath.fdot(q, rest)
                rest = [v - dot * u for v, u in zip(rest, q, strict=True)]
            residuals.append(rest)
        n = mpmath.fsum(w)
        jacobian = mpmath.fsum(v * sign * a for v, (a, _, sign) in zip(w, logs, strict=True)) / n
        rss = mpmath.fdot(residuals[0], residuals[0])
        slope = mpmath.fdot(residuals[0], residuals[1])
        bend = mpmath.fdot(residuals[1], residuals[1]) + mpmath.fdot(residuals[0], residuals[2])
        return [
            mpmath.log(rss / n) / 2 - (mpmath.mpf(lmbda) - 1) * jacobian,
            slope / rss - jacobian,
            bend / rss - 2 * (slope / rss) ** 2,
        ]


def regression_lambda(
    family: str,
    y: Sequence[float],
    X: np.ndarray,
    start: float,
    weight: Sequence[float] | None = None,
    *,
    shifts: bool = True,
    digits: int = 60,
) -> mpmath.mpf:
    """Return the root of g' near `start`, certified by a change of sign from negative to positive.

    Parameters
    ----------
    family : str
        The transform.
    y : sequence of float
        The response.
    X : (n, k) ndarray
        The covariates.
    start : float
        Start of Newton's method.
    weight, shifts, digits
        As in `regression_likelihood`.
    """

    def slope(lam: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
        return tuple(regression_likelihood(family, lam, y, X, weight, shifts=shifts, digits=digits)[1:])

    with mpmath.workdps(digits):
        lam = mpmath.mpf(start)
        for _ in range(60):
            d1, d2 = slope(lam)
            step = d1 / d2
            lam -= step
            if abs(step) <= mpmath.mpf(10) ** -15 * max(1, abs(lam)):
                break
        width = mpmath.mpf(10) ** -25 * max(1, abs(lam))
        assert slope(lam - width)[0] < 0 < slope(lam + width)[0]
        return lam


# --- the score, for data too large for mpmath ---------------------------------------------------------


def longdouble_score(family: str, lmbda: np.longdouble, x: np.ndarray) -> np.longdouble:
    """Return g'(lambda) = Cov(psi, dpsi/dlambda)/Var(psi) - mean(J) in long double, for columns of moderate range.

    Columns of one sign are centered at their median r: psi = psi(r) + (base + r)^m b_m(d), where base is 0 for Box-Cox
    and 1 for Yeo-Johnson, and d is the log of (base + x)/(base + r). The factor (base + r)^m adds ln(base + r) to
    Cov/Var and to mean(J), so both are taken without it.
    """
    x, m = x.astype(np.longdouble), np.longdouble(lmbda)
    base = np.longdouble(family == "yeo-johnson")
    if family == "yeo-johnson" and x.min() < 0 <= x.max():
        a = np.log1p(np.abs(x))
        negative = x < 0
        y, dy = np.where(negative, _branch_and_slope(2 - m, a), _branch_and_slope(m, a))
        y = np.where(negative, -y, y)
        return _slope_of_variance(y, dy) - np.where(negative, -a, a).mean()
    sign = -1 if x.max() < 0 else 1
    x = sign * x
    ref = np.sort(x)[x.size // 2]
    d = np.log1p((x - ref) / (base + ref))
    if sign < 0:  # psi = -b_{2 - lambda}: d/dlambda changes sign, and J with it
        return -(_slope_of_variance(*_branch_and_slope(2 - m, d)) - d.mean())
    return _slope_of_variance(*_branch_and_slope(m, d)) - d.mean()


def _branch_and_slope(m: np.longdouble, a: np.ndarray) -> np.ndarray:
    """Return b_m(a) = expm1(m a)/m and its derivative in m, by a series where the formula cancels."""
    t = m * a
    if m == 0:
        return np.array([a, a * a / 2])
    b = np.expm1(t) / m
    slope = (a * np.exp(t) - b) / m
    small = np.abs(t) < 1
    series = np.zeros_like(t[small])
    for k in reversed(range(24)):
        series = series * t[small] + 1 / np.longdouble(math.factorial(k) * (k + 2))
    slope[small] = a[small] ** 2 * series
    return np.array([b, slope])


def _slope_of_variance(y: np.ndarray, dy: np.ndarray) -> np.longdouble:
    y, dy = y - y.mean(), dy - dy.mean()
    return (y * dy).mean() / (y * y).mean()


# --- elementwise transforms ---------------------------------------------------------------------------


def branch(a: object, m: object) -> mpmath.mpf:
    """Return (e^(m a) - 1)/m, in the working precision."""
    a, m = mpmath.mpf(a), mpmath.mpf(m)
    return mpmath.expm1(m * a) / m if m else a


def inverse_branch(y: object, m: object) -> mpmath.mpf:
    """Return ln(1 + m y)/m, the inverse of `branch`; NaN for y outside its range, infinite at the range's end."""
    y, m = mpmath.mpf(y), mpmath.mpf(m)
    if not m or 1 + m * y <= 0:
        return y if not m else (mpmath.nan if 1 + m * y < 0 else -mpmath.sign(m) * mpmath.inf)
    return mpmath.log1p(m * y) / m


def power_transform(family: str, x: float, lmbda: float) -> mpmath.mpf:
    """Return psi(lambda, x)."""
    x, lmbda = mpmath.mpf(float(x)), mpmath.mpf(float(lmbda))
    if family == "box-cox":
        return branch(mpmath.log(x), lmbda)
    return branch(mpmath.log1p(x), lmbda) if x >= 0 else -branch(mpmath.log1p(-x), 2 - lmbda)


def inverse_power_transform(family: str, y: float, lmbda: float) -> mpmath.mpf:
    """Return the x with psi(lambda, x) = y; NaN if there is none."""
    y, lmbda = mpmath.mpf(float(y)), mpmath.mpf(float(lmbda))
    if family == "box-cox":
        return mpmath.exp(inverse_branch(y, lmbda))
    return mpmath.expm1(inverse_branch(y, lmbda)) if y >= 0 else -mpmath.expm1(inverse_branch(-y, 2 - lmbda))


def power_transform_slope(family: str, x: float, lmbda: float) -> mpmath.mpf:
    """Return the derivative of psi in x."""
    x, power = mpmath.mpf(float(x)), mpmath.mpf(float(lmbda)) - 1
    if family == "box-cox":
        return mpmath.exp(power * mpmath.log(x))
    return mpmath.exp((power if x >= 0 else -power) * mpmath.log1p(abs(x)))


def error_in_ulp(got: float, exact: mpmath.mpf) -> float:
    """Return the error of `got` in units in the last place of `exact`; 0 if both are NaN or the same infinity."""
    if mpmath.isnan(exact):
        return 0.0 if math.isnan(got) else math.inf
    largest = mpmath.mpf(sys.float_info.max)
    if abs(exact) >= largest + largest * mpmath.mpf(2) ** -54:
        return 0.0 if got == math.copysign(math.inf, mpmath.sign(exact)) else math.inf
    if not math.isfinite(got):
        return math.inf
    return float(abs(mpmath.mpf(float(got)) - exact) / math.ulp(float(exact)))


# --- UV decomposition -----------------------------------------------------------------------------------


def uv_element(M: np.ndarray, U: np.ndarray, V: np.ndarray, factor: str, r: int, s: int, ridge: float = 0.0) -> float:
    """Return the element U[r, s] or V[r, s] that minimises the squared error of U V, given all other elements.

    The error is summed over the observed elements of M. ``ridge`` times the squared element is added.

    J. Leskovec, A. Rajaraman, J. D. Ullman, "Mining of Massive Datasets", section 9.4.4.

    Parameters
    ----------
    M : (m, n) ndarray
        The matrix; NaN is missing.
    U, V : (m, k) ndarray, (k, n) ndarray
        The factors in the model M = U V.
    factor : {"U", "V"}
        The factor that contains the element.
    r, s : int
        Row and column of the element.
    ridge : float
        Factor of the penalty.
    """
    if factor == "V":
        return uv_element(M.T, V.T, U.T, "U", s, r, ridge)
    numerator, denominator = 0.0, ridge
    for j in range(M.shape[1]):
        if not math.isnan(M[r, j]):
            others = sum(U[r, k] * V[k, j] for k in range(U.shape[1]) if k != s)
            numerator += V[s, j] * (M[r, j] - others)
            denominator += V[s, j] ** 2
    return float(numerator / denominator) if denominator > 0.0 else float(U[r, s])


def uv_visit(
    M: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
    elements: Sequence[tuple[str, int, int]],
    ridge: float = 0.0,
    damping: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Move elements of U and V to their least-squares optima, one after the other; return the new U and V.

    Parameters
    ----------
    M : (m, n) ndarray
        The matrix; NaN is missing.
    U, V : (m, k) ndarray, (k, n) ndarray
        The factors in the model M = U V; not changed.
    elements : sequence of ({"U", "V"}, int, int)
        The elements to move: factor, row and column.
    ridge : float
        Factor of the sum of squared elements in the penalty; see `uv_element`.
    damping : float
        Fraction of the distance to the optimum by which an element moves.
    """
    U, V = U.copy(), V.copy()
    for factor, r, s in elements:
        matrix = U if factor == "U" else V
        matrix[r, s] += damping * (uv_element(M, U, V, factor, r, s, ridge) - matrix[r, s])
    return U, V


def uv_all_elements(m: int, n: int, d: int) -> list[tuple[str, int, int]]:
    """Return (factor, row, column) of all elements of U (m, d), row by row, then of all elements of V (d, n)."""
    return [("U", r, s) for r in range(m) for s in range(d)] + [("V", r, s) for r in range(d) for s in range(n)]


def uv_rmse(M: np.ndarray, U: np.ndarray, V: np.ndarray) -> float:
    """Return the root mean square error of the product U V on the entries of M that are not missing."""
    return float(np.sqrt(np.nanmean((M - U @ V) ** 2)))


def uv_least_squares(M: np.ndarray, V: np.ndarray, ridge: float = 0.0) -> np.ndarray:
    """Return the least-squares optimum of U in the model M = U V for a given V, of minimum norm if it is not unique.

    NaN in `M` is missing; `ridge` times the sum of squared elements of U is added to the squared error.
    """
    rows = []
    for row in M:
        seen = ~np.isnan(row)
        stacked = np.vstack([V[:, seen].T, math.sqrt(ridge) * np.eye(V.shape[0])])
        rows.append(np.linalg.lstsq(stacked, np.concatenate([row[seen], np.zeros(V.shape[0])]), rcond=1e-12)[0])
    return np.array(rows)


# --- outlier probabilities ----------------------------------------------------------------------------


def _greedy_bins(
    values: Sequence[Fraction], counts: Sequence[int], area: Fraction, n_bins: int
) -> list[tuple[Fraction, int]] | None:
    """Fill bins over [0, 1] from the left with counted values, each bin as far as its area allows.

    The area of a bin is its count times its width. Return a list of (left edge, index of the first value), or None if
    more than `n_bins` bins are needed.

    Parameters
    ----------
    values : sequence of Fraction
        Distinct ascending values.
    counts : sequence of int
        Their counts.
    area : Fraction
        Largest area of a bin.
    n_bins : int
        Largest number of bins.
    """
    bins: list[tuple[Fraction, int]] = []
    left, start = Fraction(0), 0
    while len(bins) < n_bins:
        bins.append((left, start))
        inside, j = 0, start
        while j < len(values):
            grown = (inside + counts[j]) * (values[j] - left)
            if grown > area or (grown == area and values[j] < 1):
                break
            inside, j = inside + counts[j], j + 1
        end = values[j] if j < len(values) else Fraction(1)
        if inside * (end - left) <= area:
            if j == len(values):
                return bins
            left = end
        else:
            left += area / inside
        start = j
    return None


def equal_area_bins(
    values: Sequence[float], counts: Sequence[int], n_bins: int
) -> tuple[list[int], list[float], Fraction]:
    """Bisect for the smallest area for which `_greedy_bins` needs at most `n_bins` bins.

    Return the index of the first value of each bin followed by the number of values, the edges of the bins, and the
    area.

    Parameters
    ----------
    values : sequence of float
        Distinct ascending values in [0, 1].
    counts : sequence of int
        Their counts.
    n_bins : int
        Largest number of bins.
    """
    exact = [Fraction(float(value)) for value in values]
    low, high = Fraction(0), Fraction(sum(int(c) for c in counts))
    for _ in range(80):
        middle = (low + high) / 2
        if _greedy_bins(exact, counts, middle, n_bins) is None:
            low = middle
        else:
            high = middle
    bins = _greedy_bins(exact, counts, high, n_bins)
    assert bins is not None
    return [start for _, start in bins] + [len(values)], [float(edge) for edge, _ in bins] + [1.0], high


def binned_errors(y: np.ndarray, p: np.ndarray, n_bins: Sequence[int]) -> dict[str, tuple[float, float]]:
    """Return each stratum's refinement and calibration error in equal-area bins, averaged over the numbers of bins.

    Parameters
    ----------
    y : (n,) ndarray
        Labels: 1 for outliers, 0 for inliers.
    p : (n,) ndarray
        Probabilities.
    n_bins : sequence of int
        The numbers of bins.
    """
    values, counts = np.unique(p, return_counts=True)
    strata = {"all": np.ones(y.size), "outliers": y, "inliers": 1.0 - y}
    errors = {stratum: np.zeros(2) for stratum in strata}
    for k in n_bins:
        first = equal_area_bins(values.tolist(), counts.tolist(), k)[0]
        for start, stop in itertools.pairwise(first):
            inside = np.isin(p, values[start:stop])
            if inside.any():
                share = y[inside].mean()
                error = np.array([2.0 * share * (1.0 - share), abs(share - p[inside].mean())])
                for stratum, members in strata.items():
                    errors[stratum] += error * members[inside].sum() / members.sum() / len(n_bins)
    return {stratum: (float(pair[0]), float(pair[1])) for stratum, pair in errors.items()}


def entropy(p: float) -> mpmath.mpf:
    """Return the entropy of a probability, in bits."""
    with mpmath.workdps(60):
        q = mpmath.mpf(p)
        return -(q * mpmath.log(q, 2) + (1 - q) * mpmath.log(1 - q, 2))


# --- location and scale -------------------------------------------------------------------------------


def clipped_sums(x: Sequence[float], w: Sequence[float], mu: float, s: float, k: float) -> tuple[Fraction, Fraction]:
    """Return the exact weighted sums of psi((x - mu)/s) and of its square, where psi(u) = max(-k, min(k, u)).

    Parameters
    ----------
    x, w : sequence of float
        Values and weights.
    mu, s : float
        Location and scale.
    k : float
        Limit of psi.
    """
    at, scale, limit = Fraction(mu), Fraction(s), Fraction(k)
    u = [max(-limit, min(limit, (Fraction(float(v)) - at) / scale)) for v in x]
    weights = [Fraction(float(v)) for v in w]
    return sum(a * b for a, b in zip(weights, u, strict=True)), sum(a * b * b for a, b in zip(weights, u, strict=True))


def clipped_normal_variance(k: float) -> mpmath.mpf:
    """Return the expectation of min(Z**2, k**2) for a standard normal Z, by quadrature."""
    with mpmath.workdps(30):
        inner = mpmath.quad(lambda z: z * z * mpmath.npdf(z), [-k, 0, k])
        return +(inner + 2 * mpmath.mpf(k) ** 2 * mpmath.ncdf(-k))


def bisquare_sum(x: Sequence[float], mu: float, reach: float) -> Fraction:
    """Return the exact sum of u (1 - u**2)**2 over all u = (x - mu)/reach with abs(u) < 1."""
    u = [(Fraction(float(v)) - Fraction(mu)) / Fraction(reach) for v in x]
    return sum((v * (1 - v * v) ** 2 for v in u if abs(v) < 1), Fraction(0))


def biweight(x: np.ndarray, c_location: float, c_scale: float) -> tuple[float, float]:
    """Return the one-step biweight location, and the square root of the biweight midvariance.

    `c_location` and `c_scale` are the constants of the two (Beers, Flynn and Gebhardt 1990).
    """
    d = x - np.median(x)
    mad = np.median(abs(d))
    u = d / (c_location * mad)
    v = np.where(abs(u) < 1.0, (1.0 - u**2) ** 2, 0.0)
    location = np.median(x) + np.sum(d * v) / np.sum(v)
    u = d / (c_scale * mad)
    near = abs(u) < 1.0
    d, u = d[near], u[near]
    squares = np.sum(d**2 * (1.0 - u**2) ** 4)
    slope = np.sum((1.0 - u**2) * (1.0 - 5.0 * u**2))
    return float(location), float(np.sqrt(x.size * squares) / abs(slope))


def huber_one_step(x: np.ndarray, k: float, beta: float) -> tuple[float, float]:
    """Return location and scale after one reweighting step from median and normalised MAD, as in R's cellWise.

    `k` is Huber's constant; `beta` divides the mean of the clipped squares, to make the scale consistent.
    """
    factor = 1.4826022185056018
    center = np.median(x)
    distance = abs(x - center) / (factor * np.median(abs(x - center)))
    w = np.where(distance <= k, 1.0, k / np.maximum(distance, k))
    mu = np.sum(w * x) / np.sum(w)
    s = factor * np.median(abs(x - mu))
    return float(mu), float(s * np.sqrt(np.mean(np.minimum(((x - mu) / s) ** 2, k * k)) / beta))


def filliben_quantiles(n: int) -> np.ndarray:
    """Return normal quantiles at medians of uniform order statistics (Filliben 1975), scaled to Euclidean norm 1."""
    from scipy.stats import norm

    ranks = [0.5 ** (1.0 / n) if i == n else (i - 0.3175) / (n + 0.365) for i in range(1, n + 1)]
    ranks[0] = 1.0 - ranks[-1]
    q = norm.ppf(ranks)
    return np.asarray(q / np.linalg.norm(q))


# --- robust fits --------------------------------------------------------------------------------------

#: Phi^-1(0.995), and the constants of R's one-step Huber estimates.
CUTOFF = 2.5758293035489004
HUBER_K, HUBER_BETA = 1.5, 1.556931 / 2


def power_transforms(family: str, x: np.ndarray, lmbda: float) -> np.ndarray:
    """Return psi of many values, in long double."""
    x, m = np.asarray(x, dtype=np.longdouble), np.longdouble(lmbda)

    def branch_of(m: np.longdouble, a: np.ndarray) -> np.ndarray:
        return np.expm1(m * a) / m if m else a

    if family == "box-cox":
        return branch_of(m, np.log(x))
    with np.errstate(over="ignore"):  # in the branch that is not selected
        a = np.log1p(np.abs(x))
        return np.where(x >= 0, branch_of(m, a), -branch_of(2 - m, a))


def quartiles(x: np.ndarray, points: tuple[float, float] = (0.25, 0.75)) -> tuple[float, float]:
    """Return the order statistics of rank ceil(n/4) and n + 1 - ceil(n/4), or those for other `points`."""
    lower, upper = Fraction(str(points[0])), 1 - Fraction(str(points[1]))
    ordered = np.sort(x)
    return float(ordered[math.ceil(len(x) * lower) - 1]), float(ordered[len(x) - math.ceil(len(x) * upper)])


def change_point(
    family: str, x: np.ndarray, lmbda: float, rule: str, points: tuple[float, float] = (0.25, 0.75)
) -> float:
    """Return the value at which the rectified transform of a column becomes linear.

    By the rules "paper" and "both" it is a quartile. By "cellwise", as in R, it is psi^-1(1.5 psi(quartile)), where
    1.5 psi is kept 1e-5 inside the range of psi, and the result inside the range of the data.

    Parameters
    ----------
    family : str
        The transform.
    x : (n,) ndarray
        The column.
    lmbda : float
        Lambda.
    rule : {"paper", "both", "cellwise"}
        Rule of rectification.
    points : (float, float)
        Quantiles of the change points.
    """
    quartile = quartiles(x, points)[int(lmbda < 1)]
    if rule in ("paper", "both"):
        return quartile
    m = np.longdouble(lmbda)
    target = np.longdouble(1.5) * power_transforms(family, np.longdouble(quartile), lmbda)[()]
    below = family == "yeo-johnson" and target < 0
    exponent = m - 2 if below else m  # of psi = b_m(signed log)
    if exponent:
        end = -1 / exponent
        target = min(target, end - np.longdouble("1e-5")) if exponent < 0 else max(target, end + np.longdouble("1e-5"))
    log = np.log1p(exponent * target) / exponent if exponent else target
    c = np.exp(log) if family == "box-cox" else np.copysign(np.expm1(abs(log)), log)
    return float(min(max(c, x.min()), x.max()))


def rectified(family: str, x: np.ndarray, lmbda: float, lower: float, upper: float) -> np.ndarray:
    """Return psi, replaced by its tangent beyond the change point on the side that lambda flattens.

    Parameters
    ----------
    family : str
        The transform.
    x : (n,) ndarray
        The column.
    lmbda : float
        Lambda.
    lower, upper : float
        Change points for lambda > 1 and for lambda < 1.
    """
    y = power_transforms(family, x, lmbda)
    if lmbda == 1:
        return y
    c = np.longdouble(upper if lmbda < 1 else lower)
    beyond = x > c if lmbda < 1 else x < c
    offset_log = np.log(c) if family == "box-cox" else np.sign(c) * np.log1p(abs(c))
    slope = np.exp((np.longdouble(lmbda) - 1) * offset_log)
    return np.where(beyond, power_transforms(family, c, lmbda) + (x - c) * slope, y)


def rectified_by_rule(
    family: str, x: np.ndarray, lmbda: float, rule: str, points: tuple[float, float] = (0.25, 0.75)
) -> np.ndarray:
    """Return the transform of a column, rectified by a rule; "none" gives the plain transform.

    "both" differs from "paper" for Box-Cox with lambda > 0: below the lower quartile, the transform is linear in ln x.

    Parameters
    ----------
    family : str
        The transform.
    x : (n,) ndarray
        The column.
    lmbda : float
        Lambda.
    rule : {"none", "paper", "both", "cellwise"}
        Rule of rectification.
    points : (float, float)
        Quantiles of the change points.
    """
    if rule == "none" or (lmbda == 1 and rule != "both"):
        return power_transforms(family, x, lmbda)
    c = change_point(family, x, lmbda, rule, points)
    y = rectified(family, x, lmbda, c, c)
    if rule != "both" or family == "yeo-johnson" or lmbda <= 0:
        return y
    low = np.longdouble(quartiles(x, points)[0])
    tail = power_transforms(family, low, lmbda) + low**lmbda * np.log(np.asarray(x, dtype=np.longdouble) / low)
    return np.where(x < low, tail, power_transforms(family, x, lmbda) if lmbda >= 1 else y)


def normal_scores(n: int) -> np.ndarray:
    """Return the normal scores Phi^-1((i - 1/3)/(n + 1/3)), i = 1, ..., n, rounded from 40 digits."""
    with mpmath.workdps(40):
        p = [(i - mpmath.mpf(1) / 3) / (n + mpmath.mpf(1) / 3) for i in range(1, n + 1)]
        return np.array([float(mpmath.sqrt(2) * mpmath.erfinv(2 * v - 1)) for v in p])


def bisquare_distance(y: np.ndarray, scores: np.ndarray, loc: float, scale: float, c: float) -> float:
    """Return the mean of rho((y - loc)/scale - scores).

    Here rho(t) = 1 - (1 - (t/c)^2)^3 for abs(t) <= c, and 1 beyond.

    Parameters
    ----------
    y, scores : (n,) ndarray
        Values and normal scores.
    loc, scale : float
        Location and scale of the values.
    c : float
        Distance at which rho becomes 1.
    """
    total = mpmath.mpf(0)
    with mpmath.workdps(40):
        for value, score in zip(y, scores, strict=True):
            t = ((mpmath.mpf(float(value)) - loc) / scale - mpmath.mpf(float(score))) / c
            total += 1 - (1 - t * t) ** 3 if abs(t) <= 1 else 1
        return float(total / len(y))


def qq_objective(
    family: str,
    x: np.ndarray,
    lmbda: float,
    rule: str,
    scores: np.ndarray,
    c: float = 0.5,
    points: tuple[float, float] = (0.25, 0.75),
) -> float:
    """Return the QQ objective of a sorted, prestandardised column, whose minimum is the start of RewML.

    Parameters
    ----------
    family : str
        The transform.
    x : (n,) ndarray
        The column.
    lmbda : float
        Lambda.
    rule : str
        Rule of rectification.
    scores : (n,) ndarray
        Normal scores.
    c : float
        Distance at which rho becomes 1.
    points : (float, float)
        Quantiles of the change points.
    """
    y = rectified_by_rule(family, x, lmbda, rule, points)
    loc, scale = huber_one_step(y, HUBER_K, HUBER_BETA)
    t = ((y - loc) / scale - scores) / c
    return float(np.mean(np.where(abs(t) <= 1, 1 - (1 - t * t) ** 3, 1)))


def carroll_objective(family: str, x: np.ndarray, lmbda: float) -> float:
    """Return ln s - (lambda - 1) mean(J), where s is the scale of Huber's joint M-estimate of location and scale.

    Location mu and scale s minimise ln s + mean(rho((y - mu)/s))/c, where rho is Huber's and c = P(abs(Z) < k).
    They are computed by reweighting from median and MAD.
    """
    y = power_transforms(family, x, lmbda)
    c = math.erf(HUBER_K / math.sqrt(2))
    mu = np.median(y)
    s = np.median(abs(y - mu))
    for _ in range(2000):
        w = np.minimum(1, HUBER_K / np.maximum(abs(y - mu) / s, 1e-30))
        last, mu = (mu, s), np.sum(w * y) / np.sum(w)
        s = np.sqrt(np.mean(w * (y - mu) ** 2) / c)
        if abs(s - last[1]) + abs(mu - last[0]) < 1e-13 * s:
            break
    return float(np.log(s)) - (lmbda - 1) * mean_log_slope(family, x)


def mean_log_slope(family: str, x: np.ndarray) -> float:
    """Return the mean of J, which is ln x for Box-Cox and sign(x) log1p(abs(x)) for Yeo-Johnson."""
    return float(np.mean(np.log(x) if family == "box-cox" else np.sign(x) * np.log1p(np.abs(x))))


def trimmed_objective(family: str, x: np.ndarray, lmbda: float, size: int) -> tuple[float, int]:
    """Return the minimum of 1/2 ln Var(psi) - (lambda - 1) mean(J) over all windows of `size` consecutive values.

    The index of the first value of this window is returned, too.

    Parameters
    ----------
    family : str
        The transform.
    x : (n,) ndarray
        The sorted column.
    lmbda : float
        Lambda.
    size : int
        Number of order statistics.
    """
    y = power_transforms(family, x, lmbda)
    starts = range(len(x) - size + 1)
    values = [
        float(np.log(np.var(y[i : i + size])) / 2) - (lmbda - 1) * mean_log_slope(family, x[i : i + size])
        for i in starts
    ]
    return min(zip(values, starts, strict=True))


def lowest(f: Callable[[float], float], low: float = -4.0, high: float = 6.0, step: float = 0.02) -> float:
    """Return the minimum of `f` on a grid, extended while `f` falls at an end, and refined near its lowest points.

    Parameters
    ----------
    f : callable
        The function.
    low, high : float
        Ends of the grid.
    step : float
        Its spacing.
    """
    grid = list(np.arange(low, high + step / 2, step))
    values = [f(v) for v in grid]
    while values[0] == min(values) and grid[0] > -1e3:
        grid.insert(0, grid[0] - max(step, 0.1 * abs(grid[0])))
        values.insert(0, f(grid[0]))
    while values[-1] == min(values) and grid[-1] < 1e3:
        grid.append(grid[-1] + max(step, 0.1 * abs(grid[-1])))
        values.append(f(grid[-1]))
    best = min(values)
    for i in np.argsort(values)[:3]:
        a, b = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        best = min(best, *(f(v) for v in netlib_fmin(f, a, b, 1e-6)))
    return best


class RobustFit(NamedTuple):
    """RewML from a given start: masks of the kept values and lambdas in each step, and final location and scale."""

    kept: list[np.ndarray]
    lmbdas: list[float]
    loc: float
    scale: float
    huber: tuple[float, float]


def prestandardized(family: str, x: np.ndarray, how: str) -> tuple[np.ndarray, float, float, float]:
    """Return a prestandardised column, and its center, divisor and power (the MAD of the logs, else 1).

    With `how` = "mad", values become (x - median)/MAD, or under Box-Cox exp((ln x - median)/MAD) with median and MAD of
    ln x. With "median" they become x/median, and with "none" they do not change. MADs are multiplied by 1.4826, as in
    R.
    """
    x = np.asarray(x, dtype=np.longdouble)
    median = np.median(x)
    if how == "none":
        return x, 0.0, 1.0, 1.0
    if how == "median":
        return x / median, 0.0, float(median), 1.0
    if family == "yeo-johnson":
        mad = np.longdouble(1.4826) * np.median(abs(x - median))
        return (x - median) / mad, float(median), float(mad), 1.0
    logs = np.log(x)
    middle = np.median(logs)
    power = np.longdouble(1.4826) * np.median(abs(logs - middle))
    return np.exp((logs - middle) / power), 0.0, float(np.exp(middle)), float(power)


def reweighted(
    family: str,
    u: np.ndarray,
    lmbda0: float,
    rule: str,
    n_reweight: int = 3,
    cutoff: float = CUTOFF,
    ddof: int = 0,
    points: tuple[float, float] = (0.25, 0.75),
    adaptive: bool = True,
) -> RobustFit:
    """Fit a prestandardised column by reweighted maximum likelihood from lambda0 (Raymaekers and Rousseeuw 2024).

    Under R's rule ("cellwise") the values to keep are selected once more at the final lambda. Under other rules they
    are the values of the last fit. After the first step an adaptive cut-off is chosen among four. It is the one beyond
    which the number of values exceeds the number expected of a normal sample most clearly, by the log-likelihood ratio
    of a Poisson count. If no ratio exceeds 2.3, the cut-off is ``cutoff + 2``.

    Parameters
    ----------
    family : str
        The transform.
    u : (n,) ndarray
        The column.
    lmbda0 : float
        Start.
    rule : str
        Rule of rectification of the first weights.
    n_reweight : int
        Number of fits.
    cutoff : float
        Cut-off of the weights.
    ddof : int
        Subtracted from the number of values in variances.
    points : (float, float)
        Quantiles of the change points.
    adaptive : bool
        Whether the cut-off is adaptive.
    """
    used = cutoff

    def within(y: np.ndarray, adapt: bool) -> np.ndarray:
        nonlocal used
        loc, scale = huber_one_step(y, HUBER_K, HUBER_BETA)
        distance = abs(y - loc) / scale
        excess = {cutoff + 2.0: 2.3}
        for trial in cutoff + np.array([0.0, 0.5, 1.0, 1.5]):
            outside, expected = np.count_nonzero(distance > trial), y.size * 2.0 * stats.norm.sf(trial)
            if outside > expected:
                excess[trial] = outside * math.log(outside / expected) - (outside - expected)
        used = max(excess, key=excess.__getitem__) if adapt else cutoff
        return distance <= used

    kept, lmbdas = [], [lmbda0]
    for step in range(n_reweight):
        y = rectified_by_rule(family, u, lmbdas[-1], rule if step == 0 else "none", points)
        kept.append(within(y, adaptive and step > 0))
        lmbdas.append(likeliest_lambda(family, u[kept[-1]], lmbdas[-1]))
    y = power_transforms(family, u, lmbdas[-1])
    if rule == "cellwise" or n_reweight == 0:
        kept.append(within(y, False))
    part = y[kept[-1]]
    return RobustFit(
        kept,
        lmbdas,
        float(part.mean()),
        float(part.std(ddof=ddof)) / (1.0 if rule == "cellwise" else sd_within(used)),
        huber_one_step(y, HUBER_K, HUBER_BETA),
    )


def share_at_quantiles(family: str, u: np.ndarray, lmbda0: float, rule: str, c: float = 0.5) -> float:
    """Return the fraction of values that a fit from lambda0 maps near quantiles of a truncated normal distribution.

    This distribution is normal between -CUTOFF and CUTOFF. The values kept are scaled to its standard deviation. Each
    counts (1 - (d/c)^2)^3, where d is its distance from the quantile of its rank. A value left out counts 1/2.

    Parameters
    ----------
    family : str
        The transform.
    u : (n,) ndarray
        The prestandardised column.
    lmbda0 : float
        Start.
    rule : str
        Rule of rectification of the first weights.
    c : float
        Distance from which on a value counts 0.
    """
    fit = reweighted(family, u, lmbda0, rule, adaptive=False)
    y = np.sort(power_transforms(family, u, fit.lmbdas[-1])[fit.kept[-1]]).astype(float)
    cut = stats.truncnorm(-CUTOFF, CUTOFF)
    z = cut.ppf((np.arange(1, y.size + 1) - 1 / 3) / (y.size + 1 / 3))
    d = (y - y.mean()) / y.std() * cut.std() - z
    return float(np.sum(np.clip(1 - (d / c) ** 2, 0, None) ** 3) + (u.size - y.size) / 2) / u.size


def likeliest_lambda(family: str, x: np.ndarray, start: float) -> float:
    """Return the root of `longdouble_score`, by bisection of an interval around `start`."""
    low = high = np.longdouble(start)
    step = np.longdouble(0.25)
    while longdouble_score(family, low, x) >= 0:
        low, step = low - step, 2 * step
    step = np.longdouble(0.25)
    while longdouble_score(family, high, x) <= 0:
        high, step = high + step, 2 * step
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if longdouble_score(family, middle, x) > 0 else (middle, high)
    return float((low + high) / 2)


def sd_within(reach: float) -> float:
    """Return the standard deviation of a standard normal variable between -reach and reach, by quadrature."""
    with mpmath.workdps(30):
        mass, square = (mpmath.quad(lambda z, k=k: z**k * mpmath.npdf(z), [-reach, 0, reach]) for k in (0, 2))
        return float(mpmath.sqrt(square / mass))


def normal_quantile(p: float) -> float:
    """Return the standard normal quantile Phi^-1(p)."""
    with mpmath.workdps(40):
        return float(mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1))


# --- shifted Box-Cox ----------------------------------------------------------------------------------


def shifted_box_cox(x: float, shift: float, lmbda: float) -> mpmath.mpf:
    """Return ((x + shift)^lambda - 1)/lambda (Box & Cox 1964, eq. (2)) without rounding x + shift to float64."""
    with mpmath.workdps(60):
        y, power = mpmath.mpf(float(x)) + mpmath.mpf(float(shift)), mpmath.mpf(lmbda)
        return mpmath.log(y) if power == 0 else (y**power - 1) / power


def shifted_box_cox_lambda(x: Sequence[float], shift: float, start: float) -> mpmath.mpf:
    """Return the maximum likelihood estimate of lambda for a given shift: the root of the derivative near `start`."""
    with mpmath.workdps(60):
        logs = [mpmath.log(mpmath.mpf(float(v)) + mpmath.mpf(float(shift))) for v in x]
        n, mean_log = len(logs), mpmath.fsum(logs) / len(logs)

        def score(lmbda: mpmath.mpf) -> mpmath.mpf:
            y = [mpmath.expm1(lmbda * a) / lmbda for a in logs]
            slope = [(a * mpmath.exp(lmbda * a) - v) / lmbda for a, v in zip(logs, y, strict=True)]
            mean = mpmath.fsum(y) / n
            above = mpmath.fsum((v - mean) * d for v, d in zip(y, slope, strict=True))
            return above / mpmath.fsum((v - mean) ** 2 for v in y) - mean_log

        at = mpmath.mpf(start)
        return mpmath.findroot(score, (at + mpmath.mpf("1e-3"), at - mpmath.mpf("1e-3")), solver="anderson", tol=1e-50)


# --- columns together ---------------------------------------------------------------------------------


def joint_nll(
    family: str,
    lmbda: Sequence[object],
    X: np.ndarray,
    covariates: np.ndarray | None = None,
    weight: Sequence[float] | None = None,
) -> mpmath.mpf:
    """Return 1/2 ln det S - sum_j (lambda_j - 1) mean(J_j), where S is the covariance (divisor n) of the residuals.

    The transformed columns are regressed on an intercept and the covariates by normal equations. Their condition costs
    digits, so the working precision should be twice the desired one.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : sequence of numbers
        Lambda of each column.
    X : (n, p) ndarray
        The columns.
    covariates : (n, q) ndarray, optional
        Covariates.
    weight : sequence of float, optional
        Weights of the rows.
    """
    n, p = X.shape
    w = [mpmath.mpf(1)] * n if weight is None else [mpmath.mpf(float(v)) for v in weight]
    total = mpmath.fsum(w)
    rows = [[mpmath.mpf(1)] + ([] if covariates is None else [mpmath.mpf(float(v)) for v in row]) for row in (
        np.empty((n, 0)) if covariates is None else covariates)]  # fmt: skip
    psi, jacobian = [], mpmath.mpf(0)
    for j in range(p):
        parts = [log_and_branch(family, lmbda[j], v) for v in X[:, j]]
        # b_m(a) - b_m(r) = e^(m r) b_m(a - r): with one branch, no power of the data is formed
        m, r = parts[0][1], (parts[0][0] if len({s for _, _, s in parts}) == 1 else mpmath.mpf(0))
        psi.append([s * branch(a - r, m) for a, m, s in parts])
        jacobian += (lmbda[j] - 1) * mpmath.fdot(w, [s * a for a, _, s in parts]) / total - m * r
    columns = [*zip(*rows, strict=True), *psi]
    products = mpmath.matrix(
        [[mpmath.fsum(a * b * c for a, b, c in zip(w, u, v, strict=True)) / total for v in columns] for u in columns]
    )
    q = len(rows[0])
    # det of the Schur complement
    return mpmath.log(mpmath.det(products) / mpmath.det(products[:q, :q])) / 2 - jacobian


def joint_derivatives(
    family: str,
    lmbda: Sequence[float],
    X: np.ndarray,
    covariates: np.ndarray | None = None,
    weight: Sequence[float] | None = None,
    digits: int = 120,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return `joint_nll`, and its gradient and Hessian by central differences of step 10^(-digits/5).

    Parameters
    ----------
    family : str
        The transform.
    lmbda : sequence of float
        Lambda of each column.
    X : (n, p) ndarray
        The columns.
    covariates : (n, q) ndarray, optional
        Covariates.
    weight : sequence of float, optional
        Weights of the rows.
    digits : int
        Working precision.
    """
    with mpmath.workdps(digits):
        h = mpmath.mpf(10) ** (-digits // 5)
        at = [mpmath.mpf(float(v)) for v in lmbda]
        p = len(at)

        def f(*moves: tuple[int, int]) -> mpmath.mpf:
            moved = list(at)
            for j, steps in moves:
                moved[j] += steps * h
            return joint_nll(family, moved, X, covariates, weight)

        f0 = f()
        up, down = [f((j, 1)) for j in range(p)], [f((j, -1)) for j in range(p)]
        gradient = np.array([float((up[j] - down[j]) / (2 * h)) for j in range(p)])
        hessian = np.empty((p, p))
        for j in range(p):
            hessian[j, j] = float((up[j] - 2 * f0 + down[j]) / h**2)
            for k in range(j):
                corners = f((j, 1), (k, 1)) - f((j, 1), (k, -1)) - f((j, -1), (k, 1)) + f((j, -1), (k, -1))
                hessian[j, k] = hessian[k, j] = float(corners / (4 * h**2))
        return float(f0), gradient, hessian


def qn(x: Sequence[float]) -> float:
    """Return Rousseeuw and Croux's Qn without its consistency factor, from the distances of all pairs."""
    half = len(x) // 2 + 1
    distances = sorted(abs(a - b) for a, b in itertools.combinations(map(float, x), 2))
    return distances[half * (half - 1) // 2 - 1]
