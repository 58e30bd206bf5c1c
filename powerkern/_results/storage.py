"""The header of everything that powerkern writes: fits as JSON text; ranges, grids, sketches and messages as bytes.

The header has the name of the format, its version, and a digest of everything else. In text they are entries of the
JSON. Bytes have the following parts, with little-endian numbers:

    magic (4) | layout (2) | size of the description (4) | size of the payload (8) | digest (16) | description | payload

where the description is JSON with the name and the version of the format among its entries.
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
#: Version of the layout of bytes.
_LAYOUT = 1
_HEAD = struct.Struct("<4sHIQ")
_DIGEST_SIZE = 16
_START = _HEAD.size + _DIGEST_SIZE


class Format(NamedTuple):
    """Kind of a stored object, and the version of its format."""

    #: As the header has it: "powerkern.Sketch".
    name: str
    version: int
    #: As messages call it: "a sketch".
    noun: str

    # --- bytes --------------------------------------------------------------------------------------------

    def pack(self, description: dict[str, Any], payload: bytes = b"") -> bytes:
        """Return bytes that `unpack` reads back.

        Parameters
        ----------
        description : dict
            Words, numbers, lists and tables of these; finite numbers only.
        payload : bytes, optional
            Arrays, little-endian.
        """
        text = json.dumps({"format": self.name, "version": self.version, **description}, allow_nan=False).encode()
        head = _HEAD.pack(_MAGIC, _LAYOUT, len(text), len(payload))
        return b"".join([head, _digest(head, text, payload), text, payload])

    def unpack(self, data: object) -> tuple[dict[str, Any], bytes]:
        """Return the description and the payload in bytes that `pack` wrote.

        Raises
        ------
        TypeError
            `data` are not bytes.
        ValueError
            They are of another format or version, cut, or damaged; the message says which.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"{self.noun} must be read from bytes, got {type(data).__name__}")
        data = bytes(data)
        if len(data) < _START or not data.startswith(_MAGIC):
            raise ValueError(f"not {self.noun}: {len(data)} bytes that powerkern did not write, or a truncated copy")
        _, layout, n_text, n_payload = _HEAD.unpack_from(data)
        if layout != _LAYOUT:
            raise ValueError(f"{self.noun} in layout {layout}; this powerkern reads layout {_LAYOUT}")
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
        """Return the error for bytes that `pack` cannot have written."""
        return ValueError(f"not {self.noun}: the bytes are damaged; write or send them again")

    # --- text ---------------------------------------------------------------------------------------------

    def to_text(self, record: dict[str, Any]) -> str:
        """Return JSON text with these entries; arrays become lists, NaN null, and infinity a word."""
        text = json.dumps({"format": self.name, "version": self.version, **_to_plain(record)}, allow_nan=False)
        return f'{text[:-1]}, "digest": "{_digest_of_entries(parse_numbers(text))}"}}'

    def check_text(self, record: dict[str, Any], *, check: bool = True) -> dict[str, Any]:
        """Return the entries of a text, as `parse_record` reads it, without its digest.

        Parameters
        ----------
        record : dict
            All entries.
        check : bool
            Compare the digest, whatever the layout of the text is.

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
        """Raise unless the entries are of this format and version."""
        name, version = entries.get("format"), entries.get("version")
        if name != self.name:
            raise ValueError(f"not {self.noun}: its format is {shown(name)}, not {self.name!r}")
        if isinstance(version, bool) or version != self.version:
            newer = isinstance(version, int | float) and version > self.version
            advice = "update powerkern" if newer else "write it again"
            text = f"{version:g}" if isinstance(version, int | float) else shown(version)
            raise ValueError(f"{self.noun} in version {text}; this powerkern reads version {self.version}: {advice}")


def parse_record(text: str) -> dict[str, Any]:
    """Return the entries of JSON text, with every number as a float; ValueError if there are none."""
    try:
        record = parse_numbers(text)
    except (json.JSONDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"not a fit: the text is not JSON, or is incomplete ({error})") from None
    if not isinstance(record, dict):
        raise ValueError("not a fit: the JSON text holds no entries")
    return record


def parse_numbers(text: str) -> Any:
    """Parse JSON with every number as a float: an integer beyond the range of float64 becomes infinite."""
    return json.loads(text, parse_int=float)


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _digest_of_entries(record: dict[str, Any]) -> str:
    """Return a digest of all entries, whatever their order."""
    return _digest(json.dumps(record, sort_keys=True).encode()).hex()


def _to_plain(value: Any) -> Any:
    """Convert a value to a type that JSON holds."""
    if isinstance(value, dict):
        return {name: _to_plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value
