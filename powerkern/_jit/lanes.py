"""Vectors of eight float64, or sixteen float32: many columns at once, one in each lane, whatever LLVM makes of a loop.

In jitted code a `load` gives a vector in registers (one on CPUs with AVX-512, two with AVX2); ``+ - * /``, ``abs``,
comparisons, and ``& | << >>`` of their bits work lane by lane, numbers among the operands stand for all lanes.
In plain Python a vector is an array of eight or sixteen.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: Numbers in a vector, of float64 and of float32: those of a cache line, and of the widest registers there are.
LANES, LANES32 = 8, 16

AnyFloats: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.float32]

#: A vector of numbers, and of booleans: nothing that kernels do with numbers is forbidden for them.
Lanes: TypeAlias = Any
Mask: TypeAlias = Any


def load(array: AnyFloats, index: tuple[int, ...]) -> Lanes:
    """The numbers of a vector that lie side by side in memory, from ``array[index]`` on."""
    return array[_side_by_side(array, index)].copy()


def store(array: AnyFloats, index: tuple[int, ...], lanes: Lanes) -> None:
    """Write the numbers of a vector side by side, from ``array[index]`` on."""
    array[_side_by_side(array, index)] = lanes


def width_of(array: AnyFloats) -> int:
    """How many numbers of an array a vector has."""
    return LANES32 if array.dtype == np.float32 else LANES


def _side_by_side(array: AnyFloats, index: tuple[int, ...]) -> tuple[Any, ...]:
    return *index[:-1], slice(index[-1], index[-1] + width_of(array))


def in_all_lanes(x: float) -> Lanes:
    """The same number in every lane, of float64."""
    return np.full(LANES, x)


def in_lanes_of(lanes: Lanes, x: float) -> Lanes:
    """The same number in every lane of a vector like another."""
    return np.full_like(lanes, x)


def select(mask: Mask, yes: Any, no: Any) -> Lanes:
    """`yes` in the lanes where the mask holds, `no` in the others; either may be a number."""
    return np.where(mask, yes, no)


def first_lanes(n: int) -> Mask:
    """A mask that holds in the first n lanes."""
    return np.arange(LANES) < n


def any_lane(mask: Mask) -> bool:
    """Whether a mask holds anywhere."""
    return bool(mask.any())


def square_root(x: Lanes) -> Lanes:
    """The square root of every lane."""
    return np.sqrt(x)


def sum_of_lanes(x: Lanes) -> float:
    """The sum over all lanes, in pairs: each half is added to the other."""
    while x.size > 1:
        x = x[: x.size // 2] + x[x.size // 2 :]
    return float(x[0])
