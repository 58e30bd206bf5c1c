"""The families of power transforms in kernels: their codes, offsets in the logarithm, domains and mirror branches.

With b_m(a) = (e^(m a) - 1)/m, the branch of `powerkern.kernels.transforms.branch`, a family transforms by

    psi(lambda, x) = b_lambda(ln(offset + x)),                 x >= 0
    psi(lambda, x) = -b_(2 - lambda)(ln(offset - x)),          x < 0, if the family is mirrored.

Box-Cox has the offset 0 and no mirror branch: its domain is x > 0. Yeo-Johnson has the offset 1 and a mirror branch.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel

BOX_COX, YEO_JOHNSON = range(2)

# codes of the directions: a transform or its inverse, for raw or for standardised values
FORWARD, INVERSE, FORWARD_STANDARDIZED, INVERSE_STANDARDIZED = range(4)
INVERSES = INVERSE, INVERSE_STANDARDIZED


def forward_direction(standardized: bool) -> int:
    """Return the direction code of the transform, with or without standardising."""
    return FORWARD_STANDARDIZED if standardized else FORWARD


def inverse_direction(standardized: bool) -> int:
    """Return the direction code of the inverse transform, for standardised or raw values."""
    return INVERSE_STANDARDIZED if standardized else INVERSE


#: The code of each family.
FAMILIES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}


@kernel
def log_offset(family: int) -> float:
    """Return the number that a family adds to magnitudes before the logarithm: 1 for Yeo-Johnson, 0 for Box-Cox."""
    return 1.0 if family == YEO_JOHNSON else 0.0


@kernel
def is_mirrored(family: int) -> bool:
    """Return whether a family also transforms negative values, with the exponent 2 - lambda."""
    return family == YEO_JOHNSON


@kernel
def domain_lower_bound(family: int) -> float:
    """Return the lower bound of a family's domain, which is not part of the domain."""
    return -math.inf if is_mirrored(family) else 0.0
