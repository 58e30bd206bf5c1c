"""Storage formats with a checked header: fits as JSON text; ranges, grids, sketches and messages as bytes.

The header consists of the name of the format, its version, and a digest of everything else. In text these are entries
of the JSON object. Bytes have the following parts, with little-endian numbers (sizes in bytes):

    magic (4) | layout (2) | size of the description (4) | size of the payload (8) | digest (16) | description | payload

The description is JSON that contains the name and the version of the format.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from powerkern._input.messages import shown

_MAGIC = b"PKRN"
#: Version of the binary layout.
_LAYOUT = 1
_HEAD = struct.Struct("<4sHIQ")
_DIGEST_SIZE = 16
_START = _HEAD.size + _DIGEST_SIZE


class Format(NamedTuple):
    """Name and version of a storage format, with methods that write and check the header."""

    #: Name in the header, such as "powerkern.Sketch".
    name: str
    version: int
    #: Noun for the stored object in messages, such as "a sketch".
    noun: str

    # --- bytes --------------------------------------------------------------------------------------------

    def pack(self, description: dict[str, Any], payload: bytes = b"") -> bytes:
        """Join a header, a description and a payload to bytes that `unpack` reads back.

        Parameters
        ----------
        description : dict
            Entries for JSON: strings, finite numbers, and lists and dictionaries of these.
        payload : bytes, optional
            Contents of arrays, little-endian.
        """
        text = json.dumps({"format": self.name, "version": self.version, **description}, allow_nan=False).encode()
        head = _HEAD.pack(_MAGIC, _LAYOUT, len(text), len(payload))
        return b"".join([head, _digest(head, text, payload), text, payload])

    def unpack(self, data: object) -> tuple[dict[str, Any], bytes]:
        """Split bytes that `pack` wrote into description and payload, after checking the header.

        Raises
        ------
        TypeError
            `data` is not bytes.
        ValueError
            The bytes are of another format or version, truncated, or damaged; the message says which.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"{self.noun} must be read from bytes, got {type(data).__name__}")
        data = bytes(data)
        if len(data) < _START or not data.startswith(_MAGIC):
            raise ValueError(
                f"not {self.noun}: these {len(data)} bytes were not written by powerkern, or are a truncated copy; "
                "write or send them again"
            )
        _, layout, n_text, n_payload = _HEAD.unpack_from(data)
        if layout != _LAYOUT:
            advice = "update powerkern" if layout > _LAYOUT else "write it again"
            raise ValueError(f"{self.noun} in layout {layout}; this powerkern reads layout {_LAYOUT}: {advice}")
        if len(data) != _START + n_text + n_payload:
            wanted = _START + n_text + n_payload
            raise ValueError(
                f"not {self.noun}: the bytes were cut or joined, {len(data)} instead of {wanted}; write or send them "
                "again"
            )
        text, payload = data[_START : _START + n_text], data[_START + n_text :]
        if _digest(data[: _HEAD.size], text, payload) != data[_HEAD.size : _START]:
            raise self.damaged()
        try:
            description = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged() from None
        if not isinstance(description, dict):
            raise self.damaged()
        self._check_head(description)
        return description, payload

    def damaged(self) -> ValueError:
        """Return the error for damaged bytes."""
        return ValueError(f"not {self.noun}: the bytes are damaged; write or send them again")

    # --- text ---------------------------------------------------------------------------------------------

    def to_text(self, record: dict[str, Any]) -> str:
        """Return JSON text with a header and these entries; arrays become lists, NaN null, and infinity a string."""
        text = json.dumps({"format": self.name, "version": self.version, **_to_plain(record)}, allow_nan=False)
        return f'{text[:-1]}, "digest": "{_digest_of_entries(parse_numbers(text))}"}}'

    def check_text(self, record: dict[str, Any], *, check: bool = True) -> dict[str, Any]:
        """Check the header of JSON text that `parse_record` has read; return the entries without the digest.

        Parameters
        ----------
        record : dict
            All entries of the text; the digest is removed from it.
        check : bool
            If True, compare the digest. It does not depend on whitespace or on the order of entries.

        Raises
        ------
        ValueError
            The text is of another format or version, or was changed.
        """
        self._check_head(record)
        digest = record.pop("digest", None)
        if check and digest != _digest_of_entries(record):
            kind = self.name.rpartition(".")[2]
            raise ValueError(
                f"not {self.noun}: the JSON text was changed after it was written (its digest does not match); "
                f"{kind}.from_json(text, check=False) reads a text that you edited on purpose"
            )
        return record

    def _check_head(self, entries: dict[str, Any]) -> None:
        """Raise a ValueError unless the entries "format" and "version" match this format."""
        name, version = entries.get("format"), entries.get("version")
        if name != self.name:
            raise ValueError(f"not {self.noun}: its format is {shown(name)}, not {self.name!r}")
        if isinstance(version, bool) or version != self.version:
            newer = isinstance(version, int | float) and version > self.version
            advice = "update powerkern" if newer else "write it again"
            text = f"{version:g}" if isinstance(version, int | float) else shown(version)
            raise ValueError(f"{self.noun} in version {text}; this powerkern reads version {self.version}: {advice}")


def parse_record(text: str) -> dict[str, Any]:
    """Parse JSON text that holds an object, with every number as a float; raise a ValueError for any other text."""
    try:
        record = parse_numbers(text)
    except (json.JSONDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"not a fit: the text is not JSON, or is incomplete ({error})") from None
    if not isinstance(record, dict):
        raise ValueError("not a fit: the JSON text holds no entries")
    return record


def parse_numbers(text: str) -> Any:
    """Parse JSON with every number as a float; integers beyond the range of float64 become infinite."""
    return json.loads(text, parse_int=float)


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _digest_of_entries(record: dict[str, Any]) -> str:
    """Return a digest of all entries that does not depend on their order."""
    return _digest(json.dumps(record, sort_keys=True).encode()).hex()


def _to_plain(value: Any) -> Any:
    """Convert a value to JSON types: arrays and tuples to lists, NaN to None, and infinity to a string."""
    if isinstance(value, dict):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value
