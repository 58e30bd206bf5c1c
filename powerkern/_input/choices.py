"""Words that arguments accept, for the package and the command line. This module imports nothing slow."""

from __future__ import annotations

from typing import Literal

#: Treatments of infinite values.
Infinite = Literal["raise", "missing", "keep"]
#: Treatments of values that have no transform, or no inverse.
OutOfRange = Literal["nan", "raise", "clip"]
#: Criteria by which ``family="best"`` chooses.
LIKELIHOOD, CENTRAL = "likelihood", "central"
CRITERIA = (LIKELIHOOD, "ppcc", "pearson", CENTRAL)
