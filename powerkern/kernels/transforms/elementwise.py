"""The transforms of a vector, by one lambda or by one for each element, as `scipy.special` broadcasts them."""

from __future__ import annotations

from collections.abc import Callable

from powerkern._jit import COLUMN, REAL, entry
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.boxcox import boxcox, boxcox_loop, inv_boxcox, inv_boxcox_loop
from powerkern.kernels.transforms.yeojohnson import inv_yeojohnson, inv_yeojohnson_loop, yeojohnson, yeojohnson_loop


def _by_one(loop: Callable[[FloatArray, float, FloatArray], None], name: str) -> Callable[..., None]:
    """The entry that writes the transform of a vector by one lambda to `out`, which may be the vector."""

    def by_one(x: FloatArray, lmbda: float, out: FloatArray) -> None:
        loop(x, lmbda, out)

    by_one.__name__ = by_one.__qualname__ = name  # the name of its file
    return entry((COLUMN, REAL, COLUMN))(by_one)


def _by_each(transform: Callable[[float, float], float], name: str) -> Callable[..., None]:
    """The entry that writes the transform of each element by its own lambda to `out`."""

    def by_each(x: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
        for i in range(x.size):
            out[i] = transform(x[i], lmbda[i])

    by_each.__name__ = by_each.__qualname__ = name
    return entry((COLUMN, COLUMN, COLUMN))(by_each)


boxcox_array = _by_one(boxcox_loop, "boxcox_array")
inv_boxcox_array = _by_one(inv_boxcox_loop, "inv_boxcox_array")
yeojohnson_array = _by_one(yeojohnson_loop, "yeojohnson_array")
inv_yeojohnson_array = _by_one(inv_yeojohnson_loop, "inv_yeojohnson_array")

boxcox_each = _by_each(boxcox, "boxcox_each")
inv_boxcox_each = _by_each(inv_boxcox, "inv_boxcox_each")
yeojohnson_each = _by_each(yeojohnson, "yeojohnson_each")
inv_yeojohnson_each = _by_each(inv_yeojohnson, "inv_yeojohnson_each")
