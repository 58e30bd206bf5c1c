"""The likelihood of a power transform in ball arithmetic, computed without powerkern.

Every number is a ball of python-flint's: a midpoint and a bound on its rounding error, the radius, with an exponent of
any size. Nothing overflows, and cancellation shows in the radius. `precisely` raises the precision until the radius is
small, so that its result is proved, not estimated.

With the logs ``a`` and the branch ``b_m(a) = (exp(m a) - 1)/m``, ``a`` where m = 0:

* Box-Cox: ``y = b_lambda(ln x)``, ``J = ln x``;
* Yeo-Johnson: ``y = b_lambda(ln(1 + x))`` for x >= 0, ``y = -b_{2 - lambda}(ln(1 - x))`` for x < 0,
  ``J = sign(x) ln(1 + |x|)``;

``g(lambda) = 1/2 ln Var(y) - (lambda - 1) mean(J)`` and ``g' = Cov(y, y')/Var(y) - mean(J)``, with weighted means,
variances and covariances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from operator import mul
from typing import NamedTuple

import flint
import numpy as np
from flint import arb

BOX_COX, YEO_JOHNSON = "box-cox", "yeo-johnson"

#: Precisions to try, in bits. The last ones are for sums of terms that differ by factors of 1e600, squared.
PRECISIONS = (192, 448, 1024, 2560, 6400, 16000)

#: Largest |m a| for which a series is used; at high precision, where the series would be long, it is not.
_SMALL, _SERIES_TO = 2.0**-64, 2560

_LARGEST = float(np.finfo(np.float64).max)


class NotResolved(Exception):
    """Raised if the highest precision is not enough to decide a question."""


def precisely(compute: Callable[[], arb], narrow: Callable[[arb], bool]) -> arb:
    """Call `compute` at increasing precision until `narrow` accepts the ball that it returns; return this ball."""
    before = flint.ctx.prec
    try:
        for bits in PRECISIONS:
            flint.ctx.prec = bits
            ball = compute()
            if ball.is_finite() and narrow(ball):
                return ball
    finally:
        flint.ctx.prec = before
    raise NotResolved


def has_sign(ball: arb) -> bool:
    return not ball.contains(0)


def is_relative(ball: arb) -> bool:
    """Return whether a ball has more than 60 accurate bits, or is exactly 0; float64 has 53."""
    return ball.is_zero() or ball.rel_accuracy_bits() > 60


def is_absolute(ball: arb) -> bool:
    """Return whether a ball has more than 60 accurate bits or a radius below 2^-60."""
    return is_relative(ball) or bool(ball.rad() < 2.0**-60)


def is_rough(ball: arb) -> bool:
    """Return whether a ball has more than 6 accurate bits, or is exactly 0."""
    return ball.is_zero() or ball.rel_accuracy_bits() > 6


class Logs(NamedTuple):
    """Logs of the distinct values, whether they are on the negative branch, normalised weights, and mean(J)."""

    logs: list[arb]
    negative: list[bool]
    shares: list[arb]
    jacobian: arb


class Images(NamedTuple):
    """Centered transformed values and centered derivatives in lambda, with their mean, variance and covariance."""

    y: list[arb]
    dy: list[arb]
    mean: arb
    variance: arb
    covariance: arb


class Likelihood:
    """The likelihood of a column; missing values and values of weight 0 are dropped."""

    def __init__(self, x: np.ndarray, weight: np.ndarray | None, family: str) -> None:
        used = ~np.isnan(x) if weight is None else ~np.isnan(x) & (weight > 0.0)
        self.family, self.n_rows = family, int(np.count_nonzero(used))
        self.values, position, counts = np.unique(x[used] + 0.0, return_inverse=True, return_counts=True)
        self.weights = counts.tolist() if weight is None else _exact_sums(weight[used], position, counts.size)
        self._one_signed = family == BOX_COX or not (self.values.min(initial=0.0) < 0.0 < self.values.max(initial=0.0))
        size = np.abs(self.values)
        self._largest_log = float(np.abs(np.log(size) if family == BOX_COX else np.log1p(size)).max(initial=0.0))
        self.total = float(sum((arb(w) for w in self.weights), arb(0)))
        self._logs_at = lru_cache(maxsize=3)(self._compute_logs)

    @property
    def at(self) -> Logs:
        """Return the `Logs` at the current precision."""
        return self._logs_at(flint.ctx.prec)

    def _compute_logs(self, bits: int) -> Logs:
        logs, negative = self._logs_of(self.values)
        total = sum((arb(w) for w in self.weights), arb(0))
        shares = [arb(w) / total for w in self.weights]
        jacobian = _dot(shares, [-a if s else a for a, s in zip(logs, negative, strict=True)])
        return Logs(logs, negative, shares, jacobian)

    def _logs_of(self, values: np.ndarray) -> tuple[list[arb], list[bool]]:
        """Return ``ln x`` or ``ln(1 + |x|)``, and whether the value is on the negative branch (0 is not)."""
        if self.family == BOX_COX:
            return [arb(v).log() for v in values.tolist()], [False] * values.size
        bound = 0.0 if self._one_signed and self.values[0] < 0.0 else -5e-324
        return [arb(abs(v)).log1p() for v in values.tolist()], (values <= bound).tolist()

    def _branches(self, logs: list[arb], negative: list[bool], lmbda: arb) -> tuple[list[arb], list[arb]]:
        """Return y and y' for all logs, each up to an additive constant common to all values.

        `negative` says which logs are on the negative branch. If all values are on one branch and its powers are far
        from 1, ``exp(m a)/m`` is used instead of ``b_m(a)``, because subtracting 1 would lose powers below the
        precision.
        """
        y, dy = [], []
        single = self._one_signed and abs(2 - lmbda if negative[0] else lmbda) * self._largest_log > 2
        for a, s in zip(logs, negative, strict=True):
            m = 2 - lmbda if s else lmbda
            b, slope = _power(m, a) if single else _branch(m, a)
            y.append(-b if s else b)
            dy.append(slope)
        return y, dy

    def images(self, lmbda: arb) -> Images:
        """Return the `Images` of all distinct values at the current precision."""
        at = self.at
        y, dy = self._branches(at.logs, at.negative, lmbda)
        mean, mean_dy = _dot(at.shares, y), _dot(at.shares, dy)
        y, dy = [v - mean for v in y], [v - mean_dy for v in dy]
        weighted = list(map(mul, at.shares, y))
        return Images(y, dy, mean, _dot(weighted, y), _dot(weighted, dy))

    # --- value, score, optimum ----------------------------------------------------------------------------

    def value(self, lmbda: arb) -> arb:
        """Return g at the current precision."""
        return self.images(lmbda).variance.log() / 2 - (lmbda - 1) * self.at.jacobian

    def score(self, lmbda: arb) -> arb:
        """Return g' at the current precision."""
        images = self.images(lmbda)
        return images.covariance / images.variance - self.at.jacobian

    def sign_of_score(self, lmbda: float, offset: float = 0.0) -> int:
        """Return the certified sign of g' at the exact sum ``lmbda + offset``; 0 if no precision decides it."""
        try:
            return int(float(precisely(lambda: self.score(arb(lmbda) + offset), has_sign).sgn()))
        except NotResolved:
            return 0

    def nll(self, lmbda: float) -> float:
        """Return g times the total weight."""
        return float(precisely(lambda: self.value(arb(lmbda)), is_absolute)) * self.total

    def rise(self, lmbda: float, end: float) -> float:
        """Return ``g(end) - g(lmbda)`` times the total weight."""
        difference = precisely(lambda: self.value(arb(end)) - self.value(arb(lmbda)), is_relative)
        return float(difference) * self.total

    def is_minimum(self, lmbda: float, tolerance: float) -> bool:
        """Return whether the score changes sign within the tolerance around lambda."""
        return self.sign_of_score(lmbda, -tolerance) < 0 < self.sign_of_score(lmbda, tolerance)

    def optimum(self, near: float) -> float:
        """Return the root of the score, to 13 digits; infinite if it is beyond float64."""
        if self.sign_of_score(_LARGEST) < 0 or self.sign_of_score(-_LARGEST) > 0:
            return math.copysign(math.inf, -self.sign_of_score(0.0))
        low, high = self._bracket(near)
        while high - low > 1e-13 * max(abs(low), abs(high), 1e-3):
            middle = low / 2.0 + high / 2.0
            if not low < middle < high:
                break
            low, high = (middle, high) if self.sign_of_score(middle) < 0 else (low, middle)
        return low / 2.0 + high / 2.0

    def _bracket(self, near: float) -> tuple[float, float]:
        near = min(max(near, -_LARGEST), _LARGEST)
        direction = -self.sign_of_score(near)
        if direction == 0:
            return near, near
        step, last = 1e-12 * max(1.0, abs(near)), near
        while True:
            point = near + direction * step
            if math.isinf(point):
                point = direction * _LARGEST
            if self.sign_of_score(point) != -direction:
                return (last, point) if direction > 0 else (point, last)
            last, step = point, step * 16.0

    # --- what rounding the data does ----------------------------------------------------------------------

    def rounding_of_optimum(self, lmbda: float) -> float:
        """Return a bound on the change of the optimum if every value and weight changes by half an ulp."""
        step = arb(max(1e-9, 1e-9 * abs(lmbda)))
        curvature = precisely(
            lambda: (self.score(arb(lmbda) + step) - self.score(arb(lmbda) - step)) / (2 * step), is_rough
        )
        return float(precisely(lambda: self._total_change(self._changes_of_score(arb(lmbda))), is_rough) / curvature)

    def rounding_of_rise(self, lmbda: float, end: float) -> float:
        """Return a bound on the change of `rise` if every value and weight changes by half an ulp."""

        def change() -> arb:
            there, here = self._changes_of_value(arb(end)), self._changes_of_value(arb(lmbda))
            differences = [(p[0] - q[0], p[1] - q[1]) for p, q in zip(there, here, strict=True)]
            return self._total_change(differences)

        return float(precisely(change, is_rough)) * self.total

    def rounding_of_nll(self, lmbda: float) -> float:
        """Return a bound on the change of `nll` if every value and weight changes by half an ulp."""
        return float(precisely(lambda: self._total_change(self._changes_of_value(arb(lmbda))), is_rough)) * self.total

    def _total_change(self, changes: list[tuple[arb, ...]]) -> arb:
        half_ulps = np.spacing(np.abs(self.values)) / np.where(self.values == 0.0, 1.0, np.abs(self.values)) / 2.0
        terms = [
            abs(by_x) * u + abs(by_w) * 2.0**-53 for (by_x, by_w), u in zip(changes, half_ulps.tolist(), strict=True)
        ]
        return sum(terms, arb(0))

    def _changes_of_value(self, lmbda: arb) -> list[tuple[arb, ...]]:
        """Return ``x dg/dx`` and ``w dg/dw`` for every value and weight."""
        images, at = self.images(lmbda), self.at
        steep, _, of_jacobian = self._slopes(lmbda)
        changes = []
        for k, (y, share) in enumerate(zip(images.y, at.shares, strict=True)):
            by_x = y * steep[k] / images.variance - (lmbda - 1) * of_jacobian[k]
            by_w = (y * y / images.variance - 1) / 2 - (lmbda - 1) * self._from_mean_jacobian(k)
            changes.append((share * by_x, share * by_w))
        return changes

    def _changes_of_score(self, lmbda: arb) -> list[tuple[arb, ...]]:
        """Return ``x dg'/dx`` and ``w dg'/dw`` for every value and weight."""
        images, at = self.images(lmbda), self.at
        variance, slope = images.variance, images.covariance / images.variance
        steep, mixed, of_jacobian = self._slopes(lmbda)
        changes = []
        for k, (y, dy, share) in enumerate(zip(images.y, images.dy, at.shares, strict=True)):
            by_x = (steep[k] * dy + mixed[k] * y - 2 * slope * y * steep[k]) / variance - of_jacobian[k]
            by_w = (y * dy - slope * y * y) / variance - self._from_mean_jacobian(k)
            changes.append((share * by_x, share * by_w))
        return changes

    def _from_mean_jacobian(self, k: int) -> arb:
        at = self.at
        return (-at.logs[k] if at.negative[k] else at.logs[k]) - at.jacobian

    def _slopes(self, lmbda: arb) -> tuple[list[arb], list[arb], list[arb]]:
        """Return ``x dy/dx``, its derivative in lambda, and ``x dJ/dx`` for every value."""
        at = self.at
        of_jacobian = _relative_slopes(self.values, self.family)
        steep = [
            r * ((2 - lmbda if s else lmbda) * a).exp()
            for r, a, s in zip(of_jacobian, at.logs, at.negative, strict=True)
        ]
        mixed = [v * (-a if s else a) for v, a, s in zip(steep, at.logs, at.negative, strict=True)]
        return steep, mixed, of_jacobian

    # --- standardised output ------------------------------------------------------------------------------

    def standardized(self, lmbda: float, point: float) -> float:
        """Return ``z = (y - mean)/sd`` at a point, which need not be a value of the column."""

        def compute() -> arb:
            images = self._images_once(flint.ctx.prec, lmbda)
            (y,), _ = self._branches(*self._logs_of(np.array([point])), arb(lmbda))
            return (y - images.mean) / images.variance.sqrt()

        return float(precisely(compute, is_absolute))

    def steepness(self, lmbda: float, point: float) -> float:
        """Return dz/dx, the derivative of `standardized` at a point."""

        def compute() -> arb:
            (a,), (s,) = self._logs_of(np.array([point]))
            m = 2 - arb(lmbda) if s else arb(lmbda)
            return (m * a - a).exp() / self._images_once(flint.ctx.prec, lmbda).variance.sqrt()

        return float(precisely(compute, is_rough))

    def _images_once(self, bits: int, lmbda: float) -> Images:
        if getattr(self, "_kept", (None,))[0] != (bits, lmbda):
            self._kept = (bits, lmbda), self.images(arb(lmbda))
        return self._kept[1]


def _exact_sums(weight: np.ndarray, position: np.ndarray, n: int) -> list[arb]:
    """Return the exact sum of the weights of each distinct value; `position` has the indices of the values."""
    before, flint.ctx.prec = flint.ctx.prec, PRECISIONS[-1]
    sums = [arb(0)] * n
    for w, k in zip(weight.tolist(), position.tolist(), strict=True):
        sums[k] += w
    flint.ctx.prec = before
    return sums


def _dot(a: list[arb], b: list[arb]) -> arb:
    return sum(map(mul, a, b), arb(0))


def _power(m: arb, a: arb) -> tuple[arb, arb]:
    """Return ``exp(m a)/m`` and its derivative in m, in ball arithmetic."""
    power = (m * a).exp()
    return power / m, (a * power - power / m) / m


def _branch(m: arb, a: arb) -> tuple[arb, arb]:
    """Return ``b_m(a)``, defined in the module's docstring, and its derivative in m."""
    if m.is_zero():
        return a, a * a / 2
    if flint.ctx.prec <= _SERIES_TO and abs(m * a) < _SMALL:
        return _near_linear(m, a)
    b = (m * a).expm1() / m
    return b, (a * (m * b + 1) - b) / m


def _near_linear(m: arb, a: arb) -> tuple[arb, arb]:
    """Evaluate `_branch` by series in ``t = m a``: ``a sum t^k/(k + 1)!``, ``a^2 sum t^k/(k! (k + 2))``."""
    t, term, b, slope = m * a, arb(1), arb(0), arb(0)
    terms = flint.ctx.prec // 64 + 2
    for k in range(terms):
        b += term / (k + 1)
        slope += term / (k + 2)
        term *= t / (k + 1)
    remainder = arb(0, abs(term).upper() * 2)
    return a * (b + remainder), a * a * (slope + remainder)


def _relative_slopes(values: np.ndarray, family: str) -> list[arb]:
    """Return ``x dJ/dx`` for each x in `values`: 1 for Box-Cox, ``x/(1 + |x|)`` for Yeo-Johnson."""
    if family == BOX_COX:
        return [arb(1)] * values.size
    return [arb(v) / (1 + arb(abs(v))) for v in values.tolist()]
