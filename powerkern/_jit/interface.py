"""How Python hands arguments to the machine code of an entry: both sides, generated from its signature.

The arguments, records taken apart, become 64-bit words: numbers, and the addresses of NumPy's array objects, which
machine code reads as any extension module does (NumPy's C interface fixes where an array has its data, shape and
strides). One pointer is passed, and nothing of an array is looked at in Python: 16 arrays cost 2 us.

The machine code checks every array before it runs, and returns the number of the first that is not of its type.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from powerkern._jit.signatures import Array, Number, Record

#: The size of what all Python objects begin with; larger in builds without a global lock.
_HEADER = object.__basicsize__
#: Words before the arguments: the header's size in words, and the type that arrays must be of.
FIRST = 2
_FORMATS = {"int64": "q", "float64": "d", "bool": "q"}
_CONTIGUOUS, _ALIGNED, _WRITABLE = 0x1, 0x100, 0x400

#: The result of an entry that returns a number, written to an array of one.
_RESULTS = {"int": Array("int64", 1), "float": Array("float64", 1)}


class Interface(NamedTuple):
    """What an entry is called with."""

    signature: tuple[Any, ...]
    #: The array for what is returned, if anything is.
    result: Array | None

    @classmethod
    def of(cls, function: Callable[..., Any], signature: tuple[Any, ...]) -> Interface:
        """The interface of a function by its annotation of what it returns."""
        returned = function.__annotations__.get("return")
        result = _RESULTS.get(getattr(returned, "__name__", str(returned)))
        if result is None and returned not in (None, "None"):
            raise TypeError(f"an entry returns None, int or float, but {function.__qualname__} {returned}")
        return cls(signature, result)

    def caller(self, native: Callable[[bytes], int], name: str) -> Callable[..., Any]:
        """A Python function that calls machine code with arguments of this signature."""
        numbers = itertools.count()
        unpacked: list[str] = []
        words = [word for k, kind in enumerate(self.signature) for word in _words(kind, f"a{k}", unpacked, numbers)]
        arguments = ", ".join(f"a{k}" for k in range(len(self.signature)))
        lines = [f"def call({arguments}):", *unpacked]
        if self.result is not None:
            lines.append(f"result = empty(1, '{self.result.dtype}')")
            words.append(("q", "id(result)"))
        lines.append(f"try: w = pack(header, ndarray, {', '.join(text for _, text in words)})")
        lines.append("except error as cause: raise TypeError(f'{name}: {cause}') from None")
        lines.append("wrong = native(w, w, w, w, w)")
        lines.append(f"if wrong: return refused(wrong, [{arguments}])")
        lines.append("return None" if self.result is None else "return result.item(0)")
        packer = struct.Struct("=" + "q" * FIRST + "".join(code for code, _ in words))
        scope: dict[str, Any] = {
            "pack": packer.pack, "native": native, "header": _HEADER // 8, "ndarray": id(np.ndarray), "empty": np.empty,
            "name": name, "error": struct.error,
            "refused": lambda wrong, arguments: self._refuse(name, wrong - FIRST, arguments),
        }  # fmt: skip
        exec("\n    ".join(lines), scope)
        return scope["call"]  # type: ignore[no-any-return]

    def _refuse(self, name: str, word: int, arguments: list[Any]) -> None:
        given = list(_leaves(self.signature, arguments))[word]
        kind, value = given
        raise TypeError(f"{name} takes {kind}, got {_described(value)}")

    def callee(self, inner: str) -> str:
        """The source of the function that machine code is made of: it takes words apart and calls `inner`."""
        place = itertools.count(FIRST)
        checks: list[str] = []
        values = [_rebuilt(kind, f"k{k}", place, checks) for k, kind in enumerate(self.signature)]
        call = f"{inner}({', '.join(values)})"
        if self.result is not None:
            call = f"{_rebuilt(self.result, 'result', place, checks)}[0] = {call}"
        body = ["h = i[0]", *checks, call, "return 0"]
        return "def entry(i, r, p, q, n):\n    " + "\n    ".join(body)

    def records(self) -> dict[str, type]:
        """The NamedTuples of the signature by the names that they have in `callee`."""
        found: dict[str, type] = {}

        def look(kinds: tuple[Any, ...]) -> None:
            for kind in kinds:
                if isinstance(kind, Record):
                    found[kind.record.__name__] = kind.record
                    look(kind.fields)

        look(self.signature)
        found.pop("tuple", None)
        return found


def _words(kind: Any, name: str, unpacked: list[str], numbers: Iterator[int]) -> list[tuple[str, str]]:
    """The words of an argument as codes of `struct` and expressions; statements that take records apart are added."""
    if isinstance(kind, Array):
        return [("q", f"id({name})")]
    if isinstance(kind, Number):
        return [(_FORMATS[kind.dtype], name)]
    fields = [f"f{next(numbers)}" for _ in kind.fields]
    unpacked.append(f"{', '.join(fields)}, = {name}")
    return [
        word for each, field in zip(kind.fields, fields, strict=True) for word in _words(each, field, unpacked, numbers)
    ]


def _rebuilt(kind: Any, name: str, place: Iterator[int], checks: list[str]) -> str:
    """The expression that makes an argument of its words; statements that check them are added."""
    if isinstance(kind, Number):
        k = next(place)
        return {"int64": f"i[{k}]", "float64": f"r[{k}]", "bool": f"(i[{k}] != 0)"}[kind.dtype]
    if isinstance(kind, Record):
        fields = ", ".join(_rebuilt(each, f"{name}_{j}", place, checks) for j, each in enumerate(kind.fields))
        return f"({fields},)" if kind.record is tuple else f"{kind.record.__name__}({fields})"
    k = next(place)
    flags = _ALIGNED | (_CONTIGUOUS if kind.contiguous else 0) | (_WRITABLE if kind.writable else 0)
    # of this very type; its dimensions and flags; the number and the byte order of its type of values
    checks.append(f"if q[{k}][h - 1] != i[1]: return {k}")
    checks.append(f"if q[{k}][h + 1] & 0xFFFFFFFF != {kind.ndim} or q[{k}][h + 6] & {flags} != {flags}: return {k}")
    checks.append(f"d = n[{k}][h + 5][h + 1]")
    checks.append(f"if d >> 32 != {np.dtype(kind.dtype).num} or (d >> 16) & 255 == 62: return {k}")
    shape, strides = ("".join(f"n[{k}][h + {at}][{j}], " for j in range(kind.ndim)) for at in (2, 3))
    if kind.contiguous:
        return f"carray(p[{k}][h], ({shape}), {kind.dtype})"
    return f"as_strided(carray(p[{k}][h], (1,), {kind.dtype}), ({shape}), ({strides}))"


def _leaves(kinds: tuple[Any, ...], values: Any) -> Iterator[tuple[Any, Any]]:
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, Record):
            yield from _leaves(kind.fields, value)
        else:
            yield kind, value


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{type(value).__name__} of {value.dtype}, shape {value.shape}, strides {value.strides}"
    return type(value).__name__
