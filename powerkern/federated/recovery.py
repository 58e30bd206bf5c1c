"""A total of masked sums that survives the loss of some sites, and is ever told for one set of sites only.

Masks of pairs cancel only if every site answers. If the server could have the masks of a lost site removed by asking
for them, it could do so after that site's answer has arrived, too, and read it. Therefore (Bonawitz et al. 2017) an
answer has one more mask, of the site alone, and everything that is needed to remove masks is split among all sites
(`shamir`), so that `threshold` of them must tell a point. For each site a helper tells a point of one kind only:

* of the mask of its own, if the site answered: the answer then counts in the total;
* of the key to its masks of pairs, if it did not: then those are taken off the others' answers.

More than two thirds of all sites must help, so that points of both kinds never suffice at once, unless a third of them
collude with the server: an answer that comes late, or was said to be lost, stays covered by its own mask for good.

One total takes three rounds. Each site sends its `Member.sharing`; all sharings go to all sites, which answer with
`Member.masked`; the server says who answered, and each of these sends `Member.unmasking`. `total` does the rest. At
each step some sites may be missing, as long as `threshold` of them are left at the end.

What a site sends is derived from 32 secret bytes of its own, drawn for this total alone, and from the seeds that it
shares with every other. `context` stands for the session and whatever all have agreed on before.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern.federated import secure, shamir

#: Bytes of a site's own secret, of a mask's seed, and of what stands for a secret.
_SEED, _DIGEST = shamir.SECRET_BYTES, 16
_POINTS = 2 * shamir.POINT_BYTES
#: A site's entry for another: the seed of their mask under the key, what stands for it, and for both points; points,
#: sealed; and what the seal is checked by.
_ENTRY = _SEED + 3 * _DIGEST + _POINTS + _DIGEST
_HEAD = 2 * _DIGEST


class RecoveryError(ValueError):
    """A total that cannot be told; the sentence names the site that is at fault, if one is."""


class _Entry(NamedTuple):
    covered_seed: bytes
    seed_digest: bytes
    point_digests: tuple[bytes, bytes]
    sealed: bytes
    tag: bytes


class _Sharing(NamedTuple):
    """What one site tells all: digests of the seed of its own mask and of its key, and an entry for each site."""

    secret_digests: tuple[bytes, bytes]
    entries: dict[str, _Entry]


def threshold(n_sites: int) -> int:
    """How many of all sites must help: more than two thirds.

    Parameters
    ----------
    n_sites : int
        Number of sites that took part from the start.

    Returns
    -------
    int
        All of three, 3 of 4, 4 of 5, 7 of 10, 67 of 100.
    """
    return 2 * n_sites // 3 + 1


class Member:
    """One site's part in a total.

    Parameters
    ----------
    name : str
        The site's name.
    seeds : mapping of str to bytes
        Secrets shared with each of the other sites that take part.
    own : bytes
        32 secret random bytes of this site, for this total alone.
    context : bytes
        The same for all sites, and another one for every total.
    """

    def __init__(self, name: str, seeds: Mapping[str, bytes], own: bytes, context: bytes) -> None:
        self._name, self._names = name, sorted([name, *seeds])
        self._seeds, self._context = dict(seeds), context
        self._own_seed, self._key = _derive(own, "mask", context), _derive(own, "key", context)
        n = len(self._names)
        self._points = list(
            zip(
                shamir.split(self._own_seed, threshold(n), n, _derive(own, "points of the mask", context)),
                shamir.split(self._key, threshold(n), n, _derive(own, "points of the key", context)),
                strict=True,
            )
        )

    def sharing(self) -> bytes:
        """Message of the first round: points for all sites, sealed, and what they are checked by."""
        head = _digest(self._own_seed) + _digest(self._key)
        return head + b"".join(self._entry(k, other) for k, other in enumerate(self._names))

    def masked(self, digits: secure.Digits, sharings: Mapping[str, bytes], context: bytes) -> secure.Digits:
        """Message of the second round: numbers under all masks.

        `context` stands for the request, in which all sharings are.

        Raises
        ------
        RecoveryError
            A sharing is not one, or does not fit to the secrets of this site.
        """
        parts: list[NDArray[Any]] = [digits, _stream(self._own_seed, context, digits.shape)]
        for other in self._opened(sharings).keys() - {self._name}:
            stream = _stream(self._mask_seed(other), context, digits.shape)
            parts.append(stream if self._name < other else -stream)
        return secure.add(parts)

    def unmasking(self, sharings: Mapping[str, bytes], answered: Iterable[str]) -> bytes:
        """Message of the third round: a point for each of the sharing sites, in the order of their names.

        To be sent once in all. A second one, for others that answered, would give away what the masks are for.

        Raises
        ------
        RecoveryError
            Those that answered are fewer than the threshold, are not among the sharing sites, or this one is not among
            them.
        """
        present = set(answered)
        if not present <= sharings.keys() or self._name not in present:
            raise RecoveryError("the sites that are said to have answered did not take part, or this one did not")
        if len(present) < threshold(len(self._names)):
            raise RecoveryError(
                f"{len(present)} of {len(self._names)} sites are said to have answered; "
                f"a total is told for {threshold(len(self._names))} or more"
            )
        opened = self._opened(sharings)
        return b"".join(opened[name][name not in present] for name in sorted(opened))

    def _entry(self, k: int, other: str) -> bytes:
        points = b"".join(self._points[k])
        digests = b"".join(map(_digest, self._points[k]))
        if other == self._name:  # it knows its own points
            return bytes(_SEED + _DIGEST) + digests + bytes(_POINTS + _DIGEST)
        seed = self._mask_seed(other)
        sealing = self._sealing(self._name, other)
        sealed = _xor(points, _expand(sealing, "pad", _POINTS))
        return _xor(seed, _pad_of_key(self._key, other)) + _digest(seed) + digests + sealed + _tag(sealing, sealed)

    def _opened(self, sharings: Mapping[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
        """Points that the sharing sites have for this one, checked."""
        return {name: self._points_of(name, _parsed(name, text, self._names)) for name, text in sharings.items()}

    def _points_of(self, dealer: str, sharing: _Sharing) -> tuple[bytes, bytes]:
        if dealer == self._name:
            return self._points[self._names.index(dealer)]
        entry = sharing.entries[self._name]
        sealing = self._sealing(dealer, self._name)
        if _tag(sealing, entry.sealed) != entry.tag or entry.seed_digest != _digest(self._mask_seed(dealer)):
            raise RecoveryError(f"{self._name!r} and {dealer!r} have different secrets, or the sharing was changed")
        points = _xor(entry.sealed, _expand(sealing, "pad", _POINTS))
        pair = points[: shamir.POINT_BYTES], points[shamir.POINT_BYTES :]
        if tuple(map(_digest, pair)) != entry.point_digests:
            raise RecoveryError(f"the points of {dealer!r} are not those that it tells all")
        return pair

    def _mask_seed(self, other: str) -> bytes:
        return _derive(self._seeds[other], "pair", self._context, *sorted([self._name, other]))

    def _sealing(self, sender: str, receiver: str) -> bytes:
        other = receiver if sender == self._name else sender
        return _derive(self._seeds[other], "seal", self._context, sender, receiver)


def total(
    names: Sequence[str],
    sharings: Mapping[str, bytes],
    answers: Mapping[str, secure.Digits],
    unmaskings: Mapping[str, bytes],
    context: bytes,
) -> secure.Digits:
    """Total of the numbers of all sites that answered.

    Parameters
    ----------
    names : sequence of str
        All sites that took part from the start.
    sharings, answers, unmaskings : mapping
        Messages of the three rounds, by the sites they came from.
    context : bytes
        As the sites had it for their answers.

    Returns
    -------
    array of uint32
        Digits of the total.

    Raises
    ------
    RecoveryError
        Too few sites are left, or one sent what does not fit together.
    """
    every = sorted(names)
    told = {name: _parsed(name, sharings[name], every) for name in sorted(sharings)}
    points = {name: _checked_points(name, text, told, answers, every) for name, text in sorted(unmaskings.items())}
    if len(points) < threshold(len(every)):
        raise RecoveryError(f"{len(points)} of {len(every)} sites are left; {threshold(len(every))} are needed")
    shape = next(iter(answers.values())).shape
    parts: list[NDArray[Any]] = list(answers.values())
    for name, sharing in told.items():
        lost = name not in answers
        secret = _joined(name, sharing, lost, {every.index(helper) + 1: own[name] for helper, own in points.items()})
        if lost:
            parts += _masks_of_lost(name, sharing, secret, answers, context, shape)
        else:
            parts.append(-_stream(secret, context, shape))
    return secure.add(parts)


def _masks_of_lost(
    lost: str, sharing: _Sharing, key: bytes, answers: Iterable[str], context: bytes, shape: tuple[int, ...]
) -> list[NDArray[np.int64]]:
    """What takes the masks shared with a lost site off the answers."""
    masks = []
    for name in answers:
        entry = sharing.entries[name]
        seed = _xor(entry.covered_seed, _pad_of_key(key, name))
        if _digest(seed) != entry.seed_digest:
            raise RecoveryError(f"the masks of {lost!r} do not open: its sharing was false")
        masks.append(_stream(seed, context, shape) * (1 if lost < name else -1))
    return masks


def _checked_points(
    helper: str, text: bytes, told: Mapping[str, _Sharing], answers: Mapping[str, Any], every: Sequence[str]
) -> dict[str, bytes]:
    if len(text) != len(told) * shamir.POINT_BYTES:
        raise RecoveryError(f"{helper!r} sent {len(text)} bytes instead of a point for each of {len(told)} sites")
    cut = [text[i : i + shamir.POINT_BYTES] for i in range(0, len(text), shamir.POINT_BYTES)]
    points = dict(zip(told, cut, strict=True))
    for name, point in points.items():
        if _digest(point) != told[name].entries[helper].point_digests[name not in answers]:
            raise RecoveryError(f"{helper!r} sent a false point of {name!r}")
    return points


def _joined(name: str, sharing: _Sharing, lost: bool, points: Mapping[int, bytes]) -> bytes:
    secret = shamir.join(points)
    if secret is None or _digest(secret) != sharing.secret_digests[lost]:
        raise RecoveryError(f"the points of {name!r} do not lie on one polynomial: its sharing was false")
    return secret


def _parsed(name: str, text: bytes, names: Sequence[str]) -> _Sharing:
    if len(text) != _HEAD + _ENTRY * len(names):
        raise RecoveryError(f"the sharing of {name!r} has {len(text)} bytes instead of {_HEAD + _ENTRY * len(names)}")
    (heads, *entries) = text[:_HEAD], *(text[i : i + _ENTRY] for i in range(_HEAD, len(text), _ENTRY))
    return _Sharing(_halves(heads), {other: _cut(entry) for other, entry in zip(names, entries, strict=True)})


def _cut(entry: bytes) -> _Entry:
    ends = np.cumsum([_SEED, _DIGEST, 2 * _DIGEST, _POINTS, _DIGEST]).tolist()
    seed, digest, points, sealed, tag = (entry[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True))
    return _Entry(seed, digest, _halves(points), sealed, tag)


def _halves(text: bytes) -> tuple[bytes, bytes]:
    return text[: len(text) // 2], text[len(text) // 2 :]


# --- secrets from secrets -----------------------------------------------------------------------------


def _derive(secret: bytes, what: str, context: bytes, *names: str) -> bytes:
    parts = [what.encode(), secret, context, *(name.encode() for name in names)]
    text = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return hashlib.shake_256(b"powerkern.federated recovery 1" + text).digest(_SEED)


def _expand(secret: bytes, what: str, size: int) -> bytes:
    return hashlib.shake_256(b"powerkern.federated recovery 1" + what.encode() + secret).digest(size)


def _pad_of_key(key: bytes, other: str) -> bytes:
    return _derive(key, "cover", b"", other)


def _digest(secret: bytes) -> bytes:
    """What stands for a random secret, and tells nothing of it."""
    return hashlib.blake2b(secret, digest_size=_DIGEST, person=b"pk recovery").digest()


def _tag(sealing: bytes, sealed: bytes) -> bytes:
    return hashlib.blake2b(sealed, key=sealing, digest_size=_DIGEST).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _stream(seed: bytes, context: bytes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    text = hashlib.shake_256(b"powerkern.federated recovery mask 1" + seed + context).digest(4 * math.prod(shape))
    return np.frombuffer(text, "<u4").reshape(shape).astype(np.int64)
