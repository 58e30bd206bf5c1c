"""Functions that split powerkern's serialised bytes into their parts and reassemble them, by the documented layout."""

import hashlib
import json
import struct

#: Magic, layout, sizes of description and payload; the digest follows.
_HEAD = struct.Struct("<4sHIQ")
_START = _HEAD.size + 16


def parts_of(data):
    """Split serialised bytes into the parsed JSON description and the payload."""
    magic, layout, n_text, n_payload = _HEAD.unpack_from(data)
    assert (magic, layout, len(data)) == (b"PKRN", 1, _START + n_text + n_payload)
    return json.loads(data[_START : _START + n_text]), data[_START + n_text :]


def forge(text, payload=b""):
    """Return serialised bytes, with a valid digest, of any description text and payload."""
    head = _HEAD.pack(b"PKRN", 1, len(text), len(payload))
    return head + hashlib.blake2b(head + text + payload, digest_size=16).digest() + text + payload


def forged(data, change):
    """Apply ``change(description, payload)`` in place to the parts of `data`; return bytes with a valid digest."""
    description, payload = parts_of(data)
    payload = bytearray(payload)
    change(description, payload)
    return forge(json.dumps(description).encode(), bytes(payload))
