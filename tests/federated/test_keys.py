"""Keys that sites agree on: published vectors, both ends alike, and nothing from a key that is none."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import sys

import numpy as np
import pytest

pytest.importorskip("cryptography")

import powerkern as pk
from powerkern.federated import Client, Policy, SiteKey, agreed_secrets, fingerprint, fit_federated

NAMES = ["basel", "graz", "ulm"]
PRIME = 2**255 - 19


def public_keys(keys: dict[str, SiteKey]) -> dict[str, bytes]:
    return {name: key.public for name, key in keys.items()}


@pytest.fixture
def keys() -> dict[str, SiteKey]:
    return {name: SiteKey(bytes([k + 1]) * 32) for k, name in enumerate(NAMES)}


# --- X25519 by the formulas of RFC 7748, independent of the library ------------------------------------


def ladder(scalar: bytes, u: int) -> int:
    """The Montgomery ladder of section 5, as it is printed there."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(1 << 255) | 1 << 254
    x1, x2, z2, x3, z3, swap = u, 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % PRIME, b * b % PRIME, d * a % PRIME, c * b % PRIME
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % PRIME, x1 * (da - cb) ** 2 % PRIME
        x2, z2 = aa * bb % PRIME, e * (aa + 121665 * e) % PRIME
    if swap:
        x2, z2 = x3, z3
    return x2 * pow(z2, PRIME - 2, PRIME) % PRIME


def hkdf(number: bytes, info: bytes) -> bytes:
    """RFC 5869 for 32 bytes and no salt."""
    extracted = hmac.digest(bytes(32), number, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")


def test_alice_and_bob_of_rfc_7748() -> None:
    """Section 6.1: our keys are the curve's, and so is the ladder that other tests rely on."""
    alice = SiteKey(bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"))
    bob = SiteKey(bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"))
    assert alice.public.hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert bob.public.hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    shared = ladder(alice.private, int.from_bytes(bob.public, "little")).to_bytes(32, "little")
    assert shared.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_secrets_are_those_of_the_formula(keys: dict[str, SiteKey]) -> None:
    public = public_keys(keys)
    found = agreed_secrets(keys["ulm"], public, context=b"study 7")
    for other in ("basel", "graz"):
        number = ladder(keys["ulm"].private, int.from_bytes(public[other], "little")).to_bytes(32, "little")
        info = b"powerkern.federated secret of a pair 1"
        for name in (other, "ulm"):  # in the order of the names
            info += len(name).to_bytes(4, "little") + name.encode() + public[name]
        info += (7).to_bytes(4, "little") + b"study 7"
        assert found[other] == hkdf(number, info)


def test_both_ends_agree_and_no_two_pairs_alike(keys: dict[str, SiteKey]) -> None:
    secrets = {name: agreed_secrets(key, public_keys(keys)) for name, key in keys.items()}
    for one, other in itertools.permutations(NAMES, 2):
        assert secrets[one][other] == secrets[other][one]
        assert len(secrets[one][other]) == 32
    assert len({secrets[a][b] for a, b in itertools.combinations(NAMES, 2)}) == 3


def test_names_and_context_go_into_the_secrets(keys: dict[str, SiteKey]) -> None:
    public = public_keys(keys)
    renamed = {"basel": public["basel"], "graz": public["graz"], "linz": public["ulm"]}
    seen = {
        agreed_secrets(keys["ulm"], public)["graz"],
        agreed_secrets(keys["ulm"], renamed)["graz"],
        agreed_secrets(keys["ulm"], public, context=b"another study")["graz"],
    }
    assert len(seen) == 3


def test_new_keys_differ() -> None:
    assert len({SiteKey.generate().public for _ in range(10)}) == 10


def test_the_private_key_is_not_shown() -> None:
    key = SiteKey.generate()
    assert key.private.hex() not in repr(key)
    assert key.public.hex() in repr(key)


# --- what is refused ----------------------------------------------------------------------------------


def points_of_low_order() -> list[int]:
    """u of the points of order 1, 2, 4 and 8 on the curve and its twist.

    The double of u is (u^2 - 1)^2 / (4 u (u^2 + A u + 1)). It is 1 or -1, of order 4, where w = u + 1/u is
    2 +- 2 sqrt(A + 2) or -2 +- 2 sqrt(2 - A).
    """
    found = {0, 1, PRIME - 1}
    for sign in (1, -1):
        root = square_root(2 + sign * 486662)
        for w in () if root is None else (2 * sign + 2 * root, 2 * sign - 2 * root):
            r = square_root(w * w - 4)
            found |= set() if r is None else {(w + r) * pow(2, -1, PRIME) % PRIME, (w - r) * pow(2, -1, PRIME) % PRIME}
    return sorted(found)


def square_root(n: int) -> int | None:
    """Modulo a prime that is 5 modulo 8."""
    root = pow(n % PRIME, (PRIME + 3) // 8, PRIME)
    for candidate in (root, root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME):
        if candidate * candidate % PRIME == n % PRIME:
            return candidate
    return None


@pytest.mark.parametrize("u", points_of_low_order())
def test_points_of_low_order_are_refused(keys: dict[str, SiteKey], u: int) -> None:
    assert ladder(keys["ulm"].private, u) == 0  # whatever the private key: everybody would know the secret
    public = public_keys(keys) | {"graz": u.to_bytes(32, "little")}
    with pytest.raises(ValueError, match="public key of 'graz' is a point of low order"):
        agreed_secrets(keys["ulm"], public)


@pytest.mark.parametrize("u", [PRIME, PRIME + 1, 2**255 + 9, 2**256 - 1])
def test_other_spellings_of_a_point_are_refused(keys: dict[str, SiteKey], u: int) -> None:
    with pytest.raises(ValueError, match="public key of 'graz' is not written in its shortest form"):
        agreed_secrets(keys["ulm"], public_keys(keys) | {"graz": u.to_bytes(32, "little")})


def test_equal_keys_are_refused(keys: dict[str, SiteKey]) -> None:
    with pytest.raises(ValueError, match="'basel' and 'graz' have the same public key"):
        agreed_secrets(keys["ulm"], public_keys(keys) | {"graz": keys["basel"].public})
    with pytest.raises(ValueError, match="'graz' and 'ulm' have the same public key"):  # one's own, sent back
        agreed_secrets(keys["ulm"], public_keys(keys) | {"graz": keys["ulm"].public})


def test_ones_own_key_must_be_there(keys: dict[str, SiteKey]) -> None:
    with pytest.raises(ValueError, match="own public key is not among public_keys"):
        agreed_secrets(SiteKey.generate(), public_keys(keys))


@pytest.mark.parametrize("given", [b"", b"1" * 31, b"1" * 33, "1" * 32, None, bytearray(32)])
def test_keys_are_32_bytes(keys: dict[str, SiteKey], given: object) -> None:
    with pytest.raises(ValueError, match="public key of 'graz' must be 32 bytes, got"):
        agreed_secrets(keys["ulm"], public_keys(keys) | {"graz": given})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="private key must be 32 bytes, got"):
        SiteKey(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, [b"1" * 32], {1: b"1" * 32}, {"": b"1" * 32}])
def test_public_keys_are_by_name(keys: dict[str, SiteKey], given: object) -> None:
    with pytest.raises(TypeError, match="public_keys must be a dict"):
        agreed_secrets(keys["ulm"], given)  # type: ignore[arg-type]


def test_without_cryptography_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ImportError, match=r"needs cryptography: pip install 'powerkern\[keys\]'"):
        SiteKey.generate()


# --- fingerprints -------------------------------------------------------------------------------------


def test_a_fingerprint_is_of_all_names_and_keys(keys: dict[str, SiteKey]) -> None:
    public = public_keys(keys)
    known = fingerprint(public)
    assert known == fingerprint(dict(reversed(public.items())))
    swapped = public | {"ulm": public["graz"], "graz": public["ulm"]}
    others = [swapped, {k: v for k, v in public.items() if k != "ulm"}, public | {"ulm": SiteKey.generate().public}]
    assert known not in {fingerprint(other) for other in others}
    assert [len(group) for group in known.split()] == [4] * 8


def test_names_cannot_be_moved_into_keys() -> None:
    key = SiteKey(b"\5" * 32).public
    assert fingerprint({"a": key}) != fingerprint({"a" + key.decode("latin-1"): key})
    assert fingerprint({"a": key}) != fingerprint(key)
    text = hashlib.sha256(b"powerkern.federated fingerprint 1 key" + key).digest()[:20]
    assert fingerprint(key).replace(" ", "").encode() == base64.b32encode(text).lower()


# --- in a fit -----------------------------------------------------------------------------------------


def test_a_fit_under_masks_without_a_dealer(keys: dict[str, SiteKey]) -> None:
    rows = np.random.default_rng(0).lognormal(size=(300, 2))
    parts = dict(zip(NAMES, np.split(rows, [50, 120]), strict=True))
    exact = Policy(rounding=0.0)
    clients = [
        Client(parts[name], name=name, secrets=agreed_secrets(key, public_keys(keys)), policy=exact)
        for name, key in keys.items()
    ]
    fit = fit_federated(clients, "box-cox", secure=True, bounds=([1e-3] * 2, [1e3] * 2))
    assert np.abs(fit.lmbda - pk.fit(rows, "box-cox").lmbda).max() < 1e-10
