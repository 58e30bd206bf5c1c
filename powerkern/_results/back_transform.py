"""Back-transformation of normal distributions to the scale of the data: medians, means and quantiles.

A mean is the integral of ``psi^-1(z + sd t) phi(t)`` over all t for which ``z + sd t`` lies in the range of psi. The
integrand is analytic except at the ends of that range and at the image of 0, where the two branches of Yeo-Johnson
meet. The integral is split at these points, at t = 0 and at the maxima of the integrand. A double exponential rule
(tanh-sinh [1]_) converges on each piece, even if the integrand behaves like a power of the distance from an end.

References
----------
.. [1] H. Takahasi and M. Mori, "Double exponential formulas for numerical integration", Publ. RIMS 9, 1974, 721-741.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from powerkern._input import lazy_scipy_special as special
from powerkern._input.alignment import align_columns, align_rows
from powerkern._input.arrays import as_choice, as_reals, is_real
from powerkern._input.frames import names_of, order_frame
from powerkern._input.messages import shown
from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray
from powerkern.kernels.transforms.family import INVERSE_STANDARDIZED

Kind = Literal["median", "mean", "quantile"]

#: Number of standard deviations to integrate beyond t = 0 and beyond the maxima of the integrand.
_MARGIN = 9.5
#: Step of the rule, and number of nodes on each side of its center. _PIECE is for pieces on which values are finite,
#: _TAIL for pieces at whose outer end values become infinite.
_PIECE, _TAIL = (0.07, 52), (0.05, 72)
#: Number of means to compute in one batch.
_AT_ONCE = 1024


def back_transform(
    table: ColumnTable, z: FloatArray, sd: float | FloatArray, kind: str, quantile: float, n_threads: int
) -> FloatArray:
    """Return medians, means or quantiles of values whose standardised transforms are normal.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    z, sd : (m, p) ndarray
        Means and standard deviations of the standardised transforms.
    kind : {"median", "mean", "quantile"}
        The moment or quantile to return.
    quantile : float
        Between 0 and 1, for "quantile".
    n_threads : int
        Maximum number of threads.
    """
    as_choice("kind", kind, get_args(Kind))
    if kind == "mean":
        return inverse_means(table, z, np.broadcast_to(sd, z.shape), n_threads)
    if kind == "quantile":
        z = z + sd * normal_quantiles(quantile)
    return invert(table, z, n_threads)


def standardize_normals(
    table: ColumnTable,
    standardize: bool,
    was_vector: bool,
    mean: ArrayLike,
    sd: ArrayLike,
    other: tuple[int, ...] = (),
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Broadcast means and standard deviations, and convert them to the standardised scale.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    standardize : bool
        True if the fit's `transform` standardises.
    was_vector : bool
        True if the fit was made from a vector.
    mean, sd : array-like
        Means and standard deviations on the scale of the fit's `transform`.
    other : tuple of int
        Shape of a third argument that broadcasts with `mean` and `sd`.

    Returns
    -------
    means, sds : (m, p) ndarray
        Standardised means and standard deviations.
    shape : tuple of int
        The common shape of the arguments, which is the shape of the result for the user.
    """
    center, spread = as_reals("mean", mean), as_reals("sd", sd)
    wrong = (spread < 0.0) | (spread == np.inf)
    if wrong.any():
        raise ValueError(f"sd must be finite and not negative, got {spread[wrong][0]:g}")
    shape = _common_shape(center.shape, spread.shape, other)
    p = len(table)
    if not was_vector:
        if not shape or shape[-1] not in (1, p):
            raise ValueError(
                f"mean and sd must have the {p} columns of the fit along their last axis, got shape {shape}"
            )
        shape = (*shape[:-1], p)
    z, scale = (np.array(np.broadcast_to(a, shape), dtype=np.float64).reshape(-1, p) for a in (center, spread))
    if not standardize:
        with np.errstate(over="ignore"):
            factor = np.exp(table.log_factor)
            z, scale = (z - table.loc * factor) / (table.scale * factor), scale / (table.scale * factor)
    return z, scale, shape


def align_with_fit(mean: Any, sd: Any, names: list[Any] | None, was_vector: bool) -> tuple[Any, Any]:
    """Reorder labelled means and standard deviations to match the fitted columns, and `sd` to match the rows of `mean`.

    Data frames are reordered by column. Series that have one number per column are reordered by label. Values without
    labels are returned unchanged.

    Parameters
    ----------
    mean, sd : array-like
        Means and standard deviations, as the user passed them.
    names : list or None
        Labels of the fitted columns.
    was_vector : bool
        True if the fit was made from a vector.
    """
    if was_vector or (names_of(mean) is not None and names_of(sd) is not None):
        sd = align_rows(sd, mean, "sd", "mean")

    def align(value: Any, what: str) -> Any:
        if names_of(value) is not None:
            return order_frame(value, names, what)
        return value if was_vector else align_columns(value, names, what)

    return align(mean, "mean"), align(sd, "sd")


def _common_shape(mean: tuple[int, ...], sd: tuple[int, ...], quantile: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which the shapes `mean`, `sd` and `quantile` broadcast; pass () for an absent `quantile`."""
    try:
        return np.broadcast_shapes(mean, sd, quantile)
    except ValueError:
        given = f"mean {mean}, sd {sd}" + (f", quantile {quantile}" if quantile else "")
        raise ValueError(f"the arguments must broadcast to a common shape, got {given}") from None


def invert(table: ColumnTable, z: FloatArray, n_threads: int) -> FloatArray:
    """Invert the standardised transform of each column; a `z` beyond the range of psi gives the end of the domain."""
    found = _inverse_in_range(table, z, n_threads)
    return np.where(np.isnan(found) & ~np.isnan(z), _end_of_domain(table), found)


def _inverse_in_range(table: ColumnTable, z: FloatArray, n_threads: int) -> FloatArray:
    out = np.empty_like(z)
    table.transform(z, out, INVERSE_STANDARDIZED, n_threads)
    return out


def _end_of_domain(table: ColumnTable) -> FloatArray:
    """Return, for each column, the end of the domain (-shift or +-inf) at which psi reaches the end of its range."""
    return np.where(table.lmbda < 0.0, np.inf, np.where(table.mirrored, -np.inf, -table.shift))


def normal_quantiles(quantile: ArrayLike) -> FloatArray:
    """Return standard normal quantiles; raise a ValueError unless every probability is between 0 and 1."""
    if not isinstance(quantile, np.ndarray | list | tuple) and not is_real(quantile):
        raise ValueError(f"quantile must be between 0 and 1, got {shown(quantile)}")
    at = as_reals("quantile", quantile)
    if not ((at > 0.0) & (at < 1.0)).all():
        raise ValueError(f"quantile must be between 0 and 1, got {shown(quantile)}")
    return np.asarray(special.ndtri(at))


# --- means --------------------------------------------------------------------------------------------


class _PsiBranch(NamedTuple):
    """One branch of psi for each column: the branch of positive values, or the mirrored branch of negative values.

    The inverse is ``offset + |x| = base (distance/unit)**(1/exponent)``, where `distance` is the distance of the
    transformed value from `end`. At `end`, this expression is zero or infinite. `exponent` is NaN in columns that have
    no such branch.
    """

    exponent: FloatArray
    end: FloatArray
    log_unit: FloatArray
    log_base: FloatArray
    offset: FloatArray
    #: Derivative of the transformed value with respect to ln(offset + |x|), at x = 0 or, for Box-Cox, at the reference.
    growth: FloatArray


def _psi_branches(table: ColumnTable) -> tuple[_PsiBranch, _PsiBranch, FloatArray]:
    """Return the upper branch, the lower branch (as a function of ``-z``), and the z at which the two branches meet."""
    mirrored = table.mirrored
    lmbda, slope, intercept, ref = table.lmbda, table.slope, table.intercept, table.ref
    size = np.log1p(abs(ref))
    with np.errstate(all="ignore"):
        own = np.where(ref < 0.0, 2.0 - lmbda, lmbda)
        growth = np.where(ref == 0.0, slope * np.exp(-table.log_factor), slope * np.exp(-own * size))
        zero = intercept - np.sign(ref) * slope * np.where(own == 0.0, size, -np.expm1(-own * size) / own)
        at_ref = (intercept, slope, size)
        at_zero = (zero, growth, np.zeros_like(size))
        up = [np.where(ref > 0.0, a, b) for a, b in zip(at_ref, at_zero, strict=True)]
        down = [np.where(ref < 0.0, a, b) for a, b in zip(at_ref, at_zero, strict=True)]
        single = (intercept, slope, np.log(np.where(mirrored, 1.0, ref)))
        up = [np.where(mirrored, a, b) for a, b in zip(up, single, strict=True)]
        upper = _make_branch(lmbda, up[0], up[1], up[2], mirrored)
        lower = _make_branch(np.where(mirrored, 2.0 - lmbda, np.nan), -down[0], down[1], down[2], mirrored)
    return upper, lower, np.where(mirrored, zero, np.nan)


def _make_branch(
    exponent: FloatArray, start: FloatArray, growth: FloatArray, log_base: FloatArray, mirrored: BoolArray
) -> _PsiBranch:
    end = start - growth / exponent
    return _PsiBranch(
        exponent, end, np.log(growth) - np.log(abs(exponent)), log_base, mirrored.astype(np.float64), growth
    )


def ends_of_range(table: ColumnTable) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the range of each column's standardised transform; infinite if unbounded."""
    upper, lower, _ = _psi_branches(table)
    own = np.where(table.lmbda > 0.0, upper.end, -np.inf)
    low = np.where(table.mirrored, np.where(table.lmbda > 2.0, -lower.end, -np.inf), own)
    return low, np.where(table.lmbda < 0.0, upper.end, np.inf)


class _IntegrationRange(NamedTuple):
    """Range of integration above the mean (or below it, for the lower branch), in standard deviations from the mean."""

    #: Point at which the product of value and density is largest.
    peak: FloatArray
    #: End of the range of psi, or the valley at which a divergent integral is cut; inf if there is neither.
    limit: FloatArray
    #: True if the integral diverges and has no valley at which to cut it.
    diverges: BoolArray
    #: True if values are infinite at `limit` but the integral converges.
    singular: BoolArray


def _integration_range(side: _PsiBranch, center: FloatArray, sd: FloatArray, zero: FloatArray) -> _IntegrationRange:
    """Return the range of integration on one branch of psi.

    Parameters
    ----------
    side : _PsiBranch
        The branch.
    center, sd : (m, p) ndarray
        Means and standard deviations of the standardised transforms.
    zero : (p,) ndarray
        Transform of x = 0, where the branch starts; NaN if there is only one branch.
    """
    m = np.broadcast_to(side.exponent, center.shape)
    with np.errstate(all="ignore"):
        k = 1.0 / abs(m)
        end, start = (side.end - center) / sd, (zero - center) / sd
        root = np.sqrt(end * end + 4.0 * k)
        rising = np.where(end > 0.0, 0.5 * (end + root), 2.0 * k / (root - end))
        rising = np.where(m == 0.0, sd / side.growth, rising)
        valley_root = np.sqrt(end * end - 4.0 * k)
        has_valley = (end > 0.0) & (valley_root >= 0.0)
        valley = np.fmax(0.5 * (end + valley_root), np.minimum(start, end))  # NaN: no other branch
        before = 2.0 * k / (end + valley_root)
        bounded, summable = m < 0.0, k < 1.0
        limit = np.where(bounded, np.where(summable, end, np.where(has_valley, valley, end)), np.inf)
        peak = np.where(bounded, np.where(has_valley, before, 0.0), rising)
    known = ~np.isnan(m)
    peak = np.where(known & np.isfinite(peak), peak, 0.0)
    return _IntegrationRange(
        peak, np.where(known, limit, np.inf), bounded & ~summable & ~has_valley & ~np.isnan(end), bounded & summable
    )


def inverse_means(table: ColumnTable, z: FloatArray, sd: FloatArray, n_threads: int) -> FloatArray:
    """Return the means of back-transformed normal variables, conditional on the range of psi.

    Divergent integrals are cut at a valley, see `PowerFit.inverse_mean`.

    Parameters
    ----------
    table : ColumnTable
        The fitted columns.
    z, sd : (n, p) ndarray
        Means and standard deviations of the standardised transforms.
    n_threads : int
        Maximum number of threads.
    """
    rows = max(1, _AT_ONCE // max(1, z.shape[1]))
    parts = [slice(i, i + rows) for i in range(0, len(z), rows)]
    branches = _psi_branches(table)
    return np.concatenate(
        [np.empty((0, z.shape[1])), *(_inverse_mean_rows(table, branches, z[i], sd[i], n_threads) for i in parts)]
    )


def _inverse_mean_rows(
    table: ColumnTable,
    branches: tuple[_PsiBranch, _PsiBranch, FloatArray],
    z: FloatArray,
    sd: FloatArray,
    n_threads: int,
) -> FloatArray:
    """Compute `inverse_means` for one batch of rows.

    Parameters
    ----------
    table, z, sd, n_threads
        As in `inverse_means`.
    branches : tuple
        Result of `_psi_branches` for all columns.
    """
    point = (sd == 0.0) | np.isinf(z) | is_failed(table.status)
    place, z, sd = z, np.where(np.isinf(z), 0.0, z), np.where(point, 1.0, sd)
    upper, lower, zero = branches
    up, down = _integration_range(upper, z, sd, zero), _integration_range(lower, -z, sd, -zero)
    with np.errstate(invalid="ignore", over="ignore"):
        floor = np.where(table.mirrored | (table.lmbda <= 0.0), -down.limit, (upper.end - z) / sd)
        kink = (zero - z) / sd
        middle = np.clip(0.0, floor, up.limit)
        high = np.minimum(up.limit, np.maximum(np.minimum(up.peak, up.limit), middle) + _MARGIN)
        low = np.maximum(floor, np.minimum(np.maximum(-down.peak, floor), middle) - _MARGIN)
        inner = [middle, up.peak, -down.peak, np.where(np.isnan(kink), middle, kink)]
        points = np.sort([low, *(np.clip(t, low, high) for t in inner), high], axis=0)
    tails = (up.singular & (high == up.limit), down.singular & (low == -down.limit))
    total, mass = np.zeros_like(z), np.zeros_like(z)
    for start, stop in itertools.pairwise(points):
        wide = stop > start
        if not wide.any():
            continue
        part, weight = _integrate_piece(table, z, sd, start, stop, middle, n_threads)
        upmost, lowest = wide & tails[0] & (stop == high), wide & tails[1] & (start == low)
        if upmost.any():
            part[upmost] = _integrate_tail(table, upper, 1.0, z, sd, start, middle, weight, upmost)
        if lowest.any():
            part[lowest] = _integrate_tail(table, lower, -1.0, z, sd, stop, middle, weight, lowest)
        with np.errstate(invalid="ignore", over="ignore"):  # infinite parts of opposite sign give NaN
            total, mass = total + part, mass + weight
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(up.diverges & ~down.diverges, np.inf, total / mass)
        found = np.where(down.diverges & ~up.diverges, -np.inf, found)
    return np.where(point, invert(table, place, n_threads), found)


def _quadrature_rule(step: float, side: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the nodes of the tanh-sinh rule on [0, 1], as distances from 0 and from 1, and the weights.

    `step` is the step of the trapezoidal rule, and `side` the number of nodes on each side of the middle one.
    """
    u = step * np.arange(-side, side + 1)
    grown = np.pi * np.sinh(u)
    left, right = 1.0 / (1.0 + np.exp(-grown)), 1.0 / (1.0 + np.exp(grown))
    return left, right, step * np.pi * np.cosh(u) * left * right


def _integrate_piece(
    table: ColumnTable,
    z: FloatArray,
    sd: FloatArray,
    start: FloatArray,
    stop: FloatArray,
    middle: FloatArray,
    n_threads: int,
) -> tuple[FloatArray, FloatArray]:
    """Integrate value times density, and the density alone, over one piece of the range of integration.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    z, sd : (m, p) ndarray
        Means and standard deviations of the standardised transforms.
    start, stop : (m, p) ndarray
        Ends of the piece, in standard deviations from the mean.
    middle : (m, p) ndarray
        Point at which the density is scaled to 1, in standard deviations from the mean.
    n_threads : int
        Maximum number of threads.
    """
    left, right, weight = (a[:, np.newaxis, np.newaxis] for a in _quadrature_rule(*_PIECE))
    end = _end_of_domain(table)
    with np.errstate(invalid="ignore", over="ignore"):
        width = stop - start
        t = np.where(left < right, start + width * left, stop - width * right)
        density = weight * width * np.exp(-0.5 * (t - middle) * (t + middle))
        x = _inverse_in_range(table, (z + sd * t).reshape(-1, z.shape[1]), n_threads).reshape(t.shape)
        x = np.where(np.isnan(x) & np.isfinite(end), end, x)
        product = np.where(density > 0.0, x * density, 0.0)
    return _sum_nodes(product), _sum_nodes(density)


def _sum_nodes(nodes: FloatArray) -> FloatArray:
    """Sum over the first axis, in an order that does not depend on the size of the other axes."""
    return np.asarray(np.add.accumulate(nodes, axis=0)[-1])


def _integrate_tail(
    table: ColumnTable,
    side: _PsiBranch,
    sign: float,
    z: FloatArray,
    sd: FloatArray,
    near: FloatArray,
    middle: FloatArray,
    mass: FloatArray,
    chosen: BoolArray,
) -> FloatArray:
    """Integrate value times density over the outermost piece of the range, at whose outer end values are infinite.

    Near that end, values are proportional to ``distance**-k`` with k < 1. The substitution ``w = distance**(1 - k)``
    removes the singularity and leaves the density alone as the integrand.

    Parameters
    ----------
    table : ColumnTable
        The results of the fit.
    side : _PsiBranch
        The branch of psi that has the singular end.
    sign : float
        1 for the upper branch, -1 for the lower.
    z, sd : (m, p) ndarray
        Means and standard deviations of the standardised transforms.
    near : (m, p) ndarray
        Inner end of the piece, in standard deviations from the mean.
    middle : (m, p) ndarray
        Point at which the density is scaled to 1, in standard deviations from the mean.
    mass : (m, p) ndarray
        Integral of the density over the piece.
    chosen : (m, p) ndarray of bool
        The elements to integrate.

    Returns
    -------
    ndarray
        One integral for each element of `chosen`.
    """
    at = np.nonzero(chosen)[1]
    m, log_base, log_unit, offset, end = (
        np.asarray(a)[at] for a in (side.exponent, side.log_base, side.log_unit, side.offset, side.end)
    )
    spread, center = sd[chosen], sign * z[chosen]
    limit = (end - center) / spread
    width = limit - sign * near[chosen]
    rest = 1.0 + 1.0 / m
    longest = width**rest
    left, _, weight = (a[:, np.newaxis] for a in _quadrature_rule(*_TAIL))
    t = limit - (longest * left) ** (1.0 / rest)
    density = weight * np.exp(-0.5 * (t - middle[chosen]) * (t + middle[chosen]))
    with np.errstate(over="ignore"):
        total = _sum_nodes(density) * longest / rest * np.exp(log_base + (np.log(spread) - log_unit) / m)
    inside = mass[chosen]
    shift, divisor = table.center[at], table.divisor[at]
    return np.asarray(shift * inside + divisor * sign * (total - offset * inside))
