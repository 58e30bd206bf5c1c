"""Operations that plain numba lacks: bit casts, fused multiply-add, prefetching, vectors of a chosen width.

Each is a plain Python function; jitted code has its twin in `llvm_intrinsics` or `llvm_lanes`.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: For kernels and their tests, by way of `powerkern._jit`.
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

#: Numbers in a vector, of float64 and of float32: as many as fill a cache line, and the widest registers.
LANES, LANES32 = 8, 16


def bits_of(x: float) -> int:
    """Return the bit pattern of a float64, as int64, or of every lane of a vector."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int64)  # type: ignore[unreachable]
    return struct.unpack("<q", struct.pack("<d", x))[0]  # type: ignore[no-any-return]


def float_of(bits: int) -> float:
    """Return the float64 with the given int64 bit pattern, or those for a vector's lanes."""
    if isinstance(bits, np.ndarray):  # type: ignore[unreachable]
        return bits.view(np.float64)  # type: ignore[unreachable]
    return struct.unpack("<d", struct.pack("<Q", int(bits) & 0xFFFFFFFFFFFFFFFF))[0]  # type: ignore[no-any-return]


def bits32_of(x: np.float32) -> int:
    """Return the bit pattern of a float32, as int32, or of every lane of a vector."""
    if isinstance(x, np.ndarray):  # type: ignore[unreachable]
        return x.view(np.int32)  # type: ignore[unreachable]
    return struct.unpack("<i", struct.pack("<f", x))[0]  # type: ignore[no-any-return]


def float32_of(bits: int) -> np.float32:
    """Return the float32 with the given int32 bit pattern, or those for a vector's lanes."""
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
    """Ask LLVM for the CPU's widest vectors in the calling function (no effect in plain Python)."""


def prefetch(array: npt.NDArray[np.float64], index: tuple[int, ...]) -> None:
    """Ask the CPU to fetch ``array[index]``, which may lie beyond the array (no effect in plain Python)."""


def allocated(shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Allocate an array of float64 that begins on a cache line; compiled code must free it with `release`."""
    return np.empty(shape)


def allocated_integers(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Allocate an array of int64, to be freed like the arrays of `allocated`."""
    return np.empty(shape, np.int64)


def release(array: npt.NDArray[Any]) -> None:
    """Free an array from `allocated` (no effect in plain Python)."""


def pack_eight(x: npt.NDArray[Any], first: int, within: int, out: npt.NDArray[Any], place: int) -> None:
    """Copy eight values at equal distances as one vector.

    Parameters
    ----------
    x : (n,) ndarray
        Holds the values ``x[first], x[first + within], ...``.
    first, within : int
        Index of the first value, and the distance to the next.
    out : (m,) ndarray
        Receives them at ``out[place : place + 8]``.
    place : int
        Index of the first copy.
    """
    out[place : place + LANES] = [x[first + k * within] for k in range(LANES)]


def add_powers(sums: npt.NDArray[np.float64], row: int, t: float, weight: float) -> None:
    """Add ``weight t**k`` to ``sums[8 row + k]`` for k = 0..7, as one vector.

    Parameters
    ----------
    sums : (n,) ndarray
        Eight sums for each row.
    row : int
        Which eight of them.
    t, weight : float
        The base of the powers, and their factor.
    """
    for k in range(8):
        sums[8 * row + k] += weight * t**k


# --- vectors ------------------------------------------------------------------------------------------
#
# Eight float64, or sixteen float32: many columns at once, one in each lane, whatever LLVM makes of a loop. In jitted
# code a `load` gives a vector in registers (one on CPUs with AVX-512, two with AVX2); + - * /, abs, comparisons, and
# & | << >> of their bits work lane by lane, and numbers among the operands stand for all lanes. In plain Python a
# vector is an array of eight or sixteen.

AnyFloats: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.float32]

#: A vector of numbers, and of booleans: nothing that kernels do with numbers is forbidden for them.
Lanes: TypeAlias = Any
Mask: TypeAlias = Any


def load(array: AnyFloats, index: tuple[int, ...]) -> Lanes:
    """Load a vector from consecutive numbers in memory, the first of them ``array[index]``."""
    return array[_side_by_side(array, index)].copy()


def store(array: AnyFloats, index: tuple[int, ...], lanes: Lanes) -> None:
    """Store a vector to consecutive places in memory, the first of them ``array[index]``."""
    array[_side_by_side(array, index)] = lanes


def lane_width(array: AnyFloats) -> int:
    """Return the number of elements of an array in a vector."""
    return LANES32 if array.dtype == np.float32 else LANES


def _side_by_side(array: AnyFloats, index: tuple[int, ...]) -> tuple[Any, ...]:
    return *index[:-1], slice(index[-1], index[-1] + lane_width(array))


def in_all_lanes(x: float) -> Lanes:
    """Broadcast a number to all lanes of float64."""
    return np.full(LANES, x)


def broadcast_like(lanes: Lanes, x: float) -> Lanes:
    """Broadcast a number to a vector of the same type as `lanes`."""
    return np.full_like(lanes, x)


def select(mask: Mask, yes: Any, no: Any) -> Lanes:
    """Select `yes` in the lanes where the mask holds, and `no` in the others; either may be a number."""
    return np.where(mask, yes, no)


def first_lanes(n: int) -> Mask:
    """Return a mask that holds in the first n lanes."""
    return np.arange(LANES) < n


def any_lane(mask: Mask) -> bool:
    """Return whether a mask holds in any lane."""
    return bool(mask.any())


def square_root(x: Lanes) -> Lanes:
    """Return the square root of every lane."""
    return np.sqrt(x)
