"""The types that signatures of entries are made of."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias, get_type_hints


class Array(NamedTuple):
    """A NumPy array; contiguous in C order, or of any strides."""

    dtype: str
    ndim: int
    contiguous: bool = True
    writable: bool = True


class Number(NamedTuple):
    """A number: "int64", "float64" or "bool"."""

    dtype: str


class Record(NamedTuple):
    """A NamedTuple of arrays, numbers and other records."""

    record: type
    fields: tuple[Any, ...]

    @property
    def in_memory(self) -> bool:
        """Whether jitted code is given its address: it has arrays, and fields with names."""
        return self.record is not tuple and not all(isinstance(each, Number) for each in self.fields)


def n_words(kind: Any) -> int:
    """The number of words of an argument: see `interface`."""
    return sum(map(n_words, kind.fields)) if isinstance(kind, Record) else 1


Kind: TypeAlias = Array | Number | Record

# The first two take any order and strides of native float64.
READ_MATRIX = Array("float64", 2, contiguous=False, writable=False)
WRITE_MATRIX = Array("float64", 2, contiguous=False)
READ_COLUMN = Array("float64", 1, writable=False)
READ_MATRIX32 = Array("float32", 2, contiguous=False, writable=False)
WRITE_MATRIX32 = Array("float32", 2, contiguous=False)
READ_COLUMN32 = Array("float32", 1, writable=False)
ROWS32 = Array("float32", 2)
ROWS = Array("float64", 2)
BLOCKS = Array("float64", 3)
COLUMN = Array("float64", 1)
COLUMN32 = Array("float32", 1)
COUNTS = Array("int64", 1)
COUNT_ROWS = Array("int64", 2)
INDEX32 = Array("int32", 1)
INTEGER = Number("int64")
REAL = Number("float64")
BOOLEAN = Number("bool")

_OF_NUMBERS = {int: INTEGER, float: REAL, bool: BOOLEAN}


def numbers_of(record: type) -> Record:
    """The type of a NamedTuple of numbers, as its annotations have them."""
    return named_tuple(record, *(_OF_NUMBERS[kind] for kind in get_type_hints(record).values()))


def named_tuple(record: type, *fields: Kind) -> Record:
    """The type of a NamedTuple whose fields have these types."""
    return Record(record, fields)
