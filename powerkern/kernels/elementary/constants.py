"""Float64 constants as literals for the compiler, and elementary operations on bit patterns and sorted arrays."""

from __future__ import annotations

from powerkern._jit import kernel
from powerkern._typing import FloatArray

#: Distance from 1 to the next larger number, 2**-52.
EPS = 2.220446049250313e-16
#: The square root of EPS, 2**-26.
SQRT_EPS = 1.4901161193847656e-08

#: The smallest positive number with all 53 bits, 2**-1022.
SMALLEST_NORMAL = 2.2250738585072014e-308
#: The largest finite number, (2 - 2**-52) 2**1023.
LARGEST = 1.7976931348623157e308


@kernel
def ordered(bits: int) -> int:
    """Map the bit pattern of a float to an integer with the same order; the map is its own inverse.

    LLVM vectorises minima and maxima of integers even if there are NaN, which makes them ten times faster.
    """
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@kernel
def copy(x: FloatArray, out: FloatArray) -> None:
    """Set out = x for vectors of the same length; NumPy's assignment would take a second to compile."""
    for i in range(x.size):
        out[i] = x[i]


@kernel
def insert(value: float, n: int, ordered: FloatArray) -> None:
    """Insert a value into the sorted vector ``ordered[:n]``, which becomes ``ordered[: n + 1]``."""
    k = n
    while k > 0 and ordered[k - 1] > value:
        ordered[k] = ordered[k - 1]
        k -= 1
    ordered[k] = value


@kernel
def count_below(x: FloatArray, bound: float) -> int:
    """Return the number of values of a sorted array that are less than `bound`."""
    low, high = 0, x.size
    while low < high:
        middle = (low + high) >> 1
        if x[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
