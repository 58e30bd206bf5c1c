"""Sums that only their total reveals: exact fixed-point integers under pairwise masks that cancel.

Moments become integers in units of ``2**-FRACTION``, modulo ``2**(32 DIGITS)``; the power sums of a sketch are integers
of 64 bits already. Each pair of clients shares a
secret seed; both expand it to the same stream of random digits (SHAKE-256), which one of them adds and the other
subtracts. Modulo a power of two the streams cancel in the sum over all clients, to the last bit, while a single
client's numbers are uniformly random to whoever lacks its seeds (Bonawitz et al. 2017, without the recovery of
clients that drop out).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score as lk

FloatArray = NDArray[np.float64]
Digits = NDArray[np.uint32]

#: Bits behind the point, and digits of 32 bits in all.
FRACTION = 256
DIGITS = 14
#: Numbers are smaller than this: 2**40 of them can be added, and what masks leave behind is as small as such a sum by a
#: chance of 2**-64.
_LIMIT = 1 << (32 * DIGITS - 106)
#: Bytes of a seed, at least.
SEED_BYTES = 16

# where the raw sums of the products stand among the moments
_PRODUCTS = {
    lk.YY: (lk.Y, lk.Y),
    lk.YY1: (lk.Y, lk.Y1),
    lk.Y1Y1: (lk.Y1, lk.Y1),
    lk.YY2: (lk.Y, lk.Y2),
    lk.YY3: (lk.Y, lk.Y3),
    lk.Y1Y2: (lk.Y1, lk.Y2),
}
_MEANS = (lk.Y, lk.Y1, lk.Y2, lk.Y3, partial_moments.JACOBIAN)


def pairwise_secrets(names: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Seeds for all pairs of clients, from the operating system's random numbers.

    For trials in one process, and for a trusted dealer. Sites that trust no dealer agree on a seed for each pair by
    means of their own (a key agreement of an audited library), and hand it to `Client`.

    Parameters
    ----------
    names : iterable of str
        Names of all clients.

    Returns
    -------
    dict
        For each client the seeds that it shares with every other: its argument `secrets`.

    Examples
    --------
    >>> from powerkern.federated import pairwise_secrets
    >>> dealt = pairwise_secrets(["north", "south"])
    >>> dealt["north"]["south"] == dealt["south"]["north"]
    True
    """
    every = list(names)
    dealt: dict[str, dict[str, bytes]] = {name: {} for name in every}
    for i, one in enumerate(every):
        for other in every[i + 1 :]:
            dealt[one][other] = dealt[other][one] = secrets.token_bytes(32)
    return dealt


# --- numbers ------------------------------------------------------------------------------------------


def fixed_point(*factors: float) -> int:
    """The product of some floats in units of ``2**-FRACTION``: exact but for one rounding to the nearest."""
    numerator, denominator = 1, 1
    for factor in factors:
        n, d = factor.as_integer_ratio()
        numerator, denominator = numerator * n, denominator * d
    return ((numerator << (FRACTION + 1)) // denominator + 1) >> 1


def encode(numbers: Sequence[int]) -> Digits:
    """Integers as rows of DIGITS digits, modulo ``2**(32 DIGITS)``.

    Raises
    ------
    OverflowError
        A number is too large to be added up.
    """
    if any(abs(number) >= _LIMIT for number in numbers):
        raise OverflowError
    text = b"".join(number.to_bytes(4 * DIGITS, "little", signed=True) for number in numbers)
    return np.frombuffer(text, "<u4").reshape(-1, DIGITS)


def decode(digits: Digits) -> list[int]:
    """The integers that rows of digits stand for.

    Raises
    ------
    OverflowError
        A number is larger than any sum: the masks did not cancel.
    """
    text = np.ascontiguousarray(digits, "<u4").tobytes()
    size = 4 * DIGITS
    numbers = [int.from_bytes(text[i : i + size], "little", signed=True) for i in range(0, len(text), size)]
    if any(abs(number) >= _LIMIT << 40 for number in numbers):
        raise OverflowError
    return numbers


def encode_words(words: NDArray[np.int64]) -> Digits:
    """Integers of 64 bits as rows of two digits, modulo 2**64."""
    return np.ascontiguousarray(words.reshape(-1, 1), "<i8").view("<u4")


def decode_words(digits: Digits) -> NDArray[np.int64]:
    """The integers of 64 bits that rows of two digits stand for."""
    return np.ascontiguousarray(digits, "<u4").view("<i8")[:, 0].astype(np.int64)


def add(parts: Iterable[Digits]) -> Digits:
    """Sum of numbers given by their digits, modulo 2 to the power of their bits."""
    return _carried(sum(part.astype(np.int64) for part in parts))  # type: ignore[arg-type]


def _carried(lanes: NDArray[np.int64]) -> Digits:
    """Digits of 32 bits from sums of digits; what leaves at the top is dropped, as the modulus wants it."""
    digits = np.empty(lanes.shape, dtype=np.uint32)
    carry = np.zeros(lanes.shape[0], dtype=np.int64)
    for k in range(lanes.shape[1]):
        lane = lanes[:, k] + carry
        digits[:, k] = lane & 0xFFFFFFFF
        carry = lane >> 32
    return digits


# --- masks --------------------------------------------------------------------------------------------


def context_of(session: str, openings: Mapping[str, str], request: bytes) -> bytes:
    """What masks are bound to: the session, what every client said when it was opened (nonces), and the request."""
    said = [text for name in sorted(openings) for text in (name, openings[name])]
    return hashlib.blake2b(_framed(session, *said) + request, digest_size=32).digest()


def masked(digits: Digits, name: str, seeds: Mapping[str, bytes], context: bytes) -> Digits:
    """Numbers under the masks that client `name` shares with the clients in `seeds`.

    `context` goes into the masks, and so do both names: they cancel only among clients that answer the very same
    request in the same session under the same names.
    """
    lanes = digits.astype(np.int64)
    for other, seed in seeds.items():
        pair = _framed(*sorted((name, other)))
        lanes += (1 if name < other else -1) * _stream(seed, pair + context, digits.shape)
    return _carried(lanes)


def _stream(seed: bytes, context: bytes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    text = b"powerkern.federated mask 2" + len(seed).to_bytes(4, "little") + seed + context
    stream = hashlib.shake_256(text).digest(4 * math.prod(shape))
    return np.frombuffer(stream, "<u4").reshape(shape).astype(np.int64)


def _framed(*texts: str) -> bytes:
    """Texts one after the other, each with its length, so that no two lists give the same bytes."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(part).to_bytes(8, "little") + part for part in [b"%d" % len(parts), *parts])


# --- moments ------------------------------------------------------------------------------------------


def sums_of_moments(moments: FloatArray, rounding: float = 0.0) -> list[int]:
    """Plain sums of weights, values and products, which can be added, from rows of moments.

    They are taken exactly, so that their differences lose nothing, and then rounded to multiples of `rounding`.
    """
    numbers = []
    for row in moments.reshape(-1, partial_moments.N_PARTIAL).tolist():
        w = row[lk.WEIGHT]
        sums = [0] * partial_moments.N_PARTIAL
        sums[lk.WEIGHT] = fixed_point(w)
        for k in _MEANS:
            sums[k] = fixed_point(w, row[k])
        for k, (i, j) in _PRODUCTS.items():
            sums[k] = fixed_point(row[k]) + fixed_point(w, row[i], row[j])
        numbers += sums
    unit = max(1, fixed_point(rounding))
    return [(number + unit // 2) // unit * unit for number in numbers]


def moments_of_sums(numbers: Sequence[int], shape: tuple[int, ...]) -> FloatArray:
    """Moments of the whole from totals of sums, in exact arithmetic and rounded once."""
    rows = np.zeros((len(numbers) // partial_moments.N_PARTIAL, partial_moments.N_PARTIAL))
    unit = 1 << FRACTION
    for r, row in enumerate(rows):
        sums = numbers[r * partial_moments.N_PARTIAL : (r + 1) * partial_moments.N_PARTIAL]
        w = sums[lk.WEIGHT]
        if w <= 0:
            continue
        row[lk.WEIGHT] = Fraction(w, unit)
        for k in _MEANS:
            row[k] = Fraction(sums[k], w)
        for k, (i, j) in _PRODUCTS.items():
            row[k] = Fraction(sums[k] * w - sums[i] * sums[j], w * unit)
    return rows.reshape(shape)
