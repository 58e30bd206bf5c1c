"""Wrapping of columns ([1]_), and the univariate minimum covariance determinant ([2]_) with a step of an M-estimator.

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
   184-198.
.. [2] P. J. Rousseeuw and A. M. Leroy, "Robust Regression and Outlier Detection", Wiley, 1987, 171-172.
"""

from __future__ import annotations

import math

from powerkern._jit import COLUMN, ROWS, entry, inlined, kernel, reduction
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import expm1
from powerkern.kernels.location.loc_scale import BAD_INFINITE, EMPTY, ZERO_SCALE, LocScale, make_loc_scale
from powerkern.kernels.location.order_statistics import find_position, n_present

#: Largest distance of a value that is kept for the final estimate from the raw location, in units of the raw scale: the
#: square root of the 0.975 quantile of chi-square with one degree of freedom.
KEPT = 2.241402727604947


# --- minimum covariance determinant -------------------------------------------------------------------


@entry((ROWS, ROWS, ROWS, ROWS))
def mcd_columns(columns: FloatArray, factors: FloatArray, work: FloatArray, out: FloatArray) -> None:
    """Write the location and scale of each column by `univariate_mcd`.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, sorted, NaN last.
    factors : (2, n + 1)
        Consistency factors of the raw scale and of the final scale, indexed by the number of values.
    work : (2, n)
        Scratch.
    out : (p, 4)
        Receives location, scale, 0 and status.
    """
    for j in range(columns.shape[0]):
        y, n = columns[j], n_present(columns[j])
        if n > 0 and (math.isinf(y[0]) or math.isinf(y[n - 1])):
            out[j, 0], out[j, 1], out[j, 2], out[j, 3] = math.nan, math.nan, 0.0, BAD_INFINITE
        else:
            out[j, 0], out[j, 1], out[j, 2], out[j, 3] = univariate_mcd(y[:n], factors[0, n], factors[1, n], work)


@kernel
def univariate_mcd(y: FloatArray, raw_factor: float, final_factor: float, work: FloatArray) -> LocScale:
    """Return the reweighted univariate MCD: location and scale of the values near the half with the smallest variance.

    That half is the ``h = n//2 + 1`` consecutive sorted values of smallest variance. A value is near it if its distance
    from the mean of the half is at most `KEPT` times the corrected standard deviation of the half.

    Parameters
    ----------
    y : (n,)
        The values, ascending.
    raw_factor : float
        Consistency factor of the standard deviation of the half.
    final_factor : float
        Consistency factor of the standard deviation of the values near the half.
    work : (2, n) or longer
        Scratch.
    """
    n = y.size
    if n == 0:
        return LocScale(math.nan, math.nan, 0, EMPTY)
    h = n // 2 + 1 if n > 1 else 1
    unit = _unit_of_halves(y, h)
    if unit == 0.0:  # more than half of the values are equal
        return LocScale(y[n // 2], 0.0, 0, ZERO_SCALE)
    start = _smallest_variance_start(y, h, unit, work)
    raw = _moments(y[start : start + h], unit)
    cutoff = KEPT * raw_factor * raw[1]
    lo = find_position(y, raw[0], -cutoff, start)
    hi = find_position(y, raw[0], cutoff, start + h)
    final = _moments(y[lo:hi], unit)
    return make_loc_scale(final[0], final_factor * final[1], 0, True)


@kernel
def _unit_of_halves(y: FloatArray, h: int) -> float:
    """Return a power of two close to the width of the shortest half of the values; 0 if that half is constant."""
    shortest = math.inf
    for i in range(y.size - h + 1):
        shortest = min(shortest, 0.5 * y[i + h - 1] - 0.5 * y[i])
    return math.ldexp(1.0, math.frexp(shortest)[1]) if shortest > 0.0 else 0.0


@kernel
def _smallest_variance_start(y: FloatArray, h: int, unit: float, work: FloatArray) -> int:
    """Return the first index of the h consecutive values with the smallest variance; ties give the lowest index.

    Every window of h values contains the middle of the column. Running sums start there and extend outwards, in units
    of `unit`, so that far outliers enter only the sums of windows that contain them. `work` is scratch.
    """
    n = y.size
    middle, center = n // 2, y[n // 2]
    first, second = work[0], work[1]
    _cumulate(y[:middle][::-1], center, unit, first[:middle][::-1], second[:middle][::-1])
    _cumulate(y[middle:], center, unit, first[middle:n], second[middle:n])
    best, at = math.inf, 0
    for i in range(n - h + 1):
        s, q = first[i + h - 1], second[i + h - 1]
        if i < middle:
            s += first[i]
            q += second[i]
        spread = q - s * s / h
        if spread < best:
            best, at = spread, i
    return at


@kernel
def _cumulate(y: FloatArray, center: float, unit: float, first: FloatArray, second: FloatArray) -> None:
    """Write running sums of (y - center)/unit and of its squares.

    Parameters
    ----------
    y : (n,)
        The values.
    center : float
        The number that is subtracted from the values.
    unit : float
        The number by which the differences are divided.
    first, second : (n,)
        Receive the running sums of the first and of the second power.
    """
    s = q = 0.0
    for i in range(y.size):
        d = (y[i] - center) / unit
        s += d
        q += d * d
        first[i], second[i] = s, q


@reduction
def _moments(y: FloatArray, unit: float) -> tuple[float, float]:
    """Return mean and standard deviation (with 1/n), computed in units of `unit` about a central value."""
    n, center, total, squares = y.size, y[y.size // 2], 0.0, 0.0
    for i in range(n):
        total += (y[i] - center) / unit
    mean = total / n
    for i in range(n):
        d = (y[i] - center) / unit - mean
        squares += d * d
    return center + mean * unit, math.sqrt(squares / n) * unit


# --- wrapping -----------------------------------------------------------------------------------------


@inlined
def psi(z: float, b: float, c: float, q1: float, q2: float) -> float:
    """Return the wrapping function of [1]_: z if |z| < b, ``q1 tanh(q2 (c - |z|)) sign(z)`` if |z| < c, otherwise 0.

    NaN stays NaN.

    Parameters
    ----------
    z : float
        The value, in units of the scale.
    b : float
        Bound up to which values are unchanged.
    c : float
        Bound beyond which values become 0.
    q1 : float
        Factor of the hyperbolic tangent.
    q2 : float
        Factor in the argument of the hyperbolic tangent.
    """
    size = abs(z)
    e = expm1(-2.0 * q2 * (c - min(max(size, b), c)))
    falling = math.copysign(-q1 * e / (2.0 + e), z)
    return z if not size >= b else (falling if size < c else 0.0)


@entry((ROWS, COLUMN, COLUMN, ROWS))
def step_columns(columns: FloatArray, constants: FloatArray, factors: FloatArray, out: FloatArray) -> None:
    """Improve the location and scale of each column by one reweighting step of the M-estimator with `psi`.

    Columns without a positive scale are left unchanged.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, sorted, NaN last.
    constants : (4,)
        b, c, q1 and q2, see `psi`.
    factors : (n + 1,)
        Consistency factors of the scale, indexed by the number of values.
    out : (p, 4)
        Results of `mcd_columns`; location and scale are replaced.
    """
    for j in range(columns.shape[0]):
        y, n = columns[j], n_present(columns[j])
        loc, scale = out[j, 0], out[j, 1]
        if scale > 0.0:
            total, first, second = _weighted_sums(y[:n], loc, scale, constants)
            shift = first / total
            out[j, 0] = loc + scale * shift
            out[j, 1] = factors[n] * scale * math.sqrt(second / total - shift * shift)


@reduction
def _weighted_sums(y: FloatArray, loc: float, scale: float, constants: FloatArray) -> tuple[float, float, float]:
    """Return the sums of w, w z and w z**2, with z = (y - loc)/scale and w = psi(z)/z."""
    b, c, q1, q2 = constants[0], constants[1], constants[2], constants[3]
    total = first = second = 0.0
    for i in range(y.size):
        z = (y[i] - loc) / scale
        wrapped = psi(z, b, c, q1, q2)
        near = abs(z) < b
        total += 1.0 if near else wrapped / z
        first += wrapped
        second += wrapped * min(max(z, -c), c)
    return total, first, second


@entry((ROWS, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN))
def wrap_columns(
    columns: FloatArray,
    loc: FloatArray,
    scale: FloatArray,
    center: FloatArray,
    unit: FloatArray,
    constants: FloatArray,
) -> None:
    """Replace each value x by ``center + unit psi((x - loc)/scale)``, where `psi` is the wrapping function.

    Parameters
    ----------
    columns : (p, n)
        Columns as rows, replaced by their wrapped values.
    loc : (p,)
        Location of each column.
    scale : (p,)
        Scale of each column.
    center : (p,)
        The number that replaces the location of each column.
    unit : (p,)
        The number that replaces the scale of each column.
    constants : (4,)
        b, c, q1 and q2, see `psi`.
    """
    b, c, q1, q2 = constants[0], constants[1], constants[2], constants[3]
    for j in range(columns.shape[0]):
        x, location, spread, middle, width = columns[j], loc[j], scale[j], center[j], unit[j]
        for i in range(x.size):
            x[i] = middle + width * psi((x[i] - location) / spread, b, c, q1, q2)
