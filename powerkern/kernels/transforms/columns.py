"""The transform of one column by its fit: in blocks of ordinary values, and value by value where one is not."""

from __future__ import annotations

import math
from collections.abc import Callable

from powerkern._jit import LANES, in_all_lanes, inlined, kernel, store, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.transforms import boxcox, yeojohnson, yeojohnson_standardized
from powerkern.kernels.transforms.branch import (
    BLOCK,
    HIGH,
    LOW,
    N_SPARE,
    Fit,
)
from powerkern.kernels.transforms.family import BOX_COX, INVERSES, YEO_JOHNSON, lowest

#: The transforms by family and direction.
TRANSFORMS = {
    (family, direction): transform
    for family, transforms in (
        (BOX_COX, boxcox.TRANSFORMS),
        (YEO_JOHNSON, yeojohnson.TRANSFORMS + yeojohnson_standardized.TRANSFORMS),
    )
    for direction, transform in enumerate(transforms)
}

#: Numbers from one constant of a block to the next. A load waits for stores a little before it, give or take multiples
#: of 4 KB; no two rows lie so.
WIDTH = 192

# rows of scratch space of a column: its constants, scratch space of a block, and values that are not ordinary
_SPARE = 12
_EXTREME, _PLACE, N_ROOM = _SPARE + N_SPARE, _SPARE + N_SPARE + 1, _SPARE + N_SPARE + 2

#: Writes the image of a column to out, which may be x: (x, c, j, fit, out, room), with the fit's constants in c[:, j].
#: Returns the number of values without an image.
ColumnTransform = Callable[[FloatArray, FloatArray, int, Fit, FloatArray, FloatArray], int]


def column_transform(family: int, direction: int) -> ColumnTransform:
    """The kernel that transforms a column, in (N_ROOM, WIDTH) of scratch space."""
    transform = TRANSFORMS[family, direction]
    image, transform_block = transform.image, transform.block
    is_inverse, end = direction in INVERSES, lowest(family)

    def column(x: FloatArray, c: FloatArray, j: int, fit: Fit, out: FloatArray, room: FloatArray) -> int:
        widest_vectors()
        n_failures = 0
        low, high, spare = c[LOW, j], c[HIGH, j], room[_SPARE:]
        extreme, place = room[_EXTREME], room[_PLACE]
        _spread(c, j, min(x.size, BLOCK), room)
        for start in range(0, x.size, BLOCK):
            source, target = x[start : start + BLOCK], out[start : start + BLOCK]
            n_extreme = _count_extreme(source, low, high)
            if n_extreme > 0:
                n_whole = _take_extreme(source, low, high, n_extreme, extreme, place)
                if not is_inverse:
                    n_failures += count_outside(extreme[:n_extreme], end)
                for i in range(n_whole):
                    extreme[i] = image(extreme[i], fit)
                if is_inverse:
                    n_failures += _count_not_finite(extreme[:n_extreme])
            if n_extreme < source.size:
                transform_block(source, room, target, spare)
            if n_extreme > 0:
                _put_extreme(extreme, place, n_extreme, target)
        return n_failures

    return kernel(column)


@kernel
def count_outside(x: FloatArray, end: float) -> int:
    """The number of infinite values, and of values not above the `end` of the domain; NaN is neither."""
    widest_vectors()
    n = 0
    for i in range(x.size):
        n += (x[i] <= end) | (x[i] == math.inf)
    return n


@kernel
def _count_not_finite(x: FloatArray) -> int:
    n = 0
    for i in range(x.size):
        n += not (abs(x[i]) < math.inf)
    return n


@inlined
def _spread(c: FloatArray, j: int, n: int, room: FloatArray) -> None:
    """Repeat the constants of column j for n values; whole vectors are stored."""
    for row in range(c.shape[0]):
        constant = in_all_lanes(c[row, j])
        for i in range(0, n, LANES):
            store(room, (row, i), constant)


@kernel
def _count_extreme(x: FloatArray, low: float, high: float) -> int:
    """The number of values that are not ordinary; NaN is."""
    widest_vectors()
    n = 0
    for i in range(x.size):
        n += (x[i] < low) | (x[i] > high)
    return n


@kernel
def _take_extreme(
    x: FloatArray, low: float, high: float, n_extreme: int, extreme: FloatArray, place: FloatArray
) -> int:
    """Write values that are not ordinary, and their places; returns their number, filled up to whole vectors."""
    widest_vectors()
    if n_extreme == x.size:
        for i in range(x.size):
            extreme[i] = x[i]
    else:
        n = 0
        for i in range(x.size):
            extreme[n], place[n] = x[i], float(i)
            n += (x[i] < low) | (x[i] > high)
    whole = -(-n_extreme // LANES) * LANES
    for i in range(n_extreme, whole):
        extreme[i] = 1.0
    return whole


@kernel
def _put_extreme(extreme: FloatArray, place: FloatArray, n_extreme: int, out: FloatArray) -> None:
    """Write the images of values that are not ordinary to their places."""
    widest_vectors()
    if n_extreme == out.size:
        for i in range(out.size):
            out[i] = extreme[i]
    else:
        for i in range(n_extreme):
            out[int(place[i])] = extreme[i]
