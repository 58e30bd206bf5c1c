"""The rectified Box-Cox and Yeo-Johnson transforms of [1]_, for single values and for sorted columns.

A power transform with lambda < 1 compresses large values, and one with lambda > 1 compresses small values. Outliers in
the compressed tail are hard to recognise. In this tail the rectified transform continues along its tangent::

    lambda < 1:  psi(x) for x <= C_u,   psi(C_u) + (x - C_u) psi'(C_u) beyond
    lambda > 1:  psi(x) for x >= C_l,   psi(C_l) + (x - C_l) psi'(C_l) below

It is continuous in lambda and in x, and increasing. Its range is the whole line, except for Box-Cox with
0 < lambda <= 1, whose range begins at -1/lambda. Both families are functions of a signed log a, which is ln x or
sign(x) log1p|x|::

    psi = b_m(a) = (e^(m a) - 1)/m, psi' = exp((lambda - 1) a),   m = lambda, but lambda - 2 for a < 0 with Yeo-Johnson

Yeo-Johnson and its rule are symmetric under reflection. The mirror image of Box-Cox is the transform of 1/x with
-lambda, for which the rule is not symmetric: for lambda > 0 the range begins at -1/lambda, and small outliers are
compressed towards that bound. The rule BOTH rectifies both tails. It makes the lower tail linear in ln x, and the other
tail linear in x as above::

    lambda > 0:  psi(x) for x >= C_l,   psi(C_l) + C_l^lambda ln(x/C_l) below

The rule BOTH is not in the paper.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from powerkern._jit import REAL, compiled_as, entry, inlined, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.constants import count_below
from powerkern.kernels.elementary.exp import exp, expm1
from powerkern.kernels.elementary.log import log as ln
from powerkern.kernels.elementary.log import log1p
from powerkern.kernels.plain_arguments import as_real
from powerkern.kernels.transforms.boxcox import boxcox, boxcox_dx, inv_boxcox
from powerkern.kernels.transforms.yeojohnson import inv_yeojohnson, yeojohnson, yeojohnson_dx

#: Exponents closer to 0 than this give the same results as 0, for the log of any float64.
_FLAT = 1e-290

# --- one value ----------------------------------------------------------------------------------------

#: A function of a value and lambda: psi, its derivative in x, or its inverse.
_Scalar = Callable[[float, float], float]


class _Tangent(NamedTuple):
    """A tangent along which psi is continued: the change point C, psi(C) and psi'(C)."""

    x: float
    psi: float
    slope: float


@inlined
def _tangent(psi: _Scalar, slope_of: _Scalar, lmbda: float, lower: float, upper: float) -> _Tangent:
    """Return the tangent along which psi is continued at this lambda.

    LLVM moves the call out of loops over x.

    Parameters
    ----------
    psi : kernel
        The transform of one value at a lambda.
    slope_of : kernel
        The derivative of `psi` in the value.
    lmbda : float
        Lambda.
    lower : float
        Change point for lambda >= 1.
    upper : float
        Change point for lambda < 1.
    """
    c = upper if lmbda < 1.0 else lower
    return _Tangent(c, psi(c, lmbda), slope_of(c, lmbda))


@inlined
def _is_beyond(value: float, change: float, lmbda: float) -> bool:
    """Return whether a value is on the linear side of a change point.

    `value` and `change` may also be the images of the value and of the change point.
    """
    return ((lmbda < 1.0) & (value > change)) | ((lmbda > 1.0) & (value < change))


@inlined
def _rectified(psi: _Scalar, slope_of: _Scalar, x: float, lmbda: float, lower: float, upper: float) -> float:
    """Return the rectified transform of x: psi, or the tangent beyond the change point.

    The function has no branches, so that loops vectorise.

    Parameters
    ----------
    psi : kernel
        The transform of one value at a lambda.
    slope_of : kernel
        The derivative of `psi` in the value.
    x : float
        The value.
    lmbda : float
        Lambda.
    lower : float
        Change point for lambda >= 1.
    upper : float
        Change point for lambda < 1.
    """
    at, y = _tangent(psi, slope_of, lmbda, lower, upper), psi(x, lmbda)
    return at.psi + (x - at.x) * at.slope if _is_beyond(x, at.x, lmbda) else y


@inlined
def _unrectified(
    psi: _Scalar, slope_of: _Scalar, inverse: _Scalar, y: float, lmbda: float, lower: float, upper: float
) -> float:
    """Return the x whose rectified transform is y, inverting the tangent if y is beyond the image of the change point.

    Parameters
    ----------
    psi : kernel
        The transform of one value at a lambda.
    slope_of : kernel
        The derivative of `psi` in the value.
    inverse : kernel
        The inverse of `psi`.
    y : float
        The transformed value.
    lmbda : float
        Lambda.
    lower : float
        Change point for lambda >= 1.
    upper : float
        Change point for lambda < 1.
    """
    at, x = _tangent(psi, slope_of, lmbda, lower, upper), inverse(y, lmbda)
    return at.x + (y - at.psi) / at.slope if _is_beyond(y, at.psi, lmbda) else x


@entry((REAL, REAL, REAL, REAL))
@inlined
def _rectified_boxcox(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified(boxcox, boxcox_dx, x, lmbda, lower, upper)


@entry((REAL, REAL, REAL, REAL))
@inlined
def _inv_rectified_boxcox(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _unrectified(boxcox, boxcox_dx, inv_boxcox, y, lmbda, lower, upper)


@entry((REAL, REAL, REAL, REAL))
@inlined
def _rectified_yeojohnson(x: float, lmbda: float, lower: float, upper: float) -> float:
    return _rectified(yeojohnson, yeojohnson_dx, x, lmbda, lower, upper)


@entry((REAL, REAL, REAL, REAL))
@inlined
def _inv_rectified_yeojohnson(y: float, lmbda: float, lower: float, upper: float) -> float:
    return _unrectified(yeojohnson, yeojohnson_dx, inv_yeojohnson, y, lmbda, lower, upper)


def _reals(*given: float) -> tuple[float, ...]:
    """Convert the four arguments of a call from Python (x or y, lmbda, lower, upper) to floats."""
    return tuple(map(as_real, ("x", "lmbda", "lower", "upper"), given))


@compiled_as(_rectified_boxcox)
def rectified_boxcox(x: float, lmbda: float, lower: float, upper: float) -> float:
    r"""Return the Box-Cox transform of x, continued along its tangent where it would compress outliers.

    .. math::

        \lambda < 1: \quad \psi(x) \ (x \le u), \qquad \psi(u) + (x - u)\, \psi'(u) \ (x > u)

        \lambda > 1: \quad \psi(x) \ (x \ge l), \qquad \psi(l) + (x - l)\, \psi'(l) \ (x < l)

    with u = `upper` and l = `lower`. For lambda = 1 the result is ``psi(x)``.

    Parameters
    ----------
    x : float
        The value.
    lmbda : float
        The transformation parameter.
    lower, upper : float
        The change points, positive. In the paper [1]_ they are the first and third quartiles of the data.

    Returns
    -------
    float
        The transformed value. NaN if x is negative and not on the tangent, or if an argument is NaN.

    See Also
    --------
    inv_rectified_boxcox : the inverse.

    Notes
    -----
    The result is within a few ulp of the exact value, except near zeros of the transform. The transform is continuous
    in lambda. Its range is the whole line, except for 0 < lambda <= 1, where it begins at -1/lambda. In a jitted loop
    over values the tangent is computed once, before the loop.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> from powerkern.kernels import rectified_boxcox
    >>> round(rectified_boxcox(100.0, lmbda=0.5, lower=1.0, upper=4.0), 12)
    50.0
    """
    return float(_rectified_boxcox(*_reals(x, lmbda, lower, upper)))


@compiled_as(_inv_rectified_boxcox)
def inv_rectified_boxcox(y: float, lmbda: float, lower: float, upper: float) -> float:
    """Return the x whose rectified Box-Cox transform is y.

    Parameters
    ----------
    y : float
        A transformed value.
    lmbda, lower, upper : float
        As for `rectified_boxcox`, whose docstring has the formula.

    Returns
    -------
    float
        The value, as accurately as y determines it; where psi is flat, many values have the same y. NaN if no value has
        this image (y below -1/lmbda for 0 < lmbda <= 1), or if an argument is NaN.

    See Also
    --------
    rectified_boxcox : the transform.

    Examples
    --------
    >>> from powerkern.kernels import inv_rectified_boxcox
    >>> round(inv_rectified_boxcox(50.0, lmbda=0.5, lower=1.0, upper=4.0), 12)
    100.0
    """
    return float(_inv_rectified_boxcox(*_reals(y, lmbda, lower, upper)))


@compiled_as(_rectified_yeojohnson)
def rectified_yeojohnson(x: float, lmbda: float, lower: float, upper: float) -> float:
    """Return the Yeo-Johnson transform of x, continued along its tangent where it would compress outliers.

    Parameters
    ----------
    x, lmbda, lower, upper : float
        As for `rectified_boxcox`, whose docstring has the formula and its source. Change points may have any sign.

    Returns
    -------
    float
        The transformed value, with the accuracy of `rectified_boxcox`. Its range is the whole line. NaN if an argument
        is NaN.

    See Also
    --------
    inv_rectified_yeojohnson : the inverse.

    Examples
    --------
    >>> from powerkern.kernels import rectified_yeojohnson
    >>> round(rectified_yeojohnson(99.0, lmbda=0.5, lower=0.0, upper=3.0), 12)
    50.0
    """
    return float(_rectified_yeojohnson(*_reals(x, lmbda, lower, upper)))


@compiled_as(_inv_rectified_yeojohnson)
def inv_rectified_yeojohnson(y: float, lmbda: float, lower: float, upper: float) -> float:
    """Return the x whose rectified Yeo-Johnson transform is y.

    Parameters
    ----------
    y, lmbda, lower, upper : float
        As for `inv_rectified_boxcox`.

    Returns
    -------
    float
        The value, as accurately as y determines it. NaN if an argument is NaN.

    See Also
    --------
    rectified_yeojohnson : the transform.

    Examples
    --------
    >>> from powerkern.kernels import inv_rectified_yeojohnson
    >>> round(inv_rectified_yeojohnson(50.0, lmbda=0.5, lower=0.0, upper=3.0), 12)
    99.0
    """
    return float(_inv_rectified_yeojohnson(*_reals(y, lmbda, lower, upper)))


# --- a sorted column ----------------------------------------------------------------------------------


#: The number of values in a tail, fraction times n, is rounded to an integer if it is this close to one.
_ROUNDING = 1e-9
#: Arrays of a sorted column have room for this many more values, so that loops over whole vectors need no remainder.
ROOM = 8


class SortedColumn(NamedTuple):
    """A sorted column, its signed logs, and the change points of its rectified transform."""

    x: FloatArray  #: the values, ascending, with room for n + ROOM
    logs: FloatArray  #: the signed logs of the values, with room for n + ROOM
    n: int  #: the number of values
    n_negative: int  #: the number of values with a negative log, whose exponent is lambda - negative_shift
    negative_shift: float  #: 2 for Yeo-Johnson, 0 for Box-Cox
    lower: int  #: index of the first quartile, a change point
    upper: int  #: index of the third quartile, a change point


class ChangePoint(NamedTuple):
    """A point at which the transform of a column becomes linear in x, or in ln x."""

    x: float  #: the point, or its log
    position: int  #: the number of values before the point
    psi: float  #: the transform at the point
    slope: float  #: the derivative at the point, in x or in ln x


#: Rectification rules: none; at the quartiles, as in the paper; as in R's cellWise 2.5.3; at the quartiles in both
#: tails.
NOT_RECTIFIED, QUARTILES, CELLWISE, BOTH = range(4)


@kernel
def exponent_at(log: float, lmbda: float, negative_shift: float) -> float:
    """Return the exponent m with psi = b_m(log) for a signed log: lambda, minus `negative_shift` for a negative log.

    `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    return lmbda - negative_shift if log < 0.0 else lmbda


@kernel
def psi_at(log: float, lmbda: float, negative_shift: float) -> float:
    """Return the plain transform psi of the value with the given signed log.

    `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    m = exponent_at(log, lmbda, negative_shift)
    return log if abs(m) < _FLAT else expm1(m * log) / m


@kernel
def log_at(y: float, lmbda: float, negative_shift: float) -> float:
    """Return the signed log of the value with psi = y; infinite if y is outside the range of psi.

    `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox.
    """
    m = exponent_at(y, lmbda, negative_shift)
    if abs(m) < _FLAT:
        return y
    if m * y <= -1.0:
        return math.copysign(math.inf, y)
    return log1p(m * y) / m


@kernel
def value_at(log: float, negative_shift: float) -> float:
    """Return the value with the given signed log; `negative_shift` is 2 for Yeo-Johnson and 0 for Box-Cox."""
    if negative_shift == 0.0:
        return exp(log)
    return math.copysign(expm1(abs(log)), log)


@kernel
def tail_rank(n: int, fraction: float) -> int:
    """Return the index ceil(fraction*n) - 1 of the last value in the lower tail of n sorted values, but at least 0.

    The product is rounded first if it is within a rounding error of an integer.
    """
    return max(math.ceil(fraction * n - _ROUNDING) - 1, 0)


@kernel
def change_point(column: SortedColumn, lmbda: float, rule: int) -> ChangePoint:
    """Return the change point of a sorted column, for a lambda and a rectification rule.

    It is computed from the third quartile if lambda < 1, and from the first quartile otherwise. The quartiles are the
    order statistics number ceil(n/4) and n - ceil(n/4) + 1, counted from 1. In the paper, and under all rules except
    CELLWISE, the quartile is the change point. Under the rule CELLWISE, as in R's cellWise, the change point is
    psi^-1(1.5 psi(quartile)). The argument of psi^-1 is limited to values at least 1e-5 inside the range of psi, and
    the change point is limited to the range of the data.
    """
    n = column.n
    k = column.upper if lmbda < 1.0 else column.lower
    if rule != CELLWISE:
        return _change_at(column.x[k], column.logs[k], k, lmbda, column.negative_shift)
    target = 1.5 * psi_at(column.logs[k], lmbda, column.negative_shift)
    m = exponent_at(column.logs[k], lmbda, column.negative_shift)
    if m < -_FLAT:
        target = min(target, -1.0 / m - 1e-5)
    elif m > _FLAT:
        target = max(target, -1.0 / m + 1e-5)
    log = log_at(target, lmbda, column.negative_shift)
    if not log < column.logs[n - 1]:
        return _change_at(column.x[n - 1], column.logs[n - 1], n - 1, lmbda, column.negative_shift)
    if not log > column.logs[0]:
        return _change_at(column.x[0], column.logs[0], 0, lmbda, column.negative_shift)
    return _change_at(
        value_at(log, column.negative_shift), log, count_below(column.logs[:n], log), lmbda, column.negative_shift
    )


@kernel
def _change_at(x: float, log: float, position: int, lmbda: float, negative_shift: float) -> ChangePoint:
    """Return the change point at a given value, with psi and its derivative e^((lambda - 1) log) in x.

    Parameters
    ----------
    x : float
        The value.
    log : float
        The signed log of the value.
    position : int
        Number of values of the column that precede the value.
    lmbda : float
        Lambda.
    negative_shift : float
        2 for Yeo-Johnson, 0 for Box-Cox.
    """
    return ChangePoint(x, position, psi_at(log, lmbda, negative_shift), exp((lmbda - 1.0) * log))


@kernel
def _change_in_logs(column: SortedColumn, lmbda: float) -> ChangePoint:
    """Return the first quartile as the change point below which the transform is linear in ln x.

    The slope of psi at the change point is dpsi/dln x = e^(lambda ln x). Only Box-Cox with the rule BOTH and lambda > 0
    has such a change point.
    """
    log = column.logs[column.lower]
    return ChangePoint(log, column.lower, psi_at(log, lmbda, 0.0), exp(lmbda * log))


@kernel
def transform_sorted(column: SortedColumn, lmbda: float, rule: int, y: FloatArray) -> None:
    """Set y[:n] to the rectified transform of the n values of a sorted column.

    Up to ROOM more elements of y are overwritten.

    Parameters
    ----------
    column : SortedColumn
        The column.
    lmbda : float
        Lambda.
    rule : int
        The rectification rule: NOT_RECTIFIED, QUARTILES, CELLWISE or BOTH.
    y : (n + ROOM,)
        Receives the images.
    """
    n, first, last = column.n, 0, column.n  # the transform is psi, not linear, at the indices first <= i < last
    change, in_logs = ChangePoint(0.0, 0, 0.0, 0.0), is_low_tail_in_logs(column, rule) and lmbda > 0.0
    if rule != NOT_RECTIFIED and lmbda != 1.0:
        change = change_point(column, lmbda, rule)
        if lmbda < 1.0:
            last = change.position
        else:
            first = change.position
    if in_logs:
        first = column.lower
    border = min(max(column.n_negative, first), last)
    _powers(column.logs, lmbda - column.negative_shift, first, border, y)
    _powers(column.logs, lmbda, border, last, y)
    if in_logs:
        _tangents(column.logs[:first], _change_in_logs(column, lmbda), y[:first])
    elif first > 0:
        _tangents(column.x[:first], change, y[:first])
    _tangents(column.x[last:n], change, y[last:n])


@kernel
def rectified_log_at(y: float, column: SortedColumn, lmbda: float, rule: int) -> float:
    """Return the signed log of the value whose rectified transform is y; infinite if y is outside the range.

    Parameters
    ----------
    y : float
        The image.
    column : SortedColumn
        The column.
    lmbda : float
        Lambda.
    rule : int
        The rectification rule: NOT_RECTIFIED, QUARTILES, CELLWISE or BOTH.
    """
    if is_low_tail_in_logs(column, rule) and lmbda > 0.0:
        change = _change_in_logs(column, lmbda)
        if y < change.psi:
            return float(change.x + (y - change.psi) / change.slope)
    elif rule != NOT_RECTIFIED and lmbda > 1.0:
        return _log_on_tangent(y, column, lmbda, rule, -1.0)
    if rule != NOT_RECTIFIED and lmbda < 1.0:
        return _log_on_tangent(y, column, lmbda, rule, 1.0)
    return log_at(y, lmbda, column.negative_shift)


@kernel
def _log_on_tangent(y: float, column: SortedColumn, lmbda: float, rule: int, side: float) -> float:
    """Return the signed log of the value with image y, for a transform that is linear in x in one tail.

    The other arguments are those of `rectified_log_at`.

    Parameters
    ----------
    side : float
        1 if the transform is linear above the change point, -1 if below.
    """
    change = change_point(column, lmbda, rule)
    if not (y - change.psi) * side > 0.0:
        return log_at(y, lmbda, column.negative_shift)
    x = change.x + (y - change.psi) / change.slope
    if column.negative_shift > 0.0:
        return math.copysign(log1p(abs(x)), x)
    return ln(x) if x > 0.0 else -math.inf


@kernel
def is_low_tail_in_logs(column: SortedColumn, rule: int) -> bool:
    """Return whether a rule makes the transform, for lambda > 0, linear in ln x below the lower change point."""
    return rule == BOTH and column.negative_shift == 0.0


@kernel
def _powers(logs: FloatArray, m: float, start: int, stop: int, y: FloatArray) -> None:
    """Set y[i] to (e^(m logs[i]) - 1)/m, the transform of a signed log, for start <= i < stop.

    Whole vectors are written; elements past `stop` are overwritten later.

    Parameters
    ----------
    logs : (n + ROOM,)
        Signed logs.
    m : float
        The exponent: lambda, or lambda - 2 for negative logs with Yeo-Johnson.
    start : int
        Index of the first log.
    stop : int
        One more than the index of the last log.
    y : (n + ROOM,)
        Receives the images.
    """
    n = (stop - start + ROOM - 1) // ROOM * ROOM
    logs, y = logs[start : start + n], y[start : start + n]
    if abs(m) < _FLAT:
        m = _FLAT
    inverse = 1.0 / m
    for i in range(n):
        y[i] = expm1(m * logs[i]) * inverse


@kernel
def _tangents(x: FloatArray, change: ChangePoint, y: FloatArray) -> None:
    """Set y to the values at x of the tangent at a change point; `x` may also hold the logs of values."""
    for i in range(y.size):
        y[i] = change.psi + (x[i] - change.x) * change.slope
