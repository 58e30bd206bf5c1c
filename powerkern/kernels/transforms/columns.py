"""Transform one column with the parameters of its fit.

Values between the column's bounds of ordinary values (`kernels.transforms.branch`) are transformed in blocks, without
range checks. All others are transformed one by one, with range checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from powerkern._jit import LANES, first_lanes, in_all_lanes, inlined, kernel, load, select, store
from powerkern._typing import FloatArray
from powerkern.kernels.results import INTERCEPT, LMBDA, LOG_FACTOR, REF, SLOPE
from powerkern.kernels.transforms import boxcox, yeojohnson, yeojohnson_standardized
from powerkern.kernels.transforms.branch import BLOCK, HIGH, LOW, N_SPARE, Fit
from powerkern.kernels.transforms.family import BOX_COX, INVERSES, YEO_JOHNSON, domain_lower_bound

#: The transform for each family and direction.
TRANSFORMS = {
    (family, direction): transform
    for family, transforms in (
        (BOX_COX, boxcox.TRANSFORMS),
        (YEO_JOHNSON, yeojohnson.TRANSFORMS + yeojohnson_standardized.TRANSFORMS),
    )
    for direction, transform in enumerate(transforms)
}

#: The fields of a row of results that are the parameters of a `Fit`, in order.
FIT_FIELDS = LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR

#: Row stride of the constants, chosen so that no two rows are a multiple of 4 KB apart (4K aliasing of loads and
#: stores).
WIDTH = 192

# rows of the scratch of a column: its constants, scratch of a block, then values that are not ordinary and their
# indices
_SPARE = max(transform.n_constants for transform in TRANSFORMS.values())
_EXTREME, _PLACE, N_ROOM = range(_SPARE + N_SPARE, _SPARE + N_SPARE + 3)

#: Writes the images of a column to out, which may be x, and returns the number of values without an image. Arguments:
#: (x, c, j, fit, out, room). The constants of the column are in c[0, :, j]; `room` is scratch, (N_ROOM, WIDTH).
ColumnTransform = Callable[[FloatArray, FloatArray, int, Fit, FloatArray, FloatArray], int]


def column_transform(family: int, direction: int) -> ColumnTransform:
    """Return the kernel (`ColumnTransform`) that transforms a column, given the codes of a family and a direction."""
    transform = TRANSFORMS[family, direction]
    image, transform_block = transform.image, transform.block
    is_inverse, end = direction in INVERSES, domain_lower_bound(family)

    def column(x: FloatArray, c: FloatArray, j: int, fit: Fit, out: FloatArray, room: FloatArray) -> int:
        n_failures, spare, extreme, place = 0, room[_SPARE:], room[_EXTREME], room[_PLACE]
        low, high = c[0, LOW, j], c[0, HIGH, j]
        broadcast_constants(c, j * BLOCK, min(x.size, BLOCK), BLOCK, room)
        for start in range(0, x.size, BLOCK):
            source, target = x[start : start + BLOCK], out[start : start + BLOCK]
            n_extreme = _count_extreme(source, low, high)
            if n_extreme > 0:
                n_whole = _take_extreme(source, low, high, extreme, place)
                for i in range(n_whole):
                    extreme[i] = image(extreme[i], fit)
                if is_inverse:
                    n_failures += _count_not_finite(extreme[:n_extreme])
                else:
                    n_failures += _count_without_image(source, place[:n_extreme], extreme, end)
            if n_extreme < source.size:
                transform_block(source, room, target, spare)
            for i in range(n_extreme):
                target[int(place[i])] = extreme[i]
        return n_failures

    return kernel(column)


@kernel
def count_outside(x: FloatArray, end: float) -> int:
    """Return the number of values that are inf, or not greater than the lower bound `end` of the domain; ignore NaN."""
    n = 0
    for i in range(x.size):
        n += (x[i] <= end) | (x[i] == math.inf)
    return n


@kernel
def count_infinite(x: FloatArray) -> int:
    """Return the number of infinite values; ignore NaN."""
    n = 0
    for i in range(x.size):
        n += abs(x[i]) == math.inf
    return n


@kernel
def _count_without_image(x: FloatArray, place: FloatArray, image: FloatArray, end: float) -> int:
    """Count the values that are outside the domain, or whose image overflows, among the values at given positions.

    Parameters
    ----------
    x : (n,)
        The values.
    place : (k,)
        Indices of the values to consider.
    image : (k or more,)
        The images of these values.
    end : float
        The lower bound of the domain, which is not part of it.
    """
    n = 0
    for i in range(place.size):
        value = x[int(place[i])]
        n += (value <= end) | (value == math.inf) | (abs(image[i]) == math.inf)
    return n


@kernel
def _count_not_finite(x: FloatArray) -> int:
    """Return the number of infinite and NaN values."""
    n = 0
    for i in range(x.size):
        n += not (abs(x[i]) < math.inf)
    return n


@inlined
def broadcast_constants(c: FloatArray, first: int, n: int, height: int, column: FloatArray) -> None:
    """Write, for each of n values, the constants of its column.

    The columns have equal heights and are stored one after the other. Whole vectors are stored, so constants of up to
    seven more values are written.

    Parameters
    ----------
    c : (n_blocks, n_constants, WIDTH)
        The constants of all columns.
    first : int
        Index of the first value, counted through all columns.
    n : int
        Number of values.
    height : int
        Number of values in a column.
    column : (n_constants, WIDTH)
        Receives the constants for each value.
    """
    j, end = first // height, height - first % height
    for i in range(0, n, LANES):
        if end == i:
            j, end = j + 1, end + height
        for k in range(c.shape[1]):
            store(column, (k, i), in_all_lanes(c[j // BLOCK, k, j % BLOCK]))
        while end < i + LANES:  # the next column begins at `end`, inside this vector
            j, before = j + 1, first_lanes(end - i)
            for k in range(c.shape[1]):
                next_one = in_all_lanes(c[j // BLOCK, k, j % BLOCK])
                store(column, (k, i), select(before, load(column, (k, i)), next_one))
            end += height


@kernel
def _count_extreme(x: FloatArray, low: float, high: float) -> int:
    """Return the number of values outside [low, high]; ignore NaN."""
    n = 0
    for i in range(x.size):
        n += (x[i] < low) | (x[i] > high)
    return n


@kernel
def _take_extreme(x: FloatArray, low: float, high: float, extreme: FloatArray, place: FloatArray) -> int:
    """Copy the values outside [low, high], padded with ones to whole vectors; return their number, padding included.

    Parameters
    ----------
    x : (n,)
        The values.
    low : float
        Lower bound.
    high : float
        Upper bound.
    extreme : (>= n,)
        Receives the values outside the bounds.
    place : (>= n,)
        Receives the indices of these values in x.
    """
    n = 0
    for i in range(x.size):
        extreme[n], place[n] = x[i], float(i)
        n += (x[i] < low) | (x[i] > high)
    whole = -(-n // LANES) * LANES
    for i in range(n, whole):
        extreme[i] = 1.0
    return whole
