"""Messages as bytes: versioned, length-checked, checksummed, and safe to parse (JSON and plain numbers, no pickle).

Layout, little-endian::

    "PKFD" | version u16 | kind u16 | header length u32 | body length u64 | BLAKE2b-128 of all else | header | body

The header is JSON; the body is one array of float64, of 32-bit digits or of bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Version of the layout and of what messages mean.
VERSION = 2

#: What a message is sent by, where it is the server that sends it.
SERVER = "server"

_MAGIC = b"PKFD"
_HEAD = struct.Struct("<4sHHIQ")
_DIGEST = 16
_START = _HEAD.size + _DIGEST
_DTYPES: dict[str, np.dtype[Any]] = {"float": np.dtype("<f8"), "digit": np.dtype("<u4"), "byte": np.dtype("u1")}
_MAX_DIMENSIONS = 4


class Kind(IntEnum):
    """What a message asks for or brings."""

    RANGE = 1
    MOMENTS = 2
    SKETCH = 3
    FIT = 4
    OPENING = 5
    UNMASK = 6
    COUNTS = 7
    CODE = 8


class ProtocolError(ValueError):
    """A message that was refused, or a client that did not answer. Nothing was merged.

    Its text holds no value of a site's data and may be sent to the server.

    Attributes
    ----------
    detail : str
        For the log of the site where it was raised: what the text leaves out, such as rows and values. It is lost
        when the error is pickled.
    """

    def __init__(self, text: str, detail: str | None = None) -> None:
        super().__init__(text)
        self.detail = text if detail is None else detail

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str]]:
        return ProtocolError, (str(self),)


class Message(NamedTuple):
    """What the bytes say; `body` is an array of float64, of uint32 for masked sums, or of bytes of a summary."""

    kind: Kind
    session: str
    round: int
    sender: str
    details: dict[str, Any]
    body: NDArray[Any]


def pack(message: Message) -> bytes:
    """Bytes of a message."""
    name = next(name for name, dtype in _DTYPES.items() if dtype == message.body.dtype.newbyteorder("<"))
    body = np.ascontiguousarray(message.body, dtype=_DTYPES[name])
    header = json.dumps(
        {
            "session": message.session,
            "round": message.round,
            "sender": message.sender,
            "details": message.details,
            "dtype": name,
            "shape": list(body.shape),
        },
        allow_nan=False,
    ).encode()
    rest: bytes = header + body.tobytes()
    head = _HEAD.pack(_MAGIC, VERSION, message.kind, len(header), body.nbytes)
    return head + _digest(head, rest) + rest


def unpack(data: bytes, sender: str) -> Message:
    """Read a message that the transport says comes from `sender`.

    Raises
    ------
    ProtocolError
        It is not a whole, undamaged message of this version from that sender; the sentence names the sender.
    """
    who = sender if sender == SERVER else f"client {sender!r}"
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ProtocolError(f"{who}: a message is bytes, got {type(data).__name__}")
    data = bytes(data)
    if len(data) < _START or data[:4] != _MAGIC:
        raise ProtocolError(f"{who}: {len(data)} bytes that are not a message of powerkern.federated")
    _, version, kind, header_length, body_length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ProtocolError(f"{who}: the message has version {version}, this powerkern speaks version {VERSION}")
    if len(data) != _START + header_length + body_length:
        wanted = _START + header_length + body_length
        raise ProtocolError(f"{who}: the message has {len(data)} bytes instead of {wanted}; it was cut or joined")
    rest = data[_START:]
    if _digest(data[: _HEAD.size], rest) != data[_HEAD.size : _START]:
        raise ProtocolError(f"{who}: the message is damaged (its checksum is wrong); send it again")
    try:
        message = _parse(kind, rest[:header_length], rest[header_length:])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProtocolError(f"{who}: the message is malformed") from None
    if message.sender != sender:
        raise ProtocolError(f"{who}: the message says that it comes from {message.sender!r}")
    return message


def as_body(data: bytes) -> NDArray[np.uint8]:
    """Bytes as the body of a message."""
    return np.frombuffer(data, np.uint8)


def digest_of(data: bytes) -> bytes:
    """What stands for a message where it is too long."""
    return hashlib.blake2b(data, digest_size=32).digest()


def _digest(head: bytes, rest: bytes) -> bytes:
    return hashlib.blake2b(head + rest, digest_size=_DIGEST).digest()


def _parse(kind: int, header: bytes, body: bytes) -> Message:
    """The parts of a message whose checksum is right; it may still be nonsense."""
    record = json.loads(header)
    dtype, shape = _DTYPES[record["dtype"]], record["shape"]
    if not (
        isinstance(shape, list)
        and len(shape) <= _MAX_DIMENSIONS
        and all(type(length) is int and length >= 0 for length in shape)
        and math.prod(shape) * dtype.itemsize == len(body)
    ):
        raise ValueError
    message = Message(
        Kind(kind),
        record["session"],
        record["round"],
        record["sender"],
        record["details"],
        np.frombuffer(body, dtype).reshape(shape),
    )
    if not (
        isinstance(message.session, str)
        and type(message.round) is int
        and isinstance(message.sender, str)
        and isinstance(message.details, dict)
    ):
        raise ValueError
    return message
