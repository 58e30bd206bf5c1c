"""Likelihood of a power transform of (x - origin)/unit, and its derivatives.

With u = (x - x0)/s and psi the transform of u, per observation and without ln(2 pi)/2 + 1/2 ([1]_, in our words):

    L = -ln(Var psi)/2 - ln s + (lambda - 1) mean(J),   J = ln u (Box-Cox), sign(u) ln(1 + |u|) (Yeo-Johnson).

Box-Cox's s cancels against the variance, and stays at 1. The values are sorted, so that a branch of Yeo-Johnson is a
stretch of them, and a block of values has one exponent m. With v = 1 + |u| (Box-Cox: u), a = ln v and psi = +-b_m(a),
all derivatives come from v^m, a and 1/v:

    psi_u = v^(m - 1),   psi_uu = (lambda - 1) v^(m - 2),   psi_u,lambda = +-a v^(m - 1).

References
----------
.. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import count_below
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.score_formulas import SERIES_REACH, phis

#: The parameters, and their ranges: lambda, the origin, the log of the unit.
LMBDA, ORIGIN, LOG_UNIT, N_PARAMETERS = range(4)
#: Results beyond the parameters: L, the information of lambda with the others free, evaluations, certificate.
LIKELIHOOD, INFORMATION, N_EVAL, CERTIFIED, N_FOUND = range(3, 8)
BLOCK = 256
# rows of a block: u, 1/v, a, b_m(a), its derivatives in m, and v^(m - 1)
_U, _R, _A, _Y, _Y1, _Y2, _P, N_BLOCK = range(8)
# sums over values: weights; psi, its first derivatives (lambda, x0, ln s) and second ones (in the order of the upper
# triangle); psi times all of these; products of first derivatives; J, its first derivatives, and second ones in x0, s
_FIRST, _SECOND, _TIMES, _CROSS, _JACOBIAN, N_SUMS = 1, 5, 11, 21, 27, 33
# L, its gradient and the upper triangle of its Hessian, x0 in units of s
GRADIENT, HESSIAN, N_AT = 1, 4, 10


class OriginWork(NamedTuple):
    """Scratch for one column."""

    block: FloatArray
    sums: FloatArray  #: a row
    at: FloatArray  #: L and its derivatives, at the present point and at the next
    steps: FloatArray  #: present point, next, step
    matrix: FloatArray
    sample: FloatArray  #: values, and weights
    grid: FloatArray  #: parameters and L
    tops: FloatArray  #: the same of maxima
    ranges: FloatArray  #: as `ranges` of a column, for one point of the grid


@kernel
def _logs(x: FloatArray, x0: float, scaling: float, side: float, one: float, block: FloatArray) -> None:
    """u, 1/v and a of some values on one side."""
    for i in range(x.size):
        u = (x[i] - x0) * scaling
        v = one + side * u
        block[_U, i] = u
        block[_R, i] = 1.0 / v
        block[_A, i] = log(v)


@kernel
def _powers(n: int, m: float, block: FloatArray) -> None:
    """b_m(a), its derivatives in m, and v^(m - 1)."""
    inverse = 1.0 / m
    for i in range(n):
        a = block[_A, i]
        power = exp(m * a)
        b = (power - 1.0) * inverse
        b1 = (a * power - b) * inverse
        block[_Y, i], block[_Y1, i] = b, b1
        block[_Y2, i] = (a * a * power - 2.0 * b1) * inverse
        block[_P, i] = power * block[_R, i]


@kernel
def _powers_near_0(n: int, m: float, block: FloatArray) -> None:
    """The same where |m a| is small, without a division by m."""
    for i in range(n):
        a = block[_A, i]
        power = exp(m * a)
        phi0, phi1, phi2, _ = phis(m * a, power, 1.0)
        block[_Y, i], block[_Y1, i], block[_Y2, i] = a * phi0, a * a * phi1, a * a * a * phi2
        block[_P, i] = power * block[_R, i]


@reduction
def _add(w: FloatArray, slope: float, side: float, y0: float, block: FloatArray, sums: FloatArray) -> None:
    """Add a block of one side to the sums; psi is measured from y0."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):  # three loops of about ten sums each: more do not fit into registers
        wi, u, a, p = w[i], block[_U, i], block[_A, i], block[_P, i]
        bend = slope * p * block[_R, i]  # psi_uu
        y1, moved = block[_Y1, i], u * p
        s0 += wi
        s1 += wi * (side * block[_Y, i] - y0)
        s2 += wi * y1
        s3 -= wi * p
        s4 -= wi * moved
        s5 += wi * block[_Y2, i]
        s6 -= wi * a * p
        s7 -= wi * a * moved
        s8 += wi * bend
        s9 += wi * (p + u * bend)
        s10 += wi * (moved + u * u * bend)
    sums[0] += s0
    sums[_FIRST] += s1
    sums[_FIRST + 1] += s2
    sums[_FIRST + 2] += s3
    sums[_FIRST + 3] += s4
    sums[_SECOND] += side * s5
    sums[_SECOND + 1] += side * s6
    sums[_SECOND + 2] += side * s7
    sums[_SECOND + 3] += s8
    sums[_SECOND + 4] += s9
    sums[_SECOND + 5] += s10
    s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):
        u, a, p = block[_U, i], block[_A, i], block[_P, i]
        y = side * block[_Y, i] - y0
        wy, bend, moved = w[i] * y, slope * p * block[_R, i], u * p
        s1 += wy * y
        s2 += wy * block[_Y1, i]
        s3 -= wy * p
        s4 -= wy * moved
        s5 += wy * block[_Y2, i]
        s6 -= wy * a * p
        s7 -= wy * a * moved
        s8 += wy * bend
        s9 += wy * (p + u * bend)
        s10 += wy * (moved + u * u * bend)
    sums[_TIMES] += s1
    sums[_TIMES + 1] += s2
    sums[_TIMES + 2] += s3
    sums[_TIMES + 3] += s4
    sums[_TIMES + 4] += side * s5
    sums[_TIMES + 5] += side * s6
    sums[_TIMES + 6] += side * s7
    sums[_TIMES + 7] += s8
    sums[_TIMES + 8] += s9
    sums[_TIMES + 9] += s10
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = 0.0
    for i in range(w.size):
        wi, u, r, p, y1 = w[i], block[_U, i], block[_R, i], block[_P, i], block[_Y1, i]
        moved = u * p
        s0 += wi * y1 * y1
        s1 -= wi * y1 * p
        s2 -= wi * y1 * moved
        s3 += wi * p * p
        s4 += wi * p * moved
        s5 += wi * moved * moved
        s6 += wi * block[_A, i]
        s7 += wi * r
        s8 += wi * u * r
        s9 += wi * r * r
        s10 += wi * u * r * r
    sums[_CROSS] += s0
    sums[_CROSS + 1] += s1
    sums[_CROSS + 2] += s2
    sums[_CROSS + 3] += s3
    sums[_CROSS + 4] += s4
    sums[_CROSS + 5] += s5
    sums[_JACOBIAN] += side * s6
    sums[_JACOBIAN + 1] -= s7
    sums[_JACOBIAN + 2] -= s8
    sums[_JACOBIAN + 3] -= side * s9
    sums[_JACOBIAN + 4] += s9
    sums[_JACOBIAN + 5] += s10


@kernel
def _psi(u: float, lmbda: float, box_cox: bool) -> float:
    """The transform of one value, roughly: psi is measured from it."""
    below = u < 0.0 and not box_cox
    m = 2.0 - lmbda if below else lmbda
    a = math.log(u if box_cox else 1.0 + abs(u))
    b = math.expm1(m * a) / m if m != 0.0 else a
    return -b if below else b


@kernel
def evaluate(x: FloatArray, w: FloatArray, box_cox: bool, theta: FloatArray, work: OriginWork, at: FloatArray) -> None:
    """L and its derivatives; -inf where the variance is not a number."""
    lmbda, x0, scaling = theta[LMBDA], theta[ORIGIN], math.exp(-theta[LOG_UNIT])
    n, block, sums = x.size, work.block, work.sums[0]
    for k in range(N_SUMS):
        sums[k] = 0.0
    y0 = _psi((x[n // 2] - x0) * scaling, lmbda, box_cox)
    border = 0 if box_cox else count_below(x, x0)
    one = 0.0 if box_cox else 1.0
    for part in range(2):
        side = -1.0 if part == 0 else 1.0
        start, stop = (0, border) if part == 0 else (border, n)
        if start == stop:
            continue
        m = 2.0 - lmbda if part == 0 else lmbda
        first = math.log(one + side * (x[start] - x0) * scaling)
        last = math.log(one + side * (x[stop - 1] - x0) * scaling)
        near_0 = abs(m) * max(abs(first), abs(last)) <= SERIES_REACH
        for i in range(start, stop, BLOCK):
            k = min(i + BLOCK, stop)
            _logs(x[i:k], x0, scaling, side, one, block)
            if near_0:
                _powers_near_0(k - i, m, block)
            else:
                _powers(k - i, m, block)
            _add(w[i:k], side * (m - 1.0), side, y0, block, sums)
    _likelihood_of(sums, lmbda, theta[LOG_UNIT], at)


@kernel
def _likelihood_of(sums: FloatArray, lmbda: float, log_unit: float, at: FloatArray) -> None:
    """L and its derivatives from sums: Cov(psi, psi_i) and its like over Var(psi)."""
    share, power = 1.0 / sums[0], lmbda - 1.0
    mean = sums[_FIRST] * share
    variance = sums[_TIMES] * share - mean * mean
    if not 0.0 < variance < math.inf:
        at[0] = -math.inf
        return
    per = 1.0 / variance
    at[0] = -0.5 * math.log(variance) - log_unit + power * sums[_JACOBIAN] * share
    for i in range(3):
        slope = (sums[_TIMES + 1 + i] - mean * sums[_FIRST + 1 + i]) * share * per
        own = sums[_JACOBIAN] * share if i == LMBDA else power * sums[_JACOBIAN + i] * share
        at[GRADIENT + i] = own - slope
    k = 0
    for i in range(3):
        for j in range(i, 3):
            first, second = sums[_FIRST + 1 + i], sums[_FIRST + 1 + j]
            slopes = (sums[_TIMES + 1 + i] - mean * first) * (sums[_TIMES + 1 + j] - mean * second)
            cross = sums[_CROSS + k] - first * second * share
            bend = sums[_TIMES + 4 + k] - mean * sums[_SECOND + k]
            own = 0.0
            if i > 0:
                own = power * sums[_JACOBIAN + k] * share
            elif j > 0:
                own = sums[_JACOBIAN + j] * share
            at[HESSIAN + k] = own - (cross + bend) * share * per + 2.0 * slopes * (share * per) ** 2
            k += 1
    at[GRADIENT + LOG_UNIT] -= 1.0
