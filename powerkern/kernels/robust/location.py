"""Location and scale of the columns of a matrix, by every method, and Huber's estimators of a vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from powerkern._input.arrays import is_whole
from powerkern._jit import COLUMN, INTEGER, REAL, ROWS, allocated, compiled_as, entry, kernel, release, widest_vectors
from powerkern.kernels.moments import moments_of, weighted_moments_of
from powerkern.kernels.robust.biweight import bisquare_of, bisquare_proposal2_of, biweight_of
from powerkern.kernels.robust.huber import beta_of, huber, huber_location_of, huber_one_step, huber_scale_of
from powerkern.kernels.robust.loc_scale import (
    BAD_INFINITE,
    CONVERGED,
    EMPTY,
    IQR_DIVISOR,
    MAD_FACTOR,
    OVERFLOW,
    QN_FACTOR,
    ZERO_SCALE,
    LocScale,
    outcome,
)
from powerkern.kernels.robust.order_statistics import (
    HUGE,
    iqr_of,
    mad_about,
    n_present,
    qn_of,
    table_width,
    trimmed_mean,
    without_sums,
)
from powerkern.kernels.robust.proposal2 import huber_proposal2_of

#: Sizes beyond this, or below its inverse, are multiplied by _SHRINK, or divided by it, before they are squared.
_LARGE = 1e140
_SHRINK = 2.0**-600


# --- columns of a matrix ------------------------------------------------------------------------------


class Opened(NamedTuple):
    """A sorted column without its missing values, in units that can be squared."""

    y: np.ndarray
    w: np.ndarray
    unit: float
    infinite: bool


@kernel
def _opened(column: np.ndarray, weights: np.ndarray) -> Opened:
    """A sorted column without the NaN at its end, as it is."""
    n = n_present(column)
    y, w = column[:n], weights[:n]
    return Opened(y, w, 1.0, n > 0 and (math.isinf(y[0]) or math.isinf(y[n - 1])))


@kernel
def _in_units(column: Opened, unit: float) -> Opened:
    _multiply(column.y, unit)
    return Opened(column.y, column.w, unit, column.infinite)


@kernel
def _for_differences(column: Opened) -> Opened:
    """The column scaled so that no difference of its values overflows."""
    y = column.y
    if y.size == 0 or column.infinite or max(abs(y[0]), abs(y[-1])) < HUGE:
        return column
    return _in_units(column, 0.25)


@kernel
def _for_squares(column: Opened) -> Opened:
    """The column scaled so that its inner half can be squared."""
    y, n = column.y, column.y.size
    if n == 0 or column.infinite:
        return column
    inner = _inner_half(y, column.w)
    return _in_units(column, _unit_of(inner if inner > 0.0 else y[n - 1] - y[0]))


@kernel
def _inner_half(y: np.ndarray, w: np.ndarray) -> float:
    """The range of the inner half of the values, or of the inner half of their weight."""
    first, last = y.size // 4, (3 * y.size) // 4
    if w.size > 0:
        total, below = 0.0, 0.0
        for i in range(w.size):
            total += w[i]
        first, last = -1, w.size - 1
        for i in range(w.size):
            below += w[i]
            if first < 0 and below > 0.25 * total:
                first = i
            if below >= 0.75 * total:
                last = i
                break
    return float(y[last] - y[max(first, 0)])


@kernel
def _unit_of(size: float) -> float:
    """A power of two that scales numbers of this size so that their squares neither overflow nor vanish; mostly 1."""
    if size > _LARGE:
        return _SHRINK
    if 0.0 < size < 1.0 / _LARGE:
        return 1.0 / _SHRINK
    return 1.0


@kernel
def _multiply(y: np.ndarray, factor: float) -> None:
    widest_vectors()
    if factor != 1.0:
        for i in range(y.size):
            y[i] *= factor


@kernel
def _restored(column: Opened, result: LocScale) -> LocScale:
    """A result in the units of the data; OVERFLOW where it is not finite, though the estimator settled."""
    loc, scale, status = result.loc / column.unit, result.scale / column.unit, result.status
    settled = status in (CONVERGED, ZERO_SCALE)
    is_lost = math.isinf(loc) or math.isinf(scale) or (settled and (math.isnan(loc) or math.isnan(scale)))
    return LocScale(loc, scale, result.n_iter, OVERFLOW if is_lost else status)


@kernel
def _write(row: np.ndarray, column: Opened, result: LocScale) -> None:
    """A row of results: loc, scale, n_iter, status."""
    row[0], row[1], row[2], row[3] = _restored(column, result)
    if column.infinite:
        row[3] = BAD_INFINITE


#: An estimate of a sorted column: (y, w, options, table).
_Estimate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], LocScale]


def _by_column(name: str, scaled: Callable[[Opened], Opened], estimate: _Estimate) -> Callable[..., None]:
    """The entry that writes the estimates of `columns` to `out`, a row each.

    It takes sorted columns as rows, NaN last (they are overwritten); their weights as rows, or (k, 0); the estimator's
    options; a table for `sorted_column`; and `out`.
    """

    def columns_by(
        columns: np.ndarray, weights: np.ndarray, options: np.ndarray, table: np.ndarray, out: np.ndarray
    ) -> None:
        for j in range(columns.shape[0]):
            column = scaled(_opened(columns[j], weights[j]))
            _write(out[j], column, estimate(column.y, column.w, options, table))

    columns_by.__name__ = columns_by.__qualname__ = name  # by which its code is kept
    return entry((ROWS, ROWS, COLUMN, ROWS, ROWS))(columns_by)


@kernel
def _huber_of(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """`huber_location_of`; options: k."""
    return huber_location_of(y, w, table, math.nan, options[0])


@kernel
def _huber_scale_by(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """`huber_scale_of` about the median (0), `huber` (1) or `huber_one_step` (2); options: that number, k, ddof."""
    k = options[1]
    if options[0] == 0.0:
        return huber_scale_of(y, w, table, math.nan, k, options[2])
    if options[0] == 1.0:
        return huber(y, w, table, k)
    return huber_one_step(y, w, table, k, beta_of(k))


@kernel
def _proposal2_of(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """`huber_proposal2_of`; options: k and that of the location."""
    return huber_proposal2_of(y, w, table, options[0], options[1])


@kernel
def _bisquare_by(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """`bisquare_of` (k = 0) or `bisquare_proposal2_of`; options: k, c."""
    if options[0] == 0.0:
        return bisquare_of(y, w, table, options[1])
    return bisquare_proposal2_of(y, w, table, options[0], options[1])


@kernel
def _biweight_by(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """`biweight_of`; options: c of the location and of the scale."""
    return biweight_of(y, w, table, options[0], options[1])


@kernel
def _order_of(y: np.ndarray, w: np.ndarray, options: np.ndarray, table: np.ndarray) -> LocScale:
    """Mean (0), median (1) or trimmed mean (2); standard deviation (0), nMAD (1), nIQR (2) or Qn (3).

    options: the number of either, the fractions trimmed below and above.
    """
    if y.size == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    col = without_sums(y, w, table)
    total = col.left_weight + col.right_weight
    loc, scale = col.center + col.median, 0.0
    if options[0] == 2.0:
        loc = trimmed_mean(y, w, _whole(options[2] * total), _whole(options[3] * total))
    if options[1] == 1.0:
        scale = MAD_FACTOR * mad_about(col, col.median)
    elif options[1] == 2.0:
        scale = iqr_of(y, w) / IQR_DIVISOR
    elif options[1] == 3.0:
        scale = QN_FACTOR * qn_of(y, w)
    if options[0] == 0.0 or options[1] == 0.0:  # last: overwrites y
        mean, sd = mean_and_sd(y, w)
        loc = mean if options[0] == 0.0 else loc
        scale = sd if options[1] == 0.0 else scale
    return outcome(loc, scale, 0, True)


@kernel
def _whole(x: float) -> float:
    """Largest integer not above x, with allowance for the rounding of x."""
    return float(np.floor(x * (1.0 + 1e-12) + 1e-12))  # math.floor of numba is an int64, which overflows


@kernel
def mean_and_sd(y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (with 1/n) of a sorted column, which may be overwritten."""
    factor = _unit_of(max(abs(y[0]), abs(y[-1])))
    _multiply(y, factor)
    moments = moments_of(y) if w.size == 0 else weighted_moments_of(y, w)
    return moments.mean / factor, math.sqrt(moments.m2 / moments.weight) / factor


order_columns = _by_column("order_columns", _for_differences, _order_of)
huber_columns = _by_column("huber_columns", _for_squares, _huber_of)
huber_scale_columns = _by_column("huber_scale_columns", _for_squares, _huber_scale_by)
proposal2_columns = _by_column("proposal2_columns", _for_squares, _proposal2_of)
bisquare_columns = _by_column("bisquare_columns", _for_squares, _bisquare_by)
biweight_columns = _by_column("biweight_columns", _for_squares, _biweight_by)


# --- a vector -----------------------------------------------------------------------------------------


@kernel
def _copy_of(x: np.ndarray) -> np.ndarray:
    copy = allocated((x.size,))
    for i in range(x.size):
        copy[i] = x[i]
    return copy


@kernel
def _huber_location(x: np.ndarray, scale: float | None = None, k: float = 1.5) -> LocScale:
    y, scratch = _copy_of(x), allocated((6, table_width(x.size)))
    column = _for_squares(_opened(y, x[:0]))
    known = math.nan if scale is None else scale * column.unit
    result = _restored(column, huber_location_of(column.y, column.w, scratch, known, k))
    release(y)
    release(scratch)
    return result


@kernel
def _huber_scale(x: np.ndarray, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    y, scratch = _copy_of(x), allocated((6, table_width(x.size)))
    column = _for_squares(_opened(y, x[:0]))
    about = math.nan if center is None else center * column.unit
    result = _restored(column, huber_scale_of(column.y, column.w, scratch, about, k, float(ddof)))
    release(y)
    release(scratch)
    return result


@kernel
def _huber_proposal2(x: np.ndarray, k: float = 1.5, k_location: float | None = None) -> LocScale:
    y, scratch = _copy_of(x), allocated((6, table_width(x.size)))
    column = _for_squares(_opened(y, x[:0]))
    of_location = k if k_location is None else k_location
    result = _restored(column, huber_proposal2_of(column.y, column.w, scratch, k, of_location))
    release(y)
    release(scratch)
    return result


@kernel
def _note(found: LocScale, out: np.ndarray) -> None:
    out[0], out[1], out[2], out[3] = found.loc, found.scale, found.n_iter, found.status


@entry((COLUMN, REAL, REAL, COLUMN))
def _huber_location_entry(x: np.ndarray, scale: float, k: float, out: np.ndarray) -> None:
    _note(_huber_location(x, scale, k), out)


@entry((COLUMN, REAL, REAL, INTEGER, COLUMN))
def _huber_scale_entry(x: np.ndarray, center: float, k: float, ddof: int, out: np.ndarray) -> None:
    _note(_huber_scale(x, center, k, ddof), out)


@entry((COLUMN, REAL, REAL, COLUMN))
def _huber_proposal2_entry(x: np.ndarray, k: float, k_location: float, out: np.ndarray) -> None:
    _note(_huber_proposal2(x, k, k_location), out)


def _sorted_values(x: npt.ArrayLike) -> np.ndarray:
    """Values of a vector, ascending, without NaN."""
    values = np.asarray(x)
    if values.dtype.kind not in "biuf" and values.size > 0:
        raise TypeError(f"x must be real numbers, got dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got shape {values.shape}")
    ascending = np.sort(values.astype(np.float64))
    ascending = ascending[: np.searchsorted(ascending, np.nan)]
    if ascending.size and np.isinf(ascending[[0, -1]]).any():
        raise ValueError("x has infinite values; replace them, or mark them missing with NaN")
    return ascending


def _checked(what: str, value: object, least: float) -> float:
    """A finite number above `least`."""
    if not isinstance(value, Real):
        raise TypeError(f"{what} must be a number, got {value!r}")
    number = float(value)
    if not least < number < math.inf:
        kind = "finite" if least == -math.inf else "positive and finite"
        raise ValueError(f"{what} must be {kind}, got {value!r}")
    return number


def _found(entry_point: Callable[..., None], *arguments: object) -> LocScale:
    out = np.empty(4)
    entry_point(*arguments, out)
    return LocScale(float(out[0]), float(out[1]), int(out[2]), int(out[3]))


@compiled_as(_huber_location)
def huber_location(x: npt.ArrayLike, scale: float | None = None, k: float = 1.5) -> LocScale:
    r"""Huber's M-estimate of location for a known scale.

    The root mu of [1]_

    .. math:: \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr) = 0, \qquad \psi_k(u) = \max(-k, \min(k, u))

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    scale : float, optional
        The scale s > 0; by default the normalised median absolute deviation, 1.4826 MAD.
    k : float, default 1.5
        Where values begin to be clipped, in units of the scale. 1.345 has an efficiency of 95 % for normal data.

    Returns
    -------
    LocScale
        ``loc`` mu, ``scale`` s, ``n_iter`` iterations and ``status``, a `powerkern.location.LocationStatus`: CONVERGED;
        ZERO_SCALE where MAD = 0, loc is the median then; EMPTY without values, loc and scale are NaN then.

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If x is not one-dimensional or has infinite values, or `scale` or `k` is not positive.

    See Also
    --------
    huber_proposal2 : estimates the scale as well.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    Newton steps inside a bracket. psi is piecewise linear, so a step that changes no value's side of a clip position is
    exact: the result is the root to rounding, about 1e-15 of the scale.

    Inside jitted code it takes a contiguous float64 vector that is sorted in ascending order and has no NaN, and checks
    nothing.

    References
    ----------
    .. [1] P. J. Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35, 1964, 73-101.

    Examples
    --------
    >>> from powerkern.kernels import huber_location
    >>> huber_location([1.0, 2.0, 10.0])
    LocScale(loc=2.61195166387, scale=1.48260221850, n_iter=2, status=0)
    """
    known = math.nan if scale is None else _checked("scale", scale, 0.0)
    return _found(_huber_location_entry, _sorted_values(x), known, _checked("k", k, 0.0))


@compiled_as(_huber_scale)
def huber_scale(x: npt.ArrayLike, center: float | None = None, k: float = 1.5, ddof: int = 0) -> LocScale:
    r"""Huber's M-estimate of scale about a center.

    The root s of [1]_

    .. math:: \sum_i \min\Bigl(\Bigl(\frac{x_i - c}{s}\Bigr)^2, k^2\Bigr) = (n - \text{ddof})\, \beta(k), \qquad
              \beta(k) = \operatorname{E} \min(Z^2, k^2),

    with c the center and Z standard normal.

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    center : float, optional
        By default the median.
    k : float, default 1.5
        Where distances begin to be clipped, in units of the scale.
    ddof : int, default 0
        1 where the center was estimated and the estimate is to agree with the unbiased variance for large k.

    Returns
    -------
    LocScale
        ``loc`` the center, ``scale`` s, ``n_iter`` and ``status`` as for `huber_location`. The scale is 0
        (ZERO_SCALE) where more than a fraction 1 - beta(k)/k**2 of the values, 65 % for k = 1.5, equals the center.

    Raises
    ------
    TypeError, ValueError
        As `huber_location`; or `center` is not finite, or `ddof` is not a whole number, 0 or more.

    See Also
    --------
    huber_proposal2 : estimates the location as well.

    Notes
    -----
    In s**2 the equation is piecewise linear and concave: Newton steps from above decrease to the root and reach it to
    rounding.

    Inside jitted code as `huber_location`.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 5.2.

    Examples
    --------
    >>> from powerkern.kernels import huber_scale
    >>> huber_scale([1.0, 2.0, 10.0]).scale
    3.42201673808
    """
    about = math.nan if center is None else _checked("center", center, -math.inf)
    if not is_whole(ddof) or ddof < 0:
        raise ValueError(f"ddof must be a whole number, 0 or more, got {ddof!r}")
    return _found(_huber_scale_entry, _sorted_values(x), about, _checked("k", k, 0.0), ddof)


@compiled_as(_huber_proposal2)
def huber_proposal2(x: npt.ArrayLike, k: float = 1.5, k_location: float | None = None) -> LocScale:
    r"""Huber's proposal 2: location and scale at once.

    The roots mu and s of [1]_

    .. math:: \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr) = 0, \qquad
              \sum_i \psi_k\Bigl(\frac{x_i - \mu}{s}\Bigr)^2 = (n - 1)\, \beta(k), \qquad
              \beta(k) = \operatorname{E} \psi_k(Z)^2,

    with ``psi_k(u) = max(-k, min(k, u))`` and Z standard normal.

    Parameters
    ----------
    x : array_like, shape (n,)
        Values; NaN are left out.
    k : float, default 1.5
        Where values begin to be clipped, in units of the scale.
    k_location : float, optional
        Another constant for the first equation only; statsmodels' ``Huber(norm=HuberT())`` has 1.345 there.

    Returns
    -------
    LocScale
        ``loc``, ``scale``, ``n_iter`` and ``status`` as for `huber_location`. Where so many values are equal that
        the only root has s = 0, loc is their value.

    Raises
    ------
    TypeError, ValueError
        As `huber_location`.

    See Also
    --------
    huber_location : for a known scale.
    huber_scale : for a known location.
    powerkern.location.location_scale : columns of a matrix, with weights.

    Notes
    -----
    For given sets of clipped values both equations are solved at once, from median and nMAD on, until the sets no
    longer change: mostly two to five steps, and the result is the root to rounding. MASS::hubers in R stops silently
    after 30 steps of a fixed-point iteration; statsmodels raises an error.

    Inside jitted code as `huber_location`.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", Wiley, 1981, section 6.4.

    Examples
    --------
    >>> from powerkern.kernels import huber_proposal2
    >>> huber_proposal2([150.4, 28.8, 46.6, 40.2, 46.5])
    LocScale(loc=50.4285587761, scale=26.4094900696, n_iter=3, status=0)
    """
    of_location = k if k_location is None else k_location
    limits = _checked("k", k, 0.0), _checked("k_location", of_location, 0.0)
    return _found(_huber_proposal2_entry, _sorted_values(x), *limits)
