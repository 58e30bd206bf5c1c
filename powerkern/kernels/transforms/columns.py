"""The transform of one column by its fit: in blocks of ordinary values, and value by value where one is not."""

from __future__ import annotations

from collections.abc import Callable

from powerkern._jit import LANES, allocated, in_all_lanes, inlined, kernel, release, store, widest_vectors
from powerkern._typing import FloatArray
from powerkern.kernels.transforms import boxcox, yeojohnson, yeojohnson_standardized
from powerkern.kernels.transforms.branch import (
    BLOCK,
    F_INTERCEPT,
    F_LMBDA,
    F_LOG_FACTOR,
    F_REF,
    F_SLOPE,
    HIGH,
    LOW,
    N_SPARE,
    Fit,
    Transform,
)
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

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

# rows of scratch space, after those of the transform of a block
_IMAGE, _EXTREME = N_SPARE, N_SPARE + 1

#: Writes the image of a column by the fit in fields[:, 0]: (x, fields, out), where out may be x.
ColumnTransform = Callable[[FloatArray, FloatArray, FloatArray], None]


def column_transform(transform: Transform) -> ColumnTransform:
    """The kernel that transforms a column."""
    _, image, prepare, transform_block, n_constants = transform

    def column(x: FloatArray, fields: FloatArray, out: FloatArray) -> None:
        widest_vectors()
        room = allocated((2, n_constants, WIDTH))  # no transform has fewer constants than rows of scratch space
        c, spare = room[0], room[1]
        prepare(fields, c, 0)
        low, high = c[LOW, 0], c[HIGH, 0]
        _spread(c, min(x.size, BLOCK))
        fit = Fit(
            fields[F_LMBDA, 0], fields[F_REF, 0], fields[F_SLOPE, 0], fields[F_INTERCEPT, 0], fields[F_LOG_FACTOR, 0]
        )
        for start in range(0, x.size, BLOCK):
            source, target = x[start : start + BLOCK], out[start : start + BLOCK]
            n_extreme = _mark_extreme(source, low, high, spare[_EXTREME])
            if n_extreme > 0:
                images = spare[_IMAGE]
                for i in range(source.size):
                    images[i] = image(source[i], fit)
            if n_extreme < source.size:
                transform_block(source, c, target, spare)
            if n_extreme > 0:
                _put_extreme(spare[_IMAGE], spare[_EXTREME], target)
        release(room)

    return kernel(column)


@inlined
def _spread(c: FloatArray, n: int) -> None:
    """Repeat the constants in column 0 for n values; whole vectors are stored."""
    for row in range(c.shape[0]):
        constant = in_all_lanes(c[row, 0])
        for i in range(0, n, LANES):
            store(c, (row, i), constant)


@kernel
def _mark_extreme(x: FloatArray, low: float, high: float, extreme: FloatArray) -> int:
    """extreme = 1 for values that are not ordinary, else 0, also for NaN; returns how many there are."""
    widest_vectors()
    n = 0
    for i in range(x.size):
        is_extreme = (x[i] < low) | (x[i] > high)
        extreme[i] = 1.0 if is_extreme else 0.0
        n += is_extreme
    return n


@kernel
def _put_extreme(images: FloatArray, extreme: FloatArray, out: FloatArray) -> None:
    """Write the images of values that are not ordinary."""
    widest_vectors()
    for i in range(out.size):
        out[i] = images[i] if extreme[i] > 0.0 else out[i]
