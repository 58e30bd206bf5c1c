"""Sums as integers: exact in any order of addition, rejected if a site is missing, with a bound on their error."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from powerkern.federated.integers import (
    DIGIT_BITS,
    check_quantum,
    decode_moments,
    encode_moments,
    score_error,
)
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score_formulas as lk

N = partial_moments.N_PARTIAL
REQUEST = b"a request"


def moments_of(y: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return the moments of unit-weight rows in rational arithmetic.

    Parameters
    ----------
    y : array of shape (4, n)
        The transform y and its first three derivatives in lambda.
    a : array of shape (n,)
        Logs of the values.
    """
    n = len(a)
    exact = [[Fraction(v) for v in row] for row in y]
    means = [sum(row) / n for row in exact]
    row = [Fraction(n), *means]
    for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (0, 3), (1, 2)):
        row.append(sum((u - means[i]) * (v - means[j]) for u, v in zip(exact[i], exact[j], strict=True)))
    row.append(sum(Fraction(v) for v in a) / n)
    return np.array([[[float(v) for v in row]]])


def rows(n: int, spread: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return 0.7 + spread * rng.uniform(-1.0, 1.0, size=(4, n)), rng.uniform(-1.0, 1.0, size=n)


@pytest.mark.parametrize("quantum", [2.0**-120, 2.0**-80])
@pytest.mark.parametrize("modulus", [None, 2**40])
def test_totals_are_the_moments_of_all_rows(quantum: float, modulus: int | None) -> None:
    y, a = rows(90, 1e-3)
    ends = [0, 20, 21, 90]
    parts = [moments_of(y[:, i:j], a[i:j]) for i, j in itertools.pairwise(ends)]
    vectors = [encode_moments(part, quantum, REQUEST) for part in parts]
    assert max(np.abs(vector).max() for vector in vectors) < 2**DIGIT_BITS
    total = sum(vectors)
    if modulus:  # as in a secure sum of residues
        total = np.mod(sum(np.mod(v, modulus) for v in vectors) + modulus // 2, modulus) - modulus // 2
    found = decode_moments(total, (1, 1, N), quantum, REQUEST, 3)
    np.testing.assert_allclose(found, moments_of(y, a), rtol=1e-9)  # means are rounded to 1e-16, products are 1e-6


def test_a_total_that_is_not_of_all_sites_and_this_request_is_refused() -> None:
    moments = moments_of(*rows(9))
    vector = encode_moments(moments, 2.0**-40, REQUEST)

    def read(total: object, n: int = 3) -> np.ndarray:
        return decode_moments(total, (1, 1, N), 2.0**-40, REQUEST, n)

    assert read(3 * vector)[0, 0, lk.WEIGHT] == 27.0
    with pytest.raises(ValueError, match="it is the sum of 2 sites, the fit has 3"):
        read(2 * vector)
    with pytest.raises(ValueError, match="a site answered another request"):
        read(2 * vector + encode_moments(moments, 2.0**-40, b"another request"))
    with pytest.raises(ValueError, match="clipped, rounded or reduced"):
        read(np.minimum(3 * vector, 2**DIGIT_BITS))
    with pytest.raises(ValueError, match=r"it must be \d+ integers, got float64"):
        read(3.0 * vector)
    with pytest.raises(ValueError, match=r"it must be \d+ integers, got int64 of shape"):
        read(3 * vector[:-1])


def test_weights_beyond_the_digits_overflow() -> None:
    moments = moments_of(*rows(9))
    moments[..., lk.WEIGHT] = 1e20
    with pytest.raises(OverflowError):
        encode_moments(moments, 2.0**-40, REQUEST)


@pytest.mark.parametrize("quantum", [0.0, -1.0, 2.0, 0.3, 2.0**-300, np.nan, "1", None, True])
def test_a_quantum_is_a_power_of_two(quantum: object) -> None:
    with pytest.raises(ValueError, match="quantum must be a power of two"):
        check_quantum(quantum)


def score_of(w: Fraction, y: Fraction, y1: Fraction, yy: Fraction, yy1: Fraction, jacobian: Fraction) -> Fraction:
    return (yy1 - y * y1 / w) / (yy - y * y / w) - jacobian / w


@pytest.mark.parametrize("spread", [1.0, 0.05, 0.003])
@pytest.mark.parametrize("seed", range(4))
def test_no_combination_of_roundings_exceeds_the_bound(spread: float, seed: int) -> None:
    """Six sums are changed by +e or -e, e = 2**-14, in all 64 combinations; scores are computed in exact fractions."""
    y, a = rows(40, spread, seed)
    e = Fraction(1, 2**14)
    exact = [[Fraction(v) for v in row] for row in y]
    sums = [
        Fraction(40),
        sum(exact[0]),
        sum(exact[1]),
        sum(u * u for u in exact[0]),
        sum(u * v for u, v in zip(exact[0], exact[1], strict=True)),
        sum(Fraction(v) for v in a),
    ]
    told = score_of(*sums)
    bound = score_error(moments_of(y, a), float(e)).item()
    worst = 0.0
    for signs in itertools.product((-1, 1), repeat=6):
        moved = [s + sign * e for s, sign in zip(sums, signs, strict=True)]
        if moved[3] - moved[1] ** 2 / moved[0] > 0:
            worst = max(worst, abs(float(score_of(*moved) - told)))
        else:
            assert bound == np.inf  # a constant column, for this combination
    assert worst <= bound
    assert bound == np.inf or bound < 10.0 * worst


def test_the_bound_counts_the_rounding_of_the_values() -> None:
    """Sums are exact, but values are half a unit in the last place off. The bound covers the resulting error."""
    y, a = rows(40, 1e-7)
    bound = score_error(moments_of(y, a), 0.0).item()
    off = y * (1.0 + 1e-16 * np.sign(np.random.default_rng(1).normal(size=y.shape)))
    one, other = moments_of(y, a)[0, 0], moments_of(off, a)[0, 0]
    moved = abs(one[lk.YY1] / one[lk.YY] - other[lk.YY1] / other[lk.YY])
    assert 0.0 < moved <= bound < 1.0
    assert_array_equal(score_error(moments_of(y * 0.0, a), 0.0), np.inf)
