"""The logarithm of the normal distribution function, and its derivatives, for any argument.

Everything is computed from ``E(u) = e^(u^2) erfc(u)``, which neither overflows nor underflows for u >= 0. It is
given by a Chebyshev series [1]_. With ``u = -t/sqrt(2)``, for t <= 0,

    Phi(t) = e^(-t^2/2) E(u)/2,    phi(t)/Phi(t) = sqrt(2/pi)/E(u).

References
----------
.. [1] M. M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity",
   Mathematics of Computation 36, 1981, 249-253.
"""

from __future__ import annotations

from typing import NamedTuple

from powerkern._jit import fma, inlined, kernel
from powerkern.kernels.elementary.erf import SQRT_HALF
from powerkern.kernels.elementary.exp import exp, expm1, polynomial
from powerkern.kernels.elementary.log import log, log1p, log_normal

#: (1 + 2u) E(u) as a polynomial in v = (u - k)/(u + k), -1 <= v <= 1, k = 15/4: the first 25 terms of the Chebyshev
#: series, computed with 50 digits; the next is 2e-18.
_SCALED = (
    1.2375126308378275,
    -0.14024059858554697,
    0.0035854154854644293,
    0.0822767384901452,
    -0.10880393014174886,
    0.09230432116037748,
    -0.05869339858963677,
    0.028362277418956406,
    -0.009746579558029276,
    0.0017556258528952954,
    0.0002937136655913448,
    -0.0002901540805408417,
    5.164909889268241e-05,
    2.238423915508223e-05,
    -1.1444146237700524e-05,
    -9.73559896736775e-07,
    1.751637648849062e-06,
    -5.7218230603224086e-08,
    -2.5866850716155884e-07,
    2.3263508708859124e-08,
    3.8675334242222354e-08,
    -3.744210080962018e-09,
    -5.1739902140113095e-09,
    3.1114333809799254e-10,
    4.2514714447963895e-10,
)
_EVEN, _ODD = _SCALED[::2], _SCALED[1::2]
#: The k of this map; the coefficients hold for this k only.
_CENTER = 3.75
#: sqrt(2/pi) and 1/sqrt(2 pi).
_SQRT_2_OVER_PI, _DENSITY_AT_0 = 0.7978845608028654, 0.3989422804014327
#: For larger u, v rounds to 1.
_FARTHEST = 1e17
#: Largest h, and largest |m| h, for which an interval (m - h, m + h) is integrated: the eight-point formula is exact to
#: 1e-16 there. For larger ones the difference of two probabilities loses at most two bits.
NARROW, _FLAT = 0.5, 1.0


class LogProbability(NamedTuple):
    """The logarithm of the probability of an interval (m - h, m + h), and its derivatives in m and in h."""

    log: float
    d_mid: float
    d_half: float


class IntervalProbability(NamedTuple):
    """The logarithm of the probability of an interval, and the densities at its ends divided by the probability."""

    log: float
    at_low: float
    at_high: float


@inlined
def _scaled_erfc_parts(u: float) -> tuple[float, float]:
    """Return (1 + 2u) e^(u^2) erfc(u) and 1/(1 + 2u), for u >= 0.

    u is limited to _FARTHEST. For larger u the second result exceeds 1/(1 + 2u) by less than 1e-17 in absolute terms.
    """
    near = u if u < _FARTHEST else _FARTHEST
    shifted, divisor = near + _CENTER, 1.0 + 2.0 * near
    reciprocal = 1.0 / (shifted * divisor)  # one division in place of two
    v = (near - _CENTER) * (divisor * reciprocal)
    w = v * v
    return polynomial(_ODD, w) * v + polynomial(_EVEN, w), shifted * reciprocal


@inlined
def scaled_erfc(u: float) -> float:
    """Return e^(u^2) erfc(u) for u >= 0, within 4 ulp."""
    return _scaled_erfc_parts(u)[0] / (1.0 + 2.0 * u)


@inlined
def _gauss(t: float) -> float:
    """Return e^(-t^2/2), corrected for the rounding error of t^2; 0 where the result would be below e^-750."""
    square = t * t
    lost = fma(t, t, -square) if square < 1500.0 else 0.0
    return exp(-0.5 * square) * (1.0 - 0.5 * lost)


@inlined
def log_probability_below(t: float) -> LogProbability:
    """Return the `LogProbability` of (-inf, t): ln Phi(t), and its derivative phi(t)/Phi(t) in t as `d_mid`.

    Phi is the standard normal distribution function, and phi its density. With ``u = |t|/sqrt(2)``, let ``E(u)`` be
    ``e^(u^2) erfc(u)``. For t <= 0 the result is ``ln(E(u)/2) - t^2/2``. For t > 0 it is ``ln(1 - p)``, corrected for
    the rounding error of ``1 - p``, with ``p = e^(-t^2/2) E(u)/2``. In both cases the same logarithm and the same
    division are evaluated, with different operands, so that loops can be vectorised.
    """
    scaled, inverse = _scaled_erfc_parts(abs(t) * SQRT_HALF)
    gauss = _gauss(t)
    half = 0.5 * (scaled * inverse)
    above = gauss * half
    rest = 1.0 - above
    lost = (1.0 - rest) - above
    is_left = t <= 0.0
    head = log_normal(half if is_left else rest)
    tail = -0.5 * t * t if is_left else lost * (1.0 + above)
    numerator = _SQRT_2_OVER_PI * (1.0 + 2.0 * abs(t) * SQRT_HALF) if is_left else _DENSITY_AT_0 * gauss
    return LogProbability(head + tail, numerator / (scaled if is_left else rest), 0.0)


@kernel
def log_ndtr(t: float) -> float:
    """Return ln Phi(t), where Phi is the standard normal distribution function."""
    return log_probability_below(t).log


@kernel
def inverse_mills_ratio(t: float) -> float:
    """Return phi(t)/Phi(t), the derivative of `log_ndtr`, where phi is the standard normal density."""
    return log_probability_below(t).d_mid


@kernel
def log_probability_between(mid: float, half: float) -> LogProbability:
    """Return ln(Phi(mid + half) - Phi(mid - half)), for half > 0, and its derivatives in `mid` and `half`.

    For a narrow interval the density is integrated numerically. The probability of a wide interval is the difference of
    two tails or, if the interval contains 0, 1 minus both tails.
    """
    m = -abs(mid)
    if half <= NARROW and -m * half <= _FLAT:
        found = _narrow(m, half)
    else:
        b, a = m + half, m - half
        p = _in_tail(a, b, 2.0 * m * half) if b <= 0.0 else _about_center(a, b)
        found = LogProbability(p.log, p.at_high - p.at_low, p.at_high + p.at_low)
    return LogProbability(found.log, -found.d_mid if mid > 0.0 else found.d_mid, found.d_half)


@kernel
def log_probability_of(low: float, high: float) -> IntervalProbability:
    """Return ln(Phi(high) - Phi(low)), and the densities at both ends divided by Phi(high) - Phi(low).

    The interval must be longer than `NARROW`. The difference high - low of a shorter interval would lose digits to the
    rounding errors of large ends.
    """
    is_right = low + high > 0.0
    a, b = (-high, -low) if is_right else (low, high)
    p = _in_tail(a, b, 0.5 * (b - a) * (b + a)) if b <= 0.0 else _about_center(a, b)
    return IntervalProbability(p.log, p.at_high, p.at_low) if is_right else p


@kernel
def _mean_growth(m: float, half: float) -> float:
    """Return the mean of `_growth` at m over 0 < s < half, by the eight-point Gauss-Legendre formula."""
    return (
        0.05061426814518813 * _growth(m, 0.019855071751231884 * half)
        + 0.11119051722668724 * _growth(m, 0.10166676129318664 * half)
        + 0.15685332293894363 * _growth(m, 0.2372337950418355 * half)
        + 0.181341891689181 * _growth(m, 0.4082826787521751 * half)
        + 0.181341891689181 * _growth(m, 0.591717321247825 * half)
        + 0.15685332293894363 * _growth(m, 0.7627662049581645 * half)
        + 0.11119051722668724 * _growth(m, 0.8983332387068134 * half)
        + 0.05061426814518813 * _growth(m, 0.9801449282487681 * half)
    )


@kernel
def _growth(m: float, s: float) -> float:
    """Return (phi(m + s) + phi(m - s))/phi(m) = 2 cosh(m s) e^(-s^2/2), where phi is the normal density."""
    return (exp(m * s) + exp(-m * s)) * exp(-0.5 * s * s)


@kernel
def _narrow(m: float, half: float) -> LogProbability:
    """Return `log_probability_between` for a narrow interval, by integrating the density over (m - half, m + half)."""
    integral = _mean_growth(m, half)
    up, down = expm1(m * half), expm1(-m * half)
    end = exp(-0.5 * half * half) / (half * integral)
    log_density = log(_DENSITY_AT_0) - 0.5 * m * m
    return LogProbability(log_density + log(half * integral), (down - up) * end, (up + down + 2.0) * end)


@kernel
def _in_tail(a: float, b: float, exponent: float) -> IntervalProbability:
    """Return `log_probability_of` for an interval (a, b) with b <= 0, as ln Phi(b) + ln(1 - Phi(a)/Phi(b)).

    `exponent` is ``(b^2 - a^2)/2``, the logarithm of phi(a)/phi(b), where phi is the normal density.
    """
    tail_b, tail_a = scaled_erfc(-b * SQRT_HALF), scaled_erfc(-a * SQRT_HALF)
    ratio = exp(exponent) * (tail_a / tail_b)
    rest = 1.0 - ratio
    at_b = _SQRT_2_OVER_PI / (tail_b * rest)
    at_a = _SQRT_2_OVER_PI * ratio / (tail_a * rest)
    return IntervalProbability(log(0.5 * tail_b) - 0.5 * b * b + log1p(-ratio), at_a, at_b)


@kernel
def _about_center(a: float, b: float) -> IntervalProbability:
    """Return `log_probability_of` for an interval (a, b) that contains 0, as ln(1 - Phi(a) - Phi(-b))."""
    gauss_b, gauss_a = _gauss(b), _gauss(a)
    missing = 0.5 * (gauss_b * scaled_erfc(b * SQRT_HALF) + gauss_a * scaled_erfc(-a * SQRT_HALF))
    at_b, at_a = _DENSITY_AT_0 * gauss_b / (1.0 - missing), _DENSITY_AT_0 * gauss_a / (1.0 - missing)
    return IntervalProbability(log1p(-missing), at_a, at_b)
