"""Evaluate the likelihood of a power transform of (x - origin)/unit, and its derivatives.

With u = (x - x0)/s and psi the transform of u, per observation and without ln(2 pi)/2 + 1/2 ([1]_, in our notation):

    L = -ln(Var psi)/2 - ln s + (lambda - 1) mean(J),   J = ln u (Box-Cox), sign(u) ln(1 + |u|) (Yeo-Johnson).

For Box-Cox, s cancels against the variance and is fixed at 1. The values are sorted, so each branch of Yeo-Johnson
applies to a range of them. All values of a block belong to one branch and have the same exponent m. With v = 1 + |u|
(Box-Cox: u), a = ln v and psi = +-b_m(a) = +-(e^(m a) - 1)/m, all derivatives follow from v^m, a and 1/v:

    psi_u = v^(m - 1),   psi_uu = (lambda - 1) v^(m - 2),   psi_u,lambda = +-a v^(m - 1).

References
----------
.. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.cholesky import dot
from powerkern.kernels.elementary.constants import count_below
from powerkern.kernels.elementary.exp import exp
from powerkern.kernels.elementary.log import log
from powerkern.kernels.likelihood.score_formulas import SERIES_REACH, phis

#: Indices of the parameters, and of the rows of their ranges: lambda, the origin, the log of the unit.
LMBDA, ORIGIN, LOG_UNIT, N_PARAMETERS = range(4)
#: Indices of results after the parameters: L, the information of lambda with the other parameters free, the number of
#: evaluations, and whether the maximum is certified.
LIKELIHOOD, INFORMATION, N_EVAL, CERTIFIED, N_FOUND = range(3, 8)
#: Number of values in a block, whose N_BLOCK rows (48 KB) fit the second-level cache.
BLOCK = 256
#: Indices of the rows of a block: logs a, 1/v, u; psi, its three first derivatives in (lambda, x0, ln s), and its six
#: second derivatives as an upper triangle; J and its derivatives in x0 and ln s, in the same order, where J stands for
#: the derivative of (lambda - 1) J in lambda; rows for weighted terms; v^m.
_A, _R, _U, _PSI, _FIRST, _SECOND, _JACOBIAN, _WEIGHTED, _POWER, N_BLOCK = 0, 1, 2, 3, 4, 7, 13, 19, 23, 24
#: Number of rows that are summed: psi and its derivatives, and J and its derivatives.
_TERMS = _WEIGHTED - _PSI
#: Indices in the sums over values, after the sum of weights: the terms; products of psi with psi and its derivatives;
#: products of two first derivatives of psi.
_SUMS, _TIMES, _CROSS, N_SUMS = 1, 17, 27, 33
#: Indices after L: its gradient, and the upper triangle of its Hessian. x0 is in units of s.
GRADIENT, HESSIAN, N_AT = 1, 4, 10


class OriginWork(NamedTuple):
    """Scratch arrays for the search for lambda, origin and unit in one column."""

    block: FloatArray
    sums: FloatArray  #: (1, N_SUMS): sums over the values
    at: FloatArray  #: L and its derivatives at the current point, and at the trial point
    steps: FloatArray  #: current point, trial point, step
    matrix: FloatArray  #: Cholesky factor of minus the Hessian
    sample: FloatArray  #: values and weights of the sample
    grid: FloatArray  #: parameters and L at each grid point
    tops: FloatArray  #: parameters and L at local maxima
    ranges: FloatArray  #: ranges of the parameters that fix the origin at a grid point


@kernel
def _logs(x: FloatArray, x0: float, scaling: float, side: float, one: float, block: FloatArray) -> None:
    """Write u = (x - x0)/s, 1/v and a = ln v to a block, for values x on one side of the origin.

    Parameters
    ----------
    x : (n,)
        The values, n <= BLOCK.
    x0 : float
        The origin.
    scaling : float
        1/s, the inverse of the unit.
    side : float
        1 for values above the origin, -1 for values below; v = one + side u.
    one : float
        1 for Yeo-Johnson, 0 for Box-Cox.
    block : (N_BLOCK, BLOCK)
        Receives u, 1/v and a in the rows _U, _R and _A.
    """
    for i in range(x.size):
        u = (x[i] - x0) * scaling
        v = one + side * u
        block[_U, i] = u
        block[_R, i] = 1.0 / v
        block[_A, i] = log(v)


@kernel
def _branch(n: int, m: float, near_0: bool, block: FloatArray) -> None:
    """Write v^m, b_m(a) and the first two derivatives of b_m(a) in m to a block.

    b_m(a) is (e^(m a) - 1)/m. The block holds the logs a = ln v of `n` values with exponent `m`. If `near_0` is true,
    |m a| is small for all of the values, and power series replace the closed forms.
    """
    b, b1, b2, power = block[_PSI], block[_FIRST], block[_SECOND], block[_POWER]
    for i in range(n):
        power[i] = exp(m * block[_A, i])
    if near_0:
        for i in range(n):
            a = block[_A, i]
            phi0, phi1, phi2, _ = phis(m * a, power[i], 1.0)
            b[i], b1[i], b2[i] = a * phi0, a * a * phi1, a * a * a * phi2
    else:
        inverse = 1.0 / m
        for i in range(n):
            a = block[_A, i]
            b[i] = (power[i] - 1.0) * inverse
            b1[i] = (a * power[i] - b[i]) * inverse
            b2[i] = (a * a * power[i] - 2.0 * b1[i]) * inverse


@kernel
def _derivatives(n: int, m: float, side: float, y0: float, block: FloatArray) -> None:
    """Complete a block of values: write psi - y0, the log-Jacobian J, and their derivatives in the parameters.

    The block already has u, 1/v, a, v^m, b_m(a) and its derivatives in m. The formulas are psi_u = v^(m - 1), psi_uu =
    side (m - 1) v^(m - 2), psi_u,lambda = side a v^(m - 1), J_u = 1/v and J_uu = -side/v^2. The chain rule uses u_x0 =
    -1 (with x0 in units of s) and u_ln s = -u.

    Parameters
    ----------
    n : int
        Number of values in the block.
    m : float
        The exponent on this side of the origin.
    side : float
        1 for values above the origin, -1 for values below.
    y0 : float
        A constant that is subtracted from psi to avoid cancellation.
    block : (N_BLOCK, BLOCK)
        A row for each quantity, a column for each value; completed in place.
    """
    for i in range(n):
        u, r, a = block[_U, i], block[_R, i], block[_A, i]
        slope = block[_POWER, i] * r  # psi_u
        bend, mixed = side * (m - 1.0) * slope * r, side * a * slope  # psi_uu and psi_u,lambda
        block[_PSI, i] = side * block[_PSI, i] - y0
        block[_FIRST + 1, i], block[_FIRST + 2, i] = -slope, -u * slope
        block[_SECOND, i] *= side
        block[_SECOND + 1, i], block[_SECOND + 2, i] = -mixed, -u * mixed
        block[_SECOND + 3, i], block[_SECOND + 4, i] = bend, slope + u * bend
        block[_SECOND + 5, i] = u * slope + u * u * bend
        block[_JACOBIAN, i] = side * a
        block[_JACOBIAN + 1, i], block[_JACOBIAN + 2, i] = -r, -u * r
        block[_JACOBIAN + 3, i] = -side * r * r
        block[_JACOBIAN + 4, i], block[_JACOBIAN + 5, i] = r * r, u * r * r


@kernel
def _add(w: FloatArray, block: FloatArray, sums: FloatArray) -> None:
    """Add the sums over a block of values to `sums`: of weights, weighted terms, and weighted products of terms.

    The terms are psi, J and their derivatives, which `_derivatives` wrote to `block`. The comment at `_SUMS` describes
    the layout of `sums`, (N_SUMS,).
    """
    n = w.size
    for k in range(4):  # psi and its first derivatives times weights
        term, weighted = block[_PSI + k], block[_WEIGHTED + k]
        for i in range(n):
            weighted[i] = w[i] * term[i]
    for i in range(n):
        sums[0] += w[i]
    for k in range(_TERMS):
        sums[_SUMS + k] += dot(w, block[_PSI + k, :n])
    for k in range(_JACOBIAN - _PSI):
        sums[_TIMES + k] += dot(block[_WEIGHTED, :n], block[_PSI + k, :n])
    k = 0
    for i in range(3):
        for j in range(i, 3):
            sums[_CROSS + k] += dot(block[_WEIGHTED + 1 + i, :n], block[_FIRST + j, :n])
            k += 1


@kernel
def _psi(u: float, lmbda: float, box_cox: bool) -> float:
    """Return the transform of u, for use as the constant that is subtracted from psi to avoid cancellation."""
    below = u < 0.0 and not box_cox
    m = 2.0 - lmbda if below else lmbda
    a = math.log(u if box_cox else 1.0 + abs(u))
    b = math.expm1(m * a) / m if m != 0.0 else a
    return -b if below else b


@kernel
def evaluate(x: FloatArray, w: FloatArray, box_cox: bool, theta: FloatArray, work: OriginWork, at: FloatArray) -> None:
    """Write the log-likelihood L, its gradient and its Hessian at `theta`.

    L is -inf if the variance of psi is not positive and finite.

    Parameters
    ----------
    x : (n,)
        The values, ascending.
    w : (n,)
        Weights of the values.
    box_cox : bool
        True: Box-Cox. False: Yeo-Johnson.
    theta : (N_PARAMETERS,)
        Lambda, origin, log of the unit.
    work : OriginWork
        Scratch.
    at : (N_AT,)
        Receives L, its gradient and the upper triangle of its Hessian.
    """
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
            _branch(k - i, m, near_0, block)
            _derivatives(k - i, m, side, y0, block)
            _add(w[i:k], block, sums)
    _write_likelihood(sums, lmbda, theta[LOG_UNIT], at)


@kernel
def _write_likelihood(sums: FloatArray, lmbda: float, log_unit: float, at: FloatArray) -> None:
    """Write the log-likelihood L, its gradient and its Hessian to `at`, from the sums over all values.

    L_i = -Cov(psi, psi_i)/Var(psi) + ((lambda - 1) mean(J))_i, where the index i denotes the derivative in parameter i.
    The second derivatives are the derivatives of L_i.
    """
    per_weight, power = 1.0 / sums[0], lmbda - 1.0
    mean = sums[_SUMS] * per_weight
    variance = sums[_TIMES] * per_weight - mean * mean
    if not 0.0 < variance < math.inf:
        at[0] = -math.inf
        return
    first, second = sums[_SUMS + 1 : _SUMS + 4], sums[_SUMS + 4 : _SUMS + 10]
    jacobian = sums[_SUMS + 10 : _SUMS + 16]
    per_square = per_weight / variance
    at[0] = -0.5 * math.log(variance) - log_unit + power * jacobian[0] * per_weight
    for i in range(3):
        slope = (sums[_TIMES + 1 + i] - mean * first[i]) * per_square
        at[GRADIENT + i] = (1.0 if i == LMBDA else power) * jacobian[i] * per_weight - slope
    k = 0
    for i in range(3):
        for j in range(i, 3):
            slopes = (sums[_TIMES + 1 + i] - mean * first[i]) * (sums[_TIMES + 1 + j] - mean * first[j])
            cross = sums[_CROSS + k] - first[i] * first[j] * per_weight
            bend = sums[_TIMES + 4 + k] - mean * second[k]
            of_jacobian = 0.0
            if i > LMBDA:
                of_jacobian = power * jacobian[k] * per_weight
            elif j > LMBDA:
                of_jacobian = jacobian[j] * per_weight
            at[HESSIAN + k] = of_jacobian - (cross + bend) * per_square + 2.0 * slopes * per_square**2
            k += 1
    at[GRADIENT + LOG_UNIT] -= 1.0
