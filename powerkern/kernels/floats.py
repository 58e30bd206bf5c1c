"""Constants of float64, as literals: compiled code takes them for what they are."""

from __future__ import annotations

#: Distance from 1 to the next larger number, 2**-52, and its square root.
EPS = 2.220446049250313e-16
SQRT_EPS = 1.4901161193847656e-08

#: The smallest positive number with all 53 bits, 2**-1022, and the largest finite number.
SMALLEST_NORMAL = 2.2250738585072014e-308
LARGEST = 1.7976931348623157e308
