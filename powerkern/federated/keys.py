"""Secrets that two sites agree on without a dealer: X25519 and HKDF.

Every site makes a key pair and publishes the public half. From its own private key and another site's public key it
computes a number that both of them find and nobody else (RFC 7748), and derives the secret of the pair from it by
HKDF-SHA256 (RFC 5869)::

    secret = HKDF(X25519(own private, other public), info = version | names | public keys | context)

with names and keys in the order of the names. A server that passes public keys on could pass on keys of its own, and
then read what it should not: sites compare `fingerprint` of all keys over another channel (telephone, paper).

Needs cryptography 42 or later: ``pip install 'powerkern[keys]'``.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
from collections.abc import Mapping
from typing import Any

#: Bytes of a private key, of a public key, and of a secret.
KEY_BYTES = 32

_VERSION = b"powerkern.federated secret of a pair 1"
#: The field of Curve25519; a coordinate of this or more is another spelling of a smaller one.
_PRIME = 2**255 - 19
#: Bits of a fingerprint: 2**80 trials to find two sets of keys with the same one.
_FINGERPRINT = 160


class SiteKey:
    """A site's key pair for `agreed_secrets`.

    Parameters
    ----------
    private : bytes
        The private key, 32 bytes from `generate`. Keep it where the rows are kept.

    Attributes
    ----------
    public : bytes
        The public key, 32 bytes, for the other sites.

    See Also
    --------
    agreed_secrets : has an example.

    Examples
    --------
    >>> from powerkern.federated import SiteKey
    >>> key = SiteKey.generate()
    >>> len(key.public), SiteKey(key.private).public == key.public
    (32, True)
    """

    def __init__(self, private: bytes) -> None:
        self._key = _x25519().X25519PrivateKey.from_private_bytes(_checked_bytes("the private key", private))
        self.public: bytes = self._key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> SiteKey:
        """A new key pair, from the operating system's random numbers."""
        return cls(_x25519().X25519PrivateKey.generate().private_bytes_raw())

    @property
    def private(self) -> bytes:
        """The private key, to be stored: whoever has it can compute all secrets of the site."""
        raw: bytes = self._key.private_bytes_raw()
        return raw

    def __repr__(self) -> str:
        return f"SiteKey(public={self.public.hex()})"

    def _shared_number(self, name: str, public: bytes) -> bytes:
        try:
            number: bytes = self._key.exchange(_x25519().X25519PublicKey.from_public_bytes(public))
        except ValueError:  # the result would be zero whatever the private key is
            raise ValueError(
                f"the public key of {name!r} is a point of low order, from which no secret follows; "
                "have the site make a new key"
            ) from None
        return number


def agreed_secrets(key: SiteKey, public_keys: Mapping[str, bytes], *, context: bytes = b"") -> dict[str, bytes]:
    """Secrets that a site shares with every other, for `Client`.

    Parameters
    ----------
    key : SiteKey
        The site's own key pair.
    public_keys : mapping of str to bytes
        The public key of every site by its name, the own one among them: the own name is where the own key stands.
        All sites must use the same; compare `fingerprint` of it.
    context : bytes, optional
        What else all sites must agree on (a study's identifier, a date). Other contexts give other secrets.

    Returns
    -------
    dict of str to bytes
        32 bytes for each of the other sites. The other site finds the same ones.

    Raises
    ------
    ValueError
        A public key is not 32 bytes, stands for no point of its own (low order, or another spelling of one), two sites
        have the same, or the own one is missing. The sentence names the site.
    ImportError
        cryptography is not installed.

    References
    ----------
    A. Langley, M. Hamburg, S. Turner, "Elliptic curves for security", RFC 7748, 2016, section 6.1.
    H. Krawczyk, P. Eronen, "HMAC-based extract-and-expand key derivation function (HKDF)", RFC 5869, 2010.

    Examples
    --------
    >>> from powerkern.federated import SiteKey, agreed_secrets
    >>> keys = {name: SiteKey.generate() for name in ["ulm", "graz", "basel"]}  # each at its site
    >>> public = {name: key.public for name, key in keys.items()}               # known to all
    >>> at_ulm, at_graz = (agreed_secrets(keys[name], public) for name in ["ulm", "graz"])
    >>> sorted(at_ulm), at_ulm["graz"] == at_graz["ulm"]
    (['basel', 'graz'], True)
    """
    known = _checked_public_keys(public_keys)
    own = next((name for name, public in known.items() if public == key.public), None)
    if own is None:
        raise ValueError("the site's own public key is not among public_keys; add it under the site's name")
    return {name: _secret(key, own, name, known, context) for name in known if name != own}


def fingerprint(public_keys: bytes | Mapping[str, bytes]) -> str:
    """What people compare to know that they have the same public keys.

    Parameters
    ----------
    public_keys : bytes or mapping of str to bytes
        One public key; or all sites' keys by name, in any order.

    Returns
    -------
    str
        Eight groups of four letters and digits: 160 bits of SHA-256, in base 32.

    Raises
    ------
    ValueError
        As of `agreed_secrets`.

    Examples
    --------
    >>> from powerkern.federated import fingerprint
    >>> fingerprint(bytes(range(32)))
    'bojw bqty esqy 7h36 7qnq us7a lasz z3fd'
    """
    if isinstance(public_keys, Mapping):
        told = b"keys" + b"".join(
            _prefixed(name.encode()) + key for name, key in _checked_public_keys(public_keys).items()
        )
    else:
        told = b"key" + _checked_public_key("?", public_keys)
    digest = hashlib.sha256(b"powerkern.federated fingerprint 1 " + told).digest()[: _FINGERPRINT // 8]
    text = base64.b32encode(digest).decode().lower()
    return " ".join(text[i : i + 4] for i in range(0, len(text), 4))


def _secret(key: SiteKey, own: str, other: str, known: Mapping[str, bytes], context: bytes) -> bytes:
    names = sorted([own, other])
    info = _VERSION + b"".join(_prefixed(name.encode()) + known[name] for name in names) + _prefixed(context)
    hkdf = _module("kdf.hkdf").HKDF(_module("hashes").SHA256(), length=KEY_BYTES, salt=None, info=info)
    secret: bytes = hkdf.derive(key._shared_number(other, known[other]))
    return secret


def _prefixed(text: bytes) -> bytes:
    """Bytes after their number, so that no two sequences read the same when they are joined."""
    return len(text).to_bytes(4, "little") + text


# --- checks -------------------------------------------------------------------------------------------


def _checked_public_keys(given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Public keys in the order of the names."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
        raise TypeError("public_keys must be a dict, name of a site to 32 bytes")
    known = {name: _checked_public_key(name, given[name]) for name in sorted(given)}
    owner: dict[bytes, str] = {}
    for name, public in known.items():
        if public in owner:
            raise ValueError(f"{owner[public]!r} and {name!r} have the same public key; have each site make its own")
        owner[public] = name
    return known


def _checked_public_key(name: str, public: object) -> bytes:
    key = _checked_bytes(f"the public key of {name!r}", public)
    if int.from_bytes(key, "little") >= _PRIME:
        raise ValueError(f"the public key of {name!r} is not written in its shortest form; it needs a new one")
    return key


def _checked_bytes(what: str, given: object) -> bytes:
    if not isinstance(given, bytes) or len(given) != KEY_BYTES:
        got = f"{len(given)} bytes" if isinstance(given, bytes) else type(given).__name__
        raise ValueError(f"{what} must be {KEY_BYTES} bytes, got {got}")
    return given


def _x25519() -> Any:
    return _module("asymmetric.x25519")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        raise ImportError("agreeing on keys needs cryptography: pip install 'powerkern[keys]'") from None
