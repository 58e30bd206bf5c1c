"""The messages of a federated fit: bytes with a version, lengths and a checksum, around one array of numbers.

A message is a head (magic, version, kind, length of the header and of the body, checksum of everything else), a JSON
header, and the body: an array of float64 or of bytes.
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

#: Version of the layout and of the meaning of messages.
VERSION = 1

#: The sender of the server's messages.
SERVER = "server"

_MAGIC = b"PKFD"
_HEAD = struct.Struct("<4sHHIQ")
_DIGEST = 16
_START = _HEAD.size + _DIGEST
_DTYPES: dict[str, np.dtype[Any]] = {"float": np.dtype("<f8"), "byte": np.dtype("u1")}
_MAX_DIMENSIONS = 4


class Kind(IntEnum):
    """The question of a request, and of its answers: ranges, moments in the open, or sums to be added up."""

    RANGE = 1
    MOMENTS = 2
    SUMS = 3


class ProtocolError(ValueError):
    """A message was refused, or an answer is missing. Nothing was merged.

    The text holds no values of a site's data and may be sent to the server.

    Attributes
    ----------
    detail : str
        For the log of the site that raised it: the text with the rows and values that it leaves out. Lost when the
        error is pickled.
    """

    def __init__(self, text: str, detail: str | None = None) -> None:
        super().__init__(text)
        self.detail = text if detail is None else detail

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str]]:
        return ProtocolError, (str(self),)


class Message(NamedTuple):
    """A message read from bytes; `body` is an array of float64 or of bytes."""

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
    """Read a message that, according to the transport, comes from `sender`.

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


def _digest(head: bytes, rest: bytes) -> bytes:
    return hashlib.blake2b(head + rest, digest_size=_DIGEST).digest()


def _parse(kind: int, header: bytes, body: bytes) -> Message:
    """The parts of a message whose checksum is right, which may still make no sense."""
    record = json.loads(header)
    dtype, shape = _DTYPES[record["dtype"]], record["shape"]
    message = Message(
        Kind(kind),
        record["session"],
        record["round"],
        record["sender"],
        record["details"],
        np.frombuffer(body, dtype),
    )
    if not (
        isinstance(shape, list)
        and len(shape) <= _MAX_DIMENSIONS
        and all(type(length) is int and length >= 0 for length in shape)
        and math.prod(shape) == message.body.size
        and isinstance(message.session, str)
        and type(message.round) is int
        and isinstance(message.sender, str)
        and isinstance(message.details, dict)
    ):
        raise ValueError
    return message._replace(body=message.body.reshape(shape))
