"""Operations that plain numba lacks: bit casts, fused multiply-add, prefetching, vectors of a chosen width.

The functions here run when kernels are plain Python; `llvm_intrinsics` and `llvm_lanes` lower them for jitted code.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: Re-exported by `powerkern._jit`, for kernels and their tests.
__all__ = [
    "LANES",
    "LANES32",
    "Lanes",
    "Mask",
    "add_powers",
    "allocated",
    "allocated_integers",
    "any_lane",
    "bits32_of",
    "bits_of",
    "broadcast_like",
    "first_lanes",
    "float32_of",
    "float_of",
    "fma",
    "in_all_lanes",
    "lane_width",
    "load",
    "pack_eight",
    "prefetch",
    "release",
    "select",
    "square_root",
    "store",
    "widest_vectors",
]  # fmt: skip

#: Elements of a vector of float64 and of float32: both fill a cache line, and the widest registers.
LANES, LANES32 = 8, 16


def bits_of(x: float) -> int:
    """Return the bit pattern of a float64 as int64. A vector is converted lane by lane."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int64)  # type: ignore[unreachable]
    return struct.unpack("<q", struct.pack("<d", x))[0]  # type: ignore[no-any-return]


def float_of(bits: int) -> float:
    """Return the float64 with the given int64 bit pattern. A vector is converted lane by lane."""
    if isinstance(bits, np.ndarray):  # type: ignore[unreachable]
        return bits.view(np.float64)  # type: ignore[unreachable]
    return struct.unpack("<d", struct.pack("<Q", int(bits) & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]


def bits32_of(x: np.float32) -> int:
    """Return the bit pattern of a float32 as int32. A vector is converted lane by lane."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int32)  # type: ignore[unreachable]
    return struct.unpack("<i", struct.pack("<f", x))[0]  # type: ignore[no-any-return]


def float32_of(bits: int) -> np.float32:
    """Return the float32 with the given int32 bit pattern. A vector is converted lane by lane."""
    if isinstance(bits, np.ndarray):  # type: ignore[unreachable]
        return bits.view(np.float32)  # type: ignore[unreachable]
    return np.uint32(int(bits) & 0xFFFFFFFF).view(np.float32)


def fma(a: float, b: float, c: float) -> float:
    """Return ``a*b + c`` with one rounding."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def widest_vectors() -> None:
    """Ask LLVM to use the CPU's widest vectors in the calling function (no effect in plain Python)."""


def prefetch(array: npt.NDArray[np.float64], index: tuple[int, ...]) -> None:
    """Ask the CPU to fetch ``array[index]``, which may lie beyond the array (no effect in plain Python)."""


def allocated(shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Allocate an array of float64 that begins on a cache line; compiled code must free it with `release`."""
    return np.empty(shape)


def allocated_integers(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Allocate an array of int64 that begins on a cache line; compiled code must free it with `release`."""
    return np.empty(shape, np.int64)


def release(array: npt.NDArray[Any]) -> None:
    """Free an array from `allocated` or `allocated_integers` (no effect in plain Python)."""


def pack_eight(x: npt.NDArray[Any], first: int, within: int, out: npt.NDArray[Any], place: int) -> None:
    """Copy eight equally spaced values to consecutive positions, as one vector.

    Parameters
    ----------
    x : (n,)
        Holds the values ``x[first], x[first + within], ...``.
    first : int
        Index of the first value.
    within : int
        Index step from one value to the next.
    out : (m,)
        Receives the values at ``out[place : place + 8]``.
    place : int
        Index in `out` of the first value.
    """
    out[place : place + LANES] = [x[first + k * within] for k in range(LANES)]


def add_powers(sums: npt.NDArray[np.float64], row: int, t: float, weight: float) -> None:
    """Add ``weight t**k`` to ``sums[8 row + k]`` for k = 0..7, as one vector.

    Parameters
    ----------
    sums : (n,)
        Rows of eight sums, flattened.
    row : int
        Index of the row to add to.
    t : float
        The base of the powers.
    weight : float
        Factor that multiplies the powers.
    """
    for k in range(8):
        sums[8 * row + k] += weight * t**k


# --- vectors ------------------------------------------------------------------------------------------
#
# Vectors of eight float64 or sixteen float32 process one column per lane, even where LLVM would not vectorise a loop.
# In jitted code `load` gives a vector in registers (one on CPUs with AVX-512, two with AVX2). Arithmetic, abs,
# comparisons and bit operations work lane by lane; numbers among the operands are broadcast. In plain Python a vector
# is an array of eight or sixteen elements.

AnyFloats: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.float32]

#: A vector of numbers, and a vector of booleans; Any, so that type checkers accept the same code as for numbers.
Lanes: TypeAlias = Any
Mask: TypeAlias = Any


def load(array: AnyFloats, index: tuple[int, ...]) -> Lanes:
    """Load a vector from consecutive elements of an array, the first of which is ``array[index]``."""
    return array[_side_by_side(array, index)].copy()


def store(array: AnyFloats, index: tuple[int, ...], lanes: Lanes) -> None:
    """Store a vector to consecutive elements of an array, the first of which is ``array[index]``."""
    array[_side_by_side(array, index)] = lanes


def lane_width(array: AnyFloats) -> int:
    """Return the number of elements in a vector of this array's dtype."""
    return LANES32 if array.dtype == np.float32 else LANES


def _side_by_side(array: AnyFloats, index: tuple[int, ...]) -> tuple[Any, ...]:
    return *index[:-1], slice(index[-1], index[-1] + lane_width(array))


def in_all_lanes(x: float) -> Lanes:
    """Return a vector of float64 with the number x in all lanes."""
    return np.full(LANES, x)


def broadcast_like(lanes: Lanes, x: float) -> Lanes:
    """Return a vector of the type of `lanes` with the number x in all lanes."""
    return np.full_like(lanes, x)


def select(mask: Mask, yes: Any, no: Any) -> Lanes:
    """Return `yes` in the lanes where the mask is true and `no` in the others; either may be a number."""
    return np.where(mask, yes, no)


def first_lanes(n: int) -> Mask:
    """Return a mask that is true in the first n lanes."""
    return np.arange(LANES) < n


def any_lane(mask: Mask) -> bool:
    """Return whether a mask is true in any lane."""
    return bool(mask.any())


def square_root(x: Lanes) -> Lanes:
    """Return the square root of every lane."""
    return np.sqrt(x)
