"""The transforms of a vector by one lambda an element, as `scipy.special` broadcasts them."""

from __future__ import annotations

from powerkern._jit import COLUMN, entry
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.boxcox import boxcox, inv_boxcox
from powerkern.kernels.transforms.yeojohnson import inv_yeojohnson, yeojohnson

_EACH = (COLUMN, COLUMN, COLUMN)


@entry(_EACH)
def boxcox_each(x: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """``out[i]`` = Box-Cox transform of ``x[i]`` by ``lmbda[i]``."""
    for i in range(x.size):
        out[i] = boxcox(x[i], lmbda[i])


@entry(_EACH)
def inv_boxcox_each(y: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """``out[i]`` = inverse Box-Cox transform of ``y[i]`` by ``lmbda[i]``."""
    for i in range(y.size):
        out[i] = inv_boxcox(y[i], lmbda[i])


@entry(_EACH)
def yeojohnson_each(x: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """``out[i]`` = Yeo-Johnson transform of ``x[i]`` by ``lmbda[i]``."""
    for i in range(x.size):
        out[i] = yeojohnson(x[i], lmbda[i])


@entry(_EACH)
def inv_yeojohnson_each(y: FloatArray, lmbda: FloatArray, out: FloatArray) -> None:
    """``out[i]`` = inverse Yeo-Johnson transform of ``y[i]`` by ``lmbda[i]``."""
    for i in range(y.size):
        out[i] = inv_yeojohnson(y[i], lmbda[i])
