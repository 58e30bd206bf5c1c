"""Means and variances that can be updated (Welford's formula) and merged (Chan, Golub and LeVeque's formula).

`Moments` describe any part of the data, such as one value, a block, or the rows of a client. `two_pass_moments`
computes them in two passes, with compensated summation over blocks of fixed length. `merge_tree` merges the moments of
many parts pairwise.

References
----------
.. [1] B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
   Technometrics 4, 1962, 419-420.
.. [2] T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
   variances", COMPSTAT 1982, 30-41.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import compiled_as, inlined, kernel, reduction, specialize_on_none, widest_vectors
from powerkern.kernels.elementary.constants import LARGEST
from powerkern.kernels.plain_arguments import as_real, as_vector, format_argument

#: Values that are summed without compensation: few enough for accuracy, and enough to hide the cost of compensation.
BLOCK = 256


class Moments(NamedTuple):
    """Weight (or count), mean, and sum of squared deviations from the mean; ``m2/weight`` is the variance."""

    weight: float
    mean: float
    m2: float


def as_moments(what: str, value: object) -> Moments:
    """Convert an argument, `Moments` or three numbers, to `Moments` of floats; `what` names it in errors."""
    if isinstance(value, Moments) and all(type(each) is float for each in value):
        return value
    numbers = as_vector(what, value)  # type: ignore[arg-type]  # anything else is refused
    if numbers.size != 3:
        raise ValueError(f"{what} must be Moments(weight, mean, m2), got {format_argument(value)}")
    return Moments(*numbers.tolist())


# --- one more value, one more part --------------------------------------------------------------------


@kernel
def _welford_update(state: Moments, x: float, w: float = 1.0) -> Moments:
    if w == 0.0:
        return state
    weight = state.weight + w
    delta = x - state.mean
    mean = state.mean + delta * (w / weight)
    return Moments(weight, mean, state.m2 + w * delta * (x - mean))


@compiled_as(_welford_update)
def welford_update(state: Moments, x: float, w: float = 1.0) -> Moments:
    r"""Return the moments after adding one more value.

    With W the weight so far, M_2 the sum of squared deviations and :math:`d = x - \bar x` [1]_,

    .. math:: \bar x \leftarrow \bar x + \frac{d w}{W + w}, \qquad M_2 \leftarrow M_2 + w d\, (x - \bar x)

    where the second formula uses the new mean.

    Parameters
    ----------
    state : Moments
        Moments so far; ``Moments(0.0, 0.0, 0.0)`` before the first value.
    x : float
        The value. NaN makes the moments NaN.
    w : float
        The weight of the value, w >= 0. A weight of 0 leaves the state unchanged, even if x is NaN.

    Returns
    -------
    Moments
        The updated moments. In the worst case the relative error of the variance is proportional to the number of
        updates and to the condition number of the variance, ``sqrt(1 + mean**2/variance)``. Merging the moments of
        blocks by `chan_merge` is more accurate.

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
    return _welford_update(as_moments("state", state), as_real("x", x), as_real("w", w))


@kernel
def _chan_merge(a: Moments, b: Moments) -> Moments:
    if b.weight == 0.0:
        return a
    if a.weight == 0.0:
        return b
    weight = a.weight + b.weight
    delta = b.mean - a.mean
    fraction = b.weight / weight
    return Moments(weight, a.mean + delta * fraction, a.m2 + b.m2 + delta * delta * (a.weight * fraction))


@compiled_as(_chan_merge)
def chan_merge(a: Moments, b: Moments) -> Moments:
    r"""Return the moments of the union of two disjoint parts of the data.

    With n the weight, M_2 the sum of squared deviations, :math:`d = \bar x_b - \bar x_a` and :math:`n = n_a + n_b`
    [1]_,

    .. math:: \bar x = \bar x_a + d\, n_b/n, \qquad M_2 = M_{2,a} + M_{2,b} + d^2\, n_a n_b/n

    Parameters
    ----------
    a, b : Moments
        Moments of the parts. A part of weight 0 leaves the other one unchanged, bit for bit.

    Returns
    -------
    Moments
        Moments of the union. Up to rounding they depend neither on the order nor on the grouping of merges. They are
        NaN if a moment of a part is NaN, and overflow if the squared difference of the means does.

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
    return _chan_merge(as_moments("a", a), as_moments("b", b))


@kernel
def merge_tree(parts: np.ndarray) -> Moments:
    """Merge the rows (weight, mean, m2) of `parts` pairwise: rows in pairs, then pairs of pairs, and so on.

    `parts` is overwritten. The order of the merges depends only on the number of rows.
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
def add(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add a term to a compensated sum; return the sum, and the sum of all rounding errors so far (Knuth's two-sum).

    `total` is the sum before the addition, and `lost` the sum of its rounding errors.
    """
    new = total + term
    kept = new - total
    return new, lost + ((total - (new - kept)) + (term - kept))


@kernel
def compensated_total(total: float, lost: float) -> float:
    """Return the value of a compensated sum: `total` + `lost`, or `total` alone if it is not finite.

    `lost` is the sum of the rounding errors; it is NaN for an infinite sum.
    """
    return total + lost if abs(total) <= LARGEST else total


@inlined
def weight_at(weight: np.ndarray | None, i: int) -> float:
    """Return the weight of value i, which is 1 if there are no weights."""
    return 1.0 if weight is None else weight[i]


@specialize_on_none()
def slice_weights(weight: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return ``weight[start:stop]``, or None if `weight` is None."""
    return weight[start:stop]


@reduction
def block_sum(x: np.ndarray, w: np.ndarray | None) -> float:
    """Return the sum of w x, or of x if `w` is None, without compensation."""
    widest_vectors()
    total = 0.0
    for i in range(x.size):
        total += weight_at(w, i) * x[i]
    return total


@reduction
def _block_deviations(x: np.ndarray, w: np.ndarray | None, center: float) -> tuple[float, float]:
    """Return the sums of w d and w d**2, with d = x - center; w is 1 if there are no weights."""
    widest_vectors()
    first = 0.0
    second = 0.0
    for i in range(x.size):
        d = x[i] - center
        wd = weight_at(w, i) * d
        first += wd
        second += wd * d
    return first, second


@kernel
def sum_of(x: np.ndarray, w: np.ndarray | None = None) -> float:
    """Return the sum of w x, or of x if `w` is None.

    Blocks of `BLOCK` values are summed as they are, and the sums of the blocks are added with compensation. Unless
    terms cancel, the relative error is about that of one rounding.
    """
    total, lost = 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        stop = start + BLOCK
        total, lost = add(total, lost, block_sum(x[start:stop], slice_weights(w, start, stop)))
    return compensated_total(total, lost)


@kernel
def two_pass_moments(x: np.ndarray, w: np.ndarray | None = None) -> Moments:
    """Return the moments of a vector, computed in two passes: the mean, then the deviations from it.

    Weights w must be >= 0. For an empty vector, or if all weights are 0, the result is (0, 0, 0). Relative errors of
    mean and variance are about 1e-15 (1e-14 with values of very unequal size), unless the mean is much smaller than the
    values. Values beyond 1e150 overflow m2. NaN and infinities make the moments NaN.
    """
    weight = float(x.size) if w is None else sum_of(w)
    if weight == 0.0:
        return Moments(0.0, 0.0, 0.0)
    center = sum_of(x, w) / weight
    first, first_lost, second, second_lost = 0.0, 0.0, 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        stop = start + BLOCK
        d, dd = _block_deviations(x[start:stop], slice_weights(w, start, stop), center)
        first, first_lost = add(first, first_lost, d)
        second, second_lost = add(second, second_lost, dd)
    first += first_lost
    shift = first / weight  # the center is the mean up to rounding
    m2 = second + second_lost - first * shift
    return Moments(weight, center + shift, 0.0 if m2 < 0.0 else m2)
