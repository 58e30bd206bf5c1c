"""The types that signatures of entries are made of."""

from __future__ import annotations

from typing import Any, get_type_hints

from numba import types

# The first two take any order and strides of native float64.
READ_MATRIX = types.Array(types.float64, 2, "A", readonly=True)
WRITE_MATRIX = types.Array(types.float64, 2, "A")
READ_COLUMN = types.Array(types.float64, 1, "C", readonly=True)
READ_MATRIX32 = types.Array(types.float32, 2, "A", readonly=True)
WRITE_MATRIX32 = types.Array(types.float32, 2, "A")
READ_COLUMN32 = types.Array(types.float32, 1, "C", readonly=True)
ROWS32 = types.float32[:, ::1]
ROWS = types.float64[:, ::1]
BLOCKS = types.float64[:, :, ::1]
COLUMN = types.float64[::1]
COLUMN32 = types.float32[::1]
COUNTS = types.int64[::1]
INTEGER = types.int64
REAL = types.float64
BOOLEAN = types.boolean


_OF_NUMBERS = {int: INTEGER, float: REAL, bool: BOOLEAN}


def numbers_of(record: type) -> Any:
    """The type of a NamedTuple of numbers, as its annotations have them."""
    return named_tuple(record, *(_OF_NUMBERS[kind] for kind in get_type_hints(record).values()))


def named_tuple(record: type, *fields: Any) -> Any:
    """The type of a NamedTuple whose fields have these types."""
    return types.BaseTuple.from_types(fields, record)  # of its own where all fields are of one type
