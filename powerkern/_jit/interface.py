"""The calling convention of entries. An entry's signature determines the generated code of both caller and callee.

Arguments become 64-bit words: numbers, and the addresses of NumPy's array objects. Records are flattened. Machine code
reads the fields of array objects as any C extension does, since NumPy's C API fixes their offsets (`llvm_arguments`).
Python passes one pointer to these words and inspects no array, so that passing 16 arrays takes 2 us.

The machine code first checks the type of every array, and returns the position of the first array with a wrong type.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import numpy as np

#: Re-exported by `powerkern._jit`, for kernels and their tests.
__all__ = [
    "BLOCKS", "BOOLEAN", "COLUMN", "COLUMN32", "COUNTS", "COUNT_ROWS", "INDEX32", "INTEGER", "READ_COLUMN",
    "READ_COLUMN32", "READ_MATRIX", "READ_MATRIX32", "REAL", "ROWS", "ROWS32", "WRITE_MATRIX",
    "named_tuple", "number_record_type",
]  # fmt: skip

# --- types of arguments -------------------------------------------------------------------------------


class Array(NamedTuple):
    """The type of a NumPy array argument, C-contiguous or with any strides."""

    dtype: str
    ndim: int
    contiguous: bool = True
    writable: bool = True


class Number(NamedTuple):
    """The type of a number argument: "int64", "float64" or "bool"."""

    dtype: str


class Record(NamedTuple):
    """The type of a NamedTuple of arrays, numbers and other records."""

    record: type
    fields: tuple[Any, ...]

    @property
    def in_memory(self) -> bool:
        """Whether jitted code receives the address of the record rather than its values.

        This holds for NamedTuples unless all fields are numbers.
        """
        return self.record is not tuple and not all(isinstance(each, Number) for each in self.fields)


def n_words(kind: Any) -> int:
    """Return the number of 64-bit words that an argument of this kind occupies."""
    return sum(map(n_words, kind.fields)) if isinstance(kind, Record) else 1


Kind: TypeAlias = Array | Number | Record

# READ_MATRIX and WRITE_MATRIX accept native float64 with any memory order and strides.
READ_MATRIX = Array("float64", 2, contiguous=False, writable=False)
WRITE_MATRIX = Array("float64", 2, contiguous=False)
READ_COLUMN = Array("float64", 1, writable=False)
READ_MATRIX32 = Array("float32", 2, contiguous=False, writable=False)
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


def number_record_type(record: type) -> Record:
    """Return the argument type of a NamedTuple whose annotations are all numbers."""
    return named_tuple(record, *(_OF_NUMBERS[kind] for kind in get_type_hints(record).values()))


def named_tuple(record: type, *fields: Kind) -> Record:
    """Return the argument type of a NamedTuple whose fields have the given types."""
    return Record(record, fields)


# --- calls --------------------------------------------------------------------------------------------

#: Words in the header of a Python object (more in free-threaded builds); the last one points to its type.
HEADER = object.__basicsize__ // 8
#: Offsets, in words, within array objects: addresses of data, shape, strides and dtype; number of dimensions; flags.
#: NUMBER is the offset of type number and byte order within a dtype object.
DATA, NDIM, SHAPE, STRIDES, DTYPE, FLAGS = HEADER, HEADER + 1, HEADER + 2, HEADER + 3, HEADER + 5, HEADER + 6
NUMBER = HEADER + 1
#: The byte order character of a dtype that is not in native byte order.
_SWAPPED = ord(">" if sys.byteorder == "little" else "<")
_FORMATS = {"int64": "q", "float64": "d", "bool": "q"}
_CONTIGUOUS, _ALIGNED, _WRITABLE = 0x1, 0x100, 0x400

#: The array of one element that receives the result of an entry, by the name of its return type.
_RESULTS = {"int": Array("int64", 1), "float": Array("float64", 1)}


class Interface(NamedTuple):
    """The calling convention of an entry: the types of its arguments and of its result."""

    #: The types of the arguments. Each argument is passed as one or several 64-bit words.
    signature: tuple[Any, ...]
    #: The type of the array that receives the returned number; None for an entry that returns None.
    result: Array | None

    @classmethod
    def of(cls, function: Callable[..., Any], signature: tuple[Any, ...]) -> Interface:
        """Return the interface of a function with this signature; the result type follows from its annotation."""
        returned = function.__annotations__.get("return")
        result = _RESULTS.get(getattr(returned, "__name__", str(returned)))
        if result is None and returned not in (None, "None"):
            raise TypeError(f"an entry returns None, int or float, but {function.__qualname__} {returned}")
        return cls(signature, result)

    @property
    def _kinds(self) -> tuple[Any, ...]:
        return self.signature if self.result is None else (*self.signature, self.result)

    def _checks(self) -> list[int]:
        """Return the table for `wrong_array`: accepted array types, number of arrays, place and type of each array."""
        arrays = [(place, kind) for place, kind in enumerate(_leaves(self._kinds)) if isinstance(kind, Array)]
        first = 3 + len(arrays)
        types = id(np.ndarray), id(np.memmap)  # joblib passes large arrays to its processes as memmaps
        return [*types, len(arrays), *(first + place | _described(kind) << 16 for place, kind in arrays)]

    def caller(self, native: Callable[[bytes], int], name: str) -> Callable[..., Any]:
        """Generate the Python function that packs the arguments and calls the machine code.

        Parameters
        ----------
        native : callable
            The machine code. It takes the packed arguments, and returns 0 or the position of the first wrong array.
        name : str
            The name of the entry, for error messages.
        """
        checks, arguments = self._checks(), [f"a{k}" for k in range(len(self.signature))]
        words = [word for each in zip(self.signature, arguments, strict=True) for word in _words(*each)]
        result, returned = "", "None"
        if self.result is not None:
            words.append(("q", "id(result)"))
            result, returned = f"result = empty(1, '{self.result.dtype}')", "result.item(0)"
        fixed = struct.pack(f"={len(checks)}q", *checks)

        def refuse(word: int, given: tuple[Any, ...]) -> None:
            kind, value = list(_leaves(self.signature, given))[word - len(checks)]
            raise TypeError(f"{name} takes {kind}, got {_shown(value)}")

        def refuse_all(cause: Exception) -> None:
            raise TypeError(f"{name}: {cause}") from None

        source = f"""
def call({", ".join(arguments)}):
    {result}
    try: w = pack(checks, {", ".join(text for _, text in words)})
    except Exception as cause: refuse_all(cause)
    wrong = native(w, w, w)
    if wrong: refuse(wrong, ({"".join(f"{each}, " for each in arguments)}))
    return {returned}
"""
        packer = struct.Struct(f"={len(fixed)}s" + "".join(code for code, _ in words))
        scope: dict[str, Any] = {
            "pack": packer.pack, "native": native, "checks": fixed, "empty": np.empty,
            "refuse": refuse, "refuse_all": refuse_all,
        }  # fmt: skip
        exec(source, scope)
        return scope["call"]  # type: ignore[no-any-return]

    def callee(self) -> str:
        """Return the source of the function to compile, which reads the packed arguments and calls the entry.

        The source refers to the entry as `inner`.
        """
        place, values = len(self._checks()), []
        for k, kind in enumerate(self._kinds):
            values.append(f"read{k}(i, {place})")
            place += n_words(kind)
        call = f"inner({', '.join(values[: len(self.signature)])})"
        if self.result is not None:
            call = f"{values[-1]}[0] = {call}"
        lines = ["wrong = wrong_array(i, p, q)", "if wrong: return wrong", call, "return 0"]
        return "def entry(i, p, q):\n    " + "\n    ".join(lines)

    def kinds(self) -> dict[str, Any]:
        """Return the argument type that each reader function in the source from `callee` reads, by function name."""
        return {f"read{k}": kind for k, kind in enumerate(self._kinds)}


def wrong_array(words: Any, objects: Any, parts: Any) -> int:
    """Return the position of the first argument that is not an array of the expected type, or 0 if there is none.

    All three arguments are the address of the packed arguments of a call, as different pointer types.

    Parameters
    ----------
    words : pointer to int64
        Addresses of two accepted array types, the number of arrays, then position and expected type of each array.
    objects : pointer to pointers
        Addresses of the array objects.
    parts : pointer to pointers to pointers
        Addresses stored in the array objects; only the address of the dtype is used.
    """
    for k in range(3, 3 + words[2]):
        place, ndim, number, flags = words[k] & 0xFFFF, words[k] >> 16 & 0xFF, words[k] >> 24 & 0xFF, words[k] >> 32
        array = objects[place]
        kind = array[HEADER - 1]
        if kind != words[0] and kind != words[1]:
            return int(place)
        if array[NDIM] & 0xFFFFFFFF != ndim or array[FLAGS] & flags != flags:
            return int(place)
        dtype = parts[place][DTYPE][NUMBER]
        if dtype >> 32 != number or dtype >> 16 & 0xFF == _SWAPPED:
            return int(place)
    return 0


def _described(kind: Array) -> int:
    flags = _ALIGNED | (_CONTIGUOUS if kind.contiguous else 0) | (_WRITABLE if kind.writable else 0)
    return kind.ndim | np.dtype(kind.dtype).num << 8 | flags << 16


def _words(kind: Any, text: str) -> list[tuple[str, str]]:
    """Return the `struct` format and the Python expression of each word of an argument.

    `text` is the Python expression of the argument.
    """
    if isinstance(kind, Array):
        return [("q", f"id({text})")]
    if isinstance(kind, Number):
        return [(_FORMATS[kind.dtype], text)]
    return [word for k, each in enumerate(kind.fields) for word in _words(each, f"{text}[{k}]")]


def _leaves(kinds: tuple[Any, ...], values: Any = None) -> Iterator[Any]:
    """Yield the type of each array or number, with records flattened.

    If values are given, yield pairs of type and value.
    """
    for k, kind in enumerate(kinds):
        value = None if values is None else values[k]
        if isinstance(kind, Record):
            yield from _leaves(kind.fields, value)
        else:
            yield kind if values is None else (kind, value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} of {value.dtype}, shape {value.shape}, strides {value.strides}"
    return type(value).__name__
