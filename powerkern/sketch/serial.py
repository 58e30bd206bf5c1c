"""Ranges, grids and sketches as bytes: a description, arrays, and a checksum of both."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.shift import given_shift
from powerkern._input.alignment import labels_from_record, labels_to_record
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import FAMILIES

#: Version of the bytes that `Range`, `Grid` and `Sketch` are written as.
BYTES_VERSION = 2

#: Kinds of summaries, as messages call them; their numbers in the bytes count from 1.
RANGE, GRID, SKETCH = _KINDS = ("a range", "a grid", "a sketch")

_MAGIC = b"PKSK"
_HEAD = struct.Struct("<4sHBI")
_CHECK = struct.Struct("<I")


def pack(kind: str, description: dict[str, Any], *arrays: NDArray[Any]) -> bytes:
    """Magic, version, kind and length; a description as JSON; arrays, little-endian; a checksum of all that."""
    names = labels_to_record(description["column_names"])
    text = json.dumps({**description, "column_names": names}).encode()
    parts = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays]
    body = b"".join([_HEAD.pack(_MAGIC, BYTES_VERSION, 1 + _KINDS.index(kind), len(text)), text, *parts])
    return body + _CHECK.pack(zlib.crc32(body))


def unpack(data: bytes, kind: str) -> tuple[dict[str, Any], bytes]:
    """The description, checked, and the bytes of the arrays."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{kind} is read from bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEAD.size + _CHECK.size or not data.startswith(_MAGIC):
        raise ValueError(f"not {kind}: the bytes were not written by to_bytes")
    _, version, found, length = _HEAD.unpack_from(data)
    if version != BYTES_VERSION:
        raise ValueError(f"{kind} in version {version}; this powerkern reads version {BYTES_VERSION}")
    if zlib.crc32(data[: -_CHECK.size]) != _CHECK.unpack(data[-_CHECK.size :])[0]:
        raise damaged(kind)
    if found != 1 + _KINDS.index(kind):
        other = _KINDS[found - 1] if 1 <= found <= len(_KINDS) else "something else"
        raise ValueError(f"not {kind}: the bytes hold {other}")
    try:
        head = json.loads(data[_HEAD.size : _HEAD.size + length])
        names = head["column_names"] = labels_from_record(head["column_names"])
        sound = (
            head["family"] in FAMILIES
            and type(head["columns"]) is int  # and not bool
            and head["columns"] > 0
            and isinstance(head["vector"], bool)
            and shift_of(head).shape == (head["columns"],)
            and (names is None or len(names) == head["columns"])
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        sound = False
    if not sound:
        raise damaged(kind)
    return head, data[_HEAD.size + length : -_CHECK.size]


def shift_of(head: dict[str, Any]) -> FloatArray:
    """The shift in a description, or zeros; ValueError if no fit can have it."""
    p = head["columns"]
    return given_shift(head["shift"], head["family"], p) if "shift" in head else np.zeros(p)


def array_of(payload: bytes, shape: tuple[int, int], dtype: str, kind: str) -> NDArray[Any]:
    """The array in some bytes; ValueError if they are too few or too many."""
    if len(payload) != 8 * shape[0] * shape[1]:
        raise damaged(kind)
    return np.frombuffer(payload, dtype).reshape(shape).astype(dtype[1:])


def damaged(kind: str) -> ValueError:
    """The error of bytes that cannot be read."""
    return ValueError(f"not {kind}: the bytes are damaged or truncated")
