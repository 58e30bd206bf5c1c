"""A secret as the value at 0 of a random polynomial: so many points of it tell the secret, and fewer tell nothing.

The polynomial has degree threshold - 1 over the integers modulo a prime just above 2**256 (Shamir 1979); the point of
holder k, from 1, is its value at k.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

#: The smallest prime above 2**256: every secret of 32 bytes is a residue.
PRIME = 2**256 + 297
#: Bytes of a secret, and of a point, which may be as large as 2**256.
SECRET_BYTES = 32
POINT_BYTES = 33

#: Random bytes a coefficient: reduced modulo PRIME they are uniform but for 2**-128.
_COEFFICIENT_BYTES = 48


def split(secret: bytes, threshold: int, n_holders: int, seed: bytes) -> list[bytes]:
    """Points of holders 1 to `n_holders`, of which `threshold` tell the secret.

    The other coefficients come from `seed`, which must be random, as secret as the secret, and used for it alone.
    """
    size = (threshold - 1) * _COEFFICIENT_BYTES
    text = hashlib.shake_256(b"powerkern.federated coefficients 1" + seed).digest(size)
    others = [int.from_bytes(text[i : i + _COEFFICIENT_BYTES], "little") for i in range(0, size, _COEFFICIENT_BYTES)]
    coefficients = [int.from_bytes(secret, "little"), *others]
    return [_value(coefficients, k).to_bytes(POINT_BYTES, "little") for k in range(1, n_holders + 1)]


def join(points: Mapping[int, bytes]) -> bytes | None:
    """The secret that points of some holders tell; None, if they are of no secret of 32 bytes."""
    total = sum(_weight(k, points) * int.from_bytes(point, "little") for k, point in points.items()) % PRIME
    return total.to_bytes(SECRET_BYTES, "little") if total < 1 << (8 * SECRET_BYTES) else None


def _value(coefficients: list[int], at: int) -> int:
    """Horner's scheme."""
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * at + coefficient) % PRIME
    return value


def _weight(k: int, points: Mapping[int, bytes]) -> int:
    """Lagrange's polynomial of holder k, at 0."""
    others = [other for other in points if other != k]
    return math.prod(others) * pow(math.prod(other - k for other in others), -1, PRIME)
