"""Constants of the wrapping function psi, and its moments under the normal distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammainc

from powerkern._input.arguments import as_number
from powerkern._typing import FloatArray


@dataclass(frozen=True)
class WrapConstants:
    """Constants of the wrapping function psi; see `wrap_constants`.

    Attributes
    ----------
    b : float
        psi is the identity up to b.
    c : float
        psi is 0 beyond c.
    q1, q2 : float
        Between b and c, psi is ``q1 tanh(q2 (c - |z|)) sign(z)``.
    """

    b: float
    c: float
    q1: float
    q2: float

    @property
    def array(self) -> FloatArray:
        """Array of b, c, q1 and q2, as kernels take them."""
        return np.array([self.b, self.c, self.q1, self.q2])


def wrap_constants(b: float = 1.5, c: float = 4.0) -> WrapConstants:
    """Return the constants q1 and q2 of the wrapping function for given b and c.

    ``psi(z) = z`` for ``|z| < b``, ``q1 tanh(q2 (c - |z|)) sign(z)`` for ``b <= |z| <= c``, and 0 for ``|z| > c`` [1]_.
    q1 makes psi continuous at b: ``q1 tanh(q2 (c - b)) = b``. q2 makes psi the most efficient function of this form at
    the normal distribution, given a bound k on its change-of-variance curve [2]_: ``q1 = sqrt(A (k - 1))`` and
    ``q2 = sqrt((k - 1) B**2/A)/2`` with ``A = E psi(Z)**2`` and ``B = E Z psi(Z)`` for standard normal Z, that is,
    ``q1 B = 2 q2 A``.

    Parameters
    ----------
    b, c : float
        ``0 < b < c < 40``.

    Returns
    -------
    WrapConstants

    References
    ----------
    .. [1] J. Raymaekers, P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
       184-198.
    .. [2] F. R. Hampel, P. J. Rousseeuw, E. Ronchetti, "The change-of-variance curve and optimal redescending
       M-estimators", J. Amer. Statist. Assoc. 76, 1981, 643-648.

    Examples
    --------
    >>> from powerkern.cellwise.constants import wrap_constants
    >>> found = wrap_constants(1.5, 4.0)
    >>> print(f"{found.q1:.6f} {found.q2:.7f}")
    1.540793 0.8622731
    """
    corner, end = as_number("b", b, "(0, inf)"), as_number("c", c, "(0, 40)")
    if not corner < end:
        raise ValueError(f"b must be below c, got b={b} and c={c}")
    return _solve_constants(corner, end)


@lru_cache(maxsize=64)
def _solve_constants(b: float, c: float) -> WrapConstants:
    """Compute the result of `wrap_constants` for valid b and c."""
    from scipy.optimize import brentq

    most = 30.0 / (c - b) + 2.0 * b + 2.0
    q2 = float(brentq(_imbalance, 1e-100, most, args=(b, c), xtol=1e-15, maxiter=1000))
    return WrapConstants(b, c, b / math.tanh(q2 * (c - b)), q2)


#: Gauss-Legendre nodes and weights on [-1, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def _imbalance(q2: float, b: float, c: float) -> float:
    """Return ``q1 B - 2 q2 A``, with q1, A and B as in `wrap_constants`; it is 0 at the optimal q2."""
    constants = WrapConstants(b, c, b / math.tanh(q2 * (c - b)), q2)
    a, slope = moments(constants)[1:]
    return float(constants.q1 * slope - 2.0 * q2 * a)


def moments(constants: WrapConstants) -> tuple[float, float, float]:
    """Return ``E psi(Z)/Z``, ``E psi(Z)**2`` and ``E Z psi(Z)`` for standard normal Z."""
    b, c, q1, q2 = constants.array
    half = 0.5 * (c - b)
    z = b + half * (_NODES + 1.0)
    falling = q1 * np.tanh(q2 * (c - z))
    weight = half * _WEIGHTS * np.exp(-0.5 * z * z) * math.sqrt(2.0 / math.pi)
    inside, squares = gammainc(0.5, 0.5 * b * b), gammainc(1.5, 0.5 * b * b)
    sums = (inside + weight @ (falling / z), squares + weight @ falling**2, squares + weight @ (falling * z))
    return float(sums[0]), float(sums[1]), float(sums[2])
