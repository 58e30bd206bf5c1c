"""A criterion of normality at one exponent: KS distance from the fitted normal, or 1 - r of the QQ plot.

Neither criterion changes with location and scale of the transformed values, so these are chosen for accuracy: of one
sign, relative to the end from which every exponent is negative; of both signs, less a common factor where large.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import expm1
from powerkern.kernels.likelihood.logs import centered_log, offset_log
from powerkern.kernels.normality.criteria import Weighing, decorrelation_of, ks_of, mean_and_variance, share_at
from powerkern.kernels.transforms.family import log_offset

#: Criteria.
KS, PPCC = 0, 1
#: Exponents of values of both signs need no common factor up to here.
MODERATE = 300.0
WORST = 2.0
#: An exponent closer to 0 counts as this: it can be divided by.
TINY = 1e-290


# --- the transform ------------------------------------------------------------------------------------


class ScaledLogs(NamedTuple):
    """Logs of the magnitudes (plus 1 under Yeo-Johnson) of ascending values, in units of their standard deviation.

    Of one sign they are relative to that of the median, without cancellation. Exponents are in units of 1/scale.
    """

    d: FloatArray
    n_negative: int
    scale: float


@kernel
def logs_of(weighing: Weighing, x: FloatArray, family: int, d: FloatArray, y: FloatArray) -> ScaledLogs:
    """The logs, in `d`; `y` is scratch."""
    base = log_offset(family)
    border = 0
    while border < x.size and x[border] < 0.0:
        border += 1
    reference = abs(x[x.size // 2]) if border in (0, x.size) else 0.0
    log_reference = offset_log(base, reference)
    largest = 0.0
    for i in range(x.size):
        d[i] = centered_log(abs(x[i]), base, reference, log_reference)
        largest = max(largest, abs(d[i]))
    for i in range(x.size):  # twice, because the square of a tiny scale would be 0
        d[i] /= largest
        y[i] = -d[i] if i < border else d[i]
    _, variance = mean_and_variance(weighing, y)
    sd = math.sqrt(variance)
    for i in range(x.size):
        d[i] /= sd
    return ScaledLogs(d, border, largest * sd)


@kernel
def _branch(d: FloatArray, m: float, top: float, excess: float, sign: float, y: FloatArray) -> None:
    """y = sign (e**(m (d - top)) - 1)/m, or sign e**(m (d - top) - excess)/m where there is an excess."""
    m = m if abs(m) > TINY else TINY
    factor, one = sign / m, 1.0 if excess > 0.0 else 0.0
    for i in range(d.size):
        y[i] = (expm1(m * (d[i] - top) - excess) + one) * factor


@kernel
def _transform(logs: ScaledLogs, exponent: float, y: FloatArray) -> None:
    """Transformed values, up to a shift and a positive factor."""
    d, border = logs.d, logs.n_negative
    both_signs = 0 < border < d.size
    first, last = (0.0, 0.0) if both_signs else (d[0], d[-1])
    mirrored, excess = 2.0 * logs.scale - exponent, 0.0
    if both_signs:
        excess = max(exponent * d[-1], mirrored * d[0])
        excess = excess if excess > MODERATE else 0.0
    _branch(d[border:], exponent, last if exponent > 0.0 else first, excess, 1.0, y[border:])
    _branch(d[:border], mirrored, first if mirrored > 0.0 else last, excess, -1.0, y[:border])


# --- the criteria -------------------------------------------------------------------------------------


@kernel
def farthest(weighing: Weighing, departures: FloatArray, distance: float) -> int:
    """Where the departure is that the KS distance is made of."""
    found = departures.size - 1
    for i in range(departures.size):
        here = abs(departures[i]) + 0.5 * share_at(weighing, i) >= distance
        found = min(found, i) if here else found
    return found


@kernel
def criterion(weighing: Weighing, logs: ScaledLogs, exponent: float, which: int, y: FloatArray) -> float:
    """KS distance from the fitted normal, or 1 - r, r the correlation with normal quantiles.

    `y` is scratch; for the KS distance the departures from normal, with their signs, are left there.
    """
    _transform(logs, exponent, y)
    mean, variance = mean_and_variance(weighing, y)
    if not 0.0 < variance < math.inf:
        return WORST
    if which == KS:
        return ks_of(weighing, y, mean, math.sqrt(variance / (1.0 - 1.0 / weighing.n)))
    return decorrelation_of(weighing, y, mean, 1.0 / math.sqrt(variance))
