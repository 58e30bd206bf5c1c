"""Rectified Box-Cox and Yeo-Johnson transforms (Raymaekers & Rousseeuw 2021): one value, or a sorted column.

A power transform with lambda < 1 flattens large values, one with lambda > 1 small ones: outliers on that side hide. The
rectified transform continues along its tangent there::

    lambda < 1:  psi(x) for x <= C_u,   psi(C_u) + (x - C_u) psi'(C_u) beyond
    lambda > 1:  psi(x) for x >= C_l,   psi(C_l) + (x - C_l) psi'(C_l) below

It is continuous in lambda and in x, and increasing. Its range is the whole line, except for Box-Cox with
0 < lambda <= 1, where it begins at -1/lambda. Both families are one function of a signed log a,
ln x or sign(x) log1p|x|::

    psi = b_m(a), psi' = exp((lambda - 1) a),   m = lambda, but lambda - 2 for a < 0 under Yeo-Johnson

Yeo-Johnson is its own mirror image, and the rule with it. Box-Cox is that of 1/x with -lambda, but the rule is not: for
lambda > 0 its range begins at -1/lambda, so that small outliers hide at that bound. Rectified on both sides, it goes on
in ln x there (and as above on the other side)::

    lambda > 0:  psi(x) for x >= C_l,   psi(C_l) + C_l^lambda ln(x/C_l) below
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import REAL, compiled_as, entry, inlined, kernel, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log as ln
from powerkern.kernels.elementary.log import log1p
from powerkern.kernels.transforms.boxcox import boxcox, boxcox_dx, inv_boxcox
from powerkern.kernels.transforms.yeojohnson import inv_yeojohnson, yeojohnson, yeojohnson_dx

#: Exponents closer to 0 than this act as 0 on the log of any float64.
_FLAT = 1e-290

# --- one value ----------------------------------------------------------------------------------------

#: A function of a value and lambda: psi, its derivative in x, its inverse.
_Scalar = Callable[[float, float], float]


@inlined
def _rectified(psi: _Scalar, slope_of: _Scalar, x: float, lmbda: float, lower: float, upper: float) -> float:
    """The rectified psi, without branches: out of a loop over x LLVM moves psi(C) and psi'(C), and vectorises it."""
    c = upper if lmbda < 1.0 else lower
    at, slope, y = psi(c, lmbda), slope_of(c, lmbda), psi(x, lmbda)
    beyond = ((lmbda < 1.0) & (x > c)) | ((lmbda > 1.0) & (x < c))
    return at + (x - c) * slope if beyond else y


@inlined
def _unrectified(
    psi: _Scalar, slope_of: _Scalar, inverse: _Scalar, y: float, lmbda: float, lower: float, upper: float
) -> float:
    """The inverse of `_rectified`."""
    c = upper if lmbda < 1.0 else lower
    at, slope, x = psi(c, lmbda), slope_of(c, lmbda), inverse(y, lmbda)
    beyond = ((lmbda < 1.0) & (y > at)) | ((lmbda > 1.0) & (y < at))
    return c + (y - at) / slope if beyond else x


@inlined
def _rectified_boxcox(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified(boxcox, boxcox_dx, x, lmbda, lower, upper)


@inlined
def _inv_rectified_boxcox(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _unrectified(boxcox, boxcox_dx, inv_boxcox, y, lmbda, lower, upper)


@inlined
def _rectified_yeojohnson(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified(yeojohnson, yeojohnson_dx, x, lmbda, lower, upper)


@inlined
def _inv_rectified_yeojohnson(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _unrectified(yeojohnson, yeojohnson_dx, inv_yeojohnson, y, lmbda, lower, upper)


_ENTRY = (REAL, REAL, REAL, REAL)


@entry(_ENTRY)
def _rectified_boxcox_entry(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified_boxcox(x, lmbda, lower, upper)


@entry(_ENTRY)
def _inv_rectified_boxcox_entry(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _inv_rectified_boxcox(y, lmbda, lower, upper)


@entry(_ENTRY)
def _rectified_yeojohnson_entry(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified_yeojohnson(x, lmbda, lower, upper)


@entry(_ENTRY)
def _inv_rectified_yeojohnson_entry(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _inv_rectified_yeojohnson(y, lmbda, lower, upper)


@compiled_as(_rectified_boxcox)
def rectified_boxcox(x: float, lmbda: float, lower: float, upper: float) -> float:
    r"""Box-Cox transform psi, continued along its tangent where it would flatten outliers.

    .. math::

        \lambda < 1: \quad \psi(x) \ (x \le u), \qquad \psi(u) + (x - u)\, \psi'(u) \ (x > u)

        \lambda > 1: \quad \psi(x) \ (x \ge l), \qquad \psi(l) + (x - l)\, \psi'(l) \ (x < l)

    with u = `upper` and l = `lower`; ``psi(x)`` for lambda = 1.

    Parameters
    ----------
    x : float
        The value.
    lmbda : float
        The transformation parameter.
    lower, upper : float
        The change points, positive; the first and third quartile of the data in the paper [1]_.

    Returns
    -------
    float
        The transformed value. NaN where x is negative and not beyond a change point, and where an argument is NaN.

    See Also
    --------
    inv_rectified_boxcox : the inverse.

    Notes
    -----
    Within a few ulp of the exact value, except near its zeros. Continuous in lambda. Its range is the whole line,
    except for 0 < lambda <= 1, where it begins at -1/lambda. In a jitted loop over values psi(u), psi'(u) or psi(l),
    psi'(l) are computed once, before the loop.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.

    Examples
    --------
    >>> from powerkern.kernels import rectified_boxcox
    >>> round(rectified_boxcox(100.0, lmbda=0.5, lower=1.0, upper=4.0), 12)
    50.0
    """
    return float(_rectified_boxcox_entry(float(x), float(lmbda), float(lower), float(upper)))


@compiled_as(_inv_rectified_boxcox)
def inv_rectified_boxcox(y: float, lmbda: float, lower: float, upper: float) -> float:
    """The x whose rectified Box-Cox transform is y.

    Parameters
    ----------
    y : float
        A transformed value.
    lmbda, lower, upper : float
        The transformation parameter and the change points, as of `rectified_boxcox`, which has the formula.

    Returns
    -------
    float
        The value, as exact as y allows: where psi is flat, many values have the same y. NaN where there is none (below
        -1/lmbda for 0 < lmbda <= 1), and where an argument is NaN.

    See Also
    --------
    rectified_boxcox : the transform.

    Examples
    --------
    >>> from powerkern.kernels import inv_rectified_boxcox
    >>> round(inv_rectified_boxcox(50.0, lmbda=0.5, lower=1.0, upper=4.0), 12)
    100.0
    """
    return float(_inv_rectified_boxcox_entry(float(y), float(lmbda), float(lower), float(upper)))


@compiled_as(_rectified_yeojohnson)
def rectified_yeojohnson(x: float, lmbda: float, lower: float, upper: float) -> float:
    """Yeo-Johnson transform, continued along its tangent where it would flatten outliers.

    The formula is that of `rectified_boxcox`, with psi the Yeo-Johnson transform.

    Parameters
    ----------
    x : float
        The value.
    lmbda : float
        The transformation parameter.
    lower, upper : float
        The change points; the first and third quartile of the data in the paper [1]_.

    Returns
    -------
    float
        The transformed value, within a few ulp except near its zeros. NaN where an argument is NaN. Continuous in
        lambda; its range is the whole line.

    See Also
    --------
    inv_rectified_yeojohnson : the inverse.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.

    Examples
    --------
    >>> from powerkern.kernels import rectified_yeojohnson
    >>> round(rectified_yeojohnson(99.0, lmbda=0.5, lower=0.0, upper=3.0), 12)
    50.0
    """
    return float(_rectified_yeojohnson_entry(float(x), float(lmbda), float(lower), float(upper)))


@compiled_as(_inv_rectified_yeojohnson)
def inv_rectified_yeojohnson(y: float, lmbda: float, lower: float, upper: float) -> float:
    """The x whose rectified Yeo-Johnson transform is y.

    Parameters
    ----------
    y : float
        A transformed value.
    lmbda, lower, upper : float
        The transformation parameter and the change points, as of `rectified_yeojohnson`.

    Returns
    -------
    float
        The value, as exact as y allows: where psi is flat, many values have the same y. NaN where an argument is NaN.

    See Also
    --------
    rectified_yeojohnson : the transform.

    Examples
    --------
    >>> from powerkern.kernels import inv_rectified_yeojohnson
    >>> round(inv_rectified_yeojohnson(50.0, lmbda=0.5, lower=0.0, upper=3.0), 12)
    99.0
    """
    return float(_inv_rectified_yeojohnson_entry(float(y), float(lmbda), float(lower), float(upper)))


# --- a sorted column ----------------------------------------------------------------------------------


#: A tail's share of the values is a whole number of them where it is that near to one.
_ROUNDING = 1e-9
#: Arrays of a sorted column have room for this many more values: loops over whole vectors need no scalar remainder.
ROOM = 8


class SortedColumn(NamedTuple):
    """`n` sorted values and signed logs; for the first `n_negative` the exponent is less by `below`, 2 (Box-Cox: 0).

    The rectified transform changes at order statistics number `lower` and `upper`, from 0: the quartiles.
    """

    x: FloatArray  #: at least n + ROOM values, like the logs
    logs: FloatArray
    n: int
    n_negative: int
    below: float
    lower: int
    upper: int


class ChangePoint(NamedTuple):
    """Where a transform becomes linear: the value, its log, and how many values come before."""

    x: float
    log: float
    position: int


#: Change points: none, the quartiles (as in the paper), as in R's cellWise 2.5.3, or the quartiles on both sides.
NOT_RECTIFIED, QUARTILES, CELLWISE, BOTH = range(4)


@kernel
def exponent_at(log: float, lmbda: float, below: float) -> float:
    """m of psi = b_m(log)."""
    return lmbda - below if log < 0.0 else lmbda


@kernel
def psi_at(log: float, lmbda: float, below: float) -> float:
    """psi of one value given by its signed log."""
    m = exponent_at(log, lmbda, below)
    return log if abs(m) < _FLAT else expm1(m * log) / m


@kernel
def log_at(y: float, lmbda: float, below: float) -> float:
    """The signed log of the value with psi = y; infinite beyond the range."""
    m = exponent_at(y, lmbda, below)
    if abs(m) < _FLAT:
        return y
    if m * y <= -1.0:
        return math.copysign(math.inf, y)
    return log1p(m * y) / m


@kernel
def value_at(log: float, below: float) -> float:
    """The value with this signed log."""
    if below == 0.0:
        return exp(log)
    return math.copysign(expm1(abs(log)), log)


@kernel
def rank_of(n: int, share: float) -> int:
    """Which of n order statistics, from 0, ends a tail of that share; that of a quarter is the first quartile."""
    return max(math.ceil(share * n - _ROUNDING) - 1, 0)


@kernel
def change_point(column: SortedColumn, lmbda: float, rule: int) -> ChangePoint:
    """The change point of a sorted column.

    The quartiles are order statistics number ceil(n/4) and n - ceil(n/4) + 1. The paper's rule takes them as they are;
    R's takes C = psi^-1(1.5 psi(quartile)), with 1.5 psi kept 1e-5 inside the range and C inside the data.
    """
    n = column.n
    k = column.upper if lmbda < 1.0 else column.lower
    if rule != CELLWISE:
        return ChangePoint(column.x[k], column.logs[k], k)
    target = 1.5 * psi_at(column.logs[k], lmbda, column.below)
    m = exponent_at(column.logs[k], lmbda, column.below)
    if m < -_FLAT:
        target = min(target, -1.0 / m - 1e-5)
    elif m > _FLAT:
        target = max(target, -1.0 / m + 1e-5)
    at = log_at(target, lmbda, column.below)
    if not at < column.logs[n - 1]:
        return ChangePoint(column.x[n - 1], column.logs[n - 1], n - 1)
    if not at > column.logs[0]:
        return ChangePoint(column.x[0], column.logs[0], 0)
    return ChangePoint(value_at(at, column.below), at, _count_below(column.logs[:n], at))


@kernel
def transform_sorted(column: SortedColumn, lmbda: float, rule: int, y: FloatArray) -> None:
    """y[:n] = psi, or the rectified psi by `rule`, of a sorted column; up to ROOM further values are overwritten."""
    n = column.n
    first, last = 0, n  # the part that is not linear
    change, in_logs = ChangePoint(0.0, 0.0, 0), is_low_tail_in_logs(column, rule) and lmbda > 0.0
    if rule != NOT_RECTIFIED and lmbda != 1.0:
        change = change_point(column, lmbda, rule)
        if lmbda < 1.0:
            last = change.position
        else:
            first = change.position
    if in_logs:
        first = column.lower
    border = min(max(column.n_negative, first), last)
    _powers(column.logs, lmbda - column.below, first, border, y)
    _powers(column.logs, lmbda, border, last, y)
    at, slope = psi_at(change.log, lmbda, column.below), exp((lmbda - 1.0) * change.log)
    if in_logs:
        log = column.logs[first]
        _tangents(column.logs[:first], log, psi_at(log, lmbda, 0.0), exp(lmbda * log), y[:first])
    elif first > 0:
        _tangents(column.x[:first], change.x, at, slope, y[:first])
    _tangents(column.x[last:n], change.x, at, slope, y[last:n])


@kernel
def rectified_log_at(y: float, column: SortedColumn, lmbda: float, rule: int) -> float:
    """The signed log of the value whose transform, rectified by `rule`, is y; infinite beyond the range."""
    if is_low_tail_in_logs(column, rule) and lmbda > 0.0:
        log = column.logs[column.lower]
        at = psi_at(log, lmbda, 0.0)
        if y < at:
            return float(log + (y - at) / exp(lmbda * log))
    elif rule != NOT_RECTIFIED and lmbda > 1.0:
        return _log_on_tangent(y, column, lmbda, rule, -1.0)
    if rule != NOT_RECTIFIED and lmbda < 1.0:
        return _log_on_tangent(y, column, lmbda, rule, 1.0)
    return log_at(y, lmbda, column.below)


@kernel
def _log_on_tangent(y: float, column: SortedColumn, lmbda: float, rule: int, side: float) -> float:
    """The signed log of the value with transform y, linear above (side 1) or below (-1) the change point."""
    change = change_point(column, lmbda, rule)
    at = psi_at(change.log, lmbda, column.below)
    if not (y - at) * side > 0.0:
        return log_at(y, lmbda, column.below)
    x = change.x + (y - at) / exp((lmbda - 1.0) * change.log)
    if column.below > 0.0:
        return math.copysign(log1p(abs(x)), x)
    return ln(x) if x > 0.0 else -math.inf


@kernel
def is_low_tail_in_logs(column: SortedColumn, rule: int) -> bool:
    """Whether small values go on in ln x beyond their change point where lambda > 0."""
    return rule == BOTH and column.below == 0.0


@kernel
def _powers(logs: FloatArray, m: float, start: int, stop: int, y: FloatArray) -> None:
    """y = b_m(log) from `start` on, in whole vectors; what is written later overwrites the surplus."""
    widest_vectors()
    n = (stop - start + ROOM - 1) // ROOM * ROOM
    logs, y = logs[start : start + n], y[start : start + n]
    if abs(m) < _FLAT:
        m = _FLAT
    inverse = 1.0 / m
    for i in range(n):
        y[i] = expm1(m * logs[i]) * inverse


@kernel
def _tangents(x: FloatArray, c: float, at_c: float, slope: float, y: FloatArray) -> None:
    widest_vectors()
    for i in range(y.size):
        y[i] = at_c + (x[i] - c) * slope


@kernel
def _count_below(x: FloatArray, bound: float) -> int:
    """How many values of a sorted array are less than `bound`."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) // 2
        if x[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
