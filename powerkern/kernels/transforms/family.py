"""A family of power transforms, as kernels see it: the offset of its logarithm, its domain, its mirror branch.

With b_m(a) = (e^(m a) - 1)/m, the branch of `powerkern.kernels.transforms.branch`, a family transforms by

    psi(lambda, x) = b_lambda(ln(offset + x)),                 x >= 0
    psi(lambda, x) = -b_(2 - lambda)(ln(offset - x)),          x < 0, if the family is mirrored.

Box-Cox has the offset 0 and no mirror: its domain is x > 0. Yeo-Johnson has the offset 1 and a mirror.
"""

from __future__ import annotations

import math

from powerkern._jit import kernel

BOX_COX, YEO_JOHNSON = range(2)

# directions: transforms and their inverses, of raw or of standardised values
FORWARD, INVERSE, FORWARD_STANDARDIZED, INVERSE_STANDARDIZED = range(4)
INVERSES = INVERSE, INVERSE_STANDARDIZED


def forward_direction(standardized: bool) -> int:
    """Return the code of the forward direction, raw or standardised."""
    return FORWARD_STANDARDIZED if standardized else FORWARD


def inverse_direction(standardized: bool) -> int:
    """Return the code of the inverse direction, raw or standardised."""
    return INVERSE_STANDARDIZED if standardized else INVERSE


#: The families by name.
FAMILIES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}


@kernel
def log_offset(family: int) -> float:
    """Return the number added to magnitudes before taking logarithms."""
    return 1.0 if family == YEO_JOHNSON else 0.0


@kernel
def is_mirrored(family: int) -> bool:
    """Return whether negative values are transformed too, with the exponent 2 - lambda."""
    return family == YEO_JOHNSON


@kernel
def domain_lower_bound(family: int) -> float:
    """Return the lower end of the domain, itself excluded."""
    return -math.inf if is_mirrored(family) else 0.0
