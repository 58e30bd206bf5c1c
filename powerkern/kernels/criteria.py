"""Lambdas by which a column comes nearest to normal: Kolmogorov-Smirnov distance, or correlation of the QQ plot.

Both criteria do not change with location and scale of the transformed values, so these are formed as it suits: of one
sign, relative to the end from which every exponent is negative; of both signs, less a common factor where large.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, INTEGER, ROWS, entry, kernel, reduction, widest_vectors
from powerkern._status import Status
from powerkern.kernels.elementary import FloatArray, exp, expm1
from powerkern.kernels.minimize import CONVERGED, RUNNING, brent_start, brent_step
from powerkern.kernels.mle import YEO_JOHNSON, centred_log, log_base
from powerkern.kernels.moments import moments_of
from powerkern.kernels.normality import ks_of, n_present

#: Criteria.
KS, PPCC = 0, 1

# what `criterion_columns` finds for a column
FOUND_LMBDA, FOUND_VALUE, FOUND_N_EVAL, FOUND_STATUS = range(4)
N_FOUND = 4

_OK, _NOT_CERTIFIED, _MULTIMODAL = int(Status.OK), int(Status.NOT_CERTIFIED), int(Status.MULTIMODAL)

#: A scan goes this many steps up and down from where it starts, each this share of 1/sd(logs), and at most so far.
_STEPS, _STEP, _FARTHEST = 16, 0.25, 400
#: The criteria of columns shorter than this have kinks closer together: their steps are divided, up to so many times.
_SHORT, _FINEST = 1024, 16
#: A criterion that changes by less over the scan does not tell lambdas apart: two distinct values.
_FLAT = 1e-9
_MAX_EVAL = 100
#: Of lambda, in units of a step.
_XTOL = 1e-9
#: Exponents of values of both signs need no common factor up to here.
_MODERATE = 300.0
_WORST = 2.0


# --- the transform ------------------------------------------------------------------------------------


@kernel
def _logs(x: FloatArray, family: int, d: FloatArray) -> int:
    """Logs of the magnitudes (plus 1 under Yeo-Johnson) of ascending values; returns how many are negative.

    Of one sign they are relative to that of the median, without cancellation.
    """
    widest_vectors()
    base = 1.0 if family == YEO_JOHNSON else 0.0
    border = 0
    while border < x.size and x[border] < 0.0:
        border += 1
    reference = abs(x[x.size // 2]) if border in (0, x.size) else 0.0
    log_reference = log_base(base, reference)
    for i in range(x.size):
        d[i] = centred_log(abs(x[i]), base, reference, log_reference)
    return border


@kernel
def _branch(d: FloatArray, m: float, top: float, excess: float, sign: float, y: FloatArray) -> None:
    """y = sign e**-excess (e**(m (d - top)) - 1)/m."""
    widest_vectors()
    if m == 0.0:
        factor = sign * exp(-excess)
        for i in range(d.size):
            y[i] = factor * (d[i] - top)
    elif excess == 0.0:
        for i in range(d.size):
            y[i] = sign * expm1(m * (d[i] - top)) / m
    else:
        one = exp(-excess)
        for i in range(d.size):
            y[i] = sign * (exp(m * (d[i] - top) - excess) - one) / m


@kernel
def _transform(d: FloatArray, border: int, lmbda: float, y: FloatArray) -> None:
    """Transformed values, but for a shift and a positive factor."""
    n = d.size
    mirrored = 2.0 - lmbda
    if border == 0:
        _branch(d, lmbda, d[n - 1] if lmbda > 0.0 else d[0], 0.0, 1.0, y)
    elif border == n:
        _branch(d, mirrored, d[0] if mirrored > 0.0 else d[n - 1], 0.0, -1.0, y)
    else:
        excess = max(lmbda * d[n - 1], mirrored * d[0])
        excess = excess if excess > _MODERATE else 0.0
        _branch(d[border:], lmbda, 0.0, excess, 1.0, y[border:])
        _branch(d[:border], mirrored, 0.0, excess, -1.0, y[:border])


# --- the criteria -------------------------------------------------------------------------------------


@reduction
def _block_squares(y: FloatArray, q: FloatArray, mean: float, scale: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(y.size):
        difference = (y[i] - mean) * scale - q[i]
        total += difference * difference
    return total


@kernel
def _criterion(d: FloatArray, border: int, lmbda: float, which: int, q: FloatArray, y: FloatArray) -> float:
    """KS distance from the fitted normal, or 1 - r, r the correlation with normal quantiles of unit length `q`."""
    _transform(d, border, lmbda, y)
    sample = moments_of(y)
    if not 0.0 < sample.m2 < math.inf:
        return _WORST
    if which == KS:
        return ks_of(y, sample.mean, math.sqrt(sample.m2 / (y.size - 1.0)))
    return 0.5 * _block_squares(y, q, sample.mean, 1.0 / math.sqrt(sample.m2))  # 1 - r, without cancellation


@kernel
def _unit(d: FloatArray, border: int, y: FloatArray) -> float:
    """The step of the scan."""
    for i in range(d.size):
        y[i] = -d[i] if i < border else d[i]
    return _STEP / math.sqrt(moments_of(y).m2 / d.size)


@kernel
def _search(
    d: FloatArray, border: int, start: float, which: int, q: FloatArray, y: FloatArray, out: FloatArray
) -> None:
    """Out = the best lambda, its criterion, evaluations and the status.

    A scan that goes on as long as it descends, and Brent's method between the neighbours of its lowest point.
    """
    fine = max(1, min(_FINEST, _SHORT // d.size))
    coarse = _unit(d, border, y)
    step = coarse / fine
    low = _lower_end(d, border, start, coarse, which, q, y)
    best, k = low * fine, low * fine
    lowest, highest = math.inf, 0.0
    minima, before, last = 0, math.inf, math.inf
    while k <= _STEPS * fine or (best == k - 1 and k < _FARTHEST * fine):
        value = _criterion(d, border, start + k * step, which, q, y)
        if k % fine == 0:
            minima += before > last and last < value
            before, last = last, value
        if value < lowest:
            best, lowest = k, value
        highest = max(highest, value)
        k += 1
    out[FOUND_LMBDA], out[FOUND_VALUE], out[FOUND_N_EVAL] = start, lowest, k - low * fine
    if highest - lowest < _FLAT:
        out[FOUND_STATUS] = _OK
        return
    centre = start + best * step
    state = brent_start(-step, step, _XTOL * coarse, _MAX_EVAL)
    while state.status == RUNNING:
        state = brent_step(state, _criterion(d, border, centre + state.x, which, q, y))
    better = state.fun < lowest
    out[FOUND_LMBDA] = centre + state.best if better else centre
    out[FOUND_VALUE] = state.fun if better else lowest
    out[FOUND_N_EVAL] += state.n_eval
    out[FOUND_STATUS] = _MULTIMODAL if minima > 1 else _OK
    if state.status != CONVERGED or abs(best) >= _FARTHEST * fine:
        out[FOUND_STATUS] = _NOT_CERTIFIED


@kernel
def _lower_end(d: FloatArray, border: int, start: float, step: float, which: int, q: FloatArray, y: FloatArray) -> int:
    """The step from which the scan goes up: the first at which the criterion is no lower than above it."""
    k = -_STEPS
    value = _criterion(d, border, start + k * step, which, q, y)
    below = _criterion(d, border, start + (k - 1) * step, which, q, y)
    while below < value - _FLAT and k > -_FARTHEST:
        k -= 1
        value, below = below, _criterion(d, border, start + (k - 1) * step, which, q, y)
    return k - 1


@entry((ROWS, INTEGER, INTEGER, COLUMN, ROWS, ROWS, ROWS))
def criterion_columns(
    block: FloatArray,
    family: int,
    which: int,
    start: FloatArray,
    quantiles: FloatArray,
    work: FloatArray,
    out: FloatArray,
) -> None:
    """The lambda of each row, sorted with NaN last, that minimises a criterion.

    Parameters
    ----------
    block : (p, n)
        Columns as rows, each in the domain of the family, with two distinct values at least.
    family, which : int
        BOX_COX or YEO_JOHNSON; KS or PPCC.
    start : (p,)
        Where the scans start; rows without (NaN) are passed over.
    quantiles : (p, n)
        For PPCC: normal quantiles of the positions of each row's values, as a vector of unit length.
    work : (2, n)
        Scratch.
    out : (p, N_FOUND)
        Receives lambda, the criterion there, how often it was evaluated, and a `powerkern.Status`. Where all lambdas
        are equally good, as for two distinct values, lambda is the start.
    """
    for j in range(block.shape[0]):
        if math.isnan(start[j]):
            out[j] = math.nan
        else:
            n = n_present(block[j])
            d, y = work[0, :n], work[1, :n]
            border = _logs(block[j, :n], family, d)
            _search(d, border, start[j], which, quantiles[j, :n], y, out[j])
