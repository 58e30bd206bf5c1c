"""Means and variances that merge, and means and variances of numbers given by their logarithms.

Two layers:

- `Moments` of parts of the data (one value, a block, a thread's part, a client's) and the formulas that join
  them: Welford's for one more value, Chan, Golub and LeVeque's for two parts. Long vectors are cut into blocks
  of fixed length, each is reduced in two passes, and the blocks are joined as a tree whose shape depends
  on their number only: the result is the same for any number of threads.
- `logsumexp`, `log_mean` and `log_var` of numbers too large or too small for float64.

References
----------
.. [1] B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
   Technometrics 4, 1962, 419-420.
.. [2] T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
   variances", COMPSTAT 1982, 30-41.
.. [3] P. Blanchard, D. J. Higham, N. J. Higham, "Accurately computing the log-sum-exp and softmax
   functions", IMA J. Numer. Anal. 41, 2021, 2311-2330.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._jit import (
    COLUMN,
    READ_COLUMN,
    allocated,
    bits_of,
    compiled_as,
    entry,
    float_of,
    kernel,
    reduction,
    release,
    widest_vectors,
)
from powerkern.kernels.elementary.constants import ordered
from powerkern.kernels.elementary.exp_log import exp, expm1, log, log1p

#: Values that are summed before compensation: few enough to be added one after the other, enough to hide its cost.
BLOCK = 256

# Logs that log_var exponentiates at a time: the values stay in the first-level cache
_SCRATCH = 1024

_HUGE = 1.7976931348623157e308

# Variances below the first are computed again from values scaled up by the second, a power of two
_TINY_VARIANCE = 1e-290
_MAGNIFIER = 2.0**900
_LOG_MAGNIFIER = 623.8324625039508


class Moments(NamedTuple):
    """Weight (or count), mean, and sum of squared deviations from the mean; ``m2/weight`` is the variance."""

    weight: float
    mean: float
    m2: float


class LogNumber(NamedTuple):
    """The number ``sign * exp(log)``."""

    log: float
    sign: float


# --- one more value, one more part --------------------------------------------------------------------


@kernel
def welford_update(state: Moments, x: float, w: float = 1.0) -> Moments:
    r"""Moments of the data seen so far and one more value.

    With W the weight so far and :math:`d = x - \bar x` [1]_,

    .. math:: \bar x \leftarrow \bar x + \frac{d w}{W + w}, \qquad M_2 \leftarrow M_2 + w d\, (x - \bar x)

    with the new mean in the second.

    Parameters
    ----------
    state : Moments
        Moments so far; ``Moments(0.0, 0.0, 0.0)`` before the first value.
    x : float
        The value. NaN makes the moments NaN.
    w : float
        Its weight, w >= 0. A weight of 0 leaves the state as it is, whatever x.

    Returns
    -------
    Moments
        The updated moments. The relative error of the variance grows like the number of updates times
        its condition number sqrt(1 + mean**2/variance) in the worst case; `chan_merge` of blocks does better.

    See Also
    --------
    chan_merge : joins the moments of two parts.

    References
    ----------
    .. [1] B. P. Welford, Technometrics 4, 1962, 419-420.

    Examples
    --------
    >>> from powerkern.kernels import welford_update
    >>> from powerkern.kernels.moments import Moments
    >>> state = Moments(0.0, 0.0, 0.0)
    >>> for x in (1.0, 2.0, 6.0):
    ...     state = welford_update(state, x)
    >>> state
    Moments(weight=3.0, mean=3.0, m2=14.0)
    """
    if w == 0.0:
        return state
    weight = state.weight + w
    delta = x - state.mean
    mean = state.mean + delta * (w / weight)
    return Moments(weight, mean, state.m2 + w * delta * (x - mean))


@kernel
def chan_merge(a: Moments, b: Moments) -> Moments:
    r"""Moments of the union of two disjoint parts of the data.

    With :math:`d = \bar x_b - \bar x_a` and :math:`n = n_a + n_b` [1]_,

    .. math:: \bar x = \bar x_a + d\, n_b/n, \qquad M_2 = M_{2,a} + M_{2,b} + d^2\, n_a n_b/n

    Parameters
    ----------
    a, b : Moments
        Moments of the parts. A part of weight 0 leaves the other one unchanged, bit for bit.

    Returns
    -------
    Moments
        Moments of the union. Commutative and associative up to rounding; NaN in, NaN out. Overflows when the
        squared distance of the means does.

    See Also
    --------
    welford_update : adds a single value.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, COMPSTAT 1982, 30-41.

    Examples
    --------
    >>> from powerkern.kernels import chan_merge
    >>> from powerkern.kernels.moments import Moments
    >>> chan_merge(Moments(2.0, 1.5, 0.5), Moments(1.0, 6.0, 0.0))
    Moments(weight=3.0, mean=3.0, m2=14.0)
    """
    if b.weight == 0.0:
        return a
    if a.weight == 0.0:
        return b
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    fraction = b.weight / weight
    return Moments(weight, a.mean + delta * fraction, a.m2 + b.m2 + delta * delta * (a.weight * fraction))


@kernel
def merge_tree(parts: np.ndarray) -> Moments:
    """Join the rows (weight, mean, m2) of `parts` in pairs, pairs of pairs, ...; overwrites `parts`.

    The shape of the tree depends on the number of rows only.
    """
    n = parts.shape[0]
    if n == 0:
        return Moments(0.0, 0.0, 0.0)
    stride = 1
    while stride < n:
        for i in range(0, n - stride, 2 * stride):
            left, right = parts[i], parts[i + stride]
            merged = chan_merge(Moments(left[0], left[1], left[2]), Moments(right[0], right[1], right[2]))
            left[0], left[1], left[2] = merged.weight, merged.mean, merged.m2
        stride *= 2
    return Moments(parts[0, 0], parts[0, 1], parts[0, 2])


# --- moments of a vector ------------------------------------------------------------------------------


@kernel
def _add(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term and collect what the sum loses to rounding (Knuth's two-sum)."""
    new = total + term
    kept = new - total
    return new, lost + ((total - (new - kept)) + (term - kept))


@kernel
def _joined(total: float, lost: float) -> float:
    """Compensated sum; an infinite total has no meaningful loss."""
    return total + lost if abs(total) <= _HUGE else total


@reduction
def _block_sum(x: np.ndarray) -> float:
    widest_vectors()
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@reduction
def _block_deviations(x: np.ndarray, center: float) -> tuple[float, float]:
    widest_vectors()
    first = 0.0
    second = 0.0
    for i in range(x.size):
        d = x[i] - center
        first += d
        second += d * d
    return first, second


@reduction
def _block_weighted_sum(x: np.ndarray, w: np.ndarray) -> float:
    widest_vectors()
    total = 0.0
    for i in range(x.size):
        total += w[i] * x[i]
    return total


@reduction
def _block_weighted_deviations(x: np.ndarray, w: np.ndarray, center: float) -> tuple[float, float]:
    widest_vectors()
    first = 0.0
    second = 0.0
    for i in range(x.size):
        d = x[i] - center
        wd = w[i] * d
        first += wd
        second += wd * d
    return first, second


@kernel
def sum_of(x: np.ndarray) -> float:
    """Sum of a vector, as accurate as one rounding unless the terms cancel: compensated over blocks of `BLOCK`."""
    total, lost = 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        total, lost = _add(total, lost, _block_sum(x[start : start + BLOCK]))
    return _joined(total, lost)


@kernel
def weighted_sum_of(x: np.ndarray, w: np.ndarray) -> float:
    """Sum of w x; see `sum_of`."""
    total, lost = 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        stop = start + BLOCK
        total, lost = _add(total, lost, _block_weighted_sum(x[start:stop], w[start:stop]))
    return _joined(total, lost)


@kernel
def moments_of(x: np.ndarray) -> Moments:
    """Moments of a vector in two passes, the mean and the deviations from it; (0, 0, 0) for an empty one.

    Relative errors of mean and variance are about 1e-15 (1e-14 with values of very unequal size), unless the
    mean nearly vanishes beside the values. Values beyond 1e150 overflow m2. NaN and infinities make the
    moments NaN.
    """
    if x.size == 0:
        return Moments(0.0, 0.0, 0.0)
    n = float(x.size)
    center = sum_of(x) / n
    first, first_lost, second, second_lost = 0.0, 0.0, 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        d, dd = _block_deviations(x[start : start + BLOCK], center)
        first, first_lost = _add(first, first_lost, d)
        second, second_lost = _add(second, second_lost, dd)
    return _about_mean(n, center, first + first_lost, second + second_lost)


@kernel
def weighted_moments_of(x: np.ndarray, w: np.ndarray) -> Moments:
    """`moments_of` with a weight w >= 0 for each value; (0, 0, 0) when all weights are 0."""
    weight = sum_of(w)
    if weight == 0.0:
        return Moments(0.0, 0.0, 0.0)
    center = weighted_sum_of(x, w) / weight
    first, first_lost, second, second_lost = 0.0, 0.0, 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        stop = start + BLOCK
        d, dd = _block_weighted_deviations(x[start:stop], w[start:stop], center)
        first, first_lost = _add(first, first_lost, d)
        second, second_lost = _add(second, second_lost, dd)
    return _about_mean(weight, center, first + first_lost, second + second_lost)


@kernel
def _about_mean(weight: float, center: float, first: float, second: float) -> Moments:
    """Moments from the sums of d and d**2 about a center that is the mean up to rounding."""
    shift = first / weight
    m2 = second - first * shift
    return Moments(weight, center + shift, 0.0 if m2 < 0.0 else m2)


# --- logarithms of sums, means and variances ----------------------------------------------------------


@kernel
def _largest(x: np.ndarray) -> float:
    """Maximum; -inf when empty."""
    widest_vectors()
    largest = ordered(bits_of(-math.inf))
    for i in range(x.size):
        key = ordered(bits_of(x[i]))
        largest = key if key > largest else largest
    return float_of(ordered(largest))


@kernel
def _largest_counted(x: np.ndarray, factors: np.ndarray) -> float:
    """`_largest` of the values whose factor is not 0: what is multiplied by 0 must not set a scale."""
    widest_vectors()
    largest = ordered(bits_of(-math.inf))
    for i in range(x.size):
        key = ordered(bits_of(-math.inf if factors[i] == 0.0 else x[i]))
        largest = key if key > largest else largest
    return float_of(ordered(largest))


@kernel
def _scale(largest: float) -> float:
    """Reference that keeps the exponentials from overflowing: the largest log, or 0 when that is not finite."""
    return largest if abs(largest) <= _HUGE else 0.0


@reduction
def _block_exp_sum(logs: np.ndarray, scale: float) -> tuple[float, float]:
    """How often the scale occurs, and the sum of exp(log - scale) over the other logs."""
    widest_vectors()
    count = 0.0
    rest = 0.0
    for i in range(logs.size):
        d = logs[i] - scale
        count += 1.0 if d == 0.0 else 0.0
        rest += 0.0 if d == 0.0 else exp(d)
    return count, rest


@reduction
def _block_scaled_exp_sum(logs: np.ndarray, factors: np.ndarray, scale: float) -> float:
    widest_vectors()
    total = 0.0
    for i in range(logs.size):
        total += factors[i] * exp((-math.inf if factors[i] == 0.0 else logs[i]) - scale)
    return total


@kernel
def _exp_sum(logs: np.ndarray, scale: float) -> tuple[float, float]:
    count, rest, lost = 0.0, 0.0, 0.0
    for start in range(0, logs.size, BLOCK):
        at_scale, term = _block_exp_sum(logs[start : start + BLOCK], scale)
        count += at_scale
        rest, lost = _add(rest, lost, term)
    return count, _joined(rest, lost)


@kernel
def _scaled_exp_sum(logs: np.ndarray, factors: np.ndarray, scale: float) -> float:
    total, lost = 0.0, 0.0
    for start in range(0, logs.size, BLOCK):
        stop = start + BLOCK
        term = _block_scaled_exp_sum(logs[start:stop], factors[start:stop], scale)
        total, lost = _add(total, lost, term)
    return _joined(total, lost)


@kernel
def _logsumexp(logs: np.ndarray, weights: np.ndarray | None = None) -> float:
    if weights is None:
        scale = _scale(_largest(logs))
        count, rest = _exp_sum(logs, scale)
        if count == 0.0:  # the largest log is not finite, or there is none
            return log(rest)
        return scale + (log(count) + log1p(rest / count))
    scale = _scale(_largest_counted(logs, weights))
    return scale + log(_scaled_exp_sum(logs, weights, scale))


@kernel
def _log_mean(logs: np.ndarray, signs: np.ndarray | None = None) -> LogNumber:
    if logs.size == 0:
        return LogNumber(math.nan, math.nan)
    if signs is None:
        scale = _scale(_largest(logs))
        count, rest = _exp_sum(logs, scale)
        total = count + rest
    else:
        scale = _scale(_largest_counted(logs, signs))
        total = _scaled_exp_sum(logs, signs, scale)
    return LogNumber(scale + log(abs(total) / logs.size), _sign(total))


@kernel
def _sign(x: float) -> float:
    """-1, 0, 1 or NaN."""
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return x + 0.0  # -0 becomes 0


@kernel
def _shifted_values(logs: np.ndarray, scale: float, factor: float, out: np.ndarray) -> None:
    """Numbers in units of e**scale/factor, less 1: nearly equal ones keep the digits in which they differ."""
    widest_vectors()
    for i in range(logs.size):
        out[i] = factor * expm1(logs[i] - scale)


@kernel
def _signed_shifted_values(
    logs: np.ndarray, signs: np.ndarray, origin: float, scale: float, factor: float, out: np.ndarray
) -> None:
    """`_shifted_values` of signed numbers, less `origin`, the sign of one of them."""
    widest_vectors()
    for i in range(logs.size):
        s = signs[i]
        e = expm1((-math.inf if s == 0.0 else logs[i]) - scale)
        out[i] = factor * (s * e + (s - origin))


@kernel
def _scaled_variance(logs: np.ndarray, signs: np.ndarray | None, scale: float, factor: float) -> float:
    """Variance in units of (e**scale/factor)**2."""
    n_blocks = (logs.size + _SCRATCH - 1) // _SCRATCH
    parts, scratch = allocated((n_blocks, 3)), allocated((_SCRATCH,))
    for k in range(n_blocks):
        block = logs[k * _SCRATCH : (k + 1) * _SCRATCH]
        values = scratch[: block.size]
        if signs is None:
            _shifted_values(block, scale, factor, values)
        else:
            _signed_shifted_values(block, signs[k * _SCRATCH : (k + 1) * _SCRATCH], signs[0], scale, factor, values)
        part = moments_of(values)
        parts[k, 0], parts[k, 1], parts[k, 2] = part.weight, part.mean, part.m2
    variance = merge_tree(parts).m2 / logs.size
    release(parts)
    release(scratch)
    return variance


@kernel
def _log_var(logs: np.ndarray, signs: np.ndarray | None = None) -> float:
    if logs.size == 0:
        return math.nan
    scale = _scale(_largest(logs) if signs is None else _largest_counted(logs, signs))
    variance = _scaled_variance(logs, signs, scale, 1.0)
    if variance < _TINY_VARIANCE:  # the squares may have underflowed
        magnified = _scaled_variance(logs, signs, scale, _MAGNIFIER)
        return 2.0 * scale + (log(magnified) - 2.0 * _LOG_MAGNIFIER)
    return 2.0 * scale + log(variance)


# --- for Python ---------------------------------------------------------------------------------------


@entry((READ_COLUMN,))
def _logsumexp_entry(logs: np.ndarray) -> float:
    return _logsumexp(logs)


@entry((READ_COLUMN, READ_COLUMN))
def _weighted_logsumexp_entry(logs: np.ndarray, weights: np.ndarray) -> float:
    return _logsumexp(logs, weights)


@entry((READ_COLUMN, COLUMN))
def _log_mean_entry(logs: np.ndarray, out: np.ndarray) -> None:
    out[0], out[1] = _log_mean(logs)


@entry((READ_COLUMN, READ_COLUMN, COLUMN))
def _signed_log_mean_entry(logs: np.ndarray, signs: np.ndarray, out: np.ndarray) -> None:
    out[0], out[1] = _log_mean(logs, signs)


@entry((READ_COLUMN,))
def _log_var_entry(logs: np.ndarray) -> float:
    return _log_var(logs)


@entry((READ_COLUMN, READ_COLUMN))
def _signed_log_var_entry(logs: np.ndarray, signs: np.ndarray) -> float:
    return _log_var(logs, signs)


def _vector(values: npt.ArrayLike, name: str) -> np.ndarray:
    """Contiguous float64 vector of the values, or an error that names the argument."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" and array.size > 0:
        raise TypeError(f"{name} must be real numbers, got dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _companion(values: npt.ArrayLike, name: str, logs: np.ndarray) -> np.ndarray:
    """`_vector` with one value for each log."""
    vector = _vector(values, name)
    if vector.size != logs.size:
        raise ValueError(f"{name} must have one value for each log: got {vector.size} for {logs.size}")
    return vector


def _sign_vector(values: npt.ArrayLike, logs: np.ndarray) -> np.ndarray:
    """`_companion` that holds signs only."""
    signs = _companion(values, "signs", logs)
    wrong = np.flatnonzero((signs != 1.0) & (signs != -1.0) & (signs != 0.0))
    if wrong.size:
        raise ValueError(f"signs must be -1, 0 or 1, got {signs[wrong[0]]} at position {wrong[0]}")
    return signs


@compiled_as(_logsumexp)
def logsumexp(logs: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    r"""Logarithm of a sum of numbers given by their logarithms.

    With c the largest log, so that no exponential overflows [1]_,

    .. math:: \ln \sum_i w_i e^{l_i} = c + \ln \sum_i w_i e^{l_i - c}

    Parameters
    ----------
    logs : array_like, shape (n,)
        The logarithms l; -inf stands for an exact 0.
    weights : array_like, shape (n,), optional
        Real weights w, by default all 1. Terms of weight 0 do not count, whatever their log.

    Returns
    -------
    float
        -inf for an empty sum or a sum of zeros, inf when a log is inf, NaN when a value is NaN or
        when the weighted sum is negative.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If an argument is not one-dimensional, or the lengths differ.

    See Also
    --------
    log_mean : keeps the sign of a mean.

    Notes
    -----
    Accurate to about 1e-15 (1 + abs(c)), also where the result is close to 0 because one term is 1 and the
    others are tiny. With weights of both signs the error grows as the sum cancels.

    Inside jitted code it takes contiguous float64 vectors and checks nothing.

    References
    ----------
    .. [1] P. Blanchard, D. J. Higham, N. J. Higham, IMA J. Numer. Anal. 41, 2021, 2311-2330.

    Examples
    --------
    >>> from powerkern.kernels import logsumexp
    >>> logsumexp([1000.0, 1000.0])
    1000.6931471805
    >>> logsumexp([0.0, -50.0])
    1.92874984796e-22
    """
    vector = _vector(logs, "logs")
    if weights is None:
        return float(_logsumexp_entry(vector))
    return float(_weighted_logsumexp_entry(vector, _companion(weights, "weights", vector)))


@compiled_as(_log_mean)
def log_mean(logs: npt.ArrayLike, signs: npt.ArrayLike | None = None) -> LogNumber:
    r"""Mean of numbers given by their logarithms and signs, as a logarithm and a sign.

    For :math:`x_i = s_i e^{l_i}` and c the largest log,

    .. math:: \ln |\bar x| = c + \ln \Bigl| \frac{1}{n} \sum_i s_i e^{l_i - c} \Bigr|

    Parameters
    ----------
    logs : array_like, shape (n,)
        The logarithms l; -inf stands for an exact 0.
    signs : array_like, shape (n,), optional
        The signs s: -1, 0 (an exact 0 again) or 1; by default all 1.

    Returns
    -------
    LogNumber
        ``(log, sign)`` of the mean; (-inf, 0) when it is exactly 0, (nan, nan) without any value or when
        one of them is NaN.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If an argument is not one-dimensional, the lengths differ, or a sign is not -1, 0 or 1.

    See Also
    --------
    log_var : the variance about this mean.

    Notes
    -----
    Accurate to about 1e-15 (1 + abs(c)) for one sign. For both, the relative error of the mean is about
    1e-15 mean(abs(x))/abs(mean(x)).

    Inside jitted code it takes contiguous float64 vectors and checks nothing.

    Examples
    --------
    >>> from powerkern.kernels import log_mean
    >>> log_mean([1000.0, 1000.0, 1000.0])
    LogNumber(log=1000.0, sign=1.0)
    >>> log_mean([1000.0, -2000.0], signs=[-1, 1])
    LogNumber(log=999.3068528194, sign=-1.0)
    """
    vector = _vector(logs, "logs")
    mean = np.empty(2)
    if signs is None:
        _log_mean_entry(vector, mean)
    else:
        _signed_log_mean_entry(vector, _sign_vector(signs, vector), mean)
    return LogNumber(*mean.tolist())


@compiled_as(_log_var)
def log_var(logs: npt.ArrayLike, signs: npt.ArrayLike | None = None) -> float:
    r"""Logarithm of the variance of numbers given by their logarithms and signs.

    For :math:`x_i = s_i e^{l_i}`, c the largest log and :math:`s_1` the first sign,

    .. math:: \ln \operatorname{Var}(x) = 2 c + \ln \operatorname{Var}(y), \qquad
              y_i = s_i e^{l_i - c} - s_1 = s_i\, \mathrm{expm1}(l_i - c) + (s_i - s_1)

    with the variance divided by n. The exponentials do not overflow, and values of one sign that are
    nearly equal keep the digits in which they differ.

    Parameters
    ----------
    logs, signs : array_like, shape (n,)
        As for `log_mean`, which raises the same errors; logs up to 1e300 in size.

    Returns
    -------
    float
        -inf when all numbers are equal; NaN without any value, or when a log is NaN or inf.

    See Also
    --------
    log_mean : the mean.

    Notes
    -----
    Accurate to about 1e-15 (1 + 2 abs(c) + abs(ln Var(y))). The same quantity as obtained from log-sum-exps of
    logarithms of the deviations, ``ln |x_i - mean|``, without losing nearly equal values to cancellation.

    Inside jitted code it takes contiguous float64 vectors and checks nothing.

    Examples
    --------
    >>> from powerkern.kernels import log_var
    >>> log_var([1000.0, 0.0])
    1998.61370563888
    >>> log_var([0.0, 0.0], signs=[1, -1])
    0.0
    """
    vector = _vector(logs, "logs")
    if signs is None:
        return float(_log_var_entry(vector))
    return float(_signed_log_var_entry(vector, _sign_vector(signs, vector)))
