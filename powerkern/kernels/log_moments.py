"""Log-sum-exp, mean and variance of numbers that are given by their logarithms and may exceed the range of float64.

Xu and Cormode compute variances in the log domain to prevent overflow [2]_, since x**lambda may overflow where
lambda ln(x) does not. Their formula has logs of differences; `log_var` needs none. Our fits do not use `log_var`. They
factor out a power of the data instead (`powerkern.kernels.likelihood.score`).

References
----------
.. [1] P. Blanchard, D. J. Higham, N. J. Higham, "Accurately computing the log-sum-exp and softmax
   functions", IMA J. Numer. Anal. 41, 2021, 2311-2330.
.. [2] X. Xu and G. Cormode, "Power transform revisited: numerically stable, and federated", 2025, arXiv:2510.04995.
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
from powerkern.kernels.elementary.constants import LARGEST, ordered
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log, log1p
from powerkern.kernels.moments import (
    BLOCK,
    add,
    compensated_total,
    merge_tree,
    slice_weights,
    two_pass_moments,
    weight_at,
)
from powerkern.kernels.plain_arguments import as_vector

#: Number of values that log_var exponentiates at a time, few enough for the first-level cache.
_SCRATCH = 1024
#: Variances below this are recomputed from values times _MAGNIFIER, since their terms may be subnormal.
_TINY_VARIANCE = 1e-290
#: A power of two, so that scaling is exact, and its log, 900 ln 2. Squares are scaled by 2**1800.
_MAGNIFIER, _LOG_MAGNIFIER = 2.0**900, 623.8324625039508
_NONE = np.empty(0)


class LogNumber(NamedTuple):
    """The number ``sign * exp(log)``, represented by the logarithm of its magnitude and its sign."""

    log: float
    sign: float


@kernel
def _largest(x: np.ndarray, factors: np.ndarray | None) -> float:
    """Return the largest value of x whose factor is not 0, or -inf if there is no such value.

    If `factors` is None, all factors are 1. The exponential of the result scales all terms, so a term with the factor 0
    must not determine it.
    """
    widest_vectors()
    largest = ordered(bits_of(-math.inf))
    for i in range(x.size):
        key = ordered(bits_of(-math.inf if weight_at(factors, i) == 0.0 else x[i]))
        largest = key if key > largest else largest
    return float_of(ordered(largest))


@kernel
def _scale(logs: np.ndarray, factors: np.ndarray | None) -> float:
    """Return the number to subtract from logs so that their exponentials do not overflow.

    It is the largest log whose factor is not 0, or 0 if that log is not finite. If `factors` is None, all factors are
    1.
    """
    largest = _largest(logs, factors)
    return largest if abs(largest) <= LARGEST else 0.0


@reduction
def _block_exp_sum(logs: np.ndarray, factors: np.ndarray | None, scale: float) -> tuple[float, float]:
    """Return the sum of factor exp(log - scale) in two parts: over the logs equal to `scale`, and over all other logs.

    If `factors` is None, all factors are 1. Terms with the factor 0 are ignored.
    """
    widest_vectors()
    at_scale = 0.0
    rest = 0.0
    for i in range(logs.size):
        factor = weight_at(factors, i)
        d = (-math.inf if factor == 0.0 else logs[i]) - scale
        at_scale += factor if d == 0.0 else 0.0
        rest += 0.0 if d == 0.0 else factor * exp(d)
    return at_scale, rest


@kernel
def _exp_sum(logs: np.ndarray, factors: np.ndarray | None, scale: float) -> tuple[float, float]:
    """Return the two sums of `_block_exp_sum` over all blocks; the second sum is compensated."""
    at_scale, rest, lost = 0.0, 0.0, 0.0
    for start in range(0, logs.size, BLOCK):
        stop = start + BLOCK
        here, term = _block_exp_sum(logs[start:stop], slice_weights(factors, start, stop), scale)
        at_scale += here
        rest, lost = add(rest, lost, term)
    return at_scale, compensated_total(rest, lost)


@kernel
def _logsumexp(logs: np.ndarray, weights: np.ndarray | None = None) -> float:
    scale = _scale(logs, weights)
    at_scale, rest = _exp_sum(logs, weights, scale)
    # true also if the largest log is infinite or NaN, if there is no log, or if its weight is negative
    if not abs(rest) < at_scale:
        return scale + log(at_scale + rest)
    return scale + (log(at_scale) + log1p(rest / at_scale))


@kernel
def _log_mean(logs: np.ndarray, signs: np.ndarray | None = None) -> LogNumber:
    if logs.size == 0:
        return LogNumber(math.nan, math.nan)
    scale = _scale(logs, signs)
    at_scale, rest = _exp_sum(logs, signs, scale)
    total = at_scale + rest
    return LogNumber(scale + log(abs(total) / logs.size), _sign(total))


@kernel
def _sign(x: float) -> float:
    """Return the sign of x: -1, 0, 1 or NaN."""
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return x + 0.0  # -0 becomes 0


@kernel
def _shifted_values(
    logs: np.ndarray, signs: np.ndarray | None, origin: float, scale: float, factor: float, out: np.ndarray
) -> None:
    """Write (x - origin e**scale) factor/e**scale for numbers x = sign e**log, without cancellation.

    Parameters
    ----------
    logs : (n,)
        The logarithms of the magnitudes of x.
    signs : (n,) or None
        The signs of x; None if all are 1.
    origin : float
        The number to subtract from x, in units of e**scale.
    scale : float
        The logarithm of the unit.
    factor : float
        The number by which the results are multiplied.
    out : (n,)
        Receives the results.
    """
    widest_vectors()
    for i in range(logs.size):
        s = weight_at(signs, i)
        e = expm1((-math.inf if s == 0.0 else logs[i]) - scale)
        out[i] = factor * (s * e + (s - origin))


@kernel
def _scaled_variance(logs: np.ndarray, signs: np.ndarray | None, scale: float, factor: float) -> float:
    """Return the variance of the numbers ``factor*sign*e**(log - scale)``.

    `signs` is None if all signs are 1. `scale` prevents overflow of the squares, and `factor` prevents underflow.
    """
    n_blocks = (logs.size + _SCRATCH - 1) // _SCRATCH
    parts, scratch = allocated((n_blocks, 3)), allocated((_SCRATCH,))
    for k in range(n_blocks):
        start, stop = k * _SCRATCH, (k + 1) * _SCRATCH
        block = logs[start:stop]
        values = scratch[: block.size]
        _shifted_values(block, slice_weights(signs, start, stop), weight_at(signs, 0), scale, factor, values)
        part = two_pass_moments(values)
        parts[k, 0], parts[k, 1], parts[k, 2] = part.weight, part.mean, part.m2
    variance = merge_tree(parts).m2 / logs.size
    release(parts)
    release(scratch)
    return variance


@kernel
def _log_var(logs: np.ndarray, signs: np.ndarray | None = None) -> float:
    if logs.size == 0:
        return math.nan
    scale = _scale(logs, signs)
    variance = _scaled_variance(logs, signs, scale, 1.0)
    if variance < _TINY_VARIANCE:  # the squares may have underflowed
        magnified = _scaled_variance(logs, signs, scale, _MAGNIFIER)
        return 2.0 * scale + (log(magnified) - 2.0 * _LOG_MAGNIFIER)
    return 2.0 * scale + log(variance)


# --- for Python ---------------------------------------------------------------------------------------


@entry((READ_COLUMN, READ_COLUMN))
def _logsumexp_entry(logs: np.ndarray, weights: np.ndarray) -> float:
    return _logsumexp(logs, weights) if weights.size > 0 else _logsumexp(logs)


@entry((READ_COLUMN, READ_COLUMN, COLUMN))
def _log_mean_entry(logs: np.ndarray, signs: np.ndarray, out: np.ndarray) -> None:
    out[0], out[1] = _log_mean(logs, signs) if signs.size > 0 else _log_mean(logs)


@entry((READ_COLUMN, READ_COLUMN))
def _log_var_entry(logs: np.ndarray, signs: np.ndarray) -> float:
    return _log_var(logs, signs) if signs.size > 0 else _log_var(logs)


def _read_companion(values: npt.ArrayLike | None, name: str, logs: np.ndarray) -> np.ndarray:
    """Convert weights or signs to a vector, and None to an empty one; raise ValueError unless there is one per log.

    `name` names the argument in errors.
    """
    if values is None:
        return _NONE
    vector = as_vector(name, values)
    if vector.size != logs.size:
        raise ValueError(f"{name} must have one value for each log: got {vector.size} for {logs.size}")
    return vector


def _sign_vector(values: npt.ArrayLike | None, logs: np.ndarray) -> np.ndarray:
    """Convert signs to a vector, and None to an empty one; raise ValueError unless every sign is -1, 0 or 1."""
    signs = _read_companion(values, "signs", logs)
    wrong = np.flatnonzero((signs != 1.0) & (signs != -1.0) & (signs != 0.0))
    if wrong.size:
        raise ValueError(f"signs must be -1, 0 or 1, got {signs[wrong[0]]} at position {wrong[0]}")
    return signs


@compiled_as(_logsumexp)
def logsumexp(logs: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    r"""Return the logarithm of a sum of numbers given by their logarithms.

    With c the largest log, so that no exponential overflows [1]_,

    .. math:: \ln \sum_i w_i e^{l_i} = c + \ln \sum_i w_i e^{l_i - c}

    Parameters
    ----------
    logs : array_like, shape (n,)
        The logarithms l; -inf stands for an exact 0.
    weights : array_like, shape (n,), optional
        Real weights w, by default all 1. Terms of weight 0 are ignored, even if their log is infinite or NaN.

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
    Accurate to about 1e-15 (1 + abs(c)), even if the result is close to 0 because one term is 1 and the
    others are tiny. With weights of both signs the error grows as the sum cancels.

    Jitted code must pass contiguous float64 vectors, which are not checked.

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
    vector = as_vector("logs", logs)
    return float(_logsumexp_entry(vector, _read_companion(weights, "weights", vector)))


@compiled_as(_log_mean)
def log_mean(logs: npt.ArrayLike, signs: npt.ArrayLike | None = None) -> LogNumber:
    r"""Return the mean of numbers given by their logarithms and signs, as a logarithm and a sign.

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
        ``(log, sign)`` of the mean: (-inf, 0) if the mean is exactly 0, (nan, nan) if there are no values or one of
        them is NaN.

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
    Accurate to about 1e-15 (1 + abs(c)) if all signs are equal. Otherwise the relative error of the mean is about
    1e-15 mean(abs(x))/abs(mean(x)).

    Jitted code must pass contiguous float64 vectors, which are not checked.

    Examples
    --------
    >>> from powerkern.kernels import log_mean
    >>> log_mean([1000.0, 1000.0, 1000.0])
    LogNumber(log=1000.0, sign=1.0)
    >>> log_mean([1000.0, -2000.0], signs=[-1, 1])
    LogNumber(log=999.3068528194, sign=-1.0)
    """
    vector = as_vector("logs", logs)
    mean = np.empty(2)
    _log_mean_entry(vector, _sign_vector(signs, vector), mean)
    return LogNumber(*mean.tolist())


@compiled_as(_log_var)
def log_var(logs: npt.ArrayLike, signs: npt.ArrayLike | None = None) -> float:
    r"""Return the logarithm of the variance of numbers given by their logarithms and signs.

    For :math:`x_i = s_i e^{l_i}`, c the largest log and :math:`s_1` the first sign,

    .. math:: \ln \operatorname{Var}(x) = 2 c + \ln \operatorname{Var}(y), \qquad
              y_i = s_i e^{l_i - c} - s_1 = s_i\, \mathrm{expm1}(l_i - c) + (s_i - s_1)

    with the variance divided by n. The exponentials do not overflow, and values of one sign that are
    nearly equal keep the digits in which they differ.

    Parameters
    ----------
    logs, signs : array_like, shape (n,)
        As for `log_mean`, which raises the same errors. The magnitude of a log may be up to 1e300.

    Returns
    -------
    float
        -inf if all numbers are equal; NaN if there are no values, or if a log is NaN or inf.

    See Also
    --------
    log_mean : the mean.

    Notes
    -----
    Accurate to about 1e-15 (1 + 2 abs(c) + abs(ln Var(y))). Log-sum-exps of the logarithms of the deviations,
    ``ln |x_i - mean|``, would give the same quantity but cancel for nearly equal values.

    Jitted code must pass contiguous float64 vectors, which are not checked.

    Examples
    --------
    >>> from powerkern.kernels import log_var
    >>> log_var([1000.0, 0.0])
    1998.61370563888
    >>> log_var([0.0, 0.0], signs=[1, -1])
    0.0
    """
    vector = as_vector("logs", logs)
    return float(_log_var_entry(vector, _sign_vector(signs, vector)))
