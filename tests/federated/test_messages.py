"""Messages as bytes: packed messages can be unpacked, and other bytes are rejected."""

from __future__ import annotations

import json

import numpy as np
import pytest
from forged import forge, forged
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, pack, unpack

BODIES = [np.arange(6.0).reshape(2, 3), np.empty(0), np.arange(8, dtype=np.uint8).reshape(2, 2, 2)]


def message(body: np.ndarray = BODIES[0], **changes: object) -> Message:
    return Message(Kind.MOMENTS, "ab12", 3, "north", {"a": [1, None]}, body)._replace(**changes)


@pytest.mark.parametrize("body", BODIES)
def test_unpacking_a_packed_message_restores_it(body: np.ndarray) -> None:
    sent = message(body)
    got = unpack(pack(sent), "north")
    assert got[:-1] == sent[:-1]
    assert_array_equal(got.body, body)
    assert got.body.shape == body.shape


def test_bytes_are_little_endian_whatever_the_array_is() -> None:
    assert pack(message(BODIES[0].astype(">f8"))) == pack(message())


def test_a_message_cut_anywhere_is_refused_by_name() -> None:
    data = pack(message())
    for n in range(len(data)):
        with pytest.raises(ProtocolError, match="client 'north'"):
            unpack(data[:n], "north")
    with pytest.raises(ProtocolError, match="cut or joined"):
        unpack(data + data, "north")


@given(st.data())
def test_any_changed_bit_is_refused(data: st.DataObject) -> None:
    changed = bytearray(pack(message()))
    i = data.draw(st.integers(0, len(changed) - 1))
    changed[i] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ProtocolError, match="north"):
        unpack(bytes(changed), "north")


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="north"):
        unpack(data, "north")


def test_other_versions_are_refused() -> None:
    data = forged(pack(message()), lambda description, _: description.update(version=7))
    with pytest.raises(ProtocolError, match="client 'north': a message in version 7; this powerkern reads version 2"):
        unpack(data, "north")


@pytest.mark.parametrize("data", [None, "text", 3])
def test_anything_but_bytes_is_refused(data: object) -> None:
    with pytest.raises(ProtocolError, match="client 'north': a message must be read from bytes"):
        unpack(data, "north")  # type: ignore[arg-type]


def test_a_sender_cannot_speak_for_another() -> None:
    with pytest.raises(ProtocolError, match="client 'south': the message names 'north' as its sender"):
        unpack(pack(message()), "south")
    with pytest.raises(ProtocolError, match=r"^server"):
        unpack(pack(message()), SERVER)


def made(header: object, body: bytes = b"") -> bytes:
    """Return a message with a correct digest.

    The header is any object, stored as JSON, or raw bytes. `body` is the payload.
    """
    return forge(header if isinstance(header, bytes) else json.dumps(header).encode(), body)


GOOD = {
    "format": "powerkern.federated.Message",
    "version": 2,
    "kind": 2,
    "session": "s",
    "round": 1,
    "sender": "north",
    "details": {},
    "dtype": "float",
    "shape": [2],
}


def test_a_forged_valid_header_is_accepted() -> None:
    assert unpack(made(GOOD, bytes(16)), "north").round == 1


@pytest.mark.parametrize(
    "header",
    [
        {**GOOD, "dtype": "object"},
        {**GOOD, "dtype": []},
        {**GOOD, "shape": [3]},
        {**GOOD, "shape": [-1, -2]},
        {**GOOD, "shape": [True, 2]},
        {**GOOD, "shape": [2.0]},
        {**GOOD, "shape": [2, 1, 1, 1, 1]},
        {**GOOD, "shape": "2"},
        {**GOOD, "round": "1"},
        {**GOOD, "round": True},
        {**GOOD, "session": 1},
        {**GOOD, "sender": None},
        {**GOOD, "details": []},
    ],
)
def test_malformed_headers_are_refused(header: object) -> None:
    with pytest.raises(ProtocolError, match="client 'north': the message is malformed"):
        unpack(made(header, bytes(16)), "north")


@pytest.mark.parametrize("header", [b"\xff", b"[" * 100_000, b"{}", []])
def test_invalid_headers_are_rejected(header: object) -> None:
    with pytest.raises(
        ProtocolError, match=r"client 'north': not a message: (the bytes are damaged|its format is None)"
    ):
        unpack(made(header, bytes(16)), "north")


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        unpack(made({**GOOD, "kind": 99}, bytes(16)), "north")


def test_numbers_of_kinds_are_part_of_the_format() -> None:
    assert {kind.name: int(kind) for kind in Kind} == {"RANGE": 1, "MOMENTS": 2, "SUMS": 3}
    assert unpack(made({**GOOD, "kind": 3}, bytes(16)), "north").kind == Kind.SUMS
