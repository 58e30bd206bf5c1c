"""Masked sums: exact, cancelling to the last bit, random to whoever lacks the seeds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from powerkern.federated import pairwise_secrets, secure
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score as lk

NUMBERS = st.integers(-secure._LIMIT + 1, secure._LIMIT - 1)
FACTOR = st.floats(-1e9, 1e9).filter(lambda x: x == 0.0 or abs(x) > 1e-60)


def test_seeds_are_shared_by_pairs_and_by_no_others() -> None:
    dealt = pairwise_secrets("abc")
    assert dealt["a"].keys() == {"b", "c"}
    assert dealt["a"]["b"] == dealt["b"]["a"]
    assert len({dealt["a"]["b"], dealt["a"]["c"], dealt["b"]["c"]}) == 3
    assert len(dealt["a"]["b"]) == 32


@given(st.lists(FACTOR, min_size=1, max_size=3))
def test_fixed_point_rounds_once(factors: list[float]) -> None:
    exact = math.prod((Fraction(f) for f in factors), start=Fraction(1)) * 2**secure.FRACTION
    assert abs(secure.fixed_point(*factors) - exact) <= Fraction(1, 2)


@given(st.lists(NUMBERS, max_size=5))
def test_digits_round_trip(numbers: list[int]) -> None:
    assert secure.decode(secure.encode(numbers)) == numbers


@pytest.mark.parametrize("number", [secure._LIMIT, -secure._LIMIT])
def test_numbers_that_could_wrap_are_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        secure.encode([number])


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_masks_cancel_to_the_last_bit(rows: list[list[int]]) -> None:
    names = [f"site {i}" for i in range(len(rows))]
    dealt = pairwise_secrets(names)
    sent = [
        secure.masked(secure.encode(row), name, dealt[name], b"context") for name, row in zip(names, rows, strict=True)
    ]
    assert secure.decode(secure.add(sent)) == [sum(column) for column in zip(*rows, strict=True)]


def test_what_one_client_sends_looks_random_and_without_it_nothing_is_told() -> None:
    names = ["a", "b", "c"]
    dealt = pairwise_secrets(names)
    zeros = secure.encode([0] * 400)
    sent = [secure.masked(zeros, name, dealt[name], b"context") for name in names]
    for digits in sent:
        bits = np.unpackbits(np.ascontiguousarray(digits).view(np.uint8))
        assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)
    with pytest.raises(OverflowError):
        secure.decode(secure.add(sent[:2]))


def test_masks_of_another_context_do_not_cancel() -> None:
    dealt = pairwise_secrets("ab")
    one = secure.masked(secure.encode([1, 2]), "a", dealt["a"], b"this")
    with pytest.raises(OverflowError):
        secure.decode(secure.add([one, secure.masked(secure.encode([1, 2]), "b", dealt["b"], b"that")]))


def test_masks_are_bound_to_both_names() -> None:
    """One seed, other names: other masks."""
    zeros, seed = secure.encode([0] * 4), bytes(range(32))
    sent = {secure.masked(zeros, a, {b: seed}, b"c").tobytes() for a, b in ("ab", "ac", "bc", "ba", "ca")}
    assert len(sent) == 5
    texts = [("s", {"a": "1", "b": "2"}, b"r"), ("s", {"a": "2", "b": "1"}, b"r"), ("s", {"a": "1", "b2": ""}, b"r")]
    texts += [("t", {"a": "1", "b": "2"}, b"r"), ("s", {"a": "1", "b": "2"}, b"q"), ("sa", {"": "1", "b": "2"}, b"r")]
    assert len({secure.context_of(*each) for each in texts}) == 6


def moments_by_hand(y: np.ndarray, w: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """A share of four functions of some values."""
    out = np.zeros(partial_moments.N_PARTIAL)
    mean = y @ w / w.sum()
    d = y - mean[:, None]
    out[lk.WEIGHT], out[lk.Y : lk.Y3 + 1], out[partial_moments.JACOBIAN] = w.sum(), mean, logs @ w / w.sum()
    for k, (i, j) in secure._PRODUCTS.items():
        out[k] = (w * d[i - lk.Y] * d[j - lk.Y]).sum()
    return out


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_from_sums_are_those_of_all_values(offset: float) -> None:
    """About a mean that exceeds the deviations a million times: plain sums of floats would leave nothing."""
    rng = np.random.default_rng(0)
    y, w, logs = rng.normal(size=(4, 90)) + offset, rng.exponential(size=90), rng.normal(size=90)
    blocks = [slice(0, 10), slice(10, 11), slice(11, 90)]
    parts = [np.zeros((1, partial_moments.N_PARTIAL)), *(moments_by_hand(y[:, s], w[s], logs[s])[None] for s in blocks)]
    totals = [sum(column) for column in zip(*(secure.sums_of_moments(part) for part in parts), strict=True)]
    got = secure.moments_of_sums(totals, (1, partial_moments.N_PARTIAL))[0]
    expected = moments_by_hand(y - offset, w, logs)
    expected[lk.Y : lk.Y3 + 1] += offset
    # each deviation is known to an ulp of the offset
    assert_allclose(got, expected, rtol=1e-13, atol=1e-15 * (1 + 1e2 * offset))


def test_sums_of_nothing_are_no_moments() -> None:
    assert_array_equal(secure.moments_of_sums([0] * partial_moments.N_PARTIAL, (1, partial_moments.N_PARTIAL)), 0.0)
