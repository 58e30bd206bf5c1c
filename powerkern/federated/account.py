"""What Gaussian noise costs: epsilon and delta of one release and of several, and noise made of random bits.

A release of numbers that one row can move by `sensitivity` (in the Euclidean norm), with Gaussian noise of standard
deviation sigma, is as hard to tell from the release without that row as N(mu, 1) is from N(0, 1), where mu is
sensitivity / sigma.
It is (epsilon, delta)-differentially private exactly for (Balle and Wang 2018, theorem 8)

    delta >= Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu),

and several releases together are as one with mu**2 the sum of theirs (Dong, Roth and Su 2022, corollary 3.3), even if
later ones are chosen in view of earlier ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

from scipy.special import erfcx, ndtr

#: A number drawn uniformly from 0 to n - 1.
RandBelow = Callable[[int], int]


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta for which Gaussian noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        Sensitivity over standard deviation; positive.

    Returns
    -------
    float
        To a relative error of about 1e-12 for mu of 0.01 or more.

    References
    ----------
    B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy: analytical calibration and optimal
    denoising", ICML 2018, theorem 8.

    Examples
    --------
    >>> from powerkern.federated.account import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    a, b = mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu
    if a > 0.0:
        # exp(epsilon) phi(b) = phi(a)
        return float(ndtr(a)) - math.exp(-0.5 * a * a) * _tail(-b)
    return math.exp(-0.5 * a * a) * (_tail(-a) - _tail(-b))


def _tail(x: float) -> float:
    """Phi(-x) exp(x**2/2)."""
    return 0.5 * float(erfcx(x * math.sqrt(0.5)))


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Standard deviation of the noise, per unit of sensitivity, that one (epsilon, delta)-private release needs.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Between 0 and 1. Choose it well below one over the number of rows.

    Returns
    -------
    float
        The least one, rounded up.

    Raises
    ------
    ValueError
        `epsilon` or `delta` is out of its range.

    Examples
    --------
    >>> from powerkern.federated.account import noise_multiplier
    >>> round(noise_multiplier(1.0, 1e-6), 4)
    4.2247
    """
    return 1.0 / largest_mu(epsilon, delta)


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-private; arguments and errors as of `noise_multiplier`."""
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be a positive number, got {epsilon!r}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be between 0 and 1, got {delta!r}")
    high = 1.0
    while gaussian_delta(epsilon, high) <= delta:
        high *= 2.0
    return _last_within(lambda mu: mu == 0.0 or gaussian_delta(epsilon, mu) <= delta, high)


def _last_within(holds: Callable[[float], bool], high: float) -> float:
    """The largest number, from 0 to `high`, for which something holds that holds for all smaller ones."""
    low = 0.0
    while low < (middle := 0.5 * (low + high)) < high:
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


class Account:
    """What several releases of the same rows cost together.

    Parameters
    ----------
    mu : float, default 0
        What was spent before.

    Attributes
    ----------
    mu : float
        What all releases are worth, as a shift of a standard normal variable.

    Examples
    --------
    >>> from powerkern.federated.account import Account
    >>> account = Account()
    >>> for _ in range(10):
    ...     account.spend(sensitivity=1.0, sigma=20.0)
    >>> round(account.mu, 4), round(account.epsilon(1e-6), 4)
    (0.1581, 0.6481)
    """

    def __init__(self, mu: float = 0.0) -> None:
        self.mu = float(mu)

    def spend(self, sensitivity: float, sigma: float) -> None:
        """Account for one more release.

        Parameters
        ----------
        sensitivity : float
            How far one row can move the numbers released, in the Euclidean norm.
        sigma : float
            Standard deviation of the noise of each.
        """
        self.mu = math.hypot(self.mu, sensitivity / sigma)

    @property
    def rho(self) -> float:
        """The same as zero-concentrated differential privacy: mu**2 / 2."""
        return 0.5 * self.mu * self.mu

    def delta(self, epsilon: float) -> float:
        """The least delta that goes with `epsilon`."""
        return gaussian_delta(epsilon, self.mu) if self.mu > 0.0 else 0.0

    def epsilon(self, delta: float) -> float:
        """The least epsilon that goes with `delta`, rounded up."""
        if self.delta(0.0) <= delta:
            return 0.0
        high = self.rho + 2.0 * math.sqrt(self.rho * math.log(1.0 / delta))  # Bun and Steinke 2016, proposition 1.3
        return math.nextafter(_last_within(lambda epsilon: self.delta(epsilon) > delta, high), math.inf)


# --- noise --------------------------------------------------------------------------------------------


def random_below(seed: bytes) -> RandBelow:
    """Uniform random integers from a seed: the blocks of SHAKE-256 at 0, 1, 2, ..., with rejection."""
    block, pool, left = 0, 0, 0

    def below(n: int) -> int:
        nonlocal block, pool, left
        bits = (n - 1).bit_length()
        while True:
            while left < bits:
                text = hashlib.shake_256(b"powerkern.federated noise 1" + seed + block.to_bytes(8, "little")).digest(
                    1024
                )
                pool, left, block = pool | int.from_bytes(text, "little") << left, left + 8192, block + 1
            drawn, pool, left = pool & ((1 << bits) - 1), pool >> bits, left - bits
            if drawn < n:
                return drawn

    return below


def discrete_gaussian(variance: int, below: RandBelow) -> int:
    """An integer k with probability proportional to exp(-k**2 / (2 variance)), exactly: no float is involved.

    Parameters
    ----------
    variance : int
        Positive.
    below : callable
        ``below(n)`` is uniform on 0 to n - 1: `secrets.randbelow`, or of `random_below`.

    Returns
    -------
    int

    Notes
    -----
    Floating-point noise has holes that give the number it was added to away (Mironov 2012); this has none.

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, algorithms 1-3.

    Examples
    --------
    >>> from powerkern.federated.account import discrete_gaussian, random_below
    >>> below = random_below(b"seed")
    >>> sum(discrete_gaussian(10_000, below) ** 2 for _ in range(400)) / 400 / 10_000 < 1.5
    True
    """
    scale = math.isqrt(variance) + 1
    while True:
        k = _discrete_laplace(scale, below)
        if _bernoulli_exp((abs(k) * scale - variance) ** 2, 2 * variance * scale * scale, below):
            return k


def _discrete_laplace(scale: int, below: RandBelow) -> int:
    """An integer k with probability proportional to exp(-|k| / scale)."""
    while True:
        rest = below(scale)
        if not _bernoulli_exp(rest, scale, below):
            continue
        whole = 0
        while _bernoulli_exp(1, 1, below):
            whole += 1
        k = rest + scale * whole
        if below(2):
            return k
        if k:  # minus 0 is 0, which must not come up twice as often
            return -k


def _bernoulli_exp(numerator: int, denominator: int, below: RandBelow) -> bool:
    """True with probability exp(-numerator / denominator)."""
    for _ in range(numerator // denominator):
        if not _bernoulli_exp_below_1(1, 1, below):
            return False
    return _bernoulli_exp_below_1(numerator % denominator, denominator, below)


def _bernoulli_exp_below_1(numerator: int, denominator: int, below: RandBelow) -> bool:
    """As `_bernoulli_exp`, for a ratio of at most 1: the series of exp(-x) as the length of a run."""
    k = 1
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1
