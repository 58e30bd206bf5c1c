"""Scratch space of the kernels that fit one column: declared, made and handed to entries in one place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, COLUMN32, ROWS, borrowed, kernel, named_tuple
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.likelihood import BLOCK, N_MOMENTS, Scratch

#: Most values of the sample that a search starts from.
SAMPLE = 4096


class Work(NamedTuple):
    """Scratch for one column: five arrays of its length and four small ones."""

    packed: FloatArray
    spare: FloatArray
    split: FloatArray
    weight: FloatArray
    weight_split: FloatArray
    d32: Float32Array
    weight32: Float32Array
    scratch: Scratch


#: The types of `Scratch` and `Work`, for the signatures of entries.
SCRATCH = named_tuple(Scratch, ROWS, ROWS)
WORK = named_tuple(Work, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN32, COLUMN32, SCRATCH)


def new_scratch() -> Scratch:
    """The arrays of `Scratch`."""
    return Scratch(np.empty((4, BLOCK)), np.empty((3, N_MOMENTS)))


def new_work(n: int) -> Work:
    """The arrays of `Work` for columns of `n` values."""
    packed, spare, split, weight, weight_split = (np.empty(n) for _ in range(5))
    d32, weight32 = (np.empty(SAMPLE, np.float32) for _ in range(2))
    return Work(packed, spare, split, weight, weight_split, d32, weight32, new_scratch())


@kernel
def borrowed_work(work: Work) -> Work:
    """The same arrays, parts of which cost no atomic operations."""
    return Work(
        borrowed(work.packed),
        borrowed(work.spare),
        borrowed(work.split),
        borrowed(work.weight),
        borrowed(work.weight_split),
        borrowed(work.d32),
        borrowed(work.weight32),
        Scratch(borrowed(work.scratch.y), borrowed(work.scratch.moments)),
    )
