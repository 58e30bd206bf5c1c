"""Encode sums as integers that any secure sum can add, and bound the error of the score due to rounding.

A site writes its raw sums (weights, values, products) in multiples of a quantum, each integer as signed digits of
`DIGIT_BITS` bits. Adding the digits of all sites, in any order and any arithmetic that can represent the totals, adds
the integers exactly.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from powerkern._input.messages import shown
from powerkern._typing import FloatArray
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.likelihood import score_formulas as lk

Integers = NDArray[np.int64]

#: Number of bits of every entry of a vector, in addition to the sign.
DIGIT_BITS = 20
#: Raw sums must be below 2**_SUM_BITS. Scaled values are at most 4.1, so weights may be up to 5e12.
_SUM_BITS = 46
#: A vector begins with 1, whose total is the number of sites, and _N_TAG digits of the digest of the request.
_N_TAG = 4
#: The first number bounds the relative error of a scaled value, its derivative or its log, as the kernels compute them
#: with a scaling whose bounds need not match the values. The second is the largest scaled log.
_ROUNDING, _LARGEST_LOG = 16.0 * np.finfo(np.float64).eps, 2.0

# the two factors of each product among the moments
_PRODUCTS = {
    lk.YY: (lk.Y, lk.Y),
    lk.YY1: (lk.Y, lk.Y1),
    lk.Y1Y1: (lk.Y1, lk.Y1),
    lk.YY2: (lk.Y, lk.Y2),
    lk.YY3: (lk.Y, lk.Y3),
    lk.Y1Y2: (lk.Y1, lk.Y2),
}
_MEANS = (lk.Y, lk.Y1, lk.Y2, lk.Y3, partial_moments.JACOBIAN)


def check_quantum(quantum: object) -> float:
    """Return the quantum as a float; raise a ValueError unless it is a power of two from 2**-200 to 1."""
    if not isinstance(quantum, float | int) or isinstance(quantum, bool) or not 2.0**-200 <= quantum <= 1.0:
        raise ValueError(f"quantum must be a power of two from 2**-200 to 1, got {shown(quantum)}")
    if np.frexp(quantum)[0] != 0.5:
        raise ValueError(f"quantum must be a power of two, such as 2.0**-80, got {shown(quantum)}")
    return float(quantum)


# --- the vector of a site ----------------------------------------------------------------------------------


def encode_moments(moments: FloatArray, quantum: float, request: bytes) -> Integers:
    """Encode the moments of a site as a vector of integers.

    The vector holds a header that identifies the request, and the digits of the raw sums in multiples of `quantum`.

    Raises
    ------
    OverflowError
        If a sum is too large, because the weights exceed 5e12.
    """
    unit, n_digits = Fraction(quantum), _count_digits(quantum)
    entries = [1, *_request_tag(request)]
    for row in moments.reshape(-1, partial_moments.N_PARTIAL).tolist():
        for number in _raw_sums(row):
            entries += _to_digits(round(number / unit), n_digits)
    return np.array(entries, dtype=np.int64)


def _raw_sums(row: list[float]) -> list[Fraction]:
    """Convert the moments of one exponent to raw sums of weights, values and products, without any rounding."""
    w, *means = (Fraction(number) for number in row)
    sums = [w, *means]
    for k in _MEANS:
        sums[k] = w * sums[k]
    for k, (i, j) in _PRODUCTS.items():
        sums[k] += sums[i] * Fraction(row[j])
    return sums


def _count_digits(quantum: float) -> int:
    """Return the number of digits that encode one raw sum in multiples of `quantum`."""
    bits = _SUM_BITS - int(np.log2(quantum))
    return -(-bits // DIGIT_BITS)


def _to_digits(number: int, n: int) -> list[int]:
    """Return the n lowest digits of a number, lowest first, each with the sign of the number.

    Raise an OverflowError if the number has more digits.
    """
    sign, rest, found = (-1 if number < 0 else 1), abs(number), []
    for _ in range(n):
        found.append(sign * (rest & ((1 << DIGIT_BITS) - 1)))
        rest >>= DIGIT_BITS
    if rest:
        raise OverflowError
    return found


def _request_tag(request: bytes) -> list[int]:
    """Return the digits that identify a request, from a digest of it."""
    digest = int.from_bytes(hashlib.blake2b(request, digest_size=16).digest(), "little")
    return [(digest >> (DIGIT_BITS * k)) & ((1 << DIGIT_BITS) - 1) for k in range(_N_TAG)]


# --- the total ----------------------------------------------------------------------------------------


def decode_moments(total: object, shape: tuple[int, ...], quantum: float, request: bytes, n_sites: int) -> FloatArray:
    """Decode the moments of all rows from the total of the sites' vectors, in exact arithmetic with one rounding.

    Parameters
    ----------
    total : (k,) array-like of int
        Sum of the vectors of all sites.
    shape : tuple of int
        Shape of the moments; the last axis has length N_PARTIAL.
    quantum : float
        Unit of the integers.
    request : bytes
        Request that the sites answered.
    n_sites : int
        Number of sites.

    Raises
    ------
    ValueError
        If `total` is not the sum of the vectors of all sites for this request.
    """
    vector, n_digits = np.asarray(total), _count_digits(quantum)
    n_numbers = int(np.prod(shape))
    length = 1 + _N_TAG + n_numbers * n_digits
    if vector.dtype.kind not in "iu" or vector.shape != (length,):
        raise ValueError(f"it must be {length} integers, got {vector.dtype} of shape {vector.shape}")
    if vector[0] != n_sites:
        raise ValueError(f"it is the sum of {vector[0]} sites, the fit has {n_sites}")
    if (vector[1 : 1 + _N_TAG] != n_sites * np.array(_request_tag(request))).any():
        raise ValueError("a site answered another request, or entries were clipped, rounded or reduced")
    weights = [1 << (DIGIT_BITS * k) for k in range(n_digits)]
    numbers = [
        sum(digit * weight for digit, weight in zip(digits, weights, strict=True))
        for digits in vector[1 + _N_TAG :].reshape(n_numbers, n_digits).tolist()
    ]
    rows = np.reshape(np.array(numbers, dtype=object), (-1, partial_moments.N_PARTIAL))
    return np.array([_sums_to_moments(row.tolist(), Fraction(quantum)) for row in rows]).reshape(shape)


def _sums_to_moments(sums: list[int], unit: Fraction) -> list[float]:
    """Convert raw sums, in multiples of `unit`, to moments; all zero if the total weight is 0."""
    w = sums[lk.WEIGHT]
    row = [0.0] * partial_moments.N_PARTIAL
    if w <= 0:
        return row
    row[lk.WEIGHT] = float(w * unit)
    for k in _MEANS:
        row[k] = float(Fraction(sums[k], w))
    for k, (i, j) in _PRODUCTS.items():
        row[k] = float(Fraction(sums[k] * w - sums[i] * sums[j], w) * unit)
    return row


# --- errors -------------------------------------------------------------------------------------------


def score_error(moments: FloatArray, error: float) -> FloatArray:
    """Return a bound on the error of g' = C_yy'/C_yy - mean(J), for moments of shape (..., N_PARTIAL).

    Here y are the transformed values, y' their derivatives and J their log-Jacobian terms, S_u and S_uv are the raw
    sums of values and of products, W is the sum of the weights, and C_uv = S_uv - S_u S_v/W. Let e = `error` bound the
    error of each raw sum: it is n q/2 if n sites round to multiples of a quantum q. Then the error of C_uv is at most

        E_uv = e + (|S_u| + e)(|S_v| + e)/(W - e) - |S_u S_v|/W,

    the error of the ratio r = C_yy'/C_yy is at most (E_yy' + |r| E_yy)/(C_yy - E_yy), and the error of the mean of J is
    at most (e + |J| e)/(W - e). These are strict bounds, not first-order estimates. By Cauchy-Schwarz, relative
    rounding errors eta of the values add at most eta (sqrt(C_uu S_vv) + sqrt(C_vv S_uu)) + eta^2 sqrt(S_uu S_vv) to
    E_uv. The bound is infinite if C_yy <= E_yy, because the sums cannot then distinguish the column from a constant.
    """
    w = moments[..., lk.WEIGHT]
    y, y1 = np.abs(w * moments[..., lk.Y]), np.abs(w * moments[..., lk.Y1])
    c00, c11 = (np.maximum(moments[..., k], 0.0) for k in (lk.YY, lk.Y1Y1))
    jacobian = np.abs(moments[..., partial_moments.JACOBIAN])
    with np.errstate(all="ignore"):
        s00, s11 = c00 + y * y / w + error, c11 + y1 * y1 / w + error
        e00 = error + _product_error(y, y, w, error) + _ROUNDING * (2.0 * np.sqrt(c00 * s00) + _ROUNDING * s00)
        e01 = error + _product_error(y, y1, w, error)
        e01 = e01 + _ROUNDING * (np.sqrt(c00 * s11) + np.sqrt((c11 + error) * s00) + _ROUNDING * np.sqrt(s00 * s11))
        slope = np.abs(moments[..., lk.YY1]) / c00
        ratio = (e01 + slope * e00) / (c00 - e00) + _ROUNDING * slope
        mean = error * (1.0 + jacobian) / (w - error) + _ROUNDING * _LARGEST_LOG
        bound: FloatArray = np.where((c00 > e00) & (w > error), ratio + mean, np.inf)
    return bound


def _product_error(a: FloatArray, b: FloatArray, w: FloatArray, e: float) -> FloatArray:
    """Bound the error of ``a b/w`` for sums a, b, w: ``(a + e)(b + e)/(w - e) - a b/w``, without cancellation.

    Parameters
    ----------
    a, b : ndarray
        Absolute values of the two sums.
    w : ndarray
        The sum of the weights.
    e : float
        Bound on the error of each sum.
    """
    bound: FloatArray = (e * (a + b + e) + a * (b / w) * e) / (w - e)
    return bound
