"""Scratch space for kernels that fit one column: its types, and functions that allocate it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, COLUMN32, ROWS, named_tuple
from powerkern._typing import Float32Array, FloatArray
from powerkern.kernels.likelihood.score import BLOCK, Scratch
from powerkern.kernels.likelihood.score_formulas import N_MOMENTS

#: Largest size of the sample from which a search starts.
SAMPLE = 4096
#: Number of values in a chunk; two float32 arrays of this length fit the first-level cache.
CHUNK = 2048


class Work(NamedTuple):
    """Scratch for one column.

    `packed`, `spare`, `split`, `weight` and `weight_split` are as long as the column; `d32` and `weight32` have SAMPLE
    float32 values.
    """

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
    """Allocate a `Scratch` for `kernels.likelihood.score`."""
    return Scratch(np.empty((4, BLOCK)), np.empty((3, N_MOMENTS)))


#: Number of arrays in `Work` that are as long as a column.
N_LONG = 5


def new_work(n: int, memory: FloatArray | None = None) -> Work:
    """Allocate a `Work` for columns of `n` values; its long arrays are views of `memory`, (N_LONG n,), if given."""
    memory = np.empty(N_LONG * n) if memory is None else memory
    packed, spare, split, weight, weight_split = memory.reshape(N_LONG, n)
    d32, weight32 = np.empty(SAMPLE, np.float32), np.empty(SAMPLE, np.float32)
    return Work(packed, spare, split, weight, weight_split, d32, weight32, new_scratch())
