"""Messages of a federated fit: powerkern's header, a description, and one array of float64 or of bytes."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._results.storage import Format

#: Format of messages. The version also changes if the meaning of messages changes.
MESSAGE = Format("powerkern.federated.Message", 2, "a message")

#: Name of the sender of messages from the server.
SERVER = "server"

_DTYPES: dict[str, np.dtype[Any]] = {"float": np.dtype("<f8"), "byte": np.dtype("u1")}
_MAX_DIMENSIONS = 4


class Kind(IntEnum):
    """Kind of a request and of the answers to it: ranges, unencrypted moments, or integers for a secure sum."""

    RANGE = 1
    MOMENTS = 2
    SUMS = 3


class ProtocolError(ValueError):
    """Error for a rejected message or a missing answer.

    Nothing is merged if it is raised. The text contains no values of the data of a site and may be sent to the server.

    Attributes
    ----------
    detail : str
        Text with rows and values, for the log of the site that raised the error. It is dropped when the error is
        pickled.
    """

    def __init__(self, text: str, detail: str | None = None) -> None:
        super().__init__(text)
        self.detail = text if detail is None else detail

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str]]:
        return ProtocolError, (str(self),)


class Message(NamedTuple):
    """A message with its header fields; `body` is an array of float64 or of bytes."""

    kind: Kind
    session: str
    round: int
    sender: str
    details: dict[str, Any]
    body: NDArray[Any]


def pack(message: Message) -> bytes:
    """Encode a message as bytes that `unpack` reads back."""
    name = next(name for name, dtype in _DTYPES.items() if dtype == message.body.dtype.newbyteorder("<"))
    body = np.ascontiguousarray(message.body, dtype=_DTYPES[name])
    description = {
        "kind": int(message.kind),
        "session": message.session,
        "round": message.round,
        "sender": message.sender,
        "details": message.details,
        "dtype": name,
        "shape": list(body.shape),
    }
    return MESSAGE.pack(description, body.tobytes())


def unpack(data: bytes, sender: str) -> Message:
    """Decode and check a message that, according to the transport, comes from `sender`.

    Raises
    ------
    ProtocolError
        If `data` is not a complete, undamaged message of this version from that sender; the text names the sender.
    """
    who = sender if sender == SERVER else f"client {sender!r}"
    try:
        description, body = MESSAGE.unpack(data)
    except (TypeError, ValueError) as error:
        raise ProtocolError(f"{who}: {error}") from None
    try:
        message = _parse(description, body)
    except (ValueError, KeyError, TypeError):
        raise ProtocolError(f"{who}: the message is malformed") from None
    if message.sender != sender:
        raise ProtocolError(
            f"{who}: the message names {message.sender!r} as its sender and is refused; pass the name of the client or "
            "server that sent it"
        )
    return message


def _parse(description: dict[str, Any], body: bytes) -> Message:
    """Build a message from its description and its body; raise a ValueError if these are inconsistent."""
    dtype, shape = _DTYPES[description["dtype"]], description["shape"]
    message = Message(
        Kind(description["kind"]),
        description["session"],
        description["round"],
        description["sender"],
        description["details"],
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
