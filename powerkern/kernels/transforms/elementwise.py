"""Transform a vector with one lambda, or with a lambda for each element, as the functions of `scipy.special` do."""

from __future__ import annotations

from collections.abc import Callable

from powerkern._jit import COLUMN, REAL, allocated, entry, release
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.branch import Fit
from powerkern.kernels.transforms.columns import N_ROOM, TRANSFORMS, WIDTH, column_transform
from powerkern.kernels.transforms.family import BOX_COX, FORWARD, INVERSE, YEO_JOHNSON


def _by_one(family: int, direction: int) -> Callable[..., None]:
    """Make the entry that transforms a vector with one lambda; the output may be the vector itself."""
    transform = TRANSFORMS[family, direction]
    column, prepare, n_constants = column_transform(family, direction), transform.prepare, transform.n_constants

    def by_one(x: FloatArray, lmbda: float, out: FloatArray) -> None:
        c, room, fit = allocated((1, n_constants, 1)), allocated((N_ROOM, WIDTH)), Fit(lmbda, 0.0, 1.0, 0.0, 0.0)
        prepare(fit, c[0], 0)
        column(x, c, 0, fit, out, room)
        release(c)
        release(room)

    by_one.__name__ = by_one.__qualname__ = f"{transform.name}_array"  # the cache identifies code by this name
    return entry((COLUMN, REAL, COLUMN))(by_one)


def _by_each(family: int, direction: int) -> Callable[..., None]:
    """Make the entry that transforms each element of a vector with its own lambda."""
    transform = TRANSFORMS[family, direction]
    image = transform.image

    def by_each(x: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
        for i in range(x.size):
            out[i] = image(x[i], Fit(lmbda[i], 0.0, 1.0, 0.0, 0.0))

    by_each.__name__ = by_each.__qualname__ = f"{transform.name}_each"
    return entry((COLUMN, COLUMN, COLUMN))(by_each)


boxcox_array, boxcox_each = _by_one(BOX_COX, FORWARD), _by_each(BOX_COX, FORWARD)
inv_boxcox_array, inv_boxcox_each = _by_one(BOX_COX, INVERSE), _by_each(BOX_COX, INVERSE)
yeojohnson_array, yeojohnson_each = _by_one(YEO_JOHNSON, FORWARD), _by_each(YEO_JOHNSON, FORWARD)
inv_yeojohnson_array, inv_yeojohnson_each = _by_one(YEO_JOHNSON, INVERSE), _by_each(YEO_JOHNSON, INVERSE)
