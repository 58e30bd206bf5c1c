"""Scratch space of the kernels that fit one column: declared, made and handed to entries in one place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from powerkern._jit import COLUMN, COLUMN32, COUNTS, ROWS, named_tuple
from powerkern._typing import Float32Array, FloatArray, IntArray
from powerkern.kernels.likelihood.score import BLOCK, N_MOMENTS, Scratch

#: Most values of the sample that a search starts from.
SAMPLE = 4096
#: Values of a column that a thread of a team takes at a time; two arrays of float32 of them fit the L1 cache.
CHUNK = 2048

#: Counters of `Team.counts`, in cache lines of their own: chunks that nobody has taken, those that are done, whether a
#: value was not as expected, whether there is nothing more to come. Then the bits of the ends of each chunk's values.
LEFT, DONE, STOPPED, OVER, ENDS = range(0, 80, 16)
#: The first row of `Team.sums`, what is to be done: whether sums of powers in float64 are wanted or logs, with float32
#: sums unless the exponent is NaN; of how many values of which column; the factor of weights in float32; whether many
#: values may be missing; which logs.
OF_POWERS, EXPONENT, SIZE, INDEX, SCALE, GAPS, SIGN_OF_LOGS, KNOWN, OFFSET, REF, LOG_REF = range(11)
#: Each further row, what is found of a chunk: N_MOMENTS sums of powers, the sums of logs.
LOG_TOTAL, LOG_SQUARES, LOG_WEIGHT, LOG_WEIGHT_SQUARES = range(N_MOMENTS, N_MOMENTS + 4)


class Team(NamedTuple):
    """What threads that work on one column have in common."""

    counts: IntArray
    sums: FloatArray


class Work(NamedTuple):
    """Scratch for one column: five arrays of its length and some small ones."""

    packed: FloatArray
    spare: FloatArray
    split: FloatArray
    weight: FloatArray
    weight_split: FloatArray
    d32: Float32Array
    weight32: Float32Array
    scratch: Scratch
    team: Team


#: The types of `Scratch` and `Work`, for the signatures of entries.
SCRATCH = named_tuple(Scratch, ROWS, ROWS)
_TEAM = named_tuple(Team, COUNTS, ROWS)
WORK = named_tuple(Work, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN32, COLUMN32, SCRATCH, _TEAM)


def new_scratch() -> Scratch:
    """The arrays of `Scratch`."""
    return Scratch(np.empty((4, BLOCK)), np.empty((3, N_MOMENTS)))


def new_work(n: int) -> Work:
    """The arrays of `Work` for columns of `n` values."""
    packed, spare, split, weight, weight_split = np.empty((5, n))  # one block, which malloc may have kept
    return Work(packed, spare, split, weight, weight_split, *_in_float32(), new_scratch(), _new_team(n))


def _in_float32() -> tuple[Float32Array, Float32Array]:
    return np.empty(SAMPLE, np.float32), np.empty(SAMPLE, np.float32)


def _new_team(n: int) -> Team:
    n_chunks = -(-n // CHUNK)
    return Team(np.zeros(ENDS + 2 * n_chunks, np.int64), np.zeros((1 + n_chunks, LOG_WEIGHT_SQUARES + 1)))


def for_assistant(work: Work) -> Work:
    """The scratch of another thread of a team: what both write is its own."""
    d32, weight32 = _in_float32()
    return work._replace(d32=d32, weight32=weight32)
